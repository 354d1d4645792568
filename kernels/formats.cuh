// The stored formats: compressed rows, SELL-C-sigma (ELL is one slice), dense rows. `row` walks a row in batches of B
// entries, beyond whose end come zeros on a column of the row.
#pragma once
#include "update.cuh"

// Where the entries of a row begin, and how many there are.
struct Span {
    uint64_t first;
    uint32_t length;
};

template <class T, class J>
struct Csr {
    using Value = T;
    using Index = J;
    const uint64_t* start;
    const J* columns;
    const T* values;
    // Entries of every row where all have as many, or 0.
    uint64_t each;

    __device__ __forceinline__ uint64_t place(uint64_t row) const { return row; }

    __device__ __forceinline__ Span span(uint32_t row) const {
        if (each) return {row * each, (uint32_t)each};
        const uint64_t from = __ldg(start + row);
        return {from, (uint32_t)(__ldg(start + row + 1) - from)};
    }

    // Distance from one entry of a row to the next.
    __device__ __forceinline__ uint32_t stride() const { return 1; }

    template <int B, class F>
    __device__ __forceinline__ void row(uint64_t row, F batch) const {
        const uint64_t from = __ldg(start + row), to = __ldg(start + row + 1);
        for (uint64_t k = from; k < to; k += B) {
            batch([&](int i, uint64_t& column, T& value) {
                const bool there = k + i < to;
                column = __ldg(columns + (there ? k + i : from));
                value = there ? values[k + i] : T{};
            });
        }
    }
};
HOST_LAYOUT_matrices_CsrArgument(Csr<C64, uint32_t>);

template <class T, class J>
struct Sell {
    using Value = T;
    using Index = J;
    const uint64_t* slices;
    const uint32_t* lengths;
    // Row of each place, or null where rows stand in order.
    const uint32_t* order;
    const J* columns;
    const T* values;
    // Rows of a slice, a power of two, and the shift that divides by them; 63 for one slice of all rows (ELL).
    uint64_t chunk, shift;
    // Entries of every row where all have as many; `lengths` is null then.
    uint64_t each;

    __device__ __forceinline__ uint32_t length(uint64_t at) const { return lengths ? __ldg(lengths + at) : each; }

    __device__ __forceinline__ uint64_t place(uint64_t at) const { return order ? __ldg(order + at) : at; }

    __device__ __forceinline__ Span span(uint32_t at) const {
        const uint64_t slice = (uint64_t)at >> shift;
        return {__ldg(slices + slice) + (at - (slice << shift)), length(at)};
    }

    __device__ __forceinline__ uint32_t stride() const { return (uint32_t)chunk; }

    template <int B, class F>
    __device__ __forceinline__ void row(uint64_t at, F batch) const {
        const uint64_t slice = at >> shift;
        const uint64_t first = __ldg(slices + slice) + (at - (slice << shift));
        const uint32_t end = length(at);
        for (uint32_t k = 0; k < end; k += B) {
            batch([&](int i, uint64_t& column, T& value) {
                const bool there = k + i < end;
                column = __ldg(columns + first + (there ? k + i : 0) * chunk);
                value = there ? values[first + (k + i) * chunk] : T{};
            });
        }
    }
};
HOST_LAYOUT_matrices_SellArgument(Sell<C64, uint32_t>);

template <class T>
struct Dense {
    using Value = T;
    uint64_t cols;
    const T* values;

    __device__ __forceinline__ uint64_t place(uint64_t row) const { return row; }

    template <int B, class F>
    __device__ __forceinline__ void row(uint64_t row, F batch) const {
        for (uint64_t k = 0; k < cols; k += B) {
            batch([&](int i, uint64_t& column, T& value) {
                const bool there = k + i < cols;
                column = there ? k + i : 0;
                value = there ? values[row * cols + k + i] : T{};
            });
        }
    }
};
HOST_LAYOUT_matrices_DenseArgument(Dense<C64>);

// Matrix types whose names have a comma, for macros.
template <class T>
using Csr32 = Csr<T, uint32_t>;
template <class T>
using Csr64 = Csr<T, uint64_t>;
template <class T>
using Sell32 = Sell<T, uint32_t>;
template <class T>
using Sell64 = Sell<T, uint64_t>;
