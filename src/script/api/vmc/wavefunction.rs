//! `WaveFunction`: Slater-Jastrow wave functions in the continuum, and those of electrons on lattices.

use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT, Map};

use super::factors::ScriptJastrow;
use crate::error::{Error, Result};
use crate::montecarlo::amplitude::Amplitude;
use crate::montecarlo::jastrow::JastrowFactor;
use crate::montecarlo::lattice::{LatticeState, Reference};
use crate::montecarlo::orbitals::{OrbitalBasis, OrbitalSet};
use crate::montecarlo::{DeterminantProduct, SlaterJastrow};
use crate::number::{C64, Matrix, Series, memory};
use crate::script::api::chebyshev::as_complex;
use crate::script::api::values::{to_series, type_of};
use crate::script::api::vector::Vector;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

/// A wave function, as scripts hold it.
#[derive(Clone)]
pub(in crate::script::api) enum Psi {
    Real(Arc<SlaterJastrow<f64>>),
    Complex(Arc<SlaterJastrow<C64>>),
    LatticeReal(Arc<LatticeState<f64>>),
    LatticeComplex(Arc<LatticeState<C64>>),
}

impl Psi {
    pub(super) fn describe(&self) -> String {
        match self {
            Psi::Real(psi) => psi.describe(),
            Psi::Complex(psi) => psi.describe(),
            Psi::LatticeReal(state) => state.describe(),
            Psi::LatticeComplex(state) => state.describe(),
        }
    }

    pub(super) fn electrons(&self) -> (usize, usize) {
        match self {
            Psi::Real(psi) => psi.electrons(),
            Psi::Complex(psi) => psi.electrons(),
            Psi::LatticeReal(state) => state.electrons(),
            Psi::LatticeComplex(state) => state.electrons(),
        }
    }

    /// Names and values of what may be optimised.
    pub(super) fn parameters(&self) -> Vec<(String, f64)> {
        match self {
            Psi::Real(psi) => psi.jastrow().parameters(),
            Psi::Complex(psi) => psi.jastrow().parameters(),
            Psi::LatticeReal(state) => state.parameters(),
            Psi::LatticeComplex(state) => state.parameters(),
        }
    }

    pub(super) fn with_parameters(&self, values: &[f64]) -> Result<Psi> {
        Ok(match self {
            Psi::Real(psi) => Psi::Real(Arc::new(psi.with_parameters(values)?)),
            Psi::Complex(psi) => Psi::Complex(Arc::new(psi.with_parameters(values)?)),
            Psi::LatticeReal(state) => Psi::LatticeReal(Arc::new(state.with_parameters(values)?)),
            Psi::LatticeComplex(state) => Psi::LatticeComplex(Arc::new(state.with_parameters(values)?)),
        })
    }
}

/// Registers the type and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Psi>("WaveFunction");
    rooms.room("vmc", exported_module!(wavefunction_functions));
}

/// Orbital numbers.
fn numbers(value: &Dynamic) -> Result<Vec<usize>> {
    let series = to_series(value)?;
    let whole = |x: &f64| {
        if *x >= 0.0 && x.fract() == 0.0 && *x < 1e9 {
            Ok(*x as usize)
        } else {
            Err(Error::input(format!("orbital {x}")).hint("orbitals are numbered from 0"))
        }
    };
    series.as_real("orbital numbers")?.iter().map(whole).collect()
}

/// The products of determinants that the option `determinants` lists: `[[coefficient, [0, 1], [0, 1]], ..]`.
fn products(value: &Dynamic) -> Result<Vec<(C64, Vec<usize>, Vec<usize>)>> {
    let wrong = || {
        Error::input("a determinant is a coefficient and the orbitals of both spins")
            .hint("like `determinants: [[1.0, [0, 1], [0, 1]], [-0.2, [0, 2], [0, 2]]]`")
    };
    let list = value.read_lock::<Array>().map(|a| a.clone()).ok_or_else(wrong)?;
    let one = |value: &Dynamic| -> Result<(C64, Vec<usize>, Vec<usize>)> {
        let parts =
            value.read_lock::<Array>().map(|a| a.clone()).filter(|a| a.len() == 3).ok_or_else(wrong)?;
        let coefficient = as_complex(&parts[0]).ok_or_else(wrong)?;
        Ok((coefficient, numbers(&parts[1])?, numbers(&parts[2])?))
    };
    list.iter().map(one).collect()
}

fn slater<S: Amplitude>(
    orbitals: Arc<dyn crate::montecarlo::Orbitals<S>>,
    decisions: Option<Arc<dyn crate::montecarlo::Orbitals<S>>>,
    (up, down): (usize, usize),
    determinants: Option<Vec<(C64, Vec<usize>, Vec<usize>)>>,
    factors: &ScriptJastrow,
    delay: Option<usize>,
) -> Result<Arc<SlaterJastrow<S>>> {
    let endless = |f: &&JastrowFactor| {
        matches!(f, JastrowFactor::Pade { .. } | JastrowFactor::Log { .. } | JastrowFactor::Power { .. })
    };
    if let Some(factor) = factors.0.iter().find(endless).filter(|_| orbitals.cell().is_some()) {
        return Err(Error::input(format!(
            "the Jastrow factor `{factor}` has no end, and a periodic cell has one"
        ))
        .hint(
            "its kink between images would be missing from the energy: take `jastrow::rpa` or \
                 `jastrow::polynomial`",
        ));
    }
    let mut psi = match determinants {
        None => SlaterJastrow::new(orbitals, up, down)?,
        Some(list) => {
            if let Some((c, ..)) = list.iter().find(|(c, ..)| !c.is_finite()) {
                return Err(
                    Error::input(format!("a determinant with coefficient {c}")).hint("it is a finite number")
                );
            }
            if list.iter().all(|(c, ..)| *c == C64::default()) {
                return Err(Error::input("determinants of which none has a coefficient but 0")
                    .hint("a wave function that is zero everywhere has no walkers"));
            }
            let product = |(c, up, down): (C64, Vec<usize>, Vec<usize>)| {
                if S::from_c64(c).to_c64() != c {
                    return Err(Error::input("a complex coefficient with real orbitals")
                        .hint("the coefficients of real determinants are real"));
                }
                Ok(DeterminantProduct { coefficient: S::from_c64(c), up, down })
            };
            SlaterJastrow::with_products(orbitals, list.into_iter().map(product).collect::<Result<_>>()?)?
        }
    };
    if let Some(decisions) = decisions {
        psi = psi.with_decisions(decisions)?;
    }
    if let Some(delay) = delay {
        psi = psi.with_delay(delay);
    }
    Ok(Arc::new(psi.with_jastrow(&factors.0)?))
}

/// The orbitals of a BlockVector or Matrix, row-major, with the number of sites and of columns.
fn columns(value: &Dynamic) -> Result<(Vec<C64>, usize, usize)> {
    if let Some(vector) = value.read_lock::<Vector>() {
        let (rows, cols) = (vector.block.rows().global, vector.block.columns());
        return Ok((vector.device.download(&vector.block)?, rows, cols));
    }
    if let Some(matrix) = value.read_lock::<Matrix>() {
        return Ok((matrix.data().to_complex(), matrix.rows(), matrix.cols()));
    }
    Err(Error::input(format!("orbitals on a lattice are a BlockVector or a Matrix, not {}", type_of(value)))
        .hint("like `davidson(h, #{ count: 4 }).vectors`"))
}

/// A symmetric matrix over the sites, or nothing.
fn site_matrix(o: &Options, key: &str) -> Result<Vec<f64>> {
    o.maybe::<Matrix>(key).map_or(Ok(Vec::new()), |matrix| Ok(matrix.data().as_real(key)?.to_vec()))
}

fn finished<S: Amplitude>(state: LatticeState<S>, o: &Options) -> Result<Arc<LatticeState<S>>> {
    let state = match o.maybe_float("gutzwiller")? {
        Some(g) => state.with_gutzwiller(g)?,
        None => state,
    };
    Ok(Arc::new(state.with_jastrow(site_matrix(o, "density_jastrow")?, site_matrix(o, "spin_jastrow")?)?))
}

fn real_if_possible(data: &[C64]) -> bool {
    let largest = data.iter().map(|z| z.norm()).fold(0.0, f64::max);
    data.iter().all(|z| z.im.abs() <= 1e-14 * largest)
}

#[export_module(root = "crate::script::native")]
mod wavefunction_functions {
    /// A Slater-Jastrow wave function: Slater determinants of orbitals for electrons with spin up and down, times
    /// Jastrow factors, which are set as its property `jastrow`.
    ///
    /// # Options
    /// - `up` (int >= 0, 0): electrons with spin up; they fill the lowest orbitals.
    /// - `down` (int >= 0, 0): electrons with spin down, likewise.
    /// - `determinants` (array): not with `up`, `down`; an array of
    ///   `[coefficient, [orbitals of spin up], [orbitals of spin down]]`.
    /// - `jastrow` (any): Jastrow factors, made by the functions of the module `jastrow`.
    /// - `decisions` (Orbitals): the same orbitals in single precision, for accepting moves; energies use the orbitals
    ///   in double precision.
    /// - `delay` (int >= 1, 1, or 16 for many electrons): the number of accepted moves whose updates of the inverse
    ///   matrix are made together.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(2, #{ dimension: 3 }), #{ up: 2, down: 1 });
    /// psi.jastrow = jastrow::pade(#{ b: 0.4 });
    /// assert(psi.electrons == 3, "two up, one down");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn slater_jastrow(orbitals: OrbitalSet, o: Options) -> Fallible<Psi> {
        let electrons = (o.count("up")?, o.count("down")?);
        let squares = (electrons.0 as u128).pow(2) + (electrons.1 as u128).pow(2);
        let both = format!("{} and {} electrons", electrons.0, electrons.1);
        memory::ensure(8 * squares, &format!("the Slater matrix of {both}"))?;
        let determinants = o.given("determinants").map(|v| products(&v)).transpose()?;
        let factors =
            o.given("jastrow").map(|v| ScriptJastrow::from_value(&v)).transpose()?.unwrap_or_default();
        let decisions = o.maybe::<OrbitalSet>("decisions");
        let delay = o.maybe_count("delay")?;
        Ok(match (orbitals.basis(), decisions.map(|d| d.basis())) {
            (OrbitalBasis::Real(b), None) => {
                slater(b, None, electrons, determinants, &factors, delay).map(Psi::Real)
            }
            (OrbitalBasis::Real(b), Some(OrbitalBasis::Real(d))) => {
                slater(b, Some(d), electrons, determinants, &factors, delay).map(Psi::Real)
            }
            (OrbitalBasis::Complex(b), None) => {
                slater(b, None, electrons, determinants, &factors, delay).map(Psi::Complex)
            }
            (OrbitalBasis::Complex(b), Some(OrbitalBasis::Complex(d))) => {
                slater(b, Some(d), electrons, determinants, &factors, delay).map(Psi::Complex)
            }
            _ => Err(Error::input("real and complex orbitals in one wave function")
                .hint("decisions and energies use the same orbitals, in two precisions")),
        }?)
    }

    /// Electrons on a lattice in the orbitals of a BlockVector or a Matrix (one row per site, one column per orbital).
    /// The Fermi sea is multiplied by a factor `gutzwiller` for every doubly occupied site and by Jastrow factors
    /// exp(sum_(i<j) v_ij n_i n_j + w_ij Sz_i Sz_j).
    ///
    /// # Options
    /// - `up` (int >= 0, 0): electrons with spin up; they fill the first orbitals.
    /// - `down` (int >= 0, 0): electrons with spin down, likewise.
    /// - `down_orbitals` (BlockVector or Matrix, the same): orbitals of the electrons with spin down.
    /// - `gutzwiller` (float, none): the factor g, a parameter of `vmc::optimise`; 0 forbids double occupation, as the
    ///   Heisenberg and t-J models require.
    /// - `density_jastrow` (Matrix, none): the symmetric matrix v over the sites.
    /// - `spin_jastrow` (Matrix, none): the symmetric matrix w over the sites.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(4).boundary("antiperiodic"), #{ hopping: -1.0 });
    /// let psi = lattice_slater(davidson(h, #{ count: 2 }).vectors, #{ up: 2, down: 2, gutzwiller: 0.5 });
    /// assert(psi.electrons == 4, "half filling");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn lattice_slater(orbitals: Dynamic, o: Options) -> Fallible<Psi> {
        let (up, down) = (o.count("up")?, o.count("down")?);
        let (first, sites, filled) = columns(&orbitals)?;
        let second = o.given("down_orbitals").map(|v| columns(&v)).transpose()?;
        let (other, other_sites, other_filled) = second.unwrap_or_else(|| (first.clone(), sites, filled));
        if other_sites != sites {
            return Err(Error::input(format!("orbitals on {sites} sites and on {other_sites}"))
                .hint("make both for one lattice")
                .into());
        }
        for (n, have, spin) in [(up, filled, "up"), (down, other_filled, "down")] {
            if n > have {
                return Err(Error::input(format!("{n} electrons of spin {spin} and {have} orbitals"))
                    .hint("find more orbitals, or take fewer electrons")
                    .into());
            }
        }
        let take = |data: &[C64], have: usize, n: usize| -> Vec<C64> {
            (0..sites).flat_map(|i| data[i * have..i * have + n].iter().copied()).collect()
        };
        let (ups, downs) = (take(&first, filled, up), take(&other, other_filled, down));
        if real_if_possible(&ups) && real_if_possible(&downs) {
            let plain = |x: Vec<C64>| x.into_iter().map(|z| z.re).collect();
            let sea = Reference::Sea { up: plain(ups), down: plain(downs) };
            Ok(Psi::LatticeReal(finished(LatticeState::new(sites, up, down, sea)?, &o)?))
        } else {
            let sea = Reference::Sea { up: ups, down: downs };
            Ok(Psi::LatticeComplex(finished(LatticeState::new(sites, up, down, sea)?, &o)?))
        }
    }

    /// Electrons on a lattice in singlet pairs sum_ij f(i, j) c^+_i,up c^+_j,down: the BCS state with a fixed number of
    /// electrons. f is a symmetric Matrix over the sites.
    ///
    /// # Options
    /// - `pairs` (int >= 1, required): how many pairs.
    /// - `gutzwiller`, `density_jastrow`, `spin_jastrow`: as for `lattice_slater`.
    ///
    /// # Example
    /// ```rhai
    /// let psi = vmc::lattice_pairs(matrix([[1.0, 0.5], [0.5, 1.0]]), #{ pairs: 1, gutzwiller: 0.3 });
    /// assert(psi.electrons == 2, "one pair");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn lattice_pairs(f: Matrix, o: Options) -> Fallible<Psi> {
        let n = f.rows();
        if !f.is_square() {
            return Err(Error::input(format!("a pairing function of shape {}", f.shape()))
                .hint("it has a row and a column for every site")
                .into());
        }
        let data = f.data().to_complex();
        let largest = data.iter().map(|z| z.norm()).fold(0.0, f64::max);
        let strays = |k: &usize| (data[*k] - data[k % n * n + k / n]).norm() > 1e-10 * largest;
        if let Some(k) = (0..n * n).find(strays) {
            let (i, j) = (k / n, k % n);
            return Err(Error::input(format!(
                "a pairing function that is not symmetric: f({i}, {j}) is not f({j}, {i})"
            ))
            .hint("singlets need f(i, j) = f(j, i); take 0.5 * (f + f.transpose())")
            .into());
        }
        let pairs = o.count("pairs")?;
        match f.data() {
            Series::Real(data) => {
                let reference = Reference::Pairs { f: data.clone() };
                Ok(Psi::LatticeReal(finished(LatticeState::new(n, pairs, pairs, reference)?, &o)?))
            }
            Series::Complex(data) => {
                let reference = Reference::Pairs { f: data.clone() };
                Ok(Psi::LatticeComplex(finished(LatticeState::new(n, pairs, pairs, reference)?, &o)?))
            }
        }
    }

    /// The number of electrons.
    #[rhai_fn(global, get = "electrons", pure)]
    pub fn electrons_of(psi: &mut Psi) -> INT {
        let (up, down) = psi.electrons();
        (up + down) as INT
    }

    /// The Jastrow factors, with the parameters found for these electrons.
    #[rhai_fn(global, get = "jastrow", pure, return_raw)]
    pub fn jastrow_of(psi: &mut Psi) -> Fallible<ScriptJastrow> {
        match psi {
            Psi::Real(psi) => Ok(ScriptJastrow(psi.jastrow().factors().to_vec())),
            Psi::Complex(psi) => Ok(ScriptJastrow(psi.jastrow().factors().to_vec())),
            _ => Err(no_factors().into()),
        }
    }

    #[rhai_fn(global, set = "jastrow", return_raw)]
    pub fn set_jastrow(psi: &mut Psi, factors: ScriptJastrow) -> Fallible<()> {
        *psi = match psi {
            Psi::Real(psi) => Psi::Real(Arc::new(psi.with_jastrow(&factors.0)?)),
            Psi::Complex(psi) => Psi::Complex(Arc::new(psi.with_jastrow(&factors.0)?)),
            _ => return Err(no_factors().into()),
        };
        Ok(())
    }

    /// The parameters that may be optimised, by name and value: those of the Jastrow factors, or the Gutzwiller factor.
    /// If several factors have a parameter of the same name, the name of the factor is put in front, as in `pade_b` and
    /// `nuclear_b`. Factors of one kind are numbered, as in `nuclear_1_b`.
    ///
    /// # Example
    /// ```rhai
    /// let trap = orbitals::oscillator(1, #{ dimension: 3 });
    /// let psi = slater_jastrow(trap, #{ up: 1, down: 1, jastrow: jastrow::pade(#{ b: 0.4 }) });
    /// assert(psi.parameters.b == 0.4, "the Pade factor's b");
    /// psi.jastrow = jastrow::pade(#{ b: 0.4 }) * jastrow::nuclear(vmc::nuclei([[2.0, [0.0, 0.0, 0.0]]]), #{ b: 3.0 });
    /// assert(psi.parameters.pade_b == 0.4 && psi.parameters.nuclear_b == 3.0, "one each");
    /// ```
    #[rhai_fn(global, get = "parameters", pure)]
    pub fn parameters(psi: &mut Psi) -> Map {
        psi.parameters().into_iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    /// The values of the parameters, in a fixed order.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(2), #{ up: 2, jastrow: jastrow::pade(#{ b: 0.4 }) });
    /// assert(psi.parameter_values[0] == 0.4, "b");
    /// ```
    #[rhai_fn(global, get = "parameter_values", pure)]
    pub fn parameter_values(psi: &mut Psi) -> Series {
        Series::Real(psi.parameters().into_iter().map(|p| p.1).collect())
    }

    /// The same wave function with other values of its parameters, in the order of `parameter_values`.
    ///
    /// # Example
    /// ```rhai
    /// let trap = orbitals::oscillator(1, #{ dimension: 3 });
    /// let psi = slater_jastrow(trap, #{ up: 1, down: 1, jastrow: jastrow::pade(#{ b: 0.4 }) });
    /// assert(psi.with_parameters([0.5]).parameters.b == 0.5, "changed");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn with_parameters(psi: &mut Psi, values: Dynamic) -> Fallible<Psi> {
        Ok(psi.with_parameters(to_series(&values)?.as_real("parameters")?)?)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(psi: &mut Psi) -> String {
        format!("WaveFunction of {}", psi.describe())
    }
}

fn no_factors() -> Error {
    Error::input("a lattice wave function has no Jastrow factors of distances")
        .hint("give `gutzwiller`, `density_jastrow` or `spin_jastrow` to `lattice_slater`")
}
