//! The pass over a single column of a complex matrix: the real and imaginary parts of a number are neighbours, and
//! several entries of a row, or several cells, fill a register.

use std::marker::PhantomData;
use std::ops::Range;

use super::Isa;
use super::block::BlockReal;
use super::fused::{
    self, AHEAD, CellInputs, FusedPass, PartPack, PassShare, REACH, Visit, WalksRows, fetch, one_by_one,
};
use super::pack::{Pack, PackedWork, dispatch};
use super::stored::StoredIndex;
use crate::number::{Real, Scalar};

/// The rows of a complex matrix on a single column: real and imaginary part are neighbours, a pack of two lanes.
struct PairRows<F, P, Q> {
    part: PartPack<F, P>,
    /// Whole cells, and rows that are ended together.
    many: PartPack<F, Q>,
    /// What i does to parts that have changed places.
    turn: P,
    turns: Q,
}

impl<F: BlockReal, P: Pack<F>, Q: Pack<F>> PairRows<F, P, Q> {
    #[inline(always)]
    fn new(pass: FusedPass<F>) -> Self {
        let signs: [F; 16] = std::array::from_fn(|lane| F::from_f64(if lane % 2 == 0 { -1.0 } else { 1.0 }));
        // SAFETY: no pack here has more than sixteen lanes.
        let (turn, turns) = unsafe { (P::load(signs.as_ptr()), Q::load(signs.as_ptr())) };
        PairRows { part: PartPack::new(pass), many: PartPack::new(pass), turn, turns }
    }

    /// The product of a row with entries in these columns; `values` are the real and imaginary parts of as many
    /// numbers. A pack of entries at a time, then what is left, each in a pack of its own.
    #[inline(always)]
    fn product<J: StoredIndex>(&self, columns: &[J], values: *const F) -> P {
        let (pass, zero) = (self.part.pass, Q::splat(F::default()));
        let beside = Q::WIDTH / 2;
        let whole = columns.len() / beside * beside;
        let (mut along, mut across) = (zero, zero);
        for k in (0..whole).step_by(beside) {
            let mut places = [pass.v; 8];
            for e in 0..beside {
                // SAFETY: `k + e` is below the number of columns.
                places[e] = pass.v.wrapping_add(2 * unsafe { columns.get_unchecked(k + e) }.at());
            }
            // SAFETY: columns are below the number of rows of `v` (checked when the matrix was prepared), and there are
            // as many values as columns; so below.
            let (x, values) = unsafe { (Q::pairs(places.as_ptr()), Q::load(values.add(2 * k))) };
            along = values.firsts().mla(x, along);
            across = values.seconds().mla(x, across);
        }
        let sums = self.turns.mla(across.swap(), along).pair_sums();
        // SAFETY: a pack of two lanes.
        let mut sum = unsafe { P::load(sums.as_ptr()) };
        let mut across = P::splat(F::default());
        for k in whole..columns.len() {
            // SAFETY: as above.
            let (x, re, im): (P, F, F) = unsafe {
                let place = 2 * columns.get_unchecked(k).at();
                (pass.load(place), *values.add(2 * k), *values.add(2 * k + 1))
            };
            sum = P::splat(re).mla(x, sum);
            across = P::splat(im).mla(x, across);
        }
        self.turn.mla(across.swap(), sum)
    }
}

impl<T: Scalar<Real: BlockReal>, P: Pack<T::Real>, Q: Pack<T::Real>> Visit<T> for PairRows<T::Real, P, Q> {
    #[inline(always)]
    fn row(
        &mut self,
        row: usize,
        on_site: Option<T::Real>,
        entries: impl Iterator<Item = (usize, T)>,
        real: impl Iterator<Item = (usize, T::Real)>,
        imaginary: impl Iterator<Item = (usize, T::Real)>,
    ) {
        let pass = self.part.pass;
        // Two sums of each kind in turn: every product would wait for the one before.
        let zero = P::splat(T::Real::default());
        let (mut along, mut across) = ([zero; 2], [zero; 2]);
        for (column, value) in entries {
            let x: P = pass.load(2 * column);
            along = [along[1], P::splat(value.re()).mla(x, along[0])];
            across = [across[1], P::splat(value.im()).mla(x, across[0])];
        }
        for (column, a) in real {
            along = [along[1], P::splat(a).mla(pass.load(2 * column), along[0])];
        }
        for (column, b) in imaginary {
            across = [across[1], P::splat(b).mla(pass.load(2 * column), across[0])];
        }
        let one = P::splat(T::Real::from_f64(1.0));
        let along = one.mla(along[0], along[1]);
        let across = one.mla(across[0], across[1]);
        let sum = self.turn.mla(across.swap(), along);
        self.part.finish(row, 0, 2, on_site.map(P::splat), sum);
    }

    #[inline(always)]
    fn compressed<J: StoredIndex>(
        &mut self,
        rows: Range<usize>,
        starts: &[usize],
        columns: &[J],
        values: &[T],
    ) {
        // Without vector registers, entries side by side are only copied to and fro.
        if Q::TURNED == 0 {
            return one_by_one(self, rows, starts, columns, values);
        }
        let together = Q::WIDTH / 2;
        let mut done = 0;
        while done + together <= rows.len() {
            let starts = &starts[done..=done + together];
            fetch(values, starts[0] + AHEAD, starts[together] + AHEAD);
            fetch(columns, starts[0] + AHEAD, starts[together] + AHEAD);
            let mut sums = [[T::Real::default(); 2]; 8];
            for r in 0..together {
                let (from, to) = (starts[r], starts[r + 1]);
                // A complex number is its real and its imaginary part, one after the other.
                let sum = self.product(&columns[from..to], values[from..to].as_ptr().cast::<T::Real>());
                // SAFETY: a pack of two lanes.
                unsafe { sum.store(sums[r].as_mut_ptr()) };
            }
            let mut places = [sums[0].as_ptr(); 8];
            for r in 0..together {
                places[r] = sums[r].as_ptr();
            }
            // SAFETY: `together` pairs. One load of all would wait for the stores to reach the cache.
            let sum = unsafe { Q::pairs(places.as_ptr()) };
            self.many.finish(rows.start + done, 0, 2, None, sum);
            done += together;
        }
        // In the same order as above, so that a row has the same digits wherever rows are shared out.
        for at in done..rows.len() {
            let (from, to) = (starts[at], starts[at + 1]);
            let sum = self.product(&columns[from..to], values[from..to].as_ptr().cast::<T::Real>());
            self.part.finish(rows.start + at, 0, 2, None, sum);
        }
    }

    #[inline(always)]
    fn cells(
        &mut self,
        rows: Range<usize>,
        on_site: Option<&[T::Real]>,
        cells: &CellInputs<T::Real>,
    ) -> usize {
        match cells.lanes <= Q::TURNED {
            true => cells.run(&mut self.many, rows, 2, on_site),
            false => rows.start,
        }
    }
}

struct PairBody<'a, T: Scalar, M>(PassShare<'a, T::Real, M>, PhantomData<T>);

impl<T: Scalar<Real: BlockReal>, M: WalksRows<T>> PackedWork<T::Real> for PairBody<'_, T, M> {
    type Output = ();
    const WIDEST: bool = false;

    #[inline(always)]
    fn at<P: Pack<T::Real>, Q: Pack<T::Real>>(self) {
        // It is called for two lanes only; what it would do with others need not be compiled.
        if P::WIDTH != 2 {
            return;
        }
        let PassShare { matrix, pass, range, sums, .. } = self.0;
        for first in range.clone().step_by(REACH) {
            let mut rows = PairRows::<T::Real, P, Q>::new(*pass);
            matrix.walk(first..(first + REACH).min(range.end), &mut rows);
            rows.part.add_to(sums, 0, 2);
            rows.many.add_whole_to(sums, 2);
        }
    }
}

/// As [`fused::real_rows`], for a complex matrix.
pub(super) fn complex_rows<T: Scalar<Real: BlockReal>, M: WalksRows<T>>(
    isa: Isa,
    matrix: &M,
    pass: &FusedPass<T::Real>,
    range: Range<usize>,
    sums: &mut [f64],
) {
    if pass.columns != 1 {
        return fused::complex_rows(isa, matrix, pass, range, sums);
    }
    let share = PassShare { matrix, pass, range, lanes: 0..2, sums };
    dispatch(isa, 2, PairBody(share, PhantomData::<T>));
}
