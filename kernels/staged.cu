// The fused pass over compressed rows, ELL and SELL-C-sigma, where four threads or more share a row. What takes longest
// is waiting: for where a row begins, then for its columns, then for the rows of the vector. So a group of threads asks
// for the beginning of a row two rows ahead and copies its entries to shared memory one row ahead, and then asks for
// all rows of the vector at once. Blocks walk the rows in tiles of the lattice, where columns tell of one.
#include "formats.cuh"

// Whether registers suffice for EXACT rows: ptxas finds them for double precision, not for Ampere.
template <class V>
constexpr bool ROOM =
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    sizeof(typename Traits<V>::Real) == 8;
#else
    false;
#endif

// Entries whose rows are asked for together. Beyond the end of a row come zeros on its first column. WIDE_BATCH:
// complex rows of 128 bytes, whose blocks are small, are asked for in one go, at the price of a fourth block.
template <bool STEP, class V, int L>
constexpr bool WIDE_BATCH = STEP && ROOM<V> && sizeof(V) == 16 && L == 8;
template <bool STEP, class V, int L>
constexpr uint32_t BATCH = WIDE_BATCH<STEP, V, L> ? 16 : 8;

// Entries of a row that are copied ahead; those of longer rows are read as they are needed.
template <int L>
constexpr uint32_t AHEAD = L == 4 ? 8 : 16;

// Threads of a block. Large blocks take large tiles, of which L1 holds the rows that neighbours share; with short rows,
// and where 64 registers or 48 KiB of shared memory do not suffice, blocks are small. As in src/backend/cuda/order.rs.
template <bool STEP, class V, int P, int L>
constexpr int BLOCK = STEP && P < 4 && L >= (sizeof(V) == 16 ? 32 : 16) ? (int)host::order::LARGE_BLOCK : THREADS;

// Whether tiles are folded: rows of 512 bytes and more of complex numbers. As in src/backend/cuda/order.rs.
template <bool STEP, class V, int L>
constexpr bool FOLDED = STEP && sizeof(V) == 16 && L == 32;

template <class M>
constexpr bool COMPRESSED_ROWS = false;
template <class T, class J>
constexpr bool COMPRESSED_ROWS<Csr<T, J>> = true;

// Whether the old output comes by way of shared memory: loads come back in order, and those of neighbours, which the
// nearest cache has, would wait for it. It pays for compressed rows of 256 bytes in double precision.
template <bool STEP, class V, int P, int L, class M>
constexpr bool OLD_APART = STEP && sizeof(V) == 8 && !Traits<V>::complex && P == 2 && L == 16 && COMPRESSED_ROWS<M>;

// The order that blocks walk the rows in: rows are x + width (y + height z). A block takes a tile in x and y, a row a
// group of threads, and goes along z, so that the rows its neighbours share stay in the nearest cache.
struct Order {
    uint32_t width, height, depth;
    uint32_t tile_x, tile_y, march;
    // Tiles across that are worked on together.
    uint32_t slab;
    // Tiles along both directions, marches, all of them, and rows of a plane.
    uint32_t tiles_x, tiles_y, marches, units, plane;
    // Rows of a plane that a group takes, and how many lines these are apart.
    uint32_t fold, lines;
    // Blocks that share a part of the units, and units of such a part. Blocks start one after the other, so that none
    // is further ahead than a part; the rows that it has read are still in the cache for those behind.
    uint32_t wave, share;
};
HOST_LAYOUT_order_Order(Order);

constexpr uint32_t NONE = ~0u;

// The rows of a group of threads, unit after unit.
template <bool FOLDED>
struct Walk {
    uint32_t unit, end, left, row, y, folds;

    __device__ __forceinline__ explicit Walk(const Order& o, uint32_t group) {
        const uint32_t part = blockIdx.x / o.wave;
        unit = part * o.share + blockIdx.x % o.wave;
        end = min(o.units, (part + 1) * o.share);
        left = 0, row = NONE, y = 0, folds = 0;
        begin(o, group);
    }

    __device__ __forceinline__ void begin(const Order& o, uint32_t group) {
        if (unit >= end) return;
        // Tiles along a line, then those of a slab, then the slab's next planes.
        uint32_t rest = unit / o.tiles_x;
        const uint32_t first = rest / (o.slab * o.marches) * o.slab, across = min(o.slab, o.tiles_y - first);
        rest -= first * o.marches;
        const uint32_t x = unit % o.tiles_x * o.tile_x + group % o.tile_x;
        y = (first + rest % across) * o.tile_y + group / o.tile_x;
        const uint32_t z = rest / across * o.march;
        left = min(o.depth - z, o.march) * (FOLDED ? o.fold : 1);
        folds = 0;
        row = x < o.width && y < o.height ? x + o.width * y + o.plane * z : NONE;
    }

    // The next row, if this group has one beside those of the block's other groups.
    __device__ __forceinline__ uint32_t next(const Order& o, uint32_t rows, uint32_t group) {
        uint32_t now = row < rows ? row : NONE;
        if (!FOLDED) {
            if (row != NONE) row += o.plane;
        } else {
            const uint32_t up = folds * o.lines;
            if (row != NONE) now = y + up < o.height && row + up * o.width < rows ? row + up * o.width : NONE;
            if (++folds == o.fold) {
                folds = 0;
                if (row != NONE) row += o.plane;
            }
        }
        if (--left == 0) unit += o.wave, begin(o, group);
        return now;
    }
};

// L2 fetches 128 bytes together: what is next to a short entry is asked for soon, mostly by another block.
template <class X>
__device__ __forceinline__ void copy_ahead(X* to, const X* from, bool there) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to), bytes = there ? sizeof(X) : 0;
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(sizeof(X)), "r"(bytes));
}

// The same for sixteen bytes that nobody else reads.
template <class X>
__device__ __forceinline__ void copy_once(X* to, const X* from) {
    static_assert(sizeof(X) == 16, "past the nearest cache go sixteen bytes at a time");
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from));
}

// What is copied from here on is waited for by itself.
__device__ __forceinline__ void end_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <uint32_t N>
struct Number {
    static constexpr uint32_t value = N;
};

// Calls f with the number n, which is known only here to be one of LOW to HIGH.
template <uint32_t LOW, uint32_t HIGH, class F>
__device__ __forceinline__ void with_number(uint32_t n, const F& f) {
    constexpr uint32_t MIDDLE = (LOW + HIGH) / 2;
    if constexpr (LOW == HIGH)
        f(Number<LOW>{});
    else if (n <= MIDDLE)
        with_number<LOW, MIDDLE>(n, f);
    else
        with_number<MIDDLE + 1, HIGH>(n, f);
}

// A STEP of a recurrence has an old output, an input row of its own, products, and rows in order; knowing this saves
// registers. EXACT: no zeros are read beyond the end of a row, which takes code for every number of entries that may be
// left.
template <bool STEP, bool EXACT, class V, int P, int L, class M>
__device__ __forceinline__ void staged(const M& m, uint32_t rows, const Order& o, const Vectors<V>& a) {
    using T = typename M::Value;
    using J = typename M::Index;
    using Lanes = Pack<V, P>;
    constexpr uint32_t K = AHEAD<L>, MOST = BATCH<STEP, V, L>;
    constexpr int TS = 16 / sizeof(T), JS = 16 / sizeof(J), GROUPS = BLOCK<STEP, V, P, L> / L;
    // The gaps spread groups over the banks.
    __shared__ alignas(16) T values[2][GROUPS][K + TS];
    __shared__ alignas(16) J columns[2][GROUPS][K + JS];
    constexpr bool APART = OLD_APART<STEP, V, P, L, M>;
    __shared__ alignas(16) Lanes olds[APART ? GROUPS : 1][APART ? L : 1];
    RowPass<V, P, L, BLOCK<STEP, V, P, L>> pass(a);
    const uint32_t group = threadIdx.x / L;
    // Opaque, so that the compiler keeps it in a register of 32 bits.
    uint32_t stride = a.lanes * sizeof(V);
    asm volatile("" : "+r"(stride));
    const V* v = a.v + pass.first;
    const auto span = [&](uint32_t at) { return at == NONE ? Span{0, 0} : m.span(at); };
    const auto ahead = [&](int stage, const Span& s) {
#pragma unroll
        for (uint32_t k = 0; k < K; k += L) {
            const uint32_t e = k + threadIdx.x % L;
            if (e < K && (EXACT ? s.length > 0 : e < (s.length + MOST - 1) / MOST * MOST)) {
                const bool there = e < s.length;
                const uint64_t at = s.first + (uint64_t)(there ? e : 0) * m.stride();
                copy_ahead(&columns[stage][group][e], m.columns + at, true);
                copy_ahead(&values[stage][group][e], m.values + at, there);
            }
        }
    };
    // This row, the next one, whose entries are on their way, and the one whose beginning is.
    Walk<FOLDED<STEP, V, L>> walk(o, group);
    if (walk.unit < walk.end) {
        uint32_t at = walk.next(o, rows, group), at1 = NONE;
        Span then = span(at);
        uint32_t length = then.length;
        ahead(0, then);
        bool more = walk.unit < walk.end;
        if (more) at1 = walk.next(o, rows, group), then = span(at1);
        int stage = 0;
#pragma unroll 1
        for (;;) {
            asm volatile("cp.async.wait_all;" ::: "memory");
            __syncwarp();
            if constexpr (APART) {
                if (at != NONE && pass.active) {
                    const V* from = row_at(a.w + pass.first, at, stride);
                    copy_once(&olds[group][threadIdx.x % L], reinterpret_cast<const Lanes*>(from));
                }
                end_of_copies();
            }
            ahead(stage ^ 1, then);
            if (APART) end_of_copies();
            const bool still = more && walk.unit < walk.end;
            const uint32_t length1 = then.length, at2 = still ? walk.next(o, rows, group) : NONE;
            then = span(at2);
            if (at != NONE && pass.active) {
                const uint32_t row = STEP ? at : (uint32_t)m.place(at);
                V* out = row_at(a.w + pass.first, row, stride);
                Lanes old{}, own{}, sum{};
                if (!APART && (STEP || a.gamma != 0.0)) old = load_once(reinterpret_cast<const Lanes*>(out));
                if (STEP || a.beta != 0.0 || a.sums)
                    own = load(reinterpret_cast<const Lanes*>(row_at(v, row + (uint32_t)a.offset, stride)));
                const J* column = columns[stage][group];
                const T* value = values[stage][group];
                const uint32_t near = min(length, K);
                const auto batch = [&](auto count, uint32_t k) {
                    constexpr uint32_t B = decltype(count)::value;
                    Lanes x[B];
#pragma unroll
                    for (uint32_t i = 0; i < B; i += JS) {
                        const auto some = *reinterpret_cast<const Pack<J, JS>*>(column + k + i);
#pragma unroll
                        for (int q = 0; q < JS; ++q)
                            if (i + q < B) x[i + q] = load(reinterpret_cast<const Lanes*>(row_at(v, some.x[q], stride)));
                    }
#pragma unroll
                    for (uint32_t i = 0; i < B; i += TS) {
                        const auto some = *reinterpret_cast<const Pack<T, TS>*>(value + k + i);
#pragma unroll
                        for (int q = 0; q < TS; ++q)
#pragma unroll
                            for (int p = 0; p < P; ++p)
                                if (i + q < B) sum.x[p] = mla(some.x[q], x[i + q].x[p], sum.x[p]);
                    }
                };
                uint32_t k = 0;
                if (EXACT && length > 0) {
                    // As many as the longest row of the warp has.
                    const uint32_t most = L == 32 ? near : __reduce_max_sync(__activemask(), near);
#pragma unroll 1
                    for (; k + MOST <= most; k += MOST) batch(Number<MOST>{}, k);
                    if (k < most) with_number<1, MOST - 1>(most - k, [&](auto count) { batch(count, k); });
                } else if (!EXACT) {
#pragma unroll 1
                    for (; k < near; k += MOST) batch(Number<MOST>{}, k);
                }
                const uint64_t first = length > K ? m.span(at).first : 0;
#pragma unroll 1
                for (k = K; k < length; ++k) {
                    const uint64_t entry = first + (uint64_t)k * m.stride();
                    const Lanes x = load(reinterpret_cast<const Lanes*>(row_at(v, __ldg(m.columns + entry), stride)));
                    const T far = load(m.values + entry);
#pragma unroll
                    for (int p = 0; p < P; ++p) sum.x[p] = mla(far, x.x[p], sum.x[p]);
                }
                if (APART) {
                    // All but the entries of the next row, which were asked for later.
                    asm volatile("cp.async.wait_group 1;" ::: "memory");
                    old = olds[group][threadIdx.x % L];
                }
                pass.template finish<STEP>(out, own, sum, old);
            }
            if (!more) break;
            at = at1, length = length1, at1 = at2, more = still;
            stage ^= 1;
        }
    }
    pass.end();
}

// As many blocks as leave registers for most of the rows that are asked for together.
template <bool STEP, class V, int P, int L, int SMALL>
constexpr int BLOCKS = BLOCK<STEP, V, P, L> != THREADS ? 1 : WIDE_BATCH<STEP, V, L> ? 3 : SMALL;

#define KERNEL(NAME, STEP, EXACT, SMALL, V, P, L, M)                                                                  \
    extern "C" __global__ void __launch_bounds__((BLOCK<STEP, V, P, L>), (BLOCKS<STEP, V, P, L, (P == 4 ? 3 : SMALL)>)) \
        NAME(M m, uint64_t rows, Order o, Vectors<V> a) {                                                             \
        staged<STEP, EXACT, V, P, L>(m, (uint32_t)rows, o, a);                                                        \
    }

#define KERNELS(NAME, V, P, L, T)                                         \
    KERNEL(csr_##NAME##_u32, false, false, 4, V, P, L, Csr32<T>)          \
    KERNEL(csr_##NAME##_u32_step, true, ROOM<V>, 4, V, P, L, Csr32<T>)    \
    KERNEL(sell_##NAME##_u32, false, false, 3, V, P, L, Sell32<T>)        \
    KERNEL(sell_##NAME##_u32_step, true, ROOM<V>, 4, V, P, L, Sell32<T>)

#define THREADS_OF_A_ROW(TYPE, V, P, T)   \
    KERNELS(TYPE##_p##P##_l4, V, P, 4, T)   \
    KERNELS(TYPE##_p##P##_l8, V, P, 8, T)   \
    KERNELS(TYPE##_p##P##_l16, V, P, 16, T) \
    KERNELS(TYPE##_p##P##_l32, V, P, 32, T)

EVERY_PACK(THREADS_OF_A_ROW)
