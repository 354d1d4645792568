//! The velocity operator v = i [H, x] of a Hamiltonian on a lattice (hbar = 1).

use super::{Format, Operator, Stored};
use crate::backend::matrix::{Csr, Indices, Values, Wrap};
use crate::error::{Error, Result};
use crate::number::C64;

impl Operator {
    /// Velocity along a Cartesian axis: v_ij = i H_ij (x_j - x_i), with the displacement across periodic boundaries taken
    /// the short way round. In units of energy times lattice constant over hbar.
    ///
    /// # Errors
    /// An operator that knows no lattice or no entries, an axis that the lattice does not have, a periodic direction of
    /// less than three cells, where the short way round is not defined.
    pub fn velocity(&self, axis: usize) -> Result<Operator> {
        let geometry = self.geometry().ok_or_else(|| {
            Error::input("velocities need an operator that knows its lattice")
                .hint("make it with `model(..).build()` or `tight_binding(..)`")
        })?;
        let lattice = &geometry.lattice;
        if axis >= lattice.space() {
            return Err(Error::input(format!("axis {axis} in a space of {} dimensions", lattice.space())));
        }
        for (d, wrap) in lattice.wrap().iter().enumerate() {
            if matches!(wrap, Wrap::Phase(_)) && lattice.cells()[d] < 3 && lattice.vectors()[d][axis] != 0.0 {
                return Err(Error::input(format!(
                    "{} periodic cells in direction {d}: which way round a hopping goes is not defined",
                    lattice.cells()[d]
                ))
                .hint("velocities need three cells or more along periodic directions"));
            }
        }
        let places: Vec<Vec<f64>> = (0..lattice.sites())
            .map(|site| lattice.position(site).map(|p| lattice.cell_coordinates(&p)))
            .collect::<Result<_>>()?;
        let along: Vec<f64> = lattice.vectors().iter().map(|v| v[axis]).collect();
        let round: Vec<Option<f64>> = lattice
            .wrap()
            .iter()
            .zip(lattice.cells())
            .map(|(wrap, &n)| matches!(wrap, Wrap::Phase(_)).then_some(n as f64))
            .collect();
        let displacement = |row: usize, column: usize| -> f64 {
            let (a, b) = (&places[row / geometry.orbitals], &places[column / geometry.orbitals]);
            along
                .iter()
                .zip(&round)
                .zip(a.iter().zip(b))
                .map(|((&x, round), (a, b))| {
                    let d = b - a;
                    x * round.map_or(d, |n| d - n * (d / n).round())
                })
                .sum()
        };
        let mut row_start = vec![0usize];
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        let known = self.node().each_entry(&mut |row, column, value| {
            while row_start.len() <= row {
                row_start.push(columns.len());
            }
            let x = displacement(row, column);
            if x != 0.0 {
                columns.push(column as u64);
                values.push(C64::new(0.0, 1.0) * value * x);
            }
        });
        if !known {
            return Err(Error::input(format!(
                "velocities need the entries of the operator, not a {}",
                self.node().describe()
            )));
        }
        let dim = self.dim();
        row_start.resize(dim + 1, columns.len());
        let columns = Indices::of(dim, columns);
        let values = Values::C64(values).convert(self.dtype().to_complex());
        let csr = Csr { rows: dim, cols: dim, row_start, columns, values };
        Ok(Stored::from_csr(self.device(), csr, Format::Auto)?.on(self.geometry().cloned()))
    }
}
