//! Assembled models against closed forms, and the two formats against each other.

use proptest::prelude::*;

use super::plan::{ModelRows, RowPlan};
use super::*;
use crate::backend::matrix::{Csr, Wrap};
use crate::error::ErrorKind;
use crate::number::C64;
use crate::task::Task;

const I: C64 = C64::new(0.0, 1.0);

fn number(z: impl Into<C64>) -> OrbitalBlock {
    OrbitalBlock::scalar(1, z)
}

fn nearest(lattice: Lattice) -> Model {
    let mut model = Model::new(lattice, 1).unwrap();
    model.nearest(&number(-1.0)).unwrap();
    model
}

fn multiply(h: &Csr, v: &[C64]) -> Vec<C64> {
    (0..h.rows)
        .map(|i| (h.row_start[i]..h.row_start[i + 1]).map(|k| h.values.get(k) * v[h.columns.get(k)]).sum())
        .collect()
}

/// Tr H^k / D for k = 0, 1, ..., 2 * `half`, over the given rows.
fn moments(h: &Csr, rows: impl Iterator<Item = usize>, half: usize) -> Vec<f64> {
    let mut sums = vec![0.0; 2 * half + 1];
    let mut count = 0.0;
    for row in rows {
        let mut v = vec![C64::ZERO; h.rows];
        v[row] = C64::ONE;
        sums[0] += 1.0;
        for k in 0..half {
            let w = multiply(h, &v);
            sums[2 * k + 1] += w.iter().zip(&v).map(|(a, b)| (a.conj() * b).re).sum::<f64>();
            sums[2 * k + 2] += w.iter().map(|z| z.norm_sqr()).sum::<f64>();
            v = w;
        }
        count += 1.0;
    }
    sums.iter().map(|s| s / count).collect()
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (k, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() < 1e-11 * b.abs().max(1.0), "moment {k}: {a} instead of {b}");
    }
}

fn dense(h: &Csr) -> faer::Mat<C64> {
    let mut m = faer::Mat::zeros(h.rows, h.cols);
    for i in 0..h.rows {
        for k in h.row_start[i]..h.row_start[i + 1] {
            m[(i, h.columns.get(k))] += h.values.get(k);
        }
    }
    m
}

fn spectrum(h: &Csr) -> Vec<f64> {
    dense(h).self_adjoint_eigenvalues(faer::Side::Lower).unwrap()
}

#[test]
fn power_moments_of_the_named_lattices() {
    let even = |list: &[f64]| -> Vec<f64> {
        let mut all: Vec<f64> = list.iter().flat_map(|&m| [m, 0.0]).collect();
        all.pop();
        all
    };
    let found = |l: Lattice, half| moments(&nearest(l).to_csr(false).unwrap(), 0..1, half);
    close(&found(Lattice::chain(11).unwrap(), 5), &even(&[1.0, 2.0, 6.0, 20.0, 70.0, 252.0]));
    close(&found(Lattice::square(11, 11).unwrap(), 5), &even(&[1.0, 4.0, 36.0, 400.0, 4900.0, 63504.0]));
    let cubic = Lattice::cubic(11, 11, 11).unwrap();
    close(&found(cubic, 5), &even(&[1.0, 6.0, 90.0, 1860.0, 44730.0, 1172556.0]));
    let honeycomb = Lattice::honeycomb(8, 8).unwrap();
    close(&found(honeycomb, 5), &even(&[1.0, 3.0, 15.0, 93.0, 639.0, 4653.0]));
    // the moments of these count closed walks: triangles make the odd ones
    close(&found(Lattice::triangular(8, 8).unwrap(), 2), &[1.0, 0.0, 6.0, -12.0, 90.0]);
    close(&found(Lattice::kagome(6, 6).unwrap(), 2), &[1.0, 0.0, 4.0, -4.0, 28.0]);
    close(&found(Lattice::bcc(8, 8, 8).unwrap(), 3), &even(&[1.0, 8.0, 216.0, 8000.0]));
    close(&found(Lattice::fcc(8, 8, 8).unwrap(), 2), &[1.0, 0.0, 12.0, -48.0, 540.0]);
    close(&found(Lattice::diamond(8, 8, 8).unwrap(), 3), &even(&[1.0, 4.0, 28.0, 256.0]));
    close(&found(Lattice::hypercubic(&[5; 4]).unwrap(), 2), &even(&[1.0, 8.0, 168.0]));
}

#[test]
fn neighbours_are_a_bond_apart() {
    let lattices = [
        (Lattice::honeycomb(4, 4), 3, 1.0 / 3f64.sqrt()),
        (Lattice::kagome(4, 4), 4, 0.5),
        (Lattice::triangular(4, 4), 6, 1.0),
        (Lattice::bcc(4, 4, 4), 8, 0.75f64.sqrt()),
        (Lattice::fcc(4, 4, 4), 12, 0.5f64.sqrt()),
        (Lattice::diamond(4, 4, 4), 4, 3f64.sqrt() / 4.0),
    ];
    for (lattice, count, length) in lattices {
        let lattice = lattice.unwrap();
        for s in 0..lattice.basis().len() {
            let site = lattice.site(&vec![1; lattice.dimension()], s).unwrap();
            assert_eq!(lattice.neighbors(site).unwrap().len(), count, "{lattice}");
            let here = lattice.position(site).unwrap();
            for other in lattice.neighbors(site).unwrap() {
                let there = lattice.position(other).unwrap();
                let near = here.iter().zip(&there).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                assert!((near - length).abs() < 1e-12 || near > 1.5 * length, "{lattice}: {near}");
            }
        }
    }
}

/// Equation (1) of Kreutzer, Hager, Wellein, Pieper, Alvermann, Fehske, IPDPS 2015, 417.
fn insulator(lattice: Lattice) -> Model {
    let (one, zero) = (C64::ONE, C64::ZERO);
    let s = [[one, zero, zero, one], [zero, one, one, zero], [zero, -I, I, zero], [one, zero, zero, -one]];
    let kron = |a: usize, b: usize| {
        let entry = |k: usize| s[a][k / 8 * 2 + k % 4 / 2] * s[b][k / 4 % 2 * 2 + k % 2];
        OrbitalBlock::new(4, (0..16).map(entry).collect()).unwrap()
    };
    let gamma = [kron(3, 0), kron(1, 1), kron(1, 2), kron(1, 3)];
    let scaled =
        |b: &OrbitalBlock, z: C64| OrbitalBlock::new(4, b.entries().iter().map(|x| x * z).collect()).unwrap();
    let mut model = Model::new(lattice, 4).unwrap();
    model.onsite(&scaled(&gamma[0], C64::from(2.0))).unwrap();
    for j in 0..3 {
        let mut shift = [0; 3];
        shift[j] = 1;
        let mut block = scaled(&gamma[0], C64::from(-0.5));
        block.add(&scaled(&gamma[j + 1], I * 0.5));
        model.hop(&shift, &block).unwrap();
    }
    model
}

#[test]
fn topological_insulator() {
    let bulk = insulator(Lattice::cubic(8, 8, 8).unwrap()).to_csr(false).unwrap();
    assert_eq!(bulk.entries(), 13 * bulk.rows);
    close(&moments(&bulk, 0..4, 3), &[1.0, 0.0, 7.0, 0.0, 76.0, 0.0, 1060.0]);
    let open = [Wrap::Phase(C64::ONE), Wrap::Phase(C64::ONE), Wrap::Open];
    let slab = insulator(Lattice::cubic(6, 6, 6).unwrap().boundary(&open).unwrap()).to_csr(false).unwrap();
    let m = moments(&slab, 0..slab.rows, 2);
    assert!((m[2] - 6.833333333333).abs() < 1e-11 && (m[4] - 72.166666666667).abs() < 1e-11, "{m:?}");
    let levels = spectrum(&slab);
    assert!((levels[levels.len() - 1] - 4.915500013838581).abs() < 1e-12);
}

#[test]
fn haldane() {
    let mut model = nearest(Lattice::honeycomb(24, 24).unwrap());
    let t2 = number(0.1 * I);
    for (s, sign) in [(0, 1), (1, -1)] {
        for shift in [[1, 0], [-1, 1], [0, -1]] {
            model.hop_between(&shift.map(|x| x * sign), s, s, &t2).unwrap();
        }
        model.sublattice(s, &number(0.2 * f64::from(sign as i32))).unwrap();
    }
    let h = model.to_csr(false).unwrap();
    let m = moments(&h, 0..2, 2);
    assert!((m[2] - 3.1).abs() < 1e-12 && (m[4] - 15.385).abs() < 1e-11, "{m:?}");
    let levels = spectrum(&h);
    let gap = levels.iter().map(|e| e.abs()).fold(f64::MAX, f64::min);
    assert!((gap - 0.31961524227066324).abs() < 1e-12, "{gap}");
    assert!((levels[levels.len() - 1] - 3.0066592756745814).abs() < 1e-12);
}

#[test]
fn flux_through_the_square_lattice() {
    let mut model = nearest(Lattice::square(12, 12).unwrap());
    model.flux(1.0 / 3.0, 0, 1).unwrap();
    let h = model.to_csr(false).unwrap();
    close(&moments(&h, 0..h.rows, 3), &[1.0, 0.0, 4.0, 0.0, 24.0, 0.0, 148.0]);
    let levels = spectrum(&h);
    assert!((levels[levels.len() - 1] - 2.732050807569).abs() < 1e-11);
    // one quantum through the whole torus: the smallest field that fits
    let mut model = nearest(Lattice::square(5, 7).unwrap());
    model.flux(1.0 / 35.0, 1, 0).unwrap();
    let m = moments(&model.to_csr(false).unwrap(), 0..35, 2);
    let expected = 28.0 + 8.0 * (std::f64::consts::TAU / 35.0).cos();
    assert!((m[4] - expected).abs() < 1e-12);
    let e = nearest(Lattice::square(12, 12).unwrap()).flux(0.1, 0, 1).unwrap_err();
    assert!(e.message().contains("must be a whole number"), "{e}");
}

#[test]
fn flux_is_gauge_covariant_on_the_honeycomb_lattice() {
    // every hexagon sees the same field, wherever the boundary is: all local moments agree
    let mut model = nearest(Lattice::honeycomb(6, 5).unwrap());
    model.flux(1.0 / 30.0, 0, 1).unwrap();
    let h = model.to_csr(false).unwrap();
    let first = moments(&h, 0..1, 3);
    for row in 0..h.rows {
        close(&moments(&h, row..row + 1, 3), &first);
    }
    // of the 93 closed walks of six steps, six go round a hexagon, three in each sense
    assert!((first[6] - (87.0 + 6.0 * (std::f64::consts::TAU / 30.0).cos())).abs() < 1e-11, "{first:?}");
}

#[test]
fn quasiperiodic_on_site_energies() {
    let mut model = nearest(Lattice::cubic(8, 8, 8).unwrap());
    let phi = (5f64.sqrt() - 1.0) / 2.0;
    let mut site = 0.0;
    let mut v = |r: &[f64]| {
        assert_eq!(r[2] * 64.0 + r[1] * 8.0 + r[0], site);
        site += 1.0;
        Ok(number((site * phi).fract() - 0.5))
    };
    model.onsite_with(&mut v, &Task::default()).unwrap();
    let h = model.to_csr(false).unwrap();
    let m = moments(&h, 0..h.rows, 2);
    assert!((m[1] - 0.00032748934804249785).abs() < 1e-14);
    assert!((m[2] - 6.083043098345136).abs() < 1e-12 && (m[4] - 91.92786920048569).abs() < 1e-10, "{m:?}");
    let levels = spectrum(&h);
    assert!((levels[0] + 6.014907082657).abs() < 1e-11 && (levels[511] - 6.015540730321).abs() < 1e-11);
    assert!(model.not_a_stencil().is_none());
}

#[test]
fn disorder_has_its_variance() {
    let mut model = nearest(Lattice::cubic(32, 32, 32).unwrap());
    model.disorder(1.0, 7).unwrap();
    let h = model.stencil_along(&[], false).unwrap();
    let d = h.diagonal.unwrap().numbers().unwrap();
    let second = d.iter().map(|x| x * x).sum::<f64>() / d.len() as f64;
    assert!((second - 1.0 / 12.0).abs() < 2e-3 && d.iter().all(|x| x.abs() < 0.5));
}

#[test]
fn antiperiodic_chain() {
    let lattice = Lattice::chain(8).unwrap().boundary(&[Wrap::Phase(-C64::ONE)]).unwrap();
    let h = nearest(lattice).to_csr(false).unwrap();
    let lowest = -2.0 * (std::f64::consts::PI / 8.0).cos();
    assert!((spectrum(&h)[0] - lowest).abs() < 1e-13);
}

#[test]
fn strain_rescales_by_the_length() {
    let mut model = nearest(Lattice::chain(10).unwrap().boundary(&[Wrap::Open]).unwrap());
    let mut map = |r: &[f64]| Ok(vec![r[0] * r[0]]);
    model.strain(&mut map, &mut |new, old| Ok(old / new), &Task::default()).unwrap();
    let h = model.to_csr(false).unwrap();
    assert!((dense(&h)[(2, 3)].re + 1.0 / 5.0).abs() < 1e-15);
    assert!((dense(&h)[(3, 2)].re + 1.0 / 5.0).abs() < 1e-15);
}

#[test]
fn strain_of_many_cells_is_that_of_each_bond() {
    let task = Task::default();
    let map = |r: &[f64]| -> Vec<f64> { r.iter().map(|x| 1.1 * x + 0.01 * x * x + 0.02 * r[0]).collect() };
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    let named =
        [Lattice::chain(70), Lattice::honeycomb(9, 8), Lattice::cubic(5, 4, 4), Lattice::kagome(8, 9)];
    for (lattice, holes) in named.into_iter().flat_map(|l| [(l.clone(), false), (l, true)]) {
        let open = lattice.unwrap();
        let mut model = nearest(open.boundary(&vec![Wrap::Open; open.dimension()]).unwrap());
        model.onsite(&number(0.5)).unwrap();
        if holes {
            model.remove(&mut |r| Ok((r[0] - 2.0).abs() < 0.3), &task).unwrap();
        }
        model.strain(&mut |r| Ok(map(r)), &mut |new, old| Ok(old / new), &task).unwrap();
        let (h, lattice) = (dense(&model.to_csr(false).unwrap()), model.lattice());
        let places: Vec<Vec<f64>> = (0..model.rows()).map(|i| lattice.position(i).unwrap()).collect();
        for i in 0..model.rows() {
            let beside = lattice.neighbors(i).unwrap();
            for j in 0..model.rows() {
                let bond = || distance(&places[i], &places[j]) / distance(&map(&places[i]), &map(&places[j]));
                let expected = if i == j { 0.5 } else { beside.contains(&j).then(bond).map_or(0.0, |x| -x) };
                assert!((h[(i, j)] - expected).norm() < 1e-13, "{lattice} {i} {j}: {}", h[(i, j)]);
            }
        }
    }
}

#[test]
fn removal_renumbers() {
    let mut model = Model::new(Lattice::square(4, 4).unwrap(), 1).unwrap();
    let task = Task::default();
    model.onsite_with(&mut |r| Ok(number(r[0] + 10.0 * r[1])), &task).unwrap();
    model.nearest(&number(-1.0)).unwrap();
    model.remove(&mut |r| Ok(r[0] == 1.0), &task).unwrap();
    assert_eq!(model.rows(), 12);
    let h = dense(&model.to_csr(false).unwrap());
    assert_eq!(h[(1, 1)].re, 2.0);
    assert_eq!(model.lattice().position(1).unwrap(), [2.0, 0.0]);
    assert!(model.lattice().site(&[1, 0], 0).is_err());
    let geometry = Geometry::new(model.lattice().clone(), 1);
    assert_eq!(geometry.layer(1, 1).unwrap(), [3, 4, 5]);
    let thinned = Lattice::cubic(20, 20, 20).unwrap().vacancies(0.25, 3).unwrap();
    assert!((thinned.sites() as f64 / 8000.0 - 0.75).abs() < 0.02);
}

#[test]
fn vacancies_leave_the_elements_between_the_sites_that_stay() {
    let block = |z: [C64; 4]| OrbitalBlock::new(2, z.to_vec()).unwrap();
    for (wrap, fraction) in [(Wrap::Open, 0.1), (Wrap::Phase(-I), 0.1), (Wrap::Phase(C64::ONE), 0.9)] {
        let lattice = Lattice::honeycomb(11, 9).unwrap().boundary(&[wrap, Wrap::Open]).unwrap();
        let mut model = Model::new(lattice, 2).unwrap();
        model.nearest(&block([C64::new(-1.0, 0.0), 0.3 * I, 0.2.into(), C64::new(0.5, -0.1)])).unwrap();
        model.hop(&[1, 0], &block([0.1.into(), I, C64::ZERO, 0.7.into()])).unwrap();
        model.onsite(&block([0.4.into(), 0.2 * I, -0.2 * I, C64::ZERO])).unwrap();
        let whole = dense(&model.to_csr(false).unwrap());
        model.vacancies(fraction, 5).unwrap();
        let stays = model.lattice().kept.as_ref().unwrap().full.clone();
        let rest = model.to_csr(false).unwrap();
        let found = dense(&rest);
        assert!(rest.rows == 2 * stays.len() && stays.len() < 198);
        for i in 0..rest.rows {
            for j in 0..rest.rows {
                let full = |row: usize| 2 * stays[row / 2] + row % 2;
                assert_eq!(found[(i, j)], whole[(full(i), full(j))], "{i} {j}");
            }
            let columns: Vec<usize> =
                (rest.row_start[i]..rest.row_start[i + 1]).map(|k| rest.columns.get(k)).collect();
            assert!(columns.is_sorted_by(|a, b| a < b), "row {i}");
        }
    }
}

#[test]
fn rows_that_cells_share_are_those_that_a_site_generates() {
    let block = |z: [f64; 4]| OrbitalBlock::new(2, z.map(C64::from).to_vec()).unwrap();
    let mut shared = 0;
    for (wrap, fraction) in [(Wrap::Open, 0.0), (Wrap::Phase(-I), 0.2), (Wrap::Phase(C64::ONE), 0.9)] {
        for kind in 0..6 {
            let lattice = Lattice::honeycomb(11, 9).unwrap().boundary(&[wrap, Wrap::Open]).unwrap();
            let mut model = Model::new(lattice, 2).unwrap();
            model.nearest(&block([-1.0, 0.3, 0.0, 0.5])).unwrap();
            if kind != 0 {
                model.sublattice(1, &block([0.4, 0.1, 0.1, 0.0])).unwrap();
            }
            if kind == 2 {
                model.pair(&block([0.1, 0.0, 0.0, 0.2]), PairedParticles::Singlet).unwrap();
                model.zeeman(&block([0.3, 0.0, 0.0, 0.3])).unwrap();
            }
            // Also energies that are zero, or become it on the second sublattice: such entries are left out.
            let cancel = |r: &[f64]| if r[0] > 4.0 { -0.4 } else { 0.0 };
            if kind < 3 {
                model.disorder(1.0, 3).unwrap();
            }
            model.vacancies(fraction, 5).unwrap();
            let sites = model.lattice().sites();
            let task = Task::default();
            match kind {
                0..=2 => model.disorder(0.7, 4).unwrap(),
                3 => model.onsite_each((0..sites).map(|i| [0.0, -0.4, 0.7][i % 3]).collect()).unwrap(),
                4 => model.onsite_with(&mut |r| Ok(block([cancel(r), 0.0, 0.0, 0.0])), &task).unwrap(),
                _ => model.onsite_with(&mut |r| Ok(block([1.0, 0.0, 0.0, cancel(r)])), &task).unwrap(),
            }
            if kind == 5 {
                // A table that joins orbitals: no rows are shared.
                model.onsite_with(&mut |r| Ok(block([0.0, r[1], r[1], 0.0])), &task).unwrap();
            }
            let plan = RowPlan::new(&model, &[]);
            let n = model.rows() / sites;
            let (mut one, mut other, mut counts) = (ModelRows::new(n), ModelRows::new(n), vec![0; n]);
            for site in 0..sites {
                plan.site(site, &mut one);
                let mut found = Vec::new();
                plan.each(site, &mut other, |column, value| found.push((column, value)));
                shared += usize::from(plan.each_same(site, &mut other, |_, _, _| {}));
                assert_eq!(found, one.rows.concat(), "site {site} of kind {kind}, {fraction}");
                plan.count(site, &mut other, &mut counts);
                assert_eq!(counts, one.rows.iter().map(Vec::len).collect::<Vec<_>>(), "site {site}");
            }
            assert!(kind != 5 || shared > 0);
        }
    }
    // All kinds but the last, in the cells away from the boundaries.
    assert!(shared > 5 * 2 * 9 * 7, "{shared}");
}

#[test]
fn functions_that_are_the_same_everywhere_make_a_stencil() {
    let task = Task::default();
    let task = &task;
    for (lattice, fraction, nowhere) in [
        (Lattice::honeycomb(5, 4).unwrap(), 0.0, 0),
        (Lattice::honeycomb(5, 4).unwrap(), 0.3, 0),
        (Lattice::honeycomb(5, 4).unwrap().boundary(&[Wrap::Open, Wrap::Phase(C64::ONE)]).unwrap(), 0.0, 0),
        // The bond along the first vector, and back, is nowhere: no function was asked for its value.
        (Lattice::square(1, 6).unwrap().boundary(&[Wrap::Open, Wrap::Phase(-C64::ONE)]).unwrap(), 0.0, 2),
    ] {
        let basis = lattice.basis().len();
        let mut constants = Model::new(lattice, 1).unwrap();
        if fraction > 0.0 {
            constants.vacancies(fraction, 2).unwrap();
        }
        let mut functions = constants.clone();
        constants.nearest(&number(-1.5)).unwrap();
        constants.onsite(&number(0.25)).unwrap();
        functions.nearest_with(&mut |a, b| Ok(number(if a == b { 1.0 } else { -1.5 })), task).unwrap();
        functions.onsite_with(&mut |_| Ok(number(0.25)), task).unwrap();
        if basis == 2 {
            // A mass that alternates with the sublattice; zeros of both signs are one number.
            constants.sublattice(1, &number(-0.5)).unwrap();
            let above = |r: &[f64]| ((r[1] / (0.75f64.sqrt())).fract().abs() - 0.5).abs() < 0.4;
            functions
                .onsite_with(&mut |r| Ok(number(if above(r) { -0.5 } else { 0.0 * -r[0] })), task)
                .unwrap();
        }
        let dense = |model: &Model| dense(&model.to_csr(false).unwrap());
        assert_eq!(dense(&functions), dense(&constants));
        assert_eq!(functions.not_a_stencil().is_none(), fraction == 0.0);
        if fraction == 0.0 {
            let [a, b] = [&functions, &constants].map(|model| model.stencil_along(&[], false).unwrap());
            assert!(a.diagonal.is_none() && b.diagonal.is_none());
            assert_eq!(a.terms.len() + nowhere, b.terms.len());
        }
        // One bond that differs is enough.
        functions.nearest_with(&mut |a, _| Ok(number(f64::from(a[1] > 2.0))), task).unwrap();
        assert_eq!(functions.not_a_stencil().is_some_and(|why| why.contains("hoppings")), fraction == 0.0);
    }
}

#[test]
fn bad_input_is_a_sentence() {
    let huge = Lattice::cubic(10_000, 10_000, 10_000).unwrap();
    let e = nearest(huge).assemble(AssemblyForm::Auto, false).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Memory);
    assert!(Lattice::cubic(usize::MAX, 2, 2).is_err());
    assert!(Lattice::cubic(1 << 40, 1 << 40, 1 << 40).is_err());
    assert!(Lattice::chain(0).is_err());
    let mut model = Model::new(Lattice::chain(4).unwrap(), 2).unwrap();
    assert!(model.hop(&[1], &OrbitalBlock::scalar(2, f64::NAN)).is_err());
    assert!(model.hop(&[0], &OrbitalBlock::scalar(2, 1.0)).is_err());
    assert!(model.hop(&[1, 0], &OrbitalBlock::scalar(2, 1.0)).is_err());
    assert!(model.hop(&[1], &OrbitalBlock::scalar(1, 1.0)).is_err());
    let e = model.onsite(&OrbitalBlock::scalar(2, I)).unwrap_err();
    assert!(e.message().contains("not Hermitian"), "{e}");
    assert!(Lattice::chain(4).unwrap().site(&[4], 0).is_err());
    assert!(Lattice::chain(4).unwrap().boundary(&[Wrap::Phase(C64::from(2.0))]).is_err());
}

#[test]
fn ranks_hold_their_own_rows() {
    let mut model = insulator(Lattice::cubic(4, 3, 2).unwrap());
    model.disorder(1.0, 2).unwrap();
    let all = model.to_csr(false).unwrap();
    // Rows of some sites, one piece and more, and pieces that cut the orbitals of a site apart.
    for pieces in
        [vec![(20, 24)], vec![(3, 6)], vec![(0, 5), (17, 1), (40, 56)], vec![(7, 0)], vec![(0, 96)], vec![]]
    {
        let part = model.pieces_along(&[], &pieces, false).unwrap();
        let rows: Vec<usize> = pieces.iter().flat_map(|&(first, n)| first..first + n).collect();
        assert_eq!((part.rows, part.cols), (rows.len(), all.cols));
        part.validate().unwrap();
        for (i, row) in rows.into_iter().enumerate() {
            let (a, b) =
                (part.row_start[i]..part.row_start[i + 1], all.row_start[row]..all.row_start[row + 1]);
            assert_eq!(a.len(), b.len());
            assert!(
                a.zip(b).all(|(a, b)| part.columns.get(a) == all.columns.get(b)
                    && part.values.get(a) == all.values.get(b))
            );
        }
    }
    assert!(model.pieces_along(&[], &[(90, 7)], false).is_err());
    assert!(model.pieces_along(&[3], &[(0, 4)], false).is_err());
}

fn wrap() -> impl Strategy<Value = Wrap> {
    prop_oneof![
        Just(Wrap::Open),
        Just(Wrap::Phase(C64::ONE)),
        Just(Wrap::Phase(-C64::ONE)),
        (0.0..6.0f64).prop_map(|phi| Wrap::Phase(C64::cis(phi))),
    ]
}

proptest! {
    /// A stencil's rows are the rows of the compressed matrix, and both are Hermitian.
    #[test]
    fn stencil_and_rows_agree(
        cells in prop::collection::vec(1usize..5, 1..4),
        wraps in prop::collection::vec(wrap(), 3),
        orbitals in 1usize..3,
        hops in prop::collection::vec((prop::collection::vec(-3i64..4, 3), -1.0..1.0f64, -1.0..1.0f64), 1..4),
        width in 0.0..2.0f64,
    ) {
        let lattice = Lattice::hypercubic(&cells).unwrap().boundary(&wraps[..cells.len()]).unwrap();
        let mut model = Model::new(lattice, orbitals).unwrap();
        model.disorder(width, 5).unwrap();
        for (shift, re, im) in &hops {
            let shift = &shift[..cells.len()];
            if shift.iter().any(|&x| x != 0) {
                let entries = (0..orbitals * orbitals).map(|k| C64::new(*re, im * (k + 1) as f64)).collect();
                model.hop(shift, &OrbitalBlock::new(orbitals, entries).unwrap()).unwrap();
            }
        }
        let (stencil, csr) = (model.stencil_along(&[], false).unwrap(), model.to_csr(false).unwrap());
        prop_assert_eq!(stencil.dim(), csr.rows);
        let full = dense(&csr);
        prop_assert!((&full - full.adjoint()).norm_max() < 1e-13);
        let mut row = Vec::new();
        for i in 0..csr.rows {
            stencil.row(i, &mut row);
            let mut expected = vec![C64::ZERO; csr.cols];
            row.iter().for_each(|&(j, z)| expected[j] += z);
            for (j, z) in expected.iter().enumerate() {
                prop_assert!((full[(i, j)] - z).norm() < 1e-13);
            }
        }
    }
}
