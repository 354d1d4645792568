// Spinors and links of the Wilson-Dirac operator: where they stand, and links from what is kept of them. Those of 32
// neighbouring sites lie together, component by component, so that a warp loads whole lines.
#pragma once
#include "common.cuh"

constexpr uint32_t GROUP = host::wilson::GROUP;

template <class F>
struct Reals;
template <>
struct Reals<float> {
    using Two = float2;
    static __device__ __forceinline__ float2 two(float a, float b) { return make_float2(a, b); }
};
template <>
struct Reals<double> {
    using Two = double2;
    static __device__ __forceinline__ double2 two(double a, double b) { return make_double2(a, b); }
};

template <class F>
using C = Complex<F>;

template <class F>
__device__ __forceinline__ C<F> fetch(const void* base, uint64_t at) {
    const auto z = __ldg(reinterpret_cast<const typename Reals<F>::Two*>(base) + at);
    return {z.x, z.y};
}

template <class F>
__device__ __forceinline__ C<F> operator*(C<F> a, C<F> b) {
    return mla(a, b, C<F>{0, 0});
}
// a + s b and a + i s b.
template <class F>
__device__ __forceinline__ C<F> plus(C<F> a, F s, C<F> b) {
    return mla(s, b, a);
}
template <class F>
__device__ __forceinline__ C<F> plus_i(C<F> a, F s, C<F> b) {
    return {mla(-s, b.im, a.re), mla(s, b.re, a.im)};
}
template <class F>
__device__ __forceinline__ C<F> cross(C<F> a, C<F> b, C<F> c, C<F> d) {
    // conj(a b - c d)
    return {mla(a.re, b.re, mla(-a.im, b.im, mla(-c.re, d.re, c.im * d.im))),
            mla(-a.re, b.im, mla(-a.im, b.re, mla(c.re, d.im, c.im * d.re)))};
}

// Where the first component of a site and column stands, and how far apart components are.
template <bool PACKED>
struct Place {
    uint64_t at;
    uint32_t width;

    __device__ __forceinline__ uint64_t component(int k) const { return at + (uint64_t)k * (PACKED ? GROUP : width); }
};

template <bool PACKED>
__device__ __forceinline__ Place<PACKED> place(uint32_t sites, uint32_t columns, uint32_t site, uint32_t column) {
    const uint32_t group = site / GROUP, lane = site % GROUP;
    if (PACKED) return {(uint64_t)group * (12 * GROUP) + lane, GROUP};
    const uint32_t width = min(GROUP, sites - group * GROUP);
    return {((uint64_t)group * 12 * GROUP + lane) * columns + column, width * columns};
}

// The link of a site and direction from N reals; see src/backend/matrix/wilson.rs for the 8.
template <class F, int N>
__device__ __forceinline__ void link(const void* links, uint32_t site, int mu, C<F> u[9]) {
    const uint64_t base = ((uint64_t)(site / GROUP) * 4 + mu) * (N / 2 * GROUP) + site % GROUP;
    auto z = [&](int k) { return fetch<F>(links, base + k * GROUP); };
    if (N == 18) {
#pragma unroll
        for (int k = 0; k < 9; ++k) u[k] = z(k);
        return;
    }
    if (N == 12) {
#pragma unroll
        for (int k = 0; k < 6; ++k) u[k] = z(k);
    } else {
        const C<F> a2 = z(0), a3 = z(1), ty = z(2), y12 = z(3);
        const F t = ty.re, y0 = ty.im, y1 = y12.re, y2 = y12.im;
        const F rest = F(1) - a2.re * a2.re - a2.im * a2.im - a3.re * a3.re - a3.im * a3.im;
        const F modulus = sqrt(rest < 0 ? -rest : rest);
        const F inverse = F(1) / (F(1) + t * t);
        const C<F> half = {(F(1) - t * t) * inverse, F(2) * t * inverse};
        const C<F> phase = half * half, back = {half.re, -half.im};
        const F square = y0 * y0 + y1 * y1 + y2 * y2;
        const F scale = F(1) / (F(1) + square);
        const C<F> alpha = C<F>{(F(1) - square) * scale, F(2) * y2 * scale} * back;
        const C<F> beta = C<F>{F(2) * y1 * scale, F(2) * y0 * scale} * back;
        const C<F> along = cmla(a3, beta, cmla(a2, alpha, C<F>{0, 0}));
        const F share = F(-1) / (F(1) + modulus);
        const C<F> kappa = {along.re * share, along.im * share};
        const C<F> first = along * phase;
        u[0] = {phase.re * modulus, phase.im * modulus};
        u[1] = a2;
        u[2] = a3;
        u[3] = {-first.re, -first.im};
        u[4] = mla(kappa, a2, alpha);
        u[5] = mla(kappa, a3, beta);
    }
    u[6] = cross(u[1], u[5], u[2], u[4]);
    u[7] = cross(u[2], u[3], u[0], u[5]);
    u[8] = cross(u[0], u[4], u[1], u[3]);
}

// Component `half` of the half-spinor that (1 + s g_mu) makes is spin `half` and f times spin `far`, or i f times.
template <class F>
struct Projection {
    uint32_t far;
    bool imaginary;
    F f;

    __device__ __forceinline__ Projection(uint32_t mu, uint32_t half, F s) {
        const F t = half ? F(1) : F(-1);
        far = mu < 2 ? 3 - half : 2 + half;
        imaginary = mu == 0 || mu == 2;
        f = mu == 1 ? t * s : mu == 2 ? -t * s : s;
    }
    __device__ __forceinline__ C<F> turned(C<F> z) const { return imaginary ? C<F>{-z.im, z.re} : z; }
    // The factor by which the component, turned, belongs to spin `far`.
    __device__ __forceinline__ F back() const { return imaginary ? -f : f; }
};
