// Inverse matrices of many walkers at once, by Gauss and Jordan with partial pivoting, in panels of columns: a block of
// threads a matrix takes a panel, and a product of matrices the rest. A matrix is given as its columns, A[i][j] at j n
// + i, and its inverse comes out as rows that are the columns of A^-1.
// Floor of a matrix: 2 n^3 flops (8 n^3 in complex numbers), nearly all of them in the products; every panel reads and
// writes the other columns once, 2 n^3/PANEL numbers.

#include "tiles.cuh"

namespace {

constexpr int PANEL = host::walkers::PANEL;
constexpr int WIDEST = 8;
// Threads of a panel: as many as its columns times the rows that a strip exchanges at most.
constexpr int LONG = 2 * WIDEST * PANEL;
static_assert(LONG == host::walkers_inverse::LONG, "as the host launches them");
constexpr int LONGEST = host::walkers::MOST_ELECTRONS;

// Rows that the pivots of a strip exchange, and what each of them holds after it: the row of which source.
struct Moves {
    uint32_t count;
    uint32_t rows[2 * WIDEST];
    uint32_t sources[2 * WIDEST];
};
static_assert(PANEL / 4 * sizeof(Moves) == host::walkers::MOVES, "the host has room for those of strips of 4 columns");

// Columns of a strip: as many as registers hold with R rows of it a thread.
template <class S, int R>
constexpr int COLUMNS = sizeof(S) == sizeof(C64) && R > 1 ? 4 : WIDEST;

// A panel's columns, which become the factors of its elimination: `t[k][i]`. Strips of it are eliminated among
// themselves in registers, R rows a thread, then from the rest of the panel.
template <class S, int R>
__device__ inline void panel(const S* work, S* t, uint32_t* pivots, S* diagonal, Moves* moves, uint32_t n, uint32_t begin,
                             Control* control) {
    constexpr int STRIP = COLUMNS<S, R>;
    __shared__ double best[LONG / 32];
    __shared__ uint32_t where[LONG / 32], chosen[STRIP];
    __shared__ Moves list;
    __shared__ S picked[STRIP], former[STRIP], across[STRIP][PANEL];
    const uint32_t matrix = blockIdx.x, thread = threadIdx.x;
    const uint32_t size = min(uint32_t(PANEL), n - begin);
    const S* const a = work + uint64_t(matrix) * n * n;
    S* const p = t + uint64_t(matrix) * PANEL * n;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const uint32_t i = thread + LONG * r;
        for (uint32_t k = 0; k < size && i < n; k += STRIP) {
            S x[STRIP];
#pragma unroll
            for (int q = 0; q < STRIP; ++q) x[q] = k + q < size ? a[uint64_t(i) * n + begin + k + q] : S{};
#pragma unroll
            for (int q = 0; q < STRIP; ++q)
                if (k + q < size) p[uint64_t(k + q) * n + i] = x[q];
        }
    }
    __syncthreads();
    for (uint32_t start = 0; start < size; start += STRIP) {
        const uint32_t wide = min(uint32_t(STRIP), size - start), first = begin + start;
        S* const strip = p + uint64_t(start) * n;
        S x[R][STRIP];
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < STRIP; ++c) {
                const uint32_t i = thread + LONG * r;
                x[r][c] = i < n && c < wide ? strip[uint64_t(c) * n + i] : S{};
            }
#pragma unroll
        for (int c = 0; c < STRIP; ++c) {
            if (c >= wide) break;
            const uint32_t own = first + c;
            double top = -1.0;
            uint32_t at = own;
            auto better = [&](double size, uint32_t i) {
                if (size > top || (size == top && i < at)) top = size, at = i;
            };
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const uint32_t i = thread + LONG * r;
                if (i >= own && i < n) better(squared(x[r][c]), i);
            }
            auto exchange = [&](int step) {
                const double size = __shfl_xor_sync(~0u, top, step);
                const uint32_t i = __shfl_xor_sync(~0u, at, step);
                better(size, i);
            };
            for (int step = 16; step > 0; step /= 2) exchange(step);
            if (thread % 32 == 0) best[thread / 32] = top, where[thread / 32] = at;
            __syncthreads();
            top = best[thread % (LONG / 32)], at = where[thread % (LONG / 32)];
            for (int step = LONG / 64; step > 0; step /= 2) exchange(step);
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const uint32_t i = thread + LONG * r;
#pragma unroll
                for (int k = 0; k < STRIP; ++k) {
                    if (i == at) picked[k] = x[r][k];
                    if (i == own) former[k] = x[r][k];
                }
            }
            if (thread == 0) {
                pivots[uint64_t(matrix) * n + own] = at;
                chosen[c] = at;
                // As good as zero, infinite, or no number.
                if (!(top > 1e-300) || isinf(top)) control->failed = ON_NODE;
            }
            __syncthreads();
            if (thread == 0) diagonal[uint64_t(matrix) * n + own] = picked[c];
            const S one = reciprocal(picked[c]);
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const uint32_t i = thread + LONG * r;
                const bool given = i == at && at != own;
                const S factor = minus(times(given ? former[c] : x[r][c], one));
#pragma unroll
                for (int k = 0; k < STRIP; ++k) {
                    const S before = given ? former[k] : x[r][k];
                    x[r][k] = i == own ? (k == c ? one : times(picked[k], one))
                            : k == c   ? factor
                                       : mla(factor, picked[k], before);
                }
            }
        }
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < STRIP; ++c) {
                const uint32_t i = thread + LONG * r;
                if (i < n && c < wide) strip[uint64_t(c) * n + i] = x[r][c];
            }
        // Where the rows that were exchanged come from, for the columns beside the strip.
        if (thread == 0) {
            list.count = wide;
            for (uint32_t c = 0; c < wide; ++c) list.rows[c] = list.sources[c] = first + c;
            for (uint32_t c = 0; c < wide; ++c) {
                uint32_t q = 0;
                while (q < list.count && list.rows[q] != chosen[c]) ++q;
                if (q == list.count) list.rows[q] = list.sources[q] = chosen[c], ++list.count;
                const uint32_t source = list.sources[q];
                list.sources[q] = list.sources[c];
                list.sources[c] = source;
            }
            moves[matrix * (PANEL / STRIP) + start / STRIP] = list;
        }
        __syncthreads();
        const uint32_t column = thread % PANEL, q = thread / PANEL;
        const bool beside = column < size && column / STRIP != start / STRIP && q < list.count;
        const S moved = beside ? p[uint64_t(column) * n + list.sources[q]] : S{};
        __syncthreads();
        if (beside) p[uint64_t(column) * n + list.rows[q]] = moved;
        if (beside && q < wide) across[q][column] = moved;
        __syncthreads();
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const uint32_t i = thread + LONG * r;
            if (i >= n) break;
            const bool inside = i >= first && i < first + wide;
            for (uint32_t k = 0; k < size; k += STRIP) {
                if (k == start) continue;
                S sum[STRIP];
#pragma unroll
                for (int q = 0; q < STRIP; ++q)
                    sum[q] = inside || k + q >= size ? S{} : p[uint64_t(k + q) * n + i];
#pragma unroll
                for (int c = 0; c < STRIP; ++c)
#pragma unroll
                    for (int q = 0; q < STRIP; ++q)
                        if (c < wide) sum[q] = mla(x[r][c], across[c][k + q], sum[q]);
#pragma unroll
                for (int q = 0; q < STRIP; ++q)
                    if (k + q < size) p[uint64_t(k + q) * n + i] = sum[q];
            }
        }
        __syncthreads();
    }
}

// Exchanges rows in the other columns, and keeps those of the panel in `v`.
template <class S>
__device__ inline void exchange(S* work, S* v, const Moves* moves, uint32_t n, uint32_t begin, uint32_t wide) {
    const uint32_t matrix = blockIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t size = min(uint32_t(PANEL), n - begin);
    if (j >= n || (j >= begin && j < begin + size)) return;
    S* const a = work + uint64_t(matrix) * n * n + j;
    for (uint32_t start = 0; start < size; start += wide) {
        const Moves& list = moves[matrix * (PANEL / wide) + start / wide];
        const uint32_t count = list.count;
        S x[2 * WIDEST];
#pragma unroll
        for (int q = 0; q < 2 * WIDEST; ++q) x[q] = q < count ? a[uint64_t(list.sources[q]) * n] : S{};
#pragma unroll
        for (int q = 0; q < 2 * WIDEST; ++q)
            if (q < count) a[uint64_t(list.rows[q]) * n] = x[q];
    }
    for (uint32_t k = 0; k < size; ++k) v[(uint64_t(matrix) * PANEL + k) * n + j] = a[uint64_t(begin + k) * n];
}

// The other columns: their rows of the panel are replaced, the others gain the factors times these.
template <class S>
__device__ inline void eliminate(S* work, const S* t, const S* v, uint32_t n, uint32_t begin) {
    const uint32_t tiles = (n + EDGE - 1) / EDGE, matrix = blockIdx.y, size = min(uint32_t(PANEL), n - begin);
    const uint32_t down = blockIdx.x / tiles * TALL<S>, across = blockIdx.x % tiles * EDGE;
    const uint64_t strip = uint64_t(matrix) * PANEL * n;
    auto inside = [&](uint32_t i) { return i >= begin && i < begin + size; };
    S* const c = work + uint64_t(matrix) * n * n;
    // What is there is read while the factors are on their way.
    Sums<S, TALL<S>> sum;
    sum.each([&](uint32_t i, uint32_t j, S& x) {
        i += down, j += across;
        x = i < n && j < n && !inside(i) && !inside(j) ? c[uint64_t(i) * n + j] : S{};
    });
    tile(
        size, false, [&](uint32_t k, uint32_t i) { return down + i < n ? t + strip + uint64_t(k) * n + down + i : nullptr; },
        false, [&](uint32_t k, uint32_t j) {
            return across + j < n && !inside(across + j) ? v + strip + uint64_t(k) * n + across + j : nullptr;
        },
        sum);
    sum.each([&](uint32_t i, uint32_t j, const S& x) {
        i += down, j += across;
        if (i < n && j < n) c[uint64_t(i) * n + j] = inside(j) ? t[strip + uint64_t(j - begin) * n + i] : x;
    });
}

// Columns go where the exchanges of rows, taken back from the last to the first, put them.
template <class S>
__device__ inline void gather(const S* work, const uint32_t* order, uint32_t n, S* out) {
    const uint64_t square = uint64_t(n) * n, matrix = blockIdx.y;
    for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < square; at += uint64_t(gridDim.x) * blockDim.x)
        out[matrix * square + at] = work[matrix * square + at / n * n + order[matrix * n + at % n]];
}

// How far a row of ratios, of orbitals that are those of electron 0 itself, is from that of the unit matrix.
template <class S>
__device__ inline void deviation(const S* q, uint32_t n, uint32_t count, Control* control) {
    for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += gridDim.x * blockDim.x) {
        S unit;
        set_real(unit, at % n == 0 ? -1.0 : 0.0);
        const double off = sqrt(squared(plus(q[at], unit)));
        atomicMax(&control->error, (unsigned long long)__double_as_longlong(off));
    }
}

// Where the exchanges of rows take the columns, by one thread of a matrix; and the determinant: ln |det| is -infinity
// where a pivot was as good as zero, NaN where one was no number, before all others.
template <class S>
__device__ inline void finish(const uint32_t* pivots, const S* diagonal, uint32_t n, uint32_t* order, double* logs,
                              C64* phases) {
    __shared__ uint32_t own[LONGEST], swaps[LONGEST], bad;
    __shared__ double sums[THREADS];
    __shared__ C64 turns[THREADS];
    const uint32_t matrix = blockIdx.x, thread = threadIdx.x;
    const uint64_t first = uint64_t(matrix) * n;
    if (thread == 0) bad = n;
    __syncthreads();
    double sum = 0.0;
    C64 turn{1.0, 0.0};
    for (uint32_t i = thread; i < n; i += THREADS) {
        own[i] = i, swaps[i] = pivots[first + i];
        const C64 z = wide(diagonal[first + i]);
        const double square = squared(z), scale = (swaps[i] == i ? 1.0 : -1.0) / sqrt(square);
        if (!(square > 1e-300) || isinf(square)) atomicMin(&bad, i);
        sum += 0.5 * log(square);
        turn = times(turn, C64{z.re * scale, z.im * scale});
    }
    sums[thread] = sum, turns[thread] = turn;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) {
            sums[thread] += sums[thread + half];
            turns[thread] = times(turns[thread], turns[thread + half]);
        }
    }
    __syncthreads();
    if (thread == 0) {
        for (uint32_t i = n; i-- > 0;) {
            const uint32_t x = own[i], other = swaps[i];
            own[i] = own[other];
            own[other] = x;
        }
        const double square = bad < n ? squared(diagonal[first + bad]) : 1.0;
        logs[matrix] = bad == n ? sums[0] : square <= 1e-300 ? -INFINITY : NAN;
        phases[matrix] = turns[0];
    }
    __syncthreads();
    for (uint32_t i = thread; i < n; i += THREADS) order[first + i] = own[i];
}

}  // namespace

// For matrices of up to as many times LONG rows.
#define PANEL_KERNEL(NAME, S, R)                                                                                        \
    extern "C" __global__ void __launch_bounds__(LONG)                                                                  \
        NAME(const S* work, S* t, uint32_t* pivots, S* diagonal, Moves* moves, uint32_t n, uint32_t begin,               \
             Control* control) {                                                                                        \
        panel<S, R>(work, t, pivots, diagonal, moves, n, begin, control);                                                \
    }

#define KERNELS(SUFFIX, S)                                                                                              \
    PANEL_KERNEL(inverse_panel_1_##SUFFIX, S, 1)                                                                         \
    PANEL_KERNEL(inverse_panel_2_##SUFFIX, S, 2)                                                                         \
    PANEL_KERNEL(inverse_panel_4_##SUFFIX, S, 4)                                                                         \
    extern "C" __global__ void inverse_exchange_##SUFFIX(S* work, S* v, const Moves* moves, uint32_t n,                  \
                                                         uint32_t begin, uint32_t wide) {                               \
        exchange(work, v, moves, n, begin, wide);                                                                           \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS, sizeof(S) == 8 ? 2 : 1)                                            \
        inverse_eliminate_##SUFFIX(S* work, const S* t, const S* v, uint32_t n, uint32_t begin) {                        \
        eliminate(work, t, v, n, begin);                                                                                \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        inverse_finish_##SUFFIX(const uint32_t* pivots, const S* diagonal, uint32_t n, uint32_t* order, double* logs,    \
                                C64* phases) {                                                                          \
        finish(pivots, diagonal, n, order, logs, phases);                                                               \
    }                                                                                                                   \
    extern "C" __global__ void inverse_gather_##SUFFIX(const S* work, const uint32_t* order, uint32_t n, S* out) {       \
        gather(work, order, n, out);                                                                                    \
    }                                                                                                                   \
    extern "C" __global__ void inverse_deviation_##SUFFIX(const S* q, uint32_t n, uint32_t count, Control* control) {    \
        deviation(q, n, count, control);                                                                                \
    }

KERNELS(f64, double)
KERNELS(c64, C64)
