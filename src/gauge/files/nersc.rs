//! The NERSC archive format: a header of `KEY = VALUE` lines, then the links site by site, x fastest.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::source::{self, FieldExtent, Source};
use super::{
    CUT, DataForm, EncodedField, LoadedField, RegionOf, boundary_words, check_length, dims_of, links_of,
    over_ranks, over_sites, signs_of,
};
use crate::backend::Region;
use crate::error::{Error, Result};
use crate::gauge::links::Links;
use crate::gauge::observe::plaquette;
use crate::gauge::su3;
use crate::gauge::sums::sums;

/// The mean of Re Tr/3 of the links.
fn link_trace(u: &Links) -> Result<f64> {
    let [total] = sums(u, |x| [(0..4).map(|mu| su3::trace(u.at(x, mu)).re).sum()])?;
    Ok(total / (12.0 * u.sites() as f64))
}

/// The sum of all 32-bit words.
fn checksum(data: &[u8], big: bool) -> u32 {
    let word = |b: &[u8]| {
        let b: [u8; 4] = [b[0], b[1], b[2], b[3]];
        if big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) }
    };
    data.chunks_exact(4).fold(0u32, |sum, b| sum.wrapping_add(word(b)))
}

fn added<const N: usize>(a: [u32; N], b: [u32; N]) -> [u32; N] {
    std::array::from_fn(|k| a[k].wrapping_add(b[k]))
}

/// A header line of our own: the CRC-32 of all the rest of the file. The format's own checksum is a sum, which does
/// not change when words change places. Other programs skip keys that they do not know.
const CRC: &str = "CRC32 = ";

/// What precedes the line with the check, what it says, and what follows it, if a header has one.
fn around_check(head: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let line = format!("\n{CRC}");
    let at = head.windows(line.len()).position(|w| w == line.as_bytes())?;
    let (before, rest) = head.split_at(at + 1);
    let (stated, behind) = rest.split_at(rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |n| n + 1));
    Some((before, &stated[CRC.len()..], behind))
}

/// The header without the line of its check.
pub(super) fn without_check(head: &[u8]) -> Vec<u8> {
    around_check(head).map_or_else(|| head.to_vec(), |(before, _, behind)| [before, behind].concat())
}

/// Compares the file with the check in its header, if it has one.
fn check_crc(head: &[u8], data: &crc32fast::Hasher) -> Result<()> {
    let Some((_, stated, _)) = around_check(head) else { return Ok(()) };
    let stated = String::from_utf8_lossy(stated);
    let mut all = crc32fast::Hasher::new();
    all.update(&without_check(head));
    all.combine(data);
    let found = format!("{:08x}", all.finalize());
    if stated.trim() == found {
        return Ok(());
    }
    let message = format!("its check is {found}, and the header says {}", stated.trim());
    Err(Error::file(message).hint("the file is damaged: fetch it again"))
}

/// The sums of the words of the data in both orders of bytes, and the check of the data.
fn checks(file: &dyn Source, place: FieldExtent, region: &Region) -> Result<([u32; 2], crc32fast::Hasher)> {
    let (mut sums, mut crc, mut length) = ([0; 2], crc32fast::Hasher::new(), 0u64);
    place.scan(file, region, |_, bytes| {
        sums = added(sums, [checksum(bytes, true), checksum(bytes, false)]);
        crc.update(bytes);
        length += bytes.len() as u64;
    })?;
    let mut all = crc32fast::Hasher::new();
    for part in region.gathered(vec![crc.finalize().into(), length])? {
        if let [crc, length] = part[..] {
            all.combine(&crc32fast::Hasher::new_with_initial_len(crc as u32, length));
        }
    }
    Ok((over_ranks(region, sums, added)?, all))
}

pub(super) fn encoded(u: &Links, two_rows: bool, single: bool) -> Result<EncodedField> {
    let rows = if two_rows { 2 } else { 3 };
    let [sum] = over_sites(u, (rows, single), |_, bytes| [checksum(bytes, true)], added)?;
    let mut head = String::from("BEGIN_HEADER\nHDR_VERSION = 1.0\n");
    head += if two_rows { "DATATYPE = 4D_SU3_GAUGE\n" } else { "DATATYPE = 4D_SU3_GAUGE_3x3\n" };
    head += "STORAGE_FORMAT = 1.0\n";
    for (d, n) in u.dims().iter().enumerate() {
        head += &format!("DIMENSION_{} = {n}\n", d + 1);
    }
    head += &format!("LINK_TRACE = {:.12}\nPLAQUETTE = {:.12}\n", link_trace(u)?, plaquette(u)?);
    for (d, word) in boundary_words(u).into_iter().enumerate() {
        head += &format!("BOUNDARY_{} = {word}\n", d + 1);
    }
    head += &format!("CHECKSUM = {sum:x}\n");
    head += &format!("ENSEMBLE_ID = none\nENSEMBLE_LABEL = none\nSEQUENCE_NUMBER = {}\n", u.sweeps());
    head += &format!("FLOATING_POINT = {}\n", if single { "IEEE32BIG" } else { "IEEE64BIG" });
    head += CRC;
    // The check is known when the data have been written.
    let check = Some(head.len());
    head += "00000000\nEND_HEADER\n";
    Ok(EncodedField { links: u.clone(), rows, single, head: head.into_bytes(), tail: Vec::new(), check })
}

pub(super) fn decode(file: &dyn Source, region: RegionOf, reunitarise: bool) -> Result<LoadedField> {
    let length = source::length(file)?;
    let bytes = source::told(file, 0, length.min(1 << 16) as usize)?;
    // Lines end in a line feed, or in carriage return and line feed.
    let ends = [&b"END_HEADER\n"[..], b"END_HEADER\r\n"];
    let found = ends
        .iter()
        .filter_map(|end| bytes.windows(end.len()).position(|w| w == *end).map(|at| (at, at + end.len())));
    let (at, start) = found.min().ok_or_else(|| Error::file("the header has no END_HEADER").hint(CUT))?;
    let header = &bytes[..start];
    let head = String::from_utf8_lossy(&bytes[..at]);
    let keys: BTreeMap<&str, &str> =
        head.lines().filter_map(|l| l.split_once('=')).map(|(k, v)| (k.trim(), v.trim())).collect();
    let need = |key: &str| {
        keys.get(key).copied().ok_or_else(|| Error::file(format!("the header has no {key}")).hint(CUT))
    };
    let size = |d: usize| keys.get(format!("DIMENSION_{d}").as_str()).and_then(|v| v.parse().ok());
    let dims = dims_of((1..5).map(size), "header")?;
    let rows = match need("DATATYPE")? {
        "4D_SU3_GAUGE" => 2,
        "4D_SU3_GAUGE_3x3" | "4D_SU3_GAUGE_3X3" => 3,
        other => {
            return Err(Error::file(format!("data of type {other}"))
                .hint("4D_SU3_GAUGE and 4D_SU3_GAUGE_3x3 are known"));
        }
    };
    // Programs disagree on the byte order of the plain names: the checksum tells which one it is.
    let (single, orders) = match need("FLOATING_POINT")? {
        "IEEE32BIG" => (true, &[true][..]),
        "IEEE64BIG" => (false, &[true][..]),
        "IEEE32LITTLE" => (true, &[false][..]),
        "IEEE64LITTLE" => (false, &[false][..]),
        "IEEE32" => (true, &[true, false][..]),
        "IEEE64" => (false, &[true, false][..]),
        other => {
            return Err(Error::file(format!("numbers of kind {other}"))
                .hint("IEEE32, IEEE64, big and little, are known"));
        }
    };
    let form = DataForm { rows, single, big: true, reunitarise };
    let wanted = dims.iter().product::<usize>() * form.site_bytes();
    let there = (length - start as u64) as usize;
    // Tapes fill files up with zeros.
    let padded = there > wanted && source::only_zeros(file, (start + wanted) as u64)?;
    check_length(dims, wanted, if padded { wanted } else { there })?;
    let stated = need("CHECKSUM")?;
    let region = Arc::new(region(dims)?);
    let place = FieldExtent { start: start as u64, site_bytes: form.site_bytes() };
    let ([sum_big, sum_little], data) = checks(file, place, &region)?;
    let sum = |big: bool| if big { sum_big } else { sum_little };
    let stated_value = u32::from_str_radix(stated.trim_start_matches("0x"), 16);
    let big = *orders.iter().find(|big| stated_value == Ok(sum(**big))).ok_or_else(|| {
        let found = sum(orders[0]);
        Error::file(format!("the checksum of the data is {found:x}, and the header says {stated}"))
            .hint("the file is damaged: fetch it again")
    })?;
    let LoadedField { links: u, note } = links_of(file, place.start, region, DataForm { big, ..form })?;
    // The checksum may be right although the data are in another order: the plaquette shows that.
    let eps = 1e-5;
    for (key, value) in [("PLAQUETTE", plaquette(&u)?), ("LINK_TRACE", link_trace(&u)?)] {
        let Some(stated) = keys.get(key) else { continue };
        // The comparison is written so that NaN fails it too.
        if !stated.parse().is_ok_and(|stated: f64| (stated - value).abs() < eps) {
            return Err(Error::file(format!(
                "{key} of the links is {value:.9}, and the header says {stated}"
            ))
            .hint("the file is damaged, or written by another convention"));
        }
    }
    let boundary = |d: usize| keys.get(format!("BOUNDARY_{d}").as_str()).copied().unwrap_or("PERIODIC");
    let sweeps = keys.get("SEQUENCE_NUMBER").and_then(|v| v.parse().ok()).unwrap_or_default();
    let links = u.with_sign(signs_of((1..5).map(boundary))?).with_sweeps(sweeps);
    // Last, because the checks before say more about what is damaged.
    check_crc(header, &data)?;
    Ok(LoadedField { links, note })
}

#[cfg(test)]
mod tests {
    use super::super::FileFormat;
    use super::super::tests::encoded_bytes;
    use super::*;
    use crate::lattice::Lattice;

    fn encode(u: &Links, two_rows: bool, single: bool) -> Vec<u8> {
        encoded_bytes(u, FileFormat::Nersc { two_rows }, single)
    }

    fn decode(bytes: &[u8], reunitarise: bool) -> Result<LoadedField> {
        super::decode(&bytes, &|dims| Ok(Region::whole(dims)), reunitarise)
    }

    fn field() -> Links {
        let lattice = Lattice::hypercubic(&[2, 3, 2, 4]).unwrap();
        Links::unit(&lattice).unwrap().reference_field(0.4).unwrap()
    }

    /// The header, as other programs write it, and the data of the field's file.
    fn parts() -> (String, Vec<u8>) {
        let mut bytes = encode(&field(), false, false);
        let end = "END_HEADER\n";
        let data = bytes.windows(end.len()).position(|w| w == end.as_bytes()).unwrap() + end.len();
        let data = bytes.split_off(data);
        let head = String::from_utf8(bytes).unwrap();
        (head.split_inclusive('\n').filter(|line| !line.starts_with(CRC)).collect(), data)
    }

    /// The checksum adds whole words, so that both orders have the same.
    #[test]
    fn plain_names_of_numbers_mean_either_order() {
        let (head, big) = parts();
        let little: Vec<u8> = big.chunks(8).flat_map(|x| x.iter().rev().copied()).collect();
        for (kind, data) in [("IEEE64", &big), ("IEEE64", &little), ("IEEE64LITTLE", &little)] {
            let head = head.replace("IEEE64BIG", kind);
            assert_eq!(decode(&[head.as_bytes(), data].concat(), false).unwrap().links, field(), "{kind}");
        }
        let head = head.replace("IEEE64BIG", "IEEE64LITTLE");
        assert!(decode(&[head.as_bytes(), &big].concat(), false).is_err());
    }

    /// Words that change places leave the format's own checksum as it is.
    #[test]
    fn words_that_changed_places_are_found() {
        let mut bytes = encode(&field(), false, false);
        let n = bytes.len();
        assert!(decode(&bytes, false).is_ok());
        bytes.swap(n - 9, n - 17);
        let e = decode(&bytes, false).unwrap_err();
        assert!(e.message().contains("check is"), "{e}");
    }

    #[test]
    fn zeros_may_follow_the_links() {
        let (head, data) = parts();
        assert_eq!(decode(&[head.as_bytes(), &data, &[0; 100]].concat(), false).unwrap().links, field());
        let e = decode(&[head.as_bytes(), &data, b"junk"].concat(), false).unwrap_err();
        assert!(e.message().contains("bytes, and"), "{e}");
    }
}
