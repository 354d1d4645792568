//! The best rational function for 1/sqrt(y) on [eps, 1], after Zolotarev.

use std::f64::consts::PI;

use super::minmax::{check, check_error, drowned};
use crate::error::{Error, Result};

/// Zolotarev's best rational function for 1/sqrt(y) on [eps, 1]: R(y) = sum_k residue_k/(y + shift_k).
#[derive(Debug, Clone, PartialEq)]
pub struct Zolotarev {
    /// The lower end of the interval.
    pub eps: f64,
    /// max |1 - sqrt(y) R(y)| on it.
    pub deviation: f64,
    /// s_k > 0: the poles lie at y = -s_k.
    pub shifts: Vec<f64>,
    pub residues: Vec<f64>,
}

impl Zolotarev {
    /// The function with a number of poles (van den Eshof et al., CPC 146 (2002) 203).
    ///
    /// # Errors
    /// `eps` outside (0, 1), no pole or more than 200.
    pub fn of_order(eps: f64, poles: usize) -> Result<Zolotarev> {
        check(eps)?;
        if poles == 0 || poles > 200 {
            return Err(Error::input(format!("a rational function of {poles} poles")).hint("it has 1 to 200"));
        }
        // sqrt(y) lies in [k', 1] with k' = sqrt(eps); in units of the lower end, [1, 1/k'].
        let complementary = eps.sqrt();
        let m = 1.0 - eps;
        let quarter = quarter_period(m);
        let c: Vec<f64> = (1..2 * poles)
            .map(|l| {
                let (sn, cn) = jacobi(quarter * l as f64 / (2 * poles) as f64, m);
                sn * sn / (cn * cn) * complementary * complementary
            })
            .collect();
        let odd = |l: usize| c[2 * l];
        let even = |l: usize| c[2 * l + 1];
        // prod (y + c_2l)/prod (y + c_2l-1) in partial fractions.
        let residues: Vec<f64> = (0..poles)
            .map(|k| {
                // Ratio by ratio: the products alone would over- or underflow.
                let others = (0..poles).filter(|l| *l != k);
                (0..poles - 1).zip(others).map(|(l, o)| (even(l) - odd(k)) / (odd(o) - odd(k))).product()
            })
            .collect();
        let mut r = Zolotarev { eps, deviation: 0.0, shifts: (0..poles).map(odd).collect(), residues };
        // The factor that makes largest and smallest values of sqrt(y) R(y) lie evenly around one.
        let (low, high) = r.range();
        let scale = 2.0 / (low + high);
        r.residues.iter_mut().for_each(|x| *x *= scale);
        let (low, high) = r.range();
        r.deviation = (1.0 - low).max(high - 1.0);
        Ok(r)
    }

    /// The function of the fewest poles whose deviation is `error` at most.
    ///
    /// # Errors
    /// As [`Zolotarev::of_order`], and an error out of reach of double precision.
    pub fn to_error(eps: f64, error: f64) -> Result<Zolotarev> {
        check_error(error)?;
        let mut before = f64::INFINITY;
        for poles in 1..=200 {
            let r = Self::of_order(eps, poles)?;
            if r.deviation <= error {
                return Ok(r);
            }
            // Each further pole divides the deviation by about the same number, down to the level of rounding.
            if !(r.deviation < before) {
                return Err(drowned(eps, before));
            }
            before = r.deviation;
        }
        Err(Error::input(format!("a deviation of {error:e} on [{eps:e}, 1] takes more than 200 poles"))
            .hint("raise `eps` by more low modes"))
    }

    /// R(y).
    pub fn at(&self, y: f64) -> f64 {
        self.residues.iter().zip(&self.shifts).map(|(r, s)| r / (y + s)).sum()
    }

    fn range(&self) -> (f64, f64) {
        let points = 2000 * self.shifts.len().max(2);
        let value = |i: usize| {
            // Evenly in the logarithm, where the extrema are.
            let y = self.eps.powf(1.0 - i as f64 / points as f64);
            y.sqrt() * self.at(y)
        };
        // Written so that NaN is not lost.
        let wider = |(l, h): (f64, f64), v: f64| (if v >= l { l } else { v }, if v <= h { h } else { v });
        (0..=points).map(value).fold((f64::INFINITY, 0.0), wider)
    }
}

/// K(m) by the arithmetic-geometric mean.
fn quarter_period(m: f64) -> f64 {
    let (mut a, mut b) = (1.0, (1.0 - m).sqrt());
    for _ in 0..60 {
        if (a - b).abs() <= 1e-16 * a {
            break;
        }
        (a, b) = (0.5 * (a + b), (a * b).sqrt());
    }
    PI / (2.0 * a)
}

/// sn(u|m) and cn(u|m) by descending Landen transformations (Abramowitz, Stegun 16.4).
fn jacobi(u: f64, m: f64) -> (f64, f64) {
    let (mut a, mut c) = (vec![1.0], vec![m.sqrt()]);
    let mut b = (1.0 - m).sqrt();
    while c[c.len() - 1].abs() > 1e-16 && a.len() < 60 {
        let last = a[a.len() - 1];
        a.push(0.5 * (last + b));
        c.push(0.5 * (last - b));
        b = (last * b).sqrt();
    }
    let n = a.len() - 1;
    let mut phi = (1u64 << n) as f64 * a[n] * u;
    for k in (1..=n).rev() {
        phi = 0.5 * (phi + (c[k] / a[k] * phi.sin()).clamp(-1.0, 1.0).asin());
    }
    (phi.sin(), phi.cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The deviation alternates 2 n + 1 times at least between its largest values, which makes it the best (Chebyshev).
    #[test]
    fn zolotarev_alternates() {
        let r = Zolotarev::of_order(1e-4, 5).unwrap();
        let mut turns = 0;
        let mut side = 0.0;
        for i in 0..=200_000 {
            let y = 1e-4f64.powf(1.0 - i as f64 / 200_000.0);
            let e = 1.0 - y.sqrt() * r.at(y);
            if e.abs() > 0.999 * r.deviation && e.signum() != side {
                (turns, side) = (turns + 1, e.signum());
            }
        }
        assert_eq!(turns, 11);
        assert!(Zolotarev::to_error(1e-4, 1e-10).unwrap().deviation <= 1e-10);
    }

    #[test]
    fn rounding_ends_the_search() {
        for (eps, error) in [(1e-7, 1e-13), (1e-10, 1e-12), (1e-12, 1e-11), (1e-6, 2e-14)] {
            match Zolotarev::to_error(eps, error) {
                Ok(fit) => assert!(fit.deviation >= 0.0 && fit.deviation <= error && fit.at(0.5).is_finite()),
                Err(e) => assert!(e.to_string().contains("rounding leaves"), "{e}"),
            }
        }
        for poles in [50, 100, 200] {
            let r = Zolotarev::of_order(0.1, poles).unwrap();
            assert!((0.0..1e-12).contains(&r.deviation), "{poles}: {:e}", r.deviation);
        }
    }

    #[test]
    fn intervals_that_are_none_are_refused() {
        for eps in [0.0, -1.0, 1.0, 2.0, f64::NAN] {
            assert!(Zolotarev::of_order(eps, 3).is_err());
        }
    }
}
