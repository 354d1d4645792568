//! Lattices with hoppings to the next cells, whose kernels take cells whole or walk rows in tiles:
//! as stencils and stored.

use std::sync::Arc;

use umklapp::backend::matrix::{Stencil, StencilTerm, Wrap};
use umklapp::backend::{Device, MatrixSpec, Update};
use umklapp::number::{C64, DType, philox};

use super::suite::{TYPES, check_product, entries, recurrence_is_its_steps, sparse, stencil};

/// The same terms with shifts along one axis, or none.
fn near(mut stencil: Stencil, seed: u64) -> Stencil {
    for (i, term) in stencil.terms.iter_mut().enumerate() {
        let draw = philox::words(seed, 96, i as u64, 0);
        let axis = draw[0] as usize % term.shift.len();
        let step = i64::from(draw[1] % 3) - 1;
        term.shift.fill(0);
        // Stencils of one orbital have a kernel for hoppings alone.
        term.shift[axis] = if stencil.orbitals == 1 && step == 0 { 1 } else { step };
    }
    stencil
}

/// Stencils and stored formats agree with the entries, for every number of columns that has a kernel of its own.
pub fn lattices(device: &Device) {
    let cases: [(&[usize], usize); 7] = [
        (&[24, 20, 10], 1),
        (&[40, 36], 1),
        (&[9, 6, 11], 4),
        (&[13, 1, 5], 2),
        (&[19, 7, 5], 2),
        (&[33, 40], 2),
        (&[18, 21], 4),
    ];
    for (case, (cells, orbitals)) in cases.into_iter().enumerate() {
        for (which, dtype) in TYPES.into_iter().enumerate() {
            let seed = (10 * case + which) as u64;
            let terms = 6 + 6 * orbitals;
            let stencil = Arc::new(near(stencil(dtype, cells, orbitals, terms, seed, case % 2 == 0), seed));
            let csr = Arc::new(entries(&stencil));
            // With an old output and without: kernels for steps of a recurrence are others.
            let widths = [(1, -1.0), (2, 0.0), (4, -1.0), (5, 0.0), (8, -1.0), (32, -1.0), (32, 0.0)];
            for (columns, gamma) in widths {
                let c = Update { alpha: 1.3, beta: -0.4, gamma };
                let specs = [
                    MatrixSpec::Stencil(stencil.clone()),
                    MatrixSpec::Csr(csr.clone()),
                    MatrixSpec::Ell(csr.clone()),
                    MatrixSpec::Sell { csr: csr.clone(), chunk: 8, sigma: 1 },
                    MatrixSpec::Sell { csr: csr.clone(), chunk: 8, sigma: 64 },
                ];
                for spec in specs {
                    check_product(device, spec, &csr, dtype, columns, c);
                }
            }
        }
    }
    // Rows longer than what is read ahead of them.
    for dtype in TYPES {
        let csr = Arc::new(sparse(dtype, 300, 300, 60, 7, false));
        let c = Update { alpha: 0.3, beta: 0.1, gamma: -1.0 };
        for columns in [8, 16, 32, 64] {
            let specs = [
                MatrixSpec::Csr(csr.clone()),
                MatrixSpec::Sell { csr: csr.clone(), chunk: 8, sigma: 1 },
                MatrixSpec::Sell { csr: csr.clone(), chunk: 8, sigma: 64 },
            ];
            for spec in specs {
                check_product(device, spec, &csr, dtype, columns, c);
            }
        }
    }
}

/// Recurrences of few columns on lattices so large that steps share launches on a GPU, and one just below. Even and odd
/// numbers of steps, and more than a launch takes.
pub fn recurrences(device: &Device) {
    let cases: [(DType, &[usize], usize, usize, usize); 10] = [
        (DType::F64, &[48, 48, 48], 1, 1, 259),
        (DType::F64, &[41, 43, 39], 1, 1, 7),
        (DType::F64, &[40, 41, 42], 1, 2, 6),
        (DType::F32, &[301, 223], 1, 1, 8),
        (DType::C32, &[64, 32, 33], 1, 1, 5),
        (DType::C64, &[700, 97], 1, 1, 4),
        (DType::C64, &[27, 25, 26], 4, 1, 9),
        (DType::C64, &[150, 111], 4, 1, 2),
        (DType::F64, &[201, 180], 2, 1, 12),
        (DType::F64, &[31, 41, 50], 1, 1, 3),
    ];
    for (seed, (dtype, cells, orbitals, columns, steps)) in cases.into_iter().enumerate() {
        let mut stencil =
            near(stencil(dtype, cells, orbitals, 6 + 6 * orbitals, seed as u64, seed % 2 == 0), seed as u64);
        // Small enough a norm that the orders stay of order one.
        let terms = stencil.terms.len() as f64;
        stencil.terms.iter_mut().for_each(|t| t.value /= 4.0 * terms);
        recurrence_is_its_steps(device, MatrixSpec::Stencil(Arc::new(stencil)), dtype, columns, steps);
    }
}

/// A stencil whose cells are all alike, with hoppings of any value within cells, unless there is a single orbital, and
/// to all next ones. Directions end or are periodic.
fn plain(dtype: DType, cells: &[usize], orbitals: usize, seed: u64, on_site: bool) -> Stencil {
    let draw = |k: usize, l: usize| philox::words(seed, 95, k as u64, l as u32);
    let wrap = (0..cells.len()).map(|d| match draw(d, 0)[0] % 2 {
        0 => Wrap::Open,
        _ => Wrap::Phase(C64::new(1.0, 0.0)),
    });
    let neighbours = 2 * cells.len() + usize::from(orbitals > 1);
    // Small enough a norm that the orders stay of order one.
    let scale = 4.0 * (neighbours * orbitals) as f64;
    let mut terms = Vec::new();
    for (k, pair) in (0..neighbours).flat_map(|k| (0..orbitals * orbitals).map(move |pair| (k, pair))) {
        let mut shift = vec![0; cells.len()];
        if let Some(along) = shift.get_mut(k / 2) {
            *along = if k % 2 == 0 { -1 } else { 1 };
        }
        let [re, im, ..] = draw(10 + k, pair).map(|word| f64::from(word) / f64::from(u32::MAX) - 0.5);
        let value = C64::new(re, if dtype.is_complex() { im } else { 0.0 }) / scale;
        terms.push(StencilTerm { shift, to: pair / orbitals, from: pair % orbitals, value });
    }
    let dim = cells.iter().product::<usize>() * orbitals;
    let diagonal = on_site.then(|| (0..dim).map(|i| (i % 13) as f64 / 50.0).collect::<Vec<_>>().into());
    Stencil { dtype, cells: cells.to_vec(), orbitals, wrap: wrap.collect(), terms, diagonal }
}

/// Recurrences of cells that are all alike, which stay on a GPU's multiprocessors where they fit: lattices of a single
/// cell to half a million, that end or not, in one to three directions, and one that does not fit.
pub fn plain_recurrences(device: &Device) {
    let small: [&[usize]; 11] = [
        &[1],
        &[2],
        &[37],
        &[40_000],
        &[1, 1],
        &[5, 3, 1],
        &[2, 1, 2],
        &[1, 9, 4],
        &[23, 19],
        &[3, 150],
        &[21, 19, 20],
    ];
    let large: [(&[usize], usize, DType); 7] = [
        (&[57, 61, 60], 1, DType::F64),
        (&[81, 90, 80], 1, DType::F64),
        (&[81, 90, 80], 1, DType::C32),
        (&[710, 900], 1, DType::F32),
        (&[120, 110, 100], 1, DType::F64),
        (&[410, 390], 2, DType::F64),
        (&[39, 40, 41], 4, DType::C64),
    ];
    let mut cases = Vec::new();
    for cells in small {
        for orbitals in [1, 2, 4] {
            cases.extend(TYPES.map(|dtype| (cells, orbitals, dtype)));
        }
    }
    // Elsewhere no step depends on what fits.
    if device.name().contains("cuda") {
        cases.extend(large);
    }
    for (seed, (cells, orbitals, dtype)) in cases.into_iter().enumerate() {
        let stencil = plain(dtype, cells, orbitals, seed as u64, seed % 3 > 0);
        let columns = if stencil.dim() < 2 || seed % 5 > 1 { 1 } else { 2 };
        // As many as are needed to stay there, an odd number, and one that sums of steps are not added up by.
        let steps = [32, 33, 39][seed % 3];
        recurrence_is_its_steps(device, MatrixSpec::Stencil(Arc::new(stencil)), dtype, columns, steps);
    }
}

/// Lattices so large that blocks of a GPU take their tiles in parts, as all stored formats.
pub fn large(device: &Device) {
    let cases: [(DType, &[usize], usize, usize); 2] =
        [(DType::C64, &[40, 40, 40], 4, 32), (DType::F64, &[128, 128, 72], 1, 8)];
    for (seed, (dtype, cells, orbitals, columns)) in cases.into_iter().enumerate() {
        let seed = seed as u64;
        let stencil = near(stencil(dtype, cells, orbitals, 6 + 6 * orbitals, seed, true), seed);
        let csr = Arc::new(entries(&stencil));
        let specs = [
            MatrixSpec::Stencil(Arc::new(stencil)),
            MatrixSpec::Csr(csr.clone()),
            MatrixSpec::Ell(csr.clone()),
            MatrixSpec::Sell { csr: csr.clone(), chunk: 32, sigma: 1 },
        ];
        for spec in specs {
            check_product(device, spec, &csr, dtype, columns, Update { alpha: 1.3, beta: -0.4, gamma: -1.0 });
        }
    }
}
