//! Ways to accumulate mu_n = <r|T_n(H~)|r>. Full map, sliding window and divided make one moment per product (Zhang,
//! Yamagiwa, Okumura, Yunoki, IJPP 41 (2013) 59); they differ in memory and in passes over the data. The fused way is
//! that of [`Chebyshev`], with two moments per product.

use std::time::Instant;

use crate::backend::{BlockVector, Update};
use crate::error::{Error, Result};
use crate::method::window::require_hermitian;
use crate::method::{Chebyshev, Moments, Window};
use crate::number::C64;
use crate::number::memory::human;
use crate::operator::Operator;
use crate::task::Task;

/// Orders in a sliding window.
pub const WINDOW: usize = 16;

/// Ways to sum the moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accumulation {
    /// All products r_i (T_n r)_i are kept until the end, then summed over i.
    FullMap,
    /// The products of 16 orders are kept, and summed when the window is full.
    SlidingWindow,
    /// One pass computes T_n r, a second one sums <r|T_n r>.
    Divided,
    /// One pass computes T_n r and two moments (Kreutzer, Hager, Wellein, Pieper, Alvermann, Fehske, IPDPS 2015,
    /// 417).
    Fused,
}

impl Accumulation {
    /// Bytes of working memory for `count` moments of a block `v`: the vectors of the recurrence and the products kept.
    pub fn bytes(self, v: &BlockVector, count: usize) -> usize {
        let kept = match self {
            Accumulation::FullMap => count,
            Accumulation::SlidingWindow => WINDOW.min(count),
            Accumulation::Divided | Accumulation::Fused => 0,
        };
        let vectors = if self == Accumulation::Fused { 2 } else { 3 };
        v.bytes() * vectors + v.bytes() / v.columns().max(1) * kept
    }
}

/// `count` moments of every column of `v`, accumulated in the given way.
///
/// # Errors
/// Products that do not fit into memory.
pub fn accumulate(
    h: &Operator,
    window: Window,
    v: BlockVector,
    count: usize,
    how: Accumulation,
    task: &Task,
) -> Result<Moments> {
    if count < 2 {
        return Err(Error::input(format!("{count} moments")).hint("ask for two at least"));
    }
    let (needed, free) = (how.bytes(&v, count), h.device().memory().free);
    if needed > free {
        return Err(Error::memory(format!(
            "accumulating {count} moments takes {}, and {} are free",
            human(needed),
            human(free)
        ))
        .hint("use `accumulate: \"fused\"`, which keeps no products, or fewer vectors at a time"));
    }
    if how == Accumulation::Fused {
        let mut recurrence = Chebyshev::new(h, window, v)?;
        recurrence.run(count.div_ceil(2) - 1, task)?;
        return recurrence.moments();
    }
    require_hermitian(h)?;
    let started = Instant::now();
    let r = h.accept(&v)?.unwrap_or(v);
    let columns = r.columns();
    let progress = task.start("moments", count * columns);
    let mut mu = Vec::with_capacity(columns);
    if how == Accumulation::Divided {
        mu = divided(h, window, &r, count, &progress)?;
    } else {
        let width = if how == Accumulation::FullMap { count } else { WINDOW.min(count) };
        for column in 0..columns {
            let r = h.device().columns(&r, column..column + 1)?;
            mu.push(mapped(h, window, &r, count, width, |n| progress.advance(column * count + n))?);
        }
    }
    for of in &mu {
        of.iter().try_for_each(|m| window.holds(m.abs(), of[0], h.dtype()))?;
    }
    let mut moments = Moments::new(window, h.dim(), mu)?;
    moments.seconds = started.elapsed().as_secs_f64();
    Ok(moments)
}

/// Calls `each(n, T_n r)` for every order.
fn walk(
    h: &Operator,
    window: Window,
    r: &BlockVector,
    count: usize,
    mut each: impl FnMut(usize, &BlockVector) -> Result<()>,
) -> Result<()> {
    let device = h.device();
    let (a, b) = (1.0 / window.half_width, -window.center / window.half_width);
    let mut previous = r.clone();
    let mut current = device.zeros(r.dtype(), r.rows(), r.columns())?;
    h.update(Update { alpha: a, beta: b, gamma: 0.0 }, &previous, &mut current, None)?;
    each(0, r)?;
    for n in 1..count {
        each(n, &current)?;
        if n + 1 < count {
            // T_n overwrites T_(n-2): what the paper calls OMAP.
            let c = Update { alpha: 2.0 * a, beta: 2.0 * b, gamma: -1.0 };
            h.update(c, &current, &mut previous, None)?;
            std::mem::swap(&mut current, &mut previous);
        }
    }
    Ok(())
}

fn divided(
    h: &Operator,
    window: Window,
    r: &BlockVector,
    count: usize,
    progress: &crate::task::Steps,
) -> Result<Vec<Vec<f64>>> {
    let mut mu = vec![Vec::with_capacity(count); r.columns()];
    walk(h, window, r, count, |n, t| {
        for (mu, z) in mu.iter_mut().zip(h.device().dots(r, t)?) {
            mu.push(z.re);
        }
        progress.advance((n + 1) * r.columns())
    })?;
    Ok(mu)
}

/// Moments by a map whose columns are the products of `width` orders; it is summed when it is full.
fn mapped(
    h: &Operator,
    window: Window,
    r: &BlockVector,
    count: usize,
    width: usize,
    mut advance: impl FnMut(usize) -> Result<()>,
) -> Result<Vec<f64>> {
    let device = h.device();
    let mut map = device.zeros(r.dtype(), r.rows(), width)?;
    let mut product = device.zeros(r.dtype(), r.rows(), 1)?;
    let ones = device.upload(r.dtype(), r.rows(), 1, &vec![C64::new(1.0, 0.0); r.rows().local])?;
    let mut mu = Vec::with_capacity(count);
    walk(h, window, r, count, |n, t| {
        device.multiply(r, t, &mut product)?;
        device.set_columns(&mut map, n % width, &product)?;
        if (n + 1) % width == 0 || n + 1 == count {
            let sums = device.gram(&ones, &map)?;
            mu.extend(sums.iter().take(n % width + 1).map(|z| z.re));
        }
        advance(n + 1)
    })?;
    Ok(mu)
}
