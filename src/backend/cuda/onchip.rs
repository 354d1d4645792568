//! Boxes of cells whose rows stay on a multiprocessor from step to step of a recurrence; see `kernels/onchip.cu`.

use bytemuck::{Pod, Zeroable};

/// Threads of a block.
pub(super) const BLOCK: u32 = 512;

/// Cells that a thread has at most: one by one, and as a column.
const CELLS: [(u32, &str); 3] = [(2, "_k2"), (4, "_k4"), (8, "_k8")];
const COLUMN: u32 = 16;

/// Widest rows, in bytes, of whose cells a thread has more than a few: what it has of them is in registers.
const NARROW_ROW: u32 = 8;

/// Shared memory, in bytes, that the kernels have besides what is counted here.
const OWN: u32 = 4096;

/// Cells of a box with those around it are numbered in 16 bits, of which the last number is no cell.
const MOST_PLACES: u32 = 0xffff;

/// The argument of the kernels up to the values of inner cells.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct OnChipHead {
    pub cells: [u32; 3],
    pub parts: [u32; 3],
    pub ends: u32,
    pub absent: u32,
    pub diagonal: u64,
}

/// How a lattice lies on the chip.
#[derive(Debug, PartialEq)]
pub(super) struct OnChipPlan {
    /// Boxes along each direction.
    pub parts: [u32; 3],
    /// What the kernel's name ends with.
    pub suffix: &'static str,
    /// Bytes of shared memory that a block asks for.
    pub shared: u32,
    /// Cells on the faces of the largest box: what a block has room to be sent in a step.
    pub faces: u32,
}

impl OnChipPlan {
    pub fn blocks(&self) -> u32 {
        self.parts.iter().product()
    }

    /// Bytes of the inboxes of all blocks: two each, a parcel of 16 bytes for every eight of a row.
    pub fn inboxes(&self, shape: &CellShape) -> usize {
        2 * 16 * self.blocks() as usize * (self.faces * shape.orbitals * shape.row.div_ceil(8)) as usize
    }
}

/// Orbitals of a cell, and the bytes of one row of the vectors and of its energy.
pub(super) struct CellShape {
    pub orbitals: u32,
    pub row: u32,
    pub energy: u32,
}

impl CellShape {
    /// How many of [`CELLS`] there are kernels for with packs of so many lanes, and whether there is one for columns.
    fn ways(&self, pack: u32) -> (usize, bool) {
        match (self.orbitals, self.row <= NARROW_ROW) {
            (1, true) => (3, true),
            (1, false) => (2, false),
            (2, true) => (2, false),
            (2 | 4, _) if pack == 1 => (1, false),
            _ => (0, false),
        }
    }
}

impl OnChipHead {
    /// The best plan for rows that are packs of so many lanes on a GPU with so many multiprocessors and bytes of shared
    /// memory; none if the lattice does not fit.
    pub fn plan(&self, shape: &CellShape, pack: u32, (processors, shared): (u32, u32)) -> Option<OnChipPlan> {
        let fits = |most: u32, column: bool| self.split(shape, (most, column), processors, shared);
        let (ways, columns) = shape.ways(pack);
        let lone = CELLS[..ways].iter();
        let lone = lone.map(|&(most, suffix)| Some(OnChipPlan { suffix, ..fits(most, false)? }));
        lone.flatten().next().or_else(|| if columns { fits(COLUMN, true) } else { None })
    }

    /// The argument with the values of inner cells, for which there is room.
    pub fn with<const N: usize>(&self, inner: &[u8]) -> [u8; N] {
        let mut all = [0; N];
        let (head, values) = all.split_at_mut(size_of::<OnChipHead>());
        head.copy_from_slice(bytemuck::bytes_of(self));
        values[..inner.len()].copy_from_slice(inner);
        all
    }

    /// The boxes of which a block takes the least time: with so many cells a thread, one by one or as a column.
    fn split(
        &self,
        shape: &CellShape,
        (most, column): (u32, bool),
        processors: u32,
        shared: u32,
    ) -> Option<OnChipPlan> {
        let pad: [u32; 3] = std::array::from_fn(|d| 1 - (self.absent >> d & 1));
        let mut best: Option<(u32, OnChipPlan)> = None;
        let upto = |d: usize, left: u32| 1..=self.cells[d].min(left);
        for x in upto(0, processors) {
            for y in upto(1, processors / x) {
                for z in upto(2, processors / (x * y)) {
                    let parts = [x, y, z];
                    let size: [u32; 3] = std::array::from_fn(|d| self.cells[d].div_ceil(parts[d]));
                    let Some(count) = size[0].checked_mul(size[1]).and_then(|n| n.checked_mul(size[2]))
                    else {
                        continue;
                    };
                    let each = if column { size[2] } else { count.div_ceil(BLOCK) };
                    if each > most || column && size[0] * size[1] > BLOCK {
                        continue;
                    }
                    let places = (0..3).map(|d| size[d] + 2 * pad[d]).product::<u32>();
                    let faces = 2 * (0..3).map(|d| pad[d] * (count / size[d])).sum::<u32>();
                    let energies = if column { shape.energy * COLUMN * BLOCK } else { 0 };
                    // Of a face's cell: whose inbox it goes to, and its place when it leaves and when it comes.
                    let needs = places * shape.orbitals * shape.row + energies + 8 * faces;
                    if places > MOST_PLACES || needs + OWN > shared {
                        continue;
                    }
                    // Rows that threads wait for, rows, and parcels, by what each of them was seen to take.
                    let cost = 10 * each * BLOCK + 5 * count + 8 * faces;
                    if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                        best = Some((cost, OnChipPlan { parts, suffix: "_k16", shared: needs, faces }));
                    }
                }
            }
        }
        best.map(|(_, plan)| plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: (u32, u32) = (132, 232_448);

    fn head(cells: [u32; 3], absent: u32) -> OnChipHead {
        OnChipHead { cells, absent, ..OnChipHead::zeroed() }
    }

    fn plan(cells: [u32; 3], absent: u32, (row, energy): (u32, u32)) -> Option<OnChipPlan> {
        head(cells, absent).plan(&CellShape { orbitals: 1, row, energy }, row.div_ceil(8), H200)
    }

    /// Of cells with several orbitals, in double precision.
    fn plan_of(cells: [u32; 3], orbitals: u32, row: u32) -> Option<&'static str> {
        let absent = if cells[1] == 1 { 2 } else { 0 };
        head(cells, absent).plan(&CellShape { orbitals, row, energy: 8 }, 1, H200).map(|p| p.suffix)
    }

    #[test]
    fn lattices_lie_on_the_chip_where_they_fit() {
        let cubic = |n: u32| plan([n, n, n], 0, (8, 8)).map(|p| p.suffix);
        assert_eq!([1, 32, 64, 80, 96].map(cubic), ["_k2", "_k2", "_k4", "_k8", "_k16"].map(Some));
        assert_eq!(cubic(128), None);
        // Of wider cells a thread has fewer.
        assert_eq!(plan([64, 64, 64], 0, (16, 8)).map(|p| p.suffix), Some("_k4"));
        assert_eq!(plan([80, 80, 80], 0, (16, 8)), None);
        assert!(plan([1 << 18, 1, 1], 6, (8, 8)).is_some_and(|p| p.parts[1..] == [1, 1] && p.faces == 2));
        assert_eq!(plan([1 << 24, 1 << 24, 1 << 24], 0, (8, 8)), None);
    }

    #[test]
    fn cells_of_several_orbitals_lie_there_too() {
        assert_eq!(plan_of([40, 40, 40], 4, 16), Some("_k2"));
        assert_eq!(plan_of([200, 100, 40], 4, 16), None);
        assert_eq!(plan_of([256, 1, 256], 2, 8), Some("_k2"));
        assert_eq!(plan_of([500, 1, 500], 2, 8), Some("_k4"));
        assert_eq!(plan_of([500, 1, 500], 2, 16), None);
        // Rows of several packs of a wide type have no kernel.
        let shape = CellShape { orbitals: 4, row: 16, energy: 8 };
        assert_eq!(head([5, 5, 5], 0).plan(&shape, 2, H200), None);
    }

    #[test]
    fn boxes_hold_all_cells_and_have_room() {
        for cells in [[1, 1, 1], [2, 3, 5], [131, 7, 1], [64, 64, 64], [96, 90, 80], [512, 1, 512], [7, 1, 3]]
        {
            for (absent, bytes) in [(0, (8, 8)), (0, (16, 8)), (2, (4, 4)), (0, (8, 4))] {
                let wide = bytes.0 == 16 && cells.iter().product::<u32>() > 1 << 18;
                if absent == 2 && cells[1] > 1 || wide {
                    continue;
                }
                let plan = plan(cells, absent, bytes).unwrap_or_else(|| panic!("{cells:?} does not fit"));
                let size: Vec<u32> = (0..3).map(|d| cells[d].div_ceil(plan.parts[d])).collect();
                let most = plan.suffix[2..].parse::<u32>().expect("a number of cells");
                assert!(size.iter().product::<u32>() <= most * BLOCK, "{cells:?} {plan:?}");
                assert!(plan.blocks() <= H200.0 && plan.shared + OWN <= H200.1);
                // Every box has a cell, also the smallest.
                assert!((0..3).all(|d| plan.parts[d] <= cells[d]));
                if most == COLUMN {
                    assert!(size[0] * size[1] <= BLOCK && size[2] <= COLUMN);
                }
            }
        }
    }
}
