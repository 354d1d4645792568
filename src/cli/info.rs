//! `umklapp info`: what this program is and what it computes on.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::{RunOptions, report};
use crate::backend::Rows;
use crate::error::Result;
use crate::number::memory::human;
use crate::number::{DType, memory};
use crate::output::out;
use crate::output::progress::seconds;
use crate::script::Engine;
use crate::script::diagnostics::Report;
use crate::task::Interrupt;
use crate::task::batch::{self, BatchJob};

/// Arguments of `umklapp info`.
#[derive(Args)]
pub(crate) struct Info {
    #[command(flatten)]
    pub(super) shared: RunOptions,
}

impl Info {
    pub(super) fn execute(self) -> ExitCode {
        let lines = || -> Result<Vec<(&str, String)>> {
            let engine = Engine::with(self.shared.settings(), Interrupt::default())?;
            let device = engine.session().device();
            let held = device.memory();
            if device.parts().iter().any(|part| part.share.is_none()) {
                // Long enough for its rows to be shared out by measured speed.
                device.zeros(DType::F64, Rows::all(1 << 22), 1)?;
            }
            let mut lines = vec![
                ("version", env!("CARGO_PKG_VERSION").into()),
                ("commit", option_env!("UMKLAPP_GIT").unwrap_or("unknown").into()),
                ("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
                ("backend", device.name().into()),
                ("device", device.describe()),
                ("threads", device.workers().to_string()),
                ("vectors", vector_units().join(" ")),
                ("memory", format!("{} of {} free", human(held.free), human(held.total))),
                ("host", format!("{} free", human(memory::available()))),
            ];
            if let Some(job) = batch::job() {
                lines.extend(of_job(&job, device.workers()));
            }
            Ok(lines)
        };
        match lines() {
            Ok(lines) => {
                lines.iter().for_each(|(key, value)| out(&format!("{key:8}  {value}")));
                ExitCode::SUCCESS
            }
            Err(e) => report(&Report::plain(&e)),
        }
    }
}

/// What a batch system has given, and what does not fit to it.
fn of_job(job: &BatchJob, threads: usize) -> Vec<(&'static str, String)> {
    let mut which = format!("{} {}", job.system, job.id);
    if let Some((task, of)) = job.task {
        which += &of.map_or(format!(", task {task}"), |n| format!(", task {task} of an array of {n}"));
    }
    if job.restarts > 0 {
        which += &format!(
            ", begun anew {}",
            if job.restarts == 1 { "once".into() } else { format!("{} times", job.restarts) }
        );
    }
    let counted =
        |n: Option<u64>, what: &str| n.map(|n| format!("{n} {what}{}", if n == 1 { "" } else { "s" }));
    let given: Vec<String> = [
        counted(job.nodes, "node"),
        counted(job.ranks, "rank"),
        counted(job.cores, "core"),
        job.memory.map(|m| format!("{} of memory", human(m))),
        job.gpus.as_ref().map(|gpus| format!("GPU {gpus}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut lines = vec![("job", which)];
    if !given.is_empty() {
        lines.push(("given", given.join(", ")));
    }
    if let Some(left) = job.left {
        let left = if left == 0 { "nothing".into() } else { seconds(Duration::from_secs(left)) };
        lines.push(("left", left));
    }
    if let Some(cores) = job.cores.filter(|n| (*n as usize) < threads) {
        lines.push(("note", format!("{threads} threads for {cores} of the job: `--threads {cores}`")));
    }
    lines
}

/// The vector instructions that this processor has and the kernels use.
fn vector_units() -> Vec<&'static str> {
    #[allow(unused_mut)]
    let mut found = vec!["baseline"];
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            found.push("AVX2");
        }
        if std::arch::is_x86_feature_detected!("avx512f") {
            found.push("AVX-512");
        }
    }
    found
}
