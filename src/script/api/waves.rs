//! The vectors and operators that spectra need of a lattice: plane waves, paths in momentum space,
//! rows of sites, velocities.

use rhai::plugin::*;
use rhai::{Array, FLOAT, INT, Map};

use super::values::{numbered, real};
use super::vector::Vector;
use crate::error::{Error, Result};
use crate::method;
use crate::number::Series;
use crate::operator::Operator;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("lattice", exported_module!(wave_functions));
}

/// Momenta: an array of arrays, or one array of numbers.
fn momenta(given: &Array) -> Result<Vec<Vec<f64>>> {
    given
        .iter()
        .map(|k| match k.read_lock::<Array>() {
            Some(k) => k.iter().map(|x| real(x, "a momentum")).collect(),
            None => Err(Error::input("momenta are given as an array of arrays, like [[0.0, 0.0, 0.0]]")
                .hint("there is an array of components for each momentum")),
        })
        .collect()
}

#[export_module(root = "crate::script::native")]
mod wave_functions {
    /// Normalised plane waves exp(i k r)/sqrt(n): a column for every momentum (radians per lattice constant) and
    /// orbital. The positions are those of the orbitals without strain. Orbitals are at the sites unless
    /// `place_orbitals` displaced them.
    ///
    /// # Options
    /// - `layer` (int >= 0, all): the index along `direction` of the cells that carry the wave.
    /// - `direction` (int >= 0, the last): the direction that layers are counted along.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let wave = lattice::plane_waves(h, [[PI / 4.0]], #{});
    /// assert_close(norm(h * wave + 2.0 * cos(PI / 4.0) * wave), 0.0, 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn plane_waves(h: Operator, k: Array, o: Options) -> Fallible<Vector> {
        let geometry = method::geometry(&h)?;
        let last = geometry.lattice.dimension().saturating_sub(1);
        let direction = o.maybe_count("direction")?.unwrap_or(last);
        let sites = o.maybe_count("layer")?.map(|layer| geometry.layer(direction, layer)).transpose()?;
        let orbitals: Vec<usize> = (0..geometry.orbitals).collect();
        let waves = method::plane_waves(&h, &momenta(&k)?, &orbitals, sites.as_deref())?;
        Ok(Vector::new(h.device(), waves))
    }

    /// Which momenta are allowed on the operator's lattice: an array of true and false. For an allowed momentum the
    /// wave exp(i k r) is continuous across the periodic boundaries; without twist it is a multiple of 2 pi over the
    /// length of the sample.
    ///
    /// # Options
    /// - `layer` (int >= 0, none): for waves on this layer only, which may have any momentum along `direction`.
    /// - `direction` (int >= 0, the last): the direction that layers are counted along.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// assert(lattice::momenta_fit(h, [[PI / 4.0], [0.3]], #{}) == [true, false], "eight cells");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn momenta_fit(h: Operator, k: Array, o: Options) -> Fallible<Array> {
        let last = method::geometry(&h)?.lattice.dimension().saturating_sub(1);
        let direction = o.maybe_count("direction")?.unwrap_or(last);
        let free = o.given("layer").map(|_| direction);
        let fit = method::momenta_fit(&h, &momenta(&k)?, free)?;
        Ok(fit.into_iter().map(Dynamic::from).collect())
    }

    /// Momenta along a path: a map of `momenta`, `points` of them, evenly spaced from the first corner to the last, and
    /// `length`, the distance of each along the path.
    ///
    /// # Example
    /// ```rhai
    /// let walk = lattice::k_path([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]], 4);
    /// assert_close(walk.length[3], 3.0, 1e-15);
    /// assert_close(walk.momenta[2][1], 1.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn k_path(path: Array, points: INT) -> Fallible<Map> {
        let corners = momenta(&path)?;
        let space = corners.first().map_or(0, Vec::len);
        if corners.len() < 2 || space == 0 || corners.iter().any(|k| k.len() != space) {
            return Err(Error::input("a path has two corners at least, all of one dimension")
                .hint("like `[[0.0, 0.0], [PI, PI]]`")
                .into());
        }
        let points = usize::try_from(points).ok().filter(|n| (2..=1 << 24).contains(n));
        let points = points.ok_or_else(|| {
            Error::input("a path of too few or too many points").hint("ask for two at least")
        })?;
        let (momenta, length) = method::k_path(&corners, points);
        let row = |k: Vec<f64>| Dynamic::from(k.into_iter().map(Dynamic::from).collect::<Array>());
        let mut map = Map::new();
        map.insert("momenta".into(), momenta.into_iter().map(row).collect::<Array>().into());
        map.insert("length".into(), Dynamic::from(Series::Real(length)));
        Ok(map)
    }

    /// The number of orbitals per site of the operator's lattice.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(8), 2);
    /// m.onsite(pauli().z);
    /// assert(m.build().orbitals == 2, "spin up and down");
    /// ```
    #[rhai_fn(global, get = "orbitals", pure, return_raw)]
    pub fn orbitals(h: &mut Operator) -> Fallible<INT> {
        Ok(method::geometry(h).map(|g| g.orbitals as INT)?)
    }

    /// The volume of the operator's lattice: the number of cells times the volume of one cell, with the strain
    /// included.
    #[rhai_fn(global, get = "volume", pure, return_raw)]
    pub fn volume(h: &mut Operator) -> Fallible<FLOAT> {
        Ok(method::geometry(h).and_then(|g| g.volume())?)
    }

    /// The rows of a site's orbitals.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// assert(h.rows_of(3) == [3], "one orbital a site");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn rows_of(h: &mut Operator, site: INT) -> Fallible<Array> {
        let geometry = method::geometry(h)?;
        let at = usize::try_from(site).map_err(|_| {
            Error::input(format!("site {site} is negative")).hint("sites are numbered from 0")
        })?;
        Ok((0..geometry.orbitals)
            .map(|i| Ok(Dynamic::from(geometry.row(at, i)? as INT)))
            .collect::<Result<Array>>()?)
    }

    /// The velocity operator i [H, x] along a Cartesian axis (hbar = 1), in energies times lattice constants: each
    /// hopping times i and the displacement from its start to its end, across boundaries and with the strain included.
    /// Sums, multiples and products of operators have velocities if all their parts have velocities. The velocity of a
    /// velocity is i [v, x].
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let k = PI / 4.0;
    /// let wave = lattice::plane_waves(h, [[k]], #{});
    /// assert_close(norm(h.velocity(0) * wave - 2.0 * sin(k) * wave), 0.0, 1e-14);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn velocity(h: &mut Operator, axis: INT) -> Fallible<Operator> {
        Ok(h.velocity(numbered(axis, "axis")?)?)
    }
}
