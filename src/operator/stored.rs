//! Operators whose entries are stored (CSR, ELL, SELL-C-sigma, dense) or implied by a stencil.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::{LinearOperator, Operator};
use crate::backend::matrix::{Csr, Indices, MatrixValues, Stencil, StencilTerm, Wrap, merge};
use crate::backend::{Device, Kernel, MatrixSpec};
use crate::error::{Error, Result};
use crate::number::C64;
use crate::ranks;

/// How the entries of a matrix are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixFormat {
    /// The library chooses: a stencil where there is one, else SELL where rows are short and even, else CSR.
    Auto,
    /// Compressed rows.
    Csr,
    /// Rows padded to the longest.
    Ell,
    /// SELL-C-sigma.
    Sell {
        /// Rows a slice.
        chunk: usize,
        /// Rows sorted together.
        sigma: usize,
    },
    Dense,
    /// Matrix-free.
    Stencil,
}

/// Why rows are stored.
const ENTRIES_DIFFER: &str = "entries differ from row to row";

impl MatrixFormat {
    /// Compressed rows in this format.
    fn of_rows(self, csr: Arc<Csr>) -> MatrixSpec {
        match self {
            MatrixFormat::Ell => MatrixSpec::Ell(csr),
            MatrixFormat::Sell { chunk, sigma } => MatrixSpec::Sell { csr, chunk, sigma },
            _ => MatrixSpec::Csr(csr),
        }
    }
}

/// What the operator was made of, kept on the host for adjoints and checks.
#[derive(Debug, Clone)]
enum StoredSource {
    Csr(Arc<Csr>),
    Stencil(Arc<Stencil>),
    /// Each rank has its own rows; others are made again when they are asked for.
    Rule(RowRule),
}

/// How the rows of a Hermitian matrix are made: given pieces of the whole (first row and length of each), those rows.
#[derive(Clone)]
pub struct RowRule {
    pub rows: usize,
    pub make: Arc<dyn Fn(&[(usize, usize)]) -> Result<Csr> + Send + Sync>,
}

impl std::fmt::Debug for RowRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a rule for {} rows", self.rows)
    }
}

impl RowRule {
    /// Calls `f(row, entries)` for a range of rows, some thousand of which are made at a time.
    fn each(&self, rows: Range<usize>, mut f: impl FnMut(usize, &[(usize, C64)])) -> Result<()> {
        const TOGETHER: usize = 1 << 16;
        let mut of_row = Vec::new();
        for first in rows.clone().step_by(TOGETHER) {
            let csr = (self.make)(&[(first, TOGETHER.min(rows.end - first))])?;
            for row in 0..csr.rows {
                entries(&csr, row, &mut of_row);
                f(first + row, &of_row);
            }
        }
        Ok(())
    }
}

/// The entries of a row as (column, value).
fn entries(csr: &Csr, row: usize, to: &mut Vec<(usize, C64)>) {
    to.clear();
    to.extend(
        (csr.row_start[row]..csr.row_start[row + 1]).map(|at| (csr.columns.get(at), csr.values.get(at))),
    );
}

/// Centre and radius of Gershgorin's disc of a row.
fn disc(row: usize, entries: &[(usize, C64)]) -> (C64, f64) {
    entries.iter().fold((C64::ZERO, 0.0), |(centre, radius), &(column, value)| {
        if column == row { (centre + value, radius) } else { (centre, radius + value.norm()) }
    })
}

/// A matrix in one of the formats, with what it was made of.
pub struct StoredMatrix {
    kernel: Arc<dyn Kernel>,
    source: StoredSource,
    device: Device,
    /// As asked for; the adjoint is kept in the same.
    format: MatrixFormat,
    /// Why this format: for people.
    reason: &'static str,
    /// How much of the places kept holds entries, where each rank has its own rows.
    occupancy: Option<f64>,
    /// Found when first asked for.
    hermitian: OnceLock<bool>,
}

impl StoredMatrix {
    fn build(
        device: &Device,
        spec: MatrixSpec,
        source: StoredSource,
        format: MatrixFormat,
        reason: &'static str,
    ) -> Result<Operator> {
        let (kernel, device) = (device.prepare(spec)?, device.clone());
        let (occupancy, hermitian) = (None, OnceLock::new());
        let node =
            StoredMatrix { kernel, source, device: device.clone(), format, reason, occupancy, hermitian };
        Ok(Operator::from_node(device, Arc::new(node)))
    }

    /// From compressed rows, kept in `format`.
    pub fn from_csr(device: &Device, csr: Csr, format: MatrixFormat) -> Result<Operator> {
        csr.validate()?;
        let csr = Arc::new(csr);
        let spec = match format {
            MatrixFormat::Dense => dense_spec(&csr)?,
            MatrixFormat::Stencil => {
                return Err(Error::input(
                    "these entries are not translation invariant, so there is no stencil",
                )
                .hint("use `format: \"auto\"` or `\"csr\"`"));
            }
            _ => format.of_rows(csr.clone()),
        };
        let reason = if format == MatrixFormat::Auto { ENTRIES_DIFFER } else { "as asked" };
        Self::build(device, spec, StoredSource::Csr(csr), format, reason)
    }

    /// From a rule for rows, where each process holds some of them; none where this one holds all, and for formats that
    /// are not made by rows.
    ///
    /// # Errors
    /// Those of the rule and the device.
    pub(super) fn from_rule(
        device: &Device,
        rule: RowRule,
        format: MatrixFormat,
    ) -> Result<Option<Operator>> {
        let make = rule.make.clone();
        Self::from_pieces(device, rule, format, |pieces| make(pieces))
    }

    /// The same, with what makes the rows the first time, as work that shows how far it is does.
    ///
    /// # Errors
    /// Those of both, and of the device.
    pub fn from_pieces(
        device: &Device,
        rule: RowRule,
        format: MatrixFormat,
        first: impl FnOnce(&[(usize, usize)]) -> Result<Csr>,
    ) -> Result<Option<Operator>> {
        if matches!(format, MatrixFormat::Dense | MatrixFormat::Stencil) {
            return Ok(None);
        }
        let Some(ranks) = device.distributed() else { return Ok(None) };
        let Some(pieces) = ranks.held(rule.rows)? else { return Ok(None) };
        let csr = ranks::agreed(first(&pieces).and_then(|csr| csr.validate().map(|()| csr)))?;
        // Each rank pads its own rows.
        let own = vec![csr.entries() as f64, places(&csr, format) as f64];
        let all = ranks::joined(Ok(own))?;
        let sum = |of: usize| all.iter().skip(of).step_by(2).sum::<f64>();
        let occupancy = Some(if sum(1) == 0.0 { 1.0 } else { sum(0) / sum(1) });
        let kernel = ranks.prepare_held(csr, rule.rows, &|csr| format.of_rows(csr))?;
        let reason = if format == MatrixFormat::Auto { ENTRIES_DIFFER } else { "as asked" };
        let (device, source, hermitian) = (device.clone(), StoredSource::Rule(rule), OnceLock::new());
        let node =
            StoredMatrix { kernel, source, device: device.clone(), format, reason, occupancy, hermitian };
        Ok(Some(Operator::from_node(device, Arc::new(node))))
    }

    /// From a stencil, matrix-free or assembled to `format`.
    pub fn from_stencil(device: &Device, stencil: Stencil, format: MatrixFormat) -> Result<Operator> {
        let taken = || device.takes_stencil(&stencil);
        if format == MatrixFormat::Stencil || (format == MatrixFormat::Auto && taken()) {
            let stencil = Arc::new(stencil);
            let reason = "hoppings are translation invariant, so none needs storing";
            let spec = MatrixSpec::Stencil(stencil.clone());
            return Self::build(device, spec, StoredSource::Stencil(stencil), MatrixFormat::Stencil, reason);
        }
        Self::from_csr(device, stencil_to_csr(&stencil)?, format)
    }

    /// Calls `f(row, entries)` for a range of rows, entries that meet in a column not added up; in any order, of which
    /// `join` makes one result.
    fn over<R: Send>(
        &self,
        rows: Range<usize>,
        none: impl Fn() -> R + Send + Sync,
        f: impl Fn(&mut R, usize, &[(usize, C64)]) + Send + Sync,
        join: impl Fn(R, R) -> R + Send + Sync,
    ) -> Result<R> {
        let walk = |read: &(dyn Fn(usize, &mut Vec<(usize, C64)>) + Sync)| {
            let step = |(mut found, mut of_row): (R, Vec<_>), row| {
                read(row, &mut of_row);
                f(&mut found, row, &of_row);
                (found, of_row)
            };
            rows.clone()
                .into_par_iter()
                .with_min_len(1 << 10)
                .fold(|| (none(), Vec::new()), step)
                .map(|(found, _)| found)
                .reduce(&none, &join)
        };
        Ok(match &self.source {
            StoredSource::Csr(csr) => walk(&|row, to| entries(csr, row, to)),
            StoredSource::Stencil(stencil) => walk(&|row, to| stencil.row(row, to)),
            StoredSource::Rule(rule) => {
                let mut found = none();
                rule.each(rows, |row, entries| f(&mut found, row, entries))?;
                found
            }
        })
    }

    fn rows(&self) -> usize {
        match &self.source {
            StoredSource::Csr(csr) => csr.rows,
            StoredSource::Stencil(stencil) => stencil.dim(),
            StoredSource::Rule(rule) => rule.rows,
        }
    }
}

/// Rows from which each rank looks at some of them only, and is told of the others.
const MANY: usize = 1 << 14;

fn dense_spec(csr: &Csr) -> Result<MatrixSpec> {
    let bytes = csr.rows as f64 * csr.cols as f64 * csr.values.dtype().bytes() as f64;
    if bytes > 64e9 {
        return Err(Error::memory(format!(
            "a dense matrix of {} x {} needs {:.1} GB",
            csr.rows,
            csr.cols,
            bytes / 1e9
        ))
        .hint("use `format: \"auto\"`"));
    }
    let mut values = vec![C64::default(); csr.rows * csr.cols];
    for row in 0..csr.rows {
        for at in csr.row_start[row]..csr.row_start[row + 1] {
            values[row * csr.cols + csr.columns.get(at)] += csr.values.get(at);
        }
    }
    Ok(MatrixSpec::Dense { rows: csr.rows, cols: csr.cols, dtype: csr.values.dtype(), values })
}

/// Places that a format keeps for the entries of compressed rows.
fn places(csr: &Csr, format: MatrixFormat) -> usize {
    match format {
        MatrixFormat::Ell => padded(csr, csr.rows, 1),
        MatrixFormat::Sell { chunk, sigma } => padded(csr, chunk, sigma),
        MatrixFormat::Dense => csr.rows * csr.cols,
        MatrixFormat::Auto | MatrixFormat::Csr | MatrixFormat::Stencil => csr.entries(),
    }
}

/// Places that slices of `chunk` rows keep, each padded to its longest row,
/// where rows are sorted by length within `sigma`.
fn padded(csr: &Csr, chunk: usize, sigma: usize) -> usize {
    let chunk = chunk.clamp(1, csr.rows.max(1));
    let mut lengths: Vec<usize> = csr.row_start.windows(2).map(|ends| ends[1] - ends[0]).collect();
    if sigma > 1 {
        lengths.chunks_mut(sigma).for_each(|rows| rows.sort_unstable_by(|a, b| b.cmp(a)));
    }
    lengths.chunks(chunk).map(|slice| chunk * slice.iter().max().copied().unwrap_or(0)).sum()
}

/// The entries of a stencil in compressed rows; entries of the same column are added up.
fn stencil_to_csr(stencil: &Stencil) -> Result<Csr> {
    let dim = stencil.dim();
    let mut row_start = Vec::with_capacity(dim + 1);
    row_start.push(0);
    let (mut columns, mut values) = (Vec::<u64>::new(), Vec::<C64>::new());
    let mut entries = Vec::new();
    for row in 0..dim {
        stencil.merged_row(row, &mut entries);
        columns.extend(entries.iter().map(|e| e.0 as u64));
        values.extend(entries.iter().map(|e| e.1));
        row_start.push(columns.len());
    }
    let columns = Indices::of(dim, columns);
    Ok(Csr {
        rows: dim,
        cols: dim,
        row_start,
        columns,
        values: MatrixValues::C64(values).convert(stencil.dtype),
    })
}

impl LinearOperator for StoredMatrix {
    fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }

    fn adjoint(&self) -> Result<Option<Operator>> {
        match &self.source {
            StoredSource::Stencil(stencil) => {
                let terms = stencil.terms.iter().map(|t| StencilTerm {
                    shift: t.shift.iter().map(|s| -s).collect(),
                    to: t.from,
                    from: t.to,
                    value: t.value.conj(),
                });
                let adjoint = Stencil { terms: terms.collect(), ..(**stencil).clone() };
                StoredMatrix::from_stencil(&self.device, adjoint, MatrixFormat::Stencil).map(Some)
            }
            StoredSource::Csr(csr) => {
                StoredMatrix::from_csr(&self.device, transpose_conjugate(csr), self.format).map(Some)
            }
            // It is Hermitian.
            StoredSource::Rule(_) => Ok(None),
        }
    }

    fn is_hermitian(&self) -> Result<Option<bool>> {
        Ok(Some(*self.hermitian.get_or_init(|| match &self.source {
            StoredSource::Csr(csr) => nearly_hermitian(csr),
            StoredSource::Rule(_) => true,
            StoredSource::Stencil(stencil) => {
                // The matrix element between two orbitals at a displacement: the sum of its terms.
                let element = |to: usize, from: usize, shift: &[i64], sign: i64| -> C64 {
                    let same = |t: &&StencilTerm| {
                        (t.to, t.from) == (to, from) && t.shift.iter().zip(shift).all(|(a, b)| *a == sign * b)
                    };
                    stencil.terms.iter().filter(same).map(|t| t.value).sum()
                };
                let largest = stencil.terms.iter().map(|t| t.value.norm()).fold(0.0, f64::max);
                stencil.wrap.iter().all(Wrap::is_unitary)
                    && stencil.terms.iter().all(|t| {
                        let here = element(t.to, t.from, &t.shift, 1);
                        let there = element(t.from, t.to, &t.shift, -1);
                        (here - there.conj()).norm() <= 1e-13 * largest
                    })
            }
        })))
    }

    fn row(&self, row: usize, entries: &mut Vec<(usize, C64)>) -> bool {
        match &self.source {
            StoredSource::Csr(csr) => {
                self::entries(csr, row, entries);
                merge(entries);
            }
            StoredSource::Stencil(stencil) => stencil.merged_row(row, entries),
            StoredSource::Rule(rule) => match (rule.make)(&[(row, 1)]) {
                Ok(csr) => self::entries(&csr, 0, entries),
                Err(_) => return false,
            },
        }
        true
    }

    fn diagonal(&self) -> Option<Vec<C64>> {
        let add = |found: &mut Vec<(usize, C64)>, row: usize, entries: &[(usize, C64)]| {
            found.push((row, disc(row, entries).0));
        };
        let join = |mut a: Vec<_>, mut b: Vec<_>| {
            a.append(&mut b);
            a
        };
        let found = self.over(0..self.rows(), Vec::new, add, join).ok()?;
        let mut diagonal = vec![C64::ZERO; self.rows()];
        found.into_iter().for_each(|(row, centre)| diagonal[row] = centre);
        Some(diagonal)
    }

    fn occupancy(&self) -> f64 {
        let StoredSource::Csr(csr) = &self.source else { return self.occupancy.unwrap_or(1.0) };
        let places = places(csr, self.format);
        if places == 0 { 1.0 } else { csr.entries() as f64 / places as f64 }
    }

    fn limits(&self) -> Option<(f64, f64)> {
        let shared = self.rows() >= MANY || matches!(self.source, StoredSource::Rule(_));
        let rows = if shared { ranks::own_of(self.rows()) } else { 0..self.rows() };
        let none = || [f64::INFINITY, f64::NEG_INFINITY];
        let wider = |a: [f64; 2], b: [f64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        let add = |found: &mut [f64; 2], row: usize, entries: &[(usize, C64)]| {
            let (centre, radius) = disc(row, entries);
            *found = wider(*found, [centre.re - radius, centre.re + radius]);
        };
        let own = self.over(rows, none, add, wider);
        let all = if shared { ranks::joined(own.map(|own| vec![own])) } else { own.map(|own| vec![own]) };
        let [lower, upper] = all.ok()?.into_iter().fold(none(), wider);
        (lower <= upper).then_some((lower, upper))
    }

    fn describe(&self) -> String {
        match &self.source {
            StoredSource::Csr(_) | StoredSource::Rule(_) => self.kernel.info().format,
            StoredSource::Stencil(s) => {
                let on_site = if s.diagonal.is_some() { " + on-site" } else { "" };
                format!("stencil of {}{on_site}", s.terms.len())
            }
        }
    }

    fn reason(&self) -> Option<&str> {
        Some(self.reason)
    }
}

/// Whether every entry has its conjugate partner, to rounding of the largest entries of their rows.
fn nearly_hermitian(csr: &Csr) -> bool {
    let largest: Vec<f64> = (0..csr.rows)
        .into_par_iter()
        .map(|row| {
            (csr.row_start[row]..csr.row_start[row + 1])
                .map(|at| csr.values.get(at).norm())
                .fold(0.0, f64::max)
        })
        .collect();
    let find = |row: usize, column: usize| -> C64 {
        let at = csr.first_from(row, column);
        let there = at < csr.row_start[row + 1] && csr.columns.get(at) == column;
        if there { csr.values.get(at) } else { C64::default() }
    };
    let eps = csr.values.dtype().tolerance(1e-13);
    (0..csr.rows).into_par_iter().all(|row| {
        (csr.row_start[row]..csr.row_start[row + 1]).all(|at| {
            let column = csr.columns.get(at);
            let off = (csr.values.get(at) - find(column, row).conj()).norm();
            off <= eps * largest[row].max(largest[column])
        })
    })
}

fn transpose_conjugate(csr: &Csr) -> Csr {
    let mut row_start = vec![0usize; csr.cols + 1];
    for at in 0..csr.entries() {
        row_start[csr.columns.get(at) + 1] += 1;
    }
    for row in 0..csr.cols {
        row_start[row + 1] += row_start[row];
    }
    let mut next = row_start.clone();
    let mut columns = vec![0u64; csr.entries()];
    let mut values = vec![C64::default(); csr.entries()];
    for row in 0..csr.rows {
        for at in csr.row_start[row]..csr.row_start[row + 1] {
            let to = &mut next[csr.columns.get(at)];
            columns[*to] = row as u64;
            values[*to] = csr.values.get(at).conj();
            *to += 1;
        }
    }
    let columns = match csr.columns {
        Indices::U32(_) => Indices::U32(columns.into_iter().map(|c| c as u32).collect()),
        Indices::U64(_) => Indices::U64(columns),
    };
    let values = MatrixValues::C64(values).convert(csr.values.dtype());
    Csr { rows: csr.cols, cols: csr.rows, row_start, columns, values }
}
