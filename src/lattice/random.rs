//! Random energies of sites and factors of bonds: functions of a seed and a number.

use crate::number::philox::{self, Stream};

/// How random numbers are distributed, about zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DisorderDistribution {
    /// Evenly in [-1/2, 1/2].
    #[default]
    Uniform,
    /// With a standard deviation of one.
    Gaussian,
    /// -1/2 or 1/2.
    Binary,
}

impl DisorderDistribution {
    /// Number `index` of a stream; each draw has numbers of its own.
    #[inline]
    pub(super) fn number(self, seed: u64, stream: Stream, index: usize, draw: u32) -> f64 {
        let w = philox::words(seed, stream as u32, index as u64, draw);
        match self {
            DisorderDistribution::Uniform => philox::unit(w[0], w[1]) - 0.5,
            DisorderDistribution::Gaussian => philox::normals(w).0,
            DisorderDistribution::Binary if w[1] >> 31 == 0 => -0.5,
            DisorderDistribution::Binary => 0.5,
        }
    }
}

/// Random on-site energies, each site for itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Disorder {
    pub width: f64,
    pub seed: u64,
    /// How many disorders were drawn before: each has random numbers of its own.
    pub draw: u32,
    pub distribution: DisorderDistribution,
}

impl Disorder {
    /// The on-site energy of a site.
    #[inline]
    pub fn energy(&self, site: usize) -> f64 {
        self.width * self.distribution.number(self.seed, Stream::Disorder, site, self.draw)
    }
}
