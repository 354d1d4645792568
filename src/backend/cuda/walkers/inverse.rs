//! Inverse matrices of all walkers, computed anew.

use super::layout::WalkArgument;
use super::{CudaWalkers, EDGE, PANEL, Spin, THREADS, WARPS, arguments};
use crate::backend::cuda::card::CardBuffer;
use crate::backend::cuda::splines::Evaluation;
use crate::error::Result;

/// Threads that take a panel of one matrix.
const LONG: u32 = 512;

impl CudaWalkers {
    /// Evaluates the orbitals of decisions where the electrons are.
    fn here(&self) -> Result<()> {
        self.places(self.walk, false)?;
        self.moves.values()
    }

    /// Inverse matrices of a spin, from orbitals that have been evaluated where the electrons are.
    fn invert_own(&self, s: usize) -> Result<()> {
        let (spin, sum) = (&self.spins[s], self.sum.own);
        let to = (&spin.inverse, sum.logs[s], sum.phases[s]);
        self.invert(&*self.moves, self.walk, spin, to, &self.control)
    }

    fn weighed(&self) -> Result<()> {
        if self.sum.own.products == 1 {
            return Ok(());
        }
        self.shares(&self.sum, self.walk.walkers, &self.control)
    }

    /// Computes inverse matrices anew.
    pub(super) fn invert_all(&self) -> Result<()> {
        self.here()?;
        (0..2).try_for_each(|s| self.invert_own(s))?;
        self.weighed()
    }

    /// The same, after what the old ones make of the first electron's orbitals is compared with the unit matrix.
    pub(super) fn renew(&self) -> Result<()> {
        self.here()?;
        for (s, spin) in self.filled() {
            self.rows("rows", &*self.moves, self.walk, spin, 0, 1, &self.scratch.rows)?;
            let (row, ratios) = (self.scratch.rows.address, self.scratch.ratios.address);
            let (n, inverse, control) = (spin.n, spin.inverse.address, self.control.address);
            let matrices = self.matrices(spin);
            let count = n * matrices;
            let grid = (n.div_ceil(WARPS), matrices);
            let blocks = (self.blocks(count as usize), 1);
            // SAFETY: of both launches, the kernel's arguments; a row of n numbers for every matrix.
            unsafe {
                self.launch("walk_ratios", grid, THREADS, &arguments![row, inverse, n, ratios])?;
                let arguments = arguments![ratios, n, count, control];
                self.launch("inverse_deviation", blocks, THREADS, &arguments)?;
            }
            self.invert_own(s as usize)?;
        }
        self.weighed()
    }

    /// `(A^-1)^T` of a spin's electrons in every filling and walker of `walk`, from orbitals that have been evaluated;
    /// to a buffer, the logarithm and the phase of the determinants to where they belong.
    pub(super) fn invert(
        &self,
        from: &dyn Evaluation,
        walk: WalkArgument,
        spin: &Spin,
        (to, logs, phases): (&CardBuffer, u64, u64),
        control: &CardBuffer,
    ) -> Result<()> {
        let (n, matrices) = (spin.n, walk.walkers * spin.fillings);
        if n == 0 {
            return Ok(());
        }
        let s = &self.scratch;
        self.rows("columns", from, walk, spin, 0, n, &s.m)?;
        let (work, t, v, out) = (s.m.address, s.x.address, s.left.address, to.address);
        let (pivots, diagonal, moves) = (s.pivots.address, s.diagonal.address, s.moves.address);
        let (order, control) = (s.order.address, control.address);
        let tiles = self.tall(n) * n.div_ceil(EDGE);
        let each = n.div_ceil(LONG).next_power_of_two();
        let panel = format!("inverse_panel_{each}");
        // Columns that a panel takes at once: as many as registers hold.
        let wide = if self.complex && each > 1 { 4_u32 } else { 8 };
        // SAFETY: of all launches, the kernel's arguments; matrices are n x n, panels `PANEL` x n, of every walker.
        unsafe {
            for begin in (0..n).step_by(PANEL as usize) {
                let arguments = arguments![work, t, pivots, diagonal, moves, n, begin, control];
                self.launch(&panel, (matrices, 1), LONG, &arguments)?;
                let grid = (n.div_ceil(THREADS), matrices);
                let arguments = arguments![work, v, moves, n, begin, wide];
                self.launch("inverse_exchange", grid, THREADS, &arguments)?;
                let grid = (tiles, matrices);
                self.launch("inverse_eliminate", grid, THREADS, &arguments![work, t, v, n, begin])?;
            }
            let arguments = arguments![pivots, diagonal, n, order, logs, phases];
            self.launch("inverse_finish", (matrices, 1), THREADS, &arguments)?;
            let grid = (self.blocks(n as usize * n as usize), matrices);
            self.launch("inverse_gather", grid, THREADS, &arguments![work, order, n, out])
        }
    }
}
