//! How many low modes to project out. A mode makes the polynomial shorter, which saves products with Q, but finding
//! it costs some.

use crate::method::MinMax;

/// The number of applications of a sign function over which low modes must save more than they cost. An inversion needs
/// more applications than this, a single vector fewer.
const APPLICATIONS: f64 = 50.0;

/// Most modes that are looked for where no number is given.
pub(super) const MOST: usize = 12;

/// Vectors that a search keeps besides those wanted.
pub(super) const GUARDS: usize = 4;

/// The cost of a mode in an application, in products with Q: projections before and after the polynomial.
const PROJECTED: f64 = 0.5;

/// Products of one sweep of a search for [`MOST`] modes.
const SWEEP: f64 = 2.0 * 120.0 * (MOST + GUARDS) as f64;

/// What the choice between more modes and a longer polynomial depends on.
pub(super) struct ModeChoice {
    /// The largest Q^2.
    pub upper: f64,
    /// The deviation wanted.
    pub delta: f64,
    /// Residuals of Q^2 that modes are found to: at least, and as a fraction of the lowest value.
    pub tolerance: f64,
    pub relative: f64,
}

impl ModeChoice {
    /// Products with Q in one application where the spectrum of Q^2 begins at a value.
    fn application(&self, least: f64) -> f64 {
        let eps = (least / self.upper).clamp(1e-30, 1.0);
        2.0 * MinMax::degree_for(eps, self.delta).max(1.0)
    }

    /// Products with Q of a search for the first `count` of these values. A Chebyshev filter of degree d damps values
    /// from g^2 times the spectrum above the wanted ones by exp(-2 d g), and works on a few more vectors than wanted.
    fn search(&self, values: &[f64], count: usize) -> f64 {
        let width = count + GUARDS.max(count / 4);
        let (wanted, lowest) = (values[count - 1], values[0]);
        let damped = 1.25 * values[width.min(values.len()) - 1] - 0.25 * lowest;
        let gap = ((damped - wanted) / self.upper).clamp(1e-5, 1.0).sqrt();
        let wanted_residual = self.tolerance.max(self.relative * lowest.abs());
        let folds = (damped / wanted_residual).ln().max(1.0);
        width as f64 * folds / gap
    }

    /// Whether a rough search for [`MOST`] modes is cheap compared with the applications without any.
    pub fn is_long(&self, lowest: f64) -> bool {
        0.1 * APPLICATIONS * self.application(lowest) > SWEEP
    }

    /// Most products with Q^2 of a rough search.
    pub fn allowance(&self, lowest: f64) -> usize {
        (0.25 * 0.5 * APPLICATIONS * self.application(lowest)) as usize
    }

    /// The number of lowest modes that saves most, from rough eigenvalues; 0 if none saves anything.
    pub fn best(&self, values: &[f64]) -> usize {
        let without = self.application(values[0]);
        let won = |count: usize| {
            let each = without - self.application(values[count]) - PROJECTED * count as f64;
            APPLICATIONS * each - self.search(values, count)
        };
        let most = MOST.min(values.len().saturating_sub(1));
        (1..=most).filter(|&n| won(n) > 0.0).max_by(|&a, &b| won(a).total_cmp(&won(b))).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By values of |Q| below a largest of 6.
    fn best(moduli: impl IntoIterator<Item = f64>) -> usize {
        let choice = ModeChoice { upper: 36.0, delta: 1e-8, tolerance: 3.6e-14, relative: 2e-9 };
        let values: Vec<f64> = moduli.into_iter().map(|v| v * v).collect();
        choice.best(&values)
    }

    /// The edge of a dense spectrum.
    fn dense(from: f64) -> impl Iterator<Item = f64> {
        (0..MOST + GUARDS).map(move |k| from * (1.0 + 0.004 * k as f64))
    }

    #[test]
    fn modes_pay_where_they_lie_apart() {
        assert_eq!(best(dense(0.4)), 0, "an edge without modes");
        assert_eq!(best([1e-6].into_iter().chain(dense(0.4))), 1);
        assert_eq!(best([1e-3, 1e-3].into_iter().chain(dense(0.4))), 2);
        assert_eq!(best([0.05, 0.05001, 0.05002, 0.05003, 0.05004].into_iter().chain(dense(0.4))), 5);
        assert_eq!(best([0.39].into_iter().chain(dense(0.4))), 0, "a gap too small to matter");
        assert_eq!(best([1e-3; MOST + GUARDS]), 0, "nothing is won within a multiplet");
        // Values spread evenly from zero on: many modes pay.
        let spread = best((1..=MOST + GUARDS).map(|k| 0.01 * k as f64));
        assert!((6..=MOST).contains(&spread), "{spread}");
    }

    #[test]
    fn looking_around_is_bounded_by_what_could_be_saved() {
        let choice = ModeChoice { upper: 36.0, delta: 1e-8, tolerance: 3.6e-14, relative: 2e-9 };
        assert!(!choice.is_long(0.4f64.powi(2)) && choice.is_long(0.05f64.powi(2)));
        assert!(choice.allowance(0.04) > 2 * choice.allowance(0.4), "the longer an application, the more");
    }
}
