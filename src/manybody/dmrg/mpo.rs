//! A Hamiltonian as a finite automaton over the sites. At every bond it carries the operators that are still to be
//! coupled, as few as possible. At every site, local operators connect the operators of the left bond to those of the
//! right bond.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use super::conserved::conserved;
use super::space::{ChargeLabel, ConservedNumbers};
use super::strength::Strength;
use super::strings::{OperatorElement, OperatorWord, Strings};
use super::{coupled, cover};
use crate::error::{Error, Result};
use crate::manybody::fingerprint::ModelHash;
use crate::manybody::wigner::couplings;
use crate::manybody::{OpSum, Sector, Sites};
use crate::number::C64;

/// The error for a sum without terms.
pub(super) fn no_terms() -> Error {
    Error::input("an operator sum without terms").hint(
        "a function is given its own copy of a sum: let it return the sum, or call it as a method that adds to `this`",
    )
}

/// The operators carried across a bond.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MpoBond {
    /// By how much each operator changes the conserved numbers of the sites to the left.
    pub charges: Vec<ChargeLabel>,
    /// The one that is the identity on the left: no term has begun.
    pub start: Option<usize>,
    /// The one that is the identity on the right: all terms are complete.
    pub done: Option<usize>,
    /// The sign of all fermions of a block; only uniform chains need it.
    pub parity: Option<usize>,
}

/// A local operator between two operators carried.
#[derive(Debug, Clone, PartialEq)]
pub struct MpoEntry {
    /// Number at the bond before the site.
    pub left: usize,
    /// Number at the bond behind the site.
    pub right: usize,
    /// Twice the rank of the local operator; 0 without a total spin.
    pub rank: i32,
    /// Non-zero elements.
    pub elements: Vec<OperatorElement>,
}

/// For each operator that a mirrored block carries, the operators of the left block that it stands for, with factors.
pub type Mirror = Vec<Vec<(usize, C64)>>;

/// The automaton of an operator sum.
#[derive(Debug, Clone)]
pub struct Mpo {
    sites: Sites,
    pub(super) symmetry: ConservedNumbers,
    target: ChargeLabel,
    /// One more than sites; a single one that serves all bonds if the automaton is uniform.
    pub(super) bonds: Vec<MpoBond>,
    pub(super) tensors: Vec<Vec<MpoEntry>>,
    pub(super) states: Vec<Vec<ChargeLabel>>,
    uniform: bool,
    mirror: Option<Mirror>,
    /// Whether arithmetic is complex even where no element is.
    complex: bool,
    strength: Strength,
}

impl Mpo {
    /// The automaton of a Hermitian sum in a sector.
    ///
    /// # Errors
    /// For operators and sites that do not exist, a sector without states, terms that change its numbers, and sums that
    /// are not Hermitian.
    pub fn hamiltonian(sum: &OpSum, sites: &Sites, sector: &Sector) -> Result<Arc<Mpo>> {
        if sum.terms_on(sites.count()).is_empty() {
            return Err(no_terms());
        }
        sum.fits("a system of", sites.count())?;
        let (symmetry, target) = conserved(sites, sector)?;
        Mpo::need_hermitian(sum, sites, &symmetry)?;
        let strings = coupled::strings(sum, sites, &symmetry)?;
        Ok(Arc::new(Mpo::from_strings(&strings, sites, &symmetry, target)))
    }

    /// Whether a sum is Hermitian.
    ///
    /// # Errors
    /// When it is not, and as [`Mpo::hamiltonian`].
    pub fn need_hermitian(sum: &OpSum, sites: &Sites, symmetry: &ConservedNumbers) -> Result<()> {
        Strings::new(sum, sites, &symmetry.without_spin())?.need_hermitian(sites)
    }

    /// The automaton of any sum that conserves the numbers of `symmetry`.
    ///
    /// # Errors
    /// As [`Mpo::hamiltonian`], but for Hermiticity.
    pub fn operator(
        sum: &OpSum,
        sites: &Sites,
        symmetry: &ConservedNumbers,
        target: &ChargeLabel,
    ) -> Result<Arc<Mpo>> {
        let strings = coupled::strings(sum, sites, symmetry)?;
        Ok(Arc::new(Mpo::from_strings(&strings, sites, symmetry, target.clone())))
    }

    /// An automaton that is the same at every site; see `edge.rs`.
    pub(super) fn uniform(
        sites: Sites,
        symmetry: ConservedNumbers,
        bond: MpoBond,
        tensor: Vec<MpoEntry>,
        mirror: Option<Mirror>,
    ) -> Arc<Mpo> {
        let states = vec![symmetry.states(&sites, 0)];
        let target = symmetry.zero();
        let (bonds, tensors) = (vec![bond], vec![tensor]);
        Arc::new(Mpo {
            sites,
            symmetry,
            target,
            bonds,
            tensors,
            states,
            uniform: true,
            mirror,
            complex: false,
            strength: Strength::default(),
        })
    }

    /// The automaton of a cell that an infinite chain repeats; see `uniform/automaton.rs`. The last bond is the first
    /// of the next cell.
    pub(super) fn of_cell(
        sites: &Sites,
        symmetry: &ConservedNumbers,
        target: &ChargeLabel,
        states: &[Vec<ChargeLabel>],
        bonds: Vec<MpoBond>,
        tensors: Vec<Vec<MpoEntry>>,
    ) -> Arc<Mpo> {
        Arc::new(Mpo {
            sites: sites.clone(),
            symmetry: symmetry.clone(),
            target: target.clone(),
            bonds,
            tensors,
            states: states.to_vec(),
            uniform: false,
            mirror: None,
            complex: false,
            strength: Strength::default(),
        })
    }

    /// The automaton of strings, which may change the conserved numbers all by the same amounts.
    pub(super) fn from_strings(
        strings: &Strings,
        sites: &Sites,
        symmetry: &ConservedNumbers,
        target: ChargeLabel,
    ) -> Mpo {
        let n = sites.count();
        let states: Vec<Vec<ChargeLabel>> = (0..n).map(|i| symmetry.states(sites, i)).collect();
        // The rest of a string from some site on has a number; 0 is the empty rest.
        let mut rests = Numbering::default();
        rests.number(None);
        let mut rest_of =
            |word: &OperatorWord| word.iter().rev().fold(0, |rest, &head| rests.number(Some((head, rest))));
        let mut open: OpenTerms = strings.words.iter().map(|(word, &z)| (0, rest_of(word), z)).collect();
        if open.is_empty() {
            open.push((0, 0, C64::ZERO));
        }
        let begin = MpoBond {
            charges: vec![symmetry.zero()],
            start: Some(0),
            done: (n == 0).then_some(0),
            parity: None,
        };
        let mut bonds = vec![begin];
        let mut tensors = Vec::with_capacity(n);
        for site in 0..n {
            let graph = SiteGraph::new(site, &open, &rests.all);
            let tensor = SiteTensor { strings, symmetry, states: &states[site], elements: BTreeMap::new() };
            let (bond, tensor, next) = graph.carried(&bonds[site], tensor, site + 1 == n);
            tensors.push(tensor);
            bonds.push(bond);
            open = next;
        }
        Mpo {
            sites: sites.clone(),
            symmetry: symmetry.clone(),
            target,
            bonds,
            tensors,
            states,
            uniform: false,
            mirror: None,
            complex: false,
            strength: Strength::of(strings, n),
        }
    }

    pub fn sites(&self) -> &Sites {
        &self.sites
    }

    pub fn symmetry(&self) -> &ConservedNumbers {
        &self.symmetry
    }

    /// The label of the whole chain.
    pub fn target(&self) -> &ChargeLabel {
        &self.target
    }

    /// The operators carried at a bond; bond `i` lies before site `i`.
    pub fn bond(&self, i: usize) -> &MpoBond {
        &self.bonds[if self.uniform { 0 } else { i }]
    }

    /// The local operators at a site.
    pub fn tensor(&self, site: usize) -> &[MpoEntry] {
        &self.tensors[if self.uniform { 0 } else { site }]
    }

    /// Labels of the states of a site.
    pub fn states(&self, site: usize) -> &[ChargeLabel] {
        &self.states[if self.uniform { 0 } else { site }]
    }

    /// Whether blocks of the two fit together: of one chain, or of uniform chains with the same sites and coupling.
    pub fn meets(self: &Arc<Self>, other: &Arc<Mpo>) -> bool {
        Arc::ptr_eq(self, other)
            || self.uniform
                && other.uniform
                && self.sites.iter().eq(other.sites.iter())
                && self.symmetry == other.symmetry
                && (&self.bonds, &self.tensors) == (&other.bonds, &other.tensors)
    }

    /// Whether all sites are alike and the chain has no end.
    pub fn is_uniform(&self) -> bool {
        self.uniform
    }

    /// What a mirrored block carries, if the Hamiltonian is its own mirror image.
    pub fn mirror(&self) -> Option<&Mirror> {
        self.mirror.as_ref()
    }

    /// The same automaton for complex states.
    pub fn to_complex(&self) -> Arc<Mpo> {
        Arc::new(Mpo { complex: true, ..self.clone() })
    }

    /// Whether an element is complex, or the states are.
    pub fn is_complex(&self) -> bool {
        self.complex || self.tensors.iter().flatten().flat_map(|e| &e.elements).any(|e| e.2.im != 0.0)
    }

    /// A hash of all elements, the sites and the sector, to tell automata apart.
    pub fn fingerprint(&self) -> u64 {
        let mut all = ModelHash::new();
        self.target.iter().chain(self.symmetry.moduli()).for_each(|q| all.add(*q as u64));
        let names = self.sites.iter().flat_map(|s| s.states().iter().map(String::as_str).chain([s.name()]));
        for name in self.symmetry.names().iter().map(String::as_str).chain(names) {
            all.add_text(name);
        }
        for (site, entries) in self.tensors.iter().enumerate() {
            for entry in entries {
                all.add((site << 32 | entry.left << 16 | entry.right) as u64);
                if entry.rank > 0 {
                    all.add(entry.rank as u64);
                }
                for (i, j, z) in &entry.elements {
                    all.add((i << 32 | j) as u64);
                    all.add_complex(*z);
                }
            }
        }
        all.finish()
    }

    /// The label of an empty block on the right of the first sites alone: their share of the total spin, or the spin
    /// nearest to it that they can have.
    pub(super) fn share_of_spin(&self, sites: usize) -> ChargeLabel {
        let mut label = self.symmetry.zero();
        let Some(c) = self.symmetry.spin() else { return label };
        let mut spins = BTreeSet::from([0]);
        for states in &self.states[..sites] {
            let own: BTreeSet<i32> = states.iter().map(|q| q[c + 1]).collect();
            spins = spins.iter().flat_map(|j| own.iter().flat_map(|s| couplings(*j, *s))).collect();
        }
        let share = f64::from(self.target[c]) * sites as f64 / self.sites.count().max(1) as f64;
        let away = |j: &i32| (f64::from(*j) - share).abs();
        label[c] = spins.into_iter().min_by(|a, b| away(a).total_cmp(&away(b))).unwrap_or(0);
        label
    }

    pub fn strength(&self) -> Strength {
        self.strength
    }

    /// The amounts by which terms across a bond change the numbers of the sites to the left: each once, without zero.
    pub fn transfers(&self) -> Vec<ChargeLabel> {
        if self.symmetry.spin().is_some() {
            // Blocks belong to one total spin.
            return Vec::new();
        }
        let all: BTreeSet<&ChargeLabel> = self.bonds.iter().flat_map(|bond| &bond.charges).collect();
        all.into_iter().filter(|q| q.iter().any(|x| *x != 0)).cloned().collect()
    }

    /// Number of operators carried at each bond inside the chain.
    pub fn widths(&self) -> Vec<usize> {
        self.bonds.iter().map(|b| b.charges.len()).collect()
    }
}

/// Terms that are open at a bond: the operator that carries them, the number of the rest of their string,
/// their coefficient.
type OpenTerms = Vec<(usize, usize, C64)>;

/// The terms at a site. A row is an operator carried with an operator of the site, a column the rest of a string, an
/// edge a sum of terms that have both.
struct SiteGraph {
    rows: Vec<(usize, usize)>,
    columns: Vec<usize>,
    edges: BTreeMap<(usize, usize), C64>,
}

impl SiteGraph {
    fn new(site: usize, open: &OpenTerms, rests: &[Option<((usize, usize), usize)>]) -> SiteGraph {
        let (mut rows, mut columns) = (Numbering::default(), Numbering::default());
        let mut edges: BTreeMap<(usize, usize), C64> = BTreeMap::new();
        for &(from, rest, z) in open {
            let (operator, rest) = match rests[rest] {
                Some(((at, operator), next)) if at == site => (operator, next),
                _ => (0, rest),
            };
            let edge = (rows.number((from, operator)), columns.number(rest));
            *edges.entry(edge).or_default() += z;
        }
        SiteGraph { rows: rows.all, columns: columns.all, edges }
    }

    /// Covers all edges by as few rows and columns as possible, each an operator carried on. Returns these, the site's
    /// tensor, and the terms that are open behind it.
    fn carried(
        &self,
        before: &MpoBond,
        mut tensor: SiteTensor<'_>,
        last: bool,
    ) -> (MpoBond, Vec<MpoEntry>, OpenTerms) {
        let mut neighbours = vec![Vec::new(); self.rows.len()];
        self.edges.keys().for_each(|&(row, column)| neighbours[row].push(column));
        let identity = before.start.map(|start| (start, 0));
        let leader = parallel(&self.edges, &neighbours, |row| Some(self.rows[row]) != identity);
        for (row, own) in neighbours.iter_mut().enumerate().filter(|n| leader[n.0].0 != n.0) {
            debug_assert!(leader[row].0 < row);
            own.clear();
        }
        let (mut in_rows, mut in_columns) = cover::smallest(&neighbours, self.columns.len());
        if last {
            // All terms end in one operator.
            in_rows.fill(false);
            in_columns.fill(true);
        }
        let (mut bond, mut next) = (MpoBond::default(), Vec::new());
        let mut number_of_row = vec![usize::MAX; self.rows.len()];
        let mut number_of_column = vec![usize::MAX; self.columns.len()];
        for (&(row, column), &z) in &self.edges {
            let (from, operator) = self.rows[row];
            let rest = self.columns[column];
            let (first, factor) = leader[row];
            if first != row && in_rows[first] {
                // Its multiple is carried already.
                if number_of_row[row] == usize::MAX {
                    number_of_row[row] = number_of_row[first];
                    tensor.put(from, number_of_row[first], operator, factor);
                }
            } else if in_rows[row] {
                if number_of_row[row] == usize::MAX {
                    number_of_row[row] = bond.charges.len();
                    if before.start == Some(from) && operator == 0 {
                        bond.start = Some(bond.charges.len());
                    }
                    bond.charges.push(tensor.charge(&before.charges[from], operator));
                    tensor.put(from, number_of_row[row], operator, C64::ONE);
                }
                next.push((number_of_row[row], rest, z));
            } else {
                debug_assert!(in_columns[column]);
                if number_of_column[column] == usize::MAX {
                    number_of_column[column] = bond.charges.len();
                    if rest == 0 {
                        bond.done = Some(bond.charges.len());
                    }
                    bond.charges.push(tensor.charge(&before.charges[from], operator));
                    next.push((number_of_column[column], rest, C64::ONE));
                }
                tensor.put(from, number_of_column[column], operator, z);
            }
        }
        (bond, tensor.entries(), next)
    }
}

/// The tensor of a site in the making: elements by the operators carried on both sides and the rank.
struct SiteTensor<'a> {
    strings: &'a Strings,
    symmetry: &'a ConservedNumbers,
    states: &'a [ChargeLabel],
    elements: BTreeMap<(usize, usize, i32), BTreeMap<(usize, usize), C64>>,
}

impl SiteTensor<'_> {
    /// What an operator of the site makes of a charge.
    fn charge(&self, before: &ChargeLabel, operator: usize) -> ChargeLabel {
        self.strings.alphabet.change(self.symmetry, before, operator, self.states)
    }

    fn put(&mut self, from: usize, to: usize, operator: usize, z: C64) {
        let alphabet = &self.strings.alphabet;
        let elements = self.elements.entry((from, to, alphabet.rank(operator))).or_default();
        if operator == 0 {
            let ones = self.symmetry.identity(self.states);
            ones.into_iter().for_each(|at| *elements.entry(at).or_default() += z);
            return;
        }
        for (i, j, value) in alphabet.elements(operator, self.states.len()) {
            *elements.entry((i, j)).or_default() += z * value;
        }
    }

    fn entries(self) -> Vec<MpoEntry> {
        let entry = |((left, right, rank), elements): (_, BTreeMap<(usize, usize), C64>)| {
            let elements = elements.into_iter().filter(|(_, z)| *z != C64::ZERO);
            MpoEntry { left, right, rank, elements: elements.map(|((i, j), z)| (i, j, z)).collect() }
        };
        self.elements.into_iter().map(entry).collect()
    }
}

/// For each row of edges the first one that it is a multiple of, and the factor: couplings that decay exponentially
/// have such rows, and are carried as one operator. Rows of one edge stay, as their columns serve all of them.
fn parallel(
    edges: &BTreeMap<(usize, usize), C64>,
    neighbours: &[Vec<usize>],
    may: impl Fn(usize) -> bool,
) -> Vec<(usize, C64)> {
    let mut leader: Vec<(usize, C64)> = (0..neighbours.len()).map(|row| (row, C64::ONE)).collect();
    let mut known: HashMap<&[usize], Vec<usize>> = HashMap::new();
    for (row, own) in neighbours.iter().enumerate().filter(|(row, own)| own.len() > 1 && may(*row)) {
        let first = own[0];
        let alike = known.entry(own).or_default();
        let multiple = |other: &usize| {
            let factor = edges[&(row, first)] / edges[&(*other, first)];
            let same = |column: &usize| {
                let z = edges[&(row, *column)];
                (z - factor * edges[&(*other, *column)]).norm() <= 1e-13 * z.norm()
            };
            own.iter().all(same).then_some((*other, factor))
        };
        match alike.iter().find_map(multiple) {
            Some(found) => leader[row] = found,
            None => alike.push(row),
        }
    }
    leader
}

/// Things numbered in the order of their first appearance.
struct Numbering<K> {
    all: Vec<K>,
    known: HashMap<K, usize>,
}

impl<K> Default for Numbering<K> {
    fn default() -> Self {
        Numbering { all: Vec::new(), known: HashMap::new() }
    }
}

impl<K: Copy + Eq + std::hash::Hash> Numbering<K> {
    fn number(&mut self, key: K) -> usize {
        let next = self.all.len();
        *self.known.entry(key).or_insert_with(|| {
            self.all.push(key);
            next
        })
    }
}

impl fmt::Display for Mpo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = self.widths().into_iter().max().unwrap_or(0);
        if self.uniform {
            return write!(f, "Mpo of a uniform chain, {widest} operators carried");
        }
        write!(f, "Mpo of {}, at most {widest} operators carried across a bond", self.sites)
    }
}
