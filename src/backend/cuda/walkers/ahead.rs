//! Look-ahead sweeps (`kernels/ahead.cu`, `pairs.cu`).

use std::sync::Arc;

use super::layout::WalkArgument;
use super::{CudaWalkers, EDGE, Spin, THREADS, WARPS, arguments};
use crate::backend::cuda::card::{Card, CardBuffer};
use crate::backend::walkers::Radial;
use crate::error::Result;

/// Electrons of a panel at most: M and B learn of them together. More make deeper products,
/// and more work within panels.
const WIDEST: u32 = 256;

/// Intervals of the table of pair functions and coefficients of each, as in the kernels; and how far it may be off.
const INTERVALS: u32 = 512;
const TERMS: usize = 6;
const CLOSE: f64 = 1e-12;

/// Bytes of the kernels' record of what was accepted of a block.
const TAKEN: usize = 16;

/// Electrons of a panel.
pub(super) fn wide(n: u32) -> u32 {
    n.next_multiple_of(EDGE).clamp(EDGE, WIDEST)
}

/// The cutoff of all functions of pairs, if they have one.
fn reach(pairs: &[[Radial; 2]]) -> Option<f64> {
    let mut reach = None;
    for radial in pairs.iter().flatten() {
        let cutoff = match radial {
            Radial::Zero => continue,
            Radial::Rpa { cutoff, .. } | Radial::Polynomial { cutoff, .. } => *cutoff,
            Radial::Pade { .. } | Radial::Log { .. } | Radial::Power { .. } => return None,
        };
        if reach.is_some_and(|r| r != cutoff) {
            return None;
        }
        reach = Some(cutoff);
    }
    reach.filter(|r| r.is_finite() && *r > 0.0)
}

/// Tabulates the functions of pairs, if they end at the same distance and a table is as good as they are.
pub(super) fn tabulate(
    card: &Arc<Card>,
    pairs: &[[Radial; 2]],
    walk: &mut WalkArgument,
) -> Result<Option<CardBuffer>> {
    let Some(reach) = reach(pairs) else { return Ok(None) };
    let table = card.allocate(2 * INTERVALS as usize * TERMS * 8)?;
    let error = card.upload(&[0_u64])?;
    let (own, to, off) = (WalkArgument { reach, ..*walk }, table.address, error.address);
    // SAFETY: the kernel's arguments; the table has as many coefficients.
    unsafe { card.launch("walk_table", (2, 1), INTERVALS, &arguments![own, to, off])? };
    if f64::from_bits(card.download::<u64>(&error, 1)?[0]) > CLOSE {
        return Ok(None);
    }
    (walk.table, walk.reach) = (to, reach);
    Ok(Some(table))
}

/// Room for look-ahead sweeps.
pub(super) struct LookAheadRoom {
    delta: CardBuffer,
    partial: CardBuffer,
    /// Inverses of the accepted parts of blocks, and room to find them.
    inner: CardBuffer,
    work: CardBuffer,
    /// What sweeps of panels take.
    t: CardBuffer,
    l: CardBuffer,
    /// What a block accepted, and which electrons a panel.
    state: CardBuffer,
    chosen: CardBuffer,
}

impl LookAheadRoom {
    pub fn new(resident: &CudaWalkers) -> Result<LookAheadRoom> {
        let (card, walk, number) = (&resident.card, resident.walk, resident.number());
        let walkers = walk.walkers as usize;
        let blocks = resident.pair_blocks() as usize;
        let pairs = if walk.pairs > 0 { walkers } else { 0 };
        let n = resident.spins.iter().map(|spin| spin.n).max().unwrap_or(0);
        let most = resident.spins.iter().map(|spin| spin.fillings).max().unwrap_or(1) as usize;
        let square = (EDGE * EDGE) as usize;
        let strip = || card.allocate(most * walkers * (EDGE * wide(n)) as usize * number);
        Ok(LookAheadRoom {
            delta: card.allocate(pairs * blocks * (blocks + 1) / 2 * square * 8)?,
            partial: card.allocate(pairs * blocks * walk.electrons as usize * 8)?,
            inner: card.allocate(most * walkers * square * number)?,
            work: card.allocate(if most > 1 { most * walkers * square * number } else { 8 })?,
            t: strip()?,
            l: strip()?,
            state: card.allocate(walkers * TAKEN)?,
            chosen: card.allocate(walkers * n as usize * 4)?,
        })
    }
}

impl CudaWalkers {
    /// Blocks of electrons, those of either spin for themselves.
    fn pair_blocks(&self) -> u32 {
        self.spins.iter().map(|spin| spin.n.div_ceil(EDGE)).sum()
    }

    /// Changes of J with every electron, and by how much more with any two.
    fn pairs(&self, walk: WalkArgument, partial: u64) -> Result<()> {
        let blocks = self.pair_blocks();
        let grid = (walk.electrons.div_ceil(WARPS), walk.walkers);
        // SAFETY: of both launches, the kernel's arguments; tiles and sums have room.
        unsafe {
            if walk.pairs > 0 {
                let tiles = (blocks * (blocks + 1) / 2, walk.walkers);
                self.card.launch("walk_pairs", tiles, THREADS, &arguments![walk, partial])?;
            }
            self.card.launch("walk_base", grid, THREADS, &arguments![walk, partial])
        }
    }

    pub(super) fn look_ahead(&self) -> Result<()> {
        let Some(ahead) = &self.ahead else { return Ok(()) };
        let walk = WalkArgument { delta: ahead.delta.address, ..self.walk };
        self.moves.values()?;
        self.pairs(walk, ahead.partial.address)?;
        let mut own = 0;
        for (s, spin) in self.filled() {
            self.rows("rows", &*self.moves, walk, spin, 0, spin.n, &self.scratch.rows)?;
            self.multiply(spin)?;
            for panel in (0..spin.n).step_by(wide(spin.n) as usize) {
                let end = (panel + wide(spin.n)).min(spin.n);
                for begin in (panel..end).step_by(EDGE as usize) {
                    own += 1;
                    let behind = if walk.pairs > 0 { self.pair_blocks() - own } else { 0 };
                    self.decide(ahead, walk, s, spin, begin, panel, behind)?;
                }
                self.learn(ahead, walk, spin, panel)?;
            }
        }
        Ok(())
    }

    /// Decides a block, and sweeps the panel that it belongs to; `behind` blocks of pairs come after it.
    #[expect(clippy::too_many_arguments, reason = "where a block stands")]
    fn decide(
        &self,
        ahead: &LookAheadRoom,
        walk: WalkArgument,
        s: u32,
        spin: &Spin,
        begin: u32,
        panel: u32,
        behind: u32,
    ) -> Result<()> {
        let (m, inner, work) = (self.scratch.m.address, ahead.inner.address, ahead.work.address);
        let (state, chosen) = (ahead.state.address, ahead.chosen.address);
        let (t, l, sum) = (ahead.t.address, ahead.l.address, self.sum.own);
        let (n, first, wide) = (spin.n, spin.first, wide(spin.n));
        let tiles = (n - panel).min(wide).div_ceil(EDGE);
        let matrices = self.matrices(spin);
        // SAFETY: of all launches, the kernel's arguments; matrices are n x n, strips 64 x `wide`,
        // of every filling and walker.
        unsafe {
            if spin.fillings == 1 {
                let arguments = arguments![walk, m, n, first, begin, panel, inner, state, chosen];
                self.launch("walk_decide", (walk.walkers, 1), THREADS, &arguments)?;
            } else {
                let arguments =
                    arguments![walk, sum, s, m, n, first, begin, panel, work, inner, state, chosen];
                self.launch("walk_decide_sum", (walk.walkers, 1), THREADS, &arguments)?;
            }
            let arguments = arguments![walk, m, inner, state, chosen, t, l, n, first, begin, panel, wide];
            self.launch("walk_sweep_rows", (2 * tiles + behind, matrices), THREADS, &arguments)?;
            let arguments = arguments![walk, m, state, t, l, n, begin, panel, wide];
            self.launch("walk_sweep", (tiles * tiles, matrices), THREADS, &arguments)
        }
    }

    /// M and the inverses learn of what a panel accepted.
    fn learn(&self, ahead: &LookAheadRoom, walk: WalkArgument, spin: &Spin, panel: u32) -> Result<()> {
        let s = &self.scratch;
        let (m, inverse, state) = (s.m.address, spin.inverse.address, ahead.state.address);
        let (x, left, old, chosen) = (s.x.address, s.left.address, s.old.address, ahead.chosen.address);
        let (n, first, wide) = (spin.n, spin.first, wide(spin.n));
        let (tiles, matrices) = (n.div_ceil(EDGE), self.matrices(spin));
        let heights = self.tall((n - panel).min(wide));
        let rest = n - (panel + wide).min(n);
        // SAFETY: of both launches, the kernel's arguments; strips are `wide` x n, of every filling and walker.
        unsafe {
            let arguments = arguments![walk, m, inverse, state, chosen, x, left, old, n, first, panel, wide];
            self.launch("walk_panel", (2 * heights * tiles, matrices), THREADS, &arguments)?;
            let grid = ((self.tall(rest) + self.tall(n)) * tiles, matrices);
            let arguments = arguments![walk, m, inverse, state, x, left, old, n, panel, wide];
            self.launch("walk_update", grid, THREADS, &arguments)
        }
    }

    /// `M = Phi A^-1` of a spin's electrons, from the rows of Phi.
    pub(super) fn multiply(&self, spin: &Spin) -> Result<()> {
        let (rows, m) = (self.scratch.rows.address, self.scratch.m.address);
        let (n, inverse) = (spin.n, spin.inverse.address);
        let grid = (self.tall(n) * n.div_ceil(EDGE), self.matrices(spin));
        // SAFETY: the kernel's arguments; matrices are n x n, of every filling and walker.
        unsafe { self.launch("walk_product", grid, THREADS, &arguments![rows, inverse, n, m]) }
    }
}
