//! A chain cut in two with nothing truncated: the exact operator of a sector of total spin, in the basis of multiplets.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::block::ChainBlock;
use super::mpo::Mpo;
use super::space::{ChainSide, ChargeLabel, Space};
use super::superblock::{Strategy, Superblock};
use crate::backend::Device;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::number::memory;
use crate::task::Task;

/// The bases of a chain that grows from one side: sectors and how many states each has, at every bond.
fn spaces(mpo: &Mpo, side: ChainSide) -> Vec<Space> {
    let n = mpo.sites().count();
    let symmetry = mpo.symmetry();
    let first = match side {
        ChainSide::Left => symmetry.zero(),
        ChainSide::Right => symmetry.end(mpo.target()),
    };
    let mut all = vec![Space::single(first)];
    for step in 0..n {
        let site = if side == ChainSide::Left { step } else { n - 1 - step };
        let states = match side {
            ChainSide::Left => mpo.states(site).to_vec(),
            ChainSide::Right => symmetry.from_right(mpo.states(site)),
        };
        let mut sums: BTreeMap<ChargeLabel, usize> = BTreeMap::new();
        for (label, dim) in all[step].iter() {
            for sum in states.iter().filter_map(|state| symmetry.coupled(label, state)) {
                let place = sums.entry(sum).or_default();
                *place = place.saturating_add(dim);
            }
        }
        all.push(Space::new(sums));
    }
    all
}

impl<T: Element> Superblock<T> {
    /// The whole chain, nothing truncated.
    ///
    /// # Errors
    /// When memory does not suffice, on interruption.
    pub fn whole(device: &Device, mpo: &Arc<Mpo>, task: &Task) -> Result<Superblock<T>> {
        let n = mpo.sites().count();
        let [left, right] = [ChainSide::Left, ChainSide::Right].map(|side| spaces(mpo, side));
        // The cut where the operators of the two halves are smallest.
        let area = |space: &Space| space.dims().iter().map(|&d| (d as f64) * (d as f64)).sum::<f64>();
        let cost = |cut: usize| area(&left[cut]) + area(&right[n - cut]);
        let cut = (0..=n).min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(0);
        let width = mpo.bond(cut).charges.len() as f64;
        let target: Vec<Option<i32>> = mpo.target().iter().map(|q| Some(*q)).collect();
        memory::ensure(
            (3.0 * width * cost(cut) * size_of::<T>() as f64) as u128,
            "the operators of both halves of the chain",
        )?;
        let steps = task.start("blocks", n);
        let mut blocks = Vec::new();
        for (side, sites) in [(ChainSide::Left, cut), (ChainSide::Right, n - cut)] {
            let mut block = ChainBlock::<T>::edge(mpo, side);
            for k in 0..sites {
                block = if k + 1 == sites { block.grow()? } else { block.extend()? };
                steps.advance(if side == ChainSide::Left { k + 1 } else { cut + k + 1 })?;
            }
            blocks.push(block);
        }
        let [left, right] = &blocks[..] else {
            return Err(Error::internal("a chain of other than two halves"));
        };
        Superblock::new(device, left, right, &target, Strategy::Auto)
    }
}
