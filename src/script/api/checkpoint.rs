//! Checkpoints of the stdlib's runs: files that are checked and kept from the beginning on.

use std::path::Path;
use std::rc::Rc;

use rhai::plugin::*;

use super::{dmrg, vmc};
use crate::confine;
use crate::error::Error;
use crate::output::files;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, session};
use crate::task::batch;

pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<FileHold>("FileHold");
    rooms.room("internal", exported_module!(checkpoint_files));
}

/// A file that this run keeps to itself.
#[derive(Clone)]
pub struct FileHold(#[allow(dead_code)] Rc<files::HeldFile>);

#[export_module(root = "crate::script::native")]
mod checkpoint_files {
    /// Refuses the name of a checkpoint before a run begins: one that promises another format than that of values of
    /// type `kind`, and one where nothing can be written.
    ///
    /// # Example
    /// ```rhai
    /// internal::need_checkpoint("ground.dmrg", "DmrgState");
    /// let caught = "";
    /// try { internal::need_checkpoint("ground.npz", "DmrgState"); } catch (e) { caught = e.message; }
    /// assert(caught.contains("not saved as"), "states have a format of their own");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn need_checkpoint(file: &str, kind: &str) -> Fallible<()> {
        match kind {
            "DmrgState" | "UniformState" => dmrg::need_own_name(file),
            "map" => vmc::need_own_name(file),
            _ => files::need_whole(Path::new(file)),
        }?;
        let path = session()?.output_path(file);
        // Where scripts are kept to a folder, that is why, and the remedy.
        confine::check(&path).map_err(|e| {
            let hint = e.hint_text().unwrap_or_default().to_string();
            let inside = format!("{hint}: name the `checkpoint` by a path in it, or leave the option out");
            Error::file(format!("the checkpoint {}", e.message())).hint(inside)
        })?;
        if !files::writable(&path) {
            return Err(Error::file(format!("the checkpoint {file} cannot be written"))
                .hint("name a file in a folder that exists and may be written to")
                .into());
        }
        Ok(())
    }

    /// Says on standard error that a run goes on from a checkpoint; where a batch system has begun the job anew and
    /// there is no checkpoint yet, that the run begins anew, too.
    ///
    /// # Example
    /// ```rhai
    /// internal::tell_of_checkpoint("ground.dmrg", true);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn tell_of_checkpoint(file: &str, found: bool) -> Fallible<()> {
        let job = batch::job()
            .filter(|job| job.restarts > 0)
            .map(|job| format!("{} {} was begun anew: ", job.system, job.id));
        match (job, found) {
            (job, true) => {
                session()?.note(&format!("{}the run goes on from `{file}`", job.unwrap_or_default()))
            }
            (Some(job), false) => {
                session()?.note(&format!("{job}there is no `{file}` yet, the run begins anew"))
            }
            (None, false) => {}
        }
        Ok(())
    }

    /// Locks a file for this run as long as the value lives. Another run that asks for the file meanwhile fails, so two
    /// runs cannot write one checkpoint. The lock ends with the program, even after a crash.
    ///
    /// # Example
    /// ```rhai
    /// let held = internal::hold_file("run.npz");
    /// series([1.0]).save("run.npz");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn hold_file(file: &str) -> Fallible<FileHold> {
        let held = session().and_then(|session| files::hold(&session.output_path(file)))?;
        Ok(FileHold(Rc::new(held)))
    }
}
