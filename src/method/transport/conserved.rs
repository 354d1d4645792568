//! Leads whose channels are distinguished by a conserved Hermitian matrix on the orbitals of every site, such as a
//! spin. Waves of each of its eigenvalues are found separately.

use faer::Mat;

use super::dense::largest;
use super::lead::{ChannelKind, Lead};
use super::reflection::SlabWaves;
use crate::error::{Error, Result};
use crate::number::{C64, Matrix};

/// Eigenvalues that are nearer, in units of the largest, are one.
const SAME: f64 = 1e-9;
/// What joins different eigenvalues counts as nothing below this, in units of the lead's elements.
const APART: f64 = 1e-10;

/// An error unless a matrix of the orbitals of a site is one of a quantity that they have; `what` names it.
pub fn check_local(local: &Matrix, orbitals: usize, what: &str) -> Result<()> {
    let hint = "it acts on the orbitals of every site, those of holes too";
    if local.rows() != orbitals || local.cols() != orbitals {
        let shape = local.shape();
        let text = format!("{what} is a matrix of {shape}, where {orbitals} x {orbitals} are needed");
        return Err(Error::input(text).hint(hint));
    }
    if !local.is_hermitian(1e-12) {
        return Err(Error::input(format!("{what} is a matrix that is not Hermitian")).hint(hint));
    }
    Ok(())
}

impl Lead {
    /// The lead with channels of one eigenvalue each of a quantity that is local and conserved, in ascending order.
    ///
    /// # Errors
    /// A matrix of another size or not Hermitian; cells that do not conserve it.
    pub fn conserving(mut self, local: &Matrix) -> Result<Lead> {
        let orbitals = self.orbitals();
        check_local(local, orbitals, "what a lead conserves")?;
        let (values, vectors) = local.eigh()?;
        let (values, vectors) = (values.as_real("eigenvalues")?.to_vec(), vectors.data().to_complex());
        let n = self.rows();
        let turn = Mat::from_fn(n, n, |i, j| {
            if i / orbitals == j / orbitals {
                vectors[(i % orbitals) * orbitals + j % orbitals]
            } else {
                C64::ZERO
            }
        });
        let [h, v] = [self.cell(), self.joint()].map(|m| turn.adjoint() * m * &turn);
        let near = SAME * values.iter().fold(1e-300f64, |most, x| most.max(x.abs()));
        let mut groups: Vec<(f64, Vec<usize>)> = Vec::new();
        for (k, value) in values.into_iter().enumerate() {
            match groups.last_mut().filter(|(last, _)| value - *last <= near) {
                Some((_, group)) => group.push(k),
                None => groups.push((value, vec![k])),
            }
        }
        let group_of = |row: usize| groups.iter().position(|(_, group)| group.contains(&(row % orbitals)));
        let most = APART * largest(h.as_ref()).max(largest(v.as_ref()));
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            if group_of(i) != group_of(j) && h[(i, j)].norm().max(v[(i, j)].norm()) > most {
                return Err(Error::input("a lead that does not conserve what it is said to")
                    .hint("its on-site terms and its hoppings must all commute with that matrix"));
            }
        }
        let rows = |group: &[usize]| (0..n).filter(|row| group.contains(&(row % orbitals))).collect();
        self.waves = groups
            .iter()
            .map(|(_, group)| SlabWaves::new(&h, &v, rows(group), self.unit()))
            .collect::<Option<_>>()
            .ok_or_else(|| Error::numeric("the joints of a lead's cells were not decomposed"))?;
        self.kinds = groups.iter().map(|(value, _)| ChannelKind::Carrying(*value)).collect();
        self.turn = Some(turn);
        Ok(self)
    }
}
