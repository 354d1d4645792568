//! Rows of a rank's neighbours as a matrix reads them: a rank computes with its own columns while the rows of others
//! are sent, then adds their contribution to its boundary rows. Boxes of the Wilson operator may exchange half-spinors
//! through their faces instead.

use std::sync::Arc;

use super::Team;
use super::passes::{LONG, RankPasses, TAG, meanwhile};
use crate::backend::cut::RowCut;
use crate::backend::cut::share::{RemoteColumn, RowShare, box_of};
use crate::backend::exchange::{
    self, ExchangePort, Halo, KeptForPasses, Link, PassExtras, PassProducts, PlainMemory, Staging,
    VectorShape, boundary, through_host,
};
use crate::backend::matrix::Csr;
use crate::backend::matrix::wilson::{Face, WilsonSpec};
use crate::backend::{BlockVector, Device, Dots, Kernel, KernelInfo, MatrixSpec, Update};
use crate::error::{Error, Result};
use crate::number::DType;

/// This rank's rows of a matrix.
pub(super) struct ByRows {
    team: Team,
    device: Device,
    /// This rank's rows in its own columns, where it has both.
    own: Option<Arc<dyn Kernel>>,
    /// Its boundary rows in the columns of others, also as a matrix that is prepared.
    outside: Arc<Csr>,
    beyond: Option<Arc<dyn Kernel>>,
    halo: Halo,
    /// Instead of these rows the faces of a box, where half-spinors pass them by a link.
    faces: Option<Vec<Face>>,
    /// The ranks that things are sent to and come from.
    to: Vec<usize>,
    from: Vec<usize>,
    kept: KeptForPasses<RowExchange>,
}

/// This rank's end of the exchanges: GPUs of one machine write to each other's memory; else rows are messages.
enum RowExchange {
    Link(Box<dyn Link>),
    Host(HostEnds),
}

/// A rank's end of exchanges by messages.
pub(super) struct HostEnds {
    pub port: Box<dyn ExchangePort>,
    /// Memory of the rows that each neighbour reads, and of those of each that are read here.
    pub out: Vec<Staging>,
    pub into: Vec<Staging>,
}

impl HostEnds {
    pub fn new(device: &Device, halo: &Halo, shape: VectorShape) -> Result<HostEnds> {
        let device = through_host(device)?;
        let memory = |rows: usize| -> Result<Staging> {
            let bytes = shape.bytes(rows);
            Ok(device.staging(bytes)?.unwrap_or_else(|| Box::new(PlainMemory::new(bytes))))
        };
        let out = halo.sends.iter().map(|rows| memory(rows.len())).collect::<Result<_>>()?;
        let into = halo.receives.iter().map(|rows| memory(*rows)).collect::<Result<_>>()?;
        Ok(HostEnds { port: device.port(halo, shape)?, out, into })
    }

    /// The rows that neighbours read.
    pub fn collected(&mut self, v: &BlockVector) -> Result<Vec<Staging>> {
        self.port.collect(v, std::mem::take(&mut self.out))?;
        self.port.collected(true)?.ok_or_else(|| Error::internal("rows that are not collected"))
    }

    /// Takes back the memory of the rows that were read, of all neighbours in their order.
    pub fn released(&mut self, neighbours: usize) -> Result<()> {
        let mut back = self.port.released()?;
        back.sort_by_key(|(neighbour, _)| *neighbour);
        self.into.extend(back.into_iter().map(|(_, memory)| memory));
        if self.into.len() < neighbours {
            return Err(Error::internal("memory of an exchange is missing"));
        }
        Ok(())
    }
}

impl ByRows {
    fn ends(&self, shape: VectorShape) -> Result<RowExchange> {
        if let Some(ends) = self.kept.take(shape) {
            return Ok(ends);
        }
        if let Some(link) = self.link(shape)? {
            return Ok(RowExchange::Link(link));
        }
        if self.faces.is_some() && self.own.is_some() {
            return Err(Error::internal("half-spinors that no link takes"));
        }
        HostEnds::new(&self.device, &self.halo, shape).map(RowExchange::Host)
    }

    /// A link to all neighbours, if all ranks have one: they decide together.
    fn link(&self, shape: VectorShape) -> Result<Option<Box<dyn Link>>> {
        let world = self.team.world;
        let together =
            |mine: bool| Ok::<_, Error>(world.gather_words(vec![mine.into()])?.iter().all(|w| *w > 0));
        let link = match (&self.faces, &self.own) {
            (Some(faces), Some(own)) if !faces.is_empty() => own.link_faces(faces, shape)?,
            (Some(_), _) => None,
            _ => match self.device.peer_exchange() {
                Some(peer) => peer.link(&self.halo, &self.outside, shape)?,
                None => None,
            },
        };
        // A rank that exchanges nothing keeps none of the others from it.
        let idle = self.own.is_none() && self.to.is_empty() && self.from.is_empty();
        if !together(idle || link.is_some())? {
            return Ok(None);
        }
        let Some(mut link) = link.filter(|_| !idle) else {
            together(true)?;
            return Ok(None);
        };
        let offers = link.offers();
        let bytes = offers.first().map_or(0, Vec::len);
        let memory = || Box::new(PlainMemory::new(bytes));
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

    fn pass_with(
        &self,
        ends: &mut RowExchange,
        c: Update,
        shape: VectorShape,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: PassExtras,
    ) -> Result<PassProducts> {
        match ends {
            RowExchange::Host(ends) => self.pass_by_messages(ends, c, shape, v, w, besides),
            RowExchange::Link(link) => {
                let own = (&self.device, self.own.as_deref());
                exchange::over_link(&mut **link, own, c, (Some(v), Some(w), besides))
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
        besides: PassExtras,
    ) -> Result<PassProducts> {
        let world = self.team.world;
        let mut under_way = Vec::new();
        for ((memory, &from), &rows) in
            std::mem::take(&mut ends.into).into_iter().zip(&self.from).zip(&self.halo.receives)
        {
            under_way.push(world.receive(memory, shape.bytes(rows), from, TAG)?);
        }
        let incoming = under_way.len();
        if !self.to.is_empty() {
            for ((rows, &to), list) in ends.collected(v)?.into_iter().zip(&self.to).zip(&self.halo.sends) {
                under_way.push(world.send(rows, shape.bytes(list.len()), to, TAG)?);
            }
        }
        let mut inside = || exchange::inside(&self.device, self.own.as_deref(), c, Some(v), &mut *w, besides);
        let longest = self.halo.sends.iter().map(Vec::len).chain(self.halo.receives.iter().copied()).max();
        let first = if self.own.is_some() && longest.is_some_and(|rows| shape.bytes(rows) > LONG) {
            meanwhile(world, &mut under_way, inside)?
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
        ends.released(incoming)?;
        Ok((first, second))
    }
}

impl RankPasses for ByRows {
    fn pass(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: PassExtras,
    ) -> Result<PassProducts> {
        let shape = VectorShape::of(v);
        let mut ends = self.ends(shape)?;
        let products = self.pass_with(&mut ends, c, shape, v, w, besides)?;
        self.kept.put(shape, ends);
        Ok(products)
    }

    fn steps(
        &self,
        (alpha, beta): (f64, f64),
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
    ) -> Result<Option<Vec<Dots>>> {
        let shape = VectorShape::of(v);
        let mut ends = self.ends(shape)?;
        let found = match (&mut ends, &self.own) {
            (RowExchange::Link(link), Some(own)) => {
                own.recurrence_linked(&mut **link, (alpha, beta), v, w, steps).transpose()?
            }
            _ => None,
        };
        self.kept.put(shape, ends);
        Ok(found)
    }

    fn overwrites(&self) -> bool {
        self.own.as_ref().is_none_or(|own| own.overwrites())
    }
}

/// Tells other ranks which of their rows this one reads, and hears which of its own they read: for each of them the
/// ranks, and the rows' numbers where they are held.
#[allow(clippy::type_complexity)]
fn agree(
    team: Team,
    places: &[RemoteColumn],
) -> Result<(Vec<usize>, Vec<usize>, Vec<usize>, Vec<Vec<usize>>)> {
    let world = team.world;
    let wanted: Vec<&[RemoteColumn]> = places.chunk_by(|a, b| a.0 == b.0).collect();
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

/// This rank's rows, with what is told of its kernels and the name of its format.
pub(super) fn prepare(
    team: Team,
    device: &Device,
    dtype: DType,
    share: RowShare,
    empty: bool,
) -> Result<(ByRows, Vec<KernelInfo>)> {
    let (matrix, boundary, places) = boundary(&share.outside, dtype);
    let outside = Arc::new(matrix);
    let kernels = || -> Result<_> {
        let own = if empty { None } else { Some(device.prepare(share.own)?) };
        let entries = || MatrixSpec::Csr(outside.clone());
        let beyond = if boundary.is_empty() { None } else { Some(device.prepare(entries())?) };
        Ok((own, beyond))
    };
    // A rank that has no room for them does not leave the others alone.
    let (own, beyond) = crate::ranks::agreed(kernels())?;
    let (mut from, receives, mut to, sends) = agree(team, &places)?;
    let mut halo = Halo { sends, receives, boundary };
    halo.balance(&mut to, &mut from);
    let infos = own.iter().chain(&beyond).map(|kernel| kernel.info()).collect();
    let (device, faces, kept) = (device.clone(), None, KeptForPasses::default());
    Ok((ByRows { team, device, own, outside, beyond, halo, faces, to, from, kept }, infos))
}

/// The Wilson operator on this rank's box, where half-spinors pass its faces by a link. None where a rank has no such
/// way: all decide together.
pub(super) fn prepare_faces(
    team: Team,
    device: &Device,
    spec: &WilsonSpec,
    cut: &RowCut,
) -> Result<Option<(ByRows, Vec<KernelInfo>)>> {
    let Some((part, from)) = box_of(spec, cut)? else { return Ok(None) };
    let peer = device.peer_exchange().filter(|_| cut.local() > 0);
    let own = peer.map(|peer| peer.prepare_linked(&part)).transpose()?;
    let infos = own.iter().map(|kernel| kernel.info()).collect();
    let grid = own.as_ref().map_or(cut.held(&spec.rows()).grid, |own| own.rows().grid);
    let shape = VectorShape { dtype: DType::of(spec.single, true), columns: 1, grid };
    let rows = ByRows {
        team,
        device: device.clone(),
        own,
        outside: Arc::new(Csr::empty(shape.dtype)),
        beyond: None,
        halo: Halo::default(),
        faces: Some(part.faces()),
        to: (0..from.len()).map(|at| from[at ^ 1]).collect(),
        from,
        kept: KeptForPasses::default(),
    };
    let link = rows.link(shape)?;
    let linked = team.world.gather_words(vec![(link.is_some() || cut.local() == 0).into()])?;
    if linked.contains(&0) {
        return Ok(None);
    }
    // A rank without sites has an end, too: it does not look for a link where the others have theirs.
    let end = match link {
        Some(link) => RowExchange::Link(link),
        None => RowExchange::Host(HostEnds::new(device, &rows.halo, shape)?),
    };
    rows.kept.put(shape, end);
    Ok(Some((rows, infos)))
}
