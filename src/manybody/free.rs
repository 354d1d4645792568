//! Operators whose entries are not stored: every product generates the rows again.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::rows::RowSource;
use crate::backend::{BlockVector, Device, Dots, Kernel, KernelInfo, KernelShape, Rows, Update};
use crate::error::Result;
use crate::number::{C64, DType, memory};
use crate::operator::{LinearOperator, Operator, update_by};
use crate::ranks;
use crate::task;

/// Rows by which the entries of all are estimated.
const SAMPLE: usize = 1 << 12;

/// A Hermitian operator, or any other square one, by what generates its rows. Products run on the processor; of several
/// ranks each makes its share of the rows, for which all numbers of a vector come together on every rank.
struct Generated {
    source: Arc<dyn RowSource>,
    device: Device,
    single: bool,
    /// Makes the adjoint, where the operator is not Hermitian by its terms.
    adjoint: Adjoint,
    hermitian: bool,
    reason: &'static str,
    /// Those of Gershgorin, once they were asked for: they take as long as a product.
    limits: OnceLock<Option<(f64, f64)>>,
}

/// A function that makes the adjoint of an operator.
pub(super) type Adjoint = Box<dyn Fn() -> Result<Operator> + Send + Sync>;

/// The operator of rows that are generated in every product.
pub(super) fn operator(
    device: &Device,
    source: Arc<dyn RowSource>,
    single: bool,
    (hermitian, adjoint): (bool, Adjoint),
    reason: &'static str,
) -> Operator {
    let generated = Generated {
        source,
        device: device.clone(),
        single,
        adjoint,
        hermitian,
        reason,
        limits: OnceLock::new(),
    };
    Operator::from_node(device.clone(), Arc::new(generated))
}

trait AddsProducts: Copy + Send + Sync {
    const ZERO: Self;
    fn add(&mut self, value: C64, x: Self);
}

impl AddsProducts for f64 {
    const ZERO: f64 = 0.0;

    #[inline]
    fn add(&mut self, value: C64, x: f64) {
        *self += value.re * x;
    }
}

impl AddsProducts for C64 {
    const ZERO: C64 = C64::ZERO;

    #[inline]
    fn add(&mut self, value: C64, x: C64) {
        *self += value * x;
    }
}

impl Generated {
    /// Some rows of the product with all rows of a vector.
    fn product<T: AddsProducts>(
        &self,
        x: &[T],
        columns: usize,
        rows: std::ops::Range<usize>,
    ) -> Result<Vec<T>> {
        let mut y = vec![T::ZERO; rows.len() * columns];
        let (length, slab) = self.source.pieces();
        let task = task::here();
        let (stop, steps) = (task.interrupt(), task.start("rows", rows.len()));
        for (part, y) in y.chunks_mut(slab * columns).enumerate() {
            task.check()?;
            y.par_chunks_mut(length * columns).enumerate().for_each(|(chunk, y)| {
                // With many columns a slab takes seconds.
                if stop.raised() {
                    return;
                }
                let first = rows.start + part * slab + chunk * length;
                self.source.scatter(first, y.len() / columns, &mut |k, row| {
                    let y = &mut y[k * columns..][..columns];
                    for &(column, value) in row {
                        let x = &x[column as usize * columns..][..columns];
                        y.iter_mut().zip(x).for_each(|(y, x)| y.add(value, *x));
                    }
                });
            });
            steps.advance((part * slab + y.len() / columns).min(rows.len()))?;
        }
        Ok(y)
    }

    fn act(&self, v: &BlockVector) -> Result<BlockVector> {
        let (n, columns) = (self.source.shape().0, v.columns());
        let bytes = 16 * n as u128 * columns as u128;
        ranks::agreed(memory::ensure(2 * bytes, &format!("a product with {columns} vectors of {n} rows")))?;
        let all = self.device.download(v)?;
        let rows = ranks::own_of(n);
        let made = if v.dtype().is_complex() {
            self.product(&all, columns, rows)
        } else {
            let real: Vec<f64> = all.into_iter().map(|z| z.re).collect();
            let made = self.product(&real, columns, rows);
            made.map(|y| y.into_iter().map(C64::from).collect())
        };
        let made = match ranks::world() {
            None => made?,
            Some(_) => {
                let parts = made.map(|y| y.iter().map(|z| [z.re, z.im]).collect());
                ranks::joined(parts)?.into_iter().map(|[re, im]| C64::new(re, im)).collect()
            }
        };
        self.device.upload(v.dtype(), v.rows(), columns, &made)
    }

    /// Calls `f` with the rows that `each` of several threads generates, and joins what they find.
    fn over<R: Send>(
        &self,
        none: impl Fn() -> R + Sync + Send,
        f: impl Fn(&mut R, usize, &[(u64, C64)]) + Sync + Send,
        join: impl Fn(R, R) -> R + Sync + Send,
    ) -> R {
        let n = self.source.shape().0;
        let (length, slab) = self.source.pieces();
        let task = task::here();
        let (stop, steps) = (task.interrupt(), task.start("rows", n));
        let mut all = none();
        for start in (0..n).step_by(slab) {
            let end = n.min(start + slab);
            let part = (start..end).into_par_iter().step_by(length).map(|first| {
                let mut found = none();
                if !stop.raised() {
                    let count = length.min(end - first);
                    self.source.visit(first, count, &mut |k, row| f(&mut found, first + k, row));
                }
                found
            });
            all = join(all, part.reduce(&none, &join));
            // What is not complete is of no use.
            if steps.advance(end).is_err() {
                stop.heed();
            }
        }
        all
    }

    /// The lowest and the highest end of Gershgorin's discs.
    fn discs(&self) -> Option<(f64, f64)> {
        let wider = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
        let disc = |found: &mut (f64, f64), row: usize, entries: &[(u64, C64)]| {
            let (mut centre, mut radius) = (0.0, 0.0);
            for &(column, z) in entries {
                if column == row as u64 { centre += z.re } else { radius += z.norm() }
            }
            *found = wider(*found, (centre - radius, centre + radius));
        };
        let (lower, upper) = self.over(|| (f64::INFINITY, f64::NEG_INFINITY), disc, wider);
        (lower <= upper).then_some((lower, upper))
    }
}

impl Kernel for Generated {
    fn shape(&self) -> KernelShape {
        let dtype = DType::of(self.single, self.source.complex());
        KernelShape::square(Rows::all(self.source.shape().0), dtype)
    }

    fn info(&self) -> KernelInfo {
        let n = self.source.shape().0;
        let mut sampled = 0;
        self.source.lengths(0, n.min(SAMPLE), &mut |_, length| sampled += length);
        let entries = sampled as f64 * n as f64 / n.min(SAMPLE) as f64;
        KernelInfo { format: "matrix-free".into(), bytes: self.source.bytes(), entries: entries as usize }
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        update_by(&self.device, c, &self.act(v)?, v, w, dots)
    }

    fn overwrites(&self) -> bool {
        true
    }
}

impl LinearOperator for Generated {
    fn kernel(&self) -> &dyn Kernel {
        self
    }

    fn adjoint(&self) -> Result<Option<Operator>> {
        if self.hermitian { Ok(None) } else { (self.adjoint)().map(Some) }
    }

    fn is_hermitian(&self) -> Result<Option<bool>> {
        Ok(self.hermitian.then_some(true))
    }

    fn row(&self, row: usize, entries: &mut Vec<(usize, C64)>) -> bool {
        entries.clear();
        self.source.visit(row, 1, &mut |_, row| entries.extend(row.iter().map(|e| (e.0 as usize, e.1))));
        true
    }

    fn diagonal(&self) -> Option<Vec<C64>> {
        let add = |found: &mut Vec<(usize, C64)>, row: usize, entries: &[(u64, C64)]| {
            found.extend(entries.iter().find(|e| e.0 == row as u64).map(|e| (row, e.1)));
        };
        let join = |mut a: Vec<_>, mut b: Vec<_>| {
            a.append(&mut b);
            a
        };
        let mut diagonal = vec![C64::ZERO; self.source.shape().0];
        self.over(Vec::new, add, join).into_iter().for_each(|(row, z)| diagonal[row] = z);
        Some(diagonal)
    }

    fn limits(&self) -> Option<(f64, f64)> {
        *self.limits.get_or_init(|| self.discs())
    }

    fn reason(&self) -> Option<&str> {
        Some(self.reason)
    }
}
