//! What dense linear algebra needs to know of an element.

use std::ops::{Add, Mul, Sub};

use faer::traits::ComplexField;

use super::{C64, Series, complex};

/// An element type that faer and `Series` both know.
pub(super) trait SeriesElement:
    ComplexField + Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    fn series(data: Vec<Self>) -> Series;
    fn real(self) -> f64;
    fn modulus(self) -> f64;
    /// The power of two of the larger part; nothing of 0.
    fn exponent(self) -> Option<i32>;
    /// Times a power of two, rounded once.
    fn times_power(self, n: i32) -> Self;
    fn over(self, divisor: Self) -> Self;
}

impl SeriesElement for f64 {
    fn series(data: Vec<f64>) -> Series {
        Series::Real(data)
    }
    fn real(self) -> f64 {
        self
    }
    fn modulus(self) -> f64 {
        self.abs()
    }
    fn exponent(self) -> Option<i32> {
        complex::exponent(C64::new(self, 0.0))
    }
    fn times_power(self, n: i32) -> f64 {
        complex::scaled(self, n)
    }
    fn over(self, divisor: f64) -> f64 {
        self / divisor
    }
}

impl SeriesElement for C64 {
    fn series(data: Vec<C64>) -> Series {
        Series::Complex(data)
    }
    fn real(self) -> f64 {
        self.re
    }
    fn modulus(self) -> f64 {
        self.norm()
    }
    fn exponent(self) -> Option<i32> {
        complex::exponent(self)
    }
    fn times_power(self, n: i32) -> C64 {
        complex::scale(self, n)
    }
    fn over(self, divisor: C64) -> C64 {
        complex::div(self, divisor)
    }
}
