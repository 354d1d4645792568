//! Sums of products of local operators: a many-body Hamiltonian as data.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Mul};

use super::Sites;
use super::fingerprint::ModelHash;
use super::site::adjoint_name;
use crate::error::{Error, Result};
use crate::number::C64;
use crate::number::format::{complex, counted, real};

/// Sums below this, relative to the moduli of what was added, count as zero.
pub(super) const ROUNDING: f64 = 1e-13;

/// A coefficient times a product of operators, the rightmost acting first.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorTerm {
    pub coefficient: C64,
    /// Names of the operators, and their sites.
    pub factors: Vec<(String, usize)>,
}

/// A coupling that decays exponentially with the distance and never ends: the sum over k = 1, 2, ... of
/// `coefficient ratio^k A_i B_(i + k step)`.
#[derive(Debug, Clone, PartialEq)]
pub struct ExponentialTail {
    pub coefficient: C64,
    /// Per step; its modulus is below one.
    pub ratio: C64,
    pub first: String,
    pub site: usize,
    pub second: String,
    /// Sites from one partner to the next.
    pub step: usize,
    /// Whether the operators act in the other order, the first on the nearer site.
    pub turned: bool,
}

/// What cells are compared by: operators with their sites from the cell's first one on, and the bits of the ratio by
/// which a coupling decays.
type CellKey = (Vec<(String, usize)>, Option<[u64; 2]>);

fn first(factors: &[(String, usize)]) -> usize {
    factors.iter().map(|f| f.1).min().unwrap_or(0)
}

fn last(factors: &[(String, usize)]) -> usize {
    factors.iter().map(|f| f.1).max().unwrap_or(0)
}

impl ExponentialTail {
    /// The operators at distance `k`.
    pub fn at(&self, k: usize) -> Vec<(String, usize)> {
        let mut pair =
            vec![(self.first.clone(), self.site), (self.second.clone(), self.site + k * self.step)];
        if self.turned {
            pair.reverse();
        }
        pair
    }

    /// The terms on a finite chain.
    fn on(&self, sites: usize) -> impl Iterator<Item = OperatorTerm> {
        let last = sites.saturating_sub(self.site + 1) / self.step;
        (1..=last).map(|k| OperatorTerm {
            coefficient: self.coefficient * self.ratio.powu(k as u32),
            factors: self.at(k),
        })
    }
}

/// A sum of terms. Nothing is known of the sites yet: names are checked when the sum meets them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpSum {
    terms: Vec<OperatorTerm>,
    tails: Vec<ExponentialTail>,
    meant: Option<MeantSites>,
    order: Option<Vec<usize>>,
    /// Numbers of sites of the cells that its terms were taken for, where they were.
    cells: Vec<usize>,
}

/// The error for a Hamiltonian that is meant for another number of sites.
pub fn unfit(meant: usize, what: &str, sites: usize) -> Error {
    Error::input(format!("a Hamiltonian of {meant} sites for {what} {sites}"))
        .hint("both must have the same sites")
}

/// The error for terms on the same sites that change a conserved number by half of `twice`.
pub(super) fn changes(terms: &[&OperatorTerm], name: &str, twice: i32) -> Error {
    let amount = f64::from(twice) / 2.0;
    let who = match terms {
        [] => "the sum changes".into(),
        [one] => format!("the term `{one}` changes"),
        [first, more @ ..] => {
            format!("the term `{first}`, with {} more on the same sites, changes", more.len())
        }
    };
    Error::input(format!("{who} {name} by {amount}, which the sector conserves"))
        .hint(format!("leave {name} out of the sector, or the term out of the sum"))
}

/// The sites that a sum is meant for, if its maker said so: the same names mean other operators on other sites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeantSites {
    /// The kind of the sites; empty for several kinds.
    pub kind: String,
    /// How many sites there are.
    pub sites: usize,
}

impl OpSum {
    pub fn new() -> OpSum {
        OpSum::default()
    }

    /// Adds a term; one without operators is a multiple of the identity.
    ///
    /// # Errors
    /// When the coefficient is not finite.
    pub fn add(&mut self, coefficient: impl Into<C64>, factors: Vec<(String, usize)>) -> Result<()> {
        let term = OperatorTerm { coefficient: coefficient.into(), factors };
        if !(term.coefficient.re.is_finite() && term.coefficient.im.is_finite()) {
            return Err(Error::input(format!("the coefficient of the term `{term}` is not a finite number"))
                .hint("look for a division by zero"));
        }
        self.terms.push(term);
        Ok(())
    }

    /// Adds the terms of decaying couplings at the distances 1 to `most`, in steps of each.
    ///
    /// # Errors
    /// As of [`OpSum::add`].
    pub fn add_nearest(&mut self, tails: &[ExponentialTail], most: usize) -> Result<()> {
        for tail in tails {
            for k in 1..=most {
                self.add(tail.coefficient * tail.ratio.powu(k as u32), tail.at(k))?;
            }
        }
        Ok(())
    }

    /// Adds a coupling that decays exponentially with the distance.
    ///
    /// # Errors
    /// For numbers that are not finite, a ratio that does not decay, no step.
    pub fn add_tail(&mut self, tail: ExponentialTail) -> Result<()> {
        let finite = |z: C64| z.re.is_finite() && z.im.is_finite();
        if !finite(tail.coefficient) || !finite(tail.ratio) {
            return Err(Error::input(format!("the coupling `{tail}` has a number that is not finite"))
                .hint("look for a division by zero"));
        }
        if tail.ratio.norm() >= 1.0 {
            return Err(Error::input(format!("the coupling `{tail}` does not decay"))
                .hint("the modulus of its ratio is less than 1"));
        }
        if tail.step == 0 {
            return Err(Error::input("a decaying coupling whose partners are 0 sites apart")
                .hint("its step is 1 or more"));
        }
        self.tails.push(tail);
        Ok(())
    }

    /// The adjoint sum: coefficients conjugated, factors in reverse order and adjoint.
    pub fn dagger(&self) -> OpSum {
        let adjoint = |term: &OperatorTerm| OperatorTerm {
            coefficient: term.coefficient.conj(),
            factors: term.factors.iter().rev().map(|(name, site)| (adjoint_name(name), *site)).collect(),
        };
        let turned = |tail: &ExponentialTail| ExponentialTail {
            coefficient: tail.coefficient.conj(),
            ratio: tail.ratio.conj(),
            first: adjoint_name(&tail.first),
            second: adjoint_name(&tail.second),
            turned: !tail.turned,
            ..tail.clone()
        };
        let tails = self.tails.iter().map(turned).collect();
        OpSum { terms: self.terms.iter().map(adjoint).collect(), tails, ..self.clone() }
    }

    /// A hash of all terms in their order, to tell sums apart.
    pub fn fingerprint(&self) -> u64 {
        let mut all = ModelHash::new();
        for OperatorTerm { coefficient, factors } in &self.terms {
            all.add_complex(*coefficient);
            for (name, site) in factors {
                all.add_text(name);
                all.add(*site as u64);
            }
        }
        for tail in &self.tails {
            all.add_complex(tail.coefficient);
            all.add_complex(tail.ratio);
            all.add_text(&tail.first);
            all.add_text(&tail.second);
            all.add((tail.site << 32 | tail.step << 1 | usize::from(tail.turned)) as u64);
        }
        all.finish()
    }

    /// Says which sites it is meant for.
    pub fn meant_for(&mut self, sites: &Sites) {
        let mut kinds = sites.iter().map(|site| site.name());
        let first = kinds.next().unwrap_or_default();
        let kind = if kinds.all(|kind| kind == first) { first.to_string() } else { String::new() };
        self.meant = Some(MeantSites { kind, sites: sites.count() });
    }

    /// Refuses another number of sites than it is meant for; `what` has them, as in "a system of".
    ///
    /// # Errors
    /// When it is meant for another number of sites.
    pub fn fits(&self, what: &str, sites: usize) -> Result<()> {
        match &self.meant {
            Some(meant) if meant.sites != sites => Err(unfit(meant.sites, what, sites)),
            _ => Ok(()),
        }
    }

    /// The sites that it is meant for, if that was said.
    pub fn meant(&self) -> Option<&MeantSites> {
        self.meant.as_ref()
    }

    /// Refuses a cell of another number of sites than its terms were taken for.
    ///
    /// # Errors
    /// When they were taken for a cell of another length.
    pub fn fits_cell(&self, sites: usize) -> Result<()> {
        match self.cells.iter().find(|cell| **cell != sites) {
            Some(cell) => Err(Error::input(format!(
                "the terms that cells of {} repeat, for a cell of {sites}",
                counted(*cell, "site")
            ))
            .hint("take the terms for as many sites as the cell has")),
            None => Ok(()),
        }
    }

    /// What people should know of a sum on a chain of so many sites: that its terms are those of a cell, and sites are
    /// left without any.
    pub fn only_of_a_cell(&self, sites: usize) -> Option<String> {
        let cell = self.cells.first()?;
        let ends = self.repeatable().map(|((factors, _), _)| last(&factors) + 1).max().unwrap_or(0);
        (ends < sites).then(|| {
            format!(
                "this sum has the terms of one cell of {} (`cell`), so on a chain of {sites} sites nothing acts \
                 beyond site {}; the sum of the whole chain is the one that `cell` was called on, or `repeated` makes \
                 it",
                counted(*cell, "site"),
                ends.max(1) - 1
            )
        })
    }

    /// Sets the order of its sites along a chain of blocks; the terms keep their numbers.
    ///
    /// # Errors
    /// When that is not every site from 0 on, once.
    pub fn set_order(&mut self, order: Vec<usize>) -> Result<()> {
        places(&order)?;
        self.order = Some(order);
        Ok(())
    }

    /// The order of its sites along a chain of blocks, if it was set.
    pub fn order(&self) -> Option<&[usize]> {
        self.order.as_deref()
    }

    /// The sum with its sites renumbered by an order: site `order[k]` becomes site `k`.
    ///
    /// # Errors
    /// When the order does not hold every site that a term names.
    pub fn reordered(&self, order: &[usize]) -> Result<OpSum> {
        let place = places(order)?;
        let mut sum = OpSum { meant: self.meant.clone(), ..OpSum::default() };
        for term in self.terms_on(order.len()).iter() {
            let one = |(name, site): &(String, usize)| Some((name.clone(), *place.get(*site)?));
            let factors = term.factors.iter().map(one).collect::<Option<_>>().ok_or_else(|| {
                Error::input(format!(
                    "the term `{term}` is about sites beyond the {} of the order",
                    order.len()
                ))
                .hint("the order lists every site of the sum once")
            })?;
            sum.terms.push(OperatorTerm { coefficient: term.coefficient, factors });
        }
        Ok(sum)
    }

    /// The terms that an infinite chain repeats every `n` sites. This sum is of a longer chain; they are those of its
    /// terms that begin on the first `n` sites. Where the sum has an order of its sites, these are the first of the
    /// order, and the terms count along it.
    ///
    /// # Errors
    /// When the chain is too short to hold them, its terms do not repeat so, or the sum has a constant.
    pub fn cell(&self, n: usize) -> Result<OpSum> {
        if n == 0 {
            return Err(Error::input("a cell of 0 sites").hint("a cell has one site at least"));
        }
        if let Some(order) =
            self.order.as_ref().filter(|order| order.iter().enumerate().any(|(k, i)| k != *i))
        {
            return self.reordered(order)?.cell(n);
        }
        if let Some(term) = self.terms.iter().find(|t| t.factors.is_empty() && t.coefficient != C64::ZERO) {
            return Err(Error::input(format!("a cell of a sum with the constant {}", term.coefficient))
                .hint(
                    "its part per cell is not known: leave it out, and add its part to the energy per site",
                ));
        }
        let all: Vec<(CellKey, C64)> = self.repeatable().collect();
        let reach = self.terms.iter().map(|t| last(&t.factors) - first(&t.factors)).max().unwrap_or(0);
        let known = all.iter().map(|((at, decay), _)| if decay.is_some() { first(at) } else { last(at) });
        let sites = self.meant.as_ref().map_or(known.max().unwrap_or(0) + 1, |m| m.sites);
        let spans = |t: &&OperatorTerm| reach > 1 && last(&t.factors) + 1 - first(&t.factors) == sites;
        if let Some(term) = self.terms.iter().find(spans) {
            return Err(Error::input(format!(
                "the term `{term}` reaches from end to end of the sum's {sites} sites"
            ))
            .hint("a cell is taken from a chain with open ends, longer than its terms reach"));
        }
        if sites < 2 * n || sites < n + reach {
            return Err(Error::input(format!(
                "a sum of {sites} sites is too short to show what a cell of {n} repeats"
            ))
            .hint(format!("make it for {} sites or more, with open ends", (2 * n).max(n + reach))));
        }
        // What each cell has, as far as the chain's end does not cut it off there.
        let mut cells: Vec<BTreeMap<CellKey, C64>> = vec![BTreeMap::new(); sites.div_ceil(n)];
        for ((factors, decay), coefficient) in all {
            let at = first(&factors) / n;
            let moved = factors.into_iter().map(|(name, site)| (name, site - at * n)).collect();
            if let Some(cell) = cells.get_mut(at) {
                *cell.entry((moved, decay)).or_insert(C64::ZERO) += coefficient;
            }
        }
        let cells = &cells;
        for (at, other) in cells.iter().enumerate().skip(1) {
            let inside = |key: &CellKey| last(&key.0) + at * n < sites;
            let differs = |x: &BTreeMap<CellKey, C64>, y: &BTreeMap<CellKey, C64>| {
                x.iter()
                    .filter(|(key, _)| inside(key))
                    .find(|(key, z)| (*z - y.get(key).copied().unwrap_or_default()).norm() > 1e-12 * z.norm())
                    .map(|(key, z)| OperatorTerm { coefficient: *z, factors: key.0.clone() })
            };
            if let Some(term) = differs(&cells[0], other).or_else(|| differs(other, &cells[0])) {
                return Err(Error::input(format!("the term `{term}` does not repeat every {n} sites"))
                    .hint("a chain with open ends repeats; a longer cell may be needed"));
            }
        }
        let own = |t: &&OperatorTerm| !t.factors.is_empty() && first(&t.factors) < n;
        let terms = self.terms.iter().filter(own).cloned().collect();
        let tails = self.tails.iter().filter(|t| t.site < n).cloned().collect();
        Ok(OpSum { terms, tails, cells: vec![n], ..OpSum::default() })
    }

    /// Its terms, and of its decaying ones the first pairs.
    fn repeatable(&self) -> impl Iterator<Item = (CellKey, C64)> {
        let terms = self.terms.iter().filter(|t| !t.factors.is_empty());
        let terms = terms.map(|t| ((t.factors.clone(), None), t.coefficient));
        let ratio = |t: &ExponentialTail| [t.ratio.re.to_bits(), t.ratio.im.to_bits()];
        terms.chain(self.tails.iter().map(move |t| ((t.at(1), Some(ratio(t))), t.coefficient)))
    }

    /// The terms of several cells of `n` sites in a row as those of one, where each cell repeats these.
    pub fn repeated(&self, n: usize, times: usize) -> OpSum {
        let mut all = OpSum { cells: vec![n.saturating_mul(times)], ..OpSum::default() };
        for cell in 0..times {
            let term = |t: &OperatorTerm| OperatorTerm {
                coefficient: t.coefficient,
                factors: t.factors.iter().map(|(name, site)| (name.clone(), site + cell * n)).collect(),
            };
            all.terms.extend(self.terms.iter().map(term));
            all.tails
                .extend(self.tails.iter().map(|t| ExponentialTail { site: t.site + cell * n, ..t.clone() }));
        }
        all
    }

    /// The terms in the order of their adding, without the couplings that decay.
    pub fn terms(&self) -> &[OperatorTerm] {
        &self.terms
    }

    /// The couplings that decay exponentially.
    pub fn tails(&self) -> &[ExponentialTail] {
        &self.tails
    }

    /// How far two sums on a chain of so many sites are apart: the sum of the moduli by which the coefficients of each
    /// product differ.
    pub fn apart(&self, other: &OpSum, sites: usize) -> f64 {
        let (mine, others) = (self.terms_on(sites), other.terms_on(sites));
        let same = |(a, b): (&OperatorTerm, &OperatorTerm)| a.factors == b.factors;
        if mine.len() == others.len() && mine.iter().zip(others.iter()).all(same) {
            return mine.iter().zip(others.iter()).map(|(a, b)| (a.coefficient - b.coefficient).norm()).sum();
        }
        let mut differences: BTreeMap<Vec<(String, usize)>, C64> = BTreeMap::new();
        for (terms, sign) in [(mine, 1.0), (others, -1.0)] {
            for term in terms.iter() {
                *differences.entry(term.factors.clone()).or_default() += term.coefficient * sign;
            }
        }
        differences.values().map(|difference| difference.norm()).sum()
    }

    /// All terms on a chain of so many sites, where a decaying coupling ends with the chain.
    pub fn terms_on(&self, sites: usize) -> Cow<'_, [OperatorTerm]> {
        if self.tails.is_empty() {
            return Cow::Borrowed(&self.terms);
        }
        Cow::Owned(self.terms.iter().cloned().chain(self.tails.iter().flat_map(|t| t.on(sites))).collect())
    }
}

/// Where each site stands in an order.
///
/// # Errors
/// When the order does not list every site from 0 on, once.
pub fn places(order: &[usize]) -> Result<Vec<usize>> {
    let mut place = vec![usize::MAX; order.len()];
    for (k, &site) in order.iter().enumerate() {
        match place.get_mut(site) {
            Some(free) if *free == usize::MAX => *free = k,
            _ => {
                let n = order.len();
                return Err(Error::input(format!(
                    "an order that does not list every site from 0 to {} once",
                    n.max(1) - 1
                ))
                .hint("it lists the sites as they stand in the chain"));
            }
        }
    }
    Ok(place)
}

impl From<C64> for OpSum {
    /// A multiple of the identity.
    fn from(coefficient: C64) -> OpSum {
        OpSum { terms: vec![OperatorTerm { coefficient, factors: Vec::new() }], ..OpSum::default() }
    }
}

impl Add for OpSum {
    type Output = OpSum;

    /// The sum is meant for the more restricted sites of the two, those without double occupation.
    fn add(mut self, other: OpSum) -> OpSum {
        self.terms.extend(other.terms);
        self.tails.extend(other.tails);
        self.meant = match (self.meant, other.meant) {
            (Some(_), Some(b)) if b.kind == "tJ" => Some(b),
            (a, b) => a.or(b),
        };
        self.order = self.order.or(other.order);
        self.cells.extend(other.cells);
        self.cells.dedup();
        self
    }
}

impl Mul<C64> for OpSum {
    type Output = OpSum;

    fn mul(mut self, factor: C64) -> OpSum {
        self.terms.iter_mut().for_each(|term| term.coefficient *= factor);
        self.tails.iter_mut().for_each(|tail| tail.coefficient *= factor);
        self
    }
}

impl fmt::Display for OperatorTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let z = self.coefficient;
        f.write_str(&if z.im == 0.0 { real(z.re, 10) } else { format!("({})", complex(z, 10)) })?;
        self.factors.iter().try_for_each(|(name, site)| write!(f, " {name}({site})"))
    }
}

impl fmt::Display for ExponentialTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |z: C64| if z.im == 0.0 { real(z.re, 10) } else { format!("({})", complex(z, 10)) };
        write!(
            f,
            "{} {}^k {}({}) {}({} + {}k)",
            number(self.coefficient),
            number(self.ratio),
            self.first,
            self.site,
            self.second,
            self.site,
            if self.step == 1 { String::new() } else { format!("{} ", self.step) }
        )
    }
}

impl fmt::Display for OpSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 6;
        let n = self.terms.len() + self.tails.len();
        write!(f, "OpSum of {n} term{}", if n == 1 { "" } else { "s" })?;
        let all = self.terms.iter().map(|t| t.to_string()).chain(self.tails.iter().map(|t| t.to_string()));
        for (k, term) in all.take(SHOWN).enumerate() {
            write!(f, "{}{term}", if k == 0 { ": " } else { " + " })?;
        }
        if n > SHOWN { f.write_str(" + ...") } else { Ok(()) }
    }
}
