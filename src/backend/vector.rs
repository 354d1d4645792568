//! The block vector: columns of equal length that live on a device.

use crate::backend::cpu::Block;
use crate::backend::cuda::DeviceBlock;
use crate::number::DType;

/// Which rows of a global vector are held here: all of them on one process, one rank's share otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Rows in all.
    pub global: usize,
    /// Global number of the first row held here.
    pub start: usize,
    /// Rows held here.
    pub local: usize,
}

impl Rows {
    /// All rows held by this process.
    pub fn all(global: usize) -> Self {
        Rows { global, start: 0, local: global }
    }
}

/// Where the numbers are. Nothing above `backend/` matches on it.
#[derive(Debug, Clone)]
pub(in crate::backend) enum Storage {
    Cpu(Block),
    Cuda(DeviceBlock),
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
    /// Scalar type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Rows held and in all.
    pub fn rows(&self) -> Rows {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Bytes held here.
    pub fn bytes(&self) -> usize {
        self.rows.local * self.columns * self.dtype.bytes()
    }

    /// Shape and type, for messages.
    pub fn shape(&self) -> String {
        format!("{} x {} {}", self.rows.global, self.columns, self.dtype)
    }

    /// Name of the backend that holds the block.
    pub fn place(&self) -> &'static str {
        match self.storage {
            Storage::Cpu(_) => "cpu",
            Storage::Cuda(_) => "cuda",
        }
    }
}
