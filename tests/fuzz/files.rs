//! Files of every kind, damaged at random.

use super::random::Random;

/// A kind of file: how it is made, and a script whose value is all that is in it.
pub struct Kind {
    pub number: u64,
    pub file: &'static str,
    pub make: String,
    pub read: &'static str,
    /// A format of others, which has no check: it must only be read without harm.
    pub foreign: bool,
}

const TABLE: &str =
    "table([[\"energy\", linspace(-1.0, 1.0, 40)], [\"density\", linspace(0.0, 1.0, 40) ** 2.0]])";
const ALL_OF_TABLE: &str = "let t = load(FILE); [t.energy.to_array(), t.density.to_array(), t.report]";

pub fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    let mut add = |file: &'static str, make: String, read: &'static str, foreign: bool| {
        let number = kinds.len() as u64;
        kinds.push(Kind { number, file, make, read, foreign });
    };
    for file in ["t.csv", "t.tsv", "t.txt", "t.json", "t.npz"] {
        let read = ALL_OF_TABLE.replace("FILE", &format!("{file:?}"));
        add(file, format!("{TABLE}.save({file:?});"), read.leak(), false);
    }
    add(
        "m.npy",
        "matrix([[1.0, 2.5], [3.0, 4.0]]).save(\"m.npy\");".into(),
        "let m = load(\"m.npy\"); [m.rows, m.row(0).to_array(), m.row(1).to_array()]",
        false,
    );
    add(
        "v.npy",
        "let h = tight_binding(lattice::chain(4)); ((1.5 + I) * unit_block(h, [2])).save(\"v.npy\");".into(),
        "let m = load(\"v.npy\"); [m.rows, m.columns, m.row(2).to_array()]",
        false,
    );
    add("s.npz", "series([1.0, I, 2.5]).save(\"s.npz\");".into(), "load(\"s.npz\").to_array()", false);
    let moments = "kpm::moments(tight_binding(lattice::chain(16)), #{ moments: 16, vectors: 2, seed: 1, progress: \
    false })";
    add(
        "mu.npz",
        format!("{moments}.save(\"mu.npz\");"),
        "let mu = load(\"mu.npz\"); let all = [mu.dim, mu.vectors, `${mu.window}`]; all.push(mu.values.to_array()); \
         all.push(mu.select(0, 1).values.to_array()); all",
        false,
    );
    add(
        "v.npz",
        "random_block(tight_binding(lattice::chain(8)), 2, #{ seed: 1 }).save(\"v.npz\");".into(),
        "let v = load(\"v.npz\"); let all = []; for i in 0..8 { for j in 0..2 { all.push(v.column(j).to_series()[i]); \
         } } all",
        false,
    );
    add(
        "e.npz",
        "davidson(tight_binding(lattice::chain(8)), #{ count: 2, seed: 1, progress: false }).save(\"e.npz\");".into(),
        "let e = load(\"e.npz\"); [e.values.to_array(), e.residuals.to_array(), \
         e.vectors.column(0).to_series().to_array()]",
        false,
    );
    let waves = "orbitals::plane_waves(crystal::electron_gas(2, 1.0)).splines(#{ grid: 4, precision: \"single\", \
    progress: false })";
    add(
        "o.npz",
        format!("{waves}.save(\"o.npz\");"),
        "let o = load(\"o.npz\"); [o.count, `${o}`, o.values([0.1, 0.2, 0.3]).to_array(), o.values([1.0, 0.7, \
         0.1]).to_array()]",
        false,
    );
    let psi = "let psi = slater_jastrow(orbitals::oscillator(2), #{ up: 2 });";
    add(
        "w.json",
        format!("{psi} save_walkers(walkers(psi, #{{ count: 3, seed: 1 }}), \"w.json\", #{{ n: 3 }});"),
        "let psi = slater_jastrow(orbitals::oscillator(2), #{ up: 2 }); let s = load(\"w.json\", #{ wavefunction: psi \
         });
         [s.about, local_energy(s.walk, electrons(vmc::trap(1.0), #{ interaction: \"none\" })).to_array()]",
        false,
    );
    let field = "gauge::reference_field(lattice::hypercubic(2, 2, 2, 2), 0.3)";
    for (file, read) in [
        (
            "u.nersc",
            "let u = load(\"u.nersc\"); [gauge::plaquette(u), `${u.link(3, 1)}`, `${u.link(15, 3)}`]",
        ),
        ("u.lime", "let u = load(\"u.lime\"); [gauge::plaquette(u), `${u.link(3, 1)}`, `${u.link(15, 3)}`]"),
    ] {
        add(file, format!("{field}.save({file:?});"), read, false);
    }
    add(
        "h.mtx",
        "tight_binding(lattice::square(3, 3), #{ disorder: 0.5, seed: 1 }).save(\"h.mtx\");".into(),
        "let m = load(\"h.mtx\").to_matrix(); let all = [m.rows]; for i in 0..m.rows { all.push(m.row(i).to_array()); \
         } all",
        false,
    );
    add(
        "d.dmrg",
        "product_state(sites(\"S=1/2\", 4), [\"Up\", \"Dn\", \"Up\", \"Dn\"], #{ Sz: 0.0 }).save(\"d.dmrg\");".into(),
        "let d = load(\"d.dmrg\"); [d.expect(\"Sz\").to_array(), d.sector]",
        true,
    );
    add(
        "other.csv",
        "write_text(\"other.csv\", \"x,y\\n1.0,2.0\\n3.5,-1e-3\\n\");".into(),
        "let t = load(\"other.csv\"); `${t}`",
        true,
    );
    add(
        "other.mtx",
        "write_text(\"other.mtx\", \"%%MatrixMarket matrix coordinate real symmetric\\n3 3 3\\n1 1 1.0\\n2 1 -0.5\\n3 \
         3 2\\n\");".into(),
        "`${load(\"other.mtx\").to_matrix()}`",
        true,
    );
    kinds
}

/// A file with one kind of damage, and what that is.
pub fn damaged(whole: &[u8], random: &mut Random) -> (String, Vec<u8>) {
    loop {
        let (what, bytes) = once(whole, random);
        if bytes != whole {
            return (what, bytes);
        }
    }
}

fn once(whole: &[u8], random: &mut Random) -> (String, Vec<u8>) {
    let mut bytes = whole.to_vec();
    let at = random.below(bytes.len());
    let length = 1 + random.below(32.min(bytes.len() - at));
    match random.below(9) {
        0..=2 => {
            let bit = random.below(8);
            bytes[at] ^= 1 << bit;
            (format!("bit {bit} of byte {at} flipped"), bytes)
        }
        3 => {
            bytes.truncate(at);
            (format!("cut at byte {at}"), bytes)
        }
        4 => {
            bytes[at..at + length].fill(0);
            (format!("{length} bytes at {at} zero"), bytes)
        }
        5 => {
            let other = random.below(bytes.len() - length + 1);
            let (a, b) = (bytes[at..at + length].to_vec(), bytes[other..other + length].to_vec());
            bytes[at..at + length].copy_from_slice(&b);
            bytes[other..other + length].copy_from_slice(&a);
            (format!("{length} bytes at {at} and {other} swapped"), bytes)
        }
        6 => {
            bytes.drain(at..at + length);
            (format!("{length} bytes at {at} gone"), bytes)
        }
        7 => {
            let piece = bytes[at..at + length].to_vec();
            bytes.splice(at..at, piece);
            (format!("{length} bytes at {at} twice"), bytes)
        }
        _ => {
            // Another digit, in texts and headers.
            let digits: Vec<usize> = (0..bytes.len()).filter(|&k| bytes[k].is_ascii_digit()).collect();
            if let Some(&k) = digits.get(random.below(digits.len())) {
                bytes[k] = b'0' + random.below(10) as u8;
            }
            ("another digit".into(), bytes)
        }
    }
}
