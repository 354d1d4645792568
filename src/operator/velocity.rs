//! Operators of models, and their velocities v = i [H, x] (hbar = 1).

use std::sync::Arc;

use super::stored::RowRule;
use super::{MatrixFormat, Operator, StoredMatrix};
use crate::backend::Device;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::lattice::{self, Assembled, Model};
use crate::number::C64;

/// The model that an operator was assembled from. Velocities need the displacement of every hopping, which entries do
/// not tell: in a periodic direction of two cells, hoppings to either side fall into one entry.
pub(super) struct Origin {
    model: Model,
    /// The axes of the commutators with positions that were taken already.
    axes: Vec<usize>,
    format: lattice::AssemblyForm,
    single: bool,
}

/// Most nested commutators with positions; more are taken for a mistake.
const MOST_AXES: usize = 8;

impl Operator {
    /// The operator of a model, which then knows its lattice and its velocities.
    ///
    /// # Errors
    /// When the format cannot hold the model, or it does not fit into memory.
    pub fn of_model(device: &Device, model: &Model, format: MatrixFormat, single: bool) -> Result<Operator> {
        let wanted = match format {
            MatrixFormat::Auto => lattice::AssemblyForm::Auto,
            MatrixFormat::Stencil => lattice::AssemblyForm::Stencil,
            _ => lattice::AssemblyForm::Csr,
        };
        let rows = wanted == lattice::AssemblyForm::Csr
            || (wanted == lattice::AssemblyForm::Auto && !model.wants_stencil());
        if let Some(operator) =
            rows.then(|| by_rows(device, model, &[], |all| all, format, single)).transpose()?.flatten()
        {
            let format = lattice::AssemblyForm::Csr;
            return Ok(operator.with_origin(Origin {
                model: model.clone(),
                axes: Vec::new(),
                format,
                single,
            }));
        }
        let (operator, kept) = match model.assemble(wanted, single)? {
            Assembled::Stencil(s) => {
                (StoredMatrix::from_stencil(device, s, format)?, lattice::AssemblyForm::Auto)
            }
            Assembled::Csr(csr) => (StoredMatrix::from_csr(device, csr, format)?, lattice::AssemblyForm::Csr),
        };
        let origin = Origin { model: model.clone(), axes: Vec::new(), format: kept, single };
        Ok(operator.with_origin(origin))
    }

    fn with_origin(self, origin: Origin) -> Operator {
        let geometry = Arc::new(origin.model.geometry());
        Operator { origin: Some(Arc::new(origin)), ..self.on(Some(geometry)) }
    }

    /// Velocity along a Cartesian axis, v_ij = i H_ij (x_j - x_i), summed over all the ways that hoppings take from j
    /// to i. In units of energy times lattice constant over hbar. Sums and multiples have the sum of their terms'
    /// velocities, products those of Leibniz' rule.
    ///
    /// # Errors
    /// An operator that was not made of models, terms on different lattices, an axis that the lattice does not have.
    pub fn velocity(&self, axis: usize) -> Result<Operator> {
        let own = match &self.origin {
            Some(origin) => origin.velocity(&self.device, axis)?,
            None => {
                let derived = self.derived_velocity(axis)?.ok_or_else(|| {
                    Error::input(format!(
                        "velocities need the hoppings of a model, not a {}",
                        self.describe()
                    ))
                    .hint("make operators from a model; their sums and products have velocities too")
                })?;
                derived.on(self.geometry.clone())
            }
        };
        Ok(own.scaled(self.affine().0))
    }

    /// The real antisymmetric matrix M and the factor f of a velocity `f M`; none where there is none, which is where
    /// the Hamiltonian is complex, and for what is made of velocities. Traces with M take a quarter of the work.
    ///
    /// # Errors
    /// Those of the assembly.
    pub(crate) fn real_velocity(&self) -> Result<Option<(C64, Operator)>> {
        let (scale, shift) = self.affine();
        let Some(origin) = &self.origin else { return Ok(None) };
        // An odd number of commutators with positions gives an odd power of i.
        let odd = origin.axes.len() % 2 == 1;
        if !odd || shift != C64::ZERO || !origin.is_hermitian() || !origin.model.is_real() {
            return Ok(None);
        }
        let m = origin.commutator(&self.device, &origin.axes, imaginary)?;
        Ok(Some((scale * C64::I, m.on(self.geometry.clone()))))
    }

    /// The lattice of the rows, if both operators agree on it.
    pub(super) fn common_geometry(&self, other: &Operator) -> Option<Arc<lattice::Geometry>> {
        match (&self.geometry, &other.geometry) {
            (Some(a), Some(b)) if !Arc::ptr_eq(a, b) && !a.same_places(b) => None,
            (a, b) => a.clone().or_else(|| b.clone()),
        }
    }

    /// An error where positions mean different things to two operators.
    pub(super) fn check_places(&self, other: &Operator) -> Result<()> {
        if self.geometry.is_some() && other.geometry.is_some() && self.common_geometry(other).is_none() {
            return Err(Error::input("a velocity of operators on different lattices")
                .hint("positions must be the same in all terms of a sum or product"));
        }
        Ok(())
    }
}

impl Origin {
    /// Whether the model and its velocities are Hermitian by the way they are made: hoppings come with their
    /// conjugates, and boundaries turn phases.
    pub(super) fn is_hermitian(&self) -> bool {
        self.model.lattice().wrap().iter().all(Wrap::is_unitary)
    }

    fn velocity(&self, device: &Device, axis: usize) -> Result<Operator> {
        let mut axes = self.axes.clone();
        axes.push(axis);
        if axes.len() > MOST_AXES {
            return Err(Error::input(format!("more than {MOST_AXES} commutators with positions")));
        }
        let origin =
            |axes| Origin { model: self.model.clone(), axes, format: self.format, single: self.single };
        let kernel = self.commutator(device, &axes, |all| all)?;
        Ok(kernel.with_origin(origin(axes)))
    }

    /// What `part` makes of the commutator with positions along these axes.
    fn commutator(
        &self,
        device: &Device,
        axes: &[usize],
        part: fn(Assembled) -> Assembled,
    ) -> Result<Operator> {
        if self.format == lattice::AssemblyForm::Csr
            && let Some(operator) = by_rows(device, &self.model, axes, part, MatrixFormat::Auto, self.single)?
        {
            return Ok(operator);
        }
        let as_format = |format| self.model.assemble_along(axes, format, self.single).map(part);
        match as_format(self.format)? {
            // A stencil without terms, where nothing moves along the axis, is kept as rows without entries.
            Assembled::Stencil(s) if s.terms.is_empty() => match as_format(lattice::AssemblyForm::Csr)? {
                Assembled::Csr(csr) => StoredMatrix::from_csr(device, csr, MatrixFormat::Auto),
                Assembled::Stencil(_) => Err(Error::internal("rows were asked for")),
            },
            Assembled::Stencil(s) => StoredMatrix::from_stencil(device, s, MatrixFormat::Auto),
            Assembled::Csr(csr) => StoredMatrix::from_csr(device, csr, MatrixFormat::Auto),
        }
    }
}

/// The real part of a matrix that is imaginary: `A = i M`.
fn imaginary(all: Assembled) -> Assembled {
    match all {
        Assembled::Stencil(s) => Assembled::Stencil(s.imaginary()),
        Assembled::Csr(csr) => Assembled::Csr(csr.imaginary()),
    }
}

/// What `part` makes of the commutators of a model along axes, from the rows that this rank holds;
/// none where it holds all.
fn by_rows(
    device: &Device,
    model: &Model,
    axes: &[usize],
    part: fn(Assembled) -> Assembled,
    format: MatrixFormat,
    single: bool,
) -> Result<Option<Operator>> {
    let (rows, model, axes) = (model.rows(), model.clone(), axes.to_vec());
    let make = Arc::new(move |pieces: &[(usize, usize)]| {
        match part(Assembled::Csr(model.pieces_along(&axes, pieces, single)?)) {
            Assembled::Csr(csr) => Ok(csr),
            Assembled::Stencil(_) => Err(Error::internal("rows were asked for")),
        }
    });
    StoredMatrix::from_rule(device, RowRule { rows, make }, format)
}

/// The sum of the velocities of terms.
pub(super) fn sum(terms: &[Operator], axis: usize) -> Result<Operator> {
    let mut total: Option<Operator> = None;
    for term in terms {
        terms[0].check_places(term)?;
        let part = term.velocity(axis)?;
        total = Some(match total {
            Some(total) => total.plus(&part)?,
            None => part,
        });
    }
    total.ok_or_else(|| Error::internal("a sum without terms"))
}

#[cfg(test)]
#[path = "velocity_tests.rs"]
mod tests;
