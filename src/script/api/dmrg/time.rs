//! What evolves states: exponentials of superblocks and other operators,
//! Schmidt decompositions of their vectors, gates.

use rhai::plugin::*;
use rhai::{Array, Dynamic, FLOAT, INT, Map};

use super::algebra::{complex, cut_of};
use super::blocks::side_of;
use super::density::{AnyDensity, unmoved};
use super::held::ScriptDmrgState;
use super::{Either, no_superblock, superblock_of};
use crate::error::{Error, Result};
use crate::manybody::dmrg::{DensityMatrix, MatrixProductState, Trotter, other_states as other_states_of};
use crate::manybody::{OpSum, OperatorTerm, Sites};
use crate::method::{Moments, Window};
use crate::number::Series;
use crate::operator::Operator;
use crate::script::api::chebyshev::{SharedMoments, as_complex};
use crate::script::api::manybody::{sector_of, state_name};
use crate::script::api::values::numbered;
use crate::script::api::vector::Vector;
use crate::script::rooms::{INTERNAL, Rooms};
use crate::script::{Fallible, Options, session};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("dmrg", exported_module!(time_functions));
    rooms.room(INTERNAL, exported_module!(internal_functions));
}

fn schmidt_of(both: &Operator, v: &Vector, side: &str) -> Result<AnyDensity> {
    let side = side_of(side)?;
    let one = |n: usize| match n {
        1 => Ok(()),
        _ => Err(Error::input(format!("a Schmidt decomposition of {n} vectors together"))
            .hint("`v.column(0)` is one of them; `density_matrix` takes several")),
    };
    Ok(match superblock_of(both).ok_or_else(|| no_superblock("dmrg::schmidt"))? {
        Either::Real(b) => {
            let x = b.columns(both.device(), &v.block)?;
            one(x.len())?;
            Either::Real(DensityMatrix::of_state(b, &x[0], side)?.into())
        }
        Either::Complex(b) => {
            let x = b.columns(both.device(), &v.block)?;
            one(x.len())?;
            Either::Complex(DensityMatrix::of_state(b, &x[0], side)?.into())
        }
    })
}

#[export_module(root = "crate::script::native")]
mod time_functions {
    /// The density matrix of one half of a superblock ("left" or "right") for one vector, from its singular values.
    /// Weights are accurate to 1e-30 of the total; those of `density_matrix` to 1e-16.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0 });
    /// let both = superblock(dmrg::left_edge(m).extend().grow(), dmrg::right_edge(m).extend().grow());
    /// let v = davidson(both).vectors;
    /// assert_close(dmrg::schmidt(both, v, "left").entropy, density_matrix(both, v, "left").entropy, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn schmidt(both: Operator, v: Vector, side: &str) -> Fallible<AnyDensity> {
        Ok(schmidt_of(&both, &v, side)?)
    }

    /// Infinite temperature as a state (Verstraete, Garcia-Ripoll, Cirac 2004): all product states of a sector with
    /// equal weights. Each site has a copy beside it on which no operator acts. Operators keep their names and sites,
    /// so `expect`, `correlations` and `dmrg::evolve` take the same sums. `log_states` is the logarithm of the number
    /// of states. Evolution over the imaginary time `-I * beta / 2` gives the inverse temperature `beta`
    /// (`dmrg::thermal`).
    ///
    /// # Example
    /// ```rhai
    /// let hot = dmrg::purified(sites("S=1/2", 4), #{ Sz: 1 });
    /// assert_close(hot.about.log_states, log(4.0), 1e-12);
    /// assert_close(hot.expect("Sz")[2], 0.25, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn purified(chain: Sites, sector: Map) -> Fallible<ScriptDmrgState> {
        hot(&chain, &sector, None)
    }

    /// As `dmrg::purified(chain, sector)`, for a Hamiltonian that does not conserve all numbers of its sites. The
    /// numbers that it conserves are equal on the sites and on their copies.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let hot = dmrg::purified(chain, #{}, models::ising(chain));
    /// assert_close(hot.about.log_states, 4.0 * log(2.0), 1e-12);
    /// ```
    #[rhai_fn(name = "purified", return_raw)]
    pub fn purified_of(chain: Sites, sector: Map, h: OpSum) -> Fallible<ScriptDmrgState> {
        hot(&chain, &sector, Some(&h))
    }

    /// As `dmrg::white_transformation(both, v, next, basis, side)`, where the `side` block of `next` is that of `both`
    /// grown by a site, without a change of basis.
    #[rhai_fn(name = "white_transformation", return_raw)]
    pub fn white_transformation_unmoved(
        both: Operator,
        v: Vector,
        next: Operator,
        side: &str,
    ) -> Fallible<Vector> {
        Ok(unmoved(&both, &v.block, &next, side)?)
    }
}

fn hot(chain: &Sites, sector: &Map, of: Option<&OpSum>) -> Fallible<ScriptDmrgState> {
    let task = session()?.task(true);
    let (state, log_states) =
        MatrixProductState::infinite_temperature(chain, &sector_of(sector)?, of, &task)?;
    let about = Map::from([("log_states".into(), log_states.into())]);
    Ok(ScriptDmrgState { state: Either::Real(state.into()), about: about.into() })
}

#[export_module(root = "crate::script::native")]
mod internal_functions {
    /// The largest distance between sites in a term of a sum.
    pub fn reach(sum: OpSum) -> INT {
        let of = |term: &OperatorTerm| {
            let sites = || term.factors.iter().map(|f| f.1);
            sites().max().unwrap_or(0) - sites().min().unwrap_or(0)
        };
        if sum.tails().is_empty() { sum.terms().iter().map(of).max().unwrap_or(0) as INT } else { INT::MAX }
    }

    /// The distance between two sums on `sites` sites: the sum of the moduli of the differences of their coefficients,
    /// over all products.
    pub fn apart(a: OpSum, b: OpSum, sites: INT) -> FLOAT {
        a.apart(&b, usize::try_from(sites).unwrap_or(0))
    }

    /// The other states that sites `i` and `j` of a product state can have at the same conserved numbers of the sector:
    /// pairs of names.
    #[rhai_fn(return_raw)]
    pub fn other_states(sites: Sites, names: Array, i: INT, j: INT, sector: Map) -> Fallible<Array> {
        let (i, j) = (numbered(i, "site")?, numbered(j, "site")?);
        let state = |i: usize| sites.site(i)?.state(&state_name(names.get(i).unwrap_or(&Dynamic::UNIT))?);
        let found = other_states_of(&sites, &sector_of(&sector)?, (i, j), (state(i)?, state(j)?))?;
        let (of_i, of_j) = (sites.site(i)?.states(), sites.site(j)?.states());
        let pair = |(a, b): (usize, usize)| {
            Dynamic::from_array(vec![of_i[a].clone().into(), of_j[b].clone().into()])
        };
        Ok(found.into_iter().map(pair).collect())
    }

    /// Moments of one vector by their numbers, as of a recurrence.
    #[rhai_fn(return_raw)]
    pub fn moments_of(window: Window, numbers: Series) -> Fallible<SharedMoments> {
        let numbers = numbers.as_real("moments")?.to_vec();
        Ok(Moments::new(window, 1, vec![numbers])?.into())
    }

    /// A state after gates: a map of `state`, `discarded` and `log_norm`.
    ///
    /// # Options
    /// - `order` (int >= 1, 2): 2 or 4.
    /// - `states` (int), `cutoff` (0.0), `progress` (true): as for `dmrg::apply`.
    #[rhai_fn(return_raw)]
    pub fn trotter(psi: ScriptDmrgState, sum: OpSum, z: Dynamic, steps: INT, o: Options) -> Fallible<Map> {
        let run = || -> Result<Map> {
            let wrong = || {
                Error::input("gates take a number and a number of steps")
                    .hint("the number may be complex, and there is one step at least")
            };
            let z = as_complex(&z).ok_or_else(wrong)?;
            let steps = usize::try_from(steps).ok().filter(|n| *n > 0).ok_or_else(wrong)?;
            let (cut, order, task) = (cut_of(&o)?, o.count("order")?, o.task()?);
            let sum = psi.own(sum)?;
            let real = match &psi.state {
                Either::Real(s) if z.im == 0.0 && !s.makes_complex(&sum)? => Some(s),
                _ => None,
            };
            let (state, discarded, log_norm) = match real {
                Some(s) => {
                    let Trotter { state, discarded, log_norm } =
                        s.trotter(&sum, z, steps, order, &cut, &task)?;
                    (Either::Real(state.into()), discarded, log_norm)
                }
                None => {
                    let Trotter { state, discarded, log_norm } =
                        complex(&psi.state).trotter(&sum, z, steps, order, &cut, &task)?;
                    (Either::Complex(state.into()), discarded, log_norm)
                }
            };
            let mut map = Map::new();
            map.insert("state".into(), Dynamic::from(psi.beside(state)));
            map.insert("discarded".into(), discarded.into());
            map.insert("log_norm".into(), log_norm.into());
            Ok(map)
        };
        Ok(run()?)
    }
}
