//! A periodic cell: lattice vectors, their reciprocals, and the nearest image of a vector.

use std::f64::consts::PI;

use super::vectors::{cross, dot, length};
use crate::backend::walkers::NearestImages;
use crate::error::{Error, Result};

/// A parallelepiped that repeats in three directions; lengths in bohr.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationCell {
    vectors: [[f64; 3]; 3],
    reciprocal: [[f64; 3]; 3],
    volume: f64,
    images: NearestImages,
}

/// Most cells in Ewald's sum over images; only vectors whose lengths differ by some factor of 10^4 need more.
const MOST_IMAGES: f64 = 2e7;

fn combine(f: [f64; 3], v: &[[f64; 3]; 3]) -> [f64; 3] {
    std::array::from_fn(|i| f[0] * v[0][i] + f[1] * v[1][i] + f[2] * v[2][i])
}

/// Vectors with `d_i . v_j = delta_ij`.
fn duals(v: &[[f64; 3]; 3], signed_volume: f64) -> [[f64; 3]; 3] {
    std::array::from_fn(|i| cross(v[(i + 1) % 3], v[(i + 2) % 3]).map(|x| x / signed_volume))
}

/// Shortens each vector by the others until none can be shortened.
fn reduce(mut v: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    // Every step shortens a vector by more than rounding, so there are few; the bound is a safeguard.
    for _ in 0..200 {
        let mut changed = false;
        for i in 0..3 {
            for (p, q) in [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)].into_iter().chain([
                (1.0, 1.0),
                (1.0, -1.0),
                (-1.0, 1.0),
                (-1.0, -1.0),
            ]) {
                let (b, c) = (v[(i + 1) % 3], v[(i + 2) % 3]);
                let w: [f64; 3] = std::array::from_fn(|k| v[i][k] + p * b[k] + q * c[k]);
                if dot(w, w) < dot(v[i], v[i]) * (1.0 - 1e-12) {
                    v[i] = w;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    v
}

impl SimulationCell {
    /// Whether another cell has the same vectors, up to the rounding of files.
    pub fn is_near(&self, other: &SimulationCell) -> bool {
        let scale = self.vectors.iter().map(|v| dot(*v, *v)).fold(0.0, f64::max).sqrt();
        let all = self.vectors.iter().flatten().zip(other.vectors.iter().flatten());
        all.into_iter().all(|(a, b)| (a - b).abs() < 1e-6 * scale)
    }

    /// Whether it is made of whole cells of another, up to the rounding of files.
    pub fn is_multiple_of(&self, other: &SimulationCell) -> bool {
        let whole = |x: &f64| (x - x.round()).abs() < 1e-6 * x.abs().max(1.0);
        self.vectors.iter().all(|v| other.fractional(*v).iter().all(whole))
    }

    /// From three lattice vectors, the rows.
    ///
    /// # Errors
    /// When they are not finite, lie in a plane, or differ in length by so much that sums over images never end.
    pub fn new(vectors: [[f64; 3]; 3]) -> Result<SimulationCell> {
        let signed = dot(vectors[0], cross(vectors[1], vectors[2]));
        let scale: f64 = vectors.iter().map(|v| length(*v)).product();
        if !(signed.abs() > 1e-9 * scale) || !scale.is_finite() {
            return Err(Error::input("the three vectors of a cell do not span a volume")
                .hint("give three finite vectors that do not lie in a plane"));
        }
        let volume = signed.abs();
        let reciprocal = duals(&vectors, signed).map(|v| v.map(|x| 2.0 * PI * x));
        let reach = volume.cbrt() + 0.5 * vectors.iter().map(|v| length(*v)).sum::<f64>();
        let images: f64 = reciprocal.iter().map(|g| reach * dot(*g, *g).sqrt() / PI + 1.0).product();
        if !(images < MOST_IMAGES) {
            return Err(Error::input(format!("a cell so thin that sums over it take {images:.0e} images"))
                .hint("give three vectors of more alike lengths, or a larger cell across"));
        }
        let reduced = reduce(vectors);
        let dual = duals(&reduced, dot(reduced[0], cross(reduced[1], reduced[2])));
        let box_like = (0..3).all(|i| {
            let (a, b) = (reduced[i], reduced[(i + 1) % 3]);
            dot(a, b).abs() < 1e-12 * (dot(a, a) * dot(b, b)).sqrt()
        });
        let steps = |k: i32| [k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1].map(f64::from);
        let all = (0..27).filter(|&k| k != 13).map(|k| combine(steps(k), &reduced));
        let neighbours: Vec<[f64; 3]> = all.collect();
        let square = |v: &[f64; 3]| dot(*v, *v);
        // A neighbour stands for a face of the Wigner-Seitz cell if no other lattice point is as near to its
        // midpoint.
        let face =
            |v: &&[f64; 3]| neighbours.iter().all(|u| u == *v || dot(**v, *u) < square(u) * (1.0 - 1e-12));
        let one_of_two = |v: &&[f64; 3]| **v > v.map(|x| -x);
        let faces =
            neighbours.iter().filter(one_of_two).filter(face).map(|v| (*v, 0.5 * square(v))).collect();
        let shortest = neighbours.iter().map(|v| dot(*v, *v)).fold(f64::INFINITY, f64::min).sqrt();
        Ok(SimulationCell {
            vectors,
            reciprocal,
            volume,
            images: NearestImages {
                reduced,
                dual,
                faces: if box_like { Vec::new() } else { faces },
                radius: 0.5 * shortest,
            },
        })
    }

    /// A cube of edge `length`.
    ///
    /// # Errors
    /// When the length is not positive.
    pub fn cubic(length: f64) -> Result<SimulationCell> {
        SimulationCell::new([[length, 0.0, 0.0], [0.0, length, 0.0], [0.0, 0.0, length]])
    }

    /// The lattice vectors, as rows.
    pub fn vectors(&self) -> &[[f64; 3]; 3] {
        &self.vectors
    }

    /// The reciprocal vectors, as rows: `b_i . a_j = 2 pi delta_ij`.
    pub fn reciprocal(&self) -> &[[f64; 3]; 3] {
        &self.reciprocal
    }

    /// The volume, in bohr^3.
    pub fn volume(&self) -> f64 {
        self.volume
    }

    /// The radius of the largest sphere in the Wigner-Seitz cell: half the shortest lattice vector.
    pub fn wigner_seitz_radius(&self) -> f64 {
        self.images.radius
    }

    /// The coordinates of a point in units of the lattice vectors.
    pub fn fractional(&self, point: [f64; 3]) -> [f64; 3] {
        self.reciprocal.map(|b| dot(b, point) / (2.0 * PI))
    }

    /// The point with these coordinates in units of the lattice vectors.
    pub fn cartesian(&self, fractional: [f64; 3]) -> [f64; 3] {
        combine(fractional, &self.vectors)
    }

    /// The image of a point in the cell, coordinates in [0, 1).
    pub fn wrap(&self, point: [f64; 3]) -> [f64; 3] {
        self.cartesian(self.fractional(point).map(|x| {
            let inside = x - x.floor();
            // A tiny negative number rounds up to 1.
            if inside < 1.0 { inside } else { 0.0 }
        }))
    }

    /// The data for the search of the nearest image.
    pub fn images(&self) -> &NearestImages {
        &self.images
    }

    /// The matrix from Cartesian to fractional coordinates, as rows.
    pub fn inverse(&self) -> [[f64; 3]; 3] {
        self.reciprocal.map(|b| b.map(|x| x / (2.0 * PI)))
    }

    /// The shortest vector that differs from this one by a lattice vector.
    pub fn minimum_image(&self, vector: [f64; 3]) -> [f64; 3] {
        let NearestImages { reduced, dual, faces, radius } = &self.images;
        let n = dual.map(|d| nearest_whole(dot(d, vector)));
        let shift = combine(n, reduced);
        let mut inside = [vector[0] - shift[0], vector[1] - shift[1], vector[2] - shift[2]];
        if faces.is_empty() || dot(inside, inside) <= radius * radius {
            return inside;
        }
        // Every crossing of a face shortens the vector, so there are few; the bound ends the loop for NaN.
        for _ in 0..16 {
            let mut crossed = false;
            for (face, half) in faces {
                let along = dot(inside, *face);
                if along.abs() > half * (1.0 + 1e-14) {
                    let sign = along.signum();
                    inside =
                        [inside[0] - sign * face[0], inside[1] - sign * face[1], inside[2] - sign * face[2]];
                    crossed = true;
                }
            }
            if !crossed {
                break;
            }
        }
        inside
    }
}

/// The nearest whole number, without the function call that `round` is on processors before SSE 4.1. Adding 1.5 2^52
/// leaves no bits after the binary point.
#[inline(always)]
fn nearest_whole(x: f64) -> f64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    (x + SHIFT) - SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fcc(a: f64) -> SimulationCell {
        SimulationCell::new([[0.0, a / 2.0, a / 2.0], [a / 2.0, 0.0, a / 2.0], [a / 2.0, a / 2.0, 0.0]])
            .unwrap()
    }

    #[test]
    fn reciprocal_vectors_and_volume() {
        let cell = fcc(4.0);
        assert!((cell.volume() - 16.0).abs() < 1e-12);
        assert!((cell.wigner_seitz_radius() - 2f64.sqrt()).abs() < 1e-12);
        for i in 0..3 {
            for j in 0..3 {
                let expected = if i == j { 2.0 * PI } else { 0.0 };
                assert!((dot(cell.reciprocal()[i], cell.vectors()[j]) - expected).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn images_are_the_shortest_of_a_wide_search() {
        let skew = SimulationCell::new([[3.0, 0.0, 0.0], [2.9, 1.0, 0.0], [-4.0, 5.0, 2.0]]).unwrap();
        for cell in [fcc(3.0), skew, SimulationCell::cubic(2.0).unwrap()] {
            for k in 0..200 {
                let w = crate::number::philox::words(1, 6, k, 0).map(|w| f64::from(w) / 2e9 - 1.0);
                let point = cell.cartesian([7.0 * w[0], 7.0 * w[1], 7.0 * w[2]]);
                let found = cell.minimum_image(point);
                let wrapped = cell.wrap(point);
                let mut best = f64::INFINITY;
                for n in 0..15i32.pow(3) {
                    let step = [n / 225 - 7, n / 15 % 15 - 7, n % 15 - 7].map(f64::from);
                    let shift = cell.cartesian(step);
                    let moved: [f64; 3] = std::array::from_fn(|i| wrapped[i] + shift[i]);
                    best = best.min(dot(moved, moved));
                }
                assert!((dot(found, found) - best).abs() < 1e-9, "{found:?}");
                let f = cell.fractional(std::array::from_fn(|i| found[i] - point[i]));
                assert!(f.iter().all(|x| (x - x.round()).abs() < 1e-9));
            }
        }
    }

    #[test]
    fn flat_cells_are_refused() {
        assert!(SimulationCell::new([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]).is_err());
        assert!(SimulationCell::cubic(f64::NAN).is_err() && SimulationCell::cubic(0.0).is_err());
    }
}
