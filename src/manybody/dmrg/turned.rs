//! The same states in other bases of the single sites: a unitary matrix on each site.

use faer::Mat;

use super::state::MatrixProductState;
use super::tensor::MpsTensor;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::number::C64;

/// Elements of a matrix below this are rounding.
const ROUNDING: f64 = 1e-12;

impl<T: Element> MatrixProductState<T> {
    /// The state after a unitary matrix on each site, row by row: `new[a] = sum_b u[a][b] old[b]`. It acts on the
    /// site's states as they are: fermionic ones get no signs.
    ///
    /// # Errors
    /// For matrices of other sizes, that are not unitary or that mix states of different conserved numbers.
    pub fn turned(&self, matrices: &[Vec<C64>]) -> Result<MatrixProductState<T>> {
        let n = self.sites.count();
        self.need_component()?;
        if matrices.len() != n {
            return Err(Error::input(format!("{} matrices for {}", matrices.len(), self.sites))
                .hint("one matrix for all sites, or one for each"));
        }
        let mut tensors = Vec::with_capacity(n);
        for (i, u) in matrices.iter().enumerate() {
            let labels = self.symmetry.states(&self.sites, i);
            let d = labels.len();
            if u.len() != d * d {
                return Err(Error::input(format!("a matrix of {} elements on site {i}", u.len()))
                    .hint(format!("the site has {d} states: a matrix of {d} x {d}")));
            }
            for a in 0..d {
                for b in 0..d {
                    let dot: C64 = (0..d).map(|k| u[a * d + k] * u[b * d + k].conj()).sum();
                    let wanted = if a == b { 1.0 } else { 0.0 };
                    // What is not a number is refused, too.
                    if !((dot - wanted).norm() < 1e-9) {
                        return Err(Error::input(format!("the matrix on site {i} is not unitary"))
                            .hint("its rows are orthonormal"));
                    }
                    if u[a * d + b].norm() > ROUNDING && labels[a] != labels[b] {
                        return Err(Error::input(format!(
                            "the matrix on site {i} mixes states of different conserved numbers"
                        ))
                        .hint("a state without them takes it: leave the sector empty"));
                    }
                }
            }
            tensors.push(self.turned_tensor(i, u, d)?);
        }
        Ok(MatrixProductState { tensors, ..self.clone() }.renumbered())
    }

    fn turned_tensor(&self, site: usize, u: &[C64], d: usize) -> Result<MpsTensor<T>> {
        let old = &self.tensors[site];
        let mut tensor = old.clone();
        for (matrix, &row) in tensor.matrices.iter_mut().zip(&old.rows) {
            let before = std::mem::replace(matrix, Mat::zeros(0, 0));
            let mut after = Mat::<T>::zeros(before.nrows(), before.ncols());
            for to in old.fusion.parts(row) {
                for from in old.fusion.parts(row).iter().filter(|from| from.inner == to.inner) {
                    let z = T::from_c64(u[to.state * d + from.state]);
                    for j in 0..before.ncols() {
                        for k in 0..to.dim {
                            after[(to.offset + k, j)] += z * before[(from.offset + k, j)];
                        }
                    }
                }
            }
            *matrix = after;
        }
        Ok(tensor)
    }
}
