// Cubic B-splines at the electrons of all walkers at once. The table lies as [tile][x][y][z][W lanes], three rows of z
// repeated at each column's end, so that the four rows of a column are neighbours. A warp takes one electron and one
// tile of orbitals, V of them a thread; a block takes neighbouring electrons, whose rows it then finds in its
// multiprocessor's cache. Electrons are brought into that order first, by a counting sort over blocks of the grid:
// results do not depend on it. Tiles are the slow direction of a launch:
// one tile's slice of the table fits the second cache.
//
// Floor of 24576 electrons, 384 orbitals, 60^3 in single precision: the table once from memory (332 MB, 0.07 ms), rows
// through the multiprocessors' caches (2.4 GB at 128 bytes a cycle each, 0.08 ms).
//
// The three thread assignments of Uejima and Maezono (2012) are at the end, to compare.

#include <cstdint>

#include "host.cuh"

namespace {

constexpr int THREADS = host::splines::BLOCK;
constexpr int WARPS = THREADS / 32;
// Electrons of a block.
constexpr int GROUP = host::splines::GROUP;
// Grid steps along the edge of a block of the sort.
constexpr uint32_t EDGE = host::splines::EDGE;
// Rows of z that are repeated at the end of each column.
constexpr uint32_t REPEATED = host::splines::REPEATED;

template <class F>
struct Shape {
    uint32_t n[3];
    uint32_t lanes;
    // grad u_i . grad u_j: xx, yy, zz, xy, xz, yz; and grad u_i.
    F metric[6];
    F scaled[9];
};
HOST_LAYOUT_splines_TableGrid_f32(Shape<float>);
HOST_LAYOUT_splines_TableGrid_f64(Shape<double>);

// An electron: how far beyond its grid point, which one, and which electron.
template <class F>
struct Record {
    F beyond[3];
    uint32_t cell[3];
    uint32_t index;
};
HOST_LAYOUT_splines_PointArgument_f32(Record<float>);
HOST_LAYOUT_splines_PointArgument_f64(Record<double>);

struct Inverse {
    double rows[9];
};
HOST_LAYOUT_splines_InverseArgument(Inverse);

// Sums that values depend on are written as the instructions that they are, so that values alone and values with
// derivatives are the same to the last bit.
template <class F>
__device__ inline void weights(F t, F (&w)[4]) {
    const F s = F(1) - t, sixth = F(1) / F(6);
    w[0] = s * s * s * sixth;
    w[1] = fma(t * t, fma(F(3), t, F(-6)), F(4)) * sixth;
    w[2] = fma(s * s, fma(F(3), s, F(-6)), F(4)) * sixth;
    w[3] = t * t * t * sixth;
}

template <class F>
__device__ inline void first(F t, F (&w)[4]) {
    const F s = F(1) - t, half = F(1) / F(2);
    w[0] = -half * s * s;
    w[1] = t * (F(3) * half * t - F(2));
    w[2] = s * (F(2) - F(3) * half * s);
    w[3] = half * t * t;
}

template <class F>
__device__ inline void second(F t, F (&w)[4]) {
    const F s = F(1) - t;
    w[0] = s;
    w[1] = F(3) * t - F(2);
    w[2] = F(3) * s - F(2);
    w[3] = t;
}

// The k-th of the four grid points around, wrapped.
__device__ inline uint32_t near(uint32_t c, int k, uint32_t n) {
    const int at = int(c) + k - 1;
    if (n == 1) return 0;
    return at < 0 ? at + n : at >= int(n) ? at - n : at;
}

template <class F, int V>
struct Lanes {
    F x[V];
};

template <class F, int V>
__device__ inline Lanes<F, V> load(const F* at) {
    struct alignas(sizeof(F) * V) Wide {
        F x[V];
    };
    Lanes<F, V> out;
    const Wide w = *reinterpret_cast<const Wide*>(at);
#pragma unroll
    for (int v = 0; v < V; ++v) out.x[v] = w.x[v];
    return out;
}

// Values, or with ALL the gradient and the Laplacian as well. A warp takes all or a part of a tile of W.
template <class F, int W, int V, bool ALL>
__device__ inline void evaluate(const F* __restrict__ table, const Record<F>* __restrict__ records, uint32_t count,
                                const Shape<F>& shape, F* __restrict__ out) {
    constexpr uint32_t PARTS = W / (32 * V);
    const uint32_t warp = threadIdx.x / 32, tile = blockIdx.y / PARTS;
    // This thread's first orbital within the tile.
    const uint32_t own = (blockIdx.y % PARTS) * 32 * V + threadIdx.x % 32 * V;
    const uint32_t row = W, column = (shape.n[2] + REPEATED) * row, slab = shape.n[1] * column;
    const F* const base = table + uint64_t(tile) * shape.n[0] * slab + own;
    const uint32_t last = min(count, (blockIdx.x + 1) * GROUP);
    const uint64_t plane = uint64_t(count) * shape.lanes;
    for (uint32_t e = blockIdx.x * GROUP + warp; e < last; e += WARPS) {
        const Record<F> r = records[e];
        F wx[4], wy[4], wz[4], dx[4], dy[4], dz[4], ddx[4], ddy[4], ddz[4];
        weights(r.beyond[0], wx);
        weights(r.beyond[1], wy);
        weights(r.beyond[2], wz);
        if (ALL) {
            first(r.beyond[0], dx);
            first(r.beyond[1], dy);
            first(r.beyond[2], dz);
            second(r.beyond[0], ddx);
            second(r.beyond[1], ddy);
            second(r.beyond[2], ddz);
#pragma unroll
            for (int k = 0; k < 4; ++k) ddz[k] *= shape.metric[2];
        }
        F value[V] = {}, gx[V] = {}, gy[V] = {}, gz[V] = {}, laplacian[V] = {};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const F* const at_x = base + near(r.cell[0], i, shape.n[0]) * slab + r.cell[2] * row;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const F* const at = at_x + near(r.cell[1], j, shape.n[1]) * column;
                Lanes<F, V> c[4];
#pragma unroll
                for (int k = 0; k < 4; ++k) c[k] = load<F, V>(at + k * row);
                const F w = wx[i] * wy[j];
                F along_x, along_y, flat, slope;
                if (ALL) {
                    along_x = dx[i] * wy[j];
                    along_y = wx[i] * dy[j];
                    flat = shape.metric[0] * ddx[i] * wy[j] + shape.metric[1] * wx[i] * ddy[j]
                         + F(2) * shape.metric[3] * dx[i] * dy[j];
                    slope = F(2) * (shape.metric[4] * along_x + shape.metric[5] * along_y);
                }
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    const F s = fma(c[3].x[v], wz[3], fma(c[2].x[v], wz[2], fma(c[1].x[v], wz[1], c[0].x[v] * wz[0])));
                    value[v] = fma(w, s, value[v]);
                    if (ALL) {
                        const F d = c[0].x[v] * dz[0] + c[1].x[v] * dz[1] + c[2].x[v] * dz[2] + c[3].x[v] * dz[3];
                        const F dd = c[0].x[v] * ddz[0] + c[1].x[v] * ddz[1] + c[2].x[v] * ddz[2] + c[3].x[v] * ddz[3];
                        gx[v] += along_x * s;
                        gy[v] += along_y * s;
                        gz[v] += w * d;
                        laplacian[v] += flat * s + slope * d + w * dd;
                    }
                }
            }
        }
        const uint32_t l = tile * W + own;
        F* const to = out + uint64_t(r.index) * shape.lanes + l;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            if (l + v >= shape.lanes) break;
            to[v] = value[v];
            if (ALL) {
                const F* const g = shape.scaled;
                to[v + plane] = g[0] * gx[v] + g[3] * gy[v] + g[6] * gz[v];
                to[v + 2 * plane] = g[1] * gx[v] + g[4] * gy[v] + g[7] * gz[v];
                to[v + 3 * plane] = g[2] * gx[v] + g[5] * gy[v] + g[8] * gz[v];
                to[v + 4 * plane] = laplacian[v];
            }
        }
    }
}

// Where an electron lies, and its rank among those of its block of the grid.
template <class F>
__device__ inline void place(const double* points, uint32_t count, const Inverse& inverse, uint32_t nx, uint32_t ny,
                             uint32_t nz, Record<F>* records, uint2* ranks, uint32_t* bins) {
    for (uint32_t p = blockIdx.x * blockDim.x + threadIdx.x; p < count; p += gridDim.x * blockDim.x) {
        const uint32_t n[3] = {nx, ny, nz};
        Record<F> r;
        uint32_t block[3];
#pragma unroll
        for (int a = 0; a < 3; ++a) {
            double t = 0.0;
#pragma unroll
            for (int d = 0; d < 3; ++d) t += inverse.rows[3 * a + d] * points[3 * uint64_t(p) + d];
            const double u = (t - floor(t)) * n[a], below = floor(u);
            r.beyond[a] = F(u - below);
            // Rounding may reach the end; NaN becomes the first point.
            r.cell[a] = uint32_t(below) < n[a] ? uint32_t(below) : 0;
            block[a] = r.cell[a] / EDGE;
        }
        r.index = p;
        records[p] = r;
        // Every second column of blocks runs backwards: a block's neighbour comes next.
        const uint32_t by = (ny + EDGE - 1) / EDGE, bz = (nz + EDGE - 1) / EDGE;
        const uint32_t y = block[0] % 2 ? by - 1 - block[1] : block[1], across = block[0] * by + y;
        const uint32_t bin = across * bz + (across % 2 ? bz - 1 - block[2] : block[2]);
        ranks[p] = make_uint2(bin, atomicAdd(bins + bin, 1u));
    }
}

template <class F>
__device__ inline void scatter(const Record<F>* records, const uint2* ranks, const uint32_t* bins, uint32_t count,
                               Record<F>* sorted) {
    for (uint32_t p = blockIdx.x * blockDim.x + threadIdx.x; p < count; p += gridDim.x * blockDim.x)
        sorted[bins[ranks[p].x] + ranks[p].y] = records[p];
}

}  // namespace

extern "C" __global__ void spline_place_f32(const double* points, uint32_t count, Inverse inverse, uint32_t nx,
                                            uint32_t ny, uint32_t nz, Record<float>* records, uint2* ranks,
                                            uint32_t* bins) {
    place(points, count, inverse, nx, ny, nz, records, ranks, bins);
}

extern "C" __global__ void spline_place_f64(const double* points, uint32_t count, Inverse inverse, uint32_t nx,
                                            uint32_t ny, uint32_t nz, Record<double>* records, uint2* ranks,
                                            uint32_t* bins) {
    place(points, count, inverse, nx, ny, nz, records, ranks, bins);
}

// Counts to first places, by one block of 1024.
extern "C" __global__ void __launch_bounds__(1024) spline_scan(uint32_t* bins, uint32_t count) {
    __shared__ uint32_t sums[32];
    __shared__ uint32_t carry;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) carry = 0;
    for (uint32_t start = 0; start < count; start += 1024) {
        const uint32_t at = start + threadIdx.x, own = at < count ? bins[at] : 0;
        uint32_t sum = own;
        for (int step = 1; step < 32; step *= 2) {
            const uint32_t before = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += before;
        }
        if (lane == 31) sums[warp] = sum;
        __syncthreads();
        if (warp == 0) {
            uint32_t all = sums[lane];
            for (int step = 1; step < 32; step *= 2) {
                const uint32_t before = __shfl_up_sync(~0u, all, step);
                if (lane >= step) all += before;
            }
            sums[lane] = all;
        }
        __syncthreads();
        const uint32_t base = carry + (warp > 0 ? sums[warp - 1] : 0);
        if (at < count) bins[at] = base + sum - own;
        __syncthreads();
        if (threadIdx.x == 0) carry += sums[31];
        __syncthreads();
    }
}

extern "C" __global__ void spline_scatter_f32(const Record<float>* records, const uint2* ranks, const uint32_t* bins,
                                              uint32_t count, Record<float>* sorted) {
    scatter(records, ranks, bins, count, sorted);
}

extern "C" __global__ void spline_scatter_f64(const Record<double>* records, const uint2* ranks, const uint32_t* bins,
                                              uint32_t count, Record<double>* sorted) {
    scatter(records, ranks, bins, count, sorted);
}

#define KERNEL(NAME, F, W, V, ALL, BLOCKS)                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                       \
        NAME(const F* table, const Record<F>* records, uint32_t count, Shape<F> shape, F* out) {                        \
        evaluate<F, W, V, ALL>(table, records, count, shape, out);                                                      \
    }

constexpr int SINGLE = host::splines::SINGLE_TILE, DOUBLE = host::splines::DOUBLE_TILE;

KERNEL(spline_values_f32, float, SINGLE, 2, false, 2)
KERNEL(spline_derivatives_f32, float, SINGLE, 2, true, 1)
KERNEL(spline_values_f64, double, DOUBLE, 1, false, 1)
KERNEL(spline_derivatives_f64, double, DOUBLE, 1, true, 1)
// Half a tile a warp: rows of 128 bytes, of which the cache of a multiprocessor holds more.
KERNEL(spline_halves_f32, float, SINGLE, 1, false, 2)

// The paper's assignments, values in single precision, electrons as they come. `wide` is the width of a tile.

namespace {

// One of the 64 terms of an orbital.
__device__ inline float term(const float* table, const Record<float>& r, const Shape<float>& shape, uint32_t wide,
                             uint32_t l, uint32_t s) {
    const uint32_t i = s / 16, j = s / 4 % 4, k = s % 4;
    float wx[4], wy[4], wz[4];
    weights(r.beyond[0], wx);
    weights(r.beyond[1], wy);
    weights(r.beyond[2], wz);
    const float w = (i == 0 ? wx[0] : i == 1 ? wx[1] : i == 2 ? wx[2] : wx[3])
                  * (j == 0 ? wy[0] : j == 1 ? wy[1] : j == 2 ? wy[2] : wy[3])
                  * (k == 0 ? wz[0] : k == 1 ? wz[1] : k == 2 ? wz[2] : wz[3]);
    const uint64_t x = near(r.cell[0], i, shape.n[0]), y = near(r.cell[1], j, shape.n[1]);
    const uint64_t tile = uint64_t(l / wide) * shape.n[0];
    return w * table[(((tile + x) * shape.n[1] + y) * (shape.n[2] + REPEATED) + r.cell[2] + k) * wide + l % wide];
}

// The sum of 64 threads, in the first.
__device__ inline float total(float x) {
    __shared__ float half;
    for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(~0u, x, step);
    if (threadIdx.x == 32) half = x;
    __syncthreads();
    return x + half;
}

}  // namespace

// (1) particle by particle: one electron a launch, a block an orbital, a thread a term.
extern "C" __global__ void __launch_bounds__(64) spline_particle(const float* table, const Record<float>* records,
                                                                uint32_t electron, Shape<float> shape, uint32_t wide,
                                                                float* out) {
    const Record<float> r = records[electron];
    const float sum = total(term(table, r, shape, wide, blockIdx.x, threadIdx.x));
    if (threadIdx.x == 0) out[uint64_t(r.index) * shape.lanes + blockIdx.x] = sum;
}

// (2) all electrons: a block an electron and an orbital, a thread a term.
extern "C" __global__ void __launch_bounds__(64) spline_terms(const float* table, const Record<float>* records,
                                                             Shape<float> shape, uint32_t wide, float* out) {
    const Record<float> r = records[blockIdx.x];
    const float sum = total(term(table, r, shape, wide, blockIdx.y, threadIdx.x));
    if (threadIdx.x == 0) out[uint64_t(r.index) * shape.lanes + blockIdx.y] = sum;
}

// (3) all electrons: a block an electron, a thread an orbital.
extern "C" __global__ void spline_orbitals(const float* table, const Record<float>* records, Shape<float> shape,
                                           uint32_t wide, float* out) {
    __shared__ float weight[64];
    const Record<float> r = records[blockIdx.x];
    if (threadIdx.x < 64) {
        const uint32_t s = threadIdx.x;
        float wx[4], wy[4], wz[4];
        weights(r.beyond[0], wx);
        weights(r.beyond[1], wy);
        weights(r.beyond[2], wz);
        weight[s] = wx[s / 16] * wy[s / 4 % 4] * wz[s % 4];
    }
    __syncthreads();
    for (uint32_t l = threadIdx.x; l < shape.lanes; l += blockDim.x) {
        const uint64_t tile = uint64_t(l / wide) * shape.n[0];
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const uint64_t x = near(r.cell[0], i, shape.n[0]), y = near(r.cell[1], j, shape.n[1]);
                const float* c =
                    table + (((tile + x) * shape.n[1] + y) * (shape.n[2] + REPEATED) + r.cell[2]) * wide + l % wide;
#pragma unroll
                for (int k = 0; k < 4; ++k) sum += weight[16 * i + 4 * j + k] * c[k * wide];
            }
        out[uint64_t(r.index) * shape.lanes + l] = sum;
    }
}
