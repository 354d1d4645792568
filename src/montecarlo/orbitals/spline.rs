//! Orbitals on a grid: cubic B-splines on whatever backend holds their table.

use std::sync::Arc;

use super::super::SimulationCell;
use super::super::vectors::square;
use super::super::waves::wave_vector;
use super::{Derivatives, Fourier, Orbitals, interpolate};
use crate::backend::Device;
use crate::backend::splines::{Planes, SplineShape, SplineTable, Splines};
use crate::backend::walkers::monte_carlo;
use crate::error::{Error, Result};
use crate::number::C64;
use crate::task::Task;

/// Orbitals `exp(i k . r) u_l(r)` with u on a periodic grid; without a twist k they may be real.
pub struct SplineOrbitals {
    device: Device,
    cell: SimulationCell,
    twist: [f64; 3],
    k: [f64; 3],
    complex: bool,
    count: usize,
    table: Arc<SplineTable>,
    splines: Arc<dyn Splines>,
    label: String,
}

/// Which functions a table holds.
#[derive(Debug, Clone)]
pub struct SplineLayout {
    /// The cell that repeats.
    pub cell: SimulationCell,
    /// k in units of its reciprocal vectors.
    pub twist: [f64; 3],
    /// Grid points along each vector.
    pub grid: [usize; 3],
    pub count: usize,
    /// Whether the functions are complex.
    pub complex: bool,
    /// Whether numbers have 32 bits.
    pub single: bool,
    /// A label for results.
    pub label: String,
}

impl SplineLayout {
    /// A table of zeros for these.
    pub fn table(&self) -> Result<SplineTable> {
        let vectors = self.cell.reciprocal();
        let inverse = vectors.map(|b| b.map(|x| x / (2.0 * std::f64::consts::PI)));
        let lanes = self.count.checked_mul(if self.complex { 2 } else { 1 });
        let lanes = lanes.ok_or_else(|| Error::input(format!("{} orbitals", self.count)))?;
        if !self.complex && self.twist != [0.0; 3] {
            return Err(Error::input("real orbitals with a twist").hint("a twist needs complex orbitals"));
        }
        SplineTable::zeros(SplineShape { grid: self.grid, lanes, inverse }, self.single)
    }
}

impl SplineOrbitals {
    /// Orbitals from a filled table.
    ///
    /// # Errors
    /// Coefficients that are no numbers; what the backend refuses.
    pub fn new(device: &Device, layout: SplineLayout, table: SplineTable) -> Result<SplineOrbitals> {
        let finite = match &table {
            SplineTable::Single(t) => t.data().iter().all(|x| x.is_finite()),
            SplineTable::Double(t) => t.data().iter().all(|x| x.is_finite()),
        };
        if !finite {
            return Err(Error::input("the spline coefficients are not all finite numbers")
                .hint("look for NaN in the functions or in the file they came from"));
        }
        let table = Arc::new(table);
        Ok(SplineOrbitals {
            device: device.clone(),
            k: wave_vector(&layout.cell, layout.twist),
            splines: monte_carlo(device)?.splines(table.clone())?,
            table,
            cell: layout.cell,
            twist: layout.twist,
            complex: layout.complex,
            count: layout.count,
            label: layout.label,
        })
    }

    /// Orbitals that are sums of plane waves, interpolated at the points of a grid.
    pub fn from_waves(
        device: &Device,
        waves: &Fourier,
        grid: [usize; 3],
        single: bool,
        task: &Task,
    ) -> Result<SplineOrbitals> {
        let layout = SplineLayout {
            cell: waves.own_cell().clone(),
            twist: waves.twist(),
            grid,
            count: waves.len(),
            complex: waves.is_complex(),
            single,
            label: Orbitals::<C64>::describe(waves),
        };
        let mut table = layout.table()?;
        let steps = task.start("splines", waves.len());
        for l in 0..waves.len() {
            let values = interpolate::from_waves(waves.terms(l), grid);
            if layout.complex {
                table.set_lane(2 * l, values.iter().map(|z| z.re));
                table.set_lane(2 * l + 1, values.iter().map(|z| z.im));
            } else {
                table.set_lane(l, values.iter().map(|z| z.re));
            }
            steps.advance(l + 1)?;
        }
        SplineOrbitals::new(device, layout, table)
    }

    /// Real orbitals by their values at the grid points, `samples[l][(ix ny + iy) nz + iz]`.
    pub fn from_samples(
        device: &Device,
        cell: &SimulationCell,
        grid: [usize; 3],
        samples: Vec<Vec<f64>>,
        single: bool,
    ) -> Result<SplineOrbitals> {
        let layout = SplineLayout {
            cell: cell.clone(),
            twist: [0.0; 3],
            grid,
            count: samples.len(),
            complex: false,
            single,
            label: format!("{} functions", samples.len()),
        };
        let mut table = layout.table()?;
        for (l, mut values) in samples.into_iter().enumerate() {
            if values.len() != grid.iter().product::<usize>() {
                return Err(Error::internal(format!("{} samples on a grid of {grid:?}", values.len())));
            }
            interpolate::grid(&mut values, grid);
            table.set_lane(l, values.into_iter());
        }
        SplineOrbitals::new(device, layout, table)
    }

    /// The grid whose steps are no longer than `spacing`.
    ///
    /// # Errors
    /// A spacing that is not positive, or so small that no table holds the grid.
    pub fn grid_for(cell: &SimulationCell, spacing: f64) -> Result<[usize; 3]> {
        let steps = cell.vectors().map(|a| (square(a).sqrt() / spacing).ceil());
        if !(spacing > 0.0) || steps.iter().any(|&n| !(n <= 4096.0)) {
            return Err(Error::input(format!("a grid spacing of {spacing} bohr"))
                .hint("something like 0.35; at most 4096 points along each vector"));
        }
        Ok(steps.map(|n| (n as usize).max(1)))
    }

    pub fn table(&self) -> &SplineTable {
        &self.table
    }

    /// The table where it is evaluated.
    pub fn splines(&self) -> &dyn Splines {
        &*self.splines
    }

    /// Cell, twist, grid and kind.
    pub fn layout(&self) -> SplineLayout {
        SplineLayout {
            cell: self.cell.clone(),
            twist: self.twist,
            grid: self.table.shape().grid,
            count: self.count,
            complex: self.complex,
            single: self.table.is_single(),
            label: self.label.clone(),
        }
    }

    pub fn is_complex(&self) -> bool {
        self.complex
    }

    /// Evaluates into planes of doubles, which are NaN where the backend fails: an interruption or a lost device is
    /// found by whoever runs the walkers.
    fn planes(&self, points: &[[f64; 3]], mut planes: Vec<&mut [f64]>) {
        let again = planes.iter_mut().map(|p| &mut **p).collect();
        if self.splines.evaluate(points, Planes::Double(again)).is_err() {
            planes.into_iter().for_each(|p| p.fill(f64::NAN));
        }
    }

    /// The backend that holds the table.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The table where it is evaluated.
    pub fn evaluator(&self) -> &Arc<dyn Splines> {
        &self.splines
    }

    /// The wave vector k of the twist.
    pub fn wave_vector(&self) -> [f64; 3] {
        self.k
    }

    fn turns(&self) -> bool {
        self.twist != [0.0; 3]
    }

    /// `exp(i k . r)`.
    fn turn(&self, r: &[f64; 3]) -> C64 {
        C64::cis(self.k[0] * r[0] + self.k[1] * r[1] + self.k[2] * r[2])
    }

    fn text(&self) -> String {
        let [x, y, z] = self.table.shape().grid;
        let precision = if self.table.is_single() { "single" } else { "double" };
        format!("{} on {x} x {y} x {z} splines, {precision} precision", self.label)
    }
}

/// What both kinds of orbitals share.
macro_rules! common {
    ($scalar:ty) => {
        fn count(&self) -> usize {
            self.count
        }

        fn dimension(&self) -> usize {
            3
        }

        fn cell(&self) -> Option<&SimulationCell> {
            Some(&self.cell)
        }

        fn describe(&self) -> String {
            self.text()
        }

        fn splines(&self) -> Option<&SplineOrbitals> {
            Some(self)
        }
    };
}

impl Orbitals<f64> for SplineOrbitals {
    common!(f64);

    fn values(&self, points: &[[f64; 3]], out: &mut [f64]) {
        self.planes(points, vec![out]);
    }

    fn derivatives(&self, points: &[[f64; 3]], out: &mut Derivatives<f64>) {
        let [x, y, z] = &mut out.gradient;
        self.planes(points, vec![&mut out.value, x, y, z, &mut out.laplacian]);
    }
}

impl Orbitals<C64> for SplineOrbitals {
    common!(C64);

    fn values(&self, points: &[[f64; 3]], out: &mut [C64]) {
        self.planes(points, vec![bytemuck::cast_slice_mut(out)]);
        if self.turns() {
            for (r, row) in points.iter().zip(out.chunks_exact_mut(self.count)) {
                let turn = self.turn(r);
                row.iter_mut().for_each(|z| *z *= turn);
            }
        }
    }

    fn derivatives(&self, points: &[[f64; 3]], out: &mut Derivatives<C64>) {
        fn reals(plane: &mut [C64]) -> &mut [f64] {
            bytemuck::cast_slice_mut(plane)
        }
        let [x, y, z] = &mut out.gradient;
        let planes = vec![reals(&mut out.value), reals(x), reals(y), reals(z), reals(&mut out.laplacian)];
        self.planes(points, planes);
        if !self.turns() {
            return;
        }
        // exp(i k . r) u: the gradient is turn (grad u + i k u), the Laplacian turn (lap u + 2 i k . grad u - k^2 u).
        let k = self.k;
        for (p, r) in points.iter().enumerate() {
            let turn = self.turn(r);
            for at in p * self.count..(p + 1) * self.count {
                let u = out.value[at];
                let du = [0, 1, 2].map(|d| out.gradient[d][at]);
                let along = du[0] * k[0] + du[1] * k[1] + du[2] * k[2];
                out.laplacian[at] =
                    turn * (out.laplacian[at] + C64::new(-2.0 * along.im, 2.0 * along.re) - u * square(k));
                for d in 0..3 {
                    out.gradient[d][at] = turn * (du[d] + C64::new(-u.im * k[d], u.re * k[d]));
                }
                out.value[at] = turn * u;
            }
        }
    }
}

impl std::fmt::Debug for SplineOrbitals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::Cpu;
    use crate::number::{Scalar, philox};
    use crate::task::Interrupt;

    fn device() -> Device {
        Arc::new(Cpu::new(2, Interrupt::default()).unwrap())
    }

    fn points(cell: &SimulationCell) -> Vec<[f64; 3]> {
        let at = |k: u64| {
            let w = philox::words(4, 3, k, 0);
            cell.cartesian([0, 1, 2].map(|d| 3.0 * f64::from(w[d]) / 4294967296.0 - 1.0))
        };
        (0..40).map(at).collect()
    }

    /// Largest differences of values, gradients and Laplacians.
    fn differences<S: Scalar>(a: &dyn Orbitals<S>, b: &dyn Orbitals<S>, points: &[[f64; 3]]) -> [f64; 3] {
        let (mut x, mut y) =
            (Derivatives::new(points.len(), a.count()), Derivatives::new(points.len(), a.count()));
        a.derivatives(points, &mut x);
        b.derivatives(points, &mut y);
        let mut values = vec![S::default(); points.len() * a.count()];
        b.values(points, &mut values);
        assert!(values == y.value, "values alone and with derivatives");
        let largest = |x: &[S], y: &[S]| {
            x.iter().zip(y).map(|(x, y)| (x.to_c64() - y.to_c64()).norm()).fold(0.0, f64::max)
        };
        let gradient = (0..3).map(|d| largest(&x.gradient[d], &y.gradient[d])).fold(0.0, f64::max);
        [largest(&x.value, &y.value), gradient, largest(&x.laplacian, &y.laplacian)]
    }

    #[test]
    fn splines_are_the_waves_to_their_order() {
        let cell = SimulationCell::new([[5.0, 0.0, 0.0], [1.0, 4.0, 0.5], [-0.5, 1.0, 6.0]]).unwrap();
        let (device, task) = (device(), Task::default());
        for twist in [[0.0; 3], [0.2, -0.4, 0.5]] {
            let waves = Fourier::plane_waves(&cell, 15, twist).unwrap();
            let mut last = [f64::INFINITY; 3];
            for n in [12, 24, 48] {
                let splines = SplineOrbitals::from_waves(&device, &waves, [n; 3], false, &task).unwrap();
                let found = if waves.is_complex() {
                    differences::<C64>(&waves, &splines, &points(&cell))
                } else {
                    differences::<f64>(&waves, &splines, &points(&cell))
                };
                if n > 12 {
                    // Orders 4, 3 and 2 of the spacing.
                    let ratios = [last[0] / found[0], last[1] / found[1], last[2] / found[2]];
                    assert!(ratios[0] > 12.0 && ratios[1] > 6.0 && ratios[2] > 3.0, "{n}: {ratios:?}");
                }
                last = found;
            }
            assert!(last[0] < 1e-4 && last[2] < 0.05, "{last:?}");
            let single = SplineOrbitals::from_waves(&device, &waves, [48; 3], true, &task).unwrap();
            let double = SplineOrbitals::from_waves(&device, &waves, [48; 3], false, &task).unwrap();
            let found = if waves.is_complex() {
                differences::<C64>(&single, &double, &points(&cell))
            } else {
                differences::<f64>(&single, &double, &points(&cell))
            };
            assert!(found[0] > 1e-9 && found[0] < 2e-6, "{found:?}");
        }
    }

    #[test]
    fn samples_are_met_at_the_grid_points() {
        let cell = SimulationCell::cubic(2.0).unwrap();
        let grid = [4, 5, 6];
        let samples: Vec<f64> = (0..120).map(|k| f64::from(k * k % 17)).collect();
        let splines =
            SplineOrbitals::from_samples(&device(), &cell, grid, vec![samples.clone()], false).unwrap();
        let points: Vec<[f64; 3]> = (0..120)
            .map(|k| [f64::from(k / 30) / 2.0, 2.0 * f64::from(k / 6 % 5) / 5.0, f64::from(k % 6) / 3.0])
            .collect();
        let mut values = vec![0.0; 120];
        splines.values(&points, &mut values);
        assert!(values.iter().zip(&samples).all(|(a, b)| (a - b).abs() < 1e-12));
        let broken = vec![vec![f64::NAN; 120]];
        assert!(SplineOrbitals::from_samples(&device(), &cell, grid, broken, false).is_err());
        assert!(SplineOrbitals::grid_for(&cell, 0.0).is_err());
        assert_eq!(SplineOrbitals::grid_for(&cell, 0.35).unwrap(), [6; 3]);
    }
}
