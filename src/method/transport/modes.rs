//! The propagating waves of a lead at one energy. Channels (`opening.rs`) are all combinations of waves that carry a
//! current; from cell to cell a unitary matrix takes them into each other, and the lead's waves are its eigenvectors.
//! This needs no eigenvectors that are not orthogonal, other than the generalised eigenvalues of mode matching (Groth,
//! Wimmer, Akhmerov, Waintal, New J. Phys. 16 (2014) 063065), and holds for joints that are singular.

use std::f64::consts::{PI, TAU};

use faer::prelude::Solve;
use faer::{Mat, Par};

use super::dense::inverse;
use super::lead::{ChannelKind, Lead};
use super::opening::{Channels, Opening, unresolved};
use super::reflection::SlabWaves;
use crate::error::Result;
use crate::number::hermitian::eigh;
use crate::number::{C64, Column, Matrix, Table};

/// A wave that propagates in a lead.
#[derive(Debug, Clone, Copy)]
pub struct Mode {
    /// In units of the reciprocal vector, along the periodic direction of the lead's model, above -1/2 and up to 1/2.
    pub momentum: f64,
    /// Along that direction, positive or negative.
    pub velocity: f64,
    /// Of which kind it is, where the lead tells several.
    pub kind: ChannelKind,
}

/// The waves of one direction, inward or outward.
pub struct Beam {
    pub modes: Vec<Mode>,
    /// A column for each, on the rows of the cell next to the lead's first one on the inner side.
    /// Each carries a current of 1.
    pub waves: Mat<C64>,
    /// Their amplitudes in the channels: unitary.
    pub channels: Mat<C64>,
}

/// All waves of a lead at an energy.
pub struct Modes {
    pub inward: Beam,
    pub outward: Beam,
}

/// Phases from cell to cell that differ by less are those of one momentum.
/// Waves of it are told apart by their velocity.
const SAME_MOMENTUM: f64 = 1e-9;
/// The same, in units of how far off the reflection may be.
const SAME_NOISE: f64 = 100.0;
/// Velocities that differ by less, relative to the larger one, are the same.
const SAME_VELOCITY: f64 = 1e-7;
/// Amplitudes that are the same size.
const SAME_SIZE: f64 = 1e-6;

impl Lead {
    /// The waves that propagate at an energy.
    ///
    /// # Errors
    /// An energy that is not finite, or at which the lead is not resolved; interruption.
    pub fn modes(&self, energy: f64) -> Result<Modes> {
        let opening = self.opening(energy)?.ok_or_else(|| unresolved(energy))?;
        self.modes_of(energy, &opening)
    }

    /// The same at an energy of which the lead's channels are known.
    ///
    /// # Errors
    /// Where they are not resolved.
    pub(super) fn modes_of(&self, energy: f64, opening: &Opening) -> Result<Modes> {
        let rows = self.rows();
        let open = opening.back.nrows();
        let empty =
            || Beam { modes: Vec::new(), waves: Mat::zeros(rows, open), channels: Mat::zeros(open, open) };
        let mut modes = Modes { inward: empty(), outward: empty() };
        for ((waves, channels), (kind, _)) in self.waves().iter().zip(&opening.parts).zip(&opening.kinds) {
            let first = modes.inward.modes.len();
            let found = self.part(energy, waves, channels).ok_or_else(|| unresolved(energy))?;
            for (all, mut own) in [&mut modes.inward, &mut modes.outward].into_iter().zip(found) {
                for (c, mode) in own.modes.iter_mut().enumerate() {
                    mode.kind = *kind;
                    waves
                        .rows
                        .iter()
                        .enumerate()
                        .for_each(|(i, &row)| all.waves[(row, first + c)] = own.waves[(i, c)]);
                    (0..own.channels.nrows())
                        .for_each(|d| all.channels[(first + d, first + c)] = own.channels[(d, c)]);
                }
                all.modes.append(&mut own.modes);
            }
        }
        for beam in [&mut modes.inward, &mut modes.outward] {
            beam.waves = self.turned(&beam.waves);
        }
        Ok(modes)
    }

    /// Waves inward and outward of one kind of particles.
    fn part(&self, energy: f64, waves: &SlabWaves, channels: &Channels) -> Option<[Beam; 2]> {
        let scaled = energy / self.unit();
        let [outward, inward] = waves.followed_by(scaled, &channels.u)?;
        let beam = |follow: &Mat<C64>, basis: &Mat<C64>, out: bool| -> Option<Beam> {
            let found = propagating(follow, basis, channels)?;
            let n = found.phases.len();
            let other = if out { &channels.u * &found.waves } else { channels.u.adjoint() * &found.waves };
            let (p, q) = if out { (&found.waves, &other) } else { (&other, &found.waves) };
            let q = Mat::from_fn(q.nrows(), n, |i, j| q[(i, j)] * found.phases[j]);
            let mut psi = waves.inside(scaled, p, &q)?;
            for j in 0..n {
                let factor = found.phases[j].conj() / self.unit().sqrt();
                (0..psi.nrows()).for_each(|i| psi[(i, j)] *= factor);
            }
            self.sorted(&found, &psi, out, channels.off)
        };
        Some([beam(&inward, &channels.inward, false)?, beam(&outward, &channels.outward, true)?])
    }

    /// Waves of definite momentum and velocity, in the order of their momenta.
    fn sorted(&self, found: &Propagating, psi: &Mat<C64>, out: bool, off: f64) -> Option<Beam> {
        let (n, reach) = (found.phases.len(), self.reach());
        let same = SAME_MOMENTUM.max(SAME_NOISE * off);
        let length = self.step().iter().map(|x| x * x).sum::<f64>().sqrt();
        let sign = |along: bool| if along { 1.0 } else { -1.0 };
        let (along, moves) = (sign(self.goes_along()), sign(self.goes_along() == out));
        let mut modes: Vec<(f64, Mode, Vec<C64>)> = Vec::with_capacity(n);
        let angles: Vec<f64> = found.phases.iter().map(|z| z.arg()).collect();
        for group in groups(n, |i, j| apart(angles[i], angles[j]) < same) {
            // Here the waves are those in which the cells of the lead, of one or several cells of the model,
            // hold one particle.
            let own = Mat::from_fn(psi.nrows(), group.len(), |i, j| psi[(i, group[j])]);
            let (norms, turn) = eigh((own.adjoint() * &own).as_ref(), Par::Seq)?;
            let scale = Mat::from_fn(group.len(), group.len(), |i, j| turn[(i, j)] / norms[j].sqrt());
            let one = &own * &scale;
            let rows = one.nrows() / reach;
            let moved = Mat::from_fn(one.nrows(), one.ncols(), |i, j| {
                if i + rows < one.nrows() {
                    one[(i + rows, j)]
                } else {
                    // The next cell of the lead: all waves of the group have its phase.
                    (0..one.ncols())
                        .map(|k| own[(i + rows - one.nrows(), k)] * found.phases[group[k]] * scale[(k, j)])
                        .sum()
                }
            });
            let (steps, split) = eigen_unitary(&(one.adjoint() * moved))?;
            let scale = scale * split;
            for momentum in groups(group.len(), |i, j| apart(steps[i].arg(), steps[j].arg()) < same) {
                let part = Mat::from_fn(group.len(), momentum.len(), |i, j| scale[(i, momentum[j])]);
                let (speeds, split) = eigh((part.adjoint() * &part).as_ref(), Par::Seq)?;
                let part = part
                    * Mat::from_fn(split.nrows(), split.ncols(), |i, j| split[(i, j)] / speeds[j].sqrt());
                let turn = momentum.iter().map(|&i| steps[i]).sum::<C64>().arg() / TAU;
                for equal in
                    groups(speeds.len(), |i, j| (speeds[i] - speeds[j]).abs() < SAME_VELOCITY * speeds[j])
                {
                    let part = Mat::from_fn(group.len(), equal.len(), |i, j| part[(i, equal[j])]);
                    let part = &part * simple(&(&own * &part));
                    for (c, &j) in equal.iter().enumerate() {
                        let mode = Mode {
                            momentum: wrapped(along * turn),
                            velocity: moves * speeds[j] * reach as f64 * length,
                            kind: ChannelKind::Any,
                        };
                        let mut from = vec![C64::ZERO; n];
                        group.iter().enumerate().for_each(|(i, &wave)| from[wave] = part[(i, c)]);
                        modes.push((wrapped(moves * along * turn), mode, from));
                    }
                }
            }
        }
        // Waves that move along the direction by rising momentum, the others by falling momentum: a wave that is
        // reversed in time, and one that goes straight on from lead to lead, keeps its number.
        modes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.velocity.abs().total_cmp(&b.1.velocity.abs())));
        let combined = unitary(&Mat::from_fn(n, n, |i, j| modes[j].2[i]))?;
        Some(Beam {
            modes: modes.iter().map(|(_, mode, _)| *mode).collect(),
            waves: psi * &combined,
            channels: &found.amplitudes * combined,
        })
    }
}

impl Modes {
    /// The channels of a self-energy: nothing moves along it, so that momenta and velocities are not numbers.
    pub(super) fn without_waves(opening: &Opening) -> Modes {
        let of = |(kind, count): &(ChannelKind, usize)| {
            vec![Mode { momentum: f64::NAN, velocity: f64::NAN, kind: *kind }; *count]
        };
        let beam = || Beam {
            modes: opening.kinds.iter().flat_map(of).collect(),
            waves: Mat::zeros(0, opening.back.nrows()),
            channels: Mat::identity(opening.back.nrows(), opening.back.nrows()),
        };
        Modes { inward: beam(), outward: beam() }
    }

    /// All waves, those inward first: a row each of `direction` ("in" or "out"), `momentum` and `velocity`, of
    /// `particle` where electrons are told from holes, and of `conserved`, the value of what the lead conserves.
    ///
    /// # Errors
    /// None that a caller could meet.
    pub fn table(&self) -> Result<Table> {
        let directions = [("in", &self.inward), ("out", &self.outward)];
        let names = directions.iter().flat_map(|(name, beam)| beam.modes.iter().map(|_| (*name).to_string()));
        let all: Vec<Mode> = directions.iter().flat_map(|(_, beam)| beam.modes.iter().copied()).collect();
        table("direction", names.collect::<Vec<String>>(), &all)
    }

    /// The amplitudes of all waves in a cell, a column for each row of the table:
    /// those on the last cell before the lead.
    pub fn waves(&self) -> Matrix {
        let (a, b) = (&self.inward.waves, &self.outward.waves);
        let n = a.ncols();
        Matrix::from_fn(a.nrows(), n + b.ncols(), |i, j| if j < n { a[(i, j)] } else { b[(i, j - n)] })
    }
}

/// A column, and what is known of some waves.
pub(super) fn table(name: &str, column: impl Into<Column>, modes: &[Mode]) -> Result<Table> {
    let mut table = Table::new().with_column(name, column)?;
    if modes.iter().any(|mode| matches!(mode.kind, ChannelKind::Electrons | ChannelKind::Holes)) {
        let name = |mode: &Mode| match mode.kind {
            ChannelKind::Holes => "hole",
            ChannelKind::Electrons => "electron",
            ChannelKind::Any | ChannelKind::Carrying(_) => "any",
        };
        table = table
            .with_column("particle", modes.iter().map(|mode| name(mode).into()).collect::<Vec<String>>())?;
    }
    if modes.iter().any(|mode| matches!(mode.kind, ChannelKind::Carrying(_))) {
        let value = |mode: &Mode| if let ChannelKind::Carrying(x) = mode.kind { x } else { f64::NAN };
        table = table.with_column("conserved", modes.iter().map(value).collect::<Vec<f64>>())?;
    }
    let numbers = |f: &dyn Fn(&Mode) -> f64| modes.iter().map(f).collect::<Vec<f64>>();
    table = table.with_column("momentum", numbers(&|mode| mode.momentum))?;
    table.with_column("velocity", numbers(&|mode| mode.velocity))
}

/// Outward waves, or inward ones, that propagate.
struct Propagating {
    /// From cell to cell outward.
    phases: Vec<C64>,
    /// Of the waves between two cells, a column each.
    waves: Mat<C64>,
    /// Of the channels: unitary.
    amplitudes: Mat<C64>,
}

/// The waves that `follow` takes into themselves, but for a phase. In the basis of channels what is closed remains so:
/// the matrix of the open ones alone is unitary, and the closed part of each wave follows.
fn propagating(follow: &Mat<C64>, basis: &Mat<C64>, channels: &Channels) -> Option<Propagating> {
    let (r, open, root) = (basis.ncols(), &channels.open, |k: usize| channels.passing[k].sqrt());
    let closed: Vec<usize> = (0..r).filter(|k| !open.contains(k)).collect();
    let inside = basis.adjoint() * follow * basis;
    let (n, m) = (open.len(), closed.len());
    let own = Mat::from_fn(n, n, |i, j| root(open[i]) * inside[(open[i], open[j])] / root(open[j]));
    let (phases, amplitudes) = eigen_unitary(&own)?;
    let mut waves = Mat::<C64>::zeros(r, n);
    for j in 0..n {
        let first = Mat::from_fn(n, 1, |i, _| amplitudes[(i, j)] / root(open[i]));
        let driven = Mat::from_fn(m, n, |i, k| inside[(closed[i], open[k])]) * &first;
        let rest = Mat::from_fn(m, m, |i, k| {
            (if i == k { phases[j] } else { C64::ZERO }) - inside[(closed[i], closed[k])]
        });
        let second = rest.partial_piv_lu().solve(driven);
        open.iter().enumerate().for_each(|(i, &k)| waves[(k, j)] = first[(i, 0)]);
        closed.iter().enumerate().for_each(|(i, &k)| waves[(k, j)] = second[(i, 0)]);
    }
    Some(Propagating { phases, waves: basis * waves, amplitudes })
}

/// Eigenvalues of modulus 1 and orthonormal eigenvectors of a matrix that is unitary but for errors, by Cayley's
/// transform: with the largest gap between eigenvalues turned to -1, it is Hermitian and of moderate size.
fn eigen_unitary(a: &Mat<C64>) -> Option<(Vec<C64>, Mat<C64>)> {
    let n = a.nrows();
    if n == 0 {
        return Some((Vec::new(), Mat::zeros(0, 0)));
    }
    let mut angles: Vec<f64> = a.eigenvalues().ok()?.iter().map(|z| z.arg()).collect();
    angles.sort_by(f64::total_cmp);
    let next = |i: usize| if i + 1 < n { angles[i + 1] } else { angles[0] + TAU };
    let widest = (0..n).max_by(|&i, &j| (next(i) - angles[i]).total_cmp(&(next(j) - angles[j])))?;
    let turn = -C64::cis(-0.5 * (angles[widest] + next(widest)));
    let with =
        |sign: f64| Mat::from_fn(n, n, |i, j| sign * turn * a[(i, j)] + if i == j { 1.0 } else { 0.0 });
    let k = with(-1.0) * inverse(with(1.0).as_ref())?;
    let hermitian = Mat::from_fn(n, n, |i, j| 0.5 * C64::I * (k[(i, j)] - k[(j, i)].conj()));
    let (_, vectors) = eigh(hermitian.as_ref(), Par::Seq)?;
    let seen = a * &vectors;
    let value = |j: usize| -> C64 {
        let z: C64 = (0..n).map(|i| vectors[(i, j)].conj() * seen[(i, j)]).sum();
        z / z.norm()
    };
    Some(((0..n).map(value).collect(), vectors))
}

/// The unitary matrix next to one that is unitary but for rounding.
fn unitary(a: &Mat<C64>) -> Option<Mat<C64>> {
    let d = a.svd().ok()?;
    Some(d.U() * d.V().adjoint())
}

/// The unitary matrix that turns waves of one momentum and velocity, of which any combinations are as good, to simple
/// ones: the first one is as large as can be in one row, and real there, the second one vanishes there, and so on.
/// Spins, or chains side by side, which nothing joins, come out apart.
fn simple(waves: &Mat<C64>) -> Mat<C64> {
    let n = waves.ncols();
    let mut left = waves.clone();
    let mut turn = Mat::<C64>::zeros(n, n);
    for c in 0..n {
        let size = |i: usize| (0..n).map(|j| left[(i, j)].norm_sqr()).sum::<f64>();
        let most = (0..left.nrows()).map(size).fold(0.0, f64::max);
        let Some(row) = (0..left.nrows()).find(|&i| size(i) >= (1.0 - SAME_SIZE) * most) else { break };
        let length = size(row).sqrt();
        let own: Vec<C64> = (0..n).map(|j| left[(row, j)].conj() / length).collect();
        (0..n).for_each(|j| turn[(j, c)] = own[j]);
        for i in 0..left.nrows() {
            let along: C64 = (0..n).map(|j| left[(i, j)] * own[j]).sum();
            (0..n).for_each(|j| left[(i, j)] -= along * own[j].conj());
        }
    }
    turn
}

/// Numbers in groups, in each of which every one is the same as another one.
fn groups(n: usize, same: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = Vec::new();
    for i in 0..n {
        let (joined, mut apart): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|group| group.iter().any(|&j| same(i, j)));
        apart.push(joined.into_iter().flatten().chain([i]).collect());
        all = apart;
    }
    all
}

/// How far two angles are apart.
fn apart(a: f64, b: f64) -> f64 {
    let d = (a - b).rem_euclid(TAU);
    d.min(TAU - d)
}

/// A momentum above -1/2 and up to 1/2; what rounding puts next to -1/2 is 1/2.
fn wrapped(k: f64) -> f64 {
    let k = k - k.round();
    if k < -0.5 + SAME_MOMENTUM / PI { k + 1.0 } else { k }
}
