//! Which backend a session computes on: its name and weights, as the command line and the session give them.

use std::io::IsTerminal;
use std::sync::Arc;

use super::Settings;
use crate::backend::Device;
use crate::backend::cpu::Cpu;
use crate::backend::cuda::Cuda;
use crate::backend::split::Split;
use crate::error::{Error, Result};
use crate::output::tell;
use crate::task::Interrupt;

/// The names that complete; more parts may be joined by `+`.
pub(crate) const BACKENDS: [&str; 4] = ["auto", "cpu", "cuda", "cpu+cuda"];

/// The name of a backend, if it is one.
///
/// # Errors
/// For anything but `auto`, `cpu`, `cuda` and the latter two joined by `+`.
pub(crate) fn backend_name(name: &str) -> Result<String> {
    if name == "auto" || name.split('+').all(|part| ["cpu", "cuda"].contains(&part)) {
        return Ok(name.into());
    }
    Err(Error::backend(format!("no backend `{name}`"))
        .hint("the backends are auto, cpu, cuda, and several that share the work, as in cpu+cuda"))
}

/// The weights of the parts of a backend, from a text like `1:12`.
///
/// # Errors
/// For anything but positive numbers.
pub(crate) fn weights(text: &str) -> Result<Vec<f64>> {
    let wrong = || {
        Error::input(format!("`{text}` are no weights"))
            .hint("give one positive number a backend, as in `1:12` for cpu+cuda")
    };
    text.split(':')
        .map(|w| w.trim().parse().ok().filter(|w: &f64| w.is_finite() && *w > 0.0).ok_or_else(wrong))
        .collect()
}

/// More would be a slip, and bring a machine to a halt.
const MOST_THREADS: usize = 1024;

/// Opens the backend that the settings ask for; only "auto" falls back to the CPU, and says so on a terminal.
pub(crate) fn open_device(settings: &Settings, interrupt: &Interrupt) -> Result<Device> {
    if settings.threads > MOST_THREADS {
        return Err(Error::input(format!("{} threads", settings.threads))
            .hint(format!("use as many as there are processors, which 0 does; {MOST_THREADS} at most")));
    }
    if settings.threads > 0 {
        // Work that no device does, as that on gauge fields, shares one pool a process, so the first session decides.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(settings.threads).build_global();
    }
    let name = backend_name(if settings.backend.is_empty() { "auto" } else { &settings.backend })?;
    let cpu = |threads| -> Result<Device> { Ok(Arc::new(Cpu::new(threads, interrupt.clone())?)) };
    let cuda = |number| -> Result<Device> { Ok(Arc::new(Cuda::new(number, interrupt.clone())?)) };
    if !name.contains('+') && !settings.weights.is_empty() {
        return Err(Error::input("weights are for several backends that share the work")
            .hint("name them, as in `--backend cpu+cuda --weights 1:12`"));
    }
    match name.as_str() {
        "cpu" => cpu(settings.threads),
        "cuda" => cuda(gpus(&settings.devices, 1)?[0]),
        "auto" => cuda(gpus(&settings.devices, 1)?[0]).or_else(|e| {
            if !settings.quiet && std::io::stderr().is_terminal() {
                tell(&format!("note: computing on the CPU: {}", e.message()));
            }
            cpu(settings.threads)
        }),
        several => {
            let names: Vec<&str> = several.split('+').collect();
            let threads = threads_each(settings.threads, &names);
            let count = names.iter().filter(|name| **name == "cuda").count();
            let mut numbers = gpus(&settings.devices, count)?.into_iter().peekable();
            let parts = names.iter().map(|name| match numbers.next_if(|_| *name == "cuda") {
                Some(number) => cuda(number),
                None => cpu(threads),
            });
            let parts = parts.collect::<Result<Vec<_>>>()?;
            let (weights, quiet) = (settings.weights.clone(), settings.quiet);
            let split = Split::new(parts, Some(weights).filter(|w| !w.is_empty()), move |text| {
                if !quiet {
                    tell(&format!("note: {text}"));
                }
            })?;
            Ok(Arc::new(split))
        }
    }
}

/// The numbers of so many GPUs: those named, then those that follow the last one.
///
/// # Errors
/// When more are named than there are parts for.
fn gpus(named: &[u32], count: usize) -> Result<Vec<u32>> {
    if named.len() > count.max(1) {
        let text = if count == 1 { "one GPU is".into() } else { format!("{count} GPUs are") };
        return Err(Error::input(format!("{} GPUs are named where {text} used", named.len())).hint(
            "give one number for `cuda` and two for `cuda+cuda`, as in `--backend cuda+cuda --device 0,2`",
        ));
    }
    let next = named.last().map_or(0, |last| last.saturating_add(1));
    let others = (next..).filter(|number| !named.contains(number));
    Ok(named.iter().copied().chain(others).take(count).collect())
}

/// Threads of each part that is a CPU: a GPU needs one to drive it where there are several.
fn threads_each(wanted: usize, names: &[&str]) -> usize {
    let there = std::thread::available_parallelism().map_or(1, |n| n.get());
    let cpus = names.iter().filter(|name| **name == "cpu").count().max(1);
    let drivers = names.len() - cpus.min(names.len());
    let all = if wanted > 0 { wanted } else { there - drivers.min(there / 4) };
    (all / cpus).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_follow_those_named() {
        assert_eq!(gpus(&[], 2).unwrap(), [0, 1]);
        assert_eq!(gpus(&[3], 3).unwrap(), [3, 4, 5]);
        assert_eq!(gpus(&[2, 0], 2).unwrap(), [2, 0]);
        assert_eq!(gpus(&[2, 0], 4).unwrap(), [2, 0, 1, 3]);
        assert!(gpus(&[0, 1], 1).is_err());
    }

    #[test]
    fn names_and_weights_are_read() {
        assert!(["auto", "cpu", "cuda", "cpu+cuda", "cpu+cpu+cpu"].iter().all(|n| backend_name(n).is_ok()));
        assert!(["", "gpu", "cpu+", "auto+cpu", "cpu,cuda"].iter().all(|n| backend_name(n).is_err()));
        assert_eq!(weights("1:12").unwrap(), [1.0, 12.0]);
        assert_eq!(weights("0.5: 2 :1e1").unwrap(), [0.5, 2.0, 10.0]);
        assert!(["", "1:", "1:x", "1:-2", "0:1", "inf:1"].iter().all(|w| weights(w).is_err()));
    }
}
