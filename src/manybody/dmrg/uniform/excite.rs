//! Excitations of an infinite chain by the quasi-particle ansatz (Haegeman, Pirvu, Weir, Cirac, Osborne, Verschelde,
//! Verstraete, Phys. Rev. B 85, 100408 (2012)): one site's matrices changed, in a superposition of all cells with a
//! momentum. Between two ground states the excitation is a kink.

use std::sync::Arc;

use faer::Mat;

use super::super::carry::BondMatrices;
use super::super::dense::{adjoint_product, product};
use super::super::space::{ChainSide, ChargeLabel};
use super::super::tensor::{MpsTensor, adjoint};
use super::automaton::Repeated;
use super::bonds::{diagonal, identity, trace};
use super::carried::{CarriedLayout, Chain, Row, on_site, sum, to_left, to_right};
use super::environment::need_memory;
use super::krylov::lowest;
use super::state::Uniform;
use crate::error::{Error, Result};
use crate::number::philox::{self, Stream};
use crate::number::{C64, memory};

/// The row of a sector that nothing leads to.
const NOWHERE: usize = usize::MAX;

/// What an excitation is asked for.
pub struct ExcitationOptions {
    /// The phase from a cell to the next.
    pub phase: f64,
    /// Twice the numbers that it has more than the ground state.
    pub charge: ChargeLabel,
    pub count: usize,
    pub tol: f64,
    /// The most products of a search.
    pub most: usize,
}

/// One side of a ground state: the operators carried at every bond of the cell.
fn half(psi: &Uniform<C64>, h: &Repeated, side: ChainSide) -> Result<Vec<Row>> {
    let n = psi.count();
    let symmetry = &psi.cell.symmetry;
    let bond = h.mpo.bond(0);
    let (Some(start), Some(done)) = (bond.start, bond.done) else {
        return Err(Error::internal("an automaton without a beginning or an end"));
    };
    let (form, one, all) = match side {
        ChainSide::Left => (&psi.left, start, done),
        ChainSide::Right => (&psi.right, done, start),
    };
    let chain = chain(h, form, form);
    let space = &psi.spaces[0];
    let unit: BondMatrices<C64> = identity(space);
    let mut fresh: Row = vec![BondMatrices::new(); bond.charges.len()];
    fresh[one] = unit.clone();
    let mut source = chain.cell(side, &fresh);
    let density = match side {
        ChainSide::Left => psi.density_left(0),
        ChainSide::Right => psi.density_right(0),
    };
    let layout = CarriedLayout::new(symmetry, side, (space, space), &bond.charges, Some(one));
    source[one] = BondMatrices::new();
    // What grows with the number of cells, the energy, is what is left of the fixed point.
    let mut whole = chain.geometric(side, &layout, (C64::ONE, &source), Some((&[all], &unit, &density)))?;
    whole[one] = unit.clone();
    let shift = trace(&whole[all], &density);
    for (at, m) in &unit {
        if let Some(own) = whole[all].get_mut(at) {
            *own -= m * faer::Scale(shift);
        }
    }
    let mut rows = vec![whole];
    for k in 0..n {
        let last = &rows[rows.len() - 1];
        rows.push(match side {
            ChainSide::Left => to_right(chain.sites[k], chain.widths[k + 1], &form[k], &form[k], last),
            ChainSide::Right => {
                let k = n - 1 - k;
                to_left(chain.sites[k], chain.widths[k], &form[k], &form[k], last)
            }
        });
    }
    if side == ChainSide::Right {
        rows.reverse();
    }
    Ok(rows)
}

fn chain<'a>(h: &'a Repeated, bra: &'a [MpsTensor<C64>], ket: &'a [MpsTensor<C64>]) -> Chain<'a> {
    let n = bra.len();
    Chain {
        bra,
        ket,
        sites: (0..n).map(|k| h.mpo.tensor(k)).collect(),
        widths: (0..=n).map(|k| h.mpo.bond(k).charges.len()).collect(),
    }
}

/// The energy of the surroundings of a bond.
fn around(left: &Row, centre: &BondMatrices<C64>, right: &Row) -> f64 {
    let mut energy = C64::ZERO;
    for (l, r) in left.iter().zip(right) {
        for (&(b, k), m) in l {
            let Some(c) = centre.get(&(k, k)) else { continue };
            let half = product(m.as_ref(), c.as_ref());
            let (Some(r), Some(bra)) = (r.get(&(k, b)), centre.get(&(b, b))) else { continue };
            let whole = product(half.as_ref(), r.as_ref());
            for j in 0..bra.ncols() {
                for i in 0..bra.nrows() {
                    energy += bra[(i, j)].conj() * whole[(i, j)];
                }
            }
        }
    }
    energy.re
}

/// An orthonormal basis of what is orthogonal to the columns of an isometry.
fn beyond(a: &Mat<C64>) -> Mat<C64> {
    let (rows, own) = (a.nrows(), a.ncols());
    let q = a.as_ref().qr().compute_Q();
    q.as_ref().subcols(own, rows - own).to_owned()
}

/// The effective Hamiltonian of the change of one site's matrices.
pub struct Excitations {
    h: Arc<Repeated>,
    left: Uniform<C64>,
    right: Uniform<C64>,
    lefts: Vec<Row>,
    rights: Vec<Row>,
    reference: f64,
    same: bool,
    phase: C64,
    /// For each site and each sector behind it, the directions that the ground state does not have.
    free: Vec<Vec<Mat<C64>>>,
    empty: Vec<MpsTensor<C64>>,
}

impl Excitations {
    /// Above a ground state, or between it on the left and another one on the right.
    ///
    /// # Errors
    /// When the states belong to other cells; when a linear system does not converge.
    pub fn new(
        h: &Arc<Repeated>,
        left: &Uniform<C64>,
        right: Option<&Uniform<C64>>,
        asked: &ExcitationOptions,
    ) -> Result<Excitations> {
        let other = right.unwrap_or(left);
        if !h.cell.same(&left.cell) || !h.cell.same(&other.cell) {
            return Err(Error::input(
                "the states belong to other sites or numbers than the Hamiltonian's cell",
            )
            .hint("all need the same cell, with the same conserved numbers"));
        }
        need_memory::<C64>(h, &left.spaces, 2)?;
        let lefts = half(left, h, ChainSide::Left)?;
        let energy = |psi: &Uniform<C64>, left: &Row| -> Result<f64> {
            let centre = diagonal(psi.centre[0].to_vec());
            Ok(around(left, &centre, &half(psi, h, ChainSide::Right)?[0]))
        };
        let mut reference = energy(left, &lefts[0])?;
        if right.is_some() {
            reference = 0.5 * (reference + energy(other, &half(other, h, ChainSide::Left)?[0])?);
        }
        // Numbers to the left of what lies behind the change are larger by its own.
        let shifted = other.charged(&asked.charge)?;
        let rights = half(&shifted, h, ChainSide::Right)?;
        let n = left.count();
        let (mut free, mut empty) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for site in 0..n {
            let behind = left.behind(site);
            let own = &left.left[site];
            let space = &shifted.spaces[behind];
            // Sectors that nothing leads to keep their numbers, with matrices without rows.
            let row = |q: &ChargeLabel| own.fusion.space().find(q).unwrap_or(NOWHERE);
            let rows: Vec<usize> = space.iter().map(|(q, _)| row(q)).collect();
            let size = |row: usize| if row == NOWHERE { 0 } else { own.fusion.space().dim(row) };
            let matrices = rows.iter().zip(space.dims()).map(|(&row, &d)| Mat::zeros(size(row), d)).collect();
            let tensor = MpsTensor {
                before: own.before.clone(),
                behind: space.clone(),
                fusion: own.fusion.clone(),
                rows,
                matrices,
            };
            let known = |row: &usize| own.rows.iter().position(|r| r == row);
            let basis = |row: &usize| match known(row) {
                Some(at) => beyond(&own.matrices[at]),
                None => Mat::identity(size(*row), size(*row)),
            };
            free.push(tensor.rows.iter().map(basis).collect());
            empty.push(tensor);
        }
        let same = right.is_none() && asked.charge == left.cell.symmetry.zero();
        Ok(Excitations {
            h: h.clone(),
            left: left.clone(),
            right: shifted,
            lefts,
            rights,
            reference,
            same,
            phase: C64::from_polar(1.0, asked.phase),
            free,
            empty,
        })
    }

    /// How many numbers a change has.
    pub fn dim(&self) -> usize {
        let one = |(f, t): (&Vec<Mat<C64>>, &MpsTensor<C64>)| -> usize {
            f.iter().zip(&t.matrices).map(|(f, m)| f.ncols() * m.ncols()).sum()
        };
        self.free.iter().zip(&self.empty).map(one).sum()
    }

    fn tensors(&self, x: &[C64]) -> Vec<MpsTensor<C64>> {
        let mut at = 0;
        let mut out = self.empty.clone();
        for (tensor, free) in out.iter_mut().zip(&self.free) {
            for (m, f) in tensor.matrices.iter_mut().zip(free) {
                let (rows, columns) = (f.ncols(), m.ncols());
                let own = Mat::from_fn(rows, columns, |i, j| x[at + j * rows + i]);
                at += rows * columns;
                *m = product(f.as_ref(), own.as_ref());
            }
        }
        out
    }

    fn flat(&self, tensors: &[MpsTensor<C64>]) -> Vec<C64> {
        let mut out = Vec::with_capacity(self.dim());
        for (tensor, free) in tensors.iter().zip(&self.free) {
            for (m, f) in tensor.matrices.iter().zip(free) {
                let own = adjoint_product(f.as_ref(), m.as_ref());
                (0..own.ncols()).for_each(|j| out.extend(own.col(j).iter().copied()));
            }
        }
        out
    }

    /// `(H - E) x`.
    fn times(&self, x: &[C64]) -> Result<Vec<C64>> {
        let n = self.left.count();
        let symmetry = &self.left.cell.symmetry;
        let b = self.tensors(x);
        let mixed = chain(&self.h, &self.left.left, &self.right.right);
        let back = chain(&self.h, &self.right.right, &self.left.left);
        let bond = self.h.mpo.bond(0);
        let (start, done) = (bond.start.unwrap_or(0), bond.done.unwrap_or(0));
        let ends = [start, done];
        let centre: BondMatrices<C64> = diagonal(self.left.centre[0].to_vec());
        let other: BondMatrices<C64> =
            diagonal(self.left.centre[0].iter().map(|c| adjoint(c.as_ref())).collect());
        let nothing = || vec![BondMatrices::new(); bond.charges.len()];
        let sites = &mixed.sites;
        // The change lies to the left of the bra's ...
        let past = |mut v: Row, upto: usize| -> Row {
            for k in 0..upto {
                v = self.left_past(&mixed, &b, k, &v);
            }
            v
        };
        let layout = CarriedLayout::new(
            symmetry,
            ChainSide::Left,
            (&self.left.spaces[0], &self.right.spaces[0]),
            &bond.charges,
            Some(start),
        );
        let known = self.same.then_some((&ends[1..], &centre, &other));
        let source = past(nothing(), n);
        let before = mixed.geometric(ChainSide::Left, &layout, (self.phase.conj(), &source), known)?;
        // ... or to the right.
        let layout = CarriedLayout::new(
            symmetry,
            ChainSide::Right,
            (&self.right.spaces[0], &self.left.spaces[0]),
            &bond.charges,
            None,
        );
        let known = self.same.then_some((&ends[..], &centre, &other));
        let source = (0..n).rev().fold(nothing(), |v, k| self.right_past(&back, &b, k, &v));
        let behind = back.geometric(ChainSide::Right, &layout, (self.phase, &source), known)?;
        let mut rights = vec![behind];
        for k in (1..n).rev() {
            rights.push(self.right_past(&back, &b, k, &rights[rights.len() - 1]));
        }
        rights.reverse();
        let mut out = self.empty.clone();
        let mut left = before;
        for k in 0..n {
            on_site(sites[k], &self.lefts[k], &b[k], &self.rights[k + 1], &mut out[k]);
            on_site(sites[k], &left, &self.right.right[k], &self.rights[k + 1], &mut out[k]);
            on_site(sites[k], &self.lefts[k], &self.left.left[k], &rights[k], &mut out[k]);
            left = self.left_past(&mixed, &b, k, &left);
        }
        let mut y = self.flat(&out);
        y.iter_mut().zip(x).for_each(|(y, x)| *y -= self.reference * x);
        Ok(y)
    }

    fn left_past(&self, chain: &Chain<'_>, b: &[MpsTensor<C64>], k: usize, v: &Row) -> Row {
        let wide = chain.widths[k + 1];
        let entries = chain.sites[k];
        let here = to_right(entries, wide, &self.left.left[k], &b[k], &self.lefts[k]);
        sum(to_right(entries, wide, &self.left.left[k], &self.right.right[k], v), here)
    }

    fn right_past(&self, chain: &Chain<'_>, b: &[MpsTensor<C64>], k: usize, v: &Row) -> Row {
        let wide = chain.widths[k];
        let entries = chain.sites[k];
        let here = to_left(entries, wide, &self.right.right[k], &b[k], &self.rights[k + 1]);
        sum(to_left(entries, wide, &self.right.right[k], &self.left.left[k], v), here)
    }

    /// The lowest energies above the ground state's with the norms of their residuals.
    ///
    /// # Errors
    /// When a linear system does not converge; interruption.
    pub fn lowest(&self, asked: &ExcitationOptions) -> Result<Vec<(f64, f64)>> {
        let vectors = asked.most.min(self.dim()) as u128 + 8;
        let what = format!("{vectors} vectors of {} numbers", self.dim());
        memory::ensure(16 * vectors * self.dim() as u128, &what)?;
        let start = |k: u64| -> Vec<C64> {
            let at = |i: u64| {
                let w = philox::words(k, Stream::Script as u32, i, 3);
                C64::new(philox::unit(w[0], w[1]) - 0.5, philox::unit(w[2], w[3]) - 0.5)
            };
            (0..self.dim() as u64).map(at).collect()
        };
        let found = lowest(&mut |x| self.times(x), &start, self.dim(), asked.count, asked.tol, asked.most)?;
        Ok(found.into_iter().map(|(value, _, residual)| (value, residual)).collect())
    }
}
