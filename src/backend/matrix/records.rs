//! The product of a superblock as a list of operation records (Nemes, Barcza, Nagy, Legeza, Szolgay, CPC 185 (2014)
//! 1570): a vector is a list of small dense blocks, one a pair of sectors, and the Hamiltonian a sum of
//! `X'_jl += A X_ik B^T` over them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use faer::Mat;

use super::held::{DenseNumber, HeldMatrix};
use crate::backend::{Backend, BlockVector, DenseMut, KernelInfo};
use crate::error::Result;
use crate::number::C64;

/// Numbers that blocks are made of.
pub trait Element: DenseNumber {
    /// A list of records of this type.
    fn wrap(list: Arc<RecordList<Self>>) -> Records;
    /// Numbers of a dense matrix, of this type.
    fn dense(numbers: &mut [Self]) -> DenseMut<'_>;
    /// The numbers of matrices in other bases, column by column, where a backend makes them faster than the processor.
    fn turned(_device: &dyn Backend, _turns: &[BasisChange<'_, Self>]) -> Result<Option<BlockVector>> {
        Ok(None)
    }
}

impl Element for f64 {
    fn wrap(list: Arc<RecordList<f64>>) -> Records {
        Records::Real(list)
    }

    fn dense(numbers: &mut [f64]) -> DenseMut<'_> {
        DenseMut::Real(numbers)
    }

    fn turned(device: &dyn Backend, turns: &[BasisChange<'_, f64>]) -> Result<Option<BlockVector>> {
        device.superblocks().map_or(Ok(None), |faster| faster.turned(turns))
    }
}

impl Element for C64 {
    fn wrap(list: Arc<RecordList<C64>>) -> Records {
        Records::Complex(list)
    }

    fn dense(numbers: &mut [C64]) -> DenseMut<'_> {
        DenseMut::Complex(numbers)
    }
}

/// How a GPU launches the products of a superblock (Nemes et al. 2014). All ways give the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    /// All of a pass in one launch.
    #[default]
    Together,
    /// A launch for each block of the result, dealt to four streams.
    FourStreams,
    /// A launch for each block of the result, one after the other.
    NoStreams,
}

/// How a GPU handles a superblock; other backends have one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handling {
    /// Bytes that the operators may take; beyond, they stay in main memory and travel during each product. None: what
    /// the vectors of a search leave.
    pub room: Option<usize>,
    pub schedule: Schedule,
}

/// A list of records, real or complex.
#[derive(Debug, Clone)]
pub enum Records {
    /// Real operators; they act on complex vectors too.
    Real(Arc<RecordList<f64>>),
    Complex(Arc<RecordList<C64>>),
}

impl Records {
    /// Rows of the largest block of a vector.
    pub fn most_rows(&self) -> usize {
        let panels = match self {
            Records::Real(list) => &list.panels,
            Records::Complex(list) => &list.panels,
        };
        panels.iter().map(|panel| panel.rows).max().unwrap_or(0)
    }

    /// Numbers of a vector.
    pub fn dim(&self) -> usize {
        match self {
            Records::Real(list) => list.dim,
            Records::Complex(list) => list.dim,
        }
    }
}

/// A piece of an operator of one block: a dense matrix, or the identity, at a place in a block of sectors.
#[derive(Debug, Clone)]
pub struct OperatorPiece<T> {
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
    pub scale: T,
    /// The matrix; none for the identity.
    pub matrix: Option<Arc<HeldMatrix<T>>>,
}

/// One term of a product: the block that is read, and what it is multiplied by from both sides.
#[derive(Debug, Clone)]
pub enum ProductRecord<T> {
    /// `X' += A X B^T` where at most one of the two is dense.
    Single {
        /// The block of the vector it reads.
        source: usize,
        /// The piece on the left.
        left: OperatorPiece<T>,
        /// The piece on the right.
        right: OperatorPiece<T>,
    },
    /// `X' += (sum A) X (sum B)^T`, both dense: the inner product is kept while the outer ones run.
    Double {
        /// The block of the vector it reads.
        source: usize,
        /// The pieces on the left.
        left: Vec<OperatorPiece<T>>,
        /// The pieces on the right.
        right: Vec<OperatorPiece<T>>,
    },
}

/// A block of a vector, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectorPanel {
    /// Where it starts in the vector.
    pub offset: usize,
    pub rows: usize,
    pub columns: usize,
}

/// A rectangle of a block, whose numbers stand together in a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PanelRectangle {
    pub panel: usize,
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

impl PanelRectangle {
    /// Whether a piece of an operator on the left writes rows of it.
    pub fn meets_rows<T>(&self, left: &OperatorPiece<T>) -> bool {
        left.row < self.row + self.rows && self.row < left.row + left.rows
    }

    /// Whether a piece of an operator on the right writes columns of it.
    pub fn meets_columns<T>(&self, right: &OperatorPiece<T>) -> bool {
        right.row < self.column + self.columns && self.column < right.row + right.rows
    }
}

impl SectorPanel {
    /// What a range of a vector has of these blocks, in its order.
    pub(super) fn pieces_of(panels: &[SectorPanel], range: &Range<usize>) -> Vec<PanelRectangle> {
        panels.iter().enumerate().flat_map(|(k, panel)| panel.pieces(k, range)).collect()
    }

    /// What it shares with a range of a vector: the rest of a row, whole rows, and the beginning of a row.
    fn pieces(&self, panel: usize, range: &Range<usize>) -> Vec<PanelRectangle> {
        let end = self.offset + self.rows * self.columns;
        let (first, last) = (range.start.max(self.offset), range.end.min(end));
        let mut pieces = Vec::new();
        let mut at = first;
        while at < last {
            let (row, column) = ((at - self.offset) / self.columns, (at - self.offset) % self.columns);
            let rest = last - at;
            let (rows, columns) = match column {
                0 if rest >= self.columns => (rest / self.columns, self.columns),
                _ => (1, rest.min(self.columns - column)),
            };
            pieces.push(PanelRectangle { panel, row, rows, column, columns });
            at += rows * columns;
        }
        pieces
    }
}

/// The records of a Hermitian operator, by the block that they write.
#[derive(Debug, Clone)]
pub struct RecordList<T> {
    pub dim: usize,
    /// The blocks of a vector.
    pub panels: Vec<SectorPanel>,
    /// The records that write each block.
    pub records: Vec<Vec<ProductRecord<T>>>,
}

impl<T: Element> ProductRecord<T> {
    /// The block of the vector that it reads.
    pub fn source(&self) -> usize {
        match self {
            ProductRecord::Single { source, .. } | ProductRecord::Double { source, .. } => *source,
        }
    }

    /// Lets it read another block of the same shape.
    pub fn read_from(&mut self, block: usize) {
        match self {
            ProductRecord::Single { source, .. } | ProductRecord::Double { source, .. } => *source = block,
        }
    }

    /// Calls `f` with `[rows, columns, depth]` of every product of matrices; a multiple of an identity has depth 1.
    pub fn products(&self, target: SectorPanel, panels: &[SectorPanel], mut f: impl FnMut([usize; 3])) {
        match self {
            ProductRecord::Single { left, right, .. } => f(match (&left.matrix, &right.matrix) {
                (Some(_), _) => [left.rows, right.columns, left.columns],
                (_, Some(_)) => [left.rows, right.rows, right.columns],
                _ => [left.rows, right.rows, 1],
            }),
            ProductRecord::Double { source, left, right } => {
                left.iter().for_each(|a| f([a.rows, panels[*source].columns, a.columns]));
                right.iter().for_each(|b| f([target.rows, b.rows, b.columns]));
            }
        }
    }

    /// Multiplications (and as many additions) of one product.
    pub fn work(&self, target: SectorPanel, panels: &[SectorPanel]) -> u64 {
        let mut work = 0;
        self.products(target, panels, |[rows, columns, depth]| work += (rows * columns * depth) as u64);
        work
    }

    /// Whether it has a dense matrix.
    fn is_dense(&self) -> bool {
        match self {
            ProductRecord::Single { left, right, .. } => left.matrix.is_some() || right.matrix.is_some(),
            ProductRecord::Double { .. } => true,
        }
    }
}

impl<T: Element> RecordList<T> {
    /// What a range of a vector has of its blocks, in its order.
    pub fn pieces(&self, range: &Range<usize>) -> Vec<PanelRectangle> {
        SectorPanel::pieces_of(&self.panels, range)
    }

    /// The list without what writes none of these pieces.
    pub fn writing(&self, pieces: &[PanelRectangle]) -> RecordList<T> {
        let mut records = vec![Vec::new(); self.panels.len()];
        for own in pieces.chunk_by(|a, b| a.panel == b.panel) {
            let rows = |f: &OperatorPiece<T>| own.iter().any(|piece| piece.meets_rows(f));
            let columns = |f: &OperatorPiece<T>| own.iter().any(|piece| piece.meets_columns(f));
            let part = |record: &ProductRecord<T>| match record {
                ProductRecord::Single { left, right, .. } => {
                    (rows(left) && columns(right)).then(|| record.clone())
                }
                ProductRecord::Double { source, left, right } => {
                    let left: Vec<_> = left.iter().filter(|f| rows(f)).cloned().collect();
                    let right: Vec<_> = right.iter().filter(|f| columns(f)).cloned().collect();
                    let any = !left.is_empty() && !right.is_empty();
                    any.then(|| ProductRecord::Double { source: *source, left, right })
                }
            };
            records[own[0].panel] = self.records[own[0].panel].iter().filter_map(part).collect();
        }
        RecordList { dim: self.dim, panels: self.panels.clone(), records }
    }

    /// Floating-point operations of one product: two for each multiplication and addition of real numbers.
    pub fn flops(&self) -> u64 {
        let each = if T::DTYPE.is_complex() { 8 } else { 2 };
        each * self.work()
    }

    pub fn info(&self) -> KernelInfo {
        let format = format!("{} records", self.count());
        KernelInfo { format, bytes: self.bytes(), entries: self.work() as usize }
    }

    /// Multiplications that each block of a product takes.
    pub fn works(&self) -> Vec<u64> {
        let of = |(target, records): (&SectorPanel, &Vec<ProductRecord<T>>)| -> u64 {
            records.iter().map(|r| r.work(*target, &self.panels)).sum()
        };
        self.panels.iter().zip(&self.records).map(of).collect()
    }

    fn work(&self) -> u64 {
        self.works().iter().sum()
    }

    /// The products of dense matrices that one product takes, `[rows, columns, depth]`,
    /// and how many of each size there are.
    pub fn sizes(&self) -> BTreeMap<[usize; 3], usize> {
        let mut sizes = BTreeMap::new();
        for (target, records) in self.panels.iter().zip(&self.records) {
            for record in records.iter().filter(|r| r.is_dense()) {
                record.products(*target, &self.panels, |size| *sizes.entry(size).or_insert(0) += 1);
            }
        }
        sizes
    }

    pub fn count(&self) -> usize {
        self.records.iter().map(Vec::len).sum()
    }

    /// The distinct matrices that the records hold.
    pub fn matrices(&self) -> Vec<&Arc<HeldMatrix<T>>> {
        let mut all: Vec<&Arc<HeldMatrix<T>>> = Vec::new();
        for record in self.records.iter().flatten() {
            match record {
                ProductRecord::Single { left, right, .. } => {
                    all.extend(left.matrix.iter().chain(&right.matrix));
                }
                ProductRecord::Double { left, right, .. } => {
                    all.extend(left.iter().chain(right).filter_map(|f| f.matrix.as_ref()));
                }
            }
        }
        all.sort_by_key(|m| Arc::as_ptr(m));
        all.dedup_by_key(|m| Arc::as_ptr(m));
        all
    }

    pub fn bytes(&self) -> usize {
        self.matrices().iter().map(|m| m.nrows() * m.ncols() * size_of::<T>()).sum()
    }
}

/// A complex matrix as its real and its imaginary part, each where it is not zero.
type ComplexParts = [Option<Arc<HeldMatrix<f64>>>; 2];

impl RecordList<C64> {
    /// Real lists R and I with `H = R + i I`.
    ///
    /// # Errors
    /// Those of the backend that has the matrices.
    pub fn parts(&self) -> Result<[RecordList<f64>; 2]> {
        let mut split: HashMap<*const HeldMatrix<C64>, ComplexParts> = HashMap::new();
        for held in self.matrices() {
            let m = held.here_alone()?;
            let part = |of: fn(&C64) -> f64| {
                let part = Mat::from_fn(m.nrows(), m.ncols(), |i, j| of(&m[(i, j)]));
                (0..part.ncols())
                    .any(|j| part.col(j).iter().any(|&x| x != 0.0))
                    .then(|| Arc::new(part.into()))
            };
            split.insert(Arc::as_ptr(held), [part(|z| z.re), part(|z| z.im)]);
        }
        // The pieces of the real (0) or imaginary (1) part of a factor.
        let pieces = |f: &OperatorPiece<C64>, scale: C64, of: usize| -> Vec<OperatorPiece<f64>> {
            let piece = |scale: f64, matrix: Option<Arc<HeldMatrix<f64>>>| OperatorPiece {
                row: f.row,
                rows: f.rows,
                column: f.column,
                columns: f.columns,
                scale,
                matrix,
            };
            let with = |scale: f64, part: usize| match &f.matrix {
                None => (part == 0).then(|| piece(scale, None)),
                Some(m) => split[&Arc::as_ptr(m)][part].clone().map(|m| piece(scale, Some(m))),
            };
            let all = match of {
                0 => [with(scale.re, 0), with(-scale.im, 1)],
                _ => [with(scale.im, 0), with(scale.re, 1)],
            };
            all.into_iter().flatten().filter(|f| f.scale != 0.0).collect()
        };
        let of_record = |record: &ProductRecord<C64>, of: usize| -> Vec<ProductRecord<f64>> {
            match record {
                ProductRecord::Single { source, left, right } => {
                    let scale = left.scale * right.scale;
                    let one = C64::new(1.0, 0.0);
                    let (lefts, rights) = if right.matrix.is_some() {
                        (pieces(left, one, 0), pieces(right, scale, of))
                    } else {
                        (pieces(left, scale, of), pieces(right, one, 0))
                    };
                    let pairs = lefts.iter().flat_map(|l| rights.iter().map(move |r| (l.clone(), r.clone())));
                    pairs
                        .map(|(left, right)| ProductRecord::Single { source: *source, left, right })
                        .collect()
                }
                ProductRecord::Double { source, left, right } => {
                    let side = |factors: &[OperatorPiece<C64>], of: usize| -> Vec<OperatorPiece<f64>> {
                        factors.iter().flat_map(|f| pieces(f, f.scale, of)).collect()
                    };
                    let both = |a: usize, b: usize, sign: f64| {
                        let (mut left, right) = (side(left, a), side(right, b));
                        left.iter_mut().for_each(|f| f.scale *= sign);
                        let any = !left.is_empty() && !right.is_empty();
                        any.then(|| ProductRecord::Double { source: *source, left, right })
                    };
                    let all = if of == 0 {
                        [both(0, 0, 1.0), both(1, 1, -1.0)]
                    } else {
                        [both(0, 1, 1.0), both(1, 0, 1.0)]
                    };
                    all.into_iter().flatten().collect()
                }
            }
        };
        Ok([0, 1].map(|of| RecordList {
            dim: self.dim,
            panels: self.panels.clone(),
            records: self
                .records
                .iter()
                .map(|records| records.iter().flat_map(|r| of_record(r, of)).collect())
                .collect(),
        }))
    }
}

/// One matrix `U^H A V`, where A is a sum of pieces.
#[derive(Clone, Copy)]
pub struct BasisChange<'a, T> {
    /// The new basis of its rows and that of its columns, a vector a column.
    pub rows: &'a HeldMatrix<T>,
    pub columns: &'a HeldMatrix<T>,
    /// The pieces of A.
    pub pieces: &'a [OperatorPiece<T>],
}

impl<T> BasisChange<'_, T> {
    /// Numbers of the result.
    pub fn numbers(&self) -> usize {
        self.rows.ncols() * self.columns.ncols()
    }

    /// Multiplications that it takes.
    fn work(&self) -> usize {
        let dense = self.pieces.iter().filter(|f| f.matrix.is_some());
        let inner: usize = dense.map(|f| f.rows * f.columns).sum();
        (inner + self.rows.ncols() * self.rows.nrows()) * self.columns.ncols()
    }

    /// One part's of a list that parts take neighbouring ones of, each about as much work, and where the numbers of
    /// each part begin, and end.
    pub fn shared(turns: &[Self], (part, parts): (usize, usize)) -> (&[Self], Vec<usize>) {
        let all: usize = turns.iter().map(BasisChange::work).sum();
        let (mut done, mut numbers) = (0, 0);
        let (mut first, mut starts) = (vec![0], vec![0]);
        for (k, turn) in turns.iter().enumerate() {
            // A piece is for the part in whose share its middle lies.
            let of = |work: usize| (work as u128 * parts as u128 / all.max(1) as u128) as usize;
            while first.len() <= of(done + turn.work() / 2).min(parts - 1) {
                first.push(k);
                starts.push(numbers);
            }
            done += turn.work();
            numbers += turn.numbers();
        }
        first.resize(parts + 1, turns.len());
        starts.resize(parts + 1, numbers);
        (&turns[first[part]..first[part + 1]], starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any range of a vector is made of its pieces, in order, and each number of it belongs to one.
    #[test]
    fn ranges_are_made_of_pieces() {
        let mut panels: Vec<SectorPanel> = Vec::new();
        for (rows, columns) in [(3, 4), (1, 5), (2, 1), (4, 7)] {
            let offset = panels.last().map_or(0, |p| p.offset + p.rows * p.columns);
            panels.push(SectorPanel { offset, rows, columns });
        }
        let dim = 12 + 5 + 2 + 28;
        let records = vec![Vec::new(); panels.len()];
        let list = RecordList::<f64> { dim, panels, records };
        for (first, last) in (0..=dim).flat_map(|first| (first..=dim).map(move |last| (first, last))) {
            let pieces = list.pieces(&(first..last));
            let places = pieces.iter().flat_map(|piece| {
                let panel = list.panels[piece.panel];
                let row = move |i: usize| {
                    let start = panel.offset + (piece.row + i) * panel.columns + piece.column;
                    start..start + piece.columns
                };
                (0..piece.rows).flat_map(row)
            });
            assert_eq!(places.collect::<Vec<_>>(), (first..last).collect::<Vec<_>>());
            // Rows that are whole stay together.
            assert!(pieces.iter().all(|p| p.rows == 1 || p.columns == list.panels[p.panel].columns));
            assert!(pieces.chunk_by(|a, b| a.panel == b.panel).all(|of| of.len() <= 3));
        }
    }

    #[test]
    fn parts_take_all_turns() {
        let bases: Vec<HeldMatrix<f64>> = (1..9).map(|n| Mat::zeros(2 * n, n).into()).collect();
        let turns: Vec<BasisChange<f64>> = bases
            .iter()
            .flat_map(|rows| bases.iter().map(move |columns| BasisChange { rows, columns, pieces: &[] }))
            .collect();
        for parts in [1, 2, 3, 64, 100] {
            let (mut numbers, mut count) = (0, 0);
            for part in 0..parts {
                let (own, starts) = BasisChange::shared(&turns, (part, parts));
                assert_eq!((starts.len(), starts[part]), (parts + 1, numbers));
                numbers += own.iter().map(BasisChange::numbers).sum::<usize>();
                count += own.len();
                assert_eq!(starts[part + 1], numbers);
                let work: usize = own.iter().map(BasisChange::work).sum();
                let all: usize = turns.iter().map(BasisChange::work).sum();
                assert!(parts > 3 || work.abs_diff(all / parts) < all / 20);
            }
            assert_eq!(count, turns.len());
        }
        let (own, starts) = BasisChange::<f64>::shared(&[], (1, 2));
        assert!(own.is_empty() && starts == [0, 0, 0]);
    }
}
