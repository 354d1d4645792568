//! Crystals, orbitals, wave functions and walks.

use super::{engine, fail, prepare};
use crate::common::Folder;

#[test]
fn crystals_and_orbitals() {
    let folder = Folder::new("orbitals");
    folder.file("cut.npz", b"PK\x03\x04 nothing");
    folder.file("bwfn.data", b"GEOMETRY\n Primitive lattice vectors (au)\n 1.0 0.0 zero\n");
    folder.file("binary.bwfn.data", [0, 159, 146, 150]);
    folder.file("numbers.data", b"1 2\n3 4\n");
    let mut engine = engine(Some(folder.to_path_buf()));
    let set_up = "let si = crystal::silicon(1); let gas = crystal::electron_gas(2, 1.0); \
                  let waves = orbitals::plane_waves(gas); let spline = waves.splines(#{ grid: 4 }); \
                  spline.save(\"k.npz\"); \
                  let cube = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]];";
    prepare(&mut engine, set_up);
    std::fs::rename(folder.join("k.npz"), folder.join("k.NPZ")).unwrap();
    prepare(&mut engine, "assert(load(\"k.NPZ\").count == 1, \"capitals\");");
    fail(
        &mut engine,
        &[
            ("crystal::silicon(0)", "[0, 0, 0] primitive cells", "between 1"),
            ("crystal::silicon([2, 2])", "repeated a whole number of times", "[2, 2, 1]"),
            ("crystal::silicon(\"2\")", "not a text", "[2, 2, 1]"),
            ("crystal::silicon(0..2)", "not a range", "[2, 2, 1]"),
            ("crystal::silicon(model(lattice::chain(2)))", "not a Model", "[2, 2, 1]"),
            ("crystal::silicon(1000000)", "primitive cells", "between 1"),
            ("crystal::semiconductor(\"GaAz\", 1)", "no form factors for `GaAz`", "GaAs"),
            ("crystal::electron_gas(-1, 1.0)", "-1 electrons", "positive"),
            ("crystal::electron_gas(2, 0.0)", "r_s = 0", "positive"),
            ("crystal::custom([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]], [])", "span", "plane"),
            (
                "crystal::custom([[5.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 5.0]], [0.0, 2.5, 5.0].map(|x| \
                 #{ species: \"H\", charge: 1.0, position: [x, 1.0, 0.0] }))",
                "ions 0 and 2 of a cell are at one point",
                "a vector of the cell",
            ),
            ("crystal::custom([[9e18, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [])", "so thin", "alike"),
            ("crystal::custom(7, [])", "three vectors", "bohr"),
            ("crystal::custom(cube, [#{ charge: 1.0 }])", "has no `species`", "position"),
            ("crystal::custom(cube, [#{ specis: \"X\" }])", "unknown option `specis`", "`species`"),
            ("crystal::custom(cube, [7])", "ion 0 is a number", "species"),
            (
                "crystal::custom(cube, [], #{ reach: -1.0 })",
                "option `reach` is -1",
                "it must be at least 0 and at most 1000",
            ),
            (
                "crystal::custom(cube, [#{ species: \"X\", charge: 1.0, position: [0.0, 0.0, 0.0] }], \
                 #{ form_factor: |s, g| 1.0 / g })",
                "the potential is",
                "finite",
            ),
            ("si.potential([1.0, 2.0])", "three numbers, not 2", "like"),
            ("orbitals::plane_waves(gas, #{ twist: [0.5] })", "three numbers, not 1", "like"),
            ("orbitals::plane_waves(gas, #{ count: 0 })", "`count` is 0", "at least 1"),
            ("orbitals::plane_wave_bands(si, #{ cutoff: 0.0 })", "option `cutoff` is 0", "hartree"),
            ("orbitals::plane_wave_bands(si, #{ cutoff: 1e4 })", "plane waves below", "smaller"),
            ("orbitals::plane_wave_bands(si, #{ orbitals: 9999 })", "9999 orbitals of", "larger cutoff"),
            ("orbitals::plane_wave_bands(si, #{ cutof: 4.5 })", "unknown option `cutof`", "`cutoff`"),
            ("waves.splines(#{ spacing: 0.0 })", "option `spacing` is 0", "above 0"),
            ("waves.splines(#{ grid: 0 })", "a grid is", "24"),
            (
                "waves.splines(#{ grid: 4, spacing: 0.3 })",
                "the options `grid` and `spacing` exclude",
                "leave one",
            ),
            ("waves.splines(#{ grid: 4, precision: \"half\" })", "no precision `half`", "single"),
            ("spline.splines()", "no splines of", "orbitals::fit"),
            ("orbitals::fit(gas, 4, |x, y, z| 0.0 / 0.0)", "not all finite", "NaN"),
            (
                "orbitals::fit(gas, 4, |x, y, z| if x > 0.0 { [1.0] } else { [1.0, 2.0] })",
                "at another",
                "everywhere",
            ),
            ("orbitals::fit(gas, 4, |x, y, z| \"one\")", "gives a text", "array"),
            ("orbitals::gaussians([])", "no shells", "at least one"),
            (
                "orbitals::gaussians([#{ center: [0.0, 0.0, 0.0], sto: 9, zeta: 1.0 }])",
                "9 Gaussians",
                "2 and 6",
            ),
            ("orbitals::gaussians([#{ center: [0.0, 0.0, 0.0], shell: \"f\" }])", "kind `f`", "\"d\""),
            (
                "orbitals::gaussians([#{ center: [0.0, 0.0, 0.0], shell: \"s\", exponents: [-1.0], coefficients: [1.0] \
                 }])",
                "exponents [-1.0]",
                "positive",
            ),
            (
                "orbitals::gaussians([#{ center: [0.0, 0.0, 0.0], sto: 3, zeta: 1.0 }], #{ combinations: [[1.0, 1.0]] \
                 })",
                "for 1 functions",
                "one row for each",
            ),
            ("load(\"nothing.npz\")", "no such file", "file"),
            ("load(\"nothing.data\")", "no such file", "relative"),
            ("load(\"cut.npz\")", "not a whole NPZ archive", "file"),
            ("load(\"bwfn.data\")", "line 3 is `1.0 0.0 zero`", "file"),
            ("load(\"binary.bwfn.data\")", "no text", ".npz"),
            ("load(\"numbers.data\")", "extension `.data`", "`.dat`"),
            ("load(\"k.NPZ\", #{ k: 1 })", "one k point", "leave out `k`"),
            ("load(\"k.NPZ\", #{ reunitarise: true })", "`reunitarise` is for a gauge field", "leave it out"),
            ("spline.save(\"orbitals.csv\")", "not saved as", ".npz"),
            ("waves.save(\"orbitals.npz\")", "not saved", "splines"),
            ("spline.energies + orbitals::fit(gas, 4, |x, y, z| 1.0).energies", "not known", "bands"),
            ("spline.values([1.0])", "three numbers, not 1", "like"),
            ("spline.values(identity(2))", "2 x 2 matrix", "row"),
            ("spline.evaluation_time(identity(3), #{ assignment: \"best\" })", "no assignment `best`", ""),
            ("waves.evaluation_time(identity(3))", "no splines", "splines"),
        ],
    );
}

#[test]
fn wave_functions_and_walks_that_cannot_be() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let psi = slater_jastrow(orbitals::oscillator(2), #{ up: 2 });
         let walk = walkers(psi, #{ count: 2, seed: 1 });
         let ham = electrons(vmc::trap(1.0), #{ interaction: \"none\" });
         let sea = matrix([[0.5, 0.5], [0.5, -0.5], [0.5, 0.5], [0.5, -0.5]]);
         let four = lattice_slater(matrix([[0.6, 0.0], [0.0, 0.8], [0.8, 0.0], [0.0, 0.6]]), #{ up: 2, down: 1 });",
    );
    prepare(&mut engine, "let oneway = opsum(); oneway.add(1.0, \"Cdagup\", 0, \"Cup\", 1);");
    fail(
        &mut engine,
        &[
            (
                "vmc::run(lattice_slater(matrix([[1.0], [1.0]]), #{ up: 1 }), oneway, #{ progress: false })",
                "not Hermitian",
                "needs `h.add",
            ),
            (
                "slater_jastrow(orbitals::oscillator(2), #{ up: 3 })",
                "3 electrons of spin up and 2 orbitals",
                "more orbitals",
            ),
            ("slater_jastrow(orbitals::oscillator(2), #{})", "without electrons", "up"),
            (
                "slater_jastrow(orbitals::oscillator(2), #{ determinants: [[1.0, [0, 0], []]] })",
                "fills an orbital twice",
                "vanishes",
            ),
            (
                "walkers(slater_jastrow(orbitals::exponentials([[[0, 0, 0], 1.0], [[0, 0, 0], 1.0]]), #{ up: 2 }), \
                 #{})",
                "singular",
                "two orbitals the same",
            ),
            ("orbitals::exponentials([[[0.0, 0.0, 0.0], 0.0 / 0.0]])", "positive exponent", "zeta"),
            ("lattice_slater(matrix([[0.0 / 0.0], [1.0]]), #{ up: 1 })", "not a finite number", "NaN"),
            (
                "lattice_slater(sea, #{ up: 2, down: 3 })",
                "3 electrons of spin down and 2 orbitals",
                "fewer electrons",
            ),
            (
                "lattice_slater(sea, #{ up: 2, down: 2, gutzwiller: -1.0 })",
                "Gutzwiller factor of -1",
                "0 (no double occupation) or positive",
            ),
            ("walkers(psi, #{ count: 0 })", "`count` is 0", "at least 1"),
            ("metropolis(walk, #{})", "needs the size of a trial move", "step"),
            ("metropolis(walk, #{ step: 0.0 })", "`step` is 0", "above 0"),
            (
                "metropolis(walk, #{ step: 1.0, scheme: \"lok-ahead\" })",
                "no scheme `lok-ahead`",
                "look-ahead",
            ),
            (
                "metropolis(walk, #{ step: 1.0, group: 2 })",
                "no effect without `scheme: \"delayed-acceptance\"`",
                "leave it out",
            ),
            (
                "metropolis(walk, #{ step: 1.0, group: 99, scheme: \"delayed-acceptance\" })",
                "groups of 99",
                "1 to 12",
            ),
            (
                "metropolis(walk, #{ step: 1.0, drift: true, proposal: \"uniform\" })",
                "normal displacements",
                "gaussian",
            ),
            (
                "metropolis(walkers(four, #{ count: 1, seed: 1 }), #{ step: 1.0 })",
                "`step` is for walkers in the continuum",
                "leave it out",
            ),
            (
                "metropolis(walkers(four, #{ count: 1, seed: 1 }), #{ drift: false })",
                "`drift` is for walkers in the continuum",
                "leave it out",
            ),
            ("electron_density(walk, #{ from: 0.0 })", "no effect without `to`", "leave it out"),
            ("psi.jastrow = jastrow::pade(#{ b: -1.0 })", "parameter `b` is -1", "positive"),
            ("psi.jastrow = jastrow::polynomial(#{})", "needs a cutoff", "cutoff"),
            ("psi.jastrow = jastrow::pade(#{ bb: 1.0 })", "unknown option", "`b`"),
            (
                "vmc::run(slater_jastrow(orbitals::oscillator(2), #{ up: 2 }), electrons(vmc::trap(1.0), #{ \
                 interaction: \"none\" }), #{ checkpoint: \"no/such/w.json\" })",
                "cannot be written",
                "folder",
            ),
            ("electrons(vmc::trap(1.0), #{ interaction: \"ewald\" })", "no interaction `ewald`", "coulomb"),
            (
                "electrons(vmc::trap(1.0), #{ ions: \"none\" })",
                "`ions` is for electrons in a crystal",
                "leave it out",
            ),
            (
                "electrons(crystal::silicon(1), #{ softening: 0.1 })",
                "`softening` is for electrons in open space",
                "leave it out",
            ),
            ("vmc::lattice_pairs(identity(2), #{})", "option `pairs` is needed", "how many"),
            (
                "orbitals::gaussians([#{ center: [0.0, 0.0, 0.0], shell: \"s\", exponents: [1.0], coefficients: [0.0 / \
                 0.0] }])",
                "a coefficient NaN",
                "finite",
            ),
            (
                "slater_jastrow(orbitals::oscillator(2), #{ determinants: [[0.0 / 0.0, [0, 1], []]] })",
                "with coefficient NaN",
                "finite",
            ),
            (
                "slater_jastrow(orbitals::oscillator(2), #{ determinants: [[0.0, [0, 1], []]] })",
                "none has a coefficient but 0",
                "zero everywhere",
            ),
            (
                "slater_jastrow(orbitals::oscillator(1), #{ up: 1 }).at([[0.5, 1.0]])",
                "a point of 2 coordinates where electrons are on a line",
                "like [0.5]",
            ),
            (
                "slater_jastrow(orbitals::oscillator(1), #{ up: 1 }).at([0.5]).ratio(0, [0.1, 0.2])",
                "a point of 2 coordinates",
                "like [0.5]",
            ),
            (
                "vmc::nuclei([[1.0, [0.0, 1.4]]])",
                "a point of 2 coordinates where electrons are in space",
                "three coordinates",
            ),
            (
                "walkers(slater_jastrow(orbitals::oscillator(1, #{ dimension: 2 }), #{ up: 1 }), #{ count: 1, centres: \
                 [[0.0]] })",
                "a point of a coordinate where electrons are in a plane",
                "two coordinates",
            ),
            (
                "slater_jastrow(orbitals::oscillator(1, #{ dimension: 3 }), #{ up: 1, down: 1, jastrow: \
                 jastrow::pade(#{}) * jastrow::polynomial(#{ cutoff: 4.0 }) })",
                "both have the slope of the cusp",
                "`slope` of their own",
            ),
            (
                "slater_jastrow(orbitals::oscillator(1, #{ dimension: 3 }), #{ up: 1, down: 1, jastrow: \
                 jastrow::pade(#{ slope: 0.0 / 0.0 }) })",
                "option `slope` is not a number",
                "",
            ),
            (
                "local_energy(walkers(slater_jastrow(orbitals::oscillator(2), #{ up: 1 }), #{ count: 1 }), \
                 electrons(vmc::nuclei([[2.0, [0.0, 0.0, 0.0]]]), #{}))",
                "orbitals of 1 and a potential of 3 dimensions",
                "same system",
            ),
            (
                "let gas = crystal::electron_gas(2, 1.0); \
                 local_energy(walkers(slater_jastrow(orbitals::plane_waves(gas), #{ up: 1, down: 1 }), #{ count: 1 }), \
                 electrons(vmc::trap(1.0), #{}))",
                "periodic cell and a Hamiltonian in open space",
                "same system",
            ),
            (
                "let gas = crystal::electron_gas(2, 1.0); \
                 local_energy(walkers(slater_jastrow(orbitals::plane_waves(gas), #{ up: 1, down: 1 }), #{ count: 1 }), \
                 electrons(crystal::electron_gas(2, 3.0), #{}))",
                "of different cells",
                "same system",
            ),
            ("vmc::trap(0.0)", "frequency 0", "positive"),
            ("local_energy(walk, opsum())", "an OpSum for walkers in the continuum", "electrons"),
            ("vmc::run(psi, ham, #{ stepz: 3 })", "unknown option `stepz`", "`step"),
            ("vmc::run(psi, ham, #{ step: 0.0, progress: false })", "option `step` is 0", "above 0"),
            (
                "vmc::run(psi, ham, #{ observables: #{ spin: #{} }, step: 1.0, progress: false })",
                "no observable spin",
                "density",
            ),
            (
                "load(\"no_such_walk.json\", #{ wavefunction: psi })",
                "there is no such file",
                "names of files",
            ),
            ("walk.positions(2)", "walker 2 of 2", "0 to 1"),
            (
                "vmc::run(psi, models::hubbard_chain(4, #{}), #{})",
                "an OpSum for a wave function",
                "electrons",
            ),
            (
                "vmc::optimise(psi, models::hubbard_chain(4, #{}), #{})",
                "an OpSum for a wave function",
                "electrons",
            ),
            ("vmc::run(psi, ham, #{ walkers: 0 })", "option `walkers` is 0", "it must be at least 1"),
            ("vmc::optimise(psi, ham, #{ steps: 1 })", "option `steps` is 1", "it must be at least 2"),
            ("vmc::optimise(psi, ham, #{ warmup: -1 })", "option `warmup` is -1", "it must be at least 0"),
            (
                "vmc::optimise(psi, ham, #{ iterations: -1 })",
                "option `iterations` is -1",
                "it must be at least 0",
            ),
            ("vmc::optimise(psi, ham, #{ shift: -1.0 })", "option `shift` is -1", "it must be at least 0"),
            ("vmc::optimise(psi, ham, #{ rate: 1.0 / 0.0 })", "option `rate` is inf", "finite"),
            ("vmc::run(four, ham, #{})", "of the continuum for a wave function on a lattice", "OpSum"),
            (
                "vmc::run(four, 3.0, #{})",
                "the argument `hamiltonian` takes a Hamiltonian or an OpSum",
                "electrons",
            ),
            (
                "vmc::run(four, models::tj_chain(4, #{}), #{})",
                "allows two electrons on a site",
                "gutzwiller: 0.0",
            ),
            (
                "vmc::unsampled(walkers(four, #{ count: 1, seed: 1 }), models::hubbard_chain(4, #{}), 2.0, 1.0, 4)",
                "samples with energies from 2 to 1",
                "the lowest and then the highest",
            ),
            (
                "vmc::unsampled(walkers(four, #{ count: 1, seed: 1 }), models::hubbard_chain(4, #{}), 0.0 / 0.0, 1.0, \
                 4)",
                "samples with energies from NaN to 1",
                "the lowest and then the highest",
            ),
            (
                "vmc::unsampled(walkers(four, #{ count: 1, seed: 1 }), models::hubbard_chain(4, #{}), 0.0, 1.0, 0)",
                "0 configurations beside each walker",
                "one at least",
            ),
            (
                "vmc::unsampled(walkers(four, #{ count: 1, seed: 1 }), models::hubbard_chain(6, #{}), 0.0, 1.0, 4)",
                "6 sites",
                "",
            ),
            (
                "vmc::unsampled(walk, models::hubbard_chain(4, #{}), 0.0, 1.0, 4)",
                "configurations beside walkers in the continuum",
                "`lattice_slater`",
            ),
            (
                "local_energy(walkers(four, #{ count: 2, seed: 1 }), 2.0 * models::tj_chain(4, #{}))",
                "allows two electrons on a site",
                "gutzwiller: 0.0",
            ),
            (
                "vmc::optimise(four, models::tj_chain(4, #{}), #{})",
                "allows two electrons on a site",
                "gutzwiller",
            ),
            (
                "vmc::optimise(four, models::hubbard_chain(4, #{}), #{ steps: 2, progress: false })",
                "a wave function without parameters",
                "on a lattice a Gutzwiller factor above 0",
            ),
            (
                "vmc::run(four, models::hubbard_chain(3, #{}), #{})",
                "3 sites for a wave function on 4",
                "same sites",
            ),
            (
                "vmc::run(four, models::hubbard_chain(5, #{}), #{})",
                "5 sites for a wave function on 4",
                "same sites",
            ),
            (
                "vmc::run(four, models::tv(sites(\"Fermion\", 4)), #{})",
                "spinless fermions",
                "the Hubbard model",
            ),
            (
                "vmc::run(four, models::heisenberg(sites(\"S=1\", 4)), #{})",
                "spins `S=1` for electrons",
                "spin 1/2",
            ),
            (
                "vmc::run(four, models::hubbard_chain(4, #{}), #{ step: 0.3 })",
                "`step` is for walkers in the continuum",
                "leave it out",
            ),
            (
                "vmc::run(four, models::hubbard_chain(4, #{}), #{ drift: true })",
                "`drift` is for walkers in the continuum",
                "leave it out",
            ),
            ("walkers(four, #{ spread: 1.0 })", "`spread` is for walkers in open space", "leave it out"),
            (
                "vmc::lattice_pairs(matrix([[1.0, 0.5], [0.4, 1.0]]), #{ pairs: 1 })",
                "f(0, 1) is not f(1, 0)",
                "singlets",
            ),
            ("pair_correlation(walk, #{})", "needs a cutoff", "cutoff"),
            ("electron_density(walk, #{ axis: 1, from: 0.0, to: 1.0 })", "axis 1 in 1 dimensions", "0 to 0"),
            (
                "models::hubbard_chain(4, #{ boundary: \"twisted\" })",
                "no boundary `twisted`",
                "there are \"open\", \"periodic\", \"antiperiodic\"",
            ),
        ],
    );
}
