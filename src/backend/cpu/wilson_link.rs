//! Packs of complex numbers, and the links of the Wilson-Dirac operator, reconstructed from 18, 12 or 8 reals.

use super::simd::Register;
use crate::number::Real;

/// A pack of complex numbers.
#[derive(Clone, Copy)]
pub(super) struct C<P> {
    pub re: P,
    pub im: P,
}

impl<P: Register> C<P> {
    /// # Safety
    /// As for [`Register`]; so below.
    #[inline(always)]
    pub unsafe fn load(at: *const P::Real, im: usize) -> Self {
        // SAFETY: the caller's promise; so below.
        unsafe { C { re: P::load(at), im: P::load(at.add(im)) } }
    }

    #[inline(always)]
    pub unsafe fn zero() -> Self {
        // SAFETY: as above.
        unsafe {
            let z = P::splat(Default::default());
            C { re: z, im: z }
        }
    }

    /// `self + s b` with a real pack.
    #[inline(always)]
    pub unsafe fn plus(self, s: P, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: s.fma(b.re, self.re), im: s.fma(b.im, self.im) } }
    }

    /// `self - s b`.
    #[inline(always)]
    pub unsafe fn minus(self, s: P, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: s.nma(b.re, self.re), im: s.nma(b.im, self.im) } }
    }

    /// `self + i s b`.
    #[inline(always)]
    pub unsafe fn plus_i(self, s: P, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: s.nma(b.im, self.re), im: s.fma(b.re, self.im) } }
    }

    /// `self - i s b`.
    #[inline(always)]
    pub unsafe fn minus_i(self, s: P, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: s.fma(b.im, self.re), im: s.nma(b.re, self.im) } }
    }

    #[inline(always)]
    pub unsafe fn add(self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: self.re.add(b.re), im: self.im.add(b.im) } }
    }

    #[inline(always)]
    pub unsafe fn mul(self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: self.im.nma(b.im, self.re.mul(b.re)), im: self.im.fma(b.re, self.re.mul(b.im)) } }
    }

    /// `self + a b`.
    #[inline(always)]
    pub unsafe fn mla(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            C { re: a.im.nma(b.im, a.re.fma(b.re, self.re)), im: a.im.fma(b.re, a.re.fma(b.im, self.im)) }
        }
    }

    /// `self + conj(a) b`.
    #[inline(always)]
    pub unsafe fn mla_conj(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            C { re: a.im.fma(b.im, a.re.fma(b.re, self.re)), im: a.im.nma(b.re, a.re.fma(b.im, self.im)) }
        }
    }

    /// `conj(a b - c d)`.
    #[inline(always)]
    pub unsafe fn cross(a: Self, b: Self, c: Self, d: Self) -> Self {
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
pub(super) unsafe fn link<P: Register, const N: usize>(at: *const P::Real, lanes: usize) -> [C<P>; 9] {
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
