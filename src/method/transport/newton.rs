//! Newton's method for the reflection of a lead, from a start close to it.

use faer::Mat;
use faer::linalg::solvers::PartialPivLu;
use faer::prelude::Solve;

use super::dense::{inverse, largest, one_less};
use super::reflection::{GOOD, Reflection};
use super::slab::LeadSlab;
use crate::number::C64;

/// What meets a lead behind a cell: `change - from change ahead` is what a change of the reflection adds to what it
/// lacks.
pub struct CellScattering {
    /// Waves behind the cell per wave that comes to it.
    pub ahead: Mat<C64>,
    /// The same of what comes back from a change of the reflection.
    pub from: Mat<C64>,
    /// Waves behind the cell per change of those that come back to it.
    turned: Mat<C64>,
    /// What the reflection lacks to be that before the cell.
    pub missing: Mat<C64>,
}

/// The equation of Newton's steps in the bases of eigenvectors of `from` and `ahead`.
struct Linear {
    behind: CellScattering,
    from: Eigenbasis,
    ahead: Eigenbasis,
    /// By how much a wave pair changes its part of the reflection from cell to cell.
    apart: Mat<C64>,
}

/// Eigenvectors of a matrix and their factors.
struct Eigenbasis {
    vectors: Mat<C64>,
    /// The inverse of the vectors, where it is their transpose, or how they are solved for.
    solver: PartialPivLu<C64>,
    factors: Vec<C64>,
}

/// Most of Newton's steps.
const STEPS: usize = 30;
/// A step after which there is none: what the next one would change goes with its square.
const SMALL: f64 = 1e-13;
/// What a wave may lose in a cell, in units of what rounding changes in its factor, and in any case, and be an open
/// channel all the same.
const ROUNDINGS: f64 = 30.0;
const LEAST_LOSS: f64 = 1e-10;
/// How far the reflection may be off, in units of what rounding changes in it.
const ROUNDED: f64 = 10.0;
/// Singular values below which what is trapped between a cell and the rest is looked at.
const TRAPPED: f64 = 1e-4;
/// What eigenvectors of a matrix nearby may leave out of factors.
const SETTLED: f64 = 1e-13;

impl LeadSlab {
    /// With the reflection u behind this cell.
    pub fn behind(&self, u: &Mat<C64>) -> Option<CellScattering> {
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
        Some(CellScattering { ahead, from, turned, missing })
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
    pub fn refined(&self, other: &LeadSlab, start: &Mat<C64>) -> Option<Reflection> {
        let mut u = start.clone();
        let reversible = self.is_reversible();
        if reversible {
            u = Mat::from_fn(u.nrows(), u.ncols(), |i, j| 0.5 * (start[(i, j)] + start[(j, i)]));
        }
        let (mut last, mut off, mut settled) = (f64::INFINITY, f64::INFINITY, false);
        let mut at: Option<Linear> = None;
        for _ in 0..STEPS {
            let behind = self.behind(&u)?;
            let moved = at.take().and_then(|linear| linear.moved(&behind));
            let linear = match moved {
                Some(moved) => Linear { behind, ..moved },
                None => Linear::new(behind, reversible)?,
            };
            let step = linear.step(&linear.behind.missing)?;
            let size = largest(step.as_ref());
            let (missing, rounded) = linear.least();
            off = size.max(missing).max(rounded);
            settled = off <= 10.0 * rounded.max(SMALL);
            at = Some(linear);
            if size >= last {
                break;
            }
            u += &step;
            last = size;
            if last < rounded.max(SMALL) || (last < missing && missing < GOOD) {
                break;
            }
        }
        let (rounding, lasting) = at?.rounded(&other.behind(&u)?)?;
        Some(Reflection { u, off: off.max(ROUNDED * rounding), lasting: Some(lasting), settled })
    }
}

impl Eigenbasis {
    /// None where the eigenvectors are no basis.
    fn of(a: &Mat<C64>) -> Option<Eigenbasis> {
        let d = a.eigen().ok()?;
        let vectors = d.U().to_owned();
        Some(Eigenbasis {
            solver: vectors.partial_piv_lu(),
            vectors,
            factors: d.S().column_vector().iter().copied().collect(),
        })
    }

    /// That of the transposed matrix.
    fn transposed(&self) -> Eigenbasis {
        let n = self.vectors.nrows();
        let vectors = self.solver.solve(Mat::<C64>::identity(n, n)).transpose().to_owned();
        Eigenbasis { solver: vectors.partial_piv_lu(), vectors, factors: self.factors.clone() }
    }

    /// A matrix in this basis.
    fn inside(&self, a: &Mat<C64>) -> Mat<C64> {
        self.solver.solve(a * &self.vectors)
    }

    /// The factors of a matrix nearby, if its eigenvectors are so little others that they do not matter for them.
    fn moved(&self, a: &Mat<C64>) -> Option<Vec<C64>> {
        let (own, n) = (self.inside(a), a.nrows());
        let settled = |i: usize, j: usize| {
            let apart = (own[(i, i)] - own[(j, j)]).norm().max(f64::EPSILON);
            (own[(i, j)] * own[(j, i)]).norm() <= SETTLED * apart
        };
        (0..n).all(|j| (0..j).all(|i| settled(i, j))).then(|| (0..n).map(|j| own[(j, j)]).collect())
    }
}

impl Linear {
    /// None where the eigenvectors are no bases.
    fn new(behind: CellScattering, reversible: bool) -> Option<Linear> {
        let ahead = Eigenbasis::of(&behind.ahead)?;
        let from = if reversible { ahead.transposed() } else { Eigenbasis::of(&behind.from)? };
        Some(Linear { apart: apart(&from.factors, &ahead.factors), from, ahead, behind })
    }

    /// The same with another reflection, by the same vectors, if it is near.
    fn moved(self, behind: &CellScattering) -> Option<Linear> {
        let Linear { behind: before, mut from, mut ahead, .. } = self;
        ahead.factors = ahead.moved(&behind.ahead)?;
        from.factors = from.moved(&behind.from)?;
        Some(Linear { apart: apart(&from.factors, &ahead.factors), from, ahead, behind: before })
    }

    /// The change with `change - from change ahead = missing`.
    fn step(&self, missing: &Mat<C64>) -> Option<Mat<C64>> {
        let mut d = self.from.solver.solve(missing * &self.ahead.vectors);
        for j in 0..d.ncols() {
            (0..d.nrows()).for_each(|i| d[(i, j)] /= self.apart[(i, j)]);
        }
        let by = &self.from.vectors * self.ahead.solver.rsolve(d);
        largest(by.as_ref()).is_finite().then_some(by)
    }

    /// How far off a step cannot but be: by how much the equation is violated, and what rounding makes of that.
    fn least(&self) -> (f64, f64) {
        let apart = (0..self.apart.ncols()).flat_map(|j| (0..self.apart.nrows()).map(move |i| (i, j)));
        let nearest = apart.map(|at| self.apart[at].norm_sqr()).fold(f64::INFINITY, f64::min).sqrt();
        (largest(self.behind.missing.as_ref()), f64::EPSILON / nearest)
    }

    /// What rounding changes in the reflection, and how many waves it cannot tell from lasting ones: as much as at an
    /// energy whose last digit is another one, and as one rounding of each number here.
    fn rounded(&self, other: &CellScattering) -> Option<(f64, usize)> {
        let phase =
            |i: usize, j: usize| 2.4 * ((i * i) as f64) + 3.9 * ((j * j) as f64) + 1.7 * ((i * j) as f64);
        let n = self.ahead.factors.len();
        let errors = Mat::from_fn(n, n, |i, j| C64::from_polar(f64::EPSILON, phase(i, j)));
        let change = self.step(&(&errors + &other.missing - &self.behind.missing))?;
        let followed =
            &self.behind.turned * &change * &self.behind.ahead + errors + &other.ahead - &self.behind.ahead;
        let moved = self.ahead.inside(&followed);
        let lasts = |j: &usize| {
            self.ahead.factors[*j].norm() > 1.0 - (ROUNDINGS * moved[(*j, *j)].norm()).max(LEAST_LOSS)
        };
        Some((largest(change.as_ref()), (0..n).filter(lasts).count()))
    }
}

/// By how much pairs of waves change their part of the reflection from cell to cell.
fn apart(from: &[C64], ahead: &[C64]) -> Mat<C64> {
    Mat::from_fn(from.len(), ahead.len(), |i, j| C64::ONE - from[i] * ahead[j])
}
