//! The CPU backend: vectorised over the columns of a block, threads over fixed ranges of rows.
//!
//! Layout of a block (its secret): row after row; within a row the real parts of all columns, then, for complex types,
//! the imaginary parts. A real matrix therefore acts on a complex block exactly as on a real one of twice the width.

mod algebra;
mod block;
mod blocked;
mod corrections;
mod exchange;
mod fold;
mod folded;
mod formats;
mod fused;
mod kernels;
mod lists;
mod pack;
mod pairs;
mod panels;
mod random;
mod records;
mod simd;
mod single;
mod splines;
mod stencil;
mod stored;
mod tall;
mod threads;
mod wilson;
mod wilson_link;
mod wilson_shape;
mod wilson_site;

use std::ops::Range;
use std::sync::Arc;

use crate::backend::exchange::{ExchangePort, Faced, Halo, HostExchange, VectorShape};
use crate::backend::matrix::wilson::WilsonBox;
use crate::backend::splines::{SplineTable, Splines};
use crate::backend::walkers::MonteCarlo;
use crate::backend::{
    Algebra, Backend, BlockVector, DeviceMemory, Kernel, Lists, Matrices, MatrixSpec, Random, RitzCorrection,
    Rows, Storage, Vectors, check_runs,
};
use crate::error::{Error, Result};
use crate::number::{C64, DType, memory};
use crate::ranks;
use crate::task::Interrupt;
pub(in crate::backend) use block::HostBlock;
pub(in crate::backend) use random::entry as random_entry;
pub(crate) use threads::Threads;

/// Sets of vector instructions that the kernels are compiled for. The tests within this library are built for the
/// baseline alone: all sets once more would take a quarter of their time to build.
/// Scripts and the other tests run the best set there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// What every processor of the architecture has.
    Baseline,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// 512-bit vectors.
    Avx512,
}

impl Isa {
    /// The best set this processor has.
    fn detect() -> Isa {
        #[cfg(all(target_arch = "x86_64", not(test)))]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("fma")
            {
                return Isa::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Isa::Avx2;
            }
        }
        Isa::Baseline
    }

    /// The name people know.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Avx512 => "AVX-512",
            Isa::Avx2 => "AVX2",
            Isa::Baseline => "baseline",
        }
    }
}

/// Runs a loop compiled for an instruction set that the processor has.
#[inline]
fn vectorised<R>(isa: Isa, f: impl FnOnce() -> R) -> R {
    #[cfg(all(target_arch = "x86_64", not(test)))]
    {
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,fma,avx2")]
        unsafe fn wide<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        #[target_feature(enable = "avx2,fma")]
        unsafe fn half<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        match isa {
            // SAFETY: `Isa::detect` found that the processor has the instructions; so below.
            Isa::Avx512 => return unsafe { wide(f) },
            // SAFETY: as above.
            Isa::Avx2 => return unsafe { half(f) },
            Isa::Baseline => {}
        }
    }
    let _ = isa;
    f()
}

/// The CPU backend.
#[derive(Debug, Clone)]
pub struct Cpu {
    threads: Arc<Threads>,
    isa: Isa,
}

impl Cpu {
    /// A backend with `threads` workers (0: as many as the machine offers) that stops when `interrupt` is raised.
    pub fn new(threads: usize, interrupt: Interrupt) -> Result<Self> {
        Ok(Cpu { threads: Arc::new(Threads::new(threads, interrupt)?), isa: Isa::detect() })
    }

    /// The same backend without the vector instructions beyond `most`, to compare them.
    pub fn limited_to(mut self, most: Isa) -> Self {
        self.isa = self.isa.min(most);
        self
    }
}

/// The numbers of a block that lives here.
fn block(v: &BlockVector) -> Result<&HostBlock> {
    match &v.storage {
        Storage::Cpu(block) => Ok(block),
        Storage::Cuda(_) | Storage::Split(_) | Storage::Ranks(_) => Err(elsewhere()),
    }
}

/// As [`block`], to change them.
fn block_mut(v: &mut BlockVector) -> Result<&mut HostBlock> {
    match &mut v.storage {
        Storage::Cpu(block) => Ok(block),
        Storage::Cuda(_) | Storage::Split(_) | Storage::Ranks(_) => Err(elsewhere()),
    }
}

fn elsewhere() -> Error {
    Error::input("the CPU was given a block that lives elsewhere")
        .hint("make operators and vectors on one backend")
}

impl Backend for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn describe(&self) -> String {
        let n = self.threads.count();
        format!("{n} thread{}, {}", if n == 1 { "" } else { "s" }, self.isa.name())
    }

    fn memory(&self) -> DeviceMemory {
        let host = memory::usable();
        let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        DeviceMemory::new(
            (bytes(host.total), block::bytes_in_use()),
            (bytes(host.shared), bytes(host.alone)),
            ranks::machine(),
        )
    }

    fn workers(&self) -> usize {
        self.threads.count()
    }

    fn preferred_columns(&self) -> usize {
        8
    }

    fn monte_carlo(&self) -> Option<&dyn MonteCarlo> {
        Some(self)
    }

    fn host_exchange(&self) -> Option<&dyn HostExchange> {
        Some(self)
    }
}

impl Vectors for Cpu {
    fn zeros(&self, dtype: DType, rows: Rows, columns: usize) -> Result<BlockVector> {
        let scalars = rows.local.checked_mul(columns).and_then(|n| n.checked_mul(2));
        let bytes = rows.local as f64 * columns as f64 * dtype.bytes() as f64;
        // Asking the system costs as much as filling a small block.
        let free = if bytes > 64e6 { self.memory().free } else { usize::MAX };
        if scalars.is_none() || bytes > free as f64 {
            return Err(Error::memory(format!(
                "a block of {} x {columns} {dtype} needs {:.1} GB, and {:.1} GB are free",
                rows.local,
                bytes / 1e9,
                free as f64 / 1e9
            ))
            .hint("use fewer vectors at a time, or a smaller lattice"));
        }
        let storage = Storage::Cpu(HostBlock::zeros(&self.threads, dtype, &rows, columns)?);
        Ok(BlockVector { dtype, rows, columns, storage })
    }

    fn fill_random(&self, v: &mut BlockVector, random: Random) -> Result<()> {
        let start = v.rows.start;
        random::fill(&self.threads, v, random, |row| start + row)
    }

    fn fill_random_runs(
        &self,
        v: &mut BlockVector,
        random: Random,
        starts: &[usize],
        length: usize,
    ) -> Result<()> {
        check_runs(v, starts, length)?;
        random::fill(&self.threads, v, random, |row| starts[row / length] + row % length)
    }

    fn set_entries(&self, v: &mut BlockVector, entries: &[(usize, usize, C64)]) -> Result<()> {
        v.check_entries(entries)?;
        let block = block_mut(v)?;
        entries.iter().for_each(|&(row, column, value)| block.set(row, column, value));
        Ok(())
    }

    fn columns(&self, v: &BlockVector, range: Range<usize>) -> Result<BlockVector> {
        v.check_columns(&range)?;
        let mut out = self.zeros(v.dtype, v.rows, range.len())?;
        let target = block_mut(&mut out)?;
        target.copy_columns(&self.threads, 0, block(v)?, range)?;
        Ok(out)
    }

    fn set_columns(&self, v: &mut BlockVector, at: usize, source: &BlockVector) -> Result<()> {
        v.check_holds(at, source)?;
        let target = block_mut(v)?;
        target.copy_columns(&self.threads, at, block(source)?, 0..source.columns)
    }

    fn convert(&self, v: &BlockVector, dtype: DType) -> Result<BlockVector> {
        let mut out = self.zeros(dtype, v.rows, v.columns)?;
        let target = block_mut(&mut out)?;
        target.convert_from(&self.threads, block(v)?)?;
        Ok(out)
    }

    fn download(&self, v: &BlockVector) -> Result<Vec<C64>> {
        let block = block(v)?;
        if let Some(numbers) = block.single_column() {
            return Ok(numbers);
        }
        let mut out = Vec::with_capacity(v.rows.local * v.columns);
        for row in 0..v.rows.local {
            out.extend((0..v.columns).map(|column| block.get(row, column)));
        }
        Ok(out)
    }

    fn upload(&self, dtype: DType, rows: Rows, columns: usize, data: &[C64]) -> Result<BlockVector> {
        rows.check_numbers(columns, data.len())?;
        let mut out = self.zeros(dtype, rows, columns)?;
        let block = block_mut(&mut out)?;
        if block.set_single_column(data) {
            return Ok(out);
        }
        for (at, &value) in data.iter().enumerate() {
            block.set(at / columns, at % columns, value);
        }
        Ok(out)
    }
}

impl Algebra for Cpu {
    fn axpby(&self, a: &[C64], x: &BlockVector, b: &[C64], y: &mut BlockVector) -> Result<()> {
        algebra::axpby((&self.threads, self.isa), a, x, b, y)
    }

    fn multiply(&self, x: &BlockVector, z: &BlockVector, y: &mut BlockVector) -> Result<()> {
        algebra::multiply(&self.threads, x, z, y)
    }

    fn dots(&self, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>> {
        if x.columns == 1 && single::serve([x], y) {
            return single::dots(&self.threads, &[x], y);
        }
        algebra::dots((&self.threads, self.isa), x, y)
    }

    fn lane_dots(&self, x: &BlockVector, y: &BlockVector, sums: &mut [f64]) -> Result<()> {
        algebra::lane_dots(&self.threads, x, y, sums)
    }

    fn gram(&self, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>> {
        algebra::gram((&self.threads, self.isa), x, y)
    }

    fn combine(&self, x: &BlockVector, c: &[C64], b: f64, y: &mut BlockVector) -> Result<()> {
        algebra::combine((&self.threads, self.isa), x, c, b, y)
    }

    fn precondition(
        &self,
        d: &BlockVector,
        shift: &[f64],
        floor: f64,
        x: &BlockVector,
        y: &mut BlockVector,
    ) -> Result<()> {
        algebra::precondition(&self.threads, d, shift, floor, x, y)
    }
}

impl Lists for Cpu {
    fn dots_with(&self, x: &[&BlockVector], y: &BlockVector) -> Result<Vec<C64>> {
        if single::serve(x.iter().copied(), y) {
            return lists::dots((&self.threads, self.isa), x, y);
        }
        x.iter().map(|x| Ok(self.dots(x, y)?[0])).collect()
    }

    fn grams(&self, x: &[&BlockVector], y: &[&BlockVector]) -> Result<Vec<C64>> {
        let Some(like) = x.first() else { return Ok(Vec::new()) };
        if !panels::serve(x.iter().chain(y).copied(), like) {
            return crate::backend::algebra::grams_side_by_side(self, x, y);
        }
        match like.dtype().is_single() {
            true => panels::products::<f32>((&self.threads, self.isa), x, y),
            false => panels::products::<f64>((&self.threads, self.isa), x, y),
        }
    }

    fn mix(&self, x: &[&BlockVector], c: &[C64], b: f64, y: &mut BlockVector) -> Result<()> {
        if single::serve(x.iter().copied(), y) && x.len() == c.len() {
            return lists::sums((&self.threads, self.isa), x, c, b, std::slice::from_mut(y));
        }
        let axpby = |a: &[C64], x: &BlockVector, b: &[C64], y: &mut BlockVector| self.axpby(a, x, b, y);
        crate::backend::algebra::mix_one_by_one(&axpby, x, c, b, y)
    }

    fn mix_each(&self, x: &[&BlockVector], c: &[C64], y: &mut [BlockVector]) -> Result<()> {
        let alike = x.first().is_some_and(|first| single::serve(x.iter().copied().chain(y.iter()), first));
        if alike && c.len() == x.len() * y.len() {
            return lists::sums((&self.threads, self.isa), x, c, 0.0, y);
        }
        crate::backend::algebra::mix_in_turn(self, x, c, y)
    }

    fn correct(&self, of: RitzCorrection, kr: &mut BlockVector, kx: &mut BlockVector) -> Result<Vec<C64>> {
        let fits = single::serve(of.vectors().into_iter().chain([&*kx]), kr);
        if fits && !kr.dtype.is_complex() {
            return corrections::pair((&self.threads, self.isa), of, kr, kx);
        }
        crate::backend::algebra::correct_in_turn(self, of, kr, kx)
    }
}

impl Matrices for Cpu {
    fn prepare(&self, spec: MatrixSpec) -> Result<Arc<dyn Kernel>> {
        match spec {
            MatrixSpec::Records { records, .. } => records::prepare(self.threads.clone(), self.isa, records),
            spec => kernels::prepare(self.threads.clone(), self.isa, spec),
        }
    }
}

impl MonteCarlo for Cpu {
    fn splines(&self, table: Arc<SplineTable>) -> Result<Arc<dyn Splines>> {
        Ok(splines::prepare(self.threads.clone(), self.isa, table))
    }
}

impl HostExchange for Cpu {
    fn port(&self, halo: &Halo, shape: VectorShape) -> Result<Box<dyn ExchangePort>> {
        exchange::port(self, halo, shape)
    }

    fn prepare_box(&self, part: &WilsonBox) -> Result<Option<Arc<dyn Faced>>> {
        wilson::prepare_box(self.threads.clone(), self.isa, part).map(Some)
    }
}
