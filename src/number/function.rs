//! Elementary functions by name, the same for a number and for every element of a `Series`.

use std::f64::consts::{LN_2, LN_10};

use super::{C64, Number, complex};

/// An elementary function of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Function {
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Exp,
    Ln,
    Log10,
    Log2,
    Sqrt,
    Cbrt,
    Abs,
    Floor,
    Ceiling,
    Round,
    Sign,
}

impl Function {
    /// Every function, in the order of the manual.
    pub const ALL: [Function; 23] = [
        Function::Sin,
        Function::Cos,
        Function::Tan,
        Function::Asin,
        Function::Acos,
        Function::Atan,
        Function::Sinh,
        Function::Cosh,
        Function::Tanh,
        Function::Asinh,
        Function::Acosh,
        Function::Atanh,
        Function::Exp,
        Function::Ln,
        Function::Log10,
        Function::Log2,
        Function::Sqrt,
        Function::Cbrt,
        Function::Abs,
        Function::Floor,
        Function::Ceiling,
        Function::Round,
        Function::Sign,
    ];

    /// The name in scripts.
    pub fn name(self) -> &'static str {
        match self {
            Function::Sin => "sin",
            Function::Cos => "cos",
            Function::Tan => "tan",
            Function::Asin => "asin",
            Function::Acos => "acos",
            Function::Atan => "atan",
            Function::Sinh => "sinh",
            Function::Cosh => "cosh",
            Function::Tanh => "tanh",
            Function::Asinh => "asinh",
            Function::Acosh => "acosh",
            Function::Atanh => "atanh",
            Function::Exp => "exp",
            Function::Ln => "ln",
            Function::Log10 => "log10",
            Function::Log2 => "log2",
            Function::Sqrt => "sqrt",
            Function::Cbrt => "cbrt",
            Function::Abs => "abs",
            Function::Floor => "floor",
            Function::Ceiling => "ceiling",
            Function::Round => "round",
            Function::Sign => "sign",
        }
    }

    /// The function of that name.
    pub fn named(name: &str) -> Option<Function> {
        Function::ALL.into_iter().find(|f| f.name() == name)
    }

    /// Of a real number; outside the real domain (`sqrt(-1.0)`, `ln(-1.0)`) it is NaN.
    pub fn real(self, x: f64) -> f64 {
        match self {
            Function::Sin => x.sin(),
            Function::Cos => x.cos(),
            Function::Tan => x.tan(),
            Function::Asin => x.asin(),
            Function::Acos => x.acos(),
            Function::Atan => x.atan(),
            Function::Sinh => x.sinh(),
            Function::Cosh => x.cosh(),
            Function::Tanh => x.tanh(),
            Function::Asinh => x.asinh(),
            Function::Acosh => x.acosh(),
            Function::Atanh => x.atanh(),
            Function::Exp => x.exp(),
            Function::Ln => x.ln(),
            Function::Log10 => x.log10(),
            Function::Log2 => x.log2(),
            Function::Sqrt => x.sqrt(),
            Function::Cbrt => x.cbrt(),
            Function::Abs => x.abs(),
            Function::Floor => x.floor(),
            Function::Ceiling => x.ceil(),
            Function::Round => x.round(),
            // Unlike `signum`, zero has no sign.
            Function::Sign if x == 0.0 => 0.0,
            Function::Sign => x.signum(),
        }
    }

    /// Of a complex number, on the principal branch. `abs` is real; rounding works on both parts; `sign` is `z/|z|`.
    pub fn complex(self, z: C64) -> Number {
        Number::Complex(match self {
            Function::Sin => complex::sin(z),
            Function::Cos => complex::cos(z),
            Function::Tan => complex::tan(z),
            Function::Asin => complex::asin(z),
            Function::Acos => complex::acos(z),
            Function::Atan => complex::atan(z),
            Function::Sinh => complex::sinh(z),
            Function::Cosh => complex::cosh(z),
            Function::Tanh => complex::tanh(z),
            Function::Asinh => complex::asinh(z),
            Function::Acosh => complex::acosh(z),
            Function::Atanh => complex::atanh(z),
            Function::Exp => complex::exp(z),
            Function::Ln => complex::ln(z),
            Function::Log10 => complex::ln(z) / LN_10,
            Function::Log2 => complex::ln(z) / LN_2,
            Function::Sqrt => complex::sqrt(z),
            Function::Cbrt => complex::cbrt(z),
            Function::Abs => return Number::Real(z.norm()),
            Function::Floor => C64::new(z.re.floor(), z.im.floor()),
            Function::Ceiling => C64::new(z.re.ceil(), z.im.ceil()),
            Function::Round => C64::new(z.re.round(), z.im.round()),
            Function::Sign => complex::sign(z),
        })
    }

    /// Of a number of either kind.
    pub fn number(self, x: Number) -> Number {
        match x {
            Number::Real(x) => Number::Real(self.real(x)),
            Number::Complex(z) => self.complex(z),
        }
    }
}
