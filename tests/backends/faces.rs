//! Boxes of the lattice of the Wilson-Dirac operator that hand half-spinors to each other: through memory of the host,
//! and from GPU to GPU.

use std::sync::Arc;

use umklapp::backend::exchange::{FaceArrivals, Faced, HALF, Link, PassExtras, VectorShape};
use umklapp::backend::matrix::wilson::{Compression, SiteParity, WilsonBox, WilsonSpec};
use umklapp::backend::{BlockVector, Device, Dots, Grid, Kernel, MatrixSpec, Rows, Update};
use umklapp::number::{C64, DType};

use super::spinors::{block, spec};

/// The lattice of an operator in boxes.
struct Boxes<'a> {
    parts: Vec<WilsonBox<'a>>,
    /// How many in each direction.
    grid: [usize; 4],
    dims: [usize; 4],
    dtype: DType,
}

fn sizes(part: &WilsonBox) -> [usize; 4] {
    std::array::from_fn(|d| part.own[d].len())
}

impl<'a> Boxes<'a> {
    fn new(spec: &'a WilsonSpec, grid: [usize; 4]) -> Boxes<'a> {
        let dims = spec.dims();
        let ends: Vec<Vec<usize>> = dims.iter().zip(grid).map(|(&n, parts)| starts(n, parts)).collect();
        let corners = Grid { dims: grid, per_site: 1 };
        let part = |k: usize| {
            let x = corners.coordinates(k);
            WilsonBox { spec, own: std::array::from_fn(|d| ends[d][x[d]]..ends[d][x[d] + 1]) }
        };
        let parts = (0..corners.sites()).map(part).collect();
        Boxes { parts, grid, dims, dtype: DType::of(spec.single, true) }
    }

    /// Rows of a box among those of the lattice.
    fn rows_of(&self, k: usize) -> Vec<usize> {
        let part = &self.parts[k];
        let (own, all) = (Grid { dims: sizes(part), per_site: 12 }, Grid { dims: self.dims, per_site: 12 });
        let site = |k: usize| {
            let x = own.coordinates(k);
            all.site(std::array::from_fn(|d| x[d] + part.own[d].start))
        };
        (0..12 * own.sites()).map(|row| 12 * site(row / 12) + row % 12).collect()
    }

    /// A box of a vector, on a device.
    fn piece(&self, device: &Device, k: usize, all: &[C64], columns: usize) -> BlockVector {
        let row = |row: &usize| all[row * columns..(row + 1) * columns].iter().copied();
        let data: Vec<C64> = self.rows_of(k).iter().flat_map(row).collect();
        let rows = Rows::on(Grid { dims: sizes(&self.parts[k]), per_site: 12 });
        device.upload(self.dtype, rows, columns, &data).expect("a block")
    }

    /// The box behind the upper or lower face of another.
    fn beside(&self, k: usize, d: usize, upper: bool) -> usize {
        let corners = Grid { dims: self.grid, per_site: 1 };
        let mut x = corners.coordinates(k);
        x[d] = (x[d] + if upper { 1 } else { self.grid[d] - 1 }) % self.grid[d];
        corners.site(x)
    }
}

/// Where boxes of about one size begin.
fn starts(n: usize, parts: usize) -> Vec<usize> {
    (0..=parts).map(|part| n * part / parts).collect()
}

/// Packs of four numbers of 64 bits and eight of 32 have fused products, which shorter ones have not.
fn packed(dims: [usize; 4], single: bool) -> bool {
    dims.iter().filter(|n| *n % 2 == 0).count() >= if single { 3 } else { 2 }
}

fn check_boxes(device: &Device, spec: &WilsonSpec, grid: [usize; 4], columns: usize) {
    let dims = spec.dims();
    let what = format!("{dims:?} in {grid:?}, {:?}, {columns} columns", spec.compression);
    let dtype = DType::of(spec.single, true);
    let whole = device.prepare(MatrixSpec::Wilson(Arc::new(spec.clone()))).expect("a kernel");
    let (v, v_host) = block(device, dtype, whole.rows(), columns, 1);
    let (w, w_host) = block(device, dtype, whole.rows(), columns, 2);
    let (x, x_host) = block(device, dtype, whole.rows(), columns, 3);
    let boxes = Boxes::new(spec, grid);
    let piece = |k: usize, all: &[C64]| boxes.piece(device, k, all, columns);
    let Some(kernels) = boxes
        .parts
        .iter()
        .map(|part| device.host_exchange()?.prepare_box(part).expect("a kernel"))
        .collect::<Option<Vec<Arc<dyn Faced>>>>()
    else {
        return;
    };
    let vectors: Vec<BlockVector> = (0..boxes.parts.len()).map(|k| piece(k, &v_host)).collect();
    // What leaves each box, by direction, through the lower and the upper face.
    let leaving: Vec<Vec<[Vec<u64>; 2]>> = (0..boxes.parts.len())
        .map(|k| {
            let face = |d: usize, upper: bool| {
                let part = &boxes.parts[k];
                let sites: usize = (0..4).filter(|e| *e != d).map(|e| part.own[e].len()).product();
                let mut memory = vec![u64::MAX; VectorShape::of(&vectors[k]).bytes(HALF * sites) / 8];
                if part.is_cut(d) {
                    let to = bytemuck::cast_slice_mut(&mut memory);
                    kernels[k].leave(&vectors[k], (d, upper), to).expect("half-spinors");
                }
                memory
            };
            (0..4).map(|d| [face(d, false), face(d, true)]).collect()
        })
        .collect();
    let same = boxes.parts.iter().all(|part| packed(sizes(part), spec.single) == packed(dims, spec.single));
    let eps = if same {
        0.0
    } else if spec.single {
        2e-4
    } else {
        1e-11
    };
    for (c, plus) in [
        (Update::PRODUCT, false),
        (Update { alpha: -0.7, beta: 0.3, gamma: 1.1 }, false),
        (Update { alpha: 0.4, beta: 0.0, gamma: 0.0 }, true),
    ] {
        let dotted = !plus && spec.sites == SiteParity::All;
        let (mut found, mut sums) = (w.clone(), Dots::default());
        if plus {
            whole.update_plus(c, &v, &mut found, &[(0.4, &x)]).expect("a pass").expect("a product");
        } else {
            whole.update(c, &v, &mut found, dotted.then_some(&mut sums)).expect("a product");
        }
        let expected = device.download(&found).expect("numbers");
        let mut together = Dots { vv: vec![0.0; columns], wv: vec![0.0; columns], partial: false };
        for (k, part) in boxes.parts.iter().enumerate() {
            let mut came: FaceArrivals = Default::default();
            for d in (0..4).filter(|&d| part.is_cut(d)) {
                let (below, above) = (boxes.beside(k, d, false), boxes.beside(k, d, true));
                came[d] =
                    [&leaving[below][d][1], &leaving[above][d][0]].map(|m| Some(bytemuck::cast_slice(m)));
            }
            let (mut w, x) = (piece(k, &w_host), piece(k, &x_host));
            let added = [(0.4, &x)];
            let besides = match (plus, dotted) {
                (true, _) => PassExtras::Plus(&added),
                (_, true) => PassExtras::Dots,
                _ => PassExtras::Nothing,
            };
            for came in [None, Some(&came)] {
                let dots = kernels[k].pass(c, &vectors[k], &mut w, besides, came).expect("a pass");
                together.vv.iter_mut().zip(dots.vv).for_each(|(sum, x)| *sum += x);
                together.wv.iter_mut().zip(dots.wv).for_each(|(sum, x)| *sum += x);
            }
            let numbers = device.download(&w).expect("numbers");
            for (at, row) in boxes.rows_of(k).into_iter().enumerate() {
                for column in 0..columns {
                    let (a, b) = (numbers[at * columns + column], expected[row * columns + column]);
                    assert!((a - b).norm() <= eps, "{what}: row {row} is {a}, not {b}");
                }
            }
        }
        if dotted {
            let size = if spec.single { 1e-4 } else { 1e-11 } * expected.len() as f64;
            for k in 0..columns {
                let far = (together.vv[k] - sums.vv[k]).abs() + (together.wv[k] - sums.wv[k]).abs();
                assert!(far < size, "{what}: dots");
            }
        }
    }
}

/// The operator on boxes that hand half-spinors to each other is that on the whole lattice, to the last bit where packs
/// of the processor have the same products.
pub fn boxes(device: &Device) {
    // Boxes of other sizes than their neighbours, of one site, that meet one neighbour on both sides,
    // that meet themselves.
    for (number, (dims, grid)) in [
        ([4, 4, 4, 4], [1, 1, 1, 2]),
        ([4, 4, 4, 4], [2, 2, 2, 2]),
        ([8, 4, 6, 4], [2, 1, 3, 2]),
        ([6, 3, 2, 5], [3, 1, 2, 2]),
        ([3, 5, 3, 3], [2, 2, 1, 3]),
        ([2, 2, 2, 4], [1, 1, 1, 4]),
        ([2, 6, 4, 1], [2, 3, 1, 1]),
        ([5, 2, 3, 7], [1, 2, 1, 3]),
        ([6, 4, 2, 2], [1, 1, 1, 1]),
    ]
    .into_iter()
    .enumerate()
    {
        let base = WilsonSpec { sign: [1.0, -1.0, 1.0, -1.0], ..spec(dims, number as u64) };
        for compression in [Compression::Full, Compression::Twelve, Compression::Eight] {
            for single in [false, true] {
                check_boxes(device, &WilsonSpec { compression, single, ..base.clone() }, grid, 1);
            }
        }
        for (gamma5, adjoint) in [(false, true), (true, false), (true, true)] {
            check_boxes(device, &WilsonSpec { gamma5, adjoint, ..base.clone() }, grid, 2);
        }
        for sites in [SiteParity::Even, SiteParity::Odd] {
            check_boxes(device, &WilsonSpec { sites, diagonal: 0.0, ..base.clone() }, grid, 1);
            check_boxes(device, &WilsonSpec { sites, single: true, ..base.clone() }, grid, 3);
        }
        check_boxes(device, &WilsonSpec { sign: [0.0, 1.0, -1.0, 0.0], ..base }, grid, 1);
    }
}

/// Whether a box on an NVIDIA GPU has a product that takes the exchange in: it is cut in time alone, and its sites come
/// in whole groups of 32.
fn crosses(part: &WilsonBox, columns: usize) -> bool {
    let in_time = (0..4).all(|d| part.is_cut(d) == (d == 3));
    in_time && columns == 1 && sizes(part).iter().product::<usize>().is_multiple_of(64)
}

/// Boxes on two GPUs by turns, so that what is behind a face is on the other one.
fn check_linked(devices: [&Device; 2], spec: &WilsonSpec, grid: [usize; 4], columns: usize) {
    let what = format!(
        "{:?} in {grid:?}, {:?}, single {}, gamma5 {}, adjoint {}, {:?}, {columns} columns",
        spec.dims(),
        spec.compression,
        spec.single,
        spec.gamma5,
        spec.adjoint,
        spec.sites
    );
    let boxes = Boxes::new(spec, grid);
    let whole = devices[0].prepare(MatrixSpec::Wilson(Arc::new(spec.clone()))).expect("a kernel");
    let (v, v_host) = block(devices[0], boxes.dtype, whole.rows(), columns, 1);
    let (w, w_host) = block(devices[0], boxes.dtype, whole.rows(), columns, 2);
    let device_of = |k: usize| {
        let corner = Grid { dims: grid, per_site: 1 }.coordinates(k);
        devices[corner.iter().sum::<usize>() % 2]
    };
    let all = 0..boxes.parts.len();
    let kernels: Vec<Arc<dyn Kernel>> = all
        .clone()
        .map(|k| device_of(k).peer_exchange().expect("a GPU").prepare_linked(&boxes.parts[k]).expect("a box"))
        .collect();
    let vectors: Vec<BlockVector> =
        all.clone().map(|k| boxes.piece(device_of(k), k, &v_host, columns)).collect();
    let mut links: Vec<Box<dyn Link>> = all
        .clone()
        .map(|k| {
            let shape = VectorShape::of(&vectors[k]);
            kernels[k].link_faces(&boxes.parts[k].faces(), shape).expect("a link").expect("a link")
        })
        .collect();
    let offers: Vec<Vec<Vec<u8>>> = links.iter().map(|link| link.offers()).collect();
    for (k, link) in links.iter_mut().enumerate() {
        // The upper face of each direction goes before the lower one, to the lower face of the box behind it.
        let faces = boxes.parts[k].faces();
        let to =
            |at: usize| offers[boxes.beside(k, faces[at ^ 1].direction, faces[at ^ 1].upper)][at].clone();
        let taken: Vec<Vec<u8>> = (0..faces.len()).map(to).collect();
        assert!(link.accept(&taken).expect("offers"), "{what}: a GPU that does not reach the other");
    }
    let eps = match (spec.single, spec.compression) {
        (true, _) => 2e-5,
        (false, Compression::Eight) => 1e-11,
        _ => 1e-12,
    };
    for c in [
        Update::PRODUCT,
        Update { alpha: -0.7, beta: 0.3, gamma: 1.1 },
        Update { alpha: 0.4, beta: 0.0, gamma: -1.0 },
    ] {
        let dotted = spec.sites == SiteParity::All;
        let (mut found, mut sums) = (w.clone(), Dots::default());
        whole.update(c, &v, &mut found, dotted.then_some(&mut sums)).expect("a product");
        let expected = devices[0].download(&found).expect("numbers");
        // Neighbours may do either: a product that takes the exchange in, or what leaves, the product and what has come
        // one after the other. Of several boxes on a GPU the first would wait for one behind another.
        let crossing = all.clone().map(|k| boxes.parts.len() == 2 && crosses(&boxes.parts[k], columns));
        let crossing: Vec<bool> = crossing.collect();
        for ways in [[false, false], [true, true], [true, false], [false, true]] {
            let crosses = |k: usize| ways[k % 2] && crossing[k];
            if ways.contains(&true) && !crossing.contains(&true) {
                continue;
            }
            let besides = if dotted { PassExtras::Dots } else { PassExtras::Nothing };
            let mut together = Dots { vv: vec![0.0; columns], wv: vec![0.0; columns], partial: false };
            let mut later = Vec::new();
            for k in all.clone().filter(|&k| !crosses(k)) {
                links[k].send(Some(&vectors[k])).expect("half-spinors");
            }
            let mut results: Vec<BlockVector> =
                all.clone().map(|k| boxes.piece(device_of(k), k, &w_host, columns)).collect();
            for (k, w) in results.iter_mut().enumerate() {
                if crosses(k) {
                    let done =
                        kernels[k].pass_linked(&mut *links[k], c, &vectors[k], w, besides).expect("a pass");
                    later.extend(done.expect("a product that takes the exchange in"));
                } else if dotted {
                    later.push(kernels[k].update_later(c, &vectors[k], w).expect("a pass"));
                } else {
                    kernels[k].update(c, &vectors[k], w, None).expect("a pass");
                }
            }
            for k in all.clone().filter(|&k| !crosses(k)) {
                let v = dotted.then_some(&vectors[k]);
                later.extend(links[k].add(c.alpha, Some(&mut results[k]), v).expect("sums"));
            }
            for (k, w) in results.into_iter().enumerate() {
                let numbers = device_of(k).download(&w).expect("numbers");
                for (at, row) in boxes.rows_of(k).into_iter().enumerate() {
                    for column in 0..columns {
                        let (a, b) = (numbers[at * columns + column], expected[row * columns + column]);
                        assert!((a - b).norm() < eps * 20.0, "{what}, {ways:?}: row {row} is {a}, not {b}");
                    }
                }
            }
            for dots in later {
                let dots = dots().expect("products");
                together.vv.iter_mut().zip(dots.vv).for_each(|(sum, x)| *sum += x);
                together.wv.iter_mut().zip(dots.wv).for_each(|(sum, x)| *sum += x);
            }
            let size = eps * (1.0 + expected.len() as f64);
            for k in (0..columns).filter(|_| dotted) {
                let far = (together.vv[k] - sums.vv[k]).abs() + (together.wv[k] - sums.wv[k]).abs();
                assert!(far < size, "{what}, {ways:?}: dots differ by {far}");
            }
        }
    }
}

/// Half-spinors that GPUs write to each other, around corners too, are those of the operator on the whole lattice.
pub fn linked(devices: [&Device; 2]) {
    // Boxes of one site in a direction, that meet one neighbour on both sides, that are cut in all directions.
    for (number, (dims, grid)) in [
        ([4, 4, 4, 4], [1, 1, 1, 2]),
        ([4, 4, 4, 4], [2, 2, 2, 2]),
        ([8, 4, 6, 4], [2, 1, 2, 2]),
        ([6, 3, 4, 5], [2, 1, 4, 1]),
        ([2, 2, 2, 4], [2, 1, 1, 4]),
        ([3, 6, 5, 2], [1, 2, 2, 1]),
        // Two boxes of whole groups of sites: of one time, of two, of times that do not halve, cut elsewhere, and of
        // sizes that differ.
        ([4, 4, 4, 2], [1, 1, 1, 2]),
        ([8, 4, 4, 4], [1, 1, 1, 2]),
        ([4, 8, 2, 13], [1, 1, 1, 2]),
        ([8, 4, 6, 4], [1, 1, 2, 1]),
        ([4, 16, 4, 3], [1, 2, 1, 1]),
        ([12, 4, 4, 8], [2, 1, 1, 1]),
        ([16, 8, 8, 24], [1, 1, 1, 2]),
    ]
    .into_iter()
    .enumerate()
    {
        let base = WilsonSpec { sign: [1.0, -1.0, 1.0, -1.0], ..spec(dims, number as u64) };
        for compression in [Compression::Full, Compression::Twelve, Compression::Eight] {
            for single in [false, true] {
                // Random links are too much for 8 reals of 32 bits.
                if !single || compression != Compression::Eight {
                    check_linked(devices, &WilsonSpec { compression, single, ..base.clone() }, grid, 1);
                }
            }
        }
        for (gamma5, adjoint) in [(false, true), (true, false), (true, true)] {
            check_linked(devices, &WilsonSpec { gamma5, adjoint, ..base.clone() }, grid, 2);
        }
        for sites in [SiteParity::Even, SiteParity::Odd] {
            check_linked(devices, &WilsonSpec { sites, diagonal: 0.0, ..base.clone() }, grid, 1);
            check_linked(devices, &WilsonSpec { sites, single: true, ..base.clone() }, grid, 3);
        }
        check_linked(devices, &WilsonSpec { sign: [0.0, 1.0, -1.0, 0.0], ..base }, grid, 1);
    }
}
