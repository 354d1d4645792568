//! Monte Carlo sweeps over gauge fields.

use rhai::INT;
use rhai::plugin::*;

use super::cold;
use crate::gauge::{self, Heatbath, Links};
use crate::lattice::Lattice;
use crate::script::callback::Callback;
use crate::script::{Fallible, Options};

/// The functions, for the module `gauge`.
pub(super) fn module() -> Module {
    exported_module!(sweep_functions)
}

#[export_module(root = "crate::script::native")]
mod sweep_functions {
    /// The field after heatbath sweeps with the Wilson action: pseudo-heatbath over the SU(2) subgroups, each sweep
    /// followed by over-relaxation. The start is a field, or a lattice for a cold start. A field knows its number of
    /// sweeps, so single sweeps give the same run as all sweeps in one call. Random numbers belong to links. With
    /// several ranks, each has a box of the lattice, and the field is the same to the last bit for any number of ranks.
    ///
    /// # Options
    /// - `beta` (float >= 0, required): give the coupling 6/g^2, such as 6.0.
    /// - `sweeps` (int >= 0, 1): heatbath sweeps.
    /// - `overrelaxation` (int >= 0, 0): over-relaxation sweeps after each.
    /// - `first` (int >= 0, the field's `sweeps`): number of the first sweep. The number of a sweep fixes its random
    ///   numbers.
    /// - `observe` (function): called after every sweep as `|sweep, links| ..`, with the field's number of sweeps and
    ///   the field.
    /// - `seed` (int or string, the session's): the seed of the random numbers.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::heatbath(lattice::hypercubic(4, 4, 4, 4), #{ beta: 1.0, sweeps: 10, seed: 1, progress: false });
    /// assert_close(gauge::plaquette(u), 1.0 / 18.0 + 1.0 / 216.0, 0.03);   // strong coupling
    /// u = gauge::heatbath(u, #{ beta: 1.0, seed: 1, progress: false });
    /// assert(u.sweeps == 11, "ten and one");
    /// let action = [];
    /// let observe = |sweep, u| action.push(gauge::plaquette(u));
    /// gauge::heatbath(u, #{ beta: 1.0, sweeps: 3, seed: 1, progress: false, observe: observe });
    /// assert(action.len == 3, "one a sweep");
    /// ```
    #[rhai_fn(name = "heatbath", return_raw)]
    pub fn heatbath_field(ctx: NativeCallContext, start: Links, o: Options) -> Fallible<Links> {
        let run = Heatbath {
            beta: o.float("beta")?,
            sweeps: o.count("sweeps")?,
            overrelaxation: o.count("overrelaxation")?,
            seed: o.seed()?,
            first: o.maybe_count("first")?.unwrap_or(start.sweeps()),
        };
        let observe = o.function("observe");
        let calls = Callback::new(&ctx);
        let mut each = |links: &Links| match &observe {
            Some(f) => calls.call(f, (links.sweeps() as INT, links.clone())).map(drop),
            None => Ok(()),
        };
        let made = gauge::heatbath(&start, &run, &mut each, &o.task()?);
        calls.finish(made)
    }

    /// The field after over-relaxation sweeps alone (Creutz 1987). Every link is reflected in its SU(2) subgroups. This
    /// changes the field strongly but keeps its Wilson action. No random numbers are used, and `sweeps` of the field
    /// does not change.
    ///
    /// # Options
    /// - `sweeps` (int >= 0, 1): over-relaxation sweeps.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.5);
    /// let v = gauge::overrelax(u, #{ sweeps: 3, progress: false });
    /// assert_close(gauge::plaquette(v), gauge::plaquette(u), 1e-13);
    /// assert((v.link(0, 0) - u.link(0, 0)).norm() > 0.1, "it moved");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn overrelax(u: Links, o: Options) -> Fallible<Links> {
        let (sweeps, task) = (o.count("sweeps")?, o.task()?);
        Ok(gauge::overrelax(&u, sweeps, &task)?)
    }

    #[rhai_fn(name = "heatbath", return_raw)]
    pub fn heatbath_cold(ctx: NativeCallContext, lattice: Lattice, o: Options) -> Fallible<Links> {
        let start = cold(&lattice)?;
        heatbath_field(ctx, start, o)
    }
}
