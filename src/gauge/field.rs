//! The links of a gauge field in one process, with a cache of links that a script has read from other ranks. A link is
//! read together with its neighbours, because a script usually reads those next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::su3::Su3;
use crate::backend::Region;
use crate::error::Result;

/// Sites whose links are read together: some tens of kilobytes.
const TOGETHER: usize = 64;

/// Pieces of so many sites that are kept: some megabytes.
const KEPT: usize = 128;

/// Links at 4 place + direction. Copies share them.
#[derive(Debug, Clone, Default)]
pub(super) struct LinkField {
    links: Arc<Vec<Su3>>,
    /// Links of consecutive sites of the whole lattice, by the number of the piece: the same on all ranks,
    /// which read alike.
    read: Arc<Mutex<HashMap<usize, Vec<Su3>>>>,
}

impl LinkField {
    /// A field of these links, of which no piece was read yet.
    pub fn new(links: Vec<Su3>) -> LinkField {
        LinkField { links: Arc::new(links), read: Arc::default() }
    }

    /// The links, to change them.
    pub fn links_mut(&mut self) -> &mut Vec<Su3> {
        self.read = Arc::default();
        Arc::make_mut(&mut self.links)
    }

    /// The same links, for others to keep.
    pub fn shared(&self) -> Arc<Vec<Su3>> {
        self.links.clone()
    }

    /// The link of a site, by its number in the whole lattice, whoever has it.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn link(&self, region: &Region, site: usize, mu: usize) -> Result<Su3> {
        if let Some(place) = region.place(site).filter(|_| !region.is_shared()) {
            return Ok(self.links[4 * place + mu]);
        }
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let (piece, at) = (site / TOGETHER, 4 * (site % TOGETHER) + mu);
        if let Some(links) = read.get(&piece) {
            return Ok(links[at]);
        }
        let numbers = piece * TOGETHER..region.sites().min((piece + 1) * TOGETHER);
        let links = region.some(numbers, 4, &self.links)?;
        let link = links[at];
        if read.len() >= KEPT {
            read.clear();
        }
        read.insert(piece, links);
        Ok(link)
    }
}

impl std::ops::Deref for LinkField {
    type Target = [Su3];

    fn deref(&self) -> &[Su3] {
        &self.links
    }
}

impl PartialEq for LinkField {
    fn eq(&self, other: &LinkField) -> bool {
        self.links == other.links
    }
}
