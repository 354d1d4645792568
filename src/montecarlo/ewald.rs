//! Coulomb energies in a periodic cell: Ewald's sum, a short one over images and one over reciprocal vectors.

use std::f64::consts::PI;

use super::SimulationCell;
use super::vectors::square;
use super::waves::{Phases, around, upper, wave_vector, within};
use crate::backend::walkers::EwaldSums;

/// Where both sums are cut: erfc(5.8) = 2e-16, exp(-5.8^2) = 2e-15.
const CUT: f64 = 5.8;

/// The splitting parameter in units of 1/V^(1/3): it balances both sums for some tens of charges.
const SPLIT: f64 = 5.0;

/// The energy of charges that repeat with a cell, with a neutralising background where they are not neutral.
#[derive(Debug, Clone)]
pub struct Ewald {
    cell: SimulationCell,
    alpha: f64,
    /// Lattice vectors whose images of a vector in the cell may lie within the cut.
    images: Vec<[f64; 3]>,
    /// The waves: one of each pair G, -G, in lines along the third reciprocal vector. For each line the numbers of
    /// its first wave, and its range in `weights`.
    lines: Vec<([i32; 3], std::ops::Range<usize>)>,
    /// `8 pi exp(-G^2/4 alpha^2)/(V G^2)` for each wave, G and -G together.
    weights: Vec<f64>,
    madelung: f64,
    /// The short-range potential of all images of a charge, at the charge.
    far: f64,
}

impl Ewald {
    /// The sums for a cell.
    pub fn new(cell: &SimulationCell) -> Ewald {
        let volume = cell.volume();
        let alpha = SPLIT / volume.cbrt();
        let cut = CUT / alpha;
        // A vector among the shortest images is no longer than half the three edges together.
        let lengths = cell.vectors().map(|a| square(a).sqrt());
        let longest = 0.5 * lengths.iter().sum::<f64>();
        let reach: [i32; 3] = std::array::from_fn(|a| {
            let height = 2.0 * PI / square(cell.reciprocal()[a]).sqrt();
            ((cut + longest) / height).ceil() as i32
        });
        let mut images = Vec::new();
        for n in around(reach) {
            let shift = cell.cartesian(n.map(f64::from));
            if square(shift).sqrt() <= cut + longest {
                images.push(shift);
            }
        }
        images.sort_by(|a, b| square(*a).total_cmp(&square(*b)));
        let most = (2.0 * alpha * CUT).powi(2);
        let mut waves = within(cell, [0.0; 3], most);
        waves.retain(|n| n != &[0; 3] && upper(n));
        waves.sort_unstable();
        let (mut lines, mut weights) = (Vec::<([i32; 3], std::ops::Range<usize>)>::new(), Vec::new());
        for (at, n) in waves.iter().enumerate() {
            let g2 = square(wave_vector(cell, n.map(f64::from)));
            weights.push(8.0 * PI * (-g2 / (4.0 * alpha * alpha)).exp() / (volume * g2));
            match lines.last_mut() {
                Some((first, range)) if first[..2] == n[..2] && first[2] + range.len() as i32 == n[2] => {
                    range.end += 1;
                }
                _ => lines.push((*n, at..at + 1)),
            }
        }
        let mut ewald = Ewald { cell: cell.clone(), alpha, images, lines, weights, madelung: 0.0, far: 0.0 };
        // A charge with its own images: the pair potential at r = 0 without the charge itself.
        ewald.far = ewald.images.iter().filter(|r| square(**r) > 0.0).map(|r| ewald.short(square(*r))).sum();
        let wave: f64 = ewald.weights.iter().sum();
        ewald.madelung = ewald.far + wave - 2.0 * alpha / PI.sqrt() + ewald.background();
        ewald
    }

    pub fn cell(&self) -> &SimulationCell {
        &self.cell
    }

    /// xi: the potential of all images of a charge, and of its background, where the charge is.
    pub fn madelung(&self) -> f64 {
        self.madelung
    }

    /// The potential at `r` of a unit charge at the origin, its images and its background, whose mean over the cell is
    /// zero. Infinite at the charge.
    pub fn pair(&self, r: [f64; 3]) -> f64 {
        // The square of the sum of 1 and of exp(i G . r) is 2 + 2 cos(G . r).
        let total: f64 = self.weights.iter().sum();
        let both = self.structure(&[1.0, 1.0], &[[0.0; 3], r]);
        (both - 2.0 * total) / 2.0 + self.near(r) + self.background()
    }

    /// `sum_G w_G |sum_i q_i exp(i G . r_i)|^2`.
    fn structure(&self, charges: &[f64], positions: &[[f64; 3]]) -> f64 {
        let (mut re, mut im) = (vec![0.0; self.weights.len()], vec![0.0; self.weights.len()]);
        let last =
            |(n, range): &([i32; 3], std::ops::Range<usize>)| [n[0], n[1], n[2] + range.len() as i32 - 1];
        let reach: Vec<[i32; 3]> = self.lines.iter().flat_map(|line| [line.0, last(line)]).collect();
        let mut phases = Phases::reaching(&reach);
        for (q, r) in charges.iter().zip(positions) {
            phases.set(self.cell.fractional(*r));
            for (n, range) in &self.lines {
                let across = phases.at(&[n[0], n[1], 0]) * *q;
                let along = phases.line(n[2], range.len());
                for ((re, im), z) in re[range.clone()].iter_mut().zip(&mut im[range.clone()]).zip(along) {
                    *re += across.re * z.re - across.im * z.im;
                    *im += across.re * z.im + across.im * z.re;
                }
            }
        }
        self.weights.iter().zip(re.iter().zip(&im)).map(|(w, (a, b))| w * (a * a + b * b)).sum()
    }

    /// The energy of charges at places, each with its own images: `1/2 sum_{i != j} q_i q_j pair + 1/2 sum_i q_i^2 xi`.
    pub fn energy(&self, charges: &[f64], positions: &[[f64; 3]]) -> f64 {
        let wave = self.structure(charges, positions);
        let mut near = 0.0;
        for i in 0..charges.len() {
            for j in 0..i {
                let r = std::array::from_fn(|d| positions[i][d] - positions[j][d]);
                near += charges[i] * charges[j] * self.near(r);
            }
        }
        let squares: f64 = charges.iter().map(|q| q * q).sum();
        let total: f64 = charges.iter().sum();
        wave / 2.0 + near + squares * self.own() + total * total * self.background() / 2.0
    }

    /// The sums for unit charges, for a backend.
    pub fn sums(&self) -> EwaldSums {
        let line = |(n, range): &([i32; 3], std::ops::Range<usize>)| {
            let n = *n;
            range
                .clone()
                .enumerate()
                .map(move |(k, at)| ([n[0], n[1], n[2] + k as i32], at))
                .collect::<Vec<_>>()
        };
        EwaldSums {
            alpha: self.alpha,
            cut: CUT,
            images: self.images.clone(),
            waves: self.lines.iter().flat_map(line).map(|(n, at)| (n, self.weights[at])).collect(),
            own: self.own(),
            background: self.background() / 2.0,
        }
    }

    /// The short-range energy of a unit charge with its own images, minus the self-energy of its Gaussian.
    fn own(&self) -> f64 {
        self.far / 2.0 - self.alpha / PI.sqrt()
    }

    /// The constant potential of the background, `-pi/(alpha^2 V)`.
    fn background(&self) -> f64 {
        -PI / (self.alpha * self.alpha * self.cell.volume())
    }

    /// `erfc(alpha r)/r`.
    fn short(&self, r2: f64) -> f64 {
        let r = r2.sqrt();
        if r * self.alpha > CUT { 0.0 } else { libm::erfc(self.alpha * r) / r }
    }

    /// The short-range potential, summed over all images.
    fn near(&self, r: [f64; 3]) -> f64 {
        let r = self.cell.minimum_image(r);
        let (length, cut) = (square(r).sqrt(), CUT / self.alpha);
        let mut sum = 0.0;
        for image in &self.images {
            // Images come by length: beyond this one all are too far.
            if square(*image).sqrt() > cut + length {
                break;
            }
            sum += self.short(square(std::array::from_fn(|d| r[d] + image[d])));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::philox;

    #[test]
    fn the_cubic_lattice_has_its_madelung_constant() {
        for length in [1.0, 6.1] {
            let xi = Ewald::new(&SimulationCell::cubic(length).unwrap()).madelung();
            assert!((xi * length + 2.837297479481).abs() < 1e-11, "{}", xi * length);
        }
    }

    #[test]
    fn rock_salt_has_its_madelung_constant() {
        // The primitive cell: a Na and a Cl, half an edge apart.
        let cell = SimulationCell::new([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]).unwrap();
        let energy = Ewald::new(&cell).energy(&[1.0, -1.0], &[[0.0; 3], [1.0, 0.0, 0.0]]);
        assert!((energy + 1.747564594633182).abs() < 1e-12, "{energy}");
    }

    #[test]
    fn the_energy_is_that_of_its_pairs_in_any_cell() {
        let skew = SimulationCell::new([[3.0, 0.0, 0.0], [1.0, 2.0, 0.3], [-1.0, 0.4, 4.0]]).unwrap();
        let ewald = Ewald::new(&skew);
        let at = |k: u64| -> [f64; 3] {
            let w = philox::words(3, 5, k, 0);
            skew.cartesian([0, 1, 2].map(|d| f64::from(w[d]) / 4294967296.0))
        };
        let positions: Vec<[f64; 3]> = (0..6).map(at).collect();
        let charges = [1.0, -2.0, 0.5, 1.0, 1.0, -0.25];
        let mut pairs = 0.0;
        for i in 0..6 {
            pairs += charges[i] * charges[i] * ewald.madelung() / 2.0;
            for j in 0..i {
                let r = std::array::from_fn(|d| positions[i][d] - positions[j][d]);
                pairs += charges[i] * charges[j] * ewald.pair(r);
            }
        }
        let energy = ewald.energy(&charges, &positions);
        assert!((energy - pairs).abs() < 1e-11, "{energy} {pairs}");
        // The same lattice by other vectors, and the potential repeats.
        let other = SimulationCell::new([[3.0, 0.0, 0.0], [4.0, 2.0, 0.3], [-1.0, 0.4, 4.0]]).unwrap();
        assert!((Ewald::new(&other).energy(&charges, &positions) - energy).abs() < 1e-11);
        let (r, moved) = ([0.3, 0.2, 0.1], [3.3 + 1.0 - 1.0, 2.2 + 0.4, 0.1 + 0.3 + 4.0]);
        assert!((ewald.pair(r) - ewald.pair(moved)).abs() < 1e-12);
    }
}
