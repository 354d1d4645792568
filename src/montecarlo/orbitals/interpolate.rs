//! Coefficients of cubic B-splines that take given values at the grid points of a periodic cell, exactly.

use crate::number::C64;
use crate::task;

/// The pole of the cubic spline's interpolation filter: the root of z^2 + 4 z + 1 inside the unit circle.
const POLE: f64 = -0.267_949_192_431_122_7;

/// Values at the points of a periodic line to coefficients: `(c[i-1] + 4 c[i] + c[i+1])/6 = f[i]` (Unser, Aldroubi and
/// Eden's recursive filters, closed over the period).
pub fn periodic(line: &mut [f64]) {
    let n = line.len();
    let closed = 1.0 - POLE.powi(n as i32);
    // Upwards: d[k] = 6 f[k] + z d[k - 1], started by the sum over all earlier points.
    let mut start = 0.0;
    for k in 1..n {
        start = POLE * start + line[k];
    }
    let mut last = (6.0 * (line[0] + POLE * start)) / closed;
    // `start` is sum_k z^(n - 1 - k) f[k] over k = 1 .. n - 1; with f[0] it closes the ring.
    line[0] = last;
    for x in &mut line[1..] {
        last = 6.0 * *x + POLE * last;
        *x = last;
    }
    // Downwards: c[k] = z (c[k + 1] - d[k]).
    let mut sum = 0.0;
    for k in (0..n - 1).rev() {
        sum = line[k] + POLE * sum;
    }
    let mut next = -POLE * (line[n - 1] + POLE * sum) / closed;
    line[n - 1] = next;
    for x in line[..n - 1].iter_mut().rev() {
        next = POLE * (next - *x);
        *x = next;
    }
}

/// The same along all three directions of a grid, `values[(ix ny + iy) nz + iz]`.
pub fn grid(values: &mut [f64], grid: [usize; 3]) {
    let strides = [grid[1] * grid[2], grid[2], 1];
    for axis in 0..3 {
        let (n, stride) = (grid[axis], strides[axis]);
        let mut line = vec![0.0; n];
        let stop = task::current();
        for first in (0..values.len()).filter(|at| at / stride % n == 0) {
            stop.heed();
            for (k, x) in line.iter_mut().enumerate() {
                *x = values[first + k * stride];
            }
            periodic(&mut line);
            for (k, x) in line.iter().enumerate() {
                values[first + k * stride] = *x;
            }
        }
    }
}

/// The coefficients, by grid point, of the spline that is `sum_G c_G exp(i G . r)` at the grid points: a Fourier sum by
/// directions, each wave with the factor `3/(2 + cos theta)` along each.
pub fn from_waves(terms: impl Iterator<Item = ([i32; 3], C64)>, grid: [usize; 3]) -> Vec<C64> {
    let [nx, ny, nz] = grid;
    let angle = |n: i32, size: usize| 2.0 * std::f64::consts::PI * f64::from(n) / size as f64;
    // exp(2 pi i k/n) for all k.
    let roots = grid.map(|n| (0..n).map(|k| C64::cis(angle(k as i32, n))).collect::<Vec<C64>>());
    let root = |a: usize, n: i32, j: usize| -> C64 {
        let m = i64::from(n).rem_euclid(grid[a] as i64) as usize;
        roots[a][m * j % grid[a]]
    };
    use std::collections::BTreeMap;
    let mut lines: BTreeMap<[i32; 2], Vec<C64>> = BTreeMap::new();
    let stop = task::current();
    for (n, c) in terms {
        stop.heed();
        let factor: f64 = (0..3).map(|a| 3.0 / (2.0 + angle(n[a], grid[a]).cos())).product();
        let line = lines.entry([n[0], n[1]]).or_insert_with(|| vec![C64::default(); nz]);
        for (j, slot) in line.iter_mut().enumerate() {
            *slot += c * factor * root(2, n[2], j);
        }
    }
    let mut planes: BTreeMap<i32, Vec<C64>> = BTreeMap::new();
    for ([x, y], line) in lines {
        let plane = planes.entry(x).or_insert_with(|| vec![C64::default(); ny * nz]);
        for (j, row) in plane.chunks_exact_mut(nz).enumerate() {
            stop.heed();
            add(row, root(1, y, j), &line);
        }
    }
    let mut out = vec![C64::default(); nx * ny * nz];
    for (x, plane) in planes {
        for (j, slab) in out.chunks_exact_mut(ny * nz).enumerate() {
            stop.heed();
            add(slab, root(0, x, j), &plane);
        }
    }
    out
}

fn add(to: &mut [C64], factor: C64, from: &[C64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_interpolated() {
        for n in [1usize, 2, 3, 4, 7, 30] {
            let f: Vec<f64> = (0..n).map(|k| ((k * k + 3) as f64 * 0.7).sin()).collect();
            let mut c = f.clone();
            periodic(&mut c);
            for k in 0..n {
                let found = (c[(k + n - 1) % n] + 4.0 * c[k] + c[(k + 1) % n]) / 6.0;
                assert!((found - f[k]).abs() < 1e-13, "{n} {k}: {found} for {}", f[k]);
            }
        }
    }

    #[test]
    fn waves_have_their_interpolation_factor() {
        let theta = 2.0 * std::f64::consts::PI / 48.0;
        for (m, factor, half) in [(1, 1.002859868399, 0.999999232139), (4, 1.046745781122, 0.999790544231)] {
            let mut line: Vec<f64> = (0..48).map(|k| (theta * f64::from(m * k)).cos()).collect();
            periodic(&mut line);
            assert!((line[0] - factor).abs() < 1e-12, "{}", line[0]);
            // The crest half a step from the knots.
            let c = |j: f64| factor * (theta * f64::from(m) * j).cos();
            let crest = (23.0 * (c(0.5) + c(-0.5)) + c(1.5) + c(-1.5)) / 48.0;
            assert!((crest - half).abs() < 1e-12, "{crest}");
        }
    }

    #[test]
    fn sums_of_waves_and_samples_agree() {
        let shape = [6, 5, 8];
        let terms =
            [([1, -2, 3], C64::new(0.3, 0.7)), ([0, 1, 0], C64::new(-0.2, 0.1)), ([2, 0, -1], C64::ONE)];
        let mut samples = Vec::new();
        for k in 0..240 {
            let at = [k / 40, k / 8 % 5, k % 8];
            let mut sum = C64::default();
            for (n, c) in &terms {
                let turns: f64 = (0..3).map(|a| f64::from(n[a]) * at[a] as f64 / shape[a] as f64).sum();
                sum += c * C64::cis(2.0 * std::f64::consts::PI * turns);
            }
            samples.push(sum.im);
        }
        grid(&mut samples, shape);
        let found = from_waves(terms.into_iter(), shape);
        assert!(found.iter().zip(&samples).all(|(z, x)| (z.im - x).abs() < 1e-13));
    }
}
