//! Stencils whose hoppings lead within cells and to the next ones along the axes: their values as blocks, and the
//! argument of the kernel that takes cells of two or four orbitals whole.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::card::{Card, CardBuffer};
use super::onchip::OnChipHead;
use super::order::{PassKind, slab};
use super::to_bytes;
use crate::backend::matrix::{Stencil, StencilTerm, Wrap, classes::Classes};
use crate::error::Result;
use crate::number::{C64, DType};

/// Neighbours of a cell: left, right, down, up, below, above, and the cell itself.
pub(super) const NEIGHBOURS: usize = 7;
pub(super) const OWN: usize = NEIGHBOURS - 1;

/// Threads of a block; where a row has fewer than `FEW`, blocks are small.
const BLOCK: u32 = 512;
const SMALL_BLOCK: u32 = 128;
const FEW: u32 = 8;

/// Planes that a block takes of a tile; half as many where a row has few threads.
const MARCH: u32 = 8;

/// Bytes that a thread reads of a row at once.
const WIDE: u32 = 16;

/// Most bytes of the values of inner cells.
pub(super) const INNER: usize = NEIGHBOURS * 4 * 4 * 16;

/// Values towards the neighbours, `[neighbour][to][from]`, of inner cells and of every combination of classes.
pub(super) struct StencilValues {
    pub inner: Vec<C64>,
    pub of: Vec<Vec<C64>>,
}

impl StencilValues {
    /// The values of a stencil in up to three directions without other hoppings; none for others.
    pub fn of(stencil: &Stencil, classes: &Classes) -> Option<StencilValues> {
        let (directions, orbitals) = (stencil.cells.len(), stencil.orbitals);
        let near = |t: &StencilTerm| t.shift.iter().map(|s| s.abs()).sum::<i64>() <= 1;
        let plane = stencil.cells.iter().take(2).product::<usize>();
        if directions > 3 || !stencil.terms.iter().all(near) || plane > 1 << 24 {
            return None;
        }
        let values = |cell: &[i64]| {
            let mut of = vec![C64::default(); NEIGHBOURS * orbitals * orbitals];
            for term in &stencil.terms {
                let neighbour = match term.shift.iter().position(|&s| s != 0) {
                    Some(d) => 2 * axis(directions, d) + usize::from(term.shift[d] > 0),
                    None => OWN,
                };
                of[(neighbour * orbitals + term.to) * orbitals + term.from] +=
                    stencil.element(term, cell).unwrap_or_default();
            }
            of
        };
        let combinations = classes.lists.len() / orbitals.max(1);
        let of = (0..combinations).map(|c| values(&classes.representative(c))).collect();
        let middle: Vec<i64> = stencil.cells.iter().map(|&n| n as i64 / 2).collect();
        Some(StencilValues { inner: values(&middle), of })
    }
}

/// The argument of both kernels for such stencils up to the values of inner cells; see `kernels/straight.cu` and
/// `kernels/blocks.cu`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct StencilHead {
    pub nx: u32,
    pub ny: u32,
    pub nz: u32,
    pub tile_x: u32,
    pub tile_y: u32,
    pub march: u32,
    pub slab: u32,
    all_plain: u32,
    classes: u64,
    weight_y: u32,
    weight_z: u32,
    plain: u64,
    values: u64,
    diagonal: u64,
}

impl StencilHead {
    /// For a stencil of which the kernel takes the values towards the first `neighbours`; also the memory it points to.
    pub fn of(
        card: &Arc<Card>,
        stencil: &Stencil,
        classes: &Classes,
        (values, neighbours): (&StencilValues, usize),
        diagonal: u64,
    ) -> Result<(StencilHead, Vec<CardBuffer>)> {
        // Coordinates that a lattice has not are a single one, of the only class.
        let none = || (1, vec![0], 0);
        let along =
            |d: usize| (stencil.cells[d] as u32, classes.of_coordinate[d].clone(), classes.weights[d] as u32);
        let [x, y, z] = match stencil.cells.len() {
            1 => [along(0), none(), none()],
            2 => [along(0), none(), along(1)],
            _ => [along(0), along(1), along(2)],
        };
        // At the ends of a direction cells miss a neighbour, which kernels leave out.
        let ends = |k: usize| k < OWN && axis_end(stencil, k / 2);
        let each = stencil.orbitals * stencil.orbitals;
        let blocks = |of: &[C64]| of.chunks(each).map(<[C64]>::to_vec).collect::<Vec<_>>();
        let like_inner = |of: &Vec<C64>| {
            let pairs = blocks(of).into_iter().zip(blocks(&values.inner)).enumerate();
            pairs
                .into_iter()
                .all(|(k, (own, inner))| own == inner || ends(k) && own.iter().all(|z| *z == C64::default()))
        };
        let plain: Vec<u32> = values.of.iter().map(|of| u32::from(like_inner(of))).collect();
        let open = |a: usize| u32::from(axis_end(stencil, a)) << (1 + a);
        let all_plain = u32::from(plain.iter().all(|&p| p == 1)) | open(0) | open(1) | open(2);
        let kept = neighbours * stencil.orbitals * stencil.orbitals;
        let of: Vec<C64> = values.of.iter().flat_map(|of| &of[..kept]).copied().collect();
        let of_class = card.upload(&[x.1, y.1, z.1].concat())?;
        let (plain, of) = (card.upload(&plain)?, card.upload(&to_bytes(stencil.dtype, &of))?);
        let head = StencilHead {
            nx: x.0,
            ny: y.0,
            nz: z.0,
            all_plain,
            classes: of_class.address,
            weight_y: y.2,
            weight_z: z.2,
            plain: plain.address,
            values: of.address,
            diagonal,
            ..StencilHead::zeroed()
        };
        Ok((head, vec![of_class, plain, of]))
    }

    /// A lattice in so many directions for kernels that keep rows on the chip, not yet in parts; none if cells have
    /// hoppings of their own.
    pub fn on_chip(&self, directions: usize) -> Option<OnChipHead> {
        let absent = (0..directions).fold(0b111, |left, d| left & !(1 << axis(directions, d)));
        let (cells, ends) = ([self.nx, self.ny, self.nz], self.all_plain >> 1);
        let head = OnChipHead { cells, ends, absent, diagonal: self.diagonal, ..OnChipHead::zeroed() };
        (self.all_plain & 1 == 1).then_some(head)
    }

    /// Cuts planes into tiles of up to so many cells, and up to `most` in a line.
    /// Where several steps share a launch, tiles have whole lines: no thread is to be without a cell.
    pub fn cut(&mut self, cells: u32, most: u32, kind: PassKind) {
        let whole = kind.is_several() && self.nx <= cells;
        self.tile_x = if whole { self.nx } else { most.min(self.nx.next_power_of_two()) };
        let lines = cells / self.tile_x;
        // As many lines in each tile, where lines are whole.
        self.tile_y = match self.ny {
            1 => 1,
            ny if whole => ny.div_ceil(ny.div_ceil(lines)),
            _ => lines,
        };
    }

    /// Shortens the march of small lattices, down to so many planes, until half of the blocks that the GPU holds at
    /// once have a unit of work; returns how many units there are.
    pub fn units(&mut self, fewest: u32, resident: u32) -> u64 {
        let tiles = u64::from(self.nx.div_ceil(self.tile_x)) * u64::from(self.ny.div_ceil(self.tile_y));
        loop {
            let units = tiles * u64::from(self.nz.div_ceil(self.march));
            if self.march < 2 * fewest || 2 * units >= u64::from(resident) {
                return units;
            }
            self.march /= 2;
        }
    }
}

/// The kernels' direction (x, y, z) of a stencil's direction: of two directions, the second is the one between planes.
fn axis(directions: usize, d: usize) -> usize {
    if d + 1 == directions && directions > 1 { 2 } else { d }
}

/// Whether a direction of the kernels is one of the stencil's that ends.
fn axis_end(stencil: &Stencil, a: usize) -> bool {
    let directions = stencil.cells.len();
    (0..directions).any(|d| axis(directions, d) == a && stencil.wrap.get(d) == Some(&Wrap::Open))
}

/// Values of inner cells, with room for those of the widest type.
pub(super) fn padded<const N: usize>(dtype: DType, values: &[C64]) -> [u8; N] {
    let (mut all, bytes) = ([0; N], to_bytes(dtype, values));
    all[..bytes.len()].copy_from_slice(&bytes);
    all
}

/// See `kernels/blocks.cu`.
#[derive(Clone, Copy)]
pub(super) struct BlocksArgument {
    head: StencilHead,
    inner: [u8; INNER],
    orbitals: usize,
    directions: usize,
}

impl BlocksArgument {
    /// The argument for a stencil, and the memory it points to; none if the kernel does not take it.
    pub fn of(
        card: &Arc<Card>,
        stencil: &Stencil,
        classes: &Classes,
        diagonal: u64,
    ) -> Result<Option<(BlocksArgument, Vec<CardBuffer>)>> {
        if ![2, 4].contains(&stencil.orbitals)
            || stencil.cells.len() < 2
            || u32::try_from(stencil.dim()).is_err()
        {
            return Ok(None);
        }
        let Some(values) = StencilValues::of(stencil, classes) else { return Ok(None) };
        let (head, buffers) = StencilHead::of(card, stencil, classes, (&values, NEIGHBOURS), diagonal)?;
        let inner = padded(stencil.dtype, &values.inner);
        let (orbitals, directions) = (stencil.orbitals, stencil.cells.len());
        Ok(Some((BlocksArgument { head, inner, orbitals, directions }, buffers)))
    }

    pub fn orbitals(&self) -> usize {
        self.orbitals
    }

    /// The first part of the kernel's name.
    pub fn name(&self) -> String {
        format!("blocks{}_{}", self.orbitals, self.directions)
    }

    /// Whether the kernel takes rows of so many packs of so many bytes: a single pack, or packs that are read at once.
    pub fn takes(packs: u32, bytes: u32) -> bool {
        packs == 1 || bytes == WIDE
    }

    /// Threads of a block, for rows over so many.
    pub fn block(threads: u32) -> u32 {
        if threads < FEW { SMALL_BLOCK } else { BLOCK }
    }

    /// Cuts the cells into tiles for blocks whose rows take `threads` threads and `bytes` each, of which the GPU holds
    /// `resident`; returns how many units of work that makes.
    pub fn tile(&mut self, kind: PassKind, (block, threads): (u32, u32), bytes: u32, resident: u32) -> u64 {
        let head = &mut self.head;
        let cells = block / threads;
        let most = match cells {
            _ if head.ny == 1 => cells,
            128.. => 32,
            32.. => 8,
            _ => 4,
        };
        head.cut(cells, most, kind);
        head.march = if threads < FEW { MARCH / 2 } else { MARCH }.min(head.nz);
        // Few threads a row may have more lines at once.
        let line = u64::from(head.nx) * self.orbitals as u64 * u64::from(bytes);
        head.slab = slab(head.tile_y, line, 1);
        head.units(1, resident)
    }

    /// The lattice for kernels that keep rows on the chip, with the values of inner cells; none if cells have hoppings
    /// of their own.
    pub fn on_chip(&self) -> Option<(OnChipHead, &[u8])> {
        Some((self.head.on_chip(self.directions)?, &self.inner))
    }

    /// The argument as the kernel takes it.
    pub fn bytes(&self) -> [u8; size_of::<StencilHead>() + INNER] {
        let mut all = [0; _];
        let (head, inner) = all.split_at_mut(size_of::<StencilHead>());
        head.copy_from_slice(bytemuck::bytes_of(&self.head));
        inner.copy_from_slice(&self.inner);
        all
    }
}
