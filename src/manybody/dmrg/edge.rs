//! Uniform infinite chains: White's infinite-lattice algorithm (Phys. Rev. Lett. 69, 2863 (1992)) grows a block site
//! by site and takes its mirror image as the other half.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::mpo::{Bond, Mirror, Mpo, MpoEntry};
use super::space::Symmetry;
use super::strings::{Element, Strings};
use crate::error::{Error, Result};
use crate::manybody::{OpSum, Site, Sites, Term};
use crate::number::C64;

/// Numbers of the operators that every chain has: the identity before all terms, and the complete terms.
const START: usize = 0;
const DONE: usize = 1;

/// The automaton of a uniform chain with the coupling `bond` between neighbours, which it calls sites 0 and 1. Terms
/// on site 0 alone act on every site. Terms that name both sites, even with "Id", act on every pair of neighbours.
/// Every number of the site that the coupling conserves is conserved.
///
/// # Errors
/// For operators that the site does not have, couplings beyond sites 0 and 1, and those that are not Hermitian.
pub fn edge_chain(site: &Arc<Site>, bond: &OpSum) -> Result<Arc<Mpo>> {
    let sites = Sites::new(vec![site.clone(), site.clone()])?;
    if let Some(term) = bond.terms().iter().find(|t| t.factors.iter().any(|f| f.1 > 1)) {
        return Err(Error::input(format!("the term `{term}` reaches beyond sites 0 and 1"))
            .hint("an edge is of a chain of neighbours; finite chains take any range"));
    }
    if let Some(tail) = bond.tails().first() {
        return Err(Error::input(format!("the coupling `{tail}` reaches beyond sites 0 and 1"))
            .hint("an edge is of a chain of neighbours; infinite chains of cells take any range"));
    }
    Strings::new(bond, &sites, &Symmetry::default())?.need_hermitian(&sites)?;
    let conserves =
        |name: &String| Strings::new(bond, &sites, &Symmetry::new(&sites, [name.clone()])).is_ok();
    let symmetry = Symmetry::new(&sites, sites.charges().iter().filter(|n| conserves(n)).cloned());
    let (local, coupling) = local_and_coupling(bond)?;
    let own = Strings::new(&local, &sites, &symmetry)?;
    let strings = Strings::new(&coupling, &sites, &symmetry)?;
    let dim = site.dim();
    let states = symmetry.states(&sites, 0);
    let elements = |from: &Strings, number: usize, z: C64| -> Vec<Element> {
        from.alphabet.elements(number, dim).into_iter().map(|(i, j, x)| (i, j, z * x)).collect()
    };
    let identity = || elements(&own, 0, C64::ONE);
    // An operator that changes the parity of fermions.
    let odd = |from: &Strings, number: usize| {
        let local = from.alphabet.elements(number, dim);
        local.first().is_some_and(|e| site.is_odd(e.0) != site.is_odd(e.1))
    };
    let mut charges = vec![symmetry.zero(), symmetry.zero()];
    let mut tensor = vec![
        MpoEntry { left: START, right: START, rank: 0, elements: identity() },
        MpoEntry { left: DONE, right: DONE, rank: 0, elements: identity() },
    ];
    let charge = |number: usize| {
        let first = strings.alphabet.elements(number, dim).first().map(|e| (e.0, e.1));
        first.map_or_else(|| symmetry.zero(), |(i, j)| symmetry.subtract(&states[i], &states[j]))
    };
    let alone = || {
        Error::input("a term of an infinite chain that changes the parity of the fermions")
            .hint("fermionic operators stand in pairs, like \"Cdag\" on site 0 and \"C\" on site 1")
    };
    for (word, &z) in &own.words {
        let number = word.first().map_or(0, |w| w.1);
        if odd(&own, number) {
            return Err(alone());
        }
        tensor.push(MpoEntry { left: START, right: DONE, rank: 0, elements: elements(&own, number, z) });
    }
    // An operator on the block's last site, by its number; the identity is one of them.
    let mut on_edge: BTreeMap<usize, usize> = BTreeMap::new();
    let mut couplings: Vec<(usize, usize, C64)> = Vec::new();
    for (word, &z) in &strings.words {
        let at = |k: usize| word.iter().find(|w| w.0 == k).map_or(0, |w| w.1);
        if odd(&strings, at(0)) != odd(&strings, at(1)) {
            return Err(alone());
        }
        couplings.push((at(0), at(1), z));
    }
    for number in couplings.iter().map(|c| c.0).chain(couplings.iter().map(|c| c.1)) {
        on_edge.entry(number).or_insert_with(|| {
            charges.push(charge(number));
            let right = charges.len() - 1;
            tensor.push(MpoEntry {
                left: START,
                right,
                rank: 0,
                elements: elements(&strings, number, C64::ONE),
            });
            right
        });
    }
    for &(a, b, z) in &couplings {
        tensor.push(MpoEntry { left: on_edge[&a], right: DONE, rank: 0, elements: elements(&strings, b, z) });
    }
    // In the mirror image an operator that changes the parity carries the signs of all sites before it.
    let mut signed: BTreeMap<usize, usize> = BTreeMap::new();
    let mut parity = None;
    for b in couplings.iter().map(|c| c.1).filter(|&b| odd(&strings, b)) {
        let string = *parity.get_or_insert_with(|| {
            charges.push(symmetry.zero());
            let own = charges.len() - 1;
            let sign = |s: usize| C64::from(if site.is_odd(s) { -1.0 } else { 1.0 });
            let elements = (0..dim).map(|s| (s, s, sign(s))).collect();
            tensor.push(MpoEntry { left: own, right: own, rank: 0, elements });
            own
        });
        signed.entry(b).or_insert_with(|| {
            charges.push(charge(b));
            let right = charges.len() - 1;
            tensor.push(MpoEntry { left: string, right, rank: 0, elements: elements(&strings, b, C64::ONE) });
            right
        });
    }
    let mut mirror: Mirror = vec![Vec::new(); charges.len()];
    mirror[START].push((DONE, C64::ONE));
    mirror[DONE].push((START, C64::ONE));
    for &(a, b, z) in &couplings {
        let own = if odd(&strings, b) { signed[&b] } else { on_edge[&b] };
        mirror[on_edge[&a]].push((own, z));
    }
    let symmetric = is_symmetric(&coupling, &sites, &symmetry, &strings)?;
    let bond = Bond { charges, start: Some(START), done: Some(DONE), parity };
    Ok(Mpo::uniform(sites, symmetry, bond, tensor, symmetric.then_some(mirror)))
}

/// Terms that act once for each site, and those that name site 1, which act once for each bond even if they reduce to one site.
fn local_and_coupling(bond: &OpSum) -> Result<(OpSum, OpSum)> {
    let (mut local, mut coupling) = (OpSum::new(), OpSum::new());
    for Term { coefficient, factors } in bond.terms() {
        let on = |site: usize| factors.iter().any(|f| f.1 == site);
        if on(1) && !on(0) {
            return Err(Error::input("a term acts on site 1 alone")
                .hint("write terms of one site on site 0; they act on every site"));
        }
        let to = if on(1) { &mut coupling } else { &mut local };
        to.add(*coefficient, factors.clone())?;
    }
    Ok((local, coupling))
}

/// Whether the coupling is the same with the two sites exchanged.
fn is_symmetric(bond: &OpSum, sites: &Sites, symmetry: &Symmetry, strings: &Strings) -> Result<bool> {
    let mut turned = OpSum::new();
    for Term { coefficient, factors } in bond.terms() {
        let swapped = factors.iter().map(|(name, site)| (name.clone(), 1 - site)).collect();
        turned.add(*coefficient, swapped)?;
    }
    let turned = Strings::new(&turned, sites, symmetry)?;
    // Each numbers its operators in its own way, so the matrices are compared.
    let matrix = |s: &Strings| -> Result<BTreeMap<Vec<(usize, usize)>, C64>> {
        let mut all = BTreeMap::new();
        for (word, &z) in &s.words {
            let on = |k: usize| word.iter().find(|w| w.0 == k).map_or(0, |w| w.1);
            let local = |k: usize| Ok(s.alphabet.elements(on(k), sites.site(k)?.dim()));
            let (a, b) = (local(0)?, local(1)?);
            for x in &a {
                for y in &b {
                    *all.entry(vec![(x.0, x.1), (y.0, y.1)]).or_insert(C64::ZERO) += z * x.2 * y.2;
                }
            }
        }
        Ok(all)
    };
    let (a, b) = (matrix(strings)?, matrix(&turned)?);
    let largest = a.values().map(|z| z.norm()).fold(0.0, f64::max);
    let near = |x: &BTreeMap<_, C64>, y: &BTreeMap<_, C64>| {
        x.iter().all(|(k, z)| (z - y.get(k).copied().unwrap_or_default()).norm() <= 1e-12 * largest)
    };
    Ok(near(&a, &b) && near(&b, &a))
}
