//! `Series`: one-dimensional host data, real or complex, with elementwise arithmetic.
//! Sums, integrals and the like are in `reduce.rs`.

use std::fmt;

use super::format::{complex, counted, real};
use super::{Arithmetic, C64, ElementaryFunction, Number};
use crate::error::{Error, Result};
use crate::task;

/// One-dimensional data on the host. Arithmetic is elementwise; real data stay real until a complex number joins.
#[derive(Debug, Clone, PartialEq)]
pub enum Series {
    Real(Vec<f64>),
    Complex(Vec<C64>),
}

impl From<Vec<f64>> for Series {
    fn from(data: Vec<f64>) -> Self {
        Series::Real(data)
    }
}

impl From<Vec<C64>> for Series {
    fn from(data: Vec<C64>) -> Self {
        Series::Complex(data)
    }
}

impl FromIterator<Number> for Series {
    /// Real if all the numbers are.
    fn from_iter<I: IntoIterator<Item = Number>>(numbers: I) -> Self {
        let numbers: Vec<Number> = numbers.into_iter().collect();
        if numbers.iter().all(|x| matches!(x, Number::Real(_))) {
            Series::Real(numbers.into_iter().map(Number::re).collect())
        } else {
            Series::Complex(numbers.into_iter().map(Number::to_c64).collect())
        }
    }
}

/// Elements between two looks at whether the user wants to stop.
const PIECE: usize = 1 << 16;

/// A function of each element.
fn each<A: Copy, B>(data: &[A], f: impl Fn(A) -> B) -> Vec<B> {
    let interrupt = task::current();
    let mut out = Vec::with_capacity(data.len());
    for piece in data.chunks(PIECE) {
        interrupt.heed();
        out.extend(piece.iter().map(|&x| f(x)));
    }
    out
}

/// A function of each two elements at one place.
fn pairs<A: Copy, B>(a: &[A], b: &[A], f: impl Fn(A, A) -> B) -> Vec<B> {
    let interrupt = task::current();
    let mut out = Vec::with_capacity(a.len());
    for (a, b) in a.chunks(PIECE).zip(b.chunks(PIECE)) {
        interrupt.heed();
        out.extend(a.iter().zip(b).map(|(&a, &b)| f(a, b)));
    }
    out
}

impl Series {
    /// Whether both hold the same numbers, bit by bit: NaN is NaN.
    pub fn is(&self, other: &Series) -> bool {
        match (self, other) {
            (Series::Real(a), Series::Real(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits())
            }
            (Series::Complex(a), Series::Complex(b)) => {
                let bits = |z: &C64| (z.re.to_bits(), z.im.to_bits());
                a.len() == b.len() && a.iter().map(bits).eq(b.iter().map(bits))
            }
            _ => false,
        }
    }

    /// The `n` numbers that a function gives for 0, 1, ...
    pub fn generate(n: usize, number: impl Fn(usize) -> f64) -> Result<Series> {
        reserve(n)?;
        let mut data = Vec::with_capacity(n);
        while data.len() < n {
            task::poll()?;
            data.extend((data.len()..n.min(data.len() + PIECE)).map(&number));
        }
        Ok(Series::Real(data))
    }

    /// `n` evenly spaced numbers from `a` to `b`, both included.
    pub fn linspace(a: f64, b: f64, n: usize) -> Result<Series> {
        let step = if n > 1 { (b - a) / (n - 1) as f64 } else { 0.0 };
        let at = |i: usize| {
            if step.is_finite() {
                return a + step * i as f64;
            }
            // Ends that are farther apart than the largest number.
            let part = i as f64 / (n - 1) as f64;
            a * (1.0 - part) + b * part
        };
        // The last point is `b` itself, not `b` plus rounding.
        Series::generate(n, |i| if i > 0 && i + 1 == n { b } else { at(i) })
    }

    /// `n` numbers from `a` to `b`, both included, evenly spaced in their logarithm. Both must be positive.
    pub fn logspace(a: f64, b: f64, n: usize) -> Result<Series> {
        if !(a > 0.0 && b > 0.0) {
            return Err(Error::input(format!("logspace needs positive ends, not {a} and {b}"))
                .hint("linear steps, also through zero, are those of linspace"));
        }
        let mut series = Series::linspace(a.ln(), b.ln(), n)?.map(ElementaryFunction::Exp);
        if let Series::Real(data) = &mut series {
            if let Some(first) = data.first_mut() {
                *first = a;
            }
            if n > 1 {
                data[n - 1] = b;
            }
        }
        Ok(series)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Series::Real(data) => data.len(),
            Series::Complex(data) => data.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the data are complex.
    pub fn is_complex(&self) -> bool {
        matches!(self, Series::Complex(_))
    }

    /// The real data; an error names `what` needs them if they are complex.
    pub fn into_real(self, what: &str) -> Result<Vec<f64>> {
        self.as_real(what)?;
        match self {
            Series::Real(data) => Ok(data),
            Series::Complex(_) => Ok(Vec::new()),
        }
    }

    /// The same, lent.
    ///
    /// # Errors
    /// As [`Series::into_real`].
    pub fn as_real(&self, what: &str) -> Result<&[f64]> {
        match self {
            Series::Real(data) => Ok(data),
            Series::Complex(_) => {
                Err(Error::input(format!("{what} needs a real series, this one is complex"))
                    .hint("take its real part, its imaginary part or its modulus"))
            }
        }
    }

    /// The data as complex numbers.
    pub fn to_complex(&self) -> Vec<C64> {
        match self {
            Series::Real(data) => data.iter().map(|&x| C64::new(x, 0.0)).collect(),
            Series::Complex(data) => data.clone(),
        }
    }

    /// Element `i`, if there is one.
    pub fn get(&self, i: usize) -> Option<Number> {
        match self {
            Series::Real(data) => data.get(i).map(|&x| Number::Real(x)),
            Series::Complex(data) => data.get(i).map(|&z| Number::Complex(z)),
        }
    }

    /// Element `i`; negative indices count from the end. Outside, the error names the length.
    pub fn at(&self, i: i64) -> Result<Number> {
        let place = position(i, self.len())?;
        self.get(place).ok_or_else(|| Error::internal("an index left its series"))
    }

    /// Replaces element `i` (negative from the end); the series becomes complex if the number is.
    pub fn set(&mut self, i: i64, value: Number) -> Result<()> {
        let place = position(i, self.len())?;
        if let (Series::Real(_), Number::Complex(_)) = (&*self, value) {
            *self = Series::Complex(self.to_complex());
        }
        match self {
            Series::Real(data) => data[place] = value.re(),
            Series::Complex(data) => data[place] = value.to_c64(),
        }
        Ok(())
    }

    /// Elements `from..to` (`to` excluded; negative counts from the end).
    pub fn slice(&self, from: i64, to: i64) -> Result<Series> {
        let n = self.len();
        let bound = |i: i64| if i < 0 { i + n as i64 } else { i };
        let (a, b) = (bound(from), bound(to));
        if a < 0 || b > n as i64 || a > b {
            return Err(Error::input(format!(
                "the slice {from}..{to} is outside a series of {}",
                counted(n, "element")
            ))
            .hint(format!(
                "its ends go from 0 to {n}, the second left out; negative ones count from the end"
            )));
        }
        let range = a as usize..b as usize;
        Ok(match self {
            Series::Real(data) => Series::Real(data[range].to_vec()),
            Series::Complex(data) => Series::Complex(data[range].to_vec()),
        })
    }

    /// The elements of both, one after the other.
    pub fn concat(&self, other: &Series) -> Series {
        match (self, other) {
            (Series::Real(a), Series::Real(b)) => Series::Real([&a[..], b].concat()),
            _ => Series::Complex([self.to_complex(), other.to_complex()].concat()),
        }
    }

    /// Adds an element at the end; the series becomes complex if the number is.
    pub fn push(&mut self, value: Number) {
        if let (Series::Real(_), Number::Complex(_)) = (&*self, value) {
            *self = Series::Complex(self.to_complex());
        }
        match self {
            Series::Real(data) => data.push(value.re()),
            Series::Complex(data) => data.push(value.to_c64()),
        }
    }

    /// The elements in reverse order.
    pub fn reversed(&self) -> Series {
        let mut series = self.clone();
        match &mut series {
            Series::Real(data) => data.reverse(),
            Series::Complex(data) => data.reverse(),
        }
        series
    }

    /// A function of every element. Real data stay real: outside the real domain the result is NaN.
    pub fn map(&self, function: ElementaryFunction) -> Series {
        match self {
            Series::Real(data) => Series::Real(each(data, |x| function.real(x))),
            Series::Complex(data) if function == ElementaryFunction::Abs => {
                Series::Real(each(data, C64::norm))
            }
            Series::Complex(data) => Series::Complex(each(data, |z| function.complex(z).to_c64())),
        }
    }

    /// `self op other`, element by element; both must have the same length.
    pub fn zip(&self, op: Arithmetic, other: &Series) -> Result<Series> {
        if self.len() != other.len() {
            return Err(Error::input(format!(
                "`series {} series` needs equal lengths, not {} and {}",
                op.symbol(),
                self.len(),
                other.len()
            ))
            .hint("they are combined element by element; a single number goes with any length"));
        }
        Ok(match (self, other) {
            (Series::Real(a), Series::Real(b)) => Series::Real(pairs(a, b, |a, b| op.real(a, b))),
            _ => Series::Complex(pairs(&self.to_complex(), &other.to_complex(), |a, b| op.complex(a, b))),
        })
    }

    /// `self op number` for every element.
    pub fn with(&self, op: Arithmetic, number: Number) -> Series {
        match (self, number) {
            (Series::Real(a), Number::Real(b)) => Series::Real(each(a, |a| op.real(a, b))),
            (a, b) => Series::Complex(each(&a.to_complex(), |a| op.complex(a, b.to_c64()))),
        }
    }

    /// `number op self` for every element.
    pub fn with_left(&self, number: Number, op: Arithmetic) -> Series {
        match (number, self) {
            (Number::Real(a), Series::Real(b)) => Series::Real(each(b, |b| op.real(a, b))),
            (a, b) => Series::Complex(each(&b.to_complex(), |b| op.complex(a.to_c64(), b))),
        }
    }

    pub fn re(&self) -> Series {
        match self {
            Series::Real(_) => self.clone(),
            Series::Complex(data) => Series::Real(data.iter().map(|z| z.re).collect()),
        }
    }

    pub fn im(&self) -> Series {
        match self {
            Series::Real(data) => Series::Real(vec![0.0; data.len()]),
            Series::Complex(data) => Series::Real(data.iter().map(|z| z.im).collect()),
        }
    }

    /// The phase angles, in (-pi, pi].
    pub fn arg(&self) -> Series {
        Series::Real(self.to_complex().iter().map(|z| z.arg()).collect())
    }

    pub fn conj(&self) -> Series {
        match self {
            Series::Real(_) => self.clone(),
            Series::Complex(data) => Series::Complex(data.iter().map(|z| z.conj()).collect()),
        }
    }

    /// The elements, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = Number> + '_ {
        (0..self.len()).filter_map(|i| self.get(i))
    }
}

/// The position that index `i` means in `n` elements: negative indices count from the end.
pub(crate) fn position(i: i64, n: usize) -> Result<usize> {
    let place = if i < 0 { i + n as i64 } else { i };
    if (0..n as i64).contains(&place) {
        Ok(place as usize)
    } else if n == 0 {
        Err(Error::input(format!("index {i} in an empty series")).hint("ask for its length first"))
    } else {
        Err(Error::input(format!("index {i} is outside a series of {}", counted(n, "element")))
            .hint(format!("indices run from 0 to {}, or from -1 down to -{n} from the end", n - 1)))
    }
}

/// Refuses sizes that no memory holds, before an allocation could end the program.
fn reserve(n: usize) -> Result<()> {
    let mut probe: Vec<f64> = Vec::new();
    probe.try_reserve_exact(n).map_err(|_| {
        Error::memory(format!("a series of {n} elements does not fit in memory"))
            .hint("ask for fewer elements")
    })
}

impl fmt::Display for Series {
    /// All of a short series, head and tail of a long one: `Series of 1024: 0.0, 0.1, ..., 1.0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.len();
        let show = |x: Number| match x {
            Number::Real(x) => real(x, 6),
            Number::Complex(z) => complex(z, 6),
        };
        let text = |range: std::ops::Range<usize>| {
            range.filter_map(|i| self.get(i)).map(show).collect::<Vec<_>>().join(", ")
        };
        let kind = if self.is_complex() { "complex " } else { "" };
        match n {
            0 => write!(f, "Series of 0"),
            1..=8 => write!(f, "Series of {kind}{n}: {}", text(0..n)),
            _ if self.is_complex() => {
                write!(f, "Series of {kind}{n}: {}, ..., {}", text(0..2), text(n - 1..n))
            }
            _ => write!(f, "Series of {n}: {}, ..., {}", text(0..4), text(n - 2..n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_keeps_reals_real_and_checks_lengths() {
        let a = Series::from(vec![1.0, 2.0, 3.0]);
        assert_eq!(a.zip(Arithmetic::Mul, &a).unwrap(), Series::from(vec![1.0, 4.0, 9.0]));
        assert_eq!(a.with_left(2.0.into(), Arithmetic::Pow), Series::from(vec![2.0, 4.0, 8.0]));
        assert!(a.with(Arithmetic::Mul, C64::I.into()).is_complex());
        let message = a.zip(Arithmetic::Add, &Series::from(vec![1.0])).unwrap_err().to_string();
        assert_eq!(message, "`series + series` needs equal lengths, not 3 and 1");
    }

    #[test]
    fn indices_count_from_either_end() {
        let a = Series::from(vec![1.0, 2.0, 3.0]);
        assert_eq!(a.at(-1).unwrap(), Number::Real(3.0));
        assert!(a.at(3).is_err() && a.at(-4).is_err() && a.at(i64::MIN).is_err());
        assert_eq!(a.slice(1, -1).unwrap(), Series::from(vec![2.0]));
        assert!(a.slice(2, 1).is_err() && a.slice(0, 4).is_err() && a.slice(i64::MIN, 0).is_err());
    }

    #[test]
    fn outside_the_real_domain_is_nan() {
        let a = Series::from(vec![-1.0]);
        assert!(a.map(ElementaryFunction::Sqrt).at(0).unwrap().re().is_nan());
        assert!(a.map(ElementaryFunction::Ln).at(0).unwrap().re().is_nan());
    }

    #[test]
    fn spaces_end_where_they_should() {
        let s = Series::linspace(0.0, 0.3, 4).unwrap();
        assert_eq!(s.at(-1).unwrap(), Number::Real(0.3));
        assert_eq!(Series::logspace(1.0, 1e3, 4).unwrap().at(-1).unwrap(), Number::Real(1e3));
        assert!(Series::logspace(0.0, 1.0, 4).is_err());
        assert!(Series::linspace(0.0, 1.0, usize::MAX).is_err());
    }

    #[test]
    fn display_fits_a_screen() {
        let s = Series::linspace(0.0, 1.0, 1001).unwrap();
        assert_eq!(s.to_string(), "Series of 1001: 0.0, 0.001, 0.002, 0.003, ..., 0.999, 1.0");
    }
}
