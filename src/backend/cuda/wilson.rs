//! The Wilson-Dirac operator on the GPU, and the order of spinors there: 32 neighbouring sites together, component by
//! component, columns fastest. It is an order of rows alone, so that block algebra need not know it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::{Pod, Zeroable};

use super::card::{Card, CardBuffer};
use super::faces::{CrossingShare, FacesLink};
use super::ledger::Ledger;
use super::{RESIDENT, THREADS, algebra, arguments, buffer, faces, sides, unique};
use crate::backend::exchange::{Link, PassExtras, PendingProducts, VectorShape};
use crate::backend::matrix::wilson::{COMPONENTS, Compression, Face, SiteParity, WilsonSpec, site_factors};
use crate::backend::{
    BlockVector, Dots, Grid, Kernel, KernelInfo, KernelShape, Rows, Update, check_update, conformal,
};
use crate::error::{Error, Result};
use crate::number::DType;

/// Sites that lie together; see `kernels/wilson.cuh`.
const GROUP: usize = 32;

/// Vectors that one pass may add.
const MOST_ADDED: usize = 4;

/// Threads of a block, and of one where there are so few sites that there would not be [`BLOCKS`] on every
/// multiprocessor.
const BLOCK: usize = 128;
const SMALL_BLOCK: usize = 64;
const BLOCKS: usize = 4;

/// Bytes of spinors and links of the slabs that are walked along the fourth direction, on both sides of the chip: with
/// those before and behind they shall find room in the second cache of the GPU.
const SLABS: usize = 14 << 20;

/// Rounds of [`BLOCKS`] on every multiprocessor from which on blocks ask which sites are theirs, which takes a while.
const ROUNDS: usize = 2;

/// The largest share of a site's own spinor, of its neighbours', that sums over hops may start with.
const OWN: f64 = 1e15;

/// Where a row of the host stands on the GPU.
pub(super) fn place(grid: &Grid, row: usize) -> usize {
    let (site, component) = (row / grid.per_site, row % grid.per_site);
    let (group, lane) = (site / GROUP, site % GROUP);
    let width = GROUP.min(grid.sites() - group * GROUP);
    group * GROUP * grid.per_site + component * width + lane
}

/// A number below 2^31 that the kernels divide by.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Divisor {
    factor: u32,
    shift: u32,
}

impl Divisor {
    fn by(n: u32) -> Divisor {
        let shift = n.max(1).next_power_of_two().trailing_zeros();
        Divisor { factor: (1u64 << (31 + shift)).div_ceil(u64::from(n.max(1))) as u32, shift }
    }
}

/// The argument of the kernels, as `kernels/hops.cuh` explains it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct WilsonArgument {
    links: u64,
    v: u64,
    w: u64,
    plus: [u64; MOST_ADDED],
    factor: [f64; MOST_ADDED],
    alpha: f64,
    gamma: f64,
    start: [f64; 2],
    sign: [f64; 4],
    dims: [u32; 4],
    sites: u32,
    columns: u32,
    added: u32,
    gamma5: u32,
    adjoint: u32,
    parity: u32,
    by_dims: [Divisor; 3],
    by_columns: Divisor,
    backwards: u32,
    paired: u32,
    side: u32,
    across: u32,
    slab: u32,
    slice: u32,
    times: u32,
    first: u32,
    by_slab: Divisor,
    by_times: Divisor,
    by_pair: Divisor,
    sides: [u32; 8],
    turns: u64,
}

/// The operator on the GPU.
struct CudaWilson {
    card: Arc<Card>,
    rows: Rows,
    links: Arc<CardBuffer>,
    spec: WilsonSpec,
    sites: u32,
    /// Where blocks of the two sides of the chip ask for their turn, and the sides; where there are enough of them.
    turns: Option<(CardBuffer, [u32; 8])>,
    /// Products are walked to and fro: what one touched last lies in the second cache, and the next begins there.
    backwards: AtomicBool,
    ledger: Ledger,
}

pub(super) fn prepare(card: &Arc<Card>, spec: &WilsonSpec) -> Result<Arc<dyn Kernel>> {
    spec.validate_undivided()?;
    let rows = spec.rows();
    let sites: usize = spec.dims().iter().product();
    let count = u32::try_from(sites).ok().filter(|n| *n < u32::MAX / 2).ok_or_else(|| {
        Error::input(format!("a lattice of {:?} sites on one GPU", spec.dims())).hint("use a smaller lattice")
    })?;
    let reals = spec.compression.reals();
    // By group of sites, direction, pair of reals, site of the group.
    let mut host = vec![0.0f64; sites.next_multiple_of(GROUP) * 4 * reals];
    for site in 0..sites {
        for mu in 0..4 {
            for (r, x) in spec.compression.encode(&spec.links[4 * site + mu]).into_iter().enumerate() {
                let pair = ((site / GROUP * 4 + mu) * (reals / 2) + r / 2) * GROUP + site % GROUP;
                host[2 * pair + r % 2] = x;
            }
        }
    }
    let links = if spec.single {
        let narrow: Vec<f32> = host.iter().map(|&x| x as f32).collect();
        card.upload(&narrow)?
    } else {
        card.upload(&host)?
    };
    // The host's copy belongs to whoever made it.
    let spec = WilsonSpec { links: Arc::default(), ..spec.clone() };
    let mut wilson = CudaWilson {
        card: card.clone(),
        rows,
        links: Arc::new(links),
        spec,
        sites: count,
        turns: None,
        backwards: AtomicBool::new(false),
        ledger: Ledger::default(),
    };
    if wilson.tiling(1).blocks >= ROUNDS * wilson.round() {
        wilson.turns = sides::of(card)?.map(|sides| Ok((card.upload(&[0u64])?, sides))).transpose()?;
    }
    Ok(Arc::new(wilson))
}

/// How a product is spread over the GPU.
struct Tiling {
    kernel: String,
    /// Whether sites come in whole groups, in one column.
    packed: bool,
    threads: usize,
    blocks: usize,
    /// Whether all blocks are full.
    whole: bool,
}

impl CudaWilson {
    /// Blocks that run together.
    fn round(&self) -> usize {
        BLOCKS * self.card.processors as usize
    }

    fn tiling(&self, columns: usize) -> Tiling {
        let (sites, reals) = (self.sites as usize, self.spec.compression.reals());
        let packed = columns == 1 && sites.is_multiple_of(GROUP);
        let halves = packed && !self.spec.single && self.spec.compression != Compression::Eight;
        let (form, each) = match (halves, packed) {
            (true, _) => ("_halves", 2),
            (_, true) => ("_packed", 1),
            _ => ("", columns),
        };
        let precision = if self.spec.single { "f32" } else { "f64" };
        let count = sites * each;
        let threads = if count < BLOCK * self.round() { SMALL_BLOCK } else { BLOCK };
        Tiling {
            kernel: format!("wilson_{precision}_{reals}{form}"),
            packed,
            threads,
            blocks: count.div_ceil(threads),
            whole: count.is_multiple_of(threads),
        }
    }

    /// The order in which sites are walked, to and fro.
    fn order(&self, tiling: &Tiling, columns: usize, argument: &mut WilsonArgument) {
        let [a, b, c, times] = self.spec.dims();
        argument.backwards = u32::from(self.backwards.fetch_xor(true, Ordering::Relaxed));
        // With 8 reals a link making it is the work.
        let paired = tiling.packed && self.spec.single && self.spec.compression != Compression::Eight;
        argument.paired = u32::from(paired && (a * b).is_multiple_of(GROUP) && c.is_multiple_of(2));
        let asked = self.turns.as_ref().filter(|_| tiling.whole && tiling.blocks.is_multiple_of(2));
        let sides = if let Some((turns, sides)) = asked {
            (argument.turns, argument.sides) = (turns.address, *sides);
            2
        } else {
            1
        };
        let sliced = tiling.whole && tiling.blocks.is_multiple_of(times * sides);
        let times = if sliced { times } else { 1 };
        let (slice, across) = (tiling.blocks / times, tiling.blocks / times / sides);
        let real = if self.spec.single { 4 } else { 8 };
        let sites = self.sites as usize;
        let bytes = sites * (2 * COMPONENTS * columns + 4 * self.spec.compression.reals()) * real / times;
        let fits = |n: &usize| across.is_multiple_of(*n) && bytes / n <= SLABS;
        let slabs = if sliced { (1..=across).find(fits).unwrap_or(1) } else { 1 };
        let blocks = [tiling.blocks / sides, across, across / slabs, slice, times, 2 * (a * b / GROUP)];
        let [side, across, slab, slice, times, pair] = blocks.map(|n| n as u32);
        *argument = WilsonArgument { side, across, slab, slice, times, ..*argument };
        (argument.by_slab, argument.by_times) = (Divisor::by(slab), Divisor::by(times));
        argument.by_pair = Divisor::by(pair);
    }

    /// What sums over hops start with, by which c.alpha D v + c.beta v is -c.alpha/2 times the sum; `None` where c.beta
    /// is too large for that and c.beta v is to be added.
    fn start(&self, c: Update) -> Option<[f64; 2]> {
        let ratio = c.beta / c.alpha;
        let other = if self.spec.gamma5 { -ratio } else { ratio };
        (c.beta == 0.0 || ratio.abs() <= OWN).then(|| {
            [ratio, other].map(|r| -2.0 * (self.spec.diagonal + if c.beta == 0.0 { 0.0 } else { r }))
        })
    }

    /// What the kernel takes for a pass, but for the order of sites.
    fn argument(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Result<WilsonArgument> {
        check_update(self, v, w, false)?;
        let own = [(c.beta, v)];
        let start = self.start(c);
        let own = if start.is_some() { &own[..0] } else { &own[..] };
        let dims = self.spec.dims().map(|n| n as u32);
        let [by_x, by_y, by_z, _] = dims.map(Divisor::by);
        let mut argument = WilsonArgument {
            links: self.links.address,
            v: buffer(v)?.address,
            alpha: c.alpha,
            gamma: c.gamma,
            start: start.unwrap_or([-2.0 * self.spec.diagonal; 2]),
            sign: self.spec.sign,
            dims,
            sites: self.sites,
            columns: v.columns as u32,
            added: (own.len() + plus.len()) as u32,
            gamma5: u32::from(self.spec.gamma5),
            adjoint: u32::from(self.spec.adjoint),
            parity: faces::parity(self.spec.sites),
            by_dims: [by_x, by_y, by_z],
            ..WilsonArgument::zeroed()
        };
        for (k, (factor, x)) in own.iter().chain(plus).enumerate() {
            conformal("sum of vectors", x, w)?;
            (argument.factor[k], argument.plus[k]) = (*factor, buffer(x)?.address);
        }
        argument.w = unique(&self.card, w)?.address;
        Ok(argument)
    }

    fn pass(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Result<()> {
        let mut argument = self.argument(c, v, w, plus)?;
        let tiling = self.tiling(v.columns);
        self.order(&tiling, v.columns, &mut argument);
        if tiling.blocks * tiling.threads < 1 << 31 {
            argument.by_columns = Divisor::by(v.columns as u32);
        }
        let blocks = u32::try_from(tiling.blocks).map_err(|_| {
            Error::input(format!("{} columns of spinors at a time", v.columns)).hint("use fewer")
        })?;
        if blocks == 0 {
            return Ok(());
        }
        // SAFETY: the kernel's argument; all vectors have the operator's rows, and `w` is none of the others.
        unsafe { self.card.launch(&tiling.kernel, (blocks, 1), tiling.threads as u32, &arguments![argument]) }
    }

    /// A pass that takes the exchange of half-spinors in.
    fn pass_crossing(
        &self,
        link: &mut FacesLink,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Result<()> {
        let mut argument = self.argument(c, v, w, plus)?;
        let tiling = self.tiling(v.columns);
        self.order(&tiling, v.columns, &mut argument);
        let mut share = CrossingShare { threads: tiling.threads, sides: 1, free: 0 };
        if argument.turns == 0 {
            argument.turns = link.turns();
        } else {
            share.sides = 2;
        }
        // A slab is walked from the middle of its times, so that the faces come in between, and the next product begins
        // with what this one touched last.
        if argument.times > 1 {
            argument.first = argument.times / 2;
            let before = (argument.first - 1).min(argument.times - 1 - argument.first);
            share.free = (argument.slab * before) as usize;
        }
        let (sides, side) = (share.sides, argument.side as usize);
        let (crossing, turns) = link.cross(v, share)?;
        let blocks = (sides * (side + turns)) as u32;
        let name = format!("{}_linked", tiling.kernel);
        // SAFETY: as for a pass; and what leaves and comes has the sites of the faces.
        unsafe {
            self.card.launch(&name, (blocks, 1), tiling.threads as u32, &arguments![argument, crossing])
        }
    }

    /// Whether there is a product of such vectors that takes the exchange in. Where the faces are not those of time,
    /// blocks would wait for what comes before most others have begun. A program that shares its GPU by CUDA's MPS has
    /// none: a product that waits for another GPU could hold what that waits for.
    fn crosses(&self, link: &FacesLink, columns: usize) -> bool {
        let tiling = self.tiling(columns);
        link.is_cut_in_time() && tiling.packed && tiling.whole && tiling.blocks > 0 && !self.card.served
    }
}

impl Kernel for CudaWilson {
    fn shape(&self) -> KernelShape {
        KernelShape::square(self.rows, DType::of(self.spec.single, true))
    }

    fn info(&self) -> KernelInfo {
        self.spec.info(self.rows.local, self.links.bytes)
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        self.pass(c, v, w, &[])?;
        algebra::products(&self.card, v, w, dots)
    }

    fn update_plus(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Option<Result<()>> {
        let own = usize::from(self.start(c).is_none());
        (own + plus.len() <= MOST_ADDED).then(|| self.pass(c, v, w, plus))
    }

    fn update_later(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<PendingProducts> {
        self.pass(c, v, w, &[])?;
        algebra::products_later(&self.card, &self.ledger, v, w)
    }

    fn pass_linked(
        &self,
        link: &mut dyn Link,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: PassExtras,
    ) -> Result<Option<Option<PendingProducts>>> {
        let Some(link) = link.as_any().downcast_mut::<FacesLink>() else { return Ok(None) };
        let plus = if let PassExtras::Plus(plus) = besides { plus } else { &[] };
        let own = usize::from(self.start(c).is_none());
        if !self.crosses(link, v.columns) || own + plus.len() > MOST_ADDED {
            return Ok(None);
        }
        check_update(self, v, w, false)?;
        self.pass_crossing(link, c, v, w, plus)?;
        let products = || algebra::products_later(&self.card, &self.ledger, v, w);
        besides.dots().then(products).transpose().map(Some)
    }

    fn link_faces(&self, faces: &[Face], shape: VectorShape) -> Result<Option<Box<dyn Link>>> {
        faces::link(&self.card, &self.spec, self.links.clone(), faces, shape).map(Some)
    }

    fn overwrites(&self) -> bool {
        self.spec.sites == SiteParity::All
    }

    fn recordable(&self) -> bool {
        true
    }
}

/// One factor for each component of a site.
#[repr(C)]
#[derive(Clone, Copy)]
struct SiteFactors([f64; COMPONENTS]);

/// A diagonal that is the same on every site.
struct CudaSiteDiagonal {
    card: Arc<Card>,
    rows: Rows,
    factors: SiteFactors,
    single: bool,
    sites: u32,
}

pub(super) fn prepare_diagonal(
    card: &Arc<Card>,
    rows: Rows,
    factors: Vec<f64>,
    single: bool,
) -> Result<Arc<dyn Kernel>> {
    let (sites, factors) = site_factors(&rows, &factors)?;
    let sites = u32::try_from(sites).map_err(|_| Error::input(format!("a lattice of {sites} sites")))?;
    Ok(Arc::new(CudaSiteDiagonal { card: card.clone(), rows, factors: SiteFactors(factors), single, sites }))
}

impl Kernel for CudaSiteDiagonal {
    fn shape(&self) -> KernelShape {
        KernelShape::square(self.rows, DType::of(self.single, false))
    }

    fn info(&self) -> KernelInfo {
        KernelInfo { format: "diagonal".into(), bytes: 0, entries: self.rows.local }
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        let lanes = (v.columns * if v.dtype.is_complex() { 2 } else { 1 }) as u32;
        let (sites, factors, Update { alpha, beta, gamma }) = (self.sites, self.factors, c);
        let (x, y) = (buffer(v)?.address, unique(&self.card, w)?.address);
        let count = self.rows.local * lanes as usize;
        let most = (self.card.processors * RESIDENT) as usize;
        let blocks = count.div_ceil(THREADS as usize).clamp(1, most) as u32;
        let name = if self.single { "site_diagonal_f32" } else { "site_diagonal_f64" };
        let arguments = arguments![sites, lanes, factors, alpha, beta, gamma, x, y];
        // SAFETY: the kernel's arguments; both vectors have the operator's rows.
        unsafe { self.card.launch(name, (blocks, 1), THREADS, &arguments)? };
        algebra::products(&self.card, v, w, dots)
    }

    fn overwrites(&self) -> bool {
        true
    }

    fn recordable(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_divide_as_the_host_does() {
        let under = |d: Divisor, n: u32| ((u64::from(2 * n) * u64::from(d.factor)) >> (32 + d.shift)) as u32;
        let most = (1u32 << 31) - 1;
        for by in (1..2000).chain([4095, 4096, 4097, 65_535, 1 << 20, 1 << 30, (1 << 30) + 1, most]) {
            let near =
                (1..=most / by).step_by((most / by / 97).max(1) as usize).flat_map(|k| [k * by - 1, k * by]);
            for n in near.chain([0, 1, most - 1, most]) {
                assert_eq!(under(Divisor::by(by), n), n / by, "{n} / {by}");
            }
        }
    }
}
