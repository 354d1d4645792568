//! The Wilson-Dirac operator on a rank's box of the lattice: half-spinors cross its faces while the sites away from the
//! faces are computed. Then each site at a face is computed in one step.

use std::sync::Arc;

use super::Team;
use super::passes::{LONG, RankPasses, TAG, meanwhile};
use crate::backend::cut::RowCut;
use crate::backend::cut::share::box_of;
use crate::backend::exchange::{
    FaceArrivals, Faced, HALF, KeptForPasses, PassExtras, PassProducts, PlainMemory, Staging, VectorShape,
    through_host,
};
use crate::backend::matrix::wilson::{Face, WilsonSpec};
use crate::backend::{BlockVector, Device, Dots, KernelInfo, Update};
use crate::error::{Error, Result};
use crate::number::C64;

/// Memory of the messages of a pass, a piece a face.
struct Messages {
    out: Vec<Staging>,
    into: Vec<Staging>,
}

/// The operator on a rank's box, if it has one.
pub(super) struct Faces {
    team: Team,
    device: Device,
    own: Option<Arc<dyn Faced>>,
    faces: Vec<Face>,
    /// The rank behind each of them.
    behind: Vec<usize>,
    kept: KeptForPasses<Messages>,
}

impl Faces {
    /// None where the backend of a rank has no such operator: all ranks decide together.
    pub fn prepare(team: Team, device: &Device, spec: &WilsonSpec, cut: &RowCut) -> Result<Option<Faces>> {
        let Some((part, behind)) = box_of(spec, cut)? else { return Ok(None) };
        let empty = cut.local() == 0;
        let own = if empty { None } else { through_host(device)?.prepare_box(&part)? };
        let knows = team.world.gather_words(vec![(empty || own.is_some()).into()])?;
        if knows.contains(&0) {
            return Ok(None);
        }
        let (device, kept) = (device.clone(), KeptForPasses::default());
        Ok(Some(Faces { team, device, own, faces: part.faces(), behind, kept }))
    }

    /// What is told of the operator.
    pub fn info(&self) -> Option<KernelInfo> {
        self.own.as_ref().map(|own| own.info())
    }

    fn messages(&self, shape: VectorShape) -> Messages {
        if let Some(messages) = self.kept.take(shape) {
            return messages;
        }
        let memory = || -> Vec<Staging> {
            let piece = |face: &Face| Box::new(PlainMemory::new(shape.bytes(HALF * face.sites))) as Staging;
            self.faces.iter().map(piece).collect()
        };
        Messages { out: memory(), into: memory() }
    }

    /// The faces in the order in which what comes through them was sent: what leaves through the lower face of a box
    /// comes through the upper one of another, which may be the neighbour on both sides.
    fn coming(&self) -> impl Iterator<Item = usize> {
        (0..self.faces.len()).map(|at| at ^ 1)
    }

    fn compute(
        &self,
        own: &dyn Faced,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: PassExtras,
    ) -> Result<Dots> {
        let (world, shape) = (self.team.world, VectorShape::of(v));
        let Messages { mut out, into } = self.messages(shape);
        let mut into: Vec<Option<Staging>> = into.into_iter().map(Some).collect();
        let bytes = |face: &Face| shape.bytes(HALF * face.sites);
        let mut under_way = Vec::with_capacity(2 * self.faces.len());
        for at in self.coming() {
            let memory = into[at].take().ok_or_else(|| Error::internal("two messages for one face"))?;
            under_way.push(world.receive(memory, bytes(&self.faces[at]), self.behind[at], TAG)?);
        }
        for ((face, &rank), mut memory) in self.faces.iter().zip(&self.behind).zip(out.drain(..)) {
            own.leave(v, (face.direction, face.upper), memory.bytes_mut())?;
            under_way.push(world.send(memory, bytes(face), rank, TAG)?);
        }
        let mut inside = || own.pass(c, v, &mut *w, besides, None);
        let mut dots = if self.faces.iter().any(|face| bytes(face) > LONG) {
            meanwhile(world, &mut under_way, inside)?
        } else {
            inside()?
        };
        let outgoing = under_way.split_off(self.faces.len());
        for (at, message) in self.coming().zip(under_way) {
            into[at] = Some(world.arrive(message)?);
        }
        let mut came: FaceArrivals = Default::default();
        for (face, memory) in self.faces.iter().zip(&into) {
            came[face.direction][usize::from(face.upper)] = memory.as_ref().map(|memory| memory.bytes());
        }
        let more = own.pass(c, v, w, besides, Some(&came))?;
        dots.vv.iter_mut().zip(more.vv).for_each(|(sum, x)| *sum += x);
        dots.wv.iter_mut().zip(more.wv).for_each(|(sum, x)| *sum += x);
        for message in outgoing {
            out.push(world.arrive(message)?);
        }
        let messages = Messages { out, into: into.into_iter().flatten().collect() };
        self.kept.put(shape, messages);
        Ok(dots)
    }
}

impl RankPasses for Faces {
    fn pass(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: PassExtras,
    ) -> Result<PassProducts> {
        let Some(own) = &self.own else { return Ok((None, None)) };
        match besides {
            PassExtras::Plus(plus) if plus.len() > own.most_added() => {
                self.compute(&**own, c, v, w, PassExtras::Nothing)?;
                for (factor, x) in plus {
                    self.device.axpby(&[C64::new(*factor, 0.0)], x, &[C64::ONE], w)?;
                }
                Ok((None, None))
            }
            _ => {
                let dots = self.compute(&**own, c, v, w, besides)?;
                Ok((Some(Box::new(move || Ok(dots))), None))
            }
        }
    }

    fn overwrites(&self) -> bool {
        self.own.as_ref().is_none_or(|own| own.overwrites())
    }
}
