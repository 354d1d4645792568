//! Blocks of sites: a truncated basis in sectors and, in it, the operators that still couple to the rest. A block grows
//! by a site; the product basis is kept as parts and then rotated into a new basis.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::basis::TruncatedBasis;
use super::dense::deal;
use super::mpo::{Mpo, MpoEntry};
use super::operators::{CarriedOperator, CarriedOperators, Outline, PresentOperators};
use super::space::{ChainSide, ChargeLabel, Fusion, Space};
use super::spread::{SpreadMatrices, WholeMatrices};
use crate::backend::matrix::held::{HeldMatrix, before_threads};
use crate::backend::matrix::records::{Element, OperatorPiece};
use crate::error::{Error, Result};
use crate::manybody::wigner::recoupling;
use crate::number::C64;

/// For each sector of a block, the sector of a state's bond with the same charges, if there is one, and the overlaps:
/// rows for the block's states, columns for those of the bond.
pub(super) type SectorOverlaps<T> = Vec<Option<(usize, faer::Mat<T>)>>;

/// A piece of an operator between two sectors.
pub(super) struct Patch<T> {
    pub row: usize,
    pub column: usize,
    pub factor: OperatorPiece<T>,
}

/// The pieces of an operator by row sector and column sector.
pub(super) type Pieces<T> = BTreeMap<(usize, usize), Vec<OperatorPiece<T>>>;

/// How the basis and the operators of a block are stored.
pub(super) enum BlockForm<T> {
    /// A basis of its own with explicit operators.
    Plain {
        space: Space,
        carried: CarriedOperators<T>,
        /// The grown block and the rotation that it was made by.
        origin: Option<(Arc<ChainBlock<T>>, Arc<TruncatedBasis<T>>)>,
    },
    /// A block and the next site.
    Grown { inner: Arc<ChainBlock<T>>, fusion: Fusion, site: usize },
}

impl<T> BlockForm<T> {
    /// The same of a block elsewhere, which was not rotated from the grown one here.
    pub fn elsewhere(&self) -> BlockForm<T> {
        match self {
            BlockForm::Plain { space, carried, .. } => {
                BlockForm::Plain { space: space.clone(), carried: carried.clone(), origin: None }
            }
            BlockForm::Grown { inner, fusion, site } => {
                BlockForm::Grown { inner: inner.clone(), fusion: fusion.clone(), site: *site }
            }
        }
    }
}

/// A block of sites.
pub struct ChainBlock<T> {
    pub(super) mpo: Arc<Mpo>,
    pub(super) side: ChainSide,
    pub(super) sites: usize,
    /// The bond at its inner edge.
    pub(super) bond: usize,
    /// Whether the block is the mirror image of a left one.
    pub(super) mirrored: bool,
    pub(super) shape: BlockForm<T>,
    /// Overlaps of this block's basis with other states, by their numbers.
    pub(super) overlaps: Mutex<HashMap<u64, Arc<SectorOverlaps<T>>>>,
}

impl<T: Element> ChainBlock<T> {
    /// A block without sites at an end of the chain.
    pub fn edge(mpo: &Arc<Mpo>, side: ChainSide) -> Arc<ChainBlock<T>> {
        let n = mpo.sites().count();
        let bond = match side {
            ChainSide::Right if !mpo.is_uniform() => n,
            _ => 0,
        };
        let own = mpo.bond(bond);
        let ones = match side {
            ChainSide::Left => [own.start, own.parity],
            ChainSide::Right => [own.done, None],
        };
        let carried =
            (0..own.charges.len())
                .map(|k| {
                    if ones.contains(&Some(k)) { CarriedOperator::Identity } else { CarriedOperator::Nothing }
                })
                .collect::<Vec<_>>();
        let symmetry = mpo.symmetry();
        let space = Space::single(match side {
            ChainSide::Left => symmetry.zero(),
            ChainSide::Right => symmetry.end(mpo.target()),
        });
        ChainBlock::made(
            mpo,
            side,
            0,
            bond,
            false,
            BlockForm::Plain { space, carried: carried.into(), origin: None },
        )
    }

    /// A right block without sites inside the chain, as if the chain ended at `bond`: terms that reach beyond are
    /// left out.
    pub fn cut(mpo: &Arc<Mpo>, bond: usize) -> Arc<ChainBlock<T>> {
        let own = mpo.bond(bond);
        let carried = (0..own.charges.len())
            .map(|k| if own.done == Some(k) { CarriedOperator::Identity } else { CarriedOperator::Nothing })
            .collect::<Vec<_>>();
        let space = Space::single(mpo.share_of_spin(bond));
        ChainBlock::made(
            mpo,
            ChainSide::Right,
            0,
            bond,
            false,
            BlockForm::Plain { space, carried: carried.into(), origin: None },
        )
    }

    pub(super) fn made(
        mpo: &Arc<Mpo>,
        side: ChainSide,
        sites: usize,
        bond: usize,
        mirrored: bool,
        shape: BlockForm<T>,
    ) -> Arc<ChainBlock<T>> {
        let overlaps = Mutex::new(HashMap::new());
        Arc::new(ChainBlock { mpo: mpo.clone(), side, sites, bond, mirrored, shape, overlaps })
    }

    /// The block with the next site.
    ///
    /// # Errors
    /// When the chain has no further site, or the block is grown already.
    pub fn grow(self: &Arc<Self>) -> Result<Arc<ChainBlock<T>>> {
        if matches!(self.shape, BlockForm::Grown { .. }) {
            return Err(Error::input("a grown block takes no further site before it is rotated")
                .hint("bring it into a truncated basis first"));
        }
        let n = self.mpo.sites().count();
        let (site, bond) = match self.side {
            _ if self.mpo.is_uniform() => (0, 0),
            ChainSide::Left if self.bond < n => (self.bond, self.bond + 1),
            ChainSide::Right if self.bond > 0 => (self.bond - 1, self.bond - 1),
            _ => return Err(Error::input(format!("the chain has no site beyond its {n}"))),
        };
        let symmetry = self.mpo.symmetry();
        let states = self.mpo.states(site);
        let fusion = match self.side {
            ChainSide::Left => Fusion::new(symmetry, self.space(), states),
            ChainSide::Right => Fusion::new(symmetry, self.space(), &symmetry.from_right(states)),
        };
        let shape = BlockForm::Grown { inner: self.clone(), fusion, site };
        Ok(ChainBlock::made(&self.mpo, self.side, self.sites + 1, bond, self.mirrored, shape))
    }

    /// The block with the next site, nothing truncated.
    ///
    /// # Errors
    /// When the chain has no further site, or the block is grown already.
    pub fn extend(self: &Arc<Self>) -> Result<Arc<ChainBlock<T>>> {
        let grown = self.grow()?;
        let basis = TruncatedBasis::whole(grown.space()).shared();
        grown.rotate(&basis)
    }

    /// The block as the other half of a chain that is its own mirror image.
    ///
    /// # Errors
    /// For blocks that are no left blocks of a uniform chain, and couplings that are not their own mirror image.
    pub fn mirror(self: &Arc<Self>) -> Result<Arc<ChainBlock<T>>> {
        if !self.mpo.is_uniform() || self.side != ChainSide::Left || self.mirrored {
            return Err(Error::input("only a left block of a uniform chain has a mirror image")
                .hint("an edge is made of a site and a bond"));
        }
        if self.mpo.mirror().is_none() {
            return Err(Error::input("the coupling is not its own mirror image")
                .hint("grow a right block of its own, from an edge of that side"));
        }
        Ok(ChainBlock::made(&self.mpo, self.side, self.sites, self.bond, true, self.shape.elsewhere()))
    }

    /// The half of a superblock that this block can be.
    pub fn half(&self) -> ChainSide {
        if self.mirrored { ChainSide::Right } else { self.side }
    }

    pub fn sites(&self) -> usize {
        self.sites
    }

    /// The automaton whose operators the block carries.
    pub fn mpo(&self) -> &Arc<Mpo> {
        &self.mpo
    }

    /// The bond at the block's inner edge.
    pub fn bond(&self) -> usize {
        self.bond
    }

    /// Its basis.
    pub fn space(&self) -> &Space {
        match &self.shape {
            BlockForm::Plain { space, .. } => space,
            BlockForm::Grown { fusion, .. } => fusion.space(),
        }
    }

    /// Bytes of the operators, on all ranks together.
    pub fn bytes(&self) -> usize {
        match &self.shape {
            BlockForm::Plain { carried, .. } => carried.bytes(),
            BlockForm::Grown { inner, .. } => inner.bytes(),
        }
    }

    pub(super) fn fusion(&self) -> Option<(&Arc<ChainBlock<T>>, &Fusion, usize)> {
        match &self.shape {
            BlockForm::Grown { inner, fusion, site } => Some((inner, fusion, *site)),
            BlockForm::Plain { .. } => None,
        }
    }

    pub(super) fn origin(&self) -> Option<&(Arc<ChainBlock<T>>, Arc<TruncatedBasis<T>>)> {
        match &self.shape {
            BlockForm::Plain { origin, .. } => origin.as_ref(),
            BlockForm::Grown { .. } => None,
        }
    }

    /// The charges of a sector, summed over this block's sites.
    pub fn label(&self, sector: usize) -> &ChargeLabel {
        self.space().label(sector)
    }

    /// The operators of its sites, or for a grown block those of the block that it grew from;
    /// all ranks ask for them together.
    ///
    /// # Errors
    /// Those of MPI.
    pub(super) fn operators(&self) -> Result<PresentOperators<T>> {
        match &self.shape {
            BlockForm::Plain { carried, .. } => carried.present(),
            BlockForm::Grown { inner, .. } => inner.operators(),
        }
    }

    /// The operator number `symbol` at the block's inner edge, as seen by a superblock.
    fn pieces(&self, operators: &[CarriedOperator<T>], symbol: usize) -> Vec<Patch<T>> {
        if !self.mirrored {
            return self.own_pieces(operators, symbol);
        }
        let Some(mirror) = self.mpo.mirror() else { return Vec::new() };
        let mut all = Vec::new();
        for &(own, factor) in &mirror[symbol] {
            for mut piece in self.own_pieces(operators, own) {
                piece.factor.scale *= T::from_c64(factor);
                all.push(piece);
            }
        }
        all
    }

    fn own_pieces(&self, operators: &[CarriedOperator<T>], symbol: usize) -> Vec<Patch<T>> {
        let whole = |space: &Space, s: usize, t: usize, matrix: Option<Arc<HeldMatrix<T>>>| Patch {
            row: s,
            column: t,
            factor: OperatorPiece {
                row: 0,
                rows: space.dim(s),
                column: 0,
                columns: space.dim(t),
                scale: T::from_c64(C64::ONE),
                matrix,
            },
        };
        match &self.shape {
            BlockForm::Plain { space, .. } => match &operators[symbol] {
                CarriedOperator::Nothing => Vec::new(),
                CarriedOperator::Identity => (0..space.sectors()).map(|s| whole(space, s, s, None)).collect(),
                CarriedOperator::Blocks(blocks) => {
                    blocks.iter().map(|b| whole(space, b.row, b.column, Some(b.matrix.clone()))).collect()
                }
            },
            BlockForm::Grown { inner, fusion, site } => {
                let mut pieces = Vec::new();
                for entry in self.mpo.tensor(*site) {
                    let (from, to) = match self.side {
                        ChainSide::Left => (entry.left, entry.right),
                        ChainSide::Right => (entry.right, entry.left),
                    };
                    if to != symbol {
                        continue;
                    }
                    for piece in inner.own_pieces(operators, from) {
                        for &(i, j, z) in &entry.elements {
                            let (Some((row, to)), Some((column, at))) =
                                (fusion.place(piece.row, i), fusion.place(piece.column, j))
                            else {
                                continue;
                            };
                            let labels = [
                                inner.label(piece.row),
                                inner.label(piece.column),
                                fusion.space().label(row),
                                fusion.space().label(column),
                            ];
                            let z = z * self.recoupling(inner, *site, entry, [i, j], labels);
                            if z == C64::ZERO {
                                continue;
                            }
                            let f = &piece.factor;
                            pieces.push(Patch {
                                row,
                                column,
                                factor: OperatorPiece {
                                    row: to.offset,
                                    rows: to.dim,
                                    column: at.offset,
                                    columns: at.dim,
                                    scale: f.scale * T::from_c64(z),
                                    matrix: f.matrix.clone(),
                                },
                            });
                        }
                    }
                }
                pieces
            }
        }
    }

    /// The factor of an operator of a block of multiplets that grows by a site; one without a total spin. The labels
    /// are those of its row and column before and after.
    fn recoupling(
        &self,
        inner: &ChainBlock<T>,
        site: usize,
        entry: &MpoEntry,
        states: [usize; 2],
        [row, column, to, at]: [&ChargeLabel; 4],
    ) -> f64 {
        let Some(c) = self.mpo.symmetry().spin() else { return 1.0 };
        let spin = |state: usize| self.mpo.states(site)[state][c + 1];
        let own = [spin(states[0]), spin(states[1]), entry.rank];
        let rank = |bond: usize, symbol: usize| self.mpo.bond(bond).charges[symbol][c];
        let (before, after) = match self.side {
            ChainSide::Left => (rank(inner.bond, entry.left), rank(self.bond, entry.right)),
            ChainSide::Right => (rank(inner.bond, entry.right), rank(self.bond, entry.left)),
        };
        let (block, both) = ([row[c], column[c], before], [to[c], at[c], after]);
        match self.side {
            ChainSide::Left => recoupling(block, own, both),
            ChainSide::Right => recoupling(own, block, both),
        }
    }

    /// The pieces of an operator by row sector and column sector.
    pub(super) fn by_sectors(&self, operators: &[CarriedOperator<T>], symbol: usize) -> Pieces<T> {
        let mut sorted: Pieces<T> = BTreeMap::new();
        for piece in self.pieces(operators, symbol) {
            sorted.entry((piece.row, piece.column)).or_default().push(piece.factor);
        }
        sorted
    }

    /// The pieces of the Hamiltonian's terms that lie within the block.
    pub(super) fn energy(&self, operators: &[CarriedOperator<T>]) -> Pieces<T> {
        let bond = self.mpo.bond(self.bond);
        let whole = match self.side {
            ChainSide::Left => bond.done,
            ChainSide::Right => bond.start,
        };
        whole.map(|symbol| self.by_sectors(operators, symbol)).unwrap_or_default()
    }

    /// The block in a new, smaller basis.
    ///
    /// # Errors
    /// When the block is not grown, or the basis is one of another block.
    pub fn rotate(self: &Arc<Self>, basis: &Arc<TruncatedBasis<T>>) -> Result<Arc<ChainBlock<T>>> {
        let Some((_, fusion, _)) = self.fusion() else {
            return Err(
                Error::input("only a grown block is rotated").hint("grow it by a site, then rotate it")
            );
        };
        if basis.old() != fusion.space() || basis.side().is_some_and(|side| side != self.half()) {
            return Err(Error::input("the basis belongs to another block")
                .hint("take the basis of the block's own half"));
        }
        let bond = self.mpo.bond(self.bond);
        let identity = match self.side {
            ChainSide::Left => bond.start,
            ChainSide::Right => bond.done,
        };
        let operators = self.operators()?;
        // A job for each operator and each pair of sectors that it connects.
        let mut jobs = Vec::new();
        for symbol in (0..bond.charges.len()).filter(|&k| Some(k) != identity) {
            let mut sorted: Pieces<T> = BTreeMap::new();
            for piece in self.own_pieces(&operators, symbol) {
                sorted.entry((piece.row, piece.column)).or_default().push(piece.factor);
            }
            for ((row, column), factors) in sorted {
                if let (Some(to), Some(from)) = (basis.kept(row), basis.kept(column)) {
                    jobs.push((symbol, to, from, factors));
                }
            }
        }
        let works: Vec<u64> =
            jobs.iter().map(|(_, to, from, factors)| basis.work(*to, *from, factors)).collect();
        let alike = basis.alike.filter(|alike| alike.pays(works.iter().sum()));
        let shares = alike.map(|alike| alike.shares(&works));
        let places: Vec<(usize, usize, usize)> =
            jobs.iter().map(|(k, to, from, _)| (*k, *to, *from)).collect();
        let own: Vec<_> =
            (0..).zip(jobs).filter(|(k, _)| shares.as_ref().is_none_or(|s| s.owns(*k))).collect();
        let vectors = basis.vectors.all()?;
        let turns = own.iter().map(|(_, (_, to, from, factors))| (*to, *from, &factors[..]));
        let there = match shares {
            None => basis.turned(&vectors, turns, works.iter().sum())?,
            Some(_) => None,
        };
        let matrices: WholeMatrices<T> = match there {
            Some(matrices) => matrices,
            None => {
                let pieces = own.iter().flat_map(|(_, (.., factors))| factors);
                before_threads(vectors.iter().chain(pieces.filter_map(|f| f.matrix.as_ref())))?;
                let made = deal(
                    &own,
                    |(k, _)| works[*k] as f64,
                    |(_, (_, to, from, factors)), par| {
                        basis.rotated(&vectors, *to, *from, factors, par).map(|m| Arc::new(m.into()))
                    },
                );
                made.into_iter().collect::<Result<_>>()?
            }
        };
        let mut outline: Vec<Outline> = (0..bond.charges.len())
            .map(|k| if Some(k) == identity { Outline::Identity } else { Outline::Nothing })
            .collect();
        for &(symbol, to, from) in &places {
            match &mut outline[symbol] {
                Outline::Blocks(blocks) => blocks.push((to, from)),
                place => *place = Outline::Blocks(vec![(to, from)]),
            }
        }
        let carried = match shares {
            None => CarriedOperators::here(&outline, matrices),
            Some(shares) => {
                let space = basis.new_space();
                let shapes = places.iter().map(|(_, to, from)| (space.dim(*to), space.dim(*from))).collect();
                CarriedOperators::Apart {
                    outline,
                    matrices: Arc::new(SpreadMatrices::parts(shares, shapes, matrices)),
                }
            }
        };
        // Blocks of an infinite chain would keep their whole history.
        let basis_kept = match alike {
            Some(alike) => basis.kept_among(alike)?.shared(),
            None => basis.clone(),
        };
        let origin = (!self.mpo.is_uniform()).then(|| (self.clone(), basis_kept));
        let shape = BlockForm::Plain { space: basis.new_space().clone(), carried, origin };
        Ok(ChainBlock::made(&self.mpo, self.side, self.sites, self.bond, self.mirrored, shape))
    }

    /// The block without what it was made of, which would be kept as long as it is.
    pub(super) fn alone(self: &Arc<Self>) -> Arc<ChainBlock<T>> {
        let BlockForm::Plain { space, carried, .. } = &self.shape else { return self.clone() };
        let shape = BlockForm::Plain { space: space.clone(), carried: carried.clone(), origin: None };
        ChainBlock::made(&self.mpo, self.side, self.sites, self.bond, self.mirrored, shape)
    }

    /// Whether the overlap with a state is remembered.
    pub(super) fn known_overlap(&self, state: u64) -> bool {
        self.overlaps.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&state)
    }

    /// The overlap kept for a state, or a new one.
    pub(super) fn overlap_with(
        &self,
        state: u64,
        make: impl FnOnce() -> Result<SectorOverlaps<T>>,
    ) -> Result<Arc<SectorOverlaps<T>>> {
        let lock = || self.overlaps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&state) {
            return Ok(known.clone());
        }
        let made = Arc::new(make()?);
        lock().insert(state, made.clone());
        Ok(made)
    }
}

impl<T: Element> std::fmt::Display for ChainBlock<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n = self.sites;
        let side = match self.half() {
            ChainSide::Left => "left",
            ChainSide::Right => "right",
        };
        let grown = if matches!(self.shape, BlockForm::Grown { .. }) { "grown, " } else { "" };
        write!(
            f,
            "Block of {n} site{} ({grown}{side}): {} states in {} sectors, {}",
            if n == 1 { "" } else { "s" },
            self.space().total(),
            self.space().sectors(),
            crate::number::memory::human(self.bytes())
        )
    }
}
