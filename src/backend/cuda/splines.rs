//! Splines on the GPU: the table in tiles of orbitals, electrons sorted by blocks of the grid on the device, and one kernel
//! for all electrons of all walkers (`kernels/splines.cu`).

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::card::{Buffer, Card};
use super::{RESIDENT, THREADS, arguments};
use crate::backend::splines::{Coefficients, Planes, SplineBatch, SplineShape, SplineTable, Splines};
use crate::error::{Error, Result};
use crate::number::Real;

/// Electrons of a block of threads, and the threads.
const GROUP: usize = 64;
const BLOCK: u32 = 512;

/// Grid steps along the edge of a block of the sort.
const EDGE: usize = 4;

/// Rows of z that are repeated at the end of each column.
const REPEATED: usize = 3;

/// Ways for comparison: the paper's assignments of threads, by what a thread does, and variants of ours.
const ASSIGNMENTS: [&str; 5] =
    ["particle by particle", "a thread a term", "a thread an orbital", "unsorted", "half a tile a warp"];

/// A real that tables are made of.
trait Lane: Real + Pod {
    const NAME: &'static str;
    /// Orbitals of a tile.
    const TILE: usize;
}

impl Lane for f32 {
    const NAME: &'static str = "f32";
    const TILE: usize = 64;
}

impl Lane for f64 {
    const NAME: &'static str = "f64";
    const TILE: usize = 32;
}

/// Grid and cell as the kernels see them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Shape<F> {
    n: [u32; 3],
    lanes: u32,
    metric: [F; 6],
    scaled: [[F; 3]; 3],
}

impl<F: Lane> Shape<F> {
    fn new(shape: &SplineShape) -> Self {
        let (g, scaled) = (shape.metric(), shape.scaled());
        Shape {
            n: shape.grid.map(|n| n as u32),
            lanes: shape.lanes as u32,
            metric: [g[0][0], g[1][1], g[2][2], g[0][1], g[0][2], g[1][2]].map(F::from_f64),
            scaled: scaled.map(|row| row.map(F::from_f64)),
        }
    }
}

/// An electron as the kernels see it; only its size matters here.
#[repr(C)]
struct Record<F> {
    beyond: [F; 3],
    cell: [u32; 3],
    index: u32,
}

/// As many doubles as the kernel takes by value.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Inverse([f64; 9]);

struct Resident<F> {
    card: Arc<Card>,
    shape: SplineShape,
    own: Shape<F>,
    table: Buffer,
    tiles: u32,
}

pub(super) fn prepare(card: &Arc<Card>, table: &SplineTable) -> Result<Arc<dyn Splines>> {
    match table {
        SplineTable::Single(t) => Ok(Arc::new(Resident::<f32>::new(card, t)?)),
        SplineTable::Double(t) => Ok(Arc::new(Resident::<f64>::new(card, t)?)),
    }
}

impl<F: Lane> Resident<F> {
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
        let own = Shape::new(&shape);
        Ok(Resident { card: card.clone(), shape, own, table: card.upload(&laid)?, tiles: tiles as u32 })
    }

    fn place(&self, points: &[[f64; 3]]) -> Result<Batch<'_, F>> {
        let count = u32::try_from(points.len()).ok().filter(|n| *n < 1 << 30);
        let count = count.ok_or_else(|| Error::memory(format!("{} points at once", points.len())))?;
        let bins: usize = self.shape.grid.iter().map(|n| n.div_ceil(EDGE)).product();
        let record = size_of::<Record<F>>();
        let n = points.len();
        Ok(Batch {
            owner: self,
            count,
            points: self.card.upload(points)?,
            records: self.card.allocate(n * record)?,
            sorted: self.card.allocate(n * record)?,
            ranks: self.card.allocate(n * 8)?,
            bins: self.card.allocate(bins * 4)?,
            bin_count: bins as u32,
            out: self.card.allocate(n * self.shape.lanes * size_of::<F>())?,
            planes: 1,
        })
    }
}

/// Electrons on the device, and what was computed there.
struct Batch<'a, F> {
    owner: &'a Resident<F>,
    count: u32,
    points: Buffer,
    records: Buffer,
    sorted: Buffer,
    ranks: Buffer,
    bins: Buffer,
    bin_count: u32,
    out: Buffer,
    planes: usize,
}

impl<F: Lane> Batch<'_, F> {
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
        let inverse = Inverse(bytemuck::cast(shape.inverse));
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
        self.launch(what, &self.sorted, 1)
    }

    /// Queues the kernel for these records, each tile in so many parts.
    fn launch(&self, what: &str, records: &Buffer, parts: u32) -> Result<()> {
        let name = format!("spline_{what}_{}", F::NAME);
        let (table, records, count) = (self.owner.table.address, records.address, self.count);
        let (shape, out) = (self.owner.own, self.out.address);
        let grid = (count.div_ceil(GROUP as u32), parts * self.owner.tiles);
        // SAFETY: the kernel's arguments; the planes have room for all electrons, the records lie on the grid.
        unsafe { self.card().launch(&name, grid, BLOCK, &arguments![table, records, count, shape, out]) }
    }
}

impl<F: Lane> SplineBatch for Batch<'_, F> {
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
            return self.launch("halves", &self.sorted, 2);
        }
        self.locate()?;
        if assignment == 3 {
            return self.launch("values", &self.records, 1);
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

impl<F: Lane> Splines for Resident<F> {
    fn shape(&self) -> &SplineShape {
        &self.shape
    }

    fn bytes(&self) -> usize {
        self.table.bytes
    }

    fn evaluate(&self, points: &[[f64; 3]], out: Planes<'_>) -> Result<()> {
        let planes = out.check(points.len() * self.shape.lanes)?;
        let mut batch = self.place(points)?;
        if planes == 1 {
            batch.values()?
        } else {
            batch.derivatives()?
        }
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
}
