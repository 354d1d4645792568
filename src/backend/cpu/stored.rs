//! The types of numbers that matrices store: scalars, and integers for columns.

use crate::backend::matrix::{Indices, MatrixValues};
use crate::number::Scalar;

/// An integer that columns are stored as, and the way to a matrix's columns of that type.
pub(super) trait StoredIndex: Copy + Default + Send + Sync + 'static {
    fn at(self) -> usize;
    fn columns(indices: &Indices) -> Option<&[Self]>;
}

macro_rules! index {
    ($t:ty, $case:ident) => {
        impl StoredIndex for $t {
            #[inline(always)]
            fn at(self) -> usize {
                self as usize
            }
            fn columns(indices: &Indices) -> Option<&[Self]> {
                match indices {
                    Indices::$case(columns) => Some(columns),
                    _ => None,
                }
            }
        }
    };
}

index!(u32, U32);
index!(u64, U64);

/// A scalar whose values a matrix may store.
pub(super) trait StoredScalar: Scalar {
    fn values(values: &MatrixValues) -> Option<&[Self]>;
}

macro_rules! stored {
    ($t:ty, $case:ident) => {
        impl StoredScalar for $t {
            fn values(values: &MatrixValues) -> Option<&[Self]> {
                match values {
                    MatrixValues::$case(values) => Some(values),
                    _ => None,
                }
            }
        }
    };
}

stored!(f32, F32);
stored!(f64, F64);
stored!(num_complex::Complex<f32>, C32);
stored!(num_complex::Complex<f64>, C64);
