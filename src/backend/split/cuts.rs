//! Which part holds which rows. There is one cut for every number of rows. It is made when vectors or a matrix with
//! this number of rows first appear, and then kept, so all vectors of one length fit together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::backend::cut::RowCut;
use crate::backend::cut::speed::{RowShares, SpeedOfParts, rate, sample, writes_to_others};
use crate::backend::{Device, Grid, MatrixSpec, Rows};
use crate::error::Result;
use crate::ranks;

/// The cuts so far, and how others are made.
pub(super) struct Cuts {
    pub shares: RowShares,
    known: Mutex<HashMap<(usize, Option<Grid>), Arc<RowCut>>>,
}

impl Cuts {
    pub fn new(shares: RowShares) -> Cuts {
        Cuts { shares, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(usize, Option<Grid>), Arc<RowCut>>> {
        // What the lock guards is changed in single steps, which a panic leaves whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cut(
        &self,
        (rows, grid): (usize, Option<Grid>),
        make: impl FnOnce() -> Result<RowCut>,
    ) -> Result<Arc<RowCut>> {
        let known = self.known().get(&(rows, grid)).cloned();
        if let Some(cut) = known {
            return Ok(cut);
        }
        let cut = Arc::new(make()?);
        Ok(self.known().entry((rows, grid)).or_insert(cut).clone())
    }

    /// That of vectors with such rows.
    pub fn of_rows(&self, parts: &[Device], rows: &Rows) -> Result<Arc<RowCut>> {
        self.cut((rows.local, rows.grid), || self.shares.of_rows(rows, &Devices(parts)))
    }

    /// That of the rows of a matrix, or of its columns.
    pub fn of_matrix(&self, parts: &[Device], rows: usize, spec: &MatrixSpec) -> Result<Arc<RowCut>> {
        self.cut((rows, None), || self.shares.of_matrix(rows, Some(spec), &Devices(parts)))
    }

    /// That of its number of rows from now on, if there is none yet.
    pub fn keep(&self, cut: RowCut) -> Result<Arc<RowCut>> {
        self.cut((cut.rows, None), || Ok(cut))
    }

    /// Vectors of so many rows live whole, if there is none yet.
    pub fn keep_whole(&self, rows: usize) -> Result<Arc<RowCut>> {
        self.keep(self.shares.one(rows))
    }
}

/// The devices of one process.
struct Devices<'a>(&'a [Device]);

impl SpeedOfParts for Devices<'_> {
    fn rates(&self, spec: Option<&MatrixSpec>) -> Result<Vec<f64>> {
        let sample = sample(spec)?;
        let sample = sample.as_ref();
        let rates: Vec<f64> = std::thread::scope(|scope| {
            let jobs: Vec<_> =
                self.0.iter().map(|device| scope.spawn(move || rate(device, sample))).collect();
            jobs.into_iter()
                .map(|job| job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Result<_>>()
        })?;
        // Ranks that shared rows out by different rates would round differently.
        ranks::told(rates)
    }

    fn linked(&self) -> Result<Vec<bool>> {
        Ok(self.0.iter().map(writes_to_others).collect())
    }
}
