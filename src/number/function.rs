//! Elementary functions by name, the same for a number and for every element of a `Series`.

use std::f64::consts::{LN_2, LN_10};

use super::{C64, Number, complex};

/// The enum of all functions, in the order of the manual, with their names in scripts.
macro_rules! elementary_functions {
    ($($function:ident $name:literal),+) => {
        /// An elementary function of one number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum ElementaryFunction {
            $($function),+
        }

        impl ElementaryFunction {
            /// Every function, in the order of the manual.
            pub const ALL: &[ElementaryFunction] = &[$(ElementaryFunction::$function),+];

            /// The name in scripts.
            pub fn name(self) -> &'static str {
                match self {
                    $(ElementaryFunction::$function => $name),+
                }
            }
        }
    };
}

elementary_functions! {
    Sin "sin",
    Cos "cos",
    Tan "tan",
    Asin "asin",
    Acos "acos",
    Atan "atan",
    Sinh "sinh",
    Cosh "cosh",
    Tanh "tanh",
    Asinh "asinh",
    Acosh "acosh",
    Atanh "atanh",
    Exp "exp",
    Ln "ln",
    Log10 "log10",
    Log2 "log2",
    Sqrt "sqrt",
    Cbrt "cbrt",
    Abs "abs",
    Floor "floor",
    Ceiling "ceiling",
    Round "round",
    Sign "sign"
}

impl ElementaryFunction {
    /// The function of that name.
    pub fn named(name: &str) -> Option<ElementaryFunction> {
        ElementaryFunction::ALL.iter().copied().find(|f| f.name() == name)
    }

    /// Of a real number; outside the real domain (`sqrt(-1.0)`, `ln(-1.0)`) it is NaN.
    pub fn real(self, x: f64) -> f64 {
        match self {
            ElementaryFunction::Sin => x.sin(),
            ElementaryFunction::Cos => x.cos(),
            ElementaryFunction::Tan => x.tan(),
            ElementaryFunction::Asin => x.asin(),
            ElementaryFunction::Acos => x.acos(),
            ElementaryFunction::Atan => x.atan(),
            ElementaryFunction::Sinh => x.sinh(),
            ElementaryFunction::Cosh => x.cosh(),
            ElementaryFunction::Tanh => x.tanh(),
            ElementaryFunction::Asinh => x.asinh(),
            ElementaryFunction::Acosh => x.acosh(),
            ElementaryFunction::Atanh => x.atanh(),
            ElementaryFunction::Exp => x.exp(),
            ElementaryFunction::Ln => x.ln(),
            ElementaryFunction::Log10 => x.log10(),
            ElementaryFunction::Log2 => x.log2(),
            ElementaryFunction::Sqrt => x.sqrt(),
            ElementaryFunction::Cbrt => x.cbrt(),
            ElementaryFunction::Abs => x.abs(),
            ElementaryFunction::Floor => x.floor(),
            ElementaryFunction::Ceiling => x.ceil(),
            ElementaryFunction::Round => x.round(),
            // Unlike `signum`, zero has no sign.
            ElementaryFunction::Sign if x == 0.0 => 0.0,
            ElementaryFunction::Sign => x.signum(),
        }
    }

    /// Of a complex number, on the principal branch. `abs` is real; rounding works on both parts; `sign` is `z/|z|`.
    pub fn complex(self, z: C64) -> Number {
        Number::Complex(match self {
            ElementaryFunction::Sin => complex::sin(z),
            ElementaryFunction::Cos => complex::cos(z),
            ElementaryFunction::Tan => complex::tan(z),
            ElementaryFunction::Asin => complex::asin(z),
            ElementaryFunction::Acos => complex::acos(z),
            ElementaryFunction::Atan => complex::atan(z),
            ElementaryFunction::Sinh => complex::sinh(z),
            ElementaryFunction::Cosh => complex::cosh(z),
            ElementaryFunction::Tanh => complex::tanh(z),
            ElementaryFunction::Asinh => complex::asinh(z),
            ElementaryFunction::Acosh => complex::acosh(z),
            ElementaryFunction::Atanh => complex::atanh(z),
            ElementaryFunction::Exp => complex::exp(z),
            ElementaryFunction::Ln => complex::ln(z),
            ElementaryFunction::Log10 => complex::ln(z) / LN_10,
            ElementaryFunction::Log2 => complex::ln(z) / LN_2,
            ElementaryFunction::Sqrt => complex::sqrt(z),
            ElementaryFunction::Cbrt => complex::cbrt(z),
            ElementaryFunction::Abs => return Number::Real(z.norm()),
            ElementaryFunction::Floor => C64::new(z.re.floor(), z.im.floor()),
            ElementaryFunction::Ceiling => C64::new(z.re.ceil(), z.im.ceil()),
            ElementaryFunction::Round => C64::new(z.re.round(), z.im.round()),
            ElementaryFunction::Sign => complex::sign(z),
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
