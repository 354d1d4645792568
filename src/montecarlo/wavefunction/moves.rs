//! The effect of moves of electrons on a wave function: ratios, and updates of configurations.

use super::{Configuration, SlaterJastrow};
use crate::montecarlo::amplitude::Amplitude;

impl<S: Amplitude> SlaterJastrow<S> {
    /// The weight of a filling in ratios: the sum of the shares of the products that hold it.
    pub fn weight(&self, walker: &Configuration<S>, filling: usize) -> S {
        let holds = |p: &&(usize, &(S, Option<usize>, Option<usize>))| {
            p.1.1 == Some(filling) || p.1.2 == Some(filling)
        };
        let shares = self.products.iter().enumerate().collect::<Vec<_>>();
        shares.iter().filter(holds).fold(S::default(), |sum, (t, _)| sum + walker.shares[*t])
    }

    /// Multiplies the shares by the ratios of the fillings and renormalises; `ratios[f]` is None for those that stay.
    pub fn reweigh(&self, walker: &mut Configuration<S>, ratios: &[Option<S>]) {
        if self.products.len() == 1 {
            return;
        }
        let mut sum = S::default();
        for (share, product) in walker.shares.iter_mut().zip(&self.products) {
            for f in [product.1, product.2].into_iter().flatten() {
                if let Some(ratio) = ratios[f] {
                    *share *= ratio;
                }
            }
            sum += *share;
        }
        walker.shares.iter_mut().for_each(|share| *share /= sum);
    }

    /// The factor by which the sum of determinants changes if `row` becomes the orbitals of electron i; the ratio of
    /// each filling goes to `ratios`.
    pub fn ratio(&self, walker: &Configuration<S>, i: usize, row: &[S], ratios: &mut Vec<Option<S>>) -> S {
        ratios.clear();
        ratios.resize(self.fillings.len(), None);
        let mut store = Vec::new();
        let (own, fillings) = self.fillings_of(i);
        let mut total = S::default();
        for f in fillings {
            let q = walker.determinants[f].ratio(own, self.pick(f, row, &mut store));
            ratios[f] = Some(q);
            total += if self.products.len() == 1 { q } else { self.weight(walker, f) * q };
        }
        total
    }

    /// Moves electron i, whose orbitals become `row`; `ratios` are those of [`SlaterJastrow::ratio`].
    pub fn accept(
        &self,
        walker: &mut Configuration<S>,
        i: usize,
        to: [f64; 3],
        row: &[S],
        ratios: &[Option<S>],
    ) {
        let (own, fillings) = self.fillings_of(i);
        let mut store = Vec::new();
        for f in fillings {
            if let Some(q) = ratios[f] {
                let part = self.pick(f, row, &mut store);
                walker.determinants[f].replace(own, part, q);
            }
        }
        self.reweigh(walker, ratios);
        walker.positions[i] = to;
    }

    /// The ratio of the sum of determinants from those of its fillings, each as `(ln |ratio|, phase)`.
    pub fn combined(&self, walker: &Configuration<S>, parts: &[(f64, S)]) -> S {
        let mut sum = S::default();
        for (share, product) in walker.shares.iter().zip(&self.products) {
            let (mut log, mut z) = (0.0, *share);
            for f in [product.1, product.2].into_iter().flatten() {
                log += parts[f].0;
                z *= parts[f].1;
            }
            sum += z * S::real(log.exp());
        }
        sum
    }

    /// Moves several electrons, already at their new places, whose orbitals are the rows of theirs in `rows` (`count`
    /// an electron); `parts` are the ratios of the fillings.
    pub fn accept_many(
        &self,
        walker: &mut Configuration<S>,
        moved: &[usize],
        rows: &[S],
        count: usize,
        parts: &[(f64, S)],
    ) {
        let mut store = Vec::new();
        for f in 0..self.fillings.len() {
            let own = |i: &&usize| self.within(**i).1 == self.fillings[f].down;
            let (mut which, mut picked, mut m) = (Vec::new(), Vec::new(), Vec::new());
            for &i in moved.iter().filter(own) {
                which.push(self.within(i).0);
                picked.extend_from_slice(self.pick(f, &rows[i * count..(i + 1) * count], &mut store));
            }
            if !which.is_empty() {
                walker.determinants[f].all_ratios(&picked, &mut m);
                walker.determinants[f].replace_many(&which, &picked, &m, parts[f]);
            }
        }
        let ratios: Vec<Option<S>> =
            parts.iter().map(|(log, phase)| Some(*phase * S::real(log.exp()))).collect();
        self.reweigh(walker, &ratios);
    }

    /// Puts electron i in place without keeping the inverse up to date: [`SlaterJastrow::refresh`] must follow.
    pub fn place(&self, walker: &mut Configuration<S>, i: usize, to: [f64; 3], row: &[S]) {
        let (own, fillings) = self.fillings_of(i);
        let mut store = Vec::new();
        for f in fillings {
            walker.determinants[f].set_row(own, self.pick(f, row, &mut store));
        }
        walker.positions[i] = to;
    }
}
