//! Optimisation of parameters from a sample: stochastic reconfiguration (Sorella 1998) and the linear method (Umrigar and
//! others 2007).

use rayon::prelude::*;

use super::amplitude::Amplitude;
use super::hamiltonian::{Hamiltonian, kinetic_with};
use super::lattice::{LatticeWalkers, LocalSum};
use super::walkers::Walkers;
use crate::error::{Error, Result};
use crate::number::{Matrix, Series};

/// A step of a difference quotient, relative to a parameter of order one.
const STEP: f64 = 1e-4;

/// What a sample of one walker tells of parameters `a_k`: local energy, `O_k = d ln Psi/d a_k`, `d E_L/d a_k`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The local energy.
    pub energy: f64,
    /// Logarithmic derivatives.
    pub logs: Vec<f64>,
    /// Derivatives of the local energy.
    pub energies: Vec<f64>,
}

fn step(value: f64) -> f64 {
    STEP * value.abs().max(1.0)
}

/// Samples of all walkers, by the parameters of the Jastrow factors.
///
/// # Errors
/// When a walker sits on a node, or a parameter cannot be varied.
pub fn samples<S: Amplitude>(hamiltonian: &Hamiltonian, walkers: &mut Walkers<S>) -> Result<Vec<Sample>> {
    walkers.refresh()?;
    let psi = walkers.psi().clone();
    let values: Vec<f64> = psi.jastrow().parameters().into_iter().map(|p| p.1).collect();
    let varied = values
        .iter()
        .enumerate()
        .map(|(k, &value)| {
            let shifted = |by: f64| {
                let mut all = values.clone();
                all[k] += by;
                psi.jastrow().with_parameters(&all)
            };
            let h = step(value);
            // A parameter at its bound is varied to one side.
            match shifted(-h) {
                Ok(low) => Ok((low, shifted(h)?, 2.0 * h)),
                Err(_) => Ok((psi.jastrow().clone(), shifted(h)?, h)),
            }
        })
        .collect::<Result<Vec<_>>>()?;
    let one = |walker: &super::Configuration<S>| -> Result<Sample> {
        let energy = hamiltonian.local_energy(&psi, walker)?.total();
        let (gradient, laplacian) = psi.slopes(walker)?;
        let (mut logs, mut energies) = (Vec::new(), Vec::new());
        for (low, high, width) in &varied {
            let at = &walker.positions;
            logs.push((high.value(at) - low.value(at)) / width);
            let kinetic = |jastrow| kinetic_with(&gradient, &laplacian, jastrow, at);
            energies.push((kinetic(high) - kinetic(low)) / width);
        }
        Ok(Sample { energy, logs, energies })
    };
    walkers.states()?.par_iter().map(one).collect()
}

/// Samples of walkers on a lattice, by its parameters.
///
/// # Errors
/// As [`samples`].
pub fn lattice_samples<S: Amplitude>(sum: &LocalSum, walkers: &mut LatticeWalkers<S>) -> Result<Vec<Sample>> {
    let energies = sum.local_values(walkers)?;
    let state = walkers.psi().clone();
    let values: Vec<f64> = state.parameters().into_iter().map(|p| p.1).collect();
    let mut varied = Vec::new();
    for (k, &value) in values.iter().enumerate() {
        let shifted = |by: f64| {
            let mut all = values.clone();
            all[k] += by;
            state.with_parameters(&all)
        };
        let h = step(value).min(0.5 * value.abs());
        varied.push((shifted(-h)?, shifted(h)?, 2.0 * h));
    }
    let one = |(walker, energy): (&super::lattice::Occupied<S>, &crate::number::C64)| {
        let of = |(low, high, width): &(_, _, f64)| {
            let (low, high): (&super::lattice::LatticeState<S>, &super::lattice::LatticeState<S>) =
                (low, high);
            let logs = (high.log(walker).0 - low.log(walker).0) / width;
            let energies = (sum.local(high, walker).re - sum.local(low, walker).re) / width;
            (logs, energies)
        };
        let (logs, energies) = varied.iter().map(of).unzip();
        Sample { energy: energy.re, logs, energies }
    };
    Ok(walkers.states()?.par_iter().zip(&energies).map(one).collect())
}

/// Means that both methods need.
struct Means {
    energy: f64,
    /// `<O_i>`, `<E_,i>`.
    logs: Vec<f64>,
    energies: Vec<f64>,
    /// `<dO_i dO_j>`.
    overlap: Vec<f64>,
    /// `<dO_i E>`.
    force: Vec<f64>,
}

fn means(samples: &[Sample]) -> Result<Means> {
    let Some(first) = samples.first() else {
        return Err(
            Error::input("no samples to optimise from").hint("collect some with `parameter_derivatives`")
        );
    };
    let (p, n) = (first.logs.len(), samples.len() as f64);
    if p == 0 {
        return Err(
            Error::input("a wave function without parameters").hint("give it a Jastrow or Gutzwiller factor")
        );
    }
    let finite = |s: &Sample| s.energy.is_finite() && s.logs.iter().chain(&s.energies).all(|x| x.is_finite());
    if !samples.iter().all(finite) {
        return Err(Error::numeric("a sample of the optimisation is not a finite number"));
    }
    let mean = |f: &dyn Fn(&Sample) -> f64| samples.iter().map(f).sum::<f64>() / n;
    let energy = mean(&|s| s.energy);
    let logs: Vec<f64> = (0..p).map(|i| mean(&|s| s.logs[i])).collect();
    let energies = (0..p).map(|i| mean(&|s| s.energies[i])).collect();
    let pair = |k: usize| mean(&|s| (s.logs[k / p] - logs[k / p]) * (s.logs[k % p] - logs[k % p]));
    let overlap = (0..p * p).map(pair).collect();
    let force = (0..p).map(|i| mean(&|s| (s.logs[i] - logs[i]) * (s.energy - energy))).collect();
    Ok(Means { energy, logs, energies, overlap, force })
}

/// The change of parameters by stochastic reconfiguration: `(S + shift diag S) d = -rate <dO E>`.
///
/// # Errors
/// Without samples or parameters, or when the overlap matrix is singular.
pub fn stochastic_reconfiguration(samples: &[Sample], rate: f64, shift: f64) -> Result<Vec<f64>> {
    let m = means(samples)?;
    let p = m.logs.len();
    let mut s = m.overlap;
    // A parameter that changes nothing here gets no change.
    let scale = (0..p).map(|i| s[i * p + i]).fold(0.0, f64::max).max(1e-300);
    (0..p).for_each(|i| s[i * p + i] += shift * s[i * p + i] + 1e-12 * scale);
    let right: Vec<f64> = m.force.iter().map(|f| -rate * f).collect();
    let change = Matrix::new(p, p, Series::Real(s))?.solve(&Matrix::new(p, 1, Series::Real(right))?)?;
    Ok(change.data().as_real("a change of parameters")?.to_vec())
}

/// The change of parameters by the linear method: the lowest state of H in the space of Psi and its derivatives, with
/// `shift` added to the diagonal of the derivatives.
///
/// # Errors
/// As [`stochastic_reconfiguration`].
pub fn linear_method(samples: &[Sample], shift: f64) -> Result<Vec<f64>> {
    let m = means(samples)?;
    let (p, n) = (m.logs.len(), samples.len() as f64);
    let d = p + 1;
    let (mut h, mut s) = (vec![0.0; d * d], vec![0.0; d * d]);
    (h[0], s[0]) = (m.energy, 1.0);
    // A parameter that changes nothing here gets no change.
    let scale = (0..p).map(|i| m.overlap[i * p + i]).fold(0.0, f64::max).max(1e-300);
    for i in 0..p {
        h[(i + 1) * d] = m.force[i];
        h[i + 1] = m.force[i] + m.energies[i];
        for j in 0..p {
            let term =
                |x: &Sample| (x.logs[i] - m.logs[i]) * ((x.logs[j] - m.logs[j]) * x.energy + x.energies[j]);
            h[(i + 1) * d + j + 1] = samples.iter().map(term).sum::<f64>() / n;
            s[(i + 1) * d + j + 1] = m.overlap[i * p + j];
        }
        let own = m.overlap[i * p + i];
        h[(i + 1) * d + i + 1] += shift * own;
        s[(i + 1) * d + i + 1] += 1e-12 * (own + scale);
    }
    let matrix = |x: Vec<f64>| Matrix::new(d, d, Series::Real(x));
    let (values, vectors, _) = matrix(s)?.solve(&matrix(h)?)?.eig()?;
    let (values, vectors) = (values.to_complex(), vectors.to_complex());
    let vectors = vectors.data().to_complex();
    // The lowest state that is mostly Psi itself.
    let weight = |k: usize| {
        let all: f64 = (0..d).map(|i| vectors[i * d + k].norm_sqr()).sum();
        vectors[k].norm_sqr() / all
    };
    let near = |k: &usize| weight(*k) > 1e-3 && values[*k].im.abs() < 1e-6 * values[*k].norm().max(1.0);
    let best = (0..d).filter(near).min_by(|a, b| values[*a].re.total_cmp(&values[*b].re));
    let best = best.ok_or_else(|| {
        Error::numeric("the linear method found no state near the wave function")
            .hint("take a larger `shift` or more samples")
    })?;
    Ok((1..d).map(|i| (vectors[i * d + best] / vectors[best]).re).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up sample whose energy is `1 + (a - 2)^2`-like: the local energy leans on O.
    fn sample(slope: f64) -> Vec<Sample> {
        let one = |k: i32| {
            let x = f64::from(k) / 50.0;
            Sample { energy: -1.0 + slope * x, logs: vec![x], energies: vec![0.0] }
        };
        (-50..=50).map(one).collect()
    }

    #[test]
    fn steps_go_downhill() {
        for slope in [0.3, -0.3] {
            let all = sample(slope);
            let sr = stochastic_reconfiguration(&all, 0.1, 0.0).unwrap()[0];
            assert!((sr + 0.1 * slope).abs() < 1e-9, "{sr}");
            let linear = linear_method(&all, 1.0).unwrap()[0];
            assert!(linear * slope < 0.0, "{linear}");
            // Beside it a parameter that no sample feels.
            let idle = |s: Sample| Sample { logs: vec![s.logs[0], 0.0], energies: vec![0.0; 2], ..s };
            let both: Vec<Sample> = all.into_iter().map(idle).collect();
            let step = linear_method(&both, 1.0).unwrap();
            assert!((step[0] - linear).abs() < 1e-9 * linear.abs() && step[1].abs() < 1e-9, "{step:?}");
        }
        assert!(stochastic_reconfiguration(&[], 0.1, 0.0).is_err());
    }
}
