//! `umklapp bench`: how fast the core is, as fractions of what the machine's memory allows.

mod dmrg;
mod splines;
mod vmc;
mod wilson;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use super::{Shared, out, report};
use crate::backend::{BlockVector, Device, Distribution, Random, Rows};
use crate::error::Result;
use crate::lattice::{Assembled, Block, Format as Wanted, Lattice, Model};
use crate::method::{Chebyshev, Window};
use crate::number::philox::Stream;
use crate::number::{C64, DType, Matrix};
use crate::operator::{Format, Operator, Stored};
use crate::script::Engine;
use crate::script::diagnostics::Report;
use crate::task::{Interrupt, Task};

/// Arguments of `umklapp bench`.
#[derive(Args)]
pub(crate) struct Bench {
    /// What to measure
    #[arg(value_enum)]
    what: What,
    #[command(flatten)]
    shared: Shared,
    /// The large cases too (10 GB of memory, some minutes)
    #[arg(long)]
    full: bool,
    /// Only cases whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Seconds for each case
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
}

/// What can be measured.
#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// The fused Chebyshev step of the kernel polynomial method
    Kpm,
    /// Block-vector algebra
    Blas,
    /// The Wilson-Dirac operator and Clenshaw's recurrence in its square
    Wilson,
    /// Sweeps of the density-matrix renormalisation group
    Dmrg,
    /// Orbitals on a grid, for variational Monte Carlo
    Splines,
    /// Sweeps of walkers and local energies of variational Monte Carlo
    Vmc,
}

impl Bench {
    pub(super) fn execute(self) -> ExitCode {
        match self.measure() {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => report(&Report::plain(&e)),
        }
    }

    fn measure(&self) -> Result<()> {
        let mut engine = Engine::with(self.shared.settings(), Interrupt::default())?;
        let device = engine.session().device();
        out(&format!("{}: {}", device.name(), device.describe()));
        let against_triad: fn(&Bench, &Device, f64) -> Result<()> = match self.what {
            What::Dmrg => return dmrg::run(&mut engine, self.full, &|name| self.wanted(name)),
            What::Kpm => Bench::kpm,
            What::Blas => Bench::blas,
            What::Vmc => return vmc::run(self, &device),
            What::Wilson => wilson::run,
            What::Splines => splines::run,
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
        self.only.as_ref().is_none_or(|text| name.contains(text.as_str()))
    }

    /// One row a case, format and width.
    fn kpm(&self, device: &Device, bandwidth: f64) -> Result<()> {
        header(["ms/step", "ns/(site vector step)", "M moments/s", "least MB", "GB/s", "of triad"]);
        for (name, big, build) in cases() {
            let title = |format: Format, r: usize| format!("{name} {} R={r}", format_name(format));
            let widths =
                |format: Format| [1, 8, 32].into_iter().filter(move |&r| self.wanted(&title(format, r)));
            let formats = [Format::Stencil, Format::Csr, Format::Sell { chunk: 8, sigma: 64 }, Format::Ell];
            let mut formats = formats
                .into_iter()
                .filter(|f| !(big && matches!(f, Format::Ell)) && widths(*f).next().is_some())
                .peekable();
            if (big && !self.full) || formats.peek().is_none() {
                continue;
            }
            let model = build()?;
            for format in formats {
                let h = operator(device, &model, format)?;
                let window = Window::gershgorin(&h)?.widened(0.01);
                for r in widths(format) {
                    let vector = h.dim() * h.dtype().bytes();
                    if 4 * r * vector > device.memory().free {
                        continue;
                    }
                    let (steps, seconds) = step(&h, window, r, self.limit())?;
                    let step = seconds / steps as f64;
                    // Matrix once, v read, w read and written; what blocking over orders saves is not taken off.
                    let least = (h.node().bytes() + 3 * r * vector) as f64;
                    line(
                        &title(format, r),
                        [
                            step * 1e3,
                            step * 1e9 / (h.dim() * r) as f64,
                            2.0 * (h.dim() * r) as f64 / step / 1e6,
                            least / 1e6,
                            least / step / 1e9,
                            least / step / bandwidth,
                        ],
                    );
                }
            }
        }
        Ok(())
    }

    fn blas(&self, device: &Device, bandwidth: f64) -> Result<()> {
        header(["ms", "ns/number", "Gflop/s", "least MB", "GB/s", "of triad"]);
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
            let row = |name: &str, columns: f64, seconds: f64| {
                let (bytes, numbers) = (columns * column, 20.0 * n as f64);
                let rate = bytes / seconds;
                let values = [
                    seconds * 1e3,
                    seconds * 1e9 / numbers,
                    2.0 * numbers / seconds / 1e9,
                    bytes / 1e6,
                    rate / 1e9,
                    rate / bandwidth,
                ];
                if self.wanted(name) {
                    line(name, values);
                }
            };
            let t = timed(device, self.limit(), || device.dots_with(&basis, &w).map(drop))?;
            row(&format!("V^T w of 20 columns, {n} long"), 21.0, t);
            let t = timed(device, self.limit(), || device.mix(&basis, &weights, 1.0, &mut w))?;
            row(&format!("V c + w of 20 columns, {n} long"), 22.0, t);
        }
        Ok(())
    }
}

/// The head of a Markdown table.
fn header(titles: [&str; 6]) {
    out(&format!("| {:<44} | {} |", "case", titles.join(" | ")));
    out(&format!("| {} |{}", "-".repeat(44), " ---: |".repeat(6)));
}

/// One line of it.
fn line(name: &str, numbers: [f64; 6]) {
    let [time, each, rate, least, bandwidth, fraction] = numbers;
    out(&format!(
        "| {name:<44} | {time:.4} | {each:.4} | {rate:.1} | {least:.1} | {bandwidth:.1} | {:.0} % |",
        100.0 * fraction
    ));
}

/// Seconds of one call: the fastest of as many as fit into the limit, three at least.
fn timed(device: &Device, limit: Duration, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    call()?;
    device.synchronize()?;
    // A launch takes microseconds: what is queued is timed together.
    let repeat = if device.name() == "cpu" { 1 } else { 10 };
    let (started, mut best, mut calls) = (Instant::now(), f64::INFINITY, 0);
    while calls < 3 || started.elapsed() < limit {
        let now = Instant::now();
        for _ in 0..repeat {
            call()?;
        }
        device.synchronize()?;
        best = best.min(now.elapsed().as_secs_f64() / f64::from(repeat));
        calls += 1;
    }
    Ok(best)
}

/// Steps and seconds of the fastest of several recurrences.
fn step(h: &Operator, window: Window, r: usize, limit: Duration) -> Result<(usize, f64)> {
    let v = random(h.device(), h.dtype(), h.dim(), r)?;
    let mut recurrence = Chebyshev::new(h, window, v)?;
    let task = Task::default();
    let warm = Instant::now();
    recurrence.run(2, &task)?;
    let one = warm.elapsed().as_secs_f64() / 2.0;
    let steps = ((limit.as_secs_f64() / 4.0 / one) as usize).clamp(8, 4096).next_multiple_of(8);
    let mut best = f64::INFINITY;
    let started = Instant::now();
    while best.is_infinite() || started.elapsed() < limit {
        let now = Instant::now();
        recurrence.run(steps, &task)?;
        best = best.min(now.elapsed().as_secs_f64());
    }
    Ok((steps, best))
}

/// Bytes a second of the triad z = x y over vectors far larger than any cache, each counted once.
fn triad(device: &Device, limit: Duration) -> Result<f64> {
    let n = if device.name() == "cpu" { 1 << 25 } else { 1 << 28 };
    let x = random(device, DType::F64, n, 1)?;
    let y = random(device, DType::F64, n, 1)?;
    let mut z = device.zeros(DType::F64, Rows::all(n), 1)?;
    let seconds = timed(device, limit, || device.multiply(&x, &y, &mut z))?;
    Ok(3.0 * x.bytes() as f64 / seconds)
}

fn random(device: &Device, dtype: DType, rows: usize, columns: usize) -> Result<BlockVector> {
    let mut v = device.zeros(dtype, Rows::all(rows), columns)?;
    let distribution = if dtype.is_complex() { Distribution::Phase } else { Distribution::Sign };
    device.fill_random(&mut v, Random { seed: 1, stream: Stream::Vectors, first_column: 0, distribution })?;
    Ok(v)
}

fn format_name(format: Format) -> &'static str {
    match format {
        Format::Stencil => "stencil",
        Format::Csr => "CSR",
        Format::Sell { .. } => "SELL-8-64",
        Format::Ell => "ELL",
        Format::Dense => "dense",
        Format::Auto => "auto",
    }
}

fn operator(device: &Device, model: &Model, format: Format) -> Result<Operator> {
    let wanted = if format == Format::Stencil { Wanted::Stencil } else { Wanted::Csr };
    match model.assemble(wanted, false)? {
        Assembled::Stencil(stencil) => Stored::from_stencil(device, stencil, Format::Stencil),
        Assembled::Csr(csr) => Stored::from_csr(device, csr, format),
    }
}

/// A name, whether the case is large, and how to make the model.
type Case = (&'static str, bool, fn() -> Result<Model>);

/// The lattices of papers.md A and B, those of the peers' measurements first.
fn cases() -> Vec<Case> {
    vec![
        ("cubic 64^3 disordered", false, || disordered(Lattice::cubic(64, 64, 64)?)),
        ("graphene 1024x1024 disordered", false, || disordered(Lattice::honeycomb(1024, 1024)?)),
        ("insulator 40x40x40", false, || insulator(40, 40, 40)),
        ("cubic 128^3 disordered", false, || disordered(Lattice::cubic(128, 128, 128)?)),
        ("cubic 256^3 disordered", true, || disordered(Lattice::cubic(256, 256, 256)?)),
        ("insulator 200x100x40", true, || insulator(200, 100, 40)),
    ]
}

fn disordered(lattice: Lattice) -> Result<Model> {
    let mut model = Model::new(lattice, 1)?;
    model.nearest(&Block::scalar(1, -1.0))?;
    model.disorder(1.0, 1)?;
    Ok(model)
}

/// Eq. (1) of Kreutzer et al. with t = 1 and V = 0: Gamma matrices (1, tau_z, tau_x s_x, tau_x s_y, tau_x s_z).
fn insulator(x: usize, y: usize, z: usize) -> Result<Model> {
    let p = Matrix::pauli();
    let mut model = Model::new(Lattice::cubic(x, y, z)?, 4)?;
    let gamma = [p.z.kron(&p.i)?, p.x.kron(&p.x)?, p.x.kron(&p.y)?, p.x.kron(&p.z)?];
    let block = |m: &Matrix| Block::new(4, m.data().to_complex());
    model.onsite(&block(&gamma[0].scale(2.0.into()))?)?;
    for j in 0..3 {
        let mut shift = [0; 3];
        shift[j] = 1;
        let hop = gamma[0].sub(&gamma[j + 1].scale(C64::new(0.0, 1.0).into()))?.scale((-0.5).into());
        model.hop(&shift, &block(&hop)?)?;
    }
    Ok(model)
}
