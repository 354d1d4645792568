//! Numbers on the host: scalar types, the counter-based random generator, and the records that results are made of
//! (`Series`, `Matrix`, `Table`). Nothing here knows devices, physics or Rhai.

pub mod memory;
pub mod philox;
mod scalar;

pub use scalar::{C64, DType, Real, Scalar};
