//! A `DmrgState` as scripts hold it: the state, what is known of it, and its files.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use rhai::{Array, Dynamic, Map};

use super::order::order_of;
use super::{AnyState, Either, either};
use crate::error::{Error, Result};
use crate::manybody::OpSum;
use crate::manybody::dmrg::{InBlocks, SavedState, parted, sealed};
use crate::number::{C64, Series, Table};
use crate::output::files;
use crate::script::api::about;
use crate::script::api::table::manifest;
use crate::script::session;

/// A state and how it was found, as scripts hold it.
#[derive(Clone)]
pub(in crate::script) struct ScriptDmrgState {
    pub(super) state: AnyState,
    pub(super) about: Rc<Map>,
}

impl ScriptDmrgState {
    /// A property that it has from the search that found it.
    pub(super) fn known(&self, key: &str) -> Result<Dynamic> {
        self.about.get(key).map(Dynamic::flatten_clone).ok_or_else(|| {
            Error::input(format!("this state does not know its `{key}`")).hint(
                "states that `dmrg::finite` finds know it; `state.expect(h)` is the energy of any state",
            )
        })
    }

    /// The order in which its sites stand along the chain, where that is not the one of their numbers.
    pub(super) fn order(&self) -> Result<Option<Vec<usize>>> {
        match self.about.get("order").and_then(|order| order.read_lock::<Array>()) {
            Some(order) => order_of(&order).map(Some),
            None => Ok(None),
        }
    }

    /// Refuses another state whose sites stand in another order along its chain.
    pub(super) fn must_stand_as(&self, other: &ScriptDmrgState) -> Result<()> {
        if self.order()? == other.order()? {
            return Ok(());
        }
        Err(Error::input("states whose sites stand in different orders along their chains")
            .hint("find all with the same `order`"))
    }

    /// The places of some sites in the chain, ascending, and which of the sites each is.
    pub(super) fn places(&self, sites: &[usize]) -> Result<(Vec<usize>, Vec<usize>)> {
        let Some(order) = self.order()? else { return Ok((sites.to_vec(), (0..sites.len()).collect())) };
        let mut all: Vec<(usize, usize)> = Vec::new();
        for (k, site) in sites.iter().enumerate() {
            let place = order.iter().position(|s| s == site);
            all.push((
                place.ok_or_else(|| {
                    Error::input(format!("no site {site} in the state's order"))
                        .hint("sites are numbered from 0")
                })?,
                k,
            ));
        }
        all.sort_unstable();
        Ok(all.into_iter().unzip())
    }

    /// A sum in the state's own order.
    pub(super) fn own(&self, sum: OpSum) -> Result<OpSum> {
        match self.order()? {
            Some(order) => sum.reordered(&order),
            None => Ok(sum),
        }
    }

    /// Refuses what counts places along the chain of a state that has them in another order than its sites.
    pub(super) fn need_natural(&self) -> Result<()> {
        match self.order()? {
            None => Ok(()),
            Some(_) => Err(Error::input(
                "the order of the sites of this state along its chain is not that of their \
                 numbers",
            )
            .hint(
                "`dmrg::finite` takes it as it is; by hand, work with `h.reordered(gs.order)`, \
                     `chain.reordered(gs.order)` and `gs.with_properties(#{ order: () })`",
            )),
        }
    }

    /// Another state of the same sites, in the same order, of which nothing else is known.
    pub(super) fn beside(&self, state: AnyState) -> ScriptDmrgState {
        let order = self.about.get_key_value("order").map(|(k, v)| (k.clone(), v.clone()));
        ScriptDmrgState { state, about: Rc::new(order.into_iter().collect()) }
    }

    /// The same state with one more property.
    pub(super) fn knowing(mut self, key: &str, value: Dynamic) -> ScriptDmrgState {
        Rc::make_mut(&mut self.about).insert(key.into(), value);
        self
    }

    /// Refuses the zero state where something is asked that it does not have.
    pub(super) fn need_some(&self) -> Result<()> {
        match either!(&self.state, s => s.norm()) {
            0.0 => Err(Error::input("the zero state has no expectation values and no weights")
                .hint("its `norm` is 0: an operator has annihilated the state, or a sum has cancelled")),
            _ => Ok(()),
        }
    }

    /// The other target states of the search that found it.
    pub(super) fn excited(&self) -> Vec<ScriptDmrgState> {
        let list = self.about.get("excited").and_then(|list| list.read_lock::<Array>());
        list.map(|list| list.iter().filter_map(|x| x.clone().try_cast()).collect()).unwrap_or_default()
    }
}

/// A number as scripts take it: a float where the imaginary part is rounding.
pub(super) fn number(z: C64) -> Dynamic {
    if z.im.abs() <= 1e-12 * z.norm().max(1e-3) { z.re.into() } else { Dynamic::from(z) }
}

/// Entropies of all bonds, the first one's first, as a Table of `bond` and `entropy`.
pub(super) fn by_bond(entropies: Vec<f64>) -> Result<Table> {
    let bonds = (0..entropies.len()).map(|bond| bond as f64).collect();
    Table::from_columns([("bond", Series::Real(bonds)), ("entropy", Series::Real(entropies))])
}

/// Reals if all imaginary parts are rounding.
pub(super) fn simple(values: Vec<C64>) -> Series {
    let largest = values.iter().map(|z| z.norm()).fold(0.0, f64::max);
    if values.iter().all(|z| z.im.abs() <= 1e-13 * largest) {
        Series::Real(values.iter().map(|z| z.re).collect())
    } else {
        Series::Complex(values)
    }
}

/// Refuses names that promise another format than that of states.
pub(in crate::script::api) fn need_own_name(file: &str) -> Result<()> {
    files::need_extension(Path::new(file), &["dmrg"], "a DmrgState")
}

/// Saves a state as an NPZ archive where the name ends so; whether it does.
pub(super) fn saved_in_blocks(
    file: &str,
    bytes: &[u8],
    need_component: impl FnOnce() -> Result<()>,
    state: impl FnOnce() -> InBlocks,
) -> Result<bool> {
    if Path::new(file).extension().is_none_or(|e| !e.eq_ignore_ascii_case("npz")) {
        return Ok(false);
    }
    need_component()?;
    let session = session()?;
    let path = session.output_path(file);
    let state = state();
    let mut arrays: Vec<files::StateArray> =
        vec![("norm".into(), vec![1], files::ArrayNumbers::Any(Series::Real(vec![state.norm])))];
    let whole = |all: Vec<usize>| files::ArrayNumbers::Whole(all.into_iter().map(|k| k as i64).collect());
    let labels = |all: Vec<&Vec<i32>>| {
        let shape = vec![all.len() as u64, all.first().map_or(0, |q| q.len()) as u64];
        let values = all.into_iter().flatten().map(|q| f64::from(*q) / 2.0).collect();
        (shape, files::ArrayNumbers::Any(Series::Real(values)))
    };
    for (i, bond) in state.bonds.iter().enumerate() {
        let (shape, values) = labels(bond.iter().map(|b| &b.0).collect());
        arrays.push((format!("bond{i}_charges"), shape, values));
        arrays.push((
            format!("bond{i}_dims"),
            vec![bond.len() as u64],
            whole(bond.iter().map(|b| b.1).collect()),
        ));
    }
    for (i, site) in state.sites.iter().enumerate() {
        let (shape, values) = labels(site.iter().collect());
        arrays.push((format!("state{i}_charges"), shape, values));
    }
    for tensor in state.tensors {
        let width = tensor.blocks.first().map_or(0, |b| b.place.len()) as u64;
        let place = tensor.blocks.iter().flat_map(|b| b.place.clone()).collect();
        arrays.push((
            format!("{}_index", tensor.name),
            vec![tensor.blocks.len() as u64, width],
            whole(place),
        ));
        for (k, b) in tensor.blocks.into_iter().enumerate() {
            let shape = vec![b.rows as u64, b.columns as u64];
            arrays.push((format!("{}_block{k}", tensor.name), shape, files::ArrayNumbers::Any(b.numbers)));
        }
    }
    files::save_state(&arrays, &parted(bytes)?, &path, Some(&manifest()?))?;
    session.saved(&path);
    Ok(true)
}

pub(super) fn save_state(held: &ScriptDmrgState, file: &str) -> Result<()> {
    let mut bytes = either!(&held.state, s => s.to_bytes(&about::to_json(&held.about)))?;
    let plain = || {
        let plain = either!(&held.state, s => s.need_component());
        plain.map_err(|e| {
            Error::input(e.message()).hint(
                "a `.dmrg` file keeps it; an archive for NumPy has one component, `state.component(m)` with Sz = m",
            )
        })
    };
    if saved_in_blocks(file, &bytes, plain, || either!(&held.state, s => s.in_blocks()))? {
        return Ok(());
    }
    need_own_name(file)?;
    let session = session()?;
    let path = session.output_path(file);
    for other in held.excited() {
        let keys = ["energy", "variance", "order"];
        let known = keys.iter().filter_map(|key| other.about.get_key_value(*key));
        let known: Map = known.map(|(k, v)| (k.clone(), v.clone())).collect();
        bytes.extend(either!(&other.state, s => s.to_bytes(&about::to_json(&known)))?);
    }
    files::write_bytes(&path, &sealed(&bytes))?;
    session.saved(&path);
    Ok(())
}

/// The first of the states that some bytes begin with, and the bytes behind it.
pub(super) fn one_of(bytes: &[u8]) -> Result<(ScriptDmrgState, &[u8])> {
    let (saved, about, rest) = SavedState::from_bytes(bytes)?;
    let state = match saved {
        SavedState::Real(state) => Either::Real(Arc::new(state)),
        SavedState::Complex(state) => Either::Complex(Arc::new(state)),
    };
    Ok((ScriptDmrgState { state, about: Rc::new(about::from_json(&about)) }, rest))
}
