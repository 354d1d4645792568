//! Runs a script inside another Rust program: values go in, results come back as typed values, errors as reports.
//!
//! `cargo run --release --example embed`

use std::process::ExitCode;

use umklapp::Engine;
use umklapp::number::Table;
use umklapp::script::Settings;
use umklapp::script::diagnostics::Report;
use umklapp::task::Interrupt;

/// The script of a user of this program; `size` and `disorder` come from outside.
const SCRIPT: &str = "
    let h = tight_binding(lattice::square(size, size), #{ hopping: -1.0, disorder: disorder, seed: 1 });
    kpm::dos(h, #{ moments: 256, vectors: 4, seed: 2 })
";

fn density_of_states(size: i64, disorder: f64) -> Result<Table, Box<Report>> {
    let settings = Settings { threads: 2, quiet: true, ..Settings::default() };
    // Another thread may keep a clone of the interrupt, and raise it to stop the script.
    let mut engine = Engine::with(settings, Interrupt::default()).map_err(|e| Box::new(Report::plain(&e)))?;
    engine.scope_mut().push("size", size);
    engine.scope_mut().push("disorder", disorder);
    let value = engine.eval(SCRIPT)?;
    Ok(value.cast::<Table>())
}

pub fn main() -> ExitCode {
    for disorder in [0.0, 4.0] {
        match density_of_states(64, disorder) {
            Ok(table) => {
                let densities = table.column("density").and_then(|d| d.as_real("density")).unwrap_or(&[]);
                let highest = densities.iter().copied().fold(0.0, f64::max);
                println!("disorder {disorder}: {} energies, highest density {highest:.3}", table.rows());
            }
            Err(report) => {
                eprintln!("{}", report.render(true));
                return ExitCode::FAILURE;
            }
        }
    }
    // A mistake in a script is a report, with the place and a hint.
    match density_of_states(-1, 0.0) {
        Ok(_) => ExitCode::FAILURE,
        Err(report) => {
            println!("{}", report.render(false));
            ExitCode::SUCCESS
        }
    }
}
