//! Products of tall-skinny blocks with many columns, on the tensor cores, and of lists of single columns, with the
//! corrections of Davidson's method; see `kernels/tall.cu`.

use bytemuck::{Pod, Zeroable};

use super::sums::reduced;
use super::{Cuda, THREADS, arguments, suffix, to_bytes};
use crate::backend::algebra::correct_in_turn;
use crate::backend::{BlockVector, Lists, RitzCorrection, conformal};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// Lanes of a tile.
const SIDE: usize = 32;

/// Lanes of the left block that a combination takes.
const DEEP: usize = 64;

/// Lanes from which the tensor cores are faster.
const WIDE: usize = 12;

/// Columns of a list that one launch takes, and those that a thread sums together.
const LISTED: usize = 32;
const TOGETHER: u32 = 4;

/// Real columns that a block of doubles has, side by side; none for single precision.
fn lanes(v: &BlockVector) -> Option<usize> {
    match v.dtype {
        DType::F64 => Some(v.columns),
        DType::C64 => Some(2 * v.columns),
        DType::F32 | DType::C32 => None,
    }
}

/// Whether `X^H Y` is a product of this file.
pub(super) fn takes(x: &BlockVector, y: &BlockVector) -> bool {
    lanes(x).zip(lanes(y)).is_some_and(|(p, q)| p.min(q) >= WIDE)
}

/// `X^H Y`, or nothing where other kernels serve better.
pub(super) fn gram(gpu: &Cuda, x: &BlockVector, y: &BlockVector) -> Result<Option<Vec<C64>>> {
    let (true, Some(p), Some(q)) = (takes(x, y), lanes(x), lanes(y)) else { return Ok(None) };
    let (tiles, rows) = (p.div_ceil(SIDE) * q.div_ceil(SIDE), x.rows.local as u64);
    let resident = (gpu.card.resident("gram_tensor", THREADS)? as usize / tiles).max(1);
    let blocks = (x.rows.local.div_ceil(2 * THREADS as usize)).clamp(1, resident) as u32;
    let sums = gpu.card.allocate(8 * blocks as usize * p * q)?;
    let (px, py, tiles) = (gpu.buffer(x)?.address, gpu.buffer(y)?.address, tiles as u32);
    let (wide, high) = (p as u32, q as u32);
    let arguments = arguments![rows, wide, high, px, py, sums.address];
    // SAFETY: the kernel's arguments; `sums` holds a number for each block and pair of lanes.
    unsafe { gpu.card.launch("gram_tensor", (blocks, tiles), THREADS, &arguments)? };
    let g = reduced(&gpu.card, &sums, blocks, p * q)?;
    if !x.dtype.is_complex() {
        return Ok(Some(g.into_iter().map(|re| C64::new(re, 0.0)).collect()));
    }
    let at = |i: usize, j: usize| g[i * q + j];
    let entry = |i: usize, j: usize| {
        let (i, j) = (2 * i, 2 * j);
        C64::new(at(i, j) + at(i + 1, j + 1), at(i, j + 1) - at(i + 1, j))
    };
    Ok(Some(
        (0..x.columns).flat_map(|i| (0..y.columns).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect(),
    ))
}

/// `Y = X C + b Y`; false where other kernels serve better.
pub(super) fn combine(gpu: &Cuda, x: &BlockVector, c: &[C64], b: f64, y: &mut BlockVector) -> Result<bool> {
    let (Some(p), Some(q)) = (lanes(x), lanes(y)) else { return Ok(false) };
    if p.min(q) < WIDE || p > DEEP {
        return Ok(false);
    }
    let small: Vec<f64> = if x.dtype.is_complex() {
        // Of each row of C one for the real parts of X and one for the imaginary ones.
        let parts = |row: &[C64]| -> Vec<f64> {
            row.iter().flat_map(|z| [z.re, z.im]).chain(row.iter().flat_map(|z| [-z.im, z.re])).collect()
        };
        c.chunks(y.columns).flat_map(parts).collect()
    } else {
        c.iter().map(|z| z.re).collect()
    };
    let small = gpu.card.upload(&small)?;
    let rows = x.rows.local as u64;
    let resident = gpu.card.resident("combine_tensor", THREADS)? as usize;
    let blocks = x.rows.local.div_ceil(4 * THREADS as usize).clamp(1, resident) as u32;
    let (px, py) = (gpu.buffer(x)?.address, gpu.unique(y)?.address);
    let (deep, wide) = (p as u32, q as u32);
    let arguments = arguments![rows, deep, wide, px, small.address, b, py];
    // SAFETY: the kernel's arguments; the blocks have as many rows and lanes, `small` has p * q numbers.
    unsafe { gpu.card.launch("combine_tensor", (blocks, q.div_ceil(SIDE) as u32), THREADS, &arguments)? };
    Ok(true)
}

/// What kernels of a correction differ by in columns.
const FILLED: usize = 4;

/// Addresses of single columns; those after the last are never read.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ListArgument([u64; LISTED]);

impl ListArgument {
    fn of(gpu: &Cuda, x: &[&BlockVector], y: &BlockVector) -> Result<ListArgument> {
        let mut list = ListArgument::zeroed();
        for (to, x) in list.0.iter_mut().zip(x) {
            conformal("product of single columns", x, y)?;
            *to = gpu.buffer(x)?.address;
        }
        if y.columns != 1 {
            return Err(Error::internal(format!("{} is no single column", y.shape())));
        }
        Ok(list)
    }
}

/// Queues the scalar products of at most [`LISTED`] single columns with one, written to an address that the GPU
/// reaches.
fn queue_dots_list(gpu: &Cuda, x: &[&BlockVector], y: &BlockVector, out: u64) -> Result<()> {
    let list = ListArgument::of(gpu, x, y)?;
    let (rows, columns) = (y.rows.local as u64, x.len() as u32);
    let kernel = format!("dots_list_{}", suffix(y.dtype));
    let groups = columns.div_ceil(TOGETHER);
    let most = (gpu.card.resident(&kernel, THREADS)? / groups).max(1);
    let blocks = y.rows.local.div_ceil(2 * THREADS as usize).clamp(1, most as usize) as u32;
    let parts = if y.dtype.is_complex() { 2 } else { 1 };
    let sums = gpu.card.allocate(8 * (groups * TOGETHER * blocks) as usize * parts)?;
    let py = gpu.buffer(y)?.address;
    let arguments = arguments![rows, columns, list, py, sums.address, out];
    // SAFETY: the kernel's arguments; all columns have `rows` numbers, `sums` as many as blocks and columns have parts,
    // `out` one a column and part.
    unsafe { gpu.card.launch(&kernel, (blocks, groups), THREADS, &arguments) }
}

impl Lists for Cuda {
    fn dots_with(&self, x: &[&BlockVector], y: &BlockVector) -> Result<Vec<C64>> {
        self.dots_with_each(&[(x, y)])
    }

    fn dots_with_each(&self, lists: &[(&[&BlockVector], &BlockVector)]) -> Result<Vec<C64>> {
        let parts = |y: &BlockVector| if y.dtype.is_complex() { 2 } else { 1 };
        let count = lists.iter().map(|(x, y)| parts(y) * x.len()).sum();
        if count == 0 {
            return Ok(Vec::new());
        }
        let numbers = self.card.answer(count, |out| {
            let mut to = out;
            for (x, y) in lists {
                for x in x.chunks(LISTED) {
                    queue_dots_list(self, x, y, to)?;
                    to += (8 * parts(y) * x.len()) as u64;
                }
            }
            Ok(())
        })?;
        let mut rest = &numbers[..];
        let mut all = Vec::new();
        for (x, y) in lists {
            let (now, later) = rest.split_at(parts(y) * x.len());
            all.extend(now.chunks(parts(y)).map(|z| C64::new(z[0], z.get(1).copied().unwrap_or(0.0))));
            rest = later;
        }
        Ok(all)
    }

    fn mix(&self, x: &[&BlockVector], c: &[C64], b: f64, y: &mut BlockVector) -> Result<()> {
        if x.len() != c.len() {
            return Err(Error::internal(format!("{} columns with {} factors", x.len(), c.len())));
        }
        let mut b = b;
        let (lists, factors): (Vec<_>, Vec<_>) = if x.is_empty() {
            (vec![x], vec![c])
        } else {
            (x.chunks(LISTED).collect(), c.chunks(LISTED).collect())
        };
        for (x, c) in lists.into_iter().zip(factors) {
            let list = ListArgument::of(self, x, y)?;
            let mut weights = [0u8; 16 * LISTED];
            let bytes = to_bytes(y.dtype, c);
            weights[..bytes.len()].copy_from_slice(&bytes);
            let (rows, columns) = (y.rows.local as u64, x.len() as u32);
            let py = self.unique(y)?.address;
            let arguments = arguments![rows, columns, list, weights, b, py];
            // SAFETY: the kernel's arguments; all columns have `rows` numbers.
            unsafe { self.launch(&format!("mix_list_{}", suffix(y.dtype)), y.rows.local, &arguments)? };
            b = 1.0;
        }
        Ok(())
    }

    fn correct(&self, of: RitzCorrection, kr: &mut BlockVector, kx: &mut BlockVector) -> Result<Vec<C64>> {
        let (n, dtype) = (of.basis.len(), kr.dtype);
        if !RitzCorrection::is_served(kr, n) {
            return correct_in_turn(self, of, kr, kx);
        }
        if n == 0 || of.images.len() != n || of.coefficients.len() != n {
            return Err(Error::internal(format!(
                "a correction of {n} columns and {} images",
                of.images.len()
            )));
        }
        conformal("correction", kr, kx)?;
        let d = of.diagonal;
        if d.columns != 1 || d.rows != kr.rows || d.dtype != dtype.to_real() {
            return Err(Error::internal(format!("preconditioner {} for {}", d.shape(), kr.shape())));
        }
        // Lists are filled up with their last column, without weight.
        let width = n.div_ceil(FILLED) * FILLED;
        let filled = |list: &[&BlockVector]| -> Result<ListArgument> {
            let all: Vec<&BlockVector> = (0..width).map(|k| list[k.min(n - 1)]).collect();
            ListArgument::of(self, &all, kr)
        };
        let (v, w) = (filled(of.basis)?, filled(of.images)?);
        let mut weights = [0u8; 16 * LISTED];
        let bytes = to_bytes(dtype, of.coefficients);
        weights[..bytes.len()].copy_from_slice(&bytes);
        let parts = if dtype.is_complex() { 2 } else { 1 };
        let numbers = (2 * n + 4) * parts;
        let kernel = format!("correct_{width}_{}", suffix(dtype));
        let resident = self.card.resident(&kernel, THREADS)? as usize;
        let blocks = kr.rows.local.div_ceil(THREADS as usize).clamp(1, resident) as u32;
        let sums = self.card.allocate(8 * blocks as usize * numbers)?;
        let (rows, columns) = (kr.rows.local as u64, n as u32);
        let pd = self.buffer(d)?.address;
        let (pr, px) = (self.unique(kr)?.address, self.unique(kx)?.address);
        let RitzCorrection { value, shift, floor, .. } = of;
        let all = self.card.answer(numbers, |out| {
            let arguments =
                arguments![rows, columns, v, w, pd, weights, value, shift, floor, pr, px, sums.address, out];
            // SAFETY: the kernel's arguments; all columns have `rows` numbers, `sums` as many as blocks have, `out` one
            // for each.
            unsafe { self.card.launch(&kernel, (blocks, 1), THREADS, &arguments) }
        })?;
        Ok(all.chunks(parts).map(|z| C64::new(z[0], z.get(1).copied().unwrap_or(0.0))).collect())
    }
}
