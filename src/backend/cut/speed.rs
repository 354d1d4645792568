//! The speed of parts with matrices of a kind, and the division of rows by speed or by the user's weights.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::lattice::{RowLattice, by_weight};
use super::{RowCut, joined, share};
use crate::backend::exchange::{Halo, VectorShape};
use crate::backend::matrix::Csr;
use crate::backend::{Device, MatrixSpec, Random, Rows, Update, VectorDistribution};
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

/// What an exchange of rows costs in every pass, whatever its size: through the host, and between parts that write to
/// each other's memory.
const EXCHANGE: Duration = Duration::from_micros(100);
const LINKED: Duration = Duration::from_micros(20);

/// The share below which a part costs more in exchanges than it computes.
const LEAST_SHARE: f64 = 0.01;

/// What matrices are alike in speed: format, type, entries a row.
type SpeedClass = (String, DType, usize);

/// What all parts find out together.
pub(in crate::backend) trait SpeedOfParts {
    /// Rows a second of every part, all at work together, with a matrix or with vectors alone ([`rate`]).
    fn rates(&self, spec: Option<&MatrixSpec>) -> Result<Vec<f64>>;

    /// Whether each part writes to the memory of others ([`writes_to_others`]).
    fn linked(&self) -> Result<Vec<bool>>;
}

/// How rows are shared out.
pub(in crate::backend) struct RowShares {
    /// The backends of the parts. Those of one name lay vectors out alike.
    names: Vec<&'static str>,
    weights: Option<Vec<f64>>,
    /// Where vectors live that are not shared out.
    pub primary: usize,
    /// Whether rows are shared out even where that does not pay.
    always: bool,
    tell: Box<dyn Fn(&str) + Send + Sync>,
    state: Mutex<KnownSpeeds>,
}

#[derive(Default)]
struct KnownSpeeds {
    /// Measured rows a second of every part.
    rates: HashMap<SpeedClass, Vec<f64>>,
    linked: Option<Vec<bool>>,
    /// The shares used last.
    last: Option<Vec<f64>>,
}

impl RowShares {
    /// Shares by these weights, or by measured speed, which is told to `tell`.
    ///
    /// # Errors
    /// Weights that do not fit the parts.
    pub fn new(
        names: Vec<&'static str>,
        weights: Option<Vec<f64>>,
        always: bool,
        tell: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Self> {
        if let Some(weights) = &weights {
            if weights.len() != names.len() {
                return Err(Error::input(format!("{} weights for {} backends", weights.len(), names.len()))
                    .hint("give one weight per backend, as in `--backend cpu+cuda --weights 1:12`"));
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
            None => names.iter().position(|name| *name != "cpu"),
        };
        let (primary, state) = (primary.unwrap_or(0), Mutex::default());
        Ok(RowShares { names, weights, primary, always, tell, state })
    }

    fn state(&self) -> MutexGuard<'_, KnownSpeeds> {
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

    /// The same, and all of it for the primary part of so many as long as it is not known.
    pub fn known_or_primary(&self, parts: usize) -> Vec<f64> {
        let primary = || (0..parts).map(|part| f64::from(u8::from(part == self.primary))).collect();
        self.known().unwrap_or_else(primary)
    }

    /// The backends that the parts have, each once.
    pub fn name(&self) -> &'static str {
        let mut names: Vec<&str> = Vec::new();
        self.names.iter().for_each(|name| {
            if !names.contains(name) {
                names.push(name)
            }
        });
        joined(&names)
    }

    /// The backend of the part where vectors live that are not shared out.
    pub fn kind(&self) -> &'static str {
        self.names[self.primary]
    }

    /// The same weight for all parts with the backend of the primary one, or what the user says; none for others.
    pub fn of_one_kind(&self) -> Vec<f64> {
        let of = |part: usize| self.weights.as_ref().map_or(1.0, |weights| weights[part]);
        let like = |part: usize| self.names[part] == self.kind();
        (0..self.names.len()).map(|part| if like(part) { of(part) } else { 0.0 }).collect()
    }

    /// All rows in the primary part.
    pub fn one(&self, rows: usize) -> RowCut {
        RowCut::one(self.primary, rows, (0, self.names.len()))
    }

    /// Who has which rows of vectors, as the first part sees it.
    ///
    /// # Errors
    /// Those of the parts.
    pub fn of_rows(&self, rows: &Rows, parts: &dyn SpeedOfParts) -> Result<RowCut> {
        let Some(grid) = rows.grid else { return self.of_matrix(rows.global, None, parts) };
        // Boxes of parts that lay spinors out alike; without weights these count as equally fast.
        // Products look one site far.
        let weights = self.of_one_kind();
        let others = |part: &usize| self.names[*part] != self.kind();
        let given = self.weights.as_deref().unwrap_or_default();
        let apart = (0..given.len()).filter(others).any(|part| given[part] > 0.0);
        let alone = weights.iter().filter(|w| **w > 0.0).count() < 2;
        let pays = || -> Result<bool> {
            let few = rows.global < FEW_ROWS && !self.always;
            Ok(!few && (self.always || self.are_linked(&weights, parts)?))
        };
        if apart || alone || self.weights.is_none() && !pays()? {
            return Ok(self.one(rows.global));
        }
        let lattice = RowLattice { cells: grid.dims.to_vec(), each: grid.per_site, reach: vec![1; 4] };
        Ok(lattice.cut(&weights))
    }

    /// Who has which rows of a matrix, or which columns, as the first part sees it.
    ///
    /// # Errors
    /// Those of the parts.
    pub fn of_matrix(
        &self,
        rows: usize,
        spec: Option<&MatrixSpec>,
        parts: &dyn SpeedOfParts,
    ) -> Result<RowCut> {
        let lattice = RowLattice::of(spec);
        match &self.weights {
            Some(weights) => Ok(by_weight(rows, weights, lattice.as_ref())),
            None if rows < FEW_ROWS && !self.always => Ok(self.one(rows)),
            None => self.by_speed(rows, spec, lattice.as_ref(), parts),
        }
    }

    /// Whether all parts with a weight write to each other's memory.
    fn are_linked(&self, weights: &[f64], parts: &dyn SpeedOfParts) -> Result<bool> {
        let known = self.state().linked.clone();
        let linked = match known {
            Some(linked) => linked,
            None => self.state().linked.insert(parts.linked()?).clone(),
        };
        Ok(linked.iter().zip(weights).all(|(linked, weight)| *linked || *weight == 0.0))
    }

    /// Rows by measured speed.
    fn by_speed(
        &self,
        rows: usize,
        spec: Option<&MatrixSpec>,
        lattice: Option<&RowLattice>,
        parts: &dyn SpeedOfParts,
    ) -> Result<RowCut> {
        let (kind, entries) = kind(spec);
        let known = self.state().rates.get(&kind).cloned();
        let rates = match known {
            Some(rates) => rates,
            None => {
                let rates = parts.rates(spec)?;
                self.state().rates.insert(kind.clone(), rates.clone());
                rates
            }
        };
        let weights = if self.always { rates } else { self.of_those_that_gain(rows, rates, parts)? };
        let what = if spec.is_some() { format!("{} with {entries} entries a row", kind.0) } else { kind.0 };
        let sum: f64 = weights.iter().sum();
        let share = |(name, weight): (&&str, &f64)| format!("{name} {:.1} %", 100.0 * weight / sum);
        let shares: Vec<String> = self.names.iter().zip(&weights).map(share).collect();
        let mut text = format!("{rows} rows ({what}): {}", shares.join(", "));
        let left_out = self.names.iter().zip(&weights).filter(|(_, w)| **w == 0.0).map(|(name, _)| *name);
        let left_out: Vec<&str> = left_out.collect();
        if !left_out.is_empty() {
            let verb = if left_out.len() > 1 { "are" } else { "is" };
            text +=
                &format!("; {} would gain less than exchanges cost and {verb} left out", left_out.join(", "));
        }
        (self.tell)(&text);
        self.state().last = Some(weights.clone());
        Ok(by_weight(rows, &weights, lattice))
    }

    /// The rates of those parts that are fastest together, exchanges included, and none for the others.
    fn of_those_that_gain(&self, rows: usize, rates: Vec<f64>, parts: &dyn SpeedOfParts) -> Result<Vec<f64>> {
        let total: f64 = rates.iter().sum();
        let mut order: Vec<usize> = (0..rates.len()).collect();
        order.sort_by(|a, b| rates[*b].total_cmp(&rates[*a]));
        let mut weights = vec![0.0; rates.len()];
        let mut best = (f64::INFINITY, weights.clone());
        for (count, &part) in order.iter().enumerate() {
            if count > 0 && rates[part] < LEAST_SHARE * total {
                break;
            }
            weights[part] = rates[part];
            // Times are for the columns measured with; an exchange is about as long for fewer.
            let exchange = match count {
                0 => Duration::ZERO,
                _ if self.are_linked(&weights, parts)? => LINKED,
                _ => EXCHANGE,
            };
            let time = rows as f64 / weights.iter().sum::<f64>() + exchange.as_secs_f64();
            if time < best.0 {
                best = (time, weights.clone());
            }
        }
        Ok(best.1)
    }
}

/// Whether a part writes to the memory of others, as far as one can tell before there is a matrix.
pub(in crate::backend) fn writes_to_others(part: &Device) -> bool {
    let (halo, shape) = (Halo::default(), VectorShape { dtype: DType::F64, columns: 1, grid: None });
    let linked = part.peer_exchange().map(|peer| peer.link(&halo, &Csr::empty(DType::F64), shape));
    matches!(linked, Some(Ok(Some(_))))
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

/// A piece of a matrix that a part is measured with.
///
/// # Errors
/// Matrices whose rows are not shared out.
pub(in crate::backend) fn sample(spec: Option<&MatrixSpec>) -> Result<Option<MatrixSpec>> {
    spec.map(|spec| share::sample(spec, SAMPLE)).transpose()
}

/// Rows a second of one part: passes over such a piece, or products of vectors.
///
/// # Errors
/// Those of the device.
pub(in crate::backend) fn rate(device: &Device, sample: Option<&MatrixSpec>) -> Result<f64> {
    let random =
        Random { seed: 1, stream: Stream::Start, first_column: 0, distribution: VectorDistribution::Sign };
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

/// Passes a second, timed for `limit`.
pub(in crate::backend) fn pace(
    device: &Device,
    limit: Duration,
    mut pass: impl FnMut() -> Result<()>,
) -> Result<f64> {
    pass()?;
    device.synchronize()?;
    let (began, mut passes, mut group) = (Instant::now(), 0u32, 1);
    loop {
        (0..group).try_for_each(|_| pass())?;
        device.synchronize()?;
        passes += group;
        let took = began.elapsed();
        if took > limit {
            return Ok(f64::from(passes) / took.as_secs_f64());
        }
        // A launch takes microseconds: what is queued is timed together.
        group = (group * 2).min(32);
    }
}
