// Rows on their way between parts of a matrix. Through the host's memory a row is the real parts of all columns, then
// the imaginary ones; here both stand side by side. `lanes` reals a row, half of them imaginary if `complex`. Between
// GPUs that reach each other's memory rows travel as they are.
#include "boundary.cuh"

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

// w[rows] += d, and, where `sums` is given, the sums of d v over the rows, kept as [block][lanes]; `width`, a power of
// two, threads side by side walk as many lanes.
template <class F>
__device__ void add_rows(uint64_t count, uint32_t lanes, uint32_t width, const uint64_t* rows, const F* d, const F* v, F* w,
                         double* sums) {
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
    const double total = sum_of_lane<THREADS>(sum, width);
    if (threadIdx.x < width && lane < lanes) sums[(uint64_t)blockIdx.x * lanes + lane] = total;
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

// Writes the listed rows, `each` units long, to the memory of the neighbours that read them, then tells `told` of them
// the pass: those of neighbour n are the ones from starts[n] to starts[n + 1], and go one after the other from to[n]
// on, or from to[neighbours + n] in odd passes. The last block to end tells, so that all that was written is there
// before, and counts the pass: counters are the blocks that have ended, and the passes.
template <class T>
__device__ void push_rows(uint32_t neighbours, uint32_t told, uint32_t each, const uint64_t* rows, const uint64_t* starts,
                          const uint64_t* to, const uint64_t* flags, const T* x, uint32_t* counters) {
    constexpr int TOGETHER = 4;
    const uint64_t all = starts[neighbours] * each, stride = (uint64_t)gridDim.x * blockDim.x;
    const uint32_t pass = *(volatile uint32_t*)(counters + 1) + 1;
    if (pass % 2 == 1) to += neighbours;
    uint32_t n = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < all;) {
        T* place[TOGETHER];
        T read[TOGETHER];
        int count = 0;
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) {
            if (i < all) {
                const uint64_t at = all >> 32 ? i / each : (uint32_t)i / each;
                while (at >= starts[n + 1]) ++n;
                place[k] = reinterpret_cast<T*>(to[n]) + (i - starts[n] * each);
                read[k] = x[rows[at] * each + (i - at * each)];
                count = k + 1;
                i += stride;
            }
        }
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) {
            if (k < count) *place[k] = read[k];
        }
    }
    if (told > 0) __threadfence_system();
    __syncthreads();
    if (threadIdx.x > 0) return;
    if (atomicAdd(counters, 1u) < gridDim.x - 1) return;
    counters[0] = 0;
    counters[1] = pass;
    __threadfence_system();
    for (n = 0; n < told; ++n) *reinterpret_cast<volatile uint32_t*>(flags[n]) = pass;
}

// Waits until all parts but this one have written the rows of a pass.
extern "C" __global__ void __launch_bounds__(host::assembly::WAITING) await_parts(uint32_t parts, uint32_t own,
                                                                                   const char* landing, uint32_t pass) {
    for (uint32_t n = threadIdx.x; n < parts; n += host::assembly::WAITING) {
        if (n != own) await_pass(landing, n, pass);
    }
}

// Waits until all neighbours have written the rows of this GPU's last pass, then w += alpha A h on the boundary rows,
// with the rows h that have come, and, where `sums` is given, the sums of what `Re <w|v>` grows by, kept as
// [block][lanes]; threads as in `add_rows`. Its own rows have left before it begins, so that nobody waits in a circle.
// The pass is what the counters say, if there are any.
template <class V, int P>
__device__ void add_boundary(const Boundary<V>& a, uint32_t lanes, uint32_t width, uint32_t pass, double alpha, const V* v, V* w,
                             double* sums) {
    if (a.counters) pass = a.counters[1];
    a.await(pass);
    const uint32_t first = (blockIdx.y * width + threadIdx.x % width) * P, high = THREADS / width;
    double sum[P]{};
    if (first < lanes) {
        const BoundaryShare share{lanes, first, blockIdx.x * (uint64_t)high + threadIdx.x / width, gridDim.x * (uint64_t)high};
        const auto read = [](const auto* at) { return load(at); };
        add_boundary_rows<P, 2>(a, share, pass, alpha, v, w, sums != nullptr, sum, read);
    }
    if (!sums) return;
#pragma unroll
    for (int p = 0; p < P; ++p) {
        const double total = sum_of_lane<THREADS>(sum[p], width);
        if (threadIdx.x < width && first < lanes) sums[(uint64_t)blockIdx.x * lanes + first + p] = total;
    }
}

#define PUSH(UNIT, T)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(host::link::SENDING_THREADS) push_rows_##UNIT(                            \
        uint32_t neighbours, uint32_t told, uint32_t each, const uint64_t* rows, const uint64_t* starts,                   \
        const uint64_t* to, const uint64_t* flags, const T* x, uint32_t* counters) {                                       \
        push_rows(neighbours, told, each, rows, starts, to, flags, x, counters);                                           \
    }

PUSH(4, uint32_t)
PUSH(8, uint2)
PUSH(16, uint4)

#define BOUNDARY(TYPE, V, P)                                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS, host::link::ADDING) add_boundary_##TYPE##_p##P(                  \
        Boundary<V> a, uint32_t lanes, uint32_t width, uint32_t pass, double alpha, const V* v, V* w, double* sums) {      \
        add_boundary<V, P>(a, lanes, width, pass, alpha, v, w, sums);                                                      \
    }

BOUNDARY(f32, F32, 1)
BOUNDARY(f32, F32, 2)
BOUNDARY(f32, F32, 4)
BOUNDARY(f64, F64, 1)
BOUNDARY(f64, F64, 2)
BOUNDARY(c32, C32, 1)
BOUNDARY(c32, C32, 2)
BOUNDARY(c64, C64, 1)
