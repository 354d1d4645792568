// Products of matrices in tiles of H x 64, a tile for 256 threads: real ones on the tensor cores, complex ones by
// single multiplications. Factors come past the registers, some slabs ahead of those that are multiplied.
#pragma once
#include "tensor.cuh"
#include "walkers.cuh"

constexpr int EDGE = host::walkers::EDGE;

// Rows of a large tile.
template <class S>
constexpr int TALL = sizeof(S) == 8 ? 128 : 64;

template <class S>
__device__ inline uint32_t tall(uint32_t n) {
    return (n + TALL<S> - 1) / TALL<S>;
}

// Steps of a slab, and slabs on their way at once.
template <class S>
constexpr int DEPTH = sizeof(S) == 8 ? 8 : 4;
template <int H>
constexpr int SLABS = H > 64 ? 3 : 4;

// A thread's part of a tile.
template <class S, int H>
struct Sums {
    static constexpr int COUNT = H / 16;
    S x[COUNT][4];

    // Which row and column of the tile number [p][q] is. Real: warps take H/4 rows and 32 columns each,
    // in blocks of 16 x 8.
    static __device__ __forceinline__ void place(int p, int q, uint32_t& i, uint32_t& j) {
        if (sizeof(S) == 8) {
            const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
            i = warp / 2 * (H / 4) + p / 4 * 16 + lane / 4 + q / 2 * 8;
            j = warp % 2 * 32 + 8 * (p % 4) + lane % 4 * 2 + q % 2;
        } else {
            i = threadIdx.x / 16 + 16 * p;
            j = threadIdx.x % 16 + 16 * q;
        }
    }

    // f(row, column, number) for all of them.
    template <class F>
    __device__ __forceinline__ void each(F f) {
#pragma unroll
        for (int p = 0; p < COUNT; ++p)
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                uint32_t i, j;
                place(p, q, i, j);
                f(i, j, x[p][q]);
            }
    }
};

// Four more columns, so that the lanes of half a warp, which read four rows of four neighbours, meet all banks.
constexpr int SPARE = 4;

template <int H>
__device__ inline void multiply(const double (&a)[DEPTH<double>][H + SPARE], const double (&b)[DEPTH<double>][EDGE + SPARE],
                                Sums<double, H>& sum) {
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const uint32_t down = warp / 2 * (H / 4) + g, across = warp % 2 * 32 + g;
    double left[H / 64][2][2];
#pragma unroll
    for (int r = 0; r < H / 64; ++r)
#pragma unroll
        for (int q = 0; q < 2; ++q)
            left[r][q][0] = a[t][down + 16 * r + 8 * q], left[r][q][1] = a[t + 4][down + 16 * r + 8 * q];
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        const double right[2] = {b[t][across + 8 * p], b[t + 4][across + 8 * p]};
#pragma unroll
        for (int r = 0; r < H / 64; ++r) {
            double(&x)[4] = sum.x[4 * r + p];
            double upper[2] = {x[0], x[1]}, lower[2] = {x[2], x[3]};
            multiply_add(upper, lower, left[r], right);
            x[0] = upper[0], x[1] = upper[1], x[2] = lower[0], x[3] = lower[1];
        }
    }
}

template <int H>
__device__ inline void multiply(const C64 (&a)[DEPTH<C64>][H + SPARE], const C64 (&b)[DEPTH<C64>][EDGE + SPARE],
                                Sums<C64, H>& sum) {
    const uint32_t x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll
    for (int k = 0; k < DEPTH<C64>; ++k) {
        C64 u[H / 16], v[4];
#pragma unroll
        for (int p = 0; p < H / 16; ++p) u[p] = a[k][y + 16 * p];
#pragma unroll
        for (int q = 0; q < 4; ++q) v[q] = b[k][x + 16 * q];
#pragma unroll
        for (int p = 0; p < H / 16; ++p)
#pragma unroll
            for (int q = 0; q < 4; ++q) sum.x[p][q] = mla(u[p], v[q], sum.x[p][q]);
    }
}

// sum += sum_k left(k, i) right(k, j) for the tile. The factors are given as places in memory, null for zeros, each
// after whether its numbers lie side by side along k there, rather than along i or j.
template <class S, int H, class L, class R>
__device__ __forceinline__ void tile(uint32_t depth, bool left_along, L left, bool right_along, R right, Sums<S, H>& sum) {
    constexpr int STEPS = DEPTH<S>, COUNT = SLABS<H>;
    __shared__ alignas(16) S a[COUNT][STEPS][H + SPARE], b[COUNT][STEPS][EDGE + SPARE];
    // Along k, four neighbours in memory are read by four threads: what they write then lies in banks of its own.
    auto place = [&](int e, int height, bool along, uint32_t& k, uint32_t& i) {
        const uint32_t at = threadIdx.x + 256 * e;
        if (along) {
            k = at % 4 + at / (4 * height) * 4;
            i = at / 4 % height;
        } else {
            k = at / height;
            i = at % height;
        }
    };
    auto fetch = [&](uint32_t slab) {
        const uint32_t start = slab * STEPS, to = slab % COUNT;
        if (start < depth) {
#pragma unroll
            for (int e = 0; e < STEPS * H / 256; ++e) {
                uint32_t k, i;
                place(e, H, left_along, k, i);
                const S* from = start + k < depth ? left(start + k, i) : nullptr;
                bring(&a[to][k][i], from, from);
            }
#pragma unroll
            for (int e = 0; e < STEPS * EDGE / 256; ++e) {
                uint32_t k, i;
                place(e, EDGE, right_along, k, i);
                const S* from = start + k < depth ? right(start + k, i) : nullptr;
                bring(&b[to][k][i], from, from);
            }
        }
        asm volatile("cp.async.commit_group;");
    };
    for (int slab = 0; slab < COUNT - 1; ++slab) fetch(slab);
    const uint32_t slabs = (depth + STEPS - 1) / STEPS;
    for (uint32_t slab = 0; slab < slabs; ++slab) {
        asm volatile("cp.async.wait_group %0;" ::"n"(COUNT - 2));
        __syncthreads();
        // The slab that it replaces was multiplied before all threads met.
        fetch(slab + COUNT - 1);
        multiply(a[slab % COUNT], b[slab % COUNT], sum);
    }
    asm volatile("cp.async.wait_all;");
}
