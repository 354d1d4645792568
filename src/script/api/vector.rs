//! `BlockVector`: blocks of columns on the device, and the algebra of vectors.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, FLOAT, INT};

use crate::backend::{BlockVector, Device, Random, VectorDistribution};
use crate::error::{Error, Result};
use crate::method::{self, VectorDraw};
use crate::number::memory::human;
use crate::number::philox::Stream;
use crate::number::{C64, Series, complex};
use crate::operator::Operator;
use crate::script::api::values::{numbered, type_of};
use crate::script::{Fallible, Options};

/// The script's handle to a block vector and the device it lives on.
#[derive(Clone)]
pub(crate) struct Vector {
    pub block: Rc<BlockVector>,
    pub device: Device,
    /// Which random or unit vectors the columns are; none where that is not known.
    pub draws: Rc<[VectorDraw]>,
}

impl Vector {
    pub(crate) fn new(device: &Device, block: BlockVector) -> Vector {
        Vector { block: Rc::new(block), device: device.clone(), draws: Rc::default() }
    }

    /// The same vector, its columns known to be these.
    fn drawn(self, draws: impl Iterator<Item = VectorDraw>) -> Vector {
        Vector { draws: draws.collect(), ..self }
    }

    /// A sum `a x + b y`, promoting types.
    pub(crate) fn sum(a: C64, x: &Vector, b: C64, y: &Vector) -> Result<Vector> {
        let dtype = x.block.dtype().join(y.block.dtype());
        let complex = a.im != 0.0 || b.im != 0.0;
        let dtype = if complex { dtype.to_complex() } else { dtype };
        let mut sum = x.device.convert(&*y.arranged_like(x)?, dtype)?;
        if dtype == x.block.dtype() {
            x.device.axpby(&[a], &x.block, &[b], &mut sum)?;
        } else {
            let x_converted = x.device.convert(&x.block, dtype)?;
            x.device.axpby(&[a], &x_converted, &[b], &mut sum)?;
        }
        Ok(Vector::new(&x.device, sum))
    }

    /// `a x`, promoting to complex if the factor is.
    pub(crate) fn scaled(&self, a: C64) -> Result<Vector> {
        let dtype = if a.im != 0.0 { self.block.dtype().to_complex() } else { self.block.dtype() };
        let x = self.device.convert(&self.block, dtype)?;
        let mut y = self.device.room(dtype, x.rows(), x.columns())?;
        self.device.axpby(&[a], &x, &[C64::default()], &mut y)?;
        Ok(Vector::new(&self.device, y))
    }

    /// The vector with its rows laid out as those of another: a vector of a lattice and one of none can meet.
    pub(crate) fn arranged_like(&self, other: &Vector) -> Result<Rc<BlockVector>> {
        let (own, wanted) = (self.block.rows(), other.block.rows());
        if own == wanted || own.global != wanted.global || own.local != wanted.local {
            return Ok(self.block.clone());
        }
        Ok(Rc::new(self.device.arrange(&self.block, wanted)?))
    }

    /// Column-wise scalar products with another vector, promoting types.
    pub(crate) fn dots(&self, other: &Vector) -> Result<Vec<C64>> {
        let dtype = self.block.dtype().join(other.block.dtype());
        let promote = |v: &Vector| -> Result<Rc<BlockVector>> {
            if v.block.dtype() == dtype {
                Ok(v.block.clone())
            } else {
                Ok(Rc::new(v.device.convert(&v.block, dtype)?))
            }
        };
        let other = Vector { block: other.arranged_like(self)?, ..other.clone() };
        self.device.dots(&*promote(self)?, &*promote(&other)?)
    }
}

/// Registers the type and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Vector>("BlockVector");
    engine.register_global_module(exported_module!(vector_functions).into());
}

/// Rows, or whatever `what` is, named by an array of ints, a range, or one int.
pub(crate) fn row_numbers(rows: Dynamic, what: &str) -> Result<Vec<usize>> {
    let whole = |i: INT| numbered(i, what);
    if let Ok(i) = rows.as_int() {
        return Ok(vec![whole(i)?]);
    }
    if let Some(range) = rows.clone().try_cast::<std::ops::Range<INT>>() {
        return range.map(whole).collect();
    }
    if let Some(range) = rows.clone().try_cast::<std::ops::RangeInclusive<INT>>() {
        return range.map(whole).collect();
    }
    if let Some(array) = rows.try_cast::<Array>() {
        let int = |x: Dynamic| {
            x.as_int().map_err(|_| {
                Error::input(format!("{what}s are whole numbers, not {}", type_of(&x)))
                    .hint("they are numbered from 0")
            })
        };
        return array.into_iter().map(|x| int(x).and_then(whole)).collect();
    }
    Err(Error::input(format!("{what}s are given as an int, a range or an array of ints"))
        .hint("like `3`, `0..4` or `[0, 2]`"))
}

fn column_count(columns: INT) -> Result<usize> {
    let count = usize::try_from(columns).ok().filter(|n| *n > 0);
    count.ok_or_else(|| {
        Error::input(format!("a block of {columns} columns")).hint("a block has one column at least")
    })
}

/// One number for a single column, a Series for a block.
fn per_column(values: Series) -> Dynamic {
    match (values.len(), &values) {
        (1, Series::Real(x)) => x[0].into(),
        (1, Series::Complex(z)) => Dynamic::from(z[0]),
        _ => Dynamic::from(values),
    }
}

/// The norms of the columns. Where squares are beyond what numbers hold, they are taken of multiples.
fn norms(v: &Vector) -> Result<Vec<f64>> {
    let norms = v.device.norms(&v.block)?;
    let known = |norm: &f64| v.block.dtype().squared().contains(norm) || norm.is_nan();
    if norms.iter().all(known) {
        return Ok(norms);
    }
    let Some((multiple, factors)) = method::of_about_one(&v.device, &v.block)? else { return Ok(norms) };
    Ok(v.device.norms(&multiple)?.iter().zip(factors).map(|(norm, factor)| norm / factor).collect())
}

#[export_module(root = "crate::script::native")]
mod vector_functions {
    /// A block whose column `c` is the unit vector of row `rows[c]`, fit for operator `h`.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// assert_close(norm(unit_block(h, [1])), 1.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn unit_block(h: Operator, rows: Dynamic) -> Fallible<Vector> {
        let rows = row_numbers(rows, "row")?;
        let dim = h.cols();
        if let Some(row) = rows.iter().find(|&&row| row >= dim) {
            return Err(Error::input(format!("row {row} of an operator with {dim} rows"))
                .hint(format!("rows are numbered from 0 to {}", dim - 1))
                .into());
        }
        if rows.is_empty() {
            return Err(Error::input("a block of no rows").hint("name one row at least").into());
        }
        let mut v = h.zeros(rows.len())?;
        let ones: Vec<_> = rows.iter().enumerate().map(|(c, &row)| (row, c, C64::ONE)).collect();
        h.device().set_entries(&mut v, &ones)?;
        Ok(Vector::new(h.device(), v).drawn(rows.into_iter().map(VectorDraw::unit)))
    }

    /// A block of zeros with `columns` columns, fit for operator `h`.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// assert(zeros(h, 3).columns == 3, "three columns");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn zeros(h: Operator, columns: INT) -> Fallible<Vector> {
        let columns = column_count(columns)?;
        Ok(Vector::new(h.device(), h.zeros(columns)?))
    }

    /// A block of random columns, fit for operator `h`: +-1 for real operators, unit phases for complex ones.
    ///
    /// # Options
    /// - `seed` (int or string, the session's): the seed of the random numbers.
    /// - `distribution` ("auto" or "sign" or "phase" or "gaussian"): distribution of the numbers; "auto" is "sign" for
    ///   real operators and "phase" for complex ones.
    /// - `first` (0 <= int <= 4294967295, 0): the number of the first column; columns of the same number and seed are
    ///   equal. Each seed has 4294967296 columns.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// assert_close(norm(random_block(h, 1, #{ seed: 3 })), sqrt(2.0), 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn random_block(h: Operator, columns: INT, o: Options) -> Fallible<Vector> {
        let columns = column_count(columns)?;
        let complex = h.dtype().is_complex();
        let names = [
            ("auto", if complex { VectorDistribution::Phase } else { VectorDistribution::Sign }),
            ("sign", VectorDistribution::Sign),
            ("phase", VectorDistribution::Phase),
            ("gaussian", VectorDistribution::Gaussian),
        ];
        let distribution = o.one_of("distribution", &names)?;
        let first_column = u32::try_from(o.count("first")?).map_err(|_| o.otherwise("first"))?;
        let random = Random { seed: o.seed()?, stream: Stream::Vectors, first_column, distribution };
        let mut v = h.zeros(columns)?;
        if columns as u64 > (1 << 32) - u64::from(first_column) {
            return Err(Error::input(format!("{columns} random columns from number {first_column} on"))
                .hint("the columns of a seed are numbered from 0 to 4294967295: take another `seed`")
                .into());
        }
        h.device().fill_random(&mut v, random)?;
        let numbers = (u64::from(first_column)..).take(columns);
        Ok(Vector::new(h.device(), v).drawn(numbers.map(|number| VectorDraw::random(random.seed, number))))
    }

    /// Column number `at` as a block of one column.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// assert_close(norm(unit_block(h, [0, 1]).column(1)), 1.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn column(v: &mut Vector, at: INT) -> Fallible<Vector> {
        let columns = v.block.columns();
        let at = usize::try_from(at).ok().filter(|&at| at < columns);
        let at = at.ok_or_else(|| {
            Error::input(format!("a block of {columns} columns has no such column"))
                .hint("columns are numbered from 0")
        })?;
        let column = Vector::new(&v.device, v.device.columns(&v.block, at..at + 1)?);
        Ok(column.drawn(v.draws.get(at).copied().into_iter()))
    }

    /// Number of columns.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// assert(zeros(h, 3).columns == 3, "three columns");
    /// ```
    #[rhai_fn(global, get = "columns", pure)]
    pub fn columns(v: &mut Vector) -> INT {
        v.block.columns() as INT
    }

    /// Number of rows.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// assert(zeros(h, 3).rows == 2, "two rows");
    /// ```
    #[rhai_fn(global, get = "rows", pure)]
    pub fn rows(v: &mut Vector) -> INT {
        v.block.rows().global as INT
    }

    /// Bytes that the numbers take.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// assert(zeros(h, 3).bytes == 48, "six doubles");
    /// ```
    #[rhai_fn(global, get = "bytes", pure)]
    pub fn bytes(v: &mut Vector) -> INT {
        v.block.bytes() as INT
    }

    /// The norm of a vector, or those of a block's columns.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// assert_close(norm(unit_block(h, [0])), 1.0, 1e-15);
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn norm(v: &mut Vector) -> Fallible<Dynamic> {
        Ok(per_column(Series::Real(norms(v)?)))
    }

    /// The scalar product of two vectors; the first one is conjugated. For blocks it is computed column by column.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// let v = unit_block(h, [0]);
    /// assert_close(dot(v, v), 1.0, 1e-15);
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn dot(v: &mut Vector, w: Vector) -> Fallible<Dynamic> {
        let complex = v.block.dtype().is_complex() || w.block.dtype().is_complex();
        let dots = v.dots(&w)?;
        Ok(if complex {
            per_column(Series::Complex(dots))
        } else {
            per_column(Series::Real(dots.into_iter().map(|z| z.re).collect()))
        })
    }

    #[rhai_fn(name = "+", return_raw)]
    pub fn add(v: Vector, w: Vector) -> Fallible<Vector> {
        Ok(Vector::sum(C64::ONE, &v, C64::ONE, &w)?)
    }

    #[rhai_fn(name = "-", return_raw)]
    pub fn subtract(v: Vector, w: Vector) -> Fallible<Vector> {
        Ok(Vector::sum(C64::ONE, &v, C64::new(-1.0, 0.0), &w)?)
    }

    #[rhai_fn(name = "-", return_raw)]
    pub fn negate(v: Vector) -> Fallible<Vector> {
        Ok(v.scaled(C64::new(-1.0, 0.0))?)
    }

    #[rhai_fn(name = "*", return_raw)]
    pub fn times_float(a: FLOAT, v: Vector) -> Fallible<Vector> {
        Ok(v.scaled(C64::new(a, 0.0))?)
    }

    #[rhai_fn(name = "*", return_raw)]
    pub fn times_int(a: INT, v: Vector) -> Fallible<Vector> {
        Ok(v.scaled(C64::new(a as FLOAT, 0.0))?)
    }

    #[rhai_fn(name = "*", return_raw)]
    pub fn times_complex(a: C64, v: Vector) -> Fallible<Vector> {
        Ok(v.scaled(a)?)
    }

    #[rhai_fn(name = "*", return_raw)]
    pub fn float_times(v: Vector, a: FLOAT) -> Fallible<Vector> {
        Ok(v.scaled(C64::new(a, 0.0))?)
    }

    #[rhai_fn(name = "*", return_raw)]
    pub fn int_times(v: Vector, a: INT) -> Fallible<Vector> {
        Ok(v.scaled(C64::new(a as FLOAT, 0.0))?)
    }

    #[rhai_fn(name = "*", return_raw)]
    pub fn complex_times(v: Vector, a: C64) -> Fallible<Vector> {
        Ok(v.scaled(a)?)
    }

    #[rhai_fn(name = "/", return_raw)]
    pub fn over_float(v: Vector, a: FLOAT) -> Fallible<Vector> {
        Ok(v.scaled(C64::new(1.0 / a, 0.0))?)
    }

    #[rhai_fn(name = "/", return_raw)]
    pub fn over_int(v: Vector, a: INT) -> Fallible<Vector> {
        Ok(v.scaled(C64::new(1.0 / a as FLOAT, 0.0))?)
    }

    #[rhai_fn(name = "/", return_raw)]
    pub fn over_complex(v: Vector, a: C64) -> Fallible<Vector> {
        Ok(v.scaled(complex::div(C64::ONE, a))?)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(v: &mut Vector) -> String {
        format!("BlockVector {}, {} on {}", v.block.shape(), human(v.block.bytes()), v.block.place())
    }
}
