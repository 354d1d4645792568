//! Products of superblocks by operation records against their definition.

use std::ops::Range;
use std::sync::Arc;

use faer::{Mat, MatRef};
use umklapp::backend::exchange::{Ranges, VectorShape};
use umklapp::backend::matrix::held::{
    AddedRectangle, Composed, DeviceNumbers, HeldMatrix, Square, TermSource,
};
use umklapp::backend::matrix::outer::{Outer, OuterSums};
use umklapp::backend::matrix::records::{
    BasisChange, Element, Handling, OperatorPiece, ProductRecord, RecordList, Schedule, SectorPanel,
};
use umklapp::backend::{BlockVector, Device, Dots, MatrixSpec, Rows, Update};
use umklapp::number::{C64, DType};

use super::suite::{block, number};

/// Blocks of the vectors: rows and columns of each.
const BLOCKS: [(usize, usize); 6] = [(3, 2), (70, 65), (1, 40), (17, 17), (64, 5), (2, 1)];

fn entry<T: Element>(f: &OperatorPiece<T>, i: usize, j: usize) -> C64 {
    match &f.matrix {
        Some(m) => (f.scale * m.here().expect("a matrix")[(i, j)]).to_c64(),
        None if i == j => f.scale.to_c64(),
        None => C64::default(),
    }
}

/// The product by the definition, entry by entry.
fn product<T: Element>(list: &RecordList<T>, v: &[C64]) -> Vec<C64> {
    let mut w = vec![C64::default(); list.dim];
    let mut add = |target: &SectorPanel, source: usize, l: &OperatorPiece<T>, r: &OperatorPiece<T>| {
        let from = list.panels[source];
        // (A X) B^T: two sums, as four loops would take minutes.
        let mut inner = vec![C64::default(); l.rows * r.columns];
        for (i, a) in (0..l.rows).flat_map(|i| (0..l.columns).map(move |a| (i, a))) {
            for b in 0..r.columns {
                let x = v[from.offset + (l.column + a) * from.columns + r.column + b];
                inner[i * r.columns + b] += entry(l, i, a) * x;
            }
        }
        for (i, j) in (0..l.rows).flat_map(|i| (0..r.rows).map(move |j| (i, j))) {
            let sum: C64 = (0..r.columns).map(|b| inner[i * r.columns + b] * entry(r, j, b)).sum();
            w[target.offset + (l.row + i) * target.columns + r.row + j] += sum;
        }
    };
    for (target, records) in list.panels.iter().zip(&list.records) {
        for record in records {
            match record {
                ProductRecord::Single { source, left, right } => add(target, *source, left, right),
                ProductRecord::Double { source, left, right } => {
                    left.iter().for_each(|l| right.iter().for_each(|r| add(target, *source, l, r)))
                }
            }
        }
    }
    w
}

/// Records of every kind between blocks of uneven sizes, of which one is written by none and one read by none.
fn list<T: Element>() -> RecordList<T> {
    let mut seed = 0;
    let mut next = || {
        seed += 1;
        T::from_c64(number(7, seed, T::DTYPE.is_complex()))
    };
    let mut panels = Vec::new();
    for (rows, columns) in BLOCKS {
        let offset = panels.last().map_or(0, |p: &SectorPanel| p.offset + p.rows * p.columns);
        panels.push(SectorPanel { offset, rows, columns });
    }
    let mut dense = |row: usize, rows: usize, column: usize, columns: usize| OperatorPiece {
        row,
        rows,
        column,
        columns,
        scale: next(),
        matrix: Some(Arc::new(Mat::from_fn(rows, columns, |_, _| next()).into())),
    };
    let identity = |row: usize, column: usize, n: usize| OperatorPiece {
        row,
        rows: n,
        column,
        columns: n,
        scale: T::from_c64(C64::new(0.3, if T::DTYPE.is_complex() { -0.4 } else { 0.0 })),
        matrix: None,
    };
    let mut records: Vec<Vec<ProductRecord<T>>> = (0..BLOCKS.len()).map(|_| Vec::new()).collect();
    for (target, (rows, columns)) in BLOCKS.into_iter().enumerate().skip(1) {
        records[target] = vec![
            ProductRecord::Single {
                source: target,
                left: dense(0, rows, 0, rows),
                right: identity(0, 0, columns),
            },
            ProductRecord::Single {
                source: target,
                left: identity(0, 0, rows),
                right: dense(0, columns, 0, columns),
            },
            ProductRecord::Single {
                source: target,
                left: identity(0, 0, rows),
                right: identity(0, 0, columns),
            },
        ];
        for source in [(target + 1) % 5, (target + 3) % 5] {
            let (from, across) = BLOCKS[source];
            // In two pieces where there is room.
            let (half, part) = (rows / 2, from / 2);
            let left = if half > 0 && part > 0 {
                vec![dense(0, half, 0, part), dense(half, rows - half, part, from - part)]
            } else {
                vec![dense(0, rows, 0, from)]
            };
            records[target].push(ProductRecord::Double {
                source,
                left,
                right: vec![dense(0, columns, 0, across)],
            });
        }
    }
    let dim = panels.last().map_or(0, |p| p.offset + p.rows * p.columns);
    RecordList { dim, panels, records }
}

fn check<T: Element>(device: &Device, list: &RecordList<T>, handling: Handling) {
    let records = T::wrap(Arc::new(list.clone()));
    let kernel = device.prepare(MatrixSpec::Records { records, handling }).expect("a superblock");
    let types = if T::DTYPE.is_complex() { vec![DType::C64] } else { vec![DType::F64, DType::C64] };
    for (dtype, columns) in types.into_iter().flat_map(|t| [(t, 1), (t, 3)]) {
        let (v, x) = block(device, dtype, list.dim, columns, 11);
        let (w, y) = block(device, dtype, list.dim, columns, 12);
        let column =
            |data: &[C64], c: usize| -> Vec<C64> { data.iter().skip(c).step_by(columns).copied().collect() };
        for (alpha, beta, gamma) in [(1.0, 0.0, 0.0), (0.5, -0.25, 0.0), (-0.7, 0.3, 0.9)] {
            let (mut out, mut dots) = (w.clone(), Dots::default());
            kernel.update(Update { alpha, beta, gamma }, &v, &mut out, Some(&mut dots)).expect("a product");
            // A second one finds what the first has left behind.
            let mut again = w.clone();
            kernel.update(Update { alpha, beta, gamma }, &v, &mut again, None).expect("a product");
            let (out, again) = (device.download(&out).expect("it"), device.download(&again).expect("it"));
            assert!(out == again, "{dtype} x {columns}");
            for c in 0..columns {
                let (own, before, found) = (column(&x, c), column(&y, c), column(&out, c));
                let expected: Vec<C64> = product(list, &own)
                    .iter()
                    .zip(own.iter().zip(&before))
                    .map(|(p, (x, y))| alpha * p + beta * x + gamma * y)
                    .collect();
                let scale = expected.iter().map(|z| z.norm()).fold(1.0, f64::max);
                for (k, (a, b)) in found.iter().zip(&expected).enumerate() {
                    assert!((a - b).norm() < 1e-13 * scale, "{dtype} x {columns}, {k}: {a} {b}");
                }
                let dot = |a: &[C64]| a.iter().zip(&own).map(|(a, b)| (a.conj() * b).re).sum::<f64>();
                let close = |a: f64, b: f64| (a - b).abs() < 1e-11 * scale * list.dim as f64;
                assert!(close(dots.vv[c], dot(&own)) && close(dots.wv[c], dot(&expected)), "{dtype} {c}");
            }
        }
    }
}

/// Real and complex records on real and complex vectors; operators that fit and such that travel.
pub fn superblocks(device: &Device) {
    let (real, complex) = (list::<f64>(), list::<C64>());
    for (room, schedule) in [
        (None, Schedule::Together),
        (Some(100_000), Schedule::Together),
        (None, Schedule::FourStreams),
        (None, Schedule::NoStreams),
        (Some(100_000), Schedule::FourStreams),
    ] {
        let handling = Handling { room, schedule };
        check(device, &real, handling);
        check(device, &complex, handling);
    }
}

/// Some rows of a product have the bits that they have in all of it, wherever the range begins and ends; two parts that
/// have come together on each other's cards are the vector.
fn parts<T: Element>(devices: [&Device; 2], list: &RecordList<T>) {
    let handling = Handling { room: None, schedule: Schedule::Together };
    let records = T::wrap(Arc::new(list.clone()));
    let whole = devices[0].prepare(MatrixSpec::Records { records: records.clone(), handling });
    let whole = whole.expect("a superblock");
    let dtype = T::DTYPE;
    let c = Update { alpha: -0.7, beta: 0.0, gamma: 0.9 };
    for (middle, columns) in [(0, 1), (1, 1), (5, 3), (6, 1), (2000, 1), (4601, 3), (4640, 1), (list.dim, 1)]
    {
        let (_, x) = block(devices[0], dtype, list.dim, columns, 11);
        let (_, y) = block(devices[0], dtype, list.dim, columns, 12);
        let upload = |device: &Device, rows: Range<usize>, data: &[C64]| {
            let data = &data[rows.start * columns..rows.end * columns];
            device.upload(dtype, Rows::all(rows.len()), columns, data).expect("a block")
        };
        let mut w = upload(devices[0], 0..list.dim, &y);
        whole.update(c, &upload(devices[0], 0..list.dim, &x), &mut w, None).expect("a product");
        let w = devices[0].download(&w).expect("a product");
        let ranges = [0, 1].map(|part| Ranges::new(vec![0, middle, list.dim], part));
        let shape = VectorShape { dtype, columns, grid: None };
        let peers = devices.map(|device| device.peer_exchange().expect("a GPU"));
        let [mut first, mut second] = [0, 1].map(|k| peers[k].assembly(&ranges[k], shape).expect("an end"));
        let offers = [first.offers(), second.offers()];
        let met = first.accept(&offers[1]).expect("offers") && second.accept(&offers[0]).expect("offers");
        assert_eq!(met, !same(devices), "cards that reach each other");
        let part = |k: usize, x: &BlockVector| {
            let rows = ranges[k].own();
            let kernel = peers[k].prepare_rows(&records, rows.clone(), handling).expect("rows");
            let mut part = upload(devices[k], rows.clone(), &y);
            kernel.update(c, x, &mut part, None).expect("a product");
            let part = devices[k].download(&part).expect("a product");
            assert!(part == w[rows.start * columns..rows.end * columns], "{rows:?} of {columns} columns");
            let beside = Update { beta: 1.0, ..c };
            let mut part = upload(devices[k], rows.clone(), &y);
            let added = kernel.update(beside, x, &mut part, None);
            assert_eq!(added.is_err(), rows.len() < list.dim);
        };
        if !met {
            (0..2).for_each(|k| part(k, &upload(devices[k], 0..list.dim, &x)));
            continue;
        }
        let own = [0, 1].map(|k| upload(devices[k], ranges[k].own(), &x));
        for _ in 0..5 {
            first.send(&own[0]).expect("rows");
            second.send(&own[1]).expect("rows");
            let together = [first.all().expect("all"), second.all().expect("all")];
            (0..2).for_each(|k| part(k, &together[k]));
            for (device, all) in devices.iter().zip(&together) {
                assert!(device.download(all).expect("numbers") == x, "{middle} of {columns} columns");
            }
        }
    }
}

/// Whether both are one card, which waits for nobody else.
fn same(devices: [&Device; 2]) -> bool {
    Arc::ptr_eq(devices[0], devices[1])
}

/// Operators in other bases are the products of their matrices, whatever their sizes; pieces are dense or identities.
pub fn turns(device: &Device) {
    let mut seed = 0;
    let mut random = |rows: usize, columns: usize| {
        seed += 1;
        Mat::from_fn(rows, columns, |i, j| number(seed, i * columns + j, false).re)
    };
    // Rows of the old bases by parts, and of the new ones.
    let old: [&[usize]; 4] = [&[3, 70], &[65], &[1, 40, 90], &[17, 17]];
    let new = [30, 65, 130, 1];
    let bases: Vec<HeldMatrix<f64>> =
        old.iter().zip(new).map(|(parts, new)| random(parts.iter().sum(), new).into()).collect();
    let mut jobs = Vec::new();
    for (to, from) in (0..4).flat_map(|to| (0..4).map(move |from| (to, from))) {
        let mut pieces = Vec::new();
        let mut row = 0;
        for (k, &rows) in old[to].iter().enumerate() {
            let mut column = 0;
            for (l, &columns) in old[from].iter().enumerate() {
                let matrix = match (k + l + to) % 3 {
                    0 => Some(Arc::new(random(rows, columns).into())),
                    1 if rows == columns => None,
                    _ => {
                        column += columns;
                        continue;
                    }
                };
                pieces.push(OperatorPiece { row, rows, column, columns, scale: 0.5 + k as f64, matrix });
                column += columns;
            }
            row += rows;
        }
        jobs.push((to, from, pieces));
    }
    let list: Vec<BasisChange<f64>> = jobs
        .iter()
        .map(|(to, from, pieces)| BasisChange { rows: &bases[*to], columns: &bases[*from], pieces })
        .collect();
    let faster = device.superblocks().expect("a device that turns matrices");
    let numbers = faster.turned(&list).expect("matrices").expect("matrices on the device");
    let numbers = device.download_real(&numbers).expect("numbers").expect("real numbers");
    let mut rest = &numbers[..];
    for ((to, from, pieces), turn) in jobs.iter().zip(&list) {
        let (own, after) = rest.split_at(turn.numbers());
        let found = MatRef::from_column_major_slice(own, turn.rows.ncols(), turn.columns.ncols());
        rest = after;
        let mut a = Mat::<f64>::zeros(bases[*to].nrows(), bases[*from].nrows());
        for f in pieces {
            for (i, j) in (0..f.rows).flat_map(|i| (0..f.columns).map(move |j| (i, j))) {
                a[(f.row + i, f.column + j)] += entry(f, i, j).re;
            }
        }
        let wanted = bases[*to].here().expect("it").transpose() * (&a * bases[*from].here().expect("it"));
        assert_eq!(found.shape(), wanted.shape());
        for (i, j) in (0..wanted.nrows()).flat_map(|i| (0..wanted.ncols()).map(move |j| (i, j))) {
            assert!((found[(i, j)] - wanted[(i, j)]).abs() < 1e-10, "{to} {from}: {i} {j}");
        }
    }
    assert!(rest.is_empty());
}

/// Matrices put together from others, squares, eigenvectors and sums of outer products in the memory of a device are
/// what they are on the host; and so they are once they had to leave that memory.
pub fn kept(device: &Device) {
    let keeper = device.keeper().expect("a device that keeps matrices");
    let mut seed = 100;
    let mut random = |rows: usize, columns: usize| {
        seed += 1;
        Mat::from_fn(rows, columns, |i, j| number(seed, i * columns + j, false).re)
    };
    let (a, b) = (random(70, 40), random(33, 65));
    let (held, other): (HeldMatrix<f64>, HeldMatrix<f64>) = (a.clone().into(), b.clone().into());
    let v = random(50 * 90, 1);
    let numbers: Vec<C64> = (0..50 * 90).map(|k| v[(k, 0)].into()).collect();
    let block = device.upload(DType::F64, Rows::all(numbers.len()), 1, &numbers).expect("a block");
    // A panel of 50 x 90 turned over, its columns backwards, with what else there is on top.
    let term =
        |scale, row, rows, column, columns, from| AddedRectangle { scale, row, rows, column, columns, from };
    let terms = || {
        vec![
            term(0.5, 3, 90, 10, 50, TermSource::Block(&block, 0, [1, 90])),
            term(-2.0, 0, 70, 30, 40, TermSource::Matrix(&held)),
            term(1.0, 40, 33, 1, 65, TermSource::Matrix(&other)),
            term(0.25, 20, 60, 5, 60, TermSource::Identity),
            term(3.0, 60, 50, 0, 7, TermSource::Block(&block, 89, [90, -1])),
        ]
    };
    let mut wanted = Mat::<f64>::zeros(120, 71);
    for (i, j) in (0..120usize).flat_map(|i| (0..71usize).map(move |j| (i, j))) {
        let within = |row: usize, rows: usize, column: usize, columns: usize| {
            let at = (i.checked_sub(row)?, j.checked_sub(column)?);
            (at.0 < rows && at.1 < columns).then_some(at)
        };
        let mut sum = 0.0;
        sum += within(3, 90, 10, 50).map_or(0.0, |(x, y)| 0.5 * v[(y * 90 + x, 0)]);
        sum += within(0, 70, 30, 40).map_or(0.0, |at| -2.0 * a[at]);
        sum += within(40, 33, 1, 65).map_or(0.0, |at| b[at]);
        sum += within(20, 60, 5, 60).map_or(0.0, |(x, y)| if x == y { 0.25 } else { 0.0 });
        sum += within(60, 50, 0, 7).map_or(0.0, |(x, y)| 3.0 * v[(x * 90 + 89 - y, 0)]);
        wanted[(i, j)] = sum;
    }
    let nothing = || Composed { rows: 5, columns: 3, by_rows: true, terms: Vec::new() };
    let composed = [true, false].map(|by_rows| Composed { rows: 120, columns: 71, by_rows, terms: terms() });
    let [by_rows, by_columns] = composed;
    let made = keeper.composed(&[by_rows, nothing(), by_columns]).expect("matrices");
    let numbers = DeviceNumbers::new(device, made).expect("numbers");
    let size = 120 * 71;
    let close = |found: MatRef<'_, f64>, wanted: MatRef<'_, f64>, what: &str| {
        assert_eq!(found.shape(), wanted.shape());
        for (i, j) in (0..wanted.nrows()).flat_map(|i| (0..wanted.ncols()).map(move |j| (i, j))) {
            assert!((found[(i, j)] - wanted[(i, j)]).abs() < 1e-11, "{what}: {i} {j}");
        }
    };
    let places = [(0, true, 120, 71), (size, true, 5, 3), (size + 15, false, 120, 71)];
    let look = || {
        for (first, by_rows, rows, columns) in &places {
            let m = HeldMatrix::<f64>::within(&numbers, *first, (*rows, *columns), *by_rows);
            assert_eq!(m.there().is_some(), numbers.bytes() > 0);
            let zeros = Mat::zeros(5, 3);
            let wanted = if *rows == 5 { zeros.as_ref() } else { wanted.as_ref() };
            close(m.here().expect("a matrix"), wanted, "put together");
        }
    };
    look();
    // A matrix that lies there is taken from there.
    let lying = HeldMatrix::<f64>::within(&numbers, size + 15, (120, 71), false);
    let again = Composed {
        rows: 120,
        columns: 71,
        by_rows: true,
        terms: vec![term(2.0, 0, 120, 0, 71, TermSource::Matrix(&lying))],
    };
    let again = keeper.composed(&[again]).expect("a matrix");
    let again = device.download_part(&again, 0..size).expect("numbers");
    let twice = Mat::from_fn(120, 71, |i, j| 2.0 * wanted[(i, j)]);
    close(MatRef::from_row_major_slice(&again, 120, 71), twice.as_ref(), "again");
    numbers.bring().expect("numbers");
    assert_eq!(numbers.bytes(), 0);
    look();
    close(lying.here().expect("it"), wanted.as_ref(), "brought");

    // Squares, and their eigenvectors in their place.
    let square = |first, rows, weight| Square { from: &block, first, rows, weight };
    let sums = keeper
        .squares(&[
            (9, vec![]),
            (90, vec![square(0, 50, 0.5)]),
            (30, vec![square(60, 20, 1.0), square(900, 100, -2.0)]),
        ])
        .expect("squares");
    let of = |first: usize, rows: usize, columns: usize| {
        Mat::from_fn(rows, columns, |i, j| v[(first + i * columns + j, 0)])
    };
    let own = device.download_part(&sums, 81..81 + 8100 + 900).expect("numbers");
    let m = of(0, 50, 90);
    let wanted = m.transpose() * &m * faer::Scale(0.5);
    close(MatRef::from_column_major_slice(&own[..8100], 90, 90), wanted.as_ref(), "a square");
    let (x, y) = (of(60, 20, 30), of(900, 100, 30));
    let sum = x.transpose() * &x - y.transpose() * &y * faer::Scale(2.0);
    close(MatRef::from_column_major_slice(&own[8100..], 30, 30), sum.as_ref(), "two squares");
    if let Some(values) = keeper.eigh(90, &sums, 81).expect("eigenvalues") {
        let own = device.download_part(&sums, 81..81 + 8100).expect("numbers");
        let vectors = MatRef::from_column_major_slice(&own, 90, 90);
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1]));
        let scaled = Mat::from_fn(90, 90, |i, j| vectors[(i, j)] * values[j]);
        close((&wanted * vectors).as_ref(), scaled.as_ref(), "eigenvectors");
    }
    assert!(keeper.eigh(200, &sums, 81).is_err(), "more rows than there are numbers");

    // A diagonal, whole and in part.
    let panel = |offset, rows, columns| SectorPanel { offset, rows, columns };
    let panels = vec![panel(0, 70, 65), panel(4550, 3, 2)];
    let dim = 4556;
    let column = |m: &Mat<f64>, j: usize| -> Vec<f64> { (0..m.nrows()).map(|i| m[(i, j)]).collect() };
    let outer = |row, rows: Vec<f64>, column, columns: Vec<f64>| Outer { row, rows, column, columns };
    let terms = vec![
        vec![
            outer(0, column(&a, 0), 0, vec![1.0; 65]),
            outer(30, column(&a, 1)[..40].to_vec(), 32, column(&b, 3)),
        ],
        vec![outer(1, vec![2.0], 0, vec![0.5, -1.0])],
    ];
    let diagonal = OuterSums { dim, panels, terms };
    let wanted = diagonal.numbers();
    for range in [0..dim, 1000..4552, 4553..dim, 7..7] {
        let faster = device.superblocks().expect("a device that makes diagonals");
        let found = faster.outer(&diagonal, range.clone()).expect("a diagonal").expect("one on the device");
        let found = device.download_part(&found, 0..range.len()).expect("numbers");
        assert!(found.iter().zip(&wanted[range]).all(|(x, y)| (x - y).abs() < 1e-13));
    }
}

/// Parts of real and complex superblocks on one card or two.
pub fn shared(devices: [&Device; 2]) {
    parts(devices, &list::<f64>());
    parts(devices, &list::<C64>());
}

#[test]
fn a_complex_list_is_the_sum_of_its_parts() {
    let list = list::<C64>();
    let v: Vec<C64> = (0..list.dim).map(|i| number(3, i, true)).collect();
    let [real, imaginary] = list.parts().expect("matrices of the host");
    let (r, i) = (product(&real, &v), product(&imaginary, &v));
    for (k, z) in product(&list, &v).into_iter().enumerate() {
        let sum = r[k] + C64::I * i[k];
        assert!((z - sum).norm() < 1e-12, "{k}: {z} {sum}");
    }
}

/// A matrix that one card keeps is solved by another: eigenvectors take its place, and no other number changes.
pub fn solved_for_another(home: &Device, other: &Device) {
    const ROWS: usize = 210;
    const FIRST: usize = 77;
    let m = Mat::from_fn(ROWS, ROWS, |i, j| number(7, i.min(j) * ROWS + i.max(j), false).re);
    let mut all = vec![C64::from(3.0); FIRST + ROWS * ROWS + 5];
    for (j, i) in (0..ROWS).flat_map(|j| (0..ROWS).map(move |i| (j, i))) {
        all[FIRST + j * ROWS + i] = m[(i, j)].into();
    }
    let block = home.upload(DType::F64, Rows::all(all.len()), 1, &all).expect("a block");
    let keeper = other.keeper().expect("a device that keeps matrices");
    // The library is looked for while other work goes on.
    let found = (0..400).find_map(|_| {
        let found = keeper.eigh_for_other(ROWS, &block, FIRST).expect("values, or none yet");
        if found.is_none() {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        found
    });
    let Some(values) = found else {
        assert!(
            other.dense_solver().is_none(),
            "cards that do not reach each other, or a solver that is not used"
        );
        return;
    };
    assert!(values.is_sorted());
    let numbers = home.download_part(&block, 0..all.len()).expect("numbers");
    let outside = numbers[..FIRST].iter().chain(&numbers[FIRST + ROWS * ROWS..]);
    assert!(outside.copied().all(|x| x == 3.0));
    let x = MatRef::from_column_major_slice(&numbers[FIRST..FIRST + ROWS * ROWS], ROWS, ROWS);
    let image = &m * x;
    for (i, j) in (0..ROWS).flat_map(|i| (0..ROWS).map(move |j| (i, j))) {
        assert!((image[(i, j)] - values[j] * x[(i, j)]).abs() < 1e-10, "{i} {j}");
    }
    let norms = x.transpose() * x;
    assert!((0..ROWS).all(|k| (norms[(k, k)] - 1.0).abs() < 1e-12));
}
