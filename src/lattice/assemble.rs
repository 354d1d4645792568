//! Assembly into compressed rows: a generator of the rows of one site, run twice in parallel (to count, then to fill),
//! so that no second copy of the matrix is ever in memory.

use rayon::prelude::*;

use super::lattice::{MAX_DIMENSION, Shift};
use super::model::{Hop, HopValue, Model};
use super::nambu::phase_of;
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
    pub fn assemble(&self, format: Format, single: bool) -> Result<Assembled> {
        self.assemble_along(&[], format, single)
    }

    /// The commutators i [... i [H, x_a] ..., x_z] with the Cartesian positions along `axes`; without axes the matrix itself.
    /// One axis makes the velocity (hbar = 1): each hopping times i and its own displacement, whichever way round it goes.
    ///
    /// # Errors
    /// As [`Model::assemble`], and for an axis that the lattice does not have.
    pub fn assemble_along(&self, axes: &[usize], format: Format, single: bool) -> Result<Assembled> {
        let rows = self.rows();
        self.check_axes(axes)?;
        let scalar = self.dtype_along(axes, single).bytes();
        memory::ensure(rows as u128 * scalar as u128, &format!("one vector of {rows} rows"))?;
        match format {
            Format::Auto if self.wants_stencil() => self.stencil_along(axes, single).map(Assembled::Stencil),
            Format::Stencil => self.stencil_along(axes, single).map(Assembled::Stencil),
            _ => self.rows_along(axes, 0..self.lattice.sites(), single).map(Assembled::Csr),
        }
    }

    fn check_axes(&self, axes: &[usize]) -> Result<()> {
        let space = self.lattice.space();
        match axes.iter().find(|&&axis| axis >= space) {
            None => Ok(()),
            Some(axis) => Err(Error::input(format!("axis {axis} in a space of {space} dimensions"))
                .hint("axes are numbered from 0")),
        }
    }

    /// Some of the rows that [`Model::assemble_along`] makes, compressed, with global columns: pieces of the whole, first row and
    /// length of each.
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
            DType::F32 => self.fill::<f32>(axes, sites, Values::F32),
            DType::F64 => self.fill::<f64>(axes, sites, Values::F64),
            DType::C32 => self.fill::<num_complex::Complex<f32>>(axes, sites, Values::C32),
            DType::C64 => self.fill::<C64>(axes, sites, Values::C64),
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
        wrap: fn(Vec<T>) -> Values,
    ) -> Result<Csr> {
        let n = self.orbitals;
        let rows = sites.len() * n;
        memory::ensure(16 * rows as u128, &format!("a sparse matrix of {rows} rows"))?;
        let plan = Plan::new(self, axes);
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

/// One hopping as seen from the rows of a sublattice. There may be millions of them, so that what each has of its own lies in
/// common lists.
struct SeenHop {
    hop: usize,
    /// Whether the row's site is the one that the hopping leaves: the entry is then the conjugate.
    adjoint: bool,
    /// Sublattice of the column.
    column: usize,
    /// Where the block's entries begin, and how many there are.
    first: usize,
    count: usize,
}

/// A step of a particle from one site to another, for all orbitals.
struct Step<'a> {
    /// Sublattice of the row, and of the column.
    between: (usize, usize),
    /// What fields and boundaries multiply electrons by.
    phase: C64,
    /// What multiplies electrons, holes and pairs alike.
    scale: C64,
    /// From the row's site to the column's, along each axis asked for.
    reach: &'a [f64],
    /// Cell coordinates of both sites, and the boundaries crossed: what a flux asks for where orbitals lie beside sites.
    ends: Option<([f64; MAX_DIMENSION], [f64; MAX_DIMENSION], [i64; MAX_DIMENSION])>,
}

/// Precomputed data of the row generator.
pub(super) struct Plan<'a> {
    model: &'a Model,
    /// Hoppings, by sublattice of the row.
    entries: Vec<SeenHop>,
    /// Where those of each sublattice begin, and the end.
    starts: Vec<usize>,
    /// Non-zero entries of blocks that are the same everywhere.
    values: Vec<(u32, u32, C64)>,
    /// From the row's site to the column's along each axis asked for, where no strain has moved them: those of all hoppings.
    reaches: Vec<f64>,
    /// On-site entries by sublattice.
    onsite: Vec<Vec<(usize, usize, C64)>>,
    /// Cell coordinates of each site of the basis, for the flux.
    offsets: Vec<Vec<f64>>,
    /// The same for the displacements of orbitals from their sites.
    beside: Option<Vec<Vec<f64>>>,
    /// Cartesian axes whose displacements matrix elements are multiplied by.
    axes: &'a [usize],
    /// Whether matrix elements of one step differ by more than their blocks.
    by_orbital: bool,
    /// Most boundaries that are crossed in each direction. If set, columns beyond a boundary are numbered apart and
    /// have no phase.
    pub unrolled: Option<[i64; MAX_DIMENSION]>,
}

/// The number of a displacement over boundaries, of at most `most` either way in each direction; 0 for none.
pub(super) fn copy(crossings: &[i64; MAX_DIMENSION], most: &[i64; MAX_DIMENSION]) -> usize {
    crossings.iter().zip(most).rev().fold(0, |number, (c, m)| {
        let n = 2 * m + 1;
        number * n as usize + c.rem_euclid(n) as usize
    })
}

/// The rows of one site.
pub(super) struct Rows {
    pub rows: Vec<Vec<(usize, C64)>>,
}

impl Rows {
    pub fn new(n: usize) -> Self {
        Rows { rows: vec![Vec::new(); n] }
    }

    /// Sorts by column, adds up entries of the same column, and drops zeros.
    fn finish(&mut self) {
        for row in &mut self.rows {
            merge(row);
            row.retain(|e| e.1 != C64::ZERO);
        }
    }
}

impl<'a> Plan<'a> {
    pub fn new(model: &'a Model, axes: &'a [usize]) -> Self {
        let basis = model.lattice.basis();
        let ends = |hop: &Hop, adjoint: bool| match adjoint {
            true => (hop.bond.from, hop.bond.to),
            false => (hop.bond.to, hop.bond.from),
        };
        let mut starts = vec![0; basis.len() + 1];
        for hop in &model.hops {
            starts[hop.bond.from + 1] += 1;
            starts[hop.bond.to + 1] += 1;
        }
        for row in 0..basis.len() {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut order = vec![(0u32, false); 2 * model.hops.len()];
        for (index, hop) in model.hops.iter().enumerate() {
            for adjoint in [false, true] {
                let row = ends(hop, adjoint).0;
                order[next[row]] = (index as u32, adjoint);
                next[row] += 1;
            }
        }
        let (mut values, mut reaches) = (Vec::with_capacity(order.len()), Vec::new());
        let entry = |(index, adjoint): (u32, bool)| {
            let hop = &model.hops[index as usize];
            let (row, column) = ends(hop, adjoint);
            let first = values.len();
            if let HopValue::Uniform(block) = &hop.value {
                let all = block.nonzero().map(|(i, j, z)| (i as u32, j as u32, z));
                match adjoint {
                    false => values.extend(all),
                    true => values.extend(all.map(|(i, j, z)| (j, i, z.conj()))),
                }
            }
            let sign = if adjoint { 1 } else { -1 };
            let shift: Shift = hop.bond.shift.iter().map(|x| sign * x).collect();
            reaches.extend(model.lattice.reach(&shift, (row, column), axes));
            SeenHop { hop: index as usize, adjoint, column, first, count: values.len() - first }
        };
        let entries = order.into_iter().map(entry).collect();
        let onsite = model.uniform.iter().map(|block| block.nonzero().collect()).collect();
        let offsets = basis.iter().map(|s| model.lattice.cell_coordinates(&s.position)).collect();
        let beside =
            model.offsets.as_ref().map(|of| of.iter().map(|x| model.lattice.cell_coordinates(x)).collect());
        let opposite = model.holes().is_some() && (model.has_field() || model.is_twisted());
        let by_orbital = !axes.is_empty() || beside.is_some() || opposite;
        let unrolled = None;
        Plan { model, entries, starts, values, reaches, onsite, offsets, beside, axes, by_orbital, unrolled }
    }

    /// What the value of a matrix element from orbital `j` to orbital `i` is multiplied by.
    fn factor(&self, step: &Step<'_>, i: usize, j: usize) -> C64 {
        let n = self.model.orbitals;
        let (row, column) = (step.between.0 * n + i, step.between.1 * n + j);
        let mut z = step.phase;
        if let (Some((u, v, crossings)), Some(beside)) = (&step.ends, &self.beside) {
            let (mut u, mut v) = (*u, *v);
            u.iter_mut().zip(&beside[row]).for_each(|(u, x)| *u += x);
            v.iter_mut().zip(&beside[column]).for_each(|(v, x)| *v += x);
            z *= self.peierls(&u, &v, crossings);
        }
        let electrons = self.model.particles();
        z = phase_of(i >= electrons, j >= electrons, z) * step.scale;
        for (axis, reach) in self.axes.iter().zip(step.reach) {
            z *= C64::new(0.0, reach + self.model.beside(row, column, *axis));
        }
        z
    }

    /// Adds a block's entries to the rows of a site.
    #[inline]
    fn add(
        &self,
        out: &mut Rows,
        column: usize,
        step: &Step<'_>,
        block: impl Iterator<Item = (usize, usize, C64)>,
    ) {
        let n = self.model.orbitals;
        if self.by_orbital {
            for (i, j, value) in block {
                out.rows[i].push((column * n + j, value * self.factor(step, i, j)));
            }
        } else {
            let factor = step.phase * step.scale;
            for (i, j, value) in block {
                out.rows[i].push((column * n + j, value * factor));
            }
        }
    }

    /// Generates the rows of a site.
    pub fn site(&self, site: usize, out: &mut Rows) {
        let (model, lat) = (self.model, &self.model.lattice);
        let (basis, d) = (lat.basis().len(), lat.dimension());
        let full = lat.full(site);
        let (cell, s) = (full / basis, full % basis);
        let at = lat.coordinates(cell);
        out.rows.iter_mut().for_each(Vec::clear);
        self.on_site(site, &at, s, out);
        let mut moved = [0.0; MAX_DIMENSION];
        for number in self.starts[s]..self.starts[s + 1] {
            let entry = &self.entries[number];
            let hop = &model.hops[entry.hop];
            let (shift, sign) = (&hop.bond.shift, if entry.adjoint { 1 } else { -1 });
            let Some(landing) = lat.land(&at[..d], shift, sign) else {
                continue;
            };
            let end = landing.cell * basis + entry.column;
            let Some(column) = lat.number(end) else {
                continue;
            };
            let (mut column, mut phase, mut scale) = (column, C64::ONE, C64::ONE);
            if landing.wrapped {
                match &self.unrolled {
                    None => match lat.phase(&landing) {
                        same if same.im == 0.0 || model.momentum => scale = same,
                        twist => phase = twist,
                    },
                    Some(most) => column += copy(&landing.crossings, most) * lat.sites(),
                }
            }
            let mut ends = None;
            if !model.fluxes.is_empty() {
                let (u, v) =
                    (self.coordinates(&at, s, &[], 1), self.coordinates(&at, entry.column, shift, sign));
                match self.beside {
                    None => phase *= self.peierls(&u, &v, &landing.crossings),
                    Some(_) => ends = Some((u, v, landing.crossings)),
                }
            }
            let leaves = if entry.adjoint { cell } else { landing.cell };
            if let Some(strain) = &hop.scale {
                scale *= strain[leaves];
            }
            if !self.by_orbital
                && let HopValue::Uniform(_) = &hop.value
            {
                // The common case.
                let factor = phase * scale;
                for &(i, j, value) in &self.values[entry.first..entry.first + entry.count] {
                    out.rows[i as usize].push((column * model.orbitals + j as usize, value * factor));
                }
                continue;
            }
            let mut reach = &self.reaches[number * self.axes.len()..][..self.axes.len()];
            if let Some(strained) = &model.strain {
                // The bond in the hopping's own direction: from the site it leaves, which is the row's for the
                // conjugate.
                let (ends, sign) = if entry.adjoint { ((full, end), 1.0) } else { ((end, full), -1.0) };
                for (x, axis) in moved.iter_mut().zip(self.axes) {
                    *x = sign * strained.reach(entry.hop, leaves, ends, landing.wrapped, *axis);
                }
                reach = &moved[..self.axes.len()];
            }
            let step = Step { between: (s, entry.column), phase, scale, reach, ends };
            match &hop.value {
                HopValue::Uniform(_) => {
                    let own = &self.values[entry.first..entry.first + entry.count];
                    let own = own.iter().map(|&(i, j, z)| (i as usize, j as usize, z));
                    self.add(out, column, &step, own);
                }
                HopValue::PerCell(table) => {
                    let Some(block) = table.get(leaves) else { continue };
                    if entry.adjoint {
                        self.add(out, column, &step, block.nonzero().map(|(i, j, z)| (j, i, z.conj())));
                    } else {
                        self.add(out, column, &step, block.nonzero());
                    }
                }
            }
        }
        out.finish();
    }

    /// The on-site entries.
    fn on_site(&self, site: usize, at: &[i64; MAX_DIMENSION], s: usize, out: &mut Rows) {
        let model = self.model;
        let ends = (!model.fluxes.is_empty() && self.beside.is_some()).then(|| {
            let u = self.coordinates(at, s, &[], 1);
            (u, u, [0; MAX_DIMENSION])
        });
        let reach = &[0.0; MAX_DIMENSION];
        let step = Step { between: (s, s), phase: C64::ONE, scale: C64::ONE, reach, ends };
        self.add(out, site, &step, self.onsite[s].iter().copied());
        for block in model.local.iter().filter_map(|table| table.get(site)) {
            self.add(out, site, &step, block.nonzero());
        }
        if !self.axes.is_empty() {
            // Energies and pairs of one place commute with positions.
            return;
        }
        let electrons = model.particles();
        let pair: C64 = model.singlets.iter().map(|pairs| pairs[site]).sum();
        if pair != C64::ZERO {
            for i in 0..electrons {
                out.rows[i].push((site * model.orbitals + electrons + i, pair));
                out.rows[electrons + i].push((site * model.orbitals + i, pair.conj()));
            }
        }
        if model.has_site_energies() {
            let energy = model.site_energy(site);
            for (i, row) in out.rows.iter_mut().enumerate() {
                row.push((site * model.orbitals + i, C64::new(energy.of(i >= electrons), 0.0)));
            }
        }
    }

    /// Cell coordinates of a site of the cell displaced by `sign * shift`, or by nothing.
    fn coordinates(
        &self,
        at: &[i64; MAX_DIMENSION],
        s: usize,
        shift: &[i64],
        sign: i64,
    ) -> [f64; MAX_DIMENSION] {
        let mut u = [0.0; MAX_DIMENSION];
        for (k, offset) in self.offsets[s].iter().enumerate() {
            u[k] = (at[k] + sign * shift.get(k).unwrap_or(&0)) as f64 + offset;
        }
        u
    }

    /// The phase that magnetic fields put on a matrix element.
    fn peierls(&self, u: &[f64], v: &[f64], crossings: &[i64]) -> C64 {
        let angle = self.model.fluxes.iter().map(|f| f.angle(&self.model.lattice, u, v, crossings));
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
