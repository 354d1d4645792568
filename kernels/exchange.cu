// Rows on their way between parts of a matrix. In transit a row is the real parts of all columns, then the imaginary ones;
// here both stand side by side. `lanes` reals a row, half of them imaginary if `complex`.
#include "common.cuh"

// Where a real of a row in transit stands in a row here.
__device__ __forceinline__ uint32_t lane_here(uint32_t lane, uint32_t lanes, uint32_t complex) {
    if (!complex) return lane;
    const uint32_t columns = lanes / 2;
    return lane < columns ? 2 * lane : 2 * (lane - columns) + 1;
}

// The listed rows, one after the other.
template <class F>
__device__ void gather_rows(uint64_t count, uint32_t lanes, uint32_t complex, const uint64_t* rows, const F* x, F* y) {
    const uint64_t all = count * lanes;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < all; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t at = i / lanes;
        y[i] = x[rows[at] * lanes + lane_here((uint32_t)(i - at * lanes), lanes, complex)];
    }
}

// Rows in transit to rows here.
template <class F>
__device__ void spread_rows(uint64_t count, uint32_t lanes, uint32_t complex, const F* x, F* y) {
    const uint64_t all = count * lanes;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < all; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t at = i / lanes;
        y[at * lanes + lane_here((uint32_t)(i - at * lanes), lanes, complex)] = x[i];
    }
}

// w[rows] += d, and, where `sums` is given, the sums of d v over the rows, kept as [block][lanes]; `width`, a power of two,
// threads side by side walk as many lanes.
template <class F>
__device__ void add_rows(uint64_t count, uint32_t lanes, uint32_t width, const uint64_t* rows, const F* d, const F* v, F* w,
                         double* sums) {
    __shared__ double shared[THREADS];
    const uint32_t lane = blockIdx.y * width + threadIdx.x % width, high = THREADS / width;
    double sum = 0.0;
    if (lane < lanes) {
        for (uint64_t i = blockIdx.x * (uint64_t)high + threadIdx.x / width; i < count; i += (uint64_t)gridDim.x * high) {
            const uint64_t at = rows[i] * lanes + lane;
            const F change = d[i * lanes + lane];
            w[at] += change;
            if (sums) sum += (double)change * (double)v[at];
        }
    }
    if (!sums) return;
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < width && lane < lanes) {
        double total = 0.0;
        for (uint32_t t = threadIdx.x; t < THREADS; t += width) total += shared[t];
        sums[(uint64_t)blockIdx.x * lanes + lane] = total;
    }
}

#define KERNELS(TYPE, F)                                                                                                \
    extern "C" __global__ void gather_rows_##TYPE(uint64_t count, uint32_t lanes, uint32_t complex, const uint64_t* rows, \
                                                  const F* x, F* y) {                                                  \
        gather_rows(count, lanes, complex, rows, x, y);                                                                \
    }                                                                                                                  \
    extern "C" __global__ void spread_rows_##TYPE(uint64_t count, uint32_t lanes, uint32_t complex, const F* x, F* y) { \
        spread_rows(count, lanes, complex, x, y);                                                                      \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) add_rows_##TYPE(uint64_t count, uint32_t lanes, uint32_t width, \
                                                                          const uint64_t* rows, const F* d, const F* v, \
                                                                          F* w, double* sums) {                        \
        add_rows(count, lanes, width, rows, d, v, w, sums);                                                            \
    }

KERNELS(f32, float)
KERNELS(f64, double)
