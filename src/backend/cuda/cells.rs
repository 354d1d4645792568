//! Matrix-free stencils on the GPU: the general kernel, and the kernel for a single orbital with hoppings to the next
//! cells along the axes.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::blocks::{BlocksArgument, OWN, StencilHead, StencilValues, padded};
use super::card::{Card, CardBuffer};
use super::onchip::OnChipHead;
use super::order::{PassKind, slab};
use super::{THREADS, to_bytes};
use crate::backend::KernelInfo;
use crate::backend::matrix::{Stencil, StencilTerm, classes::Classes};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// Directions that the general kernel takes.
const MOST_DIRECTIONS: usize = 8;

/// Hoppings of inner cells that travel with the general kernel's arguments.
const MOST_INNER: usize = 192;

/// Planes that a block takes of a tile: so few that blocks which run together stay in one region of memory.
const MARCH: u32 = 8;

/// See `kernels/stencil.cu`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct StencilArgument {
    directions: u32,
    orbitals: u32,
    cells: [u32; MOST_DIRECTIONS],
    weight: [u32; MOST_DIRECTIONS],
    table: [u32; MOST_DIRECTIONS],
    classes: u64,
    start: u64,
    entries: u64,
    diagonal: u64,
    plain: u64,
    distances: u64,
    on_site: u64,
    tile_x: u32,
    tile_y: u32,
    march: u32,
    slab: u32,
    quads: u32,
    all_plain: u32,
}

/// The general kernel's argument: the struct, then the values of inner cells, whose size is the type's.
#[derive(Clone, Copy)]
pub(super) struct General {
    head: StencilArgument,
    values: [u8; 16 * MOST_INNER],
    /// The argument of the kernel for whole cells, where it takes the stencil.
    pub blocks: Option<BlocksArgument>,
}

impl General {
    /// The argument as the kernel takes it.
    pub fn bytes(&self) -> [u8; size_of::<StencilArgument>() + 16 * MOST_INNER] {
        let mut all = [0; _];
        let (head, values) = all.split_at_mut(size_of::<StencilArgument>());
        head.copy_from_slice(bytemuck::bytes_of(&self.head));
        values.copy_from_slice(&self.values);
        all
    }

    /// Threads that a row may be spread over: a block holds a cell at least.
    pub fn most_threads(&self) -> u32 {
        1 << (THREADS / self.head.orbitals).max(1).ilog2().min(4)
    }

    /// See [`StencilArgument::tile`].
    pub fn tile(&mut self, threads: u32, bytes: u32) -> u64 {
        self.head.tile(threads, bytes)
    }
}

impl StencilArgument {
    /// Cuts the cells into tiles for blocks whose rows take `threads` threads and `bytes` each; returns how many units
    /// of work that makes.
    fn tile(&mut self, threads: u32, bytes: u32) -> u64 {
        let cells = (THREADS / threads / self.orbitals).max(1);
        (self.tile_x, self.tile_y) = match (self.directions, cells) {
            (1 | 2, _) => (cells, 1),
            (_, 64..) => (16, cells / 16),
            (_, 8..) => (8, cells / 8),
            _ => (cells, 1),
        };
        self.march = match threads {
            _ if self.directions == 1 => 1,
            1 => MARCH / 2,
            _ => MARCH,
        };
        self.slab = slab(self.tile_y, u64::from(self.cells[0] * self.orbitals) * u64::from(bytes), threads);
        let directions = self.directions as usize;
        let along = if directions > 2 { 2 } else { 1 };
        let across = |there: bool, d: usize, step: u32| if there { self.cells[d].div_ceil(step) } else { 1 };
        let far: u64 = (3..directions).map(|d| u64::from(self.cells[d])).product();
        u64::from(across(true, 0, self.tile_x))
            * u64::from(across(directions > 2, 1, self.tile_y))
            * u64::from(across(directions > along, along, self.march))
            * far
    }
}

/// Most bytes of the values of inner cells that the kernel for straight hoppings takes.
const STRAIGHT_INNER: usize = 6 * 16;

/// Planes that a thread of the kernel for straight hoppings works on together.
const PAIR: u32 = 2;

/// The same where several steps share a launch.
const PLANES: u32 = 4;

/// Threads of a block of the kernel for straight hoppings, where a row has one thread and where it has more.
const LONE_BLOCK: u32 = 128;
const SHARED_BLOCK: u32 = 512;

/// See `kernels/straight.cu`.
#[derive(Clone, Copy)]
pub(super) struct StraightArgument {
    head: StencilHead,
    inner: [u8; STRAIGHT_INNER],
    directions: usize,
}

impl StraightArgument {
    /// Threads of a block, for rows over so many.
    pub fn block(threads: u32) -> u32 {
        if threads == 1 { LONE_BLOCK } else { SHARED_BLOCK }
    }

    /// Whether it has planes, of which a thread has several under way.
    pub fn is_deep(&self) -> bool {
        self.head.nz > 1
    }

    /// As [`BlocksArgument::tile`].
    pub fn tile(&mut self, kind: PassKind, (block, threads): (u32, u32), bytes: u32, resident: u32) -> u64 {
        let head = &mut self.head;
        let cells = block / threads;
        let most = match cells {
            _ if head.ny == 1 => cells,
            128.. => 32,
            64.. => 16,
            _ => 4,
        };
        head.cut(cells, most, kind);
        head.march = if threads < 16 { MARCH } else { 2 * MARCH }.min(head.nz);
        head.slab = slab(head.tile_y, u64::from(head.nx) * u64::from(bytes), threads);
        head.units(if kind.is_several() { PLANES } else { PAIR }, resident)
    }

    /// As [`BlocksArgument::on_chip`].
    pub fn on_chip(&self) -> Option<(OnChipHead, &[u8])> {
        Some((self.head.on_chip(self.directions)?, &self.inner))
    }

    /// The argument as the kernel takes it.
    pub fn bytes(&self) -> [u8; size_of::<StencilHead>() + STRAIGHT_INNER] {
        let mut all = [0; _];
        let (head, inner) = all.split_at_mut(size_of::<StencilHead>());
        head.copy_from_slice(bytemuck::bytes_of(&self.head));
        inner.copy_from_slice(&self.inner);
        all
    }
}

/// The values of a stencil that the kernel for straight hoppings takes; none for others.
fn straight(stencil: &Stencil, classes: &Classes) -> Option<StencilValues> {
    let lone = |t: &StencilTerm| t.shift.iter().any(|&s| s != 0);
    if stencil.orbitals != 1 || !stencil.terms.iter().all(lone) {
        return None;
    }
    StencilValues::of(stencil, classes)
}

/// Bytes of a distance and a value, at multiples of 16.
fn entry_bytes(dtype: DType) -> usize {
    if dtype == DType::C64 { 32 } else { 16 }
}

/// Entries as the kernels read them: the distance in rows, then the value, at multiples of 16 bytes.
fn packed(dtype: DType, lists: &[Vec<(isize, C64)>]) -> (Vec<u32>, Vec<u8>) {
    let width = entry_bytes(dtype);
    let mut start = vec![0u32];
    let mut entries: Vec<u8> = Vec::new();
    for list in lists {
        for &(distance, value) in list {
            let at = entries.len();
            entries.extend((distance as i64).to_ne_bytes());
            entries.extend(to_bytes(dtype, &[value]));
            entries.resize(at + width, 0);
        }
        start.push((entries.len() / width) as u32);
    }
    (start, entries)
}

/// Which kernel takes a stencil, with its argument.
pub(super) enum CellsLaunch {
    General(Box<General>),
    Straight(Box<StraightArgument>),
}

/// A stencil on the GPU.
pub(super) struct CudaStencil {
    pub info: KernelInfo,
    /// First part of the kernel's name.
    pub name: &'static str,
    pub argument: CellsLaunch,
    /// What the argument points to.
    pub buffers: Vec<CardBuffer>,
}

/// Whether there is a kernel for a stencil of so many directions and orbitals.
pub(super) fn taken(stencil: &Stencil) -> bool {
    stencil.cells.len() <= MOST_DIRECTIONS && stencil.orbitals <= THREADS as usize
}

/// Brings a stencil to the GPU.
pub(super) fn bring(card: &Arc<Card>, stencil: &Stencil) -> Result<CudaStencil> {
    stencil.validate()?;
    if !taken(stencil) {
        return Err(Error::input(format!(
            "a stencil in {} directions with {} orbitals on the GPU, which takes {MOST_DIRECTIONS} and {}",
            stencil.cells.len(),
            stencil.orbitals,
            THREADS
        ))
        .hint("use `format: \"csr\"`"));
    }
    let dtype = stencil.dtype;
    let classes = Classes::new(stencil)?;
    let diagonal = match &stencil.diagonal {
        Some(d) if dtype.is_single() => {
            let numbers: Vec<f32> = d.numbers()?.into_iter().map(|x| x as f32).collect();
            Some(card.upload(&numbers)?)
        }
        Some(d) => Some(card.upload(&d.numbers()?)?),
        None => None,
    };
    let on_site = diagonal.as_ref().map_or(0, |d: &CardBuffer| d.address);
    let (name, argument, mut buffers) = match straight(stencil, &classes) {
        Some(values) => straight_argument(card, stencil, &classes, &values, on_site)?,
        None => general_argument(card, stencil, &classes, on_site)?,
    };
    // As the host counts them, whatever the kernel is given.
    let hoppings = classes.lists.iter().map(Vec::len).sum::<usize>() * entry_bytes(dtype);
    let bytes = hoppings + diagonal.as_ref().map_or(0, |d| d.bytes);
    let info = KernelInfo { format: "stencil".into(), bytes, entries: classes.entries(stencil) };
    buffers.extend(diagonal);
    Ok(CudaStencil { info, name, argument, buffers })
}

fn straight_argument(
    card: &Arc<Card>,
    stencil: &Stencil,
    classes: &Classes,
    values: &StencilValues,
    diagonal: u64,
) -> Result<(&'static str, CellsLaunch, Vec<CardBuffer>)> {
    // Rows have no hopping to themselves.
    let (head, buffers) = StencilHead::of(card, stencil, classes, (values, OWN), diagonal)?;
    let directions = stencil.cells.len();
    let argument = StraightArgument { head, inner: padded(stencil.dtype, &values.inner[..OWN]), directions };
    // A lattice that is one cell deep has hoppings to itself there.
    let name = if stencil.cells.len() < 3 { "straight2" } else { "straight3" };
    Ok((name, CellsLaunch::Straight(Box::new(argument)), buffers))
}

fn general_argument(
    card: &Arc<Card>,
    stencil: &Stencil,
    classes: &Classes,
    diagonal: u64,
) -> Result<(&'static str, CellsLaunch, Vec<CardBuffer>)> {
    let fixed = |numbers: &[usize]| {
        let mut out = [0u32; MOST_DIRECTIONS];
        out.iter_mut().zip(numbers).for_each(|(o, &n)| *o = n as u32);
        out
    };
    let mut table = Vec::new();
    let mut of_class: Vec<u32> = Vec::new();
    for class in &classes.of_coordinate {
        table.push(of_class.len());
        of_class.extend(class);
    }
    let (start, entries) = packed(stencil.dtype, &classes.lists);
    let (of_class, start, entries) = (card.upload(&of_class)?, card.upload(&start)?, card.upload(&entries)?);
    let mut head = StencilArgument {
        directions: stencil.cells.len() as u32,
        orbitals: stencil.orbitals as u32,
        cells: fixed(&stencil.cells),
        weight: fixed(&classes.weights),
        table: fixed(&table),
        classes: of_class.address,
        start: start.address,
        entries: entries.address,
        diagonal,
        ..StencilArgument::zeroed()
    };
    let mut values = [0; 16 * MOST_INNER];
    let inner = InnerHoppings::of(stencil, classes);
    let plain = card.upload(&inner.plain)?;
    let distances = card.upload(&inner.distances)?;
    let on_site = card.upload(&to_bytes(stencil.dtype, &inner.on_site))?;
    head.plain = plain.address;
    head.distances = distances.address;
    head.on_site = on_site.address;
    head.quads = inner.quads as u32;
    head.all_plain = u32::from(inner.plain.iter().all(|&p| p == 1));
    let bytes = to_bytes(stencil.dtype, &inner.values);
    values[..bytes.len()].copy_from_slice(&bytes);
    let mut buffers = vec![of_class, start, entries, plain, distances, on_site];
    let mut blocks = None;
    if let Some((argument, more)) = BlocksArgument::of(card, stencil, classes, diagonal)? {
        blocks = Some(argument);
        buffers.extend(more);
    }
    Ok(("stencil", CellsLaunch::General(Box::new(General { head, values, blocks })), buffers))
}

/// The hoppings of inner cells, and where they lead from cells of every combination of classes.
#[derive(Default)]
struct InnerHoppings {
    /// Hoppings of an orbital, in fours.
    quads: usize,
    /// Values, `quads` fours of every orbital; what is left of the last four is zero.
    values: Vec<C64>,
    /// Of each combination: 1 if its cells have these hoppings and no others.
    plain: Vec<u32>,
    /// Distances in rows, `quads` fours of every orbital of every combination; 0 for hoppings that a boundary cuts.
    distances: Vec<i32>,
    /// What the rows have on the diagonal, less the hoppings that are cut.
    on_site: Vec<C64>,
}

impl InnerHoppings {
    fn of(stencil: &Stencil, classes: &Classes) -> Self {
        let orbitals = stencil.orbitals;
        let combinations = classes.lists.len() / orbitals.max(1);
        let middle = |(of, &n): (&Vec<u32>, &usize)| of.get(n / 2).map_or(0, |&class| class as usize);
        let of_middle = classes.of_coordinate.iter().zip(&stencil.cells).map(middle);
        let number: usize = of_middle.zip(&classes.weights).map(|(class, weight)| class * weight).sum();
        let hoppings = |list: &[(isize, C64)]| -> Vec<(isize, C64)> {
            list.iter().filter(|e| e.0 != 0).copied().collect()
        };
        let inner: Vec<Vec<(isize, C64)>> =
            classes.lists[number * orbitals..][..orbitals].iter().map(|list| hoppings(list)).collect();
        let quads = inner.iter().map(|list| list.len().div_ceil(4)).max().unwrap_or(0);
        let none =
            InnerHoppings { plain: vec![0; combinations], on_site: vec![C64::default()], ..Self::default() };
        if 4 * quads * orbitals > MOST_INNER {
            return none;
        }
        let mut all = InnerHoppings { quads, plain: vec![1; combinations], ..Self::default() };
        for (orbital, list) in inner.iter().enumerate() {
            all.values.extend(list.iter().map(|e| e.1));
            all.values.resize(4 * quads * (orbital + 1), C64::default());
        }
        for (kind, list) in classes.lists.iter().enumerate() {
            let mut on_site: C64 = list.iter().filter(|e| e.0 == 0).map(|e| e.1).sum();
            let mut rest = hoppings(list);
            let from = all.distances.len();
            for &(_, value) in &inner[kind % orbitals] {
                // Hoppings of one value may change places.
                if let Some(at) = rest.iter().position(|e| e.1 == value) {
                    let (distance, _) = rest.remove(at);
                    let Ok(distance) = i32::try_from(distance) else { return none };
                    all.distances.push(distance);
                } else {
                    all.distances.push(0);
                    on_site -= value;
                }
            }
            all.distances.resize(from + 4 * quads, 0);
            all.on_site.push(on_site);
            if !rest.is_empty() {
                all.plain[kind / orbitals] = 0;
            }
        }
        all
    }
}
