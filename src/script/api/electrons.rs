//! Electrons in the levels of models at momenta.

use rhai::plugin::*;
use rhai::{Array, Dynamic, Map};

use super::bands::counts;
use super::blocks::rows_of;
use super::model::ScriptModel;
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::method::{self, Filling, OccupiedOptions};
use crate::number::Series;
use crate::script::rooms::{INTERNAL, Rooms};
use crate::script::{Fallible, Options};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("bloch", exported_module!(electron_functions));
    rooms.room(INTERNAL, exported_module!(phases));
}

/// The models of an array.
fn models_of(all: &Array) -> Result<Vec<ScriptModel>> {
    let model = |value: &Dynamic| {
        value.clone().try_cast::<ScriptModel>().ok_or_else(|| {
            Error::input(format!("electrons of {}", super::values::type_of(value)))
                .hint("give a Model, or an array of them, as of two spins")
        })
    };
    all.iter().map(model).collect()
}

/// The density matrices of models, one map for each, and what they have in common.
fn electrons(ctx: &NativeCallContext, models: &[ScriptModel], o: &Options) -> Fallible<(Map, Vec<Map>)> {
    let grid = o.given("kpoints");
    let cell = |model: &ScriptModel| -> Fallible<Bloch> {
        Ok(Bloch::sample(&model.with_strain(ctx)?, grid.is_some())?)
    };
    let cells = models.iter().map(cell).collect::<Fallible<Vec<Bloch>>>()?;
    let d = cells.first().map_or(0, Bloch::dimension);
    let grid = grid.map_or(Ok(Vec::new()), |grid| counts(&grid, d))?;
    let filling = match o.maybe_float("electrons")? {
        Some(count) => Filling::Count(count),
        None => Filling::Potential(o.maybe_float("potential")?.unwrap_or(0.0)),
    };
    let bonds = o.flag("bonds")?;
    let options = OccupiedOptions { grid, filling, temperature: o.float("temperature")?, bonds };
    let found = method::occupied(&cells, &options, &o.task()?)?;
    let mut common = Map::new();
    common.insert("potential".into(), found.potential.into());
    common.insert("energy".into(), found.energy.into());
    common.insert("entropy".into(), found.entropy.into());
    common.insert("range".into(), Dynamic::from_array(found.range.map(Dynamic::from).into()));
    let each = cells.iter().zip(&found.models).map(|(cell, electrons)| {
        let orbitals = cell.cell().orbitals();
        let full = electrons.sites.iter().flat_map(|block| (0..orbitals).map(|a| block.get(a, a).re));
        let mut map = Map::new();
        map.insert("occupations".into(), Dynamic::from(Series::Real(full.collect())));
        map.insert("sites".into(), rows_of(&electrons.sites, orbitals).into());
        if bonds {
            map.insert("bonds".into(), rows_of(&electrons.bonds, orbitals).into());
        }
        map.insert("diagonal".into(), Dynamic::from(Series::Real(electrons.diagonal.clone())));
        map
    });
    Ok((common, each.collect()))
}

#[export_module(root = "crate::script::native")]
mod phases {
    /// What takes the phases of boundaries and of fields from the elements of nearest-neighbour bonds of a sample, row
    /// of the site that a bond reaches and column of that it leaves, in the order of `bonds()` of the lattice.
    #[rhai_fn(return_raw)]
    pub fn bond_phases(ctx: NativeCallContext, m: ScriptModel) -> Fallible<Series> {
        let bonds = Bloch::sample(&m.with_strain(&ctx)?, false)?.bonds()?;
        Ok(Series::Complex(bonds.iter().map(|bond| bond.field * bond.boundary).collect()))
    }
}

#[export_module(root = "crate::script::native")]
mod electron_functions {
    /// The density matrix of the free electrons of a Model, <c_b^dagger c_a> = <a|f(H)|b> with f the Fermi function,
    /// averaged over a grid of momenta: a map of `occupations` (a Series by row), `sites` (the block of each site, as
    /// an array of rows whose elements are Series over the sites: `sites[a][b]`), `bonds` with that option,
    /// `potential`, `energy` (the filled levels' sum, of the sample), `entropy` (of the sample, k_B = 1), `range` (the
    /// lowest and the highest level), and `diagonal`, that of the Hamiltonian by row. The sample is the unit cell of a
    /// crystal, whose momenta are `kpoints`; without them it is as it is. An array of Models, as of two spins, has one
    /// potential for all, and the map has arrays with an element for each. At zero temperature levels of one energy are
    /// equally full. `meanfield::density_matrix` takes an Operator.
    ///
    /// # Options
    /// - `kpoints` (int or array, none): momenta in each periodic direction, one number or one a direction, in place of
    ///   the boundaries' own phases.
    /// - `electrons` (float >= 0, none): how many there are in the sample, in all Models together; not with
    ///   `potential`.
    /// - `potential` (float, 0): the chemical potential; not with `electrons`.
    /// - `temperature` (float >= 0, 0.0): in energy (k_B = 1).
    /// - `bonds` (false): also the blocks of nearest-neighbour bonds, in the order of `bonds()` of the lattice:
    ///   `bonds[a][b]`, orbital a on the site that a bond reaches, b on that which it leaves, so that a hopping of
    ///   `m.nearest(t)` has the energy 2 Re(conj(t) x) on a bond of x. `m.nearest(bonds)` takes them as hoppings. In a
    ///   model with pairing the rows and columns are electrons and then holes.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// // half a chain: <c_0^dagger c_1> = sin(pi/2)/pi
    /// let m = model(lattice::chain(1));
    /// m.nearest(-1.0);
    /// let rho = bloch::density_matrix(m, #{ kpoints: 1002, electrons: 0.5, bonds: true });
    /// assert_close(rho.bonds[0][0][0], 1.0 / PI, 1e-5);
    /// assert_close(rho.energy, -2.0 / PI, 1e-5);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn density_matrix(ctx: NativeCallContext, m: ScriptModel, o: Options) -> Fallible<Map> {
        let (mut all, mut each) = electrons(&ctx, &[m], &o)?;
        all.extend(each.remove(0));
        Ok(all)
    }

    #[rhai_fn(name = "density_matrix", return_raw)]
    pub fn density_matrices(ctx: NativeCallContext, models: Array, o: Options) -> Fallible<Map> {
        let models = models_of(&models)?;
        let (mut all, each) = electrons(&ctx, &models, &o)?;
        for key in each[0].keys() {
            let parts: Array = each.iter().map(|map| map[key].clone()).collect();
            all.insert(key.clone(), parts.into());
        }
        Ok(all)
    }
}
