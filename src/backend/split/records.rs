//! Divides the records of a superblock (Nemes, Barcza, Nagy, Legeza, Szolgay, CPC 185 (2014) 1570). Its vectors live on
//! one part; meanwhile the other parts compute some blocks of a product, each block on one part. They get the small
//! blocks, for which the speeds of the parts differ least.

use std::sync::Arc;

use super::speeds::{Speeds, class};
use super::{SplitBackend, between};
use crate::backend::exchange::{ExchangePort, Halo, KeptForPasses, Staging, VectorShape, through_host};
use crate::backend::matrix::Csr;
use crate::backend::matrix::records::{Element, Handling, ProductRecord, RecordList, Records, SectorPanel};
use crate::backend::{
    BlockVector, Device, Dots, Kernel, KernelInfo, KernelShape, MatrixSpec, Rows, Update, check_update,
};
use crate::error::{Error, Result};

/// Operations of a product below which nothing is shared out.
const FEW: f64 = 2e8;

/// What another part must save of a product to be asked, as a share of it.
const GAIN: f64 = 0.02;

/// The same where the part with the vectors keeps matrices in its memory: another one needs copies of them, and
/// measuring takes longer than a search of small products.
const FEW_KEPT: f64 = 1e11;
const GAIN_KEPT: f64 = 0.2;

/// A superblock whose product several parts compute.
struct SplitSuperblock {
    device: Device,
    /// The blocks that the part with the vectors computes.
    own: Arc<dyn Kernel>,
    helpers: Vec<Helper>,
    info: KernelInfo,
    kept: KeptForPasses<Vec<HelperLink>>,
}

/// Another part: it is sent the blocks that it reads, and sends back those that it computes.
struct Helper {
    device: Device,
    kernel: Arc<dyn Kernel>,
    halo: Halo,
    /// The other end, and the identity by which what comes back is added.
    there: Halo,
    back: Arc<dyn Kernel>,
}

/// Both ends of the exchange with a helper, and the memory that rows pass through.
struct HelperLink {
    port: Box<dyn ExchangePort>,
    there: Box<dyn ExchangePort>,
    out: Option<Staging>,
    back: Option<Staging>,
}

/// Operations of the records of one block of the result, by the class of their sizes.
type OperationCounts = [f64; class::COUNT];

fn works<T: Element>(list: &RecordList<T>) -> Vec<OperationCounts> {
    let each = if T::DTYPE.is_complex() { 8.0 } else { 2.0 };
    let of = |(target, records): (&SectorPanel, &Vec<ProductRecord<T>>)| {
        let mut work = OperationCounts::default();
        for record in records {
            record.products(*target, &list.panels, |size| {
                work[class::of(size)] += each * size.iter().map(|&n| n as f64).product::<f64>();
            });
        }
        work
    };
    list.panels.iter().zip(&list.records).map(of).collect()
}

/// Who computes which block, by weights set by hand: the smallest ones go to others, until they have their share.
fn by_weight(works: &[OperationCounts], weights: &[f64], primary: usize) -> Vec<usize> {
    let sizes: Vec<f64> = works.iter().map(|w| w.iter().sum()).collect();
    let (all, total): (f64, f64) = (sizes.iter().sum(), weights.iter().sum());
    let mut owners = vec![primary; sizes.len()];
    let mut queue = ascending(&sizes).into_iter().peekable();
    for (part, weight) in weights.iter().enumerate().filter(|(part, _)| *part != primary) {
        let (quota, mut sum) = (all * weight / total, 0.0);
        while let Some(block) = queue.next_if(|&block| sum + 0.5 * sizes[block] <= quota) {
            sum += sizes[block];
            owners[block] = part;
        }
    }
    owners
}

/// The same by measured speeds: others compute as long as they end before the part with the vectors, their copies
/// included. `bytes` is what a block takes on its way, there and back.
fn by_speed(
    works: &[OperationCounts],
    bytes: &[f64],
    speeds: &Speeds,
    primary: usize,
    gain: f64,
) -> Vec<usize> {
    let time = |part: usize, block: usize| speeds.seconds(part, &works[block]);
    let mut owners = vec![primary; works.len()];
    let alone: f64 = (0..works.len()).map(|block| time(primary, block)).sum();
    let mut left = alone;
    let sizes: Vec<f64> = works.iter().map(|w| w.iter().sum()).collect();
    let mut queue = ascending(&sizes).into_iter().peekable();
    for part in (0..speeds.parts()).filter(|part| *part != primary) {
        let (before, first) = (left, queue.clone());
        let mut taken = Vec::new();
        let mut busy = speeds.least[part];
        while let Some(block) = queue.next_if(|&block| {
            busy + time(part, block) + speeds.copy(part, bytes[block]) <= left - time(primary, block)
        }) {
            busy += time(part, block) + speeds.copy(part, bytes[block]);
            left -= time(primary, block);
            taken.push(block);
        }
        if before - left < gain * alone {
            (left, queue) = (before, first);
        } else {
            taken.into_iter().for_each(|block| owners[block] = part);
        }
    }
    owners
}

fn ascending(sizes: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).filter(|&block| sizes[block] > 0.0).collect();
    order.sort_by(|&a, &b| sizes[a].total_cmp(&sizes[b]));
    order
}

/// Brings a superblock to the part where its vectors live, and what others compute of it to them.
pub(super) fn prepare(split: &SplitBackend, records: Records, handling: Handling) -> Result<Arc<dyn Kernel>> {
    match records {
        Records::Real(list) => share(split, list, handling),
        Records::Complex(list) => share(split, list, handling),
    }
}

fn share<T: Element>(
    split: &SplitBackend,
    list: Arc<RecordList<T>>,
    handling: Handling,
) -> Result<Arc<dyn Kernel>> {
    let primary = split.cuts.shares.primary;
    let works = works(&list);
    let keeps = split.parts[primary].keeper().is_some();
    let (few, gain) = if keeps { (FEW_KEPT, GAIN_KEPT) } else { (FEW, GAIN) };
    let owners = match split.cuts.shares.by_hand() {
        Some(weights) => by_weight(&works, weights, primary),
        None if works.iter().flatten().sum::<f64>() < few => vec![primary; works.len()],
        None => {
            // Most blocks that a block is computed from go to the same part anyway.
            let bytes: Vec<f64> = list
                .panels
                .iter()
                .map(|p| 2.0 * (p.rows * p.columns) as f64 * T::DTYPE.bytes() as f64)
                .collect();
            by_speed(&works, &bytes, &*split.speeds()?, primary, gain)
        }
    };
    let device = &split.parts[primary];
    if owners.iter().all(|&owner| owner == primary) {
        return device.prepare(MatrixSpec::Records { records: T::wrap(list), handling });
    }
    let others = split.parts.iter().enumerate().filter(|(part, _)| *part != primary && owners.contains(part));
    shared(device, others, &list, &owners, handling)
}

/// A superblock whose vectors live on `device`; its blocks are computed by their owners, which are `others` by number
/// or else the device itself.
pub(super) fn shared<'a, T: Element>(
    device: &Device,
    others: impl IntoIterator<Item = (usize, &'a Device)>,
    list: &RecordList<T>,
    owners: &[usize],
    handling: Handling,
) -> Result<Arc<dyn Kernel>> {
    let (mut helpers, mut left) = (Vec::new(), list.clone());
    for (part, other) in others {
        helpers.push(helper(list, owners, part, device, other)?);
        let taken = left.records.iter_mut().zip(owners).filter(|(_, owner)| **owner == part);
        taken.for_each(|(records, _)| records.clear());
    }
    let own = device.prepare(MatrixSpec::Records { records: T::wrap(Arc::new(left)), handling })?;
    let mut info = own.info();
    for helper in &helpers {
        let more = helper.kernel.info();
        (info.bytes, info.entries) = (info.bytes + more.bytes, info.entries + more.entries);
    }
    let names: Vec<&str> =
        std::iter::once(device).chain(helpers.iter().map(|h| &h.device)).map(|d| d.name()).collect();
    info.format = format!("{} records on {}", list.count(), names.join(" and "));
    let (device, kept) = (device.clone(), KeptForPasses::default());
    Ok(Arc::new(SplitSuperblock { device, own, helpers, info, kept }))
}

/// What another part computes, in vectors of only the blocks that it reads or writes.
fn helper<T: Element>(
    list: &RecordList<T>,
    owners: &[usize],
    part: usize,
    there: &Device,
    device: &Device,
) -> Result<Helper> {
    let mut used: Vec<bool> = owners.iter().map(|&owner| owner == part).collect();
    for (records, _) in list.records.iter().zip(owners).filter(|(_, owner)| **owner == part) {
        records.iter().for_each(|record| used[record.source()] = true);
    }
    let mut order: Vec<usize> = (0..used.len()).filter(|&k| used[k]).collect();
    order.sort_by_key(|&k| list.panels[k].offset);
    let (mut place, mut panels, mut records) = (vec![0; used.len()], Vec::new(), Vec::new());
    let (mut read, mut written, mut computed) = (Vec::new(), Vec::new(), Vec::new());
    for (at, &k) in order.iter().enumerate() {
        place[k] = at;
        let SectorPanel { offset, rows, columns } = list.panels[k];
        let (first, size) = (read.len(), rows * columns);
        panels.push(SectorPanel { offset: first, rows, columns });
        read.extend(offset..offset + size);
        if owners[k] == part {
            written.extend(offset..offset + size);
            computed.extend(first..first + size);
        }
    }
    for &k in &order {
        let mut own = if owners[k] == part { list.records[k].clone() } else { Vec::new() };
        own.iter_mut().for_each(|record| record.read_from(place[record.source()]));
        records.push(own);
    }
    let dim = read.len();
    let packed = RecordList { dim, panels, records };
    let kernel = device
        .prepare(MatrixSpec::Records { records: T::wrap(Arc::new(packed)), handling: Handling::default() })?;
    let count = written.len();
    Ok(Helper {
        device: device.clone(),
        kernel,
        halo: Halo { sends: vec![computed], receives: vec![dim], boundary: (0..dim).collect() },
        there: Halo { sends: vec![read], receives: vec![count], boundary: written },
        back: there.prepare(MatrixSpec::Csr(Arc::new(Csr::identity(count))))?,
    })
}

impl Helper {
    fn link(&self, there: &Device, shape: VectorShape) -> Result<HelperLink> {
        let memory = |rows: usize| between(there, &self.device, shape.bytes(rows)).map(Some);
        Ok(HelperLink {
            port: through_host(&self.device)?.port(&self.halo, shape)?,
            there: through_host(there)?.port(&self.there, shape)?,
            out: memory(self.kernel.cols())?,
            back: memory(self.there.boundary.len())?,
        })
    }

    /// The product of the rows that have come, on their way back in `back`.
    fn compute(
        &self,
        port: &mut dyn ExchangePort,
        shape: VectorShape,
        rows: Staging,
        back: Staging,
    ) -> Result<(Staging, Staging)> {
        port.deliver(0, rows)?;
        let mut w = self.device.zeros(shape.dtype, Rows::all(self.kernel.cols()), shape.columns)?;
        port.add(1.0, &*self.kernel, &mut w, None)?;
        // A pass ends here for the port: what it copies from now on comes after the product.
        let out = port.released()?.pop().map(|(_, memory)| memory);
        port.collect(&w, vec![back])?;
        let back = port.collected(true)?.and_then(|mut all| all.pop());
        back.zip(out).ok_or_else(lost)
    }
}

fn lost() -> Error {
    Error::internal("memory between two parts of a superblock was lost")
}

impl SplitSuperblock {
    fn links(&self, shape: VectorShape) -> Result<Vec<HelperLink>> {
        match self.kept.take(shape) {
            Some(links) => Ok(links),
            None => self.helpers.iter().map(|helper| helper.link(&self.device, shape)).collect(),
        }
    }

    fn product(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<()> {
        let shape = VectorShape { grid: None, ..VectorShape::of(v) };
        let mut links = self.links(shape)?;
        std::thread::scope(|scope| {
            let mut jobs = Vec::new();
            for (helper, link) in self.helpers.iter().zip(&mut links) {
                if let Some((_, memory)) = link.there.released()?.pop() {
                    link.back = Some(memory);
                }
                let (out, back) = (link.out.take().ok_or_else(lost)?, link.back.take().ok_or_else(lost)?);
                link.there.collect(v, vec![out])?;
                let port = &mut link.port;
                let mut job = Some(move |rows: Staging| helper.compute(&mut **port, shape, rows, back));
                let mut running = None;
                // A GPU gathers rows while its own product is queued; helpers whose rows are there already begin at
                // once.
                if let Some(rows) = link.there.collected(false)?.and_then(|mut all| all.pop()) {
                    running = job.take().map(|job| scope.spawn(move || job(rows)));
                }
                jobs.push((&mut link.there, &mut link.out, &helper.back, job, running));
            }
            self.own.update(c, v, w, None)?;
            for (there, _, _, job, running) in &mut jobs {
                if let Some(job) = job.take() {
                    let rows = there.collected(true)?.and_then(|mut all| all.pop()).ok_or_else(lost)?;
                    *running = Some(scope.spawn(move || job(rows)));
                }
            }
            for (there, out, back, _, running) in jobs {
                let Some(running) = running else { return Err(lost()) };
                let (rows, memory) = running.join().unwrap_or_else(|p| std::panic::resume_unwind(p))?;
                *out = Some(memory);
                there.deliver(0, rows)?;
                there.add(c.alpha, &**back, w, None)?;
            }
            Ok(())
        })?;
        self.kept.put(shape, links);
        Ok(())
    }
}

impl Kernel for SplitSuperblock {
    fn shape(&self) -> KernelShape {
        self.own.shape()
    }

    fn info(&self) -> KernelInfo {
        self.info.clone()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        self.product(c, v, w)?;
        if let Some(dots) = dots {
            *dots = Dots::taken(&*self.device, v, w)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fast part and one with a tenth of its speed, but a third where blocks are small.
    fn speeds(bytes_a_second: f64, least: f64) -> Speeds {
        let rates = vec![[3e9, 1e11, 1e12], [1e9, 1e10, 1e11]];
        Speeds { rates, copies: vec![0.0, 1.0 / bytes_a_second], least: vec![0.0, least] }
    }

    #[test]
    fn others_take_small_blocks_until_both_are_busy() {
        let works: Vec<OperationCounts> = (0..40)
            .map(|k| match k % 4 {
                0 => [3e6, 0.0, 0.0],
                1 => [0.0, 1e8, 0.0],
                _ => [0.0, 0.0, 1e9],
            })
            .collect();
        let bytes = vec![1e4; 40];
        let fast = speeds(1e12, 1e-5);
        let owners = by_speed(&works, &bytes, &fast, 0, GAIN);
        let busy = |part: usize| -> f64 {
            (0..40).filter(|&k| owners[k] == part).map(|k| fast.seconds(part, &works[k])).sum()
        };
        assert!(busy(1) > 0.0 && busy(1) <= busy(0), "{} {}", busy(0), busy(1));
        assert!(busy(0) < 0.9 * works.iter().map(|w| fast.seconds(0, w)).sum::<f64>());
        // A large block is never taken while a smaller one is left.
        let size = |k: usize| works[k].iter().sum::<f64>();
        let largest = (0..40).filter(|&k| owners[k] == 1).map(size).fold(0.0, f64::max);
        assert!((0..40).filter(|&k| owners[k] == 0).all(|k| size(k) >= largest));
        // Where copies take longer than the product, nobody helps.
        assert_eq!(by_speed(&works, &bytes, &speeds(1e4, 1e-5), 0, GAIN), vec![0; 40]);
        assert_eq!(by_speed(&works, &bytes, &speeds(1e12, 1.0), 0, GAIN), vec![0; 40]);
    }

    #[test]
    fn weights_share_the_work() {
        let works: Vec<OperationCounts> = (1..=100).map(|k| [k as f64, 0.0, 0.0]).collect();
        let owners = by_weight(&works, &[1.0, 3.0], 1);
        let sum: f64 = (0..100).filter(|&k| owners[k] == 0).map(|k| works[k][0]).sum();
        assert!((sum / 5050.0 - 0.25).abs() < 0.01, "{sum}");
    }
}
