//! `UniformState`: a state of an infinite chain, and what it is asked.

use std::rc::Rc;
use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Dynamic, FLOAT, INT, Map};

use super::held::{by_bond, need_own_name, number, saved_in_blocks, simple};
use super::{Either, either};
use crate::error::{Error, Result};
use crate::manybody::dmrg::{SavedUniform, Uniform, UnitCell, sealed};
use crate::manybody::{OpSum, Sites};
use crate::number::memory::human;
use crate::number::{C64, Series, Table, format};
use crate::output::files;
use crate::script::api::about;
use crate::script::api::manybody::sector_of;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Registers the types and functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<HeldUniform>("UniformState");
    rooms.room("dmrg", exported_module!(uniform_functions));
}

/// A state of an infinite chain.
pub(super) type AnyUniform = Either<Arc<Uniform<f64>>, Arc<Uniform<C64>>>;
/// A label of conserved numbers, twice their values.
type ArrayLabel = Vec<i32>;

/// Charges further than this, in quanta, are left out of a list of correlation lengths.
const NEAR: i32 = 2;

/// A state of an infinite chain and how it was found, as scripts hold it.
#[derive(Clone)]
pub(in crate::script) struct HeldUniform {
    pub(super) state: AnyUniform,
    pub(super) about: Rc<Map>,
}

impl HeldUniform {
    pub(super) fn cell(&self) -> Arc<UnitCell> {
        either!(&self.state, s => s.cell().clone())
    }

    fn known(&self, key: &str) -> Result<Dynamic> {
        self.about.get(key).map(Dynamic::flatten_clone).ok_or_else(|| {
            Error::input(format!("this state does not know its `{key}`")).hint(
                "states that `dmrg::uniform` finds know it; `state.expect(h)` is the energy of a cell of any \
                     state",
            )
        })
    }

    /// The bond that scripts call `bond`: 0 lies behind site 0 of the cell, the last behind the cell.
    fn bond(&self, bond: INT) -> Result<usize> {
        let n = self.cell().sites.count();
        let at = usize::try_from(bond).ok().filter(|b| *b < n).ok_or_else(|| {
            Error::input(format!("no bond {bond} of a cell of {n} sites"))
                .hint("bond 0 lies behind site 0; the last one leads to the next cell")
        })?;
        Ok((at + 1) % n)
    }

    /// Twice the values of a charge that the option `charge` gives.
    pub(super) fn charge(&self, o: &Options) -> Result<Option<ArrayLabel>> {
        let Some(map) = o.maybe::<Map>("charge") else { return Ok(None) };
        let cell = self.cell();
        let given = cell.sites.target(&sector_of(&map)?)?;
        if let Some((name, _)) = given.iter().find(|g| !cell.symmetry.names().contains(&g.0)) {
            return Err(Error::input(format!("the state does not conserve `{name}`"))
                .hint("a charge names the numbers of the state's sector"));
        }
        let of = |name: &String| given.iter().find(|g| g.0 == *name).map_or(0, |g| g.1);
        Ok(Some(cell.symmetry.names().iter().map(of).collect()))
    }

    fn transfer(&self, charge: &ArrayLabel, count: usize) -> Result<(Vec<C64>, bool)> {
        either!(&self.state, s => s.transfer(charge, count))
    }

    /// The correlation length in sites of an eigenvalue of the transfer matrix.
    fn length(&self, value: C64) -> f64 {
        let size = value.norm();
        let n = self.cell().sites.count() as f64;
        if size <= f64::MIN_POSITIVE { 0.0 } else { n / size.min(1.0).ln().abs() }
    }

    /// The wave number a site of an eigenvalue of the transfer matrix.
    fn wave(&self, value: C64) -> f64 {
        // A real number that is negative by rounding of its phase has the wave number pi, not minus pi.
        let phase = if value.im.abs() < 1e-9 * value.norm() && value.re < 0.0 {
            std::f64::consts::PI
        } else {
            value.arg()
        };
        phase / self.cell().sites.count() as f64
    }

    /// The charge of the Majorana modes at its ends, if there are any.
    pub(super) fn majorana_charge(&self) -> Result<Option<ArrayLabel>> {
        either!(&self.state, s => s.majorana_charge())
    }

    /// The largest eigenvalue of each of the nearest charges, with its charge; but for those that no correlations have:
    /// the state's own, and that of Majorana modes.
    fn slowest(&self) -> Result<Vec<(ArrayLabel, C64)>> {
        let cell = self.cell();
        let zero = cell.symmetry.zero();
        let modes = self.majorana_charge()?.is_some();
        let mut all = Vec::new();
        for charge in either!(&self.state, s => s.charges()) {
            if cell.symmetry.distance(&charge, &zero) > NEAR {
                continue;
            }
            let own = usize::from(charge == zero || (modes && cell.is_odd(&charge)));
            if let Some(value) = self.transfer(&charge, 1 + own)?.0.get(own) {
                all.push((charge, *value));
            }
        }
        Ok(all)
    }
}

/// The state of an infinite chain in the bytes of a file, if it is one.
pub(super) fn from_bytes(bytes: &[u8]) -> Result<Option<HeldUniform>> {
    let Some((saved, known)) = SavedUniform::from_bytes(bytes)? else { return Ok(None) };
    let state = match saved {
        SavedUniform::Real(state) => Either::Real(Arc::new(state)),
        SavedUniform::Complex(state) => Either::Complex(Arc::new(state)),
    };
    Ok(Some(HeldUniform { state, about: Rc::new(about::from_json(&known)) }))
}

#[export_module(root = "crate::script::native")]
mod uniform_functions {
    /// The energy per site, if `dmrg::uniform` found the state.
    #[rhai_fn(global, get = "energy", pure, return_raw)]
    pub fn energy(held: &mut HeldUniform) -> Fallible<Dynamic> {
        Ok(held.known("energy")?)
    }

    /// The norm of the gradient of the energy with respect to the matrices of a site, the largest in the cell. It is 0
    /// for the best state with this number of states per bond.
    #[rhai_fn(global, get = "gradient", pure, return_raw)]
    pub fn gradient(held: &mut HeldUniform) -> Fallible<Dynamic> {
        Ok(held.known("gradient")?)
    }

    /// The two-site variance of the energy per site (Hubig, Haegeman, Schollwoeck 2018). It is the full variance if
    /// terms act only on neighbouring sites, and 0 for an eigenstate.
    #[rhai_fn(global, get = "variance", pure, return_raw)]
    pub fn variance(held: &mut HeldUniform) -> Fallible<Dynamic> {
        Ok(held.known("variance")?)
    }

    /// Whether gradient and energy had converged, no other search found a lower energy, and more states would not lower
    /// it noticeably.
    #[rhai_fn(global, get = "converged", pure, return_raw)]
    pub fn converged(held: &mut HeldUniform) -> Fallible<Dynamic> {
        Ok(held.known("converged")?)
    }

    /// The table of the steps: `step`, `energy`, `gradient` (for "idmrg" the `mismatch`) and `states`.
    #[rhai_fn(global, get = "steps", pure, return_raw)]
    pub fn steps(held: &mut HeldUniform) -> Fallible<Dynamic> {
        Ok(held.known("steps")?)
    }

    /// All properties of the state, as a map.
    #[rhai_fn(global, get = "about", pure)]
    pub fn about(held: &mut HeldUniform) -> Map {
        (*held.about).clone()
    }

    /// The same state with more properties.
    ///
    /// # Example
    /// ```rhai
    /// let psi = dmrg::uniform_product(sites("S=1/2", 1), ["Up"], #{}).with_properties(#{ energy: 0.25 });
    /// assert_close(psi.energy, 0.25, 0.0);
    /// ```
    #[rhai_fn(global, name = "with_properties", pure)]
    pub fn with_properties(held: &mut HeldUniform, about: Map) -> HeldUniform {
        let mut all = (*held.about).clone();
        all.extend(about);
        HeldUniform { state: held.state.clone(), about: Rc::new(all) }
    }

    /// The expectation value of an operator on each site of the cell.
    ///
    /// # Example
    /// ```rhai
    /// let psi = dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// assert_close(psi.expect("Sz")[0], 0.5, 1e-15);
    /// ```
    #[rhai_fn(global, name = "expect", pure, return_raw)]
    pub fn expect_local(held: &mut HeldUniform, operator: &str) -> Fallible<Series> {
        Ok(simple(either!(&held.state, s => s.local(operator))?))
    }

    /// The expectation value of a sum of operators. Sites beyond the cell are those of the following cells. For the
    /// Hamiltonian, whose terms repeat in every cell, it is the energy per cell.
    ///
    /// # Example
    /// ```rhai
    /// let psi = dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// let pair = opsum();
    /// pair.add(1.0, "Sz", 1, "Sz", 2);
    /// assert_close(psi.expect(pair), -0.25, 1e-15);
    /// ```
    #[rhai_fn(global, name = "expect", pure, return_raw)]
    pub fn expect_sum(held: &mut HeldUniform, sum: OpSum) -> Fallible<Dynamic> {
        Ok(number(either!(&held.state, s => s.expectation(&sum))?))
    }

    /// The correlations `<A_i B_(i + r)>` from a site of the cell to the following sites: a Table of `distance`, from 0
    /// to `range`, `value`, and `connected`, which is `value` minus `<A_i> <B_(i + r)>`. Fermionic signs are included.
    ///
    /// # Options
    /// - `site` (int >= 0, 0): the site of A in the cell.
    ///
    /// # Example
    /// ```rhai
    /// let psi = dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// let far = psi.correlations("Sz", "Sz", 5);
    /// assert_close(far.value[5], -0.25, 1e-15);
    /// assert_close(far.connected[5], 0.0, 1e-15);
    /// ```
    #[rhai_fn(global, name = "correlations", pure, return_raw)]
    pub fn correlations(held: &mut HeldUniform, a: &str, b: &str, range: INT, o: Options) -> Fallible<Table> {
        let sites = held.cell().sites.clone();
        let n = sites.count();
        let range = usize::try_from(range).ok().filter(|r| *r <= 1_000_000).ok_or_else(|| {
            Error::input(format!("correlations over {range} sites")).hint("a range of 0 to a million sites")
        })?;
        let site = o.count("site")?;
        if site >= n {
            return Err(Error::input(format!("site {site} of a cell of {n} sites"))
                .hint("the cell's sites are numbered from 0")
                .into());
        }
        let values = either!(&held.state, s => s.correlations(a, b, site, range))?;
        let fermionic = sites.site(site)?.operator(a)?.fermionic;
        let connected = if fermionic {
            values.clone()
        } else {
            let (first, second) = either!(&held.state, s => (s.local(a)?, s.local(b)?));
            let less = |(r, z): (usize, &C64)| z - first[site] * second[(site + r) % n];
            values.iter().enumerate().map(less).collect()
        };
        let distance = (0..=range).map(|r| r as f64).collect();
        Ok(Table::from_columns([
            ("distance", Series::Real(distance)),
            ("value", simple(values)),
            ("connected", simple(connected)),
        ])?)
    }

    /// The largest eigenvalues of the transfer matrix of a cell: a Table of `modulus` (descending), `wave` (their
    /// phases as wave numbers per site, pi for alternating correlations) and `length` (the correlation length in
    /// sites). The first eigenvalue, 1, belongs to the state itself. A second eigenvalue of modulus 1 indicates a
    /// superposition of several states. Between operators that change the parity of fermions stand the signs of the
    /// fermions between them. Where the ends have Majorana modes, the first eigenvalue of an odd charge has modulus 1,
    /// too; no correlations of operators on sites have its length.
    ///
    /// # Options
    /// - `charge` (map, zero): the change of conserved numbers by the correlated operators, like `#{ Sz: 1 }`.
    ///
    /// # Example
    /// ```rhai
    /// let psi = dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// assert_close(psi.transfer_spectrum(1).modulus[0], 1.0, 1e-15);
    /// ```
    #[rhai_fn(global, name = "transfer_spectrum", pure, return_raw)]
    pub fn transfer_spectrum(held: &mut HeldUniform, count: INT, o: Options) -> Fallible<Table> {
        let count = usize::try_from(count)
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| Error::input(format!("{count} eigenvalues")).hint("one at least"))?;
        let charge = held.charge(&o)?.unwrap_or_else(|| held.cell().symmetry.zero());
        let (values, known) = held.transfer(&charge, count)?;
        if !known {
            session()?.note(
                "eigenvalues of the transfer matrix lie so close together that fewer than ten digits are \
                 known",
            );
        }
        let column = |f: &dyn Fn(C64) -> f64| Series::Real(values.iter().map(|z| f(*z)).collect());
        Ok(Table::from_columns([
            ("modulus", column(&|z| z.norm())),
            ("wave", column(&|z| held.wave(z))),
            ("length", column(&|z| held.length(z))),
        ])?)
    }

    /// The correlation length in sites: the largest over all charges of up to two quanta. It is 0 for a product state,
    /// infinite for a superposition of several states.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(dmrg::uniform_product(sites("S=1/2", 1), ["Up"], #{}).correlation_length, 0.0, 1e-15);
    /// ```
    #[rhai_fn(global, get = "correlation_length", pure, return_raw)]
    pub fn correlation_length(held: &mut HeldUniform) -> Fallible<FLOAT> {
        let all = held.slowest()?;
        let largest = all.iter().map(|(_, z)| z.norm()).fold(0.0, f64::max);
        Ok(held.length(if largest > 1.0 - 1e-12 { C64::ONE } else { largest.into() }))
    }

    /// Whether the ends of a half-infinite chain in this state have Majorana modes, as those of a topological
    /// superconductor do. It takes a sector that conserves the parity of fermions, like `#{ NfParity: 0 }`. The states
    /// to the left of a bond then come in pairs of even and odd parity with equal weights.
    ///
    /// # Example
    /// ```rhai
    /// // Kitaev's chain: its ends have modes where the chemical potential is below the width of the band
    /// fn chain(mu) {
    ///     let h = opsum();
    ///     h.add(-1.0, "Cdag", 0, "C", 1);
    ///     h.add(-1.0, "Cdag", 1, "C", 0);
    ///     h.add(-1.0, "Cdag", 0, "Cdag", 1);
    ///     h.add(-1.0, "C", 1, "C", 0);
    ///     h.add(-mu, "N", 0);
    ///     dmrg::uniform(h, sites("Fermion", 1), #{ sector: #{ NfParity: 0 }, states: 8, progress: false })
    /// }
    /// assert(chain(0.5).has_majorana_modes, "a topological superconductor");
    /// assert(!chain(-4.0).has_majorana_modes, "a trivial one");
    /// ```
    #[rhai_fn(global, get = "has_majorana_modes", pure, return_raw)]
    pub fn has_majorana_modes(held: &mut HeldUniform) -> Fallible<bool> {
        Ok(held.majorana_charge()?.is_some())
    }

    /// The correlation length of each charge of up to two quanta: a Table of the conserved numbers, `length` and
    /// `wave`, the wave number per site of these correlations. Operators that change the numbers by that charge have no
    /// correlations longer than this.
    ///
    /// # Example
    /// ```rhai
    /// let psi = dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// assert(psi.correlation_lengths().length.max() == 0.0, "a product state");
    /// ```
    #[rhai_fn(global, name = "correlation_lengths", pure, return_raw)]
    pub fn correlation_lengths(held: &mut HeldUniform) -> Fallible<Table> {
        let all = held.slowest()?;
        let names = held.cell().symmetry.names().to_vec();
        let mut columns: Vec<(String, Series)> = Vec::new();
        for (k, name) in names.iter().enumerate() {
            let own = all.iter().map(|(q, _)| f64::from(q[k]) / 2.0).collect();
            columns.push((name.clone(), Series::Real(own)));
        }
        columns.push(("length".into(), Series::Real(all.iter().map(|(_, z)| held.length(*z)).collect())));
        columns.push(("wave".into(), Series::Real(all.iter().map(|(_, z)| held.wave(*z)).collect())));
        Ok(Table::from_columns(columns)?)
    }

    /// The entanglement entropy of each bond of the cell: a Table of `bond` (0 lies between sites 0 and 1, the last
    /// between two cells) and `entropy`.
    ///
    /// # Example
    /// ```rhai
    /// let psi = dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// assert_close(psi.entropy.entropy.max(), 0.0, 1e-15);
    /// ```
    #[rhai_fn(global, get = "entropy", pure, return_raw)]
    pub fn entropy(held: &mut HeldUniform) -> Fallible<Table> {
        Ok(by_bond(either!(&held.state, s => s.entropies())?)?)
    }

    /// The weights of the Schmidt decomposition at a bond, descending.
    ///
    /// # Example
    /// ```rhai
    /// let psi = dmrg::uniform_product(sites("S=1/2", 1), ["Up"], #{});
    /// assert_close(psi.spectrum(0)[0], 1.0, 1e-15);
    /// ```
    #[rhai_fn(global, name = "spectrum", pure, return_raw)]
    pub fn spectrum(held: &mut HeldUniform, bond: INT) -> Fallible<Series> {
        let at = held.bond(bond)?;
        let weights = either!(&held.state, s => s.spectrum(at))?;
        Ok(Series::Real(weights.into_iter().map(|w| w.0).collect()))
    }

    /// The entanglement spectrum at a bond, ascending: a Table of the conserved numbers to the left, counted from some
    /// cell on, the `weight` of each Schmidt state and its `level`, minus the logarithm of the weight.
    ///
    /// # Example
    /// ```rhai
    /// let psi = dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// assert_close(psi.entanglement_spectrum(0).Sz[0], 0.5, 1e-15);
    /// ```
    #[rhai_fn(global, name = "entanglement_spectrum", pure, return_raw)]
    pub fn entanglement_spectrum(held: &mut HeldUniform, bond: INT) -> Fallible<Table> {
        let at = held.bond(bond)?;
        let weights = either!(&held.state, s => s.spectrum(at))?;
        let mut columns: Vec<(String, Series)> = Vec::new();
        for (k, name) in held.cell().symmetry.names().iter().enumerate() {
            let own = weights.iter().map(|(_, q)| f64::from(q[k]) / 2.0).collect();
            columns.push((name.clone(), Series::Real(own)));
        }
        columns.push(("weight".into(), Series::Real(weights.iter().map(|w| w.0).collect())));
        columns.push(("level".into(), Series::Real(weights.iter().map(|w| -w.0.ln()).collect())));
        Ok(Table::from_columns(columns)?)
    }

    /// The overlap with another state, per site: 1 for the same state, less for any other.
    ///
    /// # Example
    /// ```rhai
    /// let cell = sites("S=1/2", 2);
    /// let psi = dmrg::uniform_product(cell, ["Up", "Dn"], #{ Sz: 0 });
    /// assert_close(psi.fidelity(dmrg::uniform_product(cell, ["Dn", "Up"], #{ Sz: 0 })), 0.0, 1e-15);
    /// ```
    #[rhai_fn(global, name = "fidelity", pure, return_raw)]
    pub fn fidelity(held: &mut HeldUniform, other: HeldUniform) -> Fallible<FLOAT> {
        let cell = match (&held.state, &other.state) {
            (Either::Real(a), Either::Real(b)) => a.fidelity(b),
            (a, b) => either!(a, s => s.to_complex()).fidelity(&either!(b, s => s.to_complex())),
        }?;
        Ok(cell.powf(1.0 / held.cell().sites.count() as f64))
    }

    /// The number of states kept at each bond of the cell.
    #[rhai_fn(global, get = "states", pure)]
    pub fn states(held: &mut HeldUniform) -> Series {
        let mut widths = either!(&held.state, s => s.widths());
        widths.rotate_left(1);
        Series::Real(widths.into_iter().map(|w| w as f64).collect())
    }

    /// The conserved numbers of a cell.
    #[rhai_fn(global, get = "sector", pure)]
    pub fn sector(held: &mut HeldUniform) -> Map {
        held.cell().sector().into_iter().map(|(n, q)| (n.into(), q.into())).collect()
    }

    /// The sites of the cell.
    ///
    /// # Example
    /// ```rhai
    /// let psi = dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// assert(psi.cell.len == 2, "two sites");
    /// ```
    #[rhai_fn(global, get = "cell", pure)]
    pub fn sites_of_cell(held: &mut HeldUniform) -> Sites {
        held.cell().sites.clone()
    }

    /// Whether its amplitudes are complex.
    ///
    /// # Example
    /// ```rhai
    /// let psi = dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// assert(!psi.complex, "a real state");
    /// ```
    #[rhai_fn(global, get = "complex", pure)]
    pub fn is_complex(held: &mut HeldUniform) -> bool {
        matches!(held.state, Either::Complex(_))
    }

    /// Writes the state and its properties to a file, for `load`: `.dmrg`, or an `.npz` archive that NumPy reads. The
    /// archive holds the isometries `left0_block0`, .. and `right0_block0`, .., the matrices `centre0_block0`, .. of
    /// the bonds (bond i is before site i of the cell), and the other entries as for `save` of a DmrgState. For the
    /// states of the last site, the conserved numbers of a cell are subtracted.
    ///
    /// # Example
    /// ```rhai
    /// dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 }).save("neel.dmrg");
    /// assert_close(load("neel.dmrg").expect("Sz")[1], -0.5, 1e-15);
    /// ```
    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save(held: &mut HeldUniform, file: &str) -> Fallible<()> {
        let bytes = either!(&held.state, s => s.to_bytes(&about::to_json(&held.about)))?;
        if saved_in_blocks(file, &bytes, || Ok(()), || either!(&held.state, s => s.in_blocks()))? {
            return Ok(());
        }
        need_own_name(file)?;
        let session = session()?;
        let path = session.output_path(file);
        files::write_bytes(&path, &sealed(&bytes))?;
        session.saved(&path);
        Ok(())
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(held: &mut HeldUniform) -> String {
        let energy = match held.about.get("energy").and_then(|e| e.as_float().ok()) {
            Some(e) => format!(", energy {} a site", format::energy(e, e.abs())),
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
