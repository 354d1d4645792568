//! The handle `scale * A + shift`: its products and properties, from those of A.

use std::sync::Arc;

use super::action::probe_hermitian;
use super::{DiagonalOnDevice, LinearOperator, Operator};
use crate::backend::{BlockVector, Dots, Kernel, KernelInfo, OnePlace, Update, step_by_step};
use crate::error::{Error, Result};
use crate::number::C64;

impl Operator {
    /// The same operator behind another factor and shift.
    fn with(&self, scale: C64, shift: C64) -> Operator {
        Operator { scale, shift, reach: Arc::default(), print: Arc::default(), ..self.clone() }
    }

    /// `factor * A`.
    pub fn scaled(&self, factor: C64) -> Operator {
        if factor == C64::ONE { self.clone() } else { self.with(factor * self.scale, factor * self.shift) }
    }

    /// `A + shift`, of a square operator.
    ///
    /// # Errors
    /// A rectangular operator.
    pub fn shifted(&self, shift: C64) -> Result<Operator> {
        if self.dim() != self.cols() {
            return Err(Error::input(format!(
                "a number cannot be added to a {} x {} operator",
                self.dim(),
                self.cols()
            ))
            .hint("it stands for a multiple of the identity, which is square"));
        }
        Ok(self.with(self.scale, self.shift + shift))
    }

    /// `factor * A`, with A the operator behind the handle, without the handle's factor and shift.
    pub(super) fn node_times(&self, factor: C64) -> Operator {
        self.with(factor, C64::ZERO)
    }

    pub(super) fn affine(&self) -> (C64, C64) {
        (self.scale, self.shift)
    }

    /// Whether both are handles to the same operator, whatever their factors and shifts.
    pub(super) fn same_node(&self, other: &Operator) -> bool {
        Arc::ptr_eq(&self.node, &other.node)
    }

    /// The pass of A that is the pass `c` of this operator; none if a factor is complex.
    fn fused(&self, c: Update) -> Option<Update> {
        let real = self.scale.im == 0.0 && self.shift.im == 0.0;
        real.then_some(Update {
            alpha: c.alpha * self.scale.re,
            beta: c.beta + c.alpha * self.shift.re,
            gamma: c.gamma,
        })
    }

    /// `w = alpha A v + beta v + gamma w`, with the column-wise products of the new `w` where asked.
    ///
    /// # Errors
    /// Those of the device.
    pub fn update(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: Option<&mut Dots>,
    ) -> Result<()> {
        if let Some(c) = self.fused(c) {
            return self.node.kernel().update(c, v, w, dots);
        }
        self.update_plus(c, v, w, &[])?;
        if let Some(dots) = dots {
            *dots = Dots::taken(&*self.device, v, w)?;
        }
        Ok(())
    }

    /// As [`Operator::update`] with products, which of several ranks may be partial.
    ///
    /// # Errors
    /// Those of the device.
    pub fn update_partial(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<Dots> {
        if let Some(c) = self.fused(c) {
            return self.node.kernel().update_partial(c, v, w);
        }
        let mut dots = Dots::default();
        self.update(c, v, w, Some(&mut dots))?;
        Ok(dots)
    }

    /// `w = alpha A v + beta v + gamma w + sum_i f_i x_i`; in one pass where the kernel can.
    ///
    /// # Errors
    /// Those of the device.
    pub fn update_plus(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Result<()> {
        let (device, kernel) = (&self.device, self.node.kernel());
        match self.fused(c) {
            Some(c) if plus.is_empty() => return kernel.update(c, v, w, None),
            Some(c) => match kernel.update_plus(c, v, w, plus) {
                Some(done) => return done,
                None => kernel.update(c, v, w, None)?,
            },
            None => {
                let mut product = device.zeros(w.dtype(), w.rows(), w.columns())?;
                kernel.update(Update::PRODUCT, v, &mut product, None)?;
                device.axpby(&[self.scale * c.alpha], &product, &[c.gamma.into()], w)?;
                let own = self.shift * c.alpha + c.beta;
                if own != C64::ZERO {
                    device.axpby(&[own], v, &[C64::ONE], w)?;
                }
            }
        }
        plus.iter().try_for_each(|(factor, x)| device.axpby(&[(*factor).into()], x, &[C64::ONE], w))
    }

    /// `steps` orders of `w <- alpha A v + beta v - w` with `v` and `w` changing places after each; see
    /// [`Kernel::recurrence`].
    ///
    /// # Errors
    /// Those of the device.
    pub fn recurrence(
        &self,
        (alpha, beta): (f64, f64),
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
        out: &mut Vec<Dots>,
    ) -> Result<()> {
        match self.fused(Update { alpha, beta, gamma: -1.0 }) {
            Some(c) => self.node.kernel().recurrence(c.alpha, c.beta, v, w, steps, out),
            None => {
                let update = |c: Update, v: &BlockVector, w: &mut BlockVector, dots: &mut Dots| {
                    self.update(c, v, w, Some(dots))
                };
                step_by_step(&update, (alpha, beta), (v, w), steps, out)
            }
        }
    }

    /// Whether an update with `gamma = 0` writes every row of `w` and reads none, so that `w` need not be zero before.
    pub fn overwrites(&self) -> bool {
        self.fused(Update::PRODUCT).is_none() || self.node.kernel().overwrites()
    }

    /// The one place that has all of the operator, if it is one of several.
    pub fn one_place(&self) -> Option<&dyn OnePlace> {
        self.node.kernel().one_place()
    }

    /// What multiplies vectors of that place; none in a process that has nothing of it.
    pub fn at(&self, place: &dyn OnePlace) -> Option<Operator> {
        let (device, kernel) = place.there()?;
        let node = Arc::new(AtOnePlace(kernel.clone()));
        Some(Operator::from_node(device.clone(), node).with(self.scale, self.shift))
    }

    /// Whether passes may be recorded; see [`Kernel::recordable`].
    pub fn recordable(&self) -> bool {
        self.fused(Update::PRODUCT).is_some() && self.node.kernel().recordable()
    }

    /// The adjoint operator.
    ///
    /// # Errors
    /// An operator that is not Hermitian and does not know its adjoint; those of the device.
    pub fn adjoint(&self) -> Result<Operator> {
        let back = |of: &Operator| {
            let scale = self.scale.conj();
            of.with(scale * of.scale, scale * of.shift + self.shift.conj())
        };
        let own = Operator { adjoint: None, ..self.node_times(C64::ONE) };
        if let Some(known) = &self.adjoint {
            return Ok(Operator { adjoint: Some(Arc::new(own)), ..back(known) });
        }
        match self.node.adjoint()? {
            Some(mut other) => {
                if other.affine() == (C64::ONE, C64::ZERO) {
                    other.adjoint = Some(Arc::new(own));
                }
                // Models are Hermitian, and so are their commutators i [.., x].
                other.origin.clone_from(&self.origin);
                Ok(back(&other.on(self.geometry.clone())))
            }
            None if own.is_hermitian()? => Ok(back(&own)),
            None => Err(Error::input(format!("the adjoint of a {} is not known", self.describe()))
                .hint("operators with entries have one, and sums and products of them")),
        }
    }

    /// Whether the operator equals its adjoint, to rounding.
    ///
    /// # Errors
    /// Products that are not finite; those of the device.
    pub fn is_hermitian(&self) -> Result<bool> {
        if self.dim() != self.cols() {
            return Ok(false);
        }
        let by_origin = self.origin.as_ref().is_some_and(|origin| origin.is_hermitian());
        let known = if by_origin { Some(true) } else { self.node.is_hermitian()? };
        match known {
            Some(hermitian) if self.fused(Update::PRODUCT).is_some() => {
                Ok(hermitian || self.scale == C64::ZERO)
            }
            _ => probe_hermitian(self),
        }
    }

    /// The entries of a local row as (column, value), columns ascending and none twice;
    /// false where entries are not known.
    pub fn row(&self, row: usize, entries: &mut Vec<(usize, C64)>) -> bool {
        if !self.node.row(row, entries) {
            return false;
        }
        entries.iter_mut().for_each(|(_, value)| *value *= self.scale);
        if self.shift != C64::ZERO {
            let own = self.rows().start + row;
            match entries.binary_search_by_key(&own, |e| e.0) {
                Ok(at) => entries[at].1 += self.shift,
                Err(at) => entries.insert(at, (own, self.shift)),
            }
        }
        true
    }

    /// The local diagonal, where it is known with little work.
    pub fn diagonal(&self) -> Option<Vec<C64>> {
        let mut diagonal = self.node.diagonal()?;
        if self.affine() != (C64::ONE, C64::ZERO) {
            diagonal.iter_mut().for_each(|d| *d = self.scale * *d + self.shift);
        }
        Some(diagonal)
    }

    /// The same on the device, where it is made there; a multiple of the operator or one with a number added has none.
    ///
    /// # Errors
    /// Those of the device.
    pub fn diagonal_on_device(&self) -> Result<Option<DiagonalOnDevice>> {
        if self.affine() == (C64::ONE, C64::ZERO) { self.node.diagonal_on_device() } else { Ok(None) }
    }

    /// Limits of the spectrum of a Hermitian operator (Gershgorin's theorem), where known without products.
    pub fn limits(&self) -> Option<(f64, f64)> {
        self.fused(Update::PRODUCT)?;
        let (low, high) = self.node.limits()?;
        let (a, b) = (self.scale.re * low + self.shift.re, self.scale.re * high + self.shift.re);
        Some((a.min(b), a.max(b)))
    }

    /// The velocity where it follows from those of other operators, without the lattice.
    pub(super) fn derived_velocity(&self, axis: usize) -> Result<Option<Operator>> {
        self.node.velocity(axis)
    }

    /// A few words: the format, and the factor and shift.
    pub fn describe(&self) -> String {
        let mut text = self.node.describe();
        if self.scale != C64::ONE {
            text = format!("{} * [{text}]", short(self.scale));
        }
        if self.shift != C64::ZERO {
            text = format!("{text} + {}", short(self.shift));
        }
        text
    }

    /// Format, bytes on the device, and entries that a product touches.
    pub fn info(&self) -> KernelInfo {
        KernelInfo { format: self.describe(), ..self.node.kernel().info() }
    }

    /// Entries over the places that the format keeps for them, 1 where nothing is padded.
    pub fn occupancy(&self) -> f64 {
        self.node.occupancy()
    }

    /// Why the entries are stored in this format, where a choice was made.
    pub fn reason(&self) -> Option<&str> {
        self.node.reason()
    }
}

/// An operator as one of several places knows it: its product, and nothing else.
struct AtOnePlace(Arc<dyn Kernel>);

impl LinearOperator for AtOnePlace {
    fn kernel(&self) -> &dyn Kernel {
        &*self.0
    }
}

/// A factor as people write it.
fn short(z: C64) -> String {
    match (z.re, z.im) {
        (re, 0.0) => format!("{re}"),
        (0.0, im) => format!("{im}i"),
        (re, im) if im < 0.0 => format!("({re} - {}i)", -im),
        (re, im) => format!("({re} + {im}i)"),
    }
}
