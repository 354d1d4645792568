//! The reflection of a semi-infinite chain of cells at a real energy. Between two cells there are outward and inward
//! waves; the difference is the current. A cell turns incoming waves into outgoing waves by a matrix that is unitary at
//! real energies, and a lead reflects outward waves p into `u p`. In contrast to Green's functions and self-energies,
//! these quantities do not diverge at an end state of the lead or of a part of it.
//!
//! With the joint `v = a b^dagger`, `b^dagger psi` on the inner side and `a^dagger psi` on the outer side of a joint
//! are `(p + u p)/sqrt(2)` and `(p - u p)/(i sqrt(2))`. Compare Groth, Wimmer, Akhmerov, Waintal, New J. Phys. 16
//! (2014) 063065, whose modes are the eigenvectors of what `LeadSlab::behind` (`newton.rs`) calls `ahead`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use faer::prelude::Solve;
use faer::{Mat, MatRef, Side};

use super::dense::{inverse, largest, one_less};
use super::slab::LeadSlab;
use crate::error::Result;
use crate::number::C64;
use crate::task;

/// The cells of a lead, energies in units of what joins them.
#[derive(Debug, Clone)]
pub struct SlabWaves {
    /// Rows of the lead's cell.
    pub rows: Vec<usize>,
    /// The largest element of the cell's matrix h.
    h_size: f64,
    /// The joint from a cell to the next one outward is `a b^dagger`.
    a: Mat<C64>,
    pub b: Mat<C64>,
    /// `h - i (a a^dagger + b b^dagger)`: the cell that sends nothing back at its joints.
    open: Mat<C64>,
    /// What was found at the last energies. The limit at the edge of a band asks for what its check has asked for, and
    /// leads that are alike ask for the same.
    known: Arc<Mutex<VecDeque<KnownReflection>>>,
}

/// The bits of an energy, and what was found there.
type KnownReflection = (u64, Option<Arc<Reflection>>);

/// Energies that are remembered: what an edge takes, and one more.
const REMEMBERED: usize = 12;

/// Most bytes of what is remembered: of wide leads fewer energies are.
const MOST_BYTES: usize = 256 << 20;

/// The waves that a lead sends back, and how far that may be off.
#[derive(Debug)]
pub struct Reflection {
    pub u: Mat<C64>,
    pub off: f64,
    /// How many waves decay so slowly that they may be open channels, or not. None until they are counted.
    pub lasting: Option<usize>,
    /// Whether Newton's steps led to it until rounding was all that was left: others lead to the same.
    pub settled: bool,
}

impl Reflection {
    /// How much a wave lets pass at least to be an open channel.
    pub fn least_passing(&self) -> f64 {
        OPEN * self.off.max(NOISE)
    }

    /// Whether it is the limit from above: no wave brings more back than it takes, and only open channels last. Other
    /// reflections that repeat from cell to cell have channels the wrong way round or waves that grow.
    fn is_retarded(&self) -> bool {
        let passing = one_less(&(self.u.adjoint() * &self.u)).self_adjoint_eigenvalues(Side::Lower);
        let Ok(passing) = passing else { return false };
        let least = self.least_passing();
        let open = passing.iter().filter(|x| **x > least).count();
        passing.iter().all(|x| *x >= -least) && self.lasting == Some(open)
    }
}

/// The imaginary part of the energy from which the limit begins. Rounding errors grow with its inverse,
/// up to Newton's steps.
const BEGIN: f64 = 1e-8;
/// Imaginary parts that a polynomial extrapolates to zero, the largest of them, and how many,
/// each half of the one before.
const EXTRAPOLATED: [f64; 2] = [1e-4, 1e-2];
const ORDERS: usize = 6;
/// The least that a reflection may be off, for the count of channels.
pub const NOISE: f64 = 1e-11;
/// What a channel lets pass at least, in units of what the reflection is off.
const OPEN: f64 = 100.0;
/// A reflection that is off by more than this is sought in another way.
pub const GOOD: f64 = 1e-11;
/// A polynomial that is off by more, at zero or at this imaginary part, is refused: what is `w` wide, near the energy,
/// changes the reflection at an imaginary part eta by `w / eta`, however narrow it is, and no polynomial follows that.
const TAIL: f64 = 1e-8;
const LOOKED_AT: f64 = 1e-6;
/// What is left of a change when imaginary parts halve, at least, where it is by their root: 0.71. A polynomial leaves
/// half of it.
const ROOTED: f64 = 0.66;
/// From one imaginary part to the next, first in great steps, then in small ones.
const STRIDES: [f64; 2] = [8.0, 2.0];
/// Between neighbouring imaginary parts, solutions may differ by so many times what they did before; others are others.
const JUMP: f64 = 3.0;
/// Differences that are no jumps.
const NO_JUMP: f64 = 1e-7;
/// What a wave may lose in a cell, in units of what the reflection is off, and be an open channel all the same.
const LASTING: f64 = 3.0;
/// What passes a piece of a lead counts as nothing below this. A start of Newton's steps has fewer digits.
pub const PASSED: f64 = 1e-17;
const PASSED_AT_FIRST: f64 = 1e-11;
/// Elements of a cell's Green's function above which it is asked for orbitals that no wave reaches.
const UNREACHED: f64 = 1e8;
impl SlabWaves {
    /// Of the cells with the matrix `h`, joined by `v`, on some of their rows.
    pub fn new(h: &Mat<C64>, v: &Mat<C64>, rows: Vec<usize>, unit: f64) -> Option<SlabWaves> {
        let n = rows.len();
        let of = |m: &Mat<C64>| Mat::from_fn(n, n, |i, j| m[(rows[i], rows[j])] / unit);
        let (h, v) = (of(h), of(v));
        let d = v.thin_svd().ok()?;
        let s: Vec<f64> = d.S().column_vector().iter().map(|s| s.re).collect();
        let most = s.first().copied().unwrap_or(0.0);
        let rank = s.iter().filter(|s| **s > 1e-14 * most).count();
        let part = |m: MatRef<'_, C64>| Mat::from_fn(n, rank, |i, k| m[(i, k)] * s[k].sqrt());
        let (a, b) = (part(d.U()), part(d.V()));
        let h_size = largest(h.as_ref());
        let joined = &a * a.adjoint() + &b * b.adjoint();
        let open = Mat::from_fn(n, n, |j, k| h[(j, k)] - C64::I * joined[(j, k)]);
        Some(SlabWaves { rows, h_size, a, b, open, known: Arc::default() })
    }

    /// `z - h` of a cell that sends nothing back at its joints.
    fn inner(&self, z: C64) -> Mat<C64> {
        let n = self.rows.len();
        Mat::from_fn(n, n, |j, k| if j == k { z - self.open[(j, k)] } else { -self.open[(j, k)] })
    }

    /// One cell at a complex energy.
    pub fn cell(&self, z: C64) -> Option<LeadSlab> {
        let (r, i) = (self.a.ncols(), C64::I);
        let lu = self.inner(z).partial_piv_lu();
        let (ka, kb) = (lu.solve(&self.a), lu.solve(&self.b));
        let with = |x: Mat<C64>, factor: C64, own: f64| {
            Mat::from_fn(r, r, |j, k| factor * x[(j, k)] + if j == k { own } else { 0.0 })
        };
        let piece = LeadSlab {
            left: with(self.a.adjoint() * &ka, -2.0 * i, 1.0),
            inward: with(self.a.adjoint() * &kb, C64::new(2.0, 0.0), 0.0),
            outward: with(self.b.adjoint() * &ka, C64::new(2.0, 0.0), 0.0),
            right: with(self.b.adjoint() * &kb, 2.0 * i, -1.0),
        };
        piece.is_finite().then_some(piece)
    }

    /// One cell at a real energy. An orbital that nothing reaches and that lies at this very energy is seen by no wave,
    /// but its equation has no solution: a last digit of imaginary part gives it one.
    fn cell_at(&self, energy: f64) -> Option<LeadSlab> {
        [0.0, 4e-16, 6e-15, 1e-13].iter().find_map(|eta| self.cell(C64::new(energy, *eta)))
    }

    /// The amplitudes in a cell to which outward waves come at its inner joint and inward ones at its outer joint, a
    /// column each. Of an orbital that no wave reaches there is nothing in them.
    pub fn inside(&self, energy: f64, outward: &Mat<C64>, inward: &Mat<C64>) -> Option<Mat<C64>> {
        let inner = self.inner(C64::new(energy, 0.0));
        let root = 2.0f64.sqrt();
        let right = faer::Scale(C64::new(root, 0.0)) * (&self.a * outward)
            + faer::Scale(C64::new(0.0, root)) * (&self.b * inward);
        if let Some(g) = inverse(inner.as_ref()).filter(|g| largest(g.as_ref()) < UNREACHED) {
            return Some(g * right);
        }
        let d = inner.svd().ok()?;
        let most = d.S().column_vector().iter().map(|s| s.re).fold(0.0, f64::max);
        let mut seen = d.U().adjoint() * right;
        for i in 0..seen.nrows() {
            let s = d.S().column_vector()[i].re;
            let weight = if s > 1e-13 * most { 1.0 / s } else { 0.0 };
            (0..seen.ncols()).for_each(|j| seen[(i, j)] *= weight);
        }
        Some(d.V() * seen)
    }

    /// What becomes of outward waves p in a cell, where `u p` comes back, and of inward waves q,
    /// where `u^dagger q` goes out.
    pub fn followed_by(&self, energy: f64, u: &Mat<C64>) -> Option<[Mat<C64>; 2]> {
        let behind = self.cell_at(energy)?.behind(u)?;
        Some([behind.ahead, behind.from.adjoint().to_owned()])
    }

    /// Newton's steps at a complex energy, or at a real one. One cell at an energy that rounding does not tell from it
    /// says what rounding does.
    fn refined(&self, z: C64, start: &Mat<C64>) -> Option<Reflection> {
        let at = |z: C64| if z.im == 0.0 { self.cell_at(z.re) } else { self.cell(z) };
        let last_digit = f64::EPSILON * z.norm().max(self.h_size).max(1.0);
        at(z)?.refined(&at(z + last_digit)?, start)
    }

    /// The reflection at a complex energy, by doubling; waves of which less than `passed` is left are left out.
    pub fn far(&self, z: C64, passed: f64) -> Option<Mat<C64>> {
        self.cell(z)?.end(passed)
    }

    /// Remembers from now on what the other one does, and the other way round, if both are the same.
    pub fn share(&mut self, other: &SlabWaves) {
        if (self.h_size, &self.a, &self.b, &self.open) == (other.h_size, &other.a, &other.b, &other.open) {
            self.known = other.known.clone();
        }
    }

    /// The reflection at a real energy, in the limit from above. None where it is not resolved.
    ///
    /// # Errors
    /// Interruption.
    pub fn reflection(&self, energy: f64) -> Result<Option<Arc<Reflection>>> {
        self.reflection_from(energy, || None)
    }

    /// The same, by Newton's steps from what it nearly is, if they lead to it.
    ///
    /// # Errors
    /// Interruption.
    pub fn reflection_from(
        &self,
        energy: f64,
        start: impl FnOnce() -> Option<Mat<C64>>,
    ) -> Result<Option<Arc<Reflection>>> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known().iter().find(|(bits, _)| *bits == energy.to_bits()) {
            return Ok(found.clone());
        }
        let near = start().and_then(|start| self.near(energy, &start));
        let found = match near.filter(|found| found.settled && found.is_retarded()) {
            Some(found) => Some(found),
            None => self.sought(energy)?,
        };
        let found = found.map(Arc::new);
        let bytes = size_of::<C64>() * found.as_ref().map_or(0, |r| r.u.nrows() * r.u.ncols());
        let mut known = known();
        known.truncate((MOST_BYTES / bytes.max(1)).clamp(1, REMEMBERED) - 1);
        known.push_front((energy.to_bits(), found.clone()));
        Ok(found)
    }

    /// The reflection at the last of some energies, by Newton's steps from each to the next: in a band that is flat at
    /// an energy it changes as a small power of the distance, which no imaginary part follows. None where it gets lost.
    ///
    /// # Errors
    /// Interruption.
    pub fn continued(
        &self,
        way: impl Iterator<Item = f64>,
        start: Mat<C64>,
    ) -> Result<Option<Arc<Reflection>>> {
        let (mut last, mut u, mut found) = (0.0, start, None);
        for energy in way {
            task::poll()?;
            let Some(next) = self.refined(C64::new(energy, 0.0), &u) else { return Ok(None) };
            (last, u) = (energy, next.u.clone());
            found = Some(next);
        }
        let found = found.and_then(|found| self.with_lasting(last, found)).filter(Reflection::is_retarded);
        let Some(found) = found.map(Arc::new) else { return Ok(None) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(bits, _)| *bits != last.to_bits());
        known.push_front((last.to_bits(), Some(found.clone())));
        Ok(Some(found))
    }

    /// With the number of waves that last, if it is not counted yet.
    fn with_lasting(&self, energy: f64, found: Reflection) -> Option<Reflection> {
        if found.lasting.is_some() {
            return Some(found);
        }
        let ahead = self.cell_at(energy)?.behind(&found.u)?.ahead;
        let least = 1.0 - LASTING * found.off.max(1e-8);
        let lasting = ahead.eigenvalues().ok()?.iter().filter(|m| m.norm() > least).count();
        Some(Reflection { lasting: Some(lasting), ..found })
    }

    /// How many energies it remembers.
    #[cfg(test)]
    pub fn remembered(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn sought(&self, energy: f64) -> Result<Option<Reflection>> {
        let mut best: Option<Reflection> = None;
        // Whether a polynomial was given up, as it cannot follow a root: one from larger imaginary parts cannot either.
        let rooted = Cell::new(false);
        let begin = RefCell::new(None);
        // And whether they are ways to a start of Newton's steps.
        let ways: [(bool, &dyn Fn() -> Option<Reflection>); 6] = [
            (true, &|| self.at_once(energy, &begin)),
            (true, &|| self.by_two(energy)),
            (false, &|| self.extrapolated(energy, EXTRAPOLATED[0], &begin, &rooted)),
            (false, &|| self.extrapolated(energy, EXTRAPOLATED[1], &begin, &rooted)),
            (true, &|| self.followed(energy, STRIDES[0])),
            (true, &|| self.followed(energy, STRIDES[1])),
        ];
        let mut settled = false;
        for (steps, way) in ways {
            if steps && settled {
                continue;
            }
            let found = way();
            settled |= found.as_ref().is_some_and(|found| found.settled);
            if let Some(found) = found.filter(|found| best.as_ref().is_none_or(|best| found.off < best.off)) {
                best = Some(found);
            }
            if best.as_ref().is_some_and(|best| best.off < GOOD) {
                break;
            }
            task::poll()?;
        }
        Ok(best.and_then(|found| self.with_lasting(energy, found)))
    }

    /// By Newton's steps from a small imaginary part, where it begins.
    fn at_once(&self, energy: f64, begin: &RefCell<Option<Mat<C64>>>) -> Option<Reflection> {
        let start = self.far(C64::new(energy, BEGIN), PASSED_AT_FIRST)?;
        let found = self.near(energy, &start);
        begin.replace(Some(start));
        found
    }

    /// By extrapolation from two small imaginary parts, and Newton's steps from there.
    fn by_two(&self, energy: f64) -> Option<Reflection> {
        let far = |eta: f64| self.far(C64::new(energy, eta), PASSED);
        let (near, nearer) = (far(BEGIN)?, far(0.5 * BEGIN)?);
        self.near(
            energy,
            &Mat::from_fn(near.nrows(), near.ncols(), |i, j| 2.0 * nearer[(i, j)] - near[(i, j)]),
        )
    }

    /// By Newton's steps that remain near their start.
    fn near(&self, energy: f64, start: &Mat<C64>) -> Option<Reflection> {
        let found = self.refined(C64::new(energy, 0.0), start)?;
        (largest((&found.u - start).as_ref()) < 1e3 * BEGIN).then_some(found)
    }

    /// By imaginary parts that fall in small steps: near points where bands touch,
    /// the reflection changes at all scales.
    fn followed(&self, energy: f64, stride: f64) -> Option<Reflection> {
        let mut eta = BEGIN;
        let z = C64::new(energy, eta);
        let mut u = self.refined(z, &self.far(z, PASSED)?)?.u;
        let mut before = 1.0;
        loop {
            eta /= stride;
            let last = eta < 1e-16;
            let found = self.refined(C64::new(energy, if last { 0.0 } else { eta }), &u)?;
            let change = largest((&found.u - &u).as_ref());
            if !(change <= JUMP * before + NO_JUMP) {
                return None;
            }
            if last {
                return Some(found);
            }
            (u, before) = (found.u, change);
        }
    }

    /// By a polynomial in the imaginary part (Neville). It holds where two bands cross, which Newton's steps take for
    /// the edge of one.
    fn extrapolated(
        &self,
        energy: f64,
        most: f64,
        begin: &RefCell<Option<Mat<C64>>>,
        rooted: &Cell<bool>,
    ) -> Option<Reflection> {
        if rooted.get() {
            return None;
        }
        let etas: Vec<f64> = (0..ORDERS).map(|k| most * 0.5f64.powi(k as i32)).collect();
        let far = |eta: &f64| self.far(C64::new(energy, *eta), PASSED);
        let nearest: Vec<Mat<C64>> = etas[ORDERS - 2..].iter().map(far).collect::<Option<_>>()?;
        // Where a band begins, changes fall with the root of the imaginary part, and no polynomial follows. What is
        // some hundred times nearer stands for none.
        if let Some(begin) = &*begin.borrow() {
            let change = |k: usize| largest((&nearest[k] - begin).as_ref());
            if change(1) > ROOTED * change(0) + TAIL {
                rooted.set(true);
                return None;
            }
        }
        let mut known: Vec<Mat<C64>> = etas[..ORDERS - 2].iter().map(far).collect::<Option<_>>()?;
        known.extend(nearest);
        let (zero, small) = (polynomials(&etas, &known, 0.0), polynomials(&etas, &known, LOOKED_AT));
        let there = self.far(C64::new(energy, LOOKED_AT), PASSED)?;
        let mut best: Option<Reflection> = None;
        for order in 1..ORDERS {
            let off = largest((&zero[order] - &zero[order - 1]).as_ref())
                .max(largest((&small[order] - &there).as_ref()));
            if best.as_ref().is_none_or(|best| off < best.off) {
                best = Some(Reflection { u: zero[order].clone(), off, lasting: None, settled: false });
            }
        }
        let best = best?;
        let missing = self.cell_at(energy)?.behind(&best.u)?.missing;
        let off = best.off.max(largest(missing.as_ref()));
        (off < TAIL).then_some(Reflection { off, ..best })
    }
}

/// The polynomials of all orders through the last of some values, at another place.
fn polynomials(places: &[f64], values: &[Mat<C64>], at: f64) -> Vec<Mat<C64>> {
    let mut row = values.to_vec();
    let mut all: Vec<Mat<C64>> = row.last().cloned().into_iter().collect();
    for order in 1..places.len() {
        row = (0..row.len() - 1)
            .map(|i| {
                let (x, y) = (places[i] - at, places[i + order] - at);
                Mat::from_fn(row[i].nrows(), row[i].ncols(), |j, k| {
                    (x * row[i + 1][(j, k)] - y * row[i][(j, k)]) / (x - y)
                })
            })
            .collect();
        all.extend(row.last().cloned());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::slab::TransmissionFactors;
    use super::*;

    /// A strip of a square lattice in a field, with sites that differ.
    fn strip(n: usize, flux: f64) -> SlabWaves {
        let h = Mat::from_fn(n, n, |i, j| match i.abs_diff(j) {
            0 => C64::new(0.3 * (2.7 * i as f64).sin(), 0.0),
            1 => -C64::ONE,
            _ => C64::ZERO,
        });
        let joint = |i: usize| -C64::cis(std::f64::consts::TAU * flux * i as f64);
        let v = Mat::from_fn(n, n, |i, j| if i == j { joint(i) } else { C64::ZERO });
        SlabWaves::new(&h, &v, (0..n).collect(), 1.0).unwrap()
    }

    #[test]
    fn waves_that_decay_need_not_be_followed() {
        for (flux, energy) in [(0.08, -3.1), (0.08, -2.71), (0.0, -3.9), (0.0, 0.3), (0.3, -1.3)] {
            let cell = strip(24, flux).cell(C64::new(energy, 1e-5)).unwrap();
            let found = strip(24, flux).far(C64::new(energy, 1e-5), PASSED).unwrap();
            let plain = (0..40).try_fold(cell, |slab, _| slab.twice()).unwrap().left;
            let off = largest((&found - &plain).as_ref());
            assert!(off < 1e-10, "{flux} {energy}: {off}");
        }
        // Some are left out indeed.
        let passing = (0..8).try_fold(strip(24, 0.08).cell(C64::new(-3.1, 1e-5)).unwrap(), |s, _| s.twice());
        let passing = passing.unwrap();
        assert!(TransmissionFactors::new(&passing.outward, PASSED).to.ncols() < 12);
        let lasting = TransmissionFactors::new(&passing.inward, PASSED);
        assert!(largest((lasting.to * lasting.from - passing.inward).as_ref()) < 1e-15);
    }

    #[test]
    fn reflections_are_sought_once() {
        let (mut left, right, other) = (strip(6, 0.0), strip(6, 0.0), strip(6, 0.1));
        left.share(&right);
        let found = right.reflection(0.3).unwrap().unwrap();
        assert!(Arc::ptr_eq(&found, &left.clone().reflection(0.3).unwrap().unwrap()));
        assert!(found.u != right.reflection(0.4).unwrap().unwrap().u);
        left.share(&other);
        assert!(Arc::ptr_eq(&found, &left.reflection(0.3).unwrap().unwrap()));
        (0..2 * REMEMBERED).for_each(|k| drop(right.reflection(0.01 * k as f64).unwrap()));
        assert_eq!(right.remembered(), REMEMBERED);
    }

    #[test]
    fn waves_the_wrong_way_round_are_no_limit() {
        for (flux, energy) in [(0.0, 0.3), (0.0, -2.9), (0.1, -2.9)] {
            let right = strip(6, flux).reflection(energy).unwrap().unwrap();
            let backward = inverse(right.u.adjoint().to_owned().as_ref()).unwrap();
            assert!(strip(6, flux).near(energy, &backward).is_some_and(|found| found.settled));
            let found = strip(6, flux).reflection_from(energy, || Some(backward)).unwrap().unwrap();
            assert!(largest((&found.u - &right.u).as_ref()) < 1e-10);
        }
    }

    #[test]
    fn a_field_is_not_reversible() {
        let cell = |flux| strip(12, flux).cell(C64::new(0.3, 0.0)).unwrap();
        assert!(cell(0.0).is_reversible() && !cell(1e-6).is_reversible());
    }
}
