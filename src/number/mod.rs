//! Numbers on the host: scalar types, the counter-based random generator, and the records that results are made of
//! (`Series`, `Matrix`, `Table`). Nothing here knows devices, physics or Rhai.

pub mod format;
mod function;
pub mod philox;
mod reduce;
mod scalar;
mod series;
mod value;

pub use function::Function;
pub use scalar::{C64, DType, Real, Scalar};
pub use series::Series;
pub use value::{Arithmetic, Number};
