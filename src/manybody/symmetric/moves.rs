//! The action of a symmetry on product states: it maps sites to sites, and the states of a site to states times a
//! phase.

use super::super::product::SiteProduct;
use super::super::site::LocalOperator;
use super::super::sites::Sites;
use crate::error::{Error, Result};
use crate::number::C64;

/// Phases closer than this are the same.
const SAME: f64 = 1e-9;

/// A map of product states onto product states times phases. Fermions that pass one another change the sign besides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Move {
    /// The site that each one goes to.
    pub to: Vec<u16>,
    /// What becomes of the states of each site; none where they stay what they are.
    pub local: Option<Vec<LocalMap>>,
}

/// What becomes of each state of a site, and its factor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LocalMap {
    pub states: Vec<u8>,
    pub phases: Vec<C64>,
}

/// The numbers by which moves are told apart: places, states, rounded phases.
pub(super) type MoveKey = (Vec<u16>, Vec<u8>, Vec<(i32, i32)>);

impl LocalMap {
    /// The move that leaves all states of a site as they are.
    pub fn stay(dim: usize) -> LocalMap {
        LocalMap { states: (0..dim).map(|s| s as u8).collect(), phases: vec![C64::ONE; dim] }
    }

    fn turn(&mut self, phase: C64) {
        self.phases.iter_mut().for_each(|z| *z = unit(*z * phase));
    }

    fn stays(&self) -> bool {
        self.states.iter().enumerate().all(|(k, &s)| k == s as usize)
            && self.phases.iter().all(|z| (z - C64::ONE).norm() < SAME)
    }
}

/// A number of modulus one, exact where it is 1, -1, i or -i.
pub(super) fn unit(z: C64) -> C64 {
    let near = |x: f64| if (x - x.round()).abs() < 1e-12 { x.round() + 0.0 } else { x };
    C64::new(near(z.re), near(z.im))
}

impl Move {
    /// The move that leaves all sites where they are.
    pub fn stay(sites: usize) -> Move {
        Move { to: (0..sites).map(|i| i as u16).collect(), local: None }
    }

    /// From where the sites go and what becomes of their states. A phase that all states of a site share multiplies the
    /// whole product state, so it does not matter which site has it: the first one takes them all. Equal maps are then
    /// equal moves.
    pub fn new(to: Vec<u16>, mut local: Vec<LocalMap>) -> Move {
        let mut whole = C64::ONE;
        for site in local.iter_mut().filter(|site| site.phases[0] != C64::ONE) {
            whole = unit(whole * site.phases[0]);
            site.turn(site.phases[0].conj());
        }
        if whole != C64::ONE {
            local[0].turn(whole);
        }
        let local = (!local.iter().all(LocalMap::stays)).then_some(local);
        Move { to, local }
    }

    /// This move, then another.
    pub fn then(&self, next: &Move, dims: &[usize]) -> Move {
        let to: Vec<u16> = self.to.iter().map(|&j| next.to[j as usize]).collect();
        if self.local.is_none() && next.local.is_none() {
            return Move { to, local: None };
        }
        let one = |i: usize| {
            let first = self.at(i, dims[i]);
            let second = next.at(self.to[i] as usize, dims[i]);
            let states = first.states.iter().map(|&s| second.states[s as usize]).collect();
            let turned = |(s, z): (&u8, &C64)| unit(z * second.phases[*s as usize]);
            let phases = first.states.iter().zip(&first.phases).map(turned).collect();
            LocalMap { states, phases }
        };
        Move::new(to, (0..self.to.len()).map(one).collect())
    }

    /// What becomes of the states of a site.
    pub fn at(&self, site: usize, dim: usize) -> LocalMap {
        self.local.as_ref().map_or_else(|| LocalMap::stay(dim), |all| all[site].clone())
    }

    pub fn stays(&self) -> bool {
        self.local.is_none() && self.to.iter().enumerate().all(|(i, &j)| i == j as usize)
    }

    pub fn key(&self) -> MoveKey {
        let all = self.local.iter().flatten();
        let whole = |x: f64| (x * 1e6).round() as i32;
        let phases = all.clone().flat_map(|l| &l.phases).map(|z| (whole(z.re), whole(z.im))).collect();
        (self.to.clone(), all.flat_map(|l| l.states.iter().copied()).collect(), phases)
    }

    /// Refuses what no symmetry of these sites does: states of one kind of site go to another kind, or numbers of
    /// fermions change between even and odd.
    pub fn fits(&self, sites: &Sites, name: &str) -> Result<()> {
        for (i, site) in sites.iter().enumerate() {
            let (there, local) = (sites.site(self.to[i] as usize)?, self.at(i, site.dim()));
            if site != there {
                return Err(Error::input(format!(
                    "{name} takes site {i}, a `{}`, to site {}, a `{}`",
                    site.name(),
                    self.to[i],
                    there.name()
                ))
                .hint("a symmetry takes sites to sites of their own kind"));
            }
            if (0..site.dim()).any(|s| site.is_odd(s) != there.is_odd(local.states[s] as usize)) {
                return Err(Error::input(format!("{name} takes even numbers of fermions to odd ones"))
                    .hint("exchanges of particles and holes of fermions are not known here"));
            }
        }
        Ok(())
    }

    /// Refuses a move that leaves the sector: every charge that is fixed becomes one that is fixed, or its negative,
    /// plus a number, and takes its value again.
    pub fn stays_within(&self, sites: &Sites, sector: &[(String, i32)], name: &str) -> Result<()> {
        let n = sites.count();
        for (charge, target) in sector {
            let modulus = sites.modulus(charge);
            let equal = |a: i32, b: i32| if modulus > 0 { (a - b) % modulus == 0 } else { a == b };
            let follows = |(source, value): &(String, i32), sign: i32| -> bool {
                // What is known modulo a number says nothing of more than that.
                let known = sites.modulus(source);
                if known > 0 && (modulus == 0 || known % modulus != 0) {
                    return false;
                }
                let mut offset = 0;
                for i in 0..n {
                    let (before, after) = (sites.twice(i, source), sites.twice(self.to[i] as usize, charge));
                    let states = self.at(i, before.len()).states;
                    let change = |s: usize| after[states[s] as usize] - sign * before[s];
                    if !(1..before.len()).all(|s| equal(change(s), change(0))) {
                        return false;
                    }
                    offset += change(0);
                }
                equal(sign * value + offset, *target)
            };
            if !sector.iter().any(|known| follows(known, 1) || follows(known, -1)) {
                return Err(Error::input(format!(
                    "{name} changes {charge} = {}, which the sector conserves",
                    f64::from(*target) / 2.0
                ))
                .hint("Sz changes its sign under a spin flip, and Nup and Ndn change places"));
            }
        }
        Ok(())
    }

    /// The product that a product of operators becomes.
    pub fn moved(&self, factors: &TermMatrices, sites: &Sites) -> TermMatrices {
        let one = |(operator, i): &(LocalOperator, usize)| {
            let dim = operator.matrix.len().isqrt();
            let local = self.at(*i, dim);
            let mut matrix = vec![C64::ZERO; dim * dim];
            for (k, z) in operator.matrix.iter().enumerate() {
                let (s, t) = (k / dim, k % dim);
                matrix[local.states[s] as usize * dim + local.states[t] as usize] =
                    unit_product(local.phases[s], local.phases[t].conj(), *z);
            }
            (LocalOperator { matrix, fermionic: operator.fermionic }, self.to[*i] as usize)
        };
        debug_assert!(sites.count() == self.to.len());
        TermMatrices {
            coefficient: factors.coefficient,
            operators: factors.operators.iter().map(one).collect(),
        }
    }
}

/// A number times two phases, without rounding where these cancel.
fn unit_product(a: C64, b: C64, z: C64) -> C64 {
    let phase = unit(a * b);
    if phase == C64::ONE { z } else { phase * z }
}

/// A term with its operators as matrices, in the order written.
#[derive(Debug, Clone)]
pub(super) struct TermMatrices {
    pub coefficient: C64,
    pub operators: Vec<(LocalOperator, usize)>,
}

impl TermMatrices {
    pub fn product(&self, sites: &Sites) -> Result<SiteProduct> {
        let operators: Vec<_> = self.operators.iter().map(|(o, i)| (o, *i)).collect();
        Ok(SiteProduct::of(self.coefficient, &operators, sites)?.without_identities())
    }
}
