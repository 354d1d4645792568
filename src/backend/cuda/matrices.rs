//! Matrices on the GPU: the fused pass and the recurrence over every format.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::card::{Buffer, Card};
use super::{RESIDENT, THREADS, arguments, buffer, suffix, to_bytes, unique};
use crate::backend::matrix::{Csr, Indices, Stencil, Values, classes::Classes};
use crate::backend::{BlockVector, Dots, Kernel, KernelInfo, MatrixSpec, Rows, Update, check_update};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// Rows that a block takes at a time in the stored formats.
const CHUNK: usize = 256;

/// Threads of a block of the stencil kernels.
const STENCIL_THREADS: u32 = 512;

/// Directions that the stencil kernel takes.
const MOST_DIRECTIONS: usize = 8;

/// Most bytes of block sums that a recurrence keeps before it reduces them.
const SUMS: usize = 256 << 20;

/// The argument that all kernels of this file share; see `kernels/update.cuh`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Vectors {
    v: u64,
    w: u64,
    sums: u64,
    alpha: f64,
    beta: f64,
    gamma: f64,
    lanes: u32,
    offset: u64,
}

/// A matrix as its kernels take it, by value.
#[derive(Clone, Copy)]
enum Argument {
    Csr { start: u64, columns: u64, values: u64 },
    Sell { slices: u64, lengths: u64, order: u64, columns: u64, values: u64, chunk: u64, shift: u64 },
    Dense { cols: u64, values: u64 },
    Stencil(StencilArgument),
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct StencilArgument {
    directions: u32,
    orbitals: u32,
    cells: [u32; MOST_DIRECTIONS],
    weight: [u32; MOST_DIRECTIONS],
    table: [u32; MOST_DIRECTIONS],
    classes: u64,
    start: u64,
    entries: u64,
    diagonal: u64,
    tile_x: u32,
    tile_y: u32,
    march: u32,
    near: u32,
}

/// A matrix on the GPU.
struct Matrix {
    card: Arc<Card>,
    rows: Rows,
    cols: usize,
    dtype: DType,
    info: KernelInfo,
    /// First part of the kernel's name, and its last.
    name: (&'static str, &'static str),
    argument: Argument,
    /// The largest distance of an entry from its row, of a stencil.
    reach: u64,
    /// Keeps the memory that the argument points to.
    _buffers: Vec<Buffer>,
}

/// How a row's lanes are spread over threads.
struct Shape {
    /// Lanes of a thread, loaded at once.
    pack: u32,
    /// Threads of a row.
    threads: u32,
    /// Blocks beside each other that share the rows.
    tiles: u32,
}

fn shape(dtype: DType, lanes: u32) -> Shape {
    let most = (16 / dtype.bytes() as u32).max(1);
    let mut pack = most;
    while !lanes.is_multiple_of(pack) {
        pack /= 2;
    }
    let packs = lanes / pack;
    let threads = packs.next_power_of_two().min(32);
    Shape { pack, threads, tiles: packs.div_ceil(threads) }
}

impl Matrix {
    /// Type and number of the lanes that a kernel sees: a real matrix takes a complex number as two.
    fn lanes(&self, v: &BlockVector) -> (DType, u32) {
        let parts = if v.dtype.is_complex() && !self.dtype.is_complex() { 2 } else { 1 };
        (self.dtype, (v.columns * parts) as u32)
    }

    /// The argument for vectors of so many lanes: a block's threads cover one tile.
    fn argument(&self, shape: &Shape, lanes: u32) -> Argument {
        let Argument::Stencil(mut s) = self.argument else { return self.argument };
        let cells = (STENCIL_THREADS / shape.threads / s.orbitals).max(1);
        (s.tile_x, s.tile_y) = match (s.directions, cells) {
            (1 | 2, _) => (cells, 1),
            (_, 256..) => (64, cells / 64),
            (_, 16..) => (8.min(cells), cells / 8),
            _ => (cells.div_ceil(2), 2),
        };
        s.march = if s.directions == 1 { 1 } else { 32 };
        s.near = u32::from(self.reach.saturating_mul(u64::from(lanes)) < 1 << 31);
        Argument::Stencil(s)
    }

    /// Units of work for one launch.
    fn units(&self, argument: &Argument) -> u64 {
        let Argument::Stencil(s) = argument else { return self.rows.local as u64 };
        let directions = s.directions as usize;
        let along = if directions > 2 { 2 } else { 1 };
        let across = |there: bool, d: usize, step: u32| if there { s.cells[d].div_ceil(step) } else { 1 };
        let far: u64 = (3..directions).map(|d| u64::from(s.cells[d])).product();
        u64::from(across(true, 0, s.tile_x))
            * u64::from(across(directions > 2, 1, s.tile_y))
            * u64::from(across(directions > along, along, s.march))
            * far
    }

    fn threads(&self) -> u32 {
        if matches!(self.argument, Argument::Stencil(_)) { STENCIL_THREADS } else { THREADS }
    }

    fn blocks(&self, shape: &Shape, argument: &Argument) -> u32 {
        let units = match argument {
            Argument::Stencil(_) => self.units(argument),
            _ => self.rows.local.div_ceil(CHUNK) as u64,
        };
        let resident = self.card.processors * RESIDENT * THREADS / self.threads();
        units.clamp(1, u64::from(resident.div_ceil(shape.tiles))) as u32
    }

    /// Queues one pass.
    fn pass(&self, shape: &Shape, argument: &Argument, blocks: u32, vectors: Vectors) -> Result<()> {
        let lane_type = suffix(self.dtype);
        let (first, last) = self.name;
        let kernel = format!("{first}_{lane_type}_p{}_l{}{last}", shape.pack, shape.threads);
        let (units, grid, threads) = (self.units(argument), (blocks, shape.tiles), self.threads());
        if units == 0 {
            return Ok(());
        }
        macro_rules! launch {
            ($matrix:expr) => {{
                let matrix = $matrix;
                // SAFETY: the kernel's arguments; the matrix was validated, and the vectors were matched to it.
                unsafe { self.card.launch(&kernel, grid, threads, &arguments![matrix, units, vectors]) }
            }};
        }
        match *argument {
            Argument::Csr { start, columns, values } => launch!([start, columns, values]),
            Argument::Sell { slices, lengths, order, columns, values, chunk, shift } => {
                launch!([slices, lengths, order, columns, values, chunk, shift])
            }
            Argument::Dense { cols, values } => launch!([cols, values]),
            Argument::Stencil(argument) => launch!(argument),
        }
    }

    /// Sums of `steps` passes, added over blocks on the GPU and over the parts of complex numbers here.
    fn reduced(
        &self,
        sums: &Buffer,
        steps: usize,
        blocks: u32,
        lanes: u32,
        columns: usize,
    ) -> Result<Vec<Dots>> {
        let count = 2 * lanes;
        let out = self.card.allocate(8 * steps * count as usize)?;
        let arguments = arguments![blocks, count, sums.address, out.address];
        // SAFETY: the kernel's arguments; `sums` holds steps * blocks * count doubles, `out` steps * count.
        unsafe { self.card.launch("reduce", (steps as u32, count.min(1024)), THREADS, &arguments)? };
        let numbers: Vec<f64> = self.card.download(&out, steps * count as usize)?;
        let parts = lanes as usize / columns.max(1);
        let column = |of: &[f64], c: usize| of[c * parts..(c + 1) * parts].iter().sum::<f64>();
        Ok(numbers
            .chunks(count as usize)
            .map(|step| {
                let (vv, wv) = step.split_at(lanes as usize);
                Dots {
                    vv: (0..columns).map(|c| column(vv, c)).collect(),
                    wv: (0..columns).map(|c| column(wv, c)).collect(),
                }
            })
            .collect())
    }
}

impl Kernel for Matrix {
    fn rows(&self) -> Rows {
        self.rows
    }

    fn cols(&self) -> usize {
        self.cols
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn info(&self) -> KernelInfo {
        self.info.clone()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        let (columns, (lane_type, lanes)) = (v.columns, self.lanes(v));
        if columns == 0 {
            return Ok(());
        }
        let shape = shape(lane_type, lanes);
        let argument = self.argument(&shape, lanes);
        let blocks = self.blocks(&shape, &argument);
        let sums = match dots {
            Some(_) => Some(self.card.allocate(16 * blocks as usize * lanes as usize)?),
            None => None,
        };
        let vectors = Vectors {
            v: buffer(v)?.address,
            w: unique(&self.card, w)?.address,
            sums: sums.as_ref().map_or(0, |s| s.address),
            alpha: c.alpha,
            beta: c.beta,
            gamma: c.gamma,
            lanes,
            offset: if c.beta != 0.0 || dots.is_some() { self.rows.start as u64 } else { 0 },
        };
        self.pass(&shape, &argument, blocks, vectors)?;
        if let (Some(dots), Some(sums)) = (dots, sums) {
            *dots = self.reduced(&sums, 1, blocks, lanes, columns)?.pop().unwrap_or_default();
        }
        Ok(())
    }

    fn recurrence(
        &self,
        alpha: f64,
        beta: f64,
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
        out: &mut Vec<Dots>,
    ) -> Result<()> {
        check_update(self, v, w, true)?;
        let (columns, (lane_type, lanes)) = (v.columns, self.lanes(v));
        if columns == 0 {
            out.extend((0..steps).map(|_| Dots::default()));
            return Ok(());
        }
        let shape = shape(lane_type, lanes);
        let argument = self.argument(&shape, lanes);
        let blocks = self.blocks(&shape, &argument);
        let each = 16 * blocks as usize * lanes as usize;
        let at_once = (SUMS / each.max(1)).clamp(1, 1 << 15).min(steps.max(1));
        let sums = self.card.allocate(each * at_once)?;
        let mut done = 0;
        while done < steps {
            // Nothing is waited for within these steps.
            let now = at_once.min(steps - done);
            for step in 0..now {
                let vectors = Vectors {
                    v: buffer(v)?.address,
                    w: unique(&self.card, w)?.address,
                    sums: sums.address + (step * each) as u64,
                    alpha,
                    beta,
                    gamma: -1.0,
                    lanes,
                    offset: self.rows.start as u64,
                };
                self.pass(&shape, &argument, blocks, vectors)?;
                std::mem::swap(v, w);
            }
            out.extend(self.reduced(&sums, now, blocks, lanes, columns)?);
            done += now;
        }
        Ok(())
    }
}

/// Brings a matrix to the GPU.
pub(super) fn prepare(card: &Arc<Card>, spec: MatrixSpec) -> Result<Arc<dyn Kernel>> {
    match spec {
        MatrixSpec::Csr(csr) => csr_rows(card, &csr),
        MatrixSpec::Ell(csr) => {
            let chunk = csr.rows.max(1);
            sliced(card, &csr, chunk, 1, "ELL".into())
        }
        MatrixSpec::Sell { csr, sigma, .. } => {
            // A slice is a warp: 32 rows whose entries lie side by side.
            if sigma == 0 {
                return Err(Error::input("SELL-C-sigma needs C and sigma of at least 1"));
            }
            sliced(card, &csr, 32, sigma, format!("SELL-32-{sigma}"))
        }
        MatrixSpec::Dense { rows, cols, dtype, values } => {
            let bytes = to_bytes(dtype, &values);
            let info = KernelInfo { format: "dense".into(), bytes: bytes.len(), entries: rows * cols };
            let values = card.upload(&bytes)?;
            let argument = Argument::Dense { cols: cols as u64, values: values.address };
            Ok(matrix(card, rows, cols, dtype, info, ("dense", ""), argument, 0, vec![values]))
        }
        MatrixSpec::Stencil(stencil) => stencil_cells(card, &stencil),
        MatrixSpec::Records(_) => Err(Error::internal("records are no matrix in rows")),
    }
}

fn matrix(
    card: &Arc<Card>,
    rows: usize,
    cols: usize,
    dtype: DType,
    info: KernelInfo,
    name: (&'static str, &'static str),
    argument: Argument,
    reach: u64,
    buffers: Vec<Buffer>,
) -> Arc<dyn Kernel> {
    let (card, rows) = (card.clone(), Rows::all(rows));
    Arc::new(Matrix { card, rows, cols, dtype, info, name, argument, reach, _buffers: buffers })
}

fn upload_values(card: &Arc<Card>, values: &Values) -> Result<Buffer> {
    match values {
        Values::F32(v) => card.upload(v),
        Values::F64(v) => card.upload(v),
        Values::C32(_) | Values::C64(_) => {
            let all: Vec<C64> = (0..values.len()).map(|i| values.get(i)).collect();
            card.upload(&to_bytes(values.dtype(), &all))
        }
    }
}

fn upload_indices(card: &Arc<Card>, indices: &Indices) -> Result<(Buffer, &'static str)> {
    match indices {
        Indices::U32(columns) => Ok((card.upload(columns)?, "_u32")),
        Indices::U64(columns) => Ok((card.upload(columns)?, "_u64")),
    }
}

fn csr_rows(card: &Arc<Card>, csr: &Csr) -> Result<Arc<dyn Kernel>> {
    csr.validate()?;
    let start: Vec<u64> = csr.row_start.iter().map(|&s| s as u64).collect();
    let (start, values) = (card.upload(&start)?, upload_values(card, &csr.values)?);
    let (columns, last) = upload_indices(card, &csr.columns)?;
    let argument = Argument::Csr { start: start.address, columns: columns.address, values: values.address };
    let info = KernelInfo { format: "CSR".into(), bytes: csr.bytes(), entries: csr.entries() };
    let dtype = csr.values.dtype();
    Ok(matrix(
        card,
        csr.rows,
        csr.cols,
        dtype,
        info,
        ("csr", last),
        argument,
        0,
        vec![start, values, columns],
    ))
}

fn sliced(
    card: &Arc<Card>,
    csr: &Csr,
    chunk: usize,
    sigma: usize,
    format: String,
) -> Result<Arc<dyn Kernel>> {
    csr.validate()?;
    if csr.rows > u32::MAX as usize {
        return Err(Error::input(format!("{format}: {} rows are too many for one slice order", csr.rows))
            .hint("use the CSR format or a stencil"));
    }
    let length = |row: u32| csr.row_start[row as usize + 1] - csr.row_start[row as usize];
    let mut order: Vec<u32> = (0..csr.rows as u32).collect();
    if sigma > 1 {
        for window in order.chunks_mut(sigma) {
            window.sort_by_key(|&row| std::cmp::Reverse(length(row)));
        }
    }
    let sorted = order.iter().enumerate().any(|(at, &row)| at != row as usize);
    let mut slices = vec![0u64];
    let mut places = Vec::new();
    for window in order.chunks(chunk) {
        let longest = window.iter().map(|&row| length(row)).max().unwrap_or(0);
        for k in 0..longest {
            for lane in 0..chunk {
                let row = window.get(lane).copied();
                places.push(row.filter(|&r| k < length(r)).map(|r| csr.row_start[r as usize] + k));
            }
        }
        slices.push(places.len() as u64);
    }
    let columns = match &csr.columns {
        Indices::U32(c) => Indices::U32(places.iter().map(|p| p.map_or(0, |at| c[at])).collect()),
        Indices::U64(c) => Indices::U64(places.iter().map(|p| p.map_or(0, |at| c[at])).collect()),
    };
    let value = |p: &Option<usize>| p.map_or(C64::default(), |at| csr.values.get(at));
    let values = Values::C64(places.iter().map(value).collect()).convert(csr.values.dtype());
    let lengths: Vec<u32> = order.iter().map(|&row| length(row) as u32).collect();
    let bytes = values.bytes() + columns.len() * columns.bytes() + 4 * lengths.len();
    let info = KernelInfo { format, bytes, entries: csr.entries() };
    let dtype = csr.values.dtype();
    let values = upload_values(card, &values)?;
    let (columns, last) = upload_indices(card, &columns)?;
    let (slices, lengths) = (card.upload(&slices)?, card.upload(&lengths)?);
    let order = if sorted { Some(card.upload(&order)?) } else { None };
    let argument = Argument::Sell {
        slices: slices.address,
        lengths: lengths.address,
        order: order.as_ref().map_or(0, |o| o.address),
        columns: columns.address,
        values: values.address,
        chunk: chunk as u64,
        shift: if chunk == 32 { 5 } else { 63 },
    };
    let mut buffers = vec![values, columns, slices, lengths];
    buffers.extend(order);
    Ok(matrix(card, csr.rows, csr.cols, dtype, info, ("sell", last), argument, 0, buffers))
}

fn stencil_cells(card: &Arc<Card>, stencil: &Stencil) -> Result<Arc<dyn Kernel>> {
    stencil.validate()?;
    let directions = stencil.cells.len();
    if directions > MOST_DIRECTIONS || stencil.cells.iter().any(|&n| n > u32::MAX as usize) {
        return Err(Error::input(format!(
            "a stencil in {directions} directions on the GPU, which takes {MOST_DIRECTIONS}"
        ))
        .hint("use `format: \"csr\"`"));
    }
    let classes = Classes::new(stencil)?;
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
    // An entry: the distance in rows, then the value, at multiples of 16 bytes.
    let (dtype, width) = (stencil.dtype, if stencil.dtype == DType::C64 { 32 } else { 16 });
    let reach = classes.lists.iter().flatten().map(|e| e.0.unsigned_abs() as u64).max().unwrap_or(0);
    let mut start = vec![0u32];
    let mut entries: Vec<u8> = Vec::new();
    for list in &classes.lists {
        for &(distance, value) in list {
            let at = entries.len();
            entries.extend((distance as i64).to_ne_bytes());
            entries.extend(to_bytes(dtype, &[value]));
            entries.resize(at + width, 0);
        }
        start.push((entries.len() / width) as u32);
    }
    let diagonal = match &stencil.diagonal {
        Some(d) if dtype.is_single() => Some(card.upload(&d.iter().map(|&x| x as f32).collect::<Vec<_>>())?),
        Some(d) => Some(card.upload(d)?),
        None => None,
    };
    let bytes = entries.len() + diagonal.as_ref().map_or(0, |d| d.bytes);
    let info = KernelInfo { format: "stencil".into(), bytes, entries: classes.entries(stencil) };
    let (of_class, start, entries) = (card.upload(&of_class)?, card.upload(&start)?, card.upload(&entries)?);
    let argument = Argument::Stencil(StencilArgument {
        directions: directions as u32,
        orbitals: stencil.orbitals as u32,
        cells: fixed(&stencil.cells),
        weight: fixed(&classes.weights),
        table: fixed(&table),
        classes: of_class.address,
        start: start.address,
        entries: entries.address,
        diagonal: diagonal.as_ref().map_or(0, |d| d.address),
        tile_x: 0,
        tile_y: 0,
        march: 0,
        near: 0,
    });
    let mut buffers = vec![of_class, start, entries];
    buffers.extend(diagonal);
    let dim = stencil.dim();
    Ok(matrix(card, dim, dim, dtype, info, ("stencil", ""), argument, reach, buffers))
}
