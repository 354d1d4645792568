//! Truncated bases of blocks, and operators in them.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};

use super::dense::applied;
use super::space::{ChainSide, Space};
use super::spread::{SpreadMatrices, WholeMatrices};
use crate::backend::Device;
use crate::backend::matrix::held::{DeviceNumbers, HeldMatrix};
use crate::backend::matrix::records::{BasisChange, Element, OperatorPiece};
use crate::error::{Error, ErrorKind, Result};
use crate::ranks::{self, AlikeRanks};
use crate::task::parallel;

/// Multiplications from which on operators and vectors of the host are worth a way to a device.
const LARGE: u64 = 1 << 24;

pub struct TruncatedBasis<T> {
    /// The half of a superblock that it was made for; none if it suits either.
    pub(super) side: Option<ChainSide>,
    pub(super) old: Space,
    pub(super) new: Space,
    /// The new basis vectors, a column each, for each new sector.
    pub(super) vectors: SpreadMatrices<T>,
    /// What may turn operators into it.
    pub(super) device: Option<Device>,
    /// Ranks that may compute with it for one another.
    pub(super) alike: Option<AlikeRanks>,
    /// The old sector of each new one, and the new sector of each old one.
    pub(super) old_sector: Vec<usize>,
    pub(super) new_sector: Vec<Option<usize>>,
    pub discarded: f64,
    /// The entropy `- sum w ln w` of all weights.
    pub entropy: f64,
    /// The weights that were kept, descending.
    pub weights: Vec<f64>,
}

fn fewer() -> Error {
    Error::internal("fewer numbers than those of the operators")
}

impl<T: Element> TruncatedBasis<T> {
    /// From the vectors of each old sector that is kept.
    pub(super) fn from_vectors(
        old: &Space,
        mut vectors: impl FnMut(usize) -> Option<Mat<T>>,
    ) -> TruncatedBasis<T> {
        TruncatedBasis::from_held(old, |sector| vectors(sector).map(|m| Arc::new(m.into())))
    }

    /// The same of vectors that may be elsewhere.
    pub(super) fn from_held(
        old: &Space,
        mut vectors: impl FnMut(usize) -> Option<Arc<HeldMatrix<T>>>,
    ) -> TruncatedBasis<T> {
        let mut basis = TruncatedBasis {
            side: None,
            old: old.clone(),
            new: Space::new(Default::default()),
            vectors: SpreadMatrices::Here(Arc::default()),
            device: None,
            alike: None,
            old_sector: Vec::new(),
            new_sector: vec![None; old.sectors()],
            discarded: 0.0,
            entropy: 0.0,
            weights: Vec::new(),
        };
        let mut kept = Vec::new();
        let mut sectors = std::collections::BTreeMap::new();
        for sector in 0..old.sectors() {
            if let Some(v) = vectors(sector).filter(|v| v.ncols() > 0) {
                basis.new_sector[sector] = Some(kept.len());
                basis.old_sector.push(sector);
                sectors.insert(old.label(sector).clone(), v.ncols());
                kept.push(v);
            }
        }
        basis.vectors = SpreadMatrices::Here(Arc::new(kept));
        basis.new = Space::new(sectors);
        basis
    }

    /// The whole of a basis, nothing truncated.
    pub fn whole(space: &Space) -> TruncatedBasis<T> {
        TruncatedBasis::from_vectors(space, |s| Some(Mat::identity(space.dim(s), space.dim(s))))
    }

    /// The basis before the truncation.
    pub fn old(&self) -> &Space {
        &self.old
    }

    /// The half of a superblock that it was made for, if it was.
    pub fn side(&self) -> Option<ChainSide> {
        self.side
    }

    /// The basis after the truncation.
    pub fn new_space(&self) -> &Space {
        &self.new
    }

    /// The new sector that an old one becomes, if anything of it is kept.
    pub fn kept(&self, old: usize) -> Option<usize> {
        self.new_sector[old]
    }

    /// The same basis for a block to keep: each rank keeps some of the vectors.
    pub(super) fn kept_among(&self, alike: AlikeRanks) -> Result<TruncatedBasis<T>> {
        Ok(TruncatedBasis {
            side: self.side,
            old: self.old.clone(),
            new: self.new.clone(),
            vectors: SpreadMatrices::among(alike, &*self.vectors.all()?),
            device: self.device.clone(),
            alike: self.alike,
            old_sector: self.old_sector.clone(),
            new_sector: self.new_sector.clone(),
            discarded: self.discarded,
            entropy: self.entropy,
            weights: self.weights.clone(),
        })
    }

    /// `U^H A U` between two new sectors, from the pieces of an operator A between their old ones;
    /// `vectors` are the basis's.
    pub(super) fn rotated(
        &self,
        vectors: &WholeMatrices<T>,
        to: usize,
        from: usize,
        factors: &[OperatorPiece<T>],
        par: Par,
    ) -> Result<Mat<T>> {
        let rows = self.old.dim(self.old_sector[to]);
        let half = applied(factors, rows, vectors[from].here()?, par)?;
        let mut out = Mat::zeros(self.new.dim(to), self.new.dim(from));
        let u = vectors[to].here()?;
        matmul(out.as_mut(), Accum::Replace, u.adjoint(), half.as_ref(), T::one_impl(), par);
        Ok(out)
    }

    /// The same for several, where a device makes them faster than the processor;
    /// `work` is the number of multiplications.
    pub(super) fn turned<'a>(
        &self,
        vectors: &WholeMatrices<T>,
        places: impl Iterator<Item = (usize, usize, &'a [OperatorPiece<T>])>,
        work: u64,
    ) -> Result<Option<WholeMatrices<T>>> {
        let Some(device) = &self.device else { return Ok(None) };
        // Vectors that the device has would have to be copied from there. A full GPU may have sent them home.
        let there = work < LARGE && vectors.iter().any(|m| m.is_there());
        let there = if device.distributed().is_some() { ranks::told(there)? } else { there };
        if work < LARGE && !there {
            return Ok(None);
        }
        let turn = |(to, from, pieces): (usize, usize, &'a [OperatorPiece<T>])| BasisChange {
            rows: &*vectors[to],
            columns: &*vectors[from],
            pieces,
        };
        let turns: Vec<BasisChange<'_, T>> = places.map(turn).collect();
        match self.kept_turned(device, &turns) {
            Err(e) if e.kind() == ErrorKind::Interrupted => Err(e),
            // The processor has other room.
            Err(_) => Ok(None),
            found => found,
        }
    }

    /// Operators that a device has turned: they stay there, where it keeps matrices.
    fn kept_turned(&self, device: &Device, turns: &[BasisChange<'_, T>]) -> Result<Option<WholeMatrices<T>>> {
        let Some(block) = T::turned(&**device, turns)? else { return Ok(None) };
        let mut first = 0;
        let places = turns.iter().map(|turn| {
            let shape = (turn.rows.ncols(), turn.columns.ncols());
            first += shape.0 * shape.1;
            (first - shape.0 * shape.1, shape)
        });
        let places: Vec<(usize, (usize, usize))> = places.collect();
        if let Some(all) = device.all_rows(&block)? {
            let numbers = DeviceNumbers::new(device, all)?;
            let held = |(first, shape)| Arc::new(HeldMatrix::within(&numbers, first, shape, false));
            return Ok(Some(places.into_iter().map(held).collect()));
        }
        let numbers = device.download_real(&block)?.and_then(T::of_reals).ok_or_else(fewer)?;
        let matrix = |(first, (rows, columns)): (usize, (usize, usize))| {
            let own = numbers.get(first..first + rows * columns).ok_or_else(fewer)?;
            Ok(Arc::new(MatRef::from_column_major_slice(own, rows, columns).to_owned().into()))
        };
        parallel::try_map(places.len(), |k| matrix(places[k])).map(Some)
    }

    /// Number of multiplications in [`TruncatedBasis::rotated`].
    pub(super) fn work(&self, to: usize, from: usize, factors: &[OperatorPiece<T>]) -> u64 {
        let (rows, columns) = (self.new.dim(to), self.new.dim(from));
        let inner: usize = factors.iter().filter(|f| f.matrix.is_some()).map(|f| f.rows * f.columns).sum();
        (inner * columns + rows * self.old.dim(self.old_sector[to]) * columns) as u64
    }

    pub fn shared(self) -> Arc<TruncatedBasis<T>> {
        Arc::new(self)
    }
}
