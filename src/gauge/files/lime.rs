//! Lime containers: records of a type and bytes. ILDG files keep the links in `ildg-binary-data`, SciDAC files in
//! `scidac-binary-data`; both store sites with x fastest, directions, rows, columns, big-endian.

use std::sync::Arc;

use super::source::{self, FieldExtent, Source};
use super::{
    CUT, DataForm, EncodedField, LoadedField, RegionOf, boundary_words, check_length, dims_of, links_of,
    over_ranks, over_sites, signs_of,
};
use crate::backend::Region;
use crate::error::{Error, Result};
use crate::gauge::links::Links;

/// The first bytes of every record.
pub(super) const MAGIC: [u8; 4] = [0x45, 0x67, 0x89, 0xab];

/// Bytes of a record's head.
const HEAD: u64 = 144;

/// Our own record of what ILDG has no place for: boundaries and heatbath sweeps. Other programs skip it.
const OWN: &str = "umklapp-field";

/// The logical file name under which ILDG's catalogues list a field. This one is not listed, but Grid reads no file
/// without a name.
const NAME: &str = "lfn://unregistered";

/// Bytes of a record that is no field: longer ones are none of those that are read.
const TEXT: u64 = 1 << 20;

struct LimeRecord {
    kind: String,
    /// Where its data begin, and how many bytes they are.
    at: u64,
    length: u64,
    /// Whether it is the last one of its message.
    last: bool,
}

/// The checksum of SciDAC files for a site: the CRC-32 of its bytes, rotated by its number.
fn checksum(site: usize, bytes: &[u8]) -> [u32; 2] {
    let crc = crc32fast::hash(bytes);
    [crc.rotate_left((site % 29) as u32), crc.rotate_left((site % 31) as u32)]
}

/// The checksums of two sets of sites together.
fn both([a, b]: [u32; 2], [c, d]: [u32; 2]) -> [u32; 2] {
    [a ^ c, b ^ d]
}

/// The head of a record.
fn head_of(kind: &str, length: usize, begin: bool, end: bool) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(1u16.to_be_bytes());
    out.extend((u16::from(begin) << 15 | u16::from(end) << 14).to_be_bytes());
    out.extend((length as u64).to_be_bytes());
    let mut name = [0u8; 128];
    name[..kind.len()].copy_from_slice(kind.as_bytes());
    out.extend(name);
    out
}

/// A record with its data, filled up to whole words.
fn push(out: &mut Vec<u8>, kind: &str, data: &[u8], begin: bool, end: bool) {
    out.extend(head_of(kind, data.len(), begin, end));
    out.extend(data);
    out.resize(out.len() + data.len().next_multiple_of(8) - data.len(), 0);
}

pub(super) fn encoded(u: &Links, single: bool) -> Result<EncodedField> {
    let (bits, [x, y, z, t]) = (if single { 32 } else { 64 }, u.dims());
    let format = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ildgFormat xmlns=\"http://www.lqcd.org/ildg\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.lqcd.org/ildg http://www.lqcd.org/ildg/filefmt.xsd\">\
         <version>1.0</version><field>su3gauge</field><precision>{bits}</precision>\
         <lx>{x}</lx><ly>{y}</ly><lz>{z}</lz><lt>{t}</lt></ildgFormat>"
    );
    let [a, b] = over_sites(u, (3, single), checksum, both)?;
    let sums = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><scidacChecksum><version>1.0</version>\
         <suma>{a:x}</suma><sumb>{b:x}</sumb></scidacChecksum>"
    );
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    push(&mut head, "ildg-format", format.as_bytes(), true, false);
    // Sites have whole words, so that nothing fills this record up.
    head.extend(head_of("ildg-binary-data", u.sites() * 72 * bits / 8, false, false));
    push(&mut tail, "ildg-data-lfn", NAME.as_bytes(), false, false);
    let own = u.sign().contains(&-1.0) || u.sweeps() > 0;
    push(&mut tail, "scidac-checksum", sums.as_bytes(), false, !own);
    if own {
        let (words, sweeps) = (boundary_words(u).join(" "), u.sweeps());
        let text = format!("<boundary>{words}</boundary><sweeps>{sweeps}</sweeps>");
        push(&mut tail, OWN, text.as_bytes(), false, true);
    }
    Ok(EncodedField { links: u.clone(), rows: 3, single, head, tail, check: None })
}

/// The records of a file, as rank 0 finds them.
fn records(file: &dyn Source) -> Result<Vec<LimeRecord>> {
    let cut = || Error::file("the file ends inside a lime record").hint(CUT);
    let size = source::length(file)?;
    let (mut found, mut at) = (Vec::new(), 0u64);
    while at < size {
        let head = source::told(file, at, (size - at).min(HEAD) as usize)?;
        // Files from tapes are padded with zeros.
        if head.iter().all(|b| *b == 0) && source::only_zeros(file, at)? {
            break;
        }
        if (head.len() as u64) < HEAD {
            return Err(cut());
        }
        if head[..4] != MAGIC {
            return Err(Error::file(format!("byte {at} should begin a lime record and does not"))
                .hint("the file is damaged, or something was added to it"));
        }
        let mut length = [0u8; 8];
        length.copy_from_slice(&head[8..16]);
        let length = u64::from_be_bytes(length);
        let name = head[16..].split(|&b| b == 0).next().unwrap_or_default();
        let begin = at + HEAD;
        let end = begin.checked_add(length).filter(|end| *end <= size).ok_or_else(cut)?;
        let last = head[6] & 0x40 != 0;
        found.push(LimeRecord { kind: String::from_utf8_lossy(name).into_owned(), at: begin, length, last });
        at = end.next_multiple_of(8);
    }
    Ok(found)
}

/// The text of the first element of a name, in whatever namespace and with whatever attributes;
/// comments are no elements.
fn tagged<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = xml;
    loop {
        rest = &rest[rest.find('<')? + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = &comment[comment.find("-->")? + 3..];
            continue;
        }
        let mut quote = None;
        let end = rest.find(|c| {
            match quote {
                Some(open) if c == open => quote = None,
                None if matches!(c, '"' | '\'') => quote = Some(c),
                _ => {}
            }
            c == '>' && quote.is_none()
        })?;
        let (tag, text) = (&rest[..end], &rest[end + 1..]);
        let word = tag.split(char::is_whitespace).next()?;
        if word.rsplit(':').next() == Some(name) && !tag.starts_with('/') && !tag.ends_with('/') {
            return Some(text[..text.find('<')?].trim());
        }
        rest = text;
    }
}

/// Precision in bits and sizes, as SciDAC's own records tell them.
fn scidac(file: &str, record: &str) -> Result<([usize; 4], Option<usize>)> {
    let what = "record scidac-private-file-xml";
    if let Some(format) = tagged(file, "volfmt").filter(|format| *format != "0") {
        return Err(Error::file(format!("the file is a part of a field (volfmt {format})"))
            .hint("join the parts into a single file with the program that wrote them"));
    }
    let dims = tagged(file, "dims").unwrap_or_default();
    let dims = dims_of(dims.split_whitespace().map(|v| v.parse().ok()), what)?;
    let bits = match tagged(record, "precision") {
        Some("F") => Some(32),
        Some("D") => Some(64),
        _ => None,
    };
    // Programs name the type of the data differently. The number of bytes is the same for all.
    for (name, wanted) in [("datacount", Some(4)), ("typesize", bits.map(|bits| 18 * bits / 8))] {
        let stated = tagged(record, name);
        if let (Some(stated), Some(wanted)) = (stated, wanted)
            && stated.parse() != Ok(wanted)
        {
            let kind = tagged(record, "datatype").unwrap_or("unnamed");
            return Err(Error::file(format!(
                "the data of type {kind} have a {name} of {stated}, which is {wanted} for links"
            ))
            .hint("a gauge field has four colour matrices per site"));
        }
    }
    Ok((dims, bits))
}

/// The checksums of the data of a file.
fn checksums(file: &dyn Source, place: FieldExtent, region: &Region) -> Result<[u32; 2]> {
    let mut sums = [0; 2];
    place.scan(file, region, |first, bytes| {
        for (site, bytes) in (first..).zip(bytes.chunks_exact(place.site_bytes)) {
            sums = both(sums, checksum(site, bytes));
        }
    })?;
    over_ranks(region, sums, both)
}

pub(super) fn decode(file: &dyn Source, region: RegionOf, reunitarise: bool) -> Result<LoadedField> {
    let records = records(file)?;
    let data = |kind: &str| records.iter().find(|r| r.kind == kind);
    let text = |kind: &str| -> Result<Option<String>> {
        let Some(record) = data(kind) else { return Ok(None) };
        if record.length > TEXT {
            return Err(Error::file(format!("the record {kind} has {} bytes", record.length))
                .hint("the file is damaged, or written by another convention"));
        }
        let bytes = source::told(file, record.at, record.length as usize)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    };
    let none = |what: &str| Error::file(format!("the file has no record {what}")).hint(CUT);
    let (dims, stated_bits, data) = if let Some(format) = text("ildg-format")? {
        let size = |tag: &str| tagged(&format, tag).and_then(|v| v.parse().ok());
        let dims = dims_of(["lx", "ly", "lz", "lt"].map(size), "record ildg-format")?;
        if let Some(field) = tagged(&format, "field").filter(|field| *field != "su3gauge") {
            return Err(Error::file(format!("the file holds a field of kind {field}"))
                .hint("a gauge field is of kind su3gauge"));
        }
        let bits = tagged(&format, "precision").and_then(|v| v.parse::<usize>().ok());
        (dims, bits, data("ildg-binary-data").ok_or_else(|| none("ildg-binary-data"))?)
    } else {
        let file = text("scidac-private-file-xml")?.ok_or_else(|| none("ildg-format"))?;
        let (dims, bits) = scidac(&file, &text("scidac-private-record-xml")?.unwrap_or_default())?;
        (dims, bits, data("scidac-binary-data").ok_or_else(|| none("scidac-binary-data"))?)
    };
    let sites: usize = dims.iter().product();
    let bits = match stated_bits {
        Some(bits @ (32 | 64)) => bits,
        Some(bits) => {
            return Err(Error::file(format!("numbers of {bits} bits")).hint("32 and 64 are known"));
        }
        // Where no record tells the precision, the length of the data does.
        None if data.length == sites as u64 * 72 * 4 => 32,
        None => 64,
    };
    let form = DataForm { rows: 3, single: bits == 32, big: true, reunitarise };
    let place = FieldExtent { start: data.at, site_bytes: form.site_bytes() };
    check_length(dims, sites * place.site_bytes, data.length as usize)?;
    let region = Arc::new(region(dims)?);
    let mut doubts: Vec<String> = Vec::new();
    if let Some(stated) = text("scidac-checksum")? {
        let hex = |tag: &str| {
            tagged(&stated, tag).and_then(|v| u32::from_str_radix(v.trim_start_matches("0x"), 16).ok())
        };
        let [a, b] = checksums(file, place, &region)?;
        if (hex("suma"), hex("sumb")) != (Some(a), Some(b)) {
            return Err(Error::file(format!(
                "the checksums of the data are {a:x} and {b:x}, and the record scidac-checksum says otherwise"
            ))
            .hint("the file is damaged: fetch it again"));
        }
    } else {
        doubts.push("it has no checksum, so that nobody knows whether its data are whole".into());
    }
    if !records.last().is_some_and(|r| r.last) {
        doubts.push("its last message does not end: it may have been cut short".into());
    }
    let LoadedField { mut links, note } = links_of(file, place.start, region, form)?;
    doubts.extend(note);
    if let Some(own) = text(OWN)? {
        let words = tagged(&own, "boundary").unwrap_or_default();
        let sweeps = tagged(&own, "sweeps").and_then(|v| v.parse().ok()).unwrap_or_default();
        links = links.with_sign(signs_of(words.split_whitespace())?).with_sweeps(sweeps);
    }
    Ok(LoadedField { links, note: (!doubts.is_empty()).then(|| doubts.join("; ")) })
}

#[cfg(test)]
mod tests {
    use super::super::FileFormat;
    use super::super::tests::encoded_bytes;
    use super::*;
    use crate::lattice::Lattice;

    /// The check value of CRC-32 (ISO 3309), which SciDAC files use.
    #[test]
    fn the_crc_is_that_of_zip() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
        assert_eq!(checksum(0, b"123456789"), [0xcbf4_3926; 2]);
    }

    fn field() -> Links {
        let lattice = Lattice::hypercubic(&[2, 3, 2, 4]).unwrap();
        Links::unit(&lattice).unwrap().reference_field(0.4).unwrap()
    }

    /// A file of the records given, the last of which ends the message.
    fn file(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (k, (kind, data)) in parts.iter().enumerate() {
            push(&mut out, kind, data, k == 0, k + 1 == parts.len());
        }
        out
    }

    fn encode(u: &Links, single: bool) -> Vec<u8> {
        encoded_bytes(u, FileFormat::Ildg, single)
    }

    /// Kinds and data of the records of a file.
    fn parts(bytes: &[u8]) -> Vec<(String, &[u8])> {
        let data = |r: &LimeRecord| &bytes[r.at as usize..(r.at + r.length) as usize];
        records(&bytes).unwrap().into_iter().map(|r| (r.kind.clone(), data(&r))).collect()
    }

    /// The data of the field and the record of their checksums.
    fn data_and_sums() -> (Vec<u8>, Vec<u8>) {
        let whole = encode(&field(), false);
        let of = |kind: &str| parts(&whole).iter().find(|r| r.0 == kind).unwrap().1.to_vec();
        (of("ildg-binary-data"), of("scidac-checksum"))
    }

    fn decode(bytes: &[u8]) -> Result<LoadedField> {
        super::decode(&bytes, &|dims| Ok(Region::whole(dims)), false)
    }

    fn why(bytes: &[u8]) -> String {
        decode(bytes).unwrap_err().message().to_string()
    }

    /// Grid (IldgIO.h) refuses files without the record `ildg-data-lfn`; others write none.
    #[test]
    fn a_logical_file_name_is_there() {
        let whole = encode(&field(), false);
        let known = parts(&whole);
        let name = known.iter().find(|r| r.0 == "ildg-data-lfn").unwrap();
        assert!(name.1.starts_with(b"lfn://"));
        let without: Vec<_> =
            known.iter().filter(|r| r.0 != "ildg-data-lfn").map(|r| (r.0.as_str(), r.1)).collect();
        for bytes in [whole.clone(), file(&without)] {
            let loaded = decode(&bytes).unwrap();
            assert_eq!((loaded.links, loaded.note), (field(), None));
        }
    }

    /// What other writers of XML do: attributes, namespaces, comments, lines.
    #[test]
    fn formats_of_other_programs_are_read() {
        let (data, sums) = data_and_sums();
        for format in [
            "<ildgFormat>\n<lx unit=\"a > b\">2</lx><ly> 3\n</ly><lz>2</lz><lt>4</lt></ildgFormat>",
            "<i:ildgFormat><i:lx>2</i:lx><i:ly>3</i:ly><i:lz>2</i:lz><i:lt>4</i:lt></i:ildgFormat>",
            "<ildgFormat><!-- <lx>9</lx> --><lx/><lx >2</lx><ly>3</ly><lz>2</lz><lt>4</lt></ildgFormat>",
        ] {
            let bytes = file(&[
                ("ildg-format", format.as_bytes()),
                ("ildg-binary-data", &data),
                ("scidac-checksum", &sums),
            ]);
            let loaded = decode(&bytes).unwrap();
            assert_eq!((loaded.links, loaded.note), (field(), None), "{format}");
        }
        let bad = file(&[("ildg-format", b"<lx>2</lx><ly>3</ly><lz>2</lz><!-- <lt>4</lt> -->")]);
        assert!(why(&bad).contains("four sizes"));
    }

    #[test]
    fn scidac_files_hold_four_matrices_a_site() {
        let (data, sums) = data_and_sums();
        let scidac = |file_xml: &str, record_xml: &str| {
            decode(&file(&[
                ("scidac-private-file-xml", file_xml.as_bytes()),
                ("scidac-private-record-xml", record_xml.as_bytes()),
                ("scidac-binary-data", &data),
                ("scidac-checksum", &sums),
            ]))
        };
        let (sizes, links) = (
            "<spacetime>4</spacetime><dims>2 3 2 4 </dims><volfmt>0</volfmt>",
            "<precision>D</precision><typesize>144</typesize><datacount>4</datacount>",
        );
        assert_eq!(scidac(sizes, links).unwrap().links, field());
        for (file_xml, record_xml, word) in [
            ("<dims>2 3 2 4 1</dims>", links, "four sizes"),
            ("<dims>2 3 8</dims>", links, "four sizes"),
            ("<dims>2 3 2 4</dims><volfmt>1</volfmt>", links, "a part of a field"),
            (
                sizes,
                "<precision>D</precision><typesize>192</typesize><datacount>3</datacount>",
                "datacount of 3",
            ),
            (
                sizes,
                "<precision>D</precision><typesize>72</typesize><datacount>4</datacount>",
                "typesize of 72",
            ),
        ] {
            let message = scidac(file_xml, record_xml).unwrap_err().message().to_string();
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn files_that_may_be_cut_are_told_of() {
        let whole = encode(&field(), false);
        assert_eq!(decode(&whole).unwrap().note, None);
        // Cut where the record of the checksums begins.
        let end = whole.windows(4).rposition(|w| w == MAGIC).unwrap();
        let note = decode(&whole[..end]).unwrap().note.unwrap();
        assert!(note.contains("no checksum") && note.contains("cut short"), "{note}");
        // Padded by a tape, and followed by something else.
        let mut padded = whole.clone();
        padded.resize(whole.len() + 1000, 0);
        assert_eq!(decode(&padded).unwrap().links, field());
        padded.push(1);
        assert!(why(&padded).contains("should begin a lime record"));
    }

    #[test]
    fn boundaries_and_sweeps_come_back() {
        let turned = field().with_sign([1.0, 1.0, 1.0, -1.0]);
        for u in [&turned, &turned.with_sweeps(7), &field().with_sweeps(7)] {
            assert_eq!(&decode(&encode(u, false)).unwrap().links, u);
        }
        let kinds = |u: &Links| parts(&encode(u, true)).len();
        assert_eq!((kinds(&field()), kinds(&turned)), (4, 5));
    }
}
