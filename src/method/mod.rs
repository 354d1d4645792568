//! Algorithms over operators: spectral windows, Chebyshev moments and expansions, Clenshaw's recurrence, eigensolvers.
//! Further, physical results: bands and their topology, transport between leads, conductivities, markers. Methods get
//! operators (for bands and leads also models) and vectors, and do not know their storage.

// Windows, Chebyshev recurrences, moments and what is made of them.
mod accumulate;
mod chebyshev;
mod conductivity;
mod double_moments;
mod fermi;
mod green;
mod kernel;
mod moments;
mod optical;
mod record;
mod saved;
mod window;

// Functions of operators.
mod barycentric;
mod evolve;
mod expansion;
mod krylov;
mod minmax;
mod recorded;
mod zolotarev;

// Eigenpairs and linear systems.
mod alone;
mod cosine;
mod davidson;
mod eigen;
mod fixed;
mod folded;
mod interior;
mod olsen;
mod ritz;
mod solve;
mod subspace;
mod units;

// Crystals and samples: bands, leads, what tells of topology.
mod bands;
mod majorana;
mod markers;
mod plane_wave;
mod transport;

pub use accumulate::{Accumulation, accumulate};
pub use bands::{
    BandElectrons, BandOptions, ConductivityOptions, DensityOptions, Filling, MomentumGrid, OccupiedOptions,
    Plane, PolarizationOptions, PositionElements, SecondOrderOptions, band_conductivity, band_density,
    band_optical, band_second_order, bands, berry_curvature, berry_phases, chern_number, hilbert, occupied,
    polarizability, wannier_centres, wilson_loop, z2,
};
pub use chebyshev::Chebyshev;
pub use davidson::{DavidsonOptions, Preconditioner, davidson};
pub use double_moments::{DoubleMoments, cross_moments};
pub use eigen::{Eigen, SearchEnded};
pub use evolve::{Evolved, evolve, steps_over};
pub use expansion::{Expansion, clenshaw, polynomial};
pub use fermi::fermi_series;
pub use green::{Damping, green, green_error, undamped_terms};
pub use interior::{InteriorMethod, InteriorOptions, interior};
pub use kernel::DampingKernel;
pub use krylov::{Exponential, exponential};
pub use markers::{bott_index, chern_marker, entanglement, level_ratio};
pub use minmax::MinMax;
pub use moments::Moments;
pub use optical::OpticalConditions;
pub use plane_wave::{geometry, k_path, momenta_fit, plane_waves};
pub use record::{Averaged, Provenance, VectorDraw};
pub use recorded::RecordedClenshaw;
pub use ritz::{RitzMethod, RitzOptions, ritz};
pub use solve::{
    Solution, SolveOptions, bicgstab, check_system, conjugate_gradient, in_range, multishift, of_about_one,
    only,
};
pub(crate) use solve::{begin, finished, gradient_steps, relative, residual, shifted_steps};
pub(crate) use subspace::{Diagonalised, hermitian_eigen, orthonormal, orthonormal_columns, rayleigh_ritz};
pub use transport::{Contact, Escape, Lead, Particle, SelfEnergyAt, TransportSample};
pub use units::unit_of;
pub use window::Window;
pub use zolotarev::Zolotarev;
