//! `DmrgState`: what sweeps end with, and what it is asked.

use std::rc::Rc;
use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, FLOAT, INT, Map};

use super::algebra::{ascending, complex, cut_of};
use super::density::state_of;
use super::held::{ScriptDmrgState, by_bond, number, save_state, simple};
use super::order::{order_of, to_array};
use super::reading::load_state;
use super::{AnyBlock, Either, either};
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::dmrg::{ChainBlock, MatrixProductState, Mpo, Truncation};
use crate::manybody::{OpSum, Sites};
use crate::number::memory::human;
use crate::number::{C64, Matrix, Series, Table, format};
use crate::operator::Operator;
use crate::script::api::manybody::{sector_of, states_of};
use crate::script::api::vector::Vector;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Registers the type and functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<ScriptDmrgState>("DmrgState");
    rooms.room("dmrg", exported_module!(state_functions));
}

/// The sites that the option `sites` names; all of them without it.
pub(super) fn chosen(held: &ScriptDmrgState, o: &Options) -> Result<Vec<usize>> {
    let n = either!(&held.state, s => s.sites().count());
    let Some(value) = o.given("sites") else { return Ok((0..n).collect()) };
    let wrong = || {
        Error::input(format!("option `sites` takes an array of site numbers, ascending, not {value}"))
            .hint(format!("sites are numbered from 0 to {}", n - 1))
    };
    value.read_lock::<Array>().and_then(|array| ascending(&array, n)).ok_or_else(wrong)
}

/// The right blocks of a chain in a state's own basis and what others have beside it.
fn right_blocks_of(
    mpo: &Arc<Mpo>,
    state: &ScriptDmrgState,
    others: &[ScriptDmrgState],
    cut: &Truncation,
) -> Result<Array> {
    fn all<T: Element>(
        mpo: &Arc<Mpo>,
        state: &MatrixProductState<T>,
        others: &[MatrixProductState<T>],
        cut: &Truncation,
        wrap: impl Fn(Arc<ChainBlock<T>>) -> AnyBlock,
    ) -> Result<Array> {
        let others: Vec<&MatrixProductState<T>> = others.iter().collect();
        let mut array = vec![Dynamic::UNIT];
        let blocks = state.wide_right_blocks(mpo, &others, cut)?;
        array.extend(blocks.into_iter().map(|b| Dynamic::from(wrap(b))));
        Ok(array)
    }
    state.need_natural()?;
    state.need_some()?;
    if mpo.is_complex() {
        let others: Vec<MatrixProductState<C64>> = others.iter().map(|o| complex(&o.state)).collect();
        return all(mpo, &complex(&state.state), &others, cut, Either::Complex);
    }
    let real = |held: &ScriptDmrgState| match &held.state {
        Either::Real(s) => Ok((**s).clone()),
        Either::Complex(_) => Err(Error::input("a complex state of a real Hamiltonian")
            .hint("make the blocks of a complex automaton: `dmrg::mpo(h, chain, sector).to_complex()`")),
    };
    let others: Vec<MatrixProductState<f64>> = others.iter().map(real).collect::<Result<_>>()?;
    all(mpo, &real(state)?, &others, cut, Either::Real)
}

#[export_module(root = "crate::script::native")]
mod state_functions {
    /// The state of the whole chain that a vector of a superblock represents. The entries of `about`, such as `energy`
    /// and `discarded`, become its properties.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// let both = superblock(dmrg::left_edge(m).extend().grow(), dmrg::right_edge(m).extend().grow());
    /// let ground = davidson(both);
    /// let state = dmrg::state(both, ground.vectors, #{ energy: ground.values[0] });
    /// assert_close(state.expect(models::heisenberg(chain)), state.energy, 1e-9);
    /// ```
    #[rhai_fn(name = "state", return_raw)]
    pub fn whole_state(both: Operator, vectors: Vector, about: Map) -> Fallible<ScriptDmrgState> {
        let state = state_of(&both, &vectors.block, 0)?;
        Ok(ScriptDmrgState { state, about: Rc::new(about) })
    }

    /// The product state with the named local states, in the sector of its conserved numbers.
    ///
    /// # Options
    /// - `order` (array, none): the order of the sites along the chain, as the option of `dmrg::finite` that starts
    ///   from the state: site `order[k]` stands at place `k`. Names stay those of the sites by their numbers.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("Electron", 3);
    /// let state = product_state(chain, ["Up", "Emp", "UpDn"], #{ Nup: 2, Ndn: 1 });
    /// assert_close(state.expect("Ntot").sum(), 3.0, 1e-14);
    /// let other = product_state(chain, ["Up", "Emp", "UpDn"], #{ Nup: 2, Ndn: 1 }, #{ order: [0, 2, 1] });
    /// assert_close(other.expect("Ntot")[2], 2.0, 1e-14);
    /// ```
    #[rhai_fn(global, name = "product_state", return_raw)]
    pub fn product_state(sites: Sites, names: Array, sector: Map, o: Options) -> Fallible<ScriptDmrgState> {
        let states = states_of(&sites, &names)?;
        let order = match o.given("order") {
            None => None,
            Some(value) => {
                let wrong =
                    || Error::input(format!("option `order` takes an array of site numbers, not {value}"));
                Some(order_of(&value.clone().try_cast::<Array>().ok_or_else(wrong)?)?)
            }
        };
        let natural = |order: &Vec<usize>| order.iter().enumerate().all(|(k, site)| k == *site);
        let Some(order) = order.filter(|order| order.len() != sites.count() || !natural(order)) else {
            let state = MatrixProductState::<f64>::product(&sites, &states, &sector_of(&sector)?)?;
            return Ok(ScriptDmrgState { state: Either::Real(Arc::new(state)), about: Rc::default() });
        };
        // Checks the order too.
        let along = sites.reordered(&order)?;
        let states: Vec<usize> = order.iter().map(|&site| states[site]).collect();
        let state = MatrixProductState::<f64>::product(&along, &states, &sector_of(&sector)?)?;
        let about: Map = [("order".into(), Dynamic::from(to_array(&order)))].into_iter().collect();
        Ok(ScriptDmrgState { state: Either::Real(Arc::new(state)), about: Rc::new(about) })
    }

    /// Product states of a sector with low energy, as arrays of names for `product_state` or the option `start`, in
    /// ascending order of the expectation value of `h`. One is the minimum of the diagonal of `h` in the basis of
    /// product states; another also counts the states that `h` mixes with it. They are built site by site, which finds
    /// the minimum if terms reach only few sites along the chain, and by annealing with the session's seed. There may
    /// be only one, or none.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 6);
    /// let walls = dmrg::lowest_products(models::heisenberg(chain, #{ Delta: -2.0 }), chain, #{ Sz: 0 });
    /// let one_wall = [["Up", "Up", "Up", "Dn", "Dn", "Dn"], ["Dn", "Dn", "Dn", "Up", "Up", "Up"]];
    /// assert(walls[0] in one_wall, "either of the two");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn lowest_products(h: OpSum, sites: Sites, sector: Map) -> Fallible<Array> {
        let seed = session()?.seed();
        let mut all = Array::new();
        for (_, states) in crate::manybody::dmrg::lowest_products(&h, &sites, &sector_of(&sector)?, seed)? {
            let name =
                |(site, s): (&Arc<crate::manybody::Site>, usize)| Dynamic::from(site.states()[s].clone());
            all.push(sites.iter().zip(states).map(name).collect::<Array>().into());
        }
        Ok(all)
    }

    /// The right blocks of a chain in the basis of a state: entry `i` contains all sites from `i` on, for `i` from 1 to
    /// the end.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// let neel = product_state(chain, ["Up", "Dn", "Up", "Dn"], #{ Sz: 0.0 });
    /// assert(dmrg::right_blocks(m, neel)[1].states == 1, "one way to continue");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn right_blocks(mpo: Arc<Mpo>, state: ScriptDmrgState) -> Fallible<Array> {
        Ok(right_blocks_of(&mpo, &state, &[], &Truncation::default())?)
    }

    /// As `dmrg::right_blocks(mpo, state)`, in bases enlarged by the right parts of other states (Yang, White 2020):
    /// the missing states with the largest weights are added.
    ///
    /// # Options
    /// - `states` (int >= 1, as many as there are): largest total number of states at a bond.
    /// - `cutoff` (0 <= float < 1, 1e-9): smaller weights of the other states, each of norm 1, are left out.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let h = models::heisenberg(chain);
    /// let neel = product_state(chain, ["Up", "Dn", "Up", "Dn"], #{ Sz: 0.0 });
    /// let wide = dmrg::right_blocks(dmrg::mpo(h, chain, #{ Sz: 0.0 }), neel, [dmrg::apply(h, neel)]);
    /// assert(wide[2].states == 3, "its own, and one spin more or less");
    /// ```
    #[rhai_fn(name = "right_blocks", return_raw)]
    pub fn wide_right_blocks(
        mpo: Arc<Mpo>,
        state: ScriptDmrgState,
        others: Array,
        o: Options,
    ) -> Fallible<Array> {
        let cast = |x: Dynamic| {
            x.try_cast::<ScriptDmrgState>().ok_or_else(|| {
                Error::input("the other states are given as an array of DmrgStates")
                    .hint("write `[psi]` for one")
            })
        };
        let others = others.into_iter().map(cast).collect::<Result<Vec<_>>>()?;
        Ok(cut_of(&o).and_then(|cut| right_blocks_of(&mpo, &state, &others, &cut))?)
    }

    /// Whether its amplitudes are complex.
    #[rhai_fn(global, get = "complex", pure)]
    pub fn is_complex(held: &mut ScriptDmrgState) -> bool {
        matches!(held.state, Either::Complex(_))
    }

    /// `<H>` of the stored state if `dmrg::finite` found it; otherwise the value that was given as `energy`.
    #[rhai_fn(global, get = "energy", pure, return_raw)]
    pub fn energy(held: &mut ScriptDmrgState) -> Fallible<Dynamic> {
        Ok(held.known("energy")?)
    }

    /// The largest weight discarded by a truncation in the last sweep. For states from evolutions, `dmrg::apply` and
    /// `dmrg::combine` it is the sum over all bonds and steps.
    #[rhai_fn(global, get = "discarded", pure, return_raw)]
    pub fn discarded(held: &mut ScriptDmrgState) -> Fallible<Dynamic> {
        Ok(held.known("discarded")?)
    }

    /// `<H^2> - <H>^2` of the stored state: how far it is from an eigenstate of the Hamiltonian of the search.
    /// `state.variance(h)` is the variance of any sum.
    #[rhai_fn(global, get = "variance", pure, return_raw)]
    pub fn known_variance(held: &mut ScriptDmrgState) -> Fallible<Dynamic> {
        Ok(held.known("variance")?)
    }

    /// The lowest energy at any bond of the last sweep, before further truncation. Other programs report this energy.
    #[rhai_fn(global, get = "lowest", pure, return_raw)]
    pub fn lowest(held: &mut ScriptDmrgState) -> Fallible<Dynamic> {
        Ok(held.known("lowest")?)
    }

    /// The order of the sites along the chain of blocks: site `order[k]` is at place `k`; `()` if it is the order of
    /// their numbers. Bonds (`entropy`, `spectrum`, `states`) are those of the chain; sites are always named by their
    /// numbers.
    #[rhai_fn(global, get = "order", pure)]
    pub fn order(held: &mut ScriptDmrgState) -> Dynamic {
        held.about.get("order").cloned().unwrap_or(Dynamic::UNIT)
    }

    /// The energies of all target states, ascending.
    #[rhai_fn(global, get = "energies", pure, return_raw)]
    pub fn energies(held: &mut ScriptDmrgState) -> Fallible<Dynamic> {
        Ok(held.known("energies")?)
    }

    /// The other target states of a search for several, by energy.
    #[rhai_fn(global, get = "excited", pure, return_raw)]
    pub fn excited(held: &mut ScriptDmrgState) -> Fallible<Dynamic> {
        if !held.about.contains_key("excited") && held.about.contains_key("energies") {
            return Ok(Array::new().into());
        }
        Ok(held.known("excited")?)
    }

    /// The table of the sweeps: `sweep`, `energy`, `states`, `discarded` (weight), `entropy` (the largest), `seconds`,
    /// `bytes` (of memory) and `iterations` (of Davidson's method).
    #[rhai_fn(global, get = "sweeps", pure, return_raw)]
    pub fn sweeps(held: &mut ScriptDmrgState) -> Fallible<Dynamic> {
        Ok(held.known("sweeps")?)
    }

    /// Whether the energy had converged before the sweeps ended, with a variance that the discarded weight explains.
    #[rhai_fn(global, get = "converged", pure, return_raw)]
    pub fn converged(held: &mut ScriptDmrgState) -> Fallible<Dynamic> {
        Ok(held.known("converged")?)
    }

    /// All properties of the state, as a map.
    #[rhai_fn(global, get = "about", pure)]
    pub fn about(held: &mut ScriptDmrgState) -> Map {
        (*held.about).clone()
    }

    /// The same state with more properties.
    ///
    /// # Example
    /// ```rhai
    /// let state = product_state(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 }).with_properties(#{ energy: -0.25 });
    /// assert_close(state.energy, -0.25, 0.0);
    /// ```
    #[rhai_fn(global, name = "with_properties", pure)]
    pub fn with_properties(held: &mut ScriptDmrgState, about: Map) -> ScriptDmrgState {
        let mut all = (*held.about).clone();
        all.extend(about);
        ScriptDmrgState { state: held.state.clone(), about: Rc::new(all) }
    }

    /// The entanglement entropy of each bond: a Table of `bond` (0 lies between sites 0 and 1) and `entropy`.
    ///
    /// # Example
    /// ```rhai
    /// let state = product_state(sites("S=1/2", 3), ["Up", "Dn", "Up"], #{ Sz: 0.5 });
    /// assert_close(state.entropy.entropy.max(), 0.0, 1e-14);
    /// ```
    #[rhai_fn(global, get = "entropy", pure, return_raw)]
    pub fn entropy(held: &mut ScriptDmrgState) -> Fallible<Table> {
        held.need_some()?;
        let entropies = either!(&held.state, s => s.entropies())?;
        Ok(by_bond(entropies)?)
    }

    /// The weights of the Schmidt decomposition at a bond, descending:
    /// the entanglement spectrum is minus their logarithm.
    ///
    /// # Example
    /// ```rhai
    /// let state = product_state(sites("S=1/2", 3), ["Up", "Dn", "Up"], #{ Sz: 0.5 });
    /// assert_close(state.spectrum(1)[0], 1.0, 1e-14);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn spectrum(held: &mut ScriptDmrgState, bond: INT) -> Fallible<Series> {
        held.need_some()?;
        let mut all = either!(&held.state, s => s.spectra())?;
        let n = all.len();
        let at = usize::try_from(bond).ok().filter(|b| *b < n);
        let at = at.ok_or_else(|| {
            Error::input(format!("no bond {bond} in a chain of {} sites", n + 1))
                .hint("bond 0 lies between sites 0 and 1")
        })?;
        Ok(Series::Real(all.swap_remove(at)))
    }

    /// The expectation value of an operator on each site. A fermionic operator includes its string of signs.
    ///
    /// # Options
    /// - `sites` (any, all): an ascending array of the sites to measure, for example if other sites do not have the
    ///   operator.
    ///
    /// # Example
    /// ```rhai
    /// let state = product_state(sites("S=1/2", 3), ["Up", "Dn", "Up"], #{ Sz: 0.5 });
    /// assert_close(state.expect("Sz").sum(), 0.5, 1e-14);
    /// ```
    #[rhai_fn(global, name = "expect", pure, return_raw)]
    pub fn expect_some(held: &mut ScriptDmrgState, operator: &str, o: Options) -> Fallible<Series> {
        held.need_some()?;
        let sites = chosen(held, &o)?;
        let (places, which) = held.places(&sites)?;
        let found = either!(&held.state, s => s.local(operator, &places))?;
        let mut values = vec![C64::ZERO; sites.len()];
        which.into_iter().zip(found).for_each(|(k, z)| values[k] = z);
        Ok(simple(values))
    }

    /// The expectation value of a sum of operators.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 3);
    /// let state = product_state(chain, ["Up", "Dn", "Up"], #{ Sz: 0.5 });
    /// assert_close(state.expect(models::heisenberg(chain)), -0.5, 1e-14);
    /// ```
    #[rhai_fn(global, name = "expect", pure, return_raw)]
    pub fn expect_sum(held: &mut ScriptDmrgState, sum: OpSum) -> Fallible<Dynamic> {
        held.need_some()?;
        Ok(held.own(sum).and_then(|sum| either!(&held.state, s => s.expectation(&sum))).map(number)?)
    }

    /// `<(H - <H>)^2>`: how far the state is from an eigenstate.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 2);
    /// let state = product_state(chain, ["Up", "Dn"], #{ Sz: 0.0 });
    /// assert_close(state.variance(models::heisenberg(chain)), 0.25, 1e-14);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn variance(held: &mut ScriptDmrgState, sum: OpSum) -> Fallible<FLOAT> {
        held.need_some()?;
        Ok(held.own(sum).and_then(|sum| either!(&held.state, s => s.variance(&sum))).map(|v| v.0)?)
    }

    /// The correlations `<A_i B_j>` of all pairs of sites, with one row per i. Fermionic signs are included.
    ///
    /// # Options
    /// - `sites` (any, all): an ascending array of the sites to measure, for example if other sites do not have the
    ///   operators.
    ///
    /// # Example
    /// ```rhai
    /// let state = product_state(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0.0 });
    /// assert_close(state.correlations("Sz", "Sz").at(0, 1), -0.25, 1e-14);
    /// ```
    #[rhai_fn(global, name = "correlations", pure, return_raw)]
    pub fn correlations_of(held: &mut ScriptDmrgState, a: &str, b: &str, o: Options) -> Fallible<Matrix> {
        held.need_some()?;
        let task = session()?.task(true);
        let sites = chosen(held, &o)?;
        let (places, which) = held.places(&sites)?;
        let found = either!(&held.state, s => s.correlations(a, b, &places, &task))?;
        let n = sites.len();
        let mut values = vec![C64::ZERO; n * n];
        for (i, row) in which.iter().enumerate() {
            which.iter().enumerate().for_each(|(j, column)| values[row * n + column] = found[i * n + j]);
        }
        Ok(Matrix::new(n, n, simple(values))?)
    }

    /// The scalar product of two states of one chain, norms included; 0 for states of different sectors.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 2);
    /// let a = product_state(chain, ["Up", "Dn"], #{ Sz: 0.0 });
    /// assert_close(a.overlap(product_state(chain, ["Dn", "Up"], #{ Sz: 0.0 })), 0.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn overlap(held: &mut ScriptDmrgState, other: ScriptDmrgState) -> Fallible<Dynamic> {
        held.must_stand_as(&other)?;
        let value = match (&held.state, &other.state) {
            (Either::Real(a), Either::Real(b)) => a.overlap(b),
            (a, b) => {
                let (a, b) = (either!(a, s => s.to_complex()), either!(b, s => s.to_complex()));
                a.overlap(&b)
            }
        };
        Ok(value.map(number)?)
    }

    /// The number of states kept at each bond; for a state of total spin, the number of multiplets.
    #[rhai_fn(global, get = "states", pure)]
    pub fn states(held: &mut ScriptDmrgState) -> Series {
        Series::Real(either!(&held.state, s => s.widths()).into_iter().map(|w| w as f64).collect())
    }

    /// The conserved numbers of the state.
    #[rhai_fn(global, get = "sector", pure)]
    pub fn sector(held: &mut ScriptDmrgState) -> Map {
        either!(&held.state, s => s.sector()).into_iter().map(|(n, q)| (n.into(), q.into())).collect()
    }

    /// Writes the state and its properties to a file, for `load`: `.dmrg`, or an `.npz` archive that NumPy reads. The
    /// archive does not contain the excited states. In the archive, `site0_block0`, .. are the blocks of the first
    /// site's tensor. Each block is a matrix between a sector of the left bond and a sector of the right bond. Row k of
    /// `site0_index` holds the left sector, the state of the site and the right sector of block k. `bond0_dims` and
    /// `bond0_charges` are the sizes and the conserved numbers of the sectors of the bond before site 0,
    /// `state0_charges` those of the site's states. `norm` is a factor of the product of all tensors.
    ///
    /// # Example
    /// ```rhai
    /// let neel = product_state(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0.0 });
    /// neel.save("neel.dmrg");
    /// assert_close(load("neel.dmrg").expect("Sz")[0], 0.5, 1e-15);
    /// neel.save("neel.npz");
    /// assert_close(load("neel.npz").expect("Sz")[0], 0.5, 1e-15);
    /// ```
    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save(held: &mut ScriptDmrgState, file: &str) -> Fallible<()> {
        Ok(save_state(held, file)?)
    }

    /// Reads a state written by `gs.save(file)`, and no other file; `load` reads it too.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// dmrg::finite(models::heisenberg(chain), chain, #{ states: 8, sweeps: 2 }).save("four.dmrg");
    /// assert_close(dmrg::load("four.dmrg").energy, -1.6160254037844, 1e-8);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn load(file: &str) -> Fallible<Dynamic> {
        Ok(load_state(file, &session()?.input_path(file)?)?)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(held: &mut ScriptDmrgState) -> String {
        let energy = match held.about.get("energy").and_then(|e| e.as_float().ok()) {
            Some(e) => format!(", energy {}", format::energy(e, e.abs())),
            None => String::new(),
        };
        either!(&held.state, s => {
            let most = s.widths().into_iter().max().unwrap_or(1);
            let what = if s.spin().is_some() { "multiplets" } else { "states" };
            format!("DmrgState of {}, at most {most} {what} a bond, {}{energy}", s.sites(), human(s.bytes()))
        })
    }
}
