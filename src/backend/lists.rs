//! Algebra of lists of vectors for backends that have none of their own: by blocks of columns, or vector by vector.

use super::{Backend, BlockVector};
use crate::error::Result;
use crate::number::C64;

/// Columns of a list that are put side by side together.
const SIDE_BY_SIDE: usize = 64;

/// [`Backend::grams`] of columns that are put side by side first.
pub(in crate::backend) fn grams_side_by_side<B: Backend + ?Sized>(
    device: &B,
    x: &[&BlockVector],
    y: &[&BlockVector],
) -> Result<Vec<C64>> {
    let (Some(first), false) = (x.first(), y.is_empty()) else { return Ok(Vec::new()) };
    let beside = |list: &[&BlockVector]| -> Result<BlockVector> {
        let mut block = device.zeros(first.dtype(), first.rows(), list.len())?;
        list.iter().enumerate().try_for_each(|(k, v)| device.set_columns(&mut block, k, v))?;
        Ok(block)
    };
    let mut all = vec![C64::default(); x.len() * y.len()];
    for (i, some) in x.chunks(SIDE_BY_SIDE).enumerate() {
        let some = beside(some)?;
        for (j, others) in y.chunks(SIDE_BY_SIDE).enumerate() {
            let products = device.gram(&some, &beside(others)?)?;
            for (k, line) in products.chunks(others.len()).enumerate() {
                all[(i * SIDE_BY_SIDE + k) * y.len() + j * SIDE_BY_SIDE..][..line.len()]
                    .copy_from_slice(line);
            }
        }
    }
    Ok(all)
}

/// [`Backend::mix`] by sums of two.
pub(in crate::backend) fn mix_one_by_one(
    axpby: &dyn Fn(&[C64], &BlockVector, &[C64], &mut BlockVector) -> Result<()>,
    x: &[&BlockVector],
    c: &[C64],
    b: f64,
    y: &mut BlockVector,
) -> Result<()> {
    let mut b = C64::new(b, 0.0);
    if x.is_empty() {
        let copy = y.clone();
        return axpby(&[b], &copy, &[C64::default()], y);
    }
    for (x, c) in x.iter().zip(c) {
        axpby(&[*c], x, &[b], y)?;
        b = C64::new(1.0, 0.0);
    }
    Ok(())
}

/// [`Backend::mix_each`], one sum after the other.
pub(in crate::backend) fn mix_in_turn<B: Backend + ?Sized>(
    device: &B,
    x: &[&BlockVector],
    c: &[C64],
    y: &mut [BlockVector],
) -> Result<()> {
    let columns = y.len();
    for (j, y) in y.iter_mut().enumerate() {
        let c: Vec<C64> = c.iter().skip(j).step_by(columns).copied().collect();
        device.mix(x, &c, 0.0, y)?;
    }
    Ok(())
}
