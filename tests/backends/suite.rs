//! What a backend must get right. Each function takes the device and panics where it and the reference part; a new
//! backend only has to call them.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use umklapp::backend::matrix::{Csr, Indices, MatrixValues, Stencil, StencilTerm, Wrap};
use umklapp::backend::{
    BlockVector, Device, Dots, MatrixSpec, Random, RitzCorrection, Rows, Update, VectorDistribution,
};
use umklapp::number::philox::{self, Stream};
use umklapp::number::{C64, DType};

pub const TYPES: [DType; 4] = [DType::F32, DType::F64, DType::C32, DType::C64];
const WIDTHS: [usize; 12] = [1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 32, 64];

/// Largest error allowed of numbers of order one.
fn epsilon(dtype: DType) -> f64 {
    if dtype.is_single() { 2e-5 } else { 1e-13 }
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

/// A number that depends on nothing but its index, in (-1, 1).
pub fn number(seed: u64, index: usize, complex: bool) -> C64 {
    let w = philox::words(seed, 99, index as u64, 0);
    let x = |a, b| 2.0 * philox::unit(a, b) - 1.0;
    C64::new(x(w[0], w[1]), if complex { x(w[2], w[3]) } else { 0.0 })
}

/// A block of such numbers on the device and on the host (after rounding to the type).
pub fn block(
    device: &Device,
    dtype: DType,
    rows: usize,
    columns: usize,
    seed: u64,
) -> (BlockVector, Vec<C64>) {
    let data: Vec<C64> = (0..rows * columns).map(|i| number(seed, i, dtype.is_complex())).collect();
    let v = device.upload(dtype, Rows::all(rows), columns, &data).expect("a block");
    let host = device.download(&v).expect("its numbers");
    (v, host)
}

/// A sparse matrix whose rows have between none and `most` entries.
pub fn sparse(dtype: DType, rows: usize, cols: usize, most: usize, seed: u64, wide: bool) -> Csr {
    let mut row_start = vec![0];
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let draw = |k: usize| philox::words(seed, 98, row as u64, k as u32)[0] as usize;
        let mut near: Vec<usize> = (0..draw(0) % (most + 1)).map(|k| draw(k + 1) % cols).collect();
        near.sort_unstable();
        near.dedup();
        for column in near {
            values.push(number(seed, columns.len(), dtype.is_complex()));
            columns.push(column as u64);
        }
        row_start.push(columns.len());
    }
    let columns = if wide {
        Indices::U64(columns)
    } else {
        Indices::U32(columns.into_iter().map(|c| c as u32).collect())
    };
    Csr { rows, cols, row_start, columns, values: MatrixValues::C64(values).convert(dtype) }
}

/// `alpha A v + beta v + gamma w`, entry by entry.
fn reference(csr: &Csr, c: Update, v: &[C64], w: &[C64], columns: usize) -> Vec<C64> {
    let mut out = vec![C64::default(); csr.rows * columns];
    for row in 0..csr.rows {
        for k in 0..columns {
            let mut sum = C64::default();
            for at in csr.row_start[row]..csr.row_start[row + 1] {
                sum += csr.values.get(at) * v[csr.columns.get(at) * columns + k];
            }
            let own = if csr.rows == csr.cols { v[row * columns + k] * c.beta } else { C64::default() };
            out[row * columns + k] = sum * c.alpha + own + w[row * columns + k] * c.gamma;
        }
    }
    out
}

pub fn close(found: &[C64], expected: &[C64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).norm() <= tolerance * (1.0 + b.norm()), "{what}: number {i} is {a}, not {b}");
    }
}

/// Both column-wise products against plain sums.
pub fn close_dots(dots: &Dots, v: &[C64], w: &[C64], columns: usize, tolerance: f64, what: &str) {
    for k in 0..columns {
        let column = |x: &[C64]| x.iter().skip(k).step_by(columns).copied().collect::<Vec<_>>();
        let (v, w) = (column(v), column(w));
        let vv: f64 = v.iter().map(|z| z.norm_sqr()).sum();
        let wv: f64 = w.iter().zip(&v).map(|(w, v)| (w.conj() * v).re).sum();
        let size = 1.0 + v.len() as f64;
        assert!((dots.vv[k] - vv).abs() < tolerance * size, "{what}: <v|v> of column {k}");
        assert!((dots.wv[k] - wv).abs() < tolerance * size, "{what}: <w|v> of column {k}");
    }
}

fn formats(csr: &Arc<Csr>) -> Vec<MatrixSpec> {
    let mut dense = vec![C64::default(); csr.rows * csr.cols];
    for row in 0..csr.rows {
        for at in csr.row_start[row]..csr.row_start[row + 1] {
            dense[row * csr.cols + csr.columns.get(at)] += csr.values.get(at);
        }
    }
    vec![
        MatrixSpec::Csr(csr.clone()),
        MatrixSpec::Ell(csr.clone()),
        MatrixSpec::Sell { csr: csr.clone(), chunk: 4, sigma: 16 },
        MatrixSpec::Sell { csr: csr.clone(), chunk: 32, sigma: 1 },
        MatrixSpec::Sell { csr: csr.clone(), chunk: 1, sigma: 1 },
        MatrixSpec::Sell { csr: csr.clone(), chunk: 64, sigma: 1 << 20 },
        MatrixSpec::Dense { rows: csr.rows, cols: csr.cols, dtype: csr.values.dtype(), values: dense },
    ]
}

/// With `gamma = 0` the output is not read, and all of it is written: whatever stood there is gone.
pub fn or_nan(device: &Device, c: Update, w: BlockVector, host: Vec<C64>) -> (BlockVector, Vec<C64>) {
    if c.gamma != 0.0 {
        return (w, host);
    }
    let nan = vec![C64::new(f64::NAN, f64::NAN); host.len()];
    let w = device.upload(w.dtype(), w.rows(), w.columns(), &nan).expect("a block");
    (w, vec![C64::default(); host.len()])
}

pub fn check_product(device: &Device, spec: MatrixSpec, csr: &Csr, v_type: DType, columns: usize, c: Update) {
    let square = csr.rows == csr.cols;
    let kernel = device.prepare(spec).expect("a prepared matrix");
    let what = format!("{} of {} on {v_type} x {columns}", kernel.info().format, csr.values.dtype());
    let (v, v_host) = block(device, v_type, csr.cols, columns, 1);
    let (w, w_host) = block(device, v_type, csr.rows, columns, 2);
    let (mut w, w_host) = or_nan(device, c, w, w_host);
    let mut dots = Dots::default();
    kernel.update(c, &v, &mut w, square.then_some(&mut dots)).expect("a product");
    let found = device.download(&w).expect("its numbers");
    let longest = (0..csr.rows).map(|r| csr.row_start[r + 1] - csr.row_start[r]).max().unwrap_or(0);
    let tolerance = epsilon(v_type) * (1 + longest) as f64;
    close(&found, &reference(csr, c, &v_host, &w_host, columns), tolerance, &what);
    if square {
        close_dots(&dots, &v_host, &found, columns, tolerance, &what);
    }
}

/// All formats, types, widths and factors agree with the entries.
pub fn products(device: &Device) {
    let strategy = (
        (1usize..70, 1usize..70, 0usize..9, any::<bool>()),
        (0usize..4, 0usize..WIDTHS.len(), any::<u32>()),
        (
            -2.0f64..2.0,
            prop_oneof![Just(0.0), -2.0f64..2.0],
            prop_oneof![Just(0.0), Just(-1.0), -2.0f64..2.0],
        ),
    );
    let run = |((rows, cols, most, square), (dtype, width, seed), (alpha, beta, gamma)): (
        (usize, usize, usize, bool),
        (usize, usize, u32),
        (f64, f64, f64),
    )| {
        let (cols, dtype, columns) = (if square { rows } else { cols }, TYPES[dtype], WIDTHS[width]);
        let beta = if rows == cols { beta } else { 0.0 };
        let csr = Arc::new(sparse(dtype, rows, cols, most, u64::from(seed), seed % 2 == 0));
        let c = Update { alpha, beta, gamma };
        for spec in formats(&csr) {
            check_product(device, spec.clone(), &csr, dtype, columns, c);
            check_product(device, spec, &csr, dtype.to_complex(), columns, c);
        }
        Ok(())
    };
    runner(48).run(&strategy, run).expect("products");
    // Plain products of every format and type, some rows of which have no entries.
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        // Long ones fill several registers.
        let shapes =
            [(40, 40, 5), (300, 300, 2), (17, 40, 3), (40, 17, 1), (9, 1, 1), (1, 9, 4), (70, 200, 29)];
        for (rows, cols, most) in shapes {
            let csr = Arc::new(sparse(dtype, rows, cols, most, 3, false));
            for (spec, columns) in
                formats(&csr).into_iter().flat_map(|spec| [1, 3, 8].map(|n| (spec.clone(), n)))
            {
                check_product(device, spec, &csr, dtype, columns, Update::PRODUCT);
            }
        }
    }
}

/// A stencil with terms of any reach and every kind of boundary.
pub fn stencil(
    dtype: DType,
    cells: &[usize],
    orbitals: usize,
    terms: usize,
    seed: u64,
    on_site: bool,
) -> Stencil {
    let draw = |i: usize, k: usize| philox::words(seed, 97, i as u64, k as u32)[0] as usize;
    let complex = dtype.is_complex();
    let wrap = (0..cells.len())
        .map(|d| match draw(1000, d) % if complex { 4 } else { 3 } {
            0 => Wrap::Open,
            1 => Wrap::Phase(C64::new(1.0, 0.0)),
            2 => Wrap::Phase(C64::new(-1.0, 0.0)),
            _ => Wrap::Phase(C64::from_polar(1.0, 0.7)),
        })
        .collect();
    let terms = (0..terms)
        .map(|i| {
            let value = number(seed, i, complex);
            StencilTerm {
                shift: (0..cells.len()).map(|d| draw(i, d + 3) as i64 % 5 - 2).collect(),
                to: draw(i, 1) % orbitals,
                from: draw(i, 2) % orbitals,
                // Real and imaginary values have kernels of their own.
                value: match draw(i, 0) % 3 {
                    0 => C64::new(value.re, 0.0),
                    1 if complex => C64::new(0.0, value.im),
                    _ => value,
                },
            }
        })
        .collect();
    let dim = cells.iter().product::<usize>() * orbitals;
    let diagonal =
        on_site.then(|| (0..dim).map(|i| number(seed + 1, i, false).re).collect::<Vec<_>>().into());
    Stencil { dtype, cells: cells.to_vec(), orbitals, wrap, terms, diagonal }
}

/// The entries of a stencil, row by row.
pub fn entries(stencil: &Stencil) -> Csr {
    let dim = stencil.dim();
    let mut row_start = vec![0];
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    let mut row_entries = Vec::new();
    for row in 0..dim {
        stencil.merged_row(row, &mut row_entries);
        for &(column, value) in &row_entries {
            columns.push(column as u32);
            values.push(value);
        }
        row_start.push(columns.len());
    }
    let values = MatrixValues::C64(values).convert(stencil.dtype);
    Csr { rows: dim, cols: dim, row_start, columns: Indices::U32(columns), values }
}

/// Stencils agree with their entries, on lattices down to one cell.
pub fn stencils(device: &Device) {
    let strategy = (
        proptest::collection::vec(1usize..8, 1..4),
        (1usize..5, 0usize..12, any::<bool>()),
        (0usize..4, 0usize..WIDTHS.len(), any::<u32>()),
    );
    let run = |(cells, (orbitals, terms, on_site), (dtype, width, seed)): (
        Vec<usize>,
        (usize, usize, bool),
        (usize, usize, u32),
    )| {
        let dtype = TYPES[dtype];
        let stencil = Arc::new(stencil(dtype, &cells, orbitals, terms, u64::from(seed), on_site));
        let csr = entries(&stencil);
        let spec = MatrixSpec::Stencil(stencil);
        for c in [Update { alpha: 1.3, beta: -0.4, gamma: -1.0 }, Update::PRODUCT] {
            check_product(device, spec.clone(), &csr, dtype, WIDTHS[width], c);
            check_product(device, spec.clone(), &csr, dtype.to_complex(), WIDTHS[width], c);
        }
        Ok(())
    };
    runner(96).run(&strategy, run).expect("stencils");
    // Lines long enough for the wide paths.
    for dtype in TYPES {
        for (orbitals, columns) in [(1, 1), (1, 8), (2, 1), (2, 3), (4, 1), (8, 1)] {
            let stencil = Arc::new(stencil(dtype, &[67, 3], orbitals, 9 * orbitals, 5, true));
            let csr = entries(&stencil);
            let spec = MatrixSpec::Stencil(stencil);
            for c in [Update { alpha: 0.7, beta: 0.2, gamma: -1.0 }, Update::PRODUCT] {
                check_product(device, spec.clone(), &csr, dtype, columns, c);
            }
        }
    }
}

/// A recurrence of so many steps gives what steps one by one give.
pub fn recurrence_is_its_steps(
    device: &Device,
    spec: MatrixSpec,
    dtype: DType,
    columns: usize,
    steps: usize,
) {
    let kernel = device.prepare(spec).expect("a prepared matrix");
    let rows = kernel.cols();
    let (mut v, _) = block(device, dtype, rows, columns, 1);
    let (mut w, _) = block(device, dtype, rows, columns, 2);
    let (mut x, mut y) = (v.clone(), w.clone());
    let mut dots = Vec::new();
    kernel.recurrence(0.9, 0.1, &mut v, &mut w, steps, &mut dots).expect("orders at once");
    assert_eq!(dots.len(), steps);
    let tolerance = epsilon(dtype) * 10.0;
    for (step, found) in dots.iter().enumerate() {
        let mut expected = Dots::default();
        let c = Update { alpha: 0.9, beta: 0.1, gamma: -1.0 };
        kernel.update(c, &x, &mut y, Some(&mut expected)).expect("one order");
        std::mem::swap(&mut x, &mut y);
        let size = rows as f64;
        for (a, b) in found.vv.iter().zip(&expected.vv).chain(found.wv.iter().zip(&expected.wv)) {
            assert!((a - b).abs() < tolerance * size, "dots of order {step}: {a} and {b}");
        }
    }
    close(
        &device.download(&v).expect("numbers"),
        &device.download(&x).expect("numbers"),
        tolerance,
        "the newest order",
    );
    close(
        &device.download(&w).expect("numbers"),
        &device.download(&y).expect("numbers"),
        tolerance,
        "the one before",
    );
}

/// Orders taken at once are the orders taken one by one.
pub fn recurrences(device: &Device) {
    let lattices: [(&[usize], usize, DType, usize); 6] = [
        (&[24, 24, 24], 1, DType::F64, 8),
        (&[400, 300], 1, DType::F64, 8),
        (&[200, 150], 2, DType::C64, 4),
        (&[20, 20, 40], 2, DType::C32, 8),
        (&[150_000], 1, DType::F32, 16),
        (&[60, 5, 70], 1, DType::F64, 32),
    ];
    for (seed, (cells, orbitals, dtype, columns)) in lattices.into_iter().enumerate() {
        let mut stencil = stencil(dtype, cells, orbitals, 7, seed as u64, true);
        // Small enough a norm that ten orders stay of order one.
        stencil.terms.iter_mut().for_each(|t| t.value *= 0.1);
        let csr = Arc::new(entries(&stencil));
        for spec in [MatrixSpec::Stencil(Arc::new(stencil)), MatrixSpec::Csr(csr)] {
            let spec = match spec {
                // Terms that meet are separate entries here, which the format forbids.
                MatrixSpec::Csr(csr) => MatrixSpec::Csr(Arc::new(merged(&csr))),
                other => other,
            };
            // Enough for steps that are recorded and replayed, once.
            recurrence_is_its_steps(device, spec, dtype, columns, if seed == 0 { 135 } else { 11 });
        }
    }
}

/// Entries of one column joined.
fn merged(csr: &Csr) -> Csr {
    let mut row_start = vec![0];
    let (mut columns, mut values) = (Vec::<u32>::new(), Vec::new());
    for row in 0..csr.rows {
        let first = columns.len();
        for at in csr.row_start[row]..csr.row_start[row + 1] {
            let column = csr.columns.get(at) as u32;
            if columns.len() > first && columns.last() == Some(&column) {
                *values.last_mut().expect("a value") += csr.values.get(at);
            } else {
                columns.push(column);
                values.push(csr.values.get(at));
            }
        }
        row_start.push(columns.len());
    }
    let values = MatrixValues::C64(values).convert(csr.values.dtype());
    Csr { rows: csr.rows, cols: csr.cols, row_start, columns: Indices::U32(columns), values }
}

/// <x|A y> = <A^H x|y> for operators of all types.
pub fn adjoints(device: &Device) {
    use umklapp::operator::{MatrixFormat, StoredMatrix};
    for (i, dtype) in TYPES.into_iter().enumerate() {
        let csr = sparse(dtype, 37, 53, 6, i as u64, false);
        let (x, _) = block(device, dtype, 37, 3, 1);
        let (y, _) = block(device, dtype, 53, 3, 2);
        let a = StoredMatrix::from_csr(device, csr, MatrixFormat::Csr).expect("an operator");
        let left = device.dots(&x, &a.apply(&y).expect("A y")).expect("<x|A y>");
        let back = a.adjoint().expect("the adjoint").apply(&x).expect("A^H x");
        let right = device.dots(&back, &y).expect("<A^H x|y>");
        close(&left, &right, 50.0 * epsilon(dtype), "the adjoint of a sparse matrix");
        let stencil = stencil(dtype, &[5, 4, 3], 2, 9, i as u64, true);
        let (x, _) = block(device, dtype, 120, 3, 1);
        let (y, _) = block(device, dtype, 120, 3, 2);
        let a = StoredMatrix::from_stencil(device, stencil, MatrixFormat::Auto).expect("an operator");
        let left = device.dots(&x, &a.apply(&y).expect("A y")).expect("<x|A y>");
        let back = a.adjoint().expect("the adjoint").apply(&x).expect("A^H x");
        let right = device.dots(&back, &y).expect("<A^H x|y>");
        close(&left, &right, 100.0 * epsilon(dtype), "the adjoint of a stencil");
    }
}

/// Corrections of Davidson's method against loops over entries.
pub fn corrections(device: &Device) {
    for dtype in TYPES {
        for (rows, n) in
            [(1, 1), (2, 2), (57, 3), (512, 4), (513, 5), (3001, 12), (70_001, 20), (300, 24), (900, 26)]
        {
            let complex = dtype.is_complex();
            let what = |name: &str| format!("{name} of a correction in {n} columns of {rows} rows, {dtype}");
            // Sums of n numbers, and of these over all rows.
            let tolerance = epsilon(dtype) * n as f64 * (1.0 + rows as f64).sqrt();
            let (v, vh) = block(device, dtype, rows, n, 1);
            let (w, wh) = block(device, dtype, rows, n, 2);
            let (d, dh) = block(device, dtype.to_real(), rows, 1, 3);
            let s: Vec<C64> = (0..n).map(|k| number(4, k, complex)).collect();
            // Where d is near the shift, the floor decides: near 0.3 or beyond it in a tenth of the rows.
            let (value, shift, floor) = (-0.7, 0.3, 0.1);
            let k = |row: usize| {
                let gap = shift - dh[row].re;
                1.0 / if gap.abs() < floor { floor.copysign(gap) } else { gap }
            };
            let sum = |of: &[C64], row: usize| (0..n).map(|k| s[k] * of[row * n + k]).sum::<C64>();
            let x: Vec<C64> = (0..rows).map(|row| sum(&vh, row)).collect();
            let r: Vec<C64> = (0..rows).map(|row| sum(&wh, row) - value * x[row]).collect();
            let of = |v: &[C64]| (0..rows).map(|row| k(row) * v[row]).collect::<Vec<C64>>();
            let (expected_r, expected_x) = (of(&r), of(&x));
            let dot = |a: &[C64], b: &[C64]| a.iter().zip(b).map(|(a, b)| a.conj() * b).sum::<C64>();
            let with = |b: &[C64]| {
                (0..n)
                    .map(|k| (0..rows).map(|row| vh[row * n + k].conj() * b[row]).sum())
                    .collect::<Vec<C64>>()
            };
            let mut expected = [with(&expected_r), with(&expected_x)].concat();
            let (a, b) = (&expected_r, &expected_x);
            expected.extend([dot(a, a), dot(a, b), dot(b, b), dot(&r, &r)]);

            let list = |v: &BlockVector| -> Vec<BlockVector> {
                (0..n).map(|k| device.columns(v, k..k + 1).expect("a column")).collect()
            };
            let (basis, images) = (list(&v), list(&w));
            let (basis, images): (Vec<_>, Vec<_>) = (basis.iter().collect(), images.iter().collect());
            let (basis, images, coefficients) = (&basis[..], &images[..], &s[..]);
            let of = RitzCorrection { basis, images, diagonal: &d, coefficients, value, shift, floor };
            // What is there is not read.
            let unread = if complex { C64::new(f64::NAN, f64::NAN) } else { C64::new(f64::NAN, 0.0) };
            let unread = device.upload(dtype, v.rows(), 1, &vec![unread; rows]).expect("a column");
            let (mut kr, mut kx) = (unread.clone(), unread);
            let found = device.correct(of, &mut kr, &mut kx).expect("a correction");
            // Rows near the shift are ten times as large as others.
            close(&found, &expected, 100.0 * tolerance, &what("products"));
            close(&device.download(&kr).expect("numbers"), a, 10.0 * tolerance, &what("K r"));
            close(&device.download(&kx).expect("numbers"), b, 10.0 * tolerance, &what("K x"));
        }
    }
}

/// Block-vector algebra against loops over entries.
pub fn algebra(device: &Device) {
    for dtype in TYPES {
        for (rows, p, q) in [
            (1, 1, 1),
            (57, 3, 5),
            (1000, 8, 8),
            (301, 17, 4),
            (4096, 20, 1),
            (64, 33, 32),
            (1003, 40, 14),
            (90, 70, 67),
        ] {
            let tolerance = epsilon(dtype) * (1.0 + rows as f64).sqrt();
            let complex = dtype.is_complex();
            let what = |name: &str| format!("{name} of {rows} x {p} and {q}, {dtype}");
            let (x, xh) = block(device, dtype, rows, p, 1);
            let (y, yh) = block(device, dtype, rows, q, 2);
            // X^H Y.
            let gram = device.gram(&x, &y).expect("X^H Y");
            let mut expected = vec![C64::default(); p * q];
            for row in 0..rows {
                for i in 0..p {
                    for j in 0..q {
                        expected[i * q + j] += xh[row * p + i].conj() * yh[row * q + j];
                    }
                }
            }
            close(&gram, &expected, tolerance, &what("gram"));
            // The same of several blocks at once.
            let part = device.columns(&x, 0..p.div_ceil(2)).expect("columns");
            let several = device.gram_each(&[&x, &part, &x], &y).expect("X^H Y of several X");
            let all = [&expected[..], &expected[..part.columns() * q], &expected].concat();
            close(&several, &all, tolerance, &what("gram of several"));
            // Y = X C + b Y.
            let c: Vec<C64> = (0..p * q).map(|i| number(7, i, complex)).collect();
            let mut sum = y.clone();
            device.combine(&x, &c, 0.5, &mut sum).expect("X C + Y / 2");
            let mut expected: Vec<C64> = yh.iter().map(|z| z * 0.5).collect();
            for row in 0..rows {
                for i in 0..p {
                    for j in 0..q {
                        expected[row * q + j] += xh[row * p + i] * c[i * q + j];
                    }
                }
            }
            close(&device.download(&sum).expect("numbers"), &expected, tolerance, &what("combine"));
            // Y + X (diag(d) X^H Z - X^H Y), and without Z.
            let (z, zh) = block(device, dtype, rows, q, 4);
            let d: Vec<f64> = (0..p).map(|i| 0.3 - 0.1 * i as f64).collect();
            let product = |of: &[C64], i: usize, j: usize| -> C64 {
                (0..rows).map(|row| xh[row * p + i].conj() * of[row * q + j]).sum()
            };
            for with in [false, true] {
                let share = |i: usize, j: usize| {
                    let wanted = if with { d[i] * product(&zh, i, j) } else { C64::default() };
                    wanted - product(&yh, i, j)
                };
                let small: Vec<C64> = (0..p * q).map(|at| share(at / q, at % q)).collect();
                let entry = |at: usize| -> C64 {
                    yh[at] + (0..p).map(|i| xh[at / q * p + i] * small[i * q + at % q]).sum::<C64>()
                };
                let expected: Vec<C64> = (0..rows * q).map(entry).collect();
                let mut found = y.clone();
                device.deflate(&x, with.then_some((&d[..], &z)), &mut found).expect("a deflation");
                // Each number is a sum over the space of numbers that are sums over all rows.
                let tolerance = tolerance * (1.0 + p as f64);
                close(&device.download(&found).expect("numbers"), &expected, tolerance, &what("deflate"));
            }
            // y = a x + b y, a factor a column.
            let (z, zh) = block(device, dtype, rows, p, 3);
            let a: Vec<C64> = (0..p).map(|i| number(8, i, complex)).collect();
            let b = [C64::new(-0.25, if complex { 0.5 } else { 0.0 })];
            let mut sum = z.clone();
            device.axpby(&a, &x, &b, &mut sum).expect("a x + b z");
            let expected: Vec<C64> = (0..rows * p).map(|i| a[i % p] * xh[i] + b[0] * zh[i]).collect();
            close(&device.download(&sum).expect("numbers"), &expected, tolerance, &what("axpby"));
            // Column-wise products, entry-wise products.
            let dots = device.dots(&x, &z).expect("<x|z>");
            let mut expected = vec![C64::default(); p];
            (0..rows * p).for_each(|i| expected[i % p] += xh[i].conj() * zh[i]);
            close(&dots, &expected, tolerance, &what("dots"));
            let mut product = x.clone();
            device.multiply(&x, &z, &mut product).expect("x z");
            let product = device.download(&product).expect("numbers");
            let expected: Vec<C64> = xh.iter().zip(&zh).map(|(a, b)| a.conj() * b).collect();
            close(&product, &expected, tolerance, &what("multiply"));
            // The same for lists of single columns.
            let list: Vec<BlockVector> =
                (0..p).map(|i| device.columns(&x, i..i + 1).expect("a column")).collect();
            let list: Vec<&BlockVector> = list.iter().collect();
            let single = device.columns(&y, 0..1).expect("a column");
            let first = |i: usize| yh[i * q];
            let found = device.dots_with(&list, &single).expect("<x_k|y>");
            let mut expected = vec![C64::default(); p];
            (0..rows * p).for_each(|i| expected[i % p] += xh[i].conj() * first(i / p));
            close(&found, &expected, tolerance, &what("products of a list"));
            let others: Vec<BlockVector> =
                (0..q).map(|i| device.columns(&y, i..i + 1).expect("a column")).collect();
            let found = device.grams(&list, &others.iter().collect::<Vec<_>>()).expect("<x_i|y_j>");
            let mut expected = vec![C64::default(); p * q];
            for (at, sum) in expected.iter_mut().enumerate() {
                *sum = (0..rows).map(|r| xh[r * p + at / q].conj() * yh[r * q + at % q]).sum();
            }
            close(&found, &expected, tolerance, &what("products of two lists"));
            let mut sum = single.clone();
            device.mix(&list, &a, -0.5, &mut sum).expect("a sum of columns");
            let row = |i: usize| (0..p).map(|k| a[k] * xh[i * p + k]).sum::<C64>() - 0.5 * first(i);
            let expected: Vec<C64> = (0..rows).map(row).collect();
            close(&device.download(&sum).expect("numbers"), &expected, tolerance, &what("sum of a list"));
            let unread = C64::new(f64::NAN, 0.0);
            let unread = vec![if dtype.is_complex() { C64::new(f64::NAN, f64::NAN) } else { unread }; rows];
            let mut sums: Vec<BlockVector> =
                (0..q).map(|_| device.upload(dtype, single.rows(), 1, &unread).expect("a column")).collect();
            device.mix_each(&list, &c, &mut sums).expect("sums of columns");
            for (j, sum) in sums.iter().enumerate() {
                let row = |i: usize| (0..p).map(|k| c[k * q + j] * xh[i * p + k]).sum::<C64>();
                let expected: Vec<C64> = (0..rows).map(row).collect();
                close(&device.download(sum).expect("numbers"), &expected, tolerance, &what("sums of a list"));
            }
            // Columns out and back in.
            let some = device.columns(&x, p / 3..p).expect("columns");
            let mut into = z.clone();
            device.set_columns(&mut into, p / 3, &some).expect("columns back");
            let found = device.download(&into).expect("numbers");
            let expected: Vec<C64> =
                (0..rows * p).map(|i| if i % p >= p / 3 { xh[i] } else { zh[i] }).collect();
            close(&found, &expected, 0.0, &what("columns"));
        }
    }
}

/// Products of two lists against sums over rows, where lists and columns are longer than what is multiplied at once.
pub fn lists(device: &Device) {
    for dtype in TYPES {
        for (rows, m, n) in [(3, 13, 5), (515, 9, 2), (70, 1, 300), (1100, 37, 261), (2049, 12, 10)] {
            let (x, xh) = block(device, dtype, rows, m, 5);
            let (y, yh) = block(device, dtype, rows, n, 6);
            let columns = |v: &BlockVector| -> Vec<BlockVector> {
                (0..v.columns()).map(|i| device.columns(v, i..i + 1).expect("a column")).collect()
            };
            let (left, right) = (columns(&x), columns(&y));
            let (left, right): (Vec<_>, Vec<_>) = (left.iter().collect(), right.iter().collect());
            let found = device.grams(&left, &right).expect("<x_i|y_j>");
            let sum = |i: usize, j: usize| (0..rows).map(|r| xh[r * m + i].conj() * yh[r * n + j]).sum();
            let expected: Vec<C64> = (0..m * n).map(|at| sum(at / n, at % n)).collect();
            let tolerance = epsilon(dtype) * (1.0 + rows as f64).sqrt();
            close(&found, &expected, tolerance, &format!("{m} x {n} products of {rows} rows, {dtype}"));
            assert!(device.grams(&left, &[]).expect("no products").is_empty());
            assert!(device.grams(&[], &right).expect("no products").is_empty());
        }
    }
}

/// Random entries follow Philox and the recipe of each distribution.
pub fn random(device: &Device) {
    let rows = Rows::all(1000);
    for (dtype, distribution) in [
        (DType::F64, VectorDistribution::Sign),
        (DType::F32, VectorDistribution::Sign),
        (DType::C64, VectorDistribution::Phase),
        (DType::F64, VectorDistribution::Gaussian),
        (DType::C64, VectorDistribution::Gaussian),
    ] {
        let mut v = device.zeros(dtype, rows, 3).expect("a block");
        let random =
            Random { seed: 0xDEAD_BEEF_0123, stream: Stream::Vectors, first_column: 5, distribution };
        device.fill_random(&mut v, random).expect("random numbers");
        let found = device.download(&v).expect("numbers");
        let expected: Vec<C64> = (0..3000)
            .map(|i| {
                let w = philox::words(0xDEAD_BEEF_0123, 0, (i / 3) as u64, 5 + (i % 3) as u32);
                match distribution {
                    VectorDistribution::Sign => C64::new(if w[0] >> 31 == 0 { 1.0 } else { -1.0 }, 0.0),
                    VectorDistribution::Phase => {
                        C64::from_polar(1.0, 2.0 * std::f64::consts::PI * philox::unit(w[0], w[1]))
                    }
                    VectorDistribution::Gaussian => {
                        let (a, b) = philox::normals(w);
                        if dtype.is_complex() { C64::new(a, b) / 2f64.sqrt() } else { C64::new(a, 0.0) }
                    }
                }
            })
            .collect();
        close(&found, &expected, 4.0 * epsilon(dtype), "random numbers");
    }
}
