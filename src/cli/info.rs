//! `umklapp info`: what this program is and what it computes on.

use std::process::ExitCode;

use clap::Args;

use super::{Shared, report};
use crate::backend::Rows;
use crate::error::Result;
use crate::number::memory::human;
use crate::number::{DType, memory};
use crate::output::out;
use crate::script::Engine;
use crate::script::diagnostics::Report;
use crate::task::Interrupt;

/// Arguments of `umklapp info`.
#[derive(Args)]
pub(crate) struct Info {
    #[command(flatten)]
    pub(super) shared: Shared,
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
            Ok(vec![
                ("version", env!("CARGO_PKG_VERSION").into()),
                ("commit", option_env!("UMKLAPP_GIT").unwrap_or("unknown").into()),
                ("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
                ("backend", device.name().into()),
                ("device", device.describe()),
                ("threads", device.workers().to_string()),
                ("vectors", vector_units().join(" ")),
                ("memory", format!("{} of {} free", human(held.free), human(held.total))),
                ("host", format!("{} free", human(memory::available()))),
            ])
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
