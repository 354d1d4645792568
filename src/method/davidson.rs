//! The lowest eigenpairs of a Hermitian operator: Davidson's method for several states (Davidson 1975; Liu 1978) with
//! Olsen's correction and thick restarts; without a preconditioner it is a block Lanczos method with thick restarts.

use crate::backend::{BlockVector, Distribution, Random};
use crate::error::{Error, Result};
use crate::method::subspace::{Subspace, orthonormal};
use crate::number::philox::Stream;
use crate::number::{C64, root};
use crate::operator::Operator;
use crate::task::Task;

/// Spaces of so many dimensions are diagonalised whole: nothing that the start does not overlap with can be missed.
const SMALL: usize = 64;

/// How corrections are made from residuals.
pub enum Preconditioner<'a> {
    /// The residual itself: a Krylov method.
    None,
    /// (theta - diag H)^-1, where the diagonal is known.
    Diagonal,
    /// The user's: from residuals and Ritz values to corrections.
    User(&'a mut dyn FnMut(&BlockVector, &[f64]) -> Result<BlockVector>),
}

/// What to find and how hard to try.
pub struct DavidsonOptions<'a> {
    /// Number of eigenpairs.
    pub count: usize,
    /// Largest residual norm |H x - theta x| that counts as converged.
    pub tolerance: f64,
    /// Most basis vectors before a restart.
    pub max_basis: usize,
    /// Most iterations (expansions of the basis).
    pub max_iterations: usize,
    /// Starting vectors; if they are too few, random ones and the basis states that are lowest on the diagonal are added.
    pub start: Option<BlockVector>,
    /// Find eigenpairs orthogonal to these columns.
    pub orthogonal_to: Option<BlockVector>,
    /// Seed of the random starting vectors.
    pub seed: u64,
    /// How corrections are made.
    pub preconditioner: Preconditioner<'a>,
}

impl DavidsonOptions<'_> {
    /// The defaults for `count` eigenpairs.
    pub fn new(count: usize) -> Self {
        DavidsonOptions {
            count,
            tolerance: 1e-9,
            max_basis: 20.max(5 * count),
            max_iterations: 1000,
            start: None,
            orthogonal_to: None,
            seed: 0,
            preconditioner: Preconditioner::Diagonal,
        }
    }
}

/// Eigenpairs and how well they are known.
#[derive(Debug, Clone)]
pub struct Eigen {
    /// Ritz values, ascending.
    pub values: Vec<f64>,
    /// Ritz vectors, a column each.
    pub vectors: BlockVector,
    /// Norms of H x - theta x.
    pub residuals: Vec<f64>,
    /// Expansions of the basis.
    pub iterations: usize,
    /// Products with single vectors.
    pub products: usize,
    /// Whether every residual is below the tolerance.
    pub converged: bool,
}

/// The lowest eigenpairs of a Hermitian operator.
///
/// # Errors
/// More pairs than the space has, an operator that is not Hermitian, a basis limit too small for `count`.
pub fn davidson(h: &Operator, mut options: DavidsonOptions<'_>, task: &Task) -> Result<Eigen> {
    check(h, &options)?;
    let device = h.device().clone();
    let dim = h.dim();
    if let Some(avoid) = options.orthogonal_to.take() {
        let avoid = h.accept(&avoid)?.unwrap_or(avoid);
        options.orthogonal_to = Some(orthonormal(&device, &avoid)?);
    }
    let free = dim - options.orthogonal_to.as_ref().map_or(0, BlockVector::columns);
    let count = options.count;
    // One vector more than asked for keeps a multiplet that the count would cut in one piece.
    let block = (count + usize::from(count > 1)).min(free);
    let max_basis = options.max_basis.max(count + block + 1).min(free);
    let keep = (count + block.max(max_basis / 3)).min(max_basis.saturating_sub(block)).max(count);
    let given = options.start.as_ref().map_or(0, BlockVector::columns);
    let diagonal = match options.preconditioner {
        Preconditioner::Diagonal => diagonal(h, block.saturating_sub(given))?,
        _ => None,
    };
    let mut randoms = 0;
    let mut space = Subspace::new(h, options.orthogonal_to.take(), block)?;
    if let Some(start) = options.start.take() {
        let start = h.accept(&start)?.unwrap_or(start);
        space.extend(if block == 1 { device.columns(&start, 0..1)? } else { start })?;
    }
    let mut random = |space: &mut Subspace, columns: usize| -> Result<usize> {
        let mut t = h.zeros(columns)?;
        let distribution = Distribution::Gaussian;
        let random =
            Random { seed: options.seed, stream: Stream::Start, first_column: randoms, distribution };
        device.fill_random(&mut t, random)?;
        randoms += columns as u32;
        space.extend(t)
    };
    let whole = free <= SMALL && !matches!(options.preconditioner, Preconditioner::User(_));
    let missing = if whole { free } else { block }.saturating_sub(space.dim());
    if missing > 0 {
        random(&mut space, missing)?;
        // An eigenvector of the diagonal is no direction that the preconditioner would turn to.
        if let Some((_, lowest)) = diagonal.as_ref().filter(|d| !whole && !d.1.is_empty()) {
            space.extend(basis_states(h, lowest)?)?;
        }
    }
    while space.dim() < block {
        let missing = block - space.dim();
        if random(&mut space, missing)? == 0 {
            break;
        }
    }
    let progress = task.start("davidson", options.max_iterations);
    let mut iterations = 0;
    loop {
        let (theta, s) = space.ritz()?;
        let found = count.min(theta.len());
        let targets: Vec<usize> = (0..block.min(theta.len())).collect();
        let (r, x) = space.residuals(&s, &targets, &theta)?;
        let norms: Vec<f64> = device.dots(&r, &r)?.iter().map(|z| root(z.re)).collect();
        if norms.iter().any(|n| !n.is_finite()) {
            return Err(Error::numeric("the operator gives numbers that are not finite")
                .hint("look for NaN or infinite entries"));
        }
        let worst = norms[..found].iter().copied().fold(0.0, f64::max);
        let converged = found == count && worst <= options.tolerance;
        let exhausted = space.dim() >= free;
        if converged || exhausted || iterations >= options.max_iterations {
            let columns: Vec<usize> = (0..found).collect();
            return Ok(Eigen {
                values: theta[..found].to_vec(),
                vectors: space.vectors(&s, &columns)?,
                residuals: norms[..found].to_vec(),
                iterations,
                products: space.products,
                converged: converged || (exhausted && found == count),
            });
        }
        progress.advance_with(iterations, &format!("residual {worst:.1e}"))?;
        iterations += 1;
        // Correct only what has not converged; the guard vectors take part while the wanted ones do.
        let open: Vec<usize> = targets.iter().copied().filter(|&j| norms[j] > options.tolerance).collect();
        let shift: Vec<f64> = targets.iter().map(|&j| theta[j]).collect();
        let t = match &mut options.preconditioner {
            Preconditioner::User(f) => f(&r, &shift)?,
            _ => match &diagonal {
                Some((d, _)) => olsen(h, d, &shift, &r, &x)?,
                None => r,
            },
        };
        let chosen = if open.len() == targets.len() {
            t
        } else {
            let mut chosen = h.zeros(open.len())?;
            for (to, &from) in open.iter().enumerate() {
                device.set_columns(&mut chosen, to, &device.columns(&t, from..from + 1)?)?;
            }
            chosen
        };
        if space.dim() + open.len() > max_basis {
            let columns: Vec<usize> = (0..keep.min(theta.len())).collect();
            space.restart(&s, &columns, &theta)?;
        }
        if space.extend(chosen)? == 0 && random(&mut space, 1)? == 0 {
            return Err(Error::numeric("no new direction could be found for the basis"));
        }
    }
}

fn check(h: &Operator, options: &DavidsonOptions<'_>) -> Result<()> {
    let dim = h.dim();
    if dim != h.cols() || !h.is_hermitian()? {
        return Err(Error::input("eigenpairs are found of Hermitian operators, and this one is not")
            .hint("`h + h.dagger()` is Hermitian"));
    }
    let avoided = options.orthogonal_to.as_ref().map_or(0, BlockVector::columns);
    if options.count == 0 || options.count + avoided > dim {
        return Err(Error::input(format!("{} eigenpairs of an operator with {dim} rows", options.count))
            .hint("ask for fewer with the option `count`"));
    }
    if !(options.tolerance > 0.0) {
        return Err(Error::input(format!("a tolerance of {}", options.tolerance)));
    }
    Ok(())
}

/// The diagonal on the device, where it is known, and where its lowest entries are, unless all are alike.
fn diagonal(h: &Operator, lowest: usize) -> Result<Option<(BlockVector, Vec<usize>)>> {
    let Some(diagonal) = h.node().diagonal() else { return Ok(None) };
    let data: Vec<C64> = diagonal.iter().map(|&x| C64::new(x, 0.0)).collect();
    let mut low: Vec<usize> = Vec::with_capacity(lowest + 1);
    for (i, x) in diagonal.iter().enumerate() {
        let place = low.partition_point(|&k| diagonal[k] <= *x);
        if place < lowest {
            low.insert(place, i);
            low.truncate(lowest);
        }
    }
    if diagonal.iter().all(|x| *x == diagonal[0]) {
        low.clear();
    }
    Ok(Some((h.device().upload(h.dtype().to_real(), h.rows(), 1, &data)?, low)))
}

/// Some basis states, a column each.
fn basis_states(h: &Operator, states: &[usize]) -> Result<BlockVector> {
    let mut data = vec![C64::default(); h.dim() * states.len()];
    for (column, &state) in states.iter().enumerate() {
        data[state * states.len() + column] = C64::new(1.0, 0.0);
    }
    h.device().upload(h.dtype(), h.rows(), states.len(), &data)
}

/// Olsen's correction K r - (<x|K r>/<x|K x>) K x with K = (theta - D)^-1: orthogonal to x, so that it does not
/// stagnate where K is nearly the inverse of H.
pub(super) fn olsen(
    h: &Operator,
    diagonal: &BlockVector,
    theta: &[f64],
    r: &BlockVector,
    x: &BlockVector,
) -> Result<BlockVector> {
    let device = h.device();
    let floor = 1e-3 * theta.iter().fold(1.0f64, |m, t| m.max(t.abs())).min(1.0);
    let mut kr = device.zeros(r.dtype(), r.rows(), r.columns())?;
    let mut kx = device.zeros(r.dtype(), r.rows(), r.columns())?;
    device.precondition(diagonal, theta, floor, r, &mut kr)?;
    device.precondition(diagonal, theta, floor, x, &mut kx)?;
    let (xr, xx) = (device.dots(x, &kr)?, device.dots(x, &kx)?);
    let back: Vec<C64> =
        xr.iter().zip(&xx).map(|(a, b)| if b.norm() > 1e-12 { -a / b } else { C64::default() }).collect();
    device.axpby(&back, &kx, &[C64::new(1.0, 0.0)], &mut kr)?;
    Ok(kr)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::cpu::Cpu;
    use crate::backend::matrix::{Csr, Indices, Values};
    use crate::operator::{Format, Stored};
    use crate::task::Interrupt;

    fn chain(n: usize) -> Operator {
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
        let csr =
            Csr { rows: n, cols: n, row_start, columns: Indices::U32(columns), values: Values::F64(values) };
        Stored::from_csr(&device, csr, Format::Csr).expect("a chain")
    }

    #[test]
    fn degenerate_pairs_of_a_ring_are_found() {
        let h = chain(101);
        let mut options = DavidsonOptions::new(5);
        options.tolerance = 1e-9;
        let eigen = davidson(&h, options, &Task::default()).expect("eigenpairs");
        let level = |k: f64| -2.0 * (2.0 * std::f64::consts::PI * k / 101.0).cos();
        for (found, exact) in eigen.values.iter().zip([0.0, 1.0, 1.0, 2.0, 2.0].map(level)) {
            assert!((found - exact).abs() < 1e-12, "{found} {exact}");
        }
        assert!(eigen.converged);
    }

    #[test]
    fn a_space_that_is_used_up_ends_well() {
        let h = chain(5);
        let eigen = davidson(&h, DavidsonOptions::new(5), &Task::default()).expect("all eigenpairs");
        assert_eq!(eigen.values.len(), 5);
        assert!((eigen.values.iter().sum::<f64>()).abs() < 1e-12);
    }
}
