//! The language's clock. Clocks differ between ranks, and a script that branches on the time would diverge. So rank 0
//! reads its clock and sends the time to the others, and all ranks must ask together.

use std::time::Instant;

use rhai::plugin::*;
use rhai::{Engine, FLOAT};

use crate::error::Result;
use crate::ranks::told;
use crate::script::Fallible;

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(clock_functions).into());
}

/// Seconds from one time to another one.
fn between(from: Instant, to: Instant) -> Result<FLOAT> {
    let seconds = |a: Instant, b: Instant| b.saturating_duration_since(a).as_secs_f64();
    told(seconds(from, to) - seconds(to, from))
}

#[export_module(root = "crate::script::native")]
mod clock_functions {
    /// Seconds since a `timestamp()`. All ranks get the value of rank 0.
    ///
    /// # Example
    /// ```rhai
    /// let began = timestamp();
    /// sleep(0.01);
    /// assert(began.elapsed >= 0.01, "time passes");
    /// ```
    #[rhai_fn(global, get = "elapsed", name = "elapsed", return_raw)]
    pub fn elapsed(began: Instant) -> Fallible<FLOAT> {
        Ok(between(began, Instant::now())?)
    }

    #[rhai_fn(global, name = "-", return_raw)]
    pub fn difference(a: Instant, b: Instant) -> Fallible<FLOAT> {
        Ok(between(b, a)?)
    }

    #[rhai_fn(global, name = "<", return_raw)]
    pub fn is_earlier(a: Instant, b: Instant) -> Fallible<bool> {
        Ok(told(a < b)?)
    }

    #[rhai_fn(global, name = "<=", return_raw)]
    pub fn is_not_later(a: Instant, b: Instant) -> Fallible<bool> {
        Ok(told(a <= b)?)
    }

    #[rhai_fn(global, name = ">", return_raw)]
    pub fn is_later(a: Instant, b: Instant) -> Fallible<bool> {
        Ok(told(a > b)?)
    }

    #[rhai_fn(global, name = ">=", return_raw)]
    pub fn is_not_earlier(a: Instant, b: Instant) -> Fallible<bool> {
        Ok(told(a >= b)?)
    }
}
