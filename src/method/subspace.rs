//! A growing orthonormal basis V with its images W = H V, in blocks on the device, and the small projected matrix
//! V^H W on the host: what Davidson's and Lanczos' methods share.

use crate::backend::{BlockVector, Device, Update};
use crate::error::Result;
use crate::number::{C64, Matrix, Series};
use crate::operator::Operator;

const ONE: C64 = C64::new(1.0, 0.0);

/// The basis. Columns are ordered as the blocks were added.
pub(super) struct Subspace {
    h: Operator,
    basis: Vec<BlockVector>,
    images: Vec<BlockVector>,
    /// V^H H V, row-major, `dim * dim`.
    projected: Vec<C64>,
    dim: usize,
    /// Vectors that the basis stays orthogonal to.
    avoid: Option<BlockVector>,
    /// Products with single vectors so far.
    pub products: usize,
}

impl Subspace {
    pub fn new(h: &Operator, avoid: Option<BlockVector>) -> Self {
        let (basis, images, projected) = (Vec::new(), Vec::new(), Vec::new());
        Subspace { h: h.clone(), basis, images, projected, dim: 0, avoid, products: 0 }
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    fn device(&self) -> &Device {
        self.h.device()
    }

    /// Makes `t` orthogonal to the basis (twice, so that rounding does not creep in) and orthonormal in itself, adds
    /// what is left of it to the basis and returns how many directions that was.
    pub fn extend(&mut self, t: BlockVector) -> Result<usize> {
        let Some(t) = self.orthonormal(t)? else { return Ok(0) };
        let device = self.device().clone();
        let mut image = device.zeros(t.dtype(), t.rows(), t.columns())?;
        self.h.update(Update::PRODUCT, &t, &mut image, None)?;
        self.products += t.columns();
        let added = t.columns();
        self.basis.push(t);
        self.images.push(image);
        let (old, new) = (self.dim, self.dim + added);
        let mut projected = vec![C64::default(); new * new];
        for i in 0..old {
            projected[i * new..i * new + old].copy_from_slice(&self.projected[i * old..(i + 1) * old]);
        }
        let mut first = 0;
        let last = &self.images[self.images.len() - 1];
        for v in &self.basis {
            let g = device.gram(v, last)?;
            for i in 0..v.columns() {
                for j in 0..added {
                    let z = g[i * added + j];
                    projected[(first + i) * new + old + j] = z;
                    if first + i < old {
                        projected[(old + j) * new + first + i] = z.conj();
                    }
                }
            }
            first += v.columns();
        }
        (self.projected, self.dim) = (projected, new);
        Ok(added)
    }

    fn orthonormal(&self, mut t: BlockVector) -> Result<Option<BlockVector>> {
        let device = self.device();
        for _ in 0..2 {
            // Columns of very different size would lose the small ones to rounding.
            let norms: Vec<f64> = device.dots(&t, &t)?.iter().map(|z| z.re.max(0.0).sqrt()).collect();
            let inverse: Vec<C64> =
                norms.iter().map(|&n| C64::new(if n > 1e-300 { 1.0 / n } else { 0.0 }, 0.0)).collect();
            let copy = t.clone();
            device.axpby(&inverse, &copy, &[C64::default()], &mut t)?;
            for v in self.avoid.iter().chain(&self.basis) {
                let overlap: Vec<C64> = device.gram(v, &t)?.iter().map(|z| -z).collect();
                device.combine(v, &overlap, 1.0, &mut t)?;
            }
            // Symmetric orthonormalisation within the block, dropping directions that the others already span.
            let n = t.columns();
            let gram = device.gram(&t, &t)?;
            let (values, vectors) = Matrix::new(n, n, Series::Complex(gram))?.eigh()?;
            let values = values.as_real("eigenvalues")?.to_vec();
            let largest = values.last().copied().unwrap_or(0.0);
            let floor: f64 = if t.dtype().is_single() { 1e-8 } else { 1e-20 };
            let kept: Vec<usize> = (0..n).filter(|&j| values[j] > floor.max(1e-14 * largest)).collect();
            if kept.is_empty() {
                return Ok(None);
            }
            let mut rotation = Vec::with_capacity(n * kept.len());
            for i in 0..n {
                for &j in &kept {
                    rotation.push(vectors.at(i as i64, j as i64)?.to_c64() / values[j].sqrt());
                }
            }
            let mut next = device.zeros(t.dtype(), t.rows(), kept.len())?;
            device.combine(&t, &rotation, 0.0, &mut next)?;
            t = next;
        }
        Ok(Some(t))
    }

    /// Ritz values, ascending, and the coefficients of the Ritz vectors in the basis, one column each.
    pub fn ritz(&self) -> Result<(Vec<f64>, Matrix)> {
        let mut hermitian = self.projected.clone();
        for i in 0..self.dim {
            for j in 0..i {
                let mean = (self.projected[i * self.dim + j] + self.projected[j * self.dim + i].conj()) * 0.5;
                hermitian[i * self.dim + j] = mean;
                hermitian[j * self.dim + i] = mean.conj();
            }
            hermitian[i * self.dim + i].im = 0.0;
        }
        let real = !self.h.dtype().is_complex();
        let data = if real {
            Series::Real(hermitian.iter().map(|z| z.re).collect())
        } else {
            Series::Complex(hermitian)
        };
        let (values, vectors) = Matrix::new(self.dim, self.dim, data)?.eigh()?;
        Ok((values.as_real("Ritz values")?.to_vec(), vectors))
    }

    /// `V s` or `W s` for the given columns of coefficients.
    fn mix(&self, blocks: &[BlockVector], s: &Matrix, columns: &[usize]) -> Result<BlockVector> {
        let first = &blocks[0];
        let mut out = self.device().zeros(first.dtype(), first.rows(), columns.len())?;
        let mut row = 0;
        for v in blocks {
            let mut c = Vec::with_capacity(v.columns() * columns.len());
            for i in 0..v.columns() {
                for &j in columns {
                    c.push(s.at((row + i) as i64, j as i64)?.to_c64());
                }
            }
            self.device().combine(v, &c, 1.0, &mut out)?;
            row += v.columns();
        }
        Ok(out)
    }

    /// Ritz vectors for the given columns of coefficients.
    pub fn vectors(&self, s: &Matrix, columns: &[usize]) -> Result<BlockVector> {
        self.mix(&self.basis, s, columns)
    }

    /// Residuals `H x - theta x` and the Ritz vectors `x` themselves.
    pub fn residuals(
        &self,
        s: &Matrix,
        columns: &[usize],
        theta: &[f64],
    ) -> Result<(BlockVector, BlockVector)> {
        let x = self.mix(&self.basis, s, columns)?;
        let mut r = self.mix(&self.images, s, columns)?;
        let minus: Vec<C64> = columns.iter().map(|&j| C64::new(-theta[j], 0.0)).collect();
        self.device().axpby(&minus, &x, &[ONE], &mut r)?;
        Ok((r, x))
    }

    /// Shrinks the basis to the Ritz vectors of the given columns, without new products (a thick restart).
    pub fn restart(&mut self, s: &Matrix, columns: &[usize], theta: &[f64]) -> Result<()> {
        let x = self.mix(&self.basis, s, columns)?;
        let y = self.mix(&self.images, s, columns)?;
        let n = columns.len();
        self.projected = vec![C64::default(); n * n];
        for (i, &j) in columns.iter().enumerate() {
            self.projected[i * n + i] = C64::new(theta[j], 0.0);
        }
        (self.basis, self.images, self.dim) = (vec![x], vec![y], n);
        Ok(())
    }
}
