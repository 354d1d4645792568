// What the kernels of walkers share: the wave function and its walkers as `src/backend/cuda/walkers` lays them out, the
// nearest image, and functions of distances.
#pragma once
#include "common.cuh"

constexpr uint32_t WALKERS = host::number_philox::Walkers;  // The stream of random numbers.
constexpr int COEFFICIENTS = host::walkers_layout::COEFFICIENTS;
constexpr int FACES = host::walkers_layout::FACES;
constexpr int WARP = 32;
// Warps of a block, where each has an electron.
constexpr int WARPS = host::walkers::WARPS;
static_assert(WARPS * WARP == THREADS, "blocks are made of whole warps");

struct Images {
    double reduced[3][3];
    double dual[3][3];
    double faces[FACES][4];
    double radius;
    uint64_t count;
};
HOST_LAYOUT_walkers_layout_ImagesArgument(Images);

using host::walkers_layout::RadialKind;

struct Radial {
    uint64_t kind;
    uint64_t count;
    double parameters[4];
    double coefficients[COEFFICIENTS];
};
HOST_LAYOUT_walkers_layout_RadialArgument(Radial);

// What changes from run to run, and what is told after it. `failed`: `NO_NUMBER` or `ON_NODE`.
using host::walkers_layout::NO_NUMBER;
using host::walkers_layout::ON_NODE;

struct Control {
    uint64_t sweep;
    double step;
    uint64_t uniform;
    uint64_t failed;
    unsigned long long moved;
    unsigned long long error;
};
HOST_LAYOUT_walkers_layout_ControlArgument(Control);

struct Walk {
    // [walker][electron][3]: now, and trial points.
    double* positions;
    double* trial;
    // [electron][walker][3]: where splines are evaluated.
    double* points;
    // [walker][electron]: how J changes with half of `bias`, which is ln q(x|y) - ln q(y|x) of the proposals; and
    // whether the electron moved.
    double* change;
    double* bias;
    uint32_t* moved;
    // [walker][tile][electron][electron before it]: by how much more J changes if that one moves first; see `tile_at`.
    double* delta;
    Control* control;
    const Images* images;
    // Two a factor of pairs, then one a body.
    const Radial* radials;
    const double* centres;
    // All factors of pairs, tabulated up to `reach`, for the same and for opposite spins; none if `reach` is 0.
    const double* table;
    double reach;
    uint64_t seed;
    uint32_t first, walkers, electrons, up, pairs, bodies;
};
HOST_LAYOUT_walkers_layout_WalkArgument(Walk);
HOST_LAYOUT_walkers_layout_Twist(double3);

// The sum of products of determinants; spins by 0 and 1.
constexpr uint32_t NONE = host::walkers_expanded::NONE;

struct Expansion {
    // [product][spin]: which filling, or NONE; and its coefficient.
    const uint32_t* places;
    const C64* coefficients;
    // [walker][product]: its share in the sum.
    C64* shares;
    // [filling][walker]: the shares of the products that it is in; ln |det| and phase.
    C64* weights[2];
    double* logs[2];
    C64* phases[2];
    // [walker]: ln of the size of the sum.
    double* total;
    uint32_t products;
    uint32_t fillings[2];
};
HOST_LAYOUT_walkers_layout_ExpansionArgument(Expansion);

__device__ __forceinline__ double squared(double x) { return x * x; }
__device__ __forceinline__ double squared(C64 z) { return z.re * z.re + z.im * z.im; }
__device__ __forceinline__ double real_part(double x) { return x; }
__device__ __forceinline__ double real_part(C64 z) { return z.re; }
__device__ __forceinline__ double minus(double a) { return -a; }
__device__ __forceinline__ C64 minus(C64 a) { return {-a.re, -a.im}; }
__device__ __forceinline__ double times(double a, double b) { return a * b; }
__device__ __forceinline__ C64 times(C64 a, C64 b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
__device__ __forceinline__ double inverse_of(double a) { return 1.0 / a; }
__device__ __forceinline__ C64 inverse_of(C64 a) {
    const double s = 1.0 / squared(a);
    return {a.re * s, -a.im * s};
}
__device__ __forceinline__ void set_real(double& x, double v) { x = v; }
__device__ __forceinline__ void set_real(C64& x, double v) { x = {v, 0.0}; }

// 1/x but for the last bit: an estimate of 20 bits and Newton's iteration.
__device__ __forceinline__ double reciprocal(double x) {
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#pragma unroll
    for (int k = 0; k < 2; ++k) y = fma(y, fma(-x, y, 1.0), y);
    return y;
}
__device__ __forceinline__ C64 reciprocal(C64 z) {
    const double s = reciprocal(squared(z));
    return {z.re * s, -z.im * s};
}

__device__ __forceinline__ double warp_sum(double x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}
__device__ __forceinline__ C64 warp_sum(C64 z) { return {warp_sum(z.re), warp_sum(z.im)}; }
__device__ __forceinline__ void set(double& x, C64 z) { x = z.re; }
__device__ __forceinline__ void set(C64& x, C64 z) { x = z; }

// The shortest vector that differs by a lattice vector, and its length.
__device__ inline double nearest(const Images& im, double (&v)[3]) {
    double n[3];
    for (int a = 0; a < 3; ++a) n[a] = rint(im.dual[a][0] * v[0] + im.dual[a][1] * v[1] + im.dual[a][2] * v[2]);
    for (int d = 0; d < 3; ++d)
        v[d] -= n[0] * im.reduced[0][d] + n[1] * im.reduced[1][d] + n[2] * im.reduced[2][d];
    double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    if (im.count > 0 && square > im.radius * im.radius) {
        for (int round = 0; round < 16; ++round) {
            bool crossed = false;
            for (uint64_t f = 0; f < im.count; ++f) {
                const double* face = im.faces[f];
                const double along = v[0] * face[0] + v[1] * face[1] + v[2] * face[2];
                if (fabs(along) > face[3] * (1.0 + 1e-14)) {
                    const double sign = copysign(1.0, along);
                    for (int d = 0; d < 3; ++d) v[d] -= sign * face[d];
                    crossed = true;
                }
            }
            if (!crossed) break;
        }
        square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    }
    return sqrt(square);
}

__device__ inline double distance(const Images& im, const double* a, const double* b) {
    double v[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    return nearest(im, v);
}

// (1 - e^-x)/x and its first two derivatives.
__device__ inline void screened(double x, double (&g)[3]) {
    if (x < 1e-3) {
        g[0] = 1.0 + x * (-1.0 / 2 + x * (1.0 / 6 + x * (-1.0 / 24 + x * (1.0 / 120))));
        g[1] = -1.0 / 2 + x * (1.0 / 3 + x * (-1.0 / 8 + x * (1.0 / 30 - x * (1.0 / 144))));
        g[2] = 1.0 / 3 + x * (-1.0 / 4 + x * (1.0 / 10 + x * (-1.0 / 36 + x * (1.0 / 168))));
        return;
    }
    const double e = exp(-x);
    g[0] = -expm1(-x) / x;
    g[1] = (e - g[0]) / x;
    g[2] = (-e - 2.0 * g[1]) / x;
}

// u, and with DERIVATIVES u' and u''.
template <bool DERIVATIVES>
__device__ inline void radial(const Radial& f, double r, double (&u)[3]) {
    u[0] = u[1] = u[2] = 0.0;
    const double* p = f.parameters;
    double a[3], b[3];
    switch (f.kind) {
        case RadialKind::Pade: {
            const double d = 1.0 / (1.0 + p[1] * r);
            u[0] = p[0] * r * d;
            u[1] = p[0] * d * d;
            u[2] = -2.0 * p[0] * p[1] * d * d * d;
            return;
        }
        case RadialKind::Log: {
            const double d = p[0] / (1.0 + p[0] * r);
            u[0] = log1p(p[0] * r);
            u[1] = d;
            u[2] = -d * d;
            return;
        }
        case RadialKind::Power:
            u[0] = p[0] * log(r);
            u[1] = p[0] / r;
            u[2] = -p[0] / (r * r);
            return;
        case RadialKind::Rpa: {
            const double cutoff = p[2];
            if (r >= cutoff) return;
            const double c = -p[0] / p[1], t = r / cutoff, left = 1.0 - t;
            double g[3];
            if (DERIVATIVES || r < 1e-3 * p[1]) {
                screened(r / p[1], g);
            } else {
                const double x = r / p[1];
                g[0] = (1.0 - exp(-x)) / x;
                g[1] = g[2] = 0.0;
            }
            a[0] = c * g[0] - p[3];
            a[1] = c * g[1] / p[1];
            a[2] = c * g[2] / (p[1] * p[1]);
            b[0] = left * left * left * (1.0 + t * (3.0 + 6.0 * t));
            b[1] = -30.0 * t * t * left * left / cutoff;
            b[2] = -60.0 * t * left * (1.0 - 2.0 * t) / (cutoff * cutoff);
            break;
        }
        case RadialKind::Polynomial: {
            const double cutoff = p[0];
            if (r >= cutoff) return;
            const double left = 1.0 - r / cutoff;
            const double first = f.count > 0 ? f.coefficients[0] : 0.0, linear = p[1] + 3.0 * first / cutoff;
            double q = 0.0, q1 = 0.0, q2 = 0.0;
            for (int k = int(f.count) - 1; k >= 1; --k) {
                q2 = q2 * r + q1;
                q1 = q1 * r + q;
                q = q * r + f.coefficients[k];
            }
            q2 *= 2.0;
            a[0] = first + linear * r + r * r * q;
            a[1] = linear + 2.0 * r * q + r * r * q1;
            a[2] = 2.0 * q + 4.0 * r * q1 + r * r * q2;
            b[0] = left * left * left;
            b[1] = -3.0 * left * left / cutoff;
            b[2] = 6.0 * left / (cutoff * cutoff);
            break;
        }
        default: return;
    }
    u[0] = a[0] * b[0];
    if (DERIVATIVES) {
        u[1] = a[1] * b[0] + a[0] * b[1];
        u[2] = a[2] * b[0] + 2.0 * a[1] * b[1] + a[0] * b[2];
    }
}

// All pair functions of two electrons at a distance; `opposite` is 1 for opposite spins.
__device__ inline double pair_sum(const Walk& w, uint32_t opposite, double r) {
    double sum = 0.0, u[3];
    for (uint32_t f = 0; f < w.pairs; ++f) {
        radial<false>(w.radials[2 * f + opposite], r, u);
        sum += u[0];
    }
    return sum;
}
