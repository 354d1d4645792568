//! Renormalised bases as sectors: which values of the conserved numbers there are, and how many states have them.

use std::collections::BTreeMap;

use crate::manybody::sites::Sites;

/// What stands for the modulus of a total spin, whose values couple instead of adding up.
const SPIN: i32 = -1;
/// The name of the total spin.
pub const TOTAL_SPIN: &str = "S";

/// Which end of the chain a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainSide {
    /// The sites from the first on.
    Left,
    /// The sites up to the last.
    Right,
}

/// Twice the values of the conserved numbers, in the order of [`ConservedNumbers`].
pub type ChargeLabel = Vec<i32>;

/// The conserved numbers: those of U(1), which add up, those of Z_n, which add up modulo n, and, as the last, a total
/// spin of SU(2).
///
/// With a spin, bases hold one state a multiplet, and the state of many sites is a path: the spins that the first one,
/// two, three, ... sites couple to. A site of spin s changes the spin so far by a step from -s to s. There are as many
/// steps as local states, and they add up like Sz. The sum of two spins is no less than their difference: steps that
/// lead below it are left out. The label of a site's state then has two entries more:
/// twice the spin of its multiplet, and its number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConservedNumbers {
    names: Vec<String>,
    /// Twice the n of Z_n; 0 for U(1); -1 for a spin.
    moduli: Vec<i32>,
}

impl ConservedNumbers {
    /// The numbers with these names, as the sites define them.
    pub fn new(sites: &Sites, names: impl IntoIterator<Item = String>) -> ConservedNumbers {
        let names: Vec<String> = names.into_iter().collect();
        let moduli = names.iter().map(|name| sites.modulus(name)).collect();
        ConservedNumbers { names, moduli }
    }

    /// The same numbers and the total spin.
    pub(super) fn with_spin(mut self) -> ConservedNumbers {
        self.names.push(TOTAL_SPIN.into());
        self.moduli.push(SPIN);
        self
    }

    /// The numbers without the total spin.
    pub(super) fn without_spin(&self) -> ConservedNumbers {
        let keep = self.spin().unwrap_or(self.names.len());
        ConservedNumbers { names: self.names[..keep].to_vec(), moduli: self.moduli[..keep].to_vec() }
    }

    /// The place of the total spin among the numbers, if it is one of them.
    pub fn spin(&self) -> Option<usize> {
        self.moduli.iter().position(|m| *m == SPIN)
    }

    /// From names and twice the moduli.
    pub fn from_parts(names: Vec<String>, moduli: Vec<i32>) -> ConservedNumbers {
        ConservedNumbers { names, moduli }
    }

    /// Names of the numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Twice the n of each Z_n; 0 for U(1), -1 for a total spin.
    pub fn moduli(&self) -> &[i32] {
        &self.moduli
    }

    /// The label whose numbers are all zero.
    pub fn zero(&self) -> ChargeLabel {
        vec![0; self.names.len()]
    }

    fn combine(&self, a: &[i32], b: &[i32], sign: i32) -> ChargeLabel {
        let one = |((a, b), m): ((&i32, &i32), &i32)| {
            let sum = a + sign * b;
            if *m > 0 { sum.rem_euclid(*m) } else { sum }
        };
        a.iter().zip(b).zip(&self.moduli).map(one).collect()
    }

    /// The sum of two labels.
    pub fn add(&self, a: &[i32], b: &[i32]) -> ChargeLabel {
        self.combine(a, b, 1)
    }

    /// The difference of two labels.
    pub fn subtract(&self, a: &[i32], b: &[i32]) -> ChargeLabel {
        self.combine(a, b, -1)
    }

    /// The label of a basis state and a site's state together; none if their spins do not couple to it.
    pub fn coupled(&self, bond: &[i32], state: &[i32]) -> Option<ChargeLabel> {
        let sum = self.add(bond, state);
        match self.spin() {
            Some(c) if sum[c] + bond[c] < state[self.names.len()] => None,
            _ => Some(sum),
        }
    }

    /// The label of the sites on the left, where those on the right have one and the whole has another. A spin of the
    /// whole belongs to the right: what lies left then has the same spin, and both are in a singlet.
    pub fn opposite(&self, target: &[i32], right: &[i32]) -> ChargeLabel {
        let mut label = self.subtract(target, right);
        if let Some(c) = self.spin() {
            label[c] = right[c];
        }
        label
    }

    /// The label of a left and a right block together; none if their spins do not couple to the singlet.
    pub fn joined(&self, left: &[i32], right: &[i32]) -> Option<ChargeLabel> {
        let mut label = self.add(left, right);
        if let Some(c) = self.spin() {
            if left[c] != right[c] {
                return None;
            }
            label[c] = 0;
        }
        Some(label)
    }

    /// The label of an empty block on the right, where the whole has another: the spin of the whole.
    pub fn end(&self, target: &[i32]) -> ChargeLabel {
        let mut label = self.zero();
        if let Some(c) = self.spin() {
            label[c] = target[c];
        }
        label
    }

    /// The labels of a site's states for a block on its right: there its step leads back.
    pub fn from_right(&self, states: &[ChargeLabel]) -> Vec<ChargeLabel> {
        let mut turned = states.to_vec();
        if let Some(c) = self.spin() {
            turned.iter_mut().for_each(|q| q[c] = -q[c]);
        }
        turned
    }

    /// The labels that a site's states take off those behind it.
    pub fn negated(&self, states: &[ChargeLabel]) -> Vec<ChargeLabel> {
        let own = |q: &ChargeLabel| -> ChargeLabel {
            let less = self.subtract(&self.zero(), q);
            less.into_iter().chain(q[self.names.len()..].iter().copied()).collect()
        };
        states.iter().map(own).collect()
    }

    /// How many states of a label there are for one of the basis: those of its multiplet.
    pub fn multiplicity(&self, label: &[i32]) -> f64 {
        self.spin().map_or(1.0, |c| f64::from(label[c] + 1))
    }

    /// How many quanta lie between two labels, all numbers together, rounded up.
    pub fn distance(&self, a: &[i32], b: &[i32]) -> i32 {
        let twice = |(d, m): (&i32, &i32)| if *m > 0 { (*d).min(m - d) } else { d.abs() };
        let sum: i32 = self.subtract(a, b).iter().zip(&self.moduli).map(twice).sum();
        (sum + 1) / 2
    }

    /// The labels of a site's states.
    pub fn states(&self, sites: &Sites, site: usize) -> Vec<ChargeLabel> {
        let dim = sites.iter().nth(site).map_or(0, |s| s.dim());
        let columns: Vec<Vec<i32>> = self.names.iter().map(|name| sites.twice(site, name)).collect();
        let label = |s: usize| columns.iter().map(|c| c[s]).collect::<ChargeLabel>();
        let mut labels: Vec<ChargeLabel> = (0..dim).map(|s| self.add(&label(s), &self.zero())).collect();
        if let (Some(c), Some(Ok(own))) = (self.spin(), sites.iter().nth(site).map(|s| s.multiplets())) {
            for (s, label) in labels.iter_mut().enumerate() {
                label[c] = own.twice[s];
                label.extend([own.spins[own.of[s]], own.of[s] as i32]);
            }
        }
        labels
    }

    /// The elements of the identity of a site: with a spin it connects every two steps of a multiplet.
    pub(super) fn identity(&self, states: &[ChargeLabel]) -> Vec<(usize, usize)> {
        let n = self.names.len();
        let alike = |i: usize, j: usize| match self.spin() {
            Some(_) => states[i][n + 1] == states[j][n + 1],
            None => i == j,
        };
        let all = (0..states.len()).flat_map(|i| (0..states.len()).map(move |j| (i, j)));
        all.filter(|&(i, j)| alike(i, j)).collect()
    }
}

/// A basis in sectors: labels in ascending order and the number of states of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    labels: Vec<ChargeLabel>,
    dims: Vec<usize>,
}

impl Space {
    /// From labels and numbers of states.
    pub fn new(sectors: BTreeMap<ChargeLabel, usize>) -> Space {
        let (labels, dims) = sectors.into_iter().filter(|s| s.1 > 0).unzip();
        Space { labels, dims }
    }

    /// From labels and numbers of states in any order; of equal labels the last counts. The pairs come as a list,
    /// since to sort them is compiled anew for every type of iterator that a map is collected from.
    pub fn of(sectors: Vec<(ChargeLabel, usize)>) -> Space {
        Space::new(sectors.into_iter().collect())
    }

    /// A basis of one state.
    pub fn single(label: ChargeLabel) -> Space {
        Space { labels: vec![label], dims: vec![1] }
    }

    pub fn sectors(&self) -> usize {
        self.labels.len()
    }

    pub fn label(&self, sector: usize) -> &ChargeLabel {
        &self.labels[sector]
    }

    /// Number of states of a sector.
    pub fn dim(&self, sector: usize) -> usize {
        self.dims[sector]
    }

    /// Numbers of states of all sectors.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Number of states in all.
    pub fn total(&self) -> usize {
        self.dims.iter().sum()
    }

    /// The sector with this label.
    pub fn find(&self, label: &[i32]) -> Option<usize> {
        self.labels.binary_search_by(|own| own.as_slice().cmp(label)).ok()
    }

    /// Labels and numbers of states.
    pub fn iter(&self) -> impl Iterator<Item = (&ChargeLabel, usize)> {
        self.labels.iter().zip(self.dims.iter().copied())
    }
}

/// One sector of a block times one state of a site, as rows of a sector of their product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FusedSector {
    /// Sector of the block.
    pub inner: usize,
    /// State of the site.
    pub state: usize,
    /// Its first row within the product's sector.
    pub offset: usize,
    pub dim: usize,
}

/// The product of a block's basis and a site's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fusion {
    space: Space,
    parts: Vec<Vec<FusedSector>>,
    /// Sector of the product and place in `parts`, for each sector of the block and each state of the site; none where
    /// their spins do not couple so.
    places: Vec<Vec<Option<(usize, usize)>>>,
}

impl Fusion {
    /// The product; its labels are what those of both couple to.
    pub fn new(symmetry: &ConservedNumbers, inner: &Space, states: &[ChargeLabel]) -> Fusion {
        let mut sums: BTreeMap<ChargeLabel, Vec<FusedSector>> = BTreeMap::new();
        for (sector, (label, dim)) in inner.iter().enumerate() {
            for (state, own) in states.iter().enumerate() {
                let Some(sum) = symmetry.coupled(label, own) else { continue };
                let parts = sums.entry(sum).or_default();
                let offset = parts.last().map_or(0, |p| p.offset + p.dim);
                parts.push(FusedSector { inner: sector, state, offset, dim });
            }
        }
        let mut places = vec![vec![None; states.len()]; inner.sectors()];
        for (sector, parts) in sums.values().enumerate() {
            for (k, part) in parts.iter().enumerate() {
                places[part.inner][part.state] = Some((sector, k));
            }
        }
        let dim = |parts: &Vec<FusedSector>| parts.iter().map(|p| p.dim).sum();
        let space = Space::of(sums.iter().map(|(label, parts)| (label.clone(), dim(parts))).collect());
        Fusion { space, parts: sums.into_values().collect(), places }
    }

    /// Number of states of the site.
    pub fn states(&self) -> usize {
        self.places.first().map_or(0, Vec::len)
    }

    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The parts of a sector, by rows.
    pub fn parts(&self, sector: usize) -> &[FusedSector] {
        &self.parts[sector]
    }

    /// Where a sector of the block with a state of the site lies, if anywhere: sector of the product,
    /// and the part there.
    pub fn place(&self, inner: usize, state: usize) -> Option<(usize, FusedSector)> {
        let (sector, k) = self.places[inner][state]?;
        Some((sector, self.parts[sector][k]))
    }
}
