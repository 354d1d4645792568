//! The elementary functions that Rhai lacks: of int, of Complex, and of every element of a Series or Matrix.

use rhai::{Engine, FLOAT, FuncRegistration, INT};

use crate::number::{C64, ElementaryFunction, Matrix, Series};

pub(super) fn register(engine: &mut Engine) {
    for &function in ElementaryFunction::ALL {
        let name = function.name();
        let comments = doc(function);
        // Rhai has its own `abs`, `sign` and rounding for ints, and most functions for floats.
        let whole = matches!(
            function,
            ElementaryFunction::Abs
                | ElementaryFunction::Sign
                | ElementaryFunction::Floor
                | ElementaryFunction::Ceiling
                | ElementaryFunction::Round
        );
        if !whole {
            engine.register_fn(name, move |x: INT| function.real(x as FLOAT));
            if matches!(
                function,
                ElementaryFunction::Log10 | ElementaryFunction::Log2 | ElementaryFunction::Cbrt
            ) {
                engine.register_fn(name, move |x: FLOAT| function.real(x));
            }
        }
        // A modulus is real, and what rounds has no Complex.
        if !whole || function == ElementaryFunction::Sign {
            engine.register_fn(name, move |z: C64| function.complex(z).to_c64());
        }
        if function == ElementaryFunction::Ln {
            // Rhai's own `log` of one number is the decimal one, against the habit of every other language.
            let log = |comments| FuncRegistration::new("log").with_comments(comments);
            let about = comments.iter().map(|line| line.replace("ln(", "log("));
            log(about.collect::<Vec<String>>())
                .register_into_engine(engine, move |x: FLOAT| function.real(x));
            engine.register_fn("log", move |x: INT| function.real(x as FLOAT));
            engine.register_fn("log", move |z: C64| function.complex(z).to_c64());
            engine.register_fn("log", move |s: Series| s.map(function));
            engine.register_fn("log", move |m: Matrix| m.map(function));
        }
        FuncRegistration::new(name)
            .with_comments(comments)
            .register_into_engine(engine, move |s: Series| s.map(function));
        engine.register_fn(name, move |m: Matrix| m.map(function));
    }
}

/// The manual's entry of a function.
fn doc(function: ElementaryFunction) -> Vec<String> {
    let what = match function {
        ElementaryFunction::Sin => "The sine",
        ElementaryFunction::Cos => "The cosine",
        ElementaryFunction::Tan => "The tangent",
        ElementaryFunction::Asin => "The arc sine",
        ElementaryFunction::Acos => "The arc cosine",
        ElementaryFunction::Atan => "The arc tangent",
        ElementaryFunction::Sinh => "The hyperbolic sine",
        ElementaryFunction::Cosh => "The hyperbolic cosine",
        ElementaryFunction::Tanh => "The hyperbolic tangent",
        ElementaryFunction::Asinh => "The inverse hyperbolic sine",
        ElementaryFunction::Acosh => "The inverse hyperbolic cosine",
        ElementaryFunction::Atanh => "The inverse hyperbolic tangent",
        ElementaryFunction::Exp => "The exponential",
        ElementaryFunction::Ln => "The natural logarithm",
        ElementaryFunction::Log10 => "The decimal logarithm",
        ElementaryFunction::Log2 => "The binary logarithm",
        ElementaryFunction::Sqrt => "The square root",
        ElementaryFunction::Cbrt => "The cubic root",
        ElementaryFunction::Abs => "The modulus",
        ElementaryFunction::Floor => "The largest whole number not above the value",
        ElementaryFunction::Ceiling => "The smallest whole number not below the value",
        ElementaryFunction::Round => "The whole number nearest to the value",
        ElementaryFunction::Sign => "The sign: -1, 0 or 1, of complex numbers the phase,",
    };
    let name = function.name();
    let x = if function == ElementaryFunction::Acosh { 1.5 } else { 0.5 };
    let mut lines = vec![format!("/// {what} of a number, or of every element of a Series or Matrix.")];
    let limited = [
        ElementaryFunction::Asin,
        ElementaryFunction::Acos,
        ElementaryFunction::Acosh,
        ElementaryFunction::Atanh,
        ElementaryFunction::Ln,
        ElementaryFunction::Log10,
        ElementaryFunction::Log2,
        ElementaryFunction::Sqrt,
    ];
    if limited.contains(&function) {
        let text =
            "/// It is NaN for a real number outside the real domain; a Complex number has a value there.";
        lines.push(text.into());
    }
    lines.extend(["///", "/// # Example", "/// ```rhai"].map(String::from));
    lines.push(format!("/// assert_close({name}(series([{x:?}]))[0], {:?}, 1e-15);", function.real(x)));
    lines.push("/// ```".into());
    lines
}
