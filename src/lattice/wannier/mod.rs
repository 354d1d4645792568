//! Tight-binding models from files of Wannier90: matrix elements `<0 m| H |R n>` on a Wigner-Seitz supercell, each to
//! be divided by the degeneracy of its R, and shared out among the nearest images of its Wannier functions where a file
//! lists them (Pizzi et al., J. Phys.: Condens. Matter 32, 165902 (2020), section 2.3).

mod around;
mod elements;

use std::path::{Path, PathBuf};

use super::block::OrbitalBlock;
use super::lattice::{Lattice, LatticeSite, no_axis};
use super::model::Model;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::number::C64;
pub use around::{WannierInput, read_wannier_input};
use elements::{CellBlocks, WannierElements};

/// Where the Wannier functions lie.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Centres {
    /// All on the site of their cell.
    #[default]
    Nowhere,
    /// Where the Hamiltonian's own file says, a `_tb.dat` file.
    Own,
    /// In a `_centres.xyz` or `.wout` file, in the unit of the Bravais vectors.
    File(PathBuf),
    /// At these places, one a Wannier function.
    At(Vec<Vec<f64>>),
}

/// How a file becomes a model.
pub struct WannierOptions {
    /// Cells in the three directions.
    pub cells: [usize; 3],
    /// Boundaries, one per direction or one for all.
    pub boundary: Vec<Wrap>,
    /// Bravais vectors, in lattice constants; by default those of the file, or the cube's.
    pub vectors: Option<Vec<Vec<f64>>>,
    /// Places of the Wannier functions.
    pub centres: Centres,
    /// The `_wsvec.dat` file that says which images are nearest.
    pub nearest: Option<PathBuf>,
    /// Matrix elements smaller than this are left out, electron volts.
    pub cutoff: f64,
    /// The energy that becomes zero, electron volts.
    pub fermi: f64,
}

impl Default for WannierOptions {
    fn default() -> Self {
        WannierOptions {
            cells: [1; 3],
            boundary: vec![Wrap::Phase(C64::ONE)],
            vectors: None,
            centres: Centres::default(),
            nearest: None,
            cutoff: 0.0,
            fermi: 0.0,
        }
    }
}

/// Largest deviation of H(R) from the conjugate of H(-R), electron volts.
const HERMITIAN: f64 = 1e-4;

/// The model in a `_hr.dat` or `_tb.dat` file: one site a cell with all Wannier functions as its orbitals.
///
/// # Errors
/// When the file is missing, truncated, malformed (the line is named) or not Hermitian, or the options do not fit.
pub fn read_wannier90(path: &Path, options: &WannierOptions) -> Result<Model> {
    let found = elements::read(path)?;
    let centres = centres(&found, path, options)?;
    let mut blocks = found.hamiltonian.clone();
    if options.fermi != 0.0 {
        let own = blocks.entry([0; 3]).or_insert_with(|| vec![C64::ZERO; found.orbitals * found.orbitals]);
        (0..found.orbitals).for_each(|m| own[m * found.orbitals + m] -= options.fermi);
    }
    model(&found, &blocks, centres, path, options, HERMITIAN)
}

/// The Hermitian part of the matrix elements of the Cartesian coordinate `axis` in a `_tb.dat` file, less the centres,
/// as a model on the same lattice (angstrom): with it `A`, the velocity in the basis of Wannier functions is
/// `v + i (H A - A H)`, where `v` takes each function at its centre (Wang, Yates, Souza and Vanderbilt, Phys. Rev. B
/// 74, 195118 (2006), eq. 31).
///
/// # Errors
/// As [`read_wannier90`], and for a file without positions.
pub fn read_wannier90_position(path: &Path, axis: usize, options: &WannierOptions) -> Result<Model> {
    let found = elements::read(path)?;
    let centres = centres(&found, path, options)?;
    let Some(positions) = &found.positions else {
        return Err(Error::file(format!("`{}` has no matrix elements of positions", path.display()))
            .hint("a `_tb.dat` file has them; Wannier90 writes it with `write_tb = true`"));
    };
    let Some(blocks) = positions.get(axis) else {
        return Err(no_axis(axis, 3));
    };
    let mut blocks = blocks.clone();
    if let (Some(own), Some(centres)) = (blocks.get_mut(&[0; 3]), &centres) {
        centres.iter().enumerate().for_each(|(m, place)| own[m * found.orbitals + m] -= place[axis]);
    }
    // Finite differences of overlaps leave positions that are Hermitian to some 1e-2 angstrom only.
    model(&found, &blocks, centres, path, options, f64::INFINITY)
}

/// Where the Wannier functions are; none where all lie on their site.
fn centres(found: &WannierElements, path: &Path, options: &WannierOptions) -> Result<Option<Vec<Vec<f64>>>> {
    let orbitals = found.orbitals;
    Ok(match &options.centres {
        Centres::Nowhere => None,
        Centres::File(file) => Some(around::read_centres(file, orbitals)?),
        Centres::At(places) => Some(places.clone()),
        Centres::Own => {
            let own = |positions: &[CellBlocks; 3]| {
                let at = |axis: usize, m: usize| {
                    positions[axis].get(&[0; 3]).map_or(0.0, |block| block[m * orbitals + m].re)
                };
                (0..orbitals).map(|m| (0..3).map(|axis| at(axis, m)).collect()).collect()
            };
            let missing = || Error::file(format!("`{}` has no centres of Wannier functions", path.display()));
            Some(found.positions.as_ref().map(own).ok_or_else(missing)?)
        }
    })
}

/// A model with the elements of one operator.
fn model(
    found: &WannierElements,
    blocks: &CellBlocks,
    centres: Option<Vec<Vec<f64>>>,
    path: &Path,
    options: &WannierOptions,
    tolerance: f64,
) -> Result<Model> {
    let orbitals = found.orbitals;
    let cube = || (0..3).map(|d| (0..3).map(|k| f64::from(u8::from(k == d))).collect()).collect();
    let vectors = options.vectors.clone().or_else(|| found.vectors.clone()).unwrap_or_else(cube);
    let origin = LatticeSite { name: "A".into(), position: vec![0.0; vectors.first().map_or(3, Vec::len)] };
    let lattice = Lattice::custom("wannier90", vectors, vec![origin], Vec::new(), options.cells.to_vec())?
        .boundary(&options.boundary)?;
    let mut model = Model::new(lattice, orbitals)?;
    if let Some(places) = centres {
        model.place_orbitals(places)?;
    }
    let near = match &options.nearest {
        Some(file) => elements::bring_near(blocks, orbitals, &elements::read_nearest(file, orbitals)?, file)?,
        None => blocks.clone(),
    };
    let at = |r: &[i64; 3], m: usize, n: usize| near.get(r).map_or(C64::ZERO, |b| b[m * orbitals + n]);
    for r in near.keys() {
        let back = r.map(|x| -x);
        // Each pair of R and -R once: the model adds the conjugate.
        if *r < back && near.contains_key(&back) {
            continue;
        }
        let mut entries = Vec::with_capacity(orbitals * orbitals);
        for m in 0..orbitals {
            for n in 0..orbitals {
                let (there, here) = (at(r, m, n), at(&back, n, m).conj());
                if (there - here).norm() > tolerance {
                    return Err(Error::file(format!(
                        "`{}` is not Hermitian: <0 {}|O|R {}> at R = {r:?} and its conjugate at -R differ by {:.1e}",
                        path.display(),
                        m + 1,
                        n + 1,
                        (there - here).norm()
                    ))
                    .hint("elements may be missing, or printed with too few digits"));
                }
                let z = (there + here) * 0.5;
                entries.push(if z.norm() < options.cutoff { C64::ZERO } else { z });
            }
        }
        if *r == [0; 3] {
            model.onsite(&OrbitalBlock::new(orbitals, entries)?)?;
        } else if entries.iter().any(|z| *z != C64::ZERO) {
            // <0 m|O|R n> takes a particle from the cell at R to that at 0.
            model.hop(&back, &OrbitalBlock::new(orbitals, entries)?)?;
        }
    }
    Ok(model)
}
