// Several steps of a recurrence in one launch, for rows of a single pack. All blocks of the launch are on the GPU at
// the same time (a cooperative launch sees to that) and meet after each step.
#pragma once
#include "boundary.cuh"
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

// Of a launch whose rows have no neighbours on other GPUs.
struct Alone {
    static constexpr bool LINKED = false;
};

// How rows pass between GPUs that make their steps together. What leaves are the rows with these numbers, those of
// neighbour n from starts[n] to starts[n + 1]. They are written one after the other from to[n] on, or from
// to[neighbours + n] in odd passes, and then numbers[n] is told the pass.
template <class V>
struct Crossing {
    Boundary<V> boundary;
    const uint64_t* rows;
    const uint64_t* starts;
    const uint64_t* to;
    const uint64_t* numbers;
    uint64_t leaving;
    // Where kernels count passes, if they do: blocks, then passes.
    uint32_t* counters;
    // Of the first step.
    uint32_t pass;
    static constexpr bool LINKED = true;

    // Writes what leaves of v to the neighbours.
    template <int P>
    __device__ __forceinline__ void send(const V* v, uint32_t number) const {
        using Lanes = Pack<V, P>;
        const uint64_t* places = to + number % 2 * boundary.neighbours;
        uint32_t n = 0;
        for (uint64_t i = blockIdx.x * (uint64_t)TOGETHER + threadIdx.x; i < leaving; i += gridDim.x * (uint64_t)TOGETHER) {
            while (i >= __ldg(starts + n + 1)) ++n;
            const Lanes x = load_written(reinterpret_cast<const Lanes*>(v) + __ldg(rows + i));
            reinterpret_cast<Lanes*>(__ldg(places + n))[i - __ldg(starts + n)] = x;
        }
    }

    // Once all blocks have met, tells the neighbours that all has been written, which the first block does; then adds
    // to w what comes, and to the sums what `Re <w|v>` grows by.
    template <int P>
    __device__ __forceinline__ void receive(double alpha, const V* v, V* w, uint32_t number, double (&sums)[P]) const {
        if (blockIdx.x == 0) {
            for (uint32_t n = threadIdx.x; n < boundary.neighbours; n += TOGETHER)
                asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(__ldg(numbers + n)), "r"(number) : "memory");
            if (counters && threadIdx.x == 0) counters[1] = number;
        }
        boundary.await(number);
        // One row after the other: two take registers from the rows of a step.
        const BoundaryShare share{P, 0, blockIdx.x * (uint64_t)TOGETHER + threadIdx.x, gridDim.x * (uint64_t)TOGETHER};
        const auto read = [](const auto* at) { return load_written(at); };
        add_boundary_rows<P, 1>(boundary, share, number, alpha, v, w, true, sums, read);
    }
};
HOST_LAYOUT_link_CrossingArgument(Crossing<C64>);

// Where all blocks of a launch meet; threads of a block meet also where they wait for no others. Each round adds 2^31
// to the number, of which the first block adds what the others leave: the round is over when the highest bit changes,
// and the next may begin with any number.
struct Meeting {
    uint32_t* const arrived;
    uint32_t before = 0;

    // What this block has written is there for others once they have met; if FAR, for other GPUs, too.
    template <bool FAR = false>
    __device__ __forceinline__ void arrive(bool others) {
        __syncthreads();
        if (threadIdx.x > 0 || !others) return;
        if (FAR) __threadfence_system();
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
// those before. `rows` makes the rows of a step that are this block's. Rows that pass between GPUs leave before these
// are made, and are added to them when all blocks have met. Sums over warps are made while other blocks arrive, those
// over the block by its last warp when the next step has begun.
template <int P, class V, class Link, class Rows>
__device__ __forceinline__ void together(const Vectors<V>& first, uint32_t steps, uint32_t* arrived, const Link& link,
                                         const Rows& rows) {
    constexpr int WARPS = TOGETHER / 32;
    __shared__ double parts[2 * P][WARPS];
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Meeting meeting{arrived};
#pragma unroll 1
    for (uint32_t k = 0; k < steps; ++k) {
        Vectors<V> a = first;
        if (k & 1) a.v = first.w, a.w = const_cast<V*>(first.v);
        RowPass<V, P, 1, TOGETHER, true> pass(a);
        if constexpr (Link::LINKED) link.template send<P>(a.v, link.pass + k);
        rows(pass);
        if constexpr (Link::LINKED) {
            meeting.template arrive<true>(true);
            meeting.wait(true);
            link.template receive<P>(a.alpha, a.v, a.w, link.pass + k, pass.wv);
        }
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
                if (lane == 0) first.sums[((uint64_t)k * gridDim.x + blockIdx.x) * 2 * P + q] = sum;
            }
        }
    }
}
