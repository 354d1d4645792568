//! Operators as Matrix Market files, for other programs and for `lattice::read_matrix_market`.

use std::io::{SeekFrom, Write};
use std::path::Path;

use super::atomic;
use super::check::Summed;
use crate::error::{Error, Result};
use crate::lattice::CHECK;
use crate::number::C64;
use crate::operator::Operator;
use crate::output::Manifest;

/// Saves the entries of an operator in coordinate layout; real where the operator is. What knows no entries, like a
/// sign function, is multiplied out, which only small operators allow.
///
/// # Errors
/// When the extension is not `.mtx`, the file cannot be written, or a lazy operator is too large to multiply out.
pub fn save_operator(operator: &Operator, path: impl AsRef<Path>, manifest: Option<&Manifest>) -> Result<()> {
    let path = path.as_ref();
    if path.extension().is_none_or(|e| !e.eq_ignore_ascii_case("mtx")) {
        return Err(Error::input(format!("`{}` does not end in `.mtx`", path.display()))
            .hint("operators are saved as Matrix Market files"));
    }
    let mut count = 0usize;
    let known = each_row(operator, &mut |_, row| count += row.len());
    let dense = if known {
        None
    } else {
        let dense = operator.to_dense().map_err(|e| e.hint("save what it is made of instead"))?;
        count = dense.iter().filter(|z| **z != C64::ZERO).count();
        Some(dense)
    };
    let complex = operator.dtype().is_complex();
    atomic::write(path, |out| {
        let mut out = Summed::new(out);
        let kind = if complex { "complex" } else { "real" };
        writeln!(out, "%%MatrixMarket matrix coordinate {kind} general")?;
        for line in manifest.map(Manifest::lines).unwrap_or_default() {
            writeln!(out, "{}", format!("% {line}").trim_end())?;
        }
        // Other programs accept no comments behind the entries, so the check stands at the head. It is that of
        // all other lines.
        let place = out.beside().stream_position()?;
        writeln!(out.beside(), "{CHECK}{:08x}", 0)?;
        writeln!(out, "{} {} {count}", operator.dim(), operator.cols())?;
        let mut failed = Ok(());
        let mut write = |row: usize, entries: &[(usize, C64)]| {
            for (column, z) in entries {
                if failed.is_ok() {
                    failed = if complex {
                        writeln!(out, "{} {} {:e} {:e}", row + 1, column + 1, z.re, z.im)
                    } else {
                        writeln!(out, "{} {} {:e}", row + 1, column + 1, z.re)
                    };
                }
            }
        };
        match &dense {
            None => {
                each_row(operator, &mut write);
            }
            Some(dense) => {
                for (row, values) in dense.chunks(operator.cols()).enumerate() {
                    let entries: Vec<_> =
                        values.iter().copied().enumerate().filter(|e| e.1 != C64::ZERO).collect();
                    write(row, &entries);
                }
            }
        }
        failed?;
        let (sum, out) = out.finish();
        out.seek(SeekFrom::Start(place))?;
        write!(out, "{CHECK}{sum}")?;
        out.seek(SeekFrom::End(0)).map(|_| ())
    })
}

/// Calls `f` with the non-zero entries of every row; false where entries are not known.
fn each_row(operator: &Operator, f: &mut dyn FnMut(usize, &[(usize, C64)])) -> bool {
    let mut entries = Vec::new();
    for row in 0..operator.rows().local {
        if !operator.row(row, &mut entries) {
            return false;
        }
        entries.retain(|e| e.1 != C64::ZERO);
        f(row, &entries);
    }
    true
}
