// Products of tall-skinny blocks of doubles on the tensor cores, and of lists of single columns. A complex column of a
// block is two real ones side by side here ("lanes"); the host puts real and imaginary parts together.
// Floor: every block and column once.
#include "common.cuh"
#include "tensor.cuh"

constexpr int SIDE = host::tall::SIDE;
constexpr int WARPS = THREADS / 32;

// X^T Y of a tile of 32 x 32 lanes, a row of tiles a grid row: [block][P][Q] sums over the rows of a block.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
gram_tensor(uint64_t rows, uint32_t p, uint32_t q, const double* x, const double* y, double* sums) {
    __shared__ double total[WARPS / 2][SIDE * SIDE];
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint32_t across = (q + SIDE - 1) / SIDE, i0 = blockIdx.y / across * SIDE, j0 = blockIdx.y % across * SIDE;
    double sum[4][4][2] = {};
    const uint64_t stride = (uint64_t)gridDim.x * WARPS * 8;
    bool in_x[4], in_y[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        in_x[i] = i0 + 8 * i + g < p;
        in_y[i] = j0 + 8 * i + g < q;
    }
    for (uint64_t row = ((uint64_t)blockIdx.x * WARPS + warp) * 8; row < rows; row += stride) {
        double a[4][2], b[4][2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const uint64_t r = row + 4 * h + t;
            const bool inside = r < rows;
            const double *u = x + r * p + i0 + g, *v = y + r * q + j0 + g;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                a[i][h] = inside && in_x[i] ? __ldg(u + 8 * i) : 0.0;
                b[i][h] = inside && in_y[i] ? __ldg(v + 8 * i) : 0.0;
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            const double two[2][2] = {{a[i][0], a[i][1]}, {a[i + 1][0], a[i + 1][1]}};
#pragma unroll
            for (int j = 0; j < 4; ++j) multiply_add(sum[i][j], sum[i + 1][j], two, b[j]);
        }
    }
    // Half of the warps hand their sums to the other half, until one has all.
    for (int half = WARPS / 2; half > 0; half /= 2) {
        __syncthreads();
        double* const mine = total[warp % half];
        if (warp >= half && warp < 2 * half) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
#pragma unroll
                    for (int e = 0; e < 2; ++e) mine[(8 * i + g) * SIDE + 8 * j + 2 * t + e] = sum[i][j][e];
        }
        __syncthreads();
        if (warp < half) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
#pragma unroll
                    for (int e = 0; e < 2; ++e) sum[i][j][e] += mine[(8 * i + g) * SIDE + 8 * j + 2 * t + e];
        }
    }
    if (warp > 0) return;
    double* const out = sums + (uint64_t)blockIdx.x * p * q;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const uint32_t row = i0 + 8 * i + g, column = j0 + 8 * j + 2 * t + e;
                if (row < p && column < q) out[(uint64_t)row * q + column] = sum[i][j][e];
            }
}

// Y = X C + b Y for at most 64 lanes of X, 32 lanes of Y a grid row.
constexpr int DEEP = host::tall::DEEP;

extern "C" __global__ void __launch_bounds__(THREADS, 2)
combine_tensor(uint64_t rows, uint32_t p, uint32_t q, const double* x, const double* c, double b, double* y) {
    // Rows are shifted against each other to meet different banks.
    constexpr int WIDE = SIDE + 4;
    __shared__ double small[DEEP * WIDE];
    const uint32_t j0 = blockIdx.y * SIDE, deep = (p + 7) / 8 * 8;
    for (uint32_t e = threadIdx.x; e < deep * SIDE; e += THREADS) {
        const uint32_t k = e / SIDE, j = e % SIDE;
        small[k * WIDE + j] = k < p && j0 + j < q ? c[k * q + j0 + j] : 0.0;
    }
    __syncthreads();
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint64_t stride = (uint64_t)gridDim.x * WARPS * 16;
    for (uint64_t row = ((uint64_t)blockIdx.x * WARPS + warp) * 16; row < rows; row += stride) {
        double upper[4][2] = {}, lower[4][2] = {};
        const double *u = x + (row + g) * p, *l = u + 8ull * p;
        const bool in_u = row + g < rows, in_l = row + g + 8 < rows;
#pragma unroll 4
        for (uint32_t k = 0; k < deep; k += 8) {
            double a[2][2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const uint32_t at = k + 4 * h + t;
                a[0][h] = in_u && at < p ? __ldg(u + at) : 0.0;
                a[1][h] = in_l && at < p ? __ldg(l + at) : 0.0;
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const double two[2] = {small[(k + t) * WIDE + 8 * j + g], small[(k + 4 + t) * WIDE + 8 * j + g]};
                multiply_add(upper[j], lower[j], a, two);
            }
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const uint32_t column = j0 + 8 * j + 2 * t;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                if (!(h ? in_l : in_u)) continue;
                double* const out = y + (row + g + 8 * h) * q + column;
                const double(&sum)[2] = h ? lower[j] : upper[j];
                if (q % 2 == 0) {
                    if (column >= q) continue;
                    double2 now{sum[0], sum[1]};
                    if (b != 0.0) {
                        const double2 old = *reinterpret_cast<const double2*>(out);
                        now.x += b * old.x;
                        now.y += b * old.y;
                    }
                    *reinterpret_cast<double2*>(out) = now;
                } else {
#pragma unroll
                    for (int e = 0; e < 2; ++e)
                        if (column + e < q) out[e] = sum[e] + (b != 0.0 ? b * out[e] : 0.0);
                }
            }
        }
    }
}

// Columns of a list that one launch takes, and those that a thread sums together.
constexpr int LISTED = host::tall::LISTED;
constexpr int TOGETHER = host::tall::TOGETHER;

template <class T>
struct List {
    const T* of[LISTED];
};
HOST_LAYOUT_tall_ListArgument(List<C64>);

// The sum over a warp, in its first lane.
__device__ __forceinline__ double over_warp(double x) {
#pragma unroll
    for (int half = 16; half > 0; half /= 2) x += __shfl_down_sync(~0u, x, half);
    return x;
}

// Blocks of each row of the grid that have ended; the last one sets it back.
__device__ uint32_t ended[LISTED / TOGETHER];

// out[k][part] = <x_k|y> for a list of single columns, TOGETHER columns a grid row: y is read once for each of these.
// sums holds [row of the grid][block][TOGETHER][part] meanwhile; the block of a row that ends last adds them up,
// in a fixed order.
template <class T>
__device__ void dots_list(uint64_t rows, uint32_t columns, const List<T>& x, const T* y, double* sums, double* out) {
    constexpr int PARTS = Traits<T>::complex ? 2 : 1, NUMBERS = TOGETHER * PARTS;
    __shared__ double shared[WARPS][NUMBERS];
    __shared__ bool last;
    const T* mine[TOGETHER];
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) mine[k] = x.of[min(blockIdx.y * TOGETHER + k, columns - 1)];
    C64 sum[TOGETHER]{};
    constexpr int P = sizeof(T) >= 16 ? 1 : 16 / sizeof(T);
    using Lanes = Pack<T, P>;
    const uint64_t packs = rows / P, stride = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = blockIdx.x * (uint64_t)THREADS + threadIdx.x; i < packs; i += stride) {
        const Lanes v = load(reinterpret_cast<const Lanes*>(y) + i);
        Lanes u[TOGETHER];
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) u[k] = load_once(reinterpret_cast<const Lanes*>(mine[k]) + i);
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k)
#pragma unroll
            for (int e = 0; e < P; ++e) sum[k] = cmla(wide(u[k].x[e]), wide(v.x[e]), sum[k]);
    }
    const uint64_t rest = packs * P + threadIdx.x;
    if (blockIdx.x == 0 && rest < rows)
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) sum[k] = cmla(wide(mine[k][rest]), wide(y[rest]), sum[k]);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int n = 0; n < NUMBERS; ++n) {
        const double whole = over_warp(n % PARTS ? sum[n / PARTS].im : sum[n / PARTS].re);
        if (lane == 0) shared[warp][n] = whole;
    }
    __syncthreads();
    double* const row = sums + (uint64_t)blockIdx.y * gridDim.x * NUMBERS;
    if (threadIdx.x < NUMBERS) {
        double whole = 0.0;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) whole += shared[w][threadIdx.x];
        row[blockIdx.x * NUMBERS + threadIdx.x] = whole;
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(ended + blockIdx.y, 1) + 1 == gridDim.x;
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int n = warp; n < NUMBERS; n += WARPS) {
        double whole = 0.0;
        for (uint32_t b = lane; b < gridDim.x; b += 32) whole += __ldcg(row + b * NUMBERS + n);
        whole = over_warp(whole);
        const uint32_t column = blockIdx.y * TOGETHER + n / PARTS;
        if (lane == 0 && column < columns) out[column * PARTS + n % PARTS] = whole;
    }
    if (threadIdx.x == 0) ended[blockIdx.y] = 0;
}

template <class T>
struct Weights {
    T of[LISTED];
};

// y = sum c_k x_k + b y for a list of single columns.
template <class T>
__device__ void mix_list(uint64_t rows, uint32_t columns, const List<T>& x, const Weights<T>& c, double b, T* y) {
    using Real = typename Traits<T>::Real;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < rows; i += (uint64_t)gridDim.x * blockDim.x) {
        T sum{};
        if (b != 0.0) sum = mla((Real)b, y[i], T{});
#pragma unroll 4
        for (uint32_t k = 0; k < columns; ++k) sum = mla(c.of[k], load(x.of[k] + i), sum);
        y[i] = sum;
    }
}

// Over the lanes of a warp, the sums of 32 numbers: lane k gets that of number k, in v[0]. Half of what is left goes to
// the other half of the lanes at a time.
template <int HALF = 16>
__device__ __forceinline__ void sums_by_lane(double (&v)[32]) {
    const bool upper = threadIdx.x & HALF;
#pragma unroll
    for (int k = 0; k < HALF; ++k) {
        const double low = v[k], high = v[k + HALF];
        v[k] = (upper ? high : low) + __shfl_xor_sync(~0u, upper ? low : high, HALF);
    }
    if constexpr (HALF > 1) sums_by_lane<HALF / 2>(v);
}

__device__ __forceinline__ double summand(double a) { return a; }
__device__ __forceinline__ C64 summand(C64 a) { return a; }
__device__ __forceinline__ double part_of(double a, int) { return a; }
__device__ __forceinline__ double part_of(C64 a, int part) { return part ? a.im : a.re; }

// Blocks of a correction that have ended; the last one sets it back.
__device__ uint32_t corrected;

// Of a Ritz vector x = V s and its residual r = W s - theta x, with K = 1/(shift - D): K r and K x, and into `out` what
// is asked of them, V^H K r, V^H K x, <Kr|Kr>, <Kr|Kx>, <Kx|Kx>, <r|r>, the parts of each number side by side. V and W
// have at most J columns: the lists are filled up to J with the last one, with the factor zero.
// sums holds [block][number] meanwhile; the block that ends last adds them up in a fixed order.
template <class T, int J>
__device__ void correct(uint64_t rows, uint32_t columns, const List<T>& v, const List<T>& w,
                        const typename Traits<T>::Real* d, const Weights<T>& s, double theta, double shift, double floor,
                        T* kr, T* kx, double* sums, double* out) {
    using Real = typename Traits<T>::Real;
    using Sum = decltype(summand(T{}));
    constexpr int PARTS = Traits<T>::complex ? 2 : 1, MORE = 4, ROUNDS = ((2 * J + MORE) * PARTS + 31) / 32;
    __shared__ double shared[WARPS][32 * ROUNDS];
    __shared__ bool last;
    Sum sum[2 * J + MORE]{};
    const uint64_t stride = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = blockIdx.x * (uint64_t)THREADS + threadIdx.x; i < rows; i += stride) {
        T u[J], image[J];
#pragma unroll
        for (int k = 0; k < J; ++k) u[k] = load_once(v.of[k] + i);
#pragma unroll
        for (int k = 0; k < J; ++k) image[k] = load_once(w.of[k] + i);
        const Real inverse = (Real)(1.0 / away_from_zero(shift, (double)d[i], floor));
        T x{}, r{};
#pragma unroll
        for (int k = 0; k < J; ++k) {
            x = mla(s.of[k], u[k], x);
            r = mla(s.of[k], image[k], r);
        }
        r = mla((Real)-theta, x, r);
        const T of_r = mla(inverse, r, T{}), of_x = mla(inverse, x, T{});
        kr[i] = of_r;
        kx[i] = of_x;
        const Sum a = summand(of_r), b = summand(of_x), c = summand(r);
#pragma unroll
        for (int k = 0; k < J; ++k) {
            const Sum known = summand(u[k]);
            sum[k] = cmla(known, a, sum[k]);
            sum[J + k] = cmla(known, b, sum[J + k]);
        }
        sum[2 * J] = cmla(a, a, sum[2 * J]);
        sum[2 * J + 1] = cmla(a, b, sum[2 * J + 1]);
        sum[2 * J + 2] = cmla(b, b, sum[2 * J + 2]);
        sum[2 * J + 3] = cmla(c, c, sum[2 * J + 3]);
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        double some[32];
#pragma unroll
        for (int k = 0; k < 32; ++k) {
            const int n = 32 * round + k;
            some[k] = n < (2 * J + MORE) * PARTS ? part_of(sum[min(n / PARTS, 2 * J + MORE - 1)], n % PARTS) : 0.0;
        }
        sums_by_lane(some);
        shared[warp][32 * round + lane] = some[0];
    }
    __syncthreads();
    // Of the numbers that a list filled up has, those of its own columns.
    const uint32_t numbers = (2 * columns + MORE) * PARTS;
    const auto place = [&](uint32_t n) {
        const uint32_t k = n / PARTS, skipped = k < columns ? 0 : k < 2 * columns ? J - columns : 2 * (J - columns);
        return (k + skipped) * PARTS + n % PARTS;
    };
    for (uint32_t n = threadIdx.x; n < numbers; n += THREADS) {
        double whole = 0.0;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) whole += shared[w][place(n)];
        sums[(uint64_t)blockIdx.x * numbers + n] = whole;
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&corrected, 1) + 1 == gridDim.x;
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (uint32_t n = warp; n < numbers; n += WARPS) {
        double whole = 0.0;
        for (uint32_t b = lane; b < gridDim.x; b += 32) whole += __ldcg(sums + (uint64_t)b * numbers + n);
        whole = over_warp(whole);
        if (lane == 0) out[n] = whole;
    }
    if (threadIdx.x == 0) corrected = 0;
}

#define CORRECT(TYPE, T, J)                                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS) correct_##J##_##TYPE(                                        \
        uint64_t rows, uint32_t columns, const __grid_constant__ List<T> v, const __grid_constant__ List<T> w,          \
        const typename Traits<T>::Real* d, const __grid_constant__ Weights<T> s, double theta, double shift,            \
        double floor, T* kr, T* kx, double* sums, double* out) {                                                       \
        correct<T, J>(rows, columns, v, w, d, s, theta, shift, floor, kr, kx, sums, out);                              \
    }

CORRECT(f64, F64, 4)
CORRECT(f64, F64, 8)
CORRECT(f64, F64, 12)
CORRECT(f64, F64, 16)
CORRECT(f64, F64, 20)
CORRECT(f64, F64, 24)
CORRECT(c64, C64, 4)
CORRECT(c64, C64, 8)
CORRECT(c64, C64, 12)

#define LISTS(TYPE, T)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) dots_list_##TYPE(                                            \
        uint64_t rows, uint32_t columns, const __grid_constant__ List<T> x, const T* y, double* sums, double* out) {    \
        dots_list<T>(rows, columns, x, y, sums, out);                                                                  \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) mix_list_##TYPE(                                             \
        uint64_t rows, uint32_t columns, const __grid_constant__ List<T> x, const __grid_constant__ Weights<T> c,       \
        double b, T* y) {                                                                                              \
        mix_list<T>(rows, columns, x, c, b, y);                                                                        \
    }

LISTS(f32, F32)
LISTS(f64, F64)
LISTS(c32, C32)
LISTS(c64, C64)
