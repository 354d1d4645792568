//! Launches recorded once and replayed by a single call: launching short kernels one by one takes longer than running
//! them.

use std::ptr;
use std::sync::Arc;

use cust::sys;

use super::card::Card;
use super::driver::check;
use crate::backend::Recording;
use crate::error::Result;

/// A recorded sequence of launches.
pub(super) struct Graph {
    executable: sys::CUgraphExec,
    card: Arc<Card>,
}

// SAFETY: a graph belongs to no thread, and is changed or replayed by its only holder alone.
unsafe impl Send for Graph {}
// SAFETY: nothing can be done to it through a shared reference.
unsafe impl Sync for Graph {}

impl Graph {
    /// Records what `work` queues, without running it. It must do nothing on the GPU but launch kernels, and the memory
    /// that these touch must live as long as the graph is replayed.
    ///
    /// # Errors
    /// Those of `work`, and the driver's.
    pub fn record(card: &Arc<Card>, work: impl FnOnce() -> Result<()>) -> Result<Graph> {
        card.enter()?;
        let what = "recording launches";
        let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives as long as the card.
        check(what, unsafe { sys::cuStreamBeginCapture_v2(card.stream(), mode) })?;
        let worked = work();
        let mut graph = ptr::null_mut();
        // SAFETY: the capture begun above ends, whatever became of the work; a graph is written.
        let status = unsafe { sys::cuStreamEndCapture(card.stream(), &mut graph) };
        worked.and_then(|()| check(what, status))?;
        let mut executable = ptr::null_mut();
        // Launches keep the priorities of the streams they were queued on.
        let by_node = 8;
        // SAFETY: the graph was captured just now, and is not needed once it is instantiated.
        let status = unsafe {
            let status = sys::cuGraphInstantiateWithFlags(&mut executable, graph, by_node);
            sys::cuGraphDestroy(graph);
            status
        };
        check(what, status)?;
        Ok(Graph { executable, card: card.clone() })
    }

    /// Queues all launches.
    ///
    /// # Safety
    /// As [`Card::launch`], for each of them.
    pub unsafe fn replay(&mut self) -> Result<()> {
        self.card.check_interrupt()?;
        self.card.enter()?;
        // SAFETY: the caller's promise.
        check("replaying launches", unsafe { sys::cuGraphLaunch(self.executable, self.card.stream()) })
    }
}

impl Recording for Graph {
    unsafe fn replay(&mut self) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { Graph::replay(self) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: nobody else holds it; what was queued of it runs on.
        let _ = unsafe { sys::cuGraphExecDestroy(self.executable) };
    }
}
