//! The rank that holds all undivided data, if backends differ.

use super::Device;
use crate::error::Result;
use crate::ranks;

/// The one rank that has all that lives whole, where the others, whose backends are different, have nothing of it.
#[derive(Debug, Clone, Copy)]
pub struct LoneRank {
    pub rank: usize,
    /// Whether this is the one.
    pub here: bool,
}

impl LoneRank {
    /// So many numbers that the one rank finds by itself, on all ranks, which call this together.
    ///
    /// # Errors
    /// Those of the one rank, and of MPI.
    pub fn tell(self, count: usize, own: impl FnOnce() -> Result<Vec<f64>>) -> Result<Vec<f64>> {
        let own = if self.here { own() } else { Ok(Vec::new()) };
        ranks::told_by(self.rank, own, count)
    }
}

/// The rank that has all that lives whole, if the others have nothing of it.
pub fn lone(device: &Device) -> Option<LoneRank> {
    device.distributed()?.lone()
}
