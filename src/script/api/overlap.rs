//! The primitives of the overlap operator; `stdlib/overlap/` puts them together.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, FLOAT, FnPtr, INT, Map};

use super::eigen::ScriptEigen;
use super::solve::{ScriptSolution, noted};
use super::vector::Vector;
use crate::backend::Device;
use crate::error::{Error, Result};
use crate::gauge::overlap::{
    self, ChiralNormal, Fit, OverlapIndex, OverlapOperator, Sign, SignParts, overlap_scale,
};
use crate::method::{
    MinMax, RitzMethod, RitzOptions, SolveOptions, Zolotarev, check_system, finished, in_range, only, ritz,
};
use crate::number::Series;
use crate::operator::{Action, Operator};
use crate::script::callback::Callback;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

/// The script's handle to an index, and the device on which its modes live.
#[derive(Clone)]
struct ScriptIndex(Rc<OverlapIndex>, Device);

/// Registers the type and the functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<ScriptIndex>("Index");
    rooms.room("overlap", exported_module!(overlap_functions));
    rooms.room("internal", exported_module!(overlap_parts));
}

/// The sign function behind an operator, or of an overlap operator.
fn sign_of(h: &Operator) -> Result<&Sign> {
    if let Some(sign) = h.exactly::<Sign>() {
        return Ok(sign);
    }
    match h.exactly::<OverlapOperator>() {
        Some(d) => d.sign_function(),
        None => {
            Err(Error::input(format!("{} is neither a sign function nor an overlap operator", h.summary()))
                .hint("make one with `overlap::sign(q, #{})` or `overlap::operator(u, #{})`"))
        }
    }
}

fn overlap_of(h: &Operator) -> Result<&OverlapOperator> {
    h.exactly::<OverlapOperator>().ok_or_else(|| {
        Error::input(format!("{} is no overlap operator", h.summary()))
            .hint("make one with `overlap::operator(u, #{ s: 0.4 })`")
    })
}

#[export_module(root = "crate::script::native")]
mod overlap_functions {
    /// A bound on the error of a sign function: the deviation of the polynomial plus the contribution of the residuals
    /// of the low modes. For an overlap operator, it is the bound on the operator.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// let d = overlap::operator(u, #{ s: 0.4, delta: 1e-8, seed: 1, progress: false });
    /// assert(d.bound < 1e-7, "known well");
    /// ```
    #[rhai_fn(global, get = "bound", pure, return_raw)]
    pub fn bound(h: &mut Operator) -> Fallible<FLOAT> {
        let sign = sign_of(h)?.report().bound;
        Ok(h.exactly::<OverlapOperator>().map_or(sign, |d| d.scale() * sign))
    }

    /// The parameter s of an overlap operator, whose kernel is Q = gamma5 (D_W - 1 - s).
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::unit(lattice::hypercubic(2, 2, 2, 4)).boundary("antiperiodic");
    /// let d = overlap::operator(u, #{ s: 0.4, mass: 0.1, delta: 1e-6, seed: 1, progress: false });
    /// assert(d.s == 0.4 && d.mass == 0.1, "as given");
    /// ```
    #[rhai_fn(global, get = "s", pure, return_raw)]
    pub fn s_of(d: &mut Operator) -> Fallible<FLOAT> {
        Ok(overlap_of(d).map(OverlapOperator::s)?)
    }

    /// The quark mass m of an overlap operator, in units of 1/a.
    #[rhai_fn(global, get = "mass", pure, return_raw)]
    pub fn mass_of(d: &mut Operator) -> Fallible<FLOAT> {
        Ok(overlap_of(d).map(OverlapOperator::mass)?)
    }

    /// How a sign function was made and how accurate it is, as a map.
    ///
    /// `modes` (number of low modes), `degree` (or number of poles) and `delta` (deviation of the fit on the rest of
    /// the spectrum); `gap` (the smallest |Q|, known only roughly without modes), `rest` (the smallest |Q| beyond the
    /// modes), `bound` (on |X - sign(Q)|: delta, errors of the modes and rounding; 2 if there are `doubtful` modes),
    /// `doubtful` (modes whose sign is unknown, since their error exceeds their distance from zero).
    ///
    /// For the modes u_k with Ritz values nu_k, the `low_values`, there are: `residuals` rho_k = |(Q - nu_k) u_k|;
    /// `distances` d_k of nu_k from the spectrum without the low modes of the same sign; `kappa_plus` and
    /// `kappa_minus`, the square roots of the sums of rho_k^2/d_k^2 over the modes of each sign; `bound_plus` and
    /// `bound_minus` on the errors of the projectors P+ and P-, kappa (1 + 2 kappa)/(1 - 2 kappa (1 + 2 kappa)), eq.
    /// (2.10) of Walk et al.; `bound_operator` = 2 (1 + s - m/2) (kappa_+ + kappa_-), eq. (2.12), on the error of the
    /// overlap operator due to the modes. For a sign function it is the massless overlap operator of its kernel; it is
    /// () if s of the kernel is unknown. If the modes were given in the option `low_modes`, the rest begins at the last
    /// one. The modes beyond the last gap among them can mix only with modes of the same sign: their distance is that
    /// from the other sign, because eq. (2.10) bounds the mixing with the other sign.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// let q = wilson::kernel(u, #{ s: 0.4 });
    /// let sign = overlap::sign(q, #{ low_modes: 8, delta: 1e-8, seed: 1, progress: false });
    /// let r = sign.sign_report;
    /// assert_close(r.gap, 0.528495440991, 1e-8);
    /// assert_close(r.bound_operator, 2.8 * (r.kappa_plus + r.kappa_minus), 1e-12);
    /// ```
    #[rhai_fn(global, get = "sign_report", pure, return_raw)]
    pub fn sign_report(h: &mut Operator) -> Fallible<Map> {
        let r = sign_of(h)?.report().clone();
        let [plus, minus] = r.projectors();
        let operator = overlap_scale(h).map_or(Dynamic::UNIT, |a| (a * r.modes_bound()).into());
        let entries: [(&str, Dynamic); 14] = [
            ("doubtful", (r.doubtful as INT).into()),
            ("modes", (r.modes as INT).into()),
            ("degree", (r.degree as INT).into()),
            ("delta", r.delta.into()),
            ("gap", r.gap.into()),
            ("rest", r.rest.into()),
            ("bound", r.bound.into()),
            ("residuals", Dynamic::from(Series::Real(r.residuals))),
            ("distances", Dynamic::from(Series::Real(r.distances))),
            ("kappa_plus", r.kappa_plus.into()),
            ("kappa_minus", r.kappa_minus.into()),
            ("bound_plus", plus.into()),
            ("bound_minus", minus.into()),
            ("bound_operator", operator),
        ];
        Ok(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// Eigenvalues of Q that a sign function treats exactly, ascending.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// let q = wilson::kernel(u, #{ s: 0.4 });
    /// let sign = overlap::sign(q, #{ low_modes: 8, delta: 1e-8, seed: 1, progress: false });
    /// assert(sign.low_values.len >= 4, "some");
    /// ```
    #[rhai_fn(global, get = "low_values", pure, return_raw)]
    pub fn low_values(h: &mut Operator) -> Fallible<Series> {
        Ok(Series::Real(sign_of(h)?.low_values().to_vec()))
    }

    /// D^+ D of an overlap operator among spinors of a chirality, 1 or -1, which needs one sign function instead of
    /// two: 2 A (A + m)(1 + c sign(Q)) + m^2 with c the chirality and A = 1 + s - m/2. Spinors of the other chirality
    /// are moved above its spectrum, so a search for low modes does not find them.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(2, 2, 2, 4), 0.5);
    /// let d = overlap::operator(u, #{ s: 0.4, mass: 0.1, delta: 1e-9, seed: 1, progress: false });
    /// let right = wilson::chiral_projector(u, 1) * wilson::reference_spinor(u, 2);
    /// assert_close(norm(overlap::normal(d, 1) * right - d.dagger() * (d * right)), 0.0, 1e-6);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn normal(d: Operator, chirality: INT) -> Fallible<Operator> {
        Ok(ChiralNormal::build(overlap_of(&d)?, super::super::wilson::chirality(chirality)?)?.into_operator())
    }

    /// The index n+ - n-: the number of zero modes of positive chirality minus that of negative chirality.
    #[rhai_fn(global, get = "index", pure)]
    pub fn index_of(i: &mut ScriptIndex) -> INT {
        i.0.index()
    }

    /// Zero modes of positive chirality.
    #[rhai_fn(global, get = "plus", pure)]
    pub fn plus(i: &mut ScriptIndex) -> INT {
        i.0.plus as INT
    }

    /// Zero modes of negative chirality.
    #[rhai_fn(global, get = "minus", pure)]
    pub fn minus(i: &mut ScriptIndex) -> INT {
        i.0.minus as INT
    }

    /// The zero modes, one per column, positive chirality first; () if there are none.
    ///
    /// # Example
    /// ```rhai
    /// let flux = gauge::constant_flux(lattice::hypercubic(4, 4, 4, 4), #{ plane01: 1, plane23: 1 });
    /// let u = flux.boundary("antiperiodic");
    /// let d = overlap::operator(u, #{ s: 0.4, delta: 1e-9, seed: 1, progress: false });
    /// let zero = overlap::index(d, #{ seed: 1, progress: false });
    /// assert(norm(d * zero.modes).max() <= sqrt(zero.threshold), "zero");
    /// assert_close(norm(wilson::gamma5(u) * zero.modes + zero.modes).max(), 0.0, 1e-6);    // of negative chirality
    /// ```
    #[rhai_fn(global, get = "modes", pure)]
    pub fn modes(i: &mut ScriptIndex) -> Dynamic {
        i.0.modes.as_ref().map_or(Dynamic::UNIT, |modes| Dynamic::from(Vector::new(&i.1, modes.clone())))
    }

    /// The largest eigenvalue of D^+ D that counted as zero.
    #[rhai_fn(global, get = "threshold", pure)]
    pub fn threshold(i: &mut ScriptIndex) -> FLOAT {
        i.0.threshold
    }

    /// The lowest other eigenvalues of D^+ D: a map of Series, `plus` and `minus` by chirality.
    #[rhai_fn(global, get = "nonzero", pure)]
    pub fn nonzero(i: &mut ScriptIndex) -> Map {
        let mut map = Map::new();
        for (key, values) in ["plus", "minus"].into_iter().zip(&i.0.nonzero) {
            map.insert(key.into(), Dynamic::from(Series::Real(values.clone())));
        }
        map
    }

    /// The largest distance of the other eigenvalues from the circle.
    #[rhai_fn(global, get = "circle", pure)]
    pub fn circle(i: &mut ScriptIndex) -> FLOAT {
        i.0.circle
    }

    /// The largest relative difference between partners of the two chiralities.
    #[rhai_fn(global, get = "pairing", pure)]
    pub fn pairing(i: &mut ScriptIndex) -> FLOAT {
        i.0.pairing
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn index_to_string(i: &mut ScriptIndex) -> String {
        i.0.to_string()
    }
}

#[export_module(root = "crate::script::native")]
mod overlap_parts {
    /// The lowest eigenpairs of Q^2 by a Chebyshev filter, for a sign function: an Eigen.
    ///
    /// # Options
    /// - `count` (1), `tol`, `products`, `seed`, `progress`: as for `ritz`.
    /// - `sure` (int >= 1, all): how many must converge, counted from the lowest.
    /// - `relative` (float, 0.0): residuals as a fraction of the lowest value; the larger tolerance counts.
    /// - `start` (BlockVector): vectors to begin with.
    #[rhai_fn(return_raw)]
    pub fn lowest_pairs(squared: Operator, o: Options) -> Fallible<ScriptEigen> {
        let count = o.count("count")?;
        let wanted = RitzOptions {
            sure: o.maybe_count("sure")?.unwrap_or(count),
            start: o.maybe::<Vector>("start").map(|v| (*v.block).clone()),
            tolerance: o.maybe_float("tol")?,
            relative: o.float("relative")?,
            max_products: o.count("products")?,
            ..RitzOptions::new(count, o.seed()?, RitzMethod::Chebyshev)
        };
        let found = ritz(&squared, &wanted, &o.task()?)?;
        Ok(ScriptEigen(Rc::new(found), squared.device().clone()))
    }

    /// Roughly the degree of the minmax polynomial of 1/sqrt(y) on [eps, 1] with this deviation.
    #[rhai_fn(name = "degree_for")]
    pub fn degree_for(eps: FLOAT, deviation: FLOAT) -> FLOAT {
        MinMax::degree_for(eps, deviation)
    }

    /// The sign function of a Hermitian operator from its parts.
    ///
    /// # Options
    /// - `modes` (BlockVector), `keep` (int >= 1, all): the first so many of these modes of Q^2 are exact.
    /// - `given` (false): whether the modes may be those of another operator.
    /// - `touching` (false): whether no gap is known between the last of the modes and the rest.
    /// - `rest` (float, required), `least` (float, required): the lowest value of Q^2 beyond the modes, and a lower
    ///   bound on it.
    /// - `upper` (float, required): the largest eigenvalue of Q^2.
    /// - `fit` (MinMax or Zolotarev, required): covers what is between.
    /// - `delta`, `seed`: as for `overlap::sign`.
    #[rhai_fn(return_raw)]
    pub fn sign_function(q: Operator, o: Options) -> Fallible<Operator> {
        let fit = o.maybe::<Rc<MinMax>>("fit").map(|p| Fit::Polynomial((*p).clone()));
        let fit = fit.or_else(|| o.maybe::<Rc<Zolotarev>>("fit").map(|r| Fit::Rational((*r).clone())));
        let modes = match o.maybe::<Vector>("modes") {
            Some(v) => {
                let keep = o.maybe_count("keep")?.unwrap_or(v.block.columns());
                Some(q.device().columns(&v.block, 0..keep)?)
            }
            None => None,
        };
        let parts = SignParts {
            modes,
            given: o.flag("given")?,
            touching: o.flag("touching")?,
            rest: o.float("rest")?,
            least: o.float("least")?,
            fit: fit.ok_or_else(|| Error::internal("a sign function without a fit"))?,
            upper: o.float("upper")?,
            delta: o.float("delta")?,
            seed: o.seed()?,
        };
        Ok(Sign::build(&q, parts)?.into_operator())
    }

    /// The overlap operator D = (1 + s - m/2)(1 + gamma5 sign(Q)) + m from a sign function of Q = gamma5 (D_W - 1 - s),
    /// or that of another overlap operator.
    ///
    /// # Options
    /// - `s` (float, that of the kernel): it must agree with the kernel.
    /// - `mass` (0.0): the quark mass m, in units of 1/a. The adjoint of an overlap operator gives an adjoint again.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// let sign = overlap::sign(wilson::kernel(u, #{ s: 0.4 }), #{ delta: 1e-8, seed: 1, progress: false });
    /// let d = overlap::operator(sign, #{});
    /// assert_close(norm(d * wilson::reference_spinor(u, 2)), 120.3800726898, 1e-5);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn overlap_operator(sign: Operator, o: Options) -> Fallible<Operator> {
        let (s, mass) = (o.maybe_float("s")?, o.float("mass")?);
        match sign.exactly::<OverlapOperator>() {
            Some(d) => match s.filter(|s| (s - d.s()).abs() > 1e-12) {
                None => Ok(d.with_mass(mass)?.into_operator()),
                Some(s) => Err(Error::input(format!(
                    "s is {s}, and this operator is of a kernel with s = {}",
                    d.s()
                ))
                .hint("leave `s` out, or give the sign function of another kernel")
                .into()),
            },
            None => Ok(OverlapOperator::build(&sign, s, mass)?.into_operator()),
        }
    }

    /// An Index of an overlap operator from its parts: `plus`, `minus`, `nonzero_plus`, `nonzero_minus`, `circle`,
    /// `pairing`, `threshold` and `modes`, () if there are none.
    #[rhai_fn(return_raw)]
    pub fn zero_modes(d: Operator, found: Map) -> Fallible<ScriptIndex> {
        let number = |key: &str| found.get(key).and_then(|x| x.as_float().ok());
        let count =
            |key: &str| found.get(key).and_then(|x| x.as_int().ok()).and_then(|n| usize::try_from(n).ok());
        let values = |key: &str| match found.get(key).map(|x| x.clone().try_cast::<Series>()) {
            Some(Some(Series::Real(values))) => Some(values),
            _ => None,
        };
        let missing = || Error::internal("an index without one of its parts");
        let index = OverlapIndex {
            plus: count("plus").ok_or_else(missing)?,
            minus: count("minus").ok_or_else(missing)?,
            nonzero: [
                values("nonzero_plus").ok_or_else(missing)?,
                values("nonzero_minus").ok_or_else(missing)?,
            ],
            circle: number("circle").ok_or_else(missing)?,
            pairing: number("pairing").ok_or_else(missing)?,
            threshold: number("threshold").ok_or_else(missing)?,
            modes: found
                .get("modes")
                .and_then(|v| v.clone().try_cast::<Vector>())
                .map(|v| (*v.block).clone()),
        };
        Ok(ScriptIndex(Rc::new(index), d.device().clone()))
    }

    /// The Solution of D x = b from a function that gives x and its iterations, for a right-hand side in the operator's
    /// precision whose norms are neither too small nor too large to be squared.
    ///
    /// # Options
    /// - `tol`, `iterations`: as for `overlap::solve`.
    #[rhai_fn(return_raw)]
    pub fn solution(
        ctx: NativeCallContext,
        d: Operator,
        b: Vector,
        solve: FnPtr,
        o: Options,
    ) -> Fallible<ScriptSolution> {
        let (tolerance, max_iterations) = (o.float("tol")?, o.count("iterations")?);
        let system = SolveOptions { tolerance, max_iterations, start: None };
        check_system(&d, &b.block, &system)?;
        let callback = Callback::new(&ctx);
        let found = in_range(d.device(), &b.block, system, |b, _| {
            let b = d.accept(b)?.unwrap_or_else(|| b.clone());
            let missing = || Error::internal("a solver gave no vector with its iterations");
            let given = callback.call(&solve, (Vector::new(d.device(), b.clone()),))?;
            let [x, steps] = <[Dynamic; 2]>::try_from(given.cast::<Array>()).map_err(|_| missing())?;
            let x = x.try_cast::<Vector>().ok_or_else(missing)?.block;
            let x = d.accept(&x)?.unwrap_or_else(|| (*x).clone());
            // These residuals are true ones: no factor for those of a recurrence.
            Ok(vec![finished(&d, &b, x, steps.as_int().unwrap_or_default() as usize, 0.5 * tolerance)?])
        });
        noted(only(callback.finish(found)?)?, d)
    }

    /// The solution of D^+ D x = b in one chirality by conjugate gradients, with a sign function only as accurate as
    /// the residual needs: `x` and `iterations` in an array, or () where D^+ D is not positive.
    ///
    /// # Options
    /// - `tol`, `progress`: as for `overlap::solve`.
    /// - `iterations` (int >= 0, 10000): largest number of iterations.
    /// - `most` (float, 0.0): the largest error of the sign function.
    #[rhai_fn(return_raw)]
    pub fn relaxed_gradient(normal: Operator, b: Vector, o: Options) -> Fallible<Dynamic> {
        let chiral = normal.exactly::<ChiralNormal>();
        let chiral = chiral.ok_or_else(|| Error::internal("not the normal operator of a chirality"))?;
        let (tolerance, max_iterations) = (o.float("tol")?, o.count("iterations")?);
        let wanted = SolveOptions { tolerance, max_iterations, start: None };
        let found = overlap::relaxed_gradient(chiral, &b.block, wanted, o.float("most")?, &o.task()?)?;
        Ok(found.map_or(Dynamic::UNIT, |(x, steps)| {
            vec![Dynamic::from(Vector::new(normal.device(), x)), Dynamic::from(steps as INT)].into()
        }))
    }
}
