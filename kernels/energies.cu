// Local energies of walkers: the kinetic one through the inverse matrices, Fourier potentials, and Ewald's sums.
// Numbers of single electrons and of blocks of waves are added up in a fixed order at the end.
// Floor of a walker of N electrons, n of each spin: the kinetic energy takes B and the four planes of the orbitals once
// (five where they are complex) and 8 n^2 flops a filling, besides the functions of N^2 pairs; a Fourier potential a
// sine and a cosine for every electron and wave; Ewald's sums erfc for N^2/2 pairs, of more images where several are
// within the cut, and 14 flops for every electron and wave. Bytes matter in the kinetic energy alone.

#include "walkers.cuh"

namespace {

constexpr int WAVES = host::walkers_energies::WAVES;
constexpr int REACH = 32;  // The largest number of a wave along a reciprocal vector.
constexpr int GROUP = 16;  // Electrons whose phases are kept at once.

struct Matrix {
    double x[3][3];
};
HOST_LAYOUT_walkers_layout_WaveMatrixArgument(Matrix);

// Gradient and Laplacian of J by an electron. By a warp; all lanes get them.
__device__ inline void slope_of(const Walk& w, uint32_t walker, uint32_t i, double (&gradient)[3], double& laplacian) {
    const double *x = w.positions + 3 * uint64_t(walker) * w.electrons, *own = x + 3 * i;
    double sum[4] = {}, u[3];
    auto add = [&](const double* other, double first, double second, const double (&v)[3], double r) {
        for (int d = 0; d < 3; ++d) sum[d] += first * v[d] / r;
        sum[3] += second + 2.0 * first / r;
    };
    if (w.pairs > 0) {
        for (uint32_t j = threadIdx.x % WARP; j < w.electrons; j += WARP) {
            if (j == i) continue;
            double v[3] = {own[0] - x[3 * j], own[1] - x[3 * j + 1], own[2] - x[3 * j + 2]};
            const double r = fmax(nearest(*w.images, v), 1e-300);
            const uint32_t opposite = (i < w.up) != (j < w.up);
            double first = 0.0, second = 0.0;
            for (uint32_t f = 0; f < w.pairs; ++f) {
                radial<true>(w.radials[2 * f + opposite], r, u);
                first += u[1];
                second += u[2];
            }
            add(x + 3 * j, first, second, v, r);
        }
    }
    for (uint32_t c = threadIdx.x % WARP; c < w.bodies; c += WARP) {
        const double* const at = w.centres + 3 * c;
        double v[3] = {own[0] - at[0], own[1] - at[1], own[2] - at[2]};
        const double r = fmax(nearest(*w.images, v), 1e-300);
        radial<true>(w.radials[2 * w.pairs + c], r, u);
        add(at, u[1], u[2], v, r);
    }
    for (int d = 0; d < 3; ++d) gradient[d] = warp_sum(sum[d]);
    laplacian = warp_sum(sum[3]);
}

// lap D/D and grad D/D by an electron, real parts: its orbitals' planes with its rows of B, one a filling, `apart`
// numbers from one to the next, by their weights, `stride` apart. By a warp.
template <class F>
__device__ inline void logarithmic(const F* row, uint64_t plane, const double* b, uint64_t apart, const C64* weights,
                                   uint32_t stride, const uint32_t* filling, uint32_t fillings, uint32_t n, double3,
                                   const double*, double (&gradient)[3], double& laplacian) {
    double sum[4] = {};
    for (uint32_t f = 0; f < fillings; ++f) {
        const double weight = weights[f * uint64_t(stride)].re;
        for (uint32_t l = threadIdx.x % WARP; l < n; l += WARP) {
            const F* const at = row + filling[f * n + l];
            const double factor = weight * b[f * apart + l];
#pragma unroll
            for (int d = 0; d < 4; ++d) sum[d] = fma(double(at[(d + 1) * plane]), factor, sum[d]);
        }
    }
    for (int d = 0; d < 3; ++d) gradient[d] = warp_sum(sum[d]);
    laplacian = warp_sum(sum[3]);
}

template <class F>
__device__ inline void logarithmic(const F* row, uint64_t plane, const C64* b, uint64_t apart, const C64* weights,
                                   uint32_t stride, const uint32_t* filling, uint32_t fillings, uint32_t n, double3 k,
                                   const double* r, double (&gradient)[3], double& laplacian) {
    C64 sum[5] = {};
    for (uint32_t f = 0; f < fillings; ++f) {
        const C64 weight = weights[f * uint64_t(stride)];
        for (uint32_t l = threadIdx.x % WARP; l < n; l += WARP) {
            const F* const at = row + 2 * filling[f * n + l];
            const C64 factor = times(weight, b[f * apart + l]);
#pragma unroll
            for (int d = 0; d < 5; ++d)
                sum[d] = mla(C64{double(at[d * plane]), double(at[d * plane + 1])}, factor, sum[d]);
        }
    }
    for (int d = 0; d < 5; ++d) sum[d] = warp_sum(sum[d]);
    // exp(i k . r) u: the gradient is turn (grad u + i k u), the Laplacian turn (lap u + 2 i k . grad u - k^2 u).
    C64 turn;
    sincos(k.x * r[0] + k.y * r[1] + k.z * r[2], &turn.im, &turn.re);
    const double q[3] = {k.x, k.y, k.z};
    C64 along{};
    double square = 0.0;
    for (int d = 0; d < 3; ++d) {
        along = mla(q[d], sum[d + 1], along);
        square += q[d] * q[d];
        gradient[d] = times(turn, C64{sum[d + 1].re - sum[0].im * q[d], sum[d + 1].im + sum[0].re * q[d]}).re;
    }
    laplacian = times(turn, C64{sum[4].re - 2.0 * along.im - square * sum[0].re,
                                sum[4].im + 2.0 * along.re - square * sum[0].im}).re;
}

// -1/2 of what each electron of a spin adds to (lap Psi)/Psi. One warp per electron.
template <class F, class S>
__device__ inline void kinetic(const F* planes, uint32_t lanes, const Walk& w, const S* inverse, const C64* weights,
                               uint32_t stride, uint32_t first, uint32_t n, const uint32_t* filling, uint32_t fillings,
                               double3 k, double* out) {
    const uint32_t own = blockIdx.x * WARPS + threadIdx.x / WARP, walker = blockIdx.y, i = first + own;
    if (own >= n) return;
    const uint64_t plane = uint64_t(w.electrons) * w.walkers * lanes;
    const F* const row = planes + (uint64_t(i) * w.walkers + walker) * lanes;
    const uint64_t at = uint64_t(walker) * w.electrons + i;
    double gradient[3], laplacian;
    logarithmic(row, plane, inverse + (uint64_t(walker) * n + own) * n, uint64_t(stride) * n * n, weights + walker, stride,
                filling, fillings, n, k, w.positions + 3 * at, gradient, laplacian);
    double slope[3] = {}, bend = 0.0;
    if (w.pairs + w.bodies > 0) slope_of(w, walker, i, slope, bend);
    double sum = laplacian + bend;
    for (int d = 0; d < 3; ++d) sum += slope[d] * (slope[d] + 2.0 * gradient[d]);
    if (threadIdx.x % WARP == 0) out[at] = -0.5 * sum;
}

}  // namespace

#define KINETIC(NAME, F, S)                                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        NAME(const F* planes, uint32_t lanes, Walk w, const S* inverse, const C64* weights, uint32_t stride,             \
             uint32_t first, uint32_t n, const uint32_t* filling, uint32_t fillings, double3 k, double* out) {           \
        kinetic(planes, lanes, w, inverse, weights, stride, first, n, filling, fillings, k, out);                        \
    }

KINETIC(energy_kinetic_f32_f64, float, double)
KINETIC(energy_kinetic_f64_f64, double, double)
KINETIC(energy_kinetic_f32_c64, float, C64)
KINETIC(energy_kinetic_f64_c64, double, C64)

// A Fourier potential at every electron: numbers of waves, and twice their coefficients.
extern "C" __global__ void energy_external(Walk w, Matrix inverse, const int* numbers, const double* terms, uint32_t count,
                                           double* out) {
    const uint32_t at = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (at >= w.walkers * w.electrons) return;
    const double* const r = w.positions + 3 * uint64_t(at);
    double t[3], sum = 0.0;
    for (int a = 0; a < 3; ++a) t[a] = inverse.x[a][0] * r[0] + inverse.x[a][1] * r[1] + inverse.x[a][2] * r[2];
    for (int a = 0; a < 3; ++a) t[a] -= rint(t[a]);
    for (uint32_t g = threadIdx.x % WARP; g < count; g += WARP) {
        double sin, cos;
        sincospi(2.0 * (numbers[3 * g] * t[0] + numbers[3 * g + 1] * t[1] + numbers[3 * g + 2] * t[2]), &sin, &cos);
        sum += terms[2 * g] * cos - terms[2 * g + 1] * sin;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) out[at] = sum;
}

// What each electron meets of those before it: erfc(alpha r)/r of all images within `cut`, which come by length, or
// (1 - r/L)^3/r of the nearest if there are none.
extern "C" __global__ void energy_pairs(Walk w, const double* images, uint32_t count, double alpha, double cut, double* out) {
    const uint32_t at = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (at >= w.walkers * w.electrons) return;
    const uint32_t i = at % w.electrons;
    const double *x = w.positions + 3 * uint64_t(at / w.electrons) * w.electrons, *own = x + 3 * i;
    double sum = 0.0;
    for (uint32_t j = threadIdx.x % WARP; j < i; j += WARP) {
        double v[3] = {own[0] - x[3 * j], own[1] - x[3 * j + 1], own[2] - x[3 * j + 2]};
        const double length = nearest(*w.images, v);
        if (count == 0) {
            const double left = 1.0 - length / w.images->radius;
            if (left > 0.0) sum += left * left * left / length;
            continue;
        }
        const double far = (cut / alpha + length) * (cut / alpha + length);
        for (uint32_t k = 0; k < count; ++k) {
            const double* const shift = images + 3 * k;
            if (shift[0] * shift[0] + shift[1] * shift[1] + shift[2] * shift[2] > far) break;
            const double a = v[0] + shift[0], b = v[1] + shift[1], c = v[2] + shift[2];
            const double r = sqrt(a * a + b * b + c * c);
            if (r * alpha <= cut) sum += erfc(alpha * r) / r;
        }
    }
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) out[at] = sum;
}

// weight |sum_i exp(i G . r_i)|^2 / 2 of a block of waves for each walker, a thread a wave.
extern "C" __global__ void __launch_bounds__(WAVES) energy_waves(Walk w, Matrix inverse, const int* numbers,
                                                                const double* weights, uint32_t count, uint32_t reach,
                                                                double* out) {
    // exp(2 pi i n t_a), n = 0 .. reach.
    __shared__ C64 phase[GROUP][3][REACH + 1];
    __shared__ double fraction[GROUP][3];
    __shared__ double sums[WAVES / WARP];
    const uint32_t walker = blockIdx.y, g = blockIdx.x * WAVES + threadIdx.x;
    int n[3] = {};
    if (g < count)
        for (int a = 0; a < 3; ++a) n[a] = numbers[3 * g + a];
    C64 total{};
    for (uint32_t start = 0; start < w.electrons; start += GROUP) {
        __syncthreads();
        if (threadIdx.x < 3 * GROUP) {
            const uint32_t e = threadIdx.x / 3, a = threadIdx.x % 3;
            if (start + e < w.electrons) {
                const double* const r = w.positions + 3 * (uint64_t(walker) * w.electrons + start + e);
                double t = inverse.x[a][0] * r[0] + inverse.x[a][1] * r[1] + inverse.x[a][2] * r[2];
                t -= rint(t);
                fraction[e][a] = t;
                C64 base, power{1.0, 0.0};
                sincospi(2.0 * t, &base.im, &base.re);
                for (uint32_t m = 0; m <= min(reach, uint32_t(REACH)); ++m) {
                    phase[e][a][m] = power;
                    power = times(power, base);
                }
            }
        }
        __syncthreads();
        for (uint32_t e = 0; e < min(uint32_t(GROUP), w.electrons - start); ++e) {
            if (reach > REACH) {
                // Cells so long that the table does not hold their waves.
                C64 z;
                sincospi(2.0 * (n[0] * fraction[e][0] + n[1] * fraction[e][1] + n[2] * fraction[e][2]), &z.im, &z.re);
                total = plus(total, z);
                continue;
            }
            C64 z[3];
            for (int a = 0; a < 3; ++a) {
                z[a] = phase[e][a][abs(n[a])];
                if (n[a] < 0) z[a].im = -z[a].im;
            }
            total = plus(total, times(times(z[0], z[1]), z[2]));
        }
    }
    double sum = g < count ? 0.5 * weights[g] * squared(total) : 0.0;
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        double all = 0.0;
        for (int k = 0; k < WAVES / WARP; ++k) all += sums[k];
        out[uint64_t(walker) * gridDim.x + blockIdx.x] = all;
    }
}

// Rows of numbers to their sums, in a fixed order.
extern "C" __global__ void __launch_bounds__(THREADS) energy_sum(const double* rows, uint32_t length, double* out) {
    double sum = 0.0;
    for (uint32_t i = threadIdx.x; i < length; i += THREADS) sum += rows[uint64_t(blockIdx.x) * length + i];
    __shared__ double sums[8];
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        double all = 0.0;
        for (int k = 0; k < 8; ++k) all += sums[k];
        out[blockIdx.x] = all;
    }
}
