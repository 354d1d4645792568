//! A row of sites, of one kind or several.

use std::fmt;
use std::sync::Arc;

use super::site::{Site, twice};
use crate::error::{Error, Result, nearest};

/// The sites that a many-body model lives on. Copies are cheap.
#[derive(Debug, Clone)]
pub struct Sites {
    sites: Arc<Vec<Arc<Site>>>,
    charges: Arc<Vec<String>>,
}

impl Sites {
    /// From the sites in order. Where bosons and fermions meet, N stands for two numbers: there it becomes Nb and Nf.
    ///
    /// # Errors
    /// When there are none.
    pub fn new(sites: Vec<Arc<Site>>) -> Result<Sites> {
        if sites.is_empty() {
            return Err(Error::input("a chain without sites").hint("a chain has one site at least"));
        }
        let sites = told_apart(sites);
        let mut charges: Vec<String> = Vec::new();
        for charge in sites.iter().flat_map(|site| site.charges()) {
            if !charges.contains(&charge.name) {
                charges.push(charge.name.clone());
            }
        }
        let sites = Sites { sites: Arc::new(sites), charges: Arc::new(charges) };
        for charge in sites.iter().flat_map(|site| site.charges()) {
            if charge.modulus != sites.modulus(&charge.name) {
                let name = &charge.name;
                return Err(Error::input(format!(
                    "the charge `{name}` counts modulo different numbers on these sites"
                ))
                .hint("count it modulo one number on all of them, or give it two names"));
            }
        }
        Ok(sites)
    }

    /// `n` sites of one kind.
    ///
    /// # Errors
    /// When `n` is 0, or more than a million.
    pub fn uniform(site: Site, n: usize) -> Result<Sites> {
        if n > 1_000_000 {
            return Err(Error::input(format!("a chain of {n} sites is too long"))
                .hint("a chain has a million sites at most"));
        }
        let site = Arc::new(site);
        Sites::new(vec![site; n])
    }

    /// The sites in another order: site `order[k]` at place `k`.
    ///
    /// # Errors
    /// When the order does not list every site once.
    pub fn reordered(&self, order: &[usize]) -> Result<Sites> {
        if order.len() != self.count() {
            return Err(Error::input(format!("an order of {} sites for {self}", order.len()))
                .hint("an order names each site once"));
        }
        super::opsum::places(order)?;
        Sites::new(order.iter().map(|&i| self.sites[i].clone()).collect())
    }

    /// Several copies of all sites in a row.
    ///
    /// # Errors
    /// For none, or more than a million sites.
    pub fn repeated(&self, times: usize) -> Result<Sites> {
        if times.saturating_mul(self.count()) > 1_000_000 {
            return Err(Error::input(format!("{times} times {self} are too many")));
        }
        Sites::new((0..times).flat_map(|_| self.iter().cloned()).collect())
    }

    /// Every site and a copy of it as one site.
    ///
    /// # Errors
    /// When the pairs of states of a site are too many.
    pub fn doubled(&self) -> Result<Sites> {
        let mut known: Vec<(&Arc<Site>, Arc<Site>)> = Vec::new();
        let mut all = Vec::with_capacity(self.count());
        for site in self.iter() {
            let double = match known.iter().find(|k| Arc::ptr_eq(k.0, site)) {
                Some((_, double)) => double.clone(),
                None => {
                    let double = Arc::new(site.doubled(Sites::difference)?);
                    known.push((site, double.clone()));
                    double
                }
            };
            all.push(double);
        }
        Sites::new(all)
    }

    /// The name of the difference of a charge between doubled sites and their copies.
    pub fn difference(charge: &str) -> String {
        format!("{charge} less copy")
    }

    pub fn count(&self) -> usize {
        self.sites.len()
    }

    /// Site number `i`.
    ///
    /// # Errors
    /// When there is no such site.
    pub fn site(&self, i: usize) -> Result<&Arc<Site>> {
        self.sites.get(i).ok_or_else(|| self.outside(i))
    }

    /// The numbers of local states that are named, one for each site.
    ///
    /// # Errors
    /// When there is not one name a site, or a site has no such state.
    pub fn states<N: AsRef<str>>(&self, names: &[N]) -> Result<Vec<usize>> {
        self.need_each(names.len())?;
        self.iter().zip(names).map(|(site, name)| site.state(name.as_ref())).collect()
    }

    /// Refuses another number of local states than one for each site.
    ///
    /// # Errors
    /// For such a number.
    pub fn need_each(&self, states: usize) -> Result<()> {
        if states == self.count() {
            return Ok(());
        }
        Err(Error::input(format!("{states} local states for {self}"))
            .hint("a product state has one for each site"))
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Site>> {
        self.sites.iter()
    }

    /// Names of the charges that some site has.
    pub fn charges(&self) -> &[String] {
        &self.charges
    }

    /// Twice the charge of every state of a site; zero where the site does not have it.
    pub(super) fn twice(&self, site: usize, charge: &str) -> Vec<i32> {
        let site = &self.sites[site];
        let own = site.charges().iter().find(|c| c.name == charge);
        own.map_or_else(|| vec![0; site.dim()], |c| c.twice.clone())
    }

    /// Twice the n of a charge of Z_n; 0 for one of U(1).
    pub(super) fn modulus(&self, charge: &str) -> i32 {
        let of = |site: &Arc<Site>| site.charges().iter().find(|c| c.name == charge).map(|c| c.modulus);
        self.sites.iter().find_map(of).unwrap_or(0)
    }

    /// Twice the values of named charges, checked.
    ///
    /// # Errors
    /// For a charge that no site has, or a value that is no multiple of 1/2.
    pub fn target(&self, sector: &[(String, f64)]) -> Result<Vec<(String, i32)>> {
        let known = |name: &String| -> Result<()> {
            if self.charges.contains(name) {
                return Ok(());
            }
            let error = Error::input(format!("no conserved number `{name}` on {self}"));
            if name == NUMBER && self.charges.iter().any(|c| c == BOSONS) {
                return Err(
                    error.hint(format!("{FERMIONS} counts the fermions here and {BOSONS} the bosons"))
                );
            }
            let all = self.charges.join(", ");
            Err(match nearest(name, self.charges.iter().map(String::as_str)) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None if all.is_empty() => error.hint("these sites have none; leave the sector out"),
                None => error.hint(format!("a sector can name {all}")),
            })
        };
        sector
            .iter()
            .map(|(name, q)| {
                let twice = known(name).and_then(|()| twice(name, *q))?;
                let modulus = self.modulus(name);
                Ok((name.clone(), if modulus > 0 { twice.rem_euclid(modulus) } else { twice }))
            })
            .collect()
    }

    /// The error for a site beyond the last.
    pub(super) fn outside(&self, i: usize) -> Error {
        Error::input(format!("site {i} outside a chain of {} sites", self.count()))
            .hint(format!("sites are numbered from 0 to {}", self.count() - 1))
    }
}

/// The name of the number of particles, and the names where fermions and bosons meet.
const NUMBER: &str = "N";
const FERMIONS: &str = "Nf";
const BOSONS: &str = "Nb";

/// The sites, their numbers of particles renamed where some are bosons and some are not.
fn told_apart(sites: Vec<Arc<Site>>) -> Vec<Arc<Site>> {
    let counts = |site: &&Arc<Site>| site.charges().iter().any(|c| c.name == NUMBER);
    let fermions = |site: &Arc<Site>| (0..site.dim()).any(|s| site.is_odd(s));
    let mixed = sites.iter().filter(counts).any(|s| s.is_boson())
        && sites.iter().filter(counts).any(|s| fermions(s) && !s.is_boson());
    if !mixed {
        return sites;
    }
    // Places that share a site go on sharing it.
    let mut known: Vec<(Arc<Site>, Arc<Site>)> = Vec::new();
    let mut renamed = Vec::with_capacity(sites.len());
    for site in sites {
        let new = match known.iter().find(|k| Arc::ptr_eq(&k.0, &site)) {
            Some((_, new)) => new.clone(),
            None => {
                let name = if site.is_boson() { BOSONS } else { FERMIONS };
                let new = Arc::new(site.with_charge_renamed(NUMBER, name));
                known.push((site, new.clone()));
                new
            }
        };
        renamed.push(new);
    }
    renamed
}

impl fmt::Display for Sites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.sites[0];
        let kind = if self.sites.iter().all(|s| s.name() == first.name()) { first.name() } else { "mixed" };
        write!(f, "{} {kind} site{}", self.count(), if self.count() == 1 { "" } else { "s" })
    }
}
