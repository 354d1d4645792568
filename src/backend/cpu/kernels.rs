//! Matrices prepared for the CPU: the fused pass and the recurrence over whatever walks its rows.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use num_complex::Complex;

use super::block::BlockReal;
use super::blocked::RowLevels;
use super::formats::{CsrRows, FullRows, Sliced};
use super::fused::{self, FusedPass, WalksRows};
use super::pairs;
use super::stencil::StencilRows;
use super::stored::{StoredIndex, StoredScalar};
use super::{Isa, Threads};
use crate::backend::matrix::{Csr, Indices, MatrixValues};
use crate::backend::{
    BlockVector, Dots, Kernel, KernelInfo, KernelShape, MatrixSpec, Rows, Update, check_update, step_by_step,
};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// Rows that the blocked recurrence computes between two looks at the interrupt flag.
const LOOK: usize = 1 << 16;

/// A matrix that walks its rows, prepared for a number of threads.
struct PreparedMatrix<T, M> {
    matrix: M,
    rows: Rows,
    cols: usize,
    info: KernelInfo,
    threads: Arc<Threads>,
    isa: Isa,
    /// How the rows depend on each other, found when the first recurrence asks.
    levels: OnceLock<RowLevels>,
    scalar: PhantomData<T>,
}

/// The pass over a range of rows for one scalar type of the matrix.
trait Fused: StoredScalar<Real: BlockReal> {
    fn rows<M: WalksRows<Self>>(
        isa: Isa,
        matrix: &M,
        pass: &FusedPass<Self::Real>,
        range: Range<usize>,
        sums: &mut [f64],
    );
}

macro_rules! fused {
    ($t:ty, $rows:path) => {
        impl Fused for $t {
            fn rows<M: WalksRows<Self>>(
                isa: Isa,
                matrix: &M,
                pass: &FusedPass<Self::Real>,
                range: Range<usize>,
                sums: &mut [f64],
            ) {
                $rows(isa, matrix, pass, range, sums)
            }
        }
    };
}

fused!(f32, fused::real_rows);
fused!(f64, fused::real_rows);
fused!(Complex<f32>, pairs::complex_rows);
fused!(C64, pairs::complex_rows);

fn lanes<F: BlockReal>(v: &BlockVector) -> Result<*const F> {
    let lanes = F::lanes(super::block(v)?)
        .ok_or_else(|| Error::internal("vectors of another precision than the matrix"))?;
    Ok(lanes.as_ptr())
}

fn lanes_mut<F: BlockReal>(v: &mut BlockVector) -> Result<*mut F> {
    let lanes = F::lanes_mut(super::block_mut(v)?)
        .ok_or_else(|| Error::internal("vectors of another precision than the matrix"))?;
    Ok(lanes.as_mut_ptr())
}

/// Lane sums of all workers, added in their order, to sums of columns.
fn to_dots(parts: &[Vec<f64>], columns: usize, complex: bool) -> Dots {
    let stride = columns * if complex { 2 } else { 1 };
    let column = |which: usize, c: usize| -> f64 {
        let lane = |part: &Vec<f64>| {
            let im = if complex { part[which * stride + columns + c] } else { 0.0 };
            part[which * stride + c] + im
        };
        parts.iter().map(lane).sum()
    };
    Dots {
        vv: (0..columns).map(|c| column(0, c)).collect(),
        wv: (0..columns).map(|c| column(1, c)).collect(),
        partial: false,
    }
}

impl<T: Fused, M: WalksRows<T>> PreparedMatrix<T, M> {
    /// Scalar operations a row, to see whether threads pay.
    fn cost(&self, stride: usize) -> usize {
        stride * (1 + self.info.entries / self.rows.local.max(1))
    }

    fn levels(&self) -> Result<&RowLevels> {
        if let Some(levels) = self.levels.get() {
            return Ok(levels);
        }
        let mut failed = None;
        let levels = RowLevels::new(&self.matrix, self.rows.local, |count, job| {
            let each = self
                .threads
                .map(&self.threads.ranges(count, 1 << 20), |range| range.map(job).collect::<Vec<_>>());
            match each {
                Ok(near) => near.into_iter().flatten().collect(),
                Err(e) => {
                    failed = Some(e);
                    vec![Vec::new(); count]
                }
            }
        });
        match failed {
            Some(e) => Err(e),
            None => Ok(self.levels.get_or_init(|| levels)),
        }
    }

    /// `steps` orders, several in one sweep through memory; None if that does not pay here.
    fn blocked(
        &self,
        (alpha, beta): (f64, f64),
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
        out: &mut Vec<Dots>,
    ) -> Result<Option<()>> {
        let (columns, complex) = (v.columns, v.dtype.is_complex());
        let stride = columns * if complex { 2 } else { 1 };
        let workers = self.threads.count();
        let square = self.rows.local == self.rows.global && self.cols == self.rows.global;
        let sparse = self.info.entries < 256 * self.rows.local;
        if steps < 2 || !square || !sparse || self.rows.local * self.cost(stride) < 100_000 {
            return Ok(None);
        }
        let Some(plan) = self.levels()?.plan(workers, stride * size_of::<T::Real>()) else {
            return Ok(None);
        };
        let mut done = 0;
        while done < steps {
            let depth = plan.depth.min(steps - done);
            let buffers = [lanes_mut::<T::Real>(v)?, lanes_mut::<T::Real>(w)?];
            let passes: Vec<FusedPass<T::Real>> = (0..depth)
                .map(|t| FusedPass {
                    c: Update { alpha, beta, gamma: -1.0 },
                    columns,
                    complex,
                    v: buffers[t % 2].cast_const(),
                    w: buffers[(t + 1) % 2],
                    offset: 0,
                    dots: true,
                })
                .collect();
            let jobs: Vec<Range<usize>> = (0..plan.workers()).map(|i| i..i + 1).collect();
            // SAFETY of the passes: the plan never lets two workers write one row,
            // nor read a row that is being written.
            let mut parts = self.threads.map(&jobs, |job| {
                let mut sums = vec![vec![0.0; 2 * stride]; depth];
                let mut looked = 0;
                plan.sweep(job.start, depth, |t, rows| {
                    looked += rows.len();
                    if looked > LOOK {
                        looked = 0;
                        if self.threads.stopped() {
                            return false;
                        }
                    }
                    T::rows(self.isa, &self.matrix, &passes[t], rows, &mut sums[t]);
                    true
                });
                sums
            })?;
            if plan.workers() > 1 {
                for t in 1..depth {
                    let shares = plan.seams(t);
                    parts.extend(self.threads.map(&jobs, |job| {
                        let mut sums = vec![vec![0.0; 2 * stride]; depth];
                        for rows in &shares[job.start] {
                            T::rows(self.isa, &self.matrix, &passes[t], rows.clone(), &mut sums[t]);
                        }
                        sums
                    })?);
                }
            }
            for t in 0..depth {
                let of_order: Vec<Vec<f64>> = parts.iter().map(|p| p[t].clone()).collect();
                out.push(to_dots(&of_order, columns, complex));
            }
            if depth % 2 == 1 {
                std::mem::swap(v, w);
            }
            done += depth;
        }
        Ok(Some(()))
    }
}

impl<T: Fused, M: WalksRows<T>> Kernel for PreparedMatrix<T, M> {
    fn shape(&self) -> KernelShape {
        KernelShape { rows: self.rows, cols: self.cols, dtype: T::DTYPE }
    }

    fn info(&self) -> KernelInfo {
        self.info.clone()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        let (columns, complex) = (v.columns, v.dtype.is_complex());
        let pass = FusedPass {
            c,
            columns,
            complex,
            v: lanes::<T::Real>(v)?,
            w: lanes_mut::<T::Real>(w)?,
            offset: self.rows.start,
            dots: dots.is_some(),
        };
        let stride = pass.stride();
        // The ranges are disjoint, and `v` and `w` are different vectors.
        let sums = self.threads.map(&self.threads.ranges(self.rows.local, self.cost(stride)), |range| {
            let mut sums = vec![0.0; 2 * stride];
            for chunk in self.threads.chunks(range) {
                T::rows(self.isa, &self.matrix, &pass, chunk, &mut sums);
            }
            sums
        })?;
        if let Some(dots) = dots {
            *dots = to_dots(&sums, columns, complex);
        }
        Ok(())
    }

    fn recurrence(
        &self,
        alpha: f64,
        beta: f64,
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
        out: &mut Vec<Dots>,
    ) -> Result<()> {
        check_update(self, v, w, true)?;
        if self.blocked((alpha, beta), v, w, steps, out)?.is_some() {
            return Ok(());
        }
        step_by_step(&|c, v, w, dots| self.update(c, v, w, Some(dots)), (alpha, beta), (v, w), steps, out)
    }

    fn overwrites(&self) -> bool {
        true
    }
}

/// What every prepared matrix shares.
struct KernelSetup {
    threads: Arc<Threads>,
    isa: Isa,
    rows: usize,
    cols: usize,
}

impl KernelSetup {
    fn finish<T, M>(self, matrix: M, format: String, bytes: usize, entries: usize) -> Arc<dyn Kernel>
    where
        T: Fused + 'static,
        M: WalksRows<T> + 'static,
    {
        Arc::new(PreparedMatrix {
            matrix,
            rows: Rows::all(self.rows),
            cols: self.cols,
            info: KernelInfo { format, bytes, entries },
            threads: self.threads,
            isa: self.isa,
            levels: OnceLock::new(),
            scalar: PhantomData::<T>,
        })
    }

    fn csr<T: Fused + 'static, J: StoredIndex>(self, csr: Arc<Csr>) -> Arc<dyn Kernel> {
        let (bytes, entries) = (csr.bytes(), csr.entries());
        self.finish::<T, _>(CsrRows { csr, index: PhantomData::<J> }, "CSR".into(), bytes, entries)
    }

    fn sliced<T: Fused + 'static, J: StoredIndex>(
        self,
        csr: &Csr,
        (chunk, sigma): (usize, usize),
        format: String,
    ) -> Result<Arc<dyn Kernel>> {
        let sliced = Sliced::<T, J>::new(csr, chunk, sigma);
        let sliced = sliced.ok_or_else(|| Error::internal("entries of another type"))?;
        let bytes = sliced.bytes();
        Ok(self.finish::<T, _>(sliced, format, bytes, csr.entries()))
    }
}

/// Calls a generic function with the scalar and index types of a matrix in compressed rows.
macro_rules! by_types {
    ($csr:expr, |$t:ident, $j:ident| $body:expr) => {{
        macro_rules! with {
            ($scalar:ty, $index:ty) => {{
                type $t = $scalar;
                type $j = $index;
                $body
            }};
        }
        match (&$csr.values, &$csr.columns) {
            (MatrixValues::F32(_), Indices::U32(_)) => with!(f32, u32),
            (MatrixValues::F64(_), Indices::U32(_)) => with!(f64, u32),
            (MatrixValues::C32(_), Indices::U32(_)) => with!(Complex<f32>, u32),
            (MatrixValues::C64(_), Indices::U32(_)) => with!(C64, u32),
            (MatrixValues::F32(_), Indices::U64(_)) => with!(f32, u64),
            (MatrixValues::F64(_), Indices::U64(_)) => with!(f64, u64),
            (MatrixValues::C32(_), Indices::U64(_)) => with!(Complex<f32>, u64),
            (MatrixValues::C64(_), Indices::U64(_)) => with!(C64, u64),
        }
    }};
}

/// Brings a matrix into the form its kernels read.
pub(super) fn prepare(threads: Arc<Threads>, isa: Isa, spec: MatrixSpec) -> Result<Arc<dyn Kernel>> {
    let common = |rows: usize, cols: usize| KernelSetup { threads: threads.clone(), isa, rows, cols };
    match spec {
        MatrixSpec::Csr(csr) => {
            csr.validate()?;
            let common = common(csr.rows, csr.cols);
            Ok(by_types!(csr, |T, J| common.csr::<T, J>(csr)))
        }
        MatrixSpec::Ell(csr) => {
            let chunk = csr.rows.max(1);
            sliced(common(csr.rows, csr.cols), csr, chunk, 1, "ELL".into())
        }
        MatrixSpec::Sell { csr, chunk, sigma } => {
            let padded = chunk.min(csr.rows.max(1));
            sliced(common(csr.rows, csr.cols), csr, padded, sigma, format!("SELL-{chunk}-{sigma}"))
        }
        MatrixSpec::Dense { rows, cols, dtype, values } => {
            let common = common(rows, cols);
            let (format, entries) = ("dense".to_string(), rows * cols);
            let bytes = entries * dtype.bytes();
            Ok(match MatrixValues::C64(values).convert(dtype) {
                MatrixValues::F32(values) => {
                    common.finish::<f32, _>(FullRows { cols, values }, format, bytes, entries)
                }
                MatrixValues::F64(values) => {
                    common.finish::<f64, _>(FullRows { cols, values }, format, bytes, entries)
                }
                MatrixValues::C32(values) => {
                    common.finish::<Complex<f32>, _>(FullRows { cols, values }, format, bytes, entries)
                }
                MatrixValues::C64(values) => {
                    common.finish::<C64, _>(FullRows { cols, values }, format, bytes, entries)
                }
            })
        }
        MatrixSpec::Wilson(spec) => super::wilson::prepare(threads, isa, &spec),
        MatrixSpec::SiteDiagonal { rows, factors, single } => {
            super::wilson::prepare_diagonal(threads, rows, factors, single)
        }
        MatrixSpec::Records { .. } => Err(Error::internal("records are no matrix in rows")),
        MatrixSpec::Stencil(source) => {
            source.validate()?;
            let common = common(source.dim(), source.dim());
            fn finish<T: Fused + 'static>(common: KernelSetup, rows: StencilRows<T>) -> Arc<dyn Kernel> {
                let (bytes, entries) = (rows.bytes(), rows.entries());
                common.finish::<T, _>(rows, "stencil".into(), bytes, entries)
            }
            Ok(match source.dtype {
                DType::F32 => finish(common, StencilRows::<f32>::new(source)?),
                DType::F64 => finish(common, StencilRows::<f64>::new(source)?),
                DType::C32 => finish(common, StencilRows::<Complex<f32>>::new(source)?),
                DType::C64 => finish(common, StencilRows::<C64>::new(source)?),
            })
        }
    }
}

fn sliced(
    common: KernelSetup,
    csr: Arc<Csr>,
    chunk: usize,
    sigma: usize,
    format: String,
) -> Result<Arc<dyn Kernel>> {
    csr.check_slices((chunk, sigma), &format)?;
    by_types!(csr, |T, J| common.sliced::<T, J>(&csr, (chunk, sigma), format))
}
