//! Infinite chains: `CellMpo`, `UniformSearch`, and `UniformState`, what they end with.

use std::rc::Rc;
use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT, Map};

use super::held::number;
use super::{Either, either, either_map};
use crate::error::{Error, Result};
use crate::manybody::dmrg::{Cell, Repeated, Search, Uniform, lowest_cell_product};
use crate::manybody::{OpSum, Sites};
use crate::number::memory::human;
use crate::number::{C64, Series};
use crate::script::api::manybody::sector_of;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Registers the types and functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Arc<Repeated>>("CellMpo");
    rooms.register_type_with_name::<AnySearch>("UniformSearch");
    rooms.register_type_with_name::<HeldUniform>("UniformState");
    rooms.room("dmrg", exported_module!(uniform_functions));
}

/// A search, as scripts hold it.
pub(super) type AnySearch = Either<Arc<Search<f64>>, Arc<Search<C64>>>;
/// A state of an infinite chain.
pub(super) type AnyUniform = Either<Arc<Uniform<f64>>, Arc<Uniform<C64>>>;

/// A state of an infinite chain and how it was found, as scripts hold it.
#[derive(Clone)]
pub(in crate::script) struct HeldUniform {
    pub(super) state: AnyUniform,
    pub(super) about: Rc<Map>,
}

impl HeldUniform {
    pub(super) fn cell(&self) -> Arc<Cell> {
        either!(&self.state, s => s.cell().clone())
    }

    fn known(&self, key: &str) -> Result<Dynamic> {
        self.about.get(key).map(Dynamic::flatten_clone).ok_or_else(|| {
            Error::input(format!("this state does not know its `{key}`"))
                .hint("states that `dmrg::uniform` finds know it; `state.expect(h)` is the energy of any state")
        })
    }
}

/// The local states of a cell by their names.
fn named(cell: &Cell, names: &Array) -> Result<Vec<usize>> {
    let n = cell.sites.count();
    if names.len() != n {
        return Err(Error::input(format!("{} local states for a cell of {}", names.len(), cell.sites))
            .hint("a product state has one for each site of the cell"));
    }
    let one = |(i, name): (usize, &Dynamic)| {
        let name = name.clone().into_string();
        let name = name.map_err(|_| Error::input("local states are given by name"))?;
        cell.sites.site(i)?.state(&name)
    };
    names.iter().enumerate().map(one).collect()
}

fn search_from(h: &Arc<Repeated>, state: &AnyUniform) -> Result<AnySearch> {
    Ok(match state {
        Either::Real(s) if !h.mpo.is_complex() => Either::Real(Search::new(h, (**s).clone())?.into()),
        any => Either::Complex(Search::new(h, either!(any, s => s.to_complex()))?.into()),
    })
}

#[export_module(root = "crate::script::native")]
mod uniform_functions {
    /// The automaton of a sum whose terms every cell of an infinite chain repeats.
    #[rhai_fn(return_raw)]
    pub fn cell_mpo(h: OpSum, cell: Sites, sector: Map) -> Fallible<Arc<Repeated>> {
        let cell = Cell::new(&cell, &sector_of(&sector)?)?;
        Ok(Arc::new(Repeated::new(&h, &cell)?))
    }

    /// How many operators the automaton carries across each bond of the cell.
    #[rhai_fn(global, get = "widths", pure)]
    pub fn cell_widths(h: &mut Arc<Repeated>) -> Series {
        let mut widths = h.mpo.widths();
        widths.pop();
        Series::Real(widths.into_iter().map(|w| w as f64).collect())
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn mpo_to_string(h: &mut Arc<Repeated>) -> String {
        let widest = h.mpo.widths().into_iter().max().unwrap_or(0);
        format!("CellMpo of {}, at most {widest} operators carried across a bond", h.cell.sites)
    }

    /// The product state of an infinite chain whose cell has the named local states.
    #[rhai_fn(return_raw)]
    pub fn uniform_product(cell: Sites, names: Array, sector: Map) -> Fallible<HeldUniform> {
        let cell = Cell::new(&cell, &sector_of(&sector)?)?;
        let state = Uniform::<f64>::product(&cell, &named(&cell, &names)?)?;
        Ok(HeldUniform { state: Either::Real(state.into()), about: Rc::default() })
    }

    /// The names of the local states of a product state of the cell that is low in energy.
    #[rhai_fn(return_raw)]
    pub fn lowest_of_cell(h: OpSum, cell: Sites, sector: Map) -> Fallible<Array> {
        let cell = Cell::new(&cell, &sector_of(&sector)?)?;
        let states = lowest_cell_product(&h, &cell)?;
        let name = |(i, s): (usize, usize)| -> Result<Dynamic> {
            Ok(cell.sites.site(i)?.states()[s].clone().into())
        };
        Ok(states.into_iter().enumerate().map(name).collect::<Result<Array>>()?)
    }

    /// A search for the ground state of an infinite chain, from a state of it.
    #[rhai_fn(return_raw)]
    pub fn uniform_search(h: Arc<Repeated>, start: HeldUniform) -> Fallible<AnySearch> {
        Ok(search_from(&h, &start.state)?)
    }

    /// One step of the variational algorithm.
    #[rhai_fn(global, name = "step", pure, return_raw)]
    pub fn step(run: &mut AnySearch) -> Fallible<AnySearch> {
        let session = session()?;
        let (device, task) = (session.device(), session.task(false));
        Ok(either_map!(run, s => Arc::new(s.step(&device, &task)?)))
    }

    /// The search with bonds of up to `states` states.
    #[rhai_fn(global, name = "widened", pure, return_raw)]
    pub fn widened(run: &mut AnySearch, states: INT) -> Fallible<AnySearch> {
        let device = session()?.device();
        let states = usize::try_from(states).unwrap_or(0);
        Ok(either_map!(run, s => Arc::new(s.widened(&device, states)?)))
    }

    /// The search with bonds of at most `states` states.
    #[rhai_fn(global, name = "cut", pure, return_raw)]
    pub fn cut(run: &mut AnySearch, states: INT, least: f64) -> Fallible<AnySearch> {
        let states = usize::try_from(states).unwrap_or(0);
        Ok(either_map!(run, s => Arc::new(s.cut(states, least)?.0)))
    }

    /// The energy of a cell, of the state that the last step began with.
    #[rhai_fn(global, get = "cell_energy", pure)]
    pub fn cell_energy(run: &mut AnySearch) -> Dynamic {
        either!(run, s => s.found()).map_or(Dynamic::UNIT, |f| f.energy.into())
    }

    /// The gradient norm of the state that the last step began with.
    #[rhai_fn(global, get = "gradient", pure)]
    pub fn gradient(run: &mut AnySearch) -> Dynamic {
        either!(run, s => s.found()).map_or(Dynamic::UNIT, |f| f.gradient.into())
    }

    /// Most states of a bond.
    #[rhai_fn(global, get = "states", pure)]
    pub fn search_states(run: &mut AnySearch) -> INT {
        either!(run, s => s.state().widths()).into_iter().max().unwrap_or(0) as INT
    }

    /// The state in canonical form with its energy.
    #[rhai_fn(global, name = "settled", pure, return_raw)]
    pub fn settled(run: &mut AnySearch) -> Fallible<HeldUniform> {
        let session = session()?;
        let (device, task) = (session.device(), session.task(false));
        let mut about = Map::new();
        let state = either_map!(run, s => {
            let (psi, found, beyond) = s.settled(&device, &task)?;
            about.insert("energy".into(), (found.energy / psi.len() as f64).into());
            about.insert("gradient".into(), found.gradient.into());
            about.insert("beyond".into(), beyond.into());
            Arc::new(psi)
        });
        Ok(HeldUniform { state, about: Rc::new(about) })
    }

    /// The energy a site.
    #[rhai_fn(global, get = "energy", pure, return_raw)]
    pub fn energy(held: &mut HeldUniform) -> Fallible<Dynamic> {
        Ok(held.known("energy")?)
    }

    #[rhai_fn(global, get = "about", pure)]
    pub fn about(held: &mut HeldUniform) -> Map {
        (*held.about).clone()
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(held: &mut HeldUniform) -> String {
        let energy = match held.about.get("energy").and_then(|e| e.as_float().ok()) {
            Some(e) => format!(", energy {e:.12} a site"),
            None => String::new(),
        };
        either!(&held.state, s => {
            let most = s.widths().into_iter().max().unwrap_or(1);
            format!(
                "UniformState of a cell of {}, at most {most} states a bond, {}{energy}",
                s.cell().sites,
                human(s.bytes())
            )
        })
    }
}
