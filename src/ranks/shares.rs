//! Work shared out to ranks: pieces of uneven size, and many that are alike by weight.

use super::{World, joined, result_of};
use crate::error::Result;

/// Multiplications below which every rank does all of some work: the results would take as long on their way.
const FEW: u64 = 1 << 23;

/// The rank that does each piece: the largest go first, and always to the rank that has least to do.
pub fn owners(works: &[u64], ranks: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..works.len()).collect();
    order.sort_by_key(|&piece| std::cmp::Reverse(works[piece]));
    let (mut owners, mut busy) = (vec![0; works.len()], vec![0u64; ranks]);
    for piece in order {
        let least = (0..ranks).min_by_key(|&rank| busy[rank]).unwrap_or(0);
        owners[piece] = least;
        busy[least] += works[piece];
    }
    owners
}

/// Where parts of a length begin that have it by weight, and where the last one ends.
pub fn weighted(length: usize, weights: &[f64]) -> Vec<usize> {
    let (total, mut sum) = (weights.iter().sum::<f64>(), 0.0);
    let mut starts = vec![0];
    for (part, weight) in weights.iter().enumerate() {
        sum += weight;
        let last = part + 1 == weights.len();
        let end = if last { length } else { (length as f64 * sum / total).round() as usize };
        starts.push(end.clamp(starts[part], length));
    }
    starts
}

/// Ranks that take what one of them has computed for what all would have: they compute with the same bits, or one of
/// them computes all of it.
#[derive(Clone, Copy)]
pub struct AlikeRanks {
    world: &'static World,
    /// Whether small work is shared out, too.
    always: bool,
    /// The rank that does all work, where the others would do it with other bits.
    one: Option<usize>,
}

impl AlikeRanks {
    /// These ranks; `always` shares out small work, too.
    pub fn new(world: &'static World, always: bool) -> AlikeRanks {
        AlikeRanks { world, always, one: None }
    }

    /// These ranks, of which one does all work for the others.
    pub fn by_one(world: &'static World, rank: usize) -> AlikeRanks {
        AlikeRanks { world, always: true, one: Some(rank) }
    }

    /// Whether sharing out so many multiplications pays.
    pub fn pays(self, work: u64) -> bool {
        self.always || work >= FEW
    }

    /// Pieces shared out by the work that each takes.
    pub fn shares(self, works: &[u64]) -> PieceShares {
        let (rank, ranks) = (self.world.rank(), self.world.size());
        let owners = self.one.map_or_else(|| owners(works, ranks), |one| vec![one; works.len()]);
        PieceShares { rank, ranks, owners, one: self.one }
    }
}

/// Who does which piece.
pub struct PieceShares {
    rank: usize,
    ranks: usize,
    owners: Vec<usize>,
    /// The rank that does all of them, where it is always the same.
    one: Option<usize>,
}

impl PieceShares {
    /// Whether a piece is this rank's.
    pub fn owns(&self, piece: usize) -> bool {
        self.owners[piece] == self.rank
    }

    /// All pieces in the order of the ranks that do them, and where those of each rank begin and end in a list of all
    /// their numbers, `sizes` a piece.
    pub fn in_order(&self, sizes: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let mut order: Vec<usize> = (0..self.owners.len()).collect();
        // The sort keeps the order of one rank's pieces.
        order.sort_by_key(|&piece| self.owners[piece]);
        let mut starts = vec![0; self.ranks + 1];
        for (&owner, size) in self.owners.iter().zip(sizes) {
            starts[owner + 1] += size;
        }
        (0..self.ranks).for_each(|rank| starts[rank + 1] += starts[rank]);
        (order, starts)
    }

    /// The results of all pieces on all ranks, as bytes; `own` has those of this rank's pieces, in their order. All
    /// ranks call this together.
    ///
    /// # Errors
    /// Those of any rank, and of MPI.
    pub fn joined(&self, own: Result<Vec<Box<[u8]>>>) -> Result<Vec<Box<[u8]>>> {
        let (order, _) = self.in_order(&[]);
        let all = match self.one {
            Some(one) => result_of(one, own)?,
            None => joined(own)?,
        };
        if all.len() != order.len() {
            return Err(super::apart(" in work that they share"));
        }
        let mut sorted: Vec<(usize, Box<[u8]>)> = order.into_iter().zip(all).collect();
        sorted.sort_by_key(|(piece, _)| *piece);
        Ok(sorted.into_iter().map(|(_, bytes)| bytes).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_go_first_to_who_has_least() {
        assert_eq!(owners(&[1, 5, 3, 3], 2), [0, 0, 1, 1]);
        assert_eq!(owners(&[0, 0], 3), [0, 0]);
        assert_eq!(owners(&[], 2), Vec::<usize>::new());
        let works: Vec<u64> = (1..=100).collect();
        let owners = owners(&works, 4);
        let busy = |rank| works.iter().zip(&owners).filter(|(_, o)| **o == rank).map(|(w, _)| w).sum::<u64>();
        assert!((0..4).all(|rank| busy(rank) <= 5050 / 4 + 4), "{owners:?}");
    }
}
