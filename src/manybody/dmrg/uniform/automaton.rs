//! The automaton of an operator sum that every cell of an infinite chain repeats. For the terms across a bond it
//! carries either their left or their right parts, whichever are fewer operators. An exponentially decaying coupling is
//! a single operator, which every site on the way multiplies by a factor (Crosswhite, Doherty, Vidal, Phys. Rev. B 78,
//! 035116 (2008)).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::super::mpo::{Mpo, MpoBond, MpoEntry, no_terms};
use super::super::space::ChargeLabel;
use super::super::strength::{Sizes, Strength};
use super::super::strings::{OperatorWord, Strings};
use super::cell::UnitCell;
use crate::error::{Error, Result};
use crate::manybody::{ExponentialTail, OpSum, OperatorTerm, Sites};
use crate::number::C64;

/// Numbers of the operators that every bond carries.
const START: usize = 0;
const DONE: usize = 1;
/// How many distances of a decaying coupling are looked at to tell whether it is Hermitian.
const LOOKED: usize = 4;

/// A Hamiltonian of an infinite chain.
#[derive(Debug)]
pub struct Repeated {
    pub cell: Arc<UnitCell>,
    /// The automaton; its last bond is the first of the next cell.
    pub mpo: Arc<Mpo>,
    /// How many cells a term without decay reaches beyond its own.
    pub reach: usize,
    /// Whether a coupling decays and never ends.
    pub decays: bool,
    pub strength: Strength,
}

/// What has to be carried across a bond.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CarriedString {
    /// Operators with their sites, counted from the first of the bond's cell: those to come, or those seen.
    Word(Vec<(isize, usize)>),
    /// A decaying coupling whose next partner is some sites away: the number of the tail, and how many.
    Decays(usize, usize),
}

/// A decaying coupling in local operators: `z ratio^k A_i B_(i + k step)`, k = 1, 2, ...
#[derive(Debug, Clone)]
struct Decay {
    site: usize,
    first: usize,
    /// On the sites between, the operator of all that are passed.
    passed: usize,
    second: usize,
    ratio: C64,
    step: usize,
    factor: C64,
}

/// Numbers the operators carried at the bonds of a cell.
struct CellBonds {
    known: Vec<HashMap<CarriedString, usize>>,
    charges: Vec<Vec<ChargeLabel>>,
}

impl CellBonds {
    fn new(cell: &UnitCell) -> CellBonds {
        let zero = cell.symmetry.zero();
        CellBonds {
            known: vec![HashMap::new(); cell.count()],
            charges: vec![vec![zero.clone(), zero]; cell.count()],
        }
    }

    fn number(&mut self, bond: usize, what: CarriedString, charge: &ChargeLabel) -> usize {
        let all = &mut self.charges[bond];
        *self.known[bond].entry(what).or_insert_with(|| {
            all.push(charge.clone());
            all.len() - 1
        })
    }
}

type LocalElements = BTreeMap<(usize, usize), C64>;

/// The local operators of a cell under construction.
struct Tensors<'a> {
    strings: &'a Strings,
    dims: Vec<usize>,
    sites: Vec<BTreeMap<(usize, usize), LocalElements>>,
}

impl Tensors<'_> {
    fn put(&mut self, site: usize, from: usize, to: usize, operator: usize, z: C64) {
        let sum = self.sites[site].entry((from, to)).or_default();
        for (i, j, x) in self.strings.alphabet.elements(operator, self.dims[site]) {
            *sum.entry((i, j)).or_default() += z * x;
        }
    }

    /// Once, however many terms share it.
    fn link(&mut self, site: usize, from: usize, to: usize, operator: usize, z: C64) {
        if !self.sites[site].contains_key(&(from, to)) {
            self.put(site, from, to, operator, z);
        }
    }
}

/// Refuses a term with an odd number of fermionic operators; `factors` are its own, on sites of `chain`.
///
/// # Errors
/// For such a term, and for operators that a site does not have.
pub(super) fn need_even(
    chain: &Sites,
    factors: &[(String, usize)],
    term: &OperatorTerm,
    remedy: &'static str,
) -> Result<()> {
    let mut fermions = 0;
    for (name, site) in factors {
        let own = chain.site(*site).and_then(|s| s.operator(name));
        fermions += usize::from(own.map_err(|e| e.context(format!("the term `{term}`")))?.fermionic);
    }
    if fermions % 2 == 0 {
        return Ok(());
    }
    Err(Error::input(format!("the term `{term}` changes the parity of the fermions")).hint(remedy))
}

impl Repeated {
    /// The automaton of a Hermitian sum whose every term is repeated in every cell. Sites beyond the first cell are
    /// those of the cells that follow.
    ///
    /// # Errors
    /// For operators that a site does not have, terms that change the conserved numbers or the parity of fermions, and
    /// sums that are not Hermitian.
    pub fn new(sum: &OpSum, cell: &Arc<UnitCell>) -> Result<Repeated> {
        let n = cell.count();
        if let Some(meant) = sum.meant() {
            return Err(Error::input(format!(
                "a Hamiltonian of a finite chain of {} sites, for an infinite chain",
                meant.sites
            ))
            .hint("make it for a longer chain and take the terms that begin in its first cell"));
        }
        sum.fits_cell(n)?;
        if sum.terms().is_empty() && sum.tails().is_empty() {
            return Err(no_terms());
        }
        let first: Vec<OperatorTerm> = sum.terms().iter().map(|term| from_first_cell(term, n)).collect();
        let tails: Vec<ExponentialTail> =
            sum.tails().iter().map(|tail| ExponentialTail { site: tail.site % n, ..tail.clone() }).collect();
        let mut plain = OpSum::new();
        for term in first {
            plain.add(term.coefficient, term.factors)?;
        }
        // What a decaying coupling is at its shortest distances shows whether it is Hermitian, and its local operators.
        let mut shown = plain.clone();
        shown.add_nearest(&tails, LOOKED)?;
        let last = shown.terms().iter().flat_map(|t| &t.factors).map(|f| f.1).max().unwrap_or(0);
        let chain = cell.chain(last / n + 1)?;
        for term in shown.terms() {
            let pairs =
                "the terms of an infinite chain hold fermionic operators in pairs, like \"Cdag\" and \"C\"";
            need_even(&chain, &term.factors, term, pairs)?;
        }
        let all = Strings::new(&shown, &chain, &cell.symmetry)?;
        repeated(&all, n).need_hermitian(&chain)?;
        let mut strings = all.more(&plain, &chain, &cell.symmetry)?;
        let mut decays = Vec::new();
        for tail in &tails {
            decays.extend(decay(tail, &chain, cell, &mut strings)?);
        }
        let strings = repeated(&strings, n);
        let (a, b) = (build(cell, &strings, &decays, true), build(cell, &strings, &decays, false));
        let width =
            |m: &(Vec<MpoBond>, Vec<Vec<MpoEntry>>)| m.0.iter().map(|b| b.charges.len()).sum::<usize>();
        let (bonds, tensors) = if width(&b) < width(&a) { b } else { a };
        let reach = strings.words.keys().filter_map(|w| w.last()).map(|w| w.0 / n).max().unwrap_or(0);
        let longest = decays.iter().map(|d| d.step / n + 1).max().unwrap_or(0);
        let mpo = Mpo::of_cell(&cell.sites, &cell.symmetry, &cell.target, &cell.states, bonds, tensors);
        let strength = strength(&strings, &decays, n);
        Ok(Repeated {
            cell: cell.clone(),
            mpo,
            reach: reach.max(longest),
            decays: !decays.is_empty(),
            strength,
        })
    }
}

/// A term moved by whole cells so that it begins in the first.
fn from_first_cell(term: &OperatorTerm, n: usize) -> OperatorTerm {
    let least = term.factors.iter().map(|f| f.1).min().unwrap_or(0) / n * n;
    let factors = term.factors.iter().map(|(name, site)| (name.clone(), site - least)).collect();
    OperatorTerm { coefficient: term.coefficient, factors }
}

/// Strings moved by whole cells so that they begin in the first, equal ones added up.
fn repeated(strings: &Strings, n: usize) -> Strings {
    let mut words: BTreeMap<OperatorWord, C64> = BTreeMap::new();
    for (word, &z) in &strings.words {
        let least = word.first().map_or(0, |w| w.0 / n * n);
        let moved = word.iter().map(|&(site, op)| (site - least, op)).collect();
        *words.entry(moved).or_default() += z;
    }
    Strings { alphabet: strings.alphabet.clone(), words }
}

/// The local operators of a decaying coupling; several where an operator changes the numbers in several ways.
fn decay(
    tail: &ExponentialTail,
    chain: &Sites,
    cell: &UnitCell,
    strings: &mut Strings,
) -> Result<Vec<Decay>> {
    let mut one = OpSum::new();
    // The second partner shows what stands on the sites between, the first of them included.
    one.add(C64::ONE, tail.at(2))?;
    let shown = strings.more(&one, chain, &cell.symmetry)?;
    strings.alphabet = shown.alphabet;
    let (near, far) = (tail.site, tail.site + 2 * tail.step);
    let n = cell.count();
    let mut found = Vec::new();
    for (word, z) in shown.words {
        let on = |site: usize| word.iter().find(|w| w.0 == site).map_or(0, |w| w.1);
        let passed = on(near + 1);
        let met = (1..=n).map(|k| (near + k * tail.step) % n);
        let alike = |site: usize| cell.sites.iter().nth(site) == cell.sites.iter().nth(far % n);
        if !met.into_iter().all(alike) || (passed != 0 && !(0..n).all(alike)) {
            return Err(Error::input(format!("the decaying coupling `{tail}` meets sites of several kinds"))
                .hint("its second operator has to stand on the same kind of site at every distance"));
        }
        found.push(Decay {
            site: tail.site,
            first: on(near),
            passed,
            second: on(far),
            ratio: tail.ratio,
            step: tail.step,
            factor: z * tail.coefficient,
        });
    }
    Ok(found)
}

fn strength(strings: &Strings, decays: &[Decay], n: usize) -> Strength {
    let mut sizes = Sizes::of(strings, n);
    let alphabet = &strings.alphabet;
    for d in decays {
        let size = alphabet.size(d.first) * alphabet.size(d.second) * d.factor.norm();
        let diagonal = [d.first, d.passed, d.second].iter().all(|&operator| alphabet.is_diagonal(operator));
        // Its partners are spread over all sites alike.
        sizes.add(d.site, 2.0 * size * d.ratio.norm() / (1.0 - d.ratio.norm()), diagonal);
    }
    sizes.strength()
}

/// By how much an operator changes the conserved numbers.
fn change(cell: &UnitCell, strings: &Strings, site: usize, operator: usize) -> ChargeLabel {
    let states = &cell.states[site % cell.count()];
    let elements = strings.alphabet.elements(operator, states.len());
    elements
        .first()
        .map_or_else(|| cell.symmetry.zero(), |e| cell.symmetry.subtract(&states[e.0], &states[e.1]))
}

/// The automaton, with the rests of words carried, or their beginnings.
fn build(
    cell: &UnitCell,
    strings: &Strings,
    decays: &[Decay],
    rests: bool,
) -> (Vec<MpoBond>, Vec<Vec<MpoEntry>>) {
    let n = cell.count();
    let mut bonds = CellBonds::new(cell);
    let dims = cell.states.iter().map(Vec::len).collect();
    let mut tensors = Tensors { strings, dims, sites: vec![BTreeMap::new(); n] };
    for site in 0..n {
        tensors.put(site, START, START, 0, C64::ONE);
        tensors.put(site, DONE, DONE, 0, C64::ONE);
    }
    for (word, &z) in &strings.words {
        let (Some(&(first, _)), Some(&(last, _))) = (word.first(), word.last()) else {
            // A number for each cell.
            tensors.put(0, START, DONE, 0, z);
            continue;
        };
        let mut from = START;
        let mut charge = cell.symmetry.zero();
        for site in first..=last {
            let operator = word.iter().find(|w| w.0 == site).map_or(0, |w| w.1);
            charge = cell.symmetry.add(&charge, &change(cell, strings, site, operator));
            let bond = site + 1;
            let base = (bond / n * n) as isize;
            let kept: Vec<(isize, usize)> = word
                .iter()
                .filter(|w| (w.0 > site) == rests)
                .map(|&(s, op)| (s as isize - base, op))
                .collect();
            let to =
                if site == last { DONE } else { bonds.number(bond % n, CarriedString::Word(kept), &charge) };
            let here = site % n;
            let weighted = if rests { site == first } else { site == last };
            let size = if weighted { z } else { C64::ONE };
            if weighted {
                tensors.put(here, from, to, operator, size);
            } else {
                tensors.link(here, from, to, operator, size);
            }
            from = to;
        }
    }
    // Decaying couplings of the same second operator, ratio and step share what is carried.
    let mut kinds: Vec<&Decay> = Vec::new();
    for decay in decays {
        let same = |k: &&Decay| {
            (k.second, k.passed, k.step) == (decay.second, decay.passed, decay.step)
                && (k.ratio - decay.ratio).norm() < 1e-14
        };
        let kind = kinds.iter().position(same).unwrap_or_else(|| {
            kinds.push(decay);
            kinds.len() - 1
        });
        let charge = change(cell, strings, decay.site, decay.first);
        let to = bonds.number((decay.site + 1) % n, CarriedString::Decays(kind, decay.step), &charge);
        tensors.put(decay.site, START, to, decay.first, decay.factor);
        // From each bond on the operator waits for its partner; where it meets one it ends, or goes on.
        let mut open = vec![((decay.site + 1) % n, decay.step)];
        let mut seen = Vec::new();
        while let Some((bond, left)) = open.pop() {
            if seen.contains(&(bond, left)) {
                continue;
            }
            seen.push((bond, left));
            let from = bonds.number(bond, CarriedString::Decays(kind, left), &charge);
            let (next, z) = if left == 1 { (decay.step, decay.ratio) } else { (left - 1, C64::ONE) };
            let behind = (bond + 1) % n;
            let to = bonds.number(behind, CarriedString::Decays(kind, next), &charge);
            tensors.link(bond, from, to, decay.passed, z);
            if left == 1 {
                tensors.link(bond, from, DONE, decay.second, decay.ratio);
            }
            open.push((behind, next));
        }
    }
    let bond = |b: usize| MpoBond {
        charges: bonds.charges[b % n].clone(),
        start: Some(START),
        done: Some(DONE),
        parity: None,
    };
    let flat = |((left, right), elements): (&(usize, usize), &LocalElements)| MpoEntry {
        left: *left,
        right: *right,
        rank: 0,
        elements: elements.iter().filter(|e| *e.1 != C64::ZERO).map(|(&(i, j), &z)| (i, j, z)).collect(),
    };
    let tensors = tensors.sites.iter().map(|s| s.iter().map(flat).collect()).collect();
    ((0..=n).map(bond).collect(), tensors)
}
