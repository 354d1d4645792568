//! Strain: positions move, and every hopping is multiplied by a function of its bond's new and old length.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::lattice::{Bond, Lattice, MAX_DIMENSION};
use super::model::Model;
use super::strained::{Strained, content};
use crate::error::{Error, Kind, Result};
use crate::number::memory;
use crate::task::{self, Task};

/// Where a position moves to.
pub type PositionMap<'a> = dyn FnMut(&[f64]) -> Result<Vec<f64>> + 'a;

/// Where many positions move to; both lists have one entry a Cartesian axis, with a number for each position.
pub type PositionsMap<'a> = dyn FnMut(&[Vec<f64>]) -> Result<Vec<Vec<f64>>> + 'a;

/// The factors of many hoppings, from the new and the old lengths of their bonds.
pub type BondFactors<'a> = dyn FnMut(&[f64], &[f64]) -> Result<Vec<f64>> + 'a;

/// Positions or bonds that a function gets at a time: few enough for the caches, and for an interruption to come soon.
const CHUNK: usize = 32768;

/// Those of them that a thread looks at.
const PART: usize = 4096;

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
        let mut one_by_one = |x: &[Vec<f64>]| {
            let mut moved = vec![Vec::with_capacity(x[0].len()); x.len()];
            let mut position = vec![0.0; x.len()];
            for k in 0..x[0].len() {
                position.iter_mut().zip(x).for_each(|(p, x)| *p = x[k]);
                let to = map(&position)?;
                if to.len() != x.len() {
                    return Err(no_position(&position, &to));
                }
                moved.iter_mut().zip(to).for_each(|(moved, x)| moved.push(x));
            }
            Ok(moved)
        };
        let mut factors =
            |new: &[f64], old: &[f64]| new.iter().zip(old).map(|(new, old)| factor(*new, *old)).collect();
        self.strain_many(&mut one_by_one, &mut factors, task)
    }

    /// As [`Model::strain`], by functions of many positions and bonds at a time.
    ///
    /// # Errors
    /// Those of [`Model::strain`], and a number of results that is not that of the arguments.
    pub fn strain_many(
        &mut self,
        map: &mut PositionsMap<'_>,
        factor: &mut BondFactors<'_>,
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
        let mut strained = Strained {
            space,
            moved: moved_sites(&lattice, map, task)?,
            beyond: Vec::with_capacity(self.hops.len()),
            volume,
        };
        let mut scales = Vec::with_capacity(self.hops.len());
        for hop in &self.hops {
            let beyond = ends_beyond(&lattice, &hop.bond, map, task)?;
            let mut scale = vec![1.0; lattice.cell_count()];
            if let Some(before) = &hop.scale {
                scale.copy_from_slice(before);
            }
            // Pairs are what they are; only hoppings are strained.
            if !hop.pairing {
                scale_bonds(&lattice, &hop.bond, (&strained.moved, &beyond), factor, &mut scale, task)?;
            }
            strained.beyond.push(beyond);
            scales.push(Arc::new(scale));
        }
        self.hops.iter_mut().zip(scales).for_each(|(hop, scale)| hop.scale = Some(scale));
        self.strain = Some(Arc::new(strained));
        Ok(())
    }
}

fn length(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
}

fn no_position(from: &[f64], to: &[f64]) -> Error {
    Error::input(format!("the strain maps {from:?} to {to:?}, which is no position"))
}

/// Where the positions of `x` move to, all finite.
fn checked(map: &mut PositionsMap<'_>, x: &[Vec<f64>]) -> Result<Vec<Vec<f64>>> {
    let y = map(x)?;
    if y.len() != x.len() || y.iter().zip(x).any(|(y, x)| y.len() != x.len()) {
        return Err(Error::input(format!(
            "the strain maps {} positions in {} dimensions to {} in {}",
            x[0].len(),
            x.len(),
            y.first().map_or(0, Vec::len),
            y.len()
        ))
        .hint("return as many coordinates as there are axes"));
    }
    let bad = y.iter().filter_map(|y| y.iter().position(|y| !y.is_finite())).min();
    match bad {
        None => Ok(y),
        Some(k) => {
            let at = |all: &[Vec<f64>]| all.iter().map(|x| x[k]).collect::<Vec<_>>();
            Err(no_position(&at(x), &at(&y)))
        }
    }
}

/// Positions of all sites as numbered before removals, one after the other; NaN where a site is gone.
fn moved_sites(lattice: &Lattice, map: &mut PositionsMap<'_>, task: &Task) -> Result<Vec<f64>> {
    let (space, sites, basis) = (lattice.space(), lattice.sites(), lattice.basis().len());
    let mut moved = vec![f64::NAN; lattice.all_sites() * space];
    let steps = task.start("strained positions", sites);
    for first in (0..sites).step_by(CHUNK) {
        let chunk = first..(first + CHUNK).min(sites);
        let along = |axis: usize| {
            let mut last = (usize::MAX, [0; MAX_DIMENSION]);
            let one = |site: usize| {
                let full = lattice.full(site);
                last = lattice.cell_after(last, full / basis);
                let start = lattice.basis()[full % basis].position[axis];
                let cells = lattice.vectors().iter().zip(last.1);
                cells.fold(start, |sum, (vector, x)| sum + x as f64 * vector[axis])
            };
            chunk.clone().map(one).collect()
        };
        let x: Vec<Vec<f64>> = (0..space).into_par_iter().map(along).collect();
        let y = checked(map, &x)?;
        for (k, site) in chunk.clone().enumerate() {
            let to = &mut moved[lattice.full(site) * space..][..space];
            to.iter_mut().zip(&y).for_each(|(to, y)| *to = y[k]);
        }
        steps.advance(chunk.end)?;
    }
    Ok(moved)
}

/// Calls `visit` with the cell and both sites, as numbered before removals, of every bond that is there (or of those alone that
/// cross a boundary), and with the coordinates of its cell and whether it crosses a boundary.
fn each_bond(
    lattice: &Lattice,
    bond: &Bond,
    cells: Range<usize>,
    crossing: bool,
    mut visit: impl FnMut(usize, [usize; 2], &[i64; MAX_DIMENSION], bool),
) {
    let basis = lattice.basis().len();
    let mut last = (usize::MAX, [0; MAX_DIMENSION]);
    for cell in cells {
        last = lattice.cell_after(last, cell);
        let inside = || {
            let mut ends = last.1.iter().zip(&bond.shift).map(|(x, s)| x + s).zip(lattice.cells());
            ends.all(|(x, n)| x >= 0 && x < *n as i64)
        };
        if crossing && inside() {
            continue;
        }
        let Some(landing) = lattice.land(&last.1, &bond.shift, 1) else { continue };
        let ends = [cell * basis + bond.from, landing.cell * basis + bond.to];
        if ends.iter().all(|&full| lattice.number(full).is_some()) {
            visit(cell, ends, &last.1, landing.wrapped);
        }
    }
}

/// Where the ends of bonds beyond a boundary move to, by the cell that the bond leaves.
fn ends_beyond(
    lattice: &Lattice,
    bond: &Bond,
    map: &mut PositionsMap<'_>,
    task: &Task,
) -> Result<HashMap<usize, Vec<f64>>> {
    let (space, cells) = (lattice.space(), lattice.cell_count());
    let mut beyond = HashMap::new();
    if bond.shift.iter().all(|x| *x == 0) {
        return Ok(beyond);
    }
    let mut position = vec![0.0; space];
    for first in (0..cells).step_by(CHUNK) {
        task.check()?;
        let (mut from, mut x) = (Vec::new(), vec![Vec::new(); space]);
        each_bond(lattice, bond, first..(first + CHUNK).min(cells), true, |cell, _, at, wrapped| {
            if wrapped {
                let mut end = *at;
                end.iter_mut().zip(&bond.shift).for_each(|(x, s)| *x += s);
                lattice.position_into(&end, bond.to, &mut position);
                x.iter_mut().zip(&position).for_each(|(x, p)| x.push(*p));
                from.push(cell);
            }
        });
        if !from.is_empty() {
            let y = checked(map, &x)?;
            beyond.extend(
                from.into_iter().enumerate().map(|(k, cell)| (cell, y.iter().map(|y| y[k]).collect())),
            );
        }
    }
    Ok(beyond)
}

/// Multiplies `scale`, a number for each cell, by what a strain makes of the bonds that leave it.
fn scale_bonds(
    lattice: &Lattice,
    bond: &Bond,
    (moved, beyond): (&[f64], &HashMap<usize, Vec<f64>>),
    factor: &mut BondFactors<'_>,
    scale: &mut [f64],
    task: &Task,
) -> Result<()> {
    let (space, cells) = (lattice.space(), lattice.cell_count());
    let axes: Vec<usize> = (0..space).collect();
    let old = lattice.reach(&bond.shift, (bond.from, bond.to), &axes).map(|x| x * x).sum::<f64>().sqrt();
    let steps = task.start("strained hoppings", cells);
    for first in (0..cells).step_by(CHUNK) {
        let chunk = first..(first + CHUNK).min(cells);
        let some = |begin: usize| {
            let cells = begin..(begin + PART).min(chunk.end);
            let mut list = Vec::with_capacity(cells.len());
            each_bond(lattice, bond, cells, false, |cell, [from, to], _, wrapped| {
                let from = &moved[from * space..][..space];
                let end = if wrapped { beyond.get(&cell) } else { None };
                let end = end.map_or(&moved[to * space..][..space], Vec::as_slice);
                list.push((cell, length(end, from)));
            });
            list
        };
        let starts: Vec<usize> = chunk.clone().step_by(PART).collect();
        let parts: Vec<Vec<(usize, f64)>> = starts.into_par_iter().map(some).collect();
        let (there, new): (Vec<usize>, Vec<f64>) = parts.into_iter().flatten().unzip();
        let factors = factor(&new, &vec![old; new.len()])?;
        if factors.len() != new.len() {
            return Err(Error::input(format!("{} factors for {} strained bonds", factors.len(), new.len()))
                .hint("return a factor for each"));
        }
        for (k, f) in factors.into_iter().enumerate() {
            if !f.is_finite() {
                return Err(Error::input(format!(
                    "the strained hopping is not a finite number ({f}) at a bond length of {}",
                    new[k]
                )));
            }
            scale[there[k]] *= f;
        }
        steps.advance(chunk.end)?;
    }
    Ok(())
}

/// The volume of the strained sample: the sum over its cells, each mapped at its corners and linearly between them. None where
/// the map gives no finite position at a corner, which may lie beyond the sites.
fn volume(lattice: &Lattice, map: &mut PositionsMap<'_>, task: &Task) -> Result<Option<f64>> {
    let (d, space, cells) = (lattice.dimension(), lattice.space(), lattice.cells());
    let stride: Vec<usize> =
        cells.iter().scan(1, |product, n| Some(std::mem::replace(product, *product * (n + 1)))).collect();
    let corners: usize = cells.iter().map(|n| n + 1).product();
    let mut places = vec![Vec::with_capacity(corners); space];
    let steps = task.start("strained volume", corners);
    let (mut at, mut x) = (vec![0usize; d], vec![0.0; space]);
    for first in (0..corners).step_by(CHUNK) {
        let chunk = first..(first + CHUNK).min(corners);
        let mut from = vec![Vec::with_capacity(chunk.len()); space];
        for _ in chunk.clone() {
            x.fill(0.0);
            for (vector, at) in lattice.vectors().iter().zip(&at) {
                x.iter_mut().zip(vector).for_each(|(x, v)| *x += *at as f64 * v);
            }
            from.iter_mut().zip(&x).for_each(|(from, x)| from.push(*x));
            for (x, n) in at.iter_mut().zip(cells) {
                *x = if *x == *n { 0 } else { *x + 1 };
                if *x > 0 {
                    break;
                }
            }
        }
        let Ok(to) = checked(map, &from) else {
            task.check()?;
            return Ok(None);
        };
        places.iter_mut().zip(to).for_each(|(places, to)| places.extend(to));
        steps.advance(chunk.end)?;
    }
    drop(steps);
    // The determinant of a multilinear map has degree d - 1 in every variable: two Gauss points are exact up to d =
    // 4.
    let gauss: Vec<f64> =
        if d <= 2 { vec![0.5] } else { vec![0.5 - 12f64.sqrt().recip(), 0.5 + 12f64.sqrt().recip()] };
    let points = gauss.len().pow(d as u32);
    // What the places of the corners contribute to each edge, point after point.
    let up = |corner: usize, k: usize| corner >> k & 1 == 1;
    let weight = |point: usize, k: usize, corner: usize| {
        let u = |j: usize| gauss[point / gauss.len().pow(j as u32) % gauss.len()];
        let others = (0..d).filter(|&j| j != k);
        let weight: f64 = others.map(|j| if up(corner, j) { u(j) } else { 1.0 - u(j) }).product();
        if up(corner, k) { weight } else { -weight }
    };
    let ends = 1usize << d;
    let weights: Vec<f64> =
        (0..points * d * ends).map(|i| weight(i / (d * ends), i / ends % d, i % ends)).collect();
    let beside: Vec<usize> =
        (0..ends).map(|corner| (0..d).filter(|&k| up(corner, k)).map(|k| stride[k]).sum()).collect();
    let stop = task::current();
    let some = |chunk: usize| {
        stop.heed();
        let mut edges = vec![0.0; d * space];
        let (mut sum, mut last) = (0.0, (usize::MAX, [0; MAX_DIMENSION]));
        for cell in chunk * CHUNK..((chunk + 1) * CHUNK).min(lattice.cell_count()) {
            last = lattice.cell_after(last, cell);
            let first: usize = stride.iter().zip(&last.1).map(|(stride, &x)| stride * x as usize).sum();
            for weights in weights.chunks(d * ends) {
                for (edge, weights) in edges.chunks_mut(space).zip(weights.chunks(ends)) {
                    for (e, places) in edge.iter_mut().zip(&places) {
                        *e = beside.iter().zip(weights).map(|(beside, w)| w * places[first + beside]).sum();
                    }
                }
                sum += content(&mut edges, space) / points as f64;
            }
        }
        sum
    };
    let sums: Vec<f64> = (0..lattice.cell_count().div_ceil(CHUNK)).into_par_iter().map(some).collect();
    Ok(Some(sums.iter().sum()))
}
