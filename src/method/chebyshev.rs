//! The Chebyshev recurrence v_(m+1) = 2 H~ v_m - v_(m-1) with two moments a product:
//! mu_2m = 2 <v_m|v_m> - mu_0 and mu_(2m+1) = 2 <v_(m+1)|v_m> - mu_1 (`aug_spmmv` of
//! Kreutzer, Hager, Wellein, Pieper, Alvermann, Fehske, IPDPS 2015, 417).

use std::time::{Duration, Instant};

use crate::backend::{BlockVector, Dots, Update};
use crate::error::{Error, Result};
use crate::method::window::require_hermitian;
use crate::method::{Moments, Window};
use crate::operator::{Operator, TAKE_SIZES};
use crate::ranks;
use crate::task::Task;

/// Bytes of a group of orders for each worker of the device, which take some hundredths of a second: a core reads about
/// as much as a GPU's multiprocessor.
const BYTES: usize = 1 << 30;

/// The recurrence, holding T_(m-1) v and T_m v.
#[derive(Clone)]
pub struct Chebyshev {
    h: Operator,
    window: Window,
    /// T_m v.
    current: BlockVector,
    /// T_(m-1) v.
    previous: BlockVector,
    /// <v_m|v_m> and <v_(m+1)|v_m> of every product so far; of several ranks, over the rows of this one.
    dots: Vec<Dots>,
    elapsed: Duration,
}

impl Chebyshev {
    /// Holds T_0 v = v and T_1 v = H~ v.
    pub fn new(h: &Operator, window: Window, v: BlockVector) -> Result<Self> {
        require_hermitian(h)?;
        if !(window.half_width > 0.0) {
            return Err(Error::input(format!("a window of half width {}", window.half_width))
                .hint("its upper end lies above its lower one"));
        }
        if v.rows().global != h.dim() {
            return Err(Error::input(format!(
                "vectors of {} rows for an operator of {}",
                v.rows().global,
                h.dim()
            ))
            .hint(TAKE_SIZES));
        }
        let started = Instant::now();
        let previous = h.accept(&v)?.unwrap_or(v);
        let mut current = h.device().zeros(previous.dtype(), previous.rows(), previous.columns())?;
        let (alpha, beta) = (1.0 / window.half_width, -window.center / window.half_width);
        let dots = h.update_partial(Update { alpha, beta, gamma: 0.0 }, &previous, &mut current)?;
        Ok(Chebyshev {
            h: h.clone(),
            window,
            current,
            previous,
            dots: vec![dots],
            elapsed: started.elapsed(),
        })
    }

    /// The order m of the newest vector T_m v.
    pub fn order(&self) -> usize {
        self.dots.len()
    }

    /// T_m v.
    pub fn current(&self) -> &BlockVector {
        &self.current
    }

    /// T_(m-1) v.
    pub fn previous(&self) -> &BlockVector {
        &self.previous
    }

    /// `n` orders further; each adds two moments.
    pub fn run(&mut self, n: usize, task: &Task) -> Result<()> {
        let (alpha, beta) =
            (2.0 / self.window.half_width, -2.0 * self.window.center / self.window.half_width);
        let lanes = (self.h.dim() * self.current.columns()).max(1);
        let group = self.together();
        let progress = task.start("moments", 2 * n);
        let started = Instant::now();
        let mut done = 0;
        while done < n {
            let steps = group.min(n - done);
            let (w, v) = (&mut self.previous, &mut self.current);
            let mut dots = Vec::with_capacity(steps);
            self.h.recurrence((alpha, beta), v, w, steps, &mut dots)?;
            self.dots.append(&mut dots);
            done += steps;
            let rate = 2.0 * (done * lanes) as f64 / started.elapsed().as_secs_f64();
            progress.advance_with(2 * done, &format!("{:.2} G site-vector-moments/s", rate / 1e9))?;
            self.check(&self.dots)?;
        }
        self.elapsed += started.elapsed();
        Ok(())
    }

    /// Orders that are handed over at once: few enough that the progress bar moves, enough for blocking over orders and
    /// for what a GPU records. After each group the host waits, and a GPU runs out of work meanwhile;
    /// beside others this costs more.
    fn together(&self) -> usize {
        let ranks = ranks::world().map_or(1, |world| world.size());
        let bytes = self.h.info().bytes + 3 * self.current.bytes();
        (BYTES * self.h.device().workers() * ranks / bytes.max(1)).clamp(4, 512)
    }

    /// Finds out a spectrum that leaves the window: then <v_m|v_m> grows beyond <v|v>, which |T_m| <= 1 forbids.
    /// What a rank knows alone tells nothing, and the ranks meet once a run: at its end.
    fn check(&self, dots: &[Dots]) -> Result<()> {
        let (Some(first), Some(last)) = (dots.first(), dots.last()) else { return Ok(()) };
        if last.partial {
            return Ok(());
        }
        for (now, start) in last.vv.iter().zip(&first.vv) {
            self.window.holds(*now, *start, self.current.dtype())?;
        }
        Ok(())
    }

    /// The moments of these products, one row a column of the block: mu_0 to mu_(2m-1).
    fn per_column(&self, dots: &[Dots]) -> Vec<Vec<f64>> {
        let columns = self.current.columns();
        let mut mu = vec![Vec::with_capacity(2 * dots.len()); columns];
        for (m, dots) in dots.iter().enumerate() {
            for (c, mu) in mu.iter_mut().enumerate() {
                if m == 0 {
                    mu.extend([dots.vv[c], dots.wv[c]]);
                } else {
                    let (mu0, mu1) = (mu[0], mu[1]);
                    mu.extend([2.0 * dots.vv[c] - mu0, 2.0 * dots.wv[c] - mu1]);
                }
            }
        }
        mu
    }

    /// The moments so far, of each column normalised to mu_0 = 1, then averaged over the columns.
    pub fn moments(&self) -> Result<Moments> {
        let mut dots = self.dots.clone();
        if let Some(ranks) = self.h.device().distributed() {
            ranks.complete(&mut dots)?;
        }
        self.check(&dots)?;
        let mut moments = Moments::new(self.window, self.h.dim(), self.per_column(&dots))?;
        moments.seconds = self.elapsed.as_secs_f64();
        Ok(moments)
    }
}
