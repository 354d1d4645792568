//! `Configuration`: electrons at given places and what a wave function is there, for updating schemes of one's own.

use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT};

use super::wavefunction::Psi;
use super::{point, points};
use crate::error::{Error, Result};
use crate::montecarlo::amplitude::Amplitude;
use crate::montecarlo::lattice::{ElectronHop, LatticeState, OccupiedSites};
use crate::montecarlo::{Configuration, SlaterJastrow};
use crate::number::C64;
use crate::script::Fallible;
use crate::script::rooms::Rooms;

/// Electrons at places, with the determinants and inverse matrices of their wave function there.
trait PlacedElectrons {
    /// Electrons of spin up and of spin down.
    fn electrons(&self) -> (usize, usize);
    /// ln |Psi| and the phase of Psi.
    fn log(&self) -> (f64, C64);
    /// Psi with electron `i` elsewhere, over Psi: a float, or a Complex for a complex wave function.
    fn ratio(&self, i: usize, to: &Dynamic) -> Result<Dynamic>;
    /// Puts electron `i` elsewhere; false, and nothing changed, where the wave function vanishes.
    fn place(&mut self, i: usize, to: &Dynamic) -> Result<bool>;
    /// Where the electrons are.
    fn places(&self) -> Array;
    /// Another one that goes its own way.
    fn copy(&self) -> Box<dyn PlacedElectrons>;
}

/// The script's handle: a value of its own, as numbers are.
struct ScriptConfiguration(Box<dyn PlacedElectrons>);

impl Clone for ScriptConfiguration {
    fn clone(&self) -> Self {
        ScriptConfiguration(self.0.copy())
    }
}

/// Registers the type and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<ScriptConfiguration>("Configuration");
    rooms.register_global_module(exported_module!(configuration_functions).into());
}

/// A ratio as scripts take it.
fn number<S: Amplitude>(ratio: S) -> Dynamic {
    let z = ratio.to_c64();
    if S::DTYPE.is_complex() { Dynamic::from(z) } else { z.re.into() }
}

/// Electrons in space.
#[derive(Clone)]
struct InSpace<S> {
    psi: Arc<SlaterJastrow<S>>,
    at: Configuration<S>,
}

/// The ratio for one electron in space, and what accepting it takes.
struct TrialMove<S> {
    to: [f64; 3],
    row: Vec<S>,
    ratios: Vec<Option<S>>,
    ratio: S,
}

impl<S: Amplitude> InSpace<S> {
    fn placed(psi: &Arc<SlaterJastrow<S>>, places: &Dynamic) -> Result<Box<dyn PlacedElectrons>> {
        let (up, down) = psi.electrons();
        let all = points(places, "places of electrons", psi.orbitals().dimension())?;
        if all.len() != up + down {
            return Err(Error::input(format!("{} places for {} electrons", all.len(), up + down))
                .hint("one point per electron, those of spin up first"));
        }
        Ok(Box::new(InSpace { psi: psi.clone(), at: psi.configuration(all)? }))
    }

    fn change(&self, i: usize, to: &Dynamic) -> Result<TrialMove<S>> {
        let to = point(to, self.psi.orbitals().dimension())?;
        let (mut row, mut ratios) = (Vec::new(), Vec::new());
        self.psi.values(&[to], &mut row);
        let determinants = self.psi.ratio(&self.at, i, &row, &mut ratios);
        let jastrow = self.psi.jastrow().change(&self.at.positions, i, to);
        Ok(TrialMove { to, row, ratios, ratio: determinants * S::real(jastrow.exp()) })
    }
}

impl<S: Amplitude> PlacedElectrons for InSpace<S> {
    fn electrons(&self) -> (usize, usize) {
        self.psi.electrons()
    }

    fn log(&self) -> (f64, C64) {
        let (log, phase) = self.psi.log(&self.at);
        (log, phase.to_c64())
    }

    fn ratio(&self, i: usize, to: &Dynamic) -> Result<Dynamic> {
        Ok(number(self.change(i, to)?.ratio))
    }

    fn place(&mut self, i: usize, to: &Dynamic) -> Result<bool> {
        let change = self.change(i, to)?;
        if !(change.ratio.modulus() > 0.0) {
            return Ok(false);
        }
        self.psi.accept(&mut self.at, i, change.to, &change.row, &change.ratios);
        Ok(true)
    }

    fn places(&self) -> Array {
        let one = |x: &[f64; 3]| x.iter().map(|x| Dynamic::from(*x)).collect::<Array>().into();
        self.at.positions.iter().map(one).collect()
    }

    fn copy(&self) -> Box<dyn PlacedElectrons> {
        Box::new(self.clone())
    }
}

/// Electrons on the sites of a lattice.
#[derive(Clone)]
struct OnLattice<S> {
    psi: Arc<LatticeState<S>>,
    at: OccupiedSites<S>,
}

/// The sites of both spins.
fn sites(places: &Dynamic) -> Result<[Vec<usize>; 2]> {
    let wrong = || {
        Error::input("electrons on a lattice are given by two arrays, the sites of spin up and of spin down")
            .hint("like [[0, 2], [1, 3]]")
    };
    let array = |value: &Dynamic| value.read_lock::<Array>().map(|array| array.clone()).ok_or_else(wrong);
    let site = |x: &Dynamic| x.as_int().ok().and_then(|x| usize::try_from(x).ok()).ok_or_else(wrong);
    let spin = |value: &Dynamic| array(value)?.iter().map(site).collect::<Result<Vec<usize>>>();
    match array(places)?.as_slice() {
        [up, down] => Ok([spin(up)?, spin(down)?]),
        _ => Err(wrong()),
    }
}

impl<S: Amplitude> OnLattice<S> {
    fn placed(psi: &Arc<LatticeState<S>>, places: &Dynamic) -> Result<Box<dyn PlacedElectrons>> {
        let [up, down] = sites(places)?;
        Ok(Box::new(OnLattice { psi: psi.clone(), at: psi.occupied(&up, &down)? }))
    }

    /// A hop of one electron to a free site of its spin.
    fn hop(&self, i: usize, to: &Dynamic) -> Result<ElectronHop> {
        let up = self.psi.electrons().0;
        let (spin, own) = if i < up { (0, i) } else { (1, i - up) };
        let count = self.psi.sites();
        let site = to.as_int().ok().and_then(|x| usize::try_from(x).ok()).filter(|&x| x < count);
        let site = site.ok_or_else(|| {
            Error::input(format!("an electron hops to a site, and there is none called {to}"))
                .hint(format!("sites are numbered from 0 to {}", count - 1))
        })?;
        match self.at.at(spin, site) {
            Some(other) if other != own => {
                Err(Error::input(format!("two electrons of one spin on site {site}"))
                    .hint("such a move has the probability zero: leave it out"))
            }
            _ => Ok((spin, own, site)),
        }
    }
}

impl<S: Amplitude> PlacedElectrons for OnLattice<S> {
    fn electrons(&self) -> (usize, usize) {
        self.psi.electrons()
    }

    fn log(&self) -> (f64, C64) {
        let (log, phase) = self.psi.log(&self.at);
        (log, phase.to_c64())
    }

    fn ratio(&self, i: usize, to: &Dynamic) -> Result<Dynamic> {
        Ok(number(self.psi.ratio(&self.at, &[self.hop(i, to)?])))
    }

    fn place(&mut self, i: usize, to: &Dynamic) -> Result<bool> {
        let hop = self.hop(i, to)?;
        Ok(self.psi.accept(&mut self.at, &[hop]))
    }

    fn places(&self) -> Array {
        let site = |x: &u32| Dynamic::from(INT::from(*x));
        self.at.places.iter().map(|spin| spin.iter().map(site).collect::<Array>().into()).collect()
    }

    fn copy(&self) -> Box<dyn PlacedElectrons> {
        Box::new(self.clone())
    }
}

/// An electron by its number, those of spin up first.
fn electron(e: &ScriptConfiguration, number: INT) -> Result<usize> {
    let (up, down) = e.0.electrons();
    usize::try_from(number).ok().filter(|&i| i < up + down).ok_or_else(|| {
        Error::input(format!("electron {number} of {}", up + down))
            .hint("electrons are numbered from 0, those of spin up first")
    })
}

#[export_module(root = "crate::script::native")]
mod configuration_functions {
    /// Electrons at given places, with the determinants and inverse matrices of a wave function there, for updating
    /// schemes of your own. Places are points in space, spin up first (a point in one dimension may be a number). On a
    /// lattice they are the sites of each spin, `[[0, 2], [1, 3]]`. A copy moves independently.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(2), #{ up: 2 });
    /// let here = psi.at([-0.5, 0.8]);
    /// // x2 - x1, times a Gaussian
    /// assert_close(here.ratio(0, 0.1), (0.8 - 0.1) / 1.3 * exp(0.5 * (0.25 - 0.01)), 1e-12);
    /// ```
    #[rhai_fn(global, name = "at", pure, return_raw)]
    pub fn configuration_at(psi: &mut Psi, places: Dynamic) -> Fallible<ScriptConfiguration> {
        Ok(ScriptConfiguration(match psi {
            Psi::Real(psi) => InSpace::placed(psi, &places),
            Psi::Complex(psi) => InSpace::placed(psi, &places),
            Psi::LatticeReal(psi) => OnLattice::placed(psi, &places),
            Psi::LatticeComplex(psi) => OnLattice::placed(psi, &places),
        }?))
    }

    /// The logarithm of the wave function, ln |Psi| + i arg Psi, a Complex.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(2), #{ up: 2 });
    /// let here = psi.at([-0.5, 0.8]).log;
    /// let there = psi.at([0.8, -0.5]).log;
    /// assert_close((exp(here - there) + 1.0).abs(), 0.0, 1e-12);          // electrons of one spin exchanged
    /// ```
    #[rhai_fn(global, get = "log", pure)]
    pub fn log_of(e: &mut ScriptConfiguration) -> C64 {
        let (log, phase) = e.0.log();
        C64::new(log, phase.arg())
    }

    /// The ratio of Psi with one electron moved to Psi: a float, or a Complex for a complex wave function. The electron
    /// is given by its number, spin up first; the new place is a point, or on a lattice a site. The cost is a row of
    /// orbitals and a scalar product.
    ///
    /// # Example
    /// ```rhai
    /// let sea = davidson(tight_binding(lattice::chain(6), #{ hopping: -1.0 }), #{ count: 3, seed: 1 }).vectors;
    /// let here = lattice_slater(sea, #{ up: 3, gutzwiller: 0.5 }).at([[0, 2, 4], []]);
    /// let q = here.ratio(0, 1);
    /// let there = here;
    /// there.place(0, 1);
    /// assert_close((exp(there.log - here.log) - q).abs(), 0.0, 1e-10);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn ratio(e: &mut ScriptConfiguration, electron: INT, to: Dynamic) -> Fallible<Dynamic> {
        Ok(e.0.ratio(super::electron(e, electron)?, &to)?)
    }

    /// Moves one electron, and updates determinants and inverse matrices.
    ///
    /// # Example
    /// ```rhai
    /// let here = slater_jastrow(orbitals::oscillator(2), #{ up: 2 }).at([-0.5, 0.8]);
    /// here.place(1, 0.3);
    /// assert_close(here.places[1][0], 0.3, 0.0);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn place(e: &mut ScriptConfiguration, electron: INT, to: Dynamic) -> Fallible<()> {
        let i = super::electron(e, electron)?;
        if e.0.place(i, &to)? {
            return Ok(());
        }
        Err(Error::numeric("the wave function vanishes where the electron is to go")
            .hint("such a move has the probability zero: leave it out")
            .into())
    }

    /// Where the electrons are, in the form that `at` takes: an array of points of three coordinates, or of the sites
    /// of each spin.
    #[rhai_fn(global, get = "places", pure)]
    pub fn places(e: &mut ScriptConfiguration) -> Array {
        e.0.places()
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn configuration_to_string(e: &mut ScriptConfiguration) -> String {
        let (up, down) = e.0.electrons();
        format!("Configuration of {up} + {down} electrons")
    }
}
