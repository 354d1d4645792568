//! Slater-Jastrow wave functions `exp(J) sum_t c_t D_t^up D_t^down`,
//! and the configuration of electrons that one walker is.

mod moves;

use std::sync::Arc;

use super::amplitude::{Amplitude, no_orbital};
use super::determinant::Determinant;
use super::jastrow::{Jastrow, JastrowFactor, Setting};
use super::{Derivatives, Orbitals};
use crate::backend::walkers::DeterminantProducts;
use crate::error::{Error, Result};
use crate::task;

/// Points at which orbitals are evaluated between two checks for interruption.
const TOGETHER: usize = 256;

/// The orbitals that the electrons of one spin fill.
#[derive(Debug, Clone, PartialEq)]
pub struct SpinFilling {
    /// Whether the electrons have spin down.
    pub down: bool,
    /// Which orbitals, one an electron.
    pub orbitals: Vec<usize>,
}

/// A term of the sum: a product of two determinants.
#[derive(Debug, Clone, PartialEq)]
pub struct DeterminantProduct<S> {
    pub coefficient: S,
    /// Orbitals of the electrons with spin up.
    pub up: Vec<usize>,
    /// Orbitals of the electrons with spin down.
    pub down: Vec<usize>,
}

/// A Slater-Jastrow wave function of electrons in the continuum; electrons with spin up come first.
#[derive(Clone)]
pub struct SlaterJastrow<S> {
    orbitals: Arc<dyn Orbitals<S>>,
    /// Other orbitals for the decisions of the Markov chain, if any: in single precision, for example.
    decisions: Option<Arc<dyn Orbitals<S>>>,
    up: usize,
    down: usize,
    fillings: Vec<SpinFilling>,
    /// Coefficient, filling of spin up and of spin down.
    products: Vec<(S, Option<usize>, Option<usize>)>,
    jastrow: Arc<Jastrow>,
    delay: usize,
}

/// The electrons of one walker, and the determinants there.
#[derive(Debug, Clone)]
pub struct Configuration<S> {
    /// Where the electrons are, spin up first.
    pub positions: Vec<[f64; 3]>,
    /// The determinant of each filling.
    pub determinants: Vec<Determinant<S>>,
    /// Share of each product in the sum of all; they add up to 1.
    shares: Vec<S>,
}

impl<S: Amplitude> SlaterJastrow<S> {
    /// The lowest `up` and `down` orbitals filled.
    ///
    /// # Errors
    /// When there are too few orbitals, or no electrons.
    pub fn new(orbitals: Arc<dyn Orbitals<S>>, up: usize, down: usize) -> Result<SlaterJastrow<S>> {
        let product = DeterminantProduct {
            coefficient: S::real(1.0),
            up: (0..up).collect(),
            down: (0..down).collect(),
        };
        Self::with_products(orbitals, vec![product])
    }

    /// A sum of products of determinants.
    ///
    /// # Errors
    /// When a product names an orbital that does not exist or twice the same,
    /// or the products differ in their electrons.
    pub fn with_products(
        orbitals: Arc<dyn Orbitals<S>>,
        products: Vec<DeterminantProduct<S>>,
    ) -> Result<SlaterJastrow<S>> {
        let Some(first) = products.first() else {
            return Err(Error::input("a wave function without determinants").hint("give at least one"));
        };
        let (up, down) = (first.up.len(), first.down.len());
        if up + down == 0 {
            return Err(Error::input("a wave function without electrons").hint("give `up`, `down` or both"));
        }
        let count = orbitals.count();
        let mut fillings: Vec<SpinFilling> = Vec::new();
        let mut terms = Vec::new();
        for product in &products {
            if product.up.len() != up || product.down.len() != down {
                return Err(Error::input(
                    "the determinants of a wave function have different numbers of electrons",
                )
                .hint("each has as many orbitals for spin up as the others, and for spin down"));
            }
            if !product.coefficient.finite() {
                return Err(Error::input("the coefficient of a determinant is not a finite number")
                    .hint("look for a division by zero"));
            }
            let mut place = |down: bool, list: &[usize]| -> Result<Option<usize>> {
                if list.is_empty() {
                    return Ok(None);
                }
                if let Some(high) = list.iter().find(|l| **l >= count) {
                    let spin = if down { "down" } else { "up" };
                    return Err(if list.iter().copied().eq(0..list.len()) {
                        Error::input(format!("{} electrons of spin {spin} and {count} orbitals", list.len()))
                            .hint("make more orbitals, or take fewer electrons")
                    } else {
                        Error::input(format!("a determinant fills orbital {high}, and there are {count}"))
                            .hint("orbitals are numbered from 0")
                    });
                }
                let mut sorted = list.to_vec();
                sorted.sort_unstable();
                if sorted.windows(2).any(|w| w[0] == w[1]) {
                    return Err(
                        Error::input("a determinant fills an orbital twice").hint("it vanishes everywhere")
                    );
                }
                let filling = SpinFilling { down, orbitals: list.to_vec() };
                Ok(Some(fillings.iter().position(|f| *f == filling).unwrap_or_else(|| {
                    fillings.push(filling);
                    fillings.len() - 1
                })))
            };
            terms.push((product.coefficient, place(false, &product.up)?, place(true, &product.down)?));
        }
        let setting = Setting { dimension: orbitals.dimension(), cell: orbitals.cell().cloned(), up, down };
        let jastrow = Arc::new(Jastrow::new(&[], setting)?);
        // Below some hundred electrons a gathered update costs more than it saves.
        let delay = if up.max(down) > 128 { 16 } else { 1 };
        Ok(SlaterJastrow { orbitals, decisions: None, up, down, fillings, products: terms, jastrow, delay })
    }

    /// With these Jastrow factors in place of the ones before.
    ///
    /// # Errors
    /// Those of [`Jastrow::new`].
    pub fn with_jastrow(&self, factors: &[JastrowFactor]) -> Result<SlaterJastrow<S>> {
        let jastrow = Jastrow::new(factors, self.setting())?;
        Ok(SlaterJastrow { jastrow: Arc::new(jastrow), ..self.clone() })
    }

    /// With other parameters of the Jastrow factors.
    ///
    /// # Errors
    /// Those of [`Jastrow::with_parameters`].
    pub fn with_parameters(&self, values: &[f64]) -> Result<SlaterJastrow<S>> {
        Ok(SlaterJastrow { jastrow: Arc::new(self.jastrow.with_parameters(values)?), ..self.clone() })
    }

    /// With these orbitals for the decisions of the Markov chain; energies keep the others.
    ///
    /// # Errors
    /// When their number or dimension differs.
    pub fn with_decisions(&self, orbitals: Arc<dyn Orbitals<S>>) -> Result<SlaterJastrow<S>> {
        if orbitals.count() != self.orbitals.count() || orbitals.dimension() != self.orbitals.dimension() {
            return Err(Error::input(format!(
                "{} orbitals for decisions and {} for energies",
                orbitals.count(),
                self.orbitals.count()
            ))
            .hint("they are the same orbitals, once in lower precision"));
        }
        Ok(SlaterJastrow { decisions: Some(orbitals), ..self.clone() })
    }

    /// With updates of the inverse matrices gathered k at a time.
    pub fn with_delay(&self, delay: usize) -> SlaterJastrow<S> {
        SlaterJastrow { delay: delay.max(1), ..self.clone() }
    }

    /// What Jastrow factors act on.
    pub fn setting(&self) -> Setting {
        Setting {
            dimension: self.orbitals.dimension(),
            cell: self.orbitals.cell().cloned(),
            up: self.up,
            down: self.down,
        }
    }

    /// Electrons of spin up and of spin down.
    pub fn electrons(&self) -> (usize, usize) {
        (self.up, self.down)
    }

    /// The orbitals that energies are computed from.
    pub fn orbitals(&self) -> &Arc<dyn Orbitals<S>> {
        &self.orbitals
    }

    /// The orbitals that moves are decided by, which may be less precise.
    pub fn deciding(&self) -> &Arc<dyn Orbitals<S>> {
        self.decisions.as_ref().unwrap_or(&self.orbitals)
    }

    pub fn jastrow(&self) -> &Jastrow {
        &self.jastrow
    }

    /// A label for results and files.
    pub fn describe(&self) -> String {
        let determinants = match self.products.len() {
            1 => String::new(),
            n => format!(", {n} determinants"),
        };
        let factors: Vec<String> = self.jastrow.factors().iter().map(ToString::to_string).collect();
        let jastrow =
            if factors.is_empty() { String::new() } else { format!(", Jastrow {}", factors.join(" x ")) };
        format!(
            "{} + {} electrons in {}{determinants}{jastrow}",
            self.up,
            self.down,
            self.orbitals.describe()
        )
    }

    /// The number of an electron within its spin, and whether that is down.
    fn within(&self, i: usize) -> (usize, bool) {
        if i < self.up { (i, false) } else { (i - self.up, true) }
    }

    /// The orbitals for decisions at some points: a row of `count` for each.
    pub fn values(&self, points: &[[f64; 3]], out: &mut Vec<S>) {
        out.clear();
        out.resize(points.len() * self.orbitals.count(), S::default());
        let deciding = self.deciding();
        // A table of splines takes all points at once: one pass over it, one launch on a GPU.
        if points.len() <= TOGETHER || deciding.splines().is_some() {
            return deciding.values(points, out);
        }
        let stop = task::current();
        let rows = out.chunks_mut(TOGETHER * self.orbitals.count());
        for (points, out) in points.chunks(TOGETHER).zip(rows) {
            stop.heed();
            deciding.values(points, out);
        }
    }

    /// Which orbitals the determinants of either spin fill, and the products of these: for a backend.
    pub fn expansion(&self) -> ([Vec<Vec<usize>>; 2], DeterminantProducts) {
        let of = |down| self.fillings(down).map(|f| self.fillings[f].orbitals.clone()).collect();
        let place = |f: usize| self.fillings(self.fillings[f].down).position(|g| g == f);
        let one = |p: &(S, Option<usize>, Option<usize>)| {
            (p.0.to_c64(), [p.1.and_then(place), p.2.and_then(place)])
        };
        ([of(false), of(true)], self.products.iter().map(one).collect())
    }

    /// The part of a row of orbitals that a filling takes.
    pub fn pick<'a>(&self, filling: usize, row: &'a [S], store: &'a mut Vec<S>) -> &'a [S] {
        let orbitals = &self.fillings[filling].orbitals;
        if orbitals.iter().copied().eq(0..orbitals.len()) {
            return &row[..orbitals.len()];
        }
        store.clear();
        store.extend(orbitals.iter().map(|&l| row[l]));
        store
    }

    /// The fillings of electron i's spin, and its number within the spin.
    pub fn fillings_of(&self, i: usize) -> (usize, impl Iterator<Item = usize> + '_) {
        let (own, down) = self.within(i);
        (own, (0..self.fillings.len()).filter(move |&f| self.fillings[f].down == down))
    }

    /// The fillings of one spin.
    pub fn fillings(&self, down: bool) -> impl Iterator<Item = usize> + '_ {
        (0..self.fillings.len()).filter(move |&f| self.fillings[f].down == down)
    }

    /// The state of a walker at these positions.
    ///
    /// # Errors
    /// When the wave function vanishes there or is not finite.
    pub fn configuration(&self, positions: Vec<[f64; 3]>) -> Result<Configuration<S>> {
        let mut values = Vec::new();
        self.values(&positions, &mut values);
        self.configuration_of(positions, &values, self.delay)
    }

    /// As [`SlaterJastrow::configuration`], with None where the wave function vanishes.
    ///
    /// # Errors
    /// When the wave function is no number.
    pub fn configuration_or_node(&self, positions: Vec<[f64; 3]>) -> Result<Option<Configuration<S>>> {
        let mut values = Vec::new();
        self.values(&positions, &mut values);
        if values.iter().any(|x| !x.finite()) {
            return Err(no_orbital());
        }
        self.check_jastrow(&positions)?;
        Ok(self.configuration_of(positions, &values, self.delay).ok())
    }

    fn check_jastrow(&self, positions: &[[f64; 3]]) -> Result<()> {
        if self.jastrow.value(positions).is_nan() {
            return Err(Error::numeric("the Jastrow factor is not a number (NaN)")
                .hint("look for NaN among its parameters"));
        }
        Ok(())
    }

    fn configuration_of(
        &self,
        positions: Vec<[f64; 3]>,
        values: &[S],
        delay: usize,
    ) -> Result<Configuration<S>> {
        let count = self.orbitals.count();
        let mut determinants = Vec::with_capacity(self.fillings.len());
        for filling in &self.fillings {
            let electrons = if filling.down { self.up..self.up + self.down } else { 0..self.up };
            let rows: Vec<S> = electrons
                .flat_map(|i| filling.orbitals.iter().map(move |&l| values[i * count + l]))
                .collect();
            determinants.push(Determinant::new(rows, filling.orbitals.len(), delay)?);
        }
        self.check_jastrow(&positions)?;
        let mut walker = Configuration { positions, determinants, shares: Vec::new() };
        walker.shares = self.shares(&walker)?;
        Ok(walker)
    }

    /// The share of every product in the sum.
    fn shares(&self, walker: &Configuration<S>) -> Result<Vec<S>> {
        if self.products.len() == 1 {
            return Ok(vec![S::real(1.0)]);
        }
        let logs = |p: &(S, Option<usize>, Option<usize>)| -> f64 {
            [p.1, p.2].into_iter().flatten().map(|f| walker.determinants[f].log).sum()
        };
        let top = self.products.iter().map(logs).fold(f64::NEG_INFINITY, f64::max);
        let terms = self.products.iter().map(|p| {
            let phase = [p.1, p.2].into_iter().flatten().fold(p.0, |z, f| z * walker.determinants[f].phase);
            phase * S::real((logs(p) - top).exp())
        });
        let terms: Vec<S> = terms.collect();
        let sum = terms.iter().fold(S::default(), |a, b| a + *b);
        if sum.modulus() < 1e-300 || !sum.finite() {
            return Err(Error::numeric("the sum of determinants vanishes")
                .hint("the electrons stand where the wave function is zero; choose other places"));
        }
        Ok(terms.into_iter().map(|t| t / sum).collect())
    }

    /// `ln |Psi|` and the phase of Psi.
    pub fn log(&self, walker: &Configuration<S>) -> (f64, S) {
        let jastrow = self.jastrow.value(&walker.positions);
        // Psi = c_t D_t / share_t for any product with a share.
        let best = (0..self.products.len())
            .max_by(|a, b| walker.shares[*a].modulus().total_cmp(&walker.shares[*b].modulus()))
            .unwrap_or(0);
        let product = &self.products[best];
        let (mut log, mut z) = (jastrow, product.0 / walker.shares[best]);
        for f in [product.1, product.2].into_iter().flatten() {
            log += walker.determinants[f].log;
            z *= walker.determinants[f].phase;
        }
        (log + z.modulus().ln(), z / S::real(z.modulus()))
    }

    /// Whether there is one product of determinants only.
    pub fn is_single(&self) -> bool {
        self.products.len() == 1
    }

    /// Recomputes determinants and inverses from the rows they have, and returns how far the old ones were off.
    ///
    /// # Errors
    /// When the walker sits on a node.
    pub fn refresh(&self, walker: &mut Configuration<S>) -> Result<f64> {
        let mut off: f64 = 0.0;
        for determinant in &mut walker.determinants {
            off = off.max(determinant.refresh()?);
        }
        walker.shares = self.shares(walker)?;
        Ok(off)
    }

    /// The logarithmic derivatives of the sum of determinants at the positions of a walker: gradient and Laplacian by
    /// each electron, with the orbitals of energies.
    ///
    /// # Errors
    /// When the walker sits on a node.
    pub fn slopes(&self, walker: &Configuration<S>) -> Result<(Vec<[S; 3]>, Vec<S>)> {
        let (n, count) = (walker.positions.len(), self.orbitals.count());
        let mut derivatives = Derivatives::new(n, count);
        self.orbitals.derivatives(&walker.positions, &mut derivatives);
        let exact;
        let walker = if self.decisions.is_some() {
            exact = self.configuration_of(walker.positions.clone(), &derivatives.value, 1)?;
            &exact
        } else {
            walker
        };
        let (mut gradient, mut laplacian) = (vec![[S::default(); 3]; n], vec![S::default(); n]);
        let mut store = Vec::new();
        for i in 0..n {
            let (own, fillings) = self.fillings_of(i);
            let row = i * count..(i + 1) * count;
            for f in fillings {
                let weight = if self.products.len() == 1 { S::real(1.0) } else { self.weight(walker, f) };
                let column = walker.determinants[f].column_of_inverse(own);
                for k in 0..3 {
                    let part = self.pick(f, &derivatives.gradient[k][row.clone()], &mut store);
                    gradient[i][k] += weight * super::amplitude::dot(part, column);
                }
                let part = self.pick(f, &derivatives.laplacian[row.clone()], &mut store);
                laplacian[i] += weight * super::amplitude::dot(part, column);
            }
        }
        Ok((gradient, laplacian))
    }
}
