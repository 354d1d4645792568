// Half-spinors that leave through the faces of a box of the Wilson-Dirac operator, from GPU to GPU: two spins of three
// colours a site of the face, component by component. Those that go upwards are taken through the link by the box that
// they leave, which has it. Two threads share a site, with a component of the half-spinor each.
#pragma once
#include "wilson.cuh"

constexpr int MOST_FACES = host::faces::MOST_FACES;

struct FacesArgument {
    const void* links;
    const void* v;
    void* w;
    // Where the half-spinors of each face stand: those that leave, or those that have come.
    void* spinors[MOST_FACES];
    double sign[MOST_FACES];
    // Of what is added to the first and the last two spins.
    double factor[2];
    // Before what comes stand numbers, one a face, that tell the pass.
    const char* landing;
    double* sums;
    uint32_t dims[4];
    // Directions that have two faces each, the lower one first, and what passes all faces before one.
    uint32_t cut[4];
    uint32_t before[MOST_FACES + 1];
    uint32_t faces, sites, columns, width, adjoint, parity, pass;
    // Bit `face`: of two neighbouring sites one passes there, since the product has the sites of one parity only.
    uint32_t halved;
};
HOST_LAYOUT_faces_FacesArgument(FacesArgument);

// What thread `unit` of a column works on: what passes a face, by its number, and a component of its half-spinor. A
// warp has one component, the next one the other of the same sites, so that a link is in the nearest cache.
struct Unit {
    uint32_t face, at, half;
    bool there;

    __device__ __forceinline__ Unit(const FacesArgument& a, uint32_t unit) {
        const uint32_t i = unit / (2 * GROUP) * GROUP + unit % GROUP;
        half = unit / GROUP % 2;
        face = 0;
        there = i < a.before[a.faces];
        if (!there) return;
        while (i >= a.before[face + 1]) ++face;
        at = i - a.before[face];
    }
};

__device__ __forceinline__ uint32_t units(const FacesArgument& a) { return (a.before[a.faces] + GROUP - 1) / GROUP * 2 * GROUP; }

__device__ __forceinline__ uint32_t stride_of(const FacesArgument& a, uint32_t d) {
    uint32_t stride = 1;
    for (uint32_t e = 0; e < d; ++e) stride *= a.dims[e];
    return stride;
}

// Whether the product has a site: of one parity, its coordinates sum to an odd number or an even one.
__device__ __forceinline__ bool is_wanted(const FacesArgument& a, uint32_t site) {
    if (!a.parity) return true;
    uint32_t odd = 0;
    for (uint32_t d = 0, rest = site; d < 4; ++d) {
        const uint32_t next = rest / a.dims[d];
        odd += rest - next * a.dims[d];
        rest = next;
    }
    return (odd & 1) + 1 == a.parity;
}

// The site that half-spinor `at` of a face leaves, or is added to: one that the product has not, or one that it has,
// where only half of the sites pass.
__device__ __forceinline__ uint32_t site_of(const FacesArgument& a, uint32_t face, uint32_t at, bool wanted) {
    const uint32_t mu = a.cut[face / 2], n = a.dims[mu], stride = stride_of(a, mu), halved = a.halved >> face & 1;
    auto site = [&](uint32_t i) { return (i / stride * n + (face % 2 ? n - 1 : 0)) * stride + i % stride; };
    const uint32_t first = site(at << halved);
    return halved && is_wanted(a, first) != wanted ? site(2 * at + 1) : first;
}

// Takes a half-spinor through the link of a site, or back by its adjoint.
template <class F, int N, bool BACK>
__device__ __forceinline__ void pass_link(const void* links, uint32_t site, uint32_t mu, C<F> (&h)[3]) {
    C<F> u[9];
    link<F, N>(links, site, mu, u);
    const C<F> before[3] = {h[0], h[1], h[2]};
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        h[i] = {0, 0};
#pragma unroll
        for (int j = 0; j < 3; ++j) h[i] = BACK ? cmla(u[3 * j + i], before[j], h[i]) : mla(u[3 * i + j], before[j], h[i]);
    }
}

// What leaves through a face: for the hop of the site beyond that leads here.
template <class F, int N>
__device__ __forceinline__ void leave_face(const FacesArgument& a, const Unit& unit, uint32_t column) {
    const uint32_t mu = a.cut[unit.face / 2], site = site_of(a, unit.face, unit.at, false);
    const bool upper = unit.face % 2;
    const auto p = place<false>(a.sites, a.columns, site, column);
    const Projection<F> made(mu, unit.half, upper == (a.adjoint != 0) ? F(-1) : F(1));
    C<F> h[3];
#pragma unroll
    for (int c = 0; c < 3; ++c) {
        const C<F> near = fetch<F>(a.v, p.component(3 * unit.half + c)), far = fetch<F>(a.v, p.component(3 * made.far + c));
        h[c] = plus(near, made.f, made.turned(far));
    }
    using Two = typename Reals<F>::Two;
    Two* to = reinterpret_cast<Two*>(a.spinors[unit.face]);
    const uint64_t across = a.before[unit.face + 1] - a.before[unit.face];
    if (upper) pass_link<F, N, true>(a.links, site, mu, h);
#pragma unroll
    for (int i = 0; i < 3; ++i)
        to[((3 * unit.half + i) * across + unit.at) * a.columns + column] = Reals<F>::two(h[i].re, h[i].im);
}
