//! Boxes of cells into which a lattice is cut, one for each part: a rank, or a device of one process.

use std::ops::Range;

/// Boxes of cells: the first direction is the fastest, for cells in the lattice and in a box, and for ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boxes {
    cells: Vec<usize>,
    /// Rows a cell.
    orbitals: usize,
    /// For each direction, where the boxes begin, and the end of the last.
    starts: Vec<Vec<usize>>,
}

/// Where boxes of about one size begin.
pub fn even(length: usize, parts: usize) -> Vec<usize> {
    (0..=parts).map(|part| (length as u128 * part as u128 / parts as u128) as usize).collect()
}

/// Which part a place is in.
pub fn part_of(starts: &[usize], place: usize) -> usize {
    starts.partition_point(|start| *start <= place) - 1
}

impl Boxes {
    /// Boxes for a grid of ranks, as many numbers as the lattice has directions.
    pub fn new(cells: &[usize], orbitals: usize, grid: &[usize]) -> Boxes {
        let starts = cells.iter().zip(grid).map(|(&n, &parts)| even(n, parts)).collect();
        Boxes { cells: cells.to_vec(), orbitals, starts }
    }

    /// Boxes that begin at given cells of each direction, where the end of the last follows.
    pub fn at(cells: &[usize], orbitals: usize, starts: Vec<Vec<usize>>) -> Boxes {
        Boxes { cells: cells.to_vec(), orbitals, starts }
    }

    /// Whether they are of these cells, with so many rows each.
    pub fn are_of(&self, cells: &[usize], orbitals: usize) -> bool {
        self.cells == cells && self.orbitals == orbitals
    }

    /// Whether a direction is shared out.
    pub fn is_cut(&self, direction: usize) -> bool {
        self.starts[direction].len() > 2
    }

    /// Where the boxes of a direction begin, and the end of the last.
    pub fn starts(&self, direction: usize) -> &[usize] {
        &self.starts[direction]
    }

    /// How many boxes there are.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.starts.iter().map(|starts| starts.len() - 1).product()
    }

    /// A rank's cells in each direction.
    pub fn of(&self, mut rank: usize) -> Vec<Range<usize>> {
        let range = |starts: &Vec<usize>| {
            let parts = starts.len() - 1;
            let place = rank % parts;
            rank /= parts;
            starts[place]..starts[place + 1]
        };
        self.starts.iter().map(range).collect()
    }

    /// The ranks of the boxes below and above that of a rank in a direction, around the lattice.
    /// Boxes without cells lie nowhere.
    pub fn beside(&self, rank: usize, direction: usize) -> [usize; 2] {
        let stride: usize = self.starts[..direction].iter().map(|starts| starts.len() - 1).product();
        let starts = &self.starts[direction];
        let parts = starts.len() - 1;
        let here = rank / stride % parts;
        let next = |step: usize| {
            let mut part = (here + step) % parts;
            while part != here && starts[part] == starts[part + 1] {
                part = (part + step) % parts;
            }
            rank + part * stride - here * stride
        };
        [next(parts - 1), next(1)]
    }

    pub fn rows_of(&self, rank: usize) -> usize {
        self.of(rank).iter().map(Range::len).product::<usize>() * self.orbitals
    }

    /// The rank that holds a row, and the row's number there.
    pub fn holder(&self, row: usize) -> (usize, usize) {
        let (mut cell, orbital) = (row / self.orbitals, row % self.orbitals);
        let (mut rank, mut ranks, mut local, mut stride) = (0, 1, 0, 1);
        for (&n, starts) in self.cells.iter().zip(&self.starts) {
            let x = cell % n;
            cell /= n;
            let part = part_of(starts, x);
            rank += part * ranks;
            ranks *= starts.len() - 1;
            local += (x - starts[part]) * stride;
            stride *= starts[part + 1] - starts[part];
        }
        (rank, local * self.orbitals + orbital)
    }

    /// The rows of a rank as pieces of the whole: first row and length, in their order there.
    pub fn runs(&self, rank: usize) -> Vec<(usize, usize)> {
        let own = self.of(rank);
        if own.iter().any(Range::is_empty) {
            return Vec::new();
        }
        // Directions that are not shared out run through.
        let through = own.iter().zip(&self.cells).take_while(|(range, n)| range.len() == **n).count();
        let inner = (through + 1).min(own.len());
        let length = own[..inner].iter().map(Range::len).product::<usize>() * self.orbitals;
        let outer = &own[inner..];
        let mut runs = Vec::with_capacity(outer.iter().map(Range::len).product());
        let mut at: Vec<usize> = outer.iter().map(|range| range.start).collect();
        loop {
            let (mut cell, mut stride) = (0, 1);
            let places = own[..inner].iter().map(|range| range.start).chain(at.iter().copied());
            for (x, n) in places.zip(&self.cells) {
                cell += x * stride;
                stride *= n;
            }
            runs.push((cell * self.orbitals, length));
            let mut d = 0;
            loop {
                let Some(range) = outer.get(d) else { return runs };
                at[d] += 1;
                if at[d] < range.end {
                    break;
                }
                at[d] = range.start;
                d += 1;
            }
        }
    }
}
