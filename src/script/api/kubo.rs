//! Two-dimensional moments, and the conductivity that Kubo's and Bastin's formula makes of them.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{FLOAT, INT};

use super::kpm::{kernel, orders, some_of};
use super::table::save_data;
use super::vector::Vector;
use crate::error::{Error, Result};
use crate::method::{Averaged, DoubleMoments, OpticalConditions, Provenance, Window};
use crate::number::{Matrix, Series};
use crate::operator::Operator;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

/// The script's handle to two-dimensional moments.
type SharedDouble = Rc<DoubleMoments>;

/// Registers the type and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<SharedDouble>("DoubleMoments");
    rooms.room("kpm", exported_module!(kubo_functions));
    rooms.room("internal", exported_module!(mixing));
}

/// The conductivity and its error, as the options say.
fn both(mu: &DoubleMoments, potentials: &Series, o: Options) -> Fallible<(Vec<f64>, Vec<f64>)> {
    let temperature = o.float("temperature")?;
    let volume = volume_of(mu, &o)?;
    let kernel = kernel(&o)?;
    Ok(mu.conductivity(potentials.as_real("chemical potentials")?, temperature, volume, kernel)?)
}

/// The volume of the sample.
fn volume_of(mu: &DoubleMoments, o: &Options) -> Result<f64> {
    o.maybe_float("volume")?.or(mu.volume).ok_or_else(|| {
        Error::input("the volume of the sample of these moments is not known")
            .hint("give the option `volume`")
    })
}

/// What an optical conductivity is of, as the options say.
fn optical_conditions(mu: &DoubleMoments, o: &Options) -> Fallible<OpticalConditions> {
    let (potential, temperature) = (o.float("potential")?, o.float("temperature")?);
    Ok(OpticalConditions { potential, temperature, volume: volume_of(mu, o)?, kernel: kernel(o)? })
}

#[export_module(root = "crate::script::native")]
mod kubo_functions {
    /// Two-dimensional moments Tr[A T_m(H~) B T_n(H~)]/D, averaged over the columns of `v`; `values` is a Matrix.
    /// Moments of more vectors are added with `+`.
    ///
    /// # Options
    /// - `label` (string, none): a name for the operators `a` and `b`; moments of different labels are never averaged.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let v = h.velocity(0);
    /// let mu = kpm::double_moments(h, window(-2.1, 2.1), v, v, unit_block(h, range(0, 8)), 4);
    /// assert_close(mu.values.at(0, 0), 2.0, 1e-14);     // Tr v^2 / D = 2 t^2
    /// assert(mu.len == 4 && mu.dim == 8 && mu.label == "" && mu.window.upper == 2.1, "4 x 4 moments of 8 rows");
    /// mu.save("double.npz");
    /// assert(load("double.npz").values == mu.values, "bit for bit");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn double_moments(
        h: Operator,
        window: Window,
        a: Operator,
        b: Operator,
        v: Vector,
        count: INT,
        o: Options,
    ) -> Fallible<SharedDouble> {
        let mut mu = DoubleMoments::new(&h, window, (&a, &b), &v.block, orders(count)?, &o.task()?)?;
        mu.record = Provenance::of(&[&h, &a, &b], &v.draws)?;
        let volume = mu.volume;
        Ok(Rc::new(mu.on(volume, o.maybe_text("label")?.unwrap_or_default())))
    }

    /// The average with moments of more vectors between the same operators. Moments of other operators are refused, and
    /// so are moments that share a vector.
    #[rhai_fn(global, name = "+", return_raw)]
    pub fn merge_double(a: SharedDouble, b: SharedDouble) -> Fallible<SharedDouble> {
        Ok(a.merge(&b).map(Rc::new)?)
    }

    /// The moments of `count` of the vectors, from number `first` on.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let v = h.velocity(0);
    /// let mu = kpm::double_moments(h, window(-2.1, 2.1), v, v, unit_block(h, [0, 3]), 4);
    /// assert(mu.select(1, 1).vectors == 1, "one vector");
    /// ```
    #[rhai_fn(global, name = "select", pure, return_raw)]
    pub fn select_double(mu: &mut SharedDouble, first: INT, count: INT) -> Fallible<SharedDouble> {
        Ok(some_of(first, count).and_then(|range| mu.select(range)).map(Rc::new)?)
    }

    /// Saves the moments of every vector with their window, volume and label: as NPZ, JSON or CSV by the file's name.
    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save_double(mu: &mut SharedDouble, file: &str) -> Fallible<()> {
        Ok(mu.to_table().and_then(|table| save_data(table.into(), file))?)
    }

    /// Number of vectors averaged over.
    #[rhai_fn(global, get = "vectors", pure)]
    pub fn double_vectors(mu: &mut SharedDouble) -> INT {
        mu.vectors() as INT
    }

    /// Number of orders in each direction.
    #[rhai_fn(global, get = "len", pure)]
    pub fn double_len(mu: &mut SharedDouble) -> INT {
        mu.count as INT
    }

    /// Dimension of the operator.
    #[rhai_fn(global, get = "dim", pure)]
    pub fn double_dim(mu: &mut SharedDouble) -> INT {
        mu.dim as INT
    }

    /// The name of the operators between the polynomials; for `kpm::conductivity_moments` it is the direction.
    #[rhai_fn(global, get = "label", pure)]
    pub fn double_label(mu: &mut SharedDouble) -> String {
        mu.label.clone()
    }

    /// The window of the moments.
    #[rhai_fn(global, get = "window", pure)]
    pub fn double_window(mu: &mut SharedDouble) -> Window {
        mu.window
    }

    /// The moments as a Matrix, row m and column n.
    #[rhai_fn(global, get = "values", pure, return_raw)]
    pub fn double_values(mu: &mut SharedDouble) -> Fallible<Matrix> {
        Ok(Matrix::new(mu.count, mu.count, Series::Complex(mu.values().to_vec()))?)
    }

    /// The conductivity by the Kubo-Bastin formula from moments of two velocities, in e^2/h times lattice constant^(2 -
    /// d), at the given chemical potentials. The integral over energies is done in closed form.
    ///
    /// # Options
    /// - `temperature` (0.0): an energy (k_B = 1).
    /// - `volume` (float, that of the operator's lattice): volume of the sample.
    /// - `kernel`, `parameter`: as for `kpm::dos`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::square(6, 5), #{ hopping: -1.0, disorder: 1.0, seed: 1 });
    /// let v = h.velocity(0);
    /// let mu = kpm::double_moments(h, window(-5.0, 5.0), v, v, unit_block(h, range(0, 30)), 32);
    /// let sigma = mu.conductivity(series([-6.0, 0.0, 6.0]), #{ volume: h.volume, temperature: 0.1 });
    /// assert(sigma[1] > 0.6 && abs(sigma[0]) < 1e-6 && abs(sigma[2]) < 1e-6, "a half-filled band conducts");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn conductivity(mu: &mut SharedDouble, potentials: Series, o: Options) -> Fallible<Series> {
        both(mu, &potentials, o).map(|(sigma, _)| Series::Real(sigma))
    }

    /// The standard error of `conductivity` over the vectors (Student's for few vectors); NaN for a single vector.
    ///
    /// # Options
    /// - those of `conductivity`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::square(6, 5), #{ hopping: -1.0, disorder: 1.0, seed: 1 });
    /// let v = h.velocity(0);
    /// let mu = kpm::double_moments(h, window(-5.0, 5.0), v, v, random_block(h, 8), 32);
    /// assert(mu.conductivity_error(series([0.0]), #{ temperature: 0.1 })[0] > 0.0, "eight vectors differ");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn conductivity_error(mu: &mut SharedDouble, potentials: Series, o: Options) -> Fallible<Series> {
        both(mu, &potentials, o).map(|(_, error)| Series::Real(error))
    }

    /// The absorptive part of the optical conductivity by the Kubo-Greenwood formula from moments of two velocities, in
    /// e^2/h times lattice constant^(2 - d), at the given frequencies (energies above zero, hbar = 1).
    ///
    /// # Options
    /// - `potential` (0.0): chemical potential.
    /// - `temperature` (0.0): an energy (k_B = 1).
    /// - `volume` (float, that of the operator's lattice): volume of the sample.
    /// - `kernel`, `parameter`: as for `kpm::dos`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::square(6, 5), #{ hopping: -1.0, disorder: 1.0, seed: 1 });
    /// let v = h.velocity(0);
    /// let mu = kpm::double_moments(h, window(-5.0, 5.0), v, v, unit_block(h, range(0, 30)), 32);
    /// let sigma = mu.optical(series([1.0, 9.9]), #{ temperature: 0.1 });
    /// assert(sigma[0] > 0.06 && abs(sigma[1]) < 1e-6, "nothing is absorbed beyond the band's width");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn optical(mu: &mut SharedDouble, frequencies: Series, o: Options) -> Fallible<Series> {
        let at = optical_conditions(mu, &o)?;
        Ok(Series::Real(mu.optical(frequencies.as_real("frequencies")?, &at)?))
    }

    /// The standard error of `optical` over the vectors (Student's for few vectors); NaN for a single vector. With more
    /// than 32 vectors, neighbouring vectors are averaged first.
    ///
    /// # Options
    /// - those of `optical`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::square(6, 5), #{ hopping: -1.0, disorder: 1.0, seed: 1 });
    /// let v = h.velocity(0);
    /// let mu = kpm::double_moments(h, window(-5.0, 5.0), v, v, random_block(h, 8), 32);
    /// assert(mu.optical_error(series([1.0]))[0] > 0.0, "eight vectors differ");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn optical_error(mu: &mut SharedDouble, frequencies: Series, o: Options) -> Fallible<Series> {
        let at = optical_conditions(mu, &o)?;
        Ok(Series::Real(mu.optical_error(frequencies.as_real("frequencies")?, &at)?))
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn double_to_string(mu: &mut SharedDouble) -> String {
        let s = if mu.vectors() == 1 { "" } else { "s" };
        format!("DoubleMoments: {0} x {0} of {1} vector{s}, dimension {2}", mu.count, mu.vectors(), mu.dim)
    }
}

#[export_module(root = "crate::script::native")]
mod mixing {
    /// As `internal::mixed` of moments, of two-dimensional ones.
    ///
    /// # Example
    /// ```rhai
    /// let mu = kpm::conductivity_moments(tight_binding(lattice::square(4, 4)), #{ moments: 8, vectors: 2 });
    /// assert(internal::mixed(mu, mu, 0.5).vectors == 2, "as many as before");
    /// ```
    #[rhai_fn(name = "mixed", return_raw)]
    pub fn mixed_double(a: SharedDouble, b: SharedDouble, weight: FLOAT) -> Fallible<SharedDouble> {
        Ok(Rc::new(a.mixed(&b, weight)?))
    }

    /// As `internal::fits` of moments, of two-dimensional ones.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::square(4, 4));
    /// let mu = |first| kpm::conductivity_moments(h, #{ moments: 8, vectors: 1, first: first });
    /// assert(internal::fits(mu.call(0), mu.call(0)) && !internal::fits(mu.call(0), mu.call(1)), "another vector");
    /// ```
    #[rhai_fn(name = "fits")]
    pub fn fits_double(a: SharedDouble, b: SharedDouble) -> bool {
        a.record.fits(&b.record)
    }
}
