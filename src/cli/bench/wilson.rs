//! The Wilson-Dirac operator and a step of Clenshaw's recurrence in its square, in every storage of links.

use super::{Bench, header, line, timed};
use crate::backend::matrix::wilson::Compression;
use crate::backend::{BlockVector, Device, Random, Rows, Update, VectorDistribution};
use crate::error::Result;
use crate::gauge::Links;
use crate::lattice::Lattice;
use crate::method::{RecordedClenshaw, Window};
use crate::number::DType;
use crate::number::philox::Stream;
use crate::operator::{Operator, WilsonOperator};

/// Flops of a site as the field counts them: 1320 of the hopping term and 48 of the diagonal.
const FLOPS: f64 = 1368.0;

/// The lattices of the paper and of its peers; the last only in full.
const LATTICES: [([usize; 4], bool); 5] = [
    ([8; 4], false),
    ([16; 4], false),
    ([24, 24, 24, 32], false),
    ([24, 24, 24, 48], true),
    ([32, 32, 32, 64], true),
];

/// Columns of a propagator.
const MANY: usize = 12;

/// Terms of a series whose launches are recorded.
const TERMS: usize = 257;

/// One row a lattice, precision and storage, for the operator and for the step.
pub(super) fn run(bench: &Bench, device: &Device, bandwidth: f64) -> Result<()> {
    header(&["ms", "ns/site", "Gflop/s", "least MB", "GB/s", "of triad"]);
    for (dims, big) in LATTICES {
        let name = dims.map(|n| n.to_string()).join("x");
        let mut precisions = vec![("double", false), ("single", true)];
        precisions.retain(|(precision, _)| bench.wanted(&format!("{name} {precision}")));
        if (big && !bench.full) || precisions.is_empty() {
            continue;
        }
        let u = Links::unit(&Lattice::hypercubic(&dims)?)?.reference_field(0.1)?;
        let sites = u.sites() as f64;
        for (precision, single) in precisions {
            let real = if single { 4.0 } else { 8.0 };
            for storage in [Compression::Full, Compression::Twelve, Compression::Eight] {
                let q = WilsonOperator::build(device, u.wilson(-1.4, true, storage, single)?)?;
                let rows = q.rows();
                let random = |columns, seed| random(device, DType::of(single, true), rows, columns, seed);
                let (b1, mut b2, psi, mut t) = (random(1, 1)?, random(1, 2)?, random(1, 3)?, random(1, 4)?);
                let links = 4.0 * storage.reals() as f64;
                let product = timed(device, bench.limit(), || q.update(Update::PRODUCT, &b1, &mut t, None))?;
                let row = |what: &str, seconds: f64, flops: f64, reals: f64| {
                    let bytes = sites * reals * real;
                    line(
                        &format!("{what} {name} {precision} {}", storage.reals()),
                        [
                            seconds * 1e3,
                            seconds * 1e9 / sites,
                            sites * flops / seconds / 1e9,
                            bytes / 1e6,
                            bytes / seconds / 1e9,
                            bytes / seconds / bandwidth,
                        ],
                    );
                };
                row("Wilson", product, FLOPS, links + 48.0);
                let square: Operator = q.times(&q)?;
                let c = Update { alpha: 0.1, beta: -1.1, gamma: -1.0 };
                let step =
                    timed(device, bench.limit(), || square.update_plus(c, &b1, &mut b2, &[(0.5, &psi)]))?;
                let (flops, reals) = (2.0 * FLOPS + 144.0, 2.0 * links + 7.0 * 24.0);
                row("Clenshaw", step, flops, reals);
                if storage == Compression::Twelve {
                    let (v, mut w) = (random(MANY, 1)?, random(MANY, 2)?);
                    let seconds =
                        timed(device, bench.limit(), || q.update(Update::PRODUCT, &v, &mut w, None))?;
                    let many = MANY as f64;
                    row("12 columns", seconds, many * FLOPS, links + many * 48.0);
                }
                if device.recorder().is_some_and(|r| r.worth_recording(b1.bytes())) {
                    let window = Window { center: 30.0, half_width: 40.0 };
                    let mut series = RecordedClenshaw::new(square, window, &[0.01; TERMS], &b1)?;
                    let all = timed(device, bench.limit(), || series.apply(&b1, TERMS).map(drop))?;
                    row("recorded", all / TERMS as f64, flops, reals);
                }
            }
        }
    }
    Ok(())
}

fn random(device: &Device, dtype: DType, rows: Rows, columns: usize, seed: u64) -> Result<BlockVector> {
    let mut v = device.zeros(dtype, rows, columns)?;
    let random =
        Random { seed, stream: Stream::Vectors, first_column: 0, distribution: VectorDistribution::Phase };
    device.fill_random(&mut v, random)?;
    Ok(v)
}
