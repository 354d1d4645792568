//! Matrices as the layers above hand them to a backend: complete on the host, in a format the kernels of a backend
//! understand. A backend keeps what it needs of them in its own memory.

pub mod classes;
pub mod held;
pub mod onsite;
pub mod outer;
pub mod records;
pub mod su3;
pub mod wilson;

pub use onsite::OnSite;

use crate::error::{Error, Result};
use crate::number::{C64, DType, memory};

/// Sorts entries by their place and adds up those that meet, in the order they came.
pub fn merge<K: Ord + Copy>(entries: &mut Vec<(K, C64)>) {
    entries.sort_by_key(|e| e.0);
    entries.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1 += later.1;
        }
        same
    });
}

fn shorten<T>(all: &mut Vec<T>, length: usize) {
    all.truncate(length);
    all.shrink_to_fit();
}

/// Whether something holds for all, by loops that nothing ends early, so that lanes take many at a time.
fn every<T>(list: &[T], holds: impl Fn(&T) -> bool) -> bool {
    list.chunks(4096).all(|some| some.iter().fold(true, |all, x| all & holds(x)))
}

/// Column indices: 32 bits where they suffice, 64 beyond.
#[derive(Debug, Clone, PartialEq)]
pub enum Indices {
    /// At most 2^32 columns.
    U32(Vec<u32>),
    /// More columns than that.
    U64(Vec<u64>),
}

impl Indices {
    /// The indices of a matrix with `cols` columns, as narrow as they may be.
    pub fn of(cols: usize, all: Vec<u64>) -> Indices {
        if cols <= u32::MAX as usize {
            Indices::U32(all.into_iter().map(|j| j as u32).collect())
        } else {
            Indices::U64(all)
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Indices::U32(v) => v.len(),
            Indices::U64(v) => v.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Index number `at`.
    #[inline]
    pub fn get(&self, at: usize) -> usize {
        match self {
            Indices::U32(v) => v[at] as usize,
            Indices::U64(v) => v[at] as usize,
        }
    }

    /// Changes index number `at`.
    #[inline]
    pub fn set(&mut self, at: usize, index: usize) {
        match self {
            Indices::U32(v) => v[at] = index as u32,
            Indices::U64(v) => v[at] = index as u64,
        }
    }

    fn all_below(&self, end: usize) -> bool {
        match self {
            Indices::U32(v) => every(v, |&j| (j as usize) < end),
            Indices::U64(v) => every(v, |&j| (j as usize) < end),
        }
    }

    fn append(&mut self, more: &Indices) {
        match (self, more) {
            (Indices::U32(v), more) => v.extend((0..more.len()).map(|at| more.get(at) as u32)),
            (Indices::U64(v), more) => v.extend((0..more.len()).map(|at| more.get(at) as u64)),
        }
    }

    /// Leaves the first ones, and gives the memory of the others back.
    pub fn shorten(&mut self, length: usize) {
        match self {
            Indices::U32(v) => shorten(v, length),
            Indices::U64(v) => shorten(v, length),
        }
    }

    /// Bytes of one index.
    pub fn bytes(&self) -> usize {
        match self {
            Indices::U32(_) => 4,
            Indices::U64(_) => 8,
        }
    }
}

/// Matrix entries of one of the four scalar types.
#[derive(Debug, Clone, PartialEq)]
pub enum MatrixValues {
    /// Real, 32 bits.
    F32(Vec<f32>),
    /// Real, 64 bits.
    F64(Vec<f64>),
    /// Complex of two 32-bit reals.
    C32(Vec<num_complex::Complex<f32>>),
    /// Complex of two 64-bit reals.
    C64(Vec<C64>),
}

impl MatrixValues {
    pub fn len(&self) -> usize {
        match self {
            MatrixValues::F32(v) => v.len(),
            MatrixValues::F64(v) => v.len(),
            MatrixValues::C32(v) => v.len(),
            MatrixValues::C64(v) => v.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The scalar type of the entries.
    pub fn dtype(&self) -> DType {
        match self {
            MatrixValues::F32(_) => DType::F32,
            MatrixValues::F64(_) => DType::F64,
            MatrixValues::C32(_) => DType::C32,
            MatrixValues::C64(_) => DType::C64,
        }
    }

    /// Entry number `at`, in double precision.
    #[inline]
    pub fn get(&self, at: usize) -> C64 {
        match self {
            MatrixValues::F32(v) => C64::new(f64::from(v[at]), 0.0),
            MatrixValues::F64(v) => C64::new(v[at], 0.0),
            MatrixValues::C32(v) => C64::new(f64::from(v[at].re), f64::from(v[at].im)),
            MatrixValues::C64(v) => v[at],
        }
    }

    fn all_finite(&self) -> bool {
        match self {
            MatrixValues::F32(v) => every(v, |x| x.is_finite()),
            MatrixValues::F64(v) => every(v, |x| x.is_finite()),
            MatrixValues::C32(v) => every(v, |z| z.re.is_finite() & z.im.is_finite()),
            MatrixValues::C64(v) => every(v, |z| z.re.is_finite() & z.im.is_finite()),
        }
    }

    fn append(&mut self, more: &MatrixValues) {
        match (self, more) {
            (MatrixValues::F32(v), MatrixValues::F32(more)) => v.extend_from_slice(more),
            (MatrixValues::F64(v), MatrixValues::F64(more)) => v.extend_from_slice(more),
            (MatrixValues::C32(v), MatrixValues::C32(more)) => v.extend_from_slice(more),
            (MatrixValues::C64(v), MatrixValues::C64(more)) => v.extend_from_slice(more),
            (all, more) => all.append(&more.convert(all.dtype())),
        }
    }

    /// Writes entry number `from` at place `to`.
    #[inline]
    pub fn copy(&mut self, from: usize, to: usize) {
        match self {
            MatrixValues::F32(v) => v[to] = v[from],
            MatrixValues::F64(v) => v[to] = v[from],
            MatrixValues::C32(v) => v[to] = v[from],
            MatrixValues::C64(v) => v[to] = v[from],
        }
    }

    /// Leaves the first ones, and gives the memory of the others back.
    pub fn shorten(&mut self, length: usize) {
        match self {
            MatrixValues::F32(v) => shorten(v, length),
            MatrixValues::F64(v) => shorten(v, length),
            MatrixValues::C32(v) => shorten(v, length),
            MatrixValues::C64(v) => shorten(v, length),
        }
    }

    /// The entries converted to `dtype`; a real type drops imaginary parts.
    pub fn convert(&self, dtype: DType) -> MatrixValues {
        let all = 0..self.len();
        match dtype {
            DType::F32 => MatrixValues::F32(all.map(|i| self.get(i).re as f32).collect()),
            DType::F64 => MatrixValues::F64(all.map(|i| self.get(i).re).collect()),
            DType::C32 => MatrixValues::C32(
                all.map(|i| self.get(i))
                    .map(|z| num_complex::Complex::new(z.re as f32, z.im as f32))
                    .collect(),
            ),
            DType::C64 => MatrixValues::C64(all.map(|i| self.get(i)).collect()),
        }
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> usize {
        self.len() * self.dtype().bytes()
    }
}

/// A sparse matrix in compressed rows; columns ascend within a row and none stands twice.
#[derive(Debug, Clone, PartialEq)]
pub struct Csr {
    /// Number of rows held here.
    pub rows: usize,
    /// Number of columns, global.
    pub cols: usize,
    /// Where each row starts in `columns` and `values`; `rows + 1` entries.
    pub row_start: Vec<usize>,
    pub columns: Indices,
    pub values: MatrixValues,
}

impl Csr {
    /// No rows and no columns.
    pub fn empty(dtype: DType) -> Csr {
        let (columns, values) = (Indices::of(0, Vec::new()), MatrixValues::C64(Vec::new()).convert(dtype));
        Csr { rows: 0, cols: 0, row_start: vec![0], columns, values }
    }

    /// The identity in `n` dimensions.
    pub fn identity(n: usize) -> Csr {
        Csr {
            rows: n,
            cols: n,
            row_start: (0..=n).collect(),
            columns: Indices::of(n, (0..n as u64).collect()),
            values: MatrixValues::F64(vec![1.0; n]),
        }
    }

    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Turns the lengths of rows, which stand behind a zero, into where the rows start. True if 32 bits hold the number
    /// of each of `cols` columns.
    ///
    /// # Errors
    /// When there is no memory for so many entries.
    pub fn start_rows(row_start: &mut [usize], cols: usize, dtype: DType) -> Result<bool> {
        let rows = row_start.len() - 1;
        for row in 0..rows {
            row_start[row + 1] += row_start[row];
        }
        let (entries, narrow) = (row_start[rows], cols <= u32::MAX as usize);
        memory::ensure(
            entries as u128 * (dtype.bytes() + if narrow { 4 } else { 8 }) as u128,
            &format!("a sparse matrix of {rows} rows and {entries} entries"),
        )?;
        Ok(narrow)
    }

    /// The place of the first entry of a row whose column is not before `column`; the row's end if there is none.
    pub fn first_from(&self, row: usize, column: usize) -> usize {
        let (mut low, mut high) = (self.row_start[row], self.row_start[row + 1]);
        while low < high {
            let middle = (low + high) / 2;
            if self.columns.get(middle) < column { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The matrix of the imaginary parts.
    pub fn imaginary(self) -> Csr {
        let values = match self.values {
            MatrixValues::C32(all) => MatrixValues::F32(all.iter().map(|z| z.im).collect()),
            MatrixValues::C64(all) => MatrixValues::F64(all.iter().map(|z| z.im).collect()),
            MatrixValues::F32(all) => MatrixValues::F32(vec![0.0; all.len()]),
            MatrixValues::F64(all) => MatrixValues::F64(vec![0.0; all.len()]),
        };
        Csr { values, ..self }
    }

    /// Leaves a range of rows.
    pub fn keep_rows(&mut self, rows: std::ops::Range<usize>) {
        if rows == (0..self.rows) {
            return;
        }
        let (first, last) = (self.row_start[rows.start], self.row_start[rows.end]);
        for at in first..last {
            self.columns.set(at - first, self.columns.get(at));
            self.values.copy(at, at - first);
        }
        self.columns.shorten(last - first);
        self.values.shorten(last - first);
        self.row_start = self.row_start[rows.start..=rows.end].iter().map(|at| at - first).collect();
        self.rows = rows.len();
    }

    /// Adds the rows of a matrix with the same columns; its entries take the scalar type of those that are there.
    pub fn append(&mut self, more: &Csr) {
        let before = self.entries();
        self.columns.append(&more.columns);
        self.values.append(&more.values);
        self.row_start.extend(more.row_start[1..].iter().map(|at| before + at));
        self.rows += more.rows;
    }

    /// Bytes of indices, row starts and values.
    pub fn bytes(&self) -> usize {
        self.columns.len() * self.columns.bytes() + self.row_start.len() * 8 + self.values.bytes()
    }

    /// As [`Csr::validate`], for slices of `chunk` rows whose lengths are sorted among `sigma` of them.
    ///
    /// # Errors
    /// Slices of no rows, and more rows than their order can name.
    pub fn check_slices(&self, (chunk, sigma): (usize, usize), format: &str) -> Result<()> {
        self.validate()?;
        if chunk == 0 || sigma == 0 {
            return Err(Error::input("SELL-C-sigma needs C and sigma of at least 1"));
        }
        if self.rows >= u32::MAX as usize {
            return Err(Error::input(format!(
                "{format}: {} rows are too many for one slice order",
                self.rows
            ))
            .hint("use the CSR format or a stencil"));
        }
        Ok(())
    }

    /// Checks that the parts fit together: what every constructor promises, said as an error where input came from
    /// outside.
    pub fn validate(&self) -> Result<()> {
        let n = self.values.len();
        let starts_fit = self.row_start.len() == self.rows + 1
            && self.row_start.first() == Some(&0)
            && self.row_start.last() == Some(&n)
            && self.row_start.windows(2).all(|w| w[0] <= w[1]);
        if !starts_fit || self.columns.len() != n {
            return Err(Error::input(format!(
                "sparse matrix of {} rows: row starts do not fit {n} entries",
                self.rows
            )));
        }
        if self.columns.all_below(self.cols) && self.values.all_finite() {
            return Ok(());
        }
        for at in 0..n {
            if self.columns.get(at) >= self.cols {
                return Err(Error::input(format!(
                    "column {} outside the {} columns",
                    self.columns.get(at),
                    self.cols
                )));
            }
            let z = self.values.get(at);
            if !z.re.is_finite() || !z.im.is_finite() {
                return Err(Error::input(format!(
                    "entry in column {} is not a finite number",
                    self.columns.get(at)
                ))
                .hint("look for a division by zero"));
            }
        }
        Ok(())
    }
}

/// What happens to a hopping that leaves the lattice in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wrap {
    /// It is absent.
    Open,
    /// It comes in at the other side, times this phase when it leaves upwards (its conjugate when downwards).
    Phase(C64),
}

impl Wrap {
    /// Whether hoppings keep their modulus.
    pub fn is_unitary(&self) -> bool {
        !matches!(self, Wrap::Phase(p) if (p.norm() - 1.0).abs() > 1e-12)
    }
}

/// One translation-invariant matrix element: `(H v)[c, to] += value * v[c + shift, from]` for every cell `c`.
#[derive(Debug, Clone, PartialEq)]
pub struct StencilTerm {
    /// Displacement in cells, one entry a direction.
    pub shift: Vec<i64>,
    /// Row within the cell.
    pub to: usize,
    /// Column within the shifted cell.
    pub from: usize,
    pub value: C64,
}

/// A matrix-free operator on a regular lattice of cells: row = cell * orbitals + orbital, the first direction fastest.
/// Hermitian conjugates are listed like any other term.
#[derive(Debug, Clone, PartialEq)]
pub struct Stencil {
    /// Scalar type of the operator.
    pub dtype: DType,
    pub cells: Vec<usize>,
    /// Rows a cell (sites times orbitals).
    pub orbitals: usize,
    pub wrap: Vec<Wrap>,
    pub terms: Vec<StencilTerm>,
    /// Real on-site energies, one a row, added to the terms.
    pub diagonal: Option<OnSite>,
}

impl Stencil {
    /// The stencil of the imaginary parts.
    pub fn imaginary(mut self) -> Stencil {
        self.terms.iter_mut().for_each(|term| term.value = C64::new(term.value.im, 0.0));
        Stencil { dtype: self.dtype.to_real(), diagonal: None, ..self }
    }

    pub fn dim(&self) -> usize {
        self.cells.iter().product::<usize>() * self.orbitals
    }

    /// Checks that the parts fit together, as every constructor promises.
    ///
    /// # Errors
    /// No direction, cell or orbital; terms or on-site energies that do not fit; hoppings that are not finite.
    pub fn validate(&self) -> Result<()> {
        let cells: Option<usize> = self.cells.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
        let rows = cells.and_then(|cells| cells.checked_mul(self.orbitals));
        if rows.is_none_or(|rows| rows == 0 || rows > isize::MAX as usize) || self.cells.is_empty() {
            return Err(Error::input("a stencil needs a direction, a cell and an orbital at least"));
        }
        let directions = self.cells.len();
        let fits =
            |t: &StencilTerm| t.to < self.orbitals && t.from < self.orbitals && t.shift.len() == directions;
        if !self.terms.iter().all(fits) || self.wrap.len() != directions || directions > 16 {
            return Err(Error::input("a stencil's terms do not fit its cell"));
        }
        if self.diagonal.as_ref().is_some_and(|d| d.rows() != self.dim()) {
            return Err(Error::input(format!(
                "a stencil of {} rows with another number of on-site energies",
                self.dim()
            )));
        }
        let finite = |z: C64| z.re.is_finite() && z.im.is_finite();
        if !self.terms.iter().all(|t| finite(t.value)) {
            return Err(Error::input("a stencil has a value that is not a finite number")
                .hint("look for a division by zero"));
        }
        Ok(())
    }

    /// A term's matrix element from the cell at these coordinates, with the phases of the boundaries it crosses; none
    /// where it leaves the lattice.
    pub fn element(&self, term: &StencilTerm, cell: &[i64]) -> Option<C64> {
        let mut value = term.value;
        for (d, &n) in self.cells.iter().enumerate() {
            let crossings = (cell[d] + term.shift[d]).div_euclid(n as i64) as i32;
            match self.wrap[d] {
                _ if crossings == 0 => {}
                Wrap::Open => return None,
                Wrap::Phase(p) if crossings > 0 => value *= p.powi(crossings),
                Wrap::Phase(p) => value *= p.conj().powi(-crossings),
            }
        }
        Some(value)
    }

    /// Calls `f(term, column, value)` for what the terms give one row; those that meet in a column are not merged.
    pub fn hoppings(&self, row: usize, mut f: impl FnMut(&StencilTerm, usize, C64)) {
        let (mut cell, orbital) = (row / self.orbitals, row % self.orbitals);
        let mut at = [0i64; 16];
        for (x, &n) in at.iter_mut().zip(&self.cells) {
            *x = (cell % n) as i64;
            cell /= n;
        }
        for term in self.terms.iter().filter(|t| t.to == orbital) {
            let Some(value) = self.element(term, &at) else { continue };
            let (mut target, mut stride) = (0, 1);
            for (d, &n) in self.cells.iter().enumerate() {
                target += (at[d] + term.shift[d]).rem_euclid(n as i64) as usize * stride;
                stride *= n;
            }
            f(term, target * self.orbitals + term.from, value);
        }
    }

    /// The non-zero entries of one row as (column, value), unsorted; entries that meet in a column are not merged.
    pub fn row(&self, row: usize, entries: &mut Vec<(usize, C64)>) {
        entries.clear();
        self.hoppings(row, |_, column, value| entries.push((column, value)));
        if let Some(diagonal) = &self.diagonal {
            entries.push((row, C64::new(diagonal.at(row), 0.0)));
        }
    }

    /// The same, columns ascending and none twice.
    pub fn merged_row(&self, row: usize, entries: &mut Vec<(usize, C64)>) {
        self.row(row, entries);
        merge(entries);
    }
}
