// Block-vector algebra. Blocks are row-major: `columns` numbers a row.
#include "common.cuh"

constexpr int MOST_FACTORS = host::algebra::MOST_FACTORS;

// One factor for each column of a tile of columns.
struct Factors {
    C64 of[MOST_FACTORS];
};
HOST_LAYOUT_algebra_FactorsArgument(Factors);

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

// What sums are kept in: double precision, of the kind of the numbers.
template <class T>
struct Wide {
    using Sum = double;
    static __device__ __forceinline__ double of(T x) { return (double)x; }
    static __device__ __forceinline__ C64 complex(double x) { return {x, 0.0}; }
};
template <class F>
struct Wide<Complex<F>> {
    using Sum = C64;
    static __device__ __forceinline__ C64 of(Complex<F> x) { return wide(x); }
    static __device__ __forceinline__ C64 complex(C64 x) { return x; }
};

// Pairs of columns of a thread's tile: 4 x 4.
constexpr int EACH = 4;

// X^H Y: a block sums the rows it walks for TILE x TILE pairs of columns, kept as [block][p * q]. A group of threads,
// 16 pairs each, takes a row of the strip in shared memory; the groups' sums are added at the end.
template <class T, int TILE>
__device__ void gram(uint64_t rows, uint32_t p, uint32_t q, const T* x, const T* y, C64* sums) {
    constexpr int SIDE = TILE / EACH, GROUP = SIDE * SIDE, GROUPS = THREADS / GROUP;
    constexpr int STRIP = 16384 / (int)sizeof(T) / TILE;
    using Sum = typename Wide<T>::Sum;
    __shared__ alignas(16) T sx[STRIP * TILE], sy[STRIP * TILE];
    const uint32_t tiles_q = (q + TILE - 1) / TILE;
    const uint32_t i0 = blockIdx.y / tiles_q * TILE, j0 = blockIdx.y % tiles_q * TILE;
    const uint32_t group = threadIdx.x / GROUP, i = threadIdx.x % GROUP / SIDE * EACH, j = threadIdx.x % SIDE * EACH;
    Sum sum[EACH][EACH]{};
    for (uint64_t first = blockIdx.x * (uint64_t)STRIP; first < rows; first += (uint64_t)gridDim.x * STRIP) {
        for (uint32_t t = threadIdx.x; t < STRIP * TILE; t += THREADS) {
            const uint32_t r = t / TILE, c = t % TILE;
            const bool inside = first + r < rows;
            sx[t] = inside && i0 + c < p ? x[(first + r) * p + i0 + c] : T{};
            sy[t] = inside && j0 + c < q ? y[(first + r) * q + j0 + c] : T{};
        }
        __syncthreads();
        for (uint32_t r = group; r < STRIP; r += GROUPS) {
            Sum a[EACH], b[EACH];
#pragma unroll
            for (int k = 0; k < EACH; ++k) {
                a[k] = Wide<T>::of(sx[r * TILE + i + k]);
                b[k] = Wide<T>::of(sy[r * TILE + j + k]);
            }
#pragma unroll
            for (int k = 0; k < EACH; ++k)
#pragma unroll
                for (int l = 0; l < EACH; ++l) sum[k][l] = cmla(a[k], b[l], sum[k][l]);
        }
        __syncthreads();
    }
    // One pair of every thread at a time.
    Sum* shared = reinterpret_cast<Sum*>(sx);
#pragma unroll
    for (int k = 0; k < EACH; ++k)
#pragma unroll
        for (int l = 0; l < EACH; ++l) {
            shared[threadIdx.x] = sum[k][l];
            __syncthreads();
            if (group == 0 && i0 + i + k < p && j0 + j + l < q) {
                C64 total{};
                for (int g = 0; g < GROUPS; ++g) {
                    const C64 part = Wide<T>::complex(shared[g * GROUP + threadIdx.x]);
                    total.re += part.re;
                    total.im += part.im;
                }
                sums[(uint64_t)blockIdx.x * p * q + (uint64_t)(i0 + i + k) * q + j0 + j + l] = total;
            }
            __syncthreads();
        }
}

// X^H Y for a Y of few columns: a thread for each column of X, side by side; `width` is a power of two.
constexpr int FEW = host::algebra::FEW;

template <class T>
__device__ void gram_thin(uint64_t rows, uint32_t p, uint32_t q, uint32_t width, const T* x, const T* y, C64* sums) {
    using Sum = typename Wide<T>::Sum;
    const uint32_t c = blockIdx.y * width + threadIdx.x % width, high = THREADS / width;
    Sum sum[FEW]{};
    if (c < p) {
#pragma unroll 4
        for (uint64_t row = blockIdx.x * (uint64_t)high + threadIdx.x / width; row < rows; row += (uint64_t)gridDim.x * high) {
            const Sum a = Wide<T>::of(x[row * p + c]);
#pragma unroll
            for (int j = 0; j < FEW; ++j)
                if (j < q) sum[j] = cmla(a, Wide<T>::of(y[row * q + j]), sum[j]);
        }
    }
#pragma unroll
    for (int j = 0; j < FEW; ++j) {
        if (j >= q) break;
        const Sum total = sum_of_lane<THREADS>(sum[j], width);
        if (threadIdx.x < width && c < p)
            sums[(uint64_t)blockIdx.x * p * q + (uint64_t)c * q + j] = Wide<T>::complex(total);
    }
}

// Column-wise <x|y>, kept as [block][columns]; `width`, a power of two, threads side by side walk as many columns.
template <class T>
__device__ void dots(uint64_t rows, uint32_t columns, uint32_t width, const T* x, const T* y, C64* sums) {
    const uint32_t c = blockIdx.y * width + threadIdx.x % width, high = THREADS / width;
    C64 sum{};
    if (c < columns) {
#pragma unroll 4
        for (uint64_t row = blockIdx.x * (uint64_t)high + threadIdx.x / width; row < rows; row += (uint64_t)gridDim.x * high)
            sum = cmla(wide(x[row * columns + c]), wide(y[row * columns + c]), sum);
    }
    const C64 total = sum_of_lane<THREADS>(sum, width);
    if (threadIdx.x < width && c < columns) sums[(uint64_t)blockIdx.x * columns + c] = total;
}

// Y = X C + b Y, a thread for each number of Y; `c` gives the numbers of C, by rows.
template <class T, class Numbers>
__device__ __forceinline__ void combined(uint64_t rows, uint32_t p, uint32_t q, const T* x, Numbers c, double b, T* y) {
    using Real = typename Traits<T>::Real;
    const uint64_t count = rows * q;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t row = i / q;
        const uint32_t j = (uint32_t)(i - row * q);
        T sum{};
        if (b != 0.0) sum = mla((Real)b, y[i], T{});
#pragma unroll 4
        for (uint32_t k = 0; k < p; ++k) sum = mla(x[row * p + k], c(k * q + j), sum);
        y[i] = sum;
    }
}

template <class T>
__device__ void combine(uint64_t rows, uint32_t p, uint32_t q, const T* x, const T* c, double b, T* y) {
    combined(rows, p, q, x, [c](uint32_t i) { return c[i]; }, b, y);
}

// With C among the arguments of the launch: for few numbers a copy of their own takes longer than the kernel.
template <class T>
__device__ void combine_few(uint64_t rows, uint32_t p, uint32_t q, const T* x, const Factors& c, double b, T* y) {
    combined(rows, p, q, x, [&c](uint32_t i) { return Narrow<T>::of(c.of[i]); }, b, y);
}

// c = d_i wanted - found, or -found without d: what a deflation adds of each vector of its space, in `q` columns.
template <class T>
__device__ void deflation(uint32_t count, uint32_t q, const double* d, const C64* wanted, const C64* found, T* c) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    C64 z{-found[i].re, -found[i].im};
    if (d) {
        z.re += d[i / q] * wanted[i].re;
        z.im += d[i / q] * wanted[i].im;
    }
    c[i] = Narrow<T>::of(z);
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
        y[at] = mla((Real)(1.0 / away_from_zero(shift.of[c].re, (double)d[row], floor)), x[at], T{});
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

// Random numbers of the rows from `first_row` on; with `starts`,
// of runs of `length` rows of the whole that begin there.
template <class T>
__device__ void fill(uint64_t rows, uint32_t columns, uint64_t seed, uint32_t stream, uint64_t first_row,
                     const uint64_t* starts, uint64_t length, uint32_t first_column, uint32_t kind, T* y) {
    const uint64_t count = rows * columns;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t row = i / columns;
        const uint64_t number = starts ? starts[row / length] + row % length : first_row + row;
        const uint4 w = philox(seed, stream, number, first_column + (uint32_t)(i - row * columns));
        C64 z;
        if (kind == host::cuda::SIGN) {
            z = {w.x >> 31 ? -1.0 : 1.0, 0.0};
        } else if (kind == host::cuda::PHASE) {
            turn(unit(w.x, w.y), z.im, z.re);
        } else {
            normals(w, z.re, z.im);
            const double scale = Traits<T>::complex ? 0.70710678118654752440 : 1.0;
            z = {z.re * scale, z.im * scale};
        }
        y[i] = Narrow<T>::of(z);
    }
}

#define GRAM(TYPE, T, TILE)                                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS) gram##TILE##_##TYPE(uint64_t rows, uint32_t p, uint32_t q,    \
                                                                              const T* x, const T* y, C64* sums) {     \
        gram<T, TILE>(rows, p, q, x, y, sums);                                                                         \
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
    GRAM(TYPE, T, 8)                                                                                                   \
    GRAM(TYPE, T, 16)                                                                                                  \
    GRAM(TYPE, T, 32)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) gram_thin_##TYPE(uint64_t rows, uint32_t p, uint32_t q,      \
                                                                           uint32_t width, const T* x, const T* y,     \
                                                                           C64* sums) {                                \
        gram_thin(rows, p, q, width, x, y, sums);                                                                      \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) dots_##TYPE(uint64_t rows, uint32_t columns, uint32_t width, \
                                                                      const T* x, const T* y, C64* sums) {             \
        dots(rows, columns, width, x, y, sums);                                                                        \
    }                                                                                                                  \
    extern "C" __global__ void combine_##TYPE(uint64_t rows, uint32_t p, uint32_t q, const T* x, const T* c, double b, T* y) { \
        combine(rows, p, q, x, c, b, y);                                                                               \
    }                                                                                                                  \
    extern "C" __global__ void combine_few_##TYPE(uint64_t rows, uint32_t p, uint32_t q, const T* x, Factors c, double b, \
                                                  T* y) {                                                              \
        combine_few(rows, p, q, x, c, b, y);                                                                           \
    }                                                                                                                  \
    extern "C" __global__ void deflation_##TYPE(uint32_t count, uint32_t q, const double* d, const C64* wanted,        \
                                                const C64* found, T* c) {                                              \
        deflation(count, q, d, wanted, found, c);                                                                      \
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
                                           uint64_t first_row, const uint64_t* starts, uint64_t length,                \
                                           uint32_t first_column, uint32_t kind, T* y) {                               \
        fill(rows, columns, seed, stream, first_row, starts, length, first_column, kind, y);                           \
    }

KERNELS(f32, F32, 4)
KERNELS(f64, F64, 2)
KERNELS(c32, C32, 2)
KERNELS(c64, C64, 1)

// out[group][i] = the sum over blocks of sums[group][block][i], in a fixed order:
// partial sums of many blocks at a time.
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
