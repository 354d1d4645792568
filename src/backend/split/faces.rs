//! The Wilson operator on boxes that exchange half-spinors through their faces by links: parts on devices that can
//! reach each other.

use std::sync::Arc;

use super::SplitBackend;
use super::kernel::{End, PartRows, SplitMatrix};
use crate::backend::cut::RowCut;
use crate::backend::cut::share::box_of;
use crate::backend::exchange::{Halo, KeptForPasses, VectorShape};
use crate::backend::matrix::Csr;
use crate::backend::matrix::wilson::WilsonSpec;
use crate::backend::{Kernel, KernelInfo};
use crate::error::{Error, Result};
use crate::number::DType;

/// The operator; none where the parts have no such way.
pub(super) fn prepare(
    split: &SplitBackend,
    spec: &WilsonSpec,
    cut: &Arc<RowCut>,
) -> Result<Option<Arc<dyn Kernel>>> {
    spec.validate()?;
    let (holders, dtype) = (cut.holders(), DType::of(spec.single, true));
    let (mut parts, mut infos) = (Vec::new(), Vec::new());
    for &index in &holders {
        let Some((part, behind)) = box_of(spec, &cut.of(index))? else { return Ok(None) };
        let (faces, device) = (part.faces(), split.parts[index].clone());
        let Some(peer) = device.peer_exchange() else { return Ok(None) };
        let own = peer.prepare_linked(&part)?;
        infos.push(own.info());
        let (outside, halo) = (Arc::new(Csr::empty(dtype)), Halo::default());
        let (own, beyond, faces) = (Some(own), None, Some(faces));
        let from: Option<Vec<usize>> =
            behind.iter().map(|part| holders.iter().position(|holder| holder == part)).collect();
        let from = from.ok_or_else(|| Error::internal("a face that nobody is behind"))?;
        // What leaves through the lower face comes through the upper one of another.
        let to = (0..from.len()).map(|at| from[at ^ 1]).collect();
        parts.push(PartRows { index, device, own, outside, beyond, halo, faces, to, from });
    }
    let sum = |f: fn(&KernelInfo) -> usize| infos.iter().map(f).sum();
    let format = infos.first().map_or_else(String::new, |info| info.format.clone());
    let info = KernelInfo { format, bytes: sum(|i| i.bytes), entries: sum(|i| i.entries) };
    let matrix = SplitMatrix {
        parts,
        shape: spec.shape(),
        row_cut: cut.clone(),
        col_cut: cut.clone(),
        info,
        kept: KeptForPasses::default(),
    };
    let shape = VectorShape { dtype, columns: 1, grid: None };
    let Some(links) = matrix.links(shape)? else { return Ok(None) };
    matrix.kept.put(shape, links.into_iter().map(End::Link).collect());
    Ok(Some(Arc::new(matrix)))
}
