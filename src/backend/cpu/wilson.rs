//! The Wilson-Dirac operator on the CPU: the same site of all parts of a folded lattice at once.
//!
//! Floor: a site's links and spinors once, (4 N + 24 + 24) reals with N reals a link, and 24 more for every vector added.

use std::ops::Range;
use std::sync::Arc;

use super::block::Lane;
use super::fold::Fold;
use super::wilson_shape::{MOST_ADDED, WilsonShape};
use super::wilson_site::{self, Job, Packed};
use super::{Isa, Threads, block, block_mut};
use crate::backend::matrix::wilson::{COMPONENTS, Sites, WilsonSpec};
use crate::backend::{BlockVector, Dots, Kernel, KernelInfo, Rows, Update, check_update, conformal};
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

pub(super) fn prepare(threads: Arc<Threads>, isa: Isa, spec: &WilsonSpec) -> Result<Arc<dyn Kernel>> {
    spec.validate()?;
    if spec.single {
        Ok(Arc::new(PreparedWilson::<f32>::new(threads, isa, spec)?))
    } else {
        Ok(Arc::new(PreparedWilson::<f64>::new(threads, isa, spec)?))
    }
}

impl<F: Packed> PreparedWilson<F> {
    fn new(threads: Arc<Threads>, isa: Isa, spec: &WilsonSpec) -> Result<Self> {
        let shape = WilsonShape::new(spec);
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
                    for mu in 0..4 {
                        let kept = spec.compression.encode(&spec.links[4 * site + mu]);
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

    fn pass(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
        dots: Option<&mut Dots>,
    ) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        for (_, x) in plus {
            conformal("sum of vectors", x, w)?;
        }
        let pointer =
            |v: &BlockVector| -> Result<*const F> { Ok(F::lanes(block(v)?).ok_or_else(wrong)?.as_ptr()) };
        let bytes = w.bytes();
        let columns = v.columns();
        let mut job = Job {
            shape: &self.shape,
            links: self.links.as_ptr(),
            reals: self.spec.compression.reals(),
            columns,
            alpha: c.alpha,
            diagonal: self.spec.diagonal,
            gamma5: self.spec.gamma5,
            adjoint: self.spec.adjoint,
            sites: self.spec.sites,
            beta: c.beta,
            gamma: c.gamma,
            v: pointer(v)?,
            w: F::lanes_mut(block_mut(w)?).ok_or_else(wrong)?.as_mut_ptr(),
            plus: [(F::default(), std::ptr::null()); MOST_ADDED],
            added: plus.len(),
            dots: dots.is_some(),
            stream: c.gamma == 0.0 && bytes > STREAM && self.spec.sites == Sites::All,
        };
        for (slot, (factor, x)) in job.plus.iter_mut().zip(plus) {
            *slot = (F::from_f64(*factor), pointer(x)?);
        }
        let together = (LINE / (self.shape.lanes * size_of::<F>())).max(1);
        let items = Tiles::new(&self.shape, together * size_of::<F>(), self.threads.count());
        let work = items.plane * items.thick * self.shape.lanes * columns * 16;
        let sums = self.threads.map(&self.threads.ranges(items.count(), work), |range| {
            let mut sums = vec![0.0; 2 * columns];
            // One column after the other, or as many as share cache lines: the caches cannot hold the neighbours of all columns.
            for first in (0..columns).step_by(together) {
                for item in range.clone() {
                    if self.threads.stopped() {
                        break;
                    }
                    for sites in items.planes(item) {
                        for column in first..columns.min(first + together) {
                            wilson_site::run(self.isa, &job, column, sites.clone(), &mut sums);
                        }
                    }
                }
            }
            sums
        })?;
        if let Some(dots) = dots {
            let column = |at: usize| sums.iter().map(|s| s[at]).sum::<f64>();
            dots.vv = (0..columns).map(column).collect();
            dots.wv = (columns..2 * columns).map(column).collect();
        }
        Ok(())
    }
}

fn wrong() -> Error {
    Error::internal("spinors of another precision than the operator")
}

/// The order of sites: tiles of planes in the third direction, walked along the fourth, so that a spinor that was read as
/// a neighbour is still in the caches when its own turn comes.
struct Tiles {
    part: [usize; 4],
    /// Sites of a plane.
    plane: usize,
    /// Planes of a tile.
    thick: usize,
    tiles: usize,
}

impl Tiles {
    fn new(shape: &WilsonShape, bytes: usize, workers: usize) -> Tiles {
        let part = shape.part;
        let plane = part[0] * part[1];
        let spinors = plane * shape.lanes * 24 * bytes;
        let thick = (SLAB / spinors.max(1)).clamp(1, part[2].div_ceil(workers).max(1));
        Tiles { part, plane, thick, tiles: part[2].div_ceil(thick) }
    }

    fn count(&self) -> usize {
        self.tiles * self.part[3]
    }

    /// The planes of a piece of work, as ranges of sites.
    fn planes(&self, item: usize) -> impl Iterator<Item = Range<usize>> {
        let (tile, x3, plane) = (item / self.part[3], item % self.part[3], self.plane);
        let first = tile * self.thick;
        let last = (first + self.thick).min(self.part[2]);
        let base = x3 * self.part[2];
        (first..last).map(move |x2| (base + x2) * plane..(base + x2 + 1) * plane)
    }
}

impl<F: Packed> Kernel for PreparedWilson<F> {
    fn rows(&self) -> Rows {
        self.rows
    }

    fn dtype(&self) -> DType {
        DType::of(self.spec.single, true)
    }

    fn info(&self) -> KernelInfo {
        // A row of D: the diagonal, and in every direction and sense two spins of three colours.
        let entries = self.rows.local * (1 + 8 * 6);
        let format = format!("Wilson, {} links", self.spec.compression.name());
        KernelInfo { format, bytes: self.links.len() * size_of::<F>(), entries }
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        self.pass(c, v, w, &[], dots)
    }

    fn update_plus(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Option<Result<()>> {
        (plus.len() <= MOST_ADDED).then(|| self.pass(c, v, w, plus, None))
    }

    fn overwrites(&self) -> bool {
        self.spec.sites == Sites::All
    }
}

/// A diagonal that is the same on every site.
struct Diagonal {
    rows: Rows,
    factors: Vec<f64>,
    single: bool,
    threads: Arc<Threads>,
}

pub(super) fn prepare_diagonal(
    threads: Arc<Threads>,
    rows: Rows,
    factors: Vec<f64>,
    single: bool,
) -> Result<Arc<dyn Kernel>> {
    let fits = rows.grid.is_some_and(|g| g.per_site == factors.len() && g.per_site == COMPONENTS);
    if !fits {
        return Err(Error::internal("a diagonal that does not fit its lattice"));
    }
    Ok(Arc::new(Diagonal { rows, factors, single, threads }))
}

impl Kernel for Diagonal {
    fn rows(&self) -> Rows {
        self.rows
    }

    fn dtype(&self) -> DType {
        DType::of(self.single, false)
    }

    fn info(&self) -> KernelInfo {
        KernelInfo { format: "diagonal".into(), bytes: 0, entries: self.rows.local }
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        fn go<F: Lane>(
            d: &Diagonal,
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
                    let own = F::from_f64(c.alpha * d.factors[row % d.factors.len()] + c.beta);
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
