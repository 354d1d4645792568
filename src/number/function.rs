//! Elementary functions by name, the same for a number and for every element of a `Series`.

use super::{C64, Number};

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
            Function::Sin => z.sin(),
            Function::Cos => z.cos(),
            Function::Tan => z.tan(),
            Function::Asin => z.asin(),
            Function::Acos => z.acos(),
            Function::Atan => z.atan(),
            Function::Sinh => z.sinh(),
            Function::Cosh => z.cosh(),
            Function::Tanh => z.tanh(),
            Function::Asinh => z.asinh(),
            Function::Acosh => z.acosh(),
            Function::Atanh => z.atanh(),
            Function::Exp => z.exp(),
            Function::Ln => z.ln(),
            Function::Log10 => z.log10(),
            Function::Log2 => z.log2(),
            Function::Sqrt => z.sqrt(),
            Function::Cbrt => z.cbrt(),
            Function::Abs => return Number::Real(z.norm()),
            Function::Floor => C64::new(z.re.floor(), z.im.floor()),
            Function::Ceiling => C64::new(z.re.ceil(), z.im.ceil()),
            Function::Round => C64::new(z.re.round(), z.im.round()),
            Function::Sign if z.norm() == 0.0 => C64::new(0.0, 0.0),
            Function::Sign => z / z.norm(),
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
