//! The flux of the Berry curvature of the filled bands, on grids that are finer where the gap is small: Chern numbers,
//! and how Kramers pairs change their partners.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::{PI, TAU};

use rayon::prelude::*;

use super::filled::{NO_GAP, check_filled, gap, overlap};
use super::plane::Plane;
use super::size::most_change;
use super::{GAPPED, at_each, keep, levels, lowest, no_gap};
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::{C64, Matrix};
use crate::task::Task;

/// How often a cell of the first grid is halved at most.
const HALVINGS: u32 = 22;
/// Momenta after which no more cells are divided to prove what their corners already say, for matrices of `SMALL` rows
/// or fewer.
const MOMENTA: usize = 1 << 15;
const SMALL: usize = 16;
/// The same for large matrices.
const FEW_MOMENTA: usize = 1 << 12;
/// Corners of a cell whose states overlap by more than this in every direction have no crossing between them, unless it
/// is hidden in the middle: around one, the states of neighbouring corners would turn by 45 degrees or more.
const ALIKE: f64 = 0.9;
/// What sums of phases may be off from integers, and the two phases of a pair from one another, by rounding.
const INTEGER: f64 = 1e-3;

/// A momentum of the finest grid.
type Corner = (u64, u64);

/// What is known at a momentum.
struct AtMomentum {
    states: Matrix,
    gap: f64,
    width: f64,
}

/// A square of the grid.
#[derive(Clone, Copy)]
struct Plaquette {
    corner: Corner,
    size: u64,
}

/// Points of a plane in momentum space, finer where flux is found, and what is known there.
struct PlaneGrid<'a> {
    bloch: &'a Bloch,
    plane: &'a Plane,
    filled: usize,
    /// Points of the finest grid in each direction.
    points: u64,
    /// How much a level can move at most per unit of momentum in each of the two directions.
    speeds: [f64; 2],
    known: BTreeMap<Corner, AtMomentum>,
}

impl PlaneGrid<'_> {
    fn wrapped(&self, (a, b): Corner) -> Corner {
        (a % self.points, b % self.points)
    }

    fn corners(&self, cell: Plaquette) -> [Corner; 4] {
        let ((a, b), s) = (cell.corner, cell.size);
        [(a, b), (a + s, b), (a + s, b + s), (a, b + s)].map(|corner| self.wrapped(corner))
    }

    /// Makes the corners of cells known.
    fn visit(&mut self, cells: &[Plaquette], task: &Task) -> Result<()> {
        let corners = cells.iter().flat_map(|cell| self.corners(*cell));
        let new: Vec<Corner> =
            corners.filter(|c| !self.known.contains_key(c)).collect::<BTreeSet<_>>().into_iter().collect();
        keep(self.known.len() + new.len(), self.bloch.rows() * self.filled)?;
        let part = |x: u64| x as f64 / self.points as f64;
        let momenta: Vec<Vec<f64>> =
            new.iter().map(|(a, b)| self.plane.momentum(part(*a), part(*b))).collect();
        let found = at_each(&momenta, "Chern number", task, |k| {
            let l = levels(self.bloch, k)?;
            let width = l.energies.iter().fold(0.0f64, |w, e| w.max(e.abs()));
            Ok(AtMomentum {
                states: lowest(&l.vectors, self.filled)?,
                gap: gap(&l.energies, self.filled),
                width,
            })
        })?;
        self.known.extend(new.into_iter().zip(found));
        Ok(())
    }

    /// Whether no crossing can lie inside a cell: at its corners the gap is larger than what the levels can move from
    /// there.
    fn open(&self, cell: Plaquette) -> bool {
        let side = cell.size as f64 / self.points as f64;
        let gap = self.corners(cell).iter().map(|c| self.known[c].gap).fold(f64::INFINITY, f64::min);
        gap > side * (self.speeds[0] + self.speeds[1])
    }

    /// Whether the states at the corners of a cell are alike.
    fn alike(&self, cell: Plaquette) -> Result<bool> {
        let c = self.corners(cell);
        for (p, q) in [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)] {
            let (_, values, _) = overlap(&self.known[&c[p]].states, &self.known[&c[q]].states)?.svd()?;
            if values.as_real("overlaps")?.iter().any(|s| *s < ALIKE) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The phase of the overlaps along an edge, by way of all momenta on it that are known: cells on both sides see the
    /// same.
    fn edge(&self, from: Corner, to: Corner) -> Result<C64> {
        let middle = ((from.0 + to.0) / 2, (from.1 + to.1) / 2);
        let whole = (from.0 + to.0).is_multiple_of(2) && (from.1 + to.1).is_multiple_of(2);
        if whole && middle != from && self.known.contains_key(&self.wrapped(middle)) {
            return Ok(self.edge(from, middle)? * self.edge(middle, to)?);
        }
        let [p, q] = [from, to].map(|corner| &self.known[&self.wrapped(corner)].states);
        let z = overlap(p, q)?.det()?.to_c64();
        Ok(z / z.norm())
    }

    /// The field strength of a cell, between -pi and pi.
    fn strength(&self, cell: Plaquette) -> Result<f64> {
        let ((a, b), s) = (cell.corner, cell.size);
        let forth = self.edge((a, b), (a + s, b))? * self.edge((a + s, b), (a + s, b + s))?;
        let back = self.edge((a, b), (a, b + s))? * self.edge((a, b + s), (a + s, b + s))?;
        Ok((forth * back.conj()).arg())
    }

    /// The sum of field strengths.
    fn flux(&self, cells: &[Plaquette]) -> Result<f64> {
        cells.par_iter().map(|cell| self.strength(*cell)).sum()
    }

    /// The turns of all cells, an integer, for a right-handed plane.
    fn turns(&self, cells: &[Plaquette]) -> Result<f64> {
        let turns = -self.flux(cells)? / TAU;
        if (turns - turns.round()).abs() > INTEGER {
            return Err(Error::numeric(format!(
                "field strengths that sum to {turns} turns; the least gap is {:.1e}",
                self.least().0
            )));
        }
        Ok(turns)
    }

    /// Twice the phases of the Kramers pairs of the loop along the first direction at `row` of the finest grid, which
    /// time reversal maps to itself: a sum that is known up to multiples of 4 pi.
    fn pairs(&self, row: u64) -> Result<f64> {
        let line: Vec<u64> = self.known.keys().filter(|(_, b)| *b == row).map(|(a, _)| *a).collect();
        let mut product = Matrix::identity(self.filled)?;
        for (at, a) in line.iter().enumerate() {
            let next = line[(at + 1) % line.len()];
            let [p, q] = [*a, next].map(|a| &self.known[&(a, row)].states);
            let (u, _, v) = overlap(p, q)?.svd()?;
            product = product.matmul(&u.matmul(&v.dagger())?)?;
        }
        let mut phases: Vec<f64> = product.eigvals()?.to_complex().iter().map(|z| z.arg()).collect();
        phases.sort_by(f64::total_cmp);
        // The two of a pair are neighbours on the circle, of which the list is cut open somewhere.
        let turned: Vec<f64> = phases[1..].iter().copied().chain([phases[0] + TAU]).collect();
        let apart = |of: &[f64]| of.chunks(2).fold(0.0f64, |most, pair| most.max(pair[1] - pair[0]));
        let pairs = if apart(&phases) <= apart(&turned) { phases } else { turned };
        if apart(&pairs) > INTEGER {
            return Err(Error::input(format!(
                "no time reversal of half-integer spin: two Wannier centres of a pair are {:.1e} apart",
                apart(&pairs) / TAU
            ))
            .hint("the Z2 invariant needs a model with spin whose levels come in Kramers pairs"));
        }
        Ok(pairs.iter().sum())
    }

    /// The place of the least gap.
    fn least(&self) -> (f64, Vec<f64>, f64) {
        let width = self.known.values().fold(0.0f64, |w, known| w.max(known.width));
        let place = self.known.iter().min_by(|a, b| a.1.gap.total_cmp(&b.1.gap));
        let part = |x: u64| x as f64 / self.points as f64;
        place.map_or((f64::INFINITY, Vec::new(), width), |((a, b), known)| {
            (known.gap, self.plane.momentum(part(*a), part(*b)), width)
        })
    }
}

/// A grid of momenta, and its cells, each so small that its field strength is known. The grid begins with `n` points in
/// each direction. A cell is divided until its field strength is below pi/2 and no crossing can lie inside: the gap at
/// its corners is more than what the hops let levels move. After very many momenta it suffices that the states at its
/// corners are alike.
fn resolved<'a>(
    bloch: &'a Bloch,
    filled: usize,
    plane: &'a Plane,
    n: usize,
    task: &Task,
) -> Result<(PlaneGrid<'a>, Vec<Plaquette>)> {
    // The cells, their corners and the momenta of these, beside the states there.
    keep(n * n, bloch.rows() * filled + 16)?;
    let size = 1 << HALVINGS;
    let along = |d: usize| (0..bloch.dimension()).map(|x| f64::from(u8::from(x == d))).collect::<Vec<f64>>();
    let speeds = plane.directions.map(|d| most_change(bloch, &along(d)));
    let mut grid =
        PlaneGrid { bloch, plane, filled, points: n as u64 * size, speeds, known: BTreeMap::new() };
    let patience = (MOMENTA * SMALL * SMALL / bloch.rows().max(SMALL).pow(2)).max(FEW_MOMENTA).max(2 * n * n);
    let mut cells: Vec<Plaquette> = (0..n as u64 * n as u64)
        .map(|p| Plaquette { corner: (p / n as u64 * size, p % n as u64 * size), size })
        .collect();
    let mut leaves = Vec::new();
    while !cells.is_empty() {
        grid.visit(&cells, task)?;
        let (gap, place, width) = grid.least();
        if gap <= NO_GAP * width {
            return Err(no_gap(filled, &place));
        }
        let tired = grid.known.len() > patience;
        let fine: Result<Vec<bool>> = cells
            .par_iter()
            .map(|cell| {
                Ok((tired || grid.open(*cell))
                    && grid.alike(*cell)?
                    && grid.strength(*cell)?.abs() < PI / 2.0)
            })
            .collect();
        let mut coarse = Vec::new();
        for (cell, fine) in cells.iter().zip(fine?) {
            if fine {
                leaves.push(*cell);
                continue;
            }
            let half = cell.size / 2;
            if half == 0 || grid.known.len() > 4 * patience {
                return Err(Error::numeric(format!(
                    "the gap above band {filled} is {gap:.1e} or less near k = {place:?}, too small for a Chern \
                     number, or closed"
                ))
                .hint(GAPPED));
            }
            let (a, b) = cell.corner;
            coarse.extend(
                [(a, b), (a + half, b), (a + half, b + half), (a, b + half)]
                    .map(|corner| Plaquette { corner, size: half }),
            );
        }
        cells = coarse;
    }
    Ok((grid, leaves))
}

/// The Chern number of the `filled` lowest bands from the field strengths of the cells of a grid of momenta, which sum
/// to an integer on any grid (Fukui, Hatsugai, Suzuki, J. Phys. Soc. Jpn. 74 (2005) 1674, equations 7 to 9). The grid
/// begins with `n` points in each direction and is finer where the gap is small.
///
/// # Errors
/// No gap, directions or fillings that do not fit, a gap so small that the grid would be too large.
pub fn chern_number(bloch: &Bloch, filled: usize, plane: &Plane, n: usize, task: &Task) -> Result<i64> {
    plane.check(bloch)?;
    check_filled(bloch, filled)?;
    if !(2..=1 << 14).contains(&n) {
        return Err(Error::input(format!("a grid of {n} points in each direction"))
            .hint("take two at least, and 2^14 at most"));
    }
    if filled == bloch.rows() {
        return Ok(0);
    }
    let (grid, leaves) = resolved(bloch, filled, plane, n, task)?;
    Ok((plane.hand(bloch) * grid.turns(&leaves)?).round() as i64)
}

/// Whether Kramers pairs of the filled bands change their partners an odd number of times over half of a plane: the
/// Berry phase of the loops at both ends, each pair's counted once and doubled, less the flux between them, in turns
/// (Fu, Kane, PRB 74 (2006) 195312). The grid begins with `n` points in each direction, an even number.
///
/// # Errors
/// As [`chern_number`]; a Chern number that is not zero, and loops without Kramers pairs.
pub(super) fn partners_change(
    bloch: &Bloch,
    filled: usize,
    plane: &Plane,
    n: usize,
    task: &Task,
) -> Result<bool> {
    if filled == bloch.rows() {
        return Ok(false);
    }
    let (mut grid, leaves) = resolved(bloch, filled, plane, n, task)?;
    // Time reversal turns the curvature round.
    let chern = plane.hand(bloch) * grid.turns(&leaves)?.round();
    if chern != 0.0 {
        return Err(Error::input(format!("no time reversal: the Chern number is {chern}"))
            .hint("`chern_number` is the invariant of a system without it"));
    }
    let ends = [0, grid.points / 2];
    // With the momenta that rounding kept on one side only, loops have pairs to the last digit.
    let mirrored = grid.known.keys().filter(|(_, b)| ends.contains(b)).map(|(a, b)| (grid.points - a, *b));
    let mirrored: Vec<Plaquette> = mirrored.map(|corner| Plaquette { corner, size: 0 }).collect();
    grid.visit(&mirrored, task)?;
    let half: Vec<Plaquette> = leaves.into_iter().filter(|cell| cell.corner.1 < ends[1]).collect();
    let [start, end] = ends.map(|row| grid.pairs(row));
    let turns = (start? - end? - grid.flux(&half)?) / TAU;
    if (turns - turns.round()).abs() > INTEGER {
        return Err(Error::numeric(format!("the Wannier centres of half a plane move by {turns} turns"))
            .hint("the gap is too small; near a transition no grid is fine enough"));
    }
    Ok(turns.round().rem_euclid(2.0) == 1.0)
}
