//! Inverse matrices of all walkers, computed anew.

use super::{EDGE, PANEL, Resident, Spin, THREADS, WARPS, arguments};
use crate::backend::cuda::card::Buffer;
use crate::backend::cuda::splines::Evaluation;
use crate::error::Result;

/// Threads that take a panel of one matrix.
const LONG: u32 = 512;

impl Resident {
    /// Evaluates the orbitals of decisions where the electrons are.
    fn places(&self) -> Result<()> {
        self.over_electrons("walk_places")?;
        self.moves.values()
    }

    /// Computes inverse matrices anew.
    pub(super) fn invert_all(&self) -> Result<()> {
        self.places()?;
        self.spins.iter().try_for_each(|spin| self.invert(&*self.moves, spin, &spin.inverse))
    }

    /// The same, after what the old ones make of the first electron's orbitals is compared with the unit matrix.
    pub(super) fn renew(&self) -> Result<()> {
        self.places()?;
        for spin in self.spins.iter().filter(|spin| spin.n > 0) {
            self.rows("rows", &*self.moves, spin, 0, 1, &self.scratch.rows)?;
            let (row, ratios) = (self.scratch.rows.address, self.scratch.ratios.address);
            let (n, inverse, control) = (spin.n, spin.inverse.address, self.control.address);
            let count = n * self.walk.walkers;
            let grid = (n.div_ceil(WARPS), self.walk.walkers);
            let blocks = (self.blocks(count as usize), 1);
            // SAFETY: of both launches, the kernel's arguments; a row of n numbers for every walker.
            unsafe {
                self.launch("walk_ratios", grid, THREADS, &arguments![row, inverse, n, ratios])?;
                let arguments = arguments![ratios, n, count, control];
                self.launch("inverse_deviation", blocks, THREADS, &arguments)?;
            }
            self.invert(&*self.moves, spin, &spin.inverse)?;
        }
        Ok(())
    }

    /// `(A^-1)^T` of a spin's electrons in every walker, from orbitals that have been evaluated where they are.
    pub(super) fn invert(&self, from: &dyn Evaluation, spin: &Spin, to: &Buffer) -> Result<()> {
        let (n, walkers) = (spin.n, self.walk.walkers);
        if n == 0 {
            return Ok(());
        }
        let s = &self.scratch;
        self.rows("columns", from, spin, 0, n, &s.m)?;
        let (work, t, v, out) = (s.m.address, s.x.address, s.left.address, to.address);
        let (pivots, moves) = (s.pivots.address, s.moves.address);
        let (order, control) = (s.order.address, self.control.address);
        let tiles = n.div_ceil(EDGE);
        let panel = match n.div_ceil(LONG) {
            1 => "inverse_panel_1",
            2 => "inverse_panel_2",
            _ => "inverse_panel_4",
        };
        // SAFETY: of all launches, the kernel's arguments; matrices are n x n, panels `PANEL` x n, of every walker.
        unsafe {
            for begin in (0..n).step_by(PANEL as usize) {
                let arguments = arguments![work, t, pivots, moves, n, begin, control];
                self.launch(panel, (walkers, 1), LONG, &arguments)?;
                let grid = (n.div_ceil(THREADS), walkers);
                self.launch("inverse_exchange", grid, THREADS, &arguments![work, v, moves, n, begin])?;
                let grid = (tiles * tiles, walkers);
                self.launch("inverse_eliminate", grid, THREADS, &arguments![work, t, v, n, begin])?;
            }
            self.card.launch("inverse_order", (walkers, 1), THREADS, &arguments![pivots, n, order])?;
            let grid = (self.blocks(n as usize * n as usize), walkers);
            self.launch("inverse_gather", grid, THREADS, &arguments![work, order, n, out])
        }
    }
}
