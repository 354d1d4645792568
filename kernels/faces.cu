// Half-spinors that pass the faces of a box of the Wilson-Dirac operator by kernels of their own: what leaves, and what
// has come and is added to a product.
//
// Floor: 24 + 12 reals a site to leave, 12 + 48 to be added, and N more for its link where there is one to pass.
#include "faces.cuh"

constexpr int BLOCK = host::faces::BLOCK;

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
