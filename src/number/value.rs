//! One host number, real or complex, and the arithmetic that numbers, `Series` and `Matrix` share.

use std::fmt;

use super::format::{self, real};
use super::{C64, complex};

/// A number on the host: what a sum or a norm of real or complex data comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Real(f64),
    Complex(C64),
}

impl Number {
    /// The number as complex.
    pub fn to_c64(self) -> C64 {
        match self {
            Number::Real(x) => C64::new(x, 0.0),
            Number::Complex(z) => z,
        }
    }

    pub fn re(self) -> f64 {
        self.to_c64().re
    }

    pub fn abs(self) -> f64 {
        match self {
            Number::Real(x) => x.abs(),
            Number::Complex(z) => z.norm(),
        }
    }
}

impl From<f64> for Number {
    fn from(x: f64) -> Self {
        Number::Real(x)
    }
}

impl From<i64> for Number {
    fn from(x: i64) -> Self {
        Number::Real(x as f64)
    }
}

impl From<C64> for Number {
    fn from(z: C64) -> Self {
        Number::Complex(z)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Real(x) => f.write_str(&real(*x, 10)),
            Number::Complex(z) => f.write_str(&format::complex(*z, 10)),
        }
    }
}

/// An elementwise operation of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`
    Div,
    /// `a ** b`
    Pow,
}

impl Arithmetic {
    /// The operator as scripts write it.
    pub fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Sub => "-",
            Arithmetic::Mul => "*",
            Arithmetic::Div => "/",
            Arithmetic::Pow => "**",
        }
    }

    /// Of two real numbers; a fractional power of a negative number is NaN.
    #[inline]
    pub fn real(self, a: f64, b: f64) -> f64 {
        match self {
            Arithmetic::Add => a + b,
            Arithmetic::Sub => a - b,
            Arithmetic::Mul => a * b,
            Arithmetic::Div => a / b,
            Arithmetic::Pow => a.powf(b),
        }
    }

    /// Of two complex numbers. Whole powers are products, so that `I ** 2` is exactly -1.
    #[inline]
    pub fn complex(self, a: C64, b: C64) -> C64 {
        match self {
            Arithmetic::Add => a + b,
            Arithmetic::Sub => a - b,
            Arithmetic::Mul => a * b,
            Arithmetic::Div => complex::div(a, b),
            Arithmetic::Pow => complex::pow(a, b),
        }
    }

    /// Of two numbers of either kind; real if both are.
    pub fn number(self, a: Number, b: Number) -> Number {
        match (a, b) {
            (Number::Real(a), Number::Real(b)) => Number::Real(self.real(a, b)),
            _ => Number::Complex(self.complex(a.to_c64(), b.to_c64())),
        }
    }
}
