//! Walkers on a device: which wave functions it takes (those with orbitals on splines), and how they are handed to it.

use super::amplitude::Amplitude;
use super::ensemble::Resident;
use super::scheme::Sweep;
use super::wavefunction::SlaterJastrow;
use crate::backend::walkers::{DeviceWalkers, SweepResult, WalkersSpec, monte_carlo};
use crate::error::Result;
use crate::number::DType;

/// Walkers of a Slater-Jastrow wave function that live on a device.
pub type OnDevice = Box<dyn DeviceWalkers>;

/// Walkers at these places, if the wave function is one that a device takes and its orbitals live on one.
///
/// # Errors
/// A failure of the device.
pub fn on_device<S: Amplitude>(
    psi: &SlaterJastrow<S>,
    places: &[Vec<[f64; 3]>],
    seed: u64,
    first: u32,
) -> Result<Option<OnDevice>> {
    match (spec(psi, places, seed, first), psi.deciding().splines()) {
        (Some(spec), Some(splines)) => monte_carlo(splines.device())?.walkers(spec),
        _ => Ok(None),
    }
}

/// The shares of the ranks in walkers of a wave function that a device takes; none if they are equal.
pub fn rank_shares<S: Amplitude>(psi: &SlaterJastrow<S>) -> Option<Vec<f64>> {
    spec(psi, &[], 0, 0)?;
    psi.deciding().splines()?.device().distributed()?.walkers()
}

/// A wave function with its walkers for a device; None if its orbitals are not splines.
pub fn spec<S: Amplitude>(
    psi: &SlaterJastrow<S>,
    places: &[Vec<[f64; 3]>],
    seed: u64,
    first: u32,
) -> Option<WalkersSpec> {
    let (splines, exact) = (psi.deciding().splines()?, psi.orbitals().splines()?);
    let cell = psi.orbitals().cell()?;
    let complex = S::DTYPE == DType::C64;
    let alike = splines.is_complex() == complex
        && exact.is_complex() == complex
        && splines.wave_vector() == exact.wave_vector();
    if !alike {
        return None;
    }
    let (fillings, products) = psi.expansion();
    Some(WalkersSpec {
        orbitals: splines.evaluator().clone(),
        complex,
        k: splines.wave_vector(),
        fillings,
        products,
        images: cell.images().clone(),
        inverse: cell.inverse(),
        pairs: psi.jastrow().pairs().to_vec(),
        bodies: psi.jastrow().bodies().map(|(centre, radial)| (centre, radial.clone())).collect(),
        energies: (!std::ptr::eq(splines, exact)).then(|| exact.evaluator().clone()),
        seed,
        first,
        positions: places.to_vec(),
        pass: 0,
    })
}

impl<S: Amplitude> Resident<SlaterJastrow<S>> for OnDevice {
    fn sweeps(
        &mut self,
        sweep: &Sweep,
        from: u64,
        count: u64,
        fresh: u64,
    ) -> Result<SweepResult<Vec<[f64; 3]>>> {
        sweep.check()?;
        (**self).sweeps(sweep, from, count, fresh)
    }

    fn refresh(&mut self) -> Result<f64> {
        (**self).refresh()
    }
}
