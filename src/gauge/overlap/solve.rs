//! Conjugate gradients on D^+ D in one chirality, with one sign function per iteration, whose accuracy follows the
//! residual (Cundy et al., CPC 165 (2005) 221).

use super::operator::ChiralNormal;
use crate::backend::BlockVector;
use crate::error::{ErrorKind, Result};
use crate::method::{SolveOptions, gradient_steps};
use crate::operator::Action;
use crate::task::Task;

/// The error of a relaxed sign function in an iteration, as a fraction of the residual asked for.
const RELAXED: f64 = 0.05;

/// The solution of D^+ D x = b for b of the chirality, by a sign function that is never wrong by more than `most`, and
/// the iterations. None where a direction is met in which D^+ D is not positive.
pub fn relaxed_gradient(
    normal: &ChiralNormal,
    b: &BlockVector,
    options: SolveOptions,
    most: f64,
    task: &Task,
) -> Result<Option<(BlockVector, usize)>> {
    let operator = normal.clone().into_operator();
    let device = operator.device();
    let goal = options.tolerance;
    let apply = |p: &BlockVector, q: &mut BlockVector, relative: f64| -> Result<Vec<f64>> {
        *q = normal.apply(p, (RELAXED * goal / relative.max(goal)).min(most))?;
        Ok(device.dots(p, q)?.iter().map(|z| z.re).collect())
    };
    let converted = operator.accept(b)?;
    match gradient_steps(&operator, apply, converted.as_ref().unwrap_or(b), options, task) {
        Err(e) if e.kind() == ErrorKind::Input => Ok(None),
        solved => solved.map(Some),
    }
}
