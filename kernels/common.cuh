// What all kernels share: complex numbers, packs of lanes, Philox, and sums over a block in a fixed order.
#pragma once
#include <cstdint>

#include "host.cuh"

template <class F>
struct Complex {
    F re, im;
};

using F32 = float;
using F64 = double;
using C32 = Complex<float>;
using C64 = Complex<double>;
HOST_LAYOUT_cuda_Z(Complex<double>);

template <class T>
struct Traits {
    using Real = T;
    static constexpr bool complex = false;
};

template <class F>
struct Traits<Complex<F>> {
    using Real = F;
    static constexpr bool complex = true;
};

__device__ __forceinline__ float mla(float a, float x, float s) { return fmaf(a, x, s); }
__device__ __forceinline__ double mla(double a, double x, double s) { return fma(a, x, s); }

template <class F>
__device__ __forceinline__ Complex<F> mla(F a, Complex<F> x, Complex<F> s) {
    return {mla(a, x.re, s.re), mla(a, x.im, s.im)};
}

template <class F>
__device__ __forceinline__ Complex<F> mla(Complex<F> a, Complex<F> x, Complex<F> s) {
    return {mla(a.re, x.re, mla(-a.im, x.im, s.re)), mla(a.re, x.im, mla(a.im, x.re, s.im))};
}

// conj(a) x + s
__device__ __forceinline__ float cmla(float a, float x, float s) { return fmaf(a, x, s); }
__device__ __forceinline__ double cmla(double a, double x, double s) { return fma(a, x, s); }

template <class F>
__device__ __forceinline__ Complex<F> cmla(Complex<F> a, Complex<F> x, Complex<F> s) {
    return {mla(a.re, x.re, mla(a.im, x.im, s.re)), mla(a.re, x.im, mla(-a.im, x.re, s.im))};
}

// Re conj(a) b, in double precision, added to s.
template <class F>
__device__ __forceinline__ double overlap(F a, F b, double s) {
    return fma((double)a, (double)b, s);
}

template <class F>
__device__ __forceinline__ double overlap(Complex<F> a, Complex<F> b, double s) {
    return fma((double)a.re, (double)b.re, fma((double)a.im, (double)b.im, s));
}

__device__ __forceinline__ C64 wide(float a) { return {(double)a, 0.0}; }
__device__ __forceinline__ C64 wide(double a) { return {a, 0.0}; }
__device__ __forceinline__ C64 wide(C32 a) { return {(double)a.re, (double)a.im}; }
__device__ __forceinline__ C64 wide(C64 a) { return a; }

template <class T>
struct Narrow;
template <>
struct Narrow<float> {
    static __device__ __forceinline__ float of(C64 z) { return (float)z.re; }
};
template <>
struct Narrow<double> {
    static __device__ __forceinline__ double of(C64 z) { return z.re; }
};
template <class F>
struct Narrow<Complex<F>> {
    static __device__ __forceinline__ Complex<F> of(C64 z) { return {(F)z.re, (F)z.im}; }
};

// P neighbouring lanes, moved by one instruction.
template <class V, int P>
struct alignas(sizeof(V) * P) Pack {
    V x[P];
};

template <int BYTES>
struct Word;
template <>
struct Word<4> {
    using type = unsigned int;
};
template <>
struct Word<8> {
    using type = uint2;
};
template <>
struct Word<16> {
    using type = uint4;
};

// A load through the read-only cache, for data that the kernel does not write.
template <class X>
__device__ __forceinline__ X load(const X* at) {
    using W = typename Word<sizeof(X)>::type;
    union {
        W w;
        X x;
    } u{};
    u.w = __ldg(reinterpret_cast<const W*>(at));
    return u.x;
}

// A load of what other blocks of the same launch may have written. A plain copy of X would be read in parts.
template <class X>
__device__ __forceinline__ X load_written(const X* at) {
    using W = typename Word<sizeof(X)>::type;
    union {
        W w;
        X x;
    } u{};
    u.w = *reinterpret_cast<const W*>(at);
    return u.x;
}

// Loads and stores of what is touched once: they do not push others out of the cache.
template <class X>
__device__ __forceinline__ X load_once(const X* at) {
    using W = typename Word<sizeof(X)>::type;
    union {
        W w;
        X x;
    } u{};
    u.w = __ldcs(reinterpret_cast<const W*>(at));
    return u.x;
}

template <class X>
__device__ __forceinline__ void store_once(X* at, X x) {
    using W = typename Word<sizeof(X)>::type;
    union {
        X x;
        W w;
    } u{x};
    __stcs(reinterpret_cast<W*>(at), u.w);
}

// The pass that another GPU has written here.
__device__ __forceinline__ uint32_t told(const char* number) {
    uint32_t pass;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(pass) : "l"(number) : "memory");
    return pass;
}

// Waits until the number that neighbour n tells has come to a pass; these numbers stand at the beginning of a landing.
__device__ __forceinline__ void await_pass(const char* landing, uint32_t n, uint32_t pass) {
    while ((int32_t)(told(landing + host::offers::LINE * n) - pass) < 0) __nanosleep(100);
}

// Threads of a block, where a kernel says nothing else.
// The denominator of a preconditioner, shift - d, kept away from zero.
__device__ __forceinline__ double away_from_zero(double shift, double d, double floor) {
    const double gap = shift - d;
    if (fabs(gap) < floor) return gap < 0.0 ? -floor : floor;
    return gap;
}

constexpr int THREADS = host::cuda::THREADS;

// The sum over the threads of a block that share a lane: thread t has lane t % L. Threads of the first group get it.
template <int L, int BLOCK>
__device__ __forceinline__ double sum_over_rows(double x) {
    constexpr int WARPS = BLOCK / 32;
    static_assert(L <= 32 && BLOCK % 32 == 0, "lanes repeat within warps");
    __shared__ double shared[WARPS][L];
#pragma unroll
    for (int apart = 16; apart >= L; apart /= 2) x += __shfl_xor_sync(~0u, x, apart);
    __syncthreads();
    if (threadIdx.x % 32 < L) shared[threadIdx.x / 32][threadIdx.x % 32] = x;
    __syncthreads();
    double sum = 0.0;
    if (threadIdx.x < L)
        for (int warp = 0; warp < WARPS; ++warp) sum += shared[warp][threadIdx.x];
    return sum;
}

__device__ __forceinline__ double plus(double a, double b) { return a + b; }
__device__ __forceinline__ C64 plus(C64 a, C64 b) { return {a.re + b.re, a.im + b.im}; }
__device__ __forceinline__ double from_apart(double x, uint32_t apart) { return __shfl_xor_sync(~0u, x, apart); }
__device__ __forceinline__ C64 from_apart(C64 x, uint32_t apart) { return {from_apart(x.re, apart), from_apart(x.im, apart)}; }

// As `sum_over_rows`, where the number of lanes, `width`, a power of two up to the number of threads, is known only at
// run time. Adding up with one thread would take longer than all else that is done with short vectors.
template <int BLOCK, class S>
__device__ __forceinline__ S sum_of_lane(S x, uint32_t width) {
    __shared__ S shared[BLOCK];
    for (uint32_t apart = 16; apart >= width; apart /= 2) x = plus(x, from_apart(x, apart));
    __syncthreads();
    shared[threadIdx.x] = x;
    __syncthreads();
    S total{};
    if (threadIdx.x < width)
        for (uint32_t t = threadIdx.x; t < BLOCK; t += max(width, 32u)) total = plus(total, shared[t]);
    return total;
}

// Philox4x32-10 (Salmon et al. 2011) with the counters of src/number/philox.rs.
__device__ __forceinline__ uint4 philox(uint64_t seed, uint32_t stream, uint64_t index, uint32_t column) {
    uint4 c = {(uint32_t)index, (uint32_t)(index >> 32), column, stream};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        if (round > 0) {
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        uint64_t p0 = (uint64_t)c.x * 0xD2511F53u, p1 = (uint64_t)c.z * 0xCD9E8D57u;
        c = {(uint32_t)(p1 >> 32) ^ c.y ^ k0, (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c.w ^ k1, (uint32_t)p0};
    }
    return c;
}

// A double in (0, 1): 52 bits, centred in their cell.
__device__ __forceinline__ double unit(uint32_t low, uint32_t high) {
    uint64_t bits = ((uint64_t)high << 32 | low) >> 12;
    return ((double)bits + 0.5) * (1.0 / (double)(1ull << 52));
}

// s x + c without a fused operation, which would round otherwise than the CPU.
__device__ __forceinline__ double step(double s, double x, double c) { return __dadd_rn(__dmul_rn(s, x), c); }

// Sine and cosine of 2 pi u, u in (0, 1), and ln u: operation for operation those of src/number/philox.rs.
__device__ __forceinline__ void turn(double u, double& sin, double& cos) {
    const double quarter = floor(4.0 * u + 0.5);
    const double x = __dmul_rn(6.283185307179586476925286766559, u - 0.25 * quarter), z = __dmul_rn(x, x);
    double s = 1.0 / 355687428096000.0, c = 1.0 / 20922789888000.0;
    s = step(s, z, -1.0 / 1307674368000.0), c = step(c, z, -1.0 / 87178291200.0);
    s = step(s, z, 1.0 / 6227020800.0), c = step(c, z, 1.0 / 479001600.0);
    s = step(s, z, -1.0 / 39916800.0), c = step(c, z, -1.0 / 3628800.0);
    s = step(s, z, 1.0 / 362880.0), c = step(c, z, 1.0 / 40320.0);
    s = step(s, z, -1.0 / 5040.0), c = step(c, z, -1.0 / 720.0);
    s = step(s, z, 1.0 / 120.0), c = step(c, z, 1.0 / 24.0);
    s = step(s, z, -1.0 / 6.0), c = step(c, z, -0.5);
    s = __dadd_rn(x, __dmul_rn(x, __dmul_rn(z, s))), c = __dadd_rn(1.0, __dmul_rn(z, c));
    const int at = (int)quarter % 4;
    sin = at == 0 ? s : at == 1 ? c : at == 2 ? -s : -c;
    cos = at == 0 ? c : at == 1 ? -s : at == 2 ? -c : s;
}

__device__ __forceinline__ double log_of(double u) {
    const long long bits = __double_as_longlong(u);
    const double mantissa = __longlong_as_double((bits & 0x000FFFFFFFFFFFFFll) | 0x3FF0000000000000ll);
    const bool high = mantissa > 1.41421356237309504880;
    const double m = high ? 0.5 * mantissa : mantissa, e = (double)((int)(bits >> 52) - 1023 + (high ? 1 : 0));
    const double s = __ddiv_rn(m - 1.0, m + 1.0), z = __dmul_rn(s, s);
    double sum = 1.0 / 25.0;
#pragma unroll
    for (int k = 10; k >= 0; --k) sum = step(sum, z, 1.0 / (double)(2 * k + 3));
    const double upper = __longlong_as_double(0x3FE62E42FEE00000ll), lower = __longlong_as_double(0x3DEA39EF35793C76ll);
    const double rest = __dadd_rn(__dmul_rn(2.0 * s, __dmul_rn(z, sum)), __dmul_rn(e, lower));
    return __dadd_rn(__dmul_rn(e, upper), __dadd_rn(2.0 * s, rest));
}

// Two independent standard normal deviates from four words (Box and Muller).
__device__ __forceinline__ void normals(uint4 w, double& a, double& b) {
    const double radius = __dsqrt_rn(-2.0 * log_of(unit(w.x, w.y)));
    turn(unit(w.z, w.w), b, a);
    a = __dmul_rn(radius, a), b = __dmul_rn(radius, b);
}
