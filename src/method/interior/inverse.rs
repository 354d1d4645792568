//! Levels next to an energy as the largest of `(H - sigma)^-1`, by factors of `H - sigma` (shift and invert: Ericsson, Ruhe, Math.
//! Comp. 35 (1980) 1251). Factors at two more energies count the levels between them (Grimes, Lewis, Simon, SIAM J. Matrix Anal.
//! Appl. 15 (1994) 228): none has been missed where as many were found.

use std::sync::Arc;

use super::{InteriorSearch, RitzPairs};
use crate::backend::{BlockVector, Kernel, KernelInfo, Update};
use crate::error::{Error, Result};
use crate::method::subspace::Subspace;
use crate::method::{Eigen, Ended};
use crate::number::factor::{Factors, Plan, SparseHermitian};
use crate::number::{C64, Series, memory, root};
use crate::operator::{Action, LinearOperator, Operator};
use crate::task;

/// Distances from the energy, of that to the farthest level, where factors are tried. Those at the energy itself are bad where it
/// is a level, or where all on-site energies are equal to it, so that the first pivots vanish.
const SHIFTS: [f64; 9] = [0.0, 3e-8, -5e-8, 1e-6, -1.7e-6, 3e-5, -5e-5, 1e-3, -1.7e-3];
/// Random vectors that a search begins with: at least, and at most.
const WIDTH: (usize, usize) = (2, 16);
/// Searches one after the other, each orthogonal to what the others have found.
const ROUNDS: usize = 40;
/// The dimension of a space, for each level, at the first look at the residuals, and its growth from look to look: levels next to
/// the energy converge soon, and a look takes as long as several solutions.
const FIRST: usize = 2;
const GROWTH: f64 = 1.3;
/// Restarts of one search.
const RESTARTS: usize = 60;
/// A solution that is so much longer than the right-hand side, in units of the spectrum's width, belongs to one level and hides all
/// others.
const LONG: f64 = 1e10;
/// What a filter takes: products for each row. Between two and fifteen were measured.
const PRODUCTS: f64 = 4.0;
/// By how many times more a search by a filter is given up, where factors fit.
const SLOW: f64 = 4.0;
/// Operations a second: of factors, and of products and solutions, which wait for memory.
const RATES: (f64, f64) = (6e9, 1e9);
/// How many times faster products are on a GPU than on the host, which makes the factors.
const GPU: f64 = 10.0;
/// Entries of matrices that are large enough for the search of an order of their rows to take a minute: their factors, but for those
/// of chains, fit into no memory.
pub(super) const MOST_ENTRIES: usize = 30_000_000;
/// Rows read between two looks at interrupts.
const TOGETHER: usize = 1 << 14;

/// A matrix on the host that can be factorised.
pub(super) struct Inversion {
    matrix: Arc<SparseHermitian>,
    plan: Arc<Plan>,
    h: Operator,
}

impl Inversion {
    /// None where this process does not have all entries, or has them in single precision only.
    ///
    /// # Errors
    /// No memory; interruption.
    pub fn of(h: &Operator) -> Result<Option<Inversion>> {
        let rows = h.rows();
        let mut entries = Vec::new();
        if rows.local < rows.global || h.dtype().is_single() || !h.row(0, &mut entries) {
            return Ok(None);
        }
        let interrupt = task::current();
        let matrix = SparseHermitian::from_columns(rows.global, h.dtype().is_complex(), |j, column| {
            if j % TOGETHER == 0 {
                interrupt.check()?;
            }
            if !h.row(j, &mut entries) {
                return Err(Error::internal("a row without entries among others"));
            }
            // A row, conjugated, is a column.
            let from = entries.partition_point(|(i, _)| *i < j);
            let own = entries.get(from).filter(|(i, _)| *i == j).map_or(C64::ZERO, |(_, z)| *z);
            column.push((j, own));
            let below = entries[from..].iter().filter(|(i, z)| *i > j && *z != C64::ZERO);
            column.extend(below.map(|(i, z)| (*i, z.conj())));
            Ok(())
        })?;
        let matrix = Arc::new(matrix);
        let own = matrix.clone();
        let plan = Arc::new(task::apart(move || own.plan())?);
        Ok(Some(Inversion { matrix, plan, h: h.clone() }))
    }

    /// The same matrix with rows in another order, for factors where its diagonal entries are small.
    ///
    /// # Errors
    /// No memory; interruption.
    pub fn in_pairs(&self) -> Result<Inversion> {
        let matrix = self.matrix.clone();
        let plan = Arc::new(task::apart(move || matrix.plan_of_pairs())?);
        Ok(Inversion { matrix: self.matrix.clone(), plan, h: self.h.clone() })
    }

    /// Seconds that factors and solutions for so many levels take, and a product with one vector.
    fn seconds(&self, count: usize) -> (f64, f64) {
        let each = if self.h.dtype().is_complex() { 4.0 } else { 1.0 };
        let gpu = if self.h.device().name().contains("cuda") { GPU } else { 1.0 };
        let solutions = 8.0 * (count + 8) as f64 * 4.0 * self.plan.fill() as f64 * each / RATES.1;
        let product = 2.0 * self.matrix.entries() as f64 * each / RATES.1 / gpu;
        (3.0 * self.plan.work() * each / RATES.0 + solutions, product)
    }

    /// Whether factors fit into memory.
    fn fits(&self) -> bool {
        let size = if self.h.dtype().is_complex() { 16 } else { 8 };
        memory::ensure(2 * self.plan.fill() as u128 * size, "the factors of a matrix").is_ok()
    }

    /// Whether factors are made in less time than a filter takes to find so many levels, as far as that can be told before, and
    /// fit into memory.
    pub fn pays(&self, count: usize) -> bool {
        let (factors, product) = self.seconds(count);
        factors < PRODUCTS * self.matrix.dim() as f64 * product && self.fits()
    }

    /// Products after which a filter has taken much longer than it should, and than factors would.
    pub fn enough(&self, count: usize) -> u64 {
        let (factors, product) = self.seconds(count);
        let usual = PRODUCTS * self.matrix.dim() as f64;
        if self.fits() { (SLOW * usual.max(factors / product.max(1e-12))) as u64 } else { u64::MAX }
    }

    /// Factors of the matrix minus an energy; none where a pivot vanishes.
    fn at(&self, sigma: f64) -> Result<Option<Inverse>> {
        let (matrix, plan) = (self.matrix.clone(), self.plan.clone());
        let factors = task::apart(move || Ok(matrix.factors(&plan, sigma)))?;
        Ok(factors.map(|factors| Inverse {
            h: self.h.clone(),
            factors: Arc::new(factors),
            sigma,
            refined: false,
        }))
    }
}

/// `(H - sigma)^-1`.
#[derive(Clone)]
struct Inverse {
    h: Operator,
    factors: Arc<Factors>,
    sigma: f64,
    /// Whether each solution takes a step of refinement.
    refined: bool,
}

impl Inverse {
    fn solved(&self, b: &BlockVector) -> Result<BlockVector> {
        let device = self.h.device();
        let complex = self.h.dtype().is_complex();
        let numbers = device.download(b)?;
        let mut x = match complex {
            true => Series::Complex(numbers),
            false => Series::Real(numbers.iter().map(|z| z.re).collect()),
        };
        self.factors.solve(&mut x, b.columns())?;
        device.upload(b.dtype(), b.rows(), b.columns(), &x.to_complex())
    }

    /// `b - (H - sigma) x`.
    fn left(&self, b: &BlockVector, x: &BlockVector) -> Result<BlockVector> {
        let mut r = b.clone();
        self.h.update(Update { alpha: -1.0, beta: self.sigma, gamma: 1.0 }, x, &mut r, None)?;
        Ok(r)
    }
}

impl Action for Inverse {
    fn like(&self) -> &Operator {
        &self.h
    }

    fn act(&self, b: &BlockVector) -> Result<BlockVector> {
        task::poll()?;
        let b = self.h.accept(b)?.unwrap_or_else(|| b.clone());
        let mut x = self.solved(&b)?;
        if !self.refined {
            return Ok(x);
        }
        let more = self.solved(&self.left(&b, &x)?)?;
        let ones = vec![C64::new(1.0, 0.0); b.columns()];
        self.h.device().axpby(&ones, &more, &ones, &mut x)?;
        Ok(x)
    }

    fn about(&self) -> KernelInfo {
        let KernelInfo { format, bytes, entries } = self.h.info();
        KernelInfo { format: format!("inverse of {format}"), bytes, entries }
    }
}

impl LinearOperator for Inverse {
    fn kernel(&self) -> &dyn Kernel {
        self
    }

    fn adjoint(&self) -> Result<Option<Operator>> {
        Ok(Some(self.clone().into_operator()))
    }

    fn is_hermitian(&self) -> Result<Option<bool>> {
        Ok(Some(true))
    }
}

impl InteriorSearch<'_> {
    /// The levels, by factors; none where these are not exact enough.
    pub(super) fn inverted(&mut self, inversion: &Inversion) -> Result<Option<Eigen>> {
        let count = self.options.count;
        let Some(inverse) = self.inverse(inversion)? else { return Ok(None) };
        let mut found: Option<RitzPairs> = None;
        let mut needed = count;
        for _ in 0..ROUNDS {
            let Some(all) = self.grown(&inverse, found.take(), needed)? else { return Ok(None) };
            if self.products >= self.limit {
                return self.finish(all, count, Ended::Limit).map(Some);
            }
            if all.worst(count) <= self.tolerance {
                let Some((there, have)) = self.counted(inversion, &all)? else { return Ok(None) };
                if there == have {
                    return self.finish(all, count, Ended::Converged).map(Some);
                }
                if there < have {
                    return Ok(None);
                }
                needed = (there - have).min(count);
            }
            found = Some(all);
        }
        Ok(None)
    }

    /// Factors at the energy, or as near as they are good.
    fn inverse(&mut self, inversion: &Inversion) -> Result<Option<Operator>> {
        for shift in SHIFTS {
            let Some(mut inverse) = inversion.at(self.options.near + shift * self.far)? else { continue };
            for refined in [false, true] {
                inverse.refined = refined;
                let (left, length) = self.quality(&inverse)?;
                if left <= 0.01 * self.tolerance && length * self.far < LONG {
                    return Ok(Some(inverse.into_operator()));
                }
            }
        }
        Ok(None)
    }

    /// How far, at least, the operator is from the one whose inverse this is exactly, by a random vector; and how much longer the
    /// solution is than the right-hand side.
    fn quality(&mut self, inverse: &Inverse) -> Result<(f64, f64)> {
        let device = self.h.device();
        let norm = |x: &BlockVector| -> Result<f64> { Ok(root(device.dots(x, x)?[0].re)) };
        let b = self.random(1)?;
        let x = inverse.act(&b)?;
        let (size, before) = (norm(&x)?, norm(&b)?);
        let left = norm(&inverse.left(&b, &x)?)? / size;
        self.products += 2;
        // A quotient that is no number says no.
        let left = if left.is_finite() && before > 0.0 { left } else { f64::INFINITY };
        Ok((left, size / before))
    }

    /// Levels found before, and those of a search orthogonal to them, of which so many have converged; none if they do not.
    fn grown(
        &mut self,
        inverse: &Operator,
        before: Option<RitzPairs>,
        needed: usize,
    ) -> Result<Option<RitzPairs>> {
        let known = match &before {
            Some(found) => {
                let good: Vec<usize> =
                    (0..found.values.len()).filter(|&i| found.residuals[i] <= self.tolerance).collect();
                if good.is_empty() { None } else { Some(self.chosen(&found.vectors, &good)?) }
            }
            None => None,
        };
        let free = self.h.dim() - known.as_ref().map_or(0, BlockVector::columns);
        let needed = needed.min(free);
        if needed == 0 {
            return Ok(None);
        }
        let wanted = (needed + 4.max(needed / 4).min(32)).min(free);
        let width = (needed / 8).clamp(WIDTH.0, WIDTH.1).min(free);
        let most = (3 * wanted + 40).min(free);
        let mut space = Subspace::new(inverse, known.clone(), width)?;
        let mut next = self.random(width)?;
        let (mut looked, mut restarts) = (0, 0);
        loop {
            let products = space.products;
            let added = space.extend(next)?;
            self.products += space.products - products;
            self.steps += 1;
            let full = added == 0 || space.dim() >= most;
            if !full && (space.dim() < FIRST * wanted || (space.dim() as f64) < GROWTH * looked as f64) {
                next = space.last_image()?;
                continue;
            }
            looked = space.dim();
            let (theta, s) = space.ritz()?;
            let mut order: Vec<usize> = (0..theta.len()).collect();
            order.sort_by(|&i, &j| theta[j].abs().total_cmp(&theta[i].abs()));
            let columns: Vec<usize> = order.iter().copied().take(wanted).collect();
            let mut among = Subspace::new(self.h, None, 2)?;
            among.extend(space.vectors(&s, &columns)?)?;
            let found = self.nearest(among, wanted)?;
            let worst = found.worst(needed);
            let shown = self.products.min(self.options.max_products);
            self.progress.advance_with(shown, &format!("residual {worst:.1e}"))?;
            let over = self.products >= self.limit || space.dim() >= free;
            if worst <= self.tolerance || over {
                return self.with(known, found).map(Some);
            }
            if !full {
                next = space.last_image()?;
                continue;
            }
            restarts += 1;
            if restarts > RESTARTS {
                return Ok(None);
            }
            // Those of the nearest are rounding by now.
            let last = &columns[columns.len() - width.min(columns.len())..];
            next = space.residuals(&s, last, &theta)?.0;
            if added == 0 {
                next = self.random(width)?;
            }
            let keep: Vec<usize> = order.iter().copied().take((most / 2).max(wanted)).collect();
            space.restart(&s, &keep, &theta)?;
            looked = 0;
        }
    }

    /// What was known and what was found, as pairs of H.
    fn with(&mut self, known: Option<BlockVector>, found: RitzPairs) -> Result<RitzPairs> {
        let Some(known) = known else { return Ok(found) };
        let all = self.joined(&known, &found.vectors)?;
        let wanted = all.columns();
        let mut space = Subspace::new(self.h, None, 2)?;
        space.extend(all)?;
        self.nearest(space, wanted)
    }

    /// How many levels lie nearer than the last one asked for, and how many of them were found; none if that cannot be told.
    /// Those as far away as it, to within ten tolerances, are left out.
    fn counted(&mut self, inversion: &Inversion, found: &RitzPairs) -> Result<Option<(usize, usize)>> {
        let e = self.options.near;
        let margin = (4.0 * found.worst(self.options.count)).max(1e-11 * self.far);
        // Factors may be bad at one end and good beside.
        let widest = margin.max(10.0 * self.tolerance);
        for margin in [1.0, 3.0, 10.0, 100.0].map(|wider| wider * margin).into_iter().filter(|m| *m <= widest)
        {
            let reach = found.radius[self.options.count - 1] - margin;
            if reach <= 0.0 {
                return Ok(Some((0, 0)));
            }
            let distance = |i: usize| (found.values[i] - e).abs();
            if (0..found.values.len()).any(|i| (distance(i) - reach).abs() < 0.3 * margin) {
                continue;
            }
            let ends = [e - reach, e + reach].map(|end| self.below(inversion, end, 0.05 * margin));
            if let [Some(lower), Some(upper)] = ends.into_iter().collect::<Result<Vec<_>>>()?[..] {
                let good = |&i: &usize| distance(i) < reach && found.residuals[i] <= self.tolerance;
                let have = (0..found.values.len()).filter(good).count();
                return Ok(upper.checked_sub(lower).map(|there| (there, have)));
            }
        }
        Ok(None)
    }

    /// How many levels lie below an energy, if factors there are so exact.
    fn below(&mut self, inversion: &Inversion, energy: f64, exact: f64) -> Result<Option<usize>> {
        let Some(inverse) = inversion.at(energy)? else { return Ok(None) };
        let (left, _) = self.quality(&inverse)?;
        Ok((left <= exact).then(|| inverse.factors.below()))
    }
}
