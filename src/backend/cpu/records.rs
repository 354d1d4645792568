//! Products by operation records: a job is a block of the result, or several of its rows. So no two threads write the
//! same numbers. The order of the sums within a job is fixed.

use std::ops::Range;
use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::block::BlockReal;
use super::{Isa, Threads, block, block_mut};
use crate::backend::matrix::records::{
    Element, OperatorPiece, ProductRecord, RecordList, Records, SectorPanel,
};
use crate::backend::{BlockVector, Dots, Kernel, KernelInfo, KernelShape, Rows, Update, check_update};
use crate::error::{Error, Result};
use crate::number::C64;

/// Multiplications below which a second thread is not asked.
const ALONE: u64 = 300_000;

/// Some rows of a block of the result.
struct BlockRows {
    panel: usize,
    rows: Range<usize>,
    work: u64,
}

/// A prepared list.
struct CpuRecords<T> {
    list: Arc<RecordList<T>>,
    threads: Arc<Threads>,
    isa: Isa,
    jobs: Vec<BlockRows>,
    work: u64,
}

/// Brings a list into the order its jobs are dealt out in.
pub(super) fn prepare(threads: Arc<Threads>, isa: Isa, records: Records) -> Result<Arc<dyn Kernel>> {
    Ok(match records {
        Records::Real(list) => Arc::new(CpuRecords::new(threads, isa, list)?),
        Records::Complex(list) => Arc::new(CpuRecords::new(threads, isa, list)?),
    })
}

impl<T: Element> CpuRecords<T> {
    fn new(threads: Arc<Threads>, isa: Isa, list: Arc<RecordList<T>>) -> Result<Self> {
        for matrix in list.matrices() {
            matrix.here_alone()?;
        }
        let of = |panel: usize| -> u64 {
            list.records[panel].iter().map(|r| r.work(list.panels[panel], &list.panels)).sum()
        };
        let works: Vec<u64> = (0..list.panels.len()).map(of).collect();
        let work: u64 = works.iter().sum();
        let share = (work / (3 * threads.count() as u64)).max(ALONE / 4);
        let mut jobs = Vec::new();
        for (panel, &own) in works.iter().enumerate() {
            let rows = list.panels[panel].rows;
            let most = if threads.count() > 1 { rows.div_ceil(16) } else { 1 };
            let parts = (own.div_ceil(share) as usize).clamp(1, most.max(1));
            jobs.extend((0..parts).map(|k| BlockRows {
                panel,
                rows: rows * k / parts..rows * (k + 1) / parts,
                work: own / parts as u64,
            }));
        }
        // The longest jobs first, so that the workers end at about the same time.
        jobs.sort_by_key(|job| (std::cmp::Reverse(job.work), job.panel, job.rows.start));
        Ok(CpuRecords { list, threads, isa, jobs, work })
    }

    /// `w = alpha A v + beta v + gamma w` for one vector.
    fn product(&self, c: Update, v: &[T], w: &mut [T]) {
        let target = SharedResult { first: w.as_mut_ptr() };
        let job = |k: usize| {
            let job = &self.jobs[k];
            let panel = self.list.panels[job.panel];
            let range =
                panel.offset + job.rows.start * panel.columns..panel.offset + job.rows.end * panel.columns;
            // SAFETY: the rows of all jobs are disjoint, and each job runs once while `w` is borrowed here.
            let own = unsafe { target.rows(range.clone()) };
            let v_own = &v[range];
            let (beta, gamma) = (T::from_c64(c.beta.into()), T::from_c64(c.gamma.into()));
            if c.gamma == 0.0 && c.beta == 0.0 {
                own.fill(T::default());
            } else if c.gamma == 0.0 {
                own.iter_mut().zip(v_own).for_each(|(y, x)| *y = beta * *x);
            } else {
                own.iter_mut().zip(v_own).for_each(|(y, x)| *y = gamma * *y + beta * *x);
            }
            let mut space = Vec::new();
            for record in &self.list.records[job.panel] {
                self.run(record, panel, job.rows.clone(), T::from_c64(c.alpha.into()), v, own, &mut space);
            }
        };
        if self.work < ALONE {
            (0..self.jobs.len()).for_each(job);
        } else {
            self.threads.share(self.jobs.len(), &job);
        }
    }

    fn source<'a>(&self, panel: usize, v: &'a [T]) -> MatRef<'a, T> {
        let p = self.list.panels[panel];
        MatRef::from_row_major_slice(&v[p.offset..p.offset + p.rows * p.columns], p.rows, p.columns)
    }

    /// Adds one record's rows to `own`, which holds `rows` of the panel.
    fn run(
        &self,
        record: &ProductRecord<T>,
        panel: SectorPanel,
        rows: Range<usize>,
        alpha: T,
        v: &[T],
        own: &mut [T],
        space: &mut Vec<T>,
    ) {
        let mut out = MatMut::from_row_major_slice_mut(own, rows.len(), panel.columns);
        match record {
            ProductRecord::Single { source, left, right } => {
                let Some((first, last)) = overlap(left, &rows) else { return };
                let out =
                    out.submatrix_mut(left.row + first - rows.start, right.row, last - first, right.rows);
                let scale = alpha * left.scale * right.scale;
                let x = self.source(*source, v);
                match (matrix(left), matrix(right)) {
                    (Some(a), _) => {
                        let x = x.submatrix(left.column, right.column, left.columns, right.columns);
                        add(out, a.subrows(first, last - first), x, scale);
                    }
                    (None, Some(b)) => {
                        let x = x.submatrix(left.column + first, right.column, last - first, right.columns);
                        add(out, x, b.transpose(), scale);
                    }
                    (None, None) => {
                        let x = x.submatrix(left.column + first, right.column, last - first, right.columns);
                        axpy(out, x, scale);
                    }
                }
            }
            ProductRecord::Double { source, left, right } => {
                let x = self.source(*source, v);
                space.clear();
                space.resize(rows.len() * x.ncols(), T::default());
                let mut inner = MatMut::from_row_major_slice_mut(space, rows.len(), x.ncols());
                let mut any = false;
                for f in left {
                    if let (Some(a), Some((first, last))) = (matrix(f), overlap(f, &rows)) {
                        let into = inner.as_mut().subrows_mut(f.row + first - rows.start, last - first);
                        let x = x.subrows(f.column, f.columns);
                        add(into, a.subrows(first, last - first), x, alpha * f.scale);
                        any = true;
                    }
                }
                if !any {
                    return;
                }
                for f in right {
                    if let Some(b) = matrix(f) {
                        let out = out.as_mut().subcols_mut(f.row, f.rows);
                        let x = inner.as_ref().subcols(f.column, f.columns);
                        add(out, x, b.transpose(), f.scale);
                    }
                }
            }
        }
    }
}

/// The matrix of a factor, which was brought here before the first product.
fn matrix<T>(f: &OperatorPiece<T>) -> Option<MatRef<'_, T>> {
    Some(f.matrix.as_ref()?.known_alone()?.as_ref())
}

/// The rows of a factor that lie in `rows`, counted within the factor.
fn overlap<T>(f: &OperatorPiece<T>, rows: &Range<usize>) -> Option<(usize, usize)> {
    let first = rows.start.max(f.row);
    let last = rows.end.min(f.row + f.rows);
    (first < last).then(|| (first - f.row, last - f.row))
}

fn add<T: Element>(out: MatMut<'_, T>, a: MatRef<'_, T>, b: MatRef<'_, T>, scale: T) {
    matmul(out, Accum::Add, a, b, scale, Par::Seq);
}

fn axpy<T: Element>(mut out: MatMut<'_, T>, x: MatRef<'_, T>, scale: T) {
    for i in 0..out.nrows() {
        let (y, x) = (out.as_mut().row_mut(i), x.row(i));
        for (y, x) in y.iter_mut().zip(x.iter()) {
            *y += scale * *x;
        }
    }
}

/// The result, of which every job takes its own rows.
struct SharedResult<T> {
    first: *mut T,
}

// SAFETY: jobs on several threads take disjoint rows only (see `rows`).
unsafe impl<T: Send> Sync for SharedResult<T> {}

impl<T> SharedResult<T> {
    /// # Safety
    /// The range lies inside the vector, and no other slice of it overlaps while this one lives.
    #[allow(clippy::mut_from_ref)]
    unsafe fn rows(&self, range: Range<usize>) -> &mut [T] {
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(range.start), range.len()) }
    }
}

/// The vectors behind the lanes of a block: how records see them.
trait ColumnLanes: Element {
    /// Runs `f` on every column of `v` and `w` in turn.
    fn each(v: &BlockVector, w: &mut BlockVector, f: impl FnMut(&[Self], &mut [Self])) -> Result<()>;
}

fn lanes(v: &BlockVector) -> Result<&[f64]> {
    f64::lanes(block(v)?).ok_or_else(|| Error::input("superblocks work in double precision"))
}

fn lanes_mut(v: &mut BlockVector) -> Result<&mut [f64]> {
    f64::lanes_mut(block_mut(v)?).ok_or_else(|| Error::input("superblocks work in double precision"))
}

impl ColumnLanes for f64 {
    fn each(v: &BlockVector, w: &mut BlockVector, mut f: impl FnMut(&[f64], &mut [f64])) -> Result<()> {
        // A real operator acts on real and imaginary parts alike.
        let stride = v.columns() * if v.dtype().is_complex() { 2 } else { 1 };
        let (v, w) = (lanes(v)?, lanes_mut(w)?);
        if stride == 1 {
            f(v, w);
            return Ok(());
        }
        for lane in 0..stride {
            let x: Vec<f64> = v.iter().skip(lane).step_by(stride).copied().collect();
            let mut y: Vec<f64> = w.iter().skip(lane).step_by(stride).copied().collect();
            f(&x, &mut y);
            w.iter_mut().skip(lane).step_by(stride).zip(y).for_each(|(w, y)| *w = y);
        }
        Ok(())
    }
}

impl ColumnLanes for C64 {
    fn each(v: &BlockVector, w: &mut BlockVector, mut f: impl FnMut(&[C64], &mut [C64])) -> Result<()> {
        let columns = v.columns();
        let (v, w) = (lanes(v)?, lanes_mut(w)?);
        if columns == 1 {
            // One column lies as pairs of real and imaginary part.
            f(bytemuck::cast_slice(v), bytemuck::cast_slice_mut(w));
            return Ok(());
        }
        let stride = 2 * columns;
        for c in 0..columns {
            let get = |row: &[f64]| C64::new(row[c], row[columns + c]);
            let x: Vec<C64> = v.chunks_exact(stride).map(get).collect();
            let mut y: Vec<C64> = w.chunks_exact(stride).map(get).collect();
            f(&x, &mut y);
            for (row, z) in w.chunks_exact_mut(stride).zip(y) {
                (row[c], row[columns + c]) = (z.re, z.im);
            }
        }
        Ok(())
    }
}

impl<T: ColumnLanes> Kernel for CpuRecords<T> {
    fn shape(&self) -> KernelShape {
        KernelShape::square(Rows::all(self.list.dim), T::DTYPE)
    }

    fn info(&self) -> KernelInfo {
        self.list.info()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        T::each(v, w, |x, y| self.product(c, x, y))?;
        self.threads.check()?;
        if let Some(dots) = dots {
            dots.vv = super::algebra::dots((&self.threads, self.isa), v, v)?.iter().map(|z| z.re).collect();
            dots.wv = super::algebra::dots((&self.threads, self.isa), w, v)?.iter().map(|z| z.re).collect();
        }
        Ok(())
    }
}
