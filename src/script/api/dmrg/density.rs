//! Density matrices, truncated bases, and states carried from one superblock to the next.

use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, FLOAT, INT};

use super::algebra::cut_of;
use super::blocks::{AnyBasis, side_of};
use super::held::ScriptDmrgState;
use super::{AnyState, Either, either, either_map, no_superblock, superblock_of};
use crate::backend::BlockVector;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::dmrg::{
    ChainSide, DensityMatrix, MatrixProductState, Mixing, Superblock, TruncatedBasis, Truncation, projected,
    transformed, uploaded,
};
use crate::number::{C64, Series};
use crate::operator::Operator;
use crate::script::api::values::to_series;
use crate::script::api::vector::Vector;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

/// A density matrix, as scripts hold it.
pub(super) type AnyDensity = Either<Arc<DensityMatrix<f64>>, Arc<DensityMatrix<C64>>>;

/// Registers the types and functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<AnyDensity>("DensityMatrix");
    rooms.register_type_with_name::<AnyBasis>("BlockBasis");
    rooms.room("dmrg", exported_module!(density_functions));
}

/// Numbers given as a Series or an array.
fn reals(value: Option<Dynamic>, what: &str) -> Result<Vec<f64>> {
    match value {
        None => Ok(Vec::new()),
        Some(value) => Ok(to_series(&value)?.as_real(what)?.to_vec()),
    }
}

/// Superblocks and the states of each, all real or all complex.
fn density_of(all: &[(Operator, Vector)], side: ChainSide, mixing: &Mixing) -> Result<AnyDensity> {
    fn make<'a, T: Element>(
        all: &'a [(Operator, Vector)],
        own: impl Fn(&'a Operator) -> Option<&'a Superblock<T>>,
        side: ChainSide,
        mixing: &Mixing,
    ) -> Result<Arc<DensityMatrix<T>>> {
        let mixed = || {
            Error::input("superblocks that are not all real, or all complex")
                .hint("make all with the MPO of one Hamiltonian")
        };
        let mut parts = Vec::new();
        for (h, v) in all {
            parts.push((own(h).ok_or_else(mixed)?, &*v.block));
        }
        DensityMatrix::of_vectors(&parts, side, mixing).map(Arc::new)
    }
    let first = all.first().ok_or_else(|| Error::input("a density matrix of no superblock"))?;
    Ok(match superblock_of(&first.0).ok_or_else(|| no_superblock("density_matrix"))? {
        Either::Real(_) => Either::Real(make(
            all,
            |h| if let Some(Either::Real(b)) = superblock_of(h) { Some(b) } else { None },
            side,
            mixing,
        )?),
        Either::Complex(_) => Either::Complex(make(
            all,
            |h| if let Some(Either::Complex(b)) = superblock_of(h) { Some(b) } else { None },
            side,
            mixing,
        )?),
    })
}

fn mixing_of(o: &Options) -> Result<Mixing> {
    Ok(Mixing { weights: reals(o.given("weights"), "weights")?, noise: o.float("noise")? })
}

/// Host columns as a block vector of a superblock.
fn to_vector<T: Element>(h: &Operator, columns: &[Vec<T>]) -> Result<Vector> {
    let block = uploaded(h.device(), (h.dtype(), h.dim()), columns)?;
    Ok(Vector::new(h.device(), block))
}

fn carried(old: &Operator, v: &BlockVector, new: &Operator, basis: &AnyBasis, side: &str) -> Result<Vector> {
    let side = side_of(side)?;
    let both = || no_superblock("white_transformation");
    let block = match (superblock_of(old).ok_or_else(both)?, superblock_of(new).ok_or_else(both)?, basis) {
        (Either::Real(a), Either::Real(b), Either::Real(basis)) => transformed(a, v, b, basis, side)?,
        (Either::Complex(a), Either::Complex(b), Either::Complex(basis)) => {
            transformed(a, v, b, basis, side)?
        }
        _ => {
            return Err(Error::input("superblocks and basis are not all real, or all complex")
                .hint("make all with the MPO of one Hamiltonian"));
        }
    };
    Ok(Vector::new(new.device(), block))
}

/// As [`carried`], the block on `side` as it is.
pub(super) fn unmoved(old: &Operator, v: &BlockVector, new: &Operator, side: &str) -> Result<Vector> {
    let both = superblock_of(old).ok_or_else(|| no_superblock("white_transformation"))?;
    let at = side_of(side)?;
    let basis = match both {
        Either::Real(b) => Either::Real(TruncatedBasis::whole(b.half(at).space()).shared()),
        Either::Complex(b) => Either::Complex(TruncatedBasis::whole(b.half(at).space()).shared()),
    };
    carried(old, v, new, &basis, side)
}

/// A state in the basis of a superblock, complex if the superblock is.
fn in_basis(both: &Operator, state: &AnyState) -> Result<Vector> {
    match (superblock_of(both).ok_or_else(|| no_superblock("project"))?, state) {
        (Either::Real(b), Either::Real(state)) => to_vector(both, &[projected(b, state)?]),
        (Either::Complex(b), Either::Complex(state)) => to_vector(both, &[projected(b, state)?]),
        (Either::Complex(b), Either::Real(state)) => to_vector(both, &[projected(b, &state.to_complex())?]),
        (Either::Real(_), Either::Complex(_)) => {
            Err(Error::input("a complex state has no place in a real superblock")
                .hint("make the blocks of a complex automaton: `dmrg::mpo(h, chain, sector).to_complex()`"))
        }
    }
}

/// Several states in the basis of a superblock, orthonormal; none where nothing of them is left.
fn all_in_basis(both: &Operator, states: &Array) -> Result<Option<Vector>> {
    let mut columns: Vec<Vec<C64>> = Vec::new();
    for state in states {
        let held = state.clone().try_cast::<ScriptDmrgState>().ok_or_else(|| {
            Error::input("states to project are given as an array of DmrgStates")
                .hint("`orthogonal_to: [gs]`, with what `dmrg::finite` returned")
        })?;
        held.need_natural()?;
        let own = in_basis(both, &held.state)?;
        let mut x = both.device().download(&own.block)?;
        for _ in 0..2 {
            for known in &columns {
                let overlap: C64 = known.iter().zip(&x).map(|(a, b)| a.conj() * b).sum();
                x.iter_mut().zip(known).for_each(|(x, a)| *x -= overlap * a);
            }
        }
        let norm = x.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
        if norm > 1e-8 {
            columns.push(x.into_iter().map(|z| z / norm).collect());
        }
    }
    if columns.is_empty() { Ok(None) } else { to_vector::<C64>(both, &columns).map(Some) }
}

/// A state made of a vector of a superblock.
pub(super) fn state_of(both: &Operator, v: &BlockVector, column: usize) -> Result<AnyState> {
    fn make<T: Element>(
        h: &Operator,
        both: &Superblock<T>,
        v: &BlockVector,
        column: usize,
    ) -> Result<Arc<MatrixProductState<T>>> {
        let columns = both.columns(h.device(), v)?;
        let x = columns.get(column).ok_or_else(|| {
            Error::input(format!("no column {column} in the vectors")).hint("columns are numbered from 0")
        })?;
        MatrixProductState::from_superblock(both, x).map(Arc::new)
    }
    let any = superblock_of(both).ok_or_else(|| no_superblock("dmrg_state"))?;
    Ok(either_map!(any, b => make(both, b, v, column)?))
}

#[export_module(root = "crate::script::native")]
mod density_functions {
    /// The density matrix of the "left" or "right" half of a superblock in the state `vectors`; for several columns it
    /// is the weighted mean.
    ///
    /// # Options
    /// - `weights` (array or Series or range, equal): weight of each column.
    /// - `noise` (float >= 0, 0.0): weight of White's perturbation: each operator that couples the halves, applied to
    ///   the state. It restores sectors that the block has lost (White 2005).
    ///
    /// # Example
    /// ```rhai
    /// let bond = opsum();
    /// bond.add(0.5, "S+", 0, "S-", 1);
    /// bond.add(0.5, "S-", 0, "S+", 1);
    /// let block = edge_block("S=1/2", bond);
    /// let pair = superblock(block, block.mirror(), #{ Sz: 0.0 });
    /// let rho = density_matrix(pair, davidson(pair).vectors, "left");
    /// assert_close(rho.entropy, ln(2.0), 1e-9);
    /// ```
    #[rhai_fn(global, name = "density_matrix", return_raw)]
    pub fn density_matrix_with(
        both: Operator,
        vectors: Vector,
        side: &str,
        o: Options,
    ) -> Fallible<AnyDensity> {
        Ok(density_of(&[(both, vectors)], side_of(side)?, &mixing_of(&o)?)?)
    }

    /// As for one superblock, but for several that share the half, for example in different sectors: an array of
    /// superblocks and an array of their vectors. `weights` lists those of all columns in turn.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// let left = dmrg::left_edge(m).extend().grow();
    /// let right = dmrg::right_edge(m).extend().grow();
    /// let sectors = [superblock(left, right, #{ Sz: 0 }), superblock(left, right, #{ Sz: 1 })];
    /// let rho = density_matrix(sectors, sectors.map(|s| davidson(s).vectors), "left", #{ weights: [3.0, 1.0] });
    /// assert_close(rho.spectrum.sum(), 1.0, 1e-12);
    /// ```
    #[rhai_fn(global, name = "density_matrix", return_raw)]
    pub fn density_matrix_of_several(
        superblocks: Array,
        vectors: Array,
        side: &str,
        o: Options,
    ) -> Fallible<AnyDensity> {
        if superblocks.len() != vectors.len() {
            let (n, k) = (superblocks.len(), vectors.len());
            return Err(Error::input(format!("{n} superblocks and the vectors of {k}"))
                .hint("give as many blocks of vectors as superblocks, in their order")
                .into());
        }
        let mut all = Vec::new();
        for (h, v) in superblocks.iter().zip(&vectors) {
            let h = h.clone().try_cast().ok_or_else(|| no_superblock("density_matrix"))?;
            let v = v.clone().try_cast::<Vector>();
            all.push((
                h,
                v.ok_or_else(|| {
                    Error::input("vectors are given as a BlockVector for each superblock")
                        .hint("write `[v]` for one")
                })?,
            ));
        }
        Ok(density_of(&all, side_of(side)?, &mixing_of(&o)?)?)
    }

    /// The basis of the states with the largest weights. Multiplets are not split.
    ///
    /// # Options
    /// - `states` (int >= 1, all): largest number of states.
    /// - `cutoff` (0 <= float < 1, 0.0): largest weight to discard.
    /// - `information` (float >= 0, none): largest entropy to lose (dynamic block-state selection, Legeza and Sólyom
    ///   2004).
    /// - `at_least` (int >= 1, 1): smallest number of states, even if the cutoff would remove them.
    /// - `low` (int >= 0, 0): in addition, this many of the lowest states of the block's own Hamiltonian in each sector
    ///   near those of the state; the total is at most `states`. They help while the superblock is not yet the whole
    ///   chain: the state does not show yet that they matter.
    ///
    /// # Example
    /// ```rhai
    /// let bond = opsum();
    /// bond.add(0.5, "S+", 0, "S-", 1);
    /// bond.add(0.5, "S-", 0, "S+", 1);
    /// let block = edge_block("S=1/2", bond).grow();
    /// let four = superblock(block, block.mirror(), #{ Sz: 0.0 });
    /// let rho = density_matrix(four, davidson(four).vectors, "left");
    /// let kept = rho.truncate(#{ states: 3 });
    /// assert(kept.states <= 3, "at most three of four");
    /// assert_close(kept.weights.sum() + kept.discarded, 1.0, 1e-14);
    /// let all = rho.truncate().weights;
    /// assert_close(kept.entropy, -(all * all.log()).sum(), 1e-12);         // of all weights, before the cut
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn truncate(rho: &mut AnyDensity, o: Options) -> Fallible<AnyBasis> {
        let read = || -> Result<Truncation> {
            Ok(Truncation {
                at_least: o.count("at_least")?,
                information: o.maybe_float("information")?,
                low: o.count("low")?,
                ..cut_of(&o)?
            })
        };
        let basis = read().and_then(|cut| Ok(either_map!(&*rho, r => r.truncate(&cut)?.shared())))?;
        Ok(basis)
    }

    /// The eigenvalues, descending.
    #[rhai_fn(global, get = "spectrum", pure)]
    pub fn spectrum(rho: &mut AnyDensity) -> Series {
        Series::Real(either!(rho, r => r.spectrum()))
    }

    /// The entropy, `- sum w ln w`.
    #[rhai_fn(global, get = "entropy", pure)]
    pub fn entropy(rho: &mut AnyDensity) -> FLOAT {
        either!(rho, r => r.entropy())
    }

    /// Number of states kept.
    #[rhai_fn(global, get = "states", pure)]
    pub fn basis_states(basis: &mut AnyBasis) -> INT {
        either!(basis, b => b.new_space().total()) as INT
    }

    /// The weight that was cut off.
    #[rhai_fn(global, get = "discarded", pure)]
    pub fn discarded(basis: &mut AnyBasis) -> FLOAT {
        either!(basis, b => b.discarded)
    }

    /// The entropy of all weights, before the cut.
    #[rhai_fn(global, get = "entropy", pure)]
    pub fn basis_entropy(basis: &mut AnyBasis) -> FLOAT {
        either!(basis, b => b.entropy)
    }

    /// The weights kept, descending.
    #[rhai_fn(global, get = "weights", pure)]
    pub fn weights(basis: &mut AnyBasis) -> Series {
        Series::Real(either!(basis, b => b.weights.clone()))
    }

    /// White's transformation: a state of the superblock `both` in the basis of `next`. The `side` block of `next` is
    /// that of `both`, rotated into `basis` and grown by a site. The next search starts from the result.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 6);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// let two = dmrg::right_edge(m).extend().extend();
    /// let both = superblock(dmrg::left_edge(m).extend().grow(), two.extend().grow());
    /// let ground = davidson(both, #{ tol: 1e-8 });
    /// let basis = density_matrix(both, ground.vectors, "left").truncate(#{});
    /// let next = superblock(dmrg::left_edge(m).extend().grow().rotate(basis).grow(), two.grow());
    /// let start = dmrg::white_transformation(both, ground.vectors, next, basis, "left");
    /// assert_close(dot(start, next * start), ground.values[0], 1e-8);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn white_transformation(
        both: Operator,
        vectors: Vector,
        next: Operator,
        basis: AnyBasis,
        side: &str,
    ) -> Fallible<Vector> {
        Ok(carried(&both, &vectors.block, &next, &basis, side)?)
    }

    /// A state in the basis of a superblock, for example to start from it or to stay orthogonal to it.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// let neel = product_state(chain, ["Up", "Dn", "Up", "Dn"], #{ Sz: 0.0 });
    /// let both = superblock(dmrg::left_edge(m).extend().grow(), dmrg::right_edge(m).extend().grow());
    /// let v = dmrg::project(both, neel);
    /// assert_close(dot(v, both * v), -0.75, 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn project(both: Operator, state: ScriptDmrgState) -> Fallible<Vector> {
        Ok(state.need_natural().and_then(|()| in_basis(&both, &state.state))?)
    }

    /// As `dmrg::project`, for several states, with orthonormal columns; `()` if the superblock contains no part of
    /// them.
    #[rhai_fn(name = "project", return_raw)]
    pub fn project_all(both: Operator, states: Array) -> Fallible<Dynamic> {
        Ok(all_in_basis(&both, &states).map(|v| v.map_or(Dynamic::UNIT, Dynamic::from))?)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn density_to_string(rho: &mut AnyDensity) -> String {
        either!(rho, r => {
            let spectrum = r.spectrum();
            format!("DensityMatrix: {} weights, entropy {:.6}", spectrum.len(), r.entropy())
        })
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn basis_to_string(basis: &mut AnyBasis) -> String {
        either!(basis, b => {
            let space = b.new_space();
            let (n, s) = (space.total(), space.sectors());
            format!("BlockBasis: {n} states in {s} sectors, discarded weight {:.2e}", b.discarded)
        })
    }
}
