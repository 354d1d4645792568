//! Assertions, timing and the session's knobs.

use std::time::{Duration, Instant};

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, FLOAT, FnPtr, INT, Map};

use super::chebyshev::as_complex;
use super::complex;
use super::values::type_of;
use crate::error::{Error, Result};
use crate::number::C64;
use crate::ranks;
use crate::script::declared::{shown, unknown_key};
use crate::script::device::backend_name;
use crate::script::native::Float;
use crate::script::registry;
use crate::script::{Fallible, Options, session};
use crate::task;

pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Error>("Error");
    engine.register_global_module(exported_module!(check_functions).into());
}

/// The options given over the defaults.
fn merge(given: Map, defaults: Map) -> Result<Map> {
    let mut merged = defaults.clone();
    for (key, value) in given {
        if !defaults.contains_key(&key) {
            let known: Vec<&str> = defaults.keys().map(|k| k.as_str()).collect();
            return Err(unknown_key(&key, known));
        }
        merged.insert(key, value);
    }
    Ok(merged)
}

/// Seconds after which a piece of work that is timed is not begun again.
const PATIENCE: f64 = 5.0;

#[export_module(root = "crate::script::native")]
mod check_functions {
    /// The message of an error that `catch` gets: one sentence.
    ///
    /// # Example
    /// ```rhai
    /// try { linspace(0.0, 1.0, -1); } catch (e) {
    ///     assert(e.message == "-1 points" && e.hint == "a count is zero or more", "both");
    /// }
    /// ```
    #[rhai_fn(global, get = "message", pure)]
    pub fn message(e: &mut Error) -> String {
        e.message().to_string()
    }

    /// The hint of an error: what can be done; empty if nothing is known.
    #[rhai_fn(global, get = "hint", pure)]
    pub fn hint(e: &mut Error) -> String {
        e.hint_text().unwrap_or_default().to_string()
    }

    /// Says something on standard error, beside the results; `--quiet` keeps it silent.
    ///
    /// # Example
    /// ```rhai
    /// note("the lattice is small: finite-size effects are to be expected");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn note(text: &str) -> Fallible<()> {
        session()?.note(text);
        Ok(())
    }

    /// Waits this many seconds; Ctrl-C ends the wait.
    ///
    /// # Example
    /// ```rhai
    /// sleep(0.01);
    /// ```
    #[rhai_fn(name = "sleep", return_raw)]
    pub fn sleep(seconds: Float) -> Fallible<()> {
        const NAP: Duration = Duration::from_millis(20);
        // More than a Duration can hold counts as for ever, too.
        let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        let began = Instant::now();
        loop {
            task::poll()?;
            match time.checked_sub(began.elapsed()) {
                None | Some(Duration::ZERO) => return Ok(()),
                Some(left) => std::thread::sleep(left.min(NAP)),
            }
        }
    }

    /// Fails with a message unless the condition holds.
    ///
    /// # Example
    /// ```rhai
    /// assert(1 + 1 == 2, "arithmetic");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn assert(condition: bool, message: &str) -> Fallible<()> {
        if condition { Ok(()) } else { Err(Error::input(format!("assertion failed: {message}")).into()) }
    }

    /// Fails unless two numbers agree to an absolute tolerance.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(sqrt(2) * sqrt(2), 2.0, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn assert_close(value: Dynamic, expected: Dynamic, tolerance: Float) -> Fallible<()> {
        let (Some(x), Some(y)) = (as_complex(&value), as_complex(&expected)) else {
            return Err(Error::input(format!(
                "`assert_close` compares numbers, not {} and {}",
                type_of(&value),
                type_of(&expected)
            ))
            .hint("to compare Series or Matrices take the norm: `assert_close((a - b).norm(), 0.0, 1e-12)`")
            .into());
        };
        // Written so that NaN fails.
        if (x - y).norm() <= tolerance {
            return Ok(());
        }
        let off = (x - y).norm();
        let show = |z: C64| if z.im == 0.0 { format!("{:?}", z.re) } else { complex::show(z) };
        let (value, expected) = (show(x), show(y));
        Err(Error::input(format!(
            "{value} is not {expected}: they differ by {off:.3e}, and {tolerance:e} is allowed"
        ))
        .into())
    }

    /// Merges a function's options into its defaults; a key without default is an error.
    ///
    /// # Example
    /// ```rhai
    /// assert(options(#{ a: 2 }, #{ a: 1, b: 3 }).a == 2, "given options win");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn options(given: Map, defaults: Map) -> Fallible<Map> {
        Ok(merge(given, defaults)?)
    }

    /// The options of the function that calls it, as the section `# Options` of that function's doc comment declares
    /// them: the given values, the defaults of the others, and `()` for options without a default. An undeclared key is
    /// an error, and so is a value of another kind; `check` finds both.
    ///
    /// # Example
    /// ```rhai
    /// /// The mean of some random numbers.
    /// ///
    /// /// # Options
    /// /// - `count` (10): number of them.
    /// /// - `seed` (int or string, the session's): their key.
    /// fn mean(opts) {
    ///     let o = options(opts);
    ///     random_numbers(o.count, options_for("random_numbers", o)).mean()
    /// }
    /// assert(mean(#{ count: 20, seed: 1 }) == random_numbers(20, #{ seed: 1 }).mean(), "twenty of them");
    /// ```
    #[rhai_fn(name = "options", return_raw)]
    pub fn options_declared(_given: Map) -> Fallible<Map> {
        Err(Error::input("`options(opts)` stands in no function")
            .hint("it reads the options of a function, which the function's doc comment declares")
            .into())
    }

    /// The options in `o` that another function takes, to pass them on. Options that are `()` are left out.
    ///
    /// # Example
    /// ```rhai
    /// assert(options_for("kpm::moments", #{ moments: 64, seed: (), mine: 1 }).len() == 1, "only `moments`");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn options_for(ctx: NativeCallContext, name: &str, o: Map) -> Fallible<Map> {
        let declared = session()?.declared(name);
        if declared.options(ctx.engine()).is_empty() {
            let text = format!("no function `{name}` declares options");
            return Err(Error::input(text).hint("name one with its module, like \"kpm::moments\"").into());
        }
        Ok(declared.pick(ctx.engine(), o))
    }

    /// As `options(given, defaults)`; it also checks that the given options have the named kinds: "int", "float" (whole
    /// numbers count), "bool", "string", "array", or a type as `type_of` names it. `()` stands for an option not given.
    ///
    /// # Example
    /// ```rhai
    /// let o = options(#{ width: 2 }, #{ width: 1.5, count: () }, #{ width: "float", count: "int" });
    /// assert(type_of(o.width) == "float", "a float, although given whole");
    /// ```
    #[rhai_fn(name = "options", return_raw)]
    pub fn options_of_kinds(ctx: NativeCallContext, given: Map, defaults: Map, kinds: Map) -> Fallible<Map> {
        let mut merged = merge(given, defaults)?;
        for (key, kind) in kinds {
            let Some(value) = merged.get_mut(&key).filter(|value| !value.is_unit()) else { continue };
            let kind = kind.into_string().unwrap_or_default();
            if kind == "float"
                && let Ok(whole) = value.as_int()
            {
                *value = (whole as FLOAT).into();
            }
            if ctx.engine().map_type_name(value.type_name()) != kind {
                let wanted = match kind.as_str() {
                    "int" => "a whole number",
                    "float" => "a number",
                    "bool" => "true or false",
                    "string" => "a text",
                    "array" => "an array",
                    other => other,
                };
                let text = format!("option `{key}` takes {wanted}, not {}", type_of(value));
                let of_type = registry::type_name(ctx.engine(), value.type_name());
                let given = shown(value, &of_type).map_or_else(|| type_of(value), |text| format!("`{text}`"));
                return Err(Error::input(text).hint(format!("it was given {given}")).into());
            }
        }
        Ok(merged)
    }

    /// The time that a closure takes, in seconds.
    ///
    /// # Options
    /// - `repeat` (int >= 1, 1): the shortest of this many runs; after five seconds no further run begins.
    ///
    /// # Example
    /// ```rhai
    /// assert(time(|| 1 + 1) >= 0.0, "time passes");
    /// let runs = 0;
    /// assert(time(|| runs += 1, #{ repeat: 3 }) < 5.0 && runs == 3, "three runs");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn time(ctx: NativeCallContext, work: FnPtr, o: Options) -> Fallible<FLOAT> {
        let device = session()?.device();
        let (mut least, mut all) = (f64::INFINITY, 0.0);
        for _ in 0..o.count("repeat")? {
            if all > PATIENCE {
                break;
            }
            // A GPU works on after its calls have returned.
            device.synchronize()?;
            let started = std::time::Instant::now();
            let _: Dynamic = work.call_within_context(&ctx, ())?;
            device.synchronize()?;
            let seconds = ranks::told(started.elapsed().as_secs_f64())?;
            least = least.min(seconds);
            all += seconds;
        }
        Ok(least)
    }

    /// Runs a closure on a backend, "cpu", "cuda", "auto" or several joined by `+`, and returns its result. Values made
    /// inside live on this backend and cannot be combined with values of another one. So make operators and vectors
    /// inside, and return numbers, Series and Tables. Afterwards, also after an error, the session has its former
    /// backend again. With several ranks, each rank holds the whole of a value that lives on several backends
    /// (`cpu+cuda`).
    ///
    /// # Options
    /// - `threads` (int >= 1, the session's): number of CPU threads, for example 1 to compare with one core.
    /// - `weights` (string, measured): the weights of several backends that share the rows, like "1:30" for "cpu+cuda".
    ///
    /// # Example
    /// ```rhai
    /// let seconds = on("cpu", || {
    ///     let h = tight_binding(lattice::cubic(8, 8, 8), #{ hopping: -1.0 });
    ///     let v = random_block(h, 4);
    ///     time(|| h * v)
    /// });
    /// assert(on("cpu", || backend().name) == "cpu" && seconds > 0.0, "there");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn on(ctx: NativeCallContext, backend: &str, work: FnPtr, o: Options) -> Fallible<Dynamic> {
        backend_name(backend)?;
        let (threads, weights) = (o.maybe_count("threads")?, o.maybe_text("weights")?);
        session()?.on(backend, threads, weights.as_deref(), || work.call_within_context(&ctx, ()))?
    }

    /// Ends the script; the program ends with this exit code, from 0 (all went well) to 255. A session at the terminal
    /// is left, unless `%run` runs the script.
    ///
    /// # Example
    /// ```rhai
    /// let converged = true;
    /// if !converged { exit(3); }
    /// ```
    #[rhai_fn(return_raw)]
    pub fn exit(ctx: NativeCallContext, code: INT) -> Fallible<()> {
        let code = u8::try_from(code)
            .map_err(|_| Error::input(format!("an exit code of {code}")).hint("it lies between 0 and 255"))?;
        session()?.end(code);
        Err(Box::new(EvalAltResult::Exit(Dynamic::UNIT, ctx.call_position())))
    }

    #[rhai_fn(name = "exit", return_raw)]
    pub fn exit_plain(ctx: NativeCallContext) -> Fallible<()> {
        exit(ctx, 0)
    }

    /// Sets the seed of all random numbers for which no `seed` is given, and restarts the sequence of `random_numbers`.
    ///
    /// # Example
    /// ```rhai
    /// set_seed(7);
    /// let x = random_numbers(2);
    /// set_seed(7);
    /// assert(random_numbers(2) == x, "the same numbers");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn set_seed(seed: INT) -> Fallible<()> {
        session()?.set_seed(seed as u64);
        Ok(())
    }

    /// The backend: a map of `name`, `device`, `workers`, `memory` (bytes: `total`, `free`, `used`). A backend made of
    /// several has also `parts`, each with its `name`, its `device` and, once it is known, its `share` of the rows.
    /// `ranks` is the number of processes that run this script together (`umklapp --ranks 4`); it is 1 without ranks.
    /// `rank` is the number of this process. It is the only value that differs between ranks, and a script must do the
    /// same on all of them. `sums` counts the sums over all ranks so far.
    ///
    /// # Example
    /// ```rhai
    /// assert(backend().workers >= 1, "somebody works");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn backend() -> Fallible<Map> {
        let device = session()?.device();
        let memory = device.memory();
        let mut bytes = Map::new();
        bytes.insert("total".into(), (memory.total as INT).into());
        bytes.insert("free".into(), (memory.free as INT).into());
        bytes.insert("used".into(), (memory.used as INT).into());
        let mut map = Map::new();
        map.insert("name".into(), device.name().into());
        map.insert("device".into(), device.describe().into());
        map.insert("workers".into(), (device.workers() as INT).into());
        map.insert("memory".into(), bytes.into());
        let (rank, size) = ranks::world().map_or((0, 1), |world| (world.rank(), world.size()));
        map.insert("ranks".into(), (size as INT).into());
        map.insert("rank".into(), (rank as INT).into());
        let sums = ranks::world().map_or(0, |world| world.sums());
        map.insert("sums".into(), (sums as INT).into());
        let parts = device.parts();
        if !parts.is_empty() {
            let part = |part: crate::backend::BackendPart| {
                let mut map = Map::new();
                map.insert("name".into(), part.device.name().into());
                map.insert("device".into(), part.device.describe().into());
                if let Some(share) = part.share {
                    map.insert("share".into(), share.into());
                }
                Dynamic::from(map)
            };
            map.insert("parts".into(), Dynamic::from(parts.into_iter().map(part).collect::<Array>()));
        }
        Ok(map)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn error_to_string(e: &mut Error) -> String {
        e.to_string()
    }
}
