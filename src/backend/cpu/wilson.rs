//! The Wilson-Dirac operator on the CPU: the same site of all parts of a folded lattice at once.
//!
//! Floor: the links and spinors of a site once, (4 N + 24 + 24) reals with N reals per link, and 24 more for every
//! added vector.

use std::ops::Range;
use std::sync::Arc;

use super::block::BlockReal;
use super::fold::Fold;
use super::wilson_shape::{MOST_ADDED, WilsonShape};
use super::wilson_site::{Packed, WilsonPass, WilsonTask};
use super::{Isa, Threads, block, block_mut};
use crate::backend::exchange::{FaceArrivals, Faced, HALF, PassExtras};
use crate::backend::matrix::wilson::{COMPONENTS, SiteParity, Su3, WilsonBox, WilsonSpec, site_factors};
use crate::backend::{
    BlockVector, Dots, Kernel, KernelInfo, KernelShape, Rows, Update, check_update, conformal,
};
use crate::error::{Error, Result};
use crate::number::DType;
use crate::number::aligned::Aligned;

/// Bytes beyond which a vector that is only written goes past the caches.
const STREAM: usize = 4 << 20;

/// Bytes of a line of the caches.
const LINE: usize = 64;

/// Bytes of a tile's slab: three of them, with the links between, shall find room in the caches.
const SLAB: usize = 3 << 20;

/// The operator in the precision of its vectors.
struct PreparedWilson<F> {
    shape: WilsonShape,
    rows: Rows,
    /// By site of a part, direction, real, lane.
    links: Aligned<F>,
    spec: WilsonSpec,
    threads: Arc<Threads>,
    isa: Isa,
}

/// The links of a site, by its number on the lattice of an operator.
type LinksOf<'a> = &'a (dyn Fn(usize) -> &'a [Su3] + Sync);

pub(super) fn prepare(threads: Arc<Threads>, isa: Isa, spec: &WilsonSpec) -> Result<Arc<dyn Kernel>> {
    spec.validate_undivided()?;
    let (shape, links) = (WilsonShape::new(spec), |site: usize| &spec.links[4 * site..4 * site + 4]);
    Ok(if spec.single {
        Arc::new(PreparedWilson::<f32>::new(threads, isa, spec, shape, &links)?)
    } else {
        Arc::new(PreparedWilson::<f64>::new(threads, isa, spec, shape, &links)?)
    })
}

/// The operator on a box that has neighbours.
pub(super) fn prepare_box(threads: Arc<Threads>, isa: Isa, part: &WilsonBox) -> Result<Arc<dyn Faced>> {
    part.spec.validate()?;
    let (inner, shape) = (part.inner(), WilsonShape::of_box(part));
    if (0..inner.rows().local / COMPONENTS).any(|site| part.links(site).is_none()) {
        return Err(Error::internal("links of other sites than those of the vectors"));
    }
    let links = |site: usize| part.links(site).unwrap_or_default();
    Ok(if inner.single {
        Arc::new(PreparedWilson::<f32>::new(threads, isa, &inner, shape, &links)?)
    } else {
        Arc::new(PreparedWilson::<f64>::new(threads, isa, &inner, shape, &links)?)
    })
}

/// The sites that a pass computes.
#[derive(Clone, Copy)]
enum PassSites<'a> {
    All,
    /// Those that need nothing from beyond the box.
    Inside,
    /// The others, with what has come.
    AtFaces(&'a FaceArrivals<'a>),
}

impl<F: Packed> PreparedWilson<F> {
    fn new(
        threads: Arc<Threads>,
        isa: Isa,
        spec: &WilsonSpec,
        shape: WilsonShape,
        links_of: LinksOf,
    ) -> Result<Self> {
        let (reals, lanes) = (spec.compression.reals(), shape.lanes);
        let count = shape.sites() * 4 * reals * lanes;
        let mut links = Aligned::zeros(count).map_err(|_| {
            Error::memory(format!("links of {:.1} GB", (count * size_of::<F>()) as f64 / 1e9))
                .hint("use a smaller lattice, or `precision: \"single\"`")
        })?;
        let fold = Fold::of(&spec.rows());
        let each = 4 * reals * lanes;
        threads.run(&threads.ranges(shape.sites(), each * 8), each, &mut links, |range, out| {
            for (at, out) in range.zip(out.chunks_exact_mut(each)) {
                if threads.stopped() {
                    return;
                }
                for lane in 0..lanes {
                    let site = fold.map_or(at, |f| f.row(at * f.per_site, lane) / f.per_site);
                    for (mu, link) in links_of(site).iter().enumerate() {
                        let kept = spec.compression.encode(link);
                        for (r, x) in kept.into_iter().enumerate() {
                            out[(mu * reals + r) * lanes + lane] = F::from_f64(x);
                        }
                    }
                }
            }
        })?;
        // The host's copy belongs to whoever made it.
        let spec = WilsonSpec { links: Arc::default(), ..spec.clone() };
        Ok(PreparedWilson { rows: spec.rows(), shape, links, spec, threads, isa })
    }

    fn numbers(v: &BlockVector) -> Result<&[F]> {
        F::lanes(block(v)?).ok_or_else(wrong)
    }

    /// A job that reads a vector, and does nothing besides.
    fn job(&self, v: &BlockVector) -> Result<WilsonPass<'_, F>> {
        Ok(WilsonPass {
            shape: &self.shape,
            links: self.links.as_ptr(),
            reals: self.spec.compression.reals(),
            columns: v.columns(),
            alpha: 1.0,
            diagonal: self.spec.diagonal,
            gamma5: self.spec.gamma5,
            adjoint: self.spec.adjoint,
            sites: self.spec.sites,
            beta: 0.0,
            gamma: 0.0,
            v: Self::numbers(v)?.as_ptr(),
            w: std::ptr::null_mut(),
            plus: [(F::default(), std::ptr::null()); MOST_ADDED],
            added: 0,
            dots: false,
            stream: false,
            came: [[std::ptr::null(); 2]; 4],
        })
    }

    fn compute(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: PassExtras,
        which: PassSites,
    ) -> Result<Dots> {
        check_update(self, v, w, besides.dots())?;
        let (bytes, columns) = (w.bytes(), v.columns());
        let mut job = self.job(v)?;
        if let PassExtras::Plus(plus) = besides {
            job.added = plus.len();
            for (slot, (factor, x)) in job.plus.iter_mut().zip(plus) {
                conformal("sum of vectors", x, w)?;
                *slot = (F::from_f64(*factor), Self::numbers(x)?.as_ptr());
            }
        }
        if job.added > MOST_ADDED {
            return Err(Error::internal(format!("{} vectors added in one pass", job.added)));
        }
        if let PassSites::AtFaces(came) = which {
            for (d, face) in (0..4).flat_map(|d| [(d, 0), (d, 1)]).filter(|(d, _)| self.shape.cut[*d]) {
                let numbers: Option<&[F]> = came[d][face].map(bytemuck::cast_slice);
                let fits = numbers.filter(|numbers| numbers.len() >= self.reals_across(d) * columns);
                job.came[d][face] =
                    fits.ok_or_else(|| Error::internal("a face without its spinors"))?.as_ptr();
            }
        }
        (job.alpha, job.beta, job.gamma) = (c.alpha, c.beta, c.gamma);
        job.w = F::lanes_mut(block_mut(w)?).ok_or_else(wrong)?.as_mut_ptr();
        job.dots = besides.dots();
        job.stream = c.gamma == 0.0 && bytes > STREAM && self.spec.sites == SiteParity::All;
        let together = (LINE / (self.shape.lanes * size_of::<F>())).max(1);
        let items = SiteOrder::new(&self.shape, together * size_of::<F>(), self.threads.count());
        let work = items.plane * items.thick * self.shape.lanes * columns * 16;
        let sums = self.threads.map(&self.threads.ranges(items.count(), work), |range| {
            let mut sums = vec![0.0; 2 * columns];
            // One column after the other, or as many as share cache lines: the caches cannot hold the neighbours of all
            // columns.
            for first in (0..columns).step_by(together) {
                for item in range.clone() {
                    if self.threads.stopped() {
                        break;
                    }
                    for range in items.planes(item).flat_map(|plane| items.chosen(plane, which)) {
                        for column in first..columns.min(first + together) {
                            let (range, sums) = (range.clone(), &mut sums[..]);
                            F::run(self.isa, &job, WilsonTask::Sites { column, range, sums });
                        }
                    }
                }
            }
            sums
        })?;
        if !besides.dots() {
            return Ok(Dots::default());
        }
        let column = |at: usize| sums.iter().map(|s| s[at]).sum::<f64>();
        let (vv, wv) = ((0..columns).map(column).collect(), (columns..2 * columns).map(column).collect());
        Ok(Dots { vv, wv, partial: false })
    }

    /// Reals a column that pass a face.
    fn reals_across(&self, d: usize) -> usize {
        self.shape.places_across(d) * self.shape.lanes_across(d) * 2 * HALF
    }
}

fn wrong() -> Error {
    Error::internal("spinors of another precision than the operator")
}

/// The order of sites: tiles of planes in the third direction, walked along the fourth, so that a spinor that was read
/// as a neighbour is still in the caches when its own turn comes.
struct SiteOrder {
    part: [usize; 4],
    cut: [bool; 4],
    /// Sites of a plane.
    plane: usize,
    /// Planes of a tile.
    thick: usize,
    tiles: usize,
}

impl SiteOrder {
    fn new(shape: &WilsonShape, bytes: usize, workers: usize) -> SiteOrder {
        let part = shape.part;
        let plane = part[0] * part[1];
        let spinors = plane * shape.lanes * 24 * bytes;
        let thick = (SLAB / spinors.max(1)).clamp(1, part[2].div_ceil(workers).max(1));
        SiteOrder { part, cut: shape.cut, plane, thick, tiles: part[2].div_ceil(thick) }
    }

    fn count(&self) -> usize {
        self.tiles * self.part[3]
    }

    /// The planes of a piece of work: their coordinates in the third and fourth direction.
    fn planes(&self, item: usize) -> impl Iterator<Item = [usize; 2]> {
        let (tile, x3) = (item / self.part[3], item % self.part[3]);
        let first = tile * self.thick;
        let last = (first + self.thick).min(self.part[2]);
        (first..last).map(move |x2| [x2, x3])
    }

    /// Of a plane the sites that a pass computes, as ranges. Of a fold one lane at a face is enough for a site to be
    /// there.
    fn chosen(&self, [x2, x3]: [usize; 2], which: PassSites) -> Vec<Range<usize>> {
        let first = (x3 * self.part[2] + x2) * self.plane;
        let whole = first..first + self.plane;
        let outer = |d: usize, x: usize| self.cut[d] && (x == 0 || x + 1 == self.part[d]);
        let (inside, rows) = match which {
            PassSites::All => return vec![whole],
            PassSites::Inside => (true, outer(2, x2) || outer(3, x3)),
            PassSites::AtFaces(_) => (false, outer(2, x2) || outer(3, x3)),
        };
        if rows || !(self.cut[0] || self.cut[1]) {
            return if rows != inside { vec![whole] } else { Vec::new() };
        }
        let n = self.part[0];
        let of_row = |x1: usize| {
            let row = first + x1 * n..first + (x1 + 1) * n;
            let inner = row.start + 1..row.end.max(row.start + 2) - 1;
            match (outer(1, x1), self.cut[0]) {
                (false, true) if inside => vec![inner],
                (false, true) => {
                    let last = row.end - 1;
                    let mut ends = vec![row.start..row.start + 1, last..row.end];
                    ends.dedup();
                    ends
                }
                (outer, _) if outer != inside => vec![row],
                _ => Vec::new(),
            }
        };
        (0..self.part[1]).flat_map(of_row).collect()
    }
}

impl<F: Packed> Faced for PreparedWilson<F> {
    fn info(&self) -> KernelInfo {
        Kernel::info(self)
    }

    fn overwrites(&self) -> bool {
        Kernel::overwrites(self)
    }

    fn most_added(&self) -> usize {
        MOST_ADDED
    }

    fn leave(&self, v: &BlockVector, face: (usize, bool), to: &mut [u8]) -> Result<()> {
        let (job, d) = (self.job(v)?, face.0);
        let places = self.shape.places_across(d);
        let each = self.reals_across(d) / places.max(1) * job.columns;
        let fits = v.rows() == self.rows && v.dtype() == Kernel::dtype(self);
        let to: &mut [F] = bytemuck::cast_slice_mut(to);
        if !fits || to.len() != places * each {
            return Err(Error::internal("spinors that do not fit a face"));
        }
        self.threads.run(&self.threads.ranges(places, 8 * each), each, to, |range, to| {
            F::run(self.isa, &job, WilsonTask::Leave { face, range, to });
        })?;
        Ok(())
    }

    fn pass(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: PassExtras,
        came: Option<&FaceArrivals>,
    ) -> Result<Dots> {
        self.compute(c, v, w, besides, came.map_or(PassSites::Inside, PassSites::AtFaces))
    }
}

impl<F: Packed> Kernel for PreparedWilson<F> {
    fn shape(&self) -> KernelShape {
        KernelShape::square(self.rows, DType::of(self.spec.single, true))
    }

    fn info(&self) -> KernelInfo {
        self.spec.info(self.rows.local, self.links.len() * size_of::<F>())
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        let besides = if dots.is_some() { PassExtras::Dots } else { PassExtras::Nothing };
        let found = self.compute(c, v, w, besides, PassSites::All)?;
        if let Some(dots) = dots {
            *dots = found;
        }
        Ok(())
    }

    fn update_plus(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Option<Result<()>> {
        let added = || self.compute(c, v, w, PassExtras::Plus(plus), PassSites::All).map(drop);
        (plus.len() <= MOST_ADDED).then(added)
    }

    fn overwrites(&self) -> bool {
        self.spec.sites == SiteParity::All
    }
}

/// A diagonal that is the same on every site.
struct CpuSiteDiagonal {
    rows: Rows,
    factors: [f64; COMPONENTS],
    single: bool,
    threads: Arc<Threads>,
}

pub(super) fn prepare_diagonal(
    threads: Arc<Threads>,
    rows: Rows,
    factors: Vec<f64>,
    single: bool,
) -> Result<Arc<dyn Kernel>> {
    let (_, factors) = site_factors(&rows, &factors)?;
    Ok(Arc::new(CpuSiteDiagonal { rows, factors, single, threads }))
}

impl Kernel for CpuSiteDiagonal {
    fn shape(&self) -> KernelShape {
        KernelShape::square(self.rows, DType::of(self.single, false))
    }

    fn info(&self) -> KernelInfo {
        KernelInfo { format: "diagonal".into(), bytes: 0, entries: self.rows.local }
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        fn go<F: BlockReal>(
            d: &CpuSiteDiagonal,
            c: Update,
            v: &BlockVector,
            w: &mut BlockVector,
        ) -> Result<Vec<[f64; 2]>> {
            let (columns, lanes) = (v.columns(), block(v)?.lanes());
            let (stride, width) = (block(v)?.stride(), block(v)?.width());
            let v = F::lanes(block(v)?).ok_or_else(wrong)?;
            let w = F::lanes_mut(block_mut(w)?).ok_or_else(wrong)?;
            let ranges = d.threads.ranges(w.len() / stride.max(1), stride);
            let parts = d.threads.run(&ranges, stride, w, |range, w| {
                let mut sums = vec![[0.0; 2]; columns];
                for (row, w) in range.zip(w.chunks_exact_mut(stride)) {
                    let own = F::from_f64(c.alpha * d.factors[row % COMPONENTS] + c.beta);
                    let gamma = F::from_f64(c.gamma);
                    let v = &v[row * stride..][..stride];
                    for (at, (w, v)) in w.iter_mut().zip(v).enumerate() {
                        let old = if c.gamma == 0.0 { F::default() } else { gamma * *w };
                        *w = own * *v + old;
                        let sum = &mut sums[at % width / lanes];
                        sum[0] += v.to_f64() * v.to_f64();
                        sum[1] += w.to_f64() * v.to_f64();
                    }
                }
                sums
            })?;
            let mut total = vec![[0.0; 2]; columns];
            for part in parts {
                for (t, p) in total.iter_mut().zip(part) {
                    *t = [t[0] + p[0], t[1] + p[1]];
                }
            }
            Ok(total)
        }
        let sums = if self.single { go::<f32>(self, c, v, w)? } else { go::<f64>(self, c, v, w)? };
        if let Some(dots) = dots {
            dots.vv = sums.iter().map(|s| s[0]).collect();
            dots.wv = sums.iter().map(|s| s[1]).collect();
        }
        Ok(())
    }

    fn overwrites(&self) -> bool {
        true
    }
}
