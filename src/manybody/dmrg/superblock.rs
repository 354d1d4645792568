//! Two blocks side by side as one operator: `H = sum_alpha A_alpha x B_alpha` over the operators carried across the
//! bond between them, as operation records between pairs of sectors (Nemes, Barcza, Nagy, Legeza, Szolgay, Comput.
//! Phys. Commun. 185, 1570 (2014)).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use faer::MatRef;
use rayon::prelude::*;

use super::block::ChainBlock;
use super::operators::{CarriedOperator, PresentOperators};
use super::pieces::{CoveredMatrix, diagonal, put_together, signature};
use super::space::{ChainSide, ChargeLabel};
use crate::backend::matrix::outer::OuterSums;
use crate::backend::matrix::records::{
    Element, Handling, OperatorPiece, ProductRecord, RecordList, SectorPanel,
};
use crate::backend::{BlockVector, Device, Kernel, MatrixSpec};
use crate::error::{Error, Result};
use crate::number::C64;
use crate::operator::{DiagonalOnDevice, LinearOperator, Operator};

/// Which products are formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// By cost: an operator that fills its sectors becomes one matrix, any other keeps its parts.
    #[default]
    Auto,
    /// Operators of a block and its site as one matrix: few large products.
    LeftRight,
    /// Blocks and sites apart: many small products, and no copies of operators.
    FourParts,
}

impl Strategy {
    /// The part of an operator's area that has to be filled for it to become one matrix.
    fn threshold(self) -> f64 {
        match self {
            Strategy::Auto => 0.5,
            Strategy::LeftRight => 0.0,
            Strategy::FourParts => f64::INFINITY,
        }
    }
}

/// A pair of sectors whose charges add up to those of the superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectorPair {
    /// Sector of the left block.
    pub left: usize,
    /// Sector of the right block.
    pub right: usize,
}

/// The total charges of a superblock; none where a number is free.
pub type TargetCharges = Vec<Option<i32>>;

/// Two blocks as an operator.
pub struct Superblock<T> {
    left: Arc<ChainBlock<T>>,
    right: Arc<ChainBlock<T>>,
    /// The operators of both, here as long as the superblock is.
    operators: [PresentOperators<T>; 2],
    pairs: Vec<SectorPair>,
    list: Arc<RecordList<T>>,
    diagonal: OuterSums,
    kernel: Arc<dyn Kernel>,
    device: Device,
}

/// The pieces of an operator between two sectors: identities, and dense ones.
struct SectorPieces<T> {
    identities: Vec<OperatorPiece<T>>,
    dense: Vec<OperatorPiece<T>>,
}

type PiecesBySectors<T> = BTreeMap<(usize, usize), SectorPieces<T>>;

/// One operator of a block between two sectors, as products take it; its pieces where they are to become one matrix.
fn half<T: Element>(
    (rows, columns): (usize, usize),
    factors: Vec<OperatorPiece<T>>,
    strategy: Strategy,
) -> std::result::Result<SectorPieces<T>, Vec<OperatorPiece<T>>> {
    let area: usize = factors.iter().filter(|f| f.matrix.is_some()).map(|f| f.rows * f.columns).sum();
    let dense = factors.iter().filter(|f| f.matrix.is_some()).count();
    let single = dense == 1 && factors.len() == 1;
    if dense == 0 || single || (area as f64) < strategy.threshold() * (rows * columns) as f64 {
        let (dense, identities) = factors.into_iter().partition(|f| f.matrix.is_some());
        return Ok(SectorPieces { identities, dense });
    }
    Err(factors)
}

/// All operators of both blocks across the bond between them.
fn all_halves<T: Element>(
    device: &Device,
    blocks: [(&ChainBlock<T>, &PresentOperators<T>); 2],
    symbols: usize,
    strategy: Strategy,
) -> Result<Vec<[PiecesBySectors<T>; 2]>> {
    let mut all: Vec<[PiecesBySectors<T>; 2]> =
        (0..symbols).map(|_| [PiecesBySectors::new(), PiecesBySectors::new()]).collect();
    let (mut wholes, mut known) = (Vec::new(), HashMap::new());
    let mut places = Vec::new();
    for symbol in 0..symbols {
        for (side, (block, operators)) in blocks.iter().enumerate() {
            let space = block.space();
            for (at, factors) in block.by_sectors(operators, symbol) {
                let shape = (space.dim(at.0), space.dim(at.1));
                match half(shape, factors, strategy) {
                    Ok(half) => drop(all[symbol][side].insert(at, half)),
                    Err(factors) => {
                        // A block and its mirror image are made of the same matrices.
                        let number = *known.entry((shape, signature(&factors))).or_insert(wholes.len());
                        if number == wholes.len() {
                            wholes.push(CoveredMatrix { shape, factors });
                        }
                        places.push((symbol, side, at, number));
                    }
                }
            }
        }
    }
    let matrices = put_together(device, &wholes)?;
    for (symbol, side, at, number) in places {
        let (rows, columns) = wholes[number].shape;
        let (scale, matrix) = (T::from_c64(C64::ONE), Some(matrices[number].clone()));
        let factor = OperatorPiece { row: 0, rows, column: 0, columns, scale, matrix };
        all[symbol][side].insert(at, SectorPieces { identities: Vec::new(), dense: vec![factor] });
    }
    Ok(all)
}

impl<T: Element> Superblock<T> {
    /// The superblock of two blocks, in the sector `target`.
    ///
    /// # Errors
    /// When the blocks do not fit together or no state has these charges.
    pub fn new(
        device: &Device,
        left: &Arc<ChainBlock<T>>,
        right: &Arc<ChainBlock<T>>,
        target: &TargetCharges,
        strategy: Strategy,
    ) -> Result<Superblock<T>> {
        Superblock::within(device, left, right, target, strategy, Handling::default())
    }

    /// The same, handled by a GPU as wished.
    ///
    /// # Errors
    /// As [`Superblock::new`].
    pub fn within(
        device: &Device,
        left: &Arc<ChainBlock<T>>,
        right: &Arc<ChainBlock<T>>,
        target: &TargetCharges,
        strategy: Strategy,
        handling: Handling,
    ) -> Result<Superblock<T>> {
        if left.half() != ChainSide::Left || right.half() != ChainSide::Right {
            return Err(Error::input("a superblock is made of a left and a right block")
                .hint("of a chain that is its own mirror image, a left block and its mirror image"));
        }
        if !left.mpo().meets(right.mpo()) || left.bond() != right.bond() {
            return Err(Error::input("the two blocks do not meet")
                .hint("they end at the same bond of one chain: one begins where the other ends"));
        }
        let symmetry = left.mpo().symmetry();
        let (l, r) = (left.space(), right.space());
        // The right block holds the total spin, which makes a singlet with the left.
        let spin = symmetry.spin();
        let mut pairs = Vec::new();
        let mut panels = Vec::new();
        let mut number: HashMap<(usize, usize), usize> = HashMap::new();
        let mut dim = 0;
        for (i, (a, rows)) in l.iter().enumerate() {
            for (j, (b, columns)) in r.iter().enumerate() {
                let Some(sum) = symmetry.joined(a, b) else { continue };
                let meant =
                    |(c, (q, t)): (usize, (&i32, &Option<i32>))| spin == Some(c) || t.is_none_or(|t| t == *q);
                if sum.iter().zip(target).enumerate().all(meant) {
                    number.insert((i, j), pairs.len());
                    pairs.push(SectorPair { left: i, right: j });
                    panels.push(SectorPanel { offset: dim, rows, columns });
                    dim += rows * columns;
                }
            }
        }
        if dim == 0 {
            let named = symmetry.names().iter().zip(target).filter_map(|(name, t)| Some((name, (*t)?)));
            let text: Vec<String> = named.map(|(n, t)| format!("{n} = {}", f64::from(t) / 2.0)).collect();
            return Err(Error::input(format!("no state of the superblock has {}", text.join(", ")))
                .hint("the blocks' states cannot be combined to these numbers"));
        }
        let mut records: Vec<Vec<ProductRecord<T>>> = vec![Vec::new(); pairs.len()];
        // Identities on both sides often meet in the same place, from several operators: their factors are added up.
        let mut plain: Vec<BTreeMap<[usize; 9], T>> = vec![BTreeMap::new(); pairs.len()];
        let operators = [left.operators()?, right.operators()?];
        let symbols = left.mpo().bond(left.bond()).charges.len();
        let blocks = [(&**left, &operators[0]), (&**right, &operators[1])];
        let both = all_halves(device, blocks, symbols, strategy)?;
        for [a, b] in &both {
            for (&(to_left, from_left), a) in a {
                for (&(to_right, from_right), b) in b {
                    let (Some(&target), Some(&source)) =
                        (number.get(&(to_left, to_right)), number.get(&(from_left, from_right)))
                    else {
                        continue;
                    };
                    let out = &mut records[target];
                    for x in &a.identities {
                        for y in &b.identities {
                            let key = [
                                source, x.row, x.rows, x.column, x.columns, y.row, y.rows, y.column,
                                y.columns,
                            ];
                            *plain[target].entry(key).or_default() += x.scale * y.scale;
                        }
                        for y in &b.dense {
                            out.push(ProductRecord::Single { source, left: x.clone(), right: y.clone() });
                        }
                    }
                    for x in &a.dense {
                        for y in &b.identities {
                            out.push(ProductRecord::Single { source, left: x.clone(), right: y.clone() });
                        }
                    }
                    if !a.dense.is_empty() && !b.dense.is_empty() {
                        out.push(ProductRecord::Double {
                            source,
                            left: a.dense.clone(),
                            right: b.dense.clone(),
                        });
                    }
                }
            }
        }
        for (out, plain) in records.iter_mut().zip(plain) {
            for ([source, row, rows, column, columns, r, rs, c, cs], scale) in plain {
                let one = T::from_c64(C64::ONE);
                out.push(ProductRecord::Single {
                    source,
                    left: OperatorPiece { row, rows, column, columns, scale, matrix: None },
                    right: OperatorPiece {
                        row: r,
                        rows: rs,
                        column: c,
                        columns: cs,
                        scale: one,
                        matrix: None,
                    },
                });
            }
        }
        let list = Arc::new(RecordList { dim, panels, records });
        let diagonal = diagonal(device, &list)?;
        let kernel = device.prepare(MatrixSpec::Records { records: T::wrap(list.clone()), handling })?;
        let (left, right, device) = (left.clone(), right.clone(), device.clone());
        Ok(Superblock { left, right, operators, pairs, list, diagonal, kernel, device })
    }

    /// The charges of two blocks of a chain: those of the whole chain, or what is nearest to the share of their
    /// sites.
    pub fn share(left: &ChainBlock<T>, right: &ChainBlock<T>) -> ChargeLabel {
        let mpo = left.mpo();
        let (n, own) = (mpo.sites().count(), left.sites() + right.sites());
        if own >= n {
            return mpo.target().clone();
        }
        let part = own as f64 / n as f64;
        let wanted = mpo.target().iter().zip(mpo.symmetry().moduli());
        let wanted: Vec<Option<f64>> = wanted.map(|(t, m)| (*m == 0).then(|| part * f64::from(*t))).collect();
        Superblock::nearest(left, right, &wanted)
    }

    /// Of the labels that the states of two blocks add up to, the one nearest to some numbers (twice their values).
    pub fn nearest(left: &ChainBlock<T>, right: &ChainBlock<T>, wanted: &[Option<f64>]) -> ChargeLabel {
        let symmetry = left.mpo().symmetry();
        let distance = |q: &ChargeLabel| -> f64 {
            let one = |(q, w): (&i32, &Option<f64>)| w.map_or(0.0, |w| (f64::from(*q) - w).powi(2));
            q.iter().zip(wanted).map(one).sum()
        };
        let sums = left
            .space()
            .iter()
            .flat_map(|(a, _)| right.space().iter().filter_map(|(b, _)| symmetry.joined(a, b)));
        sums.min_by(|a, b| distance(a).total_cmp(&distance(b)).then(a.cmp(b)))
            .unwrap_or_else(|| symmetry.zero())
    }

    /// The operator for scripts and solvers.
    pub fn into_operator(self, device: &Device) -> Operator
    where
        Superblock<T>: LinearOperator,
    {
        let label = format!("superblock of {} + {} sites", self.left.sites(), self.right.sites());
        Operator::from_node(device.clone(), Arc::new(self)).labelled(label)
    }

    pub fn left(&self) -> &Arc<ChainBlock<T>> {
        &self.left
    }

    pub fn right(&self) -> &Arc<ChainBlock<T>> {
        &self.right
    }

    pub fn half(&self, side: ChainSide) -> &Arc<ChainBlock<T>> {
        match side {
            ChainSide::Left => &self.left,
            ChainSide::Right => &self.right,
        }
    }

    /// The operators of one of the blocks.
    pub(super) fn operators(&self, side: ChainSide) -> &[CarriedOperator<T>] {
        match side {
            ChainSide::Left => &self.operators[0],
            ChainSide::Right => &self.operators[1],
        }
    }

    /// The sectors of the left and the right block that states of the target join, in the order of a vector.
    pub fn pairs(&self) -> &[SectorPair] {
        &self.pairs
    }

    /// Where its products are made.
    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Length of a vector.
    pub fn dim(&self) -> usize {
        self.list.dim
    }

    /// The records of a product.
    pub fn list(&self) -> &RecordList<T> {
        &self.list
    }

    /// A vector as one matrix a pair of sectors.
    pub(super) fn panels<'a>(&'a self, x: &'a [T]) -> impl Iterator<Item = (SectorPair, MatRef<'a, T>)> {
        self.pairs.iter().zip(&self.list.panels).map(move |(pair, p)| {
            let own = &x[p.offset..p.offset + p.rows * p.columns];
            (*pair, MatRef::from_row_major_slice(own, p.rows, p.columns))
        })
    }

    /// The place of a pair of sectors in a vector.
    pub(super) fn panel(&self, left: usize, right: usize) -> Option<SectorPanel> {
        let at = self.pairs.binary_search_by_key(&(left, right), |p| (p.left, p.right)).ok()?;
        Some(self.list.panels[at])
    }

    /// The columns of a block vector on the host.
    ///
    /// # Errors
    /// When the vector does not belong to the superblock.
    pub fn columns(&self, device: &Device, v: &BlockVector) -> Result<Vec<Vec<T>>> {
        if v.rows().global != self.dim() {
            return Err(Error::input(format!(
                "a vector of {} rows for a superblock of {}",
                v.rows().global,
                self.dim()
            ))
            .hint("take the vectors that `davidson` finds for this superblock"));
        }
        if v.dtype().is_complex() && !T::DTYPE.is_complex() {
            return Err(Error::input("a complex vector of a real superblock").hint("take its real part"));
        }
        if v.columns() == 1
            && !T::DTYPE.is_complex()
            && let Some(numbers) = device.download_real(v)?.and_then(T::of_reals)
        {
            return Ok(vec![numbers]);
        }
        let data = device.download(v)?;
        let (rows, columns) = (self.dim(), v.columns());
        let column =
            |c: usize| (0..rows).into_par_iter().map(|i| T::from_c64(data[i * columns + c])).collect();
        Ok((0..columns).map(column).collect())
    }
}

impl<T: Element> LinearOperator for Superblock<T> {
    fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }

    /// The sum that it comes from was found Hermitian.
    fn is_hermitian(&self) -> Result<Option<bool>> {
        Ok(Some(true))
    }

    fn diagonal(&self) -> Option<Vec<C64>> {
        Some(self.diagonal.numbers().into_par_iter().map(C64::from).collect())
    }

    fn diagonal_on_device(&self) -> Result<Option<DiagonalOnDevice>> {
        let Some(faster) = self.device.superblocks() else { return Ok(None) };
        let Some(entries) = faster.outer(&self.diagonal, 0..self.dim())? else { return Ok(None) };
        let (lowest, spread) = self.diagonal.lowest_and_spread();
        Ok(Some(DiagonalOnDevice { entries, lowest, spread }))
    }

    fn describe(&self) -> String {
        format!("{} pairs of sectors, {}", self.pairs.len(), self.kernel.info().format)
    }
}
