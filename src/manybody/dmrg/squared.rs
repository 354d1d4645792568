//! The automaton of a sum's square, for the variance of the energy.

use std::collections::BTreeMap;

use super::mpo::{Mpo, MpoBond, MpoEntry};
use super::space::ChargeLabel;
use super::strings::OperatorElement;
use crate::manybody::wigner::{couplings, recoupling, six, triangle};
use crate::number::C64;

/// A pair of operators carried, and the rank that they couple to; twice its value, 0 without a total spin.
type Symbol = (usize, usize, i32);
/// Elements by left and right symbol and rank.
type SquaredEntries = BTreeMap<(usize, usize, i32), BTreeMap<(usize, usize), C64>>;

impl Mpo {
    /// The automaton of the square.
    pub fn squared(&self) -> Mpo {
        let n = self.sites().count();
        let symbols: Vec<Vec<Symbol>> = (0..=n).map(|i| self.pairs(self.bond(i))).collect();
        let mut square = self.clone();
        square.bonds = (0..=n).map(|i| self.square_of_bond(self.bond(i), &symbols[i])).collect();
        square.tensors = (0..n).map(|i| self.square_of_site(i, &symbols[i], &symbols[i + 1])).collect();
        square
    }

    fn rank(&self, charge: &ChargeLabel) -> i32 {
        self.symmetry().spin().map_or(0, |c| charge[c])
    }

    fn pairs(&self, bond: &MpoBond) -> Vec<Symbol> {
        let w = bond.charges.len();
        let ranks = |a: usize, b: usize| couplings(self.rank(&bond.charges[a]), self.rank(&bond.charges[b]));
        let all = (0..w).flat_map(|a| (0..w).map(move |b| (a, b)));
        all.flat_map(|(a, b)| ranks(a, b).map(move |k| (a, b, k))).collect()
    }

    fn square_of_bond(&self, bond: &MpoBond, symbols: &[Symbol]) -> MpoBond {
        let charge = |&(a, b, k): &Symbol| {
            let mut sum = self.symmetry().add(&bond.charges[a], &bond.charges[b]);
            self.symmetry().spin().into_iter().for_each(|c| sum[c] = k);
            sum
        };
        let both = |one: Option<usize>| symbols.iter().position(|s| Some(s.0) == one && Some(s.1) == one);
        MpoBond {
            charges: symbols.iter().map(charge).collect(),
            start: both(bond.start),
            done: both(bond.done),
            parity: None,
        }
    }

    fn square_of_site(&self, site: usize, before: &[Symbol], behind: &[Symbol]) -> Vec<MpoEntry> {
        let number = |symbols: &[Symbol]| -> BTreeMap<(usize, usize), Vec<(usize, i32)>> {
            let mut by_pair: BTreeMap<(usize, usize), Vec<(usize, i32)>> = BTreeMap::new();
            symbols
                .iter()
                .enumerate()
                .for_each(|(k, s)| by_pair.entry((s.0, s.1)).or_default().push((k, s.2)));
            by_pair
        };
        let (before, behind) = (number(before), number(behind));
        let rank_of = |bond: usize, symbol: usize| self.rank(&self.bond(bond).charges[symbol]);
        let spinning = self.symmetry().spin().is_some();
        let mut all = SquaredEntries::new();
        for a in self.tensor(site) {
            for b in self.tensor(site) {
                let [first, second] =
                    [a, b].map(|e| [rank_of(site, e.left), e.rank, rank_of(site + 1, e.right)]);
                for rank in couplings(a.rank, b.rank) {
                    let product = self.product(site, a, b, rank);
                    for &(left, from) in &before[&(a.left, b.left)] {
                        for &(right, to) in &behind[&(a.right, b.right)] {
                            let z = if spinning { regrouped(first, second, [from, rank, to]) } else { 1.0 };
                            if z == 0.0 || product.is_empty() {
                                continue;
                            }
                            let sum = all.entry((left, right, rank)).or_default();
                            product.iter().for_each(|&(i, j, x)| *sum.entry((i, j)).or_default() += x * z);
                        }
                    }
                }
            }
        }
        let entry = |((left, right, rank), elements): (_, BTreeMap<(usize, usize), C64>)| {
            let elements: Vec<OperatorElement> =
                elements.into_iter().filter(|e| e.1 != C64::ZERO).map(|((i, j), z)| (i, j, z)).collect();
            MpoEntry { left, right, rank, elements }
        };
        all.into_iter().map(entry).filter(|e| !e.elements.is_empty()).collect()
    }

    /// The product of two local operators, or the part of some rank of the product of two tensors (Edmonds 7.1.1).
    fn product(&self, site: usize, a: &MpoEntry, b: &MpoEntry, rank: i32) -> Vec<OperatorElement> {
        let mut sums: BTreeMap<(usize, usize), C64> = BTreeMap::new();
        let Some(c) = self.symmetry().spin() else {
            for &(i, k, x) in &a.elements {
                for &(_, j, y) in b.elements.iter().filter(|e| e.0 == k) {
                    *sums.entry((i, j)).or_default() += x * y;
                }
            }
            return sums.into_iter().map(|((i, j), z)| (i, j, z)).collect();
        };
        let states = self.states(site);
        let (spin, multiplet) = (|s: usize| states[s][c + 1], |s: usize| states[s][c + 2]);
        // One state of each multiplet stands for all.
        let first = |s: usize| (0..s).all(|t| multiplet(t) != multiplet(s));
        let size =
            |i: usize, j: usize, k: i32| f64::from((spin(i) + 1) * (spin(j) + 1) * (k + 1)).sqrt().sqrt();
        for &(i, k, x) in a.elements.iter().filter(|e| first(e.0) && first(e.1)) {
            for &(_, j, y) in b.elements.iter().filter(|e| e.0 == k && first(e.1)) {
                if !triangle(spin(i), spin(j), rank) {
                    continue;
                }
                let symbol =
                    six(a.rank, b.rank, rank, spin(j), spin(i), spin(k)) * f64::from(rank + 1).sqrt();
                let sign = if (spin(i) + spin(j) + rank) / 2 % 2 == 0 { symbol } else { -symbol };
                let units = size(i, k, a.rank) * size(k, j, b.rank) / size(i, j, rank);
                *sums.entry((i, j)).or_default() += x * y * sign * units;
            }
        }
        let all = (0..states.len()).flat_map(|i| (0..states.len()).map(move |j| (i, j)));
        all.filter_map(|(i, j)| {
            let same = |s: usize| (0..=s).find(|&t| multiplet(t) == multiplet(s)).unwrap_or(s);
            sums.get(&(same(i), same(j))).map(|z| (i, j, *z))
        })
        .collect()
    }
}

/// The factor between two pairs of tensors coupled each, and the firsts and the seconds coupled each (Edmonds 6.4.2):
/// ranks of the first of a pair, the second, and both.
fn regrouped(first: [i32; 3], second: [i32; 3], both: [i32; 3]) -> f64 {
    let size = |ranks: &[i32]| ranks.iter().map(|r| f64::from(r + 1)).product::<f64>();
    let units = size(&[first[2], second[2], both[0], both[1]]).sqrt();
    let all = size([first, second, both].as_flattened()).sqrt().sqrt();
    recoupling(first, second, both) * units / all
}
