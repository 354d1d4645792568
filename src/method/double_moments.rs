//! Moments of two operators between Chebyshev polynomials, mu_mn = Tr[A T_m(H~) B T_n(H~)]/D.

use crate::backend::{BlockVector, Dots, Update};
use crate::error::{Error, Result};
use crate::method::moments::ALIKE;
use crate::method::saved::SavedTable;
use crate::method::{Averaged, Provenance, Window};
use crate::number::{C64, DType, Series, Table, memory};
use crate::operator::{Operator, TAKE_SIZES};
use crate::task::Task;

/// Orders of the left side that are multiplied with those of the right together.
const BATCH: usize = 64;

/// The same where there is room for all orders of both sides: as many at once as leave the progress to be seen.
const LARGE_BATCH: usize = 128;

/// Bytes that the vectors of both sides may take without being asked for,
/// and orders of the right side that may take more.
const ORDINARY: usize = 512 << 20;
const ENOUGH: usize = 128;

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
            chain.step(None)?;
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
            ))
            .hint(TAKE_SIZES));
        }
        let previous = h.device().zeros(v.dtype(), v.rows(), v.columns())?;
        let square = h.device().dots(&v, &v)?.first().map_or(0.0, |z| z.re);
        Ok(Polynomials { h: h.clone(), window, current: v, previous, order: 0, square })
    }

    fn current(&self) -> &BlockVector {
        &self.current
    }

    /// The next order; where asked, with products of the one before.
    fn step(&mut self, dots: Option<&mut Dots>) -> Result<()> {
        let (a, b) = (1.0 / self.window.half_width, -self.window.center / self.window.half_width);
        let c = if self.order == 0 {
            Update { alpha: a, beta: b, gamma: 0.0 }
        } else {
            Update { alpha: 2.0 * a, beta: 2.0 * b, gamma: -1.0 }
        };
        self.h.update(c, &self.current, &mut self.previous, dots)?;
        std::mem::swap(&mut self.current, &mut self.previous);
        self.order += 1;
        Ok(())
    }

    /// Calls `keep` with each of the next `count` orders, the number of which among them comes first; nothing follows
    /// if these are the `last`.
    fn take(
        &mut self,
        count: usize,
        last: bool,
        mut keep: impl FnMut(usize, &BlockVector) -> Result<()>,
    ) -> Result<()> {
        for k in 0..count {
            keep(k, &self.current)?;
            let length = if k + 1 < count || !last {
                let mut dots = Dots::default();
                self.step(Some(&mut dots))?;
                dots.vv.first().copied()
            } else {
                self.h.device().dots(&self.current, &self.current)?.first().map(|z| z.re)
            };
            self.window.holds(length.unwrap_or_default(), self.square, self.current.dtype())?;
        }
        Ok(())
    }
}

/// What the moments of one random vector are made of: mu_mn = factor <l|T_m B T_n|r>.
struct MomentSides<'a> {
    h: &'a Operator,
    window: Window,
    /// The operator B.
    between: &'a Operator,
    left: BlockVector,
    right: BlockVector,
    factor: C64,
}

impl MomentSides<'_> {
    /// The moments, row-major in m. Orders of the right side are kept as many as the plan says, and for each such pass
    /// the left side begins anew. `advance` is called after each batch.
    fn moments(
        &self,
        count: usize,
        plan: &KeptOrders,
        room: &mut Room,
        advance: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<C64>> {
        let device = self.h.device();
        let mut values = vec![C64::default(); count * count];
        let mut right = Polynomials::new(self.h, self.window, self.right.clone())?;
        for n in (0..count).step_by(plan.right) {
            let width = plan.right.min(count - n);
            right.take(width, n + width == count, |k, v| {
                if self.between.overwrites() {
                    return self.between.update(Update::PRODUCT, v, &mut room.right[k], None);
                }
                room.right[k] = self.between.apply(v)?;
                Ok(())
            })?;
            let beside: Vec<&BlockVector> = room.right[..width].iter().collect();
            let mut left = Polynomials::new(self.h, self.window, self.left.clone())?;
            for m in (0..count).step_by(plan.left) {
                let height = plan.left.min(count - m);
                left.take(height, m + height == count, |k, v| {
                    device.axpby(&[C64::ONE], v, &[C64::ZERO], &mut room.left[k])
                })?;
                let above: Vec<&BlockVector> = room.left[..height].iter().collect();
                let products = device.grams(&above, &beside)?;
                for (i, line) in products.chunks(width).enumerate() {
                    let to = &mut values[(m + i) * count + n..][..width];
                    to.iter_mut().zip(line).for_each(|(to, z)| *to = z * self.factor);
                }
                advance()?;
            }
        }
        Ok(values)
    }
}

/// How many orders are kept at a time.
struct KeptOrders {
    right: usize,
    left: usize,
}

impl KeptOrders {
    /// As many orders of the right side as half of the free memory holds, but beyond 512 MB no more than make the left
    /// side's steps cheap beside the products.
    fn new(h: &Operator, dtype: DType, count: usize) -> KeptOrders {
        let vector = (h.dim() * dtype.bytes()).max(1);
        let ordinary = (ORDINARY / vector).max(ENOUGH + BATCH);
        // Both recurrences and their starts have vectors of their own.
        let fit = ordinary.min(h.device().memory().free / 2 / vector).saturating_sub(8).max(2);
        let left = match 2 * count <= fit {
            true => count.min(LARGE_BATCH),
            false => BATCH.min(fit / 3).clamp(1, count),
        };
        let passes = count.div_ceil(fit - left);
        KeptOrders { right: count.div_ceil(passes), left }
    }

    /// Batches of one vector.
    fn batches(&self, count: usize) -> usize {
        count.div_ceil(self.right) * count.div_ceil(self.left)
    }
}

/// Vectors that are filled again and again.
struct Room {
    right: Vec<BlockVector>,
    left: Vec<BlockVector>,
}

impl Room {
    fn new(h: &Operator, dtype: DType, plan: &KeptOrders) -> Result<Room> {
        let vectors = |n: usize| (0..n).map(|_| h.device().zeros(dtype, h.rows(), 1)).collect::<Result<_>>();
        Ok(Room { right: vectors(plan.right)?, left: vectors(plan.left)? })
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
    /// What they are of.
    pub record: Provenance,
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
            ))
            .hint("make the currents of the same model"));
        }
        if count == 0 || vectors.columns() == 0 {
            return Err(Error::input("two-dimensional moments need at least one order and one vector"));
        }
        // A matrix for each vector, and their mean.
        let bytes = 16 * (count as u128).pow(2) * (vectors.columns() as u128 + 1);
        memory::ensure(bytes, &format!("{count} x {count} moments of {} vectors", vectors.columns()))?;
        let device = h.device();
        let complex = |all: &[&Operator]| all.iter().any(|o| o.dtype().is_complex());
        // Velocities of a real Hamiltonian are imaginary: real matrices serve.
        let real = match complex(&[h]) || vectors.dtype().is_complex() {
            true => None,
            false => a.real_velocity()?.zip(b.real_velocity()?),
        };
        // A = f M has the adjoint conj(f) M^T, and M^T = -M.
        let (acted, between, factor) = match &real {
            Some(((f, m), (g, n))) => (m.clone(), n, -f * g),
            None => (a.adjoint()?, b, C64::ONE),
        };
        let dtype = match real.is_none() && (complex(&[h, a, b]) || vectors.dtype().is_complex()) {
            true => h.dtype().to_complex(),
            false => h.dtype(),
        };
        let plan = KeptOrders::new(h, dtype, count);
        let mut room = Room::new(h, dtype, &plan)?;
        let mut columns = Vec::with_capacity(vectors.columns());
        let progress = task.start("two-dimensional moments", vectors.columns() * plan.batches(count));
        let mut done = 0;
        for column in 0..vectors.columns() {
            let right = device.convert(&device.columns(vectors, column..column + 1)?, dtype)?;
            let norm = device.dots(&right, &right)?[0].re;
            if !(norm > 0.0) {
                return Err(Error::numeric("a starting vector is zero"));
            }
            let left = acted.apply(&right)?;
            let sides = MomentSides { h, window, between, left, right, factor: factor / norm };
            columns.push(sides.moments(count, &plan, &mut room, &mut || {
                done += 1;
                progress.advance(done)
            })?);
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
        Ok(DoubleMoments {
            window,
            dim,
            count,
            volume: None,
            label: String::new(),
            record: Provenance::default(),
            columns,
            mean,
        })
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

    /// One column per vector. The report holds the rest of what [`DoubleMoments::from_table`] needs.
    ///
    /// # Errors
    /// Those of the table.
    pub fn to_table(&self) -> Result<Table> {
        let table = SavedTable::columns(self.columns.iter().cloned().map(Series::Complex))?
            .with_report("center", self.window.center)
            .with_report("half_width", self.window.half_width)
            .with_report("dimension", self.dim)
            .with_report("orders", self.count)
            .with_report("label", self.label.clone())
            .with_report("record", self.record.to_json());
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
        let saved = SavedTable { table, what: "two-dimensional moments" };
        let window = saved.window()?;
        let label = value("label").and_then(serde_json::Value::as_str).unwrap_or_default();
        let columns = table
            .columns()
            .map(|(name, data)| data.numbers(name).map(crate::number::Series::to_complex))
            .collect::<Result<_>>()?;
        let (dim, count) = (saved.number("dimension")? as usize, saved.number("orders")? as usize);
        let volume = value("volume").and_then(serde_json::Value::as_f64);
        let record = Provenance::from_json(value("record"))?;
        Ok(DoubleMoments { record, ..Self::of_vectors(window, dim, count, columns)?.on(volume, label) })
    }
}

impl Averaged for DoubleMoments {
    type Moment = C64;

    fn record(&self) -> &Provenance {
        &self.record
    }

    fn record_mut(&mut self) -> &mut Provenance {
        &mut self.record
    }

    fn columns(&self) -> &[Vec<C64>] {
        &self.columns
    }

    fn with_columns(&self, _others: Option<&Self>, columns: Vec<Vec<C64>>) -> Result<Self> {
        let with = Self::of_vectors(self.window, self.dim, self.count, columns)?;
        Ok(with.on(self.volume, self.label.clone()))
    }

    fn must_fit(&self, other: &DoubleMoments) -> Result<()> {
        let alike = self.window == other.window
            && (self.dim, self.count, &self.label) == (other.dim, other.count, &other.label)
            && self.volume == other.volume;
        if !alike {
            return Err(Error::input(
                "two-dimensional moments of different windows, dimensions, orders, volumes or directions cannot be \
                 averaged",
            )
            .hint(ALIKE));
        }
        Ok(())
    }
}
