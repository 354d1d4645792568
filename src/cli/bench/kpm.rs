//! The fused Chebyshev step of the kernel polynomial method.

use std::time::{Duration, Instant};

use super::{Bench, header, line, random};
use crate::backend::{BackendPart, Device};
use crate::error::Result;
use crate::lattice::{Assembled, AssemblyForm as Wanted, Lattice, Model, OrbitalBlock};
use crate::method::{Chebyshev, Window};
use crate::number::{C64, Matrix};
use crate::operator::{MatrixFormat, Operator, StoredMatrix};
use crate::output::out;
use crate::ranks;
use crate::task::Task;

/// One row a case, format and width.
pub(super) fn run(bench: &Bench, device: &Device, bandwidth: f64) -> Result<()> {
    if !device.parts().is_empty() {
        return shared(bench, device);
    }
    header(&["ms/step", "ns/(site vector step)", "M moments/s", "least MB", "GB/s", "of triad"]);
    each(bench, device, |title, model, format, widths| {
        let h = operator(device, model, format)?;
        let window = Window::gershgorin(&h)?.widened(0.01);
        for &r in widths {
            let vector = h.dim() * h.dtype().bytes();
            if 4 * r * vector > device.memory().free {
                continue;
            }
            let (steps, seconds) = step(&h, window, r, bench.limit(), ranks::told)?;
            let step = seconds / steps as f64;
            // Matrix once, v read, w read and written; what blocking over orders saves is not taken off.
            let least = (h.info().bytes + 3 * r * vector) as f64;
            line(
                &title(r),
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
        Ok(())
    })
}

/// Several backends: what each reaches alone with the whole matrix, and what they reach together of the sum.
fn shared(bench: &Bench, device: &Device) -> Result<()> {
    let parts = device.parts();
    let alone: Vec<String> = parts.iter().map(|p| format!("{} alone, ms", p.device.name())).collect();
    let mut titles: Vec<&str> = vec!["ms/step", "M moments/s", "shares, %"];
    titles.extend(alone.iter().map(String::as_str));
    titles.push("of the sum of rates");
    header(&titles);
    each(bench, device, |title, model, format, widths| {
        let h = operator(device, model, format)?;
        let window = Window::gershgorin(&h)?.widened(0.01);
        let singles: Vec<Operator> =
            parts.iter().map(|p| operator(&p.device, model, format)).collect::<Result<_>>()?;
        for &r in widths {
            let bytes = 4 * r * h.dim() * h.dtype().bytes();
            if singles.iter().chain([&h]).any(|h| bytes > h.device().memory().free) {
                continue;
            }
            let time = |h: &Operator| -> Result<f64> {
                let (steps, seconds) = step(h, window, r, bench.limit(), ranks::told)?;
                Ok(seconds / steps as f64)
            };
            let together = time(&h)?;
            let alone: Vec<f64> = singles.iter().map(time).collect::<Result<_>>()?;
            let sum: f64 = alone.iter().map(|t| 1.0 / t).sum();
            let share = |p: BackendPart| format!("{:.1}", 100.0 * p.share.unwrap_or(0.0));
            let shares: Vec<String> = device.parts().into_iter().map(share).collect();
            let mut cells = vec![
                format!("{:.4}", together * 1e3),
                format!("{:.1}", 2.0 * (h.dim() * r) as f64 / together / 1e6),
                shares.join(":"),
            ];
            cells.extend(alone.iter().map(|t| format!("{:.4}", t * 1e3)));
            cells.push(format!("{:.0} %", 100.0 / together / sum));
            out(&format!("| {:<44} | {} |", title(r), cells.join(" | ")));
        }
        Ok(())
    })
}

/// Calls `measure(title, model, format, widths)` for every case that is wanted.
fn each(
    bench: &Bench,
    device: &Device,
    mut measure: impl FnMut(&dyn Fn(usize) -> String, &Model, MatrixFormat, &[usize]) -> Result<()>,
) -> Result<()> {
    for (name, big, build) in cases() {
        let title = |format: MatrixFormat, r: usize| format!("{name} {} R={r}", format_name(format));
        let widths = |format: MatrixFormat| -> Vec<usize> {
            [1, 8, 32].into_iter().filter(|&r| bench.wanted(&title(format, r))).collect()
        };
        let chunk = if device.name() == "cpu" { 8 } else { 32 };
        let formats = [
            MatrixFormat::Stencil,
            MatrixFormat::Csr,
            MatrixFormat::Sell { chunk, sigma: 64 },
            MatrixFormat::Ell,
        ];
        let mut formats = formats.into_iter().filter(|&f| !widths(f).is_empty()).peekable();
        if (big && !bench.full) || formats.peek().is_none() {
            continue;
        }
        let model = build()?;
        for format in formats {
            measure(&|r| title(format, r), &model, format, &widths(format))?;
            device.synchronize()?;
        }
    }
    Ok(())
}

/// A time that all who measure together go by.
pub(super) type Agreed = fn(f64) -> Result<f64>;

/// Steps and seconds of the fastest of several recurrences.
pub(super) fn step(
    h: &Operator,
    window: Window,
    r: usize,
    limit: Duration,
    agreed: Agreed,
) -> Result<(usize, f64)> {
    let v = random(h.device(), h.dtype(), h.dim(), r)?;
    let mut recurrence = Chebyshev::new(h, window, v)?;
    let task = Task::default();
    // What the first run prepares is none of the others' time.
    recurrence.run(2, &task)?;
    let warm = Instant::now();
    recurrence.run(2, &task)?;
    let one = agreed(warm.elapsed().as_secs_f64())? / 2.0;
    let limit = limit.as_secs_f64();
    let mut steps = ((limit / 4.0 / one) as usize).clamp(8, 4096).next_multiple_of(8);
    let mut best = f64::INFINITY;
    let started = Instant::now();
    while best.is_infinite() || agreed(started.elapsed().as_secs_f64())? < limit {
        let now = Instant::now();
        recurrence.run(steps, &task)?;
        let seconds = now.elapsed().as_secs_f64();
        // Two steps alone take longer than two of many.
        if agreed(seconds)? < limit / 8.0 && steps < 4096 {
            steps *= 2;
            best = f64::INFINITY;
        } else {
            best = best.min(seconds);
        }
    }
    Ok((steps, agreed(best)?))
}

fn format_name(format: MatrixFormat) -> &'static str {
    match format {
        MatrixFormat::Stencil => "stencil",
        MatrixFormat::Csr => "CSR",
        MatrixFormat::Sell { chunk: 8, .. } => "SELL-8-64",
        MatrixFormat::Sell { .. } => "SELL-32-64",
        MatrixFormat::Ell => "ELL",
        MatrixFormat::Dense => "dense",
        MatrixFormat::Auto => "auto",
    }
}

pub(super) fn operator(device: &Device, model: &Model, format: MatrixFormat) -> Result<Operator> {
    let wanted = if format == MatrixFormat::Stencil { Wanted::Stencil } else { Wanted::Csr };
    match model.assemble(wanted, false)? {
        Assembled::Stencil(stencil) => StoredMatrix::from_stencil(device, stencil, MatrixFormat::Stencil),
        Assembled::Csr(csr) => StoredMatrix::from_csr(device, csr, format),
    }
}

/// A name, whether the case is large, and how to make the model.
type KpmCase = (&'static str, bool, fn() -> Result<Model>);

/// The lattices of Zhang et al. 2013 and B, those of the peers' measurements first.
fn cases() -> Vec<KpmCase> {
    vec![
        ("cubic 64^3 disordered", false, || disordered(Lattice::cubic(64, 64, 64)?)),
        ("graphene 1024x1024 disordered", false, || disordered(Lattice::honeycomb(1024, 1024)?)),
        ("insulator 40x40x40", false, || insulator(40, 40, 40)),
        ("cubic 128^3 disordered", false, || disordered(Lattice::cubic(128, 128, 128)?)),
        ("cubic 256^3 disordered", true, || disordered(Lattice::cubic(256, 256, 256)?)),
        ("insulator 200x100x40", true, || insulator(200, 100, 40)),
    ]
}

pub(super) fn disordered(lattice: Lattice) -> Result<Model> {
    let mut model = Model::new(lattice, 1)?;
    model.nearest(&OrbitalBlock::scalar(1, -1.0))?;
    model.disorder(1.0, 1)?;
    Ok(model)
}

/// Eq. (1) of Kreutzer et al. with t = 1 and V = 0: Gamma matrices (1, tau_z, tau_x s_x, tau_x s_y, tau_x s_z).
pub(super) fn insulator(x: usize, y: usize, z: usize) -> Result<Model> {
    let p = Matrix::pauli();
    let mut model = Model::new(Lattice::cubic(x, y, z)?, 4)?;
    let gamma = [p.z.kron(&p.i)?, p.x.kron(&p.x)?, p.x.kron(&p.y)?, p.x.kron(&p.z)?];
    let block = |m: &Matrix| OrbitalBlock::new(4, m.data().to_complex());
    model.onsite(&block(&gamma[0].scale(2.0.into()))?)?;
    for j in 0..3 {
        let mut shift = [0; 3];
        shift[j] = 1;
        let hop = gamma[0].sub(&gamma[j + 1].scale(C64::new(0.0, 1.0).into()))?.scale((-0.5).into());
        model.hop(&shift, &block(&hop)?)?;
    }
    Ok(model)
}
