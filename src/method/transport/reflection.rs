//! What a half-infinite chain of cells sends back, at a real energy. Between two cells run two kinds of waves, outward
//! and inward, whose difference is the current. A cell turns the waves that come to it into those that leave it, by a
//! matrix that is unitary at real energies, and a lead sends back `u p` of outward waves p. Other than Green's
//! functions and self-energies, nothing of this grows beyond all bounds where an end of the lead, or a piece of it,
//! has a level.
//!
//! With the joint `v = a b^dagger`, `b^dagger psi` on the inner side and `a^dagger psi` on the outer side of a joint
//! are `(p + u p)/sqrt(2)` and `(p - u p)/(i sqrt(2))`. Compare Groth, Wimmer, Akhmerov, Waintal, New J. Phys. 16
//! (2014) 063065, whose modes are the eigenvectors of what `LeadSlab::behind` calls `ahead`.

use faer::prelude::Solve;
use faer::{Mat, MatRef};

use crate::error::Result;
use crate::number::C64;
use crate::task;

/// The cells of a lead, energies in units of what joins them.
#[derive(Debug, Clone)]
pub struct Waves {
    /// Rows of the lead's cell.
    pub rows: Vec<usize>,
    h: Mat<C64>,
    /// The largest element of it.
    h_size: f64,
    /// The joint from a cell to the next one outward is `a b^dagger`.
    a: Mat<C64>,
    pub b: Mat<C64>,
}

/// The waves that a lead sends back, and how far that may be off.
pub struct Reflection {
    pub u: Mat<C64>,
    pub off: f64,
    /// How many waves decay so slowly that they may be open channels, or not. None until they are counted.
    pub lasting: Option<usize>,
}

/// A piece of a lead: what comes back from its inner end (`left`) and its outer end (`right`), and what passes.
struct LeadSlab {
    left: Mat<C64>,
    inward: Mat<C64>,
    outward: Mat<C64>,
    right: Mat<C64>,
}

/// What passes a piece of a lead, `to from`, by as few waves as there are.
struct Lasting {
    to: Mat<C64>,
    from: Mat<C64>,
}

/// What meets a lead behind a cell: `change - from change ahead` is what a change of the reflection adds to what it
/// lacks.
struct Behind {
    /// Waves behind the cell per wave that comes to it.
    ahead: Mat<C64>,
    /// The same of what comes back from a change of the reflection.
    from: Mat<C64>,
    /// Waves behind the cell per change of those that come back to it.
    turned: Mat<C64>,
    /// What the reflection lacks to be that before the cell.
    missing: Mat<C64>,
}

/// The equation of Newton's steps in the bases of eigenvectors of `from` and `ahead`.
struct Linear {
    behind: Behind,
    x: Mat<C64>,
    y: Mat<C64>,
    /// By how much a wave pair changes its part of the reflection from cell to cell.
    apart: Mat<C64>,
    /// The waves that follow: what becomes of their amplitudes in a cell.
    factors: Vec<C64>,
}

/// The imaginary part of the energy from which the limit begins. Rounding errors grow with its inverse,
/// up to Newton's steps.
const BEGIN: f64 = 1e-8;
/// Imaginary parts that a polynomial extrapolates to zero, the largest of them, and how many,
/// each half of the one before.
const EXTRAPOLATED: [f64; 2] = [1e-4, 1e-2];
const ORDERS: usize = 6;
/// A reflection that is off by more than this is sought in another way.
const GOOD: f64 = 1e-11;
/// A polynomial that is off by more, at zero or at this imaginary part, is refused: what is `w` wide, near the energy,
/// changes the reflection at an imaginary part eta by `w / eta`, however narrow it is, and no polynomial follows that.
const TAIL: f64 = 1e-8;
const LOOKED_AT: f64 = 1e-6;
/// From one imaginary part to the next, first in great steps, then in small ones.
const STRIDES: [f64; 2] = [8.0, 2.0];
/// Between neighbouring imaginary parts, solutions may differ by so many times what they did before; others are others.
const JUMP: f64 = 3.0;
/// Differences that are no jumps.
const NO_JUMP: f64 = 1e-7;
/// Most of Newton's steps.
const STEPS: usize = 30;
/// What a wave may lose in a cell, in units of what the reflection is off, and be an open channel all the same.
const LASTING: f64 = 3.0;
/// The same in units of what rounding changes in its factor, and in any case.
const ROUNDINGS: f64 = 30.0;
const LEAST_LOSS: f64 = 1e-10;
/// How far the reflection may be off, in units of what rounding changes in it.
const ROUNDED: f64 = 10.0;
/// Most doublings of a piece.
const MOST_DOUBLINGS: usize = 100;
/// Doublings after which it is looked at how many waves still pass, of so many at least;
/// what is less than this does not.
const LOOKED: std::ops::Range<usize> = 3..8;
const MANY_WAVES: usize = 12;
const PASSED: f64 = 1e-17;
/// Elements of a cell's Green's function above which it is asked for orbitals that no wave reaches.
const UNREACHED: f64 = 1e8;
/// Singular values below which what is trapped between a cell and the rest is looked at.
const TRAPPED: f64 = 1e-4;

impl Waves {
    /// Of the cells with the matrix `h`, joined by `v`, on some of their rows.
    pub fn new(h: &Mat<C64>, v: &Mat<C64>, rows: Vec<usize>, unit: f64) -> Option<Waves> {
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
        Some(Waves { rows, h, h_size, a, b })
    }

    /// `z - h` of a cell that sends nothing back at its joints.
    fn inner(&self, z: C64) -> Mat<C64> {
        let n = self.rows.len();
        let joined = &self.a * self.a.adjoint() + &self.b * self.b.adjoint();
        Mat::from_fn(n, n, |j, k| {
            let own = if j == k { z } else { C64::ZERO };
            own - self.h[(j, k)] + C64::I * joined[(j, k)]
        })
    }

    /// One cell at a complex energy.
    fn cell(&self, z: C64) -> Option<LeadSlab> {
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

    /// The reflection at a complex energy, by doubling.
    fn far(&self, z: C64) -> Option<Mat<C64>> {
        self.cell(z)?.end()
    }

    /// The reflection at a real energy, in the limit from above. None where it is not resolved.
    ///
    /// # Errors
    /// Interruption.
    pub fn reflection(&self, energy: f64) -> Result<Option<Reflection>> {
        let mut best: Option<Reflection> = None;
        let ways: [&dyn Fn() -> Option<Reflection>; 5] = [
            &|| self.at_once(energy),
            &|| self.extrapolated(energy, EXTRAPOLATED[0]),
            &|| self.extrapolated(energy, EXTRAPOLATED[1]),
            &|| self.followed(energy, STRIDES[0]),
            &|| self.followed(energy, STRIDES[1]),
        ];
        for way in ways {
            if let Some(found) = way().filter(|found| best.as_ref().is_none_or(|best| found.off < best.off)) {
                best = Some(found);
            }
            if best.as_ref().is_some_and(|best| best.off < GOOD) {
                break;
            }
            task::poll()?;
        }
        let lasting = |found: Reflection| -> Option<Reflection> {
            if found.lasting.is_some() {
                return Some(found);
            }
            let ahead = self.cell_at(energy)?.behind(&found.u)?.ahead;
            let least = 1.0 - LASTING * found.off.max(1e-8);
            let lasting = ahead.eigenvalues().ok()?.iter().filter(|m| m.norm() > least).count();
            Some(Reflection { lasting: Some(lasting), ..found })
        };
        Ok(best.and_then(lasting))
    }

    /// By extrapolation from two small imaginary parts, and Newton's steps from there.
    fn at_once(&self, energy: f64) -> Option<Reflection> {
        let (near, nearer) = (self.far(C64::new(energy, BEGIN))?, self.far(C64::new(energy, 0.5 * BEGIN))?);
        let start = Mat::from_fn(near.nrows(), near.ncols(), |i, j| 2.0 * nearer[(i, j)] - near[(i, j)]);
        let found = self.refined(C64::new(energy, 0.0), &start)?;
        (largest((&found.u - &start).as_ref()) < 1e3 * BEGIN).then_some(found)
    }

    /// By imaginary parts that fall in small steps: near points where bands touch,
    /// the reflection changes at all scales.
    fn followed(&self, energy: f64, stride: f64) -> Option<Reflection> {
        let mut eta = BEGIN;
        let z = C64::new(energy, eta);
        let mut u = self.refined(z, &self.far(z)?)?.u;
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
    fn extrapolated(&self, energy: f64, most: f64) -> Option<Reflection> {
        let etas: Vec<f64> = (0..ORDERS).map(|k| most * 0.5f64.powi(k as i32)).collect();
        let known: Vec<Mat<C64>> =
            etas.iter().map(|eta| self.far(C64::new(energy, *eta))).collect::<Option<_>>()?;
        let (zero, small) = (polynomials(&etas, &known, 0.0), polynomials(&etas, &known, LOOKED_AT));
        let there = self.far(C64::new(energy, LOOKED_AT))?;
        let mut best: Option<Reflection> = None;
        for order in 1..ORDERS {
            let off = largest((&zero[order] - &zero[order - 1]).as_ref())
                .max(largest((&small[order] - &there).as_ref()));
            if best.as_ref().is_none_or(|best| off < best.off) {
                best = Some(Reflection { u: zero[order].clone(), off, lasting: None });
            }
        }
        let best = best?;
        let missing = self.cell_at(energy)?.behind(&best.u)?.missing;
        let off = best.off.max(largest(missing.as_ref()));
        (off < TAIL).then_some(Reflection { off, ..best })
    }
}

impl LeadSlab {
    fn is_finite(&self) -> bool {
        [&self.left, &self.inward, &self.outward, &self.right].iter().all(|m| largest(m.as_ref()).is_finite())
    }

    /// What comes back from a chain of them without end. Waves that decay are soon gone: the others go on alone.
    fn end(mut self) -> Option<Mat<C64>> {
        for doublings in 0..MOST_DOUBLINGS {
            if largest(self.inward.as_ref()) * largest(self.outward.as_ref()) <= 1e-18 {
                break;
            }
            if LOOKED.contains(&doublings) && self.left.nrows() >= MANY_WAVES {
                let (outward, inward) = (Lasting::new(&self.outward), Lasting::new(&self.inward));
                if 2 * outward.to.ncols().max(inward.to.ncols()) <= self.left.nrows() {
                    let behind = self.between_lasting(&outward, &inward)?.end()?;
                    return Some(self.left + inward.to * behind * outward.from);
                }
            }
            self = self.twice()?;
        }
        Some(self.left)
    }

    /// What stands between two of them in a chain, as a piece of a lead whose waves are those that pass them: x
    /// outward, behind the piece before, and y inward, behind the piece after. With p and q between both,
    /// `p = to_out x + right q` and `q = left p + to_in y`, and of these `from_out p` and `from_in q` go on.
    fn between_lasting(&self, outward: &Lasting, inward: &Lasting) -> Option<LeadSlab> {
        let between = inverse(one_less(&(&self.right * &self.left)).as_ref())?;
        let (of_x, of_y) = (&between * &outward.to, &between * (&self.right * &inward.to));
        Some(LeadSlab {
            left: &inward.from * (&self.left * &of_x),
            inward: &inward.from * (&inward.to + &self.left * &of_y),
            outward: &outward.from * of_x,
            right: &outward.from * of_y,
        })
    }

    /// Two of them, one behind the other.
    fn twice(&self) -> Option<LeadSlab> {
        let between = inverse(one_less(&(&self.right * &self.left)).as_ref())?;
        let ahead = &between * &self.outward;
        let back = &between * (&self.right * &self.inward);
        Some(LeadSlab {
            left: &self.left + &self.inward * (&self.left * &ahead),
            outward: &self.outward * &ahead,
            inward: &self.inward * (&self.inward + &self.left * &back),
            right: &self.right + &self.outward * &back,
        })
    }

    /// With the reflection u behind this cell.
    fn behind(&self, u: &Mat<C64>) -> Option<Behind> {
        let mut between = inverse(one_less(&(&self.right * u)).as_ref());
        let back = &self.inward * u;
        if between.as_ref().is_none_or(|g| largest(g.as_ref()) > 1.0 / TRAPPED) {
            between = self.untrapped(u, &back);
        }
        let between = between?;
        let ahead = &between * &self.outward;
        let missing = &self.left + &back * &ahead - u;
        let turned = &between * &self.right;
        let from = &self.inward + &back * &turned;
        Some(Behind { ahead, from, turned, missing })
    }

    /// `(1 - right u)^-1` without what is trapped between this cell and those behind it: flat bands have such states at
    /// their energy, which no wave reaches.
    fn untrapped(&self, u: &Mat<C64>, back: &Mat<C64>) -> Option<Mat<C64>> {
        let d = one_less(&(&self.right * u)).svd().ok()?;
        let n = u.nrows();
        let (to, from) = (d.U().adjoint() * &self.outward, back * d.V());
        let norm = |x: &mut dyn Iterator<Item = C64>| x.map(|x| x.norm_sqr()).sum::<f64>().sqrt();
        let kept = |k: usize| {
            let s = d.S().column_vector()[k].re;
            let reached = norm(&mut (0..n).map(|j| to[(k, j)])) * norm(&mut (0..n).map(|i| from[(i, k)]));
            if s < TRAPPED && reached < 1e-13 * s.max(f64::EPSILON) { 0.0 } else { 1.0 / s }
        };
        let weights: Vec<f64> = (0..n).map(kept).collect();
        let left = Mat::from_fn(n, n, |i, k| d.V()[(i, k)] * weights[k]);
        let found = left * d.U().adjoint();
        largest(found.as_ref()).is_finite().then_some(found)
    }

    /// Newton's steps from a start. The size of a step tells how far off its beginning was, also near the edge of a
    /// band, where the equation is violated by much less: by the square.
    /// The `other` cell differs from this one by rounding.
    fn refined(&self, other: &LeadSlab, start: &Mat<C64>) -> Option<Reflection> {
        let mut u = start.clone();
        let (mut last, mut off) = (f64::INFINITY, f64::INFINITY);
        let mut at = None;
        for _ in 0..STEPS {
            let linear = Linear::new(self.behind(&u)?)?;
            let step = linear.step(&linear.behind.missing)?;
            let size = largest(step.as_ref());
            let least = linear.least();
            off = size.max(least);
            at = Some(linear);
            if size >= last {
                break;
            }
            u += &step;
            last = size;
            if last < least.max(1e-14) {
                break;
            }
        }
        let (rounding, lasting) = at?.rounded(&other.behind(&u)?)?;
        Some(Reflection { u, off: off.max(ROUNDED * rounding), lasting: Some(lasting) })
    }
}

impl Lasting {
    /// By rotations with pivots: waves of unit size, and what becomes of those that come.
    fn new(passes: &Mat<C64>) -> Lasting {
        let n = passes.nrows();
        let d = passes.col_piv_qr();
        let (r, places) = (d.thin_R(), d.P());
        let rank = (0..n).take_while(|&k| r[(k, k)].norm() > PASSED).count();
        let to = d.compute_thin_Q().subcols(0, rank).to_owned();
        Lasting { to, from: r.subrows(0, rank) * places }
    }
}

impl Linear {
    /// None where the eigenvectors are no bases.
    fn new(behind: Behind) -> Option<Linear> {
        let (left, right) = (behind.from.eigen().ok()?, behind.ahead.eigen().ok()?);
        let (l, m) = (left.S().column_vector(), right.S().column_vector());
        let apart = Mat::from_fn(l.nrows(), m.nrows(), |i, j| C64::ONE - l[i] * m[j]);
        let factors = m.iter().copied().collect();
        Some(Linear { x: left.U().to_owned(), y: right.U().to_owned(), apart, factors, behind })
    }

    /// The change with `change - from change ahead = missing`.
    fn step(&self, missing: &Mat<C64>) -> Option<Mat<C64>> {
        let mut d = self.x.partial_piv_lu().solve(missing * &self.y);
        for i in 0..d.nrows() {
            (0..d.ncols()).for_each(|j| d[(i, j)] /= self.apart[(i, j)]);
        }
        // d y^-1, from the left
        let by = &self.x * self.y.transpose().partial_piv_lu().solve(d.transpose()).transpose();
        largest(by.as_ref()).is_finite().then_some(by)
    }

    /// How far off a step cannot but be: by how much the equation is violated, and what rounding makes of that.
    fn least(&self) -> f64 {
        let apart = (0..self.apart.ncols()).flat_map(|j| (0..self.apart.nrows()).map(move |i| (i, j)));
        let nearest = apart.map(|at| self.apart[at].norm()).fold(f64::INFINITY, f64::min);
        largest(self.behind.missing.as_ref()).max(f64::EPSILON / nearest)
    }

    /// What rounding changes in the reflection, and how many waves it cannot tell from lasting ones: as much as at an
    /// energy whose last digit is another one, and as one rounding of each number here.
    fn rounded(&self, other: &Behind) -> Option<(f64, usize)> {
        let phase =
            |i: usize, j: usize| 2.4 * ((i * i) as f64) + 3.9 * ((j * j) as f64) + 1.7 * ((i * j) as f64);
        let n = self.factors.len();
        let errors = Mat::from_fn(n, n, |i, j| C64::from_polar(f64::EPSILON, phase(i, j)));
        let change = self.step(&(&errors + &other.missing - &self.behind.missing))?;
        let followed =
            &self.behind.turned * &change * &self.behind.ahead + errors + &other.ahead - &self.behind.ahead;
        let moved = self.y.partial_piv_lu().solve(followed * &self.y);
        let lasts =
            |j: &usize| self.factors[*j].norm() > 1.0 - (ROUNDINGS * moved[(*j, *j)].norm()).max(LEAST_LOSS);
        Some((largest(change.as_ref()), (0..n).filter(lasts).count()))
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

/// `1 - x`.
fn one_less(x: &Mat<C64>) -> Mat<C64> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| if i == j { C64::ONE - x[(i, j)] } else { -x[(i, j)] })
}

/// The inverse, if it is finite.
pub fn inverse(a: MatRef<'_, C64>) -> Option<Mat<C64>> {
    let x = a.partial_piv_lu().solve(&Mat::<C64>::identity(a.nrows(), a.nrows()));
    largest(x.as_ref()).is_finite().then_some(x)
}

/// The largest modulus; NaN if there is one. By squares, as roots of sums take longer than what they are looked at for:
/// moduli beyond 1e154 count as infinite, those below 1e-162 as zero.
pub fn largest(a: MatRef<'_, C64>) -> f64 {
    let mut most = 0.0f64;
    for j in 0..a.ncols() {
        for i in 0..a.nrows() {
            let x = a[(i, j)].norm_sqr();
            if !(x <= most) {
                most = x;
            }
            if x.is_nan() {
                return x;
            }
        }
    }
    most.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A strip of a square lattice in a field, with sites that differ.
    fn strip(n: usize, flux: f64) -> Waves {
        let h = Mat::from_fn(n, n, |i, j| match i.abs_diff(j) {
            0 => C64::new(0.3 * (2.7 * i as f64).sin(), 0.0),
            1 => -C64::ONE,
            _ => C64::ZERO,
        });
        let joint = |i: usize| -C64::cis(std::f64::consts::TAU * flux * i as f64);
        let v = Mat::from_fn(n, n, |i, j| if i == j { joint(i) } else { C64::ZERO });
        Waves::new(&h, &v, (0..n).collect(), 1.0).unwrap()
    }

    #[test]
    fn waves_that_decay_need_not_be_followed() {
        for (flux, energy) in [(0.08, -3.1), (0.08, -2.71), (0.0, -3.9), (0.0, 0.3), (0.3, -1.3)] {
            let cell = strip(24, flux).cell(C64::new(energy, 1e-5)).unwrap();
            let found = strip(24, flux).far(C64::new(energy, 1e-5)).unwrap();
            let plain = (0..40).try_fold(cell, |slab, _| slab.twice()).unwrap().left;
            let off = largest((&found - &plain).as_ref());
            assert!(off < 1e-10, "{flux} {energy}: {off}");
        }
        // Some are left out indeed.
        let passing = (0..8).try_fold(strip(24, 0.08).cell(C64::new(-3.1, 1e-5)).unwrap(), |s, _| s.twice());
        let passing = passing.unwrap();
        assert!(Lasting::new(&passing.outward).to.ncols() < 12);
        let lasting = Lasting::new(&passing.inward);
        assert!(largest((lasting.to * lasting.from - passing.inward).as_ref()) < 1e-15);
    }
}
