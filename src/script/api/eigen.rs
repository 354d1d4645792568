//! `Eigen`: eigenpairs of Hermitian operators by Davidson's and Lanczos' methods.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Engine, INT};

use super::vector::Vector;
use crate::backend::Device;
use crate::error::{Error, Result};
use crate::method::{self, DavidsonOptions, Eigen, Preconditioner, SearchEnded};
use crate::number::format::energy;
use crate::number::{C64, Series};
use crate::operator::Operator;
use crate::script::{Failure, Fallible, Options, session};

/// The script's handle to eigenpairs, and the device on which the vectors live.
#[derive(Clone)]
pub(crate) struct ScriptEigen(pub Rc<Eigen>, pub Device);

/// Registers the type and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<ScriptEigen>("Eigen");
    engine.register_global_module(exported_module!(eigen_functions).into());
}

fn block(h: &Operator, o: &Options, key: &str) -> Result<Option<crate::backend::BlockVector>> {
    let Some(v) = o.maybe::<Vector>(key) else { return Ok(None) };
    if v.block.dtype().is_complex() && !h.dtype().is_complex() {
        return Err(Error::input(format!("the option `{key}` is complex, and the operator is real"))
            .hint("its levels have real vectors: of waves exp(i k r), take cos(k r) and sin(k r)"));
    }
    Ok(Some((*v.block).clone()))
}

/// The note on a search that ended before it had converged: why, and what helps.
pub(super) fn unfinished(eigen: &Eigen, unit: &str, used: usize) -> Option<String> {
    let worst = eigen.worst();
    match eigen.ended {
        SearchEnded::Converged => None,
        SearchEnded::Limit if worst <= eigen.tolerance => Some(format!(
            "not converged after {used} {unit}: the residuals are below `tol`, but the second look for lower states, \
             from random vectors, has not ended; raise `{unit}`"
        )),
        SearchEnded::Limit => Some(format!(
            "not converged after {used} {unit}: the largest residual is {worst:.1e}; raise `{unit}` or `tol`"
        )),
        SearchEnded::Stalled => Some(format!(
            "not converged: after {used} {unit} the largest residual has stopped falling, at {worst:.1e}, by rounding \
             or by values that lie too close; a larger `tol` helps, more {unit} do not"
        )),
    }
}

/// Both methods: they differ in the correction only.
fn find(ctx: &NativeCallContext, h: Operator, o: Options, krylov: bool) -> Fallible<ScriptEigen> {
    let mut thrown: Option<Failure> = None;
    let mut d = DavidsonOptions::new(o.count("count")?);
    d.tolerance = o.maybe_float("tol")?;
    d.max_basis = o.maybe_count("basis")?.unwrap_or(d.max_basis);
    d.max_iterations = o.count("iterations")?;
    d.seed = o.seed()?;
    d.start = block(&h, &o, "start")?;
    d.trust_start = o.flag("trust_start")?;
    d.orthogonal_to = block(&h, &o, "orthogonal_to")?;
    let highest = o.one_of("which", &[("lowest", false), ("highest", true)])?;
    let precondition = if krylov { None } else { o.function("preconditioner") };
    let (task, loud) = (o.task()?, o.flag("progress")?);
    let target = if highest { h.scaled(C64::new(-1.0, 0.0)) } else { h.clone() };
    let device = h.device().clone();
    let mut users = precondition.map(|f| {
        let (device, thrown) = (device.clone(), &mut thrown);
        move |r: &crate::backend::BlockVector, theta: &[f64]| {
            let energies: Vec<f64> = theta.iter().map(|t| if highest { -t } else { *t }).collect();
            let arguments = (Vector::new(&device, r.clone()), Series::Real(energies));
            match f.call_within_context::<Vector>(ctx, arguments) {
                Ok(t) if t.block.columns() == r.columns() && t.block.rows() == r.rows() => {
                    device.convert(&t.block, r.dtype())
                }
                Ok(t) => {
                    Err(Error::input(format!("the preconditioner made {} of {}", t.block.shape(), r.shape()))
                        .hint("it is given the residuals and gives as many rows and columns"))
                }
                Err(e) => {
                    *thrown = Some(e);
                    Err(Error::input("the preconditioner failed"))
                }
            }
        }
    });
    d.preconditioner = match &mut users {
        _ if krylov => Preconditioner::None,
        Some(f) => Preconditioner::User(f),
        None => Preconditioner::Diagonal,
    };
    let found = method::davidson(&target, d, &task);
    drop(users);
    if let Some(e) = thrown {
        return Err(e);
    }
    let mut eigen = found?;
    if highest {
        eigen.values.iter_mut().for_each(|x| *x = -*x);
    }
    if loud && let Some(note) = unfinished(&eigen, "iterations", eigen.iterations) {
        session()?.note(&note);
    }
    Ok(ScriptEigen(Rc::new(eigen), device))
}

#[export_module(root = "crate::script::native")]
mod eigen_functions {
    /// The lowest eigenpairs of a Hermitian operator by Davidson's block method with thick restarts: exact
    /// diagonalisation of large sparse Hamiltonians.
    ///
    /// Returns an Eigen with `values` (ascending), `vectors` (one column per eigenvalue), `residuals` (norms of H x - E
    /// x), `iterations`, `products`, `converged` (whether residuals are within `tol`) and `ended`. Values are exact to
    /// rounding, 1e-16 of the size of the operator: a repulsion of 1e8 hides exchange energies of 1e-8. Degenerate
    /// eigenvalues come with their multiplicity. The search begins with random vectors. If it had a `start`, a
    /// preconditioner of your own or very few iterations, a second search from random vectors orthogonal to its result
    /// follows before the result counts as converged.
    ///
    /// # Options
    /// - `count` (int >= 1, 1): number of eigenpairs.
    /// - `tol` (float > 0, 1e-9): largest residual norm. For operators of a size below 0.01 or above 1e4 the default is
    ///   1e-13 times a power of two near this size. In single precision it is 1e-5, times the size if that is above
    ///   one.
    /// - `which` ("lowest" or "highest"): which end of the spectrum.
    /// - `basis` (int >= 2, 20, at least 5 count): largest number of basis vectors before a restart.
    /// - `iterations` (int >= 1, 1000): largest number of expansions of the basis.
    /// - `start` (BlockVector): a BlockVector to start from.
    /// - `trust_start` (false): only improve the start, without a second search for lower states that are orthogonal to
    ///   it.
    /// - `orthogonal_to` (BlockVector): vectors to which the search stays orthogonal.
    /// - `preconditioner` (function, the diagonal): a function of (residuals, energies) that returns corrections.
    /// - `seed` (int or string, the session's): seed of the random starting vectors.
    /// - `progress` (true): show a bar, and a note if the search ends before it has converged.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let low = davidson(h, #{ count: 3, tol: 1e-10 });
    /// assert_close(low.values[0], -2.0, 1e-12);
    /// assert_close(low.values[1], low.values[2], 1e-12);
    /// assert(low.converged && low.residuals.max() < 1e-9 && low.iterations == 0, "eight rows are solved at once");
    /// assert(low.products == 8 && low.vectors.columns == 3, "a product a row, a vector a level");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn davidson(ctx: NativeCallContext, h: Operator, o: Options) -> Fallible<ScriptEigen> {
        find(&ctx, h, o, false)
    }

    /// The lowest eigenpairs of a Hermitian operator by the block Lanczos method with thick restarts.
    ///
    /// # Options
    /// - `count` (1), `tol` (float, 1e-9), `which` ("lowest"), `basis`, `iterations` (10000), `start`, `trust_start`,
    ///   `orthogonal_to`, `seed`, `progress`: as for `davidson`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// assert_close(lanczos(h, #{ which: "highest" }).values[0], 2.0, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn lanczos(ctx: NativeCallContext, h: Operator, o: Options) -> Fallible<ScriptEigen> {
        find(&ctx, h, o, true)
    }

    /// The lowest eigenpairs of a Hermitian operator by minimising its Ritz functional <x|A x>/<x|x>: conjugate
    /// gradients with deflation, in cycles with exact diagonalisation of the span (Kalkreuter, Simma 1996),
    /// or a Chebyshev filter.
    ///
    /// # Options
    /// - `count` (int >= 1, 1): number of eigenpairs.
    /// - `tol` (float, 1e-9): largest residual norm |A x - theta x|; the default as for `davidson`.
    /// - `method` ("gradient" or "chebyshev"): conjugate gradients, or subspace iteration with a Chebyshev filter. If
    ///   the filter stalls, gradients finish the search.
    /// - `products` (int >= 1, 1000000): largest number of products of the operator with single vectors.
    /// - `seed` (int or string, the session's): seed of the random starting vectors.
    /// - `progress` (true): show a bar, and a note if the search ends before it has converged.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let low = ritz(h, #{ count: 3, tol: 1e-10, seed: 1 });
    /// assert_close(low.values[0], -2.0, 1e-12);
    /// assert_close(low.values[1], low.values[2], 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn ritz(a: Operator, o: Options) -> Fallible<ScriptEigen> {
        let methods = [
            ("gradient", method::RitzMethod::ConjugateGradient),
            ("chebyshev", method::RitzMethod::Chebyshev),
        ];
        let method = o.one_of("method", &methods)?;
        let mut wanted = method::RitzOptions::new(o.count("count")?, o.seed()?, method);
        wanted.tolerance = o.maybe_float("tol")?;
        wanted.max_products = o.count("products")?;
        let eigen = method::ritz(&a, &wanted, &o.task()?)?;
        if let Some(note) = unfinished(&eigen, "products", eigen.products) {
            session()?.note(&note);
        }
        Ok(ScriptEigen(Rc::new(eigen), a.device().clone()))
    }

    /// Eigenvalues: from the end of the spectrum inwards, or ascending for levels near an energy.
    #[rhai_fn(global, get = "values", pure)]
    pub fn values(e: &mut ScriptEigen) -> Series {
        Series::Real(e.0.values.clone())
    }

    /// Eigenvectors, one per column. Overlaps with certain random vectors fix their phases and the basis of a
    /// degenerate level, so these do not depend on the number of threads and ranks. If `count` cuts a degenerate level,
    /// its vectors are arbitrary and may change with the number of threads: include the whole level. `davidson` with a
    /// `start` keeps the vectors that the search finds.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(100), #{ hopping: -1.0 });
    /// // a lowest level, and then one of two waves
    /// let v = [1, 2].map(|seed| davidson(h, #{ count: 3, tol: 1e-12, seed: seed, progress: false }).vectors);
    /// assert_close(norm(v[0] - v[1]).max(), 0.0, 1e-8);
    /// ```
    #[rhai_fn(global, get = "vectors", pure)]
    pub fn vectors(e: &mut ScriptEigen) -> Vector {
        Vector::new(&e.1, e.0.vectors.clone())
    }

    /// The norms |A v - value v|, one per pair. For a degenerate level they are a bound for all its vectors.
    #[rhai_fn(global, get = "residuals", pure)]
    pub fn residuals(e: &mut ScriptEigen) -> Series {
        Series::Real(e.0.residuals.clone())
    }

    /// Expansions of the basis.
    #[rhai_fn(global, get = "iterations", pure)]
    pub fn iterations(e: &mut ScriptEigen) -> INT {
        e.0.iterations as INT
    }

    /// Products of the operator with single vectors.
    #[rhai_fn(global, get = "products", pure)]
    pub fn products(e: &mut ScriptEigen) -> INT {
        e.0.products as INT
    }

    /// Whether every residual is below the tolerance and, as far as a search from random vectors can tell, no lower
    /// state was missed.
    #[rhai_fn(global, get = "converged", pure)]
    pub fn converged(e: &mut ScriptEigen) -> bool {
        e.0.converged()
    }

    /// Why the search ended: "converged"; "limit": all iterations or products were used; "stalled": rounding keeps the
    /// residuals above the tolerance.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(100), #{ hopping: -1.0 });
    /// assert(davidson(h, #{ iterations: 3, progress: false }).ended == "limit", "three are too few");
    /// ```
    #[rhai_fn(global, get = "ended", pure)]
    pub fn ended(e: &mut ScriptEigen) -> String {
        e.0.ended.name().into()
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(e: &mut ScriptEigen) -> String {
        let mut lines = vec![format!(
            "Eigen: {} pairs, {} iterations{}",
            e.0.values.len(),
            e.0.iterations,
            if e.0.converged() { "" } else { ", not converged" }
        )];
        let size = e.0.values.iter().map(|x| x.abs()).fold(0.0, f64::max);
        for (value, residual) in e.0.values.iter().zip(&e.0.residuals) {
            lines.push(format!("  {:>22}   residual {residual:.1e}", energy(*value, size)));
        }
        lines.join("\n")
    }
}
