//! How the fused Chebyshev step scales over ranks, or over several backends of one process: measured over those there
//! are, and by the model of a product that the exchange of faces overlaps: time = max(product, faces / link) + latency.

use clap::Args;

use super::{Bench, fastest, kpm};
use crate::backend::exchange::{HostMemory, PlainMemory};
use crate::backend::ranks::least_surface;
use crate::backend::{BackendPart, Device};
use crate::error::{Error, Result};
use crate::lattice::{Lattice, Model};
use crate::method::Window;
use crate::operator::MatrixFormat;
use crate::output::out;
use crate::ranks::{self, World};

/// The network between nodes, for the model.
#[derive(Args, Clone, Copy)]
pub(super) struct Network {
    /// Bandwidth of a node's link in each direction, in GB/s (for `scale`)
    #[arg(long, default_value_t = 25.0, value_name = "GB/S")]
    link: f64,
    /// Time of the shortest message in microseconds (for `scale`)
    #[arg(long, default_value_t = 5.0, value_name = "US")]
    latency: f64,
}

/// What a message of some bytes takes.
#[derive(Debug, Clone, Copy)]
struct MessageTime {
    /// Bytes a second, in each direction.
    rate: f64,
    /// Seconds.
    latency: f64,
}

/// A lattice and what is computed on it.
#[derive(Debug, Clone)]
struct Workload {
    cells: Vec<usize>,
    orbitals: usize,
    /// Bytes of a row of all columns.
    row: f64,
    /// Seconds of a step on one node, for each row.
    each: f64,
}

/// A step on several nodes, as the model has it.
#[derive(Debug, Clone)]
struct ScaledStep {
    grid: Vec<usize>,
    rows: usize,
    /// Seconds of the product, of the faces, and of both.
    product: f64,
    faces: f64,
    all: f64,
}

/// The largest box of the grid of least surface decides. Hoppings reach the nearest cells.
fn modelled(work: &Workload, nodes: usize, link: MessageTime) -> Option<ScaledStep> {
    let grid = least_surface(&work.cells, &vec![1; work.cells.len()], nodes)?;
    let sides: Vec<usize> = work.cells.iter().zip(&grid).map(|(n, parts)| n.div_ceil(*parts)).collect();
    let rows = sides.iter().product::<usize>() * work.orbitals;
    let surface: usize =
        sides.iter().zip(&grid).filter(|(_, n)| **n > 1).map(|(side, _)| 2 * rows / side).sum();
    let (product, faces) = (rows as f64 * work.each, surface as f64 * work.row / link.rate);
    let wait = if nodes > 1 { link.latency } else { 0.0 };
    Some(ScaledStep { grid, rows, product, faces, all: product.max(faces) + wait })
}

/// A message to the next rank while one comes from the rank before.
fn round(world: &World, memory: &mut Option<[Box<dyn HostMemory>; 2]>, bytes: usize) -> Result<()> {
    const TAG: i32 = 2;
    let (rank, size) = (world.rank(), world.size());
    let fresh = || -> Box<dyn HostMemory> { Box::new(PlainMemory::new(bytes)) };
    let [into, from] = memory.take().unwrap_or_else(|| [fresh(), fresh()]);
    let into = world.receive(into, bytes, (rank + size - 1) % size, TAG)?;
    let from = world.send(from, bytes, (rank + 1) % size, TAG)?;
    *memory = Some([world.arrive(into)?, world.arrive(from)?]);
    Ok(())
}

/// The link between the ranks there are, all of them busy.
fn measured_link(bench: &Bench, world: &World) -> Result<MessageTime> {
    let seconds = |bytes: usize| {
        let mut memory = None;
        fastest(bench.limit() / 4, || round(world, &mut memory, bytes))
    };
    const LARGE: usize = 4 << 20;
    let (latency, large) = (seconds(8)?, seconds(LARGE)?);
    Ok(MessageTime { rate: LARGE as f64 / large.max(1e-9), latency })
}

/// Vectors that a recurrence needs, and what lies beside them.
const VECTORS: f64 = 2.2;

/// Seconds of one step over all ranks, or of this process alone; NaN where the vectors do not fit.
fn seconds(bench: &Bench, device: &Device, model: &Model, r: usize, together: bool) -> Result<f64> {
    let agree: kpm::Agreed = if together { ranks::told } else { Ok };
    let h = kpm::operator(device, model, MatrixFormat::Stencil)?;
    let vector = (h.dim() * h.dtype().bytes() * r) as f64;
    if agree(VECTORS * vector / device.memory().free as f64)? > 1.0 {
        return Ok(f64::NAN);
    }
    let window = Window::from_limits(-20.0, 20.0)?;
    let (steps, seconds) = kpm::step(&h, window, r, bench.limit(), agree)?;
    Ok(seconds / steps as f64)
}

/// A family of lattices that the measurements and the tables share.
#[derive(Clone, Copy)]
struct ScaleCase {
    name: &'static str,
    /// What one rank has.
    cells: [usize; 3],
    model: fn([usize; 3]) -> Result<Model>,
    orbitals: usize,
    /// Bytes of a number.
    number: usize,
    width: usize,
}

const fn cubic(edge: usize, width: usize) -> ScaleCase {
    let model = |[x, y, z]: [usize; 3]| kpm::disordered(Lattice::cubic(x, y, z)?);
    ScaleCase { name: "cubic", cells: [edge; 3], model, orbitals: 1, number: 8, width }
}

const fn insulator(cells: [usize; 3]) -> ScaleCase {
    let model = |[x, y, z]: [usize; 3]| kpm::insulator(x, y, z);
    ScaleCase { name: "insulator", cells, model, orbitals: 4, number: 16, width: 32 }
}

/// The second list is for GPUs.
const CASES: [&[ScaleCase]; 2] = [
    &[cubic(64, 8), insulator([40, 40, 20])],
    &[
        cubic(128, 32),
        cubic(256, 1),
        cubic(256, 8),
        cubic(256, 32),
        cubic(512, 1),
        cubic(512, 8),
        cubic(512, 32),
        insulator([200, 100, 40]),
        insulator([400, 400, 40]),
    ],
];

impl ScaleCase {
    fn title(&self) -> String {
        format!("{} {} R={}", self.name, self.cells.map(|n| n.to_string()).join("x"), self.width)
    }

    fn work(&self, cells: &[usize], each: f64) -> Workload {
        let row = (self.width * self.number) as f64;
        Workload { cells: cells.to_vec(), orbitals: self.orbitals, row, each }
    }
}

/// Strong and weak scaling over the ranks or the backends there are, then the model's tables.
pub(super) fn run(bench: &Bench, device: &Device) -> Result<()> {
    let Network { link, latency } = bench.network;
    if !(link > 0.0 && link.is_finite() && latency >= 0.0 && latency.is_finite()) {
        return Err(Error::input(format!(
            "a network of {link} GB/s and {latency} us: both must be positive"
        )));
    }
    let network = MessageTime { rate: link * 1e9, latency: latency * 1e-6 };
    let parts = device.parts();
    let kind = |part: &BackendPart| (part.device.name(), part.share);
    if parts.windows(2).any(|pair| kind(&pair[0]) != kind(&pair[1])) {
        let text =
            format!("`bench scale` is for equal backends with equal shares, not {}", device.describe());
        return Err(Error::input(text).hint(
            "give equal weights, as in `--backend cuda+cuda --weights 1:1`; `bench kpm` compares others",
        ));
    }
    let alone = device.alone().or(parts.first().map(|part| &part.device)).unwrap_or(device).clone();
    let mut rates = Vec::new();
    for &case in CASES[usize::from(bench.full)].iter().filter(|case| bench.wanted(&case.title())) {
        let model = (case.model)(case.cells)?;
        let seconds = ranks::once(|| seconds(bench, &alone, &model, case.width, false))?;
        rates.push((case, seconds, seconds / (model.rows() as f64)));
    }
    if let Some(world) = ranks::world() {
        let link = measured_link(bench, world)?;
        let (n, rate, latency) = (world.size(), link.rate / 1e9, link.latency * 1e6);
        out(&format!(
            "{n} ranks, {rate:.2} GB/s from each to the next through their hosts, {latency:.1} us for the shortest \
             message"
        ));
        over(bench, device, n, Some(link), &rates)?;
    } else if !parts.is_empty() {
        out(&format!("{} backends of one process", parts.len()));
        over(bench, device, parts.len(), None, &rates)?;
    }
    for (case, _, each) in rates.iter().filter(|(_, _, each)| each.is_finite()) {
        tables(case, *each, network);
    }
    Ok(())
}

/// All ranks, or all backends, together; by the model where a link is known.
fn over(
    bench: &Bench,
    device: &Device,
    n: usize,
    link: Option<MessageTime>,
    rates: &[(ScaleCase, f64, f64)],
) -> Result<()> {
    out("");
    out("| case | rows | one alone, ms/step | all, ms/step | efficiency | model, ms/step |");
    out("| --- | ---: | ---: | ---: | ---: | ---: |");
    for &(case, alone, each) in rates {
        let mut large = case.cells;
        large[2] *= n;
        // Strong: the rows of one rank over all. Weak: as many for each.
        for (way, cells, ideal) in [("strong", case.cells, alone / n as f64), ("weak", large, alone)] {
            let model = (case.model)(cells)?;
            let all = seconds(bench, device, &model, case.width, true)?;
            let told = link.and_then(|link| modelled(&case.work(&cells, each), n, link));
            let told = told.filter(|step| step.all.is_finite());
            let cell = |number: f64, unit: f64, digits: usize, after: &str| match number.is_finite() {
                true => format!("{:.digits$}{after}", number * unit),
                false => "-".to_owned(),
            };
            out(&format!(
                "| {}, {way} | {} | {} | {} | {} | {} |",
                case.title(),
                model.rows(),
                cell(alone, 1e3, 3, ""),
                cell(all, 1e3, 3, ""),
                cell(ideal / all, 100.0, 0, " %"),
                cell(told.map_or(f64::NAN, |step| step.all), 1e3, 3, "")
            ));
        }
    }
    out("");
    Ok(())
}

/// What the model says of many nodes like this rank.
fn tables(case: &ScaleCase, each: f64, network: MessageTime) {
    let text = |grid: &[usize]| grid.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    let strong = case.cells.map(|n| 8 * n);
    out(&format!(
        "{}: {:.3} ns a row and step here; nodes like this one, {} GB/s and {:.1} us between them",
        case.title(),
        each * 1e9,
        network.rate / 1e9,
        network.latency * 1e6
    ));
    out("");
    out("| nodes | lattice | grid | rows a node | product, ms | faces, ms | step, ms | efficiency |");
    out("| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |");
    let line = |cells: &[usize], nodes: usize| {
        let work = case.work(cells, each);
        let (Some(step), Some(one)) = (modelled(&work, nodes, network), modelled(&work, 1, network)) else {
            return;
        };
        let [product, faces, all] = [step.product, step.faces, step.all].map(|t| t * 1e3);
        out(&format!(
            "| {nodes} | {} | {} | {} | {product:.3} | {faces:.3} | {all:.3} | {:.0} % |",
            text(cells),
            text(&step.grid),
            step.rows,
            100.0 * one.all / (nodes as f64 * step.all)
        ));
    };
    for nodes in (1..=12).map(|k| 1usize << k) {
        line(&strong, nodes);
    }
    for nodes in (1..=12).map(|k| 1usize << k) {
        // The same number of rows for each node: the directions double in turn.
        let mut cells = case.cells;
        (0..nodes.trailing_zeros() as usize).for_each(|k| cells[k % 3] *= 2);
        line(&cells, nodes);
    }
    out("");
    if case.name == "insulator"
        && let Some(step) = modelled(&case.work(&KREUTZER, each), 1024, network)
    {
        out(&format!(
            "Kreutzer et al. (IPDPS 2015), Table III: 6400x6400x40 cells, R=32, 1000 steps on 1024 nodes took 264 s \
             there; on 1024 nodes like this one {:.1} s",
            1e3 * step.all
        ));
    }
}

/// Cells of the largest run of Kreutzer et al., 6.5e9 rows.
const KREUTZER: [usize; 3] = [6400, 6400, 40];

#[cfg(test)]
mod tests {
    use super::*;

    fn insulator(each: f64) -> Workload {
        CASES[0][1].work(&KREUTZER, each)
    }

    #[test]
    fn the_model_by_hand() {
        let link = MessageTime { rate: 50e9, latency: 5e-6 };
        // 32 x 32 boxes of 200 x 200 x 40 cells: four faces of 200 x 40 cells of 4 rows,
        // each row 32 numbers of 16 bytes.
        let step = modelled(&insulator(4e-10), 1024, link).unwrap();
        assert_eq!((step.grid, step.rows), (vec![32, 32, 1], 6_400_000));
        assert!((step.faces - 4.0 * 32_000.0 * 512.0 / 50e9).abs() < 1e-12);
        assert!((step.product - 2.56e-3).abs() < 1e-12 && (step.all - 2.565e-3).abs() < 1e-12);
        // One node exchanges nothing; a slow link decides.
        let one = modelled(&insulator(4e-10), 1, link).unwrap();
        assert_eq!((one.faces, one.all), (0.0, one.product));
        let slow = modelled(&insulator(4e-10), 1024, MessageTime { rate: 1e9, ..link }).unwrap();
        assert!((slow.all - slow.faces - 5e-6).abs() < 1e-15 && slow.faces > slow.product);
        // More nodes than cells in every direction have no grid.
        let tiny = Workload { cells: vec![2, 1, 1], orbitals: 1, row: 8.0, each: 1e-9 };
        assert!(modelled(&tiny, 2, link).is_some() && modelled(&tiny, 4, link).is_none());
    }
}
