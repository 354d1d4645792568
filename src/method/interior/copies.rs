//! Levels with a degeneracy above the number of vectors in a block. A block Krylov space of any dimension contains only
//! as many copies of a level as the block has vectors; further copies appear only by rounding, one by one. So if the
//! space has found this many copies of a level, factorisations on both sides count all copies, and the search starts
//! again with a block of this width.

use super::factors::{Inversion, ShiftedInverse};
use super::{InteriorSearch, LANES, RitzPairs};
use crate::error::Result;
use crate::method::subspace::SearchSubspace;
use crate::operator::Action;

/// Levels are one, to a search, if they differ by less than this part of their distance from the energy of the factors.
const SAME: f64 = 1e-3;
/// How many times farther than a level the next one is where it does not slow the search down.
const STANDS_OUT: f64 = 3.0;
/// Blocks of a space that looks for what has been missed.
const BLOCKS: usize = 40;
/// By how much wider the margins are that are tried where factors are bad next to a level, and how wide they get, as a
/// part of the way to the farthest level.
const WIDER: f64 = 10.0;
const MOST_MARGIN: f64 = 1e-2;

/// A level of which a search has found as many copies as its block has vectors.
pub(super) struct FilledLevel {
    ends: (f64, f64),
    /// The next levels that were seen below and above.
    beside: (Option<f64>, Option<f64>),
    pub found: usize,
    /// The largest residual of its pairs.
    off: f64,
}

impl FilledLevel {
    /// The first one, among so many pairs, with `width` copies; sigma is the energy of the factors.
    pub fn full(pairs: &RitzPairs, width: usize, needed: usize, sigma: f64) -> Option<FilledLevel> {
        let values = &pairs.values;
        for i in 0..needed.min(values.len()) {
            let near = SAME * (values[i] - sigma).abs();
            let is_copy = |j: &usize| (values[*j] - values[i]).abs() <= near && pairs.residuals[*j] <= near;
            let found = (0..values.len()).filter(is_copy).count();
            if found < width || !is_copy(&i) {
                continue;
            }
            let same = || values.iter().copied().filter(|v| (v - values[i]).abs() <= near);
            let ends = (same().fold(f64::INFINITY, f64::min), same().fold(f64::NEG_INFINITY, f64::max));
            let below = values.iter().copied().filter(|v| *v < ends.0).reduce(f64::max);
            let above = values.iter().copied().filter(|v| *v > ends.1).reduce(f64::min);
            let off = (0..values.len()).filter(is_copy).map(|j| pairs.residuals[j]).fold(0.0, f64::max);
            return Some(FilledLevel { ends, beside: (below, above), found, off });
        }
        None
    }

    /// Whether a value is one of its copies.
    pub fn holds(&self, value: f64) -> bool {
        self.ends.0 <= value && value <= self.ends.1
    }

    /// Whether its copies differ by more than the tolerance, as far as they have converged.
    pub fn is_apart(&self, tolerance: f64) -> bool {
        self.ends.1 - self.ends.0 > tolerance.max(0.5 * self.off)
    }

    /// An energy for factors with which this level stands out among others, unless it does so already.
    pub fn better_shift(&self, sigma: f64) -> Option<f64> {
        let center = 0.5 * (self.ends.0 + self.ends.1);
        let others = [self.beside.0, self.beside.1];
        let next = others.into_iter().flatten().map(|v| (v - sigma).abs()).fold(f64::INFINITY, f64::min);
        let gap = others.into_iter().flatten().map(|v| (v - center).abs()).fold(f64::INFINITY, f64::min);
        let distance = center - sigma;
        let closer = 0.1 * gap.min(distance.abs());
        (next < STANDS_OUT * distance.abs()).then_some(center - closer.copysign(distance))
    }
}

impl InteriorSearch<'_> {
    /// How many copies a level has, by factors beside it; none if that cannot be told.
    pub(super) fn copies(
        &mut self,
        inversion: &Inversion,
        level: &FilledLevel,
        sigma: f64,
    ) -> Result<Option<usize>> {
        let (lower, upper) = level.ends;
        let widest = 10.0 * SAME * (lower - sigma).abs().max((upper - sigma).abs());
        let half = |gap: Option<f64>| gap.map_or(widest, |gap| widest.min(0.5 * gap));
        let half = (half(level.beside.0.map(|b| lower - b)), half(level.beside.1.map(|b| b - upper)));
        let Some(below) = self.below(inversion, lower - half.0, 0.05 * half.0)? else { return Ok(None) };
        let above = self.below(inversion, upper + half.1, 0.05 * half.1)?;
        Ok(above.and_then(|above| above.checked_sub(below)))
    }

    /// Pairs that are not farther away than a level.
    pub(super) fn until(&self, pairs: RitzPairs, level: &FilledLevel) -> Result<RitzPairs> {
        let e = self.options.near;
        let reach = (level.ends.0 - e).abs().max((level.ends.1 - e).abs());
        let nearer: Vec<usize> =
            (0..pairs.values.len()).filter(|&i| (pairs.values[i] - e).abs() <= reach).collect();
        let chosen = |x: &[f64]| nearer.iter().map(|&i| x[i]).collect();
        Ok(RitzPairs {
            values: chosen(&pairs.values),
            residuals: chosen(&pairs.residuals),
            radius: chosen(&pairs.radius),
            vectors: self.h.device().chosen(&pairs.vectors, &nearer)?,
        })
    }

    /// Where factors next to the last level are too bad to count with, as beside flat bands at the energy of all sites:
    /// counts a little nearer, and looks for what lies between from random vectors orthogonal to all that was found.
    /// How many levels are missing at least; none if that cannot be told.
    pub(super) fn looked_again(
        &mut self,
        inversion: &Inversion,
        inverse: &ShiftedInverse,
        found: &RitzPairs,
    ) -> Result<Option<usize>> {
        let (e, sigma) = (self.options.near, inverse.sigma);
        let (_, mut margin) = self.margins(found);
        let reach = found.radius[self.options.count - 1] - margin;
        if reach <= (e - sigma).abs() {
            return Ok(if reach <= 0.0 { Some(0) } else { None });
        }
        while margin <= MOST_MARGIN * self.far {
            margin *= WIDER;
            match self.counted(inversion, found, Some(margin))? {
                Some((there, have)) if there == have => break,
                Some((there, have)) => return Ok(there.checked_sub(have)),
                None => {}
            }
        }
        // The largest values of the inverse, above and below, that levels so near would not have.
        let bounds = (1.0 / (e + reach - sigma), 1.0 / (sigma - e + reach));
        let good = self.good(found);
        let known = self.h.device().chosen(&found.vectors, &good)?;
        let free = self.h.dim() - known.columns();
        let columns = (LANES / 2).min(free);
        if columns == 0 {
            return Ok(Some(0));
        }
        let mut space = SearchSubspace::new(&inverse.clone().into_operator(), Some(known), columns)?;
        let mut next = self.random(columns)?;
        for block in 0..BLOCKS {
            let before = space.products;
            let added = space.extend(next)?;
            self.products += space.products - before;
            self.spent += inversion.block(added, space.dim() + good.len());
            self.steps += 1;
            if added > 0 && block % 3 != 2 && space.dim() < free {
                next = space.last_image()?;
                continue;
            }
            if space.dim() == 0 {
                return Ok(Some(0));
            }
            let (theta, s) = space.ritz()?;
            let n = theta.len();
            let nearer = theta.iter().filter(|t| **t > bounds.0 || -**t > bounds.1).count();
            if nearer > 0 {
                return Ok(Some(nearer));
            }
            let ends = [0, n - 1];
            let (r, _) = space.residuals(&s, &ends, &theta)?;
            let off = self.h.device().norms(&r)?;
            // The error of an end is at most its residual, and the square of it over the distance of the next one
            // (Kato, Temple).
            let error = |off: f64, gap: f64| if gap > 0.0 { off.min(off * off / gap) } else { off };
            let gap = |i: usize, j: usize| (theta[i] - theta[j]).abs();
            let low = -theta[0] + error(off[0], if n > 1 { gap(0, 1) } else { 0.0 });
            let high = theta[n - 1] + error(off[1], if n > 1 { gap(n - 1, n - 2) } else { 0.0 });
            if space.dim() >= free || low <= bounds.1 && high <= bounds.0 {
                return Ok(Some(0));
            }
            if self.products >= self.limit || self.spent > self.allowed {
                return Ok(None);
            }
            next = if added == 0 { self.random(columns)? } else { space.last_image()? };
        }
        Ok(None)
    }
}
