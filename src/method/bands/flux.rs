//! The flux of the Berry curvature of the filled bands, on grids that are finer where the gap is small: Chern numbers,
//! and how Kramers pairs change their partners.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::{PI, TAU};

use rayon::prelude::*;

use super::filled::{NO_GAP, check_filled, gap, overlap};
use super::plane::Plane;
use super::size::{most_bend, most_change};
use super::{GAPPED, Levels, at_each, keep, levels, lowest, no_gap, split};
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::hermitian::positive;
use crate::number::{C64, Matrix};
use crate::task::Task;

/// Points in each direction of the first grid of matrices of `SMALL` rows or fewer, and of larger ones, which belong to
/// large cells in most cases.
const POINTS: usize = 16;
const FEW_POINTS: usize = 4;
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
/// The determinant of the overlaps along an edge of a cell, at least: the phases that each of many bands takes by a
/// step straight through the space of states cannot sum to half a turn.
const NEAR: f64 = 0.5;
/// What sums of phases may be off from integers, and the two phases of a pair from one another, by rounding.
const INTEGER: f64 = 1e-3;
/// How often the size of a box is halved at once that is looked through around a momentum.
const BOXES: usize = 8;

/// A momentum of the finest grid.
type Corner = (u64, u64);

/// A step of the grid: its begin, and how long it is in each direction, of which one is zero.
type Edge = (Corner, Corner);

/// What is known at a momentum.
struct AtMomentum {
    states: Matrix,
    gap: f64,
    width: f64,
    /// Boxes around the momentum, each by how far it goes to both sides: those without a crossing inside, and those
    /// that may have one.
    open: Vec<[u64; 2]>,
    unsure: Vec<[u64; 2]>,
}

impl AtMomentum {
    /// Whether no crossing lies in a box, as far as is known.
    fn is_open(&self, sides: [u64; 2]) -> Option<bool> {
        let holds = |large: &[u64; 2], small: &[u64; 2]| large[0] >= small[0] && large[1] >= small[1];
        if self.open.iter().any(|large| holds(large, &sides)) {
            return Some(true);
        }
        self.unsure.iter().any(|small| holds(&sides, small)).then_some(false)
    }
}

/// A rectangle of the grid.
#[derive(Clone, Copy)]
struct Plaquette {
    corner: Corner,
    size: [u64; 2],
}

impl Plaquette {
    /// How far the box around each corner goes that holds its share of the cell.
    fn share(&self) -> [u64; 2] {
        self.size.map(|s| s.div_ceil(2))
    }

    /// Its parts, divided in some directions.
    fn divided(&self, which: [bool; 2]) -> Vec<Plaquette> {
        let ((a, b), [s, t]) = (self.corner, self.size);
        let half = |size: u64, divide: bool| if divide { size / 2 } else { size };
        let size = [half(s, which[0]), half(t, which[1])];
        let begins =
            |from: u64, size: u64, divide: bool| if divide { vec![from, from + size] } else { vec![from] };
        let seconds = begins(b, size[1], which[1]);
        let both = |a: u64| seconds.iter().map(move |b| Plaquette { corner: (a, *b), size });
        begins(a, size[0], which[0]).into_iter().flat_map(both).collect()
    }
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
    /// Determinants of the overlaps along edges.
    edges: BTreeMap<Edge, C64>,
}

impl PlaneGrid<'_> {
    fn wrapped(&self, (a, b): Corner) -> Corner {
        (a % self.points, b % self.points)
    }

    fn part(&self, x: u64) -> f64 {
        x as f64 / self.points as f64
    }

    fn corners(&self, cell: Plaquette) -> [Corner; 4] {
        let ((a, b), [s, t]) = (cell.corner, cell.size);
        [(a, b), (a + s, b), (a + s, b + t), (a, b + t)].map(|corner| self.wrapped(corner))
    }

    /// The edges of a cell: two along the first direction, two along the second.
    fn edges_of(&self, cell: Plaquette) -> [Edge; 4] {
        let ((a, b), [s, t]) = (cell.corner, cell.size);
        [((a, b), (s, 0)), ((a, b + t), (s, 0)), ((a, b), (0, t)), ((a + s, b), (0, t))]
            .map(|(from, step)| (self.wrapped(from), step))
    }

    /// The directions in which a cell is divided to make levels move less: those in which they move most.
    fn fast(&self, size: [u64; 2]) -> [bool; 2] {
        let most = [0, 1].map(|d| self.part(size[d]) * self.speeds[d]);
        most.map(|m| m >= 0.5 * most[0].max(most[1]))
    }

    /// Looks at a momentum, and through boxes around it that begin with `sides` and are divided until one has no
    /// crossing inside.
    fn look(&self, (a, b): Corner, sides: [u64; 2]) -> Result<AtMomentum> {
        let k = self.plane.momentum(self.part(a), self.part(b));
        let l = levels(self.bloch, &k)?;
        let width = l.energies.iter().fold(0.0f64, |w, e| w.max(e.abs()));
        let gap = gap(&l.energies, self.filled);
        let mut at =
            AtMomentum { states: lowest(&l.vectors, self.filled)?, gap, width, open: vec![], unsure: vec![] };
        if gap <= NO_GAP * width {
            return Ok(at);
        }
        let far = |sides: [u64; 2]| (0..2).map(|d| self.part(sides[d]) * self.speeds[d]).sum::<f64>();
        let (mut sides, mut frame) = (sides, None);
        for _ in 0..BOXES {
            // The levels of both sides of the gap move towards each other.
            let open = gap > 2.0 * far(sides) || {
                if frame.is_none() {
                    frame = Some(Frame::new(self, &k, &l)?);
                }
                frame.as_ref().is_some_and(|frame| frame.open(sides.map(|s| self.part(s))))
            };
            if open {
                at.open.push(sides);
                break;
            }
            at.unsure.push(sides);
            let fast = self.fast(sides);
            sides = [0, 1].map(|d| if fast[d] { sides[d].div_ceil(2) } else { sides[d] });
        }
        Ok(at)
    }

    /// Makes the corners and edges of cells known.
    fn visit(&mut self, cells: &[Plaquette], task: &Task) -> Result<()> {
        let mut new = BTreeMap::<Corner, [u64; 2]>::new();
        for cell in cells {
            let share = cell.share();
            for corner in self.corners(*cell) {
                if self.known.get(&corner).is_none_or(|known| known.is_open(share).is_none()) {
                    let sides = new.entry(corner).or_default();
                    *sides = [0, 1].map(|d| sides[d].max(share[d]));
                }
            }
        }
        let new: Vec<(Corner, [u64; 2])> = new.into_iter().collect();
        keep(self.known.len() + new.len(), self.bloch.rows() * self.filled)?;
        let found = at_each(&new, "Chern number", task, |(corner, sides)| self.look(*corner, *sides))?;
        for ((corner, _), mut at) in new.into_iter().zip(found) {
            if let Some(before) = self.known.remove(&corner) {
                // Its states stay, so that phases along edges go on from them.
                at.open.extend(before.open);
                at.unsure.extend(before.unsure);
                at.states = before.states;
            }
            self.known.insert(corner, at);
        }
        let edges: BTreeSet<Edge> = cells.iter().flat_map(|cell| self.edges_of(*cell)).collect();
        let edges: Vec<Edge> = edges.into_iter().filter(|edge| !self.edges.contains_key(edge)).collect();
        let found = at_each(&edges, "overlaps", &task.quiet(), |edge| self.straight(*edge))?;
        self.edges.extend(edges.into_iter().zip(found));
        Ok(())
    }

    /// Whether no crossing can lie inside a cell.
    fn open(&self, cell: Plaquette) -> bool {
        self.corners(cell).iter().all(|corner| self.known[corner].is_open(cell.share()) == Some(true))
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

    /// The directions in which neighbouring corners of a cell have states that are far from each other.
    fn apart(&self, cell: Plaquette) -> [bool; 2] {
        let near = self.edges_of(cell).map(|edge| self.edges[&edge].norm() >= NEAR);
        [!(near[0] && near[1]), !(near[2] && near[3])]
    }

    /// The determinant of the overlaps of the ends of an edge.
    fn straight(&self, (from, (s, t)): Edge) -> Result<C64> {
        let to = self.wrapped((from.0 + s, from.1 + t));
        let [p, q] = [from, to].map(|corner| &self.known[&corner].states);
        Ok(overlap(p, q)?.det()?.to_c64())
    }

    /// The phase of the overlaps along an edge, by way of all momenta on it that are known: cells on both sides see the
    /// same.
    fn edge(&self, (from, step): Edge) -> Result<C64> {
        let half = (step.0 / 2, step.1 / 2);
        let middle = self.wrapped((from.0 + half.0, from.1 + half.1));
        let whole = step.0.is_multiple_of(2) && step.1.is_multiple_of(2);
        if whole && half != (0, 0) && self.known.contains_key(&middle) {
            return Ok(self.edge((from, half))? * self.edge((middle, half))?);
        }
        let z = match self.edges.get(&(from, step)) {
            Some(z) => *z,
            None => self.straight((from, step))?,
        };
        Ok(z / z.norm())
    }

    /// The field strength of a cell, between -pi and pi.
    fn strength(&self, cell: Plaquette) -> Result<f64> {
        let [low, high, left, right] = self.edges_of(cell);
        let forth = self.edge(low)? * self.edge(right)?;
        let back = self.edge(left)? * self.edge(high)?;
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
        place.map_or((f64::INFINITY, Vec::new(), width), |((a, b), known)| {
            (known.gap, self.plane.momentum(self.part(*a), self.part(*b)), width)
        })
    }
}

/// A Hamiltonian and its derivatives between the filled states at a momentum, and between the empty ones. At momenta
/// nearby the highest level of the first block is above the filled levels, the lowest of the second below the empty
/// ones (by the principle of the least maximum): what couples the blocks only drives levels apart. So there is a gap as
/// long as the blocks have one between them.
struct Frame<'a> {
    grid: &'a PlaneGrid<'a>,
    below: Block,
    above: Block,
}

/// Levels, and both derivatives between their states.
struct Block {
    energies: Vec<f64>,
    slopes: [Vec<C64>; 2],
}

impl Block {
    /// The matrix at so many steps from the momentum, linear in them.
    fn diagonal(&self, steps: [f64; 2]) -> impl Iterator<Item = f64> {
        let n = self.energies.len();
        let slope = move |i: usize| (0..2).map(|d| steps[d] * self.slopes[d][i * n + i].re).sum::<f64>();
        (0..n).map(move |i| self.energies[i] + slope(i))
    }

    /// Whether `sign` times the matrix at so many steps is larger than `sign * bound`: by Cholesky's factors.
    fn beyond(&self, steps: [f64; 2], bound: f64, sign: f64) -> bool {
        let n = self.energies.len();
        let entry = |i: usize, j: usize| {
            let slope = (0..2).map(|d| steps[d] * self.slopes[d][i * n + j]).sum::<C64>();
            sign * (slope + if i == j { C64::from(self.energies[i] - bound) } else { C64::ZERO })
        };
        positive(n, entry)
    }
}

impl<'a> Frame<'a> {
    fn new(grid: &'a PlaneGrid<'a>, k: &[f64], l: &Levels) -> Result<Frame<'a>> {
        let (below, above) = split(&l.vectors, grid.filled)?;
        let block = |states: &Matrix, energies: &[f64]| -> Result<Block> {
            let slopes = |d: usize| -> Result<Vec<C64>> {
                let turned = grid.bloch.derivative_times(k, grid.plane.directions[d], states)?;
                Ok(states.dagger().matmul(&turned)?.data().to_complex())
            };
            Ok(Block { energies: energies.to_vec(), slopes: [slopes(0)?, slopes(1)?] })
        };
        let (low, high) = l.energies.split_at(grid.filled);
        Ok(Frame { grid, below: block(&below, low)?, above: block(&above, high)? })
    }

    /// Whether there is a gap in a box. The distance of the blocks is least at one of its corners, but for what is not
    /// linear.
    fn open(&self, sides: [f64; 2]) -> bool {
        let bend = most_bend(self.grid.bloch, &self.grid.plane.directions, &sides);
        [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]].into_iter().all(|signs| {
            let steps = [signs[0] * sides[0], signs[1] * sides[1]];
            let top = self.below.diagonal(steps).fold(f64::NEG_INFINITY, f64::max);
            let bottom = self.above.diagonal(steps).fold(f64::INFINITY, f64::min);
            let middle = 0.5 * (top + bottom);
            bottom - top > 2.0 * bend
                && self.below.beyond(steps, middle - bend, -1.0)
                && self.above.beyond(steps, middle + bend, 1.0)
        })
    }
}

/// A grid of momenta, and its cells, each so small that its field strength is known. The grid begins with `n` points in
/// each direction. A cell is divided until its field strength is below pi/2, neighbouring corners have states that
/// are near, and no crossing can lie inside: around each of its corners the gap is more than what the hops let
/// levels move. After very many momenta it suffices that the states at its corners are alike.
fn resolved<'a>(
    bloch: &'a Bloch,
    filled: usize,
    plane: &'a Plane,
    n: Option<usize>,
    task: &Task,
) -> Result<(PlaneGrid<'a>, Vec<Plaquette>)> {
    let n = n.unwrap_or(if bloch.rows() > SMALL { FEW_POINTS } else { POINTS });
    // The cells, their corners and the momenta of these, beside the states there.
    keep(n * n, bloch.rows() * filled + 16)?;
    let size = 1 << HALVINGS;
    let along = |d: usize| (0..bloch.dimension()).map(|x| f64::from(u8::from(x == d))).collect::<Vec<f64>>();
    let speeds = plane.directions.map(|d| most_change(bloch, &along(d)));
    let points = n as u64 * size;
    let (known, edges) = (BTreeMap::new(), BTreeMap::new());
    let mut grid = PlaneGrid { bloch, plane, filled, points, speeds, known, edges };
    let patience = (MOMENTA * SMALL * SMALL / bloch.rows().max(SMALL).pow(2)).max(FEW_MOMENTA).max(2 * n * n);
    let mut cells: Vec<Plaquette> = (0..n as u64 * n as u64)
        .map(|p| Plaquette { corner: (p / n as u64 * size, p % n as u64 * size), size: [size, size] })
        .collect();
    let mut leaves = Vec::new();
    while !cells.is_empty() {
        grid.visit(&cells, task)?;
        let (gap, place, width) = grid.least();
        if gap <= NO_GAP * width {
            return Err(no_gap(filled, &place));
        }
        let tired = grid.known.len() > patience;
        // The directions in which each cell is divided.
        let divide = |cell: &Plaquette| -> Result<[bool; 2]> {
            let apart = grid.apart(*cell);
            if !grid.open(*cell) && (!tired || !grid.alike(*cell)?) {
                let fast = grid.fast(cell.size);
                return Ok([apart[0] || fast[0], apart[1] || fast[1]]);
            }
            if apart != [false, false] {
                return Ok(apart);
            }
            Ok([grid.strength(*cell)?.abs() >= PI / 2.0; 2])
        };
        let divided: Vec<[bool; 2]> = cells.par_iter().map(divide).collect::<Result<_>>()?;
        let mut coarse = Vec::new();
        for (cell, which) in cells.iter().zip(divided) {
            if which == [false, false] {
                leaves.push(*cell);
                continue;
            }
            if (0..2).any(|d| which[d] && cell.size[d] == 1) || grid.known.len() > 4 * patience {
                return Err(Error::numeric(format!(
                    "the gap above band {filled} is {gap:.1e} or less near k = {place:?}, too small for a Chern \
                     number, or closed"
                ))
                .hint(GAPPED));
            }
            coarse.extend(cell.divided(which));
        }
        cells = coarse;
    }
    Ok((grid, leaves))
}

/// The Chern number of the `filled` lowest bands from the field strengths of the cells of a grid of momenta, which sum
/// to an integer on any grid (Fukui, Hatsugai, Suzuki, J. Phys. Soc. Jpn. 74 (2005) 1674, equations 7 to 9). The grid
/// begins with `n` points in each direction (16 if not given, or 4 for matrices of more than 16 rows), and is finer
/// where the gap is small.
///
/// # Errors
/// No gap, directions or fillings that do not fit, a gap so small that the grid would be too large.
pub fn chern_number(
    bloch: &Bloch,
    filled: usize,
    plane: &Plane,
    n: Option<usize>,
    task: &Task,
) -> Result<i64> {
    plane.check(bloch)?;
    check_filled(bloch, filled)?;
    if let Some(n) = n.filter(|n| !(2..=1 << 14).contains(n)) {
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
/// (Fu, Kane, PRB 74 (2006) 195312). The grid begins with an even number of points in each direction.
///
/// # Errors
/// As [`chern_number`]; a Chern number that is not zero, and loops without Kramers pairs.
pub(super) fn partners_change(bloch: &Bloch, filled: usize, plane: &Plane, task: &Task) -> Result<bool> {
    if filled == bloch.rows() {
        return Ok(false);
    }
    let (mut grid, leaves) = resolved(bloch, filled, plane, None, task)?;
    // Time reversal turns the curvature round.
    let chern = plane.hand(bloch) * grid.turns(&leaves)?.round();
    if chern != 0.0 {
        return Err(Error::input(format!("no time reversal: the Chern number is {chern}"))
            .hint("`chern_number` is the invariant of a system without it"));
    }
    let ends = [0, grid.points / 2];
    // With the momenta that rounding kept on one side only, loops have pairs to the last digit.
    let mirrored = grid.known.keys().filter(|(_, b)| ends.contains(b)).map(|(a, b)| (grid.points - a, *b));
    let mirrored: Vec<Plaquette> = mirrored.map(|corner| Plaquette { corner, size: [0, 0] }).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::{Lattice, Model, OrbitalBlock};

    /// Graphene with a mass, on cells with a field through them.
    fn sheet(cells: usize, flux: f64, mass: f64) -> Bloch {
        let mut model = Model::new(Lattice::honeycomb(cells, 1).unwrap(), 1).unwrap();
        model.nearest(&OrbitalBlock::scalar(1, -1.0)).unwrap();
        model.sublattice(0, &OrbitalBlock::scalar(1, mass)).unwrap();
        model.sublattice(1, &OrbitalBlock::scalar(1, -mass)).unwrap();
        if flux != 0.0 {
            model.flux(flux, 0, 1).unwrap();
        }
        Bloch::new(&model).unwrap()
    }

    #[test]
    fn open_boxes_have_no_crossing() {
        // Near the corner of the zone the gap is twice the mass at least, and it is none without one.
        let at = [1.0 / 3.0, 2.0 / 3.0];
        for (cells, flux, mass, filled) in [
            (1, 0.0, 0.0, 1),
            (1, 0.0, 0.01, 1),
            (7, 2.0 / 7.0, 0.0, 3),
            (7, 2.0 / 7.0, 0.0, 5),
            (20, 0.05, 0.0, 4),
        ] {
            let bloch = sheet(cells, flux, mass);
            let plane = Plane { directions: [0, 1], at: Vec::new() };
            let speeds = [[1.0, 0.0], [0.0, 1.0]].map(|way| most_change(&bloch, &way));
            let points = 1 << 12;
            let (known, edges) = (BTreeMap::new(), BTreeMap::new());
            let grid = PlaneGrid { bloch: &bloch, plane: &plane, filled, points, speeds, known, edges };
            let mut found = 0;
            for (a, b) in [(0u64, 0u64), (1300, 2740), (1365, 2731), (1360, 2600), (2048, 100)] {
                let seen = grid.look((a, b), [1 << 10, 1 << 10]).unwrap();
                for sides in &seen.open {
                    found += 1;
                    let k =
                        |x: u64, side: u64, i: i64| (x as f64 + side as f64 * i as f64 / 8.0) / points as f64;
                    for (i, j) in (-8..=8).flat_map(|i| (-8..=8).map(move |j| (i, j))) {
                        let k = [k(a, sides[0], i), k(b, sides[1], j)];
                        let l = levels(&bloch, &k).unwrap();
                        assert!(gap(&l.energies, filled) > 1e-6, "{cells} {filled} {k:?}");
                    }
                    let cone = [(a, sides[0], at[0]), (b, sides[1], at[1])].iter().all(|&(x, side, at)| {
                        (x as f64 / points as f64 - at).abs() < side as f64 / points as f64
                    });
                    assert!(mass > 0.0 || cells > 1 || !cone, "a box with a cone inside");
                }
            }
            assert!(found > 2, "{cells}: {found}");
        }
    }

    #[test]
    fn the_bend_bounds_what_is_not_linear() {
        let bloch = sheet(3, 1.0 / 3.0, 0.3);
        let (k, sides) = ([0.13, 0.41], [0.07, 0.02]);
        let bend = most_bend(&bloch, &[0, 1], &sides);
        // With the orbitals at their places: U^dagger H U, U the phases of the places.
        let placed = |k: &[f64]| {
            let h = bloch.hamiltonian(k).unwrap();
            let turn = |row: usize| -> f64 { bloch.place(row).iter().zip(k).map(|(x, k)| TAU * x * k).sum() };
            let n = h.rows();
            let all = h.data().to_complex();
            Matrix::from_fn(n, n, |i, j| all[i * n + j] * C64::cis(turn(j) - turn(i)))
        };
        let turned = |k: &[f64], m: &Matrix| {
            let turn = |row: usize| -> f64 { bloch.place(row).iter().zip(k).map(|(x, k)| TAU * x * k).sum() };
            let (n, all) = (m.rows(), m.data().to_complex());
            Matrix::from_fn(n, n, |i, j| all[i * n + j] * C64::cis(turn(j) - turn(i)))
        };
        let here = placed(&k);
        let one = Matrix::identity(here.rows()).unwrap();
        let mut largest = 0.0f64;
        for signs in [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-0.5, 0.3]] {
            let steps = [signs[0] * sides[0], signs[1] * sides[1]];
            let there = placed(&[k[0] + steps[0], k[1] + steps[1]]);
            let mut linear = here.clone();
            for d in 0..2 {
                let slope = bloch.derivative_times(&k, d, &one).unwrap();
                let dense = bloch.derivative(&k, d).unwrap();
                let off = slope.add(&dense.scale((-1.0).into())).unwrap().norm();
                assert!(off < 1e-12, "the sparse derivative is the dense one: {off}");
                linear = linear.add(&turned(&k, &slope).scale(steps[d].into())).unwrap();
            }
            let off = there.add(&linear.scale((-1.0).into())).unwrap();
            let levels = off.eigvals().unwrap();
            largest = levels.as_real("levels").unwrap().iter().fold(largest, |m, x| m.max(x.abs()));
        }
        assert!(largest <= bend && largest > 0.1 * bend, "{largest} {bend}");
    }
}
