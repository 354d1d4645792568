//! Matrix elements of the position between the orbitals of a model, as Wannier functions have them (Wang, Yates, Souza,
//! Vanderbilt, Phys. Rev. B 74 (2006) 195118). Velocities and Berry curvatures follow from them and from the
//! Hamiltonian; with orbitals that are points at their places there are none.

use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::{C64, Matrix};

/// `<0 i| x - x_i |R j>` along each Cartesian axis, where `x_i` is the place of orbital i.
#[derive(Debug, Clone)]
pub struct PositionElements {
    axes: Vec<Bloch>,
}

impl PositionElements {
    /// Those of a model, as models on its lattice: one for each Cartesian axis.
    ///
    /// # Errors
    /// Another number of axes, or models with other cells or orbitals.
    pub fn new(axes: Vec<Bloch>, of: &Bloch) -> Result<PositionElements> {
        let space = of.cell().lattice().space();
        if axes.len() != space {
            return Err(Error::input(format!(
                "matrix elements of {} coordinates in {space} dimensions",
                axes.len()
            ))
            .hint("one model for each Cartesian axis"));
        }
        let near =
            |x: &[f64], y: &[f64]| x.iter().zip(y).all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs().max(1.0));
        for (axis, own) in axes.iter().enumerate() {
            let alike = own.vectors().len() == of.vectors().len()
                && own.vectors().iter().zip(of.vectors()).all(|(x, y)| near(x, y))
                && (0..of.rows().min(own.rows())).all(|row| near(own.place(row), of.place(row)));
            let other = match (own.rows(), of.rows()) {
                (a, b) if a != b => format!("{a} orbitals a cell, not {b}"),
                _ if !alike => "other vectors, or orbitals at other places".into(),
                _ => continue,
            };
            return Err(Error::input(format!(
                "the matrix elements of coordinate {axis} belong to another model: it has {other}"
            ))
            .hint("both have the same vectors, and the same orbitals at the same places"));
        }
        Ok(PositionElements { axes })
    }

    /// The velocity `dH/dk + i (H A - A H)` along an axis, in the basis of the orbitals.
    ///
    /// # Errors
    /// As [`Bloch::velocity`].
    pub fn velocity(&self, bloch: &Bloch, k: &[f64], axis: usize) -> Result<Matrix> {
        let (own, h) = (bloch.velocity(k, axis)?, bloch.hamiltonian(k)?);
        own.add(&commutator(&h, &self.axes[axis].hamiltonian(k)?)?)
    }

    /// The curvature `dA_b/dk_a - dA_a/dk_b - i (A_a A_b - A_b A_a)` of the orbitals themselves. It is what states
    /// outside the model add to the Berry curvature of its states.
    ///
    /// # Errors
    /// As [`Bloch::velocity`].
    pub fn curvature(&self, k: &[f64], [a, b]: [usize; 2]) -> Result<Matrix> {
        let (first, second) = (&self.axes[a], &self.axes[b]);
        let turned = commutator(&first.hamiltonian(k)?, &second.hamiltonian(k)?)?;
        second.velocity(k, a)?.sub(&first.velocity(k, b)?)?.sub(&turned)
    }
}

/// `i (x y - y x)`.
fn commutator(x: &Matrix, y: &Matrix) -> Result<Matrix> {
    Ok(x.matmul(y)?.sub(&y.matmul(x)?)?.scale(C64::I.into()))
}

/// The diagonal elements of a Hermitian matrix between vectors, the columns of a matrix.
pub fn expectations(operator: &Matrix, vectors: &Matrix) -> Result<Vec<f64>> {
    let (n, wide) = (vectors.rows(), vectors.cols());
    let (v, w) = (vectors.data().to_complex(), operator.matmul(vectors)?.data().to_complex());
    let of = |column: usize| (0..n).map(|i| (v[i * wide + column].conj() * w[i * wide + column]).re).sum();
    Ok((0..wide).map(of).collect())
}

/// A sum of matrices with weights; none of no matrices.
pub fn combined(parts: impl IntoIterator<Item = (f64, Result<Matrix>)>) -> Result<Option<Matrix>> {
    let mut sum: Option<Matrix> = None;
    for (weight, part) in parts {
        let part = part?.scale(weight.into());
        sum = Some(match sum {
            None => part,
            Some(sum) => sum.add(&part)?,
        });
    }
    Ok(sum)
}
