//! The matrix-free stencil: rows of one class of cells share one short list of (distance in rows, value).

use std::collections::BTreeMap;
use std::iter::empty;
use std::ops::Range;
use std::sync::Arc;

use super::block::BlockReal;
use super::fused::{CellInputs, Visit, WalksRows};
use super::simd::LaneTurn;
use super::stored::StoredScalar;
use crate::backend::matrix::Stencil;
use crate::backend::matrix::classes::Classes;
use crate::error::Result;
use crate::number::{C64, Real, Scalar};

/// One entry of a row: how many rows away, and the value.
type Neighbour<V> = (isize, V);

/// The entries of one orbital in one class, as ranges of the three lists.
#[derive(Clone)]
struct OrbitalEntries {
    general: Range<usize>,
    real: Range<usize>,
    imaginary: Range<usize>,
}

/// A stencil as the fused pass walks it.
pub(super) struct StencilRows<T: Scalar> {
    source: Arc<Stencil>,
    /// For every direction, the class of each coordinate.
    classes: Vec<Vec<u32>>,
    /// For every coordinate of the first direction, where the run of its class ends.
    same_until: Vec<u32>,
    /// What a class counts in the number of a combination of classes.
    weights: Vec<usize>,
    /// By combination of classes, then orbital.
    lists: Vec<OrbitalEntries>,
    general: Vec<Neighbour<T>>,
    real: Vec<Neighbour<T::Real>>,
    imaginary: Vec<Neighbour<T::Real>>,
    /// By combination of classes, the same for whole cells of a single column, where their reals fill registers.
    cells: Vec<CellInputs<T::Real>>,
    /// On-site energies, in the precision of the vectors.
    diagonal: Option<Vec<T::Real>>,
    entries: usize,
}

impl<T: StoredScalar> StencilRows<T> {
    pub fn new(source: Arc<Stencil>) -> Result<Self> {
        let Classes { of_coordinate: classes, weights, lists: of_all } = Classes::new(&source)?;
        let mut same_until = vec![0u32; source.cells[0]];
        for x in (0..source.cells[0]).rev() {
            let near: &Vec<u32> = &classes[0];
            let same = near.get(x + 1) == Some(&near[x]);
            same_until[x] = if same { same_until[x + 1] } else { x as u32 + 1 };
        }
        let (mut lists, mut general, mut real, mut imaginary) =
            (Vec::with_capacity(of_all.len()), Vec::new(), Vec::new(), Vec::new());
        for list in &of_all {
            let start = (general.len(), real.len(), imaginary.len());
            for &(distance, value) in list {
                if !T::DTYPE.is_complex() || (value.re != 0.0 && value.im != 0.0) {
                    general.push((distance, T::from_c64(value)));
                } else if value.im == 0.0 {
                    real.push((distance, T::Real::from_f64(value.re)));
                } else {
                    imaginary.push((distance, T::Real::from_f64(value.im)));
                }
            }
            lists.push(OrbitalEntries {
                general: start.0..general.len(),
                real: start.1..real.len(),
                imaginary: start.2..imaginary.len(),
            });
        }
        let cells = match whole_cells::<T>(source.orbitals) {
            true => of_all.chunks(source.orbitals).map(|of_cell| cells_of::<T>(of_cell)).collect(),
            false => Vec::new(),
        };
        let diagonal = match &source.diagonal {
            Some(energies) => Some(energies.numbers()?.into_iter().map(T::Real::from_f64).collect()),
            None => None,
        };
        let all = Classes { of_coordinate: Vec::new(), weights: Vec::new(), lists: of_all };
        let entries = all.entries(&source);
        Ok(StencilRows {
            source,
            classes,
            same_until,
            weights,
            lists,
            general,
            real,
            imaginary,
            cells,
            diagonal,
            entries,
        })
    }

    /// Entries that a product touches.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Bytes kept.
    pub fn bytes(&self) -> usize {
        let real = size_of::<T::Real>();
        self.diagonal.as_ref().map_or(0, |d| d.len() * real)
            + self.general.len() * size_of::<Neighbour<T>>()
            + (self.real.len() + self.imaginary.len()) * size_of::<Neighbour<T::Real>>()
    }

    /// Number of the class combination of the line (all directions but the first) that a cell lies on.
    #[inline]
    fn line_class(&self, cell: usize) -> usize {
        let cells = &self.source.cells[..];
        let mut rest = cell / cells[0];
        let mut combination = 0;
        // No iterators: some builds call what they are made of.
        for direction in 1..cells.len() {
            let n = cells[direction];
            combination += self.classes[direction][rest % n] as usize * self.weights[direction];
            rest /= n;
        }
        combination
    }
}

/// Whether the reals of a cell's rows fill registers, alone or with those of its neighbours.
fn whole_cells<T: StoredScalar>(orbitals: usize) -> bool {
    let parts = if T::DTYPE.is_complex() { 2 } else { 1 };
    // One real orbital has a run of its own.
    matches!(orbitals * parts, 2 | 4 | 8)
}

/// What the rows of a cell take from others, lane by lane. Each entry of a complex matrix is two of a real one,
/// or four.
fn cells_of<T: StoredScalar>(of_cell: &[Vec<(isize, C64)>]) -> CellInputs<T::Real> {
    let (orbitals, complex) = (of_cell.len(), T::DTYPE.is_complex());
    let parts = if complex { 2 } else { 1 };
    let lanes = orbitals * parts;
    // By cell: for each lane, the lanes there and the factors.
    let mut all: BTreeMap<isize, Vec<Vec<(usize, f64)>>> = BTreeMap::new();
    for (orbital, list) in of_cell.iter().enumerate() {
        for &(distance, z) in list {
            let row = orbital as isize + distance;
            let (cell, other) =
                (row.div_euclid(orbitals as isize), row.rem_euclid(orbitals as isize) as usize);
            let there = all.entry(cell).or_insert_with(|| vec![Vec::new(); lanes]);
            let mut add = |lane: usize, from: usize, factor: f64| {
                if factor != 0.0 {
                    there[orbital * parts + lane].push((other * parts + from, factor));
                }
            };
            add(0, 0, z.re);
            if complex {
                add(0, 1, -z.im);
                add(1, 0, z.im);
                add(1, 1, z.re);
            }
        }
    }
    let farthest = all.keys().max().map_or(0, |cell| cell * lanes as isize);
    let mut cells = CellInputs { lanes, farthest, straight: Vec::new(), turned: Vec::new() };
    for (cell, there) in all {
        let distance = cell * lanes as isize;
        let factor = |lane: usize| there[lane].iter().filter(|e| e.0 == lane).map(|e| e.1).sum::<f64>();
        let own: Vec<f64> = (0..lanes).map(factor).collect();
        if own.iter().any(|f| *f != 0.0) {
            cells.straight.push((distance, std::array::from_fn(|k| T::Real::from_f64(own[k % lanes]))));
        }
        // From the own half of eight lanes, and from the other.
        for across in [0, 4] {
            let others: Vec<Vec<(usize, f64)>> = there
                .iter()
                .enumerate()
                .map(|(lane, list)| {
                    list.iter().copied().filter(|e| e.0 != lane && (e.0 ^ lane) & 4 == across).collect()
                })
                .collect();
            for k in 0..others.iter().map(Vec::len).max().unwrap_or(0) {
                // Lanes without such an entry take some number, times zero.
                let entry = |lane: usize| others[lane].get(k).copied().unwrap_or((lane ^ across, 0.0));
                let turn = LaneTurn::new(std::array::from_fn(|l| l / lanes * lanes + entry(l % lanes).0));
                let factors = std::array::from_fn(|l| T::Real::from_f64(entry(l % lanes).1));
                cells.turned.push((distance, turn, factors));
            }
        }
    }
    cells
}

impl<T: StoredScalar<Real: BlockReal>> WalksRows<T> for StencilRows<T> {
    #[inline(always)]
    fn walk<V: Visit<T>>(&self, rows: Range<usize>, visit: &mut V) {
        let (orbitals, n) = (self.source.orbitals, self.source.cells[0]);
        let mut row = rows.start;
        while row < rows.end {
            let cell = row / orbitals;
            let (mut x, mut orbital) = (cell % n, row % orbitals);
            let line = self.line_class(cell);
            let first = (cell - x) * orbitals;
            let line_end = rows.end.min(first + n * orbitals);
            while row < line_end {
                // A run of cells of one class.
                let (class, until) = (self.classes[0][x] as usize, self.same_until[x] as usize);
                let end = line_end.min(first + until * orbitals);
                x = until;
                let lists = &self.lists[(line + class) * orbitals..][..orbitals];
                let energies = self.diagonal.as_ref().map(|d| &d[row..end]);
                if orbitals == 1 && !T::DTYPE.is_complex() {
                    visit.run(row..end, energies, &self.general[lists[0].general.clone()]);
                    row = end;
                    continue;
                }
                // Rows of which a part of a cell is asked for come one by one.
                let mut done = row;
                if orbital == 0
                    && let Some(cells) = self.cells.get(line + class)
                {
                    done = visit.cells(row..end, energies, cells);
                }
                let energies = energies.map(|e| &e[done - row..]);
                row = done;
                for (i, row) in (row..end).enumerate() {
                    let list = &lists[orbital];
                    orbital = if orbital + 1 == orbitals { 0 } else { orbital + 1 };
                    let energy = energies.map(|e| e[i]);
                    let at = |distance: isize| row.wrapping_add_signed(distance);
                    let general = self.general[list.general.clone()].iter().map(|e| (at(e.0), e.1));
                    if T::DTYPE.is_complex() {
                        let real = self.real[list.real.clone()].iter().map(|e| (at(e.0), e.1));
                        let imaginary = self.imaginary[list.imaginary.clone()].iter().map(|e| (at(e.0), e.1));
                        visit.row(row, energy, general, real, imaginary);
                    } else {
                        visit.row(row, energy, general, empty(), empty());
                    }
                }
                row = end;
            }
        }
    }
}
