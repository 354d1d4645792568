//! The NERSC archive format: a header of `KEY = VALUE` lines, then the links site by site, x fastest.

use std::collections::BTreeMap;

use super::{
    CUT, Form, Loaded, big_endian, boundary_words, check_length, dims_of, links_of, reals, signs_of,
};
use crate::error::{Error, Result};
use crate::gauge::links::Links;
use crate::gauge::observe::{plaquette, sum};
use crate::gauge::su3;

/// The mean of Re Tr/3 of the links.
fn link_trace(u: &Links) -> f64 {
    let at = |x: usize| (0..4).map(|mu| su3::trace(u.at(x, mu))).sum();
    sum(u.sites(), at).re / (12.0 * u.sites() as f64)
}

/// The sum of all 32-bit words.
fn checksum(data: &[u8], big: bool) -> u32 {
    let word = |b: &[u8]| {
        let b: [u8; 4] = [b[0], b[1], b[2], b[3]];
        if big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) }
    };
    data.chunks_exact(4).fold(0u32, |sum, b| sum.wrapping_add(word(b)))
}

/// A header line of our own: the CRC-32 of all the rest of the file. The format's own checksum is a sum, which does
/// not change when words change places. Other programs skip keys that they do not know.
const CRC: &str = "CRC32 = ";

fn crc(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// Compares the file with the check in its header, if it has one; `data` lies behind the header.
fn check_crc(head: &[u8], data: &[u8]) -> Result<()> {
    let line = format!("\n{CRC}");
    let Some(at) = head.windows(line.len()).position(|w| w == line.as_bytes()) else { return Ok(()) };
    let (before, rest) = head.split_at(at + 1);
    let (stated, behind) = rest.split_at(rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |n| n + 1));
    let stated = String::from_utf8_lossy(&stated[CRC.len()..]);
    let found = format!("{:08x}", crc(&[before, behind, data]));
    if stated.trim() == found {
        return Ok(());
    }
    let message = format!("its check is {found}, and the header says {}", stated.trim());
    Err(Error::file(message).hint("the file is damaged: fetch it again"))
}

pub(super) fn encode(u: &Links, two_rows: bool, single: bool) -> Vec<u8> {
    let mut data = Vec::new();
    for link in u.links() {
        for z in link.iter().take(if two_rows { 6 } else { 9 }) {
            big_endian(z.re, single, &mut data);
            big_endian(z.im, single, &mut data);
        }
    }
    let mut head = String::from("BEGIN_HEADER\nHDR_VERSION = 1.0\n");
    head += if two_rows { "DATATYPE = 4D_SU3_GAUGE\n" } else { "DATATYPE = 4D_SU3_GAUGE_3x3\n" };
    head += "STORAGE_FORMAT = 1.0\n";
    for (d, n) in u.dims().iter().enumerate() {
        head += &format!("DIMENSION_{} = {n}\n", d + 1);
    }
    head += &format!("LINK_TRACE = {:.12}\nPLAQUETTE = {:.12}\n", link_trace(u), plaquette(u));
    for (d, word) in boundary_words(u).into_iter().enumerate() {
        head += &format!("BOUNDARY_{} = {word}\n", d + 1);
    }
    head += &format!("CHECKSUM = {:x}\n", checksum(&data, true));
    head += &format!("ENSEMBLE_ID = none\nENSEMBLE_LABEL = none\nSEQUENCE_NUMBER = {}\n", u.sweeps());
    head += &format!("FLOATING_POINT = {}\n", if single { "IEEE32BIG" } else { "IEEE64BIG" });
    let end = "END_HEADER\n";
    head += &format!("{CRC}{:08x}\n{end}", crc(&[head.as_bytes(), end.as_bytes(), &data]));
    let mut out = head.into_bytes();
    out.extend(data);
    out
}

pub(super) fn decode(bytes: &[u8], reunitarise: bool) -> Result<Loaded> {
    let limit = bytes.len().min(1 << 16);
    // Lines end in a line feed, or in carriage return and line feed.
    let ends = [&b"END_HEADER\n"[..], b"END_HEADER\r\n"];
    let found = ends.iter().filter_map(|end| {
        bytes[..limit].windows(end.len()).position(|w| w == *end).map(|at| (at, at + end.len()))
    });
    let (at, data) = found.min().ok_or_else(|| Error::file("the header has no END_HEADER").hint(CUT))?;
    let (header, data) = bytes.split_at(data);
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
    let each = if single { 4 } else { 8 };
    let wanted = dims.iter().product::<usize>() * 4 * rows * 6 * each;
    // Tapes fill files up with zeros.
    let padded = data.iter().skip(wanted).all(|b| *b == 0);
    let data = if padded { &data[..wanted.min(data.len())] } else { data };
    check_length(dims, wanted, data.len())?;
    let stated = need("CHECKSUM")?;
    let stated_value = u32::from_str_radix(stated.trim_start_matches("0x"), 16);
    let fits = |big: &&bool| stated_value == Ok(checksum(data, **big));
    let big = *orders.iter().find(fits).ok_or_else(|| {
        let found = checksum(data, orders[0]);
        Error::file(format!("the checksum of the data is {found:x}, and the header says {stated}"))
            .hint("the file is damaged: fetch it again")
    })?;
    let form = Form { rows, single, reunitarise };
    let Loaded { links: u, note } = links_of(dims, &reals(data, single, big), form)?;
    // The checksum may be right although the data are in another order: the plaquette shows that.
    let eps = 1e-5;
    for (key, value) in [("PLAQUETTE", plaquette(&u)), ("LINK_TRACE", link_trace(&u))] {
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
    check_crc(header, data)?;
    Ok(Loaded { links, note })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::Lattice;

    fn field() -> Links {
        let lattice = Lattice::hypercubic(&[2, 3, 2, 4]).unwrap();
        Links::unit(&lattice).unwrap().reference_field(0.4)
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
