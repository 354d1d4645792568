//! sign(Q) = P+ - P- + (1 - P) X P_n(X^2) (1 - P): the lowest modes of Q exactly, the rest by a polynomial in X = Q/|Q|.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::{BlockVector, Device, Dots, Rows, Update};
use crate::error::{Error, Result};
use crate::method::{
    Eigen, MinMax, RecordedClenshaw, RitzMethod, RitzOptions, Window, Zolotarev, hermitian_eigen,
    orthonormal, orthonormal_columns, ritz, shifted_steps,
};
use crate::number::{C64, DType, root};
use crate::operator::{LinearOperator, Operator, update_by};
use crate::task::Task;

const ONE: C64 = C64::new(1.0, 0.0);

/// Ritz residuals above which a space is not taken for invariant, in units of the largest |Q|.
const INVARIANT: f64 = 1e-7;

/// How the rest is approximated.
#[derive(Debug, Clone)]
enum Fit {
    Polynomial(MinMax),
    Rational(Zolotarev),
}

impl Fit {
    fn eps(&self) -> f64 {
        match self {
            Fit::Polynomial(p) => p.eps,
            Fit::Rational(r) => r.eps,
        }
    }

    fn deviation(&self) -> f64 {
        match self {
            Fit::Polynomial(p) => p.deviation,
            Fit::Rational(r) => r.deviation,
        }
    }
}

/// The low modes: eigenvectors of P Q P, and how far from eigenvectors of Q they are.
#[derive(Debug, Clone)]
struct Low {
    vectors: BlockVector,
    /// nu_k, eigenvalues of P Q P.
    values: Vec<f64>,
    /// rho_k = |(Q - nu_k) u_k|.
    residuals: Vec<f64>,
}

/// How well a sign function is known.
#[derive(Debug, Clone)]
pub struct SignReport {
    /// Low modes treated exactly.
    pub modes: usize,
    /// Degree of the polynomial in Q^2, or number of poles.
    pub degree: usize,
    /// Deviation of the polynomial on the rest of the spectrum.
    pub delta: f64,
    /// Root of the sum of rho_k^2/d_k^2 over positive modes, with the distances d_k to all of the spectrum that is not
    /// theirs.
    pub kappa_plus: f64,
    /// The same over negative modes.
    pub kappa_minus: f64,
    /// Smallest |nu_k|, or the lower end of the polynomial's range where there are no modes.
    pub gap: f64,
    /// Where the rest of the spectrum of |Q| begins.
    pub rest: f64,
    /// A bound on |X - sign(Q)|: delta + 2 kappa/(d + d'), by Davis and Kahan.
    pub bound: f64,
}

/// The sign function of a Hermitian operator.
#[derive(Clone)]
pub struct Sign {
    q: Operator,
    squared: Operator,
    low: Option<Low>,
    fit: Fit,
    /// The largest Q^2.
    upper: f64,
    report: SignReport,
    recorded: Arc<Mutex<Vec<Shape>>>,
}

/// A shape of vectors that a polynomial was applied to, and its recurrence recorded from the second time on.
struct Shape {
    dtype: DType,
    columns: usize,
    recorded: Option<RecordedClenshaw>,
}

/// Shapes that are recorded.
const SHAPES: usize = 4;

/// What to build a sign function from; all that is missing is found.
#[derive(Default)]
pub struct Wanted {
    /// Eigenvectors of Q^2 from the lowest on.
    pub low: Option<Eigen>,
    /// Number of low modes to find; about as many as that where none are given.
    pub modes: Option<usize>,
    /// The polynomial.
    pub polynomial: Option<MinMax>,
    /// The rational function instead.
    pub rational: Option<Zolotarev>,
    /// The largest eigenvalue of Q^2.
    pub upper: Option<f64>,
    /// The deviation that a polynomial found here may have.
    pub delta: f64,
    /// Whether a rational function is found rather than a polynomial.
    pub zolotarev: bool,
    /// Seed of random starting vectors.
    pub seed: u64,
}

impl Sign {
    /// The sign function of `q`.
    ///
    /// # Errors
    /// An operator that is not Hermitian; a fit that does not cover the spectrum between the low modes and the largest.
    pub fn build(q: &Operator, mut wanted: Wanted, task: &Task) -> Result<Sign> {
        if q.dim() != q.cols() || !q.is_hermitian()? {
            return Err(Error::input(
                "the sign function is one of a Hermitian operator, and this one is not",
            )
            .hint("make one with `wilson::kernel(u, #{ s: 0.4 })`"));
        }
        let squared = q.times(q)?;
        let estimate = Window::lanczos(&squared, 60, 0.01, wanted.seed, &task.quiet())?.upper();
        let upper = wanted.upper.unwrap_or(estimate);
        // What Lanczos has seen for certain lies a margin below its estimate.
        if !(upper >= estimate / 1.03) {
            return Err(Error::input(format!(
                "an upper limit of {upper} for Q^2, whose spectrum reaches {estimate:.6}"
            ))
            .hint("`spectral_window(q * q, #{ method: \"lanczos\" }).upper` finds it"));
        }
        let given = wanted.low.is_some();
        if let Some(low) = wanted.low.as_ref().filter(|low| low.vectors.rows().global != q.dim()) {
            return Err(Error::input(format!(
                "low modes of {} rows for an operator of {}",
                low.vectors.rows().global,
                q.dim()
            ))
            .hint("`ritz(q * q, #{ count: 8 })` of the same `q` finds some"));
        }
        let found = match (wanted.low.take(), wanted.modes) {
            (Some(low), _) => Some(low),
            (None, Some(0)) => None,
            (None, modes) => Some(find_modes(&squared, modes, &wanted, task)?),
        };
        let fit_given = wanted.polynomial.is_some() || wanted.rational.is_some();
        // Where the rest of the spectrum begins, as Q^2.
        let (low, rest) = match found {
            Some(low) if given || wanted.modes.is_some() && fit_given => {
                let last = low.values[low.values.len() - 1];
                (Some(low.vectors), last)
            }
            Some(low) => {
                let (keep, rest) = cut(&low.values);
                (Some(q.device().columns(&low.vectors, 0..keep)?), rest)
            }
            None => {
                let options = RitzOptions {
                    count: 1,
                    tolerance: 1e-4 * upper,
                    max_products: 20_000,
                    seed: wanted.seed,
                    method: RitzMethod::Chebyshev,
                };
                (None, ritz(&squared, &options, task)?.values[0])
            }
        };
        let fit = match (wanted.polynomial, wanted.rational) {
            (Some(p), _) => Fit::Polynomial(p),
            (None, Some(r)) => Fit::Rational(r),
            (None, None) => {
                // A little room for the last value, which is known to its residual.
                let eps = 0.999 * rest / upper;
                if wanted.zolotarev {
                    Fit::Rational(Zolotarev::to_error(eps, wanted.delta)?)
                } else {
                    Fit::Polynomial(MinMax::to_error(eps, wanted.delta)?)
                }
            }
        };
        if fit.eps() * upper > rest * (1.0 + 1e-6) {
            // Where the fit was made with a slightly smaller limit than was found here, that limit will do.
            let own = rest / fit.eps();
            if own < estimate / 1.02 {
                return Err(Error::input(format!(
                    "eps = {:.4e} begins above the spectrum, which begins at {:.4e}",
                    fit.eps(),
                    rest / upper
                ))
                .hint(
                    "eps is at most the lowest eigenvalue of Q^2 that is not projected out over the highest",
                ));
            }
            return Self::assemble(q, squared, (low, given), fit, own, rest);
        }
        Self::assemble(q, squared, (low, given), fit, upper, rest)
    }

    fn assemble(
        q: &Operator,
        squared: Operator,
        (low, given): (Option<BlockVector>, bool),
        fit: Fit,
        upper: f64,
        rest: f64,
    ) -> Result<Sign> {
        let low = low.map(|vectors| invariant(q, vectors, upper.sqrt())).transpose()?;
        let report = report(low.as_ref(), &fit, rest.sqrt());
        if given && !(report.bound < 0.5) {
            return Err(Error::input(format!(
                "the low modes given are no eigenvectors of this operator: its sign would be known to {:.1e} only",
                report.bound
            ))
            .hint("`ritz(q * q, #{ count: 8 })` of the same `q` finds some"));
        }
        Ok(Sign { q: q.clone(), squared, low, fit, upper, report, recorded: Arc::default() })
    }

    /// How well it is known.
    pub fn report(&self) -> &SignReport {
        &self.report
    }

    /// The operator whose sign it is.
    pub fn kernel(&self) -> &Operator {
        &self.q
    }

    /// The sign function behind a handle, if it is one.
    pub fn of(h: &Operator) -> Option<&Sign> {
        h.node().as_any()?.downcast_ref()
    }

    /// This as an operator.
    pub fn into_operator(self) -> Operator {
        Operator::from_node(self.q.device().clone(), Arc::new(self))
    }

    /// Low eigenvalues of Q.
    pub fn low_values(&self) -> &[f64] {
        self.low.as_ref().map_or(&[], |low| &low.values)
    }

    /// `sign(Q) v`, wrong by no more than `error` or the deviation of the fit, whichever is larger.
    pub fn apply(&self, v: &BlockVector, error: f64) -> Result<BlockVector> {
        let device = self.q.device();
        let mut rest = v.clone();
        if let Some(low) = &self.low {
            device.deflate(&low.vectors, None, &mut rest)?;
        }
        let y = match &self.fit {
            Fit::Polynomial(p) => self.polynomial(p, &rest, p.terms_for(error.max(p.deviation)))?,
            Fit::Rational(r) => self.rational(r, &rest, error)?,
        };
        let mut out = rest;
        self.q.update(
            Update { alpha: 1.0 / self.upper.sqrt(), beta: 0.0, gamma: 0.0 },
            &y,
            &mut out,
            None,
        )?;
        if let Some(low) = &self.low {
            // (1 - P) of what the polynomial gave, and the low modes with their signs.
            let signs: Vec<f64> = low.values.iter().map(|v| v.signum()).collect();
            device.deflate(&low.vectors, Some((&signs, v)), &mut out)?;
        }
        Ok(out)
    }

    /// P_n(Q^2/upper) v by Clenshaw's recurrence over the first terms.
    fn polynomial(&self, p: &MinMax, v: &BlockVector, terms: usize) -> Result<BlockVector> {
        let (top, low) = (self.upper, p.eps * self.upper);
        let window = Window { center: 0.5 * (top + low), half_width: 0.5 * (top - low) };
        if let Some(y) = self.replayed(p, window, v, terms)? {
            return Ok(y);
        }
        let c: Vec<C64> = p.coefficients[..terms].iter().map(|&c| C64::new(c, 0.0)).collect();
        crate::method::clenshaw(&self.squared, window, &c, v, &Task::default())
    }

    /// The same by launches recorded once, where launching a step takes longer than the step; not the first time, as
    /// recording takes about as long as one application.
    fn replayed(
        &self,
        p: &MinMax,
        window: Window,
        v: &BlockVector,
        terms: usize,
    ) -> Result<Option<BlockVector>> {
        if !self.q.device().worth_recording(v.bytes()) {
            return Ok(None);
        }
        let mut shapes = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shapes.iter().position(|s| s.dtype == v.dtype() && s.columns == v.columns());
        let Some(at) = known else {
            if shapes.len() < SHAPES {
                shapes.push(Shape { dtype: v.dtype(), columns: v.columns(), recorded: None });
            }
            return Ok(None);
        };
        // What fails on its way is not used again: its memory may have gone.
        let mut recorded = match shapes[at].recorded.take() {
            Some(recorded) => recorded,
            None => RecordedClenshaw::new(self.q.times(&self.q)?, window, &p.coefficients, v)?,
        };
        let y = recorded.apply(v, terms)?;
        shapes[at].recorded = Some(recorded);
        Ok(Some(y))
    }

    /// The rational function by conjugate gradients with all poles at once.
    fn rational(&self, r: &Zolotarev, v: &BlockVector, error: f64) -> Result<BlockVector> {
        let device = self.q.device();
        let shifts: Vec<f64> = r.shifts.iter().map(|s| s * self.upper).collect();
        let tolerance = (0.1 * error.max(r.deviation)).max(1e-14);
        let (x, _) = shifted_steps(&self.squared, &shifts, v, tolerance, 100_000, &Task::default())?;
        let mut y = device.zeros(v.dtype(), v.rows(), v.columns())?;
        for (x, residue) in x.iter().zip(&r.residues) {
            device.axpby(&[C64::new(residue * self.upper, 0.0)], x, &[ONE], &mut y)?;
        }
        Ok(y)
    }
}

/// Low modes of Q^2 found here: somewhat more than wanted, so that the cut can avoid a small gap.
fn find_modes(squared: &Operator, modes: Option<usize>, wanted: &Wanted, task: &Task) -> Result<Eigen> {
    let count = modes.unwrap_or(8);
    let most = squared.dim() / 2;
    let look = (count + count.div_ceil(2).max(4)).min(most.max(1));
    let mut options = RitzOptions {
        count: look,
        tolerance: 1e-3,
        max_products: 400_000,
        seed: wanted.seed,
        method: RitzMethod::Chebyshev,
    };
    // A rough search says how small the modes are, and so how well they must be known: 2 kappa/(d + d') <= delta/2.
    let rough = ritz(squared, &options, &task.quiet())?;
    let lowest = rough.values[0].max(1e-16);
    options.tolerance =
        (0.2 * wanted.delta * lowest).clamp(1e-13 * rough.values[look - 1], 1e-4 * lowest.sqrt());
    ritz(squared, &options, task)
}

/// How many of these values to project out, and the value where the rest begins: where the relative gap is largest among
/// the last half.
fn cut(values: &[f64]) -> (usize, f64) {
    let n = values.len();
    if n < 2 {
        return (n, values[n - 1]);
    }
    let gap = |m: usize| values[m] / values[m - 1].max(1e-300);
    let best = (n.div_ceil(2)..n).max_by(|&a, &b| gap(a).total_cmp(&gap(b))).unwrap_or(n - 1);
    (best, values[best])
}

/// P Q P diagonalised over a space, and what Q adds to it: the residuals, a column each.
fn diagonalised(q: &Operator, space: &BlockVector) -> Result<(Low, BlockVector)> {
    let (device, n) = (q.device(), space.columns());
    let zeros = || device.zeros(space.dtype(), space.rows(), n);
    let mut image = zeros()?;
    q.update(Update::PRODUCT, space, &mut image, None)?;
    let projected = device.gram(space, &image)?;
    let (values, rotation) = hermitian_eigen(n, &projected, true)?;
    let (mut x, mut r) = (zeros()?, zeros()?);
    device.combine(space, &rotation, 0.0, &mut x)?;
    device.combine(&image, &rotation, 0.0, &mut r)?;
    let minus: Vec<C64> = values.iter().map(|v| C64::new(-v, 0.0)).collect();
    device.axpby(&minus, &x, &[ONE], &mut r)?;
    let residuals = device.dots(&r, &r)?.iter().map(|z| root(z.re)).collect();
    Ok((Low { vectors: x, values, residuals }, r))
}

/// Eigenvectors of Q^2 cut out of a pair nu, -nu leave a space that Q leads out of: the other half of the pair is added. What
/// else Q leads to is noise of high modes, which is not.
fn invariant(q: &Operator, vectors: BlockVector, scale: f64) -> Result<Low> {
    let device = q.device();
    let space = orthonormal(device, &q.accept(&vectors)?.unwrap_or(vectors))?;
    let (low, residuals) = diagonalised(q, &space)?;
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
    let count = low.vectors.columns();
    let mut wider = device.zeros(outside.dtype(), outside.rows(), count + halves)?;
    device.set_columns(&mut wider, 0, &low.vectors)?;
    device.set_columns(&mut wider, count, &added)?;
    let (closed, _) = diagonalised(q, &orthonormal(device, &wider)?)?;
    let total = |low: &Low| low.residuals.iter().map(|r| r * r).sum::<f64>();
    Ok(if total(&closed) < total(&low) { closed } else { low })
}

fn report(low: Option<&Low>, fit: &Fit, rest: f64) -> SignReport {
    let degree = match fit {
        Fit::Polynomial(p) => p.degree(),
        Fit::Rational(r) => r.shifts.len(),
    };
    let delta = fit.deviation();
    let Some(low) = low else {
        let (modes, kappa_plus, kappa_minus) = (0, 0.0, 0.0);
        return SignReport { modes, degree, delta, kappa_plus, kappa_minus, gap: rest, rest, bound: delta };
    };
    let gap = low.values.iter().map(|v| v.abs()).fold(f64::INFINITY, f64::min);
    // The distance of a mode from all of the spectrum that does not belong to modes of its sign.
    let kappa = |sign: f64| {
        let other = low.values.iter().filter(|v| *v * sign < 0.0).map(|v| v.abs()).fold(rest, f64::min);
        let share = |(value, rho): (&f64, &f64)| {
            let distance = (value.abs() + other).min((rest - value.abs()).max(0.0));
            (rho / distance).powi(2)
        };
        let own = low.values.iter().zip(&low.residuals).filter(|(v, _)| *v * sign > 0.0);
        own.map(share).sum::<f64>().sqrt()
    };
    let total = low.residuals.iter().map(|r| r * r).sum::<f64>().sqrt();
    let smallest = gap.min(rest);
    SignReport {
        modes: low.values.len(),
        degree,
        delta,
        kappa_plus: kappa(1.0),
        kappa_minus: kappa(-1.0),
        gap,
        rest,
        bound: delta + 2.0 * total / (gap + smallest),
    }
}

impl LinearOperator for Sign {
    fn rows(&self) -> Rows {
        self.q.rows()
    }

    fn cols(&self) -> usize {
        self.q.cols()
    }

    fn dtype(&self) -> DType {
        self.q.dtype()
    }

    fn update(
        &self,
        device: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: Option<&mut Dots>,
    ) -> Result<()> {
        let s = self.apply(v, 0.0)?;
        update_by(device, c, &s, v, w, dots)
    }

    fn adjoint(&self, device: &Device) -> Result<Operator> {
        Ok(Operator::from_node(device.clone(), Arc::new(self.clone())))
    }

    fn is_hermitian(&self, _: &Device) -> Result<bool> {
        Ok(true)
    }

    fn limits(&self) -> Option<(f64, f64)> {
        let most = 1.0 + self.report.bound;
        Some((-most, most))
    }

    fn describe(&self) -> String {
        let r = &self.report;
        let what = if matches!(self.fit, Fit::Polynomial(_)) { "degree" } else { "poles" };
        format!("sign by {} low modes and {what} {}", r.modes, r.degree)
    }

    fn bytes(&self) -> usize {
        self.q.node().bytes() + self.low.as_ref().map_or(0, |low| low.vectors.bytes())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
