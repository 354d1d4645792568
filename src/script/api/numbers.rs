//! Numbers and texts of the language itself, where Rhai's own functions return a number for NaN (`max`, `min`,
//! `to_int`) or do not check memory (`pad`).

use rhai::plugin::*;
use rhai::{Blob, Engine, FLOAT, INT, ImmutableString};

use crate::error::Error;
use crate::number::memory;
use crate::script::Fallible;
use crate::task;

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(number_functions).into());
}

/// The larger; NaN if either is.
fn larger(x: FLOAT, y: FLOAT) -> FLOAT {
    if x.is_nan() || x > y { x } else { y }
}

/// The smaller; NaN if either is.
fn smaller(x: FLOAT, y: FLOAT) -> FLOAT {
    if x.is_nan() || x < y { x } else { y }
}

/// Lengthens a text to `length` characters by repeating another; what memory cannot hold is refused before it is made.
fn padded(text: &mut ImmutableString, length: INT, with: &str) -> Fallible<()> {
    let now = text.chars().count();
    let Some(missing) = usize::try_from(length).ok().and_then(|length| length.checked_sub(now)) else {
        return Ok(());
    };
    let bytes = missing as u128 * 4 + text.len() as u128;
    memory::ensure(bytes, &format!("a text of {length} characters"))?;
    if with.is_empty() {
        return Ok(());
    }
    let text = text.make_mut();
    let mut more = with.chars().cycle().take(missing).peekable();
    while more.peek().is_some() {
        task::poll()?;
        text.extend(more.by_ref().take(PIECE));
    }
    Ok(())
}

/// The most bytes of a blob: what Rhai does with blobs hears no Ctrl-C.
const LARGEST_BLOB: INT = 1 << 28;

fn blob_of(length: INT, value: INT) -> Fallible<Blob> {
    if length > LARGEST_BLOB {
        return Err(Error::memory(format!("a blob of {length} bytes"))
            .hint(format!("blobs hold {LARGEST_BLOB} bytes at most; large data live in a Series or a Matrix"))
            .into());
    }
    // As in Rhai: a negative length counts as zero, and only the lowest byte of the value is used.
    Ok(vec![(value & 0xff) as u8; usize::try_from(length).unwrap_or(0)])
}

/// Bytes or characters between two looks at whether the user wants to stop.
const PIECE: usize = 1 << 16;

/// A blob as Rhai writes it: hexadecimal digits, eight bytes together.
fn digits(blob: &[u8]) -> Fallible<String> {
    use std::fmt::Write;
    memory::ensure(blob.len() as u128 * 9 / 4 + 2, "a text of a blob's bytes")?;
    let mut text = String::from("[");
    for (n, piece) in blob.chunks(PIECE).enumerate() {
        task::poll()?;
        for (k, bytes) in piece.chunks(8).enumerate() {
            if n + k > 0 {
                text.push(' ');
            }
            // Writing to a text cannot fail.
            let _ = bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}"));
        }
    }
    text.push(']');
    Ok(text)
}

#[export_module(root = "crate::script::native")]
mod number_functions {
    /// Lengthens a text to `length` characters with a repeated character or text. Longer texts do not change.
    ///
    /// # Example
    /// ```rhai
    /// let name = "cpu";
    /// name.pad(6, ".");
    /// assert(name == "cpu...", "three more");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn pad(text: &mut ImmutableString, length: INT, fill: &str) -> Fallible<()> {
        padded(text, length, fill)
    }

    #[rhai_fn(global, name = "pad", pure, return_raw)]
    pub fn pad_with(text: &mut ImmutableString, length: INT, fill: char) -> Fallible<()> {
        padded(text, length, fill.encode_utf8(&mut [0; 4]))
    }

    // The shortest text that reads back as the number, with a power of ten below 1e-5 and from 1e16 on.
    #[rhai_fn(name = "to_string", name = "to_debug", name = "print", name = "debug")]
    pub fn float_to_string(x: FLOAT) -> String {
        if x == 0.0 { "0.0".into() } else { format!("{x:?}") }
    }

    /// A blob of this many bytes, 268435456 at most: zeros, or the lowest byte of `value`.
    ///
    /// # Example
    /// ```rhai
    /// let bytes = blob(4, 0x42);
    /// assert(`${bytes}` == "[42424242]", "in hexadecimal digits");
    /// ```
    #[rhai_fn(name = "blob", return_raw)]
    pub fn blob_of_zeros(length: INT) -> Fallible<Blob> {
        blob_of(length, 0)
    }

    #[rhai_fn(name = "blob", return_raw)]
    pub fn blob_of_value(length: INT, value: INT) -> Fallible<Blob> {
        blob_of(length, value)
    }

    #[rhai_fn(name = "to_string", name = "to_debug", name = "print", name = "debug", pure, return_raw)]
    pub fn blob_to_string(blob: &mut Blob) -> Fallible<String> {
        digits(blob)
    }

    /// The larger of two numbers; NaN if one of them is NaN.
    ///
    /// # Example
    /// ```rhai
    /// assert(max(1.5, 2.0) == 2.0, "the larger");
    /// assert(max(1.0, 0.0 / 0.0).is_nan() && max(0.0 / 0.0, 1.0).is_nan(), "NaN wins");
    /// ```
    pub fn max(x: FLOAT, y: FLOAT) -> FLOAT {
        larger(x, y)
    }

    #[rhai_fn(name = "max")]
    pub fn max_if(x: INT, y: FLOAT) -> FLOAT {
        larger(x as FLOAT, y)
    }

    #[rhai_fn(name = "max")]
    pub fn max_fi(x: FLOAT, y: INT) -> FLOAT {
        larger(x, y as FLOAT)
    }

    /// The smaller of two numbers; NaN if one of them is NaN.
    ///
    /// # Example
    /// ```rhai
    /// assert(min(1.5, 2.0) == 1.5, "the smaller");
    /// assert(min(1.0, 0.0 / 0.0).is_nan() && min(0.0 / 0.0, 1.0).is_nan(), "NaN wins");
    /// ```
    pub fn min(x: FLOAT, y: FLOAT) -> FLOAT {
        smaller(x, y)
    }

    #[rhai_fn(name = "min")]
    pub fn min_if(x: INT, y: FLOAT) -> FLOAT {
        smaller(x as FLOAT, y)
    }

    #[rhai_fn(name = "min")]
    pub fn min_fi(x: FLOAT, y: INT) -> FLOAT {
        smaller(x, y as FLOAT)
    }

    /// The whole number between zero and a float that is nearest to the float. NaN, infinities and numbers outside the
    /// range of whole numbers (from -2^63 up to 2^63) are refused.
    ///
    /// # Example
    /// ```rhai
    /// assert((2.9).to_int() == 2 && (-2.9).to_int() == -2, "towards zero");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn to_int(x: FLOAT) -> Fallible<INT> {
        // 2^63, the first power of two that an int of the language cannot hold.
        const END: FLOAT = 9_223_372_036_854_775_808.0;
        if (-END..END).contains(&x) {
            return Ok(x as INT);
        }
        Err(Error::input(format!("to_int: {x} is no whole number"))
            .hint("whole numbers go from -2^63 to 2^63 - 1; `x.is_nan()` asks for NaN")
            .into())
    }

    /// As for other numbers; a whole number does not change.
    ///
    /// # Example
    /// ```rhai
    /// assert(floor(2) == 2 && ceiling(2) == 2 && round(2) == 2 && floor(2.5) == 2.0, "whole numbers stay whole");
    /// ```
    #[rhai_fn(name = "floor", name = "ceiling", name = "round")]
    pub fn whole(x: INT) -> INT {
        x
    }
}
