// Many steps of a recurrence in one launch, for which all rows stay where they are: a block has a box of cells, their
// input in shared memory, their old output in registers. From step to step only the faces of boxes travel, through L2,
// as parcels of eight bytes with the number of the step: who waits for a parcel looks at it until it has the number,
// so that no block waits for others than its neighbours. Stencils with hoppings within cells of one, two or four
// orbitals and to the next cells along the axes, rows of a single pack; no cell has hoppings of its own. (Zhang et al.,
// "PERKS", ICS 2023, keep rows on the chip from step to step too; their blocks all meet after each.)
// Floor: nothing comes from memory. Eight reads and a write of shared memory a row, and the way of a parcel.
#include "update.cuh"

// Threads of a block.
constexpr int ON_CHIP = host::onchip::BLOCK;

enum Neighbour { LEFT, RIGHT, DOWN, UP, BELOW, ABOVE, OWN, NEIGHBOURS };
static_assert(OWN == host::blocks::OWN && NEIGHBOURS == host::blocks::NEIGHBOURS, "counted as on the host");

// A single orbital has no hoppings within its cell.
template <class T, int O>
struct OnChip {
    uint32_t cells[3];
    // Boxes along each direction. A cell's box is found by its coordinate, so that boxes differ by one cell at most.
    uint32_t parts[3];
    // Directions that end, and those that the lattice has not, a bit each.
    uint32_t ends, absent;
    const typename Traits<T>::Real* diagonal;
    T inner[O == 1 ? OWN : NEIGHBOURS][O][O];
};
HOST_HEAD_onchip_OnChipHead(inner, OnChip<F32, 1>);
HOST_HEAD_onchip_OnChipHead(inner, OnChip<C64, 4>);

// Both halves are written, and read, at once.
struct Parcel {
    uint64_t payload, step;
};

__device__ __forceinline__ void send(Parcel* to, uint64_t payload, uint64_t step) {
    asm volatile("{ .reg .b128 both; mov.b128 both, {%1, %2}; st.relaxed.gpu.global.b128 [%0], both; }" ::"l"(to),
                 "l"(payload), "l"(step)
                 : "memory");
}

__device__ __forceinline__ Parcel look(const Parcel* at) {
    Parcel parcel;
    asm volatile("{ .reg .b128 both; ld.relaxed.gpu.global.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
                 : "=l"(parcel.payload), "=l"(parcel.step)
                 : "l"(at)
                 : "memory");
    return parcel;
}

// A cell's lanes as payloads.
template <class X>
union Payloads {
    static constexpr int COUNT = (sizeof(X) + 7) / 8;
    X x;
    uint64_t part[COUNT];
};

// The cells of a block: where they begin in the lattice, and how many there are along each direction. It stands in
// shared memory, since registers are for rows.
struct CellBox {
    uint32_t first[3], size[3];
};

// The number of the k-th cell of a box, and its coordinates in the box.
template <class T, int O>
__device__ __forceinline__ uint64_t cell_of(const OnChip<T, O>& m, const CellBox& box, uint32_t k, uint32_t (&at)[3]) {
    at[0] = k % box.size[0];
    at[1] = k / box.size[0] % box.size[1];
    at[2] = k / box.size[0] / box.size[1];
    const uint64_t line = box.first[1] + at[1] + (uint64_t)m.cells[1] * (box.first[2] + at[2]);
    return box.first[0] + at[0] + m.cells[0] * line;
}

// Sums of steps, of the warps of this block. They are added up for several steps at a time, by a warp each.
template <int P>
struct StepSums {
    static constexpr int WARPS = ON_CHIP / 32, STEPS = WARPS / (2 * P);
    double of[STEPS][2 * P][WARPS];

    __device__ __forceinline__ void put(uint32_t step, const double (&vv)[P], const double (&wv)[P]) {
        // One half of a warp adds up these, the other half those.
        const bool high = threadIdx.x & 16;
#pragma unroll
        for (int p = 0; p < P; ++p) {
            double mine = (high ? wv[p] : vv[p]) + __shfl_xor_sync(~0u, high ? vv[p] : wv[p], 16);
#pragma unroll
            for (int apart = 8; apart > 0; apart /= 2) mine += __shfl_xor_sync(~0u, mine, apart);
            if (threadIdx.x % 16 == 0) of[step % STEPS][(high ? P : 0) + p][threadIdx.x / 32] = mine;
        }
    }

    // Of the last `count` steps, after the block has met; returns where the next ones go.
    __device__ __forceinline__ double* flush(uint32_t count, double* out) const {
        const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, step = warp / (2 * P), q = warp % (2 * P);
        if (step < count) {
            double sum = lane < WARPS ? of[step][q][lane] : 0.0;
#pragma unroll
            for (int apart = WARPS / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
            if (lane == 0) out[(uint64_t)step * gridDim.x * 2 * P + q] = sum;
        }
        return out + (uint64_t)STEPS * gridDim.x * 2 * P;
    }
};

// Cells whose parcels a thread looks at together.
template <int PARCELS>
constexpr int AT_ONCE_OF = PARCELS > 2 ? 1 : 2;

// Up to K cells of O orbitals a thread. In a MARCH a thread has a column of the box along the third direction, and
// energies are in shared memory; otherwise it has every ON_CHIP-th cell, and energies are in registers.
template <class T, class V, int P, int O, int K, bool MARCH>
__device__ __forceinline__ void on_chip(const OnChip<T, O>& m, const Vectors<V>& a, uint32_t steps, uint64_t number,
                                        Parcel* inboxes) {
    using Real = typename Traits<V>::Real;
    using Energy = typename Traits<T>::Real;
    using Lanes = Pack<V, P>;
    using Parts = Payloads<Lanes>;
    // Parcels of an orbital, and of a cell.
    constexpr int W = Parts::COUNT, PARCELS = O * W, AT_ONCE = AT_ONCE_OF<PARCELS>;
    constexpr uint32_t NOBODY = ~0u, NOWHERE = 0xffff;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ StepSums<P> sums;
    __shared__ CellBox box;
    const uint32_t t = threadIdx.x;

    uint32_t at[3], most[3], pad[3], rest = blockIdx.x;
#pragma unroll
    for (int d = 0; d < 3; ++d) {
        at[d] = rest % m.parts[d];
        rest /= m.parts[d];
        most[d] = (m.cells[d] + m.parts[d] - 1) / m.parts[d];
        pad[d] = m.absent >> d & 1 ? 0 : 1;
        const uint32_t first = at[d] * m.cells[d] / m.parts[d];
        if (t == 0) box.first[d] = first, box.size[d] = (at[d] + 1) * m.cells[d] / m.parts[d] - first;
    }
    // Cells in shared memory, orbital by orbital, with those of neighbouring boxes around them, which are zeros where
    // there are none.
    const uint32_t line = most[0] + 2 * pad[0], plane = line * (most[1] + 2 * pad[1]);
    const uint32_t room = plane * (most[2] + 2 * pad[2]), up = pad[1] * line, above = pad[2] * plane;
    const auto place_of = [&](const uint32_t (&c)[3]) {
        return c[0] + pad[0] + line * (c[1] + pad[1]) + plane * (c[2] + pad[2]);
    };
    Lanes* const cells = reinterpret_cast<Lanes*>(memory);
    Energy* const energies = reinterpret_cast<Energy*>(cells + O * room);
    // Threads that follow each other send parcels that do: an inbox has the first parcels of all its cells, then the
    // second ones. Of every cell of an inbox: whose inbox its counterpart of this block goes to, which cell that is,
    // and which cell the one that comes is. Two faces a direction, as large as those of the largest box.
    const uint32_t face[3] = {pad[0] * most[1] * most[2], pad[1] * most[0] * most[2], pad[2] * most[0] * most[1]};
    const uint32_t faces = 2 * (face[0] + face[1] + face[2]);
    uint32_t* const to = reinterpret_cast<uint32_t*>(energies + (MARCH ? K * ON_CHIP : 0));
    uint16_t* const leaves = reinterpret_cast<uint16_t*>(to + faces);
    uint16_t* const comes = leaves + faces;
    for (uint32_t i = t; i < O * room; i += ON_CHIP) cells[i] = Lanes{};
    __syncthreads();
    for (uint32_t i = t; i < faces; i += ON_CHIP) {
        const uint32_t d = i < 2 * face[0] ? 0 : i < 2 * (face[0] + face[1]) ? 1 : 2;
        const uint32_t before = d == 0 ? 0 : d == 1 ? 2 * face[0] : 2 * (face[0] + face[1]);
        const bool far = i - before >= face[d];
        const uint32_t k = i - before - (far ? face[d] : 0), width = d == 0 ? most[1] : most[0];
        uint32_t c[3] = {k % width, k / width, k / width};
        if (d == 0) c[1] = k % width;
        c[d] = far ? box.size[d] - 1 : 0;
        const bool inside = c[0] < box.size[0] && c[1] < box.size[1] && c[2] < box.size[2];
        const bool edge = far ? at[d] + 1 == m.parts[d] : at[d] == 0;
        const bool there = inside && !(edge && m.ends >> d & 1);
        const uint32_t next = d == 0 ? 1 : d == 1 ? m.parts[0] : m.parts[0] * m.parts[1], around = next * m.parts[d];
        const uint32_t other = blockIdx.x + (far ? next : -next) + (edge ? (far ? -around : around) : 0);
        const uint32_t place = place_of(c), by = d == 0 ? 1 : d == 1 ? line : plane;
        to[i] = there ? other * faces * PARCELS + (far ? i - face[d] : i + face[d]) : NOBODY;
        leaves[i] = place;
        comes[i] = there ? (far ? place + by : place - by) : NOWHERE;
    }

    const uint32_t column = box.size[0] * box.size[1];
    const uint32_t count = !MARCH ? column * box.size[2] : t < column ? box.size[2] : 0;
    const auto has = [&](int j) { return (MARCH ? j : t + j * ON_CHIP) < count; };
    const auto cell = [&](int j) { return t + j * (MARCH ? box.size[0] * box.size[1] : ON_CHIP); };
    uint32_t places[MARCH ? 1 : (K + 1) / 2] = {};
    const auto place = [&](int j) -> uint32_t {
        if constexpr (MARCH)
            return places[0] + j * plane;
        else
            return j & 1 ? places[j / 2] >> 16 : places[j / 2] & 0xffff;
    };
    Lanes old[K][O];
    Energy energy[MARCH ? 1 : K][O];
#pragma unroll
    for (int j = 0; j < K; ++j) {
        if (!has(j)) continue;
        uint32_t c[3];
        const uint64_t number_of = cell_of(m, box, cell(j), c);
        if (!MARCH)
            places[j / 2] |= place_of(c) << (j & 1 ? 16 : 0);
        else if (j == 0)
            places[0] = place_of(c);
#pragma unroll
        for (int o = 0; o < O; ++o) {
            const uint64_t row = number_of * O + o;
            cells[place(j) + o * room] = load_written(reinterpret_cast<const Lanes*>(a.v) + row);
            old[j][o] = load_written(reinterpret_cast<const Lanes*>(a.w) + row);
            const Energy e = m.diagonal ? m.diagonal[row] : Energy{};
            if (MARCH)
                energies[t + j * ON_CHIP] = e;
            else
                energy[MARCH ? 0 : j][o] = e;
        }
    }
    __syncthreads();

    double vv[P], wv[P];
    double* out = a.sums + (uint64_t)blockIdx.x * 2 * P;
    for (uint32_t k = 0; k < steps; ++k, ++number) {
        // Two inboxes in turn: a neighbour may be a step ahead.
        Parcel* const inbox = inboxes + (number & 1) * gridDim.x * (uint64_t)faces * PARCELS;
        for (uint32_t i = t; i < faces; i += ON_CHIP) {
            if (to[i] == NOBODY) continue;
#pragma unroll
            for (int o = 0; o < O; ++o) {
                Parts parts{};
                parts.x = cells[leaves[i] + o * room];
#pragma unroll
                for (int q = 0; q < W; ++q)
                    send(inbox + to[i] + (o * W + q) * faces, parts.part[q], number);
            }
        }
        if (k > 0) sums.put(k - 1, vv, wv);
        const Parcel* const mine = inbox + (uint64_t)blockIdx.x * faces * PARCELS;
        for (uint32_t i = t; i < faces; i += AT_ONCE * ON_CHIP) {
            uint32_t into[AT_ONCE];
            Parcel seen[AT_ONCE][PARCELS] = {};
#pragma unroll
            for (int b = 0; b < AT_ONCE; ++b) into[b] = i + b * ON_CHIP < faces ? comes[i + b * ON_CHIP] : NOWHERE;
            bool waits = true;
            while (waits) {
                waits = false;
                // All that have not come are asked for before one is looked at.
#pragma unroll
                for (int b = 0; b < AT_ONCE; ++b)
#pragma unroll
                    for (int q = 0; q < PARCELS; ++q)
                        if (into[b] != NOWHERE && seen[b][q].step != number)
                            seen[b][q] = look(mine + i + b * ON_CHIP + q * faces);
#pragma unroll
                for (int b = 0; b < AT_ONCE; ++b)
#pragma unroll
                    for (int q = 0; q < PARCELS; ++q) waits |= into[b] != NOWHERE && seen[b][q].step != number;
            }
#pragma unroll
            for (int b = 0; b < AT_ONCE; ++b) {
                if (into[b] == NOWHERE) continue;
#pragma unroll
                for (int o = 0; o < O; ++o) {
                    Parts parts;
#pragma unroll
                    for (int q = 0; q < W; ++q) parts.part[q] = seen[b][o * W + q].payload;
                    cells[into[b] + o * room] = parts.x;
                }
            }
        }
        __syncthreads();
        if (k > 0 && k % sums.STEPS == 0) out = sums.flush(sums.STEPS, out);
#pragma unroll
        for (int p = 0; p < P; ++p) vv[p] = wv[p] = 0.0;
        Lanes last[O] = {}, next[O] = {};
#pragma unroll
        for (int j = 0; j < K; ++j) {
            if (!has(j)) continue;
            const uint32_t at_place = place(j);
            Lanes own[O], sum[O] = {};
            const auto read = [&](int by, Lanes (&x)[O]) {
#pragma unroll
                for (int o = 0; o < O; ++o) x[o] = cells[at_place + by + o * room];
            };
            const auto add = [&](Neighbour f, int by) {
                Lanes x[O];
                read(by, x);
                add_block(m.inner[f], x, sum);
            };
            // Along a column, cells that have been read stay in registers.
            if (!MARCH || j == 0) {
                read(0, own);
                read(-(int)above, last);
            } else {
#pragma unroll
                for (int o = 0; o < O; ++o) own[o] = next[o];
            }
            read(above, next);
            add(LEFT, -(int)pad[0]);
            add(RIGHT, pad[0]);
            add(DOWN, -(int)up);
            add(UP, up);
            add_block(m.inner[BELOW], last, sum);
            add_block(m.inner[ABOVE], next, sum);
            if constexpr (O > 1) add_block(m.inner[OWN], own, sum);
#pragma unroll
            for (int o = 0; o < O; ++o) {
                const Energy e = MARCH ? energies[t + j * ON_CHIP] : energy[MARCH ? 0 : j][o];
#pragma unroll
                for (int p = 0; p < P; ++p) {
                    const V x = own[o].x[p];
                    V now = mla((Real)a.alpha, mla(e, x, sum[o].x[p]), mla((Real)a.beta, x, V{}));
                    now = mla((Real)a.gamma, old[j][o].x[p], now);
                    vv[p] = overlap(x, x, vv[p]);
                    wv[p] = overlap(now, x, wv[p]);
                    old[j][o].x[p] = now;
                }
                last[o] = own[o];
            }
        }
        __syncthreads();
        // The output becomes the input, and the input what was there before.
#pragma unroll
        for (int j = 0; j < K; ++j) {
            if (!has(j)) continue;
#pragma unroll
            for (int o = 0; o < O; ++o) {
                Lanes& at_place = cells[place(j) + o * room];
                const Lanes own = at_place;
                at_place = old[j][o];
                old[j][o] = own;
            }
        }
        __syncthreads();
    }
    sums.put(steps - 1, vv, wv);
    __syncthreads();
    sums.flush((steps - 1) % sums.STEPS + 1, out);
    V* const newest = steps & 1 ? a.w : const_cast<V*>(a.v);
    V* const before = steps & 1 ? const_cast<V*>(a.v) : a.w;
#pragma unroll
    for (int j = 0; j < K; ++j) {
        if (!has(j)) continue;
        uint32_t c[3];
        const uint64_t number_of = cell_of(m, box, cell(j), c);
#pragma unroll
        for (int o = 0; o < O; ++o) {
            store_once(reinterpret_cast<Lanes*>(newest) + number_of * O + o, cells[place(j) + o * room]);
            store_once(reinterpret_cast<Lanes*>(before) + number_of * O + o, old[j][o]);
        }
    }
}

#define KERNEL(NAME, V, P, T, O, K, MARCH)                                                                            \
    extern "C" __global__ void __launch_bounds__(ON_CHIP, 1) onchip##O##_##NAME(                                      \
        const __grid_constant__ OnChip<T, O> m, Vectors<V> a, uint32_t steps, uint64_t number, Parcel* inboxes) {     \
        on_chip<T, V, P, O, K, MARCH>(m, a, steps, number, inboxes);                                                  \
    }

// A thread has up to four cells; of narrow ones up to eight, or a column; of four orbitals one or two.
#define FEW(TYPE, V, P, T)                         \
    KERNEL(TYPE##_p##P##_k2, V, P, T, 1, 2, false) \
    KERNEL(TYPE##_p##P##_k4, V, P, T, 1, 4, false)
#define MORE(TYPE, V, P, T)                        \
    KERNEL(TYPE##_p##P##_k8, V, P, T, 1, 8, false) \
    KERNEL(TYPE##_p##P##_k16, V, P, T, 1, 16, true)
static_assert(host::onchip::COLUMN == 16, "the kernels are named by it");
#define PAIRS(TYPE, V, P, T)                       \
    KERNEL(TYPE##_p##P##_k2, V, P, T, 2, 2, false) \
    KERNEL(TYPE##_p##P##_k4, V, P, T, 2, 4, false)
#define FOURS(TYPE, V, T) KERNEL(TYPE##_p1_k2, V, 1, T, 4, 2, false)

EVERY_PACK(FEW)
MORE(f32, F32, 1, F32)
MORE(f32, F32, 2, F32)
MORE(f64, F64, 1, F64)
MORE(c32, C32, 1, C32)
PAIRS(f32, F32, 1, F32)
PAIRS(f32, F32, 2, F32)
PAIRS(f64, F64, 1, F64)
PAIRS(c32, C32, 1, C32)
KERNEL(c64_p1_k2, C64, 1, C64, 2, 2, false)
FOURS(f32, F32, F32)
FOURS(f64, F64, F64)
FOURS(c32, C32, C32)
FOURS(c64, C64, C64)
