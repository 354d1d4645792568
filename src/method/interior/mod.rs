//! Levels inside a spectrum: a block Krylov space of T_m of the folded operator (H - e)^2, scaled so that levels near e
//! grow and all others stay in [-1, 1] (filtered Lanczos: Fang, Saad, SIAM J. Sci. Comput. 34 (2012) A2220; folding:
//! Wang, Zunger, J. Chem. Phys. 100 (1994) 2394). H is then diagonalised in the space of the vectors that grow most.
//! This separates pairs of levels on both sides of e.
//!
//! The filter decreases with the distance from e, up to its bound. Random vectors overlap with every state. So a search
//! from random vectors that has found the last requested level has found all nearer levels too. If the degeneracy of a
//! level is larger than the number of vectors, a second search from other random vectors finds the rest.

mod copies;
mod factors;
mod inverse;

use super::fixed::{fixed, joint, width};
use super::folded::Folded;
use super::subspace::{SearchSubspace, hermitian_eigen};
use super::units::{Units, countable, positive};
use super::window::require_hermitian;
use super::{Chebyshev, DampingKernel, Eigen, SearchEnded, Window};
use crate::backend::{BlockVector, Random, VectorDistribution};
use crate::error::{Error, Result};
use crate::number::C64;
use crate::number::philox::Stream;
use crate::operator::Operator;
use crate::ranks;
use crate::task::{self, Steps, Task};
use factors::Inversion;

/// Spaces up to this dimension are diagonalised completely.
const SMALL: usize = 128;
/// Kernels multiply so many vectors at once in little more time than one.
const LANES: usize = 16;
/// First random column used here; the search for the ends of the spectrum uses those before.
const FIRST_COLUMN: u32 = 64;
/// Looks at the residuals without progress after which a search tries another filter or ends.
const PATIENCE: usize = 24;
/// A residual of a larger part of the way to the farthest level would not tell which levels are the nearest.
const ROUGHEST: f64 = 1e-3;
/// Tolerances that are never too large.
const FINE: f64 = 1e-9;
/// The space grows by this much between two looks at the residuals.
const GROWTH: f64 = 1.12;

/// How levels are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InteriorMethod {
    /// Factors of the matrix where its entries are known and factors are made in less time, as far as that can be told.
    Auto,
    /// A polynomial of the folded operator.
    Filter,
    /// Factors of the matrix.
    ShiftInvert,
}

/// What to find and how hard to try.
#[derive(Debug, Clone)]
pub struct InteriorOptions {
    /// The energy whose neighbours are sought.
    pub near: f64,
    pub count: usize,
    pub method: InteriorMethod,
    /// Largest residual norm |H x - E x| that counts as converged; without it 1e-9, of the operator's size where that
    /// is far from one. At most a thousandth of the way to the farthest level is taken.
    pub tolerance: Option<f64>,
    /// Most products with single vectors, and solutions by factors.
    pub max_products: usize,
    /// Seed of the random starting vectors.
    pub seed: u64,
}

impl InteriorOptions {
    fn check(&self, h: &Operator) -> Result<()> {
        countable(self.count, h)?;
        positive(self.tolerance)?;
        if !self.near.is_finite() {
            return Err(
                Error::input(format!("levels near an energy of {}", self.near)).hint("give a finite number")
            );
        }
        Ok(())
    }
}

/// The eigenpairs nearest to an energy, ascending.
///
/// # Errors
/// An operator that is not Hermitian, more pairs than the space has, a tolerance that is not positive.
pub fn interior(h: &Operator, options: &InteriorOptions, task: &Task) -> Result<Eigen> {
    require_hermitian(h)?;
    options.check(h)?;
    let units = Units::of(h)?;
    let h = &units.h;
    let window = Window::lanczos(h, 80, 0.02, options.seed, &task.quiet())?;
    // Of an energy far outside, the nearest levels are those of one nearer by; distances from it would all look alike.
    let width = window.upper() - window.lower();
    let e = (options.near / units.unit).clamp(window.lower() - width, window.upper() + width);
    let options = &InteriorOptions { near: e, ..options.clone() };
    let far = (window.upper() - e).max(e - window.lower());
    let block = (options.count + 4).next_multiple_of(LANES).min(4 * LANES);
    let progress = task.start("levels", options.max_products);
    let inner = (e - window.upper()).max(window.lower() - e).max(0.0);
    let mut search = InteriorSearch {
        h,
        options,
        tolerance: units.tolerance(options.tolerance).min((ROUGHEST * far).max(FINE)),
        window,
        far,
        inner,
        guess: far,
        block,
        progress,
        drawn: FIRST_COLUMN,
        products: 0,
        limit: options.max_products,
        steps: 0,
        spent: 0.0,
        allowed: f64::INFINITY,
    };
    if h.dim() <= SMALL.max(2 * options.count + 2 * block) {
        return search.dense().map(|eigen| units.back(eigen));
    }
    let eigen = match search.scalar()? {
        Some(eigen) => eigen,
        None => search.by(options.method)?,
    };
    Ok(units.back(eigen))
}

/// Ritz pairs of H, the nearest first.
struct RitzPairs {
    values: Vec<f64>,
    residuals: Vec<f64>,
    /// sqrt((value - e)^2 + residual^2).
    radius: Vec<f64>,
    vectors: BlockVector,
}

impl RitzPairs {
    /// The largest residual that vectors of the first `count` may have: of a degenerate level others are chosen in the
    /// end than were found.
    fn worst(&self, count: usize, tolerance: f64) -> f64 {
        if self.values.len() < count {
            return f64::INFINITY;
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|&i, &j| self.values[i].total_cmp(&self.values[j]));
        let of = |list: &[f64]| order.iter().map(|&i| list[i]).collect::<Vec<f64>>();
        let (values, residuals) = (of(&self.values), of(&self.residuals));
        let level = width(&values, tolerance, self.vectors.dtype());
        joint(&values, &residuals, level).1.into_iter().fold(0.0, f64::max)
    }
}

struct InteriorSearch<'a> {
    h: &'a Operator,
    options: &'a InteriorOptions,
    /// Largest residual that counts as converged.
    tolerance: f64,
    window: Window,
    /// No level lies farther from the energy.
    far: f64,
    /// No level lies nearer to the energy than this, as far as the window tells; zero for an energy inside it.
    inner: f64,
    /// The bound that the filter should finally have, from a rough density of states.
    guess: f64,
    /// Random vectors that a search begins with.
    block: usize,
    progress: Steps<'a>,
    /// The next random column.
    drawn: u32,
    products: usize,
    /// Most products of this search.
    limit: usize,
    steps: usize,
    /// Seconds that the search by factors has taken, as far as its steps tell, and that it may take.
    spent: f64,
    allowed: f64,
}

/// How one search with one filter ended.
enum FilterOutcome {
    Done(RitzPairs, SearchEnded),
    /// Another bound may do better; the search goes on from these vectors.
    Refilter(RitzPairs, f64),
    /// Levels lie farther away than the window said.
    Wider,
}

impl InteriorSearch<'_> {
    /// Levels of a multiple of the identity, of which all vectors are eigenvectors.
    fn scalar(&mut self) -> Result<Option<Eigen>> {
        let count = self.options.count;
        let scale = self.window.upper().abs().max(self.window.lower().abs());
        // One vector tells of most operators that they are none.
        for columns in [1, self.block.max(count)] {
            let tried = self.random(columns)?;
            let found = self.resolved(tried)?;
            if found.worst(count.min(columns), self.tolerance) > (1e-12 * scale).min(self.tolerance) {
                return Ok(None);
            }
            if columns >= count {
                return self.finish(found, count, SearchEnded::Converged).map(Some);
            }
        }
        Ok(None)
    }

    fn by(&mut self, method: InteriorMethod) -> Result<Eigen> {
        let forced = method == InteriorMethod::ShiftInvert;
        let tried =
            forced || method == InteriorMethod::Auto && self.h.info().entries <= factors::MOST_ENTRIES;
        let Some(inversion) = (if tried { Inversion::of(self.h)? } else { None }) else {
            if forced {
                return Err(Error::input(
                    "levels by factors of an operator whose entries this process does not have in \
                     double precision",
                )
                .hint("a filter needs products only"));
            }
            return self.filtered();
        };
        let count = self.options.count;
        let whole = ranks::told(inversion.whole())?;
        if !forced && whole < ranks::told(inversion.sparse(count))? {
            return self.dense();
        }
        self.allowed = whole;
        if forced || ranks::told(inversion.pays(count))? {
            if let Some(eigen) = self.by_factors(&inversion, forced)? {
                return Ok(eigen);
            }
            if whole.is_finite() {
                return self.dense();
            }
            if forced {
                return Err(Error::numeric(
                    "the factors of this operator are not exact enough to tell its levels",
                )
                .hint("a filter needs none: leave the method to the program, or take the filter"));
            }
            return self.filtered();
        }
        // Of levels with many copies, or close together, a filter may take hundreds of times what it should.
        let enough = ranks::told(inversion.enough(count).min(inversion.products(whole)))?;
        self.limit = (enough as usize).min(self.options.max_products);
        let eigen = self.filtered()?;
        if eigen.converged() || self.limit == self.options.max_products {
            return Ok(eigen);
        }
        self.limit = self.options.max_products;
        match self.by_factors(&inversion, true)? {
            Some(found) => Ok(found),
            None if whole.is_finite() => self.dense(),
            None if eigen.ended == SearchEnded::Stalled => Ok(eigen),
            None => self.filtered(),
        }
    }

    /// All levels, by a dense matrix. Searches need room beside the levels, which small spaces lack; and up to some
    /// thousand rows a search among levels of many copies takes longer.
    fn dense(&mut self) -> Result<Eigen> {
        let (h, n, count) = (self.h, self.h.dim(), self.options.count);
        let matrix = h.entries()?;
        let complex = h.dtype().is_complex();
        self.products += n;
        let (values, vectors) = task::apart(move || hermitian_eigen(n, &matrix, complex))?;
        let mut nearest: Vec<usize> = (0..n).collect();
        nearest.sort_by(|&i, &j| {
            (values[i] - self.options.near).abs().total_cmp(&(values[j] - self.options.near).abs())
        });
        nearest.truncate(count);
        let chosen: Vec<C64> = (0..n)
            .flat_map(|i| nearest.iter().map(move |&j| (i, j)))
            .map(|(i, j)| vectors[i * n + j])
            .collect();
        let mut space = SearchSubspace::new(h, None, 2)?;
        space.extend(h.device().upload(h.dtype(), h.rows(), count, &chosen)?)?;
        let found = self.nearest(space, count)?;
        self.finish(found, count, SearchEnded::Converged)
    }

    /// By factors, of the rows in one order or in another; none where they are not exact enough, or do not pay.
    fn by_factors(&mut self, inversion: &Inversion, forced: bool) -> Result<Option<Eigen>> {
        if let Some(eigen) = self.inverted(inversion)? {
            return Ok(Some(eigen));
        }
        let pairs = inversion.in_pairs()?;
        if forced || ranks::told(pairs.pays(self.options.count))? { self.inverted(&pairs) } else { Ok(None) }
    }

    fn filtered(&mut self) -> Result<Eigen> {
        let count = self.options.count;
        self.guess = self.first_bound()?;
        // A peak of the density may be one level of many states: filters with a narrower bound are tried only when
        // they are needed.
        let mut bound = self.clipped(self.guess.max(2e-3 * self.far), 0.0);
        let mut start = None;
        loop {
            let filter = Folded::new(self.h, self.options.near, self.far, bound);
            match self.cycle(&filter, start.take())? {
                FilterOutcome::Wider => self.far *= 1.3,
                FilterOutcome::Refilter(found, next) => {
                    bound = next;
                    start = Some(found.vectors);
                }
                FilterOutcome::Done(found, SearchEnded::Converged) => match self.missed(&filter, &found)? {
                    RecheckOutcome::Nothing => return self.finish(found, count, SearchEnded::Converged),
                    RecheckOutcome::Unfinished(ended) => return self.finish(found, count, ended),
                    RecheckOutcome::More(_) if self.products >= self.limit => {
                        return self.finish(found, count, SearchEnded::Limit);
                    }
                    RecheckOutcome::More(more) => {
                        start = Some(self.h.device().side_by_side(&[&found.vectors, &more])?);
                    }
                },
                FilterOutcome::Done(found, ended) => return self.finish(found, count, ended),
            }
        }
    }

    /// How many levels the filter should let through: few enough to fit into the space, enough that the filter is
    /// short.
    fn levels(&self) -> usize {
        2 * self.options.count + 80
    }

    /// A bound within which about [`InteriorSearch::levels`] levels lie, from a rough density of states.
    fn first_bound(&mut self) -> Result<f64> {
        let h = self.h;
        let distribution =
            if h.dtype().is_complex() { VectorDistribution::Phase } else { VectorDistribution::Sign };
        let (seed, stream) = (self.options.seed, Stream::Start);
        let random = Random { seed, stream, first_column: self.drawn, distribution };
        let mut v = h.zeros(4)?;
        h.device().fill_random(&mut v, random)?;
        self.drawn += 4;
        let mut recurrence = Chebyshev::new(h, self.window, v)?;
        recurrence.run(100, &Task::default())?;
        self.products += 4 * 101;
        let e = self.options.near;
        if self.inner > 0.0 {
            return Ok(0.5 * (self.inner + self.far));
        }
        let density = recurrence.moments()?.density(&[e], DampingKernel::Jackson)[0];
        let each = density.max(0.0) * h.dim() as f64;
        let bound = 0.5 * self.levels() as f64 / each.max(1e-300);
        Ok(self.clipped(bound, 0.0))
    }

    /// A distance from the energy, stretched by `factor` from `inner` on, the smallest that a level can have.
    fn stretched(&self, distance: f64, factor: f64) -> f64 {
        self.inner + factor * (distance - self.inner).max(0.0)
    }

    /// The nearest bound that a filter can have, where the levels sought reach to `radius`.
    fn clipped(&self, bound: f64, radius: f64) -> f64 {
        bound
            .clamp(1e-6 * self.far, (0.4 * self.far).max(0.5 * (radius + self.far)).min(0.999_999 * self.far))
    }

    fn random(&mut self, columns: usize) -> Result<BlockVector> {
        let (seed, stream, distribution) = (self.options.seed, Stream::Start, VectorDistribution::Gaussian);
        let mut x = self.h.zeros(columns)?;
        let random = Random { seed, stream, first_column: self.drawn, distribution };
        self.h.device().fill_random(&mut x, random)?;
        self.drawn += columns as u32;
        Ok(x)
    }

    /// Diagonalises H among vectors and their images, and keeps as many of the nearest pairs as there were vectors.
    /// The filter cannot distinguish levels equally far above and below the energy: its vectors mix them, and only
    /// together with the images is their span invariant under H.
    fn resolved(&mut self, x: BlockVector) -> Result<RitzPairs> {
        let wanted = x.columns();
        let mut space = SearchSubspace::new(self.h, None, 2)?;
        space.extend(x)?;
        space.extend(space.last_image()?)?;
        self.nearest(space, wanted)
    }

    /// The nearest Ritz pairs of H in a space, at most so many.
    fn nearest(&mut self, space: SearchSubspace, wanted: usize) -> Result<RitzPairs> {
        let e = self.options.near;
        self.products += space.products;
        let (theta, s) = space.ritz()?;
        let all: Vec<usize> = (0..theta.len()).collect();
        let (r, vectors) = space.residuals(&s, &all, &theta)?;
        let norms = self.h.device().norms(&r)?;
        let far: Vec<f64> = theta.iter().zip(&norms).map(|(v, r)| (v - e).hypot(*r)).collect();
        let mut order = all;
        order.sort_by(|&i, &j| far[i].total_cmp(&far[j]));
        order.truncate(wanted);
        Ok(RitzPairs {
            values: order.iter().map(|&i| theta[i]).collect(),
            residuals: order.iter().map(|&i| norms[i]).collect(),
            radius: order.iter().map(|&i| far[i]).collect(),
            vectors: self.h.device().chosen(&vectors, &order)?,
        })
    }

    /// One search with one filter, from vectors that are given or from random ones.
    fn cycle(&mut self, filter: &Folded, start: Option<BlockVector>) -> Result<FilterOutcome> {
        let (count, tolerance) = (self.options.count, self.tolerance);
        let near = count + 4.max(count / 4).min(32);
        let most = (4 * self.levels()).max(near + 4 * self.block).min(self.h.dim());
        let mut space = SearchSubspace::new(&filter.operator(), None, 2)?;
        let given = start.as_ref().map_or(0, BlockVector::columns);
        let mut next = self.random((given + self.block).next_multiple_of(LANES) - given)?;
        if let Some(start) = start {
            next = self.h.device().side_by_side(&[&start, &next])?;
        }
        let (mut looked, mut best, mut idle) = (0, f64::INFINITY, 0);
        loop {
            let before = space.products;
            let added = space.extend(next)?;
            self.products += filter.products() * (space.products - before);
            self.steps += 1;
            let full = added == 0 || space.dim() >= most;
            let ready = space.dim() >= near.min(self.h.dim());
            if !full && (!ready || (space.dim() as f64) < GROWTH * looked as f64) {
                next = space.last_image()?;
                continue;
            }
            looked = space.dim();
            let (theta, s) = space.ritz()?;
            if filter.is_beyond(theta[0]) {
                return Ok(FilterOutcome::Wider);
            }
            let columns: Vec<usize> = (0..near.min(theta.len())).collect();
            let found = self.resolved(space.vectors(&s, &columns)?)?;
            let worst = found.worst(count, self.tolerance);
            let radius = found.radius[count.min(found.radius.len()) - 1];
            let shown = self.products.min(self.options.max_products);
            self.progress.advance_with(shown, &format!("residual {worst:.1e}"))?;
            if worst <= tolerance {
                if radius < filter.bound {
                    return Ok(FilterOutcome::Done(found, SearchEnded::Converged));
                }
                if self.products >= self.limit {
                    return Ok(FilterOutcome::Done(found, SearchEnded::Limit));
                }
                let next = self.clipped(self.stretched(radius, 1.5), radius);
                return Ok(FilterOutcome::Refilter(found, next));
            }
            if self.products >= self.limit {
                return Ok(FilterOutcome::Done(found, SearchEnded::Limit));
            }
            idle = if worst < 0.7 * best { 0 } else { idle + 1 };
            best = best.min(worst);
            let beyond = radius > self.stretched(filter.bound, 0.7);
            if idle > PATIENCE && !beyond {
                let half = self.stretched(filter.bound, 0.5).max(self.stretched(radius, 3.0));
                let narrower = self.clipped(half, radius);
                let rounding = self.h.dtype().tolerance(1e-11);
                if worst <= rounding * self.far || narrower > 0.9 * filter.bound {
                    return Ok(FilterOutcome::Done(found, SearchEnded::Stalled));
                }
                return Ok(FilterOutcome::Refilter(found, narrower));
            }
            if (full || idle > PATIENCE) && beyond {
                let wider = self.clipped(self.stretched(radius, 2.0), radius);
                if wider > 1.01 * filter.bound {
                    return Ok(FilterOutcome::Refilter(found, wider));
                }
            }
            let due = self.clipped(self.guess.max(self.stretched(radius, 1.5)), radius);
            if full && due < 0.5 * filter.bound {
                return Ok(FilterOutcome::Refilter(found, due));
            }
            let block: Vec<usize> = (0..self.block.min(theta.len())).collect();
            next = space.residuals(&s, &block, &theta)?.0;
            if added == 0 {
                next = self.random(self.block)?;
            }
            if space.dim() + self.block > most {
                let keep: Vec<usize> = (0..(most / 2).max(near).min(theta.len())).collect();
                space.restart(&s, &keep, &theta)?;
                looked = 0;
            }
        }
    }
}

/// What a second look found.
enum RecheckOutcome {
    Nothing,
    /// Vectors of levels that are nearer than the last one asked for.
    More(Box<BlockVector>),
    Unfinished(SearchEnded),
}

impl InteriorSearch<'_> {
    /// Looks for levels nearer than those found, from random vectors orthogonal to them.
    fn missed(&mut self, filter: &Folded, found: &RitzPairs) -> Result<RecheckOutcome> {
        let count = self.options.count;
        let limit = filter.value(found.radius[count - 1]);
        // Pairs that certainly lie beyond need not be found again.
        let beyond = |i: usize| {
            (found.values[i] - self.options.near).abs() - found.residuals[i] > found.radius[count - 1]
        };
        let known: Vec<usize> = (0..found.values.len())
            .filter(|&i| i < count || (beyond(i) && found.residuals[i] < 1e-2))
            .collect();
        let known = self.h.device().chosen(&found.vectors, &known)?;
        let free = self.h.dim() - known.columns();
        if free == 0 {
            return Ok(RecheckOutcome::Nothing);
        }
        let slack = 1e-9 * limit.abs();
        let columns = (LANES / 2).min(free);
        let mut space = SearchSubspace::new(&filter.operator(), Some(known), columns)?;
        let mut next = self.random(columns)?;
        let mut looked = 0;
        loop {
            let before = space.products;
            let added = space.extend(next)?;
            self.products += filter.products() * (space.products - before);
            self.steps += 1;
            if added > 0 && space.dim() < free && (space.dim() as f64) < GROWTH * looked as f64 {
                next = space.last_image()?;
                continue;
            }
            looked = space.dim();
            if looked == 0 {
                return Ok(RecheckOutcome::Nothing);
            }
            let (theta, s) = space.ritz()?;
            let (r, _) = space.residuals(&s, &[0], &theta)?;
            let residual = self.h.device().norms(&r)?[0];
            if theta[0] < limit - slack {
                let nearer: Vec<usize> = (0..theta.len()).filter(|&i| theta[i] < limit - slack).collect();
                return Ok(RecheckOutcome::More(Box::new(space.vectors(&s, &nearer)?)));
            }
            let above = theta[0] - limit;
            // The Kato-Temple bound on the error of theta[0], with the second Ritz value as the next level.
            let fall = theta.get(1).map_or(f64::INFINITY, |next| residual * residual / (next - theta[0]));
            if residual <= 0.3 * above || residual <= slack || fall <= 0.3 * above || space.dim() >= free {
                return Ok(RecheckOutcome::Nothing);
            }
            let shown = self.products.min(self.options.max_products);
            self.progress.advance_with(shown, "second look")?;
            if self.products >= self.limit {
                return Ok(RecheckOutcome::Unfinished(SearchEnded::Limit));
            }
            next = if added == 0 { self.random(columns)? } else { space.last_image()? };
        }
    }

    fn finish(&self, found: RitzPairs, count: usize, ended: SearchEnded) -> Result<Eigen> {
        let mut chosen: Vec<usize> = (0..count.min(found.values.len())).collect();
        chosen.sort_by(|&i, &j| found.values[i].total_cmp(&found.values[j]));
        let worst = found.worst(count, self.tolerance);
        // A space diagonalised completely is exact to rounding, which may still be above the tolerance.
        let rounding = ended == SearchEnded::Converged && worst > self.tolerance;
        let eigen = Eigen {
            values: chosen.iter().map(|&i| found.values[i]).collect(),
            vectors: self.h.device().chosen(&found.vectors, &chosen)?,
            residuals: chosen.iter().map(|&i| found.residuals[i]).collect(),
            tolerance: self.tolerance,
            iterations: self.steps,
            products: self.products,
            ended: if rounding { SearchEnded::Stalled } else { ended },
        };
        fixed(self.h, eigen, count)
    }
}
