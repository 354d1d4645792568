//! Dense matrices of operators and bases: on the host, or in the memory of the backend that made them, from which they
//! are copied if the host needs them. Matrices that stay there need not be copied before the next computation.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use faer::traits::ComplexField;
use faer::{Mat, MatRef};

use crate::backend::lone::{LoneRank, lone};
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
    fn as_real(_matrix: &HeldMatrix<Self>) -> Option<&HeldMatrix<f64>> {
        None
    }
}

impl DenseNumber for f64 {
    fn of_reals(numbers: Vec<f64>) -> Option<Vec<f64>> {
        Some(numbers)
    }

    fn as_real(matrix: &HeldMatrix<f64>) -> Option<&HeldMatrix<f64>> {
        Some(matrix)
    }
}

impl DenseNumber for C64 {}

/// What keeps dense real matrices in its memory from one step of a search to the next.
pub trait MatrixKeeper: Send + Sync {
    /// Learns of numbers that it keeps, so that it may send them to the host where memory is short.
    fn keep(&self, numbers: &Arc<DeviceNumbers>) -> Result<()>;

    /// Matrices put together from others, one after the other.
    fn composed(&self, all: &[Composed<'_>]) -> Result<BlockVector>;

    /// Sums of squares `weight M^T M`, each of matrices of so many columns, one after the other.
    fn squares(&self, all: &[(usize, Vec<Square<'_>>)]) -> Result<BlockVector>;

    /// Overwrites numbers of a block that nobody else uses meanwhile, from `first` on.
    fn replace(&self, block: &BlockVector, first: usize, numbers: &[f64]) -> Result<()>;

    /// Eigenvalues, ascending, of a symmetric matrix of so many rows, whose first number in the block is told. Its
    /// eigenvectors take its place, one after the other. Nobody else may use these numbers meanwhile.
    /// None where there is no solver.
    fn eigh(&self, rows: usize, block: &BlockVector, first: usize) -> Result<Option<Vec<f64>>>;

    /// The same for a block that another one keeps, whose memory this one reaches; none where it does not,
    /// or has no solver yet.
    fn eigh_for_other(&self, _rows: usize, _block: &BlockVector, _first: usize) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    /// How many devices find eigenvectors at once.
    fn solvers(&self) -> usize {
        1
    }
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
    pub terms: Vec<AddedRectangle<'a>>,
}

/// A rectangle of another matrix, added where it says.
pub struct AddedRectangle<'a> {
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
    Matrix(&'a HeldMatrix<f64>),
    /// Numbers of a block: the first, and the distances from row to row and from column to column.
    Block(&'a BlockVector, usize, [i64; 2]),
}

/// Numbers that one rank tells the others all at once: single matrices would take as many messages.
const AT_ONCE: usize = 1 << 19;

/// Real numbers of matrices, one after the other, in the memory of a backend until they are brought to the host.
pub struct DeviceNumbers {
    /// Who has them: of ranks the one that has made them.
    device: Device,
    there: Mutex<Option<BlockVector>>,
    here: OnceLock<Vec<f64>>,
    count: usize,
    /// The rank that has them, if others only know of them, and what it has told.
    lone: Option<LoneRank>,
    told: OnceLock<Vec<f64>>,
}

impl DeviceNumbers {
    /// Those of a block, which nobody changes any more.
    ///
    /// # Errors
    /// Those of the backend, which may want to make room.
    pub fn new(device: &Device, block: BlockVector) -> Result<Arc<DeviceNumbers>> {
        let (count, lone) = (block.rows.local, lone(device));
        let own = device.alone().filter(|_| lone.is_some()).unwrap_or(device).clone();
        let there = Mutex::new(Some(block));
        let (here, told) = (OnceLock::new(), OnceLock::new());
        let numbers = Arc::new(DeviceNumbers { device: own, there, here, count, lone, told });
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

    /// Whether they count as the backend's: alike on all ranks, also where the one that has them is short of memory.
    fn are_there(&self) -> bool {
        self.lone.is_some() || self.lock().is_some()
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

    /// Some of them, on the host of every rank. Where one rank has them, all ranks call this together.
    fn told(&self, range: Range<usize>) -> Result<Vec<f64>> {
        let Some(lone) = self.lone else { return self.part(range) };
        if self.count > AT_ONCE {
            return lone.tell(range.len(), || self.part(range));
        }
        let all = match self.told.get() {
            Some(all) => all,
            None => {
                let all = lone.tell(self.count, || self.part(0..self.count))?;
                self.told.get_or_init(|| all)
            }
        };
        all.get(range).map(<[f64]>::to_vec).ok_or_else(missing)
    }

    /// Some of them, on the host of whoever has them.
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
pub struct HeldMatrix<T> {
    rows: usize,
    columns: usize,
    here: OnceLock<Mat<T>>,
    there: Option<HeldElsewhere>,
    /// What the one rank that has it has on its host, which does not tell the others.
    alone: OnceLock<Mat<T>>,
}

/// Its numbers elsewhere: the first, and whether they stand row by row.
struct HeldElsewhere {
    numbers: Arc<DeviceNumbers>,
    first: usize,
    by_rows: bool,
}

impl<T: DenseNumber> From<Mat<T>> for HeldMatrix<T> {
    fn from(m: Mat<T>) -> HeldMatrix<T> {
        HeldMatrix {
            rows: m.nrows(),
            columns: m.ncols(),
            here: OnceLock::from(m),
            there: None,
            alone: OnceLock::new(),
        }
    }
}

impl<T> HeldMatrix<T> {
    /// A matrix whose numbers begin at `first`.
    pub fn within(
        numbers: &Arc<DeviceNumbers>,
        first: usize,
        (rows, columns): (usize, usize),
        by_rows: bool,
    ) -> HeldMatrix<T> {
        let there = Some(HeldElsewhere { numbers: numbers.clone(), first, by_rows });
        HeldMatrix { rows, columns, here: OnceLock::new(), there, alone: OnceLock::new() }
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

    /// Whether a backend has it, which all ranks say alike.
    pub fn is_there(&self) -> bool {
        self.there.as_ref().is_some_and(|there| there.numbers.are_there())
    }

    /// Whether one rank has it and the others only know of it.
    fn is_lone(&self) -> bool {
        self.there.as_ref().is_some_and(|there| there.numbers.lone.is_some())
    }

    /// The block of a backend that has it, its first number there, and whether its numbers stand row by row.
    pub fn there(&self) -> Option<(BlockVector, usize, bool)> {
        let there = self.there.as_ref()?;
        Some((there.numbers.there()?, there.first, there.by_rows))
    }

    /// The matrix, if the hosts have it already.
    pub fn known(&self) -> Option<&Mat<T>> {
        self.here.get()
    }

    /// The matrix, if this host has it already.
    pub fn known_alone(&self) -> Option<&Mat<T>> {
        self.here.get().or_else(|| self.alone.get())
    }
}

impl<T: DenseNumber> HeldMatrix<T> {
    /// The matrix on the host. Where one rank has it, all ranks call this together, not on several threads.
    ///
    /// # Errors
    /// Those of the backend that it comes from.
    pub fn here(&self) -> Result<MatRef<'_, T>> {
        self.brought(&self.here, DeviceNumbers::told)
    }

    /// The same for the one rank that has it, or for each rank by itself.
    ///
    /// # Errors
    /// Those of the backend that it comes from.
    pub fn here_alone(&self) -> Result<MatRef<'_, T>> {
        match self.here.get() {
            None if self.is_lone() => self.brought(&self.alone, DeviceNumbers::part),
            _ => self.here(),
        }
    }

    /// The matrix in its place, its numbers brought there where it is missing.
    fn brought<'a>(
        &'a self,
        place: &'a OnceLock<Mat<T>>,
        bring: impl Fn(&DeviceNumbers, Range<usize>) -> Result<Vec<f64>>,
    ) -> Result<MatRef<'a, T>> {
        if let Some(m) = place.get() {
            return Ok(m.as_ref());
        }
        let there = self.there.as_ref().ok_or_else(missing)?;
        let numbers = bring(&there.numbers, there.first..there.first + self.rows * self.columns)?;
        let numbers = T::of_reals(numbers).ok_or_else(missing)?;
        let m = match there.by_rows {
            true => MatRef::from_row_major_slice(&numbers, self.rows, self.columns).to_owned(),
            false => MatRef::from_column_major_slice(&numbers, self.rows, self.columns).to_owned(),
        };
        Ok(place.get_or_init(|| m).as_ref())
    }
}

/// Brings matrices that one rank has to the hosts of all, in one order, before threads ask for them in any.
///
/// # Errors
/// Those of the rank that has them, and of MPI.
pub fn before_threads<'a, T: DenseNumber>(all: impl Iterator<Item = &'a Arc<HeldMatrix<T>>>) -> Result<()> {
    all.filter(|m| m.is_lone()).try_for_each(|m| m.here().map(|_| ()))
}

impl<T> std::fmt::Debug for HeldMatrix<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.here.get().is_some() { "here" } else { "there" };
        write!(f, "{} x {} {place}", self.rows, self.columns)
    }
}
