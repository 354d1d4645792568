//! Sums of products of local operators: a many-body Hamiltonian as data.

use std::fmt;
use std::ops::{Add, Mul};

use super::Sites;
use super::site::adjoint_name;
use crate::error::{Error, Result};
use crate::number::C64;
use crate::number::format::{complex, real};

/// A coefficient times a product of operators, the rightmost acting first.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    pub coefficient: C64,
    /// Names of the operators, and their sites.
    pub factors: Vec<(String, usize)>,
}

/// A sum of terms. Nothing is known of the sites yet: names are checked when the sum meets them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpSum {
    terms: Vec<Term>,
    meant: Option<Meant>,
    order: Option<Vec<usize>>,
}

/// The error for a Hamiltonian that is meant for another number of sites.
pub fn unfit(meant: usize, what: &str, sites: usize) -> Error {
    Error::input(format!("a Hamiltonian of {meant} sites for {what} {sites}"))
        .hint("both must have the same sites")
}

/// The error for terms on the same sites that change a conserved number by half of `twice`.
pub(super) fn changes(terms: &[&Term], name: &str, twice: i32) -> Error {
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
pub struct Meant {
    /// Their kind; empty for several kinds.
    pub kind: String,
    /// How many.
    pub sites: usize,
}

impl OpSum {
    /// An empty sum.
    pub fn new() -> OpSum {
        OpSum::default()
    }

    /// Adds a term; one without operators is a multiple of the identity.
    ///
    /// # Errors
    /// When the coefficient is not finite.
    pub fn add(&mut self, coefficient: impl Into<C64>, factors: Vec<(String, usize)>) -> Result<()> {
        let term = Term { coefficient: coefficient.into(), factors };
        if !(term.coefficient.re.is_finite() && term.coefficient.im.is_finite()) {
            return Err(Error::input(format!("the coefficient of the term `{term}` is not a finite number")));
        }
        self.terms.push(term);
        Ok(())
    }

    /// The adjoint sum: coefficients conjugated, factors in reverse order and adjoint.
    pub fn dagger(&self) -> OpSum {
        let adjoint = |term: &Term| Term {
            coefficient: term.coefficient.conj(),
            factors: term.factors.iter().rev().map(|(name, site)| (adjoint_name(name), *site)).collect(),
        };
        OpSum { terms: self.terms.iter().map(adjoint).collect(), ..self.clone() }
    }

    /// Says which sites it is meant for.
    pub fn meant_for(&mut self, sites: &Sites) {
        let mut kinds = sites.iter().map(|site| site.name());
        let first = kinds.next().unwrap_or_default();
        let kind = if kinds.all(|kind| kind == first) { first.to_string() } else { String::new() };
        self.meant = Some(Meant { kind, sites: sites.count() });
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
    pub fn meant(&self) -> Option<&Meant> {
        self.meant.as_ref()
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
        let mut sum =
            OpSum { terms: Vec::with_capacity(self.terms.len()), meant: self.meant.clone(), order: None };
        for term in &self.terms {
            let one = |(name, site): &(String, usize)| Some((name.clone(), *place.get(*site)?));
            let factors = term.factors.iter().map(one).collect::<Option<_>>().ok_or_else(|| {
                Error::input(format!(
                    "the term `{term}` is about sites beyond the {} of the order",
                    order.len()
                ))
            })?;
            sum.terms.push(Term { coefficient: term.coefficient, factors });
        }
        Ok(sum)
    }

    /// The terms in the order of their adding.
    pub fn terms(&self) -> &[Term] {
        &self.terms
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
        OpSum { terms: vec![Term { coefficient, factors: Vec::new() }], ..OpSum::default() }
    }
}

impl Add for OpSum {
    type Output = OpSum;

    /// The sum is meant for the more restricted sites of the two, those without double occupation.
    fn add(mut self, other: OpSum) -> OpSum {
        self.terms.extend(other.terms);
        self.meant = match (self.meant, other.meant) {
            (Some(_), Some(b)) if b.kind == "tJ" => Some(b),
            (a, b) => a.or(b),
        };
        self.order = self.order.or(other.order);
        self
    }
}

impl Mul<C64> for OpSum {
    type Output = OpSum;

    fn mul(mut self, factor: C64) -> OpSum {
        self.terms.iter_mut().for_each(|term| term.coefficient *= factor);
        self
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let z = self.coefficient;
        f.write_str(&if z.im == 0.0 { real(z.re, 10) } else { format!("({})", complex(z, 10)) })?;
        self.factors.iter().try_for_each(|(name, site)| write!(f, " {name}({site})"))
    }
}

impl fmt::Display for OpSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 6;
        let n = self.terms.len();
        write!(f, "OpSum of {n} term{}", if n == 1 { "" } else { "s" })?;
        for (k, term) in self.terms.iter().take(SHOWN).enumerate() {
            write!(f, "{}{term}", if k == 0 { ": " } else { " + " })?;
        }
        if n > SHOWN { f.write_str(" + ...") } else { Ok(()) }
    }
}
