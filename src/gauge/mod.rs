//! Lattice gauge theory: SU(3) links and where they come from, smearing and flow, observables, files of other programs,
//! and the overlap operator. The Wilson-Dirac operator itself is in `operator`; kernels are in `backend`.

mod even_odd;
mod field;
pub mod files;
mod flow;
mod generate;
mod given;
mod heatbath;
mod links;
mod loops;
mod observe;
pub mod overlap;
pub mod su3;
mod sums;

pub use even_odd::{EvenOddMethod, solve_even_odd};
pub use flow::{ape, stout, wilson_flow};
pub use generate::reference_row;
pub use given::onto_su3;
pub use heatbath::{Heatbath, heatbath, overrelax};
pub use links::{Links, grid_of};
pub use loops::{wilson_loop, wilson_loops};
pub use observe::{plaquette, polyakov, polyakov_lines, topological_charge};
