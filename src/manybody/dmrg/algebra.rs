//! States as vectors: sums, products with operator sums, matrix elements between two states. A product is formed
//! exactly, site by site, while it is brought into a gauge, and truncated on the way back.

use std::collections::{BTreeMap, HashMap};

use faer::Mat;

use super::dense::{adjoint_product, product};
use super::density::Truncation;
use super::mpo::{Mpo, MpoBond};
use super::space::{ChargeLabel, ConservedNumbers, Fusion, Space};
use super::state::MatrixProductState;
use super::strings::Strings;
use super::tensor::{MpsTensor, times};
use super::train::{UncompressedState, not_finite};
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::OpSum;
use crate::number::{C64, memory};
use crate::task::Task;

/// A norm below this, relative to what was added, is rounding left by cancellation.
const ROUNDING: f64 = 1e-15;

/// A direct sum of bases: for each sector of each part its sector in the sum, and its first state there.
struct DirectSum {
    space: Space,
    places: HashMap<(usize, usize), (usize, usize)>,
}

impl DirectSum {
    /// From part, sector of the part, label and number of states.
    fn new(parts: impl Iterator<Item = (usize, usize, ChargeLabel, usize)>) -> DirectSum {
        let mut dims: BTreeMap<ChargeLabel, usize> = BTreeMap::new();
        let mut found = Vec::new();
        for (part, sector, label, dim) in parts {
            let sum = dims.entry(label.clone()).or_default();
            found.push(((part, sector), label, *sum));
            *sum += dim;
        }
        let space = Space::new(dims);
        let place = |(key, label, offset): ((usize, usize), ChargeLabel, usize)| {
            Some((key, (space.find(&label)?, offset)))
        };
        let places = found.into_iter().filter_map(place).collect();
        DirectSum { space, places }
    }

    /// The operators carried across a bond times a state's basis.
    fn carried(symmetry: &ConservedNumbers, bond: &MpoBond, space: &Space) -> DirectSum {
        DirectSum::new(bond.charges.iter().enumerate().flat_map(|(a, charge)| {
            space.iter().enumerate().map(move |(s, (q, dim))| (a, s, symmetry.add(q, charge), dim))
        }))
    }

    /// The direct sum of the bases of several states; at the ends of the chain they share one state.
    fn beside<T: Element>(states: &[&MatrixProductState<T>], bond: usize) -> DirectSum {
        let end = bond == 0 || bond == states[0].sites.count();
        let all = states.iter().enumerate().flat_map(|(k, state)| {
            state.spaces[bond].iter().enumerate().map(move |(s, (q, dim))| (k, s, q.clone(), dim))
        });
        let mut sum = DirectSum::new(all);
        if end {
            sum.space = Space::single(states[0].spaces[bond].label(0).clone());
            sum.places.values_mut().for_each(|place| *place = (0, 0));
        }
        sum
    }

    fn place(&self, part: usize, sector: usize) -> Option<(usize, usize)> {
        self.places.get(&(part, sector)).copied()
    }
}

/// A tensor of zeros between two bases, and the fusion that numbers its rows.
fn empty<T: Element>(
    symmetry: &ConservedNumbers,
    states: &[ChargeLabel],
    before: &Space,
    behind: &Space,
) -> Result<(Fusion, Vec<Mat<T>>)> {
    let fusion = Fusion::new(symmetry, before, states);
    let height = |q: &ChargeLabel| fusion.space().find(q).map_or(0, |s| fusion.space().dim(s));
    let size: u128 = behind.iter().map(|(q, dim)| height(q) as u128 * dim as u128).sum();
    memory::ensure(2 * size * size_of::<T>() as u128, "a product or sum of states")?;
    let matrices = behind.iter().map(|(q, dim)| Mat::zeros(height(q), dim)).collect();
    Ok((fusion, matrices))
}

impl<T: Element> MatrixProductState<T> {
    /// An operator sum times the state, with its bonds truncated, and the discarded weight. Every term has to change
    /// the conserved numbers by the same amounts. A result of zero is [`MatrixProductState::zero`].
    ///
    /// # Errors
    /// When the sum does not fit the sites, or its terms lead to different sectors; memory; interruption.
    pub fn applied(
        &self,
        sum: &OpSum,
        cut: &Truncation,
        task: &Task,
    ) -> Result<(MatrixProductState<T>, f64)> {
        let (mpo, change, size) = self.automaton(sum)?;
        if size.is_finite() && size > 0.0 && !(1e-100..1e100).contains(&size) {
            // Squares are no numbers there.
            let unit = 2f64.powi(size.log2().floor() as i32);
            let (mut state, discarded) = self.applied(&(sum.clone() * C64::from(1.0 / unit)), cut, task)?;
            state.norm *= unit;
            return if state.norm.is_finite() { Ok((state, discarded)) } else { Err(not_finite()) };
        }
        let target = self.symmetry.add(&self.target, &change);
        if self.norm == 0.0 {
            return Ok((MatrixProductState::zero(&self.sites, &self.symmetry, &target), 0.0));
        }
        let carried = |i: usize| DirectSum::carried(&self.symmetry, mpo.bond(i), &self.spaces[i]);
        let make = |i: usize| -> Result<MpsTensor<T>> {
            let (before, behind) = (carried(i), carried(i + 1));
            let labels = mpo.states(i);
            let (fusion, mut matrices) = empty(&self.symmetry, labels, &before.space, &behind.space)?;
            let tensor = &self.tensors[i];
            for entry in mpo.tensor(i) {
                for &(up, down, z) in &entry.elements {
                    for sector in 0..tensor.before.sectors() {
                        let Some((to, own)) = tensor.part(sector, down) else { continue };
                        let (Some((row, above)), Some((column, left))) =
                            (before.place(entry.left, sector), behind.place(entry.right, to))
                        else {
                            continue;
                        };
                        let Some((_, part)) = fusion.place(row, up) else { continue };
                        let mut place = matrices[column].as_mut();
                        let mut place =
                            place.as_mut().submatrix_mut(part.offset + above, left, own.nrows(), own.ncols());
                        let z = T::from_c64(z);
                        for j in 0..own.ncols() {
                            for i in 0..own.nrows() {
                                place[(i, j)] += z * own[(i, j)];
                            }
                        }
                    }
                }
            }
            let fill = |sector: usize| std::mem::replace(&mut matrices[sector], Mat::zeros(0, 0));
            MpsTensor::new(&self.symmetry, &before.space, labels, &behind.space, fill)
        };
        let raw = UncompressedState { like: self, target, tensor: &make, least: ROUNDING * size };
        let (mut state, discarded) = raw.compressed(cut, task)?;
        state.norm *= self.norm;
        if state.norm.is_finite() { Ok((state, discarded)) } else { Err(not_finite()) }
    }

    /// The automaton of a sum on the state's sites, by how much it changes the conserved numbers, and a bound on its
    /// norm.
    fn automaton(&self, sum: &OpSum) -> Result<(Mpo, ChargeLabel, f64)> {
        self.need_component()?;
        sum.fits("a state of", self.sites.count())?;
        let (strings, change) = Strings::changing(sum, &self.sites, &self.symmetry)?;
        let mpo = Mpo::from_strings(&strings, &self.sites, &self.symmetry, self.target.clone());
        if mpo.is_complex() && !T::DTYPE.is_complex() {
            return Err(Error::internal("a complex operator and a real state"));
        }
        Ok((mpo, change, strings.size()))
    }

    /// Whether a sum has complex elements on the state's sites, so that it makes complex states.
    ///
    /// # Errors
    /// As [`MatrixProductState::applied`].
    pub fn makes_complex(&self, sum: &OpSum) -> Result<bool> {
        self.need_component()?;
        sum.fits("a state of", self.sites.count())?;
        let (strings, _) = Strings::changing(sum, &self.sites, &self.symmetry)?;
        Ok(Mpo::from_strings(&strings, &self.sites, &self.symmetry, self.target.clone()).is_complex())
    }

    /// `<self|O|other>`.
    ///
    /// # Errors
    /// When the states belong to different chains or the sum does not fit them.
    pub fn element(&self, sum: &OpSum, other: &MatrixProductState<T>) -> Result<C64> {
        self.need_alike(other)?;
        let (mpo, change, _) = other.automaton(sum)?;
        if other.symmetry.add(&other.target, &change) != self.target {
            return Ok(C64::ZERO);
        }
        let mut environment: BTreeMap<(usize, usize, usize), Mat<T>> =
            BTreeMap::from([((0, 0, 0), Mat::identity(1, 1))]);
        for (i, (a, b)) in self.tensors.iter().zip(&other.tensors).enumerate() {
            crate::task::poll()?;
            let mut next: BTreeMap<(usize, usize, usize), Mat<T>> = BTreeMap::new();
            for (&(bra, carried, ket), e) in &environment {
                let mut halves: HashMap<usize, (usize, Mat<T>)> = HashMap::new();
                for entry in mpo.tensor(i).iter().filter(|entry| entry.left == carried) {
                    for &(up, down, z) in &entry.elements {
                        let (Some((to, upper)), Some((at, lower))) = (a.part(bra, up), b.part(ket, down))
                        else {
                            continue;
                        };
                        let half = &halves.entry(down).or_insert_with(|| (at, product(e.as_ref(), lower))).1;
                        let one = adjoint_product(upper, half.as_ref()) * faer::Scale(T::from_c64(z));
                        match next.get_mut(&(to, entry.right, at)) {
                            Some(sum) => *sum += one,
                            None => {
                                next.insert((to, entry.right, at), one);
                            }
                        }
                    }
                }
            }
            environment = next;
        }
        let sum: C64 = environment.values().map(|m| m[(0, 0)].to_c64()).sum();
        Ok(sum * self.norm * other.norm)
    }

    /// A linear combination of states of one sector, with its bonds truncated, and the discarded weight.
    ///
    /// # Errors
    /// For no states, states of different chains or sectors; memory; interruption.
    pub fn combined(
        parts: &[(C64, &MatrixProductState<T>)],
        cut: &Truncation,
        task: &Task,
    ) -> Result<(MatrixProductState<T>, f64)> {
        let Some((_, first)) = parts.first() else {
            return Err(Error::input("a sum of no states").hint("a sum takes pairs of a number and a state"));
        };
        first.need_component()?;
        for (_, other) in parts {
            first.need_alike(other)?;
        }
        let some: Vec<(C64, &MatrixProductState<T>)> =
            parts.iter().filter(|(z, s)| *z != C64::ZERO && s.norm > 0.0).copied().collect();
        let Some((_, like)) = some.first() else {
            return Ok((MatrixProductState::zero(&first.sites, &first.symmetry, &first.target), 0.0));
        };
        if some.iter().any(|(_, s)| s.target != like.target) {
            return Err(Error::input("states of different sectors have no sum in one sector")
                .hint("`state.sector` tells it; make both with fewer conserved numbers"));
        }
        let states: Vec<&MatrixProductState<T>> = some.iter().map(|p| p.1).collect();
        // Squares of norms in any unit may be no numbers.
        let unit = some.iter().map(|(z, s)| z.norm() * s.norm).fold(0.0, f64::max);
        if !unit.is_finite() {
            return Err(not_finite());
        }
        let make = |i: usize| -> Result<MpsTensor<T>> {
            let (before, behind) = (DirectSum::beside(&states, i), DirectSum::beside(&states, i + 1));
            let labels = like.symmetry.states(&like.sites, i);
            let (fusion, mut matrices) = empty(&like.symmetry, &labels, &before.space, &behind.space)?;
            for (k, (z, state)) in some.iter().enumerate() {
                // The first site takes the coefficient and the norm.
                let own;
                let tensor = if i == 0 {
                    own = times(&state.tensors[0], z * (state.norm / unit));
                    &own
                } else {
                    &state.tensors[i]
                };
                for (to, matrix) in tensor.matrices.iter().enumerate() {
                    let Some(at) = state.spaces[i + 1].find(tensor.behind.label(to)) else { continue };
                    let Some((column, left)) = behind.place(k, at) else { continue };
                    for part in tensor.fusion.parts(tensor.rows[to]) {
                        let Some((row, above)) = before.place(k, part.inner) else { continue };
                        let Some((_, place)) = fusion.place(row, part.state) else { continue };
                        let mut out = matrices[column].as_mut().submatrix_mut(
                            place.offset + above,
                            left,
                            part.dim,
                            matrix.ncols(),
                        );
                        for j in 0..matrix.ncols() {
                            for i in 0..part.dim {
                                out[(i, j)] += matrix[(part.offset + i, j)];
                            }
                        }
                    }
                }
            }
            let fill = |sector: usize| std::mem::replace(&mut matrices[sector], Mat::zeros(0, 0));
            MpsTensor::new(&like.symmetry, &before.space, &labels, &behind.space, fill)
        };
        let size: f64 = some.iter().map(|(z, s)| z.norm() * (s.norm / unit)).sum();
        let raw =
            UncompressedState { like, target: like.target.clone(), tensor: &make, least: ROUNDING * size };
        let (mut sum, discarded) = raw.compressed(cut, task)?;
        sum.norm *= unit;
        Ok((sum, discarded))
    }

    /// The state times a number.
    ///
    /// # Errors
    /// When the number is not finite.
    pub fn scaled(&self, z: C64) -> Result<MatrixProductState<T>> {
        if !(z.re.is_finite() && z.im.is_finite()) {
            return Err(Error::input(format!("a state times {z}, which is not finite"))
                .hint("a state is multiplied by finite numbers"));
        }
        let size = z.norm();
        if size == 0.0 || self.norm == 0.0 {
            return Ok(MatrixProductState::zero(&self.sites, &self.symmetry, &self.target));
        }
        let mut state = self.clone().renumbered();
        if let Some(last) = state.tensors.last_mut() {
            *last = times(last, z / size);
        }
        state.norm *= size;
        Ok(state)
    }

    /// Refuses states of other sites or labelled by other numbers.
    pub(super) fn need_alike(&self, other: &MatrixProductState<T>) -> Result<()> {
        let alike = self.sites.count() == other.sites.count()
            && self.sites.iter().zip(other.sites.iter()).all(|(a, b)| a == b);
        if !alike {
            return Err(Error::input("states of different chains have no scalar product and no sum")
                .hint("both states need the same chain of sites"));
        }
        if self.symmetry != other.symmetry {
            return Err(Error::input("the two states are labelled by different conserved numbers")
                .hint("`state.sector` tells them: both need a sector of the same names"));
        }
        Ok(())
    }
}
