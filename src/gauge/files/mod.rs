//! Gauge fields in the files of other programs: NERSC archives, and ILDG and SciDAC files in lime containers. Checksums are
//! verified before anything is believed.

mod lime;
mod nersc;

use super::links::Links;
use super::su3::Su3;
use crate::error::{Error, Result};
use crate::number::C64;

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A NERSC archive with all 18 reals of a link, or the 12 of its first two rows.
    Nersc {
        /// Whether third rows are left out.
        two_rows: bool,
    },
    /// An ILDG file.
    Ildg,
}

/// The bytes of a file that holds the field, with 32-bit or 64-bit numbers.
pub fn encode(u: &Links, kind: Kind, single: bool) -> Vec<u8> {
    match kind {
        Kind::Nersc { two_rows } => nersc::encode(u, two_rows, single),
        Kind::Ildg => lime::encode(u, single),
    }
}

/// The field in the bytes of a file, whatever its kind.
///
/// # Errors
/// A file of another kind, cut short, or whose checksum, plaquette or links are wrong.
pub fn decode(bytes: &[u8]) -> Result<Links> {
    if bytes.starts_with(b"BEGIN_HEADER") {
        nersc::decode(bytes)
    } else if bytes.starts_with(&lime::MAGIC) {
        lime::decode(bytes)
    } else {
        Err(Error::file("this is neither a NERSC archive nor a lime file")
            .hint("NERSC archives begin with BEGIN_HEADER; ILDG and SciDAC files are lime files"))
    }
}

/// What to do about a file that ends too early.
const CUT: &str = "the file may have been truncated on its way here: fetch it again";

/// Sizes as a file gives them.
fn dims_of(sizes: [Option<usize>; 4], what: &str) -> Result<[usize; 4]> {
    let bad = || Error::file(format!("the {what} does not give four sizes of the lattice")).hint(CUT);
    let dims = [sizes[0], sizes[1], sizes[2], sizes[3]].map(|n| n.filter(|&n| n > 0).ok_or_else(bad));
    let [a, b, c, d] = dims;
    let dims = [a?, b?, c?, d?];
    // So that no file can ask for more memory than it could fill.
    match dims.iter().try_fold(576usize, |n, &d| n.checked_mul(d)) {
        Some(bytes) if bytes < isize::MAX as usize => Ok(dims),
        _ => Err(Error::file(format!("the {what} speaks of a lattice of {dims:?} sites")).hint(CUT)),
    }
}

/// The reals in bytes, big or little end first.
fn reals(bytes: &[u8], single: bool, big: bool) -> Vec<f64> {
    let each = if single { 4 } else { 8 };
    let read = |word: &[u8]| {
        let mut le = [0u8; 8];
        for (k, &b) in word.iter().enumerate() {
            le[if big { each - 1 - k } else { k }] = b;
        }
        let bits = u64::from_le_bytes(le);
        if single { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) }
    };
    bytes.chunks_exact(each).map(read).collect()
}

/// Reals as bytes, the big end first.
fn big_endian(x: f64, single: bool, out: &mut Vec<u8>) {
    if single {
        out.extend((x as f32).to_be_bytes());
    } else {
        out.extend(x.to_be_bytes());
    }
}

/// The field of reals in the order of sites, directions, rows and columns; missing third rows are made.
fn links_of(dims: [usize; 4], data: &[f64], rows: usize, single: bool) -> Result<Links> {
    let each = |chunk: &[f64]| -> Su3 {
        let mut u: Su3 = Default::default();
        for (z, pair) in u.iter_mut().zip(chunk.chunks_exact(2)) {
            *z = C64::new(pair[0], pair[1]);
        }
        if rows == 2 {
            let cross = |i: usize, j: usize| (u[i] * u[3 + j] - u[j] * u[3 + i]).conj();
            [u[6], u[7], u[8]] = [cross(1, 2), cross(2, 0), cross(0, 1)];
        }
        u
    };
    let links: Vec<Su3> = data.chunks_exact(6 * rows).map(each).collect();
    crate::operator::check_links(&links).map_err(|e| {
        Error::file(e.message().to_string()).hint("the file is damaged, or written by another convention")
    })?;
    let u = Links::new(dims, links)?;
    // What 32 bits round, stays unitary in 64.
    Ok(if single { u.reunitarised() } else { u })
}
