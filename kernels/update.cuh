// One row of the fused pass w = alpha A v + beta v + gamma w with both column-wise products: what the stored formats
// and the stencil share. A row's lanes are spread over L threads of P lanes each; a block walks many rows, every thread
// keeps the products of its own lanes, and only at the end are they summed over the block, in a fixed order.
#pragma once
#include "common.cuh"

// Every type of vectors with the packs of lanes that rows are read in, and the type of the matrix: a real matrix takes
// the two parts of a complex number as two lanes.
#define EVERY_PACK(DO)                                                                           \
    DO(f32, F32, 1, F32) DO(f32, F32, 2, F32) DO(f32, F32, 4, F32) DO(f64, F64, 1, F64)        \
    DO(f64, F64, 2, F64) DO(c32, C32, 1, C32) DO(c32, C32, 2, C32) DO(c64, C64, 1, C64)

template <class V>
struct Vectors {
    const V* v;
    V* w;
    // Sums of each block: [block][2][lanes], or null.
    double* sums;
    double alpha, beta, gamma;
    uint32_t lanes;
    // Row of v that is conformal to row 0 of w.
    uint64_t offset;
};
HOST_LAYOUT_matrices_UpdateArgument(Vectors<C64>);

// sum += block x
template <int O, class T, class L>
__device__ __forceinline__ void add_block(const T (&block)[O][O], const L (&x)[O], L (&sum)[O]) {
#pragma unroll
    for (int to = 0; to < O; ++to)
#pragma unroll
        for (int from = 0; from < O; ++from)
#pragma unroll
            for (int p = 0; p < (int)(sizeof(L) / sizeof(x[0].x[0])); ++p)
                sum[to].x[p] = mla(block[to][from], x[from].x[p], sum[to].x[p]);
}

// The numbers of a row, `stride` bytes a row.
template <class V>
__device__ __forceinline__ V* row_at(V* first, uint32_t row, uint32_t stride) {
    uint64_t to;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(to) : "r"(row), "r"(stride), "l"(first));
    return reinterpret_cast<V*>(to);
}

template <class V>
__device__ __forceinline__ V* row_at(V* first, uint64_t row, uint32_t stride) {
    return reinterpret_cast<V*>(reinterpret_cast<uint64_t>(first) + row * stride);
}

// The input may be what the same launch has WRITTEN, in an earlier step.
template <class V, int P, int L, int BLOCK, bool WRITTEN = false>
struct RowPass {
    using Real = typename Traits<V>::Real;
    const Vectors<V>& a;
    uint32_t first;
    bool active;
    double vv[P], wv[P];

    __device__ __forceinline__ explicit RowPass(const Vectors<V>& vectors) : a(vectors) {
        first = (blockIdx.y * L + threadIdx.x % L) * P;
        active = first < a.lanes;
#pragma unroll
        for (int p = 0; p < P; ++p) vv[p] = wv[p] = 0.0;
    }

    // Of the input.
    template <class X>
    static __device__ __forceinline__ X read(const X* at) {
        if constexpr (WRITTEN)
            return load_written(at);
        else
            return load(at);
    }

    __device__ __forceinline__ Pack<V, P> input(uint64_t row) const {
        return read(reinterpret_cast<const Pack<V, P>*>(a.v + row * a.lanes + first));
    }

    // The input's own row, where it is asked for: a rectangular matrix has none.
    __device__ __forceinline__ Pack<V, P> own(uint64_t row) const {
        return a.beta != 0.0 || a.sums ? input(row + a.offset) : Pack<V, P>{};
    }

    __device__ __forceinline__ void finish(uint64_t row, Pack<V, P> own, Pack<V, P> sum) {
        V* out = a.w + row * a.lanes + first;
        Pack<V, P> old{};
        if (a.gamma != 0.0) old = load_once(reinterpret_cast<const Pack<V, P>*>(out));
        finish(out, own, sum, old);
    }

    // With the old output at hand, which is not used if gamma is zero; in a STEP, gamma is not,
    // and products are wanted.
    template <bool STEP = false>
    __device__ __forceinline__ void finish(V* out, const Pack<V, P>& own, const Pack<V, P>& sum, const Pack<V, P>& old) {
        store_once(reinterpret_cast<Pack<V, P>*>(out), combined<STEP>(own, sum, old));
    }

    // What `finish` stores; its part of the products is added.
    template <bool STEP = false>
    __device__ __forceinline__ Pack<V, P> combined(const Pack<V, P>& own, const Pack<V, P>& sum, const Pack<V, P>& old) {
        Pack<V, P> now;
#pragma unroll
        for (int p = 0; p < P; ++p) now.x[p] = mla((Real)a.alpha, sum.x[p], mla((Real)a.beta, own.x[p], V{}));
        if (STEP || a.gamma != 0.0) {
#pragma unroll
            for (int p = 0; p < P; ++p) now.x[p] = mla((Real)a.gamma, old.x[p], now.x[p]);
        }
        if (STEP || a.sums) {
#pragma unroll
            for (int p = 0; p < P; ++p) {
                vv[p] = overlap(own.x[p], own.x[p], vv[p]);
                wv[p] = overlap(now.x[p], own.x[p], wv[p]);
            }
        }
        return now;
    }

    __device__ __forceinline__ void end() {
        if (!a.sums) return;
        double* mine = a.sums + (uint64_t)blockIdx.x * 2 * a.lanes;
#pragma unroll
        for (int p = 0; p < P; ++p) {
            double v2 = sum_over_rows<L, BLOCK>(vv[p]), wv2 = sum_over_rows<L, BLOCK>(wv[p]);
            if (threadIdx.x < L && active) {
                mine[first + p] = v2;
                mine[a.lanes + first + p] = wv2;
            }
        }
    }
};
