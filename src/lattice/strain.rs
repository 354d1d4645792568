//! Strain: positions move, and every hopping is multiplied by a function of its bond's new and old length.

use std::collections::HashMap;
use std::sync::Arc;

use super::lattice::Lattice;
use super::model::{Model, Span};
use super::strained::{Strained, content};
use crate::error::{Error, Kind, Result};
use crate::number::memory;
use crate::task::Task;

/// Where a position moves to.
pub type PositionMap<'a> = dyn FnMut(&[f64]) -> Result<Vec<f64>> + 'a;

fn length(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
}

impl Model {
    /// Moves positions, and multiplies every hopping by `factor(|map(y) - map(x)|, |y - x|)` for its bond from `x` to `y`. It
    /// comes last: no hopping can be added to a strained model.
    ///
    /// # Errors
    /// Those of the functions, a map or factor that is not finite, a model that is strained already or whose orbitals have
    /// places of their own, and interruption.
    pub fn strain(
        &mut self,
        map: &mut PositionMap<'_>,
        factor: &mut dyn FnMut(f64, f64) -> Result<f64>,
        task: &Task,
    ) -> Result<()> {
        if self.strain.is_some() {
            return Err(Error::input("the model is strained already").hint("put both strains into one map"));
        }
        if self.offsets.is_some() {
            return Err(Error::input("a strain of orbitals that lie beside their sites")
                .hint("make every orbital a site of the cell"));
        }
        let lattice = self.lattice.clone();
        let space = lattice.space();
        let numbers = (lattice.all_sites() * space + self.hops.len() * lattice.cell_count()) as u128;
        memory::ensure(8 * numbers, &format!("the strain of {} sites", lattice.sites()))?;
        let volume = match volume(&lattice, map, task) {
            // The map may fail at corners, which can lie beyond all sites.
            Err(e) if e.kind() != Kind::Interrupted => None,
            volume => volume?,
        };
        let mut to = |x: &[f64]| -> Result<Vec<f64>> {
            let y = map(x)?;
            if y.len() != x.len() || y.iter().any(|v| !v.is_finite()) {
                return Err(Error::input(format!("the strain maps {x:?} to {y:?}, which is no position")));
            }
            Ok(y)
        };
        let mut strained = Strained {
            space,
            moved: vec![f64::NAN; lattice.all_sites() * space],
            beyond: Vec::new(),
            volume,
        };
        let steps = task.start("strained positions", lattice.sites());
        for site in 0..lattice.sites() {
            if site.is_multiple_of(1024) {
                steps.advance(site)?;
            }
            strained.moved[lattice.full(site) * space..][..space]
                .copy_from_slice(&to(&lattice.position(site)?)?);
        }
        drop(steps);
        let mut scales = Vec::with_capacity(self.hops.len());
        for hop in &self.hops {
            let mut scale = vec![1.0; lattice.cell_count()];
            let before = |cell: usize| hop.scale.as_ref().map_or(1.0, |scale| scale[cell]);
            let mut beyond = HashMap::new();
            lattice.each_bond(&hop.bond, task, |cell, span| {
                let Some(Span { from, to: reached, wrapped, a, b }) = span else { return Ok(()) };
                if wrapped {
                    beyond.insert(cell, to(b)?);
                }
                let end = beyond.get(&cell).map_or(strained.position(reached), Vec::as_slice);
                let (new, old) = (length(end, strained.position(from)), length(a, b));
                // Pairs are what they are; only hoppings are strained.
                let f = if hop.pairing { 1.0 } else { factor(new, old)? };
                if !f.is_finite() {
                    return Err(Error::input(format!(
                        "the strained hopping is not a finite number ({f}) at a bond length of {new}"
                    )));
                }
                scale[cell] = f * before(cell);
                Ok(())
            })?;
            strained.beyond.push(beyond);
            scales.push(Arc::new(scale));
        }
        self.hops.iter_mut().zip(scales).for_each(|(hop, scale)| hop.scale = Some(scale));
        self.strain = Some(Arc::new(strained));
        Ok(())
    }
}

/// The volume of the strained sample: the sum over its cells, each mapped at its corners and linearly between them. None where
/// the map gives no finite position at a corner, which may lie beyond the sites.
fn volume(lattice: &Lattice, map: &mut PositionMap<'_>, task: &Task) -> Result<Option<f64>> {
    let (d, space, cells) = (lattice.dimension(), lattice.space(), lattice.cells());
    let stride: Vec<usize> =
        cells.iter().scan(1, |product, n| Some(std::mem::replace(product, *product * (n + 1)))).collect();
    let corners: usize = cells.iter().map(|n| n + 1).product();
    let mut places = Vec::with_capacity(corners * space);
    let steps = task.start("strained volume", corners);
    for corner in 0..corners {
        if corner.is_multiple_of(1024) {
            steps.advance(corner)?;
        }
        let mut x = vec![0.0; space];
        for (vector, (n, stride)) in lattice.vectors().iter().zip(cells.iter().zip(&stride)) {
            let at = (corner / stride % (n + 1)) as f64;
            x.iter_mut().zip(vector).for_each(|(x, v)| *x += at * v);
        }
        let y = map(&x)?;
        if y.len() != space || y.iter().any(|y| !y.is_finite()) {
            return Ok(None);
        }
        places.extend(y);
    }
    // The determinant of a multilinear map has degree d - 1 in every variable: two Gauss points are exact up to d =
    // 4.
    let gauss: Vec<f64> =
        if d <= 2 { vec![0.5] } else { vec![0.5 - 12f64.sqrt().recip(), 0.5 + 12f64.sqrt().recip()] };
    let points = gauss.len().pow(d as u32);
    let mut sum = 0.0;
    for cell in 0..lattice.cell_count() {
        let at = lattice.coordinates(cell);
        let first: usize = stride.iter().zip(&at).map(|(stride, &x)| stride * x as usize).sum();
        for point in 0..points {
            let u = |k: usize| gauss[point / gauss.len().pow(k as u32) % gauss.len()];
            let mut edges = vec![vec![0.0; space]; d];
            for corner in 0..1usize << d {
                let up = |k: usize| corner >> k & 1 == 1;
                let place: usize = first + (0..d).filter(|&k| up(k)).map(|k| stride[k]).sum::<usize>();
                for (k, edge) in edges.iter_mut().enumerate() {
                    let others = (0..d).filter(|&j| j != k);
                    let weight: f64 = others.map(|j| if up(j) { u(j) } else { 1.0 - u(j) }).product();
                    let weight = if up(k) { weight } else { -weight };
                    edge.iter_mut().zip(&places[place * space..]).for_each(|(e, x)| *e += weight * x);
                }
            }
            sum += content(edges) / points as f64;
        }
    }
    Ok(Some(sum))
}
