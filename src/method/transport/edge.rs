//! The transmission at an energy where bands of a lead begin or touch: its limit from both sides. Beside such an energy
//! the waves of the leads change with the root of the distance, but the sample as the distance itself. So the sample is
//! solved once, between absorbing contacts in place of its leads. What the leads make of that at each of the energies
//! beside follows on the rows of the leads alone.

use std::sync::{Arc, PoisonError};

use faer::Mat;
use faer::prelude::Solve;

use super::beside::BESIDE;
use super::dense::{gram, largest, one_less};
use super::opening::unresolved;
use super::passed::{ChannelProbabilities, EdgeProbabilities, Openings};
use super::slices::{SliceBlocks, Triplet};
use super::{Attached, Contact, Particle, States, TransportSample};
use crate::error::{Error, Result};
use crate::number::C64;
use crate::task::Task;

/// Limits of the transmission from both sides of an energy that differ by less are the same.
const SAME: f64 = 1e-5;
/// A limit that still changes by more, from one distance to the next, is none.
const UNSETTLED: f64 = 1e-3;
/// By how much what passes may be off, in units of what reflections are.
const ROUNDED: f64 = 100.0;
/// The largest inverse on the rows of the leads, in units of what absorbs there, that loses no digits that matter.
const MOST_INVERSE: f64 = 1e8;

/// The most by which the sample's Green's function, in the same units, may change to the energies beside: what is left
/// out goes with its square. A level that is hardly wider than they are apart changes it by more.
const STRAIGHT: f64 = 3e-4;

/// A sample next to an energy as its leads see it.
struct SampleBetween {
    /// The rows of each lead, as places among all rows of leads.
    places: Vec<Vec<usize>>,
    /// How strongly each of these rows absorbs: a self-energy of `-i rate`.
    rate: f64,
    /// The Green's function between these rows with that self-energy, times the rate, at the energy.
    green: Mat<C64>,
    /// By how much it is another one at the farthest energy beside, above; below, by the opposite.
    slope: Mat<C64>,
}

impl SampleBetween {
    /// None where the sample itself changes too much between the energies beside.
    fn new(sample: &TransportSample, energy: f64, rate: f64, task: &Task) -> Result<Option<SampleBetween>> {
        let mut rows: Vec<usize> = sample.leads.iter().flat_map(|lead| lead.rows.iter().copied()).collect();
        // By slices: columns that begin in later ones take no part in the first steps of the elimination.
        let order = |row: &usize| (sample.slices.place(*row), *row);
        rows.sort_unstable_by_key(order);
        rows.dedup();
        let n = rows.len();
        // Each row of a lead lies in a slice.
        let at: Vec<(usize, usize)> = rows.iter().filter_map(|&row| sample.slices.place(row)).collect();
        let mut blocks = SliceBlocks::new(&sample.slices, &sample.h, energy);
        let mut b: Vec<Vec<Triplet>> = vec![Vec::new(); sample.slices.rows.len()];
        for (column, (&row, &(slice, i))) in rows.iter().zip(&at).enumerate() {
            blocks.subtract(row, row, C64::new(0.0, -rate));
            b[slice].push((i, column, C64::new(rate, 0.0)));
        }
        let (x, _) = blocks.solve(&b, n, task)?;
        let green = Mat::from_fn(n, n, |i, j| x[at[i].0][(at[i].1, j)]);
        // What absorbs joins G to its adjoint, G = (1 - 2i rate G P) G^dagger with the rows P of the leads, and so
        // dG/dE = -G G between these rows is -(1 - 2i rate G) (G P)^dagger (G P).
        let inside = gram(&x, n);
        let twice = Mat::from_fn(n, n, |i, j| C64::new(0.0, 2.0) * green[(i, j)]);
        let slope = faer::Scale(C64::new(-BESIDE[0], 0.0)) * one_less(&twice) * inside;
        if !(largest(slope.as_ref()) < STRAIGHT) {
            return Ok(None);
        }
        let place = |row: &usize| rows.binary_search_by_key(&order(row), order).unwrap_or(usize::MAX);
        let places = sample.leads.iter().map(|lead| lead.rows.iter().map(place).collect()).collect();
        Ok(Some(SampleBetween { places, rate, green, slope }))
    }

    /// What passes with leads like these, at a part of the way to the farthest energy beside. None where digits would
    /// be lost.
    fn passed(&self, openings: Openings, part: f64) -> Option<ChannelProbabilities> {
        let n = self.green.nrows();
        let mut size = n;
        let places: Vec<Vec<usize>> = self
            .places
            .iter()
            .zip(&*openings)
            .map(|(rows, opening)| {
                size += opening.extra;
                rows.iter().copied().chain(size - opening.extra..size).collect()
            })
            .collect();
        let count = openings.iter().map(|opening| opening.back.nrows()).sum();
        // With the sample's inverse Green's function g^-1, and own rows of the leads behind those of the sample,
        // (g^-1 - i - sigma) x = source, all in units of the rate. The upper rows are multiplied by g.
        let mut changed =
            Mat::<C64>::from_fn(size, size, |i, j| if i == j && i < n { -C64::I } else { C64::ZERO });
        let mut source = Mat::<C64>::zeros(size, count);
        let (mut columns, mut first) = (Vec::new(), 0);
        for (places, opening) in places.iter().zip(&*openings) {
            let open = opening.back.nrows();
            for (i, &row) in places.iter().enumerate() {
                for (j, &column) in places.iter().enumerate() {
                    changed[(row, column)] -= opening.matrix[(i, j)] / self.rate;
                }
                (0..open).for_each(|c| source[(row, first + c)] += opening.source[(i, c)] / self.rate);
            }
            columns.push(first..first + open);
            first += open;
        }
        let green = Mat::from_fn(n, n, |i, j| self.green[(i, j)] + part * self.slope[(i, j)]);
        let with_green = |m: &mut Mat<C64>| {
            let seen = &green * m.subrows(0, n);
            m.subrows_mut(0, n).copy_from(&seen);
        };
        with_green(&mut changed);
        (0..n).for_each(|i| changed[(i, i)] += 1.0);
        with_green(&mut source);
        // One more right-hand side has all rows alike in size: what it becomes tells how large the inverse is.
        let probe = |i: usize| C64::cis(2.4 * (i * i) as f64);
        let right = Mat::from_fn(size, count + 1, |i, c| if c < count { source[(i, c)] } else { probe(i) });
        let x = changed.partial_piv_lu().solve(right);
        if !(largest(x.subcols(count, 1)) < MOST_INVERSE && largest(x.as_ref()).is_finite()) {
            return None;
        }
        let out = places.iter().zip(&*openings).zip(&columns).map(|((places, opening), own)| {
            let mut out = &opening.out * Mat::from_fn(places.len(), count, |i, c| x[(places[i], c)]);
            for (d, column) in own.clone().enumerate() {
                (0..out.nrows()).for_each(|c| out[(c, column)] += opening.back[(c, d)]);
            }
            out
        });
        let out = out.collect();
        Some(ChannelProbabilities::of(&States { slices: Vec::new(), columns, out, openings, open: false }))
    }
}

impl TransportSample {
    /// The limit of the transmission at an energy where a lead is not resolved, if both sides have the same.
    pub(super) fn limit_at_edge(
        &self,
        from: (usize, Particle),
        to: (usize, Particle),
        energy: f64,
        task: &Task,
    ) -> Result<f64> {
        let passed = self.beside_edge(energy, task)?;
        let mut limits = [0.0; 2];
        let mut settled = true;
        for ((near, off), limit) in passed.sides.iter().zip(&passed.off).zip(&mut limits) {
            let near: Vec<f64> = near.iter().map(|passed| passed.sum(from, to)).collect::<Result<_>>()?;
            // What changes by no more than rounding does is the same, and known best from afar: in a band that is flat
            // at the energy, reflections are the less exact, the nearer it is.
            if (1..near.len()).all(|k| (near[k] - near[0]).abs() <= ROUNDED * off[k]) {
                *limit = near[0];
                continue;
            }
            // At an edge, and where bands touch, it changes as the root of the distance, and beside it as the distance.
            // Each distance is a quarter of the last one.
            let [far, close] = [2.0 * near[1] - near[0], 2.0 * near[2] - near[1]];
            *limit = (4.0 * close - far) / 3.0;
            settled &= (*limit - close).abs() < UNSETTLED;
        }
        let [below, above] = limits;
        if !settled || (below - above).abs() > SAME {
            return Err(Error::numeric(format!(
                "at energy {energy} bands of a lead touch or begin, and the transmission has no limit: just below it \
                 is {:.6}, just above {:.6}",
                below.max(0.0),
                above.max(0.0)
            ))
            .hint("move the energy by a little, such as 1e-6 of a hopping, to one side of it"));
        }
        Ok((0.5 * (below + above)).max(0.0))
    }

    /// The energies at which the transmission at an energy asks for self-energies: those beside it, where a lead is not
    /// resolved.
    ///
    /// # Errors
    /// An energy that is not finite; interruption.
    pub fn energies_asked(&self, energy: f64) -> Result<Vec<f64>> {
        for attached in &self.leads {
            let Contact::Lead(lead) = &attached.contact else { continue };
            if lead.opening(energy)?.is_none() {
                let unit = self.unit();
                return Ok([-unit, unit].into_iter().flat_map(|u| BESIDE.map(|x| energy + x * u)).collect());
            }
        }
        Ok(vec![energy])
    }

    /// The largest unit of the leads' energies.
    fn unit(&self) -> f64 {
        let of = |attached: &Attached| match &attached.contact {
            Contact::Lead(lead) => lead.unit(),
            Contact::Escape(_) => 0.0,
        };
        self.leads.iter().map(of).fold(0.0, f64::max)
    }

    /// What passes beside an energy, from all leads to all.
    fn beside_edge(&self, energy: f64, task: &Task) -> Result<Arc<EdgeProbabilities>> {
        let known = || self.known.edge.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, edge)) = known().as_ref().filter(|(bits, _)| *bits == energy.to_bits()) {
            return Ok(edge.clone());
        }
        for attached in &self.leads {
            let Contact::Lead(lead) = &attached.contact else { continue };
            if attached.opening(energy)?.is_none() {
                lead.check_alone(energy)?;
            }
        }
        let unit = self.unit();
        for attached in &self.leads {
            if let Contact::Lead(lead) = &attached.contact {
                lead.beside(energy, unit, &BESIDE)?;
            }
        }
        let between = SampleBetween::new(self, energy, unit, task)?;
        let (mut sides, mut off) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for ((sign, side), off) in [-unit, unit].into_iter().zip(&mut sides).zip(&mut off) {
            for beside in BESIDE {
                let near = energy + beside * sign;
                let openings = self.openings(near)?.ok_or_else(|| unresolved(energy))?;
                let parts = openings.iter().flat_map(|opening| &opening.parts);
                off.push(parts.map(|part| part.off).fold(0.0, f64::max));
                let part = sign.signum() * beside / BESIDE[0];
                side.push(match between.as_ref().and_then(|sample| sample.passed(openings.clone(), part)) {
                    Some(passed) => passed,
                    None => {
                        let all: Vec<usize> = (0..self.leads.len()).collect();
                        let states = self.states(near, &all, &task.quiet())?;
                        ChannelProbabilities::of(&states.ok_or_else(|| unresolved(energy))?)
                    }
                });
            }
        }
        let edge = Arc::new(EdgeProbabilities { sides, off });
        *known() = Some((energy.to_bits(), edge.clone()));
        Ok(edge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::matrix::Wrap;
    use crate::lattice::{Lattice, Model, OrbitalBlock};
    use crate::method::transport::Lead;

    const PERIODIC: Wrap = Wrap::Phase(C64::ONE);

    fn strip(length: usize, wraps: [Wrap; 2]) -> Model {
        let lattice = Lattice::square(length, 3).unwrap().boundary(&wraps).unwrap();
        let mut model = Model::new(lattice, 1).unwrap();
        model.nearest(&OrbitalBlock::scalar(1, -C64::ONE)).unwrap();
        model
    }

    #[test]
    fn beside_an_edge_passes_what_the_whole_sample_lets_pass() {
        let mut sample = strip(5, [Wrap::Open, Wrap::Open]);
        sample.onsite_each((0..15).map(|i| 0.7 * (2.7 * f64::from(i)).sin()).collect()).unwrap();
        // No element of the Green's function is that of the way back.
        sample.hop(&[1, 0], &OrbitalBlock::scalar(1, C64::new(0.2, 0.3))).unwrap();
        let lead = |out| Lead::new(&strip(1, [PERIODIC, Wrap::Open]), None, None, out, &[]).unwrap();
        let sample = TransportSample::new(&sample, vec![lead(false), lead(true)]).unwrap();
        let task = Task::default();
        for energy in [2.0 - 2.0f64.sqrt(), 2.0f64.sqrt() - 2.0, 2.0, -2.0, 0.0] {
            let unit = sample.lead(0).unwrap().0.unit();
            let found = sample.beside_edge(energy, &task).unwrap();
            for (side, sign) in found.sides.iter().zip([-unit, unit]) {
                for (found, beside) in side.iter().zip(BESIDE) {
                    for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                        let whole = sample.passed(energy + sign * beside, from, &task).unwrap().unwrap();
                        let ends = ((from, Particle::Any), (to, Particle::Any));
                        let (found, whole) = (found.sum(ends.0, ends.1), whole.sum(ends.0, ends.1));
                        let off = (found.unwrap() - whole.unwrap()).abs();
                        assert!(off < 1e-10, "{energy} {beside} from {from} to {to}: {off}");
                    }
                }
            }
            assert!(Arc::ptr_eq(&found, &sample.beside_edge(energy, &task).unwrap()));
        }
    }

    #[test]
    fn a_level_as_narrow_as_the_energies_are_apart_is_noticed() {
        let chain = |wrap, joint: f64, level: f64| {
            let mut model = Model::new(Lattice::chain(3).unwrap().boundary(&[wrap]).unwrap(), 2).unwrap();
            let block = |x: [f64; 4]| OrbitalBlock::new(2, x.map(|x| C64::new(x, 0.0)).to_vec()).unwrap();
            model.hop(&[1], &block([-1.0, 0.0, 0.0, 0.0])).unwrap();
            model.onsite(&block([0.0, joint, joint, level])).unwrap();
            model
        };
        for (joint, straight) in [(0.3, true), (1e-4, false)] {
            let lead = |out| Lead::new(&chain(PERIODIC, 0.0, 9.0), None, None, out, &[]).unwrap();
            let leads = vec![lead(false), lead(true)];
            let sample = TransportSample::new(&chain(Wrap::Open, joint, 2.0), leads).unwrap();
            let between = SampleBetween::new(&sample, 2.0, 2.0, &Task::default()).unwrap();
            assert_eq!(between.is_some(), straight, "{joint}");
            assert!(sample.beside_edge(2.0, &Task::default()).is_ok());
        }
    }
}
