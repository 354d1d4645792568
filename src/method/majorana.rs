//! Levels at zero where electrons and their holes are one fermion: two Majorana modes that make a fermion, which a
//! ground state holds or not.

use crate::number::C64;

/// Majorana modes shorter than this are taken from the other part of a state.
const SHORT: f64 = 0.5;

/// The two ways to fill one of two orthonormal states at level zero, whose holes are themselves. `hole` gives the row
/// of the hole of a row.
///
/// States are turned into Majorana modes, `g = C g` with the particle-hole conjugation `C`. The fermion is
/// `(g_1 + i g_2)/sqrt(2)`, which no rotation of the modes changes but for its phase.
pub(super) fn zero_fermion(states: [&[C64]; 2], hole: impl Fn(usize) -> usize) -> [Vec<C64>; 2] {
    let conjugate = |v: &[C64]| -> Vec<C64> { (0..v.len()).map(|row| v[hole(row)].conj()).collect() };
    let [first, second] = states;
    let other = conjugate(first);
    let sum: Vec<C64> = first.iter().zip(&other).map(|(a, b)| a + b).collect();
    let difference: Vec<C64> = first.iter().zip(&other).map(|(a, b)| C64::I * (a - b)).collect();
    let one = unit(if norm(&sum) > SHORT { sum } else { difference });
    // What the first mode leaves of the two states has one direction.
    let rest = |v: &[C64]| -> Vec<C64> {
        let along: C64 = one.iter().zip(v).map(|(g, x)| g.conj() * x).sum();
        v.iter().zip(&one).map(|(x, g)| x - along * g).collect()
    };
    let (a, b) = (rest(first), rest(second));
    let left = unit(if norm(&a) > norm(&b) { a } else { b });
    // Its conjugate is itself with a phase, half of which makes it a mode.
    let turn: C64 = left.iter().zip(&conjugate(&left)).map(|(x, c)| x.conj() * c).sum();
    let half = C64::cis(0.5 * turn.arg());
    let scale = std::f64::consts::FRAC_1_SQRT_2;
    let with = |sign: f64| -> Vec<C64> {
        one.iter().zip(&left).map(|(g, x)| scale * (g + sign * C64::I * half * x)).collect()
    };
    [with(1.0), with(-1.0)]
}

fn norm(v: &[C64]) -> f64 {
    v.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt()
}

fn unit(v: Vec<C64>) -> Vec<C64> {
    let size = norm(&v);
    v.into_iter().map(|z| z / size).collect()
}
