//! `Model`: orbitals, on-site terms and hoppings on a lattice, built into an operator.

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, FnPtr, INT};

use super::blocks::blocks_of;
use super::chebyshev::as_complex;
use super::lattice::{ints, momentum, reals, sublattice_of, truth};
use super::two_centre::SlaterKoster;
use super::values::{real, type_of};
use crate::error::{Error, Result};
use crate::lattice::{Bond, Lattice, Model, OfBond, OfPosition, OrbitalBlock};
use crate::number::{Matrix, Series};
use crate::operator::{MatrixFormat, Operator};
use crate::script::callback::{Callback, floats};
use crate::script::{Fallible, Options, session};
use crate::task::Task;

/// A model, and the strain that waits for all hoppings to be there.
#[derive(Clone)]
pub(crate) struct ScriptModel {
    pub model: Model,
    strain: Option<Strain>,
}

/// Functions of positions and of bond lengths, which take one of them at a time or many.
#[derive(Clone)]
struct Strain {
    map: FnPtr,
    factor: FnPtr,
    at_once: bool,
}

impl ScriptModel {
    pub(super) fn new(model: Model) -> Self {
        ScriptModel { model, strain: None }
    }

    /// The model with its strain put in.
    pub(super) fn with_strain(&self, ctx: &NativeCallContext) -> Fallible<Model> {
        Ok(strained(ctx, self)?.unwrap_or_else(|| self.model.clone()))
    }

    /// Whether a strain waits for `build`.
    pub(super) fn is_strained(&self) -> bool {
        self.strain.is_some()
    }
}

/// Registers the type and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<ScriptModel>("Model");
    engine.register_global_module(exported_module!(model_functions).into());
}

/// A term: a number (times the identity) or a matrix of the orbitals.
pub(super) fn block_of(value: &Dynamic, orbitals: usize) -> Result<OrbitalBlock> {
    if let Some(z) = as_complex(value) {
        return Ok(OrbitalBlock::scalar(orbitals, z));
    }
    let Some(m) = value.clone().try_cast::<Matrix>() else {
        return Err(Error::input(format!("a term is a number or a Matrix, not {}", type_of(value)))
            .hint("a function of position must return one of the two on every path"));
    };
    if m.rows() != orbitals || m.cols() != orbitals {
        return Err(Error::input(format!(
            "a {} x {} matrix is no term of a model with {orbitals} orbitals per site",
            m.rows(),
            m.cols()
        ))
        .hint("it has a row and a column for each orbital"));
    }
    OrbitalBlock::new(orbitals, m.data().to_complex())
}

/// A displacement in cells; one number where there is one direction.
pub(super) fn shift_of(value: &Dynamic) -> Result<Vec<i64>> {
    if let Ok(step) = value.as_int() {
        return Ok(vec![step]);
    }
    match value.clone().try_cast::<Array>() {
        Some(array) => ints(&array, "a displacement in cells"),
        None => Err(Error::input("a displacement is an array of whole numbers, one per direction")
            .hint("like `[1, 0]`, the neighbour along the first vector")),
    }
}

/// Adds a hopping between sublattices, or over each to itself where none are named.
fn add_hop(
    ctx: &NativeCallContext,
    model: &mut Model,
    shift: &Dynamic,
    pair: Option<(&Dynamic, &Dynamic)>,
    value: &Dynamic,
) -> Fallible<()> {
    let lattice = model.lattice();
    let pairs = match pair {
        Some((from, to)) => vec![(sublattice_of(lattice, from)?, sublattice_of(lattice, to)?)],
        None => (0..lattice.basis().len()).map(|s| (s, s)).collect(),
    };
    let shift = shift_of(shift)?;
    if let Some(integrals) = value.clone().try_cast::<SlaterKoster>() {
        let bonds = pairs.into_iter().map(|(from, to)| Bond { shift: shift[..].into(), from, to });
        return integrals.add(ctx, model, bonds.collect());
    }
    for (from, to) in pairs {
        let same = |model: &mut Model, block: &_| model.hop_between(&shift, from, to, block);
        with_bond(ctx, model, value, same, |model, f, task| model.hop_with(&shift, from, to, f, task))?;
    }
    Ok(())
}

/// Calls a script's function with a position, and with what the second argument is if it takes two.
type Called<'a> = dyn FnMut(&[f64], &dyn Fn() -> Dynamic) -> Result<OrbitalBlock> + 'a;

/// Adds a term that is a value by `same`, or one that is a script's function by `each`.
fn with_term(
    ctx: &NativeCallContext,
    model: &mut Model,
    value: &Dynamic,
    same: impl FnOnce(&mut Model, &OrbitalBlock) -> Result<()>,
    each: impl FnOnce(&mut Model, &mut Called<'_>, &Task) -> Result<()>,
) -> Fallible<()> {
    let orbitals = model.particles();
    let Some(f) = value.clone().try_cast::<FnPtr>() else {
        return Ok(same(model, &block_of(value, orbitals)?)?);
    };
    let task = session()?.task(true);
    let calls = Callback::new(ctx);
    let both = calls.takes(&f, 2);
    let mut term = |r: &[f64], second: &dyn Fn() -> Dynamic| {
        let value = if both { calls.call(&f, (floats(r), second())) } else { calls.call(&f, (floats(r),)) };
        block_of(&value?, orbitals)
    };
    let added = each(model, &mut term, &task);
    calls.finish(added)
}

/// Adds a hopping that is a value, or a script's function of one or two positions.
pub(super) fn with_bond(
    ctx: &NativeCallContext,
    model: &mut Model,
    value: &Dynamic,
    same: impl FnOnce(&mut Model, &OrbitalBlock) -> Result<()>,
    each: impl FnOnce(&mut Model, &mut OfBond<'_>, &Task) -> Result<()>,
) -> Fallible<()> {
    with_term(ctx, model, value, same, |model, call, task| {
        each(model, &mut |a, b| call(a, &|| floats(b)), task)
    })
}

/// Adds a term that is a value, or a script's function of position and number.
pub(super) fn at_sites(
    ctx: &NativeCallContext,
    model: &mut Model,
    value: &Dynamic,
    same: impl FnOnce(&mut Model, &OrbitalBlock) -> Result<()>,
    each: impl FnOnce(&mut Model, &mut OfPosition<'_>, &Task) -> Result<()>,
) -> Fallible<()> {
    with_term(ctx, model, value, same, |model, call, task| {
        let mut site: INT = -1;
        let mut of_site = |r: &[f64]| {
            site += 1;
            call(r, &|| site.into())
        };
        each(model, &mut of_site, task)
    })
}

/// Adds the energies that a script's function finds for all sites in one call, from their coordinates and numbers.
fn add_onsite_at_once(ctx: &NativeCallContext, model: &mut Model, value: &Dynamic) -> Fallible<()> {
    let Some(f) = value.clone().try_cast::<FnPtr>() else {
        let hint = "leave it out for a number, a Matrix or a Series";
        return Err(Error::input("the option `at_once` is for a function of positions").hint(hint).into());
    };
    let lattice = model.lattice();
    let axis = |axis| Ok(Dynamic::from(Series::Real(lattice.along(axis)?)));
    let positions: Array = (0..lattice.space()).map(axis).collect::<Result<_>>()?;
    let calls = Callback::new(ctx);
    let energies = if calls.takes(&f, 2) {
        let sites = Series::Real((0..lattice.sites()).map(|site| site as f64).collect());
        calls.call(&f, (positions, sites))
    } else {
        calls.call(&f, (positions,))
    };
    let added = energies.and_then(|energies| {
        let energies = match energies.try_cast_result::<Series>() {
            Ok(energies) => return model.onsite_each(energies.into_real("on-site energies")?),
            Err(other) => other,
        };
        let same = block_of(&energies, model.particles())
            .map_err(|e| e.hint("with `at_once`, r[0] is a Series of all x: return a Series, or a number"))?;
        model.onsite(&same)
    });
    calls.finish(added)
}

/// Adds an on-site term that is a value, a Series with one for each site,
/// or a script's function of position and number.
pub(super) fn add_onsite(ctx: &NativeCallContext, model: &mut Model, value: &Dynamic) -> Fallible<()> {
    if let Some(energies) = value.read_lock::<Series>() {
        return Ok(model.onsite_each(energies.as_real("on-site energies")?.to_vec())?);
    }
    if value.is_array() {
        let blocks = blocks_of(value, model.particles(), "on-site terms")?;
        return Ok(model.onsite_blocks(&blocks)?);
    }
    at_sites(ctx, model, value, Model::onsite, Model::onsite_with)
}

/// Adds a hopping over all nearest-neighbour bonds.
pub(super) fn add_nearest(ctx: &NativeCallContext, model: &mut Model, value: &Dynamic) -> Fallible<()> {
    if value.is::<Series>() || value.is_array() {
        let blocks = blocks_of(value, model.particles(), "hoppings over bonds")?;
        return Ok(model.nearest_each(&blocks)?);
    }
    if let Some(integrals) = value.clone().try_cast::<SlaterKoster>() {
        let bonds = model.nearest_bonds()?;
        return integrals.add(ctx, model, bonds);
    }
    with_bond(ctx, model, value, Model::nearest, Model::nearest_with)
}

/// The operator of a model, in the format and precision that the options name.
pub(super) fn build_operator(model: &Model, o: &Options) -> Result<Operator> {
    let format = storage_format(o)?;
    let single = single_precision(o)?;
    let device = session()?.device();
    Operator::of_model(&device, model, format, single)?.in_range()
}

/// The options `format`, `C` and `sigma`: how the entries of a matrix are kept.
pub(super) fn storage_format(o: &Options) -> Result<MatrixFormat> {
    // A slice has as many rows as a vector register of the CPU has lanes, or as a warp of a GPU has threads.
    let own = if session()?.device().name() == "cpu" { 8 } else { 32 };
    let chunk = o.maybe_count("C")?.unwrap_or(own);
    let sell = MatrixFormat::Sell { chunk, sigma: o.count("sigma")? };
    let names = [
        ("auto", MatrixFormat::Auto),
        ("csr", MatrixFormat::Csr),
        ("ell", MatrixFormat::Ell),
        ("sell", sell),
        ("dense", MatrixFormat::Dense),
        ("stencil", MatrixFormat::Stencil),
    ];
    o.one_of("format", &names)
}

/// Whether the option `precision` asks for 32 bits.
pub(super) fn single_precision(o: &Options) -> Result<bool> {
    o.one_of("precision", &[("double", false), ("single", true)])
}

#[export_module(root = "crate::script::native")]
mod model_functions {
    /// A tight-binding model with `orbitals` orbitals on every site of a lattice; terms are added to it, then `build`
    /// makes the operator. Row = site * orbitals + orbital.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(8), 2);
    /// m.onsite(pauli().z);
    /// m.hop([1], -0.5 * pauli().x);
    /// let h = m.build();
    /// assert(m.orbitals == 2 && h.orbitals == 2 && h.dim == 2 * m.lattice.sites, "two orbitals per site");
    /// ```
    #[rhai_fn(name = "model", return_raw)]
    pub fn make_model(lattice: Lattice, orbitals: INT) -> Fallible<ScriptModel> {
        let orbitals = usize::try_from(orbitals).map_err(|_| {
            Error::input(format!("a model of {orbitals} orbitals")).hint("a site has one orbital at least")
        });
        Ok(orbitals.and_then(|n| Model::new(lattice, n)).map(ScriptModel::new)?)
    }

    #[rhai_fn(name = "model", return_raw)]
    pub fn make_model_plain(lattice: Lattice) -> Fallible<ScriptModel> {
        Ok(Model::new(lattice, 1).map(ScriptModel::new)?)
    }

    /// Adds an on-site term: a number, a Hermitian Matrix of the orbitals, a function of the site's position (and of
    /// its number) that returns one, a Series with an energy for each site, or the matrices of all sites as an array of
    /// rows whose elements are Series over the sites. If the function is a formula, the option `at_once` is faster:
    /// seconds instead of a minute for ten million sites.
    ///
    /// # Options
    /// - `at_once` (false): call the function only once, with an array of Series: the coordinates of all sites along
    ///   each axis (and a Series of their numbers). It returns a Series of energies, or one number for all.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(8));
    /// m.onsite(|r| 0.1 * r[0]);
    /// m.onsite(|r, site| if site % 2 == 0 { 0.5 } else { -0.5 });
    /// m.onsite(|r| 0.01 * r[0] ** 2.0, #{ at_once: true });
    /// m.onsite(0.3 * random_numbers(8, #{ distribution: "gaussian", seed: 1 }));     // Gaussian disorder
    /// m.nearest(-1.0);
    /// assert(m.build().is_hermitian(), "Hermitian");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn onsite(
        ctx: NativeCallContext,
        model: &mut ScriptModel,
        term: Dynamic,
        o: Options,
    ) -> Fallible<()> {
        if o.flag("at_once")? {
            return add_onsite_at_once(&ctx, &mut model.model, &term);
        }
        add_onsite(&ctx, &mut model.model, &term)
    }

    /// Adds a hopping `<r + step| H |r>` from every cell `r` to cell `r + step`, on each sublattice; the Hermitian
    /// conjugate is added too. The hopping is a number, a Matrix, `lattice::slater_koster(..)`, a function of the start
    /// position, or a function of the start and the end position.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::square(6, 6), 1);
    /// m.hop([1, 0], -1.0);
    /// m.hop([0, 1], |from, to| -1.0 - 0.1 * sin(from[0]));
    /// assert(m.build().is_hermitian(), "Hermitian");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn hop(
        ctx: NativeCallContext,
        model: &mut ScriptModel,
        step: Dynamic,
        hopping: Dynamic,
    ) -> Fallible<()> {
        add_hop(&ctx, &mut model.model, &step, None, &hopping)
    }

    /// Adds a hopping `<r + step, to| H |r, from>` from site `from` of every cell `r` to site `to` of cell `r + step`,
    /// sublattices by number or name; the Hermitian conjugate is added too.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::honeycomb(6, 6), 1);
    /// m.nearest(-1.0);
    /// for step in [[1, 0], [-1, 1], [0, -1]] { m.hop(step, "A", "A", 0.1 * I); }
    /// assert(m.build().is_hermitian(), "Hermitian");
    /// ```
    #[rhai_fn(global, name = "hop", return_raw)]
    pub fn hop_between(
        ctx: NativeCallContext,
        model: &mut ScriptModel,
        step: Dynamic,
        from: Dynamic,
        to: Dynamic,
        hopping: Dynamic,
    ) -> Fallible<()> {
        add_hop(&ctx, &mut model.model, &step, Some((&from, &to)), &hopping)
    }

    /// Adds a hopping over every nearest-neighbour bond of the lattice, and its conjugate. The hopping is a number, a
    /// Matrix, a function of the start position or of the start and the end position, a Series with a number for each
    /// bond in the order of `bonds()` of the lattice, or the matrices of all bonds as an array of rows whose elements
    /// are Series.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::kagome(4, 4), 1);
    /// m.nearest(-1.0);
    /// assert_close(spectral_window(m.build(), #{ method: "gershgorin" }).upper, 4.0, 1e-12);
    /// let dimers = model(lattice::chain(4).boundary("open"));
    /// dimers.nearest(series([1.0, 0.5, 1.0]));
    /// assert_close(dimers.build().to_matrix().at(2, 1), 0.5, 1e-15);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn nearest(ctx: NativeCallContext, model: &mut ScriptModel, hopping: Dynamic) -> Fallible<()> {
        add_nearest(&ctx, &mut model.model, &hopping)
    }

    /// Adds an on-site term on one sublattice, by number or name.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::honeycomb(4, 4), 1);
    /// m.nearest(-1.0);
    /// m.sublattice("A", 0.2);
    /// m.sublattice("B", -0.2);
    /// let corner = m.bloch([1.0 / 3.0, 2.0 / 3.0]).eigh().values;
    /// assert_close(corner[1] - corner[0], 0.4, 1e-12);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn sublattice(model: &mut ScriptModel, site: Dynamic, term: Dynamic) -> Fallible<()> {
        let s = sublattice_of(model.model.lattice(), &site)?;
        let block = block_of(&term, model.model.particles())?;
        Ok(model.model.sublattice(s, &block)?)
    }

    /// Puts `alpha` flux quanta through every plaquette of the first two directions (Peierls phases in Landau gauge),
    /// or of the directions `a` and `b` of `m.flux(alpha, a, b)`. The vector potential points along the second
    /// direction and grows along the first one. So `m.flux(-alpha, 1, 0)` is the same field as `m.flux(alpha, 0, 1)` in
    /// another gauge. With `alpha` above zero it is the field along z of positive charges, or along -z of electrons.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::square(6, 6), 1);
    /// m.nearest(-1.0);
    /// m.flux(1.0 / 3.0);
    /// assert(m.build().is_hermitian(), "Hermitian");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn flux(model: &mut ScriptModel, alpha: Dynamic) -> Fallible<()> {
        Ok(real(&alpha, "the flux").and_then(|a| model.model.flux(a, 0, 1))?)
    }

    #[rhai_fn(global, name = "flux", return_raw)]
    pub fn flux_plane(model: &mut ScriptModel, alpha: Dynamic, a: INT, b: INT) -> Fallible<()> {
        let direction = |d: INT| {
            usize::try_from(d).map_err(|_| {
                Error::input(format!("the lattice has no direction {d}"))
                    .hint("directions are numbered from 0")
            })
        };
        Ok(model.model.flux(real(&alpha, "the flux")?, direction(a)?, direction(b)?)?)
    }

    /// Strains the lattice: `map` moves positions, and `factor`, a function of the new bond length or of the new and
    /// the old one, multiplies every hopping, also hoppings added later. Velocities and the volume are those of the
    /// strained lattice; plane waves use the unstrained positions. The volume is the sum over the cells, mapped at
    /// their corners and linearly between them.
    ///
    /// # Options
    /// - `at_once` (false): call both functions with many positions or bonds at a time. Then `r[0]` is a Series of x,
    ///   and the map returns an array of Series (or numbers, the same for all). Lengths and factors are Series.
    ///   Formulas need no other change; they take seconds instead of a minute for ten million sites.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::honeycomb(6, 6).boundary("open"), 1);
    /// m.nearest(-2.7);
    /// m.strain(|r| [1.05 * r[0], r[1]], |after, before| exp(-3.37 * (after / before - 1.0)));
    /// let h = m.build();
    /// assert(h.is_hermitian(), "Hermitian");
    /// m.strain(|r| [1.05 * r[0], r[1]], |after, before| exp(-3.37 * (after / before - 1.0)), #{ at_once: true });
    /// assert_close((m.build().to_matrix() - h.to_matrix()).norm(), 0.0, 1e-12);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn strain(model: &mut ScriptModel, map: FnPtr, factor: FnPtr, o: Options) -> Fallible<()> {
        let at_once = o.flag("at_once")?;
        model.strain = Some(Strain { map, factor, at_once });
        Ok(())
    }

    /// Displaces the orbitals of every site from it: an array with one displacement for each orbital, in lattice
    /// constants, or one for each sublattice and orbital, sublattice by sublattice. Velocities and the phases of a flux
    /// follow the orbitals.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(8), 2);
    /// m.place_orbitals([[0.0], [0.5]]);
    /// m.onsite(-1.0 * pauli().x);
    /// assert_close(m.build().velocity(0).to_matrix().at(0, 1).im, -0.5, 1e-15);    // i H (x_1 - x_0)
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn place_orbitals(model: &mut ScriptModel, places: Array) -> Fallible<()> {
        let given: Vec<Vec<f64>> =
            places.iter().map(|x| reals(x, "the place of an orbital")).collect::<Result<_>>()?;
        let sublattices = model.model.lattice().basis().len();
        let all = if given.len() == model.model.particles() {
            std::iter::repeat_n(given, sublattices).flatten().collect()
        } else {
            given
        };
        Ok(model.model.place_orbitals(all)?)
    }

    /// Removes the sites for whose position the function returns true; the remaining sites get new numbers.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::square(8, 8), 1);
    /// m.nearest(-1.0);
    /// m.remove(|r| r[0] < 2.0 && r[1] < 2.0);
    /// assert(m.build().dim == 60, "four are gone");
    /// ```
    #[rhai_fn(global, name = "remove", return_raw)]
    pub fn remove_sites(ctx: NativeCallContext, model: &mut ScriptModel, gone: FnPtr) -> Fallible<()> {
        let task = session()?.task(true);
        let calls = Callback::new(&ctx);
        let mut predicate = |r: &[f64]| truth(calls.call(&gone, (floats(r),))?);
        let removed = model.model.remove(&mut predicate, &task);
        calls.finish(removed)
    }

    /// Removes each site with probability `fraction`. Each call draws new numbers, even with the same seed.
    ///
    /// # Options
    /// - `seed` (int or string, the session's): seed of the random numbers.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::square(40, 40), 1);
    /// m.nearest(-1.0);
    /// m.vacancies(0.1, #{ seed: 2 });
    /// assert((m.build().dim - 1440).abs() < 60, "about a tenth is gone");
    /// m.vacancies(0.1);
    /// assert((m.build().dim - 1296).abs() < 90, "and of the rest");
    /// ```
    #[rhai_fn(global, name = "vacancies", return_raw)]
    pub fn model_vacancies(model: &mut ScriptModel, fraction: Dynamic, o: Options) -> Fallible<()> {
        let seed = o.seed()?;
        Ok(real(&fraction, "the fraction").and_then(|f| model.model.vacancies(f, seed))?)
    }

    /// The operator of the model.
    ///
    /// # Options
    /// - `format` ("auto" or "stencil" or "csr" or "ell" or "sell" or "dense"): "stencil" stores no matrix. "auto" is a
    ///   stencil if all elements except the diagonal are translation invariant, otherwise compressed rows.
    /// - `C` (int >= 1, 8 on a CPU and 32 on a GPU): rows in a slice, on a GPU a power of two; only with
    ///   `format: "sell"`.
    /// - `sigma` (int >= 1, 64): the number of rows that are sorted by length together; only with `format: "sell"`.
    ///   `occupancy` of the operator is the fraction that is not padding.
    /// - `precision` ("double" or "single"): precision of the numbers.
    /// - `k` (float or array, none): the Bloch Hamiltonian of the whole sample, sparse, at a momentum in units of the
    ///   sample's reciprocal vectors, one number for every periodic direction. It replaces the phase of the boundary:
    ///   "antiperiodic" without it is `k: 0.5`.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(8), 1);
    /// m.nearest(-1.0);
    /// print(m.build(#{ format: "csr" }));
    /// // a momentum of the sample is an eighth of one of the cell
    /// let lowest = m.build(#{ k: 0.5 }).to_matrix().eigh().values[0];
    /// assert_close(lowest, -2.0 * cos(2.0 * PI * 0.5 / 8.0), 1e-14);
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn build(ctx: NativeCallContext, model: &mut ScriptModel, o: Options) -> Fallible<Operator> {
        let strained = strained(&ctx, model)?;
        let model = strained.as_ref().unwrap_or(&model.model);
        match o.given("k") {
            None => Ok(build_operator(model, &o)?),
            Some(k) => Ok(build_operator(&model.at_momentum(&momentum(&k)?)?, &o)?),
        }
    }

    /// The lattice of the model.
    #[rhai_fn(global, get = "lattice", pure)]
    pub fn lattice_of_model(model: &mut ScriptModel) -> Lattice {
        model.model.lattice().clone()
    }

    /// The number of orbitals per site; with a pairing, those of electrons and holes together, electrons first.
    #[rhai_fn(global, get = "orbitals", pure)]
    pub fn orbitals(model: &mut ScriptModel) -> INT {
        model.model.orbitals() as INT
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn model_to_string(model: &mut ScriptModel) -> String {
        model.model.to_string()
    }
}

/// The model with its strain put in, if it has one.
fn strained(ctx: &NativeCallContext, model: &ScriptModel) -> Fallible<Option<Model>> {
    let Some(Strain { map, factor, at_once }) = &model.strain else { return Ok(None) };
    let task = session()?.task(true);
    let calls = Callback::new(ctx);
    let both = calls.takes(factor, 2);
    let mut strained = model.model.clone();
    let result = if *at_once {
        let series = |x: &[f64]| Dynamic::from(Series::Real(x.to_vec()));
        let mut positions = |x: &[&[f64]]| {
            let place: Array = x.iter().map(|x| series(x)).collect();
            many_positions(calls.call(map, (place,))?, x[0].len())
        };
        let mut factors = |new: &[f64], old: &[f64]| {
            let (new, old, count) = (series(new), series(old), new.len());
            let values = if both { calls.call(factor, (new, old)) } else { calls.call(factor, (new,)) };
            many(values?, count, "the factor of strained hoppings")
        };
        strained.strain_many(&mut positions, &mut factors, &task)
    } else {
        strained.strain(
            &mut |r| reals(&calls.call(map, (floats(r),))?, "a strained position"),
            &mut |new, old| {
                let value = if both { calls.call(factor, (new, old)) } else { calls.call(factor, (new,)) };
                real(&value?, "the factor of a strained hopping")
            },
            &task,
        )
    };
    if result.is_err() {
        // Only then: a map may fail at a corner beyond the sites, and only the volume needs it there.
        calls.finish(result)?;
    }
    Ok(Some(strained))
}

/// Reals from a Series, or so many of the same number.
fn many(value: Dynamic, count: usize, what: &str) -> Result<Vec<f64>> {
    match value.try_cast_result::<Series>() {
        Ok(all) => all.into_real(what),
        Err(one) => Ok(vec![real(&one, what)?; count]),
    }
}

/// Coordinates of many positions along each axis.
fn many_positions(value: Dynamic, count: usize) -> Result<Vec<Vec<f64>>> {
    let what = "the strained positions";
    let axes = value.try_cast::<Array>().ok_or_else(|| {
        Error::input("with `at_once`, a strain returns an array with a Series for each axis")
            .hint("like |r| [1.1 * r[0], r[1]]")
    })?;
    axes.into_iter().map(|axis| many(axis, count, what)).collect()
}
