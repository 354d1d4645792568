//! The product of a superblock as a list of operation records (papers.md D): a vector is a list of small dense blocks,
//! one a pair of sectors, and the Hamiltonian a sum of `X'_jl += A X_ik B^T` over them.

use std::sync::Arc;

use faer::Mat;
use faer::traits::ComplexField;

use crate::number::{C64, Scalar};

/// Numbers that blocks are made of.
pub trait Element: Scalar<Real = f64> + ComplexField {
    /// A list of records of this type.
    fn wrap(list: Arc<RecordList<Self>>) -> Records;
}

impl Element for f64 {
    fn wrap(list: Arc<RecordList<f64>>) -> Records {
        Records::Real(list)
    }
}

impl Element for C64 {
    fn wrap(list: Arc<RecordList<C64>>) -> Records {
        Records::Complex(list)
    }
}

/// A list of records, real or complex.
#[derive(Debug, Clone)]
pub enum Records {
    /// Real operators; they act on complex vectors too.
    Real(Arc<RecordList<f64>>),
    /// Complex operators.
    Complex(Arc<RecordList<C64>>),
}

/// A piece of an operator of one block: a dense matrix, or the identity, at a place in a block of sectors.
#[derive(Debug, Clone)]
pub struct Factor<T> {
    /// First row.
    pub row: usize,
    /// Number of rows.
    pub rows: usize,
    /// First column.
    pub column: usize,
    /// Number of columns.
    pub columns: usize,
    /// The factor in front.
    pub scale: T,
    /// The matrix; none for the identity.
    pub matrix: Option<Arc<Mat<T>>>,
}

/// One record.
#[derive(Debug, Clone)]
pub enum Record<T> {
    /// `X' += A X B^T` where at most one of the two is dense.
    Single {
        /// The block of the vector it reads.
        source: usize,
        /// The piece on the left.
        left: Factor<T>,
        /// The piece on the right.
        right: Factor<T>,
    },
    /// `X' += (sum A) X (sum B)^T`, both dense: the inner product is kept while the outer ones run.
    Double {
        /// The block of the vector it reads.
        source: usize,
        /// The pieces on the left.
        left: Vec<Factor<T>>,
        /// The pieces on the right.
        right: Vec<Factor<T>>,
    },
}

/// A block of a vector, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panel {
    /// Where it starts in the vector.
    pub offset: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
}

/// The records of a Hermitian operator, by the block that they write.
#[derive(Debug, Clone)]
pub struct RecordList<T> {
    /// Length of a vector.
    pub dim: usize,
    /// The blocks of a vector.
    pub panels: Vec<Panel>,
    /// The records that write each block.
    pub records: Vec<Vec<Record<T>>>,
}

impl<T: Element> Record<T> {
    /// Multiplications (and as many additions) of one product.
    pub fn work(&self, target: Panel, panels: &[Panel]) -> u64 {
        let product = |a: usize, b: usize, c: usize| (a * b * c) as u64;
        match self {
            Record::Single { left, right, .. } => match (&left.matrix, &right.matrix) {
                (Some(_), _) => product(left.rows, left.columns, right.columns),
                (_, Some(_)) => product(left.rows, right.rows, right.columns),
                _ => product(left.rows, right.rows, 1),
            },
            Record::Double { source, left, right } => {
                let inner: u64 =
                    left.iter().map(|f| product(f.rows, f.columns, panels[*source].columns)).sum();
                inner + right.iter().map(|f| product(target.rows, f.rows, f.columns)).sum::<u64>()
            }
        }
    }
}

impl<T: Element> RecordList<T> {
    /// Floating-point operations of one product: two for each multiplication and addition of real numbers.
    pub fn flops(&self) -> u64 {
        let each = if T::DTYPE.is_complex() { 8 } else { 2 };
        each * self.work()
    }

    fn work(&self) -> u64 {
        let of = |(target, records): (&Panel, &Vec<Record<T>>)| -> u64 {
            records.iter().map(|r| r.work(*target, &self.panels)).sum()
        };
        self.panels.iter().zip(&self.records).map(of).sum()
    }

    /// Number of records.
    pub fn count(&self) -> usize {
        self.records.iter().map(Vec::len).sum()
    }

    /// The distinct matrices that the records hold.
    pub fn matrices(&self) -> Vec<&Arc<Mat<T>>> {
        let mut all: Vec<&Arc<Mat<T>>> = Vec::new();
        for record in self.records.iter().flatten() {
            match record {
                Record::Single { left, right, .. } => {
                    all.extend(left.matrix.iter().chain(&right.matrix));
                }
                Record::Double { left, right, .. } => {
                    all.extend(left.iter().chain(right).filter_map(|f| f.matrix.as_ref()));
                }
            }
        }
        all.sort_by_key(|m| Arc::as_ptr(m));
        all.dedup_by_key(|m| Arc::as_ptr(m));
        all
    }

    /// Bytes of those.
    pub fn bytes(&self) -> usize {
        self.matrices().iter().map(|m| m.nrows() * m.ncols() * size_of::<T>()).sum()
    }
}
