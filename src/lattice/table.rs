//! Terms that depend on the place: the distinct blocks, and the number of the block at each place. Functions of
//! position often return few distinct values, so this takes four bytes per place.

use std::collections::HashMap;

use super::block::OrbitalBlock;
use crate::error::{Error, Result};

/// Marks a place without a term.
const ABSENT: u32 = u32::MAX;

/// One block a place.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockTable {
    blocks: Vec<OrbitalBlock>,
    index: Vec<u32>,
}

impl BlockTable {
    /// The block at a place, if there is one.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&OrbitalBlock> {
        self.index.get(at).and_then(|&i| self.blocks.get(i as usize))
    }

    /// The blocks, each once, whatever the number of places that have it.
    pub fn blocks(&self) -> &[OrbitalBlock] {
        &self.blocks
    }

    /// The table of what a function makes of each block.
    pub fn each(&self, f: impl Fn(&OrbitalBlock) -> OrbitalBlock) -> BlockTable {
        BlockTable { blocks: self.blocks.iter().map(f).collect(), index: self.index.clone() }
    }

    /// The same block at each of so many places.
    pub fn same(block: OrbitalBlock, places: usize) -> BlockTable {
        BlockTable { blocks: vec![block], index: vec![0; places] }
    }

    /// No block at any of so many places.
    pub fn absent(places: usize) -> BlockTable {
        BlockTable { blocks: Vec::new(), index: vec![ABSENT; places] }
    }

    /// The block of each kind of places, where all places of a kind have the same; nothing where two differ.
    pub fn by_kind(&self, kinds: usize, kind: impl Fn(usize) -> usize) -> Option<Vec<Option<&OrbitalBlock>>> {
        let mut found: Vec<Option<u32>> = vec![None; kinds];
        for (place, index) in self.index.iter().enumerate() {
            if *found[kind(place)].get_or_insert(*index) != *index {
                return None;
            }
        }
        Some(found.into_iter().map(|index| self.blocks.get(index? as usize)).collect())
    }

    /// Keeps only the given places, in their order.
    pub fn select(&mut self, places: &[usize]) {
        self.index = places.iter().map(|&at| self.index.get(at).copied().unwrap_or(ABSENT)).collect();
    }
}

/// Collects a table place by place.
#[derive(Default)]
pub(super) struct Builder {
    table: BlockTable,
    seen: HashMap<Vec<u64>, u32>,
}

impl Builder {
    /// Goes on from a table.
    pub fn of(table: BlockTable) -> Builder {
        let seen = (0..).zip(&table.blocks).map(|(i, block)| (key(block), i)).collect();
        Builder { table, seen }
    }

    /// Appends the block of the next place.
    pub fn push(&mut self, block: Option<OrbitalBlock>) -> Result<()> {
        let at = self.known(block)?;
        self.table.index.push(at);
        Ok(())
    }

    /// Changes the block of a place.
    pub fn set(&mut self, place: usize, block: Option<OrbitalBlock>) -> Result<()> {
        self.table.index[place] = self.known(block)?;
        Ok(())
    }

    /// The number of a block, kept if it is new.
    fn known(&mut self, block: Option<OrbitalBlock>) -> Result<u32> {
        let Some(block) = block else { return Ok(ABSENT) };
        let key = key(&block);
        let next = self.table.blocks.len();
        let at = *self.seen.entry(key).or_insert(next as u32);
        if at as usize == next {
            if next >= ABSENT as usize {
                return Err(Error::memory("more than 2^32 different values of a term"));
            }
            self.table.blocks.push(block);
        }
        Ok(at)
    }

    pub fn finish(self) -> BlockTable {
        self.table
    }
}

/// The bits of a block; zero has one sign.
fn key(block: &OrbitalBlock) -> Vec<u64> {
    block.entries().iter().flat_map(|z| [(z.re + 0.0).to_bits(), (z.im + 0.0).to_bits()]).collect()
}
