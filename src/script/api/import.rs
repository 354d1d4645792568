//! Matrices and models from files of other programs, and operators to files.

use std::path::{Path, PathBuf};

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT};

use super::lattice::{boundaries_of, reals};
use super::model::{ScriptModel, single_precision, storage_format};
use super::table::manifest;
use super::values::numbered;
use crate::confine;
use crate::error::{Error, Result};
use crate::lattice::{
    Centres, WannierOptions, read_matrix_market, read_wannier_input, read_wannier90, read_wannier90_position,
};
use crate::number::memory;
use crate::operator::{Operator, StoredMatrix};
use crate::output::files;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_global_module(exported_module!(import_functions).into());
    rooms.room("lattice", exported_module!(wannier_functions));
}

/// The file of a run of Wannier90 that lies beside its Hamiltonian, if it is there.
fn beside(hamiltonian: &Path, ending: &str) -> Option<PathBuf> {
    let name = hamiltonian.file_name()?.to_string_lossy().into_owned();
    let seed = name.strip_suffix("_hr.dat").or_else(|| name.strip_suffix("_tb.dat"))?;
    Some(hamiltonian.with_file_name(format!("{seed}{ending}"))).filter(|path| confine::exists(path))
}

/// How a Hamiltonian of Wannier90 is read: by the options, and by the files beside it.
fn wannier_options(o: &Options, path: &Path) -> Result<WannierOptions> {
    let defaults = WannierOptions::default();
    let cells = o.maybe_counts("cells")?.unwrap_or(defaults.cells);
    let boundary = o.given("boundary").map(|b| boundaries_of(&b)).transpose()?;
    let own = path.to_string_lossy().ends_with("_tb.dat");
    let vectors = match o.maybe::<Array>("vectors") {
        Some(vectors) if vectors.len() == 3 => {
            Some(vectors.iter().map(|v| reals(v, "a Bravais vector")).collect::<Result<_>>()?)
        }
        Some(_) => {
            return Err(Error::input("option `vectors` takes three Bravais vectors")
                .hint("like `[[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]`"));
        }
        None if own => None,
        None => match beside(path, ".win") {
            Some(input) => {
                read_wannier_input(&input)?.vectors.inspect(|_| note_of("the Bravais vectors", &input))
            }
            None => None,
        },
    };
    let nearest = match o.maybe_text("nearest")? {
        Some(name) if name == "none" => None,
        Some(name) => Some(session()?.input_path(&name)?),
        None => beside(path, "_wsvec.dat").inspect(|file| note_of("the nearest images", file)),
    };
    let centres = centres_of(o, path, own || vectors.is_some())?;
    Ok(WannierOptions {
        cells,
        boundary: boundary.unwrap_or(defaults.boundary),
        vectors,
        centres,
        nearest,
        cutoff: o.float("cutoff")?,
        fermi: o.float("fermi")?,
    })
}

/// Says which file is used although the script did not name it.
fn note_of(what: &str, file: &Path) {
    if let Ok(session) = session() {
        session.note(&format!("{what} are those of `{}`", file.display()));
    }
}

/// Where the Wannier functions lie: as the option `centres` says, or else in the `_tb.dat` file itself, or in the
/// `_centres.xyz` or `.wout` file beside, if the Bravais vectors are known, which have its unit.
fn centres_of(o: &Options, hamiltonian: &Path, placed: bool) -> Result<Centres> {
    if let Some(centres) = o.maybe::<Array>("centres") {
        return Ok(Centres::At(centres.iter().map(|x| reals(x, "a Wannier centre")).collect::<Result<_>>()?));
    }
    if let Some(name) = o.maybe_text("centres")? {
        return Ok(if name == "none" {
            Centres::Nowhere
        } else {
            Centres::File(session()?.input_path(&name)?)
        });
    }
    if hamiltonian.to_string_lossy().ends_with("_tb.dat") {
        return Ok(Centres::Own);
    }
    let found = beside(hamiltonian, "_centres.xyz").or_else(|| beside(hamiltonian, ".wout"));
    let Some(found) = found else { return Ok(Centres::Nowhere) };
    if !placed {
        session()?.note(&format!(
            "`{}` is not read: its centres are in angstrom, and without `vectors` the cell is the unit cube",
            found.display()
        ));
        return Ok(Centres::Nowhere);
    }
    note_of("the Wannier centres", &found);
    Ok(Centres::File(found))
}

/// The operator in a Matrix Market file.
pub(super) fn load_matrix_market(path: &Path, o: &Options) -> Result<Operator> {
    let format = storage_format(o)?;
    let single = o.given("precision").map_or(Ok(false), |_| single_precision(o))?;
    StoredMatrix::from_csr(&session()?.device(), read_matrix_market(path, single, &o.task()?)?, format)?
        .in_range()
}

#[export_module(root = "crate::script::native")]
mod import_functions {
    /// Saves an operator as a Matrix Market file; the name ends in `.mtx`.
    ///
    /// # Example
    /// ```rhai
    /// sparse([0, 1], [1, 0], [I, -I]).save("pauli_y.mtx");
    /// assert(load("pauli_y.mtx").is_hermitian(), "as it was");
    /// ```
    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save_operator(h: &mut Operator, file: &str) -> Fallible<()> {
        let session = session()?;
        let path = session.output_path(file);
        files::save_operator(h, &path, Some(&manifest()?))?;
        session.saved(&path);
        Ok(())
    }

    /// Adds a text at the end of a file. The file is created if it does not exist.
    ///
    /// # Example
    /// ```rhai
    /// write_text("log.txt", "step energy\n");
    /// append_text("log.txt", "1 " + -0.5 + "\n");
    /// assert(load("log.txt").energy[0] == -0.5, "the line below the names");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn append_text(file: &str, text: &str) -> Fallible<()> {
        let session = session()?;
        let path = session.output_path(file);
        files::append(&path, text.as_bytes())?;
        session.saved(&path);
        Ok(())
    }

    /// The text in a file, as it is. Numbers in columns are what `load` reads.
    ///
    /// # Example
    /// ```rhai
    /// write_text("run.in", "U = 4\nbeta = 8\n");
    /// let lines = read_text("run.in").split("\n");
    /// assert(lines[1] == "beta = 8", "the second line");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn read_text(file: &str) -> Fallible<String> {
        let path = session()?.input_path(file)?;
        let cannot = |e: Error| e.context(format!("cannot read `{file}`"));
        let bytes = memory::read(&path).map_err(|e| cannot(Error::of_io(&e)))?;
        let text = String::from_utf8(bytes)
            .map_err(|e| cannot(Error::file(format!("byte {} is no UTF-8", e.utf8_error().valid_up_to()))))?;
        Ok(text)
    }

    /// Writes a text to a file, completely or not at all. Former contents of the file are lost.
    ///
    /// # Example
    /// ```rhai
    /// write_text("note.txt", "U = 4\n");
    /// assert(file_exists("note.txt"), "it is there");
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
    /// The tight-binding model in a `_hr.dat` or `_tb.dat` file of Wannier90, on a lattice of cells. Each cell has one
    /// site, and the Wannier functions are its orbitals, with spin-orbit coupling too. Energies are in electron volts,
    /// lengths in angstrom. Files in the same folder are used, and a note says so: `_wsvec.dat`, which reproduces the
    /// bands that Wannier90 itself draws; for `_hr.dat` also the Bravais vectors of `.win` and the centres of
    /// `_centres.xyz` or `.wout`. A `_tb.dat` file contains vectors and centres. Velocities and magnetic phases need
    /// the centres of the Wannier functions. Without centres all functions lie at one point, and a note says so.
    ///
    /// # Options
    /// - `cells` (three counts, [1, 1, 1]): cells in the three directions.
    /// - `boundary` (string or Boundary or array, "periodic"): boundary conditions: one for all directions, or an
    ///   array.
    /// - `vectors` (array, those of the files, or the cube's): Bravais vectors, for positions; in angstrom if centres
    ///   are read from a file.
    /// - `centres` (array or string, those of the files): positions of the Wannier functions, in the unit of `vectors`;
    ///   an array, or the name of a `_centres.xyz` or `.wout` file, or "none" for all at one point.
    /// - `nearest` (string, the file `_wsvec.dat` beside): the file with the nearest images of Wannier functions, or
    ///   "none" to use the elements unchanged.
    /// - `cutoff` (0.0): matrix elements smaller than this are left out.
    /// - `fermi` (0.0): the energy that becomes zero.
    ///
    /// # Example
    /// ```rhai
    /// // One band on a chain, E(k) = -2 cos k, as Wannier90 writes it.
    /// write_text("chain_hr.dat", "a chain\n1\n3\n1 1 1\n"
    ///     + "-1 0 0 1 1 -1.0 0.0\n0 0 0 1 1 0.0 0.0\n1 0 0 1 1 -1.0 0.0\n");
    /// let h = lattice::wannier90("chain_hr.dat", #{ cells: [8, 1, 1] }).build();
    /// assert_close(davidson(h).values[0], -2.0, 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wannier90(file: &str, o: Options) -> Fallible<ScriptModel> {
        let path = session()?.input_path(file)?;
        let wanted = wannier_options(&o, &path)?;
        let model = read_wannier90(&path, &wanted)?;
        if wanted.centres == Centres::Nowhere && model.orbitals() > 1 && o.given("centres").is_none() {
            session()?.note(&format!(
                    "all {} Wannier functions lie on one point of their cell: velocities take hoppings between cells \
                     only; \
                     option `centres` says where they are",
                    model.orbitals()
                ));
        }
        Ok(ScriptModel::new(model))
    }

    /// The matrix elements of a Cartesian coordinate (axis 0, 1 or 2) between the Wannier functions of a `_tb.dat`
    /// file, as a model on the lattice of `lattice::wannier90`, in angstrom. The centres are subtracted, and the
    /// Hermitian part is taken. The option `positions` of `bloch::conductivity`, `bloch::optical_conductivity` and
    /// `bloch::berry_curvature` takes one for each axis. In a sample, velocities that include the overlap of Wannier
    /// functions are `v + I * (h * a - a * h)` (Wang, Yates, Souza and Vanderbilt, Phys. Rev. B 74, 195118, eq. 31).
    ///
    /// # Options
    /// - `cells`, `boundary`, `vectors`, `centres`, `nearest`, `cutoff`: as for `lattice::wannier90`;
    ///   `cutoff` in angstrom.
    /// - `fermi` (0.0): not used here; a map of options made for `lattice::wannier90` may hold it.
    ///
    /// # Example
    /// ```rhai
    /// // Two functions a cell at 0 and 1 angstrom with <1|x|2> = 0.25 and <1|H|2> = 1.
    /// write_text("pair_tb.dat", "by hand\n4 0 0\n0 4 0\n0 0 4\n2\n1\n1\n\n"
    ///     + "0 0 0\n1 1 0 0\n2 1 1 0\n1 2 1 0\n2 2 0 0\n\n0 0 0\n"
    ///     + "1 1 0 0 0 0 0 0\n2 1 0.25 0 0 0 0 0\n1 2 0.25 0 0 0 0 0\n2 2 1 0 0 0 0 0\n");
    /// let h = lattice::wannier90("pair_tb.dat").build();
    /// let a = lattice::wannier90_position("pair_tb.dat", 0).build();
    /// let v = h.velocity(0) + I * (h * a - a * h);
    /// assert_close(v.to_matrix().at(0, 1), I, 1e-15);                     // i <1|H|2> (1 - 0); H and a commute here
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wannier90_position(file: &str, axis: INT, o: Options) -> Fallible<ScriptModel> {
        let path = session()?.input_path(file)?;
        let wanted = wannier_options(&o, &path)?;
        let axis = numbered(axis, "axis")?;
        Ok(ScriptModel::new(read_wannier90_position(&path, axis, &wanted)?))
    }

    /// The block `kpoint_path` of a `.win` file of Wannier90 as a path for `bands`: pairs of a name and a momentum in
    /// units of the reciprocal vectors, and a text `"|"` where a line of the block does not begin at the end of the
    /// previous one.
    ///
    /// # Example
    /// ```rhai
    /// let lines = "G 0 0 0  H 0.5 0.5 -0.5\nP 0.75 0.25 -0.25  N 0.5 0 -0.5\n";
    /// write_text("bcc.win", "begin kpoint_path\n" + lines + "end kpoint_path\n");
    /// let path = lattice::wannier90_path("bcc.win");
    /// assert(path.len == 5 && path[1][0] == "H" && path[2] == "|" && path[3][0] == "P", "in order");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wannier90_path(file: &str) -> Fallible<Array> {
        let input = read_wannier_input(&session()?.input_path(file)?)?;
        let Some(lines) = input.path else {
            return Err(Error::file(format!("`{file}` has no block `kpoint_path`"))
                .hint("`begin kpoint_path` .. `end kpoint_path` holds two corners a line; `bands` takes any `path`")
                .into());
        };
        if lines.is_empty() {
            return Err(Error::file(format!("the block `kpoint_path` of `{file}` has no lines"))
                .hint("each names two momenta, like `G 0 0 0  X 0.5 0 0.5`")
                .into());
        }
        let numbers = |k: &[f64]| k.iter().copied().map(Dynamic::from).collect::<Array>();
        let corner = |(name, k): &(String, Vec<f64>)| -> Dynamic {
            vec![Dynamic::from(name.clone()), numbers(k).into()].into()
        };
        let mut path = Array::new();
        let mut last = None;
        for [from, to] in &lines {
            if last != Some(from) {
                path.extend(last.map(|_| "|".into()));
                path.push(corner(from));
            }
            path.push(corner(to));
            last = Some(to);
        }
        Ok(path)
    }
}
