//! Where vectors live and kernels run: the traits a backend implements, and the backends there are.
//! No physics and no Rhai here.

pub mod matrix;
