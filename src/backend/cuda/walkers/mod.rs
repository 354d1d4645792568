//! Walkers on the GPU: positions and inverse matrices stay there, and sweeps are queued without waiting for one another
//! (`kernels/walkers.cu`, `inverse.cu`, `energies.cu`).

mod energies;
mod inverse;
mod layout;

use std::collections::HashMap;
use std::sync::Arc;

use self::energies::Prepared;
use self::layout::{Control, Twist, Walk};
use super::card::{Buffer, Card};
use super::graph::Graph;
use super::splines::{Evaluation, evaluation};
use super::{RESIDENT, THREADS, arguments};
use crate::backend::splines::Splines;
use crate::backend::walkers::{
    DeviceWalkers, Energies, EnergySpec, Order, Outcome, Radial, Sweeps, WalkersSpec,
};
use crate::error::{Error, Result};

/// Electrons of one spin beyond which the kernels do not go, and walkers.
const MOST_ELECTRONS: usize = 2048;
const MOST_WALKERS: usize = 65_535;

/// Columns of a panel when matrices are inverted.
const PANEL: u32 = 32;

/// Bytes of the lists of rows that a panel's strips of 8 columns exchange: a count and twice 16 numbers each.
const MOVES: usize = PANEL as usize / 8 * 33 * 4;

/// Rows and columns of a tile of a product.
const EDGE: u32 = 64;

/// Warps of a block that takes an electron a warp.
const WARPS: u32 = 8;

/// Electrons of one spin.
struct Spin {
    n: u32,
    first: u32,
    filling: Buffer,
    /// `(A^-1)^T` of every walker.
    inverse: Buffer,
}

/// Room for what a sweep needs; of one spin at a time.
struct Scratch {
    rows: Buffer,
    m: Buffer,
    x: Buffer,
    left: Buffer,
    old: Buffer,
    inner: Buffer,
    ratios: Buffer,
    row: Buffer,
    pivots: Buffer,
    /// Rows that are exchanged, for the strips of a panel.
    moves: Buffer,
    order: Buffer,
}

struct Resident {
    card: Arc<Card>,
    walk: Walk,
    /// What `walk` points to.
    positions: Buffer,
    control: Buffer,
    _held: Vec<Buffer>,
    complex: bool,
    k: Twist,
    cell: [f64; 9],
    spins: [Spin; 2],
    scratch: Scratch,
    moves: Box<dyn Evaluation>,
    /// The table of energies, and whether it is the one of decisions.
    table: Arc<dyn Splines>,
    shared: bool,
    prepared: Option<Prepared>,
    /// Sweeps as recorded; the first of a kind is queued launch by launch, which loads its kernels.
    graphs: HashMap<Order, Option<Graph>>,
}

/// Walkers of a wave function, or None where the kernels do not take it.
pub(super) fn prepare(
    card: &Arc<Card>,
    table: Arc<dyn Splines>,
    spec: WalkersSpec,
) -> Result<Option<Box<dyn DeviceWalkers>>> {
    let sizes = [spec.fillings[0].len(), spec.fillings[1].len()];
    let (walkers, electrons) = (spec.positions.len(), sizes[0] + sizes[1]);
    let long = |r: &Radial| matches!(r, Radial::Polynomial(_, c) if c.len() > layout::COEFFICIENTS);
    let fits = (1..=MOST_WALKERS).contains(&walkers)
        && electrons > 0
        && sizes.iter().all(|n| *n <= MOST_ELECTRONS)
        && spec.images.faces.len() <= layout::FACES
        && !spec.pairs.iter().flatten().chain(spec.bodies.iter().map(|b| &b.1)).any(long);
    let Some(moves) = evaluation(&*table, walkers * electrons, 1)? else { return Ok(None) };
    let energies = spec.energies.clone().unwrap_or_else(|| table.clone());
    let lanes = |l: usize| (l + 1) * if spec.complex { 2 } else { 1 };
    let missing = |t: &dyn Splines| spec.fillings.iter().flatten().any(|l| lanes(*l) > t.shape().lanes);
    // The other table must live on a GPU as well.
    let elsewhere = evaluation(&*energies, 1, 1)?.is_none();
    if !fits || elsewhere || missing(&*table) || missing(&*energies) {
        return Ok(None);
    }
    let mut resident = Resident::new(card, moves, energies, spec)?;
    resident.start()?;
    Ok(Some(Box::new(resident)))
}

impl Resident {
    fn new(
        card: &Arc<Card>,
        moves: Box<dyn Evaluation>,
        table: Arc<dyn Splines>,
        spec: WalkersSpec,
    ) -> Result<Resident> {
        let walkers = spec.positions.len();
        let sizes = [spec.fillings[0].len(), spec.fillings[1].len()];
        let electrons = sizes[0] + sizes[1];
        let all = walkers * electrons;
        let number = if spec.complex { 16 } else { 8 };
        let block = block(spec.complex) as usize;
        let flat: Vec<[f64; 3]> = spec.positions.iter().flatten().copied().collect();
        let positions = card.upload(&flat)?;
        let (before, trial) = (card.allocate(all * 24)?, card.allocate(all * 24)?);
        let (change, moved) = (card.allocate(all * 8)?, card.allocate(all * 4)?);
        let delta = card.allocate(if spec.pairs.is_empty() { 8 } else { all * block * 8 })?;
        let control = card.upload(&[Control::default()])?;
        let images = card.upload(&[layout::images(&spec.images)])?;
        let mut radials: Vec<layout::Function> =
            spec.pairs.iter().flatten().map(layout::Function::new).collect();
        radials.extend(spec.bodies.iter().map(|b| layout::Function::new(&b.1)));
        let centres: Vec<[f64; 3]> = spec.bodies.iter().map(|b| b.0).collect();
        let (radials, centres) = (card.upload(&radials)?, card.upload(&centres)?);
        card.clear(&change)?;
        let walk = Walk {
            positions: positions.address,
            before: before.address,
            trial: trial.address,
            points: moves.points(),
            change: change.address,
            moved: moved.address,
            delta: delta.address,
            control: control.address,
            images: images.address,
            radials: radials.address,
            centres: centres.address,
            seed: spec.seed,
            first: spec.first,
            walkers: walkers as u32,
            electrons: electrons as u32,
            up: sizes[0] as u32,
            pairs: spec.pairs.len() as u32,
            bodies: spec.bodies.len() as u32,
        };
        let spin = |s: usize| -> Result<Spin> {
            let filling: Vec<u32> = spec.fillings[s].iter().map(|l| *l as u32).collect();
            let n = sizes[s];
            Ok(Spin {
                n: n as u32,
                first: (s * sizes[0]) as u32,
                filling: card.upload(&filling)?,
                inverse: card.allocate(walkers * n * n * number)?,
            })
        };
        let n = sizes[0].max(sizes[1]);
        let strip = || card.allocate(walkers * block.max(PANEL as usize) * n * number);
        let scratch = Scratch {
            rows: card.allocate(walkers * n * n * number)?,
            m: card.allocate(walkers * n * n * number)?,
            x: strip()?,
            left: strip()?,
            old: strip()?,
            inner: card.allocate(walkers * block * block * number)?,
            ratios: card.allocate(walkers * n * number)?,
            row: card.allocate(walkers * n * number)?,
            pivots: card.allocate(walkers * n * 4)?,
            moves: card.allocate(walkers * MOVES)?,
            order: card.allocate(walkers * n * 4)?,
        };
        Ok(Resident {
            card: card.clone(),
            walk,
            positions,
            control,
            _held: vec![before, trial, change, moved, delta, images, radials, centres],
            complex: spec.complex,
            k: Twist(spec.k),
            cell: bytemuck::cast(spec.inverse),
            spins: [spin(0)?, spin(1)?],
            scratch,
            moves,
            shared: spec.energies.is_none(),
            table,
            prepared: None,
            graphs: HashMap::new(),
        })
    }

    /// The first inverse matrices.
    fn start(&mut self) -> Result<()> {
        self.set(Control::default())?;
        self.invert_all()?;
        self.told("the start of walkers").map(|_| ())
    }

    fn set(&self, control: Control) -> Result<()> {
        self.card.overwrite(&self.control, &[control])
    }

    /// What the kernels have told since.
    fn told(&self, what: &str) -> Result<Control> {
        let control = self.card.download::<Control>(&self.control, 1)?[0];
        match control.failed {
            0 => Ok(control),
            1 => Err(Error::numeric("the wave function is not a number (NaN) at a trial point")
                .hint("look for NaN among the coefficients of the orbitals and the Jastrow parameters")),
            _ => Err(Error::numeric(format!(
                "{what} put the electrons of a walker on a node of the wave function"
            ))
            .hint("an exact scheme, \"look-ahead\" say, cannot get there; or take a smaller step")),
        }
    }

    fn jastrow(&self) -> bool {
        self.walk.pairs + self.walk.bodies > 0
    }

    /// The suffix of kernels for the wave function's numbers.
    fn scalar(&self) -> &'static str {
        if self.complex { "c64" } else { "f64" }
    }

    /// Queues a kernel whose name ends in that of the wave function's numbers.
    ///
    /// # Safety
    /// As [`Card::launch`].
    unsafe fn launch(
        &self,
        name: &str,
        grid: (u32, u32),
        threads: u32,
        arguments: &[*mut std::ffi::c_void],
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.card.launch(&format!("{name}_{}", self.scalar()), grid, threads, arguments) }
    }

    /// Blocks for a kernel that walks `count` numbers.
    fn blocks(&self, count: usize) -> u32 {
        count.div_ceil(THREADS as usize).clamp(1, (self.card.processors * RESIDENT) as usize) as u32
    }

    /// Queues one of the kernels that take all electrons of all walkers.
    fn over_electrons(&self, name: &str) -> Result<()> {
        self.over_electrons_at(name, self.walk)
    }

    /// The same with points of another evaluation.
    fn over_electrons_at(&self, name: &str, walk: Walk) -> Result<()> {
        let blocks = self.blocks(walk.walkers as usize * walk.electrons as usize);
        // SAFETY: the kernels' argument.
        unsafe { self.card.launch(name, (blocks, 1), THREADS, &arguments![walk]) }
    }

    /// Orbitals of `count` electrons of a spin from `own` on, as rows (or as columns) of every walker.
    fn rows(
        &self,
        what: &str,
        from: &dyn Evaluation,
        spin: &Spin,
        own: u32,
        count: u32,
        to: &Buffer,
    ) -> Result<()> {
        let (plane, lanes, filling) = (from.out(), from.lanes(), spin.filling.address);
        let walk = Walk { points: from.points(), ..self.walk };
        let (first, n, k, out) = (spin.first + own, spin.n, self.k, to.address);
        let blocks = self.blocks(walk.walkers as usize * count as usize * n as usize);
        let name = format!("walk_{what}_{}", from.name());
        let arguments = arguments![plane, lanes, walk, first, count, n, filling, k, out];
        // SAFETY: the kernel's arguments; `to` has room for as many rows, the plane holds all electrons.
        unsafe { self.launch(&name, (blocks, 1), THREADS, &arguments) }
    }

    /// Changes of J of a spin's electrons, with what the others of their block add.
    fn changes(&self, spin: &Spin, block: u32) -> Result<()> {
        let (walk, first, n) = (self.walk, spin.first, spin.n);
        let grid = (n.div_ceil(WARPS), walk.walkers);
        let arguments = arguments![walk, first, n, block];
        // SAFETY: the kernel's arguments.
        unsafe { self.card.launch("walk_change", grid, THREADS, &arguments) }
    }

    /// Queues a sweep.
    fn queue(&self, order: Order) -> Result<()> {
        self.over_electrons("walk_trial")?;
        match order {
            Order::LookAhead => self.look_ahead()?,
            Order::ParticleByParticle => self.one_by_one()?,
            Order::QuasiSimultaneous => self.all_at_once()?,
        }
        let walk = self.walk;
        // SAFETY: the kernel's argument.
        unsafe { self.card.launch("walk_next", (1, 1), 1, &arguments![walk]) }
    }

    fn look_ahead(&self) -> Result<()> {
        self.moves.values()?;
        let block = block(self.complex);
        let s = &self.scratch;
        let (m, inner) = (s.m.address, s.inner.address);
        let (x, left, old) = (s.x.address, s.left.address, s.old.address);
        let walk = self.walk;
        for spin in self.spins.iter().filter(|spin| spin.n > 0) {
            let (n, first, inverse) = (spin.n, spin.first, spin.inverse.address);
            if self.jastrow() {
                self.changes(spin, block)?;
            }
            self.rows("rows", &*self.moves, spin, 0, n, &s.rows)?;
            self.multiply(spin)?;
            let tiles = n.div_ceil(EDGE);
            // SAFETY: of all launches, the kernel's arguments; matrices are n x n, strips `block` x n, of every walker.
            unsafe {
                for begin in (0..n).step_by(block as usize) {
                    let arguments = arguments![walk, m, n, first, begin, inner];
                    self.launch("walk_decide", (walk.walkers, 1), THREADS, &arguments)?;
                    let rest = n - (begin + block).min(n);
                    let corrections = if walk.pairs > 0 { rest.div_ceil(WARPS) } else { 0 };
                    let grid = (2 * tiles + corrections, walk.walkers);
                    let arguments = arguments![walk, m, inverse, inner, x, left, old, n, first, begin];
                    self.launch("walk_panel", grid, THREADS, &arguments)?;
                    let grid = ((rest.div_ceil(EDGE) + tiles) * tiles, walk.walkers);
                    let arguments = arguments![m, inverse, x, left, old, n, begin];
                    self.launch("walk_update", grid, THREADS, &arguments)?;
                }
            }
        }
        Ok(())
    }

    /// `M = Phi A^-1` of a spin's electrons, from the rows of Phi.
    fn multiply(&self, spin: &Spin) -> Result<()> {
        let (rows, m) = (self.scratch.rows.address, self.scratch.m.address);
        let (n, inverse) = (spin.n, spin.inverse.address);
        let tiles = n.div_ceil(EDGE);
        let grid = (tiles * tiles, self.walk.walkers);
        // SAFETY: the kernel's arguments; matrices are n x n, of every walker.
        unsafe { self.launch("walk_product", grid, THREADS, &arguments![rows, inverse, n, m]) }
    }

    fn one_by_one(&self) -> Result<()> {
        self.moves.locate()?;
        let s = &self.scratch;
        let (row, ratios, u) = (s.rows.address, s.ratios.address, s.row.address);
        let walk = self.walk;
        for spin in &self.spins {
            let (n, first, inverse) = (spin.n, spin.first, spin.inverse.address);
            for own in 0..n {
                self.moves.values_of((first + own) * walk.walkers, walk.walkers)?;
                self.rows("rows", &*self.moves, spin, own, 1, &s.rows)?;
                let grid = (n.div_ceil(WARPS), walk.walkers);
                // SAFETY: of all launches, the kernel's arguments; a row of n numbers for every walker.
                unsafe {
                    self.launch("walk_ratios", grid, THREADS, &arguments![row, inverse, n, ratios])?;
                    let arguments = arguments![walk, ratios, inverse, n, first, own, u];
                    self.launch("walk_one", (walk.walkers, 1), THREADS, &arguments)?;
                    let arguments = arguments![walk, ratios, u, n, first, own, inverse];
                    self.launch("walk_rank", (n, walk.walkers), THREADS, &arguments)?;
                }
            }
        }
        Ok(())
    }

    fn all_at_once(&self) -> Result<()> {
        self.moves.values()?;
        if self.jastrow() {
            for spin in self.spins.iter().filter(|spin| spin.n > 0) {
                self.changes(spin, 0)?;
            }
        }
        let (walk, rows) = (self.walk, self.scratch.rows.address);
        for spin in self.spins.iter().filter(|spin| spin.n > 0) {
            let (n, first, inverse) = (spin.n, spin.first, spin.inverse.address);
            self.rows("rows", &*self.moves, spin, 0, n, &self.scratch.rows)?;
            let grid = (n.div_ceil(WARPS), walk.walkers);
            // SAFETY: the kernel's arguments.
            unsafe { self.launch("walk_all", grid, THREADS, &arguments![walk, rows, inverse, n, first])? };
        }
        self.invert_all()
    }
}

/// Electrons that are decided before the matrices learn of them; as in `kernels/walkers.cu`.
fn block(complex: bool) -> u32 {
    if complex { 32 } else { 64 }
}

impl DeviceWalkers for Resident {
    fn sweeps(&mut self, sweeps: Sweeps) -> Result<Outcome> {
        let uniform = u64::from(sweeps.uniform);
        self.set(Control { sweep: sweeps.from, step: sweeps.step, uniform, ..Control::default() })?;
        for number in sweeps.from..sweeps.from + sweeps.count {
            match self.graphs.get_mut(&sweeps.order) {
                // SAFETY: all that the recorded launches touch is held by this.
                Some(Some(graph)) => unsafe { graph.replay()? },
                Some(None) => {
                    let mut graph = Graph::record(&self.card, || self.queue(sweeps.order))?;
                    // SAFETY: as above.
                    unsafe { graph.replay()? };
                    self.graphs.insert(sweeps.order, Some(graph));
                }
                None => {
                    self.queue(sweeps.order)?;
                    self.graphs.insert(sweeps.order, None);
                }
            }
            if (number + 1).is_multiple_of(sweeps.fresh) {
                self.renew()?;
            }
        }
        let told = self.told("quasi-simultaneous moves")?;
        let electrons = self.walk.electrons as usize;
        let flat: Vec<[f64; 3]> =
            self.card.download(&self.positions, self.walk.walkers as usize * electrons)?;
        let positions = flat.chunks_exact(electrons).map(<[_]>::to_vec).collect();
        Ok(Outcome { positions, moved: told.moved, error: f64::from_bits(told.error) })
    }

    fn refresh(&mut self) -> Result<f64> {
        self.set(Control::default())?;
        self.renew()?;
        Ok(f64::from_bits(self.told("the last moves")?.error))
    }

    fn energies(&mut self, spec: &EnergySpec) -> Result<Vec<Energies>> {
        self.local_energies(spec)
    }

    fn product(&mut self) -> Result<()> {
        self.spins.iter().filter(|spin| spin.n > 0).take(1).try_for_each(|spin| self.multiply(spin))
    }
}
