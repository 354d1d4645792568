//! Structures from files of molecular dynamics: data files and dumps of LAMMPS, XYZ files plain and extended.

use std::path::Path;

use super::lattice::{Lattice, LatticeSite};
use super::lines::FileLines;
use crate::backend::matrix::Wrap;
use crate::error::{Error, ErrorKind, Result};
use crate::number::{C64, memory};

/// What kind an atom is: a number, or an element's symbol.
#[derive(Debug, Clone, PartialEq)]
pub enum Species {
    /// LAMMPS' atom type.
    Number(i64),
    /// What stands before the coordinates in an XYZ file.
    Symbol(String),
}

/// Atoms of a file, in the order of their numbers.
#[derive(Debug, Clone)]
pub struct Atoms {
    /// A lattice of one cell, the box, with a site for each atom.
    pub lattice: Lattice,
    pub kinds: Vec<Species>,
    /// Charges, where the file has them.
    pub charges: Option<Vec<f64>>,
    /// Their numbers in the file.
    pub ids: Vec<i64>,
}

/// How a file of atoms is read.
#[derive(Debug, Clone, Default)]
pub struct AtomOptions {
    /// The style of the atoms of a data file, if its `Atoms` line does not say.
    pub style: Option<String>,
    /// Which snapshot, counted from 0; negative from the end.
    pub frame: i64,
}

struct Atom {
    id: i64,
    kind: Species,
    charge: Option<f64>,
    position: [f64; 3],
}

/// The box: its origin, the three edges, and the boundaries.
struct SimulationBox {
    edges: [[f64; 3]; 3],
    wrap: [Wrap; 3],
}

const PERIODIC: Wrap = Wrap::Phase(C64::ONE);

/// Columns of the styles of data files: of type, charge and x; the first column is the atom's number.
const STYLES: [(&str, usize, Option<usize>, usize); 6] = [
    ("atomic", 1, None, 2),
    ("charge", 1, Some(2), 3),
    ("bond", 2, None, 3),
    ("angle", 2, None, 3),
    ("molecular", 2, None, 3),
    ("full", 2, Some(3), 4),
];

/// Reads a structure; what kind of file it is shows in its first line.
///
/// # Errors
/// A file that cannot be read, or is none of these; each line that does not fit is named.
pub fn read_atoms(path: &Path, options: &AtomOptions) -> Result<Atoms> {
    structure(path, options).map_err(|e| match e.hint_text().is_some() || e.kind() != ErrorKind::File {
        true => e,
        false => e.hint(
            "read are data files and dumps of LAMMPS and XYZ files, told apart by their first line and name",
        ),
    })
}

fn structure(path: &Path, options: &AtomOptions) -> Result<Atoms> {
    let mut lines = FileLines::open(path)?;
    let first = lines.next()?.map(str::to_string).ok_or_else(|| lines.ended("a structure"))?;
    let name = path.to_string_lossy().to_lowercase();
    let (atoms, cell) = if first.starts_with("ITEM:") {
        frames(&mut lines, first, options.frame, dump_frame)?
    } else if name.ends_with("xyz") {
        frames(&mut lines, first, options.frame, xyz_frame)?
    } else {
        data_file(&mut lines, options)?
    };
    let mut atoms = atoms;
    atoms.sort_by_key(|atom| atom.id);
    if let Some(pair) = atoms.windows(2).find(|pair| pair[0].id == pair[1].id) {
        return Err(Error::file(format!("`{}` has two atoms of number {}", path.display(), pair[0].id)));
    }
    let lattice = match cell {
        None => Lattice::points(atoms.iter().map(|atom| atom.position.to_vec()).collect())?,
        Some(cell) => {
            let sites = atoms.iter().enumerate();
            let sites =
                sites.map(|(i, atom)| LatticeSite { name: i.to_string(), position: atom.position.to_vec() });
            let vectors = cell.edges.iter().map(|edge| edge.to_vec()).collect();
            Lattice::custom("atoms", vectors, sites.collect(), Vec::new(), vec![1; 3])
                .map_err(|e| e.context(format!("the box of `{}`", path.display())))?
                .boundary(&cell.wrap)?
        }
    };
    Ok(Atoms {
        lattice,
        charges: atoms.iter().map(|atom| atom.charge).collect(),
        ids: atoms.iter().map(|atom| atom.id).collect(),
        kinds: atoms.into_iter().map(|atom| atom.kind).collect(),
    })
}

type AtomsFrame = (Vec<Atom>, Option<SimulationBox>);

/// One of the snapshots of a file, whose `first` line was read.
fn frames(
    lines: &mut FileLines,
    first: String,
    wanted: i64,
    read: fn(&mut FileLines, &str) -> Result<AtomsFrame>,
) -> Result<AtomsFrame> {
    // Those that may be wanted: the last few, or all up to the wanted one.
    let keep = if wanted < 0 { wanted.unsigned_abs() as usize } else { 1 };
    let (mut kept, mut count) = (std::collections::VecDeque::new(), 0i64);
    let mut head = Some(first);
    while let Some(line) = head {
        let frame = read(lines, &line)?;
        count += 1;
        if wanted < 0 || wanted == count - 1 {
            kept.push_back(frame);
            if kept.len() > keep {
                kept.pop_front();
            }
        }
        if wanted == count - 1 {
            break;
        }
        head = loop {
            match lines.next()? {
                None => break None,
                Some("") => {}
                Some(line) => break Some(line.to_string()),
            }
        };
    }
    let found = if wanted < 0 && kept.len() < keep { None } else { kept.pop_front() };
    found.ok_or_else(|| {
        Error::input(format!("snapshot {wanted} of a file of {count}"))
            .hint("they are counted from 0, or from the end: -1 is the last")
    })
}

/// The number of atoms that a file says.
fn count_of(lines: &FileLines, word: &str) -> Result<usize> {
    let count: usize = lines.number(word, "the number of atoms")?;
    if count == 0 {
        return Err(lines.wrong("says that there are no atoms"));
    }
    memory::ensure(200 * count as u128, &format!("{count} atoms"))?;
    Ok(count)
}

/// Three coordinates from words.
fn place(lines: &FileLines, words: &[String]) -> Result<[f64; 3]> {
    let mut x = [0.0; 3];
    for (x, word) in x.iter_mut().zip(words) {
        *x = lines.real(word, "a coordinate")?;
    }
    Ok(x)
}

/// A box of LAMMPS from its lengths and tilts: the edges are (lx, 0, 0), (xy, ly, 0), (xz, yz, lz).
fn edges(lengths: [f64; 3], [xy, xz, yz]: [f64; 3]) -> [[f64; 3]; 3] {
    let [lx, ly, lz] = lengths;
    [[lx, 0.0, 0.0], [xy, ly, 0.0], [xz, yz, lz]]
}

/// What a data file of LAMMPS says before its atoms.
struct DataHeader {
    edges: [[f64; 3]; 3],
    count: usize,
    /// The number of types, where it is told.
    types: Option<i64>,
    /// The style behind the word `Atoms`.
    style: Option<String>,
}

fn data_header(lines: &mut FileLines) -> Result<DataHeader> {
    let mut bounds: [Option<f64>; 3] = [None; 3];
    let (mut tilts, mut count, mut types) = ([0.0; 3], None, None);
    // The header ends where the first section begins.
    let style = loop {
        let line = lines.next()?.map(str::to_string).ok_or_else(|| lines.ended("the section `Atoms`"))?;
        let (told, comment) = line.split_once('#').unwrap_or((&line, ""));
        let words: Vec<&str> = told.split_whitespace().collect();
        match &words[..] {
            [] => {}
            ["Atoms"] => break comment.split_whitespace().next().map(str::to_string),
            [n, "atoms"] => count = Some(count_of(lines, n)?),
            [n, "atom", "types"] => types = Some(lines.number::<i64>(n, "the number of types")?),
            [low, high, a, b] if matches!((*a, *b), ("xlo", "xhi") | ("ylo", "yhi") | ("zlo", "zhi")) => {
                let (low, high) =
                    (lines.real(low, "an end of the box")?, lines.real(high, "an end of the box")?);
                if high <= low {
                    return Err(lines.wrong(format!("has a box from {low} to {high}")));
                }
                bounds[["xlo", "ylo", "zlo"].iter().position(|x| x == a).unwrap_or(0)] = Some(high - low);
            }
            [xy, xz, yz, "xy", "xz", "yz"] => {
                for (tilt, word) in tilts.iter_mut().zip([xy, xz, yz]) {
                    *tilt = lines.real(word, "a tilt of the box")?;
                }
            }
            [.., "avec" | "bvec" | "cvec"] => {
                return Err(lines.wrong("has a general triclinic box").hint(
                    "write the file with tilts (xy xz yz), as LAMMPS does without `triclinic/general`",
                ));
            }
            [word, ..] if word.starts_with(char::is_alphabetic) => skip_section(lines)?,
            // counts of bonds, types and the like
            _ => {}
        }
    };
    let count = count.ok_or_else(|| {
        lines
            .wrong("begins the atoms, and no line before says how many")
            .hint("a data file of LAMMPS has a line like `64 atoms`")
    })?;
    let [Some(lx), Some(ly), Some(lz)] = bounds else {
        return Err(lines
            .wrong("begins the atoms, and the lines before do not give the whole box")
            .hint("a data file of LAMMPS has lines like `0.0 10.0 xlo xhi`"));
    };
    Ok(DataHeader { edges: edges([lx, ly, lz], tilts), count, types, style })
}

fn data_file(lines: &mut FileLines, options: &AtomOptions) -> Result<AtomsFrame> {
    let DataHeader { edges, count, types, style } = data_header(lines)?;
    let style = options.style.clone().or(style);
    let known = |name: &str| STYLES.iter().find(|style| style.0 == name).copied();
    let mut columns = match &style {
        None => None,
        Some(name) => Some(known(name).ok_or_else(|| {
            lines
                .wrong(format!("has atoms of style `{name}`"))
                .hint(format!("the styles read here are {}", STYLES.map(|s| s.0).join(", ")))
        })?),
    };
    let mut atoms = Vec::with_capacity(count);
    while atoms.len() < count {
        let line = lines.next()?.map(str::to_string).ok_or_else(|| lines.ended("an atom"))?;
        let told = line.split('#').next().unwrap_or_default();
        let words: Vec<String> = told.split_whitespace().map(str::to_string).collect();
        if words.is_empty() {
            continue;
        }
        if columns.is_none() {
            columns = match words.len() {
                5 | 8 => known("atomic"),
                7 | 10 => known("full"),
                n => {
                    return Err(lines
                        .wrong(format!("has {n} columns, which several styles have"))
                        .hint("give the option `style`, such as \"charge\" or \"molecular\""));
                }
            };
        }
        let Some((name, kind, charge, x)) = columns else { continue };
        if words.len() != x + 3 && words.len() != x + 6 {
            return Err(lines.wrong(format!(
                "has {} columns, where an atom of style `{name}` has {}",
                words.len(),
                x + 3
            )));
        }
        let kind: i64 = lines.number(&words[kind], "the type of an atom")?;
        if kind < 1 || types.is_some_and(|types| kind > types) {
            let most = types.map_or_else(String::new, |types| format!(" to {types}"));
            return Err(lines.wrong(format!("has an atom of type {kind}, and types are 1{most}")));
        }
        atoms.push(Atom {
            id: lines.number(&words[0], "the number of an atom")?,
            kind: Species::Number(kind),
            charge: charge.map(|c| lines.real(&words[c], "a charge")).transpose()?,
            position: place(lines, &words[x..])?,
        });
    }
    // What follows is another section, which begins with its name.
    while let Some(line) = lines.next()? {
        match line.trim_start().chars().next() {
            None | Some('#') => {}
            Some(c) if c.is_alphabetic() => break,
            Some(_) => return Err(lines.wrong(format!("follows the last of {count} atoms"))),
        }
    }
    Ok((atoms, Some(SimulationBox { edges, wrap: [PERIODIC; 3] })))
}

/// Passes over a section that comes before the atoms: a blank line, entries, a blank line.
fn skip_section(lines: &mut FileLines) -> Result<()> {
    let mut inside = false;
    while let Some(line) = lines.next()? {
        let empty = line.trim().is_empty();
        if empty && inside {
            return Ok(());
        }
        inside |= !empty;
    }
    Err(lines.ended("the section `Atoms`"))
}

fn dump_frame(lines: &mut FileLines, first: &str) -> Result<AtomsFrame> {
    let (mut count, mut cell) = (None, None);
    let mut head = first.to_string();
    loop {
        let words: Vec<&str> = head.split_whitespace().skip(1).collect();
        match &words[..] {
            ["NUMBER", "OF", "ATOMS"] => {
                let word = lines.words("the number of atoms")?;
                count = Some(count_of(lines, word.first().map_or("", |w| w))?);
            }
            ["BOX", "BOUNDS", rest @ ..] => cell = Some(dump_box(lines, rest)?),
            ["ATOMS", columns @ ..] => {
                let (Some(count), Some((cell, low))) = (count, cell.take()) else {
                    return Err(lines.wrong("begins the atoms before their number and the box"));
                };
                let columns: Vec<String> = columns.iter().map(|c| c.to_string()).collect();
                let atoms = dump_atoms(lines, count, &columns, (&cell, low))?;
                return Ok((atoms, Some(cell)));
            }
            // the time and its units
            ["TIMESTEP" | "TIME" | "UNITS", ..] => {
                lines.words("what the dump says here")?;
            }
            _ => return Err(lines.wrong(format!("is `{head}`, and no item of a dump"))),
        }
        head = lines.next()?.map(str::to_string).ok_or_else(|| lines.ended("an item of a dump"))?;
        if !head.starts_with("ITEM:") {
            return Err(lines.wrong("is no item, where one should begin"));
        }
    }
}

/// The box of a dump and its lower corner. Bounds of a tilted box are those of the box around it.
fn dump_box(lines: &mut FileLines, told: &[&str]) -> Result<(SimulationBox, [f64; 3])> {
    let tilted = told.starts_with(&["xy", "xz", "yz"]);
    let ends = if tilted { &told[3..] } else { told };
    if told.first().is_some_and(|word| word.starts_with("abc")) {
        return Err(lines.wrong("has a general triclinic box").hint("dump with tilts (xy xz yz)"));
    }
    let mut wrap = [PERIODIC; 3];
    for (wrap, end) in wrap.iter_mut().zip(ends) {
        if *end != "pp" {
            *wrap = Wrap::Open;
        }
    }
    let (mut low, mut high, mut tilts) = ([0.0; 3], [0.0; 3], [0.0; 3]);
    for d in 0..3 {
        let words = lines.words("an end of the box")?;
        if words.len() != if tilted { 3 } else { 2 } {
            return Err(lines.wrong(format!("has {} numbers of the box", words.len())));
        }
        low[d] = lines.real(&words[0], "an end of the box")?;
        high[d] = lines.real(&words[1], "an end of the box")?;
        if tilted {
            tilts[d] = lines.real(&words[2], "a tilt of the box")?;
        }
    }
    let [xy, xz, yz] = tilts;
    low[0] -= [0.0, xy, xz, xy + xz].into_iter().fold(f64::INFINITY, f64::min);
    high[0] -= [0.0, xy, xz, xy + xz].into_iter().fold(f64::NEG_INFINITY, f64::max);
    low[1] -= yz.min(0.0);
    high[1] -= yz.max(0.0);
    if (0..3).any(|d| high[d] <= low[d]) {
        return Err(lines.wrong("ends a box without volume"));
    }
    let lengths = [high[0] - low[0], high[1] - low[1], high[2] - low[2]];
    Ok((SimulationBox { edges: edges(lengths, tilts), wrap }, low))
}

fn dump_atoms(
    lines: &mut FileLines,
    count: usize,
    columns: &[String],
    (cell, low): (&SimulationBox, [f64; 3]),
) -> Result<Vec<Atom>> {
    let column = |name: &str| columns.iter().position(|c| c == name);
    let places = [
        ("x", "y", "z", false),
        ("xu", "yu", "zu", false),
        ("xs", "ys", "zs", true),
        ("xsu", "ysu", "zsu", true),
    ];
    let found =
        places.iter().find_map(|(x, y, z, scaled)| Some(([column(x)?, column(y)?, column(z)?], *scaled)));
    let Some((at, scaled)) = found else {
        return Err(lines.wrong("names no coordinates among its columns").hint("dump x y z, or xs ys zs"));
    };
    let (id, kind, symbol, charge) = (column("id"), column("type"), column("element"), column("q"));
    if kind.is_none() && symbol.is_none() {
        return Err(lines.wrong("names no `type` among its columns"));
    }
    let mut atoms = Vec::with_capacity(count);
    for number in 1..=count {
        let words = lines.words("an atom")?;
        if words.len() != columns.len() {
            return Err(lines.wrong(format!("has {} columns, not {}", words.len(), columns.len())));
        }
        let mut x = place(lines, &at.map(|c| words[c].clone()))?;
        if scaled {
            let s = x;
            x = low;
            for (s, edge) in s.iter().zip(&cell.edges) {
                x.iter_mut().zip(edge).for_each(|(x, e)| *x += s * e);
            }
        }
        atoms.push(Atom {
            id: id.map_or(Ok(number as i64), |c| lines.number(&words[c], "the number of an atom"))?,
            kind: match (kind, symbol) {
                (Some(c), _) => Species::Number(lines.number(&words[c], "the type of an atom")?),
                (None, c) => Species::Symbol(words[c.unwrap_or(0)].clone()),
            },
            charge: charge.map(|c| lines.real(&words[c], "a charge")).transpose()?,
            position: x,
        });
    }
    Ok(atoms)
}

/// What the comment of an extended XYZ file says, as `key=value`: values in quotes or brackets may have blanks, and
/// blanks may stand beside the equals sign.
fn keys(comment: &str) -> Vec<(String, String)> {
    let mut said = Vec::new();
    let mut rest = comment;
    while let Some((before, behind)) = rest.split_once('=') {
        let key = before.split_whitespace().next_back().unwrap_or_default().trim_matches(['"', '\'']);
        let behind = behind.trim_start();
        let ends = |close: char| behind[1..].find(close).map_or(behind.len(), |at| at + 1);
        let nested = |open: char, close: char| {
            let mut depth = 0usize;
            let last = behind.char_indices().find(|(_, c)| {
                depth += usize::from(*c == open);
                depth -= usize::from(*c == close);
                depth == 0
            });
            last.map_or(behind.len(), |(at, _)| at)
        };
        let end = match behind.chars().next() {
            Some(quote @ ('"' | '\'')) => ends(quote),
            Some('[') => nested('[', ']'),
            Some('{') => nested('{', '}'),
            _ => behind.find(char::is_whitespace).unwrap_or(behind.len()),
        };
        said.push((key.to_string(), behind[..end].trim_start_matches(['"', '\'']).to_string()));
        rest = &behind[end..];
    }
    said
}

/// Whether such a word says that an edge repeats.
fn repeats(word: &str) -> bool {
    ["T", "1", "True", "true", "TRUE"].contains(&word)
}

/// The entries of an array in such a comment.
fn parts(value: &str) -> impl Iterator<Item = &str> {
    value.split(|c: char| c.is_whitespace() || "[]{},".contains(c)).filter(|part| !part.is_empty())
}

fn xyz_frame(lines: &mut FileLines, first: &str) -> Result<AtomsFrame> {
    let count = count_of(lines, first.trim())?;
    let comment =
        lines.next()?.map(str::to_string).ok_or_else(|| lines.ended("the comment of an XYZ file"))?;
    let said = keys(&comment);
    let value =
        |key: &str| said.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value);
    let cell = match value("Lattice") {
        None if value("pbc").is_some_and(|pbc| parts(pbc).any(repeats)) => {
            return Err(lines.wrong("says along which edges it repeats (pbc), and names no cell (Lattice)"));
        }
        None => None,
        Some(numbers) => {
            let all: Vec<f64> =
                parts(numbers).map(|word| lines.real(word, "a number of the cell")).collect::<Result<_>>()?;
            if all.len() != 9 {
                return Err(lines.wrong(format!("has a cell of {} numbers, not 9", all.len())));
            }
            let mut wrap = [PERIODIC; 3];
            let pbc: Vec<&str> = value("pbc").map_or(Vec::new(), |value| parts(value).collect());
            if ![0, 3].contains(&pbc.len()) {
                return Err(
                    lines.wrong(format!("says {} times in pbc whether it repeats, not 3 times", pbc.len()))
                );
            }
            for (wrap, word) in wrap.iter_mut().zip(pbc) {
                *wrap = match word {
                    _ if repeats(word) => PERIODIC,
                    "F" | "0" | "False" | "false" | "FALSE" => Wrap::Open,
                    _ => return Err(lines.wrong(format!("says `{word}` in pbc, which is neither T nor F"))),
                };
            }
            Some(SimulationBox {
                edges: [0, 1, 2].map(|v| [all[3 * v], all[3 * v + 1], all[3 * v + 2]]),
                wrap,
            })
        }
    };
    // Other columns may stand before the coordinates if the comment says so.
    let mut start = (0, 1);
    if let Some(told) = value("Properties") {
        let triples: Vec<&str> = told.split(':').collect();
        let (mut at, mut found) = (0, (None, None));
        for part in triples.chunks(3) {
            let [name, _, width] = part else {
                return Err(lines.wrong(format!("has properties `{told}`, which are no triples")));
            };
            match *name {
                "species" => found.0 = Some(at),
                "pos" => found.1 = Some(at),
                _ => {}
            }
            at += lines.number::<usize>(width, "the number of columns of a property")?.min(1 << 20);
        }
        let (Some(species), Some(pos)) = found else {
            return Err(lines.wrong("names no `species` and `pos` among its properties"));
        };
        start = (species, pos);
    }
    let mut atoms = Vec::with_capacity(count);
    for number in 1..=count {
        let words = lines.words("an atom")?;
        if words.len() < start.1 + 3 || words.len() <= start.0 {
            return Err(lines.wrong(format!("has {} columns, too few for an atom", words.len())));
        }
        atoms.push(Atom {
            id: number as i64,
            kind: Species::Symbol(words[start.0].clone()),
            charge: None,
            position: place(lines, &words[start.1..])?,
        });
    }
    Ok((atoms, cell))
}
