//! Spectral windows, the Chebyshev recurrence and its moments, expansions and Clenshaw's recurrence.

use std::cell::RefCell;
use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Dynamic, FLOAT, FnPtr, INT, Map};

use super::values::{count, type_of};
use super::vector::Vector;
use crate::backend::BlockVector;
use crate::error::{Error, Result};
use crate::method::{self, Expansion, Moments, Provenance, Window};
use crate::number::{C64, Series};
use crate::operator::Operator;
use crate::script::failure::failure;
use crate::script::native::Float;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// The script's handle to a recurrence: stepping it steps every copy of the handle.
#[derive(Clone)]
pub(crate) struct Recurrence(Rc<RefCell<method::Chebyshev>>, Operator, Rc<Provenance>);

/// The script's handle to moments.
pub(crate) type SharedMoments = Rc<Moments>;

/// Registers the types and their functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Window>("Window");
    rooms.register_type_with_name::<Recurrence>("Recurrence");
    rooms.register_type_with_name::<SharedMoments>("Moments");
    rooms.register_type_with_name::<Rc<Expansion>>("Expansion");
    rooms.register_global_module(exported_module!(chebyshev_functions).into());
    rooms.room("internal", exported_module!(evolution));
}

/// A number of any kind as a complex one.
pub(crate) fn as_complex(value: &Dynamic) -> Option<C64> {
    if let Ok(x) = value.as_float() {
        return Some(C64::new(x, 0.0));
    }
    if let Ok(i) = value.as_int() {
        return Some(C64::new(i as FLOAT, 0.0));
    }
    value.clone().try_cast::<C64>()
}

/// The window asked for by the options `method`, `margin`, `steps` and `seed`.
fn find_window(h: &Operator, o: &Options) -> Result<Window> {
    let task = o.task()?;
    let seed = o.seed()?;
    let margin = o.maybe_float("margin")?;
    let steps = o.count("steps")?;
    let gershgorin = || Ok(task.showing(|| Window::gershgorin(h))?.widened(margin.unwrap_or(0.0)));
    // An estimate may be too narrow.
    let lanczos = || Window::lanczos(h, steps, margin.unwrap_or(0.01), seed, &task);
    match o.one_of(
        "method",
        &[("gershgorin", (true, false)), ("lanczos", (false, true)), ("auto", (true, true))],
    )? {
        (true, false) => gershgorin(),
        (false, _) => lanczos(),
        (true, true) => gershgorin().or_else(|_| lanczos()),
    }
}

/// Relative error of Clenshaw's recurrence above which there is a note.
const LOST: f64 = 1e-6;

#[export_module(root = "crate::script::native")]
mod chebyshev_functions {

    /// The window that holds the spectrum of a Hermitian operator: `center`, `half_width`, `lower`, `upper`.
    ///
    /// # Options
    /// - `method` ("auto" or "gershgorin" or "lanczos"): Gershgorin's window is never too narrow, Lanczos' window is
    ///   tight. "auto" takes Gershgorin's if the matrix elements are known.
    /// - `margin` (0 <= float < 10, 0.01 for "lanczos", 0 for "gershgorin"): how much wider than the limits found, as a
    ///   fraction of them.
    /// - `steps` (int >= 2, 60): Lanczos steps; only with `method: "lanczos"`, `method: "auto"`.
    /// - `seed` (int or string, the session's): seed of Lanczos' starting vector; only with `method: "lanczos"`,
    ///   `method: "auto"`.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// assert_close(spectral_window(h, #{ method: "gershgorin" }).upper, 1.0, 1e-15);
    /// assert_close(spectral_window(h, #{ margin: 0.1 }).upper, 1.1, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn spectral_window(h: Operator, o: Options) -> Fallible<Window> {
        Ok(find_window(&h, &o)?)
    }

    /// A window from its limits.
    ///
    /// # Example
    /// ```rhai
    /// let w = window(-1.0, 3.0);
    /// assert(w.lower == -1.0 && w.center == 1.0 && w.half_width == 2.0, "the middle and the way to an end");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn window(lower: Float, upper: Float) -> Fallible<Window> {
        Ok(Window::from_limits(lower, upper)?)
    }

    /// The middle of the window, b.
    #[rhai_fn(global, get = "center", pure)]
    pub fn center(w: &mut Window) -> FLOAT {
        w.center
    }

    /// Half the width of the window, a.
    #[rhai_fn(global, get = "half_width", pure)]
    pub fn half_width(w: &mut Window) -> FLOAT {
        w.half_width
    }

    /// The lower limit of the window.
    #[rhai_fn(global, get = "lower", pure)]
    pub fn lower(w: &mut Window) -> FLOAT {
        w.lower()
    }

    /// The upper limit of the window.
    #[rhai_fn(global, get = "upper", pure)]
    pub fn upper(w: &mut Window) -> FLOAT {
        w.upper()
    }

    /// The Chebyshev recurrence of `(h - b)/a` on a block: it starts with T_0 v and T_1 v, so two moments exist
    /// already.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// let r = chebyshev(h, window(-2.0, 2.0), unit_block(h, [0, 1]));
    /// r.step();
    /// assert(r.order == 2 && r.current().columns == 2, "T_2 v");
    /// let mu = r.run(2).moments();
    /// assert_close(mu[2], -0.5, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn chebyshev(h: Operator, window: Window, v: Vector) -> Fallible<Recurrence> {
        // First, while two more vectors fit into memory.
        let record = Provenance::of(&[&h], &v.draws)?;
        let recurrence = method::Chebyshev::new(&h, window, (*v.block).clone())?;
        Ok(Recurrence(Rc::new(RefCell::new(recurrence)), h, Rc::new(record)))
    }

    /// One order further: two more moments.
    #[rhai_fn(global, pure, return_raw)]
    pub fn step(r: &mut Recurrence) -> Fallible<()> {
        let task = session()?.task(false);
        Ok(r.0.borrow_mut().run(1, &task)?)
    }

    /// `n` orders further; returns the recurrence, so calls can be chained.
    ///
    /// # Options
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// let mu = chebyshev(h, window(-2.0, 2.0), unit_block(h, [0])).run(15, #{ progress: false }).moments();
    /// assert(mu.len == 32, "two moments an order, and two to start with");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn run(r: &mut Recurrence, n: INT, o: Options) -> Fallible<Recurrence> {
        let task = o.task()?;
        let n = count(n, "steps")?;
        r.0.borrow_mut().run(n, &task)?;
        Ok(r.clone())
    }

    /// The moments so far, averaged over the columns and normalised to mu_0 = 1.
    #[rhai_fn(global, pure, return_raw)]
    pub fn moments(r: &mut Recurrence) -> Fallible<SharedMoments> {
        let mut moments = r.0.borrow().moments()?;
        moments.record = (*r.2).clone();
        moments.seconds = crate::ranks::told(moments.seconds)?;
        Ok(Rc::new(moments))
    }

    /// The block T_m v of the newest order m.
    #[rhai_fn(global, pure)]
    pub fn current(r: &mut Recurrence) -> Vector {
        let block = r.0.borrow().current().clone();
        Vector::new(r.1.device(), block)
    }

    /// The newest order m.
    #[rhai_fn(global, get = "order", pure)]
    pub fn order(r: &mut Recurrence) -> INT {
        r.0.borrow().order() as INT
    }

    /// Number of moments.
    #[rhai_fn(global, get = "len", pure)]
    pub fn len(mu: &mut SharedMoments) -> INT {
        mu.len() as INT
    }

    /// Dimension of the operator that the moments are of.
    #[rhai_fn(global, get = "dim", pure)]
    pub fn dim(mu: &mut SharedMoments) -> INT {
        mu.dim as INT
    }

    /// Number of vectors averaged over.
    #[rhai_fn(global, get = "vectors", pure)]
    pub fn vectors(mu: &mut SharedMoments) -> INT {
        mu.vectors() as INT
    }

    /// The energy window of their polynomials.
    #[rhai_fn(global, get = "window", pure)]
    pub fn moments_window(mu: &mut SharedMoments) -> Window {
        mu.window
    }

    /// Moment number `n`.
    #[rhai_fn(global, index_get, pure, return_raw)]
    pub fn moment(mu: &mut SharedMoments, n: INT) -> Fallible<FLOAT> {
        let value = usize::try_from(n).ok().and_then(|n| mu.values().get(n).copied());
        Ok(value.ok_or_else(|| {
            Error::input(format!("moment {n} of {}", mu.len())).hint("moments are numbered from 0")
        })?)
    }

    /// The Chebyshev series of a function of energy on a window; the closure gets energies of the Hamiltonian. The
    /// series is compared with the function between its points. Features narrower than about 1/4000 of the window may
    /// still be missed.
    ///
    /// # Options
    /// - `terms` (int >= 1, as many as it takes): number of terms.
    /// - `tolerance` (1e-14): coefficients below this, relative to the largest, are left out.
    ///
    /// # Example
    /// ```rhai
    /// let series = chebyshev_expand(|e| e * e, window(-2.0, 2.0), #{});
    /// assert_close(series.at(1.5), 2.25, 1e-13);
    /// assert(series.terms == 3, "a parabola has three");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn chebyshev_expand(
        ctx: NativeCallContext,
        f: FnPtr,
        window: Window,
        o: Options,
    ) -> Fallible<Rc<Expansion>> {
        let terms = o.maybe_count("terms")?;
        let tolerance = o.float("tolerance")?;
        let mut thrown = None;
        let function = |energy: f64| {
            let value: Dynamic = f.call_within_context(&ctx, (energy,)).map_err(|e| {
                thrown = Some(e);
                Error::input("the closure failed")
            })?;
            as_complex(&value).ok_or_else(|| {
                Error::input(format!("the closure gave {}, not a number", type_of(&value)))
                    .hint("it is called with an energy and gives the function's value there")
            })
        };
        let expansion = match terms {
            Some(terms) => Expansion::of(window, terms, function),
            None => Expansion::converged(window, tolerance, function),
        };
        match (expansion, thrown) {
            (_, Some(e)) => Err(e),
            (Ok(expansion), None) => Ok(Rc::new(expansion)),
            (Err(e), None) => Err(failure(e, ctx.call_position())),
        }
    }

    /// Number of terms.
    #[rhai_fn(global, get = "terms", pure)]
    pub fn expansion_terms(series: &mut Rc<Expansion>) -> INT {
        series.coefficients.len() as INT
    }

    /// The series at an energy, which must lie in its window.
    #[rhai_fn(global, name = "at", pure, return_raw)]
    pub fn expansion_at(series: &mut Rc<Expansion>, energy: Float) -> Fallible<Dynamic> {
        series.inside(energy)?;
        let z = series.at(energy);
        Ok(if series.is_real() { z.re.into() } else { Dynamic::from(z) })
    }

    /// A function of an operator applied to a block, by Clenshaw's recurrence. The spectrum must lie in the window. If
    /// the result is much smaller than the terms of the series, as for exp(-tau e) at large tau, few of its digits are
    /// right; a note on standard error says so. `kpm::evolve` computes such a function in steps.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// let w = window(-2.0, 2.0);
    /// let square = chebyshev_expand(|e| e * e, w, #{ terms: 8 });
    /// assert_close(norm(clenshaw(h, w, square, unit_block(h, [0]))), 1.0, 1e-13);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn clenshaw(h: Operator, window: Window, series: Rc<Expansion>, psi: Vector) -> Fallible<Vector> {
        let task = session()?.task(true);
        let run = || -> Result<BlockVector> {
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * window.half_width;
            if !near(series.window.center, window.center)
                || !near(series.window.half_width, window.half_width)
            {
                return Err(Error::input(format!(
                    "an expansion on {} in the window {window}",
                    series.window
                ))
                .hint("expand the function on the window that the operator is scaled by"));
            }
            window.must_hold(&h, &task)?;
            let (out, loss) = series.apply_with_loss(&h, &psi.block, &task)?;
            let rounding = out.dtype().epsilon();
            if loss * rounding > LOST {
                session()?.note(&format!(
                    "the result is {loss:.0e} times smaller than the terms of the series: its relative error is about \
                     {:.0e}",
                    (loss * rounding).min(1.0)
                ));
            }
            Ok(out)
        };
        Ok(Vector::new(h.device(), run()?))
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn expansion_to_string(series: &mut Rc<Expansion>) -> String {
        let kind = if series.is_real() { "real" } else { "complex" };
        format!(
            "Expansion: {} {kind} terms on {}",
            series.coefficients.len(),
            window_to_string(&mut series.window.clone())
        )
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn recurrence_to_string(r: &mut Recurrence) -> String {
        let r = r.0.borrow();
        format!("Recurrence: order {} of {} columns", r.order(), r.current().columns())
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn window_to_string(w: &mut Window) -> String {
        format!("Window {w}")
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn moments_to_string(mu: &mut SharedMoments) -> String {
        format!("Moments: {} of {} vectors, dimension {}", mu.len(), mu.vectors(), mu.dim)
    }
}

#[export_module(root = "crate::script::native")]
mod evolution {
    /// exp(-i t H) of the columns of a block, for real, imaginary and complex times: a map of `state`, the columns at
    /// norm one, and `log_norm`, the logarithms of their norms. With the option `normalise: false` the columns keep
    /// their norms; a norm too large for a number is then an error.
    ///
    /// # Options
    /// - `tolerance` (1e-14): where the expansion of a step ends.
    /// - `normalise` (true): columns at norm one.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [0, 1], [1.0, 2.0]);
    /// let late = internal::chebyshev_evolve(h, window(0.0, 3.0), unit_block(h, [1]), -1000.0 * I);
    /// assert_close(late.log_norm[0], -2000.0, 1e-9);       // exp(-1000 * 2)
    /// ```
    #[rhai_fn(return_raw)]
    pub fn chebyshev_evolve(
        h: Operator,
        window: Window,
        psi: Vector,
        t: Dynamic,
        o: Options,
    ) -> Fallible<Dynamic> {
        let time = as_complex(&t).ok_or_else(|| {
            Error::input(format!("a time is a number, not {}", type_of(&t)))
                .hint("a list of times is an array of numbers or a Series")
        })?;
        let normalise = o.flag("normalise")?;
        let tolerance = o.float("tolerance")?;
        let evolved = method::evolve(&h, window, &psi.block, time, tolerance, &o.task()?)?;
        if !normalise {
            return Ok(Dynamic::from(Vector::new(h.device(), evolved.whole(&h)?)));
        }
        let (block, logs) = evolved.normalised(&h)?;
        let mut map = Map::new();
        map.insert("state".into(), Dynamic::from(Vector::new(h.device(), block)));
        map.insert("log_norm".into(), Dynamic::from(Series::Real(logs)));
        Ok(map.into())
    }

    /// How many steps `kpm::evolve` takes over a time, for energies in a window. Times at which rounding of the
    /// energies has spoiled the phases are refused, and so are times that need too many steps.
    ///
    /// # Example
    /// ```rhai
    /// assert(internal::evolution_steps(window(-1.0, 1.0), 900.0) == 3.0, "three times 300");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn evolution_steps(window: Window, t: FLOAT) -> Fallible<FLOAT> {
        Ok(method::steps_over(t.into(), window.center, window.half_width)?)
    }
}
