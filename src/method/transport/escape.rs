//! Leads given only by their self-energy: they have no waves but a rate at which particles escape. The channels are the
//! eigenvectors of `Gamma = i (sigma - sigma^dagger)`, and the transmission between two leads is
//! `Tr[Gamma G Gamma G^dagger]` (Caroli, Combescot, Nozieres, Saint-James, J. Phys. C 4 (1971) 916; Meir, Wingreen, PRL
//! 68 (1992) 2512).

use std::fmt;
use std::sync::Arc;

use faer::{Mat, Par};

use super::lead::ChannelKind;
use super::opening::Opening;
use crate::error::{Error, Result};
use crate::number::hermitian::eigh;
use crate::number::{C64, Matrix};

/// A self-energy at an energy.
pub type SelfEnergyAt = Arc<dyn Fn(f64) -> Result<Matrix> + Send + Sync>;

/// A lead that is known by its self-energy on some sites of the sample.
#[derive(Clone)]
pub struct Escape {
    sites: Vec<usize>,
    sigma: SelfEnergyAt,
}

impl fmt::Debug for Escape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Escape").field("sites", &self.sites).finish_non_exhaustive()
    }
}

/// Rates that are smaller, in units of the self-energy, are zero.
const CLOSED: f64 = 1e-12;

impl Escape {
    /// A lead on these sites of a sample; `sigma` has a row for each of their rows, site by site.
    ///
    /// # Errors
    /// No sites, or one of them twice.
    pub fn new(sites: Vec<usize>, sigma: SelfEnergyAt) -> Result<Escape> {
        if sites.is_empty() {
            return Err(
                Error::input("a self-energy of no sites").hint("give one site of the sample at least")
            );
        }
        let mut sorted = sites.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::input(format!("a self-energy that has site {} twice", pair[0]))
                .hint("give each site once"));
        }
        Ok(Escape { sites, sigma })
    }

    pub fn sites(&self) -> &[usize] {
        &self.sites
    }

    /// What the sample sees of it, `electrons` of `orbitals` rows a site being those of electrons.
    ///
    /// # Errors
    /// Those of the self-energy; one of another size, not finite, or with a rate below zero.
    pub fn opening(&self, energy: f64, orbitals: usize, electrons: usize) -> Result<Opening> {
        if !energy.is_finite() {
            return Err(Error::input(format!("a lead at an energy of {energy}")).hint("give a finite energy"));
        }
        let (given, n) = ((self.sigma)(energy)?, self.sites.len() * orbitals);
        // A number is the same for all rows.
        let data = given.data().to_complex();
        let one = given.rows() == 1 && given.cols() == 1;
        if !one && (given.rows() != n || given.cols() != n) {
            return Err(Error::input(format!("a self-energy of {} for {n} rows", given.shape()))
                .hint("it has a row and a column for each orbital of its sites, or is one number for all"));
        }
        let sigma = Mat::from_fn(n, n, |i, j| match (one, i == j) {
            (true, true) => data[0],
            (true, false) => C64::ZERO,
            (false, _) => data[i * n + j],
        });
        let size = (0..n * n).map(|k| sigma[(k / n, k % n)].norm()).fold(0.0, f64::max);
        if !data.iter().all(|z| z.re.is_finite() && z.im.is_finite()) {
            return Err(Error::input("a self-energy that is not finite").hint("look for a division by zero"));
        }
        let gamma = Mat::from_fn(n, n, |i, j| C64::I * (sigma[(i, j)] - sigma[(j, i)].conj()));
        let is_hole = |row: usize| row % orbitals >= electrons;
        let mixed = (0..n).any(|i| (0..n).any(|j| is_hole(i) != is_hole(j) && sigma[(i, j)] != C64::ZERO));
        let parts: Vec<(ChannelKind, Vec<usize>)> = if electrons == orbitals || mixed {
            vec![(ChannelKind::Any, (0..n).collect())]
        } else {
            let (holes, rest) = (0..n).partition(|row| is_hole(*row));
            vec![(ChannelKind::Electrons, rest), (ChannelKind::Holes, holes)]
        };
        let (mut columns, mut kinds): (Vec<Vec<C64>>, Vec<(ChannelKind, usize)>) = (Vec::new(), Vec::new());
        for (kind, rows) in parts {
            let own = Mat::from_fn(rows.len(), rows.len(), |i, j| gamma[(rows[i], rows[j])]);
            let (rates, vectors) = eigh(own.as_ref(), Par::Seq)
                .ok_or_else(|| Error::numeric("the rates of a self-energy were not found"))?;
            if let Some(rate) = rates.iter().find(|rate| **rate < -1e-9 * size) {
                return Err(Error::input(format!("a self-energy with an escape rate of {rate:.3e}")).hint(
                    "the imaginary part of a retarded self-energy is zero or below: -i eta lets particles go",
                ));
            }
            let open: Vec<usize> = (0..rows.len()).filter(|k| rates[*k] > CLOSED * size).collect();
            for &k in &open {
                let mut column = vec![C64::ZERO; n];
                rows.iter().enumerate().for_each(|(i, &row)| column[row] = vectors[(i, k)] * rates[k].sqrt());
                columns.push(column);
            }
            kinds.push((kind, open.len()));
        }
        let c = columns.len();
        let source = Mat::from_fn(n, c, |i, k| columns[k][i]);
        // S = 1 - i W^dagger G W with W W^dagger = Gamma.
        let out = Mat::from_fn(c, n, |k, i| -C64::I * columns[k][i].conj());
        let back = Mat::from_fn(c, c, |i, j| if i == j { C64::ONE } else { C64::ZERO });
        Ok(Opening { extra: 0, matrix: sigma, source, out, back, kinds, parts: Vec::new() })
    }
}
