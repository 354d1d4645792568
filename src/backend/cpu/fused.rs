//! The fused pass `w = alpha A v + beta v + gamma w` with both column-wise products, over any matrix that can walk its
//! rows. The bodies are generic and inlined; wrappers compiled for each instruction set call them.

use std::iter::empty;
use std::marker::PhantomData;
use std::ops::Range;

use super::Isa;
use super::block::BlockReal;
use super::pack::{Pack, PackedWork, dispatch};
use super::simd::{self, LaneTurn};
use super::stored::StoredIndex;
use crate::backend::Update;
use crate::number::Scalar;

/// Rows whose products are summed in registers, and whose entries stay in the nearest cache while the lanes of a wide
/// block are walked one vector after the other. Short enough that sums of 32-bit lanes keep their digits.
const STRIP: usize = 64;

/// Rows whose entries stay in cache while groups of lanes are walked one after the other; whole strips.
pub(super) const REACH: usize = 8 * STRIP;

/// Packs whose sums run side by side: one alone would wait for each of its products.
const BESIDE: usize = 4;

/// Entries of a matrix that are asked for before they are needed: the processor's own prefetching ends with every page.
pub(super) const AHEAD: usize = 512;

/// Bytes of vectors that a lattice's rows ask for before they need them.
const SOON: usize = 4096;

/// Asks for `items[from..to]`; places beyond the end do no harm.
#[inline(always)]
pub(super) fn fetch<T>(items: &[T], from: usize, to: usize) {
    for at in (from * size_of::<T>()..to * size_of::<T>()).step_by(64) {
        simd::fetch(items.as_ptr().cast::<u8>().wrapping_add(at));
    }
}

/// What is done with each row of a matrix. The entries come in up to three kinds, so that a matrix that knows its
/// values to be real or imaginary saves half the work; the others leave those kinds empty.
pub(super) trait Visit<T: Scalar> {
    /// A row with its on-site energy, if that is kept apart, and its entries `(column, value)`.
    fn row(
        &mut self,
        row: usize,
        on_site: Option<T::Real>,
        entries: impl Iterator<Item = (usize, T)>,
        real: impl Iterator<Item = (usize, T::Real)>,
        imaginary: impl Iterator<Item = (usize, T::Real)>,
    );

    /// Compressed rows: those of `rows[i]` are `starts[i]..starts[i + 1]` of columns and values.
    #[inline(always)]
    fn compressed<J: StoredIndex>(
        &mut self,
        rows: Range<usize>,
        starts: &[usize],
        columns: &[J],
        values: &[T],
    ) {
        one_by_one(self, rows, starts, columns, values);
    }

    /// Whole cells with the same entries, with their on-site energies; says where it ended.
    #[inline(always)]
    fn cells(
        &mut self,
        rows: Range<usize>,
        _on_site: Option<&[T::Real]>,
        _cells: &CellInputs<T::Real>,
    ) -> usize {
        rows.start
    }

    /// Rows that all have the same entries `(distance in rows, value)`, with their on-site energies.
    #[inline(always)]
    fn run(&mut self, rows: Range<usize>, on_site: Option<&[T::Real]>, entries: &[(isize, T)]) {
        for (at, row) in rows.enumerate() {
            let energy = on_site.map(|e| e[at]);
            let entries = entries.iter().map(|e| (row.wrapping_add_signed(e.0), e.1));
            self.row(row, energy, entries, empty(), empty());
        }
    }
}

/// Compressed rows, each by itself.
#[inline(always)]
pub(super) fn one_by_one<T: Scalar, J: StoredIndex>(
    visit: &mut (impl Visit<T> + ?Sized),
    rows: Range<usize>,
    starts: &[usize],
    columns: &[J],
    values: &[T],
) {
    for (row, range) in rows.zip(starts.windows(2)) {
        let range = range[0]..range[1];
        fetch(values, range.start + AHEAD, range.end + AHEAD);
        fetch(columns, range.start + AHEAD, range.end + AHEAD);
        let entries = columns[range.clone()].iter().zip(&values[range]).map(|(j, &value)| (j.at(), value));
        visit.row(row, None, entries, empty(), empty());
    }
}

/// What a cell's rows take from the cells around it. It is there where the rows of a cell are 2, 4 or 8 reals of a
/// single column.
pub(super) struct CellInputs<F> {
    /// Reals of a cell.
    pub lanes: usize,
    /// The largest distance in reals: the neighbour that no cell before has read.
    pub farthest: isize,
    /// Distances in reals, and the factors of the same lane there, for as many cells as sixteen lanes hold.
    pub straight: Vec<(isize, [F; 16])>,
    /// The same of other lanes.
    pub turned: Vec<(isize, LaneTurn, [F; 16])>,
}

impl<F: BlockReal> CellInputs<F> {
    /// Does the rows from `rows.start` on that fill packs, and says where it ended.
    #[inline(always)]
    pub fn run<Q: Pack<F>>(
        &self,
        part: &mut PartPack<F, Q>,
        rows: Range<usize>,
        stride: usize,
        on_site: Option<&[F]>,
    ) -> usize {
        let step = Q::WIDTH / stride;
        let mut from = rows.start;
        while from + BESIDE * step <= rows.end {
            self.packs::<Q, BESIDE>(part, from, stride, on_site.map(|all| &all[from - rows.start..]));
            from += BESIDE * step;
        }
        while from + step <= rows.end {
            self.packs::<Q, 1>(part, from, stride, on_site.map(|all| &all[from - rows.start..]));
            from += step;
        }
        from
    }

    /// `N` packs from row `from` on. Their sums run side by side, and share the factors.
    #[inline(always)]
    fn packs<Q: Pack<F>, const N: usize>(
        &self,
        part: &mut PartPack<F, Q>,
        from: usize,
        stride: usize,
        on_site: Option<&[F]>,
    ) {
        let (pass, at) = (part.pass, from * stride);
        pass.ask(at, self.farthest, N * Q::WIDTH);
        let mut sums = [Q::splat(F::default()); N];
        for (distance, factors) in &self.straight {
            // SAFETY: a list of sixteen, and no pack here is wider; so below.
            let factors = unsafe { Q::load(factors.as_ptr()) };
            let at = at.wrapping_add_signed(*distance);
            for k in 0..N {
                sums[k] = factors.mla(pass.load(at + k * Q::WIDTH), sums[k]);
            }
        }
        for (distance, turn, factors) in &self.turned {
            // SAFETY: as above.
            let factors = unsafe { Q::load(factors.as_ptr()) };
            let at = at.wrapping_add_signed(*distance);
            for k in 0..N {
                let x: Q = pass.load(at + k * Q::WIDTH);
                sums[k] = factors.mla(x.permute(turn, 0), sums[k]);
            }
        }
        let step = Q::WIDTH / stride;
        for k in 0..N {
            // No closure: what the compiler does not inline has not the instructions that it needs.
            let energies = match on_site {
                Some(all) => {
                    let all = &all[k * step..][..step];
                    // SAFETY: as many numbers as rows.
                    Some(unsafe { if stride == 2 { Q::twice(all.as_ptr()) } else { Q::load(all.as_ptr()) } })
                }
                None => None,
            };
            part.finish(from + k * step, 0, stride, energies, sums[k]);
        }
    }
}

/// A prepared matrix whose rows can be walked.
pub(super) trait WalksRows<T: Scalar>: Send + Sync {
    /// Visits `rows` in ascending order; the entries of a row come in a fixed order.
    fn walk<V: Visit<T>>(&self, rows: Range<usize>, visit: &mut V);
}

/// What a pass over a range of rows is given. The pointers are to all rows of the input and of the output.
#[derive(Clone, Copy)]
pub(super) struct FusedPass<F> {
    pub c: Update,
    pub columns: usize,
    pub complex: bool,
    pub v: *const F,
    pub w: *mut F,
    /// Row of the input that is conformal to row 0 of the output.
    pub offset: usize,
    pub dots: bool,
}

// SAFETY: the pointers are to blocks that outlive the pass; whoever shares a pass between threads deals out disjoint
// rows of `w`, and no thread reads rows of `v` that another writes (see `kernels.rs` and `blocked.rs`).
unsafe impl<F: Sync> Sync for FusedPass<F> {}

impl<F: BlockReal> FusedPass<F> {
    /// Reals a row.
    pub fn stride(&self) -> usize {
        self.columns * if self.complex { 2 } else { 1 }
    }

    /// Asks for the old output of some reals from `at` on, and for the input at a distance, some way ahead.
    #[inline(always)]
    fn ask(&self, at: usize, distance: isize, reals: usize) {
        let line = 64 / size_of::<F>();
        let (mut from, end) = (at + SOON / size_of::<F>(), at + SOON / size_of::<F>() + reals);
        while from < end {
            simd::fetch(self.v.wrapping_add(from).wrapping_offset(distance));
            simd::fetch(self.w.wrapping_add(from));
            from += line;
        }
    }

    #[inline(always)]
    pub fn load<P: Pack<F>>(&self, at: usize) -> P {
        // SAFETY: `at` is row * stride + lane with the row below the number of input rows (checked when the matrix was
        // prepared and when the vectors were matched to it) and lane + WIDTH at most the stride.
        unsafe { P::load(self.v.add(at)) }
    }

    #[inline(always)]
    fn load_output<P: Pack<F>>(&self, at: usize) -> P {
        // SAFETY: as for `load`, for rows of the output.
        unsafe { P::load(self.w.add(at)) }
    }

    #[inline(always)]
    fn store<P: Pack<F>>(&self, at: usize, x: P) {
        // SAFETY: as for `load_output`; no other thread has this row of the output.
        unsafe { x.store(self.w.add(at)) }
    }
}

/// A pack of one part (real or imaginary) of a row.
pub(super) struct PartPack<F, P> {
    /// By value: what the compiler finds behind a reference, it has to read again after every store.
    pub pass: FusedPass<F>,
    alpha: P,
    beta: P,
    gamma: P,
    vv: P,
    wv: P,
}

impl<F: BlockReal, P: Pack<F>> PartPack<F, P> {
    #[inline(always)]
    pub fn new(pass: FusedPass<F>) -> Self {
        let splat = |x: f64| P::splat(F::from_f64(x));
        let (alpha, beta, gamma) = (splat(pass.c.alpha), splat(pass.c.beta), splat(pass.c.gamma));
        PartPack { pass, alpha, beta, gamma, vv: splat(0.0), wv: splat(0.0) }
    }

    /// Ends a row: `sum` is the product's, `lane` the place within the row.
    #[inline(always)]
    pub fn finish(&mut self, row: usize, lane: usize, stride: usize, on_site: Option<P>, mut sum: P) {
        let pass = self.pass;
        let own: P = if pass.c.beta != 0.0 || pass.dots || on_site.is_some() {
            pass.load((row + pass.offset) * stride + lane)
        } else {
            P::splat(F::default())
        };
        if let Some(energy) = on_site {
            sum = energy.mla(own, sum);
        }
        let at = row * stride + lane;
        let mut new = self.beta.mla(own, self.alpha.mul(sum));
        if pass.c.gamma != 0.0 {
            new = self.gamma.mla(pass.load_output(at), new);
        }
        pass.store(at, new);
        if pass.dots {
            self.vv = own.mla(own, self.vv);
            self.wv = new.mla(own, self.wv);
        }
    }

    /// Adds the products of a strip to those of all rows.
    #[inline(always)]
    pub fn add_to(&self, sums: &mut [f64], lane: usize, stride: usize) {
        if self.pass.dots {
            self.vv.add_to(&mut sums[lane..]);
            self.wv.add_to(&mut sums[stride + lane..]);
        }
    }

    /// The same where all lanes of the pack belong to one column.
    #[inline(always)]
    pub fn add_whole_to(&self, sums: &mut [f64], stride: usize) {
        if self.pass.dots {
            let mut lanes = [0.0; 64];
            self.add_to(&mut lanes, 0, 32);
            sums[0] += lanes[..32].iter().sum::<f64>();
            sums[stride] += lanes[32..].iter().sum::<f64>();
        }
    }
}

/// A pack of lanes of the rows of a real matrix. Rows of a single lane that share their entries are taken `Q::WIDTH` at
/// once.
struct RealRows<F, P, Q> {
    part: PartPack<F, P>,
    many: PartPack<F, Q>,
    lane: usize,
    stride: usize,
}

impl<F: BlockReal, P: Pack<F>, Q: Pack<F>> RealRows<F, P, Q> {
    /// The products of four rows of a single lane side by side: one after the other, each would wait for its own sum.
    #[inline(always)]
    fn four_rows<J: StoredIndex>(&self, starts: &[usize], columns: &[J], values: &[F], sums: &mut [F]) {
        fetch(values, starts[0] + AHEAD, starts[4] + AHEAD);
        fetch(columns, starts[0] + AHEAD, starts[4] + AHEAD);
        let mut four = [P::splat(F::default()); 4];
        // No iterators and closures: a build without link-time optimisation calls what it finds of them in another
        // unit.
        let (mut lengths, mut shared) = ([0; 4], usize::MAX);
        for r in 0..4 {
            lengths[r] = starts[r + 1] - starts[r];
            shared = if lengths[r] < shared { lengths[r] } else { shared };
        }
        let (columns, values) = (&columns[..starts[4]], &values[..starts[4]]);
        for k in 0..shared {
            for r in 0..4 {
                four[r] = self.product(columns, values, starts[r] + k, four[r]);
            }
        }
        for r in 0..4 {
            for k in shared..lengths[r] {
                four[r] = self.product(columns, values, starts[r] + k, four[r]);
            }
            // SAFETY: a pack of one lane.
            unsafe { four[r].store(&mut sums[r]) };
        }
    }

    /// `sum` and the product of entry number `at` of a matrix with as many columns as values.
    #[inline(always)]
    fn product<J: StoredIndex>(&self, columns: &[J], values: &[F], at: usize, sum: P) -> P {
        // SAFETY: where rows start ascends (checked when the matrix was prepared),
        // and both lists reach the end of the last row.
        let (column, value) = unsafe { (columns.get_unchecked(at).at(), *values.get_unchecked(at)) };
        P::splat(value).mla(self.part.pass.load(column), sum)
    }

    /// `N` packs of rows of a single lane from row `from` on, all with the same entries.
    #[inline(always)]
    fn alike<const N: usize>(
        &mut self,
        from: usize,
        farthest: isize,
        on_site: Option<&[F]>,
        entries: &[(isize, F)],
    ) {
        let pass = self.many.pass;
        pass.ask(from, farthest, N * Q::WIDTH);
        let mut sums = [Q::splat(F::default()); N];
        for &(distance, value) in entries {
            let (value, at) = (Q::splat(value), from.wrapping_add_signed(distance));
            for k in 0..N {
                sums[k] = value.mla(pass.load(at + k * Q::WIDTH), sums[k]);
            }
        }
        for k in 0..N {
            let energies = match on_site {
                Some(all) => {
                    let all = &all[k * Q::WIDTH..][..Q::WIDTH];
                    // SAFETY: the slice is as long as the pack.
                    Some(unsafe { Q::load(all.as_ptr()) })
                }
                None => None,
            };
            self.many.finish(from + k * Q::WIDTH, 0, 1, energies, sums[k]);
        }
    }
}

impl<F: BlockReal, P: Pack<F>, Q: Pack<F>> Visit<F> for RealRows<F, P, Q> {
    #[inline(always)]
    fn row(
        &mut self,
        row: usize,
        on_site: Option<F>,
        entries: impl Iterator<Item = (usize, F)>,
        _real: impl Iterator<Item = (usize, F)>,
        _imaginary: impl Iterator<Item = (usize, F)>,
    ) {
        let mut sum = P::splat(F::default());
        for (column, value) in entries {
            sum = P::splat(value).mla(self.part.pass.load(column * self.stride + self.lane), sum);
        }
        self.part.finish(row, self.lane, self.stride, on_site.map(P::splat), sum);
    }

    #[inline(always)]
    fn compressed<J: StoredIndex>(
        &mut self,
        rows: Range<usize>,
        starts: &[usize],
        columns: &[J],
        values: &[F],
    ) {
        let mut done = 0;
        if P::WIDTH == 1 && self.stride == 1 {
            while done + Q::WIDTH <= rows.len() {
                let mut sums = [F::default(); 16];
                for four in (0..Q::WIDTH).step_by(4) {
                    let starts = &starts[done + four..][..5];
                    self.four_rows(starts, columns, values, &mut sums[four..four + 4]);
                }
                // SAFETY: the array holds 16 numbers, and no pack here is wider.
                let sum = unsafe { Q::load(sums.as_ptr()) };
                self.many.finish(rows.start + done, 0, 1, None, sum);
                done += Q::WIDTH;
            }
        }
        one_by_one(self, rows.start + done..rows.end, &starts[done..], columns, values);
    }

    #[inline(always)]
    fn cells(&mut self, rows: Range<usize>, on_site: Option<&[F]>, cells: &CellInputs<F>) -> usize {
        match P::WIDTH == 1 && self.stride == 1 && cells.lanes <= Q::TURNED {
            true => cells.run(&mut self.many, rows, 1, on_site),
            false => rows.start,
        }
    }

    #[inline(always)]
    fn run(&mut self, rows: Range<usize>, on_site: Option<&[F]>, entries: &[(isize, F)]) {
        let mut from = rows.start;
        if P::WIDTH == 1 && self.stride == 1 {
            let mut farthest = 0;
            for e in entries {
                farthest = if e.0 > farthest { e.0 } else { farthest };
            }
            while from + BESIDE * Q::WIDTH <= rows.end {
                self.alike::<BESIDE>(from, farthest, on_site.map(|e| &e[from - rows.start..]), entries);
                from += BESIDE * Q::WIDTH;
            }
            while from + Q::WIDTH <= rows.end {
                self.alike::<1>(from, farthest, on_site.map(|e| &e[from - rows.start..]), entries);
                from += Q::WIDTH;
            }
        }
        for row in from..rows.end {
            let energy = on_site.map(|e| e[row - rows.start]);
            let entries = entries.iter().map(|e| (row.wrapping_add_signed(e.0), e.1));
            self.row(row, energy, entries, empty(), empty());
        }
    }
}

/// Rows `range` of a real matrix: adds `<v|v>` and `Re <w|v>` of each lane to `sums`.
pub(super) fn real_rows<F: BlockReal, M: WalksRows<F>>(
    isa: Isa,
    matrix: &M,
    pass: &FusedPass<F>,
    range: Range<usize>,
    sums: &mut [f64],
) {
    in_groups(pass.stride(), range, |lanes, range| {
        dispatch(isa, lanes.len(), RealBody(PassShare { matrix, pass, range, lanes, sums: &mut *sums }));
    });
}

/// Lanes of one pack, those of the next smaller one, and so on: five columns are four and one, not five times one. Rows
/// come in order, a stretch at a time for all groups.
fn in_groups(lanes: usize, rows: Range<usize>, mut work: impl FnMut(Range<usize>, Range<usize>)) {
    let group = |from: usize| {
        let rest = lanes - from;
        from..from + if rest >= 32 { rest - rest % 32 } else { 1 << rest.ilog2() }
    };
    if group(0).end == lanes {
        return work(0..lanes, rows);
    }
    for first in rows.clone().step_by(REACH) {
        let mut from = 0;
        while from < lanes {
            let lanes = group(from);
            from = lanes.end;
            work(lanes, first..(first + REACH).min(rows.end));
        }
    }
}

/// Some rows and lanes of a pass over a matrix.
pub(super) struct PassShare<'a, F, M> {
    pub matrix: &'a M,
    pub pass: &'a FusedPass<F>,
    pub range: Range<usize>,
    pub lanes: Range<usize>,
    pub sums: &'a mut [f64],
}

struct RealBody<'a, F, M>(PassShare<'a, F, M>);

impl<F: BlockReal, M: WalksRows<F>> PackedWork<F> for RealBody<'_, F, M> {
    type Output = ();
    const WIDEST: bool = true;

    #[inline(always)]
    fn at<P: Pack<F>, Q: Pack<F>>(self) {
        // A stride known to the compiler saves a multiplication for every entry.
        let stride = self.0.pass.stride();
        if stride == P::WIDTH {
            real_strips::<F, M, P, Q>(self.0, P::WIDTH);
        } else {
            real_strips::<F, M, P, Q>(self.0, stride);
        }
    }
}

#[inline(always)]
fn real_strips<F: BlockReal, M: WalksRows<F>, P: Pack<F>, Q: Pack<F>>(
    share: PassShare<'_, F, M>,
    stride: usize,
) {
    let PassShare { matrix, pass, range, lanes, sums } = share;
    // A single column has no lanes to walk again, and its sums are as many as a register has lanes.
    let reach = if stride == 1 { REACH } else { STRIP };
    for first in range.clone().step_by(reach) {
        let strip = first..(first + reach).min(range.end);
        for lane in lanes.clone().step_by(P::WIDTH) {
            let mut rows =
                RealRows::<F, P, Q> { part: PartPack::new(*pass), many: PartPack::new(*pass), lane, stride };
            matrix.walk(strip.clone(), &mut rows);
            rows.part.add_to(sums, lane, stride);
            if stride == 1 {
                rows.many.add_whole_to(sums, 1);
            }
        }
    }
}

/// A pack of columns of the rows of a complex matrix.
struct ComplexRows<F, P> {
    re: PartPack<F, P>,
    im: PartPack<F, P>,
    lane: usize,
    columns: usize,
}

impl<T: Scalar<Real: BlockReal>, P: Pack<T::Real>> Visit<T> for ComplexRows<T::Real, P> {
    #[inline(always)]
    fn row(
        &mut self,
        row: usize,
        on_site: Option<T::Real>,
        entries: impl Iterator<Item = (usize, T)>,
        real: impl Iterator<Item = (usize, T::Real)>,
        imaginary: impl Iterator<Item = (usize, T::Real)>,
    ) {
        let (lane, columns, stride, pass) = (self.lane, self.columns, 2 * self.columns, self.re.pass);
        let mut re = P::splat(T::Real::default());
        let mut im = P::splat(T::Real::default());
        for (column, value) in entries {
            let (a, b, minus) = (P::splat(value.re()), P::splat(value.im()), P::splat(-value.im()));
            let x: P = pass.load(column * stride + lane);
            let y: P = pass.load(column * stride + columns + lane);
            re = a.mla(x, minus.mla(y, re));
            im = a.mla(y, b.mla(x, im));
        }
        for (column, a) in real {
            let a = P::splat(a);
            re = a.mla(pass.load(column * stride + lane), re);
            im = a.mla(pass.load(column * stride + columns + lane), im);
        }
        for (column, b) in imaginary {
            let (b, minus) = (P::splat(b), P::splat(-b));
            re = minus.mla(pass.load(column * stride + columns + lane), re);
            im = b.mla(pass.load(column * stride + lane), im);
        }
        let on_site = on_site.map(P::splat);
        self.re.finish(row, lane, stride, on_site, re);
        self.im.finish(row, columns + lane, stride, on_site, im);
    }
}

/// As [`real_rows`], for several columns of a complex matrix.
pub(super) fn complex_rows<T: Scalar<Real: BlockReal>, M: WalksRows<T>>(
    isa: Isa,
    matrix: &M,
    pass: &FusedPass<T::Real>,
    range: Range<usize>,
    sums: &mut [f64],
) {
    in_groups(pass.columns, range, |lanes, range| {
        let share = PassShare { matrix, pass, range, lanes: lanes.clone(), sums: &mut *sums };
        dispatch(isa, lanes.len(), ComplexBody(share, PhantomData::<T>));
    });
}

struct ComplexBody<'a, T: Scalar, M>(PassShare<'a, T::Real, M>, PhantomData<T>);

impl<T: Scalar<Real: BlockReal>, M: WalksRows<T>> PackedWork<T::Real> for ComplexBody<'_, T, M> {
    type Output = ();
    const WIDEST: bool = false;

    #[inline(always)]
    fn at<P: Pack<T::Real>, Q: Pack<T::Real>>(self) {
        let columns = self.0.pass.columns;
        if columns == P::WIDTH {
            complex_strips::<T, M, P>(self.0, P::WIDTH);
        } else {
            complex_strips::<T, M, P>(self.0, columns);
        }
    }
}

#[inline(always)]
fn complex_strips<T: Scalar<Real: BlockReal>, M: WalksRows<T>, P: Pack<T::Real>>(
    share: PassShare<'_, T::Real, M>,
    columns: usize,
) {
    let PassShare { matrix, pass, range, lanes, sums } = share;
    let stride = 2 * columns;
    for first in range.clone().step_by(STRIP) {
        let strip = first..(first + STRIP).min(range.end);
        for lane in lanes.clone().step_by(P::WIDTH) {
            let mut rows = ComplexRows::<T::Real, P> {
                re: PartPack::new(*pass),
                im: PartPack::new(*pass),
                lane,
                columns,
            };
            matrix.walk(strip.clone(), &mut rows);
            rows.re.add_to(sums, lane, stride);
            rows.im.add_to(sums, columns + lane, stride);
        }
    }
}
