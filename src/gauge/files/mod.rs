//! Gauge fields in the files of other programs: NERSC archives, and ILDG and SciDAC files in lime containers. Checksums are
//! verified before anything is believed.

mod lime;
mod nersc;

use std::cmp::Ordering;

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

/// A field from a file.
#[derive(Debug)]
pub struct Loaded {
    /// The field.
    pub links: Links,
    /// What could not be made sure of.
    pub note: Option<String>,
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
pub fn decode(bytes: &[u8]) -> Result<Loaded> {
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

/// Sizes as a file gives them, none where it gives no number.
fn dims_of(sizes: impl IntoIterator<Item = Option<usize>>, what: &str) -> Result<[usize; 4]> {
    let sizes: Option<Vec<usize>> = sizes.into_iter().map(|n| n.filter(|&n| n > 0)).collect();
    let dims: [usize; 4] = sizes.and_then(|s| s.try_into().ok()).ok_or_else(|| {
        Error::file(format!("the {what} does not give four sizes of the lattice"))
            .hint("gauge fields have four directions of one site at least")
    })?;
    // So that no file can ask for more memory than it could fill.
    match dims.iter().try_fold(576usize, |n, &d| n.checked_mul(d)) {
        Some(bytes) if bytes < isize::MAX as usize => Ok(dims),
        _ => Err(Error::file(format!("the {what} speaks of a lattice of {dims:?} sites")).hint(CUT)),
    }
}

/// Refuses data whose length is not that of the lattice.
fn check_length(dims: [usize; 4], wanted: usize, there: usize) -> Result<()> {
    let hint = match there.cmp(&wanted) {
        Ordering::Equal => return Ok(()),
        Ordering::Less => CUT,
        Ordering::Greater => "the sizes or the type that the file states are not those of its data",
    };
    Err(Error::file(format!(
        "the data of a lattice of {dims:?} sites take {wanted} bytes, and {there} are there"
    ))
    .hint(hint))
}

/// What fermions get for crossing the boundary of each direction, in the words of NERSC archives.
fn boundary_words(u: &Links) -> [&'static str; 4] {
    u.sign().map(|sign| if sign < 0.0 { "ANTIPERIODIC" } else { "PERIODIC" })
}

/// The same from the words; directions that have none are periodic.
fn signs_of<'a>(words: impl Iterator<Item = &'a str>) -> Result<[f64; 4]> {
    let mut signs = [1.0; 4];
    for (sign, word) in signs.iter_mut().zip(words) {
        *sign = match word.to_ascii_uppercase().as_str() {
            "PERIODIC" => 1.0,
            "ANTIPERIODIC" => -1.0,
            _ => {
                return Err(Error::file(format!("a boundary of kind {word}"))
                    .hint("PERIODIC and ANTIPERIODIC are known"));
            }
        };
    }
    Ok(signs)
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
fn links_of(dims: [usize; 4], data: &[f64], rows: usize, single: bool) -> Result<Loaded> {
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
    let near = u.reunitarised();
    let differences = |(a, b): (&Su3, &Su3)| a.iter().zip(b).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
    let off = u.links().iter().zip(near.links()).map(differences).fold(0.0, f64::max);
    let note = (!single && off > 1e-12)
        .then(|| format!("its links are in SU(3) to {off:.0e} only, and were projected onto it"));
    Ok(Loaded { links: if single || note.is_some() { near } else { u }, note })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::Lattice;

    /// Links that were rounded once in their life.
    #[test]
    fn links_that_are_nearly_unitary_are_projected() {
        let u = Links::unit(&Lattice::hypercubic(&[2, 2, 2, 2]).unwrap()).unwrap().reference_field(0.4);
        let data: Vec<f64> = u.links().iter().flatten().flat_map(|z| [z.re, z.im]).collect();
        let exact = links_of(u.dims(), &data, 3, false).unwrap();
        assert_eq!((exact.links, exact.note), (u.clone(), None));
        let rough: Vec<f64> = data.iter().map(|x| x * (1.0 + 3e-8)).collect();
        let loaded = links_of(u.dims(), &rough, 3, false).unwrap();
        assert!(loaded.note.unwrap().contains("projected"));
        let pairs = loaded.links.links().iter().flatten().zip(u.links().iter().flatten());
        assert!(pairs.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max) < 1e-14);
    }
}
