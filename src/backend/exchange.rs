//! Rows that are exchanged between the parts of a divided matrix. They pass through memory of the host
//! ([`ExchangePort`]), where a row is the real parts of all columns, followed for complex types by the imaginary parts.
//! Or parts write them directly to each other's memory ([`Link`]).

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::matrix::records::{Handling, Records};
use super::matrix::wilson::WilsonBox;
use super::matrix::{Csr, Indices, MatrixValues};
use super::{BlockVector, Device, Dots, Grid, Kernel, KernelInfo, Update};
use crate::error::{Error, Result};
use crate::number::{C64, DType};
pub use crate::ranks::HostMemory;

/// Products that are still being computed: they are waited for only when they are asked for.
pub type PendingProducts = Box<dyn FnOnce() -> Result<Dots> + Send>;

/// Rows that travel for a site at a face of a box: two spins of three colours.
pub const HALF: usize = 6;

/// What has come through the faces of a box: by direction, through the lower and the upper one;
/// none where there is no neighbour.
pub type FaceArrivals<'a> = [[Option<&'a [u8]>; 2]; 4];

/// The Wilson-Dirac operator on a box of a lattice whose neighbours are boxes of others. What passes a face is made
/// ready by the box that it comes from: half-spinors, those that go upwards taken through the link, in the order of the
/// sites across the face. A product is two passes, over the sites that need nothing from others and over those at
/// faces; a site's sum has the order that it has without boxes, so that it has the same bits.
pub trait Faced: Send + Sync {
    fn info(&self) -> KernelInfo;

    /// Whether an update with `gamma = 0` writes every row.
    fn overwrites(&self) -> bool;

    /// How many vectors a pass may add.
    fn most_added(&self) -> usize;

    /// Makes ready what leaves through a face: as many rows a site as [`HALF`] says.
    fn leave(&self, v: &BlockVector, face: (usize, bool), to: &mut [u8]) -> Result<()>;

    /// One fused pass over the sites away from the faces, or over those at them with what has come.
    fn pass(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: PassExtras,
        came: Option<&FaceArrivals>,
    ) -> Result<Dots>;
}

/// What a backend has that may be a part of another: its ends of exchanges through the host.
pub trait HostExchange {
    /// One part's end of an exchange of rows.
    fn port(&self, halo: &Halo, shape: VectorShape) -> Result<Box<dyn ExchangePort>>;

    /// Host memory for rows on their way to or from this backend, page-locked where that makes copies faster; none
    /// where any memory serves.
    fn staging(&self, _bytes: usize) -> Result<Option<Box<dyn HostMemory>>> {
        Ok(None)
    }

    /// The Wilson operator on a box whose faces have neighbours, with the boundary as half-spinors; none where the
    /// backend has no such way, so that it is a matrix of boundary rows.
    fn prepare_box(&self, _part: &WilsonBox) -> Result<Option<Arc<dyn Faced>>> {
        Ok(None)
    }
}

/// The ends of exchanges without the host, and what needs them.
pub trait PeerExchange {
    /// One part's end of an exchange for boundary rows `beyond` that have a column for each row brought in; none where
    /// others cannot be reached. Shared-out rows go this way if all parts have one and reach each other.
    fn link(&self, halo: &Halo, beyond: &Csr, shape: VectorShape) -> Result<Option<Box<dyn Link>>>;

    /// One part's end of an exchange that brings ranges of rows together.
    fn assembly(&self, ranges: &Ranges, shape: VectorShape) -> Result<Box<dyn Assembly>>;

    /// Some rows of a superblock's product, from all rows of a vector.
    fn prepare_rows(
        &self,
        records: &Records,
        rows: Range<usize>,
        handling: Handling,
    ) -> Result<Arc<dyn Kernel>>;

    /// The Wilson operator on a box, whose faces half-spinors pass by [`Kernel::link_faces`].
    fn prepare_linked(&self, part: &WilsonBox) -> Result<Arc<dyn Kernel>>;
}

/// The backend's ends of exchanges through the host.
///
/// # Errors
/// A backend that is no part of others.
pub(super) fn through_host(device: &Device) -> Result<&dyn HostExchange> {
    device
        .host_exchange()
        .ok_or_else(|| Error::internal(format!("{} cannot be a part of another backend", device.name())))
}

/// The products of a part's pass: over its own columns, and what others' rows add.
pub(super) type PassProducts = (Option<PendingProducts>, Option<PendingProducts>);

/// What a pass computes besides its update.
#[derive(Clone, Copy)]
pub enum PassExtras<'a> {
    Nothing,
    /// Both products.
    Dots,
    /// Multiples of vectors, added.
    Plus(&'a [(f64, &'a BlockVector)]),
}

/// What a pass of one part works on: `v`, `w`, where it has rows of them, and what it computes besides.
pub(super) type PassOperands<'a> = (Option<&'a BlockVector>, Option<&'a mut BlockVector>, PassExtras<'a>);

impl PassExtras<'_> {
    pub fn dots(self) -> bool {
        matches!(self, PassExtras::Dots)
    }
}

/// A pass over a part's rows with its own columns, where it has both.
pub(super) fn inside(
    device: &Device,
    own: Option<&dyn Kernel>,
    c: Update,
    v: Option<&BlockVector>,
    w: &mut BlockVector,
    besides: PassExtras,
) -> Result<Option<PendingProducts>> {
    if w.rows.local == 0 {
        return Ok(None);
    }
    let plain = |w: &mut BlockVector| match (own, v) {
        (Some(own), Some(v)) => own.update(c, v, w, None),
        _ => scale(device, c.gamma, w),
    };
    match (own, v, besides) {
        (Some(own), Some(v), PassExtras::Dots) => return own.update_later(c, v, w).map(Some),
        (_, _, PassExtras::Dots | PassExtras::Nothing) => plain(w)?,
        (_, _, PassExtras::Plus(plus)) => {
            if let Some(done) = own.zip(v).and_then(|(own, v)| own.update_plus(c, v, w, plus)) {
                return done.map(|()| None);
            }
            plain(w)?;
            for (factor, x) in plus {
                device.axpby(&[C64::new(*factor, 0.0)], x, &[C64::ONE], w)?;
            }
        }
    }
    Ok(None)
}

/// A pass over a part's rows and what neighbours' rows add to them by a link: in one launch where the kernel can.
pub(super) fn over_link(
    link: &mut dyn Link,
    (device, own): (&Device, Option<&dyn Kernel>),
    c: Update,
    (v, mut w, besides): PassOperands,
) -> Result<PassProducts> {
    if let (Some(own), Some(v), Some(w)) = (own, v, w.as_deref_mut())
        && let Some(products) = own.pass_linked(link, c, v, w, besides)?
    {
        return Ok((products, None));
    }
    link.send(v)?;
    let first = w.as_deref_mut().map_or(Ok(None), |w| inside(device, own, c, v, w, besides))?;
    Ok((first, link.add(c.alpha, w, v.filter(|_| besides.dots()))?))
}

/// `w = factor w`.
fn scale(device: &Device, factor: f64, w: &mut BlockVector) -> Result<()> {
    if factor == 0.0 {
        *w = device.zeros(w.dtype, w.rows, w.columns)?;
    } else if factor != 1.0 {
        let old = w.clone();
        device.axpby(&[C64::new(factor, 0.0)], &old, &[C64::default()], w)?;
    }
    Ok(())
}

/// Their sum, an entry a column; it is waited for.
pub(super) fn summed((own, beyond): PassProducts, columns: usize) -> Result<Dots> {
    let mut sum = own.map_or_else(|| Ok(Dots::default()), |own| own())?;
    sum.vv.resize(columns, 0.0);
    sum.wv.resize(columns, 0.0);
    if let Some(beyond) = beyond {
        sum.wv.iter_mut().zip(beyond()?.wv).for_each(|(s, m)| *s += m);
    }
    Ok(sum)
}

/// What a part reads of others, from the entries (local row, place of the column, value) that it has there, rows and
/// places ascending: its boundary rows as a matrix, their numbers, and the places, ascending, a column each.
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
    let values = MatrixValues::C64(values).convert(dtype);
    (Csr { rows: rows.len(), cols: places.len(), row_start, columns, values }, rows, places)
}

/// Memory of the host that rows pass through on their way from one part to another.
pub type Staging = Box<dyn HostMemory>;

/// Host memory like any other.
pub struct PlainMemory {
    words: Vec<u64>,
    bytes: usize,
}

impl PlainMemory {
    /// So many bytes, all zero.
    pub fn new(bytes: usize) -> Self {
        PlainMemory { words: vec![0; bytes.div_ceil(8)], bytes }
    }
}

impl HostMemory for PlainMemory {
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

impl Halo {
    /// Makes neighbours of those that rows go to (`to`) and come from (`from`), as places in a list of parts, the same:
    /// some send no rows. A [`Link`] wants it.
    pub fn balance(&mut self, to: &mut Vec<usize>, from: &mut Vec<usize>) {
        for &other in from.iter() {
            if !to.contains(&other) {
                to.push(other);
                self.sends.push(Vec::new());
            }
        }
        for &other in to.iter() {
            if !from.contains(&other) {
                from.push(other);
                self.receives.push(0);
            }
        }
    }
}

/// Vectors that an exchange is prepared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorShape {
    pub dtype: DType,
    pub columns: usize,
    /// The lattice that a part's own rows live on.
    pub grid: Option<Grid>,
}

impl VectorShape {
    /// That of a part's vectors.
    pub fn of(v: &BlockVector) -> VectorShape {
        VectorShape { dtype: v.dtype, columns: v.columns, grid: v.rows.grid }
    }

    /// Bytes of so many rows.
    pub fn bytes(&self, rows: usize) -> usize {
        rows * self.columns * self.dtype.bytes()
    }
}

/// What passes need besides vectors, for those of one shape; kept from one pass to the next.
pub(super) struct KeptForPasses<T>(Mutex<Option<(VectorShape, T)>>);

impl<T> Default for KeptForPasses<T> {
    fn default() -> Self {
        KeptForPasses(Mutex::new(None))
    }
}

impl<T> KeptForPasses<T> {
    /// That of vectors of this shape, if it is here: a pass that fails, or runs at the same time, leaves none.
    pub fn take(&self, shape: VectorShape) -> Option<T> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.filter(|(of, _)| *of == shape).map(|(_, what)| what)
    }

    /// Keeps something for the next call with vectors of this shape, instead of what was kept.
    pub fn put(&self, shape: VectorShape, what: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((shape, what));
    }
}

/// One part's end of an exchange. A backend that copies asynchronously owns the memory until the copy is over.
pub trait ExchangePort: Send {
    /// Queues gathering the rows that each neighbour needs, one piece of memory a neighbour.
    fn collect(&mut self, v: &BlockVector, to: Vec<Staging>) -> Result<()>;

    /// The memory given to [`ExchangePort::collect`] once the rows are in it; none if that takes longer and `wait` is
    /// not set.
    fn collected(&mut self, wait: bool) -> Result<Option<Vec<Staging>>>;

    /// Queues bringing in the rows of neighbour number `from`.
    fn deliver(&mut self, from: usize, rows: Staging) -> Result<()>;

    /// Memory given to [`ExchangePort::deliver`], with the neighbours' numbers, once it has been read.
    fn released(&mut self) -> Result<Vec<(usize, Staging)>>;

    /// `w += alpha A h` on the boundary rows, where `A` has a row for each of them and a column for each row brought
    /// in; for a `v`, what `Re <w|v>` grows by.
    fn add(
        &mut self,
        alpha: f64,
        a: &dyn Kernel,
        w: &mut BlockVector,
        v: Option<&BlockVector>,
    ) -> Result<Option<PendingProducts>>;
}

/// Ranges of rows, one a part, and which of the parts this one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges {
    starts: Vec<usize>,
    part: usize,
}

impl Ranges {
    /// Part `k` has the rows from `starts[k]` to `starts[k + 1]`.
    pub fn new(starts: Vec<usize>, part: usize) -> Ranges {
        Ranges { starts, part }
    }

    /// How many parts there are.
    pub fn parts(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of this part.
    pub fn part(&self) -> usize {
        self.part
    }

    /// How many there are in all.
    pub fn rows(&self) -> usize {
        self.starts[self.parts()]
    }

    /// The rows of a part.
    pub fn of(&self, part: usize) -> Range<usize> {
        self.starts[part]..self.starts[part + 1]
    }

    /// The rows of this part.
    pub fn own(&self) -> Range<usize> {
        self.of(self.part)
    }

    /// The numbers of the other parts.
    pub fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.parts()).filter(|part| *part != self.part)
    }

    /// The place of this part among the others of another one.
    pub fn place_among_others_of(&self, part: usize) -> usize {
        self.part - usize::from(self.part > part)
    }
}

/// One part's end of an exchange after which every part has the rows of all. Passes are queued,
/// and the host waits for nothing.
pub trait Assembly: Send {
    /// What each of the other parts must know to write here, in their order.
    fn offers(&self) -> Vec<Vec<u8>>;

    /// Takes the others' offers; false if one of them cannot be reached.
    fn accept(&mut self, offers: &[Vec<u8>]) -> Result<bool>;

    /// Queues sending this part's rows to all others.
    fn send(&mut self, own: &BlockVector) -> Result<()>;

    /// Queues waiting for what the others send, and returns all rows, to be read before the next but one. A process
    /// with several parts sends from all of them before: where the GPU of one waits for what is not queued, anything
    /// that waits for this GPU with a lock of the driver keeps that from being queued for ever.
    fn all(&mut self) -> Result<BlockVector>;
}

/// This part's rows of a superblock's pass, by the kernel that makes them of all rows of `v`;
/// `here` are those that it has of it.
pub(super) fn rows_of_all(
    device: &Device,
    kernel: &dyn Kernel,
    c: Update,
    (all, here): (&BlockVector, &BlockVector),
    w: &mut BlockVector,
) -> Result<()> {
    kernel.update(Update { beta: 0.0, ..c }, all, w, None)?;
    if c.beta != 0.0 {
        device.axpby(&[C64::new(c.beta, 0.0)], here, &[C64::ONE], w)?;
    }
    Ok(())
}

/// Held by a process while it queues passes in which a GPU waits for what it has yet to queue on another one; and while
/// it loads code or gives memory back, since these wait for a GPU and hold locks of the driver that queueing needs.
static UNQUEUED: Mutex<()> = Mutex::new(());

/// The turn to queue such passes, or to do what waits for a GPU. A thread that has it may not ask again.
pub(super) fn queueing_turn() -> MutexGuard<'static, ()> {
    UNQUEUED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same where nobody has it.
pub(super) fn free_queueing_turn() -> Option<MutexGuard<'static, ()>> {
    match UNQUEUED.try_lock() {
        Ok(turn) => Some(turn),
        Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The same, waited for no longer than so.
pub(super) fn queueing_turn_within(longest: Duration) -> Option<MutexGuard<'static, ()>> {
    let begun = Instant::now();
    loop {
        let turn = free_queueing_turn();
        if turn.is_some() || begun.elapsed() >= longest {
            return turn;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One part's end of an exchange in which neighbours write rows to each other's memory by themselves: passes are
/// queued, and the host waits for nothing. Neighbours write to one another, if only that they are there.
pub trait Link: Send {
    /// What each neighbour must know to write here, in the order of the halo.
    fn offers(&self) -> Vec<Vec<u8>>;

    /// Takes the neighbours' offers; false if one of them cannot be reached.
    fn accept(&mut self, offers: &[Vec<u8>]) -> Result<bool>;

    /// Queues sending the rows that neighbours read; the next pass may not begin before [`Link::add`].
    fn send(&mut self, v: Option<&BlockVector>) -> Result<()>;

    /// Queues waiting for the neighbours' rows `h`, and `w += alpha A h` on the boundary; for a `v`,
    /// what `Re <w|v>` grows by.
    fn add(
        &mut self,
        alpha: f64,
        w: Option<&mut BlockVector>,
        v: Option<&BlockVector>,
    ) -> Result<Option<PendingProducts>>;

    /// For a kernel of the same backend, to queue passes and exchanges together.
    fn as_any(&mut self) -> &mut dyn Any;

    /// Lets neighbours go on that wait for rows which will not come.
    fn give_up(&mut self);
}
