//! `UniformGrowth`: an infinite chain that grows from its middle, on the way to its ground state.

use std::rc::Rc;
use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Dynamic, FLOAT, INT, Map};

use super::uniform::HeldUniform;
use super::{Either, either, either_map};
use crate::manybody::Sites;
use crate::manybody::dmrg::{ChainGrowth, Growing, Repeated, UnitCell};
use crate::number::C64;
use crate::script::api::manybody::sector_of;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Registers the type and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<AnyGrowth>("UniformGrowth");
    rooms.room("dmrg", exported_module!(growth_functions));
}

/// A chain under growth, as scripts hold it.
type AnyGrowth = Either<Arc<ChainGrowth<f64>>, Arc<ChainGrowth<C64>>>;

#[export_module(root = "crate::script::native")]
mod growth_functions {
    /// A chain that grows in its middle towards the ground state of an infinite chain (McCulloch 2008). It starts from
    /// a state of a cell of at least two sites; `grown` returns the next, longer chain. `energy` (per site) is what the
    /// last cell has added. `mismatch` is the distance of the Schmidt values from those of the previous cell; it is 0
    /// if another cell changes nothing. `state()` is the infinite state whose cells are all like the last one.
    ///
    /// # Example
    /// ```rhai
    /// let cell = sites("S=1/2", 2);
    /// let m = dmrg::cell_mpo(models::heisenberg(sites("S=1/2", 8)).cell(2), cell, #{ Sz: 0 });
    /// let chain = dmrg::uniform_growth(m, dmrg::uniform_product(cell, ["Up", "Dn"], #{ Sz: 0 }));
    /// for k in 0..60 { chain = chain.grown(#{ states: 16 }); }
    /// assert_close(chain.energy, 0.25 - log(2.0), 1e-3);
    /// assert(chain.states == 16 && chain.discarded < 1e-5 && chain.mismatch < 1e-2, "nearly the infinite chain");
    /// assert_close(chain.state().expect("Sz").sum(), 0.0, 1e-10);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn uniform_growth(h: Arc<Repeated>, start: HeldUniform) -> Fallible<AnyGrowth> {
        Ok(match &start.state {
            Either::Real(s) if !h.mpo.is_complex() => Either::Real(ChainGrowth::new(&h, s)?.into()),
            any => Either::Complex(ChainGrowth::new(&h, &either!(any, s => s.to_complex()))?.into()),
        })
    }

    /// The chain with one more cell in its middle.
    ///
    /// # Options
    /// - `states` (int >= 1, 64): largest number of states at a bond.
    /// - `cutoff` (0 <= float < 1, 1e-16): states of smaller weight are dropped.
    /// - `doubt` (false): look for lower states that are orthogonal to the prediction.
    #[rhai_fn(global, name = "grown", pure, return_raw)]
    pub fn grown(chain: &mut AnyGrowth, o: Options) -> Fallible<AnyGrowth> {
        let session = session()?;
        let (device, task) = (session.device(), session.task(false));
        let how = Growing { states: o.count("states")?, cutoff: o.float("cutoff")?, doubt: o.flag("doubt")? };
        Ok(either_map!(chain, s => Arc::new(s.step(&device, &how, &task)?)))
    }

    #[rhai_fn(global, get = "energy", pure)]
    pub fn growth_energy(chain: &mut AnyGrowth) -> Dynamic {
        let n = either!(chain, s => s.cell().count()) as f64;
        either!(chain, s => s.found()).map_or(Dynamic::UNIT, |f| (f.energy / n).into())
    }

    /// The distance of the Schmidt values in the middle from those of the previous cell; not defined before the second
    /// cell.
    #[rhai_fn(global, get = "mismatch", pure)]
    pub fn growth_mismatch(chain: &mut AnyGrowth) -> Dynamic {
        either!(chain, s => s.found()).map_or(Dynamic::UNIT, |f| f.mismatch.into())
    }

    /// The largest weight discarded at a bond in the last step.
    #[rhai_fn(global, get = "discarded", pure)]
    pub fn growth_discarded(chain: &mut AnyGrowth) -> FLOAT {
        either!(chain, s => s.found()).map_or(0.0, |f| f.lost)
    }

    /// The largest number of states at a bond.
    #[rhai_fn(global, get = "states", pure)]
    pub fn growth_states(chain: &mut AnyGrowth) -> INT {
        either!(chain, s => s.states()) as INT
    }

    /// The state of an infinite chain in which every cell is like the last one added.
    #[rhai_fn(global, name = "state", pure, return_raw)]
    pub fn growth_state(chain: &mut AnyGrowth) -> Fallible<HeldUniform> {
        let state = either_map!(chain, s => Arc::new(s.state()?));
        Ok(HeldUniform { state, about: Rc::default() })
    }

    /// The same state in a shorter cell, if the present cell is several copies of it. `alike` of the result is 1 if all
    /// copies are equal. It is smaller if the state repeats only with the longer cell.
    ///
    /// # Example
    /// ```rhai
    /// let two = dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Up"], #{});
    /// assert_close(two.folded(sites("S=1/2", 1), #{}).about.alike, 1.0, 1e-12);
    /// ```
    #[rhai_fn(global, name = "folded", pure, return_raw)]
    pub fn folded(held: &mut HeldUniform, cell: Sites, sector: Map) -> Fallible<HeldUniform> {
        let cell = UnitCell::new(&cell, &sector_of(&sector)?)?;
        let alike: f64;
        let state = either_map!(&held.state, s => {
            let (psi, part) = s.folded(&cell)?;
            alike = part;
            Arc::new(psi)
        });
        let about = Map::from_iter([("alike".into(), alike.into())]);
        Ok(HeldUniform { state, about: Rc::new(about) })
    }

    /// The same state in a cell of `times` copies of the present one.
    ///
    /// # Example
    /// ```rhai
    /// let up = dmrg::uniform_product(sites("S=1/2", 1), ["Up"], #{ Sz: 0.5 });
    /// assert(up.repeated(3).states.len == 3 && up.repeated(3).sector.Sz == 1.5, "three sites");
    /// ```
    #[rhai_fn(global, name = "repeated", pure, return_raw)]
    pub fn repeated(held: &mut HeldUniform, times: INT) -> Fallible<HeldUniform> {
        let own = held.cell();
        let times = usize::try_from(times).unwrap_or(0);
        let sites = own.sites.repeated(times)?;
        let sector = own.sector().into_iter().map(|(name, q)| (name, q * times as f64)).collect();
        let cell = UnitCell::new(&sites, &sector)?;
        let state = either_map!(&held.state, s => Arc::new(s.repeated(&cell)?));
        Ok(HeldUniform { state, about: held.about.clone() })
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn growth_to_string(chain: &mut AnyGrowth) -> String {
        either!(chain, s => {
            format!("UniformGrowth by cells of {}, at most {} states a bond", s.cell().sites, s.states())
        })
    }
}
