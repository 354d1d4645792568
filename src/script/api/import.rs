//! Matrices and models from files of other programs, and operators to files.

use std::path::{Path, PathBuf};

use rhai::Array;
use rhai::plugin::*;

use super::lattice::{boundaries_of, ints, reals};
use super::model::{ScriptModel, single_precision};
use super::table::manifest;
use crate::error::{Error, Result};
use crate::lattice::{Centres, WannierOptions, read_matrix_market, read_wannier90};
use crate::operator::{Format, Operator, Stored};
use crate::output::files;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Registers the functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_global_module(exported_module!(import_functions).into());
    rooms.room("lattice", exported_module!(wannier_functions));
}

/// What a script saved, it finds again; everything else is named as the user sees it.
fn input_path(file: &str) -> Result<PathBuf> {
    let saved = session()?.output_path(file);
    Ok(if crate::ranks::told(saved.exists())? { saved } else { file.into() })
}

fn wannier_options(o: &Options) -> Result<WannierOptions> {
    let defaults = WannierOptions::default();
    let cells = match o.maybe::<Array>("cells") {
        None => defaults.cells,
        Some(cells) => {
            let sizes = ints(&cells, "`cells`")?;
            let sizes: Vec<usize> = sizes.into_iter().filter_map(|n| usize::try_from(n).ok()).collect();
            let wrong = || Error::input("option `cells` takes three whole numbers, like [10, 10, 1]");
            sizes.try_into().map_err(|_| wrong())?
        }
    };
    let boundary = o.given("boundary").map(|b| boundaries_of(&b)).transpose()?;
    let vectors = match o.maybe::<Array>("vectors") {
        None => defaults.vectors,
        Some(vectors) if vectors.len() == 3 => {
            vectors.iter().map(|v| reals(v, "a Bravais vector")).collect::<Result<_>>()?
        }
        Some(_) => return Err(Error::input("option `vectors` takes three Bravais vectors")),
    };
    Ok(WannierOptions {
        cells,
        boundary: boundary.unwrap_or(defaults.boundary),
        vectors,
        centres: Centres::Nowhere,
        cutoff: o.float("cutoff")?,
        fermi: o.float("fermi")?,
    })
}

/// Where the Wannier functions of a `_hr.dat` file lie: as the option `centres` says, or else in the `_centres.xyz` file beside
/// it, if the Bravais vectors are given, which have its unit.
fn centres_of(o: &Options, hamiltonian: &Path) -> Result<Centres> {
    if let Some(centres) = o.maybe::<Array>("centres") {
        return Ok(Centres::At(centres.iter().map(|x| reals(x, "a Wannier centre")).collect::<Result<_>>()?));
    }
    if let Some(name) = o.maybe_text("centres")? {
        return Ok(if name == "none" { Centres::Nowhere } else { Centres::File(input_path(&name)?) });
    }
    let name = hamiltonian.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let beside =
        name.strip_suffix("_hr.dat").map(|seed| hamiltonian.with_file_name(format!("{seed}_centres.xyz")));
    let Some(beside) = beside.filter(|path| path.exists()) else { return Ok(Centres::Nowhere) };
    let session = session()?;
    if o.given("vectors").is_none() {
        session.note(&format!(
            "`{}` is not read: its centres are in angstrom, and without `vectors` the cell is the unit cube",
            beside.display()
        ));
        return Ok(Centres::Nowhere);
    }
    session.note(&format!(
        "the Wannier centres are those of `{}`, in angstrom as `vectors` must be",
        beside.display()
    ));
    Ok(Centres::File(beside))
}

#[export_module(root = "crate::script::native")]
mod import_functions {
    /// The operator in a Matrix Market file (`.mtx`): coordinate or array layout, all kinds of entries and symmetries.
    ///
    /// # Options
    /// - `format` ("auto"): "csr", "ell", "sell", "dense".
    /// - `precision` ("double"): or "single".
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8));
    /// h.save("chain.mtx");
    /// let again = matrix_market("chain.mtx");
    /// assert_close((again.to_matrix() - h.to_matrix()).norm(), 0.0, 0.0);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn matrix_market(file: &str, o: Options) -> Fallible<Operator> {
        let format = Format::parse(&o.text("format")?)?;
        let csr = read_matrix_market(&input_path(file)?, single_precision(&o)?, &o.task()?)?;
        Ok(Stored::from_csr(&session()?.device(), csr, format)?)
    }

    /// Saves an operator as a Matrix Market file; the name ends in `.mtx`.
    ///
    /// # Example
    /// ```rhai
    /// sparse([0, 1], [1, 0], [I, -I]).save("pauli_y.mtx");
    /// assert(matrix_market("pauli_y.mtx").is_hermitian(), "as it was");
    /// ```
    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save_operator(h: &mut Operator, file: &str) -> Fallible<()> {
        let session = session()?;
        let path = session.output_path(file);
        files::save_operator(h, &path, Some(&manifest()?))?;
        session.saved(&path);
        Ok(())
    }

    /// Adds a text at the end of a file, which is made where there is none.
    ///
    /// # Example
    /// ```rhai
    /// write_text("log.txt", "step energy\n");
    /// append_text("log.txt", `1 ${-0.5}\n`);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn append_text(file: &str, text: &str) -> Fallible<()> {
        let session = session()?;
        let path = session.output_path(file);
        files::append(&path, text.as_bytes())?;
        session.saved(&path);
        Ok(())
    }

    /// Writes a text to a file, whole or not at all; what was in it is gone.
    ///
    /// # Example
    /// ```rhai
    /// write_text("note.txt", "U = 4\n");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn write_text(file: &str, text: &str) -> Fallible<()> {
        let session = session()?;
        let path = session.output_path(file);
        files::write_bytes(&path, text.as_bytes())?;
        session.saved(&path);
        Ok(())
    }
}

#[export_module(root = "crate::script::native")]
mod wannier_functions {
    /// The tight-binding model in a `_hr.dat` file of Wannier90, on a lattice of cells; the Wannier functions are the orbitals
    /// of the one site of a cell. Energies are in the file's units, electron volts. Velocities and magnetic phases need the centres
    /// of the Wannier functions; without them all lie on one point, and a note says so.
    ///
    /// # Options
    /// - `cells` ([1, 1, 1]): cells in the three directions.
    /// - `boundary` (string or Boundary or array, "periodic"): boundary conditions, one or an array.
    /// - `vectors` (array, the cube's): Bravais vectors, for positions; in angstrom, if centres are read from a file.
    /// - `centres` (array or string, the file `_centres.xyz` beside, where `vectors` are given): positions of the
    ///   Wannier functions, in the unit of `vectors`; an array, or a file's name, or "none" for all on one point.
    /// - `cutoff` (0.0): matrix elements smaller than this are left out.
    /// - `fermi` (0.0): the energy that becomes zero.
    ///
    /// # Example
    /// ```rhai
    /// // One band on a chain, E(k) = -2 cos k, as Wannier90 writes it.
    /// write_text("chain_hr.dat", "a chain\n1\n3\n1 1 1\n-1 0 0 1 1 -1.0 0.0\n0 0 0 1 1 0.0 0.0\n1 0 0 1 1 -1.0 0.0\n");
    /// let h = lattice::wannier90("chain_hr.dat", #{ cells: [8, 1, 1] }).build();
    /// assert_close(davidson(h).values[0], -2.0, 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wannier90(file: &str, o: Options) -> Fallible<ScriptModel> {
        let path = input_path(file)?;
        let wanted = WannierOptions { centres: centres_of(&o, &path)?, ..wannier_options(&o)? };
        let model = read_wannier90(&path, &wanted)?;
        if wanted.centres == Centres::Nowhere && model.orbitals() > 1 && o.given("centres").is_none() {
            session()?.note(&format!(
                    "all {} Wannier functions lie on one point of their cell: velocities take hoppings between cells only; \
                     option `centres` says where they are",
                    model.orbitals()
                ));
        }
        Ok(ScriptModel::new(model))
    }
}
