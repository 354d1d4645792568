//! The numbers of vectors: from the device to scripts, and from scripts to the device.

use rhai::plugin::*;
use rhai::{Dynamic, Engine};

use super::values::to_series;
use super::vector::Vector;
use crate::backend::BlockVector;
use crate::error::{Error, Result};
use crate::number::{C64, DType, Matrix, Series};
use crate::operator::Operator;
use crate::script::Fallible;

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(vector_value_functions).into());
}

/// All numbers of a block, row by row.
pub(super) fn numbers(v: &Vector) -> Result<Series> {
    v.block.rows().need_all("the numbers of a vector are read")?;
    let all = v.device.download(&v.block)?;
    Ok(if v.block.dtype().is_complex() {
        Series::Complex(all)
    } else {
        Series::Real(all.iter().map(|z| z.re).collect())
    })
}

/// A block fit for an operator, of numbers row by row.
fn block_for(h: &Operator, numbers: &Series, rows: usize, columns: usize) -> Result<BlockVector> {
    if rows != h.cols() || columns == 0 {
        let kind = if columns == 1 { "a vector" } else { "a block" };
        return Err(Error::input(format!("{kind} of {rows} rows for an operator with {} of them", h.cols()))
            .hint(format!("give {} numbers, or a matrix with so many rows", h.cols())));
    }
    let like = h.zeros(1)?;
    let (own, place) = (like.dtype(), like.rows());
    place.need_all("a vector is made of numbers")?;
    let complex = own.is_complex() || matches!(numbers, Series::Complex(_));
    let all: Vec<C64> = numbers.to_complex();
    h.device().upload(DType::of(own.is_single(), complex), place, columns, &all)
}

#[export_module(root = "crate::script::native")]
mod vector_value_functions {
    /// The numbers of a vector, in the order of the operator's rows; a copy in main memory. For a block with several
    /// columns take `column(k)` first, or `to_matrix()`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(20).boundary("open"));
    /// let ground = davidson(h).vectors.column(0);
    /// let weight = ground.to_series().abs() ** 2;
    /// assert_close(weight.sum(), 1.0, 1e-12);
    /// assert(weight[10] > weight[0], "away from the ends");
    /// ```
    #[rhai_fn(global, name = "to_series", pure, return_raw)]
    pub fn vector_to_series(v: &mut Vector) -> Fallible<Series> {
        Ok(match v.block.columns() {
            1 => numbers(v),
            several => Err(Error::input(format!("a block of {several} columns is no series"))
                .hint("`v.column(0)` is its first column, `v.to_matrix()` all of them")),
        }?)
    }

    /// The numbers of a block as a matrix of its rows and columns; a copy in main memory.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// let m = unit_block(h, [1, 0]).to_matrix();
    /// assert(m.at(1, 0) == 1.0 && m.at(0, 0) == 0.0, "the second row, first column");
    /// ```
    #[rhai_fn(global, name = "to_matrix", pure, return_raw)]
    pub fn block_to_matrix(v: &mut Vector) -> Fallible<Matrix> {
        Ok(Matrix::new(v.block.rows().global, v.block.columns(), numbers(v)?)?)
    }

    /// A block of given numbers, fit for operator `h`: a Series or an array makes one column, a Matrix its columns. It
    /// has the operator's precision, and is complex if the operator or the numbers are complex.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(100));
    /// let x = linspace(-50.0, 49.0, 100);
    /// let packet = block(h, (-(x ** 2) / 50.0).exp() * (0.5 * I * x).exp());
    /// assert_close(norm(packet) ** 2, (-(x ** 2) / 25.0).exp().sum(), 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn block(h: Operator, values: Dynamic) -> Fallible<Vector> {
        let block = match values.read_lock::<Matrix>() {
            Some(m) => block_for(&h, m.data(), m.rows(), m.cols())?,
            None => {
                let column = to_series(&values)?;
                block_for(&h, &column, column.len(), 1)?
            }
        };
        Ok(Vector::new(h.device(), block))
    }
}
