//! Error bars of few samples: Student's distribution (Student, Biometrika 6 (1908) 1).

/// Within one standard deviation of a normal distribution lies this much of it: erf(1/sqrt 2).
const ONE_SIGMA: f64 = 0.682_689_492_137_085_9;

/// By how much the standard error of a mean of `samples` independent values grows, so that the true mean lies within it
/// as often as within one standard deviation of a normal distribution (68.3 %). It is 1.84 for two samples, 1.20 for
/// four, 1.06 for ten, and NaN for fewer than two, which have no error.
pub fn factor(samples: usize) -> f64 {
    if samples < 2 {
        return f64::NAN;
    }
    // Beyond that many the next term of the expansion in 1/n is below 1e-6.
    if samples > 400 {
        let n = (samples - 1) as f64;
        // Cornish and Fisher's expansion at one standard deviation: (t^3 + t)/4 and (5 t^5 + 16 t^3 + 3 t)/96 with t =
        // 1.
        return 1.0 + 0.5 / n + 0.25 / (n * n);
    }
    let (mut low, mut high) = (0.9, 2.0);
    while high - low > 4.0 * f64::EPSILON {
        let middle = 0.5 * (low + high);
        if within(middle, samples - 1) < ONE_SIGMA { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The probability of |x| < t with `n` degrees of freedom, in closed form (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn within(t: f64, n: usize) -> f64 {
    let (sin, cos) = (t / (t * t + n as f64).sqrt(), (n as f64 / (t * t + n as f64)).sqrt());
    // Terms cos^k, each with the factor (k - 1)/k of the one before it.
    let first = if n % 2 == 1 { 1 } else { 0 };
    let (mut term, mut sum) = (if first == 1 { cos } else { 1.0 }, 0.0);
    for k in (first..n.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cos * cos * (k + 1) as f64 / (k + 2) as f64;
    }
    if first == 1 { std::f64::consts::FRAC_2_PI * (sin.asin() + sin * sum) } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_students_distribution() {
        // One degree of freedom is Cauchy's distribution, two have t = p sqrt(2/(1 - p^2)).
        let p = ONE_SIGMA;
        assert!((factor(2) - (std::f64::consts::FRAC_PI_2 * p).tan()).abs() < 1e-12);
        assert!((factor(3) - p * (2.0 / (1.0 - p * p)).sqrt()).abs() < 1e-12);
        // By an integral of the density over [-t, t].
        for samples in [4, 5, 10, 11, 60, 400] {
            let (n, t) = ((samples - 1) as f64, factor(samples));
            let log_norm = libm::lgamma(0.5 * (n + 1.0)) - libm::lgamma(0.5 * n);
            let norm = log_norm.exp() / (n * std::f64::consts::PI).sqrt();
            let density = |x: f64| norm * (1.0 + x * x / n).powf(-0.5 * (n + 1.0));
            let steps = 2000;
            let at = |k: usize| density(t * k as f64 / steps as f64);
            let inner: f64 = (1..steps).map(|k| at(k) * if k % 2 == 1 { 4.0 } else { 2.0 }).sum();
            let inside = 2.0 * (at(0) + at(steps) + inner) * t / (3.0 * steps as f64);
            assert!((inside - p).abs() < 1e-10, "{samples} {inside}");
        }
        assert!((factor(401) - factor(400)).abs() < 1e-5 && factor(1).is_nan());
    }
}
