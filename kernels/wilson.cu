// The kernels of the Wilson-Dirac operator on one GPU, or on a box of which the faces are the business of others, and
// of diagonals and orders of spinors.
#include "hops.cuh"

constexpr int BLOCK = host::wilson::BLOCK;

#define PLAIN(NAME, F, N, BLOCKS)                                                                                  \
    extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS) NAME(const __grid_constant__ WilsonArgument a) {     \
        wilson<F, N, false>(a, NoFaces{}, block_of(a));                                                            \
    }
#define PACKED(NAME, F, N, HALVES, BLOCKS)                                                                         \
    extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)                                                    \
        wilson_##NAME(const __grid_constant__ WilsonArgument a) {                                                  \
        wilson_packed<F, N, HALVES>(a, NoFaces{}, block_of(a));                                                    \
    }

PLAIN(wilson_f32_18, float, 18, 4)
PLAIN(wilson_f32_12, float, 12, 4)
PLAIN(wilson_f32_8, float, 8, 5)
PLAIN(wilson_f64_18, double, 18, 4)
PLAIN(wilson_f64_12, double, 12, 3)
PLAIN(wilson_f64_8, double, 8, 3)
EVERY_PACKED_FORM(PACKED)

// w = (alpha f_k + beta) v + gamma w with one factor a component.
struct SiteFactors {
    double of[12];
};
HOST_LAYOUT_wilson_SiteFactors(SiteFactors);

template <class F>
__device__ void site_diagonal(uint32_t sites, uint32_t lanes, const SiteFactors& f, double alpha, double beta, double gamma,
                              const F* v, F* w) {
    const uint64_t count = (uint64_t)sites * 12 * lanes;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t row = i / lanes, group = row / (12 * GROUP), rest = row % (12 * GROUP);
        const uint32_t width = min((uint64_t)GROUP, sites - group * GROUP);
        F y = (F)(alpha * f.of[rest / width] + beta) * v[i];
        if (gamma != 0.0) y = mla((F)gamma, w[i], y);
        w[i] = y;
    }
}

extern "C" __global__ void site_diagonal_f32(uint32_t sites, uint32_t lanes, SiteFactors f, double alpha, double beta,
                                             double gamma, const float* v, float* w) {
    site_diagonal(sites, lanes, f, alpha, beta, gamma, v, w);
}
extern "C" __global__ void site_diagonal_f64(uint32_t sites, uint32_t lanes, SiteFactors f, double alpha, double beta,
                                             double gamma, const double* v, double* w) {
    site_diagonal(sites, lanes, f, alpha, beta, gamma, v, w);
}

// Rows of `columns` numbers of 4 or 8 bytes from the order of the host to that of spinors.
template <class T>
__device__ void gather_sites(uint32_t sites, uint32_t per_site, uint32_t lanes, const T* x, T* y) {
    const uint64_t count = (uint64_t)sites * per_site * lanes;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t row = i / lanes, group = row / (per_site * GROUP), rest = row % (per_site * GROUP);
        const uint32_t width = min((uint64_t)GROUP, sites - group * GROUP);
        const uint64_t site = group * GROUP + rest % width, from = site * per_site + rest / width;
        y[i] = x[from * lanes + i % lanes];
    }
}

extern "C" __global__ void gather_sites_f32(uint32_t sites, uint32_t per_site, uint32_t lanes, const float* x, float* y) {
    gather_sites(sites, per_site, lanes, x, y);
}
extern "C" __global__ void gather_sites_f64(uint32_t sites, uint32_t per_site, uint32_t lanes, const double* x, double* y) {
    gather_sites(sites, per_site, lanes, x, y);
}
