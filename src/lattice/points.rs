//! Finite sets of sites without a crystal, and bonds by distance.

use std::collections::HashMap;

use rayon::prelude::*;
use smallvec::SmallVec;

use super::block::OrbitalBlock;
use super::lattice::{Bond, Lattice, MAX_DIMENSION, Shift, Site, check_bond};
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
    /// A finite set of sites at any places, Cartesian, without a unit cell; open. Its volume is that of the box around them,
    /// with one lattice constant where it has no width.
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
        let sites = sites.map(|(i, p)| Site { name: i.to_string(), position: p.clone() }).collect();
        Lattice::custom("points", vectors, sites, Vec::new(), vec![1; d])?.boundary(&[Wrap::Open])
    }

    /// Every pair of sites at most `cutoff` apart (but for rounding, 1e-9 of it), once, as bonds of the unit cell; across
    /// boundaries that are not open as well.
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
        let grid = Grid::new(basis, cutoff);
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
                    found.extend(part?);
                }
                memory::ensure(BYTES * found.len() as u128, &format!("{} bonds", found.len()))?;
            }
        }
        Ok(found)
    }

    /// The bonds that leave a site of the cell for those of the cell displaced by `shift`.
    fn bonds_of(&self, from: usize, shift: &Shift, cutoff: f64, grid: &Grid) -> Result<Vec<Bond>> {
        let basis = self.basis();
        let site = &basis[from];
        let here = shift.iter().all(|x| *x == 0);
        // The site's place when its partner's cell is moved to that of the basis.
        let mut place: SmallVec<[f64; 3]> = SmallVec::from_slice(&site.position);
        for (vector, x) in self.vectors().iter().zip(shift) {
            place.iter_mut().zip(vector).for_each(|(p, v)| *p -= *x as f64 * v);
        }
        let mut found = Vec::new();
        for to in grid.near(&place) {
            if here && to <= from {
                continue;
            }
            let off = basis[to].position.iter().zip(&place).map(|(a, b)| (a - b).powi(2));
            let distance = off.sum::<f64>().sqrt();
            if distance <= 1e-9 * cutoff {
                return Err(Error::input(format!(
                    "sites `{}` and `{}` lie at one place, {:?}",
                    site.name, basis[to].name, site.position
                ))
                .hint("bonds by distance need places of their own"));
            }
            if distance <= cutoff {
                found.push(Bond { shift: shift.clone(), from, to });
            }
        }
        Ok(found)
    }

    /// Displacements in cells that bonds of this length may have, only one of each and its opposite.
    fn shifts_within(&self, cutoff: f64) -> Result<Vec<Shift>> {
        let mut all: Vec<Shift> = vec![Shift::new()];
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
                return Err(Error::input(format!("bonds within {cutoff} reach over too many cells")));
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
    pub fn hop_along(
        &mut self,
        bonds: &[Bond],
        term: &mut dyn FnMut(&[f64]) -> Result<OrbitalBlock>,
        task: &Task,
    ) -> Result<()> {
        let axes: Vec<usize> = (0..self.lattice.space()).collect();
        let steps = task.start("hoppings", bonds.len());
        let mut vector = Vec::new();
        self.expect_hops(bonds.len())?;
        for (i, bond) in bonds.iter().enumerate() {
            if i.is_multiple_of(1024) {
                steps.advance(i)?;
            }
            check_bond(bond, self.lattice.dimension(), self.lattice.basis().len())?;
            vector.clear();
            vector.extend(self.lattice.reach(&bond.shift, (bond.from, bond.to), &axes));
            self.hop_over(bond.clone(), term(&vector)?)?;
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
        match term {
            HopTerm::Same(block) => {
                self.expect_hops(bonds.len())?;
                for bond in &bonds {
                    self.hop_over(bond.clone(), block.clone())?;
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
                    self.simplify_last();
                }
            }
        }
        Ok(bonds.len())
    }
}

/// A hopping: the same everywhere, or a function of the positions that it joins.
pub enum HopTerm<'a, 'b> {
    /// One block.
    Same(&'a OrbitalBlock),
    /// A function.
    Of(&'a mut OfBond<'b>),
}

/// Sites by the cube of side `cutoff` that they lie in.
struct Grid {
    side: f64,
    cubes: HashMap<Shift, Vec<usize>>,
    space: usize,
}

impl Grid {
    fn new(sites: &[Site], side: f64) -> Grid {
        let space = sites.first().map_or(0, |site| site.position.len());
        let mut grid = Grid { side, cubes: HashMap::new(), space };
        for (i, site) in sites.iter().enumerate() {
            let cube = grid.cube(&site.position);
            grid.cubes.entry(cube).or_default().push(i);
        }
        grid
    }

    fn cube(&self, place: &[f64]) -> Shift {
        place.iter().map(|x| (x / self.side).floor() as i64).collect()
    }

    /// Sites in the cube of a place and in those around it, ascending.
    fn near(&self, place: &[f64]) -> Vec<usize> {
        let middle = self.cube(place);
        let mut found = Vec::new();
        for code in 0..3usize.pow(self.space as u32) {
            let off = |x: usize| (code / 3usize.pow(x as u32) % 3) as i64 - 1;
            let cube: Shift = middle.iter().enumerate().map(|(x, c)| c + off(x)).collect();
            found.extend(self.cubes.get(&cube).into_iter().flatten());
        }
        found.sort_unstable();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(vectors: Vec<Vec<f64>>, places: &[[f64; 2]], cutoff: f64) -> usize {
        let site = |(i, p): (usize, &[f64; 2])| Site { name: format!("s{i}"), position: p.to_vec() };
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
