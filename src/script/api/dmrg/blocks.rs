//! Automata, blocks and superblocks.

use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, FLOAT, INT, Map};

use super::{AnyBlock, Either, either, either_map, no_superblock, superblock_of};
use crate::backend::Device;
use crate::backend::matrix::records::{Element, Handling, RecordList, Schedule};
use crate::error::{Error, Result};
use crate::manybody::dmrg::{
    ChainBlock, ChainSide, Mpo, Strategy, Superblock, TargetCharges, TruncatedBasis, edge_chain, total_spin,
};
use crate::manybody::{OpSum, Sites};
use crate::number::{C64, Series, Table};
use crate::operator::{LinearOperator, Operator};
use crate::script::api::manybody::{sector_of, site_of};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, named, session};

/// A truncated basis, as scripts hold it.
pub(super) type AnyBasis = Either<Arc<TruncatedBasis<f64>>, Arc<TruncatedBasis<C64>>>;

/// Registers the types and functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Arc<Mpo>>("Mpo");
    rooms.register_type_with_name::<AnyBlock>("Block");
    rooms.room("dmrg", exported_module!(block_functions));
}

fn edge(mpo: &Arc<Mpo>, side: ChainSide) -> AnyBlock {
    if mpo.is_complex() {
        Either::Complex(ChainBlock::edge(mpo, side))
    } else {
        Either::Real(ChainBlock::edge(mpo, side))
    }
}

/// "left" or "right".
pub(super) fn side_of(name: &str) -> Result<ChainSide> {
    match name {
        "left" => Ok(ChainSide::Left),
        "right" => Ok(ChainSide::Right),
        _ => Err(Error::input(format!("no side `{name}`")).hint("a side is \"left\" or \"right\"")),
    }
}

fn rotated(block: &AnyBlock, basis: &AnyBasis) -> Result<AnyBlock> {
    match (block, basis) {
        (Either::Real(block), Either::Real(basis)) => block.rotate(basis).map(Either::Real),
        (Either::Complex(block), Either::Complex(basis)) => block.rotate(basis).map(Either::Complex),
        _ => Err(Error::input("a real basis for a complex block, or the other way round")
            .hint("make both with the MPO of one Hamiltonian")),
    }
}

/// Refuses a number that blocks do not conserve; `names` are those that they do.
fn need_conserved<Q>(wanted: &[(String, Q)], names: &[String]) -> Result<()> {
    let Some((name, _)) = wanted.iter().find(|(name, _)| !names.contains(name)) else { return Ok(()) };
    let hint = match names {
        [] => "they conserve no number: leave the sector empty".into(),
        names => format!("they conserve {}", names.join(", ")),
    };
    Err(Error::input(format!("the blocks do not conserve {name}")).hint(hint))
}

/// The sums of the charges: all those of the chain, or those that are named.
fn target<T: Element>(
    left: &ChainBlock<T>,
    right: &ChainBlock<T>,
    sector: Option<&Map>,
) -> Result<TargetCharges> {
    let mpo = left.mpo();
    let symmetry = mpo.symmetry();
    if let Some(sector) = sector {
        let (spin, rest) = total_spin(mpo.sites(), &sector_of(sector)?)?;
        let own = symmetry.spin().map(|c| mpo.target()[c]);
        if let Some(spin) = spin.filter(|spin| Some(*spin) != own) {
            let named = f64::from(spin) / 2.0;
            return Err(match own {
                None => Error::input(format!("S = {named} of blocks that do not conserve the total spin"))
                    .hint("name S in the sector of `dmrg::mpo`"),
                Some(own) => {
                    Error::input(format!("S = {named} of blocks that belong to S = {}", f64::from(own) / 2.0))
                        .hint("right blocks hold the total spin: make them of an Mpo of the other sector")
                }
            });
        }
        let wanted = mpo.sites().target(&rest)?;
        need_conserved(&wanted, symmetry.names())?;
        let of = |name: &String| wanted.iter().find(|w| &w.0 == name).map(|w| w.1);
        return Ok(symmetry.names().iter().map(of).collect());
    }
    if mpo.is_uniform() {
        return Ok(vec![None; symmetry.names().len()]);
    }
    Ok(Superblock::share(left, right).into_iter().map(Some).collect())
}

fn joined(
    left: &AnyBlock,
    right: &AnyBlock,
    sector: Option<&Map>,
    strategy: Strategy,
    handling: Handling,
) -> Result<Operator> {
    fn join<T: Element>(
        device: &Device,
        (l, r): (&Arc<ChainBlock<T>>, &Arc<ChainBlock<T>>),
        sector: Option<&Map>,
        strategy: Strategy,
        handling: Handling,
    ) -> Result<Operator>
    where
        Superblock<T>: LinearOperator,
    {
        let target = target(l, r, sector)?;
        Ok(Superblock::within(device, l, r, &target, strategy, handling)?.into_operator(device))
    }
    let device = session()?.device();
    match (left, right) {
        (Either::Real(l), Either::Real(r)) => join(&device, (l, r), sector, strategy, handling),
        (Either::Complex(l), Either::Complex(r)) => join(&device, (l, r), sector, strategy, handling),
        _ => Err(Error::input("a superblock of a real and a complex block")
            .hint("make both with the MPO of one Hamiltonian")),
    }
}

fn products<T: Element>(list: &RecordList<T>) -> Result<Table> {
    let sizes = list.sizes();
    let side = |k: usize| Series::Real(sizes.keys().map(|size| size[k] as f64).collect());
    let count = Series::Real(sizes.values().map(|&n| n as f64).collect());
    Table::from_columns([("m", side(0)), ("n", side(1)), ("k", side(2)), ("count", count)])
}

/// How superblocks may keep their operators.
const SCHEDULES: [(&str, Schedule); 3] = [
    ("together", Schedule::Together),
    ("four-streams", Schedule::FourStreams),
    ("no-streams", Schedule::NoStreams),
];

const STRATEGIES: [(&str, Strategy); 3] =
    [("auto", Strategy::Auto), ("LR", Strategy::LeftRight), ("l-1-1-r", Strategy::FourParts)];

#[export_module(root = "crate::script::native")]
mod block_functions {
    /// A sum of operators as a finite automaton along the chain (a matrix product operator). At each bond it carries
    /// the operators that are still to be coupled, as few as possible. The sector is that of the whole chain; its
    /// numbers label all bases.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 8);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// assert(m.widths == [1, 4, 5, 5, 5, 5, 5, 4, 1], "identity, three spin operators, what is done");
    /// ```
    #[rhai_fn(name = "mpo", return_raw)]
    pub fn mpo_in_sector(sum: OpSum, sites: Sites, sector: Map) -> Fallible<Arc<Mpo>> {
        Ok(sector_of(&sector).and_then(|sector| Mpo::hamiltonian(&sum, &sites, &sector))?)
    }

    #[rhai_fn(name = "mpo", return_raw)]
    pub fn mpo_of_all(sum: OpSum, sites: Sites) -> Fallible<Arc<Mpo>> {
        Ok(Mpo::hamiltonian(&sum, &sites, &Vec::new())?)
    }

    /// A number that tells Hamiltonians and sectors apart.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let m = |J| dmrg::mpo(models::heisenberg(chain, #{ J: J }), chain, #{ Sz: 0 });
    /// assert(m.call(1.0).hash == m.call(1.0).hash, "of the same");
    /// assert(m.call(1.0).hash != m.call(2.0).hash, "of others");
    /// ```
    #[rhai_fn(global, get = "hash", pure)]
    pub fn hash(mpo: &mut Arc<Mpo>) -> INT {
        mpo.fingerprint() as INT
    }

    /// The number of operators carried at each bond, from left to right.
    #[rhai_fn(global, get = "widths", pure)]
    pub fn widths(mpo: &mut Arc<Mpo>) -> Array {
        mpo.widths().into_iter().map(|w| Dynamic::from(w as INT)).collect()
    }

    /// By how much terms across the bonds change the conserved numbers on the left: an array of maps like
    /// `#{ Sz: 1.0 }`, each change once.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// assert(m.transfers == [#{ Sz: -1.0 }, #{ Sz: 1.0 }], "spin flips");
    /// ```
    #[rhai_fn(global, get = "transfers", pure)]
    pub fn transfers(mpo: &mut Arc<Mpo>) -> Array {
        let names = mpo.symmetry().names();
        let map = |label: Vec<i32>| -> Map {
            let one = |(n, q): (&String, i32)| (n.as_str().into(), (f64::from(q) / 2.0).into());
            names.iter().zip(label).map(one).collect()
        };
        mpo.transfers().into_iter().map(|label| Dynamic::from(map(label))).collect()
    }

    /// The sum of the sizes of the terms that act on a site, at the site where it is largest: about the energy cost of
    /// a change of one site.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// assert_close(dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 }).strength, 2.5, 1e-12);
    /// ```
    #[rhai_fn(global, get = "strength", pure)]
    pub fn strength(mpo: &mut Arc<Mpo>) -> FLOAT {
        mpo.strength().all
    }

    /// As `strength`, but only of the terms that change product states, and at least 1e-4 of `strength`; without such
    /// terms it is `strength`. It is the energy scale of electrons that a large repulsion keeps apart.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("Electron", 4);
    /// let m = dmrg::mpo(models::hubbard(chain, #{ U: 1000.0 }), chain, #{ Nup: 2, Ndn: 2 });
    /// assert(m.off_diagonal == 8.0 && m.strength == 1008.0, "two spins hop to two neighbours and back");
    /// ```
    #[rhai_fn(global, get = "off_diagonal", pure)]
    pub fn off_diagonal(mpo: &mut Arc<Mpo>) -> FLOAT {
        mpo.strength().off_diagonal
    }

    /// The energy unit of tolerances: 1, or a power of two near `strength` if `strength` is below 0.01 or above 1e4.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let joules = dmrg::mpo(2.0 ** -62.0 * models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// let exchange = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// assert(joules.unit < 1e-17 && exchange.unit == 1.0, "as the terms are");
    /// ```
    #[rhai_fn(global, get = "unit", pure)]
    pub fn unit(mpo: &mut Arc<Mpo>) -> FLOAT {
        crate::method::unit_of(mpo.strength().all)
    }

    /// Whether blocks made from it are complex.
    #[rhai_fn(global, get = "complex", pure)]
    pub fn is_complex(mpo: &mut Arc<Mpo>) -> bool {
        mpo.is_complex()
    }

    /// The same automaton for complex states. Without this a real Hamiltonian accepts only real states.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// assert(!m.complex && m.to_complex().complex, "by choice");
    /// ```
    #[rhai_fn(global, pure)]
    pub fn to_complex(mpo: &mut Arc<Mpo>) -> Arc<Mpo> {
        mpo.to_complex()
    }

    /// The block without sites at the left end of a chain. `block.grow()` adds the first site.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// let all = superblock(dmrg::left_edge(m).extend().grow(), dmrg::right_edge(m).extend().grow());
    /// assert_close(davidson(all).values[0], -1.6160254037844, 1e-9);
    /// let two = dmrg::left_edge(m).extend().grow();
    /// assert(two.dims.sum() == 4.0 && two.sectors == 3 && two.bytes > 0, "Sz of 1, 0 and -1");
    /// assert(m.hash == dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 }).hash, "the same Hamiltonian");
    /// ```
    #[rhai_fn(name = "left_edge")]
    pub fn left_edge(mpo: Arc<Mpo>) -> AnyBlock {
        edge(&mpo, ChainSide::Left)
    }

    /// The block without sites at the right end of a chain.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1", 3);
    /// assert(dmrg::right_edge(dmrg::mpo(models::heisenberg(chain), chain)).grow().states == 3, "one spin");
    /// ```
    #[rhai_fn(name = "right_edge")]
    pub fn right_edge(mpo: Arc<Mpo>) -> AnyBlock {
        edge(&mpo, ChainSide::Right)
    }

    /// As `dmrg::right_edge`, for the chain cut before site `site`: terms that reach beyond the cut are left out. A
    /// superblock with it takes the sector nearest to its share of the chain's sector.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 100);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// let four = superblock(dmrg::left_edge(m).extend().grow(), dmrg::right_edge(m, 4).extend().grow());
    /// assert_close(davidson(four).values[0], -1.6160254037844, 1e-9);
    /// ```
    #[rhai_fn(name = "right_edge", return_raw)]
    pub fn cut_edge(mpo: Arc<Mpo>, site: INT) -> Fallible<AnyBlock> {
        let n = mpo.sites().count();
        let bond = usize::try_from(site).ok().filter(|b| *b <= n && !mpo.is_uniform());
        let bond = bond.ok_or_else(|| {
            Error::input(format!("a chain of {n} sites cut before site {site}"))
                .hint("sites are numbered from 0; infinite chains have no edge")
        });
        let bond = bond?;
        Ok(if mpo.is_complex() {
            Either::Complex(ChainBlock::cut(&mpo, bond))
        } else {
            Either::Real(ChainBlock::cut(&mpo, bond))
        })
    }

    /// A block of one site at the end of an infinite chain of such sites, coupled to their neighbours by `bond`: a sum
    /// of terms on sites 0 and 1. Terms on site 0 alone act on every site, terms on both sites act on every pair. All
    /// numbers that the coupling conserves are kept.
    ///
    /// # Options
    /// - `side` ("left" or "right"): of the chain.
    /// - `nmax` (int >= 1, none): largest number of bosons on a site.
    ///
    /// # Example
    /// ```rhai
    /// let bond = opsum();
    /// bond.add(1.0, "Z", 0, "Z", 1);
    /// let block = edge_block("S=1/2", bond);
    /// let pair = superblock(block, block.mirror(), #{ Sz: 0.0 });
    /// assert(block.has_mirror, "the other end of the chain");
    /// assert_close(davidson(pair).values[0], -1.0, 1e-12);
    /// ```
    #[rhai_fn(global, name = "edge_block", return_raw)]
    pub fn edge_block_with(kind: Dynamic, bond: OpSum, o: Options) -> Fallible<AnyBlock> {
        let site = site_of(&kind, o.maybe_count("nmax")?)?;
        let side = side_of(&o.text("side")?)?;
        let empty = edge(&edge_chain(&site, &bond)?, side);
        Ok(either_map!(&empty, b => b.extend()?))
    }

    /// The block with the next site and its coupling. The product basis is kept in parts; `rotate` truncates it.
    ///
    /// # Example
    /// ```rhai
    /// let bond = opsum();
    /// bond.add(1.0, "Sz", 0, "Sz", 1);
    /// assert(edge_block("S=1/2", bond).grow().states == 4, "two spins");
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn grow(block: &mut AnyBlock) -> Fallible<AnyBlock> {
        Ok(either_map!(&*block, b => b.grow()?))
    }

    /// The block with the next site, without truncation.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 6);
    /// let block = dmrg::left_edge(dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0 })).extend().extend();
    /// assert(block.states == 4 && block.sites == 2, "two spins");
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn extend(block: &mut AnyBlock) -> Fallible<AnyBlock> {
        Ok(either_map!(&*block, b => b.extend()?))
    }

    /// A left block of a uniform chain as the right half of a mirror-symmetric chain.
    ///
    /// # Example
    /// ```rhai
    /// let bond = opsum();
    /// bond.add(-1.0, "Cdag", 0, "C", 1);
    /// bond.add(-1.0, "Cdag", 1, "C", 0);
    /// let block = edge_block("Fermion", bond).grow();
    /// let four = superblock(block, block.mirror(), #{ N: 2 });
    /// assert_close(davidson(four).values[0], -sqrt(5.0), 1e-9);
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn mirror(block: &mut AnyBlock) -> Fallible<AnyBlock> {
        Ok(either_map!(&*block, b => b.mirror()?))
    }

    /// A grown block in the truncated basis that `rho.truncate` gives.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 8);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// let left = dmrg::left_edge(m).extend().extend().extend().grow();
    /// let both = superblock(left, dmrg::right_edge(m).extend().extend().extend().grow());
    /// let rho = density_matrix(both, davidson(both).vectors, "left");
    /// assert(left.rotate(rho.truncate(#{ states: 8 })).states <= 8, "half as many");
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn rotate(block: &mut AnyBlock, basis: AnyBasis) -> Fallible<AnyBlock> {
        Ok(rotated(block, &basis)?)
    }

    /// Whether `mirror()` gives the other half of the chain, so the two halves are the whole chain. This holds for
    /// blocks from `edge_block`.
    #[rhai_fn(global, get = "has_mirror", pure)]
    pub fn has_mirror(block: &mut AnyBlock) -> bool {
        either!(block, b => b.mpo().mirror().is_some())
    }

    /// Number of basis states.
    #[rhai_fn(global, get = "states", pure)]
    pub fn block_states(block: &mut AnyBlock) -> INT {
        either!(block, b => b.space().total()) as INT
    }

    /// Number of sites.
    #[rhai_fn(global, get = "sites", pure)]
    pub fn block_sites(block: &mut AnyBlock) -> INT {
        either!(block, b => b.sites()) as INT
    }

    /// Number of sectors of the basis.
    #[rhai_fn(global, get = "sectors", pure)]
    pub fn block_sectors(block: &mut AnyBlock) -> INT {
        either!(block, b => b.space().sectors()) as INT
    }

    /// Names of the additive conserved numbers (U(1) charges) that label its states.
    ///
    /// # Example
    /// ```rhai
    /// let bond = opsum();
    /// bond.add(1.0, "N", 0, "N", 1);
    /// assert(edge_block("Fermion", bond).numbers == ["N"], "not the parity, which counts modulo 2");
    /// ```
    #[rhai_fn(global, get = "numbers", pure)]
    pub fn numbers(block: &mut AnyBlock) -> Array {
        let symmetry = either!(block, b => b.mpo().symmetry());
        let added = symmetry.names().iter().zip(symmetry.moduli()).filter(|(_, modulus)| **modulus == 0);
        added.map(|(name, _)| Dynamic::from(name.clone())).collect()
    }

    /// Bytes of the operators that the block carries.
    #[rhai_fn(global, get = "bytes", pure)]
    pub fn block_bytes(block: &mut AnyBlock) -> INT {
        either!(block, b => b.bytes()) as INT
    }

    /// The Hamiltonian of two blocks side by side in a sector of conserved numbers, as an operator: `davidson`, `dot`
    /// and `h * v` take it. Numbers that the sector does not name are free; the default is the sector of the chain.
    ///
    /// # Options
    /// - `strategy` ("auto" or "LR" or "l-1-1-r"): "LR" multiplies with combined operators of block and site, "l-1-1-r"
    ///   with blocks and sites separately; "auto" chooses for each operator.
    /// - `operator_memory` (float >= 0, what the vectors of a search leave): bytes of GPU memory for the operators. If
    ///   they need more, they stay in main memory and are copied to the GPU in parts during each product. Other
    ///   backends always keep them in main memory.
    /// - `schedule` ("together" or "four-streams" or "no-streams"): how one GPU launches the products (Nemes, Barcza,
    ///   Nagy, Legeza, Szolgay, Comput. Phys. Commun. 185 (2014) 1570): "together", or with one launch for each block
    ///   of the result, in turn on four streams ("four-streams") or one after the other ("no-streams"). The results are
    ///   the same.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 6);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// let left = dmrg::left_edge(m).extend().extend().grow();
    /// let both = superblock(left, dmrg::right_edge(m).extend().extend().grow());
    /// assert(both.dim == 20, "C(6, 3)");
    /// assert_close(davidson(both, #{ tol: 1e-8 }).values[0], -2.4935771338879, 1e-9);
    /// ```
    #[rhai_fn(global, name = "superblock", return_raw)]
    pub fn superblock_with(left: AnyBlock, right: AnyBlock, sector: Map, o: Options) -> Fallible<Operator> {
        let strategy = o.one_of("strategy", &STRATEGIES)?;
        let room = o.maybe_float("operator_memory")?;
        let schedule = o.one_of("schedule", &SCHEDULES)?;
        if schedule != Schedule::Together && session()?.device().name() != "cuda" {
            return Err(Error::input("launches are scheduled on one GPU alone")
                .hint("leave the option `schedule` out, or compute with `--backend cuda`")
                .into());
        }
        let handling = Handling { room: room.map(|bytes| bytes as usize), schedule };
        Ok(joined(&left, &right, Some(&sector), strategy, handling)?)
    }

    #[rhai_fn(global, name = "superblock", return_raw)]
    pub fn superblock_plain(left: AnyBlock, right: AnyBlock) -> Fallible<Operator> {
        Ok(joined(&left, &right, None, Strategy::Auto, Handling::default())?)
    }

    #[rhai_fn(global, name = "superblock", return_raw)]
    pub fn superblock_by(left: AnyBlock, right: AnyBlock, strategy: &str) -> Fallible<Operator> {
        let strategy = named("strategy", strategy, &STRATEGIES)?;
        Ok(joined(&left, &right, None, strategy, Handling::default())?)
    }

    /// The sector of two blocks that is nearest to `wanted`, as a map for `superblock`. Use it if the filling times the
    /// length is not a whole number.
    ///
    /// # Example
    /// ```rhai
    /// let bond = opsum();
    /// bond.add(1.0, "N", 0, "N", 1);
    /// let block = edge_block("Fermion", bond);
    /// assert(dmrg::nearest_sector(block, block.mirror(), #{ N: 0.7 }) == #{ N: 1.0 }, "one of two sites");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn nearest_sector(left: AnyBlock, right: AnyBlock, wanted: Map) -> Fallible<Map> {
        fn find<T: Element>(l: &ChainBlock<T>, r: &ChainBlock<T>, wanted: &Map) -> Result<Map> {
            let wanted = sector_of(wanted)?;
            let names = l.mpo().symmetry().names();
            need_conserved(&wanted, names)?;
            let twice = |name: &String| wanted.iter().find(|w| &w.0 == name).map(|w| 2.0 * w.1);
            let all: Vec<Option<f64>> = names.iter().map(twice).collect();
            let found = Superblock::nearest(l, r, &all);
            let named = names.iter().zip(&found).zip(&all).filter(|n| n.1.is_some());
            Ok(named.map(|((name, q), _)| (name.as_str().into(), (f64::from(*q) / 2.0).into())).collect())
        }
        Ok(match (&left, &right) {
            (Either::Real(l), Either::Real(r)) => find(l, r, &wanted),
            (Either::Complex(l), Either::Complex(r)) => find(l, r, &wanted),
            _ => {
                Err(Error::input("a real and a complex block")
                    .hint("make both with the MPO of one Hamiltonian"))
            }
        }?)
    }

    /// The costs of a superblock's product: `dim`, `pairs` of sectors, operation `records`, `flops` of a product,
    /// `bytes` of operators, sectors of the blocks (`left_sectors`, `right_sectors`), and `products`: a Table of the
    /// dense products that it takes, `m x k` times `k x n`, with the `count` of each size.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let m = dmrg::mpo(models::heisenberg(chain), chain, #{ Sz: 0.0 });
    /// let both = superblock(dmrg::left_edge(m).extend().grow(), dmrg::right_edge(m).extend().grow());
    /// let report = dmrg::superblock_report(both);
    /// assert(report.pairs == 3, "Sz of the left half is -1, 0 or 1");
    /// let p = report.products;
    /// assert(2.0 * (p.m * p.n * p.k * p.count).sum() <= report.flops.to_float(), "the rest are sums");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn superblock_report(both: Operator) -> Fallible<Map> {
        let found = superblock_of(&both).ok_or_else(|| no_superblock("superblock_report"));
        let mut map = Map::new();
        either!(found?, b => {
            let mut put = |name: &str, n: usize| map.insert(name.into(), Dynamic::from(n as INT));
            put("dim", b.dim());
            put("pairs", b.pairs().len());
            put("records", b.list().count());
            put("flops", b.list().flops() as usize);
            put("bytes", b.list().bytes());
            put("left_sectors", b.left().space().sectors());
            put("right_sectors", b.right().space().sectors());
            map.insert("products".into(), Dynamic::from(products(b.list())?));
        });
        Ok(map)
    }

    /// Numbers of states in the sectors of a block.
    #[rhai_fn(global, get = "dims", pure)]
    pub fn block_dims(block: &mut AnyBlock) -> Series {
        either!(block, b => Series::Real(b.space().dims().iter().map(|&d| d as f64).collect()))
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn block_to_string(block: &mut AnyBlock) -> String {
        either!(block, b => b.to_string())
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn mpo_to_string(mpo: &mut Arc<Mpo>) -> String {
        mpo.to_string()
    }
}
