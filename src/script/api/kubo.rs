//! Two-dimensional moments, and the conductivity that Kubo's and Bastin's formula makes of them.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Engine, INT, Map};

use super::kpm::{kernel, orders};
use super::vector::Vector;
use crate::error::Error;
use crate::method::{DoubleMoments, Window};
use crate::number::{Matrix, Series};
use crate::operator::Operator;
use crate::script::{At, Failure, Options};

/// The script's handle to two-dimensional moments.
type SharedDouble = Rc<DoubleMoments>;

/// Registers the type and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<SharedDouble>("DoubleMoments");
    engine.register_global_module(exported_module!(kubo_functions).into());
}

#[export_module]
mod kubo_functions {
    /// Two-dimensional moments Tr[A T_m(H~) B T_n(H~)]/D, averaged over the columns of `v`; `values` is a Matrix.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let v = h.velocity(0);
    /// let mu = double_moments(h, window(-2.1, 2.1), v, v, unit_block(h, range(0, 8)), 4);
    /// assert_close(mu.values.at(0, 0), 2.0, 1e-14);     // Tr v^2 / D = 2 t^2
    /// ```
    #[rhai_fn(return_raw)]
    pub fn double_moments(
        ctx: NativeCallContext,
        h: Operator,
        window: Window,
        a: Operator,
        b: Operator,
        v: Vector,
        count: INT,
    ) -> std::result::Result<SharedDouble, Failure> {
        let o = Options::none(&ctx);
        let build =
            || DoubleMoments::new(&h, window, (&a, &b), &v.block, orders(count)?, &o.task()?).map(Rc::new);
        build().at(&ctx)
    }

    /// The moments as a Matrix, row m and column n.
    #[rhai_fn(global, get = "values", pure, return_raw)]
    pub fn double_values(
        ctx: NativeCallContext,
        mu: &mut SharedDouble,
    ) -> std::result::Result<Matrix, Failure> {
        Matrix::new(mu.count, mu.count, Series::Complex(mu.values.clone())).at(&ctx)
    }

    /// The conductivity of Kubo's and Bastin's formula from moments of two velocities, in e^2/hbar times
    /// lattice constant^(2 - d), at the chemical potentials given. The integral over energies is done in closed form.
    ///
    /// # Options
    /// - `temperature` (0.0): in energy.
    /// - `volume` (required): of the sample.
    /// - `kernel` ("jackson"), `parameter`: the damping kernel.
    /// - `points`: taken from older scripts, of no effect: the closed form has no points.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::square(6, 5), #{ hopping: -1.0, disorder: 1.0, seed: 1 });
    /// let v = h.velocity(0);
    /// let mu = double_moments(h, window(-5.0, 5.0), v, v, unit_block(h, range(0, 30)), 32);
    /// let sigma = mu.conductivity(series([-6.0, 0.0, 6.0]), #{ volume: h.volume, temperature: 0.1 });
    /// assert(sigma[1] > 0.1 && abs(sigma[0]) < 1e-6 && abs(sigma[2]) < 1e-6, "a half-filled band conducts");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn conductivity(
        ctx: NativeCallContext,
        mu: &mut SharedDouble,
        potentials: Series,
        options: Map,
    ) -> std::result::Result<Series, Failure> {
        let o = Options::new(&ctx, options);
        let build = || {
            let temperature = o.float_or("temperature", 0.0)?;
            let volume = o.float("volume")?;
            let volume = volume.ok_or_else(|| Error::input("option `volume` is needed"))?;
            o.count("points", 2)?;
            let kernel = kernel(&o, "jackson")?;
            mu.conductivity(potentials.as_real("chemical potentials")?, temperature, volume, kernel)
        };
        let sigma = build().at(&ctx)?;
        o.finish()?;
        Ok(Series::Real(sigma))
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn double_to_string(mu: &mut SharedDouble) -> String {
        format!("DoubleMoments: {0} x {0}, dimension {1}", mu.count, mu.dim)
    }
}
