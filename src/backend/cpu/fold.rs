//! How the rows of a lattice are folded: the lattice is cut in halves along every direction of even size, and the same
//! row of all parts is stored side by side. A neighbour is then the same lane of another stored row, except across a
//! cut, where lanes are exchanged in pairs. So the same vector instructions compute the sites of all parts.

use crate::backend::Rows;

/// A folded lattice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backend) struct Fold {
    /// Rows side by side: 2 to the number of directions that are cut.
    pub lanes: usize,
    /// Sites of a part in each direction.
    pub part: [usize; 4],
    /// What a lane's number grows by across the cut of each direction; 0 where there is none.
    pub bit: [usize; 4],
    /// Rows a site.
    pub per_site: usize,
    dims: [usize; 4],
}

impl Fold {
    /// The fold of rows on a lattice that has a direction of even size.
    pub fn of(rows: &Rows) -> Option<Fold> {
        let grid = rows.grid.filter(|_| rows.local == rows.global)?;
        let (mut lanes, mut part, mut bit) = (1, grid.dims, [0; 4]);
        for d in 0..4 {
            if grid.dims[d] % 2 == 0 {
                (bit[d], part[d]) = (lanes, grid.dims[d] / 2);
                lanes *= 2;
            }
        }
        (lanes > 1).then_some(Fold { lanes, part, bit, per_site: grid.per_site, dims: grid.dims })
    }

    /// Stored row and lane of a row.
    pub fn place(&self, row: usize) -> (usize, usize) {
        let (mut site, component) = (row / self.per_site, row % self.per_site);
        let (mut stored, mut stride, mut lane) = (0, 1, 0);
        for d in 0..4 {
            let x = site % self.dims[d];
            site /= self.dims[d];
            stored += x % self.part[d] * stride;
            stride *= self.part[d];
            lane += x / self.part[d] * self.bit[d];
        }
        (stored * self.per_site + component, lane)
    }

    /// The row that stands in a lane of a stored row.
    pub fn row(&self, stored: usize, lane: usize) -> usize {
        let (mut rest, component) = (stored / self.per_site, stored % self.per_site);
        let (mut site, mut stride) = (0, 1);
        for d in 0..4 {
            let half = if self.bit[d] > 0 && lane & self.bit[d] > 0 { self.part[d] } else { 0 };
            site += (rest % self.part[d] + half) * stride;
            rest /= self.part[d];
            stride *= self.dims[d];
        }
        site * self.per_site + component
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Grid;

    #[test]
    fn every_row_has_one_place() {
        for dims in [[2, 2, 2, 4], [3, 4, 5, 2], [6, 6, 2, 3], [8, 1, 1, 3]] {
            let rows = Rows::on(Grid { dims, per_site: 12 });
            let fold = Fold::of(&rows).expect("an even direction");
            let mut seen = vec![false; rows.global];
            for row in 0..rows.global {
                let (stored, lane) = fold.place(row);
                assert_eq!(fold.row(stored, lane), row, "{dims:?}");
                assert!(!std::mem::replace(&mut seen[stored * fold.lanes + lane], true), "{dims:?}");
            }
        }
        assert!(Fold::of(&Rows::on(Grid { dims: [3, 5, 1, 7], per_site: 12 })).is_none());
        assert!(Fold::of(&Rows::all(96)).is_none());
    }
}
