// Operation records of a superblock: X' += A X B^T between small dense blocks, in double precision. A block of threads owns a
// tile of X' and walks the records that write it, so that nothing is added atomically and sums have one order. Products run
// on the tensor cores. Floor: flops over 67 Tflop/s on an H200; measured there, for two products of n x n and with what cuBLAS
// reaches: 7.6 of 7.8 at n = 512, 26 of 29 at 1000, 29 of 51 at 2000, 34 of 60 Tflop/s at 4096.

#include <cstdint>

#include "host.cuh"
#include "tensor.cuh"

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

// A tile of a block of the result: where the block starts, its size, the tile's first row and column, and its records.
struct Tile {
    uint64_t out;
    uint32_t rows, columns, row, column, first, count;
};
HOST_LAYOUT_records_Tile(Tile);

constexpr int SIDE = host::records::SIDE;
constexpr int DEPTH = 16;
constexpr int THREADS = host::records::THREADS;
// Rows in shared memory are shifted against each other to meet different banks.
constexpr int NARROW = DEPTH + 4;
constexpr int WIDE = SIDE + 4;
constexpr int EACH = SIDE * DEPTH / THREADS;

__device__ inline const double *source(uint32_t kind, uint64_t at, const double *v, uint32_t lane, uint32_t step,
                                       const double *inner, uint32_t &stride) {
    stride = 1;
    if (kind == host::records::MATRIX) return reinterpret_cast<const double *>(at);
    if (kind == host::records::INNER) return inner + at;
    stride = step;
    return v + at * step + lane;
}

// A quarter of the tile a warp, in blocks of 8 x 8; see `tensor.cuh`.
using Sums = double[4][4][2];

// sum += L R for the warp's rows and columns, with L in shared memory by rows or by columns.
template <bool BY_ROWS>
__device__ __forceinline__ void multiply(Sums &sum, const double *l, const double *r, int warp_row, int warp_column) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const auto left = [&](int row, int k) { return BY_ROWS ? l[row * NARROW + k] : l[k * WIDE + row]; };
#pragma unroll
    for (int k = 0; k < DEPTH; k += 8) {
        double b[4][2];
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) b[j][h] = r[(k + 4 * h + t) * WIDE + warp_column + 8 * j + g];
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            double a[2][2];
#pragma unroll
            for (int u = 0; u < 2; ++u)
#pragma unroll
                for (int h = 0; h < 2; ++h) a[u][h] = left(warp_row + 8 * (i + u) + g, k + 4 * h + t);
#pragma unroll
            for (int j = 0; j < 4; ++j) multiply_add(sum[i][j], sum[i + 1][j], a, b[j]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 3)
records_f64(const Tile *tiles, const Record *records, const double *v, const double *inner, double *w, uint32_t lane,
            uint32_t step, uint32_t out_lane, uint32_t out_step, double alpha, double beta, double gamma) {
    // Two stages: while one is multiplied the other is filled, so that one barrier a step is enough.
    constexpr int STAGE = SIDE * NARROW + DEPTH * WIDE;
    static_assert(2 * STAGE >= SIDE * WIDE);
    __shared__ double space[2 * STAGE];
    int stage = 0;
    const Tile tile = tiles[blockIdx.x];
    const int thread = threadIdx.x, warp = thread / 32;
    const int warp_row = (warp / 2) * 32, warp_column = (warp % 2) * 32;
    const int last_row = min(SIDE, int(tile.rows - tile.row));
    const int last_column = min(SIDE, int(tile.columns - tile.column));

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
        // Neighbouring threads read neighbouring numbers: down a matrix, along a vector's rows.
        const bool down = record.left_row == 1;
        const int depth = int(record.depth);
        const int i0 = down ? thread % SIDE : thread / DEPTH, k0 = down ? thread / SIDE : thread % DEPTH;
        const int j0 = thread % SIDE, q0 = thread / SIDE;
        const int64_t down_row = int64_t(record.left_row) * left_step, down_column = int64_t(record.left_column) * left_step;
        const double *const left_first = left + (row + i0) * down_row + k0 * down_column;
        const double *const right_first = right + (q0 * int64_t(record.right_row) + column + j0) * right_step;
        const int64_t left_next = down ? (THREADS / SIDE) * down_column : (THREADS / DEPTH) * down_row;
        const int64_t right_next = (THREADS / SIDE) * int64_t(record.right_row) * right_step;
        const int64_t left_far = DEPTH * down_column, right_far = DEPTH * int64_t(record.right_row) * right_step;
        const bool in_column = column + j0 >= 0 && column + j0 < int(record.columns);
        const bool in_row = row + i0 >= 0 && row + i0 < int(record.rows);
        double fetched_left[EACH], fetched_right[EACH];
        // The next numbers are loaded while the last ones are multiplied.
        auto fetch = [&](int k) {
            const double *x = left_first + (k / DEPTH) * left_far, *y = right_first + (k / DEPTH) * right_far;
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const int at = row + i0 + (THREADS / DEPTH) * e;
                const bool inside = down ? in_row && k + k0 + (THREADS / SIDE) * e < depth
                                         : at >= 0 && at < int(record.rows) && k + k0 < depth;
                fetched_left[e] = inside ? x[e * left_next] : 0.0;
                fetched_right[e] = in_column && k + q0 + (THREADS / SIDE) * e < depth ? y[e * right_next] : 0.0;
            }
        };
        fetch(0);
        for (int k = 0; k < depth; k += DEPTH, stage ^= 1) {
            double *const l = space + stage * STAGE, *const r = l + SIDE * NARROW;
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const double x = record.scale * fetched_left[e];
                if (down) l[(k0 + (THREADS / SIDE) * e) * WIDE + i0] = x;
                else l[(i0 + (THREADS / DEPTH) * e) * NARROW + k0] = x;
                r[(q0 + (THREADS / SIDE) * e) * WIDE + j0] = fetched_right[e];
            }
            __syncthreads();
            if (k + DEPTH < depth) fetch(k + DEPTH);
            if (down) multiply<false>(sum, l, r, warp_row, warp_column);
            else multiply<true>(sum, l, r, warp_row, warp_column);
        }
    }
    __syncthreads();
    const int g = thread % 32 / 4, t = thread % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            double *const out = space + (warp_row + 8 * i + g) * WIDE + warp_column + 8 * j + 2 * t;
            out[0] = sum[i][j][0];
            out[1] = sum[i][j][1];
        }
    __syncthreads();
    // Records without a matrix only move numbers.
    for (uint32_t n = 0; n < tile.count; ++n) {
        const Record record = records[tile.first + n];
        if (record.depth != 0) continue;
        const int row = int(tile.row) - int(record.row), column = int(tile.column) - int(record.column);
        uint32_t left_step;
        const double *left = source(record.left_kind, record.left, v, lane, step, inner, left_step);
        for (int e = thread; e < SIDE * SIDE; e += THREADS) {
            const int i = e / SIDE, j = e % SIDE, x = row + i, y = column + j;
            if (x >= 0 && x < int(record.rows) && y >= 0 && y < int(record.columns) && i < last_row && j < last_column)
                space[i * WIDE + j] += record.scale * left[(uint64_t(x) * record.left_row + y) * left_step];
        }
    }
    // Every number was added to by one thread only: the same that writes it.
    for (int e = thread; e < SIDE * SIDE; e += THREADS) {
        const int i = e / SIDE, j = e % SIDE;
        if (i >= last_row || j >= last_column) continue;
        const uint64_t at = tile.out + uint64_t(tile.row + i) * tile.columns + tile.column + j;
        double *out = w + at * out_step + out_lane;
        double value = alpha * space[i * WIDE + j];
        if (beta != 0.0) value += beta * v[at * step + lane];
        if (gamma != 0.0) value += gamma * *out;
        *out = value;
    }
}
