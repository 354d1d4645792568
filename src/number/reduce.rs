//! What a `Series` comes to: sums, means, extremes, integrals; and its running forms.

use super::format::counted;
use super::{C64, DType, Number, Series};
use crate::error::{Error, Result};

impl Series {
    fn nonempty(&self, what: &str) -> Result<()> {
        if self.is_empty() {
            Err(Error::input(format!("the {what} of an empty series")).hint("ask for its length first"))
        } else {
            Ok(())
        }
    }

    /// The sum of all elements, 0 for none. Pairwise, so that rounding grows with the logarithm of the length.
    pub fn sum(&self) -> Number {
        match self {
            Series::Real(data) => Number::Real(pairwise(data)),
            Series::Complex(data) => Number::Complex(pairwise(data)),
        }
    }

    pub fn mean(&self) -> Result<Number> {
        self.nonempty("mean")?;
        let n = self.len() as f64;
        // Large numbers have a mean, too, where their sum is infinite.
        Ok(match (self, self.sum()) {
            (_, Number::Real(x)) if x.is_finite() => Number::Real(x / n),
            (_, Number::Complex(z)) if z.is_finite() => Number::Complex(z / n),
            (Series::Complex(all), _) => Number::Complex(all.iter().map(|z| z / n).sum()),
            (Series::Real(all), _) => Number::Real(all.iter().map(|x| x / n).sum()),
        })
    }

    /// The sample standard deviation (over n - 1); needs two elements.
    pub fn std(&self) -> Result<f64> {
        if self.len() < 2 {
            return Err(Error::input(format!(
                "a standard deviation needs two elements, this series has {}",
                self.len()
            ))
            .hint("one number has no spread"));
        }
        let mean = self.mean()?;
        let away = match mean {
            Number::Real(x) => self.with(super::Arithmetic::Sub, Number::Real(x)),
            Number::Complex(z) => self.with(super::Arithmetic::Sub, Number::Complex(z)),
        };
        Ok(away.norm() / ((self.len() - 1) as f64).sqrt())
    }

    /// The Euclidean norm; its squares neither overflow nor underflow on the way.
    pub fn norm(&self) -> f64 {
        let norm = |scale: f64| {
            let squares: Vec<f64> = match self {
                Series::Real(data) => data.iter().map(|x| (x * scale).powi(2)).collect(),
                Series::Complex(data) => data.iter().map(|z| (z * scale).norm_sqr()).collect(),
            };
            pairwise(&squares).sqrt() / scale
        };
        let plain = norm(1.0);
        let squared = DType::F64.squared();
        if squared.contains(&plain) || plain.is_nan() {
            return plain;
        }
        let parts = |z: C64| z.re.abs().max(z.im.abs());
        let largest = self.iter().map(|x| parts(x.to_c64())).fold(0.0, f64::max);
        match largest {
            0.0 => 0.0,
            x if x.is_infinite() => f64::INFINITY,
            x if x < *squared.start() => norm(2f64.powi(600)),
            _ => norm(2f64.powi(-600)),
        }
    }

    /// The scalar product; the first argument is conjugated. Lengths must agree.
    pub fn dot(&self, other: &Series) -> Result<Number> {
        Ok(self.conj().zip(super::Arithmetic::Mul, other).map_err(|e| e.context("dot"))?.sum())
    }

    /// The place of the smallest element; of the first NaN, if there is one.
    pub fn argmin(&self) -> Result<usize> {
        self.nonempty("smallest element")?;
        Ok(extreme(self.as_real("argmin")?, |a, b| a < b))
    }

    /// The place of the largest element; of the first NaN, if there is one.
    pub fn argmax(&self) -> Result<usize> {
        self.nonempty("largest element")?;
        Ok(extreme(self.as_real("argmax")?, |a, b| a > b))
    }

    /// The smallest element; NaN if any is.
    pub fn min(&self) -> Result<f64> {
        Ok(self.as_real("min")?[self.argmin()?])
    }

    /// The largest element; NaN if any is.
    pub fn max(&self) -> Result<f64> {
        Ok(self.as_real("max")?[self.argmax()?])
    }

    /// Running sums: element `i` is the sum of elements 0 to `i`.
    pub fn cumsum(&self) -> Series {
        match self {
            Series::Real(data) => Series::Real(running(data)),
            Series::Complex(data) => Series::Complex(running(data)),
        }
    }

    /// Differences of neighbours, one element fewer.
    pub fn diff(&self) -> Series {
        match self {
            Series::Real(data) => Series::Real(data.windows(2).map(|w| w[1] - w[0]).collect()),
            Series::Complex(data) => Series::Complex(data.windows(2).map(|w| w[1] - w[0]).collect()),
        }
    }

    /// The elements in ascending order, NaN last.
    pub fn sorted(&self) -> Result<Series> {
        let mut data = self.as_real("sort")?.to_vec();
        // NaN may carry either sign.
        data.sort_by(|a, b| a.is_nan().cmp(&b.is_nan()).then(a.total_cmp(b)));
        Ok(Series::Real(data))
    }

    /// The integral over `x` by the trapezoidal rule; `x` has the same length.
    pub fn integrate(&self, x: &Series) -> Result<Number> {
        if self.len() != x.len() {
            return Err(Error::input(format!(
                "integrate: {} at {}",
                counted(self.len(), "value"),
                counted(x.len(), "point")
            ))
            .hint("there is one value at each point"));
        }
        let x = x.as_real("integrate")?;
        Ok(match self {
            Series::Real(y) => Number::Real(pairwise(&trapezoids(y, x))),
            Series::Complex(y) => Number::Complex(pairwise(&trapezoids(y, x))),
        })
    }

    /// The values at the points `at`, linearly between the points (`x`, self), constant outside; `x` must ascend.
    pub fn interp(&self, x: &Series, at: &Series) -> Result<Series> {
        if self.len() != x.len() {
            return Err(Error::input(format!(
                "interp: {} at {}",
                counted(self.len(), "value"),
                counted(x.len(), "point")
            ))
            .hint("there is one value at each point"));
        }
        self.nonempty("interpolation")?;
        let x = x.as_real("interp")?;
        if x.windows(2).any(|w| w[0] >= w[1] || w[0].is_nan() || w[1].is_nan()) {
            return Err(Error::input("interp: the points must ascend").hint("sort them first"));
        }
        let at = at.as_real("interp")?;
        Ok(match self {
            Series::Real(y) => Series::Real(at.iter().map(|&t| between(y, x, t)).collect()),
            Series::Complex(y) => Series::Complex(at.iter().map(|&t| between(y, x, t)).collect()),
        })
    }
}

/// What sums need of a number.
trait SummedNumber:
    Copy
    + Default
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<f64, Output = Self>
    + std::iter::Sum
{
}
impl SummedNumber for f64 {}
impl SummedNumber for C64 {}

fn pairwise<T: SummedNumber>(data: &[T]) -> T {
    if data.len() <= 64 {
        data.iter().copied().sum()
    } else {
        let (a, b) = data.split_at(data.len() / 2);
        pairwise(a) + pairwise(b)
    }
}

fn running<T: SummedNumber>(data: &[T]) -> Vec<T> {
    let mut total = T::default();
    data.iter()
        .map(|&x| {
            total = total + x;
            total
        })
        .collect()
}

fn trapezoids<T: SummedNumber>(y: &[T], x: &[f64]) -> Vec<T> {
    y.windows(2).zip(x.windows(2)).map(|(y, x)| (y[0] + y[1]) * (0.5 * (x[1] - x[0]))).collect()
}

fn between<T: SummedNumber>(y: &[T], x: &[f64], t: f64) -> T {
    if t.is_nan() {
        return y[0] * f64::NAN;
    }
    let right = x.partition_point(|&p| p <= t);
    if right == 0 {
        y[0]
    } else if right == x.len() {
        y[right - 1]
    } else {
        let (from, to) = (x[right - 1], x[right]);
        // On a point its own value, whatever is beside it.
        if t == from {
            return y[right - 1];
        }
        let width = to - from;
        let share = if width.is_finite() {
            (t - from) / width
        } else {
            (0.5 * t - 0.5 * from) / (0.5 * to - 0.5 * from)
        };
        y[right - 1] + (y[right] - y[right - 1]) * share
    }
}

fn extreme(data: &[f64], better: impl Fn(f64, f64) -> bool) -> usize {
    if let Some(none) = data.iter().position(|x| x.is_nan()) {
        return none;
    }
    (1..data.len()).fold(0, |best, i| if better(data[i], data[best]) { i } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_integrals() {
        let x = Series::linspace(0.0, 1.0, 101).unwrap();
        assert!((x.integrate(&x).unwrap().re() - 0.5).abs() < 1e-14);
        assert!((x.sum().re() - 50.5).abs() < 1e-12);
        assert_eq!(x.diff().len(), 100);
        assert!((x.cumsum().at(-1).unwrap().re() - 50.5).abs() < 1e-12);
        assert!(x.integrate(&x.diff()).is_err());
    }

    #[test]
    fn what_is_no_number_is_the_extreme() {
        let s = Series::from(vec![2.0, 3.0, 1.0, 3.0]);
        assert_eq!((s.argmin().unwrap(), s.argmax().unwrap()), (2, 1));
        for at in 0..3 {
            let mut data = vec![2.0, 3.0, 1.0];
            data[at] = -f64::NAN;
            let s = Series::from(data);
            assert_eq!((s.argmin().unwrap(), s.argmax().unwrap()), (at, at));
            assert!(s.min().unwrap().is_nan() && s.max().unwrap().is_nan());
            let sorted = s.sorted().unwrap();
            assert!(
                sorted.at(2).unwrap().re().is_nan()
                    && sorted.at(0).unwrap().re() < sorted.at(1).unwrap().re()
            );
        }
        assert!(Series::from(Vec::<f64>::new()).max().is_err());
        assert!(Series::from(vec![C64::I]).max().is_err());
    }

    #[test]
    fn interpolation_is_linear_and_flat_outside() {
        let (x, y) = (Series::from(vec![0.0, 1.0, 3.0]), Series::from(vec![0.0, 2.0, 0.0]));
        let at = Series::from(vec![-1.0, 0.5, 1.0, 2.0, 9.0]);
        assert_eq!(y.interp(&x, &at).unwrap(), Series::from(vec![0.0, 1.0, 2.0, 1.0, 0.0]));
        assert!(y.interp(&y, &at).is_err());
    }

    #[test]
    fn the_first_factor_is_conjugated() {
        let s = Series::from(vec![C64::I, C64::ONE]);
        assert_eq!(s.dot(&s).unwrap(), Number::Complex(C64::new(2.0, 0.0)));
        assert!((Series::from(vec![1.0, 2.0, 3.0]).std().unwrap() - 1.0).abs() < 1e-15);
    }
}
