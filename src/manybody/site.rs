//! One site: its states, the operators on it, and the charges that they may conserve.

use std::collections::BTreeMap;

use crate::error::{Error, Result, nearest};
use crate::number::C64;

/// The mark of adjoint operators, at the end of their names.
pub(super) const ADJOINT: char = '\u{2020}';

/// The most states a site can have.
pub const MAX_STATES: usize = 256;

/// The kind of site that holds bosons.
pub(super) const BOSON: &str = "Boson";

/// A charge of the local states: a quantum number of a U(1) or Z_n symmetry, kept as whole numbers of halves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// What sectors call it: "Sz", "N", "Nup".
    pub name: String,
    /// Twice the charge of each state.
    pub twice: Vec<i32>,
    /// Twice the n of a charge of Z_n, which counts modulo n; 0 for U(1).
    pub modulus: i32,
}

/// A matrix on the states of one site.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalOperator {
    /// Elements row by row, `dim * dim`.
    pub matrix: Vec<C64>,
    /// Whether it anticommutes with fermionic operators on other sites.
    pub fermionic: bool,
}

/// A kind of site. Operators are dense matrices in the order of the states.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    name: String,
    states: Vec<String>,
    operators: BTreeMap<String, LocalOperator>,
    charges: Vec<Charge>,
    /// Whether each state holds an odd number of fermions.
    odd: Vec<bool>,
}

impl Site {
    /// A site with the identity as its only operator.
    ///
    /// # Errors
    /// When there are no states, or more than 256.
    pub fn new(name: impl Into<String>, states: Vec<String>) -> Result<Site> {
        let (name, dim) = (name.into(), states.len());
        if dim == 0 || dim > MAX_STATES {
            return Err(Error::input(format!("a site of {dim} states"))
                .hint(format!("a site has 1 to {MAX_STATES} states")));
        }
        if let Some(twice) = (1..dim).find(|&k| states[..k].contains(&states[k])) {
            return Err(Error::input(format!("two states of a site are called `{}`", states[twice]))
                .hint("each state has a name of its own"));
        }
        let mut site =
            Site { name, states, operators: BTreeMap::new(), charges: Vec::new(), odd: vec![false; dim] };
        site = site.with("Id", (0..dim).map(|s| (s, s, 1.0)))?;
        Ok(site.with_parity())
    }

    /// Adds an operator by its non-zero elements (row, column, value).
    ///
    /// # Errors
    /// When an element lies outside the site's states or is not finite.
    pub fn with(
        self,
        name: impl Into<String>,
        elements: impl IntoIterator<Item = (usize, usize, f64)>,
    ) -> Result<Site> {
        let dim = self.dim();
        let mut matrix = vec![C64::ZERO; dim * dim];
        let name = name.into();
        for (i, j, value) in elements {
            match matrix.get_mut(i * dim + j) {
                Some(place) if j < dim => *place += value,
                _ => {
                    return Err(Error::input(format!("element ({i}, {j}) of `{name}` on {dim} states"))
                        .hint(format!("its states are numbered from 0 to {}", dim.saturating_sub(1))));
                }
            }
        }
        self.with_matrix(name, matrix, false)
    }

    /// Adds an operator by its matrix, row by row.
    ///
    /// # Errors
    /// When the matrix does not have the site's size or an element is not finite.
    pub fn with_matrix(mut self, name: impl Into<String>, matrix: Vec<C64>, fermionic: bool) -> Result<Site> {
        let (name, dim) = (name.into(), self.dim());
        if matrix.len() != dim * dim {
            return Err(Error::input(format!(
                "operator `{name}` has {} elements, and a site of {dim} states needs {dim} x {dim}",
                matrix.len()
            ))
            .hint("its matrix has a row and a column for each state"));
        }
        if matrix.iter().any(|z| !z.re.is_finite() || !z.im.is_finite()) {
            return Err(Error::input(format!(
                "operator `{name}` has an element that is not a finite number"
            ))
            .hint("look for a division by zero"));
        }
        if name.ends_with(ADJOINT) {
            return Err(Error::input(format!("an operator called `{name}`"))
                .hint("names with this ending belong to adjoint operators"));
        }
        self.insert(name, LocalOperator { matrix, fermionic });
        Ok(self)
    }

    /// Keeps an operator and its adjoint.
    fn insert(&mut self, name: String, operator: LocalOperator) {
        let dim = self.dim();
        let matrix = (0..dim * dim).map(|k| operator.matrix[k % dim * dim + k / dim].conj()).collect();
        self.operators.insert(adjoint_name(&name), LocalOperator { matrix, ..operator });
        self.operators.insert(name, operator);
    }

    /// Whether every non-zero element of an operator changes the number of fermions by an odd number.
    pub fn changes_parity(&self, operator: &LocalOperator) -> bool {
        let dim = self.dim();
        let alike = |k: usize| self.odd[k / dim] == self.odd[k % dim];
        !operator.matrix.iter().enumerate().any(|(k, z)| *z != C64::ZERO && alike(k))
    }

    /// Marks operators as fermionic; the site's parity must be set for them to have signs.
    pub fn fermionic(mut self, names: &[&str]) -> Site {
        for name in names {
            for name in [(*name).into(), adjoint_name(name)] {
                if let Some(operator) = self.operators.get_mut(&name) {
                    operator.fermionic = true;
                }
            }
        }
        self
    }

    /// Adds a charge, a multiple of 1/2 for each state.
    ///
    /// # Errors
    /// When there is not one charge a state, or one is no multiple of 1/2.
    pub fn charged(self, name: impl Into<String>, charges: &[f64]) -> Result<Site> {
        self.charged_modulo(name, charges, 0)
    }

    /// Adds a charge that counts modulo `n`; one of U(1) if `n` is 0.
    ///
    /// # Errors
    /// As [`Site::charged`].
    pub fn charged_modulo(mut self, name: impl Into<String>, charges: &[f64], n: u16) -> Result<Site> {
        let name = name.into();
        if charges.len() != self.dim() {
            return Err(Error::input(format!(
                "{} charges `{name}` for a site of {} states",
                charges.len(),
                self.dim()
            ))
            .hint("give one number for each state"));
        }
        let modulus = 2 * i32::from(n);
        let within = |q: i32| if modulus > 0 { q.rem_euclid(modulus) } else { q };
        let twice = charges.iter().map(|&q| twice(&name, q).map(within)).collect::<Result<_>>()?;
        self.charges.retain(|c| c.name != name);
        self.charges.push(Charge { name, twice, modulus });
        Ok(self)
    }

    /// Says which states hold an odd number of fermions, and adds the operator "F", their sign.
    ///
    /// # Errors
    /// When there is not one parity a state.
    pub fn with_odd(mut self, odd: Vec<bool>) -> Result<Site> {
        if odd.len() != self.dim() {
            return Err(Error::input(format!("{} parities for a site of {} states", odd.len(), self.dim()))
                .hint("give one for each state"));
        }
        self.odd = odd;
        Ok(self.with_parity())
    }

    fn with_parity(mut self) -> Site {
        let dim = self.dim();
        let mut matrix = vec![C64::ZERO; dim * dim];
        for (s, &odd) in self.odd.iter().enumerate() {
            matrix[s * dim + s] = C64::from(if odd { -1.0 } else { 1.0 });
        }
        self.insert("F".into(), LocalOperator { matrix, fermionic: false });
        self
    }

    /// The site and a copy of it as one site, whose states are all pairs of states, the copy's the faster. The
    /// operators keep their names and act on the first. The charges are those of the first, and the differences
    /// between the two under the names that `difference` gives.
    ///
    /// # Errors
    /// When the pairs are too many.
    pub(super) fn doubled(&self, difference: impl Fn(&str) -> String) -> Result<Site> {
        let dim = self.dim();
        if dim * dim > MAX_STATES {
            return Err(Error::input(format!(
                "a site of {dim} states beside its copy, {} in all",
                dim * dim
            ))
            .hint(format!("there is room for {MAX_STATES}; fewer bosons, `nmax`, or exact sectors")));
        }
        let pairs = || (0..dim).flat_map(|s| (0..dim).map(move |t| (s, t)));
        let states = pairs().map(|(s, t)| format!("{},{}", self.states[s], self.states[t])).collect();
        let mut site = Site::new(format!("{} and its copy", self.name), states)?;
        site = site.with_odd(pairs().map(|(s, _)| self.odd[s]).collect())?;
        for name in self.operators().filter(|name| !["F", "Id"].contains(name)) {
            let operator = self.operator(name)?;
            let mut matrix = vec![C64::ZERO; dim.pow(4)];
            for (k, z) in operator.matrix.iter().enumerate() {
                (0..dim).for_each(|t| matrix[(k / dim * dim + t) * dim * dim + k % dim * dim + t] = *z);
            }
            site = site.with_matrix(name, matrix, operator.fermionic)?;
        }
        for charge in &self.charges {
            let half = |q: i32| f64::from(q) / 2.0;
            let n = (charge.modulus / 2) as u16;
            let first: Vec<f64> = pairs().map(|(s, _)| half(charge.twice[s])).collect();
            let apart: Vec<f64> = pairs().map(|(s, t)| half(charge.twice[s] - charge.twice[t])).collect();
            site = site.charged_modulo(charge.name.clone(), &first, n)?;
            site = site.charged_modulo(difference(&charge.name), &apart, n)?;
        }
        Ok(site)
    }

    /// What the site is called: "S=1/2", "Electron".
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn dim(&self) -> usize {
        self.states.len()
    }

    /// Names of the states.
    pub fn states(&self) -> &[String] {
        &self.states
    }

    /// The charges that sectors can name.
    pub fn charges(&self) -> &[Charge] {
        &self.charges
    }

    /// Whether it is of the kind "Boson".
    pub fn is_boson(&self) -> bool {
        self.name == BOSON
    }

    /// The same site, a charge under another name.
    pub(super) fn with_charge_renamed(&self, name: &str, new: &str) -> Site {
        let mut site = self.clone();
        site.charges.iter_mut().filter(|c| c.name == name).for_each(|c| c.name = new.into());
        site
    }

    /// Whether a state holds an odd number of fermions.
    pub fn is_odd(&self, state: usize) -> bool {
        self.odd[state]
    }

    /// Names of the operators, without those of their adjoints.
    pub fn operators(&self) -> impl Iterator<Item = &str> {
        self.operators.keys().map(String::as_str).filter(|name| !name.ends_with(ADJOINT))
    }

    /// An operator by its name, or an adjoint one by the name that [`OpSum::dagger`](super::OpSum::dagger) gives it.
    ///
    /// # Errors
    /// When the site has none of that name.
    pub fn operator(&self, name: &str) -> Result<&LocalOperator> {
        self.operators.get(name).ok_or_else(|| {
            let error = Error::input(format!("no operator `{name}` on a site `{}`", self.name));
            let names: Vec<&str> = self.operators().collect();
            // Names this short are all near one another: list them unless only the case differs.
            match names.iter().find(|n| n.eq_ignore_ascii_case(name)) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => match nearest(name, names.iter().copied()).filter(|_| name.len() > 3) {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None => error.hint(format!("the operators are {}", names.join(", "))),
                },
            }
        })
    }

    /// A state by its name.
    ///
    /// # Errors
    /// When the site has none of that name.
    pub fn state(&self, name: &str) -> Result<usize> {
        self.states.iter().position(|s| s == name).ok_or_else(|| {
            Error::input(format!("no state `{name}` on a site `{}`", self.name))
                .hint(format!("the states are {}", self.states.join(", ")))
        })
    }
}

/// Twice a charge, which must be whole.
pub(super) fn twice(name: &str, charge: f64) -> Result<i32> {
    let twice = 2.0 * charge;
    if !((twice - twice.round()).abs() < 1e-9 && twice.abs() < 1e9) {
        return Err(Error::input(format!("charge `{name}` is {charge}, which is no multiple of 1/2"))
            .hint("conserved numbers are whole or half of it"));
    }
    Ok(twice.round() as i32)
}

/// What the adjoint of an operator is called.
pub(super) fn adjoint_name(name: &str) -> String {
    match name.strip_suffix(ADJOINT) {
        Some(name) => name.into(),
        None => format!("{name}{ADJOINT}"),
    }
}
