//! Gauge fields in the files of other programs: NERSC archives, and ILDG and SciDAC files in lime containers. Checksums
//! are verified before the links are used. If several ranks share a field, each reads the links of its own sites. Rank
//! 0 writes the pieces that the others send, so no rank holds the whole field.

mod lime;
mod nersc;
mod source;

use std::cmp::Ordering;
use std::io::{Seek, SeekFrom, Write};
use std::sync::Arc;

use rayon::prelude::*;

use super::links::{Links, unit_links};
use super::su3::{self, Su3, with_rows};
use crate::backend::Region;
use crate::backend::matrix::su3::{check_links, check_links_to};
use crate::error::{Error, Result};
use crate::number::{C64, DType};
use crate::task;
use source::{FieldExtent, PIECE};
pub use source::{Source, open};

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
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
pub struct LoadedField {
    pub links: Links,
    /// What could not be checked, as a text for the user.
    pub note: Option<String>,
}

/// A file that holds a field, complete but for the links themselves.
pub struct EncodedField {
    links: Links,
    /// Rows of each link that are stored, and whether numbers have 32 bits.
    rows: usize,
    single: bool,
    /// What stands before and after the data.
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Where in the head the check of the rest of the file goes, if it has one.
    check: Option<usize>,
}

impl EncodedField {
    /// The file of a field, with 32-bit or 64-bit numbers. All ranks come here.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn new(u: &Links, kind: FileFormat, single: bool) -> Result<EncodedField> {
        match kind {
            FileFormat::Nersc { two_rows } => nersc::encoded(u, two_rows, single),
            FileFormat::Ildg => lime::encoded(u, single),
        }
    }

    /// Writes the file. Where ranks share the field, rank 0 does, and the others [`EncodedField::help`].
    ///
    /// # Errors
    /// Those of writing, and of MPI.
    pub fn write<W: Write + Seek + ?Sized>(&self, out: &mut W) -> std::io::Result<()> {
        out.write_all(&self.head)?;
        let sites = self.links.sites();
        let together = PIECE / (4 * self.rows * 48);
        let (mut bytes, mut data) = (Vec::new(), crc32fast::Hasher::new());
        for first in (0..sites).step_by(together) {
            let numbers = first..(first + together).min(sites);
            let links = self.links.region().ask(numbers, 4, self.links.links());
            bytes.clear();
            links.map_err(std::io::Error::other)?.iter().for_each(|u| self.link(u, &mut bytes));
            data.update(&bytes);
            out.write_all(&bytes)?;
        }
        out.write_all(&self.tail)?;
        if let Some(at) = self.check {
            let mut all = crc32fast::Hasher::new();
            all.update(&nersc::without_check(&self.head));
            all.combine(&data);
            out.seek(SeekFrom::Start(at as u64))?;
            write!(out, "{:08x}", all.finalize())?;
            out.seek(SeekFrom::End(0))?;
        }
        Ok(())
    }

    /// What other ranks do while rank 0 writes: they send it their links.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn help(&self) -> Result<()> {
        self.links.region().serve(4, self.links.links())
    }

    /// Tells the others that no more links are wanted.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn let_go(&self) -> Result<()> {
        self.links.region().ask(0..0, 4, self.links.links()).map(drop)
    }

    /// The bytes of a link.
    fn link(&self, u: &Su3, out: &mut Vec<u8>) {
        link_bytes(u, self.rows, self.single, out);
    }
}

/// The bytes of a link: its first rows, as big-endian numbers.
fn link_bytes(u: &Su3, rows: usize, single: bool, out: &mut Vec<u8>) {
    for x in u.iter().take(3 * rows).flat_map(|z| [z.re, z.im]) {
        if single {
            out.extend((x as f32).to_be_bytes());
        } else {
            out.extend(x.to_be_bytes());
        }
    }
}

/// What a function makes of the number of every site of this rank and of its bytes in a file, joined over all sites of
/// all ranks: in any order.
fn over_sites<const N: usize>(
    u: &Links,
    (rows, single): (usize, bool),
    of_site: impl Fn(usize, &[u8]) -> [u32; N] + Sync,
    join: impl Fn([u32; N], [u32; N]) -> [u32; N] + Sync,
) -> Result<[u32; N]> {
    let (region, stop) = (u.region(), task::current());
    let one = |k: usize| {
        stop.heed();
        let place = region.own_place(k);
        let mut bytes = Vec::with_capacity(576);
        (0..4).for_each(|mu| link_bytes(u.at(place, mu), rows, single, &mut bytes));
        of_site(region.number(place), &bytes)
    };
    let own = (0..region.own_sites()).into_par_iter().map(one).reduce(|| [0; N], &join);
    over_ranks(region, own, join)
}

/// Such numbers joined over ranks.
fn over_ranks<const N: usize>(
    region: &Region,
    own: [u32; N],
    join: impl Fn([u32; N], [u32; N]) -> [u32; N],
) -> Result<[u32; N]> {
    let all = region.gathered(own.map(u64::from).to_vec())?;
    let of = |words: Vec<u64>| std::array::from_fn(|k| words.get(k).map_or(0, |w| *w as u32));
    Ok(all.into_iter().map(of).fold([0; N], join))
}

/// Whether a file that begins so holds a gauge field.
pub fn is_field(head: &[u8]) -> bool {
    head.starts_with(b"BEGIN_HEADER") || head.starts_with(&lime::MAGIC)
}

/// Which sites this process has of a lattice of a field's sizes.
pub type RegionOf<'a> = &'a dyn Fn([usize; 4]) -> Result<Region>;

/// The field in a file, whatever its kind, on the sites that `region` tells; with all links projected onto SU(3) if
/// that is asked for.
///
/// # Errors
/// A file of another kind, cut short, or whose checksum, plaquette or links are wrong.
pub fn decode(file: &dyn Source, region: RegionOf, reunitarise: bool) -> Result<LoadedField> {
    let length = source::length(file)?;
    let head = source::told(file, 0, length.min(16) as usize)?;
    if head.starts_with(b"BEGIN_HEADER") {
        nersc::decode(file, region, reunitarise)
    } else if head.starts_with(&lime::MAGIC) {
        lime::decode(file, region, reunitarise)
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

/// A real from its bytes.
fn real(word: &[u8], big: bool) -> f64 {
    let each = word.len();
    let mut le = [0u8; 8];
    for (k, &b) in word.iter().enumerate() {
        le[if big { each - 1 - k } else { k }] = b;
    }
    let bits = u64::from_le_bytes(le);
    if each == 4 { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) }
}

/// What kind of numbers and matrices the data of a file are, and what to make of them.
#[derive(Clone, Copy)]
struct DataForm {
    /// Rows of each link that are stored; a missing third row is computed.
    rows: usize,
    /// Whether numbers have 32 bits.
    single: bool,
    /// Whether the first byte of a number is the largest.
    big: bool,
    /// Whether rough links are projected onto SU(3) too.
    reunitarise: bool,
}

impl DataForm {
    fn real_bytes(self) -> usize {
        if self.single { 4 } else { 8 }
    }

    fn site_bytes(self) -> usize {
        4 * self.rows * 6 * self.real_bytes()
    }

    /// A link from its bytes.
    fn link(self, bytes: &[u8]) -> Su3 {
        let mut u: Su3 = Default::default();
        let mut reals = bytes.chunks_exact(self.real_bytes()).map(|word| real(word, self.big));
        for z in u.iter_mut().take(3 * self.rows) {
            *z = C64::new(reals.next().unwrap_or_default(), reals.next().unwrap_or_default());
        }
        if self.rows == 2 {
            u = with_rows([u[0], u[1], u[2]], [u[3], u[4], u[5]]);
        }
        u
    }
}

/// The links of this rank's sites, of data in the order of sites, directions, rows and columns;
/// those of the halo are any.
fn read_links(file: &dyn Source, start: u64, region: &Region, form: DataForm) -> Result<Vec<Su3>> {
    let mut links = unit_links(region)?;
    let place = FieldExtent { start, site_bytes: form.site_bytes() };
    let (own, together) = (region.own_sites(), (PIECE / place.site_bytes).max(1));
    let number = |k: usize| region.number(region.own_place(k));
    let mut k = 0;
    while k < own {
        // As many sites as stand together in the file.
        let first = number(k);
        let count =
            (1..together.min(own - k)).take_while(|more| number(k + more) == first + more).count() + 1;
        let bytes = place.read(file, first..first + count)?;
        for (k, site) in (k..).zip(bytes.chunks_exact(place.site_bytes)) {
            let at = 4 * region.own_place(k);
            let links = links[at..at + 4].iter_mut();
            links.zip(site.chunks_exact(place.site_bytes / 4)).for_each(|(u, bytes)| *u = form.link(bytes));
        }
        k += count;
    }
    Ok(links)
}

/// A field from its data, which begin at `start`.
fn links_of(file: &dyn Source, start: u64, region: Arc<Region>, form: DataForm) -> Result<LoadedField> {
    let DataForm { single, reunitarise, .. } = form;
    let mut links = region.agreed(read_links(file, start, &region, form))?;
    check_links_to(&region, &links, ROUGH).map_err(|e| Error::file(e.message().to_string()).hint(WRONG))?;
    if !reunitarise {
        check_links(&region, &links).map_err(|e| {
            let option = "links that are a little off can be projected onto SU(3)";
            Error::file(e.message().to_string()).hint(format!("{WRONG}; {option}"))
        })?;
    }
    // Links of 32 bits are unitary to 1e-7 only: they are projected, so that they are unitary to 64 bits.
    let stop = task::current();
    let difference = |u: &Su3| {
        stop.heed();
        let near = su3::reunitarised(u);
        u.iter().zip(&near).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
    };
    let off = region.largest(links.par_iter().map(difference).reduce(|| 0.0, f64::max))?;
    let note = (off > DType::of(single, true).tolerance(1e-13))
        .then(|| format!("its links are in SU(3) to {off:.0e} only, and were projected onto it"));
    if single || reunitarise || note.is_some() {
        links.par_iter_mut().for_each(|u| *u = su3::reunitarised(u));
    }
    Ok(LoadedField { links: Links::new(region, links)?, note })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::matrix::su3::off_su3;
    use crate::lattice::Lattice;

    const PLAIN: DataForm = DataForm { rows: 3, single: false, big: true, reunitarise: false };

    /// The file of a field.
    pub fn encoded_bytes(u: &Links, kind: FileFormat, single: bool) -> Vec<u8> {
        let mut file = std::io::Cursor::new(Vec::new());
        EncodedField::new(u, kind, single).unwrap().write(&mut file).unwrap();
        file.into_inner()
    }

    fn links_of(dims: [usize; 4], reals: &[f64], form: DataForm) -> Result<LoadedField> {
        let bytes: Vec<u8> = reals.iter().flat_map(|x| x.to_be_bytes()).collect();
        super::links_of(&&bytes[..], 0, Arc::new(Region::whole(dims)), form)
    }

    fn field() -> Links {
        Links::unit(&Lattice::hypercubic(&[2, 2, 2, 2]).unwrap()).unwrap().reference_field(0.4).unwrap()
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
        let (u, forced) = (field(), DataForm { reunitarise: true, ..PLAIN });
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
        for kind in
            [FileFormat::Nersc { two_rows: false }, FileFormat::Nersc { two_rows: true }, FileFormat::Ildg]
        {
            let bytes = encoded_bytes(&u, kind, true);
            for reunitarise in [false, true] {
                let loaded = decode(&&bytes[..], &|dims| Ok(Region::whole(dims)), reunitarise).unwrap();
                let off = loaded.links.links().iter().map(off_su3).fold(0.0, f64::max);
                let away = distance(&loaded.links, &u);
                assert!(off < 1e-14 && (1e-9..1e-6).contains(&away), "{kind:?}: {off} {away}");
                assert!(loaded.note.is_none());
            }
        }
    }
}
