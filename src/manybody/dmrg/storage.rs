//! States as bytes. A file is a line that names the format, the length of what follows, one state or several, and a
//! CRC-32 of all before. A state is the length of a JSON header, the header, then the numbers of all matrices,
//! little-endian.

use std::collections::BTreeMap;
use std::slice::ChunksExact;
use std::sync::Arc;

use faer::Mat;
use serde_json::{Value, json};

use super::space::{ChargeLabel, ConservedNumbers, Space};
use super::state::MatrixProductState;
use super::tensor::MpsTensor;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::{Site, Sites};
use crate::number::{C64, Series};

const MAGIC: &[u8] = b"umklapp dmrg 2\n";
/// How files without a checksum began.
const UNCHECKED: &[u8] = b"umklapp dmrg 1\n";

/// Whether a file that begins so holds a state.
pub fn is_state(head: &[u8]) -> bool {
    head.starts_with(MAGIC) || head.starts_with(UNCHECKED)
}

pub(super) fn broken(what: &str) -> Error {
    Error::file(format!("no saved DMRG state: {what}")).hint("such files are written by saving a state")
}

fn site_json(site: &Site) -> Result<Value> {
    let mut operators = serde_json::Map::new();
    for name in site.operators() {
        let operator = site.operator(name)?;
        let numbers: Vec<f64> = operator.matrix.iter().flat_map(|z| [z.re, z.im]).collect();
        operators.insert(name.into(), json!({ "matrix": numbers, "fermionic": operator.fermionic }));
    }
    let charges: Vec<Value> = site
        .charges()
        .iter()
        .map(|c| json!({ "name": c.name, "twice": c.twice, "modulus": c.modulus }))
        .collect();
    let odd: Vec<bool> = (0..site.dim()).map(|s| site.is_odd(s)).collect();
    Ok(json!({
        "name": site.name(), "states": site.states(), "operators": operators, "charges": charges, "odd": odd,
    }))
}

fn site_from(value: &Value) -> Result<Site> {
    let list = |v: &Value| v.as_array().cloned().ok_or_else(|| broken("a site without lists"));
    let text = |v: &Value| v.as_str().map(str::to_string).ok_or_else(|| broken("a name is missing"));
    let states = list(&value["states"])?.iter().map(text).collect::<Result<Vec<_>>>()?;
    let mut site = Site::new(text(&value["name"])?, states)?;
    let odd = list(&value["odd"])?.iter().map(|b| b.as_bool().unwrap_or(false)).collect();
    site = site.with_odd(odd)?;
    let operators = value["operators"].as_object().ok_or_else(|| broken("a site without operators"))?;
    for (name, operator) in operators {
        let numbers: Vec<f64> =
            list(&operator["matrix"])?.iter().map(|x| x.as_f64().unwrap_or(0.0)).collect();
        let matrix = numbers.chunks_exact(2).map(|z| C64::new(z[0], z[1])).collect();
        site = site.with_matrix(name.clone(), matrix, operator["fermionic"].as_bool().unwrap_or(false))?;
    }
    for charge in list(&value["charges"])? {
        let twice: Vec<f64> =
            list(&charge["twice"])?.iter().map(|q| q.as_i64().unwrap_or(0) as f64 / 2.0).collect();
        let n = u16::try_from(charge["modulus"].as_i64().unwrap_or(0) / 2).unwrap_or(0);
        site = site.charged_modulo(text(&charge["name"])?, &twice, n)?;
    }
    Ok(site)
}

/// The kinds of some sites, and which kind each of them is.
pub(super) fn sites_json(sites: &Sites) -> Result<(Vec<Value>, Vec<usize>)> {
    let mut kinds: Vec<Arc<Site>> = Vec::new();
    let mut which = Vec::new();
    for site in sites.iter() {
        let at = kinds.iter().position(|k| k == site).unwrap_or_else(|| {
            kinds.push(site.clone());
            kinds.len() - 1
        });
        which.push(at);
    }
    Ok((kinds.iter().map(|k| site_json(k)).collect::<Result<Vec<_>>>()?, which))
}

/// A bond's sectors: labels and numbers of states.
pub(super) fn space_json(space: &Space) -> Vec<Value> {
    space.iter().map(|(q, d)| json!([q, d])).collect()
}

/// The length of a header and the header.
pub(super) fn headed(header: &Value) -> Vec<u8> {
    let text = header.to_string();
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// Adds the numbers of a matrix, row by row.
pub(super) fn write<T: Element>(bytes: &mut Vec<u8>, m: &Mat<T>) {
    for i in 0..m.nrows() {
        for j in 0..m.ncols() {
            let z = m[(i, j)].to_c64();
            bytes.extend(z.re.to_le_bytes());
            if T::DTYPE.is_complex() {
                bytes.extend(z.im.to_le_bytes());
            }
        }
    }
}

/// The header that some bytes begin with, and the bytes behind it.
pub(super) fn header_of(bytes: &[u8]) -> Result<(Value, &[u8])> {
    let (size, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| broken("the file ends early"))?;
    let size = usize::try_from(u64::from_le_bytes(*size)).unwrap_or(usize::MAX);
    let (text, numbers) = rest.split_at_checked(size).ok_or_else(|| broken("the file ends early"))?;
    let header = serde_json::from_slice(text).map_err(|_| broken("its header cannot be understood"))?;
    Ok((header, numbers))
}

fn list(v: &Value, what: &str) -> Result<Vec<Value>> {
    v.as_array().cloned().ok_or_else(|| broken(what))
}

fn label(v: &Value) -> Result<ChargeLabel> {
    let whole = |v: &Value| -> Result<i32> {
        v.as_i64().and_then(|q| i32::try_from(q).ok()).ok_or_else(|| broken("a charge that is no number"))
    };
    list(v, "no charges")?.iter().map(whole).collect()
}

/// What a header says of the sites, their conserved numbers, those of the state, and the bases of its bonds.
pub(super) struct Described {
    pub sites: Sites,
    pub symmetry: ConservedNumbers,
    pub target: ChargeLabel,
    pub spaces: Vec<Space>,
}

pub(super) fn described(header: &Value) -> Result<Described> {
    let kinds = list(&header["kinds"], "no sites")?
        .iter()
        .map(|k| site_from(k).map(Arc::new))
        .collect::<Result<Vec<_>>>()?;
    let mut sites = Vec::new();
    for k in list(&header["sites"], "no sites")? {
        let kind =
            k.as_u64().and_then(|k| kinds.get(k as usize)).ok_or_else(|| broken("a site of no kind"))?;
        sites.push(kind.clone());
    }
    let names = list(&header["names"], "no names")?;
    let names = names.iter().map(|n| n.as_str().unwrap_or_default().to_string());
    let symmetry = ConservedNumbers::from_parts(names.collect(), label(&header["moduli"])?);
    let mut spaces = Vec::new();
    for space in list(&header["spaces"], "no bases")? {
        let mut sectors = BTreeMap::new();
        for sector in list(&space, "no sectors")? {
            let q = label(&sector[0])?;
            if q.len() != symmetry.names().len() {
                return Err(broken("charges of another kind"));
            }
            sectors.insert(q, sector[1].as_u64().unwrap_or(0) as usize);
        }
        spaces.push(Space::new(sectors));
    }
    Ok(Described { sites: Sites::new(sites)?, symmetry, target: label(&header["target"])?, spaces })
}

/// A matrix of the numbers that follow.
pub(super) fn read_matrix<T: Element>(
    words: &mut ChunksExact<u8>,
    rows: usize,
    columns: usize,
) -> Result<Mat<T>> {
    if rows.saturating_mul(columns).saturating_mul(size_of::<T>()) > 1 << 40 {
        return Err(broken("matrices too large"));
    }
    let mut number = || -> Result<f64> {
        let word = words.next().and_then(|b| b.try_into().ok());
        Ok(f64::from_le_bytes(word.ok_or_else(|| broken("the file ends early"))?))
    };
    let mut matrix = Mat::zeros(rows, columns);
    for r in 0..rows {
        for c in 0..columns {
            let re = number()?;
            let im = if T::DTYPE.is_complex() { number()? } else { 0.0 };
            matrix[(r, c)] = T::from_c64(C64::new(re, im));
        }
    }
    Ok(matrix)
}

/// The header of the bytes of a state; its numbers follow in the order of its blocks.
///
/// # Errors
/// When they are no state.
pub fn parted(bytes: &[u8]) -> Result<Value> {
    header_of(bytes).map(|parts| parts.0)
}

/// The bytes of a state from its header and its numbers.
pub fn joined(header: &Value, numbers: &[Series]) -> Vec<u8> {
    let mut bytes = headed(header);
    for all in numbers {
        match all {
            Series::Real(all) => all.iter().for_each(|x| bytes.extend(x.to_le_bytes())),
            Series::Complex(all) => all.iter().for_each(|z| {
                bytes.extend(z.re.to_le_bytes());
                bytes.extend(z.im.to_le_bytes());
            }),
        }
    }
    bytes
}

/// A complete file from the bytes of states.
pub fn sealed(states: &[u8]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend((states.len() as u64).to_le_bytes());
    file.extend(states);
    let check = crc32fast::hash(&file);
    file.extend(check.to_le_bytes());
    file
}

/// The bytes of the states in an undamaged file.
///
/// # Errors
/// When it is no such file, or one that was damaged, cut short or written before there was a checksum.
pub fn unsealed(file: &[u8]) -> Result<&[u8]> {
    if file.starts_with(UNCHECKED) {
        return Err(Error::file("a saved DMRG state without a checksum, of an earlier version")
            .hint("whether it is whole cannot be known; find the state again and save it"));
    }
    let rest = file.strip_prefix(MAGIC).ok_or_else(|| broken("the file begins differently"))?;
    let (size, rest) = rest.split_first_chunk::<8>().ok_or_else(|| broken("the file ends early"))?;
    let (states, check) = rest.split_last_chunk::<4>().ok_or_else(|| broken("the file ends early"))?;
    if u64::from_le_bytes(*size) != states.len() as u64 {
        return Err(broken("the file is not as long as it says"));
    }
    if crc32fast::hash(&file[..file.len() - check.len()]) != u32::from_le_bytes(*check) {
        return Err(Error::file("a saved DMRG state that was damaged: its checksum is another")
            .hint("copy the file again, or find the state again and save it"));
    }
    Ok(states)
}

/// A saved state, real or complex, and what was saved with it.
pub enum SavedState {
    Real(MatrixProductState<f64>),
    Complex(MatrixProductState<C64>),
}

impl<T: Element> MatrixProductState<T> {
    /// The state as bytes for [`sealed`], with `about` in the header.
    ///
    /// # Errors
    /// When the sites cannot be written.
    pub fn to_bytes(&self, about: &Value) -> Result<Vec<u8>> {
        let (kinds, which) = sites_json(&self.sites)?;
        let header = json!({
            "kinds": kinds,
            "sites": which,
            "complex": T::DTYPE.is_complex(),
            "names": self.symmetry.names(),
            "moduli": self.symmetry.moduli(),
            "target": self.target,
            "norm": self.norm,
            "spaces": self.spaces.iter().map(space_json).collect::<Vec<_>>(),
            "about": about,
        });
        let mut bytes = headed(&header);
        self.tensors.iter().flat_map(|t| &t.matrices).for_each(|m| write(&mut bytes, m));
        Ok(bytes)
    }
}

impl SavedState {
    /// From bytes of [`unsealed`]; also what was saved with the state, and the bytes behind it.
    ///
    /// # Errors
    /// When they are no saved state, or not all of one.
    pub fn from_bytes(bytes: &[u8]) -> Result<(SavedState, Value, &[u8])> {
        let (header, numbers) = header_of(bytes)?;
        let about = header["about"].clone();
        let mut words = numbers.chunks_exact(8);
        let saved = if header["complex"].as_bool().unwrap_or(false) {
            SavedState::Complex(read(&header, &mut words)?)
        } else {
            SavedState::Real(read(&header, &mut words)?)
        };
        let read = numbers.len() / 8 - words.len();
        Ok((saved, about, &numbers[8 * read..]))
    }
}

fn read<T: Element>(header: &Value, words: &mut ChunksExact<u8>) -> Result<MatrixProductState<T>> {
    let Described { sites, symmetry, target, spaces } = described(header)?;
    let norm = header["norm"].as_f64().unwrap_or(1.0);
    if norm == 0.0 {
        return Ok(MatrixProductState::zero(&sites, &symmetry, &target));
    }
    if spaces.len() != sites.count() + 1 {
        return Err(broken("not one basis a bond"));
    }
    let mut tensors = Vec::new();
    for i in 0..sites.count() {
        let states = symmetry.states(&sites, i);
        tensors.push(read_tensor(&symmetry, &spaces[i], &states, &spaces[i + 1], words)?);
    }
    Ok(MatrixProductState::from_tensors(sites, symmetry, target, tensors)?.with_norm(norm))
}

/// A site's matrices of the numbers that follow.
pub(super) fn read_tensor<T: Element>(
    symmetry: &ConservedNumbers,
    before: &Space,
    states: &[ChargeLabel],
    behind: &Space,
    words: &mut ChunksExact<u8>,
) -> Result<MpsTensor<T>> {
    let fusion = super::space::Fusion::new(symmetry, before, states);
    let mut matrices = Vec::new();
    for (q, columns) in behind.iter() {
        let row = fusion.space().find(q).ok_or_else(|| broken("bases that do not follow one another"))?;
        matrices.push(read_matrix(words, fusion.space().dim(row), columns)?);
    }
    MpsTensor::new(symmetry, before, states, behind, |sector| matrices[sector].clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_always_found() {
        let whole = sealed(b"any bytes are sealed alike");
        assert_eq!(unsealed(&whole).expect("whole"), b"any bytes are sealed alike");
        for at in 0..whole.len() {
            assert!(unsealed(&whole[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                assert!(unsealed(&damaged).is_err(), "bit {bit} of byte {at}");
            }
        }
        assert!(unsealed(&[&whole[..], b"x"].concat()).is_err(), "one byte more");
    }
}
