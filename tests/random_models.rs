//! Models drawn at random, and the routes to their spectra held against each other: dense diagonalisation, `davidson`,
//! `lanczos`, `ritz`, `dmrg::finite`, Chebyshev moments. `UMKLAPP_RANDOM_CASES` and `UMKLAPP_RANDOM_SEED` say how many
//! and which; a case that fails prints its script, which then belongs into `tests/golden`.

use std::fmt::Write;

use umklapp::Engine;
use umklapp::script::Settings;
use umklapp::task::Interrupt;

/// What every script begins with.
const CHECKS: &str = include_str!("random_models/checks.rhai");

/// SplitMix64: draws that depend on the seed alone.
struct Draw(u64);

impl Draw {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A coupling: symmetric points and zeros as often as numbers of no meaning.
    fn coupling(&mut self) -> f64 {
        match self.below(8) {
            0 => 0.0,
            1..=4 => self.of(&[1.0, -1.0, 0.5, 2.0, -4.0]),
            5 => self.of(&[1e-3, 30.0]),
            _ => 2.0 * self.unit() - 1.0,
        }
    }

    fn phase(&mut self) -> (f64, f64) {
        match self.below(6) {
            0 => (0.0, 1.0),
            1 => {
                let angle = std::f64::consts::TAU * self.unit();
                (angle.cos(), angle.sin())
            }
            2 => (-1.0, 0.0),
            _ => (1.0, 0.0),
        }
    }
}

/// A kind of site: what raises and lowers its numbers, what is diagonal, and the numbers of its states.
struct Kind {
    name: &'static str,
    dim: usize,
    hops: &'static [(&'static str, &'static str)],
    diagonal: &'static [&'static str],
    /// Operators that change numbers, Hermitian.
    mixing: &'static [&'static str],
    /// Names of numbers and their values for each state.
    numbers: &'static [(&'static str, &'static [f64])],
    fermionic: bool,
}

const KINDS: [Kind; 8] = [
    Kind {
        name: "S=1/2",
        dim: 2,
        hops: &[("S+", "S-")],
        diagonal: &["Sz", "Z"],
        mixing: &["Sx", "X", "Sy"],
        numbers: &[("Sz", &[0.5, -0.5])],
        fermionic: false,
    },
    Kind {
        name: "S=1",
        dim: 3,
        hops: &[("S+", "S-")],
        diagonal: &["Sz", "Sz2"],
        mixing: &["Sx"],
        numbers: &[("Sz", &[1.0, 0.0, -1.0])],
        fermionic: false,
    },
    Kind {
        name: "S=3/2",
        dim: 4,
        hops: &[("S+", "S-")],
        diagonal: &["Sz", "Sz2"],
        mixing: &["Sx", "Sy"],
        numbers: &[("Sz", &[1.5, 0.5, -0.5, -1.5])],
        fermionic: false,
    },
    Kind {
        name: "Fermion",
        dim: 2,
        hops: &[("Cdag", "C")],
        diagonal: &["N"],
        mixing: &[],
        numbers: &[("N", &[0.0, 1.0])],
        fermionic: true,
    },
    Kind {
        name: "Electron",
        dim: 4,
        hops: &[("Cdagup", "Cup"), ("Cdagdn", "Cdn")],
        diagonal: &["Ntot", "Nupdn", "Sz", "Nup"],
        mixing: &["Sx"],
        numbers: &[("Nup", &[0.0, 1.0, 0.0, 1.0]), ("Ndn", &[0.0, 0.0, 1.0, 1.0])],
        fermionic: true,
    },
    Kind {
        name: "tJ",
        dim: 3,
        hops: &[("Cdagup", "Cup"), ("Cdagdn", "Cdn")],
        diagonal: &["Ntot", "Sz"],
        mixing: &["Sx"],
        numbers: &[("Nup", &[0.0, 1.0, 0.0]), ("Ndn", &[0.0, 0.0, 1.0])],
        fermionic: true,
    },
    Kind {
        name: "Boson",
        dim: 3,
        hops: &[("Adag", "A")],
        diagonal: &["N"],
        mixing: &[],
        numbers: &[("N", &[0.0, 1.0, 2.0])],
        fermionic: false,
    },
    Kind {
        name: "SU(2)",
        dim: 4,
        hops: &[("Cdag1", "C1"), ("Cdag2", "C2")],
        diagonal: &["N1", "Npair", "Ntot"],
        mixing: &[],
        numbers: &[("N1", &[0.0, 1.0, 0.0, 1.0]), ("N2", &[0.0, 0.0, 1.0, 1.0])],
        fermionic: true,
    },
];

fn number(z: (f64, f64)) -> String {
    if z.1 == 0.0 { format!("{:?}", z.0) } else { format!("complex({:?}, {:?})", z.0, z.1) }
}

/// A many-body model: sites, a sum of terms, a sector or none.
fn many_body(draw: &mut Draw, most: usize) -> String {
    let mut sites: Vec<&Kind> = Vec::new();
    let mixed = draw.chance(0.25);
    let first = draw.below(KINDS.len());
    let limit = draw.of(&[4, 20, 80, 260, most]).min(most);
    let mut dim = 1;
    loop {
        let kind = &KINDS[if mixed { draw.below(KINDS.len()) } else { first }];
        dim *= kind.dim;
        if !sites.is_empty() && dim > limit {
            break;
        }
        sites.push(kind);
    }
    let n = sites.len();
    let mut s = String::new();
    let names: Vec<String> = sites.iter().map(|k| format!("{:?}", k.name)).collect();
    let bosons = sites.iter().any(|k| k.name == "Boson");
    let nmax = if bosons { ", #{ nmax: 2 }" } else { "" };
    writeln!(s, "let c = sites([{}]{nmax});\nlet d = opsum();\nlet a = opsum();", names.join(", ")).unwrap();
    let conserving = draw.chance(0.75);
    let isolated = if draw.chance(0.3) { draw.below(n) } else { n };
    let uniform = draw.chance(0.5).then(|| (draw.coupling(), draw.coupling(), draw.coupling()));
    let mut bonds: Vec<(usize, usize)> = (1..n).map(|i| (i - 1, i)).collect();
    if n > 2 && draw.chance(0.4) {
        bonds.push((n - 1, 0));
    }
    if n > 3 && draw.chance(0.3) {
        let (i, j) = (draw.below(n), draw.below(n));
        bonds.extend((i != j).then_some((i, j)));
    }
    let twist = draw.phase();
    for &(i, j) in &bonds {
        if i == isolated || j == isolated || draw.chance(0.08) {
            continue;
        }
        let (t, v, _) = uniform.unwrap_or_else(|| (draw.coupling(), draw.coupling(), 0.0));
        let z = if (i, j) == (n - 1, 0) {
            twist
        } else if uniform.is_none() {
            draw.phase()
        } else {
            (1.0, 0.0)
        };
        for (k, (raise, _)) in sites[i].hops.iter().enumerate() {
            let alike = sites[i].numbers.get(k).map(|q| q.0) == sites[j].numbers.get(k).map(|q| q.0);
            // One fermionic operator alone would have no place in a Hamiltonian.
            if let Some((_, lower)) = sites[j].hops.get(k)
                && sites[i].fermionic == sites[j].fermionic
                && (alike || !conserving)
                && (sites[i].name != sites[j].name || alike)
            {
                writeln!(s, "a.add({}, {raise:?}, {i}, {lower:?}, {j});", number((t * z.0, t * z.1)))
                    .unwrap();
            }
        }
        let (p, q) = (draw.of(sites[i].diagonal), draw.of(sites[j].diagonal));
        writeln!(s, "d.add({v:?}, {p:?}, {i}, {q:?}, {j});").unwrap();
    }
    for (i, kind) in sites.iter().enumerate().filter(|(i, _)| *i != isolated) {
        let u = uniform.map_or_else(|| draw.coupling(), |u| u.2);
        writeln!(s, "d.add({u:?}, {:?}, {i});", kind.diagonal[draw.below(kind.diagonal.len())]).unwrap();
        if !conserving && !kind.mixing.is_empty() {
            writeln!(s, "d.add({:?}, {:?}, {i});", draw.coupling(), draw.of(kind.mixing)).unwrap();
        }
        if !conserving && kind.name == "Fermion" && i + 1 < n && sites[i + 1].name == "Fermion" {
            writeln!(s, "a.add({:?}, \"Cdag\", {i}, \"Cdag\", {});", draw.coupling(), i + 1).unwrap();
        }
        if !conserving && kind.name == "Boson" {
            writeln!(s, "a.add({:?}, \"A\", {i});", draw.coupling()).unwrap();
        }
    }
    if draw.chance(0.1) {
        writeln!(s, "d.add({:?});", draw.coupling()).unwrap();
    }
    let scale = draw.of(&[1.0, 1.0, 1.0, 1.0, 1e-4, 1e4]);
    writeln!(s, "let h = {scale:?} * (d + a + a.dagger());").unwrap();
    writeln!(s, "let sector = #{{{}}};", if conserving { sector(draw, &sites) } else { String::new() })
        .unwrap();
    let single = if draw.chance(0.08) { ", #{ precision: \"single\" }" } else { "" };
    writeln!(s, "let op = exact::operator(h, c, sector{single});").unwrap();
    let dmrg = draw.chance(0.3) && n > 2 && single.is_empty() && dim <= 300;
    if dmrg {
        writeln!(s, "chain(op, h, c, sector, {});", draw.below(1000)).unwrap();
    }
    s
}

/// Numbers of a product state drawn at random, or some of them.
fn sector(draw: &mut Draw, sites: &[&Kind]) -> String {
    if draw.chance(0.4) {
        return String::new();
    }
    let meeting = sites.iter().any(|k| k.name == "Fermion") && sites.iter().any(|k| k.name == "Boson");
    let fermions = sites.iter().any(|k| k.fermionic) && sites.iter().any(|k| k.name == "Boson");
    let mut totals: Vec<(String, f64)> = Vec::new();
    // Now and then a sector of one state: all sites empty, or all full.
    let extreme = draw.chance(0.15).then(|| draw.chance(0.5));
    for kind in sites {
        let state = match extreme {
            None => draw.below(kind.dim),
            Some(full) => usize::from(full) * (kind.dim - 1),
        };
        for (name, values) in kind.numbers {
            let name = match (*name, kind.name) {
                ("N", "Boson") if meeting || fermions => "Nb",
                ("N", _) if meeting || fermions => "Nf",
                (name, _) => name,
            };
            match totals.iter_mut().find(|t| t.0 == name) {
                Some(total) => total.1 += values[state],
                None => totals.push((name.into(), values[state])),
            }
        }
    }
    // Numbers of the same name on sites that do not have them all would leave some electrons uncounted.
    let electrons = sites.iter().any(|k| k.name == "Electron" || k.name == "tJ");
    let spins = sites.iter().any(|k| k.name.starts_with("S="));
    let others = sites.iter().any(|k| k.name == "Fermion" || k.name == "SU(2)");
    if (electrons && (spins || others)) || (meeting && sites.iter().any(|k| k.name == "SU(2)")) {
        return String::new();
    }
    if sites.iter().any(|k| k.name == "Fermion") && sites.iter().any(|k| k.name == "SU(2)") {
        return String::new();
    }
    totals.retain(|_| draw.chance(0.8));
    totals.iter().map(|(name, q)| format!("{name}: {q:?}")).collect::<Vec<_>>().join(", ")
}

/// Particles that hop on a lattice with disorder, vacancies, boundaries of every kind.
fn hopping(draw: &mut Draw) -> String {
    // Sides of one and two sites close upon themselves.
    let side = |draw: &mut Draw| if draw.chance(0.3) { 1 + draw.below(2) } else { 3 + draw.below(7) };
    let (a, b) = (side(draw), side(draw));
    let boundary =
        |draw: &mut Draw| draw.of(&["\"periodic\"", "\"open\"", "\"antiperiodic\"", "lattice::twisted(0.7)"]);
    let (p, q) = (boundary(draw), boundary(draw));
    let lattice = match draw.below(4) {
        0 => {
            let n = if draw.chance(0.3) { 1 + draw.below(4) } else { 3 + draw.below(130) };
            format!("lattice::chain({n}).boundary({p})")
        }
        1 => format!("lattice::square({a}, {b}).boundary({p}, {q})"),
        2 => format!("lattice::honeycomb({a}, {b}).boundary({p}, {q})"),
        _ => format!("lattice::triangular({a}, {b}).boundary({p}, {q})"),
    };
    let disorder = draw.of(&["0.0", "0.0", "1.0", "20.0"]);
    let t = draw.of(&[-1.0, 1.0, 0.3, 1e-3]);
    format!(
        "let op = tight_binding({lattice}, #{{ hopping: {t:?}, disorder: {disorder}, seed: {} }});\n",
        draw.below(1000)
    )
}

/// A matrix of blocks that nothing couples, many of them several times: isolated states, diagonals, chains,
/// constant blocks.
fn blocks(draw: &mut Draw, most: usize) -> String {
    let limit = draw.of(&[3, 70, 70, 200, 400]).min(most);
    let target = 1 + draw.below(limit);
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut n = 0;
    let scale = draw.of(&[1.0, 1.0, 1.0, 1e-3, 1e3]);
    while n < target {
        let k = draw.of(&[1, 1, 2, 3, 5, 10, 40, 100]).min(target - n);
        let kind = draw.below(6);
        let (strength, offset) = (draw.of(&[1.0, 4.0, 10.0]), draw.of(&[0.0, 1.0, -1.0, 5.0]));
        let seed = draw.bits();
        for _ in 0..draw.of(&[1, 1, 1, 2, 3]) {
            // Every copy is the same.
            let mut own = Draw(seed);
            for i in 0..k {
                for j in 0..=i {
                    let x = match (kind, i - j) {
                        (0, 0) => offset * own.unit() * 6.0,
                        (0, _) => strength * (own.unit() - 0.5) / (k as f64).sqrt(),
                        (1, 0) => (offset * own.unit() * 6.0).round(),
                        (2, 0) => offset,
                        (2, 1) => -strength,
                        (3, 0) => (offset * own.unit() * 10.0).round(),
                        (3, 1) => 0.3,
                        (4, _) => offset.signum() * strength,
                        _ => 0.0,
                    };
                    if x != 0.0 && n + i < target {
                        rows.push(n + i);
                        columns.push(n + j);
                        values.push(x * scale);
                        if i != j {
                            rows.push(n + j);
                            columns.push(n + i);
                            values.push(x * scale);
                        }
                    }
                }
            }
            n += k;
        }
    }
    // The states come in a random order.
    let mut place: Vec<usize> = (0..target).collect();
    for i in (1..target).rev() {
        place.swap(i, draw.below(i + 1));
    }
    let moved = |x: &[usize]| x.iter().map(|&i| place[i]).collect::<Vec<_>>();
    let single = if draw.chance(0.08) { ", precision: \"single\"" } else { "" };
    format!(
        "let op = sparse({:?}, {:?}, {values:?}, #{{ shape: [{target}, {target}]{single} }});\n",
        moved(&rows),
        moved(&columns)
    )
}

fn script(seed: u64, most: usize) -> String {
    let mut draw = Draw(seed.wrapping_mul(0xd134_2543_de82_ef95));
    let model = match draw.below(10) {
        0..=5 => many_body(&mut draw, most),
        6 => hopping(&mut draw),
        _ => blocks(&mut draw, most),
    };
    let count = draw.of(&[1, 1, 2, 3, 4, 6]);
    let single = model.contains("\"single\"");
    format!("{CHECKS}\n{model}spectrum(op, {count}, {}, {single});\n", draw.below(1000))
}

/// Cases that failed once: a level of an isolated pair, orthogonal to its partner, was lost where the shift of the
/// preconditioner was the partner's diagonal entry; a filter stalled; a rough search missed a level.
const FAILED: [u64; 5] = [61233, 5159, 6448, 50453, 53820];

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn every_route_to_a_spectrum_ends_at_the_same_numbers() {
    let mut engine =
        Engine::with(Settings { quiet: true, ..Settings::default() }, Interrupt::default()).unwrap();
    let first = setting("UMKLAPP_RANDOM_SEED", 1);
    let cases = setting("UMKLAPP_RANDOM_CASES", 200);
    let most = setting("UMKLAPP_RANDOM_DIM", 300) as usize;
    let mut failed = 0;
    for seed in FAILED.into_iter().chain(first..first + cases) {
        let script = script(seed, most);
        if let Err(report) = engine.eval(&script) {
            failed += 1;
            let own = script.strip_prefix(CHECKS).unwrap_or(&script);
            eprintln!("case {seed}: {}\n{own}", report.render(false));
        }
    }
    assert!(failed == 0, "{failed} of {cases} cases from {first} on");
}
