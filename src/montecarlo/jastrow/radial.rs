//! Radial functions u(r) of Jastrow factors, with their first two derivatives.

pub use crate::backend::walkers::Radial;

/// Below this the series of `(1 - e^-x)/x` is used.
const SMALL: f64 = 1e-3;

/// `g(x) = (1 - e^-x)/x` and its first two derivatives.
fn screened(x: f64) -> [f64; 3] {
    if x < SMALL {
        let series = |c: [f64; 5]| c.iter().rev().fold(0.0, |sum, c| sum * x + c);
        return [
            series([1.0, -1.0 / 2.0, 1.0 / 6.0, -1.0 / 24.0, 1.0 / 120.0]),
            series([-1.0 / 2.0, 1.0 / 3.0, -1.0 / 8.0, 1.0 / 30.0, -1.0 / 144.0]),
            series([1.0 / 3.0, -1.0 / 4.0, 1.0 / 10.0, -1.0 / 36.0, 1.0 / 168.0]),
        ];
    }
    let e = (-x).exp();
    let g = -(-x).exp_m1() / x;
    let g1 = (e - g) / x;
    [g, g1, (-e - 2.0 * g1) / x]
}

impl Radial {
    /// The u(r) of the random phase approximation, shifted so that it vanishes at the cutoff.
    pub fn rpa(strength: f64, length: f64, cutoff: f64) -> Radial {
        let shift = if cutoff.is_finite() { -strength / length * screened(cutoff / length)[0] } else { 0.0 };
        Radial::Rpa { strength, length, cutoff, shift }
    }

    /// u' at contact, where it is finite.
    pub fn slope(&self) -> f64 {
        match self {
            Radial::Zero => 0.0,
            Radial::Pade { a, .. } | Radial::Log { a } => *a,
            Radial::Rpa { strength, length, .. } => strength / (2.0 * length * length),
            Radial::Polynomial { slope, .. } => *slope,
            Radial::Power { .. } => f64::INFINITY,
        }
    }

    /// u(r).
    pub fn value(&self, r: f64) -> f64 {
        match self {
            Radial::Zero => 0.0,
            Radial::Pade { a, b } => a * r / (1.0 + b * r),
            Radial::Rpa { strength, length, cutoff, shift } => {
                if r >= *cutoff {
                    return 0.0;
                }
                let x = r / length;
                let g = if x < SMALL { screened(x)[0] } else { (1.0 - (-x).exp()) / x };
                let t = r / cutoff;
                let left = 1.0 - t;
                (-strength / length * g - shift) * left * left * left * (1.0 + t * (3.0 + 6.0 * t))
            }
            Radial::Polynomial { cutoff, .. } => {
                if r >= *cutoff {
                    return 0.0;
                }
                let left = 1.0 - r / cutoff;
                left * left * left * self.polynomial(r)[0]
            }
            Radial::Log { a } => (a * r).ln_1p(),
            Radial::Power { p } => p * r.ln(),
        }
    }

    /// u, u' and u'' at r.
    pub fn derivatives(&self, r: f64) -> [f64; 3] {
        match self {
            Radial::Zero => [0.0; 3],
            Radial::Pade { a, b } => {
                let d = 1.0 / (1.0 + b * r);
                [a * r * d, a * d * d, -2.0 * a * b * d * d * d]
            }
            Radial::Rpa { strength, length, cutoff, shift } => {
                if r >= *cutoff {
                    return [0.0; 3];
                }
                let c = -strength / length;
                let [g, g1, g2] = screened(r / length);
                let u = [c * g - shift, c * g1 / length, c * g2 / (length * length)];
                let t = r / cutoff;
                let left = 1.0 - t;
                // (1-t)^3 (1+3t+6t^2) has the derivative -30 t^2 (1-t)^2.
                let f = [
                    left * left * left * (1.0 + t * (3.0 + 6.0 * t)),
                    -30.0 * t * t * left * left / cutoff,
                    -60.0 * t * left * (1.0 - 2.0 * t) / (cutoff * cutoff),
                ];
                product(u, f)
            }
            Radial::Polynomial { cutoff, .. } => {
                if r >= *cutoff {
                    return [0.0; 3];
                }
                let left = 1.0 - r / cutoff;
                let f = [left * left * left, -3.0 * left * left / cutoff, 6.0 * left / (cutoff * cutoff)];
                product(self.polynomial(r), f)
            }
            Radial::Log { a } => {
                let d = a / (1.0 + a * r);
                [(a * r).ln_1p(), d, -d * d]
            }
            Radial::Power { p } => [p * r.ln(), p / r, -p / (r * r)],
        }
    }

    /// The polynomial that multiplies (1 - r/L)^3, and its derivatives.
    fn polynomial(&self, r: f64) -> [f64; 3] {
        let Radial::Polynomial { cutoff, slope, coefficients } = self else { return [0.0; 3] };
        let first = coefficients.first().copied().unwrap_or(0.0);
        let rest = coefficients.get(1..).unwrap_or(&[]);
        // Horner for the value and both derivatives: a_2 r^2 + a_3 r^3 + ... = r^2 (a_2 + r (a_3 + ...)).
        let (mut p, mut p1, mut p2) = (0.0, 0.0, 0.0);
        for a in rest.iter().rev() {
            p2 = p2 * r + p1;
            p1 = p1 * r + p;
            p = p * r + a;
        }
        p2 *= 2.0;
        let linear = slope + 3.0 * first / cutoff;
        [
            first + linear * r + r * r * p,
            linear + 2.0 * r * p + r * r * p1,
            2.0 * p + 4.0 * r * p1 + r * r * p2,
        ]
    }
}

/// The product of two functions and its derivatives.
fn product(u: [f64; 3], f: [f64; 3]) -> [f64; 3] {
    [u[0] * f[0], u[1] * f[0] + u[0] * f[1], u[2] * f[0] + 2.0 * u[1] * f[1] + u[0] * f[2]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_those_of_the_value() {
        let all = [
            Radial::Pade { a: 0.5, b: 0.3 },
            Radial::rpa(1.2, 0.9, 3.0),
            Radial::rpa(1.2, 0.9, f64::INFINITY),
            Radial::Polynomial { cutoff: 3.0, slope: 0.25, coefficients: vec![0.3, -0.2, 0.1, 0.05] },
            Radial::Log { a: 0.5 },
            Radial::Power { p: 2.0 },
        ];
        for radial in &all {
            for r in [2e-4, 0.1, 0.7, 1.9, 2.99, 3.5] {
                let h = 1e-4 * r;
                let (low, mid, high) = (radial.value(r - h), radial.value(r), radial.value(r + h));
                let [u, u1, u2] = radial.derivatives(r);
                assert!((u - mid).abs() < 1e-13 * (1.0 + mid.abs()), "{radial:?} at {r}");
                assert!((u1 - (high - low) / (2.0 * h)).abs() < 1e-6 * (1.0 + u1.abs()), "{radial:?} at {r}");
                let (below, above) = (radial.derivatives(r - h)[1], radial.derivatives(r + h)[1]);
                assert!(
                    (u2 - (above - below) / (2.0 * h)).abs() < 1e-5 * (1.0 + u2.abs()),
                    "{radial:?} at {r}"
                );
            }
        }
    }

    #[test]
    fn slopes_at_contact() {
        let slope = |radial: &Radial| {
            let found = radial.derivatives(1e-9)[1];
            assert!((found - radial.slope()).abs() < 1e-8, "{radial:?}");
            found
        };
        assert!((slope(&Radial::rpa(1.5, 1.5f64.sqrt(), 4.0)) - 0.5).abs() < 1e-8);
        let polynomial = Radial::Polynomial { cutoff: 3.0, slope: 0.25, coefficients: vec![0.7, 0.1] };
        assert!((slope(&polynomial) - 0.25).abs() < 1e-8);
    }
}
