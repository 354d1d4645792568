//! The magnetic field of a model: fluxes, and the phases that electrons gain on their ways in it.

use super::flux::Flux;
use super::lattice::{Lattice, MAX_DIMENSION};
use super::model::Model;
use crate::backend::matrix::Wrap;
use crate::error::Result;

/// The vector potential of a model, and the phases of its boundaries.
#[derive(Debug, Clone)]
pub struct VectorPotential<'a> {
    lattice: &'a Lattice,
    fluxes: &'a [Flux],
}

impl VectorPotential<'_> {
    /// The phase, in radians, that an electron gains on the straight way between two Cartesian places.
    pub fn on_the_way(&self, from: &[f64], to: &[f64]) -> f64 {
        self.angle(from, to, &[0; MAX_DIMENSION])
    }

    /// The phase, in radians, of the matrix element of a place and what lies once around a periodic direction from it.
    pub fn around(&self, direction: usize, place: &[f64]) -> f64 {
        let cells = self.lattice.cells()[direction] as f64;
        let beyond: Vec<f64> =
            place.iter().zip(&self.lattice.vectors()[direction]).map(|(x, a)| x + cells * a).collect();
        let mut crossings = [0; MAX_DIMENSION];
        crossings[direction] = 1;
        let boundary = match self.lattice.wrap()[direction] {
            Wrap::Phase(p) => p.arg(),
            _ => 0.0,
        };
        boundary + self.angle(&beyond, place, &crossings)
    }

    fn angle(&self, from: &[f64], to: &[f64], crossings: &[i64]) -> f64 {
        let (v, u) = (self.lattice.cell_coordinates(from), self.lattice.cell_coordinates(to));
        self.fluxes.iter().map(|flux| flux.angle(self.lattice, &u, &v, crossings)).sum()
    }
}

impl Model {
    /// Puts a magnetic flux of `alpha` quanta through every plaquette of directions `a` and `b` (Landau gauge, Peierls
    /// phases on all hoppings, those added later included). Fluxes add up.
    ///
    /// # Errors
    /// When the directions span no plaquette, or both are periodic and the total flux is not an integer.
    pub fn flux(&mut self, alpha: f64, a: usize, b: usize) -> Result<()> {
        let flux = Flux::new(&self.lattice, alpha, a, b)?;
        if alpha != 0.0 {
            self.fluxes.push(flux);
        }
        Ok(())
    }

    /// Whether there is a magnetic field.
    pub fn has_field(&self) -> bool {
        !self.fluxes.is_empty()
    }

    /// Whether the vector potential is the same in all cells along a direction.
    pub fn field_repeats(&self, direction: usize) -> bool {
        self.fluxes.iter().all(|flux| flux.a != direction)
    }

    /// The vector potential.
    pub fn potential(&self) -> VectorPotential<'_> {
        VectorPotential { lattice: &self.lattice, fluxes: &self.fluxes }
    }
}
