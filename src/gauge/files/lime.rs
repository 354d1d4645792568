//! Lime containers: records of a type and bytes. ILDG files keep the links in `ildg-binary-data`, SciDAC files in
//! `scidac-binary-data`; both store sites with x fastest, directions, rows, columns, big-endian.

use super::{
    CUT, Form, Loaded, big_endian, boundary_words, check_length, dims_of, links_of, reals, signs_of,
};
use crate::error::{Error, Result};
use crate::gauge::links::Links;

/// The first bytes of every record.
pub(super) const MAGIC: [u8; 4] = [0x45, 0x67, 0x89, 0xab];

/// Bytes of a record's head.
const HEAD: usize = 144;

/// Our own record of what ILDG has no place for: boundaries and heatbath sweeps. Other programs skip it.
const OWN: &str = "umklapp-field";

/// The logical file name under which ILDG's catalogues list a field. This one is not listed, but Grid reads no file
/// without a name.
const NAME: &str = "lfn://unregistered";

struct Record<'a> {
    kind: String,
    data: &'a [u8],
    /// Whether it is the last one of its message.
    last: bool,
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
    push(&mut out, "ildg-data-lfn", NAME.as_bytes(), false, false);
    let own = u.sign().contains(&-1.0) || u.sweeps() > 0;
    push(&mut out, "scidac-checksum", sums.as_bytes(), false, !own);
    if own {
        let (words, sweeps) = (boundary_words(u).join(" "), u.sweeps());
        let text = format!("<boundary>{words}</boundary><sweeps>{sweeps}</sweeps>");
        push(&mut out, OWN, text.as_bytes(), false, true);
    }
    out
}

fn records(bytes: &[u8]) -> Result<Vec<Record<'_>>> {
    let cut = || Error::file("the file ends inside a lime record").hint(CUT);
    let mut found = Vec::new();
    let mut at = 0;
    // Files from tapes are padded with zeros.
    while bytes.get(at..).is_some_and(|rest| rest.iter().any(|b| *b != 0)) {
        let head = bytes.get(at..at + HEAD).ok_or_else(cut)?;
        if head[..4] != MAGIC {
            return Err(Error::file(format!("byte {at} should begin a lime record and does not"))
                .hint("the file is damaged, or something was added to it"));
        }
        let mut length = [0u8; 8];
        length.copy_from_slice(&head[8..16]);
        let length = usize::try_from(u64::from_be_bytes(length)).map_err(|_| cut())?;
        let name = head[16..].split(|&b| b == 0).next().unwrap_or_default();
        let end = (at + HEAD).checked_add(length).ok_or_else(cut)?;
        let data = bytes.get(at + HEAD..end).ok_or_else(cut)?;
        let last = head[6] & 0x40 != 0;
        found.push(Record { kind: String::from_utf8_lossy(name).into_owned(), data, last });
        at = end.next_multiple_of(8);
    }
    Ok(found)
}

/// The text of the first element of a name, in whatever namespace and with whatever attributes; comments are no elements.
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
            .hint("a gauge field has four colour matrices a site"));
        }
    }
    Ok((dims, bits))
}

pub(super) fn decode(bytes: &[u8], reunitarise: bool) -> Result<Loaded> {
    let records = records(bytes)?;
    let text = |kind: &str| {
        records.iter().find(|r| r.kind == kind).map(|r| String::from_utf8_lossy(r.data).into_owned())
    };
    let data = |kind: &str| records.iter().find(|r| r.kind == kind).map(|r| r.data);
    let none = |what: &str| Error::file(format!("the file has no record {what}")).hint(CUT);
    let (dims, stated_bits, data) = if let Some(format) = text("ildg-format") {
        let size = |tag: &str| tagged(&format, tag).and_then(|v| v.parse().ok());
        let dims = dims_of(["lx", "ly", "lz", "lt"].map(size), "record ildg-format")?;
        if let Some(field) = tagged(&format, "field").filter(|field| *field != "su3gauge") {
            return Err(Error::file(format!("the file holds a field of kind {field}"))
                .hint("a gauge field is of kind su3gauge"));
        }
        let bits = tagged(&format, "precision").and_then(|v| v.parse::<usize>().ok());
        (dims, bits, data("ildg-binary-data").ok_or_else(|| none("ildg-binary-data"))?)
    } else {
        let file = text("scidac-private-file-xml").ok_or_else(|| none("ildg-format"))?;
        let (dims, bits) = scidac(&file, &text("scidac-private-record-xml").unwrap_or_default())?;
        (dims, bits, data("scidac-binary-data").ok_or_else(|| none("scidac-binary-data"))?)
    };
    let sites: usize = dims.iter().product();
    let bits = match stated_bits {
        Some(bits @ (32 | 64)) => bits,
        Some(bits) => {
            return Err(Error::file(format!("numbers of {bits} bits")).hint("32 and 64 are known"));
        }
        // Where no record tells the precision, the length of the data does.
        None if data.len() == sites * 72 * 4 => 32,
        None => 64,
    };
    let site_bytes = 72 * bits / 8;
    check_length(dims, sites * site_bytes, data.len())?;
    let single = bits == 32;
    let mut doubts: Vec<String> = Vec::new();
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
    } else {
        doubts.push("it has no checksum, so that nobody knows whether its data are whole".into());
    }
    if !records.last().is_some_and(|r| r.last) {
        doubts.push("its last message does not end: it may have been cut short".into());
    }
    let form = Form { rows: 3, single, reunitarise };
    let Loaded { mut links, note } = links_of(dims, &reals(data, single, true), form)?;
    doubts.extend(note);
    if let Some(own) = text(OWN) {
        let words = tagged(&own, "boundary").unwrap_or_default();
        let sweeps = tagged(&own, "sweeps").and_then(|v| v.parse().ok()).unwrap_or_default();
        links = links.with_sign(signs_of(words.split_whitespace())?).with_sweeps(sweeps);
    }
    Ok(Loaded { links, note: (!doubts.is_empty()).then(|| doubts.join("; ")) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::Lattice;

    /// The check value of CRC-32 (ISO 3309), which SciDAC files use.
    #[test]
    fn the_crc_is_that_of_zip() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
        assert_eq!(checksum(b"123456789", 9), (0xcbf4_3926, 0xcbf4_3926));
    }

    fn field() -> Links {
        let lattice = Lattice::hypercubic(&[2, 3, 2, 4]).unwrap();
        Links::unit(&lattice).unwrap().reference_field(0.4)
    }

    /// A file of the records given, the last of which ends the message.
    fn file(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (k, (kind, data)) in parts.iter().enumerate() {
            push(&mut out, kind, data, k == 0, k + 1 == parts.len());
        }
        out
    }

    /// The data of the field and the record of their checksums.
    fn data_and_sums() -> (Vec<u8>, Vec<u8>) {
        let whole = encode(&field(), false);
        let records = records(&whole).unwrap();
        let of = |kind| records.iter().find(|r| r.kind == kind).unwrap().data.to_vec();
        (of("ildg-binary-data"), of("scidac-checksum"))
    }

    fn decode(bytes: &[u8]) -> Result<Loaded> {
        super::decode(bytes, false)
    }

    fn why(bytes: &[u8]) -> String {
        decode(bytes).unwrap_err().message().to_string()
    }

    /// Grid (IldgIO.h) refuses files without the record `ildg-data-lfn`; others write none.
    #[test]
    fn a_logical_file_name_is_there() {
        let whole = encode(&field(), false);
        let known = records(&whole).unwrap();
        let name = known.iter().find(|r| r.kind == "ildg-data-lfn").unwrap();
        assert!(name.data.starts_with(b"lfn://"));
        let without: Vec<_> =
            known.iter().filter(|r| r.kind != "ildg-data-lfn").map(|r| (r.kind.as_str(), r.data)).collect();
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
        let kinds = |u: &Links| records(&encode(u, true)).unwrap().len();
        assert_eq!((kinds(&field()), kinds(&turned)), (4, 5));
    }
}
