//! Blocks of vectors as tall matrices: their Gram matrix, and their columns combined. What subspace methods of one's
//! own are made of.

use std::rc::Rc;

use rhai::Engine;
use rhai::plugin::*;

use super::vector::Vector;
use crate::backend::BlockVector;
use crate::error::{Error, Result};
use crate::number::{C64, DType, Matrix, Series};
use crate::script::Fallible;

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(block_functions).into());
}

/// A block with numbers of that type, laid out as those of another block.
fn like(v: &Vector, other: &Vector, dtype: DType) -> Result<Rc<BlockVector>> {
    let block = v.arranged_like(other)?;
    if block.dtype() == dtype { Ok(block) } else { Ok(Rc::new(v.device.convert(&block, dtype)?)) }
}

fn gram_of(v: &Vector, w: &Vector) -> Result<Matrix> {
    let dtype = v.block.dtype().join(w.block.dtype());
    let all = v.device.gram(&*like(v, v, dtype)?, &*like(w, v, dtype)?)?;
    let data = if dtype.is_complex() {
        Series::Complex(all)
    } else {
        Series::Real(all.into_iter().map(|z| z.re).collect())
    };
    Matrix::new(v.block.columns(), w.block.columns(), data)
}

fn combined(v: &Vector, m: &Matrix) -> Result<Vector> {
    if m.rows() != v.block.columns() {
        return Err(Error::input(format!(
            "a block of {} columns times a matrix of {}",
            v.block.columns(),
            m.shape()
        ))
        .hint("the matrix has a row for each column of the block"));
    }
    if m.cols() == 0 {
        return Err(
            Error::input("a block times a matrix of no columns").hint("a block has one column at least")
        );
    }
    let coefficients: Vec<C64> = m.data().to_complex();
    let dtype = v.block.dtype();
    let dtype = if matches!(m.data(), Series::Complex(_)) { dtype.to_complex() } else { dtype };
    let mut sum = v.device.room(dtype, v.block.rows(), m.cols())?;
    v.device.combine(&*like(v, v, dtype)?, &coefficients, 0.0, &mut sum)?;
    Ok(Vector::new(&v.device, sum))
}

#[export_module(root = "crate::script::native")]
mod block_functions {
    /// The Gram matrix <v_i|w_j> of the columns of two blocks: a Matrix with a row for each column of `v` and a column
    /// for each column of `w`. It takes one pass over the vectors.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let v = random_block(h, 3, #{ seed: 1 });
    /// assert_close(gram(v, h * v).at(0, 2), dot(v.column(0), h * v.column(2)), 1e-13);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn gram(v: Vector, w: Vector) -> Fallible<Matrix> {
        Ok(gram_of(&v, &w)?)
    }

    /// The columns of a block combined: column j of `v * m` is the sum of v_i m_ij.
    ///
    /// # Example
    /// ```rhai
    /// let v = random_block(tight_binding(lattice::chain(8)), 2, #{ seed: 1 });
    /// let turned = v * matrix([[0.6, -0.8], [0.8, 0.6]]);
    /// assert_close(norm(turned.column(0) - (0.6 * v.column(0) + 0.8 * v.column(1))), 0.0, 1e-14);
    /// ```
    #[rhai_fn(name = "*", return_raw)]
    pub fn times(v: Vector, m: Matrix) -> Fallible<Vector> {
        Ok(combined(&v, &m)?)
    }

    /// Two blocks side by side, as one: the columns of `v`, then those of `w`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8));
    /// let both = beside(unit_block(h, [0]), unit_block(h, [3, 5]));
    /// assert(both.columns == 3 && norm(both.column(2) - unit_block(h, [5])) == 0.0, "three columns");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn beside(v: Vector, w: Vector) -> Fallible<Vector> {
        Ok(joined(&v, &w)?)
    }
}

fn joined(v: &Vector, w: &Vector) -> Result<Vector> {
    let dtype = v.block.dtype().join(w.block.dtype());
    let (left, right) = (like(v, v, dtype)?, like(w, v, dtype)?);
    Ok(Vector::new(&v.device, v.device.side_by_side(&[&left, &right])?))
}
