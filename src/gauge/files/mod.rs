//! Gauge fields in the files of other programs: NERSC archives, and ILDG and SciDAC files in lime containers. Checksums are
//! verified before the links are used.

mod lime;
mod nersc;

use std::cmp::Ordering;

use rayon::prelude::*;

use super::links::Links;
use super::su3::{self, Su3};
use crate::backend::matrix::su3::{check_links, check_links_to};
use crate::error::{Error, Result};
use crate::number::{C64, DType};
use crate::task;

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
    pub links: Links,
    /// What could not be checked, as a text for the user.
    pub note: Option<String>,
}

/// The bytes of a file that holds the field, with 32-bit or 64-bit numbers.
pub fn encode(u: &Links, kind: Kind, single: bool) -> Vec<u8> {
    match kind {
        Kind::Nersc { two_rows } => nersc::encode(u, two_rows, single),
        Kind::Ildg => lime::encode(u, single),
    }
}

/// Whether a file that begins so holds a gauge field.
pub fn is_field(head: &[u8]) -> bool {
    head.starts_with(b"BEGIN_HEADER") || head.starts_with(&lime::MAGIC)
}

/// The field in the bytes of a file, whatever its kind; with all links projected onto SU(3) if that is asked for.
///
/// # Errors
/// A file of another kind, cut short, or whose checksum, plaquette or links are wrong.
pub fn decode(bytes: &[u8], reunitarise: bool) -> Result<Loaded> {
    if bytes.starts_with(b"BEGIN_HEADER") {
        nersc::decode(bytes, reunitarise)
    } else if bytes.starts_with(&lime::MAGIC) {
        lime::decode(bytes, reunitarise)
    } else {
        Err(Error::file("this is neither a NERSC archive nor a lime file")
            .hint("NERSC archives begin with BEGIN_HEADER; ILDG and SciDAC files are lime files"))
    }
}

/// Largest deviation from SU(3) of links that are projected onto it on request: links in an unknown convention
/// deviate more.
const ROUGH: f64 = 1e-2;

/// The hint for a file whose links are not in SU(3).
const WRONG: &str = "the file is damaged, or written by another convention";

/// The hint for a file that ends too early.
const CUT: &str = "the file may have been truncated on its way here: fetch it again";

/// Sizes as a file gives them, none where it gives no number.
fn dims_of(sizes: impl IntoIterator<Item = Option<usize>>, what: &str) -> Result<[usize; 4]> {
    let sizes: Option<Vec<usize>> = sizes.into_iter().map(|n| n.filter(|&n| n > 0)).collect();
    let dims: [usize; 4] = sizes.and_then(|s| s.try_into().ok()).ok_or_else(|| {
        Error::file(format!("the {what} does not give four sizes of the lattice"))
            .hint("gauge fields have four directions of one site at least")
    })?;
    // A file must not make the program ask for more memory than the file can fill.
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

/// The boundary conditions of fermions, in the words of NERSC archives.
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

/// Reals from bytes, big-endian or little-endian.
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

/// A real as big-endian bytes.
fn big_endian(x: f64, single: bool, out: &mut Vec<u8>) {
    if single {
        out.extend((x as f32).to_be_bytes());
    } else {
        out.extend(x.to_be_bytes());
    }
}

/// What kind of numbers and matrices the data of a file are, and what to make of them.
#[derive(Clone, Copy)]
struct Form {
    /// Rows of each link that are stored; a missing third row is computed.
    rows: usize,
    /// Whether numbers have 32 bits.
    single: bool,
    /// Whether rough links are projected onto SU(3) too.
    reunitarise: bool,
}

/// A field from its reals in the order of sites, directions, rows and columns.
fn links_of(dims: [usize; 4], data: &[f64], form: Form) -> Result<Loaded> {
    let Form { rows, single, reunitarise } = form;
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
    check_links_to(&links, ROUGH).map_err(|e| Error::file(e.message().to_string()).hint(WRONG))?;
    if !reunitarise {
        check_links(&links).map_err(|e| {
            let option = "links that are a little off can be projected onto SU(3)";
            Error::file(e.message().to_string()).hint(format!("{WRONG}; {option}"))
        })?;
    }
    // Links of 32 bits are unitary to 1e-7 only: they are projected, so that they are unitary to 64 bits.
    let stop = task::current();
    let projected = |u: &Su3| {
        stop.heed();
        su3::reunitarised(u)
    };
    let near: Vec<Su3> = links.par_iter().map(projected).collect();
    let differences = |(a, b): (&Su3, &Su3)| a.iter().zip(b).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
    let off = links.iter().zip(&near).map(differences).fold(0.0, f64::max);
    let note = (off > DType::of(single, true).tolerance(1e-13))
        .then(|| format!("its links are in SU(3) to {off:.0e} only, and were projected onto it"));
    let links = if single || reunitarise || note.is_some() { near } else { links };
    Ok(Loaded { links: Links::new(dims, links)?, note })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::matrix::su3::off_su3;
    use crate::lattice::Lattice;

    const PLAIN: Form = Form { rows: 3, single: false, reunitarise: false };

    fn field() -> Links {
        Links::unit(&Lattice::hypercubic(&[2, 2, 2, 2]).unwrap()).unwrap().reference_field(0.4)
    }

    /// The reals of the field, all enlarged by a fraction.
    fn stretched(part: f64) -> Vec<f64> {
        let reals = field().links().iter().flatten().flat_map(|z| [z.re, z.im]).collect::<Vec<_>>();
        reals.into_iter().map(|x| x * (1.0 + part)).collect()
    }

    fn distance(a: &Links, b: &Links) -> f64 {
        let pairs = a.links().iter().flatten().zip(b.links().iter().flatten());
        pairs.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
    }

    /// Links that were rounded once in their life.
    #[test]
    fn links_that_are_nearly_unitary_are_projected() {
        let u = field();
        let exact = links_of(u.dims(), &stretched(0.0), PLAIN).unwrap();
        assert_eq!((exact.links, exact.note), (u.clone(), None));
        let loaded = links_of(u.dims(), &stretched(3e-8), PLAIN).unwrap();
        assert!(loaded.note.unwrap().contains("projected"));
        assert!(distance(&loaded.links, &u) < 1e-14);
    }

    /// Rough links are refused, or projected on request, unless they are too far from SU(3).
    #[test]
    fn rough_links_are_projected_if_asked_for() {
        let (u, forced) = (field(), Form { reunitarise: true, ..PLAIN });
        let e = links_of(u.dims(), &stretched(1e-4), PLAIN).unwrap_err();
        assert!(e.hint_text().is_some_and(|hint| hint.contains("projected onto SU(3)")), "{e}");
        let loaded = links_of(u.dims(), &stretched(1e-4), forced).unwrap();
        assert!(loaded.note.unwrap().contains("projected"));
        assert!(distance(&loaded.links, &u) < 1e-14);
        let e = links_of(u.dims(), &stretched(0.1), forced).unwrap_err();
        assert!(e.hint_text().is_some_and(|hint| !hint.contains("projected onto")), "{e}");
    }

    /// Links of 32 bits are off by some 1e-7 in the file, and by what 64 bits round once they are loaded.
    #[test]
    fn links_of_32_bits_are_projected() {
        let u = field();
        for kind in [Kind::Nersc { two_rows: false }, Kind::Nersc { two_rows: true }, Kind::Ildg] {
            let bytes = encode(&u, kind, true);
            for reunitarise in [false, true] {
                let loaded = decode(&bytes, reunitarise).unwrap();
                let off = loaded.links.links().iter().map(off_su3).fold(0.0, f64::max);
                let away = distance(&loaded.links, &u);
                assert!(off < 1e-14 && (1e-9..1e-6).contains(&away), "{kind:?}: {off} {away}");
                assert!(loaded.note.is_none());
            }
        }
    }
}
