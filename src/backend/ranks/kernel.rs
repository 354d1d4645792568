//! A matrix of whose rows every rank has some. A rank computes with its own columns while the rows of others travel, then adds
//! what they contribute to its boundary rows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::cut::Cut;
use super::share::{self, Share};
use super::{Own, Team, local, other_cut, own, own_mut};
use crate::backend::exchange::{
    self, Besides, Halo, Link, Plain, Port, Products, Staging, VectorShape, boundary,
};
use crate::backend::matrix::Csr;
use crate::backend::{BlockVector, Device, Dots, Kernel, KernelInfo, MatrixSpec, Rows, Update, check_update};
use crate::error::{Error, Result};
use crate::number::DType;
use crate::ranks::Travelling;

/// Bytes a message from which the library is called while the rank computes: shorter ones travel by themselves.
const LONG: usize = 1 << 16;

/// Time between two calls.
const NAP: Duration = Duration::from_micros(50);

/// Messages of exchanges; those of one pass overtake none of another.
const TAG: i32 = 1;

/// A matrix of which this rank has some rows.
struct Matrix {
    team: Team,
    device: Device,
    rows: Rows,
    cols: usize,
    dtype: DType,
    info: KernelInfo,
    row_cut: Arc<Cut>,
    col_cut: Arc<Cut>,
    /// This rank's rows in its own columns, where it has both.
    own: Option<Arc<dyn Kernel>>,
    /// Its boundary rows in the columns of others, also as a matrix that is prepared.
    outside: Arc<Csr>,
    beyond: Option<Arc<dyn Kernel>>,
    halo: Halo,
    /// The ranks that `halo.sends` and `halo.receives` are for.
    to: Vec<usize>,
    from: Vec<usize>,
    /// What a pass needs besides vectors, for those of one shape; kept from one pass to the next.
    kept: Mutex<Option<(VectorShape, Ends)>>,
}

/// This rank's end of the exchanges: GPUs of one machine write to each other's memory; else rows are messages.
enum Ends {
    Link(Box<dyn Link>),
    Host(HostEnds),
}

/// A rank's end of exchanges by messages.
struct HostEnds {
    port: Box<dyn Port>,
    out: Vec<Staging>,
    into: Vec<Staging>,
}

impl Matrix {
    fn ends(&self, shape: VectorShape) -> Result<Ends> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((_, ends)) = kept.filter(|(of, _)| *of == shape) {
            return Ok(ends);
        }
        if let Some(link) = self.link(shape)? {
            return Ok(Ends::Link(link));
        }
        let memory = |rows: usize| -> Result<Staging> {
            let bytes = shape.bytes(rows);
            Ok(self.device.staging(bytes)?.unwrap_or_else(|| Box::new(Plain::new(bytes))))
        };
        let into = self.halo.receives.iter().map(|rows| memory(*rows)).collect::<Result<_>>()?;
        let out = self.halo.sends.iter().map(|rows| memory(rows.len())).collect::<Result<_>>()?;
        Ok(Ends::Host(HostEnds { port: self.device.port(&self.halo, shape)?, out, into }))
    }

    /// A link to all neighbours, if all ranks have one: they decide together.
    fn link(&self, shape: VectorShape) -> Result<Option<Box<dyn Link>>> {
        let world = self.team.world;
        let together =
            |mine: bool| Ok::<_, Error>(world.gather_words(vec![mine.into()])?.iter().all(|w| *w > 0));
        let link = self.device.link(&self.halo, &self.outside, shape)?;
        if !together(link.is_some())? {
            return Ok(None);
        }
        let Some(mut link) = link else { return Ok(None) };
        let offers = link.offers();
        let bytes = offers.first().map_or(0, Vec::len);
        let memory = || Box::new(Plain::new(bytes));
        let coming = self.to.iter().map(|&to| world.receive(memory(), bytes, to, TAG));
        let coming = coming.collect::<Result<Vec<_>>>()?;
        let mut going = Vec::new();
        for (offer, &from) in offers.iter().zip(&self.from) {
            let mut message: Staging = memory();
            message.bytes_mut().copy_from_slice(offer);
            going.push(world.send(message, bytes, from, TAG)?);
        }
        let taken = coming.into_iter().map(|message| Ok(world.arrive(message)?.bytes().to_vec()));
        let taken = taken.collect::<Result<Vec<Vec<u8>>>>()?;
        for message in going {
            world.arrive(message)?;
        }
        let accepted = link.accept(&taken)?;
        Ok(together(accepted)?.then_some(link))
    }

    /// One fused pass over this rank's rows; its products, if they are asked for.
    fn pass(
        &self,
        ends: &mut Ends,
        c: Update,
        shape: VectorShape,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: Besides,
    ) -> Result<Products> {
        match ends {
            Ends::Host(ends) => self.pass_by_messages(ends, c, shape, v, w, besides),
            Ends::Link(link) => {
                link.send(Some(v))?;
                let own = self.own.as_deref();
                let first = exchange::inside(&self.device, own, c, Some(v), w, besides)?;
                Ok((first, link.add(c.alpha, Some(w), besides.dots().then_some(v))?))
            }
        }
    }

    /// The same where rows are messages.
    fn pass_by_messages(
        &self,
        ends: &mut HostEnds,
        c: Update,
        shape: VectorShape,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: Besides,
    ) -> Result<Products> {
        let world = self.team.world;
        let mut under_way = Vec::new();
        for ((memory, &from), &rows) in
            std::mem::take(&mut ends.into).into_iter().zip(&self.from).zip(&self.halo.receives)
        {
            under_way.push(world.receive(memory, shape.bytes(rows), from, TAG)?);
        }
        let incoming = under_way.len();
        if !self.to.is_empty() {
            ends.port.collect(v, std::mem::take(&mut ends.out))?;
            let full =
                ends.port.collected(true)?.ok_or_else(|| Error::internal("rows that are not collected"))?;
            for ((rows, &to), list) in full.into_iter().zip(&self.to).zip(&self.halo.sends) {
                under_way.push(world.send(rows, shape.bytes(list.len()), to, TAG)?);
            }
        }
        let mut inside = || exchange::inside(&self.device, self.own.as_deref(), c, Some(v), &mut *w, besides);
        let longest = self.halo.sends.iter().map(Vec::len).chain(self.halo.receives.iter().copied()).max();
        let first = if self.own.is_some() && longest.is_some_and(|rows| shape.bytes(rows) > LONG) {
            self.meanwhile(&mut under_way, inside)?
        } else {
            inside()?
        };
        let outgoing = under_way.split_off(incoming);
        for (neighbour, message) in under_way.into_iter().enumerate() {
            ends.port.deliver(neighbour, world.arrive(message)?)?;
        }
        let mut second = None;
        if let Some(beyond) = &self.beyond {
            second = ends.port.add(c.alpha, &**beyond, w, besides.dots().then_some(v))?;
        }
        for message in outgoing {
            ends.out.push(world.arrive(message)?);
        }
        let mut back = ends.port.released()?;
        back.sort_by_key(|(neighbour, _)| *neighbour);
        ends.into.extend(back.into_iter().map(|(_, memory)| memory));
        if ends.into.len() < incoming {
            return Err(Error::internal("memory of an exchange is missing"));
        }
        Ok((first, second))
    }

    /// Computes while another thread lets the library work on the messages.
    fn meanwhile<R>(&self, under_way: &mut [Travelling], compute: impl FnOnce() -> Result<R>) -> Result<R> {
        let over = AtomicBool::new(false);
        let world = self.team.world;
        std::thread::scope(|scope| {
            let over = &over;
            scope.spawn(move || {
                // What fails here fails again where it is waited for.
                while !over.load(Ordering::Acquire)
                    && under_way.iter_mut().any(|message| matches!(world.arrived(message), Ok(false)))
                {
                    std::thread::sleep(NAP);
                }
            });
            /// Ends the other thread, also after a panic.
            struct Over<'a>(&'a AtomicBool);
            impl Drop for Over<'_> {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::Release);
                }
            }
            let _over = Over(over);
            compute()
        })
    }

    /// Runs `steps` passes, vectors changing places after each but a single one; the products of this rank's rows.
    fn run(&self, c: Update, v: &mut BlockVector, w: &mut BlockVector, steps: usize) -> Result<Vec<Dots>> {
        let shape = VectorShape::of(v);
        let mut ends = self.ends(shape)?;
        if let (Ends::Link(link), Some(own)) = (&mut ends, &self.own)
            && let Some(found) = own.recurrence_linked(&mut **link, (c.alpha, c.beta), v, w, steps)
        {
            let found = found?;
            self.keep(shape, ends);
            return Ok(found.into_iter().map(|dots| Dots { partial: true, ..dots }).collect());
        }
        let mut products = Vec::with_capacity(steps);
        let (mut v, mut w) = (v, w);
        for _ in 0..steps {
            products.push(self.pass(&mut ends, c, shape, v, w, Besides::Dots)?);
            std::mem::swap(&mut v, &mut w);
        }
        self.keep(shape, ends);
        products.into_iter().map(|pair| known(pair, shape.columns)).collect()
    }

    fn keep(&self, shape: VectorShape, ends: Ends) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((shape, ends));
    }

    fn once(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: Besides,
    ) -> Result<Option<Dots>> {
        check_update(self, v, w, besides.dots())?;
        let (v, w) = (self.input(v)?, self.output(w)?);
        let shape = VectorShape::of(v);
        let mut ends = self.ends(shape)?;
        let pair = self.pass(&mut ends, c, shape, v, w, besides)?;
        self.keep(shape, ends);
        if besides.dots() { known(pair, shape.columns).map(Some) } else { Ok(None) }
    }

    /// This rank's rows of a vector that the matrix acts on.
    fn input<'a>(&self, v: &'a BlockVector) -> Result<&'a BlockVector> {
        match own(v) {
            Some(Own { cut, block }) if *cut == self.col_cut => Ok(block),
            _ => Err(other_cut()),
        }
    }

    fn output<'a>(&self, w: &'a mut BlockVector) -> Result<&'a mut BlockVector> {
        match own_mut(w) {
            Some(Own { cut, block }) if *cut == self.row_cut => Ok(block),
            _ => Err(other_cut()),
        }
    }
}

/// The products of a pass, of this rank's rows.
fn known(products: Products, columns: usize) -> Result<Dots> {
    Ok(Dots { partial: true, ..exchange::summed(products, columns)? })
}

impl Kernel for Matrix {
    fn rows(&self) -> Rows {
        self.rows
    }

    fn cols(&self) -> usize {
        self.cols
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn info(&self) -> KernelInfo {
        self.info.clone()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        let besides = if dots.is_some() { Besides::Dots } else { Besides::Nothing };
        let found = self.once(c, v, w, besides)?;
        if let (Some(dots), Some(found)) = (dots, found) {
            let mut found = [found];
            self.team.complete(&mut found)?;
            let [found] = found;
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
        let fits = |x: &BlockVector| own(x).is_some_and(|own| own.cut == self.row_cut);
        // Sums of vectors that lie elsewhere are formed one by one.
        plus.iter().all(|(_, x)| fits(x)).then(|| {
            let plus: Vec<(f64, &BlockVector)> = plus.iter().map(|(f, x)| (*f, local(x))).collect();
            self.once(c, v, w, Besides::Plus(&plus)).map(drop)
        })
    }

    fn update_partial(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<Dots> {
        self.once(c, v, w, Besides::Dots)?.ok_or_else(|| Error::internal("a pass without its products"))
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
        self.input(v)?;
        let (Some(of_v), Some(of_w)) = (own_mut(v), own_mut(w)) else { return Err(other_cut()) };
        if of_v.cut != of_w.cut {
            return Err(other_cut());
        }
        out.extend(self.run(Update { alpha, beta, gamma: -1.0 }, &mut of_v.block, &mut of_w.block, steps)?);
        if steps % 2 == 1 {
            std::mem::swap(v, w);
        }
        Ok(())
    }

    fn overwrites(&self) -> bool {
        self.own.as_ref().is_none_or(|own| own.overwrites())
    }
}

/// Tells other ranks which of their rows this one reads, and hears which of its own they read: for each of them the ranks, and
/// the rows' numbers where they are held.
#[allow(clippy::type_complexity)]
fn agree(
    team: Team,
    places: &[share::Place],
) -> Result<(Vec<usize>, Vec<usize>, Vec<usize>, Vec<Vec<usize>>)> {
    let world = team.world;
    let wanted: Vec<&[share::Place]> = places.chunk_by(|a, b| a.0 == b.0).collect();
    let mut counts = vec![0u64; world.size()];
    wanted.iter().for_each(|list| counts[list[0].0] = list.len() as u64);
    let all = world.gather_words(counts)?;
    let mut lists = Vec::new();
    for (reader, of_reader) in all.chunks_exact(world.size()).enumerate() {
        let rows = of_reader[world.rank()] as usize;
        if rows > 0 {
            lists.push((reader, rows, world.receive(Box::new(vec![0u64; rows]), 8 * rows, reader, TAG)?));
        }
    }
    let mut sent = Vec::new();
    for list in &wanted {
        let rows: Vec<u64> = list.iter().map(|place| place.1 as u64).collect();
        sent.push(world.send(Box::new(rows), 8 * list.len(), list[0].0, TAG)?);
    }
    let (mut to, mut sends) = (Vec::new(), Vec::new());
    for (reader, rows, message) in lists {
        let memory = world.arrive(message)?;
        let numbers = memory.bytes().chunks_exact(8).take(rows);
        sends.push(numbers.map(|b| u64::from_ne_bytes(b.try_into().unwrap_or_default()) as usize).collect());
        to.push(reader);
    }
    for message in sent {
        world.arrive(message)?;
    }
    let from = wanted.iter().map(|list| list[0].0).collect();
    let receives = wanted.iter().map(|list| list.len()).collect();
    Ok((from, receives, to, sends))
}

/// What is told of the matrix, the same on all ranks.
fn told(team: Team, own: &[KernelInfo], name: Option<String>) -> Result<KernelInfo> {
    let sum = |f: fn(&KernelInfo) -> usize| own.iter().map(f).sum::<usize>() as u64;
    let counts = team.world.gather_words(vec![sum(|i| i.bytes), sum(|i| i.entries)])?;
    let total = |which: usize| counts.iter().skip(which).step_by(2).sum::<u64>() as usize;
    let mut formats: Vec<String> = Vec::new();
    for name in team.world.gather(name.unwrap_or_default().into_bytes())? {
        let name = String::from_utf8_lossy(&name).into_owned();
        if !name.is_empty() && !formats.contains(&name) {
            formats.push(name);
        }
    }
    Ok(KernelInfo { format: formats.join(" and "), bytes: total(0), entries: total(1) })
}

/// This rank's part of a matrix.
pub(super) fn prepare(
    team: Team,
    device: &Device,
    dtype: DType,
    share: Share,
    rows: Rows,
    (row_cut, col_cut): (Arc<Cut>, Arc<Cut>),
) -> Result<Arc<dyn Kernel>> {
    let empty = row_cut.local() == 0 || col_cut.local() == 0;
    let own = if empty { None } else { Some(device.prepare(share.own)?) };
    let (matrix, boundary, places) = boundary(&share.outside, dtype);
    let outside = Arc::new(matrix);
    let beyond =
        if boundary.is_empty() { None } else { Some(device.prepare(MatrixSpec::Csr(outside.clone()))?) };
    let (mut from, receives, mut to, sends) = agree(team, &places)?;
    let mut halo = Halo { sends, receives, boundary };
    halo.balance(&mut to, &mut from);
    let infos: Vec<KernelInfo> = own.iter().chain(&beyond).map(|kernel| kernel.info()).collect();
    let info = told(team, &infos, own.as_ref().map(|own| own.info().format))?;
    Ok(Arc::new(Matrix {
        team,
        device: device.clone(),
        rows,
        cols: col_cut.rows,
        dtype,
        info,
        row_cut,
        col_cut,
        own,
        outside,
        beyond,
        halo,
        to,
        from,
        kept: Mutex::new(None),
    }))
}
