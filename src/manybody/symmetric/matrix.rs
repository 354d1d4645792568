//! Operators of sums on sectors and from one sector to another.

use std::sync::Arc;

use super::super::exact::PlainRows;
use super::super::free;
use super::super::local::{collect, groups};
use super::super::opsum::OpSum;
use super::super::rows::{self, RowSource};
use super::coded::{CodedRows, groups_between};
use super::invariance::{factors, is_hermitian, part, refuse_others};
use super::numbers;
use super::orbits::Orbits;
use super::subspace::Subspace;
use crate::backend::Device;
#[cfg(test)]
use crate::backend::matrix::Csr;
use crate::error::{Error, ErrorKind, Result};
use crate::operator::{MatrixFormat, Operator, RowRule, StoredMatrix};
use crate::ranks;
use crate::task::{self, Task};

/// How an operator is wanted.
#[derive(Debug, Clone, Copy)]
pub struct SectorOperatorOptions {
    pub format: MatrixFormat,
    pub single: bool,
    /// Whether to take the invariant part of a sum that is not invariant.
    pub project: bool,
    /// Whether to keep its entries; where nobody says, those that fit into memory are kept.
    pub stored: Option<bool>,
}

/// The operator of a sum from the states of a sector to those of another, or the same.
///
/// # Errors
/// For sums that do not fit the sites, change what a sector conserves or are not invariant under its symmetries, for
/// sectors of different symmetries, memory, interruption.
pub fn operator(
    device: &Device,
    sum: &OpSum,
    (from, to): (&Subspace, Option<&Subspace>),
    wanted: SectorOperatorOptions,
    task: &Task,
) -> Result<Operator> {
    let source = source(sum, (from, to), wanted.project, task)?;
    let label = match to {
        Some(to) => format!("{} to {}", from.label(), to.label()),
        None => from.label(),
    };
    let reason = match wanted.stored {
        Some(false) if to.is_some() => {
            return Err(Error::input("an operator from one sector to another, matrix-free")
                .hint("leave `matrix: false` out: such matrices are kept"));
        }
        Some(false) => "as asked",
        stored => match ranks::agreed(stored_rows(device, &source, (sum, from, to), wanted, task)) {
            Err(e) if e.kind() == ErrorKind::Memory && stored.is_none() && to.is_none() => {
                "its entries do not fit into memory"
            }
            made => return Ok(made?.labelled(label)),
        },
    };
    let hermitian = is_hermitian(sum, from)?;
    let (home, adjoint, space) = (device.clone(), sum.dagger(), from.clone());
    let wanted = SectorOperatorOptions { stored: Some(false), ..wanted };
    let adjoint = move || operator(&home, &adjoint, (&space, None), wanted, &Task::default());
    Ok(free::operator(device, source, wanted.single, (hermitian, Box::new(adjoint)), reason).labelled(label))
}

/// The operator with its entries kept. Ranks that share its rows make their own and no others,
/// where the adjoint needs no more.
fn stored_rows(
    device: &Device,
    source: &Arc<dyn RowSource>,
    (sum, from, to): (&OpSum, &Subspace, Option<&Subspace>),
    wanted: SectorOperatorOptions,
    task: &Task,
) -> Result<Operator> {
    if ranks::world().is_some() && to.is_none() && is_hermitian(sum, from)? {
        let again = source.clone();
        let make = move |pieces: &[(usize, usize)]| {
            rows::pieces(&*again, pieces, wanted.single, &Task::new(task::current(), None))
        };
        let rule = RowRule { rows: source.shape().0, make: Arc::new(make) };
        let first = |pieces: &[(usize, usize)]| rows::pieces(&**source, pieces, wanted.single, task);
        if let Some(made) = StoredMatrix::from_pieces(device, rule, wanted.format, first)? {
            return Ok(made);
        }
    }
    let all = ranks::agreed(rows::matrix(&**source, wanted.single, task))?;
    StoredMatrix::from_csr(device, all, wanted.format)
}

/// The matrix of a sum.
#[cfg(test)]
pub(super) fn matrix(
    sum: &OpSum,
    spaces: (&Subspace, Option<&Subspace>),
    project: bool,
    single: bool,
    task: &Task,
) -> Result<Csr> {
    rows::matrix(&*source(sum, spaces, project, task)?, single, task)
}

/// Some rows of the matrix.
#[cfg(test)]
pub(super) fn some_rows(sum: &OpSum, space: &Subspace, pieces: &[(usize, usize)]) -> Result<Csr> {
    rows::pieces(&*source(sum, (space, None), false, &Task::default())?, pieces, false, &Task::default())
}

fn source(
    sum: &OpSum,
    (from, to): (&Subspace, Option<&Subspace>),
    project: bool,
    task: &Task,
) -> Result<Arc<dyn RowSource>> {
    Ok(match (to, &from.orbits) {
        (None, None) if project => Arc::new(rows_of(sum, from, Some(from), true, task)?),
        (None, None) => match CodedRows::layout(from, from).ok().filter(|l| l.bits <= numbers::SHORT) {
            Some(layout) => {
                let local = groups(sum, &from.plain)?;
                Arc::new(CodedRows::new(&local, from, from, layout, true))
            }
            None => Arc::new(PlainRows::new(sum, &from.plain)?),
        },
        _ => Arc::new(rows_of(sum, from, to, project, task)?),
    })
}

/// What generates the rows where there are symmetries, or two sectors.
fn rows_of(
    sum: &OpSum,
    from: &Subspace,
    to: Option<&Subspace>,
    project: bool,
    task: &Task,
) -> Result<CodedRows> {
    let Some(to) = to else {
        let Some(orbits) = &from.orbits else { return Err(Error::internal("no symmetries")) };
        let local = if project {
            groups_between(&part(sum, orbits, orbits, from, task)?, &from.plain, &from.plain)?
        } else {
            let local = groups(sum, &from.plain)?;
            refuse_others(sum, from, task)?;
            local
        };
        return Ok(CodedRows::new(&local, from, from, orbits.actions.layout.clone(), true));
    };
    if from.sites().count() != to.sites().count()
        || !from.sites().iter().zip(to.sites().iter()).all(|(a, b)| a == b)
    {
        return Err(Error::input(format!(
            "an operator from states of {} to states of {}",
            from.sites(),
            to.sites()
        ))
        .hint("both sectors are of the same sites"));
    }
    let collected = match (&from.orbits, &to.orbits) {
        (Some(a), Some(b)) if same(a, b) => part(sum, a, b, from, task)?,
        (_, Some(_)) => {
            return Err(Error::input(format!("an operator from {} to {}", from.label(), to.label())).hint(
                "both sectors name the same symmetries in the same order, with any quantum numbers; \
                 `to` may be without: the adjoint goes the other way",
            ));
        }
        (_, None) => {
            let all = factors(sum, from)?;
            collect(all.iter().map(|f| f.product(from.sites())), &from.plain)?
        }
    };
    let local = groups_between(&collected, &from.plain, &to.plain)?;
    let layout = CodedRows::layout(from, to)?;
    Ok(CodedRows::new(&local, from, to, layout, false))
}

fn same(a: &Arc<Orbits>, b: &Arc<Orbits>) -> bool {
    a.group.elements == b.group.elements
}
