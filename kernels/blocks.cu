// The fused pass over a stencil of two or four orbitals a cell with hoppings within cells and to the next ones along
// the axes. A thread has all orbitals of a cell, so that a neighbouring cell is read once for all of them, and keeps
// the cells below and above along the march; rows go as in straight.cu. Hoppings are full blocks of inner cells in the
// kernel's arguments: leaving zeros out costs more in branches than it saves.
#include "together.cuh"

enum Neighbour { LEFT, RIGHT, DOWN, UP, BELOW, ABOVE, OWN, NEIGHBOURS };
static_assert(OWN == host::blocks::OWN && NEIGHBOURS == host::blocks::NEIGHBOURS, "neighbours are counted as on the host");

template <class T, int O>
struct Blocks {
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
    const T (*values)[NEIGHBOURS][O][O];
    const typename Traits<T>::Real* diagonal;
    T inner[NEIGHBOURS][O][O];
};
HOST_HEAD_blocks_StencilHead(inner, Blocks<F32, 2>);
HOST_HEAD_blocks_StencilHead(inner, Blocks<C64, 4>);
static_assert(sizeof(Blocks<C64, 4>::inner) == host::blocks::INNER, "the host has room for the widest values");

// How many rows away the neighbours of a cell are; rows are counted modulo 2^32.
struct Reach {
    uint32_t left, right, down, up;
};

// How the O rows of a cell are moved. Rows of a single pack follow each other, so that 16 bytes may hold several.
template <int O, int L, class V, int P>
struct Cell {
    using Lanes = Pack<V, P>;
    static constexpr int ROWS = L == 1 ? (16 < O * (int)sizeof(Lanes) ? 16 : O * (int)sizeof(Lanes)) / (int)sizeof(Lanes) : 1;
    using Word = Pack<V, ROWS * P>;

    template <class F>
    static __device__ __forceinline__ void read(const V* from, uint32_t stride, Lanes (&to)[O], const F& load_word) {
#pragma unroll
        for (int o = 0; o < O; o += ROWS) {
            const Word word = load_word(reinterpret_cast<const Word*>(row_at(from, (uint32_t)o, stride)));
#pragma unroll
            for (int q = 0; q < ROWS * P; ++q) to[o + q / P].x[q % P] = word.x[q];
        }
    }

    static __device__ __forceinline__ void write(V* to, uint32_t stride, const Lanes (&from)[O]) {
#pragma unroll
        for (int o = 0; o < O; o += ROWS) {
            Word word;
#pragma unroll
            for (int q = 0; q < ROWS * P; ++q) word.x[q] = from[o + q / P].x[q % P];
            store_once(reinterpret_cast<Word*>(row_at(to, (uint32_t)o, stride)), word);
        }
    }
};

// A cell with values of its own, row by row: registers are for the cells that are like most.
template <int O, class T, class V, int P, int L, int BLOCK, bool WRITTEN>
__device__ __forceinline__ void cell_at_boundary(const Blocks<T, O>& m, RowPass<V, P, L, BLOCK, WRITTEN>& pass,
                                                 uint32_t row, const T (&values)[NEIGHBOURS][O][O], const Reach& to,
                                                 uint32_t below, uint32_t above) {
#pragma unroll 1
    for (int o = 0; o < O; ++o) {
        Pack<V, P> sum{};
#pragma unroll 1
        for (int k = 0; k < NEIGHBOURS; ++k) {
            const uint32_t from = row + (k == LEFT    ? to.left
                                         : k == RIGHT ? to.right
                                         : k == DOWN  ? to.down
                                         : k == UP    ? to.up
                                         : k == BELOW ? below
                                         : k == ABOVE ? above
                                                      : 0);
#pragma unroll 1
            for (int q = 0; q < O; ++q) {
                const T value = load(&values[k][o][q]);
                const Pack<V, P> x = pass.input(from + q);
#pragma unroll
                for (int p = 0; p < P; ++p) sum.x[p] = mla(value, x.x[p], sum.x[p]);
            }
        }
        const Pack<V, P> own = pass.input(row + o);
        if (m.diagonal) {
            const auto energy = __ldg(m.diagonal + row + o);
#pragma unroll
            for (int p = 0; p < P; ++p) sum.x[p] = mla(energy, own.x[p], sum.x[p]);
        }
        pass.finish(row + o, own, sum);
    }
}

// A cell whose values are those of most. At the ENDS of a direction some neighbours are missing.
template <bool FLAT, bool ENDS, int O, class T, class V, int P, int L, int BLOCK, bool WRITTEN, class Fetch>
__device__ __forceinline__ void inner_cell(const Blocks<T, O>& m, RowPass<V, P, L, BLOCK, WRITTEN>& pass,
                                           const Fetch& fetch, uint32_t row, uint32_t stride, const Reach& to,
                                           uint32_t over, uint32_t missing, Pack<V, P> (&below)[O],
                                           Pack<V, P> (&own)[O]) {
    using Lanes = Pack<V, P>;
    using Rows = Cell<O, L, V, P>;
    Lanes above[O]{}, old[O]{}, sum[O]{};
    if (!ENDS || !(missing >> ABOVE & 1)) fetch(row + over, above);
    V* w = row_at(pass.a.w + pass.first, row, stride);
    if (pass.a.gamma != 0.0) Rows::read(w, stride, old, [](const auto* word) { return load_once(word); });
    add_block<O>(m.inner[OWN], own, sum);
    if (!ENDS || !(missing >> BELOW & 1)) add_block<O>(m.inner[BELOW], below, sum);
    const uint32_t aside[4] = {to.left, to.right, to.down, to.up};
#pragma unroll
    for (int k = 0; k < (FLAT ? 2 : 4); ++k) {
        if (ENDS && missing >> k & 1) continue;
        Lanes other[O];
        fetch(row + aside[k], other);
        add_block<O>(m.inner[k], other, sum);
    }
    add_block<O>(m.inner[ABOVE], above, sum);
    if (m.diagonal) {
#pragma unroll
        for (int o = 0; o < O; ++o) {
            const auto energy = __ldg(m.diagonal + row + o);
#pragma unroll
            for (int p = 0; p < P; ++p) sum[o].x[p] = mla(energy, own[o].x[p], sum[o].x[p]);
        }
    }
#pragma unroll
    for (int o = 0; o < O; ++o) {
        if constexpr (Rows::ROWS == 1)
            pass.finish(row_at(w, (uint32_t)o, stride), own[o], sum[o], old[o]);
        else
            sum[o] = pass.combined(own[o], sum[o], old[o]);
        below[o] = own[o];
        own[o] = above[o];
    }
    if constexpr (Rows::ROWS > 1) Rows::write(w, stride, sum);
}

// All cells of a block of threads.
template <bool FLAT, class T, class V, int P, int L, int O, int BLOCK, bool WRITTEN>
__device__ __forceinline__ void blocks(const Blocks<T, O>& m, uint32_t units, RowPass<V, P, L, BLOCK, WRITTEN>& pass) {
    using Lanes = Pack<V, P>;
    const Vectors<V>& a = pass.a;
    const uint32_t tiles_x = (m.nx + m.tile_x - 1) / m.tile_x, tiles_y = (m.ny + m.tile_y - 1) / m.tile_y;
    const uint32_t marches = (m.nz + m.march - 1) / m.march;
    const uint32_t i = threadIdx.x / L % m.tile_x, j = threadIdx.x / L / m.tile_x;
    const uint32_t line = m.nx * O, plane = m.ny * line;
    // Opaque, so that the compiler keeps it in a register of 32 bits.
    uint32_t stride = a.lanes * sizeof(V);
    asm volatile("" : "+r"(stride));
    const auto fetch = [&](uint32_t row, Lanes(&to)[O]) {
        Cell<O, L, V, P>::read(row_at(a.v + pass.first, row, stride), stride, to,
                               [&](const auto* word) { return pass.read(word); });
    };
    for (uint32_t unit = blockIdx.x; pass.active && j < m.tile_y && unit < units; unit += gridDim.x) {
        // Tiles along a line, then those of a slab, then the slab's next planes.
        uint32_t rest = unit / tiles_x;
        const uint32_t first = rest / (m.slab * marches) * m.slab, across = min(m.slab, tiles_y - first);
        rest -= first * marches;
        const uint32_t x = unit % tiles_x * m.tile_x + i, y = (first + rest % across) * m.tile_y + j;
        const uint32_t z0 = rest / across * m.march, z1 = min(m.nz, z0 + m.march);
        if (x >= m.nx || y >= m.ny) continue;
        Reach to;
        to.left = x == 0 ? line - O : 0u - O;
        to.right = x + 1 == m.nx ? O - line : O;
        to.down = y == 0 ? plane - line : 0u - line;
        to.up = y + 1 == m.ny ? line - plane : line;
        const bool all_plain = m.all_plain & 1, ends = m.all_plain & 8;
        uint32_t missing = 0;
        if (m.all_plain & 2) missing |= (x == 0) << LEFT | (x + 1 == m.nx) << RIGHT;
        if (m.all_plain & 4) missing |= (y == 0) << DOWN | (y + 1 == m.ny) << UP;
        // A warp with a cell at an end looks for missing neighbours at all of its cells: else it would go both ways.
        const bool looks = __any_sync(__activemask(), missing != 0);
        const uint32_t near = all_plain ? 0 : __ldg(m.classes + x) + __ldg(m.classes + m.nx + y) * m.weight_y;
        uint32_t row = x * O + y * line + z0 * plane;
        Lanes below[O], own[O];
        fetch(row + (z0 == 0 ? (m.nz - 1) * plane : 0u - plane), below);
        fetch(row, own);
#pragma unroll 1
        for (uint32_t z = z0; z < z1; ++z, row += plane) {
            const uint32_t over = z + 1 == m.nz ? plane - m.nz * plane : plane;
            const uint32_t mine = all_plain ? 0 : near + __ldg(m.classes + m.nx + m.ny + z) * m.weight_z;
            const uint32_t absent = missing | (ends && z == 0) << BELOW | (ends && z + 1 == m.nz) << ABOVE;
            if (!all_plain && !__ldg(m.plain + mine)) {
                const uint32_t under = z == 0 ? (m.nz - 1) * plane : 0u - plane;
                cell_at_boundary<O>(m, pass, row, m.values[mine], to, under, over);
                fetch(row, below);
                fetch(row + over, own);
            } else if (absent || looks) {
                inner_cell<FLAT, true, O>(m, pass, fetch, row, stride, to, over, absent, below, own);
            } else {
                inner_cell<FLAT, false, O>(m, pass, fetch, row, stride, to, over, 0, below, own);
            }
        }
    }
}

// Threads of a block, and blocks of a multiprocessor: rows over few threads go in small blocks, as many as leave
// registers for what a thread has of a cell.
constexpr int FEW = host::blocks::FEW;
template <int L>
constexpr int SIZE = L < FEW ? (int)host::blocks::SMALL_BLOCK : (int)host::blocks::BLOCK;
template <int L, int BYTES>
constexpr int SHARE = L >= FEW ? 1 : BYTES <= 16 ? 8 : BYTES <= 32 ? 5 : 4;

#define KERNEL(NAME, V, P, L, T, O, DIRECTIONS)                                                                         \
    extern "C" __global__ void __launch_bounds__(SIZE<L>, (SHARE<L, O * P * (int)sizeof(V)>))                           \
        blocks##O##_##DIRECTIONS##_##NAME(const __grid_constant__ Blocks<T, O> m, uint64_t units, Vectors<V> a) {       \
        RowPass<V, P, L, SIZE<L>> pass(a);                                                                              \
        blocks<DIRECTIONS == 2>(m, (uint32_t)units, pass);                                                              \
        pass.end();                                                                                                     \
    }

// Rows of a single pack only: with more, neighbours are read from L2 too often.
#define TOGETHER_KERNEL(KERNEL_NAME, V, P, T, O, DIRECTIONS, ...)                                                       \
    extern "C" __global__ void __launch_bounds__(TOGETHER, 1)                                                           \
        KERNEL_NAME(const __grid_constant__ Blocks<T, O> m, uint64_t units, Vectors<V> a, uint32_t steps, uint32_t* arrived,\
                    const __grid_constant__ __VA_ARGS__ link) {                                                         \
        together<P>(a, steps, arrived, link, [&](auto& pass) { blocks<DIRECTIONS == 2>(m, (uint32_t)units, pass); });   \
    }
#define SEVERAL(NAME, V, P, T, O, DIRECTIONS)                                                                           \
    TOGETHER_KERNEL(blocks##O##_##DIRECTIONS##_##NAME##_together, V, P, T, O, DIRECTIONS, Alone)                        \
    TOGETHER_KERNEL(blocks##O##_##DIRECTIONS##_##NAME##_linked, V, P, T, O, DIRECTIONS, Crossing<V>)

#define ONE_THREAD(TYPE, V, P, T, O, DIRECTIONS)        \
    KERNEL(TYPE##_p##P##_l1, V, P, 1, T, O, DIRECTIONS) \
    SEVERAL(TYPE##_p##P##_l1, V, P, T, O, DIRECTIONS)

#define THREADS_OF_A_ROW(TYPE, V, P, T, O, DIRECTIONS)    \
    ONE_THREAD(TYPE, V, P, T, O, DIRECTIONS)              \
    KERNEL(TYPE##_p##P##_l2, V, P, 2, T, O, DIRECTIONS)   \
    KERNEL(TYPE##_p##P##_l4, V, P, 4, T, O, DIRECTIONS)   \
    KERNEL(TYPE##_p##P##_l8, V, P, 8, T, O, DIRECTIONS)   \
    KERNEL(TYPE##_p##P##_l16, V, P, 16, T, O, DIRECTIONS) \
    KERNEL(TYPE##_p##P##_l32, V, P, 32, T, O, DIRECTIONS)

#define ORBITALS(DO, TYPE, V, P, T) \
    DO(TYPE, V, P, T, 2, 2)         \
    DO(TYPE, V, P, T, 2, 3)         \
    DO(TYPE, V, P, T, 4, 2)         \
    DO(TYPE, V, P, T, 4, 3)

ORBITALS(THREADS_OF_A_ROW, f32, F32, 4, F32)
ORBITALS(THREADS_OF_A_ROW, f64, F64, 2, F64)
ORBITALS(THREADS_OF_A_ROW, c32, C32, 2, C32)
ORBITALS(THREADS_OF_A_ROW, c64, C64, 1, C64)
// Rows that are shorter.
ORBITALS(ONE_THREAD, f32, F32, 1, F32)
ORBITALS(ONE_THREAD, f32, F32, 2, F32)
ORBITALS(ONE_THREAD, f64, F64, 1, F64)
ORBITALS(ONE_THREAD, c32, C32, 1, C32)
