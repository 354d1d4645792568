//! Matrices of blocks and bases on the ranks of a run: each rank keeps some of them, and all ranks have all of them
//! while a step of a search works with them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use faer::{Mat, MatRef};
use rayon::prelude::*;

use super::dense::append;
use crate::backend::matrix::held::HeldMatrix;
use crate::backend::matrix::records::Element;
use crate::backend::{Backend, DenseMut, Rows};
use crate::error::{Error, Result};
use crate::number::{C64, DType};
use crate::ranks::{self, AlikeRanks, PieceShares};
use crate::task::parallel;

/// Matrices, each of which may be held by others, too.
pub(super) type WholeMatrices<T> = Vec<Arc<HeldMatrix<T>>>;

/// Matrices that are all here, or shared out to the ranks.
pub(super) enum SpreadMatrices<T> {
    /// All of them are here.
    Here(Arc<WholeMatrices<T>>),
    /// Each rank keeps its own.
    Parts(OwnMatrices<T>),
}

/// Matrices of which this rank keeps its own.
pub(super) struct OwnMatrices<T> {
    shares: PieceShares,
    shapes: Vec<(usize, usize)>,
    /// This rank's, in their order.
    own: WholeMatrices<T>,
    /// All of them, as long as somebody works with them.
    all: Mutex<Weak<WholeMatrices<T>>>,
}

impl<T: Element> SpreadMatrices<T> {
    /// Matrices of which this rank has computed its own.
    pub(super) fn parts(
        shares: PieceShares,
        shapes: Vec<(usize, usize)>,
        own: WholeMatrices<T>,
    ) -> SpreadMatrices<T> {
        SpreadMatrices::Parts(OwnMatrices { shares, shapes, own, all: Mutex::new(Weak::new()) })
    }

    /// Matrices that all ranks have, of which each keeps its own from now on.
    pub(super) fn among(alike: AlikeRanks, all: &WholeMatrices<T>) -> SpreadMatrices<T> {
        let shapes: Vec<(usize, usize)> = all.iter().map(|m| m.shape()).collect();
        let shares = alike.shares(&shapes.iter().map(|s| (s.0 * s.1) as u64).collect::<Vec<_>>());
        let own = (0..all.len()).filter(|&k| shares.owns(k)).map(|k| all[k].clone()).collect();
        SpreadMatrices::parts(shares, shapes, own)
    }

    /// All of them. Ranks that have shared them out call this together; they are kept as long as the result is.
    ///
    /// # Errors
    /// Those of MPI.
    pub(super) fn all(&self) -> Result<Arc<WholeMatrices<T>>> {
        let parts = match self {
            SpreadMatrices::Here(all) => return Ok(all.clone()),
            SpreadMatrices::Parts(parts) => parts,
        };
        let mut known = parts.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = known.upgrade() {
            return Ok(all);
        }
        let own = parts.own.iter().map(|m| Ok(to_bytes(m.here()?))).collect();
        let bytes = parts.shares.joined(own)?;
        let mut own = parts.own.iter();
        let all: WholeMatrices<T> = bytes
            .iter()
            .zip(&parts.shapes)
            .enumerate()
            .map(|(k, (bytes, shape))| match parts.shares.owns(k) {
                true => own.next().cloned().ok_or_else(other_way),
                false => of_bytes(bytes, *shape).map(|m| Arc::new(m.into())),
            })
            .collect::<Result<_>>()?;
        let all = Arc::new(all);
        *known = Arc::downgrade(&all);
        Ok(all)
    }

    /// Bytes of all of them, on all ranks together.
    pub(super) fn bytes(&self) -> usize {
        let count = |(rows, columns): (usize, usize)| rows * columns * size_of::<T>();
        match self {
            SpreadMatrices::Here(all) => all.iter().map(|m| count(m.shape())).sum(),
            SpreadMatrices::Parts(parts) => parts.shapes.iter().map(|shape| count(*shape)).sum(),
        }
    }
}

/// Matrices of which each rank has computed its own, on all ranks, which call this together.
pub(super) fn joined<T: Element>(
    device: &dyn Backend,
    shares: &PieceShares,
    own: Result<Vec<Mat<T>>>,
    shapes: &[(usize, usize)],
) -> Result<Vec<Mat<T>>> {
    let told = |own: Result<Vec<Mat<T>>>| -> Result<Vec<Mat<T>>> {
        let bytes = own.map(|own| own.iter().map(|m| to_bytes(m.as_ref())).collect());
        shares.joined(bytes)?.iter().zip(shapes).map(|(bytes, shape)| of_bytes(bytes, *shape)).collect()
    };
    if device.distributed().is_some_and(|ranks| ranks.lone().is_some()) {
        return told(own);
    }
    let own = ranks::agreed(own)?;
    let words = size_of::<T>() / size_of::<f64>();
    let sizes: Vec<usize> = shapes.iter().map(|(rows, columns)| rows * columns * words).collect();
    let (order, starts) = shares.in_order(&sizes);
    let mut mine: Vec<T> = Vec::with_capacity(own.iter().map(|m| m.nrows() * m.ncols()).sum());
    own.iter().for_each(|m| append(&mut mine, m.as_ref()));
    let Some(all) = by_device(device, bytemuck::cast_slice(raw(&mut mine)), &starts)? else {
        return told(Ok(own));
    };
    let mut at = 0;
    let mut places = vec![0..0; sizes.len()];
    for piece in order {
        places[piece] = at..at + sizes[piece];
        at += sizes[piece];
    }
    let matrix = |k: usize| {
        of_bytes(bytemuck::cast_slice(all.get(places[k].clone()).ok_or_else(other_way)?), shapes[k])
    };
    parallel::try_map(places.len().min(shapes.len()), matrix)
}

/// Numbers of all ranks by way of their devices, where these hand one another what they have.
fn by_device(device: &dyn Backend, own: &[f64], starts: &[usize]) -> Result<Option<Vec<f64>>> {
    let (Some(ranks), Some(alone)) = (device.distributed(), device.alone()) else { return Ok(None) };
    if alone.keeper().is_none() {
        return Ok(None);
    }
    let own: Vec<C64> = own.par_iter().map(|&x| x.into()).collect();
    let own = alone.upload(DType::F64, Rows::all(own.len()), 1, &own)?;
    ranks.joined(&own, starts)?.map_or(Ok(None), |all| alone.download_real(&all))
}

fn other_way() -> Error {
    ranks::apart(" in the matrices of a block")
}

/// The bytes of numbers.
fn raw<T: Element>(numbers: &mut [T]) -> &mut [u8] {
    match T::dense(numbers) {
        DenseMut::Real(numbers) => bytemuck::cast_slice_mut(numbers),
        DenseMut::Complex(numbers) => bytemuck::cast_slice_mut(numbers),
    }
}

/// A matrix as bytes, column by column.
pub(super) fn to_bytes<T: Element>(m: MatRef<'_, T>) -> Box<[u8]> {
    let mut numbers: Vec<T> = Vec::with_capacity(m.nrows() * m.ncols());
    append(&mut numbers, m);
    (&*raw(&mut numbers)).into()
}

/// The matrix of such bytes.
fn of_bytes<T: Element>(bytes: &[u8], (rows, columns): (usize, usize)) -> Result<Mat<T>> {
    let mut numbers = vec![T::default(); rows * columns];
    let place = raw(&mut numbers);
    if place.len() != bytes.len() {
        return Err(other_way());
    }
    place.copy_from_slice(bytes);
    Ok(MatRef::from_column_major_slice(&numbers, rows, columns).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_come_back_from_bytes() {
        let m = Mat::from_fn(3, 2, |i, j| C64::new(i as f64, -0.5 * j as f64));
        assert_eq!(of_bytes::<C64>(&to_bytes(m.as_ref()), (3, 2)).unwrap(), m);
        let empty = Mat::<f64>::zeros(0, 4);
        assert_eq!(of_bytes::<f64>(&to_bytes(empty.as_ref()), (0, 4)).unwrap(), empty);
        assert!(of_bytes::<f64>(&to_bytes(m.as_ref()), (3, 2)).is_err(), "twice as many numbers");
    }
}
