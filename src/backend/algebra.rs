//! Algebra of block vectors and of lists of columns. A backend without its own algebra of lists handles them by blocks
//! of columns, or column by column.

use super::{BlockVector, Vectors};
use crate::error::{Error, Result};
use crate::number::{C64, root};

/// Columns of a list that are put side by side together.
const SIDE_BY_SIDE: usize = 64;

/// Algebra of block vectors: all but products with matrices.
pub trait Algebra: Vectors {
    /// `y = a x + b y`, each factor one number or one a column. With `b = 0`, `y` is not read.
    fn axpby(&self, a: &[C64], x: &BlockVector, b: &[C64], y: &mut BlockVector) -> Result<()>;
    /// The entries whose sum is the scalar product: `y[i, c] = conj(x[i, c]) z[i, c]`.
    fn multiply(&self, x: &BlockVector, z: &BlockVector, y: &mut BlockVector) -> Result<()>;
    /// Column-wise `<x|y>`, conjugating `x`, summed over local rows.
    fn dots(&self, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>>;
    /// The norm |x| of each column; NaN where an entry is.
    fn norms(&self, x: &BlockVector) -> Result<Vec<f64>> {
        Ok(self.dots(x, x)?.iter().map(|z| root(z.re)).collect())
    }
    /// Adds the parts of `Re <x|y>` of single columns to `sums`, one or more of them: rows are dealt out to these in
    /// turn. A backend that sums in its own way adds everything to the first.
    fn lane_dots(&self, x: &BlockVector, y: &BlockVector, sums: &mut [f64]) -> Result<()> {
        let whole: f64 = self.dots(x, y)?.iter().map(|z| z.re).sum();
        sums.iter_mut().take(1).for_each(|sum| *sum += whole);
        Ok(())
    }
    /// The tall-skinny product `X^H Y`, row-major, `x.columns() * y.columns()` entries, over local rows.
    fn gram(&self, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>>;
    /// `Y = X C + b Y` with the small matrix `C` row-major, `x.columns() * y.columns()` entries.
    fn combine(&self, x: &BlockVector, c: &[C64], b: f64, y: &mut BlockVector) -> Result<()>;
    /// `Y = Y - U U^H Y` for orthonormal columns of `U`; with `kept = (d, X)`, `Y = Y + U (diag(d) U^H X - U^H Y)`:
    /// what acts in the span of `U` is replaced by numbers that are known there.
    fn deflate(
        &self,
        u: &BlockVector,
        kept: Option<(&[f64], &BlockVector)>,
        y: &mut BlockVector,
    ) -> Result<()> {
        if self.deflate_there(u, kept, y)? {
            return Ok(());
        }
        let mut c: Vec<C64> = self.gram(u, y)?.iter().map(|z| -z).collect();
        if let Some((d, x)) = kept {
            check_deflation(u, d, x, y)?;
            let wanted = self.gram(u, x)?;
            let columns = y.columns();
            c.iter_mut().zip(wanted).enumerate().for_each(|(at, (c, w))| *c += w * d[at / columns]);
        }
        self.combine(u, &c, 1.0, y)
    }
    /// [`Algebra::deflate`] without the host; false where the backend cannot.
    fn deflate_there(
        &self,
        _u: &BlockVector,
        _kept: Option<(&[f64], &BlockVector)>,
        _y: &mut BlockVector,
    ) -> Result<bool> {
        Ok(false)
    }
    /// [`Algebra::gram`] of several blocks with one, one after the other: what a basis that is kept in blocks asks for.
    fn gram_each(&self, x: &[&BlockVector], y: &BlockVector) -> Result<Vec<C64>> {
        Ok(x.iter().map(|x| self.gram(x, y)).collect::<Result<Vec<_>>>()?.concat())
    }
    /// `y[i, c] = x[i, c] / (shift[c] - d[i])`, denominators pushed away from zero to at least `floor`: the diagonal
    /// preconditioner of Davidson's method. `d` is one real column.
    fn precondition(
        &self,
        d: &BlockVector,
        shift: &[f64],
        floor: f64,
        x: &BlockVector,
        y: &mut BlockVector,
    ) -> Result<()>;
}

/// A pair of Davidson's method and its correction by the diagonal: an orthonormal basis V of single columns with its
/// images W = H V, the coefficients s and the value theta of the pair in it, and what [`Algebra::precondition`] takes.
#[derive(Clone, Copy)]
pub struct RitzCorrection<'a> {
    pub basis: &'a [&'a BlockVector],
    pub images: &'a [&'a BlockVector],
    pub diagonal: &'a BlockVector,
    pub coefficients: &'a [C64],
    pub value: f64,
    pub shift: f64,
    pub floor: f64,
}

/// Columns of the largest basis that [`Lists::correct`] serves, real and complex.
pub const MOST_CORRECTED: (usize, usize) = (24, 12);

impl RitzCorrection<'_> {
    /// Whether [`Lists::correct`] serves a basis of so many columns like this one: the same on all devices, since ranks
    /// of several kinds do it together.
    pub fn is_served(like: &BlockVector, columns: usize) -> bool {
        let most = if like.dtype().is_complex() { MOST_CORRECTED.1 } else { MOST_CORRECTED.0 };
        like.columns() == 1 && !like.dtype().is_single() && like.rows().grid.is_none() && columns <= most
    }

    /// The basis, the images and the diagonal.
    pub(in crate::backend) fn vectors(&self) -> Vec<&BlockVector> {
        self.basis.iter().chain(self.images).copied().chain([self.diagonal]).collect()
    }

    /// The same with the rows of one part, as [`RitzCorrection::vectors`] has them.
    pub(in crate::backend) fn of_part<'a>(&self, part: &'a [&'a BlockVector]) -> Result<RitzCorrection<'a>>
    where
        Self: 'a,
    {
        let n = self.basis.len();
        let [.., diagonal] = part else { return Err(Error::internal("a correction without a diagonal")) };
        Ok(RitzCorrection { basis: &part[..n], images: &part[n..2 * n], diagonal, ..*self })
    }
}

/// Algebra of lists of single columns, which need not be put side by side.
pub trait Lists: Algebra {
    /// `<x_k|y>` of single columns: the tall-skinny product `V^H w` of a basis that is kept as a list.
    fn dots_with(&self, x: &[&BlockVector], y: &BlockVector) -> Result<Vec<C64>> {
        x.iter().map(|x| Ok(self.dots(x, y)?[0])).collect()
    }
    /// [`Lists::dots_with`] of several lists, one after the other: the numbers are waited for once where a backend can.
    fn dots_with_each(&self, lists: &[(&[&BlockVector], &BlockVector)]) -> Result<Vec<C64>> {
        Ok(lists.iter().map(|(x, y)| self.dots_with(x, y)).collect::<Result<Vec<_>>>()?.concat())
    }
    /// `<x_i|y_j>` of single columns, row-major: the product `X^H Y` of lists.
    fn grams(&self, x: &[&BlockVector], y: &[&BlockVector]) -> Result<Vec<C64>> {
        grams_side_by_side(self, x, y)
    }
    /// `y = sum_k c_k x_k + b y` of single columns: the product `V c`. With `b = 0`, `y` is not read.
    fn mix(&self, x: &[&BlockVector], c: &[C64], b: f64, y: &mut BlockVector) -> Result<()> {
        mix_one_by_one(&|a, x, b, y| self.axpby(a, x, b, y), x, c, b, y)
    }
    /// `y_j = sum_k c_kj x_k` of single columns, `c` row-major: the restart of a basis. The `y` are not read, and each
    /// `x` is read once where a backend can.
    fn mix_each(&self, x: &[&BlockVector], c: &[C64], y: &mut [BlockVector]) -> Result<()> {
        mix_in_turn(self, x, c, y)
    }
    /// `k_r = K r` and `k_x = K x` of the Ritz vector `x = V s` and its residual `r = W s - theta x`, with
    /// `K = 1/(shift - D)`: in one pass over V and W where a backend can. `k_r` and `k_x` are not read. Gives what is
    /// asked of both at once, for one answer: `V^H k_r`, `V^H k_x`, `<k_r|k_r>`, `<k_r|k_x>`, `<k_x|k_x>`, `<r|r>`.
    fn correct(&self, of: RitzCorrection, kr: &mut BlockVector, kx: &mut BlockVector) -> Result<Vec<C64>> {
        correct_in_turn(self, of, kr, kx)
    }
}

/// [`Lists::grams`] of columns that are put side by side first.
pub(in crate::backend) fn grams_side_by_side<B: Lists + ?Sized>(
    device: &B,
    x: &[&BlockVector],
    y: &[&BlockVector],
) -> Result<Vec<C64>> {
    let mut all = vec![C64::default(); x.len() * y.len()];
    for (i, some) in x.chunks(SIDE_BY_SIDE).enumerate() {
        let some = device.side_by_side(some)?;
        for (j, others) in y.chunks(SIDE_BY_SIDE).enumerate() {
            let products = device.gram(&some, &device.side_by_side(others)?)?;
            for (k, line) in products.chunks(others.len()).enumerate() {
                all[(i * SIDE_BY_SIDE + k) * y.len() + j * SIDE_BY_SIDE..][..line.len()]
                    .copy_from_slice(line);
            }
        }
    }
    Ok(all)
}

/// [`Lists::mix`] by sums of two.
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

/// [`Lists::mix_each`], one sum after the other.
pub(in crate::backend) fn mix_in_turn<B: Lists + ?Sized>(
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

/// Refuses a deflation whose numbers or vectors do not fit the space.
pub(in crate::backend) fn check_deflation(
    u: &BlockVector,
    d: &[f64],
    x: &BlockVector,
    y: &BlockVector,
) -> Result<()> {
    if d.len() != u.columns() {
        return Err(Error::internal(format!("{} numbers for a space of {}", d.len(), u.columns())));
    }
    conformal("deflation", x, y)
}

/// Refuses vectors of different shape or type, naming the operation.
pub(in crate::backend) fn conformal(operation: &str, x: &BlockVector, y: &BlockVector) -> Result<()> {
    if x.rows() == y.rows() && x.columns() == y.columns() && x.dtype() == y.dtype() {
        return Ok(());
    }
    Err(Error::input(format!("{operation}: {} and {} do not fit together", x.shape(), y.shape()))
        .hint("both need the same rows, the same number of columns and the same kind of numbers"))
}

/// [`Lists::correct`] by its parts.
pub(in crate::backend) fn correct_in_turn<B: Lists + ?Sized>(
    device: &B,
    of: RitzCorrection,
    kr: &mut BlockVector,
    kx: &mut BlockVector,
) -> Result<Vec<C64>> {
    device.mix(of.basis, of.coefficients, 0.0, kr)?;
    let mut r = kr.clone();
    let images: Vec<&BlockVector> = of.images.iter().copied().chain([&*kr]).collect();
    let factors: Vec<C64> = of.coefficients.iter().copied().chain([C64::new(-of.value, 0.0)]).collect();
    device.mix(&images, &factors, 0.0, &mut r)?;
    device.precondition(of.diagonal, &[of.shift], of.floor, kr, kx)?;
    device.precondition(of.diagonal, &[of.shift], of.floor, &r, kr)?;
    let (kr, kx) = (&*kr, &*kx);
    let with_both = device.grams(of.basis, &[kr, kx])?;
    let with = |which: usize| with_both.iter().skip(which).step_by(2);
    let mut all: Vec<C64> = with(0).chain(with(1)).copied().collect();
    all.extend(device.dots_with_each(&[(&[kr], kr), (&[kr, kx], kx), (&[&r], &r)])?);
    Ok(all)
}
