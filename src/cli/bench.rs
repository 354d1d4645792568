//! `umklapp bench`: how fast the core is, as fractions of what the machine's memory allows.

mod dmrg;
mod kpm;
mod meanfield;
mod scale;
mod splines;
mod vmc;
mod wilson;

use std::cell::{Cell, RefCell};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use super::{RunOptions, report};
use crate::backend::{BlockVector, Device, Random, RitzCorrection, Rows, VectorDistribution};
use crate::error::{Error, Result};
use crate::number::philox::Stream;
use crate::number::{C64, DType};
use crate::output::out;
use crate::ranks;
use crate::script::Engine;
use crate::script::diagnostics::Report;
use crate::task::Interrupt;

/// Arguments of `umklapp bench`.
#[derive(Args)]
pub(crate) struct Bench {
    /// What to measure
    #[arg(value_enum)]
    what: Measurement,
    #[command(flatten)]
    pub(super) shared: RunOptions,
    /// Include the large cases (10 GB of memory, some minutes)
    #[arg(long)]
    full: bool,
    /// Only cases whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Seconds for each case
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    #[command(flatten)]
    network: scale::Network,
    /// The cases that `only` has left out, and whether it has left any.
    #[arg(skip)]
    left: RefCell<Vec<String>>,
    #[arg(skip)]
    some: Cell<bool>,
}

/// What can be measured.
#[derive(Clone, Copy, ValueEnum)]
enum Measurement {
    /// The fused Chebyshev step of the kernel polynomial method
    Kpm,
    /// Block-vector algebra
    Blas,
    /// The Wilson-Dirac operator and Clenshaw's recurrence in its square
    Wilson,
    /// Sweeps of the density-matrix renormalisation group
    Dmrg,
    /// Mean fields of repelling and of attracting electrons
    Meanfield,
    /// Orbitals on a grid, for variational Monte Carlo
    Splines,
    /// Strong and weak scaling over ranks or equal backends, and a model of many nodes
    Scale,
    /// Sweeps of walkers and local energies of variational Monte Carlo
    Vmc,
}

impl Bench {
    pub(super) fn execute(self) -> ExitCode {
        match self.measure().and_then(|()| self.found()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => report(&Report::plain(&e)),
        }
    }

    fn measure(&self) -> Result<()> {
        let mut engine = Engine::with(self.shared.settings(), Interrupt::default())?;
        let device = engine.session().device();
        out(&format!("{}: {}", device.name(), device.describe()));
        let against_triad: fn(&Bench, &Device, f64) -> Result<()> = match self.what {
            Measurement::Dmrg => return dmrg::run(&mut engine, self.full, &|name| self.wanted(name)),
            Measurement::Meanfield => return meanfield::run(&mut engine, &|name| self.wanted(name)),
            Measurement::Kpm => kpm::run,
            Measurement::Blas => Bench::blas,
            Measurement::Scale => return scale::run(self, &device),
            Measurement::Vmc => return vmc::run(self, &device),
            Measurement::Wilson => wilson::run,
            Measurement::Splines => splines::run,
        };
        let bandwidth = triad(&device, self.limit())?;
        out(&format!("triad z = x y: {:.1} GB/s", bandwidth / 1e9));
        out("");
        against_triad(self, &device, bandwidth)
    }

    fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.clamp(0.01, 3600.0))
    }

    fn wanted(&self, name: &str) -> bool {
        let wanted = self.only.as_ref().is_none_or(|text| name.contains(text.as_str()));
        self.some.set(self.some.get() || wanted);
        if !wanted {
            self.left.borrow_mut().push(name.to_string());
        }
        wanted
    }

    /// Refuses an `--only` that no case has in its name.
    fn found(&self) -> Result<()> {
        let Some(only) = self.only.as_ref().filter(|_| !self.some.get()) else { return Ok(()) };
        let left = self.left.borrow();
        let more = if self.full { "" } else { "; `--full` has more" };
        Err(Error::input(format!("no case has `{only}` in its name"))
            .hint(format!("there are `{}`{more}", left.join("`, `"))))
    }

    fn blas(&self, device: &Device, bandwidth: f64) -> Result<()> {
        header(&["ms", "ns/number", "Gflop/s", "least MB", "GB/s", "of triad"]);
        let n = if self.full { 1 << 24 } else { 1 << 21 };
        for dtype in [DType::F64, DType::C64] {
            for r in [1usize, 8, 32] {
                let n = n / r;
                let x = random(device, dtype, n, r)?;
                let mut y = random(device, dtype, n, r)?;
                let (bytes, one) = (x.bytes() as f64, [C64::new(0.5, 0.0)]);
                let small = vec![C64::new(0.1, 0.0); r * r];
                let row = |name: &str, bytes: f64, flops: f64, seconds: f64| {
                    let name = format!("{name} {dtype} {n} x {r}");
                    if self.wanted(&name) {
                        line(
                            &name,
                            [
                                seconds * 1e3,
                                seconds * 1e9 / (n * r) as f64,
                                flops / seconds / 1e9,
                                bytes / 1e6,
                                bytes / seconds / 1e9,
                                bytes / seconds / bandwidth,
                            ],
                        );
                    }
                };
                let flop = if dtype.is_complex() { 8.0 } else { 2.0 };
                let count = (n * r) as f64;
                let t = timed(device, self.limit(), || device.axpby(&one, &x, &one, &mut y))?;
                row("axpby", 3.0 * bytes, 2.0 * flop * count, t);
                let t = timed(device, self.limit(), || device.dots(&x, &y).map(drop))?;
                row("dots", 2.0 * bytes, flop * count, t);
                let t = timed(device, self.limit(), || device.gram(&x, &y).map(drop))?;
                row("gram", 2.0 * bytes, flop * count * r as f64, t);
                let t = timed(device, self.limit(), || device.combine(&x, &small, 1.0, &mut y))?;
                row("combine", 3.0 * bytes, flop * count * r as f64, t);
            }
        }
        // The basis of a Davidson search, at the length that Nemes et al. (2014) give and ten times that.
        for n in [500_000, 5_000_000] {
            let basis: Vec<BlockVector> =
                (0..20).map(|_| random(device, DType::F64, n, 1)).collect::<Result<_>>()?;
            let basis: Vec<&BlockVector> = basis.iter().collect();
            let mut w = random(device, DType::F64, n, 1)?;
            let weights = vec![C64::new(0.1, 0.0); basis.len()];
            let column = w.bytes() as f64;
            // Columns that are read or written, and products and sums of each number of the basis.
            let row = |name: &str, columns: f64, products: f64, seconds: f64| {
                let (bytes, numbers) = (columns * column, 20.0 * n as f64);
                let rate = bytes / seconds;
                let values = [
                    seconds * 1e3,
                    seconds * 1e9 / numbers,
                    2.0 * products * numbers / seconds / 1e9,
                    bytes / 1e6,
                    rate / 1e9,
                    rate / bandwidth,
                ];
                if self.wanted(name) {
                    line(name, values);
                }
            };
            let t = timed(device, self.limit(), || device.dots_with(&basis, &w).map(drop))?;
            row(&format!("V^T w of 20 columns, {n} long"), 21.0, 1.0, t);
            let t = timed(device, self.limit(), || device.mix(&basis, &weights, 1.0, &mut w))?;
            row(&format!("V c + w of 20 columns, {n} long"), 22.0, 1.0, t);
            let images: Vec<BlockVector> =
                (0..20).map(|_| random(device, DType::F64, n, 1)).collect::<Result<_>>()?;
            let images: Vec<&BlockVector> = images.iter().collect();
            let (mut kr, mut kx) = (w.clone(), w.clone());
            let of = RitzCorrection {
                basis: &basis,
                images: &images,
                diagonal: &w,
                coefficients: &weights,
                value: -1.0,
                shift: -2.0,
                floor: 0.1,
            };
            let t = timed(device, self.limit(), || device.correct(of, &mut kr, &mut kx).map(drop))?;
            row(&format!("correction in 20 columns, {n} long"), 43.0, 4.0, t);
        }
        Ok(())
    }
}

/// The head of a Markdown table.
fn header(titles: &[&str]) {
    out(&format!("| {:<44} | {} |", "case", titles.join(" | ")));
    out(&format!("| {} |{}", "-".repeat(44), " ---: |".repeat(titles.len())));
}

/// One line of it.
fn line(name: &str, numbers: [f64; 6]) {
    let [time, each, rate, least, bandwidth, fraction] = numbers;
    out(&format!(
        "| {name:<44} | {time:.4} | {each:.4} | {rate:.1} | {least:.1} | {bandwidth:.1} | {:.0} % |",
        100.0 * fraction
    ));
}

/// Seconds of one call, from the fastest of some.
fn timed(device: &Device, limit: Duration, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    call()?;
    device.synchronize()?;
    // A launch takes microseconds: what is queued is timed together.
    let repeat = if device.name() == "cpu" { 1 } else { 10 };
    let together = fastest(limit, || {
        (0..repeat).try_for_each(|_| call())?;
        device.synchronize()
    })?;
    Ok(together / f64::from(repeat))
}

/// Seconds of the fastest of as many calls as fit into the limit, three at least; of several ranks by the clock of the
/// first, so that all make as many calls.
fn fastest(limit: Duration, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let (started, mut best, mut calls) = (Instant::now(), f64::INFINITY, 0);
    loop {
        let now = Instant::now();
        call()?;
        best = best.min(now.elapsed().as_secs_f64());
        calls += 1;
        if calls >= 3 && ranks::told(started.elapsed() >= limit)? {
            return ranks::told(best);
        }
    }
}

/// Bytes a second of the triad z = x y over vectors far larger than any cache, each counted once; of several backends
/// what each reaches by itself, added.
fn triad(device: &Device, limit: Duration) -> Result<f64> {
    let parts = device.parts();
    if !parts.is_empty() {
        return parts.iter().map(|part| triad(&part.device, limit)).sum();
    }
    let n = if device.name() == "cpu" { 1 << 25 } else { 1 << 28 };
    let x = random(device, DType::F64, n, 1)?;
    let y = random(device, DType::F64, n, 1)?;
    let mut z = device.zeros(DType::F64, Rows::all(n), 1)?;
    let seconds = timed(device, limit, || device.multiply(&x, &y, &mut z))?;
    Ok(3.0 * x.bytes() as f64 / seconds)
}

fn random(device: &Device, dtype: DType, rows: usize, columns: usize) -> Result<BlockVector> {
    let mut v = device.zeros(dtype, Rows::all(rows), columns)?;
    let distribution = if dtype.is_complex() { VectorDistribution::Phase } else { VectorDistribution::Sign };
    device.fill_random(&mut v, Random { seed: 1, stream: Stream::Vectors, first_column: 0, distribution })?;
    Ok(v)
}
