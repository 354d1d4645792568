//! Matrices on a bond between a state and the conjugate of a state, carried past sites: `sum_ij O_ij A_i^H x B_j` to
//! the right and `sum_ij O_ij B_j x A_i^H` to the left, with A of the conjugate (bra) and B of the state (ket).

use std::collections::BTreeMap;

use faer::{Mat, MatRef};

use super::dense::{adjoint_product, product};
use super::strings;
use super::tensor::{MpsTensor, adjoint};
use crate::backend::matrix::records::Element;
use crate::number::C64;

/// Matrices by pairs of sectors. On the left of a bond rows belong to the conjugate and columns to the state, on the
/// right it is the other way round; the first sector of a pair is that of the rows.
pub(super) type BondMatrices<T> = BTreeMap<(usize, usize), Mat<T>>;

/// Adds a matrix to those of a bond.
pub(super) fn put<T: Element>(to: &mut BondMatrices<T>, at: (usize, usize), m: Mat<T>) {
    match to.get_mut(&at) {
        Some(sum) => *sum += m,
        None => {
            to.insert(at, m);
        }
    }
}

/// The elements of a local operator that are not zero, column by column; those of the identity without one.
pub(super) fn elements(operator: Option<&[C64]>, dim: usize) -> Vec<strings::OperatorElement> {
    let Some(o) = operator else { return (0..dim).map(|i| (i, i, C64::ONE)).collect() };
    let all = (0..dim).flat_map(|j| (0..dim).map(move |i| (i, j, o[i * dim + j])));
    all.filter(|e| e.2 != C64::ZERO).collect()
}

/// Calls `f` with `A_i`, `x B_j` and `O_ij` for all sectors before a site that an element joins to sectors behind it,
/// of which `f` is told first. Without x, it is the identity, between equal bases.
pub(super) fn each_joined<T: Element>(
    elements: &[strings::OperatorElement],
    (bra, ket): (&MpsTensor<T>, &MpsTensor<T>),
    x: Option<&BondMatrices<T>>,
    mut f: impl FnMut((usize, usize), MatRef<'_, T>, MatRef<'_, T>, C64),
) {
    let mut way = |b: usize, k: usize, m: Option<&Mat<T>>| {
        let mut halves: Vec<Option<Mat<T>>> = vec![None; ket.fusion.states()];
        for &(i, j, z) in elements {
            let (Some((at, upper)), Some((to, lower))) = (bra.part(b, i), ket.part(k, j)) else { continue };
            let half = match m {
                Some(m) => halves[j].get_or_insert_with(|| product(m.as_ref(), lower)).as_ref(),
                None => lower,
            };
            f((at, to), upper, half, z);
        }
    };
    match x {
        None => (0..ket.before.sectors()).for_each(|s| way(s, s, None)),
        Some(x) => x.iter().for_each(|(&(b, k), m)| way(b, k, Some(m))),
    }
}

/// Adds what is carried past a site to the right.
pub(super) fn add_to_right<T: Element>(
    elements: &[strings::OperatorElement],
    (bra, ket): (&MpsTensor<T>, &MpsTensor<T>),
    x: Option<&BondMatrices<T>>,
    out: &mut BondMatrices<T>,
) {
    each_joined(elements, (bra, ket), x, |at, upper, half, z| {
        put(out, at, times(adjoint_product(upper, half), z))
    });
}

/// Adds what is carried past a site to the left.
pub(super) fn add_to_left<T: Element>(
    elements: &[strings::OperatorElement],
    (bra, ket): (&MpsTensor<T>, &MpsTensor<T>),
    x: &BondMatrices<T>,
    out: &mut BondMatrices<T>,
) {
    for (&(k, b), m) in x {
        // Sectors that nothing leads to have no part in the product of the bond before and the site.
        if ket.matrices[k].nrows() == 0 || bra.matrices[b].nrows() == 0 {
            continue;
        }
        for part in ket.fusion.parts(ket.rows[k]) {
            let lower = ket.matrices[k].as_ref().subrows(part.offset, part.dim);
            let mut half = None;
            for &(i, _, z) in elements.iter().filter(|e| e.1 == part.state) {
                for other in bra.fusion.parts(bra.rows[b]).iter().filter(|p| p.state == i) {
                    let half = half.get_or_insert_with(|| product(lower, m.as_ref()));
                    let upper = bra.matrices[b].as_ref().subrows(other.offset, other.dim);
                    let whole = product(half.as_ref(), adjoint(upper).as_ref());
                    put(out, (part.inner, other.inner), times(whole, z));
                }
            }
        }
    }
}

/// Past a site to the right, between two states, with an operator on it or none.
pub(super) fn to_right<T: Element>(
    (bra, ket): (&MpsTensor<T>, &MpsTensor<T>),
    operator: Option<&[C64]>,
    x: Option<&BondMatrices<T>>,
) -> BondMatrices<T> {
    let mut out = BondMatrices::new();
    add_to_right(&elements(operator, ket.fusion.states()), (bra, ket), x, &mut out);
    out
}

/// Past a site to the left, between two states.
pub(super) fn to_left<T: Element>(
    (bra, ket): (&MpsTensor<T>, &MpsTensor<T>),
    x: &BondMatrices<T>,
) -> BondMatrices<T> {
    let mut out = BondMatrices::new();
    add_to_left(&elements(None, ket.fusion.states()), (bra, ket), x, &mut out);
    out
}

fn times<T: Element>(m: Mat<T>, z: C64) -> Mat<T> {
    if z == C64::ONE { m } else { m * faer::Scale(T::from_c64(z)) }
}
