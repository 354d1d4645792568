//! Bloch Hamiltonians: the matrix of one repeating cell of a model, with the phase of the momentum on each boundary that
//! a hopping crosses.

use std::f64::consts::TAU;

use super::assemble::Format;
use super::lattice::pseudo_inverse;
use super::model::Model;
use super::{Assembled, MAX_DIMENSION};
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::number::{C64, Matrix, Series, memory};

/// Rows of a cell whose dense matrix is still worth diagonalising.
const MOST_ROWS: usize = 1 << 14;

/// The repeating cell of a model, in its periodic directions; what is open belongs to the cell.
///
/// Where all terms are the same in every cell, the cell of the lattice repeats. Otherwise (disorder, functions of
/// position, flux, removed sites) the whole sample does.
///
/// Momenta are in units of the reciprocal vectors, one number for every periodic direction. An element of `H(k)` is the
/// sum over cells `R` of `<0 i| H |R j> exp(2 pi i k . R)`, so that `H` is periodic in `k`.
#[derive(Debug, Clone)]
pub struct Bloch {
    model: Model,
    periodic: Vec<usize>,
    vectors: Vec<Vec<f64>>,
    dual: Vec<Vec<f64>>,
    places: Vec<Vec<f64>>,
}

impl Bloch {
    /// The repeating cell of a model.
    ///
    /// # Errors
    /// A model without a periodic direction, or a cell of too many rows.
    pub fn new(model: &Model) -> Result<Bloch> {
        let lattice = model.lattice();
        let periodic: Vec<usize> =
            (0..lattice.dimension()).filter(|&d| lattice.wrap()[d] != Wrap::Open).collect();
        if periodic.is_empty() {
            return Err(Error::input("momenta of a model that is open in every direction")
                .hint("a direction has a momentum if its boundary is \"periodic\""));
        }
        if model.strain.is_some() {
            return Err(Error::input("momenta of a strained model, whose cell is another").hint(
                "make a lattice of the strained vectors and sites, and give the hoppings their new values",
            ));
        }
        let mut model = model.clone();
        if model.repeats() {
            for &d in &periodic {
                model.lattice.cells[d] = 1;
            }
        }
        let rows = model.rows();
        if rows > MOST_ROWS {
            return Err(Error::input(format!("a Bloch Hamiltonian of {rows} rows")).hint(
                "terms that differ from cell to cell make the whole sample one cell: take fewer cells",
            ));
        }
        memory::ensure(16 * (rows * rows) as u128, &format!("a matrix of {rows} rows"))?;
        let lattice = &model.lattice;
        let cells = lattice.cells();
        let vectors: Vec<Vec<f64>> = periodic
            .iter()
            .map(|&d| lattice.vectors()[d].iter().map(|x| x * cells[d] as f64).collect())
            .collect();
        let dual = pseudo_inverse(&vectors)?;
        let geometry = model.geometry();
        let places = (0..rows)
            .map(|row| {
                let mut at = geometry.position(row)?;
                if let Some(offsets) = &model.offsets {
                    let (_, s) = lattice.locate(row / model.orbitals)?;
                    let beside = &offsets[s * model.orbitals + row % model.orbitals];
                    at.iter_mut().zip(beside).for_each(|(x, off)| *x += off);
                }
                Ok(dual.iter().map(|b| dot(b, &at)).collect())
            })
            .collect::<Result<_>>()?;
        Ok(Bloch { model, periodic, vectors, dual, places })
    }

    /// Rows of `H(k)`: sites of the cell times orbitals.
    pub fn rows(&self) -> usize {
        self.model.rows()
    }

    /// How many numbers a momentum has: the periodic directions.
    pub fn dimension(&self) -> usize {
        self.periodic.len()
    }

    /// The model of the one cell.
    pub fn cell(&self) -> &Model {
        &self.model
    }

    /// The vectors by which the cell repeats, Cartesian, in lattice constants.
    pub fn vectors(&self) -> &[Vec<f64>] {
        &self.vectors
    }

    /// The reciprocal vectors, Cartesian, in inverse lattice constants: `vectors[i] . reciprocal[j] = 2 pi delta_ij`.
    pub fn reciprocal(&self) -> Vec<Vec<f64>> {
        self.dual.iter().map(|b| b.iter().map(|x| TAU * x).collect()).collect()
    }

    /// Where the orbital of a row lies, in units of the vectors by which the cell repeats.
    pub fn place(&self, row: usize) -> &[f64] {
        &self.places[row]
    }

    /// The length of a difference of momenta, in inverse lattice constants.
    pub fn length(&self, k: &[f64]) -> f64 {
        let b = self.reciprocal();
        let cartesian = (0..b[0].len()).map(|x| b.iter().zip(k).map(|(b, k)| b[x] * k).sum::<f64>());
        cartesian.map(|x| x * x).sum::<f64>().sqrt()
    }

    /// `H(k)`.
    ///
    /// # Errors
    /// A momentum of another dimension, or not finite.
    pub fn hamiltonian(&self, k: &[f64]) -> Result<Matrix> {
        self.at(k, &[])
    }

    /// The derivative of `H` along a Cartesian axis, `i [H, x]` (hbar = 1), with the orbitals at their places: its elements
    /// between eigenvectors of `H(k)` are velocities.
    ///
    /// # Errors
    /// As [`Bloch::hamiltonian`], and for an axis that the lattice does not have.
    pub fn velocity(&self, k: &[f64], axis: usize) -> Result<Matrix> {
        self.at(k, &[axis])
    }

    /// The derivative of `H` along reciprocal vector `d`, as [`Bloch::velocity`].
    ///
    /// # Errors
    /// As [`Bloch::hamiltonian`].
    pub fn derivative(&self, k: &[f64], d: usize) -> Result<Matrix> {
        let mut sum: Option<Matrix> = None;
        for (axis, b) in self.reciprocal()[d].iter().enumerate().filter(|(_, b)| **b != 0.0) {
            let part = self.velocity(k, axis)?.scale((*b).into());
            sum = Some(match sum {
                None => part,
                Some(sum) => sum.add(&part)?,
            });
        }
        sum.ok_or_else(|| Error::internal("a reciprocal vector of length zero"))
    }

    fn at(&self, k: &[f64], axes: &[usize]) -> Result<Matrix> {
        if k.len() != self.dimension() {
            return Err(Error::input(format!(
                "a momentum of {} numbers for {} periodic directions",
                k.len(),
                self.dimension()
            ))
            .hint("momenta are in units of the reciprocal vectors, one number a periodic direction"));
        }
        if let Some(x) = k.iter().find(|x| !x.is_finite()) {
            return Err(Error::input(format!("a momentum of {x}")).hint("look for a division by zero"));
        }
        let mut wrap = [Wrap::Open; MAX_DIMENSION];
        for (&d, k) in self.periodic.iter().zip(k) {
            // Only the fraction counts, and it alone keeps the digits.
            wrap[d] = Wrap::Phase(C64::cis(TAU * (k - k.round())));
        }
        let mut model = self.model.clone();
        model.lattice = model.lattice.boundary(&wrap[..self.model.lattice.dimension()])?;
        let Assembled::Csr(csr) = model.assemble_along(axes, Format::Csr, false)? else {
            return Err(Error::internal("compressed rows were asked for"));
        };
        let n = self.rows();
        let mut dense = vec![C64::ZERO; n * n];
        for row in 0..n {
            for entry in csr.row_start[row]..csr.row_start[row + 1] {
                dense[row * n + csr.columns.get(entry)] += csr.values.get(entry);
            }
        }
        Matrix::new(n, n, Series::Complex(dense))
    }
}

impl Model {
    /// Whether all terms are the same in every cell.
    fn repeats(&self) -> bool {
        self.local.is_empty()
            && self.disorder.is_empty()
            && self.fluxes.is_empty()
            && !self.lattice.has_removed()
            && self.hops.iter().all(|hop| hop.is_uniform())
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
