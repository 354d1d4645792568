//! One site of the Wilson-Dirac operator in all lanes: half-spinor projection, links from 18, 12 or 8 reals, products
//! with them, and the sum with whatever vectors a pass adds.

use std::ops::Range;

use super::Isa;
use super::block::Lane;
use super::simd::{Register, fetch};
use super::wilson_shape::{MOST_ADDED, WilsonShape};
use crate::backend::matrix::wilson::{COMPONENTS, Sites};
use crate::number::Real;

/// What a pass computes: `w = alpha A v + beta v + gamma w + sum_i f_i x_i`. The pointers are to vectors of one shape;
/// `w` is none of the others, and workers write different sites of it.
pub(super) struct Job<'a, F> {
    pub shape: &'a WilsonShape,
    pub links: *const F,
    pub reals: usize,
    pub columns: usize,
    pub alpha: f64,
    pub diagonal: f64,
    pub gamma5: bool,
    pub adjoint: bool,
    pub sites: Sites,
    pub beta: f64,
    pub gamma: f64,
    pub v: *const F,
    pub w: *mut F,
    pub plus: [(F, *const F); MOST_ADDED],
    pub added: usize,
    pub dots: bool,
    pub stream: bool,
}

// SAFETY: workers read the vectors and write disjoint sites of `w`, as the type's promise says.
unsafe impl<F: Send> Send for Job<'_, F> {}
// SAFETY: as above.
unsafe impl<F: Sync> Sync for Job<'_, F> {}

/// A pack of complex numbers.
#[derive(Clone, Copy)]
struct C<P> {
    re: P,
    im: P,
}

/// Two spins of three colours.
type Half<P> = [[C<P>; 3]; 2];

impl<P: Register> C<P> {
    /// # Safety
    /// As for [`Register`]; so below.
    #[inline(always)]
    unsafe fn load(at: *const P::Real, im: usize) -> Self {
        // SAFETY: the caller's promise; so below.
        unsafe { C { re: P::load(at), im: P::load(at.add(im)) } }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: as above.
        unsafe {
            let z = P::splat(Default::default());
            C { re: z, im: z }
        }
    }

    /// `self + s b` with a real pack.
    #[inline(always)]
    unsafe fn plus(self, s: P, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: s.fma(b.re, self.re), im: s.fma(b.im, self.im) } }
    }

    /// `self - s b`.
    #[inline(always)]
    unsafe fn minus(self, s: P, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: s.nma(b.re, self.re), im: s.nma(b.im, self.im) } }
    }

    /// `self + i s b`.
    #[inline(always)]
    unsafe fn plus_i(self, s: P, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: s.nma(b.im, self.re), im: s.fma(b.re, self.im) } }
    }

    /// `self - i s b`.
    #[inline(always)]
    unsafe fn minus_i(self, s: P, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: s.fma(b.im, self.re), im: s.nma(b.re, self.im) } }
    }

    #[inline(always)]
    unsafe fn add(self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: self.re.add(b.re), im: self.im.add(b.im) } }
    }

    #[inline(always)]
    unsafe fn mul(self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: self.im.nma(b.im, self.re.mul(b.re)), im: self.im.fma(b.re, self.re.mul(b.im)) } }
    }

    /// `self + a b`.
    #[inline(always)]
    unsafe fn mla(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            C { re: a.im.nma(b.im, a.re.fma(b.re, self.re)), im: a.im.fma(b.re, a.re.fma(b.im, self.im)) }
        }
    }

    /// `self + conj(a) b`.
    #[inline(always)]
    unsafe fn mla_conj(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            C { re: a.im.fma(b.im, a.re.fma(b.re, self.re)), im: a.im.nma(b.re, a.re.fma(b.im, self.im)) }
        }
    }

    /// `conj(a b - c d)`.
    #[inline(always)]
    unsafe fn cross(a: Self, b: Self, c: Self, d: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            let re = a.re.mul(b.re);
            let re = c.re.nma(d.re, a.im.nma(b.im, re));
            let im = c.re.mul(d.im);
            let im = a.im.nma(b.re, a.re.nma(b.im, c.im.fma(d.re, im)));
            C { re: c.im.fma(d.im, re), im }
        }
    }
}

/// The rows of a link from `N` packs of reals, `lanes` reals apart.
#[inline(always)]
unsafe fn link<P: Register, const N: usize>(at: *const P::Real, lanes: usize) -> [C<P>; 9] {
    // SAFETY: the caller's promise.
    unsafe {
        let z = |k: usize| C { re: P::load(at.add(2 * k * lanes)), im: P::load(at.add((2 * k + 1) * lanes)) };
        let mut u = [C::zero(); 9];
        match N {
            18 => {
                for (k, u) in u.iter_mut().enumerate() {
                    *u = z(k);
                }
                return u;
            }
            12 => {
                for (k, u) in u.iter_mut().take(6).enumerate() {
                    *u = z(k);
                }
            }
            _ => {
                // See `decode8` in backend/matrix/wilson.rs.
                let real = |k: usize| P::load(at.add(k * lanes));
                let one = P::splat(P::Real::from_f64(1.0));
                let two = one.add(one);
                let (a2, a3, t, y) = (z(0), z(1), real(4), [real(5), real(6), real(7)]);
                let rest = a2.im.nma(a2.im, a2.re.nma(a2.re, one));
                let rest = a3.im.nma(a3.im, a3.re.nma(a3.re, rest));
                // Rounding may leave less than nothing; the square keeps the root real, and its error was measured.
                let modulus = rest.mul(rest).sqrt().sqrt();
                let tt = t.mul(t);
                let inverse = one.div(one.add(tt));
                let half = C { re: one.sub(tt).mul(inverse), im: two.mul(t).mul(inverse) };
                let phase = half.mul(half);
                let y2 = y[2].fma(y[2], y[1].fma(y[1], y[0].mul(y[0])));
                let scale = one.div(one.add(y2));
                let twice = two.mul(scale);
                let none = P::splat(Default::default());
                let back = C { re: half.re, im: none.sub(half.im) };
                let alpha = C { re: one.sub(y2).mul(scale), im: y[2].mul(twice) }.mul(back);
                let beta = C { re: y[1].mul(twice), im: y[0].mul(twice) }.mul(back);
                let along = C::zero().mla_conj(a2, alpha).mla_conj(a3, beta);
                let share = none.sub(one.div(one.add(modulus)));
                let kappa = C { re: along.re.mul(share), im: along.im.mul(share) };
                u[0] = C { re: phase.re.mul(modulus), im: phase.im.mul(modulus) };
                (u[1], u[2]) = (a2, a3);
                let first = along.mul(phase);
                u[3] = C { re: none.sub(first.re), im: none.sub(first.im) };
                u[4] = alpha.mla(kappa, a2);
                u[5] = beta.mla(kappa, a3);
            }
        }
        u[6] = C::cross(u[1], u[5], u[2], u[4]);
        u[7] = C::cross(u[2], u[3], u[0], u[5]);
        u[8] = C::cross(u[0], u[4], u[1], u[3]);
        u
    }
}

/// The upper two spins of (1 + s g_mu) psi.
#[inline(always)]
unsafe fn project<P: Register, const MU: usize>(
    psi: *const P::Real,
    step: usize,
    im: usize,
    s: P,
) -> Half<P> {
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

/// Takes half-spinors through a link, `U h` or `U^+ h`, and adds all four spins of (1 + s g_mu) that follow; colour by
/// colour, so that few numbers are in flight. `turn` is what a product undergoes that crosses a cut.
#[inline(always)]
unsafe fn through<P: Register, const MU: usize, const DAGGER: bool>(
    sum: &mut [[C<P>; 3]; 4],
    u: &[C<P>; 9],
    h: &Half<P>,
    s: P,
    turn: Option<(usize, P)>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        for i in 0..3 {
            let mut r = [C::zero(); 2];
            for spin in 0..2 {
                let h = &h[spin];
                r[spin] = if DAGGER {
                    C::zero().mla_conj(u[i], h[0]).mla_conj(u[3 + i], h[1]).mla_conj(u[6 + i], h[2])
                } else {
                    u[3 * i].mul(h[0]).mla(u[3 * i + 1], h[1]).mla(u[3 * i + 2], h[2])
                };
                if let Some((bit, sign)) = turn {
                    r[spin] = cross(r[spin], bit, sign);
                }
            }
            let [a, b] = r;
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

/// Constants of a run in packs.
struct Run<'a, P: Register> {
    job: &'a Job<'a, P::Real>,
    /// Reals between the rows of a vector, and from a real part to its imaginary part.
    step: usize,
    im: usize,
    forward: P,
    backward: P,
}

impl<P: Register> Run<'_, P> {
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
                // No closures and no iterators over packs: what the compiler does not inline has not the instructions that it needs.
                for spin in 0..2 {
                    for colour in 0..3 {
                        h[spin][colour] = cross(h[spin][colour], bit, sign);
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
        }
    }

    /// Asks for what a site will read in a direction and the caches have not seen since it was a neighbour of another: links,
    /// the spinor ahead, and the links behind where a plane or more was walked since.
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
                    Sites::All => true,
                    Sites::Even => even,
                    Sites::Odd => !even,
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
                            if mixed && job.sites != Sites::All {
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
unsafe fn start<P: Register>(job: &Job<'_, P::Real>, column: usize, range: Range<usize>, sums: &mut [f64]) {
    // SAFETY: the caller's promise.
    unsafe {
        let sign = |x: f64| P::splat(P::Real::from_f64(if job.adjoint { -x } else { x }));
        let im = job.columns * job.shape.lanes;
        let run = Run::<P> { job, step: 2 * im, im, forward: sign(-1.0), backward: sign(1.0) };
        match job.reals {
            18 => run.sites::<18>(column, range, sums),
            12 => run.sites::<12>(column, range, sums),
            _ => run.sites::<8>(column, range, sums),
        }
    }
}

/// Kernels compiled for each set of instructions.
macro_rules! compiled {
    ($name:ident, $pack:ty, $features:literal) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        unsafe fn $name(
            job: &Job<'_, <$pack as Register>::Real>,
            column: usize,
            range: Range<usize>,
            sums: &mut [f64],
        ) {
            // SAFETY: the instructions are enabled here.
            unsafe { start::<$pack>(job, column, range, sums) }
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
pub(super) trait Packed: Lane {
    /// The sites of a range, with the widest pack that the processor has and the lanes fill.
    fn run(isa: Isa, job: &Job<'_, Self>, column: usize, range: Range<usize>, sums: &mut [f64]);
}

macro_rules! packed {
    ($t:ty, $wide:ident $wide_lanes:literal, $narrow:ident $narrow_lanes:literal) => {
        impl Packed for $t {
            fn run(isa: Isa, job: &Job<'_, $t>, column: usize, range: Range<usize>, sums: &mut [f64]) {
                #[cfg(target_arch = "x86_64")]
                {
                    let lanes = job.shape.lanes;
                    // SAFETY: the processor has the instructions, as `isa` says, and packs divide the lanes.
                    unsafe {
                        if isa >= Isa::Avx512 && lanes >= $wide_lanes {
                            return $wide(job, column, range, sums);
                        }
                        if isa >= Isa::Avx2 && lanes >= $narrow_lanes {
                            return $narrow(job, column, range, sums);
                        }
                    }
                }
                let _ = isa;
                // SAFETY: single reals need no instructions.
                unsafe { start::<$t>(job, column, range, sums) }
            }
        }
    };
}

packed!(f64, double_512 8, double_256 4);
packed!(f32, single_512 16, single_256 8);

/// The sites of a range.
pub(super) fn run<F: Packed>(
    isa: Isa,
    job: &Job<'_, F>,
    column: usize,
    range: Range<usize>,
    sums: &mut [f64],
) {
    F::run(isa, job, column, range, sums)
}
