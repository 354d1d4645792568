//! Density matrices of half a superblock, and how they are truncated.

use std::collections::BTreeMap;
use std::sync::Arc;

use faer::{Mat, MatRef, Par};

use super::basis::TruncatedBasis;
use super::block::{ChainBlock, Pieces};
use super::dense::{
    FAR, FLOOR as SMALLEST, Hermitian, add_square, applied, deal, eigh, eigh_all, square, squares, thin_svd,
};
use super::space::ChainSide;
use super::spread::{WholeMatrices, joined};
use super::superblock::Superblock;
use crate::backend::Device;
use crate::backend::distributed::alike;
use crate::backend::matrix::held::{HeldMatrix, before_threads};
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::ranks::{self, AlikeRanks, Broadcast, PieceShares};

/// Weights below this, relative to the trace, are rounding.
const FLOOR: f64 = 1e-16;
/// Weights that differ by less than this, relatively, belong to one multiplet: small weights are only as accurate as
/// the state.
const MULTIPLET: f64 = 1e-3;

/// Sectors with more than this share of the trace count as occupied.
const OCCUPIED: f64 = 1e-3;
/// Sectors at most so many quanta away from the occupied ones count as near.
const NEAR: i32 = 2;

/// Eigenvectors of a sector, a column each.
pub(super) struct SectorEigenvectors<T> {
    pub vectors: HeldMatrix<T>,
    /// Whether those of the largest weights are the last ones.
    pub ascending: bool,
}

impl<T: Element> SectorEigenvectors<T> {
    /// On the host, those of the largest weights first.
    pub fn here(&self) -> Result<MatRef<'_, T>> {
        let vectors = self.vectors.here()?;
        Ok(if self.ascending { vectors.reverse_cols() } else { vectors })
    }
}

impl<T: Element> From<Mat<T>> for SectorEigenvectors<T> {
    fn from(vectors: Mat<T>) -> SectorEigenvectors<T> {
        SectorEigenvectors { vectors: vectors.into(), ascending: false }
    }
}

/// The density matrix of one half of a superblock, by sectors.
pub struct DensityMatrix<T> {
    /// The half it belongs to.
    block: Arc<ChainBlock<T>>,
    /// Weights, descending, for each sector.
    weights: Vec<Vec<f64>>,
    /// Their vectors, for each sector that this rank has diagonalised; without ranks, for all of them.
    pub(super) vectors: Vec<Option<SectorEigenvectors<T>>>,
    /// The device of the superblock.
    pub(super) device: Device,
    alike: Option<AlikeRanks>,
    pub(super) shares: Option<PieceShares>,
    trace: f64,
    /// Weights below this are rounding.
    floor: f64,
}

/// How target states and noise are mixed.
#[derive(Debug, Clone, Default)]
pub struct Mixing {
    /// Weight of each target state; equal if empty.
    pub weights: Vec<f64>,
    /// Weight of the perturbation that admits states which the superblock does not reach yet (White, Phys. Rev. B 72,
    /// 180403 (2005)).
    pub noise: f64,
}

impl Mixing {
    /// The weights of so many target states, of the sum one.
    pub(super) fn of_each(&self, count: usize) -> Result<Vec<f64>> {
        match &self.weights[..] {
            [] => Ok(vec![1.0 / count.max(1) as f64; count]),
            given if given.len() == count && given.iter().all(|w| *w >= 0.0) => {
                let sum: f64 = given.iter().sum();
                Ok(given.iter().map(|w| w / sum).collect())
            }
            given if given.len() == count => Err(Error::input(format!("weights {given:?} of target states"))
                .hint("one weight per target state, none of them negative")),
            given => Err(Error::input(format!("{} weights for {count} states", given.len()))
                .hint("one weight per target state, none of them negative")),
        }
    }
}

/// How a basis is truncated.
#[derive(Debug, Clone, Default)]
pub struct Truncation {
    /// The most states.
    pub states: Option<usize>,
    /// So many states are kept, even where the cutoff would remove them.
    pub at_least: usize,
    /// The most weight to discard.
    pub cutoff: f64,
    /// The most entropy to lose (dynamic block-state selection by quantum information: Legeza, Sólyom, Phys. Rev. B
    /// 70, 205118 (2004)).
    pub information: Option<f64>,
    /// How many of the lowest states of the block's own Hamiltonian are kept besides, in each sector near the
    /// occupied ones, and at most `states` in all. A superblock shorter than the chain cannot know the final charges
    /// of its blocks.
    pub low: usize,
}

impl<T: Element> DensityMatrix<T> {
    /// The density matrix of one half, for one vector or several targets.
    ///
    /// # Errors
    /// When the vectors do not belong to the superblock, or weights to the vectors.
    pub fn new(
        both: &Superblock<T>,
        states: &[Vec<T>],
        side: ChainSide,
        mixing: &Mixing,
    ) -> Result<DensityMatrix<T>> {
        DensityMatrix::of_several(&[(both, states)], side, mixing)
    }

    /// That of a half which several superblocks share, in different sectors for example. The weights are those of all
    /// states in turn.
    ///
    /// # Errors
    /// As [`DensityMatrix::new`], and when the halves differ.
    pub fn of_several(
        all: &[(&Superblock<T>, &[Vec<T>])],
        side: ChainSide,
        mixing: &Mixing,
    ) -> Result<DensityMatrix<T>> {
        let first = all.first().ok_or_else(|| Error::input("a density matrix of no superblock"))?;
        let block = first.0.half(side).clone();
        let space = block.space();
        if all.iter().any(|(both, _)| both.half(side).space() != space) {
            return Err(Error::input("superblocks that do not share the half of the density matrix")
                .hint("make them of the same grown block"));
        }
        let count: usize = all.iter().map(|a| a.1.len()).sum();
        let weights = mixing.of_each(count)?;
        let mut panels: Vec<(usize, Vec<(MatRef<'_, T>, f64)>)> =
            space.dims().iter().map(|&d| (d, Vec::new())).collect();
        let targets = all.iter().flat_map(|&(both, states)| states.iter().map(move |x| (both, x)));
        for ((both, x), &weight) in targets.zip(&weights) {
            for (pair, panel) in both.panels(x) {
                let (own, m) = match side {
                    ChainSide::Left => (pair.left, panel),
                    ChainSide::Right => (pair.right, panel.transpose()),
                };
                panels[own].1.push((m, weight));
            }
        }
        let norm: f64 = all
            .iter()
            .flat_map(|(_, states)| *states)
            .zip(&weights)
            .map(|(x, w)| w * x.iter().map(|z| z.to_c64().norm_sqr()).sum::<f64>())
            .sum();
        if !(norm > 0.0) || !norm.is_finite() {
            return Err(vanishes());
        }
        let device = first.0.device();
        let (alike, solving) = alike(device)?;
        let width = |of: &[(MatRef<'_, T>, f64)]| of.iter().map(|(m, _)| m.ncols()).sum::<usize>();
        let work = |(dim, of): &(usize, Vec<_>)| work_of(*dim, width(of));
        let shares = shared(solving, panels.iter().map(work));
        let own = |sector: usize| shares.as_ref().is_none_or(|shares| shares.owns(sector));
        let mine: Vec<usize> = (0..panels.len()).filter(|s| own(*s)).collect();
        let large = panels.iter().any(|panel| panel.0 >= FAR);
        // All ranks ask, though one may solve for the others.
        let here = !large || device.dense_solver().is_none() || mixing.noise > 0.0;
        let mut sums = match here {
            true => deal(
                &mine,
                |s| (panels[*s].0 * panels[*s].0 * width(&panels[*s].1)) as f64,
                |s, par| squares(panels[*s].0, &panels[*s].1, par),
            ),
            // A solver forms the sums, too.
            false => Vec::new(),
        };
        if mixing.noise > 0.0 {
            let mut place = vec![None; panels.len()];
            mine.iter().enumerate().for_each(|(k, s)| place[*s] = Some(k));
            let mut from = 0;
            for (both, states) in all {
                let own = &weights[from..from + states.len()];
                let noise = Noise { both, states, weights: own, side, noise: mixing.noise };
                noise.add(&mut sums, &place, shares.is_some())?;
                from += states.len();
            }
        }
        let matrices: Vec<Hermitian<'_, T>> = match here {
            true => sums.into_iter().map(Hermitian::Whole).collect(),
            false => mine.iter().map(|&s| Hermitian::Squares(panels[s].0, &panels[s].1)).collect(),
        };
        let found = eigh_all(&matrices, || device.dense_solver());
        let found = found.map(|all| all.into_iter().map(|(w, v)| (w, v.into())).collect());
        DensityMatrix::of_sums(block, device, found, (alike, shares))
    }

    /// The density matrix from what this rank has found in its sectors of a sum of squares, whose weights are negative
    /// by rounding only.
    pub(super) fn of_sums(
        block: Arc<ChainBlock<T>>,
        device: &Device,
        mut found: Result<Vec<(Vec<f64>, SectorEigenvectors<T>)>>,
        ranks: (Option<AlikeRanks>, Option<PieceShares>),
    ) -> Result<DensityMatrix<T>> {
        if let Ok(sectors) = &mut found {
            sectors.iter_mut().flat_map(|s| &mut s.0).for_each(|w| *w = w.max(0.0));
        }
        DensityMatrix::of_sectors(block, device, found, ranks, FLOOR)
    }

    /// The density matrix from what this rank has found in its sectors.
    fn of_sectors(
        block: Arc<ChainBlock<T>>,
        device: &Device,
        found: Result<Vec<(Vec<f64>, SectorEigenvectors<T>)>>,
        (alike, shares): (Option<AlikeRanks>, Option<PieceShares>),
        floor: f64,
    ) -> Result<DensityMatrix<T>> {
        let device = device.clone();
        let Some(shares) = shares else {
            let (weights, vectors): (Vec<_>, Vec<_>) = found?.into_iter().map(|(w, v)| (w, Some(v))).unzip();
            let trace = weights.iter().flatten().sum();
            return Ok(DensityMatrix { block, device, weights, vectors, alike, shares: None, trace, floor });
        };
        let (own, mut mine): (Result<Vec<_>>, _) = match found {
            Ok(found) => {
                let (weights, vectors): (Vec<Vec<f64>>, Vec<SectorEigenvectors<T>>) =
                    found.into_iter().unzip();
                let bytes = weights.iter().map(|w| bytemuck::cast_slice(w).into()).collect();
                (Ok(bytes), vectors.into_iter())
            }
            Err(e) => (Err(e), Vec::new().into_iter()),
        };
        let numbers = |bytes: &[u8]| bytes.chunks_exact(8).filter_map(f64::of).collect::<Vec<f64>>();
        let weights: Vec<Vec<f64>> = shares.joined(own)?.iter().map(|bytes| numbers(bytes)).collect();
        let vectors = (0..weights.len()).map(|s| if shares.owns(s) { mine.next() } else { None }).collect();
        let trace = weights.iter().flatten().sum();
        Ok(DensityMatrix { block, device, weights, vectors, alike, shares: Some(shares), trace, floor })
    }

    /// The density matrix of one half, by the singular values of one vector. Small weights keep their digits, and there
    /// are only as many vectors as singular values.
    ///
    /// # Errors
    /// For a vector that is zero or not finite.
    pub fn of_state(both: &Superblock<T>, x: &[T], side: ChainSide) -> Result<DensityMatrix<T>> {
        let block = both.half(side).clone();
        let space = block.space();
        let mut panels: Vec<Vec<MatRef<'_, T>>> = vec![Vec::new(); space.sectors()];
        for (pair, panel) in both.panels(x) {
            match side {
                ChainSide::Left => panels[pair.left].push(panel),
                ChainSide::Right => panels[pair.right].push(panel.transpose()),
            }
        }
        let jobs: Vec<(usize, Vec<MatRef<'_, T>>)> = space.dims().iter().copied().zip(panels).collect();
        let width = |of: &[MatRef<'_, T>]| of.iter().map(|m| m.ncols()).sum::<usize>();
        let cost = |(rows, of): &(usize, Vec<MatRef<'_, T>>)| {
            let columns = width(of);
            20.0 * (rows * columns * columns.min(*rows)) as f64
        };
        let device = both.device();
        let (alike, solving) = alike(device)?;
        let shares = shared(solving, jobs.iter().map(|job| cost(job) as u64));
        let own = |(sector, _): &(usize, _)| shares.as_ref().is_none_or(|shares| shares.owns(*sector));
        let mine: Vec<_> = jobs.iter().enumerate().filter(own).map(|(_, job)| job).collect();
        let sectors = deal(
            &mine,
            |job| cost(job),
            |(rows, of), _| {
                let mut whole = Mat::zeros(*rows, width(of));
                let mut at = 0;
                for m in of {
                    whole.as_mut().subcols_mut(at, m.ncols()).copy_from(m);
                    at += m.ncols();
                }
                let (u, s, _) = thin_svd(whole.as_ref())?;
                Ok((s.into_iter().map(|s| s * s).collect(), u.into()))
            },
        );
        let found = sectors.into_iter().collect::<Result<_>>();
        let rho = DensityMatrix::of_sectors(block, device, found, (alike, shares), SMALLEST)?;
        if !(rho.trace > 0.0) || !rho.trace.is_finite() {
            return Err(Error::numeric("the Schmidt decomposition of a vector that is zero or not finite"));
        }
        Ok(rho)
    }

    /// All weights above rounding, descending, divided by the trace; of a multiplet those of all its states.
    pub fn spectrum(&self) -> Vec<f64> {
        let mut all: Vec<f64> = Vec::new();
        for (sector, weights) in self.weights.iter().enumerate() {
            let copies = self.copies(sector);
            let own = weights.iter().map(|w| w / self.trace).filter(|w| *w > self.floor);
            let own: Vec<f64> = own.map(|w| w / copies).collect();
            (0..copies as usize).for_each(|_| all.extend(&own));
        }
        all.sort_by(|a, b| b.total_cmp(a));
        all
    }

    /// How many states each of the basis stands for.
    fn copies(&self, sector: usize) -> f64 {
        self.block.mpo().symmetry().multiplicity(self.block.label(sector))
    }

    /// The entanglement entropy `- sum w ln w`.
    pub fn entropy(&self) -> f64 {
        entropy(&self.spectrum())
    }

    /// The basis of the states with the largest weights.
    ///
    /// # Errors
    /// When no state would be left.
    pub fn truncate(&self, cut: &Truncation) -> Result<TruncatedBasis<T>> {
        let mut all = largest_first(self.weights.iter().map(|all| all.iter().map(|w| w / self.trace)));
        let spectrum: Vec<f64> = all.iter().map(|a| a.0).collect();
        let kept = count(&spectrum, cut, self.floor)?;
        // Where a multiplet is cut, rounding does not choose among its states.
        let same = |a: &(f64, usize, usize), b: &(f64, usize, usize)| a.0 - b.0 <= MULTIPLET * a.0;
        for multiplet in all.chunk_by_mut(same) {
            multiplet.sort_by_key(|&(_, sector, k)| (sector, k));
        }
        let space = self.block.space();
        let mut per_sector = vec![0; space.sectors()];
        all[..kept].iter().for_each(|&(_, sector, _)| per_sector[sector] += 1);
        let (low, energy) = match cut.low {
            0 => (vec![0; space.sectors()], BTreeMap::new()),
            _ => (self.low(cut, &per_sector), self.block.energy(&self.block.operators()?)),
        };
        before_threads(energy.values().flatten().filter_map(|f| f.matrix.as_ref()))?;
        let on_device = if cut.low == 0 { self.kept_on_device(space, &per_sector)? } else { None };
        let vectors: WholeMatrices<T> = match on_device {
            Some(vectors) => vectors,
            None => {
                let own = (0..space.sectors())
                    .filter_map(|s| self.kept(s, per_sector[s], low[s], &energy).transpose());
                let vectors: Vec<Mat<T>> = match &self.shares {
                    None => own.collect::<Result<_>>()?,
                    Some(shares) => {
                        let shape = |s: usize| (space.dim(s), per_sector[s] + low[s]);
                        let shapes: Vec<_> = (0..space.sectors()).map(shape).collect();
                        joined(&*self.device, shares, own.collect(), &shapes)?
                    }
                };
                vectors.into_iter().map(|m| Arc::new(m.into())).collect()
            }
        };
        let total: f64 = spectrum.iter().sum();
        let left_out: f64 = all[kept..].iter().map(|a| a.0).sum();
        Ok(TruncatedBasis {
            side: Some(self.block.half()),
            discarded: left_out / total,
            entropy: entropy(&spectrum) + all.iter().map(|a| a.0 * self.copies(a.1).ln()).sum::<f64>(),
            weights: spectrum[..kept].to_vec(),
            device: Some(self.device.clone()),
            alike: self.alike,
            ..TruncatedBasis::from_held(space, |s| Some(vectors[s].clone()))
        })
    }

    /// How many of the lowest states of the block's Hamiltonian each sector keeps among those that are discarded,
    /// nearest sectors first.
    fn low(&self, cut: &Truncation, kept: &[usize]) -> Vec<usize> {
        let space = self.block.space();
        let symmetry = self.block.mpo().symmetry();
        let weight = |s: usize| self.weights[s].iter().sum::<f64>() / self.trace;
        let occupied: Vec<usize> = (0..space.sectors()).filter(|&s| weight(s) > OCCUPIED).collect();
        let away = |s: usize| {
            occupied.iter().map(|&o| symmetry.distance(space.label(s), space.label(o))).min().unwrap_or(0)
        };
        let mut near: Vec<(i32, usize)> =
            (0..space.sectors()).map(|s| (away(s), s)).filter(|n| n.0 <= NEAR).collect();
        near.sort_unstable();
        let mut room = cut.states.unwrap_or(usize::MAX);
        let mut low = vec![0; space.sectors()];
        for (_, s) in near {
            low[s] = cut.low.min(self.weights[s].len() - kept[s]).min(room);
            room -= low[s];
        }
        low
    }

    /// The vectors that a sector keeps: those of the largest weights, and of the others the `low` lowest states of the
    /// block's Hamiltonian. None where the sector is another rank's.
    fn kept(&self, sector: usize, kept: usize, low: usize, energy: &Pieces<T>) -> Result<Option<Mat<T>>> {
        let Some(found) = &self.vectors[sector] else { return Ok(None) };
        let all = found.here()?;
        let old = all.subcols(0, kept);
        if low == 0 {
            return Ok(Some(old.to_owned()));
        }
        let rest = all.subcols(kept, all.ncols() - kept);
        let factors = energy.get(&(sector, sector)).map_or(&[][..], |f| f);
        let rows = all.nrows();
        let image = applied(factors, rows, rest, Par::Seq)?;
        let (_, mix) = eigh((rest.adjoint() * &image).as_ref(), Par::Seq)?;
        let lowest = rest * mix.as_ref().subcols(0, low);
        let both = |i, j| if j < kept { old[(i, j)] } else { lowest[(i, j - kept)] };
        Ok(Some(Mat::from_fn(rows, kept + low, both)))
    }
}

/// An error for a state without a density matrix.
pub(super) fn vanishes() -> Error {
    Error::numeric("the density matrix of a vector that is zero or not finite")
}

/// Multiplications for the sector of a density matrix, of so many rows and columns of its states.
pub(super) fn work_of(rows: usize, columns: usize) -> u64 {
    (rows * rows * (columns + 9 * rows)) as u64
}

/// Who diagonalises which sector; none if every rank does all.
pub(super) fn shared(alike: Option<AlikeRanks>, works: impl Iterator<Item = u64>) -> Option<PieceShares> {
    let works: Vec<u64> = works.collect();
    alike.filter(|alike| alike.pays(works.iter().sum())).map(|alike| alike.shares(&works))
}

/// The weights of all sectors, the largest first: each with its sector and its number there.
pub(super) fn largest_first<W: Iterator<Item = f64>>(
    sectors: impl Iterator<Item = W>,
) -> Vec<(f64, usize, usize)> {
    let of_sector = |(sector, weights): (usize, W)| weights.enumerate().map(move |(k, w)| (w, sector, k));
    let mut all: Vec<(f64, usize, usize)> = sectors.enumerate().flat_map(of_sector).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    all
}

/// How many of the weights, which descend, are kept; those below `floor` are rounding.
pub(super) fn count(spectrum: &[f64], cut: &Truncation, floor: f64) -> Result<usize> {
    let above = spectrum.iter().take_while(|w| **w > floor).count().max(1);
    let least = cut.at_least.min(spectrum.len());
    let most = cut.states.unwrap_or(usize::MAX).min(above.max(least));
    if most == 0 {
        return Err(Error::input("a truncation to 0 states leaves nothing").hint("keep one state at least"));
    }
    let mut kept = above;
    let mut lost = 0.0;
    while kept > 1 && lost + spectrum[kept - 1] <= cut.cutoff {
        lost += spectrum[kept - 1];
        kept -= 1;
    }
    if let Some(most_lost) = cut.information {
        let whole = entropy(spectrum);
        let enough = |n: usize| {
            let sum: f64 = spectrum[..n].iter().sum();
            let rest: Vec<f64> = spectrum[..n].iter().map(|w| w / sum).collect();
            whole - entropy(&rest) <= most_lost
        };
        let (mut low, mut high) = (1, above);
        while low < high {
            let middle = (low + high) / 2;
            if enough(middle) { high = middle } else { low = middle + 1 }
        }
        kept = if cut.cutoff > 0.0 { kept.max(low) } else { low };
    }
    kept = kept.max(least).min(most);
    // A multiplet is kept whole, or, where that are too many states, discarded whole, unless too little would be left.
    let same = |n: usize| {
        n > 0 && n < spectrum.len() && spectrum[n - 1] - spectrum[n] <= MULTIPLET * spectrum[n - 1]
    };
    let mut whole = kept;
    while whole < most.min(above) && same(whole) {
        whole += 1;
    }
    if !same(whole) {
        return Ok(whole);
    }
    whole = kept;
    while whole > 1 && same(whole) {
        whole -= 1;
    }
    Ok(if !same(whole) && whole * 4 >= kept * 3 { whole.max(least.min(most)) } else { kept })
}

/// `- sum w ln w`.
pub(super) fn entropy(weights: &[f64]) -> f64 {
    weights.iter().filter(|w| **w > 0.0).map(|w| -w * w.ln()).sum()
}

/// White's noise: the density matrices of the states after the operators that couple to the other half.
struct Noise<'a, T> {
    both: &'a Superblock<T>,
    states: &'a [Vec<T>],
    weights: &'a [f64],
    side: ChainSide,
    noise: f64,
}

impl<T: Element> Noise<'_, T> {
    /// Adds it to the density matrices of the sectors that this rank has, whose numbers are in `place`.
    fn add(&self, sums: &mut [Mat<T>], place: &[Option<usize>], shared: bool) -> Result<()> {
        let block = self.both.half(self.side);
        let operators = self.both.operators(self.side);
        let bond = block.mpo().bond(block.bond());
        let identity = match self.side {
            ChainSide::Left => bond.start,
            ChainSide::Right => bond.done,
        };
        let symbols: Vec<usize> = (0..bond.charges.len()).filter(|&k| Some(k) != identity).collect();
        for &symbol in &symbols {
            let (mut images, mut sizes) = (Vec::new(), Vec::new());
            // All ranks number the images of all, so that their sizes are added in one order.
            let mut number = 0;
            let pieces = block.by_sectors(operators, symbol);
            before_threads(pieces.values().flatten().filter_map(|f| f.matrix.as_ref()))?;
            for ((row, column), factors) in pieces {
                for (x, &weight) in self.states.iter().zip(self.weights) {
                    for (pair, panel) in self.both.panels(x) {
                        let (own, m) = match self.side {
                            ChainSide::Left => (pair.left, panel),
                            ChainSide::Right => (pair.right, panel.transpose()),
                        };
                        if own != column {
                            continue;
                        }
                        if let Some(at) = place[row] {
                            let image = applied(&factors, block.space().dim(row), m, Par::Seq)?;
                            sizes.push((number, weight * square(image.as_ref())));
                            images.push((at, image, weight));
                        }
                        number += 1;
                    }
                }
            }
            if shared {
                sizes = ranks::joined(Ok(sizes))?;
                sizes.sort_by_key(|size| size.0);
            }
            // Operators grow with the length of the block: each is normalised to the same weight.
            let size: f64 = sizes.iter().map(|size| size.1).sum();
            if size > 1e-20 {
                let each = self.noise / (symbols.len() as f64 * size);
                images
                    .iter()
                    .for_each(|(at, y, w)| add_square(&mut sums[*at], y.as_ref(), each * w, Par::Seq));
            }
        }
        Ok(())
    }
}
