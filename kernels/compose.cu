// Matrices put together from rectangles of others, which may be turned, read backwards or be a multiple of the
// identity. A block of threads owns a tile and adds the rectangles that reach it one after the other, so that sums have
// one order. Floor: every rectangle and every matrix once.

#include <cstdint>

#include "host.cuh"
#include "tile.cuh"

// A rectangle: its first number, none for the identity; the distances from row to row and from column to column;
// its place.
struct Rectangle {
    double scale;
    uint64_t from;
    int64_t down, across;
    uint32_t row, rows, column, columns;
};
HOST_LAYOUT_places_Rectangle(Rectangle);

constexpr int SIDE = host::places::SIDE;
constexpr int THREADS = host::places::THREADS;
constexpr int STEP = THREADS / SIDE;

extern "C" __global__ void __launch_bounds__(THREADS)
compose_f64(const Tile *tiles, const Rectangle *rectangles, double *w) {
    // A column more than numbers, so that both ways of walking the tile meet all banks.
    __shared__ double sum[SIDE][SIDE + 1];
    const Tile tile = tiles[blockIdx.x];
    const int low = threadIdx.x % SIDE, high = threadIdx.x / SIDE;
    for (int i = high; i < SIDE; i += STEP) sum[i][low] = 0.0;
    for (uint32_t n = 0; n < tile.count; ++n) {
        const Rectangle r = rectangles[tile.first + n];
        // The tile's rows and columns, counted within the rectangle.
        const int row = int(tile.row) - int(r.row), column = int(tile.column) - int(r.column);
        if (row >= int(r.rows) || column >= int(r.columns) || row + SIDE <= 0 || column + SIDE <= 0) continue;
        // The rectangle before may have been walked the other way.
        __syncthreads();
        const double *const from = reinterpret_cast<const double *>(r.from);
        // Neighbouring threads read neighbouring numbers.
        const bool along = from == nullptr || r.across == 1 || r.across == -1;
        for (int k = high; k < SIDE; k += STEP) {
            const int i = along ? k : low, j = along ? low : k, x = row + i, y = column + j;
            if (x < 0 || y < 0 || x >= int(r.rows) || y >= int(r.columns)) continue;
            const double number = from == nullptr ? (x == y ? 1.0 : 0.0) : from[x * r.down + y * r.across];
            sum[i][j] += r.scale * number;
        }
    }
    __syncthreads();
    double *const out = w + tile.out + uint64_t(tile.row) * tile.columns + tile.column;
    if (tile.column + low >= tile.columns) return;
    for (int i = high; i < SIDE && tile.row + i < tile.rows; i += STEP) out[uint64_t(i) * tile.columns + low] = sum[i][low];
}
