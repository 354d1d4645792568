//! The surroundings of each bond of an infinite chain, as blocks that carry the operators of the automaton. Complete
//! terms are a geometric sum over all cells; the energy, which grows with the number of cells, is subtracted.

use std::sync::Arc;

use faer::Mat;

use super::super::basis::TruncatedBasis;
use super::super::block::{BlockForm, ChainBlock};
use super::super::carry::BondMatrices;
use super::super::mpo::Mpo;
use super::super::operators::{CarriedOperator, SectorBlock};
use super::super::space::{ChainSide, ChargeLabel, ConservedNumbers, Fusion, Space};
use super::super::tensor::MpsTensor;
use super::automaton::Repeated;
use super::bonds::{BlockLayout, identity, past_left, past_right, trace};
use super::krylov::{REMEMBERED, gmres};
use super::state::Uniform;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::number::scalar::norm;
use crate::number::{C64, memory};

/// The most products of a linear system.
const MOST: usize = 400;

/// The blocks on both sides of all bonds, from the first to that behind the last site.
pub struct Environments<T> {
    pub(super) lefts: Vec<Arc<ChainBlock<T>>>,
    pub(super) rights: Vec<Arc<ChainBlock<T>>>,
    /// The energy of a cell.
    pub energy: f64,
}

fn bare<T: Element>(
    mpo: &Arc<Mpo>,
    side: ChainSide,
    bond: usize,
    space: &Space,
    carried: Vec<CarriedOperator<T>>,
) -> Arc<ChainBlock<T>> {
    ChainBlock::made(
        mpo,
        side,
        0,
        bond,
        false,
        BlockForm::Plain { space: space.clone(), carried: carried.into(), origin: None },
    )
}

/// The labels of a bond seen from the right, and the bond's sector of each.
pub(super) fn seen_from_right(symmetry: &ConservedNumbers, space: &Space) -> (Space, Vec<usize>) {
    let negative = |q: &ChargeLabel| symmetry.subtract(&symmetry.zero(), q);
    let turned = Space::of(space.iter().map(|(q, d)| (negative(q), d)).collect());
    let place = turned.iter().filter_map(|(q, _)| space.find(&negative(q))).collect();
    (turned, place)
}

/// The basis that isometries from the left are for a grown block.
pub(super) fn left_basis<T: Element>(tensor: &MpsTensor<T>) -> TruncatedBasis<T> {
    TruncatedBasis::from_vectors(tensor.fusion.space(), |sector| {
        let at = tensor.rows.iter().position(|r| *r == sector)?;
        Some(tensor.matrices[at].clone())
    })
}

/// The basis that isometries from the right are for a right block with the site, whose product is `fusion`.
pub(super) fn right_basis<T: Element>(
    symmetry: &ConservedNumbers,
    tensor: &MpsTensor<T>,
    fusion: &Fusion,
) -> TruncatedBasis<T> {
    let (_, behind) = seen_from_right(symmetry, &tensor.behind);
    TruncatedBasis::from_vectors(fusion.space(), |sector| {
        let label = symmetry.subtract(&symmetry.zero(), fusion.space().label(sector));
        let before = tensor.before.find(&label)?;
        let mut wide = Mat::zeros(fusion.space().dim(sector), tensor.before.dim(before));
        for part in fusion.parts(sector) {
            let Some((to, own)) = tensor.part(before, part.state) else { continue };
            if to == behind[part.inner] {
                wide.as_mut().subrows_mut(part.offset, part.dim).copy_from(own.transpose());
            }
        }
        Some(wide)
    })
}

/// A block past a site.
fn past<T: Element>(
    psi: &Uniform<T>,
    mpo: &Arc<Mpo>,
    block: &Arc<ChainBlock<T>>,
    site: usize,
) -> Result<Arc<ChainBlock<T>>> {
    let grown = block.grow()?;
    let basis = match block.side {
        ChainSide::Left => left_basis(&psi.left[site]),
        ChainSide::Right => {
            let (_, fusion, _) =
                grown.fusion().ok_or_else(|| Error::internal("a block that did not grow"))?;
            right_basis(&psi.cell.symmetry, &psi.right[site], fusion)
        }
    };
    let next = grown.rotate(&basis.shared())?;
    // Without its history, which has no beginning.
    Ok(bare(mpo, next.side, next.bond, next.space(), carried_of(&next)?))
}

fn carried_of<T: Element>(block: &ChainBlock<T>) -> Result<Vec<CarriedOperator<T>>> {
    match &block.shape {
        BlockForm::Plain { carried, .. } => Ok(carried.present()?.to_vec()),
        BlockForm::Grown { .. } => Err(Error::internal("a block that is not rotated")),
    }
}

/// One side of the chain while its blocks are found.
struct HalfChain<'a, T> {
    psi: &'a Uniform<T>,
    h: &'a Repeated,
    side: ChainSide,
    space: Space,
    /// The bond's sector of each of the block's.
    place: Vec<usize>,
    /// Which operator is the identity here, and which one collects the complete terms.
    one: usize,
    sum: usize,
}

impl<'a, T: Element> HalfChain<'a, T> {
    fn new(psi: &'a Uniform<T>, h: &'a Repeated, side: ChainSide) -> Result<HalfChain<'a, T>> {
        let symmetry = &psi.cell.symmetry;
        let (space, place) = match side {
            ChainSide::Left => (psi.spaces[0].clone(), (0..psi.spaces[0].sectors()).collect()),
            ChainSide::Right => seen_from_right(symmetry, &psi.spaces[0]),
        };
        let bond = h.mpo.bond(0);
        let (Some(start), Some(done)) = (bond.start, bond.done) else {
            return Err(Error::internal("an automaton without a beginning or an end"));
        };
        let (one, sum) = match side {
            ChainSide::Left => (start, done),
            ChainSide::Right => (done, start),
        };
        Ok(HalfChain { psi, h, side, space, place, one, sum })
    }

    /// The blocks at all bonds from the operators carried at the cell's edge, in the order in which they are made.
    fn blocks(&self, carried: Vec<CarriedOperator<T>>) -> Result<Vec<Arc<ChainBlock<T>>>> {
        let n = self.psi.count();
        let (first, sites): (usize, Vec<usize>) = match self.side {
            ChainSide::Left => (0, (0..n).collect()),
            ChainSide::Right => (n, (0..n).rev().collect()),
        };
        let mut all = vec![bare(&self.h.mpo, self.side, first, &self.space, carried)];
        for site in sites {
            let next = past(self.psi, &self.h.mpo, &all[all.len() - 1], site)?;
            all.push(next);
        }
        Ok(all)
    }

    /// The operators carried one cell further.
    fn cell(&self, carried: Vec<CarriedOperator<T>>) -> Result<Vec<CarriedOperator<T>>> {
        let all = self.blocks(carried)?;
        carried_of(&all[all.len() - 1])
    }

    fn without_sum(&self, mut carried: Vec<CarriedOperator<T>>) -> Vec<CarriedOperator<T>> {
        carried[self.sum] = CarriedOperator::Nothing;
        carried[self.one] = CarriedOperator::Identity;
        carried
    }

    /// The operators of terms that have begun, as one vector.
    fn layouts(&self) -> Vec<(usize, BlockLayout)> {
        let symmetry = &self.psi.cell.symmetry;
        let bond = self.h.mpo.bond(0);
        let open = (0..bond.charges.len()).filter(|&k| k != self.one && k != self.sum);
        let charge = |k: usize| match self.side {
            ChainSide::Left => bond.charges[k].clone(),
            ChainSide::Right => symmetry.subtract(&symmetry.zero(), &bond.charges[k]),
        };
        open.map(|k| (k, BlockLayout::new(symmetry, &self.space, &charge(k)))).collect()
    }

    /// What is carried at the cell's edge, but for complete terms: exact after as many cells as terms reach; what
    /// decays without end is the solution of a linear system.
    fn open_terms(&self, known: Option<&[CarriedOperator<T>]>, tol: f64) -> Result<Vec<CarriedOperator<T>>> {
        let fresh = || vec![CarriedOperator::Nothing; self.h.mpo.bond(0).charges.len()];
        let known = known.filter(|_| self.h.decays).map_or_else(fresh, <[CarriedOperator<T>]>::to_vec);
        let mut x = self.without_sum(known);
        for _ in 0..self.h.reach.max(1) {
            x = self.without_sum(self.cell(x)?);
        }
        if !self.h.decays {
            return Ok(x);
        }
        let layouts = self.layouts();
        let flat = |carried: &[CarriedOperator<T>]| -> Result<Vec<T>> {
            let mut all = Vec::new();
            for (k, layout) in &layouts {
                all.extend(layout.flat(&self.matrices(&carried[*k])?));
            }
            Ok(all)
        };
        let full = |v: &[T]| -> Vec<CarriedOperator<T>> {
            let mut carried = fresh();
            let mut at = 0;
            for (k, layout) in &layouts {
                let end = at + layout.len();
                carried[*k] = blocks_of(layout.matrices(&v[at..end]));
                at = end;
            }
            self.without_sum(carried)
        };
        let zero = flat(&self.cell(full(&vec![T::default(); layouts.iter().map(|l| l.1.len()).sum()]))?)?;
        let mut map = |v: &[T]| -> Result<Vec<T>> {
            let image = flat(&self.cell(full(v))?)?;
            Ok(v.iter().zip(image.iter().zip(&zero)).map(|(v, (a, b))| *v - *a + *b).collect())
        };
        let mut v = flat(&x)?;
        gmres(&mut map, &zero, &mut v, tol * (1.0 + norm(&zero)), MOST)?;
        Ok(full(&v))
    }

    fn matrices(&self, carried: &CarriedOperator<T>) -> Result<BondMatrices<T>> {
        Ok(match carried {
            CarriedOperator::Nothing => BondMatrices::new(),
            CarriedOperator::Identity => identity(&self.space),
            CarriedOperator::Blocks(subs) => {
                let mut all = BondMatrices::new();
                for s in subs {
                    all.insert((s.row, s.column), s.matrix.here()?.to_owned());
                }
                all
            }
        })
    }

    /// Matrices of the block as those of the bond; from the right they are transposed.
    fn on_bond(&self, x: &BondMatrices<T>) -> BondMatrices<T> {
        let turned = |m: &Mat<T>| match self.side {
            ChainSide::Left => m.clone(),
            ChainSide::Right => m.transpose().to_owned(),
        };
        x.iter().map(|(&(i, _), m)| ((self.place[i], self.place[i]), turned(m))).collect()
    }

    fn of_block(&self, x: &BondMatrices<T>) -> BondMatrices<T> {
        let own = |sector: usize| self.place.iter().position(|p| *p == sector).unwrap_or(0);
        let turned = |m: &Mat<T>| match self.side {
            ChainSide::Left => m.clone(),
            ChainSide::Right => m.transpose().to_owned(),
        };
        x.iter().map(|(&(i, _), m)| ((own(i), own(i)), turned(m))).collect()
    }

    /// The blocks at all bonds, and the energy of a cell.
    fn solved(&self, known: Option<&Arc<ChainBlock<T>>>, tol: f64) -> Result<(Vec<Arc<ChainBlock<T>>>, f64)> {
        let known = match known {
            Some(block) if block.space() == &self.space => Some(carried_of(block)?),
            _ => None,
        };
        let mut x = self.open_terms(known.as_deref(), tol)?;
        let complete = self.on_bond(&self.matrices(&self.cell(x.clone())?[self.sum])?);
        let psi = self.psi;
        let density = match self.side {
            ChainSide::Left => psi.density_left(0),
            ChainSide::Right => psi.density_right(0),
        };
        let energy = trace(&complete, &density).re;
        let symmetry = &psi.cell.symmetry;
        let layout = BlockLayout::new(symmetry, &psi.spaces[0], &symmetry.zero());
        let one: Vec<T> = layout.flat(&identity(&psi.spaces[0]));
        let shifted = |x: Vec<T>, e: C64| -> Vec<T> {
            x.into_iter().zip(&one).map(|(x, o)| x - T::from_c64(e) * *o).collect()
        };
        let b = shifted(layout.flat(&complete), energy.into());
        let mut map = |v: &[T]| -> Result<Vec<T>> {
            let m = layout.matrices(v);
            let image = layout.flat(&match self.side {
                ChainSide::Left => past_left(&psi.left, &m),
                ChainSide::Right => past_right(&psi.right, &m),
            });
            let rest: Vec<T> = v.iter().zip(&image).map(|(v, i)| *v - *i).collect();
            Ok(shifted(rest, -trace(&m, &density)))
        };
        let mut z = match known {
            Some(known) => layout.flat(&self.on_bond(&self.matrices(&known[self.sum])?)),
            None => b.clone(),
        };
        gmres(&mut map, &b, &mut z, tol * (1.0 + norm(&b)), MOST)?;
        x[self.sum] = blocks_of(self.of_block(&layout.matrices(&z)));
        Ok((self.blocks(x)?, energy))
    }
}

fn blocks_of<T: Element>(x: BondMatrices<T>) -> CarriedOperator<T> {
    let sub = |((row, column), m): ((usize, usize), Mat<T>)| SectorBlock {
        row,
        column,
        matrix: Arc::new(m.into()),
    };
    CarriedOperator::Blocks(x.into_iter().map(sub).collect())
}

/// The numbers that operators hold which are carried across the bonds of a cell between bases.
fn numbers_carried(h: &Repeated, spaces: &[Space]) -> u128 {
    let symmetry = &h.cell.symmetry;
    let mut numbers = 0;
    for (b, space) in spaces.iter().enumerate() {
        for charge in &h.mpo.bond(b).charges {
            for (q, d) in space.iter() {
                let other = space.find(&symmetry.add(q, charge)).map_or(0, |s| space.dim(s));
                numbers += (d * other) as u128;
            }
        }
    }
    numbers
}

/// Asks for the memory of what lies around the sites of a cell: the operators on both sides of its bonds, and the
/// vectors of linear systems. `vectors` more are of two sites.
pub(super) fn need_memory<T>(h: &Repeated, spaces: &[Space], vectors: usize) -> Result<()> {
    let square = |space: &Space| space.dims().iter().map(|&d| (d * d) as u128).sum::<u128>();
    let widest = spaces.iter().map(square).max().unwrap_or(0);
    let states = spaces.iter().map(Space::total).max().unwrap_or(0);
    let site = h.cell.states.iter().map(|s| s.len() as u128).max().unwrap_or(1);
    let numbers =
        2 * numbers_carried(h, spaces) + REMEMBERED as u128 * widest + vectors as u128 * site * site * widest;
    memory::ensure(
        numbers * size_of::<T>() as u128,
        &format!("what lies around a cell with {states} states a bond"),
    )
}

impl<T: Element> Environments<T> {
    /// The environments of a state; `known` are those of one nearby, to start from.
    ///
    /// # Errors
    /// When the Hamiltonian belongs to another cell; when a linear system fails; interruption.
    pub fn new(
        psi: &Uniform<T>,
        h: &Repeated,
        known: Option<&Environments<T>>,
        tol: f64,
    ) -> Result<Environments<T>> {
        need_memory::<T>(h, &psi.spaces, 0)?;
        let left = HalfChain::new(psi, h, ChainSide::Left)?;
        let (lefts, a) = left.solved(known.map(|k| &k.lefts[0]), tol)?;
        let right = HalfChain::new(psi, h, ChainSide::Right)?;
        let (mut rights, b) = right.solved(known.map(|k| &k.rights[k.rights.len() - 1]), tol)?;
        rights.reverse();
        Ok(Environments { lefts, rights, energy: 0.5 * (a + b) })
    }
}
