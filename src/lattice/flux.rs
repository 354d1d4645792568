//! A magnetic field by Peierls phases in Landau gauge.
//!
//! In cell coordinates u a flux alpha through the plaquette of directions (a, b) multiplies a hopping from u to u' by
//! exp(2 pi i alpha (u_a + u'_a)/2 (u'_b - u_b)), the straight-line integral of A_b = 2 pi alpha u_a. Going round
//! direction a once, the wave function gains exp(2 pi i alpha L_a u_b); that is a function on the lattice when
//! direction b is open, or when alpha L_a L_b, the flux through the whole plane, is an integer.

use std::f64::consts::TAU;

use super::lattice::Lattice;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};

/// Phases of a uniform flux through the plaquettes of two directions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Flux {
    /// Flux quanta through the plaquette of one cell in directions a and b.
    pub alpha: f64,
    /// The direction along which the vector potential grows.
    pub a: usize,
    /// The direction in which it points.
    pub b: usize,
}

impl Flux {
    /// A flux that fits the lattice and its boundaries.
    pub fn new(lattice: &Lattice, alpha: f64, a: usize, b: usize) -> Result<Self> {
        let d = lattice.dimension();
        if a == b || a >= d || b >= d {
            return Err(Error::input(format!(
                "directions {a} and {b} span no plaquette of a lattice of {d} directions"
            ))
            .hint("name two different ones; they are numbered from 0"));
        }
        if !alpha.is_finite() {
            return Err(Error::input(format!("the flux is not a finite number ({alpha})"))
                .hint("it is a part of the flux quantum through a plaquette"));
        }
        let closed = |d: usize| lattice.wrap()[d] != Wrap::Open;
        let plane = lattice.cells()[a] as f64 * lattice.cells()[b] as f64;
        let total = alpha * plane;
        if closed(a) && closed(b) && (total - total.round()).abs() > 1e-9 * total.abs().max(1.0) {
            return Err(Error::input(format!(
                "a flux of {alpha} per plaquette gives {total} flux quanta through the {plane} plaquettes of the \
                 periodic plane; this must be a whole number"
            ))
            .hint(format!(
                "take a multiple of 1/{plane}, the nearest is {}, or open one direction",
                total.round() / plane
            )));
        }
        Ok(Flux { alpha, a, b })
    }

    /// The phase, in radians, of the matrix element of row `u` and column `v` (cell coordinates, the column not yet
    /// brought back into the lattice), and of bringing the column back over `crossings` boundaries.
    #[inline]
    pub fn angle(&self, lattice: &Lattice, u: &[f64], v: &[f64], crossings: &[i64]) -> f64 {
        let hop = 0.5 * (u[self.a] + v[self.a]) * (u[self.b] - v[self.b]);
        let back = crossings[self.a] as f64 * lattice.cells()[self.a] as f64 * v[self.b];
        // only the fraction of a turn matters, and keeping it alone keeps the digits
        let turns = self.alpha * (hop + back);
        TAU * (turns - turns.round())
    }
}
