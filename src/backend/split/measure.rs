//! Short measurements of how fast the parts are.

use std::sync::Arc;
use std::time::Duration;

use faer::Mat;

use super::records;
use super::speeds::{Speeds, class};
use crate::backend::cut::speed::pace;
use crate::backend::matrix::records::{
    Handling, OperatorPiece, ProductRecord, RecordList, Records, SectorPanel,
};
use crate::backend::{Device, MatrixSpec, Rows, Update};
use crate::error::Result;
use crate::number::DType;
use crate::ranks;

/// How long one kind of product is measured.
const TIME: Duration = Duration::from_millis(50);

/// Numbers of a sample's vectors: enough blocks of every size to keep a part busy.
const NUMBERS: usize = 1 << 22;

/// How fast the parts are, measured with records of their own making.
pub(super) fn speeds(parts: &[Device], primary: usize) -> Result<Speeds> {
    let rate = |device: &Device, side: usize| -> Result<f64> {
        let list = sample(side, NUMBERS / (side * side), true);
        let flops = list.flops() as f64;
        let spec =
            MatrixSpec::Records { records: Records::Real(Arc::new(list)), handling: Handling::default() };
        let kernel = device.prepare(spec)?;
        let v = device.zeros(DType::F64, Rows::all(kernel.cols()), 1)?;
        let mut w = v.clone();
        // Ranks that shared blocks out by different rates would round differently.
        Ok(flops * ranks::told(pace(device, TIME, || kernel.update(Update::PRODUCT, &v, &mut w, None))?)?)
    };
    // There and back through the exchange itself, next to no computation.
    let home = &parts[primary];
    let seconds = |part: usize, blocks: usize| -> Result<f64> {
        let list = sample(class::SIDES[0], blocks, false);
        let kernel =
            records::shared(home, [(part, &parts[part])], &list, &vec![part; blocks], Handling::default())?;
        let v = home.zeros(DType::F64, Rows::all(list.dim), 1)?;
        let mut w = v.clone();
        Ok(1.0 / ranks::told(pace(home, TIME, || kernel.update(Update::PRODUCT, &v, &mut w, None))?)?)
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

/// Blocks of `side` x `side` numbers that each are read by a record with two dense matrices, or copied.
fn sample(side: usize, blocks: usize, dense: bool) -> RecordList<f64> {
    let matrix = dense.then(|| Arc::new(Mat::from_fn(side, side, |i, j| ((i + 2 * j) % 7) as f64).into()));
    let factor =
        || OperatorPiece { row: 0, rows: side, column: 0, columns: side, scale: 1.0, matrix: matrix.clone() };
    let panel = |k: usize| SectorPanel { offset: k * side * side, rows: side, columns: side };
    let record = |source: usize| match dense {
        true => ProductRecord::Double { source, left: vec![factor()], right: vec![factor()] },
        false => ProductRecord::Single { source, left: factor(), right: factor() },
    };
    RecordList {
        dim: blocks * side * side,
        panels: (0..blocks).map(panel).collect(),
        records: (0..blocks).map(|k| vec![record(k)]).collect(),
    }
}
