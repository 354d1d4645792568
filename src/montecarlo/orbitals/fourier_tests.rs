use super::*;
use crate::montecarlo::{CrystalPotential, Ion};

/// On a grid fine enough for all products of waves the mean over its points is the integral over the cell: the states
/// must be orthonormal there, and the Hamiltonian diagonal among them.
fn eigenstates<S: Scalar>(crystal: &Crystal, states: &Fourier, grid: usize) {
    let (n, count) = (grid.pow(3), states.len());
    let points: Vec<[f64; 3]> = (0..n)
        .map(|k| {
            let at = [k / (grid * grid), k / grid % grid, k % grid];
            crystal.cell().cartesian(at.map(|x| x as f64 / grid as f64))
        })
        .collect();
    let mut d = Derivatives::<S>::new(n, count);
    states.derivatives(&points, &mut d);
    let mut values = vec![S::default(); n * count];
    states.values(&points, &mut values);
    let v = crystal.potential().values(&points);
    for i in 0..count {
        for j in 0..count {
            let (mut overlap, mut energy) = (C64::default(), C64::default());
            for p in 0..n {
                let bra = values[p * count + i].to_c64().conj();
                let ket = d.value[p * count + j].to_c64();
                overlap += bra * ket;
                energy += bra * (ket * v[p] - d.laplacian[p * count + j].to_c64() * 0.5);
            }
            let (overlap, energy) = (overlap / n as f64, energy / n as f64);
            let expected = if i == j { 1.0 } else { 0.0 };
            assert!((overlap - expected).norm() < 1e-12, "<{i}|{j}> = {overlap}");
            let e = expected * states.energies()[i];
            assert!((energy - e).norm() < 1e-11, "<{i}|H|{j}> = {energy}, not {e}");
        }
    }
}

/// Two different ions, without a centre of inversion, in a skew cell.
fn skew(repeat: [usize; 3]) -> Crystal {
    let cell = SimulationCell::new([[5.0, 0.0, 0.0], [1.0, 4.0, 0.5], [-0.5, 1.0, 6.0]]).unwrap();
    let ion = |charge, position| Ion { species: "X".into(), charge, position };
    let ions = [ion(1.0, [0.1, 0.2, 0.3]), ion(3.0, [2.0, 1.5, 3.0])];
    let potential = CrystalPotential::from_fourier(&cell, 4.0, |g| {
        let phase = |r: [f64; 3]| C64::cis(-(g[0] * r[0] + g[1] * r[1] + g[2] * r[2]));
        let weight = -(-square(g)).exp();
        Ok((phase(ions[0].position) + phase(ions[1].position) * 3.0) * weight * 0.2)
    })
    .unwrap();
    Crystal::new("test", cell, repeat, &ions, 4, potential).unwrap()
}

#[test]
fn bands_are_eigenstates_among_their_waves() {
    let crystal = skew([2, 1, 3]);
    let task = Task::default();
    let states = Fourier::bands(&crystal, 1.0, 14, [0.0; 3], &task).unwrap();
    assert!(!states.is_complex());
    eigenstates::<f64>(&crystal, &states, 24);
    let turned = Fourier::bands(&crystal, 1.0, 9, [0.5, 0.2, 0.0], &task).unwrap();
    assert!(turned.is_complex());
    eigenstates::<C64>(&crystal, &turned, 24);
}

#[test]
fn a_larger_cell_folds_the_bands_of_the_small_one() {
    let task = Task::default();
    let folded = Fourier::bands(&skew([1, 1, 2]), 1.5, 8, [0.0; 3], &task).unwrap();
    // k = 0 and k = b/2 of the primitive cell.
    let mut levels = Vec::new();
    for twist in [[0.0; 3], [0.0, 0.0, 0.5]] {
        levels.extend_from_slice(Fourier::bands(&skew([1; 3]), 1.5, 8, twist, &task).unwrap().energies());
    }
    levels.sort_by(f64::total_cmp);
    assert!(folded.energies().iter().zip(&levels).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn silicon_has_its_gaps() {
    // Cohen and Bergstresser: 3.4 eV at Gamma between the top of the valence band and the level above,
    // 4.1 eV wide at X.
    let si = Crystal::semiconductor("Si", [1; 3]).unwrap();
    let ev = 27.211386;
    let e = |k: [f64; 3]| Fourier::bands(&si, 6.0, 8, k, &Task::default()).unwrap().energies().to_vec();
    let gamma = e([0.0; 3]);
    assert!((gamma[3] - gamma[1]).abs() < 1e-9 && (gamma[6] - gamma[4]).abs() < 1e-9, "triplets: {gamma:?}");
    assert!(((gamma[4] - gamma[3]) * ev - 3.4).abs() < 0.15, "{}", (gamma[4] - gamma[3]) * ev);
    let x = e([0.5, 0.5, 0.0]);
    assert!((x[4] - x[3]) * ev > 3.5 && (x[4] - gamma[3]) * ev < 1.3, "{x:?}");
}

#[test]
fn plane_waves_fill_shells() {
    let cell = SimulationCell::cubic(3.8851299379).unwrap();
    let waves = Fourier::plane_waves(&cell, 7, [0.0; 3]).unwrap();
    let kinetic: f64 = 2.0 * waves.energies().iter().sum::<f64>() / 14.0;
    assert!((kinetic - 1.1209128678).abs() < 1e-9, "{kinetic}");
    assert_eq!(Orbitals::<f64>::describe(&waves), "7 plane waves");
    let gas = Crystal::electron_gas(14, 1.0).unwrap();
    eigenstates::<f64>(&gas, &waves_of(&gas, 19, [0.0; 3]), 8);
    eigenstates::<C64>(&gas, &waves_of(&gas, 9, [0.25, 0.0, 0.1]), 8);
    assert!(Fourier::plane_waves(&cell, 0, [0.0; 3]).is_err());
    assert!(Fourier::plane_waves(&cell, 1, [f64::NAN, 0.0, 0.0]).is_err());
}

fn waves_of(gas: &Crystal, count: usize, twist: [f64; 3]) -> Fourier {
    Fourier::plane_waves(gas.cell(), count, twist).unwrap()
}

#[test]
fn too_few_waves_are_an_error() {
    let e = Fourier::bands(&skew([1; 3]), 0.5, 10_000, [0.0; 3], &Task::default()).unwrap_err();
    assert!(e.message().contains("10000 orbitals"), "{e}");
    assert!(Fourier::bands(&skew([1; 3]), -1.0, 1, [0.0; 3], &Task::default()).is_err());
}
