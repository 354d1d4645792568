//! Lazy sums and products of operators. Nothing is computed until they are applied to a vector.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{LinearOperator, Operator, velocity};
use crate::backend::matrix::merge;
use crate::backend::{BlockVector, Dots, Kernel, KernelInfo, KernelShape, Update};
use crate::error::{Error, Result};
use crate::number::C64;

/// `sum_i A_i`, of operators without shifts; at least two.
struct OperatorSum {
    terms: Vec<Operator>,
}

/// `A B`.
struct OperatorProduct {
    left: Operator,
    right: Operator,
    /// The vector between the factors, kept from one product to the next: making one costs as much as a pass.
    scratch: Mutex<Option<BlockVector>>,
}

/// Most entries per row of the factors for which the diagonal of a product is computed.
const SHORT: usize = 64;

impl Operator {
    /// This operator without its shift as terms of a sum, so that nested sums stay flat.
    fn terms(&self) -> Vec<Operator> {
        let own = self.node_times(self.scale);
        match own.multiple_of::<OperatorSum>() {
            Some((factor, sum)) => sum.terms.iter().map(|term| term.scaled(factor)).collect(),
            None => vec![own],
        }
    }

    /// `A + B`.
    ///
    /// # Errors
    /// Operators of other sizes, lattices or precision.
    pub fn plus(&self, other: &Operator) -> Result<Operator> {
        if self.dim() != other.dim() || self.cols() != other.cols() {
            return Err(mismatch("sum", self, other));
        }
        self.rows().meet(&other.rows())?;
        same_precision("sum", self, other)?;
        let mut terms = self.terms();
        for term in other.terms() {
            match terms.iter_mut().find(|known| known.same_node(&term)) {
                Some(known) => *known = known.node_times(known.affine().0 + term.affine().0),
                None => terms.push(term),
            }
        }
        let shift = self.affine().1 + other.affine().1;
        let sum = match &terms[..] {
            [only] => only.clone(),
            _ => Operator::from_node(self.device.clone(), Arc::new(OperatorSum { terms })),
        };
        let sum = sum.on(self.common_geometry(other));
        if shift == C64::ZERO { Ok(sum) } else { sum.shifted(shift) }
    }

    /// `A B`.
    ///
    /// # Errors
    /// Operators of other sizes, lattices or precision.
    pub fn times(&self, other: &Operator) -> Result<Operator> {
        if self.cols() != other.dim() {
            return Err(mismatch("product", self, other));
        }
        self.domain().meet(&other.rows())?;
        same_precision("product", self, other)?;
        // Factors of operators without shifts are one factor of the product.
        let ((a, c), (b, d)) = (self.affine(), other.affine());
        let apart = c == C64::ZERO && d == C64::ZERO;
        let (factor, left, right) = match apart {
            true => (a * b, self.node_times(C64::ONE), other.node_times(C64::ONE)),
            false => (C64::ONE, self.clone(), other.clone()),
        };
        let product = OperatorProduct { left, right, scratch: Mutex::new(None) };
        let product = Operator::from_node(self.device.clone(), Arc::new(product));
        Ok(product.on(self.common_geometry(other)).scaled(factor))
    }
}

fn mismatch(what: &str, a: &Operator, b: &Operator) -> Error {
    Error::input(format!("{what} of operators of {} x {} and {} x {}", a.dim(), a.cols(), b.dim(), b.cols()))
        .hint("a sum needs equal sizes, a product A B as many columns of A as B has rows")
}

fn same_precision(what: &str, a: &Operator, b: &Operator) -> Result<()> {
    if a.dtype().is_single() == b.dtype().is_single() {
        return Ok(());
    }
    Err(Error::input(format!("{what} of operators of {} and {}", a.dtype(), b.dtype()))
        .hint("make both in the same precision, with the option `precision`"))
}

/// The kernels of several operators, taken together.
fn together(format: String, operators: &[&Operator]) -> KernelInfo {
    let all: Vec<KernelInfo> = operators.iter().map(|a| a.info()).collect();
    KernelInfo {
        format,
        bytes: all.iter().map(|info| info.bytes).sum(),
        entries: all.iter().map(|info| info.entries).sum(),
    }
}

impl Kernel for OperatorSum {
    fn shape(&self) -> KernelShape {
        let first = &self.terms[0];
        let complex = self.terms.iter().map(Operator::dtype).find(|t| t.is_complex());
        KernelShape { rows: first.rows(), cols: first.cols(), dtype: complex.unwrap_or(first.dtype()) }
    }

    fn info(&self) -> KernelInfo {
        let parts: Vec<String> = self.terms.iter().map(Operator::describe).collect();
        together(format!("sum of [{}]", parts.join(", ")), &self.terms.iter().collect::<Vec<_>>())
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        let (last, c) = self.but_last(c, v, w)?;
        last.update(c, v, w, dots)
    }

    fn update_plus(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Option<Result<()>> {
        Some(self.but_last(c, v, w).and_then(|(last, c)| last.update_plus(c, v, w, plus)))
    }

    fn overwrites(&self) -> bool {
        self.terms[0].overwrites()
    }

    fn recordable(&self) -> bool {
        self.terms.iter().all(Operator::recordable)
    }
}

impl OperatorSum {
    /// Makes the passes of all terms but the last; returns the last, and the pass left for it.
    fn but_last(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<(&Operator, Update)> {
        let Some((last, others)) = self.terms.split_last() else {
            return Err(Error::internal("a sum without terms"));
        };
        let mut c = c;
        for term in others {
            term.update(c, v, w, None)?;
            c = Update { alpha: c.alpha, beta: 0.0, gamma: 1.0 };
        }
        Ok((last, c))
    }
}

impl LinearOperator for OperatorSum {
    fn kernel(&self) -> &dyn Kernel {
        self
    }

    fn adjoint(&self) -> Result<Option<Operator>> {
        let terms = self.terms.iter().map(Operator::adjoint).collect::<Result<Vec<_>>>()?;
        Ok(Some(Operator::from_node(self.terms[0].device.clone(), Arc::new(OperatorSum { terms }))))
    }

    fn is_hermitian(&self) -> Result<Option<bool>> {
        for term in &self.terms {
            if !term.is_hermitian()? {
                // The anti-Hermitian parts of the terms may cancel.
                return Ok(None);
            }
        }
        Ok(Some(true))
    }

    fn extent(&self) -> Result<Option<f64>> {
        self.terms.iter().map(Operator::extent).sum::<Result<f64>>().map(Some)
    }

    fn row(&self, row: usize, entries: &mut Vec<(usize, C64)>) -> bool {
        let (mut all, mut own) = (Vec::new(), Vec::new());
        for term in &self.terms {
            if !term.row(row, &mut own) {
                return false;
            }
            all.append(&mut own);
        }
        merge(&mut all);
        *entries = all;
        true
    }

    fn diagonal(&self) -> Option<Vec<C64>> {
        let mut sum = vec![C64::ZERO; self.rows().local];
        for term in &self.terms {
            sum.iter_mut().zip(term.diagonal()?).for_each(|(s, d)| *s += d);
        }
        Some(sum)
    }

    fn limits(&self) -> Option<(f64, f64)> {
        self.terms.iter().try_fold((0.0, 0.0), |(lower, upper), term| {
            let (low, high) = term.limits()?;
            Some((lower + low, upper + high))
        })
    }

    fn velocity(&self, axis: usize) -> Result<Option<Operator>> {
        // A number commutes with positions.
        velocity::sum(&self.terms, axis).map(Some)
    }
}

/// A value behind a lock is always replaced as a whole, so that a panic elsewhere leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OperatorProduct {
    fn scratch(&self, v: &BlockVector) -> Result<BlockVector> {
        let kept = lock(&self.scratch).take();
        match kept {
            Some(t) if t.dtype() == v.dtype() && t.columns() == v.columns() => Ok(t),
            _ => self.right.device.zeros(v.dtype(), self.right.rows(), v.columns()),
        }
    }

    fn pass(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Result<()> {
        let mut t = self.scratch(v)?;
        self.right.update(Update::PRODUCT, v, &mut t, None)?;
        let all: Vec<_> = plus.iter().copied().chain((c.beta != 0.0).then_some((c.beta, v))).collect();
        self.left.update_plus(Update { beta: 0.0, ..c }, &t, w, &all)?;
        *lock(&self.scratch) = Some(t);
        Ok(())
    }
}

impl Kernel for OperatorProduct {
    fn shape(&self) -> KernelShape {
        let dtype = self.left.dtype().join(self.right.dtype());
        KernelShape { rows: self.left.rows(), cols: self.right.cols(), dtype }
    }

    fn info(&self) -> KernelInfo {
        let format = format!("product of [{}] and [{}]", self.left.describe(), self.right.describe());
        together(format, &[&self.left, &self.right])
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        self.pass(c, v, w, &[])?;
        if let Some(dots) = dots {
            *dots = Dots::taken(&*self.left.device, v, w)?;
        }
        Ok(())
    }

    fn update_plus(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Option<Result<()>> {
        Some(self.pass(c, v, w, plus))
    }

    fn overwrites(&self) -> bool {
        self.left.overwrites()
    }
}

impl LinearOperator for OperatorProduct {
    fn kernel(&self) -> &dyn Kernel {
        self
    }

    fn adjoint(&self) -> Result<Option<Operator>> {
        self.right.adjoint()?.times(&self.left.adjoint()?).map(Some)
    }

    fn is_hermitian(&self) -> Result<Option<bool>> {
        let square = self.left.same_node(&self.right) && self.left.affine() == self.right.affine();
        Ok((square && self.left.is_hermitian()?).then_some(true))
    }

    fn extent(&self) -> Result<Option<f64>> {
        let middle = (self.right.dim() as f64).sqrt().max(1.0);
        Ok(Some(self.left.extent()? * self.right.extent()? / middle))
    }

    fn row(&self, row: usize, entries: &mut Vec<(usize, C64)>) -> bool {
        let held = self.right.rows();
        let (mut own, mut other, mut all) = (Vec::new(), Vec::new(), Vec::new());
        // Rows that another process holds are not known here.
        if held.local < held.global || !self.left.row(row, &mut own) {
            return false;
        }
        for (middle, a) in own {
            if !self.right.row(middle, &mut other) {
                return false;
            }
            all.extend(other.iter().map(|&(column, b)| (column, a * b)));
        }
        merge(&mut all);
        *entries = all;
        true
    }

    fn diagonal(&self) -> Option<Vec<C64>> {
        let rows = self.rows();
        let long = |a: &Operator| a.info().entries > SHORT * a.rows().local.max(1);
        if long(&self.left) || long(&self.right) {
            return None;
        }
        let mut entries = Vec::new();
        let own = |row: usize| -> Option<C64> {
            let place = rows.start + row;
            let found = self.row(row, &mut entries).then(|| entries.iter().find(|e| e.0 == place))?;
            Some(found.map_or(C64::ZERO, |e| e.1))
        };
        (0..rows.local).map(own).collect()
    }

    fn velocity(&self, axis: usize) -> Result<Option<Operator>> {
        self.left.check_places(&self.right)?;
        let first = self.left.velocity(axis)?.times(&self.right)?;
        first.plus(&self.left.times(&self.right.velocity(axis)?)?).map(Some)
    }
}
