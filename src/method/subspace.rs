//! A growing orthonormal basis V with its images W = H V, in blocks on the device, and the small projected matrix
//! V^H W on the host: what Davidson's and Lanczos' methods share.

use faer::{Mat, Par};

use crate::backend::{BlockVector, Device, RitzCorrection, Update};
use crate::error::{Error, Result};
use crate::method::olsen::{KnownDiagonal, OlsenPair};
use crate::number::{C64, Matrix, Series, hermitian};
use crate::operator::{Operator, not_finite};

/// Columns from which on products with a block fill registers: narrower blocks are joined.
const WIDE: usize = 32;

/// Rows of projected matrices that one thread diagonalises in less time than it takes to wake others.
const ALONE: usize = 64;

/// Share of a vector's square that is left beyond the basis from which on one pass suffices.
const ENOUGH: f64 = 0.1;
/// Passes after which a vector that each of them takes most of is nothing but rounding.
const MOST_PASSES: usize = 4;

/// The basis. Columns are ordered as the blocks were added. Blocks of one column each are processed together, in few
/// passes over memory, as sweeps of DMRG need it.
pub(super) struct SearchSubspace {
    h: Operator,
    basis: Vec<BlockVector>,
    images: Vec<BlockVector>,
    /// V^H H V, row-major, `dim * dim`.
    projected: Vec<C64>,
    dim: usize,
    /// Vectors that the basis stays orthogonal to.
    avoid: Vec<BlockVector>,
    /// Products with single vectors so far.
    pub products: usize,
}

impl SearchSubspace {
    /// An empty basis that will grow by blocks of `width` columns at most.
    pub fn new(h: &Operator, avoid: Option<BlockVector>, width: usize) -> Result<Self> {
        let avoid = match avoid {
            Some(avoid) if width == 1 => single_columns(h.device(), &avoid)?,
            avoid => avoid.into_iter().collect(),
        };
        let (basis, images, projected) = (Vec::new(), Vec::new(), Vec::new());
        Ok(SearchSubspace { h: h.clone(), basis, images, projected, dim: 0, avoid, products: 0 })
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many columns it stays orthogonal to.
    pub fn avoided(&self) -> usize {
        self.avoid.iter().map(BlockVector::columns).sum()
    }

    fn device(&self) -> &Device {
        self.h.device()
    }

    /// Whether all blocks are single columns, so that one pass serves them together.
    pub fn is_single(&self) -> bool {
        self.avoid.iter().chain(&self.basis).all(|v| v.columns() == 1)
    }

    /// `X^H t` for the blocks X, a row for each of their columns.
    fn overlaps(&self, blocks: &[&BlockVector], t: &BlockVector) -> Result<Vec<C64>> {
        if t.columns() == 1 && self.is_single() {
            return self.device().dots_with(blocks, t);
        }
        self.device().gram_each(blocks, t)
    }

    /// `t + X c` for the blocks X and as many rows of coefficients as they have columns.
    fn add(&self, blocks: &[&BlockVector], c: &[C64], t: &mut BlockVector) -> Result<()> {
        if t.columns() == 1 && self.is_single() {
            return self.device().mix(blocks, c, 1.0, t);
        }
        let mut rest = c;
        for v in blocks {
            let (now, later) = rest.split_at(v.columns() * t.columns());
            self.device().combine(v, now, 1.0, t)?;
            rest = later;
        }
        Ok(())
    }

    /// Makes `t` orthogonal to the basis (twice, so that rounding does not creep in) and orthonormal in itself, and
    /// adds the remaining directions to the basis. Returns how many there are.
    pub fn extend(&mut self, t: BlockVector) -> Result<usize> {
        match self.orthonormal(t)? {
            Some(t) => self.push(t),
            None => Ok(0),
        }
    }

    /// Adds orthonormal columns that are orthogonal to the basis.
    fn push(&mut self, t: BlockVector) -> Result<usize> {
        let image = self.h.apply(&t)?;
        self.products += t.columns();
        let added = t.columns();
        self.basis.push(t);
        self.images.push(image);
        let (old, new) = (self.dim, self.dim + added);
        let mut projected = vec![C64::default(); new * new];
        for i in 0..old {
            projected[i * new..i * new + old].copy_from_slice(&self.projected[i * old..(i + 1) * old]);
        }
        let known: Vec<&BlockVector> = self.basis.iter().collect();
        let overlaps = self.overlaps(&known, &self.images[self.images.len() - 1])?;
        if overlaps.iter().any(|z| !z.is_finite()) {
            return Err(not_finite());
        }
        for i in 0..new {
            for j in 0..added {
                let z = overlaps[i * added + j];
                projected[i * new + old + j] = z;
                if i < old {
                    projected[(old + j) * new + i] = z.conj();
                }
            }
        }
        (self.projected, self.dim) = (projected, new);
        self.join_narrow()?;
        Ok(added)
    }

    /// The correction of a pair by the diagonal of the operator, with its products with this basis; nothing where no
    /// pass over the basis makes all of them.
    pub fn correction(
        &self,
        (value, s): (f64, &[C64]),
        diagonal: &KnownDiagonal,
        shift: f64,
    ) -> Result<Option<OlsenPair>> {
        let [first, ..] = &self.basis[..] else { return Ok(None) };
        if !self.avoid.is_empty() || !self.is_single() || !RitzCorrection::is_served(first, self.dim) {
            return Ok(None);
        }
        let (basis, images): (Vec<_>, Vec<_>) = (self.basis.iter().collect(), self.images.iter().collect());
        let coefficients = self.coefficients(s, &[0]);
        let (entries, floor) = (&diagonal.entries, diagonal.floor());
        let (basis, images, coefficients) = (&basis[..], &images[..], &coefficients[..]);
        let of = RitzCorrection { basis, images, diagonal: entries, coefficients, value, shift, floor };
        OlsenPair::new(&self.h, of).map(Some)
    }

    /// Adds what such a correction has beyond the basis; returns how many directions that is. `kept`: the coefficients
    /// and columns of a restart since the correction was made.
    pub fn extend_by(&mut self, pair: OlsenPair, kept: Option<(&[C64], &[usize])>) -> Result<usize> {
        let OlsenPair { mut kr, kx, b, mut overlaps, square, size, .. } = pair;
        if let Some((s, columns)) = kept {
            let n = overlaps.len();
            let turned = |&j: &usize| (0..n).map(|i| s[i * n + j].conj() * overlaps[i]).sum();
            overlaps = columns.iter().map(turned).collect();
        }
        let left = square - overlaps.iter().map(C64::norm_sqr).sum::<f64>();
        let factor = inverse_norm(left.max(0.0))?;
        if left <= ENOUGH * size.max(square) || factor == 0.0 {
            self.device().mix(&[&kx], &[b], 1.0, &mut kr)?;
            return self.extend(kr);
        }
        let list: Vec<&BlockVector> = self.basis.iter().chain([&kx]).collect();
        let back: Vec<C64> = overlaps.iter().map(|z| -z * factor).chain([b * factor]).collect();
        self.device().mix(&list, &back, factor, &mut kr)?;
        self.push(kr)
    }

    /// Joins narrow blocks, but for the last one, whose image a Krylov space grows by.
    fn join_narrow(&mut self) -> Result<()> {
        let end = self.basis.len() - 1;
        let narrow = self.basis[..end].iter().rev().take_while(|v| v.columns() < WIDE).count();
        let range = end - narrow..end;
        let columns: usize = self.basis[range.clone()].iter().map(BlockVector::columns).sum();
        if narrow < 2 || columns < WIDE || self.is_single() {
            return Ok(());
        }
        let device = self.h.device().clone();
        for blocks in [&mut self.basis, &mut self.images] {
            let joined = device.side_by_side(&blocks[range.clone()].iter().collect::<Vec<_>>())?;
            blocks.splice(range.clone(), [joined]);
        }
        Ok(())
    }

    fn orthonormal(&self, mut t: BlockVector) -> Result<Option<BlockVector>> {
        if t.columns() == 1 && self.is_single() {
            return self.orthonormal_column(t);
        }
        let device = self.device();
        let against: Vec<&BlockVector> = self.avoid.iter().chain(&self.basis).collect();
        let floor = t.dtype().tolerance(1e-20);
        for _ in 0..2 {
            // Columns of very different size would lose the small ones to rounding.
            normalise(device, &mut t)?;
            if !against.is_empty() {
                let back: Vec<C64> = self.overlaps(&against, &t)?.iter().map(|z| -z).collect();
                self.add(&against, &back, &mut t)?;
            }
            match orthonormal_columns(device, &t, floor, 1e-14)? {
                Some(next) => t = next,
                None => return Ok(None),
            }
        }
        Ok(Some(t))
    }

    /// The same for a single column, in two passes over the basis: its norm comes with the overlaps, and the sum that
    /// takes these away scales it to what is left by Pythagoras' theorem.
    fn orthonormal_column(&self, mut t: BlockVector) -> Result<Option<BlockVector>> {
        let device = self.device();
        let against: Vec<&BlockVector> = self.avoid.iter().chain(&self.basis).collect();
        let floor = t.dtype().tolerance(1e-20);
        for pass in 0..MOST_PASSES {
            let with_itself: Vec<&BlockVector> = against.iter().copied().chain([&t]).collect();
            let mut overlaps = device.dots_with(&with_itself, &t)?;
            // After a pass, the square of what it left of a vector of norm one.
            let square = overlaps.pop().map_or(0.0, |z| z.re);
            let norm = inverse_norm(square)?;
            if norm == 0.0 || (pass > 0 && square <= floor) {
                return Ok(None);
            }
            let left = 1.0 - overlaps.iter().map(|z| z.norm_sqr()).sum::<f64>() * norm * norm;
            // Another pass is needed only where this one removes much of the vector (Kahan and Parlett): what is left
            // has the errors of what was there.
            let enough = left > ENOUGH;
            let factor = if enough { norm * inverse_norm(left)? } else { norm };
            let back: Vec<C64> = overlaps.iter().map(|z| -z * factor).collect();
            device.mix(&against, &back, factor, &mut t)?;
            if enough {
                return Ok(Some(t));
            }
        }
        Ok(None)
    }

    /// The image of the block that was added last: what a Krylov space grows by.
    ///
    /// # Errors
    /// An empty basis.
    pub fn last_image(&self) -> Result<BlockVector> {
        self.images.last().cloned().ok_or_else(|| Error::internal("a basis without vectors"))
    }

    /// What the image of the last block has beyond the basis, orthonormal: all residuals of a Krylov space lie in it,
    /// so that it goes on after a restart. Nothing where the space is invariant.
    ///
    /// # Errors
    /// An empty basis.
    pub fn remainder(&self) -> Result<Option<BlockVector>> {
        self.orthonormal(self.last_image()?)
    }

    /// Ritz values, ascending, and the coefficients of the Ritz vectors in the basis: row-major, a column each.
    pub fn ritz(&self) -> Result<(Vec<f64>, Vec<C64>)> {
        hermitian_eigen(self.dim, &self.projected, self.h.dtype().is_complex())
    }

    /// The given columns of coefficients, row-major.
    fn coefficients(&self, s: &[C64], columns: &[usize]) -> Vec<C64> {
        (0..self.dim).flat_map(|i| columns.iter().map(move |&j| s[i * self.dim + j])).collect()
    }

    /// `V s` or `W s` for the given columns of coefficients, as a list where the basis is one.
    fn shrunk(&self, blocks: &[BlockVector], s: &[C64], columns: &[usize]) -> Result<Vec<BlockVector>> {
        if !self.is_single() {
            return Ok(vec![self.mix(blocks, s, columns)?]);
        }
        let (device, first) = (self.device(), &blocks[0]);
        let mut out = (0..columns.len())
            .map(|_| device.room(first.dtype(), first.rows(), 1))
            .collect::<Result<Vec<_>>>()?;
        let all: Vec<&BlockVector> = blocks.iter().collect();
        device.mix_each(&all, &self.coefficients(s, columns), &mut out)?;
        Ok(out)
    }

    /// `V s` or `W s` for the given columns of coefficients.
    fn mix(&self, blocks: &[BlockVector], s: &[C64], columns: &[usize]) -> Result<BlockVector> {
        let (device, first) = (self.device(), &blocks[0]);
        if columns.len() == 1 && self.is_single() {
            let mut out = device.room(first.dtype(), first.rows(), 1)?;
            device.mix(&blocks.iter().collect::<Vec<_>>(), &self.coefficients(s, columns), 0.0, &mut out)?;
            return Ok(out);
        }
        let mut out = device.zeros(first.dtype(), first.rows(), columns.len())?;
        self.add(&blocks.iter().collect::<Vec<_>>(), &self.coefficients(s, columns), &mut out)?;
        Ok(out)
    }

    /// Ritz vectors for the given columns of coefficients.
    pub fn vectors(&self, s: &[C64], columns: &[usize]) -> Result<BlockVector> {
        self.mix(&self.basis, s, columns)
    }

    /// Residuals `H x - theta x` and the Ritz vectors `x` themselves.
    pub fn residuals(
        &self,
        s: &[C64],
        columns: &[usize],
        theta: &[f64],
    ) -> Result<(BlockVector, BlockVector)> {
        let x = self.mix(&self.basis, s, columns)?;
        let minus: Vec<C64> = columns.iter().map(|&j| C64::new(-theta[j], 0.0)).collect();
        let mut r = if columns.len() == 1 && self.is_single() {
            let with_x: Vec<&BlockVector> = self.images.iter().chain([&x]).collect();
            let c: Vec<C64> = self.coefficients(s, columns).into_iter().chain(minus).collect();
            let mut r = self.device().room(x.dtype(), x.rows(), 1)?;
            self.device().mix(&with_x, &c, 0.0, &mut r)?;
            r
        } else {
            let mut r = self.mix(&self.images, s, columns)?;
            self.device().axpby(&minus, &x, &[C64::ONE], &mut r)?;
            r
        };
        // Components along the avoided vectors are not part of the problem.
        if !self.avoid.is_empty() {
            let avoid: Vec<&BlockVector> = self.avoid.iter().collect();
            let back: Vec<C64> = self.overlaps(&avoid, &r)?.iter().map(|z| -z).collect();
            self.add(&avoid, &back, &mut r)?;
        }
        Ok((r, x))
    }

    /// Shrinks the basis to the Ritz vectors of the given columns, without new products (a thick restart).
    pub fn restart(&mut self, s: &[C64], columns: &[usize], theta: &[f64]) -> Result<()> {
        let (basis, images) = (self.shrunk(&self.basis, s, columns)?, self.shrunk(&self.images, s, columns)?);
        let n = columns.len();
        self.projected = vec![C64::default(); n * n];
        for (i, &j) in columns.iter().enumerate() {
            self.projected[i * n + i] = C64::new(theta[j], 0.0);
        }
        (self.basis, self.images, self.dim) = (basis, images, n);
        Ok(())
    }
}

fn single_columns(device: &Device, v: &BlockVector) -> Result<Vec<BlockVector>> {
    if v.columns() == 1 {
        return Ok(vec![v.clone()]);
    }
    (0..v.columns()).map(|c| device.columns(v, c..c + 1)).collect()
}

/// One over the norm of a vector by its square; zero for a vector that vanishes.
///
/// # Errors
/// A square that is not finite.
fn inverse_norm(square: f64) -> Result<f64> {
    if !square.is_finite() {
        return Err(Error::numeric("the vectors of a basis are not finite")
            .hint("look for NaN or infinite entries of the operator and of starting vectors"));
    }
    Ok(if square > 1e-300 { 1.0 / square.sqrt() } else { 0.0 })
}

/// Columns of norm one; those that vanish stay zero.
fn normalise(device: &Device, t: &mut BlockVector) -> Result<()> {
    let inverse = device
        .dots(t, t)?
        .iter()
        .map(|z| Ok(C64::new(inverse_norm(z.re)?, 0.0)))
        .collect::<Result<Vec<_>>>()?;
    if let [one] = inverse[..] {
        return device.mix(&[], &[], one.re, t);
    }
    let copy = t.clone();
    device.axpby(&inverse, &copy, &[C64::default()], t)
}

/// Canonical orthonormalisation by the Gram matrix, without directions whose eigenvalue is below `floor` or below
/// `share` of the largest; None if no direction is left. Applied twice, it gives columns that are orthonormal to
/// rounding.
pub(crate) fn orthonormal_columns(
    device: &Device,
    t: &BlockVector,
    floor: f64,
    share: f64,
) -> Result<Option<BlockVector>> {
    let n = t.columns();
    let gram = device.gram(t, t)?;
    let (values, vectors) = hermitian_eigen(n, &gram, t.dtype().is_complex())?;
    let largest = values.last().copied().unwrap_or(0.0);
    let kept: Vec<usize> = (0..n).filter(|&j| values[j] > floor.max(share * largest)).collect();
    if kept.is_empty() {
        return Ok(None);
    }
    let mut rotation = Vec::with_capacity(n * kept.len());
    for i in 0..n {
        rotation.extend(kept.iter().map(|&j| vectors[i * n + j] / values[j].sqrt()));
    }
    let mut next = device.zeros(t.dtype(), t.rows(), kept.len())?;
    device.combine(t, &rotation, 0.0, &mut next)?;
    Ok(Some(next))
}

/// Orthonormal columns of the same span.
///
/// # Errors
/// When the columns vanish.
pub(crate) fn orthonormal(device: &Device, x: &BlockVector) -> Result<BlockVector> {
    let mut x = x.clone();
    let floor = x.dtype().tolerance(1e-18) * x.columns() as f64;
    for _ in 0..2 {
        normalise(device, &mut x)?;
        x = orthonormal_columns(device, &x, floor, 0.0)?
            .ok_or_else(|| Error::numeric("the vectors of a subspace vanish"))?;
    }
    Ok(x)
}

/// A Hermitian operator diagonalised within a space (Rayleigh, Ritz).
pub(crate) struct Diagonalised {
    /// The values theta_k, ascending.
    pub values: Vec<f64>,
    /// Their orthonormal vectors x_k, a column each, which span the space.
    pub vectors: BlockVector,
    /// A x_k - theta_k x_k, a column each.
    pub residuals: BlockVector,
    /// The norms of the residuals.
    pub norms: Vec<f64>,
}

/// Diagonalises a Hermitian operator within the space of orthonormal columns. It takes a product with each of them.
///
/// # Errors
/// A product that is not finite.
pub(crate) fn rayleigh_ritz(a: &Operator, space: &BlockVector) -> Result<Diagonalised> {
    let (device, n) = (a.device(), space.columns());
    let zeros = || device.zeros(space.dtype(), space.rows(), n);
    let mut image = zeros()?;
    a.update(Update::PRODUCT, space, &mut image, None)?;
    let projected = device.gram(space, &image)?;
    if projected.iter().any(|z| !z.is_finite()) {
        return Err(not_finite());
    }
    let (values, rotation) = hermitian_eigen(n, &projected, a.dtype().is_complex())?;
    let (mut x, mut r) = (zeros()?, zeros()?);
    device.combine(space, &rotation, 0.0, &mut x)?;
    device.combine(&image, &rotation, 0.0, &mut r)?;
    let minus: Vec<C64> = values.iter().map(|v| C64::new(-v, 0.0)).collect();
    device.axpby(&minus, &x, &[C64::ONE], &mut r)?;
    let norms = device.norms(&r)?;
    Ok(Diagonalised { values, vectors: x, residuals: r, norms })
}

/// Eigenvalues, ascending, and eigenvectors, row-major with a column each, of a small Hermitian matrix.
pub(crate) fn hermitian_eigen(n: usize, data: &[C64], complex: bool) -> Result<(Vec<f64>, Vec<C64>)> {
    if n == 1 {
        return Ok((vec![data[0].re], vec![C64::ONE]));
    }
    let mean = |i: usize, j: usize| (data[i * n + j] + data[j * n + i].conj()) * 0.5;
    if !complex && n <= ALONE && data.iter().all(|z| z.is_finite()) {
        let a = Mat::from_fn(n, n, |i, j| mean(i, j).re);
        if let Some((values, vectors)) = hermitian::eigh(a.as_ref(), Par::Seq) {
            let all = (0..n * n).map(|k| C64::new(vectors[(k / n, k % n)], 0.0));
            return Ok((values, all.collect()));
        }
    }
    let entries: Vec<C64> = (0..n * n).map(|k| mean(k / n, k % n)).collect();
    let series =
        if complex { Series::Complex(entries) } else { Series::Real(entries.iter().map(|z| z.re).collect()) };
    let (values, vectors) = Matrix::new(n, n, series)?.eigh()?;
    Ok((values.as_real("eigenvalues")?.to_vec(), vectors.data().to_complex()))
}
