//! D x = b for a Wilson operator by its even sites: the reduced operator S there has a narrower spectrum than D, and a
//! solution on the even sites gives the odd ones.

use std::sync::Arc;

use crate::backend::BlockVector;
use crate::error::{Error, Result};
use crate::method::{
    Solution, SolveOptions, begin, bicgstab, check_system, conjugate_gradient, finished, in_range, only,
    relative, residual,
};
use crate::operator::{EvenOdd, Operator, WilsonOperator};
use crate::task::Task;

/// Most times that conjugate gradients begin anew.
const ROUNDS: usize = 6;

/// What solves on the even sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvenOddMethod {
    /// Conjugate gradients for S^+ S x = S^+ b.
    ConjugateGradient,
    /// BiCGStab for S x = b.
    BiCgStab,
}

/// The solution of `D x = b` on all sites, found on the even ones. D is the Wilson operator or its adjoint; `b` has
/// twelve numbers a site.
///
/// # Errors
/// An operator that is not D itself; a direction with an odd number of sites; what [`check_system`] refuses.
pub fn solve_even_odd(
    d: &Operator,
    b: &BlockVector,
    by: EvenOddMethod,
    options: SolveOptions,
    task: &Task,
) -> Result<Solution> {
    check_system(d, b, &options)?;
    let wilson = d.exactly::<WilsonOperator>().filter(|w| !w.spec().gamma5).ok_or_else(|| {
        Error::input(format!("even-odd preconditioning of {}", d.summary()))
            .hint("it works on a Wilson operator itself, without gamma5")
    })?;
    let solve = |b: &BlockVector, options| Ok(vec![solved(d, wilson, b, by, options, task)?]);
    only(in_range(d.device(), b, options, solve)?)
}

/// The solution for right-hand sides whose norms do not overflow.
fn solved(
    d: &Operator,
    wilson: &WilsonOperator,
    b: &BlockVector,
    by: EvenOddMethod,
    options: SolveOptions,
    task: &Task,
) -> Result<Solution> {
    let device = d.device();
    let reduced = Arc::new(EvenOdd::build(device, wilson.spec())?);
    let s = Operator::from_node(device.clone(), reduced.clone());
    let converted = d.accept(b)?;
    let b = converted.as_ref().unwrap_or(b);
    let rhs = reduced.reduce(b)?;
    let goal = options.tolerance;
    // The residual of D x = b is that of the even sites: relative to b, not to the reduced right-hand side.
    let smaller = relative(&device.norms(&rhs)?, &device.norms(b)?).into_iter().fold(0.0, f64::max);
    let tolerance = if smaller > 0.0 { (0.5 * goal / smaller).min(0.5) } else { 0.5 * goal };
    let inner = SolveOptions { tolerance, ..options };
    let (x, iterations) = match by {
        EvenOddMethod::BiCgStab => {
            let solution = bicgstab(&s, &rhs, inner, task)?;
            (solution.x, solution.iterations)
        }
        EvenOddMethod::ConjugateGradient => by_normal_equations(&s, &rhs, inner, task)?,
    };
    finished(d, b, reduced.complete(&x, b)?, iterations, goal)
}

/// S x = b by conjugate gradients on S^+ S. They watch |S^+ r|, which is smaller than |r| can be large: their tolerance
/// is tightened until |r| is within that of the options.
fn by_normal_equations(
    s: &Operator,
    b: &BlockVector,
    options: SolveOptions,
    task: &Task,
) -> Result<(BlockVector, usize)> {
    let SolveOptions { tolerance, max_iterations, start } = options;
    let device = s.device();
    let adjoint = s.adjoint()?;
    let normal = adjoint.times(s)?;
    let size = device.norms(b)?;
    let (mut x, mut left) = begin(s, b, start)?;
    let mut iterations = 0;
    for _ in 0..ROUNDS {
        let off = relative(&device.norms(&left)?, &size).into_iter().fold(0.0, f64::max);
        if off <= tolerance || iterations >= max_iterations {
            break;
        }
        let own = SolveOptions {
            tolerance: 0.5 * tolerance / off.max(tolerance),
            max_iterations: max_iterations - iterations,
            start: None,
        };
        let part = conjugate_gradient(&normal, &adjoint.apply(&left)?, own, task)?;
        iterations += part.iterations;
        device.axpby(&[1.0.into()], &part.x, &[1.0.into()], &mut x)?;
        left = residual(s, b, &x)?;
    }
    Ok((x, iterations))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Device;
    use crate::backend::cpu::Cpu;
    use crate::backend::matrix::wilson::Compression;
    use crate::gauge::Links;
    use crate::lattice::Lattice;
    use crate::number::C64;
    use crate::task::Interrupt;

    fn wilson(gamma5: bool) -> Operator {
        let device: Device = Arc::new(Cpu::new(2, Interrupt::default()).unwrap());
        let lattice = Lattice::hypercubic(&[2, 2, 2, 4]).unwrap();
        let u = Links::unit(&lattice).unwrap().reference_field(0.3).unwrap();
        WilsonOperator::build(&device, u.wilson(0.1, gamma5, Compression::Twelve, false).unwrap()).unwrap()
    }

    #[test]
    fn both_methods_solve_on_all_sites() {
        let d = wilson(false);
        let numbers: Vec<C64> = (0..d.dim()).map(|k| C64::new((k as f64).cos(), (k % 7) as f64)).collect();
        let b = d.device().upload(d.dtype(), d.rows(), 1, &numbers).unwrap();
        let options = SolveOptions { tolerance: 1e-10, ..SolveOptions::default() };
        for by in [EvenOddMethod::ConjugateGradient, EvenOddMethod::BiCgStab] {
            let found = solve_even_odd(&d, &b, by, options.clone(), &Task::default()).unwrap();
            let left = d.device().norms(&residual(&d, &b, &found.x).unwrap()).unwrap();
            assert!(
                found.converged && left[0] < 2e-10 * d.device().norms(&b).unwrap()[0],
                "{by:?}: {left:?}"
            );
        }
    }

    #[test]
    fn gamma5_is_refused() {
        let q = wilson(true);
        let b = q.zeros(1).unwrap();
        let by = EvenOddMethod::BiCgStab;
        let refused = solve_even_odd(&q, &b, by, SolveOptions::default(), &Task::default()).unwrap_err();
        assert!(refused.message().contains("even-odd"), "{refused}");
    }
}
