//! Where an unknown script may read and write: with `--confine`, in one folder. The program checks every name itself,
//! so errors give the reason. On Linux the kernel also keeps the process there (Landlock), for any behaviour of the
//! program.

use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use crate::error::{Error, Result};

/// The folder, without links on its way.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// What the kernel does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landlock {
    /// It refuses what lies outside.
    Keeps,
    /// It has no means; only the program itself refuses.
    Cannot,
}

/// Keeps this process to a folder, for good. Only threads that start later are kept by the kernel, and this one. Of
/// the system's folders the kernel leaves what programs need to read. `others` are folders that libraries write to.
///
/// # Errors
/// A folder that is none, a second folder.
pub fn to(folder: &Path, others: &[&str]) -> Result<Landlock> {
    let whole = std::fs::canonicalize(folder)
        .ok()
        .filter(|path| path.is_dir())
        .ok_or_else(|| Error::file(format!("`{}` is no folder", folder.display())).hint("make it first"))?;
    let kernel = enforced(&whole, others);
    FOLDER.set(whole).map_err(|_| Error::input("a process is confined once"))?;
    Ok(kernel)
}

/// Whether scripts are confined.
pub fn active() -> bool {
    FOLDER.get().is_some()
}

/// Whether a file is there; what scripts may not read is not.
pub fn exists(path: &Path) -> bool {
    check(path).is_ok() && path.exists()
}

/// An error if scripts may not use a file of this name.
///
/// # Errors
/// A name that leads out of the folder, by `..` and links as well.
pub fn check(path: &Path) -> Result<()> {
    match FOLDER.get() {
        Some(folder) if !inside(path, folder) => {
            Err(Error::file(format!("`{}` lies outside of `{}`", path.display(), folder.display()))
                .hint("`--confine` keeps the files of scripts in that folder"))
        }
        _ => Ok(()),
    }
}

/// Whether a name, of a file that need not exist, leads into a folder.
fn inside(path: &Path, folder: &Path) -> bool {
    let Ok(whole) = std::path::absolute(path) else { return false };
    // What exists of it is followed through its links; behind that there must be plain names.
    let exists = whole.ancestors().find(|part| part.symlink_metadata().is_ok());
    let Some(Ok(real)) = exists.map(std::fs::canonicalize) else { return false };
    let rest = exists.and_then(|part| whole.strip_prefix(part).ok());
    let plain = rest.is_some_and(|rest| rest.components().all(|c| matches!(c, Component::Normal(_))));
    plain && real.starts_with(folder)
}

#[cfg(target_os = "linux")]
fn enforced(folder: &Path, others: &[&str]) -> Landlock {
    use landlock::{
        ABI, Access, AccessFs, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
        path_beneath_rules,
    };
    // Libraries, devices, what the system says of itself. Folders that a system lacks are left out.
    const READ: [&str; 10] =
        ["/usr", "/lib", "/lib64", "/bin", "/etc", "/opt", "/proc", "/sys", "/dev", "/run"];
    let abi = ABI::V3;
    let restricted = || -> std::result::Result<RulesetStatus, RulesetError> {
        let all = AccessFs::from_all(abi);
        let status = landlock::Ruleset::default()
            .handle_access(all)?
            .create()?
            .add_rules(path_beneath_rules(READ, AccessFs::from_read(abi)))?
            .add_rules(path_beneath_rules(["/dev"], AccessFs::from_file(abi)))?
            .add_rules(path_beneath_rules(others, all))?
            .add_rules(path_beneath_rules([folder], all))?
            .restrict_self()?;
        Ok(status.ruleset)
    };
    match restricted() {
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => Landlock::Keeps,
        _ => Landlock::Cannot,
    }
}

#[cfg(not(target_os = "linux"))]
fn enforced(_: &Path, _: &[&str]) -> Landlock {
    Landlock::Cannot
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("umklapp-confine-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("in/deep")).unwrap();
        std::fs::canonicalize(folder).unwrap()
    }

    #[test]
    fn names_that_lead_out_are_found() {
        let around = folder("names");
        let home = around.join("in");
        for name in ["a.csv", "deep/a.csv", "deep/../a.csv", "new/folder/a.csv", ""] {
            assert!(inside(&home.join(name), &home), "{name}");
        }
        for name in ["../a.csv", "deep/../../a.csv", "new/../../a.csv", "/etc/hostname", ".."] {
            assert!(!inside(&home.join(name), &home), "{name}");
        }
        // A folder beside it whose name begins alike.
        assert!(!inside(&around.join("inside/a.csv"), &home));
        #[cfg(unix)]
        {
            std::fs::write(around.join("secret"), "x").unwrap();
            std::os::unix::fs::symlink("../secret", home.join("file")).unwrap();
            std::os::unix::fs::symlink("..", home.join("up")).unwrap();
            std::os::unix::fs::symlink("../nothing", home.join("loose")).unwrap();
            for name in ["file", "up/secret", "up/new", "loose"] {
                assert!(!inside(&home.join(name), &home), "{name}");
            }
        }
        std::fs::remove_dir_all(around).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_keeps_a_thread() {
        let around = folder("kernel");
        let home = around.join("in");
        std::fs::write(around.join("secret"), "x").unwrap();
        let (home_, around_) = (home.clone(), around.clone());
        // Only this thread is restricted, not the other tests.
        let thread = std::thread::spawn(move || {
            if enforced(&home_, &[]) == Landlock::Cannot {
                eprintln!("skipped: no Landlock here");
                return;
            }
            assert!(std::fs::write(home_.join("a"), "y").is_ok());
            assert!(std::fs::read(home_.join("a")).is_ok());
            assert!(std::fs::read(around_.join("secret")).is_err());
            assert!(std::fs::write(around_.join("b"), "y").is_err());
            assert!(std::fs::write("/etc/umklapp", "y").is_err());
            assert!(std::fs::read("/proc/meminfo").is_ok());
        });
        thread.join().unwrap();
        std::fs::remove_dir_all(around).unwrap();
    }
}
