//! Ranks with uneven shares of rows: by the user's weights, or because their backends differ. Different backends round
//! differently. If each rank had all rows of a vector, ranks would soon take different decisions. So undivided data
//! live only on one rank, the primary one.

use super::Team;
use crate::backend::cut::speed::{RowShares, SpeedOfParts, rate, sample, writes_to_others};
use crate::backend::{Device, MatrixSpec};
use crate::error::Result;
use crate::ranks;

/// How the ranks differ.
pub(in crate::backend) struct Uneven {
    pub shares: RowShares,
    /// What keeps blocks without rows, and computes what must have the same bits on all ranks.
    pub host: Device,
    /// What is told of backends that differ.
    pub mixed: Option<Mixed>,
}

/// What is told of backends that differ, the same on all ranks.
pub(in crate::backend) struct Mixed {
    pub name: &'static str,
    pub description: String,
    /// Workers of the primary rank.
    pub workers: usize,
    pub columns: usize,
    /// Whether its backend keeps matrices, and makes diagonals and operators of superblocks.
    pub keeps: bool,
    pub superblocks: bool,
}

impl Uneven {
    /// Whether all ranks have some share; also where shares are still to be measured.
    pub(super) fn is_for_all(&self) -> bool {
        self.shares.of_one_kind().iter().all(|weight| *weight > 0.0)
    }

    /// The weights by which walkers are shared out that live on devices: those of the user, or the same for all cards.
    pub(super) fn of_walkers(&self) -> Option<Vec<f64>> {
        match self.shares.by_hand() {
            Some(weights) => Some(weights.to_vec()),
            None => (self.mixed.is_some() && self.shares.kind() != "cpu").then(|| self.shares.of_one_kind()),
        }
    }
}

/// The ranks, which measure together what each of them is asked for.
pub(super) struct AllRanks<'a> {
    pub team: Team,
    pub device: &'a Device,
}

impl SpeedOfParts for AllRanks<'_> {
    fn rates(&self, spec: Option<&MatrixSpec>) -> Result<Vec<f64>> {
        let sample = sample(spec);
        self.team.world.meet()?;
        let own = sample.and_then(|sample| rate(self.device, sample.as_ref()));
        ranks::joined(own.map(|rate| vec![rate]))
    }

    fn linked(&self) -> Result<Vec<bool>> {
        let all = self.team.world.gather_words(vec![writes_to_others(self.device).into()])?;
        Ok(all.into_iter().map(|linked| linked > 0).collect())
    }
}
