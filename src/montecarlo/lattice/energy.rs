//! The local energy of an operator sum for electrons: every term becomes hops of electrons between sites.
//!
//! A term is written with creation and annihilation operators, those of spin up to the left, those of each spin ordered
//! to pairs `c^+_a c_b`, which move an electron from b to a without a sign.

use super::state::{ElectronHop, LatticeState, OccupiedSites};
use super::walkers::LatticeWalkers;
use crate::error::{Error, Result};
use crate::manybody::{OpSum, unfit};
use crate::montecarlo::amplitude::Amplitude;
use crate::number::C64;

/// `c^+` or `c` of a spin on a site.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ladder {
    create: bool,
    down: bool,
    site: usize,
}

/// A product of hops of electrons with spin up and with spin down, the last acting first.
#[derive(Debug, Clone, PartialEq)]
struct HopProduct {
    coefficient: C64,
    /// The hops of each spin, as `(to, from)`.
    hops: [Vec<(usize, usize)>; 2],
}

/// An operator sum, ready for local energies.
#[derive(Debug, Clone)]
pub struct LocalSum {
    terms: Vec<HopProduct>,
    sites: usize,
}

/// Signed products of hops.
type HopProducts = Vec<(f64, Vec<(usize, usize)>)>;

/// A local operator as a sum of products of `c^+` (true) and `c`, with spin down (true) or up.
fn local(name: &str) -> Option<Vec<(C64, Vec<(bool, bool)>)>> {
    if let Some(name) = name.strip_suffix('†') {
        let turned = |(z, ops): (C64, Vec<(bool, bool)>)| {
            (z.conj(), ops.into_iter().rev().map(|(create, down)| (!create, down)).collect())
        };
        return local(name).map(|products| products.into_iter().map(turned).collect());
    }
    let (r, i) = (|x: f64| C64::new(x, 0.0), |x: f64| C64::new(0.0, x));
    let (up, dn) = (vec![(true, false), (false, false)], vec![(true, true), (false, true)]);
    let both = || [up.clone(), dn.clone()].concat();
    let (raise, lower) = (vec![(true, false), (false, true)], vec![(true, true), (false, false)]);
    Some(match name {
        "Id" => vec![(r(1.0), vec![])],
        "Cup" | "C" => vec![(r(1.0), vec![(false, false)])],
        "Cdagup" | "Cdag" => vec![(r(1.0), vec![(true, false)])],
        "Cdn" => vec![(r(1.0), vec![(false, true)])],
        "Cdagdn" => vec![(r(1.0), vec![(true, true)])],
        "Nup" | "N" => vec![(r(1.0), up)],
        "Ndn" => vec![(r(1.0), dn)],
        "Ntot" => vec![(r(1.0), up), (r(1.0), dn)],
        "Nupdn" => vec![(r(1.0), both())],
        "Sz" => vec![(r(0.5), up), (r(-0.5), dn)],
        "Sz2" => vec![(r(0.25), up.clone()), (r(0.25), dn.clone()), (r(-0.5), both())],
        "Z" => vec![(r(1.0), up), (r(-1.0), dn)],
        "S+" => vec![(r(1.0), raise)],
        "S-" => vec![(r(1.0), lower)],
        "Sx" => vec![(r(0.5), raise), (r(0.5), lower)],
        "Sy" => vec![(i(-0.5), raise), (i(0.5), lower)],
        "X" => vec![(r(1.0), raise), (r(1.0), lower)],
        _ => return None,
    })
}

/// Products of `c^+`, `c` of one spin as sums of products of hops.
fn pair(sequence: &[Ladder]) -> Option<HopProducts> {
    let Some(last) = sequence.last() else { return Some(vec![(1.0, Vec::new())]) };
    let mut rest = sequence[..sequence.len() - 1].to_vec();
    // The partner is anticommuted to the place beside the last. Each operator that it passes on its own site adds a
    // term without the two.
    let at = rest.iter().rposition(|o| o.create != last.create)?;
    let partner = rest.remove(at);
    let mut found: HopProducts = Vec::new();
    let mut sign = 1.0;
    for k in at..rest.len() {
        if rest[k].site == partner.site {
            let mut without = rest.clone();
            without.remove(k);
            without.push(*last);
            found.extend(pair(&without)?.into_iter().map(|(s, hops)| (sign * s, hops)));
        }
        sign = -sign;
    }
    let (to, from) = if last.create { (last.site, partner.site) } else { (partner.site, last.site) };
    if last.create {
        // c_b c^+_a = delta_ab - c^+_a c_b.
        if to == from {
            found.extend(pair(&rest)?.into_iter().map(|(s, hops)| (sign * s, hops)));
        }
        sign = -sign;
    }
    found.extend(pair(&rest)?.into_iter().map(|(s, mut hops)| {
        hops.push((to, from));
        (sign * s, hops)
    }));
    Some(found)
}

/// What a Hamiltonian's sites are compared with, in words.
const WAVE_FUNCTION: &str = "a wave function on";

/// Refuses a sum that is not meant for electrons as this state has them.
fn understood<S: Amplitude>(sum: &OpSum, state: &LatticeState<S>) -> Result<()> {
    let (up, down) = state.electrons();
    sum.fits(WAVE_FUNCTION, state.sites())?;
    if let Some(meant) = sum.meant() {
        if meant.kind.starts_with("S=") && meant.kind != "S=1/2" {
            return Err(Error::input(format!("a Hamiltonian of spins `{}` for electrons", meant.kind))
                .hint("an electron is a spin 1/2"));
        }
        let doubly = state.gutzwiller() != 0.0 && up > 0 && down > 0;
        if meant.kind == "tJ" && doubly {
            return Err(Error::input(
                "a t-J Hamiltonian for a wave function that allows two electrons on a site",
            )
            .hint("project them out with `gutzwiller: 0.0`"));
        }
    }
    // These names have no spin: an electron with spin down would not be counted.
    let spinless = |name: &&String| matches!(name.as_str(), "C" | "Cdag" | "N");
    let terms = sum.terms_on(state.sites());
    let mut names = terms.iter().flat_map(|term| term.factors.iter().map(|(name, _)| name));
    match names.find(spinless).filter(|_| down > 0) {
        Some(name) => Err(Error::input(format!(
            "the operator `{name}` of spinless fermions for electrons of which some have spin down"
        ))
        .hint("take electrons of spin up alone, or Cup, Cdn, Nup, Ndn, Ntot and their kin, as the Hubbard model does")),
        None => Ok(()),
    }
}

impl HopProduct {
    /// Where the electrons hop, those that end where they began left out; false where the term gives zero.
    fn acts<S>(&self, occupied: &OccupiedSites<S>, hops: &mut Vec<ElectronHop>) -> bool {
        hops.clear();
        for spin in [0, 1] {
            for &(to, from) in self.hops[spin].iter().rev() {
                // An electron that has hopped in this term is at its new site.
                let now = |site: usize| {
                    let moved = hops.iter().find(|h| h.0 == spin && h.2 == site).map(|h| h.1);
                    moved.or_else(|| {
                        occupied.at(spin, site).filter(|e| !hops.iter().any(|h| h.0 == spin && h.1 == *e))
                    })
                };
                let Some(electron) = now(from) else { return false };
                if to == from {
                    continue;
                }
                if now(to).is_some() {
                    return false;
                }
                match hops.iter_mut().find(|h| h.0 == spin && h.1 == electron) {
                    Some(hop) => hop.2 = to,
                    None => hops.push((spin, electron, to)),
                }
            }
        }
        hops.retain(|&(spin, electron, to)| occupied.places[spin][electron] as usize != to);
        true
    }
}

impl LocalSum {
    /// A sum for the electrons of a state.
    ///
    /// # Errors
    /// As [`LocalSum::new`]; when it is meant for other sites, for spinless fermions where there are two spins, or for
    /// electrons that never share a site where these may.
    pub fn of<S: Amplitude>(sum: &OpSum, state: &LatticeState<S>) -> Result<LocalSum> {
        understood(sum, state)?;
        LocalSum::new(sum, state.sites())
    }

    /// The first site that no term names, if there is one.
    pub fn untouched(sum: &OpSum, sites: usize) -> Option<usize> {
        let mut known = vec![false; sites];
        let terms = sum.terms_on(sites);
        let factors = terms.iter().flat_map(|term| &term.factors);
        factors.for_each(|(_, site)| known.iter_mut().skip(*site).take(1).for_each(|k| *k = true));
        known.iter().position(|known| !known)
    }

    /// A sum on `sites` sites of electrons, of spins (which are electrons one a site), or of spinless fermions (which
    /// have spin up).
    ///
    /// # Errors
    /// For operators that electrons do not have, sites that do not exist, terms that change the number of electrons of
    /// a spin.
    pub fn new(sum: &OpSum, sites: usize) -> Result<LocalSum> {
        let mut terms: Vec<HopProduct> = Vec::new();
        let mut stray: Vec<(Vec<Ladder>, C64, String)> = Vec::new();
        let given = sum.terms_on(sites);
        for term in given.iter() {
            let mut products = vec![(term.coefficient, Vec::<Ladder>::new())];
            for (name, site) in &term.factors {
                if *site >= sites {
                    return Err(Error::input(format!(
                        "site {site} of the Hamiltonian on a lattice of {sites} sites"
                    ))
                    .hint("wave function and Hamiltonian have the same sites"));
                }
                let local = local(name).ok_or_else(|| {
                    Error::input(format!("no operator `{name}` of electrons in a local energy"))
                        .hint("there are Cup, Cdagup, Cdn, Cdagdn, Nup, Ndn, Ntot, Nupdn, Sz, S+, S-, Sx, Sy")
                })?;
                products = products
                    .iter()
                    .flat_map(|(c, ladders)| {
                        local.iter().map(move |(d, ops)| {
                            let own = ops.iter().map(|&(create, down)| Ladder { create, down, site: *site });
                            (c * d, ladders.iter().copied().chain(own).collect())
                        })
                    })
                    .collect();
            }
            for (coefficient, ladders) in products {
                // <x|T|x'> is needed for given x: the adjoint acts on x.
                let adjoint: Vec<Ladder> =
                    ladders.iter().rev().map(|o| Ladder { create: !o.create, ..*o }).collect();
                let mut sign = 1.0;
                for (k, o) in adjoint.iter().enumerate() {
                    if !o.down && adjoint[..k].iter().filter(|p| p.down).count() % 2 == 1 {
                        sign = -sign;
                    }
                }
                let of = |down: bool| -> Vec<Ladder> {
                    adjoint.iter().copied().filter(|o| o.down == down).collect()
                };
                let (Some(ups), Some(downs)) = (pair(&of(false)), pair(&of(true))) else {
                    // Terms like Sx Sx + Sy Sy together conserve what each of them alone does not.
                    match stray.iter_mut().find(|s| s.0 == ladders) {
                        Some(known) => known.1 += coefficient,
                        None => stray.push((ladders, coefficient, term.to_string())),
                    }
                    continue;
                };
                for (a, up) in &ups {
                    for (b, down) in &downs {
                        // Conjugated twice: for the adjoint, and for the matrix element.
                        let coefficient = coefficient * (sign * a * b);
                        terms.push(HopProduct { coefficient, hops: [up.clone(), down.clone()] });
                    }
                }
            }
        }
        let largest = given.iter().map(|t| t.coefficient.norm()).fold(0.0, f64::max);
        if let Some((_, _, term)) = stray.iter().find(|s| s.1.norm() > 1e-13 * largest) {
            return Err(Error::input(format!("the term `{term}` changes the number of electrons of a spin"))
                .hint("a walker keeps its electrons; leave such terms out"));
        }
        // Equal terms are merged, and those that cancel are dropped.
        let mut merged: Vec<HopProduct> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for term in terms {
            match places.entry(term.hops.clone()) {
                std::collections::hash_map::Entry::Occupied(at) => {
                    let at: &usize = at.get();
                    merged[*at].coefficient += term.coefficient;
                }
                std::collections::hash_map::Entry::Vacant(place) => {
                    place.insert(merged.len());
                    merged.push(term);
                }
            }
        }
        merged.retain(|t| t.coefficient.norm() > 0.0);
        Ok(LocalSum { terms: merged, sites })
    }

    /// `(H Psi)(x) / Psi(x)`.
    pub fn local<S: Amplitude>(&self, state: &LatticeState<S>, occupied: &OccupiedSites<S>) -> C64 {
        let mut sum = C64::ZERO;
        let mut hops: Vec<ElectronHop> = Vec::new();
        for term in &self.terms {
            if !term.acts(occupied, &mut hops) {
                continue;
            }
            let ratio = if hops.is_empty() { C64::ONE } else { state.ratio(occupied, &hops).to_c64() };
            sum += term.coefficient * ratio;
        }
        sum
    }

    /// The hops of every term that moves electrons from where they are.
    pub(super) fn moves<S>(&self, occupied: &OccupiedSites<S>) -> Vec<Vec<ElectronHop>> {
        let mut hops: Vec<ElectronHop> = Vec::new();
        let moving =
            |term: &HopProduct| (term.acts(occupied, &mut hops) && !hops.is_empty()).then(|| hops.clone());
        self.terms.iter().filter_map(moving).collect()
    }

    /// The largest coefficient of a term.
    pub(super) fn largest(&self) -> f64 {
        self.terms.iter().map(|term| term.coefficient.norm()).fold(0.0, f64::max)
    }

    /// Refuses walkers of other sites.
    pub(super) fn on_sites_of<S: Amplitude>(&self, walkers: &LatticeWalkers<S>) -> Result<()> {
        let sites = walkers.psi().sites();
        if sites == self.sites { Ok(()) } else { Err(unfit(self.sites, WAVE_FUNCTION, sites)) }
    }

    /// The local values of all walkers, whose inverse matrices are computed anew first.
    ///
    /// # Errors
    /// When the lattice is not that of the wave function, or a walker sits where it vanishes.
    pub fn local_values<S: Amplitude>(&self, walkers: &mut LatticeWalkers<S>) -> Result<Vec<C64>> {
        self.on_sites_of(walkers)?;
        walkers.refresh()?;
        let state = walkers.psi().clone();
        let parts = walkers.each(|_, w| {
            let value = self.local(&state, w);
            Ok([value.re, value.im])
        })?;
        Ok(parts.into_iter().map(|[re, im]| C64::new(re, im)).collect())
    }
}
