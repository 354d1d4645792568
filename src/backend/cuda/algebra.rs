//! Block-vector algebra on the GPU.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::card::{Card, CardBuffer};
use super::ledger::Ledger;
use super::sums::reduce;
use super::{Cuda, RESIDENT, THREADS, Z, arguments, suffix, tall, to_bytes};
use crate::backend::exchange::PendingProducts;
use crate::backend::{Algebra, BlockVector, Dots, check_deflation, conformal};
use crate::error::{Error, Result};
use crate::number::C64;

/// Columns whose factors travel with one launch.
const MOST_FACTORS: usize = 64;

/// Rows that a thread adds up before blocks share them out.
const ROWS: u32 = 16;

/// Columns of Y up to which a thread keeps all of X^H Y for its column of X.
const FEW: u32 = 4;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct FactorsArgument([Z; MOST_FACTORS]);

/// The factors of columns `first..first + width`, from one for all or one each.
fn factors(given: &[C64], first: usize, width: usize) -> FactorsArgument {
    let mut of = [Z::default(); MOST_FACTORS];
    for (c, slot) in of.iter_mut().take(width).enumerate() {
        *slot = given[if given.len() == 1 { 0 } else { first + c }].into();
    }
    FactorsArgument(of)
}

fn check_factors(operation: &str, given: &[C64], columns: usize) -> Result<()> {
    if given.len() == 1 || given.len() == columns {
        return Ok(());
    }
    Err(Error::input(format!("{operation}: {} factors for {columns} columns", given.len())))
}

impl Algebra for Cuda {
    fn axpby(&self, a: &[C64], x: &BlockVector, b: &[C64], y: &mut BlockVector) -> Result<()> {
        conformal("a x + b y", x, y)?;
        check_factors("a x + b y", a, x.columns)?;
        check_factors("a x + b y", b, x.columns)?;
        let (rows, columns, dtype) = (x.rows.local as u64, x.columns as u32, x.dtype);
        let read = u32::from(b.iter().any(|z| *z != C64::default()));
        let (px, py) = (self.buffer(x)?.address, self.unique(y)?.address);
        if let ([a], [b]) = (a, b) {
            let (count, a, b) = (rows * u64::from(columns), Z::from(*a), Z::from(*b));
            let arguments = arguments![count, a, px, b, read, py];
            // SAFETY: the kernel's arguments; both blocks have `count` numbers.
            return unsafe {
                self.launch(&format!("axpby_all_{}", suffix(dtype)), count as usize, &arguments)
            };
        }
        for first in (0..x.columns).step_by(MOST_FACTORS) {
            let width = MOST_FACTORS.min(x.columns - first);
            let (fa, fb) = (factors(a, first, width), factors(b, first, width));
            let (first, width) = (first as u32, width as u32);
            let arguments = arguments![rows, columns, first, width, fa, px, fb, read, py];
            // SAFETY: the kernel's arguments; both blocks have rows * columns numbers.
            unsafe {
                self.launch(&format!("axpby_{}", suffix(dtype)), rows as usize * width as usize, &arguments)?;
            }
        }
        Ok(())
    }

    fn multiply(&self, x: &BlockVector, z: &BlockVector, y: &mut BlockVector) -> Result<()> {
        conformal("product entry by entry", x, z)?;
        conformal("product entry by entry", x, y)?;
        let (count, dtype) = ((x.rows.local * x.columns) as u64, x.dtype);
        let (px, pz, py) = (self.buffer(x)?.address, self.buffer(z)?.address, self.unique(y)?.address);
        // SAFETY: the kernel's arguments; all blocks have `count` numbers.
        unsafe {
            self.launch(
                &format!("multiply_{}", suffix(dtype)),
                count as usize,
                &arguments![count, px, pz, py],
            )
        }
    }

    fn dots(&self, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>> {
        conformal("scalar product", x, y)?;
        if x.columns == 0 {
            return Ok(Vec::new());
        }
        complex(self.card.answer(2 * x.columns, |out| queue_dots(self, x, y, out))?)
    }

    fn gram(&self, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>> {
        if x.rows != y.rows || x.dtype != y.dtype {
            return Err(Error::input(format!("product of {} and {}", x.shape(), y.shape())));
        }
        let (p, q) = (x.columns as u32, y.columns as u32);
        if p == 0 || q == 0 {
            return Ok(Vec::new());
        }
        if let Some(product) = tall::gram(self, x, y)? {
            return Ok(product);
        }
        complex(self.card.answer(2 * (p * q) as usize, |out| queue_gram(self, x, y, out))?)
    }

    fn combine(&self, x: &BlockVector, c: &[C64], b: f64, y: &mut BlockVector) -> Result<()> {
        if x.rows != y.rows || x.dtype != y.dtype || c.len() != x.columns * y.columns {
            return Err(Error::input(format!(
                "combination of {} by {} coefficients into {}",
                x.shape(),
                c.len(),
                y.shape()
            )));
        }
        if tall::combine(self, x, c, b, y)? {
            return Ok(());
        }
        if c.len() > MOST_FACTORS || c.is_empty() {
            let small = self.card.upload(&to_bytes(x.dtype, c))?;
            return add_combination(self, x, &small, b, y);
        }
        let (rows, p, q, few) =
            (x.rows.local as u64, x.columns as u32, y.columns as u32, factors(c, 0, c.len()));
        let (px, py) = (self.buffer(x)?.address, self.unique(y)?.address);
        let arguments = arguments![rows, p, q, px, few, b, py];
        // SAFETY: the kernel's arguments, whose sizes were checked above.
        unsafe {
            self.launch(&format!("combine_few_{}", suffix(x.dtype)), rows as usize * q as usize, &arguments)
        }
    }

    /// False where the columns are too many for it.
    fn deflate_there(
        &self,
        u: &BlockVector,
        kept: Option<(&[f64], &BlockVector)>,
        y: &mut BlockVector,
    ) -> Result<bool> {
        let (p, q) = (u.columns as u32, y.columns as u32);
        if q > FEW || p == 0 || q == 0 || u.rows != y.rows || u.dtype != y.dtype {
            return Ok(false);
        }
        let count = (p * q) as usize;
        let product = |x: &BlockVector| -> Result<CardBuffer> {
            let out = self.card.allocate(16 * count)?;
            queue_gram(self, u, x, out.address)?;
            Ok(out)
        };
        let found = product(y)?;
        let known = match kept {
            Some((d, x)) => {
                check_deflation(u, d, x, y)?;
                Some((self.card.upload(d)?, product(x)?))
            }
            None => None,
        };
        let (d, wanted) = known.as_ref().map_or((0, 0), |(d, wanted)| (d.address, wanted.address));
        let small = self.card.allocate(count * u.dtype.bytes())?;
        let each = p * q;
        let arguments = arguments![each, q, d, wanted, found.address, small.address];
        // SAFETY: the kernel's arguments; the products have `count` numbers, `d` one for each column of the space.
        unsafe { self.launch(&format!("deflation_{}", suffix(u.dtype)), count, &arguments)? };
        add_combination(self, u, &small, 1.0, y)?;
        Ok(true)
    }

    /// `X^H Y` for several X, one after the other; the host waits once where it can.
    fn gram_each(&self, x: &[&BlockVector], y: &BlockVector) -> Result<Vec<C64>> {
        let plain =
            |x: &&BlockVector| x.rows == y.rows && x.dtype == y.dtype && x.columns > 0 && !tall::takes(x, y);
        if x.len() < 2 || y.columns == 0 || !x.iter().all(plain) {
            return Ok(x.iter().map(|x| self.gram(x, y)).collect::<Result<Vec<_>>>()?.concat());
        }
        let count = |x: &BlockVector| x.columns * y.columns;
        let all = self.card.answer(2 * x.iter().map(|x| count(x)).sum::<usize>(), |out| {
            let mut to = out;
            for x in x {
                queue_gram(self, x, y, to)?;
                to += 16 * count(x) as u64;
            }
            Ok(())
        })?;
        complex(all)
    }

    fn precondition(
        &self,
        d: &BlockVector,
        shift: &[f64],
        floor: f64,
        x: &BlockVector,
        y: &mut BlockVector,
    ) -> Result<()> {
        conformal("preconditioner", x, y)?;
        if d.columns != 1 || d.rows != x.rows || d.dtype != x.dtype.to_real() || shift.len() != x.columns {
            return Err(Error::input(format!("preconditioner {} for {}", d.shape(), x.shape())));
        }
        let (rows, columns, dtype) = (x.rows.local as u64, x.columns as u32, x.dtype);
        let shift: Vec<C64> = shift.iter().map(|&s| C64::new(s, 0.0)).collect();
        let (pd, px, py) = (self.buffer(d)?.address, self.buffer(x)?.address, self.unique(y)?.address);
        for first in (0..x.columns).step_by(MOST_FACTORS) {
            let width = MOST_FACTORS.min(x.columns - first);
            let shifts = factors(&shift, first, width);
            let shifts = if shift.len() == 1 { factors(&shift, 0, width) } else { shifts };
            let (first, width) = (first as u32, width as u32);
            let arguments = arguments![rows, columns, first, width, pd, shifts, floor, px, py];
            let count = rows as usize * width as usize;
            // SAFETY: the kernel's arguments, whose sizes were checked above.
            unsafe { self.launch(&format!("precondition_{}", suffix(dtype)), count, &arguments)? };
        }
        Ok(())
    }
}

/// Complex numbers from their parts.
fn complex(parts: Vec<f64>) -> Result<Vec<C64>> {
    Ok(parts.chunks(2).map(|z| C64::new(z[0], z[1])).collect())
}

/// Threads side by side on a row.
fn width_of(x: &BlockVector) -> u32 {
    (x.columns as u32).next_power_of_two().min(THREADS)
}

/// Queues the scalar products, written to an address that the GPU reaches.
fn queue_dots(gpu: &Cuda, x: &BlockVector, y: &BlockVector, out: u64) -> Result<()> {
    let (rows, columns, width) = (x.rows.local as u64, x.columns as u32, width_of(x));
    let high = u64::from(ROWS * THREADS / width);
    let blocks = rows.div_ceil(high).clamp(1, u64::from(gpu.card.processors * RESIDENT)) as u32;
    let (px, py) = (gpu.buffer(x)?.address, gpu.buffer(y)?.address);
    let name = format!("dots_{}", suffix(x.dtype));
    let parts = |sums: u64| {
        let arguments = arguments![rows, columns, width, px, py, sums];
        // SAFETY: the kernel's arguments; there is room for a number for each block and column.
        unsafe { gpu.card.launch(&name, (blocks, columns.div_ceil(width)), THREADS, &arguments) }
    };
    added_up(gpu, blocks, x.columns, parts, out)
}

/// Queues `parts`, which write `count` complex numbers for each of `blocks` blocks, and adding these up.
fn added_up(
    gpu: &Cuda,
    blocks: u32,
    count: usize,
    parts: impl FnOnce(u64) -> Result<()>,
    out: u64,
) -> Result<()> {
    if blocks == 1 {
        return parts(out);
    }
    let sums = gpu.card.allocate(16 * blocks as usize * count)?;
    parts(sums.address)?;
    reduce(&gpu.card, &sums, (blocks, 1), 2 * count, out)
}

/// Both products of a pass that has been queued, for whom asks later.
pub(super) fn products_later(
    card: &Arc<Card>,
    ledger: &Ledger,
    v: &BlockVector,
    w: &BlockVector,
) -> Result<PendingProducts> {
    conformal("scalar product", w, v)?;
    let gpu = Cuda { card: card.clone(), solver: Arc::default() };
    let columns = v.columns;
    if columns == 0 {
        return Ok(Box::new(|| Ok(Dots::default())));
    }
    let queued = |x: &BlockVector| ledger.enter(card, 2 * columns, |out| queue_dots(&gpu, x, v, out));
    let (vv, wv) = (queued(v)?, queued(w)?);
    let real = |all: Vec<f64>| all.into_iter().step_by(2).collect();
    Ok(Box::new(move || Ok(Dots { vv: real(vv.read()?), wv: real(wv.read()?), partial: false })))
}

/// Both products of a finished pass, where they are asked for.
pub(super) fn products(
    card: &Arc<Card>,
    v: &BlockVector,
    w: &BlockVector,
    to: Option<&mut Dots>,
) -> Result<()> {
    let Some(to) = to else { return Ok(()) };
    let gpu = Cuda { card: card.clone(), solver: Arc::default() };
    to.vv = gpu.dots(v, v)?.iter().map(|z| z.re).collect();
    to.wv = gpu.dots(w, v)?.iter().map(|z| z.re).collect();
    Ok(())
}

/// Queues `X^H Y`, written to an address that the GPU reaches.
fn queue_gram(gpu: &Cuda, x: &BlockVector, y: &BlockVector, out: u64) -> Result<()> {
    let (rows, p, q) = (x.rows.local as u64, x.columns as u32, y.columns as u32);
    let (px, py) = (gpu.buffer(x)?.address, gpu.buffer(y)?.address);
    let (thin, name, count) = (q <= FEW, suffix(x.dtype), (p * q) as usize);
    let (width, tile) = (width_of(x), p.max(q).next_power_of_two().clamp(8, 32));
    let (kernel, tiles, high) = if thin {
        (format!("gram_thin_{name}"), p.div_ceil(width), ROWS * THREADS / width)
    } else {
        let high = 16384 / x.dtype.bytes() as u32 / tile;
        (format!("gram{tile}_{name}"), p.div_ceil(tile) * q.div_ceil(tile), high)
    };
    let resident = gpu.card.resident(&kernel, THREADS)?.div_ceil(tiles).max(1);
    let blocks = rows.div_ceil(u64::from(high)).clamp(1, u64::from(resident)) as u32;
    let parts = |sums: u64| {
        // SAFETY: the kernels' arguments; there is room for a number for each block and pair of columns.
        unsafe {
            if thin {
                let arguments = arguments![rows, p, q, width, px, py, sums];
                gpu.card.launch(&kernel, (blocks, tiles), THREADS, &arguments)
            } else {
                let arguments = arguments![rows, p, q, px, py, sums];
                gpu.card.launch(&kernel, (blocks, tiles), THREADS, &arguments)
            }
        }
    };
    added_up(gpu, blocks, count, parts, out)
}

/// `Y = X C + b Y` with C on the GPU.
fn add_combination(
    gpu: &Cuda,
    x: &BlockVector,
    small: &CardBuffer,
    b: f64,
    y: &mut BlockVector,
) -> Result<()> {
    let (rows, p, q, dtype) = (x.rows.local as u64, x.columns as u32, y.columns as u32, x.dtype);
    let (px, py) = (gpu.buffer(x)?.address, gpu.unique(y)?.address);
    let arguments = arguments![rows, p, q, px, small.address, b, py];
    // SAFETY: the kernel's arguments, whose sizes were checked above.
    unsafe { gpu.launch(&format!("combine_{}", suffix(dtype)), rows as usize * q as usize, &arguments) }
}
