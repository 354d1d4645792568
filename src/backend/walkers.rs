//! Walkers of a Slater-Jastrow wave function that live on a device, beside the table of splines that their orbitals are:
//! what is handed to a backend, and what it does with it. Electrons with spin up come first.

use std::sync::Arc;

use super::splines::Splines;
use crate::error::Result;
use crate::number::C64;

/// A function of a distance, as `montecarlo::jastrow` defines them: parameters in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Radial {
    /// Nothing.
    Zero,
    /// `a r/(1 + b r)`.
    Pade([f64; 2]),
    /// Strength, length, cutoff and shift.
    Rpa([f64; 4]),
    /// Cutoff and slope; coefficients.
    Polynomial([f64; 2], Vec<f64>),
    /// `ln(1 + a r)`.
    Log(f64),
    /// `p ln r`.
    Power(f64),
}

/// The nearest image in a periodic cell: reduced vectors and their duals, the faces of the Wigner-Seitz cell with half their
/// squares (none if the reduced cell is a box), and the radius of the largest sphere in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Images {
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
pub type Products = Vec<(C64, [Option<usize>; 2])>;

/// A wave function and its walkers.
#[derive(Clone)]
pub struct WalkersSpec {
    /// Whether two lanes of the table make a complex orbital.
    pub complex: bool,
    /// Orbitals are `exp(i k . r)` times the table's functions.
    pub k: [f64; 3],
    /// Which orbitals the electrons of both spins fill: a list for each of their determinants.
    pub fillings: [Vec<Vec<usize>>; 2],
    /// The sum of products of determinants.
    pub products: Products,
    /// The cell that repeats.
    pub images: Images,
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

/// How a sweep is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// One electron after the other.
    ParticleByParticle,
    /// The same decisions, with the orbitals of the whole sweep evaluated first.
    LookAhead,
    /// All against the old configuration.
    QuasiSimultaneous,
    /// All move or none does.
    Configuration,
    /// Groups of so many electrons in random order, each screened and then accepted or rejected as a whole.
    DelayedAcceptance {
        /// Electrons of a group, 12 at most.
        group: usize,
        /// Whether they are screened by Barker's rule; by that of Metropolis otherwise.
        barker: bool,
    },
}

/// Sweeps of all walkers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sweeps {
    /// How they are decided.
    pub order: Order,
    /// The size of a displacement.
    pub step: f64,
    /// Whether displacements are uniform; normal otherwise.
    pub uniform: bool,
    /// Whether they drift along the gradient of the one-body density of the orbitals.
    pub drift: bool,
    /// Number of the first.
    pub from: u64,
    /// How many.
    pub count: u64,
    /// Inverse matrices are computed anew after every sweep whose number, counted from 1, is a multiple of this.
    pub fresh: u64,
}

/// What comes home after some sweeps.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Where the electrons of every walker are.
    pub positions: Vec<Vec<[f64; 3]>>,
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
    /// What is added for N electrons: `own N + background N^2`.
    pub own: f64,
    /// As above.
    pub background: f64,
}

/// A repulsion of electrons.
#[derive(Debug, Clone, PartialEq)]
pub enum Pairs {
    /// Ewald's sums.
    Ewald(EwaldSums),
    /// `(1 - r/L)^3/r` of the nearest image.
    Truncated,
}

/// A periodic potential `sum_G V_G exp(i G . r)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Waves {
    /// Cartesian coordinates to fractions of its cell.
    pub inverse: [[f64; 3]; 3],
    /// One of each pair G, -G, by its numbers, and twice the real and the imaginary part of V_G (once at G = 0).
    pub terms: Vec<([i32; 3], [f64; 2])>,
}

/// Which energies are wanted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EnergySpec {
    /// A potential that every electron feels.
    pub external: Option<Waves>,
    /// The repulsion.
    pub pairs: Option<Pairs>,
}

/// The energies of a walker, in hartree; zero where none was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Energies {
    /// `-1/2 sum_i (lap_i Psi)/Psi`, its real part.
    pub kinetic: f64,
    /// Of the potential.
    pub external: f64,
    /// Of the repulsion.
    pub interaction: f64,
}

/// Walkers on a device. After an error they are not to be used any more.
pub trait DeviceWalkers: Send + Sync {
    /// Makes sweeps; the host waits for the last one only.
    ///
    /// # Errors
    /// A ratio that is no number, a walker on a node, an interruption, a failure of the device.
    fn sweeps(&mut self, sweeps: Sweeps) -> Result<Outcome>;

    /// Computes all inverse matrices anew; returns how far the old ones were off.
    ///
    /// # Errors
    /// A walker on a node; a failure of the device.
    fn refresh(&mut self) -> Result<f64>;

    /// The energies of all walkers.
    ///
    /// # Errors
    /// As [`DeviceWalkers::refresh`].
    fn energies(&mut self, spec: &EnergySpec) -> Result<Vec<Energies>>;

    /// Queues the product `M = Phi A^-1` of the electrons with spin up once more, as a sweep does: what its floor is measured by.
    ///
    /// # Errors
    /// A failure of the device.
    fn product(&mut self) -> Result<()>;
}
