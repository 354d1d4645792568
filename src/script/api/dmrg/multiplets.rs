//! States of total spin: their components, and the products of their spins.

use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Dynamic, FLOAT};

use super::held::ScriptDmrgState;
use super::state::chosen;
use super::{either, either_map};
use crate::error::{Error, Result};
use crate::number::{C64, Matrix, Series};
use crate::script::native::Float;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Registers the functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("dmrg", exported_module!(multiplet_functions));
}

/// `<S_i . S_j>` of some places of the chain, which ascend.
fn products(held: &ScriptDmrgState, places: &[usize]) -> Result<Vec<f64>> {
    let task = session()?.task(true);
    if either!(&held.state, s => s.spin()).is_some() {
        return either!(&held.state, s => s.spin_products(places, &task));
    }
    let all = |a: &str, b: &str| -> Result<Vec<C64>> {
        either!(&held.state, s => s.correlations(a, b, places, &task))
    };
    let (zz, pm, mp) = (all("Sz", "Sz")?, all("S+", "S-")?, all("S-", "S+")?);
    Ok((0..zz.len()).map(|k| (zz[k] + 0.5 * (pm[k] + mp[k])).re).collect())
}

#[export_module(root = "crate::script::native")]
mod multiplet_functions {
    /// The component with Sz = `m` of a state of total spin, as a DmrgState of the sector of Sz, for functions that
    /// need a definite component. Its bonds have about three times as many states.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1", 6);
    /// let gs = dmrg::finite(models::heisenberg(chain), chain, #{ sector: #{ S: 1 }, states: 30, progress: false });
    /// assert_close(gs.component(1.0).expect("Sz").sum(), 1.0, 1e-12);
    /// assert_close(gs.component(0.0).expect("Sz").sum(), 0.0, 1e-12);
    /// ```
    #[rhai_fn(global, name = "component", pure, return_raw)]
    pub fn component(held: &mut ScriptDmrgState, m: Float) -> Fallible<ScriptDmrgState> {
        let twice = (2.0 * m).round();
        if !((2.0 * m - twice).abs() < 1e-9 && twice.abs() < 1e9) {
            return Err(Error::input(format!("a component Sz = {m}")).hint("a multiple of 1/2").into());
        }
        let state = either_map!(&held.state, s => Arc::new(s.component(twice as i32)?));
        let mut component = held.beside(state);
        for key in ["energy", "variance", "converged"] {
            if let Some(value) = held.about.get(key) {
                component = component.knowing(key, value.clone());
            }
        }
        Ok(component)
    }

    /// The total spin of a state that was found in a sector of S; otherwise `()`.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 2);
    /// let gs = dmrg::finite(models::heisenberg(chain), chain, #{ sector: #{ S: 0 }, progress: false });
    /// assert(gs.total_spin == 0.0, "a singlet");
    /// assert(gs.component(0.0).total_spin == (), "one component");
    /// ```
    #[rhai_fn(global, get = "total_spin", pure)]
    pub fn total_spin(held: &mut ScriptDmrgState) -> Dynamic {
        let twice = either!(&held.state, s => s.spin());
        twice.map_or(Dynamic::UNIT, |twice| (FLOAT::from(twice) / 2.0).into())
    }

    /// The scalar products `<S_i . S_j>` of the spins of all pairs of sites, with one row per i and `s (s + 1)` on the
    /// diagonal.
    ///
    /// # Options
    /// - `sites` (any, all): an array of the sites, ascending.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 2);
    /// let gs = dmrg::finite(models::heisenberg(chain), chain, #{ sector: #{ S: 0 }, progress: false });
    /// assert_close(gs.spin_correlations().at(0, 1), -0.75, 1e-12);
    /// ```
    #[rhai_fn(global, name = "spin_correlations", pure, return_raw)]
    pub fn spin_correlations(held: &mut ScriptDmrgState, o: Options) -> Fallible<Matrix> {
        held.need_some()?;
        let sites = chosen(held, &o)?;
        let (places, which) = held.places(&sites)?;
        let found = products(held, &places)?;
        let n = sites.len();
        let mut values = vec![0.0; n * n];
        for (i, row) in which.iter().enumerate() {
            which.iter().enumerate().for_each(|(j, column)| values[row * n + column] = found[i * n + j]);
        }
        Ok(Matrix::new(n, n, Series::Real(values))?)
    }
}
