// The fused pass over a stencil of one orbital with hoppings to the next cells along the axes: cubic, square,
// chain-like. A block takes a tile of cells in the first two directions and a few planes of the third. Blocks that run
// together work on neighbouring tiles, so that every row comes from memory once and from a cache the other times.
// Values of inner cells are read from the kernel's arguments, which costs no registers; cells whose boundary changes
// them read a list. Floor: v and w once, w twice where gamma is not zero, and the diagonal once where there is one. 12
// flops a row and lane of its neighbours are far below what the memory asks for.
#include "together.cuh"

enum Neighbour { LEFT, RIGHT, DOWN, UP, BELOW, ABOVE, NEIGHBOURS };
static_assert(NEIGHBOURS == host::blocks::OWN, "the neighbours of a cell without the cell itself");

// Distances of neighbours, in numbers: within a plane, fewer than 2^31.
struct Reach {
    int left, right, down, up;
    int64_t below, above;
};

template <class T>
struct Straight {
    uint32_t nx, ny, nz;
    // Cells of a tile, planes of a unit, and tiles across that are worked on together.
    uint32_t tile_x, tile_y, march, slab;
    // Bit 0: no cell has values of its own. Bits 1 to 3: the x, y and z directions end,
    // and cells there miss a neighbour.
    uint32_t all_plain;
    // Class of every x, y and z, in this order, and what a class of y and of z counts in a combination's number.
    const uint32_t* classes;
    uint32_t weight_y, weight_z;
    // Of each combination: whether its values are the inner ones, up to neighbours that are missing; and its values.
    const uint32_t* plain;
    const T* values;
    const typename Traits<T>::Real* diagonal;
    T inner[NEIGHBOURS];
};
HOST_HEAD_blocks_StencilHead(inner, Straight<F32>);
HOST_HEAD_blocks_StencilHead(inner, Straight<C64>);
static_assert(sizeof(Straight<C64>::inner) == host::cells::STRAIGHT_INNER, "the host has room for the widest values");

// U planes of cells like most; of those at the ENDS of a direction some neighbours are missing.
template <int U, bool FLAT, bool ENDS, class T, class V, int P, int L, int BLOCK, bool WRITTEN>
__device__ __forceinline__ void rows(const Straight<T>& m, RowPass<V, P, L, BLOCK, WRITTEN>& pass, uint64_t row,
                                     uint64_t plane, const Reach& to, uint32_t missing) {
    using Real = typename Traits<T>::Real;
    using Lanes = Pack<V, P>;
    const uint64_t step = plane * pass.a.lanes;
    const auto at = [&](const V* v) { return pass.read(reinterpret_cast<const Lanes*>(v)); };
    const auto there = [&](Neighbour k, const V* v) { return ENDS && missing >> k & 1 ? Lanes{} : at(v); };
    const V* v = pass.a.v + row * pass.a.lanes + pass.first;
    V* w = pass.a.w + row * pass.a.lanes + pass.first;
    Lanes own[U], old[U], sum[U];
    Real energy[U];
    const Lanes below = there(BELOW, v + to.below), above = there(ABOVE, v + (U - 1) * step + to.above);
#pragma unroll
    for (int u = 0; u < U; ++u) {
        own[u] = at(v + u * step);
        if (pass.a.gamma != 0.0) old[u] = load_once(reinterpret_cast<const Lanes*>(w + u * step));
        energy[u] = m.diagonal ? __ldg(m.diagonal + row + u * plane) : Real{};
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const V* c = v + u * step;
        const Lanes left = there(LEFT, c + to.left), right = there(RIGHT, c + to.right);
        const Lanes lo = u == 0 ? below : own[u - 1], hi = u == U - 1 ? above : own[u + 1 < U ? u + 1 : u];
        Lanes down{}, up{};
        if (!FLAT) {
            down = there(DOWN, c + to.down);
            up = there(UP, c + to.up);
        }
#pragma unroll
        for (int p = 0; p < P; ++p) {
            sum[u].x[p] = mla(m.inner[LEFT], left.x[p], mla(m.inner[RIGHT], right.x[p], V{}));
            if (!FLAT) sum[u].x[p] = mla(m.inner[DOWN], down.x[p], mla(m.inner[UP], up.x[p], sum[u].x[p]));
            sum[u].x[p] = mla(m.inner[BELOW], lo.x[p], mla(m.inner[ABOVE], hi.x[p], sum[u].x[p]));
            sum[u].x[p] = mla(energy[u], own[u].x[p], sum[u].x[p]);
        }
    }
#pragma unroll
    for (int u = 0; u < U; ++u) pass.finish(w + u * step, own[u], sum[u], old[u]);
}

// A row with values of its own. One neighbour after the other, as registers are for the rows that are like most.
template <class T, class V, int P, int L, int BLOCK, bool WRITTEN>
__device__ __forceinline__ void row_at_boundary(const Straight<T>& m, RowPass<V, P, L, BLOCK, WRITTEN>& pass,
                                                uint64_t row, const Reach& to, const T* values) {
    const V* v = pass.a.v + row * pass.a.lanes + pass.first;
    Pack<V, P> sum{};
#pragma unroll 1
    for (int k = 0; k < NEIGHBOURS; ++k) {
        const int64_t distance = k == LEFT    ? to.left
                                 : k == RIGHT ? to.right
                                 : k == DOWN  ? to.down
                                 : k == UP    ? to.up
                                 : k == BELOW ? to.below
                                              : to.above;
        const T value = load(values + k);
        const Pack<V, P> x = pass.read(reinterpret_cast<const Pack<V, P>*>(v + distance));
#pragma unroll
        for (int p = 0; p < P; ++p) sum.x[p] = mla(value, x.x[p], sum.x[p]);
    }
    const Pack<V, P> own = pass.input(row);
    if (m.diagonal) {
        const auto energy = __ldg(m.diagonal + row);
#pragma unroll
        for (int p = 0; p < P; ++p) sum.x[p] = mla(energy, own.x[p], sum.x[p]);
    }
    pass.finish(row, own, sum);
}

// All rows of a block.
template <bool FLAT, int U, class T, class V, int P, int L, int BLOCK, bool WRITTEN>
__device__ __forceinline__ void straight(const Straight<T>& m, uint64_t units, RowPass<V, P, L, BLOCK, WRITTEN>& pass) {
    const Vectors<V>& a = pass.a;
    const uint32_t tiles_x = (m.nx + m.tile_x - 1) / m.tile_x, tiles_y = (m.ny + m.tile_y - 1) / m.tile_y;
    const uint32_t marches = (m.nz + m.march - 1) / m.march;
    const uint32_t i = threadIdx.x / L % m.tile_x, j = threadIdx.x / L / m.tile_x;
    const uint64_t plane = (uint64_t)m.nx * m.ny;
    const int line = (int)(m.nx * a.lanes);
    const int64_t step = (int64_t)(plane * a.lanes);
    for (uint64_t unit = blockIdx.x; pass.active && j < m.tile_y && unit < units; unit += gridDim.x) {
        // Tiles along a line, then those of a slab, then the slab's next planes.
        const uint32_t bx = (uint32_t)(unit % tiles_x);
        uint64_t rest = unit / tiles_x;
        const uint32_t slab = (uint32_t)(rest / ((uint64_t)m.slab * marches)), first = slab * m.slab;
        const uint32_t across = min(m.slab, tiles_y - first);
        rest -= (uint64_t)first * marches;
        const uint32_t x = bx * m.tile_x + i, y = (first + (uint32_t)(rest % across)) * m.tile_y + j;
        const uint32_t z0 = (uint32_t)(rest / across) * m.march, z1 = min(m.nz, z0 + m.march);
        if (x >= m.nx || y >= m.ny) continue;
        Reach to;
        to.left = (x == 0 ? (int)m.nx - 1 : -1) * (int)a.lanes;
        to.right = (x + 1 == m.nx ? 1 - (int)m.nx : 1) * (int)a.lanes;
        to.down = (y == 0 ? (int)m.ny - 1 : -1) * line;
        to.up = (y + 1 == m.ny ? 1 - (int)m.ny : 1) * line;
        const bool all_plain = m.all_plain & 1;
        uint32_t aside = 0;
        if (m.all_plain & 2) aside |= (x == 0) << LEFT | (x + 1 == m.nx) << RIGHT;
        if (m.all_plain & 4) aside |= (y == 0) << DOWN | (y + 1 == m.ny) << UP;
        const bool ends = m.all_plain & 8;
        // Where these directions end, x and for long rows y, all threads look for neighbours that are missing: if some
        // went another way, their block would wait for them.
        constexpr uint32_t LOOK = L >= 16 ? 6 : 2;
        const uint32_t near = all_plain ? 0 : __ldg(m.classes + x) + __ldg(m.classes + m.nx + y) * m.weight_y;
        const auto combination = [&](uint32_t z) { return near + __ldg(m.classes + m.nx + m.ny + z) * m.weight_z; };
        uint64_t row = x + (uint64_t)m.nx * (y + (uint64_t)m.ny * z0);
        for (uint32_t z = z0; z < z1;) {
            to.below = z == 0 ? ((int64_t)m.nz - 1) * step : -step;
            // Inner planes are of one class, so that the ends tell for all between. All threads are at the same planes.
            if (U > 1 && z + U <= z1 && !(aside && !(m.all_plain & LOOK)) &&
                (all_plain || (__ldg(m.plain + combination(z)) && __ldg(m.plain + combination(z + U - 1)) &&
                               __ldg(m.plain + combination(z + 1))))) {
                to.above = z + U == m.nz ? (1 - (int64_t)m.nz) * step : step;
                const uint32_t missing = aside | (ends && z == 0) << BELOW | (ends && z + U == m.nz) << ABOVE;
                if ((m.all_plain & LOOK) || missing) {
                    rows<U, FLAT, true>(m, pass, row, plane, to, missing);
                } else {
                    rows<U, FLAT, false>(m, pass, row, plane, to, 0);
                }
                z += U;
                row += U * plane;
                continue;
            }
            to.above = z + 1 == m.nz ? (1 - (int64_t)m.nz) * step : step;
            const uint32_t mine = all_plain ? 0 : combination(z);
            const uint32_t missing = aside | (ends && z == 0) << BELOW | (ends && z + 1 == m.nz) << ABOVE;
            if (!all_plain && !__ldg(m.plain + mine)) {
                row_at_boundary(m, pass, row, to, m.values + (uint64_t)mine * NEIGHBOURS);
            } else if (missing) {
                rows<1, FLAT, true>(m, pass, row, plane, to, missing);
            } else {
                rows<1, FLAT, false>(m, pass, row, plane, to, 0);
            }
            ++z;
            row += plane;
        }
    }
}

#define KERNEL(NAME, V, P, L, T, U, BLOCK, SHARE)                                                                        \
    extern "C" __global__ void __launch_bounds__(BLOCK, SHARE)                                                          \
        straight3_##NAME(const __grid_constant__ Straight<T> m, uint64_t units, Vectors<V> a) {                         \
        RowPass<V, P, L, BLOCK> pass(a);                                                                                \
        straight<false, U>(m, units, pass);                                                                             \
        pass.end();                                                                                                     \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(BLOCK, SHARE)                                                          \
        straight2_##NAME(const __grid_constant__ Straight<T> m, uint64_t units, Vectors<V> a) {                         \
        RowPass<V, P, L, BLOCK> pass(a);                                                                                \
        straight<true, U>(m, units, pass);                                                                              \
        pass.end();                                                                                                     \
    }

// Rows of a single pack only: with more, neighbours are read from L2 too often.
#define TOGETHER_KERNEL(KERNEL_NAME, FLAT, V, P, T, ...)                                                                \
    extern "C" __global__ void __launch_bounds__(TOGETHER, 1)                                                           \
        KERNEL_NAME(const __grid_constant__ Straight<T> m, uint64_t units, Vectors<V> a, uint32_t steps, uint32_t* arrived,\
                    const __grid_constant__ __VA_ARGS__ link) {                                                         \
        together<P>(a, steps, arrived, link, [&](auto& pass) { straight<FLAT, PLANES>(m, units, pass); });              \
    }
#define SEVERAL(NAME, V, P, T)                                                                                          \
    TOGETHER_KERNEL(straight3_##NAME##_together, false, V, P, T, Alone)                                                 \
    TOGETHER_KERNEL(straight2_##NAME##_together, true, V, P, T, Alone)                                                  \
    TOGETHER_KERNEL(straight3_##NAME##_linked, false, V, P, T, Crossing<V>)                                             \
    TOGETHER_KERNEL(straight2_##NAME##_linked, true, V, P, T, Crossing<V>)

constexpr int PLANES = host::cells::PLANES;
constexpr int LONE = host::cells::LONE_BLOCK, SHARED = host::cells::SHARED_BLOCK;

// Two planes of a thread are under way together, and no more threads than have registers for that.
#define THREADS_OF_A_ROW(TYPE, V, P, T)              \
    SEVERAL(TYPE##_p##P##_l1, V, P, T)                \
    KERNEL(TYPE##_p##P##_l1, V, P, 1, T, 2, LONE, 6)  \
    KERNEL(TYPE##_p##P##_l2, V, P, 2, T, 2, SHARED, 1)  \
    KERNEL(TYPE##_p##P##_l4, V, P, 4, T, 2, SHARED, 1)  \
    KERNEL(TYPE##_p##P##_l8, V, P, 8, T, 2, SHARED, 1)  \
    KERNEL(TYPE##_p##P##_l16, V, P, 16, T, 2, SHARED, 1) \
    KERNEL(TYPE##_p##P##_l32, V, P, 32, T, 2, SHARED, 1)

EVERY_PACK(THREADS_OF_A_ROW)
