//! The low modes that a sign function treats exactly, and where the rest of the spectrum begins.

use super::choice::{GUARDS, MOST, ModeChoice};
use crate::backend::{BlockVector, Update};
use crate::error::{Error, Result};
use crate::method::{
    Diagonalised, Eigen, RitzMethod, RitzOptions, hermitian_eigen, orthonormal, orthonormal_columns,
    rayleigh_ritz, ritz,
};
use crate::number::{C64, root};
use crate::operator::Operator;
use crate::task::Task;

/// Where low modes come from.
pub(super) const FINDS_MODES: &str = "the Ritz functional of Q^2, of the same Q, finds some";

/// Spaces with Ritz residuals above this, in units of the largest |Q|, do not count as invariant.
const INVARIANT: f64 = 1e-7;

/// Largest number of products with single vectors in a search.
const PRODUCTS: usize = 400_000;

/// Values of |Q| closer than this, relatively, are one multiplet.
const MULTIPLET: f64 = 1e-3;

/// The accuracy of the eigenvalues by which modes are chosen, as a fraction of the lowest.
const ROUGH: f64 = 0.01;

/// Modes of Q^2 to project out, and the rest of its spectrum.
pub(super) struct LowModes {
    pub modes: Option<BlockVector>,
    /// Whether no gap is known between the last of the modes and the rest.
    pub touching: bool,
    /// The lowest value of Q^2 beyond the modes, as found.
    pub rest: f64,
    /// A lower bound on it: a Ritz value minus its residual.
    pub least: f64,
}

/// How to look for modes of Q^2.
#[derive(Clone, Copy)]
pub(super) struct ModeSearch<'a> {
    /// Q^2.
    pub squared: &'a Operator,
    /// Its largest eigenvalue.
    pub upper: f64,
    /// The error of the sign function that the modes are for.
    pub delta: f64,
    /// Seed of random starting vectors.
    pub seed: u64,
    pub task: &'a Task,
}

impl ModeSearch<'_> {
    /// Residuals of products with Q^2 below this are rounding.
    fn floor(&self) -> f64 {
        self.upper * self.squared.dtype().tolerance(1e-15)
    }

    fn ritz(&self, options: RitzOptions) -> Result<Eigen> {
        ritz(self.squared, &options, self.task)
    }

    /// The lowest pairs, all of them to residuals of a fraction of the lowest value.
    fn options(&self, count: usize, relative: f64) -> RitzOptions {
        let (tolerance, max_products) = (Some(self.floor()), PRODUCTS);
        let options = RitzOptions::new(count, self.seed, RitzMethod::Chebyshev);
        RitzOptions { tolerance, relative, max_products, ..options }
    }

    /// A residual rho of Q^2 is one of rho/(2 |nu|) of Q. This keeps the modes' error of the sign function below
    /// delta/2.
    fn relative(&self) -> f64 {
        (0.2 * self.delta).min(1e-4)
    }

    /// No modes: the lowest value of Q^2, known to within a fraction of it.
    pub fn lowest(&self, fraction: f64) -> Result<LowModes> {
        self.without(&self.ritz(self.options(1, fraction))?)
    }

    /// No modes, where the lowest value is known.
    fn without(&self, found: &Eigen) -> Result<LowModes> {
        let least = certain(found, 0, self.upper)?;
        Ok(LowModes { modes: None, touching: false, rest: found.values[0], least })
    }

    /// As many modes as save more than finding them costs, possibly none. A first rough search gives the lowest value
    /// and some next to it. It is extended to more modes where these promise to save something.
    pub fn worthwhile(&self) -> Result<LowModes> {
        let choice = ModeChoice {
            upper: self.upper,
            delta: self.delta,
            tolerance: self.floor(),
            relative: self.relative(),
        };
        // Values below this call for modes, whatever they are exactly.
        let rough = |count, sure| RitzOptions {
            sure,
            tolerance: Some(self.floor().max(1e-6 * self.upper)),
            ..self.options(count, ROUGH)
        };
        let room = (self.squared.dim() / 2).max(1);
        let mut found = self.ritz(rough((1 + GUARDS).min(room), 1))?;
        if choice.is_long(found.values[0]) || choice.best(&found.values) > 0 {
            let max_products = choice.allowance(found.values[0]).min(PRODUCTS);
            let start = Some(found.vectors);
            let wide = rough((MOST + GUARDS).min(room), MOST.min(room));
            found = self.ritz(RitzOptions { max_products, start, ..wide })?;
        }
        match choice.best(&found.values) {
            0 if found.residuals[0] <= ROUGH * found.values[0] => self.without(&found),
            // The lowest value is so small that it is not known yet, and others around it are too.
            0 => self.modes(8, false),
            count => self.apart(count, found.vectors),
        }
    }

    /// The lowest `count` modes if a gap follows them, else those below the last gap before; `start` holds them
    /// roughly.
    fn apart(&self, count: usize, start: BlockVector) -> Result<LowModes> {
        let room = (self.squared.dim() / 2).max(count + 1);
        let width = (count + GUARDS.max(count / 4)).min(room);
        let options = self.options(width, self.relative());
        let found = self.ritz(RitzOptions { sure: count, start: Some(start), ..options })?;
        // Values are squares.
        let wide = |m: &usize| found.values[*m] > found.values[*m - 1] * (1.0 + 2.0 * MULTIPLET);
        let keep = (1..=count).rev().find(wide);
        let at = keep.unwrap_or(count - 1);
        let least = certain(&found, at, self.upper)?;
        let modes = self.squared.device().columns(&found.vectors, 0..keep.unwrap_or(count))?;
        Ok(LowModes { modes: Some(modes), touching: keep.is_none(), rest: found.values[at], least })
    }

    /// For a given fit that begins at a Q^2: no modes if nothing lies below that.
    pub fn below(&self, begins: f64) -> Result<LowModes> {
        let lowest = self.ritz(self.options(1, 1e-4))?;
        if lowest.values[0] >= begins { self.without(&lowest) } else { self.modes(8, false) }
    }

    /// Somewhat more than `count` modes, cut where the gap to the next is largest; or all of them,
    /// for a fit that is given.
    pub fn modes(&self, count: usize, all: bool) -> Result<LowModes> {
        let most = self.squared.dim() / 2;
        let look = (count + count.div_ceil(2).max(4)).min(most.max(1));
        let found = self.ritz(self.options(look, self.relative()))?;
        if all {
            return self.given(found);
        }
        let keep = cut(&found.values);
        let (at, touching) = if keep < look { (keep, false) } else { (look - 1, true) };
        let least = certain(&found, at, self.upper)?;
        let modes = self.squared.device().columns(&found.vectors, 0..keep)?;
        Ok(LowModes { modes: Some(modes), touching, rest: found.values[at], least })
    }

    /// Given modes: the rest begins at the last of them.
    pub fn given(&self, low: Eigen) -> Result<LowModes> {
        let last = low.values.len() - 1;
        let lowest = low.values.iter().copied().fold(f64::INFINITY, f64::min);
        if !(lowest > -1e-6 * self.upper) {
            return Err(Error::input(format!(
                "low modes with an eigenvalue of {lowest:.6}, and those of Q^2 have none below 0"
            ))
            .hint(FINDS_MODES));
        }
        let least = certain(&low, last, self.upper)?;
        Ok(LowModes { modes: Some(low.vectors), touching: true, rest: low.values[last], least })
    }
}

/// A lower bound on the eigenvalue of Q^2 that a Ritz value belongs to.
fn certain(found: &Eigen, at: usize, upper: f64) -> Result<f64> {
    let (value, residual) = (found.values[at], found.residuals[at]);
    if residual <= 0.5 * value {
        return Ok(value - residual);
    }
    Err(Error::numeric(format!(
        "the lower end of the rest of the spectrum of |Q| is uncertain: it is {:.1e} or less, since Q^2, of at most \
         {upper:.3}, is accurate only to {residual:.1e}",
        root(value)
    ))
    .hint("treat the lowest modes exactly, like `low_modes: 8`, in double precision; modes that are given need a \
         smaller `tol`"))
}

/// How many of these values to project out: up to where the relative gap is largest among the last half.
fn cut(values: &[f64]) -> usize {
    let n = values.len();
    let gap = |m: usize| values[m] / values[m - 1].max(1e-300);
    (n.div_ceil(2).max(1)..n).max_by(|&a, &b| gap(a).total_cmp(&gap(b))).unwrap_or(n)
}

/// The low modes: eigenvectors of P Q P, and how far from eigenvectors of Q they are.
#[derive(Debug, Clone)]
pub(super) struct Low {
    pub vectors: BlockVector,
    /// nu_k, eigenvalues of P Q P.
    pub values: Vec<f64>,
    /// rho_k = |(Q - nu_k) u_k|.
    pub residuals: Vec<f64>,
}

impl Low {
    /// The |nu_k| from which on no gap separates modes from what is not projected out. It is at the largest relative
    /// gap among the last half of the modes, else at the last gap; 0 if there is none.
    pub fn edge(&self) -> f64 {
        let mut moduli: Vec<f64> = self.values.iter().map(|v| v.abs()).collect();
        moduli.sort_by(f64::total_cmp);
        let wide = |m: usize| moduli[m] > moduli[m - 1] * (1.0 + MULTIPLET);
        let best = Some(cut(&moduli)).filter(|&m| m < moduli.len() && wide(m));
        best.or_else(|| (1..moduli.len()).rev().find(|&m| wide(m))).map_or(0.0, |m| moduli[m])
    }
}

/// If the eigenvectors of Q^2 hold only one half of a pair nu, -nu, Q leads out of their space: the other half is
/// added. Other directions that Q leads to are noise of high modes, and are left out.
pub(super) fn invariant(q: &Operator, vectors: BlockVector, scale: f64) -> Result<Low> {
    let device = q.device();
    let space = orthonormal(device, &q.accept(&vectors)?.unwrap_or(vectors))?;
    let Diagonalised { values, vectors, residuals, norms } = rayleigh_ritz(q, &space)?;
    let low = Low { vectors, values, residuals: norms };
    let noise = (INVARIANT * scale).powi(2);
    let Some(outside) = orthonormal_columns(device, &residuals, noise, 0.0)? else { return Ok(low) };
    // The other half of a pair has as small a Q^2 as the modes have.
    let n = outside.columns();
    let mut image = device.zeros(outside.dtype(), outside.rows(), n)?;
    q.update(Update::PRODUCT, &outside, &mut image, None)?;
    let (squares, rotation) = hermitian_eigen(n, &device.gram(&image, &image)?, true)?;
    let norms = low.values.iter().zip(&low.residuals).map(|(v, r)| v * v + r * r);
    let largest = norms.fold(0.0, f64::max);
    let halves = squares.iter().filter(|s| **s <= 1.5 * largest).count();
    if halves == 0 {
        return Ok(low);
    }
    let first: Vec<C64> =
        (0..n).flat_map(|i| (0..halves).map(move |k| (i, k))).map(|(i, k)| rotation[i * n + k]).collect();
    let mut added = device.zeros(outside.dtype(), outside.rows(), halves)?;
    device.combine(&outside, &first, 0.0, &mut added)?;
    let wider = device.side_by_side(&[&low.vectors, &added])?;
    let closed = rayleigh_ritz(q, &orthonormal(device, &wider)?)?;
    let total = |norms: &[f64]| norms.iter().map(|r| r * r).sum::<f64>();
    if total(&closed.norms) >= total(&low.residuals) {
        return Ok(low);
    }
    Ok(Low { vectors: closed.vectors, values: closed.values, residuals: closed.norms })
}
