//! Moments of two operators between Chebyshev polynomials, mu_mn = Tr[A T_m(H~) B T_n(H~)]/D.

use crate::backend::{BlockVector, Update};
use crate::error::{Error, Result};
use crate::method::Window;
use crate::number::{C64, Series, Table, memory};
use crate::operator::Operator;
use crate::task::Task;

/// Orders computed together on either side, enough for efficient matrix products.
const BATCH: usize = 64;

/// <l|T_n(H~)|r> for n = 0, 1, ..., `count` - 1: one row per order, one number per pair of columns.
pub fn cross_moments(
    h: &Operator,
    window: Window,
    left: &BlockVector,
    right: &BlockVector,
    count: usize,
    task: &Task,
) -> Result<Vec<Vec<C64>>> {
    if left.columns() != right.columns() || left.rows() != right.rows() {
        return Err(Error::input(format!("moments between {} and {}", left.shape(), right.shape())));
    }
    let (left, right) = promoted(h, left, right)?;
    let progress = task.start("moments", count);
    let square = |v: &BlockVector| h.device().dots(v, v);
    let (l, r) = (square(&left)?, square(&right)?);
    let bounds: Vec<f64> = l.iter().zip(&r).map(|(l, r)| (l.re * r.re).sqrt()).collect();
    let mut chain = Polynomials::new(h, window, right)?;
    let mut out: Vec<Vec<C64>> = Vec::with_capacity(count);
    for n in 0..count {
        out.push(h.device().dots(&left, chain.current())?);
        if n + 1 < count {
            chain.step()?;
        }
        progress.advance(n + 1)?;
    }
    for of in &out {
        of.iter().zip(&bounds).try_for_each(|(z, most)| window.holds(z.norm(), *most, h.dtype()))?;
    }
    Ok(out)
}

/// Converts both vectors to a type that the operator takes.
fn promoted(h: &Operator, x: &BlockVector, y: &BlockVector) -> Result<(BlockVector, BlockVector)> {
    let complex = h.dtype().is_complex() || x.dtype().is_complex() || y.dtype().is_complex();
    let dtype = if complex { h.dtype().to_complex() } else { h.dtype() };
    Ok((h.device().convert(x, dtype)?, h.device().convert(y, dtype)?))
}

/// T_0 v, T_1 v, ... one after the other.
struct Polynomials {
    h: Operator,
    window: Window,
    current: BlockVector,
    previous: BlockVector,
    order: usize,
    /// <v|v> of the first column.
    square: f64,
}

impl Polynomials {
    fn new(h: &Operator, window: Window, v: BlockVector) -> Result<Self> {
        if h.dim() != h.cols() || v.rows().global != h.dim() {
            return Err(Error::input(format!(
                "Chebyshev polynomials of a {} x {} operator on vectors of {} rows",
                h.dim(),
                h.cols(),
                v.rows().global
            )));
        }
        let previous = h.device().zeros(v.dtype(), v.rows(), v.columns())?;
        let square = h.device().dots(&v, &v)?.first().map_or(0.0, |z| z.re);
        Ok(Polynomials { h: h.clone(), window, current: v, previous, order: 0, square })
    }

    fn current(&self) -> &BlockVector {
        &self.current
    }

    fn step(&mut self) -> Result<()> {
        let (a, b) = (1.0 / self.window.half_width, -self.window.center / self.window.half_width);
        let c = if self.order == 0 {
            Update { alpha: a, beta: b, gamma: 0.0 }
        } else {
            Update { alpha: 2.0 * a, beta: 2.0 * b, gamma: -1.0 }
        };
        self.h.update(c, &self.current, &mut self.previous, None)?;
        std::mem::swap(&mut self.current, &mut self.previous);
        self.order += 1;
        Ok(())
    }

    /// The next `count` orders as the columns of a block.
    fn take(&mut self, count: usize) -> Result<BlockVector> {
        let device = self.h.device().clone();
        let mut block = device.zeros(self.current.dtype(), self.current.rows(), count)?;
        for column in 0..count {
            device.set_columns(&mut block, column, &self.current)?;
            self.step()?;
        }
        for z in device.dots(&block, &block)? {
            self.window.holds(z.re, self.square, block.dtype())?;
        }
        Ok(block)
    }
}

/// mu_mn = Tr[A T_m(H~) B T_n(H~)]/D, estimated with random vectors; the moments of each vector are kept.
#[derive(Debug, Clone)]
pub struct DoubleMoments {
    pub window: Window,
    /// Dimension of the operator.
    pub dim: usize,
    /// Orders in either direction.
    pub count: usize,
    /// Volume of the operator's lattice, where it has one.
    pub volume: Option<f64>,
    /// Names the operators between the polynomials; may be empty. Moments of different labels are never averaged.
    pub label: String,
    /// mu_mn of each vector, row-major in m.
    columns: Vec<Vec<C64>>,
    mean: Vec<C64>,
}

impl DoubleMoments {
    /// mu_mn = <r|A T_m(H~) B T_n(H~)|r> / <r|r> for the columns r of `vectors`.
    ///
    /// # Errors
    /// Operators of different sizes, no order, no vector, moments that do not fit into memory.
    pub fn new(
        h: &Operator,
        window: Window,
        (a, b): (&Operator, &Operator),
        vectors: &BlockVector,
        count: usize,
        task: &Task,
    ) -> Result<Self> {
        if a.dim() != h.dim() || b.dim() != h.dim() || a.cols() != h.dim() || b.cols() != h.dim() {
            return Err(Error::input(format!(
                "operators of {} and {} rows between polynomials of one of {}",
                a.dim(),
                b.dim(),
                h.dim()
            )));
        }
        if count == 0 || vectors.columns() == 0 {
            return Err(Error::input("two-dimensional moments need at least one order and one vector"));
        }
        // A matrix for each vector, and their mean.
        let bytes = 16 * (count as u128).pow(2) * (vectors.columns() as u128 + 1);
        memory::ensure(bytes, &format!("{count} x {count} moments of {} vectors", vectors.columns()))?;
        let device = h.device();
        let complex = [h, a, b].iter().any(|o| o.dtype().is_complex()) || vectors.dtype().is_complex();
        let dtype = if complex { h.dtype().to_complex() } else { h.dtype() };
        let batches = count.div_ceil(BATCH);
        let mut columns = Vec::with_capacity(vectors.columns());
        let progress = task.start("two-dimensional moments", vectors.columns() * batches * batches);
        let adjoint = a.adjoint()?;
        for column in 0..vectors.columns() {
            let mut values = vec![C64::default(); count * count];
            let r = device.convert(&device.columns(vectors, column..column + 1)?, dtype)?;
            let norm = device.dots(&r, &r)?[0].re;
            if !(norm > 0.0) {
                return Err(Error::numeric("a starting vector is zero"));
            }
            let ar = adjoint.apply(&r)?;
            let mut right = Polynomials::new(h, window, r)?;
            for n0 in (0..count).step_by(BATCH) {
                let width = BATCH.min(count - n0);
                let bt = b.apply(&right.take(width)?)?;
                let mut left = Polynomials::new(h, window, ar.clone())?;
                for m0 in (0..count).step_by(BATCH) {
                    let height = BATCH.min(count - m0);
                    let gram = device.gram(&left.take(height)?, &bt)?;
                    for i in 0..height {
                        for j in 0..width {
                            values[(m0 + i) * count + n0 + j] = gram[i * width + j] / norm;
                        }
                    }
                    progress.advance(column * batches * batches + n0 / BATCH * batches + m0 / BATCH + 1)?;
                }
            }
            columns.push(values);
        }
        let volume = h.geometry().and_then(|geometry| geometry.volume().ok());
        Ok(Self::of_vectors(window, h.dim(), count, columns)?.on(volume, ""))
    }

    /// From the moments of each vector.
    pub(super) fn of_vectors(
        window: Window,
        dim: usize,
        count: usize,
        columns: Vec<Vec<C64>>,
    ) -> Result<Self> {
        let square = count.checked_mul(count);
        if columns.is_empty() || count == 0 || columns.iter().any(|c| Some(c.len()) != square) {
            return Err(Error::input("two-dimensional moments are a square of them for every vector"));
        }
        if columns.iter().flatten().any(|z| !z.is_finite()) {
            return Err(Error::numeric("a moment is not a finite number"));
        }
        let r = columns.len() as f64;
        let mut mean = vec![C64::default(); columns[0].len()];
        for column in &columns {
            mean.iter_mut().zip(column).for_each(|(mean, z)| *mean += z / r);
        }
        Ok(DoubleMoments { window, dim, count, volume: None, label: String::new(), columns, mean })
    }

    /// The same moments, of a sample of this volume and operators of this name.
    pub fn on(mut self, volume: Option<f64>, label: impl Into<String>) -> Self {
        (self.volume, self.label) = (volume, label.into());
        self
    }

    /// The mean moments, row-major in m.
    pub fn values(&self) -> &[C64] {
        &self.mean
    }

    /// Number of vectors averaged over.
    pub fn vectors(&self) -> usize {
        self.columns.len()
    }

    /// The moments of each vector.
    pub fn of_each(&self) -> impl Iterator<Item = &[C64]> {
        self.columns.iter().map(Vec::as_slice)
    }

    /// The moments of some of the vectors.
    ///
    /// # Errors
    /// An empty range, or one beyond the last vector.
    pub fn select(&self, vectors: std::ops::Range<usize>) -> Result<Self> {
        let chosen =
            self.columns.get(vectors.clone()).filter(|chosen| !chosen.is_empty()).ok_or_else(|| {
                Error::input(format!(
                    "{} vectors from number {} on, of {}",
                    vectors.len(),
                    vectors.start,
                    self.vectors()
                ))
            })?;
        let some = Self::of_vectors(self.window, self.dim, self.count, chosen.to_vec())?;
        Ok(some.on(self.volume, self.label.clone()))
    }

    /// Moments of more vectors between the same operators, averaged with these.
    ///
    /// # Errors
    /// Moments that differ in window, dimension, orders, volume or label.
    pub fn merge(&self, other: &DoubleMoments) -> Result<Self> {
        self.must_fit(other)?;
        let columns = self.columns.iter().chain(&other.columns).cloned().collect();
        Ok(Self::of_vectors(self.window, self.dim, self.count, columns)?.on(self.volume, self.label.clone()))
    }

    /// Vector by vector, the average of these moments with others: (1 - weight) of these, weight of the others.
    ///
    /// # Errors
    /// Those of [`DoubleMoments::merge`], and another number of vectors.
    pub fn mixed(&self, other: &DoubleMoments, weight: f64) -> Result<Self> {
        if self.vectors() != other.vectors() {
            return Err(Error::input("moments of different numbers of vectors have no average for each"));
        }
        self.must_fit(other)?;
        let mix = |(a, b): (&Vec<C64>, &Vec<C64>)| {
            a.iter().zip(b).map(|(a, b)| a * (1.0 - weight) + b * weight).collect()
        };
        let columns = self.columns.iter().zip(&other.columns).map(mix).collect();
        Ok(Self::of_vectors(self.window, self.dim, self.count, columns)?.on(self.volume, self.label.clone()))
    }

    fn must_fit(&self, other: &DoubleMoments) -> Result<()> {
        let alike = self.window == other.window
            && (self.dim, self.count, &self.label) == (other.dim, other.count, &other.label)
            && self.volume == other.volume;
        if !alike {
            return Err(Error::input(
                "two-dimensional moments of different windows, dimensions, orders, volumes or directions cannot be averaged",
            ));
        }
        Ok(())
    }

    /// One column per vector. The report holds the rest of what [`DoubleMoments::from_table`] needs.
    ///
    /// # Errors
    /// Those of the table.
    pub fn to_table(&self) -> Result<Table> {
        let columns =
            self.columns.iter().enumerate().map(|(i, c)| (format!("vector_{i}"), Series::Complex(c.clone())));
        let table = Table::from_columns(columns)?
            .with_report("center", self.window.center)
            .with_report("half_width", self.window.half_width)
            .with_report("dimension", self.dim)
            .with_report("orders", self.count)
            .with_report("label", self.label.clone());
        Ok(match self.volume {
            Some(volume) => table.with_report("volume", volume),
            None => table,
        })
    }

    /// From what [`DoubleMoments::to_table`] made.
    ///
    /// # Errors
    /// When the table is of something else.
    pub fn from_table(table: &Table) -> Result<Self> {
        let value = |key: &str| table.report().get(key);
        let number = |key: &str| {
            value(key).and_then(serde_json::Value::as_f64).ok_or_else(|| {
                Error::input(format!(
                    "the table is not one of two-dimensional moments: its report has no `{key}`"
                ))
                .hint("they are saved with `mu.save(\"moments.npz\")`")
            })
        };
        let window = Window { center: number("center")?, half_width: number("half_width")? };
        if !window.center.is_finite() || !(window.half_width > 0.0) {
            return Err(Error::input("the saved moments have no window"));
        }
        let label = value("label").and_then(serde_json::Value::as_str).unwrap_or_default();
        let columns = table
            .columns()
            .map(|(name, data)| data.numbers(name).map(crate::number::Series::to_complex))
            .collect::<Result<_>>()?;
        let (dim, count) = (number("dimension")? as usize, number("orders")? as usize);
        let volume = value("volume").and_then(serde_json::Value::as_f64);
        Ok(Self::of_vectors(window, dim, count, columns)?.on(volume, label))
    }
}
