//! Walkers on the GPU: positions and inverse matrices stay there, and sweeps are queued without waiting for one another
//! (`kernels/walkers.cu`, `ahead.cu`, `groups.cu`, `inverse.cu`, `energies.cu`).

mod ahead;
mod derived;
mod energies;
mod expanded;
mod inverse;
mod layout;
mod schemes;

use std::collections::HashMap;
use std::sync::Arc;

use self::ahead::LookAheadRoom;
use self::derived::Derived;
use self::energies::EnergyRoom;
use self::expanded::Expanded;
use self::layout::{ControlArgument, Twist, WalkArgument, WaveMatrixArgument};
use self::schemes::{Grouped, TrialData};
use super::card::{Card, CardBuffer};
use super::graph::Graph;
use super::splines::{Evaluation, evaluation};
use super::{RESIDENT, THREADS, arguments};
use crate::backend::splines::Splines;
use crate::backend::walkers::{
    DeviceWalkers, EnergySpec, Proposal, Radial, Scheme, ScreenRule, Sweep, SweepResult, WalkerEnergies,
    WalkersSpec, no_number, on_node,
};
use crate::error::{Error, Result};

/// Electrons of one spin beyond which the kernels do not go, and matrices of all walkers.
const MOST_ELECTRONS: usize = 2048;
const MOST_MATRICES: usize = 65_535;

/// Columns of a panel when matrices are inverted.
const PANEL: u32 = 32;

/// Bytes of the lists of rows that a panel's strips of 4 columns at least exchange: a count and twice 16 numbers each.
const MOVES: usize = PANEL as usize / 4 * 33 * 4;

/// Columns of a tile of a product, and electrons that are decided together.
const EDGE: u32 = 64;

/// Warps of a block that takes an electron a warp.
const WARPS: u32 = 8;

/// Electrons of one spin.
struct Spin {
    n: u32,
    first: u32,
    /// Determinants.
    fillings: u32,
    /// Which orbitals each of them fills, one after the other.
    filling: CardBuffer,
    /// `(A^-1)^T` of every determinant and walker.
    inverse: CardBuffer,
}

/// Room for matrices; of one spin at a time.
struct SpinRoom {
    rows: CardBuffer,
    m: CardBuffer,
    /// Panels of as many columns as a sweep or an inversion takes.
    x: CardBuffer,
    left: CardBuffer,
    old: CardBuffer,
    ratios: CardBuffer,
    row: CardBuffer,
    pivots: CardBuffer,
    diagonal: CardBuffer,
    /// Rows that are exchanged, for the strips of a panel.
    moves: CardBuffer,
    order: CardBuffer,
}

/// What tells apart sweeps that are recorded one by one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct SweepKey {
    scheme: Scheme,
    group: Option<(usize, ScreenRule)>,
    drift: bool,
}

impl SweepKey {
    fn of(sweep: &Sweep) -> SweepKey {
        let grouped = sweep.scheme == Scheme::DelayedAcceptance;
        let group = grouped.then_some((sweep.group, sweep.screen));
        SweepKey { scheme: sweep.scheme, group, drift: sweep.drift }
    }
}

/// The walkers of a wave function and all that sweeps and energies need, on one GPU.
struct CudaWalkers {
    card: Arc<Card>,
    walk: WalkArgument,
    /// What `walk` points to.
    positions: CardBuffer,
    control: CardBuffer,
    _held: Vec<CardBuffer>,
    complex: bool,
    k: Twist,
    cell: WaveMatrixArgument,
    spins: [Spin; 2],
    /// The sum of determinants that decides.
    sum: Expanded,
    scratch: SpinRoom,
    moves: Box<dyn Evaluation>,
    /// The table of energies, and whether it is the one of decisions.
    table: Arc<dyn Splines>,
    shared: bool,
    pass: usize,
    ahead: Option<LookAheadRoom>,
    whole: Option<TrialData>,
    grouped: Option<Grouped>,
    derived: Option<Derived>,
    energy_room: Option<EnergyRoom>,
    /// Whether the determinants are known, as sweeps of whole configurations keep them.
    settled: bool,
    /// Sweeps as recorded, with or without drift; the first of a kind is queued launch by launch,
    /// which loads its kernels.
    graphs: HashMap<SweepKey, Option<Graph>>,
}

/// Walkers of a wave function, or None where the kernels do not take it.
pub(super) fn prepare(card: &Arc<Card>, spec: WalkersSpec) -> Result<Option<Box<dyn DeviceWalkers>>> {
    let table = spec.orbitals.clone();
    let sizes = sizes(&spec);
    let (walkers, electrons) = (spec.positions.len(), sizes[0] + sizes[1]);
    let matrices = walkers * (spec.fillings[0].len() + spec.fillings[1].len());
    let most = layout::COEFFICIENTS;
    let long = |r: &Radial| matches!(r, Radial::Polynomial { coefficients, .. } if coefficients.len() > most);
    let fits = walkers > 0
        && matrices <= MOST_MATRICES
        && electrons > 0
        && sizes.iter().all(|n| *n <= MOST_ELECTRONS)
        && spec.images.faces.len() <= layout::FACES
        && !spec.pairs.iter().flatten().chain(spec.bodies.iter().map(|b| &b.1)).any(long);
    let energies = spec.energies.clone().unwrap_or_else(|| table.clone());
    let lanes = |l: usize| (l + 1) * if spec.complex { 2 } else { 1 };
    let filled = || spec.fillings.iter().flatten().flatten();
    let missing = |t: &dyn Splines| filled().any(|l| lanes(*l) > t.shape().lanes);
    // The other table must live on a GPU as well.
    if !fits || evaluation(&*energies, 1, 1)?.is_none() || missing(&*table) || missing(&*energies) {
        return Ok(None);
    }
    let Some(moves) = evaluation(&*table, walkers * electrons, 1)? else { return Ok(None) };
    let mut resident = CudaWalkers::new(card, moves, energies, spec)?;
    resident.start()?;
    Ok(Some(Box::new(resident)))
}

/// Electrons of either spin.
fn sizes(spec: &WalkersSpec) -> [usize; 2] {
    [0, 1].map(|s| spec.fillings[s].first().map_or(0, Vec::len))
}

impl CudaWalkers {
    fn new(
        card: &Arc<Card>,
        moves: Box<dyn Evaluation>,
        table: Arc<dyn Splines>,
        spec: WalkersSpec,
    ) -> Result<CudaWalkers> {
        let walkers = spec.positions.len();
        let sizes = sizes(&spec);
        let electrons = sizes[0] + sizes[1];
        let all = walkers * electrons;
        let number = if spec.complex { 16 } else { 8 };
        let flat: Vec<[f64; 3]> = spec.positions.iter().flatten().copied().collect();
        let positions = card.upload(&flat)?;
        let trial = card.allocate(all * 24)?;
        let (change, bias) = (card.allocate(all * 8)?, card.allocate(all * 8)?);
        let moved = card.allocate(all * 4)?;
        let control = card.upload(&[ControlArgument::default()])?;
        let images = card.upload(&[layout::images(&spec.images)])?;
        let mut radials: Vec<layout::RadialArgument> =
            spec.pairs.iter().flatten().map(layout::RadialArgument::new).collect();
        radials.extend(spec.bodies.iter().map(|b| layout::RadialArgument::new(&b.1)));
        let centres: Vec<[f64; 3]> = spec.bodies.iter().map(|b| b.0).collect();
        let (radials, centres) = (card.upload(&radials)?, card.upload(&centres)?);
        let mut walk = WalkArgument {
            positions: positions.address,
            trial: trial.address,
            points: moves.points(),
            change: change.address,
            bias: bias.address,
            moved: moved.address,
            delta: 0,
            control: control.address,
            images: images.address,
            radials: radials.address,
            centres: centres.address,
            table: 0,
            reach: 0.0,
            seed: spec.seed,
            first: spec.first,
            walkers: walkers as u32,
            electrons: electrons as u32,
            up: sizes[0] as u32,
            pairs: spec.pairs.len() as u32,
            bodies: spec.bodies.len() as u32,
        };
        let mut held = vec![trial, change, bias, moved, images, radials, centres];
        held.extend(ahead::tabulate(card, &spec.pairs, &mut walk)?);
        let spin = |s: usize| -> Result<Spin> {
            let filling: Vec<u32> = spec.fillings[s].iter().flatten().map(|l| *l as u32).collect();
            let (n, fillings) = (sizes[s], spec.fillings[s].len());
            Ok(Spin {
                n: n as u32,
                first: (s * sizes[0]) as u32,
                fillings: fillings as u32,
                filling: card.upload(&filling)?,
                inverse: card.allocate(fillings * walkers * n * n * number)?,
            })
        };
        let n = sizes[0].max(sizes[1]);
        let matrices = walkers * spec.fillings[0].len().max(spec.fillings[1].len());
        let strip = || card.allocate(matrices * ahead::wide(n as u32) as usize * n * number);
        let scratch = SpinRoom {
            rows: card.allocate(matrices * n * n * number)?,
            m: card.allocate(matrices * n * n * number)?,
            x: strip()?,
            left: strip()?,
            old: strip()?,
            ratios: card.allocate(matrices * n * number)?,
            row: card.allocate(matrices * n * number)?,
            pivots: card.allocate(matrices * n * 4)?,
            diagonal: card.allocate(matrices * n * number)?,
            moves: card.allocate(matrices * MOVES)?,
            order: card.allocate(matrices * n * 4)?,
        };
        Ok(CudaWalkers {
            card: card.clone(),
            walk,
            positions,
            control,
            _held: held,
            complex: spec.complex,
            k: Twist(spec.k),
            cell: WaveMatrixArgument(spec.inverse),
            spins: [spin(0)?, spin(1)?],
            sum: Expanded::new(card, &spec, walkers)?,
            scratch,
            moves,
            shared: spec.energies.is_none(),
            table,
            pass: spec.pass,
            ahead: None,
            whole: None,
            grouped: None,
            derived: None,
            energy_room: None,
            settled: false,
            graphs: HashMap::new(),
        })
    }

    /// The first inverse matrices.
    fn start(&mut self) -> Result<()> {
        self.set(ControlArgument::default())?;
        self.invert_all()?;
        self.told("the start of walkers").map(|_| ())
    }

    fn set(&self, control: ControlArgument) -> Result<()> {
        self.card.overwrite(&self.control, &[control])
    }

    /// What the kernels have told since.
    fn told(&self, what: &str) -> Result<ControlArgument> {
        let control = self.card.download::<ControlArgument>(&self.control, 1)?[0];
        match control.failed {
            0 => Ok(control),
            layout::NO_NUMBER => Err(no_number()),
            layout::ON_NODE => Err(on_node(what)),
            other => Err(Error::internal(format!("{what}: the kernels of walkers failed by {other}"))),
        }
    }

    /// Bytes of a number of the wave function.
    fn number(&self) -> usize {
        if self.complex { 16 } else { 8 }
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

    /// Writes the points where electrons are, or their trial points, for an evaluation of some walkers.
    fn places(&self, walk: WalkArgument, trial: bool) -> Result<()> {
        let blocks = self.blocks(walk.walkers as usize * walk.electrons as usize);
        let trial = u32::from(trial);
        // SAFETY: the kernel's arguments.
        unsafe { self.card.launch("walk_places", (blocks, 1), THREADS, &arguments![walk, trial]) }
    }

    /// Orbitals of `count` electrons of a spin from `own` on at the points of `walk`,
    /// as rows (or as columns) of every matrix.
    #[expect(clippy::too_many_arguments, reason = "the kernel's")]
    fn rows(
        &self,
        what: &str,
        from: &dyn Evaluation,
        walk: WalkArgument,
        spin: &Spin,
        own: u32,
        count: u32,
        to: &CardBuffer,
    ) -> Result<()> {
        let (plane, lanes, filling) = (from.out(), from.lanes(), spin.filling.address);
        let walk = WalkArgument { points: from.points(), ..walk };
        let (first, n, fillings) = (spin.first + own, spin.n, spin.fillings);
        let (k, out) = (self.k, to.address);
        let numbers = walk.walkers as usize * fillings as usize * count as usize * n as usize;
        let name = format!("walk_{what}_{}", from.name());
        let arguments = arguments![plane, lanes, walk, first, count, n, filling, fillings, k, out];
        // SAFETY: the kernel's arguments; `to` has room for as many rows, the plane holds all electrons.
        unsafe { self.launch(&name, (self.blocks(numbers), 1), THREADS, &arguments) }
    }

    /// Rows of large tiles that cover so many rows of a matrix.
    fn tall(&self, rows: u32) -> u32 {
        rows.div_ceil(if self.complex { EDGE } else { 2 * EDGE })
    }

    /// Matrices of a spin's electrons in all walkers.
    fn matrices(&self, spin: &Spin) -> u32 {
        spin.fillings * self.walk.walkers
    }

    /// Spins with electrons, and which they are.
    fn filled(&self) -> impl Iterator<Item = (u32, &Spin)> {
        (0..).zip(&self.spins).filter(|(_, spin)| spin.n > 0)
    }

    /// Makes room for what a sweep needs: not while it is recorded.
    fn provide(&mut self, sweep: &Sweep) -> Result<()> {
        if sweep.drift {
            self.derive()?;
        }
        match sweep.scheme {
            Scheme::LookAhead if self.ahead.is_none() => self.ahead = Some(LookAheadRoom::new(self)?),
            Scheme::Configuration => {
                if self.whole.is_none() {
                    self.whole = Some(TrialData::new(self)?);
                }
                if !self.settled {
                    self.invert_all()?;
                    self.shares(&self.sum, self.walk.walkers, &self.control)?;
                }
            }
            Scheme::DelayedAcceptance if self.grouped.is_none() => {
                self.grouped = Some(Grouped::new(self)?);
            }
            _ => {}
        }
        self.settled = sweep.scheme == Scheme::Configuration;
        Ok(())
    }

    fn queue(&self, sweep: &Sweep) -> Result<()> {
        self.trial(sweep.drift)?;
        match sweep.scheme {
            Scheme::LookAhead => self.look_ahead()?,
            Scheme::ParticleByParticle => self.one_by_one()?,
            Scheme::QuasiSimultaneous => self.all_at_once()?,
            Scheme::Configuration => self.as_a_whole()?,
            Scheme::DelayedAcceptance => self.by_groups(sweep.group as u32, sweep.screen)?,
        }
        let walk = self.walk;
        // SAFETY: the kernel's argument.
        unsafe { self.card.launch("walk_next", (1, 1), 1, &arguments![walk]) }
    }
}

impl DeviceWalkers for CudaWalkers {
    fn sweeps(
        &mut self,
        sweep: &Sweep,
        from: u64,
        count: u64,
        fresh: u64,
    ) -> Result<SweepResult<Vec<[f64; 3]>>> {
        let uniform = u64::from(sweep.proposal == Proposal::Uniform);
        self.set(ControlArgument { sweep: from, step: sweep.step, uniform, ..ControlArgument::default() })?;
        let kind = SweepKey::of(sweep);
        self.provide(sweep)?;
        for number in from..from + count {
            match self.graphs.get_mut(&kind) {
                // SAFETY: all that the recorded launches touch is held by this.
                Some(Some(graph)) => unsafe { graph.replay()? },
                Some(None) => {
                    let mut graph = Graph::record(&self.card, || self.queue(sweep))?;
                    // SAFETY: as above.
                    unsafe { graph.replay()? };
                    self.graphs.insert(kind, Some(graph));
                }
                None => {
                    self.queue(sweep)?;
                    self.graphs.insert(kind, None);
                }
            }
            if (number + 1).is_multiple_of(fresh) {
                self.renew()?;
            }
        }
        let told = self.told("quasi-simultaneous moves")?;
        let electrons = self.walk.electrons as usize;
        let flat: Vec<[f64; 3]> =
            self.card.download(&self.positions, self.walk.walkers as usize * electrons)?;
        let places = flat.chunks_exact(electrons).map(<[_]>::to_vec).collect();
        Ok(SweepResult { places, moved: told.moved, error: f64::from_bits(told.error) })
    }

    fn refresh(&mut self) -> Result<f64> {
        self.set(ControlArgument::default())?;
        self.renew()?;
        Ok(f64::from_bits(self.told("the last moves")?.error))
    }

    fn energies(&mut self, spec: &EnergySpec) -> Result<Vec<WalkerEnergies>> {
        self.local_energies(spec)
    }

    fn product(&mut self) -> Result<()> {
        self.filled().take(1).try_for_each(|(_, spin)| self.multiply(spin))
    }
}
