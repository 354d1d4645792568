//! Orbitals as scripts and files hold them: of any source, real or complex.

use std::sync::Arc;

use super::{Fourier, Orbitals, SplineOrbitals};
use crate::number::C64;

/// Orbitals as walkers take them.
#[derive(Clone)]
pub enum OrbitalBasis {
    Real(Arc<dyn Orbitals<f64>>),
    Complex(Arc<dyn Orbitals<C64>>),
}

impl OrbitalBasis {
    pub fn count(&self) -> usize {
        match self {
            OrbitalBasis::Real(o) => o.count(),
            OrbitalBasis::Complex(o) => o.count(),
        }
    }

    /// A label for results.
    pub fn describe(&self) -> String {
        match self {
            OrbitalBasis::Real(o) => o.describe(),
            OrbitalBasis::Complex(o) => o.describe(),
        }
    }

    pub fn is_complex(&self) -> bool {
        matches!(self, OrbitalBasis::Complex(_))
    }
}

/// Where orbitals come from: what else can be made of them.
#[derive(Clone)]
pub enum OrbitalSource {
    /// Sums of plane waves.
    Waves(Arc<Fourier>),
    /// A table on a grid.
    Splines(Arc<SplineOrbitals>),
    /// Real orbitals of any other kind.
    Other(Arc<dyn Orbitals<f64>>),
}

/// Orbitals with their energies, where these are known.
#[derive(Clone)]
pub struct OrbitalSet {
    source: OrbitalSource,
    energies: Option<Arc<Vec<f64>>>,
}

impl OrbitalSet {
    /// Sums of plane waves, whose energies are known.
    pub fn waves(waves: Fourier) -> OrbitalSet {
        let energies = Some(Arc::new(waves.energies().to_vec()));
        OrbitalSet { source: OrbitalSource::Waves(Arc::new(waves)), energies }
    }

    /// Splines; energies if they are known.
    pub fn splines(splines: SplineOrbitals, energies: Option<Vec<f64>>) -> OrbitalSet {
        OrbitalSet { source: OrbitalSource::Splines(Arc::new(splines)), energies: energies.map(Arc::new) }
    }

    /// Real orbitals of another kind.
    pub fn other(orbitals: Arc<dyn Orbitals<f64>>) -> OrbitalSet {
        OrbitalSet { source: OrbitalSource::Other(orbitals), energies: None }
    }

    pub fn source(&self) -> &OrbitalSource {
        &self.source
    }

    /// Their energies in hartree, ascending.
    pub fn energies(&self) -> Option<&[f64]> {
        self.energies.as_ref().map(|e| e.as_slice())
    }

    /// These orbitals as walkers take them.
    pub fn basis(&self) -> OrbitalBasis {
        match &self.source {
            OrbitalSource::Waves(o) if o.is_complex() => OrbitalBasis::Complex(o.clone()),
            OrbitalSource::Waves(o) => OrbitalBasis::Real(o.clone()),
            OrbitalSource::Splines(o) if o.is_complex() => OrbitalBasis::Complex(o.clone()),
            OrbitalSource::Splines(o) => OrbitalBasis::Real(o.clone()),
            OrbitalSource::Other(o) => OrbitalBasis::Real(o.clone()),
        }
    }
}
