// Random numbers of walkers, changes of their Jastrow factor, and what decisions are made of.
#pragma once
#include "walkers.cuh"

// Electrons of one spin that are decided together, and those of a tile of `Walk::delta`.
constexpr int BLOCK = host::walkers::EDGE;

__device__ inline uint4 draw(const Walk& w, uint64_t sweep, uint32_t walker, uint32_t electron, uint32_t number) {
    return philox(w.seed, WALKERS, sweep << 24 | uint64_t(electron) << 2 | number, w.first + walker);
}

__device__ inline double decision(const Walk& w, uint64_t sweep, uint32_t walker, uint32_t electron) {
    const uint4 d = draw(w, sweep, walker, electron, 2);
    return unit(d.x, d.y);
}

// What bodies add to J at `to` more than at `from`: a lane's part of it.
__device__ inline double bodies_of(const Walk& w, const double* from, const double* to) {
    double sum = 0.0, u[3], v[3];
    for (uint32_t c = threadIdx.x % WARP; c < w.bodies; c += WARP) {
        const Radial& f = w.radials[2 * w.pairs + c];
        radial<false>(f, distance(*w.images, to, w.centres + 3 * c), u);
        radial<false>(f, distance(*w.images, from, w.centres + 3 * c), v);
        sum += u[0] - v[0];
    }
    return sum;
}

// By how much J changes when electron i of a walker goes to its trial point, the others being where they are.
// By a warp.
__device__ inline double change_of(const Walk& w, uint32_t walker, uint32_t i) {
    const uint64_t own = uint64_t(walker) * w.electrons;
    const double *x = w.positions + 3 * own, *from = x + 3 * i, *to = w.trial + 3 * (own + i);
    double sum = 0.0;
    if (w.pairs > 0) {
        for (uint32_t j = threadIdx.x % WARP; j < w.electrons; j += WARP) {
            if (j == i) continue;
            const uint32_t opposite = (i < w.up) != (j < w.up);
            sum += pair_sum(w, opposite, distance(*w.images, to, x + 3 * j))
                 - pair_sum(w, opposite, distance(*w.images, from, x + 3 * j));
        }
    }
    return warp_sum(sum + bodies_of(w, from, to));
}

// By how much more J changes with electron i if electron k has moved before.
__device__ inline double delta_of(const Walk& w, uint32_t walker, uint32_t i, uint32_t k) {
    const uint64_t own = uint64_t(walker) * w.electrons;
    const double *from = w.positions + 3 * (own + i), *to = w.trial + 3 * (own + i);
    const double *old = w.positions + 3 * (own + k), *now = w.trial + 3 * (own + k);
    const uint32_t opposite = (i < w.up) != (k < w.up);
    return (pair_sum(w, opposite, distance(*w.images, to, now)) - pair_sum(w, opposite, distance(*w.images, from, now)))
         - (pair_sum(w, opposite, distance(*w.images, to, old)) - pair_sum(w, opposite, distance(*w.images, from, old)));
}

__host__ __device__ inline uint32_t blocks_of(uint32_t n) { return (n + BLOCK - 1) / BLOCK; }

// Electrons in blocks, those of either spin for themselves: the first of a block, and how many.
__device__ inline void block_of(const Walk& w, uint32_t block, uint32_t& first, uint32_t& count) {
    const uint32_t ups = blocks_of(w.up);
    const bool down = block >= ups;
    first = down ? w.up + (block - ups) * BLOCK : block * BLOCK;
    count = min(uint32_t(BLOCK), (down ? w.electrons : w.up) - first);
}

__device__ inline uint32_t all_blocks(const Walk& w) { return blocks_of(w.up) + blocks_of(w.electrons - w.up); }

// The tile of `delta` for electrons of block i after those of block k <= i.
__device__ inline double* tile_at(const Walk& w, uint32_t walker, uint32_t i, uint32_t k) {
    const uint64_t blocks = all_blocks(w), tiles = blocks * (blocks + 1) / 2;
    return w.delta + (walker * tiles + uint64_t(i) * (i + 1) / 2 + k) * (BLOCK * BLOCK);
}

template <class S>
__device__ inline S dot(const S* a, const S* b, uint32_t n) {
    S sum{};
    for (uint32_t l = threadIdx.x % WARP; l < n; l += WARP) sum = mla(a[l], b[l], sum);
    return warp_sum(sum);
}

// The sum of what the threads of a block of 256 hold, in a fixed order; all of them get it.
template <class T>
__device__ inline T block_sum(T x) {
    __shared__ T parts[8];
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = x;
    __syncthreads();
    T sum = parts[0];
    for (int k = 1; k < 8; ++k) sum = plus(sum, parts[k]);
    return sum;
}

// Shares are multiplied by the ratios of fillings, q[filling] at intervals of `stride`, and divided by their sum.
// By a block.
template <class S>
__device__ inline void reweigh(const Expansion& e, uint32_t walker, uint32_t spin, const S* q, uint64_t stride, C64 ratio) {
    if (e.products == 1) return;
    const C64 one = inverse_of(ratio);
    C64* const shares = e.shares + uint64_t(walker) * e.products;
    for (uint32_t t = threadIdx.x; t < e.products; t += blockDim.x)
        shares[t] = times(times(shares[t], wide(q[e.places[2 * t + spin] * stride])), one);
}

// The ratio of the sum from those of fillings. By a block of 256.
template <class S>
__device__ inline C64 ratio_of(const Expansion& e, uint32_t walker, uint32_t spin, const S* q, uint64_t stride) {
    if (e.products == 1) return wide(q[0]);
    const C64* const shares = e.shares + uint64_t(walker) * e.products;
    C64 sum{};
    for (uint32_t t = threadIdx.x; t < e.products; t += blockDim.x)
        sum = mla(shares[t], wide(q[e.places[2 * t + spin] * stride]), sum);
    return block_sum(sum);
}
