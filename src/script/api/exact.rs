//! The module `exact`: operators of sums on symmetry sectors, and the bases of these.

use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, FLOAT, INT, Map};

use super::manybody::{by_sector, note_cell, sector_of, states_of};
use super::model::{single_precision, storage_format};
use super::values::{numbered, type_of};
use super::vector::{Vector, row_numbers};
use crate::backend::Rows;
use crate::error::{Error, Result};
use crate::manybody::dmrg::{Mpo, Superblock, total_spin};
use crate::manybody::symmetric::{self, SectorOperatorOptions, Subspace, Symmetry};
use crate::manybody::{OpSum, Sector, Site, Sites};
use crate::number::{C64, Series, student};
use crate::operator::{MatrixFormat, Operator};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};
use crate::task::Task;

/// Registers the type, the module and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Subspace>("Basis");
    rooms.register_global_module(exported_module!(basis_functions).into());
    rooms.room("exact", exported_module!(exact_module));
    rooms.room("internal", exported_module!(errors));
}

#[export_module(root = "crate::script::native")]
mod errors {
    /// By how much the standard error of a mean of so many independent values grows, so that it holds the true one two
    /// times out of three (Student).
    ///
    /// # Example
    /// ```rhai
    /// assert_close(internal::student(2), 1.837, 1e-3);
    /// ```
    pub fn student(samples: INT) -> FLOAT {
        student::factor(usize::try_from(samples).unwrap_or(0))
    }
}

/// The conserved numbers and the symmetries that a sector's map names.
fn parts_of(sector: &Map) -> Result<(Sector, Vec<Symmetry>)> {
    let mut numbers = sector.clone();
    let symmetries = match numbers.remove("symmetries") {
        None => Vec::new(),
        Some(all) => {
            let wrong = |x: &Dynamic| {
                Error::input(format!("the sector's `symmetries` hold {}", type_of(x)))
                    .hint("like `symmetries: [exact::translation(chain, 0), exact::reflection(chain, 1)]`")
            };
            let array = all.read_lock::<Array>().ok_or_else(|| wrong(&all))?;
            let one = |x: &Dynamic| x.clone().try_cast::<Symmetry>().ok_or_else(|| wrong(x));
            array.iter().map(one).collect::<Result<Vec<_>>>()?
        }
    };
    Ok((sector_of(&numbers)?, symmetries))
}

/// The states that a sector's map names.
fn subspace(sites: &Sites, sector: &Map, task: &Task) -> Result<Subspace> {
    let (numbers, symmetries) = parts_of(sector)?;
    if total_spin(sites, &numbers)?.0.is_some() {
        return Err(Error::input("a basis of total spin").hint(
            "its states are no product states: S is for `exact::operator(sum, sites, #{ S: 0 })`, alone or with N; \
             bases and `symmetries` name Sz",
        ));
    }
    Subspace::new(sites, &numbers, &symmetries, task)
}

/// How many states a sector has; multiplets, if it names a total spin: S = s has as many as Sz = s has states more than
/// Sz = s + 1.
fn states_in(sites: &Sites, sector: &Map, task: &Task) -> Result<usize> {
    let (numbers, symmetries) = parts_of(sector)?;
    let (spin, rest) = total_spin(sites, &numbers)?;
    let Some(spin) = spin else { return Subspace::count(sites, &numbers, &symmetries, task) };
    if !symmetries.is_empty() {
        return Err(Error::input("a sector of total spin with symmetries").hint("name Sz in place of S"));
    }
    let with = |twice: i32| {
        let mut sector = rest.clone();
        sector.push(("Sz".into(), f64::from(twice) / 2.0));
        Subspace::count(sites, &sector, &[], task)
    };
    Ok(with(spin)? - with(spin + 2)?)
}

/// The sectors of `#{ from: .., to: .. }`, or the one that a map names.
fn sectors(sites: &Sites, sector: &Map, task: &Task) -> Result<(Subspace, Option<Subspace>)> {
    let part = |name: &str| -> Result<Option<Subspace>> {
        let Some(part) = sector.get(name) else { return Ok(None) };
        if let Some(space) = part.read_lock::<Subspace>() {
            return Ok(Some(space.clone()));
        }
        let map = part.read_lock::<Map>().ok_or_else(|| {
            Error::input(format!("the sector `{name}` is {}", type_of(part)))
                .hint("a sector is a map like `#{ Sz: 0 }`")
        })?;
        subspace(sites, &map, task).map(Some)
    };
    match (part("from")?, part("to")?) {
        (None, None) => Ok((subspace(sites, sector, task)?, None)),
        (Some(from), Some(to)) if sector.len() == 2 => Ok((from, Some(to))),
        _ => Err(Error::input("an operator from one sector to another names both, and nothing else")
            .hint("like `#{ from: #{ Sz: 0 }, to: #{ Sz: 1 } }`")),
    }
}

/// The operator that options ask for.
fn operator_of(
    sum: &OpSum,
    spaces: (&Subspace, Option<&Subspace>),
    o: &Options,
    task: &Task,
) -> Result<Operator> {
    let stored = o.maybe::<bool>("matrix");
    if spaces.1.is_none() {
        note_cell(sum, spaces.0.sites().count())?;
    }
    let (format, single) = (storage_format(o)?, single_precision(o)?);
    let wanted = SectorOperatorOptions { format, single, project: o.flag("project")?, stored };
    symmetric::operator(&session()?.device(), sum, spaces, wanted, task)?.in_range()
}

/// The operator of a sector of total spin, if the map names one: products of both halves of the chain,
/// nothing truncated.
fn multiplets(
    sum: &OpSum,
    sites: &Sites,
    sector: &Map,
    o: &Options,
    task: &Task,
) -> Result<Option<Operator>> {
    if ["from", "to", "symmetries"].iter().any(|key| sector.contains_key(*key)) {
        return Ok(None);
    }
    let sector = sector_of(sector)?;
    if total_spin(sites, &sector)?.0.is_none() {
        return Ok(None);
    }
    let stored = o.text("format")? != "auto" || o.maybe::<bool>("matrix").is_some() || single_precision(o)?;
    if stored || o.flag("project")? {
        return Err(Error::input("an option for stored matrices in a sector of S")
            .hint("operators of multiplets are products of two halves of the chain: they have no format"));
    }
    note_cell(sum, sites.count())?;
    let mpo = Mpo::hamiltonian(sum, sites, &sector)?;
    let device = session()?.device();
    Ok(Some(if mpo.is_complex() {
        Superblock::<C64>::whole(&device, &mpo, task)?.into_operator(&device)
    } else {
        Superblock::<f64>::whole(&device, &mpo, task)?.into_operator(&device)
    }))
}

/// A vector whose numbers another function of the sector makes; all rows pass through each process.
fn remade(
    v: &Vector,
    (from, to): (usize, usize),
    make: impl FnOnce(&[C64], usize) -> Result<Vec<C64>>,
) -> Result<Vector> {
    let (v, device) = (&v.block, &v.device);
    if v.rows().global != from {
        return Err(Error::input(format!("a vector of {} rows for {from} states", v.rows().global))
            .hint("the vector and the sector belong together"));
    }
    let made = make(&device.download(v)?, v.columns())?;
    let real = made.iter().all(|z| z.im == 0.0) && !v.dtype().is_complex();
    let dtype = if real { v.dtype() } else { v.dtype().to_complex() };
    Ok(Vector::new(device, device.upload(dtype, Rows::all(to), v.columns(), &made)?))
}

#[export_module(root = "crate::script::native")]
mod basis_functions {
    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn basis_to_string(basis: &mut Subspace) -> String {
        basis.to_string()
    }

    /// Number of states of a basis.
    ///
    /// # Example
    /// ```rhai
    /// assert(exact::basis(sites("S=1/2", 10), #{ Sz: 0 }).dim == 252, "C(10, 5)");
    /// ```
    #[rhai_fn(global, get = "dim", pure)]
    pub fn basis_dim(basis: &mut Subspace) -> INT {
        basis.dim() as INT
    }

    /// The number of symmetries in the group of a basis: all products of those that its sector names, including the
    /// identity.
    ///
    /// # Example
    /// ```rhai
    /// let ring = sites("S=1/2", 6);
    /// let basis = exact::basis(ring, #{ symmetries: [exact::translation(ring, 0), exact::reflection(ring, 1)] });
    /// assert(basis.symmetries == 12, "turns and reflections of a hexagon");
    /// ```
    #[rhai_fn(global, get = "symmetries", pure)]
    pub fn basis_symmetries(basis: &mut Subspace) -> INT {
        basis.symmetries() as INT
    }

    /// The names of the local states of state `number` of a basis. With symmetries, a state is an orbit of product
    /// states, and the names are those of the first one.
    ///
    /// # Example
    /// ```rhai
    /// let one_down = exact::basis(sites("S=1/2", 3), #{ Sz: 0.5 });
    /// assert(one_down.state(0) == ["Up", "Up", "Dn"], "the last site changes fastest");
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn state(basis: &mut Subspace, number: INT) -> Fallible<Array> {
        let states = basis.state(numbered(number, "state")?)?;
        let name = |(site, s): (&Arc<Site>, &u8)| Dynamic::from(site.states()[*s as usize].clone());
        Ok(basis.sites().iter().zip(&states).map(name).collect())
    }

    /// The number of the product state with the given local states: the row for `unit_block`. With symmetries, it is
    /// the number of the orbit that contains the product state.
    ///
    /// # Example
    /// ```rhai
    /// let basis = exact::basis(sites("Electron", 2), #{ Nup: 1, Ndn: 1 });
    /// assert(basis.state(basis.number(["Up", "Dn"])) == ["Up", "Dn"], "there and back");
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn number(basis: &mut Subspace, states: Array) -> Fallible<INT> {
        let local: Vec<u8> = states_of(basis.sites(), &states)?.into_iter().map(|s| s as u8).collect();
        let number = basis.number(&local)?;
        Ok(number.map(|n| n as INT).ok_or_else(|| {
            Error::input("the state lies outside the sector").hint("its numbers are others than the sector's")
        })?)
    }
}

#[export_module(root = "crate::script::native")]
mod exact_module {
    /// The matrix of a sum of operators, as an operator on all states of the sites with given conserved numbers.
    ///
    /// The sector is a map like `#{ Sz: 0.0 }`, `#{ Nup: 3, Ndn: 3 }` or `#{ N: 4 }`; numbers that it does not name are
    /// free. Row numbers are those of `exact::basis`. Its `symmetries` divide it further: an array of
    /// `exact::translation`, `exact::reflection`, `exact::rotation`, `exact::spin_flip` and `exact::permutation` with
    /// their quantum numbers. All their products form a group, which must have a state with these quantum numbers. A
    /// sum that the group changes is refused. Basis states are then orbits of product states (Sandvik 2010). Matrix
    /// elements are real unless a quantum number is complex.
    ///
    /// `#{ from: sector, to: sector }` gives the rectangular matrix from one sector to another, for example of S+ or of
    /// a density wave. Only the part of the sum that ends in `to` counts. Both sectors have the same symmetries with
    /// any quantum numbers, or `to` has none.
    ///
    /// `#{ S: 1 }`, for electrons `#{ N: 6, S: 0 }`, is a sector of total spin, with one state for each multiplet of 2
    /// S + 1 states. The sum must be Hermitian and invariant under spin rotations. Products are then computed from two
    /// halves of the chain, and no matrix is kept. `dmrg::state(h, v, #{})` makes a vector of this sector a DmrgState
    /// for measurements.
    ///
    /// # Options
    /// - `format` ("auto" or "csr" or "ell" or "sell" or "dense"): how entries are stored; not with `matrix: false`.
    /// - `C`, `sigma`: as for `build`.
    /// - `precision` ("double" or "single"): precision of the numbers.
    /// - `matrix` (bool, where it fits into memory): keep the matrix. Without it every product generates the entries
    ///   again on the CPU; each rank computes its share of the rows and holds the whole vectors.
    /// - `project` (false): if the sum leads out of the sector, take the part that stays inside. Expectation values in
    ///   the sector are those of the sum.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let h = opsum();
    /// h.add(0.5, "S+", 0, "S-", 1);
    /// h.add(0.5, "S-", 0, "S+", 1);
    /// h.add(1.0, "Sz", 0, "Sz", 1);
    /// let pair = exact::operator(h, sites("S=1/2", 2), #{ Sz: 0.0 }, #{ format: "dense" });
    /// assert(pair.dim == 2 && pair.is_hermitian(), "singlet and triplet");
    /// // The ground state of a ring, in a sector of 13 states instead of 252.
    /// let ring = sites("S=1/2", 10);
    /// let all = [exact::translation(ring, 5), exact::reflection(ring, -1), exact::spin_flip(ring, -1)];
    /// let small = exact::operator(models::heisenberg(ring, #{ periodic: true }), ring, #{ Sz: 0, symmetries: all });
    /// assert(small.dim == 13, "of 252");
    /// assert_close(small.to_matrix().eigh().values[0], -4.515446354, 1e-9);
    /// // Its singlets, 42 of them.
    /// let singlets = exact::operator(models::heisenberg(ring, #{ periodic: true }), ring, #{ S: 0 });
    /// assert(singlets.dim == 42, "of 252");
    /// assert_close(davidson(singlets, #{ seed: 1 }).values[0], -4.515446354, 1e-8);
    /// ```
    #[rhai_fn(name = "operator", return_raw)]
    pub fn operator_with(sum: OpSum, sites: Sites, sector: Map, o: Options) -> Fallible<Operator> {
        let task = o.task()?;
        if let Some(operator) = multiplets(&sum, &sites, &sector, &o, &task)? {
            return Ok(operator);
        }
        let (from, to) = sectors(&sites, &sector, &task)?;
        Ok(operator_of(&sum, (&from, to.as_ref()), &o, &task)?)
    }

    #[rhai_fn(name = "operator", return_raw)]
    pub fn operator_on_all(sum: OpSum, sites: Sites) -> Fallible<Operator> {
        let session = session()?;
        let task = session.task(true);
        let all = subspace(&sites, &Map::new(), &task)?;
        note_cell(&sum, sites.count())?;
        let wanted =
            SectorOperatorOptions { format: MatrixFormat::Auto, single: false, project: false, stored: None };
        Ok(symmetric::operator(&session.device(), &sum, (&all, None), wanted, &task)?)
    }

    /// The matrix of a sum of operators in a basis made by `exact::basis`.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let basis = exact::basis(chain, #{ Sz: 0.0 });
    /// let h = models::heisenberg(chain);
    /// let neel = unit_block(exact::operator(h, basis), [basis.number(["Up", "Dn", "Up", "Dn"])]);
    /// assert_close(dot(neel, exact::operator(h, basis) * neel), -0.75, 1e-14);
    /// ```
    #[rhai_fn(name = "operator", return_raw)]
    pub fn operator_in_basis_with(sum: OpSum, basis: Subspace, o: Options) -> Fallible<Operator> {
        Ok(operator_of(&sum, (&basis, None), &o, &o.task()?)?)
    }

    /// The states of the sites with given conserved numbers, and `symmetries` if the sector names some, in the order of
    /// the operators' rows. With a basis the orbits are found only once, not for every operator. Every rank finds all
    /// of them.
    ///
    /// There is no basis of total spin `S`: the rows of `exact::operator(h, chain, #{ S: 0 })` are multiplets,
    /// superpositions of many product states. The operator's `dim` counts them. `dmrg::state(h, v, #{}).component(m)`
    /// makes a vector of multiplets a state with Sz = m for measurements and overlaps with product states.
    ///
    /// # Example
    /// ```rhai
    /// assert(exact::basis(sites("Electron", 4), #{ Nup: 2, Ndn: 2 }).dim == 36, "C(4, 2)^2");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn basis(sites: Sites, sector: Map) -> Fallible<Subspace> {
        Ok(subspace(&sites, &sector, &session()?.task(true))?)
    }

    #[rhai_fn(name = "basis", return_raw)]
    pub fn basis_of_all(sites: Sites) -> Fallible<Subspace> {
        Ok(subspace(&sites, &Map::new(), &session()?.task(true))?)
    }

    /// How many states a sector has: the rows of its operators, without making them. It is 0 for a sector without
    /// states, which `exact::basis` and `exact::operator` refuse, so a loop over momenta can leave it out.
    ///
    /// # Example
    /// ```rhai
    /// let ring = sites("S=1/2", 4);
    /// let all = [];
    /// for k in 0..4 {
    ///     let sector = #{ Sz: 1, symmetries: [exact::translation(ring, k)] };
    ///     all.push(exact::dimension(ring, sector));
    /// }
    /// assert(all == [1, 1, 1, 1], "one magnon of each momentum");
    /// let up = #{ Sz: 2, symmetries: [exact::translation(ring, 1)] };
    /// assert(exact::dimension(ring, up) == 0, "all up is a state of momentum zero");
    /// assert(exact::dimension(ring, #{ S: 1 }) == 3, "triplets of four spins");
    /// assert(exact::dimension(ring) == 16, "2^4");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn dimension(sites: Sites, sector: Map) -> Fallible<INT> {
        Ok(states_in(&sites, &sector, &session()?.task(true))? as INT)
    }

    #[rhai_fn(name = "dimension", return_raw)]
    pub fn dimension_of_all(sites: Sites) -> Fallible<INT> {
        Ok(states_in(&sites, &Map::new(), &session()?.task(true))? as INT)
    }

    /// Vectors of a sector with symmetries as vectors of the same sector without them, where every operator can act.
    /// All rows pass through the memory of each rank.
    ///
    /// # Example
    /// ```rhai
    /// let ring = sites("S=1/2", 6);
    /// let h = models::heisenberg(ring, #{ periodic: true });
    /// let basis = exact::basis(ring, #{ Sz: 0, symmetries: [exact::translation(ring, 3)] });
    /// let ground = davidson(exact::operator(h, basis), #{ seed: 1 });
    /// let psi = exact::unfold(ground.vectors, basis);
    /// let plain = exact::operator(h, ring, #{ Sz: 0 });
    /// assert_close(norm(plain * psi - psi * ground.values[0]), 0.0, 1e-6);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn unfold(v: Vector, basis: Subspace) -> Fallible<Vector> {
        let dims = (basis.dim(), basis.plain().dim());
        Ok(remade(&v, dims, |numbers, columns| basis.unfold(numbers, columns))?)
    }

    /// The part of vectors of a sector without symmetries that lies in the same sector with them: the inverse of
    /// `exact::unfold`. It projects onto momenta and parities. All rows pass through the memory of each rank.
    ///
    /// # Example
    /// ```rhai
    /// let ring = sites("S=1/2", 4);
    /// let basis = exact::basis(ring, #{ Sz: 0, symmetries: [exact::translation(ring, 0)] });
    /// let plain = exact::basis(ring, #{ Sz: 0 });
    /// let neel = unit_block(exact::operator(opsum() + 1.0, plain), [plain.number(["Up", "Dn", "Up", "Dn"])]);
    /// assert_close(norm(exact::fold(neel, basis)) ** 2.0, 0.5, 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn fold(v: Vector, basis: Subspace) -> Fallible<Vector> {
        let dims = (basis.plain().dim(), basis.dim());
        Ok(remade(&v, dims, |numbers, columns| basis.fold(numbers, columns))?)
    }

    /// The entanglement of a part of the sites with the rest, in a vector of a basis: a map of `entropy` (of order
    /// `alpha`), `weights` (of the Schmidt decomposition, descending) and `by_sector`, the weights by the conserved
    /// numbers of the part: an array of maps with `sector` and `weights`. The part is any set of sites. For fermions
    /// the signs of reordering the sites are included. All numbers of the vector pass through the memory of each rank.
    ///
    /// # Options
    /// - `alpha` (float >= 0, 1.0): order of the entropy, `ln(sum w^alpha) / (1 - alpha)`; of order 1, von Neumann's,
    ///   `- sum w ln w`.
    ///
    /// # Example
    /// ```rhai
    /// // A ring of four spins: its ground state, and two sites that face each other.
    /// let ring = sites("S=1/2", 4);
    /// let basis = exact::basis(ring, #{ Sz: 0, symmetries: [exact::translation(ring, 0)] });
    /// let h = exact::operator(models::heisenberg(ring, #{ periodic: true }), basis);
    /// let ground = h.to_matrix().eigh().vectors.column(0);
    /// let v = block(exact::operator(opsum() + 1.0, basis), ground);
    /// assert_close(exact::entanglement(v, basis, [0, 2]).entropy, log(3.0), 1e-12);
    /// let up = exact::entanglement(v, basis, [1], #{ alpha: 2.0 }).by_sector[1];
    /// assert(up.sector.Sz == 0.5, "ascending");
    /// assert_close(up.weights[0], 0.5, 1e-12);
    /// ```
    #[rhai_fn(name = "entanglement", return_raw)]
    pub fn entanglement_with(v: Vector, basis: Subspace, part: Dynamic, o: Options) -> Fallible<Map> {
        let part = row_numbers(part, "site")?;
        if v.block.columns() != 1 || v.block.rows().global != basis.dim() {
            return Err(Error::input(format!(
                "the entanglement of {} vectors of {} rows in a basis of {} states",
                v.block.columns(),
                v.block.rows().global,
                basis.dim()
            ))
            .hint("one column, `v.column(0)`, and the basis that it was made in")
            .into());
        }
        let alpha = o.float("alpha")?;
        let found = basis.entanglement(&v.device.download(&v.block)?, &part, alpha)?;
        let mut map = Map::new();
        map.insert("entropy".into(), found.entropy.into());
        map.insert("weights".into(), Dynamic::from(Series::Real(found.weights)));
        map.insert("by_sector".into(), by_sector(found.by_sector).into());
        Ok(map)
    }
}
