//! `load`: one function for every file that the program writes, and for those of others.

use std::io::Read;
use std::path::Path;
use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Dynamic, Engine, Map};

use super::import::load_matrix_market;
use super::maps::to_map;
use super::table::from_data;
use super::values::{from_column, to_dynamic};
use super::vmc::{Psi, load_walkers};
use super::{dmrg, gauge, orbitals, vector_files};
use crate::error::{Error, Result};
use crate::manybody::dmrg::is_state;
use crate::method::{DoubleMoments, Moments};
use crate::number::{Table, memory};
use crate::output::files::{self, Contents, FileData, Member};
use crate::script::{Fallible, Options, session};

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(load_functions).into());
}

/// The first bytes of a file, as many as tell what it holds; none of a file that cannot be read,
/// which its reader reports.
fn head(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = memory::open(path) {
        // What cannot be read is reported by the reader that is chosen.
        let _ = file.take(1 << 12).read_to_end(&mut bytes);
    }
    bytes
}

const ORBITALS: &str = "a file of orbitals";
const OPERATOR: &str = "an operator";
const WALKS: &str = "a file of walkers";
const FIELD: &str = "a gauge field";
const TEXT: &str = "a text with columns";

/// The options, and what files they are for.
const FOR: [(&str, &[&str]); 9] = [
    ("header", &[TEXT]),
    ("wavefunction", &[WALKS]),
    ("reunitarise", &[FIELD]),
    ("precision", &[ORBITALS, OPERATOR]),
    ("k", &[ORBITALS]),
    ("format", &[OPERATOR]),
    ("C", &[OPERATOR]),
    ("sigma", &[OPERATOR]),
    ("progress", &[OPERATOR]),
];

/// Refuses options that are for files of another kind than this one.
fn only(kind: &str, o: &Options) -> Result<()> {
    let mut others = FOR.iter().filter(|(_, kinds)| !kinds.contains(&kind));
    others.try_for_each(|(key, kinds)| o.only_for(&kinds.join(" or "), &[key]))
}

/// The value in a file.
fn load_from(o: &Options, file: &str) -> Result<Dynamic> {
    let path = session()?.input_path(file)?;
    let head = head(&path);
    let named = |end: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(end));
    if crate::gauge::files::is_field(&head) || named("nersc") || named("lime") || named("ildg") {
        only(FIELD, o)?;
        return gauge::load(&path, file, o).map(Dynamic::from);
    }
    if is_state(&head) || named("dmrg") {
        only("a state", o)?;
        return dmrg::load(file, &path);
    }
    if orbitals::is_file(&path, &head) {
        only(ORBITALS, o)?;
        return orbitals::load(&path, file, o).map(Dynamic::from);
    }
    if head.starts_with(b"%%MatrixMarket") || named("mtx") {
        only(OPERATOR, o)?;
        return load_matrix_market(&path, o).map(Dynamic::from);
    }
    if head.starts_with(b"{") && files::kind_of_json(&path).as_deref() == Some(super::vmc::WALKERS) {
        only(WALKS, o)?;
        let psi = o.maybe::<Psi>("wavefunction").ok_or_else(|| {
            Error::input(format!("`{file}` holds walkers, which go with a wave function"))
                .hint(format!("`load(\"{file}\", #{{ wavefunction: psi }})`"))
        })?;
        return load_walkers(&psi, file).map(Dynamic::from);
    }
    if !path.exists() {
        return Err(Error::file("there is no such file")
            .context(format!("cannot read `{file}`"))
            .hint("names of files are relative to the folder where the program was started"));
    }
    // A damaged file says so before an option that it cannot have.
    let text = ["csv", "tsv", "txt", "dat"].into_iter().any(named);
    let header = o.given("header").map(|_| o.flag("header")).transpose()?;
    let (found, notes) = numbers(file, &path, header)?;
    only(if text { TEXT } else { "numbers" }, o)?;
    for note in notes {
        session()?.note(&format!("`{file}`: {note}"));
    }
    Ok(found)
}

/// What is in a file of blocks, vectors or plain numbers.
fn numbers(file: &str, path: &Path, header: Option<bool>) -> Result<(Dynamic, Vec<String>)> {
    if let Some(state) = dmrg::load_blocks(file, path)? {
        return Ok((state, Vec::new()));
    }
    if let Some(vectors) = vector_files::loaded(path)? {
        return Ok((vectors, Vec::new()));
    }
    let (contents, notes) = files::load_with(path, header)?;
    let found = match contents {
        Contents::One(FileData::Table(table)) => of_table(table)?,
        Contents::One(other) => from_data(other),
        Contents::Several(parts) => {
            parts.into_iter().map(|(name, part)| (name.into(), of_part(part))).collect::<Map>().into()
        }
        Contents::Map(map) => to_map(map),
    };
    Ok((found, notes))
}

/// One of several arrays as a script has it.
fn of_part(part: Member) -> Dynamic {
    match part {
        Member::Number(number) => to_dynamic(number),
        Member::Data(data) => from_data(data),
        Member::Texts(texts) => from_column(&texts.into()),
    }
}

/// The moments that a table was made of, or the table.
fn of_table(table: Table) -> Result<Dynamic> {
    let moments = table.columns().all(|(name, _)| name.starts_with("vector_"))
        && ["center", "half_width", "dimension"].iter().all(|key| table.report().contains_key(*key));
    if !moments {
        Ok(Dynamic::from(table))
    } else if table.report().contains_key("orders") {
        DoubleMoments::from_table(&table).map(|mu| Dynamic::from(Rc::new(mu)))
    } else {
        Moments::from_table(&table).map(|mu| Dynamic::from(Rc::new(mu)))
    }
}

#[export_module(root = "crate::script::native")]
mod load_functions {
    /// Reads a file of this program or of another one, and returns its contents:
    ///
    /// - a Table, Series or Matrix: CSV, TSV, text columns, JSON, NumPy (real, complex, whole and truth values of any
    ///   size, byte order and array order), HDF5 (numbers, complex numbers as h5py has them, texts). Whole numbers
    ///   beyond 2^53 become the nearest float;
    /// - a map that `map.save(file)` wrote;
    /// - a map of numbers, Series and Matrices: an `.npz` archive or an HDF5 file whose arrays are not all columns of
    ///   one length; the key of a dataset in a group is its path, `x["group/name"]`. What is neither numbers nor texts
    ///   is left out, with a note;
    /// - a map of numbers, texts, arrays and maps: any other object of JSON, also with `NaN` and `Infinity`;
    /// - Moments and DoubleMoments;
    /// - a BlockVector or an Eigen: an `.npz` archive with the array `vectors` of two dimensions or more;
    /// - a DmrgState or UniformState, as `.dmrg` or `.npz`;
    /// - Links, a gauge field: NERSC archives, ILDG and SciDAC (lime) files. Checksums are verified; a note names a
    ///   lime file without one. Links of 32 bits are projected onto SU(3). Links of 64 bits are projected if necessary,
    ///   with a note. Links that deviate from SU(3) by more than 1e-6 are refused;
    /// - Orbitals on splines: an `.npz` archive of `coefficients` [ix, iy, iz, l], `cell` (rows, bohr) and optionally
    ///   `twist` and `energies`, or the text file `bwfn.data` of CASINO;
    /// - an Operator: a Matrix Market file (`.mtx`), coordinate or array layout, all kinds of entries and symmetries;
    /// - Walkers: a map of `walk` and `about` (the values saved with the walkers).
    ///
    /// # Options
    /// - `header` (bool): for CSV, TSV and text columns of other programs: whether the first line holds the names of
    ///   the columns. Otherwise its cells tell: a line of numbers has no names, unless it is `0,1,2` above cells
    ///   without whole numbers.
    /// - `wavefunction` (WaveFunction): required for walkers: the wave function that they were saved with.
    /// - `reunitarise` (false): for a gauge field: project every link, even links that deviate from SU(3) by up to
    ///   1e-2.
    /// - `precision` ("double" or "single", that of the file): precision of orbitals and operators.
    /// - `k` (int >= 1): for a `bwfn.data` file with several k points: the number of the k point in the file, from 1.
    /// - `format` ("auto" or "csr" or "ell" or "sell" or "dense"): for an operator.
    /// - `C`, `sigma`: for an operator, as for `build`.
    /// - `progress` (true): show a bar while an operator is read.
    ///
    /// # Example
    /// ```rhai
    /// series([1, 2]).save("example.npy");
    /// assert(load("example.npy") == series([1, 2]), "there and back");
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let mu = kpm::moments(h, #{ moments: 8, vectors: 2 });
    /// mu.save("moments.npz");
    /// assert(load("moments.npz").values == mu.values, "moments");
    /// h.save("chain.mtx");
    /// assert_close((load("chain.mtx").to_matrix() - h.to_matrix()).norm(), 0.0, 0.0);
    /// product_state(sites("S=1", 2), ["Up", "Z0"], #{ Sz: 1.0 }).save("pair.dmrg");
    /// assert_close(load("pair.dmrg").expect("Sz").sum(), 1.0, 1e-15);
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// u.save("field.lime", #{ precision: "single" });
    /// assert_close(gauge::plaquette(load("field.lime", #{ reunitarise: true })), gauge::plaquette(u), 1e-7);
    /// let psi = slater_jastrow(orbitals::oscillator(3), #{ up: 3 });
    /// save_walkers(walkers(psi, #{ count: 2, seed: 1 }), "walk.json", #{});
    /// assert(load("walk.json", #{ wavefunction: psi }).walk.count == 2, "both");
    /// ```
    #[rhai_fn(name = "load", return_raw)]
    pub fn load_with(file: &str, o: Options) -> Fallible<Dynamic> {
        Ok(load_from(&o, file)?)
    }
}
