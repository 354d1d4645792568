//! Factors of sparse Hermitian matrices with a shift, `H - sigma = P L B L^H P^T`, by faer: rows in an order of little
//! fill, pivots of one and two rows chosen among those of a supernode (Bunch, Kaufman, Math. Comp. 31 (1977) 163). B
//! has as many negative eigenvalues as H has below sigma (Sylvester's law of inertia). Since pivots are looked for in
//! few places only, factors may be bad where a shift happens to make the first ones small:
//! whoever uses them measures what a solution leaves.
//!
//! One thread makes them: faer would wake others for each product of two blocks, most of which are small. With two
//! threads factors of 2e7 operations took 20 times as long, those of 1e11 twice as long.

mod pairs;

use std::sync::Arc;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::perm::PermRef;
use faer::sparse::linalg::cholesky::supernodal::SupernodalIntranodeLbltRef;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, IntranodeLbltRef, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering,
    factorize_symbolic_cholesky,
};
use faer::sparse::linalg::{SupernodalThreshold, SymbolicSupernodalParams};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Conj, MatMut, Par, Side};

use super::element::SeriesElement;
use super::{C64, Series};
use crate::error::{Error, Result};

/// A sparse Hermitian matrix: of every column the diagonal entry, zero or not, and what stands below it.
pub struct SparseHermitian {
    start: Vec<usize>,
    row: Vec<usize>,
    values: HermitianValues,
}

enum HermitianValues {
    Real(Vec<f64>),
    Complex(Vec<C64>),
}

/// Where the numbers of factors stand.
pub struct FactorPlan {
    symbolic: SymbolicCholesky<usize>,
}

/// Factors of a matrix minus a number.
pub struct SparseFactors {
    plan: Arc<FactorPlan>,
    parts: AnyFactors,
}

enum AnyFactors {
    Real(FactorsOf<f64>),
    Complex(FactorsOf<C64>),
}

struct FactorsOf<T> {
    values: Vec<T>,
    /// What stands below the diagonal in blocks of two rows; zero elsewhere.
    below: Vec<T>,
    forward: Vec<usize>,
    inverse: Vec<usize>,
}

/// Columns of two supernodes in one, up to so many whatever zeros that stores, and beyond with such a share of zeros:
/// faer's own values, but for the first, with which a pair of rows and one more are in one.
const RELAXED: [(usize, f64); 4] = [(6, 1.0), (16, 0.8), (48, 0.1), (usize::MAX, 0.05)];

fn symbolic(
    pattern: SymbolicSparseColMatRef<'_, usize>,
    order: SymmetricOrdering<'_, usize>,
) -> Result<SymbolicCholesky<usize>> {
    let params = CholeskySymbolicParams {
        supernodal_flop_ratio_threshold: SupernodalThreshold::FORCE_SUPERNODAL,
        supernodal_params: SymbolicSupernodalParams { relax: Some(&RELAXED) },
        ..Default::default()
    };
    let symbolic = factorize_symbolic_cholesky(pattern, Side::Lower, order, params);
    symbolic.map_err(|e| Error::memory(format!("factors of a matrix: {e}")))
}

impl SparseHermitian {
    /// The matrix of `n` columns; `below` gives the rows of each from the diagonal on, ascending. `complex`: whether
    /// imaginary parts count.
    ///
    /// # Errors
    /// Those of `below`.
    pub fn from_columns(
        n: usize,
        complex: bool,
        mut below: impl FnMut(usize, &mut Vec<(usize, C64)>) -> Result<()>,
    ) -> Result<SparseHermitian> {
        let (mut start, mut row, mut real, mut full) = (vec![0], Vec::new(), Vec::new(), Vec::new());
        let mut column = Vec::new();
        for j in 0..n {
            column.clear();
            below(j, &mut column)?;
            row.extend(column.iter().map(|(i, _)| *i));
            if complex {
                full.extend(column.iter().map(|(_, z)| *z));
            } else {
                real.extend(column.iter().map(|(_, z)| z.re));
            }
            start.push(row.len());
        }
        let values = if complex { HermitianValues::Complex(full) } else { HermitianValues::Real(real) };
        Ok(SparseHermitian { start, row, values })
    }

    /// How many rows it has.
    pub fn dim(&self) -> usize {
        self.start.len() - 1
    }

    /// Its entries, those above the diagonal too.
    pub fn entries(&self) -> usize {
        2 * self.row.len() - self.dim()
    }

    fn pattern(&self) -> SymbolicSparseColMatRef<'_, usize> {
        SymbolicSparseColMatRef::new_checked(self.dim(), self.dim(), &self.start, None, &self.row)
    }

    /// Looks for an order of rows with little fill.
    ///
    /// # Errors
    /// No memory.
    pub fn plan(&self) -> Result<FactorPlan> {
        Ok(FactorPlan { symbolic: symbolic(self.pattern(), SymmetricOrdering::Amd)? })
    }

    /// The same with coupled rows in pairs that stand together, so that both are pivots at once: factors are good where
    /// diagonal entries are small, as at the energy of all sites.
    ///
    /// # Errors
    /// No memory.
    pub fn plan_of_pairs(&self) -> Result<FactorPlan> {
        let groups = pairs::groups(&self.start, &self.row);
        let mut of = vec![0; self.dim()];
        for (k, group) in groups.iter().enumerate() {
            group.iter().for_each(|&row| of[row] = k);
        }
        let (start, row) = pairs::joined(&self.start, &self.row, &of, groups.len());
        let pattern = SymbolicSparseColMatRef::new_checked(groups.len(), groups.len(), &start, None, &row);
        let symbolic_of_groups = symbolic(pattern, SymmetricOrdering::Amd)?;
        let order = symbolic_of_groups.perm().map(|perm| perm.arrays().0.to_vec());
        let order = order.unwrap_or_else(|| (0..groups.len()).collect());
        // Rows without a partner come first: the pivot of a pair that they are coupled to is then of two rows.
        let forward: Vec<usize> = order.into_iter().flat_map(|k| groups[k].iter().rev().copied()).collect();
        let mut inverse = vec![0; forward.len()];
        forward.iter().enumerate().for_each(|(new, &old)| inverse[old] = new);
        let perm = PermRef::new_checked(&forward, &inverse, self.dim());
        Ok(FactorPlan { symbolic: symbolic(self.pattern(), SymmetricOrdering::Custom(perm))? })
    }

    /// Factors of the matrix minus `shift`; none where a pivot vanishes.
    pub fn factors(&self, plan: &Arc<FactorPlan>, shift: f64) -> Option<SparseFactors> {
        let parts = match &self.values {
            HermitianValues::Real(values) => AnyFactors::Real(self.part(values, plan, shift)?),
            HermitianValues::Complex(values) => {
                AnyFactors::Complex(self.part(values, plan, C64::new(shift, 0.0))?)
            }
        };
        Some(SparseFactors { plan: plan.clone(), parts })
    }

    fn part<T: SeriesElement>(&self, values: &[T], plan: &FactorPlan, shift: T) -> Option<FactorsOf<T>> {
        let n = self.dim();
        let mut shifted = values.to_vec();
        self.start[..n].iter().for_each(|&diagonal| shifted[diagonal] -= shift);
        let symbolic = &plan.symbolic;
        let zeros = |n| vec![T::zero_impl(); n];
        let mut part = FactorsOf {
            values: zeros(symbolic.len_val()),
            below: zeros(n),
            forward: vec![0; n],
            inverse: vec![0; n],
        };
        let room = symbolic.factorize_numeric_intranode_lblt_scratch::<T>(Par::Seq, Default::default());
        symbolic.factorize_numeric_intranode_lblt(
            &mut part.values,
            &mut part.below,
            &mut part.forward,
            &mut part.inverse,
            SparseColMatRef::new(self.pattern(), &shifted),
            Side::Lower,
            Par::Seq,
            MemStack::new(&mut MemBuffer::new(room)),
            Default::default(),
        );
        part.values.iter().all(|x| x.modulus().is_finite()).then_some(part)
    }
}

impl FactorPlan {
    /// Numbers that factors have.
    pub fn fill(&self) -> usize {
        self.symbolic.len_val()
    }

    /// Operations that making them takes.
    pub fn work(&self) -> f64 {
        let symbolic = match self.symbolic.raw() {
            SymbolicCholeskyRaw::Supernodal(symbolic) => symbolic,
            // There are no more than a few for each number.
            SymbolicCholeskyRaw::Simplicial(_) => return self.fill() as f64,
        };
        let ends = symbolic.supernode_begin().windows(2);
        let each = ends.zip(symbolic.nnz_per_super()).map(|(ends, &below)| {
            let (columns, rows) = ((ends[1] - ends[0]) as f64, (ends[1] - ends[0] + below) as f64);
            // The sum of squares of column lengths.
            columns * (rows * rows - rows * columns + columns * columns / 3.0)
        });
        each.sum()
    }
}

impl SparseFactors {
    /// Overwrites columns b, row-major, with the solutions of `(H - sigma) x = b`.
    ///
    /// # Errors
    /// Complex numbers where the factors are real, or a length that does not fit.
    pub fn solve(&self, b: &mut Series, columns: usize) -> Result<()> {
        match (&self.parts, b) {
            (AnyFactors::Real(part), Series::Real(b)) => part.solve(&self.plan, b, columns),
            (AnyFactors::Complex(part), Series::Complex(b)) => part.solve(&self.plan, b, columns),
            _ => Err(Error::internal("numbers of another kind than the factors have")),
        }
    }

    /// How many eigenvalues lie below sigma.
    pub fn below(&self) -> usize {
        match &self.parts {
            AnyFactors::Real(part) => part.negative(&self.plan),
            AnyFactors::Complex(part) => part.negative(&self.plan),
        }
    }
}

impl<T: SeriesElement> FactorsOf<T> {
    fn solve(&self, plan: &FactorPlan, b: &mut [T], columns: usize) -> Result<()> {
        let n = self.below.len();
        if b.len() != n * columns {
            return Err(Error::internal("columns of another length than the factors have"));
        }
        let factors = IntranodeLbltRef::new(&plan.symbolic, &self.values, &self.below, self.order());
        let room = plan.symbolic.solve_in_place_scratch::<T>(columns, Par::Seq);
        let b = MatMut::from_row_major_slice_mut(b, n, columns);
        factors.solve_in_place_with_conj(Conj::No, b, Par::Seq, MemStack::new(&mut MemBuffer::new(room)));
        Ok(())
    }

    fn order(&self) -> PermRef<'_, usize> {
        PermRef::new_checked(&self.forward, &self.inverse, self.below.len())
    }

    /// Negative eigenvalues of the blocks of B.
    fn negative(&self, plan: &FactorPlan) -> usize {
        let symbolic = match plan.symbolic.raw() {
            SymbolicCholeskyRaw::Supernodal(symbolic) => symbolic,
            SymbolicCholeskyRaw::Simplicial(symbolic) => {
                // Rows of no work are without blocks, and their pivots stand first in each column.
                let first = &symbolic.col_ptr()[..self.below.len()];
                return first.iter().filter(|&&at| self.values[at].real() < 0.0).count();
            }
        };
        let factors = SupernodalIntranodeLbltRef::new(symbolic, &self.values, &self.below, self.order());
        let mut negative = 0;
        for s in 0..symbolic.n_supernodes() {
            let block = factors.supernode(s);
            let (size, first) = (block.val().ncols(), block.start());
            let mut k = 0;
            while k < size {
                let (a, off) = (block.val().get(k, k).real(), self.below[first + k].modulus());
                if off == 0.0 {
                    negative += usize::from(a < 0.0);
                    k += 1;
                    continue;
                }
                let b = block.val().get(k + 1, k + 1).real();
                // The determinant is negative, of zero, or of the sign of two equal ones.
                negative += match a * b > off * off {
                    true if a < 0.0 => 2,
                    true => 0,
                    false => 1,
                };
                k += 2;
            }
        }
        negative
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Matrix;
    use crate::number::philox::{normals, words};

    /// A random sparse Hermitian matrix, dense and as columns.
    fn random(n: usize, each: u64, complex: bool, seed: u64) -> (Matrix, SparseHermitian) {
        let mut dense = vec![C64::ZERO; n * n];
        for k in 0..each * n as u64 {
            let draw = words(seed, 0, k, 0);
            let (i, j) = (draw[0] as usize % n, draw[1] as usize % n);
            let (a, b) = normals(words(seed, 1, k, 0));
            let z = C64::new(a, if complex && i != j { b } else { 0.0 });
            dense[i * n + j] = z;
            dense[j * n + i] = z.conj();
        }
        let sparse = SparseHermitian::from_columns(n, complex, |j, column| {
            let below = (j..n).map(|i| (i, dense[i * n + j]));
            column.extend(below.filter(|(i, z)| *i == j || *z != C64::ZERO));
            Ok(())
        });
        let sparse = sparse.unwrap();
        (Matrix::new(n, n, Series::Complex(dense.clone())).unwrap(), sparse)
    }

    #[test]
    fn they_solve_and_count_as_dense_matrices_do() {
        for (seed, n) in [1, 2, 3, 7, 20, 61, 150].into_iter().enumerate() {
            for complex in [false, true] {
                let (dense, sparse) = random(n, 2, complex, seed as u64);
                let levels = dense.eigh().unwrap().0;
                let levels = levels.as_real("levels").unwrap();
                let plan = Arc::new(sparse.plan().unwrap());
                let pairs = Arc::new(sparse.plan_of_pairs().unwrap());
                for (shift, plan) in [(-1.234, &plan), (0.071, &plan), (0.9, &pairs), (0.071, &pairs)] {
                    let factors = sparse.factors(plan, shift).unwrap();
                    assert_eq!(
                        factors.below(),
                        levels.iter().filter(|e| **e < shift).count(),
                        "{n}, {shift}"
                    );
                    let b: Vec<C64> = (0..2 * n as u64)
                        .map(|k| normals(words(9, 0, k, 0)))
                        .map(|(a, b)| C64::new(a, if complex { b } else { 0.0 }))
                        .collect();
                    let mut x = match complex {
                        true => Series::Complex(b.clone()),
                        false => Series::Real(b.iter().map(|z| z.re).collect()),
                    };
                    factors.solve(&mut x, 2).unwrap();
                    let x = Matrix::new(n, 2, Series::Complex(x.to_complex())).unwrap();
                    let left = dense.matmul(&x).unwrap().data().to_complex();
                    let (x, size) = (x.data().to_complex(), x.max_abs());
                    for (k, b) in b.iter().enumerate() {
                        let off = (left[k] - x[k] * shift - b).norm();
                        assert!(off < 1e-10 * (1.0 + size), "{n}, {shift}: {off:e} of {size:e}");
                    }
                }
            }
        }
    }

    #[test]
    fn pairs_are_pivots_where_the_diagonal_is_small() {
        // Sites in a row, of energy zero, with both ends at one side or not.
        for n in [2, 3, 10, 11, 60, 61] {
            let chain = SparseHermitian::from_columns(n, false, |j, column| {
                column.push((j, C64::ZERO));
                column.extend((j + 1 < n).then_some((j + 1, C64::new(-1.0, 0.0))));
                Ok(())
            });
            let chain = chain.unwrap();
            let plan = Arc::new(chain.plan_of_pairs().unwrap());
            for shift in [1e-9, -1e-9] {
                let factors = chain.factors(&plan, shift).unwrap();
                // An odd one has a level at zero.
                let below = n / 2 + usize::from(n % 2 == 1 && shift > 0.0);
                assert_eq!(factors.below(), below, "{n}, {shift}");
                let mut x = Series::Real((0..n).map(|k| k as f64 - 2.5).collect());
                factors.solve(&mut x, 1).unwrap();
                let x: Vec<f64> = x.to_complex().iter().map(|z| z.re).collect();
                let at = |k: usize| x.get(k).copied().unwrap_or(0.0);
                let size = x.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                for k in 0..n {
                    let left = -at(k.wrapping_sub(1)) - at(k + 1) - shift * at(k) - (k as f64 - 2.5);
                    assert!(left.abs() < 1e-13 * (size + n as f64), "{n}, {shift}: {left:e} of {size:e}");
                }
            }
        }
    }

    #[test]
    fn a_pivot_of_zero_gives_none() {
        let diagonal = SparseHermitian::from_columns(2, false, |j, column| {
            column.push((j, C64::new([0.5, 0.25][j], 0.0)));
            Ok(())
        });
        let diagonal = diagonal.unwrap();
        let plan = Arc::new(diagonal.plan().unwrap());
        assert!(diagonal.factors(&plan, 0.25).is_none_or(|f| {
            let mut one = Series::Real(vec![1.0, 1.0]);
            f.solve(&mut one, 1).unwrap();
            !one.to_complex().iter().all(|z| z.is_finite())
        }));
        assert_eq!(diagonal.factors(&plan, 0.3).unwrap().below(), 1);
    }
}
