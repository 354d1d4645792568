// Delayed acceptance: the electrons of a group are screened at the same time against the old configuration, and a
// second stage accepts or rejects all that passed, as `src/montecarlo/scheme/group.rs` has it. Matrices of both spins
// are numbered filling * walkers + walker, those of spin up first.
// Floor of a group of k electrons with one spin, of which m move, in matrices of n rows, for every filling: 2 k^2 n
// flops for the ratios, 4 m n^2 for the new B, which is read and written once: 2 n^2 numbers. Here it is read twice,
// by `rows` and `update`.

#include "moves.cuh"

namespace {

constexpr int MOST = host::walkers_schemes::MOST;  // Electrons of a group.
// Random numbers of groups are above those of electrons.
constexpr uint32_t GROUPS = host::montecarlo_scheme_draws::GROUPS;

// What was accepted of a group, by spin: how many, their numbers within the spin.
struct Accepted {
    uint32_t count[2];
    uint32_t own[2][MOST];
};
static_assert(sizeof(Accepted) == host::walkers_schemes::ACCEPTED, "the host has room for it");

// Matrices of both spins, and what is found about a group.
template <class S>
struct Group {
    // Rows of orbitals at trial points, and B.
    const S* rows[2];
    S* inverse[2];
    uint32_t n[2];
    // [walker][electron]: the order in which groups take electrons.
    uint32_t* order;
    // [walker][filling][MOST][MOST]: phi(y_a) . A^-1[:, b] of members a, b; the inverse of its accepted part.
    S* square;
    S* inner;
    // [walker][MOST]: changes of J; [walker][MOST][MOST]: by how much more.
    double* change;
    double* delta;
    // [walker][set][filling]: determinants of parts of `square`.
    C64* parts;
    Accepted* accepted;
    // [matrix][MOST][n]: factors of the update and the rows of B that are replaced.
    S* x;
    S* old;
    uint32_t longest, size, screen;
};
HOST_LAYOUT_walkers_layout_GroupArgument(Group<C64>);

template <class S>
__device__ inline uint32_t members(const Walk& w, const Group<S>& g, uint32_t number) {
    return min(g.size, w.electrons - number * g.size);
}

// Spin and filling of a matrix numbered among all.
__device__ inline uint32_t spin_of(const Expansion& e, uint32_t filling, uint32_t& own) {
    const uint32_t spin = filling >= e.fillings[0];
    own = spin ? filling - e.fillings[0] : filling;
    return spin;
}

// Products of rows for all pairs of members with the filling's spin, and changes of J. A warp each.
template <class S>
__device__ inline void ratios(const Walk& w, const Expansion& e, const Group<S>& g, uint32_t number) {
    const uint32_t walker = blockIdx.y, k = members(w, g, number), item = blockIdx.x * WARPS + threadIdx.x / WARP;
    const uint32_t fillings = e.fillings[0] + e.fillings[1], lane = threadIdx.x % WARP;
    const uint32_t* const list = g.order + uint64_t(walker) * w.electrons + number * g.size;
    if (item < fillings * k * k) {
        const uint32_t f = item / (k * k), a = item / k % k, b = item % k;
        uint32_t own;
        const uint32_t spin = spin_of(e, f, own), first = spin ? w.up : 0, n = g.n[spin];
        const uint32_t i = list[a] - first, j = list[b] - first;
        if (i >= n || j >= n) return;
        const uint64_t matrix = own * uint64_t(w.walkers) + walker;
        const S z = dot(g.rows[spin] + (matrix * n + i) * n, g.inverse[spin] + (matrix * n + j) * n, n);
        if (lane == 0) g.square[((uint64_t(walker) * fillings + f) * MOST + a) * MOST + b] = z;
        return;
    }
    const uint32_t a = item - fillings * k * k;
    if (a >= k) return;
    const double change = w.pairs + w.bodies > 0 ? change_of(w, walker, list[a]) : 0.0;
    if (lane == 0) g.change[walker * MOST + a] = change;
    if (lane < k && lane != a)
        g.delta[(walker * MOST + a) * MOST + lane] = w.pairs > 0 ? delta_of(w, walker, list[a], list[lane]) : 0.0;
}

__device__ inline double pass(bool barker, double r) {
    if (!barker) return fmin(r, 1.0);
    return isinf(r) ? 1.0 : r / (1.0 + r);
}

// The determinant of the rows and columns of `a` that are in the list, by elimination with pivoting.
template <class S>
__device__ inline S determinant(const S* a, const uint32_t* list, uint32_t k) {
    S m[MOST][MOST], det;
    set_real(det, 1.0);
    for (uint32_t p = 0; p < k; ++p)
        for (uint32_t q = 0; q < k; ++q) m[p][q] = a[list[p] * MOST + list[q]];
    for (uint32_t c = 0; c < k; ++c) {
        uint32_t best = c;
        for (uint32_t p = c + 1; p < k; ++p)
            if (squared(m[p][c]) > squared(m[best][c])) best = p;
        if (squared(m[best][c]) == 0.0) return S{};
        if (best != c) {
            for (uint32_t q = c; q < k; ++q) {
                const S z = m[c][q];
                m[c][q] = m[best][q];
                m[best][q] = z;
            }
            det = minus(det);
        }
        det = times(det, m[c][c]);
        const S one = inverse_of(m[c][c]);
        for (uint32_t p = c + 1; p < k; ++p) {
            const S factor = minus(times(m[p][c], one));
            for (uint32_t q = c + 1; q < k; ++q) m[p][q] = mla(factor, m[c][q], m[p][q]);
        }
    }
    return det;
}

// Their inverse, by Gauss and Jordan, side by side with the unit matrix.
template <class S>
__device__ inline void invert(const S* a, const uint32_t* list, uint32_t k, S* out) {
    S m[MOST][2 * MOST];
    for (uint32_t p = 0; p < k; ++p)
        for (uint32_t q = 0; q < k; ++q) {
            m[p][q] = a[list[p] * MOST + list[q]];
            set_real(m[p][k + q], p == q ? 1.0 : 0.0);
        }
    for (uint32_t c = 0; c < k; ++c) {
        uint32_t best = c;
        for (uint32_t p = c + 1; p < k; ++p)
            if (squared(m[p][c]) > squared(m[best][c])) best = p;
        const S one = inverse_of(m[best][c]);
        for (uint32_t q = 0; q < 2 * k; ++q) {
            const S z = m[c][q];
            m[c][q] = times(m[best][q], one);
            if (best != c) m[best][q] = z;
        }
        for (uint32_t p = 0; p < k; ++p) {
            if (p == c) continue;
            const S factor = minus(m[p][c]);
            for (uint32_t q = 0; q < 2 * k; ++q) m[p][q] = mla(factor, m[c][q], m[p][q]);
        }
    }
    for (uint32_t p = 0; p < k; ++p)
        for (uint32_t q = 0; q < k; ++q) out[p * MOST + q] = m[p][k + q];
}

// Both stages of a group of one walker. One block of threads per walker.
template <class S>
__device__ inline void decide(const Walk& w, const Expansion& e, const Group<S>& g, uint32_t number) {
    __shared__ double forward[MOST], back[MOST];
    __shared__ C64 ratio[MOST + 1];
    __shared__ uint32_t among[2][MOST];
    __shared__ bool accept;
    const uint32_t walker = blockIdx.x, k = members(w, g, number), fillings = e.fillings[0] + e.fillings[1];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t* const list = g.order + uint64_t(walker) * w.electrons + number * g.size;
    const S* const square = g.square + uint64_t(walker) * fillings * MOST * MOST;
    C64* const parts = g.parts + uint64_t(walker) * (MOST + 1) * fillings;
    C64* const shares = e.shares + uint64_t(walker) * e.products;
    const double *const change = g.change + walker * MOST, *const delta = g.delta + walker * MOST * MOST;
    const uint64_t sweep = w.control->sweep;
    Accepted& mine = g.accepted[walker];
    auto down = [&](uint32_t a) { return list[a] >= w.up; };
    for (uint32_t a = warp; a < k; a += 8) {
        C64 sum{};
        for (uint32_t t = lane; t < e.products; t += WARP) {
            const uint32_t f = e.places[2 * t + down(a)] + (down(a) ? e.fillings[0] : 0);
            sum = mla(shares[t], wide(square[(f * MOST + a) * MOST + a]), sum);
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            forward[a] = squared(sum) * exp(2.0 * change[a]);
            if (isnan(forward[a])) w.control->failed = NO_NUMBER;
        }
    }
    if (threadIdx.x == 0) mine.count[0] = mine.count[1] = 0;
    __syncthreads();
    uint32_t passed = 0;
    for (uint32_t a = 0; a < k; ++a)
        if (decision(w, sweep, walker, list[a]) < pass(g.screen, forward[a])) passed |= 1u << a;
    if (passed == 0) return;
    // Set 0 are all that passed, set a + 1 the same but for member a.
    for (uint32_t at = threadIdx.x; at < (k + 1) * fillings; at += THREADS) {
        const uint32_t set = at / fillings, f = at % fillings;
        const uint32_t chosen = set == 0 ? passed : passed ^ 1u << (set - 1);
        uint32_t own, inside[MOST], count = 0;
        const uint32_t spin = spin_of(e, f, own);
        for (uint32_t a = 0; a < k; ++a)
            if ((chosen >> a & 1) && down(a) == (spin == 1)) inside[count++] = a;
        parts[at] = wide(determinant(square + f * MOST * MOST, inside, count));
    }
    __syncthreads();
    auto product = [&](uint32_t set, uint32_t t) {
        C64 z{1.0, 0.0};
        for (uint32_t s = 0; s < 2; ++s)
            if (e.places[2 * t + s] != NONE)
                z = times(z, parts[set * fillings + e.places[2 * t + s] + (s ? e.fillings[0] : 0)]);
        return z;
    };
    for (uint32_t set = warp; set <= k; set += 8) {
        C64 sum{};
        for (uint32_t t = lane; t < e.products; t += WARP) sum = mla(shares[t], product(set, t), sum);
        sum = warp_sum(sum);
        if (lane == 0) ratio[set] = sum;
    }
    __syncthreads();
    const C64 all = ratio[0];
    if (squared(all) == 0.0) return;
    if (threadIdx.x < k) {
        const uint32_t a = threadIdx.x;
        double by = change[a];
        for (uint32_t b = 0; b < k; ++b)
            if (b != a && (passed >> b & 1)) by += delta[a * MOST + b];
        const double r = squared(times(ratio[a + 1], inverse_of(all))) * exp(2.0 * (passed >> a & 1 ? -by : by));
        if (isnan(r)) w.control->failed = NO_NUMBER;
        back[a] = r;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double jastrow = 0.0, bias = 0.0;
        for (uint32_t a = 0; a < k; ++a) {
            if (!(passed >> a & 1)) continue;
            jastrow += change[a];
            for (uint32_t b = 0; b < a; ++b)
                if (passed >> b & 1) jastrow += delta[a * MOST + b];
            bias += w.bias[uint64_t(walker) * w.electrons + list[a]];
        }
        double alpha = squared(all) * exp(2.0 * jastrow + bias);
        if (isnan(alpha)) w.control->failed = NO_NUMBER;
        for (uint32_t a = 0; a < k; ++a) {
            const double there = pass(g.screen, back[a]), here = pass(g.screen, forward[a]);
            alpha *= passed >> a & 1 ? there / here : (1.0 - there) / (1.0 - here);
        }
        // 0/0 stands for a move that cannot be reversed.
        accept = decision(w, sweep, walker, w.electrons + number) < (isnan(alpha) ? 0.0 : fmin(alpha, 1.0));
        if (accept) {
            for (uint32_t a = 0; a < k; ++a) {
                if (!(passed >> a & 1)) continue;
                const uint32_t s = down(a);
                among[s][mine.count[s]] = a;
                mine.own[s][mine.count[s]++] = list[a] - (s ? w.up : 0);
            }
            atomicAdd(&w.control->moved, (unsigned long long)__popc(passed));
        }
    }
    __syncthreads();
    if (!accept) return;
    if (threadIdx.x < k && (passed >> threadIdx.x & 1)) {
        const uint64_t at = 3 * (uint64_t(walker) * w.electrons + list[threadIdx.x]);
        for (int c = 0; c < 3; ++c) w.positions[at + c] = w.trial[at + c];
    }
    for (uint32_t f = threadIdx.x; f < fillings; f += THREADS) {
        uint32_t own;
        const uint32_t spin = spin_of(e, f, own);
        invert(square + f * MOST * MOST, among[spin], mine.count[spin],
               g.inner + (uint64_t(walker) * fillings + f) * MOST * MOST);
    }
    if (e.products == 1) return;
    const C64 one = inverse_of(all);
    for (uint32_t t = threadIdx.x; t < e.products; t += THREADS) shares[t] = times(times(shares[t], product(0, t)), one);
}

// X = M_SS^-1 (M_S - 1_S) for the accepted electrons S, and copies of their rows of B. One warp per column of X.
template <class S>
__device__ inline void rows(const Walk& w, const Expansion& e, const Group<S>& g) {
    const uint32_t walker = blockIdx.y % w.walkers, f = blockIdx.y / w.walkers, lane = threadIdx.x % WARP;
    const uint32_t j = blockIdx.x * WARPS + threadIdx.x / WARP, fillings = e.fillings[0] + e.fillings[1];
    uint32_t own;
    const uint32_t spin = spin_of(e, f, own), n = g.n[spin];
    const Accepted& mine = g.accepted[walker];
    const uint32_t count = mine.count[spin];
    if (count == 0 || j >= n) return;
    const uint64_t matrix = own * uint64_t(w.walkers) + walker, strip = uint64_t(blockIdx.y) * MOST * g.longest;
    const S* const row = g.inverse[spin] + (matrix * n + j) * n;
    const S* const inner = g.inner + (uint64_t(walker) * fillings + f) * MOST * MOST;
    S x{};
    for (uint32_t a = 0; a < count; ++a) {
        const uint32_t i = mine.own[spin][a];
        S q = dot(g.rows[spin] + (matrix * n + i) * n, row, n), unit;
        set_real(unit, i == j ? -1.0 : 0.0);
        q = plus(q, unit);
        if (lane < count) x = mla(inner[lane * MOST + a], q, x);
        if (i == j)
            for (uint32_t l = lane; l < n; l += WARP) g.old[strip + a * g.longest + l] = row[l];
    }
    if (lane < count) g.x[strip + lane * g.longest + j] = x;
}

// B -= X^T times the old rows. One warp per row.
template <class S>
__device__ inline void update(const Walk& w, const Expansion& e, const Group<S>& g) {
    const uint32_t walker = blockIdx.y % w.walkers, j = blockIdx.x * WARPS + threadIdx.x / WARP;
    uint32_t own;
    const uint32_t spin = spin_of(e, blockIdx.y / w.walkers, own), n = g.n[spin], count = g.accepted[walker].count[spin];
    if (count == 0 || j >= n) return;
    const uint64_t matrix = own * uint64_t(w.walkers) + walker, strip = uint64_t(blockIdx.y) * MOST * g.longest;
    S* const row = g.inverse[spin] + (matrix * n + j) * n;
    for (uint32_t l = threadIdx.x % WARP; l < n; l += WARP) {
        S sum = row[l];
        for (uint32_t a = 0; a < count; ++a)
            sum = mla(minus(g.x[strip + a * g.longest + j]), g.old[strip + a * g.longest + l], sum);
        row[l] = sum;
    }
}

}  // namespace

// The electrons of every walker in random order; numbers of electrons by 32 bits each, twice, are shared by a block.
extern "C" __global__ void __launch_bounds__(THREADS) group_order(Walk w, uint32_t* order) {
    constexpr uint32_t LONGEST = 2 * host::walkers::MOST_ELECTRONS;
    __shared__ uint32_t own[LONGEST], picks[LONGEST];
    const uint32_t walker = blockIdx.x, n = w.electrons;
    const uint64_t sweep = w.control->sweep;
    for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
        const uint4 d = draw(w, sweep, walker, GROUPS + i, 3);
        own[i] = i;
        picks[i] = uint32_t(unit(d.x, d.y) * double(i + 1));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (uint32_t k = n; k-- > 1;) {
            const uint32_t other = picks[k], x = own[k];
            own[k] = own[other];
            own[other] = x;
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += THREADS) order[uint64_t(walker) * n + i] = own[i];
}

#define KERNELS(SUFFIX, S)                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        group_ratios_##SUFFIX(Walk w, Expansion e, Group<S> g, uint32_t number) {                                        \
        ratios(w, e, g, number);                                                                                        \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                   \
        group_decide_##SUFFIX(Walk w, Expansion e, Group<S> g, uint32_t number) {                                        \
        decide(w, e, g, number);                                                                                        \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS) group_rows_##SUFFIX(Walk w, Expansion e, Group<S> g) {             \
        rows(w, e, g);                                                                                                  \
    }                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS) group_update_##SUFFIX(Walk w, Expansion e, Group<S> g) {           \
        update(w, e, g);                                                                                                \
    }

KERNELS(f64, double)
KERNELS(c64, C64)
