//! Operators of the automaton carried along an infinite chain between two states, a matrix for each operator of a bond.
//! The surroundings of single sites hold such matrices as blocks; here they are between any two states, with or without
//! a change of charge.

use faer::Mat;

use super::super::carry::{BondMatrices, add_to_left, add_to_right, put};
use super::super::dense::product;
use super::super::mpo::MpoEntry;
use super::super::space::{ChainSide, ChargeLabel, ConservedNumbers, Space};
use super::super::tensor::MpsTensor;
use super::bonds::BlockLayout;
use super::krylov::gmres;
use crate::error::{Error, Result};
use crate::number::C64;
use crate::number::scalar::norm;

/// The most products of a linear system, and the part of its right side that may be left.
const MOST: usize = 1000;
const LEFT: f64 = 1e-12;

/// A matrix for each operator of a bond. On the left rows belong to the bra, on the right to the ket.
pub(super) type Row = Vec<BondMatrices<C64>>;

/// Two states between which operators are carried, a tensor of each for each site of the cell, and the automaton.
pub(super) struct Chain<'a> {
    pub bra: &'a [MpsTensor<C64>],
    pub ket: &'a [MpsTensor<C64>],
    pub sites: Vec<&'a [MpoEntry]>,
    pub widths: Vec<usize>,
}

/// Past a site to the right: the sum of `O_ij A_i^H x B_j`, with A of the bra and B of the ket.
pub(super) fn to_right(
    entries: &[MpoEntry],
    wide: usize,
    bra: &MpsTensor<C64>,
    ket: &MpsTensor<C64>,
    x: &Row,
) -> Row {
    let mut out = vec![BondMatrices::new(); wide];
    for entry in entries {
        add_to_right(&entry.elements, (bra, ket), Some(&x[entry.left]), &mut out[entry.right]);
    }
    out
}

/// Past a site to the left: the sum of `O_ij B_j x A_i^H`.
pub(super) fn to_left(
    entries: &[MpoEntry],
    wide: usize,
    bra: &MpsTensor<C64>,
    ket: &MpsTensor<C64>,
    x: &Row,
) -> Row {
    let mut out = vec![BondMatrices::new(); wide];
    for entry in entries {
        add_to_left(&entry.elements, (bra, ket), &x[entry.right], &mut out[entry.left]);
    }
    out
}

/// A site between its surroundings: the sum of `O_ij x B_j r`, added to the matrices of `out`.
pub(super) fn on_site(
    entries: &[MpoEntry],
    x: &Row,
    ket: &MpsTensor<C64>,
    r: &Row,
    out: &mut MpsTensor<C64>,
) {
    for entry in entries {
        for (&(b, k), m) in &x[entry.left] {
            let mut wholes: Vec<Option<Vec<(usize, Mat<C64>)>>> = vec![None; ket.fusion.states()];
            for &(i, j, z) in &entry.elements {
                let Some((to, lower)) = ket.part(k, j) else { continue };
                let wholes = wholes[j].get_or_insert_with(|| {
                    let half = product(m.as_ref(), lower);
                    let own = r[entry.right].iter().filter(|e| e.0.0 == to);
                    own.map(|(at, r)| (at.1, product(half.as_ref(), r.as_ref()))).collect()
                });
                let Some((row, part)) = out.fusion.place(b, i) else { continue };
                for (behind, whole) in wholes {
                    if out.rows.get(*behind) == Some(&row) {
                        let mut to = out.matrices[*behind].as_mut().subrows_mut(part.offset, part.dim);
                        to += &*whole * faer::Scale(z);
                    }
                }
            }
        }
    }
}

pub(super) fn sum(mut a: Row, b: Row) -> Row {
    for (a, b) in a.iter_mut().zip(b) {
        b.into_iter().for_each(|(at, m)| put(a, at, m));
    }
    a
}

impl Chain<'_> {
    /// Operators carried past all sites of the cell.
    pub fn cell(&self, side: ChainSide, x: &Row) -> Row {
        let n = self.sites.len();
        (0..n).fold(x.clone(), |x, k| match side {
            ChainSide::Left => to_right(self.sites[k], self.widths[k + 1], &self.bra[k], &self.ket[k], &x),
            ChainSide::Right => {
                let k = n - 1 - k;
                to_left(self.sites[k], self.widths[k], &self.bra[k], &self.ket[k], &x)
            }
        })
    }

    /// The solution of `x = phase (T x + source)`, where T carries past a cell of the chain, among the matrices of a
    /// layout. Between a state and itself T has a fixed point, which is taken out: `same` has the operators that this
    /// concerns, the fixed point, and that of the other side.
    ///
    /// # Errors
    /// When it does not converge, as between states that are the same but were not said to be.
    pub fn geometric(
        &self,
        side: ChainSide,
        layout: &CarriedLayout,
        (phase, source): (C64, &Row),
        same: Option<(&[usize], &BondMatrices<C64>, &BondMatrices<C64>)>,
    ) -> Result<Row> {
        let b: Vec<C64> = layout.flat(source).into_iter().map(|z| phase * z).collect();
        if norm(&b) == 0.0 {
            return Ok(layout.rows(&b));
        }
        let mut map = |v: &[C64]| -> Result<Vec<C64>> {
            crate::task::poll()?;
            let x = layout.rows(v);
            let mut y = self.cell(side, &x);
            if let Some((all, fixed, other)) = same {
                for &at in all {
                    let part = super::bonds::trace(&x[at], other);
                    for (key, m) in fixed {
                        put(&mut y[at], *key, m * faer::Scale(-part));
                    }
                }
            }
            let y = layout.flat(&y);
            Ok(v.iter().zip(&y).map(|(v, y)| v - phase * y).collect())
        };
        let mut x = b.clone();
        let left = gmres(&mut map, &b, &mut x, LEFT * norm(&b), MOST)?;
        if !(left < 1e-6 * norm(&b)) {
            return Err(Error::numeric("the surroundings of an excitation did not converge").hint(
                "the state may be a superposition of several: fewer conserved numbers, a field or a longer cell \
                 chooses one",
            ));
        }
        Ok(layout.rows(&x))
    }
}

/// Which matrices a vector of operators at the cell's edge holds.
pub(super) struct CarriedLayout(Vec<Option<BlockLayout>>);

impl CarriedLayout {
    /// Between a bra and a ket, but for the operator `without`. The label of the bra is that of the ket and the
    /// operator's.
    pub fn new(
        symmetry: &ConservedNumbers,
        side: ChainSide,
        (bra, ket): (&Space, &Space),
        charges: &[ChargeLabel],
        without: Option<usize>,
    ) -> CarriedLayout {
        let one = |charge: &ChargeLabel| {
            let mut all = Vec::new();
            for (k, (q, columns)) in ket.iter().enumerate() {
                if let Some(b) = bra.find(&symmetry.add(q, charge)) {
                    all.push(match side {
                        ChainSide::Left => ((b, k), (bra.dim(b), columns)),
                        ChainSide::Right => ((k, b), (columns, bra.dim(b))),
                    });
                }
            }
            BlockLayout::of(all)
        };
        let pick = |(k, charge): (usize, &ChargeLabel)| (Some(k) != without).then(|| one(charge));
        CarriedLayout(charges.iter().enumerate().map(pick).collect())
    }

    pub fn flat(&self, x: &Row) -> Vec<C64> {
        self.0.iter().zip(x).flat_map(|(l, x)| l.as_ref().map_or(Vec::new(), |l| l.flat(x))).collect()
    }

    pub fn rows(&self, v: &[C64]) -> Row {
        let mut at = 0;
        let one = |l: &Option<BlockLayout>| match l {
            Some(l) => {
                let from = at;
                at += l.len();
                l.matrices(&v[from..at])
            }
            None => BondMatrices::new(),
        };
        self.0.iter().map(one).collect()
    }
}
