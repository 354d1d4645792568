// Operation records of a superblock: X' += A X B^T between small dense blocks, in double precision. A block of threads owns a
// tile of X' and walks the records that write it, so that nothing is added atomically and sums have one order. Products run
// on the tensor cores (8 x 8 x 4 in double precision); floor: flops over 67 Tflop/s on an H200.

#include <cstdint>
#include <mma.h>

using namespace nvcuda;

// A record, or an inner product of one: out[row.., column..] += scale L R, or += scale L where `depth` is 0.
struct Record {
    double scale;
    // An address where `kind` says matrix, else the first number in the vector or the inner products.
    uint64_t left, right;
    uint32_t row, rows, column, columns, depth;
    // Numbers between rows and between columns of L, between rows of R, whose columns are neighbours.
    uint32_t left_row, left_column, right_row;
    // 0 a matrix, 1 the vector, 2 the inner products.
    uint32_t left_kind, right_kind;
};

// A tile of a block of the result: where the block starts, its size, the tile's first row and column, and its records.
struct Tile {
    uint64_t out;
    uint32_t rows, columns, row, column, first, count;
};

constexpr int SIDE = 64;
constexpr int DEPTH = 16;
// Rows in shared memory are shifted against each other to meet different banks.
constexpr int LEFT = DEPTH + 4;
constexpr int RIGHT = SIDE + 4;
constexpr int OUT = SIDE + 4;

__device__ inline const double *source(uint32_t kind, uint64_t at, const double *v, uint32_t lane, uint32_t step,
                                       const double *inner, uint32_t &stride) {
    stride = 1;
    if (kind == 0) return reinterpret_cast<const double *>(at);
    if (kind == 2) return inner + at;
    stride = step;
    return v + at * step + lane;
}

extern "C" __global__ void __launch_bounds__(256)
records_f64(const Tile *tiles, const Record *records, const double *v, const double *inner, double *w, uint32_t lane,
            uint32_t step, uint32_t out_lane, uint32_t out_step, double alpha, double beta, double gamma) {
    __shared__ double space[SIDE * OUT];
    double *const l = space;
    double *const r = space + SIDE * LEFT;
    const Tile tile = tiles[blockIdx.x];
    const int thread = threadIdx.x, warp = thread / 32;
    const int warp_row = (warp / 2) * 16, warp_column = (warp % 2) * 32;
    const int last_row = min(SIDE, int(tile.rows - tile.row));
    const int last_column = min(SIDE, int(tile.columns - tile.column));

    wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum[2][4];
    for (auto &row : sum)
        for (auto &f : row) wmma::fill_fragment(f, 0.0);

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
        const bool along_rows = record.left_row == 1;
        for (uint32_t k0 = 0; k0 < record.depth; k0 += DEPTH) {
            for (int e = thread; e < SIDE * DEPTH; e += 256) {
                const int i = along_rows ? e % SIDE : e / DEPTH, k = along_rows ? e / SIDE : e % DEPTH;
                const int at = row + i;
                const bool inside = at >= 0 && at < int(record.rows) && k0 + k < record.depth;
                const uint64_t place = uint64_t(at) * record.left_row + uint64_t(k0 + k) * record.left_column;
                l[i * LEFT + k] = inside ? record.scale * left[place * left_step] : 0.0;
            }
            for (int e = thread; e < SIDE * DEPTH; e += 256) {
                const int k = e / SIDE, j = e % SIDE, at = column + j;
                const bool inside = at >= 0 && at < int(record.columns) && k0 + k < record.depth;
                r[k * RIGHT + j] = inside ? right[(uint64_t(k0 + k) * record.right_row + at) * right_step] : 0.0;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < DEPTH; k += 4) {
                wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> a[2];
                wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> b[4];
#pragma unroll
                for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(a[i], l + (warp_row + 8 * i) * LEFT + k, LEFT);
#pragma unroll
                for (int j = 0; j < 4; ++j) wmma::load_matrix_sync(b[j], r + k * RIGHT + warp_column + 8 * j, RIGHT);
#pragma unroll
                for (int i = 0; i < 2; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j) wmma::mma_sync(sum[i][j], a[i], b[j], sum[i][j]);
            }
            __syncthreads();
        }
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            wmma::store_matrix_sync(space + (warp_row + 8 * i) * OUT + warp_column + 8 * j, sum[i][j], OUT,
                                    wmma::mem_row_major);
    __syncthreads();
    // Records without a matrix only move numbers.
    for (uint32_t n = 0; n < tile.count; ++n) {
        const Record record = records[tile.first + n];
        if (record.depth != 0) continue;
        const int row = int(tile.row) - int(record.row), column = int(tile.column) - int(record.column);
        uint32_t left_step;
        const double *left = source(record.left_kind, record.left, v, lane, step, inner, left_step);
        for (int e = thread; e < SIDE * SIDE; e += 256) {
            const int i = e / SIDE, j = e % SIDE, x = row + i, y = column + j;
            if (x >= 0 && x < int(record.rows) && y >= 0 && y < int(record.columns) && i < last_row && j < last_column)
                space[i * OUT + j] += record.scale * left[(uint64_t(x) * record.left_row + y) * left_step];
        }
    }
    // Every number was added to by one thread only: the same that writes it.
    for (int e = thread; e < SIDE * SIDE; e += 256) {
        const int i = e / SIDE, j = e % SIDE;
        if (i >= last_row || j >= last_column) continue;
        const uint64_t at = tile.out + uint64_t(tile.row + i) * tile.columns + tile.column + j;
        double *out = w + at * out_step + out_lane;
        double value = alpha * space[i * OUT + j];
        if (beta != 0.0) value += beta * v[at * step + lane];
        if (gamma != 0.0) value += gamma * *out;
        *out = value;
    }
}
