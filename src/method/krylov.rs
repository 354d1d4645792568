//! exp(z H) v of a Hermitian operator in a Krylov space (Park, Light, J. Chem. Phys. 85 (1986) 5870; Hochbruck, Lubich,
//! SIAM J. Numer. Anal. 34 (1997) 1911). It needs no spectral window, and few products if |z| times the width of the
//! spectrum is small, as for time steps with small effective Hamiltonians.

use super::solve::of_about_one;
use super::units::Units;
use super::window::{require_hermitian, tridiagonal};
use crate::backend::BlockVector;
use crate::error::{Error, Result};
use crate::number::{C64, scalar};
use crate::operator::Operator;
use crate::task::Task;

/// Up to so many rows the basis is kept orthogonal. Beyond, the recurrence of three terms is left to itself: the result
/// needs `H Q = Q T` to rounding, and not that Q is orthogonal (Druskin, Greenbaum, Knizhnerman, SIAM J. Sci.
/// Comput. 19 (1998) 38).
const KEPT_ORTHOGONAL: usize = 2048;
/// Most basis vectors. Where they do not suffice, the step is divided.
const LARGEST: usize = 48;
/// Most steps of one call.
const MOST_STEPS: usize = 1_000_000;
/// A residual below this, relative to the largest element of H seen, ends the space: it is invariant.
const INVARIANT: f64 = 1e-13;

/// Logarithms of norms that numbers hold with all digits, in single and in double precision, either way.
const LOGARITHMS: [f64; 2] = [80.0, 700.0];

/// An evolved vector, and what it cost.
pub struct Exponential {
    /// exp(z H) v.
    pub vector: BlockVector,
    /// Products with the operator.
    pub products: usize,
}

/// `exp(z (T - shift)) e_1` for the tridiagonal Lanczos matrix T and real or complex z, and the shift: the level that
/// counts most, so that no number is too large.
fn small(alpha: &[f64], beta: &[f64], z: C64) -> Result<(Vec<C64>, f64)> {
    let n = alpha.len();
    let (s, u) = tridiagonal(alpha, beta)?;
    let shift = if z.re > 0.0 { s[n - 1] } else { s[0] };
    let mut c = vec![C64::ZERO; n];
    for k in 0..n {
        let weight = (z * (s[k] - shift)).exp() * u[(0, k)];
        (0..n).for_each(|i| c[i] += weight * u[(i, k)]);
    }
    Ok((c, shift))
}

/// exp(z H) v for one column v. `tol` bounds the estimated error of the whole evolution, relative to the norm of the
/// result.
///
/// # Errors
/// An operator that is not Hermitian, a block of several columns, numbers that are not finite, a result too large or
/// too small for numbers, too many steps, interruption.
pub fn exponential(h: &Operator, v: &BlockVector, z: C64, tol: f64, task: &Task) -> Result<Exponential> {
    if v.columns() != 1 {
        return Err(Error::input(format!("exp(z H) of a block of {} columns", v.columns()))
            .hint("it takes one vector, a column of the block"));
    }
    require_hermitian(h)?;
    if !(z.re.is_finite() && z.im.is_finite()) {
        return Err(
            Error::input(format!("exp(z H) with z = {z}, which is not finite")).hint("give a finite number")
        );
    }
    let device = h.device();
    let dtype = h.dtype().join(v.dtype());
    let dtype = if z.im != 0.0 { dtype.to_complex() } else { dtype };
    let mut vector = device.convert(v, dtype)?;
    if z == C64::ZERO {
        return Ok(Exponential { vector, products: 0 });
    }
    // An operator that is that far from one and matters all the same is taken in its own units.
    let ordinary = h.dtype().squared().contains(&z.norm());
    let units = if ordinary { Units::own(h) } else { Units::of(h)? };
    let (h, z) = (&units.h, z * units.unit);
    let mut products = 0;
    let mut left = 1.0;
    // The logarithm of the norm: the vector itself has norm one, as exp(z H) may be too large or too small for a number
    // on the way.
    let mut size = 0.0;
    if let Some((scaled, factors)) = of_about_one(device, &vector)? {
        (vector, size) = (scaled, -factors[0].ln());
    }
    for _ in 0..MOST_STEPS {
        let norm = device.norms(&vector)?[0];
        if !norm.is_finite() {
            return Err(Error::numeric("the vector to evolve is not finite")
                .hint("look for a division by zero where it is made"));
        }
        if norm == 0.0 {
            return Ok(Exponential { vector, products });
        }
        size += norm.ln();
        let mut first = device.convert(&vector, dtype)?;
        device.axpby(&[(1.0 / norm).into()], &vector, &[C64::ZERO], &mut first)?;
        let mut space = KrylovSpace { h, basis: vec![first], alpha: Vec::new(), beta: Vec::new() };
        let (step, (c, shift)) = space.grown_for(z, left, tol, task)?;
        products += space.alpha.len();
        let (grown, own) = (z * step * shift, scalar::norm(&c));
        size += grown.re + own.ln();
        let mut factor = C64::from(1.0 / own);
        if grown.im != 0.0 {
            factor *= C64::cis(grown.im);
        }
        let last = left - step <= 1e-15;
        if last {
            if !(size.abs() < LOGARITHMS[usize::from(!dtype.is_single())]) {
                let what = if size > 0.0 { "large" } else { "small" };
                return Err(Error::numeric(format!(
                    "exp(z H) v has the norm exp({size:.1}), too {what} for a number"
                ))
                .hint("take it in steps and normalise between them"));
            }
            factor *= size.exp();
        }
        let c: Vec<C64> = c.iter().map(|x| x * factor).collect();
        let all: Vec<&BlockVector> = space.basis.iter().take(c.len()).collect();
        device.mix(&all, &c, 0.0, &mut vector)?;
        left -= step;
        if last {
            return Ok(Exponential { vector, products });
        }
    }
    Err(Error::input(format!("exp(z H) with z = {z} takes more than {MOST_STEPS} steps"))
        .hint("use several calls, each with a part of z"))
}

/// An orthonormal basis of the space that products with an operator make of a vector, and the operator in it: `alpha`
/// on the diagonal, `beta` beside it.
struct KrylovSpace<'a> {
    h: &'a Operator,
    basis: Vec<BlockVector>,
    alpha: Vec<f64>,
    beta: Vec<f64>,
}

impl KrylovSpace<'_> {
    /// Grows the basis until it holds `exp(z left H)` of its first vector, or of as large a part of the time as its
    /// largest size allows. Returns the part, and what [`small`] makes of it.
    fn grown_for(&mut self, z: C64, left: f64, tol: f64, task: &Task) -> Result<(f64, (Vec<C64>, f64))> {
        let (device, dtype) = (self.h.device(), self.basis[0].dtype());
        let mut largest = 0.0f64;
        loop {
            task.check()?;
            let k = self.basis.len();
            let next = self.orthogonal_product()?;
            let rest = device.norms(&next)?[0];
            largest = largest.max(self.alpha[k - 1].abs()).max(rest);
            if !largest.is_finite() {
                return Err(Error::numeric("a product with the operator is not finite")
                    .hint("numbers beyond 1e308 come up; bring the operator to a smaller scale"));
            }
            // Rounding turns the phases by as much, and estimates below that tell nothing.
            let tol = tol.max(4.0 * dtype.epsilon() * z.norm() * largest);
            let ends = rest <= INVARIANT * largest || k >= self.h.dim();
            // Error of ending the basis here, relative to the result (Saad, SIAM J. Numer. Anal. 29 (1992) 209).
            let error =
                |fraction: f64, c: &[C64]| rest * (z * fraction).norm() * c[k - 1].norm() / scalar::norm(c);
            if ends || k >= 2 {
                let c = small(&self.alpha, &self.beta, z * left)?;
                if ends || error(left, &c.0) <= tol * left {
                    return Ok((left, c));
                }
            }
            if k == LARGEST {
                let mut fraction = left / 2.0;
                loop {
                    let c = small(&self.alpha, &self.beta, z * fraction)?;
                    if error(fraction, &c.0) <= tol * fraction {
                        return Ok((fraction, c));
                    }
                    if fraction < 1e-12 {
                        return Err(Error::numeric(format!(
                            "exp(z H) with z = {z} is not reached in steps of 1e-12 z"
                        ))
                        .hint("use a larger `tol`"));
                    }
                    fraction /= 2.0;
                }
            }
            self.beta.push(rest);
            let mut scaled = device.convert(&next, dtype)?;
            device.axpby(&[(1.0 / rest).into()], &next, &[C64::ZERO], &mut scaled)?;
            self.basis.push(scaled);
        }
    }

    /// The product with the last vector, orthogonal to all, whose element on the diagonal it adds.
    fn orthogonal_product(&mut self) -> Result<BlockVector> {
        let (h, basis, k) = (self.h, &self.basis, self.basis.len());
        let device = h.device();
        let mut next = h.apply(&basis[k - 1])?;
        if next.dtype() != basis[0].dtype() {
            next = device.convert(&next, basis[0].dtype())?;
        }
        if h.dim() <= KEPT_ORTHOGONAL {
            // Orthogonalised twice: the second pass removes the rounding errors of the first.
            let all: Vec<&BlockVector> = basis.iter().collect();
            let overlaps = device.dots_with(&all, &next)?;
            self.alpha.push(overlaps[k - 1].re);
            let negative: Vec<C64> = overlaps.iter().map(|x| -x).collect();
            device.mix(&all, &negative, 1.0, &mut next)?;
            let again: Vec<C64> = device.dots_with(&all, &next)?.iter().map(|x| -x).collect();
            device.mix(&all, &again, 1.0, &mut next)?;
        } else {
            let own = device.dots(&basis[k - 1], &next)?[0].re;
            self.alpha.push(own);
            let before = self.beta.last().map_or(0.0, |b| -b);
            let near: Vec<&BlockVector> = basis[k.saturating_sub(2)..].iter().rev().collect();
            let factors = [C64::from(-own), C64::from(before)];
            device.mix(&near, &factors[..near.len()], 1.0, &mut next)?;
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::cpu::Cpu;
    use crate::backend::matrix::{Csr, Indices, MatrixValues};
    use crate::backend::{Device, Rows};
    use crate::operator::{MatrixFormat, StoredMatrix};
    use crate::task::Interrupt;

    /// A chain of `n` sites with hopping one: its levels are 2 cos(pi k / (n + 1)).
    fn chain(n: usize) -> (Device, Operator) {
        let device: Device = Arc::new(Cpu::new(1, Interrupt::default()).unwrap());
        let (mut row_start, mut columns) = (vec![0], Vec::new());
        for i in 0..n {
            columns.extend([i.wrapping_sub(1), i + 1].iter().filter(|j| **j < n).map(|j| *j as u32));
            row_start.push(columns.len());
        }
        let values = MatrixValues::F64(vec![1.0; columns.len()]);
        let csr = Csr { rows: n, cols: n, row_start, columns: Indices::U32(columns), values };
        let h = StoredMatrix::from_csr(&device, csr, MatrixFormat::Csr).unwrap();
        (device, h)
    }

    #[test]
    fn any_time_agrees_with_the_levels() {
        for (n, z) in [
            (KEPT_ORTHOGONAL + 1, C64::new(0.0, 60.0)),
            (KEPT_ORTHOGONAL + 1, C64::new(-2.0, -5.0)),
            (1, C64::new(0.0, -2.0)),
            (2, C64::new(-3.0, 0.0)),
            (40, C64::new(0.0, -0.1)),
            (40, C64::new(0.0, -60.0)),
            (40, C64::new(-1.5, 0.0)),
            (40, C64::new(-40.0, 0.0)),
            (40, C64::new(-0.5, -0.7)),
            (2, C64::new(300.0, 7.0)),
            (40, C64::new(-160.0, 0.0)),
            (7, C64::ZERO),
        ] {
            let (device, h) = chain(n);
            let mut start = vec![C64::ZERO; n];
            start[n / 3] = C64::new(2.0, 0.0);
            let v = device.upload(h.dtype(), Rows::all(n), 1, &start).unwrap();
            let found = exponential(&h, &v, z, 1e-12, &Task::default()).unwrap().vector;
            let found = device.download(&found).unwrap();
            let wave = |k: usize, i: usize| {
                let q = std::f64::consts::PI / (n + 1) as f64;
                (2.0 / (n + 1) as f64).sqrt() * (q * (k * (i + 1)) as f64).sin()
            };
            let level = |k: usize| 2.0 * (std::f64::consts::PI * k as f64 / (n + 1) as f64).cos();
            let exact: Vec<C64> = (0..n)
                .map(|i| {
                    (1..=n).map(|k| (z * level(k)).exp() * 2.0 * wave(k, n / 3) * wave(k, i)).sum::<C64>()
                })
                .collect();
            let size = exact.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
            let off = found.iter().zip(&exact).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>().sqrt();
            assert!(off < 1e-10 * size, "{n} sites, z = {z}: {off} of {size}");
        }
    }

    #[test]
    fn large_phases_end_where_rounding_bounds_the_digits() {
        let (device, h) = chain(60);
        let mut start = vec![C64::ZERO; 60];
        start[20] = C64::ONE;
        let v = device.upload(h.dtype(), Rows::all(60), 1, &start).unwrap();
        let z = C64::new(0.0, -1000.0);
        let there = exponential(&h, &v, z, 1e-14, &Task::default()).unwrap().vector;
        let back = exponential(&h, &there, -z, 1e-14, &Task::default()).unwrap().vector;
        let back = device.download(&back).unwrap();
        let off = back.iter().zip(&start).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>().sqrt();
        assert!(off < 1e-10, "{off}");
    }
}
