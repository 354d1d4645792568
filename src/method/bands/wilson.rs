//! Wilson loops of the filled bands: products of the overlaps of neighbouring states around the Brillouin zone.

use std::f64::consts::{PI, TAU};

use super::filled::{check_filled, check_gap, overlap};
use super::{at_each, keep, levels, lowest};
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::{C64, Matrix, Series};
use crate::task::Task;

/// Loops of more steps are not begun, nor are steps halved beyond `MOST_HALVED`.
const MOST_STEPS: usize = 1 << 16;
const MOST_HALVED: usize = 1 << 15;
/// Loops of fewer steps may agree by chance.
const SHORT: usize = 8;
/// Phases that change by less count as known.
const KNOWN: f64 = 1e-7;
/// Neighbouring states overlap by more than this, in every direction.
const FOLLOWED: f64 = 0.7;

/// Where a loop runs.
struct Loop<'a> {
    bloch: &'a Bloch,
    filled: usize,
    direction: usize,
    at: &'a [f64],
    /// The fewest steps: one sees a whole turn between two orbitals as none, so that orbitals many cells apart need
    /// short steps.
    fewest: usize,
}

/// What a loop passes: the filled states at each momentum, as columns, and all energies there.
type Passed = Vec<(Matrix, Vec<f64>)>;

impl<'a> Loop<'a> {
    fn new(bloch: &'a Bloch, filled: usize, direction: usize, at: &'a [f64]) -> Result<Self> {
        check_filled(bloch, filled)?;
        let d = bloch.dimension();
        if direction >= d || at.len() + 1 != d {
            return Err(Error::input(format!(
                "a loop along direction {direction} at {} other momenta, of {d} directions",
                at.len()
            ))
            .hint("`direction` is counted from 0, and `at` holds a momentum for each of the others"));
        }
        let places = || (0..bloch.rows()).map(|row| bloch.place(row)[direction]);
        let span = places().fold(f64::NEG_INFINITY, f64::max) - places().fold(f64::INFINITY, f64::min);
        if !(4.0 * span <= MOST_STEPS as f64) {
            return Err(Error::input(format!("a Wilson loop over orbitals that lie {span:.0} cells apart"))
                .hint("place the orbitals in one cell, and let the hops say how far they reach"));
        }
        Ok(Loop { bloch, filled, direction, at, fewest: SHORT.max((4.0 * span).ceil() as usize) })
    }

    fn momentum(&self, k: f64) -> Vec<f64> {
        let mut all = self.at.to_vec();
        all.insert(self.direction, k);
        all
    }

    /// The states at `n` momenta; every other one is known already where a loop of half as many steps was passed.
    fn pass(&self, n: usize, known: Option<Passed>, task: &Task) -> Result<Passed> {
        keep(n, self.bloch.rows() * (self.filled + 1))?;
        let step = 1 + usize::from(known.is_some());
        let momenta: Vec<Vec<f64>> =
            (step - 1..n).step_by(step).map(|j| self.momentum(j as f64 / n as f64)).collect();
        let found = at_each(&momenta, "Wilson loop", task, |k| {
            let l = levels(self.bloch, k)?;
            Ok((lowest(&l.vectors, self.filled)?, l.energies))
        })?;
        check_gap(momenta.iter().zip(found.iter().map(|f| &f.1)), self.filled)?;
        Ok(match known {
            Some(known) => known.into_iter().zip(found).flat_map(|(even, odd)| [even, odd]).collect(),
            None => found,
        })
    }

    /// The phases, ascending in (-pi, pi], and the least overlap of neighbours.
    fn phases(&self, passed: &Passed) -> Result<(Vec<f64>, f64)> {
        let (n, rows) = (passed.len(), self.bloch.rows());
        // Phases from the positions of the orbitals between neighbouring momenta.
        let turn = |row| C64::cis(-TAU * self.bloch.place(row)[self.direction] / n as f64);
        let turns: Vec<C64> = (0..rows).map(turn).collect();
        let (mut product, mut least) = (Matrix::identity(self.filled)?, f64::INFINITY);
        for j in 0..n {
            let next = passed[(j + 1) % n].0.data().to_complex();
            let turned =
                next.iter().enumerate().map(|(i, z)| z * turns[i / self.filled]).collect::<Vec<C64>>();
            let step = overlap(&passed[j].0, &Matrix::new(rows, self.filled, Series::Complex(turned))?)?;
            let (u, s, v) = step.svd()?;
            least = s.as_real("overlaps")?.iter().copied().fold(least, f64::min);
            product = product.matmul(&u.matmul(&v.dagger())?)?;
        }
        let mut phases: Vec<f64> = product.eigvals()?.to_complex().iter().map(|z| within(-z.arg())).collect();
        phases.sort_by(f64::total_cmp);
        Ok((phases, least))
    }

    /// An error of a loop whose next one would be too long.
    fn too_long(&self, n: usize, points: usize, why: impl FnOnce() -> String) -> Result<()> {
        if 2 * n <= MOST_HALVED.max(4 * points).max(4 * self.fewest) {
            return Ok(());
        }
        Err(Error::numeric(format!("a Wilson loop of {n} steps {}", why()))
            .hint("the gap is too small there, or give more `points`"))
    }

    /// Halves the steps until `judge` has an answer. It is given the phases, or nothing where neighbouring states
    /// overlap too little, which is no answer; an error of its is how uncertain the phases are.
    fn refine(
        &self,
        points: usize,
        task: &Task,
        mut judge: impl FnMut(Option<Vec<f64>>) -> std::result::Result<Vec<f64>, f64>,
    ) -> Result<Vec<f64>> {
        let (mut n, mut known) = (self.first(points)?, None);
        loop {
            let passed = self.pass(n, known, task)?;
            let (phases, least) = self.phases(&passed)?;
            let follows = least > FOLLOWED;
            let found = judge(follows.then_some(phases));
            match found {
                Ok(phases) if follows => return Ok(phases),
                Err(change) if follows => {
                    self.too_long(n, points, || format!("leaves its phases uncertain by {change:.0e}"))?;
                }
                _ => self.too_long(n, points, || {
                    format!("does not follow the states: they overlap by {least:.2}")
                })?,
            }
            (known, n) = (Some(passed), 2 * n);
        }
    }

    fn first(&self, points: usize) -> Result<usize> {
        if !(2..=MOST_STEPS).contains(&points) {
            return Err(Error::input(format!("a loop of {points} steps"))
                .hint(format!("take two at least, and {MOST_STEPS} at most")));
        }
        Ok(points.max(self.fewest))
    }
}

/// A phase in (-pi, pi].
fn within(phase: f64) -> f64 {
    let turned = phase - TAU * (phase / TAU).round();
    if turned <= -PI { turned + TAU } else { turned }
}

/// Phases near those `before`, without jumps at pi. `now` is ascending on the circle: which of them continues which is
/// told by the turn that moves all of them least.
fn followed(now: &[f64], before: &[f64]) -> Vec<f64> {
    let n = now.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| within(before[*a]).total_cmp(&within(before[*b])));
    let turned = |by: usize| {
        let mut next = before.to_vec();
        for (i, own) in order.iter().enumerate() {
            next[*own] += within(now[(i + by) % n] - before[*own]);
        }
        next
    };
    (0..n).map(turned).min_by(|a, b| apart(a, before).total_cmp(&apart(b, before))).unwrap_or_default()
}

/// The largest difference of two lists.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Romberg's extrapolations of what was found with `n`, `2n`, .. steps: their errors are series in the inverse square
/// of the steps.
#[derive(Default)]
struct Romberg(Vec<Vec<f64>>);

impl Romberg {
    /// The next row, and by how much its best value differs from that of the row before.
    fn add(&mut self, phases: Vec<f64>) -> f64 {
        let Some(first) = self.0.first() else {
            self.0.push(phases);
            return f64::INFINITY;
        };
        let mut row = vec![followed(&phases, first)];
        for (j, before) in self.0.iter().enumerate() {
            let weight = 1.0 / (4f64.powi(j as i32 + 1) - 1.0);
            let next = row[j].iter().zip(before).map(|(now, before)| now + (now - before) * weight).collect();
            row.push(next);
        }
        let change = apart(&row[self.0.len()], &self.0[self.0.len() - 1]);
        self.0 = row;
        change
    }

    fn best(&self) -> Vec<f64> {
        let mut best: Vec<f64> = self.0.last().into_iter().flatten().copied().map(within).collect();
        best.sort_by(f64::total_cmp);
        best
    }
}

/// The phases of the Wilson loop of the filled bands along a direction, ascending in (-pi, pi]: 2 pi times the
/// centres of the hybrid Wannier functions in units of that lattice vector (Yu, Qi, Bernevig, Fang, Dai, PRB 84
/// (2011) 075119). The positions of the orbitals are included. `at` are the momenta along the other directions. The
/// loop begins with `points` steps, which are halved, and the phases extrapolated, until those are known to 1e-7.
///
/// # Errors
/// No gap, directions or fillings that do not fit, a loop that no number of steps resolves.
pub fn wilson_loop(
    bloch: &Bloch,
    filled: usize,
    direction: usize,
    at: &[f64],
    points: usize,
    task: &Task,
) -> Result<Vec<f64>> {
    let mut rows = Romberg::default();
    Loop::new(bloch, filled, direction, at)?.refine(points, task, |phases| {
        let Some(phases) = phases else {
            rows = Romberg::default();
            return Err(f64::INFINITY);
        };
        let change = rows.add(phases);
        if change <= KNOWN { Ok(rows.best()) } else { Err(change) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_followed_around_the_circle() {
        let next = followed(&[-3.1, 0.0, 3.0], &[2.9, -0.1, 3.1]);
        let known = [3.0, 0.0, TAU - 3.1];
        assert!(apart(&next, &known) < 1e-12, "{next:?}");
        assert_eq!(within(-PI), PI);
        assert!((within(7.0) - (7.0 - TAU)).abs() < 1e-15);
    }

    #[test]
    fn errors_in_even_powers_are_taken_away() {
        let mut rows = Romberg::default();
        let value = |n: f64| vec![within(3.1 + 0.5 / n.powi(2) - 0.3 / n.powi(4)), -1.0];
        let sorted = |mut all: Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all
        };
        for n in [2.0, 4.0, 8.0] {
            rows.add(sorted(value(n)));
        }
        assert!(apart(&rows.best(), &[-1.0, 3.1]) < 1e-12, "{:?}", rows.best());
    }
}
