//! Solvers of linear systems, and minmax fits of 1/sqrt(y).

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, FLOAT, INT};

use super::chebyshev::as_complex;
use super::values::type_of;
use super::vector::Vector;
use crate::error::{Error, Result};
use crate::gauge::{self, EvenOddMethod};
use crate::method::{self, MinMax, Solution, SolveOptions, Zolotarev};
use crate::number::Series;
use crate::operator::Operator;
use crate::script::native::Float;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};
use crate::task::Task;

/// The script's handle to a solution.
#[derive(Clone)]
pub(crate) struct ScriptSolution(pub Rc<Solution>, pub Operator);

/// Registers the types and the functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<ScriptSolution>("Solution");
    rooms.register_type_with_name::<Rc<MinMax>>("MinMax");
    rooms.register_type_with_name::<Rc<Zolotarev>>("Zolotarev");
    rooms.room("solve", exported_module!(solve_functions));
    rooms.room("overlap", exported_module!(rational_fits));
}

/// The tolerance in single precision that is not given: smaller residuals are rounding.
const SINGLE: f64 = 1e-6;

/// The options that all solvers share.
fn read(a: &Operator, o: &Options) -> Result<(SolveOptions, Task)> {
    let given = o.given("tol").is_some() || !a.dtype().is_single();
    let tolerance = if given { o.float("tol")? } else { SINGLE };
    let options = SolveOptions { tolerance, max_iterations: o.count("iterations")?, start: None };
    Ok((options, o.task()?))
}

/// Says that a solution has not converged.
pub(super) fn noted(solution: Solution, a: Operator) -> Fallible<ScriptSolution> {
    if !solution.converged {
        let worst = solution.residuals.iter().copied().fold(0.0, f64::max);
        session()?.note(&format!(
            "not converged after {} iterations: the largest relative residual is {worst:.1e}; raise `iterations` or \
             `tol`",
            solution.iterations
        ));
    }
    Ok(ScriptSolution(Rc::new(solution), a))
}

/// Solves by the options: BiCGStab for any operator, or conjugate gradients.
fn solve(a: Operator, b: &Vector, o: Options, by: EvenOddMethod) -> Fallible<ScriptSolution> {
    let (shared, task) = read(&a, &o)?;
    let wanted = SolveOptions { start: o.maybe::<Vector>("start").map(|v| (*v.block).clone()), ..shared };
    let solution = match by {
        _ if o.flag("even_odd")? => gauge::solve_even_odd(&a, &b.block, by, wanted, &task),
        EvenOddMethod::BiCgStab => method::bicgstab(&a, &b.block, wanted, &task),
        EvenOddMethod::ConjugateGradient => method::conjugate_gradient(&a, &b.block, wanted, &task),
    };
    noted(solution?, a)
}

/// Numbers from a Series or an array.
fn shifts_of(value: &Dynamic) -> Result<Vec<f64>> {
    if let Some(series) = value.clone().try_cast::<Series>() {
        return Ok(series.as_real("shifts")?.to_vec());
    }
    let wrong = || {
        Error::input("shifts are given as an array or a Series of numbers")
            .hint("like `[0.0, 0.1]`; they are real")
    };
    let array = value.clone().try_cast::<Array>().ok_or_else(wrong)?;
    array.iter().map(|x| as_complex(x).filter(|z| z.im == 0.0).map(|z| z.re).ok_or_else(wrong)).collect()
}

/// Refuses a place outside the interval of a fit, where its value is a large number without meaning.
fn inside(eps: f64, y: f64) -> Result<()> {
    if y >= eps * (1.0 - 1e-12) && y <= 1.0 + 1e-12 {
        return Ok(());
    }
    Err(Error::input(format!("{y} outside the interval [{eps:e}, 1] of the fit"))
        .hint("divide by the largest value first; `eps` is the smallest over the largest"))
}

/// The fit with the deviation of the option `error`, or of the size that the option `exact` names.
fn fit<T>(
    o: Options,
    exact: &'static str,
    by_error: impl Fn(f64) -> Result<T>,
    by_size: impl Fn(usize) -> Result<T>,
) -> Fallible<Rc<T>> {
    let made = match o.maybe_count(exact)? {
        Some(size) => by_size(size),
        None => by_error(o.float("error")?),
    };
    Ok(made.map(Rc::new)?)
}

#[export_module(root = "crate::script::native")]
mod solve_functions {
    /// `exp(z H) v` for a Hermitian operator and one vector, in a Krylov space (Hochbruck, Lubich 1997): it needs no
    /// spectral window, and few products if `z` times the width of the spectrum is small. `z` is any number: `-I * t`
    /// for a time, `-tau` for an imaginary time.
    ///
    /// # Options
    /// - `tol` (float > 0, 1e-12): total error, relative to the norm of the result.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// let late = solve::exponential(h, unit_block(h, [0]), -I * PI / 2.0);
    /// assert_close(late.to_series()[1], -I, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn exponential(h: Operator, v: Vector, z: Dynamic, o: Options) -> Fallible<Vector> {
        let z = as_complex(&z).ok_or_else(|| {
            Error::input(format!("z is a number, not {}", type_of(&z))).hint("like 0.5 or -I * 0.5")
        })?;
        let done = method::exponential(&h, &v.block, z, o.float("tol")?, &o.task()?)?;
        Ok(Vector::new(h.device(), done.vector))
    }

    /// Solves A x = b by conjugate gradients, for a Hermitian positive operator: a Solution with `x`, `residuals`,
    /// `iterations`, `converged`. Columns of `b` are solved at the same time. With `even_odd`, A may be a Wilson
    /// operator; then the normal equations on the even sites are solved.
    ///
    /// # Options
    /// - `tol` (0 < float < 1, 1e-8): largest |b - A x|/|b|; in single precision 1e-6 if it is not given.
    /// - `iterations` (int >= 1, 10000): largest number of iterations.
    /// - `start` (BlockVector, zero): where to start, for example the `x` of another solution. Columns whose residual
    ///   there is more than 1000 times that of zero start at zero.
    /// - `even_odd` (false): solve a Wilson operator on its even sites.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let h = 3.0 + tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let b = unit_block(h, [0]);
    /// let solution = solve::conjugate_gradient(h, b, #{ tol: 1e-12 });
    /// assert_close(norm(h * solution.x - b), 0.0, 1e-11);
    /// assert(solution.converged && solution.residuals[0] < 1e-12, "solved");
    /// assert(solution.iterations < 9, "at most as many as rows");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn conjugate_gradient(a: Operator, b: Vector, o: Options) -> Fallible<ScriptSolution> {
        solve(a, &b, o, EvenOddMethod::ConjugateGradient)
    }

    /// Solves A x = b by BiCGStab, for any square operator. Where its steps vanish, as for skew operators, it goes on
    /// with conjugate gradients for A^+ A x = A^+ b.
    ///
    /// # Options
    /// - `tol` (1e-8), `iterations` (10000), `start` (zero), `progress` (true): as for `solve::conjugate_gradient`.
    /// - `even_odd` (false): solve a Wilson operator on its even sites.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::hypercubic(4, 4, 4, 4);
    /// let d = wilson::operator(gauge::reference_field(lat, 0.3), #{ mass: 0.1 });
    /// let psi = wilson::reference_spinor(lat, 2);
    /// let solution = solve::bicgstab(d, psi, #{ even_odd: true, tol: 1e-10 });
    /// assert_close(norm(d * solution.x - psi) / norm(psi), 0.0, 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn bicgstab(a: Operator, b: Vector, o: Options) -> Fallible<ScriptSolution> {
        solve(a, &b, o, EvenOddMethod::BiCgStab)
    }

    /// Solves (A + shift) x = b for all shifts in one Krylov space, for a Hermitian operator that is positive with the
    /// smallest shift: an array of Solutions.
    ///
    /// # Options
    /// - `tol` (0 < float < 1, 1e-8): largest |b - A x|/|b| for the smallest shift; in single precision 1e-6 if it is
    ///   not given.
    /// - `iterations` (int >= 1, 10000): largest number of iterations.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let h = 2.0 + tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let b = unit_block(h, [0]);
    /// let solutions = solve::multishift_cg(h, [0.5, 1.0, 4.0], b, #{ tol: 1e-12 });
    /// assert_close(norm((h + 4.0) * solutions[2].x - b), 0.0, 1e-11);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn multishift_cg(a: Operator, shifts: Dynamic, b: Vector, o: Options) -> Fallible<Array> {
        let (wanted, task) = super::read(&a, &o)?;
        let shifts = shifts_of(&shifts)?;
        let solutions = method::multishift(&a, &shifts, &b.block, wanted, &task)?;
        solutions.into_iter().map(|s| Ok(Dynamic::from(noted(s, a.clone())?))).collect()
    }

    /// The solution x: a block with a column for each column of b.
    #[rhai_fn(global, get = "x", pure)]
    pub fn x(s: &mut ScriptSolution) -> Vector {
        Vector::new(s.1.device(), s.0.x.clone())
    }

    /// |b - A x|/|b| of each column.
    #[rhai_fn(global, get = "residuals", pure)]
    pub fn residuals(s: &mut ScriptSolution) -> Series {
        Series::Real(s.0.residuals.clone())
    }

    /// The number of iterations.
    #[rhai_fn(global, get = "iterations", pure)]
    pub fn iterations(s: &mut ScriptSolution) -> INT {
        s.0.iterations as INT
    }

    /// Whether every residual is within the tolerance.
    #[rhai_fn(global, get = "converged", pure)]
    pub fn converged(s: &mut ScriptSolution) -> bool {
        s.0.converged
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn solution_to_string(s: &mut ScriptSolution) -> String {
        let worst = s.0.residuals.iter().copied().fold(0.0, f64::max);
        let state = if s.0.converged { "" } else { ", not converged" };
        format!("Solution: {} iterations, residual {worst:.1e}{state}", s.0.iterations)
    }

    /// The minmax polynomial P of 1/sqrt(y) on [eps, 1], which minimises the largest |1 - sqrt(y) P(y)|, by the
    /// algorithm of Remez: `degree`, `deviation`, and `coefficients` c_k of sum_k c_k T_k((2 y - 1 - eps)/(1 - eps)).
    /// Beyond degree 1500 it is the interpolation at the Chebyshev nodes, whose deviation is at most twice the best.
    ///
    /// # Options
    /// - `error` (float > 0, 1e-10): the allowed deviation; the degree is the smallest that reaches it.
    /// - `degree` (int >= 0): the degree instead; not with `error`.
    ///
    /// # Example
    /// ```rhai
    /// let fit = minmax_inverse_sqrt(0.1, #{ degree: 4 });
    /// assert_close(fit.deviation, 2.0930347e-2, 1e-8);
    /// assert_close(fit.coefficients[0], 1.641180375, 1e-8);
    /// assert_close(fit.at(0.5), 1.0 / sqrt(0.5), 0.03);
    /// assert(fit.degree == 4 && fit.eps == 0.1, "as it was asked for");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn minmax_inverse_sqrt(eps: Float, o: Options) -> Fallible<Rc<MinMax>> {
        fit(o, "degree", |error| MinMax::to_error(eps, error), |n| MinMax::of_degree(eps, n))
    }

    /// The degree of P, a polynomial in y.
    #[rhai_fn(global, get = "degree", pure)]
    pub fn degree(p: &mut Rc<MinMax>) -> INT {
        p.degree() as INT
    }

    /// Largest |1 - sqrt(y) P(y)| on [eps, 1].
    #[rhai_fn(global, get = "deviation", pure)]
    pub fn deviation(p: &mut Rc<MinMax>) -> FLOAT {
        p.deviation
    }

    /// Chebyshev coefficients; the first one counts fully, not by half.
    #[rhai_fn(global, get = "coefficients", pure)]
    pub fn coefficients(p: &mut Rc<MinMax>) -> Series {
        Series::Real(p.coefficients.clone())
    }

    /// The lower end of the interval.
    #[rhai_fn(global, get = "eps", pure)]
    pub fn eps(p: &mut Rc<MinMax>) -> FLOAT {
        p.eps
    }

    /// The polynomial at y, which must lie in its interval.
    #[rhai_fn(global, name = "at", pure, return_raw)]
    pub fn at(p: &mut Rc<MinMax>, y: Float) -> Fallible<FLOAT> {
        Ok(inside(p.eps, y).map(|()| p.at(y))?)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn minmax_to_string(p: &mut Rc<MinMax>) -> String {
        format!("MinMax: degree {} on [{:e}, 1], deviation {:.3e}", p.degree(), p.eps, p.deviation)
    }

    /// The number of poles, the terms of the sum.
    #[rhai_fn(global, get = "poles", pure)]
    pub fn poles(r: &mut Rc<Zolotarev>) -> INT {
        r.shifts.len() as INT
    }

    /// The lower end of the interval.
    #[rhai_fn(global, get = "eps", pure)]
    pub fn rational_eps(r: &mut Rc<Zolotarev>) -> FLOAT {
        r.eps
    }

    /// Largest |1 - sqrt(y) R(y)| on [eps, 1].
    #[rhai_fn(global, get = "deviation", pure)]
    pub fn rational_deviation(r: &mut Rc<Zolotarev>) -> FLOAT {
        r.deviation
    }

    /// Shifts: minus the poles.
    #[rhai_fn(global, get = "shifts", pure)]
    pub fn shifts(r: &mut Rc<Zolotarev>) -> Series {
        Series::Real(r.shifts.clone())
    }

    /// The residues, numerators of sum_k residue_k/(y + shift_k).
    #[rhai_fn(global, get = "residues", pure)]
    pub fn residues(r: &mut Rc<Zolotarev>) -> Series {
        Series::Real(r.residues.clone())
    }

    /// The function at y, which must lie in its interval.
    #[rhai_fn(global, name = "at", pure, return_raw)]
    pub fn rational_at(r: &mut Rc<Zolotarev>, y: Float) -> Fallible<FLOAT> {
        Ok(inside(r.eps, y).map(|()| r.at(y))?)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn rational_to_string(r: &mut Rc<Zolotarev>) -> String {
        format!("Zolotarev: {} poles on [{:e}, 1], deviation {:.3e}", r.shifts.len(), r.eps, r.deviation)
    }
}

#[export_module(root = "crate::script::native")]
mod rational_fits {
    /// Zolotarev's rational function for 1/sqrt(y) on [eps, 1], the best rational approximation of this form: sum_k
    /// residue_k/(y + shift_k), with `poles`, `deviation`, `shifts`, `residues`.
    ///
    /// # Options
    /// - `error` (float > 0, 1e-10): the allowed deviation; the number of poles is the smallest that reaches it.
    /// - `poles` (int >= 0): their number instead; not with `error`.
    ///
    /// # Example
    /// ```rhai
    /// let fit = overlap::zolotarev_inverse_sqrt(1e-4, #{ error: 1e-8 });
    /// assert_close(fit.at(0.01), 10.0, 1e-7);
    /// assert(fit.deviation < 1e-8 && fit.eps == 1e-4, "close");
    /// assert(fit.shifts.len == fit.poles && fit.residues.min() > 0.0, "a term a pole, all positive");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn zolotarev_inverse_sqrt(eps: Float, o: Options) -> Fallible<Rc<Zolotarev>> {
        fit(o, "poles", |error| Zolotarev::to_error(eps, error), |n| Zolotarev::of_order(eps, n))
    }
}
