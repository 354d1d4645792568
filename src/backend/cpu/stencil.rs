//! The matrix-free stencil: which terms a cell has depends only on how near it is to which boundary, so that the cells fall
//! into a few classes, each with one short list of (distance in rows, value) for every orbital.

use std::iter::empty;
use std::ops::Range;
use std::sync::Arc;

use super::formats::Stored;
use super::fused::{Visit, Walk};
use crate::backend::matrix::{Stencil, Wrap};
use crate::error::{Error, Result};
use crate::number::{C64, DType, Real, Scalar};

/// Entries that the lists of all classes may have together; a tiny lattice with long hoppings stays below by far.
const MOST_ENTRIES: usize = 1 << 24;

/// One entry of a row: how many rows away, and the value.
type Entry<V> = (isize, V);

/// The entries of one orbital in one class, as ranges of the three lists.
#[derive(Clone)]
struct List {
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
    strides: Vec<usize>,
    /// By combination of classes, then orbital.
    lists: Vec<List>,
    general: Vec<Entry<T>>,
    real: Vec<Entry<T::Real>>,
    imaginary: Vec<Entry<T::Real>>,
    /// On-site energies, in the precision of the vectors.
    diagonal: Option<Vec<T::Real>>,
    entries: usize,
}

impl<T: Stored> StencilRows<T> {
    pub fn new(source: Arc<Stencil>) -> Result<Self> {
        let orbitals = source.orbitals;
        let (mut classes, mut representatives) = (Vec::new(), Vec::new());
        for (d, &n) in source.cells.iter().enumerate() {
            let (class, of_class) = coordinate_classes(&source, d, n);
            classes.push(class);
            representatives.push(of_class);
        }
        let mut same_until = vec![0u32; source.cells[0]];
        for x in (0..source.cells[0]).rev() {
            let near: &Vec<u32> = &classes[0];
            let same = near.get(x + 1) == Some(&near[x]);
            same_until[x] = if same { same_until[x + 1] } else { x as u32 + 1 };
        }
        let mut strides = Vec::new();
        let mut combinations = 1usize;
        for of_class in &representatives {
            strides.push(combinations);
            combinations = combinations.saturating_mul(of_class.len());
        }
        if combinations.saturating_mul(source.terms.len()) > MOST_ENTRIES {
            return Err(Error::input(format!(
                "a stencil of {} terms on {} cells has too many kinds of cells",
                source.terms.len(),
                source.dim() / orbitals.max(1)
            ))
            .hint("use `format: \"csr\"`"));
        }
        let (mut lists, mut general, mut real, mut imaginary) =
            (Vec::with_capacity(combinations * orbitals), Vec::new(), Vec::new(), Vec::new());
        let without_diagonal = Stencil { diagonal: None, ..(*source).clone() };
        let mut row_entries = Vec::new();
        for combination in 0..combinations {
            let (mut rest, mut cell, mut stride) = (combination, 0, 1);
            for (of_class, &n) in representatives.iter().zip(&source.cells) {
                cell += of_class[rest % of_class.len()] * stride;
                rest /= of_class.len();
                stride *= n;
            }
            for orbital in 0..orbitals {
                let row = cell * orbitals + orbital;
                without_diagonal.row(row, &mut row_entries);
                row_entries.sort_by_key(|e| e.0);
                row_entries.dedup_by(|later, first| {
                    let same = later.0 == first.0;
                    if same {
                        first.1 += later.1;
                    }
                    same
                });
                let start = (general.len(), real.len(), imaginary.len());
                for &(column, value) in &row_entries {
                    let distance = column as isize - row as isize;
                    if value == C64::default() {
                        continue;
                    } else if !T::DTYPE.is_complex() || (value.re != 0.0 && value.im != 0.0) {
                        general.push((distance, T::from_c64(value)));
                    } else if value.im == 0.0 {
                        real.push((distance, T::Real::from_f64(value.re)));
                    } else {
                        imaginary.push((distance, T::Real::from_f64(value.im)));
                    }
                }
                lists.push(List {
                    general: start.0..general.len(),
                    real: start.1..real.len(),
                    imaginary: start.2..imaginary.len(),
                });
            }
        }
        let diagonal =
            source.diagonal.as_ref().map(|d| d.iter().map(|&x| T::Real::from_f64(x)).collect::<Vec<_>>());
        let terms = general.len() + real.len() + imaginary.len();
        // The entries of an inner cell, were all of them stored.
        let per_cell = terms / combinations.max(1) + if diagonal.is_some() { orbitals } else { 0 };
        let entries = per_cell * (source.dim() / orbitals.max(1));
        Ok(StencilRows {
            source,
            classes,
            same_until,
            strides,
            lists,
            general,
            real,
            imaginary,
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
            + self.general.len() * size_of::<Entry<T>>()
            + (self.real.len() + self.imaginary.len()) * size_of::<Entry<T::Real>>()
    }

    /// Number of the class combination of the line (all directions but the first) that a cell lies on.
    #[inline]
    fn line_class(&self, cell: usize) -> usize {
        let mut rest = cell / self.source.cells[0];
        let mut combination = 0;
        for ((classes, &n), stride) in self.classes.iter().zip(&self.source.cells).zip(&self.strides).skip(1)
        {
            combination += classes[rest % n] as usize * stride;
            rest /= n;
        }
        combination
    }
}

/// Classes of the coordinates in a direction: two coordinates are of one class if every term crosses the boundary from
/// both equally often. Also a coordinate of each class.
fn coordinate_classes(stencil: &Stencil, d: usize, n: usize) -> (Vec<u32>, Vec<usize>) {
    let mut shifts: Vec<i64> = stencil.terms.iter().map(|t| t.shift[d]).filter(|&s| s != 0).collect();
    shifts.sort_unstable();
    shifts.dedup();
    let mut kinds: Vec<Vec<i64>> = Vec::new();
    let mut representatives = Vec::new();
    let open = matches!(stencil.wrap[d], Wrap::Open);
    let class = (0..n)
        .map(|x| {
            let crossings: Vec<i64> = shifts
                .iter()
                .map(|s| {
                    let crossed = (x as i64 + s).div_euclid(n as i64);
                    // An open boundary crossed is a term gone, however far it would have led.
                    if open { crossed.signum().abs() } else { crossed }
                })
                .collect();
            kinds.iter().position(|k| *k == crossings).unwrap_or_else(|| {
                kinds.push(crossings);
                representatives.push(x);
                kinds.len() - 1
            }) as u32
        })
        .collect();
    (class, representatives)
}

impl<T: Stored> Walk<T> for StencilRows<T> {
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

/// The scalar type of a stencil must be that of its rows.
pub(super) fn check(stencil: &Stencil) -> Result<DType> {
    let cells: Option<usize> = stencil.cells.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
    let fits =
        cells.and_then(|c| c.checked_mul(stencil.orbitals)).is_some_and(|rows| rows < isize::MAX as usize);
    if !fits || stencil.cells.is_empty() || stencil.orbitals == 0 {
        return Err(Error::input("a stencil needs a direction, a cell and an orbital at least"));
    }
    let dim = stencil.dim();
    let terms_fit = stencil.terms.iter().all(|t| {
        t.to < stencil.orbitals && t.from < stencil.orbitals && t.shift.len() == stencil.cells.len()
    });
    if !terms_fit || stencil.wrap.len() != stencil.cells.len() {
        return Err(Error::input("a stencil's terms do not fit its cell"));
    }
    if stencil.diagonal.as_ref().is_some_and(|d| d.len() != dim) {
        return Err(Error::input(format!("a stencil of {dim} rows with another number of on-site energies")));
    }
    Ok(stencil.dtype)
}
