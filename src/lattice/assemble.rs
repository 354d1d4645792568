//! Assembly into compressed rows: a generator of the rows of one site, run twice in parallel (to count, then to fill),
//! so memory never holds a second copy of the matrix.

use rayon::prelude::*;

use super::lattice::no_axis;
use super::model::{HopValue, Model};
use super::plan::{ModelRows, RowPlan};
use crate::backend::matrix::{Csr, Indices, MatrixValues, Stencil, Wrap};
use crate::error::{Error, Result};
use crate::number::{C64, DType, Scalar, memory};
use crate::task;

/// Which form an assembly should take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AssemblyForm {
    /// A stencil where the model is one, compressed rows otherwise.
    #[default]
    Auto,
    /// A stencil, or an error.
    Stencil,
    /// Compressed rows.
    Csr,
}

/// What a model is assembled into.
#[derive(Debug, Clone)]
pub enum Assembled {
    /// Matrix-free.
    Stencil(Stencil),
    /// Every entry stored.
    Csr(Csr),
}

/// Sites whose rows one task generates.
const CHUNK: usize = 8192;

impl Model {
    /// The matrix of the model; `single` asks for 32-bit reals.
    ///
    /// # Errors
    /// When the format cannot hold the model, or the matrix or a single vector does not fit into memory.
    pub fn assemble(&self, format: AssemblyForm, single: bool) -> Result<Assembled> {
        self.assemble_along(&[], format, single)
    }

    /// The commutators i [... i [H, x_a] ..., x_z] with the Cartesian positions along `axes`; without axes the matrix
    /// itself. One axis makes the velocity (hbar = 1): each hopping times i and its own displacement,
    /// whichever way round it goes.
    ///
    /// # Errors
    /// As [`Model::assemble`], and for an axis that the lattice does not have.
    pub fn assemble_along(&self, axes: &[usize], format: AssemblyForm, single: bool) -> Result<Assembled> {
        let rows = self.rows();
        self.check_axes(axes)?;
        let scalar = self.dtype_along(axes, single).bytes();
        memory::ensure(rows as u128 * scalar as u128, &format!("one vector of {rows} rows"))?;
        match format {
            AssemblyForm::Auto if self.wants_stencil() => {
                self.stencil_along(axes, single).map(Assembled::Stencil)
            }
            AssemblyForm::Stencil => self.stencil_along(axes, single).map(Assembled::Stencil),
            _ => self.rows_along(axes, 0..self.lattice.sites(), single).map(Assembled::Csr),
        }
    }

    fn check_axes(&self, axes: &[usize]) -> Result<()> {
        let space = self.lattice.space();
        match axes.iter().find(|&&axis| axis >= space) {
            None => Ok(()),
            Some(axis) => Err(no_axis(axis, space)),
        }
    }

    /// Some of the rows that [`Model::assemble_along`] makes, compressed, with global columns: pieces of the whole,
    /// first row and length of each.
    ///
    /// # Errors
    /// Rows or an axis that are not there; no memory.
    pub fn pieces_along(&self, axes: &[usize], pieces: &[(usize, usize)], single: bool) -> Result<Csr> {
        self.check_axes(axes)?;
        let (n, dtype) = (self.orbitals, self.dtype_along(axes, single));
        let mut all: Option<Csr> = None;
        for &(first, length) in pieces {
            let end = first.checked_add(length).filter(|end| *end <= self.rows());
            let end = end.ok_or_else(|| Error::input(format!("row {first} of {}", self.rows())))?;
            let sites = first / n..end.div_ceil(n);
            let mut csr = self.rows_of_type(dtype, axes, sites.clone())?;
            // Orbitals of one site may be cut apart.
            csr.keep_rows(first - sites.start * n..end - sites.start * n);
            match &mut all {
                None => all = Some(csr),
                Some(all) => all.append(&csr),
            }
        }
        match all {
            Some(csr) => Ok(csr),
            None => self.rows_of_type(dtype, axes, 0..0),
        }
    }

    /// All rows, compressed.
    ///
    /// # Errors
    /// When the matrix does not fit into memory.
    pub fn to_csr(&self, single: bool) -> Result<Csr> {
        self.rows_along(&[], 0..self.lattice.sites(), single)
    }

    fn rows_along(&self, axes: &[usize], sites: std::ops::Range<usize>, single: bool) -> Result<Csr> {
        self.rows_of_type(self.dtype_along(axes, single), axes, sites)
    }

    fn dtype_along(&self, axes: &[usize], single: bool) -> DType {
        DType::of(single, !axes.is_empty() || !self.is_real())
    }

    fn rows_of_type(&self, dtype: DType, axes: &[usize], sites: std::ops::Range<usize>) -> Result<Csr> {
        match dtype {
            DType::F32 => self.fill::<f32>(axes, sites, MatrixValues::F32),
            DType::F64 => self.fill::<f64>(axes, sites, MatrixValues::F64),
            DType::C32 => self.fill::<num_complex::Complex<f32>>(axes, sites, MatrixValues::C32),
            DType::C64 => self.fill::<C64>(axes, sites, MatrixValues::C64),
        }
    }

    /// Whether every matrix element is real.
    pub fn is_real(&self) -> bool {
        let crossing = |d: usize| self.hops.iter().any(|hop| hop.bond.shift[d] != 0);
        self.fluxes.is_empty()
            && self.uniform.iter().all(|block| block.is_real())
            && self.singlets.iter().all(|pairs| pairs.iter().all(|z| z.im == 0.0))
            && self.local.iter().all(|table| table.blocks().iter().all(|block| block.is_real()))
            && self.hops.iter().all(|hop| match &hop.value {
                HopValue::Uniform(block) => block.is_real(),
                HopValue::PerCell(table) => table.blocks().iter().all(|block| block.is_real()),
            })
            && self.lattice.wrap().iter().enumerate().all(|(d, wrap)| match wrap {
                Wrap::Open => true,
                Wrap::Phase(p) => p.im == 0.0 || !crossing(d),
            })
    }

    fn fill<T: Scalar>(
        &self,
        axes: &[usize],
        sites: std::ops::Range<usize>,
        wrap: fn(Vec<T>) -> MatrixValues,
    ) -> Result<Csr> {
        let n = self.orbitals;
        let rows = sites.len() * n;
        memory::ensure(16 * rows as u128, &format!("a sparse matrix of {rows} rows"))?;
        let plan = RowPlan::new(self, axes);
        let mut row_start = vec![0usize; rows + 1];
        let stop = task::current();
        row_start[1..].par_chunks_mut(CHUNK * n).enumerate().for_each(|(chunk, counts)| {
            if stop.raised() {
                return;
            }
            let mut scratch = ModelRows::new(n);
            let first = sites.start + chunk * CHUNK;
            for (k, count) in counts.chunks_mut(n).enumerate() {
                plan.count(first + k, &mut scratch, count);
            }
        });
        stop.check()?;
        let narrow = Csr::start_rows(&mut row_start, self.rows(), T::DTYPE)?;
        let entries = row_start[rows];
        let mut values = vec![T::default(); entries];
        let columns = if narrow {
            let mut columns = vec![0u32; entries];
            plan.write(&sites, &row_start, &mut columns, &mut values, |c| c as u32);
            Indices::U32(columns)
        } else {
            let mut columns = vec![0u64; entries];
            plan.write(&sites, &row_start, &mut columns, &mut values, |c| c as u64);
            Indices::U64(columns)
        };
        stop.check()?;
        Ok(Csr { rows, cols: self.rows(), row_start, columns, values: wrap(values) })
    }
}

impl RowPlan<'_> {
    /// Generates all rows into the arrays.
    fn write<T: Scalar, I: Copy + Send + Sync>(
        &self,
        sites: &std::ops::Range<usize>,
        row_start: &[usize],
        columns: &mut [I],
        values: &mut [T],
        index: impl Fn(usize) -> I + Sync,
    ) {
        let n = self.model.orbitals;
        let mut parts = Vec::new();
        let (mut columns, mut values) = (columns, values);
        for first in sites.clone().step_by(CHUNK) {
            let last = (first + CHUNK).min(sites.end);
            let size = row_start[(last - sites.start) * n] - row_start[(first - sites.start) * n];
            let (c, rest_c) = columns.split_at_mut(size);
            let (v, rest_v) = values.split_at_mut(size);
            (columns, values) = (rest_c, rest_v);
            parts.push((first..last, c, v));
        }
        let stop = task::current();
        parts.into_par_iter().for_each(|(part, columns, values)| {
            if stop.raised() {
                return;
            }
            let mut scratch = ModelRows::new(n);
            let mut at = 0;
            for site in part {
                self.each(site, &mut scratch, |column, value| {
                    columns[at] = index(column);
                    values[at] = T::from_c64(value);
                    at += 1;
                });
            }
        });
    }
}
