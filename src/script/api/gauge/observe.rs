//! Numbers of gauge fields: plaquette, Polyakov loop, topological charge.

use rhai::plugin::*;
use rhai::{FLOAT, INT};

use crate::gauge::{self, Links};
use crate::number::C64;
use crate::script::{At, Failure};

/// The functions, for the module `gauge`.
pub(super) fn module() -> Module {
    exported_module!(observables)
}

#[export_module]
mod observables {
    /// The plaquette: the mean of Re Tr/3 of all smallest loops.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 8), 0.3);
    /// assert_close(gauge::plaquette(u), 0.723057395899683, 1e-12);
    /// ```
    pub fn plaquette(u: Links) -> FLOAT {
        gauge::plaquette(&u)
    }

    /// The Polyakov loop: the mean of Tr/3 of the links once around the time direction, or `direction`.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(gauge::polyakov_loop(gauge::unit(lattice::hypercubic(2, 2, 2, 4))), 1.0, 1e-15);
    /// ```
    pub fn polyakov_loop(u: Links) -> C64 {
        gauge::polyakov(&u, 3)
    }

    #[rhai_fn(name = "polyakov_loop", return_raw)]
    pub fn polyakov_loop_along(
        ctx: NativeCallContext,
        u: Links,
        direction: INT,
    ) -> std::result::Result<C64, Failure> {
        Ok(gauge::polyakov(&u, super::super::direction(direction).at(&ctx)?))
    }

    /// The topological charge of the clover field strength. It nears an integer on smooth fields: smear or flow first.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::constant_flux(lattice::hypercubic(4, 4, 4, 4), #{ plane01: 1, plane23: 1 });
    /// assert_close(gauge::topological_charge(u), 1.899282407104, 1e-9);
    /// ```
    pub fn topological_charge(u: Links) -> FLOAT {
        gauge::topological_charge(&u)
    }
}
