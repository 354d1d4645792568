// Rows at the boundary of a GPU's part: what neighbours' rows, which these have written here, add to them.
#pragma once
#include "common.cuh"

// Rows that need rows of neighbours: their numbers, and what they read there, in compressed rows. Neighbours write
// their rows to one of two halves of the landing, by turns, after the numbers that tell the pass, 128 bytes apart.
template <class V>
struct Boundary {
    uint64_t count;
    const uint64_t* rows;
    const uint64_t* start;
    const uint32_t* columns;
    const V* values;
    const char* landing;
    uint64_t head, half;
    const uint32_t* counters;
    uint32_t neighbours;

    // Threads of a block wait until all neighbours have written the rows of a pass.
    __device__ __forceinline__ void await(uint32_t pass) const {
        for (uint32_t n = threadIdx.x; n < neighbours; n += blockDim.x) await_pass(landing, n, pass);
        __syncthreads();
    }
};
HOST_LAYOUT_link_BoundaryArgument(Boundary<C64>);

// The boundary rows of a thread, from `begin` on, so far `apart`, and the first of its lanes.
struct BoundaryShare {
    uint32_t lanes, first;
    uint64_t begin, apart;
};

// w += alpha A h on a thread's boundary rows, with the rows h that have come in a pass, and, if they are wanted, the
// sums of what `Re <w|v>` grows by; ROWS at once. `read` loads numbers of v.
template <int P, int ROWS, class V, class Read>
__device__ __forceinline__ void add_boundary_rows(const Boundary<V>& a, const BoundaryShare& share, uint32_t pass,
                                                  double alpha, const V* v, V* w, bool wanted, double (&sum)[P],
                                                  const Read& read) {
    using Lanes = Pack<V, P>;
    using Real = typename Traits<V>::Real;
    const V* h = reinterpret_cast<const V*>(a.landing + a.head + (pass % 2) * a.half);
    const auto [lanes, first, begin_at, apart] = share;
    for (uint64_t i = begin_at; i < a.count; i += ROWS * apart) {
        // What one load needs of another is asked for together for all rows.
        uint64_t at[ROWS], begin[ROWS];
        uint32_t left[ROWS], most = 0;
        Lanes now[ROWS]{}, own[ROWS]{}, change[ROWS]{};
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const uint64_t row = i + r * apart;
            at[r] = begin[r] = left[r] = 0;
            if (row >= a.count) continue;
            at[r] = __ldg(a.rows + row) * lanes + first;
            begin[r] = __ldg(a.start + row);
            left[r] = (uint32_t)(__ldg(a.start + row + 1) - begin[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            most = max(most, left[r]);
            if (left[r] == 0) continue;
            now[r] = *reinterpret_cast<const Lanes*>(w + at[r]);
            if (wanted) own[r] = read(reinterpret_cast<const Lanes*>(v + at[r]));
        }
        for (uint32_t k = 0; k < most; ++k) {
            V value[ROWS];
            Lanes x[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                if (k >= left[r]) continue;
                value[r] = load(a.values + begin[r] + k);
                // Written while this kernel waited: not by way of caches for what never changes.
                x[r] = *reinterpret_cast<const Lanes*>(h + (uint64_t)__ldg(a.columns + begin[r] + k) * lanes + first);
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                if (k >= left[r]) continue;
#pragma unroll
                for (int p = 0; p < P; ++p) change[r].x[p] = mla(value[r], x[r].x[p], change[r].x[p]);
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (left[r] == 0) continue;
#pragma unroll
            for (int p = 0; p < P; ++p) {
                change[r].x[p] = mla((Real)alpha, change[r].x[p], V{});
                now[r].x[p] = mla((Real)1, now[r].x[p], change[r].x[p]);
                if (wanted) sum[p] = overlap(change[r].x[p], own[r].x[p], sum[p]);
            }
            *reinterpret_cast<Lanes*>(w + at[r]) = now[r];
        }
    }
}
