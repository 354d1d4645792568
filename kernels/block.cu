// Block-vector algebra. Blocks are row-major: `columns` numbers a row.
#include "common.cuh"

constexpr int MOST_FACTORS = 64;

// One factor for each column of a tile of columns.
struct Factors {
    C64 of[MOST_FACTORS];
};

// y = a x + b y over columns `first` to `first + width`.
template <class T>
__device__ void axpby(uint64_t rows, uint32_t columns, uint32_t first, uint32_t width, const Factors& a, const T* x,
                      const Factors& b, bool read, T* y) {
    const uint64_t count = rows * width;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint32_t c = (uint32_t)(i % width);
        const uint64_t at = i / width * columns + first + c;
        T sum = mla(Narrow<T>::of(a.of[c]), x[at], T{});
        if (read) sum = mla(Narrow<T>::of(b.of[c]), y[at], sum);
        y[at] = sum;
    }
}

// The same with one factor for all columns: packs of 16 bytes, each touched once.
template <class T, int P>
__device__ void axpby_all(uint64_t count, C64 a, const T* x, C64 b, bool read, T* y) {
    const T fa = Narrow<T>::of(a), fb = Narrow<T>::of(b);
    const uint64_t packs = count / P;
    const auto* px = reinterpret_cast<const Pack<T, P>*>(x);
    auto* py = reinterpret_cast<Pack<T, P>*>(y);
    const uint64_t start = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x, step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = start; i < packs; i += step) {
        Pack<T, P> sum, vx = load_once(px + i), vy{};
        if (read) vy = load_once(py + i);
        for (int p = 0; p < P; ++p) sum.x[p] = mla(fa, vx.x[p], mla(fb, vy.x[p], T{}));
        store_once(py + i, sum);
    }
    for (uint64_t i = packs * P + start; i < count; i += step) {
        T sum = mla(fa, x[i], T{});
        if (read) sum = mla(fb, y[i], sum);
        y[i] = sum;
    }
}

// y = conj(x) z, entry by entry.
template <class T>
__device__ void multiply(uint64_t count, const T* x, const T* z, T* y) {
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x)
        y[i] = cmla(x[i], z[i], T{});
}

constexpr int TILE = 16;
constexpr int STRIP = 32;

// X^H Y: a block sums the rows it walks for a tile of 16 x 16 pairs of columns, kept as [block][p * q].
template <class T>
__device__ void gram(uint64_t rows, uint32_t p, uint32_t q, const T* x, const T* y, C64* sums) {
    __shared__ T sx[STRIP][TILE + 1], sy[STRIP][TILE + 1];
    const uint32_t tiles_q = (q + TILE - 1) / TILE;
    const uint32_t i0 = blockIdx.y / tiles_q * TILE, j0 = blockIdx.y % tiles_q * TILE;
    const uint32_t i = threadIdx.x / TILE, j = threadIdx.x % TILE;
    C64 sum{};
    for (uint64_t first = blockIdx.x * (uint64_t)STRIP; first < rows; first += (uint64_t)gridDim.x * STRIP) {
        for (uint32_t t = threadIdx.x; t < STRIP * TILE; t += THREADS) {
            const uint32_t r = t / TILE, c = t % TILE;
            const bool inside = first + r < rows;
            sx[r][c] = inside && i0 + c < p ? x[(first + r) * p + i0 + c] : T{};
            sy[r][c] = inside && j0 + c < q ? y[(first + r) * q + j0 + c] : T{};
        }
        __syncthreads();
        T part{};
#pragma unroll 8
        for (uint32_t r = 0; r < STRIP; ++r) part = cmla(sx[r][i], sy[r][j], part);
        const C64 w = wide(part);
        sum.re += w.re;
        sum.im += w.im;
        __syncthreads();
    }
    if (i0 + i < p && j0 + j < q) sums[(uint64_t)blockIdx.x * p * q + (uint64_t)(i0 + i) * q + j0 + j] = sum;
}

// Column-wise <x|y>, kept as [block][columns]; `width`, a power of two, threads side by side walk as many columns.
template <class T>
__device__ void dots(uint64_t rows, uint32_t columns, uint32_t width, const T* x, const T* y, C64* sums) {
    __shared__ C64 shared[THREADS];
    const uint32_t c = blockIdx.y * width + threadIdx.x % width, high = THREADS / width;
    C64 sum{};
    if (c < columns) {
        for (uint64_t row = blockIdx.x * (uint64_t)high + threadIdx.x / width; row < rows; row += (uint64_t)gridDim.x * high)
            sum = cmla(wide(x[row * columns + c]), wide(y[row * columns + c]), sum);
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < width && c < columns) {
        C64 total{};
        for (uint32_t t = threadIdx.x; t < THREADS; t += width) {
            total.re += shared[t].re;
            total.im += shared[t].im;
        }
        sums[(uint64_t)blockIdx.x * columns + c] = total;
    }
}

// Y = X C + b Y, a thread for each number of Y.
template <class T>
__device__ void combine(uint64_t rows, uint32_t p, uint32_t q, const T* x, const T* c, double b, T* y) {
    using Real = typename Traits<T>::Real;
    const uint64_t count = rows * q;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t row = i / q;
        const uint32_t j = (uint32_t)(i - row * q);
        T sum{};
        if (b != 0.0) sum = mla((Real)b, y[i], T{});
        for (uint32_t k = 0; k < p; ++k) sum = mla(x[row * p + k], c[k * q + j], sum);
        y[i] = sum;
    }
}

// y = x / (shift - d), the denominator kept away from zero; `d` is one real column.
template <class T>
__device__ void precondition(uint64_t rows, uint32_t columns, uint32_t first, uint32_t width,
                             const typename Traits<T>::Real* d, const Factors& shift, double floor, const T* x, T* y) {
    using Real = typename Traits<T>::Real;
    const uint64_t count = rows * width;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint32_t c = (uint32_t)(i % width);
        const uint64_t row = i / width, at = row * columns + first + c;
        double below = shift.of[c].re - (double)d[row];
        if (fabs(below) < floor) below = below < 0.0 ? -floor : floor;
        y[at] = mla((Real)(1.0 / below), x[at], T{});
    }
}

// Copies `width` columns from `from` on to those from `to` on.
template <class T>
__device__ void copy_columns(uint64_t rows, uint32_t width, const T* x, uint32_t x_columns, uint32_t from, T* y,
                             uint32_t y_columns, uint32_t to) {
    const uint64_t count = rows * width;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t row = i / width, c = i - row * width;
        y[row * y_columns + to + c] = x[row * x_columns + from + c];
    }
}

template <class T, class U>
__device__ void convert(uint64_t count, const T* x, U* y) {
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x)
        y[i] = Narrow<U>::of(wide(x[i]));
}

template <class T>
__device__ void set_entries(uint64_t count, const uint64_t* at, const C64* values, T* y) {
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x)
        y[at[i]] = Narrow<T>::of(values[i]);
}

// kind: 0 signs, 1 phases, 2 Gaussian.
template <class T>
__device__ void fill(uint64_t rows, uint32_t columns, uint64_t seed, uint32_t stream, uint64_t first_row,
                     uint32_t first_column, uint32_t kind, T* y) {
    constexpr double TAU = 6.283185307179586476925286766559;
    const uint64_t count = rows * columns;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t row = i / columns;
        const uint4 w = philox(seed, stream, first_row + row, first_column + (uint32_t)(i - row * columns));
        C64 z;
        if (kind == 0) {
            z = {w.x >> 31 ? -1.0 : 1.0, 0.0};
        } else if (kind == 1) {
            double s, c;
            sincos(TAU * unit(w.x, w.y), &s, &c);
            z = {c, s};
        } else {
            double s, c;
            const double radius = sqrt(-2.0 * log(unit(w.x, w.y)));
            sincos(TAU * unit(w.z, w.w), &s, &c);
            const double scale = Traits<T>::complex ? 0.70710678118654752440 : 1.0;
            z = {radius * c * scale, radius * s * scale};
        }
        y[i] = Narrow<T>::of(z);
    }
}

#define KERNELS(TYPE, T, P)                                                                                            \
    extern "C" __global__ void axpby_##TYPE(uint64_t rows, uint32_t columns, uint32_t first, uint32_t width, Factors a, \
                                            const T* x, Factors b, uint32_t read, T* y) {                              \
        axpby(rows, columns, first, width, a, x, b, read != 0, y);                                                     \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) axpby_all_##TYPE(uint64_t count, C64 a, const T* x, C64 b,  \
                                                                           uint32_t read, T* y) {                      \
        axpby_all<T, P>(count, a, x, b, read != 0, y);                                                                 \
    }                                                                                                                  \
    extern "C" __global__ void multiply_##TYPE(uint64_t count, const T* x, const T* z, T* y) { multiply(count, x, z, y); } \
    extern "C" __global__ void __launch_bounds__(THREADS) gram_##TYPE(uint64_t rows, uint32_t p, uint32_t q, const T* x, \
                                                                      const T* y, C64* sums) {                         \
        gram(rows, p, q, x, y, sums);                                                                                  \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) dots_##TYPE(uint64_t rows, uint32_t columns, uint32_t width, \
                                                                      const T* x, const T* y, C64* sums) {             \
        dots(rows, columns, width, x, y, sums);                                                                        \
    }                                                                                                                  \
    extern "C" __global__ void combine_##TYPE(uint64_t rows, uint32_t p, uint32_t q, const T* x, const T* c, double b, T* y) { \
        combine(rows, p, q, x, c, b, y);                                                                               \
    }                                                                                                                  \
    extern "C" __global__ void precondition_##TYPE(uint64_t rows, uint32_t columns, uint32_t first, uint32_t width,    \
                                                   const typename Traits<T>::Real* d, Factors shift, double floor,     \
                                                   const T* x, T* y) {                                                 \
        precondition(rows, columns, first, width, d, shift, floor, x, y);                                              \
    }                                                                                                                  \
    extern "C" __global__ void copy_columns_##TYPE(uint64_t rows, uint32_t width, const T* x, uint32_t x_columns,      \
                                                   uint32_t from, T* y, uint32_t y_columns, uint32_t to) {             \
        copy_columns(rows, width, x, x_columns, from, y, y_columns, to);                                               \
    }                                                                                                                  \
    extern "C" __global__ void convert_##TYPE##_f32(uint64_t count, const T* x, F32* y) { convert(count, x, y); }      \
    extern "C" __global__ void convert_##TYPE##_f64(uint64_t count, const T* x, F64* y) { convert(count, x, y); }      \
    extern "C" __global__ void convert_##TYPE##_c32(uint64_t count, const T* x, C32* y) { convert(count, x, y); }      \
    extern "C" __global__ void convert_##TYPE##_c64(uint64_t count, const T* x, C64* y) { convert(count, x, y); }      \
    extern "C" __global__ void set_entries_##TYPE(uint64_t count, const uint64_t* at, const C64* values, T* y) {       \
        set_entries(count, at, values, y);                                                                             \
    }                                                                                                                  \
    extern "C" __global__ void fill_##TYPE(uint64_t rows, uint32_t columns, uint64_t seed, uint32_t stream,            \
                                           uint64_t first_row, uint32_t first_column, uint32_t kind, T* y) {           \
        fill(rows, columns, seed, stream, first_row, first_column, kind, y);                                           \
    }

KERNELS(f32, F32, 4)
KERNELS(f64, F64, 2)
KERNELS(c32, C32, 2)
KERNELS(c64, C64, 1)

// out[group][i] = the sum over blocks of sums[group][block][i], in a fixed order: partial sums of many blocks at a time.
extern "C" __global__ void __launch_bounds__(THREADS) reduce(uint32_t blocks, uint32_t count, const double* sums, double* out) {
    __shared__ double shared[THREADS];
    const double* mine = sums + (uint64_t)blockIdx.x * blocks * count;
    for (uint32_t i = blockIdx.y; i < count; i += gridDim.y) {
        double sum = 0.0;
        for (uint32_t b = threadIdx.x; b < blocks; b += THREADS) sum += mine[(uint64_t)b * count + i];
        shared[threadIdx.x] = sum;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0) out[(uint64_t)blockIdx.x * count + i] = shared[0];
        __syncthreads();
    }
}
