//! What a `Series` comes to: sums, extremes, integrals.

use rhai::plugin::*;
use rhai::{Dynamic, Engine, FLOAT, INT};

use super::values::to_dynamic;
use crate::number::Series;
use crate::script::Fallible;

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(series_maths_functions).into());
}

#[export_module(root = "crate::script::native")]
mod series_maths_functions {
    /// The sum of all elements.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(series([1, 2, 3]).sum(), 6.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure)]
    pub fn sum(s: &mut Series) -> Dynamic {
        to_dynamic(s.sum())
    }

    /// The mean of all elements.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(series([1, 2, 3]).mean(), 2.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn mean(s: &mut Series) -> Fallible<Dynamic> {
        Ok(s.mean().map(to_dynamic)?)
    }

    /// The sample standard deviation.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(series([1, 2, 3]).std(), 1.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn std(s: &mut Series) -> Fallible<FLOAT> {
        Ok(s.std()?)
    }

    /// The smallest element; NaN if any element is NaN.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(series([3, 1, 2]).min(), 1.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn min(s: &mut Series) -> Fallible<FLOAT> {
        Ok(s.min()?)
    }

    /// The largest element; NaN if any element is NaN.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(series([3, 1, 2]).max(), 3.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn max(s: &mut Series) -> Fallible<FLOAT> {
        Ok(s.max()?)
    }

    /// The index of the smallest element; of the first NaN, if there is one.
    ///
    /// # Example
    /// ```rhai
    /// assert(series([3, 1, 2]).argmin() == 1, "the second");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn argmin(s: &mut Series) -> Fallible<INT> {
        Ok(s.argmin().map(|i| i as INT)?)
    }

    /// The index of the largest element; of the first NaN, if there is one.
    ///
    /// # Example
    /// ```rhai
    /// assert(series([3, 1, 2]).argmax() == 0, "the first");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn argmax(s: &mut Series) -> Fallible<INT> {
        Ok(s.argmax().map(|i| i as INT)?)
    }

    /// The Euclidean norm.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(series([3, 4]).norm(), 5.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure)]
    pub fn norm(s: &mut Series) -> FLOAT {
        s.norm()
    }

    /// The scalar product; the first series is conjugated.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(series([I]).dot(series([1])), -I, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn dot(s: &mut Series, other: Series) -> Fallible<Dynamic> {
        Ok(s.dot(&other).map(to_dynamic)?)
    }

    /// Running sums: element `i` is the sum of elements 0 to `i`.
    ///
    /// # Example
    /// ```rhai
    /// assert(series([1, 2, 3]).cumsum() == series([1, 3, 6]), "running sums");
    /// ```
    #[rhai_fn(global, pure)]
    pub fn cumsum(s: &mut Series) -> Series {
        s.cumsum()
    }

    /// Differences of neighbours, one element fewer.
    ///
    /// # Example
    /// ```rhai
    /// assert(series([1, 3, 6]).diff() == series([2, 3]), "differences");
    /// ```
    #[rhai_fn(global, pure)]
    pub fn diff(s: &mut Series) -> Series {
        s.diff()
    }

    /// The integral over `x` by the trapezoidal rule.
    ///
    /// # Example
    /// ```rhai
    /// let x = linspace(0, 1, 1001);
    /// assert_close((3.0 * x * x).integrate(x), 1.0, 1e-6);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn integrate(s: &mut Series, x: Series) -> Fallible<Dynamic> {
        Ok(s.integrate(&x).map(to_dynamic)?)
    }

    /// The values at the points `at`: linear interpolation between the points `x` of this series, constant outside
    /// them.
    ///
    /// # Example
    /// ```rhai
    /// let y = series([0, 10, 20]).interp(series([0, 1, 2]), series([0.5]));
    /// assert_close(y[0], 5.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn interp(s: &mut Series, x: Series, at: Series) -> Fallible<Series> {
        Ok(s.interp(&x, &at)?)
    }
}
