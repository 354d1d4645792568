//! Permutations of the sites that symmetries of a lattice make: translations, reflections, rotations.

use super::lattice::{Lattice, no_axis};
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::task;

/// Places closer than this, in lattice constants, are the same.
const SAME: f64 = 1e-6;

/// Where each site goes, and whether it crosses antiperiodic boundaries an odd number of times.
pub type Moved = (Vec<usize>, Vec<bool>);

impl Lattice {
    /// A translation by some cells in one direction, over the boundary back to the other side.
    ///
    /// # Errors
    /// For a direction that is not there, an open boundary or one with a phase other than 1 and -1, sites that were
    /// removed.
    pub fn translation(&self, direction: usize, cells: usize) -> Result<Moved> {
        let Some((&n, wrap)) = self.cells().get(direction).zip(self.wrap().get(direction)) else {
            return Err(Error::input(format!(
                "direction {direction} of a lattice of {} directions",
                self.dimension()
            ))
            .hint("directions are numbered from 0"));
        };
        let sign = match wrap {
            Wrap::Open => {
                return Err(Error::input(format!(
                    "a translation in direction {direction}, where the lattice ends"
                ))
                .hint("translations need a periodic boundary"));
            }
            Wrap::Phase(p) if (p - 1.0).norm() < SAME => false,
            Wrap::Phase(p) if (p + 1.0).norm() < SAME => true,
            Wrap::Phase(_) => {
                return Err(Error::input(format!(
                    "a translation over the twisted boundary of direction {direction}"
                ))
                .hint("boundaries of translations are periodic or antiperiodic"));
            }
        };
        let mut moved = (Vec::new(), Vec::new());
        for site in 0..self.sites() {
            task::poll()?;
            let (mut at, s) = self.locate(site)?;
            let x = at[direction] as usize + cells;
            at[direction] = (x % n) as i64;
            moved.0.push(self.site(&at, s)?);
            moved.1.push(sign && (x / n) % 2 == 1);
        }
        Ok(moved)
    }

    /// The permutation of the reflection along a Cartesian axis, which turns its coordinate x into -x, as of
    /// [`Lattice::point_symmetry`].
    ///
    /// # Errors
    /// When there is no such axis or symmetry.
    pub fn reflection(&self, axis: usize) -> Result<Vec<usize>> {
        if axis >= self.space() {
            return Err(no_axis(axis, self.space()));
        }
        let entry = |i: usize, j: usize| match i == j {
            true if i == axis => -1.0,
            same => f64::from(u8::from(same)),
        };
        self.point_symmetry(&self.turn(entry), &format!("reflection along axis {axis}"))
    }

    /// The permutation of the rotation by 2 pi / `fold` in the plane of the first two axes, as of
    /// [`Lattice::point_symmetry`].
    ///
    /// # Errors
    /// When there is no such plane or symmetry.
    pub fn rotation(&self, fold: i64) -> Result<Vec<usize>> {
        let space = self.space();
        if space < 2 || !(1..=1000).contains(&fold) {
            return Err(Error::input(format!("a rotation by a turn over {fold} in {space} dimensions"))
                .hint("two dimensions or more, and a whole part of a turn"));
        }
        let (sin, cos) = (std::f64::consts::TAU / fold as f64).sin_cos();
        let entry = |i: usize, j: usize| match (i, j) {
            (0, 0) | (1, 1) => cos,
            (0, 1) => -sin,
            (1, 0) => sin,
            _ => f64::from(u8::from(i == j)),
        };
        self.point_symmetry(&self.turn(entry), &format!("rotation of order {fold}"))
    }

    /// A matrix of the space's Cartesian coordinates, by rows.
    fn turn(&self, entry: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
        let space = self.space();
        (0..space).map(|i| (0..space).map(|j| entry(i, j)).collect()).collect()
    }

    /// The permutation of a reflection or rotation, x -> R x + shift, R by rows: with the shift that takes site 0 to
    /// the first site for which every site lands on a site, and neighbours on neighbours.
    ///
    /// # Errors
    /// When there is none.
    pub fn point_symmetry(&self, turn: &[Vec<f64>], name: &str) -> Result<Vec<usize>> {
        let n = self.sites();
        let positions = (0..n).map(|i| self.position(i)).collect::<Result<Vec<_>>>()?;
        let turned: Vec<Vec<f64>> = positions
            .iter()
            .map(|p| turn.iter().map(|row| row.iter().zip(p).map(|(a, x)| a * x).sum()).collect())
            .collect();
        let neighbours = (0..n).map(|i| self.neighbors(i)).collect::<Result<Vec<_>>>()?;
        let near = |place: &[f64]| (0..n).find(|&j| self.same_place(place, &positions[j]));
        for target in 0..n {
            task::poll()?;
            let shift: Vec<f64> = positions[target].iter().zip(&turned[0]).map(|(a, b)| a - b).collect();
            let landed = |p: &Vec<f64>| near(&p.iter().zip(&shift).map(|(x, s)| x + s).collect::<Vec<_>>());
            let Some(to) = turned.iter().map(landed).collect::<Option<Vec<usize>>>() else { continue };
            let mut hit = vec![false; n];
            to.iter().for_each(|&j| hit[j] = true);
            let joined = |i: usize| {
                let mut there: Vec<usize> = neighbours[i].iter().map(|&j| to[j]).collect();
                there.sort_unstable();
                there == neighbours[to[i]]
            };
            if hit.iter().all(|h| *h) && (0..n).all(joined) {
                return Ok(to);
            }
        }
        Err(Error::input(format!("the lattice has no {name}"))
            .hint("its cells, their number in each direction and its boundaries must allow it"))
    }

    /// Whether two places are the same but for whole numbers of turns around periodic directions.
    fn same_place(&self, a: &[f64], b: &[f64]) -> bool {
        let apart: Vec<f64> = a.iter().zip(b).map(|(x, y)| x - y).collect();
        let cells = self.cell_coordinates(&apart);
        let whole = cells.iter().zip(self.cells()).zip(self.wrap()).all(|((x, &n), wrap)| match wrap {
            Wrap::Open => x.abs() < SAME,
            Wrap::Phase(_) => (x / n as f64 - (x / n as f64).round()).abs() * (n as f64) < SAME,
        });
        // Cell coordinates do not tell places apart that differ out of the cells' plane.
        let mut rest = apart;
        for (vector, x) in self.vectors().iter().zip(&cells) {
            rest.iter_mut().zip(vector).for_each(|(r, v)| *r -= x * v);
        }
        whole && rest.iter().all(|r| r.abs() < SAME)
    }
}
