//! States as bytes. A file is a line that names the format, the length of what follows, one state or several, and a
//! CRC-32 of all before. A state is the length of a JSON header, the header, then the numbers of all matrices,
//! little-endian.

use std::collections::BTreeMap;
use std::slice::ChunksExact;
use std::sync::Arc;

use faer::Mat;
use serde_json::{Value, json};

use super::space::{Space, Symmetry};
use super::state::State;
use super::tensor::Tensor;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::{Site, Sites};
use crate::number::C64;

const MAGIC: &[u8] = b"umklapp dmrg 2\n";
/// How files without a checksum began.
const UNCHECKED: &[u8] = b"umklapp dmrg 1\n";

/// Whether a file that begins so holds a state.
pub fn is_state(head: &[u8]) -> bool {
    head.starts_with(MAGIC) || head.starts_with(UNCHECKED)
}

fn broken(what: &str) -> Error {
    Error::file(format!("no saved DMRG state: {what}"))
        .hint("such files are written by `gs.save(\"name.dmrg\")`")
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
pub enum Saved {
    /// Of real numbers.
    Real(State<f64>),
    /// Of complex numbers.
    Complex(State<C64>),
}

impl<T: Element> State<T> {
    /// The state as bytes for [`sealed`], with `about` in the header.
    ///
    /// # Errors
    /// When the sites cannot be written.
    pub fn to_bytes(&self, about: &Value) -> Result<Vec<u8>> {
        let mut kinds: Vec<Arc<Site>> = Vec::new();
        let mut which = Vec::new();
        for site in self.sites.iter() {
            let at = kinds.iter().position(|k| k == site).unwrap_or_else(|| {
                kinds.push(site.clone());
                kinds.len() - 1
            });
            which.push(at);
        }
        let sectors = |space: &Space| -> Vec<Value> { space.iter().map(|(q, d)| json!([q, d])).collect() };
        let header = json!({
            "kinds": kinds.iter().map(|k| site_json(k)).collect::<Result<Vec<_>>>()?,
            "sites": which,
            "complex": T::DTYPE.is_complex(),
            "names": self.symmetry.names(),
            "moduli": self.symmetry.moduli(),
            "target": self.target,
            "norm": self.norm,
            "spaces": self.spaces.iter().map(sectors).collect::<Vec<_>>(),
            "about": about,
        });
        let text = header.to_string();
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        for m in self.tensors.iter().flat_map(|t| &t.matrices) {
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
        Ok(bytes)
    }
}

impl Saved {
    /// From bytes of [`unsealed`]; also what was saved with the state, and the bytes behind it.
    ///
    /// # Errors
    /// When they are no saved state, or not all of one.
    pub fn from_bytes(bytes: &[u8]) -> Result<(Saved, Value, &[u8])> {
        let (size, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| broken("the file ends early"))?;
        let size = usize::try_from(u64::from_le_bytes(*size)).unwrap_or(usize::MAX);
        let (text, numbers) = rest.split_at_checked(size).ok_or_else(|| broken("the file ends early"))?;
        let header: Value =
            serde_json::from_slice(text).map_err(|_| broken("its header cannot be understood"))?;
        let about = header["about"].clone();
        let mut words = numbers.chunks_exact(8);
        let saved = if header["complex"].as_bool().unwrap_or(false) {
            Saved::Complex(read(&header, &mut words)?)
        } else {
            Saved::Real(read(&header, &mut words)?)
        };
        let read = numbers.len() / 8 - words.len();
        Ok((saved, about, &numbers[8 * read..]))
    }
}

fn read<T: Element>(header: &Value, words: &mut ChunksExact<u8>) -> Result<State<T>> {
    let list = |v: &Value, what: &str| v.as_array().cloned().ok_or_else(|| broken(what));
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
    let sites = Sites::new(sites)?;
    let whole = |v: &Value| -> Result<i32> {
        v.as_i64().and_then(|q| i32::try_from(q).ok()).ok_or_else(|| broken("a charge that is no number"))
    };
    let label = |v: &Value| -> Result<Vec<i32>> { list(v, "no charges")?.iter().map(whole).collect() };
    let names = list(&header["names"], "no names")?;
    let names = names.iter().map(|n| n.as_str().unwrap_or_default().to_string());
    let symmetry = Symmetry::from_parts(names.collect(), label(&header["moduli"])?);
    let target = label(&header["target"])?;
    let norm = header["norm"].as_f64().unwrap_or(1.0);
    if norm == 0.0 {
        return Ok(State::zero(&sites, &symmetry, &target));
    }
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
    if spaces.len() != sites.count() + 1 {
        return Err(broken("not one basis a bond"));
    }
    let mut numbers = words.map(|b| {
        let mut eight = [0; 8];
        eight.copy_from_slice(b);
        f64::from_le_bytes(eight)
    });
    let mut tensors = Vec::new();
    for i in 0..sites.count() {
        let states = symmetry.states(&sites, i);
        let fusion = super::space::Fusion::new(&symmetry, &spaces[i], &states);
        let mut matrices = Vec::new();
        for (q, columns) in spaces[i + 1].iter() {
            let row = fusion.space().find(q).ok_or_else(|| broken("bases that do not follow one another"))?;
            let rows = fusion.space().dim(row);
            if rows.saturating_mul(columns).saturating_mul(size_of::<T>()) > 1 << 40 {
                return Err(broken("matrices too large"));
            }
            let mut matrix = Mat::zeros(rows, columns);
            for r in 0..rows {
                for c in 0..columns {
                    let re = numbers.next().ok_or_else(|| broken("the file ends early"))?;
                    let im = if T::DTYPE.is_complex() {
                        numbers.next().ok_or_else(|| broken("the file ends early"))?
                    } else {
                        0.0
                    };
                    matrix[(r, c)] = T::from_c64(C64::new(re, im));
                }
            }
            matrices.push(matrix);
        }
        let fill = |sector: usize| matrices[sector].clone();
        tensors.push(Tensor::new(&symmetry, &spaces[i], &states, &spaces[i + 1], fill)?);
    }
    Ok(State::from_tensors(sites, symmetry, target, tensors)?.with_norm(norm))
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
