//! Measurements beyond expectation values: entropies of any order, weights by sector, reduced density matrices of a
//! few sites, and configurations drawn with their probabilities.

use faer::{Mat, Par};

use super::carry::BondMatrices;
use super::dense::{eigh, product, square};
use super::density::entropy;
use super::space::ChargeLabel;
use super::state::MatrixProductState;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::Sector;
use crate::number::{C64, memory};
use crate::task::Task;

/// The most joint states of a reduced density matrix.
const MOST: usize = 256;
/// Weights below this are rounding, which the entropy of order 0 must not count.
const ROUNDING: f64 = 1e-14;

/// The entropy of order `alpha`, `ln(sum w^alpha) / (1 - alpha)`; of order one it is `- sum w ln w`.
fn of_order(weights: &[f64], alpha: f64) -> f64 {
    if alpha == 1.0 {
        return entropy(weights);
    }
    let sound = || weights.iter().copied().filter(|w| *w > ROUNDING);
    let more = alpha - 1.0;
    if more.abs() < 0.1 {
        // sum w^alpha is 1 + sum w (w^more - 1): near order one the sum itself would lose its digits.
        return -sound().map(|w| w * (more * w.ln()).exp_m1()).sum::<f64>().ln_1p() / more;
    }
    // Powers of the largest weight, which high orders would underflow, stand beside the sum.
    let largest = sound().fold(0.0, f64::max);
    let sum: f64 = sound().map(|w| (w / largest).powf(alpha)).sum();
    -(sum.ln() + alpha * largest.ln()) / more
}

/// The entropy of order `alpha` of weights that sum to one.
///
/// # Errors
/// For an order that is negative or not finite.
pub(in crate::manybody) fn renyi(weights: &[f64], alpha: f64) -> Result<f64> {
    if !(alpha >= 0.0 && alpha.is_finite()) {
        return Err(Error::input(format!("an entropy of order {alpha}"))
            .hint("0 and more; of order 1 it is the entropy of von Neumann"));
    }
    Ok(of_order(weights, alpha))
}

impl<T: Element> MatrixProductState<T> {
    /// The entropy of order `alpha` at each bond inside the chain (A. Rényi, Proc. 4th Berkeley Symp. (1961)).
    ///
    /// # Errors
    /// For an order that is negative or not finite, and as [`MatrixProductState::spectra`].
    pub fn renyi(&self, alpha: f64) -> Result<Vec<f64>> {
        self.spectra()?.iter().map(|w| renyi(w, alpha)).collect()
    }

    /// The Schmidt weights at a bond inside the chain by the charges of the sites to its left, each descending.
    ///
    /// # Errors
    /// When there is no such bond, or an eigenvalue does not converge.
    pub fn spectrum_by_sector(&self, bond: usize) -> Result<Vec<(Sector, Vec<f64>)>> {
        let n = self.tensors.len();
        if bond + 1 >= n {
            return Err(Error::input(format!("no bond {bond} in a chain of {n} sites"))
                .hint("bond 0 lies between sites 0 and 1"));
        }
        let densities = self.densities().swap_remove(bond + 1);
        let trace: f64 =
            densities.iter().flat_map(|m| (0..m.nrows()).map(|i| m[(i, i)].re()).collect::<Vec<_>>()).sum();
        let mut all = Vec::new();
        for (m, (label, _)) in densities.iter().zip(self.spaces[bond + 1].iter()) {
            let mut weights: Vec<f64> =
                eigh(m.as_ref(), Par::Seq)?.0.into_iter().map(|w| w.max(0.0) / trace).collect();
            weights.reverse();
            all.push((self.named(label), weights));
        }
        Ok(all)
    }

    fn named(&self, label: &ChargeLabel) -> Sector {
        self.symmetry.names().iter().zip(label).map(|(n, q)| (n.clone(), f64::from(*q) / 2.0)).collect()
    }

    /// The reduced density matrix of some places of the chain, which ascend: row by row, in the product of the sites'
    /// states, the last the fastest. For fermions it gives the expectation values of all operators on these sites,
    /// with the signs of the sites between.
    ///
    /// # Errors
    /// For too many states, on interruption.
    pub fn reduced(&self, places: &[usize], task: &Task) -> Result<Vec<C64>> {
        if let Some(spin) = self.spin() {
            return self.component(spin)?.reduced(places, task);
        }
        let mut dims = Vec::new();
        for &i in places {
            dims.push(self.sites.site(i)?.dim());
        }
        let whole = dims.iter().try_fold(1usize, |all, d| all.checked_mul(*d)).filter(|n| *n <= MOST);
        let whole = whole.ok_or_else(|| {
            Error::input(format!("a density matrix of {} sites together", places.len()))
                .hint(format!("at most {MOST} states of all the sites"))
        })?;
        let widest = self.spaces.iter().map(|s| s.total()).max().unwrap_or(1) as u128;
        let size = widest * widest * size_of::<T>() as u128;
        let inner = whole / dims.last().copied().unwrap_or(1);
        memory::ensure(size * (inner * inner) as u128, "the environments of a density matrix")?;
        let densities = self.densities();
        // Elements between states that differ by an odd number of fermions have signs of the sites before all places,
        // too, and the other signs between. They vanish where the state has a parity.
        let mut tracks = vec![(false, None)];
        let fermions = self.sites.iter().any(|site| (0..site.dim()).any(|state| site.is_odd(state)));
        if let Some(first) = places.first().filter(|_| fermions) {
            let mut before = None;
            for i in 0..*first {
                before = Some(self.pass(before.as_ref(), i, &self.sites.site(i)?.operator("F")?.matrix));
            }
            tracks.push((true, before));
        }
        let mut rho = vec![C64::ZERO; whole * whole];
        let steps = task.start("density matrix", tracks.len() * places.len());
        for (done, (total, before)) in tracks.into_iter().enumerate() {
            self.elements(places, (total, before), &densities, &mut rho, |k| {
                task.check()?;
                steps.advance(done * places.len() + k)
            })?;
        }
        Ok(rho)
    }

    /// The elements of a density matrix between states that differ by an odd number of fermions, or by an even one,
    /// with what is carried from the sites before all places.
    fn elements(
        &self,
        places: &[usize],
        (total, before): (bool, Option<BondMatrices<T>>),
        densities: &[Vec<Mat<T>>],
        rho: &mut [C64],
        advance: impl Fn(usize) -> Result<()>,
    ) -> Result<()> {
        let whole = rho.len().isqrt();
        // The states in the bra and in the ket so far, whether they differ by an odd number of fermions, and the
        // environment.
        let mut open: Vec<(usize, usize, bool, Option<BondMatrices<T>>)> = vec![(0, 0, false, before)];
        for (k, &place) in places.iter().enumerate() {
            if k > 0 {
                for i in places[k - 1] + 1..place {
                    advance(k)?;
                    let site = self.sites.site(i)?;
                    for (_, _, odd, environment) in &mut open {
                        let name = if *odd != total { "F" } else { "Id" };
                        let start = environment.as_ref();
                        *environment = Some(self.pass(start, i, &site.operator(name)?.matrix));
                    }
                }
            }
            let site = self.sites.site(place)?.clone();
            let dim = site.dim();
            let mut next = Vec::new();
            for (bra, ket, odd, environment) in &open {
                let start = environment.as_ref();
                for (i, j) in (0..dim).flat_map(|i| (0..dim).map(move |j| (i, j))) {
                    let mut unit = vec![C64::ZERO; dim * dim];
                    unit[i * dim + j] = C64::ONE;
                    let (a, b) = (bra * dim + i, ket * dim + j);
                    let odd = *odd != (site.is_odd(i) != site.is_odd(j));
                    if k + 1 < places.len() {
                        let behind = self.pass(start, place, &unit);
                        if !behind.is_empty() {
                            next.push((a, b, odd, Some(behind)));
                        }
                    } else if odd == total {
                        // The expectation value of |a><b| is the element <b| rho |a>.
                        rho[b * whole + a] = self.close(start, place, &unit, &densities[place + 1]);
                    }
                }
            }
            open = next;
            advance(k + 1)?;
        }
        Ok(())
    }

    /// One configuration, a local state for each place, drawn with its probability in the state; `random` gives
    /// numbers between 0 and 1. It is drawn from the last site on, as all matrices are isometries from the left
    /// (Ferris, Vidal, Phys. Rev. B 85, 165146 (2012)).
    ///
    /// # Errors
    /// When the numbers are not finite.
    pub fn sample(&self, mut random: impl FnMut() -> f64) -> Result<Vec<usize>> {
        self.need_component()?;
        let n = self.tensors.len();
        let mut drawn = vec![0; n];
        // The state projected on the sites drawn so far: sectors of the bond, with a column each.
        let mut rest: Vec<(usize, Mat<T>)> = vec![(0, Mat::identity(1, 1))];
        for i in (0..n).rev() {
            let tensor = &self.tensors[i];
            let mut choices: Vec<(f64, Vec<(usize, Mat<T>)>)> = Vec::new();
            for state in 0..tensor.fusion.states() {
                let mut parts = Vec::new();
                for before in 0..tensor.before.sectors() {
                    let Some((behind, m)) = tensor.part(before, state) else { continue };
                    let label = tensor.behind.label(behind);
                    let column = rest.iter().find(|r| self.spaces[i + 1].label(r.0) == label);
                    if let Some((_, column)) = column {
                        parts.push((before, product(m, column.as_ref())));
                    }
                }
                let weight: f64 = parts.iter().map(|p| square(p.1.as_ref())).sum();
                choices.push((weight, parts));
            }
            let all: f64 = choices.iter().map(|c| c.0).sum();
            if !(all > 0.0 && all.is_finite()) {
                return Err(Error::numeric("a configuration of a state that is zero or not finite"));
            }
            let mut left = random() * all;
            let last = choices.iter().rposition(|c| c.0 > 0.0).unwrap_or(0);
            let chosen = choices
                .iter()
                .position(|c| {
                    left -= c.0;
                    left < 0.0 && c.0 > 0.0
                })
                .unwrap_or(last);
            let (weight, parts) = choices.swap_remove(chosen);
            drawn[i] = chosen;
            let scale = faer::Scale(T::from_c64((1.0 / weight.sqrt()).into()));
            rest = parts.into_iter().map(|(s, m)| (s, &m * scale)).collect();
        }
        Ok(drawn)
    }
}
