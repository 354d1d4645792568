//! Product states of a cell that are low in energy, to start from.

use std::collections::BTreeSet;
use std::sync::Arc;

use faer::Mat;

use super::super::space::{ChargeLabel, Fusion, Space};
use super::super::state::MatrixProductState;
use super::super::tensor::MpsTensor;
use super::cell::UnitCell;
use super::state::Uniform;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::{OpSum, SiteProduct};
use crate::number::C64;
use crate::number::philox::{self, Stream};

/// The most products that are tried.
const MOST: usize = 1 << 18;
/// The most of equal energy whose variances are compared.
const COMPARED: usize = 16;
/// The longest chain whose variance is looked at.
const LONG: usize = 48;
/// Distances of a decaying coupling that count.
const DISTANCES: usize = 64;

/// A term's elements on the diagonal: site of the cell and an entry a state.
struct DiagonalTerm {
    coefficient: C64,
    sites: Vec<(usize, Vec<C64>)>,
}

/// The local states of a product state of low energy with the numbers of the cell. Of several with the lowest
/// expectation value it is the one that the Hamiltonian changes most.
///
/// # Errors
/// When the sum does not fit the cell.
pub fn lowest_cell_product(sum: &OpSum, cell: &UnitCell) -> Result<Vec<usize>> {
    let n = cell.count();
    let all: f64 = cell.states.iter().map(|s| s.len() as f64).product();
    if all > MOST as f64 {
        return within(sum, cell);
    }
    let mut shown = OpSum::new();
    for term in sum.terms() {
        shown.add(term.coefficient, term.factors.clone())?;
    }
    shown.add_nearest(sum.tails(), DISTANCES)?;
    let last = shown.terms().iter().flat_map(|t| &t.factors).map(|f| f.1).max().unwrap_or(0);
    let chain = cell.chain(last / n + 1)?;
    let mut terms = Vec::new();
    for term in shown.terms() {
        let product = SiteProduct::new(term, &chain)?;
        let mut sites = Vec::new();
        for (site, matrix) in &product.factors {
            let d = chain.site(*site)?.dim();
            sites.push((site % n, (0..d).map(|s| matrix[s * d + s]).collect::<Vec<C64>>()));
        }
        for &site in &product.string {
            let own = chain.site(site)?;
            let sign = |s: usize| C64::from(if own.is_odd(s) { -1.0 } else { 1.0 });
            sites.push((site % n, (0..own.dim()).map(sign).collect()));
        }
        if sites.iter().all(|(_, d)| d.iter().any(|z| *z != C64::ZERO)) {
            terms.push(DiagonalTerm { coefficient: product.coefficient, sites });
        }
    }
    let energy = |states: &[usize]| -> f64 {
        let of = |t: &DiagonalTerm| t.sites.iter().map(|(site, d)| d[states[*site]]).product::<C64>();
        terms.iter().map(|t| (t.coefficient * of(t)).re).sum()
    };
    let mut best: Vec<Vec<usize>> = Vec::new();
    let mut least = f64::INFINITY;
    let mut states = vec![0; n];
    loop {
        let sum = states
            .iter()
            .enumerate()
            .fold(cell.symmetry.zero(), |q, (site, s)| cell.symmetry.add(&q, &cell.states[site][*s]));
        if sum == cell.symmetry.zero() {
            let e = energy(&states);
            let margin = 1e-10 * (1.0 + e.abs());
            if e < least - margin {
                best.clear();
            }
            if e < least + margin && best.len() < COMPARED {
                best.push(states.clone());
            }
            least = least.min(e);
        }
        let Some(site) = (0..n).rev().find(|&i| states[i] + 1 < cell.states[i].len()) else { break };
        states[site] += 1;
        states[site + 1..].fill(0);
    }
    // Neighbours that decaying couplings reach first tell how much the Hamiltonian changes a product.
    let mut near = OpSum::new();
    for term in sum.terms() {
        near.add(term.coefficient, term.factors.clone())?;
    }
    for tail in sum.tails() {
        near.add(tail.coefficient * tail.ratio, tail.at(1))?;
    }
    let last = near.terms().iter().flat_map(|t| &t.factors).map(|f| f.1).max().unwrap_or(0);
    let short = cell.chain(last / n + 1)?;
    let mut chosen: Option<(f64, Vec<usize>)> = None;
    for states in best {
        let long: Vec<usize> = states.iter().copied().cycle().take(short.count()).collect();
        let psi = MatrixProductState::<C64>::product(&short, &long, &Vec::new())?;
        let change = if short.count() <= LONG { psi.variance(&near).map_or(0.0, |v| v.0) } else { 0.0 };
        if chosen.as_ref().is_none_or(|c| change > c.0 + 1e-10) {
            chosen = Some((change, states));
        }
    }
    chosen.map(|c| c.1).ok_or_else(|| Error::internal("a cell both with and without states"))
}

/// The same of a cell with too many products to try them all, by the terms within the cell alone.
fn within(sum: &OpSum, cell: &UnitCell) -> Result<Vec<usize>> {
    let n = cell.count();
    let mut inside = OpSum::new();
    for term in sum.terms().iter().filter(|t| t.factors.iter().all(|f| f.1 < n)) {
        inside.add(term.coefficient, term.factors.clone())?;
    }
    let found = super::super::classical::lowest_products(&inside, &cell.sites, &cell.sector(), 0)?;
    found.into_iter().next().map(|p| p.1).ok_or_else(|| {
        Error::input(format!("no product state of a cell of {} was found to start from", cell.sites))
            .hint("give one with the option `start`: an array of names, one for each site of the cell")
    })
}

impl<T: Element> Uniform<T> {
    /// A state of random numbers, from number `first` of a seed on, of some states at each bond, with the labels around
    /// those of a product state.
    ///
    /// # Errors
    /// When the product is none of the cell; when a decomposition does not converge.
    pub fn random(
        cell: &Arc<UnitCell>,
        product: &[usize],
        most: usize,
        seed: u64,
        first: u64,
    ) -> Result<Uniform<T>> {
        let n = cell.count();
        let symmetry = &cell.symmetry;
        let centre = Uniform::<T>::product(cell, product)?;
        let mut labels: Vec<BTreeSet<ChargeLabel>> =
            centre.spaces.iter().map(|s| BTreeSet::from([s.label(0).clone()])).collect();
        // What one round through the cell reaches in either direction, the nearest of it.
        for site in (0..n).chain((0..n).rev()) {
            let behind = (site + 1) % n;
            let forth: Vec<ChargeLabel> = labels[site]
                .iter()
                .flat_map(|q| cell.states[site].iter().map(move |s| symmetry.add(q, s)))
                .collect();
            labels[behind].extend(forth);
            let back: Vec<ChargeLabel> = labels[behind]
                .iter()
                .flat_map(|q| cell.states[site].iter().map(move |s| symmetry.subtract(q, s)))
                .collect();
            labels[site].extend(back);
            for bond in [site, behind] {
                let middle = centre.spaces[bond].label(0);
                let mut all: Vec<ChargeLabel> = labels[bond].iter().cloned().collect();
                all.sort_by_key(|q| symmetry.distance(q, middle));
                all.truncate(most.max(1));
                labels[bond] = all.into_iter().collect();
            }
        }
        // Labels that lead nowhere are left out.
        loop {
            let before: usize = labels.iter().map(BTreeSet::len).sum();
            for site in 0..n {
                let behind = (site + 1) % n;
                let (a, b) = (labels[site].clone(), labels[behind].clone());
                let states = &cell.states[site];
                labels[behind].retain(|q| states.iter().any(|s| a.contains(&symmetry.subtract(q, s))));
                let b: BTreeSet<ChargeLabel> = b.intersection(&labels[behind]).cloned().collect();
                labels[site].retain(|q| states.iter().any(|s| b.contains(&symmetry.add(q, s))));
            }
            if labels.iter().map(BTreeSet::len).sum::<usize>() == before {
                break;
            }
        }
        // Without conserved numbers there is one label, of several states.
        let each = if symmetry.names().is_empty() { most.min(4) } else { 1 };
        let dims = |q: &ChargeLabel| (q.clone(), each);
        let mut spaces: Vec<Space> = labels.iter().map(|l| Space::of(l.iter().map(dims).collect())).collect();
        if each > 1 {
            // No more than a site's states can join.
            let narrowest = cell.states.iter().map(Vec::len).min().unwrap_or(1);
            if narrowest == 1 {
                spaces = centre.spaces.clone();
            }
        }
        let mut drawn = first;
        let mut tensors = Vec::with_capacity(n);
        for site in 0..n {
            let (before, behind) = (&spaces[site], &spaces[(site + 1) % n]);
            let fusion = Fusion::new(symmetry, before, &cell.states[site]);
            tensors.push(MpsTensor::new(symmetry, before, &cell.states[site], behind, |sector| {
                let rows = fusion.space().find(behind.label(sector)).map_or(0, |r| fusion.space().dim(r));
                Mat::from_fn(rows, behind.dim(sector), |_, _| {
                    let w = philox::words(seed, Stream::Script as u32, drawn, 2);
                    drawn += 1;
                    T::from_c64((philox::unit(w[0], w[1]) - 0.5).into())
                })
            })?);
        }
        Uniform::canonical(cell, &spaces, &tensors)
    }
}
