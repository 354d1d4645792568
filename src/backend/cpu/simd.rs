//! Registers of reals that one instruction works on. A method is inlined into the kernel that was compiled for its
//! instructions; calling one outside of such a kernel on a processor without them is undefined, hence `unsafe`.

use crate::number::Real;

/// Asks the caches for the line at an address, which may lie anywhere: the processor's own prefetching follows what is
/// read in order, and no further than a page.
#[inline(always)]
pub(in crate::backend) fn fetch<F>(at: *const F) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction belongs to every processor of the architecture and faults at no address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Where each of eight lanes takes its number from, for lanes of 64 and, twice over, of 32 bits, and for two registers
/// of four lanes of 64.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(in crate::backend) struct LaneTurn {
    wide: [i64; 8],
    narrow: [i32; 16],
    halves: [[i32; 8]; 2],
    across: bool,
}

impl LaneTurn {
    /// Lane `l` takes that of lane `from[l]`. All lanes take from their own half, or all from the other.
    pub fn new(from: [usize; 8]) -> LaneTurn {
        let half = |h: usize| std::array::from_fn(|l| (2 * (from[4 * h + l / 2] % 4) + l % 2) as i32);
        LaneTurn {
            wide: from.map(|l| l as i64),
            narrow: std::array::from_fn(|l| (l / 8 * 8 + from[l % 8]) as i32),
            halves: [half(0), half(1)],
            across: from[0] >= 4,
        }
    }

    /// Whether the halves change places.
    #[inline(always)]
    #[cfg_attr(any(not(target_arch = "x86_64"), test), allow(dead_code))]
    pub fn across(&self) -> bool {
        self.across
    }
}

/// A register of neighbouring reals.
pub(in crate::backend) trait Register: Copy {
    type Real: Real;
    /// How many reals a register has.
    const LANES: usize;

    /// # Safety
    /// `at` points to `LANES` reals, and the processor has the instructions of this register; so for all methods.
    unsafe fn load(at: *const Self::Real) -> Self;
    unsafe fn store(self, at: *mut Self::Real);
    /// A store past the caches, to an address that is a multiple of the register's size.
    unsafe fn stream(self, at: *mut Self::Real);
    unsafe fn splat(x: Self::Real) -> Self;
    unsafe fn add(self, b: Self) -> Self;
    unsafe fn sub(self, b: Self) -> Self;
    unsafe fn mul(self, b: Self) -> Self;
    unsafe fn div(self, b: Self) -> Self;
    unsafe fn sqrt(self) -> Self;
    /// `self * b + c`.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// `c - self * b`.
    unsafe fn nma(self, b: Self, c: Self) -> Self;
    /// Lane `l` becomes lane `l ^ bit`, for a power of two below `LANES`.
    unsafe fn swap(self, bit: usize) -> Self;
    /// In every two neighbouring lanes, the number of the first; a single lane stays, as below.
    unsafe fn firsts(self) -> Self;
    /// In every two neighbouring lanes, the number of the second.
    unsafe fn seconds(self) -> Self;
    /// Two neighbouring reals from each of `LANES / 2` places.
    unsafe fn pairs(places: *const *const Self::Real) -> Self;
    /// The sum of the first lanes of all pairs, and that of the second ones.
    unsafe fn pair_sums(self) -> [Self::Real; 2];
    /// The sum of all lanes.
    unsafe fn total(self) -> f64;
    /// Lanes among which [`Register::permute`] takes one instruction; 0 if it does nothing.
    const TURNED: usize = 0;
    /// In every so many lanes, each takes the number that a turn says.
    /// A register of four lanes is one `half` of the eight.
    unsafe fn permute(self, _: &LaneTurn, _half: usize) -> Self {
        self
    }
    /// Half as many reals from `at` on, each in two neighbouring lanes.
    unsafe fn twice(at: *const Self::Real) -> Self {
        let mut lanes = [Self::Real::default(); 16];
        for (l, lane) in lanes[..Self::LANES].iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *lane = unsafe { *at.add(l / 2) };
        }
        // SAFETY: no register has more lanes.
        unsafe { Self::load(lanes.as_ptr()) }
    }
}

macro_rules! scalar {
    ($t:ty) => {
        impl Register for $t {
            type Real = $t;
            const LANES: usize = 1;
            #[inline(always)]
            unsafe fn load(at: *const $t) -> Self {
                // SAFETY: the caller's promise.
                unsafe { *at }
            }
            #[inline(always)]
            unsafe fn store(self, at: *mut $t) {
                // SAFETY: the caller's promise.
                unsafe { *at = self }
            }
            #[inline(always)]
            unsafe fn stream(self, at: *mut $t) {
                // SAFETY: the caller's promise.
                unsafe { *at = self }
            }
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                x
            }
            #[inline(always)]
            unsafe fn add(self, b: Self) -> Self {
                self + b
            }
            #[inline(always)]
            unsafe fn sub(self, b: Self) -> Self {
                self - b
            }
            #[inline(always)]
            unsafe fn mul(self, b: Self) -> Self {
                self * b
            }
            #[inline(always)]
            unsafe fn div(self, b: Self) -> Self {
                self / b
            }
            #[inline(always)]
            unsafe fn sqrt(self) -> Self {
                <$t>::sqrt(self)
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, c: Self) -> Self {
                // Without the instruction a fused product is a call of a library.
                self * b + c
            }
            #[inline(always)]
            unsafe fn nma(self, b: Self, c: Self) -> Self {
                c - self * b
            }
            #[inline(always)]
            unsafe fn swap(self, _: usize) -> Self {
                self
            }
            #[inline(always)]
            unsafe fn firsts(self) -> Self {
                self
            }
            #[inline(always)]
            unsafe fn seconds(self) -> Self {
                self
            }
            #[inline(always)]
            unsafe fn pairs(places: *const *const $t) -> Self {
                // SAFETY: the caller's promise.
                unsafe { **places }
            }
            #[inline(always)]
            unsafe fn pair_sums(self) -> [$t; 2] {
                [self, 0.0]
            }
            #[inline(always)]
            unsafe fn total(self) -> f64 {
                self as f64
            }
        }
    };
}

scalar!(f32);
scalar!(f64);

#[cfg(all(target_arch = "x86_64", not(test)))]
mod x86 {
    use std::arch::x86_64::*;

    use super::{LaneTurn, Register};

    macro_rules! register {
        ($t:ty, $real:ty, $lanes:expr,
         $load:ident $store:ident $stream:ident $splat:ident $add:ident $sub:ident
         $mul:ident $div:ident $sqrt:ident $fma:ident $nma:ident, $swap:expr,
         $firsts:expr, $seconds:expr, $pairs:ident $pair_sums:ident
         $(, $turned:expr, $permute:ident, $twice:ident)?) => {
            impl Register for $t {
                type Real = $real;
                const LANES: usize = $lanes;
                #[inline(always)]
                unsafe fn load(at: *const $real) -> Self {
                    // SAFETY: the caller's promise; so below.
                    unsafe { $load(at) }
                }
                #[inline(always)]
                unsafe fn store(self, at: *mut $real) {
                    // SAFETY: as above.
                    unsafe { $store(at, self) }
                }
                #[inline(always)]
                unsafe fn stream(self, at: *mut $real) {
                    // SAFETY: as above.
                    unsafe { $stream(at, self) }
                }
                #[inline(always)]
                unsafe fn splat(x: $real) -> Self {
                    // SAFETY: as above.
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn add(self, b: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $add(self, b) }
                }
                #[inline(always)]
                unsafe fn sub(self, b: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $sub(self, b) }
                }
                #[inline(always)]
                unsafe fn mul(self, b: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $mul(self, b) }
                }
                #[inline(always)]
                unsafe fn div(self, b: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $div(self, b) }
                }
                #[inline(always)]
                unsafe fn sqrt(self) -> Self {
                    // SAFETY: as above.
                    unsafe { $sqrt(self) }
                }
                #[inline(always)]
                unsafe fn fma(self, b: Self, c: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $fma(self, b, c) }
                }
                #[inline(always)]
                unsafe fn nma(self, b: Self, c: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $nma(self, b, c) }
                }
                #[inline(always)]
                unsafe fn swap(self, bit: usize) -> Self {
                    let f: unsafe fn(Self, usize) -> Self = $swap;
                    // SAFETY: as above.
                    unsafe { f(self, bit) }
                }
                #[inline(always)]
                unsafe fn firsts(self) -> Self {
                    // SAFETY: as above.
                    unsafe { $firsts(self) }
                }
                #[inline(always)]
                unsafe fn seconds(self) -> Self {
                    // SAFETY: as above.
                    unsafe { $seconds(self) }
                }
                #[inline(always)]
                unsafe fn pairs(places: *const *const $real) -> Self {
                    // SAFETY: as above.
                    unsafe { $pairs(places) }
                }
                #[inline(always)]
                unsafe fn pair_sums(self) -> [$real; 2] {
                    // SAFETY: as above.
                    unsafe { $pair_sums(self) }
                }
                #[inline(always)]
                unsafe fn total(self) -> f64 {
                    let mut lanes = [0.0; $lanes];
                    // SAFETY: as above; the array has as many lanes.
                    unsafe { $store(lanes.as_mut_ptr(), self) };
                    lanes.iter().map(|&x: &$real| f64::from(x)).sum()
                }
                $(
                    const TURNED: usize = $turned;
                    #[inline(always)]
                    unsafe fn permute(self, turn: &LaneTurn, half: usize) -> Self {
                        // SAFETY: as above.
                        unsafe { $permute(self, turn, half) }
                    }
                    #[inline(always)]
                    unsafe fn twice(at: *const $real) -> Self {
                        // SAFETY: as above.
                        unsafe { $twice(at) }
                    }
                )?
            }
        };
    }

    /// # Safety
    /// The processor has AVX-512; so below.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn swap_8(x: __m512d, bit: usize) -> __m512d {
        match bit {
            1 => _mm512_permute_pd::<0x55>(x),
            2 => _mm512_permutex_pd::<0x4e>(x),
            _ => _mm512_shuffle_f64x2::<0x4e>(x, x),
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn swap_16(x: __m512, bit: usize) -> __m512 {
        match bit {
            1 => _mm512_permute_ps::<0xb1>(x),
            2 => _mm512_permute_ps::<0x4e>(x),
            4 => _mm512_shuffle_f32x4::<0xb1>(x, x),
            _ => _mm512_shuffle_f32x4::<0x4e>(x, x),
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn permute_8(x: __m512d, turn: &LaneTurn, _half: usize) -> __m512d {
        // SAFETY: eight numbers of 64 bits.
        unsafe { _mm512_permutexvar_pd(_mm512_loadu_si512(turn.wide.as_ptr().cast()), x) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn permute_16(x: __m512, turn: &LaneTurn, _half: usize) -> __m512 {
        // SAFETY: sixteen numbers of 32 bits.
        unsafe { _mm512_permutexvar_ps(_mm512_loadu_si512(turn.narrow.as_ptr().cast()), x) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn twice_8(at: *const f64) -> __m512d {
        let pairs = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
        // SAFETY: four numbers.
        _mm512_permutexvar_pd(pairs, _mm512_castpd256_pd512(unsafe { _mm256_loadu_pd(at) }))
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn twice_16(at: *const f32) -> __m512 {
        let pairs = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        // SAFETY: eight numbers.
        _mm512_permutexvar_ps(pairs, _mm512_castps256_ps512(unsafe { _mm256_loadu_ps(at) }))
    }

    /// # Safety
    /// The processor has AVX2; so below.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn swap_4(x: __m256d, bit: usize) -> __m256d {
        match bit {
            1 => _mm256_permute_pd::<0x5>(x),
            _ => _mm256_permute4x64_pd::<0x4e>(x),
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn swap_8s(x: __m256, bit: usize) -> __m256 {
        match bit {
            1 => _mm256_permute_ps::<0xb1>(x),
            2 => _mm256_permute_ps::<0x4e>(x),
            _ => _mm256_permute2f128_ps::<0x01>(x, x),
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn permute_4(x: __m256d, turn: &LaneTurn, half: usize) -> __m256d {
        // SAFETY: eight numbers of 32 bits.
        let halves = unsafe { _mm256_loadu_si256(turn.halves[half].as_ptr().cast()) };
        _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(x), halves))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn permute_8s(x: __m256, turn: &LaneTurn, _half: usize) -> __m256 {
        // SAFETY: eight numbers of 32 bits.
        _mm256_permutevar8x32_ps(x, unsafe { _mm256_loadu_si256(turn.narrow.as_ptr().cast()) })
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn twice_4(at: *const f64) -> __m256d {
        // SAFETY: two numbers.
        _mm256_permute4x64_pd::<0x50>(_mm256_castpd128_pd256(unsafe { _mm_loadu_pd(at) }))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn twice_8s(at: *const f32) -> __m256 {
        let pairs = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
        // SAFETY: four numbers.
        _mm256_permutevar8x32_ps(_mm256_castps128_ps256(unsafe { _mm_loadu_ps(at) }), pairs)
    }

    /// # Safety
    /// The processor has AVX; so below.
    #[target_feature(enable = "avx")]
    #[inline]
    unsafe fn swap_2(x: __m128d, _: usize) -> __m128d {
        _mm_permute_pd::<0x1>(x)
    }

    #[target_feature(enable = "avx")]
    #[inline]
    unsafe fn swap_4s(x: __m128, bit: usize) -> __m128 {
        match bit {
            1 => _mm_permute_ps::<0xb1>(x),
            _ => _mm_permute_ps::<0x4e>(x),
        }
    }

    #[target_feature(enable = "avx")]
    #[inline]
    unsafe fn pairs_2(places: *const *const f64) -> __m128d {
        // SAFETY: two numbers at each place; so below.
        unsafe { _mm_loadu_pd(*places) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn pairs_4(places: *const *const f64) -> __m256d {
        // SAFETY: as above.
        unsafe { _mm256_set_m128d(pairs_2(places.add(1)), pairs_2(places)) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn pairs_8(places: *const *const f64) -> __m512d {
        // SAFETY: as above.
        let (low, high) = unsafe { (pairs_4(places), pairs_4(places.add(2))) };
        _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low), high)
    }

    /// Two numbers of 32 bits move as one of 64.
    #[target_feature(enable = "avx")]
    #[inline]
    unsafe fn pairs_4s(places: *const *const f32) -> __m128 {
        // SAFETY: as above; these loads need no alignment.
        _mm_castpd_ps(unsafe { _mm_loadh_pd(_mm_load_sd((*places).cast()), (*places.add(1)).cast()) })
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn pairs_8s(places: *const *const f32) -> __m256 {
        // SAFETY: as above.
        unsafe { _mm256_set_m128(pairs_4s(places.add(2)), pairs_4s(places)) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn pairs_16(places: *const *const f32) -> __m512 {
        // SAFETY: as above.
        let (low, high) = unsafe { (pairs_8s(places), pairs_8s(places.add(4))) };
        let low = _mm512_castpd256_pd512(_mm256_castps_pd(low));
        _mm512_castpd_ps(_mm512_insertf64x4::<1>(low, _mm256_castps_pd(high)))
    }

    #[target_feature(enable = "avx")]
    #[inline]
    unsafe fn pair_sums_2(x: __m128d) -> [f64; 2] {
        let mut sums = [0.0; 2];
        // SAFETY: two numbers.
        unsafe { _mm_storeu_pd(sums.as_mut_ptr(), x) };
        sums
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn pair_sums_4(x: __m256d) -> [f64; 2] {
        // SAFETY: the caller's promise; so below.
        unsafe { pair_sums_2(_mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x))) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn pair_sums_8(x: __m512d) -> [f64; 2] {
        // SAFETY: as above.
        unsafe { pair_sums_4(_mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd::<1>(x))) }
    }

    #[target_feature(enable = "avx")]
    #[inline]
    unsafe fn pair_sums_4s(x: __m128) -> [f32; 2] {
        let mut sums = [0.0; 4];
        // SAFETY: four numbers.
        unsafe { _mm_storeu_ps(sums.as_mut_ptr(), _mm_add_ps(x, _mm_movehl_ps(x, x))) };
        [sums[0], sums[1]]
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn pair_sums_8s(x: __m256) -> [f32; 2] {
        // SAFETY: as above.
        unsafe { pair_sums_4s(_mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x))) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn pair_sums_16(x: __m512) -> [f32; 2] {
        let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(x)));
        // SAFETY: as above.
        unsafe { pair_sums_8s(_mm256_add_ps(_mm512_castps512_ps256(x), high)) }
    }

    register!(__m512d, f64, 8,
        _mm512_loadu_pd _mm512_storeu_pd _mm512_stream_pd _mm512_set1_pd _mm512_add_pd _mm512_sub_pd
        _mm512_mul_pd _mm512_div_pd _mm512_sqrt_pd _mm512_fmadd_pd _mm512_fnmadd_pd, swap_8,
        _mm512_movedup_pd, _mm512_permute_pd::<0xff>, pairs_8 pair_sums_8, 8, permute_8, twice_8);
    register!(__m512, f32, 16,
        _mm512_loadu_ps _mm512_storeu_ps _mm512_stream_ps _mm512_set1_ps _mm512_add_ps _mm512_sub_ps
        _mm512_mul_ps _mm512_div_ps _mm512_sqrt_ps _mm512_fmadd_ps _mm512_fnmadd_ps, swap_16,
        _mm512_moveldup_ps, _mm512_movehdup_ps, pairs_16 pair_sums_16, 8, permute_16, twice_16);
    register!(__m256d, f64, 4,
        _mm256_loadu_pd _mm256_storeu_pd _mm256_stream_pd _mm256_set1_pd _mm256_add_pd _mm256_sub_pd
        _mm256_mul_pd _mm256_div_pd _mm256_sqrt_pd _mm256_fmadd_pd _mm256_fnmadd_pd, swap_4,
        _mm256_movedup_pd, _mm256_permute_pd::<0xf>, pairs_4 pair_sums_4, 4, permute_4, twice_4);
    register!(__m256, f32, 8,
        _mm256_loadu_ps _mm256_storeu_ps _mm256_stream_ps _mm256_set1_ps _mm256_add_ps _mm256_sub_ps
        _mm256_mul_ps _mm256_div_ps _mm256_sqrt_ps _mm256_fmadd_ps _mm256_fnmadd_ps, swap_8s,
        _mm256_moveldup_ps, _mm256_movehdup_ps, pairs_8s pair_sums_8s, 8, permute_8s, twice_8s);
    register!(__m128d, f64, 2,
        _mm_loadu_pd _mm_storeu_pd _mm_stream_pd _mm_set1_pd _mm_add_pd _mm_sub_pd
        _mm_mul_pd _mm_div_pd _mm_sqrt_pd _mm_fmadd_pd _mm_fnmadd_pd, swap_2,
        _mm_movedup_pd, _mm_permute_pd::<0x3>, pairs_2 pair_sums_2);
    register!(__m128, f32, 4,
        _mm_loadu_ps _mm_storeu_ps _mm_stream_ps _mm_set1_ps _mm_add_ps _mm_sub_ps
        _mm_mul_ps _mm_div_ps _mm_sqrt_ps _mm_fmadd_ps _mm_fnmadd_ps, swap_4s,
        _mm_moveldup_ps, _mm_movehdup_ps, pairs_4s pair_sums_4s);
}
