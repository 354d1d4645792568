// The fused pass over a matrix-free stencil. A block takes tiles of cells in the first two directions and marches along
// the third, so that the rows a cell shares with its neighbours are still in the cache when those come.
#include "update.cuh"

constexpr int MOST_DIRECTIONS = 8;

template <class T>
struct alignas(16) Entry {
    long long distance;
    T value;
};

template <class T>
struct Stencil {
    uint32_t directions, orbitals;
    uint32_t cells[MOST_DIRECTIONS];
    // What a class of a direction counts in the number of a combination of classes, and where its table starts.
    uint32_t weight[MOST_DIRECTIONS];
    uint32_t table[MOST_DIRECTIONS];
    // Class of every coordinate, direction by direction.
    const uint32_t* classes;
    // Entries of an orbital in a combination of classes: [combination * orbitals + orbital].
    const uint32_t* start;
    const Entry<T>* entries;
    const typename Traits<T>::Real* diagonal;
    // Tiles: cells in the first two directions, planes marched along the third.
    uint32_t tile_x, tile_y, march;
    // Whether every distance, in numbers, fits into 31 bits.
    uint32_t near;
};

constexpr int BLOCK = 512;

// `N` entries of a row kept in registers: distances in numbers, and values.
template <int N, class T, class V, int P, int L>
__device__ __forceinline__ Pack<V, P> product(const RowPass<V, P, L, BLOCK>& pass, uint64_t row, const int* distance,
                                              const T* value) {
    const V* here = pass.a.v + row * pass.a.lanes + pass.first;
    Pack<V, P> sum{};
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const Pack<V, P> x = load(reinterpret_cast<const Pack<V, P>*>(here + distance[k]));
#pragma unroll
        for (int p = 0; p < P; ++p) sum.x[p] = mla(value[k], x.x[p], sum.x[p]);
    }
    return sum;
}

template <class T, class V, int P, int L>
__device__ __forceinline__ void stencil(const Stencil<T>& m, uint64_t units, const Vectors<V>& a) {
    RowPass<V, P, L, BLOCK> pass(a);
    // The tile lies in the first two directions, or in the first alone of two; the march goes along the next.
    const uint32_t along = m.directions > 2 ? 2 : 1;
    const uint32_t nx = m.cells[0], ny = m.directions > 2 ? m.cells[1] : 1;
    const uint32_t nz = m.directions > along ? m.cells[along] : 1;
    const uint32_t tiles_x = (nx + m.tile_x - 1) / m.tile_x, tiles_y = (ny + m.tile_y - 1) / m.tile_y;
    const uint32_t marches = (nz + m.march - 1) / m.march;
    const uint64_t plane = (uint64_t)nx * ny * m.orbitals;
    for (uint64_t unit = blockIdx.x; pass.active && unit < units; unit += gridDim.x) {
        uint64_t rest = unit;
        const uint32_t x0 = (uint32_t)(rest % tiles_x) * m.tile_x;
        rest /= tiles_x;
        const uint32_t y0 = (uint32_t)(rest % tiles_y) * m.tile_y;
        rest /= tiles_y;
        const uint32_t z0 = (uint32_t)(rest % marches) * m.march, z1 = min(nz, z0 + m.march);
        rest /= marches;
        // The directions beyond the march are the same for the whole unit.
        const uint64_t far_cells = rest;
        uint32_t far_class = 0;
        for (uint32_t d = 3; d < m.directions; ++d) {
            far_class += m.classes[m.table[d] + rest % m.cells[d]] * m.weight[d];
            rest /= m.cells[d];
        }
        const uint32_t width = min(m.tile_x, nx - x0), height = min(m.tile_y, ny - y0);
        const uint32_t rows = width * height * m.orbitals;
        for (uint32_t r = threadIdx.x / L; r < rows; r += BLOCK / L) {
            const uint32_t cell = r / m.orbitals, orbital = r - cell * m.orbitals;
            const uint32_t j = cell / width, x = x0 + cell - j * width, y = y0 + j;
            uint32_t near_class = far_class + m.classes[m.table[0] + x];
            if (m.directions > 2) near_class += m.classes[m.table[1] + y] * m.weight[1];
            uint64_t row = (x + (uint64_t)nx * (y + (uint64_t)ny * (z0 + (uint64_t)nz * far_cells))) * m.orbitals + orbital;
            // The list of the class this cell is in; it changes only where the march meets a boundary.
            uint32_t known = ~0u, from = 0, count = 0;
            int distance[6];
            T value[6];
            for (uint32_t z = z0; z < z1; ++z, row += plane) {
                uint32_t combination = near_class;
                if (m.directions > along) combination += __ldg(m.classes + m.table[along] + z) * m.weight[along];
                if (combination != known) {
                    known = combination;
                    const uint32_t* list = m.start + (uint64_t)combination * m.orbitals + orbital;
                    from = __ldg(list);
                    count = __ldg(list + 1) - from;
#pragma unroll
                    for (int k = 0; k < 6; ++k) {
                        const Entry<T> e = (uint32_t)k < count ? m.entries[from + k] : Entry<T>{};
                        distance[k] = (int)(e.distance * a.lanes);
                        value[k] = e.value;
                    }
                }
                const Pack<V, P> own = m.diagonal ? pass.input(row) : pass.own(row);
                Pack<V, P> sum;
                if (count == 6 && m.near) {
                    sum = product<6, T, V, P, L>(pass, row, distance, value);
                } else if (count == 4 && m.near) {
                    sum = product<4, T, V, P, L>(pass, row, distance, value);
                } else if (count == 3 && m.near) {
                    sum = product<3, T, V, P, L>(pass, row, distance, value);
                } else {
                    sum = Pack<V, P>{};
#pragma unroll 4
                    for (uint32_t k = from; k < from + count; ++k) {
                        const Entry<T> e = m.entries[k];
                        const Pack<V, P> v = pass.input(row + e.distance);
#pragma unroll
                        for (int p = 0; p < P; ++p) sum.x[p] = mla(e.value, v.x[p], sum.x[p]);
                    }
                }
                if (m.diagonal) {
                    const auto energy = __ldg(m.diagonal + row);
#pragma unroll
                    for (int p = 0; p < P; ++p) sum.x[p] = mla(energy, own.x[p], sum.x[p]);
                }
                pass.finish(row, own, sum);
            }
        }
    }
    pass.end();
}

#define KERNEL(NAME, V, P, L, T)                                                                                       \
    extern "C" __global__ void __launch_bounds__(BLOCK, 2) stencil_##NAME(Stencil<T> m, uint64_t units, Vectors<V> a) { \
        stencil<T, V, P, L>(m, units, a);                                                                              \
    }

#define THREADS_OF_A_ROW(TYPE, V, P, T) \
    KERNEL(TYPE##_p##P##_l1, V, P, 1, T)   \
    KERNEL(TYPE##_p##P##_l2, V, P, 2, T)   \
    KERNEL(TYPE##_p##P##_l4, V, P, 4, T)   \
    KERNEL(TYPE##_p##P##_l8, V, P, 8, T)   \
    KERNEL(TYPE##_p##P##_l16, V, P, 16, T) \
    KERNEL(TYPE##_p##P##_l32, V, P, 32, T)

THREADS_OF_A_ROW(f32, F32, 1, F32)
THREADS_OF_A_ROW(f32, F32, 2, F32)
THREADS_OF_A_ROW(f32, F32, 4, F32)
THREADS_OF_A_ROW(f64, F64, 1, F64)
THREADS_OF_A_ROW(f64, F64, 2, F64)
THREADS_OF_A_ROW(c32, C32, 1, C32)
THREADS_OF_A_ROW(c32, C32, 2, C32)
THREADS_OF_A_ROW(c64, C64, 1, C64)
