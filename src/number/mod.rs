//! Numbers on the host: scalar types, the counter-based random generator, and the records that results are made of
//! (`Series`, `Matrix`, `Table`). Nothing here knows devices, physics or Rhai.

pub mod aligned;
mod balance;
mod column;
pub mod complex;
mod eigenvectors;
mod element;
mod exponential;
pub mod factor;
pub mod format;
mod function;
pub mod hermitian;
pub mod linalg;
mod matrix;
mod matrix_display;
pub mod memory;
pub mod merge;
pub mod philox;
mod reduce;
pub mod scalar;
mod series;
mod solve;
pub mod student;
mod table;
mod table_display;
mod value;

pub use column::{Cell, Column};
pub use function::ElementaryFunction;
pub use matrix::{Matrix, Pauli};
pub use scalar::{C64, DType, Real, Scalar};
pub use series::Series;
pub use table::Table;
pub use value::{Arithmetic, Number};

/// A bohr in angstrom (CODATA 2018).
pub const BOHR: f64 = 0.529_177_210_903;

/// The root of a square that rounding may have made negative; NaN stays NaN, which `f64::max` would turn into zero.
pub fn root(square: f64) -> f64 {
    if square < 0.0 { 0.0 } else { square.sqrt() }
}
