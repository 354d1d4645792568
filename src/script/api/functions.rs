//! The elementary functions that Rhai lacks: of int, of Complex, and of every element of a Series or Matrix.

use rhai::{Engine, FLOAT, FuncRegistration, INT};

use crate::number::{C64, Function, Matrix, Series};

pub(super) fn register(engine: &mut Engine) {
    for function in Function::ALL {
        let name = function.name();
        let comments = doc(function);
        // Rhai has its own `abs`, `sign` and rounding for ints, and most functions for floats.
        let whole = matches!(
            function,
            Function::Abs | Function::Sign | Function::Floor | Function::Ceiling | Function::Round
        );
        if !whole {
            engine.register_fn(name, move |x: INT| function.real(x as FLOAT));
            if matches!(function, Function::Log10 | Function::Log2 | Function::Cbrt) {
                engine.register_fn(name, move |x: FLOAT| function.real(x));
            }
        }
        // A modulus is real, and what rounds has no Complex.
        if !whole || function == Function::Sign {
            engine.register_fn(name, move |z: C64| function.complex(z).to_c64());
        }
        if function == Function::Ln {
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
fn doc(function: Function) -> Vec<String> {
    let what = match function {
        Function::Sin => "The sine",
        Function::Cos => "The cosine",
        Function::Tan => "The tangent",
        Function::Asin => "The arc sine",
        Function::Acos => "The arc cosine",
        Function::Atan => "The arc tangent",
        Function::Sinh => "The hyperbolic sine",
        Function::Cosh => "The hyperbolic cosine",
        Function::Tanh => "The hyperbolic tangent",
        Function::Asinh => "The inverse hyperbolic sine",
        Function::Acosh => "The inverse hyperbolic cosine",
        Function::Atanh => "The inverse hyperbolic tangent",
        Function::Exp => "The exponential",
        Function::Ln => "The natural logarithm",
        Function::Log10 => "The decimal logarithm",
        Function::Log2 => "The binary logarithm",
        Function::Sqrt => "The square root",
        Function::Cbrt => "The cubic root",
        Function::Abs => "The modulus",
        Function::Floor => "The largest whole number not above the value",
        Function::Ceiling => "The smallest whole number not below the value",
        Function::Round => "The whole number nearest to the value",
        Function::Sign => "The sign: -1, 0 or 1, of complex numbers the phase,",
    };
    let name = function.name();
    let x = if function == Function::Acosh { 1.5 } else { 0.5 };
    let mut lines = vec![format!("/// {what} of a number, or of every element of a Series or Matrix.")];
    let limited = [
        Function::Asin,
        Function::Acos,
        Function::Acosh,
        Function::Atanh,
        Function::Ln,
        Function::Log10,
        Function::Log2,
        Function::Sqrt,
    ];
    if limited.contains(&function) {
        let text =
            "/// Of a real number outside the real domain it is NaN; make it Complex for the complex value.";
        lines.push(text.into());
    }
    lines.extend(["///", "/// # Example", "/// ```rhai"].map(String::from));
    lines.push(format!("/// assert_close({name}(series([{x:?}]))[0], {:?}, 1e-15);", function.real(x)));
    lines.push("/// ```".into());
    lines
}
