//! Hoppings between atomic orbitals by two-centre integrals (Slater and Koster, Phys. Rev. 94, 1498 (1954)), and the
//! spin-orbit coupling of their shells.
//!
//! Table I of that paper follows from one rule: in axes whose third one is along the bond, only orbitals of equal
//! angular momentum m couple, by `V_ll'm`. A p orbital is a vector, a d orbital a symmetric matrix without trace, of
//! norm one; a rotation `R` turns them into `R v` and `R Q R^T`.

use smallvec::SmallVec;

use super::block::OrbitalBlock;
use crate::error::{Error, Result, nearest};
use crate::number::C64;

/// The kinds of shells, an excited s among them.
pub const SHELLS: [&str; 4] = ["s", "s*", "p", "d"];
/// The bonds, by the angular momentum along their axis.
pub const BONDS: [&str; 3] = ["sigma", "pi", "delta"];

/// The orbitals' names; those of one shell follow each other.
const NAMES: [(&str, Orbital); 12] = [
    ("s", Orbital { shell: 0, number: 0 }),
    ("s*", Orbital { shell: 1, number: 0 }),
    ("px", Orbital { shell: 2, number: 0 }),
    ("py", Orbital { shell: 2, number: 1 }),
    ("pz", Orbital { shell: 2, number: 2 }),
    ("dxy", Orbital { shell: 3, number: 0 }),
    ("dyz", Orbital { shell: 3, number: 1 }),
    ("dzx", Orbital { shell: 3, number: 2 }),
    ("dxz", Orbital { shell: 3, number: 2 }),
    ("dx2-y2", Orbital { shell: 3, number: 3 }),
    ("dz2", Orbital { shell: 3, number: 4 }),
    ("d3z2-r2", Orbital { shell: 3, number: 4 }),
];

/// How an integral depends on the distance.
#[derive(Debug, Clone, Copy)]
pub enum DistanceLaw {
    /// Not at all.
    Number(f64),
    /// `value * exp(-(r - at)/length)`.
    Decay {
        /// Its value at the distance `at`.
        value: f64,
        /// That distance.
        at: f64,
        /// Over which it falls by a factor of e.
        length: f64,
    },
}

impl DistanceLaw {
    /// The integral at a distance.
    pub fn at(&self, distance: f64) -> f64 {
        match *self {
            DistanceLaw::Number(value) => value,
            DistanceLaw::Decay { value, at, length } => value * (-(distance - at) / length).exp(),
        }
    }
}

/// A real atomic orbital.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Orbital {
    /// Number of its shell in [`SHELLS`].
    pub shell: usize,
    number: usize,
}

type CartesianTensor = [[f64; 3]; 3];

/// Angular momentum of a shell.
fn momentum(shell: usize) -> usize {
    [0, 0, 1, 2][shell]
}

impl Orbital {
    /// An orbital by its name.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn named(name: &str) -> Result<Orbital> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, orbital)| *orbital).ok_or_else(|| {
            let error = Error::input(format!("no orbital `{name}`"));
            match nearest(name, NAMES.map(|(known, _)| known)).filter(|_| name.len() > 1) {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => {
                    error.hint("the orbitals are s, s* (excited), px, py, pz, dxy, dyz, dzx, dx2-y2 and dz2")
                }
            }
        })
    }

    /// Its components in axes, the rows of `axes`, by angular momentum along the third: `[..][sin or cos]`.
    fn along(self, axes: &CartesianTensor) -> [[f64; 2]; 3] {
        match momentum(self.shell) {
            0 => [[1.0, 0.0], [0.0; 2], [0.0; 2]],
            1 => {
                let part = |axis: usize| axes[axis][self.number];
                [[part(2), 0.0], [part(0), part(1)], [0.0; 2]]
            }
            _ => {
                let own = tensor(self.number);
                let part = |local: usize| {
                    let local = tensor(local);
                    let mut sum = 0.0;
                    for i in 0..3 {
                        for j in 0..3 {
                            let turned =
                                (0..9).map(|k| axes[k / 3][i] * local[k / 3][k % 3] * axes[k % 3][j]);
                            sum += own[i][j] * turned.sum::<f64>();
                        }
                    }
                    sum
                };
                [[part(4), 0.0], [part(2), part(1)], [part(3), part(0)]]
            }
        }
    }
}

/// A d orbital as a symmetric matrix without trace.
fn tensor(number: usize) -> CartesianTensor {
    let half = 0.5f64.sqrt();
    let mut q = [[0.0; 3]; 3];
    let mut pair = |i: usize, j: usize| {
        q[i][j] = half;
        q[j][i] = half;
    };
    match number {
        0 => pair(0, 1),
        1 => pair(1, 2),
        2 => pair(2, 0),
        3 => (q[0][0], q[1][1]) = (half, -half),
        _ => {
            let sixth = (1.0 / 6.0f64).sqrt();
            (q[0][0], q[1][1], q[2][2]) = (-sixth, -sixth, 2.0 * sixth);
        }
    }
    q
}

/// Axes of which the third points along a vector.
fn axes_of(vector: [f64; 3]) -> Result<CartesianTensor> {
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    if !(length > 0.0 && length.is_finite()) {
        return Err(Error::input(format!("a bond along {vector:?}")).hint(
            "two-centre integrals are between two places; the energies of one atom are on-site terms",
        ));
    }
    let u = vector.map(|x| x / length);
    // The axis that the bond is farthest from.
    let far = (0..3).min_by(|&i, &j| u[i].abs().total_cmp(&u[j].abs())).unwrap_or(0);
    let mut first = [0.0; 3];
    first[far] = 1.0;
    (0..3).for_each(|i| first[i] -= u[far] * u[i]);
    let norm = first.iter().map(|x| x * x).sum::<f64>().sqrt();
    let first = first.map(|x| x / norm);
    let second = [
        u[1] * first[2] - u[2] * first[1],
        u[2] * first[0] - u[0] * first[2],
        u[0] * first[1] - u[1] * first[0],
    ];
    Ok([first, second, u])
}

/// The hopping from the orbitals of one atom to those of another, which lies at `vector` from it:
/// `integral(left, reached, bond)` is the two-centre integral between the shells of that bond (0 for sigma). For a bond
/// from a higher angular momentum to a lower it is that of the lower to the higher, as tables have it:
/// the sign of odd ones is put in here.
///
/// # Errors
/// A vector of no length, what `integral` says.
pub fn hopping(
    orbitals: &[Orbital],
    vector: [f64; 3],
    integral: &mut dyn FnMut(usize, usize, usize) -> Result<f64>,
) -> Result<OrbitalBlock> {
    let axes = axes_of(vector)?;
    let parts: SmallVec<[_; 4]> = orbitals.iter().map(|orbital| orbital.along(&axes)).collect();
    let mut known = [[[0.0; 3]; 4]; 4];
    let mut there = [false; 4];
    orbitals.iter().for_each(|orbital| there[orbital.shell] = true);
    for left in 0..4 {
        for reached in 0..4 {
            if there[left] && there[reached] {
                let (l, m) = (momentum(left), momentum(reached));
                let sign = if l > m && (l - m) % 2 == 1 { -1.0 } else { 1.0 };
                for bond in 0..=l.min(m) {
                    known[left][reached][bond] = sign * integral(left, reached, bond)?;
                }
            }
        }
    }
    Ok(OrbitalBlock::from_fn(orbitals.len(), |to, from| {
        let values = &known[orbitals[from].shell][orbitals[to].shell];
        let (from, to) = (&parts[from], &parts[to]);
        let mut sum = 0.0;
        for bond in 0..3 {
            sum += values[bond] * (from[bond][0] * to[bond][0] + from[bond][1] * to[bond][1]);
        }
        sum.into()
    }))
}

/// The spin-orbit coupling `strength(shell) L.S` (hbar = 1) of the shells: row = 2 * orbital + spin, up before down.
/// Of shells that are not whole it is the part between the orbitals there are.
pub fn spin_orbit(orbitals: &[Orbital], strength: &dyn Fn(usize) -> f64) -> OrbitalBlock {
    let moments: Vec<Vec<C64>> = (0..3).map(|axis| momenta(orbitals, axis)).collect();
    let (n, half) = (orbitals.len(), 0.5);
    OrbitalBlock::from_fn(2 * n, |row, column| {
        let (i, j) = (row / 2, column / 2);
        let l = |axis: usize| moments[axis][i * n + j] * half * strength(orbitals[i].shell);
        match (row % 2, column % 2) {
            (0, 0) => l(2),
            (1, 1) => -l(2),
            (0, _) => l(0) - C64::I * l(1),
            _ => l(0) + C64::I * l(1),
        }
    })
}

/// The angular momentum along an axis between real orbitals.
fn momenta(orbitals: &[Orbital], axis: usize) -> Vec<C64> {
    // (L_k)_ij = -i epsilon_kij of a vector, [L_k, Q] of a matrix
    let real = |i: usize, j: usize| match (3 + j - i) % 3 {
        1 if 3 - i - j == axis => 1.0,
        2 if 3 - i - j == axis => -1.0,
        _ => 0.0,
    };
    let n = orbitals.len();
    let element = |k: usize| {
        let (a, b) = (orbitals[k / n], orbitals[k % n]);
        if a.shell != b.shell {
            return C64::ZERO;
        }
        let value = match momentum(a.shell) {
            0 => 0.0,
            1 => real(a.number, b.number),
            _ => {
                let (q, p) = (tensor(a.number), tensor(b.number));
                let mut sum = 0.0;
                for i in 0..3 {
                    for j in 0..3 {
                        for k in 0..3 {
                            sum += q[i][j] * (real(j, k) * p[k][i] - p[j][k] * real(k, i));
                        }
                    }
                }
                sum
            }
        };
        C64::new(0.0, -value)
    };
    (0..n * n).map(element).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 10] = ["s", "s*", "px", "py", "pz", "dxy", "dyz", "dzx", "dx2-y2", "dz2"];

    fn orbitals() -> Vec<Orbital> {
        ALL.iter().map(|name| Orbital::named(name).unwrap()).collect()
    }

    /// Entries of Table I, which the integrals below are put into.
    fn table(l: f64, m: f64, n: f64) -> Vec<(usize, usize, f64)> {
        let (sps, pps, ppp, sds) = (1.3, 2.1, -0.6, -1.7);
        let (pds, pdp, dds, ddp, ddd) = (-0.9, 0.45, -1.2, 0.7, -0.15);
        let r3 = 3f64.sqrt();
        let (l2, m2, n2) = (l * l, m * m, n * n);
        let z = n2 - 0.5 * (l2 + m2);
        // (row: the first orbital of the table, at the origin; column: the second)
        vec![
            (0, 0, -1.1),
            (0, 2, l * sps),
            (0, 5, r3 * l * m * sds),
            (0, 8, 0.5 * r3 * (l2 - m2) * sds),
            (0, 9, z * sds),
            (2, 2, l2 * pps + (1.0 - l2) * ppp),
            (2, 3, l * m * (pps - ppp)),
            (2, 4, l * n * (pps - ppp)),
            (2, 5, r3 * l2 * m * pds + m * (1.0 - 2.0 * l2) * pdp),
            (2, 6, r3 * l * m * n * pds - 2.0 * l * m * n * pdp),
            (2, 7, r3 * l2 * n * pds + n * (1.0 - 2.0 * l2) * pdp),
            (2, 8, 0.5 * r3 * l * (l2 - m2) * pds + l * (1.0 - l2 + m2) * pdp),
            (3, 8, 0.5 * r3 * m * (l2 - m2) * pds - m * (1.0 + l2 - m2) * pdp),
            (4, 8, 0.5 * r3 * n * (l2 - m2) * pds - n * (l2 - m2) * pdp),
            (2, 9, l * z * pds - r3 * l * n2 * pdp),
            (3, 9, m * z * pds - r3 * m * n2 * pdp),
            (4, 9, n * z * pds + r3 * n * (l2 + m2) * pdp),
            (5, 5, 3.0 * l2 * m2 * dds + (l2 + m2 - 4.0 * l2 * m2) * ddp + (n2 + l2 * m2) * ddd),
            (5, 6, 3.0 * l * m2 * n * dds + l * n * (1.0 - 4.0 * m2) * ddp + l * n * (m2 - 1.0) * ddd),
            (5, 7, 3.0 * l2 * m * n * dds + m * n * (1.0 - 4.0 * l2) * ddp + m * n * (l2 - 1.0) * ddd),
            (
                5,
                8,
                1.5 * l * m * (l2 - m2) * dds + 2.0 * l * m * (m2 - l2) * ddp + 0.5 * l * m * (l2 - m2) * ddd,
            ),
            (
                6,
                8,
                1.5 * m * n * (l2 - m2) * dds - m * n * (1.0 + 2.0 * (l2 - m2)) * ddp
                    + m * n * (1.0 + 0.5 * (l2 - m2)) * ddd,
            ),
            (
                7,
                8,
                1.5 * n * l * (l2 - m2) * dds + n * l * (1.0 - 2.0 * (l2 - m2)) * ddp
                    - n * l * (1.0 - 0.5 * (l2 - m2)) * ddd,
            ),
            (5, 9, r3 * (l * m * z * dds - 2.0 * l * m * n2 * ddp + 0.5 * l * m * (1.0 + n2) * ddd)),
            (6, 9, r3 * (m * n * z * dds + m * n * (l2 + m2 - n2) * ddp - 0.5 * m * n * (l2 + m2) * ddd)),
            (7, 9, r3 * (l * n * z * dds + l * n * (l2 + m2 - n2) * ddp - 0.5 * l * n * (l2 + m2) * ddd)),
            (
                8,
                8,
                0.75 * (l2 - m2).powi(2) * dds
                    + (l2 + m2 - (l2 - m2).powi(2)) * ddp
                    + (n2 + 0.25 * (l2 - m2).powi(2)) * ddd,
            ),
            (
                8,
                9,
                r3 * (0.5 * (l2 - m2) * z * dds + n2 * (m2 - l2) * ddp + 0.25 * (1.0 + n2) * (l2 - m2) * ddd),
            ),
            (9, 9, z * z * dds + 3.0 * n2 * (l2 + m2) * ddp + 0.75 * (l2 + m2).powi(2) * ddd),
        ]
    }

    fn value(left: usize, reached: usize, bond: usize) -> f64 {
        match (left.min(reached), left.max(reached), bond) {
            (0, 0, 0) => -1.1,
            (0, 2, 0) => 1.3,
            (2, 2, 0) => 2.1,
            (2, 2, 1) => -0.6,
            (0, 3, 0) => -1.7,
            (2, 3, 0) => -0.9,
            (2, 3, 1) => 0.45,
            (3, 3, 0) => -1.2,
            (3, 3, 1) => 0.7,
            (3, 3, 2) => -0.15,
            _ => 0.0,
        }
    }

    #[test]
    fn the_table_of_slater_and_koster() {
        for v in [
            [0.3, -0.5, 0.8],
            [-2.0, 0.1, 0.4],
            [0.0, 0.0, 1.5],
            [0.0, 0.0, -1.0],
            [1.0, 0.0, 0.0],
            [1.0, -1.0, 0.0],
        ] {
            let r = f64::sqrt(v.iter().map(|x| x * x).sum());
            let block = hopping(&orbitals(), v, &mut |a, b, c| Ok(value(a, b, c))).unwrap();
            let back = hopping(&orbitals(), v.map(|x| -x), &mut |a, b, c| Ok(value(a, b, c))).unwrap();
            for (i, j, expected) in table(v[0] / r, v[1] / r, v[2] / r) {
                // From the first orbital, at the origin, to the second.
                assert!((block.get(j, i) - expected).norm() < 1e-14, "{} {} along {v:?}", ALL[i], ALL[j]);
                // The other way round along the opposite bond.
                assert!((back.get(i, j) - expected).norm() < 1e-14, "{} {} back along {v:?}", ALL[i], ALL[j]);
            }
        }
    }

    #[test]
    fn shells_split_by_their_total_momentum() {
        let p: Vec<_> = ["px", "py", "pz"].map(|x| Orbital::named(x).unwrap()).to_vec();
        let d: Vec<_> = ["dxy", "dyz", "dzx", "dx2-y2", "dz2"].map(|x| Orbital::named(x).unwrap()).to_vec();
        for (shell, l) in [(p, 1.0), (d, 2.0)] {
            // L.S has l/2 and -(l + 1)/2 alone: (H - l/2)(H + (l + 1)/2) = 0, and no trace.
            let h = spin_orbit(&shell, &|_| 1.0);
            let n = h.orbitals();
            assert!(h.hermitian("L.S").is_ok());
            let product = |i: usize, j: usize| {
                let at = |i: usize, j: usize, x: f64| h.get(i, j) + if i == j { x } else { 0.0 };
                (0..n).map(|k| at(i, k, -0.5 * l) * at(k, j, 0.5 * (l + 1.0))).sum::<C64>()
            };
            for k in 0..n * n {
                assert!(product(k / n, k % n).norm() < 1e-14);
            }
            assert!((0..n).map(|i| h.get(i, i)).sum::<C64>().norm() < 1e-14);
        }
    }
}
