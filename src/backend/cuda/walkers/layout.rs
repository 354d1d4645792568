//! What the kernels of walkers are handed, as `kernels/walkers.cuh` declares it.

use bytemuck::{Pod, Zeroable};

use crate::backend::walkers::{self, Radial};

/// Coefficients of a polynomial, and faces of a Wigner-Seitz cell, at most.
pub(super) const COEFFICIENTS: usize = 16;
pub(super) const FACES: usize = 7;

/// Addresses and numbers of walkers.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkArgument {
    pub positions: u64,
    pub trial: u64,
    pub points: u64,
    pub change: u64,
    pub bias: u64,
    pub moved: u64,
    pub delta: u64,
    pub control: u64,
    pub images: u64,
    pub radials: u64,
    pub centres: u64,
    pub table: u64,
    pub reach: f64,
    pub seed: u64,
    pub first: u32,
    pub walkers: u32,
    pub electrons: u32,
    pub up: u32,
    pub pairs: u32,
    pub bodies: u32,
}

impl WalkArgument {
    /// Some of the walkers, with points of their own, for kernels that know no tiles of pairs.
    pub fn part(self, from: u32, walkers: u32, points: u64) -> WalkArgument {
        let skipped = u64::from(from) * u64::from(self.electrons);
        WalkArgument {
            positions: self.positions + 24 * skipped,
            trial: self.trial + 24 * skipped,
            points,
            change: self.change + 8 * skipped,
            bias: self.bias + 8 * skipped,
            moved: self.moved + 4 * skipped,
            first: self.first + from,
            walkers,
            ..self
        }
    }
}

/// The sum of products of determinants.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpansionArgument {
    pub places: u64,
    pub coefficients: u64,
    pub shares: u64,
    pub weights: [u64; 2],
    pub logs: [u64; 2],
    pub phases: [u64; 2],
    pub total: u64,
    pub products: u32,
    pub fillings: [u32; 2],
}

/// What the kernels of delayed acceptance find about a group.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupArgument {
    pub rows: [u64; 2],
    pub inverse: [u64; 2],
    pub n: [u32; 2],
    pub order: u64,
    pub square: u64,
    pub inner: u64,
    pub change: u64,
    pub delta: u64,
    pub parts: u64,
    pub accepted: u64,
    pub x: u64,
    pub old: u64,
    pub longest: u32,
    pub size: u32,
    pub screen: u32,
}

/// What [`ControlArgument::failed`] says: a ratio that is no number, a walker on a node of the wave function.
pub(super) const NO_NUMBER: u64 = 1;
pub(super) const ON_NODE: u64 = 2;

/// What changes from run to run, and what is told after it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct ControlArgument {
    pub sweep: u64,
    pub step: f64,
    pub uniform: u64,
    pub failed: u64,
    pub moved: u64,
    /// The bits of a double that is not negative.
    pub error: u64,
}

/// The wave vector of a twist.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Twist(pub [f64; 3]);

/// Where the nearest image of a difference is looked for.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct ImagesArgument {
    reduced: [[f64; 3]; 3],
    dual: [[f64; 3]; 3],
    faces: [[f64; 4]; FACES],
    radius: f64,
    count: u64,
}

pub(super) fn images(images: &walkers::NearestImages) -> ImagesArgument {
    let mut faces = [[0.0; 4]; FACES];
    for (slot, (v, half)) in faces.iter_mut().zip(&images.faces) {
        *slot = [v[0], v[1], v[2], *half];
    }
    let (reduced, dual, radius) = (images.reduced, images.dual, images.radius);
    ImagesArgument { reduced, dual, faces, radius, count: images.faces.len() as u64 }
}

/// The reciprocal cell of a sum of waves.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct WaveMatrixArgument(pub [[f64; 3]; 3]);

/// Functions of distances that the kernels know.
#[repr(u64)]
enum RadialKind {
    Zero = 0,
    Pade = 1,
    Rpa = 2,
    Polynomial = 3,
    Log = 4,
    Power = 5,
}

/// A function of a distance.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct RadialArgument {
    kind: u64,
    count: u64,
    parameters: [f64; 4],
    coefficients: [f64; COEFFICIENTS],
}

impl RadialArgument {
    pub fn new(radial: &Radial) -> RadialArgument {
        let mut coefficients = [0.0; COEFFICIENTS];
        let mut count = 0;
        let (kind, parameters) = match radial {
            Radial::Zero => (RadialKind::Zero, [0.0; 4]),
            Radial::Pade { a, b } => (RadialKind::Pade, [*a, *b, 0.0, 0.0]),
            Radial::Rpa { strength, length, cutoff, shift } => {
                (RadialKind::Rpa, [*strength, *length, *cutoff, *shift])
            }
            Radial::Polynomial { cutoff, slope, coefficients: c } => {
                count = c.len().min(COEFFICIENTS) as u64;
                coefficients.iter_mut().zip(c).for_each(|(slot, x)| *slot = *x);
                (RadialKind::Polynomial, [*cutoff, *slope, 0.0, 0.0])
            }
            Radial::Log { a } => (RadialKind::Log, [*a, 0.0, 0.0, 0.0]),
            Radial::Power { p } => (RadialKind::Power, [*p, 0.0, 0.0, 0.0]),
        };
        RadialArgument { kind: kind as u64, count, parameters, coefficients }
    }
}
