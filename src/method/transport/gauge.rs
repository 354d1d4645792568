//! How a lead fits a sample in a magnetic field: both have vector potentials of their own, and boundaries of their own.

use std::f64::consts::TAU;

use super::TransportSample;
use super::lead::Lead;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::lattice::{Model, VectorPotential};
use crate::number::{C64, scalar};

/// Angles that differ by less are the same: places that fit have six digits in common.
const SAME_ANGLE: f64 = 1e-4;

/// The phase of each row of a lead's cell that turns the lead to the gauge of the sample on these sites. It is the
/// integral of the difference of both vector potentials, from the middle of the cell along the lead and then across.
///
/// Where both have the same field, every other way would do as well. Where they have not, this is the sample's field up
/// to the cell and the lead's field behind it, as vector potentials along the lead have it that agree in its middle.
///
/// # Errors
/// Different phases around a tube, or different fields through the lead's cross-section, which no gauge makes equal.
pub(super) fn phases(sample: &Model, lead: &Lead, sites: &[usize]) -> Result<Vec<C64>> {
    let (model, along) = lead.model();
    let rows = sites.len() * lead.orbitals();
    let has_field = sample.has_field() || model.has_field();
    if !has_field && !sample.is_at_momentum() && !model.is_at_momentum() {
        return Ok(vec![C64::ONE; rows]);
    }
    let own: Vec<Vec<f64>> = (0..sites.len()).map(|i| place(model, lead, i, None)).collect::<Result<_>>()?;
    let offset = minus(&sample.lattice().position(sites[0])?, &own[0]);
    closed_alike(sample, lead, &own, &offset)?;
    if !has_field {
        return Ok(vec![C64::ONE; rows]);
    }
    let mut middle = vec![0.0; offset.len()];
    for at in &own {
        middle.iter_mut().zip(at).for_each(|(m, x)| *m += x / own.len() as f64);
    }
    let away = LeadFrame { model, along, middle: &middle };
    through_alike(sample, &away, &own, &offset)?;
    let there = plus(&middle, &offset);
    let (geometry, orbitals) = (sample.geometry(), lead.orbitals());
    (0..rows)
        .map(|row| {
            let (site, orbital) = (row / orbitals, row % orbitals);
            let here = place(model, lead, site, Some(orbital))?;
            let ahead = away.along(&here);
            let in_lead = bent(&model.potential(), &middle, &ahead, &here);
            let end = geometry.position(sites[site] * orbitals + orbital)?;
            let in_sample = bent(&sample.potential(), &there, &ahead, &end);
            let phase = C64::cis(in_sample - in_lead);
            Ok(if lead.is_hole(row) { phase.conj() } else { phase })
        })
        .collect()
}

impl TransportSample {
    /// Whether the sample's model and a lead both have a magnetic field, and these differ in the plane of the lead.
    ///
    /// # Errors
    /// Places that a lattice does not have.
    pub fn other_field(&self, model: &Model, lead: usize) -> Result<bool> {
        let Some((lead, sites)) = self.lead(lead) else { return Ok(false) };
        let (own, along) = lead.model();
        if !own.has_field() || !model.has_field() {
            return Ok(false);
        }
        let places: Vec<Vec<f64>> =
            (0..sites.len()).map(|i| place(own, lead, i, None)).collect::<Result<_>>()?;
        let offset = minus(&model.lattice().position(sites[0])?, &places[0]);
        let frame = LeadFrame { model: own, along, middle: &places[0] };
        // Around what lies between two neighbouring cells and two lines of sites.
        let around = |potential: VectorPotential<'_>, from: &[f64], across: &[f64]| {
            let (a, b) = (plus(from, lead.step()), plus(from, across));
            let corner = plus(&a, across);
            potential.on_the_way(from, &a)
                + potential.on_the_way(&a, &corner)
                + potential.on_the_way(&corner, &b)
                + potential.on_the_way(&b, from)
        };
        let start = plus(&places[0], &offset);
        Ok(places.iter().any(|place| {
            let across = frame.across(place);
            let (own, there) =
                (around(own.potential(), &places[0], &across), around(model.potential(), &start, &across));
            !same(own, there)
        }))
    }
}

/// The way from a place by a vector and on to another place.
fn bent(potential: &VectorPotential<'_>, from: &[f64], by: &[f64], to: &[f64]) -> f64 {
    let corner = plus(from, by);
    potential.on_the_way(from, &corner) + potential.on_the_way(&corner, to)
}

/// Where a site of the lead's cell, or an orbital of it, lies as its model has it.
fn place(model: &Model, lead: &Lead, site: usize, orbital: Option<usize>) -> Result<Vec<f64>> {
    let sites = model.lattice().sites();
    let at = match orbital {
        Some(orbital) => model.geometry().position(site % sites * lead.orbitals() + orbital)?,
        None => model.lattice().position(site % sites)?,
    };
    Ok(at.iter().zip(lead.step()).map(|(x, step)| x + (site / sites) as f64 * step).collect())
}

/// The parts of vectors from the middle of a lead's cell.
struct LeadFrame<'a> {
    model: &'a Model,
    along: usize,
    middle: &'a [f64],
}

impl LeadFrame<'_> {
    /// The part along the lead. The other is along a layer of its cells.
    fn along(&self, place: &[f64]) -> Vec<f64> {
        let lattice = self.model.lattice();
        let cells = lattice.cell_coordinates(&minus(place, self.middle))[self.along];
        lattice.vectors()[self.along].iter().map(|x| cells * x).collect()
    }

    fn across(&self, place: &[f64]) -> Vec<f64> {
        minus(&minus(place, self.middle), &self.along(place))
    }
}

/// An error where the field through the cross-section of the lead is not that of the sample: field lines do not end.
fn through_alike(sample: &Model, away: &LeadFrame<'_>, places: &[Vec<f64>], offset: &[f64]) -> Result<()> {
    let across: Vec<Vec<f64>> = places.iter().map(|place| away.across(place)).collect();
    let size = |x: &[f64]| scalar::dot(x, x);
    let Some(farthest) = across.iter().max_by(|a, b| size(a).total_cmp(&size(b))) else { return Ok(()) };
    let through = |potential: VectorPotential<'_>, middle: &[f64], other: &[f64]| {
        let (a, b) = (plus(middle, farthest), plus(middle, other));
        potential.on_the_way(middle, &a) + potential.on_the_way(&a, &b) + potential.on_the_way(&b, middle)
    };
    let there = plus(away.middle, offset);
    let differ = |other: &Vec<f64>| {
        let own = through(away.model.potential(), away.middle, other);
        !same(own, through(sample.potential(), &there, other))
    };
    if across.iter().any(differ) {
        return Err(Error::input(
            "the magnetic field through the cross-section of a lead is not that of the sample",
        )
        .hint("give the lead the sample's flux through the directions across it"));
    }
    Ok(())
}

/// An error where what is closed around the lead and around the sample is so with different phases.
fn closed_alike(sample: &Model, lead: &Lead, places: &[Vec<f64>], offset: &[f64]) -> Result<()> {
    let (model, along) = lead.model();
    let circumferences = |model: &Model| -> Vec<(usize, Vec<f64>)> {
        let lattice = model.lattice();
        let closed = (0..lattice.dimension()).filter(|&d| lattice.wrap()[d] != Wrap::Open);
        closed
            .map(|d| (d, lattice.vectors()[d].iter().map(|x| x * lattice.cells()[d] as f64).collect()))
            .collect()
    };
    let of_sample = circumferences(sample);
    for (d, around) in circumferences(model).into_iter().filter(|(d, _)| *d != along) {
        let near = |x: &[f64]| x.iter().all(|x| x.abs() < 1e-6);
        let found = of_sample.iter().find_map(|(e, other)| {
            let sign = if near(&minus(other, &around)) { 1.0 } else { -1.0 };
            (sign > 0.0 || near(&plus(other, &around))).then_some((*e, sign))
        });
        let Some((e, sign)) = found else { continue };
        let differ = |place: &Vec<f64>| {
            let there = sample.potential().around(e, &plus(place, offset));
            !same(model.potential().around(d, place), sign * there)
        };
        if places.iter().any(differ) {
            return Err(Error::input("a lead and the sample are closed across with different phases").hint(
                "give both the same momentum across, or the same boundaries; a field through the mantle of a tube \
                 must be the same in both",
            ));
        }
        // A momentum and a twist of the same phases differ for holes.
        if sample.holes().is_some() && sample.is_at_momentum() != model.is_at_momentum() {
            return Err(Error::input("a momentum across in a lead or in the sample, and none in the other")
                .hint("give both the same momentum across"));
        }
    }
    Ok(())
}

fn same(a: f64, b: f64) -> bool {
    let turns = (a - b) / TAU;
    (turns - turns.round()).abs() * TAU < SAME_ANGLE
}

fn plus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::{Lattice, OrbitalBlock};

    #[test]
    fn fields_of_leads_are_compared_with_that_of_the_sample() {
        const PERIODIC: Wrap = Wrap::Phase(C64::ONE);
        let sheet = |cells: [usize; 2], wraps: &[Wrap], flux: f64, order: [usize; 2]| {
            let lattice = Lattice::honeycomb(cells[0], cells[1]).unwrap().boundary(wraps).unwrap();
            let mut model = Model::new(lattice, 1).unwrap();
            model.nearest(&OrbitalBlock::scalar(1, -C64::ONE)).unwrap();
            model.flux(flux, order[0], order[1]).unwrap();
            model
        };
        let sample = sheet([4, 3], &[Wrap::Open, Wrap::Open], 0.1, [0, 1]);
        let other = |flux: f64| {
            let cell = sheet([1, 3], &[PERIODIC, Wrap::Open], flux, [1, 0]);
            let leads = vec![Lead::new(&cell, None, None, true, &[]).unwrap()];
            TransportSample::new(&sample, leads).unwrap().other_field(&sample, 0).unwrap()
        };
        // The order of the directions turns the sign round. No field in a lead is meant so.
        assert_eq!([-0.1, 0.1, -0.05, 0.0].map(other), [false, true, true, false]);
    }
}
