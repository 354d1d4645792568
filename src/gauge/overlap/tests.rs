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
    let squared = q.times(&q).unwrap();
    let upper = 1.01 * exact.iter().fold(0.0, |m: f64, v| m.max(v * v));
    let lowest = |count: usize, tolerance: f64, method| {
        let tolerance = Some(tolerance);
        let options = RitzOptions { tolerance, ..RitzOptions::new(count, 1, method) };
        ritz(&squared, &options, &Task::default()).unwrap()
    };
    let polynomial =
        |least: f64, delta: f64| Fit::Polynomial(MinMax::to_error(0.999 * least / upper, delta).unwrap());
    let parts = |modes, rest: f64, residual: f64, fit: &dyn Fn(f64) -> Fit, delta| {
        let least = rest - residual;
        let (given, touching, seed) = (false, false, 1);
        SignParts { modes, given, touching, rest, least, fit: fit(least), upper, delta, seed }
    };
    let by_hand = |tolerance: f64| {
        let low = lowest(8, tolerance, RitzMethod::ConjugateGradient);
        let of = parts(Some(low.vectors), low.values[7], low.residuals[7], &|y| polynomial(y, 1e-10), 1e-10);
        SignParts { given: true, touching: true, ..of }
    };
    // Eight modes and a gap behind them, or none.
    let found = |keep: usize, fit: &dyn Fn(f64) -> Fit| {
        let low = lowest(keep + 4, 1e-9, RitzMethod::Chebyshev);
        let modes = (keep > 0).then(|| q.device().columns(&low.vectors, 0..keep).unwrap());
        parts(modes, low.values[keep], low.residuals[keep], fit, 1e-6)
    };
    let rational = |y: f64| Fit::Rational(Zolotarev::to_error(0.999 * y / upper, 1e-6).unwrap());
    for (wanted, found) in [
        (by_hand(1e-3), false),
        (by_hand(1e-5), false),
        (by_hand(1e-8), false),
        (found(8, &|y| polynomial(y, 1e-6)), true),
        (found(0, &|y| polynomial(y, 1e-6)), true),
        (found(0, &rational), true),
    ] {
        let x = Sign::build(&q, wanted).unwrap();
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
