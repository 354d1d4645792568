//! The minmax polynomial of 1/sqrt(y) on [eps, 1]: P_n with the smallest max |1 - sqrt(y) P_n(y)|, by the exchange
//! algorithm of Remez (Giusti, Hoelbling, Luescher, Wittig, CPC 153 (2003) 31). Polynomials are Chebyshev series in z =
//! (2 y - 1 - eps)/(1 - eps); c_0 counts fully, not by half.

use std::f64::consts::PI;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::method::barycentric::shares;
use crate::method::cosine;
use crate::number::C64;
use crate::task::parallel;

/// The largest degree; more is taken for a mistake.
const MOST: usize = 20_000;

/// The largest degree of the exchange algorithm. Beyond it, a few per cent more terms cost less than the exchange.
const EXCHANGED: usize = 1500;

/// Deviations below this are lost in rounding.
const LEAST: f64 = 2e-14;

/// A polynomial near 1/sqrt(y) on [eps, 1].
#[derive(Debug, Clone, PartialEq)]
pub struct MinMax {
    /// The lower end of the interval.
    pub eps: f64,
    /// max |1 - sqrt(y) P(y)| on it.
    pub deviation: f64,
    /// c_k of sum_k c_k T_k(z).
    pub coefficients: Vec<f64>,
}

impl MinMax {
    /// The best polynomial of a degree. Beyond 1500 it is the one through the Chebyshev nodes, whose deviation is at
    /// most twice the best.
    ///
    /// # Errors
    /// `eps` outside (0, 1), a degree beyond 20000.
    pub fn of_degree(eps: f64, degree: usize) -> Result<MinMax> {
        check(eps)?;
        if degree > MOST {
            return Err(Error::input(format!("a polynomial of degree {degree}"))
                .hint(format!("the largest degree is {MOST}: raise `eps` by more low modes")));
        }
        // Where the best deviation is below rounding, interpolation is as good.
        if estimate(eps, degree) > 1e-12
            && degree <= EXCHANGED
            && let Some(best) = remez(eps, degree)
        {
            return Ok(best);
        }
        Ok(interpolated(eps, degree))
    }

    /// The polynomial of the smallest degree whose deviation is `error` at most.
    ///
    /// # Errors
    /// `eps` outside (0, 1), an error that double precision does not reach, a degree beyond 20000.
    pub fn to_error(eps: f64, error: f64) -> Result<MinMax> {
        check(eps)?;
        check_error(error)?;
        let guess = Self::degree_for(eps, error).ceil();
        if guess > MOST as f64 {
            return Err(Error::input(format!(
                "a deviation of {error:e} on [{eps:e}, 1] takes a polynomial of degree {guess:.0}"
            ))
            .hint("raise `eps` by more low modes, or allow a larger `error`"));
        }
        // Interpolation is off by twice the best at most; a miss by a factor of four comes from rounding.
        let most = guess as usize + (4f64.ln() / (2.083 * eps.sqrt())).ceil() as usize + 2;
        // The largest degree that is known to be too small, and the best fit of those that are not.
        let (mut low, mut found): (Option<usize>, Option<MinMax>) = (None, None);
        let (mut degree, mut least) = (guess as usize, 1);
        loop {
            let fit = Self::of_degree(eps, degree)?;
            // By the law delta ~ exp(-2.083 n sqrt(eps)).
            let missing = ((fit.deviation / error).ln() / (2.083 * eps.sqrt())).clamp(-1e6, 1e6);
            if fit.deviation <= error {
                found = Some(fit);
            } else if degree > most || !fit.deviation.is_finite() {
                return Err(drowned(eps, fit.deviation));
            } else {
                low = Some(degree);
            }
            let (first, last) = (low.map_or(0, |low| low + 1), found.as_ref().map(MinMax::degree));
            if let Some(fit) = found.take_if(|_| last == Some(first)) {
                return Ok(fit);
            }
            // Where rounding keeps deviations up, steps grow all the same.
            let next = match missing > 0.0 {
                true => degree + (missing.ceil() as usize).max(least),
                false => degree.saturating_sub((-missing).floor().max(1.0) as usize),
            };
            least *= 2;
            degree = next.clamp(first, last.map_or(usize::MAX, |last| last - 1));
        }
    }

    /// Roughly the degree n that reaches this deviation, by the law delta = 0.41 exp(-2.083 n sqrt(eps)).
    pub fn degree_for(eps: f64, error: f64) -> f64 {
        (0.41 / error).ln().max(0.0) / (2.083 * eps.sqrt())
    }

    /// The degree in y.
    pub fn degree(&self) -> usize {
        self.coefficients.len() - 1
    }

    /// P(y).
    pub fn at(&self, y: f64) -> f64 {
        clenshaw(&self.coefficients, (2.0 * y - 1.0 - self.eps) / (1.0 - self.eps))
    }

    /// The fewest terms of the series that keep the deviation within `error`. An outer iteration that has partly
    /// converged needs no better inner function.
    pub fn terms_for(&self, error: f64) -> usize {
        // |T_k| <= 1 and sqrt(y) <= 1: the coefficients left out bound the loss.
        let mut lost = self.deviation;
        let mut terms = self.coefficients.len();
        while terms > 1 && lost + self.coefficients[terms - 1].abs() <= error {
            lost += self.coefficients[terms - 1].abs();
            terms -= 1;
        }
        terms
    }
}

/// Whether [eps, 1] is an interval.
pub(super) fn check(eps: f64) -> Result<()> {
    if eps > 0.0 && eps < 1.0 {
        return Ok(());
    }
    Err(Error::input(format!("an interval from {eps} to 1"))
        .hint("eps is the lowest eigenvalue over the highest: above 0 and below 1"))
}

/// Whether double precision may hold a deviation.
pub(super) fn check_error(error: f64) -> Result<()> {
    if (LEAST..1.0).contains(&error) {
        return Ok(());
    }
    Err(Error::input(format!("a deviation of {error:e}"))
        .hint(format!("double precision holds deviations from {LEAST:e} on, below 1")))
}

/// The error for a deviation below what rounding allows.
pub(super) fn drowned(eps: f64, deviation: f64) -> Error {
    Error::input(format!("rounding leaves a deviation of {deviation:.1e} on [{eps:e}, 1]"))
        .hint("ask for a larger one, or raise `eps` by more low modes")
}

/// Roughly the smallest deviation of a degree.
fn estimate(eps: f64, degree: usize) -> f64 {
    0.41 * (-2.1 * degree as f64 * eps.sqrt()).exp()
}

fn clenshaw(c: &[f64], z: f64) -> f64 {
    clenshaws(c, [z])[0]
}

/// At several points together: the steps of one alone depend on each other and run slower.
fn clenshaws<const N: usize>(c: &[f64], z: [f64; N]) -> [f64; N] {
    let (mut b1, mut b2) = ([0.0; N], [0.0; N]);
    for c in c.iter().skip(1).rev() {
        let next = std::array::from_fn(|i| 2.0 * z[i] * b1[i] - b2[i] + c);
        (b1, b2) = (next, b1);
    }
    std::array::from_fn(|i| z[i] * b1[i] - b2[i] + c[0])
}

/// A polynomial through points.
struct Interpolant {
    points: Vec<f64>,
    weights: Vec<f64>,
    values: Vec<f64>,
}

impl Interpolant {
    fn at(&self, z: f64) -> f64 {
        let mut above = 0.0;
        let below = shares(&self.points, &self.weights, z, |i, share| above += share * self.values[i]);
        above / below
    }
}

/// prod_(j != i) 1/(z_i - z_j), scaled so that the largest is one.
fn weights(points: &[f64]) -> Vec<f64> {
    let logs: Vec<f64> = parallel::map(points.len(), |i| {
        -points
            .iter()
            .enumerate()
            .filter(|(j, _)| *j != i)
            .map(|(_, p)| (points[i] - p).abs().ln())
            .sum::<f64>()
    });
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Points ascend, so signs alternate.
    logs.iter().enumerate().map(|(i, l)| (l - largest).exp() * if i % 2 == 0 { 1.0 } else { -1.0 }).collect()
}

/// The exchange algorithm; None if rounding spoils its result.
fn remez(eps: f64, degree: usize) -> Option<MinMax> {
    let count = degree + 2;
    let root = |z: f64| (0.5 * ((1.0 - eps) * z + 1.0 + eps)).sqrt();
    // The extrema of T_(n+1), ascending.
    let mut points: Vec<f64> = (0..count).map(|i| -(PI * i as f64 / (count - 1) as f64).cos()).collect();
    let mut best: Option<(f64, Interpolant)> = None;
    for _ in 0..12 {
        let w = weights(&points);
        // P(z_i) = (1 - (-1)^i e)/sqrt(y_i) has degree n, so its divided difference over all n + 2 points vanishes,
        // which gives e. The weights w_i alternate in sign.
        let (mut above, mut below) = (0.0, 0.0);
        for (i, (w, z)) in w.iter().zip(&points).enumerate() {
            above += w / root(*z);
            below += (if i % 2 == 0 { *w } else { -w }) / root(*z);
        }
        let e = above / below;
        let values = points
            .iter()
            .enumerate()
            .map(|(i, z)| (1.0 - if i % 2 == 0 { e } else { -e }) / root(*z))
            .collect();
        let p = Interpolant { points: points.clone(), weights: w, values };
        let error = |z: f64| 1.0 - root(z) * p.at(z);
        // Between neighbours of each point the error has one extremum of the point's sign.
        let one = |i: usize| {
            let sign = if i.is_multiple_of(2) { e.signum() } else { -e.signum() };
            let low = if i == 0 { -1.0 } else { 0.5 * (points[i - 1] + points[i]) };
            let high = if i + 1 == count { 1.0 } else { 0.5 * (points[i] + points[i + 1]) };
            let z = summit(|z| sign * error(z), low, points[i], high);
            (z, error(z).abs())
        };
        let summits: Vec<(f64, f64)> = parallel::map(count, one);
        let largest = summits.iter().map(|s| s.1).fold(0.0, f64::max);
        let next: Vec<f64> = summits.into_iter().map(|s| s.0).collect();
        let level = e.abs();
        if best.as_ref().is_none_or(|(b, _)| largest < *b) {
            best = Some((largest, p));
        }
        if !(largest.is_finite()) || next.windows(2).any(|w| w[0] >= w[1]) {
            break;
        }
        if largest <= level * (1.0 + 1e-7) {
            break;
        }
        points = next;
    }
    let (_, p) = best?;
    let mut fit = MinMax { eps, deviation: 0.0, coefficients: series(degree + 1, |z| p.at(z)) };
    fit.deviation = measured(&fit);
    fit.deviation.is_finite().then_some(fit)
}

/// The place of the maximum of a smooth function near `at`, between `low` and `high`: the best of a few points,
/// then parabolas.
fn summit(f: impl Fn(f64) -> f64, low: f64, at: f64, high: f64) -> f64 {
    let mut best = (f(at), at);
    let better = |best: &mut (f64, f64), z: f64| {
        let value = f(z);
        if value > best.0 {
            *best = (value, z);
        }
        value
    };
    let mut step = (high - low) / 8.0;
    for k in 0..9 {
        better(&mut best, low + step * f64::from(k));
    }
    for _ in 0..4 {
        let (y, z) = best;
        let (a, c) = ((z - step).max(low), (z + step).min(high));
        let (left, right) = (y - better(&mut best, a), y - better(&mut best, c));
        let (p, q) = ((z - a) * right, (z - c) * left);
        if p != q {
            let vertex = z - 0.5 * ((z - a) * p - (z - c) * q) / (p - q);
            // NaN stays out.
            if vertex > a && vertex < c {
                better(&mut best, vertex);
            }
        }
        step *= 0.15;
    }
    best.1
}

/// The Chebyshev coefficients of a polynomial of fewer than `terms` terms, from its values at as many nodes.
fn series(terms: usize, f: impl Fn(f64) -> f64) -> Vec<f64> {
    let n = terms as f64;
    let values: Vec<f64> = (0..terms).map(|j| f((PI * (j as f64 + 0.5) / n).cos())).collect();
    let table: Vec<f64> = (0..4 * terms).map(|i| (PI * i as f64 / (2.0 * n)).cos()).collect();
    parallel::map(terms, |k| {
        let mut angle = k;
        let sum: f64 = values
            .iter()
            .map(|v| {
                let product = v * table[angle];
                angle = (angle + 2 * k) % (4 * terms);
                product
            })
            .sum();
        sum * if k == 0 { 1.0 } else { 2.0 } / n
    })
}

/// The most points at which 1/sqrt(y) is sampled for its series.
const SAMPLED: usize = 1 << 20;

/// The polynomial through the Chebyshev nodes: a factor of two at most from the best.
fn interpolated(eps: f64, degree: usize) -> MinMax {
    let inverse = |z: f64| 1.0 / argument(eps, z).sqrt();
    // Terms of 1/sqrt(y) fall by exp(-2 sqrt(eps)) each.
    let points = (21.0 / eps.sqrt()) as usize + 64;
    let coefficients = if degree <= EXCHANGED || points > SAMPLED {
        series(degree + 1, inverse)
    } else {
        folded(eps, points.next_power_of_two(), degree + 1)
    };
    let mut fit = MinMax { eps, deviation: 0.0, coefficients };
    fit.deviation = measured(&fit);
    fit
}

/// The coefficients of the polynomial through `terms` Chebyshev nodes, from those of 1/sqrt(y) itself: on the nodes
/// T_(2 m n +- k) = (-1)^m T_k.
fn folded(eps: f64, points: usize, terms: usize) -> Vec<f64> {
    let values: Vec<C64> = (0..points)
        .map(|j| {
            // (1 + z)/2, without cancellation near z = -1.
            let share = (0.5 * PI * (j as f64 + 0.5) / points as f64).cos().powi(2);
            (1.0 / (eps + (1.0 - eps) * share).sqrt()).into()
        })
        .collect();
    let all = cosine::coefficients(&values, points);
    let mut sums = vec![0.0; terms];
    for (k, c) in all.iter().enumerate() {
        let (turns, at) = ((k + terms) / (2 * terms), (k + terms) % (2 * terms));
        // The distance from the next multiple of 2 n; those half-way vanish on the nodes.
        let near = at.abs_diff(terms);
        if near < terms {
            sums[near] += if turns % 2 == 0 { c.re } else { -c.re };
        }
    }
    sums
}

/// y of z, to its own digits near the lower end too.
fn argument(eps: f64, z: f64) -> f64 {
    eps + 0.5 * (1.0 - eps) * (1.0 + z)
}

/// The largest deviation of a polynomial of many terms: between the extrema on a fine grid, to which a fast transform
/// takes the series, and at them as `at` sums it, with its rounding.
fn measured_fast(fit: &MinMax) -> f64 {
    let cells = (32 * fit.coefficients.len()).next_power_of_two();
    let p = cosine::values(&fit.coefficients, cells);
    let share = |j: usize| (0.5 * PI * j as f64 / cells as f64).cos().powi(2);
    let deviation = |j: usize| (1.0 - (fit.eps + (1.0 - fit.eps) * share(j)).sqrt() * p[j]).abs();
    let values: Vec<f64> = (0..=cells).map(deviation).collect();
    let peak = |j: usize| {
        let (left, right) = (values.get(j.wrapping_sub(1)), values.get(j + 1));
        left.is_none_or(|x| *x <= values[j]) && right.is_none_or(|x| *x <= values[j])
    };
    let peaks: Vec<f64> =
        (0..=cells).filter(|j| peak(*j)).map(|j| (PI * j as f64 / cells as f64).cos()).collect();
    let summed = peaks.par_chunks(8).map(|z| {
        let z: [f64; 8] = std::array::from_fn(|i| z[i.min(z.len() - 1)]);
        let p = clenshaws(&fit.coefficients, z);
        let off = |i: usize| (1.0 - argument(fit.eps, z[i]).sqrt() * p[i]).abs();
        (0..8).map(off).fold(0.0, larger)
    });
    larger(highest(&values), summed.reduce(|| 0.0, larger))
}

/// The larger one; NaN where one is.
fn larger(a: f64, b: f64) -> f64 {
    if b <= a { a } else { b }
}

/// The largest of values on a grid and of the parabolas through three of them each.
fn highest(values: &[f64]) -> f64 {
    let ends = larger(values[0], values[values.len() - 1]);
    let summit = |w: &[f64]| {
        let (slope, bend) = (0.5 * (w[2] - w[0]), w[0] - 2.0 * w[1] + w[2]);
        if w[1] >= w[0] && w[1] >= w[2] && bend < 0.0 { w[1] - 0.5 * slope * slope / bend } else { w[1] }
    };
    values.windows(3).map(summit).fold(ends, larger)
}

/// The largest deviation, from a grid that resolves every extremum and a parabola at each.
fn measured(fit: &MinMax) -> f64 {
    if fit.degree() > EXCHANGED {
        return measured_fast(fit);
    }
    const TOGETHER: usize = 8;
    let points = 32 * fit.coefficients.len() + 1024;
    let at = |block: usize| {
        let z: [f64; TOGETHER] =
            std::array::from_fn(|i| -(PI * (block * TOGETHER + i).min(points) as f64 / points as f64).cos());
        let p = clenshaws(&fit.coefficients, z);
        let y = z.map(|z| 0.5 * ((1.0 - fit.eps) * z + 1.0 + fit.eps));
        std::array::from_fn::<f64, TOGETHER, _>(|i| (1.0 - y[i].sqrt() * p[i]).abs())
    };
    let mut values: Vec<f64> = (0..points / TOGETHER + 1).into_par_iter().flat_map_iter(at).collect();
    values.truncate(points + 1);
    highest(&values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From an independent exchange algorithm in another language, which ended up to 4e-4 above the best.
    #[test]
    fn deviations_of_an_independent_program() {
        for (eps, degree, deviation) in [
            (0.1, 4, 2.0930347e-2),
            (0.1, 10, 2.86548e-4),
            (0.01, 20, 5.9307e-3),
            (0.01, 40, 7.8982e-5),
            (0.01, 80, 1.86669e-8),
            (1e-3, 80, 2.0367e-3),
            (1e-3, 160, 9.414e-6),
            (1e-3, 320, 2.7195e-10),
            (4e-4, 128, 1.9344e-3),
            (4e-4, 320, 5.857e-7),
            (1e-4, 300, 7.5616e-4),
            (1e-4, 500, 1.0949e-5),
        ] {
            let fit = MinMax::of_degree(eps, degree).unwrap();
            // The published deviations were found to four digits of the optimum, which none can be below.
            let ratio: f64 = fit.deviation / deviation;
            assert!((0.9996..1.0001).contains(&ratio), "{eps} {degree}: {:e}", fit.deviation);
        }
        let c = MinMax::of_degree(0.1, 4).unwrap().coefficients;
        for (found, known) in
            c.iter().zip([1.641180375, -0.885891148, 0.349461772, -0.151688723, 0.067868071])
        {
            assert!((found - known).abs() < 2e-9, "{found} {known}");
        }
    }

    #[test]
    fn degree_1000_is_stable() {
        let fit = MinMax::of_degree(2e-5, 1000).unwrap();
        // delta = 0.4175 exp(-2.108 n sqrt(eps)), within the scatter of that law.
        let law = 0.4175 * (-2.108 * 1000.0 * 2e-5f64.sqrt()).exp();
        assert!((fit.deviation / law - 1.0).abs() < 0.2, "{:e} {law:e}", fit.deviation);
    }

    #[test]
    fn the_smallest_degree_is_found() {
        for (eps, error) in [(0.1, 1e-3), (0.005, 1e-10), (0.01, 1e-13), (0.5, 0.3)] {
            let fit = MinMax::to_error(eps, error).unwrap();
            assert!(fit.deviation <= error);
            if fit.degree() > 0 {
                assert!(MinMax::of_degree(eps, fit.degree() - 1).unwrap().deviation > error);
            }
        }
    }

    /// A deviation that double precision does not reach is refused, and soon: the law asks for degrees that rounding
    /// makes useless.
    #[test]
    fn rounding_ends_the_search() {
        for (eps, error) in [(1e-2, 2e-14), (1e-3, 5e-14), (1e-4, 3e-13), (1e-5, 1e-12)] {
            match MinMax::to_error(eps, error) {
                Ok(fit) => assert!(fit.deviation <= error),
                Err(e) => assert!(e.to_string().contains("rounding leaves"), "{e}"),
            }
        }
    }

    #[test]
    fn fewer_terms_keep_their_promise() {
        let fit = MinMax::to_error(0.01, 1e-10).unwrap();
        let terms = fit.terms_for(1e-4);
        assert!(terms < fit.coefficients.len());
        let short = MinMax { coefficients: fit.coefficients[..terms].to_vec(), ..fit };
        assert!(measured(&short) <= 1e-4);
    }

    #[test]
    fn intervals_that_are_none_are_refused() {
        for eps in [0.0, -1.0, 1.0, 2.0, f64::NAN] {
            assert!(MinMax::of_degree(eps, 10).is_err());
        }
        assert!(MinMax::to_error(0.1, 1e-18).is_err() && MinMax::to_error(1e-12, 1e-10).is_err());
    }
}
