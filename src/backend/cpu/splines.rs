//! Cubic B-splines on the CPU: a point reads 16 chunks of four neighbouring rows; along a row the functions lie side by
//! side, and vector registers run over them.
//!
//! Floor: the 64 rows of a point, 256 L bytes in single precision, over the bandwidth of whatever holds them. Points
//! are taken in an order that keeps neighbours together, so with many points the caches hold these rows. Every point is
//! computed alone: its numbers do not depend on the other points or on their order.

use std::marker::PhantomData;
use std::sync::Arc;

use super::simd::{Register, fetch};
use super::{Isa, Threads};
use crate::backend::splines::{
    Coefficients, Planes, SplineBatch, SplineShape, SplineTable, Splines, weights,
};
use crate::error::Result;
use crate::number::Real;
use crate::task;

/// Grid steps along the edge of a block whose points follow one another: its rows fit into the second cache.
const BLOCK: usize = 4;

/// Points below which no order is sought.
const FEW: usize = 32;

/// Points between two looks at the interrupt flag.
const BATCH: usize = 64;

struct PreparedSplines {
    table: Arc<SplineTable>,
    threads: Arc<Threads>,
    isa: Isa,
}

pub(super) fn prepare(threads: Arc<Threads>, isa: Isa, table: Arc<SplineTable>) -> Arc<dyn Splines> {
    Arc::new(PreparedSplines { table, threads, isa })
}

impl Splines for PreparedSplines {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn shape(&self) -> &SplineShape {
        self.table.shape()
    }

    fn bytes(&self) -> usize {
        self.table.bytes()
    }

    fn evaluate(&self, points: &[[f64; 3]], out: Planes<'_>) -> Result<()> {
        out.check(points.len() * self.shape().lanes)?;
        match (&*self.table, out) {
            (SplineTable::Single(t), Planes::Single(out)) => self.run(t, points, out),
            (SplineTable::Single(t), Planes::Double(out)) => self.run(t, points, out),
            (SplineTable::Double(t), Planes::Single(out)) => self.run(t, points, out),
            (SplineTable::Double(t), Planes::Double(out)) => self.run(t, points, out),
        }
    }

    fn batch(&self, points: &[[f64; 3]]) -> Result<Box<dyn SplineBatch + '_>> {
        let points = points.to_vec();
        Ok(match &*self.table {
            SplineTable::Single(table) => {
                Box::new(SortedBatch { owner: self, table, points, out: Vec::new() })
            }
            SplineTable::Double(table) => {
                Box::new(SortedBatch { owner: self, table, points, out: Vec::new() })
            }
        })
    }
}

/// Points and results in the table's precision.
struct SortedBatch<'a, F> {
    owner: &'a PreparedSplines,
    table: &'a Coefficients<F>,
    points: Vec<[f64; 3]>,
    out: Vec<Vec<F>>,
}

impl<F: TableReal> SortedBatch<'_, F> {
    fn run(&mut self, planes: usize) -> Result<()> {
        let each = self.points.len() * self.table.shape().lanes;
        self.out.resize_with(planes, || vec![F::default(); each]);
        let out = self.out.iter_mut().map(Vec::as_mut_slice).collect();
        self.owner.run(self.table, &self.points, out)
    }
}

impl<F: TableReal> SplineBatch for SortedBatch<'_, F> {
    fn values(&mut self) -> Result<()> {
        self.run(1)
    }

    fn derivatives(&mut self) -> Result<()> {
        self.run(5)
    }

    fn read(&self) -> Result<Vec<Vec<f64>>> {
        Ok(self.out.iter().map(|plane| plane.iter().map(|x| x.to_f64()).collect()).collect())
    }
}

impl PreparedSplines {
    fn run<F: TableReal, O: Real>(
        &self,
        table: &Coefficients<F>,
        points: &[[f64; 3]],
        mut out: Vec<&mut [O]>,
    ) -> Result<()> {
        let shape = table.shape();
        let order = order(shape, points);
        let scaled = shape.scaled();
        let job = SplineJob {
            shape,
            metric: shape.metric(),
            jacobian: scaled.map(|row| row.map(F::from_f64)),
            table: table.data(),
            stride: table.stride(),
            points,
            planes: out.iter_mut().map(|p| ResultPlane(p.as_mut_ptr())).collect(),
            written: PhantomData,
        };
        let cost = 64 * shape.lanes * job.planes.len();
        // A few points take less time than waking another thread. Walkers are dealt out to workers already, so that
        // sharing out their points does not pay.
        let alone = points.len() < 4 || task::on_worker();
        let cost = if alone { 0 } else { cost };
        let ranges = self.threads.ranges(points.len(), cost);
        self.threads.map(&ranges, |range| {
            let mut room = vec![F::default(); job.planes.len() * job.stride];
            for batch in order[range].chunks(BATCH) {
                if self.threads.stopped() {
                    return;
                }
                F::range(self.isa, &job, batch, &mut room);
            }
        })?;
        Ok(())
    }
}

/// The points by blocks of the grid, and by cells within a block.
fn order(shape: &SplineShape, points: &[[f64; 3]]) -> Vec<u32> {
    if points.len() < FEW {
        return (0..points.len() as u32).collect();
    }
    let blocks = shape.grid.map(|n| n.div_ceil(BLOCK));
    let key = |p: &[f64; 3]| {
        let (cell, _) = shape.locate(p);
        let block = cell.map(|c| c / BLOCK);
        let within = cell.map(|c| c % BLOCK);
        // Every second column of blocks runs backwards: a block's neighbour comes next.
        let turn = |row: usize, k: usize, n: usize| if row.is_multiple_of(2) { k } else { n - 1 - k };
        let y = turn(block[0], block[1], blocks[1]);
        let column = block[0] * blocks[1] + y;
        let z = turn(column, block[2], blocks[2]);
        ((column * blocks[2] + z) * BLOCK.pow(3)
            + (within[0] * BLOCK + within[1]) * BLOCK
            + turn(within[1], within[2], BLOCK)) as u64
    };
    let mut keys: Vec<(u64, u32)> = points.iter().zip(0..).map(|(p, i)| (key(p), i)).collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, i)| i).collect()
}

/// Where a plane of results begins.
struct ResultPlane<O>(*mut O);

// SAFETY: threads write the results of different points.
unsafe impl<O: Send> Sync for ResultPlane<O> {}

/// One evaluation as the kernels see it.
pub(super) struct SplineJob<'a, F, O> {
    shape: &'a SplineShape,
    metric: [[f64; 3]; 3],
    jacobian: [[F; 3]; 3],
    table: &'a [F],
    stride: usize,
    points: &'a [[f64; 3]],
    planes: Vec<ResultPlane<O>>,
    written: PhantomData<&'a mut [O]>,
}

/// What a point reads: where its 16 chunks of four rows begin, and its weights.
struct GridPlace<F> {
    columns: [usize; 16],
    along: [usize; 4],
    /// Of the four rows of a chunk: value, derivative, second derivative times the metric.
    z: [[F; 4]; 3],
    /// Of a chunk: value, the two other derivatives, and of the Laplacian that of values and of derivatives along z.
    xy: [[F; 5]; 16],
}

impl<F: Real> GridPlace<F> {
    #[inline(always)]
    fn new<O>(job: &SplineJob<'_, F, O>, point: &[f64; 3], all: bool) -> GridPlace<F> {
        let (cell, beyond) = job.shape.locate(point);
        let [nx, ny, nz] = job.shape.grid;
        // The four grid points around, wrapped; a grid may have fewer than four.
        let near = |c: usize, n: usize| -> [usize; 4] { std::array::from_fn(|k| (c + n - 1 + k) % n) };
        let (x, y, z) = (near(cell[0], nx), near(cell[1], ny), near(cell[2], nz));
        let (wx, wy, wz) = (weights(beyond[0]), weights(beyond[1]), weights(beyond[2]));
        let g = &job.metric;
        let columns = std::array::from_fn(|k| (x[k / 4] * ny + y[k % 4]) * nz * job.stride);
        let xy = std::array::from_fn(|k| {
            let (i, j) = (k / 4, k % 4);
            let value = wx[0][i] * wy[0][j];
            if !all {
                let zero = F::default();
                return [F::from_f64(value), zero, zero, zero, zero];
            }
            let (dx, dy) = (wx[1][i] * wy[0][j], wx[0][i] * wy[1][j]);
            let flat = g[0][0] * wx[2][i] * wy[0][j]
                + g[1][1] * wx[0][i] * wy[2][j]
                + 2.0 * g[0][1] * wx[1][i] * wy[1][j];
            [value, dx, dy, flat, 2.0 * (g[0][2] * dx + g[1][2] * dy)].map(F::from_f64)
        });
        let z_weights = [wz[0], wz[1], wz[2].map(|w| g[2][2] * w)].map(|w| w.map(F::from_f64));
        GridPlace { columns, along: z.map(|z| z * job.stride), z: z_weights, xy }
    }
}

/// One point: `room` takes value, the three derivatives along the grid and the Laplacian, `stride` numbers each.
///
/// # Safety
/// The processor has the instructions of `P`, the places lie in the table, whose rows are whole numbers of packs, and
/// `room` has room.
#[inline(always)]
unsafe fn point<P: Register, const ALL: bool>(
    table: *const P::Real,
    stride: usize,
    place: &GridPlace<P::Real>,
    next: &GridPlace<P::Real>,
    room: *mut P::Real,
) {
    // SAFETY: the caller's promises.
    unsafe {
        let z = |d: usize, k: usize| P::splat(place.z[d][k]);
        let value = [z(0, 0), z(0, 1), z(0, 2), z(0, 3)];
        let first = [z(1, 0), z(1, 1), z(1, 2), z(1, 3)];
        let second = [z(2, 0), z(2, 1), z(2, 2), z(2, 3)];
        for column in 0..16 {
            let rows = place.along.map(|z| table.add(place.columns[column] + z));
            let ahead = match column {
                15 => next.along.map(|z| table.add(next.columns[0] + z)),
                _ => place.along.map(|z| table.add(place.columns[column + 1] + z)),
            };
            let w = place.xy[column].map(|w| P::splat(w));
            let fresh = column == 0;
            for at in (0..stride).step_by(P::LANES) {
                let c = rows.map(|row| P::load(row.add(at)));
                for row in ahead {
                    fetch(row.add(at));
                }
                let along = |w: [P; 4]| c[3].fma(w[3], c[2].fma(w[2], c[1].fma(w[1], c[0].mul(w[0]))));
                let sum = |plane: usize, w: P, x: P| {
                    let slot = room.add(plane * stride + at);
                    if fresh { w.mul(x).store(slot) } else { w.fma(x, P::load(slot)).store(slot) }
                };
                let s = along(value);
                sum(0, w[0], s);
                if ALL {
                    let (d, dd) = (along(first), along(second));
                    sum(1, w[1], s);
                    sum(2, w[2], s);
                    sum(3, w[0], d);
                    let slot = room.add(4 * stride + at);
                    let laplacian = w[0].fma(dd, w[4].fma(d, w[3].mul(s)));
                    if fresh {
                        laplacian.store(slot);
                    } else {
                        laplacian.add(P::load(slot)).store(slot);
                    }
                }
            }
        }
    }
}

/// Some points, one after the other.
///
/// # Safety
/// As [`point`]; the planes have room for all points, and no other thread writes these points' results.
#[inline(always)]
unsafe fn range<P: Register, O: Real>(job: &SplineJob<'_, P::Real, O>, order: &[u32], room: &mut [P::Real]) {
    let lanes = job.shape.lanes;
    let all = job.planes.len() > 1;
    let Some(&first) = order.first() else { return };
    let mut place = GridPlace::new(job, &job.points[first as usize], all);
    for (k, &p) in order.iter().enumerate() {
        let after = order.get(k + 1).copied().unwrap_or(p);
        let next = GridPlace::new(job, &job.points[after as usize], all);
        let (table, room_at) = (job.table.as_ptr(), room.as_mut_ptr());
        // SAFETY: the caller's promises.
        unsafe {
            if all {
                point::<P, true>(table, job.stride, &place, &next, room_at);
            } else {
                point::<P, false>(table, job.stride, &place, &next, room_at);
            }
        }
        place = next;
        let out = |plane: usize| {
            // SAFETY: the plane has room for all points, and this point is this thread's.
            unsafe { std::slice::from_raw_parts_mut(job.planes[plane].0.add(p as usize * lanes), lanes) }
        };
        let of = |plane: usize| &room[plane * job.stride..][..lanes];
        copy(of(0), out(0));
        if !all {
            continue;
        }
        copy(of(4), out(4));
        let (x, y, z) = (of(1), of(2), of(3));
        for d in 0..3 {
            let [a, b, c] = [job.jacobian[0][d], job.jacobian[1][d], job.jacobian[2][d]];
            for (k, slot) in out(1 + d).iter_mut().enumerate() {
                *slot = O::from_f64((a * x[k] + b * y[k] + c * z[k]).to_f64());
            }
        }
    }
}

#[inline(always)]
fn copy<F: Real, O: Real>(from: &[F], to: &mut [O]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = O::from_f64(from.to_f64());
    }
}

/// Reals that tables are made of.
pub(super) trait TableReal: Real {
    /// Some points with the instructions of a set.
    fn range<O: Real>(isa: Isa, job: &SplineJob<'_, Self, O>, order: &[u32], room: &mut [Self]);
}

macro_rules! lane {
    ($real:ty, $wide:ident, $half:ident) => {
        impl TableReal for $real {
            fn range<O: Real>(isa: Isa, job: &SplineJob<'_, $real, O>, order: &[u32], room: &mut [$real]) {
                #[cfg(all(target_arch = "x86_64", not(test)))]
                {
                    use std::arch::x86_64::{$half, $wide};
                    #[target_feature(enable = "avx512f,avx512dq,avx512vl,fma,avx2")]
                    unsafe fn wide<O: Real>(
                        job: &SplineJob<'_, $real, O>,
                        order: &[u32],
                        room: &mut [$real],
                    ) {
                        // SAFETY: the instructions are enabled here; the caller's promises.
                        unsafe { range::<$wide, O>(job, order, room) }
                    }
                    #[target_feature(enable = "avx2,fma")]
                    unsafe fn half<O: Real>(
                        job: &SplineJob<'_, $real, O>,
                        order: &[u32],
                        room: &mut [$real],
                    ) {
                        // SAFETY: as above.
                        unsafe { range::<$half, O>(job, order, room) }
                    }
                    match isa {
                        // SAFETY: `Isa::detect` found the instructions; tables and planes were checked by `evaluate`.
                        Isa::Avx512 => return unsafe { wide(job, order, room) },
                        // SAFETY: as above.
                        Isa::Avx2 => return unsafe { half(job, order, room) },
                        Isa::Baseline => {}
                    }
                }
                let _ = isa;
                // SAFETY: a pack of one needs no instructions; as above.
                unsafe { range::<$real, O>(job, order, room) }
            }
        }
    };
}

lane!(f32, __m512, __m256);
lane!(f64, __m512d, __m256d);
