//! Uniform infinite chains: White's infinite-lattice algorithm (Phys. Rev. Lett. 69, 2863 (1992)) grows a block site by
//! site and uses its mirror image as the other half.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::mpo::{Mirror, Mpo, MpoBond, MpoEntry};
use super::space::{ChargeLabel, ConservedNumbers};
use super::strings::Strings;
use crate::error::{Error, Result};
use crate::manybody::{OpSum, OperatorTerm, Site, Sites};
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
    need_neighbours(bond)?;
    Strings::new(bond, &sites, &ConservedNumbers::default())?.need_hermitian(&sites)?;
    let conserves =
        |name: &String| Strings::new(bond, &sites, &ConservedNumbers::new(&sites, [name.clone()])).is_ok();
    let symmetry = ConservedNumbers::new(&sites, sites.charges().iter().filter(|n| conserves(n)).cloned());
    let (local, coupling) = local_and_coupling(bond)?;
    let own = Strings::new(&local, &sites, &symmetry)?;
    let strings = Strings::new(&coupling, &sites, &symmetry)?;
    let mut tensor = EdgeTensor::new(site, &symmetry, symmetry.states(&sites, 0));
    tensor.add_local(&own)?;
    let couplings = tensor.couplings(&strings)?;
    let on_edge = tensor.add_couplings(&strings, &couplings);
    let (signed, parity) = tensor.add_signed(&strings, &couplings);
    let mut mirror: Mirror = vec![Vec::new(); tensor.charges.len()];
    mirror[START].push((DONE, C64::ONE));
    mirror[DONE].push((START, C64::ONE));
    for &(a, b, z) in &couplings {
        let own = if tensor.is_odd(&strings, b) { signed[&b] } else { on_edge[&b] };
        mirror[on_edge[&a]].push((own, z));
    }
    let symmetric = is_symmetric(&coupling, &sites, &symmetry, &strings)?;
    let EdgeTensor { charges, entries, .. } = tensor;
    let bond = MpoBond { charges, start: Some(START), done: Some(DONE), parity };
    Ok(Mpo::uniform(sites, symmetry, bond, entries, symmetric.then_some(mirror)))
}

/// Refuses a coupling of sites beyond neighbours.
fn need_neighbours(bond: &OpSum) -> Result<()> {
    if let Some(term) = bond.terms().iter().find(|t| t.factors.iter().any(|f| f.1 > 1)) {
        return Err(Error::input(format!("the term `{term}` reaches beyond sites 0 and 1"))
            .hint("an edge is of a chain of neighbours; finite chains take any range"));
    }
    if let Some(tail) = bond.tails().first() {
        return Err(Error::input(format!("the coupling `{tail}` reaches beyond sites 0 and 1"))
            .hint("an edge is of a chain of neighbours; infinite chains of cells take any range"));
    }
    Ok(())
}

/// The site's tensor of the automaton as it grows, with the charges of the operators on a bond.
struct EdgeTensor<'a> {
    site: &'a Site,
    symmetry: &'a ConservedNumbers,
    /// Labels of the site's states.
    states: Vec<ChargeLabel>,
    charges: Vec<ChargeLabel>,
    entries: Vec<MpoEntry>,
}

impl<'a> EdgeTensor<'a> {
    /// With the two operators that every chain has.
    fn new(site: &'a Site, symmetry: &'a ConservedNumbers, states: Vec<ChargeLabel>) -> EdgeTensor<'a> {
        let charges = vec![symmetry.zero(), symmetry.zero()];
        let mut tensor = EdgeTensor { site, symmetry, states, charges, entries: Vec::new() };
        for kept in [START, DONE] {
            let identity = (0..site.dim()).map(|s| (s, s, C64::ONE)).collect();
            tensor.entries.push(MpoEntry { left: kept, right: kept, rank: 0, elements: identity });
        }
        tensor
    }

    /// Whether an operator changes the parity of fermions.
    fn is_odd(&self, of: &Strings, number: usize) -> bool {
        let local = of.alphabet.elements(number, self.site.dim());
        local.first().is_some_and(|e| self.site.is_odd(e.0) != self.site.is_odd(e.1))
    }

    /// Another operator on the bond, with the charge of operator `number`.
    fn add_operator(&mut self, of: &Strings, number: usize) -> usize {
        let first = of.alphabet.elements(number, self.site.dim()).first().map(|e| (e.0, e.1));
        let charge = |(i, j): (usize, usize)| self.symmetry.subtract(&self.states[i], &self.states[j]);
        self.charges.push(first.map_or_else(|| self.symmetry.zero(), charge));
        self.charges.len() - 1
    }

    /// Operator `number` times z on the site, between two operators on the bonds.
    fn add(&mut self, (left, right): (usize, usize), of: &Strings, number: usize, z: C64) {
        let all = of.alphabet.elements(number, self.site.dim());
        let elements = all.into_iter().map(|(i, j, x)| (i, j, z * x)).collect();
        self.entries.push(MpoEntry { left, right, rank: 0, elements });
    }

    /// The terms of single sites.
    fn add_local(&mut self, own: &Strings) -> Result<()> {
        for (word, &z) in &own.words {
            let number = word.first().map_or(0, |w| w.1);
            if self.is_odd(own, number) {
                return Err(alone());
            }
            self.add((START, DONE), own, number, z);
        }
        Ok(())
    }

    /// The numbers of the operators on sites 0 and 1 of each coupling, and its factor.
    fn couplings(&self, strings: &Strings) -> Result<Vec<(usize, usize, C64)>> {
        let mut couplings = Vec::new();
        for (word, &z) in &strings.words {
            let at = |k: usize| word.iter().find(|w| w.0 == k).map_or(0, |w| w.1);
            if self.is_odd(strings, at(0)) != self.is_odd(strings, at(1)) {
                return Err(alone());
            }
            couplings.push((at(0), at(1), z));
        }
        Ok(couplings)
    }

    /// The couplings, each begun by an operator on the block's last site; where on the bond that is, by its number. The
    /// identity is one of them.
    fn add_couplings(
        &mut self,
        strings: &Strings,
        couplings: &[(usize, usize, C64)],
    ) -> BTreeMap<usize, usize> {
        let mut on_edge = BTreeMap::new();
        for number in couplings.iter().map(|c| c.0).chain(couplings.iter().map(|c| c.1)) {
            on_edge.entry(number).or_insert_with(|| {
                let right = self.add_operator(strings, number);
                self.add((START, right), strings, number, C64::ONE);
                right
            });
        }
        for &(a, b, z) in couplings {
            self.add((on_edge[&a], DONE), strings, b, z);
        }
        on_edge
    }

    /// In the mirror image an operator that changes the parity carries the signs of all sites before it: these
    /// operators, by their numbers, and the signs.
    fn add_signed(
        &mut self,
        strings: &Strings,
        couplings: &[(usize, usize, C64)],
    ) -> (BTreeMap<usize, usize>, Option<usize>) {
        let (mut signed, mut parity) = (BTreeMap::new(), None);
        for &(_, b, _) in couplings {
            if !self.is_odd(strings, b) {
                continue;
            }
            let string = *parity.get_or_insert_with(|| {
                self.charges.push(self.symmetry.zero());
                let own = self.charges.len() - 1;
                let sign = |s: usize| C64::from(if self.site.is_odd(s) { -1.0 } else { 1.0 });
                let elements = (0..self.site.dim()).map(|s| (s, s, sign(s))).collect();
                self.entries.push(MpoEntry { left: own, right: own, rank: 0, elements });
                own
            });
            signed.entry(b).or_insert_with(|| {
                let right = self.add_operator(strings, b);
                self.add((string, right), strings, b, C64::ONE);
                right
            });
        }
        (signed, parity)
    }
}

fn alone() -> Error {
    Error::input("a term of an infinite chain that changes the parity of the fermions")
        .hint("fermionic operators stand in pairs, like \"Cdag\" on site 0 and \"C\" on site 1")
}

/// Terms that act once for each site, and couplings, which act once for each bond: all that name site 1, even if they
/// reduce to an operator on one site.
fn local_and_coupling(bond: &OpSum) -> Result<(OpSum, OpSum)> {
    let (mut local, mut coupling) = (OpSum::new(), OpSum::new());
    for OperatorTerm { coefficient, factors } in bond.terms() {
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
fn is_symmetric(bond: &OpSum, sites: &Sites, symmetry: &ConservedNumbers, strings: &Strings) -> Result<bool> {
    let mut turned = OpSum::new();
    for OperatorTerm { coefficient, factors } in bond.terms() {
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
