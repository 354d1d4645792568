//! Conductivities of bands: sums over momenta and pairs of states.

use rhai::plugin::*;

use super::bands::{bloch, counts, positions};
use super::model::ScriptModel;
use super::values::to_series;
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::method::{self, BandElectrons, ConductivityOptions, SecondOrderOptions};
use crate::number::{Matrix, Series, Table};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("bloch", exported_module!(currents));
}

/// The axes that a word like "xy" names.
const AXES: [(&str, [usize; 2]); 9] = [
    ("xx", [0, 0]),
    ("xy", [0, 1]),
    ("xz", [0, 2]),
    ("yx", [1, 0]),
    ("yy", [1, 1]),
    ("yz", [1, 2]),
    ("zx", [2, 0]),
    ("zy", [2, 1]),
    ("zz", [2, 2]),
];

/// What all conductivities are summed over.
fn electrons(o: &Options, bloch: &Bloch) -> Result<BandElectrons> {
    Ok(BandElectrons {
        grid: counts(&o.value("grid")?, bloch.dimension())?,
        temperature: o.float("temperature")?,
        eta: o.float("eta")?,
        positions: positions(o, bloch)?,
    })
}

/// What both conductivities of first order take.
fn conditions(o: &Options, bloch: &Bloch) -> Result<ConductivityOptions> {
    let electrons = electrons(o, bloch)?;
    let axes = o.one_of("direction", &AXES)?;
    check_axes(&axes, bloch.cell().lattice().space())?;
    let within = o.maybe::<bool>("intraband").unwrap_or(electrons.temperature > 0.0 && electrons.eta > 0.0);
    Ok(ConductivityOptions { electrons, axes, within, carries: o.maybe::<Matrix>("carries") })
}

/// An error for an axis that a lattice in `d` dimensions does not have.
fn check_axes(axes: &[usize], d: usize) -> Result<()> {
    let Some(axis) = axes.iter().find(|axis| **axis >= d) else { return Ok(()) };
    let name = ["x", "y", "z"][*axis];
    Err(Error::input(format!("`direction` names the axis {name} of a lattice in {d} dimensions"))
        .hint(AXES_HINT))
}

const AXES_HINT: &str = "x is the first Cartesian axis, y the second, z the third";

/// The axes of a current and of two fields, from a word like "xyy".
fn three_axes(word: &str, d: usize) -> Result<[usize; 3]> {
    let axes: Vec<usize> = word.chars().filter_map(|axis| "xyz".find(axis)).collect();
    match <[usize; 3]>::try_from(axes) {
        Ok(axes) if word.len() == 3 => check_axes(&axes, d).map(|()| axes),
        _ => Err(Error::input(format!("a `direction` of \"{word}\""))
            .hint("three letters name the axes of the current and of both fields, like \"xyy\"")),
    }
}

#[export_module(root = "crate::script::native")]
mod currents {
    /// The DC conductivity of bands as a function of the chemical potential, by Kubo's formula: a sum over momenta and
    /// pairs of states, as a Table of `energy` and `conductivity`, in e^2/h times lattice constant^(2 - d). "xy" is the
    /// anomalous Hall conductivity (Thouless, Kohmoto, Nightingale, den Nijs 1982). Without `eta` it is the sum of the
    /// Berry curvatures of the filled states; in a gap it is the Chern number, with the sign of `chern_number`: a field
    /// along x drives this current along y. j_x = sigma_xy E_y has the other sign, that of "yx". The current of a metal
    /// along the field ("xx") needs `eta`, the scattering rate hbar/tau, and a temperature above the
    /// level spacing on the grid. The result is the real part of `bloch::optical_conductivity` at frequency 0. States
    /// are counted once: multiply by two for two spins. For samples without a repeating cell use `kpm::conductivity`.
    ///
    /// # Options
    /// - `energies` (array or Series or range, required): chemical potentials.
    /// - `direction` ("xx" or "xy" or "xz" or "yx" or "yy" or "yz" or "zx" or "zy" or "zz"): axes of current and
    ///   field, off the diagonal with the sign above.
    /// - `grid` (int >= 1 or array, 64): momenta in each direction: one number, or one per direction.
    /// - `temperature` (float >= 0, 0.0): an energy (k_B = 1).
    /// - `eta` (float >= 0, 0.0): broadening of the transitions by scattering, an energy; needed along the field.
    /// - `intraband` (bool, where `temperature` and `eta` are above 0): whether to include the current within bands.
    /// - `carries` (Matrix, none): a Hermitian matrix S on the rows of a cell: the current is (S v + v S)/2 instead of
    ///   v. The spin gives the spin Hall conductivity, per unit of S.
    /// - `positions` (array, none): models with the matrix elements of the position, one for each Cartesian axis, as
    ///   from `lattice::wannier90_position`. Velocities then include them. Without `eta` also what states outside
    ///   the model add to the Berry curvature (Wang, Yates, Souza, Vanderbilt 2006).
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// // two orbitals on a square: H = sin(kx) sx + sin(ky) sy + (1 + cos(kx) + cos(ky)) sz
    /// let s = pauli();
    /// let m = model(lattice::square(1, 1), 2);
    /// m.onsite(1.0 * s.z);
    /// m.hop([1, 0], 0.5 * s.z + 0.5 * I * s.x);
    /// m.hop([0, 1], 0.5 * s.z + 0.5 * I * s.y);
    /// let hall = bloch::conductivity(m, #{ energies: [-9.0, 0.0], direction: "xy" });
    /// assert_close(hall.conductivity[0], 0.0, 1e-12);
    /// assert_close(hall.conductivity[1], 1.0 * chern_number(m, #{ filled: 1 }), 1e-6);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn conductivity(m: ScriptModel, o: Options) -> Fallible<Table> {
        let bloch = bloch(&m)?;
        let options = conditions(&o, &bloch)?;
        let energies = to_series(&o.value("energies")?)?.as_real("energies")?.to_vec();
        let found = method::band_conductivity(&bloch, &energies, &options, &o.task()?)?;
        let columns = [("energy", energies), ("conductivity", found)];
        Ok(Table::from_columns(columns.map(|(name, column)| (name, Series::Real(column))))?)
    }

    /// The optical conductivity of bands by Kubo's formula (Kubo 1957; Greenwood 1958), a sum over momenta and pairs of
    /// states, sigma_ab(w) = i/V sum_k sum_nm (f_n - f_m)/(E_m - E_n) <m|v_a|n><n|v_b|m>/(w + E_n - E_m + i eta), as a
    /// Table of `frequency` (an energy, hbar = 1) and `conductivity`, complex, in e^2/h times lattice constant^(2 - d).
    /// The real part of "xx" describes absorption. For pairs of equal energy the quotient is -df/dE: they give the
    /// Drude current of a metal, i/(w + i eta) times its weight. States are counted once: multiply by two for two
    /// spins. For samples without a repeating cell use `kpm::optical_conductivity`.
    ///
    /// # Options
    /// - `frequencies` (array or Series or range, required): energies.
    /// - `potential` (0.0): chemical potential.
    /// - `eta` (float > 0, 0.05): imaginary part of the frequencies. Above the level spacing on the grid the sum is
    ///   smooth.
    /// - `direction`, `grid`, `temperature`, `intraband`, `carries`, `positions`, `progress`: as for
    ///   `bloch::conductivity`.
    ///
    /// # Example
    /// ```rhai
    /// // graphene absorbs pi/2 e^2/h for both spins at low frequencies, whatever its hopping
    /// let m = model(lattice::honeycomb(1, 1));
    /// m.nearest(-1.0);
    /// let t = bloch::optical_conductivity(m, #{ frequencies: [0.3], grid: 200, temperature: 0.02 });
    /// assert_close(2.0 * t.conductivity[0].re, PI / 2.0, 0.05);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn optical_conductivity(m: ScriptModel, o: Options) -> Fallible<Table> {
        let bloch = bloch(&m)?;
        let options = conditions(&o, &bloch)?;
        let w = to_series(&o.value("frequencies")?)?.as_real("frequencies")?.to_vec();
        let found = method::band_optical(&bloch, &w, o.float("potential")?, &options, &o.task()?)?;
        Ok(Table::from_columns([("frequency", Series::Real(w)), ("conductivity", Series::Complex(found))])?)
    }

    /// The second-order conductivity of bands, a sum over momenta and triples of states (Parker, Morimoto, Orenstein,
    /// Moore 2019): the current j_a = sigma_abc E_b E_c at twice the frequency of a field E exp(-i w t), or with
    /// `process: "rectified"` the direct current of light, the sum over b and c of 2 sigma_abc E_b E_c^* for the field
    /// E exp(-i w t) and its conjugate. A Table of `frequency` (an energy, hbar = 1) and `conductivity`, complex, in
    /// e^3/h over the unit of energy, times lattice constant^(3 - d), for electrons of charge -e. It is the mean over
    /// both orders of the fields, and zero with inversion symmetry. Frequencies are w + i eta. The current within
    /// bands is included, so that the direct current along the field is both shift and injection current, which goes
    /// with 1/eta. States are counted once: multiply by two for two spins. The field moves momenta by E/w: towards
    /// low frequencies large numbers cancel, and the grid has to be finer (Passos et al. 2018).
    ///
    /// # Options
    /// - `frequencies` (array or Series or range, required): energies.
    /// - `direction` ("xxx"): axes of the current and of both fields, one letter each.
    /// - `process` ("harmonic" or "rectified"): the current at twice the frequency, or the direct one.
    /// - `potential` (0.0): chemical potential.
    /// - `eta` (float > 0, 0.05): imaginary part of the frequencies. Above the level spacing on the grid the sum is
    ///   smooth.
    /// - `positions` (array, none): models with the matrix elements of the position, one for each Cartesian axis, as
    ///   from `lattice::wannier90_position`. All derivatives then include them; what states outside the model add is
    ///   left out.
    /// - `grid`, `temperature`, `progress`: as for `bloch::conductivity`.
    ///
    /// # Example
    /// ```rhai
    /// // a chain of dimers whose sites differ; without that difference it has a centre of inversion
    /// let m = model(lattice::custom([[1.0]], #{ sites: [[0.0], [0.4]] }));
    /// m.hop([0], "A", "B", -1.2);
    /// m.hop([1], "B", "A", -0.7);
    /// let at = #{ frequencies: [0.8], eta: 0.1, grid: 200 };
    /// assert_close(abs(bloch::second_order_conductivity(m, at).conductivity[0]), 0.0, 1e-10);
    /// m.sublattice("A", 0.3);
    /// m.sublattice("B", -0.3);
    /// assert(abs(bloch::second_order_conductivity(m, at).conductivity[0]) > 0.1, "half of the gap");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn second_order_conductivity(m: ScriptModel, o: Options) -> Fallible<Table> {
        let bloch = bloch(&m)?;
        let options = SecondOrderOptions {
            electrons: electrons(&o, &bloch)?,
            axes: three_axes(&o.text("direction")?, bloch.cell().lattice().space())?,
            potential: o.float("potential")?,
            rectified: o.one_of("process", &[("harmonic", false), ("rectified", true)])?,
        };
        let w = to_series(&o.value("frequencies")?)?.as_real("frequencies")?.to_vec();
        let found = method::band_second_order(&bloch, &w, &options, &o.task()?)?;
        Ok(Table::from_columns([("frequency", Series::Real(w)), ("conductivity", Series::Complex(found))])?)
    }
}
