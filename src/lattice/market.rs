//! Matrix Market files (R. F. Boisvert, R. Pozo, K. A. Remington, NISTIR 5935, 1996): coordinate and array layouts,
//! real, integer, complex and pattern entries, all four symmetries.

use std::path::Path;

use super::lines::FileLines;
use super::sparse::from_triplets;
use crate::backend::matrix::Csr;
use crate::error::{Error, Result};
use crate::number::{C64, memory};
use crate::task::Task;

#[derive(Clone, Copy, PartialEq)]
enum MarketField {
    Real,
    Complex,
    Pattern,
}

#[derive(Clone, Copy, PartialEq)]
enum MarketSymmetry {
    General,
    Symmetric,
    Skew,
    Hermitian,
}

/// The matrix in a Matrix Market file; `single` asks for 32-bit reals.
///
/// # Errors
/// When the file is missing, truncated or malformed (the line is named), the matrix does not fit into memory, or the
/// work is interrupted.
pub fn read_matrix_market(path: &Path, single: bool, task: &Task) -> Result<Csr> {
    let mut lines = FileLines::open(path)?;
    let (array, field, symmetry) = header(&mut lines)?;
    let sizes = sizes(&mut lines, if array { 2 } else { 3 })?;
    let stored = MarketStorage { array, field, symmetry, rows: sizes[0], cols: sizes[1] };
    let (rows, cols) = (stored.rows, stored.cols);
    if rows == 0 || cols == 0 {
        return Err(lines.wrong("says that the matrix has no rows or columns"));
    }
    if symmetry != MarketSymmetry::General && rows != cols {
        return Err(lines.wrong(format!("gives a symmetric matrix {rows} rows and {cols} columns")));
    }
    let count = if array { stored.of_array() } else { Some(sizes[2]) };
    let count = count.ok_or_else(|| Error::memory(format!("a matrix of {rows} x {cols}")))?;
    let mirrored = if symmetry == MarketSymmetry::General { 1 } else { 2 };
    memory::ensure(
        64 * mirrored * count as u128 + 16 * rows as u128,
        &format!("a matrix of {count} entries"),
    )?;
    let mut entries = MarketEntries::default();
    let steps = task.start("matrix market", count);
    let mut place = (stored.below(0), 0);
    // On which side of the diagonal a symmetric matrix has its entries.
    let mut lower = None;
    for k in 0..count {
        if k.is_multiple_of(8192) {
            steps.advance(k)?;
        }
        let words = loop {
            let words = lines.words(&format!("entry {} of {count}", k + 1))?;
            if !words.is_empty() && !words[0].starts_with('%') {
                break words;
            }
        };
        let value = stored.value(&lines, &words)?;
        let (i, j) = if array { stored.advanced(&mut place) } else { stored.indices(&lines, &words)? };
        stored.check(&lines, (i, j, value), &mut lower)?;
        entries.push(i, j, value);
        if i != j {
            match symmetry {
                MarketSymmetry::General => {}
                MarketSymmetry::Symmetric => entries.push(j, i, value),
                MarketSymmetry::Skew => entries.push(j, i, -value),
                MarketSymmetry::Hermitian => entries.push(j, i, value.conj()),
            }
        }
    }
    while let Some(line) = lines.next()? {
        if !line.trim().is_empty() && !line.starts_with('%') {
            return Err(lines.wrong(format!("follows the last of {count} entries")));
        }
    }
    lines.check()?;
    from_triplets((rows, cols), entries.rows, entries.cols, entries.values, single)
}

/// How a file stores its matrix. Arrays are stored by columns; of symmetric matrices only the part on and below the
/// diagonal.
struct MarketStorage {
    array: bool,
    field: MarketField,
    symmetry: MarketSymmetry,
    rows: usize,
    cols: usize,
}

impl MarketStorage {
    /// Numbers of an array; none beyond all memory.
    fn of_array(&self) -> Option<usize> {
        let n = self.rows;
        match self.symmetry {
            MarketSymmetry::General => n.checked_mul(self.cols),
            MarketSymmetry::Skew => n.checked_mul(n - 1).map(|x| x / 2),
            _ => n.checked_mul(n + 1).map(|x| x / 2),
        }
    }

    /// The first row of a column of an array.
    fn below(&self, column: usize) -> usize {
        match self.symmetry {
            MarketSymmetry::General => 0,
            MarketSymmetry::Skew => column + 1,
            _ => column,
        }
    }

    /// Row and column of the next number of an array.
    fn advanced(&self, place: &mut (usize, usize)) -> (usize, usize) {
        while place.0 >= self.rows {
            *place = (self.below(place.1 + 1), place.1 + 1);
        }
        place.0 += 1;
        (place.0 - 1, place.1)
    }

    /// Row and column from a line.
    fn indices(&self, lines: &FileLines, words: &[String]) -> Result<(usize, usize)> {
        let index = |word: &str, what: &str, size: usize| -> Result<usize> {
            let at: usize = lines.number(word, what)?;
            if at == 0 || at > size {
                return Err(lines.wrong(format!("has {what} {at}, outside 1 to {size}")));
            }
            Ok(at - 1)
        };
        Ok((index(&words[0], "row", self.rows)?, index(&words[1], "column", self.cols)?))
    }

    /// The value from a line.
    fn value(&self, lines: &FileLines, words: &[String]) -> Result<C64> {
        let numbers = if self.array { words } else { words.get(2..).unwrap_or_default() };
        let wanted = match self.field {
            MarketField::Pattern => 0,
            MarketField::Real => 1,
            MarketField::Complex => 2,
        };
        if numbers.len() != wanted || (!self.array && words.len() < 2) {
            let all = wanted + if self.array { 0 } else { 2 };
            return Err(lines.wrong(format!("has {} numbers, and an entry here has {all}", words.len())));
        }
        let mut value = C64::ONE;
        if let Some(re) = numbers.first() {
            value.re = lines.real(re, "the value of an entry")?;
        }
        if let Some(im) = numbers.get(1) {
            value.im = lines.real(im, "the value of an entry")?;
        }
        Ok(value)
    }

    /// Refuses an entry that the symmetry does not allow.
    fn check(
        &self,
        lines: &FileLines,
        (i, j, value): (usize, usize, C64),
        lower: &mut Option<bool>,
    ) -> Result<()> {
        let strange = match self.symmetry {
            MarketSymmetry::General | MarketSymmetry::Symmetric => false,
            MarketSymmetry::Hermitian => i == j && value.im != 0.0,
            MarketSymmetry::Skew => i == j && value != C64::ZERO,
        };
        if strange {
            return Err(lines
                .wrong("has a value on the diagonal that this symmetry does not allow")
                .hint("a Hermitian matrix has real numbers there, a skew-symmetric one zeros"));
        }
        if self.symmetry != MarketSymmetry::General && i != j && *lower.get_or_insert(i > j) != (i > j) {
            return Err(lines
                .wrong("stands on the other side of the diagonal than those before")
                .hint("a symmetric matrix has the entries of one side in its file"));
        }
        Ok(())
    }
}

#[derive(Default)]
struct MarketEntries {
    rows: Vec<usize>,
    cols: Vec<usize>,
    values: Vec<C64>,
}

impl MarketEntries {
    fn push(&mut self, i: usize, j: usize, value: C64) {
        self.rows.push(i);
        self.cols.push(j);
        self.values.push(value);
    }
}

/// Layout (whether an array), kind of entries and symmetry from the first line.
fn header(lines: &mut FileLines) -> Result<(bool, MarketField, MarketSymmetry)> {
    let words: Vec<String> = lines.words("a header")?.iter().map(|w| w.to_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [banner, object, layout, field, symmetry] = words[..] else {
        return Err(lines
            .wrong("is no header of a Matrix Market file")
            .hint("it should read like `%%MatrixMarket matrix coordinate real general`"));
    };
    if banner != "%%matrixmarket" || object != "matrix" {
        return Err(lines
            .wrong("is no header of a matrix in a Matrix Market file")
            .hint("it should read like `%%MatrixMarket matrix coordinate real general`"));
    }
    let array = match layout {
        "coordinate" => false,
        "array" => true,
        _ => return Err(lines.wrong(format!("names the layout `{layout}`; there are coordinate and array"))),
    };
    let field = match field {
        "real" | "integer" | "double" => MarketField::Real,
        "complex" => MarketField::Complex,
        "pattern" if !array => MarketField::Pattern,
        _ => return Err(lines.wrong(format!("names the entries `{field}`, which this layout does not have"))),
    };
    let symmetry = match symmetry {
        "general" => MarketSymmetry::General,
        "symmetric" => MarketSymmetry::Symmetric,
        "skew-symmetric" => MarketSymmetry::Skew,
        "hermitian" => MarketSymmetry::Hermitian,
        _ => return Err(lines.wrong(format!("names the symmetry `{symmetry}`, which there is not"))),
    };
    Ok((array, field, symmetry))
}

/// The numbers of the line of sizes, behind the comments.
fn sizes(lines: &mut FileLines, count: usize) -> Result<Vec<usize>> {
    let words = loop {
        let words = lines.words("the line of sizes")?;
        if !words.is_empty() && !words[0].starts_with('%') {
            break words;
        }
    };
    if words.len() != count {
        return Err(lines.wrong(format!("has {} numbers, and the line of sizes has {count}", words.len())));
    }
    words.iter().map(|word| lines.number(word, "a size")).collect()
}
