//! A spin-rotation invariant operator sum as strings of irreducible tensors. Each string is coupled site by site,
//! `[[[T1 T2] T3] ...]`, to a scalar; a bond carries the rank so far (McCulloch, J. Stat. Mech. (2007) P10014).

use std::collections::BTreeMap;

use super::space::ConservedNumbers;
use super::strings::{Coupled, MAX_PARTS, OperatorWord, Strings};
use crate::error::{Error, Result};
use crate::manybody::multiplets::{Multiplets, TensorComponent};
use crate::manybody::opsum::ROUNDING;
use crate::manybody::wigner::{clebsch_gordan, couplings};
use crate::manybody::{OpSum, OperatorTerm, Site, SiteProduct, Sites};
use crate::number::C64;

/// Tensors without their components: sites of the sign of fermions, and site, multiplets and rank of each tensor.
type Pattern = (Vec<usize>, Vec<(usize, usize, usize, i32)>);

/// The components of tensors on the same sites: coefficients by `q`, the sizes of what was added, and a term to name.
#[derive(Default)]
struct Components {
    values: BTreeMap<Vec<i32>, (C64, f64)>,
    term: usize,
}

/// Kinds of sites, and their multiplets.
struct Kinds<'a> {
    all: Vec<(&'a Site, Multiplets)>,
    of_site: Vec<usize>,
}

impl<'a> Kinds<'a> {
    fn of(sites: &'a Sites) -> Result<Kinds<'a>> {
        let mut kinds = Kinds { all: Vec::new(), of_site: Vec::new() };
        for site in sites.iter() {
            let known = kinds.all.iter().position(|(s, _)| std::ptr::eq(*s, &**site) || *s == &**site);
            let kind = match known {
                Some(kind) => kind,
                None => {
                    kinds.all.push((site, site.multiplets()?));
                    kinds.all.len() - 1
                }
            };
            kinds.of_site.push(kind);
        }
        Ok(kinds)
    }

    fn on(&self, site: usize) -> (usize, &Multiplets) {
        (self.of_site[site], &self.all[self.of_site[site]].1)
    }
}

/// The strings of a sum, of tensors where a total spin is conserved.
///
/// # Errors
/// As [`Strings::new`], and for a sum that a rotation changes.
pub(super) fn strings(sum: &OpSum, sites: &Sites, symmetry: &ConservedNumbers) -> Result<Strings> {
    let plain = Strings::new(sum, sites, &symmetry.without_spin())?;
    if symmetry.spin().is_none() {
        return Ok(plain);
    }
    let kinds = Kinds::of(sites)?;
    let terms = sum.terms_on(sites.count());
    let mut patterns: BTreeMap<Pattern, Components> = BTreeMap::new();
    for (at, term) in terms.iter().enumerate() {
        add(&mut patterns, &kinds, term, at, sites)?;
    }
    let mut strings = Strings { alphabet: Default::default(), words: BTreeMap::new() };
    for ((signs, tensors), components) in patterns {
        let ranks: Vec<i32> = tensors.iter().map(|t| t.3).collect();
        let size = components.values.values().map(|v| v.1).fold(0.0, f64::max);
        let mut rest: BTreeMap<&Vec<i32>, C64> = components.values.iter().map(|(q, v)| (q, v.0)).collect();
        for path in paths(&ranks) {
            let weight = |q: &[i32]| along(&path, &ranks, q);
            let mut z: C64 = components.values.iter().map(|(q, v)| v.0 * weight(q)).sum();
            rest.iter_mut().for_each(|(q, left)| *left -= z * weight(q));
            if z.norm() <= ROUNDING * size {
                continue;
            }
            // Terms of "Sx" and "Sy" leave imaginary parts that are rounding.
            for part in [&mut z.re, &mut z.im] {
                if part.abs() <= ROUNDING * size {
                    *part = 0.0;
                }
            }
            let word = word(&mut strings, &kinds, &signs, &tensors, &path);
            *strings.words.entry(word).or_default() += z;
        }
        if rest.values().any(|left| left.norm() > 1e-11 * size) {
            return Err(varies(&terms[components.term]));
        }
    }
    Ok(strings)
}

fn varies(term: &OperatorTerm) -> Error {
    Error::input(format!("the sum is not invariant under spin rotations, because of its terms on the sites of \
         `{term}`"))
        .hint("a sector of S takes scalar products of spins, as in Heisenberg models, and hoppings that are equal for \
             both spins; name Sz for other terms")
}

/// Adds the components of a term.
fn add(
    patterns: &mut BTreeMap<Pattern, Components>,
    kinds: &Kinds<'_>,
    term: &OperatorTerm,
    at: usize,
    sites: &Sites,
) -> Result<()> {
    let product = SiteProduct::new(term, sites)?.without_identities();
    // Tensors so far, their components, and the coefficient.
    let mut partial = vec![(Vec::new(), Vec::new(), product.coefficient)];
    for (site, matrix) in &product.factors {
        let (_, own) = kinds.on(*site);
        let parts = own.parts(matrix);
        let mut next = Vec::new();
        for (tensors, components, z) in &partial {
            for &(TensorComponent { to, from, k, q }, value) in &parts {
                let (mut tensors, mut components): (Vec<_>, Vec<i32>) =
                    (Clone::clone(tensors), Clone::clone(components));
                // The scalar of the only multiplet is a multiple of the identity.
                let scale = if k == 0 && own.spins.len() == 1 {
                    1.0 / f64::from(own.spins[0] + 1).sqrt()
                } else {
                    tensors.push((*site, to, from, k));
                    components.push(q);
                    1.0
                };
                next.push((tensors, components, z * value * scale));
            }
        }
        if next.len() > MAX_PARTS {
            return Err(Error::input(format!("the term `{term}` falls into too many tensors"))
                .hint("a sector of S takes terms of few sites; name Sz for others"));
        }
        partial = next;
    }
    for (tensors, components, z) in partial {
        let new = Components { term: at, ..Components::default() };
        let all = patterns.entry((product.string.clone(), tensors)).or_insert(new);
        let (sum, size) = all.values.entry(components).or_default();
        *sum += z;
        *size += z.norm();
    }
    Ok(())
}

/// All ways to couple tensors of these ranks one after the other to a scalar: the ranks after each.
fn paths(ranks: &[i32]) -> Vec<Vec<i32>> {
    let mut all = vec![Vec::new()];
    for (n, &k) in ranks.iter().enumerate() {
        let rest: i32 = ranks[n + 1..].iter().sum();
        let longer = |path: &Vec<i32>| {
            let before = path.last().copied().unwrap_or(0);
            let path = path.clone();
            couplings(before, k).filter(move |after| *after <= rest).map(move |after| {
                let mut path = path.clone();
                path.push(after);
                path
            })
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The coefficient of the product of components in a coupled string.
fn along(path: &[i32], ranks: &[i32], components: &[i32]) -> f64 {
    let (mut before, mut value) = ([0, 0], 1.0);
    for ((&after, &k), &q) in path.iter().zip(ranks).zip(components) {
        let total = [after, before[1] + q];
        value *= clebsch_gordan(before, [k, q], total);
        before = total;
    }
    value
}

/// The word of a coupled string, with the signs of fermions between.
fn word(
    strings: &mut Strings,
    kinds: &Kinds<'_>,
    signs: &[usize],
    tensors: &[(usize, usize, usize, i32)],
    path: &[i32],
) -> OperatorWord {
    let mut word = OperatorWord::new();
    let mut before = 0;
    let mut signs = signs.iter().copied().peekable();
    let sign = |strings: &mut Strings, site: usize, before: i32| {
        let (kind, own) = kinds.on(site);
        let dim = own.of.len();
        let tensor = Coupled { kind, between: None, rank: 0, before, after: before };
        let elements = || {
            let odd = |s: usize| kinds.all[kind].0.is_odd(s);
            let pairs = (0..dim).flat_map(|i| (0..dim).map(move |j| (i, j)));
            let alike = pairs.filter(|&(i, j)| own.of[i] == own.of[j]);
            alike.map(|(i, j)| (i, j, C64::from(if odd(i) { -1.0 } else { 1.0 }))).collect()
        };
        strings.alphabet.tensor(tensor, dim, elements)
    };
    for (&(site, to, from, rank), &after) in tensors.iter().zip(path) {
        while let Some(earlier) = signs.next_if(|s| *s < site) {
            word.push((earlier, sign(strings, earlier, before)));
        }
        let (kind, own) = kinds.on(site);
        let dim = own.of.len();
        let tensor = Coupled { kind, between: Some((to, from)), rank, before, after };
        let elements = || {
            let value = C64::from(own.element(to, from, rank));
            let pairs = (0..dim).flat_map(|i| (0..dim).map(move |j| (i, j)));
            pairs.filter(|&(i, j)| own.of[i] == to && own.of[j] == from).map(|(i, j)| (i, j, value)).collect()
        };
        word.push((site, strings.alphabet.tensor(tensor, dim, elements)));
        before = after;
    }
    for later in signs {
        word.push((later, sign(strings, later, before)));
    }
    word
}
