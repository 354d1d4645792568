//! One-particle orbitals: what a Slater determinant is made of.

pub mod casino;
mod fourier;
mod gaussian;
pub mod interpolate;
mod set;
mod spline;

use super::SimulationCell;
use crate::number::Scalar;
pub use fourier::Fourier;
pub use gaussian::{Gaussians, Shell};
pub use set::{OrbitalBasis, OrbitalSet, OrbitalSource};
pub use spline::{SplineLayout, SplineOrbitals};

/// One-particle orbitals `psi_l(r)`, l = 0 .. count - 1, in one to three dimensions (unused coordinates are zero).
/// Lengths are in bohr.
pub trait Orbitals<S: Scalar>: Send + Sync {
    /// L, how many orbitals there are.
    fn count(&self) -> usize;
    /// How many coordinates count (1, 2, 3).
    fn dimension(&self) -> usize;
    /// The cell the electrons live in, if it is periodic.
    fn cell(&self) -> Option<&SimulationCell>;
    /// `out[p * count + l] = psi_l(points[p])`.
    fn values(&self, points: &[[f64; 3]], out: &mut [S]);
    /// The same with the gradient and the Laplacian: each of the five planes is `points x count`.
    fn derivatives(&self, points: &[[f64; 3]], out: &mut Derivatives<S>);
    /// A label for results.
    fn describe(&self) -> String;
    /// The same as splines, if they are.
    fn splines(&self) -> Option<&SplineOrbitals> {
        None
    }
}

/// Values, gradients and Laplacians of all orbitals at some points; each plane is `points x count`.
pub struct Derivatives<S> {
    /// `psi_l(r_p)`.
    pub value: Vec<S>,
    /// Its gradient, by x, y and z.
    pub gradient: [Vec<S>; 3],
    pub laplacian: Vec<S>,
}

impl<S: Scalar> Derivatives<S> {
    /// Room for `count` orbitals at `points` points.
    pub fn new(points: usize, count: usize) -> Derivatives<S> {
        let plane = || vec![S::default(); points * count];
        Derivatives { value: plane(), gradient: [plane(), plane(), plane()], laplacian: plane() }
    }
}
