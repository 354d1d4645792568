//! `Configuration`: electrons at given places and what a wave function is there, for updating schemes of one's own.

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT};

use super::wavefunction::Psi;
use super::{point, points};
use crate::error::{Error, Result};
use crate::montecarlo::amplitude::Amplitude;
use crate::montecarlo::lattice::{Hop, Occupied};
use crate::montecarlo::{Configuration, SlaterJastrow};
use crate::number::{C64, Scalar};
use crate::script::Fallible;
use crate::script::rooms::Rooms;

/// A wave function, and electrons that it knows determinants and inverse matrices of.
#[derive(Clone)]
enum Placed {
    Real(Configuration<f64>),
    Complex(Configuration<C64>),
    LatticeReal(Occupied<f64>),
    LatticeComplex(Occupied<C64>),
}

/// The script's handle: a value of its own, as numbers are.
#[derive(Clone)]
struct Electrons {
    psi: Psi,
    placed: Placed,
}

/// Registers the type and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Electrons>("Configuration");
    rooms.register_global_module(exported_module!(configuration_functions).into());
}

/// The sites of one spin.
fn sites(value: &Dynamic) -> Result<Vec<usize>> {
    let wrong = || {
        Error::input("electrons on a lattice are given by two arrays, the sites of spin up and of spin down")
            .hint("like [[0, 2], [1, 3]]")
    };
    let array = value.read_lock::<Array>().map(|array| array.clone()).ok_or_else(wrong)?;
    let site = |x: &Dynamic| x.as_int().ok().and_then(|x| usize::try_from(x).ok()).ok_or_else(wrong);
    array.iter().map(site).collect()
}

fn placed(psi: &Psi, places: &Dynamic) -> Result<Placed> {
    let (up, down) = psi.electrons();
    let in_space = || -> Result<Vec<[f64; 3]>> {
        let all = points(places, "places of electrons")?;
        if all.len() != up + down {
            return Err(Error::input(format!("{} places for {} electrons", all.len(), up + down))
                .hint("a point an electron, those of spin up first"));
        }
        Ok(all)
    };
    let on_lattice = || -> Result<[Vec<usize>; 2]> {
        let array = places.read_lock::<Array>().map(|array| array.clone()).unwrap_or_default();
        match array.as_slice() {
            [up, down] => Ok([sites(up)?, sites(down)?]),
            _ => sites(&Dynamic::UNIT).map(|_| Default::default()),
        }
    };
    Ok(match psi {
        Psi::Real(psi) => Placed::Real(psi.configuration(in_space()?)?),
        Psi::Complex(psi) => Placed::Complex(psi.configuration(in_space()?)?),
        Psi::LatticeReal(psi) => {
            on_lattice().and_then(|[u, d]| psi.occupied(&u, &d)).map(Placed::LatticeReal)?
        }
        Psi::LatticeComplex(psi) => {
            on_lattice().and_then(|[u, d]| psi.occupied(&u, &d)).map(Placed::LatticeComplex)?
        }
    })
}

/// An electron by its number, those of spin up first.
fn electron(psi: &Psi, number: INT) -> Result<usize> {
    let (up, down) = psi.electrons();
    usize::try_from(number).ok().filter(|&i| i < up + down).ok_or_else(|| {
        Error::input(format!("electron {number} of {}", up + down))
            .hint("electrons are numbered from 0, those of spin up first")
    })
}

/// A hop of one electron on a lattice to a free site of its spin.
fn hop<S>(psi: &Psi, occupied: &Occupied<S>, i: usize, to: &Dynamic, count: usize) -> Result<Hop> {
    let up = psi.electrons().0;
    let (spin, own) = if i < up { (0, i) } else { (1, i - up) };
    let site =
        to.as_int().ok().and_then(|x| usize::try_from(x).ok()).filter(|&x| x < count).ok_or_else(|| {
            Error::input(format!("an electron hops to a site, and there is none called {to}"))
                .hint(format!("sites are numbered from 0 to {}", count - 1))
        })?;
    match occupied.at(spin, site) {
        Some(other) if other != own => Err(Error::input(format!("two electrons of one spin on site {site}"))
            .hint("such a move has the probability zero: leave it out")),
        _ => Ok((spin, own, site)),
    }
}

/// The ratio for one electron in space, and what accepting it takes.
struct Change<S> {
    to: [f64; 3],
    row: Vec<S>,
    ratios: Vec<Option<S>>,
    ratio: S,
}

fn change<S: Amplitude>(psi: &SlaterJastrow<S>, at: &Configuration<S>, i: usize, to: [f64; 3]) -> Change<S> {
    let (mut row, mut ratios) = (Vec::new(), Vec::new());
    psi.values(&[to], &mut row);
    let determinants = psi.ratio(at, i, &row, &mut ratios);
    let jastrow = psi.jastrow().change(&at.positions, i, to);
    Change { to, row, ratios, ratio: determinants * S::real(jastrow.exp()) }
}

fn ratio_of(e: &Electrons, i: usize, to: &Dynamic) -> Result<C64> {
    Ok(match (&e.psi, &e.placed) {
        (Psi::Real(psi), Placed::Real(at)) => change(psi, at, i, point(to)?).ratio.to_c64(),
        (Psi::Complex(psi), Placed::Complex(at)) => change(psi, at, i, point(to)?).ratio,
        (Psi::LatticeReal(psi), Placed::LatticeReal(at)) => {
            psi.ratio(at, &[hop(&e.psi, at, i, to, psi.sites())?]).to_c64()
        }
        (Psi::LatticeComplex(psi), Placed::LatticeComplex(at)) => {
            psi.ratio(at, &[hop(&e.psi, at, i, to, psi.sites())?])
        }
        _ => return Err(Error::internal("a configuration of another wave function")),
    })
}

/// Moves one electron in space; false where the wave function vanishes.
fn take<S: Amplitude>(psi: &SlaterJastrow<S>, at: &mut Configuration<S>, i: usize, to: [f64; 3]) -> bool {
    let change = change(psi, at, i, to);
    if !(change.ratio.modulus() > 0.0) {
        return false;
    }
    psi.accept(at, i, change.to, &change.row, &change.ratios);
    true
}

fn place_at(e: &mut Electrons, i: usize, to: &Dynamic) -> Result<()> {
    let taken = match (&e.psi, &mut e.placed) {
        (Psi::Real(psi), Placed::Real(at)) => take(psi, at, i, point(to)?),
        (Psi::Complex(psi), Placed::Complex(at)) => take(psi, at, i, point(to)?),
        (Psi::LatticeReal(psi), Placed::LatticeReal(at)) => {
            let hop = hop(&e.psi, at, i, to, psi.sites())?;
            psi.accept(at, &[hop])
        }
        (Psi::LatticeComplex(psi), Placed::LatticeComplex(at)) => {
            let hop = hop(&e.psi, at, i, to, psi.sites())?;
            psi.accept(at, &[hop])
        }
        _ => return Err(Error::internal("a configuration of another wave function")),
    };
    if taken {
        return Ok(());
    }
    Err(Error::numeric("the wave function vanishes where the electron is to go")
        .hint("such a move has the probability zero: leave it out"))
}

/// A number, real where it is.
fn number(z: C64, is_real: bool) -> Dynamic {
    if is_real { z.re.into() } else { Dynamic::from(z) }
}

impl Electrons {
    fn is_real(&self) -> bool {
        matches!(self.placed, Placed::Real(_) | Placed::LatticeReal(_))
    }
}

#[export_module(root = "crate::script::native")]
mod configuration_functions {
    /// Electrons at given places, with the determinants and inverse matrices of a wave function there: what an updating scheme of
    /// one's own needs. Places are points in space, spin up first (a point of one dimension may be a number), or on a lattice
    /// the sites of either spin, `[[0, 2], [1, 3]]`. A copy goes its own way.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(2), #{ up: 2 });
    /// let here = psi.at([-0.5, 0.8]);
    /// assert_close(here.ratio(0, 0.1), (0.8 - 0.1) / 1.3 * exp(0.5 * (0.25 - 0.01)), 1e-12);   // x2 - x1, times a Gaussian
    /// ```
    #[rhai_fn(global, name = "at", pure, return_raw)]
    pub fn configuration_at(psi: &mut Psi, places: Dynamic) -> Fallible<Electrons> {
        let placed = placed(psi, &places)?;
        Ok(Electrons { psi: psi.clone(), placed })
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
    pub fn log_of(e: &mut Electrons) -> C64 {
        let (log, phase) = match (&e.psi, &e.placed) {
            (Psi::Real(psi), Placed::Real(at)) => {
                let (log, phase) = psi.log(at);
                (log, phase.to_c64())
            }
            (Psi::Complex(psi), Placed::Complex(at)) => psi.log(at),
            (Psi::LatticeReal(psi), Placed::LatticeReal(at)) => {
                let (log, phase) = psi.log(at);
                (log, phase.to_c64())
            }
            (Psi::LatticeComplex(psi), Placed::LatticeComplex(at)) => psi.log(at),
            _ => (f64::NAN, C64::default()),
        };
        C64::new(log, phase.arg())
    }

    /// Psi with one electron elsewhere, over Psi: a float, or a Complex for a complex wave function. The electron is given by its
    /// number, those of spin up first, and goes to a point, or on a lattice to a site. It costs a row of orbitals and a scalar
    /// product.
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
    pub fn ratio(e: &mut Electrons, electron: INT, to: Dynamic) -> Fallible<Dynamic> {
        let i = super::electron(&e.psi, electron)?;
        Ok(number(ratio_of(e, i, &to)?, e.is_real()))
    }

    /// Puts one electron elsewhere, and brings determinants and inverse matrices up to date.
    ///
    /// # Example
    /// ```rhai
    /// let here = slater_jastrow(orbitals::oscillator(2), #{ up: 2 }).at([-0.5, 0.8]);
    /// here.place(1, 0.3);
    /// assert_close(here.places[1][0], 0.3, 0.0);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn place(e: &mut Electrons, electron: INT, to: Dynamic) -> Fallible<()> {
        let i = super::electron(&e.psi, electron)?;
        Ok(place_at(e, i, &to)?)
    }

    /// Where the electrons are, as `at` takes it: an array of points of three coordinates, or of the sites of either spin.
    #[rhai_fn(global, get = "places", pure)]
    pub fn places(e: &mut Electrons) -> Array {
        fn one(x: &[f64; 3]) -> Dynamic {
            x.iter().map(|x| Dynamic::from(*x)).collect::<Array>().into()
        }
        fn sites(places: &[Vec<u32>; 2]) -> Array {
            let list = |spin: &Vec<u32>| -> Dynamic {
                spin.iter().map(|x| Dynamic::from(INT::from(*x))).collect::<Array>().into()
            };
            places.iter().map(list).collect()
        }
        match &e.placed {
            Placed::Real(at) => at.positions.iter().map(one).collect(),
            Placed::Complex(at) => at.positions.iter().map(one).collect(),
            Placed::LatticeReal(at) => sites(&at.places),
            Placed::LatticeComplex(at) => sites(&at.places),
        }
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn configuration_to_string(e: &mut Electrons) -> String {
        let (up, down) = e.psi.electrons();
        format!("Configuration of {up} + {down} electrons")
    }
}
