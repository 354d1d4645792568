//! Chebyshev moments of a spectral density and what is made of them: densities and integrals.

use std::f64::consts::PI;

use crate::error::{Error, Result};
use crate::method::saved::SavedTable;
use crate::method::{Averaged, DampingKernel, Provenance, Window, unit_of};
use crate::number::{Series, Table, student};
use crate::task::parallel;

/// What makes moments ones that can be averaged.
pub(super) const ALIKE: &str = "give all runs the same operator, `moments` and `window`";

/// Moments mu_n = Tr T_n(H~)/D, or those of a local density, with what is needed to turn them into functions of energy.
#[derive(Debug, Clone)]
pub struct Moments {
    pub window: Window,
    /// Dimension of the operator.
    pub dim: usize,
    /// Moments of each vector, divided by its norm squared.
    columns: Vec<Vec<f64>>,
    mean: Vec<f64>,
    error: Vec<f64>,
    /// Time that the recurrence took, in seconds.
    pub seconds: f64,
    /// What they are of.
    pub record: Provenance,
}

impl Moments {
    /// From unnormalised moments, one row per vector. Each row is divided by its mu_0, so that vectors of different
    /// norm weigh equally; a row of zeros stays zero.
    pub fn new(window: Window, dim: usize, columns: Vec<Vec<f64>>) -> Result<Self> {
        let orders = columns.first().map_or(0, Vec::len);
        if orders == 0 || columns.iter().any(|c| c.len() != orders) {
            return Err(Error::input(
                "moments need at least one vector and one order, the same for all vectors",
            ));
        }
        let mut columns = columns;
        let zero = |column: &Vec<f64>| column.iter().all(|x| *x == 0.0);
        let all_zero = columns.iter().all(zero);
        for column in &mut columns {
            let norm = column[0];
            if !all_zero && zero(column) {
                continue;
            }
            if !(norm > 0.0) || column.iter().any(|x| !x.is_finite()) {
                return Err(Error::numeric("a moment is not a finite number").hint(
                    "the starting vector may be zero, or the operator has entries that are not finite",
                ));
            }
            for x in column.iter_mut() {
                *x /= norm;
            }
        }
        let r = columns.len() as f64;
        let mean: Vec<f64> = (0..orders).map(|n| columns.iter().map(|c| c[n]).sum::<f64>() / r).collect();
        let error = (0..orders).map(|n| standard_error(columns.iter().map(|c| c[n] - mean[n]))).collect();
        Ok(Moments { window, dim, columns, mean, error, seconds: 0.0, record: Provenance::default() })
    }

    /// Number of moments.
    pub fn len(&self) -> usize {
        self.mean.len()
    }

    /// Never: there is at least one.
    pub fn is_empty(&self) -> bool {
        self.mean.is_empty()
    }

    /// Number of vectors averaged over.
    pub fn vectors(&self) -> usize {
        self.columns.len()
    }

    /// mu_n = Tr T_n(H~)/D, averaged over the vectors.
    pub fn values(&self) -> &[f64] {
        &self.mean
    }

    /// Standard errors of the mean over vectors, Student's for few; NaN for a single vector.
    pub fn errors(&self) -> &[f64] {
        &self.error
    }

    /// One column per vector. The report holds the rest of what [`Moments::from_table`] needs.
    pub fn to_table(&self) -> Result<Table> {
        let table = SavedTable::columns(self.columns.iter().cloned().map(Series::Real))?
            .with_report("lower", self.window.lower())
            .with_report("upper", self.window.upper())
            .with_report("center", self.window.center)
            .with_report("half_width", self.window.half_width)
            .with_report("dimension", self.dim)
            .with_report("seconds", self.seconds)
            .with_report("record", self.record.to_json());
        Ok(table)
    }

    /// From what [`Moments::to_table`] made.
    ///
    /// # Errors
    /// When the table is of something else.
    pub fn from_table(table: &Table) -> Result<Moments> {
        let saved = SavedTable { table, what: "moments" };
        let window = saved.window()?;
        let columns: Result<Vec<Vec<f64>>> =
            table.columns().map(|(name, data)| Ok(data.numbers(name)?.as_real(name)?.to_vec())).collect();
        let mut moments = Moments::new(window, saved.number("dimension")? as usize, columns?)?;
        moments.seconds = saved.number("seconds")?;
        moments.record = Provenance::from_json(table.report().get("record"))?;
        Ok(moments)
    }

    /// The density per energy at `energies`, zero outside the window:
    /// f(x) = [g_0 mu_0 + 2 sum g_n mu_n T_n(x)] / (pi sqrt(1 - x^2)), divided by the half width a (Weisse, Wellein,
    /// Alvermann, Fehske, RMP 78 (2006) 275, section II.C).
    pub fn density(&self, energies: &[f64], kernel: DampingKernel) -> Vec<f64> {
        let damped = damp(&self.mean, &kernel.factors(self.len()));
        parallel::map(energies.len(), |i| self.series(&damped, energies[i]))
    }

    /// The standard error of the density over the vectors, Student's for few; NaN for a single one.
    pub fn density_error(&self, energies: &[f64], kernel: DampingKernel) -> Vec<f64> {
        let g = kernel.factors(self.len());
        let deviations: Vec<Vec<f64>> = self.deviations().map(|d| damp(&d, &g)).collect();
        let error = |e: f64| standard_error(deviations.iter().map(|d| self.series(d, e)));
        parallel::map(energies.len(), |i| error(energies[i]))
    }

    /// Moments of each vector minus the mean. A variance is summed over these,
    /// since a difference of squares would lose digits.
    pub fn deviations(&self) -> impl Iterator<Item = Vec<f64>> + '_ {
        self.columns.iter().map(|c| c.iter().zip(&self.mean).map(|(x, mean)| x - mean).collect())
    }

    /// The damped cosine series at an energy, by Clenshaw's recurrence.
    fn series(&self, damped: &[f64], energy: f64) -> f64 {
        let x = self.window.scale(energy);
        // At the edge the weight is singular, and a grid's last point may be rounded to this side of it.
        if !(x.abs() < 1.0 - 8.0 * f64::EPSILON) {
            return 0.0;
        }
        let (mut b1, mut b2) = (0.0, 0.0);
        for c in damped[1..].iter().rev() {
            (b1, b2) = (2.0 * x * b1 - b2 + c, b1);
        }
        (x * b1 - b2 + damped[0]) / (PI * (1.0 - x * x).sqrt() * self.window.half_width)
    }

    /// The fraction of the spectral weight between two energies, the integral of the damped series in closed form; and
    /// its standard error over the vectors, Student's for few.
    pub fn weight_between(&self, lower: f64, upper: f64, kernel: DampingKernel) -> Result<(f64, f64)> {
        if !(lower <= upper) {
            return Err(Error::input(format!("an interval from {lower} to {upper}"))
                .hint("the lower end comes first, and both are numbers"));
        }
        let g = kernel.factors(self.len());
        let angle = |energy: f64| self.window.scale(energy).clamp(-1.0, 1.0).acos();
        let (low, high) = (angle(lower), angle(upper));
        // The weight of each moment: the integral of its cosine over the angle.
        let weights: Vec<f64> = (0..self.len())
            .map(|n| match n {
                0 => g[0] * (low - high) / PI,
                n => 2.0 * g[n] * ((n as f64 * low).sin() - (n as f64 * high).sin()) / (n as f64 * PI),
            })
            .collect();
        let sum = |mu: &[f64]| mu.iter().zip(&weights).map(|(mu, w)| mu * w).sum::<f64>();
        Ok((sum(&self.mean), standard_error(self.deviations().map(|d| sum(&d)))))
    }
}

/// The standard error of a mean from the deviations of its samples, by Student's distribution; NaN for fewer than
/// two.
pub(super) fn standard_error(deviations: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = deviations.collect();
    // Squares of small or large deviations are no numbers, and an error of zero would be a claim.
    let unit = unit_of(all.iter().fold(0.0, |largest: f64, d| largest.max(d.abs())));
    let sum: f64 = all.iter().map(|d| (d / unit).powi(2)).sum();
    let n = all.len() as f64;
    unit * student::factor(all.len()) * (sum / (n * (n - 1.0))).sqrt()
}

impl Averaged for Moments {
    type Moment = f64;

    fn record(&self) -> &Provenance {
        &self.record
    }

    fn record_mut(&mut self) -> &mut Provenance {
        &mut self.record
    }

    fn columns(&self) -> &[Vec<f64>] {
        &self.columns
    }

    fn with_columns(&self, others: Option<&Moments>, columns: Vec<Vec<f64>>) -> Result<Moments> {
        let mut with = Moments::new(self.window, self.dim, columns)?;
        with.seconds = others.map_or(0.0, |others| self.seconds + others.seconds);
        Ok(with)
    }

    fn must_fit(&self, other: &Moments) -> Result<()> {
        if self.window != other.window || self.dim != other.dim || self.len() != other.len() {
            return Err(Error::input(
                "moments of different windows, dimensions or orders cannot be averaged",
            )
            .hint(ALIKE));
        }
        Ok(())
    }
}

/// g_0 mu_0, then 2 g_n mu_n.
fn damp(mu: &[f64], g: &[f64]) -> Vec<f64> {
    mu.iter().zip(g).enumerate().map(|(n, (mu, g))| mu * g * if n == 0 { 1.0 } else { 2.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_all_sizes() {
        let plain = standard_error([0.3, -0.1, -0.2].into_iter());
        for unit in [1e-300, 1e-200, 1e-20, 1e20, 1e200, 1e300] {
            let scaled = standard_error([0.3 * unit, -0.1 * unit, -0.2 * unit].into_iter());
            assert!((scaled / unit / plain - 1.0).abs() < 1e-12, "{unit}: {scaled}");
        }
        assert!(standard_error([0.0, 0.0].into_iter()) == 0.0 && standard_error([1.0].into_iter()).is_nan());
    }
}
