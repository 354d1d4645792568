//! Random blocks by the recipe of `number::philox`.

use super::Threads;
use super::block::{BlockReal, HostBlock};
use crate::backend::{BlockVector, Random, VectorDistribution};
use crate::error::{Error, Result};
use crate::number::philox;
use crate::number::{C64, Real};
use crate::task;

/// The entry that element `index` of `column` has.
pub(in crate::backend) fn entry(random: &Random, complex: bool, index: u64, column: u32) -> C64 {
    let w = philox::words(random.seed, random.stream as u32, index, column);
    match random.distribution {
        VectorDistribution::Sign => C64::new(if w[0] >> 31 == 0 { 1.0 } else { -1.0 }, 0.0),
        VectorDistribution::Phase => {
            let (sin, cos) = philox::turn(philox::unit(w[0], w[1]));
            C64::new(cos, sin)
        }
        VectorDistribution::Gaussian if complex => {
            let (a, b) = philox::normals(w);
            C64::new(a, b) * std::f64::consts::FRAC_1_SQRT_2
        }
        VectorDistribution::Gaussian => C64::new(philox::normals(w).0, 0.0),
    }
}

/// Fills a block whose rows have these numbers in the whole.
pub(super) fn fill(
    threads: &Threads,
    v: &mut BlockVector,
    random: Random,
    number: impl Fn(usize) -> usize + Sync,
) -> Result<()> {
    let complex = v.dtype.is_complex();
    random.fits(v.dtype)?;
    let single = v.dtype.is_single();
    let block = super::block_mut(v)?;
    if single {
        go::<f32>(threads, block, &number, complex, &random)
    } else {
        go::<f64>(threads, block, &number, complex, &random)
    }
}

fn go<F: BlockReal>(
    threads: &Threads,
    block: &mut HostBlock,
    number: &(impl Fn(usize) -> usize + Sync),
    complex: bool,
    random: &Random,
) -> Result<()> {
    let (stride, width, lanes, fold) = (block.stride(), block.width(), block.lanes(), block.fold());
    let Some(y) = F::lanes_mut(block) else {
        return Err(Error::internal("random block of another precision"));
    };
    // Blocks may be as large as the memory.
    let stop = task::current();
    let ranges = threads.ranges(y.len() / stride.max(1), width * 64);
    threads.run(&ranges, stride, y, |rows, y| {
        for (stored, y) in rows.zip(y.chunks_exact_mut(stride)) {
            stop.heed();
            for (at, column, lane) in (0..width).map(|at| (at, at / lanes, at % lanes)) {
                let row = number(fold.map_or(stored, |fold| fold.row(stored, lane)));
                let z = entry(random, complex, row as u64, random.first_column + column as u32);
                y[at] = <F as Real>::from_f64(z.re);
                if complex {
                    y[width + at] = <F as Real>::from_f64(z.im);
                }
            }
        }
    })?;
    Ok(())
}
