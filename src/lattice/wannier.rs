//! Tight-binding models from the `_hr.dat` files of Wannier90: matrix elements <0 m| H |R n> on a Wigner-Seitz supercell,
//! each to be divided by the degeneracy of its R (Wannier90 user guide, "seedname_hr.dat").

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::block::Block;
use super::lattice::{Lattice, Site};
use super::lines::Lines;
use super::model::Model;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::number::{C64, memory};

/// Where the Wannier functions lie.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Centres {
    /// All on the site of their cell.
    #[default]
    Nowhere,
    /// In a `_centres.xyz` file, in the unit of the Bravais vectors.
    File(PathBuf),
    /// At these places, one a Wannier function.
    At(Vec<Vec<f64>>),
}

/// How a file becomes a model.
pub struct WannierOptions {
    /// Cells in the three directions.
    pub cells: [usize; 3],
    /// Boundaries, one a direction or one for all.
    pub boundary: Vec<Wrap>,
    /// Bravais vectors, in lattice constants; the cube's by default.
    pub vectors: Vec<Vec<f64>>,
    /// Places of the Wannier functions.
    pub centres: Centres,
    /// Matrix elements smaller than this are left out, in the unit of the file.
    pub cutoff: f64,
    /// The energy that becomes zero, in the unit of the file.
    pub fermi: f64,
}

impl Default for WannierOptions {
    fn default() -> Self {
        let unit = |d: usize| (0..3).map(|k| if k == d { 1.0 } else { 0.0 }).collect();
        WannierOptions {
            cells: [1; 3],
            boundary: vec![Wrap::Phase(C64::ONE)],
            vectors: (0..3).map(unit).collect(),
            centres: Centres::default(),
            cutoff: 0.0,
            fermi: 0.0,
        }
    }
}

/// Largest deviation of H(R) from the conjugate of H(-R), in the unit of the file.
const HERMITIAN: f64 = 1e-4;

/// The model in a `_hr.dat` file: one site a cell with all Wannier functions as its orbitals.
///
/// # Errors
/// When the file is missing, truncated, malformed (the line is named) or not Hermitian, or the options do not fit.
pub fn read_wannier90(path: &Path, options: &WannierOptions) -> Result<Model> {
    let (orbitals, elements) = read(path)?;
    let origin = Site { name: "A".into(), position: vec![0.0; options.vectors.first().map_or(3, Vec::len)] };
    let lattice = Lattice::custom(
        "wannier90",
        options.vectors.clone(),
        vec![origin],
        Vec::new(),
        options.cells.to_vec(),
    )?
    .boundary(&options.boundary)?;
    let mut model = Model::new(lattice, orbitals)?;
    match &options.centres {
        Centres::Nowhere => {}
        Centres::File(path) => model.place_orbitals(read_centres(path, orbitals)?)?,
        Centres::At(places) => model.place_orbitals(places.clone())?,
    }
    let at = |r: &[i64; 3], m: usize, n: usize| elements.get(r).map_or(C64::ZERO, |b| b[m * orbitals + n]);
    for r in elements.keys() {
        let back = r.map(|x| -x);
        // Each pair of R and -R once: the model adds the conjugate.
        if *r < back && elements.contains_key(&back) {
            continue;
        }
        let mut entries = Vec::with_capacity(orbitals * orbitals);
        for m in 0..orbitals {
            for n in 0..orbitals {
                let (there, here) = (at(r, m, n), at(&back, n, m).conj());
                if (there - here).norm() > HERMITIAN {
                    return Err(Error::file(format!(
                        "`{}` is not Hermitian: <0 {}|H|R {}> at R = {r:?} and its conjugate at -R differ by {:.1e}",
                        path.display(),
                        m + 1,
                        n + 1,
                        (there - here).norm()
                    )));
                }
                let z = (there + here) * 0.5;
                entries.push(if z.norm() < options.cutoff { C64::ZERO } else { z });
            }
        }
        if *r == [0; 3] {
            (0..orbitals).for_each(|m| entries[m * orbitals + m] -= options.fermi);
            model.onsite(&Block::new(orbitals, entries)?)?;
        } else if entries.iter().any(|z| *z != C64::ZERO) {
            // <0 m|H|R n> takes a particle from the cell at R to that at 0.
            model.hop(&back, &Block::new(orbitals, entries)?)?;
        }
    }
    Ok(model)
}

/// The Wannier centres of a `_centres.xyz` file: a number of lines, a comment, and lines `X x y z`, then the atoms.
fn read_centres(path: &Path, orbitals: usize) -> Result<Vec<Vec<f64>>> {
    let mut lines = Lines::open(path)?;
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
            let place = [x, y, z].iter().map(|x| lines.real(x, "a coordinate")).collect::<Result<_>>()?;
            centres.push(place);
        }
    }
    if centres.len() != orbitals {
        return Err(Error::file(format!(
            "`{}` has {} centres `X`, and the Hamiltonian {orbitals} Wannier functions",
            path.display(),
            centres.len()
        )));
    }
    Ok(centres)
}

/// Number of Wannier functions, and the matrices by R with their degeneracies divided out.
fn read(path: &Path) -> Result<(usize, BTreeMap<[i64; 3], Vec<C64>>)> {
    let mut lines = Lines::open(path)?;
    lines.words("a comment")?;
    let mut one = |what: &str, most: usize| -> Result<usize> {
        let words = lines.words(what)?;
        match &words[..] {
            [word] => {
                let n: usize = lines.number(word, what)?;
                if n == 0 || n > most {
                    return Err(lines.wrong(format!("gives {n} as {what}, outside 1 to {most}")));
                }
                Ok(n)
            }
            _ => Err(lines
                .wrong(format!("should hold one number, {what}"))
                .hint("is it a Wannier90 `_hr.dat` file? Its first line is a comment")),
        }
    };
    let orbitals = one("the number of Wannier functions", 4096)?;
    let points = one("the number of cells R", 100_000_000)?;
    memory::ensure(
        16 * (orbitals * orbitals) as u128 * points as u128,
        &format!("{points} matrices of {orbitals} Wannier functions"),
    )?;
    let mut weights = Vec::with_capacity(points);
    while weights.len() < points {
        for word in lines.words("the degeneracies of the cells R")? {
            let weight: u32 = lines.number(&word, "a degeneracy")?;
            if weight == 0 {
                return Err(lines.wrong("has a degeneracy of 0"));
            }
            weights.push(f64::from(weight));
        }
    }
    if weights.len() > points {
        return Err(lines.wrong(format!("has more degeneracies than the {points} cells R")));
    }
    let mut elements = BTreeMap::new();
    for (k, weight) in weights.iter().enumerate() {
        let mut at = None;
        let mut block = vec![C64::ZERO; orbitals * orbitals];
        let mut seen = vec![false; orbitals * orbitals];
        for element in 0..orbitals * orbitals {
            let words = lines.words(&format!("matrix element {} of cell {}", element + 1, k + 1))?;
            let [x, y, z, m, n, re, im] = &words[..] else {
                return Err(lines.wrong(format!(
                    "has {} numbers, and a matrix element has 7: R, two indices, real and imaginary part",
                    words.len()
                )));
            };
            let mut r = [0i64; 3];
            for (to, word) in r.iter_mut().zip([x, y, z]) {
                *to = lines.number(word, "a component of R")?;
            }
            if *at.get_or_insert(r) != r {
                return Err(lines.wrong("begins another R before all elements of the last are there"));
            }
            let index = |word: &String| -> Result<usize> {
                let i: usize = lines.number(word, "the number of a Wannier function")?;
                if i == 0 || i > orbitals {
                    return Err(lines.wrong(format!("has Wannier function {i}, outside 1 to {orbitals}")));
                }
                Ok(i - 1)
            };
            let value = C64::new(lines.real(re, "a real part")?, lines.real(im, "an imaginary part")?);
            let place = index(m)? * orbitals + index(n)?;
            if std::mem::replace(&mut seen[place], true) {
                return Err(lines.wrong(format!("has element {m} {n} at R = {r:?} a second time")));
            }
            block[place] = value / weight;
        }
        if let Some(r) = at
            && elements.insert(r, block).is_some()
        {
            return Err(lines.wrong(format!("ends a second block for R = {r:?}")));
        }
    }
    Ok((orbitals, elements))
}
