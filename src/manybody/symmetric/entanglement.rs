//! The Schmidt decomposition of a state between some sites and the rest.

use std::collections::BTreeMap;

use faer::Mat;
use rayon::prelude::*;

use super::super::basis::{BasisPath, Sector};
use super::super::dmrg::reduced::renyi;
use super::codes::WordLayout;
use super::subspace::Subspace;
use crate::error::{Error, Result};
use crate::number::{C64, memory};
use crate::task;

/// How some sites are entangled with the rest.
#[derive(Debug, Clone)]
pub struct Entanglement {
    pub entropy: f64,
    /// The weights, descending.
    pub weights: Vec<f64>,
    /// The weights by the charges of the sites, each descending.
    pub by_sector: Vec<(Sector, Vec<f64>)>,
}

impl Subspace {
    /// The entanglement of `part` with the rest in a state of this sector; the entropy is of order `alpha`.
    ///
    /// # Errors
    /// For sites that are not there or named twice, a vector of zeros, an order that is negative, memory, interruption.
    pub fn entanglement(&self, state: &[C64], part: &[usize], alpha: f64) -> Result<Entanglement> {
        let sites = self.sites();
        let mut inside = vec![false; sites.count()];
        for &i in part {
            sites.site(i)?;
            if std::mem::replace(&mut inside[i], true) {
                return Err(Error::input(format!("site {i} is named twice"))
                    .hint("the part names each of its sites once"));
            }
        }
        let norm: f64 = {
            let largest = state.iter().map(|z| z.norm()).fold(0.0, f64::max);
            if !(largest > 0.0 && largest.is_finite()) {
                return Err(Error::input(
                    "the entanglement of a vector of zeros, or of one that is not finite",
                )
                .hint("a state has a finite norm above zero"));
            }
            largest * state.iter().map(|z| (z / largest).norm_sqr()).sum::<f64>().sqrt()
        };
        let state: Vec<C64> = state.iter().map(|z| z / norm).collect();
        let blocks = self.blocks(&self.unfold(&state, 1)?, &inside)?;
        let one = |(charges, block): (Vec<i32>, SchmidtBlock)| -> Result<(Sector, Vec<f64>)> {
            let names = self.plain.sector().iter().map(|s| s.0.clone());
            let sector = names.zip(charges.iter().map(|&q| f64::from(q) / 2.0)).collect();
            Ok((sector, block.weights()?))
        };
        let by_sector = blocks.into_par_iter().map(one).collect::<Result<Vec<_>>>()?;
        let mut weights: Vec<f64> = by_sector.iter().flat_map(|s| s.1.iter().copied()).collect();
        weights.sort_by(|a, b| b.total_cmp(a));
        Ok(Entanglement { entropy: renyi(&weights, alpha)?, weights, by_sector })
    }

    /// The amplitudes of product states, as matrices of the states of the part and of the rest, by the charges of the
    /// part.
    fn blocks(&self, state: &[C64], inside: &[bool]) -> Result<Vec<(Vec<i32>, SchmidtBlock)>> {
        const TOGETHER: usize = 1 << 16;
        let sites = self.sites();
        let layout = WordLayout::new(sites, 8)?;
        let dim = self.plain.dim();
        memory::ensure(48 * dim as u128, &format!("the entanglement of {dim} states"))?;
        let own = (0..inside.len()).filter(|&i| inside[i]);
        let own_bits = own.clone().fold(0u64, |bits, i| bits | (layout.masks[i] << layout.shifts[i]));
        let own_sites = own.clone().fold(0u64, |all, i| all | (1 << i));
        let names: Vec<&String> = self.plain.sector().iter().map(|s| &s.0).collect();
        let charges: Vec<Vec<Vec<i32>>> =
            names.iter().map(|name| (0..inside.len()).map(|i| sites.twice(i, name)).collect()).collect();
        let own: Vec<usize> = own.collect();
        let mut blocks: BTreeMap<Vec<i32>, SchmidtBlock> = BTreeMap::new();
        let mut walk = BasisPath::at(&self.plain, 0);
        for (row, &amplitude) in state.iter().enumerate() {
            if row % TOGETHER == 0 {
                task::poll()?;
            }
            if amplitude != C64::ZERO {
                let code = layout.code(&walk.states);
                let charge = |(name, q): (&&String, &Vec<Vec<i32>>)| {
                    let sum: i32 = own.iter().map(|&i| q[i][walk.states[i] as usize]).sum();
                    let modulus = sites.modulus(name);
                    if modulus > 0 { sum.rem_euclid(modulus) } else { sum }
                };
                let key: Vec<i32> = names.iter().zip(&charges).map(charge).collect();
                // Fermions of the part pass those of the rest that stand before them.
                let odd = layout.odd(code);
                let (mut mine, rest, mut passed) = (odd & own_sites, odd & !own_sites, 0);
                while mine != 0 {
                    let site = mine.trailing_zeros();
                    passed += (rest & ((1 << site) - 1)).count_ones();
                    mine &= mine - 1;
                }
                let value = if passed % 2 == 1 { -amplitude } else { amplitude };
                blocks.entry(key).or_default().entries.push((code & own_bits, code & !own_bits, value));
            }
            walk.step();
        }
        Ok(blocks.into_iter().collect())
    }
}

/// The amplitudes between states of the part and of the rest.
#[derive(Default)]
struct SchmidtBlock {
    entries: Vec<(u64, u64, C64)>,
}

impl SchmidtBlock {
    /// The squares of the singular values, descending.
    fn weights(self) -> Result<Vec<f64>> {
        let numbered = |of: &dyn Fn(&(u64, u64, C64)) -> u64| {
            let mut all: Vec<u64> = self.entries.iter().map(of).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let (rows, columns) = (numbered(&|e| e.0), numbered(&|e| e.1));
        let what = format!("a matrix of {} x {} amplitudes", rows.len(), columns.len());
        memory::ensure(48 * rows.len() as u128 * columns.len() as u128, &what)?;
        let mut matrix = Mat::<C64>::zeros(rows.len(), columns.len());
        for (row, column, value) in &self.entries {
            if let (Ok(i), Ok(j)) = (rows.binary_search(row), columns.binary_search(column)) {
                matrix[(i, j)] = *value;
            }
        }
        let real = self.entries.iter().all(|e| e.2.im == 0.0);
        let values = if real {
            Mat::from_fn(rows.len(), columns.len(), |i, j| matrix[(i, j)].re).singular_values()
        } else {
            matrix.singular_values()
        };
        let values =
            values.map_err(|_| Error::numeric(format!("the singular values of {what} did not converge")))?;
        Ok(values.into_iter().map(|s| s * s).collect())
    }
}
