//! `CellMpo` and `UniformSearch`: Hamiltonians of infinite chains, and the way to their ground states.

use std::rc::Rc;
use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, FLOAT, INT, Map};

use super::uniform::{AnyUniform, HeldUniform};
use super::{Either, either, either_map};
use crate::error::Result;
use crate::manybody::dmrg::{Repeated, Uniform, UniformSearch, UnitCell, lowest_cell_product};
use crate::manybody::{OpSum, Sites};
use crate::number::{C64, Series};
use crate::script::api::manybody::{sector_of, states_of};
use crate::script::native::Float;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Registers the types and functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Arc<Repeated>>("CellMpo");
    rooms.register_type_with_name::<AnySearch>("UniformSearch");
    rooms.room("dmrg", exported_module!(search_functions));
}

/// A search, as scripts hold it.
type AnySearch = Either<Arc<UniformSearch<f64>>, Arc<UniformSearch<C64>>>;

/// Random numbers that are set aside for a state.
const DRAWN: u64 = 1 << 20;

fn search_from(h: &Arc<Repeated>, state: &AnyUniform) -> Result<AnySearch> {
    Ok(match state {
        Either::Real(s) if !h.mpo.is_complex() => Either::Real(UniformSearch::new(h, (**s).clone())?.into()),
        any => Either::Complex(UniformSearch::new(h, either!(any, s => s.to_complex()))?.into()),
    })
}

#[export_module(root = "crate::script::native")]
mod search_functions {
    /// The automaton of a sum of operators that every cell of an infinite chain repeats, in the sector of the cell's
    /// conserved numbers. Sites beyond the cell are those of the following cells. `widths` are the numbers of operators
    /// carried across each bond, beginning with the bond before the cell.
    ///
    /// # Example
    /// ```rhai
    /// let h = opsum();
    /// h.add_decaying(1.0, 0.5, "Sz", 0, "Sz");
    /// let m = dmrg::cell_mpo(h, sites("S=1/2", 1), #{});
    /// assert(m.widths[0] == 3.0, "one more than nothing at all");
    /// assert(m.strength == 0.5 && m.unit == 1.0, "a quarter, an eighth, ..");
    /// assert(m.hash == dmrg::cell_mpo(h, sites("S=1/2", 1), #{}).hash, "the same Hamiltonian");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn cell_mpo(h: OpSum, cell: Sites, sector: Map) -> Fallible<Arc<Repeated>> {
        let cell = UnitCell::new(&cell, &sector_of(&sector)?)?;
        Ok(Arc::new(Repeated::new(&h, &cell)?))
    }

    #[rhai_fn(global, get = "widths", pure)]
    pub fn cell_widths(h: &mut Arc<Repeated>) -> Series {
        let mut widths = h.mpo.widths();
        widths.pop();
        Series::Real(widths.into_iter().map(|w| w as f64).collect())
    }

    /// The sum of the sizes of the terms that act on a site, at the site of the cell where it is largest.
    #[rhai_fn(global, get = "strength", pure)]
    pub fn cell_strength(h: &mut Arc<Repeated>) -> FLOAT {
        h.strength.all
    }

    /// As `strength`, but only of the terms that change product states, and at least 1e-4 of `strength`; without such
    /// terms it is `strength`.
    #[rhai_fn(global, get = "off_diagonal", pure)]
    pub fn cell_off_diagonal(h: &mut Arc<Repeated>) -> FLOAT {
        h.strength.off_diagonal
    }

    /// The energy unit of tolerances: 1, or a power of two near `strength` if `strength` is below 0.01 or above 1e4.
    #[rhai_fn(global, get = "unit", pure)]
    pub fn cell_unit(h: &mut Arc<Repeated>) -> FLOAT {
        crate::method::unit_of(h.strength.all)
    }

    /// A number that tells Hamiltonians and sectors apart.
    #[rhai_fn(global, get = "hash", pure)]
    pub fn cell_hash(h: &mut Arc<Repeated>) -> INT {
        h.mpo.fingerprint() as INT
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn mpo_to_string(h: &mut Arc<Repeated>) -> String {
        let widest = h.mpo.widths().into_iter().max().unwrap_or(0);
        format!("CellMpo of {}, at most {widest} operators carried across a bond", h.cell.sites)
    }

    /// The product state of an infinite chain whose cell has the named local states.
    ///
    /// # Example
    /// ```rhai
    /// let neel = dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// assert_close(neel.expect("Sz")[1], -0.5, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn uniform_product(cell: Sites, names: Array, sector: Map) -> Fallible<HeldUniform> {
        let cell = UnitCell::new(&cell, &sector_of(&sector)?)?;
        let state = Uniform::<f64>::product(&cell, &states_of(&cell.sites, &names)?)?;
        Ok(HeldUniform { state: Either::Real(state.into()), about: Rc::default() })
    }

    /// A random state of an infinite chain, with few states at each bond and the conserved numbers of a product state's
    /// cell.
    ///
    /// # Options
    /// - `states` (int >= 1, 6): largest number of states at a bond.
    /// - `seed` (int or string, the session's): seed of the random numbers.
    ///
    /// # Example
    /// ```rhai
    /// let psi = dmrg::uniform_random(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 }, #{ seed: 1 });
    /// assert_close(psi.expect("Sz").sum(), 0.0, 1e-10);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn uniform_random(cell: Sites, names: Array, sector: Map, o: Options) -> Fallible<HeldUniform> {
        let cell = UnitCell::new(&cell, &sector_of(&sector)?)?;
        let first = match o.given("seed") {
            Some(_) => 0,
            None => session()?.draw(DRAWN),
        };
        let (product, most) = (states_of(&cell.sites, &names)?, o.count("states")?);
        let state = Uniform::<f64>::random(&cell, &product, most, o.seed()?, first)?;
        Ok(HeldUniform { state: Either::Real(state.into()), about: Rc::default() })
    }

    /// The names of the local states of a product state of a cell with low energy. Among the product states of the
    /// lowest `<H>` it is the one that the Hamiltonian changes most.
    ///
    /// # Example
    /// ```rhai
    /// let h = models::heisenberg(sites("S=1/2", 8)).cell(2);
    /// assert(dmrg::lowest_of_cell(h, sites("S=1/2", 2), #{ Sz: 0 }) == ["Up", "Dn"], "Neel");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn lowest_of_cell(h: OpSum, cell: Sites, sector: Map) -> Fallible<Array> {
        let cell = UnitCell::new(&cell, &sector_of(&sector)?)?;
        let states = lowest_cell_product(&h, &cell)?;
        let name = |(i, s): (usize, usize)| -> Result<Dynamic> {
            Ok(cell.sites.site(i)?.states()[s].clone().into())
        };
        Ok(states.into_iter().enumerate().map(name).collect::<Result<Array>>()?)
    }

    /// A search for the ground state of an infinite chain, starting from a state of this chain. `step`, `widened` and
    /// `cut` each return a new search. `energy` (per site) and `gradient` belong to the state before the last step.
    ///
    /// # Example
    /// ```rhai
    /// let cell = sites("S=1/2", 2);
    /// let m = dmrg::cell_mpo(models::heisenberg(sites("S=1/2", 8)).cell(2), cell, #{ Sz: 0 });
    /// let run = dmrg::uniform_search(m, dmrg::uniform_product(cell, ["Up", "Dn"], #{ Sz: 0 }));
    /// for states in [2, 4, 8] {
    ///     run = run.widened(states);
    ///     for k in 0..30 { run = run.step(); }
    /// }
    /// assert_close(run.settled().energy, -0.44275, 1e-4);
    /// assert(run.states == 8 && run.cut(4, 0.0).states == 4, "fewer states have a higher energy");
    /// assert(run.reshared(8, 1e-12, 10.0).moved == 0, "they are where they have the most weight");
    /// assert(run.state().cell.len == 2 && !run.state().complex, "two sites");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn uniform_search(h: Arc<Repeated>, start: HeldUniform) -> Fallible<AnySearch> {
        Ok(search_from(&h, &start.state)?)
    }

    /// One step of all sites of the cell by the variational algorithm for uniform matrix product states (Zauner-Stauber
    /// et al. 2018).
    #[rhai_fn(global, name = "step", pure, return_raw)]
    pub fn step(run: &mut AnySearch) -> Fallible<AnySearch> {
        let session = session()?;
        let (device, task) = (session.device(), session.task(false));
        Ok(either_map!(run, s => Arc::new(s.step(&device, &task)?)))
    }

    /// The search with bonds of up to `states` states. New states are those that the Hamiltonian adds on two
    /// neighbouring sites. The state itself does not change.
    #[rhai_fn(global, name = "widened", pure, return_raw)]
    pub fn widened(run: &mut AnySearch, states: INT) -> Fallible<AnySearch> {
        let device = session()?.device();
        let states = usize::try_from(states).unwrap_or(0);
        Ok(either_map!(run, s => Arc::new(s.widened(&device, states)?)))
    }

    /// The search with bonds of at most `states` states and without states of weight below `least`.
    #[rhai_fn(global, name = "cut", pure, return_raw)]
    pub fn cut(run: &mut AnySearch, states: INT, least: Float) -> Fallible<AnySearch> {
        let states = usize::try_from(states).unwrap_or(0);
        Ok(either_map!(run, s => Arc::new(s.cut(states, least)?.0)))
    }

    /// The search with its states moved to the sectors, and the kinds of states within them, where the ground state of
    /// two neighbouring sites has more weight. A state is replaced by one of at least `gain` times its weight. At most
    /// `states` remain at a bond, and none of weight below `least`. `moved` is the number of replaced states.
    #[rhai_fn(global, name = "reshared", pure, return_raw)]
    pub fn reshared(run: &mut AnySearch, states: INT, least: Float, gain: Float) -> Fallible<AnySearch> {
        let session = session()?;
        let (device, task) = (session.device(), session.task(false));
        let most = (usize::try_from(states).unwrap_or(0), least, gain);
        Ok(either_map!(run, s => Arc::new(s.reshared(&device, most, &task)?)))
    }

    /// The number of states that `reshared` has moved to other sectors.
    #[rhai_fn(global, get = "moved", pure)]
    pub fn search_moved(run: &mut AnySearch) -> INT {
        either!(run, s => s.moved()) as INT
    }

    #[rhai_fn(global, get = "energy", pure)]
    pub fn search_energy(run: &mut AnySearch) -> Dynamic {
        either!(run, s => s.found().map(|f| f.energy / s.state().count() as f64))
            .map_or(Dynamic::UNIT, Dynamic::from)
    }

    #[rhai_fn(global, get = "gradient", pure)]
    pub fn search_gradient(run: &mut AnySearch) -> Dynamic {
        either!(run, s => s.found()).map_or(Dynamic::UNIT, |f| f.gradient.into())
    }

    /// The largest number of states at a bond.
    #[rhai_fn(global, get = "states", pure)]
    pub fn search_states(run: &mut AnySearch) -> INT {
        either!(run, s => s.state().widths()).into_iter().max().unwrap_or(0) as INT
    }

    /// The present state, in canonical form.
    #[rhai_fn(global, name = "state", pure, return_raw)]
    pub fn search_state(run: &mut AnySearch) -> Fallible<HeldUniform> {
        let state = either_map!(run, s => Arc::new(s.state().regauged()?));
        Ok(HeldUniform { state, about: Rc::default() })
    }

    /// The state in canonical form, with its energy per site, its `gradient` and its `variance`.
    #[rhai_fn(global, name = "settled", pure, return_raw)]
    pub fn settled(run: &mut AnySearch) -> Fallible<HeldUniform> {
        let session = session()?;
        let (device, task) = (session.device(), session.task(false));
        let mut about = Map::new();
        let state = either_map!(run, s => {
            let (psi, found, variance) = s.settled(&device, &task)?;
            about.insert("energy".into(), (found.energy / psi.count() as f64).into());
            about.insert("gradient".into(), found.gradient.into());
            about.insert("variance".into(), variance.into());
            Arc::new(psi)
        });
        Ok(HeldUniform { state, about: Rc::new(about) })
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn search_to_string(run: &mut AnySearch) -> String {
        let states = either!(run, s => s.state().widths()).into_iter().max().unwrap_or(0);
        format!("UniformSearch with {states} states a bond")
    }
}
