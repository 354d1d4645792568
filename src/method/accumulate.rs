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

/// Orders in a sliding window, and lanes that their partial sums are dealt out to: the threads of a block in the paper.
pub const WINDOW: usize = 128;

/// Ways to sum the moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accumulation {
    /// All products r_i (T_n r)_i are kept until the end, then summed over i.
    FullMap,
    /// Partial sums of 128 orders kept, 128 of each, summed as the window slides on.
    SlidingWindow,
    /// One pass computes T_n r, a second one sums <r|T_n r>.
    Divided,
    /// One pass computes T_n r and two moments (Kreutzer, Hager, Wellein, Pieper, Alvermann, Fehske, IPDPS 2015,
    /// 417).
    Fused,
}

impl Accumulation {
    /// Bytes of working memory, on all ranks, for `count` moments of a block `v`: the vectors of the recurrence and
    /// what is kept. `overwrite` as for [`accumulate`]. Maps are made of one column after the other.
    pub fn bytes(self, v: &BlockVector, count: usize, overwrite: bool) -> usize {
        let column = v.rows().global * v.dtype().bytes();
        let block = column * v.columns();
        let vectors = if overwrite { 3 } else { 4 };
        // Of several columns the block stays beside the one at work.
        let beside = if v.columns() > 1 { block } else { 0 };
        match self {
            Accumulation::FullMap => beside + column * (vectors + 2 + count),
            Accumulation::SlidingWindow => beside + column * vectors + 8 * (WINDOW * WINDOW + count),
            Accumulation::Divided => block * vectors + 8 * count * v.columns(),
            Accumulation::Fused => block * 2 + 8 * count * v.columns(),
        }
    }
}

/// `count` moments of every column of `v`, accumulated in the given way. With `overwrite`, T_n r takes the place of
/// T_(n-2) r, which the paper calls OMAP; without, it has a vector of its own. The fused step always overwrites.
///
/// # Errors
/// Products that do not fit into memory.
pub fn accumulate(
    h: &Operator,
    window: Window,
    v: BlockVector,
    count: usize,
    how: Accumulation,
    overwrite: bool,
    task: &Task,
) -> Result<Moments> {
    if count < 2 {
        return Err(Error::input(format!("{count} moments")).hint("ask for two at least"));
    }
    let (needed, free) = (how.bytes(&v, count, overwrite), h.device().memory().free);
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
        mu = divided(&ChebyshevWalk { h, window, count, overwrite }, &r, &progress)?;
    } else {
        for column in 0..columns {
            let one = if columns == 1 { r.clone() } else { h.device().columns(&r, column..column + 1)? };
            let (walk, advance) =
                (ChebyshevWalk { h, window, count, overwrite }, |n| progress.advance(column * count + n));
            mu.push(match how {
                Accumulation::FullMap => mapped(&walk, &one, advance)?,
                _ => slid(&walk, &one, advance)?,
            });
        }
    }
    for of in &mu {
        of.iter().try_for_each(|m| window.holds(m.abs(), of[0], h.dtype()))?;
    }
    let mut moments = Moments::new(window, h.dim(), mu)?;
    moments.seconds = started.elapsed().as_secs_f64();
    Ok(moments)
}

/// How T_n r is made for every order.
struct ChebyshevWalk<'a> {
    h: &'a Operator,
    window: Window,
    count: usize,
    overwrite: bool,
}

/// Calls `each(n, T_n r)` for every order.
fn walk(
    &ChebyshevWalk { h, window, count, overwrite }: &ChebyshevWalk<'_>,
    r: &BlockVector,
    mut each: impl FnMut(usize, &BlockVector) -> Result<()>,
) -> Result<()> {
    let device = h.device();
    let (a, b) = (1.0 / window.half_width, -window.center / window.half_width);
    let mut previous = r.clone();
    let mut current = device.zeros(r.dtype(), r.rows(), r.columns())?;
    h.update(Update { alpha: a, beta: b, gamma: 0.0 }, &previous, &mut current, None)?;
    let mut fresh = (!overwrite).then(|| device.zeros(r.dtype(), r.rows(), r.columns())).transpose()?;
    each(0, r)?;
    for n in 1..count {
        each(n, &current)?;
        if n + 1 < count {
            let c = Update { alpha: 2.0 * a, beta: 2.0 * b, gamma: -1.0 };
            if let Some(fresh) = &mut fresh {
                device.axpby(&[C64::ONE], &previous, &[C64::ZERO], fresh)?;
                std::mem::swap(fresh, &mut previous);
            }
            h.update(c, &current, &mut previous, None)?;
            std::mem::swap(&mut current, &mut previous);
        }
    }
    Ok(())
}

fn divided(by: &ChebyshevWalk<'_>, r: &BlockVector, progress: &crate::task::Steps) -> Result<Vec<Vec<f64>>> {
    let mut mu = vec![Vec::with_capacity(by.count); r.columns()];
    walk(by, r, |n, t| {
        for (mu, z) in mu.iter_mut().zip(by.h.device().dots(r, t)?) {
            mu.push(z.re);
        }
        progress.advance((n + 1) * r.columns())
    })?;
    Ok(mu)
}

/// The products of all orders in a map, summed at the end.
fn mapped(
    by: &ChebyshevWalk<'_>,
    r: &BlockVector,
    mut advance: impl FnMut(usize) -> Result<()>,
) -> Result<Vec<f64>> {
    let device = by.h.device();
    let mut map = device.zeros(r.dtype(), r.rows(), by.count)?;
    let mut product = device.zeros(r.dtype(), r.rows(), 1)?;
    walk(by, r, |n, t| {
        device.multiply(r, t, &mut product)?;
        device.set_columns(&mut map, n, &product)?;
        advance(n + 1)
    })?;
    let ones = device.upload(r.dtype(), r.rows(), 1, &vec![C64::ONE; r.rows().local])?;
    Ok(device.gram(&ones, &map)?.iter().map(|z| z.re).collect())
}

/// Partial sums of the products of [`WINDOW`] orders, summed when all of them are there.
fn slid(
    by: &ChebyshevWalk<'_>,
    r: &BlockVector,
    mut advance: impl FnMut(usize) -> Result<()>,
) -> Result<Vec<f64>> {
    let mut parts = vec![0.0; WINDOW * WINDOW];
    let mut mu = Vec::with_capacity(by.count);
    walk(by, r, |n, t| {
        let at = n % WINDOW;
        by.h.device().lane_dots(r, t, &mut parts[at * WINDOW..][..WINDOW])?;
        if at + 1 == WINDOW || n + 1 == by.count {
            mu.extend(parts.chunks(WINDOW).take(at + 1).map(|lanes| lanes.iter().sum::<f64>()));
            parts.fill(0.0);
        }
        advance(n + 1)
    })?;
    Ok(mu)
}
