//! Rows that travel between the parts of a matrix whose rows are shared out: host memory that they pass through, and one
//! part's end of the exchange. In transit a row is the real parts of all columns, then, for complex types, the imaginary ones.

use std::any::Any;

use super::matrix::{Csr, Indices, Values};
use super::{BlockVector, Dots, Kernel};
use crate::error::{Error, Result};
use crate::number::{C64, DType};
pub use crate::ranks::HostMemory;

/// Products that are still being computed: they are waited for only when they are asked for.
pub type Later = Box<dyn FnOnce() -> Result<Dots> + Send>;

/// The products of a part's pass: over its own columns, and what others' rows add.
pub(super) type Products = (Option<Later>, Option<Later>);

/// Their sum, an entry a column; it is waited for.
pub(super) fn summed((own, beyond): Products, columns: usize) -> Result<Dots> {
    let mut sum = own.map_or_else(|| Ok(Dots::default()), |own| own())?;
    sum.vv.resize(columns, 0.0);
    sum.wv.resize(columns, 0.0);
    if let Some(beyond) = beyond {
        sum.wv.iter_mut().zip(beyond()?.wv).for_each(|(s, m)| *s += m);
    }
    Ok(sum)
}

/// What a part reads of others, from the entries (local row, place of the column, value) that it has there, rows and places
/// ascending: its boundary rows as a matrix, their numbers, and the places, ascending, a column each.
pub(super) fn boundary<P: Ord + Copy>(
    outside: &[(usize, P, C64)],
    dtype: DType,
) -> (Csr, Vec<usize>, Vec<P>) {
    let mut places: Vec<P> = outside.iter().map(|e| e.1).collect();
    places.sort_unstable();
    places.dedup();
    let (mut rows, mut row_start, mut values) = (Vec::new(), vec![0], Vec::new());
    let mut columns = Vec::with_capacity(outside.len());
    for of_row in outside.chunk_by(|a, b| a.0 == b.0) {
        rows.push(of_row[0].0);
        for (_, place, value) in of_row {
            columns.push(places.binary_search(place).unwrap_or_default() as u64);
            values.push(*value);
        }
        row_start.push(values.len());
    }
    let columns = Indices::of(places.len(), columns);
    let values = Values::C64(values).convert(dtype);
    (Csr { rows: rows.len(), cols: places.len(), row_start, columns, values }, rows, places)
}

/// What rows pass through on their way from one part to another.
pub enum Staging {
    /// Host memory, which any two parts share.
    Host(Box<dyn HostMemory>),
    /// Memory of the part that reads the rows, to which the part that sends them writes directly. Only these two know its type.
    Direct(Box<dyn Any + Send>),
}

impl Staging {
    /// The bytes of host memory.
    ///
    /// # Errors
    /// For memory of another kind, which was meant for another part.
    pub fn bytes(&self) -> Result<&[u8]> {
        match self {
            Staging::Host(memory) => Ok(memory.bytes()),
            Staging::Direct(_) => Err(not_for_this_part()),
        }
    }

    /// The bytes, to change them.
    ///
    /// # Errors
    /// As for [`Staging::bytes`].
    pub fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        match self {
            Staging::Host(memory) => Ok(memory.bytes_mut()),
            Staging::Direct(_) => Err(not_for_this_part()),
        }
    }
}

pub(super) fn not_for_this_part() -> Error {
    Error::internal("memory for rows that another part was to write")
}

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
    pub dtype: DType,
    pub columns: usize,
}

impl Shape {
    /// Bytes of so many rows.
    pub fn bytes(&self, rows: usize) -> usize {
        rows * self.columns * self.dtype.bytes()
    }
}

/// One part's end of an exchange. A backend that copies asynchronously owns the memory until the copy is over.
pub trait Port: Send {
    /// So many bytes of this part's own memory, to which another may write rows by itself; none if there is no such way.
    fn offer(&mut self, _bytes: usize) -> Result<Option<Staging>> {
        Ok(None)
    }

    /// Whether this part can write to memory that another has offered; if so, it is made ready for that.
    fn accept(&mut self, _offer: &mut Staging) -> Result<bool> {
        Ok(false)
    }

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
