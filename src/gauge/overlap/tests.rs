//! Sign functions against all eigenvectors of small operators.

use std::sync::Arc;

use super::*;
use crate::backend::cpu::Cpu;
use crate::backend::matrix::wilson::Compression;
use crate::backend::{BlockVector, Device, Update};
use crate::error::Result;
use crate::gauge::Links;
use crate::lattice::Lattice;
use crate::method::{MinMax, RitzMethod, RitzOptions, Zolotarev, hermitian_eigen, ritz};
use crate::number::C64;
use crate::operator::{Operator, WilsonOperator};
use crate::task::{Interrupt, Task};

fn kernel(r: f64, s: f64) -> Operator {
    let device: Device = Arc::new(Cpu::new(2, Interrupt::default()).unwrap());
    let lattice = Lattice::hypercubic(&[2, 2, 2, 4]).unwrap();
    let u = Links::unit(&lattice).unwrap().reference_field(r).unwrap().with_sign([1.0, 1.0, 1.0, -1.0]);
    WilsonOperator::build(&device, u.wilson(-1.0 - s, true, Compression::Twelve, false).unwrap()).unwrap()
}

/// All entries, row by row.
fn dense(n: usize, product: impl Fn(&BlockVector) -> Result<BlockVector>, like: &Operator) -> Vec<C64> {
    let identity: Vec<C64> =
        (0..n * n).map(|k| C64::new(f64::from(u8::from(k % (n + 1) == 0)), 0.0)).collect();
    let columns = like.device().upload(like.dtype(), like.rows(), n, &identity).unwrap();
    like.device().download(&product(&columns).unwrap()).unwrap()
}

/// The largest |eigenvalue| of a difference of Hermitian matrices.
fn distance(n: usize, a: &[C64], b: &[C64]) -> f64 {
    let difference: Vec<C64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let (values, _) = hermitian_eigen(n, &difference, true).unwrap();
    values.iter().fold(0.0, |m, v| m.max(v.abs()))
}

/// sum_k f(k) v_k v_k^+ of the columns of a matrix.
fn sum(n: usize, count: usize, v: &[C64], f: impl Fn(usize) -> f64) -> Vec<C64> {
    let mut out = vec![C64::default(); n * n];
    for k in (0..count).filter(|&k| f(k) != 0.0) {
        for i in 0..n {
            let left = v[i * count + k] * f(k);
            for j in 0..n {
                out[i * n + j] += left * v[j * count + k].conj();
            }
        }
    }
    out
}

/// Against all eigenvectors: the bounds hold for modes known well or roughly, given by hand or found, and are not too
/// large by orders of magnitude.
#[test]
fn bounds_hold_against_all_eigenvectors() {
    let q = kernel(0.5, 0.4);
    let n = q.dim();
    let image = |v: &BlockVector| {
        let mut w = q.zeros(v.columns())?;
        q.update(Update::PRODUCT, v, &mut w, None).map(|()| w)
    };
    let (exact, vectors) = hermitian_eigen(n, &dense(n, image, &q), true).unwrap();
    let sign = sum(n, n, &vectors, |k| exact[k].signum());
    let low = |tolerance: f64| {
        let tolerance = Some(tolerance);
        let options = RitzOptions { tolerance, ..RitzOptions::new(8, 1, RitzMethod::ConjugateGradient) };
        Some(ritz(&q.times(&q).unwrap(), &options, &Task::default()).unwrap())
    };
    let by_hand = |low| SignOptions { low, delta: 1e-10, seed: 1, ..SignOptions::default() };
    for (wanted, found) in [
        (by_hand(low(1e-3)), false),
        (by_hand(low(1e-5)), false),
        (by_hand(low(1e-8)), false),
        (SignOptions { modes: Some(8), delta: 1e-6, seed: 1, ..SignOptions::default() }, true),
        (SignOptions { modes: Some(0), delta: 1e-6, seed: 1, ..SignOptions::default() }, true),
        (
            SignOptions { modes: Some(0), zolotarev: true, delta: 1e-6, seed: 1, ..SignOptions::default() },
            true,
        ),
    ] {
        let x = Sign::build(&q, wanted, &Task::default()).unwrap();
        let report = x.report();
        let off = distance(n, &dense(n, |v| x.apply(v, 0.0), &q), &sign);
        assert!(off <= report.bound && report.bound < 20.0 * off + 2.0 * report.delta, "{off:e}, {report:?}");
        let Some(low) = &x.low else { continue };
        // Eq. (2.12) without the factor 1 + s - m/2 of both sides, beside the fit's deviation.
        let by_modes = off - report.delta;
        assert!(by_modes <= report.modes_bound(), "{by_modes:e}, {report:?}");
        // Eq. (2.10), for modes with a gap to the rest.
        let edge = if found { f64::INFINITY } else { low.edge() };
        let count = low.values.len();
        let own = q.device().download(&low.vectors).unwrap();
        let parted = low.values.iter().filter(|v| v.abs() < edge).count();
        assert!(parted >= count / 2, "{:?}", low.values);
        let least = low.values.iter().map(|v| v.abs()).filter(|v| *v < edge).fold(0.0, f64::max);
        for (side, bound) in [1.0, -1.0].into_iter().zip(report.projectors()) {
            let inside =
                |v: f64| f64::from(u8::from(v * side > 0.0 && v.abs() < edge && v.abs() <= least + 1e-6));
            let (ritz, projector) =
                (sum(n, count, &own, |k| inside(low.values[k])), sum(n, n, &vectors, |k| inside(exact[k])));
            let off = distance(n, &ritz, &projector);
            assert!(off <= bound + 1e-12 && bound < 100.0 * off + 1e-10, "{off:e}, {bound:e}, {report:?}");
        }
    }
}

/// An eigenvalue of |Q| far below the others, which a rough search does not see: at 3.218e-6.
#[test]
fn the_lowest_eigenvalue_is_not_believed_before_it_is_known() {
    let q = kernel(0.8, 0.975871128);
    let wanted = |modes| SignOptions { modes: Some(modes), delta: 1e-8, seed: 1, ..SignOptions::default() };
    for found in [wanted(8), SignOptions { modes: None, ..wanted(8) }] {
        let x = Sign::build(&q, found, &Task::default()).unwrap();
        let r = x.report();
        assert!((r.gap / 3.218e-6 - 1.0).abs() < 1e-3 && r.bound < 2e-8 && r.modes > 0, "{r:?}");
    }
    let refused = Sign::build(&q, wanted(0), &Task::default()).err().unwrap();
    assert!(refused.message().contains("takes a polynomial of degree"), "{refused}");
    assert!(refused.hint_text().unwrap().contains("low_modes"), "{refused}");
    for (fit, fragment) in [
        (
            SignOptions { polynomial: Some(MinMax::to_error(5e-6, 1e-8).unwrap()), ..wanted(0) },
            "begins above",
        ),
        (
            SignOptions { rational: Some(Zolotarev::to_error(5e-6, 1e-8).unwrap()), ..wanted(0) },
            "begins above",
        ),
        (SignOptions { zolotarev: true, delta: 1e-11, ..wanted(0) }, "rounding leaves"),
    ] {
        let refused = Sign::build(&q, fit, &Task::default()).err().unwrap();
        assert!(refused.message().contains(fragment), "{refused}");
    }
}
