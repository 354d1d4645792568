//! A matrix whose rows are divided between the ranks. The passes (`rows.rs`, `faces.rs`) combine a rank's rows with
//! those of others.

use std::sync::Arc;

use super::faces::Faces;
use super::held::{OwnRows, local, other_cut, own, own_mut};
use super::passes::RankPasses;
use super::{Team, rows};
use crate::backend::cut::RowCut;
use crate::backend::cut::share::RowShare;
use crate::backend::exchange::{self, PassExtras, PassProducts};
use crate::backend::matrix::wilson::WilsonSpec;
use crate::backend::{
    BlockVector, Device, Dots, Kernel, KernelInfo, KernelShape, Rows, Update, check_update,
};
use crate::error::{Error, Result};
use crate::number::DType;

/// A matrix of which this rank has some rows.
struct RankMatrix {
    team: Team,
    shape: KernelShape,
    info: KernelInfo,
    row_cut: Arc<RowCut>,
    col_cut: Arc<RowCut>,
    passes: Box<dyn RankPasses>,
}

impl RankMatrix {
    /// Runs `steps` passes, vectors changing places after each but a single one; the products of this rank's rows.
    fn run(&self, c: Update, v: &mut BlockVector, w: &mut BlockVector, steps: usize) -> Result<Vec<Dots>> {
        if let Some(found) = self.passes.steps((c.alpha, c.beta), v, w, steps)? {
            return Ok(found.into_iter().map(|dots| Dots { partial: true, ..dots }).collect());
        }
        let (mut products, columns) = (Vec::with_capacity(steps), v.columns);
        let (mut v, mut w) = (v, w);
        for _ in 0..steps {
            products.push(self.passes.pass(c, v, w, PassExtras::Dots)?);
            std::mem::swap(&mut v, &mut w);
        }
        products.into_iter().map(|pair| known(pair, columns)).collect()
    }

    fn once(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        besides: PassExtras,
    ) -> Result<Option<Dots>> {
        check_update(self, v, w, besides.dots())?;
        let (v, w) = (self.input(v)?, self.output(w)?);
        let pair = self.passes.pass(c, v, w, besides)?;
        if besides.dots() { known(pair, v.columns).map(Some) } else { Ok(None) }
    }

    /// This rank's rows of a vector that the matrix acts on.
    fn input<'a>(&self, v: &'a BlockVector) -> Result<&'a BlockVector> {
        match own(v) {
            Some(OwnRows { cut, block, .. }) if *cut == self.col_cut => Ok(block),
            _ => Err(other_cut()),
        }
    }

    fn output<'a>(&self, w: &'a mut BlockVector) -> Result<&'a mut BlockVector> {
        match own_mut(w) {
            Some(OwnRows { cut, block, .. }) if *cut == self.row_cut => Ok(block),
            _ => Err(other_cut()),
        }
    }
}

/// The products of a pass, of this rank's rows.
fn known(products: PassProducts, columns: usize) -> Result<Dots> {
    Ok(Dots { partial: true, ..exchange::summed(products, columns)? })
}

impl Kernel for RankMatrix {
    fn shape(&self) -> KernelShape {
        self.shape
    }

    fn info(&self) -> KernelInfo {
        self.info.clone()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        let besides = if dots.is_some() { PassExtras::Dots } else { PassExtras::Nothing };
        let found = self.once(c, v, w, besides)?;
        if let (Some(dots), Some(found)) = (dots, found) {
            *dots = self.team.completed(found)?;
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
            self.once(c, v, w, PassExtras::Plus(&plus)).map(drop)
        })
    }

    fn update_partial(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<Dots> {
        self.once(c, v, w, PassExtras::Dots)?.ok_or_else(|| Error::internal("a pass without its products"))
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
        self.passes.overwrites()
    }
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

/// This rank's part of a matrix, of which a product touches so many entries: parts of dense rows and of stencils have
/// other numbers in all, on other numbers of ranks.
pub(super) fn prepare(
    team: Team,
    device: &Device,
    dtype: DType,
    share: RowShare,
    (rows, entries): (Rows, Option<usize>),
    (row_cut, col_cut): (Arc<RowCut>, Arc<RowCut>),
) -> Result<Arc<dyn Kernel>> {
    let empty = row_cut.local() == 0 || col_cut.local() == 0;
    let (passes, infos) = rows::prepare(team, device, dtype, share, empty)?;
    let name = infos.first().filter(|_| !empty).map(|info| info.format.clone());
    let mut info = told(team, &infos, name)?;
    info.entries = entries.unwrap_or(info.entries);
    let (shape, passes) = (KernelShape { rows, cols: col_cut.rows, dtype }, Box::new(passes));
    Ok(Arc::new(RankMatrix { team, shape, info, row_cut, col_cut, passes }))
}

/// The Wilson operator on this rank's box, with half-spinors passing its faces as messages or by links; none where a
/// rank has neither way.
pub(super) fn prepare_wilson(
    team: Team,
    device: &Device,
    spec: &WilsonSpec,
    cut: &Arc<RowCut>,
) -> Result<Option<Arc<dyn Kernel>>> {
    let (own, passes): (Vec<KernelInfo>, Box<dyn RankPasses>) =
        if let Some(faces) = Faces::prepare(team, device, spec, cut)? {
            (faces.info().into_iter().collect(), Box::new(faces))
        } else if let Some((linked, own)) = rows::prepare_faces(team, device, spec, cut)? {
            (own, Box::new(linked))
        } else {
            return Ok(None);
        };
    let info = told(team, &own, own.first().map(|info| info.format.clone()))?;
    let (shape, row_cut, col_cut) = (spec.shape(), cut.clone(), cut.clone());
    Ok(Some(Arc::new(RankMatrix { team, shape, info, row_cut, col_cut, passes })))
}
