//! Optimisation of parameters from a sample: stochastic reconfiguration (Sorella, PRL 80 (1998) 4558) and the linear
//! method (Umrigar, Toulouse, Filippi, Sorella, Hennig, PRL 98 (2007) 110201).

use super::amplitude::Amplitude;
use super::hamiltonian::{Hamiltonian, kinetic_with};
use super::lattice::{LatticeWalkers, LocalSum};
use super::walkers::Walkers;
use crate::error::{Error, Result};
use crate::number::{Matrix, Series};
use crate::ranks::Broadcast;

/// A step of a difference quotient, relative to a parameter of order one.
const STEP: f64 = 1e-4;

/// The sample of one walker for parameters `a_k`: local energy, `O_k = d ln Psi/d a_k`, `d E_L/d a_k`.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterSample {
    pub energy: f64,
    /// The logarithmic derivatives O_k.
    pub logs: Vec<f64>,
    /// The derivatives of the local energy, d E_L/d a_k.
    pub energies: Vec<f64>,
}

impl Broadcast for ParameterSample {
    fn bytes(&self) -> Vec<u8> {
        [vec![self.energy], self.logs.clone(), self.energies.clone()].concat().bytes()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let all = Vec::<f64>::of(bytes)?;
        let (energy, rest) = all.split_first()?;
        let (logs, energies) = rest.split_at(rest.len() / 2);
        Some(ParameterSample { energy: *energy, logs: logs.to_vec(), energies: energies.to_vec() })
    }
}

fn step(value: f64) -> f64 {
    STEP * value.abs().max(1.0)
}

/// Samples of all walkers, for the parameters of the Jastrow factors.
///
/// # Errors
/// When a walker sits on a node, or a parameter cannot be varied.
pub fn samples<S: Amplitude>(
    hamiltonian: &Hamiltonian,
    walkers: &mut Walkers<S>,
) -> Result<Vec<ParameterSample>> {
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
    let one = |_: usize, walker: &super::Configuration<S>| -> Result<ParameterSample> {
        let energy = hamiltonian.local_energy(&psi, walker)?.total();
        let (gradient, laplacian) = psi.slopes(walker)?;
        let (mut logs, mut energies) = (Vec::new(), Vec::new());
        for (low, high, width) in &varied {
            let at = &walker.positions;
            logs.push((high.value(at) - low.value(at)) / width);
            let kinetic = |jastrow| kinetic_with(&gradient, &laplacian, jastrow, at);
            energies.push((kinetic(high) - kinetic(low)) / width);
        }
        Ok(ParameterSample { energy, logs, energies })
    };
    walkers.each(one)
}

/// Samples of walkers on a lattice, for the parameters of its wave function.
///
/// # Errors
/// As [`samples`].
pub fn lattice_samples<S: Amplitude>(
    sum: &LocalSum,
    walkers: &mut LatticeWalkers<S>,
) -> Result<Vec<ParameterSample>> {
    let values_of = sum.local_values(walkers)?;
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
    let one = |k: usize, walker: &super::lattice::OccupiedSites<S>| -> Result<ParameterSample> {
        let of = |(low, high, width): &(_, _, f64)| {
            let (low, high): (&super::lattice::LatticeState<S>, &super::lattice::LatticeState<S>) =
                (low, high);
            let logs = (high.log(walker).0 - low.log(walker).0) / width;
            let energies = (sum.local(high, walker).re - sum.local(low, walker).re) / width;
            (logs, energies)
        };
        let (logs, energies) = varied.iter().map(of).unzip();
        Ok(ParameterSample { energy: values_of[k].re, logs, energies })
    };
    walkers.each(one)
}

/// Means that both methods need.
struct SampleMeans {
    energy: f64,
    /// `<O_i>`, `<E_,i>`.
    logs: Vec<f64>,
    energies: Vec<f64>,
    /// `<dO_i dO_j>`.
    overlap: Vec<f64>,
    /// `<dO_i E>`.
    force: Vec<f64>,
}

fn means(samples: &[ParameterSample]) -> Result<SampleMeans> {
    let Some(first) = samples.first() else {
        return Err(
            Error::input("no samples to optimise from").hint("collect some with `parameter_derivatives`")
        );
    };
    let (p, n) = (first.logs.len(), samples.len() as f64);
    if p == 0 {
        return Err(Error::input("a wave function without parameters")
            .hint("give it a Jastrow factor, or on a lattice a Gutzwiller factor above 0"));
    }
    let finite =
        |s: &ParameterSample| s.energy.is_finite() && s.logs.iter().chain(&s.energies).all(|x| x.is_finite());
    if !samples.iter().all(finite) {
        return Err(Error::numeric("a sample of the optimisation is not a finite number")
            .hint("start from parameters at which the energy is finite"));
    }
    let mean = |f: &dyn Fn(&ParameterSample) -> f64| samples.iter().map(f).sum::<f64>() / n;
    let energy = mean(&|s| s.energy);
    let logs: Vec<f64> = (0..p).map(|i| mean(&|s| s.logs[i])).collect();
    let energies = (0..p).map(|i| mean(&|s| s.energies[i])).collect();
    let pair = |k: usize| mean(&|s| (s.logs[k / p] - logs[k / p]) * (s.logs[k % p] - logs[k % p]));
    let overlap = (0..p * p).map(pair).collect();
    let force = (0..p).map(|i| mean(&|s| (s.logs[i] - logs[i]) * (s.energy - energy))).collect();
    Ok(SampleMeans { energy, logs, energies, overlap, force })
}

/// Standard deviations of the `O_i`, which serve as units of the parameters; 0 for a parameter without effect on the
/// samples.
fn units(m: &SampleMeans) -> Vec<f64> {
    let p = m.logs.len();
    let unit = |i: usize| {
        let own = m.overlap[i * p + i];
        // The variance of a constant is rounding.
        if own > 1e-24 * m.logs[i] * m.logs[i] { own.sqrt() } else { 0.0 }
    };
    (0..p).map(unit).collect()
}

/// The change of parameters by stochastic reconfiguration: `(S + shift diag S) d = -rate <dO E>`.
///
/// # Errors
/// Without samples or parameters, or when the overlap matrix is singular.
pub fn stochastic_reconfiguration(samples: &[ParameterSample], rate: f64, shift: f64) -> Result<Vec<f64>> {
    let m = means(samples)?;
    let p = m.logs.len();
    let units = units(&m);
    // In its own units every parameter has an overlap of 1 with itself; one without effect is not changed.
    let scaled = |x: f64, unit: f64| if unit > 0.0 { x / unit } else { 0.0 };
    let element = |k: usize| {
        let (i, j) = (k / p, k % p);
        let own = if i == j { shift + 1e-12 + f64::from(u8::from(units[i] == 0.0)) } else { 0.0 };
        scaled(scaled(m.overlap[k], units[i]), units[j]) + own
    };
    let s = (0..p * p).map(element).collect();
    let right = (0..p).map(|i| -rate * scaled(m.force[i], units[i])).collect();
    let change = Matrix::new(p, p, Series::Real(s))?.solve(&Matrix::new(p, 1, Series::Real(right))?)?;
    let change = change.data().as_real("a change of parameters")?;
    Ok((0..p).map(|i| scaled(change[i], units[i])).collect())
}

/// Combinations of derivatives whose overlap has an eigenvalue below this are left out of the linear method.
const DEPENDENT: f64 = 1e-9;

/// The linear method prefers states with at least this share of Psi: others are noise, or too far away.
const NEAR: f64 = 0.25;

/// The change of parameters by the linear method: the lowest state of H in the space of Psi and its derivatives,
/// among those with a large share of Psi. `shift` is added to the diagonal of the derivatives. The change does not
/// depend on the units of the parameters.
///
/// # Errors
/// As [`stochastic_reconfiguration`].
pub fn linear_method(samples: &[ParameterSample], shift: f64) -> Result<Vec<f64>> {
    let m = means(samples)?;
    let (p, n) = (m.logs.len(), samples.len() as f64);
    let units = units(&m);
    let active: Vec<usize> = (0..p).filter(|&i| units[i] > 0.0).collect();
    let q = active.len();
    if q == 0 {
        return Ok(vec![0.0; p]);
    }
    let overlap = |k: usize| {
        let (i, j) = (active[k / q], active[k % q]);
        m.overlap[i * p + j] / (units[i] * units[j])
    };
    let (values, vectors) = Matrix::new(q, q, Series::Real((0..q * q).map(overlap).collect()))?.eigh()?;
    let (values, vectors) = (values.as_real("overlaps")?, vectors.data().as_real("directions")?);
    // Orthonormal directions, each a combination of derivatives in their own units.
    let directions: Vec<Vec<f64>> = (0..q)
        .filter(|&k| values[k] > DEPENDENT)
        .map(|k| (0..q).map(|i| vectors[i * q + k] / values[k].sqrt()).collect())
        .collect();
    let d = directions.len() + 1;
    let scaled = |i: usize, x: f64| x / units[active[i]];
    let mut plain = vec![0.0; q * q];
    for (k, h) in plain.iter_mut().enumerate() {
        let (i, j) = (active[k / q], active[k % q]);
        let term = |x: &ParameterSample| {
            (x.logs[i] - m.logs[i]) * ((x.logs[j] - m.logs[j]) * x.energy + x.energies[j])
        };
        *h = samples.iter().map(term).sum::<f64>() / (n * units[i] * units[j]);
        *h += if i == j { shift } else { 0.0 };
    }
    let along = |direction: &[f64], f: &dyn Fn(usize) -> f64| -> f64 {
        direction.iter().enumerate().map(|(i, x)| x * scaled(i, f(active[i]))).sum()
    };
    let mut h = vec![0.0; d * d];
    h[0] = m.energy;
    for (a, left) in directions.iter().enumerate() {
        h[(a + 1) * d] = along(left, &|i| m.force[i]);
        h[a + 1] = along(left, &|i| m.force[i] + m.energies[i]);
        for (b, right) in directions.iter().enumerate() {
            let row = |i: usize| (0..q).map(|j| plain[i * q + j] * right[j]).sum::<f64>();
            h[(a + 1) * d + b + 1] = (0..q).map(|i| left[i] * row(i)).sum();
        }
    }
    let (values, vectors, _) = Matrix::new(d, d, Series::Real(h))?.eig()?;
    let (values, vectors) = (values.to_complex(), vectors.to_complex());
    let vectors = vectors.data().to_complex();
    // The share of Psi itself in a state.
    let weight = |k: usize| {
        let all: f64 = (0..d).map(|i| vectors[i * d + k].norm_sqr()).sum();
        vectors[k].norm_sqr() / all
    };
    let real = |k: &usize| values[*k].im.abs() < 1e-6 * values[*k].norm().max(1.0) && weight(*k) > 1e-6;
    let lowest = |k: &&usize| weight(**k) > NEAR;
    let states: Vec<usize> = (0..d).filter(real).collect();
    let best = states.iter().filter(lowest).min_by(|a, b| values[**a].re.total_cmp(&values[**b].re));
    let best = best.or_else(|| states.iter().max_by(|a, b| weight(**a).total_cmp(&weight(**b))));
    let best = *best.ok_or_else(|| {
        Error::numeric("the linear method found no state near the wave function")
            .hint("take a larger `shift` or more samples")
    })?;
    let mut change = vec![0.0; p];
    for (a, direction) in directions.iter().enumerate() {
        let share = (vectors[(a + 1) * d + best] / vectors[best]).re;
        direction.iter().enumerate().for_each(|(i, x)| change[active[i]] += scaled(i, share * x));
    }
    Ok(change)
}

/// A configuration under other parameters: `ln |Psi'/Psi|^2`, and the local energies before and after.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reweighted {
    log: f64,
    before: f64,
    after: f64,
}

impl Broadcast for Reweighted {
    fn bytes(&self) -> Vec<u8> {
        [self.log, self.before, self.after].bytes()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        <[f64; 3]>::of(bytes).map(|[log, before, after]| Reweighted { log, before, after })
    }
}

/// Walkers at their places, with other parameters of their Jastrow factors.
///
/// # Errors
/// When there are not as many parameters, one is out of range, or a walker sits on a node.
pub fn reweighted<S: Amplitude>(
    hamiltonian: &Hamiltonian,
    walkers: &mut Walkers<S>,
    values: &[f64],
) -> Result<Vec<Reweighted>> {
    let psi = walkers.psi().clone();
    let other = psi.with_parameters(values)?;
    let one = |_: usize, walker: &super::Configuration<S>| -> Result<Reweighted> {
        let value = |psi: &super::SlaterJastrow<S>| psi.jastrow().value(&walker.positions);
        let energy = |psi| hamiltonian.local_energy(psi, walker).map(|e| e.total());
        Ok(Reweighted {
            log: 2.0 * (value(&other) - value(&psi)),
            before: energy(&psi)?,
            after: energy(&other)?,
        })
    };
    walkers.each(one)
}

/// The same on a lattice.
///
/// # Errors
/// As [`reweighted`].
pub fn lattice_reweighted<S: Amplitude>(
    sum: &LocalSum,
    walkers: &mut LatticeWalkers<S>,
    values: &[f64],
) -> Result<Vec<Reweighted>> {
    let state = walkers.psi().clone();
    let other = state.with_parameters(values)?;
    let one = |_: usize, walker: &super::lattice::OccupiedSites<S>| {
        Ok(Reweighted {
            log: 2.0 * (other.log(walker).0 - state.log(walker).0),
            before: sum.local(&state, walker).re,
            after: sum.local(&other, walker).re,
        })
    };
    walkers.each(one)
}

/// What correlated samples predict for other parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Promise {
    /// The energy by reweighting.
    pub energy: f64,
    /// This energy less that of the present parameters.
    pub change: f64,
    /// The standard error of the change.
    pub error: f64,
    /// The effective share of the samples, `(sum w)^2/(n sum w^2)` of their weights w.
    pub share: f64,
}

/// The energy by reweighting, and its difference to the present energy, which is known far better than either.
///
/// # Errors
/// For fewer than two samples.
pub fn promised(all: &[Reweighted]) -> Result<Promise> {
    if all.len() < 2 {
        return Err(Error::input(format!("{} correlated samples", all.len())).hint("two are needed at least"));
    }
    let n = all.len() as f64;
    let highest = all.iter().map(|x| x.log).fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = all.iter().map(|x| (x.log - highest).exp()).collect();
    let (sum, squares) = weights.iter().fold((0.0, 0.0), |(a, b), w| (a + w, b + w * w));
    let energy = all.iter().zip(&weights).map(|(x, w)| w * x.after).sum::<f64>() / sum;
    let before = all.iter().map(|x| x.before).sum::<f64>() / n;
    let apart = |(x, w): (&Reweighted, &f64)| w * n / sum * (x.after - energy) - (x.before - before);
    let variance = all.iter().zip(&weights).map(apart).map(|d| d * d).sum::<f64>() / (n - 1.0);
    Ok(Promise {
        energy,
        change: energy - before,
        error: (variance / n).sqrt(),
        share: sum * sum / (n * squares),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up sample whose energy is `1 + (a - 2)^2`-like: the local energy grows with O.
    fn sample(slope: f64) -> Vec<ParameterSample> {
        let one = |k: i32| {
            let x = f64::from(k) / 50.0;
            ParameterSample { energy: -1.0 + slope * x, logs: vec![x], energies: vec![0.0] }
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
            let idle = |s: ParameterSample| ParameterSample {
                logs: vec![s.logs[0], 0.0],
                energies: vec![0.0; 2],
                ..s
            };
            let both: Vec<ParameterSample> = all.into_iter().map(idle).collect();
            let step = linear_method(&both, 1.0).unwrap();
            assert!((step[0] - linear).abs() < 1e-9 * linear.abs() && step[1].abs() < 1e-9, "{step:?}");
        }
        assert!(stochastic_reconfiguration(&[], 0.1, 0.0).is_err());
    }

    /// Two parameters that share a sample, in units that differ by 1e6: the same step, by either method.
    #[test]
    fn steps_know_no_units() {
        let numbers = |k: u64| crate::number::philox::normals(crate::number::philox::words(3, 9, k, 0));
        let drawn = |k: u64| {
            let ((x, y), (z, noise)) = (numbers(2 * k), numbers(2 * k + 1));
            let logs = vec![x, 0.6 * x + 0.8 * y];
            let energies = vec![0.3 * z + 0.4 * x, 0.5 * z - 0.2 * y];
            ParameterSample { energy: -1.0 + 0.3 * x - 0.2 * y + 0.1 * noise, logs, energies }
        };
        let all: Vec<ParameterSample> = (0..2000).map(drawn).collect();
        let scales = [1e-3, 1e3];
        let scaled = |x: &[f64]| x.iter().zip(scales).map(|(x, s)| x * s).collect();
        let other: Vec<ParameterSample> = all
            .iter()
            .map(|s| ParameterSample {
                energy: s.energy,
                logs: scaled(&s.logs),
                energies: scaled(&s.energies),
            })
            .collect();
        for method in [
            (|s: &[ParameterSample]| linear_method(s, 0.05).unwrap()) as fn(&[ParameterSample]) -> Vec<f64>,
            |s| linear_method(s, 0.0).unwrap(),
            |s| stochastic_reconfiguration(s, 0.1, 0.01).unwrap(),
        ] {
            let (a, b) = (method(&all), method(&other));
            for k in 0..2 {
                assert!((b[k] * scales[k] - a[k]).abs() < 1e-9 * (a[0].abs() + a[1].abs()), "{a:?} {b:?}");
            }
        }
    }

    /// Gaussian samples of |Psi|^2 = exp(-x^2) reweighted to exp(-a x^2): E_L = a/2 + (1 - a^2) x^2/2, E = (a + 1/a)/4.
    #[test]
    fn reweighting_a_gaussian() {
        let a: f64 = 1.2;
        let x = |k: u64| {
            crate::number::philox::normals(crate::number::philox::words(4, 9, k, 0)).0 * 0.5f64.sqrt()
        };
        let local = |a: f64, x: f64| 0.5 * a + 0.5 * (1.0 - a * a) * x * x;
        let all: Vec<Reweighted> = (0..20_000)
            .map(x)
            .map(|x| Reweighted { log: (1.0 - a) * x * x, before: local(1.0, x), after: local(a, x) })
            .collect();
        let found = promised(&all).unwrap();
        assert!(
            (found.energy - 0.25 * (a + 1.0 / a)).abs() < 4.0 * found.error && found.error < 2e-3,
            "{found:?}"
        );
        // (sum w)^2/(n sum w^2) of these weights is sqrt(2 a - 1)/a.
        assert!((found.share - (2.0 * a - 1.0).sqrt() / a).abs() < 0.01, "{found:?}");
        assert!(promised(&all[..1]).is_err());
    }
}
