//! The lowest eigenpairs of a Hermitian operator: Davidson's method for several states (Davidson, J. Comput. Phys. 17
//! (1975) 87; Liu 1978) with Olsen's correction and thick restarts. Without a preconditioner it is a block Lanczos
//! method with thick restarts.
//!
//! A search cannot leave an eigenvector: its residual is zero, wherever it lies in the spectrum. So searches start
//! from random vectors, which overlap with every state, and use a definite preconditioner. Like a polynomial of H, it
//! amplifies a lower state more than a higher one and removes none. A search from given vectors is followed by a
//! second look, from random vectors orthogonal to what was found.

use crate::backend::{BlockVector, Random, VectorDistribution};
use crate::error::{Error, Result};
use crate::method::alone::{SearchInput, searched};
use crate::method::eigen::{Eigen, SearchEnded};
use crate::method::fixed::{first, fixed, joint, width};
use crate::method::olsen::{DavidsonStep, KnownDiagonal, Olsen, basis_states};
use crate::method::subspace::{SearchSubspace, orthonormal};
use crate::method::units::{Units, countable, positive, too_many};
use crate::number::C64;
use crate::number::philox::Stream;
use crate::operator::{Operator, not_finite};
use crate::task::{Steps, Task};

/// Spaces up to this dimension are diagonalised completely.
const SMALL: usize = 64;
/// Spaces up to this dimension are diagonalised completely where a search that does not end has cost several times as
/// much.
const LARGE: usize = 1024;
/// A search that ends in fewer iterations is followed by a second look: it has seen too little of the operator.
const FEW: usize = 12;
/// Pairs count as separated when their residuals are below this fraction of the distance to the first value beyond
/// them.
const CLEAR: f64 = 0.1;
/// How far the shift of the preconditioner lies below the lowest diagonal entry and Ritz value until the wanted pairs
/// are separated, in standard deviations of the diagonal. Without it, basis states that are nearly eigenstates would
/// converge before lower states that are not.
const BELOW: f64 = 0.3;
/// Expansions without progress, at the level of rounding, after which a search ends.
const STALL: usize = 30;

/// How corrections are made from residuals.
pub enum Preconditioner<'a> {
    /// The residual itself: a Krylov method.
    None,
    /// (shift - diag H)^-1 in Olsen's correction; the residual itself where the diagonal is unknown.
    Diagonal,
    /// The user's: from residuals and Ritz values to corrections.
    User(&'a mut dyn FnMut(&BlockVector, &[f64]) -> Result<BlockVector>),
}

/// What to find and how hard to try.
pub struct DavidsonOptions<'a> {
    pub count: usize,
    /// Largest residual norm |H x - theta x| that counts as converged; without it 1e-9, of the operator's size where
    /// that is far from one.
    pub tolerance: Option<f64>,
    /// Most basis vectors before a restart.
    pub max_basis: usize,
    /// Most iterations (expansions of the basis).
    pub max_iterations: usize,
    /// Starting vectors; if they are too few, random ones are added.
    pub start: Option<BlockVector>,
    /// Whether only to improve the starting vectors, without a second look for lower states that they do not overlap
    /// with.
    pub trust_start: bool,
    /// Find eigenpairs orthogonal to these columns.
    pub orthogonal_to: Option<BlockVector>,
    /// Seed of the random starting vectors.
    pub seed: u64,
    pub preconditioner: Preconditioner<'a>,
}

impl DavidsonOptions<'_> {
    /// The defaults for `count` eigenpairs.
    pub fn new(count: usize) -> Self {
        DavidsonOptions {
            count,
            tolerance: None,
            max_basis: 20.max(5 * count),
            max_iterations: 1000,
            start: None,
            trust_start: false,
            orthogonal_to: None,
            seed: 0,
            preconditioner: Preconditioner::Diagonal,
        }
    }
}

/// The lowest eigenpairs of a Hermitian operator.
///
/// # Errors
/// More pairs than the space has, an operator that is not Hermitian, vectors that do not fit it.
pub fn davidson(h: &Operator, options: DavidsonOptions<'_>, task: &Task) -> Result<Eigen> {
    check(h, &options)?;
    // A start that is only to be improved needs no product more.
    let units = if options.trust_start && options.start.is_some() { Units::own(h) } else { Units::of(h)? };
    found(&units, options, task).map(|eigen| units.back(eigen))
}

/// The search of [`davidson`], in units of the operator.
fn found(units: &Units, mut options: DavidsonOptions<'_>, task: &Task) -> Result<Eigen> {
    let h = &units.h;
    let tolerance = units.tolerance(options.tolerance);
    let accept = |v: BlockVector| -> Result<BlockVector> { Ok(h.accept(&v)?.unwrap_or(v)) };
    let avoid = match options.orthogonal_to.take() {
        Some(avoid) => Some(orthonormal(h.device(), &accept(avoid)?)?),
        None => None,
    };
    let avoided = avoid.as_ref().map_or(0, BlockVector::columns);
    let count = options.count;
    if count + avoided > h.dim() {
        return Err(too_many(count, h));
    }
    let start = options.start.take().map(accept).transpose()?;
    let started = start.is_some();
    let own = matches!(options.preconditioner, Preconditioner::User(_));
    let trusted = options.trust_start && start.is_some();
    let doubtful = !trusted && (start.is_some() || own);
    let diagonal = match options.preconditioner {
        Preconditioner::Diagonal => {
            task.showing(|| KnownDiagonal::of(h, if trusted { count + 1 } else { 0 }))?
        }
        _ => None,
    };
    let progress = task.start("davidson", options.max_iterations);
    let search = |h: &Operator, SearchInput { start, avoid, diagonal }| {
        let search = DavidsonSearch {
            h,
            options,
            unit: units.unit,
            tolerance,
            diagonal,
            trusted,
            whole: false,
            progress,
            randoms: 0,
            iterations: 0,
            products: 0,
        };
        let found = search.from(count, start, avoid, doubtful)?;
        // A search from a start keeps the vectors that it leads to: the next step of a sweep goes on from there.
        if started { first(h, found, count) } else { fixed(h, found, count) }
    };
    let input = SearchInput { start, avoid, diagonal };
    // The user's function is given vectors as scripts know them.
    if own { search(h, input) } else { searched(h, count, input, search) }
}

/// What several searches on one operator share.
struct DavidsonSearch<'a, 'b> {
    h: &'a Operator,
    options: DavidsonOptions<'b>,
    /// What an energy of one stands for.
    unit: f64,
    /// Largest residual that counts as converged.
    tolerance: f64,
    diagonal: Option<KnownDiagonal>,
    /// Whether the start is to be improved and no more.
    trusted: bool,
    /// Whether to diagonalise the whole space.
    whole: bool,
    progress: Steps<'a>,
    /// Random vectors used so far.
    randoms: u32,
    iterations: usize,
    products: usize,
}

impl DavidsonSearch<'_, '_> {
    /// The search, and what is to be done after it. `doubtful`: whether it may have missed lower states.
    fn from(
        mut self,
        count: usize,
        start: Option<BlockVector>,
        avoid: Option<BlockVector>,
        doubtful: bool,
    ) -> Result<Eigen> {
        let h = self.h;
        let avoided = avoid.as_ref().map_or(0, BlockVector::columns);
        let mut found = self.run(count, start, avoid.as_ref(), None)?;
        let looks = doubtful || (!self.trusted && self.iterations < FEW);
        while looks && found.converged() && count + avoided < h.dim() && !self.is_whole(count, avoided) {
            let highest = found.values[count - 1];
            let known = match &avoid {
                Some(avoid) => h.device().side_by_side(&[avoid, &found.vectors])?,
                None => found.vectors.clone(),
            };
            let beyond = self.run(1, None, Some(&known), Some(highest))?;
            if beyond.values[0] >= highest - self.slack(highest) {
                found.ended = beyond.ended;
                break;
            }
            let start = h.device().side_by_side(&[&found.vectors, &beyond.vectors])?;
            found = self.run(count, Some(start), avoid.as_ref(), None)?;
        }
        let free = h.dim() - avoided;
        if found.ended == SearchEnded::Limit && free <= LARGE && self.products > 4 * free {
            self.whole = true;
            found = self.run(count, None, avoid.as_ref(), None)?;
        }
        (found.iterations, found.products) = (self.iterations, self.products);
        Ok(found)
    }

    /// Whether a search for `count` pairs diagonalises the whole space orthogonal to the avoided columns.
    fn is_whole(&self, count: usize, avoided: usize) -> bool {
        let free = self.h.dim() - avoided;
        // A smaller basis gains nothing where all of it fits, or where most of the space is asked for.
        let most = SMALL.max(4 * count.min(128));
        self.whole || (free <= most && !matches!(self.options.preconditioner, Preconditioner::User(_)))
    }

    /// Values closer than this count as equal: they differ by rounding or within the tolerance.
    fn slack(&self, value: f64) -> f64 {
        let rounding = self.h.dtype().tolerance(1e-12);
        self.tolerance.max(rounding * value.abs())
    }

    /// Adds random columns to a space; returns how many new directions they gave.
    fn random(&mut self, space: &mut SearchSubspace, columns: usize) -> Result<usize> {
        let mut t = self.h.zeros(columns)?;
        let distribution = VectorDistribution::Gaussian;
        let (seed, stream) = (self.options.seed, Stream::Start);
        self.h
            .device()
            .fill_random(&mut t, Random { seed, stream, first_column: self.randoms, distribution })?;
        self.randoms += columns as u32;
        space.extend(t)
    }

    /// The space that a search begins with.
    fn begin(
        &mut self,
        count: usize,
        block: usize,
        space: &mut SearchSubspace,
        start: Option<BlockVector>,
    ) -> Result<()> {
        let avoided = space.avoided();
        if let Some(start) = start {
            if block > 1 {
                space.extend(start)?;
            } else {
                for c in 0..start.columns().min(self.options.max_basis / 2) {
                    space.extend(self.h.device().columns(&start, c..c + 1)?)?;
                }
            }
        }
        let whole = self.is_whole(count, avoided);
        let wanted = if whole { self.h.dim() - avoided } else { block };
        let missing = wanted.saturating_sub(space.dim());
        if missing > 0 {
            self.random(space, missing)?;
            let states = self.diagonal.as_ref().map_or(&[][..], |d| &d.states);
            if self.trusted && !whole && !states.is_empty() {
                space.extend(basis_states(self.h, &states[..missing.min(states.len())])?)?;
            }
        }
        while space.dim() < block {
            if self.random(space, block - space.dim())? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The lowest pairs orthogonal to the columns of `avoid`. With `above`, only whether a state lies below that
    /// value: the search ends once it is below, or once its lowest pair is known to lie above.
    fn run(
        &mut self,
        count: usize,
        start: Option<BlockVector>,
        avoid: Option<&BlockVector>,
        above: Option<f64>,
    ) -> Result<Eigen> {
        let h = self.h;
        let device = h.device().clone();
        let free = h.dim() - avoid.map_or(0, BlockVector::columns);
        // One vector more than asked for, so that a multiplet which `count` would cut stays together.
        let block = (count + usize::from(count > 1)).min(free);
        let max_basis = self.options.max_basis.max(count + block + 1).min(free);
        let keep = (count + block.max(max_basis / 3)).min(max_basis.saturating_sub(block)).max(count);
        let tolerance = self.tolerance;
        let mut space = SearchSubspace::new(h, avoid.cloned(), block)?;
        self.begin(count, block, &mut space, start)?;
        let mut before = self.products;
        let mut stall = ExpansionStall::new(h.dtype().epsilon());
        // The residual when products were last made anew.
        let mut anew = f64::INFINITY;
        let mut clear = false;
        loop {
            let (theta, s) = space.ritz()?;
            let found = count.min(theta.len());
            let targets: Vec<usize> = (0..block.min(theta.len())).collect();
            let was = clear;
            let step = self.step(&space, (&theta, &s), &targets, was)?;
            let mut norms = step.norms(h)?;
            if norms.iter().any(|n| !n.is_finite()) {
                return Err(not_finite());
            }
            // Whichever vectors of a degenerate level are chosen in the end, they shall have converged.
            let level = width(&theta[..found], tolerance, h.dtype());
            let own = norms[..found].to_vec();
            norms[..found].copy_from_slice(&joint(&theta[..found], &own, level).1);
            let worst = norms[..found].iter().copied().fold(0.0, f64::max);
            self.products = before + space.products;
            let converged = match above {
                Some(value) => self.is_decided(value, &theta, worst),
                None => found == count && worst <= tolerance,
            };
            let ended = if converged || (space.dim() >= free && found == count) {
                Some(SearchEnded::Converged)
            } else if self.iterations >= self.options.max_iterations || space.dim() >= free {
                Some(SearchEnded::Limit)
            } else if stall.of(worst, &theta) {
                if worst < 0.5 * anew && stall.is_coarse(worst) {
                    // The stored products carry the rounding of many restarts, so they are made anew before the search
                    // gives up.
                    anew = worst;
                    let best = space.vectors(&s, &targets)?;
                    before += space.products;
                    space = SearchSubspace::new(h, avoid.cloned(), block)?;
                    space.extend(best)?;
                    stall = ExpansionStall::new(h.dtype().epsilon());
                    continue;
                }
                Some(SearchEnded::Stalled)
            } else {
                None
            };
            if let Some(ended) = ended {
                // Of all levels the last one wanted comes whole, although some of its vectors are left out afterwards.
                let all = if space.dim() >= free && found == count { theta.len() } else { found };
                let is_last = |k: &usize| *k < found || theta[*k] - theta[found - 1] <= level;
                let columns: Vec<usize> = (0..all).take_while(is_last).collect();
                let mut residuals = own;
                if columns.len() > found {
                    let rest = space.residuals(&s, &columns[found..], &theta)?.0;
                    residuals.extend(device.norms(&rest)?);
                }
                return Ok(Eigen {
                    values: theta[..columns.len()].to_vec(),
                    vectors: space.vectors(&s, &columns)?,
                    residuals,
                    tolerance,
                    iterations: self.iterations,
                    products: self.products,
                    ended,
                });
            }
            self.progress.advance_with(self.iterations, &format!("residual {worst:.1e}"))?;
            self.iterations += 1;
            clear |= theta.len() > block && (0..found).all(|j| norms[j] <= CLEAR * (theta[block] - theta[j]));
            // Correct only what has not converged; the guard vectors take part while the wanted ones do.
            let open: Vec<usize> = targets.iter().copied().filter(|&j| norms[j] > tolerance).collect();
            let columns: Option<Vec<usize>> =
                (space.dim() + open.len() > max_basis).then(|| (0..keep.min(theta.len())).collect());
            // The shift of a correction that was begun is the one that is wanted now.
            let good = was == clear || self.trusted;
            let added = match step {
                DavidsonStep::Pair(pair) if good => {
                    if let Some(columns) = &columns {
                        space.restart(&s, columns, &theta)?;
                    }
                    space.extend_by(*pair, columns.as_deref().map(|columns| (&s[..], columns)))?
                }
                step => {
                    let t = match step {
                        DavidsonStep::Single { olsen, products, .. } if good => {
                            olsen.correction(h, products)?
                        }
                        step => {
                            let (r, x) = match step {
                                DavidsonStep::Pair(_) => space.residuals(&s, &targets, &theta)?,
                                DavidsonStep::Single { r, x, .. } | DavidsonStep::Block { r, x } => (r, x),
                            };
                            self.corrections(r, &x, &theta[..targets.len()], clear, above.is_some())?
                        }
                    };
                    let chosen = if open.len() == targets.len() { t } else { device.chosen(&t, &open)? };
                    if let Some(columns) = &columns {
                        space.restart(&s, columns, &theta)?;
                    }
                    space.extend(chosen)?
                }
            };
            if added == 0 && self.random(&mut space, 1)? == 0 {
                return Err(Error::numeric("no new direction could be found for the basis"));
            }
        }
    }

    /// Begins an iteration: residuals, and the correction of a single one before it is known whether it is wanted, so
    /// that the host waits for its products and the norm together.
    fn step(
        &self,
        space: &SearchSubspace,
        (theta, s): (&[f64], &[C64]),
        targets: &[usize],
        clear: bool,
    ) -> Result<DavidsonStep> {
        let known = self.diagonal.as_ref().filter(|_| targets.len() == 1 && space.is_single());
        let Some(d) = known else {
            let (r, x) = space.residuals(s, targets, theta)?;
            return Ok(DavidsonStep::Block { r, x });
        };
        let shift = self.shift(d, &theta[..1], clear);
        if let Some(pair) = space.correction((theta[0], s), d, shift[0])? {
            return Ok(DavidsonStep::Pair(Box::new(pair)));
        }
        let (r, x) = space.residuals(s, targets, theta)?;
        let olsen = Box::new(Olsen::new(self.h, d, &shift, &r, &x)?);
        let (square, products) = olsen.products(self.h, &r, &x)?;
        Ok(DavidsonStep::Single { r, x, square, olsen, products })
    }

    /// Whether it is decided if a state lies below `value`.
    fn is_decided(&self, value: f64, theta: &[f64], residual: f64) -> bool {
        let (above, slack) = (theta[0] - value, self.slack(value));
        // The Kato-Temple bound residual^2/(next - theta[0]) on the error of theta[0], with `next` the second Ritz
        // value.
        let fall = |next: &f64| residual * residual <= CLEAR * slack * (next - theta[0]);
        above < -slack || residual <= self.tolerance.max(CLEAR * above) || theta.get(1).is_some_and(fall)
    }

    /// Corrections of residuals `r` of the Ritz vectors `x`.
    fn corrections(
        &mut self,
        r: BlockVector,
        x: &BlockVector,
        theta: &[f64],
        clear: bool,
        second: bool,
    ) -> Result<BlockVector> {
        if let (Preconditioner::User(f), false) = (&mut self.options.preconditioner, second) {
            let energies: Vec<f64> = theta.iter().map(|t| t * self.unit).collect();
            let mut own = r.clone();
            self.h.device().axpby(&[C64::new(self.unit, 0.0)], &r, &[C64::default()], &mut own)?;
            return f(&own, &energies);
        }
        let Some(d) = &self.diagonal else { return Ok(r) };
        Olsen::new(self.h, d, &self.shift(d, theta, clear), &r, x)?.corrections(self.h, x)
    }

    /// The shifts of the preconditioner for Ritz values; `clear`: once the wanted pairs are separated.
    fn shift(&self, d: &KnownDiagonal, theta: &[f64], clear: bool) -> Vec<f64> {
        if self.trusted {
            return theta.to_vec();
        }
        // Clearly below every diagonal entry: at an entry of the same size the sign of the denominator would be
        // rounding's, and the correction no longer definite.
        let margin = if clear { 0.0 } else { BELOW * d.spread };
        vec![theta[0].min(d.lowest) - margin.max(d.floor()); theta.len()]
    }
}

/// Detects the limit of rounding: many expansions without progress, and a residual that products cannot resolve.
struct ExpansionStall {
    expansions: usize,
    /// The residual when it last fell by a tenth or more.
    last: f64,
    /// The largest Ritz value so far, by modulus.
    norm: f64,
    precision: f64,
}

impl ExpansionStall {
    fn new(precision: f64) -> ExpansionStall {
        ExpansionStall { expansions: 0, last: f64::INFINITY, norm: 0.0, precision }
    }

    fn of(&mut self, residual: f64, theta: &[f64]) -> bool {
        self.norm = theta.iter().fold(self.norm, |n, t| n.max(t.abs()));
        self.expansions += 1;
        if residual <= 0.9 * self.last {
            (self.last, self.expansions) = (residual, 0);
        }
        // Rounding errors of the stored products add up over restarts, far beyond that of one product.
        self.expansions > STALL && residual <= self.precision.powf(0.7) * self.norm
    }

    /// Whether new products would resolve a residual.
    fn is_coarse(&self, residual: f64) -> bool {
        residual > 1e3 * self.precision * self.norm
    }
}

fn check(h: &Operator, options: &DavidsonOptions<'_>) -> Result<()> {
    let dim = h.dim();
    if dim != h.cols() || !h.is_hermitian()? {
        return Err(Error::input(
            "this function finds eigenpairs of Hermitian operators, and this one is not Hermitian",
        )
        .hint("A + A^+ is Hermitian"));
    }
    countable(options.count, h)?;
    positive(options.tolerance)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::cpu::Cpu;
    use crate::backend::matrix::{Csr, Indices, MatrixValues};
    use crate::operator::{MatrixFormat, StoredMatrix};
    use crate::task::Interrupt;

    fn chain(n: usize) -> Operator {
        beside(n, &[])
    }

    /// A ring of n sites, and isolated states that couple to nothing.
    fn beside(n: usize, isolated: &[f64]) -> Operator {
        let device: crate::backend::Device = Arc::new(Cpu::new(2, Interrupt::default()).expect("threads"));
        let mut row_start = vec![0];
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for i in 0..n {
            let mut near = [(i + n - 1) % n, (i + 1) % n];
            near.sort();
            for j in near {
                columns.push(j as u32);
                values.push(-1.0);
            }
            row_start.push(columns.len());
        }
        for (i, &x) in isolated.iter().enumerate() {
            columns.push((n + i) as u32);
            values.push(x);
            row_start.push(columns.len());
        }
        let n = n + isolated.len();
        let csr = Csr {
            rows: n,
            cols: n,
            row_start,
            columns: Indices::U32(columns),
            values: MatrixValues::F64(values),
        };
        StoredMatrix::from_csr(&device, csr, MatrixFormat::Csr).expect("a chain")
    }

    #[test]
    fn degenerate_pairs_of_a_ring_are_found() {
        let h = chain(101);
        let options = DavidsonOptions::new(5);
        let eigen = davidson(&h, options, &Task::default()).expect("eigenpairs");
        let level = |k: f64| -2.0 * (2.0 * std::f64::consts::PI * k / 101.0).cos();
        for (found, exact) in eigen.values.iter().zip([0.0, 1.0, 1.0, 2.0, 2.0].map(level)) {
            assert!((found - exact).abs() < 1e-12, "{found} {exact}");
        }
        assert!(eigen.converged());
    }

    /// The isolated state is lowest on the diagonal and an eigenstate, but not the ground state. A search must not
    /// return it, whether found or given as the start.
    #[test]
    fn an_isolated_state_is_not_taken_for_the_ground_state() {
        let h = beside(101, &[-1.5, 3.0]);
        for given in [false, true] {
            for trusted in [false, true] {
                let mut options = DavidsonOptions::new(1);
                options.start = given.then(|| basis_states(&h, &[101]).expect("a basis state"));
                options.trust_start = trusted;
                let eigen = davidson(&h, options, &Task::default()).expect("an eigenpair");
                let expected = if given && trusted { -1.5 } else { -2.0 };
                assert!((eigen.values[0] - expected).abs() < 1e-12, "{given} {trusted}: {}", eigen.values[0]);
                assert!(eigen.converged());
            }
        }
        let mut options = DavidsonOptions::new(3);
        options.start = Some(basis_states(&h, &[101, 102, 101]).expect("basis states"));
        let eigen = davidson(&h, options, &Task::default()).expect("eigenpairs");
        let level = -2.0 * (2.0 * std::f64::consts::PI / 101.0).cos();
        for (found, exact) in eigen.values.iter().zip([-2.0, level, level]) {
            assert!((found - exact).abs() < 1e-12, "{found} {exact}");
        }
    }

    /// Rounding keeps the residuals above the tolerance: the search ends, with new products once more, and says so.
    #[test]
    fn rounding_ends_a_search() {
        let mut options = DavidsonOptions::new(1);
        options.tolerance = Some(1e-18);
        let eigen = davidson(&chain(101), options, &Task::default()).expect("an eigenpair");
        assert!(eigen.ended == SearchEnded::Stalled && eigen.iterations < 400, "{:?}", eigen.ended);
        assert!(eigen.residuals[0] < 1e-12, "{:?}", eigen.residuals);
    }

    #[test]
    fn a_space_that_is_used_up_ends_well() {
        let h = chain(5);
        let eigen = davidson(&h, DavidsonOptions::new(5), &Task::default()).expect("all eigenpairs");
        assert_eq!(eigen.values.len(), 5);
        assert!((eigen.values.iter().sum::<f64>()).abs() < 1e-12);
    }
}
