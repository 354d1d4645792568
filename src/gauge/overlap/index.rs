//! The index of the overlap operator: its exact zero modes, counted in each chirality. Its other low modes are a
//! check: they come in pairs of both chiralities and lie on the Ginsparg-Wilson circle.

use std::fmt;

use super::operator::{ChiralNormal, Overlap};
use crate::backend::{BlockVector, Distribution, Random};
use crate::error::{Error, Result};
use crate::method::{DavidsonOptions, Eigen, Preconditioner, davidson};
use crate::number::C64;
use crate::number::philox::Stream;
use crate::operator::{Action, Operator};
use crate::task::Task;

#[derive(Debug, Clone)]
pub struct IndexOptions {
    /// Low modes to look for in each chirality at first; more are looked for while all of them are zero.
    pub count: usize,
    /// Eigenvalues of D^+ D below this count as zero; by default what errors of the sign function explain.
    pub threshold: Option<f64>,
    /// Seed of the random starting vectors.
    pub seed: u64,
}

/// Zero modes, and the check on the others.
#[derive(Debug, Clone)]
pub struct Index {
    /// Zero modes of positive chirality.
    pub plus: usize,
    /// Zero modes of negative chirality.
    pub minus: usize,
    /// The lowest other eigenvalues of D^+ D in positive and in negative chirality.
    pub nonzero: [Vec<f64>; 2],
    /// The largest distance of an eigenvalue of D from the circle |z - (1 + s)| = 1 + s, among the others.
    pub circle: f64,
    /// The largest relative difference between partners of the two chiralities.
    pub pairing: f64,
    /// Eigenvalues of D^+ D below this count as zero.
    pub threshold: f64,
    /// The zero modes themselves, a column each, those of positive chirality first; none where there are none.
    pub modes: Option<BlockVector>,
}

impl Index {
    /// n+ - n-.
    pub fn index(&self) -> i64 {
        self.plus as i64 - self.minus as i64
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Index {}: {} zero modes of positive and {} of negative chirality",
            self.index(),
            self.plus,
            self.minus
        )?;
        let shared: Vec<String> = self.nonzero[0]
            .iter()
            .zip(&self.nonzero[1])
            .take(3)
            .map(|(a, b)| format!("{:.8}", 0.5 * (a + b)))
            .collect();
        if !shared.is_empty() {
            write!(f, "\n  next eigenvalues of D^+ D in both chiralities: {}", shared.join(", "))?;
        }
        Ok(())
    }
}

/// The lowest modes of one chirality.
fn low(
    normal: &Operator,
    chirality: &ChiralNormal,
    count: usize,
    tolerance: f64,
    seed: u64,
    task: &Task,
) -> Result<Eigen> {
    let mut start = normal.zeros(count + 1)?;
    let random =
        Random { seed, stream: Stream::Start, first_column: 0, distribution: Distribution::Gaussian };
    normal.device().fill_random(&mut start, random)?;
    let mut options = DavidsonOptions::new(count);
    options.start = Some(chirality.project(&start)?);
    // The search must not add random vectors of its own: they have parts of the other chirality.
    options.trust_start = true;
    options.tolerance = tolerance;
    options.max_basis = 8 * (count + 2);
    options.max_iterations = 5000;
    options.preconditioner = Preconditioner::None;
    options.seed = seed;
    let eigen = davidson(normal, options, task)?;
    if !eigen.converged() {
        return Err(Error::numeric("the low modes of the overlap operator did not converge")
            .hint("look for fewer with `count`, or treat more modes of Q exactly"));
    }
    Ok(eigen)
}

/// The index of an overlap operator; its mass is ignored.
///
/// # Errors
/// Low modes that do not converge.
pub fn index(overlap: &Overlap, options: &IndexOptions, task: &Task) -> Result<Index> {
    let d = overlap.massless();
    let most = d.sign().dim() / 2;
    // D^+ D = 2 (1 + s)^2 (1 + c sign): an error of the sign function shows in it with that factor.
    let explained = 2.0 * (1.0 + d.s()).powi(2) * d.sign_function()?.report().bound;
    let rounding = if d.sign().dtype().is_single() { 1e-4 } else { 1e-8 };
    let threshold = options.threshold.unwrap_or((20.0 * explained).max(rounding));
    if options.threshold.is_some() && !(threshold > 0.0 && threshold < 0.1) {
        return Err(Error::input(format!("a threshold of {threshold}"))
            .hint("it is positive and below 0.1, where no zero mode is looked for, like 1e-8"));
    }
    if !(threshold < 0.1) {
        return Err(Error::numeric(format!(
            "the sign function is only known to {:.1e}, too roughly to tell zero modes from others",
            d.sign_function()?.report().bound
        ))
        .hint("ask for a smaller `delta`, or for low modes with a smaller `tol`"));
    }
    let mut found: Vec<Eigen> = Vec::new();
    for chirality in [1, -1] {
        let normal = ChiralNormal::build(&d, chirality)?;
        let handle = normal.clone().into_operator();
        let mut count = options.count.clamp(1, most);
        loop {
            let eigen = low(&handle, &normal, count, 0.5 * threshold, options.seed, task)?;
            if eigen.values[count - 1] > threshold || count == most {
                found.push(eigen);
                break;
            }
            count = (2 * count).min(most);
        }
    }
    let zeros: Vec<usize> =
        found.iter().map(|e| e.values.iter().filter(|v| **v <= threshold).count()).collect();
    let rest = |k: usize| found[k].values[zeros[k]..].to_vec();
    let nonzero = [rest(0), rest(1)];
    // Modes at the top of the circle have no partner, and a list may end inside a multiplet: only pairs in both lists count.
    let top = (2.0 * (1.0 + d.s())).powi(2);
    let pairs = nonzero[0].len().min(nonzero[1].len());
    let pairing = (0..pairs)
        .map(|k| (nonzero[0][k], nonzero[1][k]))
        .filter(|(a, b)| *a < 0.999 * top && *b < 0.999 * top)
        .map(|(a, b)| (a - b).abs() / a.max(b))
        .fold(0.0, f64::max);
    let mut circle = 0.0f64;
    for (eigen, zeros) in found.iter().zip(&zeros) {
        for k in *zeros..eigen.values.len() {
            circle = circle.max(off_circle(&d, &d.sign().device().columns(&eigen.vectors, k..k + 1)?)?);
        }
    }
    let (plus, minus) = (zeros[0], zeros[1]);
    let device = d.sign().device();
    let modes = if plus + minus > 0 {
        let mut modes = d.sign().zeros(plus + minus)?;
        for (eigen, at, count) in [(&found[0], 0, plus), (&found[1], plus, minus)] {
            if count > 0 {
                device.set_columns(&mut modes, at, &device.columns(&eigen.vectors, 0..count)?)?;
            }
        }
        Some(modes)
    } else {
        None
    };
    Ok(Index { plus, minus, nonzero, circle, pairing, threshold, modes })
}

/// How far from the circle the eigenvalues of D lie in the plane of a chiral mode v and its partner, D v without its part
/// along v.
fn off_circle(d: &Overlap, v: &BlockVector) -> Result<f64> {
    let device = d.sign().device();
    let one = C64::new(1.0, 0.0);
    let image = d.apply(v, false, 0.0)?;
    let along = device.dots(v, &image)?[0];
    let mut partner = image.clone();
    device.axpby(&[-along], v, &[one], &mut partner)?;
    let size = device.dots(&partner, &partner)?[0].re.sqrt();
    let radius = 1.0 + d.s();
    if size < 1e-6 {
        // A mode at the top of the circle is an eigenvector by itself.
        return Ok(((along - radius).norm() - radius).abs());
    }
    let copy = partner.clone();
    device.axpby(&[C64::new(1.0 / size, 0.0)], &copy, &[C64::default()], &mut partner)?;
    let back = d.apply(&partner, false, 0.0)?;
    let (b, c, e) =
        (device.dots(v, &back)?[0], device.dots(&partner, &image)?[0], device.dots(&partner, &back)?[0]);
    let (mean, half) = ((along + e) * 0.5, (along - e) * 0.5);
    let root = (half * half + b * c).sqrt();
    let off = |z: C64| ((z - radius).norm() - radius).abs();
    Ok(off(mean + root).max(off(mean - root)))
}
