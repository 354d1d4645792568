//! Strain: positions move, and every hopping is multiplied by a function of its bond's new and old length.

use super::model::Model;
use crate::error::{Error, Result};
use crate::task::Task;

/// Where a position moves to.
pub type PositionMap<'a> = dyn FnMut(&[f64]) -> Result<Vec<f64>> + 'a;

impl Model {
    /// Rescales all hoppings added so far: the bond from `x` to `y` by `factor(|map(y) - map(x)|, |y - x|)`.
    ///
    /// # Errors
    /// Those of the functions, a map or factor that is not finite, and interruption.
    pub fn strain(
        &mut self,
        map: &mut PositionMap<'_>,
        factor: &mut dyn FnMut(f64, f64) -> Result<f64>,
        task: &Task,
    ) -> Result<()> {
        let lattice = self.lattice.clone();
        let mut moved = |x: &[f64]| -> Result<Vec<f64>> {
            let y = map(x)?;
            if y.len() != x.len() || y.iter().any(|v| !v.is_finite()) {
                return Err(Error::input(format!("the strain maps {x:?} to {y:?}, which is no position")));
            }
            Ok(y)
        };
        let length = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
        for hop in &mut self.hops {
            let mut scale = hop.scale.take().unwrap_or_else(|| vec![1.0; lattice.cell_count()]);
            let mut cell = 0;
            lattice.each_bond(&hop.bond, task, |positions| {
                if let Some((a, b)) = positions {
                    let (new, old) = (length(&moved(a)?, &moved(b)?), length(a, b));
                    let f = factor(new, old)?;
                    if !f.is_finite() {
                        return Err(Error::input(format!(
                            "the strained hopping is not a finite number ({f}) at a bond length of {new}"
                        )));
                    }
                    scale[cell] *= f;
                }
                cell += 1;
                Ok(())
            })?;
            hop.scale = Some(scale);
        }
        Ok(())
    }
}
