//! The polarisability of electrons in bands, and the transform that makes real parts of imaginary ones.

use rhai::plugin::*;
use rhai::{Dynamic, FLOAT};

use super::bands::{bloch, counts};
use super::lattice::momentum;
use super::model::ScriptModel;
use super::values::to_series;
use crate::error::Result;
use crate::method::{self, PolarizationOptions};
use crate::number::{C64, Series, Table};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("bloch", exported_module!(polarization_functions));
    rooms.room("internal", exported_module!(screening));
}

/// The columns of the random phase approximation: the dielectric function 1 - V Pi, and the loss -Im 1/(1 - V Pi).
fn with_screening(table: Table, pi: &[C64], v: f64) -> Result<Table> {
    let epsilon: Vec<C64> = pi.iter().map(|pi| 1.0 - v * pi).collect();
    let loss: Vec<f64> = epsilon.iter().map(|e| -(1.0 / e).im).collect();
    table.with_column("dielectric", Series::Complex(epsilon))?.with_column("loss", Series::Real(loss))
}

#[export_module(root = "crate::script::native")]
mod screening {
    /// A table of a polarisability with what an interaction V(q) makes of it: the columns `dielectric` and `loss`.
    #[rhai_fn(return_raw)]
    pub fn screened(t: Table, v: FLOAT) -> Fallible<Table> {
        let pi = t.column("polarizability")?.to_complex();
        Ok(with_screening(t, &pi, v)?)
    }
}

#[export_module(root = "crate::script::native")]
mod polarization_functions {
    /// The polarisability of the electrons of a model (Lindhard's function) by a sum over momenta and bands, Pi(q, w) =
    /// 1/V sum_k sum_nm (f_n,k - f_m,k+q)/(w + i eta + E_n,k - E_m,k+q) |<m,k+q| exp(i q r) |n,k>|^2, as a Table of
    /// `frequency` (an energy, hbar = 1) and `polarizability`, complex, per energy and lattice constant^d. States are
    /// counted once: multiply by two for two spins. `q` is in units of the reciprocal vectors, one number for every
    /// periodic direction; it need not be a grid point. With an `interaction` V(q) the Table has also the columns
    /// `dielectric`, 1 - V Pi (random phase approximation), and `loss`, -Im 1/dielectric, whose peaks are plasmons.
    ///
    /// # Options
    /// - `frequencies` (array or Series or range, required): energies.
    /// - `grid` (int >= 1 or array, 64): momenta in each direction: one number, or one per direction.
    /// - `eta` (float > 0, 0.05): imaginary part of the frequencies. Above the level spacing on the grid the sum is
    ///   smooth.
    /// - `potential` (0.0): chemical potential.
    /// - `temperature` (float >= 0, 0.0): an energy (k_B = 1).
    /// - `interaction` (float, none): V(q), for example 2 pi e^2/q in two dimensions.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// // a half-filled chain at rest: -1/(4 pi t sin(q/2)) log |tan((k_F + q/2)/2)/tan((q/2 - k_F)/2)| with k_F = pi/2
    /// let m = model(lattice::chain(1));
    /// m.nearest(-1.0);
    /// let q = PI / 2.0;
    /// let pi = bloch::polarizability(m, 0.25, #{ frequencies: [0.0], grid: 2000, eta: 0.005 }).polarizability[0];
    /// let exact = -log(abs(tan(0.5 * (PI + q) / 2.0) / tan(0.5 * (q - PI) / 2.0))) / (4.0 * PI * sin(0.5 * q));
    /// assert_close(pi.re, exact, 1e-2 * abs(exact));
    /// ```
    #[rhai_fn(return_raw)]
    pub fn polarizability(m: ScriptModel, q: Dynamic, o: Options) -> Fallible<Table> {
        let bloch = bloch(&m)?;
        let frequencies = to_series(&o.value("frequencies")?)?;
        let options = PolarizationOptions {
            grid: counts(&o.value("grid")?, bloch.dimension())?,
            frequencies: frequencies.as_real("frequencies")?.to_vec(),
            potential: o.float("potential")?,
            temperature: o.float("temperature")?,
            eta: o.float("eta")?,
        };
        let pi = method::polarizability(&bloch, &momentum(&q)?, &options, &o.task()?)?;
        let mut table = Table::from_columns([("frequency", Series::Real(options.frequencies))])?
            .with_column("polarizability", Series::Complex(pi.clone()))?;
        if let Some(v) = o.maybe_float("interaction")? {
            table = with_screening(table, &pi, v)?;
        }
        Ok(table)
    }

    /// The Hilbert transform 1/pi P Int y(x)/(x - at) dx at each number of `at`, for values `y` at ascending places
    /// `x`. Between the places y is linear, outside it is zero. It computes the real part of a retarded response
    /// function from its imaginary part (Kramers-Kronig); `x` must then include negative frequencies.
    ///
    /// # Example
    /// ```rhai
    /// // 1/(x + i), which is retarded: its imaginary part is -1/(x^2 + 1), its real part x/(x^2 + 1)
    /// let x = linspace(-400.0, 400.0, 40001);
    /// let re = hilbert_transform(x, -1.0 / (x * x + 1.0), [0.0, 1.0]);
    /// assert_close(re[0], 0.0, 1e-6);
    /// assert_close(re[1], 0.5, 1e-3);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn hilbert_transform(x: Dynamic, y: Dynamic, at: Dynamic) -> Fallible<Series> {
        let (x, y, at) = (to_series(&x)?, to_series(&y)?, to_series(&at)?);
        let found = method::hilbert(x.as_real("places")?, y.as_real("values")?, at.as_real("places")?)?;
        Ok(Series::Real(found))
    }
}
