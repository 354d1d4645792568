//! States as vectors: sums, products with operator sums, elements, norms; and what is drawn from them.

use rhai::plugin::*;
use rhai::{Array, Dynamic, FLOAT, INT};

use super::held::{ScriptDmrgState, by_bond, number};
use super::{AnyState, Either, either};
use crate::error::{Error, Result};
use crate::manybody::dmrg::{MatrixProductState, Truncation};
use crate::manybody::{OpSum, Sites};
use crate::number::philox::{self, Stream};
use crate::number::{C64, Matrix, Series, Table};
use crate::script::api::chebyshev::as_complex;
use crate::script::api::values::type_of;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("dmrg", exported_module!(algebra_functions));
    macro_rules! times {
        ($number:ty, $complex:expr) => {
            rooms.register_fn("*", |psi: ScriptDmrgState, x: $number| -> Fallible<ScriptDmrgState> {
                Ok(psi.times($complex(x))?)
            });
            rooms.register_fn("*", |x: $number, psi: ScriptDmrgState| -> Fallible<ScriptDmrgState> {
                Ok(psi.times($complex(x))?)
            });
        };
    }
    times!(INT, |x: INT| C64::from(x as FLOAT));
    times!(FLOAT, C64::from);
    times!(C64, |x: C64| x);
}

/// How bonds are cut, by the options `states` and `cutoff`.
pub(super) fn cut_of(o: &Options) -> Result<Truncation> {
    Ok(Truncation { states: o.maybe_count("states")?, cutoff: o.float("cutoff")?, ..Truncation::default() })
}

/// The same state in complex numbers.
pub(super) fn complex(state: &AnyState) -> MatrixProductState<C64> {
    match state {
        Either::Real(s) => s.to_complex(),
        Either::Complex(s) => (**s).clone(),
    }
}

impl ScriptDmrgState {
    fn times(&self, z: C64) -> Result<ScriptDmrgState> {
        let state = match &self.state {
            Either::Real(s) if z.im == 0.0 => Either::Real(s.scaled(z)?.into()),
            any => Either::Complex(complex(any).scaled(z)?.into()),
        };
        Ok(self.beside(state))
    }

    /// An operator sum times the state.
    fn applied(&self, sum: OpSum, o: &Options) -> Result<ScriptDmrgState> {
        let (cut, task) = (cut_of(o)?, o.task()?);
        let sum = self.own(sum)?;
        let makes_complex = either!(&self.state, s => s.makes_complex(&sum))?;
        let (state, discarded) = match &self.state {
            Either::Real(s) if !makes_complex => {
                let (state, discarded) = s.applied(&sum, &cut, &task)?;
                (Either::Real(state.into()), discarded)
            }
            any => {
                let (state, discarded) = complex(any).applied(&sum, &cut, &task)?;
                (Either::Complex(state.into()), discarded)
            }
        };
        Ok(self.beside(state).knowing("discarded", discarded.into()))
    }
}

/// The matrices of all sites, in the order of the chain: one for all, or an array of one for each site.
fn matrices_of(held: &ScriptDmrgState, given: &Dynamic) -> Result<Vec<Vec<C64>>> {
    let n = either!(&held.state, s => s.sites().count());
    let one = |x: &Dynamic| -> Result<Vec<C64>> {
        let m = x.clone().try_cast::<Matrix>().ok_or_else(|| {
            Error::input(format!("{} where a Matrix is needed", type_of(x)))
                .hint("a unitary Matrix for all sites, or an array of one for each")
        })?;
        let (rows, columns) = (m.rows(), m.cols());
        if rows != columns {
            return Err(Error::input(format!("a matrix of {rows} x {columns} on a site"))
                .hint("a unitary matrix has as many rows as columns"));
        }
        Ok(match m.data() {
            Series::Real(x) => x.iter().map(|x| C64::from(*x)).collect(),
            Series::Complex(z) => z.to_vec(),
        })
    };
    let Some(list) = given.read_lock::<Array>() else { return Ok(vec![one(given)?; n]) };
    let all = list.iter().map(one).collect::<Result<Vec<_>>>()?;
    match held.order()? {
        Some(order) if all.len() == n => Ok(order.iter().map(|&site| all[site].clone()).collect()),
        _ => Ok(all),
    }
}

/// The coefficients and states of a sum.
fn parts_of(list: &Array) -> Result<Vec<(C64, ScriptDmrgState)>> {
    let wrong = || {
        Error::input("a sum of states is an array of pairs, each a number and a DmrgState")
            .hint("like `dmrg::combine([[2.0, a], [-1.0, b]])`")
    };
    let one = |pair: &Dynamic| -> Result<(C64, ScriptDmrgState)> {
        let pair = pair.clone().try_cast::<Array>().ok_or_else(wrong)?;
        match &pair[..] {
            [z, state] => {
                let z = as_complex(z).ok_or_else(wrong)?;
                if !(z.re.is_finite() && z.im.is_finite()) {
                    return Err(
                        Error::input(format!("the coefficient {z} of a state")).hint("it is a finite number")
                    );
                }
                Ok((z, state.clone().try_cast::<ScriptDmrgState>().ok_or_else(wrong)?))
            }
            _ => Err(wrong()),
        }
    };
    list.iter().map(one).collect()
}

fn combined(list: &Array, o: &Options) -> Result<ScriptDmrgState> {
    let (cut, task) = (cut_of(o)?, o.task()?);
    let parts = parts_of(list)?;
    for (_, other) in &parts {
        parts[0].1.must_stand_as(other)?;
    }
    let real = parts.iter().all(|(z, s)| z.im == 0.0 && matches!(s.state, Either::Real(_)));
    let (state, discarded) = if real {
        let all: Vec<(C64, &MatrixProductState<f64>)> = parts
            .iter()
            .filter_map(|(z, s)| if let Either::Real(s) = &s.state { Some((*z, &**s)) } else { None })
            .collect();
        let (state, discarded) = MatrixProductState::combined(&all, &cut, &task)?;
        (Either::Real(state.into()), discarded)
    } else {
        let wide: Vec<(C64, MatrixProductState<C64>)> =
            parts.iter().map(|(z, s)| (*z, complex(&s.state))).collect();
        let all: Vec<(C64, &MatrixProductState<C64>)> = wide.iter().map(|(z, s)| (*z, s)).collect();
        let (state, discarded) = MatrixProductState::combined(&all, &cut, &task)?;
        (Either::Complex(state.into()), discarded)
    };
    Ok(parts[0].1.beside(state).knowing("discarded", discarded.into()))
}

/// Site numbers below `n`, one at least, each larger than the one before.
pub(super) fn ascending(sites: &[Dynamic], n: usize) -> Option<Vec<usize>> {
    let number = |x: &Dynamic| x.as_int().ok().and_then(|i| usize::try_from(i).ok()).filter(|i| *i < n);
    let all: Vec<usize> = sites.iter().map(number).collect::<Option<_>>()?;
    (!all.is_empty() && all.windows(2).all(|w| w[0] < w[1])).then_some(all)
}

/// Site numbers of an array, ascending.
fn sites_of(sites: &Array, n: usize) -> Result<Vec<usize>> {
    ascending(sites, n).ok_or_else(|| {
        Error::input("sites are given as an array of their numbers, ascending")
            .hint(format!("sites are numbered from 0 to {}", n - 1))
    })
}

fn configurations(held: &ScriptDmrgState, count: INT, o: &Options) -> Result<Array> {
    let count = usize::try_from(count)
        .map_err(|_| Error::input(format!("{count} configurations")).hint("none or more"))?;
    held.need_some()?;
    let order = held.order()?;
    let sites = either!(&held.state, s => s.sites().clone());
    let n = sites.count();
    let seed = o.seed()?;
    let first = match o.given("seed") {
        Some(_) => 0,
        None => session()?.draw((count * n) as u64),
    };
    let mut all = Array::new();
    for k in 0..count {
        crate::task::poll()?;
        let mut at = first.wrapping_add((k * n) as u64);
        let random = || {
            let w = philox::words(seed, Stream::Script as u32, at, 0);
            at = at.wrapping_add(1);
            philox::unit(w[0], w[1])
        };
        let drawn = either!(&held.state, s => s.sample(random))?;
        let mut names = vec![Dynamic::UNIT; n];
        for (place, state) in drawn.into_iter().enumerate() {
            let name = sites.site(place)?.states()[state].clone();
            names[order.as_ref().map_or(place, |order| order[place])] = name.into();
        }
        all.push(names.into());
    }
    Ok(all)
}

#[export_module(root = "crate::script::native")]
mod algebra_functions {
    /// A sum of operators times a state: a DmrgState with its own norm, sector and bonds, and the weight that was cut
    /// off as `discarded` (of all bonds together, relative to the norm squared). Terms may change the conserved
    /// numbers, as "S+" does, but all by the same amounts. Fermionic signs are included. A result of zero, like "S+" on
    /// spins that are all up, is the zero state. Its `norm` is 0. It can be added and overlapped, but it has no
    /// expectation values.
    ///
    /// # Options
    /// - `states` (int >= 1, as many as there are): largest number of states at a bond.
    /// - `cutoff` (0 <= float < 1, 1e-15): largest weight to discard at a bond, out of 1.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 3);
    /// let up = opsum();
    /// up.add(1.0, "S+", 1);
    /// let psi = product_state(chain, ["Up", "Dn", "Up"], #{ Sz: 0.5 });
    /// let all_up = dmrg::apply(up, psi);
    /// assert_close(all_up.sector.Sz, 1.5, 0.0);
    /// assert(dmrg::apply(up, all_up).norm == 0.0, "there is nothing above");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn apply(sum: OpSum, psi: ScriptDmrgState, o: Options) -> Fallible<ScriptDmrgState> {
        Ok(psi.applied(sum, &o)?)
    }

    /// A linear combination of states of one sector, from an array of coefficients and states. `discarded` is the
    /// weight that was cut off, as for `dmrg::apply`.
    ///
    /// # Options
    /// - those of `dmrg::apply`.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 2);
    /// let a = product_state(chain, ["Up", "Dn"], #{ Sz: 0 });
    /// let b = product_state(chain, ["Dn", "Up"], #{ Sz: 0 });
    /// let singlet = dmrg::combine([[1.0, a], [-1.0, b]]).normalised;
    /// assert_close(singlet.expect(models::heisenberg(chain)), -0.75, 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn combine(list: Array, o: Options) -> Fallible<ScriptDmrgState> {
        Ok(combined(&list, &o)?)
    }

    /// Applies a unitary matrix on every site of a state: one Matrix for all sites, or an array of one per site. On
    /// each site `new[a] = sum_b u[a, b] old[b]`; fermionic states get no signs. A matrix must not mix states of
    /// different conserved numbers.
    ///
    /// # Example
    /// ```rhai
    /// let up = product_state(sites("S=1/2", 3), ["Up", "Up", "Up"], #{});
    /// let u = matrix([[1.0, 1.0], [1.0, -1.0]]) * sqrt(0.5);
    /// assert_close(dmrg::turned(up, u).expect("Sx")[1], 0.5, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn turned(psi: ScriptDmrgState, u: Dynamic) -> Fallible<ScriptDmrgState> {
        let run = || -> Result<ScriptDmrgState> {
            let all = matrices_of(&psi, &u)?;
            let state = match &psi.state {
                Either::Real(s) if all.iter().flatten().all(|z| z.im == 0.0) => {
                    Either::Real(s.turned(&all)?.into())
                }
                any => Either::Complex(complex(any).turned(&all)?.into()),
            };
            Ok(psi.beside(state))
        };
        Ok(run()?)
    }

    /// The element `<a|O|b>` of a sum of operators between two states of one chain, norms included:
    /// `a.element(sum, b)`.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 2);
    /// let a = product_state(chain, ["Up", "Dn"], #{ Sz: 0 });
    /// let b = product_state(chain, ["Dn", "Up"], #{ Sz: 0 });
    /// assert_close(a.element(models::heisenberg(chain), b), 0.5, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn element(held: &mut ScriptDmrgState, sum: OpSum, other: ScriptDmrgState) -> Fallible<Dynamic> {
        held.must_stand_as(&other)?;
        let sum = held.own(sum)?;
        let makes_complex = either!(&other.state, s => s.makes_complex(&sum))?;
        let value = match (&held.state, &other.state) {
            (Either::Real(a), Either::Real(b)) if !makes_complex => a.element(&sum, b),
            (a, b) => complex(a).element(&sum, &complex(b)),
        };
        Ok(value.map(number)?)
    }

    /// The norm: 1 for states from sweeps and product states, in general not 1 after `dmrg::apply` and `dmrg::combine`.
    /// `overlap` and `element` include it; expectation values are those of the normalised state.
    ///
    /// # Example
    /// ```rhai
    /// let psi = product_state(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// assert_close((-2.0 * psi).norm, 2.0, 1e-15);
    /// ```
    #[rhai_fn(global, get = "norm", pure)]
    pub fn norm(held: &mut ScriptDmrgState) -> FLOAT {
        either!(&held.state, s => s.norm())
    }

    /// The normalised state.
    ///
    /// # Example
    /// ```rhai
    /// let psi = product_state(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// assert_close((3.0 * psi).normalised.norm, 1.0, 1e-15);
    /// ```
    #[rhai_fn(global, get = "normalised", pure, return_raw)]
    pub fn normalised(held: &mut ScriptDmrgState) -> Fallible<ScriptDmrgState> {
        held.need_some()?;
        let state = match &held.state {
            Either::Real(s) => Either::Real(s.with_norm(1.0).into()),
            Either::Complex(s) => Either::Complex(s.with_norm(1.0).into()),
        };
        Ok(ScriptDmrgState { state, ..held.clone() })
    }

    /// The sites of the state, in the order of its chain.
    #[rhai_fn(global, get = "sites", pure)]
    pub fn state_sites(held: &mut ScriptDmrgState) -> Sites {
        either!(&held.state, s => s.sites().clone())
    }

    /// The entropy of order `alpha` of each bond, `ln(sum w^alpha) / (1 - alpha)` of its weights: a Table of `bond` and
    /// `entropy`. Order 1 is the von Neumann entropy, as in `state.entropy`. Order 0 counts the weights above rounding.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 2);
    /// let gs = dmrg::finite(models::heisenberg(chain), chain, #{ sector: #{ Sz: 0 }, progress: false });
    /// assert_close(gs.renyi(2.0).entropy[0], log(2.0), 1e-9);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn renyi(held: &mut ScriptDmrgState, alpha: Dynamic) -> Fallible<Table> {
        held.need_some()?;
        let alpha = crate::script::api::values::real(&alpha, "the order of an entropy")?;
        let entropies = either!(&held.state, s => s.renyi(alpha))?;
        Ok(by_bond(entropies)?)
    }

    /// The weights of the Schmidt decomposition at a bond, by the conserved numbers of the part on its left: an array
    /// of maps with `sector` and `weights`, descending. For a state of total spin each weight belongs to a multiplet
    /// and is the sum over its 2 S + 1 states; `spectrum` has the weights of the single states.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 2);
    /// let gs = dmrg::finite(models::heisenberg(chain), chain, #{ sector: #{ Sz: 0 }, progress: false });
    /// let up = gs.spectrum_by_sector(0)[1];
    /// assert(up.sector.Sz == 0.5, "ascending");
    /// assert_close(up.weights[0], 0.5, 1e-9);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn spectrum_by_sector(held: &mut ScriptDmrgState, bond: INT) -> Fallible<Array> {
        held.need_some()?;
        let wrong = || Error::input(format!("no bond {bond}")).hint("bond 0 lies between sites 0 and 1");
        let bond = usize::try_from(bond).map_err(|_| wrong())?;
        let all = either!(&held.state, s => s.spectrum_by_sector(bond))?;
        Ok(crate::script::api::manybody::by_sector(all))
    }

    /// The reduced density matrix of a few sites, in the product basis of their states; the index of the last site runs
    /// fastest. For fermions it includes the signs of the sites between them, so expectation values of all operators on
    /// these sites are correct.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let gs = dmrg::finite(models::heisenberg(chain), chain, #{ sector: #{ Sz: 0 }, progress: false });
    /// let rho = gs.reduced([0, 3]);
    /// assert_close(rho.trace(), 1.0, 1e-12);
    /// assert_close(rho.at(1, 1) - rho.at(0, 0), -2.0 * gs.correlations("Sz", "Sz").at(0, 3), 1e-9);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn reduced(held: &mut ScriptDmrgState, sites: Array) -> Fallible<Matrix> {
        held.need_some()?;
        let task = session()?.task(true);
        let n = either!(&held.state, s => s.sites().count());
        let sites = sites_of(&sites, n)?;
        let (places, which) = held.places(&sites)?;
        if which.windows(2).any(|w| w[0] > w[1]) {
            held.need_natural()?;
        }
        let values = either!(&held.state, s => s.reduced(&places, &task))?;
        let dim = values.len().isqrt();
        let series = if values.iter().all(|z| z.im.abs() <= 1e-15) {
            Series::Real(values.iter().map(|z| z.re).collect())
        } else {
            Series::Complex(values)
        };
        Ok(Matrix::new(dim, dim, series)?)
    }

    /// Configurations drawn with their probabilities in the state. Each is an array with the names of the states of all
    /// sites.
    ///
    /// # Options
    /// - `seed` (int or string, the session's): seed of the random numbers; without it each call continues the
    ///   session's sequence.
    ///
    /// # Example
    /// ```rhai
    /// let psi = product_state(sites("S=1/2", 3), ["Up", "Dn", "Up"], #{ Sz: 0.5 });
    /// assert(psi.sample(2) == [["Up", "Dn", "Up"], ["Up", "Dn", "Up"]], "there is but one");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn sample(held: &mut ScriptDmrgState, count: INT, o: Options) -> Fallible<Array> {
        Ok(configurations(held, count, &o)?)
    }
}
