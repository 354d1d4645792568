//! Polynomials through values at given points (barycentric; Berrut and Trefethen, SIAM Review 46 (2004) 501).

/// Calls `each` with the numbers of points and their shares at `x`, of which the sum comes back: the polynomial there
/// is the sum of shares times values, over that sum.
pub(super) fn shares(points: &[f64], weights: &[f64], x: f64, mut each: impl FnMut(usize, f64)) -> f64 {
    if let Some(at) = points.iter().position(|point| *point == x) {
        each(at, 1.0);
        return 1.0;
    }
    let mut sum = 0.0;
    for (i, (point, weight)) in points.iter().zip(weights).enumerate() {
        let share = weight / (x - point);
        each(i, share);
        sum += share;
    }
    sum
}
