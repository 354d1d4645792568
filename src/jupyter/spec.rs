//! How Jupyter finds the kernel: a folder with a `kernel.json` in one of the places where it looks.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::output::files::write_bytes;

/// What notebooks call the language.
pub(super) const LANGUAGE: &str = "rhai";

/// A wave over a lattice.
const LOGO: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">
<rect width="64" height="64" rx="12" fill="#20304a"/>
<path d="M6 32 C 15 2, 23 2, 32 32 S 49 62, 58 32"
 fill="none" stroke="#ffb454" stroke-width="5" stroke-linecap="round"/>
<g fill="#fff"><circle cx="6" cy="32" r="4"/><circle cx="32" cy="32" r="4"/><circle cx="58" cy="32" r="4"/></g>
</svg>
"##;

/// The user's folder of Jupyter, by its own rules.
///
/// # Errors
/// Where the environment names no home.
pub fn data_folder() -> Result<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let usual = || -> Option<PathBuf> {
        if cfg!(windows) {
            Some(folder("APPDATA")?.join("jupyter"))
        } else if cfg!(target_os = "macos") {
            Some(folder("HOME")?.join("Library/Jupyter"))
        } else {
            let share = folder("XDG_DATA_HOME").or_else(|| Some(folder("HOME")?.join(".local/share")))?;
            Some(share.join("jupyter"))
        }
    };
    folder("JUPYTER_DATA_DIR").or_else(usual).ok_or_else(|| {
        Error::file("the environment names no home").hint("`--prefix DIR` says where Jupyter is installed")
    })
}

/// The folder of the kernel of that name, under Jupyter's data folder.
///
/// # Errors
/// A name that Jupyter does not take.
pub fn folder(data: &Path, name: &str) -> Result<PathBuf> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(fits) || name.starts_with('.') {
        return Err(Error::input(format!("`{name}` is no name of a kernel"))
            .hint("letters, digits, `-`, `_` and `.`"));
    }
    Ok(data.join("kernels").join(name.to_ascii_lowercase()))
}

/// Makes the kernel known: a command of this program with these options.
///
/// # Errors
/// A folder that cannot be written.
pub fn install(folder: &Path, shown: &str, program: &Path, options: &[String]) -> Result<()> {
    std::fs::create_dir_all(folder)
        .map_err(|e| Error::file(format!("the folder `{}` cannot be made: {e}", folder.display())))?;
    let text = serde_json::to_string_pretty(&about(shown, program, options))
        .map_err(|e| Error::internal(e.to_string()))?;
    write_bytes(&folder.join("logo-svg.svg"), LOGO.as_bytes())?;
    write_bytes(&folder.join("kernel.json"), (text + "\n").as_bytes())
}

fn about(shown: &str, program: &Path, options: &[String]) -> Value {
    let mut command = vec![program.display().to_string()];
    command.extend(options.iter().cloned());
    command.extend(["jupyter", "kernel", "--connection-file", "{connection_file}"].map(String::from));
    json!({
        "argv": command,
        "display_name": shown,
        "language": LANGUAGE,
        "interrupt_mode": "message",
        "metadata": {},
    })
}

/// Makes the kernel unknown.
///
/// # Errors
/// A folder that is not there or not of this program.
pub fn uninstall(folder: &Path) -> Result<()> {
    let file = folder.join("kernel.json");
    let name = folder.display();
    let text = std::fs::read(&file).map_err(|_| {
        Error::file(format!("no kernel in `{name}`")).hint("`jupyter kernelspec list` shows which there are")
    })?;
    let about: Value = serde_json::from_slice(&text).unwrap_or_default();
    if about["language"] != LANGUAGE {
        return Err(Error::file(format!("the kernel in `{name}` is of another program")));
    }
    std::fs::remove_dir_all(folder).map_err(|e| Error::file(format!("`{name}` cannot be removed: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_installed_and_removed() {
        let data = std::env::temp_dir().join(format!("umklapp-spec-{}", std::process::id()));
        let place = folder(&data, "Umklapp-cuda").unwrap();
        assert!(place.ends_with("kernels/umklapp-cuda"));
        install(&place, "Umklapp", Path::new("/bin/umklapp"), &["--threads".into(), "4".into()]).unwrap();
        let about: Value =
            serde_json::from_slice(&std::fs::read(place.join("kernel.json")).unwrap()).unwrap();
        let command =
            ["/bin/umklapp", "--threads", "4", "jupyter", "kernel", "--connection-file", "{connection_file}"];
        assert_eq!(about["argv"], json!(command));
        uninstall(&place).unwrap();
        assert!(!place.exists() && uninstall(&place).is_err());
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("kernel.json"), r#"{ "language": "python" }"#).unwrap();
        assert!(uninstall(&place).unwrap_err().to_string().contains("another program") && place.exists());
        let _ = std::fs::remove_dir_all(data);
    }

    #[test]
    fn names_stay_in_their_folder() {
        for name in ["", "..", "a/b", ".hidden", "ä"] {
            assert!(folder(Path::new("/d"), name).is_err(), "{name}");
        }
    }
}
