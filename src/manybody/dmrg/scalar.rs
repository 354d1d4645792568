//! Scalar products of spins in states of multiplets: `S_i . S_j = - sqrt(3) [S_i S_j]^0`,
//! with reduced matrix elements alone.

use std::collections::BTreeMap;

use faer::Mat;

use super::carry::{BondMatrices, put};
use super::dense::{adjoint_product, product};
use super::state::MatrixProductState;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::multiplets::Multiplets;
use crate::manybody::wigner::recoupling;
use crate::number::C64;
use crate::task::Task;

/// Twice the rank of a spin.
const VECTOR: i32 = 2;

/// Elements of a local tensor between the steps of a site, and twice the ranks before it, of its own and behind it.
struct SiteElements<'a> {
    elements: &'a [(usize, usize, f64)],
    ranks: [i32; 3],
}

/// The spin of a site as a tensor.
fn vector(own: &Multiplets, sz: &[C64]) -> Vec<(usize, usize, f64)> {
    let mut elements = Vec::new();
    for (part, value) in own.parts(sz).into_iter().filter(|(p, _)| (p.k, p.q) == (VECTOR, 0)) {
        let z = value.re * own.element(part.to, part.from, part.k);
        let pairs = (0..own.of.len()).flat_map(|i| (0..own.of.len()).map(move |j| (i, j)));
        let inside = pairs.filter(|&(i, j)| own.of[i] == part.to && own.of[j] == part.from);
        elements.extend(inside.map(|(i, j)| (i, j, z)));
    }
    elements
}

impl<T: Element> MatrixProductState<T> {
    /// `<S_i . S_j>` of all pairs of some sites, which ascend; row by row. The state is one of multiplets.
    ///
    /// # Errors
    /// When it is not, on interruption.
    pub fn spin_products(&self, sites: &[usize], task: &Task) -> Result<Vec<f64>> {
        if self.spin().is_none() {
            return Err(Error::internal("scalar products of spins in a state of components"));
        }
        let n = sites.len();
        let densities = self.densities();
        let own: Vec<Multiplets> = self.sites.iter().map(|site| site.multiplets()).collect::<Result<_>>()?;
        let mut vectors = Vec::with_capacity(self.tensors.len());
        for (site, own) in self.sites.iter().zip(&own) {
            vectors.push(site.operator("Sz").map_or_else(|_| Vec::new(), |sz| vector(own, &sz.matrix)));
        }
        let identities: Vec<Vec<(usize, usize, f64)>> = (0..self.tensors.len())
            .map(|i| {
                let states = self.symmetry.states(&self.sites, i);
                self.symmetry.identity(&states).into_iter().map(|(i, j)| (i, j, 1.0)).collect()
            })
            .collect();
        let mut values = vec![0.0; n * n];
        let steps = task.start("correlations", n);
        for (row, &i) in sites.iter().enumerate() {
            let square: Vec<(usize, usize, f64)> = identities[i]
                .iter()
                .map(|&(s, t, _)| {
                    let spin = f64::from(own[i].spins[own[i].of[s]]) / 2.0;
                    (s, t, spin * (spin + 1.0))
                })
                .collect();
            let behind = self.through(None, i, &SiteElements { elements: &square, ranks: [0, 0, 0] });
            values[row * n + row] = trace(&behind, &densities[i + 1]).re;
            let mut so_far =
                self.through(None, i, &SiteElements { elements: &vectors[i], ranks: [0, VECTOR, VECTOR] });
            let mut at = i + 1;
            for (column, &j) in sites.iter().enumerate().skip(row + 1) {
                for k in at..j {
                    let local = SiteElements { elements: &identities[k], ranks: [VECTOR, 0, VECTOR] };
                    so_far = self.through(Some(&so_far), k, &local);
                }
                at = j;
                let local = SiteElements { elements: &vectors[j], ranks: [VECTOR, VECTOR, 0] };
                let closed = self.through(Some(&so_far), j, &local);
                let value = -(3.0f64.sqrt()) * trace(&closed, &densities[j + 1]).re;
                values[row * n + column] = value;
                values[column * n + row] = value;
            }
            steps.advance(row + 1)?;
        }
        Ok(values)
    }

    /// The environment behind a site with a tensor on it; none before it is the identity.
    fn through(
        &self,
        from: Option<&BondMatrices<T>>,
        site: usize,
        local: &SiteElements<'_>,
    ) -> BondMatrices<T> {
        let tensor = &self.tensors[site];
        let c = self.symmetry.names().len() - 1;
        let states = self.symmetry.states(&self.sites, site);
        let [before, own, after] = local.ranks;
        let mut out = BondMatrices::new();
        let mut way = |bra: usize, ket: usize, e: Option<&Mat<T>>| {
            let mut halves: BTreeMap<usize, Option<(usize, Mat<T>)>> = BTreeMap::new();
            for &(i, j, z) in local.elements {
                let Some((to, upper)) = tensor.part(bra, i) else { continue };
                let half = halves.entry(j).or_insert_with(|| {
                    let (at, lower) = tensor.part(ket, j)?;
                    Some((at, e.map_or_else(|| lower.to_owned(), |e| product(e.as_ref(), lower))))
                });
                let Some((at, half)) = half else { continue };
                let inner = [tensor.before.label(bra)[c], tensor.before.label(ket)[c], before];
                let outer = [tensor.behind.label(to)[c], tensor.behind.label(*at)[c], after];
                let factor = z * recoupling(inner, [states[i][c + 1], states[j][c + 1], own], outer);
                if factor == 0.0 {
                    continue;
                }
                let one = adjoint_product(upper, half.as_ref()) * faer::Scale(T::from_c64(factor.into()));
                put(&mut out, (to, *at), one);
            }
        };
        match from {
            None => (0..tensor.before.sectors()).for_each(|s| way(s, s, None)),
            Some(e) => e.iter().for_each(|(&(bra, ket), m)| way(bra, ket, Some(m))),
        }
        out
    }
}

/// The trace of a scalar's environment with a density matrix.
fn trace<T: Element>(environment: &BondMatrices<T>, density: &[Mat<T>]) -> C64 {
    let of = |(&(bra, ket), m): (&(usize, usize), &Mat<T>)| -> C64 {
        let all = (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| (i, j)));
        if bra == ket {
            all.map(|(i, j)| (m[(i, j)] * density[ket][(j, i)]).to_c64()).sum()
        } else {
            C64::ZERO
        }
    };
    environment.iter().map(of).sum()
}
