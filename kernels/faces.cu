// Half-spinors that pass the faces of a box of the Wilson-Dirac operator, from GPU to GPU: two spins of three colours a
// site of the face, component by component. Those that go upwards are taken through the link by the box that they
// leave, which has it. Two threads share a site, with a component of the half-spinor each.
//
// Floor: 24 + 12 reals a site to leave, 12 + 48 to be added, and N more for its link where there is one to pass.
#include "wilson.cuh"

constexpr int MOST_FACES = host::faces::MOST_FACES;
constexpr int BLOCK = host::faces::BLOCK;

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

template <class F, int N>
__device__ __forceinline__ void leave_faces(const FacesArgument& a) {
    const uint32_t column = blockIdx.y * a.width + threadIdx.x % a.width, high = BLOCK / a.width;
    if (column >= a.columns) return;
    for (uint32_t i = blockIdx.x * high + threadIdx.x / a.width; i < units(a); i += gridDim.x * high) {
        const Unit unit(a, i);
        if (unit.there) leave_face<F, N>(a, unit, column);
    }
}

// Adds what has come through a face to two spins of a site, and returns the real part of its product with v there, if
// there is a v.
template <class F, int N>
__device__ __forceinline__ double add_face(const FacesArgument& a, uint32_t site, uint32_t face, uint32_t half, uint32_t column) {
    using Two = typename Reals<F>::Two;
    const uint32_t mu = a.cut[face / 2], stride = stride_of(a, mu);
    const bool upper = face % 2;
    const uint64_t across = a.before[face + 1] - a.before[face];
    const uint64_t at = ((uint64_t)(site / (stride * a.dims[mu])) * stride + site % stride) >> (a.halved >> face & 1);
    const Projection<F> made(mu, half, upper != (a.adjoint != 0) ? F(-1) : F(1));
    const auto p = place<false>(a.sites, a.columns, site, column);
    Two* w = reinterpret_cast<Two*>(a.w);
    // Written while this kernel waited: not by way of the cache for what never changes.
    const Two* from = reinterpret_cast<const Two*>(a.spinors[face]);
    const F edge = (F)a.sign[face], near_factor = (F)a.factor[0] * edge, far_factor = (F)a.factor[1] * edge * made.back();
    C<F> h[3];
    Two near[3], far[3];
#pragma unroll
    for (int c = 0; c < 3; ++c) {
        const Two z = from[((3 * half + c) * across + at) * a.columns + column];
        h[c] = {z.x, z.y};
        near[c] = w[p.component(3 * half + c)];
        far[c] = w[p.component(3 * made.far + c)];
    }
    if (upper) pass_link<F, N, false>(a.links, site, mu, h);
    double sum = 0.0;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        const C<F> x = h[i], more = made.turned(x), y = plus(C<F>{near[i].x, near[i].y}, near_factor, x);
        const C<F> z = plus(C<F>{far[i].x, far[i].y}, far_factor, more);
        const uint64_t at_near = p.component(3 * half + i), at_far = p.component(3 * made.far + i);
        if (a.sums) {
            sum = overlap(C<F>{near_factor * x.re, near_factor * x.im}, fetch<F>(a.v, at_near), sum);
            sum = overlap(C<F>{far_factor * more.re, far_factor * more.im}, fetch<F>(a.v, at_far), sum);
        }
        w[at_near] = Reals<F>::two(y.re, y.im);
        w[at_far] = Reals<F>::two(z.re, z.im);
    }
    return sum;
}

// All that has come for a site, if the face is the first that the site is at. Its two threads change spins of both
// where it is at faces of several directions: one of them adds everything there.
template <class F, int N>
__device__ __forceinline__ double add_faces(const FacesArgument& a, const Unit& unit, uint32_t column) {
    const uint32_t own = unit.face / 2;
    if (unit.face % 2 && a.dims[a.cut[own]] == 1) return 0.0;
    const uint32_t site = site_of(a, unit.face, unit.at, true);
    if (!is_wanted(a, site)) return 0.0;
    // Bits 2 d and 2 d + 1: whether the site is the first and the last in direction d.
    uint32_t ends = 0, rest = site, several = 0;
#pragma unroll
    for (int d = 0; d < 4; ++d) {
        const uint32_t next = rest / a.dims[d], x = rest - next * a.dims[d];
        ends |= (x == 0) << 2 * d | (x + 1 == a.dims[d]) << (2 * d + 1);
        rest = next;
    }
    auto is_at = [&](uint32_t face) { return ends >> (2 * a.cut[face / 2] + face % 2) & 1; };
    for (uint32_t face = 0; face < a.faces; ++face) {
        if (face / 2 == own || !is_at(face)) continue;
        if (face < unit.face) return 0.0;
        several = 1;
    }
    if (several && unit.half) return 0.0;
    double sum = 0.0;
    for (uint32_t face = 2 * own; face < a.faces; ++face) {
        if (!is_at(face)) continue;
        for (uint32_t half = unit.half; half <= unit.half + several; ++half) sum += add_face<F, N>(a, site, face, half, column);
    }
    return sum;
}

// Waits until all neighbours have written what comes in this pass, then adds it; where there are `sums`, what
// `Re <w|v>` grows by, kept as [block][column]. What leaves has left before this begins,
// so that nobody waits in a circle.
template <class F, int N>
__device__ __forceinline__ void add_faces(const FacesArgument& a) {
    for (uint32_t n = threadIdx.x; n < a.faces; n += BLOCK) await_pass(a.landing, n, a.pass);
    __syncthreads();
    const uint32_t column = blockIdx.y * a.width + threadIdx.x % a.width, high = BLOCK / a.width;
    double sum = 0.0;
    if (column < a.columns) {
        for (uint32_t i = blockIdx.x * high + threadIdx.x / a.width; i < units(a); i += gridDim.x * high) {
            const Unit unit(a, i);
            if (unit.there) sum += add_faces<F, N>(a, unit, column);
        }
    }
    if (!a.sums) return;
    const double total = sum_of_lane<BLOCK>(sum, a.width);
    if (threadIdx.x < a.width && column < a.columns) a.sums[(uint64_t)blockIdx.x * a.columns + column] = total;
}

#define FACES(TYPE, F, N, LEAVING, ADDING)                                                                                \
    extern "C" __global__ void __launch_bounds__(BLOCK, LEAVING)                                                          \
        leave_faces_##TYPE##_##N(const __grid_constant__ FacesArgument a) {                                               \
        leave_faces<F, N>(a);                                                                                             \
    }                                                                                                                     \
    extern "C" __global__ void __launch_bounds__(BLOCK, ADDING)                                                           \
        add_faces_##TYPE##_##N(const __grid_constant__ FacesArgument a) {                                                 \
        add_faces<F, N>(a);                                                                                               \
    }

FACES(f32, float, 18, 8, 5)
FACES(f32, float, 12, 8, 5)
FACES(f32, float, 8, 8, 5)
FACES(f64, double, 18, 6, 4)
FACES(f64, double, 12, 6, 3)
FACES(f64, double, 8, 6, 3)
