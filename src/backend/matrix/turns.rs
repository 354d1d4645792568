//! Dense matrices in other bases: what a truncated basis of DMRG does to the operators of a block.

use faer::Mat;

use super::records::Factor;

/// One matrix `U^H A V`, where A is a sum of pieces.
#[derive(Clone, Copy)]
pub struct Turn<'a, T> {
    /// The new basis of its rows and that of its columns, a vector a column.
    pub rows: &'a Mat<T>,
    pub columns: &'a Mat<T>,
    /// The pieces of A.
    pub pieces: &'a [Factor<T>],
}

impl<T> Turn<'_, T> {
    /// Numbers of the result.
    pub fn numbers(&self) -> usize {
        self.rows.ncols() * self.columns.ncols()
    }

    /// Multiplications.
    fn work(&self) -> usize {
        let dense = self.pieces.iter().filter(|f| f.matrix.is_some());
        let inner: usize = dense.map(|f| f.rows * f.columns).sum();
        (inner + self.rows.ncols() * self.rows.nrows()) * self.columns.ncols()
    }

    /// One part's of a list that parts take neighbouring ones of, each about as much work, and where the numbers of each part
    /// begin, and end.
    pub fn shared(turns: &[Self], (part, parts): (usize, usize)) -> (&[Self], Vec<usize>) {
        let all: usize = turns.iter().map(Turn::work).sum();
        let (mut done, mut numbers) = (0, 0);
        let (mut first, mut starts) = (vec![0], vec![0]);
        for (k, turn) in turns.iter().enumerate() {
            // A piece is for the part in whose share its middle lies.
            let of = |work: usize| (work as u128 * parts as u128 / all.max(1) as u128) as usize;
            while first.len() <= of(done + turn.work() / 2).min(parts - 1) {
                first.push(k);
                starts.push(numbers);
            }
            done += turn.work();
            numbers += turn.numbers();
        }
        first.resize(parts + 1, turns.len());
        starts.resize(parts + 1, numbers);
        (&turns[first[part]..first[part + 1]], starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_take_all_turns() {
        let bases: Vec<Mat<f64>> = (1..9).map(|n| Mat::zeros(2 * n, n)).collect();
        let turns: Vec<Turn<f64>> = bases
            .iter()
            .flat_map(|rows| bases.iter().map(move |columns| Turn { rows, columns, pieces: &[] }))
            .collect();
        for parts in [1, 2, 3, 64, 100] {
            let (mut numbers, mut count) = (0, 0);
            for part in 0..parts {
                let (own, starts) = Turn::shared(&turns, (part, parts));
                assert_eq!((starts.len(), starts[part]), (parts + 1, numbers));
                numbers += own.iter().map(Turn::numbers).sum::<usize>();
                count += own.len();
                assert_eq!(starts[part + 1], numbers);
                let work: usize = own.iter().map(Turn::work).sum();
                let all: usize = turns.iter().map(Turn::work).sum();
                assert!(parts > 3 || work.abs_diff(all / parts) < all / 20);
            }
            assert_eq!(count, turns.len());
        }
        let (own, starts) = Turn::<f64>::shared(&[], (1, 2));
        assert!(own.is_empty() && starts == [0, 0, 0]);
    }
}
