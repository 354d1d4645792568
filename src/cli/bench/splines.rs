//! Orbitals on a grid: cubic B-splines at random points, values alone and with gradient and Laplacian.

use std::sync::Arc;

use super::{Bench, header, line, timed};
use crate::backend::Device;
use crate::backend::splines::{Planes, SplineShape, SplineTable};
use crate::error::Result;
use crate::number::philox;

/// Orbitals, grid points along an edge and points at once: the peers' case, one walker and sixteen of the sizes of papers.md C.
const CASES: [(usize, usize, usize, bool); 6] = [
    (384, 48, 1500, false),
    (56, 50, 216, false),
    (168, 50, 648, false),
    (384, 60, 1536, false),
    (384, 48, 16 * 1536, false),
    (384, 60, 16 * 1536, true),
];

/// One row a case, precision and what is evaluated. "Least" are the 64 rows of every point, and the results.
pub(super) fn run(bench: &Bench, device: &Device, bandwidth: f64) -> Result<()> {
    header(["ms", "ns/value", "M values/s", "gathered MB", "GB/s", "of stream"]);
    for (lanes, edge, count, big) in CASES {
        for single in [true, false] {
            let name = |what: &str| {
                let precision = if single { "single" } else { "double" };
                format!("{what} {edge}^3 x {lanes}, {count} points, {precision}")
            };
            let wanted = [("values", 1), ("derivatives", 5)].map(|(what, n)| (name(what), n));
            if (big && !bench.full) || !wanted.iter().any(|(name, _)| bench.wanted(name)) {
                continue;
            }
            let shape = SplineShape {
                grid: [edge; 3],
                lanes,
                inverse: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            };
            let splines = device.splines(Arc::new(random_table(shape, single)?))?;
            let points: Vec<[f64; 3]> = (0..count)
                .map(|i| {
                    let w = philox::words(2, 0, i as u64, 0);
                    let v = philox::words(2, 0, i as u64, 1);
                    [philox::unit(w[0], w[1]), philox::unit(w[2], w[3]), philox::unit(v[0], v[1])]
                })
                .collect();
            for (name, planes) in wanted.iter().filter(|(name, _)| bench.wanted(name)) {
                let real = if single { 4 } else { 8 };
                let mut call: Box<dyn FnMut() -> Result<()>> = if single {
                    let mut out = vec![vec![0f32; count * lanes]; *planes];
                    let (splines, points) = (&splines, &points);
                    Box::new(move || {
                        let out = out.iter_mut().map(Vec::as_mut_slice).collect();
                        splines.evaluate(points, Planes::Single(out))
                    })
                } else {
                    let mut out = vec![vec![0f64; count * lanes]; *planes];
                    let (splines, points) = (&splines, &points);
                    Box::new(move || {
                        let out = out.iter_mut().map(Vec::as_mut_slice).collect();
                        splines.evaluate(points, Planes::Double(out))
                    })
                };
                let seconds = timed(device, bench.limit(), &mut call)?;
                let (values, bytes) = ((count * lanes) as f64, (count * lanes * real * (64 + planes)) as f64);
                line(
                    name,
                    [
                        seconds * 1e3,
                        seconds * 1e9 / values,
                        values / seconds / 1e6,
                        bytes / 1e6,
                        bytes / seconds / 1e9,
                        bytes / seconds / bandwidth,
                    ],
                );
            }
        }
    }
    Ok(())
}

/// A table of numbers that depend on nothing but their place.
fn random_table(shape: SplineShape, single: bool) -> Result<SplineTable> {
    let mut table = SplineTable::zeros(shape, single)?;
    let number = |at: usize| (at as u32).wrapping_mul(2_654_435_761) as f64 / 2f64.powi(32) - 0.5;
    match &mut table {
        SplineTable::Single(t) => {
            t.data_mut().iter_mut().enumerate().for_each(|(at, x)| *x = number(at) as f32)
        }
        SplineTable::Double(t) => t.data_mut().iter_mut().enumerate().for_each(|(at, x)| *x = number(at)),
    }
    Ok(table)
}
