//! A matrix with divided rows. Every part computes with its own columns while the rows of its neighbours are sent, then
//! adds their contribution to its boundary rows. Each part runs on its own thread, unless there is little work, and
//! waits only for the rows that it needs. Sums over all rows are made once, at the end of a recurrence. Rows pass
//! through the host's memory, unless all parts write to each other's memory.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::{SplitBackend, WORTH_A_THREAD, between, cut_differently, cut_of, pieces, pieces_mut};
use crate::backend::cut::{RowCut, share};
use crate::backend::exchange::{
    ExchangePort, Halo, KeptForPasses, Link, PassExtras, PassOperands, PassProducts, PendingProducts,
    Staging, VectorShape, boundary, inside, over_link, queueing_turn, summed, through_host,
};
use crate::backend::matrix::Csr;
use crate::backend::matrix::wilson::Face;
use crate::backend::{
    BlockVector, Device, Dots, Kernel, KernelInfo, KernelShape, MatrixSpec, Rows, Update, check_update,
    conformal,
};
use crate::error::{Error, Result};

/// Pieces of memory that go round between two neighbours: one is filled while the other is read.
const ROUND: usize = 2;

/// A part that has rows or columns of the matrix.
pub(super) struct PartRows {
    pub index: usize,
    pub device: Device,
    /// Its rows in its own columns, where it has both.
    pub own: Option<Arc<dyn Kernel>>,
    /// Its boundary rows in the columns of others, also as a matrix that is prepared.
    pub outside: Arc<Csr>,
    pub beyond: Option<Arc<dyn Kernel>>,
    pub halo: Halo,
    /// Instead of these rows the faces of a box, where half-spinors pass them by a link.
    pub faces: Option<Vec<Face>>,
    /// The parts, as places in the list of them, that things are sent to and come from.
    pub to: Vec<usize>,
    pub from: Vec<usize>,
}

/// A matrix of whose rows every part holds some.
pub(super) struct SplitMatrix {
    pub parts: Vec<PartRows>,
    pub shape: KernelShape,
    /// Who holds which rows and columns.
    pub row_cut: Arc<RowCut>,
    pub col_cut: Arc<RowCut>,
    pub info: KernelInfo,
    pub kept: KeptForPasses<Vec<End>>,
}

/// One part's end of the exchanges: by itself, or through the host.
pub(super) enum End {
    Link(Box<dyn Link>),
    Host(Worker),
}

/// A part's end of exchanges through the host.
pub(super) struct Worker {
    port: Box<dyn ExchangePort>,
    /// Rows out, and the memory that comes back from where they went.
    to: Vec<Sender<Staging>>,
    free: Vec<Receiver<Staging>>,
    /// Rows in, and where their memory goes back to.
    from: Vec<Receiver<Staging>>,
    back: Vec<Sender<Staging>>,
}

/// Why a part stopped before its last pass.
enum Stop {
    Failed(Error),
    /// A neighbour stopped; it knows why.
    Neighbour,
}

impl From<Error> for Stop {
    fn from(e: Error) -> Self {
        Stop::Failed(e)
    }
}

impl Worker {
    /// Hands the rows that neighbours need over; false if they are still under way and `wait` is not set.
    fn begin(&mut self, v: Option<&BlockVector>, wait: bool) -> std::result::Result<bool, Stop> {
        for (neighbour, memory) in self.port.released()? {
            self.back[neighbour].send(memory).map_err(|_| Stop::Neighbour)?;
        }
        if self.to.is_empty() {
            return Ok(true);
        }
        let memory: std::result::Result<Vec<Staging>, _> = self.free.iter().map(Receiver::recv).collect();
        let memory = memory.map_err(|_| Stop::Neighbour)?;
        match v {
            Some(v) => {
                self.port.collect(v, memory)?;
                self.send(wait)
            }
            // Without columns it has nothing that others read, and they wait for that.
            None => self.hand_over(memory),
        }
    }

    /// Computes, then takes the neighbours' rows in.
    fn end(
        &mut self,
        part: &PartRows,
        c: Update,
        (v, mut w, besides): PassOperands,
        sent: bool,
    ) -> std::result::Result<PassProducts, Stop> {
        let mut products = (part.inside(c, v, w.as_deref_mut(), besides)?, None);
        if !sent {
            self.send(true)?;
        }
        for (neighbour, rows) in self.from.iter().enumerate() {
            let rows = rows.recv().map_err(|_| Stop::Neighbour)?;
            self.port.deliver(neighbour, rows)?;
        }
        if let (Some(beyond), Some(w)) = (&part.beyond, w) {
            products.1 = self.port.add(c.alpha, &**beyond, w, v.filter(|_| besides.dots()))?;
        }
        Ok(products)
    }

    fn send(&mut self, wait: bool) -> std::result::Result<bool, Stop> {
        let Some(rows) = self.port.collected(wait)? else { return Ok(false) };
        self.hand_over(rows)
    }

    fn hand_over(&self, rows: Vec<Staging>) -> std::result::Result<bool, Stop> {
        for (to, rows) in self.to.iter().zip(rows) {
            to.send(rows).map_err(|_| Stop::Neighbour)?;
        }
        Ok(true)
    }

    /// Gives all memory back to the neighbours it came from.
    fn finish(&mut self) -> std::result::Result<(), Stop> {
        for (neighbour, memory) in self.port.released()? {
            // A neighbour that has stopped needs no memory.
            let _ = self.back[neighbour].send(memory);
        }
        Ok(())
    }
}

impl End {
    /// One fused pass over the rows of a part.
    fn pass(
        &mut self,
        part: &PartRows,
        c: Update,
        operands: PassOperands,
    ) -> std::result::Result<PassProducts, Stop> {
        match self {
            End::Host(worker) => {
                let sent = worker.begin(operands.0, false)?;
                worker.end(part, c, operands, sent)
            }
            End::Link(link) => Ok(over_link(&mut **link, (&part.device, part.own.as_deref()), c, operands)?),
        }
    }

    fn finish(&mut self) -> std::result::Result<(), Stop> {
        match self {
            End::Host(worker) => worker.finish(),
            End::Link(_) => Ok(()),
        }
    }

    /// Stops before the last pass: no neighbour may wait for this part.
    fn give_up(&mut self) {
        if let End::Link(link) = self {
            link.give_up();
        }
    }
}

/// Vectors of one part, as a recurrence or a single pass lends them.
enum LentVectors<'a> {
    Steps(&'a mut BlockVector, &'a mut BlockVector),
    Once(Option<&'a BlockVector>, Option<&'a mut BlockVector>, AddedVectors<'a>),
}

/// Multiples of vectors that a pass adds, as one part has them.
type AddedVectors<'a> = Vec<(f64, &'a BlockVector)>;

/// Held while passes over links are queued. A kernel that waits for rows holds its GPU: those of two threads, in
/// another order on each GPU, would wait for each other for ever.
pub(super) static LINKED: Mutex<()> = Mutex::new(());

/// `steps` passes over all rows, with or without their products.
#[derive(Clone, Copy)]
struct SplitPasses {
    c: Update,
    shape: VectorShape,
    steps: usize,
    dots: bool,
}

/// One part's end of the exchanges after its last pass, and the products of its rows, an entry a step.
type PartEnd = std::result::Result<(End, Vec<Dots>), Stop>;

impl SplitPasses {
    fn summed(self, products: Vec<PassProducts>) -> std::result::Result<Vec<Dots>, Stop> {
        let sums = products.into_iter().map(|pair| summed(pair, self.shape.columns));
        Ok(sums.collect::<Result<_>>()?)
    }
}

impl LentVectors<'_> {
    /// What the next pass takes.
    fn operands(&mut self, dots: bool) -> PassOperands<'_> {
        let besides = if dots { PassExtras::Dots } else { PassExtras::Nothing };
        match self {
            LentVectors::Steps(v, w) => (Some(v), Some(w), besides),
            LentVectors::Once(v, w, plus) => {
                let besides = if plus.is_empty() { besides } else { PassExtras::Plus(plus) };
                (*v, w.as_deref_mut(), besides)
            }
        }
    }

    fn turn(&mut self) {
        if let LentVectors::Steps(v, w) = self {
            std::mem::swap(v, w);
        }
    }
}

impl SplitMatrix {
    /// The ends of all exchanges for vectors of a shape.
    fn ends(&self, shape: VectorShape) -> Result<Vec<End>> {
        if let Some(ends) = self.kept.take(shape) {
            return Ok(ends);
        }
        match self.links(shape)? {
            Some(links) => Ok(links.into_iter().map(End::Link).collect()),
            None if self.parts.iter().any(|part| part.faces.is_some()) => {
                Err(Error::internal("half-spinors that no link takes"))
            }
            None => Ok(self.workers(shape)?.into_iter().map(End::Host).collect()),
        }
    }

    /// Links of all parts, if they have such and reach each other.
    pub fn links(&self, shape: VectorShape) -> Result<Option<Vec<Box<dyn Link>>>> {
        let mut links = Vec::new();
        for part in &self.parts {
            let Some(link) = part.link(part.shape(shape))? else { return Ok(None) };
            links.push(link);
        }
        let offers: Vec<Vec<Vec<u8>>> = links.iter().map(|link| link.offers()).collect();
        for (at, (part, link)) in self.parts.iter().zip(&mut links).enumerate() {
            // A part that is behind both faces makes two offers, in the order in which they are taken.
            let of = |(n, other): (usize, &usize)| {
                let before = part.to[..n].iter().filter(|to| *to == other).count();
                let mut places = (0..offers[*other].len()).filter(|k| self.parts[*other].from[*k] == at);
                places.nth(before).map_or_else(Vec::new, |place| offers[*other][place].clone())
            };
            if !link.accept(&part.to.iter().enumerate().map(of).collect::<Vec<_>>())? {
                return Ok(None);
            }
        }
        Ok(Some(links))
    }

    /// The ends of exchanges through the host.
    fn workers(&self, shape: VectorShape) -> Result<Vec<Worker>> {
        let mut workers = Vec::new();
        for part in &self.parts {
            let port = through_host(&part.device)?.port(&part.halo, part.shape(shape))?;
            let (to, free, from, back) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            workers.push(Worker { port, to, free, from, back });
        }
        let mut incoming: Vec<Vec<_>> = self.parts.iter().map(|_| Vec::new()).collect();
        for (at, part) in self.parts.iter().enumerate() {
            for (&other, rows) in part.to.iter().zip(&part.halo.sends) {
                let ((to, from), (back, free)) = (channel(), channel());
                for _ in 0..ROUND {
                    let memory = between(&part.device, &self.parts[other].device, shape.bytes(rows.len()))?;
                    // Nobody has closed the channel yet.
                    let _ = back.send(memory);
                }
                workers[at].to.push(to);
                workers[at].free.push(free);
                let place = self.parts[other].from.iter().position(|from| *from == at);
                incoming[other].push((place, from, back));
            }
        }
        for (worker, mut incoming) in workers.iter_mut().zip(incoming) {
            incoming.sort_by_key(|(place, ..)| *place);
            for (_, from, back) in incoming {
                worker.from.push(from);
                worker.back.push(back);
            }
        }
        Ok(workers)
    }

    /// The products of each step, summed over parts, if they are asked for.
    fn run(&self, work: SplitPasses, vectors: Vec<LentVectors>) -> Result<Vec<Dots>> {
        let ends = self.ends(work.shape)?;
        let linked = ends.iter().any(|end| matches!(end, End::Link(_)));
        let _turn = linked.then(|| (LINKED.lock().unwrap_or_else(PoisonError::into_inner), queueing_turn()));
        let read = self.info.bytes + work.shape.bytes(self.shape.rows.local.max(self.shape.cols));
        let ended = if read <= WORTH_A_THREAD && !linked {
            self.in_turn(work, ends, vectors)
        } else if linked && work.steps == 1 {
            self.queued(work, ends, vectors)
        } else {
            self.at_once(work, ends, vectors)
        };
        let (mut ends, mut sums, mut failed) = (Vec::new(), Vec::<Dots>::new(), None);
        for end in ended {
            match end {
                Ok((end, found)) => {
                    ends.push(end);
                    if sums.is_empty() {
                        sums = found;
                        continue;
                    }
                    for (sum, more) in sums.iter_mut().zip(found) {
                        sum.vv.iter_mut().zip(more.vv).for_each(|(s, m)| *s += m);
                        sum.wv.iter_mut().zip(more.wv).for_each(|(s, m)| *s += m);
                    }
                }
                Err(Stop::Failed(e)) => failed = failed.or(Some(e)),
                Err(Stop::Neighbour) => {}
            }
        }
        if let Some(e) = failed {
            return Err(e);
        }
        if ends.len() < self.parts.len() {
            return Err(Error::internal("a part of a split matrix stopped without a reason"));
        }
        self.kept.put(work.shape, ends);
        Ok(sums)
    }

    /// One pass over links, queued for one part after the other: they work at once, and threads begin late.
    fn queued(&self, work: SplitPasses, mut ends: Vec<End>, mut vectors: Vec<LentVectors>) -> Vec<PartEnd> {
        let mut products = Vec::with_capacity(ends.len());
        for (at, (part, lent)) in self.parts.iter().zip(&mut vectors).enumerate() {
            match ends[at].pass(part, work.c, lent.operands(work.dots)) {
                Ok(found) => products.push(found),
                Err(stop) => {
                    // Those before wait for the rows of all others.
                    ends[at..].iter_mut().for_each(End::give_up);
                    return vec![Err(stop)];
                }
            }
        }
        let ended = |(end, found): (End, PassProducts)| work.summed(vec![found]).map(|sums| (end, sums));
        ends.into_iter().zip(products).map(ended).collect()
    }

    /// A thread for each part.
    fn at_once(&self, work: SplitPasses, ends: Vec<End>, vectors: Vec<LentVectors>) -> Vec<PartEnd> {
        let passes = |part: &PartRows, end: &mut End, mut lent: LentVectors| {
            if let (End::Link(link), Some(own), LentVectors::Steps(v, w)) = (&mut *end, &part.own, &mut lent)
                && let Some(found) =
                    own.recurrence_linked(&mut **link, (work.c.alpha, work.c.beta), v, w, work.steps)
            {
                return Ok(found?);
            }
            let mut products = Vec::new();
            for _ in 0..work.steps {
                products.push(end.pass(part, work.c, lent.operands(work.dots))?);
                lent.turn();
            }
            end.finish()?;
            work.summed(products)
        };
        let job = |part: &PartRows, mut end: End, lent: LentVectors| match passes(part, &mut end, lent) {
            Ok(found) => Ok((end, found)),
            Err(stop) => {
                end.give_up();
                Err(stop)
            }
        };
        let parts = self.parts.iter().zip(ends).zip(vectors);
        std::thread::scope(|scope| {
            let job = &job;
            let jobs: Vec<_> =
                parts.map(|((part, end), lent)| scope.spawn(move || job(part, end, lent))).collect();
            let join = |job: std::thread::ScopedJoinHandle<'_, _>| {
                job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            jobs.into_iter().map(join).collect()
        })
    }

    /// One part after the other, all on this thread: what is small takes less time than threads take to begin.
    fn in_turn(&self, work: SplitPasses, mut ends: Vec<End>, mut vectors: Vec<LentVectors>) -> Vec<PartEnd> {
        let mut passes = || {
            let mut products: Vec<Vec<PassProducts>> = self.parts.iter().map(|_| Vec::new()).collect();
            for _ in 0..work.steps {
                for (end, lent) in ends.iter_mut().zip(&mut vectors) {
                    if let End::Host(worker) = end {
                        worker.begin(lent.operands(work.dots).0, true)?;
                    }
                }
                for (((part, end), lent), products) in
                    self.parts.iter().zip(&mut ends).zip(&mut vectors).zip(&mut products)
                {
                    if let End::Host(worker) = end {
                        products.push(worker.end(part, work.c, lent.operands(work.dots), true)?);
                    }
                    lent.turn();
                }
            }
            ends.iter_mut().try_for_each(End::finish)?;
            products
                .into_iter()
                .map(|products| work.summed(products))
                .collect::<std::result::Result<Vec<_>, _>>()
        };
        match passes() {
            Ok(found) => ends.into_iter().zip(found).map(Ok).collect(),
            Err(stop) => vec![Err(stop)],
        }
    }
}

impl SplitMatrix {
    /// Refuses vectors that were cut otherwise than the matrix.
    fn fits(&self, v: &BlockVector, w: &BlockVector) -> Result<()> {
        if *cut_of(v)? == self.col_cut && *cut_of(w)? == self.row_cut {
            return Ok(());
        }
        Err(cut_differently())
    }

    /// One pass, with products or with multiples of vectors that are added.
    fn once(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: bool,
        plus: &[(f64, &BlockVector)],
    ) -> Result<Option<Dots>> {
        check_update(self, v, w, dots)?;
        self.fits(v, w)?;
        for (_, x) in plus {
            conformal("sum of vectors", x, w)?;
            if *cut_of(x)? != self.row_cut {
                return Err(cut_differently());
            }
        }
        let shape = VectorShape { dtype: v.dtype, columns: v.columns, grid: None };
        let (v, mut w) = (pieces(v)?, pieces_mut(w)?);
        let mut vectors = Vec::new();
        // Both lists and that of the parts are in the order of the parts' numbers.
        for part in &self.parts {
            let own = v.iter().find(|p| p.part == part.index).map(|p| &p.block);
            // A part may have columns and no rows.
            let has_rows = w.first().is_some_and(|piece| piece.part == part.index);
            let mut out = None;
            if has_rows && let Some((first, rest)) = std::mem::take(&mut w).split_first_mut() {
                (out, w) = (Some(&mut first.block), rest);
            }
            part.fits(own, out.as_deref())?;
            let mut added = Vec::new();
            for (factor, x) in plus.iter().filter(|_| out.is_some()) {
                let piece = pieces(x)?.iter().find(|piece| piece.part == part.index);
                added.push((*factor, piece.map(|piece| &piece.block).ok_or_else(cut_differently)?));
            }
            vectors.push(LentVectors::Once(own, out, added));
        }
        Ok(self.run(SplitPasses { c, shape, steps: 1, dots }, vectors)?.into_iter().next())
    }
}

impl Kernel for SplitMatrix {
    fn shape(&self) -> KernelShape {
        self.shape
    }

    fn info(&self) -> KernelInfo {
        self.info.clone()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        let found = self.once(c, v, w, dots.is_some(), &[])?;
        if let (Some(dots), Some(found)) = (dots, found) {
            *dots = found;
        }
        Ok(())
    }

    fn update_plus(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Option<Result<()>> {
        Some(self.once(c, v, w, false, plus).map(drop))
    }

    fn recurrence(
        &self,
        alpha: f64,
        beta: f64,
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
        out: &mut Vec<Dots>,
    ) -> Result<()> {
        check_update(self, v, w, true)?;
        self.fits(v, w)?;
        let shape = VectorShape { dtype: v.dtype, columns: v.columns, grid: None };
        let mut vectors = Vec::new();
        let lists = pieces_mut(v)?.iter_mut().zip(pieces_mut(w)?);
        for (part, (v, w)) in self.parts.iter().zip(lists) {
            if (v.part, w.part) != (part.index, part.index) {
                return Err(cut_differently());
            }
            part.fits(Some(&v.block), Some(&w.block))?;
            vectors.push(LentVectors::Steps(&mut v.block, &mut w.block));
        }
        if vectors.len() < self.parts.len() {
            return Err(cut_differently());
        }
        let c = Update { alpha, beta, gamma: -1.0 };
        out.extend(self.run(SplitPasses { c, shape, steps, dots: true }, vectors)?);
        if steps % 2 == 1 {
            std::mem::swap(v, w);
        }
        Ok(())
    }

    fn overwrites(&self) -> bool {
        self.parts.iter().all(|part| part.own.as_ref().is_none_or(|own| own.overwrites()))
    }
}

impl PartRows {
    /// A pass with the part's own columns.
    fn inside(
        &self,
        c: Update,
        v: Option<&BlockVector>,
        w: Option<&mut BlockVector>,
        besides: PassExtras,
    ) -> Result<Option<PendingProducts>> {
        w.map_or(Ok(None), |w| inside(&self.device, self.own.as_deref(), c, v, w, besides))
    }

    fn link(&self, shape: VectorShape) -> Result<Option<Box<dyn Link>>> {
        match (&self.faces, &self.own) {
            (Some(faces), Some(own)) => own.link_faces(faces, shape),
            _ => match self.device.peer_exchange() {
                Some(peer) => peer.link(&self.halo, &self.outside, shape),
                None => Ok(None),
            },
        }
    }

    /// What an exchange of its vectors is prepared for.
    fn shape(&self, shape: VectorShape) -> VectorShape {
        VectorShape { grid: self.own.as_ref().and_then(|own| own.rows().grid), ..shape }
    }

    /// Refuses pieces of vectors that were cut otherwise than the matrix.
    fn fits(&self, v: Option<&BlockVector>, w: Option<&BlockVector>) -> Result<()> {
        let Some(own) = &self.own else { return Ok(()) };
        match (v, w) {
            (Some(v), Some(w)) if v.rows.local == own.cols() && w.rows.local == own.rows().local => Ok(()),
            _ => Err(cut_differently()),
        }
    }
}

/// Shares the rows of a matrix out.
pub(super) fn prepare(
    split: &SplitBackend,
    spec: &MatrixSpec,
    rows: Rows,
    row_cut: Arc<RowCut>,
    col_cut: Arc<RowCut>,
) -> Result<Arc<dyn Kernel>> {
    let (_, cols) = share::shape(spec).ok_or_else(|| Error::internal("rows that are not shared out"))?;
    let (dtype, devices) = (share::dtype(spec), &split.parts);
    let (has_rows, has_cols) = (row_cut.holders(), col_cut.holders());
    let involved: Vec<usize> =
        (0..devices.len()).filter(|i| has_rows.contains(i) || has_cols.contains(i)).collect();
    let place = |index: usize| involved.iter().position(|&i| i == index);
    let (mut parts, mut read) = (Vec::new(), Vec::new());
    let (mut formats, mut bytes, mut entries) = (Vec::<String>::new(), 0, 0);
    for &index in &involved {
        let device = devices[index].clone();
        let (own_rows, own_cols) = (row_cut.of(index), col_cut.of(index));
        let share = match spec {
            MatrixSpec::Wilson(_) | MatrixSpec::SiteDiagonal { .. } => share::on_sites(spec, &own_rows)?
                .map(|(_, share)| share)
                .ok_or_else(|| Error::internal("sites that are not shared out in boxes"))?,
            _ => share::share(spec, &own_rows, &own_cols)?,
        };
        let empty = own_rows.local() == 0 || own_cols.local() == 0;
        let own = if empty { None } else { Some(device.prepare(share.own)?) };
        let (matrix, boundary, columns) = boundary(&share.outside, dtype);
        let outside = Arc::new(matrix);
        let beyond =
            if boundary.is_empty() { None } else { Some(device.prepare(MatrixSpec::Csr(outside.clone()))?) };
        for kernel in own.iter().chain(&beyond) {
            let info = kernel.info();
            (bytes, entries) = (bytes + info.bytes, entries + info.entries);
        }
        if let Some(own) = &own {
            let format = own.info().format;
            if !formats.contains(&format) {
                formats.push(format);
            }
        }
        let halo = Halo { boundary, ..Halo::default() };
        let (faces, to, from) = (None, Vec::new(), Vec::new());
        parts.push(PartRows { index, device, own, outside, beyond, halo, faces, to, from });
        read.push(columns);
    }
    for (at, columns) in read.iter().enumerate() {
        for of_holder in columns.chunk_by(|a, b| a.0 == b.0) {
            let other = place(of_holder[0].0).ok_or_else(|| Error::internal("a row that nobody holds"))?;
            parts[at].from.push(other);
            parts[at].halo.receives.push(of_holder.len());
            parts[other].to.push(at);
            parts[other].halo.sends.push(of_holder.iter().map(|(_, row)| *row).collect());
        }
    }
    for part in &mut parts {
        part.halo.balance(&mut part.to, &mut part.from);
    }
    let entries = spec.entries()?.unwrap_or(entries);
    let info = KernelInfo { format: formats.join(" and "), bytes, entries };
    let shape = KernelShape { rows, cols, dtype };
    Ok(Arc::new(SplitMatrix { parts, shape, row_cut, col_cut, info, kept: KeptForPasses::default() }))
}
