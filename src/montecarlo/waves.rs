//! Plane waves of a cell at a point, for all Fourier sums, from potentials to orbitals.

use super::SimulationCell;
use super::vectors::square;
use crate::number::C64;

/// The powers `exp(2 pi i n t_a)` of the three phases of a point, |n| up to a reach along each reciprocal vector.
pub(super) struct Phases {
    reach: [i32; 3],
    powers: [Vec<C64>; 3],
}

impl Phases {
    /// Room for the waves given.
    pub fn reaching<'a>(waves: impl IntoIterator<Item = &'a [i32; 3]>) -> Phases {
        let mut reach = [0; 3];
        for n in waves {
            for a in 0..3 {
                reach[a] = n[a].abs().max(reach[a]);
            }
        }
        Phases { reach, powers: reach.map(|m| vec![C64::ONE; 2 * m as usize + 1]) }
    }

    /// Sets the point, in units of the lattice vectors.
    pub fn set(&mut self, fractional: [f64; 3]) {
        for a in 0..3 {
            let base = C64::cis(2.0 * std::f64::consts::PI * (fractional[a] - fractional[a].round()));
            let (m, powers) = (self.reach[a] as usize, &mut self.powers[a]);
            let mut power = C64::ONE;
            for n in 1..=m {
                power *= base;
                powers[m + n] = power;
                powers[m - n] = power.conj();
            }
        }
    }

    /// The powers of the third phase from `first` on.
    pub fn line(&self, first: i32, count: usize) -> &[C64] {
        let at = (first + self.reach[2]) as usize;
        &self.powers[2][at..at + count]
    }

    /// `exp(i G . r)` for G = sum n_a b_a.
    #[inline]
    pub fn at(&self, n: &[i32; 3]) -> C64 {
        let factor = |a: usize| self.powers[a][(n[a] + self.reach[a]) as usize];
        factor(0) * factor(1) * factor(2)
    }
}

/// `sum n_a b_a`, where n need not be whole.
pub(super) fn wave_vector(cell: &SimulationCell, n: [f64; 3]) -> [f64; 3] {
    let b = cell.reciprocal();
    std::array::from_fn(|d| n[0] * b[0][d] + n[1] * b[1][d] + n[2] * b[2][d])
}

/// All n with |n_a| up to a reach in each direction.
pub(super) fn around(reach: [i32; 3]) -> impl Iterator<Item = [i32; 3]> {
    let along = |a: usize| -reach[a]..=reach[a];
    let [x, y, z] = [along(0), along(1), along(2)];
    x.flat_map(move |x| {
        let z = z.clone();
        y.clone().flat_map(move |y| z.clone().map(move |z| [x, y, z]))
    })
}

/// All n with `|sum (n_a + shift_a) b_a|^2 <= most`, by length, then by n.
pub(super) fn within(cell: &SimulationCell, shift: [f64; 3], most: f64) -> Vec<[i32; 3]> {
    // A wave vector's component along a lattice vector is 2 pi times its number.
    let reach: [i32; 3] = std::array::from_fn(|a| {
        let length = square(cell.vectors()[a]).sqrt();
        (most.max(0.0).sqrt() * length / (2.0 * std::f64::consts::PI) + shift[a].abs()).floor() as i32 + 1
    });
    let mut found = Vec::new();
    for n in around(reach) {
        let length = square(wave_vector(cell, std::array::from_fn(|a| f64::from(n[a]) + shift[a])));
        // Vectors of one shell are all in or all out.
        if length <= most * (1.0 + 1e-12) {
            found.push((length, n));
        }
    }
    let shell = |length: f64| (length / most.max(f64::MIN_POSITIVE) * 1e9).round() as i64;
    found.sort_by_key(|&(length, n)| (shell(length), n));
    found.into_iter().map(|(_, n)| n).collect()
}

/// Of each pair n, -n, the one whose first number that is not zero is positive; zero counts.
pub(super) fn upper(n: &[i32; 3]) -> bool {
    n.iter().find(|&&x| x != 0).is_none_or(|&x| x > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_exponentials() {
        let waves = [[3, -2, 0], [0, 1, 5]];
        let mut phases = Phases::reaching(&waves);
        let t = [0.3, -7.8, 0.45];
        phases.set(t);
        for n in &waves {
            let angle: f64 = (0..3).map(|a| f64::from(n[a]) * t[a]).sum();
            assert!((phases.at(n) - C64::cis(2.0 * std::f64::consts::PI * angle)).norm() < 1e-13);
        }
    }

    #[test]
    fn shells_are_whole() {
        let cell = SimulationCell::cubic(2.0 * std::f64::consts::PI).unwrap();
        let count = |most| within(&cell, [0.0; 3], most).len();
        assert_eq!([count(0.0), count(1.0), count(2.0), count(3.0), count(4.0)], [1, 7, 19, 27, 33]);
        assert_eq!(within(&cell, [0.5, 0.0, 0.0], 0.25).len(), 2);
    }
}
