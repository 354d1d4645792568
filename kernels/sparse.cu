// The fused pass over dense rows, and over stored ones where few threads share a row or columns are counted in 64 bits;
// the others are in staged.cu.
// Floor: every entry once, with its column where it has one, v and w once, w twice where gamma is not zero; 2 flops an
// entry and column of v, 8 where both are complex.
#include "formats.cuh"

// Rows that a block takes at a time: neighbours in the matrix are neighbours in the cache.
constexpr uint32_t CHUNK = host::matrices::CHUNK;

// Entries whose loads are under way together. A thread that has a row to itself needs many; where threads share a row,
// the wasted ones cost more.
template <int L>
constexpr int BATCH = L == 1 ? 8 : 4;

template <class V, int P, int L, class M>
__device__ __forceinline__ void one_row(const M& m, RowPass<V, P, L, THREADS>& pass, uint64_t at) {
    Pack<V, P> sum{};
    m.template row<BATCH<L>>(at, [&](auto entry) {
        constexpr int B = BATCH<L>;
        uint64_t column[B];
        typename M::Value value[B];
        Pack<V, P> x[B];
#pragma unroll
        for (int i = 0; i < B; ++i) entry(i, column[i], value[i]);
#pragma unroll
        for (int i = 0; i < B; ++i) x[i] = pass.input(column[i]);
#pragma unroll
        for (int i = 0; i < B; ++i)
#pragma unroll
            for (int p = 0; p < P; ++p) sum.x[p] = mla(value[i], x[i].x[p], sum.x[p]);
    });
    const uint64_t row = m.place(at);
    pass.finish(row, pass.own(row), sum);
}

template <class V, int P, int L, class M>
__device__ __forceinline__ void update(const M& m, uint64_t rows, const Vectors<V>& a) {
    RowPass<V, P, L, THREADS> pass(a);
    for (uint64_t chunk = blockIdx.x; pass.active && chunk * CHUNK < rows; chunk += gridDim.x) {
        const uint64_t last = min(rows, (chunk + 1) * CHUNK);
        for (uint64_t at = chunk * CHUNK + threadIdx.x / L; at < last; at += THREADS / L) one_row<V, P, L>(m, pass, at);
    }
    pass.end();
}

#define KERNEL(NAME, V, P, L, M)                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS) NAME(M m, uint64_t rows, Vectors<V> a) {              \
        update<V, P, L>(m, rows, a);                                                                            \
    }

#define NARROW(NAME, V, P, L, T)                  \
    KERNEL(csr_##NAME##_u32, V, P, L, Csr32<T>)   \
    KERNEL(sell_##NAME##_u32, V, P, L, Sell32<T>) \
    WIDE(NAME, V, P, L, T)

#define WIDE(NAME, V, P, L, T)                    \
    KERNEL(csr_##NAME##_u64, V, P, L, Csr64<T>)   \
    KERNEL(sell_##NAME##_u64, V, P, L, Sell64<T>) \
    KERNEL(dense_##NAME, V, P, L, Dense<T>)

// Names: type, lanes of a pack, threads of a row. A real matrix takes the two parts of a complex number as two lanes.
#define THREADS_OF_A_ROW(TYPE, V, P, T) \
    NARROW(TYPE##_p##P##_l1, V, P, 1, T)   \
    NARROW(TYPE##_p##P##_l2, V, P, 2, T)   \
    WIDE(TYPE##_p##P##_l4, V, P, 4, T)   \
    WIDE(TYPE##_p##P##_l8, V, P, 8, T)   \
    WIDE(TYPE##_p##P##_l16, V, P, 16, T) \
    WIDE(TYPE##_p##P##_l32, V, P, 32, T)

EVERY_PACK(THREADS_OF_A_ROW)
