//! The order in which blocks walk the rows of a stored matrix. Columns that keep fixed distances from their rows tell of a
//! lattice; walked in tiles of it, rows find their neighbours in the nearest cache. Any order is right, so that a wrong
//! guess costs time only.

use std::collections::BTreeMap;

use bytemuck::{Pod, Zeroable};

use super::cells::slab;
use crate::backend::matrix::Csr;

/// Planes that a block takes of a tile.
const MARCH: u32 = 4;

/// Rows that are looked at.
const SAMPLES: usize = 2048;

/// See `kernels/sparse.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Pod, Zeroable)]
pub(super) struct Order {
    width: u32,
    height: u32,
    depth: u32,
    tile_x: u32,
    tile_y: u32,
    march: u32,
    slab: u32,
}

impl Order {
    /// What the columns tell: the distances that most rows share fall into groups, one for each direction.
    pub fn of(csr: &Csr) -> Order {
        let samples = csr.rows.min(SAMPLES);
        if csr.rows != csr.cols || samples == 0 {
            return Order::default();
        }
        let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
        for i in 0..samples {
            let row = (i as u128 * csr.rows as u128 / samples as u128) as usize;
            for at in csr.row_start[row]..csr.row_start[row + 1] {
                *seen.entry(csr.columns.get(at).abs_diff(row)).or_default() += 1;
            }
        }
        let common: Vec<usize> =
            seen.into_iter().filter(|&(d, count)| d > 0 && 8 * count >= samples).map(|e| e.0).collect();
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for d in common {
            match groups.last_mut() {
                Some((_, last)) if d <= 4 * *last => *last = d,
                _ => groups.push((d, d)),
            }
        }
        let stride = |group: &(usize, usize)| (group.0 + group.1) / 2;
        let (width, plane) = match groups.as_slice() {
            [_, y] => (stride(y), stride(y)),
            [_, y, z] => (stride(y), stride(z)),
            _ => return Order::default(),
        };
        // Rows of several orbitals share their neighbours in the order they stand in.
        if groups[0] != (1, 1)
            || width < 16
            || !plane.is_multiple_of(width)
            || !csr.rows.is_multiple_of(plane)
            || csr.rows / plane < 4
        {
            return Order::default();
        }
        let fits = |n: usize| u32::try_from(n).unwrap_or(0);
        Order {
            width: fits(width),
            height: fits(plane / width),
            depth: fits(csr.rows / plane),
            ..Order::default()
        }
    }

    /// Tiles for `threads` threads a row of so many bytes. A single lane streams the matrix, beside which its vectors weigh
    /// little.
    pub fn tiled(mut self, threads: u32, bytes: u32) -> Order {
        if self.width == 0 || threads == 1 {
            return Order::default();
        }
        if self.height == 1 {
            self.tile_x = (8 * self.tile_x).min(self.width);
        }
        self.tile_y = if threads <= 4 { 8 } else { 4 }.min(self.height);
        self.march = MARCH.min(self.depth);
        self.slab = slab(self.tile_y, u64::from(self.width) * u64::from(bytes), threads);
        self
    }

    /// Units of work, of a tiled order.
    pub fn units(&self) -> Option<u64> {
        if self.tile_x == 0 {
            return None;
        }
        let tiles = self.width.div_ceil(self.tile_x) as u64 * self.height.div_ceil(self.tile_y) as u64;
        Some(tiles * self.depth.div_ceil(self.march) as u64)
    }
}
