//! Finite sets of sites without a crystal, and bonds by distance.

use rayon::prelude::*;
use smallvec::SmallVec;

use super::block::OrbitalBlock;
use super::lattice::{Bond, CellShift, Lattice, LatticeSite, MAX_DIMENSION, check_bond};
use super::model::{Model, OfBond};
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::number::memory;
use crate::task::Task;

/// Sites whose bonds are looked for between two looks at the user's wishes.
const TOGETHER: usize = 16384;
/// Bytes that a bond takes, and that a hopping over it takes.
const BYTES: u128 = 200;

impl Lattice {
    /// A finite set of sites at any places, Cartesian, without a unit cell; open. Its volume is that of the box around
    /// them, with one lattice constant where it has no width.
    ///
    /// # Errors
    /// No points, or points of several dimensions or not finite.
    pub fn points(positions: Vec<Vec<f64>>) -> Result<Lattice> {
        let Some(d) = positions.first().map(Vec::len) else {
            return Err(Error::input("a set of no points").hint("a lattice has one site at least"));
        };
        if let Some((i, p)) = positions.iter().enumerate().find(|(_, p)| p.len() != d) {
            return Err(Error::input(format!(
                "point {i} has {} coordinates, and the first has {d}",
                p.len()
            ))
            .hint("all points have as many"));
        }
        if d == 0 || d > MAX_DIMENSION {
            return Err(Error::input(format!("points of {d} coordinates"))
                .hint(format!("a point has 1 to {MAX_DIMENSION}")));
        }
        let extent = |x: usize| {
            let all = || positions.iter().map(|p| p[x]);
            all().fold(f64::NEG_INFINITY, f64::max) - all().fold(f64::INFINITY, f64::min)
        };
        let side = |x: usize| Some(extent(x)).filter(|w| *w > 0.0).unwrap_or(1.0);
        let vectors = (0..d).map(|x| (0..d).map(|y| if x == y { side(x) } else { 0.0 }).collect()).collect();
        let sites = positions.iter().enumerate();
        let sites = sites.map(|(i, p)| LatticeSite { name: i.to_string(), position: p.clone() }).collect();
        Lattice::custom("points", vectors, sites, Vec::new(), vec![1; d])?.boundary(&[Wrap::Open])
    }

    /// Every pair of sites at most `cutoff` apart (but for rounding, 1e-9 of it), once, as bonds of the unit cell;
    /// across boundaries that are not open as well.
    ///
    /// # Errors
    /// A cutoff that is no length, two sites at one place, interruption.
    pub fn bonds_within(&self, cutoff: f64, task: &Task) -> Result<Vec<Bond>> {
        if !(cutoff > 0.0 && cutoff.is_finite()) {
            return Err(
                Error::input(format!("bonds within a distance of {cutoff}")).hint("a distance is positive")
            );
        }
        // Bonds as long as the cutoff count, whatever rounding has made of their length.
        let cutoff = cutoff * (1.0 + 1e-9);
        let basis = self.basis();
        if let Some(site) = basis.iter().find(|s| s.position.iter().any(|x| (x / cutoff).abs() > 1e15)) {
            return Err(Error::input(format!("bonds within {cutoff} of a site at {:?}", site.position))
                .hint("lengths are in lattice constants"));
        }
        let grid = CubeGrid::new(basis, cutoff);
        let shifts = self.shifts_within(cutoff)?;
        let mut found = Vec::new();
        let steps = task.start("bonds", shifts.len() * basis.len());
        for (i, shift) in shifts.iter().enumerate() {
            for first in (0..basis.len()).step_by(TOGETHER) {
                steps.advance(i * basis.len() + first)?;
                let sites = first..(first + TOGETHER).min(basis.len());
                let of_site = |from: usize| self.bonds_of(from, shift, cutoff, &grid);
                let parts: Vec<Result<Vec<Bond>>> =
                    sites.into_par_iter().with_min_len(256).map(of_site).collect();
                for part in parts {
                    found.append(&mut part?);
                }
                memory::ensure(BYTES * found.len() as u128, &format!("{} bonds", found.len()))?;
            }
        }
        Ok(found)
    }

    /// The bonds that leave a site of the cell for those of the cell displaced by `shift`.
    fn bonds_of(&self, from: usize, shift: &CellShift, cutoff: f64, grid: &CubeGrid) -> Result<Vec<Bond>> {
        let basis = self.basis();
        let site = &basis[from];
        let here = shift.iter().all(|x| *x == 0);
        // The site's place when its partner's cell is moved to that of the basis.
        let mut place: SmallVec<[f64; 3]> = SmallVec::from_slice(&site.position);
        for (vector, x) in self.vectors().iter().zip(shift) {
            place.iter_mut().zip(vector).for_each(|(p, v)| *p -= *x as f64 * v);
        }
        let (mut found, mut meets) = (SmallVec::<[usize; 64]>::new(), None);
        grid.near(&place, |to, position| {
            if here && to <= from {
                return;
            }
            let mut square = 0.0;
            for x in 0..position.len() {
                square += (position[x] - place[x]).powi(2);
            }
            let distance = square.sqrt();
            if distance <= 1e-9 * cutoff {
                meets = meets.min(Some(to)).or(Some(to));
            }
            if distance <= cutoff {
                found.push(to);
            }
        });
        if let Some(to) = meets {
            return Err(Error::input(format!(
                "sites `{}` and `{}` lie at one place, {:?}",
                site.name, basis[to].name, site.position
            ))
            .hint("bonds by distance need places of their own"));
        }
        found.sort_unstable();
        Ok(found.into_iter().map(|to| Bond { shift: shift.clone(), from, to }).collect())
    }

    /// Displacements in cells that bonds of this length may have, only one of each and its opposite.
    fn shifts_within(&self, cutoff: f64) -> Result<Vec<CellShift>> {
        let mut all: Vec<CellShift> = vec![CellShift::new()];
        for d in 0..self.dimension() {
            let along: Vec<f64> =
                self.basis().iter().map(|site| self.cell_coordinates(&site.position)[d]).collect();
            let spread = along.iter().copied().fold(f64::NEG_INFINITY, f64::max)
                - along.iter().copied().fold(f64::INFINITY, f64::min);
            let slope = self.inverse[d].iter().map(|x| x * x).sum::<f64>().sqrt();
            let mut most = (cutoff * slope + spread + 1e-9).floor();
            if self.wrap()[d] == Wrap::Open {
                most = most.min(self.cells()[d] as f64 - 1.0);
            }
            if (2.0 * most + 1.0) * all.len() as f64 > 1e7 {
                return Err(Error::input(format!("bonds within {cutoff} reach over too many cells"))
                    .hint("take a shorter cutoff; it is in the units of the positions"));
            }
            let most = most as i64;
            all = all
                .iter()
                .flat_map(|shift| (-most..=most).map(move |x| shift.iter().copied().chain([x]).collect()))
                .collect();
        }
        all.retain(|shift| shift.iter().find(|x| **x != 0).is_none_or(|x| *x > 0));
        Ok(all)
    }
}

impl Model {
    /// The bonds that [`Model::hop_within`] puts hoppings on.
    ///
    /// # Errors
    /// As [`Lattice::bonds_within`]; no pair that near.
    pub fn bonds_within(&self, cutoff: f64, task: &Task) -> Result<Vec<Bond>> {
        let bonds = self.lattice.bonds_within(cutoff, task)?;
        if bonds.is_empty() {
            return Err(Error::input(format!("no two sites are {cutoff} or less apart"))
                .hint("lengths are in lattice constants: the cutoff may be too small"));
        }
        Ok(bonds)
    }

    /// Adds a hopping to each of some bonds that is a function of the vector between their ends, the same in all cells.
    ///
    /// # Errors
    /// Those of the function and of [`Model::hop_between`], and interruption.
    pub fn hop_along(&mut self, bonds: Vec<Bond>, term: HopAlong<'_, '_>, task: &Task) -> Result<()> {
        let lattice = self.lattice.clone();
        let axes: Vec<usize> = (0..lattice.space()).collect();
        let vector_of = |bond: &Bond| -> Result<SmallVec<[f64; 3]>> {
            check_bond(bond, lattice.dimension(), lattice.basis().len())?;
            Ok(lattice.reach(&bond.shift, (bond.from, bond.to), &axes).collect())
        };
        let steps = task.start("hoppings", bonds.len());
        self.expect_hops(bonds.len())?;
        match term {
            HopAlong::Script(term) => {
                for (i, bond) in bonds.into_iter().enumerate() {
                    if i.is_multiple_of(1024) {
                        steps.advance(i)?;
                    }
                    let block = term(&vector_of(&bond)?)?;
                    self.hop_over(bond, block)?;
                }
            }
            HopAlong::Formula(term) => {
                let mut done = 0;
                let mut bonds = bonds.into_iter();
                while bonds.len() > 0 {
                    let some: Vec<Bond> = bonds.by_ref().take(TOGETHER).collect();
                    let blocks: Vec<Result<OrbitalBlock>> =
                        some.par_iter().with_min_len(64).map(|bond| term(&vector_of(bond)?)).collect();
                    done += some.len();
                    for (bond, block) in some.into_iter().zip(blocks) {
                        self.hop_over(bond, block?)?;
                    }
                    steps.advance(done)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a hopping between every pair of sites at most `cutoff` apart, and its conjugate. What a function of the two
    /// positions gives is kept as one number where it is the same in all cells.
    ///
    /// # Errors
    /// As [`Lattice::bonds_within`] and [`Model::hop_with`]; no pair that near.
    pub fn hop_within(&mut self, cutoff: f64, term: HopTerm<'_, '_>, task: &Task) -> Result<usize> {
        let bonds = self.bonds_within(cutoff, task)?;
        let count = bonds.len();
        match term {
            HopTerm::Same(block) => {
                self.expect_hops(bonds.len())?;
                for bond in bonds {
                    self.hop_over(bond, block.clone())?;
                }
            }
            HopTerm::Of(f) => {
                let quiet = task.quiet();
                let steps = task.start("hoppings", bonds.len());
                for (i, bond) in bonds.iter().enumerate() {
                    if i.is_multiple_of(256) {
                        steps.advance(i)?;
                    }
                    self.hop_with(&bond.shift, bond.from, bond.to, f, &quiet)?;
                }
            }
        }
        Ok(count)
    }
}

/// A hopping as a function of the vector between its ends.
pub enum HopAlong<'a, 'b> {
    /// A function of a script, called in turn.
    Script(&'a mut (dyn FnMut(&[f64]) -> Result<OrbitalBlock> + 'b)),
    /// What all threads may ask at once.
    Formula(&'a (dyn Fn(&[f64]) -> Result<OrbitalBlock> + Sync + 'b)),
}

/// A hopping: the same everywhere, or a function of the positions that it joins.
pub enum HopTerm<'a, 'b> {
    /// One block for all bonds.
    Same(&'a OrbitalBlock),
    /// A block for each bond.
    Of(&'a mut OfBond<'b>),
}

/// Sites by the cube of side `cutoff` that they lie in: those of one cube, and of cubes that follow each other along
/// the last axis, are neighbours here.
struct CubeGrid {
    side: f64,
    space: usize,
    /// The cubes with sites, ascending.
    cubes: Vec<CellShift>,
    /// Where the sites of each begin, and the end.
    starts: Vec<usize>,
    sites: Vec<usize>,
    /// Their positions, one after the other.
    places: Vec<f64>,
}

impl CubeGrid {
    fn new(sites: &[LatticeSite], side: f64) -> CubeGrid {
        let space = sites.first().map_or(0, |site| site.position.len());
        let mut grid = CubeGrid {
            side,
            space,
            cubes: Vec::new(),
            starts: Vec::new(),
            sites: Vec::with_capacity(sites.len()),
            places: Vec::with_capacity(space * sites.len()),
        };
        let mut order: Vec<(CellShift, usize)> =
            sites.iter().enumerate().map(|(i, site)| (grid.cube(&site.position), i)).collect();
        order.par_sort_unstable();
        for (cube, i) in order {
            if grid.cubes.last() != Some(&cube) {
                grid.starts.push(grid.sites.len());
                grid.cubes.push(cube);
            }
            grid.sites.push(i);
            grid.places.extend(&sites[i].position);
        }
        grid.starts.push(sites.len());
        grid
    }

    fn cube(&self, place: &[f64]) -> CellShift {
        place.iter().map(|x| (x / self.side).floor() as i64).collect()
    }

    /// Calls `visit` with the sites in the cube of a place and in those around it, and their positions.
    fn near(&self, place: &[f64], mut visit: impl FnMut(usize, &[f64])) {
        let middle = self.cube(place);
        let last = self.space - 1;
        for code in 0..3usize.pow(last as u32) {
            let mut cube = middle.clone();
            let mut rest = code;
            for x in 0..last {
                cube[x] += (rest % 3) as i64 - 1;
                rest /= 3;
            }
            cube[last] -= 1;
            let first = self.cubes.partition_point(|known| *known < cube);
            cube[last] += 2;
            let mut end = first;
            while end < self.cubes.len() && self.cubes[end] <= cube {
                end += 1;
            }
            for k in self.starts[first]..self.starts[end] {
                visit(self.sites[k], &self.places[k * self.space..][..self.space]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(vectors: Vec<Vec<f64>>, places: &[[f64; 2]], cutoff: f64) -> usize {
        let site = |(i, p): (usize, &[f64; 2])| LatticeSite { name: format!("s{i}"), position: p.to_vec() };
        let sites = places.iter().enumerate().map(site).collect();
        let lattice = Lattice::custom("test", vectors, sites, Vec::new(), vec![4, 4]).unwrap();
        lattice.bonds_within(cutoff, &Task::default()).unwrap().len()
    }

    #[test]
    fn bonds_as_long_as_the_cutoff_count() {
        // 1.42 / 1.42 is 1 in exact numbers, and less in floating point by way of the inverse.
        for a in [1.42, 2.46, 0.1, 1.0 / 3.0, 1e-7, 1e6] {
            let cell = vec![vec![a, 0.0], vec![0.0, 3.0 * a]];
            assert_eq!(count(cell, &[[0.0, 0.0]], a), 1, "along the short side, {a}");
            let square = vec![vec![a, 0.0], vec![0.0, a]];
            assert_eq!(count(square.clone(), &[[0.0, 0.0]], a), 2, "square, {a}");
            assert_eq!(count(square, &[[0.0, 0.0]], a * 2f64.sqrt()), 4, "with diagonals, {a}");
            let height = 0.5 * 3f64.sqrt() * a;
            let honeycomb = vec![vec![a, 0.0], vec![0.5 * a, height]];
            let b = [0.5 * a, height / 3.0];
            assert_eq!(count(honeycomb, &[[0.0, 0.0], b], a / 3f64.sqrt()), 3, "honeycomb, {a}");
        }
    }

    #[test]
    fn a_place_too_far_away_is_refused() {
        let points = Lattice::points(vec![vec![0.0], vec![1e20]]).unwrap();
        let error = points.bonds_within(1.0, &Task::default()).unwrap_err();
        assert!(error.to_string().contains("bonds within"), "{error}");
    }
}
