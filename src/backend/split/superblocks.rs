//! Superblocks on cards: one part, the primary one, keeps the results. For a large superblock every card of this kind
//! has some rows of the vectors and computes these rows of a product. It needs all rows of the vector, which are
//! collected on every card (as for ranks, `ranks/together.rs`).

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::kernel::LINKED;
use super::{Helpers, Slab, SplitBackend, cut_differently, cut_of, pieces, pieces_mut, total};
use crate::backend::cut::RowCut;
use crate::backend::cut::lattice::by_weight;
use crate::backend::exchange::{self, Assembly, Ranges, VectorShape};
use crate::backend::matrix::held::{Composed, DeviceNumbers, MatrixKeeper, Square};
use crate::backend::matrix::outer::{OuterSums, Superblocks};
use crate::backend::matrix::records::{BasisChange, Handling, Records};
use crate::backend::{
    BlockVector, DenseMut, Device, Dots, Kernel, KernelInfo, KernelShape, Rows, Storage, Update, Vectors,
    check_update,
};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// Rows from which a superblock's vectors are spread over cards, and from which where weights are set by hand: of 705
/// 432 two cards gain nothing.
const MANY_ROWS: usize = 1 << 20;
const BY_HAND: usize = 1 << 12;

/// Rows of a matrix from which another card finds its eigenvectors where it gets it by way of the host: below,
/// the way takes as long.
const LARGE: usize = 512;

/// Cards that bring together what each has of a vector, with the ends of their exchange,
/// kept for the next vector of the same shape.
#[derive(Clone)]
pub(super) struct CardAssembly {
    parts: Vec<(usize, Device)>,
    helpers: Arc<Helpers>,
    kept: Arc<Mutex<Option<CardEnds>>>,
}

/// What the ends of an exchange are for, and they themselves, one a card.
type CardEnds = (Arc<RowCut>, VectorShape, Vec<Box<dyn Assembly>>);

impl CardAssembly {
    /// Of these parts, by their numbers.
    pub fn new(parts: Vec<(usize, Device)>, helpers: Arc<Helpers>) -> CardAssembly {
        CardAssembly { parts, helpers, kept: Arc::default() }
    }

    /// The ranges of the cards, as one of them sees them; none where other parts have rows, or rows are not ranges.
    fn ranges(&self, cut: &RowCut, at: usize) -> Option<Ranges> {
        let of_all = cut.ranges_of_all()?;
        let mut starts: Vec<usize> = self.parts.iter().map(|(part, _)| of_all.of(*part).start).collect();
        starts.push(cut.rows);
        let whole =
            |(k, (part, _)): (usize, &(usize, Device))| of_all.of(*part) == (starts[k]..starts[k + 1]);
        self.parts.iter().enumerate().all(whole).then(|| Ranges::new(starts.clone(), at))
    }

    /// The ends of all cards; none where they do not reach each other.
    fn make(&self, cut: &RowCut, shape: VectorShape) -> Result<Option<Vec<Box<dyn Assembly>>>> {
        let mut ends = Vec::with_capacity(self.parts.len());
        for (at, (_, device)) in self.parts.iter().enumerate() {
            let (Some(ranges), Some(peer)) = (self.ranges(cut, at), device.peer_exchange()) else {
                return Ok(None);
            };
            ends.push(peer.assembly(&ranges, shape)?);
        }
        // A card's offers are for the others, in their order.
        let offers: Vec<Vec<Vec<u8>>> = ends.iter().map(|end| end.offers()).collect();
        for (at, end) in ends.iter_mut().enumerate() {
            let Some(ranges) = self.ranges(cut, at) else { return Ok(None) };
            let mine = ranges.others().map(|from| offers[from][ranges.place_among_others_of(from)].clone());
            let mine: Vec<Vec<u8>> = mine.collect();
            if !end.accept(&mine)? {
                return Ok(None);
            }
        }
        Ok(Some(ends))
    }

    /// Whether the cards bring vectors with such rows together.
    ///
    /// # Errors
    /// Those of the devices.
    pub fn fits(&self, cut: &RowCut) -> Result<bool> {
        let shape = VectorShape { dtype: DType::F64, columns: 1, grid: None };
        Ok(self.parts.len() > 1 && self.ranges(cut, 0).is_some() && self.make(cut, shape)?.is_some())
    }

    /// Calls `f` for every card with all rows of `v` and with a job of its own:
    /// on a thread each if it waits for the card.
    fn with<J: Send, R: Send>(
        &self,
        v: &BlockVector,
        waits: bool,
        jobs: Vec<J>,
        f: impl Fn(&Device, &BlockVector, &BlockVector, J) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let (cut, own) = (cut_of(v)?, pieces(v)?);
        let Some(shape) = own.first().map(|piece| VectorShape::of(&piece.block)) else {
            return Err(cut_differently());
        };
        // A kernel that waits for rows holds its card: those of two threads, in another order on each card,
        // would wait for each other.
        let _turn = LINKED.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.take().filter(|(of, shaped, _)| of == cut && *shaped == shape);
        let mut ends = match known {
            Some((.., ends)) => ends,
            None => self.make(cut, shape)?.ok_or_else(|| Error::internal("cards that lost each other"))?,
        };
        if own.len() != ends.len() || jobs.len() != ends.len() {
            return Err(cut_differently());
        }
        ends.iter_mut().zip(own).try_for_each(|(end, piece)| end.send(&piece.block))?;
        let brought = ends.iter_mut().map(|end| end.all()).collect::<Result<Vec<_>>>()?;
        let jobs = brought.iter().zip(own).zip(&self.parts).zip(jobs).collect();
        let found = self
            .helpers
            .each(waits, jobs, |(((all, piece), (_, device)), job)| f(device, &piece.block, all, job));
        *kept = Some((cut.clone(), shape, ends));
        found
    }
}

/// A superblock of whose product every card computes its rows.
struct CardSuperblock {
    together: CardAssembly,
    cut: Arc<RowCut>,
    /// The rows of each card, from all rows of a vector.
    own: Vec<Arc<dyn Kernel>>,
    /// Whether operators travel, so that a product waits for its card.
    travels: bool,
    shape: KernelShape,
    info: KernelInfo,
}

impl Kernel for CardSuperblock {
    fn shape(&self) -> KernelShape {
        self.shape
    }

    fn info(&self) -> KernelInfo {
        self.info.clone()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        if *cut_of(v)? != self.cut || *cut_of(w)? != self.cut {
            return Err(cut_differently());
        }
        let taken = dots.is_some();
        let jobs = self.own.iter().zip(pieces_mut(w)?).collect();
        let sums = self.together.with(
            v,
            taken || self.travels,
            jobs,
            |device, v, all, (own, to): (&Arc<dyn Kernel>, _)| {
                let w = &mut to.block;
                exchange::rows_of_all(device, &**own, c, (all, v), w)?;
                taken.then(|| Dots::taken(&**device, v, w)).transpose()
            },
        )?;
        if let Some(dots) = dots {
            let sum = |of: fn(&Dots) -> &Vec<f64>| -> Vec<f64> {
                let parts = sums.iter().flatten().map(|d| of(d).iter().map(|x| C64::from(*x)).collect());
                total(parts.collect()).iter().map(|z| z.re).collect()
            };
            *dots = Dots { vv: sum(|d| &d.vv), wv: sum(|d| &d.wv), partial: false };
        }
        Ok(())
    }
}

impl SplitBackend {
    /// The part where matrices of superblocks are kept.
    fn home(&self) -> &Device {
        &self.parts[self.cuts.shares.primary]
    }

    /// A block of the part where matrices are kept.
    fn at_home<'a>(&self, v: &'a BlockVector) -> Result<Option<&'a BlockVector>> {
        Ok(match &v.storage {
            Storage::Split(_) => match pieces(v)? {
                [piece] if piece.part == self.cuts.shares.primary => Some(&piece.block),
                _ => None,
            },
            // What it has made by itself.
            _ => Some(v),
        })
    }

    /// All rows of a column, on the part where matrices are kept; none where they do not come together there.
    pub(super) fn rows_at_home(&self, v: &BlockVector) -> Result<Option<BlockVector>> {
        if let Some(block) = self.at_home(v)? {
            return self.home().all_rows(block);
        }
        if self.together.ranges(cut_of(v)?, 0).is_none() || pieces(v)?.len() != self.together.parts.len() {
            return Ok(None);
        }
        let at = self.together.parts.iter().position(|(part, _)| *part == self.cuts.shares.primary);
        let jobs = (0..self.together.parts.len()).collect();
        // What has come together is written over by what comes next.
        let found = self.together.with(v, false, jobs, |device, _, all, k| {
            (Some(k) == at).then(|| device.columns(all, 0..all.columns)).transpose()
        })?;
        Ok(found.into_iter().flatten().next())
    }

    /// Numbers of a real column, where a part has all of them.
    pub(super) fn reals_at_home(&self, v: &BlockVector) -> Result<Option<Vec<f64>>> {
        match self.at_home(v)? {
            Some(block) => self.home().download_real(block),
            None => Ok(None),
        }
    }

    /// Some numbers of a real column.
    pub(super) fn part_at_home(&self, v: &BlockVector, range: Range<usize>) -> Result<Vec<f64>> {
        match self.at_home(v)? {
            Some(block) => self.home().download_part(block, range),
            None => Ok(self.download(v)?[range].iter().map(|z| z.re).collect()),
        }
    }

    /// A superblock whose vectors are spread over cards; none where that does not pay.
    pub(super) fn spread(&self, records: &Records, handling: Handling) -> Result<Option<Arc<dyn Kernel>>> {
        let (rows, team) = (records.dim(), &self.together.parts);
        let least = if self.cuts.shares.by_hand().is_some() { BY_HAND } else { MANY_ROWS };
        if team.len() < 2 || self.home().keeper().is_none() || rows < least {
            return Ok(None);
        }
        // Vectors are not spread before it is known that they can be brought together.
        let wanted = by_weight(rows, &self.cuts.shares.of_one_kind(), None);
        if !self.together.fits(&wanted)? {
            return Ok(None);
        }
        let cut = self.cuts.keep(wanted)?;
        if self.together.ranges(&cut, 0).is_none() {
            return Ok(None);
        }
        let mut own = Vec::with_capacity(team.len());
        for (at, (_, device)) in team.iter().enumerate() {
            let (Some(ranges), Some(peer)) = (self.together.ranges(&cut, at), device.peer_exchange()) else {
                return Ok(None);
            };
            own.push(peer.prepare_rows(records, ranges.own(), handling)?);
        }
        let mut info = match records {
            Records::Real(list) => list.info(),
            Records::Complex(list) => list.info(),
        };
        info.bytes = own.iter().map(|kernel| kernel.info().bytes).sum();
        let shape = KernelShape::square(Rows::all(rows), own[0].dtype());
        let (together, travels) = (self.together.clone(), handling.room.is_some());
        Ok(Some(Arc::new(CardSuperblock { together, cut, own, travels, shape, info })))
    }
}

impl Superblocks for SplitBackend {
    fn outer(&self, sums: &OuterSums, range: Range<usize>) -> Result<Option<BlockVector>> {
        let rows = Rows::all(sums.dim);
        let cut = self.cuts.of_rows(&self.parts, &rows)?;
        let Some(ranges) = cut.ranges_of_all().filter(|_| range.len() == sums.dim) else { return Ok(None) };
        let mut list = Vec::new();
        for part in cut.holders() {
            let Some(faster) = self.parts[part].superblocks() else { return Ok(None) };
            let Some(block) = faster.outer(sums, ranges.of(part))? else { return Ok(None) };
            list.push(Slab { part, block });
        }
        let dtype = list.first().map_or(DType::F64, |piece| piece.block.dtype);
        Ok(Some(BlockVector { dtype, rows, columns: 1, storage: self.stored(cut, list) }))
    }

    /// By one card: the others would need copies of the matrices, which take as long.
    fn turned(&self, turns: &[BasisChange<'_, f64>]) -> Result<Option<BlockVector>> {
        self.home().superblocks().map_or(Ok(None), |home| home.turned(turns))
    }
}

/// What one card keeps; eigenvectors are found by all cards of its kind.
pub(super) struct Keeping {
    /// Itself and the others.
    cards: Vec<Device>,
    /// The work that each has begun, in cubes of the rows of its matrices.
    at_work: Mutex<Vec<f64>>,
}

impl Keeping {
    /// None where the part keeps no matrices.
    pub fn new(home: &Device, others: impl Iterator<Item = Device>) -> Option<Keeping> {
        home.keeper()?;
        let cards: Vec<Device> = std::iter::once(home.clone()).chain(others).collect();
        Some(Keeping { at_work: Mutex::new(vec![0.0; cards.len()]), cards })
    }

    fn home(&self) -> &Device {
        &self.cards[0]
    }

    fn keeper(&self) -> Result<&dyn MatrixKeeper> {
        self.home().keeper().ok_or_else(|| Error::internal("a part that keeps no matrices any more"))
    }
}

impl MatrixKeeper for Keeping {
    fn keep(&self, numbers: &Arc<DeviceNumbers>) -> Result<()> {
        self.keeper()?.keep(numbers)
    }

    fn composed(&self, all: &[Composed<'_>]) -> Result<BlockVector> {
        self.keeper()?.composed(all)
    }

    fn squares(&self, all: &[(usize, Vec<Square<'_>>)]) -> Result<BlockVector> {
        self.keeper()?.squares(all)
    }

    fn replace(&self, block: &BlockVector, first: usize, numbers: &[f64]) -> Result<()> {
        self.keeper()?.replace(block, first, numbers)
    }

    /// By the card that has least to do.
    fn eigh(&self, rows: usize, block: &BlockVector, first: usize) -> Result<Option<Vec<f64>>> {
        let work = (rows as f64).powi(3);
        let busy = || self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        // Chosen and entered in one go: matrices of several threads come at the same time.
        let least = {
            let mut busy = busy();
            let least = (0..busy.len()).min_by(|a, b| busy[*a].total_cmp(&busy[*b])).unwrap_or(0);
            busy[least] += work;
            least
        };
        let found = if least == 0 {
            self.keeper().and_then(|keeper| keeper.eigh(rows, block, first))
        } else {
            self.elsewhere(&self.cards[least], rows, block, first)
        };
        busy()[least] -= work;
        found
    }

    fn solvers(&self) -> usize {
        self.cards.len()
    }
}

impl Keeping {
    /// By another card, which takes the matrix from where it is, or gets it by way of the host.
    fn elsewhere(
        &self,
        card: &Device,
        rows: usize,
        block: &BlockVector,
        first: usize,
    ) -> Result<Option<Vec<f64>>> {
        if let Some(keeper) = card.keeper()
            && let Some(values) = keeper.eigh_for_other(rows, block, first)?
        {
            return Ok(Some(values));
        }
        let Some(solver) = card.dense_solver().filter(|_| rows >= LARGE) else {
            return self.keeper()?.eigh(rows, block, first);
        };
        let mut numbers = self.home().download_part(block, first..first + rows * rows)?;
        let values = solver.eigh(rows, DenseMut::Real(&mut numbers))?;
        self.replace(block, first, &numbers)?;
        Ok(Some(values))
    }
}
