//! Vectors of which each rank has a range of rows; their cards collect all rows on all ranks. Superblocks with such
//! vectors: each rank computes its rows of a product from all rows of the vector. One rank sums each number of a
//! product, in the same order as a single card.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Team;
use super::held::{other_cut, own, own_mut};
use crate::backend::cut::RowCut;
use crate::backend::exchange::{self, Assembly, VectorShape};
use crate::backend::matrix::records::{Handling, Records};
use crate::backend::{
    BlockVector, Device, Dots, Kernel, KernelInfo, KernelShape, Rows, Update, check_update,
};
use crate::error::{Error, Result};
use crate::number::DType;

/// What brings vectors together, kept for the next vector of the same shape.
pub(super) struct RankAssembly {
    team: Team,
    device: Device,
    possible: OnceLock<bool>,
    kept: Mutex<Option<(Arc<RowCut>, VectorShape, Box<dyn Assembly>)>>,
}

impl RankAssembly {
    pub fn new(team: Team, device: Device) -> RankAssembly {
        RankAssembly { team, device, possible: OnceLock::new(), kept: Mutex::new(None) }
    }

    /// Whether the cards of all ranks reach each other. All ranks ask together; they decide once.
    ///
    /// # Errors
    /// Those of MPI and of the devices.
    pub fn is_possible(&self) -> Result<bool> {
        if let Some(possible) = self.possible.get() {
            return Ok(*possible);
        }
        let place = self.team.place();
        let shape = VectorShape { dtype: DType::F64, columns: 1, grid: None };
        let found = self.make(&RowCut::ranges(place.1, place), shape)?.is_some();
        Ok(*self.possible.get_or_init(|| found))
    }

    /// This rank's end of the exchange; none where cards do not reach each other.
    fn make(&self, cut: &RowCut, shape: VectorShape) -> Result<Option<Box<dyn Assembly>>> {
        let world = self.team.world;
        let every =
            |mine: bool| Ok::<_, Error>(world.gather_words(vec![mine.into()])?.iter().all(|w| *w > 0));
        let Some(ranges) = cut.ranges_of_all() else { return Ok(None) };
        let made = self.device.peer_exchange().map(|peer| peer.assembly(&ranges, shape)).transpose()?;
        if !every(made.is_some())? {
            return Ok(None);
        }
        let Some(mut made) = made else { return Ok(None) };
        let offers = made.offers();
        let each = offers.first().map_or(0, Vec::len);
        let all = world.gather(offers.concat())?;
        // A rank's offers are for the others, in their order.
        let mine = ranges.others().map(|from| {
            let at = each * ranges.place_among_others_of(from);
            all[from].get(at..at + each).map(<[u8]>::to_vec)
        });
        let mine: Option<Vec<Vec<u8>>> = mine.collect();
        let accepted = match mine {
            Some(mine) => made.accept(&mine)?,
            None => false,
        };
        Ok(every(accepted)?.then_some(made))
    }

    /// What `f` makes of all rows of a vector, of which this rank has `block`. All ranks call this together.
    ///
    /// # Errors
    /// Those of `f`, of MPI and of the devices.
    pub fn with<R>(
        &self,
        cut: &Arc<RowCut>,
        block: &BlockVector,
        f: impl FnOnce(&BlockVector) -> Result<R>,
    ) -> Result<R> {
        self.at(cut, VectorShape::of(block), |assembly| {
            assembly.send(block)?;
            f(&assembly.all()?)
        })
    }

    /// What `f` makes of this rank's end of the exchange.
    fn at<R>(
        &self,
        cut: &Arc<RowCut>,
        shape: VectorShape,
        f: impl FnOnce(&mut dyn Assembly) -> Result<R>,
    ) -> Result<R> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.take().filter(|(of, shaped, _)| of == cut && *shaped == shape);
        let mut assembly = match known {
            Some((.., assembly)) => assembly,
            None => self.make(cut, shape)?.ok_or_else(|| Error::internal("cards that lost each other"))?,
        };
        let found = f(&mut *assembly);
        *kept = Some((cut.clone(), shape, assembly));
        found
    }
}

/// A superblock of whose product every rank computes its rows.
struct RankSpreadSuperblock {
    team: Team,
    device: Device,
    together: Arc<RankAssembly>,
    cut: Arc<RowCut>,
    /// This rank's rows, from all rows of a vector.
    own: Arc<dyn Kernel>,
    info: KernelInfo,
}

/// Prepares this rank's rows of a superblock, whose vectors are cut so.
pub(super) fn prepare(
    team: Team,
    device: &Device,
    together: &Arc<RankAssembly>,
    cut: Arc<RowCut>,
    records: &Records,
    handling: Handling,
) -> Result<Option<Arc<dyn Kernel>>> {
    let Some(ranges) = cut.ranges_of_all() else { return Ok(None) };
    let Some(peer) = device.peer_exchange() else { return Ok(None) };
    let own = peer.prepare_rows(records, ranges.own(), handling)?;
    let info = match records {
        Records::Real(list) => list.info(),
        Records::Complex(list) => list.info(),
    };
    let (device, together) = (device.clone(), together.clone());
    Ok(Some(Arc::new(RankSpreadSuperblock { team, device, together, cut, own, info })))
}

impl Kernel for RankSpreadSuperblock {
    fn shape(&self) -> KernelShape {
        KernelShape::square(Rows::all(self.cut.rows), self.own.dtype())
    }

    fn info(&self) -> KernelInfo {
        self.info.clone()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        let (Some(v), Some(w)) = (own(v), own_mut(w)) else { return Err(other_cut()) };
        if v.cut != self.cut || w.cut != self.cut {
            return Err(other_cut());
        }
        let (v, w) = (&*v.block, &mut *w.block);
        let own = &*self.own;
        self.together.with(&self.cut, v, |all| exchange::rows_of_all(&self.device, own, c, (all, v), w))?;
        if let Some(dots) = dots {
            *dots = self.team.completed(Dots { partial: true, ..Dots::taken(&*self.device, v, w)? })?;
        }
        Ok(())
    }
}
