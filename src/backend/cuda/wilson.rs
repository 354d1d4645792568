//! The Wilson-Dirac operator on the GPU, and the order of spinors there: 32 neighbouring sites together, component by
//! component, columns fastest. It is an order of rows alone, so that block algebra need not know it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::{Pod, Zeroable};

use super::card::{Buffer, Card};
use super::{RESIDENT, THREADS, algebra, arguments, buffer, unique};
use crate::backend::matrix::wilson::{COMPONENTS, Compression, Sites, WilsonSpec};
use crate::backend::{BlockVector, Dots, Grid, Kernel, KernelInfo, Rows, Update, check_update, conformal};
use crate::error::{Error, Result};
use crate::number::DType;

/// Sites that lie together; see `kernels/wilson.cu`.
const GROUP: usize = 32;

/// Vectors that one pass may add.
const MOST_ADDED: usize = 4;

/// Threads of a block, and of one where there are so few sites that there would not be [`BLOCKS`] on every multiprocessor.
const BLOCK: usize = 128;
const SMALL_BLOCK: usize = 64;
const BLOCKS: usize = 4;

/// Bytes of spinors and links of planes that are walked together along the fourth direction: with those before and behind
/// they shall find room in the second cache of the GPU.
const LAYER: usize = 12 << 20;

/// Where a row of the host stands on the GPU.
pub(super) fn place(grid: &Grid, row: usize) -> usize {
    let (site, component) = (row / grid.per_site, row % grid.per_site);
    let (group, lane) = (site / GROUP, site % GROUP);
    let width = GROUP.min(grid.sites() - group * GROUP);
    group * GROUP * grid.per_site + component * width + lane
}

/// The argument of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Argument {
    links: u64,
    v: u64,
    w: u64,
    plus: [u64; MOST_ADDED],
    factor: [f64; MOST_ADDED],
    alpha: f64,
    beta: f64,
    gamma: f64,
    diagonal: f64,
    sign: [f64; 4],
    dims: [u32; 4],
    sites: u32,
    columns: u32,
    added: u32,
    gamma5: u32,
    adjoint: u32,
    parity: u32,
    layer: u32,
    paired: u32,
    backwards: u32,
    _pad: u32,
}

/// The operator on the GPU.
struct Wilson {
    card: Arc<Card>,
    rows: Rows,
    links: Buffer,
    spec: WilsonSpec,
    sites: u32,
    /// Products are walked to and fro: what one touched last lies in the second cache, and the next begins there.
    backwards: AtomicBool,
}

pub(super) fn prepare(card: &Arc<Card>, spec: &WilsonSpec) -> Result<Arc<dyn Kernel>> {
    spec.validate()?;
    let rows = spec.rows();
    let sites: usize = spec.dims.iter().product();
    let count = u32::try_from(sites).ok().filter(|n| *n < u32::MAX / 2).ok_or_else(|| {
        Error::input(format!("a lattice of {:?} sites on one GPU", spec.dims)).hint("use a smaller lattice")
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
    Ok(Arc::new(Wilson {
        card: card.clone(),
        rows,
        links,
        spec,
        sites: count,
        backwards: AtomicBool::new(false),
    }))
}

impl Wilson {
    /// How many planes of the third direction are walked together: 0 for all.
    fn layer(&self) -> u32 {
        let [a, b, c, _] = self.spec.dims;
        let plane = a * b * (2 * COMPONENTS + 4 * self.spec.compression.reals()) * 8;
        if plane * c <= LAYER || !(a * b).is_multiple_of(GROUP) {
            return 0;
        }
        let fits = |n: &usize| c.is_multiple_of(*n) && plane * n <= LAYER;
        (1..c).rev().find(fits).unwrap_or(1) as u32
    }

    fn pass(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Result<()> {
        check_update(self, v, w, false)?;
        let mut argument = Argument {
            links: self.links.address,
            v: buffer(v)?.address,
            alpha: c.alpha,
            beta: c.beta,
            gamma: c.gamma,
            diagonal: self.spec.diagonal,
            sign: self.spec.sign,
            dims: self.spec.dims.map(|n| n as u32),
            sites: self.sites,
            columns: v.columns as u32,
            added: plus.len() as u32,
            gamma5: u32::from(self.spec.gamma5),
            adjoint: u32::from(self.spec.adjoint),
            parity: match self.spec.sites {
                Sites::All => 0,
                Sites::Even => 1,
                Sites::Odd => 2,
            },
            ..Argument::zeroed()
        };
        for (k, (factor, x)) in plus.iter().enumerate() {
            conformal("sum of vectors", x, w)?;
            (argument.factor[k], argument.plus[k]) = (*factor, buffer(x)?.address);
        }
        argument.w = unique(&self.card, w)?.address;
        let packed = v.columns == 1 && (self.sites as usize).is_multiple_of(GROUP);
        let halves = packed && !self.spec.single && self.spec.compression != Compression::Eight;
        let (form, each) = match (halves, packed) {
            (true, _) => ("_halves", 2),
            (_, true) => ("_packed", 1),
            _ => ("", v.columns),
        };
        if packed {
            let [a, b, c, _] = self.spec.dims;
            argument.backwards = u32::from(self.backwards.fetch_xor(true, Ordering::Relaxed));
            if self.spec.single {
                argument.paired = u32::from((a * b).is_multiple_of(GROUP) && c.is_multiple_of(2));
            } else {
                argument.layer = self.layer();
            }
        }
        let count = self.sites as usize * each;
        let few = count < BLOCKS * BLOCK * self.card.processors as usize;
        let threads = if few { SMALL_BLOCK } else { BLOCK };
        let blocks = u32::try_from(count.div_ceil(threads)).map_err(|_| {
            Error::input(format!("{} columns of spinors at a time", v.columns)).hint("use fewer")
        })?;
        if blocks == 0 {
            return Ok(());
        }
        let precision = if self.spec.single { "f32" } else { "f64" };
        let name = format!("wilson_{precision}_{}{form}", self.spec.compression.reals());
        // SAFETY: the kernel's argument; all vectors have the operator's rows, and `w` is none of the others.
        unsafe { self.card.launch(&name, (blocks, 1), threads as u32, &arguments![argument]) }
    }
}

impl Kernel for Wilson {
    fn rows(&self) -> Rows {
        self.rows
    }

    fn cols(&self) -> usize {
        self.rows.global
    }

    fn dtype(&self) -> DType {
        DType::of(self.spec.single, true)
    }

    fn info(&self) -> KernelInfo {
        let entries = self.rows.local * (1 + 8 * 6);
        let format = format!("Wilson, {} links", self.spec.compression.name());
        KernelInfo { format, bytes: self.links.bytes, entries }
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
        (plus.len() <= MOST_ADDED).then(|| self.pass(c, v, w, plus))
    }
}

/// A diagonal that is the same on every site.
struct Diagonal {
    card: Arc<Card>,
    rows: Rows,
    factors: [f64; COMPONENTS],
    single: bool,
    sites: u32,
}

pub(super) fn prepare_diagonal(
    card: &Arc<Card>,
    rows: Rows,
    factors: Vec<f64>,
    single: bool,
) -> Result<Arc<dyn Kernel>> {
    let wrong = || Error::internal("a diagonal that does not fit its lattice");
    let grid = rows.grid.filter(|g| g.per_site == COMPONENTS).ok_or_else(wrong)?;
    let factors: [f64; COMPONENTS] = factors.try_into().map_err(|_| wrong())?;
    let sites = u32::try_from(grid.sites()).map_err(|_| wrong())?;
    Ok(Arc::new(Diagonal { card: card.clone(), rows, factors, single, sites }))
}

impl Kernel for Diagonal {
    fn rows(&self) -> Rows {
        self.rows
    }

    fn cols(&self) -> usize {
        self.rows.global
    }

    fn dtype(&self) -> DType {
        DType::of(self.single, false)
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
}
