//! The records of a superblock shared out to the ranks: vectors live whole on every rank, each computes some blocks of a product,
//! the largest first and always for the rank that has least to do, and takes the others' blocks from them. A block is computed by
//! one rank, so that a product has the same bits however many there are.

use std::sync::{Arc, Mutex, PoisonError};

use super::Team;
use crate::backend::exchange::{Halo, Plain, Port, Staging, VectorShape};
use crate::backend::matrix::records::{Element, Handling, RecordList};
use crate::backend::matrix::{Csr, Indices, Values};
use crate::backend::{BlockVector, Device, Dots, Kernel, KernelInfo, MatrixSpec, Rows, Update, check_update};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// Multiplications of a product below which every rank makes all of it: the blocks would take as long on their way.
const FEW: u64 = 1 << 25;

/// A superblock of whose product every rank computes a part.
struct Shared {
    team: Team,
    device: Device,
    /// The blocks that this rank computes.
    own: Arc<dyn Kernel>,
    /// Its rows, and those of each other rank.
    halo: Halo,
    /// What comes from the others is added by this.
    identity: Arc<dyn Kernel>,
    rows: usize,
    info: KernelInfo,
    /// For vectors of one shape.
    port: Mutex<Option<(VectorShape, Box<dyn Port>)>>,
}

/// The rank that computes each block.
fn owners(works: &[u64], ranks: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..works.len()).collect();
    order.sort_by_key(|&block| std::cmp::Reverse(works[block]));
    let (mut owners, mut busy) = (vec![0; works.len()], vec![0u64; ranks]);
    for block in order {
        let least = (0..ranks).min_by_key(|&rank| busy[rank]).unwrap_or(0);
        owners[block] = least;
        busy[least] += works[block];
    }
    owners
}

/// Prepares this rank's part of a superblock; none where sharing it out does not pay. `alike`: whether all ranks compute with the
/// same bits, so that what they decide by numbers of their own is the same.
pub(super) fn prepare<T: Element>(
    team: Team,
    device: &Device,
    list: &Arc<RecordList<T>>,
    handling: Handling,
    always: bool,
) -> Result<Option<Arc<dyn Kernel>>> {
    let (rank, ranks) = team.place();
    let works = list.works();
    if list.dim == 0 || !(always || works.iter().sum::<u64>() >= FEW) {
        return Ok(None);
    }
    let owners = owners(&works, ranks);
    let mut part = RecordList::clone(list);
    for (records, _) in part.records.iter_mut().zip(&owners).filter(|(_, owner)| **owner != rank) {
        records.clear();
    }
    let own = device.prepare(MatrixSpec::Records { records: T::wrap(Arc::new(part)), handling })?;
    let mut rows = vec![Vec::new(); ranks];
    for (panel, &owner) in list.panels.iter().zip(&owners) {
        rows[owner].extend(panel.offset..panel.offset + panel.rows * panel.columns);
    }
    let sends = vec![std::mem::take(&mut rows[rank])];
    rows.remove(rank);
    let halo = Halo { sends, receives: rows.iter().map(Vec::len).collect(), boundary: rows.concat() };
    let count = halo.boundary.len();
    let identity = Csr {
        rows: count,
        cols: count,
        row_start: (0..=count).collect(),
        columns: Indices::of(count, (0..count as u64).collect()),
        values: Values::F64(vec![1.0; count]),
    };
    let identity = device.prepare(MatrixSpec::Csr(Arc::new(identity)))?;
    let info = KernelInfo {
        format: format!("{} records", list.count()),
        bytes: list.bytes(),
        entries: list.flops() as usize / 2,
    };
    let (device, rows, port) = (device.clone(), list.dim, Mutex::new(None));
    Ok(Some(Arc::new(Shared { team, device, own, halo, identity, rows, info, port })))
}

impl Shared {
    /// `w = A v`.
    fn product(&self, v: &BlockVector, w: &mut BlockVector) -> Result<()> {
        self.own.update(Update::PRODUCT, v, w, None)?;
        let shape = VectorShape::of(w);
        let kept = self.port.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut port = match kept.filter(|(of, _)| *of == shape) {
            Some((_, port)) => port,
            None => self.device.port(&self.halo, shape)?,
        };
        let memory = |bytes: usize| -> Result<Staging> {
            Ok(self.device.staging(bytes)?.unwrap_or_else(|| Box::new(Plain::new(bytes))))
        };
        let lost = || Error::internal("blocks of a superblock that are not collected");
        let bytes = shape.bytes(self.halo.sends[0].len());
        port.collect(w, vec![memory(bytes)?])?;
        let own = port.collected(true)?.and_then(|mut all| all.pop()).ok_or_else(lost)?;
        let mut all = self.team.world.gather(own.bytes()[..bytes].to_vec())?;
        all.remove(self.team.world.rank());
        for (from, (numbers, &rows)) in all.iter().zip(&self.halo.receives).enumerate() {
            if numbers.len() != shape.bytes(rows) {
                return Err(Error::internal("the ranks have gone different ways in a superblock"));
            }
            let mut rows = memory(numbers.len())?;
            rows.bytes_mut()[..numbers.len()].copy_from_slice(numbers);
            port.deliver(from, rows)?;
        }
        port.add(1.0, &*self.identity, w, None)?;
        port.released()?;
        *self.port.lock().unwrap_or_else(PoisonError::into_inner) = Some((shape, port));
        Ok(())
    }
}

impl Kernel for Shared {
    fn rows(&self) -> Rows {
        Rows::all(self.rows)
    }

    fn dtype(&self) -> DType {
        self.own.dtype()
    }

    fn info(&self) -> KernelInfo {
        self.info.clone()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        let real = |x: f64| [C64::new(x, 0.0)];
        if c.gamma == 0.0 {
            self.product(v, w)?;
            if (c.alpha, c.beta) != (1.0, 0.0) {
                self.device.axpby(&real(c.beta), v, &real(c.alpha), w)?;
            }
        } else {
            let mut product = self.device.zeros(w.dtype, w.rows, w.columns)?;
            self.product(v, &mut product)?;
            self.device.axpby(&real(c.alpha), &product, &real(c.gamma), w)?;
            self.device.axpby(&real(c.beta), v, &real(1.0), w)?;
        }
        if let Some(dots) = dots {
            *dots = Dots::taken(&*self.device, v, w)?;
        }
        Ok(())
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
