//! Rows for electrons and for holes: what the terms of a model become where it has both (Nambu, Bogoliubov, de Gennes).
//!
//! A site has the rows of its electrons first, then those of its holes. With `h` the Hamiltonian without pairing, the
//! matrix is [[h, D], [D^dagger, -h^*]]: electrons of spin up beside holes of spin down, with
//! `H = sum h (c_up^dagger c_up + c_down^dagger c_down) + sum D_ij c_i,up^dagger c_j,down^dagger + h.c.`, or, where the
//! orbitals have no spin (or both), electrons beside their own holes, with
//! `H = sum h c^dagger c + 1/2 sum D_ij c_i^dagger c_j^dagger + h.c.`.

use super::block::OrbitalBlock;
use crate::error::{Error, Result};
use crate::number::C64;

/// Which particles form pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairedParticles {
    /// Opposite spins, `D_ij = D_ji`.
    Singlet,
    /// Opposite spins, `D_ij = -D_ji`.
    Triplet,
    /// Orbitals as they are, `D_ij = -D_ji`.
    Spinless,
}

/// What the holes of a model are holes of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holes {
    /// Electrons of the other spin.
    OtherSpin,
    /// The model's own orbitals.
    Own,
}

impl PairedParticles {
    /// What the hole rows of a model with such pairs belong to.
    pub fn holes(self) -> Holes {
        match self {
            PairedParticles::Singlet | PairedParticles::Triplet => Holes::OtherSpin,
            PairedParticles::Spinless => Holes::Own,
        }
    }

    /// The sign of `D_ji` against `D_ij`.
    fn sign(self) -> f64 {
        if self == PairedParticles::Singlet { 1.0 } else { -1.0 }
    }

    /// The block of a pair on two sites, `block_ab` for orbital a on the site arrived at and b on that left.
    pub fn on_bond(self, block: &OrbitalBlock) -> OrbitalBlock {
        off_diagonal(block.orbitals(), |a, b| block.get(a, b), |a, b| self.sign() * block.get(a, b).conj())
    }

    /// The block of a pair on one site.
    ///
    /// # Errors
    /// A block without the symmetry of the pair.
    pub fn on_site(self, block: &OrbitalBlock) -> Result<OrbitalBlock> {
        let n = block.orbitals();
        let largest = block.entries().iter().map(|z| z.norm()).fold(0.0, f64::max);
        let off = |k: usize| (block.get(k / n, k % n) - self.sign() * block.get(k % n, k / n)).norm();
        if (0..n * n).any(|k| off(k) > 1e-10 * largest) {
            return Err(match self {
                PairedParticles::Singlet => {
                    Error::input("the pairing of a singlet on one site is not symmetric")
                        .hint("the matrix equals its transpose; a triplet takes the antisymmetric part")
                }
                PairedParticles::Triplet | PairedParticles::Spinless if n == 1 => {
                    Error::input("an orbital pairs with itself only in a singlet")
                        .hint("give the pairing over a bond")
                }
                PairedParticles::Triplet | PairedParticles::Spinless => {
                    Error::input("the pairing of a triplet or without spin is not antisymmetric on one site")
                        .hint("the matrix equals minus its transpose")
                }
            });
        }
        let value = |a: usize, b: usize| (block.get(a, b) + self.sign() * block.get(b, a)) * 0.5;
        Ok(off_diagonal(n, value, |a, b| value(b, a).conj()))
    }
}

fn off_diagonal(
    n: usize,
    upper: impl Fn(usize, usize) -> C64,
    lower: impl Fn(usize, usize) -> C64,
) -> OrbitalBlock {
    OrbitalBlock::from_fn(2 * n, |i, j| match (i < n, j < n) {
        (true, false) => upper(i, j - n),
        (false, true) => lower(i - n, j),
        _ => C64::ZERO,
    })
}

fn diagonal(block: &OrbitalBlock, sign: f64) -> OrbitalBlock {
    let n = block.orbitals();
    OrbitalBlock::from_fn(2 * n, |i, j| match (i < n, j < n) {
        (true, true) => block.get(i, j),
        (false, false) => sign * block.get(i - n, j - n).conj(),
        _ => C64::ZERO,
    })
}

/// A term of both spins, or of orbitals without, for electrons and holes.
pub(super) fn charge(block: &OrbitalBlock) -> OrbitalBlock {
    diagonal(block, -1.0)
}

/// A term that has opposite signs for both spins.
pub(super) fn field(block: &OrbitalBlock) -> OrbitalBlock {
    diagonal(block, 1.0)
}

/// The places of the electrons of each sublattice, and the same for their holes.
pub(super) fn twice(offsets: &[Vec<f64>], n: usize) -> Vec<Vec<f64>> {
    offsets.chunks(n).flat_map(|own| [own, own].concat()).collect()
}

/// The part of the phase of a matrix element that fields and boundaries make, by whether its row and column are holes:
/// the opposite one for holes, none for pairs, whose phase is theirs.
pub(super) fn phase_of(row_hole: bool, column_hole: bool, phase: C64) -> C64 {
    match (row_hole, column_hole) {
        (false, false) => phase,
        (true, true) => phase.conj(),
        _ => C64::ONE,
    }
}
