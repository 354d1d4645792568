// Look-ahead sweeps: M = Phi(Y) A^-1 of all trial points, B = (A^-1)^T kept up to date. Electrons are decided in blocks
// of 64 by one block of threads a walker, which sweeps the block of M on its diagonal as it accepts. Blocks belong to
// panels: within one, a block's pivots sweep the panel's square part of M; behind it, M and B are updated by products
// of matrices as deep as electrons of the panel were accepted. 2 n^3 (M), 2 n^3 (B) and n^3 (the rest of M) flops are
// the floor if all are accepted, n electrons of one spin. Changes of J come from the functions of all pairs, found
// beforehand (`pairs.cu`).

#include "moves.cuh"
#include "tiles.cuh"

namespace {

// What a walker's last block accepted, and how many its panel had before.
struct Taken {
    uint64_t mask;
    uint32_t before;
    uint32_t count;
};
static_assert(sizeof(Taken) == host::walkers_ahead::TAKEN, "the host has room for it");

// e^(2 x), which stays finite unless x is no number.
__device__ inline double factor(double x) { return exp(x > 300.0 ? 600.0 : x < -300.0 ? -600.0 : 2.0 * x); }

// After the decisions of a block: who moved, the list of the panel, places.
__device__ inline void settle(const Walk& w, uint64_t taken, uint32_t walker, uint32_t begin, uint32_t panel, uint32_t size,
                              uint64_t at, Taken* state, uint32_t* chosen, uint32_t n) {
    const uint32_t thread = threadIdx.x;
    const uint32_t before = begin == panel ? 0 : state[walker].before + state[walker].count;
    __syncthreads();
    if (thread == 0) {
        state[walker] = {taken, before, uint32_t(__popcll(taken))};
        atomicAdd(&w.control->moved, (unsigned long long)__popcll(taken));
    }
    if (thread >= size) return;
    const bool yes = taken >> thread & 1;
    w.moved[at + thread] = yes;
    if (!yes) return;
    chosen[uint64_t(walker) * n + before + __popcll(taken & ((1ull << thread) - 1))] = begin + thread;
    for (int c = 0; c < 3; ++c) w.positions[3 * (at + thread) + c] = w.trial[3 * (at + thread) + c];
}

// Decides the electrons `begin` .. of a block. M's block on the diagonal is swept with each pivot that is accepted, so
// that what is left of it holds the ratios to come, and in the end the inverse of its accepted part,
// which goes to `inner`.
template <class S>
__device__ inline void decide(const Walk& w, const S* m, uint32_t n, uint32_t first, uint32_t begin, uint32_t panel, S* inner,
                              Taken* state, uint32_t* chosen) {
    constexpr int OWN = BLOCK * BLOCK / THREADS;
    __shared__ S row[2][BLOCK], column[2][BLOCK];
    __shared__ double more[BLOCK][BLOCK + 1], odds[2], draws[BLOCK];
    const uint32_t walker = blockIdx.x, size = min(uint32_t(BLOCK), n - begin), thread = threadIdx.x;
    // A thread has rows `top` .. of column j.
    const uint32_t j = thread % BLOCK, part = thread / BLOCK, top = part * OWN;
    const S* const own = m + uint64_t(walker) * n * n;
    const uint32_t number = (first > 0 ? blocks_of(w.up) : 0) + begin / BLOCK;
    const bool jastrow = w.pairs > 0;
    const double* const delta = jastrow ? tile_at(w, walker, number, number) : nullptr;
    S d[OWN];
#pragma unroll
    for (int q = 0; q < OWN; ++q) {
        const uint32_t i = top + q;
        d[q] = i < size && j < size ? own[uint64_t(begin + i) * n + begin + j] : S{};
        if (jastrow) more[i][j] = factor(delta[i * BLOCK + j]);
    }
    const uint64_t at = uint64_t(walker) * w.electrons + first + begin;
    double mine = 0.0;
    if (thread < size) {
        mine = factor(w.change[at + thread]);
        draws[thread] = decision(w, w.control->sweep, walker, first + begin + thread);
    }
    // Row `q` of those that a part of the threads has.
    auto publish = [&](uint32_t owner, int q) {
        const uint32_t k = owner * OWN + q, half = k % 2;
        if (part == owner) row[half][j] = d[q];
        if (j == k) {
#pragma unroll
            for (int p = 0; p < OWN; ++p) column[half][top + p] = d[p];
        }
        if (thread == k) odds[half] = mine;
    };
    publish(0, 0);
    __syncthreads();
    uint64_t taken = 0;
    for (uint32_t owner = 0; owner * OWN < size; ++owner) {
#pragma unroll
        for (int q = 0; q < OWN; ++q) {
            const uint32_t k = owner * OWN + q, half = q % 2;
            if (k >= size) break;
            const S pivot = row[half][k], one = reciprocal(pivot);
            const double ratio = squared(pivot) * odds[half];
            if (isnan(ratio)) w.control->failed = NO_NUMBER;
            if (draws[k] < ratio) {
                taken |= 1ull << k;
                if (jastrow && thread > k && thread < size) mine *= more[thread][k];
                S b = times(row[half][j], one);
                if (j == k) {
                    b = one;
#pragma unroll
                    for (int p = 0; p < OWN; ++p) d[p] = S{};
                }
#pragma unroll
                for (int p = 0; p < OWN; ++p) d[p] = mla(minus(column[half][top + p]), b, d[p]);
                if (part == owner) d[q] = b;
            }
            if (k + 1 < size) publish(q + 1 < OWN ? owner : owner + 1, (q + 1) % OWN);
            __syncthreads();
        }
    }
    S* const g = inner + uint64_t(walker) * BLOCK * BLOCK;
    auto rank = [&](uint32_t i) { return __popcll(taken & ((1ull << i) - 1)); };
#pragma unroll
    for (int q = 0; q < OWN; ++q) {
        const uint32_t i = top + q;
        if ((taken >> i & 1) && (taken >> j & 1)) g[rank(i) * BLOCK + rank(j)] = d[q];
    }
    settle(w, taken, walker, begin, panel, size, at, state, chosen, n);
}

// The same for a sum of products of determinants, whose blocks are swept where they stand in `work`.
template <class S>
__device__ inline void decide_sum(const Walk& w, const Expansion& e, uint32_t spin, const S* m, uint32_t n, uint32_t first,
                                  uint32_t begin, uint32_t panel, S* work, S* inner, Taken* state, uint32_t* chosen) {
    constexpr uint32_t SQUARE = BLOCK * BLOCK;
    const uint32_t walker = blockIdx.x, size = min(uint32_t(BLOCK), n - begin), thread = threadIdx.x;
    const uint32_t fillings = e.fillings[spin], number = (first > 0 ? blocks_of(w.up) : 0) + begin / BLOCK;
    const uint64_t all = uint64_t(fillings) * SQUARE, stride = uint64_t(w.walkers) * SQUARE;
    S* const own = work + uint64_t(walker) * SQUARE;
    for (uint64_t x = thread; x < all; x += THREADS) {
        const uint32_t f = x / SQUARE, i = x % SQUARE / BLOCK, j = x % BLOCK;
        const uint64_t matrix = f * uint64_t(w.walkers) + walker;
        own[f * stride + x % SQUARE] =
            i < size && j < size ? m[(matrix * n + begin + i) * n + begin + j] : S{};
    }
    const uint64_t at = uint64_t(walker) * w.electrons + first + begin;
    __shared__ double change, draws[BLOCK];
    double mine = 0.0;
    if (thread < size) {
        mine = w.change[at + thread];
        draws[thread] = decision(w, w.control->sweep, walker, first + begin + thread);
    }
    const double* const delta = w.pairs > 0 ? tile_at(w, walker, number, number) : nullptr;
    uint64_t taken = 0;
    for (uint32_t k = 0; k < size; ++k) {
        __syncthreads();
        if (thread == k) change = mine;
        __syncthreads();
        const S* const pivots = own + k * BLOCK + k;
        const C64 ratio = ratio_of(e, walker, spin, pivots, stride);
        const double odds = squared(ratio) * exp(2.0 * change);
        if (isnan(odds)) w.control->failed = NO_NUMBER;
        if (!(draws[k] < odds)) continue;
        taken |= 1ull << k;
        if (delta && thread > k && thread < size) mine += delta[thread * BLOCK + k];
        reweigh(e, walker, spin, pivots, stride, ratio);
        for (uint64_t x = thread; x < all; x += THREADS) {
            const uint32_t i = x % SQUARE / BLOCK, j = x % BLOCK;
            S* const d = own + x / SQUARE * stride;
            if (i == k || j == k) continue;
            d[i * BLOCK + j] = mla(minus(times(d[i * BLOCK + k], inverse_of(d[k * BLOCK + k]))), d[k * BLOCK + j],
                                   d[i * BLOCK + j]);
        }
        __syncthreads();
        for (uint32_t x = thread; x < fillings * BLOCK; x += THREADS) {
            S* const d = own + x / BLOCK * stride;
            const uint32_t i = x % BLOCK;
            if (i == k) continue;
            const S one = inverse_of(d[k * BLOCK + k]);
            d[k * BLOCK + i] = times(d[k * BLOCK + i], one);
            d[i * BLOCK + k] = minus(times(d[i * BLOCK + k], one));
        }
        __syncthreads();
        for (uint32_t f = thread; f < fillings; f += THREADS) {
            S& pivot = own[f * stride + k * BLOCK + k];
            pivot = inverse_of(pivot);
        }
    }
    __syncthreads();
    for (uint64_t x = thread; x < all; x += THREADS) {
        const uint32_t i = x % SQUARE / BLOCK, j = x % BLOCK;
        if (!(taken >> i & 1) || !(taken >> j & 1)) continue;
        const uint32_t a = __popcll(taken & ((1ull << i) - 1)), b = __popcll(taken & ((1ull << j) - 1));
        inner[x / SQUARE * stride + uint64_t(walker) * SQUARE + a * BLOCK + b] = own[x / SQUARE * stride + x % SQUARE];
    }
    settle(w, taken, walker, begin, panel, size, at, state, chosen, n);
}

// Which of a block's accepted electrons an electron is, or none.
__device__ __forceinline__ int place_in(const Taken& t, uint32_t begin, uint32_t i) {
    if (i < begin || i >= begin + BLOCK || !(t.mask >> (i - begin) & 1)) return -1;
    return __popcll(t.mask & ((1ull << (i - begin)) - 1));
}

// What the sweep of a panel with a block's pivots S needs: T = M_SS^-1 M_S, the inverse itself in the columns of S, in
// `t`; the columns S of M in `l`. Then the changes of J of all electrons behind the block.
template <class S>
__device__ inline void sweep_rows(const Walk& w, const S* m, const S* inner, const Taken* state, const uint32_t* chosen, S* t,
                                  S* l, uint32_t n, uint32_t first, uint32_t begin, uint32_t panel, uint32_t wide) {
    const uint32_t matrix = blockIdx.y, walker = matrix % w.walkers, size = min(wide, n - panel);
    const uint32_t tiles = blocks_of(size);
    const Taken taken = state[walker];
    if (taken.count == 0) return;
    const uint32_t* const list = chosen + uint64_t(walker) * n + taken.before;
    const uint64_t square = uint64_t(matrix) * n * n, strip = uint64_t(matrix) * BLOCK * wide;
    if (blockIdx.x < tiles) {
        const uint32_t from = blockIdx.x * EDGE;
        const S* const g = inner + uint64_t(matrix) * BLOCK * BLOCK;
        Sums<S, EDGE> sum{};
        tile(
            taken.count, true, [&](uint32_t k, uint32_t i) { return i < taken.count ? g + i * BLOCK + k : nullptr; }, false,
            [&](uint32_t k, uint32_t j) {
                return from + j < size ? m + square + uint64_t(list[k]) * n + panel + from + j : nullptr;
            },
            sum);
        sum.each([&](uint32_t i, uint32_t j, const S& x) {
            j += from;
            if (i >= taken.count || j >= size) return;
            const int own = place_in(taken, begin, panel + j);
            t[strip + uint64_t(i) * wide + j] = own < 0 ? x : g[i * BLOCK + own];
        });
    } else if (blockIdx.x < 2 * tiles) {
        const uint32_t from = (blockIdx.x - tiles) * EDGE, k = threadIdx.x % BLOCK;
        if (k >= taken.count) return;
        const S* const column = m + square + list[k];
        for (uint32_t i = from + threadIdx.x / BLOCK; i < min(from + EDGE, size); i += THREADS / BLOCK)
            l[strip + uint64_t(i) * BLOCK + k] = column[uint64_t(panel + i) * n];
    } else if (matrix < w.walkers) {
        const uint32_t own = (first > 0 ? blocks_of(w.up) : 0) + begin / BLOCK;
        const uint32_t other = own + 1 + blockIdx.x - 2 * tiles;
        uint32_t start, count;
        block_of(w, other, start, count);
        const double* const delta = tile_at(w, walker, other, own);
        const uint32_t lane = threadIdx.x % WARP;
        for (uint32_t i = threadIdx.x / WARP; i < count; i += 8) {
            double sum = taken.mask >> lane & 1 ? delta[i * BLOCK + lane] : 0.0;
            if (taken.mask >> (lane + WARP) & 1) sum += delta[i * BLOCK + lane + WARP];
            sum = warp_sum(sum);
            if (lane == 0) w.change[uint64_t(walker) * w.electrons + start + i] += sum;
        }
    }
}

// The sweep of the panel's square part of M: rows S become T, the others lose the columns S times T.
template <class S>
__device__ inline void sweep(const Walk& w, S* m, const Taken* state, const S* t, const S* l, uint32_t n, uint32_t begin,
                             uint32_t panel, uint32_t wide) {
    const uint32_t matrix = blockIdx.y, size = min(wide, n - panel), tiles = blocks_of(size);
    const Taken taken = state[matrix % w.walkers];
    if (taken.count == 0) return;
    const uint32_t down = blockIdx.x / tiles * EDGE, across = blockIdx.x % tiles * EDGE;
    const uint64_t strip = uint64_t(matrix) * BLOCK * wide;
    S* const c = m + uint64_t(matrix) * n * n + uint64_t(panel) * n + panel;
    Sums<S, EDGE> sum;
    sum.each([&](uint32_t i, uint32_t j, S& x) {
        i += down, j += across;
        x = i < size && j < size && place_in(taken, begin, panel + j) < 0 ? minus(c[uint64_t(i) * n + j]) : S{};
    });
    tile(
        taken.count, true,
        [&](uint32_t k, uint32_t i) { return down + i < size ? l + strip + uint64_t(down + i) * BLOCK + k : nullptr; }, false,
        [&](uint32_t k, uint32_t j) { return across + j < size ? t + strip + uint64_t(k) * wide + across + j : nullptr; }, sum);
    sum.each([&](uint32_t i, uint32_t j, const S& x) {
        i += down, j += across;
        if (i >= size || j >= size) return;
        const int own = place_in(taken, begin, panel + i);
        c[uint64_t(i) * n + j] = own < 0 ? minus(x) : t[strip + uint64_t(own) * wide + j];
    });
}

// After a panel is decided: X = M_AA^-1 (M_A - 1_A) for its accepted rows A; copies of the columns of M that the update
// takes (`left`, `wide` a row) and of the rows of B (`old`).
template <class S>
__device__ inline void panel_rows(const Walk& w, const S* m, const S* inverse, const Taken* state, const uint32_t* chosen,
                                  S* x, S* left, S* old, uint32_t n, uint32_t first, uint32_t panel, uint32_t wide) {
    const uint32_t tiles = blocks_of(n), matrix = blockIdx.y, walker = matrix % w.walkers;
    const uint32_t size = min(wide, n - panel), end = panel + size, heights = tall<S>(size);
    const uint32_t count = state[walker].before + state[walker].count;
    const uint32_t* const list = chosen + uint64_t(walker) * n;
    const uint64_t square = uint64_t(matrix) * n * n, strip = uint64_t(matrix) * wide * n;
    if (blockIdx.x < heights * tiles) {
        const uint32_t down = blockIdx.x / tiles * TALL<S>, from = blockIdx.x % tiles * EDGE;
        if (down >= count) return;
        // Columns of the panel need no product: the sweep has made it.
        const bool inside = from >= panel && from < end;
        Sums<S, TALL<S>> sum{};
        tile(
            inside ? 0 : count, true,
            [&](uint32_t k, uint32_t i) {
                return down + i < count ? m + square + uint64_t(list[down + i]) * n + list[k] : nullptr;
            },
            false,
            [&](uint32_t k, uint32_t j) {
                return from + j < n ? m + square + uint64_t(list[k]) * n + from + j : nullptr;
            },
            sum);
        sum.each([&](uint32_t i, uint32_t j, S z) {
            i += down, j += from;
            if (i >= count || j >= n) return;
            if (inside) {
                z = m[square + uint64_t(list[i]) * n + j];
                if (w.moved[uint64_t(walker) * w.electrons + first + j]) {
                    S unit;
                    set_real(unit, list[i] == j ? 1.0 : 0.0);
                    z = plus(unit, minus(z));
                }
            }
            x[strip + uint64_t(i) * n + j] = z;
        });
        return;
    }
    const uint32_t number = blockIdx.x - heights * tiles, down = number / tiles * TALL<S>, from = number % tiles * EDGE;
    const uint32_t k = down + threadIdx.x % TALL<S>, some = threadIdx.x / TALL<S>;
    if (k < count)
        for (uint32_t j = max(from, end) + some; j < min(from + EDGE, n); j += THREADS / TALL<S>)
            left[strip + uint64_t(j) * wide + k] = m[square + uint64_t(j) * n + list[k]];
    const uint32_t j = from + threadIdx.x % EDGE;
    if (j < n)
        for (uint32_t i = down + threadIdx.x / EDGE; i < min(down + TALL<S>, count); i += THREADS / EDGE)
            old[strip + uint64_t(i) * n + j] = inverse[square + uint64_t(list[i]) * n + j];
}

// M -= left X for the rows behind the panel, B -= X^T old.
template <class S>
__device__ inline void update(const Walk& w, S* m, S* inverse, const Taken* state, const S* x, const S* left, const S* old,
                              uint32_t n, uint32_t panel, uint32_t wide) {
    const uint32_t tiles = blocks_of(n), matrix = blockIdx.y, end = min(panel + wide, n);
    const uint32_t count = state[matrix % w.walkers].before + state[matrix % w.walkers].count;
    if (count == 0) return;
    const uint32_t lower = tall<S>(n - end) * tiles;
    const uint64_t square = uint64_t(matrix) * n * n, strip = uint64_t(matrix) * wide * n;
    const bool of_m = blockIdx.x < lower;
    const uint32_t number = of_m ? blockIdx.x : blockIdx.x - lower;
    const uint32_t down = number / tiles * TALL<S> + (of_m ? end : 0), across = number % tiles * EDGE;
    const S *const p = (of_m ? left : x) + strip, *const q = (of_m ? x : old) + strip;
    S* const c = (of_m ? m : inverse) + square;
    // The old values are read while the factors are being loaded.
    Sums<S, TALL<S>> sum;
    sum.each([&](uint32_t i, uint32_t j, S& x) {
        i += down, j += across;
        x = i < n && j < n ? minus(c[uint64_t(i) * n + j]) : S{};
    });
    // How far it is from one row of the left factor to the next, and from one step to the next.
    const uint32_t next = of_m ? wide : 1, step = of_m ? 1 : n;
    tile(
        count, of_m,
        [&](uint32_t k, uint32_t i) { return down + i < n ? p + uint64_t(down + i) * next + uint64_t(k) * step : nullptr; },
        false, [&](uint32_t k, uint32_t j) { return across + j < n ? q + uint64_t(k) * n + across + j : nullptr; }, sum);
    sum.each([&](uint32_t i, uint32_t j, const S& x) {
        i += down, j += across;
        if (i < n && j < n) c[uint64_t(i) * n + j] = minus(x);
    });
}

// M = Phi A^-1.
template <class S>
__device__ inline void product(const S* rows, const S* inverse, uint32_t n, S* m) {
    const uint32_t tiles = blocks_of(n);
    const uint64_t square = uint64_t(blockIdx.y) * n * n;
    const uint32_t down = blockIdx.x / tiles * TALL<S>, across = blockIdx.x % tiles * EDGE;
    Sums<S, TALL<S>> sum{};
    tile(
        n, true, [&](uint32_t k, uint32_t i) { return down + i < n ? rows + square + uint64_t(down + i) * n + k : nullptr; },
        true, [&](uint32_t k, uint32_t j) {
            return across + j < n ? inverse + square + uint64_t(across + j) * n + k : nullptr;
        },
        sum);
    sum.each([&](uint32_t i, uint32_t j, const S& x) {
        i += down, j += across;
        if (i < n && j < n) m[square + uint64_t(i) * n + j] = x;
    });
}

}  // namespace

#define BLOCKS_OF(S) __launch_bounds__(THREADS, sizeof(S) == 8 ? 2 : 1)

#define KERNELS(SUFFIX, S)                                                                                              \
    extern "C" __global__ void BLOCKS_OF(S)                                                                             \
        walk_product_##SUFFIX(const S* rows, const S* inverse, uint32_t n, S* m) {                                       \
        product(rows, inverse, n, m);                                                                                   \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        walk_decide_##SUFFIX(Walk w, const S* m, uint32_t n, uint32_t first, uint32_t begin, uint32_t panel, S* inner,   \
                             Taken* state, uint32_t* chosen) {                                                          \
        decide(w, m, n, first, begin, panel, inner, state, chosen);                                                      \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        walk_decide_sum_##SUFFIX(Walk w, Expansion e, uint32_t spin, const S* m, uint32_t n, uint32_t first,             \
                                 uint32_t begin, uint32_t panel, S* work, S* inner, Taken* state, uint32_t* chosen) {    \
        decide_sum(w, e, spin, m, n, first, begin, panel, work, inner, state, chosen);                                   \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        walk_sweep_rows_##SUFFIX(Walk w, const S* m, const S* inner, const Taken* state, const uint32_t* chosen, S* t,   \
                                 S* l, uint32_t n, uint32_t first, uint32_t begin, uint32_t panel, uint32_t wide) {      \
        sweep_rows(w, m, inner, state, chosen, t, l, n, first, begin, panel, wide);                                      \
    }                                                                                                                   \
    extern "C" __global__ void BLOCKS_OF(S)                                                                             \
        walk_sweep_##SUFFIX(Walk w, S* m, const Taken* state, const S* t, const S* l, uint32_t n, uint32_t begin,        \
                            uint32_t panel, uint32_t wide) {                                                            \
        sweep(w, m, state, t, l, n, begin, panel, wide);                                                                \
    }                                                                                                                   \
    extern "C" __global__ void BLOCKS_OF(S)                                                                             \
        walk_panel_##SUFFIX(Walk w, const S* m, const S* inverse, const Taken* state, const uint32_t* chosen, S* x,      \
                            S* left, S* old, uint32_t n, uint32_t first, uint32_t panel, uint32_t wide) {                \
        panel_rows(w, m, inverse, state, chosen, x, left, old, n, first, panel, wide);                                   \
    }                                                                                                                   \
    extern "C" __global__ void BLOCKS_OF(S)                                                                             \
        walk_update_##SUFFIX(Walk w, S* m, S* inverse, const Taken* state, const S* x, const S* left, const S* old,      \
                             uint32_t n, uint32_t panel, uint32_t wide) {                                               \
        update(w, m, inverse, state, x, left, old, n, panel, wide);                                                     \
    }

KERNELS(f64, double)
KERNELS(c64, C64)
