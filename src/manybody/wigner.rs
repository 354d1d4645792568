//! Coupling of angular momenta: Clebsch-Gordan coefficients and Wigner's symbols of six and nine (Edmonds, Angular
//! Momentum in Quantum Mechanics (1957), equations 3.6.11, 6.3.7 and 6.4.3).
//! All arguments are twice the angular momenta.

use std::cell::RefCell;
use std::collections::HashMap;

/// Whether three angular momenta couple to zero.
pub(super) fn triangle(a: i32, b: i32, c: i32) -> bool {
    (a + b + c) % 2 == 0 && (a - b).abs() <= c && c <= a + b
}

/// The angular momenta that two couple to.
pub(super) fn couplings(a: i32, b: i32) -> impl Iterator<Item = i32> {
    ((a - b).abs()..=a + b).step_by(2)
}

/// A quotient of products of factorials. Those of similar size divide each other first, so that nothing overflows.
fn factorials(above: &mut [i32], below: &mut [i32]) -> f64 {
    above.sort_unstable_by(|a, b| b.cmp(a));
    below.sort_unstable_by(|a, b| b.cmp(a));
    let mut all = 1.0;
    for k in 0..above.len().max(below.len()) {
        let (a, b) = (above.get(k).copied().unwrap_or(0), below.get(k).copied().unwrap_or(0));
        (b.max(1) + 1..=a).for_each(|n| all *= f64::from(n));
        (a.max(1) + 1..=b).for_each(|n| all /= f64::from(n));
    }
    all
}

/// `<j m k q | J M>` with `M = m + q`.
pub(super) fn clebsch_gordan([j, m]: [i32; 2], [k, q]: [i32; 2], [total, sum]: [i32; 2]) -> f64 {
    let inside = |j: i32, m: i32| m.abs() <= j && (j + m) % 2 == 0;
    if m + q != sum || !triangle(j, k, total) || !inside(j, m) || !inside(k, q) || !inside(total, sum) {
        return 0.0;
    }
    let h = |n: i32| n / 2;
    let mut value = 0.0;
    let first = 0.max(h(k - total - m)).max(h(j + q - total));
    let last = h(j + k - total).min(h(j - m)).min(h(k + q));
    for t in first..=last {
        let mut above = vec![h(total + j - k), h(total - j + k), h(j + k - total)];
        above.extend([total + sum, total - sum, j - m, j + m, k - q, k + q].map(h));
        let own =
            [t, h(j + k - total) - t, h(j - m) - t, h(k + q) - t, h(total - k + m) + t, h(total - j - q) + t];
        let mut below = vec![h(j + k + total) + 1];
        below.extend(own.into_iter().flat_map(|n| [n, n]));
        let size = (f64::from(total + 1) * factorials(&mut above, &mut below)).sqrt();
        value += if t % 2 == 0 { size } else { -size };
    }
    value
}

/// `{a b c; d e f}`.
pub(super) fn six(a: i32, b: i32, c: i32, d: i32, e: i32, f: i32) -> f64 {
    let triads = [[a, b, c], [a, e, f], [d, b, f], [d, e, c]];
    if !triads.iter().all(|t| triangle(t[0], t[1], t[2])) {
        return 0.0;
    }
    let h = |n: i32| n / 2;
    let sums = triads.map(|t| h(t[0] + t[1] + t[2]));
    let quads = [h(a + b + d + e), h(b + c + e + f), h(c + a + f + d)];
    let (first, last) = (sums.into_iter().max().unwrap_or(0), quads.into_iter().min().unwrap_or(0));
    let mut value = 0.0;
    for t in first..=last {
        let mut above = vec![t + 1, t + 1];
        let mut below = Vec::with_capacity(18);
        for [a, b, c] in triads {
            above.extend([h(a + b - c), h(a - b + c), h(b + c - a)]);
            below.push(h(a + b + c) + 1);
        }
        let own = sums.iter().map(|s| t - s).chain(quads.iter().map(|q| q - t));
        below.extend(own.flat_map(|n| [n, n]));
        let size = factorials(&mut above, &mut below).sqrt();
        value += if t % 2 == 0 { size } else { -size };
    }
    value
}

/// `{a; b; c}`, each a row of three.
fn nine([a, b, c]: [[i32; 3]; 3]) -> f64 {
    let lowest = (a[0] - c[2]).abs().max((b[0] - c[1]).abs()).max((a[1] - b[2]).abs());
    let highest = (a[0] + c[2]).min(b[0] + c[1]).min(a[1] + b[2]);
    let mut value = 0.0;
    for x in (lowest..=highest).step_by(2) {
        let product = six(a[0], b[0], c[0], c[1], c[2], x)
            * six(a[1], b[1], c[1], b[0], x, b[2])
            * six(a[2], b[2], c[2], x, a[0], a[1]);
        value += f64::from(x + 1) * if x % 2 == 0 { product } else { -product };
    }
    value
}

/// The factor by which reduced matrix elements multiply when two systems are coupled (Edmonds 7.1.5): `[j, j', k]` of
/// the first, of the second, and of both, where `<j || T^k || j'>` are in units of
/// `((2 j + 1) (2 j' + 1) (2 k + 1))^(1/4)`. In these units scalars have their own matrix elements, and a scalar
/// product of two systems in a singlet is the product.
pub(super) fn recoupling(first: [i32; 3], second: [i32; 3], both: [i32; 3]) -> f64 {
    thread_local! {
        static KNOWN: RefCell<HashMap<[[i32; 3]; 3], f64>> = RefCell::default();
    }
    let rows = [first, second, both];
    let columns = (0..3).all(|k| triangle(first[k], second[k], both[k]));
    if !columns || !rows.iter().all(|r| triangle(r[0], r[1], r[2])) {
        return 0.0;
    }
    KNOWN.with_borrow_mut(|known| {
        *known.entry(rows).or_insert_with(|| {
            let sizes: f64 = rows.iter().flatten().map(|&j| f64::from(j + 1)).product();
            sizes.sqrt().sqrt() * nine(rows)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Closed forms, and orthogonality of the coefficients that couple two spins.
    #[test]
    fn coefficients_are_orthogonal_and_known() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-13, "{a} for {b}");
        close(clebsch_gordan([1, 1], [1, -1], [0, 0]), 0.5f64.sqrt());
        close(clebsch_gordan([1, -1], [1, 1], [0, 0]), -(0.5f64.sqrt()));
        close(clebsch_gordan([2, 0], [2, 0], [2, 0]), 0.0);
        close(clebsch_gordan([2, 0], [2, 0], [4, 0]), (2.0f64 / 3.0).sqrt());
        // {1 1 1; 1 1 1} and {1/2 1/2 1; 1/2 1/2 1}.
        close(six(2, 2, 2, 2, 2, 2), 1.0 / 6.0);
        close(six(1, 1, 2, 1, 1, 2), 1.0 / 6.0);
        close(six(1, 1, 2, 1, 1, 0), 0.5);
        // {1 1 1; 1 1 1; 1 1 0} = 1/18.
        close(nine([[2, 2, 2], [2, 2, 2], [2, 2, 0]]), 1.0 / 18.0);
        for (j, k) in [(1, 1), (2, 3), (4, 4), (201, 2), (60, 5)] {
            for m in [-j, -j + 2 * (j / 3), j] {
                for q in (-k..=k).step_by(2) {
                    let sum: f64 =
                        couplings(j, k).map(|t| clebsch_gordan([j, m], [k, q], [t, m + q]).powi(2)).sum();
                    close(sum, 1.0);
                }
            }
        }
        // Rows of the recoupling of three spins are orthonormal, also for large ones.
        for (a, b, c, total) in [(1, 1, 1, 1), (2, 3, 4, 3), (100, 2, 1, 99), (300, 4, 2, 300)] {
            for f in couplings(b, c).filter(|f| triangle(a, *f, total)) {
                let one = |e: i32| f64::from((e + 1) * (f + 1)) * six(a, b, e, c, total, f).powi(2);
                close(couplings(a, b).filter(|e| triangle(*e, c, total)).map(one).sum(), 1.0);
            }
        }
        close(recoupling([3, 3, 0], [2, 2, 0], [5, 5, 0]), 1.0);
        close(recoupling([200, 200, 0], [1, 1, 0], [201, 201, 0]), 1.0);
    }
}
