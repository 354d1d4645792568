//! Solvers of A x = b: conjugate gradients for Hermitian positive operators, with several shifts at once too, and
//! BiCGStab for any. Columns of a block are solved side by side, each with its own numbers.

use crate::backend::{BlockVector, Device, Dots, Update};
use crate::error::{Error, Result};
use crate::number::{C64, complex};
use crate::operator::{Operator, not_finite};
use crate::task::Task;

/// How hard to try.
#[derive(Debug, Clone)]
pub struct SolveOptions {
    /// Largest |b - A x|/|b| of a column that counts as converged.
    pub tolerance: f64,
    pub max_iterations: usize,
    /// Where to start; zero by default, and for columns where its residual is more than 1000 times that of zero.
    pub start: Option<BlockVector>,
}

impl Default for SolveOptions {
    fn default() -> Self {
        SolveOptions { tolerance: 1e-8, max_iterations: 10_000, start: None }
    }
}

/// A solution and how good it is.
#[derive(Debug, Clone)]
pub struct Solution {
    pub x: BlockVector,
    /// |b - A x|/|b| of each column, recomputed at the end.
    pub residuals: Vec<f64>,
    pub iterations: usize,
    /// Whether every column is within the tolerance.
    pub converged: bool,
}

/// Refuses a system that cannot be solved.
///
/// # Errors
/// Sizes that do not fit, a tolerance outside (0, 1).
pub fn check_system(a: &Operator, b: &BlockVector, options: &SolveOptions) -> Result<()> {
    if a.dim() != a.cols() || b.rows().global != a.dim() {
        return Err(Error::input(format!(
            "a solution of a {} x {} operator for a right-hand side of {} rows",
            a.dim(),
            a.cols(),
            b.rows().global
        ))
        .hint("make the right-hand side with the operator's own size"));
    }
    if let Some(start) = &options.start
        && (start.rows().global, start.columns()) != (b.rows().global, b.columns())
    {
        return Err(Error::input(format!(
            "a start of {} rows and {} columns for a right-hand side of {} and {}",
            start.rows().global,
            start.columns(),
            b.rows().global,
            b.columns()
        ))
        .hint("a solution has the shape of the right-hand side"));
    }
    if !(options.tolerance > 0.0 && options.tolerance < 1.0) {
        return Err(Error::input(format!("a tolerance of {}", options.tolerance))
            .hint("it lies between 0 and 1, like 1e-8"));
    }
    Ok(())
}

/// A block whose columns are multiplied by real factors.
fn times(device: &Device, factors: &[f64], v: &BlockVector) -> Result<BlockVector> {
    let mut w = device.zeros(v.dtype(), v.rows(), v.columns())?;
    device.axpby(&real(factors), v, &[C64::default()], &mut w)?;
    Ok(w)
}

/// Vectors scaled to about norm one where their squares could under- or overflow, and the factors, powers of two; none
/// where all squares are numbers.
pub fn of_about_one(device: &Device, b: &BlockVector) -> Result<Option<(BlockVector, Vec<f64>)>> {
    let (step, most) = if b.dtype().is_single() { (60.0, 120.0) } else { (400.0, 1000.0) };
    let mut factors = vec![1.0f64; b.columns()];
    let (mut scaled, mut zero) = (None, Vec::new());
    // A square that has under- or overflowed tells no size: such a column is scaled by a large fixed step first.
    for _ in 0..5 {
        let (v, mut changed) = (scaled.as_ref().unwrap_or(b), false);
        let squares = device.dots(v, v)?;
        zero = squares.iter().map(|square| square.re == 0.0).collect();
        for (factor, square) in factors.iter_mut().zip(squares) {
            let by = match square.re {
                s if s.is_nan() || (1e-16..1e16).contains(&s) => continue,
                0.0 => step,
                s if s.is_finite() => -(0.5 * s.log2()).round(),
                _ => -step,
            };
            // A column that needs more than this is zero.
            if (factor.log2() + by).abs() <= most {
                (*factor, changed) = (*factor * by.exp2(), true);
            }
        }
        if !changed {
            break;
        }
        scaled = Some(times(device, &factors, b)?);
    }
    factors.iter_mut().zip(zero).filter(|(_, zero)| *zero).for_each(|(factor, _)| *factor = 1.0);
    Ok(scaled.map(|v| (v, factors)))
}

/// Solves with right-hand sides scaled to about norm one where their squares could under- or overflow, and scales
/// back.
///
/// # Errors
/// Those of `solve`.
pub fn in_range<S>(device: &Device, b: &BlockVector, options: SolveOptions, solve: S) -> Result<Vec<Solution>>
where
    S: FnOnce(&BlockVector, SolveOptions) -> Result<Vec<Solution>>,
{
    let Some((scaled, factors)) = of_about_one(device, b)? else { return solve(b, options) };
    let times = |factors: &[f64], v: &BlockVector| times(device, factors, v);
    let start = options.start.as_ref().map(|start| times(&factors, start)).transpose()?;
    let mut solutions = solve(&scaled, SolveOptions { start, ..options })?;
    let back: Vec<f64> = factors.iter().map(|f| 1.0 / f).collect();
    for solution in &mut solutions {
        solution.x = times(&back, &solution.x)?;
    }
    Ok(solutions)
}

/// The one solution of a system.
pub fn only(solutions: Vec<Solution>) -> Result<Solution> {
    solutions.into_iter().next().ok_or_else(|| Error::internal("a solver gave no solution"))
}

fn check_hermitian(a: &Operator) -> Result<()> {
    if a.is_hermitian()? {
        return Ok(());
    }
    Err(Error::input("conjugate gradients need a Hermitian operator, and this one is not").hint(
        "solve A^+ A x = A^+ b, or use BiCGStab; of a Wilson operator the even sites can be solved for",
    ))
}

fn squares(device: &Device, v: &BlockVector) -> Result<Vec<f64>> {
    let squares: Vec<f64> = device.dots(v, v)?.iter().map(|z| if z.re < 0.0 { 0.0 } else { z.re }).collect();
    if squares.iter().any(|x| !x.is_finite()) {
        return Err(not_finite());
    }
    Ok(squares)
}

fn real(x: &[f64]) -> Vec<C64> {
    x.iter().map(|&x| C64::new(x, 0.0)).collect()
}

/// |r|/|b| of each column from the norms; 0 where b vanishes.
pub(crate) fn relative(r: &[f64], b: &[f64]) -> Vec<f64> {
    r.iter().zip(b).map(|(r, b)| ratio(*r, *b)).collect()
}

/// The largest |r|/|b| of a column, from the squares of the norms.
fn largest(rr: &[f64], bb: &[f64]) -> f64 {
    rr.iter().zip(bb).map(|(r, b)| ratio(*r, *b).sqrt()).fold(0.0, f64::max)
}

/// Refuses <p|A p> that are not positive, of columns that are not done.
fn check_positive(pq: &[f64], rr: &[f64], remedy: &'static str) -> Result<()> {
    // A column that is not a number is told as such when all are done.
    if pq.iter().zip(rr).all(|(pq, rr)| !(*rr > 0.0) || *pq > 0.0) {
        return Ok(());
    }
    Err(Error::input("conjugate gradients met a direction in which the operator is not positive")
        .hint(remedy))
}

/// `a / b`, and 0 for columns that are done.
fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

/// How far a start may be, as its residual over that of zero. One that is farther costs the solution digits; where the
/// right-hand side is zero the solution is, too.
const FARTHEST: f64 = 1e3;

/// Where a solver starts (zero by default, and where the start is far), and the residual there.
pub(crate) fn begin(
    a: &Operator,
    b: &BlockVector,
    start: Option<BlockVector>,
) -> Result<(BlockVector, BlockVector)> {
    match start {
        Some(start) => {
            let mut start = a.accept(&start)?.unwrap_or(start);
            if b.dtype().is_complex() && !start.dtype().is_complex() {
                start = a.device().convert(&start, b.dtype())?;
            }
            if a.device().dots(&start, &start)?.iter().any(|square| square.re.is_nan()) {
                return Err(not_finite());
            }
            let r = residual(a, b, &start)?;
            let useful: Vec<bool> = (squares(a.device(), b)?.iter().zip(a.device().dots(&r, &r)?))
                .map(|(b, r)| r.re <= FARTHEST.powi(2) * b)
                .collect();
            if useful.iter().all(|useful| *useful) {
                return Ok((start, r));
            }
            let mut near = a.device().zeros(start.dtype(), start.rows(), start.columns())?;
            for column in (0..useful.len()).filter(|column| useful[*column]) {
                let one = a.device().columns(&start, column..column + 1)?;
                a.device().set_columns(&mut near, column, &one)?;
            }
            let r = residual(a, b, &near)?;
            Ok((near, r))
        }
        None => Ok((a.device().zeros(b.dtype(), b.rows(), b.columns())?, b.clone())),
    }
}

/// `b - A x`.
pub(crate) fn residual(a: &Operator, b: &BlockVector, x: &BlockVector) -> Result<BlockVector> {
    let mut r = b.clone();
    a.update(Update { alpha: -1.0, beta: 0.0, gamma: 1.0 }, x, &mut r, None)?;
    Ok(r)
}

/// The solution `x` with its true residuals.
pub(crate) fn finished(
    a: &Operator,
    b: &BlockVector,
    x: BlockVector,
    iterations: usize,
    tolerance: f64,
) -> Result<Solution> {
    let device = a.device();
    let r = device.norms(&residual(a, b, &x)?)?;
    if r.iter().any(|r| !r.is_finite()) {
        return Err(not_finite());
    }
    let residuals = relative(&r, &device.norms(b)?);
    // The recurrence's residual, by which iterations end, may lie a little lower than the true one.
    let converged = residuals.iter().all(|r| *r <= 2.0 * tolerance);
    Ok(Solution { x, residuals, iterations, converged })
}

/// Conjugate gradients for a Hermitian positive operator.
///
/// # Errors
/// Sizes that do not fit, an operator that is not Hermitian or shows a negative eigenvalue.
pub fn conjugate_gradient(
    a: &Operator,
    b: &BlockVector,
    options: SolveOptions,
    task: &Task,
) -> Result<Solution> {
    check_system(a, b, &options)?;
    check_hermitian(a)?;
    let apply = |p: &BlockVector, q: &mut BlockVector, _: f64| -> Result<Vec<f64>> {
        let mut dots = Dots::default();
        a.update(Update::PRODUCT, p, q, Some(&mut dots))?;
        Ok(dots.wv)
    };
    let solve = |b: &BlockVector, options: SolveOptions| -> Result<Vec<Solution>> {
        let converted = a.accept(b)?;
        let b = converted.as_ref().unwrap_or(b);
        let tolerance = options.tolerance;
        let (x, iterations) = gradient_steps(a, apply, b, options, task)?;
        Ok(vec![finished(a, b, x, iterations, tolerance)?])
    };
    only(in_range(a.device(), b, options, solve)?)
}

/// The iteration of [`conjugate_gradient`]. `apply(p, q, residual)` writes q = A p and returns <p|A p> of each
/// column. It may be less exact when the relative residual has already fallen.
pub(crate) fn gradient_steps(
    a: &Operator,
    mut apply: impl FnMut(&BlockVector, &mut BlockVector, f64) -> Result<Vec<f64>>,
    b: &BlockVector,
    options: SolveOptions,
    task: &Task,
) -> Result<(BlockVector, usize)> {
    let device = a.device();
    let zeros = || device.zeros(b.dtype(), b.rows(), b.columns());
    let size = squares(device, b)?;
    let (mut x, mut r) = begin(a, b, options.start)?;
    let (mut p, mut q) = (r.clone(), zeros()?);
    let mut rr = squares(device, &r)?;
    let progress = task.start("conjugate gradients", options.max_iterations);
    let mut iterations = 0;
    loop {
        let relative = largest(&rr, &size);
        if relative <= options.tolerance || iterations >= options.max_iterations {
            return Ok((x, iterations));
        }
        let pq = apply(&p, &mut q, relative)?;
        check_positive(&pq, &rr, "solve with A^+ A, or by BiCGStab")?;
        let alpha: Vec<f64> = rr.iter().zip(&pq).map(|(r, p)| ratio(*r, *p)).collect();
        device.axpby(&real(&alpha), &p, &[C64::ONE], &mut x)?;
        device.axpby(&real(&alpha.iter().map(|x| -x).collect::<Vec<_>>()), &q, &[C64::ONE], &mut r)?;
        let next = squares(device, &r)?;
        let beta: Vec<f64> = next.iter().zip(&rr).map(|(n, o)| ratio(*n, *o)).collect();
        device.axpby(&[C64::ONE], &r, &real(&beta), &mut p)?;
        rr = next;
        iterations += 1;
        progress.advance_with(iterations, &format!("residual {relative:.1e}"))?;
    }
}

/// Conjugate gradients for (A + shift_i) x_i = b with all shifts in one Krylov space (B. Jegerlehner,
/// hep-lat/9612014). Shifts are not negative.
///
/// # Errors
/// As [`conjugate_gradient`], and negative shifts.
pub fn multishift(
    a: &Operator,
    shifts: &[f64],
    b: &BlockVector,
    options: SolveOptions,
    task: &Task,
) -> Result<Vec<Solution>> {
    check_system(a, b, &options)?;
    check_hermitian(a)?;
    if shifts.is_empty() || shifts.iter().any(|s| !(*s >= 0.0 && s.is_finite())) {
        return Err(Error::input("conjugate gradients with several shifts need shifts of 0 or more")
            .hint("give them as an array or Series, like [0.0, 0.1]"));
    }
    in_range(a.device(), b, options, |b, options| {
        let converted = a.accept(b)?;
        let b = converted.as_ref().unwrap_or(b);
        let (x, iterations) = shifted_steps(a, shifts, b, options.tolerance, options.max_iterations, task)?;
        let solution = |(x, shift): (BlockVector, &f64)| {
            finished(&a.shifted(C64::new(*shift, 0.0))?, b, x, iterations, options.tolerance)
        };
        x.into_iter().zip(shifts).map(solution).collect()
    })
}

/// The iteration of [`multishift`], in the Krylov space of the system with the smallest shift.
pub(crate) fn shifted_steps(
    a: &Operator,
    shifts: &[f64],
    b: &BlockVector,
    tolerance: f64,
    max_iterations: usize,
    task: &Task,
) -> Result<(Vec<BlockVector>, usize)> {
    let device = a.device();
    let (columns, count) = (b.columns(), shifts.len());
    let base = shifts.iter().copied().fold(f64::INFINITY, f64::min);
    let zeros = || device.zeros(b.dtype(), b.rows(), columns);
    let mut x: Vec<BlockVector> = (0..count).map(|_| zeros()).collect::<Result<_>>()?;
    let mut ps: Vec<BlockVector> = vec![b.clone(); count];
    let (mut r, mut p, mut q) = (b.clone(), b.clone(), zeros()?);
    let size = squares(device, b)?;
    let mut rr = size.clone();
    // By column: the last beta and alpha of the seed. By shift and column: zeta now and one step before.
    let (mut alpha_old, mut beta_old) = (vec![1.0; columns], vec![0.0; columns]);
    let mut zeta = vec![vec![[1.0, 1.0]; columns]; count];
    let mut iterations = 0;
    let progress = task.start("multi-shift conjugate gradients", max_iterations);
    loop {
        let relative = largest(&rr, &size);
        if relative <= tolerance || iterations >= max_iterations {
            return Ok((x, iterations));
        }
        let mut dots = Dots::default();
        a.update(Update { alpha: 1.0, beta: base, gamma: 0.0 }, &p, &mut q, Some(&mut dots))?;
        check_positive(&dots.wv, &rr, "solve with A^+ A")?;
        let alpha: Vec<f64> = rr.iter().zip(&dots.wv).map(|(r, p)| ratio(*r, *p)).collect();
        device.axpby(&real(&alpha.iter().map(|x| -x).collect::<Vec<_>>()), &q, &[C64::ONE], &mut r)?;
        let next = squares(device, &r)?;
        let beta: Vec<f64> = next.iter().zip(&rr).map(|(n, o)| ratio(*n, *o)).collect();
        for (i, zeta) in zeta.iter_mut().enumerate() {
            let shift = shifts[i] - base;
            let (mut step, mut keep, mut mix) = (vec![0.0; columns], vec![0.0; columns], vec![0.0; columns]);
            for c in 0..columns {
                let [now, before] = zeta[c];
                // Systems whose residual has fallen below all meaning stop moving.
                let below = alpha[c] * beta_old[c] * (before - now)
                    + before * alpha_old[c] * (1.0 + shift * alpha[c]);
                let new = if now.abs() < 1e-200 { 0.0 } else { ratio(now * before * alpha_old[c], below) };
                step[c] = ratio(alpha[c] * new, now);
                keep[c] = beta[c] * ratio(new, now).powi(2);
                mix[c] = new;
                zeta[c] = [new, now];
            }
            device.axpby(&real(&step), &ps[i], &[C64::ONE], &mut x[i])?;
            device.axpby(&real(&mix), &r, &real(&keep), &mut ps[i])?;
        }
        device.axpby(&[C64::ONE], &r, &real(&beta), &mut p)?;
        (alpha_old, beta_old, rr) = (alpha, beta, next);
        iterations += 1;
        progress.advance_with(iterations, &format!("residual {relative:.1e}"))?;
    }
}

/// BiCGStab (H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631) for any square operator.
///
/// # Errors
/// Sizes that do not fit; a breakdown of the recurrence.
pub fn bicgstab(a: &Operator, b: &BlockVector, options: SolveOptions, task: &Task) -> Result<Solution> {
    check_system(a, b, &options)?;
    only(in_range(a.device(), b, options, |b, options| Ok(vec![bicgstab_steps(a, b, options, task)?]))?)
}

/// The square of the cosine of an angle that counts as a right one.
const VANISHES: f64 = 1e-24;
/// The same of what is looked at more closely.
const SUSPECTED: f64 = 1e-18;

/// Whether a product of two vectors vanishes to rounding, from the squares of their norms, in a column that is not
/// done: of which `left` is more than zero.
fn vanishing(products: &[C64], one: &[f64], other: &[f64], left: &[f64]) -> bool {
    (0..products.len()).any(|k| left[k] > 0.0 && products[k].norm_sqr() <= VANISHES * one[k] * other[k])
}

/// Goes on where BiCGStab cannot, by conjugate gradients for the normal equations A^+ A x = A^+ b (CGLS); tells how
/// many iterations there were in all. Where the adjoint is not known, there are none.
fn least_squares(
    a: &Operator,
    b: &BlockVector,
    x: &mut BlockVector,
    (done, options): (usize, &SolveOptions),
    task: &Task,
) -> Result<usize> {
    let Ok(adjoint) = a.adjoint() else { return Ok(done) };
    let device = a.device();
    let zeros = || device.zeros(b.dtype(), b.rows(), b.columns());
    let size = squares(device, b)?;
    let (mut r, mut s, mut q) = (residual(a, b, x)?, zeros()?, zeros()?);
    adjoint.update(Update::PRODUCT, &r, &mut s, None)?;
    let mut p = s.clone();
    let mut ss = squares(device, &s)?;
    let first = ss.clone();
    let progress = task.start("conjugate gradients for A^+ A", options.max_iterations);
    let mut iterations = done;
    loop {
        let relative = largest(&squares(device, &r)?, &size);
        // Of an equation without a solution a residual is left that A^+ takes to nothing.
        let lost = ss.iter().zip(&first).all(|(s, first)| *s <= 1e-30 * first);
        if relative <= options.tolerance || iterations >= options.max_iterations || lost {
            return Ok(iterations);
        }
        a.update(Update::PRODUCT, &p, &mut q, None)?;
        let alpha: Vec<f64> = ss.iter().zip(squares(device, &q)?).map(|(s, q)| ratio(*s, q)).collect();
        device.axpby(&real(&alpha), &p, &[C64::ONE], x)?;
        device.axpby(&real(&alpha.iter().map(|x| -x).collect::<Vec<_>>()), &q, &[C64::ONE], &mut r)?;
        adjoint.update(Update::PRODUCT, &r, &mut s, None)?;
        let next = squares(device, &s)?;
        let beta: Vec<f64> = next.iter().zip(&ss).map(|(n, o)| ratio(*n, *o)).collect();
        device.axpby(&[C64::ONE], &s, &real(&beta), &mut p)?;
        ss = next;
        iterations += 1;
        progress.advance_with(iterations, &format!("residual {relative:.1e}"))?;
    }
}

fn bicgstab_steps(a: &Operator, b: &BlockVector, options: SolveOptions, task: &Task) -> Result<Solution> {
    let device = a.device();
    let converted = a.accept(b)?;
    let b = converted.as_ref().unwrap_or(b);
    let columns = b.columns();
    let zeros = || device.zeros(b.dtype(), b.rows(), columns);
    let size = squares(device, b)?;
    let tolerance = options.tolerance;
    let (mut x, mut r) = begin(a, b, options.start.clone())?;
    let mut shadow = r.clone();
    let (mut p, mut v, mut t) = (r.clone(), zeros()?, zeros()?);
    let mut rho = device.dots(&shadow, &r)?;
    let progress = task.start("BiCGStab", options.max_iterations);
    let mut iterations = 0;
    let over = |a: &[C64], b: &[C64]| -> Vec<C64> {
        a.iter()
            .zip(b)
            .map(|(a, b)| if b.norm() == 0.0 { C64::default() } else { complex::div(*a, *b) })
            .collect()
    };
    let minus = |z: &[C64]| -> Vec<C64> { z.iter().map(|z| -z).collect() };
    // Squares of |A p|/|p| at the start, by which products that nearly vanish are suspected.
    let mut gain: Option<Vec<f64>> = None;
    loop {
        let rr = squares(device, &r)?;
        let relative = largest(&rr, &size);
        if relative <= tolerance || iterations >= options.max_iterations {
            break;
        }
        a.update(Update::PRODUCT, &p, &mut v, None)?;
        let along = device.dots(&shadow, &v)?;
        if gain.is_none() {
            let vv = squares(device, &v)?;
            gain = Some(vv.iter().zip(&rr).map(|(v, r)| ratio(*v, *r)).collect());
        }
        let gain = gain.as_deref().unwrap_or_default();
        let suspected = |k: usize| {
            rr[k] > (tolerance * tolerance) * size[k]
                && along[k].norm_sqr() <= SUSPECTED * gain[k] * rr[k] * size[k]
        };
        // Columns on which no step can be made: those of skew operators, shifts, bipartite lattices.
        if (0..columns).any(suspected)
            && vanishing(&along, &squares(device, &shadow)?, &squares(device, &v)?, &rr)
        {
            iterations = least_squares(a, b, &mut x, (iterations, &options), task)?;
            break;
        }
        let alpha = over(&rho, &along);
        device.axpby(&minus(&alpha), &v, &[C64::ONE], &mut r)?;
        a.update(Update::PRODUCT, &r, &mut t, None)?;
        let (tr, tt) = (device.dots(&t, &r)?, squares(device, &t)?);
        let suspected = |k: usize| tr[k].norm_sqr() * gain[k] <= SUSPECTED * tt[k] * tt[k] && tt[k] > 0.0;
        if (0..columns).any(suspected) {
            let half = squares(device, &r)?;
            let left: Vec<f64> = (0..columns)
                .map(|k| if half[k] > (tolerance * tolerance) * size[k] { half[k] } else { 0.0 })
                .collect();
            if vanishing(&tr, &tt, &half, &left) {
                device.axpby(&alpha, &p, &[C64::ONE], &mut x)?;
                iterations = least_squares(a, b, &mut x, (iterations, &options), task)?;
                break;
            }
        }
        let omega = over(&tr, &real(&tt));
        device.axpby(&alpha, &p, &[C64::ONE], &mut x)?;
        device.axpby(&omega, &r, &[C64::ONE], &mut x)?;
        device.axpby(&minus(&omega), &t, &[C64::ONE], &mut r)?;
        let next = device.dots(&shadow, &r)?;
        let beta: Vec<C64> = over(&next, &rho).iter().zip(over(&alpha, &omega)).map(|(a, b)| a * b).collect();
        // p = r + beta (p - omega v).
        device.axpby(&minus(&omega), &v, &[C64::ONE], &mut p)?;
        device.axpby(&[C64::ONE], &r, &beta, &mut p)?;
        rho = next;
        iterations += 1;
        let broken = rho.iter().zip(&rr).any(|(rho, rr)| *rr > 0.0 && rho.norm() <= 1e-28 * rr);
        if broken {
            // The shadow has become orthogonal to the residual: begin again from here.
            r = residual(a, b, &x)?;
            (shadow, p) = (r.clone(), r.clone());
            rho = device.dots(&shadow, &r)?;
        }
        progress.advance_with(iterations, &format!("residual {relative:.1e}"))?;
    }
    finished(a, b, x, iterations, tolerance)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::cpu::Cpu;
    use crate::backend::matrix::{Csr, Indices, MatrixValues};
    use crate::operator::{MatrixFormat, StoredMatrix};
    use crate::task::Interrupt;

    /// A small dense matrix as an operator.
    fn operator(n: usize, entry: impl Fn(usize, usize) -> f64) -> Operator {
        let device: Device = Arc::new(Cpu::new(2, Interrupt::default()).unwrap());
        let (mut row_start, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..n {
            for j in (0..n).filter(|j| entry(i, *j) != 0.0) {
                columns.push(j as u32);
                values.push(entry(i, j));
            }
            row_start.push(columns.len());
        }
        let (columns, values) = (Indices::U32(columns), MatrixValues::F64(values));
        let csr = Csr { rows: n, cols: n, row_start, columns, values };
        StoredMatrix::from_csr(&device, csr, MatrixFormat::Csr).unwrap()
    }

    fn solved(a: &Operator, b: &[f64]) -> (Vec<f64>, Solution) {
        let data: Vec<C64> = b.iter().map(|x| C64::new(*x, 0.0)).collect();
        let right = a.device().upload(a.dtype(), a.rows(), 1, &data).unwrap();
        let options = SolveOptions { tolerance: 1e-12, ..SolveOptions::default() };
        let found = bicgstab(a, &right, options, &Task::default()).unwrap();
        (a.device().download(&found.x).unwrap().iter().map(|z| z.re).collect(), found)
    }

    #[test]
    fn where_no_step_can_be_made_least_squares_go_on() {
        let n = 8;
        let first: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i == 0))).collect();
        let ramp: Vec<f64> = (0..n).map(|i| 1.0 + i as f64).collect();
        let next = |i: usize, j: usize| f64::from(u8::from((i + 1) % n == j));
        let path = |i: usize, j: usize| f64::from(u8::from(i + 1 == j));
        // A skew matrix, a shift around a ring, a path (whose two sublattices do not see each other), and the same with
        // a number on the diagonal, where BiCGStab makes its way.
        let skew = operator(n, |i, j| path(i, j) - path(j, i));
        let shift = operator(n, next);
        let bipartite = operator(n, |i, j| path(i, j) + path(j, i));
        let plain = operator(n, |i, j| path(i, j) - path(j, i) + if i == j { 0.5 } else { 0.0 });
        for (a, what) in [(&skew, "skew"), (&shift, "shift"), (&bipartite, "bipartite"), (&plain, "plain")] {
            for b in [&first, &ramp] {
                let (x, found) = solved(a, b);
                assert!(
                    found.converged && found.iterations < 100,
                    "{what}: {} {:?}",
                    found.iterations,
                    found.residuals
                );
                let matrix = a.to_dense().unwrap();
                for i in 0..n {
                    let row: f64 = (0..n).map(|j| matrix[i * n + j].re * x[j]).sum();
                    assert!((row - b[i]).abs() < 1e-10, "{what}: {x:?}");
                }
            }
        }
        // Without a solution there is none, and soon.
        let odd = operator(7, |i, j| f64::from(u8::from(i + 1 == j)) - f64::from(u8::from(j + 1 == i)));
        let (_, found) = solved(&odd, &first[..7]);
        assert!(!found.converged && found.iterations < 100, "{}", found.iterations);
        let (x, found) = solved(&skew, &[0.0; 8]);
        assert!(found.converged && x.iter().all(|x| *x == 0.0));
    }
}
