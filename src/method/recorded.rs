//! Clenshaw's recurrence of one series for many vectors in turn. Its kernel launches are recorded once and replayed.
//! This saves time if a device takes longer to launch a step than to compute it.

use crate::backend::{BlockVector, Recording, Update};
use crate::error::{Error, Result};
use crate::method::Window;
use crate::number::C64;
use crate::operator::Operator;

/// Steps that are recorded together; an even number leaves the vectors of the recurrence where they were.
const GROUP: usize = 16;

/// A recorded recurrence, with all the memory that its launches touch.
pub struct RecordedClenshaw {
    h: Operator,
    window: Window,
    first: f64,
    psi: BlockVector,
    b1: BlockVector,
    b2: BlockVector,
    /// Groups of [`GROUP`] coefficients each, the lowest first.
    groups: Vec<Box<dyn Recording>>,
}

impl RecordedClenshaw {
    /// Records the recurrence of a series with real coefficients for vectors like `v`, on a device that [finds it
    /// worth it](crate::backend::Recorder::worth_recording). `h` must not be shared: its own work vectors are part of
    /// the recording.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(h: Operator, window: Window, coefficients: &[f64], v: &BlockVector) -> Result<Self> {
        let device = h.device().clone();
        let nothing = || Error::internal(format!("{} records nothing", device.name()));
        let recorder = device.recorder().ok_or_else(nothing)?;
        let zeros = || device.zeros(v.dtype(), v.rows(), v.columns());
        let (psi, mut b1, mut b2) = (zeros()?, zeros()?, zeros()?);
        let step = doubled(window);
        // A first product makes the operator allocate its work vectors.
        h.update_plus(step, &b1, &mut b2, &[(0.0, &psi)])?;
        let (first, others) = coefficients.split_first().unwrap_or((&0.0, &[]));
        let mut groups = Vec::new();
        for group in others.chunks(GROUP) {
            groups.push(recorder.record(&mut || {
                for k in (0..GROUP).rev() {
                    let c = group.get(k).copied().unwrap_or(0.0);
                    h.update_plus(step, &b1, &mut b2, &[(c, &psi)])?;
                    std::mem::swap(&mut b1, &mut b2);
                }
                Ok(())
            })?);
        }
        Ok(RecordedClenshaw { h, window, first: *first, psi, b1, b2, groups })
    }

    /// Applies the first `terms` terms of the series, rounded up to whole groups, to a vector.
    ///
    /// # Errors
    /// Those of the device, and interruption, after which the recording is of no use.
    pub fn apply(&mut self, v: &BlockVector, terms: usize) -> Result<BlockVector> {
        let device = self.h.device();
        let (none, one) = ([C64::default()], [C64::ONE]);
        device.axpby(&one, v, &none, &mut self.psi)?;
        for b in [&mut self.b1, &mut self.b2] {
            device.axpby(&none, v, &none, b)?;
        }
        let used = terms.saturating_sub(1).div_ceil(GROUP).min(self.groups.len());
        for group in self.groups[..used].iter_mut().rev() {
            // SAFETY: the operator and the vectors that were recorded are this one's own, and are never replaced.
            unsafe { group.replay()? };
        }
        let mut out = device.zeros(v.dtype(), v.rows(), v.columns())?;
        let Update { alpha, beta, .. } = doubled(self.window);
        let last = Update { alpha: 0.5 * alpha, beta: 0.5 * beta, gamma: 0.0 };
        self.h.update_plus(last, &self.b1, &mut out, &[(-1.0, &self.b2), (self.first, &self.psi)])?;
        Ok(out)
    }
}

/// 2 H~ b_1 - b_2 of H~ = (H - b)/a.
fn doubled(window: Window) -> Update {
    let a = window.half_width;
    Update { alpha: 2.0 / a, beta: -2.0 * window.center / a, gamma: -1.0 }
}
