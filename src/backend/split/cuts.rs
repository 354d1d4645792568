//! Who holds which rows: one cut for every number of rows, made when vectors or a matrix of so many rows first appear and
//! kept from then on, so that all vectors of a length fit together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::measure::pace;
use crate::backend::boxes::Boxes;
use crate::backend::cut::{Cut, least_surface, share};
use crate::backend::exchange::{Halo, VectorShape};
use crate::backend::matrix::{Csr, Indices, Values};
use crate::backend::{Device, Distribution, Grid, MatrixSpec, Random, Rows, Update};
use crate::error::{Error, Result};
use crate::number::DType;
use crate::number::philox::Stream;

/// Rows below which one part is always faster than several that wait for each other.
const FEW_ROWS: usize = 1 << 17;

/// Rows of a matrix that the parts are measured with, and columns of the vectors.
const SAMPLE: usize = 1 << 20;
const SAMPLE_COLUMNS: usize = 8;

/// How long the parts are measured.
const SAMPLE_TIME: Duration = Duration::from_millis(150);

/// What an exchange of rows costs in every pass, whatever its size: through the host, and between parts that write to each
/// other's memory.
const EXCHANGE: Duration = Duration::from_micros(100);
const LINKED: Duration = Duration::from_micros(20);

/// The share below which a part costs more in exchanges than it computes.
const LEAST_SHARE: f64 = 0.01;

/// The lattice that rows live on: its cells, the rows of each, and how far a product looks in each direction.
pub(super) struct RowLattice {
    cells: Vec<usize>,
    each: usize,
    reach: Vec<usize>,
}

impl RowLattice {
    fn of(spec: Option<&MatrixSpec>) -> Option<RowLattice> {
        let Some(MatrixSpec::Stencil(stencil)) = spec else { return None };
        Some(RowLattice {
            cells: stencil.cells.clone(),
            each: stencil.orbitals,
            reach: share::reach(stencil),
        })
    }

    /// Boxes by weight: those of least surface if all parts weigh the same, else slabs across one direction.
    fn cut(&self, weights: &[f64]) -> Cut {
        let alike = weights.iter().all(|w| *w == weights[0]);
        let grid = if alike { least_surface(&self.cells, &self.reach, weights.len()) } else { None };
        let boxes = match grid {
            Some(grid) => Boxes::new(&self.cells, self.each, &grid),
            None => self.slabs(weights),
        };
        Cut::of_boxes(self.cells.iter().product::<usize>() * self.each, boxes, (0, weights.len()))
    }

    /// Slabs across the direction where least is lost: cells of a face, and those that a part has beyond its share since planes
    /// stay whole. The last direction of the best ones has the faces that are in one piece.
    fn slabs(&self, weights: &[f64]) -> Boxes {
        let (all, total) = (self.cells.iter().product::<usize>() as f64, weights.iter().sum::<f64>());
        let loss = |d: usize| {
            let plane = all / self.cells[d].max(1) as f64;
            let starts = weighted(self.cells[d], weights);
            let beyond = |(part, weight): (usize, &f64)| {
                (starts[part + 1] - starts[part]) as f64 * plane - all * weight / total
            };
            plane * self.reach[d] as f64 + weights.iter().enumerate().map(beyond).fold(0.0, f64::max)
        };
        let mut best: Option<(f64, usize)> = None;
        for d in (0..self.cells.len()).filter(|&d| self.cells[d] > 1) {
            let loss = loss(d);
            if best.is_none_or(|(least, _)| loss <= least) {
                best = Some((loss, d));
            }
        }
        let direction = best.map_or(0, |(_, d)| d);
        let starts = self.cells.iter().enumerate();
        let starts = starts.map(|(d, &n)| if d == direction { weighted(n, weights) } else { vec![0, n] });
        Boxes::at(&self.cells, self.each, starts.collect())
    }
}

/// Where parts of a length begin that have it by weight, and where the last one ends.
pub(super) fn weighted(length: usize, weights: &[f64]) -> Vec<usize> {
    let (total, mut sum) = (weights.iter().sum::<f64>(), 0.0);
    let mut starts = vec![0];
    for (part, weight) in weights.iter().enumerate() {
        sum += weight;
        let last = part + 1 == weights.len();
        let end = if last { length } else { (length as f64 * sum / total).round() as usize };
        starts.push(end.clamp(starts[part], length));
    }
    starts
}

/// Rows by weight, on a lattice in boxes.
fn by_weight(rows: usize, weights: &[f64], lattice: Option<&RowLattice>) -> Cut {
    match lattice {
        Some(lattice) if !lattice.cells.is_empty() => lattice.cut(weights),
        _ => Cut::at(weighted(rows, weights), (0, weights.len())),
    }
}

/// All rows in one part.
fn one(part: usize, rows: usize, parts: usize) -> Cut {
    Cut::at((0..=parts).map(|p| if p > part { rows } else { 0 }).collect(), (0, parts))
}

/// What matrices are alike in speed: format, type, entries a row.
type SpeedClass = (String, DType, usize);

/// How rows are shared out.
pub(super) struct Shares {
    weights: Option<Vec<f64>>,
    /// Where vectors live that are not shared out.
    pub primary: usize,
    tell: Box<dyn Fn(&str) + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cuts: HashMap<(usize, Option<Grid>), Arc<Cut>>,
    /// Measured rows a second of every part.
    rates: HashMap<SpeedClass, Vec<f64>>,
    /// The shares used last.
    last: Option<Vec<f64>>,
}

impl Shares {
    pub fn new(
        parts: &[Device],
        weights: Option<Vec<f64>>,
        tell: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Self> {
        if let Some(weights) = &weights {
            if weights.len() != parts.len() {
                return Err(Error::input(format!("{} weights for {} backends", weights.len(), parts.len()))
                    .hint("give one weight a backend, as in `--backend cpu+cuda --weights 1:12`"));
            }
            if !weights.iter().all(|w| w.is_finite() && *w >= 0.0) || !weights.iter().any(|w| *w > 0.0) {
                return Err(Error::input("weights of backends must be positive numbers"));
            }
        }
        let heaviest = |weights: &Vec<f64>| {
            let most = weights.iter().copied().fold(0.0, f64::max);
            weights.iter().position(|w| *w == most)
        };
        let primary = match &weights {
            Some(weights) => heaviest(weights),
            None => parts.iter().position(|p| p.name() != "cpu"),
        };
        Ok(Shares { weights, primary: primary.unwrap_or(0), tell, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What the lock guards is changed in single steps, which a panic leaves whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Weights set by hand.
    pub fn by_hand(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    pub fn tell(&self, text: &str) {
        (self.tell)(text);
    }

    /// The share of each part, of all together 1, as far as it is known.
    pub fn known(&self) -> Option<Vec<f64>> {
        let weights = self.weights.clone().or_else(|| self.state().last.clone())?;
        let total: f64 = weights.iter().sum();
        Some(weights.iter().map(|w| w / total).collect())
    }

    /// The cuts of vectors with such rows.
    pub fn of_rows(&self, parts: &[Device], rows: &Rows) -> Result<Arc<Cut>> {
        let Some(grid) = rows.grid else { return self.cuts(parts, rows.local, None) };
        let key = (rows.local, Some(grid));
        if let Some(cuts) = self.state().cuts.get(&key) {
            return Ok(cuts.clone());
        }
        // Boxes of parts that lay spinors out alike; without weights these count as equally fast. Products look one site far.
        let lattice = RowLattice { cells: grid.dims.to_vec(), each: grid.per_site, reach: vec![1; 4] };
        let alike = parts.iter().all(|part| part.name() == parts[self.primary].name());
        let cuts = match &self.weights {
            _ if !alike => one(self.primary, rows.local, parts.len()),
            Some(weights) => lattice.cut(weights),
            None if rows.local < FEW_ROWS || !linked(parts) => one(self.primary, rows.local, parts.len()),
            None => lattice.cut(&vec![1.0; parts.len()]),
        };
        Ok(self.state().cuts.entry(key).or_insert_with(|| Arc::new(cuts)).clone())
    }

    /// The cuts of the rows of a matrix, or of its columns.
    pub fn of_matrix(&self, parts: &[Device], rows: usize, spec: &MatrixSpec) -> Result<Arc<Cut>> {
        self.cuts(parts, rows, Some(spec))
    }

    /// The parts of one kind with the primary one, with their weights: alike unless they are set by hand.
    pub fn team(&self, parts: &[Device]) -> Vec<(usize, f64)> {
        let kind = parts[self.primary].name();
        let weight = |part: usize| self.weights.as_ref().map_or(1.0, |weights| weights[part]);
        let all = parts.iter().enumerate().filter(|(_, device)| device.name() == kind);
        all.map(|(part, _)| (part, weight(part))).filter(|(_, weight)| *weight > 0.0).collect()
    }

    /// Vectors of so many rows are spread over these parts, if there is none yet.
    pub fn spread(&self, parts: &[Device], rows: usize) -> Arc<Cut> {
        let mut weights = vec![0.0; parts.len()];
        self.team(parts).into_iter().for_each(|(part, weight)| weights[part] = weight);
        let cut = || Arc::new(by_weight(rows, &weights, None));
        self.state().cuts.entry((rows, None)).or_insert_with(cut).clone()
    }

    /// Vectors of so many rows live whole, if there is none yet.
    pub fn keep_whole(&self, parts: usize, rows: usize) -> Arc<Cut> {
        let whole = || Arc::new(one(self.primary, rows, parts));
        self.state().cuts.entry((rows, None)).or_insert_with(whole).clone()
    }

    fn cuts(&self, parts: &[Device], rows: usize, spec: Option<&MatrixSpec>) -> Result<Arc<Cut>> {
        if let Some(cuts) = self.state().cuts.get(&(rows, None)) {
            return Ok(cuts.clone());
        }
        let lattice = RowLattice::of(spec);
        let cuts = match &self.weights {
            Some(weights) => by_weight(rows, weights, lattice.as_ref()),
            None if rows < FEW_ROWS => one(self.primary, rows, parts.len()),
            None => self.by_speed(parts, rows, spec, lattice.as_ref())?,
        };
        Ok(self.state().cuts.entry((rows, None)).or_insert_with(|| Arc::new(cuts)).clone())
    }

    /// Rows by measured speed.
    fn by_speed(
        &self,
        parts: &[Device],
        rows: usize,
        spec: Option<&MatrixSpec>,
        lattice: Option<&RowLattice>,
    ) -> Result<Cut> {
        let (kind, entries) = kind(spec);
        let known = self.state().rates.get(&kind).cloned();
        let rates = match known {
            Some(rates) => rates,
            None => {
                let rates = measure(parts, spec)?;
                self.state().rates.insert(kind.clone(), rates.clone());
                rates
            }
        };
        let total: f64 = rates.iter().sum();
        let fastest = rates.iter().copied().fold(0.0, f64::max);
        let gain = rows as f64 / fastest - rows as f64 / total;
        let exchange = if linked(parts) { LINKED } else { EXCHANGE };
        let what = if spec.is_some() { format!("{} with {entries} entries a row", kind.0) } else { kind.0 };
        let mut weights = rates.clone();
        let mut left_out = Vec::new();
        for ((weight, part), rate) in weights.iter_mut().zip(parts).zip(&rates) {
            // Times are for the columns measured with; an exchange is about as long for fewer.
            if *rate < fastest && (*rate < LEAST_SHARE * total || gain < exchange.as_secs_f64()) {
                *weight = 0.0;
                left_out.push(part.name());
            }
        }
        let sum: f64 = weights.iter().sum();
        let share =
            |(part, weight): (&Device, &f64)| format!("{} {:.1} %", part.name(), 100.0 * weight / sum);
        let shares: Vec<String> = parts.iter().zip(&weights).map(share).collect();
        let mut text = format!("{rows} rows ({what}): {}", shares.join(", "));
        if !left_out.is_empty() {
            text +=
                &format!("; {} would gain less than its exchanges cost and is left out", left_out.join(", "));
        }
        (self.tell)(&text);
        self.state().last = Some(weights.clone());
        Ok(by_weight(rows, &weights, lattice))
    }
}

/// Whether the parts write to each other's memory, as far as one can tell before there is a matrix.
fn linked(parts: &[Device]) -> bool {
    let (halo, shape) = (Halo::default(), VectorShape { dtype: DType::F64, columns: 1, grid: None });
    let nothing = Csr {
        rows: 0,
        cols: 0,
        row_start: vec![0],
        columns: Indices::of(0, Vec::new()),
        values: Values::F64(Vec::new()),
    };
    let linked = |part: &Device| Some(part.peer_exchange()?.link(&halo, &nothing, shape));
    parts.iter().all(|part| matches!(linked(part), Some(Ok(Some(_)))))
}

/// What a matrix is alike in speed to, and its entries a row.
fn kind(spec: Option<&MatrixSpec>) -> (SpeedClass, usize) {
    let stored = |name: &str, csr: &crate::backend::matrix::Csr| {
        (name.to_string(), csr.values.dtype(), csr.entries() / csr.rows.max(1))
    };
    let kind = match spec {
        Some(MatrixSpec::Csr(csr)) => stored("CSR", csr),
        Some(MatrixSpec::Ell(csr)) => stored("ELL", csr),
        Some(MatrixSpec::Sell { csr, .. }) => stored("SELL", csr),
        Some(MatrixSpec::Dense { cols, dtype, .. }) => ("dense".into(), *dtype, *cols),
        Some(MatrixSpec::Stencil(s)) => ("stencil".into(), s.dtype, s.terms.len() / s.orbitals.max(1)),
        _ => ("vectors".into(), DType::F64, 0),
    };
    let entries = kind.2;
    (kind, entries)
}

/// Rows a second of every part, all at work together: passes over a piece of the matrix, or products of vectors.
fn measure(parts: &[Device], spec: Option<&MatrixSpec>) -> Result<Vec<f64>> {
    let sample = spec.map(|spec| share::sample(spec, SAMPLE)).transpose()?;
    std::thread::scope(|scope| {
        let sample = sample.as_ref();
        let jobs: Vec<_> = parts.iter().map(|device| scope.spawn(move || rate(device, sample))).collect();
        jobs.into_iter()
            .map(|job| job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn rate(device: &Device, sample: Option<&MatrixSpec>) -> Result<f64> {
    let random = Random { seed: 1, stream: Stream::Start, first_column: 0, distribution: Distribution::Sign };
    let block = |rows: usize, dtype: DType| -> Result<_> {
        let mut v = device.zeros(dtype, Rows::all(rows), SAMPLE_COLUMNS)?;
        device.fill_random(&mut v, random)?;
        Ok(v)
    };
    let (rows, mut pass): (usize, Box<dyn FnMut() -> Result<()>>) = match sample {
        Some(sample) => {
            let kernel = device.prepare(sample.clone())?;
            let (rows, dtype) = (kernel.cols(), kernel.dtype());
            let (v, mut w) = (block(rows, dtype)?, block(rows, dtype)?);
            // What the passes of a recurrence compute, bounded however many there are.
            let c = Update { alpha: 0.0, beta: 0.5, gamma: -0.5 };
            (rows, Box::new(move || kernel.update_later(c, &v, &mut w).map(drop)))
        }
        None => {
            let (x, y, mut z) =
                (block(SAMPLE, DType::F64)?, block(SAMPLE, DType::F64)?, block(SAMPLE, DType::F64)?);
            (SAMPLE, Box::new(move || device.multiply(&x, &y, &mut z)))
        }
    };
    Ok(rows as f64 * pace(device, SAMPLE_TIME, &mut pass)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(rows: usize, weights: &[f64]) -> Vec<Vec<(usize, usize)>> {
        let cut = by_weight(rows, weights, None);
        (0..weights.len()).map(|part| cut.runs(part)).collect()
    }

    fn boxes(cells: &[usize], reach: &[usize], weights: &[f64]) -> Cut {
        RowLattice { cells: cells.to_vec(), each: 2, reach: reach.to_vec() }.cut(weights)
    }

    #[test]
    fn rows_follow_weights() {
        assert_eq!(ranges(1000, &[1.0, 3.0]), [[(0, 250)], [(250, 750)]]);
        assert_eq!(ranges(10, &[1.0, 0.0, 1.0]), [[(0, 5)], [(5, 0)], [(5, 5)]]);
        assert_eq!(ranges(1, &[1.0, 3.0]), [[(0, 0)], [(0, 1)]]);
        assert_eq!(ranges(0, &[1.0, 3.0]), [[(0, 0)], [(0, 0)]]);
        assert_eq!(one(1, 7, 3).holders(), [1]);
        assert_eq!(one(1, 7, 3).rows_of(1), 7);
    }

    #[test]
    fn lattices_are_cut_where_faces_are_small() {
        // Across the first direction: a face has 4 x 5 cells of 2 rows, in runs of a part's cells along it.
        let cut = boxes(&[20, 4, 5], &[1, 1, 1], &[1.0, 1.0]);
        assert_eq!((cut.rows_of(0), cut.rows_of(1)), (400, 400));
        assert_eq!(cut.runs(1)[..2], [(20, 20), (60, 20)]);
        // By weight, too, and where a product looks farther along it, across another.
        let cut = boxes(&[20, 4, 5], &[1, 1, 1], &[1.0, 3.0]);
        assert_eq!((cut.rows_of(0), cut.runs(0).len()), (200, 20));
        let cut = boxes(&[20, 4, 5], &[9, 1, 1], &[1.0, 4.0]);
        assert_eq!((cut.rows_of(0), cut.runs(0).len()), (160, 1));
        // Of two directions that are alike the last one; planes stay whole, unless a part would have much more than its share.
        assert_eq!(boxes(&[4, 8, 8], &[1, 1, 1], &[1.0, 3.0]).runs(0), [(0, 128)]);
        assert_eq!(boxes(&[40, 2, 45], &[1, 1, 1], &[1.0, 19.0]).rows_of(0), 360);
        for cut in
            [boxes(&[5, 3, 7], &[1, 1, 1], &[1.0, 2.0, 4.0]), boxes(&[7, 1], &[1, 1], &[3.0, 0.0, 2.0])]
        {
            let mut seen = vec![0; cut.rows];
            for part in 0..cut.parts {
                for (local, row) in cut.of(part).own_rows().enumerate() {
                    assert_eq!(cut.holder(row), (part, local));
                    seen[row] += 1;
                }
            }
            assert!(seen.iter().all(|n| *n == 1));
        }
    }
}
