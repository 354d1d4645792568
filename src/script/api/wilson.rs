//! The module `wilson`: the Wilson-Dirac operator and spinor fields.

use std::ops::Range;

use rhai::plugin::*;
use rhai::{Dynamic, FLOAT, INT};

use super::gauge::site_of;
use super::model::single_precision;
use super::values::type_of;
use super::vector::Vector;
use crate::backend::matrix::wilson::Compression;
use crate::backend::{Grid, Region, Rows};
use crate::error::{Error, Result};
use crate::gauge::{Links, grid_of, reference_row};
use crate::lattice::Lattice;
use crate::number::{C64, DType, Series, memory};
use crate::operator::{Operator, SiteDiagonal, WilsonOperator};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};
use crate::task;

/// Sites whose rows are set at once.
const TOGETHER: usize = 1 << 12;

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("wilson", exported_module!(wilson_module));
}

/// How links are kept, by the option `storage`.
pub(super) fn storage(o: &Options) -> Result<Compression> {
    let names = [Compression::Full, Compression::Twelve, Compression::Eight].map(|c| (c.name(), c));
    o.one_of("storage", &names)
}

/// The lattice that something lives on: a Lattice, or that of a gauge field or of an operator on spinors.
pub(super) fn grid(value: &Dynamic) -> Result<Grid> {
    if let Some(grid) = value.clone().try_cast::<Operator>().and_then(|h| h.rows().grid) {
        return Ok(grid);
    }
    if let Some(u) = value.clone().try_cast::<Links>() {
        return Ok(u.grid());
    }
    match value.clone().try_cast::<Lattice>() {
        Some(lattice) => grid_of(&lattice),
        None => Err(Error::input(format!(
            "spinors live on a Lattice or a gauge field, not on {}",
            type_of(value)
        ))
        .hint("make a lattice with `lattice::hypercubic(4, 4, 4, 8)`")),
    }
}

/// A chirality, 1 or -1.
pub(super) fn chirality(sign: INT) -> Result<i32> {
    match sign {
        1 => Ok(1),
        -1 => Ok(-1),
        other => Err(Error::input(format!("chirality {other}")).hint("it is 1 or -1")),
    }
}

#[export_module(root = "crate::script::native")]
mod wilson_module {
    /// The Wilson-Dirac operator 4 + mass - 1/2 sum_mu [(1 - g_mu) U_mu(x) T_mu + (1 + g_mu) T_mu^+ U_mu(x)^+] on
    /// spinor fields with 12 rows per site: row = 12 site + 3 spin + colour. The gamma matrices are those of DeGrand
    /// and Rossi.
    ///
    /// # Options
    /// - `mass` (0.0): the bare mass, in units of 1/a.
    /// - `storage` ("reconstruct-12" or "reconstruct-8" or "full"): how links are kept.
    /// - `precision` ("double" or "single"): precision of the numbers.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::hypercubic(4, 4, 4, 4);
    /// let d = wilson::operator(gauge::reference_field(lat, 0.3), #{ mass: 0.0 });
    /// assert_close(norm(d * wilson::reference_spinor(lat, 2)) ** 2.0, 40810.4576995651, 1e-7);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn operator(u: Links, o: Options) -> Fallible<Operator> {
        let spec = u.wilson(o.float("mass")?, false, storage(&o)?, single_precision(&o)?)?;
        Ok(WilsonOperator::build(&session()?.device(), spec)?)
    }

    /// The kernel of the overlap operator: the Hermitian Q = gamma5 (D_W - 1 - s).
    ///
    /// # Options
    /// - `s` (-1 < float < 1, 0.4): the mass of D_W is -1 - s.
    /// - `storage` ("reconstruct-12" or "reconstruct-8" or "full"): how links are kept.
    /// - `precision` ("double" or "single"): precision of the numbers.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::hypercubic(4, 4, 4, 4);
    /// let q = wilson::kernel(gauge::reference_field(lat, 0.3), #{ s: 0.4 });
    /// assert(q.is_hermitian(), "gamma5-hermiticity");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn kernel(u: Links, o: Options) -> Fallible<Operator> {
        let spec = u.wilson(-1.0 - o.float("s")?, true, storage(&o)?, single_precision(&o)?)?;
        Ok(WilsonOperator::build(&session()?.device(), spec)?)
    }

    /// gamma5 = diag(1, 1, -1, -1) on the spinor fields of a lattice or gauge field.
    ///
    /// # Options
    /// - `precision` ("double" or "single"): precision of the numbers.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::hypercubic(4, 4, 4, 4);
    /// let g5 = wilson::gamma5(lat);
    /// let psi = wilson::reference_spinor(lat, 2);
    /// assert_close(norm(g5 * (g5 * psi) - psi), 0.0, 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn gamma5(on: Dynamic, o: Options) -> Fallible<Operator> {
        diagonal(&on, o, [1.0, -1.0])
    }

    /// The projector (1 + sign gamma5)/2 onto one chirality, on the spinor fields of a lattice or gauge field.
    ///
    /// # Options
    /// - `precision` ("double" or "single"): precision of the numbers.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::hypercubic(4, 4, 4, 4);
    /// let psi = wilson::reference_spinor(lat, 2);
    /// let both = wilson::chiral_projector(lat, 1) * psi + wilson::chiral_projector(lat, -1) * psi;
    /// assert_close(norm(both - psi), 0.0, 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn chiral_projector(on: Dynamic, sign: INT, o: Options) -> Fallible<Operator> {
        diagonal(&on, o, if chirality(sign)? > 0 { [1.0, 0.0] } else { [0.0, 1.0] })
    }

    /// The reproducible reference spinor of a stream (2 is called psi, 3 chi). Real and imaginary parts are 2 u - 1.
    /// Here u is the first output of SplitMix64, mapped to [0, 1), for the seed stream 2^40 + 2 row (real part) and the
    /// next seed (imaginary part).
    ///
    /// # Example
    /// ```rhai
    /// let psi = wilson::reference_spinor(lattice::hypercubic(4, 4, 4, 4), 2);
    /// assert_close(norm(psi) ** 2.0, 2058.1939194674, 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn reference_spinor(on: Dynamic, stream: INT) -> Fallible<Vector> {
        let grid = grid(&on)?;
        let stream = u64::try_from(stream).ok().filter(|s| *s < 1 << 20).ok_or_else(|| {
            Error::input(format!("stream {stream} of reference spinors"))
                .hint("streams are numbers from 0 to 2^20 - 1; 2 is called psi, 3 chi")
        })?;
        let device = session()?.device();
        let region = Region::on(&device, grid.dims)?;
        let (own, per) = (region.own_sites(), grid.per_site);
        // As made, and on the device.
        let room = memory::ensure(2 * 192 * own as u128, &format!("a spinor on {own} sites"));
        region.agreed(room)?;
        let rows = |sites: Range<usize>| {
            let sites = sites.map(|k| region.number(region.own_place(k)));
            sites
                .flat_map(move |site| per * site..per * (site + 1))
                .map(|row| (row, reference_row(row, stream)))
        };
        let stop = task::current();
        if !region.is_shared() {
            let data: Vec<C64> = rows(0..own).inspect(|_| stop.heed()).map(|(_, z)| z).collect();
            return Ok(Vector::new(&device, device.upload(DType::C64, Rows::on(grid), 1, &data)?));
        }
        let mut v = device.zeros(DType::C64, Rows::on(grid), 1)?;
        for first in (0..own).step_by(TOGETHER) {
            stop.heed();
            let some = first..(first + TOGETHER).min(own);
            let entries: Vec<_> = rows(some).map(|(row, z)| (row, 0, z)).collect();
            device.set_entries(&mut v, &entries)?;
        }
        Ok(Vector::new(&device, v))
    }

    /// Point sources at a site, given by its number or its four coordinates: twelve columns, one for each spin and
    /// colour, column = 3 spin + colour.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::hypercubic(4, 4, 4, 4);
    /// let eta = wilson::point_source(lat, [0, 0, 0, 1]);
    /// assert(eta.columns == 12, "spins and colours");
    /// assert_close(norm((eta - wilson::point_source(lat, 64)).column(7)), 0.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn point_source(on: Dynamic, site: Dynamic) -> Fallible<Vector> {
        let grid = grid(&on)?;
        let (site, per) = (site_of(&site, grid)?, grid.per_site);
        let device = session()?.device();
        let mut v = device.zeros(DType::C64, Rows::on(grid), per)?;
        let ones: Vec<_> = (0..per).map(|k| (site * per + k, k, C64::ONE)).collect();
        device.set_entries(&mut v, &ones)?;
        Ok(Vector::new(&device, v))
    }

    /// The sums of |psi|^2 over each time slice (direction 3) and over all columns. For the twelve columns of a
    /// propagator this is the correlator of the pion. The first slice is time 0, or the time of a site given by its
    /// number or its four coordinates.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::hypercubic(4, 4, 4, 8);
    /// let c = wilson::time_slices(wilson::point_source(lat, 0));
    /// assert(c.len == 8 && c[0] == 12.0 && c[1] == 0.0, "all at time 0");
    /// let late = wilson::point_source(lat, [0, 0, 0, 6]);
    /// assert(wilson::time_slices(late)[6] == 12.0 && wilson::time_slices(late, [0, 0, 0, 6])[0] == 12.0, "at time 6");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn time_slices(psi: Vector) -> Fallible<Series> {
        time_slices_from(psi, Dynamic::from(0 as INT))
    }

    #[rhai_fn(name = "time_slices", return_raw)]
    pub fn time_slices_from(psi: Vector, site: Dynamic) -> Fallible<Series> {
        let grid = psi.block.rows().grid.ok_or_else(|| {
            Error::input("these vectors live on no lattice of spinors")
                .hint("make them with `wilson::point_source(u, 0)` or by an operator of the module wilson")
        })?;
        let first = grid.coordinates(site_of(&site, grid)?)[3];
        let numbers = match psi.device.distributed() {
            Some(ranks) => ranks.download_own(&psi.block)?,
            None => psi.device.download(&psi.block)?,
        };
        let each = grid.per_site * psi.block.columns();
        let own = Region::on(&psi.device, grid.dims)?;
        // Where ranks share the sites, all of them have either their own or all: they decide together.
        let held: u64 = own.gathered(vec![numbers.len() as u64])?.iter().flatten().sum();
        let region = if held == (own.sites() * each) as u64 { own } else { Region::whole(grid.dims) };
        let mut own = vec![0.0; grid.dims[3]];
        for (k, site) in numbers.chunks(each).enumerate() {
            let time = region.coordinates(region.own_place(k))[3];
            site.iter().for_each(|z| own[time] += z.norm_sqr());
        }
        let mut sums = vec![0.0; grid.dims[3]];
        for of_rank in region.gathered(own.iter().map(|x: &f64| x.to_bits()).collect())? {
            sums.iter_mut().zip(of_rank).for_each(|(sum, x)| *sum += f64::from_bits(x));
        }
        sums.rotate_left(first);
        Ok(Series::Real(sums))
    }
}

fn diagonal(on: &Dynamic, o: Options, [upper, lower]: [FLOAT; 2]) -> Fallible<Operator> {
    let factors = [[upper; 6], [lower; 6]].concat();
    Ok(SiteDiagonal::build(&session()?.device(), Rows::on(grid(on)?), factors, single_precision(&o)?)?)
}
