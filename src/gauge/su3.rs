//! 3 x 3 complex matrices: products, exponentials of Hermitian ones, projection onto SU(3), Gell-Mann matrices.

pub use crate::backend::matrix::wilson::{Su3, with_rows};
use crate::number::C64;

/// Number of colours: the trace of the unit matrix.
pub const COLOURS: f64 = 3.0;

/// The unit matrix.
pub const UNIT: Su3 =
    [C64::ONE, C64::ZERO, C64::ZERO, C64::ZERO, C64::ONE, C64::ZERO, C64::ZERO, C64::ZERO, C64::ONE];

/// `a b`.
#[inline]
pub fn mul(a: &Su3, b: &Su3) -> Su3 {
    let mut c = [C64::ZERO; 9];
    for i in 0..3 {
        for k in 0..3 {
            let x = a[3 * i + k];
            for j in 0..3 {
                c[3 * i + j] += x * b[3 * k + j];
            }
        }
    }
    c
}

/// `a^+ b`.
#[inline]
pub fn adj_mul(a: &Su3, b: &Su3) -> Su3 {
    mul(&dagger(a), b)
}

/// `a b^+`.
#[inline]
pub fn mul_adj(a: &Su3, b: &Su3) -> Su3 {
    mul(a, &dagger(b))
}

/// `a^+`.
#[inline]
pub fn dagger(a: &Su3) -> Su3 {
    std::array::from_fn(|k| a[3 * (k % 3) + k / 3].conj())
}

/// `a + s b`.
#[inline]
pub fn add(a: &Su3, s: f64, b: &Su3) -> Su3 {
    std::array::from_fn(|k| a[k] + b[k] * s)
}

/// `s a`.
#[inline]
pub fn scale(s: f64, a: &Su3) -> Su3 {
    std::array::from_fn(|k| a[k] * s)
}

#[inline]
pub fn trace(a: &Su3) -> C64 {
    a[0] + a[4] + a[8]
}

/// `a` less the part of the unit matrix in it.
#[inline]
pub fn traceless(mut a: Su3) -> Su3 {
    let part = trace(&a) / COLOURS;
    for k in [0, 4, 8] {
        a[k] -= part;
    }
    a
}

/// The Hermitian and traceless part of -i a: Q with (a - a^+)/2 = i Q + trace.
#[inline]
pub fn hermitian_traceless(a: &Su3) -> Su3 {
    let d = dagger(a);
    traceless(std::array::from_fn(|k| (a[k] - d[k]) * C64::new(0.0, -0.5)))
}

/// exp(i q) of a Hermitian matrix: q is halved until it is small, the series summed to rounding, the result squared.
pub fn exp_i(q: &Su3) -> Su3 {
    let norm = q.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
    let halvings = if norm > 0.25 { (norm / 0.25).log2().ceil() as i32 } else { 0 };
    let x: Su3 = q.map(|z| z * C64::new(0.0, 0.5f64.powi(halvings)));
    // 0.25^13/13! is below rounding.
    let mut sum = UNIT;
    for k in (1..=13).rev() {
        sum = add(&UNIT, 1.0 / f64::from(k), &mul(&x, &sum));
    }
    for _ in 0..halvings {
        sum = mul(&sum, &sum);
    }
    reunitarised(&sum)
}

/// A projection onto SU(3) by Gram and Schmidt: the first two rows orthonormal, the third their conjugate cross
/// product.
pub fn reunitarised(u: &Su3) -> Su3 {
    let unit = |v: [C64; 3]| {
        let n = v.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
        v.map(|z| z / n)
    };
    let a = unit([u[0], u[1], u[2]]);
    let b = [u[3], u[4], u[5]];
    let along: C64 = (0..3).map(|k| a[k].conj() * b[k]).sum();
    let b = unit(std::array::from_fn(|k| b[k] - along * a[k]));
    with_rows(a, b)
}

/// The element of SU(3) that maximises Re Tr(U^+ m): iterated over the three SU(2) subgroups.
pub fn projected(m: &Su3) -> Su3 {
    let mut u = reunitarised(m);
    for _ in 0..200 {
        let mut moved = 0.0f64;
        for pair in SUBGROUPS {
            // Rotating u by the subgroup's best element makes u m^+ as near to Hermitian positive as it gets.
            let w = mul_adj(m, &u);
            let a = Quaternion::of(&w, pair);
            let n = a.norm();
            if n < 1e-300 {
                continue;
            }
            let r = a.scaled(1.0 / n);
            moved = moved.max((r.0[0] - 1.0).abs().max(r.0[1].abs()).max(r.0[2].abs()).max(r.0[3].abs()));
            u = r.rotate(&u, pair);
        }
        if moved < 1e-15 {
            break;
        }
    }
    reunitarised(&u)
}

/// Rows and columns of the SU(2) subgroups.
pub const SUBGROUPS: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 2)];

/// A multiple of an SU(2) matrix: a0 + i a . sigma.
#[derive(Clone, Copy, Debug)]
pub struct Quaternion(pub [f64; 4]);

impl Quaternion {
    /// The part of a 2 x 2 block that is proportional to SU(2), twice.
    pub fn of(m: &Su3, (i, j): (usize, usize)) -> Quaternion {
        let (a, b, c, d) = (m[3 * i + i], m[3 * i + j], m[3 * j + i], m[3 * j + j]);
        Quaternion([a.re + d.re, b.im + c.im, b.re - c.re, a.im - d.im])
    }

    /// The factor: 1 of an SU(2) matrix.
    pub fn norm(&self) -> f64 {
        self.0.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// The multiple by a real number.
    pub fn scaled(&self, s: f64) -> Quaternion {
        Quaternion(self.0.map(|x| x * s))
    }

    /// The conjugate transpose.
    pub fn conj(&self) -> Quaternion {
        let [a, b, c, d] = self.0;
        Quaternion([a, -b, -c, -d])
    }

    /// The matrix product.
    pub fn times(&self, o: &Quaternion) -> Quaternion {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, o.0);
        Quaternion([
            a * e - b * f - c * g - d * h,
            a * f + b * e - c * h + d * g,
            a * g + c * e - d * f + b * h,
            a * h + d * e - b * g + c * f,
        ])
    }

    /// This rotation of two rows of a matrix from the left.
    pub fn rotate(&self, u: &Su3, (i, j): (usize, usize)) -> Su3 {
        let [a0, a1, a2, a3] = self.0;
        let (p, q) = (C64::new(a0, a3), C64::new(a2, a1));
        let mut out = *u;
        for k in 0..3 {
            let (x, y) = (u[3 * i + k], u[3 * j + k]);
            out[3 * i + k] = p * x + q * y;
            out[3 * j + k] = p.conj() * y - q.conj() * x;
        }
        out
    }
}

/// sum_a theta_a lambda_a with the eight Gell-Mann matrices.
pub fn gell_mann(theta: &[f64; 8]) -> Su3 {
    let [t1, t2, t3, t4, t5, t6, t7, t8] = *theta;
    let e = t8 / 3f64.sqrt();
    let z = C64::new;
    [
        z(t3 + e, 0.0),
        z(t1, -t2),
        z(t4, -t5),
        z(t1, t2),
        z(e - t3, 0.0),
        z(t6, -t7),
        z(t4, t5),
        z(t6, t7),
        z(-2.0 * e, 0.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: &Su3, b: &Su3, eps: f64) {
        assert!(a.iter().zip(b).all(|(x, y)| (x - y).norm() < eps), "{a:?}\n{b:?}");
    }

    #[test]
    fn exponentials_are_unitary_and_add_along_a_direction() {
        let q = gell_mann(&[0.3, -1.1, 0.7, 2.0, -0.4, 0.9, 0.1, -1.3]);
        let u = exp_i(&q);
        near(&mul_adj(&u, &u), &UNIT, 1e-14);
        near(&mul(&u, &u), &exp_i(&scale(2.0, &q)), 1e-13);
        near(&mul(&u, &exp_i(&scale(-1.0, &q))), &UNIT, 1e-13);
        near(&hermitian_traceless(&q.map(|z| z * C64::new(0.0, 1.0))), &q, 1e-15);
    }

    #[test]
    fn subgroups_act_as_matrices() {
        let u = exp_i(&gell_mann(&[0.3, 0.2, 0.7, 1.0, -0.4, 0.9, 0.1, -0.3]));
        for pair in SUBGROUPS {
            let (a, b) = (Quaternion([0.1, 0.7, -0.4, 0.3]), Quaternion([0.5, -0.2, 0.9, 0.1]));
            near(&a.rotate(&b.rotate(&u, pair), pair), &a.times(&b).rotate(&u, pair), 1e-14);
            near(
                &a.conj().rotate(&a.rotate(&u, pair), pair),
                &{
                    let n = a.norm().powi(2);
                    let mut v = u;
                    (0..3).for_each(|k| v[3 * pair.0 + k] *= n);
                    (0..3).for_each(|k| v[3 * pair.1 + k] *= n);
                    v
                },
                1e-14,
            );
            let m = a.rotate(&UNIT, pair);
            let back = Quaternion::of(&m, pair).scaled(0.5);
            assert!(back.0.iter().zip(a.0).all(|(x, y)| (x - y).abs() < 1e-15));
        }
    }

    #[test]
    fn the_projection_maximises_the_trace() {
        let u = exp_i(&gell_mann(&[0.3, 0.2, 0.7, 1.0, -0.4, 0.9, 0.1, -0.3]));
        let h = gell_mann(&[0.1, 0.2, -0.1, 0.05, 0.2, -0.1, 0.1, 0.02]);
        // A positive Hermitian matrix times a unitary one has that as its projection.
        let m = mul(&add(&UNIT, 0.5, &h), &u);
        near(&projected(&m), &u, 1e-12);
    }
}
