//! Overlaps of a block's basis with a state of the whole chain: how a state is written in the basis of a superblock, to
//! start from it, to go on with it, or to stay orthogonal to it.

use std::sync::Arc;

use faer::Mat;

use super::block::{ChainBlock, SectorOverlaps};
use super::dense::{adjoint_product, product};
use super::space::{ChainSide, Space};
use super::state::MatrixProductState;
use super::superblock::Superblock;
use crate::backend::matrix::held::HeldMatrix;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};

fn lost() -> Error {
    Error::input("the blocks of an infinite chain have no overlap with a state of a finite one")
}

/// The sector of a bond that a sector of a block belongs to.
fn matching<T: Element>(
    block: &ChainBlock<T>,
    state: &MatrixProductState<T>,
    bond: &Space,
    sector: usize,
) -> Option<usize> {
    let own = block.label(sector);
    match block.side {
        ChainSide::Left => bond.find(own),
        ChainSide::Right => bond.find(&state.symmetry.opposite(&state.target, own)),
    }
}

/// The overlap of a block with a state; remembered by the block.
fn of_block<T: Element>(
    block: &Arc<ChainBlock<T>>,
    state: &MatrixProductState<T>,
) -> Result<Arc<SectorOverlaps<T>>> {
    // A loop over the chain instead of a recursion, which would be deep for long chains.
    let mut lineage = vec![block.clone()];
    while let Some(last) = lineage.last() {
        if last.sites() == 0 || last.known_overlap(state.number) {
            break;
        }
        let (grown, _) = last.origin().ok_or_else(lost)?;
        let (inner, _, _) = grown.fusion().ok_or_else(lost)?;
        let inner = inner.clone();
        lineage.push(inner);
    }
    let mut result = None;
    for block in lineage.iter().rev() {
        result = Some(block.overlap_with(state.number, || one_more(block, state))?);
    }
    result.ok_or_else(lost)
}

/// The overlap of a block from that of the block it was made of.
fn one_more<T: Element>(
    block: &Arc<ChainBlock<T>>,
    state: &MatrixProductState<T>,
) -> Result<SectorOverlaps<T>> {
    if block.sites() == 0 {
        return Ok(vec![Some((0, Mat::identity(1, 1)))]);
    }
    let (grown, basis) = block.origin().ok_or_else(lost)?;
    let wide = of_grown(grown, state)?;
    let turn = |(sector, u): (usize, &Arc<HeldMatrix<T>>)| -> Result<Option<(usize, Mat<T>)>> {
        let Some((bond, g)) = &wide[basis.old_sector[sector]] else { return Ok(None) };
        Ok(Some((*bond, adjoint_product(u.here()?, g.as_ref()))))
    };
    basis.vectors.all()?.iter().enumerate().map(turn).collect()
}

/// The overlap of a block and its site with a state.
fn of_grown<T: Element>(
    grown: &Arc<ChainBlock<T>>,
    state: &MatrixProductState<T>,
) -> Result<SectorOverlaps<T>> {
    let (inner, fusion, site) = grown.fusion().ok_or_else(lost)?;
    let known = inner.overlap_with(state.number, || {
        Err(Error::internal("an overlap of an inner block that is not known"))
    })?;
    let tensor = &state.tensors[site];
    let bond = match grown.side {
        ChainSide::Left => &state.spaces[site + 1],
        ChainSide::Right => &state.spaces[site],
    };
    let of = |sector: usize| -> Option<(usize, Mat<T>)> {
        let far = matching(grown, state, bond, sector)?;
        let mut g = Mat::zeros(fusion.space().dim(sector), bond.dim(far));
        for part in fusion.parts(sector) {
            let Some((near, o)) = &known[part.inner] else { continue };
            let own = match grown.side {
                ChainSide::Left => match tensor.part(*near, part.state) {
                    Some((behind, m)) if behind == far => product(o.as_ref(), m),
                    _ => continue,
                },
                ChainSide::Right => match tensor.part(far, part.state) {
                    Some((behind, m)) if behind == *near => product(o.as_ref(), m.transpose()),
                    _ => continue,
                },
            };
            g.as_mut().subrows_mut(part.offset, part.dim).copy_from(own);
        }
        Some((far, g))
    };
    Ok((0..fusion.space().sectors()).map(of).collect())
}

/// A state in the basis of a superblock.
///
/// # Errors
/// When the state belongs to another chain or sector.
pub fn projected<T: Element>(both: &Superblock<T>, state: &MatrixProductState<T>) -> Result<Vec<T>> {
    let mpo = both.left().mpo();
    if mpo.sites().count() != state.sites.count() || mpo.symmetry() != &state.symmetry {
        return Err(Error::input("the state belongs to other sites, or another sector, than the superblock")
            .hint("make both for the same sites, with the same conserved numbers"));
    }
    let half = |block: &Arc<ChainBlock<T>>| -> Result<Arc<SectorOverlaps<T>>> {
        match block.fusion() {
            None => of_block(block, state),
            Some((inner, _, _)) => {
                of_block(inner, state)?;
                Ok(Arc::new(of_grown(block, state)?))
            }
        }
    };
    let (l, r) = (half(both.left())?, half(both.right())?);
    let mut out = vec![T::default(); both.dim()];
    for pair in both.pairs() {
        let (Some((a, x)), Some((b, y))) = (&l[pair.left], &r[pair.right]) else { continue };
        let Some(panel) = both.panel(pair.left, pair.right).filter(|_| a == b) else { continue };
        let m = product(x.as_ref(), y.transpose());
        for i in 0..panel.rows {
            for j in 0..panel.columns {
                out[panel.offset + i * panel.columns + j] = m[(i, j)];
            }
        }
    }
    Ok(out)
}
