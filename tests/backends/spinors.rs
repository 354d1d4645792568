//! What a backend must get right of spinor fields: the Wilson-Dirac operator in every form against a slow one written
//! down from its definition, diagonals on sites, and block algebra on rows that a backend may lay out as it likes.

use std::sync::Arc;

use umklapp::backend::matrix::wilson::{Compression, SiteParity, Su3, WilsonSpec};
use umklapp::backend::{
    BlockVector, Device, Dots, Grid, Kernel, MatrixSpec, Random, Rows, Update, VectorDistribution,
};
use umklapp::gauge::Links;
use umklapp::gauge::overlap::{Fit, Sign, SignParts};
use umklapp::lattice::Lattice;
use umklapp::method::MinMax;
use umklapp::number::philox::{self, Stream};
use umklapp::number::{C64, DType};
use umklapp::operator::WilsonOperator;

use super::suite::or_nan;

/// Even and odd sizes, sizes of one and two, so that every way of cutting the lattice is met.
const LATTICES: [[usize; 4]; 7] =
    [[4, 4, 4, 4], [2, 2, 2, 4], [3, 5, 3, 3], [6, 3, 2, 5], [2, 6, 4, 1], [6, 6, 2, 2], [5, 2, 3, 7]];

type Gamma = [[C64; 4]; 4];

/// DeGrand and Rossi's matrices, as reference tables of other programs print them.
fn gammas() -> [Gamma; 4] {
    let (o, u, i) = (C64::new(0.0, 0.0), C64::new(1.0, 0.0), C64::new(0.0, 1.0));
    [
        [[o, o, o, i], [o, o, i, o], [o, -i, o, o], [-i, o, o, o]],
        [[o, o, o, -u], [o, o, u, o], [o, u, o, o], [-u, o, o, o]],
        [[o, o, i, o], [o, o, o, -i], [-i, o, o, o], [o, i, o, o]],
        [[o, o, u, o], [o, o, o, u], [u, o, o, o], [o, u, o, o]],
    ]
}

fn number(seed: u64, index: usize) -> C64 {
    let w = philox::words(seed, 96, index as u64, 0);
    C64::new(2.0 * philox::unit(w[0], w[1]) - 1.0, 2.0 * philox::unit(w[2], w[3]) - 1.0)
}

pub(super) fn block(
    device: &Device,
    dtype: DType,
    rows: Rows,
    columns: usize,
    seed: u64,
) -> (BlockVector, Vec<C64>) {
    let data: Vec<C64> = (0..rows.local * columns).map(|i| number(seed, i)).collect();
    let v = device.upload(dtype, rows, columns, &data).expect("a block");
    let host = device.download(&v).expect("its numbers");
    for (a, b) in host.iter().zip(&data) {
        assert!((a - b).norm() < 1e-6, "upload and download");
    }
    (v, host)
}

/// The definition, site by site.
fn slow(spec: &WilsonSpec, v: &[C64], columns: usize) -> Vec<C64> {
    let grid = Grid { dims: spec.dims(), per_site: 12 };
    let mut out = vec![C64::default(); v.len()];
    let at =
        |site: usize, spin: usize, colour: usize, c: usize| (12 * site + 3 * spin + colour) * columns + c;
    for site in 0..grid.sites() {
        let x = grid.coordinates(site);
        for c in 0..columns {
            let mut sum = [[C64::default(); 3]; 4];
            for (mu, gamma) in gammas().iter().enumerate() {
                for forward in [true, false] {
                    let n = spec.dims()[mu];
                    let mut y = x;
                    y[mu] = if forward { (x[mu] + 1) % n } else { (x[mu] + n - 1) % n };
                    let crossed = if forward { x[mu] + 1 == n } else { x[mu] == 0 };
                    let sign = if crossed { spec.sign[mu] } else { 1.0 };
                    let there = grid.site(y);
                    let u: &Su3 = &spec.links[4 * if forward { site } else { there } + mu];
                    let s = if forward != spec.adjoint { -1.0 } else { 1.0 };
                    for a in 0..4 {
                        for b in 0..4 {
                            let unit = C64::new(f64::from(u8::from(a == b)), 0.0);
                            let g = unit + gamma[a][b] * s;
                            if g == C64::default() {
                                continue;
                            }
                            for i in 0..3 {
                                for j in 0..3 {
                                    let link = if forward { u[3 * i + j] } else { u[3 * j + i].conj() };
                                    sum[a][i] += g * link * v[at(there, b, j, c)] * sign;
                                }
                            }
                        }
                    }
                }
            }
            for a in 0..4 {
                let sign = if spec.gamma5 && a >= 2 { -1.0 } else { 1.0 };
                for i in 0..3 {
                    let own = v[at(site, a, i, c)] * spec.diagonal;
                    out[at(site, a, i, c)] = (own - sum[a][i] * 0.5) * sign;
                }
            }
        }
    }
    out
}

fn inside(dims: [usize; 4], row: usize, sites: SiteParity) -> bool {
    let even = Grid { dims, per_site: 12 }.coordinates(row / 12).iter().sum::<usize>() % 2 == 0;
    match sites {
        SiteParity::All => true,
        SiteParity::Even => even,
        SiteParity::Odd => !even,
    }
}

fn check(device: &Device, spec: &WilsonSpec, columns: usize) {
    let what = format!(
        "{:?}, {:?}, gamma5 {}, adjoint {}, {:?}, sign {:?}, single {}, {columns} columns",
        spec.dims(),
        spec.compression,
        spec.gamma5,
        spec.adjoint,
        spec.sites,
        spec.sign,
        spec.single
    );
    let kernel: Arc<dyn Kernel> =
        device.prepare(MatrixSpec::Wilson(Arc::new(spec.clone()))).expect("a kernel");
    let dtype = DType::of(spec.single, true);
    let rows = kernel.rows();
    let (v, v_host) = block(device, dtype, rows, columns, 1);
    let (w0, w_host) = block(device, dtype, rows, columns, 2);
    let (x, x_host) = block(device, dtype, rows, columns, 3);
    let product = slow(spec, &v_host, columns);
    // Links from 8 reals of 32 bits are less accurate, by their conditioning.
    let eps = match (spec.single, spec.compression) {
        (true, Compression::Eight) => 2e-2,
        (true, _) => 2e-5,
        (false, Compression::Eight) => 1e-10,
        (false, _) => 1e-13,
    };
    let compare = |found: &BlockVector, c: Update, plus: f64| {
        for (i, z) in device.download(found).expect("numbers").iter().enumerate() {
            let new = product[i] * c.alpha + v_host[i] * c.beta + w_host[i] * c.gamma + x_host[i] * plus;
            let expected = if inside(spec.dims(), i / columns, spec.sites) { new } else { w_host[i] };
            assert!((z - expected).norm() < eps * 20.0, "{what}: number {i} is {z}, not {expected}");
        }
    };
    for c in [
        Update::PRODUCT,
        Update { alpha: -0.7, beta: 0.3, gamma: 1.1 },
        Update { alpha: 0.0, beta: 0.3, gamma: 0.0 },
        Update { alpha: 1e-20, beta: -0.9, gamma: 1.0 },
    ] {
        // All sites are written, and without gamma none is read.
        let w0 = if spec.sites == SiteParity::All {
            or_nan(device, c, w0.clone(), w_host.clone()).0
        } else {
            w0.clone()
        };
        let mut w = w0.clone();
        kernel.update(c, &v, &mut w, None).expect("a product");
        compare(&w, c, 0.0);
        let mut w = w0.clone();
        match kernel.update_plus(c, &v, &mut w, &[(0.4, &x), (-1.0, &x)]) {
            Some(done) => done.expect("a product and more"),
            None => panic!("{what}: no pass that adds vectors"),
        }
        compare(&w, c, -0.6);
        if spec.sites == SiteParity::All {
            let (mut w, mut dots) = (w0.clone(), Dots::default());
            kernel.update(c, &v, &mut w, Some(&mut dots)).expect("a product with dots");
            compare(&w, c, 0.0);
            let w = device.download(&w).expect("numbers");
            for k in 0..columns {
                let pick = |i: &usize| i % columns == k;
                let vv: f64 = (0..v_host.len()).filter(pick).map(|i| v_host[i].norm_sqr()).sum();
                let wv: f64 = (0..v_host.len()).filter(pick).map(|i| (w[i].conj() * v_host[i]).re).sum();
                let size = eps * (1.0 + w.len() as f64);
                assert!((dots.vv[k] - vv).abs() < size && (dots.wv[k] - wv).abs() < size, "{what}: dots");
            }
        }
    }
}

pub(super) fn spec(dims: [usize; 4], seed: u64) -> WilsonSpec {
    let lattice = Lattice::hypercubic(&dims).expect("a lattice");
    let u = Links::unit(&lattice).expect("links").random(seed).expect("links");
    u.wilson(0.1, false, Compression::Full, false).expect("an operator")
}

pub fn wilson(device: &Device) {
    for (number, dims) in LATTICES.into_iter().enumerate() {
        let base = spec(dims, number as u64);
        for compression in [Compression::Full, Compression::Twelve, Compression::Eight] {
            for single in [false, true] {
                check(device, &WilsonSpec { compression, single, ..base.clone() }, 1);
            }
        }
        let turned = WilsonSpec { sign: [1.0, -1.0, 1.0, -1.0], compression: Compression::Twelve, ..base };
        for (gamma5, adjoint) in [(false, true), (true, false), (true, true)] {
            check(device, &WilsonSpec { gamma5, adjoint, ..turned.clone() }, 1);
        }
        for sites in [SiteParity::Even, SiteParity::Odd] {
            check(device, &WilsonSpec { sites, diagonal: 0.0, ..turned.clone() }, 2);
            check(device, &WilsonSpec { sites, single: true, ..turned.clone() }, 1);
        }
        for columns in [2, 3, 8] {
            check(device, &WilsonSpec { single: columns == 3, ..turned.clone() }, columns);
        }
    }
}

/// Lattices large enough to be shared between the sides of a GPU's chip, a slice at a time and, where a slice is no
/// whole number of blocks, all at once.
pub fn large(device: &Device) {
    for (number, dims) in [[16, 16, 8, 68], [12, 12, 20, 48]].into_iter().enumerate() {
        let base = WilsonSpec { gamma5: true, sign: [1.0, 1.0, 1.0, -1.0], ..spec(dims, number as u64) };
        for (compression, single) in [
            (Compression::Full, false),
            (Compression::Twelve, false),
            (Compression::Twelve, true),
            (Compression::Eight, false),
        ] {
            check(device, &WilsonSpec { compression, single, ..base.clone() }, 1);
        }
        check(device, &WilsonSpec { sites: SiteParity::Odd, ..base }, 1);
    }
}

/// A sign function is the same however often it is applied, to vectors of several shapes in turn, and is its own
/// inverse. A relaxed one meets the accuracy that was asked for.
pub fn signs(device: &Device) {
    let lattice = Lattice::hypercubic(&[4, 4, 4, 4]).expect("a lattice");
    let u = Links::unit(&lattice).expect("links").reference_field(0.3).expect("links");
    for (single, eps) in [(false, 1e-12), (true, 1e-4)] {
        let spec = u.wilson(-1.4, true, Compression::Twelve, single).expect("a kernel");
        let q = WilsonOperator::build(device, spec).expect("a kernel");
        let delta = if single { 1e-4 } else { 1e-9 };
        // The spectrum of |Q| of this field is within [0.5, 7].
        let (least, upper) = (0.25, 49.0);
        let fit = Fit::Polynomial(MinMax::to_error(least / upper, delta).expect("a fit"));
        let (modes, given, touching, rest, seed) = (None, false, false, least, 1);
        let parts = SignParts { modes, given, touching, rest, least, fit, upper, delta, seed };
        let sign = Sign::build(&q, parts).expect("a sign function");
        let dtype = DType::of(single, true);
        let size = |x: &[C64]| x.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
        let mut before: Vec<Vec<C64>> = Vec::new();
        for round in 0..4 {
            for (at, columns) in [1, 3, 1].into_iter().enumerate() {
                let (v, host) = block(device, dtype, q.rows(), columns, at as u64);
                let sent = |v: &BlockVector, error| {
                    let w = sign.apply(v, error).expect("a product");
                    let numbers = device.download(&w).expect("numbers");
                    (w, numbers)
                };
                let off = |x: &[C64], y: &[C64]| {
                    let off: Vec<C64> = x.iter().zip(y).map(|(x, y)| x - y).collect();
                    size(&off) / size(y)
                };
                let (w, own) = sent(&v, 0.0);
                match before.get(at) {
                    Some(first) => assert!(off(&own, first) < eps, "round {round}, vectors {at}"),
                    None => before.push(own.clone()),
                }
                assert!(off(&sent(&w, 0.0).1, &host) < 3.0 * delta + eps, "round {round}, vectors {at}");
                assert!(off(&sent(&v, 0.03).1, &own) < 0.03, "round {round}, vectors {at}, roughly");
            }
        }
    }
}

/// Block algebra, random numbers, columns and entries on rows of a lattice agree with those on plain rows.
pub fn spinor_algebra(device: &Device) {
    for dims in LATTICES {
        let rows = Rows::on(Grid { dims, per_site: 12 });
        let plain = Rows::all(rows.global);
        for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
            for columns in [1, 3] {
                let random = Random {
                    seed: 5,
                    stream: Stream::Vectors,
                    first_column: 2,
                    distribution: VectorDistribution::Gaussian,
                };
                let pair = |seed: u32| -> [BlockVector; 2] {
                    [rows, plain].map(|rows| {
                        let mut v = device.zeros(dtype, rows, columns).expect("zeros");
                        let random = Random { first_column: seed, ..random };
                        device.fill_random(&mut v, random).expect("random numbers");
                        device
                            .set_entries(&mut v, &[(5, columns - 1, C64::new(2.0, 0.0))])
                            .expect("an entry");
                        v
                    })
                };
                let same = |pair: &[BlockVector; 2], what: &str| {
                    let [a, b] = [0, 1].map(|k| device.download(&pair[k]).expect("numbers"));
                    let eps = if dtype.is_single() { 1e-4 } else { 1e-12 };
                    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
                        assert!((a - b).norm() < eps, "{what} {dims:?} {dtype} x {columns}: number {i}");
                    }
                };
                let close = |a: &[C64], b: &[C64], what: &str| {
                    let eps = if dtype.is_single() { 1e-2 } else { 1e-10 };
                    assert!(a.iter().zip(b).all(|(a, b)| (a - b).norm() < eps), "{what} {dims:?} {dtype}");
                };
                let (x, mut y) = (pair(1), pair(9));
                same(&x, "random");
                let factors: Vec<C64> = (0..columns).map(|c| C64::new(0.5 + c as f64, 0.0)).collect();
                for k in 0..2 {
                    device.axpby(&factors, &x[k], &[C64::new(-1.5, 0.0)], &mut y[k]).expect("axpby");
                }
                same(&y, "axpby");
                let dots = [0, 1].map(|k| device.dots(&x[k], &y[k]).expect("dots"));
                close(&dots[0], &dots[1], "dots");
                let gram = [0, 1].map(|k| device.gram(&x[k], &y[k]).expect("gram"));
                close(&gram[0], &gram[1], "gram");
                let real = |z: &C64| if dtype.is_complex() { *z * 0.01 } else { C64::new(z.re * 0.01, 0.0) };
                let c: Vec<C64> = gram[1].iter().map(real).collect();
                for k in 0..2 {
                    device.combine(&x[k], &c, 0.5, &mut y[k]).expect("combine");
                }
                same(&y, "combine");
                let mut z = y.clone();
                for k in 0..2 {
                    device.multiply(&x[k], &y[k], &mut z[k]).expect("multiply");
                }
                same(&z, "multiply");
                let last = [0, 1].map(|k| device.columns(&y[k], columns - 1..columns).expect("a column"));
                same(&last, "columns");
                for k in 0..2 {
                    device.set_columns(&mut z[k], 0, &last[k]).expect("set_columns");
                }
                same(&z, "set_columns");
                let other = DType::of(!dtype.is_single(), dtype.is_complex());
                same(&[0, 1].map(|k| device.convert(&y[k], other).expect("convert")), "convert");
                let d = [rows, plain].map(|rows| {
                    let data: Vec<C64> = (0..rows.local).map(|i| C64::new(i as f64 % 7.0, 0.0)).collect();
                    device.upload(dtype.to_real(), rows, 1, &data).expect("a diagonal")
                });
                let shift: Vec<f64> = (0..columns).map(|c| 9.5 + c as f64).collect();
                for k in 0..2 {
                    device.precondition(&d[k], &shift, 1e-3, &x[k], &mut z[k]).expect("precondition");
                }
                same(&z, "precondition");
                let back = [device.arrange(&y[0], plain).expect("arranged"), y[1].clone()];
                same(&back, "arrange");
                assert!(device.dots(&x[0], &x[1]).is_err(), "rows of different kinds do not mix");
            }
        }
        let factors: Vec<f64> = (0..12).map(|k| 0.5 * k as f64 - 2.0).collect();
        let spec = MatrixSpec::SiteDiagonal { rows, factors: factors.clone(), single: false };
        let kernel = device.prepare(spec).expect("a diagonal");
        let ((v, v_host), (mut w, w_host)) =
            (block(device, DType::C64, rows, 3, 1), block(device, DType::C64, rows, 3, 2));
        let c = Update { alpha: 0.3, beta: 0.2, gamma: -1.0 };
        let mut dots = Dots::default();
        kernel.update(c, &v, &mut w, Some(&mut dots)).expect("a product");
        for (i, z) in device.download(&w).expect("numbers").iter().enumerate() {
            let expected = v_host[i] * (0.3 * factors[i / 3 % 12] + 0.2) - w_host[i];
            assert!((z - expected).norm() < 1e-13, "diagonal {dims:?}: number {i}");
        }
        let vv: f64 = v_host.iter().step_by(3).map(|z| z.norm_sqr()).sum();
        assert!((dots.vv[0] - vv).abs() < 1e-9 * vv);
    }
}
