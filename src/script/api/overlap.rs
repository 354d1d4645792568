//! The primitives of the overlap operator; `stdlib/overlap/` puts them together.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, FLOAT, FnPtr, INT, Map};

use super::eigen::ScriptEigen;
use super::solve::{ScriptSolution, noted};
use super::values::type_of;
use super::vector::Vector;
use crate::backend::Device;
use crate::error::{Error, Result};
use crate::gauge::overlap::{
    self, ChiralNormal, OverlapIndex, OverlapOperator, Sign, SignOptions, overlap_scale,
};
use crate::method::{MinMax, SolveOptions, Zolotarev, check_system, finished, in_range, only};
use crate::number::Series;
use crate::operator::{Action, Operator};
use crate::script::callback::Callback;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// The script's handle to an index, and the device on which its modes live.
#[derive(Clone)]
struct ScriptIndex(Rc<OverlapIndex>, Device);

/// Registers the type and the functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<ScriptIndex>("Index");
    rooms.room("overlap", exported_module!(overlap_functions));
    rooms.room("internal", exported_module!(overlap_parts));
}

/// The operator that a sign function is made of.
fn operator_of(q: &Dynamic) -> Result<Operator> {
    q.clone().try_cast::<Operator>().ok_or_else(|| {
        Error::input(format!("a sign function of {}", type_of(q)))
            .hint("make an operator with `wilson::kernel(u, #{ s: 0.4 })`")
    })
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
    /// The sign function of a Hermitian operator Q: exact on its lowest modes, a polynomial on the rest, P+ - P- + (1 -
    /// P) X P_n(X^2) (1 - P) with X = Q/|Q|. Options that are not given are computed.
    ///
    /// # Options
    /// - `low_modes` (Eigen or int, found): an Eigen of q * q with all lowest values, none left out; or the approximate
    ///   number of modes to find. With 0 the fit begins at the lowest |Q|. By default up to 12 modes are computed, as
    ///   long as they save more products with q over 50 applications than they cost. Often that is none; if q is nearly
    ///   singular, it is its lowest modes.
    /// - `polynomial` (MinMax, found): from `minmax_inverse_sqrt(eps, ..)`, with eps the ratio of the lowest remaining
    ///   value of q * q to the largest.
    /// - `rational` (Zolotarev): from `overlap::zolotarev_inverse_sqrt(eps, ..)`; not with `polynomial`.
    /// - `method` ("polynomial" or "rational"): the kind of fit to find if neither is given; not with `polynomial`,
    ///   `rational`.
    /// - `delta` (float > 0, 1e-10): the deviation of the fit; not with `polynomial`, `rational`.
    /// - `upper` (float, found): the largest eigenvalue of q * q.
    /// - `seed` (int or string, the session's): seed of random starting vectors.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// let sign = overlap::sign(wilson::kernel(u, #{ s: 0.4 }), #{ delta: 1e-8, seed: 1, progress: false });
    /// let psi = wilson::reference_spinor(u, 2);
    /// assert_close(dot(psi, sign * psi).re, 13.28897305774, 1e-5);
    /// assert(sign.bound < 1e-7, "known well");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn sign(q: Dynamic, o: Options) -> Fallible<Operator> {
        let q = operator_of(&q)?;
        let mut wanted = SignOptions { delta: o.float("delta")?, seed: o.seed()?, ..SignOptions::default() };
        wanted.low = o.maybe::<ScriptEigen>("low_modes").map(|pairs| (*pairs.0).clone());
        if let Some(n) = o.maybe::<INT>("low_modes") {
            let wrong =
                || Error::input(format!("{n} low modes")).hint("few of them pay, like 8, or 0 for none");
            wanted.modes = Some(usize::try_from(n).ok().filter(|n| *n <= q.dim()).ok_or_else(wrong)?);
        }
        wanted.polynomial = o.maybe::<Rc<MinMax>>("polynomial").map(|p| (*p).clone());
        wanted.rational = o.maybe::<Rc<Zolotarev>>("rational").map(|r| (*r).clone());
        wanted.zolotarev = o.one_of("method", &[("polynomial", false), ("rational", true)])?;
        wanted.upper = o.maybe_float("upper")?;
        let sign = Sign::build(&q, wanted, &o.task()?)?;
        let (bound, fit) = (sign.report().bound, sign.deviation());
        let doubtful = sign.report().doubtful;
        if doubtful > 0 {
            session()?.note(&format!(
                "{doubtful} of the low modes of Q are closer to zero than their errors: their sign, and an index, \
                 depends on rounding; another `s` moves them away"
            ));
        } else if bound > 10.0 * fit {
            session()?.note(&format!(
                "the error bound of the sign function is {bound:.1e}, that of its fit {fit:.1e}: the low modes are \
                 not accurate enough; use a smaller `tol` of `ritz`, more modes or double precision"
            ));
        }
        Ok(sign.into_operator())
    }

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
