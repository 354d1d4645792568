//! `umklapp test [PATHS]`: scripts compared with their golden output.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;

use super::junit::{self, TestedScript};
use super::{RunOptions, catch_interrupt, report};
use crate::error::{Error, Result};
use crate::output::golden::Deviation;
use crate::output::{files, folders, out};
use crate::ranks;
use crate::script::Settings;
use crate::script::diagnostics::Report;
use crate::script::golden::{self, Verdict};

/// Arguments of `umklapp test`.
#[derive(Args)]
pub(crate) struct Test {
    /// Scripts, or folders of scripts (by default the folder `tests` if there is one, else this folder)
    paths: Vec<PathBuf>,
    /// Write the present output as the expected output
    #[arg(long)]
    bless: bool,
    /// Only the scripts that failed when tests last ran here
    #[arg(long)]
    last_failed: bool,
    /// Write the results for other programs, as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    pub(super) shared: RunOptions,
}

impl Test {
    pub(super) fn execute(self) -> ExitCode {
        let paths = match &self.paths[..] {
            [] if Path::new("tests").is_dir() => vec![PathBuf::from("tests")],
            [] => vec![PathBuf::from(".")],
            given => given.to_vec(),
        };
        let mut scripts = Vec::new();
        for path in &paths {
            if let Err(e) = collect(path, true, &mut scripts) {
                return report(&Report::plain(&e));
            }
        }
        if self.last_failed {
            match failed_before() {
                Ok(before) => scripts.retain(|script| before.contains(&place(script))),
                Err(e) => return report(&Report::plain(&e)),
            }
            if scripts.is_empty() {
                out("none of these scripts failed last time");
                return ExitCode::SUCCESS;
            }
        }
        if scripts.is_empty() {
            let names: Vec<String> = paths.iter().map(|p| format!("`{}`", p.display())).collect();
            let e = Error::file(format!("there is no `.rhai` script in {}", names.join(", ")));
            return report(&Report::plain(&e));
        }
        match self.run(&scripts) {
            Ok(code) => code,
            Err(e) => report(&Report::plain(&e)),
        }
    }

    fn run(&self, scripts: &[PathBuf]) -> Result<ExitCode> {
        let interrupt = catch_interrupt();
        let scratch = match &self.shared.out {
            Some(_) => None,
            None => Some(Scratch::new()?),
        };
        let mut cases = Vec::new();
        let mut worst: Option<(&Path, Deviation)> = None;
        let mut stopped = false;
        for script in scripts {
            let folder = self.shared.out.clone().or_else(|| scratch.as_ref().map(|s| s.0.clone()));
            let settings = Settings { out: folder, ..self.shared.settings() };
            let began = Instant::now();
            let verdict = golden::test(script, settings, interrupt.clone(), self.bless);
            let verdict = agreed(verdict)?;
            if interrupt.raised() {
                stopped = true;
                break;
            }
            let seconds = began.elapsed().as_secs_f64();
            let name = script.display().to_string();
            let mut failure = None;
            match verdict {
                Verdict::Passed(deviation) => {
                    out(&format!("ok       {name}"));
                    let most = worst.map_or(0.0, |(_, w)| w.fraction);
                    worst = deviation.filter(|d| d.fraction > most).map(|d| (script.as_path(), d)).or(worst);
                }
                Verdict::Blessed => out(&format!("blessed  {name}")),
                Verdict::Failed(why) => {
                    out(&format!("FAILED   {name}"));
                    for line in why.lines() {
                        out(&format!("    {line}"));
                    }
                    failure = Some(why);
                }
            }
            cases.push(TestedScript { name, seconds, failure });
        }
        let failed = cases.iter().filter(|case| case.failure.is_some()).count();
        let left = match scripts.len() - cases.len() {
            0 => String::new(),
            left => format!(", {left} not run: interrupted"),
        };
        out(&format!("{} passed, {failed} failed{left}", cases.len() - failed));
        if let Some((script, w)) = worst {
            out(&format!(
                "closest to its tolerance: {} line {}, {} for {}, {:.2} of what is allowed",
                script.display(),
                w.line,
                w.found,
                w.expected,
                w.fraction
            ));
        }
        if let Some(file) = &self.junit {
            files::write_bytes(file, junit::report(&cases).as_bytes())?;
        }
        // Where nothing can be remembered, `--last-failed` says so.
        let wrong = |(_, case): &(&PathBuf, &TestedScript)| case.failure.is_some();
        // What was not run now is as it was.
        let mut names = failed_before().unwrap_or_default();
        for (script, _) in scripts.iter().zip(&cases) {
            names.remove(&place(script));
        }
        names.retain(|name| Path::new(name).exists());
        names.extend(scripts.iter().zip(&cases).filter(wrong).map(|(script, _)| place(script)));
        let names: Vec<String> = names.into_iter().collect();
        let _ = memory().and_then(|file| files::write_bytes(&file, names.join("\n").as_bytes()));
        if stopped {
            return Err(Error::interrupted());
        }
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// What all ranks found: a script passes where it passes on each of them.
fn agreed(own: Verdict) -> Result<Verdict> {
    let Some(world) = ranks::world() else { return Ok(own) };
    let failure = match &own {
        Verdict::Failed(why) => why.clone(),
        _ => String::new(),
    };
    let all = world.gather(failure.into_bytes())?;
    let failed = all.iter().position(|why| !why.is_empty());
    Ok(match failed {
        Some(rank) if !matches!(own, Verdict::Failed(_)) => {
            Verdict::Failed(format!("on rank {rank}: {}", String::from_utf8_lossy(&all[rank])))
        }
        _ => own,
    })
}

/// The file with the scripts that failed last.
fn memory() -> Result<PathBuf> {
    Ok(folders::state()?.join("failed"))
}

fn failed_before() -> Result<BTreeSet<String>> {
    let file = memory()?;
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok(text.lines().map(str::to_string).collect()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(e) => Err(Error::file(format!("`{}` cannot be read: {e}", file.display()))),
    }
}

/// A script's place in the system, whatever the folder it is named from.
fn place(script: &Path) -> String {
    std::fs::canonicalize(script).unwrap_or_else(|_| script.into()).display().to_string()
}

/// The scripts at a path: itself, or those in a folder and its folders, in order of their names.
fn collect(path: &Path, named: bool, scripts: &mut Vec<PathBuf>) -> Result<()> {
    let unreadable = |e: std::io::Error| Error::file(format!("cannot read `{}`: {e}", path.display()));
    if !path.is_dir() {
        if named && !path.exists() {
            return Err(Error::file(format!("there is no `{}`", path.display())));
        }
        if named && path.extension().is_some_and(|e| e == "out") {
            return Err(Error::input(format!("`{}` is what a script prints, not a script", path.display()))
                .hint(format!("name the script: `{}`", path.with_extension("rhai").display())));
        }
        if named || path.extension().is_some_and(|e| e == "rhai") {
            scripts.push(path.into());
        }
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(unreadable)?;
    let mut inside: Vec<PathBuf> =
        entries.map(|e| e.map(|e| e.path())).collect::<std::io::Result<_>>().map_err(unreadable)?;
    inside.sort();
    for path in inside {
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.') || n == "target");
        if !hidden && !path.is_symlink() {
            collect(&path, false, scripts)?;
        }
    }
    Ok(())
}

/// A folder for the files that scripts write, gone when the tests are.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        // Ranks write and read the same files.
        let folder = std::env::temp_dir().join(format!("umklapp-test-{}", std::process::id()));
        let folder = PathBuf::from(ranks::told(folder.display().to_string())?);
        std::fs::create_dir_all(&folder)
            .map_err(|e| Error::file(format!("cannot make the folder `{}`: {e}", folder.display())))?;
        Ok(Scratch(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !ranks::first() {
            return;
        }
        // Files that cannot be removed stay in the system's folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
