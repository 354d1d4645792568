//! The order in which blocks walk the rows of a stored matrix. Columns at fixed distances from their rows indicate a
//! lattice. In tiles of this lattice, rows find their neighbours in the nearest cache. Any order is correct, so a wrong
//! guess only costs time.

use std::collections::BTreeMap;

use bytemuck::{Pod, Zeroable};

use super::THREADS;
use crate::backend::matrix::Csr;

/// Which kernel takes a pass.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PassKind {
    /// Any.
    Any,
    /// One step of a recurrence over rows in order, for which stored formats have a shorter kernel.
    Step,
    /// Several steps in one launch, which has neighbours on other GPUs or not.
    Several { linked: bool },
}

impl PassKind {
    pub fn is_several(self) -> bool {
        matches!(self, PassKind::Several { .. })
    }
}

/// Planes that a block takes of a tile.
const MARCH: u32 = 4;

/// Rows that a block takes one after the other where nothing is known of a lattice.
const CHUNK: u32 = 256;

/// Rows that are looked at.
const SAMPLES: usize = 2048;

/// 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// How far the width of a lattice may be from the distance that most columns have.
const SLACK: usize = 8;

/// Rows of a plane that a group of threads takes in a folded tile.
const FOLD: u32 = 2;

/// Most parts that the units are cut into, one after the other: of folded tiles, and of blocks of which a
/// multiprocessor holds several. A block that stands alone waits at the beginning of every part.
const FOLDED_PARTS: u32 = 24;
const PARTS: u32 = 8;

/// Fewest units that a block takes of a part.
const FEWEST: u32 = 4;

/// Tiles of `height` lines of so many bytes whose planes stay in the cache together.
pub(super) fn slab(height: u32, line: u64, threads: u32) -> u32 {
    let budget: u64 = if threads < 8 { 4 << 20 } else { 2 << 20 };
    u32::try_from(budget / (line * u64::from(height)).max(1)).unwrap_or(u32::MAX).clamp(1, 1 << 16)
}

/// See `kernels/staged.cu`.
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
    tiles_x: u32,
    tiles_y: u32,
    marches: u32,
    pub units: u32,
    plane: u32,
    fold: u32,
    lines: u32,
    wave: u32,
    share: u32,
}

/// Distances of one direction: the longest, and the one that most entries have.
struct DirectionSpan {
    last: usize,
    middle: usize,
    count: usize,
}

impl DirectionSpan {
    fn add(&mut self, distance: usize, count: usize) {
        self.last = distance;
        if count > self.count {
            (self.middle, self.count) = (distance, count);
        }
    }
}

impl Order {
    /// What the columns tell: the distances that most rows share fall into groups, one for each direction.
    pub fn of(csr: &Csr) -> Order {
        let samples = csr.rows.min(SAMPLES);
        if csr.rows != csr.cols || samples == 0 {
            return Order::default();
        }
        let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
        for i in 0..samples as u64 {
            // Multiples of the golden ratio: rows at even distances could all lie on one side of a lattice.
            let row = ((u128::from(i.wrapping_mul(GOLDEN)) * csr.rows as u128) >> 64) as usize;
            for at in csr.row_start[row]..csr.row_start[row + 1] {
                *seen.entry(csr.columns.get(at).abs_diff(row)).or_default() += 1;
            }
        }
        let mut groups: Vec<DirectionSpan> = Vec::new();
        for (d, count) in seen.into_iter().filter(|&(d, count)| d > 0 && 8 * count >= samples) {
            match groups.last_mut() {
                Some(group) if d <= 4 * group.last => group.add(d, count),
                _ => groups.push(DirectionSpan { last: d, middle: d, count }),
            }
        }
        // The factor of a number of rows that is next to the distance of a group.
        let stride = |group: &DirectionSpan, of: usize| {
            let near = (0..=SLACK).flat_map(|d| [group.middle + d, group.middle.saturating_sub(d)]);
            near.into_iter().find(|&w| w > 0 && of.is_multiple_of(w))
        };
        let found = match groups.as_slice() {
            [x, y] => stride(y, csr.rows).map(|width| (x, width, width)),
            [x, y, z] => {
                stride(z, csr.rows).and_then(|plane| stride(y, plane).map(|width| (x, width, plane)))
            }
            _ => None,
        };
        let fits = |n: usize| u32::try_from(n).unwrap_or(0);
        match found {
            // Rows whose neighbours beside them are far apart tell of no line.
            Some((x, width, plane)) if width >= 16 && 4 * x.last <= width && csr.rows / plane >= 4 => Order {
                width: fits(width),
                height: fits(plane / width),
                depth: fits(csr.rows / plane),
                ..Order::default()
            },
            _ => Order::default(),
        }
    }

    /// Units of work, `least` if there are as many, for blocks of so many threads, of which `threads` take a row of so
    /// many bytes. Folded tiles have twice the height.
    pub fn tiled(
        mut self,
        rows: usize,
        (block, folded): (u32, bool),
        threads: u32,
        bytes: u32,
        least: u32,
    ) -> Order {
        let groups = block / threads;
        if self.width == 0 {
            (self.width, self.height) = (groups, 1);
            self.depth = u32::try_from(rows).unwrap_or(0).div_ceil(groups);
            self.march = CHUNK.div_ceil(groups);
        } else {
            self.march = MARCH;
        }
        let line = match groups {
            _ if self.height == 1 => groups,
            64.. if block == LARGE_BLOCK => groups / 4,
            16.. => groups / 2,
            _ => 4,
        };
        self.tile_y = (groups / line).min(self.height.next_power_of_two());
        self.tile_x = groups / self.tile_y;
        // Lines that L1 holds for the rows above and below as well.
        self.fold = if folded && self.height >= FOLD * self.tile_y { FOLD } else { 1 };
        (self.lines, self.tile_y) = (self.tile_y, self.tile_y * self.fold);
        self.march = self.march.clamp(1, self.depth.max(1));
        // Tiles as those of rows over many threads, whose entries need their place in the cache too;
        // folded ones as many.
        let line = u64::from(self.width) * u64::from(bytes);
        self.slab = slab(self.lines, line, THREADS);
        (self.tiles_x, self.tiles_y) = (self.width.div_ceil(self.tile_x), self.height.div_ceil(self.tile_y));
        let tiles = self.tiles_x * self.tiles_y;
        while self.march > 1 && tiles * self.depth.div_ceil(self.march) < least {
            self.march /= 2;
        }
        self.marches = self.depth.div_ceil(self.march);
        self.units = tiles * self.marches;
        self.plane = self.width * self.height;
        self
    }

    /// Shares the units out to blocks of so many threads, of which the GPU holds so many at once; returns how many
    /// blocks there are in all.
    pub fn share_out(&mut self, block: u32, resident: u32) -> u32 {
        let each = self.units.div_ceil(resident).max(1);
        let most = match block {
            _ if self.fold > 1 => FOLDED_PARTS,
            LARGE_BLOCK => 1,
            _ => PARTS,
        };
        let parts = (each / FEWEST).clamp(1, most);
        self.wave = resident;
        self.share = each.div_ceil(parts) * resident;
        resident * self.units.div_ceil(self.share).max(1)
    }
}

/// Threads of a block that takes a large tile.
const LARGE_BLOCK: u32 = 1024;

/// Threads of a block of the kernels for steps of recurrences; see `BLOCK` in `kernels/staged.cu`.
pub(super) fn block(pack: u32, threads: u32, lane: usize) -> u32 {
    if pack < 4 && threads >= if lane == 16 { 32 } else { 16 } { LARGE_BLOCK } else { THREADS }
}

/// Whether these kernels take folded tiles; see `FOLDED` in `kernels/staged.cu`.
pub(super) fn folded(threads: u32, lane: usize) -> bool {
    lane == 16 && threads == 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::matrix::{Indices, MatrixValues};

    fn pattern(rows: usize, mut columns_of: impl FnMut(usize) -> Vec<usize>) -> Csr {
        let (mut row_start, mut columns) = (vec![0], Vec::new());
        for row in 0..rows {
            columns.extend(columns_of(row).into_iter().map(|j| j as u32));
            row_start.push(columns.len());
        }
        let values = MatrixValues::F64(vec![1.0; columns.len()]);
        Csr { rows, cols: rows, row_start, columns: Indices::U32(columns), values }
    }

    /// A matrix whose rows have entries at these distances, wherever they are.
    fn banded(rows: usize, distances: &[isize]) -> Csr {
        let near = |row: usize| distances.iter().filter_map(move |d| row.checked_add_signed(*d));
        pattern(rows, |row| near(row).filter(|&j| j < rows).collect())
    }

    /// Nearest neighbours on a cubic lattice that is periodic.
    fn periodic(n: [usize; 3]) -> Csr {
        let next = |i: usize, n: usize, by: usize| (i + by) % n;
        pattern(n.iter().product(), |row| {
            let (x, y, z) = (row % n[0], row / n[0] % n[1], row / n[0] / n[1]);
            let at = |x: usize, y: usize, z: usize| x + n[0] * (y + n[1] * z);
            let mut columns = vec![row];
            for end in [false, true] {
                let by = |n: usize| if end { n - 1 } else { 1 };
                columns.push(at(next(x, n[0], by(n[0])), y, z));
                columns.push(at(x, next(y, n[1], by(n[1])), z));
                columns.push(at(x, y, next(z, n[2], by(n[2]))));
            }
            columns.sort_unstable();
            columns
        })
    }

    #[test]
    fn distances_of_columns_tell_of_a_lattice() {
        let of = |rows: usize, distances: &[isize]| {
            let order = Order::of(&banded(rows, distances));
            (order.width, order.height, order.depth)
        };
        assert_eq!(of(24 * 20 * 10, &[-480, -24, -1, 0, 1, 24, 480]), (24, 20, 10));
        assert_eq!(of(32 * 40, &[-32, -1, 1, 32]), (32, 1, 40));
        // Two orbitals, whose hoppings lead one less than a line away.
        assert_eq!(of(64 * 40, &[-63, -1, 1, 63]), (64, 1, 40));
        assert_eq!(of(1000, &[-1, 1]), (0, 0, 0));
    }

    /// A power of two of rows, of which evenly spaced ones would all be in the first plane of x,
    /// and an eighth in that of y.
    #[test]
    fn boundaries_are_seen_as_often_as_they_are() {
        let order = Order::of(&periodic([32, 32, 256]));
        assert_eq!((order.width, order.height, order.depth), (32, 32, 256));
    }

    #[test]
    fn units_hold_all_rows() {
        let lattice = Order::of(&banded(24 * 20 * 10, &[-480, -24, -1, 0, 1, 24, 480]));
        for groups in [8, 16, 32, 64] {
            for (order, folded) in [(lattice, false), (lattice, true), (Order::default(), true)] {
                let mut order = order.tiled(4800, (4 * groups, folded), 4, 64, 100);
                assert_eq!(order.tile_x * order.tile_y, groups * order.fold);
                assert_eq!(order.fold > 1, folded && order.height > 1);
                assert!(order.width * order.height * order.depth >= 4800);
                assert_eq!(order.units, order.tiles_x * order.tiles_y * order.marches);
                for resident in [1, 7, 100] {
                    let parts = order.share_out(4 * groups, resident) / resident;
                    assert!(parts * order.share >= order.units && (parts - 1) * order.share < order.units);
                }
            }
        }
    }
}
