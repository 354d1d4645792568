//! A lead at energies beside one where a band begins or bands touch. With the distance E - E0 = s^2 to the edge, its
//! reflection is a power series in s: real numbers s above the edge, imaginary ones below it. So a few energies tell
//! what it nearly is at the others, and Newton's steps need no other start.

use std::sync::Arc;

use faer::Mat;

use super::dense::largest;
use super::lead::Lead;
use super::opening::unresolved;
use super::reflection::{NOISE, Reflection, SlabWaves};
use crate::error::Result;
use crate::number::C64;
use crate::task::{self, parallel};

/// How far beside an energy that is not resolved leads are asked, in units of what joins their cells.
pub const BESIDE: [f64; 3] = [4e-8, 1e-8, 2.5e-9];
/// The same, down to where what is far narrower is noticed: it changes the reflection the more, the nearer it is.
const NEARER: [f64; 5] = [BESIDE[0], BESIDE[1], BESIDE[2], 6.25e-10, 1.5625e-10];
/// By how much such changes may grow.
const GROWTH: f64 = 1.5;
/// Reflections that are off by more tell nothing of that.
const VAGUE: f64 = 1e-3;
/// Steps in energy from one that is beside to the next one, where that is not found by itself.
const STRIDES: u32 = 8;
/// Reflections that tell what others nearly are, and how many the first of them must be.
const TELLING: usize = 3;

impl SlabWaves {
    /// The reflections at some energies, which lie so far above one energy each.
    fn beside(&self, energy: f64, near: &[(f64, f64)]) -> Result<Vec<Option<Arc<Reflection>>>> {
        let root = |distance: f64| {
            let s = distance.abs().sqrt();
            if distance < 0.0 { C64::new(0.0, s) } else { C64::new(s, 0.0) }
        };
        let stop = task::current();
        let at = |(energy, distance): (f64, f64), told: &[(C64, Arc<Reflection>)]| {
            stop.check()?;
            self.reflection_from(energy, || (told.len() > 1).then(|| series(told, root(distance))))
        };
        let first = near.len().min(TELLING);
        let mut told: Vec<(C64, Arc<Reflection>)> = Vec::new();
        // At the energy itself it is known to half of the digits, which will do for the first ones.
        told.extend(self.reflection(energy)?.map(|found| (C64::ZERO, found)));
        let mut all = Vec::with_capacity(near.len());
        for &place in &near[..first] {
            let found = at(place, &told)?;
            told.extend(found.clone().map(|found| (root(place.1), found)));
            all.push(found);
        }
        told.retain(|(s, _)| *s != C64::ZERO);
        all.extend(parallel::try_map(near.len() - first, |k| at(near[first + k], &told))?);
        // Those on one side of the energy follow each other, two apart.
        for k in 2..near.len() {
            if let (None, Some(before)) = (&all[k], &all[k - 2]) {
                let (far, close) = (near[k - 2].1, near[k].1);
                let part = |step: u32| (close / far).powf(f64::from(step) / f64::from(STRIDES));
                let way = (1..=STRIDES).map(|step| match step == STRIDES {
                    true => near[k].0,
                    false => near[k].0 - close + far * part(step),
                });
                all[k] = self.continued(way, before.u.clone())?;
            }
        }
        Ok(all)
    }
}

/// The polynomial through some reflections at another place (Lagrange).
fn series(told: &[(C64, Arc<Reflection>)], at: C64) -> Mat<C64> {
    let r = told[0].1.u.nrows();
    let mut sum = Mat::<C64>::zeros(r, r);
    for (k, (own, found)) in told.iter().enumerate() {
        let others = told.iter().enumerate().filter(|(j, _)| *j != k);
        let weight: C64 = others.map(|(_, (other, _))| (at - other) / (own - other)).product();
        sum += faer::Scale(weight) * &found.u;
    }
    sum
}

impl Lead {
    /// How many channels are open at an energy.
    ///
    /// # Errors
    /// An energy that is not finite, or at which the number is not defined; interruption.
    pub fn channels(&self, energy: f64) -> Result<usize> {
        if let Some(opening) = self.opening(energy)? {
            return Ok(opening.back.nrows());
        }
        self.check_alone(energy)?;
        let mut counts = Vec::new();
        for above in BESIDE.into_iter().flat_map(|x| [x, -x]) {
            let Some(opening) = self.opening(energy + above * self.unit())? else {
                return Err(unresolved(energy));
            };
            counts.push(opening.back.nrows());
        }
        if counts.iter().any(|&count| count != counts[0]) {
            return Err(unresolved(energy));
        }
        Ok(counts[0])
    }

    /// Checks that no gap, band or resonance that is narrower than the energies beside are apart hides between them: on
    /// both sides the reflection changes the less, the nearer the energy is.
    ///
    /// # Errors
    /// Where it does not; interruption.
    pub fn check_alone(&self, energy: f64) -> Result<()> {
        for seen in self.beside(energy, self.unit(), &NEARER)? {
            let resolved = |r: Option<Arc<Reflection>>| r.filter(|r| r.off < VAGUE);
            let seen: Option<Vec<Arc<Reflection>>> = seen.into_iter().map(resolved).collect();
            let seen = seen.ok_or_else(|| unresolved(energy))?;
            for side in 0..2 {
                let found: Vec<&Reflection> = seen.iter().skip(side).step_by(2).map(|r| &**r).collect();
                let change = |k: usize| largest((&found[k + 1].u - &found[k].u).as_ref());
                let off = |k: usize| found[k].off.max(found[k + 1].off) + NOISE;
                if (1..found.len() - 1).any(|k| change(k) > GROWTH * change(k - 1) + 10.0 * off(k)) {
                    return Err(unresolved(energy));
                }
            }
        }
        Ok(())
    }

    /// The reflections of its waves on both sides of an energy, in turn above it and below, as far from it as some
    /// distances in this unit. They are remembered.
    ///
    /// # Errors
    /// Interruption.
    pub fn beside(
        &self,
        energy: f64,
        unit: f64,
        distances: &[f64],
    ) -> Result<Vec<Vec<Option<Arc<Reflection>>>>> {
        let own = self.unit();
        // The energies that are asked for later, to the last bit.
        let place = |x: f64| ((energy + x * unit) / own, x * unit / own);
        let near: Vec<(f64, f64)> = distances.iter().flat_map(|x| [place(*x), place(-x)]).collect();
        self.waves().iter().map(|waves| waves.beside(energy / own, &near)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::matrix::Wrap;
    use crate::lattice::{Lattice, Model, OrbitalBlock};
    use crate::method::transport::{Particle, TransportSample};
    use crate::task::Task;

    fn chain(lattice: Lattice) -> Model {
        let mut model = Model::new(lattice, 1).unwrap();
        model.nearest(&OrbitalBlock::scalar(1, C64::new(-1.0, 0.0))).unwrap();
        model
    }

    #[test]
    fn the_limit_at_an_edge_takes_what_its_check_has_found() {
        let cell = chain(Lattice::chain(1).unwrap());
        let lead = |outward| Lead::new(&cell, None, None, outward, &[]).unwrap();
        let leads = vec![lead(false), lead(true)];
        let open = Lattice::chain(3).unwrap().boundary(&[Wrap::Open]).unwrap();
        let sample = TransportSample::new(&chain(open), leads).unwrap();
        let at =
            |energy| sample.transmission((0, Particle::Any), (1, Particle::Any), energy, &Task::default());
        assert!(at(2.0).unwrap_err().to_string().contains("no limit"));
        let (first, second) = (sample.lead(0).unwrap().0, sample.lead(1).unwrap().0);
        assert_eq!(first.waves()[0].remembered(), 1 + 2 * NEARER.len());
        assert_eq!(second.waves()[0].remembered(), 1 + 2 * NEARER.len());
    }

    /// A strip whose bands begin at known energies.
    fn strip(n: usize) -> SlabWaves {
        let h = Mat::from_fn(n, n, |i, j| if i.abs_diff(j) == 1 { -C64::ONE } else { C64::ZERO });
        let v = Mat::from_fn(n, n, |i, j| if i == j { -C64::ONE } else { C64::ZERO });
        SlabWaves::new(&h, &v, (0..n).collect(), 1.0).unwrap()
    }

    #[test]
    fn beside_an_edge_reflections_are_what_they_are_alone() {
        let n = 7;
        let across = |j: usize| 2.0 * (std::f64::consts::PI * j as f64 / (n + 1) as f64).cos();
        // One edge, two at once (those of two bands at zero), none.
        for energy in [2.0 - across(3), across(2) - 2.0, 0.0, 0.31] {
            let near: Vec<(f64, f64)> =
                NEARER.iter().flat_map(|x| [(energy + x, *x), (energy - x, -x)]).collect();
            let found = strip(n).beside(energy, &near).unwrap();
            for ((at, distance), found) in near.iter().zip(found) {
                let (found, alone) = (found.unwrap(), strip(n).reflection(*at).unwrap().unwrap());
                let off = largest((&found.u - &alone.u).as_ref());
                assert!(off < 1e-9 && found.lasting == alone.lasting, "{energy} {distance}: {off}");
            }
        }
    }
}
