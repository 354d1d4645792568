// Changes of the Jastrow factor for look-ahead sweeps, all of them beforehand: with every electron alone, and by how
// much more with any two. Four functions a pair; where all of them end at one distance they are taken from a table.
// Floor of a walker of N electrons: four distances and functions for each of N^2/2 pairs, 2 TERMS flops a function that
// is in the table, and 8 bytes written a pair.

#include "moves.cuh"

namespace {

// Intervals of the table of pair functions, and coefficients of each.
constexpr int INTERVALS = host::walkers_ahead::INTERVALS;
constexpr int TERMS = host::walkers_ahead::TERMS;

// The nearest whole number, and that number from its bits.
__device__ __forceinline__ double whole(double x, int& number) {
    constexpr double MAGIC = 6755399441055744.0;  // 1.5 2^52
    const double shifted = x + MAGIC;
    number = __double2loint(shifted);
    return shifted - MAGIC;
}

// A square root but for the last bit, of numbers that are not negative.
__device__ __forceinline__ double root(double x) {
    x = x < 1e-300 ? 1e-300 : x;
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#pragma unroll
    for (int k = 0; k < 2; ++k) y = fma(0.5 * y, fma(-x * y, y, 1.0), y);
    const double r = x * y;
    return fma(0.5 * y, fma(-r, r, x), r);
}

// Pair functions by polynomials around the middle of each interval, coefficient after coefficient. In a cell that is
// a box, only the nearest image along each edge is looked at.
template <bool BOX>
struct Table {
    const Images& im;
    const double* c;
    double scale, reach;
    __device__ __forceinline__ double operator()(const double* a, const double* b) const {
        double r;
        if (BOX) {
            double v[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]}, n[3];
            int number;
            for (int x = 0; x < 3; ++x)
                n[x] = whole(im.dual[x][0] * v[0] + im.dual[x][1] * v[1] + im.dual[x][2] * v[2], number);
            for (int d = 0; d < 3; ++d)
                v[d] -= n[0] * im.reduced[0][d] + n[1] * im.reduced[1][d] + n[2] * im.reduced[2][d];
            r = root(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        } else {
            r = distance(im, a, b);
        }
        int q;
        const double t = fma(r, scale, -0.5), s = t - whole(t, q);
        const double* const from = c + min(max(q, 0), INTERVALS - 1);
        double sum = from[(TERMS - 1) * INTERVALS];
#pragma unroll
        for (int k = TERMS - 2; k >= 0; --k) sum = fma(sum, s, from[k * INTERVALS]);
        return r < reach ? sum : isnan(r) ? r : 0.0;
    }
};

struct Direct {
    const Walk& w;
    uint32_t opposite;
    __device__ __forceinline__ double operator()(const double* a, const double* b) const {
        return pair_sum(w, opposite, distance(*w.images, a, b));
    }
};

// Electrons of a tile, and sums over them.
struct Room {
    double old[2][BLOCK][3], now[2][BLOCK][3], by_row[2][BLOCK], by_column[4][BLOCK];
};

// A tile of pairs: by how much J changes with either electron alone, summed over the tile's others (to `partial`,
// [walker] [block of the others][electron]), and by how much more with both (to `delta`).
template <class U>
__device__ inline void pairs(const Walk& w, const U& u, uint32_t row, uint32_t column, Room& room, double* partial) {
    auto& [old, now, by_row, by_column] = room;
    const uint32_t walker = blockIdx.y, thread = threadIdx.x;
    uint32_t first[2], count[2];
    block_of(w, row, first[0], count[0]);
    block_of(w, column, first[1], count[1]);
    const uint64_t own = uint64_t(walker) * w.electrons;
    for (uint32_t at = thread; at < 6 * BLOCK; at += THREADS) {
        const uint32_t side = at / (3 * BLOCK), e = at / 3 % BLOCK, c = at % 3;
        if (e < count[side]) {
            old[side][e][c] = w.positions[3 * (own + first[side] + e) + c];
            now[side][e][c] = w.trial[3 * (own + first[side] + e) + c];
        }
    }
    __syncthreads();
    double* const delta = tile_at(w, walker, row, column);
    const uint32_t k = thread % BLOCK;
    double columns = 0.0;
    for (int q = 0; q < 16; ++q) {
        const uint32_t i = thread / BLOCK + 4 * q;
        double of_row = 0.0, more = 0.0;
        if (i < count[0] && k < count[1] && (row != column || k < i)) {
            const double here = u(old[0][i], old[1][k]), to = u(now[0][i], old[1][k]);
            const double from = u(old[0][i], now[1][k]), both = u(now[0][i], now[1][k]);
            of_row = to - here;
            columns += from - here;
            more = (both - from) - of_row;
        }
        delta[i * BLOCK + k] = more;
        of_row = warp_sum(of_row);
        if (thread % WARP == 0) by_row[k / WARP][i] = of_row;
    }
    by_column[thread / BLOCK][k] = columns;
    __syncthreads();
    if (thread < BLOCK) {
        const double rows = by_row[0][thread] + by_row[1][thread];
        const double sum = by_column[0][thread] + by_column[1][thread] + by_column[2][thread] + by_column[3][thread];
        const uint64_t blocks = all_blocks(w);
        if (row == column) {
            if (thread < count[0]) partial[(walker * blocks + row) * w.electrons + first[0] + thread] = rows + sum;
            return;
        }
        if (thread < count[0]) partial[(walker * blocks + column) * w.electrons + first[0] + thread] = rows;
        if (thread < count[1]) partial[(walker * blocks + row) * w.electrons + first[1] + thread] = sum;
    }
}

}  // namespace

// The table of pair functions: interpolation at Chebyshev's nodes of every interval; how far it is off elsewhere.
extern "C" __global__ void walk_table(Walk w, double* table, unsigned long long* error) {
    const uint32_t opposite = blockIdx.x, q = threadIdx.x;
    const double h = w.reach / INTERVALS, pi = 3.14159265358979323846;
    auto exact = [&](double s) { return pair_sum(w, opposite, (q + 0.5 + s) * h); };
    double x[TERMS], c[TERMS], a[TERMS] = {};
    for (int k = 0; k < TERMS; ++k) {
        x[k] = 0.5 * cos(pi * (k + 0.5) / TERMS);
        c[k] = exact(x[k]);
    }
    // Newton's divided differences, then powers of s.
    for (int level = 1; level < TERMS; ++level)
        for (int k = TERMS - 1; k >= level; --k) c[k] = (c[k] - c[k - 1]) / (x[k] - x[k - level]);
    for (int k = TERMS - 1; k >= 0; --k) {
        for (int p = TERMS - 1; p > 0; --p) a[p] = a[p - 1] - x[k] * a[p];
        a[0] = c[k] - x[k] * a[0];
    }
    double off = 0.0;
    for (int k = 0; k < TERMS; ++k) {
        const double s = (k + 0.5) / TERMS - 0.5;
        double sum = a[TERMS - 1];
        for (int p = TERMS - 2; p >= 0; --p) sum = fma(sum, s, a[p]);
        const double found = fabs(sum - exact(s));
        off = found <= off ? off : found;
    }
    for (int k = 0; k < TERMS; ++k) table[(opposite * TERMS + k) * INTERVALS + q] = a[k];
    atomicMax(error, isnan(off) ? ~0ull >> 1 : (unsigned long long)__double_as_longlong(off));
}

// A tile of pairs a block.
extern "C" __global__ void __launch_bounds__(THREADS) walk_pairs(Walk w, double* partial) {
    uint32_t row = uint32_t((sqrt(8.0 * blockIdx.x + 1.0) - 1.0) / 2.0);
    while (row * (row + 1) / 2 > blockIdx.x) --row;
    while ((row + 1) * (row + 2) / 2 <= blockIdx.x) ++row;
    const uint32_t column = blockIdx.x - row * (row + 1) / 2, ups = blocks_of(w.up);
    const uint32_t opposite = (row < ups) != (column < ups);
    __shared__ Room room;
    if (w.reach == 0.0) {
        pairs(w, Direct{w, opposite}, row, column, room, partial);
        return;
    }
    __shared__ double c[INTERVALS * TERMS];
    for (uint32_t k = threadIdx.x; k < INTERVALS * TERMS; k += THREADS) c[k] = w.table[opposite * INTERVALS * TERMS + k];
    __shared__ Images im;
    if (threadIdx.x == 0) im = *w.images;
    __syncthreads();
    if (im.count == 0) {
        pairs(w, Table<true>{im, c, INTERVALS / w.reach, w.reach}, row, column, room, partial);
    } else {
        pairs(w, Table<false>{im, c, INTERVALS / w.reach, w.reach}, row, column, room, partial);
    }
}

// Changes of J against the old configuration, from the sums over tiles. One warp per electron.
extern "C" __global__ void __launch_bounds__(THREADS) walk_base(Walk w, const double* partial) {
    const uint32_t i = blockIdx.x * WARPS + threadIdx.x / WARP, walker = blockIdx.y;
    if (i >= w.electrons) return;
    const uint64_t at = uint64_t(walker) * w.electrons + i;
    const uint32_t blocks = w.pairs > 0 ? all_blocks(w) : 0;
    double sum = bodies_of(w, w.positions + 3 * at, w.trial + 3 * at);
    for (uint32_t k = threadIdx.x % WARP; k < blocks; k += WARP)
        sum += partial[(uint64_t(walker) * blocks + k) * w.electrons + i];
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) w.change[at] = sum + 0.5 * w.bias[at];
}
