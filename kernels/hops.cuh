// Products of the Wilson-Dirac operator: a thread a site and column. Where sites come in whole groups and there is one
// column (PACKED), the components of a site are at distances that the compiler knows.
// In double precision two threads of a warp then share a site.
//
// Floor: links and spinors once, (4 N + 24 + 24) reals a site with N reals a link, and 24 more for every vector added.
#pragma once
#include "wilson.cuh"

constexpr int MOST_ADDED = host::wilson::MOST_ADDED;

// Division by a number known to the host, of what is below 2^31:
// before its first load a thread divides half a dozen times.
struct Divisor {
    uint32_t factor, shift;

    __device__ __forceinline__ uint32_t under(uint32_t n) const { return __umulhi(2 * n, factor) >> shift; }
};
HOST_LAYOUT_wilson_Divisor(Divisor);

struct WilsonArgument {
    const void* links;
    const void* v;
    void* w;
    const void* plus[MOST_ADDED];
    double factor[MOST_ADDED];
    double alpha, gamma;
    // What the sums over all hops start with, of a site's own first and last two spins.
    double start[2];
    double sign[4];
    uint32_t dims[4];
    uint32_t sites, columns, added;
    // 1: gamma5 from the left; 1: the adjoint; 0: all sites, 1: even ones, 2: odd ones.
    uint32_t gamma5, adjoint, parity;
    Divisor by_dims[3];
    // 0 where there are 2^31 threads and more.
    Divisor by_columns;

    // The order of blocks: see `turn_of`.
    uint32_t backwards, paired, side, across, slab, slice, times;
    // The time that is walked first.
    uint32_t first;
    Divisor by_slab, by_times, by_pair;
    // Bit `smid`: the side of the chip that a multiprocessor belongs to.
    uint32_t sides[8];
    // Blocks of each side that have asked for their turn, the second in the upper half; null:
    // blocks are taken as they are numbered.
    unsigned long long* turns;
};
HOST_LAYOUT_wilson_WilsonArgument(WilsonArgument);

struct Site {
    uint32_t x[4];

    __device__ __forceinline__ Site(const WilsonArgument& a, uint32_t site) {
        const uint32_t rows = a.by_dims[0].under(site), planes = a.by_dims[1].under(rows);
        x[0] = site - rows * a.dims[0];
        x[1] = rows - planes * a.dims[1];
        x[3] = a.by_dims[2].under(planes);
        x[2] = planes - x[3] * a.dims[2];
    }

    // Whether it is one of those that are asked for.
    __device__ __forceinline__ bool wanted(const WilsonArgument& a) const {
        return !a.parity || ((x[0] + x[1] + x[2] + x[3]) & 1) + 1 == a.parity;
    }
};

// Of a box whose faces nothing passes while this runs.
struct NoFaces {
    static constexpr bool LINKED = false;

    __device__ __forceinline__ bool is_cut(int) const { return false; }
    __device__ __forceinline__ bool come_for(const Site&) const { return false; }
    template <class F, int MU, bool BACKWARD>
    __device__ __forceinline__ F take(uint32_t, uint32_t, C<F> (&)[3]) const {
        return F(0);
    }
};

// One hop: projects a neighbour with (1 + s g_mu), takes it through the link and adds its four spins.
// From beyond a face comes what is projected, and backwards what the link has turned, too.
template <class F, int N, bool PACKED, int MU, bool BACKWARD, class Faces>
__device__ __forceinline__ void hop(const WilsonArgument& a, const Faces& faces, uint32_t site, uint32_t there,
                                    bool beyond, uint32_t column, F s, F edge, C<F> sum[4][3]) {
    const auto p = place<PACKED>(a.sites, a.columns, there, column);
    auto psi = [&](int spin, int colour) { return fetch<F>(a.v, p.component(3 * spin + colour)); };
    C<F> h[2][3];
    if (Faces::LINKED && beyond) {
        edge = faces.template take<F, MU, BACKWARD>(site, 0, h[0]);
        faces.template take<F, MU, BACKWARD>(site, 1, h[1]);
    } else {
#pragma unroll
        for (int c = 0; c < 3; ++c) {
            const C<F> p0 = psi(0, c), p1 = psi(1, c), p2 = psi(2, c), p3 = psi(3, c);
            if (MU == 0) {
                h[0][c] = plus_i(p0, s, p3);
                h[1][c] = plus_i(p1, s, p2);
            } else if (MU == 1) {
                h[0][c] = plus(p0, -s, p3);
                h[1][c] = plus(p1, s, p2);
            } else if (MU == 2) {
                h[0][c] = plus_i(p0, s, p2);
                h[1][c] = plus_i(p1, -s, p3);
            } else {
                h[0][c] = plus(p0, s, p2);
                h[1][c] = plus(p1, s, p3);
            }
        }
    }
    C<F> u[9];
    const bool turned_there = Faces::LINKED && BACKWARD && beyond;
    if (!turned_there) link<F, N>(a.links, BACKWARD ? there : site, MU, u);
    const F turned = s * edge;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        C<F> r[2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            r[k] = {0, 0};
            if (turned_there) {
                r[k] = h[k][i];
            } else {
#pragma unroll
                for (int j = 0; j < 3; ++j)
                    r[k] = BACKWARD ? cmla(u[3 * j + i], h[k][j], r[k]) : mla(u[3 * i + j], h[k][j], r[k]);
            }
            sum[k][i] = plus(sum[k][i], edge, r[k]);
        }
        if (MU == 0) {
            sum[2][i] = plus_i(sum[2][i], -turned, r[1]);
            sum[3][i] = plus_i(sum[3][i], -turned, r[0]);
        } else if (MU == 1) {
            sum[2][i] = plus(sum[2][i], turned, r[1]);
            sum[3][i] = plus(sum[3][i], -turned, r[0]);
        } else if (MU == 2) {
            sum[2][i] = plus_i(sum[2][i], -turned, r[0]);
            sum[3][i] = plus_i(sum[3][i], turned, r[1]);
        } else {
            sum[2][i] = plus(sum[2][i], turned, r[0]);
            sum[3][i] = plus(sum[3][i], turned, r[1]);
        }
    }
}

template <class F, int N, bool PACKED, int MU, class Faces>
__device__ __forceinline__ void hops(const WilsonArgument& a, const Faces& faces, uint32_t site, uint32_t x,
                                     uint32_t stride, uint32_t column, F s, C<F> sum[4][3]) {
    const uint32_t n = a.dims[MU];
    const bool last = x + 1 == n, first = x == 0;
    const bool above = last && faces.is_cut(MU), below = first && faces.is_cut(MU);
    const F turn = (F)a.sign[MU];
    const uint32_t up = last ? site + stride - n * stride : site + stride;
    const uint32_t down = first ? site + n * stride - stride : site - stride;
    hop<F, N, PACKED, MU, false>(a, faces, site, up, above, column, -s, last ? turn : F(1), sum);
    hop<F, N, PACKED, MU, true>(a, faces, site, down, below, column, s, first ? turn : F(1), sum);
}

// Writes `COUNT` components of the result from their sums over all hops: where component k stands, whether gamma5 turns
// its sign, and its sum. One loop with its stores in between: taken apart it was a quarter slower.
template <class F, int COUNT, class At, class Lower, class Sum>
__device__ __forceinline__ void finish(const WilsonArgument& a, At at, Lower lower, Sum sum) {
    using Two = typename Reals<F>::Two;
    Two* w = reinterpret_cast<Two*>(a.w);
    const F first = (F)(-0.5 * a.alpha), last = a.gamma5 ? -first : first;
    if (a.gamma == 0.0 && a.added == 0) {
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            const F hopping = lower(k) ? last : first;
            const C<F> h = sum(k);
            w[at(k)] = Reals<F>::two(hopping * h.re, hopping * h.im);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        const uint64_t i = at(k);
        const F hopping = lower(k) ? last : first;
        const C<F> h = sum(k);
        C<F> y{hopping * h.re, hopping * h.im};
        if (a.gamma != 0.0) {
            const Two old = w[i];
            y = plus(y, (F)a.gamma, C<F>{old.x, old.y});
        }
#pragma unroll
        for (int j = 0; j < MOST_ADDED; ++j)
            if (j < a.added) y = plus(y, (F)a.factor[j], fetch<F>(a.plus[j], i));
        w[i] = Reals<F>::two(y.re, y.im);
    }
}

// The block of sites whose turn on its side is `i`. A slice of constant time is shared between the sides of the chip,
// `across` blocks each, so that what neighbours share crosses the link between the halves of the second cache once; a
// side walks slabs of its share along the time, so that what they share with the times before and behind lies in the
// cache.
__device__ __forceinline__ uint32_t turn_of(const WilsonArgument& a, uint32_t side, uint32_t i) {
    if (a.backwards) i = a.side - 1 - i;
    const uint32_t slabs = a.by_slab.under(i), layer = a.by_times.under(slabs);
    uint32_t time = slabs - layer * a.times + a.first;
    if (time >= a.times) time -= a.times;
    return time * a.slice + side * a.across + layer * a.slab + (i - slabs * a.slab);
}

// The turn of a block of threads on a side of the chip.
struct Turn {
    uint32_t side, i;
};

// The next turn on the block's own side, of so `many` on each; the last one on the other where there is none. All
// blocks ask exactly once, and the last one to do so leaves everything as it was.
__device__ __forceinline__ Turn next_turn(const WilsonArgument& a, uint32_t many) {
    __shared__ Turn mine;
    if (threadIdx.x == 0) {
        uint32_t processor;
        asm("mov.u32 %0, %%smid;" : "=r"(processor));
        uint32_t side = a.sides[processor / 32 % 8] >> (processor % 32) & 1;
        const unsigned long long before = atomicAdd(a.turns, side ? 1ull << 32 : 1ull);
        const uint32_t counts[2] = {(uint32_t)before, (uint32_t)(before >> 32)};
        if (counts[0] + counts[1] + 1 == gridDim.x) *a.turns = 0;
        uint32_t i = side ? counts[1] : counts[0];
        if (i >= many) {
            side = 1 - side;
            i = 2 * many - 1 - i;
        }
        mine = {side, i};
    }
    __syncthreads();
    return mine;
}

// The block of sites that this block of threads works on.
__device__ __forceinline__ uint32_t block_of(const WilsonArgument& a) {
    const Turn turn = a.turns ? next_turn(a, a.side) : Turn{0, blockIdx.x};
    return turn_of(a, turn.side, turn.i);
}

// The group of packed sites at place `i` of the order: planes of the third direction may be walked in pairs,
// side by side.
__device__ __forceinline__ uint32_t group_of(const WilsonArgument& a, uint32_t i) {
    if (!a.paired) return i;
    const uint32_t plane = a.dims[0] * a.dims[1] / GROUP;
    const uint32_t pair = a.by_pair.under(i), rest = i - pair * 2 * plane;
    return (2 * pair + rest % 2) * plane + rest / 2;
}

// A site and column.
template <class F, int N, bool PACKED, class Faces>
__device__ __forceinline__ void make_site(const WilsonArgument& a, const Faces& faces, const Site& here, uint32_t site,
                                          uint32_t column) {
    const F s = a.adjoint ? F(-1) : F(1);
    const auto p = place<PACKED>(a.sites, a.columns, site, column);
    C<F> sum[4][3];
#pragma unroll
    for (int k = 0; k < 12; ++k) {
        const C<F> z = fetch<F>(a.v, p.component(k));
        const F start = (F)a.start[k >= 6];
        sum[k / 3][k % 3] = {start * z.re, start * z.im};
    }
    uint32_t stride = 1;
    hops<F, N, PACKED, 0>(a, faces, site, here.x[0], stride, column, s, sum);
    stride *= a.dims[0];
    hops<F, N, PACKED, 1>(a, faces, site, here.x[1], stride, column, s, sum);
    stride *= a.dims[1];
    hops<F, N, PACKED, 2>(a, faces, site, here.x[2], stride, column, s, sum);
    stride *= a.dims[2];
    hops<F, N, PACKED, 3>(a, faces, site, here.x[3], stride, column, s, sum);
    finish<F, 12>(
        a, [&](int k) { return p.component(k); }, [](int k) { return k >= 6; }, [&](int k) { return sum[k / 3][k % 3]; });
}

template <class F, int N, bool PACKED, class Faces>
__device__ __forceinline__ void wilson(const WilsonArgument& a, const Faces& faces, uint32_t block) {
    const uint64_t at = block * (uint64_t)blockDim.x + threadIdx.x;
    const uint32_t columns = PACKED ? 1 : a.columns;
    uint32_t site = PACKED ? (uint32_t)at : a.by_columns.factor ? a.by_columns.under((uint32_t)at) : (uint32_t)(at / columns);
    if (site >= a.sites) return;
    const uint32_t column = (uint32_t)(at - (uint64_t)site * columns);
    if (PACKED) site = group_of(a, site / GROUP) * GROUP + site % GROUP;
    const Site here(a, site);
    if (!here.wanted(a)) return;
    // Sites away from faces are made by the code of a lattice without any.
    if (Faces::LINKED && !__any_sync(__activemask(), faces.come_for(here)))
        make_site<F, N, PACKED>(a, NoFaces{}, here, site, column);
    else
        make_site<F, N, PACKED>(a, faces, here, site, column);
}

// One hop of half a site, which has component `half` of the half-spinor.
template <class F, int N, int MU, bool BACKWARD, class Faces>
__device__ __forceinline__ void half_hop(const WilsonArgument& a, const Faces& faces, uint32_t site, uint32_t there,
                                         bool beyond, uint32_t half, F s, F edge, C<F> own[3], C<F> far[3]) {
    const Projection<F> made(MU, half, s);
    const uint64_t at = (uint64_t)(there / GROUP) * (12 * GROUP) + there % GROUP;
    const uint64_t near_spin = at + 3 * GROUP * half, far_spin = at + 3 * GROUP * made.far;
    C<F> h[3];
    if (Faces::LINKED && beyond) {
        edge = faces.template take<F, MU, BACKWARD>(site, half, h);
    } else {
#pragma unroll
        for (int c = 0; c < 3; ++c)
            h[c] = plus(fetch<F>(a.v, near_spin + c * GROUP), made.f, made.turned(fetch<F>(a.v, far_spin + c * GROUP)));
    }
    C<F> u[9];
    const bool turned_there = Faces::LINKED && BACKWARD && beyond;
    if (!turned_there) link<F, N>(a.links, BACKWARD ? there : site, MU, u);
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        C<F> x{0, 0};
        if (turned_there) {
            x = h[i];
        } else {
#pragma unroll
            for (int j = 0; j < 3; ++j) x = BACKWARD ? cmla(u[3 * j + i], h[j], x) : mla(u[3 * i + j], h[j], x);
        }
        own[i] = plus(own[i], edge, x);
        far[i] = plus(far[i], made.back() * edge, made.turned(x));
    }
}

template <class F, int N, int MU, class Faces>
__device__ __forceinline__ void half_hops(const WilsonArgument& a, const Faces& faces, uint32_t site, uint32_t x,
                                          uint32_t stride, uint32_t half, F s, C<F> own[3], C<F> far[3]) {
    const uint32_t n = a.dims[MU];
    const bool last = x + 1 == n, first = x == 0;
    const bool above = last && faces.is_cut(MU), below = first && faces.is_cut(MU);
    const F turn = (F)a.sign[MU];
    // Where fermions do not pass the boundary, its neighbours are not fetched: the site's own numbers are at hand. The
    // kernel of 8 reals, with one thread a site, took 5 % more time that way.
    const bool closed = a.sign[MU] == 0.0;
    const uint32_t up = !last ? site + stride : closed ? site : site - (n - 1) * stride;
    const uint32_t down = !first ? site - stride : closed ? site : site + (n - 1) * stride;
    half_hop<F, N, MU, false>(a, faces, site, up, above, half, -s, last ? turn : F(1), own, far);
    half_hop<F, N, MU, true>(a, faces, site, down, below, half, s, first ? turn : F(1), own, far);
}

// Half a site of a group; threads that are `taking_part` include the one with the other half.
template <class F, int N, class Faces>
__device__ __forceinline__ void make_half(const WilsonArgument& a, const Faces& faces, const Site& here, uint32_t site,
                                          uint32_t half, uint32_t taking_part) {
    const F s = a.adjoint ? F(-1) : F(1);
    const uint64_t at = (uint64_t)(site / GROUP) * (12 * GROUP) + site % GROUP + 3 * GROUP * half;
    C<F> own[3], theirs[3] = {}, far[3];
#pragma unroll
    for (int c = 0; c < 3; ++c) {
        const C<F> z = fetch<F>(a.v, at + c * GROUP);
        own[c] = {(F)a.start[0] * z.re, (F)a.start[0] * z.im};
    }
    uint32_t stride = 1;
    half_hops<F, N, 0>(a, faces, site, here.x[0], stride, half, s, own, theirs);
    stride *= a.dims[0];
    half_hops<F, N, 1>(a, faces, site, here.x[1], stride, half, s, own, theirs);
    stride *= a.dims[1];
#pragma unroll
    for (int c = 0; c < 3; ++c)
        far[c] = {__shfl_xor_sync(taking_part, theirs[c].re, GROUP / 2), __shfl_xor_sync(taking_part, theirs[c].im, GROUP / 2)};
#pragma unroll
    for (int c = 0; c < 3; ++c) far[c] = plus(far[c], (F)a.start[1], fetch<F>(a.v, at + (c + 6) * GROUP));
    half_hops<F, N, 2>(a, faces, site, here.x[2], stride, half, s, own, far);
    stride *= a.dims[2];
    half_hops<F, N, 3>(a, faces, site, here.x[3], stride, half, s, own, far);
    finish<F, 6>(
        a, [&](int k) { return at + (k < 3 ? k : k + 3) * GROUP; }, [](int k) { return k >= 3; },
        [&](int k) { return k < 3 ? own[k] : far[k - 3]; });
}

// A warp for half a group of sites, two threads each with one component of every half-spinor: half the sums, so that
// registers are left for numbers on their way, while a link travels once for both. What the first two directions make
// of the other thread's spins changes hands before the others.
template <class F, int N, class Faces>
__device__ __forceinline__ void wilson_halves(const WilsonArgument& a, const Faces& faces, uint32_t block) {
    constexpr uint32_t SITES = GROUP / 2;
    const uint32_t turn = block * (blockDim.x / GROUP) + threadIdx.x / GROUP;
    if (turn / 2 >= a.sites / GROUP) return;
    const uint32_t group = group_of(a, turn / 2), half = threadIdx.x % GROUP / SITES;
    const uint32_t site = group * GROUP + turn % 2 * SITES + threadIdx.x % SITES;
    const Site here(a, site);
    const bool wanted = here.wanted(a);
    const uint32_t taking_part = __ballot_sync(~0u, wanted);
    if (!wanted) return;
    if (Faces::LINKED && !__any_sync(taking_part, faces.come_for(here)))
        make_half<F, N>(a, NoFaces{}, here, site, half, taking_part);
    else
        make_half<F, N>(a, faces, here, site, half, taking_part);
}

// A packed form: half a site a thread, or a whole one.
template <class F, int N, bool HALVES, class Faces>
__device__ __forceinline__ void wilson_packed(const WilsonArgument& a, const Faces& faces, uint32_t block) {
    if (HALVES)
        wilson_halves<F, N>(a, faces, block);
    else
        wilson<F, N, true>(a, faces, block);
}

// The packed forms: name, precision, reals a link, whether two threads share a site, blocks of a multiprocessor. With 8
// reals two threads would make a link twice.
#define EVERY_PACKED_FORM(DO)                                                                                      \
    DO(f32_18_packed, float, 18, false, 4) DO(f32_12_packed, float, 12, false, 4) DO(f32_8_packed, float, 8, false, 6) \
    DO(f64_18_halves, double, 18, true, 3) DO(f64_12_halves, double, 12, true, 4) DO(f64_8_packed, double, 8, false, 3)
