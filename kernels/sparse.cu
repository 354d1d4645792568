// The fused pass over stored matrices: compressed rows, SELL-C-sigma (ELL is one slice), dense rows.
#include "update.cuh"

// Rows that a block takes at a time: neighbours in the matrix are neighbours in the cache.
constexpr uint32_t CHUNK = 256;

// Entries whose loads are under way together. Beyond the end of a row come zeros on a column of the row. A thread that has
// a row to itself needs many; where threads share a row, the wasted ones cost more.
template <int L>
constexpr int BATCH = L == 1 ? 8 : 4;

// The order that blocks walk the rows in. Where columns tell of a lattice, rows are x + width (y + height z): a block takes a
// tile in x and y and goes along z, so that the rows its neighbours share stay in the nearest cache. Else `tile_x` is zero.
struct Order {
    uint32_t width, height, depth;
    uint32_t tile_x, tile_y, march;
    // Tiles across that are worked on together.
    uint32_t slab;
};

template <class T, class J>
struct Csr {
    using Value = T;
    const uint64_t* start;
    const J* columns;
    const T* values;

    __device__ __forceinline__ uint64_t place(uint64_t row) const { return row; }

    template <int B, class F>
    __device__ __forceinline__ void row(uint64_t row, F batch) const {
        const uint64_t from = __ldg(start + row), to = __ldg(start + row + 1);
        for (uint64_t k = from; k < to; k += B) {
            batch([&](int i, uint64_t& column, T& value) {
                const bool there = k + i < to;
                column = __ldg(columns + (there ? k + i : from));
                value = there ? values[k + i] : T{};
            });
        }
    }
};

template <class T, class J>
struct Sell {
    using Value = T;
    const uint64_t* slices;
    const uint32_t* lengths;
    // Row of each place, or null where rows stand in order.
    const uint32_t* order;
    const J* columns;
    const T* values;
    // Rows of a slice, and the shift that divides by them: 5 for slices of a warp, 63 for one slice of all rows (ELL).
    uint64_t chunk, shift;

    __device__ __forceinline__ uint64_t place(uint64_t at) const { return order ? __ldg(order + at) : at; }

    template <int B, class F>
    __device__ __forceinline__ void row(uint64_t at, F batch) const {
        const uint64_t slice = at >> shift;
        const uint64_t first = __ldg(slices + slice) + (at - (slice << shift));
        const uint32_t length = __ldg(lengths + at);
        for (uint32_t k = 0; k < length; k += B) {
            batch([&](int i, uint64_t& column, T& value) {
                const bool there = k + i < length;
                column = __ldg(columns + first + (there ? k + i : 0) * chunk);
                value = there ? values[first + (k + i) * chunk] : T{};
            });
        }
    }
};

template <class T>
struct Dense {
    using Value = T;
    uint64_t cols;
    const T* values;

    __device__ __forceinline__ uint64_t place(uint64_t row) const { return row; }

    template <int B, class F>
    __device__ __forceinline__ void row(uint64_t row, F batch) const {
        for (uint64_t k = 0; k < cols; k += B) {
            batch([&](int i, uint64_t& column, T& value) {
                const bool there = k + i < cols;
                column = there ? k + i : 0;
                value = there ? values[row * cols + k + i] : T{};
            });
        }
    }
};

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
__device__ __forceinline__ void update(const M& m, uint64_t rows, const Order& o, const Vectors<V>& a) {
    RowPass<V, P, L, THREADS> pass(a);
    if (pass.active && o.tile_x == 0) {
        for (uint64_t chunk = blockIdx.x; chunk * CHUNK < rows; chunk += gridDim.x) {
            const uint64_t last = min(rows, (chunk + 1) * CHUNK);
            for (uint64_t at = chunk * CHUNK + threadIdx.x / L; at < last; at += THREADS / L)
                one_row<V, P, L>(m, pass, at);
        }
    } else if (pass.active) {
        const uint32_t tiles_x = (o.width + o.tile_x - 1) / o.tile_x, tiles_y = (o.height + o.tile_y - 1) / o.tile_y;
        const uint32_t marches = (o.depth + o.march - 1) / o.march, units = tiles_x * tiles_y * marches;
        for (uint32_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
            // Tiles along a line, then those of a slab, then the slab's next planes.
            uint32_t rest = unit / tiles_x;
            const uint32_t first = rest / (o.slab * marches) * o.slab, across = min(o.slab, tiles_y - first);
            rest -= first * marches;
            const uint32_t x0 = unit % tiles_x * o.tile_x, y0 = (first + rest % across) * o.tile_y;
            const uint32_t z0 = rest / across * o.march, z1 = min(o.depth, z0 + o.march);
            const uint32_t wide = min(o.tile_x, o.width - x0), inside = wide * min(o.tile_y, o.height - y0);
            for (uint32_t z = z0; z < z1; ++z) {
                const uint64_t corner = x0 + (uint64_t)o.width * (y0 + (uint64_t)o.height * z);
                for (uint32_t r = threadIdx.x / L; r < inside; r += THREADS / L) {
                    const uint32_t y = r / wide;
                    one_row<V, P, L>(m, pass, corner + (r - y * wide) + (uint64_t)o.width * y);
                }
            }
        }
    }
    pass.end();
}

#define KERNELS(NAME, V, P, L, T)                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) csr_##NAME##_u32(Csr<T, uint32_t> m, uint64_t rows, Order o, Vectors<V> a) { \
        update<V, P, L>(m, rows, o, a);                                                                               \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS) csr_##NAME##_u64(Csr<T, uint64_t> m, uint64_t rows, Order o, Vectors<V> a) { \
        update<V, P, L>(m, rows, o, a);                                                                               \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS) sell_##NAME##_u32(Sell<T, uint32_t> m, uint64_t rows, Order o, Vectors<V> a) { \
        update<V, P, L>(m, rows, o, a);                                                                               \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS) sell_##NAME##_u64(Sell<T, uint64_t> m, uint64_t rows, Order o, Vectors<V> a) { \
        update<V, P, L>(m, rows, o, a);                                                                               \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS) dense_##NAME(Dense<T> m, uint64_t rows, Order o, Vectors<V> a) {  \
        update<V, P, L>(m, rows, o, a);                                                                               \
    }

// Names: type, lanes of a pack, threads of a row. A real matrix takes the two parts of a complex number as two lanes.
#define THREADS_OF_A_ROW(TYPE, V, P, T) \
    KERNELS(TYPE##_p##P##_l1, V, P, 1, T)   \
    KERNELS(TYPE##_p##P##_l2, V, P, 2, T)   \
    KERNELS(TYPE##_p##P##_l4, V, P, 4, T)   \
    KERNELS(TYPE##_p##P##_l8, V, P, 8, T)   \
    KERNELS(TYPE##_p##P##_l16, V, P, 16, T) \
    KERNELS(TYPE##_p##P##_l32, V, P, 32, T)

THREADS_OF_A_ROW(f32, F32, 1, F32)
THREADS_OF_A_ROW(f32, F32, 2, F32)
THREADS_OF_A_ROW(f32, F32, 4, F32)
THREADS_OF_A_ROW(f64, F64, 1, F64)
THREADS_OF_A_ROW(f64, F64, 2, F64)
THREADS_OF_A_ROW(c32, C32, 1, C32)
THREADS_OF_A_ROW(c32, C32, 2, C32)
THREADS_OF_A_ROW(c64, C64, 1, C64)
