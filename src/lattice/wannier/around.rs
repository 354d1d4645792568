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

/// Reads the blocks of a `.win` file that describe the crystal.
///
/// # Errors
/// When the file is missing, or a line of such a block is malformed.
pub fn read_wannier_input(path: &Path) -> Result<WannierInput> {
    let mut lines = FileLines::open(path)?;
    let mut input = WannierInput::default();
    while let Some(words) = next_words(&mut lines)? {
        if words.len() < 2 || words[0] != "begin" {
            continue;
        }
        let name = words[1].clone();
        if name == "kpoint_path" {
            input.path.get_or_insert_default();
        }
        let (mut block, mut unit) = (Vec::new(), 1.0);
        loop {
            let Some(words) = next_words(&mut lines)? else {
                return Err(lines.ended(&format!("`end {name}`")));
            };
            if words[0] == "end" {
                break;
            }
            match name.as_str() {
                "unit_cell_cart" if words.len() == 1 => unit = unit_of(&lines, &words[0])?,
                "unit_cell_cart" => block.push(vector(&lines, &words)?.map(|x| unit * x).to_vec()),
                "kpoint_path" => input.path.get_or_insert_default().push(path_line(&lines, &words)?),
                _ => {}
            }
        }
        if name == "unit_cell_cart" {
            if block.len() != 3 {
                return Err(lines.wrong(format!("ends a cell of {} vectors", block.len())));
            }
            input.vectors = Some(block);
        }
    }
    Ok(input)
}

/// The words of the next line that has any, without comments; names of labels keep their case, keywords lose it.
fn next_words(lines: &mut FileLines) -> Result<Option<Vec<String>>> {
    while let Some(line) = lines.next()? {
        let line = line.split(['!', '#']).next().unwrap_or_default();
        // Wannier90 reads these blocks as lists of Fortran, whose items commas may divide.
        let divides = |c: char| c.is_whitespace() || c == ',';
        let mut words: Vec<String> =
            line.split(divides).filter(|word| !word.is_empty()).map(str::to_string).collect();
        if let Some(first) = words.first().map(|word| word.to_lowercase()) {
            if first == "begin" || first == "end" {
                words.iter_mut().for_each(|word| *word = word.to_lowercase());
            }
            return Ok(Some(words));
        }
    }
    Ok(None)
}

/// Angstrom in the unit of a cell.
fn unit_of(lines: &FileLines, name: &str) -> Result<f64> {
    match name.to_lowercase().as_str() {
        "ang" | "angstrom" => Ok(1.0),
        "bohr" => Ok(BOHR),
        other => Err(lines.wrong(format!("has the unit `{other}`, and there are `ang` and `bohr`"))),
    }
}

fn vector(lines: &FileLines, words: &[String]) -> Result<[f64; 3]> {
    let [x, y, z] = words else {
        return Err(lines.wrong("should hold the three coordinates of a Bravais vector"));
    };
    let real = |x: &String| lines.real(x, "a coordinate");
    Ok([real(x)?, real(y)?, real(z)?])
}

fn path_line(lines: &FileLines, words: &[String]) -> Result<[(String, Vec<f64>); 2]> {
    if words.len() != 8 {
        return Err(lines.wrong("should hold two names with three coordinates each"));
    }
    let corner = |words: &[String]| -> Result<(String, Vec<f64>)> {
        let k = words[1..].iter().map(|x| lines.real(x, "a coordinate")).collect::<Result<_>>()?;
        Ok((words[0].clone(), k))
    };
    Ok([corner(&words[..4])?, corner(&words[4..])?])
}
