//! The common part of a rank's passes over its rows, for any data exchanged between ranks meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::backend::exchange::{PassExtras, PassProducts};
use crate::backend::{BlockVector, Dots, Update};
use crate::error::Result;
use crate::ranks::{UnderWay, World};

/// Bytes a message from which the library is called while the rank computes: shorter ones travel by themselves.
pub(super) const LONG: usize = 1 << 16;

/// Time between two calls.
const NAP: Duration = Duration::from_micros(50);

/// Messages of exchanges; those of one pass overtake none of another.
pub(super) const TAG: i32 = 1;

/// How a rank computes with its own rows and what it gets of others, on blocks of its own backend.
pub(super) trait RankPasses: Send + Sync {
    /// One fused pass over this rank's rows; its products, if they are asked for.
    fn pass(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: PassExtras,
    ) -> Result<PassProducts>;

    /// Steps of a recurrence that are queued together, as
    /// [`Kernel::recurrence_linked`](crate::backend::Kernel::recurrence_linked) does; none where there is no such way.
    fn steps(
        &self,
        _alpha_beta: (f64, f64),
        _v: &mut BlockVector,
        _w: &mut BlockVector,
        _steps: usize,
    ) -> Result<Option<Vec<Dots>>> {
        Ok(None)
    }

    /// See [`Kernel::overwrites`](crate::backend::Kernel::overwrites).
    fn overwrites(&self) -> bool;
}

/// Computes while another thread lets the library work on the messages.
pub(super) fn meanwhile<R>(
    world: &'static World,
    under_way: &mut [UnderWay],
    compute: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        scope.spawn(move || {
            // What fails here fails again where it is waited for.
            while !over.load(Ordering::Acquire)
                && under_way.iter_mut().any(|message| matches!(world.arrived(message), Ok(false)))
            {
                std::thread::sleep(NAP);
            }
        });
        /// Ends the other thread, also after a panic.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Release);
            }
        }
        let _over = Over(over);
        compute()
    })
}
