//! Recurrences on the GPU: many steps of the fused pass, vectors changing places in between.

use bytemuck::Zeroable;

use super::blocks::INNER;
use super::card::LaunchShape;
use super::graph::Graph;
use super::link::{CrossingArgument, CudaLink};
use super::matrices::{Argument, CardMatrix, Launch, UpdateArgument, collect, packs};
use super::onchip::{BLOCK as ON_CHIP, CellShape, OnChipHead};
use super::order::PassKind;
use super::{LAUNCH_BOUND, LINKED_BOUND, arguments, suffix, sums, unique};
use crate::backend::{BlockVector, Dots, Update, check_update};
use crate::error::{Error, Result};

/// Most bytes of block sums that a recurrence keeps before it reduces them.
const SUMS: usize = 256 << 20;

/// Steps whose block sums are reduced together, an even number.
const GROUP: usize = 32;

/// Steps that are queued before their products are waited for.
const WAIT: usize = 1 << 15;

/// Rows from which on several steps share a launch; and up to how many where a thread has few rows under way: those of
/// packs that are wider than this, in bytes, and of cells of two orbitals.
const FEWEST_ROWS: usize = 1 << 16;
const MOST_ROWS: usize = 1 << 20;
const NARROW_PACK: usize = 8;

/// Up to how many such rows, and rows of chains and planes, of a part that has neighbours.
const MOST_LINKED_ROWS: usize = 1 << 21;

/// Most steps of a launch, an even number, and most bytes of vectors that they read as their input, half a second or
/// less: a launch cannot be interrupted.
const MOST_TOGETHER: usize = 256;
const MOST_ON_CHIP: usize = 4096;
const MOST_INPUT: usize = 1 << 39;

/// Fewest steps for which rows are brought to where they stay: of fewer, lattices that fill the chip take longer.
const FEWEST_STEPS: usize = 32;

impl CardMatrix {
    /// Steps of a recurrence, vectors changing places in between; with a link, each with its exchange.
    pub(super) fn steps(
        &self,
        mut link: Option<&mut CudaLink>,
        (alpha, beta): (f64, f64),
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
    ) -> Result<Vec<Dots>> {
        check_update(self, v, w, true)?;
        let (columns, (lane_type, lanes)) = (v.columns, self.lanes(v));
        if columns == 0 {
            return Ok((0..steps).map(|_| Dots::default()).collect());
        }
        let c = Update { alpha, beta, gamma: -1.0 };
        if link.is_none()
            && let Some(all) = self.steps_on_chip(c, v, w, steps)?
        {
            return Ok(all);
        }
        if let Some(launch) = self.several(v, steps, link.is_some())?
            && let Some(all) = self.steps_together(&launch, link.as_deref_mut(), c, (v, w), steps)?
        {
            return Ok(all);
        }
        let launch = self.launch(lane_type, lanes, self.kind(c, true))?;
        let blocks = launch.grid.0;
        let each = 16 * blocks as usize * lanes as usize;
        let group = (SUMS / each.max(1)).clamp(1, GROUP).min(steps.max(1));
        let sums = self.card.allocate(each * group)?;
        // Sums over the boundary, as many numbers a block as there are lanes.
        let edge = link.as_ref().map(|link| link.sums().1);
        let each_edge = 8 * edge.unwrap_or(0) as usize * lanes as usize;
        let edges = self.card.allocate(each_edge * group)?;
        // Both are written: what clones share is copied before anything is recorded.
        let (mut x, mut y) = (unique(&self.card, v)?.address, unique(&self.card, w)?.address);
        let mut queue = |link: &mut Option<&mut CudaLink>, count: usize| {
            (0..count).try_for_each(|step| {
                let vectors = UpdateArgument {
                    v: x,
                    w: y,
                    sums: sums.address + (step * each) as u64,
                    alpha: c.alpha,
                    beta: c.beta,
                    gamma: c.gamma,
                    lanes,
                    offset: self.rows.start as u64,
                };
                if let Some(link) = link {
                    link.queue_send(x)?;
                }
                self.pass(&launch, vectors)?;
                if let Some(link) = link {
                    link.queue_add(c.alpha, y, x, edges.address + (step * each_edge) as u64)?;
                }
                std::mem::swap(&mut x, &mut y);
                Ok(())
            })
        };
        // An even number of steps leaves the vectors where they were, so that the same launches serve again.
        let most = if edge.is_some() { LINKED_BOUND } else { LAUNCH_BOUND };
        let worth = group == GROUP && steps >= 4 * GROUP && v.bytes() <= most;
        let mut recorded = None;
        if worth && link.as_ref().is_none_or(|link| link.is_short()) {
            recorded = Some(Graph::record(&self.card, || queue(&mut link, GROUP))?);
            if let Some(link) = &mut link {
                link.count(-(GROUP as i32));
            }
        }
        let width = 2 * lanes as usize;
        let (mut done, mut all) = (0, Vec::with_capacity(steps));
        while done < steps {
            // Nothing is waited for within these steps.
            let now = WAIT.min(steps - done);
            let results = self.card.allocate(8 * width * now)?;
            let more = self.card.allocate(8 * lanes as usize * now)?;
            let mut queued = 0;
            while queued < now {
                let next = group.min(now - queued);
                match &mut recorded {
                    // SAFETY: as for the same launches one by one; vectors and sums are alive.
                    Some(graph) if next == GROUP => unsafe {
                        graph.replay()?;
                        if let Some(link) = &mut link {
                            link.count(GROUP as i32);
                        }
                    },
                    _ => queue(&mut link, next)?,
                }
                let out = results.address + (8 * width * queued) as u64;
                sums::reduce(&self.card, &sums, (blocks, next as u32), width, out)?;
                if let Some(blocks) = edge {
                    let out = more.address + (8 * lanes as usize * queued) as u64;
                    sums::reduce(&self.card, &edges, (blocks, next as u32), lanes as usize, out)?;
                }
                queued += next;
            }
            let mut numbers = self.card.download::<f64>(&results, width * now)?;
            if edge.is_some() {
                let more = self.card.download::<f64>(&more, lanes as usize * now)?;
                for (step, more) in numbers.chunks_mut(width).zip(more.chunks(lanes as usize)) {
                    step[lanes as usize..].iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
                }
            }
            all.extend(collect(&numbers, lanes, columns));
            done += now;
        }
        Ok(all)
    }
}

impl CardMatrix {
    /// The launch of several steps of a recurrence, linked to those of neighbours or not, where there is a kernel for
    /// them that is worth it.
    fn several(&self, v: &BlockVector, steps: usize, linked: bool) -> Result<Option<Launch>> {
        let (dtype, lanes) = self.lanes(v);
        let (pack, packs) = packs(dtype, lanes);
        let (rows, wide) = (self.rows.local, pack as usize * dtype.bytes() > NARROW_PACK);
        // With a neighbour, each step has launches of its exchange, too.
        let (fewest, most) = if linked { (1, MOST_LINKED_ROWS) } else { (FEWEST_ROWS, MOST_ROWS) };
        // Below, launches one by one are as fast; above, blocks of a launch of their own have more rows under way.
        let worth = match &self.argument {
            Argument::Straight(s) if s.is_deep() => !wide || rows <= most,
            Argument::Straight(_) => linked && rows <= most,
            Argument::Stencil(s) => s.blocks.is_some_and(|b| b.orbitals() == 4 || rows <= most),
            _ => false,
        };
        if !worth || packs != 1 || rows < fewest || steps < 2 || !self.card.gathers {
            return Ok(None);
        }
        self.launch(dtype, lanes, PassKind::Several { linked }).map(Some)
    }

    /// The steps of a recurrence with rows that stay on the chip; none where they do not fit.
    fn steps_on_chip(
        &self,
        c: Update,
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
    ) -> Result<Option<Vec<Dots>>> {
        let (card, (dtype, lanes)) = (&self.card, self.lanes(v));
        let (pack, packs) = packs(dtype, lanes);
        if packs != 1 || steps < FEWEST_STEPS || !card.gathers || self.rows.start != 0 {
            return Ok(None);
        }
        let (lattice, orbitals) = match &self.argument {
            Argument::Straight(straight) => (straight.on_chip(), 1),
            Argument::Stencil(stencil) => match &stencil.blocks {
                Some(blocks) => (blocks.on_chip(), blocks.orbitals()),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let Some((mut head, inner)) = lattice else { return Ok(None) };
        let (row, energy) = (lanes * dtype.bytes() as u32, if dtype.is_single() { 4 } else { 8 });
        let shape = CellShape { orbitals: orbitals as u32, row, energy };
        let Some(plan) = head.plan(&shape, pack, (card.processors, card.shared)) else { return Ok(None) };
        head.parts = plan.parts;
        let kernel = format!("onchip{orbitals}_{}_p{pack}{}", suffix(dtype), plan.suffix);
        let inboxes = card.allocate(plan.inboxes(&shape))?;
        // Numbers of steps begin with 1: no parcel is there.
        card.clear(&inboxes)?;
        let matrix: [u8; size_of::<OnChipHead>() + INNER] = head.with(inner);
        let (address, mut first) = (inboxes.address, 1u64);
        let shape = LaunchShape { blocks: plan.blocks(), threads: ON_CHIP, shared: plan.shared };
        self.in_launches(c, (v, w), steps, (shape.blocks, MOST_ON_CHIP), |vectors, count| {
            let arguments = arguments![matrix, vectors, count, first, address];
            // SAFETY: the kernel's arguments; the lattice was found to fit, the inboxes are as large as the plan says,
            // and the vectors were matched to the matrix.
            let taken = unsafe { card.launch_together(&kernel, shape, &arguments)? };
            first += u64::from(count);
            Ok(taken)
        })
    }

    /// The steps of a recurrence, many in a launch, after each of which all blocks meet; none where the GPU cannot hold
    /// them at once. With a link, rows pass to neighbours and from them within the launch.
    fn steps_together(
        &self,
        launch: &Launch,
        mut link: Option<&mut CudaLink>,
        c: Update,
        (v, w): (&mut BlockVector, &mut BlockVector),
        steps: usize,
    ) -> Result<Option<Vec<Dots>>> {
        let card = &self.card;
        let mut crossing = CrossingArgument::zeroed();
        if let Some(link) = &link {
            // The launch holds the GPU while it waits for neighbours, which may themselves wait for a program that a
            // server has put beside it.
            let Some(of_link) = link.crossing()?.filter(|_| !card.served) else { return Ok(None) };
            crossing = of_link;
        }
        // Blocks meet at this number.
        let met = card.upload(&[0u32])?;
        let (units, arrived) = (launch.units, met.address);
        let shape = LaunchShape { blocks: launch.grid.0, threads: launch.block, shared: 0 };
        self.in_launches(c, (v, w), steps, (shape.blocks, MOST_TOGETHER), |vectors, count| {
            macro_rules! launch {
                ($matrix:expr) => {{
                    let matrix = $matrix;
                    let arguments = arguments![matrix, units, vectors, count, arrived, crossing];
                    // SAFETY: as for one step; there is room for the sums of all, and the number is no one else's. The
                    // rows that pass were counted in vectors of this length, and the landings hold them.
                    unsafe { card.launch_together(&launch.kernel, shape, &arguments)? }
                }};
            }
            let taken = match &launch.argument {
                Argument::Straight(argument) => launch!(argument.bytes()),
                Argument::Blocks(argument) => launch!(argument.bytes()),
                _ => false,
            };
            if let Some(link) = link.as_deref_mut().filter(|_| taken) {
                link.count(count as i32);
                crossing.pass = crossing.pass.wrapping_add(count);
            }
            Ok(taken)
        })
    }

    /// Makes steps by launches of so many blocks, which `launch` queues for these vectors and a number of steps; none
    /// where it says that the GPU does not take them. A launch makes `most` steps, an even number, or fewer.
    fn in_launches(
        &self,
        c: Update,
        (v, w): (&mut BlockVector, &mut BlockVector),
        steps: usize,
        (blocks, most): (u32, usize),
        mut launch: impl FnMut(UpdateArgument, u32) -> Result<bool>,
    ) -> Result<Option<Vec<Dots>>> {
        let (card, columns, (_, lanes)) = (&self.card, v.columns, self.lanes(v));
        let width = 2 * lanes as usize;
        let each = 8 * blocks as usize * width;
        // An even number leaves the vectors where they were.
        let most = (SUMS / each).min(MOST_INPUT / v.bytes().max(1)).clamp(2, most) & !1;
        let sums = card.allocate(each * most.min(steps))?;
        let vectors = UpdateArgument {
            v: unique(card, v)?.address,
            w: unique(card, w)?.address,
            sums: sums.address,
            alpha: c.alpha,
            beta: c.beta,
            gamma: c.gamma,
            lanes,
            offset: self.rows.start as u64,
        };
        let mut all = Vec::with_capacity(steps);
        while all.len() < steps {
            let now = WAIT.min(steps - all.len());
            let results = card.allocate(8 * width * now)?;
            for queued in (0..now).step_by(most) {
                let count = most.min(now - queued) as u32;
                if !launch(vectors, count)? {
                    if all.is_empty() && queued == 0 {
                        return Ok(None);
                    }
                    return Err(Error::internal("the GPU has less room for blocks than it had"));
                }
                let out = results.address + (8 * width * queued) as u64;
                sums::reduce(card, &sums, (blocks, count), width, out)?;
            }
            all.extend(collect(&card.download::<f64>(&results, width * now)?, lanes, columns));
        }
        Ok(Some(all))
    }
}
