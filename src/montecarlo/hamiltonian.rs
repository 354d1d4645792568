//! Hamiltonians of electrons in the continuum, in hartree and bohr, and the local energy `E_L = (H Psi)/Psi`.

use std::sync::Arc;

use super::amplitude::Amplitude;
use super::jastrow::Jastrow;
use super::resident::OnDevice;
use super::vectors::{length, minus};
use super::walkers::Walkers;
use super::wavefunction::{Configuration, SlaterJastrow};
use super::{CrystalPotential, Ewald, SimulationCell};
use crate::backend::walkers::{EnergySpec, PairEnergy, PotentialWaves, WalkerEnergies};
use crate::error::{Error, Result};
use crate::number::C64;
use crate::ranks::{self, Broadcast};
use crate::task::parallel;

/// A potential that every electron feels.
pub trait External: Send + Sync {
    /// Its value at a point, in hartree.
    fn at(&self, point: [f64; 3]) -> f64;

    /// The sum of its values at some points.
    fn sum(&self, points: &[[f64; 3]]) -> f64 {
        points.iter().map(|r| self.at(*r)).sum()
    }

    /// The cell that it repeats in; none in open space.
    fn cell(&self) -> Option<&SimulationCell> {
        None
    }

    /// The dimension that it needs, if any.
    fn dimension(&self) -> Option<usize> {
        None
    }

    /// Its Fourier sum for a backend, if it is one.
    fn waves(&self) -> Option<PotentialWaves> {
        None
    }
}

/// A repulsion between electrons.
pub trait Repulsion: Send + Sync {
    /// The energy of two electrons, at a difference vector, in hartree.
    fn between(&self, difference: [f64; 3]) -> f64;

    /// The energy of all electrons.
    fn energy(&self, positions: &[[f64; 3]]) -> f64 {
        let row = |i: usize| (0..i).map(|j| self.between(minus(positions[i], positions[j]))).sum::<f64>();
        (0..positions.len()).map(row).sum()
    }

    /// The cell of its images; none in open space.
    fn cell(&self) -> Option<&SimulationCell> {
        None
    }

    /// Whether it diverges where two electrons meet.
    fn diverges(&self) -> bool {
        true
    }

    /// Its form for a backend whose electrons live in this cell; none if backends do not know it.
    fn spec(&self, _cell: &SimulationCell) -> Option<PairEnergy> {
        None
    }
}

impl External for CrystalPotential {
    fn at(&self, point: [f64; 3]) -> f64 {
        self.sum(&[point])
    }

    fn sum(&self, points: &[[f64; 3]]) -> f64 {
        self.values(points).iter().sum()
    }

    fn cell(&self) -> Option<&SimulationCell> {
        Some(CrystalPotential::cell(self))
    }

    fn waves(&self) -> Option<PotentialWaves> {
        let term = |(n, v): &([i32; 3], C64)| {
            let twice = if n == &[0; 3] { 1.0 } else { 2.0 };
            (*n, [twice * v.re, twice * v.im])
        };
        Some(PotentialWaves {
            inverse: self.cell().inverse(),
            terms: self.terms().iter().map(term).collect(),
        })
    }
}

/// The repulsion of electrons with all images and a neutralising background (Ewald).
#[derive(Debug, Clone)]
pub struct Periodic {
    sums: Ewald,
}

impl Periodic {
    pub fn new(cell: &SimulationCell) -> Periodic {
        Periodic { sums: Ewald::new(cell) }
    }
}

impl Repulsion for Periodic {
    fn between(&self, difference: [f64; 3]) -> f64 {
        self.sums.pair(difference)
    }

    fn energy(&self, positions: &[[f64; 3]]) -> f64 {
        self.sums.energy(&vec![1.0; positions.len()], positions)
    }

    fn cell(&self) -> Option<&SimulationCell> {
        Some(self.sums.cell())
    }

    fn spec(&self, cell: &SimulationCell) -> Option<PairEnergy> {
        (self.sums.cell() == cell).then(|| PairEnergy::Ewald(self.sums.sums()))
    }
}

/// `omega^2 r^2 / 2`.
#[derive(Debug, Clone, Copy)]
pub struct Trap {
    /// Frequency, in hartree.
    pub omega: f64,
}

impl External for Trap {
    fn at(&self, point: [f64; 3]) -> f64 {
        0.5 * self.omega * self.omega * point.iter().map(|x| x * x).sum::<f64>()
    }
}

/// `-Z/|r - R|` of nuclei in open space.
#[derive(Debug, Clone)]
pub struct Nuclei {
    /// Positions in bohr, and charges Z.
    pub nuclei: Vec<([f64; 3], f64)>,
}

impl Nuclei {
    /// The repulsion of the nuclei among themselves, in hartree.
    pub fn repulsion(&self) -> f64 {
        let n = self.nuclei.len();
        let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
        pairs
            .map(|(i, j)| {
                self.nuclei[i].1 * self.nuclei[j].1 / length(minus(self.nuclei[i].0, self.nuclei[j].0))
            })
            .sum()
    }
}

impl External for Nuclei {
    fn at(&self, point: [f64; 3]) -> f64 {
        -self.nuclei.iter().map(|(place, z)| z / length(minus(point, *place))).sum::<f64>()
    }

    fn dimension(&self) -> Option<usize> {
        Some(3)
    }
}

/// `-Z/|r - R|` of the ions of a crystal with all their images, and of a background that neutralises them (Ewald).
#[derive(Debug, Clone)]
pub struct Ions {
    sums: Ewald,
    ions: Vec<([f64; 3], f64)>,
}

impl Ions {
    /// In this cell, at these places with these charges.
    pub fn new(cell: &SimulationCell, ions: Vec<([f64; 3], f64)>) -> Ions {
        Ions { sums: Ewald::new(cell), ions }
    }
}

impl External for Ions {
    fn at(&self, point: [f64; 3]) -> f64 {
        -self.ions.iter().map(|(place, z)| z * self.sums.pair(minus(point, *place))).sum::<f64>()
    }

    fn cell(&self) -> Option<&SimulationCell> {
        Some(self.sums.cell())
    }
}

/// `1/sqrt(r^2 + a^2)` in open space.
#[derive(Debug, Clone, Copy)]
pub struct Coulomb {
    /// a, 0 for Coulomb's own 1/r.
    pub softening: f64,
}

impl Repulsion for Coulomb {
    fn between(&self, [x, y, z]: [f64; 3]) -> f64 {
        1.0 / (x * x + y * y + z * z + self.softening * self.softening).sqrt()
    }

    fn diverges(&self) -> bool {
        self.softening == 0.0
    }
}

/// `(1 - r/L)^3 / r` of the nearest image, with L the radius of the largest sphere in the Wigner-Seitz cell: of
/// finite range, and cheap.
#[derive(Debug, Clone)]
pub struct Truncated {
    pub cell: SimulationCell,
}

impl Repulsion for Truncated {
    fn between(&self, difference: [f64; 3]) -> f64 {
        let r = length(self.cell.minimum_image(difference));
        let left = 1.0 - r / self.cell.wigner_seitz_radius();
        if left <= 0.0 { 0.0 } else { left * left * left / r }
    }

    fn cell(&self) -> Option<&SimulationCell> {
        Some(&self.cell)
    }

    fn spec(&self, cell: &SimulationCell) -> Option<PairEnergy> {
        (self.cell == *cell).then_some(PairEnergy::Truncated)
    }
}

/// Kinetic energy, potentials and a repulsion.
#[derive(Clone)]
pub struct Hamiltonian {
    /// Potentials that every electron feels.
    pub external: Vec<Arc<dyn External>>,
    /// The repulsion of electrons; none if they are independent.
    pub interaction: Option<Arc<dyn Repulsion>>,
    /// A constant, such as the repulsion of the nuclei.
    pub constant: f64,
    /// The name of the Hamiltonian in results.
    pub label: String,
}

/// The local energy of one walker and its parts, in hartree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalEnergy {
    /// `-1/2 sum_i (lap_i Psi)/Psi`, its real part.
    pub kinetic: f64,
    /// The potentials on the electrons, and the constant.
    pub external: f64,
    /// Repulsion of the electrons.
    pub interaction: f64,
}

impl Broadcast for LocalEnergy {
    fn bytes(&self) -> Vec<u8> {
        [self.kinetic, self.external, self.interaction].bytes()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        <[f64; 3]>::of(bytes).map(|[kinetic, external, interaction]| LocalEnergy {
            kinetic,
            external,
            interaction,
        })
    }
}

impl LocalEnergy {
    /// The sum of the parts.
    pub fn total(&self) -> f64 {
        self.kinetic + self.external + self.interaction
    }

    fn checked(self) -> Result<LocalEnergy> {
        if self.total().is_nan() {
            return Err(Error::numeric("the local energy is not a number (NaN)").hint(
                "look for NaN among the coefficients of the orbitals; electrons may sit on one another",
            ));
        }
        Ok(self)
    }
}

impl Hamiltonian {
    /// Potential energy of a configuration: external, interaction.
    fn potential(&self, positions: &[[f64; 3]]) -> (f64, f64) {
        let external: f64 = self.external.iter().map(|v| v.sum(positions)).sum();
        let interaction = self.interaction.as_ref().map_or(0.0, |repulsion| repulsion.energy(positions));
        (external + self.constant, interaction)
    }

    /// The local energy of one walker.
    ///
    /// # Errors
    /// When the walker sits on a node or the energy is no number.
    pub fn local_energy<S: Amplitude>(
        &self,
        psi: &SlaterJastrow<S>,
        walker: &Configuration<S>,
    ) -> Result<LocalEnergy> {
        let kinetic = kinetic(psi, walker)?;
        let (external, interaction) = self.potential(&walker.positions);
        LocalEnergy { kinetic, external, interaction }.checked()
    }

    /// An error unless it acts in the space that the orbitals live in.
    ///
    /// # Errors
    /// Different cells or dimensions, or one of the two periodic and the other not.
    pub fn fits<S: Amplitude>(&self, psi: &SlaterJastrow<S>) -> Result<()> {
        let (own, dimension) = (psi.orbitals().cell(), psi.orbitals().dimension());
        let external = self.external.iter().map(|v| (v.cell(), false));
        for (cell, whole) in external.chain(self.interaction.iter().map(|v| (v.cell(), true))) {
            let what = match (own, cell) {
                (None, None) => continue,
                // A potential may repeat in a smaller cell.
                (Some(a), Some(b)) if a.is_near(b) || !whole && a.is_multiple_of(b) => continue,
                (Some(_), Some(_)) => "orbitals and a Hamiltonian of different cells",
                (Some(_), None) => "orbitals of a periodic cell and a Hamiltonian in open space",
                (None, Some(_)) => "orbitals in open space and a Hamiltonian of a periodic cell",
            };
            return Err(Error::input(what).hint("make both of the same system"));
        }
        if dimension == 1 {
            self.fits_line(psi)?;
        }
        match self.external.iter().find_map(|v| v.dimension()).filter(|&needed| needed != dimension) {
            Some(needed) => {
                Err(Error::input(format!("orbitals of {dimension} and a potential of {needed} dimensions"))
                    .hint("make both of the same system"))
            }
            None => Ok(()),
        }
    }

    /// An error for electrons of opposite spin on a line, where local energies miss what happens when they meet.
    /// There electrons cannot go around one another, and for opposite spins the wave function need not vanish at
    /// contact.
    fn fits_line<S: Amplitude>(&self, psi: &SlaterJastrow<S>) -> Result<()> {
        let (up, down) = psi.electrons();
        if up == 0 || down == 0 {
            return Ok(());
        }
        let (power, slope) = psi.jastrow().contact();
        let apart = "a factor `power` keeps them apart";
        if power != 0.0 && !(power > 0.5) {
            return Err(Error::input(format!(
                "electrons of opposite spin that meet with the power {power} on a line have an infinite kinetic energy"
            ))
            .hint("take a power of 1, or one above 1/2 at least"));
        }
        if power > 0.5 {
            return Ok(());
        }
        if self.interaction.as_ref().is_some_and(|repulsion| repulsion.diverges()) {
            return Err(Error::input(
                "the mean of Coulomb's 1/|x| is infinite for electrons of opposite spin that meet on a line",
            )
            .hint(format!("soften it by `softening`, 1.0 say; {apart}")));
        }
        if slope != 0.0 {
            return Err(Error::input(format!(
                "a kink of slope {slope:.3} where opposite spins meet on a line: the local energy lacks its delta \
                 function"
            ))
            .hint(format!("a factor `polynomial` has no slope there; {apart}, slope and all")));
        }
        Ok(())
    }

    /// The local energies of walkers on a device. The host adds the terms that the device does not know.
    fn on_device(
        &self,
        cell: Option<&SimulationCell>,
        resident: &mut OnDevice,
        places: &[Vec<[f64; 3]>],
    ) -> Result<Vec<LocalEnergy>> {
        let external = match self.external.as_slice() {
            [one] => one.waves(),
            _ => None,
        };
        let pairs = self.interaction.as_ref().and_then(|repulsion| repulsion.spec(cell?));
        let rest = Hamiltonian {
            external: if external.is_some() { Vec::new() } else { self.external.clone() },
            interaction: if pairs.is_some() { None } else { self.interaction.clone() },
            ..self.clone()
        };
        let energies = resident.energies(&EnergySpec { external, pairs })?;
        let one = |k: usize| {
            let energies: &WalkerEnergies = &energies[k];
            let (external, interaction) = rest.potential(&places[k]);
            LocalEnergy {
                kinetic: energies.kinetic,
                external: energies.external + external,
                interaction: energies.interaction + interaction,
            }
            .checked()
        };
        parallel::try_map(energies.len().min(places.len()), one)
    }

    /// The local energies of all walkers, whose inverse matrices are computed anew first.
    ///
    /// # Errors
    /// As [`Hamiltonian::local_energy`].
    pub fn local_energies<S: Amplitude>(&self, walkers: &mut Walkers<S>) -> Result<Vec<LocalEnergy>> {
        walkers.refresh()?;
        let psi = walkers.psi().clone();
        if let Some((resident, places)) = walkers.resident()? {
            return ranks::joined(self.on_device(psi.orbitals().cell(), resident, places));
        }
        walkers.each(|_, w| self.local_energy(&psi, w))
    }
}

/// `-1/2 sum_i [lap_i D/D + lap_i J + |grad_i J|^2 + 2 grad_i J . grad_i D/D]`.
pub(super) fn kinetic<S: Amplitude>(psi: &SlaterJastrow<S>, walker: &Configuration<S>) -> Result<f64> {
    let (gradient, laplacian) = psi.slopes(walker)?;
    Ok(kinetic_with(&gradient, &laplacian, psi.jastrow(), &walker.positions))
}

/// The same from the logarithmic derivatives of the determinants.
pub(super) fn kinetic_with<S: Amplitude>(
    gradient: &[[S; 3]],
    laplacian: &[S],
    jastrow: &Jastrow,
    positions: &[[f64; 3]],
) -> f64 {
    if jastrow.is_empty() {
        return -0.5 * laplacian.iter().map(|l| l.re()).sum::<f64>();
    }
    let slopes = jastrow.slopes(positions);
    let mut sum = 0.0;
    for ((gradient, laplacian), slope) in gradient.iter().zip(laplacian).zip(&slopes) {
        let square: f64 = slope.gradient.iter().map(|g| g * g).sum();
        let cross: f64 = (0..3).map(|k| slope.gradient[k] * gradient[k].re()).sum();
        sum += laplacian.re() + slope.laplacian + square + 2.0 * cross;
    }
    -0.5 * sum
}
