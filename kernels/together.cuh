// Several steps of a recurrence in one launch, for rows of a single pack. All blocks of the launch are on the GPU at
// the same time (a cooperative launch sees to that) and meet after each step.
#pragma once
#include "update.cuh"

// Threads of a block.
constexpr int TOGETHER = host::matrices::TOGETHER;

// The sum over threads of a warp that follow each other, in a fixed order.
template <int THREADS_OF_IT>
__device__ __forceinline__ double sum_over_warp(double x) {
#pragma unroll
    for (int apart = THREADS_OF_IT / 2; apart > 0; apart /= 2) x += __shfl_xor_sync(~0u, x, apart);
    return x;
}

// Where all blocks of a launch meet; threads of a block meet also where they wait for no others. Each round adds 2^31
// to the number, of which the first block adds what the others leave: the round is over when the highest bit changes,
// and the next may begin with any number.
struct Meeting {
    uint32_t* const arrived;
    uint32_t before = 0;

    // What this block has written is there for others once they have met.
    __device__ __forceinline__ void arrive(bool others) {
        __syncthreads();
        if (threadIdx.x > 0 || !others) return;
        const uint32_t own = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
        asm volatile("atom.add.release.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(arrived), "r"(own) : "memory");
    }

    __device__ __forceinline__ void wait(bool others) const {
        if (threadIdx.x == 0 && others) {
            uint32_t now;
            do
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
            while (!((now ^ before) & 0x80000000u));
        }
        __syncthreads();
    }
};

// Makes `steps` steps, the first with these vectors, the others with v and w in each other's place and sums behind
// those before. `rows` makes the rows of a step that are this block's. Sums over warps are made while other blocks
// arrive, those over the block by its last warp when the next step has begun.
template <int P, class V, class Rows>
__device__ __forceinline__ void together(Vectors<V> a, uint32_t steps, uint32_t* arrived, const Rows& rows) {
    constexpr int WARPS = TOGETHER / 32;
    __shared__ double parts[2 * P][WARPS];
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Meeting meeting{arrived};
    for (uint32_t k = 0; k < steps; ++k) {
        RowPass<V, P, 1, TOGETHER, true> pass(a);
        rows(pass);
        const bool last = k + 1 == steps;
        meeting.arrive(!last);
#pragma unroll
        for (int p = 0; p < P; ++p) {
            const double vv = sum_over_warp<32>(pass.vv[p]), wv = sum_over_warp<32>(pass.wv[p]);
            if (lane == 0) parts[p][warp] = vv, parts[P + p][warp] = wv;
        }
        meeting.wait(!last);
        if (warp == WARPS - 1) {
#pragma unroll
            for (int q = 0; q < 2 * P; ++q) {
                const double sum = sum_over_warp<WARPS>(parts[q][lane % WARPS]);
                if (lane == 0) a.sums[(uint64_t)blockIdx.x * 2 * P + q] = sum;
            }
        }
        V* const next = const_cast<V*>(a.v);
        a.v = a.w;
        a.w = next;
        a.sums += (uint64_t)gridDim.x * 2 * P;
    }
}
