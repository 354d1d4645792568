//! Strain: positions move, and every hopping is multiplied by a function of its bond's new and old length.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::lattice::{Arrival, Bond, Lattice, MAX_DIMENSION};
use super::model::Model;
use super::strained::{Strained, content};
use crate::error::{Error, ErrorKind, Result};
use crate::number::memory;
use crate::task::{self, Task};

/// Where a position moves to.
pub type PositionMap<'a> = dyn FnMut(&[f64]) -> Result<Vec<f64>> + 'a;

/// Where many positions move to; both lists have one entry a Cartesian axis, with a number for each position.
pub type PositionsMap<'a> = dyn FnMut(&[&[f64]]) -> Result<Vec<Vec<f64>>> + 'a;

/// The factors of many hoppings, from the new and the old lengths of their bonds.
pub type BondFactors<'a> = dyn FnMut(&[f64], &[f64]) -> Result<Vec<f64>> + 'a;

/// Positions or bonds that a function gets at a time: few enough for the nearest caches.
const TOGETHER: usize = 8192;

/// Positions or bonds that all threads prepare before a function gets them,
/// few enough for an interruption to come soon.
const CHUNK: usize = 8 * TOGETHER;

impl Model {
    /// Moves positions, and multiplies every hopping by `factor(|map(y) - map(x)|, |y - x|)` for its bond from `x` to
    /// `y`. It comes last: no hopping can be added to a strained model.
    ///
    /// # Errors
    /// Those of the functions, a map or factor that is not finite, a model that is strained already or whose orbitals
    /// have places of their own, and interruption.
    pub fn strain(
        &mut self,
        map: &mut PositionMap<'_>,
        factor: &mut dyn FnMut(f64, f64) -> Result<f64>,
        task: &Task,
    ) -> Result<()> {
        let mut one_by_one = |x: &[&[f64]]| {
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
            Err(e) if e.kind() != ErrorKind::Interrupted => None,
            volume => volume?,
        };
        let mut strained = Strained {
            moved: moved_sites(&lattice, map, task)?,
            beyond: Vec::with_capacity(self.hops.len()),
            volume,
        };
        let mut scales = Vec::with_capacity(self.hops.len());
        for hop in self.hops.iter() {
            let beyond = ends_beyond(&lattice, &hop.bond, map, task)?;
            let mut scale = filled(lattice.cell_count(), 1.0);
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
        Arc::make_mut(&mut self.hops).iter_mut().zip(scales).for_each(|(hop, scale)| hop.scale = Some(scale));
        self.strain = Some(Arc::new(strained));
        Ok(())
    }
}

/// A list of equal numbers that all threads write: the system takes its time to give new memory.
fn filled(count: usize, x: f64) -> Vec<f64> {
    let mut all = vec![0.0; count];
    all.par_chunks_mut(CHUNK).for_each(|some| some.fill(x));
    all
}

fn no_position(from: &[f64], to: &[f64]) -> Error {
    Error::input(format!("the strain maps {from:?} to {to:?}, which is no position"))
        .hint("the map gives as many finite coordinates as a position has")
}

/// Where the positions of `x` move to, all finite.
fn checked(map: &mut PositionsMap<'_>, x: &[&[f64]]) -> Result<Vec<Vec<f64>>> {
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
            let from: Vec<f64> = x.iter().map(|x| x[k]).collect();
            let to: Vec<f64> = y.iter().map(|y| y[k]).collect();
            Err(no_position(&from, &to))
        }
    }
}

/// Where positions that are prepared a chunk at a time move to: `prepare` writes those from a number on along an axis,
/// and `take` gets where they are.
fn move_all(
    (count, space): (usize, usize),
    map: &mut PositionsMap<'_>,
    prepare: impl Fn(usize, usize, &mut [f64]) + Sync,
    mut take: impl FnMut(usize, &[Vec<f64>]) -> Result<()>,
) -> Result<()> {
    let mut x = vec![vec![0.0; CHUNK.min(count)]; space];
    for first in (0..count).step_by(CHUNK) {
        let length = CHUNK.min(count - first);
        let parts: Vec<(usize, usize, &mut [f64])> = (0..)
            .zip(&mut x)
            .flat_map(|(axis, x)| (0..).zip(x[..length].chunks_mut(TOGETHER)).map(move |(k, x)| (axis, k, x)))
            .collect();
        parts.into_par_iter().for_each(|(axis, k, x)| prepare(axis, first + k * TOGETHER, x));
        for begin in (0..length).step_by(TOGETHER) {
            let these: Vec<&[f64]> = x.iter().map(|x| &x[begin..(begin + TOGETHER).min(length)]).collect();
            take(first + begin, &checked(map, &these)?)?;
        }
    }
    Ok(())
}

/// Positions of all sites as numbered before removals, along each axis; NaN where a site is gone.
fn moved_sites(lattice: &Lattice, map: &mut PositionsMap<'_>, task: &Task) -> Result<Vec<Vec<f64>>> {
    let (space, sites) = (lattice.space(), lattice.sites());
    let mut moved: Vec<Vec<f64>> = (0..space).map(|_| filled(lattice.all_sites(), f64::NAN)).collect();
    let steps = task.start("strained positions", sites);
    let prepare = |axis: usize, first: usize, x: &mut [f64]| lattice.along_from(axis, first, x);
    move_all((sites, space), map, prepare, |first, to| {
        for (moved, to) in moved.iter_mut().zip(to) {
            if lattice.has_removed() {
                to.iter().zip(first..).for_each(|(x, site)| moved[lattice.full(site)] = *x);
            } else {
                moved[first..first + to.len()].copy_from_slice(to);
            }
        }
        steps.advance(first)
    })?;
    Ok(moved)
}

/// Calls `visit` for every cell that a bond leaves across a boundary, in order, with its coordinates.
fn each_crossing(lattice: &Lattice, bond: &Bond, mut visit: impl FnMut(usize, &[i64; MAX_DIMENSION])) {
    let (cells, first) = (lattice.cells(), bond.shift[0]);
    let length = cells[0];
    for line in 0..lattice.cell_count() / length {
        let mut at = lattice.coordinates(line * length);
        let stays = |d: usize| (0..cells[d] as i64).contains(&(at[d] + bond.shift[d]));
        let across = match (1..cells.len()).all(stays) {
            true if first >= 0 => length.saturating_sub(first as usize)..length,
            true => 0..length.min(first.unsigned_abs() as usize),
            false => 0..length,
        };
        for x in across {
            at[0] = x as i64;
            visit(line * length + x, &at);
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
    let (space, basis) = (lattice.space(), lattice.basis().len());
    let (mut from, mut x) = (Vec::new(), vec![Vec::new(); space]);
    let mut position = vec![0.0; space];
    each_crossing(lattice, bond, |cell, at| {
        let there = |landing: &Arrival| {
            lattice.number(cell * basis + bond.from).is_some()
                && lattice.number(landing.cell * basis + bond.to).is_some()
        };
        if lattice.land(at, &bond.shift, 1).filter(there).is_some() {
            let mut end = *at;
            end.iter_mut().zip(&bond.shift).for_each(|(x, s)| *x += s);
            lattice.position_into(&end, bond.to, &mut position);
            x.iter_mut().zip(&position).for_each(|(x, p)| x.push(*p));
            from.push(cell);
        }
    });
    let mut beyond = HashMap::with_capacity(from.len());
    let prepare =
        |axis: usize, first: usize, some: &mut [f64]| some.copy_from_slice(&x[axis][first..][..some.len()]);
    move_all((from.len(), space), map, prepare, |first, to| {
        task.check()?;
        let ends = (0..to[0].len()).map(|k| (from[first + k], to.iter().map(|to| to[k]).collect()));
        beyond.extend(ends);
        Ok(())
    })?;
    Ok(beyond)
}

/// The strained lengths of a bond from each cell on from `first`; NaN where it is absent.
fn lengths(
    lattice: &Lattice,
    bond: &Bond,
    (moved, beyond): (&[Vec<f64>], &HashMap<usize, Vec<f64>>),
    first: usize,
    out: &mut [f64],
) {
    let (basis, cells) = (lattice.basis().len(), lattice.cells());
    // The first cell of a line from which the bond leaves it upwards.
    let leaving = cells[0] as i64 - bond.shift[0].max(0);
    let mut last = (usize::MAX, [0; MAX_DIMENSION]);
    let mut k = 0;
    while k < out.len() {
        let cell = first + k;
        last = lattice.cell_after(last, cell);
        let at = &mut last.1[..cells.len()];
        let landing = lattice.land(at, &bond.shift, 1);
        if let Some(landing) = &landing
            && !landing.wrapped
            && !lattice.has_removed()
        {
            let count = ((leaving - at[0]) as usize).min(out.len() - k);
            let (from, to) = (cell * basis + bond.from, landing.cell * basis + bond.to);
            let out = &mut out[k..k + count];
            out.fill(0.0);
            for moved in moved {
                let ends = moved[to..].iter().step_by(basis).zip(moved[from..].iter().step_by(basis));
                out.iter_mut().zip(ends).for_each(|(square, (to, from))| *square += (to - from).powi(2));
            }
            out.iter_mut().for_each(|square| *square = square.sqrt());
            at[0] += count as i64 - 1;
            last.0 += count - 1;
            k += count;
            continue;
        }
        out[k] = landing.map_or(f64::NAN, |landing| {
            let (from, to) = (cell * basis + bond.from, landing.cell * basis + bond.to);
            if lattice.number(from).is_none() || lattice.number(to).is_none() {
                return f64::NAN;
            }
            let end = if landing.wrapped { beyond.get(&cell) } else { None };
            let reached = |axis: usize| end.map_or(moved[axis][to], |end| end[axis]);
            (0..moved.len()).fold(0.0, |sum, axis| sum + (reached(axis) - moved[axis][from]).powi(2)).sqrt()
        });
        k += 1;
    }
}

/// Multiplies `scale`, a number for each cell, by what a strain makes of the bonds that leave it.
fn scale_bonds(
    lattice: &Lattice,
    bond: &Bond,
    strained: (&[Vec<f64>], &HashMap<usize, Vec<f64>>),
    factor: &mut BondFactors<'_>,
    scale: &mut [f64],
    task: &Task,
) -> Result<()> {
    let axes: Vec<usize> = (0..lattice.space()).collect();
    let old = lattice.reach(&bond.shift, (bond.from, bond.to), &axes).map(|x| x * x).sum::<f64>().sqrt();
    let old = vec![old; TOGETHER.min(scale.len())];
    let mut new = vec![0.0; CHUNK.min(scale.len())];
    let steps = task.start("strained hoppings", scale.len());
    for (chunk, scale) in scale.chunks_mut(CHUNK).enumerate() {
        let new = &mut new[..scale.len()];
        new.par_chunks_mut(TOGETHER).enumerate().for_each(|(k, new)| {
            lengths(lattice, bond, strained, chunk * CHUNK + k * TOGETHER, new);
        });
        for (new, scale) in new.chunks(TOGETHER).zip(scale.chunks_mut(TOGETHER)) {
            let there: Vec<f64> = new.iter().copied().filter(|length| !length.is_nan()).collect();
            let factors = factor(&there, &old[..there.len()])?;
            if factors.len() != there.len() {
                return Err(Error::input(format!(
                    "{} factors for {} strained bonds",
                    factors.len(),
                    there.len()
                ))
                .hint("return a factor for each"));
            }
            if let Some(k) = factors.iter().position(|f| !f.is_finite()) {
                return Err(Error::input(format!(
                    "the strained hopping is not a finite number ({}) at a bond length of {}",
                    factors[k], there[k]
                ))
                .hint("the law has to hold at every length that a bond takes on"));
            }
            if there.len() == new.len() {
                scale.iter_mut().zip(factors).for_each(|(scale, f)| *scale *= f);
            } else {
                let present = scale.iter_mut().zip(new).filter(|(_, length)| !length.is_nan());
                present.zip(factors).for_each(|((scale, _), f)| *scale *= f);
            }
        }
        steps.advance(chunk * CHUNK)?;
    }
    Ok(())
}

/// The volume of the strained sample: the sum over its cells, each mapped at its corners and linearly between them.
/// None where the map gives no finite position at a corner, which may lie beyond the sites.
fn volume(lattice: &Lattice, map: &mut PositionsMap<'_>, task: &Task) -> Result<Option<f64>> {
    let (d, space, cells) = (lattice.dimension(), lattice.space(), lattice.cells());
    let stride: Vec<usize> =
        cells.iter().scan(1, |product, n| Some(std::mem::replace(product, *product * (n + 1)))).collect();
    let corners: usize = cells.iter().map(|n| n + 1).product();
    let mut places = vec![Vec::with_capacity(corners); space];
    let steps = task.start("strained volume", corners);
    let prepare = |axis: usize, first: usize, x: &mut [f64]| {
        for (k, x) in x.iter_mut().enumerate() {
            let mut rest = first + k;
            *x = 0.0;
            for direction in 0..d {
                *x += (rest % (cells[direction] + 1)) as f64 * lattice.vectors()[direction][axis];
                rest /= cells[direction] + 1;
            }
        }
    };
    let done = move_all((corners, space), map, prepare, |first, to| {
        places.iter_mut().zip(to).for_each(|(places, to)| places.extend_from_slice(to));
        steps.advance(first)
    });
    if done.is_err() {
        task.check()?;
        return Ok(None);
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
    let planar: Option<&[f64; 8]> = weights.as_slice().try_into().ok();
    let stop = task::current();
    let some = |chunk: usize| {
        stop.heed();
        let mut edges = vec![0.0; d * space];
        let (mut sum, mut last) = (0.0, (usize::MAX, [0; MAX_DIMENSION]));
        for cell in chunk * CHUNK..((chunk + 1) * CHUNK).min(lattice.cell_count()) {
            last = lattice.cell_after(last, cell);
            let mut first = 0;
            for k in 0..d {
                first += stride[k] * last.1[k] as usize;
            }
            if let ([x, y], Some(weights), [_, a, b, c]) = (&places[..], planar, &beside[..]) {
                // The same in the plane, by far the most frequent.
                let corners = [first, first + a, first + b, first + c];
                let along = |places: &[f64], weights: &[f64]| {
                    let mut edge = 0.0;
                    for end in 0..4 {
                        edge += weights[end] * places[corners[end]];
                    }
                    edge
                };
                let (u, v) = weights.split_at(4);
                sum += content(&mut [along(x, u), along(y, u), along(x, v), along(y, v)], space);
                continue;
            }
            for weights in weights.chunks(d * ends) {
                for k in 0..d * space {
                    let (weights, places) = (&weights[k / space * ends..][..ends], &places[k % space]);
                    edges[k] = 0.0;
                    for end in 0..ends {
                        edges[k] += weights[end] * places[first + beside[end]];
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
