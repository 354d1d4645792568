// A tile of a result, which a block of threads owns: where the result begins, its size, the tile's first row and
// column, and what it is the sum of.
#pragma once
#include <cstdint>

#include "host.cuh"

struct Tile {
    uint64_t out;
    uint32_t rows, columns, row, column, first, count;
};
HOST_LAYOUT_places_Tile(Tile);
