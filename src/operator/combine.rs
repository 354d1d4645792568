//! Lazy combinations of operators: `2 h + 1`, `a b`, sums. Nothing is computed until a vector comes.

use std::sync::{Arc, Mutex};

use super::{LinearOperator, Operator, velocity};
use crate::backend::{BlockVector, Device, Dots, Rows, Update};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

const ONE: C64 = C64::new(1.0, 0.0);

/// `sum_i c_i A_i + shift`.
struct Sum {
    terms: Vec<(C64, Operator)>,
    shift: C64,
}

/// `A B`.
struct Product {
    left: Operator,
    right: Operator,
    /// The vector between the factors, kept from one product to the next: making one costs as much as a pass.
    scratch: Mutex<Option<BlockVector>>,
}

/// What a lock guards is replaced whole, so that a panic elsewhere leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Product {
    fn scratch(&self, device: &Device, v: &BlockVector) -> Result<BlockVector> {
        let kept = lock(&self.scratch).take();
        let rows = self.right.rows();
        match kept {
            Some(t) if t.dtype() == v.dtype() && t.columns() == v.columns() => Ok(t),
            _ => device.zeros(v.dtype(), rows, v.columns()),
        }
    }
}

impl Operator {
    /// This operator's terms as a sum, so that nested sums stay flat.
    fn as_sum(&self) -> (Vec<(C64, Operator)>, C64) {
        match self.node.as_sum() {
            Some((terms, shift)) => (terms, shift),
            None => (vec![(ONE, self.clone())], C64::default()),
        }
    }

    /// `factor * A`.
    pub fn scaled(&self, factor: C64) -> Operator {
        let (terms, shift) = self.as_sum();
        let terms = terms.into_iter().map(|(c, a)| (factor * c, a)).collect();
        let sum = Sum { terms, shift: factor * shift };
        Operator::from_node(self.device.clone(), Arc::new(sum)).on(self.geometry.clone())
    }

    /// `A + shift`, of a square operator.
    pub fn shifted(&self, shift: C64) -> Result<Operator> {
        if self.dim() != self.cols() {
            return Err(Error::input(format!(
                "a number cannot be added to a {} x {} operator",
                self.dim(),
                self.cols()
            )));
        }
        let (terms, own) = self.as_sum();
        let sum = Sum { terms, shift: own + shift };
        Ok(Operator::from_node(self.device.clone(), Arc::new(sum)).on(self.geometry.clone()))
    }

    /// `A + B`.
    pub fn plus(&self, other: &Operator) -> Result<Operator> {
        if self.dim() != other.dim() || self.cols() != other.cols() {
            return Err(Error::input(format!(
                "sum of operators of {} x {} and {} x {}",
                self.dim(),
                self.cols(),
                other.dim(),
                other.cols()
            )));
        }
        self.rows().meet(&other.rows())?;
        let ((mut terms, a), (more, b)) = (self.as_sum(), other.as_sum());
        terms.extend(more);
        let sum = Sum { terms, shift: a + b };
        let geometry = self.common_geometry(other);
        Ok(Operator::from_node(self.device.clone(), Arc::new(sum)).on(geometry))
    }

    /// `A B`.
    pub fn times(&self, other: &Operator) -> Result<Operator> {
        if self.cols() != other.dim() {
            return Err(Error::input(format!(
                "product of operators of {} x {} and {} x {}",
                self.dim(),
                self.cols(),
                other.dim(),
                other.cols()
            )));
        }
        self.domain().meet(&other.rows())?;
        let product = Product { left: self.clone(), right: other.clone(), scratch: Mutex::new(None) };
        let geometry = self.common_geometry(other);
        Ok(Operator::from_node(self.device.clone(), Arc::new(product)).on(geometry))
    }
}

/// Both column-wise products of a finished pass, by two plain dot products.
pub(super) fn plain_dots(
    device: &Device,
    v: &BlockVector,
    w: &BlockVector,
    dots: Option<&mut Dots>,
) -> Result<()> {
    if let Some(dots) = dots {
        dots.vv = device.dots(v, v)?.iter().map(|z| z.re).collect();
        dots.wv = device.dots(w, v)?.iter().map(|z| z.re).collect();
    }
    Ok(())
}

/// [`LinearOperator::update`] of an operator that can only be applied: `w = alpha p + beta v + gamma w` from `p = A v`, and
/// the products asked for.
///
/// # Errors
/// Those of the device.
pub fn update_by(
    device: &Device,
    c: Update,
    p: &BlockVector,
    v: &BlockVector,
    w: &mut BlockVector,
    dots: Option<&mut Dots>,
) -> Result<()> {
    device.axpby(&[c.alpha.into()], p, &[c.gamma.into()], w)?;
    if c.beta != 0.0 {
        device.axpby(&[c.beta.into()], v, &[ONE], w)?;
    }
    plain_dots(device, v, w, dots)
}

impl Sum {
    /// One real multiple of an operator with a real shift is one fused pass of that operator.
    fn as_plain(&self, c: Update) -> Option<(Update, &Operator)> {
        let [(factor, a)] = &self.terms[..] else { return None };
        let beta = c.beta + c.alpha * self.shift.re;
        let real = factor.im == 0.0 && self.shift.im == 0.0;
        real.then_some((Update { alpha: c.alpha * factor.re, beta, gamma: c.gamma }, a))
    }
}

impl Sum {
    /// A part of the diagonal: to what the terms' real and imaginary parts are multiplied by, from `start` on.
    fn part_of_diagonal(&self, start: f64, factors: impl Fn(C64) -> (f64, f64)) -> Option<Vec<f64>> {
        let mut sum = vec![start; self.rows().local];
        let mut add = |factor: f64, diagonal: Vec<f64>| {
            sum.iter_mut().zip(diagonal).for_each(|(s, d)| *s += factor * d);
        };
        for (c, a) in &self.terms {
            let (of_real, of_imaginary) = factors(*c);
            let real = a.node().diagonal()?;
            if of_real != 0.0 {
                add(of_real, real);
            }
            if of_imaginary != 0.0
                && let Some(imaginary) = a.node().imaginary_diagonal()
            {
                add(of_imaginary, imaginary);
            }
        }
        Some(sum)
    }
}

impl LinearOperator for Sum {
    fn rows(&self) -> Rows {
        self.terms[0].1.rows()
    }

    fn cols(&self) -> usize {
        self.terms[0].1.cols()
    }

    fn dtype(&self) -> DType {
        let complex =
            self.shift.im != 0.0 || self.terms.iter().any(|(c, a)| c.im != 0.0 || a.dtype().is_complex());
        DType::of(self.terms[0].1.dtype().is_single(), complex)
    }

    fn update(
        &self,
        device: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: Option<&mut Dots>,
    ) -> Result<()> {
        if let Some((c, plain)) = self.as_plain(c) {
            return plain.update(c, v, w, dots);
        }
        let own = self.shift * c.alpha + c.beta;
        device.axpby(&[own], v, &[C64::new(c.gamma, 0.0)], w)?;
        for (factor, a) in &self.terms {
            let factor = factor * c.alpha;
            if factor.im == 0.0 {
                a.update(Update { alpha: factor.re, beta: 0.0, gamma: 1.0 }, v, w, None)?;
            } else {
                let mut t = device.zeros(w.dtype(), w.rows(), w.columns())?;
                a.update(Update::PRODUCT, v, &mut t, None)?;
                device.axpby(&[factor], &t, &[ONE], w)?;
            }
        }
        plain_dots(device, v, w, dots)
    }

    fn update_plus(
        &self,
        device: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Result<()> {
        if let Some((c, plain)) = self.as_plain(c) {
            return plain.update_plus(c, v, w, plus);
        }
        self.update(device, c, v, w, None)?;
        for (factor, x) in plus {
            device.axpby(&[C64::new(*factor, 0.0)], x, &[ONE], w)?;
        }
        Ok(())
    }

    fn adjoint(&self, device: &Device) -> Result<Operator> {
        let terms: Result<Vec<_>> = self.terms.iter().map(|(c, a)| Ok((c.conj(), a.adjoint()?))).collect();
        Ok(Operator::from_node(device.clone(), Arc::new(Sum { terms: terms?, shift: self.shift.conj() })))
    }

    fn is_hermitian(&self, device: &Device) -> Result<bool> {
        let real = self.shift.im == 0.0 && self.terms.iter().all(|(c, _)| c.im == 0.0);
        if real
            && self
                .terms
                .iter()
                .map(|(_, a)| a.is_hermitian())
                .collect::<Result<Vec<_>>>()?
                .iter()
                .all(|h| *h)
        {
            return Ok(true);
        }
        probe_hermitian(device, self)
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        self.part_of_diagonal(self.shift.re, |c| (c.re, -c.im))
    }

    fn imaginary_diagonal(&self) -> Option<Vec<f64>> {
        self.part_of_diagonal(self.shift.im, |c| (c.im, c.re)).filter(|sum| sum.iter().any(|&x| x != 0.0))
    }

    fn limits(&self) -> Option<(f64, f64)> {
        let (mut lower, mut upper) = (self.shift.re, self.shift.re);
        for (c, a) in &self.terms {
            let (low, high) = a.node().limits()?;
            let (x, y) = (c.re * low, c.re * high);
            lower += x.min(y);
            upper += x.max(y);
        }
        (self.shift.im == 0.0 && self.terms.iter().all(|(c, _)| c.im == 0.0)).then_some((lower, upper))
    }

    fn describe(&self) -> String {
        let parts: Vec<String> = self.terms.iter().map(|(_, a)| a.node().describe()).collect();
        format!("sum of [{}]", parts.join(", "))
    }

    fn bytes(&self) -> usize {
        self.terms.iter().map(|(_, a)| a.node().bytes()).sum()
    }

    fn entries(&self) -> usize {
        self.terms.iter().map(|(_, a)| a.node().entries()).sum()
    }

    fn velocity(&self, axis: usize) -> Result<Option<Operator>> {
        // A number commutes with positions.
        velocity::sum(&self.terms, axis).map(Some)
    }

    fn as_sum(&self) -> Option<(Vec<(C64, Operator)>, C64)> {
        Some((self.terms.clone(), self.shift))
    }
}

impl LinearOperator for Product {
    fn rows(&self) -> Rows {
        self.left.rows()
    }

    fn cols(&self) -> usize {
        self.right.cols()
    }

    fn dtype(&self) -> DType {
        self.left.dtype().join(self.right.dtype())
    }

    fn update(
        &self,
        device: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: Option<&mut Dots>,
    ) -> Result<()> {
        self.update_plus(device, c, v, w, &[])?;
        plain_dots(device, v, w, dots)
    }

    fn update_plus(
        &self,
        device: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Result<()> {
        let mut t = self.scratch(device, v)?;
        self.right.update(Update::PRODUCT, v, &mut t, None)?;
        let all: Vec<_> = plus.iter().copied().chain((c.beta != 0.0).then_some((c.beta, v))).collect();
        self.left.update_plus(Update { beta: 0.0, ..c }, &t, w, &all)?;
        *lock(&self.scratch) = Some(t);
        Ok(())
    }

    fn overwrites(&self) -> bool {
        self.left.node().overwrites()
    }

    fn adjoint(&self, _: &Device) -> Result<Operator> {
        self.right.adjoint()?.times(&self.left.adjoint()?)
    }

    fn is_hermitian(&self, device: &Device) -> Result<bool> {
        probe_hermitian(device, self)
    }

    fn describe(&self) -> String {
        format!("product of [{}] and [{}]", self.left.node().describe(), self.right.node().describe())
    }

    fn bytes(&self) -> usize {
        self.left.node().bytes() + self.right.node().bytes()
    }

    fn entries(&self) -> usize {
        self.left.node().entries() + self.right.node().entries()
    }

    fn velocity(&self, axis: usize) -> Result<Option<Operator>> {
        self.left.check_places(&self.right)?;
        let first = self.left.velocity(axis)?.times(&self.right)?;
        first.plus(&self.left.times(&self.right.velocity(axis)?)?).map(Some)
    }
}

/// Whether `<x|A y> = <A x|y>` for a pair of random vectors: certain to find an operator out that is not Hermitian.
pub(crate) fn probe_hermitian(device: &Device, a: &dyn LinearOperator) -> Result<bool> {
    use crate::backend::{Distribution, Random};
    use crate::number::philox::Stream;
    if a.rows().global != a.cols() {
        return Ok(false);
    }
    let mut v = device.zeros(a.dtype(), a.rows(), 4)?;
    let random =
        Random { seed: 0, stream: Stream::Start, first_column: 0, distribution: Distribution::Gaussian };
    device.fill_random(&mut v, random)?;
    let mut w = device.zeros(a.dtype(), a.rows(), 4)?;
    a.update(device, Update::PRODUCT, &v, &mut w, None)?;
    let g = device.gram(&v, &w)?;
    if g.iter().any(|z| !z.re.is_finite() || !z.im.is_finite()) {
        return Err(Error::numeric("the operator gives numbers that are not finite")
            .hint("look for NaN or infinite entries"));
    }
    let scale = g.iter().map(|z| z.norm()).fold(0.0, f64::max);
    let eps = if a.dtype().is_single() { 1e-4 } else { 1e-11 };
    Ok((0..4).all(|i| (0..4).all(|j| (g[i * 4 + j] - g[j * 4 + i].conj()).norm() <= eps * scale)))
}
