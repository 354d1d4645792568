//! Orbitals on a grid: cubic B-splines at random points, values alone and with gradient and Laplacian.

use std::sync::Arc;

use super::{Bench, header, line, timed};
use crate::backend::Device;
use crate::backend::splines::{SplineShape, SplineTable};
use crate::backend::walkers::monte_carlo;
use crate::error::Result;
use crate::number::philox;

/// Orbitals, grid points along an edge and points at once: the peers' case, one walker and sixteen of the sizes of
/// Uejima and Maezono 2012.
const CASES: [(usize, usize, usize); 6] = [
    (384, 48, 1500),
    (56, 50, 216),
    (168, 50, 648),
    (384, 60, 1536),
    (384, 48, 16 * 1536),
    (384, 60, 16 * 1536),
];

/// The first of the ways kept for comparison takes a launch an electron: for one walker only.
const ONE_WALKER: usize = 1536;

/// One row a case, precision and what is evaluated. "Gathered" are the 64 rows of every point and the results: points
/// that share rows find them in a cache, so that the rate may pass that of memory. Sorting is part of the time.
pub(super) fn run(bench: &Bench, device: &Device, bandwidth: f64) -> Result<()> {
    header(&["ms", "ns/value", "M values/s", "gathered MB", "GB/s", "of stream"]);
    for (lanes, edge, count) in CASES {
        for single in [true, false] {
            let name = |what: &str| {
                let precision = if single { "single" } else { "double" };
                format!("{what} {edge}^3 x {lanes}, {count} points, {precision}")
            };
            let wanted = [("values", 1), ("derivatives", 5)].map(|(what, n)| (name(what), n));
            if !wanted.iter().any(|(name, _)| bench.wanted(name)) {
                continue;
            }
            let shape = SplineShape {
                grid: [edge; 3],
                lanes,
                inverse: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            };
            let splines = monte_carlo(device)?.splines(Arc::new(random_table(shape, single)?))?;
            let points: Vec<[f64; 3]> = (0..count)
                .map(|i| {
                    let w = philox::words(2, 0, i as u64, 0);
                    let v = philox::words(2, 0, i as u64, 1);
                    [philox::unit(w[0], w[1]), philox::unit(w[2], w[3]), philox::unit(v[0], v[1])]
                })
                .collect();
            let mut batch = splines.batch(&points)?;
            let real = if single { 4 } else { 8 };
            let values = (count * lanes) as f64;
            let row = |name: &str, planes: usize, seconds: f64| {
                let bytes = values * (real * (64 + planes)) as f64;
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
            };
            for (name, planes) in wanted.iter().filter(|(name, _)| bench.wanted(name)) {
                let seconds = timed(device, bench.limit(), || match planes {
                    1 => batch.values(),
                    _ => batch.derivatives(),
                })?;
                row(name, *planes, seconds);
            }
            for (k, way) in batch.assignments().iter().enumerate() {
                let name = name(way);
                if bench.wanted(&name) && (k > 0 || count <= ONE_WALKER) {
                    let seconds = timed(device, bench.limit(), || batch.values_by(k))?;
                    row(&name, 1, seconds);
                }
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
