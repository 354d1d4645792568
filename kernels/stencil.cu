// The fused pass over any matrix-free stencil. A block takes a tile of cells in the first two directions and a few
// planes of the third; blocks that run together work on neighbouring tiles, so that rows which several cells need are
// still in a cache. The threads of a warp have one orbital. Hoppings of inner cells come with the kernel's arguments
// and are read by a warp at once; near a boundary the same ones lead elsewhere, which a table of distances tells.
#include "update.cuh"

constexpr int MOST_DIRECTIONS = host::cells::MOST_DIRECTIONS;
constexpr int MOST_INNER = host::cells::MOST_INNER;

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
    // Whether a combination has the inner cells' hoppings; where they lead, [combination * orbitals + orbital][quads],
    // in rows; and what its row has on the diagonal. A hopping that an open boundary cuts leads to the row itself, and
    // is taken back there.
    const uint32_t* plain;
    const int4* distances;
    const T* on_site;
    // Tiles: cells in the first two directions, planes of the third; and tiles across that are worked on together.
    uint32_t tile_x, tile_y, march, slab;
    // Hoppings of an inner orbital, in fours; whether all combinations are plain.
    uint32_t quads, all_plain;
    T inner[MOST_INNER];
};
HOST_HEAD_cells_StencilArgument(inner, Stencil<F32>);
HOST_HEAD_cells_StencilArgument(inner, Stencil<C64>);

// The number `by` strides of bytes away.
template <class X>
__device__ __forceinline__ const X* moved(const X* from, int by, int stride) {
    uint64_t to;
    asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(to) : "r"(by), "r"(stride), "l"(from));
    return reinterpret_cast<const X*>(to);
}

template <class T, class V, int P, int L, int BLOCK>
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
    const int64_t step = (int64_t)plane * a.lanes;
    const bool keeps = a.gamma != 0.0;
    const auto add = [](Lanes& sum, const auto& value, const Lanes& x) {
#pragma unroll
        for (int p = 0; p < P; ++p) sum.x[p] = mla(value, x.x[p], sum.x[p]);
    };
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
        const uint64_t row = (x + (uint64_t)nx * (y + (uint64_t)ny * (z0 + (uint64_t)nz * rest))) * m.orbitals + orbital;
        uint32_t near = __ldg(m.classes + m.table[0] + x);
        if (m.directions > 2) near += __ldg(m.classes + m.table[1] + y) * m.weight[1];
        for (uint32_t d = 3; d < m.directions; ++d) {
            near += m.classes[m.table[d] + rest % m.cells[d]] * m.weight[d];
            rest /= m.cells[d];
        }
        // Opaque, so that the compiler keeps it in a register of 32 bits.
        int stride = (int)(a.lanes * sizeof(V));
        asm volatile("" : "+r"(stride));
        const V* v = a.v + row * a.lanes + pass.first;
        V* w = a.w + row * a.lanes + pass.first;
        const auto* energy_at = m.diagonal + row;
        const uint32_t* class_at = m.classes + m.table[along] + z0;
#pragma unroll 1
        for (uint32_t z = z0; z < z1; ++z, v += step, w += step, energy_at += plane, ++class_at) {
            uint32_t combination = near;
            if (m.directions > along) combination += __ldg(class_at) * m.weight[along];
            const uint32_t kind = combination * m.orbitals + orbital;
            const auto at = [&](int distance) { return load(reinterpret_cast<const Lanes*>(moved(v, distance, stride))); };
            const Lanes own = load(reinterpret_cast<const Lanes*>(v));
            Lanes old{}, sum{};
            typename Traits<T>::Real energy{};
            if (keeps) old = load_once(reinterpret_cast<const Lanes*>(w));
            if (m.diagonal) energy = __ldg(energy_at);
            if (m.all_plain || __ldg(m.plain + combination)) {
                const int4* to = m.distances + kind * m.quads;
                add(sum, m.on_site[kind], own);
                const int end = (int)((orbital + 1) * m.quads) * 4;
#pragma unroll 1
                for (int k = end - (int)m.quads * 4; k < end; k += 4, ++to) {
                    const int4 d = __ldg(to);
                    const Lanes x0 = at(d.x), x1 = at(d.y), x2 = at(d.z), x3 = at(d.w);
                    add(sum, m.inner[k], x0);
                    add(sum, m.inner[k + 1], x1);
                    add(sum, m.inner[k + 2], x2);
                    add(sum, m.inner[k + 3], x3);
                }
            } else {
                const uint32_t end = __ldg(m.start + kind + 1);
#pragma unroll 1
                for (uint32_t k = __ldg(m.start + kind); k < end; ++k) {
                    const Entry<T> e = m.entries[k];
                    add(sum, e.value, load(reinterpret_cast<const Lanes*>(v + e.distance * a.lanes)));
                }
            }
            if (m.diagonal) add(sum, energy, own);
            pass.finish(w, own, sum, old);
        }
    }
    pass.end();
}

#define KERNEL(NAME, V, P, L, T)                                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, 4) stencil_##NAME(const __grid_constant__ Stencil<T> m,    \
                                                                            uint64_t units, Vectors<V> a) {          \
        stencil<T, V, P, L, THREADS>(m, units, a);                                                                  \
    }

#define THREADS_OF_A_ROW(TYPE, V, P, T)  \
    KERNEL(TYPE##_p##P##_l1, V, P, 1, T) \
    KERNEL(TYPE##_p##P##_l2, V, P, 2, T) \
    KERNEL(TYPE##_p##P##_l4, V, P, 4, T) \
    KERNEL(TYPE##_p##P##_l8, V, P, 8, T) \
    KERNEL(TYPE##_p##P##_l16, V, P, 16, T)

EVERY_PACK(THREADS_OF_A_ROW)
