//! `Site`, `Sites` and `OpSum`: many-body models as data.

use std::any::TypeId;
use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, FLOAT, INT, Map};

use super::chebyshev::as_complex;
use super::lattice::reals;
use super::values::{numbered, real, type_of};
use crate::error::{Error, Result};
use crate::manybody::{ExponentialTail, OpSum, Sector, Site, Sites};
use crate::number::{C64, Matrix, Series};
use crate::script::failure::failure;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Registers the types and their functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Arc<Site>>("Site");
    rooms.register_type_with_name::<Sites>("Sites");
    rooms.register_type_with_name::<OpSum>("OpSum");
    rooms.register_global_module(exported_module!(manybody_functions).into());
    longer_terms(rooms);
    multiples(rooms);
    rooms.room("models", exported_module!(own_sites));
    rooms.room("internal", exported_module!(checks));
}

/// Says once that a Hamiltonian is a cell's only, where a chain is longer.
pub(super) fn note_cell(sum: &OpSum, sites: usize) -> Result<()> {
    if let Some(text) = sum.only_of_a_cell(sites) {
        session()?.note_once(&text);
    }
    Ok(())
}

/// Products of a sum with numbers, in either order, quotients, and sums,
/// where a number stands for its multiple of the identity.
fn multiples(engine: &mut Engine) {
    macro_rules! with {
        ($number:ty, $complex:expr) => {
            engine.register_fn("*", |sum: OpSum, x: $number| sum * $complex(x));
            engine.register_fn("*", |x: $number, sum: OpSum| sum * $complex(x));
            engine.register_fn("/", |sum: OpSum, x: $number| sum * $complex(x).inv());
            engine.register_fn("+", |sum: OpSum, x: $number| sum + OpSum::from($complex(x)));
            engine.register_fn("+", |x: $number, sum: OpSum| OpSum::from($complex(x)) + sum);
            engine.register_fn("-", |sum: OpSum, x: $number| sum + OpSum::from(-$complex(x)));
            engine
                .register_fn("-", |x: $number, sum: OpSum| OpSum::from($complex(x)) + sum * C64::from(-1.0));
        };
    }
    with!(INT, |x: INT| C64::from(x as FLOAT));
    with!(FLOAT, C64::from);
    with!(C64, |x: C64| x);
}

/// `add` with no operator, and with three to seven of them; beyond that an array says it better.
fn longer_terms(engine: &mut Engine) {
    for pairs in [0, 3, 4, 5, 6, 7] {
        let mut types = vec![TypeId::of::<OpSum>()];
        types.resize(2 + 2 * pairs, TypeId::of::<Dynamic>());
        engine.register_raw_fn("add", types, |ctx: NativeCallContext, args: &mut [&mut Dynamic]| {
            let rest: Array = args[2..].iter().map(|x| x.flatten_clone()).collect();
            let coefficient = args[1].flatten_clone();
            let position = ctx.call_position();
            match args[0].write_lock::<OpSum>() {
                Some(mut sum) => add_term(&mut sum, &coefficient, &rest).map_err(|e| failure(e, position)),
                None => Err(failure(Error::internal("`add` without a sum"), position)),
            }
        });
    }
}

/// Adds a term given by names and sites in turn.
fn add_term(sum: &mut OpSum, coefficient: &Dynamic, pairs: &[Dynamic]) -> Result<()> {
    let wrong = || {
        Error::input("a term is a number, then operators by name and site")
            .hint("like `h.add(0.5, \"S+\", i, \"S-\", i + 1)`")
    };
    let coefficient = as_complex(coefficient).ok_or_else(wrong)?;
    if !pairs.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let factor = |pair: &[Dynamic]| -> Result<(String, usize)> {
        let name = pair[0].clone().into_string().map_err(|_| wrong())?;
        let site = pair[1].as_int().map_err(|_| wrong())?;
        let site = numbered(site, &format!("`{name}`: site"))?;
        Ok((name, site))
    };
    sum.add(coefficient, pairs.chunks(2).map(factor).collect::<Result<_>>()?)
}

/// The name of a local state.
pub(super) fn state_name(value: &Dynamic) -> Result<String> {
    value.clone().into_string().map_err(|_| {
        Error::input(format!("a local state is given by its name, not by {}", type_of(value)))
            .hint("like \"Up\"; a site's `states` are all its names")
    })
}

/// The local states of a product state by their names.
pub(super) fn states_of(sites: &Sites, names: &Array) -> Result<Vec<usize>> {
    let names: Vec<String> = names.iter().map(state_name).collect::<Result<_>>()?;
    sites.states(&names)
}

/// A kind of site by its name, or one made by `models::site`.
pub(super) fn site_of(value: &Dynamic, nmax: Option<usize>) -> Result<Arc<Site>> {
    if let Some(site) = value.clone().try_cast::<Arc<Site>>() {
        return match nmax {
            None => Ok(site),
            Some(_) => {
                Err(Error::input("option `nmax` is for bosons")
                    .hint("leave it out: the site is made already"))
            }
        };
    }
    let name = value.clone().into_string().map_err(|_| {
        let what = if value.is::<Sites>() { "a whole chain of sites".into() } else { type_of(value) };
        Error::input(format!("a kind of site is a name like \"S=1/2\", or made by `site`, not {what}"))
            .hint("the page of `sites` lists the kinds")
    })?;
    Site::named(&name, nmax).map(Arc::new)
}

/// The values of conserved numbers.
pub(super) fn sector_of(map: &Map) -> Result<Sector> {
    map.iter()
        .map(|(name, value)| Ok((name.to_string(), real(value, &format!("the sector's `{name}`"))?)))
        .collect()
}

/// Schmidt weights by conserved numbers, as maps.
pub(super) fn by_sector(all: Vec<(Sector, Vec<f64>)>) -> Array {
    let one = |(sector, weights): (Sector, Vec<f64>)| {
        let sector: Map = sector.into_iter().map(|(n, q)| (n.into(), q.into())).collect();
        let mut map = Map::new();
        map.insert("sector".into(), sector.into());
        map.insert("weights".into(), Dynamic::from(Series::Real(weights)));
        Dynamic::from(map)
    };
    all.into_iter().map(one).collect()
}

/// The chain that `sites(kind, n, options)` asks for.
fn chain(kind: &Dynamic, n: INT, o: &Options) -> Result<Sites> {
    let site = site_of(kind, o.maybe_count("nmax")?)?;
    let n = usize::try_from(n).ok().filter(|&n| n > 0);
    let n =
        n.ok_or_else(|| Error::input("a chain has at least one site").hint("raise the number of sites"))?;
    Sites::uniform((*site).clone(), n)
}

/// The site that `models::site(options)` describes.
fn own_site(o: &Options) -> Result<Site> {
    let map = |key: &str| o.maybe::<Map>(key).unwrap_or_default();
    let texts = |key: &str| -> Result<Option<Vec<String>>> {
        let Some(array) = o.maybe::<Array>(key) else { return Ok(None) };
        let wrong = || {
            Error::input(format!("option `{key}` takes an array of names")).hint("like `[\"Cup\", \"Cdn\"]`")
        };
        array.into_iter().map(|x| x.into_string().map_err(|_| wrong())).collect::<Result<_>>().map(Some)
    };
    let operators = map("operators");
    let mut matrices = Vec::new();
    for (name, value) in &operators {
        let matrix = value.clone().try_cast::<Matrix>().ok_or_else(|| {
            Error::input(format!("operator `{name}` is {}, not a Matrix", type_of(value)))
                .hint("write it like `matrix([[0.0, 1.0], [0.0, 0.0]])`")
        })?;
        matrices.push((name.to_string(), matrix));
    }
    let dim = matrices.first().map_or(0, |m| m.1.rows());
    if dim == 0 {
        return Err(Error::input("a site needs at least one operator")
            .hint("like `models::site(#{ operators: #{ Sz: 0.5 * pauli().z } })`"));
    }
    let states = texts("states")?.unwrap_or_else(|| (0..dim).map(|s| s.to_string()).collect());
    let fermionic = texts("fermionic")?.unwrap_or_default();
    let mut site = Site::new(o.text("name")?, states)?;
    for (name, matrix) in matrices {
        if name == "F" || name == "Id" {
            return Err(Error::input(format!("a site's own operator `{name}`")).hint(
                "every site has these: `F` is the sign of fermions, `Id` the identity; choose another name",
            ));
        }
        let odd = fermionic.contains(&name);
        site = site.with_matrix(name, matrix.data().to_complex(), odd)?;
    }
    for name in &fermionic {
        site.operator(name)?;
    }
    let (modulo, charges) = (map("modulo"), map("charges"));
    if let Some((name, _)) = modulo.iter().find(|(name, _)| !charges.contains_key(*name)) {
        return Err(Error::input(format!("option `modulo` names `{name}`, which is no charge of the site"))
            .hint("give its values in `charges`"));
    }
    for (name, charges) in charges {
        let n = match modulo.get(&name) {
            None => 0,
            Some(n) => {
                n.as_int().ok().and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 1).ok_or_else(|| {
                    Error::input(format!("charge `{name}` cannot count modulo {n}"))
                        .hint("2 or more: a Z_n symmetry")
                })?
            }
        };
        let values = reals(&charges, &format!("charge `{name}`"))?;
        site = site.charged_modulo(name.to_string(), &values, n)?;
    }
    match o.given("odd") {
        Some(odd) => {
            let odd = reals(&odd, "option `odd`")?;
            if let Some(x) = odd.iter().find(|x| **x != 0.0 && **x != 1.0) {
                return Err(Error::input(format!("option `odd` has an entry {x}"))
                    .hint("1 for each state with an odd number of fermions, 0 for the others"));
            }
            site = site.with_odd(odd.iter().map(|x| *x != 0.0).collect())?;
        }
        None if !fermionic.is_empty() => {
            return Err(Error::input("fermionic operators need to know which states hold an odd number")
                .hint("add `odd: [0, 1]`, say: one entry per state"));
        }
        None => {}
    }
    for name in &fermionic {
        if !site.changes_parity(site.operator(name)?) {
            return Err(Error::input(format!(
                "the fermionic operator `{name}` connects states of the same parity"
            ))
            .hint(
                "it takes states of an odd number of fermions to those of an even one, and back; see `odd`",
            ));
        }
    }
    Ok(site)
}

#[export_module(root = "crate::script::native")]
mod manybody_functions {
    /// A chain of `n` sites of one kind. The kinds, with their local states (for `product_state`), their operators (in
    /// ITensor's names) and the numbers that a sector can name:
    ///
    /// - "S=1/2", "S=1", "S=3/2", ..: spins. States "Up", "Dn"; "Up", "Z0", "Dn"; from 3/2 on "1.5", "0.5", "-0.5", ..
    ///   Operators "S+", "S-", "Sx", "Sy", "Sz", "Sz2" (its square); of spin 1/2 also "X", "Y", "Z", "ProjUp",
    ///   "ProjDn". Number Sz.
    /// - "Fermion": without spin. States "Emp", "Occ". Operators "C", "Cdag", "N". Number N.
    /// - "Electron": states "Emp", "Up", "Dn", "UpDn". Operators "Cup", "Cdagup", "Cdn", "Cdagdn", "Nup", "Ndn",
    ///   "Nupdn", "Ntot", "S+", "S-", "Sx", "Sy", "Sz". Numbers Nup, Ndn, N, Sz.
    /// - "tJ": the same without double occupation.
    /// - "SU(n)": n flavours of fermions, like a spin (n - 1)/2. States "Emp", "1", "2", "12", .. Operators "C1",
    ///   "Cdag1", "N1", .., "Ntot", "Npair" (pairs of fermions). Numbers N1, N2, .., N.
    /// - "Boson": with `nmax`. States "0", "1", .. Operators "A", "Adag", "N". Number N.
    ///
    /// All have "Id" and "F", the sign of a fermion string. If a chain has both fermions and bosons, sectors name Nf
    /// and Nb instead of N. If these numbers are not conserved, as in a superconductor or a transverse field, sectors
    /// name NfParity (the number of fermions modulo 2) and SzParity (S - Sz modulo 2). `dmrg::finite` and
    /// `exact::operator` also take sectors of the total spin S of spins, electrons or both, with or without N.
    ///
    /// # Options
    /// - `nmax` (int >= 1, none): largest number of bosons on a site.
    ///
    /// # Example
    /// ```rhai
    /// let bosons = sites("Boson", 4, #{ nmax: 2 });
    /// assert(exact::basis(bosons, #{ N: 2 }).dim == 10, "two bosons on four sites");
    /// ```
    #[rhai_fn(name = "sites", return_raw)]
    pub fn sites_with(kind: Dynamic, n: INT, o: Options) -> Fallible<Sites> {
        Ok(chain(&kind, n, &o)?)
    }

    /// Sites of several kinds, in order: names, or sites made by `models::site`.
    ///
    /// # Options
    /// - `nmax` (int >= 1, none): largest number of bosons on a site.
    ///
    /// # Example
    /// ```rhai
    /// let mixed = sites(["S=1", "S=1/2", "S=1"]);
    /// assert(exact::basis(mixed, #{ Sz: 2.5 }).dim == 1, "all up");
    /// let mixture = sites(["Fermion", "Boson", "Fermion", "Boson"], #{ nmax: 3 });
    /// assert(exact::basis(mixture, #{ Nf: 1, Nb: 2 }).dim == 6, "2 fermion states times 3 boson states");
    /// ```
    #[rhai_fn(name = "sites", return_raw)]
    pub fn sites_mixed_with(kinds: Array, o: Options) -> Fallible<Sites> {
        let nmax = o.maybe_count("nmax")?;
        let bosons = |kind: &Dynamic| kind.clone().into_string().is_ok_and(|name| name == "Boson");
        if nmax.is_some() && !kinds.iter().any(bosons) {
            return Err(Error::input("option `nmax` is for bosons, and there are none among these sites")
                .hint("bosons are the kind \"Boson\"")
                .into());
        }
        let all = kinds.iter().map(|kind| site_of(kind, nmax.filter(|_| bosons(kind))));
        Ok(Sites::new(all.collect::<Result<Vec<_>>>()?)?)
    }

    /// Number of sites.
    ///
    /// # Example
    /// ```rhai
    /// assert(sites("S=1", 8).len == 8, "eight spins");
    /// ```
    #[rhai_fn(global, get = "len", pure)]
    pub fn sites_len(sites: &mut Sites) -> INT {
        sites.count() as INT
    }

    /// Several copies of these sites in a row, for example a longer cell of an infinite chain.
    ///
    /// # Example
    /// ```rhai
    /// assert(sites(["S=1", "S=1/2"]).repeated(3).len == 6, "three times two");
    /// ```
    #[rhai_fn(global, name = "repeated", return_raw, pure)]
    pub fn sites_repeated(sites: &mut Sites, times: INT) -> Fallible<Sites> {
        Ok(sites.repeated(usize::try_from(times).unwrap_or(0))?)
    }

    /// The kind of site, by name; "mixed" for several kinds.
    ///
    /// # Example
    /// ```rhai
    /// assert(sites("Electron", 2).kind == "Electron", "electrons");
    /// ```
    #[rhai_fn(global, get = "kind", pure)]
    pub fn sites_kind(sites: &mut Sites) -> String {
        let mut names = sites.iter().map(|site| site.name());
        let first = names.next().unwrap_or_default();
        if names.all(|name| name == first) { first.into() } else { "mixed".into() }
    }

    /// The matrix of an operator on one site.
    ///
    /// # Example
    /// ```rhai
    /// let sz = sites("S=1/2", 4).operator("Sz", 0);
    /// assert_close(sz.at(0, 0), 0.5, 0.0);
    /// ```
    #[rhai_fn(global, name = "operator", return_raw, pure)]
    pub fn local_operator(sites: &mut Sites, name: &str, site: INT) -> Fallible<Matrix> {
        let site = sites.site(numbered(site, "site")?)?;
        let elements = site.operator(name)?.matrix.clone();
        let real = elements.iter().all(|z| z.im == 0.0);
        let matrix = Matrix::new(site.dim(), site.dim(), elements)?;
        Ok(if real { matrix.re() } else { matrix })
    }

    /// An empty sum of operators; terms are added with `add`.
    ///
    /// # Example
    /// ```rhai
    /// let h = opsum();
    /// h.add(1.0, "Sz", 0, "Sz", 1);
    /// assert(h.terms == 1 && h.order == (), "one term, of sites in the order of their numbers");
    /// ```
    #[rhai_fn(name = "opsum")]
    pub fn opsum() -> OpSum {
        OpSum::new()
    }

    /// Adds a term to a sum: a coefficient, real or complex, and any number of operators by name and site. The
    /// operators multiply in the order written; fermionic signs are included.
    ///
    /// # Example
    /// ```rhai
    /// let h = opsum();
    /// for i in 0..3 {
    ///     h.add(-1.0, "Cdag", i, "C", i + 1);
    ///     h.add(-1.0, "Cdag", i + 1, "C", i);
    /// }
    /// let ring = exact::operator(h, sites("Fermion", 4), #{ N: 1 });
    /// assert(ring.is_hermitian(), "each hopping has its conjugate");
    /// ```
    #[rhai_fn(global, name = "add", return_raw)]
    pub fn add_two(
        sum: &mut OpSum,
        coefficient: Dynamic,
        op_1: Dynamic,
        site_1: Dynamic,
        op_2: Dynamic,
        site_2: Dynamic,
    ) -> Fallible<()> {
        Ok(add_term(sum, &coefficient, &[op_1, site_1, op_2, site_2])?)
    }

    #[rhai_fn(global, name = "add", return_raw)]
    pub fn add_one(sum: &mut OpSum, coefficient: Dynamic, op: Dynamic, site: Dynamic) -> Fallible<()> {
        Ok(add_term(sum, &coefficient, &[op, site])?)
    }

    /// Adds a term whose operators and sites are in an array, for products of many operators.
    ///
    /// # Example
    /// ```rhai
    /// let string = [];
    /// for i in 0..10 { string += ["F", i]; }
    /// let h = opsum();
    /// h.add(1.0, string);
    /// assert(h.terms == 1, "one long term");
    /// ```
    #[rhai_fn(global, name = "add", return_raw)]
    pub fn add_list(sum: &mut OpSum, coefficient: Dynamic, operators: Array) -> Fallible<()> {
        Ok(add_term(sum, &coefficient, &operators)?)
    }

    /// Adds a coupling that decays exponentially with the distance: the sum over k = 1, 2, ... of
    /// `coefficient ratio^k A_i B_(i + k)`. On a finite chain the sum ends with the chain, on an infinite one
    /// (`dmrg::uniform`) it does not end. The automaton carries one operator for it. Several couplings with different
    /// ratios approximate other laws (`models::exponentials`).
    ///
    /// # Options
    /// - `step` (int >= 1, 1): sites from one partner to the next: B is on the sites i + k step.
    ///
    /// # Example
    /// ```rhai
    /// let h = opsum();
    /// for i in 0..4 { h.add_decaying(1.0, 0.5, "Sz", i, "Sz"); }
    /// let chain = sites("S=1/2", 4);
    /// let up = product_state(chain, ["Up", "Up", "Up", "Up"], #{});
    /// assert_close(up.expect(h), 0.25 * (3.0 * 0.5 + 2.0 * 0.25 + 0.125), 1e-14);
    /// ```
    #[rhai_fn(global, name = "add_decaying", return_raw)]
    pub fn add_decaying(
        sum: &mut OpSum,
        coefficient: Dynamic,
        ratio: Dynamic,
        op_1: &str,
        site_1: INT,
        op_2: &str,
        o: Options,
    ) -> Fallible<()> {
        let number = |x: &Dynamic, what: &str| {
            as_complex(x).ok_or_else(|| {
                Error::input(format!("the {what} is a number, not {}", type_of(x)))
                    .hint("like `h.add_decaying(1.0, 0.5, \"Sz\", i, \"Sz\")`")
            })
        };
        let site = usize::try_from(site_1).map_err(|_| {
            Error::input(format!("site {site_1} of operator `{op_1}` is negative"))
                .hint("sites are numbered from 0")
        })?;
        Ok(sum.add_tail(ExponentialTail {
            coefficient: number(&coefficient, "coefficient")?,
            ratio: number(&ratio, "ratio")?,
            first: op_1.into(),
            site,
            second: op_2.into(),
            step: o.count("step")?,
            turned: false,
        })?)
    }

    /// The terms that an infinite chain repeats every `n` sites, for `dmrg::uniform`: they are taken from a sum for a
    /// longer open chain, from the terms that begin on its first `n` sites. If the sum has an `order` of its sites, as
    /// on a cylinder, sites are counted in that order. Terms that do not repeat are refused, and so is a constant.
    ///
    /// They are no Hamiltonian of a longer chain: searches and `exact::operator` say so where sites are left without a
    /// term.
    ///
    /// # Example
    /// ```rhai
    /// let h = models::heisenberg(sites("S=1/2", 8)).cell(2);
    /// assert(h.terms == 6, "two bonds of three terms");
    /// ```
    #[rhai_fn(global, name = "cell", pure, return_raw)]
    pub fn cell(sum: &mut OpSum, n: INT) -> Fallible<OpSum> {
        Ok(sum.cell(usize::try_from(n).unwrap_or(0))?)
    }

    /// The terms of `times` cells in a row, from the terms of a cell of `n` sites that an infinite chain repeats.
    ///
    /// # Example
    /// ```rhai
    /// let h = opsum();
    /// h.add(1.0, "Sz", 0, "Sz", 1);
    /// assert(h.repeated(1, 3).terms == 3, "three bonds");
    /// ```
    #[rhai_fn(global, name = "repeated", return_raw, pure)]
    pub fn repeated(sum: &mut OpSum, n: INT, times: INT) -> Fallible<OpSum> {
        match (usize::try_from(n), usize::try_from(times)) {
            (Ok(n), Ok(times)) if n > 0 && times > 0 && times <= 1_000_000 => {
                sum.fits_cell(n)?;
                Ok(sum.repeated(n, times))
            }
            _ => Err(Error::input(format!("{times} cells of {n} sites")).hint("one of each at least").into()),
        }
    }

    /// Declares the chain of sites that a sum is for, as the functions of `models` do. Walkers with another number of
    /// sites, or with two electrons on a "tJ" site, then refuse the sum. No term changes.
    ///
    /// # Example
    /// ```rhai
    /// let h = opsum();
    /// h.add(-1.0, "Cdagup", 0, "Cup", 1);
    /// h.add(-1.0, "Cdagup", 1, "Cup", 0);
    /// h.meant_for(sites("tJ", 2));
    /// assert(h.terms == 2, "as before");
    /// ```
    #[rhai_fn(global, name = "meant_for")]
    pub fn meant_for(sum: &mut OpSum, sites: Sites) {
        sum.meant_for(&sites);
    }

    /// The adjoint sum: coefficients are conjugated, operators are adjoint and in reverse order. So `h + h.dagger()` is
    /// Hermitian.
    ///
    /// # Example
    /// ```rhai
    /// let hopping = opsum();
    /// for i in 0..4 { hopping.add(complex(0.0, -1.0), "Cdag", i, "C", (i + 1) % 4); }
    /// let h = hopping + hopping.dagger() + 1.0;
    /// let ring = exact::operator(h, sites("Fermion", 4), #{ N: 1 });
    /// assert_close(ring.to_matrix().eigh().values[0], 1.0 - 2.0, 1e-12);
    /// ```
    #[rhai_fn(global, name = "dagger", pure)]
    pub fn dagger(sum: &mut OpSum) -> OpSum {
        sum.dagger()
    }

    /// Number of terms.
    ///
    /// # Example
    /// ```rhai
    /// assert(opsum().terms == 0, "empty");
    /// ```
    #[rhai_fn(global, get = "terms", pure)]
    pub fn terms(sum: &mut OpSum) -> INT {
        (sum.terms().len() + sum.tails().len()) as INT
    }

    /// A number that tells sums apart: by their terms, in the order in which they were added.
    ///
    /// # Example
    /// ```rhai
    /// let ring = |u| models::hubbard_chain(4, #{ U: u });
    /// assert(ring.call(4.0).hash == ring.call(4.0).hash, "of the same");
    /// assert(ring.call(4.0).hash != ring.call(2.0).hash, "of others");
    /// ```
    #[rhai_fn(global, get = "hash", pure)]
    pub fn hash(sum: &mut OpSum) -> INT {
        sum.fingerprint() as INT
    }

    #[rhai_fn(name = "+")]
    pub fn plus(a: OpSum, b: OpSum) -> OpSum {
        a + b
    }

    #[rhai_fn(name = "-")]
    pub fn minus(a: OpSum, b: OpSum) -> OpSum {
        a + b * C64::from(-1.0)
    }

    #[rhai_fn(name = "-")]
    pub fn negative(a: OpSum) -> OpSum {
        a * C64::from(-1.0)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn site_to_string(site: &mut Arc<Site>) -> String {
        format!("Site `{}` of {} states", site.name(), site.dim())
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn sites_to_string(sites: &mut Sites) -> String {
        sites.to_string()
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn opsum_to_string(sum: &mut OpSum) -> String {
        sum.to_string()
    }
}

#[export_module(root = "crate::script::native")]
mod checks {
    /// Says once that the sum is only that of a cell (`cell`), where sites of the chain are left without a term.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 8);
    /// internal::note_cell(models::heisenberg(chain), chain);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn note_cell(sum: OpSum, chain: Sites) -> Fallible<()> {
        Ok(super::note_cell(&sum, chain.count())?)
    }
}

#[export_module(root = "crate::script::native")]
mod own_sites {
    /// A kind of site of your own, from Matrices.
    ///
    /// # Options
    /// - `operators` (map, required): a map from name to Matrix; the size of all is the number of states.
    /// - `charges` (map, none): a map from the name of a conserved number to its value for each state,
    ///   multiples of 1/2.
    /// - `modulo` (map, none): a map from the name of a charge to n, if the charge counts modulo n (a Z_n symmetry).
    /// - `fermionic` (array, none): names of the operators that anticommute with those on other sites.
    /// - `odd` (array, none): 1 for each state with an odd number of fermions, 0 for the others.
    /// - `states` (array, "0", "1", ...): names of the states.
    /// - `name` ("own"): the name of the site in messages.
    ///
    /// # Example
    /// ```rhai
    /// let l = matrix([[1, 0, 0], [0, 0, 0], [0, 0, -1]]);
    /// let rotor = models::site(#{ operators: #{ L: l }, charges: #{ L: [1, 0, -1] } });
    /// assert(exact::basis(sites(rotor, 2), #{ L: 0 }).dim == 3, "three ways to cancel");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn site(o: Options) -> Fallible<Arc<Site>> {
        let site = own_site(&o)?;
        Ok(Arc::new(site))
    }
}
