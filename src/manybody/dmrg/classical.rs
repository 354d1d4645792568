//! Product states to start from: minima of the diagonal of an operator sum over the basis states of a sector, found by
//! building states site by site and by annealing. Two-site sweeps move domain walls and charges one site at a time, so
//! they can be trapped in local minima. These product states avoid that.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::manybody::{OpSum, Sector, SiteProduct, Sites};
use crate::number::C64;
use crate::number::philox::{Stream, unit, words};

use super::conserved::conserved;
use super::space::{ChargeLabel, ConservedNumbers};

/// Most evaluations of terms.
const EFFORT: usize = 8_000_000;
/// Temperatures of an annealing, and moves a site at each.
const TEMPERATURES: usize = 40;
const MOVES: usize = 12;
/// Beginnings of states that are kept behind each site.
const KEPT: usize = 400;

/// A term in a product state: its expectation value, and the norm of what it makes beside that state.
struct Energy {
    sites: Vec<usize>,
    coefficient: C64,
    /// Diagonal elements and norms of columns, for each site.
    diagonal: Vec<Vec<C64>>,
    columns: Vec<Vec<f64>>,
    string: Vec<usize>,
}

/// A search over product states.
struct ProductStateSearch<'a> {
    sites: &'a Sites,
    symmetry: ConservedNumbers,
    target: ChargeLabel,
    labels: Vec<Vec<ChargeLabel>>,
    terms: Vec<Energy>,
    /// Terms that a site takes part in.
    of_site: Vec<Vec<usize>>,
    /// Weight of the off-diagonal elements, relative to the diagonal.
    reach: f64,
    seed: u64,
    drawn: u64,
}

/// The other states that two sites may be in without a change of the sector's numbers; of one site,
/// if it is given twice.
///
/// # Errors
/// For sites and states that do not exist, and sectors without states or of total spin.
pub fn other_states(
    sites: &Sites,
    sector: &Sector,
    (i, j): (usize, usize),
    (a, b): (usize, usize),
) -> Result<Vec<(usize, usize)>> {
    let (symmetry, _) = conserved(sites, sector)?;
    if symmetry.spin().is_some() {
        return Err(Error::input("product states in a sector of total spin").hint("name Sz in place of S"));
    }
    sites.site(i.max(j))?;
    let (of_i, of_j) = (symmetry.states(sites, i), symmetry.states(sites, j));
    let (Some(now_i), Some(now_j)) = (of_i.get(a), of_j.get(b)) else {
        return Err(Error::internal("a local state that there is not"));
    };
    if i == j {
        return Ok((0..of_i.len()).filter(|&x| x != a && of_i[x] == *now_i).map(|x| (x, x)).collect());
    }
    let now = symmetry.add(now_i, now_j);
    let all = (0..of_i.len()).flat_map(|x| (0..of_j.len()).map(move |y| (x, y)));
    Ok(all.filter(|&(x, y)| (x, y) != (a, b) && symmetry.add(&of_i[x], &of_j[y]) == now).collect())
}

/// The product states of a sector with the lowest energies, and their diagonal elements, ascending: one minimises the
/// diagonal alone, the other counts a part of the off-diagonal elements too. None where no state of the sector is
/// found.
///
/// # Errors
/// For operators and sites that do not exist, and sectors without states.
pub fn lowest_products(
    sum: &OpSum,
    sites: &Sites,
    sector: &Sector,
    seed: u64,
) -> Result<Vec<(f64, Vec<usize>)>> {
    let (symmetry, target) = conserved(sites, sector)?;
    if symmetry.spin().is_some() {
        // No product state has a total spin, but for those of the largest.
        return Ok(Vec::new());
    }
    let labels: Vec<Vec<ChargeLabel>> = (0..sites.count()).map(|i| symmetry.states(sites, i)).collect();
    let mut terms = Vec::new();
    for term in sum.terms_on(sites.count()).iter() {
        terms.push(energy(SiteProduct::new(term, sites)?, sites)?);
    }
    let mut of_site = vec![Vec::new(); sites.count()];
    for (k, term) in terms.iter().enumerate() {
        term.sites.iter().chain(&term.string).for_each(|&i| of_site[i].push(k));
    }
    let mut found: Vec<(f64, Vec<usize>)> = Vec::new();
    let mut search =
        ProductStateSearch { sites, symmetry, target, labels, terms, of_site, reach: 0.0, seed, drawn: 0 };
    for reach in [0.0, 0.3] {
        search.reach = reach;
        let mut best: Option<(f64, Vec<usize>)> = None;
        for attempt in 0..4 {
            let Some(state) = (if attempt == 0 { search.built() } else { search.anneal() }) else { continue };
            let value = search.all(&state);
            if best.as_ref().is_none_or(|b| value < b.0 - 1e-9 * (1.0 + value.abs())) {
                best = Some((value, state));
            }
        }
        search.reach = 0.0;
        if let Some((_, state)) = best.filter(|b| found.iter().all(|f| f.1 != b.1)) {
            found.push((search.all(&state), state));
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(found)
}

fn energy(product: SiteProduct, sites: &Sites) -> Result<Energy> {
    let mut term = Energy {
        sites: Vec::new(),
        coefficient: product.coefficient,
        diagonal: Vec::new(),
        columns: Vec::new(),
        string: product.string,
    };
    for (site, matrix) in product.factors {
        let dim = sites.site(site)?.dim();
        term.sites.push(site);
        term.diagonal.push((0..dim).map(|s| matrix[s * dim + s]).collect());
        let norm = |s: usize| (0..dim).map(|r| matrix[r * dim + s].norm_sqr()).sum::<f64>().sqrt();
        term.columns.push((0..dim).map(norm).collect());
    }
    Ok(term)
}

/// The lowest beginnings, as many of each charge.
fn thinned(mut all: Vec<ProductPrefix>) -> Vec<ProductPrefix> {
    if all.len() <= KEPT {
        return all;
    }
    all.sort_by(|a, b| a.value.total_cmp(&b.value));
    let mut of_charge: HashMap<ChargeLabel, usize> = HashMap::new();
    all.iter().for_each(|b| *of_charge.entry(b.sum.clone()).or_default() += 1);
    let share = KEPT.div_ceil(of_charge.len());
    of_charge.values_mut().for_each(|n| *n = share);
    all.retain(|b| match of_charge.get_mut(&b.sum) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    });
    all
}

impl Energy {
    /// Whether its diagonal is not zero: a string changes the sign of nothing else.
    fn is_diagonal(&self) -> bool {
        self.diagonal.iter().all(|d| d.iter().any(|z| *z != C64::ZERO))
    }

    fn value(&self, state: &[usize], sites: &Sites, reach: f64) -> f64 {
        let (mut diagonal, mut size) = (self.coefficient, 1.0);
        for (k, &i) in self.sites.iter().enumerate() {
            diagonal *= self.diagonal[k][state[i]];
            size *= self.columns[k][state[i]];
        }
        let odd = |i: &&usize| sites.iter().nth(**i).is_some_and(|s| s.is_odd(state[**i]));
        if self.string.iter().filter(odd).count() % 2 == 1 {
            diagonal = -diagonal;
        }
        let size = size * self.coefficient.norm();
        diagonal.re - reach * (size * size - diagonal.norm_sqr()).max(0.0).sqrt()
    }
}

/// The beginning of a product state, with its charges and the value of the terms that end in it.
struct ProductPrefix {
    state: Vec<usize>,
    sum: ChargeLabel,
    value: f64,
}

impl ProductStateSearch<'_> {
    /// The lowest state of the sector by dynamic programming: of the beginnings that have the same charges and the same
    /// states on the sites that later terms reach, only the lowest goes on. That is exact where no more than [`KEPT`]
    /// are left; elsewhere the lowest of each charge go on.
    fn built(&self) -> Option<Vec<usize>> {
        let n = self.labels.len();
        let mut ending = vec![Vec::new(); n];
        // The last site that a site shares a term with.
        let mut reaches: Vec<usize> = (0..n).collect();
        for (k, term) in self.terms.iter().enumerate() {
            let string: &[usize] = if term.is_diagonal() { &term.string } else { &[] };
            let Some(last) = term.sites.iter().chain(string).copied().max() else { continue };
            ending[last].push(k);
            term.sites.iter().chain(string).for_each(|&i| reaches[i] = reaches[i].max(last));
        }
        let (least, most) = self.charges_behind();
        let mut kept = vec![ProductPrefix { state: vec![0; n], sum: self.symmetry.zero(), value: 0.0 }];
        for i in 0..n {
            let open: Vec<usize> = (0..=i).filter(|&j| reaches[j] > i).collect();
            let mut places: HashMap<(ChargeLabel, Vec<usize>), usize> = HashMap::new();
            let mut longer: Vec<ProductPrefix> = Vec::new();
            for begun in &kept {
                for (s, label) in self.labels[i].iter().enumerate() {
                    let sum = self.symmetry.add(&begun.sum, label);
                    let apart = self.symmetry.subtract(&self.target, &sum);
                    let reached = |(q, d): (usize, &i32)| {
                        self.symmetry.moduli()[q] != 0 || (least[i + 1][q]..=most[i + 1][q]).contains(d)
                    };
                    if !apart.iter().enumerate().all(reached) {
                        continue;
                    }
                    let mut state = begun.state.clone();
                    state[i] = s;
                    let more: f64 =
                        ending[i].iter().map(|&k| self.terms[k].value(&state, self.sites, self.reach)).sum();
                    let value = begun.value + more;
                    let key = (sum.clone(), open.iter().map(|&j| state[j]).collect());
                    let place = *places.entry(key).or_insert(longer.len());
                    if place == longer.len() {
                        longer.push(ProductPrefix { state, sum, value });
                    } else if value < longer[place].value {
                        longer[place] = ProductPrefix { state, sum, value };
                    }
                }
            }
            kept = thinned(longer);
        }
        let whole = kept.into_iter().filter(|b| b.sum == self.target);
        whole.min_by(|a, b| a.value.total_cmp(&b.value)).map(|b| b.state)
    }

    /// The least and the most charge that the sites from each one on can have.
    fn charges_behind(&self) -> (Vec<Vec<i32>>, Vec<Vec<i32>>) {
        let n = self.labels.len();
        let numbers = self.symmetry.names().len();
        let (mut least, mut most) = (vec![vec![0; numbers]; n + 1], vec![vec![0; numbers]; n + 1]);
        for i in (0..n).rev() {
            for q in 0..numbers {
                let of_site = || self.labels[i].iter().map(|label| label[q]);
                least[i][q] = least[i + 1][q] + of_site().min().unwrap_or(0);
                most[i][q] = most[i + 1][q] + of_site().max().unwrap_or(0);
            }
        }
        (least, most)
    }

    fn random(&mut self) -> f64 {
        self.drawn += 1;
        let w = words(self.seed, Stream::Start as u32, self.drawn, u32::MAX);
        unit(w[0], w[1])
    }

    fn below(&mut self, n: usize) -> usize {
        ((self.random() * n as f64) as usize).min(n - 1)
    }

    fn all(&self, state: &[usize]) -> f64 {
        self.terms.iter().map(|t| t.value(state, self.sites, self.reach)).sum()
    }

    /// The value of the terms that some sites take part in.
    fn near(&self, state: &[usize], moved: &[usize]) -> f64 {
        let mut terms: Vec<usize> = moved.iter().flat_map(|&i| self.of_site[i].iter().copied()).collect();
        terms.sort_unstable();
        terms.dedup();
        terms.iter().map(|&k| self.terms[k].value(state, self.sites, self.reach)).sum()
    }

    /// A random state of the sector; none if a random walk does not reach it.
    fn begin(&mut self) -> Option<Vec<usize>> {
        let n = self.labels.len();
        let mut state: Vec<usize> = (0..n).map(|i| self.below(self.labels[i].len())).collect();
        let mut sum = self.symmetry.zero();
        for (i, &s) in state.iter().enumerate() {
            sum = self.symmetry.add(&sum, &self.labels[i][s]);
        }
        for step in 0..400 * n {
            if sum == self.target {
                return Some(state);
            }
            let i = self.below(n);
            let to = self.below(self.labels[i].len());
            let moved = self
                .symmetry
                .add(&self.symmetry.subtract(&sum, &self.labels[i][state[i]]), &self.labels[i][to]);
            let away = |q: &ChargeLabel| {
                let apart = self.symmetry.subtract(&self.target, q);
                apart.iter().map(|d| d.abs()).sum::<i32>()
            };
            if away(&moved) <= away(&sum) || step % 50 == 49 {
                (state[i], sum) = (to, moved);
            }
        }
        None
    }

    fn anneal(&mut self) -> Option<Vec<usize>> {
        let n = self.labels.len();
        let mut state = self.begin()?;
        let size =
            |t: &Energy| t.columns.iter().map(|c| c.iter().copied().fold(0.0, f64::max)).product::<f64>();
        let strength = |of: &Vec<usize>| -> f64 {
            of.iter().map(|&k| self.terms[k].coefficient.norm() * size(&self.terms[k])).sum()
        };
        let hot = self.of_site.iter().map(strength).fold(0.0, f64::max);
        let touched: usize = self.of_site.iter().map(Vec::len).sum::<usize>().max(1);
        let moves = (MOVES * n).min(EFFORT * n / (6 * TEMPERATURES * 4 * touched)).max(n);
        for t in 0..TEMPERATURES {
            // The last temperatures are practically zero.
            let temperature = hot * 10f64.powf(-5.0 * t as f64 / TEMPERATURES as f64);
            for _ in 0..moves {
                let changes = self.proposal(&state, n);
                if changes.is_empty() {
                    continue;
                }
                let moved: Vec<usize> = changes.iter().map(|c| c.0).collect();
                let before = self.near(&state, &moved);
                let old: Vec<usize> = moved.iter().map(|&i| state[i]).collect();
                changes.iter().for_each(|&(i, s)| state[i] = s);
                let rise = self.near(&state, &moved) - before;
                if rise > 0.0 && self.random() >= (-rise / temperature).exp() {
                    moved.iter().zip(&old).for_each(|(&i, &s)| state[i] = s);
                }
            }
        }
        Some(state)
    }

    /// New states of some sites, with the same charges in total.
    fn proposal(&mut self, state: &[usize], n: usize) -> Vec<(usize, usize)> {
        let i = self.below(n);
        let kind = self.random();
        if n > 3 && kind < 0.05 {
            // Two stretches of the chain change places.
            let length = 1 + self.below(n / 2);
            let (a, b) = (self.below(n - length + 1), self.below(n - length + 1));
            let (a, b) = (a.min(b), a.max(b));
            let kind = |i: usize| self.sites.iter().nth(i);
            if b < a + length || (0..length).any(|k| kind(a + k) != kind(b + k)) {
                return Vec::new();
            }
            let there = (0..length).flat_map(|k| [(a + k, state[b + k]), (b + k, state[a + k])]);
            return there.filter(|&(i, s)| state[i] != s).collect();
        }
        let a = self.below(self.labels[i].len());
        if a == state[i] {
            return Vec::new();
        }
        let apart = self.symmetry.subtract(&self.labels[i][state[i]], &self.labels[i][a]);
        if apart.iter().all(|q| *q == 0) {
            return vec![(i, a)];
        }
        let j = if kind < 0.4 { (i + 1) % n } else { self.below(n) };
        if i == j {
            return Vec::new();
        }
        let wanted = self.symmetry.add(&self.labels[j][state[j]], &apart);
        let fitting: Vec<usize> =
            (0..self.labels[j].len()).filter(|&s| self.labels[j][s] == wanted).collect();
        if fitting.is_empty() {
            return Vec::new();
        }
        let b = fitting[self.below(fitting.len())];
        vec![(i, a), (j, b)]
    }
}
