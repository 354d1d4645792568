//! Splines on the GPU: the table in tiles of orbitals, electrons sorted by blocks of the grid on the device, and one
//! kernel for all electrons of all walkers (`kernels/splines.cu`).

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::card::{Card, CardBuffer};
use super::{RESIDENT, THREADS, arguments};
use crate::backend::splines::{Coefficients, Planes, SplineBatch, SplineShape, SplineTable, Splines};
use crate::error::{Error, Result};
use crate::number::Real;

/// Electrons of a block of threads, and the threads.
const GROUP: usize = 64;
const BLOCK: u32 = 512;

/// Grid steps along the edge of a block of the sort.
const EDGE: usize = 4;

/// Orbitals of a tile, of 32-bit and of 64-bit numbers.
const SINGLE_TILE: usize = 64;
const DOUBLE_TILE: usize = 32;

/// Rows of z that are repeated at the end of each column.
const REPEATED: usize = 3;

/// Ways for comparison: the paper's assignments of threads, by what a thread does, and variants of ours.
const ASSIGNMENTS: [&str; 5] =
    ["particle by particle", "a thread a term", "a thread an orbital", "unsorted", "half a tile a warp"];

/// A real that tables are made of.
trait CudaTableReal: Real + Pod {
    const NAME: &'static str;
    /// Orbitals of a tile.
    const TILE: usize;
}

impl CudaTableReal for f32 {
    const NAME: &'static str = "f32";
    const TILE: usize = SINGLE_TILE;
}

impl CudaTableReal for f64 {
    const NAME: &'static str = "f64";
    const TILE: usize = DOUBLE_TILE;
}

/// Grid and cell as the kernels see them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct TableGrid<F> {
    n: [u32; 3],
    lanes: u32,
    metric: [F; 6],
    scaled: [[F; 3]; 3],
}

impl<F: CudaTableReal> TableGrid<F> {
    fn new(shape: &SplineShape) -> Self {
        let (g, scaled) = (shape.metric(), shape.scaled());
        TableGrid {
            n: shape.grid.map(|n| n as u32),
            lanes: shape.lanes as u32,
            metric: [g[0][0], g[1][1], g[2][2], g[0][1], g[0][2], g[1][2]].map(F::from_f64),
            scaled: scaled.map(|row| row.map(F::from_f64)),
        }
    }
}

/// An electron as the kernels see it; only its size matters here.
#[repr(C)]
struct PointArgument<F> {
    beyond: [F; 3],
    cell: [u32; 3],
    index: u32,
}

/// As many doubles as the kernel takes by value.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct InverseArgument([f64; 9]);

/// A table of splines on a GPU.
#[derive(Clone)]
struct CudaTable<F> {
    card: Arc<Card>,
    shape: SplineShape,
    own: TableGrid<F>,
    table: Arc<CardBuffer>,
    tiles: u32,
}

/// Points on the device and what a table gives there, as walkers use them.
pub(super) trait Evaluation: Send + Sync {
    /// The suffix of kernels for the table's numbers.
    fn name(&self) -> &'static str;
    /// Functions side by side.
    fn lanes(&self) -> u32;
    /// Where points are written.
    fn points(&self) -> u64;
    /// Where values stand, and in four planes behind them the derivatives.
    fn out(&self) -> u64;
    /// All functions at all points.
    fn values(&self) -> Result<()>;
    /// The same with derivatives; there must be room for them.
    fn derivatives(&self) -> Result<()>;
    /// Finds the places of all points, for [`Evaluation::values_of`].
    fn locate(&self) -> Result<()>;
    /// The values at some points, as they come.
    fn values_of(&self, first: u32, count: u32) -> Result<()>;
}

/// Room for a table's values at `count` points, in one plane or in five, if the table lives on a GPU.
pub(super) fn evaluation(
    splines: &dyn Splines,
    count: usize,
    planes: usize,
) -> Result<Option<Box<dyn Evaluation>>> {
    let splines = splines.as_any();
    if let Some(table) = splines.downcast_ref::<CudaTable<f32>>() {
        return Ok(Some(Box::new(table.room(count, planes)?)));
    }
    match splines.downcast_ref::<CudaTable<f64>>() {
        Some(table) => Ok(Some(Box::new(table.room(count, planes)?))),
        None => Ok(None),
    }
}

pub(super) fn prepare(card: &Arc<Card>, table: &SplineTable) -> Result<Arc<dyn Splines>> {
    match table {
        SplineTable::Single(t) => Ok(Arc::new(CudaTable::<f32>::new(card, t)?)),
        SplineTable::Double(t) => Ok(Arc::new(CudaTable::<f64>::new(card, t)?)),
    }
}

impl<F: CudaTableReal> CudaTable<F> {
    fn new(card: &Arc<Card>, table: &Coefficients<F>) -> Result<Self> {
        let shape = *table.shape();
        let [nx, ny, nz] = shape.grid;
        let width = F::TILE;
        let tiles = shape.lanes.div_ceil(width);
        let slice = nx * ny * (nz + REPEATED) * width;
        if slice >= 1 << 31 || tiles > 32_767 {
            return Err(Error::memory(format!(
                "a spline table of {} functions on {:?} points on the GPU",
                shape.lanes, shape.grid
            ))
            .hint("use a coarser grid"));
        }
        let mut laid: Vec<F> = Vec::new();
        laid.try_reserve_exact(slice * tiles).map_err(|_| Error::memory("tiles of a spline table"))?;
        let (data, stride) = (table.data(), table.stride());
        for tile in 0..tiles {
            let first = tile * width;
            let count = width.min(stride - first.min(stride));
            for column in 0..nx * ny {
                for k in 0..nz + REPEATED {
                    // The row below a grid point comes first.
                    let z = (k + nz - 1) % nz;
                    let from = (column * nz + z) * stride + first;
                    laid.extend_from_slice(&data[from..from + count]);
                    laid.resize(laid.len() + width - count, F::default());
                }
            }
        }
        let own = TableGrid::new(&shape);
        Ok(CudaTable {
            card: card.clone(),
            shape,
            own,
            table: Arc::new(card.upload(&laid)?),
            tiles: tiles as u32,
        })
    }

    fn place(&self, points: &[[f64; 3]]) -> Result<CudaBatch<F>> {
        let mut batch = self.room(points.len(), 1)?;
        batch.points = self.card.upload(points)?;
        Ok(batch)
    }

    /// Room for points that are to come.
    fn room(&self, n: usize, planes: usize) -> Result<CudaBatch<F>> {
        let count = u32::try_from(n).ok().filter(|n| *n < 1 << 30);
        let count = count.ok_or_else(|| Error::memory(format!("{n} points at once")))?;
        let bins: usize = self.shape.grid.iter().map(|n| n.div_ceil(EDGE)).product();
        let record = size_of::<PointArgument<F>>();
        Ok(CudaBatch {
            owner: self.clone(),
            count,
            points: self.card.allocate(n * 24)?,
            records: self.card.allocate(n * record)?,
            sorted: self.card.allocate(n * record)?,
            ranks: self.card.allocate(n * 8)?,
            bins: self.card.allocate(bins * 4)?,
            bin_count: bins as u32,
            out: self.card.allocate(planes * n * self.shape.lanes * size_of::<F>())?,
            planes,
        })
    }
}

/// Electrons on the device, and what was computed there.
struct CudaBatch<F> {
    owner: CudaTable<F>,
    count: u32,
    points: CardBuffer,
    records: CardBuffer,
    sorted: CardBuffer,
    ranks: CardBuffer,
    bins: CardBuffer,
    bin_count: u32,
    out: CardBuffer,
    planes: usize,
}

impl<F: CudaTableReal> CudaBatch<F> {
    fn card(&self) -> &Arc<Card> {
        &self.owner.card
    }

    fn blocks(&self) -> u32 {
        self.count.div_ceil(THREADS).clamp(1, self.card().processors * RESIDENT)
    }

    /// Finds the electrons' places; `records` then hold them as they came.
    fn locate(&self) -> Result<()> {
        self.card().clear(&self.bins)?;
        let shape = &self.owner.shape;
        let inverse = InverseArgument(bytemuck::cast(shape.inverse));
        let [nx, ny, nz] = self.owner.own.n;
        let (points, records, ranks) = (self.points.address, self.records.address, self.ranks.address);
        let (count, bins) = (self.count, self.bins.address);
        let arguments = arguments![points, count, inverse, nx, ny, nz, records, ranks, bins];
        let name = format!("spline_place_{}", F::NAME);
        // SAFETY: the kernel's arguments; the buffers were made for as many electrons and blocks of the grid.
        unsafe { self.card().launch(&name, (self.blocks(), 1), THREADS, &arguments) }
    }

    /// Brings them into order.
    fn sort(&self) -> Result<()> {
        self.locate()?;
        let (bins, bin_count, count) = (self.bins.address, self.bin_count, self.count);
        // SAFETY: the kernel's arguments.
        unsafe { self.card().launch("spline_scan", (1, 1), 1024, &arguments![bins, bin_count])? };
        let (records, ranks, sorted) = (self.records.address, self.ranks.address, self.sorted.address);
        let name = format!("spline_scatter_{}", F::NAME);
        let arguments = arguments![records, ranks, bins, count, sorted];
        // SAFETY: the kernel's arguments; ranks and first places are those of a counting sort.
        unsafe { self.card().launch(&name, (self.blocks(), 1), THREADS, &arguments) }
    }

    /// Room for so many planes.
    fn planes(&mut self, planes: usize) -> Result<()> {
        let bytes = planes * self.count as usize * self.owner.shape.lanes * size_of::<F>();
        if self.out.bytes < bytes {
            self.out = self.card().allocate(bytes)?;
        }
        self.planes = planes;
        Ok(())
    }

    fn run(&mut self, what: &str, planes: usize) -> Result<()> {
        self.planes(planes)?;
        if self.count == 0 {
            return Ok(());
        }
        self.sort()?;
        self.launch(what, self.sorted.address, self.count, 1)
    }

    /// Queues the kernel for these records, each tile in so many parts.
    fn launch(&self, what: &str, records: u64, count: u32, parts: u32) -> Result<()> {
        let name = format!("spline_{what}_{}", F::NAME);
        let table = self.owner.table.address;
        let (shape, out) = (self.owner.own, self.out.address);
        let grid = (count.div_ceil(GROUP as u32), parts * self.owner.tiles);
        // SAFETY: the kernel's arguments; the planes have room for all electrons, the records lie on the grid.
        unsafe { self.card().launch(&name, grid, BLOCK, &arguments![table, records, count, shape, out]) }
    }
}

impl<F: CudaTableReal> SplineBatch for CudaBatch<F> {
    fn values(&mut self) -> Result<()> {
        self.run("values", 1)
    }

    fn derivatives(&mut self) -> Result<()> {
        self.run("derivatives", 5)
    }

    fn assignments(&self) -> &'static [&'static str] {
        if F::NAME == "f32" { &ASSIGNMENTS } else { &[] }
    }

    fn values_by(&mut self, assignment: usize) -> Result<()> {
        if assignment >= self.assignments().len() {
            return Err(Error::input(format!("no assignment of threads number {assignment}")));
        }
        self.planes(1)?;
        if self.count == 0 {
            return Ok(());
        }
        if assignment == 4 {
            self.sort()?;
            return self.launch("halves", self.sorted.address, self.count, 2);
        }
        self.locate()?;
        if assignment == 3 {
            return self.launch("values", self.records.address, self.count, 1);
        }
        let (table, records) = (self.owner.table.address, self.records.address);
        let (shape, out, lanes) = (self.owner.own, self.out.address, self.owner.own.lanes);
        let wide = F::TILE as u32;
        // SAFETY: of each launch, the kernel's arguments; the plane has room, the records lie on the grid.
        unsafe {
            match assignment {
                0 => {
                    for electron in 0..self.count {
                        let arguments = arguments![table, records, electron, shape, wide, out];
                        self.card().launch("spline_particle", (lanes, 1), 64, &arguments)?;
                    }
                    Ok(())
                }
                1 => {
                    let arguments = arguments![table, records, shape, wide, out];
                    self.card().launch("spline_terms", (self.count, lanes), 64, &arguments)
                }
                _ => {
                    let arguments = arguments![table, records, shape, wide, out];
                    let threads = lanes.next_multiple_of(64).min(512);
                    self.card().launch("spline_orbitals", (self.count, 1), threads, &arguments)
                }
            }
        }
    }

    fn read(&self) -> Result<Vec<Vec<f64>>> {
        let each = self.count as usize * self.owner.shape.lanes;
        let numbers: Vec<F> = self.card().download(&self.out, self.planes * each)?;
        Ok((0..self.planes)
            .map(|k| numbers[k * each..(k + 1) * each].iter().map(|x| x.to_f64()).collect())
            .collect())
    }
}

impl<F: CudaTableReal> Evaluation for CudaBatch<F> {
    fn name(&self) -> &'static str {
        F::NAME
    }

    fn lanes(&self) -> u32 {
        self.owner.own.lanes
    }

    fn points(&self) -> u64 {
        self.points.address
    }

    fn out(&self) -> u64 {
        self.out.address
    }

    fn values(&self) -> Result<()> {
        self.sort()?;
        self.launch("values", self.sorted.address, self.count, 1)
    }

    fn derivatives(&self) -> Result<()> {
        if self.planes < 5 {
            return Err(Error::internal("derivatives of splines without room for them"));
        }
        self.sort()?;
        self.launch("derivatives", self.sorted.address, self.count, 1)
    }

    fn locate(&self) -> Result<()> {
        CudaBatch::locate(self)
    }

    fn values_of(&self, first: u32, count: u32) -> Result<()> {
        let records = self.records.address + u64::from(first) * size_of::<PointArgument<F>>() as u64;
        self.launch("values", records, count, 1)
    }
}

impl<F: CudaTableReal> Splines for CudaTable<F> {
    fn shape(&self) -> &SplineShape {
        &self.shape
    }

    fn bytes(&self) -> usize {
        self.table.bytes
    }

    fn evaluate(&self, points: &[[f64; 3]], out: Planes<'_>) -> Result<()> {
        let planes = out.check(points.len() * self.shape.lanes)?;
        let mut batch = self.place(points)?;
        batch.run(if planes == 1 { "values" } else { "derivatives" }, planes)?;
        let numbers: Vec<F> = self.card.download(&batch.out, planes * points.len() * self.shape.lanes)?;
        let each = (points.len() * self.shape.lanes).max(1);
        fn fill<F: Real, O: Real>(planes: Vec<&mut [O]>, numbers: &[F], each: usize) {
            for (plane, numbers) in planes.into_iter().zip(numbers.chunks(each)) {
                plane.iter_mut().zip(numbers).for_each(|(slot, x)| *slot = O::from_f64(x.to_f64()));
            }
        }
        match out {
            Planes::Single(out) => fill(out, &numbers, each),
            Planes::Double(out) => fill(out, &numbers, each),
        }
        Ok(())
    }

    fn batch(&self, points: &[[f64; 3]]) -> Result<Box<dyn SplineBatch + '_>> {
        Ok(Box::new(self.place(points)?))
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
