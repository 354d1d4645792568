//! Umklapp for Python: sessions of the language behind Python's objects.
//! `umklapp/` beside this folder is what users see.

mod arrays;
mod convert;
mod memory;
mod session;
mod table;
mod value;
mod worker;

use std::sync::OnceLock;

use pyo3::prelude::*;

/// The process that has imported this.
fn process() -> u32 {
    static PROCESS: OnceLock<u32> = OnceLock::new();
    *PROCESS.get_or_init(std::process::id)
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::session::{Handle, Session};
    #[pymodule_export]
    use crate::table::{_table, Table};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::process();
        umklapp::number::memory::watch();
        umklapp::output::tell_to(crate::worker::note);
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
