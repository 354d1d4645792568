//! Complex functions with the accuracy of the real ones: no overflow on the way to a result that is a number, no digits
//! lost to cancellation, and the branch cuts, with the signs of zeros beside them, of the C standard.
//!
//! After W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign bit" (1987), and
//! annex G of the C standard.

use std::f64::consts::{FRAC_PI_2, LN_2};

use super::C64;

/// `x 2^n`, rounded once.
pub(super) fn scaled(x: f64, n: i32) -> f64 {
    match power_of_two(n) {
        Some(power) => x * power,
        None => libm::scalbn(x, n),
    }
}

/// `2^n` where it is a normal number.
fn power_of_two(n: i32) -> Option<f64> {
    let biased = n.saturating_add(f64::MAX_EXP - 1);
    (1..=2 * f64::MAX_EXP - 2)
        .contains(&biased)
        .then(|| f64::from_bits((biased as u64) << (f64::MANTISSA_DIGITS - 1)))
}

/// The power of two by which both parts may be divided so that the larger lies between 1 and 2; nothing for zeros and
/// numbers that are none.
pub(super) fn exponent(z: C64) -> Option<i32> {
    let large = z.re.abs().max(z.im.abs());
    let numbers = z.re.is_finite() && z.im.is_finite();
    (numbers && large > 0.0).then(|| libm::ilogb(large))
}

/// `z 2^n`, rounded once.
pub(super) fn scale(z: C64, n: i32) -> C64 {
    C64::new(scaled(z.re, n), scaled(z.im, n))
}

/// `a / b`, also where the squares of the parts of `b` are beyond what numbers hold.
pub fn div(a: C64, b: C64) -> C64 {
    if b.im == 0.0 && b.re != 0.0 {
        // A real divisor divides each part alone, so that an infinite part leaves the other as it is.
        return C64::new(a.re / b.re, a.im / b.re);
    }
    let (Some(n), Some(m)) = (exponent(a), exponent(b)) else {
        return div_unbounded(a, b);
    };
    // Scaled only where the products would leave the range, so that a small part is not lost beside a large one.
    let n = if n.abs() < 500 { 0 } else { n };
    let (p, q) = (scale(a, -n), scale(b, -m));
    let size = q.re * q.re + q.im * q.im;
    let re = difference_of_products(p.re, q.re, -p.im, q.im) / size;
    let im = difference_of_products(p.im, q.re, p.re, q.im) / size;
    scale(C64::new(re, im), n - m)
}

/// `a b - c d` without the loss of digits where both products are nearly the same (Kahan).
fn difference_of_products(a: f64, b: f64, c: f64, d: f64) -> f64 {
    let w = c * d;
    let rest = (-c).mul_add(d, w);
    a.mul_add(b, -w) + rest
}

/// The quotient of zeros and infinities.
fn div_unbounded(a: C64, b: C64) -> C64 {
    let nan = |z: C64| z.re.is_nan() || z.im.is_nan();
    let infinite = |z: C64| z.re.is_infinite() || z.im.is_infinite();
    let sign = |x: f64| if x.is_infinite() { 1f64.copysign(x) } else { 0f64.copysign(x) };
    if b.re == 0.0 && b.im == 0.0 && !nan(a) {
        let large = f64::INFINITY.copysign(b.re);
        return C64::new(large * a.re, large * a.im);
    }
    if infinite(a) && b.re.is_finite() && b.im.is_finite() {
        let (re, im) = (sign(a.re), sign(a.im));
        return C64::new(re * b.re + im * b.im, im * b.re - re * b.im) * f64::INFINITY;
    }
    if infinite(b) && a.re.is_finite() && a.im.is_finite() {
        let (re, im) = (sign(b.re), sign(b.im));
        return C64::new(0.0 * (a.re * re + a.im * im), 0.0 * (a.im * re - a.re * im));
    }
    if a.re == 0.0 && a.im == 0.0 && !nan(b) {
        return C64::ZERO;
    }
    C64::new(f64::NAN, f64::NAN)
}

/// The square root with a real part that is not negative.
pub fn sqrt(z: C64) -> C64 {
    let (x, y) = (z.re, z.im);
    if x == 0.0 && y == 0.0 {
        return C64::new(0.0, y);
    }
    if y.is_infinite() {
        return C64::new(f64::INFINITY, y);
    }
    if x.is_infinite() {
        let (large, small) = (f64::INFINITY, if y.is_nan() { f64::NAN } else { 0.0 });
        return if x < 0.0 { C64::new(small, large.copysign(y)) } else { C64::new(large, small.copysign(y)) };
    }
    // An even power of two, so that the root of it is one.
    let Some(n) = exponent(z).map(|n| n & !1) else { return C64::new(f64::NAN, f64::NAN) };
    let w = scale(z, -n);
    let t = ((w.re.abs() + w.re.hypot(w.im)) * 0.5).sqrt();
    let root = scaled(t, n / 2);
    // From the larger of both imaginary parts: the other may have underflown.
    let other =
        if n > 0 { scaled(y.abs() / (2.0 * t), -(n / 2)) } else { scaled(w.im.abs() / (2.0 * t), n / 2) };
    if x >= 0.0 { C64::new(root, other.copysign(y)) } else { C64::new(other, root.copysign(y)) }
}

/// `ln |z|`, with all digits near |z| = 1.
pub fn ln_abs(z: C64) -> f64 {
    let (x, y) = (z.re.abs().max(z.im.abs()), z.re.abs().min(z.im.abs()));
    match exponent(z) {
        Some(-1..=0) => 0.5 * square_less_one(x, y).ln_1p(),
        // The modulus may be no number, or have lost digits.
        Some(n) if n.abs() > 1000 => scale(z, -n).norm().ln() + f64::from(n) * LN_2,
        _ => z.norm().ln(),
    }
}

/// `x^2 + y^2 - 1`, to the last digits.
fn square_less_one(x: f64, y: f64) -> f64 {
    let sum = |a: f64, b: f64| {
        let s = a + b;
        let back = s - a;
        (s, (a - (s - back)) + (b - back))
    };
    let (xx, yy) = (x * x, y * y);
    let rest = x.mul_add(x, -xx) + y.mul_add(y, -yy);
    let (head, lost) = sum(xx, -1.0);
    let (total, more) = sum(head, yy);
    total + (lost + more + rest)
}

/// The natural logarithm, its imaginary part in (-pi, pi].
pub fn ln(z: C64) -> C64 {
    C64::new(ln_abs(z), z.arg())
}

pub fn exp(z: C64) -> C64 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return C64::new(x.exp(), y);
    }
    if x == f64::NEG_INFINITY && !y.is_finite() {
        return C64::new(0.0, 0f64.copysign(y));
    }
    if x == f64::INFINITY && !y.is_finite() {
        return C64::new(f64::INFINITY, f64::NAN);
    }
    let (sine, cosine) = y.sin_cos();
    times_exp(x, cosine, sine)
}

/// `e^x (a + i b)`, finite wherever the product is.
fn times_exp(x: f64, a: f64, b: f64) -> C64 {
    const STEP: f64 = 512.0;
    let (mut x, mut a, mut b) = (x, a, b);
    // By whole steps, which leave x without rounding; what is beyond four of them overflows or underflows anyhow.
    for _ in 0..4 {
        if x.abs() < 700.0 || !x.is_finite() {
            break;
        }
        let step = STEP.copysign(x);
        (x, a, b) = (x - step, a * step.exp(), b * step.exp());
    }
    let size = x.exp();
    C64::new(size * a, size * b)
}

pub fn sinh(z: C64) -> C64 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return C64::new(x.sinh(), y);
    }
    if !y.is_finite() && (x == 0.0 || x.is_infinite()) {
        return C64::new(x, f64::NAN);
    }
    let (sine, cosine) = y.sin_cos();
    if x.abs() > 22.0 {
        let half = times_exp(x.abs(), 0.5 * cosine, 0.5 * sine);
        return C64::new(half.re.copysign(x * cosine), half.im);
    }
    C64::new(x.sinh() * cosine, x.cosh() * sine)
}

pub fn cosh(z: C64) -> C64 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return C64::new(x.cosh(), if x.is_nan() { y } else { y * 1f64.copysign(x) });
    }
    if !y.is_finite() && (x == 0.0 || x.is_infinite()) {
        return C64::new(
            if x == 0.0 { f64::NAN } else { f64::INFINITY },
            if x == 0.0 { 0.0 } else { f64::NAN },
        );
    }
    let (sine, cosine) = y.sin_cos();
    if x.abs() > 22.0 {
        let half = times_exp(x.abs(), 0.5 * cosine, 0.5 * sine);
        return C64::new(half.re, half.im * x.signum());
    }
    C64::new(x.cosh() * cosine, x.sinh() * sine)
}

pub fn tanh(z: C64) -> C64 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return C64::new(x.tanh(), y);
    }
    if x.abs() > 22.0 {
        // 1 to all digits, and an imaginary part that may still be a number: 4 sin y cos y e^(-2|x|).
        if y.is_nan() && x.is_finite() {
            return C64::new(f64::NAN, f64::NAN);
        }
        let small = if y.is_finite() { 2.0 * (2.0 * y).sin() } else { 0.0 };
        let small =
            if x.is_infinite() { 0f64.copysign(small) } else { times_exp(-2.0 * x.abs(), small, 0.0).re };
        return C64::new(1f64.copysign(x), small);
    }
    let t = y.tan();
    let (beta, s) = (1.0 + t * t, x.sinh());
    let rho = (1.0 + s * s).sqrt();
    let size = 1.0 + beta * s * s;
    C64::new(beta * rho * s / size, t / size)
}

/// `i z`.
fn turned(z: C64) -> C64 {
    C64::new(-z.im, z.re)
}

/// `-i z`.
fn turned_back(z: C64) -> C64 {
    C64::new(z.im, -z.re)
}

pub fn sin(z: C64) -> C64 {
    turned_back(sinh(turned(z)))
}

pub fn cos(z: C64) -> C64 {
    cosh(turned(z))
}

pub fn tan(z: C64) -> C64 {
    turned_back(tanh(turned(z)))
}

/// The roots of `1 - z` and `1 + z`, with the sign of a zero imaginary part.
fn roots_beside_one(z: C64) -> (C64, C64) {
    (sqrt(C64::new(1.0 - z.re, -z.im)), sqrt(C64::new(1.0 + z.re, z.im)))
}

/// Beyond this the inverse functions are logarithms of 2z, and their products would overflow.
const FAR: f64 = 1e150;

fn is_far(z: C64) -> bool {
    z.re.abs() > FAR || z.im.abs() > FAR
}

/// The arc sine; its cuts are the real numbers beyond -1 and 1.
pub fn asin(z: C64) -> C64 {
    if z.re.is_nan() || z.im.is_nan() {
        let re = if z.re == 0.0 { z.re } else { f64::NAN };
        let im =
            if z.re.is_infinite() || z.im.is_infinite() { f64::INFINITY.copysign(z.im) } else { f64::NAN };
        return C64::new(re, im);
    }
    if is_far(z) {
        let re = z.re.atan2(z.im.abs());
        return C64::new(re, (ln_abs(z) + LN_2).copysign(z.im));
    }
    let (a, b) = roots_beside_one(z);
    // No term of either sum cancels another: the imaginary parts of the roots have opposite signs.
    let re = z.re.atan2(a.re * b.re - a.im * b.im);
    C64::new(re, (a.re * b.im - a.im * b.re).asinh().copysign(z.im))
}

/// The arc cosine; its cuts are those of the arc sine.
pub fn acos(z: C64) -> C64 {
    if z.re.is_nan() || z.im.is_nan() {
        let im =
            if z.re.is_infinite() || z.im.is_infinite() { f64::INFINITY.copysign(-z.im) } else { f64::NAN };
        let re = if z.re == 0.0 { FRAC_PI_2 } else { f64::NAN };
        return C64::new(re, im);
    }
    if is_far(z) {
        return C64::new(z.im.abs().atan2(z.re), -(ln_abs(z) + LN_2).copysign(z.im));
    }
    let (a, b) = roots_beside_one(z);
    let re = 2.0 * a.re.atan2(b.re);
    C64::new(re, (b.re * a.im - b.im * a.re).asinh().copysign(-z.im))
}

/// The inverse hyperbolic cosine; its cut are the real numbers below 1.
pub fn acosh(z: C64) -> C64 {
    let w = acos(z);
    // Times +i or -i, whichever makes the real part not negative.
    if z.im.is_sign_negative() { C64::new(w.im.abs(), -w.re) } else { C64::new(w.im.abs(), w.re) }
}

/// The inverse hyperbolic sine; its cuts are the imaginary numbers beyond -i and i.
pub fn asinh(z: C64) -> C64 {
    turned_back(asin(turned(z)))
}

/// The inverse hyperbolic tangent; its cuts are the real numbers beyond -1 and 1.
pub fn atanh(z: C64) -> C64 {
    // In the right half plane and mirrored back.
    let sign = 1f64.copysign(z.re);
    let (x, y) = (z.re.abs(), z.im * sign);
    let mirrored = |re: f64, im: f64| C64::new(re * sign, im * sign);
    if x.is_nan() || y.is_nan() {
        let im = if y.is_infinite() { FRAC_PI_2.copysign(y) } else { f64::NAN };
        let re = if x == 0.0 || x.is_infinite() || y.is_infinite() { 0.0 } else { f64::NAN };
        return mirrored(re, im);
    }
    if is_far(C64::new(x, y)) {
        let re = if x.is_infinite() || y.is_infinite() { 0.0 } else { div(C64::ONE, C64::new(x, y)).re };
        return mirrored(re, FRAC_PI_2.copysign(y));
    }
    if x == 1.0 && y.abs() < 1e-100 {
        // (1 - x)^2 + y^2 is too small for a number.
        let re = if y == 0.0 { f64::INFINITY } else { 0.5 * (LN_2 - y.abs().ln()) };
        let im = if y == 0.0 { y } else { 0.5 * (FRAC_PI_2 + 0.5 * y.abs()).copysign(y) };
        return mirrored(re, im);
    }
    let (left, right) = (1.0 - x, 1.0 + x);
    let re = 0.25 * (4.0 * x / (left * left + y * y)).ln_1p();
    // The angle of (1 - x)(1 + x) - y^2 + 2 i y.
    let im = 0.5 * (2.0 * y).atan2(left * right - y * y);
    mirrored(re, im)
}

/// The arc tangent; its cuts are the imaginary numbers beyond -i and i.
pub fn atan(z: C64) -> C64 {
    turned_back(atanh(turned(z)))
}

/// The cubic root with an angle in (-pi/3, pi/3].
pub fn cbrt(z: C64) -> C64 {
    let Some(n) = exponent(z).map(|n| n - n.rem_euclid(3)) else {
        return if z.re == 0.0 && z.im == 0.0 { z } else { z.cbrt() };
    };
    let angle = z.arg() / 3.0;
    let size = scaled(scale(z, -n).norm().cbrt(), n / 3);
    C64::new(size * angle.cos(), size * angle.sin())
}

/// `z / |z|`, 0 of 0.
pub fn sign(z: C64) -> C64 {
    let Some(n) = exponent(z) else {
        return if z.re == 0.0 && z.im == 0.0 { C64::ZERO } else { z / z.norm() };
    };
    let w = scale(z, -n);
    w / w.norm()
}

/// A whole power by products, so that `I ** 2` is exactly -1; by the logarithm where they leave the range of numbers.
pub fn powi(z: C64, n: i64) -> C64 {
    if z.im == 0.0 {
        // The sign of the zero is that of n z^(n - 1).
        let odd = n.rem_euclid(2) == 1;
        let negative = z.im.is_sign_negative() ^ (n < 0) ^ (!odd && z.re < 0.0);
        return C64::new(z.re.powf(n as f64), if negative && n != 0 { -0.0 } else { 0.0 });
    }
    // Longer products would lose more digits than the logarithm does.
    if n.unsigned_abs() <= 1024 {
        let (mut left, mut base, mut power) = (n.unsigned_abs(), z, C64::ONE);
        while left > 0 {
            if left & 1 == 1 {
                power *= base;
            }
            left >>= 1;
            if left > 0 {
                base *= base;
            }
        }
        let large = power.re.abs().max(power.im.abs());
        if power.is_finite() && large >= f64::MIN_POSITIVE || !z.is_finite() {
            return if n < 0 { div(C64::ONE, power) } else { power };
        }
    }
    by_logarithm(z, C64::new(n as f64, 0.0))
}

/// The power `a^b`, the principal value.
pub fn pow(a: C64, b: C64) -> C64 {
    // Beyond 2^53 every float is whole, and even.
    if b.im == 0.0 && b.re.fract() == 0.0 && b.re.abs() <= 9007199254740992.0 {
        return powi(a, b.re as i64);
    }
    if b.im == 0.0 && a.im == 0.0 && a.re > 0.0 {
        return C64::new(a.re.powf(b.re), 0.0);
    }
    if a.re == 0.0 && a.im == 0.0 {
        return if b.re > 0.0 { C64::ZERO } else { div(C64::ONE, a) };
    }
    by_logarithm(a, b)
}

fn by_logarithm(a: C64, b: C64) -> C64 {
    let log = ln(a);
    if b.im == 0.0 {
        return exp(C64::new(log.re * b.re, log.im * b.re));
    }
    exp(C64::new(
        difference_of_products(b.re, log.re, b.im, log.im),
        difference_of_products(b.re, log.im, -b.im, log.re),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product with a power of two is rounded once, as the library's function is, in all corners of the range.
    #[test]
    fn powers_of_two_scale_as_the_library_does() {
        let numbers = [1.0, -1.5, 0.1, f64::MAX, f64::MIN_POSITIVE, 5e-324, 3e-310, 0.0, -0.0, f64::INFINITY];
        for x in numbers {
            for n in
                [-2100, -1080, -1075, -1074, -1023, -1022, -1021, -53, -1, 0, 1, 52, 1022, 1023, 1024, 2100]
            {
                assert_eq!(scaled(x, n).to_bits(), libm::scalbn(x, n).to_bits(), "{x:e} 2^{n}");
            }
        }
        assert!(scaled(f64::NAN, 3).is_nan());
    }

    const FUNCTIONS: [(&str, fn(C64) -> C64); 15] = [
        ("sqrt", sqrt),
        ("ln", ln),
        ("exp", exp),
        ("sin", sin),
        ("cos", cos),
        ("tan", tan),
        ("sinh", sinh),
        ("cosh", cosh),
        ("tanh", tanh),
        ("asin", asin),
        ("acos", acos),
        ("atan", atan),
        ("asinh", asinh),
        ("acosh", acosh),
        ("atanh", atanh),
    ];

    fn close(x: f64, y: f64, size: f64, tolerance: f64) -> bool {
        x == y || (x - y).abs() <= tolerance * size
    }

    #[test]
    fn functions_agree_with_many_digits() {
        let lines = include_str!("complex_reference.txt").lines().filter(|line| !line.starts_with('#'));
        let mut checked = 0;
        for line in lines {
            let (name, numbers) = line.split_once(' ').unwrap();
            let x: Vec<f64> = numbers.split(' ').map(|x| x.parse().unwrap()).collect();
            let (z, w) = (C64::new(x[0], x[1]), C64::new(x[x.len() - 2], x[x.len() - 1]));
            let size = w.re.abs().max(w.im.abs());
            let found = match name {
                "div" => div(z, C64::new(x[2], x[3])),
                "pow" => pow(z, C64::new(x[2], x[3])),
                _ => FUNCTIONS.iter().find(|f| f.0 == name).unwrap().1(z),
            };
            // Powers lose the digits of the logarithm's size.
            let tolerance = if name == "pow" { 1e-12 } else { 1e-15 };
            let ok = close(found.re, w.re, size, tolerance) && close(found.im, w.im, size, tolerance);
            assert!(ok, "{line}: {found:?}");
            // Each part has its digits, however small beside the other.
            if !matches!(name, "div" | "pow") {
                let ok = close(found.re, w.re, w.re.abs(), 1e-14) && close(found.im, w.im, w.im.abs(), 1e-14);
                assert!(ok, "{line}: {found:?}");
            }
            checked += 1;
        }
        assert_eq!(checked, 17 * 16);
    }

    #[test]
    fn cuts_are_continuous_with_the_side_that_the_sign_of_zero_names() {
        for (name, f) in FUNCTIONS {
            for x in [-3.0, -1.5, -0.5, 0.5, 1.5, 3.0] {
                for sign in [1.0, -1.0] {
                    let beside = 1e-9 * sign;
                    for (on, off) in [
                        (C64::new(x, 0.0 * sign), C64::new(x, beside)),
                        (C64::new(0.0 * sign, x), C64::new(beside, x)),
                    ] {
                        assert!((f(on) - f(off)).norm() < 1e-6, "{name} at {on:?}");
                    }
                    // f of the conjugate is the conjugate, the signs of zeros included.
                    let (z, w) = (f(C64::new(x, 0.0 * sign)), f(C64::new(x, -0.0 * sign)));
                    assert!(
                        z.re == w.re && z.im.to_bits() == (-w.im).to_bits(),
                        "{name} at {x}: {z:?} {w:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn whole_powers_are_products() {
        assert_eq!(powi(C64::I, 2), C64::new(-1.0, 0.0));
        assert_eq!(powi(C64::new(1.0, 1.0), 4), C64::new(-4.0, 0.0));
        assert_eq!(powi(C64::new(2.0, 0.0), -2), C64::new(0.25, 0.0));
        assert_eq!(powi(C64::ZERO, 0), C64::ONE);
        let z = powi(C64::new(3.0, 4.0), -400);
        assert!((z.norm().ln() + 400.0 * 5f64.ln()).abs() < 1e-10, "{z:?}");
        let z = powi(C64::new(0.6, 0.8), 1_000_001);
        assert!((z.norm() - 1.0).abs() < 1e-9 && z.is_finite());
        assert!(powi(C64::new(1.0, f64::NAN), 2).re.is_nan());
    }

    #[test]
    fn quotients_of_the_ends_of_the_range() {
        let huge = C64::new(1e200, 1e200);
        assert_eq!(div(huge, huge), C64::ONE);
        assert!((div(C64::ONE, huge) / 5e-201 - C64::new(1.0, -1.0)).norm() < 1e-15);
        let tiny = C64::new(5e-324, 5e-324);
        assert_eq!(div(tiny, tiny), C64::ONE);
        assert_eq!(div(C64::ONE, C64::new(f64::INFINITY, 1.0)), C64::ZERO);
        assert!(div(C64::ONE, C64::ZERO).re.is_infinite());
        assert!(div(C64::ZERO, C64::ZERO).re.is_nan());
    }

    #[test]
    fn what_is_no_number_stays_none() {
        for (name, f) in FUNCTIONS {
            let w = f(C64::new(f64::NAN, 0.3));
            assert!(w.re.is_nan() && w.im.is_nan(), "{name}: {w:?}");
        }
    }
}
