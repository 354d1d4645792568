//! Half-spinors that pass the faces of a box of the Wilson-Dirac operator between GPUs that reach each other's memory.
//! While they are sent, the box is computed as if it ended at its faces. Then sites at the faces get the contributions
//! from other boxes.

use std::any::Any;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::card::{Card, CardBuffer};
use super::ledger::Ledger;
use super::passage::Passage;
use super::sums::DotGrowth;
use super::{RESIDENT, arguments, buffer, unique};
use crate::backend::BlockVector;
use crate::backend::exchange::{HALF, Link, PendingProducts, VectorShape};
use crate::backend::matrix::wilson::{Face, SiteParity, WilsonSpec};
use crate::error::{Error, Result};

/// Two in each direction.
const MOST_FACES: usize = 8;

/// Threads of a block.
const BLOCK: usize = 128;

/// The argument of the kernels, as `kernels/faces.cuh` explains it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct FacesArgument {
    links: u64,
    v: u64,
    w: u64,
    spinors: [u64; MOST_FACES],
    sign: [f64; MOST_FACES],
    factor: [f64; 2],
    landing: u64,
    sums: u64,
    dims: [u32; 4],
    cut: [u32; 4],
    before: [u32; MOST_FACES + 1],
    faces: u32,
    sites: u32,
    columns: u32,
    width: u32,
    adjoint: u32,
    parity: u32,
    pass: u32,
    halved: u32,
    _pad: u32,
}

/// How half-spinors pass the faces while a product is made, as `kernels/wilson_linked.cu` explains it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct FacesCrossing {
    leaving: FacesArgument,
    came: [u64; 2],
    numbers: [u64; 2],
    left: u64,
    turns: u32,
    apart: u32,
}

/// A GPU's end of the exchange.
pub(super) struct FacesLink {
    card: Arc<Card>,
    shape: VectorShape,
    /// The operator's; it must not go while this is used.
    links: Arc<CardBuffer>,
    gamma5: bool,
    passage: Passage,
    /// What does not change from pass to pass.
    argument: FacesArgument,
    /// Ending of the kernels' names: precision and reals a link.
    form: String,
    ledger: Ledger,
    /// Where a product takes the exchange in: blocks that have written what leaves, and blocks that have asked for
    /// their turn.
    counters: CardBuffer,
}

/// How blocks of a product are shared out: threads of each, sides of the chip, blocks of a side, and how many of these
/// need nothing from beyond the faces and come before those that do.
pub(super) struct CrossingShare {
    pub threads: usize,
    pub sides: usize,
    pub free: usize,
}

/// Numbers of the kernels for the sites of a product.
pub(super) fn parity(sites: SiteParity) -> u32 {
    match sites {
        SiteParity::All => 0,
        SiteParity::Even => 1,
        SiteParity::Odd => 2,
    }
}

/// Whether half-spinors of half of the sites pass a face: the product has the sites of one parity, and of every two
/// that follow each other on the face one is among them.
fn halved(spec: &WilsonSpec, face: &Face) -> bool {
    let along = usize::from(face.direction == 0);
    spec.sites != SiteParity::All && face.alternates && spec.dims()[along].is_multiple_of(2)
}

/// The end of a box with these faces: the lower and the upper one of every direction that is cut.
pub(super) fn link(
    card: &Arc<Card>,
    spec: &WilsonSpec,
    links: Arc<CardBuffer>,
    faces: &[Face],
    shape: VectorShape,
) -> Result<Box<dyn Link>> {
    let in_pairs = faces.chunks(2).all(|pair| {
        matches!(pair, [lower, upper] if lower.direction == upper.direction && !lower.upper && upper.upper)
    });
    let sites: usize = faces.iter().map(|face| face.sites).sum();
    let most = u32::MAX as usize / 4;
    if !in_pairs || faces.len() > MOST_FACES || sites > most {
        return Err(Error::internal("faces that are not those of a box"));
    }
    let passing: Vec<usize> = faces.iter().map(|face| face.sites >> u32::from(halved(spec, face))).collect();
    let bytes = |k: usize| shape.bytes(HALF * passing[k]);
    let comes: Vec<usize> = (0..faces.len()).map(bytes).collect();
    // What leaves through the upper face of a direction goes before what leaves through the lower one.
    let leaves = (0..faces.len()).map(|k| bytes(k ^ 1)).collect();
    let mut argument = FacesArgument {
        links: links.address,
        dims: spec.dims().map(|n| n as u32),
        faces: faces.len() as u32,
        sites: spec.region.sites() as u32,
        columns: shape.columns as u32,
        width: (shape.columns as u32).next_power_of_two().clamp(1, BLOCK as u32),
        adjoint: u32::from(spec.adjoint),
        parity: parity(spec.sites),
        ..FacesArgument::zeroed()
    };
    for (k, face) in faces.iter().enumerate() {
        argument.sign[k] = face.sign;
        argument.cut[k / 2] = face.direction as u32;
        argument.before[k + 1] = argument.before[k] + passing[k] as u32;
        argument.halved |= u32::from(halved(spec, face)) << k;
    }
    let precision = if spec.single { "f32" } else { "f64" };
    let counters = card.allocate(16)?;
    card.clear(&counters)?;
    Ok(Box::new(FacesLink {
        passage: Passage::new(card, leaves, &comes)?,
        card: card.clone(),
        shape,
        links,
        gamma5: spec.gamma5,
        argument,
        form: format!("{precision}_{}", spec.compression.reals()),
        ledger: Ledger::default(),
        counters,
    }))
}

/// Of the first blocks of a product every eighth makes what leaves, or more of them, so that all has left when three
/// quarters of those have begun that need nothing from beyond.
const MOST_APART: u32 = 3;

impl FacesLink {
    /// Begins a pass of a box that is cut in time, whose product takes the exchange in: what its kernel needs, and
    /// blocks of each side of the chip that make what leaves.
    pub fn cross(&mut self, v: &BlockVector, share: CrossingShare) -> Result<(FacesCrossing, usize)> {
        let v = self.address(v)?;
        self.passage.pass = self.passage.pass.wrapping_add(1);
        let pass = self.passage.pass;
        let mut crossing = FacesCrossing {
            leaving: FacesArgument { v, landing: self.passage.landing(), pass, ..self.argument },
            left: self.counters.address,
            ..FacesCrossing::zeroed()
        };
        for (slot, &place) in self.passage.landings(pass % 2 == 1)?.iter().enumerate() {
            crossing.leaving.spinors[slot ^ 1] = place;
        }
        for (k, &number) in self.passage.numbers()?.iter().enumerate().take(2) {
            crossing.came[k] = self.came(k);
            crossing.numbers[k] = number;
        }
        let turns = self.units().div_ceil(share.threads * share.sides);
        crossing.turns = turns as u32;
        let fits = |apart: &u32| *apart == 0 || 4 * (turns << apart) <= 3 * (turns + share.free);
        crossing.apart = (0..=MOST_APART).rev().find(fits).unwrap_or(0);
        Ok((crossing, turns))
    }

    /// Whether the box is cut in time and in no other direction.
    pub fn is_cut_in_time(&self) -> bool {
        self.argument.faces == 2 && self.argument.cut[0] == 3
    }

    /// Where what has come through a face stands.
    fn came(&self, face: usize) -> u64 {
        self.passage.came() + self.shape.bytes(HALF * self.argument.before[face] as usize) as u64
    }

    /// Where blocks ask for their turn, if those of the product do not.
    pub fn turns(&self) -> u64 {
        self.counters.address + 8
    }

    /// Threads that make what leaves, or add what comes, in one column: two a site, in whole warps of each kind.
    fn units(&self) -> usize {
        2 * self.argument.before[self.argument.faces as usize].next_multiple_of(32) as usize
    }

    fn address(&self, v: &BlockVector) -> Result<u64> {
        if VectorShape::of(v) != self.shape {
            return Err(Error::internal("a vector of another kind than the exchange is for"));
        }
        Ok(buffer(v)?.address)
    }

    /// Blocks in each direction of a launch: those that share the sites, and columns that a block does not take.
    fn blocks(&self) -> (u32, u32) {
        let FacesArgument { columns, width, .. } = self.argument;
        let most = self.card.processors * RESIDENT;
        ((self.units() as u32).div_ceil(BLOCK as u32 / width).clamp(1, most), columns.div_ceil(width).max(1))
    }
}

impl Link for FacesLink {
    fn offers(&self) -> Vec<Vec<u8>> {
        self.passage.offers()
    }

    fn accept(&mut self, offers: &[Vec<u8>]) -> Result<bool> {
        self.passage.accept(offers)
    }

    fn send(&mut self, v: Option<&BlockVector>) -> Result<()> {
        let Some(v) = v else { return Err(Error::internal("a box without spinors")) };
        let mut argument = FacesArgument { v: self.address(v)?, links: self.links.address, ..self.argument };
        self.card.enter()?;
        self.passage.pass = self.passage.pass.wrapping_add(1);
        // By turns, as in `link`.
        for (slot, &place) in self.passage.places(self.passage.pass % 2 == 1)?.iter().enumerate() {
            argument.spinors[slot ^ 1] = place;
        }
        // Beside the product, whose blocks come after these: the stream goes before others.
        self.passage.follow()?;
        let name = format!("leave_faces_{}", self.form);
        // SAFETY: the kernel's argument; the vector is of the box, and the places hold what passes the faces.
        unsafe {
            let stream = self.passage.stream();
            self.card.launch_on(stream, &name, self.blocks(), BLOCK as u32, &arguments![argument])?;
        }
        self.passage.hand_over(argument.v)?;
        self.passage.gone()
    }

    fn add(
        &mut self,
        alpha: f64,
        w: Option<&mut BlockVector>,
        v: Option<&BlockVector>,
    ) -> Result<Option<PendingProducts>> {
        let Some(w) = w else { return Err(Error::internal("a box without spinors")) };
        self.address(w)?;
        let factor = -0.5 * alpha;
        let mut argument = FacesArgument {
            w: unique(&self.card, w)?.address,
            v: v.map_or(Ok(0), |v| self.address(v))?,
            factor: [factor, if self.gamma5 { -factor } else { factor }],
            landing: self.passage.landing(),
            pass: self.passage.pass,
            ..self.argument
        };
        for k in 0..argument.faces as usize {
            argument.spinors[k] = self.came(k);
        }
        let (blocks, columns) = (self.blocks(), self.shape.columns);
        let growth = DotGrowth::new(&self.card, v.is_some(), blocks.0, columns)?;
        argument.sums = growth.address();
        // Who changes the vector next waits for what leaves; and see the kernel.
        self.passage.wait()?;
        let name = format!("add_faces_{}", self.form);
        // SAFETY: the kernel's argument; both vectors are of the box, what comes has the sites of the faces, `growth`
        // has room for a number of each block and column.
        unsafe { self.card.launch(&name, blocks, BLOCK as u32, &arguments![argument])? };
        growth.later(&self.card, &self.ledger, columns)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn give_up(&mut self) {
        self.passage.give_up();
    }
}
