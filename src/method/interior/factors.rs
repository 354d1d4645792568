//! Factors of a matrix minus an energy as an operator, `(H - sigma)^-1`, and what they cost beside other methods.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::backend::{BlockVector, Kernel, KernelInfo, Update};
use crate::error::{Error, Result};
use crate::number::factor::{FactorPlan, SparseFactors, SparseHermitian};
use crate::number::{C64, Series, memory};
use crate::operator::{Action, LinearOperator, Operator};
use crate::ranks;
use crate::task;

/// What a filter takes: products for each row. Between two and fifteen were measured.
const PRODUCTS: f64 = 4.0;
/// Seconds that are not worth the risk of a filter, which may take hundreds of times what it should.
const SOON: f64 = 0.5;
/// By how many times more a search by a filter is given up, where factors fit.
const SLOW: f64 = 4.0;
/// Operations a second: of factors, and of products and solutions, which wait for memory.
const RATES: (f64, f64) = (6e9, 1e9);
/// The same of a whole diagonalisation, for the third power of the number of rows.
const WHOLE: f64 = 4e9;
/// Most rows of a matrix that is diagonalised as a whole.
const MOST_ROWS: usize = 1 << 13;
/// How much more work factors may be that only count levels.
const HARDER: f64 = 20.0;
/// How many times faster products are on a GPU than on the host, which makes the factors.
const GPU: f64 = 10.0;
/// Entries of matrices that are large enough for the search of an order of their rows to take a minute: their factors,
/// but for those of chains, fit into no memory.
pub(super) const MOST_ENTRIES: usize = 30_000_000;
/// Rows read between two looks at interrupts.
const TOGETHER: usize = 1 << 14;

/// A matrix on the host that can be factorised.
pub(super) struct Inversion {
    matrix: Arc<SparseHermitian>,
    plan: Arc<FactorPlan>,
    /// The plan of pairs, and whether this is it.
    pairs: OnceCell<Arc<FactorPlan>>,
    paired: bool,
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
        Ok(Some(Inversion { matrix, plan, pairs: OnceCell::new(), paired: false, h: h.clone() }))
    }

    /// The same matrix with rows in another order, for factors where its diagonal entries are small.
    ///
    /// # Errors
    /// No memory; interruption.
    pub fn in_pairs(&self) -> Result<Inversion> {
        let plan = match self.pairs.get() {
            Some(plan) => plan.clone(),
            None => {
                let matrix = self.matrix.clone();
                let plan = Arc::new(task::apart(move || matrix.plan_of_pairs())?);
                self.pairs.get_or_init(|| plan).clone()
            }
        };
        let (matrix, h) = (self.matrix.clone(), self.h.clone());
        Ok(Inversion { matrix, plan, pairs: OnceCell::new(), paired: true, h })
    }

    /// Multiplications that one of two numbers of the matrix takes.
    fn each(&self) -> f64 {
        if self.h.dtype().is_complex() { 4.0 } else { 1.0 }
    }

    /// Seconds that a solution takes.
    fn solution(&self) -> f64 {
        4.0 * self.plan.fill() as f64 * self.each() / RATES.1
    }

    /// Seconds that factors and solutions for so many levels take, and a product with one vector.
    fn seconds(&self, count: usize) -> (f64, f64) {
        let gpu = if self.h.device().name().contains("cuda") { GPU } else { 1.0 };
        let solutions = 8.0 * (count + 8) as f64 * self.solution();
        let product = 2.0 * self.matrix.entries() as f64 * self.each() / RATES.1 / gpu;
        (3.0 * self.plan.work() * self.each() / RATES.0 + solutions, product)
    }

    /// Seconds that a diagonalisation of the whole matrix takes; infinite where it does not fit.
    pub fn whole(&self) -> f64 {
        let n = self.matrix.dim();
        let room = 64 + 24 * self.each() as u128;
        if n > MOST_ROWS || memory::ensure(room * (n * n) as u128, "a dense matrix").is_err() {
            return f64::INFINITY;
        }
        (n as f64).powi(3) * self.each() / WHOLE
    }

    /// Seconds that the cheaper of the two methods takes that need no dense matrix, as far as that can be told before.
    pub fn sparse(&self, count: usize) -> f64 {
        let (factors, product) = self.seconds(count);
        factors.min(PRODUCTS * self.matrix.dim() as f64 * product)
    }

    /// Products that take as long as so many seconds.
    pub fn products(&self, seconds: f64) -> u64 {
        (seconds / self.seconds(1).1.max(1e-12)) as u64
    }

    /// Seconds that a block of a space takes: its solutions, and to make them orthogonal to so many vectors.
    pub fn block(&self, columns: usize, known: usize) -> f64 {
        let overlaps = 8.0 * (self.matrix.dim() * (known + columns)) as f64 * self.each() / WHOLE;
        columns as f64 * (self.solution() + overlaps)
    }

    /// Seconds of a look at so many pairs in a space.
    pub fn look(&self, space: usize, wanted: usize) -> f64 {
        let (n, d) = (self.matrix.dim() as f64, space as f64);
        (d.powi(3) + 2.0 * n * (d + wanted as f64) * wanted as f64) * self.each() / WHOLE
    }

    /// Whether factors fit into memory.
    fn fits(&self) -> bool {
        let size = if self.h.dtype().is_complex() { 16 } else { 8 };
        memory::ensure(2 * self.plan.fill() as u128 * size, "the factors of a matrix").is_ok()
    }

    /// Whether factors are made in less time than a filter takes to find so many levels, as far as that can be told
    /// before, or soon whatever a filter takes, and fit into memory.
    pub fn pays(&self, count: usize) -> bool {
        let (factors, product) = self.seconds(count);
        factors < SOON.max(PRODUCTS * self.matrix.dim() as f64 * product) && self.fits()
    }

    /// Products after which a filter has taken much longer than it should, and than factors would.
    pub fn enough(&self, count: usize) -> u64 {
        let (factors, product) = self.seconds(count);
        let usual = PRODUCTS * self.matrix.dim() as f64;
        if self.fits() { (SLOW * usual.max(factors / product.max(1e-12))) as u64 } else { u64::MAX }
    }

    /// The matrix with its rows in pairs, where they are in another order now, and factors do not take much longer so.
    ///
    /// # Errors
    /// No memory; interruption.
    pub(super) fn harder(&self) -> Result<Option<Inversion>> {
        if self.paired {
            return Ok(None);
        }
        let pairs = self.in_pairs()?;
        let fits = pairs.plan.work() <= HARDER * self.plan.work() && ranks::told(pairs.fits())?;
        Ok(fits.then_some(pairs))
    }

    /// Factors of the matrix minus an energy; none where a pivot vanishes.
    pub(super) fn at(&self, sigma: f64) -> Result<Option<ShiftedInverse>> {
        let (matrix, plan) = (self.matrix.clone(), self.plan.clone());
        let factors = task::apart(move || Ok(matrix.factors(&plan, sigma)))?;
        Ok(factors.map(|factors| ShiftedInverse {
            h: self.h.clone(),
            factors: Arc::new(factors),
            sigma,
            refined: false,
        }))
    }
}

/// `(H - sigma)^-1`.
#[derive(Clone)]
pub(super) struct ShiftedInverse {
    h: Operator,
    pub factors: Arc<SparseFactors>,
    pub sigma: f64,
    /// Whether each solution takes a step of refinement.
    pub refined: bool,
}

impl ShiftedInverse {
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
    pub(super) fn left(&self, b: &BlockVector, x: &BlockVector) -> Result<BlockVector> {
        let mut r = b.clone();
        self.h.update(Update { alpha: -1.0, beta: self.sigma, gamma: 1.0 }, x, &mut r, None)?;
        Ok(r)
    }
}

impl Action for ShiftedInverse {
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
        let ones = vec![C64::ONE; b.columns()];
        self.h.device().axpby(&ones, &more, &ones, &mut x)?;
        Ok(x)
    }

    fn about(&self) -> KernelInfo {
        let KernelInfo { format, bytes, entries } = self.h.info();
        KernelInfo { format: format!("inverse of {format}"), bytes, entries }
    }
}

impl LinearOperator for ShiftedInverse {
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
