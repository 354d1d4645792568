//! Levels next to an energy as the largest of `(H - sigma)^-1`, by factors of `H - sigma` (shift and invert: Ericsson,
//! Ruhe, Math. Comp. 35 (1980) 1251). Factors at two more energies count the levels between them (Grimes, Lewis, Simon,
//! SIAM J. Matrix Anal. Appl. 15 (1994) 228): if this number was found, no level has been missed. For a degenerate
//! level a block finds as many copies as it has vectors; the block grows to the degeneracy (`copies.rs`).

use super::copies::FilledLevel;
use super::factors::{Inversion, ShiftedInverse};
use super::{InteriorSearch, RitzPairs};
use crate::backend::BlockVector;
use crate::error::Result;
use crate::method::subspace::SearchSubspace;
use crate::method::{Eigen, SearchEnded};
use crate::operator::Action;

/// Distances from the energy, of that to the farthest level, where factors are tried. Those at the energy itself are
/// bad where it is a level, or where all on-site energies are equal to it, so that the first pivots vanish.
const SHIFTS: [f64; 9] = [0.0, 3e-8, -5e-8, 1e-6, -1.7e-6, 3e-5, -5e-5, 1e-3, -1.7e-3];
/// Random vectors that a search begins with: at least, and at most, where no level has more copies.
const WIDTH: (usize, usize) = (4, 16);
/// The most, whatever the number of copies.
const WIDEST: usize = 512;
/// Blocks of a space at the first look at the residuals, where a level may have more copies than the block has vectors.
const EARLY: usize = 8;
/// The same for blocks that are as wide as any level needs.
const ENOUGH: usize = 4;
/// Searches one after the other, each orthogonal to what the others have found.
const ROUNDS: usize = 40;
/// The dimension of a space, for each level, at the first look at the residuals, and its growth from look to look:
/// levels next to the energy converge soon, and a look takes as long as several solutions.
const FIRST: usize = 2;
const GROWTH: f64 = 1.3;
/// Restarts of one search, and those after which a level is looked at more closely whose copies are a little apart.
const RESTARTS: usize = 60;
const PATIENT: usize = 1;
/// A solution that is so much longer than the right-hand side, in units of the spectrum's width, belongs to one level
/// and hides all others.
const LONG: f64 = 1e10;

impl InteriorSearch<'_> {
    /// The levels, by factors; none where these are not exact enough, or where the whole matrix is diagonalised sooner.
    pub(super) fn inverted(&mut self, inversion: &Inversion) -> Result<Option<Eigen>> {
        let count = self.options.count;
        let Some(inverse) = self.inverse(inversion)? else { return Ok(None) };
        let usual = |needed: usize| (needed / 8).clamp(WIDTH.0, WIDTH.1);
        let mut found: Option<RitzPairs> = None;
        let (mut needed, mut width, mut most_copies) = (count, usual(count), 0);
        self.spent = 0.0;
        // Factors next to a level that others hide.
        let mut beside: Option<ShiftedInverse> = None;
        for _ in 0..ROUNDS {
            let moved = beside.take();
            let now = moved.as_ref().unwrap_or(&inverse);
            let all = match self.grown(inversion, (now, moved.is_some()), found.take(), needed, width)? {
                SearchEnd::Lost => return Ok(None),
                SearchEnd::Done(all) => all,
                SearchEnd::Full(all, copies) => {
                    let missing = count.saturating_sub(self.good(&all).len()).max(1);
                    (needed, width) = match copies {
                        None => (missing, 4 * width),
                        // This level first: others converge slowly beside it.
                        Some(MissingCopies { left, apart, sigma }) => {
                            most_copies = left.max(most_copies);
                            beside = self.beside(inversion, sigma)?;
                            (left.min(missing), if apart { left } else { left.min(missing) })
                        }
                    };
                    width = width.clamp(1, WIDEST);
                    found = Some(all);
                    continue;
                }
            };
            if self.products >= self.limit {
                return self.finish(all, count, SearchEnded::Limit).map(Some);
            }
            if all.worst(count, self.tolerance) <= self.tolerance {
                let missing = match self.counted(inversion, &all, None)? {
                    Some((there, have)) if there < have => return Ok(None),
                    Some((there, have)) => Some(there - have),
                    None => self.looked_again(inversion, &inverse, &all)?,
                };
                match missing {
                    Some(0) => return self.finish(all, count, SearchEnded::Converged).map(Some),
                    Some(missing) => needed = missing.min(count),
                    None => return Ok(None),
                }
                most_copies = most_copies.max(2 * width);
            } else {
                needed = count.saturating_sub(self.good(&all).len()).max(1);
            }
            width = usual(needed).max(most_copies.min(needed)).min(WIDEST);
            found = Some(all);
        }
        Ok(None)
    }

    /// Pairs that have converged.
    pub(super) fn good(&self, pairs: &RitzPairs) -> Vec<usize> {
        (0..pairs.values.len()).filter(|&i| pairs.residuals[i] <= self.tolerance).collect()
    }

    /// Factors at the energy, or as near as they are good.
    fn inverse(&mut self, inversion: &Inversion) -> Result<Option<ShiftedInverse>> {
        for shift in SHIFTS {
            let Some(mut inverse) = inversion.at(self.options.near + shift * self.far)? else { continue };
            for refined in [false, true] {
                inverse.refined = refined;
                if self.is_good(&inverse)? {
                    return Ok(Some(inverse));
                }
            }
        }
        Ok(None)
    }

    /// Factors at another energy, if there is one and they are good there.
    fn beside(&mut self, inversion: &Inversion, sigma: Option<f64>) -> Result<Option<ShiftedInverse>> {
        let Some(sigma) = sigma else { return Ok(None) };
        let Some(inverse) = inversion.at(sigma)? else { return Ok(None) };
        Ok(self.is_good(&inverse)?.then_some(inverse))
    }

    /// Whether factors are exact enough for levels, and show more than one.
    fn is_good(&mut self, inverse: &ShiftedInverse) -> Result<bool> {
        let (left, length) = self.quality(inverse)?;
        Ok(left <= 0.01 * self.tolerance && length * self.far < LONG)
    }

    /// How far, at least, the operator is from the one whose inverse this is exactly, by a random vector; and how much
    /// longer the solution is than the right-hand side.
    fn quality(&mut self, inverse: &ShiftedInverse) -> Result<(f64, f64)> {
        let device = self.h.device();
        let norm = |x: &BlockVector| -> Result<f64> { Ok(device.norms(x)?[0]) };
        let b = self.random(1)?;
        let x = inverse.act(&b)?;
        let (size, before) = (norm(&x)?, norm(&b)?);
        let left = norm(&inverse.left(&b, &x)?)? / size;
        self.products += 2;
        // A quotient that is no number says no.
        let left = if left.is_finite() && before > 0.0 { left } else { f64::INFINITY };
        Ok((left, size / before))
    }

    /// Levels found before, and those of a search orthogonal to them, of which so many have converged.
    fn grown(
        &mut self,
        inversion: &Inversion,
        (inverse, moved): (&ShiftedInverse, bool),
        before: Option<RitzPairs>,
        needed: usize,
        width: usize,
    ) -> Result<SearchEnd> {
        let known = match &before {
            Some(found) => {
                let good = self.good(found);
                if good.is_empty() { None } else { Some(self.h.device().chosen(&found.vectors, &good)?) }
            }
            None => None,
        };
        let avoided = known.as_ref().map_or(0, BlockVector::columns);
        let free = self.h.dim() - avoided;
        let needed = needed.min(free);
        if needed == 0 {
            return Ok(SearchEnd::Lost);
        }
        let wanted = (needed + 4.max(needed / 4).min(32)).min(free);
        let width = width.min(free);
        let most = (3 * wanted + 40).max(6 * width).min(free);
        // Where copies are the same, more than are needed need not be told apart.
        let narrow = width < needed;
        let mut counted = false;
        let early = if narrow { (EARLY * width).min(FIRST * wanted) } else { ENOUGH * width };
        let mut next_look = early.max(if narrow { 0 } else { FIRST * wanted });
        let mut space = SearchSubspace::new(&inverse.clone().into_operator(), known.clone(), width)?;
        let mut next = self.random(width)?;
        let mut restarts = 0;
        loop {
            let products = space.products;
            let added = space.extend(next)?;
            self.products += space.products - products;
            self.spent += inversion.block(added, space.dim() + avoided);
            self.steps += 1;
            let full = added == 0 || space.dim() >= most;
            if !full && space.dim() < next_look {
                next = space.last_image()?;
                continue;
            }
            let looked = (GROWTH * space.dim() as f64).ceil() as usize;
            next_look = if space.dim() < FIRST * wanted { looked.max(FIRST * wanted) } else { looked };
            let (theta, s) = space.ritz()?;
            let mut order: Vec<usize> = (0..theta.len()).collect();
            order.sort_by(|&i, &j| theta[j].abs().total_cmp(&theta[i].abs()));
            let columns: Vec<usize> = order.iter().copied().take(wanted).collect();
            let mut among = SearchSubspace::new(self.h, None, 2)?;
            among.extend(space.vectors(&s, &columns)?)?;
            let found = self.nearest(among, wanted)?;
            self.spent += inversion.look(space.dim(), wanted);
            let worst = found.worst(needed, self.tolerance);
            let shown = self.products.min(self.options.max_products);
            self.progress.advance_with(shown, &format!("residual {worst:.1e}"))?;
            let over = self.products >= self.limit || space.dim() >= free;
            if worst <= self.tolerance || over {
                return self.with(known, found).map(SearchEnd::Done);
            }
            if !counted
                && (narrow || restarts >= PATIENT)
                && let Some(level) = FilledLevel::full(&found, width, needed, inverse.sigma)
            {
                counted = true;
                let copies = self.copies(inversion, &level, inverse.sigma)?;
                let apart = level.is_apart(self.tolerance);
                // Once only: values that have not converged may seem to lie beside any level.
                let sigma = if moved { None } else { level.better_shift(inverse.sigma) };
                if (narrow || apart || sigma.is_some())
                    && copies.is_none_or(|copies| copies > level.found || sigma.is_some())
                {
                    let nearer = self.until(found, &level)?;
                    let have =
                        self.good(&nearer).into_iter().filter(|&i| level.holds(nearer.values[i])).count();
                    let left = copies.map(|copies| copies.saturating_sub(have).max(1));
                    let left = left.map(|left| MissingCopies { left, apart, sigma });
                    return Ok(SearchEnd::Full(self.with(known, nearer)?, left));
                }
            }
            if self.spent > self.allowed {
                return Ok(SearchEnd::Lost);
            }
            if !full {
                next = space.last_image()?;
                continue;
            }
            restarts += 1;
            if restarts > RESTARTS {
                return Ok(SearchEnd::Lost);
            }
            next = match space.remainder()? {
                Some(rest) if added > 0 => rest,
                _ => self.random(width)?,
            };
            let keep: Vec<usize> = order.iter().copied().take((most / 2).max(wanted)).collect();
            space.restart(&s, &keep, &theta)?;
            next_look = 0;
        }
    }

    /// What was known and what was found, as pairs of H.
    fn with(&mut self, known: Option<BlockVector>, found: RitzPairs) -> Result<RitzPairs> {
        let Some(known) = known else { return Ok(found) };
        let all = self.h.device().side_by_side(&[&known, &found.vectors])?;
        let wanted = all.columns();
        let mut space = SearchSubspace::new(self.h, None, 2)?;
        space.extend(all)?;
        self.nearest(space, wanted)
    }

    /// How far levels may be from the last one asked for and count as equally far: by rounding, and at most.
    pub(super) fn margins(&self, found: &RitzPairs) -> (f64, f64) {
        let least = (4.0 * found.worst(self.options.count, self.tolerance)).max(1e-11 * self.far);
        (least, least.max(10.0 * self.tolerance))
    }

    /// How many levels lie nearer than the last one asked for, and how many of them were found; none if that cannot be
    /// told. Those as far away as it, to within ten tolerances or the margin that is given, are left out.
    pub(super) fn counted(
        &mut self,
        inversion: &Inversion,
        found: &RitzPairs,
        given: Option<f64>,
    ) -> Result<Option<(usize, usize)>> {
        let e = self.options.near;
        let (least, most) = self.margins(found);
        // Factors may be bad at one end and good beside.
        let margins = match given {
            Some(margin) => vec![margin],
            None => [1.0, 3.0, 10.0, 100.0].map(|x| x * least).into_iter().filter(|m| *m <= most).collect(),
        };
        for margin in margins {
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

    /// How many levels lie below an energy, if factors there are so exact, with rows in one order or another.
    pub(super) fn below(&mut self, inversion: &Inversion, energy: f64, exact: f64) -> Result<Option<usize>> {
        if let Some(inverse) = inversion.at(energy)?
            && self.quality(&inverse)?.0 <= exact
        {
            return Ok(Some(inverse.factors.below()));
        }
        let Some(pairs) = inversion.harder()? else { return Ok(None) };
        let Some(inverse) = pairs.at(energy)? else { return Ok(None) };
        let (left, _) = self.quality(&inverse)?;
        Ok((left <= exact).then(|| inverse.factors.below()))
    }
}

/// Copies of a level that have not been found, whether they differ by more than the tolerance, and an energy of factors
/// with which they are found sooner.
struct MissingCopies {
    left: usize,
    apart: bool,
    sigma: Option<f64>,
}

/// How a search by factors ended.
enum SearchEnd {
    /// So many levels have converged as were needed, or no more solutions are allowed.
    Done(RitzPairs),
    /// A level has more copies than the block has vectors: how many, if that is known.
    /// Nothing farther away is among the pairs.
    Full(RitzPairs, Option<MissingCopies>),
    /// Nothing converges, or it takes longer than the whole matrix would.
    Lost,
}
