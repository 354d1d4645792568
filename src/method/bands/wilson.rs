//! Wilson loops and Berry phases: products of the overlaps of neighbouring states along closed paths of momenta.

use std::collections::BTreeSet;
use std::f64::consts::{PI, TAU};

use super::filled::{check_apart, check_bands, check_filled, least_gap, overlap};
use super::plane::Plane;
use super::size::most_change;
use super::{at_each, columns, keep, levels};
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::{C64, Matrix, Series, Table};
use crate::task::Task;

/// Loops of more steps are not begun, nor are steps halved beyond `MOST_HALVED`.
const MOST_STEPS: usize = 1 << 16;
const MOST_HALVED: usize = 1 << 15;
/// Steps of the first loop of `wannier_centres`.
const FIRST: usize = 64;
/// Momenta this near to one another are one, whole numbers apart.
const SAME: f64 = 1e-9;
const CLOSED: &str = "end it where it begins, or whole numbers beside that: one of two numbers like `[0.3, 0.0]` and \
                      `[1.3, 0.0]` goes once through the zone";
/// Loops of fewer steps may agree by chance.
const SHORT: usize = 8;
/// Phases that change by less count as known.
const KNOWN: f64 = 1e-7;
/// Phases this near to minus pi are pi.
const NEAR: f64 = 1e-9;
/// Neighbouring states overlap by more than this, in every direction.
const FOLLOWED: f64 = 0.7;

/// Momenta of a loop before steps are no longer halved to prove that nothing happens inside them: so many times the
/// steps that were asked for, and for matrices of `SMALL` rows or fewer `MOMENTA` at least.
const MOMENTA: usize = 1 << 13;
const SMALL: usize = 16;
const FEW_TIMES: usize = 4;

/// A straight part of a loop.
struct Side {
    from: Vec<f64>,
    along: Vec<f64>,
    /// Where its steps begin, as parts of its way: 0 first, ascending, below 1.
    begins: Vec<f64>,
    /// How much a level can move at most along all of it.
    change: f64,
}

impl Side {
    fn momentum(&self, part: f64) -> Vec<f64> {
        self.from.iter().zip(&self.along).map(|(k, step)| k + step * part).collect()
    }

    /// Where step `j` ends.
    fn end(&self, j: usize) -> f64 {
        self.begins.get(j + 1).copied().unwrap_or(1.0)
    }
}

/// A closed path of momenta.
struct Loop<'a> {
    bloch: &'a Bloch,
    bands: &'a [usize],
    sides: Vec<Side>,
}

/// What a loop passes: the states of the bands at each momentum, as columns, and all energies there.
type LoopStates = Vec<(Matrix, Vec<f64>)>;

impl<'a> Loop<'a> {
    /// A loop from corner to corner, whose last one is the first, or that plus reciprocal vectors.
    fn new(bloch: &'a Bloch, bands: &'a [usize], corners: &[Vec<f64>], points: usize) -> Result<Self> {
        if !(2..=MOST_STEPS).contains(&points) {
            return Err(Error::input(format!("a loop of {points} steps"))
                .hint(format!("take two at least, and {MOST_STEPS} at most")));
        }
        let lengths: Vec<f64> =
            corners.windows(2).map(|pair| bloch.length(&step(&pair[0], &pair[1]))).collect();
        let whole: f64 = lengths.iter().sum();
        let mut sides = Vec::new();
        for (pair, length) in corners.windows(2).zip(lengths).filter(|(_, length)| *length > 0.0) {
            let along = step(&pair[0], &pair[1]);
            let share = (points as f64 * length / whole).round() as usize;
            let steps = share.max(fewest(bloch, &along)?);
            let change = most_change(bloch, &along);
            sides.push(Side { from: pair[0].clone(), along, begins: vec![0.0; steps], change });
        }
        let total: usize = sides.iter().map(|side| side.begins.len()).sum();
        let short = if total < SHORT { SHORT.div_ceil(total.max(1)) } else { 1 };
        for side in &mut sides {
            let n = side.begins.len() * short;
            side.begins = (0..n).map(|j| j as f64 / n as f64).collect();
        }
        Ok(Loop { bloch, bands, sides })
    }

    /// The steps of the first loop.
    fn first(&self) -> usize {
        self.sides.iter().map(|side| side.begins.len()).sum()
    }

    /// The steps of a loop in which each of the first loop's is `times` steps: its side, the part of the side where it
    /// begins, and how much of it it takes.
    fn steps(&self, times: usize) -> impl Iterator<Item = (&Side, f64, f64)> {
        self.sides.iter().flat_map(move |side| {
            side.begins.iter().enumerate().flat_map(move |(j, begin)| {
                let step = (side.end(j) - begin) / times as f64;
                (0..times).map(move |i| (side, begin + step * i as f64, step))
            })
        })
    }

    /// States and energies at momenta, each of which has a gap around the bands.
    fn look(&self, momenta: &[Vec<f64>], task: &Task) -> Result<LoopStates> {
        let found = at_each(momenta, "Wilson loop", task, |k| {
            let l = levels(self.bloch, k)?;
            Ok((columns(&l.vectors, self.bands)?, l.energies))
        })?;
        check_apart(momenta.iter().zip(found.iter().map(|f| &f.1)), self.bands)?;
        Ok(found)
    }

    /// The first loop, whose steps are halved where a band could come near another one inside: as long as the gap at
    /// an end is not twice what levels can move. What is most in doubt is halved first.
    fn begin(&mut self, task: &Task) -> Result<LoopStates> {
        let small = self.bloch.rows() <= SMALL;
        let most = (FEW_TIMES * self.first()).max(if small { MOMENTA } else { 0 });
        let momenta: Vec<Vec<f64>> = self.steps(1).map(|(side, part, _)| side.momentum(part)).collect();
        keep(most, self.bloch.rows() * (self.bands.len() + 1))?;
        let mut passed = self.look(&momenta, task)?;
        loop {
            let gaps: Vec<f64> = passed.iter().map(|(_, energies)| least_gap(energies, self.bands)).collect();
            let n = gaps.len();
            let doubt = |(j, (side, _, step)): (usize, (&Side, f64, f64))| {
                (j, 2.0 * side.change * step / gaps[j].min(gaps[(j + 1) % n]))
            };
            let mut open: Vec<(usize, f64)> =
                self.steps(1).enumerate().map(doubt).filter(|(_, doubt)| *doubt > 1.0).collect();
            open.sort_by(|a, b| b.1.total_cmp(&a.1));
            open.truncate((n / 8).max(64).min(most - n));
            if open.is_empty() {
                return Ok(passed);
            }
            let halved: BTreeSet<usize> = open.into_iter().map(|(j, _)| j).collect();
            let middles: Vec<Vec<f64>> = self
                .steps(1)
                .enumerate()
                .filter(|(j, _)| halved.contains(j))
                .map(|(_, (side, part, step))| side.momentum(part + 0.5 * step))
                .collect();
            let mut found = self.look(&middles, task)?.into_iter();
            self.halve(&halved);
            let both = |(j, own)| [Some(own), halved.contains(&j).then(|| found.next()).flatten()];
            passed = passed.into_iter().enumerate().flat_map(both).flatten().collect();
        }
    }

    /// Halves the steps with these numbers.
    fn halve(&mut self, which: &BTreeSet<usize>) {
        let mut first = 0;
        for side in &mut self.sides {
            let halves = |j: usize| {
                let (begin, end) = (side.begins[j], side.end(j));
                [Some(begin), which.contains(&(first + j)).then_some(begin + 0.5 * (end - begin))]
            };
            let begins = (0..side.begins.len()).flat_map(halves).flatten().collect();
            first += side.begins.len();
            side.begins = begins;
        }
    }

    /// The states at all momenta, of which every other one is known from a loop of half as many steps.
    fn pass(&self, times: usize, known: LoopStates, task: &Task) -> Result<LoopStates> {
        keep(self.first() * times, self.bloch.rows() * (self.bands.len() + 1))?;
        let momenta: Vec<Vec<f64>> =
            self.steps(times).skip(1).step_by(2).map(|(side, part, _)| side.momentum(part)).collect();
        Ok(known.into_iter().zip(self.look(&momenta, task)?).flat_map(|(even, odd)| [even, odd]).collect())
    }

    /// The phases, ascending in (-pi, pi], and the least overlap of neighbours.
    fn phases(&self, times: usize, passed: &LoopStates) -> Result<(Vec<f64>, f64)> {
        let (n, rows, bands) = (passed.len(), self.bloch.rows(), self.bands.len());
        let (mut product, mut least) = (Matrix::identity(bands)?, f64::INFINITY);
        for (j, (side, _, part)) in self.steps(times).enumerate() {
            let next = passed[(j + 1) % n].0.data().to_complex();
            // From the positions of the orbitals.
            let turn = |row| C64::cis(-TAU * dot(self.bloch.place(row), &side.along) * part);
            let turned = next.chunks(bands).enumerate().flat_map(|(row, z)| {
                let turn = turn(row);
                z.iter().map(move |z| z * turn)
            });
            let turned = turned.collect::<Vec<C64>>();
            let step = overlap(&passed[j].0, &Matrix::new(rows, bands, Series::Complex(turned))?)?;
            let (u, s, v) = step.svd()?;
            least = s.as_real("overlaps")?.iter().copied().fold(least, f64::min);
            product = product.matmul(&u.matmul(&v.dagger())?)?;
        }
        let mut phases: Vec<f64> = product.eigvals()?.to_complex().iter().map(|z| within(-z.arg())).collect();
        phases.sort_by(f64::total_cmp);
        Ok((phases, least))
    }

    /// An error of a loop whose next one would be too long.
    fn too_long(&self, n: usize, why: impl FnOnce() -> String) -> Result<()> {
        if 2 * n <= MOST_HALVED.max(4 * self.first()) {
            return Ok(());
        }
        Err(Error::numeric(format!("a Wilson loop of {n} steps {}", why()))
            .hint("the gap is too small somewhere on it: look at the bands there"))
    }

    /// The phases, extrapolated from loops whose steps are halved until the phases stay.
    fn resolved(mut self, task: &Task) -> Result<Vec<f64>> {
        let (mut times, mut passed, mut rows) = (1, self.begin(task)?, Romberg::default());
        loop {
            let (phases, least) = self.phases(times, &passed)?;
            if least > FOLLOWED {
                let change = rows.add(phases);
                if change <= KNOWN {
                    return Ok(rows.best());
                }
                self.too_long(passed.len(), || match change.is_finite() {
                    true => format!("leaves its phases uncertain by {change:.0e}"),
                    false => "is the first that follows the states, and none tells how exact it is".into(),
                })?;
            } else {
                rows = Romberg::default();
                self.too_long(passed.len(), || {
                    format!("does not follow the states: they overlap by {least:.2}")
                })?;
            }
            times *= 2;
            passed = self.pass(times, passed, task)?;
        }
    }
}

/// The way from one momentum to another.
fn step(from: &[f64], to: &[f64]) -> Vec<f64> {
    from.iter().zip(to).map(|(a, b)| b - a).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The fewest steps along a side: one sees a whole turn between two orbitals as none, so that orbitals many cells
/// apart need short steps.
fn fewest(bloch: &Bloch, along: &[f64]) -> Result<usize> {
    let places = || (0..bloch.rows()).map(|row| dot(bloch.place(row), along));
    let span = places().fold(f64::NEG_INFINITY, f64::max) - places().fold(f64::INFINITY, f64::min);
    if !(4.0 * span <= MOST_STEPS as f64) {
        return Err(Error::input(format!("a Wilson loop over orbitals that lie {span:.0} cells apart"))
            .hint("place the orbitals in one cell, and let the hops say how far they reach"));
    }
    Ok((4.0 * span).ceil().max(1.0) as usize)
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
        // A phase of pi that rounding has put beside it is one, not minus pi.
        let near = |x: f64| if x < -PI + NEAR { PI } else { x };
        let mut best: Vec<f64> = self.0.last().into_iter().flatten().copied().map(within).map(near).collect();
        best.sort_by(f64::total_cmp);
        best
    }
}

/// The phases of the Wilson loop of the filled bands along a direction, ascending in (-pi, pi]: 2 pi times the
/// centres of the hybrid Wannier functions in units of that lattice vector (Yu, Qi, Bernevig, Fang, Dai, PRB 84
/// (2011) 075119). The positions of the orbitals are included. `at` are the momenta along the other directions. The
/// loop begins with `points` steps, which are halved where the gap is small, so that no crossing lies inside (for
/// cells of more than 16 rows as far as four times as many steps show), then all of them, and the phases extrapolated,
/// until those are known to 1e-7.
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
    check_filled(bloch, filled)?;
    let d = bloch.dimension();
    if direction >= d || at.len() + 1 != d {
        return Err(Error::input(format!(
            "a loop along direction {direction} at {} other momenta, of {d} directions",
            at.len()
        ))
        .hint("`direction` is counted from 0, and `at` holds a momentum for each of the others"));
    }
    let end = |k: f64| {
        let mut all = at.to_vec();
        all.insert(direction, k);
        all
    };
    let bands: Vec<usize> = (0..filled).collect();
    Loop::new(bloch, &bands, &[end(0.0), end(1.0)], points)?.resolved(task)
}

/// The Berry phases of a group of bands, numbered from 0, along a closed path from corner to corner: those of the
/// matrix that carries its states once around, ascending in (-pi, pi]. The Berry connection is `i <u|du/dk>`, with
/// the orbitals at their places; steps and accuracy are those of [`wilson_loop`].
///
/// # Errors
/// A path that is not closed, bands that touch others on it, and those of [`wilson_loop`].
pub fn berry_phases(
    bloch: &Bloch,
    bands: &[usize],
    path: &[Vec<f64>],
    points: usize,
    task: &Task,
) -> Result<Vec<f64>> {
    check_bands(bloch, bands)?;
    let d = bloch.dimension();
    if let Some(k) = path.iter().find(|k| k.len() != d || k.iter().any(|x| !x.is_finite())) {
        return Err(Error::input(format!("the momentum {k:?} on a path in {d} periodic directions")).hint(
            "momenta are in units of the reciprocal vectors, one finite number per periodic direction",
        ));
    }
    let (Some(first), Some(last)) = (path.first(), path.last()) else {
        return Err(Error::input("a Berry phase along a path of no momenta").hint(CLOSED));
    };
    if path.windows(2).all(|pair| pair[0] == pair[1]) {
        return Err(Error::input("a Berry phase along a path of one momentum").hint(CLOSED));
    }
    if step(first, last).iter().any(|x| (x - x.round()).abs() > SAME) {
        return Err(Error::input(format!("a path from {first:?} to {last:?} is not closed")).hint(CLOSED));
    }
    Loop::new(bloch, bands, path, points)?.resolved(task)
}

/// How the centres of the hybrid Wannier functions of the filled bands move: [`wilson_loop`] along the first
/// direction of a plane divided by 2 pi, at `steps` + 1 momenta from 0 to 1 along the second. A table of `k` and
/// `centre1`, `centre2`, .., ascending in (-1/2, 1/2].
///
/// # Errors
/// As [`wilson_loop`], and for directions that span no plane.
pub fn wannier_centres(
    bloch: &Bloch,
    filled: usize,
    plane: &Plane,
    steps: usize,
    task: &Task,
) -> Result<Table> {
    plane.check(bloch)?;
    check_filled(bloch, filled)?;
    if !(1..=MOST_STEPS).contains(&steps) {
        return Err(Error::input(format!("centres at {steps} steps of the momentum"))
            .hint(format!("take one at least, and {MOST_STEPS} at most")));
    }
    let direction = plane.directions[0];
    let quiet = task.quiet();
    let bar = task.start("Wannier centres", steps + 1);
    let mut columns = vec![Vec::with_capacity(steps + 1); filled + 1];
    for j in 0..=steps {
        let k = j as f64 / steps as f64;
        let mut at = plane.momentum(0.0, k);
        at.remove(direction);
        let phases = wilson_loop(bloch, filled, direction, &at, FIRST, &quiet)?;
        columns[0].push(k);
        columns[1..].iter_mut().zip(phases).for_each(|(column, phase)| column.push(phase / TAU));
        bar.advance(j + 1)?;
    }
    let name = |j: usize| if j == 0 { "k".to_string() } else { format!("centre{j}") };
    Table::from_columns(columns.into_iter().enumerate().map(|(j, column)| (name(j), Series::Real(column))))
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
