//! Bloch Hamiltonians: the matrix of one repeating cell of a model, with the phase of the momentum on each
//! boundary that a hopping crosses.

use std::f64::consts::TAU;
use std::sync::{Arc, OnceLock};

use super::lattice::{no_axis, pseudo_inverse};
use super::model::Model;
use super::unrolled::CopyElements;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::number::{C64, Matrix, Series, memory, scalar};

/// Most rows of a cell: its matrix is diagonalised dense.
const MOST_ROWS: usize = 1 << 14;

/// The repeating cell of a model, in its periodic directions; what is open belongs to the cell.
///
/// Where all terms are the same in every cell, the cell of the lattice repeats. Otherwise (disorder,
/// functions of position, flux, removed sites) the whole sample does.
///
/// Momenta are in units of the reciprocal vectors, one number for every periodic direction. An element of
/// `H(k)` is the sum over cells `R` of `<0 i| H |R j> exp(2 pi i k . R)`, so that `H` is periodic in `k`.
#[derive(Debug, Clone)]
pub struct Bloch {
    model: Model,
    periodic: Vec<usize>,
    vectors: Vec<Vec<f64>>,
    reciprocal: Vec<Vec<f64>>,
    places: Vec<Vec<f64>>,
    hamiltonian: Arc<Vec<CopyElements>>,
    /// The velocities along the Cartesian axes that were asked for.
    velocities: Arc<Vec<OnceLock<Vec<CopyElements>>>>,
}

/// What [`Bloch::higher_derivative`] makes, for any momentum.
#[derive(Debug, Clone)]
pub struct BlochDerivative(Vec<CopyElements>);

/// A bond of [`Bloch::bonds`].
#[derive(Debug, Clone)]
pub struct CellBond {
    pub from: usize,
    pub to: usize,
    pub cells: Vec<i64>,
    pub field: C64,
    pub boundary: C64,
}

impl Bloch {
    /// The repeating cell of a model.
    ///
    /// # Errors
    /// A model without a periodic direction, or a cell of too many rows.
    pub fn new(model: &Model) -> Result<Bloch> {
        let lattice = model.lattice();
        let periodic = (0..lattice.dimension()).filter(|&d| lattice.wrap()[d] != Wrap::Open).collect();
        Bloch::of(model, periodic)
    }

    /// The cell that repeats in one direction; in the others it is as large as the sample and ends as that does, where
    /// it is periodic with the phase of its boundary.
    ///
    /// # Errors
    /// As [`Bloch::new`].
    pub fn along(model: &Model, direction: usize) -> Result<Bloch> {
        Bloch::of(model, vec![direction])
    }

    fn of(model: &Model, periodic: Vec<usize>) -> Result<Bloch> {
        if periodic.is_empty() {
            return Err(Error::input("momenta of a model that is open in every direction")
                .hint("a direction has a momentum if its boundary is \"periodic\""));
        }
        if model.strain.is_some() {
            return Err(strained());
        }
        let mut model = model.clone();
        if model.repeats() {
            for &d in &periodic {
                model.lattice.cells[d] = 1;
            }
        }
        Bloch::of_cell(model, periodic)
    }

    /// The whole sample as the cell, whatever its terms: with momenta in its periodic directions, or as it is, with the
    /// phases of its boundaries.
    ///
    /// # Errors
    /// A strained model that has momenta, too many rows.
    pub fn sample(model: &Model, momenta: bool) -> Result<Bloch> {
        let lattice = model.lattice();
        let closed = |d: &usize| momenta && lattice.wrap()[*d] != Wrap::Open;
        let periodic: Vec<usize> = (0..lattice.dimension()).filter(closed).collect();
        if model.strain.is_some() && !periodic.is_empty() {
            return Err(strained());
        }
        Bloch::of_cell(model.clone(), periodic)
    }

    fn of_cell(model: Model, periodic: Vec<usize>) -> Result<Bloch> {
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
                let at = geometry.position(row)?;
                Ok(dual.iter().map(|b| scalar::dot(b, &at)).collect())
            })
            .collect::<Result<_>>()?;
        let reciprocal = dual.iter().map(|b| b.iter().map(|x| TAU * x).collect()).collect();
        let hamiltonian = Arc::new(closed(&model, &periodic, model.by_copy(&[])?));
        let velocities = Arc::new((0..model.lattice.space()).map(|_| OnceLock::new()).collect());
        Ok(Bloch { model, periodic, vectors, reciprocal, places, hamiltonian, velocities })
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

    /// The reciprocal vectors, Cartesian, in inverse lattice constants: `vectors[i] . reciprocal[j] = 2 pi
    /// delta_ij`.
    pub fn reciprocal(&self) -> &[Vec<f64>] {
        &self.reciprocal
    }

    /// `H` in parts, one for each cell that its columns lie in: the displacement along the periodic
    /// directions, and the matrix elements.
    pub fn parts(&self) -> impl Iterator<Item = (Vec<i64>, &[(usize, usize, C64)])> {
        self.hamiltonian.iter().map(|part| (self.displacement(part), &part.entries[..]))
    }

    /// The nearest-neighbour bonds of the cell: the sites they leave and reach, how many cells they cross in each
    /// periodic direction, and what takes the phases of fields and of the other boundaries from element `<to| |from>`.
    ///
    /// # Errors
    /// As [`Model::bond_elements`].
    pub fn bonds(&self) -> Result<Vec<CellBond>> {
        let wraps = self.model.lattice.wrap();
        let one = |bond: super::joined::BondElement| {
            let mut boundary = C64::ONE;
            for (d, wrap) in wraps.iter().enumerate().filter(|(d, _)| !self.periodic.contains(d)) {
                if let Wrap::Phase(p) = wrap {
                    boundary *= p.powi(bond.copy[d] as i32);
                }
            }
            let cells = self.periodic.iter().map(|&d| bond.copy[d]).collect();
            CellBond { from: bond.from, to: bond.to, cells, field: bond.factor, boundary }
        };
        Ok(self.model.bond_elements()?.into_iter().map(one).collect())
    }

    fn displacement(&self, part: &CopyElements) -> Vec<i64> {
        self.periodic.iter().map(|&d| part.copy[d]).collect()
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
        self.at(k, &self.hamiltonian)
    }

    /// The derivative of `H` along a Cartesian axis, `i [H, x]` (hbar = 1), with the orbitals at their
    /// places: its elements between eigenvectors of `H(k)` are velocities.
    ///
    /// # Errors
    /// As [`Bloch::hamiltonian`], and for an axis that the lattice does not have.
    pub fn velocity(&self, k: &[f64], axis: usize) -> Result<Matrix> {
        self.at(k, self.velocity_parts(axis)?)
    }

    fn velocity_parts(&self, axis: usize) -> Result<&[CopyElements]> {
        let Some(kept) = self.velocities.get(axis) else {
            return Err(no_axis(axis, self.velocities.len()));
        };
        if let Some(parts) = kept.get() {
            return Ok(parts);
        }
        let parts = closed(&self.model, &self.periodic, self.model.by_copy(&[axis])?);
        Ok(kept.get_or_init(|| parts))
    }

    /// The derivative of `H` along several Cartesian axes, one after the other, with the orbitals at their places.
    ///
    /// # Errors
    /// An axis that the lattice does not have.
    pub fn higher_derivative(&self, axes: &[usize]) -> Result<BlochDerivative> {
        if let Some(axis) = axes.iter().find(|axis| **axis >= self.velocities.len()) {
            return Err(no_axis(*axis, self.velocities.len()));
        }
        Ok(BlochDerivative(closed(&self.model, &self.periodic, self.model.by_copy(axes)?)))
    }

    /// A derivative at a momentum.
    ///
    /// # Errors
    /// As [`Bloch::hamiltonian`].
    pub fn at_momentum(&self, k: &[f64], derivative: &BlochDerivative) -> Result<Matrix> {
        self.at(k, &derivative.0)
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

    /// The derivative of `H` along reciprocal vector `d`, times the columns of a matrix, element by element of the
    /// sparse matrix that it is.
    ///
    /// # Errors
    /// As [`Bloch::hamiltonian`], and for columns of another length.
    pub fn derivative_times(&self, k: &[f64], d: usize, columns: &Matrix) -> Result<Matrix> {
        let turns = self.turns(k)?;
        let (n, wide, from) = (self.rows(), columns.cols(), columns.data().to_complex());
        if columns.rows() != n {
            return Err(Error::internal(format!("a derivative of {n} rows times {}", columns.rows())));
        }
        let mut out = vec![C64::ZERO; n * wide];
        for (axis, b) in self.reciprocal()[d].iter().enumerate().filter(|(_, b)| **b != 0.0) {
            for part in self.velocity_parts(axis)? {
                let phase = *b * turns(&self.displacement(part));
                for &(row, column, value) in &part.entries {
                    let factor = value * phase;
                    let source = &from[column * wide..(column + 1) * wide];
                    out[row * wide..(row + 1) * wide]
                        .iter_mut()
                        .zip(source)
                        .for_each(|(y, x)| *y += factor * x);
                }
            }
        }
        Matrix::new(n, wide, Series::Complex(out))
    }

    /// The phase of an element that goes so many cells, at a momentum.
    fn turns(&self, k: &[f64]) -> Result<impl Fn(&[i64]) -> C64 + use<>> {
        if k.len() != self.dimension() {
            return Err(Error::input(format!(
                "a momentum of {} numbers for {} periodic directions",
                k.len(),
                self.dimension()
            ))
            .hint("momenta are in units of the reciprocal vectors, one number per periodic direction"));
        }
        if let Some(x) = k.iter().find(|x| !x.is_finite()) {
            return Err(Error::input(format!("a momentum of {x}")).hint("look for a division by zero"));
        }
        // Only the fraction of a momentum counts, and it alone keeps the digits.
        let k: Vec<f64> = k.iter().map(|k| k - k.round()).collect();
        Ok(move |cells: &[i64]| C64::cis(TAU * cells.iter().zip(&k).map(|(r, k)| *r as f64 * k).sum::<f64>()))
    }

    fn at(&self, k: &[f64], parts: &[CopyElements]) -> Result<Matrix> {
        let turns = self.turns(k)?;
        let n = self.rows();
        let mut dense = vec![C64::ZERO; n * n];
        for part in parts {
            let phase = turns(&self.displacement(part));
            for &(row, column, value) in &part.entries {
                dense[row * n + column] += value * phase;
            }
        }
        // Hermitian to the last bit: where all but rounding cancels, what is left is not.
        for row in 0..n {
            dense[row * n + row].im = 0.0;
            for column in row + 1..n {
                let mean = 0.5 * (dense[row * n + column] + dense[column * n + row].conj());
                dense[row * n + column] = mean;
                dense[column * n + row] = mean.conj();
            }
        }
        Matrix::new(n, n, Series::Complex(dense))
    }
}

fn strained() -> Error {
    Error::input("momenta of a strained model, whose cell is another")
        .hint("make a lattice of the strained vectors and sites, and give the hoppings their new values")
}

/// Parts that differ by how often they cross other boundaries than those of the momenta, in one, with the phases of
/// these boundaries. Those of holes are opposite, but for those of a momentum.
fn closed(model: &Model, periodic: &[usize], parts: Vec<CopyElements>) -> Vec<CopyElements> {
    let (orbitals, electrons) = (model.orbitals(), model.particles());
    let mut found: Vec<CopyElements> = Vec::new();
    for CopyElements { copy, mut entries } in parts {
        let (mut left, mut phase) = (copy, C64::ONE);
        for (d, wrap) in model.lattice.wrap().iter().enumerate().filter(|(d, _)| !periodic.contains(d)) {
            if let Wrap::Phase(p) = wrap {
                phase *= p.powi(copy[d] as i32);
                left[d] = 0;
            }
        }
        for (row, _, value) in &mut entries {
            *value *= if model.momentum || *row % orbitals < electrons { phase } else { phase.conj() };
        }
        match found.iter_mut().find(|part| part.copy == left) {
            Some(part) => part.entries.append(&mut entries),
            None => found.push(CopyElements { copy: left, entries }),
        }
    }
    found
}

impl Model {
    /// Whether all terms are the same in every cell.
    fn repeats(&self) -> bool {
        self.local.is_empty()
            && !self.has_site_energies()
            && self.singlets.is_empty()
            && self.fluxes.is_empty()
            && !self.lattice.has_removed()
            && self.hops.iter().all(|hop| hop.is_uniform())
    }
}
