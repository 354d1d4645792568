//! Levels inside a spectrum: subspace iteration for (H - e)^2 with a Chebyshev filter (Zhou, Saad, Tiago, Chelikowsky,
//! J. Comput. Phys. 219 (2006) 172, applied to the folded spectrum of Wang, Zunger, J. Chem. Phys. 100 (1994) 2394).
//!
//! The Ritz values of (H - e)^2 bound its levels from above and fall, so that none inside the spectrum is spurious; H is
//! diagonalised among the vectors that it finds.

use super::subspace::{hermitian_eigen, orthonormal};
use super::window::require_hermitian;
use super::{Chebyshev, DampingKernel, Eigen, Ended, Expansion, Window};
use crate::backend::{BlockVector, Distribution, Random, Update};
use crate::error::{Error, Result};
use crate::number::philox::Stream;
use crate::number::{C64, root};
use crate::operator::Operator;
use crate::task::Task;

const ONE: C64 = C64::new(1.0, 0.0);
/// What one pass of the filter amplifies wanted levels by, against unwanted ones.
const GROWTH: f64 = 1e4;
/// The most that a filter may amplify anything by: the vectors are made orthonormal by their scalar products, in which what is
/// amplified less is lost beyond the root of the rounding.
const MOST_GROWTH: f64 = 1e6;
/// Passes that may bring nothing.
const PATIENCE: usize = 10;

/// What to find and how hard to try.
#[derive(Debug, Clone)]
pub struct InteriorOptions {
    /// The energy whose neighbours are sought.
    pub near: f64,
    /// Number of eigenpairs.
    pub count: usize,
    /// Largest residual norm |H x - E x| that counts as converged.
    pub tolerance: f64,
    /// Most products with single vectors.
    pub max_products: usize,
    /// Seed of the random starting vectors.
    pub seed: u64,
}

/// The eigenpairs nearest to an energy, ascending.
///
/// # Errors
/// An operator that is not Hermitian, more pairs than the space has, a tolerance that is not positive.
pub fn interior(h: &Operator, options: &InteriorOptions, task: &Task) -> Result<Eigen> {
    require_hermitian(h)?;
    let (count, e) = (options.count, options.near);
    if count == 0 || count > h.dim() {
        return Err(Error::input(format!("{count} eigenpairs of an operator with {} rows", h.dim()))
            .hint("ask for fewer with the option `count`"));
    }
    if !(options.tolerance > 0.0) {
        return Err(Error::input(format!("a tolerance of {}", options.tolerance)).hint("it must be positive"));
    }
    if !e.is_finite() {
        return Err(Error::input(format!("levels near an energy of {e}")));
    }
    // Vectors beyond those asked for take up what would converge slowly.
    let width = 2 * count + 12;
    let width = if h.dim() <= 2 * width { h.dim() } else { width };
    let mut span = Span { h: h.clone(), e, width, seed: options.seed, drawn: 0, products: 0, x: h.zeros(0)? };
    let mut found = span.refine(count)?;
    if width == h.dim() {
        return found.finish(&span, options, 0, Ended::Converged);
    }
    let window = Window::lanczos(h, 80, 0.02, options.seed, &task.quiet())?;
    let far = (window.upper() - e).max(e - window.lower());
    let mut bound = first_bound(h, window, far, e, width, options.seed)?;
    let progress = task.start("levels", options.max_products);
    let (mut passes, mut best, mut idle) = (0, f64::INFINITY, 0);
    loop {
        let filter = Filter::new(window, e, far, bound, found.radius[count - 1].min(bound), GROWTH)?;
        if span.products + filter.products(width) > options.max_products {
            return found.finish(&span, options, passes, Ended::Limit);
        }
        span.x = filter.series.apply(h, &span.x, &task.quiet())?;
        span.products += filter.products(width);
        found = span.refine(count)?;
        passes += 1;
        let worst = found.worst();
        progress.advance_with(span.products.min(options.max_products), &format!("residual {worst:.1e}"))?;
        if worst <= options.tolerance {
            return found.finish(&span, options, passes, Ended::Converged);
        }
        bound = found.reach.clamp(1e-12 * far, 0.7 * far);
        let measure = worst * found.reach;
        idle = if measure < 0.9 * best { 0 } else { idle + 1 };
        best = best.min(measure);
        if idle > PATIENCE {
            return found.finish(&span, options, passes, Ended::Stalled);
        }
    }
}

/// A bound that about as many levels should lie within as there are vectors, from a rough density of states.
fn first_bound(h: &Operator, window: Window, far: f64, e: f64, width: usize, seed: u64) -> Result<f64> {
    let distribution = if h.dtype().is_complex() { Distribution::Phase } else { Distribution::Sign };
    let random = Random { seed, stream: Stream::Start, first_column: u32::MAX - 8, distribution };
    let mut v = h.zeros(4)?;
    h.device().fill_random(&mut v, random)?;
    let mut recurrence = Chebyshev::new(h, window, v)?;
    recurrence.run(64, &Task::default())?;
    let density = recurrence.moments()?.density(&[e], DampingKernel::Jackson)[0];
    let levels = density.max(0.0) * h.dim() as f64;
    Ok((0.35 * width as f64 / levels.max(1e-300)).clamp(1e-9 * far, 0.3 * far))
}

/// T_m of (H - e)^2, scaled so that what lies beyond `bound` goes to [-1, 1], divided by its value at `e`.
struct Filter {
    series: Expansion,
}

impl Filter {
    fn new(window: Window, e: f64, far: f64, bound: f64, radius: f64, growth: f64) -> Result<Filter> {
        let span = far * far - bound * bound;
        let at = |d: f64| (1.0 + 2.0 * (bound * bound - d * d).max(0.0) / span).acosh();
        // Levels that are about to be found may still look as far away as the bound.
        let (peak, wanted) = (at(0.0), at(radius.min(0.7 * bound)));
        let order = (growth.acosh() / wanted).min(MOST_GROWTH.acosh() / peak).ceil().clamp(2.0, 1e6);
        let top = (order * peak).cosh();
        let series = Expansion::of(window, 2 * order as usize + 1, |energy| {
            let x = (2.0 * (energy - e).powi(2) - far * far - bound * bound) / span;
            let value = if x < -1.0 {
                (order * (-x).acosh()).cosh()
            } else {
                (order * (-x).clamp(-1.0, 1.0).acos()).cos()
            };
            Ok(C64::new(value / top, 0.0))
        })?;
        Ok(Filter { series })
    }

    fn products(&self, columns: usize) -> usize {
        (self.series.coefficients.len() - 1) * columns
    }
}

/// Vectors whose span holds the levels sought, more and more so.
struct Span {
    h: Operator,
    e: f64,
    width: usize,
    seed: u64,
    /// Random columns drawn so far.
    drawn: u32,
    products: usize,
    x: BlockVector,
}

/// Ritz pairs of H, those that (H - e)^2 has lowest first.
struct Found {
    values: Vec<f64>,
    residuals: Vec<f64>,
    /// The root of (value - e)^2 + residual^2, ascending.
    radius: Vec<f64>,
    /// Columns of `vectors`, in that order.
    order: Vec<usize>,
    vectors: BlockVector,
    /// The largest root of a Ritz value of (H - e)^2.
    reach: f64,
    count: usize,
}

impl Span {
    /// Makes the vectors orthonormal, with random ones for those that are missing, and turns them to the Ritz vectors.
    fn refine(&mut self, count: usize) -> Result<Found> {
        let device = self.h.device().clone();
        for _ in 0..4 {
            let known = self.x.columns();
            if known < self.width {
                let random = Random {
                    seed: self.seed,
                    stream: Stream::Start,
                    first_column: self.drawn,
                    distribution: Distribution::Gaussian,
                };
                let mut more = self.h.zeros(self.width - known)?;
                device.fill_random(&mut more, random)?;
                self.drawn += more.columns() as u32;
                let mut all = self.h.zeros(self.width)?;
                if known > 0 {
                    device.set_columns(&mut all, 0, &self.x)?;
                }
                device.set_columns(&mut all, known, &more)?;
                self.x = all;
            }
            self.x = orthonormal(&device, &self.x)?;
            if self.x.columns() == self.width {
                break;
            }
        }
        let n = self.x.columns();
        if n < count {
            return Err(Error::numeric("the vectors of a subspace stay dependent"));
        }
        let complex = self.h.dtype().is_complex();
        let blank = |columns: usize| device.zeros(self.x.dtype(), self.x.rows(), columns);
        let mut y = blank(n)?;
        // (H - e) x
        self.h.update(Update { alpha: 1.0, beta: -self.e, gamma: 0.0 }, &self.x, &mut y, None)?;
        self.products += n;
        let folded = device.gram(&y, &y)?;
        if folded.iter().any(|z| !z.is_finite()) {
            return Err(Error::numeric("the operator gives numbers that are not finite")
                .hint("look for NaN or infinite entries"));
        }
        let (squares, rotation) = hermitian_eigen(n, &folded, complex)?;
        let turned = |v: &BlockVector, rotation: &[C64], columns: usize| -> Result<BlockVector> {
            let mut out = blank(columns)?;
            device.combine(v, rotation, 0.0, &mut out)?;
            Ok(out)
        };
        let (x, y) = (turned(&self.x, &rotation, n)?, turned(&y, &rotation, n)?);
        // H among those nearest: pairs on both sides of e are one to (H - e)^2.
        let near = if n == self.h.dim() { n } else { n.min(count + 6.max(count / 4)) };
        let (low, low_y) = (device.columns(&x, 0..near)?, device.columns(&y, 0..near)?);
        let (shifted, rotation) = hermitian_eigen(near, &device.gram(&low, &low_y)?, complex)?;
        let vectors = turned(&low, &rotation, near)?;
        let mut r = turned(&low_y, &rotation, near)?;
        let minus: Vec<C64> = shifted.iter().map(|v| C64::new(-v, 0.0)).collect();
        device.axpby(&minus, &vectors, &[ONE], &mut r)?;
        let residuals: Vec<f64> = device.dots(&r, &r)?.iter().map(|z| root(z.re)).collect();
        let radius: Vec<f64> = shifted.iter().zip(&residuals).map(|(v, r)| v.hypot(*r)).collect();
        let mut order: Vec<usize> = (0..near).collect();
        order.sort_by(|&i, &j| radius[i].total_cmp(&radius[j]));
        self.x = x;
        Ok(Found {
            values: order.iter().map(|&i| shifted[i] + self.e).collect(),
            residuals: order.iter().map(|&i| residuals[i]).collect(),
            radius: order.iter().map(|&i| radius[i]).collect(),
            order,
            vectors,
            reach: root(squares[n - 1]),
            count,
        })
    }
}

impl Found {
    /// The largest residual of those asked for.
    fn worst(&self) -> f64 {
        self.residuals[..self.count].iter().copied().fold(0.0, f64::max)
    }

    fn finish(self, span: &Span, options: &InteriorOptions, passes: usize, ended: Ended) -> Result<Eigen> {
        let device = span.h.device();
        let mut chosen: Vec<usize> = (0..self.count).collect();
        chosen.sort_by(|&i, &j| self.values[i].total_cmp(&self.values[j]));
        let mut vectors = device.zeros(self.vectors.dtype(), self.vectors.rows(), self.count)?;
        for (to, &i) in chosen.iter().enumerate() {
            let from = self.order[i];
            device.set_columns(&mut vectors, to, &device.columns(&self.vectors, from..from + 1)?)?;
        }
        let residuals: Vec<f64> = chosen.iter().map(|&i| self.residuals[i]).collect();
        let worst = residuals.iter().copied().fold(0.0, f64::max);
        // A space of its full size is diagonalised exactly, to rounding.
        let ended =
            if ended == Ended::Converged && worst > options.tolerance { Ended::Stalled } else { ended };
        let values = chosen.iter().map(|&i| self.values[i]).collect();
        Ok(Eigen { values, vectors, residuals, iterations: passes, products: span.products, ended })
    }
}
