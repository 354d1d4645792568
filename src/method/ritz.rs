//! The lowest eigenpairs of a Hermitian operator by minimising its Ritz functional <x|A x>/<x|x>: conjugate gradients
//! with deflation of the vectors below, in cycles with exact diagonalisation in their span (Kalkreuter, Simma,
//! CPC 93 (1996) 33); or subspace iteration with a Chebyshev filter, which needs fewer steps where products come in
//! blocks (Zhou, Saad, Tiago, Chelikowsky, J. Comput. Phys. 219 (2006) 172).

use crate::backend::{BlockVector, Device, Random, Update, VectorDistribution};
use crate::error::{Error, Result};
use crate::method::fixed::{fixed, joint, width};
use crate::method::subspace::{orthonormal, rayleigh_ritz};
use crate::method::units::{Units, countable, positive};
use crate::method::{Eigen, SearchEnded, Window};
use crate::number::C64;
use crate::number::philox::Stream;
use crate::operator::{Operator, not_finite};
use crate::task::Task;

/// Factor by which a gradient falls before the span is diagonalised again.
const CYCLE: f64 = 0.1;

/// Tolerances above this, in units of the operator, are rough: a level may be missed that lies close to another.
const LOOSE: f64 = 1e-6;
/// How often the vector beside those wanted is lowered.
const LOOKS: usize = 20;
/// Steps without a smaller gradient, where it is of the size of rounding, after which a descent ends.
const IDLE: usize = 50;

/// How the functional is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RitzMethod {
    ConjugateGradient,
    /// Chebyshev-filtered subspaces.
    Chebyshev,
}

/// What to find and how hard to try.
#[derive(Debug, Clone)]
pub struct RitzOptions {
    pub count: usize,
    /// How many of them must converge, counted from the lowest. The others are returned as they are then.
    pub sure: usize,
    /// Vectors to begin with, in place of as many random ones.
    pub start: Option<BlockVector>,
    /// Largest residual norm |A x - theta x| that counts as converged; without it 1e-9, of the operator's size where
    /// that is far from one.
    pub tolerance: Option<f64>,
    /// The same as a fraction of the lowest |theta|; the larger of the two counts. For values whose size is not known
    /// before.
    pub relative: f64,
    /// Most products with single vectors.
    pub max_products: usize,
    /// Seed of the random starting vectors.
    pub seed: u64,
    pub method: RitzMethod,
}

impl RitzOptions {
    /// The lowest pairs, all of them.
    pub fn new(count: usize, seed: u64, method: RitzMethod) -> Self {
        let (tolerance, relative, max_products) = (None, 0.0, 1_000_000);
        RitzOptions { count, sure: count, start: None, tolerance, relative, max_products, seed, method }
    }

    /// The largest residual of those that must converge.
    fn worst(&self, residuals: &[f64]) -> f64 {
        residuals[..self.sure.min(residuals.len())].iter().copied().fold(0.0, f64::max)
    }
}

/// The lowest eigenpairs.
///
/// # Errors
/// An operator that is not Hermitian, more pairs than the space has, a tolerance that is not positive.
pub fn ritz(a: &Operator, options: &RitzOptions, task: &Task) -> Result<Eigen> {
    super::window::require_hermitian(a)?;
    let count = options.count;
    countable(count, a)?;
    positive(options.tolerance)?;
    let sure = options.sure;
    if sure == 0 || sure > count {
        return Err(Error::internal(format!("{sure} of {count} eigenpairs are to converge")));
    }
    // More vectors than asked for: the last wanted ones then converge faster.
    let units = Units::of(a)?;
    let tolerance = units.tolerance(options.tolerance);
    let guards = match options.method {
        RitzMethod::ConjugateGradient => usize::from(tolerance > LOOSE),
        RitzMethod::Chebyshev => 4.max(sure / 4),
    };
    let width = count.max(sure + guards).min(a.dim());
    // Beside nearly all vectors there is no room to look for a level that was missed; all of them span the space.
    let width = if width >= a.dim().div_ceil(2) { a.dim() } else { width };
    let x = match &options.start {
        Some(start) => Some(a.device().columns(start, 0..start.columns().min(width))?),
        None => None,
    };
    let mut span = RitzVectors::new(&units.h, x, width, options)?;
    (span.tolerance, span.size) = (tolerance, units.size);
    span.join();
    let ended = match options.method {
        RitzMethod::ConjugateGradient => gradients(&mut span, options, task)?,
        // Where values are so uneven that no polynomial tells the last of them from what lies above, the search ends by
        // gradients.
        RitzMethod::Chebyshev => match filters(&mut span, options, task)? {
            SearchEnded::Stalled => gradients(&mut span, options, task)?,
            ended => ended,
        },
    };
    let eigen = Eigen {
        values: span.values[..count].to_vec(),
        vectors: a.device().columns(&span.x, 0..count)?,
        residuals: span.norms[..count].to_vec(),
        tolerance: span.goal(),
        iterations: span.cycles,
        products: span.products,
        ended,
    };
    Ok(units.back(fixed(&units.h, eigen, count)?))
}

/// Orthonormal Ritz vectors with their values and residuals.
struct RitzVectors {
    a: Operator,
    x: BlockVector,
    /// How many vectors there should be.
    width: usize,
    /// Where the next random columns come from.
    random: Random,
    values: Vec<f64>,
    /// The residual of each.
    norms: Vec<f64>,
    /// Those of the vectors of one level together.
    residuals: Vec<f64>,
    /// How many vectors the level of each has.
    copies: Vec<usize>,
    /// The operator's size.
    size: f64,
    /// Largest residual that counts as converged.
    tolerance: f64,
    /// The same as a fraction of the lowest |value|.
    relative: f64,
    products: usize,
    cycles: usize,
}

impl RitzVectors {
    /// A span of `width` vectors: those given, and random ones for the rest.
    fn new(a: &Operator, x: Option<BlockVector>, width: usize, options: &RitzOptions) -> Result<RitzVectors> {
        let distribution = VectorDistribution::Gaussian;
        let mut random = Random { seed: options.seed, stream: Stream::Start, first_column: 0, distribution };
        let x = match x {
            Some(x) => x,
            None => {
                let mut x = a.zeros(width)?;
                a.device().fill_random(&mut x, random)?;
                random.first_column = width as u32;
                x
            }
        };
        let mut span = RitzVectors {
            a: a.clone(),
            x,
            width,
            random,
            values: Vec::new(),
            norms: Vec::new(),
            residuals: Vec::new(),
            copies: Vec::new(),
            size: 1.0,
            tolerance: 0.0,
            relative: options.relative,
            products: 0,
            cycles: 0,
        };
        span.diagonalise()?;
        Ok(span)
    }

    /// Makes the vectors orthonormal; random ones take the place of those that depend on others.
    fn fill(&mut self) -> Result<()> {
        let device = self.device().clone();
        for _ in 0..4 {
            self.x = orthonormal(&device, &self.x)?;
            let known = self.x.columns();
            if known == self.width {
                return Ok(());
            }
            let mut more = self.a.zeros(self.width - known)?;
            device.fill_random(&mut more, self.random)?;
            self.random.first_column += more.columns() as u32;
            self.x = device.side_by_side(&[&self.x, &more])?;
        }
        Err(Error::numeric("the vectors of a subspace stay dependent"))
    }

    fn device(&self) -> &Device {
        self.a.device()
    }

    /// The residual that counts as converged.
    fn goal(&self) -> f64 {
        self.tolerance.max(self.relative * self.values[0].abs())
    }

    /// The span's vectors made orthonormal, then rotated to diagonalise A among them.
    fn diagonalise(&mut self) -> Result<()> {
        self.fill()?;
        self.products += self.x.columns();
        let found = rayleigh_ritz(&self.a, &self.x)?;
        (self.x, self.values, self.norms) = (found.vectors, found.values, found.norms);
        self.cycles += 1;
        self.join();
        Ok(())
    }

    /// What the vectors of one level have together: whichever are chosen in the end, they shall have converged.
    fn join(&mut self) {
        let width = width(&self.values, self.goal(), self.a.dtype());
        (self.copies, self.residuals) = joint(&self.values, &self.norms, width);
    }
}

/// Detects residuals that rounding keeps from falling: many sweeps have not lowered them.
struct SweepStall {
    sweeps: usize,
    /// The residual when it last fell by a tenth or more.
    last: f64,
}

impl Default for SweepStall {
    fn default() -> Self {
        SweepStall { sweeps: 0, last: f64::INFINITY }
    }
}

impl SweepStall {
    fn of(&mut self, residual: f64) -> bool {
        // A slow search has not stalled: its fall is judged over many sweeps.
        self.sweeps += 1;
        if residual <= 0.9 * self.last {
            (self.last, self.sweeps) = (residual, 0);
        }
        self.sweeps > 20
    }
}

/// Conjugate gradients for one vector after the other, in cycles.
fn gradients(span: &mut RitzVectors, options: &RitzOptions, task: &Task) -> Result<SearchEnded> {
    let progress = task.start("Ritz functional", options.max_products);
    let mut stall = SweepStall::default();
    let mut looks = 0;
    loop {
        let worst = options.worst(&span.residuals);
        let tolerance = span.goal();
        if worst <= tolerance {
            if looks >= LOOKS || !look_below(span, options, task)? {
                return Ok(SearchEnded::Converged);
            }
            looks += 1;
            continue;
        }
        if stall.of(worst) {
            return Ok(SearchEnded::Stalled);
        }
        if span.products >= options.max_products {
            return Ok(SearchEnded::Limit);
        }
        let mut moved = false;
        for k in 0..options.sure.min(span.x.columns()) {
            if span.residuals[k] <= tolerance {
                continue;
            }
            // A little below the goal, so that the diagonalisation that follows does not lift it above again.
            let goal = (CYCLE * span.residuals[k]).max(0.3 * tolerance) / (span.copies[k] as f64).sqrt();
            moved |= descend(span, k, goal, options, task)?;
            progress.advance_with(span.products, &format!("residual {worst:.1e}"))?;
        }
        let before = options.worst(&span.residuals);
        span.diagonalise()?;
        let after = options.worst(&span.residuals);
        if !moved && after >= before && after > span.goal() {
            // At the limit of rounding no step lowers the functional.
            return Ok(if span.products >= options.max_products {
                SearchEnded::Limit
            } else {
                SearchEnded::Stalled
            });
        }
    }
}

/// With a rough tolerance a vector may settle on a level above another one close by, of which it happened to have
/// little. Lowers the vector beside those wanted, where there is one; false if it has settled already.
fn look_below(span: &mut RitzVectors, options: &RitzOptions, task: &Task) -> Result<bool> {
    let k = options.sure;
    if span.tolerance <= LOOSE || span.x.columns() <= k || span.products >= options.max_products {
        return Ok(false);
    }
    let goal = span.goal();
    if span.residuals[k] <= goal || !descend(span, k, 0.3 * goal, options, task)? {
        return Ok(false);
    }
    span.diagonalise()?;
    Ok(true)
}

/// Lowers the Ritz functional of vector `k`, orthogonal to those below, until its gradient is small; false if no step
/// was made.
fn descend(span: &mut RitzVectors, k: usize, goal: f64, options: &RitzOptions, task: &Task) -> Result<bool> {
    let a = span.a.clone();
    let device = a.device().clone();
    let below = if k > 0 { Some(device.columns(&span.x, 0..k)?) } else { None };
    let deflate = |v: &mut BlockVector| -> Result<()> {
        let Some(below) = &below else { return Ok(()) };
        let overlap: Vec<C64> = device.gram(below, v)?.iter().map(|z| -z).collect();
        device.combine(below, &overlap, 1.0, v)
    };
    let norm2 = |v: &BlockVector| -> Result<f64> { Ok(device.dots(v, v)?[0].re) };
    let scale = |s: f64, v: &mut BlockVector| -> Result<()> {
        let copy = v.clone();
        device.axpby(&[C64::new(s, 0.0)], &copy, &[C64::default()], v)
    };
    let mut x = device.columns(&span.x, k..k + 1)?;
    deflate(&mut x)?;
    let n = norm2(&x)?.sqrt();
    scale(1.0 / n, &mut x)?;
    let mut y = device.zeros(x.dtype(), x.rows(), 1)?;
    a.update(Update::PRODUCT, &x, &mut y, None)?;
    let mut z = device.zeros(x.dtype(), x.rows(), 1)?;
    let mut mu = device.dots(&x, &y)?[0].re;
    // Turns A x into the gradient A x - mu x. Where the gradient is small, rounding leaves a component along x that
    // is not small. The second projection removes it: the step would take it for a slope.
    let tangent = |x: &BlockVector, g: &mut BlockVector| -> Result<()> {
        for _ in 0..2 {
            let along = device.dots(x, g)?[0];
            device.axpby(&[-along], x, &[C64::ONE], g)?;
        }
        deflate(g)
    };
    let mut g = y.clone();
    tangent(&x, &mut g)?;
    let mut p = g.clone();
    let (mut gg, mut steps) = (norm2(&g)?, 0);
    // A gradient as small as this may be rounding's, which no step lowers: the smallest so far, and the steps since.
    let small = a.dtype().epsilon().powf(0.7) * span.size.max(mu.abs());
    let (mut least, mut idle) = (gg.sqrt(), 0);
    span.products += 1;
    while gg.sqrt() > goal && span.products < options.max_products && (idle <= IDLE || least > small) {
        task.check()?;
        let pp = norm2(&p)?.sqrt();
        if !(pp > 0.0) {
            break;
        }
        scale(1.0 / pp, &mut p)?;
        a.update(Update::PRODUCT, &p, &mut z, None)?;
        span.products += 1;
        // The lowest vector of the plane of x and p: [[mu, b], [b, c]].
        let (b, c) = (device.dots(&x, &z)?[0].re, device.dots(&p, &z)?[0].re);
        // The angle of the minimum, between -pi/2 and pi/2: either sign of x will do, and without its change the next
        // direction is the conjugate one.
        let theta = 0.5 * (-2.0 * b).atan2(c - mu);
        let (sin, cos) = theta.sin_cos();
        if sin.abs() < 1e-15 {
            break;
        }
        device.axpby(&[C64::new(sin, 0.0)], &p, &[C64::new(cos, 0.0)], &mut x)?;
        device.axpby(&[C64::new(sin, 0.0)], &z, &[C64::new(cos, 0.0)], &mut y)?;
        steps += 1;
        if steps % 100 == 0 {
            // Rounding has moved y away from A x, and x towards the vectors below.
            deflate(&mut x)?;
            let n = norm2(&x)?.sqrt();
            scale(1.0 / n, &mut x)?;
            a.update(Update::PRODUCT, &x, &mut y, None)?;
            span.products += 1;
        }
        mu = device.dots(&x, &y)?[0].re;
        let old = gg;
        device.axpby(&[C64::ONE], &y, &[C64::default()], &mut g)?;
        tangent(&x, &mut g)?;
        gg = norm2(&g)?;
        if !gg.is_finite() {
            return Err(not_finite());
        }
        idle += 1;
        if gg.sqrt() < 0.9 * least {
            (least, idle) = (gg.sqrt(), 0);
        }
        if steps % 1000 == 0 {
            // A restart, for directions that rounding has made meaningless.
            p = g.clone();
            continue;
        }
        // The old direction, projected to the tangent space at the new x and with its former length.
        let beta = cos * gg / old * pp;
        let along = device.dots(&x, &p)?[0];
        device.axpby(&[-along], &x, &[C64::ONE], &mut p)?;
        device.axpby(&[C64::ONE], &g, &[C64::new(beta, 0.0)], &mut p)?;
        if steps % 10 == 0 {
            deflate(&mut p)?;
        }
    }
    device.set_columns(&mut span.x, k, &x)?;
    Ok(steps > 0)
}

/// Subspace iteration with a Chebyshev filter: each sweep damps the spectrum above the largest Ritz value of the
/// span.
fn filters(span: &mut RitzVectors, options: &RitzOptions, task: &Task) -> Result<SearchEnded> {
    let a = span.a.clone();
    let device = a.device().clone();
    let mut upper = Window::lanczos(&a, 40, 0.02, options.seed, &task.quiet())?.upper();
    let progress = task.start("Chebyshev filter", options.max_products);
    let mut stall = SweepStall::default();
    let width = span.x.columns();
    let growth: f64 = if a.dtype().is_single() { 1e3 } else { 1e6 };
    loop {
        let worst = options.worst(&span.residuals);
        if worst <= span.goal() || width == a.dim() {
            return Ok(SearchEnded::Converged);
        }
        if stall.of(worst) {
            return Ok(SearchEnded::Stalled);
        }
        if span.products >= options.max_products {
            return Ok(SearchEnded::Limit);
        }
        progress.advance_with(span.products, &format!("residual {worst:.1e}"))?;
        let (lowest, highest) = (span.values[0], span.values[span.values.len() - 1]);
        // A spectrum beyond the limit shows here: its vectors grow most.
        let above = highest + span.residuals[span.residuals.len() - 1];
        if highest > upper {
            upper = above + 0.02 * (above - lowest);
        }
        let wanted = span.values[options.sure - 1];
        // The damping begins above the span's own values; within a multiplet nothing would grow otherwise. What is
        // wanted is never damped, however close to the upper end it lies:
        // zeros of the polynomial would wipe out some of it.
        let mut top = (highest + (0.25 * (highest - wanted)).max(1e-4 * (upper - lowest)))
            .min((lowest + 0.9 * (upper - lowest)).max(0.5 * (wanted + upper)));
        // A lowest value far below the others permits only a small degree. If the others form one multiplet besides,
        // they would not grow over the states right above them, so the damping begins higher.
        let limit = {
            let half = 0.5 * (upper - top);
            let lowest = ((0.5 * (upper + top) - lowest) / half).max(1.0 + 1e-12);
            (growth * growth).acosh() / lowest.acosh()
        };
        if limit < 60.0 {
            top = top.max(wanted + 0.25 * (upper - top) * (4.0 / limit).powi(2)).min(0.5 * (upper + top));
        }
        // The last wanted vector grows by e^4 over what is damped, as far as a moderate degree allows.
        let gap = ((top - wanted) / (upper - top)).max(1e-5).sqrt();
        let (center, half) = (0.5 * (upper + top), 0.5 * (upper - top));
        if !(half > 0.0) {
            return Ok(SearchEnded::Stalled);
        }
        // The growth is limited, since a vector that grows too much hides the others in its rounding. Converged
        // vectors are projected out again.
        let goal = span.goal();
        let first = (0..options.sure).find(|&k| span.residuals[k] > goal).unwrap_or(0);
        let room =
            |growth: f64, value: f64| growth.acosh() / ((center - value) / half).max(1.0 + 1e-12).acosh();
        let most = room(growth, span.values[first]).min(room(growth * growth, lowest));
        let degree = ((2.0 / gap).ceil()).clamp(8.0, 120.0).min(most.floor()).max(2.0) as usize;
        let (alpha, beta) = (1.0 / half, -center / half);
        let mut v = span.x.clone();
        let mut w = device.zeros(v.dtype(), v.rows(), v.columns())?;
        a.update(Update { alpha, beta, gamma: 0.0 }, &v, &mut w, None)?;
        for _ in 1..degree {
            a.update(Update { alpha: 2.0 * alpha, beta: 2.0 * beta, gamma: -1.0 }, &w, &mut v, None)?;
            std::mem::swap(&mut v, &mut w);
            task.check()?;
        }
        span.products += degree * v.columns();
        if first > 0 {
            let known = device.columns(&span.x, 0..first)?;
            let mut rest = device.columns(&w, first..width)?;
            let back: Vec<C64> = device.gram(&known, &rest)?.iter().map(|z| -z).collect();
            device.combine(&known, &back, 1.0, &mut rest)?;
            device.set_columns(&mut w, 0, &known)?;
            device.set_columns(&mut w, first, &rest)?;
        }
        span.x = w;
        span.diagonalise()?;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::cpu::Cpu;
    use crate::backend::matrix::{Csr, Indices, MatrixValues};
    use crate::operator::{MatrixFormat, StoredMatrix};
    use crate::task::Interrupt;

    /// A ring of n sites: 2 - 2 cos k.
    fn ring(n: usize) -> Operator {
        stored(n, MatrixValues::F64)
    }

    fn stored<T: From<i8>>(n: usize, kept: impl Fn(Vec<T>) -> MatrixValues) -> Operator {
        let device: Device = Arc::new(Cpu::new(2, Interrupt::default()).unwrap());
        let (mut row_start, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..n {
            let mut row = [((i + n - 1) % n, -1), (i, 2), ((i + 1) % n, -1)];
            row.sort_by_key(|e| e.0);
            for (j, x) in row {
                columns.push(j as u32);
                values.push(T::from(x));
            }
            row_start.push(columns.len());
        }
        let csr = Csr { rows: n, cols: n, row_start, columns: Indices::U32(columns), values: kept(values) };
        StoredMatrix::from_csr(&device, csr, MatrixFormat::Csr).unwrap()
    }

    /// The tolerance is below rounding: the search ends long before its limit of products.
    #[test]
    fn both_ways_end_where_rounding_rules() {
        let h = stored(64, MatrixValues::F32);
        for method in [RitzMethod::ConjugateGradient, RitzMethod::Chebyshev] {
            let options = RitzOptions { tolerance: Some(1e-12), ..RitzOptions::new(3, 3, method) };
            let eigen = ritz(&h, &options, &Task::default()).unwrap();
            assert!(!eigen.converged() && eigen.products < 200_000, "{method:?} {}", eigen.products);
        }
    }

    #[test]
    fn both_ways_find_degenerate_pairs() {
        let h = ring(64);
        for method in [RitzMethod::ConjugateGradient, RitzMethod::Chebyshev] {
            let max_products = 100_000;
            let options =
                RitzOptions { tolerance: Some(1e-10), max_products, ..RitzOptions::new(5, 3, method) };
            let eigen = ritz(&h, &options, &Task::default()).unwrap();
            assert!(eigen.converged(), "{method:?} {:?}", eigen.residuals);
            for (value, k) in eigen.values.iter().zip([0.0, 1.0, 1.0, 2.0, 2.0]) {
                let exact = 2.0 - 2.0 * (2.0 * std::f64::consts::PI * k / 64.0).cos();
                assert!((value - exact).abs() < 1e-12, "{method:?}: {value} {exact}");
            }
        }
    }

    /// A search goes on from what a rough one found, and takes fewer products than one from the start; values beyond
    /// those that must converge lie above the exact ones.
    #[test]
    fn a_search_goes_on_from_another() {
        let h = ring(256);
        let exact = |k: f64| 2.0 - 2.0 * (2.0 * std::f64::consts::PI * k / 256.0).cos();
        for method in [RitzMethod::ConjugateGradient, RitzMethod::Chebyshev] {
            let rough = RitzOptions { sure: 3, tolerance: Some(1e-4), ..RitzOptions::new(7, 3, method) };
            let rough = ritz(&h, &rough, &Task::default()).unwrap();
            assert!(rough.converged() && rough.values.len() == 7, "{method:?} {:?}", rough.residuals);
            for (value, k) in rough.values.iter().zip([0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]) {
                assert!(*value > exact(k) - 1e-12, "{method:?}: {value} {}", exact(k));
            }
            let all = RitzOptions { tolerance: Some(1e-10), ..RitzOptions::new(3, 3, method) };
            let fresh = ritz(&h, &all, &Task::default()).unwrap();
            let further = RitzOptions { start: Some(rough.vectors), ..all };
            let further = ritz(&h, &further, &Task::default()).unwrap();
            assert!(
                further.converged() && further.products < fresh.products,
                "{method:?} {}",
                fresh.products
            );
            assert!((further.values[2] - exact(1.0)).abs() < 1e-12, "{method:?} {}", further.values[2]);
        }
    }
}
