//! Dense matrices of operators and bases: on the host, or in the memory of the backend that made them, from where they come when
//! the host asks. What stays there need not travel before it is computed with again.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use faer::traits::ComplexField;
use faer::{Mat, MatRef};

use crate::backend::{BlockVector, Device};
use crate::error::{Error, Result};
use crate::number::{C64, Scalar};

/// Numbers that dense matrices are made of.
pub trait DenseNumber: Scalar<Real = f64> + ComplexField {
    /// Real numbers as such of this type; none where that is another.
    fn of_reals(_numbers: Vec<f64>) -> Option<Vec<Self>> {
        None
    }
    /// A matrix as one of real numbers; none where this type is another.
    fn as_real(_matrix: &Held<Self>) -> Option<&Held<f64>> {
        None
    }
}

impl DenseNumber for f64 {
    fn of_reals(numbers: Vec<f64>) -> Option<Vec<f64>> {
        Some(numbers)
    }

    fn as_real(matrix: &Held<f64>) -> Option<&Held<f64>> {
        Some(matrix)
    }
}

impl DenseNumber for C64 {}

/// What keeps dense real matrices in its memory from one step of a search to the next.
pub trait Keeper: Send + Sync {
    /// Learns of numbers that it keeps, so that it may send them to the host where memory is short.
    fn keep(&self, numbers: &Arc<DeviceNumbers>) -> Result<()>;

    /// Matrices put together from others, one after the other.
    fn composed(&self, all: &[Composed<'_>]) -> Result<BlockVector>;

    /// Sums of squares `weight M^T M`, each of matrices of so many columns, one after the other.
    fn squares(&self, all: &[(usize, Vec<Square<'_>>)]) -> Result<BlockVector>;

    /// Overwrites numbers of a block that nobody else uses meanwhile, from `first` on.
    fn replace(&self, block: &BlockVector, first: usize, numbers: &[f64]) -> Result<()>;

    /// Eigenvalues, ascending, of a symmetric matrix of so many rows, whose first number in the block is told. Its eigenvectors take
    /// its place, one after the other. Nobody else may use these numbers meanwhile. None where there is no solver.
    fn eigh(&self, rows: usize, block: &BlockVector, first: usize) -> Result<Option<Vec<f64>>>;
}

/// A matrix M that stands row by row in a block, for its square `weight M^T M`.
pub struct Square<'a> {
    pub from: &'a BlockVector,
    /// Its first number there.
    pub first: usize,
    pub rows: usize,
    pub weight: f64,
}

/// A matrix that is put together from others.
pub struct Composed<'a> {
    pub rows: usize,
    pub columns: usize,
    /// Whether its numbers are to stand row by row, and not column by column.
    pub by_rows: bool,
    pub terms: Vec<Added<'a>>,
}

/// A rectangle of another matrix, added where it says.
pub struct Added<'a> {
    pub scale: f64,
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
    pub from: TermSource<'a>,
}

/// Where the numbers of a rectangle come from.
#[derive(Clone, Copy)]
pub enum TermSource<'a> {
    Identity,
    Matrix(&'a Held<f64>),
    /// Numbers of a block: the first, and the distances from row to row and from column to column.
    Block(&'a BlockVector, usize, [i64; 2]),
}

/// Real numbers of matrices, one after the other, in the memory of a backend until they are brought to the host.
pub struct DeviceNumbers {
    device: Device,
    there: Mutex<Option<BlockVector>>,
    here: OnceLock<Vec<f64>>,
}

impl DeviceNumbers {
    /// Those of a block, which nobody changes any more.
    ///
    /// # Errors
    /// Those of the backend, which may want to make room.
    pub fn new(device: &Device, block: BlockVector) -> Result<Arc<DeviceNumbers>> {
        let there = Mutex::new(Some(block));
        let numbers = Arc::new(DeviceNumbers { device: device.clone(), there, here: OnceLock::new() });
        if let Some(keeper) = device.keeper() {
            keeper.keep(&numbers)?;
        }
        Ok(numbers)
    }

    fn lock(&self) -> MutexGuard<'_, Option<BlockVector>> {
        self.there.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The block, as long as the backend has it.
    pub fn there(&self) -> Option<BlockVector> {
        self.lock().clone()
    }

    /// Bytes that the backend's memory holds.
    pub fn bytes(&self) -> usize {
        self.lock().as_ref().map_or(0, BlockVector::bytes)
    }

    /// Brings them to the host, and lets the backend have its memory back.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn bring(&self) -> Result<()> {
        let Some(block) = self.there() else { return Ok(()) };
        let all = self.device.download_part(&block, 0..block.rows.local)?;
        // Whoever was faster has brought the same.
        let _ = self.here.set(all);
        *self.lock() = None;
        Ok(())
    }

    fn part(&self, range: Range<usize>) -> Result<Vec<f64>> {
        if let Some(block) = self.there() {
            return self.device.download_part(&block, range);
        }
        let here = self.here.get().and_then(|all| all.get(range));
        here.map(<[f64]>::to_vec).ok_or_else(missing)
    }
}

fn missing() -> Error {
    Error::internal("a matrix that is neither here nor there")
}

/// A dense matrix, which somebody may have in another memory.
pub struct Held<T> {
    rows: usize,
    columns: usize,
    here: OnceLock<Mat<T>>,
    there: Option<There>,
}

/// Its numbers elsewhere: the first, and whether they stand row by row.
struct There {
    numbers: Arc<DeviceNumbers>,
    first: usize,
    by_rows: bool,
}

impl<T: DenseNumber> From<Mat<T>> for Held<T> {
    fn from(m: Mat<T>) -> Held<T> {
        Held { rows: m.nrows(), columns: m.ncols(), here: OnceLock::from(m), there: None }
    }
}

impl<T> Held<T> {
    /// A matrix whose numbers begin at `first`.
    pub fn within(
        numbers: &Arc<DeviceNumbers>,
        first: usize,
        (rows, columns): (usize, usize),
        by_rows: bool,
    ) -> Held<T> {
        let there = Some(There { numbers: numbers.clone(), first, by_rows });
        Held { rows, columns, here: OnceLock::new(), there }
    }

    pub fn nrows(&self) -> usize {
        self.rows
    }

    pub fn ncols(&self) -> usize {
        self.columns
    }

    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// The block of a backend that has it, its first number there, and whether its numbers stand row by row.
    pub fn there(&self) -> Option<(BlockVector, usize, bool)> {
        let there = self.there.as_ref()?;
        Some((there.numbers.there()?, there.first, there.by_rows))
    }

    /// The matrix, if the host has it already.
    pub fn known(&self) -> Option<&Mat<T>> {
        self.here.get()
    }
}

impl<T: DenseNumber> Held<T> {
    /// The matrix on the host.
    ///
    /// # Errors
    /// Those of the backend that it comes from.
    pub fn here(&self) -> Result<MatRef<'_, T>> {
        if let Some(m) = self.here.get() {
            return Ok(m.as_ref());
        }
        let there = self.there.as_ref().ok_or_else(missing)?;
        let numbers = there.numbers.part(there.first..there.first + self.rows * self.columns)?;
        let numbers = T::of_reals(numbers).ok_or_else(missing)?;
        let m = match there.by_rows {
            true => MatRef::from_row_major_slice(&numbers, self.rows, self.columns).to_owned(),
            false => MatRef::from_column_major_slice(&numbers, self.rows, self.columns).to_owned(),
        };
        Ok(self.here.get_or_init(|| m).as_ref())
    }
}

impl<T> std::fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.here.get().is_some() { "here" } else { "there" };
        write!(f, "{} x {} {place}", self.rows, self.columns)
    }
}
