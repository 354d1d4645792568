//! Files that Wannier90 leaves beside a Hamiltonian: `_centres.xyz`, `.wout` and `.win`.

use std::path::Path;

use crate::error::{Error, Result};
use crate::lattice::lines::FileLines;
use crate::number::BOHR;

/// The centres in a `_centres.xyz` file or in the last state of a `.wout` file, angstrom.
pub(super) fn read_centres(path: &Path, orbitals: usize) -> Result<Vec<Vec<f64>>> {
    let of_run = path.extension().is_some_and(|end| end == "wout");
    let centres = if of_run { of_wout(path)? } else { of_xyz(path)? };
    if centres.len() != orbitals {
        return Err(Error::file(format!(
            "`{}` has {} centres{}, and the Hamiltonian {orbitals} Wannier functions",
            path.display(),
            centres.len(),
            if of_run { "" } else { " `X`" }
        )));
    }
    Ok(centres)
}

/// A number of lines, a comment, and lines `X x y z`, then the atoms.
fn of_xyz(path: &Path) -> Result<Vec<Vec<f64>>> {
    let mut lines = FileLines::open(path)?;
    let words = lines.words("the number of points")?;
    let points: usize = match &words[..] {
        [word] => lines.number(word, "the number of points")?,
        _ => return Err(lines.wrong("should hold one number, that of the points")),
    };
    lines.words("a comment")?;
    let mut centres = Vec::new();
    for point in 0..points {
        let words = lines.words(&format!("point {}", point + 1))?;
        let [name, x, y, z] = &words[..] else {
            return Err(
                lines.wrong(format!("has {} words, and a point has 4: a name and a position", words.len()))
            );
        };
        if name == "X" {
            centres.push([x, y, z].iter().map(|x| lines.real(x, "a coordinate")).collect::<Result<_>>()?);
        }
    }
    Ok(centres)
}

/// Lines `WF centre and spread  n  ( x, y, z )  spread` behind the last "Final State".
fn of_wout(path: &Path) -> Result<Vec<Vec<f64>>> {
    let mut lines = FileLines::open(path)?;
    let (mut centres, mut unit) = (None::<Vec<Vec<f64>>>, 1.0);
    while let Some(line) = lines.next()? {
        let line = line.trim().to_string();
        if line.contains("Length Unit") {
            unit = if line.to_lowercase().contains("bohr") { BOHR } else { 1.0 };
        } else if line == "Final State" {
            centres = Some(Vec::new());
        } else if let (Some(centres), true) = (&mut centres, line.starts_with("WF centre and spread")) {
            let inside = line.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
            let Some((inside, _)) = inside else { return Err(lines.wrong("has no centre in brackets")) };
            let place: Vec<f64> = inside
                .split(',')
                .map(|x| Ok(lines.real(x.trim(), "a coordinate")? * unit))
                .collect::<Result<_>>()?;
            if place.len() != 3 {
                return Err(lines.wrong(format!("has a centre of {} coordinates", place.len())));
            }
            centres.push(place);
        }
    }
    centres.ok_or_else(|| {
        Error::file(format!("`{}` has no final state", path.display()))
            .hint("the run of Wannier90 may not have ended")
    })
}

/// What a `.win` file says of a crystal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WannierInput {
    /// The block `unit_cell_cart`, angstrom.
    pub vectors: Option<Vec<Vec<f64>>>,
    /// The block `kpoint_path`: lines from one named momentum to another, in units of the reciprocal vectors.
    pub path: Option<Vec<[(String, Vec<f64>); 2]>>,
}

/// Reads the blocks of a `.win` file that describe the crystal, as Wannier90 finds them: a block begins at a line that
/// starts with `begin` and contains its name, so `begin : name` and `begin=name` are other ways to write it.
///
/// # Errors
/// When the file is missing, or a line of such a block is malformed.
pub fn read_wannier_input(path: &Path) -> Result<WannierInput> {
    let mut lines = FileLines::open(path)?;
    let mut input = WannierInput::default();
    while let Some(line) = next_line(&mut lines)? {
        let Some(name) =
            ["unit_cell_cart", "kpoint_path"].into_iter().find(|name| marks(&line, "begin", name))
        else {
            continue;
        };
        let second = if name == "kpoint_path" { input.path.is_some() } else { input.vectors.is_some() };
        if second {
            return Err(lines.wrong(format!("begins a second block `{name}`")));
        }
        let (mut path, mut cell, mut unit) = (Vec::new(), Vec::new(), 1.0);
        loop {
            let Some(line) = next_line(&mut lines)? else {
                return Err(lines.ended(&format!("`end {name}`")));
            };
            if marks(&line, "end", name) || line.trim().eq_ignore_ascii_case("end") {
                break;
            }
            let items = items(&line);
            match name {
                "kpoint_path" => path.push(path_line(&lines, &items)?),
                _ if cell.is_empty() && items.len() < 3 => unit = unit_of(&lines, line.trim())?,
                _ => cell.push(vector(&lines, &items)?.map(|x| unit * x).to_vec()),
            }
        }
        if name == "kpoint_path" {
            input.path = Some(path);
        } else if cell.len() == 3 {
            input.vectors = Some(cell);
        } else {
            return Err(lines.wrong(format!("ends a cell of {} vectors", cell.len())));
        }
    }
    Ok(input)
}

/// Whether a line begins or ends a block of this name.
fn marks(line: &str, word: &str, name: &str) -> bool {
    let line = line.trim_start().to_lowercase();
    line.starts_with(word) && line.contains(name)
}

/// The next line that holds anything beside a comment, without the comment.
fn next_line(lines: &mut FileLines) -> Result<Option<String>> {
    while let Some(line) = lines.next()? {
        let line = line.split(['!', '#']).next().unwrap_or_default();
        if !line.trim().is_empty() {
            return Ok(Some(line.to_string()));
        }
    }
    Ok(None)
}

/// The items of a line as Fortran's list-directed input takes them: blanks or one comma between them, texts in
/// quotes, `3*0.0` for three times the same, and a slash that ends the list.
fn items(line: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('/') {
        let (item, after) = match rest.chars().next().filter(|c| "'\"".contains(*c)) {
            Some(quote) => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
            None => {
                let end = rest.find(|c: char| c.is_whitespace() || ",/".contains(c)).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        match item.split_once('*').map(|(count, value)| (count.parse(), value)) {
            Some((Ok(count @ 1..=8), value)) => items.extend((0..count).map(|_| value.to_string())),
            _ => items.push(item.to_string()),
        }
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
    items
}

/// Angstrom in the unit of a cell.
fn unit_of(lines: &FileLines, name: &str) -> Result<f64> {
    let name = name.to_lowercase();
    if name.contains("ang") {
        Ok(1.0)
    } else if name.contains("bohr") {
        Ok(BOHR)
    } else {
        Err(lines.wrong(format!("has the unit `{name}`, and there are `ang` and `bohr`")))
    }
}

fn vector(lines: &FileLines, words: &[String]) -> Result<[f64; 3]> {
    let [x, y, z, ..] = words else {
        return Err(lines.wrong("should hold the three coordinates of a Bravais vector"));
    };
    let real = |x: &String| lines.real(x, "a coordinate");
    Ok([real(x)?, real(y)?, real(z)?])
}

fn path_line(lines: &FileLines, words: &[String]) -> Result<[(String, Vec<f64>); 2]> {
    // As Wannier90, without a look at what follows.
    if words.len() < 8 {
        return Err(lines.wrong("should hold two names with three coordinates each"));
    }
    let corner = |words: &[String]| -> Result<(String, Vec<f64>)> {
        let k = words[1..].iter().map(|x| lines.real(x, "a coordinate")).collect::<Result<_>>()?;
        Ok((words[0].clone(), k))
    };
    Ok([corner(&words[..4])?, corner(&words[4..8])?])
}
