//! Neighbouring lanes that are computed together: vector registers where the processor has them, arrays elsewhere.
//! Left to arrays alone, the compiler cuts wide ones into registers of several sizes.

use super::Isa;
use super::simd::{LaneTurn, Register};
use crate::number::Real;

/// `WIDTH` neighbouring lanes.
pub(in crate::backend) trait Pack<F>: Copy {
    const WIDTH: usize;
    /// The same number in every lane.
    fn splat(x: F) -> Self;
    /// # Safety
    /// `WIDTH` numbers from `at` on must be readable.
    unsafe fn load(at: *const F) -> Self;
    /// # Safety
    /// `WIDTH` numbers from `at` on must be writable, and nobody else's.
    unsafe fn store(self, at: *mut F);
    /// `self * b + c`.
    fn mla(self, b: Self, c: Self) -> Self;
    /// `self * b`.
    fn mul(self, b: Self) -> Self;
    /// Neighbouring lanes change places, two by two; a single lane stays.
    fn swap(self) -> Self;
    /// In every two neighbouring lanes, the number of the first.
    fn firsts(self) -> Self;
    /// In every two neighbouring lanes, the number of the second.
    fn seconds(self) -> Self;
    /// Two neighbouring numbers from each of `WIDTH / 2` places.
    ///
    /// # Safety
    /// `WIDTH` is even, there are as many places, and two numbers must be readable from each.
    unsafe fn pairs(places: *const *const F) -> Self;
    /// The sum of the first lanes of all pairs, and that of the second ones.
    fn pair_sums(self) -> [F; 2];
    /// Lanes among which [`Pack::permute`] takes an instruction a register; 0 if it does nothing.
    const TURNED: usize = 0;
    /// In every so many lanes, each takes the number that a turn says. A pack of four lanes is one `half` of the eight.
    #[inline(always)]
    fn permute(self, _: &LaneTurn, _half: usize) -> Self {
        self
    }
    /// Half as many numbers from `at` on, each in two neighbouring lanes; a single lane is never filled so.
    ///
    /// # Safety
    /// `WIDTH / 2` numbers from `at` on must be readable.
    unsafe fn twice(at: *const F) -> Self;
    /// Adds each lane to its sum.
    fn add_to(self, sums: &mut [f64]);
}

/// Lanes without a register of their own. Without the instruction, a fused multiply-add is a slow library call.
#[derive(Clone, Copy)]
pub(in crate::backend) struct PlainPack<F, const N: usize, const FMA: bool>([F; N]);

impl<F: Real, const N: usize, const FMA: bool> Pack<F> for PlainPack<F, N, FMA> {
    const WIDTH: usize = N;
    #[inline(always)]
    fn splat(x: F) -> Self {
        PlainPack([x; N])
    }
    #[inline(always)]
    unsafe fn load(at: *const F) -> Self {
        // SAFETY: the caller's promise.
        PlainPack(unsafe { *at.cast::<[F; N]>() })
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut F) {
        // SAFETY: the caller's promise.
        unsafe { *at.cast::<[F; N]>() = self.0 }
    }
    #[inline(always)]
    fn mla(self, b: Self, mut c: Self) -> Self {
        for k in 0..N {
            c.0[k] = if FMA { self.0[k].fma(b.0[k], c.0[k]) } else { self.0[k] * b.0[k] + c.0[k] };
        }
        c
    }
    #[inline(always)]
    fn mul(mut self, b: Self) -> Self {
        for k in 0..N {
            self.0[k] = self.0[k] * b.0[k];
        }
        self
    }
    #[inline(always)]
    unsafe fn twice(at: *const F) -> Self {
        // SAFETY: the caller's promise.
        PlainPack(std::array::from_fn(|l| unsafe { *at.add(l / 2) }))
    }
    #[inline(always)]
    fn swap(mut self) -> Self {
        self.0.as_chunks_mut::<2>().0.iter_mut().for_each(|pair| pair.swap(0, 1));
        self
    }
    #[inline(always)]
    fn firsts(mut self) -> Self {
        self.0.as_chunks_mut::<2>().0.iter_mut().for_each(|pair| pair[1] = pair[0]);
        self
    }
    #[inline(always)]
    fn seconds(mut self) -> Self {
        self.0.as_chunks_mut::<2>().0.iter_mut().for_each(|pair| pair[0] = pair[1]);
        self
    }
    #[inline(always)]
    unsafe fn pairs(places: *const *const F) -> Self {
        // SAFETY: the caller's promise.
        PlainPack(std::array::from_fn(|l| unsafe { *(*places.add(l / 2)).add(l % 2) }))
    }
    #[inline(always)]
    fn pair_sums(self) -> [F; 2] {
        let mut sums = [F::default(); 2];
        for k in 0..N {
            sums[k % 2] += self.0[k];
        }
        sums
    }
    #[inline(always)]
    fn add_to(self, sums: &mut [f64]) {
        for (sum, x) in sums.iter_mut().zip(self.0) {
            *sum += x.to_f64();
        }
    }
}

/// A register is a pack. Its functions are inlined into code that was compiled for its instruction set and is entered
/// only where `Isa::detect` found that.
impl<R: Register> Pack<R::Real> for R {
    const WIDTH: usize = R::LANES;
    #[inline(always)]
    fn splat(x: R::Real) -> Self {
        // SAFETY: the instruction is there (see above); so below.
        unsafe { R::splat(x) }
    }
    #[inline(always)]
    unsafe fn load(at: *const R::Real) -> Self {
        // SAFETY: the caller's promise.
        unsafe { R::load(at) }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut R::Real) {
        // SAFETY: the caller's promise.
        unsafe { R::store(self, at) }
    }
    #[inline(always)]
    fn mla(self, b: Self, c: Self) -> Self {
        // SAFETY: as above.
        unsafe { self.fma(b, c) }
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { R::mul(self, b) }
    }
    #[inline(always)]
    fn swap(self) -> Self {
        // SAFETY: as above.
        unsafe { R::swap(self, 1) }
    }
    #[inline(always)]
    fn firsts(self) -> Self {
        // SAFETY: as above.
        unsafe { R::firsts(self) }
    }
    #[inline(always)]
    fn seconds(self) -> Self {
        // SAFETY: as above.
        unsafe { R::seconds(self) }
    }
    #[inline(always)]
    unsafe fn pairs(places: *const *const R::Real) -> Self {
        // SAFETY: the caller's promise.
        unsafe { R::pairs(places) }
    }
    #[inline(always)]
    fn pair_sums(self) -> [R::Real; 2] {
        // SAFETY: as above.
        unsafe { R::pair_sums(self) }
    }
    #[inline(always)]
    unsafe fn twice(at: *const R::Real) -> Self {
        // SAFETY: the caller's promise.
        unsafe { R::twice(at) }
    }
    const TURNED: usize = R::TURNED;
    #[inline(always)]
    fn permute(self, turn: &LaneTurn, half: usize) -> Self {
        // SAFETY: as above.
        unsafe { R::permute(self, turn, half) }
    }
    #[inline(always)]
    fn add_to(self, sums: &mut [f64]) {
        let mut lanes = [R::Real::default(); 16];
        // SAFETY: as above; no register has more than sixteen lanes.
        unsafe { R::store(self, lanes.as_mut_ptr()) };
        for (sum, x) in sums.iter_mut().zip(&lanes[..R::LANES]) {
            *sum += x.to_f64();
        }
    }
}

/// Two packs side by side.
#[derive(Clone, Copy)]
#[cfg_attr(any(not(target_arch = "x86_64"), test), allow(dead_code))]
pub(in crate::backend) struct PackPair<P>(P, P);

impl<F: Real, P: Pack<F>> Pack<F> for PackPair<P> {
    const WIDTH: usize = 2 * P::WIDTH;
    #[inline(always)]
    fn splat(x: F) -> Self {
        PackPair(P::splat(x), P::splat(x))
    }
    #[inline(always)]
    unsafe fn load(at: *const F) -> Self {
        // SAFETY: the caller's promise, for each half.
        unsafe { PackPair(P::load(at), P::load(at.add(P::WIDTH))) }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut F) {
        // SAFETY: the caller's promise, for each half.
        unsafe {
            self.0.store(at);
            self.1.store(at.add(P::WIDTH));
        }
    }
    #[inline(always)]
    fn mla(self, b: Self, c: Self) -> Self {
        PackPair(self.0.mla(b.0, c.0), self.1.mla(b.1, c.1))
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        PackPair(self.0.mul(b.0), self.1.mul(b.1))
    }
    #[inline(always)]
    fn swap(self) -> Self {
        PackPair(self.0.swap(), self.1.swap())
    }
    #[inline(always)]
    fn firsts(self) -> Self {
        PackPair(self.0.firsts(), self.1.firsts())
    }
    #[inline(always)]
    fn seconds(self) -> Self {
        PackPair(self.0.seconds(), self.1.seconds())
    }
    #[inline(always)]
    unsafe fn pairs(places: *const *const F) -> Self {
        // SAFETY: the caller's promise, for each half.
        unsafe { PackPair(P::pairs(places), P::pairs(places.add(P::WIDTH / 2))) }
    }
    #[inline(always)]
    fn pair_sums(self) -> [F; 2] {
        let (low, high) = (self.0.pair_sums(), self.1.pair_sums());
        [low[0] + high[0], low[1] + high[1]]
    }
    #[inline(always)]
    unsafe fn twice(at: *const F) -> Self {
        // SAFETY: the caller's promise, for each half.
        unsafe { PackPair(P::twice(at), P::twice(at.add(P::WIDTH / 2))) }
    }
    /// Two registers of four are the halves of eight.
    const TURNED: usize = if P::TURNED == 4 && P::WIDTH == 4 { 8 } else { P::TURNED };
    #[inline(always)]
    fn permute(self, turn: &LaneTurn, half: usize) -> Self {
        if P::TURNED == Self::TURNED {
            return PackPair(self.0.permute(turn, half), self.1.permute(turn, half));
        }
        let (low, high) = if turn.across() { (self.1, self.0) } else { (self.0, self.1) };
        PackPair(low.permute(turn, 0), high.permute(turn, 1))
    }
    #[inline(always)]
    fn add_to(self, sums: &mut [f64]) {
        let (low, high) = sums.split_at_mut(P::WIDTH);
        self.0.add_to(low);
        self.1.add_to(high);
    }
}

/// The packs of one instruction set for lanes of type `F`. `Widest` is for real rows, `Wide` for complex ones, which
/// keep twice as many sums in registers. `Beside` is for what lies side by side whatever the width: eight lanes at
/// least, and one register where that has as many, so that loops decide how many sums run at once.
pub(in crate::backend) trait Packs<F> {
    type Beside: Pack<F>;
    type Widest: Pack<F>;
    type Wide: Pack<F>;
    type Eight: Pack<F>;
    type Four: Pack<F>;
    type Two: Pack<F>;
    type One: Pack<F>;
}

/// Work that is compiled for every instruction set and width of pack.
pub(super) trait PackedWork<F> {
    type Output;
    /// Whether it keeps few enough packs in registers for the widest there is.
    const WIDEST: bool;
    /// Does the work with packs `P`; `Q` is the set's `Beside`. Must be `#[inline(always)]`.
    fn at<P: Pack<F>, Q: Pack<F>>(self) -> Self::Output;
}

/// Does the work with the widest pack that divides `width` lanes.
pub(super) fn dispatch<F: Registers, B: PackedWork<F>>(isa: Isa, width: usize, body: B) -> B::Output {
    #[cfg(all(target_arch = "x86_64", not(test)))]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,fma")]
    fn avx512<F, P: Pack<F>, Q: Pack<F>, B: PackedWork<F>>(body: B) -> B::Output {
        body.at::<P, Q>()
    }
    #[cfg(all(target_arch = "x86_64", not(test)))]
    #[target_feature(enable = "avx2,fma")]
    fn avx2<F, P: Pack<F>, Q: Pack<F>, B: PackedWork<F>>(body: B) -> B::Output {
        body.at::<P, Q>()
    }
    fn baseline<F, P: Pack<F>, Q: Pack<F>, B: PackedWork<F>>(body: B) -> B::Output {
        body.at::<P, Q>()
    }
    macro_rules! choose {
        ($set:ty, $run:ident) => {
            match width {
                n if B::WIDEST && n % <<$set as Packs<F>>::Widest as Pack<F>>::WIDTH == 0 => {
                    choose!(@ $set, $run, Widest)
                }
                n if n % <<$set as Packs<F>>::Wide as Pack<F>>::WIDTH == 0 => choose!(@ $set, $run, Wide),
                n if n % 8 == 0 => choose!(@ $set, $run, Eight),
                n if n % 4 == 0 => choose!(@ $set, $run, Four),
                n if n % 2 == 0 => choose!(@ $set, $run, Two),
                _ => choose!(@ $set, $run, One),
            }
        };
        (@ $set:ty, $run:ident, $pack:ident) => {
            $run::<F, <$set as Packs<F>>::$pack, <$set as Packs<F>>::Beside, B>(body)
        };
    }
    match isa {
        // SAFETY: `Isa::detect` found these instructions on this processor.
        #[cfg(all(target_arch = "x86_64", not(test)))]
        Isa::Avx512 => unsafe { choose!(F::Avx512, avx512) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(test)))]
        Isa::Avx2 => unsafe { choose!(F::Avx2, avx2) },
        _ => choose!(Baseline, baseline),
    }
}

/// The packs for lanes of this type, by instruction set.
pub(in crate::backend) trait Registers: Real {
    type Avx512: Packs<Self>;
    type Avx2: Packs<Self>;
}

#[cfg(any(not(target_arch = "x86_64"), test))]
impl<F: Real> Registers for F {
    type Avx512 = Baseline;
    type Avx2 = Baseline;
}

/// The packs of a processor of which nothing is known.
pub(in crate::backend) struct Baseline;

impl<F: Real> Packs<F> for Baseline {
    type Beside = PlainPack<F, 8, false>;
    type Widest = PlainPack<F, 16, false>;
    type Wide = PlainPack<F, 16, false>;
    type Eight = PlainPack<F, 8, false>;
    type Four = PlainPack<F, 4, false>;
    type Two = PlainPack<F, 2, false>;
    type One = PlainPack<F, 1, false>;
}

/// 256-bit registers.
#[cfg(all(target_arch = "x86_64", not(test)))]
pub(in crate::backend) struct Avx2;

/// 512-bit registers.
#[cfg(all(target_arch = "x86_64", not(test)))]
pub(in crate::backend) struct Avx512;

#[cfg(all(target_arch = "x86_64", not(test)))]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Avx2, Avx512, PackPair, Packs, PlainPack, Registers};

    impl Registers for f32 {
        type Avx512 = Avx512;
        type Avx2 = Avx2;
    }

    impl Registers for f64 {
        type Avx512 = Avx512;
        type Avx2 = Avx2;
    }

    impl Packs<f64> for Avx512 {
        type Beside = __m512d;
        type Widest = PackPair<PackPair<__m512d>>;
        type Wide = PackPair<__m512d>;
        type Eight = __m512d;
        type Four = __m256d;
        type Two = __m128d;
        type One = PlainPack<f64, 1, true>;
    }

    impl Packs<f32> for Avx512 {
        type Beside = __m512;
        type Widest = PackPair<__m512>;
        type Wide = __m512;
        type Eight = __m256;
        type Four = __m128;
        type Two = PlainPack<f32, 2, true>;
        type One = PlainPack<f32, 1, true>;
    }

    impl Packs<f64> for Avx2 {
        type Beside = PackPair<__m256d>;
        type Widest = PackPair<PackPair<__m256d>>;
        type Wide = PackPair<__m256d>;
        type Eight = PackPair<__m256d>;
        type Four = __m256d;
        type Two = __m128d;
        type One = PlainPack<f64, 1, true>;
    }

    impl Packs<f32> for Avx2 {
        type Beside = __m256;
        type Widest = PackPair<__m256>;
        type Wide = __m256;
        type Eight = __m256;
        type Four = __m128;
        type Two = PlainPack<f32, 2, true>;
        type One = PlainPack<f32, 1, true>;
    }
}
