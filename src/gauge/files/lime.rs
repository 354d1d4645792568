//! Lime containers: records of a type and bytes. ILDG files keep the links in `ildg-binary-data`, SciDAC files in
//! `scidac-binary-data`; both are sites with x fastest, directions, rows, columns, the big end first.

use super::{CUT, big_endian, dims_of, links_of, reals};
use crate::error::{Error, Result};
use crate::gauge::links::Links;

/// The first bytes of every record.
pub(super) const MAGIC: [u8; 4] = [0x45, 0x67, 0x89, 0xab];

/// Bytes of a record's head.
const HEAD: usize = 144;

/// A record.
struct Record<'a> {
    kind: String,
    data: &'a [u8],
}

/// The checksum of SciDAC files: the CRC-32 of every site, rotated by its number.
fn checksum(data: &[u8], site_bytes: usize) -> (u32, u32) {
    data.chunks_exact(site_bytes).enumerate().fold((0, 0), |(a, b), (site, bytes)| {
        let crc = crc32fast::hash(bytes);
        (a ^ crc.rotate_left((site % 29) as u32), b ^ crc.rotate_left((site % 31) as u32))
    })
}

fn push(out: &mut Vec<u8>, kind: &str, data: &[u8], begin: bool, end: bool) {
    out.extend(MAGIC);
    out.extend(1u16.to_be_bytes());
    out.extend((u16::from(begin) << 15 | u16::from(end) << 14).to_be_bytes());
    out.extend((data.len() as u64).to_be_bytes());
    let mut name = [0u8; 128];
    name[..kind.len()].copy_from_slice(kind.as_bytes());
    out.extend(name);
    out.extend(data);
    out.resize(out.len().next_multiple_of(8), 0);
}

pub(super) fn encode(u: &Links, single: bool) -> Vec<u8> {
    let mut data = Vec::with_capacity(u.sites() * 72 * if single { 4 } else { 8 });
    for z in u.links().iter().flatten() {
        big_endian(z.re, single, &mut data);
        big_endian(z.im, single, &mut data);
    }
    let (bits, [x, y, z, t]) = (if single { 32 } else { 64 }, u.dims());
    let format = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ildgFormat xmlns=\"http://www.lqcd.org/ildg\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.lqcd.org/ildg http://www.lqcd.org/ildg/filefmt.xsd\">\
         <version>1.0</version><field>su3gauge</field><precision>{bits}</precision>\
         <lx>{x}</lx><ly>{y}</ly><lz>{z}</lz><lt>{t}</lt></ildgFormat>"
    );
    let (a, b) = checksum(&data, 72 * bits / 8);
    let sums = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><scidacChecksum><version>1.0</version>\
         <suma>{a:x}</suma><sumb>{b:x}</sumb></scidacChecksum>"
    );
    let mut out = Vec::with_capacity(data.len() + 4096);
    push(&mut out, "ildg-format", format.as_bytes(), true, false);
    push(&mut out, "ildg-binary-data", &data, false, false);
    push(&mut out, "scidac-checksum", sums.as_bytes(), false, true);
    out
}

/// All records.
fn records(bytes: &[u8]) -> Result<Vec<Record<'_>>> {
    let cut = || Error::file("the file ends inside a lime record").hint(CUT);
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let head = bytes.get(at..at + HEAD).ok_or_else(cut)?;
        if head[..4] != MAGIC {
            return Err(Error::file(format!("byte {at} should begin a lime record and does not")).hint(CUT));
        }
        let mut length = [0u8; 8];
        length.copy_from_slice(&head[8..16]);
        let length = usize::try_from(u64::from_be_bytes(length)).map_err(|_| cut())?;
        let name = head[16..].split(|&b| b == 0).next().unwrap_or_default();
        let end = (at + HEAD).checked_add(length).ok_or_else(cut)?;
        let data = bytes.get(at + HEAD..end).ok_or_else(cut)?;
        found.push(Record { kind: String::from_utf8_lossy(name).into_owned(), data });
        at = end.next_multiple_of(8);
    }
    Ok(found)
}

/// The text between `<tag>` and `</tag>`.
fn tagged<'a>(xml: &'a str, tag: &str) -> Option<&'a str> {
    let start = xml.find(&format!("<{tag}>"))? + tag.len() + 2;
    let length = xml[start..].find(&format!("</{tag}>"))?;
    Some(xml[start..start + length].trim())
}

pub(super) fn decode(bytes: &[u8]) -> Result<Links> {
    let records = records(bytes)?;
    let text = |kind: &str| {
        records.iter().find(|r| r.kind == kind).map(|r| String::from_utf8_lossy(r.data).into_owned())
    };
    let data = |kind: &str| records.iter().find(|r| r.kind == kind).map(|r| r.data);
    let none = |what: &str| Error::file(format!("the file has no record {what}")).hint(CUT);
    let (dims, stated_bits, data) = if let Some(format) = text("ildg-format") {
        let size = |tag: &str| tagged(&format, tag).and_then(|v| v.parse().ok());
        let dims = dims_of([size("lx"), size("ly"), size("lz"), size("lt")], "record ildg-format")?;
        if let Some(field) = tagged(&format, "field").filter(|field| *field != "su3gauge") {
            return Err(Error::file(format!("the file holds a field of kind {field}"))
                .hint("a gauge field is of kind su3gauge"));
        }
        let bits = tagged(&format, "precision").and_then(|v| v.parse::<usize>().ok());
        (dims, bits, data("ildg-binary-data").ok_or_else(|| none("ildg-binary-data"))?)
    } else {
        let file = text("scidac-private-file-xml").ok_or_else(|| none("ildg-format"))?;
        let sizes = tagged(&file, "dims").unwrap_or_default();
        let mut sizes = sizes.split_whitespace().map(|v| v.parse().ok());
        let mut next = || sizes.next().flatten();
        let dims = dims_of([next(), next(), next(), next()], "record scidac-private-file-xml")?;
        let record = text("scidac-private-record-xml").unwrap_or_default();
        let bits = match tagged(&record, "precision") {
            Some("F") => Some(32),
            Some("D") => Some(64),
            _ => None,
        };
        (dims, bits, data("scidac-binary-data").ok_or_else(|| none("scidac-binary-data"))?)
    };
    let sites: usize = dims.iter().product();
    let bits = match stated_bits {
        Some(bits @ (32 | 64)) => bits,
        Some(bits) => {
            return Err(Error::file(format!("numbers of {bits} bits")).hint("32 and 64 are known"));
        }
        // The length says it.
        None if data.len() == sites * 72 * 4 => 32,
        None => 64,
    };
    let site_bytes = 72 * bits / 8;
    if data.len() != sites * site_bytes {
        return Err(Error::file(format!(
            "the data of a lattice of {dims:?} sites take {} bytes, and {} are there",
            sites * site_bytes,
            data.len()
        ))
        .hint(CUT));
    }
    if let Some(stated) = text("scidac-checksum") {
        let hex = |tag: &str| {
            tagged(&stated, tag).and_then(|v| u32::from_str_radix(v.trim_start_matches("0x"), 16).ok())
        };
        let (a, b) = checksum(data, site_bytes);
        if (hex("suma"), hex("sumb")) != (Some(a), Some(b)) {
            return Err(Error::file(format!(
                "the checksums of the data are {a:x} and {b:x}, and the record scidac-checksum says otherwise"
            ))
            .hint("the file is damaged: fetch it again"));
        }
    }
    let single = bits == 32;
    links_of(dims, &reals(data, single, true), 3, single)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of CRC-32 (ISO 3309), which SciDAC files use.
    #[test]
    fn the_crc_is_that_of_zip() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
        assert_eq!(checksum(b"123456789", 9), (0xcbf4_3926, 0xcbf4_3926));
    }
}
