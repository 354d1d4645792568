//! The primitives of the overlap operator; `stdlib/overlap.rhai` puts them together.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Dynamic, Engine, FLOAT, INT, Map};

use super::eigen::Pairs;
use super::solve::{Solved, noted};
use super::vector::Vector;
use crate::error::{Error, Result};
use crate::gauge::overlap::{Index, IndexOptions, InversionOptions, Overlap, Sign, Wanted, index, invert};
use crate::method::{MinMax, Zolotarev};
use crate::number::Series;
use crate::operator::Operator;
use crate::script::{At, Failure, Options, session};

/// Registers the type and the functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Rc<Index>>("Index");
    engine.register_global_module(exported_module!(overlap_functions).into());
}

/// The sign function behind an operator, or of an overlap operator.
fn sign_of(h: &Operator) -> Result<&Sign> {
    if let Some(sign) = Sign::of(h) {
        return Ok(sign);
    }
    match Overlap::of(h) {
        Some(d) => d.sign_function(),
        None => {
            Err(Error::input(format!("{} is neither a sign function nor an overlap operator", h.summary()))
                .hint("make one with `overlap::sign(q, #{})` or `overlap::operator(u, #{})`"))
        }
    }
}

fn overlap_of(h: &Operator) -> Result<&Overlap> {
    Overlap::of(h).ok_or_else(|| {
        Error::input(format!("{} is no overlap operator", h.summary()))
            .hint("make one with `overlap::operator(u, #{ s: 0.4 })`")
    })
}

/// An option of one of the types that scripts pass around.
fn typed<T: Clone + 'static>(o: &Options, key: &'static str, name: &str) -> Result<Option<T>> {
    let Some(value) = o.value(key) else { return Ok(None) };
    match value.clone().try_cast::<T>() {
        Some(x) => Ok(Some(x)),
        None => Err(Error::input(format!("option `{key}` takes {name}, not a value of type {}", value.type_name()))
            .hint("`minmax_inverse_sqrt`, `zolotarev_inverse_sqrt` and `overlap::index` make what such options take")),
    }
}

#[export_module]
mod overlap_functions {
    /// The sign function of a Hermitian operator: its lowest modes exactly, the rest by a polynomial,
    /// P+ - P- + (1 - P) X P_n(X^2) (1 - P) with X = Q/|Q|. What is not given is found.
    ///
    /// # Options
    /// - `low_modes` (8 or so): an Eigen of q * q from the lowest value on, or how many modes to find.
    /// - `polynomial` (found): from `minmax_inverse_sqrt(eps, ..)`, with eps the lowest value of q * q that is left over the
    ///   largest.
    /// - `rational`: from `zolotarev_inverse_sqrt(eps, ..)`, instead of a polynomial.
    /// - `method` ("polynomial"): what to find where neither is given; or "rational".
    /// - `delta` (1e-10): the deviation of what is found.
    /// - `upper` (found): the largest eigenvalue of q * q.
    /// - `seed` (the session's): of random starting vectors.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// let sign = sign_function(wilson::kernel(u, #{ s: 0.4 }), #{ delta: 1e-8, seed: 1, progress: false });
    /// let psi = wilson::reference_spinor(u, 2);
    /// assert_close(dot(psi, sign * psi).re, 13.28897305774, 1e-5);
    /// assert(sign.bound < 1e-7, "known well");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn sign_function(
        ctx: NativeCallContext,
        q: Operator,
        options: Map,
    ) -> std::result::Result<Operator, Failure> {
        let o = Options::new(&ctx, options);
        let read = || -> Result<_> {
            let mut wanted =
                Wanted { delta: o.float_or("delta", 1e-10)?, seed: o.seed()?, ..Wanted::default() };
            if let Some(value) = o.value("low_modes") {
                match (value.clone().try_cast::<Pairs>(), value.as_int()) {
                    (Some(pairs), _) => wanted.low = Some((*pairs.0).clone()),
                    (None, Ok(n)) => {
                        let n = usize::try_from(n).map_err(|_| {
                            Error::input(format!("{n} low modes")).hint("there are 0 or more of them")
                        })?;
                        wanted.modes = Some(n);
                    }
                    _ => {
                        return Err(Error::input(format!(
                            "option `low_modes` takes an Eigen or a whole number, not a {}",
                            value.type_name()
                        ))
                        .hint("like `low_modes: ritz(q * q, #{ count: 8 })`, or `low_modes: 8`"));
                    }
                }
            }
            wanted.polynomial = typed::<Rc<MinMax>>(&o, "polynomial", "a MinMax")?.map(|p| (*p).clone());
            wanted.rational = typed::<Rc<Zolotarev>>(&o, "rational", "a Zolotarev")?.map(|r| (*r).clone());
            wanted.zolotarev = match o.text_or("method", "polynomial")?.as_str() {
                "polynomial" => false,
                "rational" => true,
                other => {
                    return Err(Error::input(format!("no method `{other}` for a sign function"))
                        .hint("the methods are \"polynomial\" and \"rational\""));
                }
            };
            wanted.upper = o.float("upper")?;
            Ok((wanted, o.task()?))
        };
        let (wanted, task) = read().at(&ctx)?;
        o.finish()?;
        let sign = Sign::build(&q, wanted, &task).at(&ctx)?;
        let (bound, delta) = (sign.report().bound, sign.report().delta);
        if bound > 10.0 * delta {
            session(&ctx).at(&ctx)?.note(&format!(
                "the sign function is known to {bound:.1e} only, its fit to {delta:.1e}: the low modes are known too roughly, \
                 which a smaller `tol` of `ritz`, more of them or double precision mend"
            ));
        }
        Ok(sign.into_operator().on(q.geometry().cloned()))
    }

    /// A bound on how far a sign function is from the exact one: the polynomial's deviation and what the low modes' residuals
    /// add. Of an overlap operator, the bound on the operator.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// let d = overlap::operator(u, #{ s: 0.4, delta: 1e-8, seed: 1, progress: false });
    /// assert(d.bound < 1e-7, "known well");
    /// ```
    #[rhai_fn(global, get = "bound", pure, return_raw)]
    pub fn bound(ctx: NativeCallContext, h: &mut Operator) -> std::result::Result<FLOAT, Failure> {
        let sign = sign_of(h).at(&ctx)?.report().bound;
        Ok(Overlap::of(h).map_or(sign, |d| d.scale() * sign))
    }

    /// How a sign function was made and how well it is known, as a map: `modes`, `degree` (or poles), `delta`, `kappa_plus`,
    /// `kappa_minus` (residuals over distances of the low modes), `gap` (the smallest |Q|), `rest` (where |Q| begins beyond
    /// the modes), `bound`.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// let sign = overlap::sign(wilson::kernel(u, #{ s: 0.4 }), #{ delta: 1e-8, seed: 1, progress: false });
    /// assert_close(sign.sign_report.gap, 0.528495440991, 1e-8);
    /// ```
    #[rhai_fn(global, get = "sign_report", pure, return_raw)]
    pub fn sign_report(ctx: NativeCallContext, h: &mut Operator) -> std::result::Result<Map, Failure> {
        let r = sign_of(h).at(&ctx)?.report().clone();
        let mut map = Map::new();
        for (key, value) in [
            ("delta", r.delta),
            ("kappa_plus", r.kappa_plus),
            ("kappa_minus", r.kappa_minus),
            ("gap", r.gap),
            ("rest", r.rest),
            ("bound", r.bound),
        ] {
            map.insert(key.into(), Dynamic::from_float(value));
        }
        map.insert("modes".into(), (r.modes as INT).into());
        map.insert("degree".into(), (r.degree as INT).into());
        Ok(map)
    }

    /// Eigenvalues of Q that a sign function treats exactly, ascending.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// let sign = overlap::sign(wilson::kernel(u, #{ s: 0.4 }), #{ delta: 1e-8, seed: 1, progress: false });
    /// assert(sign.low_values.len >= 4, "some");
    /// ```
    #[rhai_fn(global, get = "low_values", pure, return_raw)]
    pub fn low_values(ctx: NativeCallContext, h: &mut Operator) -> std::result::Result<Series, Failure> {
        Ok(Series::Real(sign_of(h).at(&ctx)?.low_values().to_vec()))
    }

    /// The overlap operator D = (1 + s - m/2)(1 + gamma5 sign(Q)) + m from a sign function of Q = gamma5 (D_W - 1 - s).
    ///
    /// # Options
    /// - `s` (that of the kernel): refused where the kernel has another.
    /// - `mass` (0.0): the quark mass m, in units of 1/a.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// let sign = overlap::sign(wilson::kernel(u, #{ s: 0.4 }), #{ delta: 1e-8, seed: 1, progress: false });
    /// let d = overlap_operator(sign, #{});
    /// assert_close(norm(d * wilson::reference_spinor(u, 2)), 120.3800726898, 1e-5);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn overlap_operator(
        ctx: NativeCallContext,
        sign: Operator,
        options: Map,
    ) -> std::result::Result<Operator, Failure> {
        let o = Options::new(&ctx, options);
        let (s, mass) = (o.float("s").at(&ctx)?, o.float_or("mass", 0.0).at(&ctx)?);
        o.finish()?;
        Ok(Overlap::build(&sign, s, mass).at(&ctx)?.into_operator())
    }

    /// The zero modes of an overlap operator, counted in each chirality; its other low modes, cross-checked: they come in
    /// pairs of both chiralities and lie on the circle |z - (1 + s)| = 1 + s. An Index with `index` (n+ - n-), `plus`, `minus`,
    /// `modes` (the zero modes, a column each), `nonzero` (other low eigenvalues of D^+ D), `circle` and `pairing` (the
    /// largest deviations found).
    ///
    /// # Options
    /// - `count` (6): low modes to look for in each chirality at first; more while all of them are zero.
    /// - `threshold` (from the error bound): eigenvalues of D^+ D below this are zero.
    /// - `seed` (the session's): of random starting vectors.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::constant_flux(lattice::hypercubic(4, 4, 4, 4), #{ plane01: 1, plane23: 1 }).boundary("antiperiodic");
    /// let d = overlap::operator(u, #{ s: 0.4, delta: 1e-8, seed: 1, progress: false });
    /// assert(zero_modes(d, #{ seed: 1, progress: false }).index == -2, "- 2 m01 m23");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn zero_modes(
        ctx: NativeCallContext,
        d: Operator,
        options: Map,
    ) -> std::result::Result<Rc<Index>, Failure> {
        let o = Options::new(&ctx, options);
        let read = || -> Result<_> {
            let wanted = IndexOptions {
                count: o.count_or("count", 1, 6)?,
                threshold: o.float("threshold")?,
                seed: o.seed()?,
            };
            Ok((wanted, o.task()?))
        };
        let (wanted, task) = read().at(&ctx)?;
        o.finish()?;
        let d = overlap_of(&d).at(&ctx)?;
        index(d, &wanted, &task).map(Rc::new).at(&ctx)
    }

    /// n+ - n-.
    #[rhai_fn(global, get = "index", pure)]
    pub fn index_of(i: &mut Rc<Index>) -> INT {
        i.index()
    }

    /// Zero modes of positive chirality.
    #[rhai_fn(global, get = "plus", pure)]
    pub fn plus(i: &mut Rc<Index>) -> INT {
        i.plus as INT
    }

    /// Zero modes of negative chirality.
    #[rhai_fn(global, get = "minus", pure)]
    pub fn minus(i: &mut Rc<Index>) -> INT {
        i.minus as INT
    }

    /// The lowest other eigenvalues of D^+ D: a map of Series, `plus` and `minus` by chirality.
    #[rhai_fn(global, get = "nonzero", pure)]
    pub fn nonzero(i: &mut Rc<Index>) -> Map {
        let mut map = Map::new();
        for (key, values) in ["plus", "minus"].into_iter().zip(&i.nonzero) {
            map.insert(key.into(), Dynamic::from(Series::Real(values.clone())));
        }
        map
    }

    /// The largest distance of another eigenvalue from the circle.
    #[rhai_fn(global, get = "circle", pure)]
    pub fn circle(i: &mut Rc<Index>) -> FLOAT {
        i.circle
    }

    /// The largest relative difference between partners of the two chiralities.
    #[rhai_fn(global, get = "pairing", pure)]
    pub fn pairing(i: &mut Rc<Index>) -> FLOAT {
        i.pairing
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn index_to_string(i: &mut Rc<Index>) -> String {
        i.to_string()
    }

    /// Solves D x = b for an overlap operator by conjugate gradients in each chirality: a Solution. One sign function an
    /// iteration, no better than what is left to solve asks for.
    ///
    /// # Options
    /// - `tol` (1e-8): largest |b - D x|/|b|.
    /// - `iterations` (10000): most iterations.
    /// - `adaptive` (true): relax the sign function as the residual falls.
    /// - `zero_modes`: an Index of the operator, massless or not, whose zero modes are treated exactly.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(2, 2, 2, 4), 0.5);
    /// let d = overlap::operator(u, #{ s: 0.4, mass: 0.2, delta: 1e-9, seed: 1, progress: false });
    /// let psi = wilson::reference_spinor(u, 2);
    /// let x = overlap_solve(d, psi, #{ tol: 1e-7, progress: false }).x;
    /// assert_close(norm(d * x - psi) / norm(psi), 0.0, 1e-6);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn overlap_solve(
        ctx: NativeCallContext,
        d: Operator,
        b: Vector,
        options: Map,
    ) -> std::result::Result<Solved, Failure> {
        let o = Options::new(&ctx, options);
        let read = || -> Result<_> {
            let zero = typed::<Rc<Index>>(&o, "zero_modes", "an Index")?;
            let wanted = InversionOptions {
                tolerance: o.float_or("tol", 1e-8)?,
                max_iterations: o.count_or("iterations", 1, 10_000)?,
                adaptive: o.flag_or("adaptive", true)?,
                zero_modes: zero.map(|i| (*i).clone()),
            };
            Ok((wanted, o.task()?))
        };
        let (wanted, task) = read().at(&ctx)?;
        o.finish()?;
        let solution = invert(overlap_of(&d).at(&ctx)?, &b.block, &wanted, &task).at(&ctx)?;
        noted(&ctx, solution, d)
    }
}
