//! States of multiplets as states of one component each: a state of total spin S becomes one of Sz = M, in which
//! everything can be measured.

use std::collections::BTreeMap;

use faer::Mat;

use super::space::{ChargeLabel, ConservedNumbers, Fusion, Space};
use super::state::MatrixProductState;
use super::tensor::MpsTensor;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::multiplets::Multiplets;
use crate::manybody::wigner::clebsch_gordan;
use crate::number::memory;

/// A bond's sectors of multiplets, unfolded into those of their components.
struct Unfolded {
    space: Space,
    /// Label, twice Sz, and the first state there, for each sector of multiplets.
    places: Vec<Vec<(ChargeLabel, i32, usize)>>,
}

impl Unfolded {
    /// Of multiplets only the components are kept that `keep` says.
    fn new(
        space: &Space,
        label_of: impl Fn(&ChargeLabel, i32) -> ChargeLabel,
        c: usize,
        keep: impl Fn(i32) -> bool,
    ) -> Unfolded {
        let mut dims: BTreeMap<ChargeLabel, usize> = BTreeMap::new();
        let mut places = Vec::new();
        for (label, dim) in space.iter() {
            let mut own = Vec::new();
            for m in (-label[c]..=label[c]).step_by(2).filter(|m| keep(*m)) {
                let new = label_of(label, m);
                let first = dims.entry(new.clone()).or_default();
                own.push((new, m, *first));
                *first += dim;
            }
            places.push(own);
        }
        Unfolded { space: Space::new(dims), places }
    }
}

impl<T: Element> MatrixProductState<T> {
    /// Twice the total spin, where the state is one of multiplets.
    pub fn spin(&self) -> Option<i32> {
        self.symmetry.spin().map(|c| self.target[c])
    }

    /// Refuses a state of multiplets where states of components are meant.
    ///
    /// # Errors
    /// When it is one.
    pub fn need_component(&self) -> Result<()> {
        match self.spin() {
            None => Ok(()),
            Some(_) => {
                Err(Error::input("a state of total spin, which stands for all components of its multiplet")
                    .hint("all functions take its component with Sz = m"))
            }
        }
    }

    /// The component of a multiplet with twice some Sz.
    ///
    /// # Errors
    /// When the state is none of multiplets, or its spin has no such component.
    pub fn component(&self, twice: i32) -> Result<MatrixProductState<T>> {
        let (Some(c), Some(spin)) = (self.symmetry.spin(), self.spin()) else {
            return Err(Error::input("a component of a state that has no total spin")
                .hint("states that are found in a sector of S have one"));
        };
        if twice.abs() > spin || (twice + spin) % 2 != 0 {
            let half = |q: i32| f64::from(q) / 2.0;
            return Err(Error::input(format!("a component Sz = {} of a spin {}", half(twice), half(spin)))
                .hint("Sz goes from -S to S in steps of one"));
        }
        let n = self.tensors.len();
        let mut names: Vec<String> = self.symmetry.names()[..c].to_vec();
        let charged = self.sites.charges().iter().any(|name| name == "Sz");
        if charged {
            names.push("Sz".into());
        }
        let symmetry = ConservedNumbers::new(&self.sites, names);
        let label_of = |label: &ChargeLabel, m: i32| -> ChargeLabel {
            label[..c].iter().copied().chain(charged.then_some(m)).collect()
        };
        let target = label_of(&self.target, twice);
        if self.norm == 0.0 {
            return Ok(MatrixProductState::zero(&self.sites, &symmetry, &target));
        }
        let own: Vec<Multiplets> = self.sites.iter().map(|site| site.multiplets()).collect::<Result<_>>()?;
        if !T::DTYPE.is_complex() && own.iter().flat_map(|o| &o.phases).any(|z| z.im.abs() > 1e-12) {
            return Err(Error::input("components of a real state on sites whose S- is complex")
                .hint("choose the phases of the sites' states so that S- is real"));
        }
        // What lies behind a bond has to be able to make up for the difference in Sz.
        let mut behind = vec![0; n + 1];
        for i in (0..n).rev() {
            behind[i] = behind[i + 1] + own[i].spins.iter().max().copied().unwrap_or(0);
        }
        let bond = |i: usize| Unfolded::new(&self.spaces[i], label_of, c, |m| (m - twice).abs() <= behind[i]);
        let mut tensors = Vec::with_capacity(n);
        let mut before = bond(0);
        for i in 0..n {
            let after = bond(i + 1);
            tensors.push(self.unfolded(i, &own[i], &symmetry, &before, &after)?);
            before = after;
        }
        Ok(MatrixProductState::from_tensors(self.sites.clone(), symmetry, target, tensors)?
            .with_norm(self.norm))
    }

    /// The matrices of a site between components.
    fn unfolded(
        &self,
        site: usize,
        own: &Multiplets,
        symmetry: &ConservedNumbers,
        before: &Unfolded,
        after: &Unfolded,
    ) -> Result<MpsTensor<T>> {
        let tensor = &self.tensors[site];
        let c = self.symmetry.names().len() - 1;
        let states = symmetry.states(&self.sites, site);
        let steps = self.symmetry.states(&self.sites, site);
        let fusion = Fusion::new(symmetry, &before.space, &states);
        let height = |q: &ChargeLabel| fusion.space().find(q).map_or(0, |s| fusion.space().dim(s));
        let size: u128 = after.space.iter().map(|(q, dim)| height(q) as u128 * dim as u128).sum();
        memory::ensure(2 * size * size_of::<T>() as u128, "a component of a multiplet")?;
        let mut matrices: Vec<Mat<T>> =
            after.space.iter().map(|(q, dim)| Mat::zeros(height(q), dim)).collect();
        for (inner, places) in before.places.iter().enumerate() {
            let j = self.spaces[site].label(inner)[c];
            for step in 0..steps.len() {
                let Some((to, m)) = tensor.part(inner, step) else { continue };
                let label = tensor.behind.label(to);
                let Some(to) = self.spaces[site + 1].find(label) else { continue };
                let spin = own.spins[own.of[step]];
                for (from, below, row) in places {
                    // Every state of the multiplet of which this is a step.
                    for state in (0..steps.len()).filter(|&s| own.of[s] == own.of[step]) {
                        let sum = below + own.twice[state];
                        let Some((new, _, column)) = after.places[to].iter().find(|p| p.1 == sum) else {
                            continue;
                        };
                        let weight = clebsch_gordan([j, *below], [spin, own.twice[state]], [label[c], sum]);
                        let (Some(from), Some(new)) = (before.space.find(from), after.space.find(new)) else {
                            continue;
                        };
                        let Some((_, part)) = fusion.place(from, state).filter(|_| weight != 0.0) else {
                            continue;
                        };
                        let z = T::from_c64(own.phases[state] * weight);
                        let mut place = matrices[new].as_mut();
                        let mut place =
                            place.as_mut().submatrix_mut(part.offset + row, *column, m.nrows(), m.ncols());
                        place += m * faer::Scale(z);
                    }
                }
            }
        }
        MpsTensor::new(symmetry, &before.space, &states, &after.space, |sector| matrices[sector].clone())
    }
}
