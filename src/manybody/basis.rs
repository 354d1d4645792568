//! The product states of a sector, numbered without a table.
//!
//! States are the paths through a diagram. Its nodes at each bond are the partial sums of charges from which the sector
//! can still be reached. The number of a state is the sum over its sites of the numbers of states that branch off
//! before it. So the number of a state takes one pass over the sites. The difference between the numbers of two states
//! that differ on a few sites takes a pass between these sites. States come in lexicographic order with site 0 the
//! slowest, as in Kronecker products. (This is Lin's table, Phys. Rev. B 42, 6561 (1990), with one part a site and any
//! charges.)

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::sites::Sites;
use crate::error::{Error, Result};
use crate::task;

/// No node: the sector is out of reach.
const NONE: u32 = u32::MAX;
/// Diagrams of more nodes are refused.
const MAX_NODES: usize = 1 << 26;

/// Values of conserved numbers; those not named are free.
pub type Sector = Vec<(String, f64)>;

/// The states of a sector. Copies are cheap.
#[derive(Debug, Clone)]
pub struct SectorBasis {
    sites: Sites,
    sector: Vec<(String, i32)>,
    levels: Arc<Vec<DiagramLevel>>,
    dim: usize,
}

/// The diagram at one site.
#[derive(Debug)]
pub(super) struct DiagramLevel {
    /// States of the site.
    pub dim: usize,
    /// Node after the site, for each node before it and each state.
    next: Vec<u32>,
    /// States that come before, for each node and each state.
    before: Vec<u64>,
}

impl DiagramLevel {
    /// Nodes before the site.
    pub fn nodes(&self) -> usize {
        self.next.len() / self.dim.max(1)
    }

    /// The nodes after the site that some state leads to, each at least once.
    pub fn targets(&self) -> impl Iterator<Item = u32> {
        self.next.iter().copied().filter(|&next| next != NONE)
    }

    /// The node after a state, if there is one.
    #[inline]
    pub fn leads(&self, node: u32, state: u8) -> Option<u32> {
        Some(self.next(node, state)).filter(|&next| next != NONE)
    }

    /// The node after a state.
    #[inline]
    pub fn next(&self, node: u32, state: u8) -> u32 {
        self.next[node as usize * self.dim + state as usize]
    }

    /// How many states of the sector branch off before this one.
    #[inline]
    pub fn before(&self, node: u32, state: u8) -> u64 {
        self.before[node as usize * self.dim + state as usize]
    }
}

/// The charges of a sector, twice each, as sites add them up.
struct Charges {
    /// By site, charge and state.
    of_sites: Vec<Vec<Vec<i32>>>,
    /// What charges are counted by; 0 where they are numbers.
    moduli: Vec<i32>,
    target: Vec<i32>,
    /// The target is within reach of a charge at a bond if that lies between these; the others are dead ends.
    low: Vec<Vec<i32>>,
    high: Vec<Vec<i32>>,
}

impl Charges {
    fn new(sites: &Sites, sector: &[(String, i32)]) -> Charges {
        let n = sites.count();
        let of_sites: Vec<Vec<Vec<i32>>> =
            (0..n).map(|i| sector.iter().map(|(name, _)| sites.twice(i, name)).collect()).collect();
        let moduli = sector.iter().map(|(name, _)| sites.modulus(name)).collect();
        let target: Vec<i32> = sector.iter().map(|s| s.1).collect();
        let (mut low, mut high) = (vec![target.clone(); n + 1], vec![target.clone(); n + 1]);
        for i in (0..n).rev() {
            for (c, charge) in of_sites[i].iter().enumerate() {
                low[i][c] = low[i + 1][c] - charge.iter().max().unwrap_or(&0);
                high[i][c] = high[i + 1][c] - charge.iter().min().unwrap_or(&0);
            }
        }
        Charges { of_sites, moduli, target, low, high }
    }

    /// The charges behind site `i` in a state.
    fn step(&self, i: usize, q: &[i32], state: usize) -> Vec<i32> {
        let sum = |((q, c), m): ((&i32, &Vec<i32>), &i32)| {
            if *m > 0 { (q + c[state]).rem_euclid(*m) } else { q + c[state] }
        };
        q.iter().zip(&self.of_sites[i]).zip(&self.moduli).map(sum).collect()
    }

    fn alive(&self, i: usize, q: &[i32]) -> bool {
        (0..q.len()).all(|c| self.moduli[c] > 0 || (self.low[i][c]..=self.high[i][c]).contains(&q[c]))
    }

    /// The charges at each bond from which the target is within reach, numbered.
    fn reached(&self, sites: &Sites, dims: &[usize]) -> Result<Vec<BTreeMap<Vec<i32>, u32>>> {
        let mut nodes: Vec<BTreeMap<Vec<i32>, u32>> = vec![BTreeMap::from([(vec![0; self.target.len()], 0)])];
        let mut total = 0;
        for i in 0..self.of_sites.len() {
            let mut reached = BTreeMap::new();
            for q in nodes[i].keys() {
                task::poll()?;
                for state in 0..dims[i] {
                    let q = self.step(i, q, state);
                    if self.alive(i + 1, &q) {
                        reached.insert(q, 0);
                    }
                }
            }
            reached.values_mut().enumerate().for_each(|(k, node)| *node = k as u32);
            total += reached.len() * dims[i];
            if total > MAX_NODES {
                return Err(Error::memory(format!("the states of {sites} are too many to number"))
                    .hint("take fewer sites, or a smaller sector"));
            }
            nodes.push(reached);
        }
        Ok(nodes)
    }

    /// The charges that there are, for people.
    fn ranges(&self, sector: &[(String, i32)]) -> String {
        let range = |(c, (name, _)): (usize, &(String, i32))| {
            if self.moduli[c] > 0 {
                return format!("{name} counts modulo {}", self.moduli[c] / 2);
            }
            let reach = |end: &[Vec<i32>]| f64::from(end[0][c] - self.target[c]);
            let (from, to) = (reach(&self.low), reach(&self.high));
            format!("{name} goes from {} to {}", 0.0 - to / 2.0, 0.0 - from / 2.0)
        };
        sector.iter().enumerate().map(range).collect::<Vec<_>>().join(", ")
    }
}

impl SectorBasis {
    /// The states with the given charges; all states if none are named.
    ///
    /// # Errors
    /// For charges that the sites do not have, a sector without states, or one too large to number.
    pub fn new(sites: &Sites, sector: &Sector) -> Result<SectorBasis> {
        let basis = SectorBasis::possibly_empty(sites, sector)?;
        if basis.dim == 0 {
            let ranges = Charges::new(sites, &basis.sector).ranges(&basis.sector);
            return Err(Error::input(format!("no state of {sites} has {}", basis.charges()))
                .hint(format!("{ranges} here")));
        }
        Ok(basis)
    }

    /// The same, and a basis of no states where none has these charges.
    ///
    /// # Errors
    /// For charges that the sites do not have, or a sector too large to number.
    pub fn possibly_empty(sites: &Sites, sector: &Sector) -> Result<SectorBasis> {
        let sector = sites.target(sector)?;
        let (n, charges) = (sites.count(), Charges::new(sites, &sector));
        let dims: Vec<usize> = sites.iter().map(|site| site.dim()).collect();
        let nodes = charges.reached(sites, &dims)?;
        // How many ways lead from each node to the sector, from the last site back.
        let mut ways: HashMap<Vec<i32>, f64> =
            nodes[n].keys().filter(|q| **q == charges.target).map(|q| (q.clone(), 1.0)).collect();
        let mut levels = Vec::with_capacity(n);
        for i in (0..n).rev() {
            let size = nodes[i].len() * dims[i];
            let mut level = DiagramLevel { dim: dims[i], next: vec![NONE; size], before: vec![0; size] };
            let mut here = HashMap::with_capacity(nodes[i].len());
            for (q, &node) in &nodes[i] {
                task::poll()?;
                let mut sum = 0.0;
                for state in 0..dims[i] {
                    let to = charges.step(i, q, state);
                    let at = node as usize * dims[i] + state;
                    // Beyond 2^53 the count is inexact, and refused below.
                    level.before[at] = sum as u64;
                    if let Some(w) = ways.get(&to).filter(|w| **w > 0.0) {
                        level.next[at] = nodes[i + 1][&to];
                        sum += w;
                    }
                }
                here.insert(q.clone(), sum);
            }
            levels.push(level);
            ways = here;
        }
        levels.reverse();
        let dim = ways.values().sum::<f64>();
        let mut basis =
            SectorBasis { sites: sites.clone(), sector, levels: Arc::new(levels), dim: dim as usize };
        if dim >= (1u64 << 53) as f64 {
            return Err(Error::memory(format!("{sites} have {dim:.1e} states, too many for a vector"))
                .hint("name a smaller sector, or fewer sites"));
        }
        basis.dim = dim as usize;
        Ok(basis)
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    pub fn sites(&self) -> &Sites {
        &self.sites
    }

    /// Names of the charges that are fixed, with twice their values.
    pub fn sector(&self) -> &[(String, i32)] {
        &self.sector
    }

    /// The fixed charges as text.
    fn charges(&self) -> String {
        let one = |(name, twice): &(String, i32)| format!("{name} = {}", f64::from(*twice) / 2.0);
        self.sector.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// The diagram, a level for each site.
    pub(super) fn levels(&self) -> &[DiagramLevel] {
        &self.levels
    }

    /// The local states of state `number`.
    ///
    /// # Errors
    /// When there is no such state.
    pub fn state(&self, number: usize) -> Result<Vec<u8>> {
        if number >= self.dim {
            return Err(Error::input(format!("state {number} outside a basis of {}", self.dim))
                .hint("states are numbered from 0"));
        }
        Ok(BasisPath::at(self, number).states)
    }

    /// The number of a state given by its local states; none if it lies outside the sector.
    ///
    /// # Errors
    /// When there is not one local state a site.
    pub fn number(&self, states: &[u8]) -> Result<Option<usize>> {
        self.sites.need_each(states.len())?;
        let (mut node, mut number) = (0, 0);
        for (level, &state) in self.levels.iter().zip(states) {
            if state as usize >= level.dim {
                return Err(Error::input(format!("local state {state} of a site with {}", level.dim))
                    .hint("states of a site are counted from 0"));
            }
            number += level.before(node, state);
            node = level.next(node, state);
            if node == NONE {
                return Ok(None);
            }
        }
        Ok(Some(number as usize))
    }
}

impl fmt::Display for SectorBasis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Basis of {} states: {}", self.dim, self.label())
    }
}

impl SectorBasis {
    /// The sites and the sector in a few words.
    pub fn label(&self) -> String {
        let sector = if self.sector.is_empty() { "all states".into() } else { self.charges() };
        format!("{}, {sector}", self.sites)
    }
}

/// A state of a basis and its path through the diagram; steps to the next one.
pub(super) struct BasisPath<'a> {
    levels: &'a [DiagramLevel],
    /// Local states.
    pub states: Vec<u8>,
    /// Node before each site.
    pub nodes: Vec<u32>,
    /// States that branch off before each site; the last entry is the number of the state.
    pub passed: Vec<u64>,
}

impl<'a> BasisPath<'a> {
    /// At state `number`, which exists.
    pub fn at(basis: &'a SectorBasis, number: usize) -> BasisPath<'a> {
        let levels = basis.levels();
        let n = levels.len();
        let mut walk =
            BasisPath { levels, states: vec![0; n], nodes: vec![0; n + 1], passed: vec![0; n + 1] };
        for (i, level) in levels.iter().enumerate() {
            let rest = number as u64 - walk.passed[i];
            let fits =
                |s: &u8| level.next(walk.nodes[i], *s) != NONE && level.before(walk.nodes[i], *s) <= rest;
            let state = (0..level.dim).rev().map(|s| s as u8).find(fits).unwrap_or(0);
            walk.set(i, state);
        }
        walk
    }

    fn set(&mut self, i: usize, state: u8) {
        let (level, node) = (&self.levels[i], self.nodes[i]);
        self.states[i] = state;
        self.nodes[i + 1] = level.next(node, state);
        self.passed[i + 1] = self.passed[i] + level.before(node, state);
    }

    /// Goes to the next state and says from which site on it differs; none after the last.
    pub fn step(&mut self) -> Option<usize> {
        let open = |walk: &BasisPath<'_>, i: usize, from: usize| {
            let level = &walk.levels[i];
            (from..level.dim).map(|s| s as u8).find(|&s| level.next(walk.nodes[i], s) != NONE)
        };
        let n = self.levels.len();
        for i in (0..n).rev() {
            if let Some(state) = open(self, i, self.states[i] as usize + 1) {
                self.set(i, state);
                for k in i + 1..n {
                    let first = open(self, k, 0).unwrap_or(0);
                    self.set(k, first);
                }
                return Some(i);
            }
        }
        None
    }
}
