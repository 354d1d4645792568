// Sweeps of the walkers of a Slater-Jastrow wave function: trial points, rows of orbitals, and the schemes that decide
// about electrons one by one, all at once, or as a whole (`ahead.cu` and `groups.cu` have the others). Scalars S are
// those of the orbitals. Kept of every determinant is B = (A^-1)^T, so that a ratio is a product of two rows. Matrices
// are numbered filling * walkers + walker, fillings of one spin.
// Floor of a sweep over n electrons of one spin, for every filling, if a part a of them moves. One by one: 2 n^3 flops
// for the ratios and 2 a n^3 for B, which is read once a ratio, and read and written once a move: (1 + 2 a) n^3
// numbers, from the cache where all walkers' matrices fit in there. All at once: rows and B once, 2 n^2 flops, and the
// inverse anew (`inverse.cu`).

#include "moves.cuh"

namespace {

__device__ inline double normal(uint4 d, bool second) {
    double one, other;
    normals(d, one, other);
    return second ? other : one;
}

template <class F>
__device__ __forceinline__ double orbital(const F* lanes, uint32_t l, double3, const double*, double) {
    return double(lanes[l]);
}

template <class F>
__device__ __forceinline__ C64 orbital(const F* lanes, uint32_t l, double3 k, const double* r, C64) {
    C64 turn;
    sincos(k.x * r[0] + k.y * r[1] + k.z * r[2], &turn.im, &turn.re);
    return times(turn, C64{double(lanes[2 * l]), double(lanes[2 * l + 1])});
}

// Rows of orbitals at electrons `first` .. of every walker, from a plane of the table: n orbitals a row, for every
// filling. With TRANSPOSED the electrons lie side by side instead.
template <class F, bool TRANSPOSED, class S>
__device__ void rows_of(const F* plane, uint32_t lanes, const Walk& w, uint32_t first, uint32_t count, uint32_t n,
                        const uint32_t* filling, uint32_t fillings, double3 k, S* out) {
    const uint64_t each = uint64_t(count) * n;
    for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < each * w.walkers * fillings;
         at += uint64_t(gridDim.x) * blockDim.x) {
        const uint32_t matrix = at / each, l = at % each % n, i = at % each / n;
        const uint64_t point = uint64_t(first + i) * w.walkers + matrix % w.walkers;
        const uint64_t to = TRANSPOSED ? matrix * each + uint64_t(l) * count + i : at;
        out[to] = orbital(plane + point * lanes, filling[matrix / w.walkers * n + l], k, w.points + 3 * point, S{});
    }
}

// The drift of every electron where points were evaluated with derivatives: v = grad ln sqrt(rho) of the one-body
// density, shortened where it is long (Umrigar). Real and imaginary parts are lanes alike, and a twist drops out.
// A warp an electron.
template <class F>
__device__ inline void drift(const F* planes, uint32_t lanes, uint32_t filled, const Walk& w, double* out) {
    const uint64_t at = blockIdx.x * WARPS + threadIdx.x / WARP, plane = uint64_t(w.electrons) * w.walkers * lanes;
    if (at >= w.walkers * w.electrons) return;
    const F* const row = planes + (at % w.electrons * w.walkers + at / w.electrons) * lanes;
    double density = 0.0, slope[3] = {};
    for (uint32_t l = threadIdx.x % WARP; l < filled; l += WARP) {
        const double value = row[l];
        density = fma(value, value, density);
        for (int d = 0; d < 3; ++d) slope[d] = fma(value, double(row[(d + 1) * plane + l]), slope[d]);
    }
    density = warp_sum(density);
    double square = 0.0;
    for (int d = 0; d < 3; ++d) {
        slope[d] = warp_sum(slope[d]);
        slope[d] = density > 1e-300 ? slope[d] / density : 0.0;
        square += slope[d] * slope[d];
    }
    square *= w.control->step * w.control->step;
    const double factor = square > 1e-12 ? (sqrt(1.0 + 2.0 * square) - 1.0) / square : 1.0;
    if (threadIdx.x % WARP < 3) out[3 * at + threadIdx.x % WARP] = factor * slope[threadIdx.x % WARP];
}

// Ratios of one row of orbitals a matrix with all rows of B. One warp per row.
template <class S>
__device__ inline void ratios(const S* row, const S* inverse, uint32_t n, S* out) {
    const uint32_t j = blockIdx.x * WARPS + threadIdx.x / WARP;
    const uint64_t matrix = blockIdx.y;
    if (j >= n) return;
    const S z = dot(row + matrix * n, inverse + (matrix * n + j) * n, n);
    if (threadIdx.x % WARP == 0) out[matrix * n + j] = z;
}

// The decision of one electron of a walker, whose ratios stand in `q`;
// row `own` of B over the ratio goes to `u` if it moves.
template <class S>
__device__ inline void decide_one(const Walk& w, const Expansion& e, uint32_t spin, const S* q, const S* inverse, uint32_t n,
                                  uint32_t first, uint32_t own, S* u) {
    __shared__ bool yes;
    const uint32_t walker = blockIdx.x, i = first + own;
    const uint64_t at = uint64_t(walker) * w.electrons + i, stride = uint64_t(w.walkers) * n;
    const S* const mine = q + uint64_t(walker) * n + own;
    const C64 ratio = ratio_of(e, walker, spin, mine, stride);
    if (threadIdx.x < WARP) {
        const double change = w.pairs + w.bodies > 0 ? change_of(w, walker, i) : 0.0;
        if (threadIdx.x == 0) {
            const double odds = squared(ratio) * exp(2.0 * (change + 0.5 * w.bias[at]));
            if (isnan(odds)) w.control->failed = NO_NUMBER;
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
    reweigh(e, walker, spin, mine, stride, ratio);
    for (uint32_t f = 0; f < e.fillings[spin]; ++f) {
        const uint64_t matrix = f * uint64_t(w.walkers) + walker;
        const S one = inverse_of(q[matrix * n + own]);
        const S* const row = inverse + (matrix * n + own) * n;
        for (uint32_t l = threadIdx.x; l < n; l += blockDim.x) u[matrix * n + l] = times(row[l], one);
    }
}

// B -= (q - 1_own) u^T where the electron moved (Sherman and Morrison).
template <class S>
__device__ inline void rank_one(const Walk& w, const S* q, const S* u, uint32_t n, uint32_t first, uint32_t own,
                                S* inverse) {
    const uint32_t j = blockIdx.x;
    const uint64_t matrix = blockIdx.y;
    if (!w.moved[matrix % w.walkers * w.electrons + first + own]) return;
    S one;
    set_real(one, j == own ? -1.0 : 0.0);
    const S factor = minus(plus(q[matrix * n + j], one));
    S* const row = inverse + (matrix * n + j) * n;
    for (uint32_t l = threadIdx.x; l < n; l += blockDim.x) row[l] = mla(factor, u[matrix * n + l], row[l]);
}

// Decisions of all electrons of a spin against the old configuration. One warp per electron.
template <class S>
__device__ inline void decide_all(const Walk& w, const Expansion& e, uint32_t spin, const S* rows, const S* inverse,
                                  uint32_t n, uint32_t first) {
    const uint32_t own = blockIdx.x * WARPS + threadIdx.x / WARP, walker = blockIdx.y;
    if (own >= n) return;
    const uint64_t at = uint64_t(walker) * w.electrons + first + own;
    C64 ratio{};
    for (uint32_t f = 0; f < e.fillings[spin]; ++f) {
        const uint64_t matrix = f * uint64_t(w.walkers) + walker, row = (matrix * n + own) * n;
        ratio = mla(e.weights[spin][matrix], wide(dot(rows + row, inverse + row, n)), ratio);
    }
    if (threadIdx.x % WARP > 0) return;
    const double odds = squared(ratio) * exp(2.0 * w.change[at]);
    if (isnan(odds)) w.control->failed = NO_NUMBER;
    if (decision(w, w.control->sweep, walker, first + own) < odds) {
        atomicAdd(&w.control->moved, 1ull);
        for (int c = 0; c < 3; ++c) w.positions[3 * at + c] = w.trial[3 * at + c];
    }
}

}  // namespace

// Trial points of a sweep, drifting by step^2 v if there is a drift.
extern "C" __global__ void walk_trial(Walk w, const double* drift) {
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
            double x = w.positions[3 * uint64_t(at) + c];
            if (drift) x = fma(step * step, drift[3 * uint64_t(at) + c], x);
            const double y = fma(step, by[c], x);
            w.trial[3 * uint64_t(at) + c] = y;
            w.points[3 * (uint64_t(i) * w.walkers + walker) + c] = y;
        }
        w.bias[at] = 0.0;
    }
}

// ln q(x|y) - ln q(y|x) of every electron, from the drifts at x and at y.
extern "C" __global__ void walk_bias(Walk w, const double* here, const double* there) {
    const double variance = w.control->step * w.control->step;
    for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < w.walkers * w.electrons; at += gridDim.x * blockDim.x) {
        double ahead = 0.0, back = 0.0;
        for (int c = 0; c < 3; ++c) {
            const uint64_t k = 3 * uint64_t(at) + c;
            const double x = w.positions[k], y = w.trial[k];
            ahead += squared(y - (x + variance * here[k]));
            back += squared(x - (y + variance * there[k]));
        }
        w.bias[at] = (ahead - back) / (2.0 * variance);
    }
}

// Points of all electrons, to be evaluated: where they are, or their trial points.
extern "C" __global__ void walk_places(Walk w, uint32_t trial) {
    const double* const from = trial ? w.trial : w.positions;
    for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < w.walkers * w.electrons; at += gridDim.x * blockDim.x) {
        const uint32_t walker = at / w.electrons, i = at % w.electrons;
        for (int c = 0; c < 3; ++c) w.points[3 * (uint64_t(i) * w.walkers + walker) + c] = from[3 * uint64_t(at) + c];
    }
}

// Changes of J of all electrons against the configuration as it is. One warp per electron.
extern "C" __global__ void walk_change(Walk w) {
    const uint32_t i = blockIdx.x * WARPS + threadIdx.x / WARP, walker = blockIdx.y;
    if (i >= w.electrons) return;
    const double sum = change_of(w, walker, i);
    const uint64_t at = uint64_t(walker) * w.electrons + i;
    if (threadIdx.x % WARP == 0) w.change[at] = sum + 0.5 * w.bias[at];
}

// What each electron adds to the change of J if all of them go to their trial points: its bodies, and those before it.
// A warp an electron.
extern "C" __global__ void walk_whole(Walk w) {
    const uint32_t i = blockIdx.x * WARPS + threadIdx.x / WARP, walker = blockIdx.y;
    if (i >= w.electrons) return;
    const uint64_t own = uint64_t(walker) * w.electrons;
    const double *x = w.positions + 3 * own, *y = w.trial + 3 * own;
    double sum = 0.0;
    if (w.pairs > 0) {
        for (uint32_t j = threadIdx.x % WARP; j < i; j += WARP) {
            const uint32_t opposite = (i < w.up) != (j < w.up);
            sum += pair_sum(w, opposite, distance(*w.images, y + 3 * i, y + 3 * j))
                 - pair_sum(w, opposite, distance(*w.images, x + 3 * i, x + 3 * j));
        }
    }
    sum = warp_sum(sum + bodies_of(w, x + 3 * i, y + 3 * i));
    if (threadIdx.x % WARP == 0) w.change[own + i] = sum + 0.5 * w.bias[own + i];
}

// All electrons of a walker move or none does: from what is known here (`e`) and at the trial points (`other`).
extern "C" __global__ void __launch_bounds__(THREADS) walk_configuration(Walk w, Expansion e, Expansion other) {
    const uint32_t walker = blockIdx.x;
    const uint64_t own = uint64_t(walker) * w.electrons;
    double change = 0.0;
    for (uint32_t i = threadIdx.x; i < w.electrons; i += THREADS) change += w.change[own + i];
    change = block_sum(change);
    const double there = other.total[walker];
    // A move to a node is never accepted.
    bool yes = false;
    if (!(isinf(there) && there < 0.0)) {
        const double odds = exp(2.0 * (there - e.total[walker] + change));
        if (isnan(odds)) w.control->failed = NO_NUMBER;
        yes = decision(w, w.control->sweep, walker, 0) < odds;
    }
    for (uint32_t i = threadIdx.x; i < w.electrons; i += THREADS) {
        w.moved[own + i] = yes;
        if (yes)
            for (int c = 0; c < 3; ++c) w.positions[3 * (own + i) + c] = w.trial[3 * (own + i) + c];
    }
    __syncthreads();
    if (!yes) return;
    for (uint32_t t = threadIdx.x; t < e.products; t += THREADS)
        e.shares[uint64_t(walker) * e.products + t] = other.shares[uint64_t(walker) * e.products + t];
    if (threadIdx.x == 0) {
        e.total[walker] = there;
        atomicAdd(&w.control->moved, (unsigned long long)w.electrons);
    }
}

// The shares of products, from the determinants of their fillings.
extern "C" __global__ void __launch_bounds__(THREADS) walk_shares(uint32_t walkers, Expansion e, Control* control) {
    const uint32_t walker = blockIdx.x;
    C64* const shares = e.shares + uint64_t(walker) * e.products;
    auto log_of = [&](uint32_t t) {
        double sum = 0.0;
        for (uint32_t s = 0; s < 2; ++s)
            if (e.places[2 * t + s] != NONE) sum += e.logs[s][uint64_t(e.places[2 * t + s]) * walkers + walker];
        return sum;
    };
    if (e.products == 1) {
        if (threadIdx.x == 0) e.total[walker] = log_of(0);
        return;
    }
    __shared__ double tops[THREADS];
    double top = -INFINITY;
    bool regular = true;
    for (uint32_t t = threadIdx.x; t < e.products; t += THREADS) {
        const double l = log_of(t);
        top = fmax(top, l);
        regular = regular && isfinite(l);
    }
    tops[threadIdx.x] = top;
    regular = __syncthreads_and(regular);
    for (int k = 0; k < THREADS; ++k) top = fmax(top, tops[k]);
    C64 sum{};
    for (uint32_t t = threadIdx.x; t < e.products; t += THREADS) {
        C64 z = e.coefficients[t];
        for (uint32_t s = 0; s < 2; ++s)
            if (e.places[2 * t + s] != NONE)
                z = times(z, e.phases[s][uint64_t(e.places[2 * t + s]) * walkers + walker]);
        const double size = exp(log_of(t) - top);
        shares[t] = {z.re * size, z.im * size};
        sum = plus(sum, shares[t]);
    }
    sum = block_sum(sum);
    const double size = sqrt(squared(sum));
    const bool good = regular && size >= 1e-300 && isfinite(size);
    if (threadIdx.x == 0) {
        e.total[walker] = good ? top + log(size) : isnan(size) && regular ? NAN : -INFINITY;
        if (!good) control->failed = ON_NODE;
    }
    const C64 one = inverse_of(sum);
    for (uint32_t t = threadIdx.x; t < e.products; t += THREADS) shares[t] = times(shares[t], one);
}

// The weights of fillings in ratios. One block per walker.
extern "C" __global__ void __launch_bounds__(THREADS) walk_weights(uint32_t walkers, Expansion e) {
    const uint32_t walker = blockIdx.x;
    const C64* const shares = e.shares + uint64_t(walker) * e.products;
    for (uint32_t s = 0; s < 2; ++s)
        for (uint32_t f = threadIdx.x; f < e.fillings[s]; f += THREADS) {
            C64 sum{};
            for (uint32_t t = 0; t < e.products; ++t)
                if (e.places[2 * t + s] == f) sum = plus(sum, shares[t]);
            e.weights[s][uint64_t(f) * walkers + walker] = sum;
        }
}

extern "C" __global__ void walk_next(Walk w) { w.control->sweep += 1; }

#define ROWS(NAME, F, S, TRANSPOSED)                                                                                    \
    extern "C" __global__ void NAME(const F* plane, uint32_t lanes, Walk w, uint32_t first, uint32_t count, uint32_t n,  \
                                    const uint32_t* filling, uint32_t fillings, double3 k, S* out) {                    \
        rows_of<F, TRANSPOSED>(plane, lanes, w, first, count, n, filling, fillings, k, out);                             \
    }

#define DRIFT(NAME, F)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        NAME(const F* planes, uint32_t lanes, uint32_t filled, Walk w, double* out) {                                    \
        drift(planes, lanes, filled, w, out);                                                                           \
    }

ROWS(walk_rows_f32_f64, float, double, false)
ROWS(walk_rows_f64_f64, double, double, false)
ROWS(walk_rows_f32_c64, float, C64, false)
ROWS(walk_rows_f64_c64, double, C64, false)
ROWS(walk_columns_f32_f64, float, double, true)
ROWS(walk_columns_f64_f64, double, double, true)
ROWS(walk_columns_f32_c64, float, C64, true)
ROWS(walk_columns_f64_c64, double, C64, true)
DRIFT(walk_drift_f32, float)
DRIFT(walk_drift_f64, double)

#define KERNELS(SUFFIX, S)                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        walk_ratios_##SUFFIX(const S* row, const S* inverse, uint32_t n, S* out) {                                       \
        ratios(row, inverse, n, out);                                                                                   \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        walk_one_##SUFFIX(Walk w, Expansion e, uint32_t spin, const S* q, const S* inverse, uint32_t n, uint32_t first,  \
                          uint32_t own, S* u) {                                                                         \
        decide_one(w, e, spin, q, inverse, n, first, own, u);                                                            \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        walk_rank_##SUFFIX(Walk w, const S* q, const S* u, uint32_t n, uint32_t first, uint32_t own, S* inverse) {       \
        rank_one(w, q, u, n, first, own, inverse);                                                                      \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        walk_all_##SUFFIX(Walk w, Expansion e, uint32_t spin, const S* rows, const S* inverse, uint32_t n,               \
                          uint32_t first) {                                                                             \
        decide_all(w, e, spin, rows, inverse, n, first);                                                                 \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        walk_take_##SUFFIX(Walk w, const S* from, uint32_t n, S* to) {                                                   \
        const uint64_t square = uint64_t(n) * n, matrix = blockIdx.y;                                                   \
        if (!w.moved[matrix % w.walkers * w.electrons]) return;                                                         \
        for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < square;                                 \
             at += uint64_t(gridDim.x) * blockDim.x)                                                                    \
            to[matrix * square + at] = from[matrix * square + at];                                                      \
    }

KERNELS(f64, double)
KERNELS(c64, C64)
