//! Moments of two operators between Chebyshev polynomials, mu_mn = Tr[A T_m(H~) B T_n(H~)]/D.

use crate::backend::{BlockVector, Update};
use crate::error::{Error, Result};
use crate::method::Window;
use crate::number::C64;
use crate::operator::Operator;
use crate::task::Task;

/// Orders kept at a time on either side: wide enough that their products run as matrix products.
const BATCH: usize = 64;

/// <l|T_n(H~)|r> column by column for n = 0, 1, ..., `count` - 1: a row an order.
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

/// Both vectors in one type that the operator takes.
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
    /// <v|v> of a single column.
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

/// Two-dimensional moments.
#[derive(Debug, Clone)]
pub struct DoubleMoments {
    /// The window of H~.
    pub window: Window,
    /// Dimension of the operator.
    pub dim: usize,
    /// Orders in either direction.
    pub count: usize,
    /// mu_mn, row-major in m.
    pub values: Vec<C64>,
}

impl DoubleMoments {
    /// mu_mn = <r|A T_m(H~) B T_n(H~)|r> / <r|r>, averaged over the columns r of `vectors`.
    ///
    /// # Errors
    /// Operators of different sizes, no order, no vector.
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
        let device = h.device();
        let complex = [h, a, b].iter().any(|o| o.dtype().is_complex()) || vectors.dtype().is_complex();
        let dtype = if complex { h.dtype().to_complex() } else { h.dtype() };
        let batches = count.div_ceil(BATCH);
        let mut values = vec![C64::default(); count * count];
        let progress = task.start("two-dimensional moments", vectors.columns() * batches * batches);
        let adjoint = a.adjoint()?;
        for column in 0..vectors.columns() {
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
                            values[(m0 + i) * count + n0 + j] += gram[i * width + j] / norm;
                        }
                    }
                    progress.advance(column * batches * batches + n0 / BATCH * batches + m0 / BATCH + 1)?;
                }
            }
        }
        let r = vectors.columns() as f64;
        values.iter_mut().for_each(|x| *x /= r);
        Ok(DoubleMoments { window, dim: h.dim(), count, values })
    }
}
