//! Walkers on a device: which wave functions it takes (those with orbitals on splines), and how sweeps and energies are handed
//! to it.

use super::amplitude::Amplitude;
use super::ensemble::{Resident, Swept};
use super::scheme::{Proposal, Scheme, Screen, Sweep};
use super::wavefunction::SlaterJastrow;
use crate::backend::walkers::{DeviceWalkers, Energies, EnergySpec, Order, Sweeps, WalkersSpec};
use crate::error::Result;
use crate::number::DType;

/// Walkers of a Slater-Jastrow wave function that live on a device.
pub struct OnDevice(Box<dyn DeviceWalkers>);

impl OnDevice {
    /// Walkers at these places, if the wave function is one that a device takes and its orbitals live on one.
    pub fn new<S: Amplitude>(
        psi: &SlaterJastrow<S>,
        places: &[Vec<[f64; 3]>],
        seed: u64,
        first: u32,
    ) -> Result<Option<OnDevice>> {
        let (Some(spec), Some(splines)) = (spec(psi, places, seed, first), psi.deciding().splines()) else {
            return Ok(None);
        };
        Ok(splines.evaluator().walkers(spec)?.map(OnDevice))
    }

    /// The energies of all walkers.
    pub fn energies(&mut self, spec: &EnergySpec) -> Result<Vec<Energies>> {
        self.0.energies(spec)
    }

    /// Queues one of the products of matrices that sweeps are made of.
    pub fn product(&mut self) -> Result<()> {
        self.0.product()
    }
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
    let (pairs, bodies) = psi.jastrow().spec();
    let (fillings, products) = psi.expansion();
    Some(WalkersSpec {
        complex,
        k: splines.wave_vector(),
        fillings,
        products,
        images: cell.images(),
        inverse: cell.inverse(),
        pairs,
        bodies,
        energies: (!std::ptr::eq(splines, exact)).then(|| exact.evaluator().clone()),
        seed,
        first,
        positions: places.to_vec(),
        pass: 0,
    })
}

fn order(sweep: &Sweep) -> Order {
    match sweep.scheme {
        Scheme::ParticleByParticle => Order::ParticleByParticle,
        Scheme::LookAhead => Order::LookAhead,
        Scheme::QuasiSimultaneous => Order::QuasiSimultaneous,
        Scheme::Configuration => Order::Configuration,
        Scheme::DelayedAcceptance => {
            Order::DelayedAcceptance { group: sweep.group, barker: sweep.screen == Screen::Barker }
        }
    }
}

impl<S: Amplitude> Resident<SlaterJastrow<S>> for OnDevice {
    fn sweeps(&mut self, sweep: &Sweep, from: u64, count: u64, fresh: u64) -> Result<Swept<Vec<[f64; 3]>>> {
        sweep.check()?;
        let (order, uniform) = (order(sweep), sweep.proposal == Proposal::Uniform);
        let (step, drift) = (sweep.step, sweep.drift);
        let outcome = self.0.sweeps(Sweeps { order, step, uniform, drift, from, count, fresh })?;
        Ok(Swept { places: outcome.positions, moved: outcome.moved, error: outcome.error })
    }

    fn refresh(&mut self) -> Result<f64> {
        self.0.refresh()
    }
}
