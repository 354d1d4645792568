//! The Wilson operator on boxes whose faces half-spinors pass by links: parts on devices that reach each other.

use std::sync::Arc;

use super::cuts::Cuts;
use super::kernel::{End, PartRows, SplitMatrix};
use super::share::box_of;
use crate::backend::exchange::{Halo, Kept, VectorShape};
use crate::backend::matrix::Csr;
use crate::backend::matrix::wilson::{WilsonBox, WilsonSpec};
use crate::backend::{Device, Kernel, KernelInfo};
use crate::error::Result;
use crate::number::DType;

/// The operator; none where the parts have no such way.
pub(super) fn prepare(devices: &[Device], spec: &WilsonSpec, cuts: &Cuts) -> Result<Option<Arc<dyn Kernel>>> {
    spec.validate()?;
    let boxes: Vec<(usize, WilsonBox)> =
        cuts.0.iter().map(|(index, own)| (*index, box_of(spec, own))).collect();
    let (count, dtype) = (boxes.len(), DType::of(spec.single, true));
    let (mut parts, mut infos) = (Vec::new(), Vec::new());
    for (at, (index, part)) in boxes.into_iter().enumerate() {
        let (faces, device) = (part.faces(), devices[index].clone());
        let beside = [(at + count - 1) % count, (at + 1) % count];
        if faces.len() != beside.len() {
            return Ok(None);
        }
        let Some(peer) = device.peer_exchange() else { return Ok(None) };
        let own = peer.prepare_linked(&part)?;
        infos.push(own.info());
        let (outside, halo) = (Arc::new(Csr::empty(dtype)), Halo::default());
        let (own, beyond, faces) = (Some(own), None, Some(faces));
        let (to, from) = (vec![beside[1], beside[0]], beside.to_vec());
        parts.push(PartRows { index, device, own, outside, beyond, halo, faces, to, from });
    }
    let sum = |f: fn(&KernelInfo) -> usize| infos.iter().map(f).sum();
    let format = infos.first().map_or_else(String::new, |info| info.format.clone());
    let info = KernelInfo { format, bytes: sum(|i| i.bytes), entries: sum(|i| i.entries) };
    let matrix = SplitMatrix { parts, shape: spec.shape(), info, kept: Kept::default() };
    let shape = VectorShape { dtype, columns: 1, grid: None };
    let Some(links) = matrix.links(shape)? else { return Ok(None) };
    matrix.kept.put(shape, links.into_iter().map(End::Link).collect());
    Ok(Some(Arc::new(matrix)))
}
