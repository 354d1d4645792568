//! The four scalar types that vectors and operators are made of.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Neg, RangeInclusive, Sub};

use num_complex::Complex;

/// A double-precision complex number: the host's and the scripts' `Complex`.
pub type C64 = Complex<f64>;

/// The scalar type of a vector or an operator, known at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// Real, 32 bits.
    F32,
    /// Real, 64 bits.
    F64,
    /// Complex of two 32-bit reals.
    C32,
    /// Complex of two 64-bit reals.
    C64,
}

impl DType {
    /// Bytes of one scalar.
    pub fn bytes(self) -> usize {
        match self {
            DType::F32 => 4,
            DType::F64 | DType::C32 => 8,
            DType::C64 => 16,
        }
    }

    /// Whether the type is complex.
    #[inline]
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C32 | DType::C64)
    }

    /// Whether the type is built on 32-bit reals.
    pub fn is_single(self) -> bool {
        matches!(self, DType::F32 | DType::C32)
    }

    /// The distance from 1 to the next larger number: 2^-23 or 2^-52.
    pub fn epsilon(self) -> f64 {
        if self.is_single() { f32::EPSILON.into() } else { f64::EPSILON }
    }

    /// What is a tolerance of `double` in double precision: the same share of this type's digits, 1e-13 of double ones
    /// being 1.8e-6 of single ones.
    pub fn tolerance(self, double: f64) -> f64 {
        let digits = |dtype: DType| -dtype.epsilon().log2();
        double.powf(digits(self) / digits(DType::F64))
    }

    /// Sizes of numbers whose squares, and those of their rounding, this type can hold.
    pub fn squared(self) -> RangeInclusive<f64> {
        if self.is_single() { 1e-15..=1e15 } else { 1e-140..=1e140 }
    }

    /// The type with the given precision and kind.
    pub fn of(single: bool, complex: bool) -> DType {
        match (single, complex) {
            (true, false) => DType::F32,
            (false, false) => DType::F64,
            (true, true) => DType::C32,
            (false, true) => DType::C64,
        }
    }

    /// The complex type of the same precision.
    pub fn to_complex(self) -> DType {
        DType::of(self.is_single(), true)
    }

    /// The real type of the same precision.
    pub fn to_real(self) -> DType {
        DType::of(self.is_single(), false)
    }

    /// The smallest type that holds both: complex if either is, double if either is.
    pub fn join(self, other: DType) -> DType {
        DType::of(self.is_single() && other.is_single(), self.is_complex() || other.is_complex())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "real f32",
            DType::F64 => "real f64",
            DType::C32 => "complex f32",
            DType::C64 => "complex f64",
        })
    }
}

/// A scalar of a vector or an operator.
pub trait Scalar:
    Copy
    + Default
    + PartialEq
    + Send
    + Sync
    + fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + 'static
{
    /// The type of the real and imaginary parts.
    type Real: Real;
    /// The run-time name of this type.
    const DTYPE: DType;

    /// From a double-precision complex number; a real type drops the imaginary part.
    fn from_c64(z: C64) -> Self;
    /// To a double-precision complex number.
    fn to_c64(self) -> C64;
    fn conj(self) -> Self;
    fn re(self) -> Self::Real;
    /// Imaginary part, zero for real types.
    fn im(self) -> Self::Real;
}

/// `a^H b`.
pub fn dot<T: Scalar>(a: &[T], b: &[T]) -> T {
    let mut sum = T::default();
    a.iter().zip(b).for_each(|(a, b)| sum += a.conj() * *b);
    sum
}

/// The root of `a^H a`.
pub fn norm<T: Scalar>(a: &[T]) -> f64 {
    a.iter().map(|z| z.to_c64().norm_sqr()).sum::<f64>().sqrt()
}

pub trait Real: Scalar<Real = Self> + PartialOrd {
    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;
    /// `self * a + b` with one rounding.
    fn fma(self, a: Self, b: Self) -> Self;
}

macro_rules! real_scalar {
    ($t:ty, $dtype:expr) => {
        impl Scalar for $t {
            type Real = $t;
            const DTYPE: DType = $dtype;
            #[inline(always)]
            fn from_c64(z: C64) -> Self {
                z.re as $t
            }
            #[inline(always)]
            fn to_c64(self) -> C64 {
                C64::new(self as f64, 0.0)
            }
            #[inline(always)]
            fn conj(self) -> Self {
                self
            }
            #[inline(always)]
            fn re(self) -> $t {
                self
            }
            #[inline(always)]
            fn im(self) -> $t {
                0.0
            }
        }

        impl Real for $t {
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn fma(self, a: Self, b: Self) -> Self {
                self.mul_add(a, b)
            }
        }
    };
}

real_scalar!(f32, DType::F32);
real_scalar!(f64, DType::F64);

macro_rules! complex_scalar {
    ($t:ty, $dtype:expr) => {
        impl Scalar for Complex<$t> {
            type Real = $t;
            const DTYPE: DType = $dtype;
            #[inline(always)]
            fn from_c64(z: C64) -> Self {
                Complex::new(z.re as $t, z.im as $t)
            }
            #[inline(always)]
            fn to_c64(self) -> C64 {
                C64::new(self.re as f64, self.im as f64)
            }
            #[inline(always)]
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            #[inline(always)]
            fn re(self) -> $t {
                self.re
            }
            #[inline(always)]
            fn im(self) -> $t {
                self.im
            }
        }
    };
}

complex_scalar!(f32, DType::C32);
complex_scalar!(f64, DType::C64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_promotes() {
        assert_eq!(DType::F64.join(DType::C32), DType::C64);
        assert_eq!(DType::F32.join(DType::C32), DType::C32);
        assert_eq!(DType::F32.join(DType::F32), DType::F32);
    }

    #[test]
    fn tolerances_are_shares_of_the_digits() {
        assert_eq!(DType::C64.tolerance(1e-11), 1e-11);
        assert!((DType::F32.tolerance(DType::F64.epsilon()) / DType::F32.epsilon() - 1.0).abs() < 1e-14);
        assert!((DType::C32.tolerance(1e-13) / 1.78e-6 - 1.0).abs() < 2e-3);
    }
}
