//! A sum as local matrices: terms on the same sites are merged into one matrix of the joint states of these sites.

use std::collections::BTreeMap;

use super::basis::SectorBasis;
use super::opsum::{OpSum, ROUNDING, changes};
use super::product::SiteProduct;
use crate::error::{Error, Result};
use crate::number::C64;
use crate::task;

/// The most joint states of the sites of one term.
const MAX_JOINT: usize = 1 << 20;

/// All terms on one set of sites with one string of signs, as one sparse matrix of their joint states.
pub(super) struct LocalTerms {
    pub sites: Vec<usize>,
    /// Weight of each site's state in the number of the joint state.
    pub strides: Vec<usize>,
    pub string: Vec<usize>,
    /// Where each row of the matrix starts in `elements`.
    pub starts: Vec<u32>,
    pub elements: Vec<LocalEntry>,
}

impl LocalTerms {
    /// The elements of the row of a state.
    #[inline]
    pub fn row(&self, states: &[u8]) -> &[LocalEntry] {
        let joint: usize = self.sites.iter().zip(&self.strides).map(|(&i, s)| states[i] as usize * s).sum();
        &self.elements[self.starts[joint] as usize..self.starts[joint + 1] as usize]
    }

    pub fn bytes(&self) -> usize {
        4 * self.starts.len() + 48 * self.elements.len()
    }
}

/// An element of a local matrix.
pub(super) struct LocalEntry {
    pub value: C64,
    /// Local states of the column on the group's sites; empty on the diagonal.
    pub states: Vec<u8>,
}

/// The elements of terms by row and column, and the moduli that went into each.
pub(super) type TermElements = BTreeMap<(usize, usize), (C64, f64)>;

/// The elements of all terms, by the sites that these act on and the sites of their strings of signs.
pub(super) type Collected = BTreeMap<(Vec<usize>, Vec<usize>), TermElements>;

/// The local matrices of a sum, which conserve what the basis conserves.
pub(super) fn groups(sum: &OpSum, basis: &SectorBasis) -> Result<Vec<LocalTerms>> {
    sum.fits("a system of", basis.sites().count())?;
    let terms = sum.terms_on(basis.sites().count());
    let products =
        terms.iter().map(|term| SiteProduct::new(term, basis.sites()).map(SiteProduct::without_identities));
    let collected = collect(products, basis)?;
    let changed =
        |(support, string): &(Vec<usize>, Vec<usize>), place, name: &str, change| -> Result<Error> {
            let mut guilty = Vec::new();
            for term in terms.iter() {
                let product = SiteProduct::new(term, basis.sites())?.without_identities();
                if product.string == *string && product.factors.iter().map(|f| &f.0).eq(support) {
                    let mut elements = TermElements::new();
                    expand(&product, basis, usize::MAX, &mut elements);
                    if elements.get(&place).is_some_and(|(z, _)| *z != C64::ZERO) {
                        guilty.push(term);
                    }
                }
            }
            Ok(changes(&guilty, name, change))
        };
    let conserved = |on: &TermSites, place, change: &[(&str, i32)]| match change.first() {
        Some((name, change)) => Err(changed(on, place, name, *change)?),
        None => Ok(true),
    };
    collected.into_iter().map(|(on, elements)| group(on, &elements, basis, &conserved)).collect()
}

/// Sites that terms act on, and those of their string of signs.
type TermSites = (Vec<usize>, Vec<usize>);

/// The local matrices of products, those with the same sites added up.
pub(super) fn collect(
    products: impl Iterator<Item = Result<SiteProduct>>,
    basis: &SectorBasis,
) -> Result<Collected> {
    let mut collected = Collected::new();
    for product in products {
        task::poll()?;
        let product = product?;
        let support: Vec<usize> = product.factors.iter().map(|f| f.0).collect();
        let joint = joint_dim(basis, &support).filter(|&n| n <= MAX_JOINT).ok_or_else(|| {
            Error::input(format!(
                "a term on the sites {}... couples {} sites, too many for an exact matrix",
                support.iter().take(8).map(usize::to_string).collect::<Vec<_>>().join(", "),
                support.len()
            ))
            .hint("write it as a sum of terms on fewer sites")
        })?;
        expand(&product, basis, joint, collected.entry((support, product.string.clone())).or_default());
    }
    Ok(collected)
}

fn local_dim(basis: &SectorBasis, site: usize) -> usize {
    basis.levels()[site].dim
}

fn joint_dim(basis: &SectorBasis, support: &[usize]) -> Option<usize> {
    support.iter().try_fold(1usize, |n, &site| n.checked_mul(local_dim(basis, site)))
}

/// Adds the elements of a product to the joint matrix of its sites, the last site the fastest.
fn expand(product: &SiteProduct, basis: &SectorBasis, joint: usize, into: &mut TermElements) {
    let mut elements = vec![(0usize, 0usize, product.coefficient)];
    for (site, matrix) in &product.factors {
        let dim = local_dim(basis, *site);
        let nonzero: Vec<(usize, usize, C64)> = matrix
            .iter()
            .enumerate()
            .filter(|(_, z)| **z != C64::ZERO)
            .map(|(k, z)| (k / dim, k % dim, *z))
            .collect();
        let extend = |&(row, column, value): &(usize, usize, C64)| {
            nonzero
                .iter()
                .map(move |&(i, j, z)| (row * dim + i, column * dim + j, value * z))
                .collect::<Vec<_>>()
        };
        elements = elements.iter().flat_map(extend).collect();
    }
    for (row, column, value) in elements {
        debug_assert!(row < joint && column < joint);
        let (sum, size) = into.entry((row, column)).or_default();
        *sum += value;
        *size += value.norm();
    }
}

/// The local matrix of collected elements. `keep` is told of each element how it changes the fixed charges, and says
/// whether it stays.
pub(super) fn group(
    on: TermSites,
    collected: &TermElements,
    basis: &SectorBasis,
    keep: &dyn Fn(&TermSites, (usize, usize), &[(&str, i32)]) -> Result<bool>,
) -> Result<LocalTerms> {
    let support = &on.0;
    let dims: Vec<usize> = support.iter().map(|&site| local_dim(basis, site)).collect();
    let mut strides = vec![1; dims.len()];
    for k in (1..dims.len()).rev() {
        strides[k - 1] = strides[k] * dims[k];
    }
    let joint: usize = dims.iter().product();
    let digits = |n: usize| -> Vec<u8> {
        strides.iter().zip(&dims).map(|(&stride, &dim)| (n / stride % dim) as u8).collect()
    };
    let charges: Vec<Vec<Vec<i32>>> = basis
        .sector()
        .iter()
        .map(|(name, _)| support.iter().map(|&site| basis.sites().twice(site, name)).collect())
        .collect();
    let charge =
        |c: usize, states: &[u8]| -> i32 { charges[c].iter().zip(states).map(|(q, &s)| q[s as usize]).sum() };
    let mut starts = vec![0u32; joint + 1];
    let mut elements = Vec::new();
    for (&(row, column), &(value, size)) in collected {
        if value.norm() <= ROUNDING * size {
            continue;
        }
        let (to, from) = (digits(row), digits(column));
        let mut changed = Vec::new();
        for (c, (name, _)) in basis.sector().iter().enumerate() {
            let modulus = basis.sites().modulus(name);
            let change = charge(c, &to) - charge(c, &from);
            if change != 0 && (modulus == 0 || change % modulus != 0) {
                changed.push((name.as_str(), change));
            }
        }
        if !keep(&on, (row, column), &changed)? {
            continue;
        }
        elements.push(LocalEntry { value, states: if row == column { Vec::new() } else { from } });
        starts[row + 1] += 1;
    }
    for row in 0..joint {
        starts[row + 1] += starts[row];
    }
    Ok(LocalTerms { sites: on.0, strides, string: on.1, starts, elements })
}
