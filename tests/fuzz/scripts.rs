//! Random scripts: the examples of the manual with other numbers, texts and orders, and calls of every function with
//! arguments of right and wrong types.

use umklapp::Engine;
use umklapp::script::registry::{CallForm, RegisteredFunction, entries, examples};

use super::random::Random;

const INTS: [&str; 17] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "16",
    "63",
    "1000",
    "65536",
    "4294967296",
    "-9223372036854775807",
    "9223372036854775807",
    "100000000000",
];
const FLOATS: [&str; 15] = [
    "0.0",
    "1.0",
    "-1.0",
    "0.5",
    "0.1",
    "-0.0",
    "2.0",
    "1e-300",
    "5e-324",
    "1e300",
    "-1e300",
    "(0.0 / 0.0)",
    "(1.0 / 0.0)",
    "1e-9",
    "3.7",
];
const TEXTS: [&str; 19] = [
    "\"\"",
    "\"x\"",
    "\"cpu\"",
    "\"open\"",
    "\"periodic\"",
    "\"S=1/2\"",
    "\"Electron\"",
    "\"Sz\"",
    "\"Nup\"",
    "\"Cdagup\"",
    "\"a.csv\"",
    "\"a.npz\"",
    "\"a.json\"",
    "\"no/such/folder.csv\"",
    "\"\\x1b[2J\"",
    "\"\u{e4}\u{1f600}\"",
    "\"a\".pad_end(70000, \"b\")",
    "\"single\"",
    "\"jackson\"",
];

/// What stands for a number in an example, or for an option that is a whole number.
const COUNTS: [&str; 5] = ["9223372036854775807", "4294967296", "65536", "0", "-1"];

/// Functions that end the process, wait, or change the session for those that follow.
const SKIPPED: [&str; 10] = [
    "exit",
    "sleep",
    "set_backend",
    "parse_json",
    "eval",
    "timestamp",
    "elapsed",
    "set_seed",
    "bench",
    "time",
];

/// Whether an example calls none of these.
fn usable(example: &str) -> bool {
    !SKIPPED.iter().any(|name| example.contains(&format!("{name}(")))
}

/// What scripts are made of.
pub struct Material {
    entries: Vec<RegisteredFunction>,
    examples: Vec<String>,
}

impl Material {
    pub fn new(engine: &Engine) -> Material {
        let entries: Vec<RegisteredFunction> = entries(engine.rhai(), true)
            .into_iter()
            .filter(|e| {
                !SKIPPED.contains(&e.name.as_str()) && e.name.starts_with(|c: char| c.is_alphabetic())
            })
            .collect();
        let examples: Vec<String> =
            entries.iter().flat_map(|e| examples(&e.doc)).filter(|e| usable(e)).collect();
        assert!(entries.len() > 300 && examples.len() > 200, "{} {}", entries.len(), examples.len());
        Material { entries, examples }
    }
}

/// A script.
pub fn draw(material: &Material, random: &mut Random) -> String {
    match random.below(4) {
        0 | 1 => {
            let example = &material.examples[random.below(material.examples.len())];
            mutated(example, random)
        }
        2 => {
            let example = &material.examples[random.below(material.examples.len())];
            // Calls on what an example has made.
            let names = variables(example);
            let mut script = format!("{example}\n");
            for _ in 0..1 + random.below(3) {
                script.push_str(&call(material, &names, random));
            }
            script
        }
        _ => (0..1 + random.below(4)).map(|_| call(material, &[], random)).collect(),
    }
}

/// Every example once for each number in it and each of a few values in its place, with what was changed.
pub fn each_number(material: &Material) -> impl Iterator<Item = (String, String)> {
    material.examples.iter().enumerate().flat_map(|(n, example)| {
        let pieces = pieces(example);
        let changed = |k: usize, value: &str| {
            let mut changed = pieces.clone();
            let old = std::mem::replace(&mut changed[k], value.into());
            (format!("example {n}, piece {k}: {value} for {old}"), changed.concat())
        };
        let mut all = Vec::new();
        for (k, piece) in pieces.iter().enumerate() {
            let values: &[&str] = match kind(piece) {
                Piece::Int => &COUNTS,
                Piece::Float => &["1e300", "0.0", "-1.0", "(0.0 / 0.0)"],
                _ => &[],
            };
            all.extend(values.iter().map(|value| changed(k, value)));
        }
        all
    })
}

/// Every example once for each whole number that its function has among its options and each of a few values of it.
pub fn each_count(material: &Material) -> impl Iterator<Item = (String, String)> {
    material.entries.iter().flat_map(|entry| {
        let whole = |kind: &str| kind.split(" or ").any(|one| one.split(' ').any(|word| word == "int"));
        let keys: Vec<String> =
            entry.options().into_iter().filter(|o| whole(&o.kind)).map(|o| o.key).collect();
        let mut all = Vec::new();
        for example in examples(&entry.doc).iter().filter(|text| usable(text)) {
            for (key, value) in keys.iter().flat_map(|key| COUNTS.map(|value| (key, value))) {
                let given = with_option(example, &entry.name, key, value);
                all.extend(given.map(|script| (format!("{}: {key}: {value}", entry.path()), script)));
            }
        }
        all
    })
}

/// An example whose first call of a function gives an option another value; none where it has no such call.
fn with_option(example: &str, name: &str, key: &str, value: &str) -> Option<String> {
    let pieces = pieces(example);
    let begin = (1..pieces.len()).find(|&k| pieces[k] == "(" && pieces[k - 1] == name)?;
    let mut depth = 0;
    let end = (begin..pieces.len()).find(|&k| {
        depth += i32::from(matches!(pieces[k].as_str(), "(" | "[" | "{"));
        depth -= i32::from(matches!(pieces[k].as_str(), ")" | "]" | "}"));
        depth == 0
    })?;
    let call = &pieces[begin + 1..end];
    let map = (1..call.len()).rev().find(|&k| call[k] == "{" && call[k - 1] == "#");
    let with = match map {
        // What is named twice would be an error of syntax: the option goes behind the map as another one.
        Some(_) => format!("{} + #{{ {key}: {value} }}", call.concat()),
        None if call.concat().trim().is_empty() => format!("#{{ {key}: {value} }}"),
        None => format!("{}, #{{ {key}: {value} }}", call.concat()),
    };
    Some(format!("{}{with}{}", pieces[..=begin].concat(), pieces[end..].concat()))
}

/// The names that a script gives values.
fn variables(script: &str) -> Vec<String> {
    let mut names = Vec::new();
    for piece in script.split("let ").skip(1) {
        let name: String = piece.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A statement that calls a function; what it throws is caught, so that the next one is reached.
fn call(material: &Material, names: &[String], random: &mut Random) -> String {
    let entry = &material.entries[random.below(material.entries.len())];
    let arguments: Vec<String> =
        entry.parameters.iter().map(|p| argument(&p.kind, &p.name, entry, names, random)).collect();
    let call = match (&entry.form, arguments.split_first()) {
        (CallForm::Property, Some((value, _))) => format!("({value}).{}", entry.name),
        (CallForm::Method, Some((value, rest))) => format!("({value}).{}({})", entry.name, rest.join(", ")),
        _ => format!("{}({})", entry.path(), arguments.join(", ")),
    };
    format!("try {{ let got = {call}; print(got); }} catch (e) {{ `${{e}}`; }}\n")
}

fn argument(
    kind: &str,
    name: &str,
    entry: &RegisteredFunction,
    names: &[String],
    random: &mut Random,
) -> String {
    if !names.is_empty() && random.one_in(2) {
        return names[random.below(names.len())].clone();
    }
    if random.one_in(12) {
        let kinds =
            ["int", "float", "string", "array", "map", "Series", "Matrix", "Operator", "unit", "function"];
        return value(random.pick(&kinds), random);
    }
    if matches!(name, "options" | "opts") {
        return options(entry, random);
    }
    value(kind, random)
}

/// A map of some of a function's options.
fn options(entry: &RegisteredFunction, random: &mut Random) -> String {
    let known = entry.options();
    let mut items = Vec::new();
    for _ in 0..random.below(4) {
        if let Some(option) = known.get(random.below(known.len())) {
            let kinds = ["int", "float", "string", "array", "bool", "unit", "function"];
            let given = if random.one_in(2) && !option.default.is_empty() && !option.default.contains(' ') {
                option.default.clone()
            } else {
                value(random.pick(&kinds), random)
            };
            items.push(format!("{}: {given}", option.key));
        }
    }
    let progress = known.iter().any(|o| o.key == "progress");
    if progress {
        items.push("progress: false".into());
    }
    items.dedup_by_key(|item| item.split(':').next().map(str::to_string));
    format!("#{{ {} }}", items.join(", "))
}

/// An expression of a type, as scripts name it.
fn value(kind: &str, random: &mut Random) -> String {
    let one = |list: &[&str], random: &mut Random| random.pick(list).to_string();
    match kind {
        "int" => one(&INTS, random),
        "float" => one(&FLOATS, random),
        "string" => one(&TEXTS, random),
        "bool" => one(&["true", "false"], random),
        "unit" => "()".into(),
        "char" => "'x'".into(),
        "function" | "Fn" => {
            one(&["|x| x", "|x, y| x", "|| 1.0", "|x| 0.0 / 0.0", "|x| throw 1", "|s| [0.0, 1.0]"], random)
        }
        "Complex" => one(&["I", "1.0 + 2.0 * I", "complex(0.0, 0.0)", "complex(1e300, -1e300)"], random),
        "array" => match random.below(5) {
            0 => "[]".into(),
            1 => format!("[{}, {}]", value("int", random), value("int", random)),
            2 => format!(
                "[{}, {}, {}]",
                value("float", random),
                value("float", random),
                value("float", random)
            ),
            3 => format!("[[{}, 1.0], [0.5, {}]]", value("float", random), value("float", random)),
            _ => format!("[{}, {}]", value("string", random), value("string", random)),
        },
        "map" => one(
            &["#{}", "#{ x: 1 }", "#{ Sz: 0.0 }", "#{ N: 2 }", "#{ seed: 1 }", "#{ a: [1.0, 2.0] }"],
            random,
        ),
        "Series" => one(
            &[
                "series([])",
                "series([1.0, 2.0, 3.0])",
                "series([I, 2.0])",
                "linspace(-1.0, 1.0, 9)",
                "series([0.0 / 0.0])",
            ],
            random,
        ),
        "Matrix" => one(
            &[
                "identity(3)",
                "pauli().y",
                "matrix([[1, 2], [2, 1]])",
                "matrix([[1.0, 2.0, 3.0]])",
                "matrix([[0, 1], [0, 0]])",
            ],
            random,
        ),
        "Table" => one(&["table(#{ x: [1.0, 2.0], y: [0.0, -1.0] })", "table(#{})"], random),
        "Lattice" => one(
            &[
                "lattice::chain(6)",
                "lattice::square(3, 4)",
                "lattice::cubic(2, 2, 3)",
                "lattice::honeycomb(3, 3)",
                "lattice::hypercubic(2, 2, 2, 4)",
                "lattice::chain(6).boundary(\"open\")",
                "lattice::triangular(3, 3)",
            ],
            random,
        ),
        "Operator" => one(
            &[
                "tight_binding(lattice::chain(8))",
                "tight_binding(lattice::honeycomb(3, 3), #{ hopping: -1.0, disorder: 0.5, seed: 1 })",
                "sparse([0, 1], [1, 0], [I, -I])",
                "sparse([0], [0], [0.0])",
                "exact::operator(models::heisenberg(sites(\"S=1/2\", 4)), sites(\"S=1/2\", 4))",
                "(tight_binding(lattice::chain(8)) * 2.0 + 1.0)",
            ],
            random,
        ),
        "BlockVector" => one(
            &[
                "random_block(tight_binding(lattice::chain(8)), 2, #{ seed: 1 })",
                "unit_block(tight_binding(lattice::chain(8)), [0])",
                "wilson::reference_spinor(lattice::hypercubic(2, 2, 2, 4), 2)",
            ],
            random,
        ),
        "Window" => one(&["window(-2.1, 2.1)", "window(0.0, 1.0)"], random),
        "Links" => one(
            &[
                "gauge::reference_field(lattice::hypercubic(2, 2, 2, 4), 0.3)",
                "gauge::random(lattice::hypercubic(2, 2, 2, 2), #{ seed: 1 })",
            ],
            random,
        ),
        "Sites" => one(
            &["sites(\"S=1/2\", 4)", "sites(\"Electron\", 3)", "sites(\"S=1\", 2)", "sites(\"Boson\", 2)"],
            random,
        ),
        "OpSum" => one(
            &[
                "models::heisenberg(sites(\"S=1/2\", 4))",
                "models::hubbard(sites(\"Electron\", 3), #{ U: 4.0 })",
                "opsum()",
                "opsum().add(1.0, \"Sz\", 0)",
            ],
            random,
        ),
        "Crystal" => one(&["crystal::electron_gas(2, 1.0)", "crystal::electron_gas(14, 4.0)"], random),
        "Orbitals" | "OrbitalSet" => {
            one(&["orbitals::plane_waves(crystal::electron_gas(2, 1.0))", "orbitals::oscillator(2)"], random)
        }
        "WaveFunction" => one(&["slater_jastrow(orbitals::oscillator(2), #{ up: 2 })"], random),
        "Moments" => one(
            &["kpm::moments(tight_binding(lattice::chain(16)), #{ moments: 16, vectors: 2, seed: 1 })"],
            random,
        ),
        "Eigen" => one(&["davidson(tight_binding(lattice::chain(8)), #{ seed: 1 })"], random),
        "DmrgState" => one(&["product_state(sites(\"S=1/2\", 2), [\"Up\", \"Dn\"], #{ Sz: 0.0 })"], random),
        _ => {
            let kinds = ["int", "float", "string", "array", "map", "Series", "Operator", "Matrix"];
            let kind = random.pick(&kinds);
            value(kind, random)
        }
    }
}

/// An example with other numbers and texts, or its statements in another order.
fn mutated(example: &str, random: &mut Random) -> String {
    let mut pieces = pieces(example);
    for _ in 0..1 + random.below(4) {
        let at = random.below(pieces.len());
        // The next piece that can be changed.
        let Some(k) = (at..pieces.len()).chain(0..at).find(|&k| kind(&pieces[k]) != Piece::Other) else {
            break;
        };
        match kind(&pieces[k]) {
            Piece::Int => {
                pieces[k] = if random.one_in(4) { value("float", random) } else { value("int", random) }
            }
            Piece::Float => {
                pieces[k] = if random.one_in(4) { value("int", random) } else { value("float", random) }
            }
            Piece::Text => pieces[k] = value("string", random),
            Piece::Mark => match random.below(6) {
                0 => pieces[k] = ["+", "-", "*", "/", ",", "."][random.below(6)].into(),
                1 => {
                    pieces.remove(k);
                    if pieces.is_empty() {
                        break;
                    }
                }
                _ => {}
            },
            Piece::Other => {}
        }
    }
    let text = pieces.concat();
    if !random.one_in(8) {
        return text;
    }
    let mut statements: Vec<&str> = text.split_inclusive(";\n").collect();
    let (a, b) = (random.below(statements.len()), random.below(statements.len()));
    if random.one_in(2) {
        statements.swap(a, b);
    } else {
        statements.insert(a, statements[b]);
    }
    statements.concat()
}

#[derive(PartialEq)]
enum Piece {
    Int,
    Float,
    Text,
    Mark,
    Other,
}

fn kind(piece: &str) -> Piece {
    match piece.chars().next() {
        Some('"') => Piece::Text,
        Some(c) if c.is_ascii_digit() => {
            if piece.contains(['.', 'e']) {
                Piece::Float
            } else {
                Piece::Int
            }
        }
        Some('+' | '-' | '*' | '/' | ',' | '.') => Piece::Mark,
        _ => Piece::Other,
    }
}

/// A script as words, numbers, texts and single marks.
fn pieces(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let mut piece = c.to_string();
        if c == '"' {
            while let Some(next) = chars.next() {
                piece.push(next);
                if next == '\\' {
                    piece.extend(chars.next());
                } else if next == '"' {
                    break;
                }
            }
        } else if c.is_alphanumeric() || c == '_' {
            let number = c.is_ascii_digit();
            while let Some(&next) = chars.peek() {
                let decimal = number && next == '.' && !piece.contains('.');
                if !(next.is_alphanumeric() || next == '_' || decimal) {
                    break;
                }
                piece.push(next);
                chars.next();
            }
        }
        found.push(piece);
    }
    found
}
