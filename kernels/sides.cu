// Which side of the chip a multiprocessor is on. The second cache has two halves, and an atomic addition takes longer
// where the address belongs to the other one.
#include "common.cuh"

// Multiprocessors that are told apart.
constexpr uint32_t MOST = host::sides::MOST;

// The shortest latency, in cycles, of additions to every `stride`-th number from each multiprocessor: by its number
// (those from `MOST` on are left out) and address. `out` begins with large numbers, `at` with zeros.
extern "C" __global__ void latencies(unsigned* at, uint32_t stride, uint32_t count, unsigned* out) {
    uint32_t processor;
    asm("mov.u32 %0, %%smid;" : "=r"(processor));
    if (threadIdx.x != 0 || processor >= MOST) return;
    for (uint32_t i = 0; i < count; ++i) {
        unsigned shortest = ~0u;
        for (int repeat = 0; repeat < 12; ++repeat) {
            const long long begin = clock64();
            // What comes back is used, so that it is waited for; it is always 0.
            const unsigned zero = atomicAdd(at + (uint64_t)i * stride, 0u);
            shortest = min(shortest, (unsigned)(clock64() - begin) + zero);
        }
        atomicMin(out + processor * count + i, shortest);
    }
}
