//! The block vector: columns of equal length that live on a device.

use std::ops::Range;

use super::Random;
use crate::backend::cpu::{HostBlock, random_entry};
use crate::backend::cuda::DeviceBlock;
use crate::backend::ranks::OwnRows;
use crate::backend::split::SplitRows;
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// A hypercubic lattice of sites with the same number of rows each: row = site * per_site + component, the first
/// direction fastest. Rows that live on one may be laid out by a backend as its kernels like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Sites in each direction.
    pub dims: [usize; 4],
    /// Rows a site.
    pub per_site: usize,
}

impl Grid {
    pub fn sites(&self) -> usize {
        self.dims.iter().product()
    }

    /// The coordinates of a site, the inverse of `site`.
    pub fn coordinates(&self, mut site: usize) -> [usize; 4] {
        self.dims.map(|n| {
            let x = site % n;
            site /= n;
            x
        })
    }

    /// The site at coordinates inside the lattice.
    pub fn site(&self, x: [usize; 4]) -> usize {
        x[0] + self.dims[0] * (x[1] + self.dims[1] * (x[2] + self.dims[2] * x[3]))
    }
}

/// Which rows of a global vector are held here: all of them on one process, one rank's share otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Rows in all.
    pub global: usize,
    /// Global number of the first row held here.
    pub start: usize,
    pub local: usize,
    /// The lattice that they live on, where kernels care.
    pub grid: Option<Grid>,
}

impl Rows {
    /// All rows held by this process.
    pub fn all(global: usize) -> Self {
        Rows { global, start: 0, local: global, grid: None }
    }

    /// All rows of a lattice held by this process.
    pub fn on(grid: Grid) -> Self {
        Rows { grid: Some(grid), ..Rows::all(grid.sites() * grid.per_site) }
    }

    /// Refuses rows of which other processes hold some; `what` says why one must hold all.
    ///
    /// # Errors
    /// When this process does not hold all rows.
    pub fn need_all(&self, what: &str) -> Result<()> {
        if self.local == self.global {
            return Ok(());
        }
        Err(Error::input(format!("{} of the {} rows of a vector", self.local, self.global))
            .hint(format!("{what} by one process that holds all of its rows")))
    }

    /// Refuses another count of numbers than a block of these rows has.
    ///
    /// # Errors
    /// When there are more or fewer.
    pub(in crate::backend) fn check_numbers(&self, columns: usize, count: usize) -> Result<()> {
        if count == self.local * columns {
            return Ok(());
        }
        Err(Error::internal(format!("{count} numbers for a block of {} x {columns}", self.local)))
    }

    /// Refuses rows of two different lattices; rows that live on none go with any.
    pub fn meet(&self, other: &Rows) -> Result<()> {
        let (Some(a), Some(b)) = (self.grid, other.grid) else { return Ok(()) };
        if a == b {
            return Ok(());
        }
        let sizes = |g: Grid| g.dims.map(|n| n.to_string()).join(" x ");
        Err(Error::input(format!("a lattice of {} sites does not go with one of {}", sizes(a), sizes(b)))
            .hint("make vectors and operators on the same lattice, like those of one gauge field"))
    }
}

/// Block vectors on a backend: how they are made, filled and moved. Those of one backend are not accepted by another;
/// `download` and `upload` cross over.
pub trait Vectors: Send + Sync {
    fn zeros(&self, dtype: DType, rows: Rows, columns: usize) -> Result<BlockVector>;
    /// A block of any numbers, for what writes all of them and reads none.
    fn room(&self, dtype: DType, rows: Rows, columns: usize) -> Result<BlockVector> {
        self.zeros(dtype, rows, columns)
    }
    /// Fills a block with random numbers.
    fn fill_random(&self, v: &mut BlockVector, random: Random) -> Result<()>;
    /// The same where the rows stand in runs of `length` in the whole, which begin at `starts`.
    fn fill_random_runs(
        &self,
        v: &mut BlockVector,
        random: Random,
        starts: &[usize],
        length: usize,
    ) -> Result<()> {
        random.fits(v.dtype)?;
        check_runs(v, starts, length)?;
        // Few columns at a time, for the host's memory.
        for first in (0..v.columns).step_by(4) {
            let width = (v.columns - first).min(4);
            let mut numbers = Vec::with_capacity(v.rows.local * width);
            for row in starts.iter().flat_map(|&start| start..start + length) {
                numbers.extend((first..first + width).map(|c| {
                    random_entry(&random, v.dtype.is_complex(), row as u64, random.first_column + c as u32)
                }));
            }
            let part = self.upload(v.dtype, v.rows, width, &numbers)?;
            self.set_columns(v, first, &part)?;
        }
        Ok(())
    }
    /// Sets single entries `(local row, column, value)`.
    fn set_entries(&self, v: &mut BlockVector, entries: &[(usize, usize, C64)]) -> Result<()>;
    /// A copy of a range of columns.
    fn columns(&self, v: &BlockVector, range: Range<usize>) -> Result<BlockVector>;
    /// Overwrites the columns of `v` from `at` on with those of `source`.
    fn set_columns(&self, v: &mut BlockVector, at: usize, source: &BlockVector) -> Result<()>;
    /// The columns of several blocks in one, block by block.
    fn side_by_side(&self, blocks: &[&BlockVector]) -> Result<BlockVector> {
        let first = blocks.first().ok_or_else(|| Error::internal("no blocks stand side by side"))?;
        let mut all = self.zeros(first.dtype(), first.rows(), blocks.iter().map(|b| b.columns()).sum())?;
        let mut at = 0;
        for block in blocks {
            self.set_columns(&mut all, at, block)?;
            at += block.columns();
        }
        Ok(all)
    }
    /// Some columns of a block in the order of their numbers here.
    fn chosen(&self, v: &BlockVector, columns: &[usize]) -> Result<BlockVector> {
        let mut some = self.zeros(v.dtype(), v.rows(), columns.len())?;
        for (to, &from) in columns.iter().enumerate() {
            self.set_columns(&mut some, to, &self.columns(v, from..from + 1)?)?;
        }
        Ok(some)
    }
    /// The same numbers in another scalar type; to real, imaginary parts are dropped.
    fn convert(&self, v: &BlockVector, dtype: DType) -> Result<BlockVector>;
    /// Local rows to the host, row-major.
    fn download(&self, v: &BlockVector) -> Result<Vec<C64>>;
    /// The same of a real vector in double precision, where a backend has a way without complex numbers.
    fn download_real(&self, _v: &BlockVector) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }
    /// Some numbers of a real column in double precision, of the rows that this process has.
    fn download_part(&self, v: &BlockVector, range: Range<usize>) -> Result<Vec<f64>> {
        Ok(self.download(v)?[range].iter().map(|z| z.re).collect())
    }
    /// All rows of a column, in the memory of this process's own backend; none where they do not come together there.
    fn all_rows(&self, _v: &BlockVector) -> Result<Option<BlockVector>> {
        Ok(None)
    }
    /// Local rows from the host, row-major.
    fn upload(&self, dtype: DType, rows: Rows, columns: usize, data: &[C64]) -> Result<BlockVector>;
    /// The same numbers as rows of another kind, on a lattice or on none: a backend may lay them out differently. Those
    /// of one lattice mean nothing on another, however many sites both have.
    fn arrange(&self, v: &BlockVector, rows: Rows) -> Result<BlockVector> {
        if v.rows() == rows {
            return Ok(v.clone());
        }
        v.rows().meet(&rows)?;
        self.upload(v.dtype(), rows, v.columns(), &self.download(v)?)
    }
}

/// Refuses runs of rows that are not as many as a block has.
pub(in crate::backend) fn check_runs(v: &BlockVector, starts: &[usize], length: usize) -> Result<()> {
    if starts.len() * length == v.rows.local {
        return Ok(());
    }
    Err(Error::internal(format!("{} runs of {length} rows for {} rows", starts.len(), v.rows.local)))
}

/// Where the numbers are. Nothing above `backend/` matches on it.
#[derive(Debug, Clone)]
pub(in crate::backend) enum Storage {
    Cpu(HostBlock),
    Cuda(DeviceBlock),
    Split(SplitRows),
    Ranks(OwnRows),
}

/// A block of columns on a device.
#[derive(Debug, Clone)]
pub struct BlockVector {
    pub(in crate::backend) dtype: DType,
    pub(in crate::backend) rows: Rows,
    pub(in crate::backend) columns: usize,
    pub(in crate::backend) storage: Storage,
}

impl BlockVector {
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Rows held and in all.
    pub fn rows(&self) -> Rows {
        self.rows
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    pub fn bytes(&self) -> usize {
        self.rows.local * self.columns * self.dtype.bytes()
    }

    /// Shape and type, for messages.
    pub fn shape(&self) -> String {
        format!("{} x {} {}", self.rows.global, self.columns, self.dtype)
    }

    /// Refuses entries outside the block.
    pub(in crate::backend) fn check_entries(&self, entries: &[(usize, usize, C64)]) -> Result<()> {
        let (rows, columns) = (self.rows.local, self.columns);
        let Some((row, column, _)) = entries.iter().find(|e| e.0 >= rows || e.1 >= columns) else {
            return Ok(());
        };
        Err(Error::input(format!("entry ({row}, {column}) of a block of {rows} x {columns}")))
    }

    /// Refuses columns that the block does not have.
    pub(in crate::backend) fn check_columns(&self, range: &Range<usize>) -> Result<()> {
        if range.start <= range.end && range.end <= self.columns {
            return Ok(());
        }
        Err(Error::input(format!("columns {range:?} of a block with {} columns", self.columns)))
    }

    /// Refuses columns that cannot stand in the block from `at` on.
    pub(in crate::backend) fn check_holds(&self, at: usize, source: &BlockVector) -> Result<()> {
        if self.rows == source.rows && self.dtype == source.dtype && at + source.columns <= self.columns {
            return Ok(());
        }
        let (own, other) = (self.shape(), source.shape());
        Err(Error::input(format!("columns from {at} on of {own} cannot hold {other}")))
    }

    /// Name of the backend that holds the block.
    pub fn place(&self) -> &'static str {
        match &self.storage {
            Storage::Cpu(_) => "cpu",
            Storage::Cuda(_) => "cuda",
            Storage::Split(pieces) => pieces.name,
            Storage::Ranks(own) => own.place(),
        }
    }
}
