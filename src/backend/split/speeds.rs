//! How fast the parts are, by short measurements.

use std::sync::Arc;
use std::time::{Duration, Instant};

use faer::Mat;

use super::records;
use crate::backend::matrix::records::{Factor, Panel, Record, RecordList, Records};
use crate::backend::{Device, MatrixSpec, Rows, Update};
use crate::error::Result;
use crate::number::DType;

/// How long one kind of product is measured.
const TIME: Duration = Duration::from_millis(50);

/// Numbers of a sample's vectors: enough blocks of every size to keep a part busy.
const NUMBERS: usize = 1 << 22;

/// Sizes of dense products that are alike in speed: a step function, as in Nemes et al. 2014.
pub(super) mod class {
    /// How many classes there are.
    pub const COUNT: usize = 3;

    /// Side of a square matrix in the middle of each.
    pub(super) const SIDES: [usize; COUNT] = [32, 128, 512];

    /// The class of a product of `rows x depth` and `depth x columns`.
    pub fn of(size: [usize; 3]) -> usize {
        let side = size.iter().map(|&n| n as f64).product::<f64>().cbrt();
        SIDES[1..].iter().filter(|&&next| side > 0.5 * next as f64).count()
    }
}

/// Operations a second of every part for each class of products; what rows take on the way to it and back, in seconds a byte
/// and at least.
#[derive(Debug)]
pub(super) struct Speeds {
    pub rates: Vec<[f64; class::COUNT]>,
    pub copies: Vec<f64>,
    pub least: Vec<f64>,
}

impl Speeds {
    pub fn parts(&self) -> usize {
        self.rates.len()
    }

    /// What a part takes for so many operations of each class.
    pub fn seconds(&self, part: usize, work: &[f64; class::COUNT]) -> f64 {
        work.iter().zip(&self.rates[part]).map(|(work, rate)| work / rate).sum()
    }

    /// What rows take on their way to a part and back.
    pub fn copy(&self, part: usize, bytes: f64) -> f64 {
        bytes * self.copies[part]
    }

    /// Measures parts with records of their own making.
    pub fn measure(parts: &[Device], primary: usize) -> Result<Speeds> {
        let rate = |device: &Device, side: usize| -> Result<f64> {
            let list = sample(side, NUMBERS / (side * side), true);
            let flops = list.flops() as f64;
            let spec = MatrixSpec::Records { records: Records::Real(Arc::new(list)), room: None };
            let kernel = device.prepare(spec)?;
            let v = device.zeros(DType::F64, Rows::all(kernel.cols()), 1)?;
            let mut w = v.clone();
            Ok(flops * pace(device, TIME, || kernel.update(Update::PRODUCT, &v, &mut w, None))?)
        };
        // There and back through the exchange itself, next to no computation.
        let home = &parts[primary];
        let seconds = |part: usize, blocks: usize| -> Result<f64> {
            let list = sample(class::SIDES[0], blocks, false);
            let kernel = records::shared(home, [(part, &parts[part])], &list, &vec![part; blocks], None)?;
            let v = home.zeros(DType::F64, Rows::all(list.dim), 1)?;
            let mut w = v.clone();
            Ok(1.0 / pace(home, TIME, || kernel.update(Update::PRODUCT, &v, &mut w, None))?)
        };
        let mut speeds = Speeds { rates: Vec::new(), copies: Vec::new(), least: Vec::new() };
        for (part, device) in parts.iter().enumerate() {
            let mut own = [0.0; class::COUNT];
            for (of_class, side) in own.iter_mut().zip(class::SIDES) {
                *of_class = rate(device, side)?;
            }
            let (mut least, mut a_byte) = (0.0, 0.0);
            if part != primary {
                let blocks = NUMBERS / (class::SIDES[0] * class::SIDES[0]);
                least = seconds(part, 1)?;
                a_byte = (seconds(part, blocks)? - least).max(0.0) / (16.0 * NUMBERS as f64);
            }
            speeds.rates.push(own);
            speeds.copies.push(a_byte);
            speeds.least.push(least);
        }
        Ok(speeds)
    }

    /// For people.
    pub fn text(&self, parts: &[Device]) -> String {
        let one = |(device, rates): (&Device, &[f64; class::COUNT])| {
            let rates: Vec<String> = rates.iter().map(|r| format!("{:.3}", 1e-12 * r)).collect();
            format!("{} {}", device.name(), rates.join(", "))
        };
        let all: Vec<String> = parts.iter().zip(&self.rates).map(one).collect();
        let sides = class::SIDES.map(|n| n.to_string()).join(", ");
        format!("superblocks, Tflop/s with blocks of {sides} states: {}", all.join("; "))
    }
}

/// Blocks of `side` x `side` numbers that each are read by a record with two dense matrices, or copied.
fn sample(side: usize, blocks: usize, dense: bool) -> RecordList<f64> {
    let matrix = dense.then(|| Arc::new(Mat::from_fn(side, side, |i, j| ((i + 2 * j) % 7) as f64)));
    let factor =
        || Factor { row: 0, rows: side, column: 0, columns: side, scale: 1.0, matrix: matrix.clone() };
    let panel = |k: usize| Panel { offset: k * side * side, rows: side, columns: side };
    let record = |source: usize| match dense {
        true => Record::Double { source, left: vec![factor()], right: vec![factor()] },
        false => Record::Single { source, left: factor(), right: factor() },
    };
    RecordList {
        dim: blocks * side * side,
        panels: (0..blocks).map(panel).collect(),
        records: (0..blocks).map(|k| vec![record(k)]).collect(),
    }
}

/// Passes a second, timed for `limit`.
pub(super) fn pace(device: &Device, limit: Duration, mut pass: impl FnMut() -> Result<()>) -> Result<f64> {
    pass()?;
    device.synchronize()?;
    let (began, mut passes, mut group) = (Instant::now(), 0u32, 1);
    loop {
        (0..group).try_for_each(|_| pass())?;
        device.synchronize()?;
        passes += group;
        let took = began.elapsed();
        if took > limit {
            return Ok(f64::from(passes) / took.as_secs_f64());
        }
        // A launch takes microseconds: what is queued is timed together.
        group = (group * 2).min(32);
    }
}
