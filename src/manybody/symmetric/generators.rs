//! Symmetries as users name them, before the sites are known.

use super::super::site::Site;
use super::super::sites::Sites;
use super::group::{Generator, order};
use super::moves::{LocalMap, Move, unit};
use crate::error::{Error, Result};
use crate::number::C64;

/// What becomes of the states of a site.
#[derive(Debug, Clone, PartialEq)]
pub enum StateAction {
    /// States stay as they are.
    Same,
    /// Spins are turned over.
    Flip,
    /// Each state becomes the one with this name, times this factor; without names they stay, without factors these
    /// are 1.
    States(Option<Vec<String>>, Option<Vec<C64>>),
}

/// What states are multiplied with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantum {
    /// exp(-2 pi i q / m) for a symmetry that is back at the start after m times.
    Number(i64),
    /// A number of modulus one.
    Value(C64),
}

/// A symmetry: a permutation of sites, what becomes of their states, and the states wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Symmetry {
    /// What it is called, with its quantum number.
    pub name: String,
    /// The site that each one goes to.
    pub to: Vec<usize>,
    pub within: StateAction,
    /// Sites whose fermions change their sign.
    pub signs: Vec<bool>,
    pub quantum: Quantum,
}

impl Symmetry {
    /// A permutation that takes site `i` to site `to[i]`.
    ///
    /// # Errors
    /// When that is no permutation.
    pub fn permutation(name: impl Into<String>, to: Vec<usize>, quantum: Quantum) -> Result<Symmetry> {
        if to.is_empty() {
            return Err(Error::input("a permutation of no sites").hint("it says of each site where it goes"));
        }
        let mut seen = vec![false; to.len()];
        for &j in &to {
            match seen.get_mut(j) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    return Err(Error::input(format!(
                        "a permutation that does not name every site from 0 to {} once",
                        to.len() - 1
                    ))
                    .hint("entry i is the site that site i goes to, like [1, 2, 3, 0]"));
                }
            }
        }
        let signs = vec![false; to.len()];
        Ok(Symmetry { name: name.into(), to, within: StateAction::Same, signs, quantum })
    }

    /// The same permutation, which does this to the states of each site.
    pub fn within(self, within: StateAction) -> Symmetry {
        Symmetry { within, ..self }
    }

    /// The move on sites that are known, with its character.
    pub(super) fn on(&self, sites: &Sites) -> Result<Generator> {
        if self.to.len() != sites.count() {
            return Err(Error::input(format!(
                "{} moves {} sites, and there are {sites}",
                self.name,
                self.to.len()
            ))
            .hint("make symmetries for the chain or lattice that the sector is of"));
        }
        let mut locals = Vec::with_capacity(self.to.len());
        for (site, &sign) in sites.iter().zip(&self.signs) {
            let mut local = self.local(site)?;
            if sign {
                (0..site.dim()).filter(|&s| site.is_odd(s)).for_each(|s| local.phases[s] = -local.phases[s]);
            }
            locals.push(local);
        }
        if self.within == StateAction::Flip && locals.iter().all(|l| *l == LocalMap::stay(l.states.len())) {
            return Err(Error::input(format!("{} on {sites}, none of which has a spin", self.name))
                .hint("spins are \"S=1/2\", \"S=1\", ..., \"Electron\", \"tJ\""));
        }
        let does = Move::new(self.to.iter().map(|&j| j as u16).collect(), locals);
        does.fits(sites, &self.name)?;
        let dims: Vec<usize> = sites.iter().map(|site| site.dim()).collect();
        let character = match self.quantum {
            Quantum::Value(z) => unit(z),
            Quantum::Number(q) => {
                let order = order(&does, &self.name, &dims)? as i64;
                unit(C64::cis(-std::f64::consts::TAU * q.rem_euclid(order) as f64 / order as f64))
            }
        };
        if (character.norm() - 1.0).abs() > 1e-9 {
            return Err(Error::input(format!("{}: its modulus is not 1", self.name))
                .hint("a symmetry multiplies states with a phase"));
        }
        Ok(Generator { does, name: self.name.clone(), character })
    }

    fn local(&self, site: &Site) -> Result<LocalMap> {
        let dim = site.dim();
        match &self.within {
            StateAction::Same => Ok(LocalMap::stay(dim)),
            StateAction::Flip => flipped(site),
            StateAction::States(names, phases) => {
                let own: Vec<String> = site.states().to_vec();
                let names = names.as_ref().unwrap_or(&own);
                let ones = vec![C64::ONE; dim];
                let phases = phases.as_ref().unwrap_or(&ones);
                if names.len() != dim || phases.len() != dim {
                    return Err(Error::input(format!(
                        "{} names {} states and {} factors for a site of {dim} states",
                        self.name,
                        names.len(),
                        phases.len()
                    ))
                    .hint(format!("the states are {}", own.join(", "))));
                }
                let states =
                    names.iter().map(|n| site.state(n).map(|s| s as u8)).collect::<Result<Vec<_>>>()?;
                if (0..dim).any(|s| !states.contains(&(s as u8))) {
                    return Err(Error::input(format!(
                        "{} takes two states of a site to the same",
                        self.name
                    ))
                    .hint("it names every state once"));
                }
                if phases.iter().any(|z| !((z.norm() - 1.0).abs() <= 1e-9)) {
                    return Err(Error::input(format!("{} has a factor whose modulus is not 1", self.name))
                        .hint("a symmetry keeps the norm of states"));
                }
                Ok(LocalMap { states, phases: phases.iter().map(|z| unit(*z)).collect() })
            }
        }
    }
}

/// What turning over the spin makes of the states of a site; those without a spin stay.
fn flipped(site: &Site) -> Result<LocalMap> {
    let dim = site.dim();
    let one = C64::ONE;
    Ok(match site.name() {
        // c+_up c+_dn becomes c+_dn c+_up.
        "Electron" => LocalMap { states: vec![0, 2, 1, 3], phases: vec![one, one, one, -one] },
        "tJ" => LocalMap { states: vec![0, 2, 1], phases: vec![one; 3] },
        "Fermion" | "Boson" => LocalMap::stay(dim),
        name if name.starts_with("S=") => {
            LocalMap { states: (0..dim as u8).rev().collect(), phases: vec![one; dim] }
        }
        name => {
            return Err(Error::input(format!("the spin flip of a site `{name}` is not known"))
                .hint("a permutation takes it as the option `states`"));
        }
    })
}
