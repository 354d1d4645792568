// Sweeps of the walkers of a Slater-Jastrow wave function: trial points, ratios, decisions, inverse matrices. Scalars S are
// those of the orbitals. Kept of every determinant is B = (A^-1)^T, so that a ratio is a product of two rows.
//
// Look-ahead: M = Phi(Y) A^-1 of all trial points; blocks of electrons are decided by one block of threads a walker, which
// sweeps the block of M on its diagonal as it accepts; then M and B are updated by a product of matrices for each block, of
// which 2 n^3 (M), 2 n^3 (B) and n^3 (the rest of M) flops are the floor, n electrons of one spin.

#include "tiles.cuh"

namespace {

// Electrons decided before M and B learn of them.
template <class S>
struct Size;
template <>
struct Size<double> {
    static constexpr int BLOCK = 64;
};
template <>
struct Size<C64> {
    static constexpr int BLOCK = 32;
};

constexpr int WARP = 32;

__device__ inline uint4 draw(const Walk& w, uint64_t sweep, uint32_t walker, uint32_t electron, uint32_t number) {
    return philox(w.seed, WALKERS, sweep << 24 | uint64_t(electron) << 2 | number, w.first + walker);
}

__device__ inline double decision(const Walk& w, uint64_t sweep, uint32_t walker, uint32_t electron) {
    const uint4 d = draw(w, sweep, walker, electron, 2);
    return unit(d.x, d.y);
}

__device__ inline double normal(uint4 d, bool second) {
    double one, other;
    normals(d, one, other);
    return second ? other : one;
}

// By how much J changes when electron i of a walker goes to its trial point, the others being where they are. By a warp.
__device__ inline double change_of(const Walk& w, uint32_t walker, uint32_t i) {
    const uint64_t own = uint64_t(walker) * w.electrons;
    const double *x = w.positions + 3 * own, *from = x + 3 * i, *to = w.trial + 3 * (own + i);
    double sum = 0.0, u[3], v[3];
    if (w.pairs > 0) {
        for (uint32_t j = threadIdx.x % WARP; j < w.electrons; j += WARP) {
            if (j == i) continue;
            const uint32_t opposite = (i < w.up) != (j < w.up);
            sum += pair_sum(w, opposite, distance(*w.images, to, x + 3 * j))
                 - pair_sum(w, opposite, distance(*w.images, from, x + 3 * j));
        }
    }
    for (uint32_t c = threadIdx.x % WARP; c < w.bodies; c += WARP) {
        const Radial& f = w.radials[2 * w.pairs + c];
        radial<false>(f, distance(*w.images, to, w.centres + 3 * c), u);
        radial<false>(f, distance(*w.images, from, w.centres + 3 * c), v);
        sum += u[0] - v[0];
    }
    return warp_sum(sum);
}

// By how much more J changes with electron i if electron k of the same spin has moved before.
__device__ inline double delta_of(const Walk& w, uint32_t walker, uint32_t i, uint32_t k) {
    const uint64_t own = uint64_t(walker) * w.electrons;
    const double *from = w.before + 3 * (own + i), *to = w.trial + 3 * (own + i);
    const double *old = w.before + 3 * (own + k), *now = w.trial + 3 * (own + k);
    return (pair_sum(w, 0, distance(*w.images, to, now)) - pair_sum(w, 0, distance(*w.images, from, now)))
         - (pair_sum(w, 0, distance(*w.images, to, old)) - pair_sum(w, 0, distance(*w.images, from, old)));
}

// Rows of orbitals at electrons `first` .. of every walker, from a plane of the table: n orbitals a row. With TRANSPOSED the
// electrons lie side by side instead.
template <class F, bool TRANSPOSED>
__device__ void rows_of(const F* plane, uint32_t lanes, const Walk& w, uint32_t first, uint32_t count, uint32_t n,
                        const uint32_t* filling, double3, double* out) {
    const uint64_t each = uint64_t(count) * n;
    for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < each * w.walkers;
         at += uint64_t(gridDim.x) * blockDim.x) {
        const uint32_t walker = at / each, l = at % each % n, i = at % each / n;
        const uint64_t point = uint64_t(first + i) * w.walkers + walker;
        const uint64_t to = TRANSPOSED ? walker * each + uint64_t(l) * count + i : at;
        out[to] = double(plane[point * lanes + filling[l]]);
    }
}

template <class F, bool TRANSPOSED>
__device__ void rows_of(const F* plane, uint32_t lanes, const Walk& w, uint32_t first, uint32_t count, uint32_t n,
                        const uint32_t* filling, double3 k, C64* out) {
    const uint64_t each = uint64_t(count) * n;
    for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < each * w.walkers;
         at += uint64_t(gridDim.x) * blockDim.x) {
        const uint32_t walker = at / each, l = at % each % n, i = at % each / n;
        const uint64_t point = uint64_t(first + i) * w.walkers + walker;
        const uint64_t to = TRANSPOSED ? walker * each + uint64_t(l) * count + i : at;
        const F* const z = plane + point * lanes + 2 * filling[l];
        const double* const r = w.points + 3 * point;
        C64 turn;
        sincos(k.x * r[0] + k.y * r[1] + k.z * r[2], &turn.im, &turn.re);
        out[to] = times(turn, C64{double(z[0]), double(z[1])});
    }
}

// Decides the electrons `begin` .. of a block. M's block on the diagonal is swept with each pivot that is accepted, so that
// what is left of it holds the ratios to come, and in the end the inverse of its accepted part, which goes to `inner`.
template <class S>
__device__ inline void decide(const Walk& w, const S* m, uint32_t n, uint32_t first, uint32_t begin, S* inner) {
    constexpr int B = Size<S>::BLOCK, STEP = 256 / B, OWN = B / STEP;
    __shared__ S row[2][B], column[2][B];
    __shared__ double change[2], draws[B];
    const uint32_t walker = blockIdx.x, size = min(uint32_t(B), n - begin), thread = threadIdx.x;
    const uint32_t j = thread % B, top = thread / B;
    const S* const own = m + uint64_t(walker) * n * n;
    S d[OWN];
#pragma unroll
    for (int q = 0; q < OWN; ++q) {
        const uint32_t i = top + q * STEP;
        d[q] = i < size && j < size ? own[uint64_t(begin + i) * n + begin + j] : S{};
    }
    const uint64_t at = uint64_t(walker) * w.electrons + first + begin;
    const bool jastrow = w.pairs > 0;
    double mine = 0.0;
    if (thread < size) {
        mine = w.change[at + thread];
        draws[thread] = decision(w, w.control->sweep, walker, first + begin + thread);
    }
    const double* const deltas = w.delta + (at + thread) * B;
    double next = jastrow && thread < size && thread > 0 ? deltas[0] : 0.0;
    auto publish = [&](uint32_t k) {
        const uint32_t half = k % 2;
#pragma unroll
        for (int q = 0; q < OWN; ++q) {
            const uint32_t i = top + q * STEP;
            if (i == k) row[half][j] = d[q];
            if (j == k) column[half][i] = d[q];
        }
        if (thread == k) change[half] = mine;
    };
    publish(0);
    __syncthreads();
    uint64_t taken = 0;
    for (uint32_t k = 0; k < size; ++k) {
        const uint32_t half = k % 2;
        const S pivot = row[half][k];
        const double odds = squared(pivot) * exp(2.0 * change[half]);
        if (isnan(odds)) w.control->failed = 1;
        const double more = next;
        if (jastrow && thread > k + 1 && thread < size) next = deltas[k + 1];
        if (draws[k] < odds) {
            taken |= 1ull << k;
            if (thread > k && thread < size) mine += more;
            const S one = inverse_of(pivot), b = j == k ? one : times(row[half][j], one);
#pragma unroll
            for (int q = 0; q < OWN; ++q) {
                const uint32_t i = top + q * STEP;
                const S product = minus(times(column[half][i], b));
                d[q] = i == k ? b : j == k ? product : plus(d[q], product);
            }
        }
        if (k + 1 < size) publish(k + 1);
        __syncthreads();
    }
    S* const g = inner + uint64_t(walker) * B * B;
#pragma unroll
    for (int q = 0; q < OWN; ++q) {
        const uint32_t i = top + q * STEP;
        g[i * B + j] = (taken >> i & 1) && (taken >> j & 1) ? d[q] : S{};
    }
    if (thread < size) {
        const bool yes = taken >> thread & 1;
        w.moved[at + thread] = yes;
        if (yes)
            for (int c = 0; c < 3; ++c) w.positions[3 * (at + thread) + c] = w.trial[3 * (at + thread) + c];
    }
    if (thread == 0) atomicAdd(&w.control->moved, (unsigned long long)__popcll(taken));
}

// After a block is decided: X = M_SS^-1 (M_S - 1_S) for its accepted rows S; copies of the columns of M that the update takes
// (`left`, transposed) and of the rows of B (`old`); and the changes of J of the electrons to come.
template <class S>
__device__ inline void panel(const Walk& w, const S* m, const S* inverse, const S* inner, S* x, S* left, S* old, uint32_t n,
                             uint32_t first, uint32_t begin) {
    constexpr uint32_t B = Size<S>::BLOCK;
    const uint32_t tiles = (n + EDGE - 1) / EDGE, walker = blockIdx.y, size = min(B, n - begin), end = begin + size;
    const uint64_t square = uint64_t(walker) * n * n, strip = uint64_t(walker) * B * n;
    if (blockIdx.x < tiles) {
        const uint32_t from = blockIdx.x * EDGE;
        const S* const g = inner + uint64_t(walker) * B * B;
        S sum[4][4] = {};
        tile<S, true, false>(
            size, [&](uint32_t k, uint32_t i) { return i < B ? g[i * B + k] : S{}; },
            [&](uint32_t k, uint32_t j) {
                if (from + j >= n) return S{};
                S z = m[square + uint64_t(begin + k) * n + from + j];
                S one;
                set_real(one, -1.0);
                return from + j == begin + k ? plus(z, one) : z;
            },
            sum);
        for (int a = 0; a < 4; ++a)
            for (int b = 0; b < 4; ++b) {
                uint32_t i, j;
                place_of<S>(a, b, i, j);
                j += from;
                if (i < B && j < n) x[strip + uint64_t(i) * n + j] = sum[a][b];
            }
    } else if (blockIdx.x < 2 * tiles) {
        const uint32_t from = (blockIdx.x - tiles) * EDGE;
        for (uint32_t e = threadIdx.x; e < B * EDGE; e += 256) {
            uint32_t k = e / EDGE, j = from + e % EDGE;
            if (j < n && k < size) old[strip + uint64_t(k) * n + j] = inverse[square + uint64_t(begin + k) * n + j];
            k = e % B, j = from + e / B;
            if (j >= end && j < n && k < size) left[strip + uint64_t(k) * n + j] = m[square + uint64_t(j) * n + begin + k];
        }
    } else {
        const uint32_t i = end + (blockIdx.x - 2 * tiles) * 8 + threadIdx.x / WARP;
        if (i >= n) return;
        const uint64_t at = uint64_t(walker) * w.electrons + first;
        double sum = 0.0;
        for (uint32_t k = begin + threadIdx.x % WARP; k < end; k += WARP)
            if (w.moved[at + k]) sum += delta_of(w, walker, first + i, first + k);
        sum = warp_sum(sum);
        if (threadIdx.x % WARP == 0) w.change[at + i] += sum;
    }
}

// M -= left^T X for the rows behind the block, B -= X^T old.
template <class S>
__device__ inline void update(S* m, S* inverse, const S* x, const S* left, const S* old, uint32_t n, uint32_t begin) {
    constexpr uint32_t B = Size<S>::BLOCK;
    const uint32_t tiles = (n + EDGE - 1) / EDGE, walker = blockIdx.y, size = min(B, n - begin), end = begin + size;
    const uint32_t lower = (n - end + EDGE - 1) / EDGE * tiles;
    const uint64_t square = uint64_t(walker) * n * n, strip = uint64_t(walker) * B * n;
    const bool of_m = blockIdx.x < lower;
    const uint32_t number = of_m ? blockIdx.x : blockIdx.x - lower;
    const uint32_t down = number / tiles * EDGE + (of_m ? end : 0), across = number % tiles * EDGE;
    const S *const p = (of_m ? left : x) + strip, *const q = (of_m ? x : old) + strip;
    S* const c = (of_m ? m : inverse) + square;
    // What is there is read while the factors are on their way.
    S sum[4][4];
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) {
            uint32_t i, j;
            place_of<S>(a, b, i, j);
            i += down, j += across;
            sum[a][b] = i < n && j < n ? minus(c[uint64_t(i) * n + j]) : S{};
        }
    tile<S, false, false>(
        size, [&](uint32_t k, uint32_t i) { return down + i < n ? p[uint64_t(k) * n + down + i] : S{}; },
        [&](uint32_t k, uint32_t j) { return across + j < n ? q[uint64_t(k) * n + across + j] : S{}; }, sum);
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) {
            uint32_t i, j;
            place_of<S>(a, b, i, j);
            i += down, j += across;
            if (i < n && j < n) c[uint64_t(i) * n + j] = minus(sum[a][b]);
        }
}

// M = Phi A^-1.
template <class S>
__device__ inline void product(const S* rows, const S* inverse, uint32_t n, S* m) {
    const uint32_t tiles = (n + EDGE - 1) / EDGE;
    const uint64_t square = uint64_t(blockIdx.y) * n * n;
    const uint32_t down = blockIdx.x / tiles * EDGE, across = blockIdx.x % tiles * EDGE;
    S sum[4][4] = {};
    tile<S, true, true>(
        n, [&](uint32_t k, uint32_t i) { return down + i < n ? rows[square + uint64_t(down + i) * n + k] : S{}; },
        [&](uint32_t k, uint32_t j) { return across + j < n ? inverse[square + uint64_t(across + j) * n + k] : S{}; },
        sum);
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) {
            uint32_t i, j;
            place_of<S>(a, b, i, j);
            i += down, j += across;
            if (i < n && j < n) m[square + uint64_t(i) * n + j] = sum[a][b];
        }
}

template <class S>
__device__ inline S dot(const S* a, const S* b, uint32_t n) {
    S sum{};
    for (uint32_t l = threadIdx.x % WARP; l < n; l += WARP) sum = mla(a[l], b[l], sum);
    return warp_sum(sum);
}

// Ratios of one row of orbitals a walker with all rows of B. A warp a row.
template <class S>
__device__ inline void ratios(const S* row, const S* inverse, uint32_t n, S* out) {
    const uint32_t j = blockIdx.x * 8 + threadIdx.x / WARP, walker = blockIdx.y;
    if (j >= n) return;
    const S z = dot(row + uint64_t(walker) * n, inverse + (uint64_t(walker) * n + j) * n, n);
    if (threadIdx.x % WARP == 0) out[uint64_t(walker) * n + j] = z;
}

// The decision of one electron of a walker, whose ratio stands in `q`; row `own` of B over the ratio goes to `u` if it moves.
template <class S>
__device__ inline void decide_one(const Walk& w, const S* q, const S* inverse, uint32_t n, uint32_t first, uint32_t own,
                                  S* u) {
    __shared__ bool yes;
    const uint32_t walker = blockIdx.x, i = first + own;
    const uint64_t at = uint64_t(walker) * w.electrons + i;
    const S ratio = q[uint64_t(walker) * n + own];
    if (threadIdx.x < WARP) {
        const double change = w.pairs + w.bodies > 0 ? change_of(w, walker, i) : 0.0;
        if (threadIdx.x == 0) {
            const double odds = squared(ratio) * exp(2.0 * change);
            if (isnan(odds)) w.control->failed = 1;
            yes = decision(w, w.control->sweep, walker, i) < odds;
            w.moved[at] = yes;
            if (yes) {
                atomicAdd(&w.control->moved, 1ull);
                for (int c = 0; c < 3; ++c) w.positions[3 * at + c] = w.trial[3 * at + c];
            }
        }
    }
    __syncthreads();
    if (!yes) return;
    const S one = inverse_of(ratio);
    const S* const row = inverse + (uint64_t(walker) * n + own) * n;
    for (uint32_t l = threadIdx.x; l < n; l += blockDim.x) u[uint64_t(walker) * n + l] = times(row[l], one);
}

// B -= (q - 1_own) u^T where the electron moved (Sherman and Morrison).
template <class S>
__device__ inline void rank_one(const Walk& w, const S* q, const S* u, uint32_t n, uint32_t first, uint32_t own,
                                S* inverse) {
    const uint32_t walker = blockIdx.y, j = blockIdx.x;
    if (!w.moved[uint64_t(walker) * w.electrons + first + own]) return;
    S one;
    set_real(one, j == own ? -1.0 : 0.0);
    const S factor = minus(plus(q[uint64_t(walker) * n + j], one));
    S* const row = inverse + (uint64_t(walker) * n + j) * n;
    for (uint32_t l = threadIdx.x; l < n; l += blockDim.x) row[l] = mla(factor, u[uint64_t(walker) * n + l], row[l]);
}

// Decisions of all electrons of a spin against the old configuration. A warp an electron.
template <class S>
__device__ inline void decide_all(const Walk& w, const S* rows, const S* inverse, uint32_t n, uint32_t first) {
    const uint32_t own = blockIdx.x * 8 + threadIdx.x / WARP, walker = blockIdx.y;
    if (own >= n) return;
    const uint64_t row = (uint64_t(walker) * n + own) * n, at = uint64_t(walker) * w.electrons + first + own;
    const S ratio = dot(rows + row, inverse + row, n);
    if (threadIdx.x % WARP > 0) return;
    const double odds = squared(ratio) * exp(2.0 * w.change[at]);
    if (isnan(odds)) w.control->failed = 1;
    if (decision(w, w.control->sweep, walker, first + own) < odds) {
        atomicAdd(&w.control->moved, 1ull);
        for (int c = 0; c < 3; ++c) w.positions[3 * at + c] = w.trial[3 * at + c];
    }
}

}  // namespace

// Trial points of a sweep.
extern "C" __global__ void walk_trial(Walk w) {
    const uint64_t sweep = w.control->sweep;
    const double step = w.control->step;
    for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < w.walkers * w.electrons; at += gridDim.x * blockDim.x) {
        const uint32_t walker = at / w.electrons, i = at % w.electrons;
        const uint4 a = draw(w, sweep, walker, i, 0), b = draw(w, sweep, walker, i, 1);
        double by[3];
        if (w.control->uniform) {
            by[0] = 2.0 * unit(a.x, a.y) - 1.0;
            by[1] = 2.0 * unit(a.z, a.w) - 1.0;
            by[2] = 2.0 * unit(b.x, b.y) - 1.0;
        } else {
            by[0] = normal(a, false);
            by[1] = normal(a, true);
            by[2] = normal(b, false);
        }
        for (int c = 0; c < 3; ++c) {
            const double x = w.positions[3 * uint64_t(at) + c], y = fma(step, by[c], x);
            w.before[3 * uint64_t(at) + c] = x;
            w.trial[3 * uint64_t(at) + c] = y;
            w.points[3 * (uint64_t(i) * w.walkers + walker) + c] = y;
        }
    }
}

// Where the electrons are, to be evaluated.
extern "C" __global__ void walk_places(Walk w) {
    for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < w.walkers * w.electrons; at += gridDim.x * blockDim.x) {
        const uint32_t walker = at / w.electrons, i = at % w.electrons;
        for (int c = 0; c < 3; ++c)
            w.points[3 * (uint64_t(i) * w.walkers + walker) + c] = w.positions[3 * uint64_t(at) + c];
    }
}

// Changes of J of the electrons of a spin against the configuration as it is, and what those of their own block before them
// add if they move (`block` electrons; none if it is 0). A warp an electron.
extern "C" __global__ void walk_change(Walk w, uint32_t first, uint32_t n, uint32_t block) {
    const uint32_t own = blockIdx.x * 8 + threadIdx.x / WARP, walker = blockIdx.y, i = first + own;
    if (own >= n) return;
    const uint64_t at = uint64_t(walker) * w.electrons + i;
    const double sum = change_of(w, walker, i);
    if (threadIdx.x % WARP == 0) w.change[at] = sum;
    if (block == 0 || w.pairs == 0) return;
    const uint32_t begin = own / block * block;
    for (uint32_t k = begin + threadIdx.x % WARP; k < own; k += WARP)
        w.delta[at * block + k - begin] = delta_of(w, walker, i, first + k);
}

extern "C" __global__ void walk_next(Walk w) { w.control->sweep += 1; }

#define ROWS(NAME, F, S, TRANSPOSED)                                                                                    \
    extern "C" __global__ void NAME(const F* plane, uint32_t lanes, Walk w, uint32_t first, uint32_t count, uint32_t n,  \
                                    const uint32_t* filling, double3 k, S* out) {                                       \
        rows_of<F, TRANSPOSED>(plane, lanes, w, first, count, n, filling, k, out);                                       \
    }

ROWS(walk_rows_f32_f64, float, double, false)
ROWS(walk_rows_f64_f64, double, double, false)
ROWS(walk_rows_f32_c64, float, C64, false)
ROWS(walk_rows_f64_c64, double, C64, false)
ROWS(walk_columns_f32_f64, float, double, true)
ROWS(walk_columns_f64_f64, double, double, true)
ROWS(walk_columns_f32_c64, float, C64, true)
ROWS(walk_columns_f64_c64, double, C64, true)

#define KERNELS(SUFFIX, S)                                                                                              \
    extern "C" __global__ void __launch_bounds__(256, sizeof(S) == 8 ? 2 : 1)                                            \
        walk_product_##SUFFIX(const S* rows, const S* inverse, uint32_t n, S* m) {                                       \
        product(rows, inverse, n, m);                                                                                   \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                                                   \
        walk_decide_##SUFFIX(Walk w, const S* m, uint32_t n, uint32_t first, uint32_t begin, S* inner) {                 \
        decide(w, m, n, first, begin, inner);                                                                           \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                                                   \
        walk_panel_##SUFFIX(Walk w, const S* m, const S* inverse, const S* inner, S* x, S* left, S* old, uint32_t n,     \
                            uint32_t first, uint32_t begin) {                                                           \
        panel(w, m, inverse, inner, x, left, old, n, first, begin);                                                     \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256, sizeof(S) == 8 ? 2 : 1)                                            \
        walk_update_##SUFFIX(S* m, S* inverse, const S* x, const S* left, const S* old, uint32_t n, uint32_t begin) {    \
        update(m, inverse, x, left, old, n, begin);                                                                     \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                                                   \
        walk_ratios_##SUFFIX(const S* row, const S* inverse, uint32_t n, S* out) {                                       \
        ratios(row, inverse, n, out);                                                                                   \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                                                   \
        walk_one_##SUFFIX(Walk w, const S* q, const S* inverse, uint32_t n, uint32_t first, uint32_t own, S* u) {        \
        decide_one(w, q, inverse, n, first, own, u);                                                                    \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                                                   \
        walk_rank_##SUFFIX(Walk w, const S* q, const S* u, uint32_t n, uint32_t first, uint32_t own, S* inverse) {       \
        rank_one(w, q, u, n, first, own, inverse);                                                                      \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                                                   \
        walk_all_##SUFFIX(Walk w, const S* rows, const S* inverse, uint32_t n, uint32_t first) {                         \
        decide_all(w, rows, inverse, n, first);                                                                         \
    }

KERNELS(f64, double)
KERNELS(c64, C64)
