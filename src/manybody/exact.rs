//! The matrix of an operator sum in a sector: rows are generated from local matrices, columns are numbered by the
//! basis.

use super::basis::{BasisPath, SectorBasis};
use super::local::{LocalEntry, LocalTerms, groups};
use super::opsum::OpSum;
use super::rest::{RestPath, RestRuns};
use super::rows::{self, RowSource, tidy};
use crate::backend::Device;
use crate::backend::matrix::Csr;
use crate::error::Result;
use crate::number::C64;
use crate::operator::{MatrixFormat, Operator, StoredMatrix};
use crate::task::Task;

/// The operator of a sum in a basis, on a device.
///
/// # Errors
/// Those of [`matrix`].
pub fn operator(
    device: &Device,
    sum: &OpSum,
    basis: &SectorBasis,
    format: MatrixFormat,
    single: bool,
    task: &Task,
) -> Result<Operator> {
    let csr = matrix(sum, basis, single, task)?;
    Ok(StoredMatrix::from_csr(device, csr, format)?.labelled(basis.label()))
}

/// The matrix of a sum in a basis; real where all elements are.
///
/// # Errors
/// For names and sites that do not exist, terms that change a number that the basis conserves, memory, interruption.
pub fn matrix(sum: &OpSum, basis: &SectorBasis, single: bool, task: &Task) -> Result<Csr> {
    rows::matrix(&PlainRows::new(sum, basis)?, single, task)
}

/// Generates the rows of a sum in a basis of product states.
pub(super) struct PlainRows {
    groups: Vec<LocalTerms>,
    basis: SectorBasis,
    /// Whether each state of each site is odd.
    odd: Vec<Vec<bool>>,
    /// Where most sites are at rest.
    rest: Option<TermsAtRest>,
}

/// What terms do to sites at rest: a row visits only the other terms.
struct TermsAtRest {
    runs: RestRuns,
    /// The diagonal element of each group where all sites are at rest, and the sum of them.
    diagonals: Vec<C64>,
    diagonal: C64,
    /// Whether the string of each group is odd where all sites are at rest.
    odd: Vec<bool>,
    /// The groups on each site, and where those of each site start.
    starts: Vec<usize>,
    groups: Vec<u32>,
    /// Groups that move sites at rest, or whose diagonal element there depends on other sites.
    always: Vec<u32>,
}

impl TermsAtRest {
    fn new(runs: RestRuns, groups: &[LocalTerms], odd: &[Vec<bool>]) -> Option<TermsAtRest> {
        u32::try_from(groups.len()).ok()?;
        let states = &runs.states;
        let mut starts = vec![0; states.len() + 1];
        groups.iter().flat_map(|group| &group.sites).for_each(|&site| starts[site + 1] += 1);
        for site in 0..states.len() {
            starts[site + 1] += starts[site];
        }
        let (mut next, mut on) = (starts.clone(), vec![0u32; starts[states.len()]]);
        let (mut diagonals, mut parities, mut always) = (Vec::new(), Vec::new(), Vec::new());
        for (g, group) in groups.iter().enumerate() {
            for &site in &group.sites {
                on[next[site]] = g as u32;
                next[site] += 1;
            }
            let parity = group.string.iter().filter(|&&k| odd[k][states[k] as usize]).count() % 2 == 1;
            let (mut diagonal, mut moves) = (C64::ZERO, false);
            for element in group.row(states) {
                if element.states.is_empty() {
                    diagonal += if parity { -element.value } else { element.value };
                } else {
                    moves = true;
                }
            }
            if moves || (diagonal != C64::ZERO && !group.string.is_empty()) {
                always.push(g as u32);
            }
            diagonals.push(diagonal);
            parities.push(parity);
        }
        let diagonal = diagonals.iter().sum();
        Some(TermsAtRest { runs, diagonals, diagonal, odd: parities, starts, groups: on, always })
    }

    /// Calls `each` once with every group whose part of a state's row is another one than with all sites at rest, or
    /// has other elements than diagonal ones.
    fn visit(&self, groups: &[LocalTerms], path: &RestPath<'_>, mut each: impl FnMut(usize)) {
        let excited = |site: &usize| path.states[*site] != self.runs.states[*site];
        for &site in &path.excited {
            for &g in &self.groups[self.starts[site]..self.starts[site + 1]] {
                // A group comes with the first of its sites that is not at rest.
                if groups[g as usize].sites.iter().find(|site| excited(site)) == Some(&site) {
                    each(g as usize);
                }
            }
        }
        for &g in &self.always {
            if !groups[g as usize].sites.iter().any(&excited) {
                each(g as usize);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.runs.bytes() + 17 * self.diagonals.len() + 8 * self.starts.len() + 4 * self.groups.len()
    }
}

impl PlainRows {
    /// # Errors
    /// For names and sites that do not exist, terms that change a number that the basis conserves.
    pub fn new(sum: &OpSum, basis: &SectorBasis) -> Result<PlainRows> {
        let groups = groups(sum, basis)?;
        let odd: Vec<Vec<bool>> =
            basis.sites().iter().map(|site| (0..site.dim()).map(|s| site.is_odd(s)).collect()).collect();
        let rest = RestRuns::new(basis).and_then(|runs| TermsAtRest::new(runs, &groups, &odd));
        Ok(PlainRows { groups, basis: basis.clone(), odd, rest })
    }

    /// The entries of the row that the walk stands at.
    fn row(&self, walk: &BasisPath<'_>, out: &mut Vec<(u64, C64)>) {
        out.clear();
        let levels = self.basis.levels();
        let number = walk.passed[levels.len()];
        let mut diagonal = C64::ZERO;
        for group in &self.groups {
            let elements = group.row(&walk.states);
            if elements.is_empty() {
                continue;
            }
            let odd = group.string.iter().filter(|&&k| self.odd[k][walk.states[k] as usize]).count() % 2 == 1;
            for element in elements {
                let value = if odd { -element.value } else { element.value };
                if element.states.is_empty() {
                    diagonal += value;
                } else {
                    out.push((number + self.shift(group, element, walk), value));
                }
            }
        }
        if diagonal != C64::ZERO {
            out.push((number, diagonal));
        }
    }

    /// As [`PlainRows::row`], from the sites that are not at rest.
    fn row_at_rest(&self, rest: &TermsAtRest, path: &RestPath<'_>, out: &mut Vec<(u64, C64)>) {
        out.clear();
        let number = path.number();
        let mut diagonal = C64::ZERO;
        rest.visit(&self.groups, path, |g| {
            let group = &self.groups[g];
            diagonal -= rest.diagonals[g];
            let elements = group.row(&path.states);
            if elements.is_empty() {
                return;
            }
            let turned = |&&k: &&usize| {
                self.odd[k][path.states[k] as usize] != self.odd[k][rest.runs.states[k] as usize]
                    && group.string.binary_search(&k).is_ok()
            };
            let odd = rest.odd[g]
                ^ (!group.string.is_empty() && path.excited.iter().filter(turned).count() % 2 == 1);
            for element in elements {
                let value = if odd { -element.value } else { element.value };
                if element.states.is_empty() {
                    diagonal += value;
                } else {
                    out.push((number.wrapping_add(path.shift(&group.sites, &element.states)), value));
                }
            }
        });
        diagonal += rest.diagonal;
        if diagonal != C64::ZERO {
            out.push((number, diagonal));
        }
    }

    /// Calls `each` with the entries of rows.
    fn walked(&self, first: usize, count: usize, mut each: impl FnMut(usize, &mut Vec<(u64, C64)>)) {
        let mut row = Vec::new();
        if let Some(rest) = &self.rest {
            let mut path = RestPath::at(&self.basis, &rest.runs, first);
            for k in 0..count {
                self.row_at_rest(rest, &path, &mut row);
                each(k, &mut row);
                path.step();
            }
            return;
        }
        let mut walk = BasisPath::at(&self.basis, first);
        for k in 0..count {
            self.row(&walk, &mut row);
            each(k, &mut row);
            walk.step();
        }
    }

    /// How far the column lies from the row, modulo 2^64: only the sites from the first to the last of the group
    /// matter.
    #[inline]
    fn shift(&self, group: &LocalTerms, element: &LocalEntry, walk: &BasisPath<'_>) -> u64 {
        let levels = self.basis.levels();
        let (mut i, mut passed) = (group.sites[0], 0u64);
        let mut node = walk.nodes[i];
        for (&site, &state) in group.sites.iter().zip(&element.states) {
            while i < site {
                passed += levels[i].before(node, walk.states[i]);
                node = levels[i].next(node, walk.states[i]);
                i += 1;
            }
            passed += levels[i].before(node, state);
            node = levels[i].next(node, state);
            i += 1;
        }
        passed.wrapping_sub(walk.passed[i] - walk.passed[group.sites[0]])
    }
}

impl RowSource for PlainRows {
    fn shape(&self) -> (usize, usize) {
        (self.basis.dim(), self.basis.dim())
    }

    fn work(&self) -> usize {
        match &self.rest {
            Some(rest) => 16 + rest.always.len(),
            None => self.groups.len() + self.basis.sites().count(),
        }
    }

    fn complex(&self) -> bool {
        self.groups.iter().any(|g| g.elements.iter().any(|e| e.value.im != 0.0))
    }

    fn bytes(&self) -> usize {
        let rest = self.rest.as_ref().map_or(0, TermsAtRest::bytes);
        rest + self.groups.iter().map(LocalTerms::bytes).sum::<usize>()
    }

    fn visit(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, &[(u64, C64)])) {
        self.walked(first, count, |k, row| {
            tidy(row);
            each(k, row);
        });
    }

    fn scatter(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, &[(u64, C64)])) {
        self.walked(first, count, |k, row| each(k, row));
    }
}

#[cfg(test)]
mod tests {
    use super::super::site::Site;
    use super::super::sites::Sites;
    use super::*;

    /// All rows by the sites that are not at rest and by all sites.
    fn compare(name: &str, n: usize, sector: &[(&str, f64)], terms: &[(f64, &[(&str, usize)])]) {
        let sites = Sites::uniform(Site::named(name, None).unwrap(), n).unwrap();
        let sector = sector.iter().map(|(name, q)| (name.to_string(), *q)).collect();
        let basis = SectorBasis::new(&sites, &sector).unwrap();
        let mut sum = OpSum::new();
        for (z, factors) in terms {
            sum.add(*z, factors.iter().map(|(name, i)| (name.to_string(), *i)).collect()).unwrap();
        }
        let dense = |rows: &PlainRows| -> Vec<Vec<(u64, C64)>> {
            let mut all = Vec::new();
            // In pieces, so that walks begin anywhere.
            for first in (0..basis.dim()).step_by(3) {
                rows.visit(first, 3.min(basis.dim() - first), &mut |_, row| all.push(row.to_vec()));
            }
            all
        };
        let mut rows = PlainRows::new(&sum, &basis).unwrap();
        rows.rest = None;
        let expected = dense(&rows);
        let dim = sites.site(0).unwrap().dim();
        for states in [vec![0; n], vec![dim as u8 - 1; n], (0..n).map(|i| (i % dim) as u8).collect()] {
            let runs = RestRuns::around(&basis, states).unwrap();
            rows.rest = TermsAtRest::new(runs, &rows.groups, &rows.odd);
            let found = dense(&rows);
            for (row, (a, b)) in found.iter().zip(&expected).enumerate() {
                let columns = |row: &[(u64, C64)]| {
                    let far = |e: &&(u64, C64)| e.1.norm() > 1e-13;
                    row.iter().filter(far).map(|e| e.0).collect::<Vec<_>>()
                };
                assert_eq!(columns(a), columns(b), "row {row} of {name} {sector:?}");
                for (a, b) in a.iter().filter(|e| e.1.norm() > 1e-13).zip(b) {
                    assert!((a.1 - b.1).norm() < 1e-13, "row {row} of {name} {sector:?}: {a:?} {b:?}");
                }
            }
            assert_eq!(found.len(), basis.dim());
        }
    }

    #[test]
    fn rows_around_sites_at_rest_are_those_over_all_sites() {
        let fermions: &[(f64, &[(&str, usize)])] = &[
            (-1.0, &[("Cdag", 0), ("C", 1)]),
            (-1.0, &[("Cdag", 1), ("C", 0)]),
            (0.7, &[("Cdag", 5), ("C", 0)]),
            (0.7, &[("Cdag", 0), ("C", 5)]),
            (0.3, &[("Cdag", 4), ("N", 2), ("C", 1)]),
            (1.5, &[("N", 2), ("N", 3)]),
            (0.2, &[("N", 4)]),
            (0.9, &[("F", 1), ("F", 3), ("N", 4)]),
            (0.4, &[]),
            (0.6, &[("Cdag", 0), ("Cdag", 5), ("C", 3), ("C", 2)]),
        ];
        for n in [0.0, 1.0, 2.0, 3.0, 5.0, 6.0] {
            compare("Fermion", 6, &[("N", n)], fermions);
        }
        let pairs: &[(f64, &[(&str, usize)])] = &[
            (0.8, &[("Cdag", 0), ("Cdag", 4)]),
            (0.8, &[("C", 4), ("C", 0)]),
            (-1.0, &[("Cdag", 1), ("C", 3)]),
            (0.3, &[("F", 0), ("F", 1), ("F", 2)]),
        ];
        compare("Fermion", 5, &[], pairs);
        compare("Fermion", 5, &[], &fermions[..2]);
        compare("Fermion", 5, &[("N", 1.0)], &[]);
        let spins: &[(f64, &[(&str, usize)])] = &[
            (0.5, &[("S+", 0), ("S-", 1)]),
            (0.5, &[("S-", 0), ("S+", 1)]),
            (0.9, &[("Sz", 0), ("Sz", 1)]),
            (0.4, &[("S+", 0), ("Sz", 2), ("S-", 4)]),
            (0.1, &[("Sz", 3)]),
        ];
        for sz in [-2.5, -1.5, 0.5, 2.5] {
            compare("S=1/2", 5, &[("Sz", sz)], spins);
        }
        compare("S=1", 5, &[("Sz", 3.0)], spins);
        let electrons: &[(f64, &[(&str, usize)])] = &[
            (-1.0, &[("Cdagup", 0), ("Cup", 3)]),
            (-1.0, &[("Cdagdn", 3), ("Cdn", 1)]),
            (4.0, &[("Nupdn", 2)]),
            (0.5, &[("Cdagup", 0), ("Cdn", 0), ("Cdagdn", 2), ("Cup", 2)]),
        ];
        compare("Electron", 4, &[("Nup", 1.0), ("Ndn", 2.0)], electrons);
        compare("Electron", 4, &[("N", 1.0)], electrons);
    }
}
