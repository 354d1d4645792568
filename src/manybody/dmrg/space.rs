//! Renormalised bases as sectors: which values of the conserved numbers there are, and how many states have them.

use std::collections::BTreeMap;

use crate::manybody::sites::Sites;

/// Which end of the chain a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The sites from the first on.
    Left,
    /// The sites up to the last.
    Right,
}

/// Twice the values of the conserved numbers, in the order of [`Symmetry`].
pub type Label = Vec<i32>;

/// The conserved numbers: those of U(1), which add up, and those of Z_n, which add up modulo n.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Symmetry {
    names: Vec<String>,
    /// Twice the n of Z_n; 0 for U(1).
    moduli: Vec<i32>,
}

impl Symmetry {
    /// The numbers with these names, as the sites define them.
    pub fn new(sites: &Sites, names: impl IntoIterator<Item = String>) -> Symmetry {
        let names: Vec<String> = names.into_iter().collect();
        let moduli = names.iter().map(|name| sites.modulus(name)).collect();
        Symmetry { names, moduli }
    }

    /// From names and twice the moduli.
    pub fn from_parts(names: Vec<String>, moduli: Vec<i32>) -> Symmetry {
        Symmetry { names, moduli }
    }

    /// Names of the numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Twice the n of each Z_n; 0 for U(1).
    pub fn moduli(&self) -> &[i32] {
        &self.moduli
    }

    /// The label whose numbers are all zero.
    pub fn zero(&self) -> Label {
        vec![0; self.names.len()]
    }

    fn combine(&self, a: &[i32], b: &[i32], sign: i32) -> Label {
        let one = |((a, b), m): ((&i32, &i32), &i32)| {
            let sum = a + sign * b;
            if *m > 0 { sum.rem_euclid(*m) } else { sum }
        };
        a.iter().zip(b).zip(&self.moduli).map(one).collect()
    }

    /// The sum of two labels.
    pub fn add(&self, a: &[i32], b: &[i32]) -> Label {
        self.combine(a, b, 1)
    }

    /// The difference of two labels.
    pub fn subtract(&self, a: &[i32], b: &[i32]) -> Label {
        self.combine(a, b, -1)
    }

    /// How many quanta lie between two labels, all numbers together, rounded up.
    pub fn distance(&self, a: &[i32], b: &[i32]) -> i32 {
        let twice = |(d, m): (&i32, &i32)| if *m > 0 { (*d).min(m - d) } else { d.abs() };
        let sum: i32 = self.subtract(a, b).iter().zip(&self.moduli).map(twice).sum();
        (sum + 1) / 2
    }

    /// The labels of a site's states.
    pub fn states(&self, sites: &Sites, site: usize) -> Vec<Label> {
        let dim = sites.iter().nth(site).map_or(0, |s| s.dim());
        let columns: Vec<Vec<i32>> = self.names.iter().map(|name| sites.twice(site, name)).collect();
        let label = |s: usize| columns.iter().map(|c| c[s]).collect::<Label>();
        (0..dim).map(|s| self.add(&label(s), &self.zero())).collect()
    }
}

/// A basis in sectors: labels in ascending order and the number of states of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    labels: Vec<Label>,
    dims: Vec<usize>,
}

impl Space {
    /// From labels and numbers of states.
    pub fn new(sectors: BTreeMap<Label, usize>) -> Space {
        let (labels, dims) = sectors.into_iter().filter(|s| s.1 > 0).unzip();
        Space { labels, dims }
    }

    /// A basis of one state.
    pub fn single(label: Label) -> Space {
        Space { labels: vec![label], dims: vec![1] }
    }

    /// Number of sectors.
    pub fn sectors(&self) -> usize {
        self.labels.len()
    }

    pub fn label(&self, sector: usize) -> &Label {
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
    pub fn iter(&self) -> impl Iterator<Item = (&Label, usize)> {
        self.labels.iter().zip(self.dims.iter().copied())
    }
}

/// One sector of a block times one state of a site, as rows of a sector of their product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Sector of the block.
    pub inner: usize,
    /// State of the site.
    pub state: usize,
    /// Its first row within the product's sector.
    pub offset: usize,
    /// Number of rows.
    pub dim: usize,
}

/// The product of a block's basis and a site's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fusion {
    space: Space,
    parts: Vec<Vec<Part>>,
    /// Sector of the product and place in `parts`, for each sector of the block and each state of the site.
    places: Vec<Vec<(usize, usize)>>,
}

impl Fusion {
    /// The product; its labels are sums.
    pub fn new(symmetry: &Symmetry, inner: &Space, states: &[Label]) -> Fusion {
        let mut sums: BTreeMap<Label, Vec<Part>> = BTreeMap::new();
        for (sector, (label, dim)) in inner.iter().enumerate() {
            for (state, own) in states.iter().enumerate() {
                let parts = sums.entry(symmetry.add(label, own)).or_default();
                let offset = parts.last().map_or(0, |p| p.offset + p.dim);
                parts.push(Part { inner: sector, state, offset, dim });
            }
        }
        let mut places = vec![vec![(0, 0); states.len()]; inner.sectors()];
        for (sector, parts) in sums.values().enumerate() {
            for (k, part) in parts.iter().enumerate() {
                places[part.inner][part.state] = (sector, k);
            }
        }
        let dim = |parts: &Vec<Part>| parts.iter().map(|p| p.dim).sum();
        let space = Space::new(sums.iter().map(|(label, parts)| (label.clone(), dim(parts))).collect());
        Fusion { space, parts: sums.into_values().collect(), places }
    }

    /// Number of states of the site.
    pub fn states(&self) -> usize {
        self.places.first().map_or(0, Vec::len)
    }

    /// The product's sectors.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The parts of a sector, by rows.
    pub fn parts(&self, sector: usize) -> &[Part] {
        &self.parts[sector]
    }

    /// Where a sector of the block with a state of the site lies: sector of the product, and the part there.
    pub fn place(&self, inner: usize, state: usize) -> (usize, Part) {
        let (sector, k) = self.places[inner][state];
        (sector, self.parts[sector][k])
    }
}
