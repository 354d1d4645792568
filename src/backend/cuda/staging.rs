//! Page-locked memory that rows pass through on their way to and from a GPU.

use std::sync::Arc;

use super::card::Card;
use super::pinned::Locked;
use crate::backend::exchange::HostMemory;
use crate::error::Result;

/// Page-locked memory for rows in transit.
pub(super) struct Pinned {
    /// Always there, until this is dropped.
    memory: Option<Locked>,
    card: Arc<Card>,
}

impl Pinned {
    pub fn new(card: &Arc<Card>, bytes: usize) -> Result<Pinned> {
        card.enter()?;
        Ok(Pinned { memory: Some(Locked::new(bytes)?), card: card.clone() })
    }
}

impl HostMemory for Pinned {
    fn bytes(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], Locked::bytes)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.as_mut().map_or(&mut [], Locked::bytes_mut)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The driver frees memory only on a thread that has a GPU; without one the memory stays with it.
        let _ = self.card.enter();
        if let Some(memory) = self.memory.take() {
            self.card.unfreed.add(memory);
        }
    }
}
