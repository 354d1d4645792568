//! Algorithms over operators: spectral windows, Chebyshev moments and expansions, Clenshaw's recurrence, eigensolvers.
//! They get an operator and vectors and know neither layout nor physics.

mod accumulate;
mod bands;
mod barycentric;
mod chebyshev;
mod conductivity;
mod davidson;
mod double_moments;
mod evolve;
mod expansion;
mod fermi;
mod folded;
mod green;
mod interior;
mod kernel;
mod krylov;
mod markers;
mod minmax;
mod moments;
mod olsen;
mod optical;
mod plane_wave;
mod record;
mod recorded;
mod ritz;
mod solve;
mod subspace;
mod transport;
mod units;
mod window;
mod zolotarev;

pub use accumulate::{Accumulation, accumulate};
pub use bands::{
    BandOptions, DensityOptions, Plane, PolarizationOptions, band_density, bands, berry_curvature,
    chern_number, hilbert, polarizability, wilson_loop, z2,
};
pub use chebyshev::Chebyshev;
pub use davidson::{DavidsonOptions, Eigen, Ended, Preconditioner, davidson};
pub use double_moments::{DoubleMoments, cross_moments};
pub use evolve::{Evolved, evolve};
pub use expansion::{Expansion, clenshaw, polynomial};
pub use fermi::fermi_series;
pub use green::{Damping, green, green_error, undamped_terms};
pub use interior::{InteriorOptions, interior};
pub use kernel::DampingKernel;
pub use krylov::{Exponential, exponential};
pub use markers::{bott_index, chern_marker, entanglement, level_ratio};
pub use minmax::MinMax;
pub use moments::Moments;
pub use plane_wave::{geometry, k_path, momenta_fit, plane_waves};
pub use record::{Averaged, Draw, Record};
pub use recorded::RecordedClenshaw;
pub use ritz::{RitzMethod, RitzOptions, ritz};
pub use solve::{
    Solution, SolveOptions, bicgstab, check_system, conjugate_gradient, in_range, multishift, only,
};
pub(crate) use solve::{gradient_steps, shifted_steps};
pub(crate) use subspace::{hermitian_eigen, orthonormal, orthonormal_columns};
pub use transport::{Lead, Particle, Sample};
pub use units::unit_of;
pub use window::Window;
pub use zolotarev::Zolotarev;
