// What all kernels share: complex numbers, packs of lanes, Philox, and sums over a block in a fixed order.
#pragma once
#include <cstdint>

template <class F>
struct Complex {
    F re, im;
};

using F32 = float;
using F64 = double;
using C32 = Complex<float>;
using C64 = Complex<double>;

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

constexpr int THREADS = 256;

// The sum over the threads of a block that share a lane: thread t has lane t % L. Threads of the first group get it.
template <int L, int BLOCK>
__device__ __forceinline__ double sum_over_rows(double x) {
    __shared__ double shared[BLOCK];
    __syncthreads();
    shared[threadIdx.x] = x;
    __syncthreads();
    double sum = 0.0;
    if (threadIdx.x < L)
        for (int t = threadIdx.x; t < BLOCK; t += L) sum += shared[t];
    return sum;
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
