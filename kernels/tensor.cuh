// Small products of doubles on the tensor cores, and numbers on their way to shared memory. In all fragments lane 4 g +
// t of a warp has row g (and g + 8) of the left factor and of the sum, column g of the right one, and the numbers 2 t
// and 2 t + 1 along a row of the sum.
#pragma once
#include <cstdint>

// Hopper takes 16 x 8 x 8 at full speed; the cards before it 8 x 8 x 4 only.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define LARGE_STEPS 1
#else
#define LARGE_STEPS 0
#endif

// sum += L R for two blocks of 8 rows, 8 columns and 8 steps: `a[rows][half]`, `b[half]` with steps t and t + 4.
__device__ __forceinline__ void multiply_add(double (&upper)[2], double (&lower)[2], const double (&a)[2][2],
                                             const double (&b)[2]) {
#if LARGE_STEPS
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(upper[0]), "+d"(upper[1]), "+d"(lower[0]), "+d"(lower[1])
        : "d"(a[0][0]), "d"(a[1][0]), "d"(a[0][1]), "d"(a[1][1]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
    for (int q = 0; q < 2; ++q) {
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
            : "+d"(upper[0]), "+d"(upper[1])
            : "d"(a[0][q]), "d"(b[q]));
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
            : "+d"(lower[0]), "+d"(lower[1])
            : "d"(a[1][q]), "d"(b[q]));
    }
#endif
}

// sum += L R for a block of 16 rows, 8 columns and 4 steps: `a[half]` has rows g and g + 8 at step t,
// as `b` has column g.
__device__ __forceinline__ void multiply_add(double (&sum)[4], const double (&a)[2], double b) {
#if LARGE_STEPS
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
        : "d"(a[0]), "d"(a[1]), "d"(b));
#else
#pragma unroll
    for (int half = 0; half < 2; ++half)
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
            : "+d"(sum[2 * half]), "+d"(sum[2 * half + 1])
            : "d"(a[half]), "d"(b));
#endif
}

// Starts to bring a number to shared memory; a zero if `there` is not.
template <class S>
__device__ __forceinline__ void bring(S *to, const S *from, bool there) {
    const uint32_t address = uint32_t(__cvta_generic_to_shared(to));
    if (sizeof(S) == 8) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(address), "l"(from), "r"(there ? 8 : 0));
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(there ? 16 : 0));
    }
}
