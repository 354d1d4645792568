//! Molecules, by the integrals that programs of quantum chemistry write.

use rhai::Map;
use rhai::plugin::*;

use crate::error::Error;
use crate::manybody::read_fcidump;
use crate::number::{Series, memory};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("models", exported_module!(molecule_functions));
}

#[export_module(root = "crate::script::native")]
mod molecule_functions {
    /// A molecule by its integrals in an FCIDUMP file (Knowles, Handy 1989), as PySCF, Molpro, Psi4 and others write
    /// them: a map of `sum`, the Hamiltonian with the energy of the nuclei; `sites`, one "Electron" site per orbital;
    /// `sector`, the numbers of electrons of each spin; `core`, the energy without electrons; and `symmetries`, the
    /// labels of the orbitals in the file. Orbitals are real, and the same for both spins.
    ///
    /// # Options
    /// - `cutoff` (float >= 0, 1e-14): integrals smaller than this are left out.
    ///
    /// # Example
    /// ```rhai
    /// // One orbital: two electrons at -1 each, that repel each other by 0.7.
    /// write_text("one.fcidump", "&FCI NORB=1,NELEC=2,MS2=0,\n ORBSYM=1,\n ISYM=1,\n&END\n"
    ///     + "0.7 1 1 1 1\n-1.0 1 1 0 0\n0.2 0 0 0 0\n");
    /// let atom = models::fcidump("one.fcidump");
    /// assert_close(exact::operator(atom.sum, atom.sites, atom.sector).to_matrix().at(0, 0), -2.0 + 0.7 + 0.2, 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn fcidump(file: &str, o: Options) -> Fallible<Map> {
        let cutoff = o.float("cutoff")?;
        let path = session()?.input_path(file)?;
        let bytes = memory::read(&path).map_err(|e| {
            Error::of_io(&e)
                .context(format!("`{file}` cannot be read"))
                .hint("`fcidump.from_scf(mf, name)` of PySCF writes such files")
        })?;
        let text = String::from_utf8_lossy(&bytes);
        let molecule = read_fcidump(&text, cutoff).map_err(|e| e.context(format!("`{file}`")))?;
        let (up, dn) = molecule.electrons;
        let labels = molecule.symmetries.iter().map(|x| *x as f64).collect();
        Ok(Map::from([
            ("sum".into(), Dynamic::from(molecule.sum)),
            ("sites".into(), Dynamic::from(molecule.sites)),
            (
                "sector".into(),
                Map::from([("Nup".into(), (up as f64).into()), ("Ndn".into(), (dn as f64).into())]).into(),
            ),
            ("core".into(), molecule.core.into()),
            ("symmetries".into(), Dynamic::from(Series::Real(labels))),
        ]))
    }
}
