//! Walkers on a device: which wave functions it takes (one determinant a spin, orbitals on splines), and how sweeps and energies
//! are handed to it.

use super::amplitude::Amplitude;
use super::ensemble::{Resident, Swept};
use super::scheme::{Proposal, Scheme, Sweep};
use super::wavefunction::SlaterJastrow;
use crate::backend::walkers::{DeviceWalkers, Energies, EnergySpec, Order, Sweeps, WalkersSpec};
use crate::error::Result;
use crate::number::DType;

/// Walkers of a Slater-Jastrow wave function that live on a device.
pub struct OnDevice(Box<dyn DeviceWalkers>);

impl OnDevice {
    /// Whether a device makes such sweeps.
    pub fn makes(sweep: &Sweep) -> bool {
        !sweep.drift && order(sweep.scheme).is_some()
    }

    /// Walkers at these places, if the wave function is one that a device takes and its orbitals live on one.
    pub fn new<S: Amplitude>(
        psi: &SlaterJastrow<S>,
        places: &[Vec<[f64; 3]>],
        seed: u64,
        first: u32,
    ) -> Result<Option<OnDevice>> {
        let (deciding, exact) = (psi.deciding().splines(), psi.orbitals().splines());
        let (Some(splines), Some(exact), Some(fillings)) = (deciding, exact, psi.filled()) else {
            return Ok(None);
        };
        let complex = S::DTYPE == DType::C64;
        let one = std::ptr::eq(splines, exact);
        let Some(cell) = psi.orbitals().cell() else { return Ok(None) };
        let alike = splines.is_complex() == complex
            && exact.is_complex() == complex
            && splines.wave_vector() == exact.wave_vector();
        if !alike {
            return Ok(None);
        }
        let (pairs, bodies) = psi.jastrow().spec();
        let spec = WalkersSpec {
            complex,
            k: splines.wave_vector(),
            fillings: fillings.map(<[usize]>::to_vec),
            images: cell.images(),
            inverse: cell.inverse(),
            pairs,
            bodies,
            energies: (!one).then(|| exact.evaluator().clone()),
            seed,
            first,
            positions: places.to_vec(),
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

fn order(scheme: Scheme) -> Option<Order> {
    match scheme {
        Scheme::ParticleByParticle => Some(Order::ParticleByParticle),
        Scheme::LookAhead => Some(Order::LookAhead),
        Scheme::QuasiSimultaneous => Some(Order::QuasiSimultaneous),
        Scheme::Configuration | Scheme::DelayedAcceptance => None,
    }
}

impl<S: Amplitude> Resident<SlaterJastrow<S>> for OnDevice {
    fn sweeps(&mut self, sweep: &Sweep, from: u64, count: u64, fresh: u64) -> Result<Swept<Vec<[f64; 3]>>> {
        sweep.check()?;
        let order = order(sweep.scheme).unwrap_or(Order::LookAhead);
        let uniform = sweep.proposal == Proposal::Uniform;
        let outcome = self.0.sweeps(Sweeps { order, step: sweep.step, uniform, from, count, fresh })?;
        Ok(Swept { places: outcome.positions, moved: outcome.moved, error: outcome.error })
    }

    fn refresh(&mut self) -> Result<f64> {
        self.0.refresh()
    }
}
