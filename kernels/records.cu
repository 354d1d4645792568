// Operation records of a superblock: X' += A X B^T between small dense blocks, in double precision. A block of threads
// owns a tile of X' and walks the records that write it, so that nothing is added atomically and sums have one order.
// Products run on the tensor cores. Floor: flops over 67 Tflop/s on an H100 or H200. Measured on an H100, four records
// of n x n a block, and with what cuBLAS reaches: 42 of 27 at n = 512, 43 of 31 at 700, 43 of 47 at 1000 (40 blocks),
// 41 of 57 at 2000, 43 of 62 Tflop/s at 4096. Tiles of 128 x 128 make 45 and 47 of the last two, and take 1.5 times as
// long for 40 blocks of 200.
//
// Numbers come past the registers, slabs ahead of the one that is multiplied, and out of shared memory a fragment ahead
// of the tensor cores, which therefore wait for neither. Their places are turned,
// so that the lanes of half a warp meet all banks.

#include <cstdint>

#include "host.cuh"
#include "tensor.cuh"
#include "tile.cuh"

// A record, or an inner product of one: out[row.., column..] += scale L R, or += scale L where `depth` is 0.
struct Record {
    double scale;
    // An address where `kind` says matrix, else the first number in the vector or the inner products.
    uint64_t left, right;
    uint32_t row, rows, column, columns, depth;
    // Numbers between rows and between columns of L, between rows of R, whose columns are neighbours.
    uint32_t left_row, left_column, right_row;
    // `MATRIX`, `VECTOR` or `INNER`.
    uint32_t left_kind, right_kind;
};
HOST_LAYOUT_records_Step(Record);

__device__ inline const double *source(uint32_t kind, uint64_t at, const double *v, uint32_t lane, uint32_t step,
                                       const double *inner, uint32_t &stride) {
    stride = 1;
    if (kind == host::records::MATRIX) return reinterpret_cast<const double *>(at);
    if (kind == host::records::INNER) return inner + at;
    stride = step;
    return v + at * step + lane;
}

constexpr int SIDE = host::records::SIDE;
constexpr int THREADS = host::records::THREADS;
// Steps of a slab of either factor, and slabs in shared memory. The tensor cores take four steps at once.
constexpr int DEEP = 16;
constexpr int SLABS = 3;
constexpr int SLAB = DEEP * SIDE;
constexpr int PARTS = DEEP / 4;
// Numbers of a slab that a thread brings.
constexpr int EACH = SLAB / THREADS;

// Where number `i` of step `k` stands in a slab.
__device__ __forceinline__ int turned(int k, int i) { return k * SIDE + (i ^ (4 * (k % 4))); }

// A quarter of the tile a warp, in blocks of 16 x 8 whose four numbers are those of `tensor.cuh`.
constexpr int HIGH = SIDE / 32;
using Sums = double[HIGH][4][4];

// A warp's part of four steps of both factors, whose even and odd blocks of eight begin at `l` and `r`.
struct Fragment {
    double a[HIGH][2], b[4];

    __device__ __forceinline__ void load(const double *const (&l)[2], const double *const (&r)[2], int at) {
#pragma unroll
        for (int i = 0; i < HIGH; ++i)
#pragma unroll
            for (int u = 0; u < 2; ++u) a[i][u] = l[u][at + 16 * i];
#pragma unroll
        for (int j = 0; j < 4; ++j) b[j] = r[j % 2][at + j / 2 * 16];
    }

    __device__ __forceinline__ void multiply(Sums &sum, double scale) {
        if (scale != 1.0) {
#pragma unroll
            for (int j = 0; j < 4; ++j) b[j] *= scale;
        }
#pragma unroll
        for (int i = 0; i < HIGH; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) multiply_add(sum[i][j], a[i], b[j]);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 3)
records_f64(const Tile *tiles, const Record *records, const double *v, const double *inner, double *w, uint32_t lane,
            uint32_t step, uint32_t out_lane, uint32_t out_step, double alpha, double beta, double gamma) {
    __shared__ double left_space[SLABS * SLAB], right_space[SLABS * SLAB];
    const Tile tile = tiles[blockIdx.x];
    const int thread = threadIdx.x, warp = thread / 32, g = thread % 32 / 4, t = thread % 4;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    const int last_row = min(SIDE, int(tile.rows - tile.row));
    const int last_column = min(SIDE, int(tile.columns - tile.column));
    const double *const l[2] = {left_space + turned(t, warp_row + g), left_space + turned(t, warp_row + 8 + g)};
    const double *const r[2] = {right_space + turned(t, warp_column + g), right_space + turned(t, warp_column + 8 + g)};

    Sums sum{};

    for (uint32_t n = 0; n < tile.count; ++n) {
        const Record record = records[tile.first + n];
        if (record.depth == 0) continue;
        // The tile's rows and columns, counted within the record.
        const int row = int(tile.row) - int(record.row), column = int(tile.column) - int(record.column);
        if (row >= int(record.rows) || column >= int(record.columns) || row + last_row <= 0 || column + last_column <= 0)
            continue;
        uint32_t left_step, right_step;
        const double *left = source(record.left_kind, record.left, v, lane, step, inner, left_step);
        const double *right = source(record.right_kind, record.right, v, lane, step, inner, right_step);
        const int64_t down_row = int64_t(record.left_row) * left_step, down_column = int64_t(record.left_column) * left_step;
        const int64_t next_row = int64_t(record.right_row) * right_step;
        // Neighbouring threads read neighbouring numbers: down a matrix, four along a vector's rows. Number e of a
        // thread is (e % 2) odd ways and (e / 2) times four steps from the first.
        const bool down = record.left_row == 1;
        const int k0 = down ? thread / SIDE : thread % 4, i0 = down ? thread % SIDE : thread / 4;
        const int odd_k = down ? 2 : 0, odd_i = down ? 0 : SIDE / 2;
        const int q0 = thread / SIDE, j0 = thread % SIDE;
        const int64_t odd_left = odd_k * down_column + odd_i * down_row;
        const double *x = left + (row + i0) * down_row + k0 * down_column;
        const double *y = right + q0 * next_row + int64_t(column + j0) * right_step;
        const auto inside = [&](int i) { return row + i >= 0 && row + i < int(record.rows); };
        const bool in_row[2] = {inside(i0), inside(i0 + odd_i)};
        const bool in_column = column + j0 >= 0 && column + j0 < int(record.columns);
        const int left_place[2] = {turned(k0, i0), turned(k0 + odd_k, i0 + odd_i)};
        const int right_place[2] = {turned(q0, j0), turned(q0 + 2, j0)};
        int rest = int(record.depth), to = 0;
        // Starts to bring numbers `from` to `until` of the next slab.
        const auto fetch = [&](int from, int until) {
#pragma unroll
            for (int e = from; e < until; ++e) {
                const int four = e / 2 * 4;
                bring(left_space + to * SLAB + left_place[e % 2] + four * SIDE, x + e % 2 * odd_left + four * down_column,
                      in_row[e % 2] && k0 + e % 2 * odd_k + four < rest);
                bring(right_space + to * SLAB + right_place[e % 2] + four * SIDE, y + (e % 2 * 2 + four) * next_row,
                      in_column && q0 + e % 2 * 2 + four < rest);
            }
        };
        const auto next = [&] {
            asm volatile("cp.async.commit_group;");
            x += DEEP * down_column;
            y += DEEP * next_row;
            rest -= DEEP;
            to = to + 1 == SLABS ? 0 : to + 1;
        };
        // The last slabs of the record before are still being multiplied, or on their way.
        asm volatile("cp.async.wait_all;");
        __syncthreads();
        const int slabs = (int(record.depth) + DEEP - 1) / DEEP;
#pragma unroll
        for (int slab = 0; slab < SLABS - 1; ++slab) {
            fetch(0, EACH);
            next();
        }
        asm volatile("cp.async.wait_group %0;" ::"n"(SLABS - 2));
        __syncthreads();
        Fragment fragments[2];
        fragments[0].load(l, r, 0);
        int at = 0;
        for (int slab = 0; slab < slabs; ++slab) {
            const int then = at + SLAB == SLABS * SLAB ? 0 : at + SLAB;
#pragma unroll
            for (int part = 0; part < PARTS; ++part) {
                if (part + 1 < PARTS) {
                    fragments[(part + 1) % 2].load(l, r, at + (part + 1) * 4 * SIDE);
                    // What this slab replaces was read before all threads met.
                    fetch(EACH * part / (PARTS - 1), EACH * (part + 1) / (PARTS - 1));
                    if (part + 2 == PARTS) next();
                } else {
                    asm volatile("cp.async.wait_group %0;" ::"n"(SLABS - 2));
                    __syncthreads();
                    fragments[0].load(l, r, then);
                }
                fragments[part % 2].multiply(sum, record.scale);
            }
            at = then;
        }
    }
    asm volatile("cp.async.wait_all;");

    // f(row, column, number) for all numbers of this thread.
    const auto each = [&](auto f) {
#pragma unroll
        for (int i = 0; i < HIGH; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int q = 0; q < 4; ++q)
                    f(warp_row + 16 * i + q / 2 * 8 + g, warp_column + 8 * j + 2 * t + q % 2, sum[i][j][q]);
    };
    // Records without a matrix only move numbers.
    for (uint32_t n = 0; n < tile.count; ++n) {
        const Record record = records[tile.first + n];
        if (record.depth != 0) continue;
        const int row = int(tile.row) - int(record.row), column = int(tile.column) - int(record.column);
        uint32_t left_step;
        const double *left = source(record.left_kind, record.left, v, lane, step, inner, left_step);
        each([&](int i, int j, double &value) {
            const int x = row + i, y = column + j;
            if (x >= 0 && x < int(record.rows) && y >= 0 && y < int(record.columns))
                value += record.scale * left[(uint64_t(x) * record.left_row + y) * left_step];
        });
    }
    each([&](int i, int j, double &sum) {
        if (i >= last_row || j >= last_column) return;
        const uint64_t at = tile.out + uint64_t(tile.row + i) * tile.columns + tile.column + j;
        double *const out = w + at * out_step + out_lane;
        double value = alpha * sum;
        if (beta != 0.0) value += beta * v[at * step + lane];
        if (gamma != 0.0) value += gamma * *out;
        *out = value;
    });
}
