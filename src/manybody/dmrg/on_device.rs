//! Density matrices and bases in the memory of the device that has the states: only weights are copied.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError};

use faer::{Mat, MatRef, Par};

use super::dense::{FAR, FEEDERS, Hermitian};
use super::density::{DensityMatrix, Mixing, SectorEigenvectors, shared, vanishes, work_of};
use super::space::{ChainSide, Space};
use super::spread::WholeMatrices;
use super::superblock::Superblock;
use crate::backend::distributed::alike;
use crate::backend::lone::{LoneRank, lone};
use crate::backend::matrix::held::{
    AddedRectangle, Composed, DeviceNumbers, HeldMatrix, MatrixKeeper, Square, TermSource,
};
use crate::backend::matrix::records::{Element, SectorPanel};
use crate::backend::{BlockVector, Device};
use crate::error::{Error, ErrorKind, Result};
use crate::number::DType;
use crate::ranks;

/// A target state on the device, with all of its rows, and its weight.
struct TargetState<'a, T> {
    both: &'a Superblock<T>,
    rows: BlockVector,
    weight: f64,
}

impl<T: Element> DensityMatrix<T> {
    /// As [`DensityMatrix::of_several`], of vectors where they are: all columns of each superblock's.
    ///
    /// # Errors
    /// As [`DensityMatrix::of_several`].
    pub fn of_vectors(
        all: &[(&Superblock<T>, &BlockVector)],
        side: ChainSide,
        mixing: &Mixing,
    ) -> Result<DensityMatrix<T>> {
        if let Some(found) = on_device(all, side, mixing)? {
            return Ok(found);
        }
        let columns = all.iter().map(|(both, v)| both.columns(both.device(), v));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let parts: Vec<(&Superblock<T>, &[Vec<T>])> =
            all.iter().zip(&columns).map(|((both, _), x)| (*both, &x[..])).collect();
        DensityMatrix::of_several(&parts, side, mixing)
    }

    /// The vectors that each sector keeps, so many of the largest weights, where the device has them.
    /// Ranks decide alike.
    pub(super) fn kept_on_device(&self, space: &Space, kept: &[usize]) -> Result<Option<WholeMatrices<T>>> {
        let Some(keeper) = self.device.keeper().filter(|_| is_for_device::<T>(space)) else {
            return Ok(None);
        };
        let sizes: Vec<usize> = kept.iter().enumerate().map(|(s, kept)| space.dim(s) * kept).collect();
        let lone = lone(&self.device);
        let block = match of_lone(lone, &self.device)? {
            Some((_, keeper)) => self.own_kept(keeper, space, kept).map(Some),
            None if lone.is_some() => Ok(None),
            None => self.own_kept(keeper, space, kept).map(Some),
        };
        let one_after_the_other = || (0..kept.len()).collect();
        let (block, order) = match (&self.shares, lone) {
            (_, Some(_)) => {
                let ranks = self.device.distributed().ok_or_else(apart)?;
                let block = ranks.kept_by_lone(block, sizes.iter().sum());
                (block.and_then(|block| block.ok_or_else(apart)), one_after_the_other())
            }
            (None, None) => (block.and_then(|block| block.ok_or_else(apart)), one_after_the_other()),
            (Some(shares), None) => {
                let (order, starts) = shares.in_order(&sizes);
                let block = ranks::agreed(block);
                (
                    block.and_then(|own| {
                        let own = own.ok_or_else(apart)?;
                        self.device.distributed().ok_or_else(apart)?.joined(&own, &starts)?.ok_or_else(apart)
                    }),
                    order,
                )
            }
        };
        let block = match block {
            Err(e) if e.kind() == ErrorKind::Interrupted => return Err(e),
            // The host has other room, and other ways.
            Err(_) => return Ok(None),
            Ok(block) => block,
        };
        let numbers = DeviceNumbers::new(&self.device, block)?;
        let mut places = vec![0; kept.len()];
        let mut at = 0;
        for sector in order {
            places[sector] = at;
            at += sizes[sector];
        }
        let held =
            |s: usize| Arc::new(HeldMatrix::within(&numbers, places[s], (space.dim(s), kept[s]), true));
        Ok(Some((0..kept.len()).map(held).collect()))
    }

    /// The vectors kept of the sectors that this rank has diagonalised, one after the other, row by row.
    fn own_kept(&self, keeper: &dyn MatrixKeeper, space: &Space, kept: &[usize]) -> Result<BlockVector> {
        // A block that the device has, with the first number; a matrix of the host otherwise.
        let mut all = Vec::new();
        for (sector, found) in self.vectors.iter().enumerate() {
            let Some(found) = found else { continue };
            let place = match found.vectors.there().filter(|_| found.ascending) {
                Some((block, first, _)) => Ok((block, first)),
                None => Err(HeldMatrix::from(found.here()?.subcols(0, kept[sector]).to_owned())),
            };
            all.push((sector, place));
        }
        let composed = all.iter().map(|(sector, place)| {
            let (rows, columns) = (space.dim(*sector), kept[*sector]);
            let from = match place {
                // The last column first.
                Ok((block, first)) => {
                    let last = first + rows * rows.saturating_sub(1);
                    TermSource::Block(block, last, [1, -(rows as i64)])
                }
                Err(m) => TermSource::Matrix(T::as_real(m)?),
            };
            let terms = vec![AddedRectangle { scale: 1.0, row: 0, rows, column: 0, columns, from }];
            Some(Composed { rows, columns, by_rows: true, terms })
        });
        let composed = composed.collect::<Option<Vec<_>>>();
        keeper.composed(&composed.ok_or_else(|| Error::internal("complex vectors on a device"))?)
    }
}

fn apart() -> Error {
    Error::backend("devices that do not hand one another what they have")
}

/// The backend of the rank that has all that lives whole, and what keeps its matrices, if this is that rank.
fn of_lone(lone: Option<LoneRank>, device: &Device) -> Result<Option<(&Device, &dyn MatrixKeeper)>> {
    if !lone.is_some_and(|lone| lone.here) {
        return Ok(None);
    }
    let own = device.alone().ok_or_else(apart)?;
    Ok(Some((own, own.keeper().ok_or_else(apart)?)))
}

/// Whether the sectors of a space are diagonalised where a device has the states.
fn is_for_device<T: Element>(space: &Space) -> bool {
    !T::DTYPE.is_complex() && space.dims().iter().any(|dim| *dim >= FAR)
}

/// The density matrix from states that a device has, diagonalised by it; none where the host does it.
fn on_device<T: Element>(
    all: &[(&Superblock<T>, &BlockVector)],
    side: ChainSide,
    mixing: &Mixing,
) -> Result<Option<DensityMatrix<T>>> {
    let Some((first, _)) = all.first() else { return Ok(None) };
    let (device, block) = (first.device(), first.half(side));
    let space = block.space();
    let fits = |(both, v): &(&Superblock<T>, &BlockVector)| {
        v.rows().global == both.dim() && v.dtype() == DType::F64 && both.half(side).space() == space
    };
    if mixing.noise > 0.0 || !is_for_device::<T>(space) || !all.iter().all(fits) {
        return Ok(None);
    }
    let Some(keeper) = device.keeper().filter(|_| device.dense_solver().is_some()) else { return Ok(None) };
    let weights = mixing.of_each(all.iter().map(|(_, v)| v.columns()).sum())?;
    let (mut targets, mut norm) = (Vec::with_capacity(weights.len()), 0.0);
    let columns = all.iter().flat_map(|&(both, v)| (0..v.columns()).map(move |c| (both, v, c)));
    for ((both, v, c), &weight) in columns.zip(&weights) {
        let column = if v.columns() == 1 { v.clone() } else { device.columns(v, c..c + 1)? };
        norm += weight * device.dots(&column, &column)?[0].re;
        let Some(rows) = device.all_rows(&column)? else { return Ok(None) };
        targets.push(TargetState { both, rows, weight });
    }
    if !(norm > 0.0) || !norm.is_finite() {
        return Err(vanishes());
    }
    let width = |sector: usize| -> usize {
        targets.iter().flat_map(|t| own_panels(t.both, side, sector)).map(|(_, columns)| columns).sum()
    };
    let (alike, solving) = alike(device)?;
    let works = space.dims().iter().enumerate().map(|(s, dim)| work_of(*dim, width(s)));
    let shares = shared(solving, works);
    let own = |sector: &usize| shares.as_ref().is_none_or(|shares| shares.owns(*sector));
    let mine: Vec<usize> = (0..space.sectors()).filter(own).collect();
    let lone = lone(device);
    let found = match of_lone(lone, device)? {
        Some((own, keeper)) => sectors(own, keeper, (space, &mine), &targets, side),
        // Another rank does it.
        None if lone.is_some() => Ok(Vec::new()),
        None => sectors(device, keeper, (space, &mine), &targets, side),
    };
    match DensityMatrix::of_sums(block.clone(), device, found, (alike, shares)) {
        // The host has other room, and another method.
        Err(e) if e.kind() != ErrorKind::Interrupted => Ok(None),
        found => found.map(Some),
    }
}

/// The panels of a state whose rows, or columns, are those of a sector,
/// and how many columns they have as matrices of that sector.
fn own_panels<T: Element>(
    both: &Superblock<T>,
    side: ChainSide,
    sector: usize,
) -> impl Iterator<Item = (SectorPanel, usize)> {
    both.pairs().iter().zip(&both.list().panels).filter_map(move |(pair, panel)| match side {
        ChainSide::Left => (pair.left == sector).then_some((*panel, panel.columns)),
        ChainSide::Right => (pair.right == sector).then_some((*panel, panel.rows)),
    })
}

/// Weights and vectors of some sectors.
fn sectors<T: Element>(
    device: &Device,
    keeper: &dyn MatrixKeeper,
    (space, mine): (&Space, &[usize]),
    targets: &[TargetState<'_, T>],
    side: ChainSide,
) -> Result<Vec<(Vec<f64>, SectorEigenvectors<T>)>> {
    // Small ones first, which travel together.
    let mut order = mine.to_vec();
    order.sort_by_key(|s| (space.dim(*s) >= FAR, *s));
    // Matrices as the squares take them: a row for each state of the other half.
    let mut turned = Vec::new();
    let mut places = Vec::new();
    let mut at = 0;
    for &sector in &order {
        for (number, target) in targets.iter().enumerate() {
            for (panel, rows) in own_panels(target.both, side, sector) {
                let place = match side {
                    ChainSide::Right => panel.offset,
                    ChainSide::Left => {
                        let from = TermSource::Block(&target.rows, panel.offset, [panel.columns as i64, 1]);
                        let (rows, columns) = (panel.rows, panel.columns);
                        let terms =
                            vec![AddedRectangle { scale: 1.0, row: 0, rows, column: 0, columns, from }];
                        turned.push(Composed { rows, columns, by_rows: false, terms });
                        at += rows * columns;
                        at - rows * columns
                    }
                };
                places.push((sector, number, place, rows));
            }
        }
    }
    let turned = if turned.is_empty() { None } else { Some(keeper.composed(&turned)?) };
    let squares = order.iter().map(|&sector| {
        let own = places.iter().filter(|place| place.0 == sector);
        let square = |&(_, number, first, rows): &(usize, usize, usize, usize)| {
            let target = &targets[number];
            Square { from: turned.as_ref().unwrap_or(&target.rows), first, rows, weight: target.weight }
        };
        (space.dim(sector), own.map(square).collect())
    });
    let sums = keeper.squares(&squares.collect::<Vec<_>>())?;
    let firsts: Vec<usize> = order
        .iter()
        .scan(0, |at, s| {
            *at += space.dim(*s).pow(2);
            Some(*at - space.dim(*s).pow(2))
        })
        .collect();
    let small = order.partition_point(|s| space.dim(*s) < FAR);
    let few = firsts.get(small).copied().unwrap_or(sums.rows().local);
    let few = if small > 0 { device.download_part(&sums, 0..few)? } else { Vec::new() };
    // The largest go first, several at a time; the other threads take the small ones.
    let mut large: Vec<usize> = (small..order.len()).collect();
    large.sort_by_key(|k| Reverse(space.dim(order[*k])));
    let (large, rest) = (Mutex::new(large.into_iter()), Mutex::new(0..small));
    let found = Mutex::new(Vec::with_capacity(order.len()));
    let keep = |k: usize, of: Result<_>| {
        found.lock().unwrap_or_else(PoisonError::into_inner).push((k, of));
    };
    let near = || {
        loop {
            let Some(k) = rest.lock().unwrap_or_else(PoisonError::into_inner).next() else { break };
            let n = space.dim(order[k]);
            keep(k, few.get(firsts[k]..firsts[k] + n * n).map_or_else(|| Err(fewer()), |own| solved(own, n)));
        }
    };
    let far = || {
        loop {
            let Some(k) = large.lock().unwrap_or_else(PoisonError::into_inner).next() else { break };
            let values = keeper.eigh(space.dim(order[k]), &sums, firsts[k]);
            keep(k, values.and_then(|values| Ok((values.ok_or_else(apart)?, None))));
        }
        near();
    };
    let feeders = FEEDERS * keeper.solvers();
    rayon::scope(|scope| {
        (0..feeders).for_each(|_| scope.spawn(|_| far()));
        (feeders..rayon::current_num_threads()).for_each(|_| scope.spawn(|_| near()));
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let numbers = DeviceNumbers::new(device, sums)?;
    let mut sectors: Vec<(usize, (Vec<f64>, SectorEigenvectors<T>))> = Vec::with_capacity(order.len());
    for (k, of) in found {
        let (mut weights, vectors): (Vec<f64>, Option<Mat<T>>) = of?;
        let n = space.dim(order[k]);
        let vectors = match vectors {
            Some(vectors) => vectors.into(),
            None => {
                weights.reverse();
                SectorEigenvectors {
                    vectors: HeldMatrix::within(&numbers, firsts[k], (n, n), false),
                    ascending: true,
                }
            }
        };
        sectors.push((order[k], (weights, vectors)));
    }
    sectors.sort_by_key(|s| s.0);
    Ok(sectors.into_iter().map(|s| s.1).collect())
}

/// Weights, descending, and vectors of a small sector by the processor.
fn solved<T: Element>(numbers: &[f64], n: usize) -> Result<(Vec<f64>, Option<Mat<T>>)> {
    let numbers = T::of_reals(numbers.to_vec()).ok_or_else(fewer)?;
    let m = MatRef::from_column_major_slice(&numbers, n, n).to_owned();
    let (weights, vectors) = Hermitian::Whole(m).solved(Par::Seq)?;
    Ok((weights, Some(vectors)))
}

fn fewer() -> Error {
    Error::internal("fewer numbers than those of the density matrices")
}
