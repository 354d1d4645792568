//! Matrix elements of the position between the orbitals of a model, as Wannier functions have them (Wang, Yates, Souza,
//! Vanderbilt, Phys. Rev. B 74 (2006) 195118). Velocities and Berry curvatures follow from them and from the
//! Hamiltonian; with orbitals that are points at their places there are none.

use crate::error::{Error, Result};
use crate::lattice::{Bloch, BlochDerivative};
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

    /// The derivatives of the Hamiltonian with these matrix elements, for sums over momenta.
    ///
    /// # Errors
    /// As [`Bloch::higher_derivative`].
    pub fn derivatives(&self, bloch: &Bloch, axes: [usize; 3]) -> Result<Covariant> {
        let [a, b, c] = axes;
        let several: [&[usize]; 7] = [&[a], &[b], &[c], &[a, b], &[a, c], &[b, c], &[a, b, c]];
        let of = |bloch: &Bloch, most: usize| -> Result<Vec<Derivative>> {
            let mut known: Vec<Derivative> = Vec::new();
            for axes in several.into_iter().filter(|axes| axes.len() <= most) {
                let axes = sorted(axes);
                if known.iter().all(|other| other.axes != axes) {
                    known.push(Derivative { of: bloch.higher_derivative(&axes)?, axes });
                }
            }
            Ok(known)
        };
        let positions = self.axes.iter().map(|own| of(own, 2)).collect::<Result<_>>()?;
        Ok(Covariant { hamiltonian: of(bloch, 3)?, positions })
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

/// Derivatives of one matrix along axes, in order.
#[derive(Debug)]
struct Derivative {
    axes: Vec<usize>,
    of: BlochDerivative,
}

/// What derivatives of the Hamiltonian with matrix elements of the position are made of.
#[derive(Debug)]
pub struct Covariant {
    hamiltonian: Vec<Derivative>,
    /// Of the elements along each axis.
    positions: Vec<Vec<Derivative>>,
}

impl Covariant {
    /// The derivative `D_a .. D_c H` with `D_a X = dX/dk_a + i (X A_a - A_a X)`, the mean over all orders of its axes:
    /// how the Hamiltonian changes as a uniform field moves the momenta, in the basis of the orbitals.
    ///
    /// # Errors
    /// As [`Bloch::velocity`].
    pub fn at(
        &self,
        elements: &PositionElements,
        bloch: &Bloch,
        k: &[f64],
        axes: &[usize],
    ) -> Result<Matrix> {
        let orders: Vec<Vec<usize>> = match *axes {
            [a, b] => vec![vec![a, b], vec![b, a]],
            [a, b, c] => {
                [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]].map(Vec::from).to_vec()
            }
            _ => vec![axes.to_vec()],
        };
        let weight = 1.0 / orders.len() as f64;
        let place = Place { of: self, elements, bloch, k };
        combined(orders.iter().map(|order| (weight, place.moved(order, &[]))))?
            .ok_or_else(|| Error::internal("a derivative along no axes"))
    }
}

/// A momentum at which derivatives are made.
struct Place<'a> {
    of: &'a Covariant,
    elements: &'a PositionElements,
    bloch: &'a Bloch,
    k: &'a [f64],
}

impl Place<'_> {
    /// A plain derivative of the Hamiltonian, or of the elements along an axis.
    fn plain(&self, bloch: &Bloch, known: &[Derivative], axes: &[usize]) -> Result<Matrix> {
        if axes.is_empty() {
            return bloch.hamiltonian(self.k);
        }
        let axes = sorted(axes);
        let found = known.iter().find(|own| own.axes == axes);
        bloch.at_momentum(self.k, &found.ok_or_else(|| Error::internal("a derivative that is not known"))?.of)
    }

    /// The derivative of the Hamiltonian, first with the elements along `with` (the last one innermost), then plain.
    fn moved(&self, with: &[usize], plain: &[usize]) -> Result<Matrix> {
        let Some((&axis, inner)) = with.split_first() else {
            return self.plain(self.bloch, &self.of.hamiltonian, plain);
        };
        let mut sum = self.moved(inner, &[plain, &[axis]].concat())?;
        // Each of the plain ones acts on the elements or on what they are with.
        for choice in 0..1usize << plain.len() {
            let part = |on: usize| -> Vec<usize> {
                (0..plain.len()).filter(|bit| choice >> bit & 1 == on).map(|bit| plain[bit]).collect()
            };
            let own = self.plain(&self.elements.axes[axis], &self.of.positions[axis], &part(1))?;
            sum = sum.add(&commutator(&self.moved(inner, &part(0))?, &own)?)?;
        }
        Ok(sum)
    }
}

fn sorted(axes: &[usize]) -> Vec<usize> {
    let mut axes = axes.to_vec();
    axes.sort_unstable();
    axes
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
