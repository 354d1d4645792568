//! Splines against the plain triple sum of their definition.

use std::sync::Arc;

use umklapp::backend::Device;
use umklapp::backend::splines::{Planes, SplineShape, SplineTable, weights};
use umklapp::backend::walkers::monte_carlo;
use umklapp::number::philox;

fn number(seed: u64, index: usize) -> f64 {
    let w = philox::words(seed, 97, index as u64, 0);
    2.0 * philox::unit(w[0], w[1]) - 1.0
}

/// Value, gradient and Laplacian of one function at one point.
fn reference(table: &SplineTable, lane: usize, r: [f64; 3]) -> [f64; 5] {
    let shape = table.shape();
    let n = shape.grid;
    // Grid coordinates and their gradients, written out.
    let gradient: [[f64; 3]; 3] = std::array::from_fn(|i| shape.inverse[i].map(|x| x * n[i] as f64));
    let u: [f64; 3] = std::array::from_fn(|i| (0..3).map(|d| gradient[i][d] * r[d]).sum());
    let below = u.map(f64::floor);
    let w: [[[f64; 4]; 3]; 3] = std::array::from_fn(|i| weights(u[i] - below[i]));
    let mut out = [0.0; 5];
    for s in 0..64 {
        let k = [s / 16, s / 4 % 4, s % 4];
        let at: [usize; 3] =
            std::array::from_fn(|i| (below[i] as i64 + k[i] as i64 - 1).rem_euclid(n[i] as i64) as usize);
        let c = table.get((at[0] * n[1] + at[1]) * n[2] + at[2], lane);
        let term = |order: [usize; 3]| c * (0..3).map(|i| w[i][order[i]][k[i]]).product::<f64>();
        out[0] += term([0, 0, 0]);
        for i in 0..3 {
            let mut one = [0; 3];
            one[i] = 1;
            for d in 0..3 {
                out[1 + d] += gradient[i][d] * term(one);
            }
            for j in 0..3 {
                let mut two = [0; 3];
                two[i] += 1;
                two[j] += 1;
                let metric: f64 = (0..3).map(|d| gradient[i][d] * gradient[j][d]).sum();
                out[4] += metric * term(two);
            }
        }
    }
    out
}

/// Every width of row, skew cells, grids shorter than a spline, both precisions of table and of result.
pub fn splines(device: &Device) {
    let skew = [[0.21, 0.03, -0.02], [0.01, 0.3, 0.05], [0.0, -0.04, 0.25]];
    let cube = [[0.2, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.2]];
    for (lanes, grid, inverse) in [
        (1, [4, 4, 4], cube),
        (5, [6, 5, 7], skew),
        (16, [3, 2, 1], skew),
        (23, [8, 8, 8], cube),
        (56, [5, 9, 6], skew),
        (131, [6, 6, 6], skew),
    ] {
        for single in [false, true] {
            let shape = SplineShape { grid, lanes, inverse };
            let mut table = SplineTable::zeros(shape, single).expect("a table");
            for lane in 0..lanes {
                table.set_lane(lane, (0..).map(|at| number(lane as u64, at)));
            }
            let table = Arc::new(table);
            let splines = monte_carlo(device).expect("splines").splines(table.clone()).expect("splines");
            for count in [1, 7, 100] {
                let coordinate = |i: usize| 30.0 * number(5, i);
                let mut points: Vec<[f64; 3]> = (0..count)
                    .map(|p| [coordinate(3 * p), coordinate(3 * p + 1), coordinate(3 * p + 2)])
                    .collect();
                points[0] = [0.0; 3];
                let mut planes = vec![vec![0.0; count * lanes]; 5];
                let all = planes.iter_mut().map(Vec::as_mut_slice).collect();
                splines.evaluate(&points, Planes::Double(all)).expect("derivatives");
                let mut values = vec![0.0; count * lanes];
                splines.evaluate(&points, Planes::Double(vec![&mut values])).expect("values");
                assert_eq!(values, planes[0], "values alone and with derivatives");
                let mut short = vec![0f32; count * lanes];
                splines.evaluate(&points, Planes::Single(vec![&mut short])).expect("values");
                assert!(short.iter().zip(&values).all(|(s, v)| *s == *v as f32), "values rounded");
                let mut batch = splines.batch(&points).expect("a batch");
                batch.derivatives().expect("derivatives");
                assert_eq!(batch.read().expect("planes"), planes, "{shape:?}, {count} points");
                for (k, way) in batch.assignments().iter().enumerate() {
                    batch.values_by(k).expect("values");
                    let found = batch.read().expect("a plane");
                    let same = found[0].iter().zip(&values).all(|(a, b)| (a - b).abs() < 3e-6);
                    assert!(same && found.len() == 1, "{way}: {shape:?}, {count} points");
                }
                // Second derivatives of numbers of order one are of the order of the metric.
                let size = [1.0, 10.0, 10.0, 10.0, 40.0];
                let epsilon = if single { 3e-6 } else { 1e-13 };
                for (p, r) in points.iter().enumerate() {
                    for lane in 0..lanes {
                        let expected = reference(&table, lane, *r);
                        for k in 0..5 {
                            let found = planes[k][p * lanes + lane];
                            let error = (found - expected[k]).abs();
                            assert!(
                                error < epsilon * size[k],
                                "{shape:?} {single} point {p} {r:?} plane {k}: {found} for {}",
                                expected[k]
                            );
                        }
                    }
                }
            }
        }
    }
    let mut nothing: Vec<f64> = Vec::new();
    let table =
        SplineTable::zeros(SplineShape { grid: [4; 3], lanes: 2, inverse: cube }, false).expect("a table");
    let splines = monte_carlo(device).expect("splines").splines(Arc::new(table)).expect("splines");
    splines.evaluate(&[], Planes::Double(vec![&mut nothing])).expect("no points");
    assert!(splines.evaluate(&[[0.0; 3]], Planes::Double(vec![&mut nothing])).is_err());
}
