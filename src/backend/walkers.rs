//! Walkers of variational Monte Carlo in plain data, for the layer that sets them up and for the backends that move
//! them: a Slater-Jastrow wave function whose orbitals are splines, sweeps, energies. Electrons with spin up come
//! first; lengths in bohr, energies in hartree.

use std::sync::Arc;

use super::Device;
use super::splines::{SplineTable, Splines};
use crate::error::{Error, Result};
use crate::number::C64;

/// The error for a wave function that is NaN where a walker might go.
pub fn no_number() -> Error {
    Error::numeric("the wave function is not a number (NaN) at a trial point")
        .hint("look for NaN among the coefficients of the orbitals and the Jastrow parameters")
}

/// The error for moves that have led to where the wave function vanishes.
pub fn on_node(what: &str) -> Error {
    Error::numeric(format!("{what} put the electrons of a walker on a node of the wave function"))
        .hint("an exact scheme, \"look-ahead\" say, cannot get there; or take a smaller step")
}

/// A function u(r) of a distance in bohr, of which Jastrow factors are made (`montecarlo::jastrow` computes it on the
/// host, `kernels/walkers.cuh` on a GPU). Those with a cutoff vanish there with two derivatives.
#[derive(Debug, Clone, PartialEq)]
pub enum Radial {
    /// Nothing.
    Zero,
    /// `a r / (1 + b r)`: slope a at contact.
    Pade {
        /// Slope at contact.
        a: f64,
        /// How soon it levels off, in 1/bohr.
        b: f64,
    },
    /// `-A/r (1 - exp(-r/F))`, the screened repulsion of the random phase approximation, less its value at L, times
    /// `(1 - r/L)^3 (1 + 3 r/L + 6 (r/L)^2)`; its slope at contact is `A / (2 F^2)`. Without the shift the cutoff would
    /// deepen the hole around an electron, and raise the energy.
    Rpa {
        /// Strength A, in bohr.
        strength: f64,
        /// Length F, in bohr.
        length: f64,
        /// Cutoff L, in bohr; infinite for none.
        cutoff: f64,
        /// The function at L.
        shift: f64,
    },
    /// `(1 - r/L)^3 (a_0 + (s + 3 a_0/L) r + a_2 r^2 + ...)`: slope s at contact.
    Polynomial {
        /// Cutoff L, in bohr.
        cutoff: f64,
        /// Slope at contact.
        slope: f64,
        /// `a_0, a_2, a_3, ...`.
        coefficients: Vec<f64>,
    },
    /// `ln(1 + a r)`: slope a at contact.
    Log {
        /// Slope at contact.
        a: f64,
    },
    /// `p ln r`: a node of power p at contact.
    Power {
        /// The power.
        p: f64,
    },
}

/// The nearest image in a periodic cell: reduced vectors and their duals, the faces of the Wigner-Seitz cell with half
/// their squares (none if the reduced cell is a box), and the radius of the largest sphere in it.
#[derive(Debug, Clone, PartialEq)]
pub struct NearestImages {
    /// Short vectors that span the lattice, as rows.
    pub reduced: [[f64; 3]; 3],
    /// Their duals.
    pub dual: [[f64; 3]; 3],
    /// At most seven.
    pub faces: Vec<([f64; 3], f64)>,
    /// Half the shortest lattice vector.
    pub radius: f64,
}

/// Products of determinants: a coefficient, and which of either spin; None for a spin without electrons.
pub type DeterminantProducts = Vec<(C64, [Option<usize>; 2])>;

/// A wave function and its walkers.
#[derive(Clone)]
pub struct WalkersSpec {
    /// The table of the orbitals that moves are decided by, on the backend that shall have the walkers.
    pub orbitals: Arc<dyn Splines>,
    /// Whether two lanes of the table make a complex orbital.
    pub complex: bool,
    /// Orbitals are `exp(i k . r)` times the table's functions.
    pub k: [f64; 3],
    /// Which orbitals the electrons of both spins fill: a list for each of their determinants.
    pub fillings: [Vec<Vec<usize>>; 2],
    /// The sum of products of determinants.
    pub products: DeterminantProducts,
    /// The cell that repeats.
    pub images: NearestImages,
    /// Cartesian coordinates to fractions of that cell.
    pub inverse: [[f64; 3]; 3],
    /// Functions of pairs with the same and with opposite spins.
    pub pairs: Vec<[Radial; 2]>,
    /// Functions of the distance to places.
    pub bodies: Vec<([f64; 3], Radial)>,
    /// The table that energies are computed from, if it is not the one of decisions.
    pub energies: Option<Arc<dyn Splines>>,
    /// Key of the random numbers.
    pub seed: u64,
    /// Number of the first walker among all.
    pub first: u32,
    /// Where the electrons of every walker are.
    pub positions: Vec<Vec<[f64; 3]>>,
    /// Walkers whose orbitals are held with their derivatives at once; as many as memory allows if it is 0.
    pub pass: usize,
}

/// How the trial moves of a sweep are decided (Uejima and Maezono, 2012).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// All electrons move or none does.
    Configuration,
    /// One electron after the other, against the configuration so far.
    ParticleByParticle,
    /// The same decisions, with the orbitals of the whole sweep evaluated first.
    LookAhead,
    /// Simultaneous decisions in groups, made exact by a second stage.
    DelayedAcceptance,
    /// Simultaneous decisions against the old configuration: its stationary law is not |Psi|^2.
    QuasiSimultaneous,
}

/// The first stage of delayed acceptance: the probability g(r) to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScreenRule {
    /// `min(1, r)`.
    Metropolis,
    /// `r / (1 + r)`, which is never 1: no rejected move can make the way back impossible.
    Barker,
}

/// What a displacement is drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proposal {
    /// Normal, with the step as standard deviation of each coordinate.
    Gaussian,
    /// Uniform between minus and plus the step in each coordinate.
    Uniform,
}

/// Electrons of a group of delayed acceptance at most.
pub const MOST_OF_A_GROUP: usize = 12;

/// A sweep: a trial move for every electron.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sweep {
    /// How it is decided.
    pub scheme: Scheme,
    /// The size of a trial move, in bohr.
    pub step: f64,
    /// What displacements are drawn from.
    pub proposal: Proposal,
    /// Whether trial moves drift along the gradient of the one-body density of the orbitals.
    pub drift: bool,
    /// Electrons a group, of delayed acceptance; [`MOST_OF_A_GROUP`] at most.
    pub group: usize,
    /// The first stage of delayed acceptance.
    pub screen: ScreenRule,
}

/// What some sweeps of all walkers make.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepResult<P> {
    /// Where the electrons of every walker are.
    pub places: Vec<P>,
    /// Moves accepted.
    pub moved: u64,
    /// The largest error of an inverse matrix that was met when one was computed anew.
    pub error: f64,
}

/// Ewald's sums of unit charges in a cell, as `montecarlo::Ewald` sets them up.
#[derive(Debug, Clone, PartialEq)]
pub struct EwaldSums {
    /// The splitting parameter.
    pub alpha: f64,
    /// Where `erfc(alpha r)` is cut, in units of 1/alpha.
    pub cut: f64,
    /// Lattice vectors of images, by length.
    pub images: Vec<[f64; 3]>,
    /// One of each pair G, -G, by its numbers, and its weight.
    pub waves: Vec<([i32; 3], f64)>,
    /// Added for N electrons: times N, in hartree.
    pub own: f64,
    /// Added for N electrons: times N^2, in hartree.
    pub background: f64,
}

/// A repulsion of electrons.
#[derive(Debug, Clone, PartialEq)]
pub enum PairEnergy {
    /// Every electron with all images of the others, in a neutralising background.
    Ewald(EwaldSums),
    /// `(1 - r/L)^3/r` of the nearest image.
    Truncated,
}

/// A periodic potential `sum_G V_G exp(i G . r)`.
#[derive(Debug, Clone, PartialEq)]
pub struct PotentialWaves {
    /// Cartesian coordinates to fractions of its cell.
    pub inverse: [[f64; 3]; 3],
    /// One of each pair G, -G, by its numbers, and twice the real and the imaginary part of V_G (once at G = 0).
    pub terms: Vec<([i32; 3], [f64; 2])>,
}

/// Which energies are wanted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EnergySpec {
    /// A potential that every electron feels.
    pub external: Option<PotentialWaves>,
    /// The repulsion.
    pub pairs: Option<PairEnergy>,
}

/// The energies of a walker, in hartree; zero where none was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WalkerEnergies {
    /// `-1/2 sum_i (lap_i Psi)/Psi`, its real part.
    pub kinetic: f64,
    /// The energy in the external potential.
    pub external: f64,
    /// The energy of the repulsion between electrons.
    pub interaction: f64,
}

/// What Monte Carlo computes on a backend.
pub trait MonteCarlo {
    /// Brings a table of splines into the backend's memory.
    fn splines(&self, table: Arc<SplineTable>) -> Result<Arc<dyn Splines>>;

    /// Walkers of a wave function whose orbitals are on this backend; None where it moves no walkers, or not these.
    fn walkers(&self, _spec: WalkersSpec) -> Result<Option<Box<dyn DeviceWalkers>>> {
        Ok(None)
    }
}

/// What Monte Carlo computes on a device.
///
/// # Errors
/// A device that has no splines.
pub fn monte_carlo(device: &Device) -> Result<&dyn MonteCarlo> {
    device.monte_carlo().ok_or_else(|| {
        Error::input(format!("the backend {} has no splines", device.name()))
            .hint("use the backend cpu or cuda")
    })
}

/// Walkers on a device. After an error they are not to be used any more.
pub trait DeviceWalkers: Send + Sync {
    /// Makes `count` sweeps from number `from` on; the host waits for the last one only. Inverse matrices are computed
    /// anew after every sweep whose number, counted from 1, is a multiple of `fresh`.
    ///
    /// # Errors
    /// A ratio that is no number, a walker on a node, an interruption, a failure of the device.
    fn sweeps(
        &mut self,
        sweep: &Sweep,
        from: u64,
        count: u64,
        fresh: u64,
    ) -> Result<SweepResult<Vec<[f64; 3]>>>;

    /// Computes all inverse matrices anew; returns how far the old ones were off.
    ///
    /// # Errors
    /// A walker on a node; a failure of the device.
    fn refresh(&mut self) -> Result<f64>;

    /// The energies of all walkers.
    ///
    /// # Errors
    /// As [`DeviceWalkers::refresh`].
    fn energies(&mut self, spec: &EnergySpec) -> Result<Vec<WalkerEnergies>>;

    /// Queues the product `M = Phi A^-1` of the electrons with spin up once more, as a sweep does:
    /// what its floor is measured by.
    ///
    /// # Errors
    /// A failure of the device.
    fn product(&mut self) -> Result<()>;
}
