// Products of the Wilson-Dirac operator on boxes of two and more GPUs that are cut in time, exchange and all, in one
// launch. Some blocks, by turns with the others, make what leaves through the faces and write it to the neighbours; the
// last of them tells these. Sites at the faces come later: they wait for what comes from beyond, and are whole at once.
// No block waits before all that leaves is on its way, so that boxes do not wait for each other in a circle.
//
// Floor: that of the product, 24 + 12 reals for a site of a face to leave, and 12 for what comes.
#include "faces.cuh"
#include "hops.cuh"

constexpr int BLOCK = host::wilson::BLOCK;

// How half-spinors pass the faces of the first time and of the last while a product is made: what leaves, what comes,
// and what tells each neighbour the pass.
struct FacesCrossing {
    FacesArgument leaving;
    const void* came[2];
    void* numbers[2];
    // Blocks that have written what leaves.
    uint32_t* left;
    // Blocks of each side of the chip that make what leaves: of the first ones every 2^apart-th.
    uint32_t turns, apart;
};
HOST_LAYOUT_faces_FacesCrossing(FacesCrossing);

// What comes from beyond the faces.
struct Arrivals {
    const FacesCrossing& from;
    const uint32_t (&dims)[4];
    static constexpr bool LINKED = true;

    static __device__ __forceinline__ bool is_cut(int mu) { return mu == 3; }

    // Whether something comes for a site.
    __device__ __forceinline__ bool come_for(const Site& here) const { return here.x[3] == 0 || here.x[3] + 1 == dims[3]; }

    // Component `half` of what comes for a site's hop; returns its factor.
    template <class F, int MU, bool BACKWARD>
    __device__ __forceinline__ F take(uint32_t site, uint32_t half, C<F> (&h)[3]) const {
        constexpr uint32_t FACE = !BACKWARD;
        const FacesArgument& a = from.leaving;
        await_pass(a.landing, FACE, a.pass);
        const uint32_t slice = dims[0] * dims[1] * dims[2], across = a.before[FACE + 1] - a.before[FACE];
        const uint32_t at = (BACKWARD ? site : site - (dims[3] - 1) * slice) >> (a.halved >> FACE & 1);
        // Written while this kernel runs: not by way of the cache for what never changes.
        const auto* all = reinterpret_cast<const typename Reals<F>::Two*>(from.came[FACE]) + at;
#pragma unroll
        for (int c = 0; c < 3; ++c) {
            const auto z = all[(uint64_t)(3 * half + c) * across];
            h[c] = {z.x, z.y};
        }
        return (F)a.sign[FACE];
    }
};

// The part of what leaves that is a block's, of so many; the last one tells the neighbours.
template <class F, int N>
__device__ __forceinline__ void leave(const FacesCrossing& f, uint32_t block, uint32_t blocks) {
    const FacesArgument& a = f.leaving;
    const uint32_t i = block * blockDim.x + threadIdx.x;
    if (i < units(a)) {
        const Unit unit(a, i);
        if (unit.there) leave_face<F, N>(a, unit, 0);
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x > 0) return;
    if (atomicAdd(f.left, 1u) + 1 < blocks) return;
    *f.left = 0;
    __threadfence_system();
    for (uint32_t n = 0; n < a.faces; ++n)
        asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(f.numbers[n]), "r"(a.pass) : "memory");
}

template <class F, int N, bool HALVES>
__device__ __forceinline__ void linked(const WilsonArgument& a, const FacesCrossing& f) {
    const uint32_t many = a.side + f.turns;
    const Turn turn = next_turn(a, many);
    const uint32_t leaving = turn.i >> f.apart;
    if (leaving < f.turns && leaving << f.apart == turn.i) {
        const uint32_t sides = gridDim.x / many;
        leave<F, N>(f, leaving * sides + turn.side, f.turns * sides);
        return;
    }
    const uint32_t block = turn_of(a, turn.side, turn.i - min(leaving + 1, f.turns));
    wilson_packed<F, N, HALVES>(a, Arrivals{f, a.dims}, block);
}

#define LINKED(NAME, F, N, HALVES, BLOCKS)                                                                         \
    extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS) wilson_##NAME##_linked(                             \
        const __grid_constant__ WilsonArgument a, const __grid_constant__ FacesCrossing f) {                       \
        linked<F, N, HALVES>(a, f);                                                                                \
    }

EVERY_PACKED_FORM(LINKED)
