//! Numbers as people read them on a screen: a stated number of significant digits, no trailing noise.

use super::C64;

/// How many of something there are, like "1 row" or "2 rows".
pub fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A real number as it is shown in results: to `digits` significant digits, but with a whole part up to a million and
/// one decimal in full: `0.25`, `1000.0`, `1.5e-12`, `NaN`.
pub fn real(x: f64, digits: usize) -> String {
    written(x, digits, digits.max(6), 1)
}

/// A real number rounded to `digits` significant digits, with a power of ten where the digits end before the point:
/// 123.456 to three digits is `123.0`, to two `1.2e2`.
pub fn significant(x: f64, digits: usize) -> String {
    written(x, digits, digits, 0)
}

/// An energy beside others of this size, to twelve decimals where these say something.
pub fn energy(x: f64, size: f64) -> String {
    if size == 0.0 || (1e-6..1e9).contains(&size) { format!("{x:.12}") } else { format!("{x:.12e}") }
}

/// With `digits` significant digits, without a power of ten up to 10^`whole`, with `least` decimals at least.
fn written(x: f64, digits: usize, whole: usize, least: i32) -> String {
    if !x.is_finite() {
        return if x.is_nan() {
            "NaN".into()
        } else if x > 0.0 {
            "inf".into()
        } else {
            "-inf".into()
        };
    }
    if x == 0.0 {
        return "0.0".into();
    }
    let digits = digits.max(1);
    let scientific = format!("{:.*e}", digits - 1, x);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..whole.max(1) as i32).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(least) as usize;
        trimmed(&format!("{x:.decimals$}"))
    } else {
        format!("{}e{exponent}", trimmed(mantissa))
    }
}

/// A complex number as scripts write it: `1.0 - 0.5i`.
pub fn complex(z: C64, digits: usize) -> String {
    both(z, |x| real(x, digits))
}

/// A number as a message names it: a complex one without an imaginary part is real.
pub fn real_or_complex(z: C64, digits: usize) -> String {
    if z.im == 0.0 { real(z.re, digits) } else { complex(z, digits) }
}

/// A complex number with both parts rounded to `digits` significant digits.
pub fn significant_complex(z: C64, digits: usize) -> String {
    both(z, |x| significant(x, digits))
}

fn both(z: C64, part: impl Fn(f64) -> String) -> String {
    let sign = if z.im.is_sign_negative() { '-' } else { '+' };
    format!("{} {sign} {}i", part(z.re), part(z.im.abs()))
}

/// Without needless zeros, but with one decimal, so that a float looks like one.
fn trimmed(text: &str) -> String {
    if !text.contains('.') {
        return format!("{text}.0");
    }
    let text = text.trim_end_matches('0');
    if text.ends_with('.') { format!("{text}0") } else { text.to_string() }
}

/// A text whose control characters are spelt, as `\u{1b}`: names from files must not move the cursor or change the
/// terminal's title. New lines and tabulators stay. Marks that reverse the direction of writing count as control
/// characters.
pub fn plain(text: &str) -> std::borrow::Cow<'_, str> {
    let odd = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(odd) {
        return text.into();
    }
    let spelt = |c: char| if odd(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(spelt).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let cases = [
            (0.25, "0.25"),
            (1000.0, "1000.0"),
            (1.5e-12, "1.5e-12"),
            (0.1 + 0.2, "0.3"),
            (-2.0 / 3.0, "-0.666667"),
            (123456.7, "123456.7"),
            (1.0e7, "1.0e7"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
            (-0.0, "0.0"),
        ];
        for (x, text) in cases {
            assert_eq!(real(x, 6), text);
        }
        assert_eq!(complex(C64::new(1.0, -0.5), 6), "1.0 - 0.5i");
    }

    #[test]
    fn digits_are_as_many_as_asked_for() {
        let cases = [
            (123456.7, 3, "1.23e5"),
            (123.456, 3, "123.0"),
            (123.456, 2, "1.2e2"),
            (123.456, 5, "123.46"),
            (99.96, 3, "100.0"),
            (999.6, 3, "1.0e3"),
            (0.00012345, 3, "0.000123"),
            (0.000012345, 3, "1.23e-5"),
            (-9.99, 1, "-1.0e1"),
            (5.0, 1, "5.0"),
            (std::f64::consts::PI, 4, "3.142"),
            (1e22, 3, "1.0e22"),
            (f64::INFINITY, 3, "inf"),
        ];
        for (x, digits, text) in cases {
            assert_eq!(significant(x, digits), text);
        }
        assert_eq!(significant_complex(C64::new(1234.5, -0.12345), 2), "1.2e3 - 0.12i");
    }
}
