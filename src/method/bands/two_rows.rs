//! Two levels in closed form: cells of two rows are common, and a general solver spends its time on the way to them.

use crate::number::{C64, Matrix, Series};

/// A Hermitian matrix `[[mean + half, off], [off^*, mean - half]]`.
pub struct TwoRows {
    mean: f64,
    half: f64,
    off: C64,
    real: bool,
}

/// A matrix of two rows; none for others, and for what is not finite.
pub fn of(h: &Matrix) -> Option<TwoRows> {
    if h.rows() != 2 || h.cols() != 2 {
        return None;
    }
    let (a, off, d, real) = match h.data() {
        Series::Real(x) => (x[0], C64::from(x[1]), x[3], true),
        Series::Complex(z) => (z[0].re, z[1], z[3].re, false),
    };
    let pair = TwoRows { mean: 0.5 * a + 0.5 * d, half: 0.5 * a - 0.5 * d, off, real };
    (pair.mean.is_finite() && pair.half.is_finite() && off.is_finite()).then_some(pair)
}

impl TwoRows {
    fn radius(&self) -> f64 {
        self.half.hypot(self.off.norm())
    }

    /// Both levels, ascending.
    pub fn levels(&self) -> [f64; 2] {
        let r = self.radius();
        [self.mean - r, self.mean + r]
    }

    /// Eigenvectors of both as columns.
    pub fn vectors(&self) -> Option<Matrix> {
        let r = self.radius();
        // The larger sum of both, without cancellation.
        let (large, small) = (r + self.half.abs(), self.off);
        let norm = large.hypot(small.norm());
        let (large, small) =
            if norm > 0.0 { (C64::from(large / norm), small / norm) } else { (C64::ONE, C64::ZERO) };
        let rows = if self.half >= 0.0 {
            [-small, large, large, small.conj()]
        } else {
            [large, small, -small.conj(), large]
        };
        let data = if self.real {
            Series::Real(rows.iter().map(|z| z.re).collect())
        } else {
            Series::Complex(rows.to_vec())
        };
        Matrix::new(2, 2, data).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_those_of_the_general_solver() {
        let z = C64::new;
        let all = [
            (0.3, z(0.4, -0.7), -1.1),
            (-0.3, z(0.4, -0.7), 1.1),
            (1.0, z(0.0, 0.0), -2.0),
            (-2.0, z(0.0, 0.0), 1.0),
            (0.5, z(0.0, 0.0), 0.5),
            (0.0, z(0.0, 0.0), 0.0),
            (0.0, z(1e-200, 1e-200), 0.0),
            (1e150, z(-1e150, 2e150), 3.0),
            (0.0, z(0.0, 3.0), 0.0),
            (2.0, z(1e-9, 0.0), 2.0),
        ];
        for (a, b, d) in all {
            for real in [false, true] {
                let b = if real { C64::from(b.re) } else { b };
                let data = match real {
                    true => Series::Real(vec![a, b.re, b.re, d]),
                    false => Series::Complex(vec![z(a, 0.0), b, b.conj(), z(d, 0.0)]),
                };
                let h = Matrix::new(2, 2, data).unwrap();
                let size = a.abs().max(d.abs()).max(b.norm());
                let pair = of(&h).unwrap();
                let general = h.eigvals().unwrap();
                for (one, other) in pair.levels().iter().zip(general.as_real("levels").unwrap()) {
                    assert!((one - other).abs() <= 4e-16 * size, "{a} {b} {d}: {one} {other}");
                }
                let v = pair.vectors().unwrap();
                let at = |i: usize, j: usize| v.data().to_complex()[2 * i + j];
                for (k, level) in pair.levels().into_iter().enumerate() {
                    let (x, y) = (at(0, k), at(1, k));
                    let off =
                        (a * x + b * y - level * x).norm().max((b.conj() * x + d * y - level * y).norm());
                    assert!(off <= 4e-16 * size, "{a} {b} {d}: residual {off}");
                    assert!((x.norm_sqr() + y.norm_sqr() - 1.0).abs() < 1e-15);
                }
                assert!((at(0, 0).conj() * at(0, 1) + at(1, 0).conj() * at(1, 1)).norm() < 1e-15);
            }
        }
        assert!(of(&Matrix::new(2, 2, Series::Real(vec![f64::NAN, 0.0, 0.0, 1.0])).unwrap()).is_none());
        assert!(of(&Matrix::new(1, 1, Series::Real(vec![1.0])).unwrap()).is_none());
    }
}
