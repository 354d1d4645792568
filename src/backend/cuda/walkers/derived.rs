//! Orbitals with their derivatives, for energies and drifts: of some walkers at a time, so that many of them with many
//! orbitals do not exhaust the memory.

use super::layout::WalkArgument;
use super::{CudaWalkers, THREADS, WARPS, arguments};
use crate::backend::cuda::card::CardBuffer;
use crate::backend::cuda::splines::{Evaluation, evaluation};
use crate::error::{Error, Result};

/// Bytes that are enough: with more walkers at a time nothing becomes faster.
const ENOUGH: usize = 1 << 30;

/// Room for derivatives of as many walkers as are taken at once, and the drifts of all at both ends of their moves.
pub(super) struct Derived {
    pub planes: Box<dyn Evaluation>,
    pub pass: u32,
    pub drift: [CardBuffer; 2],
}

impl CudaWalkers {
    /// Makes room for derivatives.
    pub(super) fn derive(&mut self) -> Result<()> {
        if self.derived.is_some() {
            return Ok(());
        }
        let (walkers, electrons) = (self.walk.walkers as usize, self.walk.electrons as usize);
        let pass = if self.pass > 0 {
            self.pass
        } else {
            // At most as wide as doubles, with an inverse matrix of either spin.
            let lanes = self.table.shape().lanes * 40 + 200;
            let matrices = self.spins.iter().map(|spin| spin.inverse.bytes / walkers).sum::<usize>();
            ENOUGH.min(self.card.memory().0 / 4) / (electrons * lanes + matrices)
        };
        let pass = pass.clamp(1, walkers);
        let planes = evaluation(&*self.table, pass * electrons, 5)?
            .ok_or_else(|| Error::internal("a table of splines that left the GPU"))?;
        let room = || self.card.allocate(walkers * electrons * 24);
        self.derived = Some(Derived { planes, pass: pass as u32, drift: [room()?, room()?] });
        Ok(())
    }

    /// The first walker of every pass, and the walkers in it. All are as long:
    /// the last may repeat what another has done.
    pub(super) fn passes(&self, derived: &Derived) -> impl Iterator<Item = (u32, WalkArgument)> {
        let (walk, pass, points) = (self.walk, derived.pass, derived.planes.points());
        (0..walk.walkers).step_by(pass as usize).map(move |from| {
            let from = from.min(walk.walkers - pass);
            (from, walk.part(from, pass, points))
        })
    }

    /// Drifts of all electrons where they are, or at their trial points.
    pub(super) fn drift(&self, derived: &Derived, trial: bool) -> Result<()> {
        let planes = &*derived.planes;
        let name = format!("walk_drift_{}", planes.name());
        let (plane, lanes) = (planes.out(), planes.lanes());
        let filled = self.spins[0].n.max(self.spins[1].n) * if self.complex { 2 } else { 1 };
        let filled = filled.min(lanes);
        for (from, walk) in self.passes(derived) {
            self.places(walk, trial)?;
            planes.derivatives()?;
            let skipped = u64::from(from) * u64::from(walk.electrons) * 24;
            let to = derived.drift[usize::from(trial)].address + skipped;
            let grid = ((walk.walkers * walk.electrons).div_ceil(WARPS), 1);
            let arguments = arguments![plane, lanes, filled, walk, to];
            // SAFETY: the kernel's arguments; five planes of the pass's electrons, three numbers for each of them.
            unsafe { self.card.launch(&name, grid, THREADS, &arguments)? };
        }
        Ok(())
    }
}
