//! Measurements on infinite chains: local operators, sums, correlations, the spectrum of the transfer matrix.

use super::super::carry::{BondMatrices, to_right};
use super::super::space::ChargeLabel;
use super::automaton::need_even;
use super::bonds::{BlockLayout, identity, trace};
use super::krylov::largest;
use super::state::Uniform;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::{OpSum, OperatorTerm, SiteProduct};
use crate::number::philox::{self, Stream};
use crate::number::{C64, memory};

/// Residual of the eigenvalues of the transfer matrix.
const RESIDUAL: f64 = 1e-10;
/// The most vectors of their Krylov space, and the most numbers that these hold.
const VECTORS: usize = 200;
const NUMBERS: usize = 1 << 26;
/// Powers of a decaying coupling below this do not count.
const SMALL: f64 = 1e-17;
/// How near to 1 an eigenvalue of pairs of even and odd states is.
const PAIRED: f64 = 1e-6;

impl<T: Element> Uniform<T> {
    /// The expectation value of an operator on each site of the cell.
    ///
    /// # Errors
    /// When a site does not have the operator, for one that changes the parity of fermions.
    pub fn local(&self, name: &str) -> Result<Vec<C64>> {
        let one = |site| {
            let mut sum = OpSum::new();
            sum.add(C64::ONE, vec![(name.to_string(), site)])?;
            self.expectation(&sum)
        };
        (0..self.count()).map(one).collect()
    }

    /// The expectation value of a sum of operators; sites beyond the cell are those of the cells behind it.
    ///
    /// # Errors
    /// For operators that a site does not have, and terms that change the parity of fermions.
    pub fn expectation(&self, sum: &OpSum) -> Result<C64> {
        let mut value = C64::ZERO;
        for term in sum.terms() {
            value += self.term(term)?;
        }
        for tail in sum.tails() {
            let mut power = tail.ratio;
            let mut k = 1;
            while power.norm() > SMALL {
                let term = OperatorTerm { coefficient: tail.coefficient * power, factors: tail.at(k) };
                value += self.term(&term)?;
                (power, k) = (power * tail.ratio, k + 1);
            }
        }
        Ok(value)
    }

    /// A term as one matrix for each site from the first to the last that it acts on.
    fn matrices(&self, term: &OperatorTerm) -> Result<(usize, C64, Vec<Option<Vec<C64>>>)> {
        let n = self.count();
        let least = term.factors.iter().map(|f| f.1).min().unwrap_or(0) / n * n;
        let moved = OperatorTerm {
            coefficient: term.coefficient,
            factors: term.factors.iter().map(|(name, site)| (name.clone(), site - least)).collect(),
        };
        let last = moved.factors.iter().map(|f| f.1).max().unwrap_or(0);
        let chain = self.cell.chain(last / n + 1)?;
        let endless = "a single fermionic operator has signs from all sites before it, which never end";
        need_even(&chain, &moved.factors, term, endless)?;
        let product = SiteProduct::new(&moved, &chain)?;
        let first = product.factors.first().map_or(0, |f| f.0);
        let mut all = vec![None; last + 1 - first];
        for (site, matrix) in product.factors {
            all[site - first] = Some(matrix);
        }
        for site in product.string {
            all[site - first] = Some(chain.site(site)?.operator("F")?.matrix.clone());
        }
        Ok((first, product.coefficient, all))
    }

    fn term(&self, term: &OperatorTerm) -> Result<C64> {
        let (first, coefficient, matrices) = self.matrices(term)?;
        if !T::DTYPE.is_complex() && matrices.iter().flatten().flatten().any(|z| z.im != 0.0) {
            return self.to_complex().term(term);
        }
        crate::task::poll()?;
        let n = self.count();
        let mut x = identity(&self.spaces[first % n]);
        for (k, matrix) in matrices.iter().enumerate() {
            let tensor = &self.left[(first + k) % n];
            x = to_right((tensor, tensor), matrix.as_deref(), Some(&x));
        }
        let density = self.density_left((first + matrices.len()) % n);
        Ok(trace(&x, &density) * coefficient)
    }

    /// `<A_i B_(i + r)>` for r = 0, ..., `range`, from a site of the cell; fermionic operators have their signs.
    ///
    /// # Errors
    /// When a site does not have the operators, or together they change the parity of fermions; interruption.
    pub fn correlations(&self, a: &str, b: &str, site: usize, range: usize) -> Result<Vec<C64>> {
        let n = self.count();
        let pair = |r: usize| OperatorTerm {
            coefficient: C64::ONE,
            factors: vec![(a.to_string(), site), (b.to_string(), site + r)],
        };
        let mut values = vec![self.term(&pair(0))?];
        if range == 0 {
            return Ok(values);
        }
        let complex = |m: &Option<Vec<C64>>| m.iter().flatten().any(|z| z.im != 0.0);
        // The operator on the first site, and what stands between the two.
        let (_, _, near) = self.matrices(&pair(1))?;
        let far = self.matrices(&pair(n + 1))?.2;
        if !T::DTYPE.is_complex() && near.iter().chain(&far).any(complex) {
            return self.to_complex().correlations(a, b, site, range);
        }
        let own = |at: usize| (&self.left[at], &self.left[at]);
        let mut x = to_right(own(site), near[0].as_deref(), None);
        for r in 1..=range {
            crate::task::poll()?;
            let at = (site + r) % n;
            let (_, coefficient, matrices) = self.matrices(&pair(1 + (r - 1) % n))?;
            let last = matrices[matrices.len() - 1].as_deref();
            let end = to_right(own(at), last, Some(&x));
            values.push(trace(&end, &self.density_left((at + 1) % n)) * coefficient);
            let between = far[1 + (r - 1) % n].as_deref();
            x = to_right(own(at), between, Some(&x));
        }
        Ok(values)
    }

    /// The `count` eigenvalues of the largest moduli of the transfer matrix of a cell, descending, between states whose
    /// labels differ by `charge`: 1 is the state itself, where the charge is zero. Whether all are known to ten digits.
    /// Between fermionic operators stand the signs of the fermions that they pass.
    ///
    /// # Errors
    /// When the small problem does not converge; interruption.
    pub fn transfer(&self, charge: &ChargeLabel, count: usize) -> Result<(Vec<C64>, bool)> {
        let symmetry = &self.cell.symmetry;
        let layout = BlockLayout::new(symmetry, &self.spaces[0], charge);
        if layout.len() == 0 {
            return Ok((Vec::new(), true));
        }
        let trivial = *charge == symmetry.zero();
        let density = self.density_left(0);
        let one: BondMatrices<T> = identity(&self.spaces[0]);
        let signs = self.signs(self.cell.is_odd(charge))?;
        // The eigenvalue 1 is known: it is taken out, so that the others are seen even where they are equal.
        let mut map = |x: &[T]| -> Result<Vec<T>> {
            let x = layout.matrices(x);
            let mut y = x.clone();
            for (tensor, sign) in self.left.iter().zip(&signs) {
                y = to_right((tensor, tensor), *sign, Some(&y));
            }
            if trivial {
                let z = T::from_c64(-trace(&x, &density));
                for (at, m) in &one {
                    if let Some(y) = y.get_mut(at) {
                        *y += m * faer::Scale(z);
                    }
                }
            }
            Ok(layout.flat(&y))
        };
        let start: Vec<T> = (0..layout.len())
            .map(|k| {
                let w = philox::words(0, Stream::Script as u32, k as u64, 1);
                T::from_c64((philox::unit(w[0], w[1]) - 0.5).into())
            })
            .collect();
        let rest = count - usize::from(trivial && count > 0);
        let most = VECTORS.min((NUMBERS / layout.len().max(1)).max(20));
        if rest > 0 {
            let what = format!("{most} vectors of the transfer matrix, of {} numbers each,", layout.len());
            memory::ensure((most * layout.len() * size_of::<T>()) as u128, &what)?;
        }
        let found = if rest > 0 { largest(&mut map, &start, rest, RESIDUAL, most)? } else { Vec::new() };
        let known = found.iter().all(|p| p.residual <= 10.0 * RESIDUAL);
        let mut values: Vec<C64> = found.into_iter().map(|p| p.value).collect();
        if trivial {
            values.insert(0, C64::ONE);
        }
        Ok((values, known))
    }

    /// The charge of the Majorana modes at the ends of a half-infinite chain in this state, if it has any: states of
    /// even and odd parity to the left of a bond come in pairs, and what turns one into the other commutes with all
    /// matrices of the state. The transfer matrix of that charge then has an eigenvalue of modulus 1, which no
    /// correlation of operators on sites sees.
    ///
    /// # Errors
    /// When the small problem does not converge; interruption.
    pub fn majorana_charge(&self) -> Result<Option<ChargeLabel>> {
        let lasts = |z: Option<&C64>| z.is_some_and(|z| z.norm() > 1.0 - PAIRED);
        for charge in self.charges().into_iter().filter(|charge| self.cell.is_odd(charge)) {
            if lasts(self.transfer(&charge, 1)?.0.first()) {
                // A superposition of several states has such pairs without modes.
                let several = lasts(self.transfer(&self.cell.symmetry.zero(), 2)?.0.get(1));
                return Ok((!several).then_some(charge));
            }
        }
        Ok(None)
    }

    /// The matrices of the signs of fermions of each site of the cell; none where they are not asked for.
    fn signs(&self, signed: bool) -> Result<Vec<Option<&[C64]>>> {
        let one = |k: usize| self.cell.sites.site(k)?.operator("F").map(|f| Some(f.matrix.as_slice()));
        (0..self.count()).map(|k| if signed { one(k) } else { Ok(None) }).collect()
    }

    /// The charges that operators can carry across the bonds of the state, nearest first.
    pub fn charges(&self) -> Vec<ChargeLabel> {
        let symmetry = &self.cell.symmetry;
        let mut all = std::collections::BTreeSet::new();
        for (a, _) in self.spaces[0].iter() {
            for (b, _) in self.spaces[0].iter() {
                all.insert(symmetry.subtract(a, b));
            }
        }
        let mut all: Vec<ChargeLabel> = all.into_iter().collect();
        all.sort_by_key(|q| symmetry.distance(q, &symmetry.zero()));
        all
    }

    /// How much of another state is in this one, a cell: the modulus of the largest eigenvalue of the transfer matrix
    /// between the two; 1 for the same state.
    ///
    /// # Errors
    /// When the states have other cells; when the small problem does not converge.
    pub fn fidelity(&self, other: &Uniform<T>) -> Result<f64> {
        if !self.cell.same(&other.cell) {
            return Err(Error::input("states of other cells have no overlap")
                .hint("both need the same sites and conserved numbers per cell"));
        }
        let symmetry = &self.cell.symmetry;
        let mut best = 0.0f64;
        let shifts: std::collections::BTreeSet<ChargeLabel> = self.spaces[0]
            .iter()
            .flat_map(|(a, _)| other.spaces[0].iter().map(move |(b, _)| symmetry.subtract(a, b)))
            .collect();
        for shift in shifts {
            let layout = BlockLayout::between(&self.spaces[0], &other.spaces[0], |q| symmetry.add(q, &shift));
            let mut map = |x: &[T]| -> Result<Vec<T>> {
                let mut y = layout.matrices(x);
                for (a, b) in self.left.iter().zip(&other.left) {
                    y = to_right((a, b), None, Some(&y));
                }
                Ok(layout.flat(&y))
            };
            let found = largest(&mut map, &vec![T::one_impl(); layout.len()], 1, 1e-13, 60)?;
            best = found.first().map_or(best, |p| best.max(p.value.norm()));
        }
        Ok(best)
    }
}
