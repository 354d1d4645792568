//! Molecular integrals in files of the kind FCIDUMP (Knowles, Handy, Comput. Phys. Commun. 54, 75 (1989)):
//! `H = E + sum h_pq c+_ps c_qs + 1/2 sum (pq|rs) c+_ps c+_rt c_st c_qs` over orbitals p, q, r, s and spins s, t.

use std::collections::BTreeMap;

use super::{OpSum, Site, Sites};
use crate::error::{Error, Result};
use crate::number::memory;

/// What a file says of a molecule.
pub struct Molecule {
    pub sum: OpSum,
    /// One site "Electron" an orbital.
    pub sites: Sites,
    /// Electrons of spin up and down.
    pub electrons: (usize, usize),
    /// The energy of the nuclei, and of electrons that are left out.
    pub core: f64,
    /// Point-group labels of the orbitals, as in the file.
    pub symmetries: Vec<i64>,
}

/// The most orbitals: their terms grow with the fourth power.
const MOST: usize = 400;

fn bad(line: usize, what: &str) -> Error {
    Error::file(format!("line {line}: {what}")).hint(
        "an FCIDUMP file has a header `&FCI NORB=.., NELEC=.., MS2=.., \
         &END`, and lines of an integral and four orbitals",
    )
}

/// The numbers of a key of the header.
fn numbers(header: &str, key: &str) -> Vec<i64> {
    let Some(at) = header.find(&format!("{key}=")) else { return Vec::new() };
    let rest = &header[at + key.len() + 1..];
    let one = |word: &str| word.parse().ok();
    rest.split(|c: char| c.is_whitespace() || c == ',' || c == '/')
        .filter(|w| !w.is_empty())
        .map_while(one)
        .collect()
}

/// The eight places of an integral of real orbitals.
fn alike([p, q, r, s]: [usize; 4]) -> Vec<[usize; 4]> {
    let mut all = vec![
        [p, q, r, s],
        [q, p, r, s],
        [p, q, s, r],
        [q, p, s, r],
        [r, s, p, q],
        [s, r, p, q],
        [r, s, q, p],
        [s, r, q, p],
    ];
    all.sort_unstable();
    all.dedup();
    all
}

/// Keeps an integral; a file may hold it several times, with one value.
fn keep(all: &mut BTreeMap<[usize; 4], f64>, key: [usize; 4], value: f64, line: usize) -> Result<()> {
    match all.insert(key, value) {
        Some(before) if (before - value).abs() > 1e-8 * (1.0 + value.abs()) => {
            let hint = "integrals of real orbitals have eight places; those of spins apart or of complex orbitals are \
                 not read";
            Err(bad(line, "an integral with two values").hint(hint))
        }
        _ => Ok(()),
    }
}

/// The header, in capitals, from its first line to its end.
fn header<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>) -> Result<String> {
    let mut header = String::new();
    for (number, line) in lines {
        let upper = line.to_uppercase();
        let begins = header.is_empty();
        if begins && upper.is_empty() {
            continue;
        }
        header.push_str(&upper);
        header.push(' ');
        if begins && !upper.starts_with("&FCI") && !upper.starts_with("$FCI") {
            return Err(bad(number, "no header"));
        }
        if upper.ends_with("&END") || upper.ends_with("$END") || upper.ends_with('/') {
            // A namelist of Fortran may have blanks around the signs.
            return Ok(header.split('=').map(str::trim).collect::<Vec<_>>().join("="));
        }
    }
    Err(bad(1, "a header that has no end"))
}

/// Integrals of one and of two electrons by the first of their equal places, and the energy without electrons.
#[derive(Default)]
struct Integrals {
    one: BTreeMap<[usize; 4], f64>,
    two: BTreeMap<[usize; 4], f64>,
    core: f64,
}

impl Integrals {
    /// The integrals that stand behind the header, of `n` orbitals.
    fn read<'a>(lines: impl Iterator<Item = (usize, &'a str)>, n: usize) -> Result<Integrals> {
        let mut all = Integrals::default();
        for (number, line) in lines {
            crate::task::poll()?;
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.is_empty() {
                continue;
            }
            let value = words[0].replace(['D', 'd'], "e").parse::<f64>().ok().filter(|x| x.is_finite());
            let value = value.ok_or_else(|| bad(number, &format!("`{}` is not a real number", words[0])))?;
            let orbital = |w: &&str| w.parse().ok().filter(|p: &usize| *p <= n);
            let orbitals: Option<Vec<usize>> = words[1..].iter().map(orbital).collect();
            let Some([p, q, r, s]) = orbitals.and_then(|all| <[usize; 4]>::try_from(all).ok()) else {
                return Err(bad(number, &format!("four orbitals from 0 to {n} belong to an integral")));
            };
            match [p, q, r, s] {
                [0, 0, 0, 0] => all.core = value,
                // Energies of orbitals, which follow from the rest.
                [_, 0, 0, 0] => {}
                [_, _, 0, 0] if p > 0 && q > 0 => {
                    keep(&mut all.one, [p.min(q) - 1, p.max(q) - 1, 0, 0], value, number)?
                }
                [_, _, _, _] if p > 0 && q > 0 && r > 0 && s > 0 => {
                    let places = alike([p - 1, q - 1, r - 1, s - 1]);
                    keep(&mut all.two, places[0], value, number)?;
                }
                _ => return Err(bad(number, "an integral between orbitals and none")),
            }
        }
        Ok(all)
    }
}

/// The sum of the integrals that are larger than `cutoff`.
fn sum(
    one: BTreeMap<[usize; 4], f64>,
    two: BTreeMap<[usize; 4], f64>,
    core: f64,
    cutoff: f64,
) -> Result<OpSum> {
    let mut sum = OpSum::new();
    let spins = [("Cdagup", "Cup"), ("Cdagdn", "Cdn")];
    if core != 0.0 {
        sum.add(core, Vec::new())?;
    }
    for ([p, q, ..], value) in one.into_iter().filter(|(_, value)| value.abs() > cutoff) {
        let ways = if p == q { vec![(p, q)] } else { vec![(p, q), (q, p)] };
        for (p, q) in ways {
            for (up, down) in spins {
                sum.add(value, vec![(up.into(), p), (down.into(), q)])?;
            }
        }
    }
    for (key, value) in two.into_iter().filter(|(_, value)| value.abs() > cutoff) {
        crate::task::poll()?;
        for [p, q, r, s] in alike(key) {
            for (a, (add, take)) in spins.into_iter().enumerate() {
                for (b, (add_too, take_too)) in spins.into_iter().enumerate() {
                    if a == b && (p == r || q == s) {
                        continue;
                    }
                    let factors =
                        vec![(add.into(), p), (add_too.into(), r), (take_too.into(), s), (take.into(), q)];
                    sum.add(0.5 * value, factors)?;
                }
            }
        }
    }
    Ok(sum)
}

/// Reads a file's text. Integrals smaller than `cutoff` are left out.
///
/// # Errors
/// For texts of another kind, orbitals that there are not, complex integrals and those of spins apart.
pub fn read_fcidump(text: &str, cutoff: f64) -> Result<Molecule> {
    let mut lines = text.lines().enumerate().map(|(k, line)| (k + 1, line.trim()));
    let header = header(&mut lines)?;
    let first = |key: &str| match numbers(&header, key).first() {
        None if header.contains(&format!("{key}=")) => Err(bad(1, &format!("{key} is not a whole number"))),
        first => Ok(first.copied()),
    };
    let n = first("NORB")?.and_then(|n| usize::try_from(n).ok()).filter(|n| (1..=MOST).contains(n));
    let n = n.ok_or_else(|| bad(1, &format!("NORB is not a number of orbitals from 1 to {MOST}")))?;
    let spin = first("MS2")?.unwrap_or(0);
    let twice = first("NELEC")?.map(|all| (all.saturating_add(spin), all.saturating_sub(spin)));
    let electrons = twice
        .filter(|(up, dn)| up % 2 == 0 && (0..=2 * n as i64).contains(up) && (0..=2 * n as i64).contains(dn));
    let (up, dn) =
        electrons.ok_or_else(|| bad(1, "NELEC electrons of spin MS2 / 2 do not fit into the orbitals"))?;
    if first("IUHF")?.is_some_and(|k| k != 0) || header.contains(".TRUE.") {
        return Err(bad(1, "integrals of spins apart (IUHF) are not read"));
    }
    let Integrals { one, two, core } = Integrals::read(lines, n)?;
    if one.is_empty() && two.is_empty() {
        return Err(bad(text.lines().count(), "the file ends without an integral"));
    }
    // A term: four names and places, and what holds them.
    let terms = two.len() as u128 * 32 + one.len() as u128 * 4;
    memory::ensure(terms * 400, &format!("a sum over the integrals of {n} orbitals"))?;
    let mut sum = sum(one, two, core, cutoff)?;
    let sites = Sites::uniform(Site::named("Electron", None)?, n)?;
    sum.meant_for(&sites);
    Ok(Molecule {
        sum,
        sites,
        electrons: (up as usize / 2, dn as usize / 2),
        core,
        symmetries: numbers(&header, "ORBSYM"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blanks and tabs stand anywhere in a namelist, and its keys on any line.
    #[test]
    fn blanks_in_the_header() {
        let text = |header: &str| format!("{header}\n0.5 1 1 0 0\n0.25 2 2 0 0\n");
        for header in [
            "&FCI NORB=2,NELEC=2,MS2=2\n&END",
            "&FCI NORB  =  2, NELEC\t=\t2 MS2  =  2\n/",
            " &FCI\n NORB =2\n NELEC= 2\n MS2 =\n 2,\n ORBSYM  = 1, 1\n &END",
        ] {
            let found = read_fcidump(&text(header), 0.0).unwrap();
            assert_eq!(found.electrons, (2, 0), "{header}");
        }
        let labels = read_fcidump(&text("&FCI NORB=2,NELEC=2,MS2=0,ORBSYM  =\t3,\t1,\n&END"), 0.0).unwrap();
        assert_eq!((labels.electrons, labels.symmetries), ((1, 1), vec![3, 1]));
        for header in [
            "&FCI NORB=2,NELEC=2,MS2=x &END",
            "&FCI NORB=2,NELEC=2,MS2=2.5 &END",
            "&FCI NORB=2,NELEC=2,MS2= /",
        ] {
            let error = read_fcidump(&text(header), 0.0).err().unwrap();
            assert!(error.to_string().contains("MS2 is not a whole number"), "{header}: {error}");
        }
    }
}
