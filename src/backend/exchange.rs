//! Rows that travel between the parts of a matrix whose rows are shared out: host memory that they pass through, and one
//! part's end of the exchange. In transit a row is the real parts of all columns, then, for complex types, the imaginary ones.

use super::{BlockVector, Dots, Kernel};
use crate::error::Result;
use crate::number::DType;

/// Products that are still being computed: they are waited for only when they are asked for.
pub type Later = Box<dyn FnOnce() -> Result<Dots> + Send>;

/// Host memory, aligned for numbers of any type.
pub trait HostMemory: Send {
    /// The bytes.
    fn bytes(&self) -> &[u8];
    /// The bytes, to change them.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// Host memory that rows pass through on their way from one backend to another.
pub type Staging = Box<dyn HostMemory>;

/// Host memory like any other.
pub struct Plain {
    words: Vec<u64>,
    bytes: usize,
}

impl Plain {
    /// So many bytes, all zero.
    pub fn new(bytes: usize) -> Self {
        Plain { words: vec![0; bytes.div_ceil(8)], bytes }
    }
}

impl HostMemory for Plain {
    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }
}

/// What one part of a matrix exchanges with its neighbours in every pass.
#[derive(Debug, Clone, Default)]
pub struct Halo {
    /// For each neighbour that reads rows of this part, their local numbers.
    pub sends: Vec<Vec<usize>>,
    /// For each neighbour whose rows this part reads, how many; they stand one neighbour after the other.
    pub receives: Vec<usize>,
    /// Local numbers of the rows whose products need rows of others, ascending.
    pub boundary: Vec<usize>,
}

/// Vectors that an exchange is prepared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Scalar type.
    pub dtype: DType,
    /// Columns.
    pub columns: usize,
}

impl Shape {
    /// Bytes of so many rows.
    pub fn bytes(&self, rows: usize) -> usize {
        rows * self.columns * self.dtype.bytes()
    }
}

/// One part's end of an exchange. Whatever a backend copies in its own time, it owns the memory of until the copy is over.
pub trait Port: Send {
    /// Queues gathering the rows that each neighbour needs, one piece of memory a neighbour.
    fn collect(&mut self, v: &BlockVector, to: Vec<Staging>) -> Result<()>;

    /// The memory given to [`Port::collect`] once the rows are in it; none if that takes longer and `wait` is not set.
    fn collected(&mut self, wait: bool) -> Result<Option<Vec<Staging>>>;

    /// Queues bringing in the rows of neighbour number `from`.
    fn deliver(&mut self, from: usize, rows: Staging) -> Result<()>;

    /// Memory given to [`Port::deliver`], with the neighbours' numbers, once it has been read.
    fn released(&mut self) -> Result<Vec<(usize, Staging)>>;

    /// `w += alpha A h` on the boundary rows, where `A` has a row for each of them and a column for each row brought in; for
    /// a `v`, what `Re <w|v>` grows by.
    fn add(
        &mut self,
        alpha: f64,
        a: &dyn Kernel,
        w: &mut BlockVector,
        v: Option<&BlockVector>,
    ) -> Result<Option<Later>>;
}
