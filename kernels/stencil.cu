// The fused pass over any matrix-free stencil. A block takes a tile of cells in the first two directions and a few planes of
// the third; blocks that run together work on neighbouring tiles, so that rows which several cells need are still in a
// cache. The threads of a warp have one orbital, and the list of inner cells comes with the kernel's arguments: read by a
// warp at once, it costs next to nothing.
#include "update.cuh"

constexpr int MOST_DIRECTIONS = 8;
constexpr int MOST_ORBITALS = 15;
constexpr int MOST_INNER = 96;

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
    // Tiles: cells in the first two directions, planes of the third; and tiles across that are worked on together.
    uint32_t tile_x, tile_y, march, slab;
    // The combination of inner cells (none if their entries are too many to travel along), where the entries of each of
    // its orbitals start, and those.
    uint32_t inner, padding;
    uint32_t inner_start[MOST_ORBITALS + 1];
    int inner_distance[MOST_INNER];
    T inner_value[MOST_INNER];
};

constexpr int BLOCK = 512;
// Entries whose loads are under way together.
constexpr int BATCH = 4;

template <class T, class V, int P, int L>
__device__ __forceinline__ void stencil(const Stencil<T>& m, uint64_t units, const Vectors<V>& a) {
    using Lanes = Pack<V, P>;
    RowPass<V, P, L, BLOCK> pass(a);
    // The tile lies in the first two directions, or in the first alone of two; the march goes along the next.
    const uint32_t along = m.directions > 2 ? 2 : 1;
    const uint32_t nx = m.cells[0], ny = m.directions > 2 ? m.cells[1] : 1;
    const uint32_t nz = m.directions > along ? m.cells[along] : 1;
    const uint32_t tiles_x = (nx + m.tile_x - 1) / m.tile_x, tiles_y = (ny + m.tile_y - 1) / m.tile_y;
    const uint32_t marches = (nz + m.march - 1) / m.march;
    const uint64_t of_far = (uint64_t)tiles_x * tiles_y * marches, plane = (uint64_t)nx * ny * m.orbitals;
    const uint32_t r = threadIdx.x / L, in_tile = m.tile_x * m.tile_y;
    const uint32_t orbital = r / in_tile, cell = r - orbital * in_tile, j = cell / m.tile_x, i = cell - j * m.tile_x;
    for (uint64_t unit = blockIdx.x; pass.active && orbital < m.orbitals && unit < units; unit += gridDim.x) {
        // Tiles along a line, then those of a slab, then the slab's next planes.
        uint64_t rest = unit % of_far / tiles_x;
        const uint32_t first = (uint32_t)(rest / ((uint64_t)m.slab * marches)) * m.slab;
        const uint32_t across = min(m.slab, tiles_y - first);
        rest -= (uint64_t)first * marches;
        const uint32_t x = (uint32_t)(unit % tiles_x) * m.tile_x + i, y = (first + (uint32_t)(rest % across)) * m.tile_y + j;
        const uint32_t z0 = (uint32_t)(rest / across) * m.march, z1 = min(nz, z0 + m.march);
        if (x >= nx || y >= ny) continue;
        // The directions beyond the march are the same for the whole unit.
        rest = unit / of_far;
        uint64_t row = (x + (uint64_t)nx * (y + (uint64_t)ny * (z0 + (uint64_t)nz * rest))) * m.orbitals + orbital;
        uint32_t near = __ldg(m.classes + m.table[0] + x);
        if (m.directions > 2) near += __ldg(m.classes + m.table[1] + y) * m.weight[1];
        for (uint32_t d = 3; d < m.directions; ++d) {
            near += m.classes[m.table[d] + rest % m.cells[d]] * m.weight[d];
            rest /= m.cells[d];
        }
        for (uint32_t z = z0; z < z1; ++z, row += plane) {
            uint32_t combination = near;
            if (m.directions > along) combination += __ldg(m.classes + m.table[along] + z) * m.weight[along];
            const Lanes own = m.diagonal ? pass.input(row) : pass.own(row);
            const V* v = a.v + row * a.lanes + pass.first;
            Lanes sum{};
            if (combination == m.inner) {
                const uint32_t end = m.inner_start[orbital + 1];
                for (uint32_t k = m.inner_start[orbital]; k < end; k += BATCH) {
                    Lanes near_by[BATCH];
#pragma unroll
                    for (int b = 0; b < BATCH; ++b)
                        if (k + b < end)
                            near_by[b] = load(reinterpret_cast<const Lanes*>(v + (int64_t)m.inner_distance[k + b] * a.lanes));
#pragma unroll
                    for (int b = 0; b < BATCH; ++b)
                        if (k + b < end)
#pragma unroll
                            for (int p = 0; p < P; ++p) sum.x[p] = mla(m.inner_value[k + b], near_by[b].x[p], sum.x[p]);
                }
            } else {
                const uint32_t* list = m.start + (uint64_t)combination * m.orbitals + orbital;
                const uint32_t end = __ldg(list + 1);
#pragma unroll 1
                for (uint32_t k = __ldg(list); k < end; ++k) {
                    const Entry<T> e = m.entries[k];
                    const Lanes x = pass.input(row + e.distance);
#pragma unroll
                    for (int p = 0; p < P; ++p) sum.x[p] = mla(e.value, x.x[p], sum.x[p]);
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
    pass.end();
}

#define KERNEL(NAME, V, P, L, T)                                                                                      \
    extern "C" __global__ void __launch_bounds__(BLOCK, 2) stencil_##NAME(const __grid_constant__ Stencil<T> m,       \
                                                                          uint64_t units, Vectors<V> a) {             \
        stencil<T, V, P, L>(m, units, a);                                                                             \
    }

#define THREADS_OF_A_ROW(TYPE, V, P, T)    \
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
