//! The rows of a model's matrix, one site at a time, from what its hoppings and energies have in common.

use super::block::OrbitalBlock;
use super::lattice::{CellShift, MAX_DIMENSION};
use super::model::{Hop, HopValue, Model};
use super::nambu::phase_of;
use super::same::SameEntry;
use crate::backend::matrix::merge;
use crate::number::C64;

/// So many cells pay for what is made once for all of them.
const MANY_CELLS: usize = 64;

/// One hopping as seen from the rows of a sublattice. There may be millions of them, so that what each has of its own
/// lies in common lists.
#[derive(Clone, Default)]
struct SeenHop {
    hop: u32,
    /// Sublattice of the column.
    column: u32,
    /// Where the block's entries begin, and how many there are.
    first: usize,
    count: u32,
    /// Whether the row's site is the one that the hopping leaves: the entry is then the conjugate.
    adjoint: bool,
    /// Whether nothing but a factor of its own changes the block from cell to cell, inside the lattice.
    plain: bool,
    /// Whether it has factors. To ask the hopping itself costs more than the entry.
    scaled: bool,
    /// From the row's site to the column's, as numbered before removals, and from the row's cell to that of the column,
    /// inside the lattice.
    ahead: isize,
    cells_ahead: isize,
}

/// A step of a particle from one site to another, for all orbitals.
struct SiteHop<'a> {
    /// Sublattice of the row, and of the column.
    between: (usize, usize),
    /// What fields and boundaries multiply electrons by.
    phase: C64,
    /// What multiplies electrons, holes and pairs alike.
    scale: C64,
    /// From the row's site to the column's, along each axis asked for.
    reach: &'a [f64],
    /// Cell coordinates of both sites, and the boundaries crossed: what a flux asks for where orbitals lie beside
    /// sites.
    ends: Option<([f64; MAX_DIMENSION], [f64; MAX_DIMENSION], [i64; MAX_DIMENSION])>,
}

/// Precomputed data of the row generator.
pub(super) struct RowPlan<'a> {
    pub model: &'a Model,
    /// Hoppings, by sublattice of the row.
    entries: Vec<SeenHop>,
    /// Where those of each sublattice begin, and the end.
    starts: Vec<usize>,
    /// The hoppings of each sublattice in the order of their columns inside the lattice, so that rows need no sorting.
    /// Beyond boundaries they keep to the order in which they came: what meets there is added up alike in a row and in
    /// its column.
    by_column: Vec<u32>,
    /// Non-zero entries of blocks that are the same everywhere.
    values: Vec<(u32, u32, C64)>,
    /// From the row's site to the column's along each axis asked for, where no strain has moved them:
    /// those of all hoppings.
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
    /// Cell coordinates from which no hopping crosses a boundary: the first in each direction, and the end.
    inside: [(i64, i64); MAX_DIMENSION],
    /// How many entries each row of a site inside has, by sublattice, where that is the same in all cells.
    same_counts: Vec<Option<Vec<usize>>>,
    /// Their entries, by orbital; none where there are few cells.
    same_rows: Vec<Option<Vec<Vec<SameEntry<'a>>>>>,
    /// Whether the diagonal differs from site to site: sites have energies of their own.
    varied: bool,
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

/// The displacement that [`copy`] has given this number.
pub(super) fn crossings(mut number: usize, most: &[i64; MAX_DIMENSION]) -> [i64; MAX_DIMENSION] {
    most.map(|m| {
        let n = 2 * m as usize + 1;
        let c = (number % n) as i64;
        number /= n;
        if c > m { c - n as i64 } else { c }
    })
}

/// The rows of one site.
pub(super) struct ModelRows {
    pub rows: Vec<Vec<(usize, C64)>>,
    /// The cell looked at last, and its coordinates.
    last: (usize, [i64; MAX_DIMENSION]),
}

impl ModelRows {
    pub fn new(n: usize) -> Self {
        ModelRows { rows: vec![Vec::new(); n], last: (usize::MAX, [0; MAX_DIMENSION]) }
    }

    /// Sorts by column, adds up entries of the same column, and drops zeros.
    fn finish(&mut self) {
        for row in &mut self.rows {
            if !row.windows(2).all(|pair| pair[0].0 < pair[1].0) {
                merge(row);
            }
            if row.iter().any(|e| e.1 == C64::ZERO) {
                row.retain(|e| e.1 != C64::ZERO);
            }
        }
    }
}

/// Where the hoppings and the values of each row of the basis begin, and the ends; both together,
/// since rows come in any order.
fn beginnings(model: &Model) -> Vec<(usize, usize)> {
    let sublattices = model.lattice.basis().len();
    let mut next = vec![(0usize, 0usize); sublattices + 1];
    for hop in model.hops.iter() {
        let count = match &hop.value {
            HopValue::Uniform(block) => block.nonzero().count(),
            HopValue::PerCell(_) => 0,
        };
        for row in [hop.bond.from, hop.bond.to] {
            next[row + 1].0 += 1;
            next[row + 1].1 += count;
        }
    }
    for row in 0..sublattices {
        next[row + 1].0 += next[row].0;
        next[row + 1].1 += next[row].1;
    }
    next
}

/// How many cells on a hopping leads inside the lattice. Where this overflows, no cell is inside.
fn cells_ahead(hop: &Hop, cells: &[usize]) -> isize {
    let (mut ahead, mut stride) = (0isize, 1isize);
    for (x, n) in hop.bond.shift.iter().zip(cells) {
        ahead = ahead.wrapping_add(stride.wrapping_mul(*x as isize));
        stride = stride.wrapping_mul(*n as isize);
    }
    ahead
}

/// Cell coordinates from which no hopping crosses a boundary: the first in each direction, and the end.
fn inside_of(model: &Model) -> [(i64, i64); MAX_DIMENSION] {
    let cells = model.lattice.cells();
    let mut inside = [(0, i64::MAX); MAX_DIMENSION];
    inside.iter_mut().zip(cells).for_each(|(range, n)| range.1 = *n as i64);
    for hop in model.hops.iter() {
        for ((range, x), n) in inside.iter_mut().zip(&hop.bond.shift).zip(cells) {
            range.0 = range.0.max(x.abs());
            range.1 = range.1.min(*n as i64 - x.abs());
        }
    }
    inside
}

/// The hoppings as rows see them, by sublattice of the row, with what they have in common lists.
struct SublatticeHops {
    entries: Vec<SeenHop>,
    values: Vec<(u32, u32, C64)>,
    reaches: Vec<f64>,
}

impl SublatticeHops {
    /// Every hopping from both of its ends; `next` is what [`beginnings`] gives. Of models that are `alike` nothing but
    /// a factor changes a block from cell to cell.
    fn new(model: &Model, axes: &[usize], mut next: Vec<(usize, usize)>, alike: bool) -> SublatticeHops {
        let (sublattices, cells) = (model.lattice.basis().len(), model.lattice.cells());
        let mut entries = vec![SeenHop::default(); 2 * model.hops.len()];
        let mut values = vec![(0, 0, C64::ZERO); next[sublattices].1];
        let mut reaches = vec![0.0; entries.len() * axes.len()];
        for (index, hop) in model.hops.iter().enumerate() {
            let ahead = cells_ahead(hop, cells);
            for adjoint in [false, true] {
                let (row, column) =
                    if adjoint { (hop.bond.from, hop.bond.to) } else { (hop.bond.to, hop.bond.from) };
                let (place, first) = next[row];
                let mut last = first;
                if let HopValue::Uniform(block) = &hop.value {
                    for (i, j, z) in block.nonzero() {
                        let (i, j) = (i as u32, j as u32);
                        values[last] = if adjoint { (j, i, z.conj()) } else { (i, j, z) };
                        last += 1;
                    }
                }
                next[row] = (place + 1, last);
                if !axes.is_empty() {
                    let sign = if adjoint { 1 } else { -1 };
                    let shift: CellShift = hop.bond.shift.iter().map(|x| sign * x).collect();
                    let reach = model.lattice.reach(&shift, (row, column), axes);
                    reaches[place * axes.len()..].iter_mut().zip(reach).for_each(|(to, x)| *to = x);
                }
                let cells_ahead = if adjoint { ahead } else { ahead.wrapping_neg() };
                entries[place] = SeenHop {
                    hop: index as u32,
                    column: column as u32,
                    first,
                    count: (last - first) as u32,
                    adjoint,
                    plain: alike && matches!(hop.value, HopValue::Uniform(_)),
                    scaled: hop.scale.is_some(),
                    ahead: cells_ahead
                        .wrapping_mul(sublattices as isize)
                        .wrapping_add(column as isize - row as isize),
                    cells_ahead,
                };
            }
        }
        SublatticeHops { entries, values, reaches }
    }
}

impl<'a> RowPlan<'a> {
    pub fn new(model: &'a Model, axes: &'a [usize]) -> Self {
        let basis = model.lattice.basis();
        let next = beginnings(model);
        let starts: Vec<usize> = next.iter().map(|(entries, _)| *entries).collect();
        let opposite = model.holes().is_some() && (model.has_field() || model.is_twisted());
        let by_orbital = !axes.is_empty() || model.offsets.is_some() || opposite;
        let SublatticeHops { entries, values, reaches } =
            SublatticeHops::new(model, axes, next, !by_orbital && model.fluxes.is_empty());
        let mut by_column: Vec<u32> = (0..entries.len() as u32).collect();
        for row in 0..basis.len() {
            by_column[starts[row]..starts[row + 1]].sort_by_key(|&k| entries[k as usize].ahead);
        }
        let coordinates = |x: &[f64]| model.lattice.cell_coordinates(x);
        let mut plan = RowPlan {
            model,
            entries,
            starts,
            by_column,
            values,
            reaches,
            onsite: model.uniform.iter().map(|block| block.nonzero().collect()).collect(),
            offsets: basis.iter().map(|s| coordinates(&s.position)).collect(),
            beside: model.offsets.as_ref().map(|of| of.iter().map(|x| coordinates(x)).collect()),
            axes,
            by_orbital,
            inside: inside_of(model),
            same_counts: vec![None; basis.len()],
            same_rows: Vec::new(),
            varied: model.has_site_energies() || !model.local.is_empty(),
            unrolled: None,
        };
        plan.same_counts = (0..basis.len()).map(|s| plan.same_counts_of(s)).collect();
        if model.lattice.cell_count() >= MANY_CELLS {
            plan.same_rows = (0..basis.len()).map(|s| plan.same_rows_of(s)).collect();
        }
        plan
    }

    /// How many entries the rows of a sublattice have inside the lattice, if the same in all cells but for sites that
    /// are gone and energies of their own: where no entries vanish or meet. To know it pays for many cells, or where
    /// all are inside.
    fn same_counts_of(&self, s: usize) -> Option<Vec<usize>> {
        let model = self.model;
        let far_from_zero = |x: &f64| x.abs() > 1e-100;
        // Velocities have factors that may vanish, at sites without hoppings too.
        let vary = self.by_orbital
            || model.lattice.kept.as_ref().is_some_and(|kept| kept.grown)
            || !(model.lattice.cell_count() >= MANY_CELLS || self.all_inside() && !self.varied)
            || !model.local.iter().all(|table| table.blocks().iter().all(OrbitalBlock::is_diagonal))
            || !model.singlets.is_empty();
        if vary {
            return None;
        }
        let mut counts = vec![0; model.orbitals];
        self.onsite[s].iter().for_each(|(i, _, _)| counts[*i] += 1);
        let mut before = None;
        for &number in &self.by_column[self.starts[s]..self.starts[s + 1]] {
            let entry = &self.entries[number as usize];
            let own = &self.values[entry.first..][..entry.count as usize];
            let scale = || model.hops[entry.hop as usize].scale.as_ref();
            let vanish = own.iter().any(|(_, _, z)| !far_from_zero(&z.norm()))
                || (entry.scaled && scale().is_some_and(|all| !all.iter().all(far_from_zero)));
            if !entry.plain || vanish || entry.ahead == 0 || before == Some(entry.ahead) {
                return None;
            }
            before = Some(entry.ahead);
            own.iter().for_each(|(i, _, _)| counts[*i as usize] += 1);
        }
        Some(counts)
    }

    /// The entries themselves, where their number is the same in all cells.
    fn same_rows_of(&self, s: usize) -> Option<Vec<Vec<SameEntry<'a>>>> {
        let counts = self.same_counts[s].as_ref()?;
        let (model, n) = (self.model, self.model.orbitals as isize);
        let mut rows: Vec<Vec<SameEntry<'a>>> = counts.iter().map(|n| Vec::with_capacity(*n)).collect();
        for &(i, j, value) in &self.onsite[s] {
            rows[i].push(SameEntry::on_site(j, value * C64::ONE, self.varied && i == j));
        }
        if self.varied {
            for (i, row) in rows.iter_mut().enumerate().filter(|(_, row)| !row.iter().any(|e| e.diagonal)) {
                row.push(SameEntry::on_site(i, C64::ZERO, true));
            }
        }
        for entry in &self.entries[self.starts[s]..self.starts[s + 1]] {
            let factors = model.hops[entry.hop as usize].scale.as_ref();
            let leaves = if entry.adjoint { 0 } else { entry.cells_ahead };
            let scale = factors.map(|all| (all.as_slice(), leaves));
            for &(i, j, value) in &self.values[entry.first..][..entry.count as usize] {
                rows[i as usize].push(SameEntry {
                    ahead: entry.ahead.wrapping_mul(n) + j as isize,
                    sites: entry.ahead,
                    orbital: j as usize,
                    value,
                    scale,
                    diagonal: false,
                });
            }
        }
        rows.iter_mut().for_each(|row| row.sort_by_key(|entry| entry.ahead));
        Some(rows)
    }

    /// The entries of the rows of a site, by its number before removals, where they are the same as those of others.
    #[inline]
    fn same_rows(&self, full: usize, scratch: &mut ModelRows) -> Option<(usize, &[Vec<SameEntry<'a>>])> {
        if self.same_rows.is_empty() {
            return None;
        }
        let (cell, s) = (full / self.same_rows.len(), full % self.same_rows.len());
        let rows = self.same_rows[s].as_ref()?;
        self.is_inside(cell, scratch).then_some((cell, rows))
    }

    /// Gives the entries of a site's rows in their order, with the orbital of the row, the column and the value, where
    /// they are the same as those of others but for sites that are gone and energies; false where they are not.
    #[inline]
    pub fn each_same(
        &self,
        site: usize,
        scratch: &mut ModelRows,
        mut take: impl FnMut(usize, usize, C64),
    ) -> bool {
        let (model, lattice, n) = (self.model, &self.model.lattice, self.model.orbitals);
        let full = lattice.full(site);
        let Some((cell, rows)) = self.same_rows(full, scratch) else { return false };
        let place = |entry: &SameEntry<'_>| match &lattice.kept {
            None => Some(entry.column(site * n)),
            Some(kept) => {
                let there = entry.among(kept, full);
                (there != usize::MAX).then(|| there * n + entry.orbital)
            }
        };
        if !self.varied {
            for (i, row) in rows.iter().enumerate() {
                for entry in row {
                    if let Some(column) = place(entry) {
                        take(i, column, entry.value_in(cell));
                    }
                }
            }
            return true;
        }
        let energy = model.site_energy(site);
        for (i, row) in rows.iter().enumerate() {
            for entry in row {
                let mut value = entry.value_in(cell);
                if entry.diagonal {
                    for block in model.local.iter().filter_map(|table| table.get(site)) {
                        value += block.get(i, i);
                    }
                    value += energy.of(i >= model.particles());
                    if value == C64::ZERO {
                        continue;
                    }
                }
                if let Some(column) = place(entry) {
                    take(i, column, value);
                }
            }
        }
        true
    }

    /// Gives the entries of a site's rows in their order, column and value.
    #[inline]
    pub fn each(&self, site: usize, scratch: &mut ModelRows, mut take: impl FnMut(usize, C64)) {
        if !self.each_same(site, scratch, |_, column, value| take(column, value)) {
            self.site(site, scratch);
            scratch.rows.iter().flatten().for_each(|&(column, value)| take(column, value));
        }
    }

    /// How many entries each row of a site has.
    pub fn count(&self, site: usize, scratch: &mut ModelRows, counts: &mut [usize]) {
        let basis = self.model.lattice.basis().len();
        if self.model.lattice.kept.is_none()
            && !self.varied
            && let Some(same) = &self.same_counts[site % basis]
            && self.is_inside(site / basis, scratch)
        {
            counts.copy_from_slice(same);
            return;
        }
        counts.fill(0);
        if !self.each_same(site, scratch, |i, _, _| counts[i] += 1) {
            self.site(site, scratch);
            counts.iter_mut().zip(&scratch.rows).for_each(|(count, row)| *count = row.len());
        }
    }

    /// Whether no hopping crosses a boundary from any cell.
    fn all_inside(&self) -> bool {
        let cells = self.model.lattice.cells().iter().zip(&self.inside);
        cells.into_iter().all(|(n, (first, end))| *first == 0 && *end >= *n as i64)
    }

    /// Whether no hopping crosses a boundary from a cell, which becomes the one looked at last.
    #[inline]
    fn is_inside(&self, cell: usize, scratch: &mut ModelRows) -> bool {
        let lattice = &self.model.lattice;
        scratch.last = lattice.cell_after(scratch.last, cell);
        let mut inside = true;
        for d in 0..lattice.dimension() {
            let (first, end) = self.inside[d];
            inside &= scratch.last.1[d] >= first && scratch.last.1[d] < end;
        }
        inside
    }

    /// What the value of a matrix element from orbital `j` to orbital `i` is multiplied by.
    fn factor(&self, step: &SiteHop<'_>, i: usize, j: usize) -> C64 {
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
        out: &mut ModelRows,
        column: usize,
        step: &SiteHop<'_>,
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
    pub fn site(&self, site: usize, out: &mut ModelRows) {
        let (model, lat) = (self.model, &self.model.lattice);
        let (basis, d) = (lat.basis().len(), lat.dimension());
        let full = lat.full(site);
        let (cell, s) = (full / basis, full % basis);
        let inside = self.is_inside(cell, out);
        let at = out.last.1;
        out.rows.iter_mut().for_each(Vec::clear);
        self.on_site(site, &at, s, out);
        let mut moved = [0.0; MAX_DIMENSION];
        for place in self.starts[s]..self.starts[s + 1] {
            let number = if inside { self.by_column[place] as usize } else { place };
            let entry = &self.entries[number];
            if inside && entry.plain {
                // By far the most frequent.
                let Some(column) = lat.number(full.wrapping_add_signed(entry.ahead)) else { continue };
                let leaves = if entry.adjoint { cell } else { cell.wrapping_add_signed(entry.cells_ahead) };
                let factors = || model.hops[entry.hop as usize].scale.as_ref();
                let scale = if entry.scaled { factors().map_or(1.0, |all| all[leaves]) } else { 1.0 };
                for &(i, j, value) in &self.values[entry.first..entry.first + entry.count as usize] {
                    out.rows[i as usize].push((column * model.orbitals + j as usize, value * scale));
                }
                continue;
            }
            let hop = &model.hops[entry.hop as usize];
            let (shift, sign) = (&hop.bond.shift, if entry.adjoint { 1 } else { -1 });
            let Some(landing) = lat.land(&at[..d], shift, sign) else {
                continue;
            };
            let end = landing.cell * basis + entry.column as usize;
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
                let (u, v) = (
                    self.coordinates(&at, s, &[], 1),
                    self.coordinates(&at, entry.column as usize, shift, sign),
                );
                match self.beside {
                    None => phase *= self.peierls(&u, &v, &landing.crossings),
                    Some(_) => ends = Some((u, v, landing.crossings)),
                }
            }
            let leaves = if entry.adjoint { cell } else { landing.cell };
            if let Some(strain) = &hop.scale {
                scale *= strain[leaves];
            }
            let mut reach = &self.reaches[number * self.axes.len()..][..self.axes.len()];
            if let Some(strained) = &model.strain {
                // The bond in the hopping's own direction: from the site it leaves, which is the row's for the
                // conjugate.
                let (ends, sign) = if entry.adjoint { ((full, end), 1.0) } else { ((end, full), -1.0) };
                for (x, axis) in moved.iter_mut().zip(self.axes) {
                    *x = sign * strained.reach(entry.hop as usize, leaves, ends, landing.wrapped, *axis);
                }
                reach = &moved[..self.axes.len()];
            }
            let step = SiteHop { between: (s, entry.column as usize), phase, scale, reach, ends };
            match &hop.value {
                HopValue::Uniform(_) => {
                    let own = &self.values[entry.first..entry.first + entry.count as usize];
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
    fn on_site(&self, site: usize, at: &[i64; MAX_DIMENSION], s: usize, out: &mut ModelRows) {
        let model = self.model;
        let ends = (!model.fluxes.is_empty() && self.beside.is_some()).then(|| {
            let u = self.coordinates(at, s, &[], 1);
            (u, u, [0; MAX_DIMENSION])
        });
        let reach = &[0.0; MAX_DIMENSION];
        let step = SiteHop { between: (s, s), phase: C64::ONE, scale: C64::ONE, reach, ends };
        self.add(out, site, &step, self.onsite[s].iter().copied());
        for block in model.local.iter().filter_map(|table| table.get(site)) {
            self.add(out, site, &step, block.nonzero());
        }
        if !self.axes.is_empty() {
            // Energies and pairs of one place commute with positions.
            return;
        }
        let electrons = model.particles();
        let mut pair = C64::ZERO;
        model.singlets.iter().for_each(|pairs| pair += pairs[site]);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_told_by_their_numbers() {
        let most: [i64; MAX_DIMENSION] = std::array::from_fn(|d| [2, 0, 1, 3].get(d).copied().unwrap_or(0));
        let all = most.iter().map(|m| 2 * *m as usize + 1).product::<usize>();
        assert!((0..all).all(|number| copy(&crossings(number, &most), &most) == number));
        assert_eq!(crossings(0, &most), [0; MAX_DIMENSION]);
    }
}
