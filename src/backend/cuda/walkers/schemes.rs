//! Trial points, and the schemes that decide one by one, all at once, as a whole and in groups (`kernels/walkers.cu`,
//! `groups.cu`).

use super::expanded::Expanded;
use super::layout::GroupArgument;
use super::{CudaWalkers, THREADS, WARPS, arguments};
use crate::backend::cuda::card::CardBuffer;
use crate::backend::walkers::{MOST_OF_A_GROUP, ScreenRule};
use crate::error::Result;

/// Electrons of a group at most.
const MOST: usize = MOST_OF_A_GROUP;

/// Bytes of the kernels' record of what was accepted of a group.
const ACCEPTED: usize = 4 * (2 + 2 * MOST);

/// What is known at trial points, for decisions about whole configurations.
pub(super) struct TrialData {
    sum: Expanded,
    inverse: [CardBuffer; 2],
    /// What inversions there tell, which nobody asks for: a node is a configuration that is not taken.
    control: CardBuffer,
}

impl TrialData {
    pub fn new(resident: &CudaWalkers) -> Result<TrialData> {
        let card = &resident.card;
        let room = |s: usize| card.allocate(resident.spins[s].inverse.bytes);
        let sum = resident.sum.another(card, resident.walk.walkers as usize)?;
        let control = card.allocate(resident.control.bytes)?;
        card.clear(&control)?;
        Ok(TrialData { sum, inverse: [room(0)?, room(1)?], control })
    }
}

/// Room for delayed acceptance.
pub(super) struct Grouped {
    order: CardBuffer,
    square: CardBuffer,
    inner: CardBuffer,
    change: CardBuffer,
    delta: CardBuffer,
    parts: CardBuffer,
    accepted: CardBuffer,
    x: CardBuffer,
    old: CardBuffer,
}

impl Grouped {
    pub fn new(resident: &CudaWalkers) -> Result<Grouped> {
        let (card, walk, number) = (&resident.card, resident.walk, resident.number());
        let walkers = walk.walkers as usize;
        let matrices = resident.spins.iter().map(|spin| resident.matrices(spin)).sum::<u32>() as usize;
        let n = resident.spins.iter().map(|spin| spin.n).max().unwrap_or(0) as usize;
        Ok(Grouped {
            order: card.allocate(walkers * walk.electrons as usize * 4)?,
            square: card.allocate(matrices * MOST * MOST * number)?,
            inner: card.allocate(matrices * MOST * MOST * number)?,
            change: card.allocate(walkers * MOST * 8)?,
            delta: card.allocate(walkers * MOST * MOST * 8)?,
            parts: card.allocate(matrices * (MOST + 1) * 16)?,
            accepted: card.allocate(walkers * ACCEPTED)?,
            x: card.allocate(matrices * MOST * n * number)?,
            old: card.allocate(matrices * MOST * n * number)?,
        })
    }
}

impl CudaWalkers {
    /// Draws trial points, and finds what the proposals add to the odds.
    pub(super) fn trial(&self, drift: bool) -> Result<()> {
        let blocks = self.blocks(self.walk.walkers as usize * self.walk.electrons as usize);
        let walk = self.walk;
        let derived = self.derived.as_ref().filter(|_| drift);
        let from = derived.map_or(0, |d| d.drift[0].address);
        if let Some(derived) = derived {
            self.drift(derived, false)?;
        }
        // SAFETY: the kernel's arguments.
        unsafe { self.card.launch("walk_trial", (blocks, 1), THREADS, &arguments![walk, from])? };
        let Some(derived) = derived else { return Ok(()) };
        self.drift(derived, true)?;
        let to = derived.drift[1].address;
        // SAFETY: as above.
        unsafe { self.card.launch("walk_bias", (blocks, 1), THREADS, &arguments![walk, from, to]) }
    }

    pub(super) fn one_by_one(&self) -> Result<()> {
        self.moves.locate()?;
        let s = &self.scratch;
        let (row, ratios, u) = (s.rows.address, s.ratios.address, s.row.address);
        let (walk, sum) = (self.walk, self.sum.own);
        for (which, spin) in self.filled() {
            let (n, first, inverse) = (spin.n, spin.first, spin.inverse.address);
            let matrices = self.matrices(spin);
            for own in 0..n {
                self.moves.values_of((first + own) * walk.walkers, walk.walkers)?;
                self.rows("rows", &*self.moves, walk, spin, own, 1, &s.rows)?;
                let grid = (n.div_ceil(WARPS), matrices);
                // SAFETY: of all launches, the kernel's arguments; a row of n numbers for every filling and walker.
                unsafe {
                    self.launch("walk_ratios", grid, THREADS, &arguments![row, inverse, n, ratios])?;
                    let arguments = arguments![walk, sum, which, ratios, inverse, n, first, own, u];
                    self.launch("walk_one", (walk.walkers, 1), THREADS, &arguments)?;
                    let arguments = arguments![walk, ratios, u, n, first, own, inverse];
                    self.launch("walk_rank", (n, matrices), THREADS, &arguments)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn all_at_once(&self) -> Result<()> {
        self.moves.values()?;
        let (walk, sum, rows) = (self.walk, self.sum.own, self.scratch.rows.address);
        let grid = (walk.electrons.div_ceil(WARPS), walk.walkers);
        // SAFETY: the kernel's argument.
        unsafe { self.card.launch("walk_change", grid, THREADS, &arguments![walk])? };
        self.weigh(&self.sum, walk.walkers)?;
        for (s, spin) in self.filled() {
            let (n, first, inverse) = (spin.n, spin.first, spin.inverse.address);
            self.rows("rows", &*self.moves, walk, spin, 0, n, &self.scratch.rows)?;
            let grid = (n.div_ceil(WARPS), walk.walkers);
            let arguments = arguments![walk, sum, s, rows, inverse, n, first];
            // SAFETY: the kernel's arguments.
            unsafe { self.launch("walk_all", grid, THREADS, &arguments)? };
        }
        self.invert_all()
    }

    pub(super) fn as_a_whole(&self) -> Result<()> {
        let Some(whole) = &self.whole else { return Ok(()) };
        let (walk, here, there) = (self.walk, self.sum.own, whole.sum.own);
        self.moves.values()?;
        for (s, spin) in self.filled() {
            let s = s as usize;
            let to = (&whole.inverse[s], there.logs[s], there.phases[s]);
            self.invert(&*self.moves, walk, spin, to, &whole.control)?;
        }
        self.shares(&whole.sum, walk.walkers, &whole.control)?;
        let grid = (walk.electrons.div_ceil(WARPS), walk.walkers);
        // SAFETY: of all launches, the kernels' arguments; both inverses are of all matrices.
        unsafe {
            self.card.launch("walk_whole", grid, THREADS, &arguments![walk])?;
            let arguments = arguments![walk, here, there];
            self.card.launch("walk_configuration", (walk.walkers, 1), THREADS, &arguments)?;
            for (s, spin) in self.filled() {
                let (from, n, to) = (whole.inverse[s as usize].address, spin.n, spin.inverse.address);
                let grid = ((n * n).div_ceil(4 * THREADS), self.matrices(spin));
                self.launch("walk_take", grid, THREADS, &arguments![walk, from, n, to])?;
            }
        }
        Ok(())
    }

    pub(super) fn by_groups(&self, size: u32, screen: ScreenRule) -> Result<()> {
        let Some(room) = &self.grouped else { return Ok(()) };
        let (walk, sum) = (self.walk, self.sum.own);
        self.moves.values()?;
        // The rows of one spin are where M is otherwise.
        let rows = [&self.scratch.rows, &self.scratch.m];
        for (s, spin) in self.filled() {
            self.rows("rows", &*self.moves, walk, spin, 0, spin.n, rows[s as usize])?;
        }
        let n = self.spins.each_ref().map(|spin| spin.n);
        let group = GroupArgument {
            rows: rows.map(|b| b.address),
            inverse: self.spins.each_ref().map(|spin| spin.inverse.address),
            n,
            order: room.order.address,
            square: room.square.address,
            inner: room.inner.address,
            change: room.change.address,
            delta: room.delta.address,
            parts: room.parts.address,
            accepted: room.accepted.address,
            x: room.x.address,
            old: room.old.address,
            longest: n[0].max(n[1]),
            size,
            screen: (screen == ScreenRule::Barker).into(),
        };
        let fillings = sum.fillings[0] + sum.fillings[1];
        let items = (fillings * size * size + size).div_ceil(WARPS);
        let grid = (group.longest.div_ceil(WARPS), fillings * walk.walkers);
        let order = group.order;
        // SAFETY: of all launches, the kernel's arguments; what they write has room for all groups of that size.
        unsafe {
            self.card.launch("group_order", (walk.walkers, 1), THREADS, &arguments![walk, order])?;
            for number in 0..walk.electrons.div_ceil(size) {
                let arguments = arguments![walk, sum, group, number];
                self.launch("group_ratios", (items, walk.walkers), THREADS, &arguments)?;
                self.launch("group_decide", (walk.walkers, 1), THREADS, &arguments)?;
                let arguments = arguments![walk, sum, group];
                self.launch("group_rows", grid, THREADS, &arguments)?;
                self.launch("group_update", grid, THREADS, &arguments)?;
            }
        }
        Ok(())
    }
}
