//! Davidson's method for one eigenpair: the same steps as for several, on single columns, where few passes over memory
//! count. Sweeps of DMRG live here.

use crate::backend::{BlockVector, Device, Update};
use crate::error::{Error, Result};
use crate::method::Eigen;
use crate::number::{C64, Matrix, Series};
use crate::operator::Operator;
use crate::task::Task;

const ONE: C64 = C64::new(1.0, 0.0);

/// What the search is given.
pub(super) struct Search<'a> {
    pub h: &'a Operator,
    /// The diagonal of H, if it is known.
    pub diagonal: Option<BlockVector>,
    pub tolerance: f64,
    pub max_basis: usize,
    pub max_iterations: usize,
    /// Orthonormal columns to stay orthogonal to.
    pub avoid: Vec<BlockVector>,
    /// Directions that are free.
    pub free: usize,
}

/// A basis of single columns, its images, and the projected matrix.
struct Space {
    basis: Vec<BlockVector>,
    images: Vec<BlockVector>,
    projected: Vec<Vec<C64>>,
}

fn norm(device: &Device, v: &BlockVector) -> Result<f64> {
    Ok(device.dots_with(&[v], v)?[0].re.max(0.0).sqrt())
}

/// Makes `t` orthogonal to the lists and of norm one; false where nothing is left of it.
fn orthonormal(device: &Device, against: &[&BlockVector], t: &mut BlockVector) -> Result<bool> {
    let mut before = norm(device, t)?;
    if !before.is_finite() {
        return Err(Error::numeric("the operator gives numbers that are not finite")
            .hint("look for NaN or infinite entries"));
    }
    let whole = before;
    // What is lost to rounding is taken out again: twice is enough (Kahan and Parlett).
    for _ in 0..3 {
        if !(before > 1e-300) {
            return Ok(false);
        }
        if against.is_empty() {
            break;
        }
        let overlaps: Vec<C64> = device.dots_with(against, t)?.iter().map(|z| -z).collect();
        device.mix(against, &overlaps, 1.0, t)?;
        let after = norm(device, t)?;
        if after <= 1e-13 * whole {
            return Ok(false);
        }
        let kept = after > 0.5 * before;
        before = after;
        if kept {
            break;
        }
    }
    device.mix(&[], &[], 1.0 / before, t)?;
    Ok(true)
}

impl Space {
    /// Ritz values, ascending, and the coefficients of each.
    fn ritz(&self, real: bool) -> Result<(Vec<f64>, Vec<Vec<C64>>)> {
        let n = self.basis.len();
        if n == 1 {
            return Ok((vec![self.projected[0][0].re], vec![vec![ONE]]));
        }
        let flat = (0..n).flat_map(|i| {
            (0..n).map(move |j| if i >= j { self.projected[i][j] } else { self.projected[j][i].conj() })
        });
        let data =
            if real { Series::Real(flat.map(|z| z.re).collect()) } else { Series::Complex(flat.collect()) };
        let (values, vectors) = Matrix::new(n, n, data)?.eigh()?;
        let flat = vectors.data().to_complex();
        let column = |j: usize| (0..n).map(|i| flat[i * n + j]).collect();
        Ok((values.as_real("Ritz values")?.to_vec(), (0..n).map(column).collect()))
    }

    fn push(&mut self, h: &Operator, v: BlockVector) -> Result<()> {
        let device = h.device();
        let mut image = device.zeros(v.dtype(), v.rows(), 1)?;
        h.update(Update::PRODUCT, &v, &mut image, None)?;
        self.basis.push(v);
        self.images.push(image);
        let last = &self.images[self.images.len() - 1];
        let known: Vec<&BlockVector> = self.basis.iter().collect();
        // Row k holds <v_k|H v_j> for j up to k.
        let row = device.dots_with(&known, last)?.iter().map(|z| z.conj()).collect::<Vec<_>>();
        if row.iter().any(|z| !z.re.is_finite() || !z.im.is_finite()) {
            return Err(Error::numeric("the operator gives numbers that are not finite")
                .hint("look for NaN or infinite entries"));
        }
        self.projected.push(row);
        Ok(())
    }

    fn sum(&self, device: &Device, of: &[BlockVector], s: &[C64]) -> Result<BlockVector> {
        let mut x = device.zeros(of[0].dtype(), of[0].rows(), 1)?;
        device.mix(&of.iter().collect::<Vec<_>>(), s, 0.0, &mut x)?;
        Ok(x)
    }
}

impl Search<'_> {
    /// The lowest eigenpair from a starting vector, with `random` directions where the search runs out of its own.
    pub fn run(
        self,
        start: BlockVector,
        mut random: impl FnMut() -> Result<BlockVector>,
        task: &Task,
    ) -> Result<Eigen> {
        let (h, device) = (self.h, self.h.device().clone());
        let real = !h.dtype().is_complex();
        let avoid: Vec<&BlockVector> = self.avoid.iter().collect();
        let mut v = start;
        while !orthonormal(&device, &avoid, &mut v)? {
            v = random()?;
        }
        let mut space = Space { basis: Vec::new(), images: Vec::new(), projected: Vec::new() };
        space.push(h, v)?;
        let progress = task.start("davidson", self.max_iterations);
        let (mut iterations, mut products) = (0, 1);
        loop {
            let (values, coefficients) = space.ritz(real)?;
            let (theta, s) = (values[0], &coefficients[0]);
            let x = space.sum(&device, &space.basis, s)?;
            let mut r = space.sum(&device, &space.images, s)?;
            device.mix(&[&x], &[C64::new(-theta, 0.0)], 1.0, &mut r)?;
            let residual = norm(&device, &r)?;
            let exhausted = space.basis.len() >= self.free;
            let converged = residual <= self.tolerance || exhausted;
            if converged || iterations >= self.max_iterations {
                return Ok(Eigen {
                    values: vec![theta],
                    vectors: x,
                    residuals: vec![residual],
                    iterations,
                    products,
                    converged,
                });
            }
            progress.advance_with(iterations, &format!("residual {residual:.1e}"))?;
            iterations += 1;
            let mut t = match &self.diagonal {
                Some(d) => super::davidson::olsen(h, d, &[theta], &r, &x)?,
                None => r,
            };
            if space.basis.len() >= self.max_basis {
                // A thick restart: the lowest Ritz vectors stay, without new products.
                let keep = (self.max_basis / 3).clamp(1, self.max_basis.saturating_sub(1).max(1));
                let mut next = Space { basis: Vec::new(), images: Vec::new(), projected: Vec::new() };
                for (k, s) in coefficients[..keep].iter().enumerate() {
                    next.basis.push(space.sum(&device, &space.basis, s)?);
                    next.images.push(space.sum(&device, &space.images, s)?);
                    let mut row = vec![C64::default(); k + 1];
                    row[k] = C64::new(values[k], 0.0);
                    next.projected.push(row);
                }
                space = next;
            }
            loop {
                let against: Vec<&BlockVector> = avoid.iter().copied().chain(&space.basis).collect();
                if orthonormal(&device, &against, &mut t)? {
                    break;
                }
                t = random()?;
            }
            space.push(h, t)?;
            products += 1;
        }
    }
}
