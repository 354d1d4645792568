// Inverse matrices of many walkers at once, by Gauss and Jordan with partial pivoting, in panels of columns: a block of
// threads a matrix takes a panel, and a product of matrices the rest. A matrix is given as its columns, A[i][j] at j n + i,
// and its inverse comes out as rows that are the columns of A^-1.

#include "walkers.cuh"

namespace {

constexpr int PANEL = 32;
constexpr int LONGEST = 4096;

// A panel's columns, which become the factors of its elimination: `t[k][i]`.
template <class S>
__device__ inline void panel(const S* work, S* t, uint32_t* pivots, uint32_t n, uint32_t begin, Control* control) {
    __shared__ double best[32];
    __shared__ uint32_t where[32];
    __shared__ S row[PANEL];
    const uint32_t matrix = blockIdx.x, thread = threadIdx.x, threads = blockDim.x;
    const uint32_t size = min(uint32_t(PANEL), n - begin);
    const S* const a = work + uint64_t(matrix) * n * n;
    S* const p = t + uint64_t(matrix) * PANEL * n;
    for (uint32_t e = thread; e < n * PANEL; e += threads) {
        const uint32_t k = e % PANEL, i = e / PANEL;
        if (k < size) p[uint64_t(k) * n + i] = a[uint64_t(i) * n + begin + k];
    }
    __syncthreads();
    for (uint32_t c = 0; c < size; ++c) {
        const uint32_t own = begin + c;
        double top = -1.0;
        uint32_t at = own;
        for (uint32_t i = own + thread; i < n; i += threads) {
            const double x = squared(p[uint64_t(c) * n + i]);
            if (x > top) top = x, at = i;
        }
        auto better = [&](double x, uint32_t i) {
            if (x > top || (x == top && i < at)) top = x, at = i;
        };
        for (int step = 16; step > 0; step /= 2) {
            const double x = __shfl_xor_sync(~0u, top, step);
            const uint32_t i = __shfl_xor_sync(~0u, at, step);
            better(x, i);
        }
        if (thread % 32 == 0) best[thread / 32] = top, where[thread / 32] = at;
        __syncthreads();
        for (uint32_t k = 0; k < threads / 32; ++k) better(best[k], where[k]);
        if (thread == 0) {
            pivots[uint64_t(matrix) * n + own] = at;
            // As good as zero, infinite, or no number.
            if (!(top > 1e-300) || isinf(top)) control->failed = 2;
        }
        if (thread < size) {
            const S x = p[uint64_t(thread) * n + at];
            p[uint64_t(thread) * n + at] = p[uint64_t(thread) * n + own];
            row[thread] = x;
        }
        __syncthreads();
        const S one = inverse_of(row[c]);
        for (uint32_t i = thread; i < n; i += threads) {
            if (i == own) {
                for (uint32_t k = 0; k < size; ++k) p[uint64_t(k) * n + i] = k == c ? one : times(row[k], one);
            } else {
                const S factor = minus(times(p[uint64_t(c) * n + i], one));
                for (uint32_t k = 0; k < size; ++k)
                    p[uint64_t(k) * n + i] = k == c ? factor : mla(factor, row[k], p[uint64_t(k) * n + i]);
            }
        }
        __syncthreads();
    }
}

// Exchanges rows in the other columns, and keeps those of the panel in `v`.
template <class S>
__device__ inline void exchange(S* work, S* v, const uint32_t* pivots, uint32_t n, uint32_t begin) {
    const uint32_t matrix = blockIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t size = min(uint32_t(PANEL), n - begin);
    if (j >= n || (j >= begin && j < begin + size)) return;
    S* const a = work + uint64_t(matrix) * n * n + j;
    for (uint32_t k = 0; k < size; ++k) {
        const uint32_t own = begin + k, other = pivots[uint64_t(matrix) * n + own];
        const S x = a[uint64_t(other) * n];
        if (other != own) {
            a[uint64_t(other) * n] = a[uint64_t(own) * n];
            a[uint64_t(own) * n] = x;
        }
        v[(uint64_t(matrix) * PANEL + k) * n + j] = x;
    }
}

// The other columns: their rows of the panel are replaced, the others gain the factors times these.
template <class S>
__device__ inline void eliminate(S* work, const S* t, const S* v, uint32_t n, uint32_t begin) {
    const uint32_t tiles = (n + EDGE - 1) / EDGE, matrix = blockIdx.y, size = min(uint32_t(PANEL), n - begin);
    const uint32_t down = blockIdx.x / tiles * EDGE, across = blockIdx.x % tiles * EDGE;
    const uint64_t strip = uint64_t(matrix) * PANEL * n;
    auto inside = [&](uint32_t i) { return i >= begin && i < begin + size; };
    S sum[4][4] = {};
    tile<S, false, false>(
        size, [&](uint32_t k, uint32_t i) { return down + i < n ? t[strip + uint64_t(k) * n + down + i] : S{}; },
        [&](uint32_t k, uint32_t j) {
            return across + j < n && !inside(across + j) ? v[strip + uint64_t(k) * n + across + j] : S{};
        },
        sum);
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) {
            const uint32_t i = down + threadIdx.x / 16 + 16 * a, j = across + threadIdx.x % 16 + 16 * b;
            if (i >= n || j >= n) continue;
            S* const at = work + uint64_t(matrix) * n * n + uint64_t(i) * n + j;
            *at = inside(j) ? t[strip + uint64_t(j - begin) * n + i] : inside(i) ? sum[a][b] : plus(*at, sum[a][b]);
        }
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

}  // namespace

// One warp a matrix; one thread of it does the work.
extern "C" __global__ void inverse_order(const uint32_t* pivots, uint32_t n, uint32_t* order) {
    __shared__ uint32_t own[LONGEST], swaps[LONGEST];
    const uint64_t first = uint64_t(blockIdx.x) * n;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) own[i] = i, swaps[i] = pivots[first + i];
    __syncthreads();
    if (threadIdx.x == 0) {
        for (uint32_t i = n; i-- > 0;) {
            const uint32_t x = own[i], other = swaps[i];
            own[i] = own[other];
            own[other] = x;
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) order[first + i] = own[i];
}

#define KERNELS(SUFFIX, S)                                                                                              \
    extern "C" __global__ void __launch_bounds__(512)                                                                   \
        inverse_panel_##SUFFIX(const S* work, S* t, uint32_t* pivots, uint32_t n, uint32_t begin, Control* control) {    \
        panel(work, t, pivots, n, begin, control);                                                                      \
    }                                                                                                                   \
    extern "C" __global__ void inverse_exchange_##SUFFIX(S* work, S* v, const uint32_t* pivots, uint32_t n,              \
                                                         uint32_t begin) {                                              \
        exchange(work, v, pivots, n, begin);                                                                            \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                                                   \
        inverse_eliminate_##SUFFIX(S* work, const S* t, const S* v, uint32_t n, uint32_t begin) {                        \
        eliminate(work, t, v, n, begin);                                                                                \
    }                                                                                                                   \
    extern "C" __global__ void inverse_gather_##SUFFIX(const S* work, const uint32_t* order, uint32_t n, S* out) {       \
        gather(work, order, n, out);                                                                                    \
    }                                                                                                                   \
    extern "C" __global__ void inverse_deviation_##SUFFIX(const S* q, uint32_t n, uint32_t count, Control* control) {    \
        deviation(q, n, count, control);                                                                                \
    }

KERNELS(f64, double)
KERNELS(c64, C64)
