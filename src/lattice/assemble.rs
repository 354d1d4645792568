//! Assembly into compressed rows: a generator of the rows of one site, run twice in parallel (to count, then to fill),
//! so that no second copy of the matrix is ever in memory.

use rayon::prelude::*;

use super::lattice::{Landing, MAX_DIMENSION};
use super::model::{HopValue, Model};
use crate::backend::matrix::{Csr, Indices, Stencil, Values, Wrap, merge};
use crate::error::{Error, Result};
use crate::number::{C64, DType, Scalar, memory};
use crate::task;

/// Which form an assembly should take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A stencil where the model is one, compressed rows otherwise.
    #[default]
    Auto,
    /// A stencil, or an error.
    Stencil,
    /// Compressed rows.
    Csr,
}

/// A model as a matrix.
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
    pub fn assemble(&self, format: Format, single: bool) -> Result<Assembled> {
        let rows = self.rows();
        let scalar = DType::of(single, !self.is_real()).bytes();
        memory::ensure(rows as u128 * scalar as u128, &format!("one vector of {rows} rows"))?;
        match format {
            Format::Auto if self.not_a_stencil().is_none() => self.to_stencil(single).map(Assembled::Stencil),
            Format::Stencil => self.to_stencil(single).map(Assembled::Stencil),
            _ => self.to_csr(single).map(Assembled::Csr),
        }
    }

    /// All rows, compressed.
    ///
    /// # Errors
    /// When the matrix does not fit into memory.
    pub fn to_csr(&self, single: bool) -> Result<Csr> {
        self.assemble_rows(0..self.lattice.sites(), single)
    }

    /// The rows of a range of sites, compressed, with global columns: what one of several ranks holds.
    ///
    /// # Errors
    /// When the range is outside the lattice, or the rows do not fit into memory.
    pub fn assemble_rows(&self, sites: std::ops::Range<usize>, single: bool) -> Result<Csr> {
        if sites.start > sites.end || sites.end > self.lattice.sites() {
            return Err(Error::input(format!(
                "sites {} to {} outside a lattice of {}",
                sites.start,
                sites.end,
                self.lattice.sites()
            )));
        }
        match DType::of(single, !self.is_real()) {
            DType::F32 => self.fill::<f32>(sites, Values::F32),
            DType::F64 => self.fill::<f64>(sites, Values::F64),
            DType::C32 => self.fill::<num_complex::Complex<f32>>(sites, Values::C32),
            DType::C64 => self.fill::<C64>(sites, Values::C64),
        }
    }

    /// Whether every matrix element is real.
    pub fn is_real(&self) -> bool {
        let crossing = |d: usize| self.hops.iter().any(|hop| hop.bond.shift[d] != 0);
        self.fluxes.is_empty()
            && self.uniform.iter().all(|block| block.is_real())
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

    fn fill<T: Scalar>(&self, sites: std::ops::Range<usize>, wrap: fn(Vec<T>) -> Values) -> Result<Csr> {
        let n = self.orbitals;
        let rows = sites.len() * n;
        memory::ensure(16 * rows as u128, &format!("a sparse matrix of {rows} rows"))?;
        let plan = Plan::new(self);
        let mut row_start = vec![0usize; rows + 1];
        let stop = task::current();
        row_start[1..].par_chunks_mut(CHUNK * n).enumerate().for_each(|(chunk, counts)| {
            if stop.raised() {
                return;
            }
            let mut scratch = Rows::new(n);
            let first = sites.start + chunk * CHUNK;
            for (k, count) in counts.chunks_mut(n).enumerate() {
                plan.site(first + k, &mut scratch);
                count.iter_mut().zip(&scratch.rows).for_each(|(c, row)| *c = row.len());
            }
        });
        stop.check()?;
        for i in 0..rows {
            row_start[i + 1] += row_start[i];
        }
        let entries = row_start[rows];
        let narrow = self.rows() <= u32::MAX as usize;
        let index_bytes = if narrow { 4 } else { 8 };
        memory::ensure(
            entries as u128 * (T::DTYPE.bytes() + index_bytes) as u128,
            &format!("a sparse matrix of {rows} rows and {entries} entries"),
        )?;
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

/// One hopping as seen from the rows of a sublattice.
struct Entry {
    hop: usize,
    /// The row's site is the one the hopping leaves: the conjugate is meant.
    adjoint: bool,
    /// Displacement of the column's cell.
    shift: [i64; MAX_DIMENSION],
    /// Sublattice of the column.
    column: usize,
    /// The block's non-zero entries where it is the same everywhere.
    uniform: Vec<(usize, usize, C64)>,
}

/// What the generator knows beforehand.
struct Plan<'a> {
    model: &'a Model,
    /// Hoppings by sublattice of the row.
    entries: Vec<Vec<Entry>>,
    /// On-site entries by sublattice.
    onsite: Vec<Vec<(usize, usize, C64)>>,
    /// Cell coordinates of each site of the basis, for the flux.
    offsets: Vec<Vec<f64>>,
}

/// The rows of one site.
struct Rows {
    rows: Vec<Vec<(usize, C64)>>,
}

impl Rows {
    fn new(n: usize) -> Self {
        Rows { rows: vec![Vec::new(); n] }
    }

    /// Sorts by column, sums what meets, and drops zeros.
    fn finish(&mut self) {
        for row in &mut self.rows {
            merge(row);
            row.retain(|e| e.1 != C64::ZERO);
        }
    }
}

impl<'a> Plan<'a> {
    fn new(model: &'a Model) -> Self {
        let basis = model.lattice.basis();
        let mut entries: Vec<Vec<Entry>> = basis.iter().map(|_| Vec::new()).collect();
        for (index, hop) in model.hops.iter().enumerate() {
            for adjoint in [false, true] {
                let sign = if adjoint { 1 } else { -1 };
                let mut shift = [0; MAX_DIMENSION];
                shift.iter_mut().zip(&hop.bond.shift).for_each(|(a, x)| *a = sign * x);
                let (row, column) =
                    if adjoint { (hop.bond.from, hop.bond.to) } else { (hop.bond.to, hop.bond.from) };
                let uniform = match &hop.value {
                    HopValue::Uniform(block) if adjoint => block.dagger().nonzero().collect(),
                    HopValue::Uniform(block) => block.nonzero().collect(),
                    HopValue::PerCell(_) => Vec::new(),
                };
                entries[row].push(Entry { hop: index, adjoint, shift, column, uniform });
            }
        }
        let onsite = model.uniform.iter().map(|block| block.nonzero().collect()).collect();
        let offsets = basis.iter().map(|s| model.lattice.cell_coordinates(&s.position)).collect();
        Plan { model, entries, onsite, offsets }
    }

    /// Generates the rows of a site.
    fn site(&self, site: usize, out: &mut Rows) {
        let (model, lat) = (self.model, &self.model.lattice);
        let (n, basis, d) = (model.orbitals, lat.basis().len(), lat.dimension());
        let full = lat.full(site);
        let (cell, s) = (full / basis, full % basis);
        let at = lat.coordinates(cell);
        out.rows.iter_mut().for_each(Vec::clear);
        for &(i, j, value) in &self.onsite[s] {
            out.rows[i].push((site * n + j, value));
        }
        if !model.disorder.is_empty() {
            let energy = C64::new(model.random_energy(site), 0.0);
            out.rows.iter_mut().enumerate().for_each(|(i, row)| row.push((site * n + i, energy)));
        }
        for block in model.local.iter().filter_map(|table| table.get(site)) {
            for (i, j, value) in block.nonzero() {
                out.rows[i].push((site * n + j, value));
            }
        }
        for entry in &self.entries[s] {
            let Some(landing) = lat.land(&at[..d], &entry.shift, 1) else {
                continue;
            };
            let Some(column) = lat.number(landing.cell * basis + entry.column) else {
                continue;
            };
            let mut phase = if landing.wrapped { lat.phase(&landing) } else { C64::ONE };
            if !model.fluxes.is_empty() {
                phase *= self.peierls(&at, s, entry, &landing);
            }
            let hop = &model.hops[entry.hop];
            let leaves = if entry.adjoint { cell } else { landing.cell };
            if let Some(scale) = &hop.scale {
                phase *= scale[leaves];
            }
            match &hop.value {
                HopValue::Uniform(_) => {
                    for &(i, j, value) in &entry.uniform {
                        out.rows[i].push((column * n + j, value * phase));
                    }
                }
                HopValue::PerCell(table) => {
                    let Some(block) = table.get(leaves) else { continue };
                    for (i, j, value) in block.nonzero() {
                        if entry.adjoint {
                            out.rows[j].push((column * n + i, value.conj() * phase));
                        } else {
                            out.rows[i].push((column * n + j, value * phase));
                        }
                    }
                }
            }
        }
        out.finish();
    }

    /// The phase that magnetic fields put on a matrix element.
    fn peierls(&self, at: &[i64], s: usize, entry: &Entry, landing: &Landing) -> C64 {
        let d = self.model.lattice.dimension();
        let (mut u, mut v) = ([0.0; MAX_DIMENSION], [0.0; MAX_DIMENSION]);
        for k in 0..d {
            u[k] = at[k] as f64 + self.offsets[s][k];
            v[k] = (at[k] + entry.shift[k]) as f64 + self.offsets[entry.column][k];
        }
        let angle =
            self.model.fluxes.iter().map(|f| f.angle(&self.model.lattice, &u, &v, &landing.crossings));
        C64::cis(angle.sum())
    }

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
            let mut scratch = Rows::new(n);
            let mut at = 0;
            for site in part {
                self.site(site, &mut scratch);
                for &(column, value) in scratch.rows.iter().flatten() {
                    columns[at] = index(column);
                    values[at] = T::from_c64(value);
                    at += 1;
                }
            }
        });
    }
}
