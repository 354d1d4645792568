// Products of matrices in tiles of 64 x 64, a tile for 256 threads: real ones on the tensor cores, complex ones by single
// multiplications.
#pragma once
#include "tensor.cuh"
#include "walkers.cuh"

constexpr int EDGE = 64;

// Steps that are brought to a multiprocessor at once.
template <class S>
constexpr int DEPTH = sizeof(S) == 8 ? 32 : 16;

// Which row and column of the tile number [p][q] of a thread's sums is.
template <class S>
__device__ __forceinline__ void place_of(int p, int q, uint32_t& i, uint32_t& j) {
    i = threadIdx.x / 16 + 16 * p;
    j = threadIdx.x % 16 + 16 * q;
}

// Warps take 16 rows and 32 columns each, in four blocks of 8 columns.
template <>
__device__ __forceinline__ void place_of<double>(int p, int q, uint32_t& i, uint32_t& j) {
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    i = warp / 2 * 16 + lane / 4 + q / 2 * 8;
    j = warp % 2 * 32 + 8 * p + lane % 4 * 2 + q % 2;
}

// Four more columns, so that the lanes of half a warp, which read four rows of four neighbours, meet all banks.
constexpr int LEADING = EDGE + 4;

__device__ inline void multiply(const double (&a)[DEPTH<double>][LEADING], const double (&b)[DEPTH<double>][LEADING],
                                double (&sum)[4][4]) {
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const uint32_t down = warp / 2 * 16 + g, across = warp % 2 * 32 + g;
#pragma unroll
    for (int k = 0; k < DEPTH<double>; k += 8) {
        const double left[2][2] = {{a[k + t][down], a[k + t + 4][down]}, {a[k + t][down + 8], a[k + t + 4][down + 8]}};
#pragma unroll
        for (int p = 0; p < 4; ++p) {
            const double right[2] = {b[k + t][across + 8 * p], b[k + t + 4][across + 8 * p]};
            double upper[2] = {sum[p][0], sum[p][1]}, lower[2] = {sum[p][2], sum[p][3]};
            multiply_add(upper, lower, left, right);
            sum[p][0] = upper[0], sum[p][1] = upper[1], sum[p][2] = lower[0], sum[p][3] = lower[1];
        }
    }
}

__device__ inline void multiply(const C64 (&a)[DEPTH<C64>][LEADING], const C64 (&b)[DEPTH<C64>][LEADING], C64 (&sum)[4][4]) {
    const uint32_t x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll
    for (int k = 0; k < DEPTH<C64>; ++k) {
        C64 u[4], v[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) u[q] = a[k][y + 16 * q], v[q] = b[k][x + 16 * q];
#pragma unroll
        for (int p = 0; p < 4; ++p)
#pragma unroll
            for (int q = 0; q < 4; ++q) sum[p][q] = mla(u[p], v[q], sum[p][q]);
    }
}

// sum += sum_k left(k, i) right(k, j) for the tile, places as `place_of` has them. LK and RK: whether the factor's numbers lie
// side by side along k in memory, rather than along i or j.
template <class S, bool LK, bool RK, class L, class R>
__device__ inline void tile(uint32_t depth, L left, R right, S (&sum)[4][4]) {
    constexpr int STEPS = DEPTH<S>, LOADS = STEPS * EDGE / 256;
    __shared__ S a[STEPS][LEADING], b[STEPS][LEADING];
    S next_a[LOADS], next_b[LOADS];
    // Along k, four neighbours in memory are read by four threads: what they write then lies in banks of its own.
    auto place = [&](int e, bool along, uint32_t& k, uint32_t& i) {
        const uint32_t at = threadIdx.x + 256 * e;
        k = along ? threadIdx.x % 4 + 4 * e : at / EDGE;
        i = along ? threadIdx.x / 4 : at % EDGE;
    };
    auto fetch = [&](uint32_t start) {
#pragma unroll
        for (int e = 0; e < LOADS; ++e) {
            uint32_t k, i;
            place(e, LK, k, i);
            next_a[e] = start + k < depth ? left(start + k, i) : S{};
            place(e, RK, k, i);
            next_b[e] = start + k < depth ? right(start + k, i) : S{};
        }
    };
    fetch(0);
    for (uint32_t start = 0; start < depth; start += STEPS) {
        __syncthreads();
#pragma unroll
        for (int e = 0; e < LOADS; ++e) {
            uint32_t k, i;
            place(e, LK, k, i);
            a[k][i] = next_a[e];
            place(e, RK, k, i);
            b[k][i] = next_b[e];
        }
        __syncthreads();
        if (start + STEPS < depth) fetch(start + STEPS);
        multiply(a, b, sum);
    }
}
