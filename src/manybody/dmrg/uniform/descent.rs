//! Steps along the energy's gradient near the minimum: quasi-Newton steps over isometries (L-BFGS), in the metric of
//! the state's own overlap (Hauru, Van Damme, Haegeman, SciPost Phys. 10, 040 (2021)).

use std::sync::Arc;

use faer::Mat;
use faer::prelude::Solve;

use super::super::dense::{adjoint_product, product, square};
use super::super::tensor::{MpsTensor, adjoint};
use super::environment::Environments;
use super::state::Uniform;
use super::step::{StepReport, polar};
use crate::backend::Device;
use crate::backend::matrix::records::Element;
use crate::error::Result;

/// A change of the matrices of all sites, by sectors.
pub(super) type TensorChange<T> = Vec<Vec<Mat<T>>>;

/// The most steps that are remembered, and the most bytes that they take.
const REMEMBERED: usize = 20;
const BYTES: usize = 1 << 30;
/// The part of the expected gain that a step has to bring, the part of the slope that may be left, and what is rounding
/// in an energy.
const GAIN: f64 = 1e-4;
const SLOPE: f64 = 0.9;
const ROUNDING: f64 = 1e-13;
/// The most lengths that are tried.
const TRIALS: usize = 6;

/// A state in its gauge with what is known around it.
pub(super) struct Point<T> {
    pub psi: Uniform<T>,
    pub environments: Arc<Environments<T>>,
    pub found: StepReport,
    /// The energy's slope along changes of the left form.
    slope: TensorChange<T>,
}

/// Steps taken so far, seen from the last point: displacements and differences of slopes.
#[derive(Clone)]
pub(super) struct StepHistory<T>(Vec<(TensorChange<T>, TensorChange<T>)>);

fn dot<T: Element>(a: &TensorChange<T>, b: &TensorChange<T>) -> f64 {
    let mut sum = 0.0;
    for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
        for j in 0..a.ncols() {
            for i in 0..a.nrows() {
                let (x, y) = (a[(i, j)].to_c64(), b[(i, j)].to_c64());
                sum += x.re * y.re + x.im * y.im;
            }
        }
    }
    sum
}

fn add<T: Element>(a: &mut TensorChange<T>, z: f64, b: &TensorChange<T>) {
    for (a, b) in a.iter_mut().flatten().zip(b.iter().flatten()) {
        *a += b * faer::Scale(T::from_c64(z.into()));
    }
}

fn scaled<T: Element>(a: &TensorChange<T>, z: f64) -> TensorChange<T> {
    a.iter().map(|s| s.iter().map(|m| m * faer::Scale(T::from_c64(z.into()))).collect()).collect()
}

impl<T: Element> StepHistory<T> {
    pub fn new() -> StepHistory<T> {
        StepHistory(Vec::new())
    }
}

impl<T: Element> Point<T> {
    /// A state, given by its left form, with what is known of one nearby.
    ///
    /// # Errors
    /// When a fixed point or linear system fails.
    pub fn new(
        psi: &Uniform<T>,
        surroundings: &impl Fn(&Uniform<T>) -> Result<Arc<Environments<T>>>,
        device: &Device,
    ) -> Result<Point<T>> {
        let psi = psi.completed()?;
        let environments = surroundings(&psi)?;
        let n = psi.count();
        let (mut gradient, mut squares) = (0.0f64, 0.0);
        let mut slope = Vec::with_capacity(n);
        for site in 0..n {
            crate::task::poll()?;
            let rest = psi.rest(&environments, device, site)?;
            let sum: f64 = rest.iter().map(|y| square(y.as_ref())).sum();
            gradient = gradient.max(sum.sqrt());
            squares += sum;
            let centre = &psi.centre[psi.behind(site)];
            let own = rest.iter().zip(centre).map(|(y, c)| product(y.as_ref(), adjoint(c.as_ref()).as_ref()));
            slope.push(own.collect());
        }
        let found = StepReport { energy: environments.energy, gradient, squares };
        Ok(Point { psi, environments, found, slope })
    }

    /// What of a change is no mere change of bases.
    fn along(&self, change: &TensorChange<T>) -> TensorChange<T> {
        let site = |(tensor, change): (&MpsTensor<T>, &Vec<Mat<T>>)| -> Vec<Mat<T>> {
            let one = |(a, d): (&Mat<T>, &Mat<T>)| {
                let known = adjoint_product(a.as_ref(), d.as_ref());
                d - product(a.as_ref(), known.as_ref())
            };
            tensor.matrices.iter().zip(change).map(one).collect()
        };
        self.psi.left.iter().zip(change).map(site).collect()
    }

    /// A slope as a change, by the inverse of the state's overlap: `g (C C^H + delta)^-1`.
    fn raised(&self, slope: &TensorChange<T>) -> TensorChange<T> {
        let delta = self.found.gradient.powi(2).clamp(1e-15, 1e-3);
        let n = self.psi.count();
        let mut out = Vec::with_capacity(n);
        for site in 0..n {
            let centre = &self.psi.centre[self.psi.behind(site)];
            let one = |(g, c): (&Mat<T>, &Mat<T>)| {
                let mut metric = product(c.as_ref(), adjoint(c.as_ref()).as_ref());
                for k in 0..metric.nrows() {
                    metric[(k, k)] += T::from_c64(delta.into());
                }
                let solved = metric.partial_piv_lu().solve(adjoint(g.as_ref()));
                adjoint(solved.as_ref())
            };
            out.push(slope[site].iter().zip(centre).map(one).collect());
        }
        out
    }

    /// Where to go by the last steps.
    fn direction(&self, memory: &StepHistory<T>) -> TensorChange<T> {
        let mut q = self.slope.clone();
        let mut weights = Vec::new();
        for (s, y) in memory.0.iter().rev() {
            let a = dot(s, &q) / dot(s, y);
            add(&mut q, -a, y);
            weights.push(a);
        }
        let mut d = self.raised(&self.along(&q));
        if let Some((s, y)) = memory.0.last() {
            let scale = dot(s, y) / dot(y, &self.raised(y));
            if scale.is_finite() && scale > 0.0 {
                d = scaled(&d, scale);
            }
        }
        for ((s, y), a) in memory.0.iter().zip(weights.iter().rev()) {
            let b = dot(y, &d) / dot(s, y);
            add(&mut d, a - b, s);
        }
        scaled(&self.along(&d), -1.0)
    }

    /// The left form a step away.
    fn away(&self, change: &TensorChange<T>, length: f64) -> Result<Uniform<T>> {
        let mut psi = self.psi.clone();
        for (tensor, change) in psi.left.iter_mut().zip(change) {
            for (m, d) in tensor.matrices.iter_mut().zip(change) {
                let moved = &*m + d * faer::Scale(T::from_c64(length.into()));
                *m = polar(moved.as_ref())?;
            }
        }
        Ok(psi)
    }

    /// One step with its line search, and the memory as seen from there; nothing where no length lowers the energy.
    ///
    /// # Errors
    /// When a fixed point, linear system or decomposition fails; interruption.
    pub fn step(
        &self,
        memory: &StepHistory<T>,
        surroundings: &impl Fn(&Uniform<T>) -> Result<Arc<Environments<T>>>,
        device: &Device,
    ) -> Result<Option<(Point<T>, StepHistory<T>)>> {
        let mut memory = memory.clone();
        let mut change = self.direction(&memory);
        let mut slope = dot(&self.slope, &change);
        if !(slope < 0.0) {
            memory = StepHistory::new();
            change = self.direction(&memory);
            slope = dot(&self.slope, &change);
        }
        let rounding = ROUNDING * (1.0 + self.found.energy.abs());
        let mut length = 1.0;
        for _ in 0..TRIALS {
            let to = Point::new(&self.away(&change, length)?, surroundings, device)?;
            let after = dot(&to.slope, &to.along(&change));
            let gain = to.found.energy - self.found.energy;
            let lower = gain <= 2.0 * GAIN * length * slope;
            // Where energies are known no better, slopes tell.
            let flat = gain.abs() < rounding && after.abs() <= SLOPE * slope.abs();
            if lower || flat {
                let memory = self.remembered(memory, &to, &change, length);
                return Ok(Some((to, memory)));
            }
            let part = slope / (slope - after);
            length *= if part.is_finite() && after > 0.0 { part.clamp(0.1, 0.5) } else { 0.3 };
        }
        Ok(None)
    }

    fn remembered(
        &self,
        memory: StepHistory<T>,
        to: &Point<T>,
        change: &TensorChange<T>,
        length: f64,
    ) -> StepHistory<T> {
        let mut all: Vec<(TensorChange<T>, TensorChange<T>)> =
            memory.0.iter().map(|(s, y)| (to.along(s), to.along(y))).collect();
        let s = to.along(&scaled(change, length));
        let mut y = to.slope.clone();
        add(&mut y, -1.0, &to.along(&self.slope));
        if dot(&s, &y) > 0.0 {
            all.push((s, y));
        }
        all.retain(|(s, y)| dot(s, y) > 1e-14 * (dot(s, s) * dot(y, y)).sqrt());
        let room = (BYTES / self.psi.bytes().max(1)).clamp(4, REMEMBERED);
        let first = all.len().saturating_sub(room);
        StepHistory(all.split_off(first))
    }
}
