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
};

template <class T, class V, int P, int L>
__device__ __forceinline__ void stencil(const Stencil<T>& m, uint64_t units, const Vectors<V>& a) {
    RowPass<V, P, L> pass(a);
    const uint32_t nx = m.cells[0], ny = m.directions > 1 ? m.cells[1] : 1, nz = m.directions > 2 ? m.cells[2] : 1;
    const uint32_t tiles_x = (nx + m.tile_x - 1) / m.tile_x, tiles_y = (ny + m.tile_y - 1) / m.tile_y;
    const uint32_t marches = (nz + m.march - 1) / m.march;
    for (uint64_t unit = blockIdx.x; pass.active && unit < units; unit += gridDim.x) {
        uint64_t rest = unit;
        const uint32_t x0 = (uint32_t)(rest % tiles_x) * m.tile_x;
        rest /= tiles_x;
        const uint32_t y0 = (uint32_t)(rest % tiles_y) * m.tile_y;
        rest /= tiles_y;
        const uint32_t z0 = (uint32_t)(rest % marches) * m.march;
        rest /= marches;
        // The directions beyond the third are the same for the whole unit.
        uint64_t far_cells = rest, far_class = 0;
        for (uint32_t d = 3; d < m.directions; ++d) {
            far_class += (uint64_t)m.classes[m.table[d] + rest % m.cells[d]] * m.weight[d];
            rest /= m.cells[d];
        }
        const uint32_t width = min(m.tile_x, nx - x0), height = min(m.tile_y, ny - y0);
        const uint32_t rows = width * height * m.orbitals;
        for (uint32_t z = z0; z < min(nz, z0 + m.march); ++z) {
            uint64_t plane_class = far_class;
            if (m.directions > 2) plane_class += (uint64_t)m.classes[m.table[2] + z] * m.weight[2];
            for (uint32_t r = threadIdx.x / L; r < rows; r += THREADS / L) {
                const uint32_t cell_in_tile = r / m.orbitals, orbital = r - cell_in_tile * m.orbitals;
                const uint32_t j = cell_in_tile / width, x = x0 + cell_in_tile - j * width, y = y0 + j;
                uint64_t combination = plane_class + m.classes[m.table[0] + x];
                if (m.directions > 1) combination += (uint64_t)m.classes[m.table[1] + y] * m.weight[1];
                const uint64_t cell = x + (uint64_t)nx * (y + (uint64_t)ny * (z + (uint64_t)nz * far_cells));
                const uint64_t row = cell * m.orbitals + orbital;
                const uint32_t* list = m.start + combination * m.orbitals + orbital;
                const uint32_t from = __ldg(list), to = __ldg(list + 1);
                Pack<V, P> sum{};
#pragma unroll 4
                for (uint32_t k = from; k < to; ++k) {
                    const Entry<T> e = m.entries[k];
                    Pack<V, P> v = pass.input(row + e.distance);
#pragma unroll
                    for (int p = 0; p < P; ++p) sum.x[p] = mla(e.value, v.x[p], sum.x[p]);
                }
                if (m.diagonal) {
                    const auto energy = m.diagonal[row];
                    Pack<V, P> own = pass.input(row);
#pragma unroll
                    for (int p = 0; p < P; ++p) sum.x[p] = mla(energy, own.x[p], sum.x[p]);
                }
                pass.finish(row, sum);
            }
        }
    }
    pass.end();
}

#define KERNEL(NAME, V, P, L, T)                                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS) stencil_##NAME(Stencil<T> m, uint64_t units, Vectors<V> a) { \
        stencil<T, V, P, L>(m, units, a);                                                                           \
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
