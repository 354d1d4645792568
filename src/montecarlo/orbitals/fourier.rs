//! Orbitals that are finite sums of plane waves: those of the electron gas, and the Bloch states of a crystal,
//! exact and slow.

use std::collections::HashMap;

use super::super::vectors::square;
use super::super::waves::{Phases, upper, wave_vector, within};
use super::super::{Crystal, SimulationCell};
use super::{Derivatives, Orbitals};
use crate::error::{Error, Result};
use crate::number::{C64, Matrix, Scalar, Series};
use crate::task::Task;

/// Most plane waves of a matrix that is diagonalised.
const MOST_WAVES: usize = 3000;

/// Orbitals `sum_G c_G exp(i (G + k) . r)`, or the real parts of such sums, of mean square one.
#[derive(Debug, Clone)]
pub struct Fourier {
    cell: SimulationCell,
    /// In units of the reciprocal vectors.
    twist: [f64; 3],
    complex: bool,
    /// All waves that some orbital contains.
    waves: Vec<[i32; 3]>,
    /// For each orbital the waves, by number, and their factors.
    orbitals: Vec<Vec<(u32, C64)>>,
    energies: Vec<f64>,
    label: String,
}

/// A twist in units of reciprocal vectors, refused where it is not finite.
fn checked(twist: [f64; 3]) -> Result<[f64; 3]> {
    if twist.iter().all(|t| t.is_finite()) {
        // A whole reciprocal vector has no effect.
        return Ok(twist.map(|t| t - t.round()));
    }
    Err(Error::input(format!("a twist of {twist:?}")).hint("it is three fractions of the reciprocal vectors"))
}

impl Fourier {
    /// The lowest `count` plane waves of a cell: 1, then cosines and sines of every pair G, -G; with a twist
    /// `exp(i (G + k) . r)`, k in units of the reciprocal vectors.
    ///
    /// # Errors
    /// No orbitals, more than memory holds, or a twist that is no number.
    pub fn plane_waves(cell: &SimulationCell, count: usize, twist: [f64; 3]) -> Result<Fourier> {
        let twist = checked(twist)?;
        if count == 0 || count > 1 << 20 {
            return Err(Error::input(format!("{count} plane waves")).hint("between 1 and a million"));
        }
        let complex = twist != [0.0; 3];
        // A sphere of reciprocal space with room for some more than are asked for, and its surface.
        let volume = (2.0 * std::f64::consts::PI).powi(3) / cell.volume();
        let edge: f64 = cell.reciprocal().iter().map(|b| square(*b).sqrt()).sum();
        let radius = (3.0 * volume * count as f64 / (4.0 * std::f64::consts::PI)).cbrt() + edge;
        let waves = within(cell, twist, radius * radius);
        let root = std::f64::consts::SQRT_2;
        let (mut kept, mut orbitals, mut energies) = (Vec::new(), Vec::new(), Vec::new());
        for n in waves.into_iter().filter(|n| complex || upper(n)) {
            let q = wave_vector(cell, std::array::from_fn(|a| f64::from(n[a]) + twist[a]));
            let at = kept.len() as u32;
            kept.push(n);
            let factors = match (complex, n == [0; 3]) {
                (true, _) | (false, true) => vec![C64::ONE],
                // The real parts of z and of -i z are cosine and sine.
                _ => vec![C64::new(root, 0.0), C64::new(0.0, -root)],
            };
            for factor in factors {
                orbitals.push(vec![(at, factor)]);
                energies.push(square(q) / 2.0);
            }
        }
        orbitals.truncate(count);
        energies.truncate(count);
        kept.truncate(orbitals.last().map_or(0, |terms: &Vec<(u32, C64)>| terms[0].0 as usize + 1));
        Ok(Fourier {
            cell: cell.clone(),
            twist,
            complex,
            waves: kept,
            orbitals,
            energies,
            label: "plane waves".into(),
        })
    }

    /// The lowest `count` states of one electron in a crystal's potential, by diagonalisation among the plane waves
    /// with `|k + G|^2/2 <= cutoff` at every k that the crystal's cell folds to its own origin (or to its twist).
    /// Without a twist they are real: sums of the states at k and -k.
    ///
    /// # Errors
    /// Too few waves below the cutoff, too many of them, an interruption.
    pub fn bands(
        crystal: &Crystal,
        cutoff: f64,
        count: usize,
        twist: [f64; 3],
        task: &Task,
    ) -> Result<Fourier> {
        let twist = checked(twist)?;
        if !(cutoff > 0.0) || !cutoff.is_finite() {
            return Err(
                Error::input(format!("a cutoff of {cutoff}")).hint("a positive energy, like 4.5 hartree")
            );
        }
        let refused = |waves: f64| {
            Error::memory(format!("{waves} plane waves below a cutoff of {cutoff}"))
                .hint(format!("at most {MOST_WAVES}: use a smaller cutoff or a smaller primitive cell"))
        };
        // So many lie in the sphere, give or take its surface; far too many are not listed first.
        let radius = (2.0 * cutoff).sqrt();
        let about = crystal.primitive().volume() * radius.powi(3) / (6.0 * std::f64::consts::PI.powi(2));
        if about > 100.0 * MOST_WAVES as f64 {
            return Err(refused(about));
        }
        let complex = twist != [0.0; 3];
        let repeat = crystal.repeat().map(|r| r as i32);
        let points = FoldedPoint::all(repeat, complex);
        let mut states: Vec<(f64, usize, Vec<([i32; 3], C64)>)> = Vec::new();
        let steps = task.start("bands", points.len());
        for (k, point) in points.iter().enumerate() {
            let shift: [f64; 3] =
                std::array::from_fn(|a| (f64::from(point.at[a]) + twist[a]) / f64::from(repeat[a]));
            let waves = within(crystal.primitive(), shift, 2.0 * cutoff);
            if waves.len() > MOST_WAVES {
                return Err(refused(waves.len() as f64));
            }
            let problem = Problem { crystal, shift, waves };
            let solved = if point.own_mirror && !complex { problem.real()? } else { problem.complex()? };
            for (energy, coefficients) in solved {
                // Whole numbers of the crystal's own reciprocal vectors.
                let terms: Vec<([i32; 3], C64)> = coefficients
                    .iter()
                    .map(|(n, c)| (std::array::from_fn(|a| n[a] * repeat[a] + point.at[a]), *c))
                    .collect();
                let parts = if complex || point.own_mirror {
                    vec![C64::ONE]
                } else {
                    let root = std::f64::consts::SQRT_2;
                    vec![C64::new(root, 0.0), C64::new(0.0, -root)]
                };
                for part in parts {
                    let terms = terms.iter().map(|(n, c)| (*n, c * part)).collect();
                    states.push((energy, k, terms));
                }
            }
            steps.advance(k + 1)?;
        }
        if states.len() < count {
            return Err(Error::input(format!(
                "{count} orbitals of the {} that a cutoff of {cutoff} hartree gives",
                states.len()
            ))
            .hint("use a larger cutoff"));
        }
        // Levels that are equal up to rounding keep the order of their k points.
        states.sort_by_key(|(energy, k, _)| ((energy * 1e9).round() as i64, *k));
        states.truncate(count);
        let mut numbers: HashMap<[i32; 3], u32> = HashMap::new();
        let (mut waves, mut orbitals, mut energies) = (Vec::new(), Vec::new(), Vec::new());
        for (energy, _, terms) in states {
            let mut number = |n: [i32; 3]| {
                *numbers.entry(n).or_insert_with(|| {
                    waves.push(n);
                    waves.len() as u32 - 1
                })
            };
            orbitals.push(terms.into_iter().map(|(n, c)| (number(n), c)).collect());
            energies.push(energy);
        }
        let label = format!("bands of {}, cutoff {cutoff}", crystal.name());
        Ok(Fourier { cell: crystal.cell().clone(), twist, complex, waves, orbitals, energies, label })
    }

    /// Their energies in hartree, ascending.
    pub fn energies(&self) -> &[f64] {
        &self.energies
    }

    pub fn is_complex(&self) -> bool {
        self.complex
    }

    pub fn own_cell(&self) -> &SimulationCell {
        &self.cell
    }

    pub fn len(&self) -> usize {
        self.orbitals.len()
    }

    pub fn is_empty(&self) -> bool {
        self.orbitals.is_empty()
    }

    /// k in units of the reciprocal vectors.
    pub fn twist(&self) -> [f64; 3] {
        self.twist
    }

    /// The waves of one orbital without the twist, and their factors.
    pub fn terms(&self, orbital: usize) -> impl Iterator<Item = ([i32; 3], C64)> + '_ {
        self.orbitals[orbital].iter().map(|&(n, c)| (self.waves[n as usize], c))
    }

    /// Calls a function with the values of all waves at each point.
    fn each(&self, points: &[[f64; 3]], mut use_them: impl FnMut(usize, &[C64])) {
        let mut phases = Phases::reaching(&self.waves);
        let mut waves = vec![C64::default(); self.waves.len()];
        for (p, point) in points.iter().enumerate() {
            let t = self.cell.fractional(*point);
            phases.set(t);
            let angle: f64 = (0..3).map(|a| self.twist[a] * t[a]).sum();
            let turn = C64::cis(2.0 * std::f64::consts::PI * angle);
            for (slot, n) in waves.iter_mut().zip(&self.waves) {
                *slot = phases.at(n) * turn;
            }
            use_them(p, &waves);
        }
    }
}

/// A point of the primitive cell's reciprocal space that the crystal's cell folds to its origin.
struct FoldedPoint {
    /// In units of the crystal's reciprocal vectors.
    at: [i32; 3],
    /// Whether -k differs from k by a reciprocal vector of the primitive cell.
    own_mirror: bool,
}

impl FoldedPoint {
    /// All of them; if orbitals are real, one of each pair k, -k.
    fn all(repeat: [i32; 3], complex: bool) -> Vec<FoldedPoint> {
        let mut found = Vec::new();
        for x in 0..repeat[0] {
            for y in 0..repeat[1] {
                for z in 0..repeat[2] {
                    let at = [x, y, z];
                    let mirror: [i32; 3] = std::array::from_fn(|a| (repeat[a] - at[a]) % repeat[a]);
                    if complex || at <= mirror {
                        found.push(FoldedPoint { at, own_mirror: at == mirror });
                    }
                }
            }
        }
        found
    }
}

type PlaneWaves = (f64, Vec<([i32; 3], C64)>);

/// One electron at one k, given in units of the primitive reciprocal vectors.
struct Problem<'a> {
    crystal: &'a Crystal,
    shift: [f64; 3],
    waves: Vec<[i32; 3]>,
}

impl Problem<'_> {
    fn kinetic(&self, n: &[i32; 3]) -> f64 {
        let q = std::array::from_fn(|a| f64::from(n[a]) + self.shift[a]);
        square(wave_vector(self.crystal.primitive(), q)) / 2.0
    }

    /// `V_G` by the whole numbers of G.
    fn potential(&self) -> impl Fn([i32; 3]) -> C64 + use<> {
        let both =
            self.crystal.potential().terms().iter().flat_map(|&(n, v)| [(n, v), (n.map(|x| -x), v.conj())]);
        let table: HashMap<[i32; 3], C64> = both.collect();
        move |n| table.get(&n).copied().unwrap_or_default()
    }

    /// The states at a k that differs from -k.
    fn complex(&self) -> Result<Vec<PlaneWaves>> {
        let (m, v) = (self.waves.len(), self.potential());
        let mut h = vec![C64::default(); m * m];
        for (i, a) in self.waves.iter().enumerate() {
            for (j, b) in self.waves.iter().enumerate().take(i + 1) {
                let z = v([a[0] - b[0], a[1] - b[1], a[2] - b[2]]);
                h[i * m + j] = z;
                h[j * m + i] = z.conj();
            }
            h[i * m + i] = C64::new(h[i * m + i].re + self.kinetic(a), 0.0);
        }
        let (values, vectors) = Matrix::new(m, m, h)?.eigh()?;
        let (values, vectors) = (values.as_real("energies")?.to_vec(), vectors.data().to_complex());
        let state = |(s, e): (usize, f64)| {
            (e, self.waves.iter().enumerate().map(|(i, n)| (*n, vectors[i * m + s])).collect())
        };
        Ok(values.into_iter().enumerate().map(state).collect())
    }

    /// The states at a k that is its own mirror, among real functions: sqrt(2) cos(q . r) and sqrt(2) sin(q . r),
    /// and 1.
    fn real(&self) -> Result<Vec<PlaneWaves>> {
        let v = self.potential();
        // Twice the shift is whole: q = n + shift has its mirror at -n - 2 shift.
        let whole = self.shift.map(|s| (2.0 * s).round() as i32);
        let mirror = |n: &[i32; 3]| -> [i32; 3] { std::array::from_fn(|a| -n[a] - whole[a]) };
        let half: Vec<[i32; 3]> = self.waves.iter().copied().filter(|n| *n >= mirror(n)).collect();
        // A function: its wave, and whether it is the sine.
        let mut functions: Vec<([i32; 3], bool)> = Vec::new();
        for n in half {
            functions.push((n, false));
            if n != mirror(&n) {
                functions.push((n, true));
            }
        }
        let m = functions.len();
        let norm = |n: &[i32; 3]| if *n == mirror(n) { std::f64::consts::FRAC_1_SQRT_2 } else { 1.0 };
        let mut h = vec![0.0; m * m];
        for (i, (a, a_sine)) in functions.iter().enumerate() {
            for (j, (b, b_sine)) in functions.iter().enumerate().take(i + 1) {
                let c = mirror(b);
                let minus = v(std::array::from_fn(|d| a[d] - b[d]));
                let plus = v(std::array::from_fn(|d| a[d] - c[d]));
                let x = match (a_sine, b_sine) {
                    (false, false) => minus.re + plus.re,
                    (true, true) => minus.re - plus.re,
                    // <sin|V|cos> is <cos|V|sin> with the waves exchanged: V_(-G) is the conjugate.
                    (false, true) => minus.im - plus.im,
                    (true, false) => -minus.im - plus.im,
                };
                let x = x * norm(a) * norm(b) + if i == j { self.kinetic(a) } else { 0.0 };
                h[i * m + j] = x;
                h[j * m + i] = x;
            }
        }
        let (values, vectors) = Matrix::new(m, m, h)?.eigh()?;
        let values = values.as_real("energies")?.to_vec();
        let Series::Real(vectors) = vectors.data() else {
            return Err(Error::internal("complex eigenvectors of a real matrix"));
        };
        let state = |(s, e): (usize, f64)| {
            let terms = functions.iter().enumerate().map(|(i, (n, sine))| {
                let x = vectors[i * m + s] * std::f64::consts::SQRT_2 * norm(n);
                (*n, if *sine { C64::new(0.0, -x) } else { C64::new(x, 0.0) })
            });
            (e, terms.collect())
        };
        Ok(values.into_iter().enumerate().map(state).collect())
    }
}

impl<S: Scalar> Orbitals<S> for Fourier {
    fn count(&self) -> usize {
        self.orbitals.len()
    }

    fn dimension(&self) -> usize {
        3
    }

    fn cell(&self) -> Option<&SimulationCell> {
        Some(&self.cell)
    }

    fn values(&self, points: &[[f64; 3]], out: &mut [S]) {
        let count = self.orbitals.len();
        self.each(points, |p, waves| {
            for (slot, terms) in out[p * count..].iter_mut().zip(&self.orbitals) {
                let sum: C64 = terms.iter().map(|&(n, c)| c * waves[n as usize]).sum();
                *slot = S::from_c64(sum);
            }
        });
    }

    fn derivatives(&self, points: &[[f64; 3]], out: &mut Derivatives<S>) {
        let count = self.orbitals.len();
        let shifted = |n: &[i32; 3]| std::array::from_fn(|a| f64::from(n[a]) + self.twist[a]);
        let vectors: Vec<[f64; 3]> = self.waves.iter().map(|n| wave_vector(&self.cell, shifted(n))).collect();
        self.each(points, |p, waves| {
            for (l, terms) in self.orbitals.iter().enumerate() {
                let (mut value, mut gradient, mut laplacian) =
                    (C64::default(), [C64::default(); 3], C64::default());
                for &(n, c) in terms {
                    let (z, q) = (c * waves[n as usize], vectors[n as usize]);
                    value += z;
                    laplacian -= z * square(q);
                    for d in 0..3 {
                        gradient[d] += C64::new(-z.im * q[d], z.re * q[d]);
                    }
                }
                let at = p * count + l;
                out.value[at] = S::from_c64(value);
                out.laplacian[at] = S::from_c64(laplacian);
                for d in 0..3 {
                    out.gradient[d][at] = S::from_c64(gradient[d]);
                }
            }
        });
    }

    fn describe(&self) -> String {
        format!("{} {}", self.orbitals.len(), self.label)
    }
}

#[cfg(test)]
#[path = "fourier_tests.rs"]
mod tests;
