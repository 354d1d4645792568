//! One site of the Wilson-Dirac operator in all lanes: half-spinor projection, products with links, and the sum with
//! whatever vectors a pass adds; and what leaves a box through its faces.

use std::ops::Range;

use super::Isa;
use super::block::BlockReal;
use super::simd::{Register, fetch};
use super::wilson_link::{C, link};
use super::wilson_shape::{Across, MOST_ADDED, WilsonShape};
use crate::backend::matrix::wilson::{COMPONENTS, SiteParity};
use crate::number::Real;

/// What a pass computes: `w = alpha A v + beta v + gamma w + sum_i f_i x_i`. The pointers are to vectors of one shape;
/// `w` is none of the others, and workers write different sites of it.
pub(super) struct WilsonPass<'a, F> {
    pub shape: &'a WilsonShape,
    pub links: *const F,
    pub reals: usize,
    pub columns: usize,
    pub alpha: f64,
    pub diagonal: f64,
    pub gamma5: bool,
    pub adjoint: bool,
    pub sites: SiteParity,
    pub beta: f64,
    pub gamma: f64,
    pub v: *const F,
    pub w: *mut F,
    pub plus: [(F, *const F); MOST_ADDED],
    pub added: usize,
    pub dots: bool,
    pub stream: bool,
    /// Half-spinors that have come through the lower and the upper face of each direction; null where there are none.
    pub came: [[*const F; 2]; 4],
}

/// What a worker does with a job.
pub(super) enum WilsonTask<'a, F> {
    /// Computes a range of sites of a column, and adds their products to the sums.
    Sites { column: usize, range: Range<usize>, sums: &'a mut [f64] },
    /// Makes what leaves through a face (direction, whether the upper one) at a range of places across it,
    /// for all columns.
    Leave { face: (usize, bool), range: Range<usize>, to: &'a mut [F] },
}

// SAFETY: workers read the vectors and write disjoint sites of `w`, as the type's promise says.
unsafe impl<F: Send> Send for WilsonPass<'_, F> {}
// SAFETY: as above.
unsafe impl<F: Sync> Sync for WilsonPass<'_, F> {}

/// Two spins of three colours.
type HalfSpinor<P> = [[C<P>; 3]; 2];

/// The upper two spins of (1 + s g_mu) psi.
#[inline(always)]
unsafe fn project<P: Register, const MU: usize>(
    psi: *const P::Real,
    step: usize,
    im: usize,
    s: P,
) -> HalfSpinor<P> {
    // SAFETY: the caller's promise.
    unsafe {
        let at = |spin: usize, colour: usize| C::<P>::load(psi.add((3 * spin + colour) * step), im);
        let mut h = [[C::zero(); 3]; 2];
        for c in 0..3 {
            [h[0][c], h[1][c]] = match MU {
                0 => [at(0, c).plus_i(s, at(3, c)), at(1, c).plus_i(s, at(2, c))],
                1 => [at(0, c).minus(s, at(3, c)), at(1, c).plus(s, at(2, c))],
                2 => [at(0, c).plus_i(s, at(2, c)), at(1, c).minus_i(s, at(3, c))],
                _ => [at(0, c).plus(s, at(2, c)), at(1, c).plus(s, at(3, c))],
            };
        }
        h
    }
}

/// One colour of half-spinors that a link takes along, `U h` or `U^+ h`.
#[inline(always)]
unsafe fn times<P: Register, const DAGGER: bool>(u: &[C<P>; 9], h: &HalfSpinor<P>, i: usize) -> [C<P>; 2] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut r = [C::zero(); 2];
        for spin in 0..2 {
            let h = &h[spin];
            r[spin] = if DAGGER {
                C::zero().mla_conj(u[i], h[0]).mla_conj(u[3 + i], h[1]).mla_conj(u[6 + i], h[2])
            } else {
                u[3 * i].mul(h[0]).mla(u[3 * i + 1], h[1]).mla(u[3 * i + 2], h[2])
            };
        }
        r
    }
}

/// Adds all four spins of (1 + s g_mu) that follow from the upper two, of one colour.
#[inline(always)]
unsafe fn complete<P: Register, const MU: usize>(
    sum: &mut [[C<P>; 3]; 4],
    i: usize,
    [a, b]: [C<P>; 2],
    s: P,
) {
    // SAFETY: the caller's promise.
    unsafe {
        sum[0][i] = sum[0][i].add(a);
        sum[1][i] = sum[1][i].add(b);
        (sum[2][i], sum[3][i]) = match MU {
            0 => (sum[2][i].minus_i(s, b), sum[3][i].minus_i(s, a)),
            1 => (sum[2][i].plus(s, b), sum[3][i].minus(s, a)),
            2 => (sum[2][i].minus_i(s, a), sum[3][i].plus_i(s, b)),
            _ => (sum[2][i].plus(s, a), sum[3][i].plus(s, b)),
        };
    }
}

/// Takes half-spinors through a link, `U h` or `U^+ h`, and adds all four spins of (1 + s g_mu) that follow; colour by
/// colour, so that few numbers are in flight. `turn` is what a product undergoes that crosses a cut.
#[inline(always)]
unsafe fn through<P: Register, const MU: usize, const DAGGER: bool>(
    sum: &mut [[C<P>; 3]; 4],
    u: &[C<P>; 9],
    h: &HalfSpinor<P>,
    s: P,
    turn: Option<(usize, P)>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        for i in 0..3 {
            let mut r = times::<P, DAGGER>(u, h, i);
            if let Some((bit, sign)) = turn {
                for spin in 0..2 {
                    r[spin] = cross(r[spin], bit, sign);
                }
            }
            complete::<P, MU>(sum, i, r, s);
        }
    }
}

/// Lanes change places across a cut, and those that crossed the boundary of the lattice take its sign.
#[inline(always)]
unsafe fn cross<P: Register>(mut z: C<P>, bit: usize, sign: P) -> C<P> {
    // SAFETY: the caller's promise.
    unsafe {
        if bit > 0 && bit < P::LANES {
            z = C { re: z.re.swap(bit), im: z.im.swap(bit) };
        }
        C { re: z.re.mul(sign), im: z.im.mul(sign) }
    }
}

/// The lanes of a pack that are at a face, from where they stand together; those between stay as `pack` has them.
#[inline(always)]
unsafe fn arrived<P: Register>(from: *const P::Real, across: Across, pack: &mut [P::Real; 16]) -> P {
    // SAFETY: the caller's promise.
    unsafe {
        if across.run == P::LANES {
            return P::load(from);
        }
        for at in 0..across.runs * across.run {
            let lane = across.lane + at + (at & !(across.run - 1));
            pack[lane % P::LANES] = *from.add(at);
        }
        P::load(pack.as_ptr())
    }
}

/// The way back: the lanes at a face, put together.
#[inline(always)]
unsafe fn depart<P: Register>(x: P, across: Across, to: &mut [P::Real]) {
    let to = &mut to[..across.runs * across.run];
    // SAFETY: a run of all lanes has room for them, and no register has more than the array.
    unsafe {
        if across.run == P::LANES {
            return x.store(to.as_mut_ptr());
        }
        let mut pack = [<P::Real as Default>::default(); 16];
        x.store(pack.as_mut_ptr());
        for (at, to) in to.iter_mut().enumerate() {
            let lane = across.lane + at + (at & !(across.run - 1));
            *to = pack[lane % P::LANES];
        }
    }
}

/// Constants of a run in packs.
struct PackConstants<'a, P: Register> {
    job: &'a WilsonPass<'a, P::Real>,
    /// Reals between the rows of a vector, and from a real part to its imaginary part.
    step: usize,
    im: usize,
    forward: P,
    backward: P,
}

impl<P: Register> PackConstants<'_, P> {
    /// Both hops of a direction. `chunk` is the lanes' number divided by those of a pack.
    #[inline(always)]
    unsafe fn hops<const MU: usize, const N: usize>(
        &self,
        sum: &mut [[C<P>; 3]; 4],
        site: usize,
        x: usize,
        stride: usize,
        chunk: usize,
        column: usize,
    ) {
        // SAFETY: sites are inside the part, chunks inside the lanes, as the loops of `sites` count them.
        unsafe {
            let shape = self.job.shape;
            let (n, bit, lanes) = (shape.part[MU], shape.bit[MU], shape.lanes);
            let link_at = |site: usize, chunk: usize| {
                self.job.links.add((4 * site + MU) * self.job.reals * lanes + chunk * P::LANES)
            };
            let spinor = |site: usize, chunk: usize| {
                self.job.v.add(site * COMPONENTS * self.step + column * lanes + chunk * P::LANES)
            };
            // A bit beyond the pack's lanes exchanges whole packs.
            let other = chunk ^ (bit / P::LANES);
            let sign = |way: usize| {
                let mut signs = [<P::Real as Default>::default(); 16];
                for l in 0..P::LANES {
                    signs[l] = P::Real::from_f64(shape.enter[MU][way][chunk * P::LANES + l]);
                }
                P::load(signs.as_ptr())
            };
            self.ahead::<MU, N>(site + 1, stride, chunk, column);
            // Forward: the neighbour's lanes come here, then the link of this site.
            let edge = x + 1 == n;
            let (there, its) =
                if edge { (site + stride - n * stride, other) } else { (site + stride, chunk) };
            let mut h = project::<P, MU>(spinor(there, its), self.step, self.im, self.forward);
            if edge {
                let sign = sign(0);
                // What would have come from beyond the box is zero so far. No closures and no iterators over packs:
                // what the compiler does not inline has not the instructions that it needs.
                let came = self.came::<MU>(true, site, stride, chunk, column);
                for spin in 0..2 {
                    for colour in 0..3 {
                        h[spin][colour] = cross(h[spin][colour], bit, sign);
                        if let Some(came) = &came {
                            h[spin][colour] = h[spin][colour].add(came[spin][colour]);
                        }
                    }
                }
            }
            let u = link::<P, N>(link_at(site, chunk), lanes);
            through::<P, MU, false>(sum, &u, &h, self.forward, None);
            // Backward: the product is made in the neighbour's lanes, where its link is.
            let edge = x == 0;
            let (there, its) =
                if edge { (site + n * stride - stride, other) } else { (site - stride, chunk) };
            let h = project::<P, MU>(spinor(there, its), self.step, self.im, self.backward);
            let u = link::<P, N>(link_at(there, its), lanes);
            let turn = if edge { Some((bit, sign(1))) } else { None };
            through::<P, MU, true>(sum, &u, &h, self.backward, turn);
            if edge && let Some(came) = self.came::<MU>(false, site, stride, chunk, column) {
                for i in 0..3 {
                    complete::<P, MU>(sum, i, [came[0][i], came[1][i]], self.backward);
                }
            }
        }
    }

    /// The half-spinors that have come through a face to a site, zero in lanes whose sites are elsewhere; none where
    /// the box has no neighbour.
    #[inline(always)]
    unsafe fn came<const MU: usize>(
        &self,
        upper: bool,
        site: usize,
        stride: usize,
        chunk: usize,
        column: usize,
    ) -> Option<HalfSpinor<P>> {
        let (job, shape) = (self.job, self.job.shape);
        let from = job.came[MU][usize::from(upper)];
        if from.is_null() {
            return None;
        }
        let across = shape.across(MU, upper, chunk, P::LANES)?;
        let lanes = shape.lanes_across(MU);
        let place = site % stride + site / (stride * shape.part[MU]) * stride;
        // SAFETY: a face has as many places as sites across it, with all columns.
        unsafe {
            let base = from.add((place * job.columns + column) * COMPONENTS * lanes + across.at);
            // Lanes between the runs stay zero.
            let mut pack = [<P::Real as Default>::default(); 16];
            let mut h = [[C::zero(); 3]; 2];
            for k in 0..6 {
                let re = arrived(base.add(2 * k * lanes), across, &mut pack);
                let im = arrived(base.add((2 * k + 1) * lanes), across, &mut pack);
                h[k / 3][k % 3] = C { re, im };
            }
            Some(h)
        }
    }

    /// What leaves the box in a direction, at some places across it.
    #[inline(always)]
    unsafe fn leave<const MU: usize, const N: usize>(
        &self,
        upper: bool,
        range: Range<usize>,
        to: &mut [P::Real],
    ) {
        let (job, shape) = (self.job, self.job.shape);
        let stride: usize = shape.part[..MU].iter().product();
        let (n, lanes, of_face) = (shape.part[MU], shape.lanes, shape.lanes_across(MU));
        // SAFETY: sites are inside the part, chunks inside the lanes.
        unsafe {
            let s = if upper { self.backward } else { self.forward };
            let sign = P::splat(P::Real::from_f64(shape.leave[MU][usize::from(upper)]));
            for (place, to) in range.zip(to.chunks_exact_mut(job.columns * COMPONENTS * of_face)) {
                let first = place % stride + place / stride * stride * n;
                let site = if upper { first + (n - 1) * stride } else { first };
                for (column, to) in to.chunks_exact_mut(COMPONENTS * of_face).enumerate() {
                    for chunk in 0..lanes / P::LANES {
                        let Some(across) = shape.across(MU, upper, chunk, P::LANES) else { continue };
                        let base = site * COMPONENTS * self.step + column * lanes + chunk * P::LANES;
                        let h = project::<P, MU>(job.v.add(base), self.step, self.im, s);
                        let u = link::<P, N>(
                            job.links.add((4 * site + MU) * N * lanes + chunk * P::LANES),
                            lanes,
                        );
                        for i in 0..3 {
                            // Only what goes upwards meets the link of this site.
                            let r = if upper { times::<P, true>(&u, &h, i) } else { [h[0][i], h[1][i]] };
                            for spin in 0..2 {
                                let k = 2 * (3 * spin + i);
                                let (re, im) = (r[spin].re.mul(sign), r[spin].im.mul(sign));
                                depart(re, across, &mut to[k * of_face + across.at..]);
                                depart(im, across, &mut to[(k + 1) * of_face + across.at..]);
                            }
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// As for [`Register`].
    #[inline(always)]
    unsafe fn work<const N: usize>(&self, work: WilsonTask<'_, P::Real>) {
        // SAFETY: the caller's promise.
        unsafe {
            match work {
                WilsonTask::Sites { column, range, sums } => self.sites::<N>(column, range, sums),
                WilsonTask::Leave { face: (mu, upper), range, to } => match mu {
                    0 => self.leave::<0, N>(upper, range, to),
                    1 => self.leave::<1, N>(upper, range, to),
                    2 => self.leave::<2, N>(upper, range, to),
                    _ => self.leave::<3, N>(upper, range, to),
                },
            }
        }
    }

    /// Asks for what a site will read in a direction and the caches have not seen since it was a neighbour of another:
    /// links, the spinor ahead, and the links behind where a plane or more was walked since.
    #[inline(always)]
    fn ahead<const MU: usize, const N: usize>(
        &self,
        site: usize,
        stride: usize,
        chunk: usize,
        column: usize,
    ) {
        let (job, lanes) = (self.job, self.job.shape.lanes);
        let links = |site: usize| {
            let at = job.links.wrapping_add((4 * site + MU) * N * lanes + chunk * P::LANES);
            (0..N).for_each(|k| fetch(at.wrapping_add(k * lanes)));
        };
        links(site);
        if MU > 0 {
            let there = (site + stride) * COMPONENTS * self.step + column * lanes + chunk * P::LANES;
            let at = job.v.wrapping_add(there);
            (0..2 * COMPONENTS).for_each(|k| fetch(at.wrapping_add(k * self.im)));
        }
        if MU > 1 {
            links(site.saturating_sub(stride));
        }
    }

    #[inline(always)]
    unsafe fn sites<const N: usize>(&self, column: usize, range: Range<usize>, sums: &mut [f64]) {
        let job = self.job;
        let shape = job.shape;
        let lanes = shape.lanes;
        let stride =
            [1, shape.part[0], shape.part[0] * shape.part[1], shape.part[0] * shape.part[1] * shape.part[2]];
        let real = |x: f64| P::Real::from_f64(x);
        let mixed = shape.odd.iter().any(|&odd| odd);
        // SAFETY: the pointers are to vectors and links of this shape.
        unsafe {
            let lower = if job.gamma5 { -1.0 } else { 1.0 };
            let hop = [P::splat(real(-0.5 * job.alpha)), P::splat(real(-0.5 * job.alpha * lower))];
            let own = [
                P::splat(real(job.alpha * job.diagonal + job.beta)),
                P::splat(real(job.alpha * job.diagonal * lower + job.beta)),
            ];
            let gamma = P::splat(real(job.gamma));
            for site in range {
                let mut rest = site;
                let x = shape.part.map(|n| {
                    let x = rest % n;
                    rest /= n;
                    x
                });
                let even = x.iter().sum::<usize>() % 2 == 0;
                let wanted = |even: bool| match job.sites {
                    SiteParity::All => true,
                    SiteParity::Even => even,
                    SiteParity::Odd => !even,
                };
                if !mixed && !wanted(even) {
                    continue;
                }
                for chunk in 0..lanes / P::LANES {
                    let mut sum = [[C::zero(); 3]; 4];
                    self.hops::<0, N>(&mut sum, site, x[0], stride[0], chunk, column);
                    self.hops::<1, N>(&mut sum, site, x[1], stride[1], chunk, column);
                    self.hops::<2, N>(&mut sum, site, x[2], stride[2], chunk, column);
                    self.hops::<3, N>(&mut sum, site, x[3], stride[3], chunk, column);
                    let base = site * COMPONENTS * self.step + column * lanes + chunk * P::LANES;
                    let zero = P::splat(Default::default());
                    let (mut vv, mut wv) = (zero, zero);
                    for k in 0..COMPONENTS {
                        let (spin, colour) = (k / 3, k % 3);
                        for part in 0..2 {
                            let at = base + k * self.step + part * self.im;
                            let hops = if part == 0 { sum[spin][colour].re } else { sum[spin][colour].im };
                            let v = P::load(job.v.add(at));
                            let mut y = hop[spin / 2].fma(hops, own[spin / 2].mul(v));
                            if job.gamma != 0.0 {
                                y = gamma.fma(P::load(job.w.add(at)), y);
                            }
                            for &(factor, x) in &job.plus[..job.added] {
                                y = P::splat(factor).fma(P::load(x.add(at)), y);
                            }
                            if mixed && job.sites != SiteParity::All {
                                for l in 0..P::LANES {
                                    if !wanted(even != shape.odd[chunk * P::LANES + l]) {
                                        continue;
                                    }
                                    let mut computed = [<P::Real as Default>::default(); 16];
                                    y.store(computed.as_mut_ptr());
                                    *job.w.add(at + l) = computed[l];
                                }
                            } else if job.stream {
                                y.stream(job.w.add(at));
                            } else {
                                y.store(job.w.add(at));
                            }
                            if job.dots {
                                vv = v.fma(v, vv);
                                wv = v.fma(y, wv);
                            }
                        }
                    }
                    if job.dots {
                        sums[column] += vv.total();
                        sums[job.columns + column] += wv.total();
                    }
                }
            }
        }
    }
}

/// # Safety
/// As for [`Register`].
#[inline(always)]
unsafe fn start<P: Register>(job: &WilsonPass<'_, P::Real>, work: WilsonTask<'_, P::Real>) {
    // SAFETY: the caller's promise.
    unsafe {
        let sign = |x: f64| P::splat(P::Real::from_f64(if job.adjoint { -x } else { x }));
        let im = job.columns * job.shape.lanes;
        let run = PackConstants::<P> { job, step: 2 * im, im, forward: sign(-1.0), backward: sign(1.0) };
        match job.reals {
            18 => run.work::<18>(work),
            12 => run.work::<12>(work),
            _ => run.work::<8>(work),
        }
    }
}

/// Kernels compiled for each set of instructions.
macro_rules! compiled {
    ($name:ident, $pack:ty, $features:literal) => {
        #[cfg(all(target_arch = "x86_64", not(test)))]
        #[target_feature(enable = $features)]
        unsafe fn $name(
            job: &WilsonPass<'_, <$pack as Register>::Real>,
            work: WilsonTask<'_, <$pack as Register>::Real>,
        ) {
            // SAFETY: the instructions are enabled here.
            unsafe { start::<$pack>(job, work) }
            // Stores past the caches are ordered before the threads meet.
            std::arch::x86_64::_mm_sfence();
        }
    };
}

compiled!(double_512, std::arch::x86_64::__m512d, "avx512f,avx512dq,avx512vl,fma,avx2");
compiled!(single_512, std::arch::x86_64::__m512, "avx512f,avx512dq,avx512vl,fma,avx2");
compiled!(double_256, std::arch::x86_64::__m256d, "avx2,fma");
compiled!(single_256, std::arch::x86_64::__m256, "avx2,fma");

/// Packs of either precision.
pub(super) trait Packed: BlockReal {
    /// WilsonTask with the widest pack that the processor has and the lanes fill.
    fn run(isa: Isa, job: &WilsonPass<'_, Self>, work: WilsonTask<'_, Self>);
}

macro_rules! packed {
    ($t:ty, $wide:ident $wide_lanes:literal, $narrow:ident $narrow_lanes:literal) => {
        impl Packed for $t {
            fn run(isa: Isa, job: &WilsonPass<'_, $t>, work: WilsonTask<'_, $t>) {
                #[cfg(all(target_arch = "x86_64", not(test)))]
                {
                    let lanes = job.shape.lanes;
                    // SAFETY: the processor has the instructions, as `isa` says, and packs divide the lanes.
                    unsafe {
                        if isa >= Isa::Avx512 && lanes >= $wide_lanes {
                            return $wide(job, work);
                        }
                        if isa >= Isa::Avx2 && lanes >= $narrow_lanes {
                            return $narrow(job, work);
                        }
                    }
                }
                let _ = isa;
                // SAFETY: single reals need no instructions.
                unsafe { start::<$t>(job, work) }
            }
        }
    };
}

packed!(f64, double_512 8, double_256 4);
packed!(f32, single_512 16, single_256 8);
