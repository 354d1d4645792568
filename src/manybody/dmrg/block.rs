//! Blocks of sites: a truncated basis in sectors and, in it, the operators that still couple to the rest. A block grows
//! by a site; the product basis is kept as parts and then rotated into a new basis.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::basis::Basis;
use super::dense::deal;
use super::mpo::{Mpo, MpoEntry};
use super::operators::{Carried, Operators, Outline, Present};
use super::space::{Fusion, Label, Side, Space};
use super::spread::{All, Spread};
use crate::backend::matrix::held::{Held, before_threads};
use crate::backend::matrix::records::{Element, Factor};
use crate::error::{Error, Result};
use crate::manybody::wigner::recoupling;
use crate::number::C64;

/// For each sector of a block, the sector of a state's bond with the same charges, if there is one, and the overlaps:
/// rows for the block's states, columns for those of the bond.
pub(super) type Overlap<T> = Vec<Option<(usize, faer::Mat<T>)>>;

/// A piece of an operator between two sectors.
pub(super) struct Patch<T> {
    pub row: usize,
    pub column: usize,
    pub factor: Factor<T>,
}

/// The pieces of an operator by row sector and column sector.
pub(super) type Pieces<T> = BTreeMap<(usize, usize), Vec<Factor<T>>>;

/// How the basis and the operators of a block are stored.
pub(super) enum Shape<T> {
    /// A basis of its own with explicit operators.
    Plain {
        space: Space,
        carried: Operators<T>,
        /// The grown block and the rotation that it was made by.
        origin: Option<(Arc<Block<T>>, Arc<Basis<T>>)>,
    },
    /// A block and the next site.
    Grown { inner: Arc<Block<T>>, fusion: Fusion, site: usize },
}

impl<T> Shape<T> {
    /// The same of a block elsewhere, which was not rotated from the grown one here.
    pub fn elsewhere(&self) -> Shape<T> {
        match self {
            Shape::Plain { space, carried, .. } => {
                Shape::Plain { space: space.clone(), carried: carried.clone(), origin: None }
            }
            Shape::Grown { inner, fusion, site } => {
                Shape::Grown { inner: inner.clone(), fusion: fusion.clone(), site: *site }
            }
        }
    }
}

/// A block of sites.
pub struct Block<T> {
    pub(super) mpo: Arc<Mpo>,
    pub(super) side: Side,
    pub(super) sites: usize,
    /// The bond at its inner edge.
    pub(super) bond: usize,
    /// Whether the block is the mirror image of a left one.
    pub(super) mirrored: bool,
    pub(super) shape: Shape<T>,
    /// Overlaps of this block's basis with other states, by their numbers.
    pub(super) overlaps: Mutex<HashMap<u64, Arc<Overlap<T>>>>,
}

impl<T: Element> Block<T> {
    /// A block without sites at an end of the chain.
    pub fn edge(mpo: &Arc<Mpo>, side: Side) -> Arc<Block<T>> {
        let n = mpo.sites().count();
        let bond = match side {
            Side::Right if !mpo.is_uniform() => n,
            _ => 0,
        };
        let own = mpo.bond(bond);
        let ones = match side {
            Side::Left => [own.start, own.parity],
            Side::Right => [own.done, None],
        };
        let carried = (0..own.charges.len())
            .map(|k| if ones.contains(&Some(k)) { Carried::Identity } else { Carried::Nothing })
            .collect::<Vec<_>>();
        let symmetry = mpo.symmetry();
        let space = Space::single(match side {
            Side::Left => symmetry.zero(),
            Side::Right => symmetry.end(mpo.target()),
        });
        Block::made(mpo, side, 0, bond, false, Shape::Plain { space, carried: carried.into(), origin: None })
    }

    /// A right block without sites inside the chain, as if the chain ended at `bond`: terms that reach beyond are
    /// left out.
    pub fn cut(mpo: &Arc<Mpo>, bond: usize) -> Arc<Block<T>> {
        let own = mpo.bond(bond);
        let carried = (0..own.charges.len())
            .map(|k| if own.done == Some(k) { Carried::Identity } else { Carried::Nothing })
            .collect::<Vec<_>>();
        let space = Space::single(mpo.share_of_spin(bond));
        Block::made(
            mpo,
            Side::Right,
            0,
            bond,
            false,
            Shape::Plain { space, carried: carried.into(), origin: None },
        )
    }

    pub(super) fn made(
        mpo: &Arc<Mpo>,
        side: Side,
        sites: usize,
        bond: usize,
        mirrored: bool,
        shape: Shape<T>,
    ) -> Arc<Block<T>> {
        let overlaps = Mutex::new(HashMap::new());
        Arc::new(Block { mpo: mpo.clone(), side, sites, bond, mirrored, shape, overlaps })
    }

    /// The block with the next site.
    ///
    /// # Errors
    /// When the chain has no further site, or the block is grown already.
    pub fn grow(self: &Arc<Self>) -> Result<Arc<Block<T>>> {
        if matches!(self.shape, Shape::Grown { .. }) {
            return Err(Error::input("a grown block takes no further site before it is rotated")
                .hint("bring it into a truncated basis first"));
        }
        let n = self.mpo.sites().count();
        let (site, bond) = match self.side {
            _ if self.mpo.is_uniform() => (0, 0),
            Side::Left if self.bond < n => (self.bond, self.bond + 1),
            Side::Right if self.bond > 0 => (self.bond - 1, self.bond - 1),
            _ => return Err(Error::input(format!("the chain has no site beyond its {n}"))),
        };
        let symmetry = self.mpo.symmetry();
        let states = self.mpo.states(site);
        let fusion = match self.side {
            Side::Left => Fusion::new(symmetry, self.space(), states),
            Side::Right => Fusion::new(symmetry, self.space(), &symmetry.from_right(states)),
        };
        let shape = Shape::Grown { inner: self.clone(), fusion, site };
        Ok(Block::made(&self.mpo, self.side, self.sites + 1, bond, self.mirrored, shape))
    }

    /// The block with the next site, nothing truncated.
    ///
    /// # Errors
    /// When the chain has no further site, or the block is grown already.
    pub fn extend(self: &Arc<Self>) -> Result<Arc<Block<T>>> {
        let grown = self.grow()?;
        let basis = Basis::whole(grown.space()).shared();
        grown.rotate(&basis)
    }

    /// The block as the other half of a chain that is its own mirror image.
    ///
    /// # Errors
    /// For blocks that are no left blocks of a uniform chain, and couplings that are not their own mirror image.
    pub fn mirror(self: &Arc<Self>) -> Result<Arc<Block<T>>> {
        if !self.mpo.is_uniform() || self.side != Side::Left || self.mirrored {
            return Err(Error::input("only a left block of a uniform chain has a mirror image")
                .hint("an edge is made of a site and a bond"));
        }
        if self.mpo.mirror().is_none() {
            return Err(Error::input("the coupling is not its own mirror image")
                .hint("grow a right block of its own, from an edge of that side"));
        }
        Ok(Block::made(&self.mpo, self.side, self.sites, self.bond, true, self.shape.elsewhere()))
    }

    /// The half of a superblock that this block can be.
    pub fn half(&self) -> Side {
        if self.mirrored { Side::Right } else { self.side }
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
            Shape::Plain { space, .. } => space,
            Shape::Grown { fusion, .. } => fusion.space(),
        }
    }

    /// Bytes of the operators, on all ranks together.
    pub fn bytes(&self) -> usize {
        match &self.shape {
            Shape::Plain { carried, .. } => carried.bytes(),
            Shape::Grown { inner, .. } => inner.bytes(),
        }
    }

    pub(super) fn fusion(&self) -> Option<(&Arc<Block<T>>, &Fusion, usize)> {
        match &self.shape {
            Shape::Grown { inner, fusion, site } => Some((inner, fusion, *site)),
            Shape::Plain { .. } => None,
        }
    }

    pub(super) fn origin(&self) -> Option<&(Arc<Block<T>>, Arc<Basis<T>>)> {
        match &self.shape {
            Shape::Plain { origin, .. } => origin.as_ref(),
            Shape::Grown { .. } => None,
        }
    }

    /// The charges of a sector, summed over this block's sites.
    pub fn label(&self, sector: usize) -> &Label {
        self.space().label(sector)
    }

    /// The operators of its sites, or for a grown block those of the block that it grew from;
    /// all ranks ask for them together.
    ///
    /// # Errors
    /// Those of MPI.
    pub(super) fn operators(&self) -> Result<Present<T>> {
        match &self.shape {
            Shape::Plain { carried, .. } => carried.present(),
            Shape::Grown { inner, .. } => inner.operators(),
        }
    }

    /// The operator number `symbol` at the block's inner edge, as seen by a superblock.
    fn pieces(&self, operators: &[Carried<T>], symbol: usize) -> Vec<Patch<T>> {
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

    fn own_pieces(&self, operators: &[Carried<T>], symbol: usize) -> Vec<Patch<T>> {
        let whole = |space: &Space, s: usize, t: usize, matrix: Option<Arc<Held<T>>>| Patch {
            row: s,
            column: t,
            factor: Factor {
                row: 0,
                rows: space.dim(s),
                column: 0,
                columns: space.dim(t),
                scale: T::from_c64(C64::ONE),
                matrix,
            },
        };
        match &self.shape {
            Shape::Plain { space, .. } => match &operators[symbol] {
                Carried::Nothing => Vec::new(),
                Carried::Identity => (0..space.sectors()).map(|s| whole(space, s, s, None)).collect(),
                Carried::Blocks(blocks) => {
                    blocks.iter().map(|b| whole(space, b.row, b.column, Some(b.matrix.clone()))).collect()
                }
            },
            Shape::Grown { inner, fusion, site } => {
                let mut pieces = Vec::new();
                for entry in self.mpo.tensor(*site) {
                    let (from, to) = match self.side {
                        Side::Left => (entry.left, entry.right),
                        Side::Right => (entry.right, entry.left),
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
                                factor: Factor {
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
        inner: &Block<T>,
        site: usize,
        entry: &MpoEntry,
        states: [usize; 2],
        [row, column, to, at]: [&Label; 4],
    ) -> f64 {
        let Some(c) = self.mpo.symmetry().spin() else { return 1.0 };
        let spin = |state: usize| self.mpo.states(site)[state][c + 1];
        let own = [spin(states[0]), spin(states[1]), entry.rank];
        let rank = |bond: usize, symbol: usize| self.mpo.bond(bond).charges[symbol][c];
        let (before, after) = match self.side {
            Side::Left => (rank(inner.bond, entry.left), rank(self.bond, entry.right)),
            Side::Right => (rank(inner.bond, entry.right), rank(self.bond, entry.left)),
        };
        let (block, both) = ([row[c], column[c], before], [to[c], at[c], after]);
        match self.side {
            Side::Left => recoupling(block, own, both),
            Side::Right => recoupling(own, block, both),
        }
    }

    /// The pieces of an operator by row sector and column sector.
    pub(super) fn by_sectors(&self, operators: &[Carried<T>], symbol: usize) -> Pieces<T> {
        let mut sorted: Pieces<T> = BTreeMap::new();
        for piece in self.pieces(operators, symbol) {
            sorted.entry((piece.row, piece.column)).or_default().push(piece.factor);
        }
        sorted
    }

    /// The pieces of the Hamiltonian's terms that lie within the block.
    pub(super) fn energy(&self, operators: &[Carried<T>]) -> Pieces<T> {
        let bond = self.mpo.bond(self.bond);
        let whole = match self.side {
            Side::Left => bond.done,
            Side::Right => bond.start,
        };
        whole.map(|symbol| self.by_sectors(operators, symbol)).unwrap_or_default()
    }

    /// The block in a new, smaller basis.
    ///
    /// # Errors
    /// When the block is not grown, or the basis is one of another block.
    pub fn rotate(self: &Arc<Self>, basis: &Arc<Basis<T>>) -> Result<Arc<Block<T>>> {
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
            Side::Left => bond.start,
            Side::Right => bond.done,
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
        let matrices: All<T> = match there {
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
            None => Operators::here(&outline, matrices),
            Some(shares) => {
                let space = basis.new_space();
                let shapes = places.iter().map(|(_, to, from)| (space.dim(*to), space.dim(*from))).collect();
                Operators::Apart { outline, matrices: Arc::new(Spread::parts(shares, shapes, matrices)) }
            }
        };
        // Blocks of an infinite chain would keep their whole history.
        let basis_kept = match alike {
            Some(alike) => basis.kept_among(alike)?.shared(),
            None => basis.clone(),
        };
        let origin = (!self.mpo.is_uniform()).then(|| (self.clone(), basis_kept));
        let shape = Shape::Plain { space: basis.new_space().clone(), carried, origin };
        Ok(Block::made(&self.mpo, self.side, self.sites, self.bond, self.mirrored, shape))
    }

    /// The block without what it was made of, which would be kept as long as it is.
    pub(super) fn alone(self: &Arc<Self>) -> Arc<Block<T>> {
        let Shape::Plain { space, carried, .. } = &self.shape else { return self.clone() };
        let shape = Shape::Plain { space: space.clone(), carried: carried.clone(), origin: None };
        Block::made(&self.mpo, self.side, self.sites, self.bond, self.mirrored, shape)
    }

    /// Whether the overlap with a state is remembered.
    pub(super) fn known_overlap(&self, state: u64) -> bool {
        self.overlaps.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&state)
    }

    /// The overlap kept for a state, or a new one.
    pub(super) fn overlap_with(
        &self,
        state: u64,
        make: impl FnOnce() -> Result<Overlap<T>>,
    ) -> Result<Arc<Overlap<T>>> {
        let lock = || self.overlaps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&state) {
            return Ok(known.clone());
        }
        let made = Arc::new(make()?);
        lock().insert(state, made.clone());
        Ok(made)
    }
}

impl<T: Element> std::fmt::Display for Block<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n = self.sites;
        let side = match self.half() {
            Side::Left => "left",
            Side::Right => "right",
        };
        let grown = if matches!(self.shape, Shape::Grown { .. }) { "grown, " } else { "" };
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
