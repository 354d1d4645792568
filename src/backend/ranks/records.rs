//! The records of a superblock divided between the ranks. Every rank holds the whole vectors, computes some blocks of a
//! product, and gets the other blocks from the other ranks. The largest blocks are assigned first, always to the rank
//! with the least work. One rank computes a block, so a product has the same bits for any number of ranks.

use std::ops::Range;
use std::sync::Arc;

use super::held::OwnRows;
use super::rows::HostEnds;
use super::{MANY_NUMBERS, Ranks, Team, together};
use crate::backend::cut::RowCut;
use crate::backend::exchange::{Halo, KeptForPasses, VectorShape, through_host};
use crate::backend::matrix::Csr;
use crate::backend::matrix::outer::{OuterSums, Superblocks};
use crate::backend::matrix::records::{BasisChange, Element, Handling, RecordList, Records};
use crate::backend::{
    BlockVector, Device, Distributed, Dots, Kernel, KernelInfo, KernelShape, MatrixSpec, Rows, Update,
    check_update,
};
use crate::error::Result;
use crate::number::C64;
use crate::ranks::{self, AlikeRanks, owners};

/// Words of one message: the library counts bytes with 32 bits.
const ROUND: usize = 1 << 27;

/// A superblock of whose product every rank computes a part.
struct RankSuperblock {
    team: Team,
    device: Device,
    /// The blocks that this rank computes.
    own: Arc<dyn Kernel>,
    /// Its rows, and those of each other rank.
    halo: Halo,
    /// What comes from the others is added by this.
    identity: Arc<dyn Kernel>,
    info: KernelInfo,
    kept: KeptForPasses<HostEnds>,
}

impl Ranks {
    /// A superblock whose vectors are spread over the ranks' cards, where that pays.
    pub(super) fn spread_records(&self, spec: &MatrixSpec) -> Result<Option<Arc<dyn Kernel>>> {
        let MatrixSpec::Records { records, handling } = spec else { return Ok(None) };
        let rows = records.dim();
        // Ranks whose backends differ have blocks that differ by rounding.
        if rows < self.many || !self.kinds()?.0 || !self.together.is_possible()? {
            return Ok(None);
        }
        let cut = self.cut(rows, None, || Ok(RowCut::ranges(rows, self.team.place())))?;
        together::prepare(self.team, &self.places.device, &self.together, cut, records, *handling)
    }

    /// Whether the rows of a vector come together on cards, and are so many that it pays.
    pub(super) fn meet(&self, own: &OwnRows) -> Result<bool> {
        let shared = self.mixed().is_none() && own.cut.holders().len() == own.cut.parts;
        let many = shared && own.cut.rows >= MANY_NUMBERS && own.cut.ranges_of_all().is_some();
        Ok(many && self.together.is_possible()?)
    }

    /// All rows of a vector, on every rank's card; none where they do not come together there.
    pub(super) fn brought(&self, own: &OwnRows) -> Result<Option<BlockVector>> {
        if !self.meet(own)? {
            return Ok(None);
        }
        // What has come together is written over by what comes next.
        self.together
            .with(&own.cut, &own.block, |all| self.places.device.columns(all, 0..all.columns))
            .map(Some)
    }

    /// Numbers of all ranks one after the other, of which this rank has `own`, on every rank's card; none where they do
    /// not come together there, or are few.
    pub(super) fn put_together(&self, own: &BlockVector, starts: &[usize]) -> Result<Option<BlockVector>> {
        let many = starts.last().is_some_and(|all| *all >= MANY_NUMBERS);
        if !many || !self.together.is_possible()? {
            return Ok(None);
        }
        let cut = Arc::new(RowCut::at(starts.to_vec(), self.team.place()));
        self.together.with(&cut, own, |all| self.places.device.columns(all, 0..1)).map(Some)
    }

    /// All rows of a vector, on every rank.
    pub(super) fn gathered(&self, own: &OwnRows, columns: usize) -> Result<Vec<C64>> {
        if self.meet(own)? {
            return self.together.with(&own.cut, &own.block, |all| self.places.device.download(all));
        }
        self.team.gathered(&self.places.device, own, columns)
    }

    /// Whether the ranks' backends are the same, and whether they are cards, which are through with their work before
    /// what others have done has passed their hosts.
    pub(super) fn kinds(&self) -> Result<(bool, bool)> {
        if let Some(kinds) = self.kinds.get() {
            return Ok(*kinds);
        }
        if self.mixed().is_some() {
            return Ok((false, false));
        }
        let all = self.team.world.gather(self.places.device.describe().into_bytes())?;
        let same = all.windows(2).all(|pair| pair[0] == pair[1]);
        let card = through_host(&self.places.device)?.staging(size_of::<u64>())?.is_some();
        Ok(*self.kinds.get_or_init(|| (same, card)))
    }

    /// A superblock shared out, where that pays.
    pub(super) fn shared_records(&self, spec: &MatrixSpec) -> Result<Option<Arc<dyn Kernel>>> {
        let MatrixSpec::Records { records, handling } = spec else { return Ok(None) };
        let (team, device, handling) = (self.team, &self.places.device, *handling);
        let Some(alike) = self.alike()? else { return Ok(None) };
        match records {
            Records::Real(list) => prepare(team, device, list, handling, alike),
            Records::Complex(list) => prepare(team, device, list, handling, alike),
        }
    }
}

impl Superblocks for Ranks {
    /// This rank's rows, or all of them where it has these.
    fn outer(&self, sums: &OuterSums, range: Range<usize>) -> Result<Option<BlockVector>> {
        if let Some(lone) = self.lone_rank() {
            return self.outer_of_one(lone, sums, range);
        }
        let Some(device) = self.places.device.superblocks() else { return Ok(None) };
        let cut = self.cut_of(&Rows::all(sums.dim))?;
        if cut.is_whole() {
            return device.outer(sums, range);
        }
        let Some(ranges) = cut.ranges_of_all().filter(|_| range.len() == sums.dim) else { return Ok(None) };
        let own = device.outer(sums, ranges.own())?;
        Ok(own.map(|own| self.places.wrap(cut, Rows::all(sums.dim), own)))
    }

    /// Each rank's card turns some of them, and all of them come together where they are downloaded.
    fn turned(&self, turns: &[BasisChange<'_, f64>]) -> Result<Option<BlockVector>> {
        if let Some(lone) = self.lone_rank() {
            return self.turned_by_one(lone, turns);
        }
        let turned =
            |turns: &[_]| self.places.device.superblocks().map_or(Ok(None), |device| device.turned(turns));
        let numbers: usize = turns.iter().map(BasisChange::numbers).sum();
        if numbers < MANY_NUMBERS || !self.kinds()?.0 || !self.together.is_possible()? {
            return turned(turns);
        }
        let (own, starts) = BasisChange::shared(turns, self.team.place());
        let Some(block) = ranks::agreed(turned(own))? else { return Ok(None) };
        let cut = RowCut::at(starts, self.team.place());
        Ok(Some(self.places.wrap(Arc::new(cut), Rows::all(numbers), block)))
    }
}

/// Prepares this rank's part of a superblock; none where sharing it out does not pay. `alike`: whether all ranks
/// compute with the same bits, so that what they decide by numbers of their own is the same.
fn prepare<T: Element>(
    team: Team,
    device: &Device,
    list: &Arc<RecordList<T>>,
    handling: Handling,
    alike: AlikeRanks,
) -> Result<Option<Arc<dyn Kernel>>> {
    let (rank, ranks) = team.place();
    let works = list.works();
    if list.dim == 0 || !alike.pays(works.iter().sum()) {
        return Ok(None);
    }
    let owners = owners(&works, ranks);
    let mut part = RecordList::clone(list);
    for (records, _) in part.records.iter_mut().zip(&owners).filter(|(_, owner)| **owner != rank) {
        records.clear();
    }
    let own = device.prepare(MatrixSpec::Records { records: T::wrap(Arc::new(part)), handling })?;
    let mut rows = vec![Vec::new(); ranks];
    for (panel, &owner) in list.panels.iter().zip(&owners) {
        rows[owner].extend(panel.offset..panel.offset + panel.rows * panel.columns);
    }
    let sends = vec![std::mem::take(&mut rows[rank])];
    rows.remove(rank);
    let halo = Halo { sends, receives: rows.iter().map(Vec::len).collect(), boundary: rows.concat() };
    let identity = device.prepare(MatrixSpec::Csr(Arc::new(Csr::identity(halo.boundary.len()))))?;
    let (device, info, kept) = (device.clone(), list.info(), KeptForPasses::default());
    Ok(Some(Arc::new(RankSuperblock { team, device, own, halo, identity, info, kept })))
}

impl RankSuperblock {
    /// `w = A v`.
    fn product(&self, v: &BlockVector, w: &mut BlockVector) -> Result<()> {
        self.own.update(Update::PRODUCT, v, w, None)?;
        let (shape, world) = (VectorShape::of(w), self.team.world);
        let kept = self.kept.take(shape).map_or_else(|| HostEnds::new(&self.device, &self.halo, shape), Ok);
        let mut ends = kept?;
        ends.out = ends.collected(w)?;
        // One message: as many words from each rank as the longest needs, and before them how many bytes are its own.
        let bytes = |rows: usize| shape.bytes(rows);
        let mine = bytes(self.halo.sends[0].len());
        let lengths: Vec<usize> = self.halo.receives.iter().map(|rows| bytes(*rows)).collect();
        let words = lengths.iter().copied().fold(mine, usize::max).div_ceil(8);
        let mut own = vec![0u64; 1 + words];
        own[0] = mine as u64;
        bytemuck::cast_slice_mut::<u64, u8>(&mut own[1..])[..mine]
            .copy_from_slice(&ends.out[0].bytes()[..mine]);
        let mut all = vec![Vec::with_capacity(own.len()); world.size()];
        for piece in own.chunks(ROUND) {
            let gathered = world.gather_words(piece.to_vec())?;
            all.iter_mut().zip(gathered.chunks_exact(piece.len())).for_each(|(of, part)| of.extend(part));
        }
        all.remove(world.rank());
        for (from, (mut memory, rows)) in std::mem::take(&mut ends.into).into_iter().zip(all).enumerate() {
            if rows[0] != lengths[from] as u64 {
                return Err(ranks::apart(" in a superblock"));
            }
            memory.bytes_mut()[..lengths[from]]
                .copy_from_slice(&bytemuck::cast_slice::<u64, u8>(&rows[1..])[..lengths[from]]);
            ends.port.deliver(from, memory)?;
        }
        ends.port.add(1.0, &*self.identity, w, None)?;
        ends.released(self.halo.receives.len())?;
        self.kept.put(shape, ends);
        Ok(())
    }
}

impl Kernel for RankSuperblock {
    fn shape(&self) -> KernelShape {
        self.own.shape()
    }

    fn info(&self) -> KernelInfo {
        self.info.clone()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        let real = |x: f64| [C64::new(x, 0.0)];
        if c.gamma == 0.0 {
            self.product(v, w)?;
            if (c.alpha, c.beta) != (1.0, 0.0) {
                self.device.axpby(&real(c.beta), v, &real(c.alpha), w)?;
            }
        } else {
            let mut product = self.device.zeros(w.dtype, w.rows, w.columns)?;
            self.product(v, &mut product)?;
            self.device.axpby(&real(c.alpha), &product, &real(c.gamma), w)?;
            self.device.axpby(&real(c.beta), v, &real(1.0), w)?;
        }
        if let Some(dots) = dots {
            *dots = Dots::taken(&*self.device, v, w)?;
        }
        Ok(())
    }
}
