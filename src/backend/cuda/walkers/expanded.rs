//! Sums of products of determinants on the GPU: shares of products, and the determinants of their fillings.

use std::sync::Arc;

use super::layout::ExpansionArgument;
use super::{CudaWalkers, THREADS, arguments};
use crate::backend::cuda::card::{Card, CardBuffer};
use crate::backend::walkers::WalkersSpec;
use crate::error::Result;

/// A spin without electrons, as in `kernels/walkers.cuh`.
const NONE: u32 = u32::MAX;

/// What is known of a sum of products of determinants, for some walkers.
pub(super) struct Expanded {
    pub own: ExpansionArgument,
    terms: Arc<[CardBuffer; 2]>,
    _held: Vec<CardBuffer>,
}

impl Expanded {
    /// Room for so many walkers.
    pub fn new(card: &Arc<Card>, spec: &WalkersSpec, walkers: usize) -> Result<Expanded> {
        let place = |f: Option<usize>| f.map_or(NONE, |f| f as u32);
        let places: Vec<u32> = spec.products.iter().flat_map(|p| p.1.map(place)).collect();
        let coefficients: Vec<[f64; 2]> = spec.products.iter().map(|p| [p.0.re, p.0.im]).collect();
        let terms = Arc::new([card.upload(&places)?, card.upload(&coefficients)?]);
        let fillings = [0, 1].map(|s| spec.fillings[s].len() as u32);
        Expanded::room(card, terms, spec.products.len() as u32, fillings, walkers)
    }

    /// The same sum for other walkers.
    pub fn another(&self, card: &Arc<Card>, walkers: usize) -> Result<Expanded> {
        Expanded::room(card, self.terms.clone(), self.own.products, self.own.fillings, walkers)
    }

    fn room(
        card: &Arc<Card>,
        terms: Arc<[CardBuffer; 2]>,
        products: u32,
        fillings: [u32; 2],
        walkers: usize,
    ) -> Result<Expanded> {
        // Shares and weights of one product alone do not change.
        let ones = |count: usize| card.upload(&vec![[1.0, 0.0]; count * walkers]);
        let room = |s: usize, bytes: usize| card.allocate(fillings[s] as usize * walkers * bytes);
        let (total, shares) = (card.allocate(walkers * 8)?, ones(products as usize)?);
        let weights = [ones(fillings[0] as usize)?, ones(fillings[1] as usize)?];
        let (logs, phases) = ([room(0, 8)?, room(1, 8)?], [room(0, 16)?, room(1, 16)?]);
        let own = ExpansionArgument {
            places: terms[0].address,
            coefficients: terms[1].address,
            shares: shares.address,
            weights: weights.each_ref().map(|b| b.address),
            logs: logs.each_ref().map(|b| b.address),
            phases: phases.each_ref().map(|b| b.address),
            total: total.address,
            products,
            fillings,
        };
        let held = [total, shares].into_iter().chain(weights).chain(logs).chain(phases).collect();
        Ok(Expanded { own, terms, _held: held })
    }
}

impl CudaWalkers {
    /// Finds the shares, and the size of the sum, from the determinants; tells `control` of walkers on a node.
    pub(super) fn shares(&self, sum: &Expanded, walkers: u32, control: &CardBuffer) -> Result<()> {
        let (own, control) = (sum.own, control.address);
        // SAFETY: the kernel's arguments.
        unsafe { self.card.launch("walk_shares", (walkers, 1), THREADS, &arguments![walkers, own, control]) }
    }

    /// Finds the weights of fillings from the shares.
    pub(super) fn weigh(&self, sum: &Expanded, walkers: u32) -> Result<()> {
        if sum.own.products == 1 {
            return Ok(());
        }
        let own = sum.own;
        // SAFETY: the kernel's arguments.
        unsafe { self.card.launch("walk_weights", (walkers, 1), THREADS, &arguments![walkers, own]) }
    }
}
