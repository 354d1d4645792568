//! Periodic tables of cubic B-spline coefficients a[ix, iy, iz, lane], lanes fastest: what is handed to a backend, and
//! what it computes from one: a function `f_lane(r) = sum_s a[s, lane] Theta_s(r)` over the 64 grid points around r,
//! with its gradient and Laplacian. A complex function takes two lanes, its real part first.

use crate::error::{Error, Result};
use crate::number::aligned::{Aligned, LINE};
use crate::number::memory::human;

/// Number of functions side by side, grid and cell of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SplineShape {
    /// Grid points along each vector of the cell; the last wraps to the first.
    pub grid: [usize; 3],
    /// Real functions side by side.
    pub lanes: usize,
    /// Cartesian coordinates to fractions of the cell: `t_i = sum_j inverse[i][j] r_j`.
    pub inverse: [[f64; 3]; 3],
}

impl SplineShape {
    pub fn points(&self) -> usize {
        self.grid.iter().product()
    }

    /// The metric of grid coordinates `u_i = n_i t_i`: `grad u_i . grad u_j`.
    pub fn metric(&self) -> [[f64; 3]; 3] {
        let scaled = self.scaled();
        std::array::from_fn(|i| {
            std::array::from_fn(|j| (0..3).map(|d| scaled[i][d] * scaled[j][d]).sum::<f64>())
        })
    }

    /// Cartesian coordinates to grid coordinates.
    pub fn scaled(&self) -> [[f64; 3]; 3] {
        std::array::from_fn(|i| self.inverse[i].map(|x| x * self.grid[i] as f64))
    }

    /// Where a point lies: the grid point below it along each vector, and how far beyond it, in grid steps.
    #[inline]
    pub fn locate(&self, r: &[f64; 3]) -> ([usize; 3], [f64; 3]) {
        let (mut cell, mut beyond) = ([0; 3], [0.0; 3]);
        for i in 0..3 {
            let t = self.inverse[i][0] * r[0] + self.inverse[i][1] * r[1] + self.inverse[i][2] * r[2];
            let n = self.grid[i];
            let u = (t - t.floor()) * n as f64;
            let below = u.floor();
            beyond[i] = u - below;
            // Rounding may take a fraction just below one to the grid's end; NaN becomes the first point.
            cell[i] = (below as usize) % n;
        }
        (cell, beyond)
    }

    fn validate(&self) -> Result<()> {
        if self.lanes == 0 || self.grid.contains(&0) {
            return Err(Error::input(format!(
                "a spline table of {} functions on a grid of {:?} points",
                self.lanes, self.grid
            )));
        }
        if self.inverse.iter().flatten().any(|x| !x.is_finite()) {
            return Err(Error::internal("a spline table whose cell is no cell"));
        }
        Ok(())
    }
}

/// Weights of the four grid points around a point `t` steps beyond the second: the cubic B-spline, its first and its
/// second derivative in grid steps.
#[inline]
pub fn weights(t: f64) -> [[f64; 4]; 3] {
    let s = 1.0 - t;
    let sixth = 1.0 / 6.0;
    [
        [
            s * s * s * sixth,
            (3.0 * t * t * t - 6.0 * t * t + 4.0) * sixth,
            (3.0 * s * s * s - 6.0 * s * s + 4.0) * sixth,
            t * t * t * sixth,
        ],
        [-0.5 * s * s, 1.5 * t * t - 2.0 * t, -1.5 * s * s + 2.0 * s, 0.5 * t * t],
        [s, 3.0 * t - 2.0, 3.0 * s - 2.0, t],
    ]
}

/// Coefficients of one precision.
#[derive(Debug)]
pub struct Coefficients<F> {
    shape: SplineShape,
    stride: usize,
    data: Aligned<F>,
}

impl<F: Copy + Default> Coefficients<F> {
    /// A table of zeros.
    ///
    /// # Errors
    /// More memory than there is; an empty table.
    pub fn zeros(shape: SplineShape) -> Result<Self> {
        shape.validate()?;
        let line = LINE / size_of::<F>();
        let stride = shape.lanes.next_multiple_of(line);
        let count = shape.grid.iter().try_fold(stride, |n, &g| n.checked_mul(g));
        let bytes = count.and_then(|n| n.checked_mul(size_of::<F>()));
        let (Some(count), Some(bytes)) = (count, bytes) else {
            return Err(Error::memory("a spline table beyond all addresses").hint("use a coarser grid"));
        };
        let what = || format!("a spline table of {} functions on {:?} points", shape.lanes, shape.grid);
        crate::number::memory::ensure(bytes as u128, &what())
            .map_err(|e| e.hint("use a coarser grid, or `precision: \"single\"`"))?;
        let data = Aligned::zeros(count).map_err(|_| {
            Error::memory(format!("{} takes {}, which the system refuses", what(), human(bytes as u128)))
        })?;
        Ok(Coefficients { shape, stride, data })
    }

    /// Functions, grid and cell.
    pub fn shape(&self) -> &SplineShape {
        &self.shape
    }

    /// Numbers from one grid point to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// All numbers, rows padded.
    pub fn data(&self) -> &[F] {
        &self.data
    }

    /// As [`Coefficients::data`], to fill them.
    pub fn data_mut(&mut self) -> &mut [F] {
        &mut self.data
    }
}

/// A table in single or double precision.
#[derive(Debug)]
pub enum SplineTable {
    /// 32-bit numbers.
    Single(Coefficients<f32>),
    /// 64-bit numbers.
    Double(Coefficients<f64>),
}

impl SplineTable {
    /// A table of zeros.
    ///
    /// # Errors
    /// As [`Coefficients::zeros`].
    pub fn zeros(shape: SplineShape, single: bool) -> Result<SplineTable> {
        Ok(if single {
            SplineTable::Single(Coefficients::zeros(shape)?)
        } else {
            SplineTable::Double(Coefficients::zeros(shape)?)
        })
    }

    /// Functions, grid and cell.
    pub fn shape(&self) -> &SplineShape {
        match self {
            SplineTable::Single(t) => t.shape(),
            SplineTable::Double(t) => t.shape(),
        }
    }

    /// Whether numbers have 32 bits.
    pub fn is_single(&self) -> bool {
        matches!(self, SplineTable::Single(_))
    }

    /// Numbers from one grid point to the next.
    pub fn stride(&self) -> usize {
        match self {
            SplineTable::Single(t) => t.stride(),
            SplineTable::Double(t) => t.stride(),
        }
    }

    /// Bytes of the coefficients.
    pub fn bytes(&self) -> usize {
        self.shape().points() * self.stride() * if self.is_single() { 4 } else { 8 }
    }

    /// Sets one function from its coefficients by grid point.
    pub fn set_lane(&mut self, lane: usize, values: impl Iterator<Item = f64>) {
        match self {
            SplineTable::Single(t) => {
                let stride = t.stride();
                for (slot, x) in t.data_mut().iter_mut().skip(lane).step_by(stride).zip(values) {
                    *slot = x as f32;
                }
            }
            SplineTable::Double(t) => {
                let stride = t.stride();
                for (slot, x) in t.data_mut().iter_mut().skip(lane).step_by(stride).zip(values) {
                    *slot = x;
                }
            }
        }
    }

    pub fn get(&self, point: usize, lane: usize) -> f64 {
        match self {
            SplineTable::Single(t) => t.data()[point * t.stride() + lane].into(),
            SplineTable::Double(t) => t.data()[point * t.stride() + lane],
        }
    }
}

/// Where results go: one plane for values, or five for values, the three parts of the gradient and the Laplacian, each
/// with `points x lanes` numbers.
pub enum Planes<'a> {
    /// As 32-bit numbers.
    Single(Vec<&'a mut [f32]>),
    /// As 64-bit numbers.
    Double(Vec<&'a mut [f64]>),
}

impl Planes<'_> {
    /// How many planes there are, if each has `numbers`.
    pub(in crate::backend) fn check(&self, numbers: usize) -> Result<usize> {
        let lengths: Vec<usize> = match self {
            Planes::Single(planes) => planes.iter().map(|p| p.len()).collect(),
            Planes::Double(planes) => planes.iter().map(|p| p.len()).collect(),
        };
        if !matches!(lengths.len(), 1 | 5) || lengths.iter().any(|&n| n != numbers) {
            return Err(Error::internal(format!("planes of {lengths:?} for {numbers} spline values")));
        }
        Ok(lengths.len())
    }
}

/// A table where it is evaluated.
pub trait Splines: Send + Sync {
    /// Functions, grid and cell.
    fn shape(&self) -> &SplineShape;

    fn bytes(&self) -> usize;

    /// All functions at all points (Cartesian, anywhere: the table repeats).
    ///
    /// # Errors
    /// An interruption, a failure of the device.
    fn evaluate(&self, points: &[[f64; 3]], out: Planes<'_>) -> Result<()>;

    /// Points that stay where the table is, for results that stay there too.
    ///
    /// # Errors
    /// More memory than there is.
    fn batch(&self, points: &[[f64; 3]]) -> Result<Box<dyn SplineBatch + '_>>;

    /// For a backend to find its own table again.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// Points brought to a table; what is computed stays beside them, in the table's precision.
pub trait SplineBatch {
    /// All functions at all points. Bringing points into a better order is part of it, each time.
    ///
    /// # Errors
    /// An interruption, a failure of the device; so below.
    fn values(&mut self) -> Result<()>;

    /// The same with gradients and Laplacians.
    fn derivatives(&mut self) -> Result<()>;

    /// Other ways to the values that are kept for comparison, by name.
    fn assignments(&self) -> &'static [&'static str] {
        &[]
    }

    /// The values by one of these ways.
    fn values_by(&mut self, assignment: usize) -> Result<()> {
        Err(Error::input(format!("no assignment of threads number {assignment}")))
    }

    /// The planes last computed.
    fn read(&self) -> Result<Vec<Vec<f64>>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_the_cubic_b_spline() {
        let at = |t: f64, derivative: usize, expected: [f64; 4]| {
            for (found, expected) in weights(t)[derivative].iter().zip(expected) {
                assert!((found - expected).abs() < 1e-10, "{t}: {found} for {expected}");
            }
        };
        at(0.0, 0, [1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0, 0.0]);
        at(0.5, 0, [1.0, 23.0, 23.0, 1.0].map(|x| x / 48.0));
        at(0.3, 0, [0.0571666666667, 0.5901666666667, 0.3481666666667, 0.0045]);
        at(0.3, 1, [-0.245, -0.465, 0.665, 0.045]);
        at(0.3, 2, [0.7, -1.1, 0.1, 0.3]);
        // Coefficients that make x, x^2 and x^3 exactly.
        for t in [0.0, 0.2, 0.77] {
            let sum = |c: &dyn Fn(f64) -> f64, d: usize| -> f64 {
                (0..4).map(|k| weights(t)[d][k] * c(k as f64 - 1.0)).sum()
            };
            let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} for {b}");
            close(sum(&|_| 1.0, 0), 1.0);
            close(sum(&|i| i, 0), t);
            close(sum(&|i| i * i - 1.0 / 3.0, 0), t * t);
            close(sum(&|i| i * i * i - i, 0), t * t * t);
            close(sum(&|i| i * i * i - i, 1), 3.0 * t * t);
            close(sum(&|i| i * i * i - i, 2), 6.0 * t);
        }
    }

    #[test]
    fn tables_begin_at_a_line() {
        let shape = SplineShape { grid: [3, 4, 5], lanes: 7, inverse: [[1.0, 0.0, 0.0]; 3] };
        let mut table = SplineTable::zeros(shape, true).unwrap();
        table.set_lane(6, (0..60).map(f64::from));
        assert_eq!((table.stride(), table.get(59, 6), table.get(59, 5)), (16, 59.0, 0.0));
        let SplineTable::Single(t) = &table else { unreachable!() };
        assert_eq!(t.data().as_ptr() as usize % LINE, 0);
        assert!(SplineTable::zeros(SplineShape { grid: [0, 1, 1], ..shape }, false).is_err());
        assert!(SplineTable::zeros(SplineShape { grid: [1 << 20; 3], ..shape }, false).is_err());
    }

    #[test]
    fn points_are_found_anywhere() {
        let shape = SplineShape {
            grid: [10, 10, 10],
            lanes: 1,
            inverse: [[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]],
        };
        let (cell, beyond) = shape.locate(&[0.3, -0.1, 20.3]);
        assert_eq!(cell, [1, 9, 1]);
        assert!((beyond[0] - 0.5).abs() < 1e-12 && (beyond[2] - 0.5).abs() < 1e-9, "{beyond:?}");
        // A point a rounding below the cell's origin.
        assert!(shape.locate(&[-1e-300, f64::NAN, 0.0]).0.iter().all(|&c| c < 10));
    }
}
