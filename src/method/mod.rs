//! Algorithms over operators: spectral windows, Chebyshev moments and expansions, Clenshaw's recurrence, eigensolvers.
//! They get an operator and vectors and know neither layout nor physics.

mod chebyshev;
mod davidson;
mod expansion;
mod kernel;
mod moments;
mod subspace;
mod window;

pub use chebyshev::Chebyshev;
pub use davidson::{DavidsonOptions, Eigen, Preconditioner, davidson};
pub use expansion::{Expansion, clenshaw};
pub use kernel::DampingKernel;
pub use moments::Moments;
pub use window::Window;
