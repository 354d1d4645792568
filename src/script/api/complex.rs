//! `Complex`: complex numbers that mix with int and float in every operator.

use std::cmp::Ordering;

use rhai::plugin::*;
use rhai::{Dynamic, Engine, FLOAT, INT, Module};

use super::values::{as_number, type_of};
use crate::error::Error;
use crate::number::{self, C64, Number};
use crate::script::Fallible;
use crate::script::comparison::order;

/// Registers the type, the constants `I` and `PI` and the operators.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<C64>("Complex");
    engine.register_global_module(exported_module!(complex_functions).into());
    let mut constants = Module::new();
    constants.set_var("I", C64::new(0.0, 1.0));
    constants.set_var("PI", std::f64::consts::PI);
    engine.register_global_module(constants.into());
    arithmetic(engine);
}

/// A complex number as people write it, with the exponents of floats.
pub(crate) fn show(z: C64) -> String {
    let sign = if z.im.is_sign_negative() { '-' } else { '+' };
    let part = |x: f64| {
        let text = format!("{x:?}");
        text.strip_suffix(".0").map(str::to_string).unwrap_or(text)
    };
    format!("{} {sign} {}i", part(z.re), part(z.im.abs()))
}

fn arithmetic(engine: &mut Engine) {
    // A real number has no imaginary part, not one of zero: zeros keep their signs,
    // and infinite parts stay on their own.
    engine.register_fn("+", |a: C64, b: C64| a + b);
    engine.register_fn("-", |a: C64, b: C64| a - b);
    engine.register_fn("*", |a: C64, b: C64| a * b);
    engine.register_fn("/", number::complex::div);
    engine.register_fn("**", number::complex::pow);
    macro_rules! with_real {
        ($($real:ty),*) => {$(
            engine.register_fn("+", |a: C64, b: $real| a + b as FLOAT);
            engine.register_fn("+", |a: $real, b: C64| b + a as FLOAT);
            engine.register_fn("-", |a: C64, b: $real| a - b as FLOAT);
            engine.register_fn("-", |a: $real, b: C64| C64::new(a as FLOAT - b.re, -b.im));
            engine.register_fn("*", |a: C64, b: $real| a * b as FLOAT);
            engine.register_fn("*", |a: $real, b: C64| b * a as FLOAT);
            engine.register_fn("/", |a: C64, b: $real| a / b as FLOAT);
            engine.register_fn("/", |a: $real, b: C64| number::complex::div(C64::new(a as FLOAT, 0.0), b));
            engine.register_fn("**", |a: $real, b: C64| number::complex::pow(C64::new(a as FLOAT, 0.0), b));
        )*};
    }
    with_real!(FLOAT, INT);
    engine.register_fn("**", |a: C64, b: INT| number::complex::powi(a, b));
    engine.register_fn("**", |a: C64, b: FLOAT| number::complex::pow(a, C64::new(b, 0.0)));
    engine.register_fn("-", |a: C64| -a);
    engine.register_fn("+", |a: C64| a);
    engine.register_fn("==", |a: C64, b: C64| a == b);
    engine.register_fn("!=", |a: C64, b: C64| a != b);
    engine.register_fn("==", |a: C64, b: FLOAT| is_real(a, b));
    engine.register_fn("!=", |a: C64, b: FLOAT| !is_real(a, b));
    engine.register_fn("==", |a: FLOAT, b: C64| is_real(b, a));
    engine.register_fn("!=", |a: FLOAT, b: C64| !is_real(b, a));
    engine.register_fn("==", |a: C64, b: INT| is_whole(a, b));
    engine.register_fn("!=", |a: C64, b: INT| !is_whole(a, b));
    engine.register_fn("==", |a: INT, b: C64| is_whole(b, a));
    engine.register_fn("!=", |a: INT, b: C64| !is_whole(b, a));
}

fn is_real(z: C64, x: FLOAT) -> bool {
    z.im == 0.0 && z.re == x
}

/// With all digits of the whole number.
fn is_whole(z: C64, n: INT) -> bool {
    z.im == 0.0 && order(n, z.re) == Some(Ordering::Equal)
}

#[export_module(root = "crate::script::native")]
mod complex_functions {
    /// A complex number from its real and imaginary part.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(complex(1, 2) * I, complex(-2, 1), 1e-15);
    /// ```
    #[rhai_fn(name = "complex")]
    pub fn complex_ff(re: FLOAT, im: FLOAT) -> C64 {
        C64::new(re, im)
    }

    #[rhai_fn(name = "complex")]
    pub fn complex_ii(re: INT, im: INT) -> C64 {
        C64::new(re as FLOAT, im as FLOAT)
    }

    #[rhai_fn(name = "complex")]
    pub fn complex_if(re: INT, im: FLOAT) -> C64 {
        C64::new(re as FLOAT, im)
    }

    #[rhai_fn(name = "complex")]
    pub fn complex_fi(re: FLOAT, im: INT) -> C64 {
        C64::new(re, im as FLOAT)
    }

    /// The real part.
    ///
    /// # Example
    /// ```rhai
    /// assert((3.0 + 4.0 * I).re == 3.0, "real part");
    /// ```
    #[rhai_fn(get = "re", pure)]
    pub fn re(z: &mut C64) -> FLOAT {
        z.re
    }

    /// A real number is its own real part: results are real where all they are made of is.
    ///
    /// # Example
    /// ```rhai
    /// assert((2.5).re == 2.5 && (2.5).im == 0.0 && (3).re == 3, "real numbers");
    /// ```
    #[rhai_fn(get = "re", pure)]
    pub fn re_of_real(x: &mut FLOAT) -> FLOAT {
        *x
    }

    #[rhai_fn(get = "re", pure)]
    pub fn re_of_int(x: &mut INT) -> INT {
        *x
    }

    #[rhai_fn(get = "im", pure)]
    pub fn im_of_real(_x: &mut FLOAT) -> FLOAT {
        0.0
    }

    #[rhai_fn(get = "im", pure)]
    pub fn im_of_int(_x: &mut INT) -> INT {
        0
    }

    /// The imaginary part.
    ///
    /// # Example
    /// ```rhai
    /// assert((3.0 + 4.0 * I).im == 4.0, "imaginary part");
    /// ```
    #[rhai_fn(get = "im", pure)]
    pub fn im(z: &mut C64) -> FLOAT {
        z.im
    }

    /// The complex conjugate.
    ///
    /// # Example
    /// ```rhai
    /// assert((1.0 + I).conj() == 1.0 - I && conj(2.0) == 2.0, "a real number is its own");
    /// ```
    #[rhai_fn(pure)]
    pub fn conj(z: &mut C64) -> C64 {
        z.conj()
    }

    /// A real number is its own complex conjugate.
    ///
    /// # Example
    /// ```rhai
    /// assert(conj(2.0) == 2.0 && conj(-3) == -3, "themselves");
    /// ```
    #[rhai_fn(name = "conj")]
    pub fn conj_real(x: FLOAT) -> FLOAT {
        x
    }

    #[rhai_fn(name = "conj")]
    pub fn conj_whole(x: INT) -> INT {
        x
    }

    /// The argument (angle), in radians.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(I.arg(), PI / 2.0, 1e-15);
    /// ```
    #[rhai_fn(pure)]
    pub fn arg(z: &mut C64) -> FLOAT {
        z.arg()
    }

    /// The modulus.
    ///
    /// # Example
    /// ```rhai
    /// assert_close((3.0 + 4.0 * I).abs(), 5.0, 1e-15);
    /// ```
    #[rhai_fn(name = "abs", pure)]
    pub fn abs(z: &mut C64) -> FLOAT {
        z.norm()
    }

    /// A number as text, rounded to this many significant digits. If they do not reach the decimal point, the text has
    /// a power of ten.
    ///
    /// # Example
    /// ```rhai
    /// assert(format(PI, 4) == "3.142", "four digits");
    /// assert(format(123456.7, 3) == "1.23e5" && format(123.456, 3) == "123.0", "three digits");
    /// assert(format(1.0 / 3.0 - 2.0 * I, 3) == "0.333 - 2.0i", "complex ones, too");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn format(x: Dynamic, digits: INT) -> Fallible<String> {
        let digits = usize::try_from(digits)
            .ok()
            .filter(|digits| (1..=17).contains(digits))
            .ok_or_else(|| Error::input(format!("a number with {digits} digits")).hint("ask for 1 to 17"))?;
        match as_number(&x) {
            Some(Number::Real(x)) => Ok(number::format::significant(x, digits)),
            Some(Number::Complex(z)) => Ok(number::format::significant_complex(z, digits)),
            None => Err(Error::input(format!("a number is wanted, not {}", type_of(&x)))
                .hint("format several numbers one by one")
                .into()),
        }
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(z: &mut C64) -> String {
        super::show(*z)
    }
}
