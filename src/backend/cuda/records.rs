//! Products by operation records on the GPU: two launches of one kernel, the inner products of records with two dense
//! sides first. Operators are brought over once, and stay for all products of a search. A complex superblock is two real
//! ones, which read and write the real and imaginary parts of vectors.

use std::collections::HashMap;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::card::{Buffer, Card};
use super::{algebra, arguments, buffer, unique};
use crate::backend::matrix::records::{Factor, Record, RecordList, Records};
use crate::backend::{BlockVector, Dots, Kernel, KernelInfo, Rows, Update, check_update};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// Rows and columns of a tile of the kernel, and the threads that it takes.
const SIDE: usize = 64;
const THREADS: u32 = 128;

/// Where an operand of a record lies.
const MATRIX: u32 = 0;
const VECTOR: u32 = 1;
const INNER: u32 = 2;

/// A record as the kernel reads it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Step {
    scale: f64,
    left: u64,
    right: u64,
    row: u32,
    rows: u32,
    column: u32,
    columns: u32,
    depth: u32,
    left_row: u32,
    left_column: u32,
    right_row: u32,
    left_kind: u32,
    right_kind: u32,
}

/// A tile of the result as the kernel reads it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Tile {
    out: u64,
    rows: u32,
    columns: u32,
    row: u32,
    column: u32,
    first: u32,
    count: u32,
}

/// One launch: its tiles and their records on the GPU.
struct Pass {
    tiles: Buffer,
    steps: Buffer,
    count: u32,
}

/// A prepared list of real records.
struct Resident {
    card: Arc<Card>,
    list: Arc<RecordList<f64>>,
    /// The operators, one after the other.
    _operators: Buffer,
    inner: Buffer,
    first: Option<Pass>,
    second: Pass,
    bytes: usize,
}

/// Tiles and records in the making.
#[derive(Default)]
struct Plan {
    tiles: Vec<(u64, Tile)>,
    steps: Vec<Step>,
}

impl Plan {
    /// Deals a block of the result out in tiles that walk the records given.
    fn block(&mut self, out: usize, rows: usize, columns: usize, steps: Vec<Step>) {
        let work: u64 =
            steps.iter().map(|s| u64::from(s.rows) * u64::from(s.columns) * u64::from(s.depth.max(1))).sum();
        let (first, count) = (self.steps.len() as u32, steps.len() as u32);
        self.steps.extend(steps);
        for row in (0..rows).step_by(SIDE) {
            for column in (0..columns).step_by(SIDE) {
                let tile = Tile {
                    out: out as u64,
                    rows: rows as u32,
                    columns: columns as u32,
                    row: row as u32,
                    column: column as u32,
                    first,
                    count,
                };
                self.tiles.push((work / (rows * columns) as u64, tile));
            }
        }
    }

    /// Brings all to the GPU, the longest tiles first.
    fn upload(mut self, card: &Arc<Card>) -> Result<Pass> {
        self.tiles.sort_by_key(|t| std::cmp::Reverse(t.0));
        let tiles: Vec<Tile> = self.tiles.iter().map(|t| t.1).collect();
        let count = u32::try_from(tiles.len()).map_err(|_| Error::internal("too many tiles"))?;
        Ok(Pass { tiles: card.upload(&tiles)?, steps: card.upload(&self.steps)?, count })
    }
}

/// Brings a superblock to the GPU.
pub(super) fn prepare(card: &Arc<Card>, records: Records) -> Result<Arc<dyn Kernel>> {
    match records {
        Records::Real(list) => Ok(Arc::new(Resident::new(card, list)?)),
        Records::Complex(list) => {
            let [real, imaginary] = list.parts().map(|part| Resident::new(card, Arc::new(part)));
            Ok(Arc::new(Complex { real: real?, imaginary: imaginary?, list }))
        }
    }
}

impl Resident {
    fn new(card: &Arc<Card>, list: Arc<RecordList<f64>>) -> Result<Resident> {
        let matrices = list.matrices();
        let numbers: usize = matrices.iter().map(|m| m.nrows() * m.ncols()).sum();
        let mut packed: Vec<f64> = Vec::with_capacity(numbers);
        let mut at: HashMap<*const faer::Mat<f64>, (u64, u32)> = HashMap::new();
        for m in &matrices {
            at.insert(Arc::as_ptr(m), (packed.len() as u64, m.nrows() as u32));
            for j in 0..m.ncols() {
                packed.extend(m.col(j).iter());
            }
        }
        let operators = card.upload(&packed)?;
        let place = |f: &Factor<f64>| -> (u64, u32) {
            let known = f.matrix.as_ref().and_then(|m| at.get(&Arc::as_ptr(m)));
            known.map_or((0, 0), |(first, rows)| (operators.address + 8 * first, *rows))
        };
        let (mut first, mut second) = (Plan::default(), Plan::default());
        let mut inner = 0;
        for (target, records) in list.panels.iter().zip(&list.records) {
            let mut steps = Vec::new();
            for record in records {
                match record {
                    Record::Single { source, left, right } => {
                        let from = list.panels[*source];
                        let step = Step {
                            scale: left.scale * right.scale,
                            row: left.row as u32,
                            rows: left.rows as u32,
                            column: right.row as u32,
                            columns: right.rows as u32,
                            ..Step::zeroed()
                        };
                        let x = (from.offset + left.column * from.columns + right.column) as u64;
                        let across = from.columns as u32;
                        steps.push(if left.matrix.is_some() {
                            let (a, height) = place(left);
                            Step {
                                left: a,
                                left_row: 1,
                                left_column: height,
                                left_kind: MATRIX,
                                right: x,
                                right_row: across,
                                right_kind: VECTOR,
                                depth: left.columns as u32,
                                ..step
                            }
                        } else if right.matrix.is_some() {
                            let (b, height) = place(right);
                            Step {
                                left: x,
                                left_row: across,
                                left_column: 1,
                                left_kind: VECTOR,
                                right: b,
                                right_row: height,
                                right_kind: MATRIX,
                                depth: right.columns as u32,
                                ..step
                            }
                        } else {
                            Step { left: x, left_row: across, left_column: 1, left_kind: VECTOR, ..step }
                        });
                    }
                    Record::Double { source, left, right } => {
                        let from = list.panels[*source];
                        let (height, across) = (target.rows, from.columns);
                        let products = left.iter().map(|f| {
                            let (a, rows) = place(f);
                            Step {
                                scale: f.scale,
                                row: f.row as u32,
                                rows: f.rows as u32,
                                columns: across as u32,
                                left: a,
                                left_row: 1,
                                left_column: rows,
                                left_kind: MATRIX,
                                right: (from.offset + f.column * across) as u64,
                                right_row: across as u32,
                                right_kind: VECTOR,
                                depth: f.columns as u32,
                                ..Step::zeroed()
                            }
                        });
                        first.block(inner, height, across, products.collect());
                        for f in right {
                            let (b, rows) = place(f);
                            steps.push(Step {
                                scale: f.scale,
                                rows: height as u32,
                                column: f.row as u32,
                                columns: f.rows as u32,
                                left: (inner + f.column) as u64,
                                left_row: across as u32,
                                left_column: 1,
                                left_kind: INNER,
                                right: b,
                                right_row: rows,
                                right_kind: MATRIX,
                                depth: f.columns as u32,
                                ..Step::zeroed()
                            });
                        }
                        inner += height * across;
                    }
                }
            }
            second.block(target.offset, target.rows, target.columns, steps);
        }
        let first = if first.tiles.is_empty() { None } else { Some(first.upload(card)?) };
        Ok(Resident {
            card: card.clone(),
            _operators: operators,
            inner: card.allocate(8 * inner)?,
            first,
            second: second.upload(card)?,
            bytes: 8 * (numbers + inner),
            list,
        })
    }

    /// `w = alpha A v + beta v + gamma w` from lane `from` of `v` to lane `to` of `w`, each of `lanes` numbers side by side.
    fn product(&self, c: Update, (v, from): (u64, u32), (w, to): (u64, u32), lanes: u32) -> Result<()> {
        let launch = |pass: &Pass, out: u64, out_lane: u32, out_lanes: u32, c: Update| {
            let (tiles, steps, inner) = (pass.tiles.address, pass.steps.address, self.inner.address);
            let Update { alpha, beta, gamma } = c;
            let arguments =
                arguments![tiles, steps, v, inner, out, from, lanes, out_lane, out_lanes, alpha, beta, gamma];
            // SAFETY: the kernel's arguments. Tiles and records were made from the list, whose places lie inside the
            // vectors, the inner products and the operators, all of which are alive.
            unsafe { self.card.launch("records_f64", (pass.count, 1), THREADS, &arguments) }
        };
        if let Some(first) = &self.first {
            launch(first, self.inner.address, 0, 1, Update::PRODUCT)?;
        }
        launch(&self.second, w, to, lanes, c)
    }
}

/// How many numbers lie side by side in a row.
fn lanes(v: &BlockVector) -> Result<u32> {
    let parts = if v.dtype().is_complex() { 2 } else { 1 };
    u32::try_from(v.columns() * parts).map_err(|_| Error::input("too many columns"))
}

impl Kernel for Resident {
    fn rows(&self) -> Rows {
        Rows::all(self.list.dim)
    }

    fn cols(&self) -> usize {
        self.list.dim
    }

    fn dtype(&self) -> DType {
        DType::F64
    }

    fn info(&self) -> KernelInfo {
        KernelInfo {
            format: format!("{} records", self.list.count()),
            bytes: self.bytes,
            entries: self.list.flops() as usize / 2,
        }
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        // A real operator acts on the columns of a block, and on real and imaginary parts, one after the other.
        let (lanes, x) = (lanes(v)?, buffer(v)?.address);
        let y = unique(&self.card, w)?.address;
        for lane in 0..lanes {
            self.product(c, (x, lane), (y, lane), lanes)?;
        }
        algebra::products(&self.card, v, w, dots)
    }
}

/// A prepared list of complex records, H = R + i I.
struct Complex {
    real: Resident,
    imaginary: Resident,
    list: Arc<RecordList<C64>>,
}

impl Kernel for Complex {
    fn rows(&self) -> Rows {
        Rows::all(self.list.dim)
    }

    fn cols(&self) -> usize {
        self.list.dim
    }

    fn dtype(&self) -> DType {
        DType::C64
    }

    fn info(&self) -> KernelInfo {
        KernelInfo {
            format: format!("{} records", self.list.count()),
            bytes: self.real.bytes + self.imaginary.bytes,
            entries: self.list.flops() as usize / 8,
        }
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        let card = &self.real.card;
        let (lanes, x) = (lanes(v)?, buffer(v)?.address);
        let y = unique(card, w)?.address;
        for lane in 0..lanes {
            self.real.product(c, (x, lane), (y, lane), lanes)?;
            // i I takes the other part: with a minus to the real part, which lies on even lanes.
            let alpha = if lane % 2 == 0 { -c.alpha } else { c.alpha };
            self.imaginary.product(
                Update { alpha, beta: 0.0, gamma: 1.0 },
                (x, lane ^ 1),
                (y, lane),
                lanes,
            )?;
        }
        algebra::products(card, v, w, dots)
    }
}
