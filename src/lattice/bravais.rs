//! The lattices that have names. All are periodic when made; lengths are in lattice constants (the nearest-neighbour
//! distance for chain, square, triangular and hypercubic; the Bravais vector for honeycomb and kagome; the conventional
//! cube for bcc, fcc and diamond).

use super::lattice::{Bond, Lattice, LatticeSite};
use crate::error::Result;

/// Sites "A", "B", ... at the given positions.
fn sites(positions: &[&[f64]]) -> Vec<LatticeSite> {
    positions
        .iter()
        .enumerate()
        .map(|(i, p)| LatticeSite { name: char::from(b'A' + i as u8).to_string(), position: p.to_vec() })
        .collect()
}

/// Bonds from (shift, from, to).
fn bonds(list: &[(&[i64], usize, usize)]) -> Vec<Bond> {
    list.iter().map(|&(shift, from, to)| Bond { shift: shift.into(), from, to }).collect()
}

fn vectors(list: &[&[f64]]) -> Vec<Vec<f64>> {
    list.iter().map(|v| v.to_vec()).collect()
}

impl Lattice {
    /// A chain of `n` sites; two neighbours a site.
    ///
    /// # Errors
    /// When `n` is 0. The other constructors fail likewise, and when the sites are too many to number.
    pub fn chain(n: usize) -> Result<Self> {
        Self::hypercubic(&[n]).map(|l| l.called("chain"))
    }

    /// The square lattice; four neighbours a site.
    ///
    /// # Errors
    /// As [`Lattice::chain`].
    pub fn square(x: usize, y: usize) -> Result<Self> {
        Self::hypercubic(&[x, y]).map(|l| l.called("square"))
    }

    /// The simple cubic lattice; six neighbours a site.
    ///
    /// # Errors
    /// As [`Lattice::chain`].
    pub fn cubic(x: usize, y: usize, z: usize) -> Result<Self> {
        Self::hypercubic(&[x, y, z]).map(|l| l.called("cubic"))
    }

    /// The hypercubic lattice of as many directions as sizes; two neighbours a direction.
    ///
    /// # Errors
    /// As [`Lattice::chain`], and for no size or more than [`super::MAX_DIMENSION`].
    pub fn hypercubic(cells: &[usize]) -> Result<Self> {
        let d = cells.len();
        let unit = |i: usize| (0..d).map(|j| i64::from(i == j)).collect::<Vec<i64>>();
        let vectors = (0..d).map(|i| unit(i).iter().map(|&x| x as f64).collect()).collect();
        let bonds = (0..d).map(|i| Bond { shift: unit(i).into(), from: 0, to: 0 }).collect();
        Self::custom("hypercubic", vectors, sites(&[&vec![0.0; d]]), bonds, cells.to_vec())
    }

    /// The triangular lattice, vectors (1, 0) and (1/2, sqrt(3)/2); six neighbours a site.
    ///
    /// # Errors
    /// As [`Lattice::chain`].
    pub fn triangular(x: usize, y: usize) -> Result<Self> {
        let h = 3f64.sqrt() / 2.0;
        let bonds = bonds(&[(&[1, 0], 0, 0), (&[0, 1], 0, 0), (&[-1, 1], 0, 0)]);
        Self::custom(
            "triangular",
            vectors(&[&[1.0, 0.0], &[0.5, h]]),
            sites(&[&[0.0, 0.0]]),
            bonds,
            vec![x, y],
        )
    }

    /// The honeycomb lattice (graphene), vectors (1, 0) and (1/2, sqrt(3)/2), sublattices A at the origin and B at
    /// (1/2, 1/(2 sqrt 3)), a distance 1/sqrt(3) apart; three neighbours a site.
    ///
    /// # Errors
    /// As [`Lattice::chain`].
    pub fn honeycomb(x: usize, y: usize) -> Result<Self> {
        let h = 3f64.sqrt() / 2.0;
        let bonds = bonds(&[(&[0, 0], 0, 1), (&[-1, 0], 0, 1), (&[0, -1], 0, 1)]);
        Self::custom(
            "honeycomb",
            vectors(&[&[1.0, 0.0], &[0.5, h]]),
            sites(&[&[0.0, 0.0], &[0.5, h / 3.0]]),
            bonds,
            vec![x, y],
        )
    }

    /// The kagome lattice, vectors (1, 0) and (1/2, sqrt(3)/2), sites at the origin and at half of each vector; four
    /// neighbours a site.
    ///
    /// # Errors
    /// As [`Lattice::chain`].
    pub fn kagome(x: usize, y: usize) -> Result<Self> {
        let h = 3f64.sqrt() / 2.0;
        let bonds = bonds(&[
            (&[0, 0], 0, 1),
            (&[0, 0], 0, 2),
            (&[0, 0], 1, 2),
            (&[-1, 0], 0, 1),
            (&[0, -1], 0, 2),
            (&[1, -1], 1, 2),
        ]);
        Self::custom(
            "kagome",
            vectors(&[&[1.0, 0.0], &[0.5, h]]),
            sites(&[&[0.0, 0.0], &[0.5, 0.0], &[0.25, h / 2.0]]),
            bonds,
            vec![x, y],
        )
    }

    /// The body-centred cubic lattice in its primitive cell, vectors (-1, 1, 1)/2, (1, -1, 1)/2, (1, 1, -1)/2; eight
    /// neighbours a site.
    ///
    /// # Errors
    /// As [`Lattice::chain`].
    pub fn bcc(x: usize, y: usize, z: usize) -> Result<Self> {
        let a = vectors(&[&[-0.5, 0.5, 0.5], &[0.5, -0.5, 0.5], &[0.5, 0.5, -0.5]]);
        let bonds = bonds(&[(&[1, 0, 0], 0, 0), (&[0, 1, 0], 0, 0), (&[0, 0, 1], 0, 0), (&[1, 1, 1], 0, 0)]);
        Self::custom("bcc", a, sites(&[&[0.0; 3]]), bonds, vec![x, y, z])
    }

    /// The face-centred cubic lattice in its primitive cell, vectors (0, 1, 1)/2, (1, 0, 1)/2, (1, 1, 0)/2; twelve
    /// neighbours a site.
    ///
    /// # Errors
    /// As [`Lattice::chain`].
    pub fn fcc(x: usize, y: usize, z: usize) -> Result<Self> {
        let bonds = bonds(&[
            (&[1, 0, 0], 0, 0),
            (&[0, 1, 0], 0, 0),
            (&[0, 0, 1], 0, 0),
            (&[1, -1, 0], 0, 0),
            (&[1, 0, -1], 0, 0),
            (&[0, 1, -1], 0, 0),
        ]);
        Self::custom("fcc", face_centred(), sites(&[&[0.0; 3]]), bonds, vec![x, y, z])
    }

    /// The diamond lattice: fcc with sublattices A at the origin and B at (1, 1, 1)/4; four neighbours a site.
    ///
    /// # Errors
    /// As [`Lattice::chain`].
    pub fn diamond(x: usize, y: usize, z: usize) -> Result<Self> {
        let bonds =
            bonds(&[(&[0, 0, 0], 0, 1), (&[-1, 0, 0], 0, 1), (&[0, -1, 0], 0, 1), (&[0, 0, -1], 0, 1)]);
        Self::custom("diamond", face_centred(), sites(&[&[0.0; 3], &[0.25; 3]]), bonds, vec![x, y, z])
    }

    /// The same lattice under another name.
    pub fn called(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

fn face_centred() -> Vec<Vec<f64>> {
    vectors(&[&[0.0, 0.5, 0.5], &[0.5, 0.0, 0.5], &[0.5, 0.5, 0.0]])
}
