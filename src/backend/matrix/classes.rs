//! The terms of a stencil in a cell depend only on its distance from the boundaries. So the cells fall into a few
//! classes, each with one short list of entries for every orbital.

use super::{Stencil, Wrap};
use crate::error::{Error, Result};
use crate::number::C64;

/// Entries that the lists of all classes may have together; a tiny lattice with long hoppings stays below by far.
const MOST_ENTRIES: usize = 1 << 22;

/// The classes of a stencil's cells.
#[derive(Debug, Clone)]
pub struct Classes {
    /// For every direction, the class of each coordinate.
    pub of_coordinate: Vec<Vec<u32>>,
    /// What a class of each direction counts in the number of a combination of classes.
    pub weights: Vec<usize>,
    /// Entries `(distance in rows, value)` of each orbital in each combination, at `combination * orbitals + orbital`,
    /// by ascending column; those of the on-site energies are not among them.
    pub lists: Vec<Vec<(isize, C64)>>,
}

impl Classes {
    /// Finds the classes of a valid stencil.
    ///
    /// # Errors
    /// When there are too many for lists to pay.
    pub fn new(stencil: &Stencil) -> Result<Self> {
        let orbitals = stencil.orbitals;
        let (mut of_coordinate, mut representatives) = (Vec::new(), Vec::new());
        for (d, &n) in stencil.cells.iter().enumerate() {
            let (class, of_class) = coordinate_classes(stencil, d, n);
            of_coordinate.push(class);
            representatives.push(of_class);
        }
        let mut weights = Vec::new();
        let mut combinations = 1usize;
        for of_class in &representatives {
            weights.push(combinations);
            combinations = combinations.saturating_mul(of_class.len());
        }
        if combinations.saturating_mul(stencil.terms.len().max(orbitals)) > MOST_ENTRIES {
            return Err(Error::input(format!(
                "a stencil of {} terms on {} cells has too many kinds of cells",
                stencil.terms.len(),
                stencil.dim() / orbitals
            ))
            .hint("use `format: \"csr\"`"));
        }
        let hoppings = Stencil { diagonal: None, ..stencil.clone() };
        let mut lists = Vec::with_capacity(combinations * orbitals);
        let mut entries = Vec::new();
        for combination in 0..combinations {
            let (mut rest, mut cell, mut stride) = (combination, 0, 1);
            for (of_class, &n) in representatives.iter().zip(&stencil.cells) {
                cell += of_class[rest % of_class.len()] * stride;
                rest /= of_class.len();
                stride *= n;
            }
            for row in cell * orbitals..(cell + 1) * orbitals {
                hoppings.merged_row(row, &mut entries);
                let nonzero = entries.iter().filter(|e| e.1 != C64::default());
                lists.push(nonzero.map(|&(column, value)| (column as isize - row as isize, value)).collect());
            }
        }
        Ok(Classes { of_coordinate, weights, lists })
    }

    /// The coordinates of a cell of a combination of classes.
    pub fn representative(&self, combination: usize) -> Vec<i64> {
        self.of_coordinate
            .iter()
            .zip(&self.weights)
            .map(|(of, &weight)| {
                let kinds = of.iter().max().map_or(1, |&most| most as usize + 1);
                let class = combination / weight % kinds;
                of.iter().position(|&c| c as usize == class).unwrap_or(0) as i64
            })
            .collect()
    }

    /// Entries that a product with the stencil touches, were all cells inner ones.
    pub fn entries(&self, stencil: &Stencil) -> usize {
        let most = self.lists.chunks(stencil.orbitals).map(|cell| cell.iter().map(Vec::len).sum()).max();
        let on_site = if stencil.diagonal.is_some() { stencil.orbitals } else { 0 };
        (most.unwrap_or(0) + on_site) * (stencil.dim() / stencil.orbitals)
    }
}

/// Classes of the coordinates in a direction: two coordinates are of one class if every term crosses the boundary from
/// both equally often. Also a coordinate of each class.
fn coordinate_classes(stencil: &Stencil, d: usize, n: usize) -> (Vec<u32>, Vec<usize>) {
    let mut shifts: Vec<i64> = stencil.terms.iter().map(|t| t.shift[d]).filter(|&s| s != 0).collect();
    shifts.sort_unstable();
    shifts.dedup();
    let mut kinds: Vec<Vec<i64>> = Vec::new();
    let mut representatives = Vec::new();
    let open = matches!(stencil.wrap[d], Wrap::Open);
    let class = (0..n)
        .map(|x| {
            let crossings: Vec<i64> = shifts
                .iter()
                .map(|s| {
                    let crossed = (x as i64 + s).div_euclid(n as i64);
                    // An open boundary crossed is a term gone, however far it would have led.
                    if open { crossed.abs().min(1) } else { crossed }
                })
                .collect();
            kinds.iter().position(|k| *k == crossings).unwrap_or_else(|| {
                kinds.push(crossings);
                representatives.push(x);
                kinds.len() - 1
            }) as u32
        })
        .collect();
    (class, representatives)
}
