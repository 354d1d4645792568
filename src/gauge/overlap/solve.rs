//! D x = b for the overlap operator: conjugate gradients on D^+ D in each chirality, with one sign function per
//! iteration, whose accuracy follows the residual (Cundy et al., CPC 165 (2005) 221).

use super::index::OverlapIndex;
use super::operator::{ChiralNormal, OverlapOperator};
use crate::backend::BlockVector;
use crate::error::{Error, ErrorKind, Result};
use crate::method::{Solution, SolveOptions, check_system, gradient_steps, in_range, only, relative};
use crate::number::C64;
use crate::operator::Action;
use crate::task::Task;

/// The error of a relaxed sign function in an iteration, as a fraction of the residual asked for.
const RELAXED: f64 = 0.05;

/// The share of D^+ D's lowest eigenvalue by which a relaxed sign function may shift it.
const SHIFT: f64 = 0.01;

/// How hard to try to solve `D x = b`.
#[derive(Debug, Clone)]
pub struct InversionOptions {
    /// Largest |b - D x|/|b| of a column.
    pub tolerance: f64,
    /// Most iterations.
    pub max_iterations: usize,
    /// Whether the sign function is relaxed as the residual falls.
    pub adaptive: bool,
    /// The zero modes of the massless operator, eigenvectors of D with eigenvalue m: treated exactly.
    pub zero_modes: Option<OverlapIndex>,
}

/// The solution of `D x = b`.
///
/// # Errors
/// A massless operator with zero modes, whose inverse does not exist; zero modes of another operator.
pub fn invert(
    d: &OverlapOperator,
    b: &BlockVector,
    options: &InversionOptions,
    task: &Task,
) -> Result<Solution> {
    let operator = d.clone().into_operator();
    let system =
        SolveOptions { tolerance: options.tolerance, max_iterations: options.max_iterations, start: None };
    check_system(&operator, b, &system)?;
    let zero_modes = known_modes(d, options.zero_modes.as_ref())?;
    let solve = |b: &BlockVector, _| Ok(vec![solved(d, b, zero_modes.as_ref(), options, task)?]);
    only(in_range(operator.device(), b, system, solve)?)
}

/// The solution for right-hand sides whose norms do not overflow.
fn solved(
    d: &OverlapOperator,
    b: &BlockVector,
    zero_modes: Option<&BlockVector>,
    options: &InversionOptions,
    task: &Task,
) -> Result<Solution> {
    let operator = d.clone().into_operator();
    let device = operator.device().clone();
    let converted = operator.accept(b)?;
    let b = converted.as_ref().unwrap_or(b);
    // x = (D^+ D)^-1 D^+ b, where D^+ D keeps chirality.
    let source = d.apply(b, !d.is_adjoint(), 0.0)?;
    let b_size = device.norms(b)?;
    let mut x = device.zeros(b.dtype(), b.rows(), b.columns())?;
    let mut iterations = 0;
    let most = if options.adaptive { SHIFT * lowest(d, options.zero_modes.as_ref()) } else { 0.0 };
    // Relaxed products leave a residual that the recurrence does not see; further passes solve for it. |D^+ r|
    // differs from |r| by up to the condition of D, which the passes make up for too.
    let mut goal = 0.2 * options.tolerance;
    for pass in 0..4 {
        let mut left = source.clone();
        if pass > 0 {
            let mut r = d.apply(&x, d.is_adjoint(), 0.0)?;
            device.axpby(&[C64::ONE], b, &[C64::new(-1.0, 0.0)], &mut r)?;
            let off = relative(&device.norms(&r)?, &b_size).into_iter().fold(0.0, f64::max);
            if off <= options.tolerance {
                break;
            }
            // Only as accurate as still needed.
            goal = (0.2 * options.tolerance / off).min(0.1);
            left = d.apply(&r, !d.is_adjoint(), 0.0)?;
        }
        for chirality in [1, -1] {
            let normal = ChiralNormal::build(d, chirality)?;
            let mut rhs = normal.project(&left)?;
            if let Some(modes) = zero_modes {
                // Exactly 1/m^2 on the zero modes, which the iteration then need not resolve.
                let share = device.gram(modes, &rhs)?;
                let minus: Vec<C64> = share.iter().map(|z| -z).collect();
                device.combine(modes, &minus, 1.0, &mut rhs)?;
                let known: Vec<C64> = share.iter().map(|z| z / (d.mass() * d.mass())).collect();
                let mut exact = device.zeros(rhs.dtype(), rhs.rows(), rhs.columns())?;
                device.combine(modes, &known, 0.0, &mut exact)?;
                // Modes of the other chirality have no part in the remainder.
                device.axpby(&[C64::ONE], &normal.project(&exact)?, &[C64::ONE], &mut x)?;
                rhs = normal.project(&rhs)?;
            }
            if device.norms(&rhs)?.iter().all(|s| *s == 0.0) || iterations >= options.max_iterations {
                continue;
            }
            let apply = |p: &BlockVector, q: &mut BlockVector, relative: f64| -> Result<Vec<f64>> {
                let error = (RELAXED * goal / relative.max(goal)).min(most);
                *q = normal.apply(p, error)?;
                Ok(device.dots(p, q)?.iter().map(|z| z.re).collect())
            };
            let handle = normal.clone().into_operator();
            let max_iterations = options.max_iterations - iterations;
            let own = SolveOptions { tolerance: goal, max_iterations, start: None };
            let solved = gradient_steps(&handle, apply, &rhs, own, task);
            let (part, steps) =
                solved.map_err(|e| if e.kind() == ErrorKind::Input { no_inverse(d) } else { e })?;
            device.axpby(&[C64::ONE], &part, &[C64::ONE], &mut x)?;
            iterations += steps;
        }
    }
    let mut r = d.apply(&x, d.is_adjoint(), 0.0)?;
    device.axpby(&[C64::ONE], b, &[C64::new(-1.0, 0.0)], &mut r)?;
    let residuals = relative(&device.norms(&r)?, &b_size);
    let converged = residuals.iter().all(|r| *r <= options.tolerance);
    Ok(Solution { x, residuals, iterations, converged })
}

/// A lower bound on the eigenvalues of D^+ D, in units of 2 A (A + m), which is what an error of the sign function is
/// multiplied by there: from m^2, and from the lowest eigenvalue of the massless operator beyond its zero modes if
/// that is known.
fn lowest(d: &OverlapOperator, found: Option<&OverlapIndex>) -> f64 {
    let (a, m) = (d.scale(), d.mass());
    let next = found.map_or(0.0, |found| {
        let all = found.nonzero.iter().map(|values| values.iter().copied().fold(f64::INFINITY, f64::min));
        let least = all.fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 0.0 }
    });
    // The factor of the massless operator is 1 + s instead of A.
    let massless = next * a * (a + m) / (1.0 + d.s()).powi(2);
    (massless + m * m) / (2.0 * a * (a + m))
}

/// The error for a D^+ D that is not positive.
fn no_inverse(d: &OverlapOperator) -> Error {
    let known = d.sign_function().map_or(0.0, |sign| sign.report().bound);
    let off = format!(
        "D^+ D, known to {:.1e}, has no positive lowest eigenvalue",
        2.0 * (1.0 + d.s()).powi(2) * known
    );
    if d.mass() == 0.0 {
        Error::numeric(format!("{off}: a massless operator with zero modes has no inverse"))
            .hint("give the operator a `mass`")
    } else {
        Error::numeric(format!("{off}: a mass of {} is below the error of the sign function", d.mass())).hint(
            "give the sign function a smaller deviation, or the zero modes, so that they are treated exactly",
        )
    }
}

/// The zero modes to treat exactly, refused where they are not those of this operator: D u = m u for them.
fn known_modes(d: &OverlapOperator, found: Option<&OverlapIndex>) -> Result<Option<BlockVector>> {
    let Some(found) = found else { return Ok(None) };
    let Some(modes) = &found.modes else { return Ok(None) };
    if d.mass() == 0.0 {
        return Err(Error::input("the massless operator has zero modes and no inverse")
            .hint("give the operator a `mass`"));
    }
    let hint = "the index of the operator on the same gauge field, massless or not, finds them";
    let (operator, device) = (d.sign(), d.sign().device());
    if modes.rows().global != operator.dim() || modes.rows().grid != operator.rows().grid {
        return Err(Error::input("the zero modes given live on another lattice").hint(hint));
    }
    let converted = operator.accept(modes)?;
    let modes = converted.as_ref().unwrap_or(modes);
    let mut off = d.apply(modes, d.is_adjoint(), 0.0)?;
    device.axpby(&[C64::new(-d.mass(), 0.0)], modes, &[C64::ONE], &mut off)?;
    let worst = device.norms(&off)?.into_iter().fold(0.0, f64::max);
    // They count as zero when |D u|^2 is below the threshold; the sign function here may be less accurate.
    let allowed = 2.0 * (found.threshold.sqrt() + d.scale() * d.sign_function()?.report().bound);
    if !(worst <= allowed) {
        return Err(Error::input(format!(
            "the zero modes given are none of this operator: |D u - m u| is {worst:.1e}"
        ))
        .hint(hint));
    }
    Ok(Some(modes.clone()))
}
