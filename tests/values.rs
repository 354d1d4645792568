//! Numbers, Series, Matrix and Table as scripts use them.

use umklapp::script::Settings;
use umklapp::task::Interrupt;
use umklapp::{Engine, script::diagnostics::Report};

use crate::common::Folder;

fn engine(out: Option<std::path::PathBuf>) -> Engine {
    Engine::with(Settings { out, quiet: true, ..Settings::default() }, Interrupt::default()).unwrap()
}

fn runs(script: &str) {
    if let Err(report) = engine(None).eval(script) {
        panic!("{}", report.render(false));
    }
}

fn fails(script: &str) -> Box<Report> {
    match engine(None).eval(script) {
        Ok(value) => panic!("`{script}` gave {value}"),
        Err(report) => report,
    }
}

#[test]
fn numbers_of_every_kind_mix_in_every_order() {
    // The sum of a + b in exact arithmetic is the same whatever the types.
    let operands = ["2", "2.0", "complex(2, 0)", "series([2])", "series([complex(2, 0)])"];
    for a in operands {
        for b in operands {
            for (op, expected) in [("+", 4.0), ("-", 0.0), ("*", 4.0), ("/", 1.0), ("**", 4.0)] {
                let wrap = "fn first(x) { if type_of(x) == \"Series\" { x[0] } else { x } }";
                runs(&format!("{wrap} assert_close(first({a} {op} {b}), {expected:?}, 1e-14);"));
            }
        }
    }
    for number in ["2", "2.0", "complex(0, 2)"] {
        runs(&format!(
            "let m = matrix([[1, 2], [3, 4]]); let x = {number};
             assert_close((x * m - m * x).norm(), 0.0, 1e-15);
             assert_close((m / x - (1.0 / x) * m).norm(), 0.0, 1e-15);
             assert_close(((m + x) - (x + m)).norm(), 0.0, 1e-15);
             assert_close(((m - x) + (x - m)).norm(), 0.0, 1e-15);
             assert_close((m + x).at(0, 1), 2.0, 1e-15);"
        ));
    }
}

#[test]
fn functions_take_every_kind_of_number() {
    for name in ["sin", "cos", "tan", "exp", "ln", "sqrt", "sinh", "cosh", "tanh", "asin", "acos", "atan"] {
        runs(&format!(
            "let x = {name}(1.0);
             assert_close({name}(1), x, 1e-15);
             assert_close({name}(complex(1, 0)), x, 1e-15);
             assert_close({name}(series([1, 1]))[1], x, 1e-15);
             assert_close({name}(matrix([[1]])).at(0, 0), x, 1e-15);"
        ));
    }
    runs(
        "assert_close(sign(complex(3, 4)), complex(0.6, 0.8), 1e-15); assert(sign(0.0 * I) == 0.0, \"none\");",
    );
    runs("assert_close(exp(I * PI), -1.0, 1e-15); assert_close(sqrt(complex(-4, 0)), 2.0 * I, 1e-15);");
    runs(
        "assert(series([-3, 2]).abs() == series([3, 2]), \"moduli\"); assert_close(abs(3.0 + 4.0 * I), 5.0, 1e-15);",
    );
}

#[test]
fn complex_numbers_print_with_the_exponents_of_floats() {
    runs(
        "assert(`${1e-19 * I}` == \"0 + 1e-19i\", \"small\"); assert(`${complex(-1e300, -2)}` == \"-1e300 - 2i\", \
         \"large\");
         assert(`${complex(0.5, -0.0)} ${complex(1000000, 1.25)}` == \"0.5 - 0i 1000000 + 1.25i\", \"between\");",
    );
}

#[test]
fn series_index_slice_iterate_and_grow() {
    runs(
        "let s = series(0..5);
         assert(s.len == 5 && s[-1] == 4.0, \"from either end\");
         assert(s[1..3] == series([1, 2]) && s[1..=3] == series([1, 2, 3]), \"slices\");
         let sum = 0.0; for x in s { sum += x; } assert(sum == 10.0, \"iteration\");
         s[0] = 7; s[1] += 1; s += 1; assert(s == series([8, 3, 3, 4, 5]), \"changes\");
         let copy = s; copy[0] = 0; assert(s[0] == 8.0, \"values, not references\");
         s[0] = I; assert(s[0] == I && s[1] == complex(3, 0), \"promotion\");
         assert(series([]).len == 0 && series([]).sum() == 0.0, \"nothing\");",
    );
    assert_eq!(fails("series([1, 2])[2]").message, "index 2 is outside a series of 2 elements");
    assert_eq!(fails("series([1, 2]) + series([1])").position, Some((1, 16)));
    assert!(fails("series([1, \"a\"])").message.contains("element 1 is not a number but a text"));
    assert!(fails("series([]).mean()").message.contains("empty series"));
    assert!(fails("linspace(0, 1, -3)").message.contains("-3 points"));
    assert!(fails("let s = series([1]); s[0] = \"x\";").message.contains("a number, not a text"));
    assert!(fails("linspace(0, 1, 9000000000000000000)").message.contains("memory"));
}

#[test]
fn elements_of_a_matrix_are_read_and_written_either_way() {
    runs(
        "let m = matrix([[1, 2], [3, 4]]);
         assert(m[[0, 1]] == 2.0 && m[0][1] == 2.0 && m.at(0, 1) == 2.0, \"three ways\");
         m[[0, 1]] = 5; m[1][0] = 6; m[0] = [9, 5];
         assert(m == matrix([[9, 5], [6, 4]]), \"written\");
         m[1][1] += I; assert(m.at(1, 1) == 4.0 + I, \"promoted\");",
    );
    assert!(fails("matrix([[1, 2], [3]])").message.contains("row"));
    assert!(fails("matrix([[1]])[[0, 3]]").message.contains("outside a 1 x 1 matrix"));
    assert!(fails("matrix([[1]])[[0]]").hint.unwrap().contains("m.at(i, j)"));
    assert!(fails("let m = matrix([[1]]); m[0] = [1, 2];").message.contains("a row of 2 elements"));
    assert!(fails("matrix([[1, 2]]) * matrix([[1, 2]])").message.contains("1 x 2"));
    assert!(fails("matrix([[1, 2], [0, 1]]).eigh()").message.contains("Hermitian"));
    assert!(fails("matrix([[1, 1], [1, 1]]).inverse()").message.contains("singular"));
    assert!(fails("identity(1000000)").message.contains("memory"));
    assert!(fails("identity(-1)").message.contains("-1 rows"));
}

#[test]
fn gamma_matrices_anticommute() {
    runs(
        "let s = pauli();
         let G = [kron(s.z, s.i), kron(s.x, s.x), kron(s.x, s.y), kron(s.x, s.z)];
         for a in 0..4 { for b in 0..4 {
             let anti = G[a] * G[b] + G[b] * G[a];
             assert_close((anti - identity(4) * (if a == b { 2.0 } else { 0.0 })).norm(), 0.0, 1e-14);
         } }
         let e = G[2].eigh();
         let back = e.vectors * diagonal(e.values) * e.vectors.dagger();
         assert_close((back - G[2]).norm(), 0.0, 1e-13);",
    );
}

#[test]
fn tables_have_columns_rows_and_reports() {
    runs(
        "let t = table(#{ energy: [1, 2, 3], density: [4, 5, 6] });
         assert(t.energy == series([1, 2, 3]) && t[\"density\"][2] == 6.0, \"columns\");
         assert(t[-1].density == 6.0 && t.rows == 3, \"rows\");
         let sum = 0.0; for row in t { sum += row.energy * row.density; } assert(sum == 32.0, \"iteration\");
         t.energy[0] = 10; t.third = [7, 8, 9];
         assert(t.energy[0] == 10.0 && t.columns == [\"density\", \"energy\", \"third\"], \"changes\");
         let told = t.with_report(#{ ticks: [[0.5, \"G\"], [1.0, \"K\"]], count: 3 });
         assert(told.report.ticks.map(|tick| tick[1]) == [\"G\", \"K\"] && told.report.count == 3, \"methods of what a \
         report holds\");
         told.report.note = \"by hand\";
         assert(told.report.note == \"by hand\" && told.report.ticks.len == 2, \"one more entry\");",
    );
    let wrong = fails("let t = table(#{ energy: [1] }); t.enregy");
    assert_eq!(wrong.hint.as_deref(), Some("did you mean `energy`?"));
    assert!(fails("table(#{ a: [1], b: [1, 2] })").hint.unwrap().contains("one length"));
    assert!(fails("let t = table(#{ a: [1] }); t.a = [1, 2];").hint.unwrap().contains("one length"));
    assert!(fails("let t = table(#{ a: [1] }); t[0].a = 2;").hint.unwrap().contains("t.x[i]"));
    assert!(fails("table([[\"a\"]])").message.contains("pairs"));
}

#[test]
fn files_hold_what_was_saved_and_say_how_it_was_made() {
    let folder = Folder::new("files");
    let mut engine = engine(Some(folder.to_path_buf()));
    let script = folder.join("script.rhai");
    std::fs::write(
        &script,
        "set_seed(5);
         let t = table([[\"x\", linspace(0, 1, 5)], [\"z\", I * series([1, 2, 3, 4, 5])]]);
         for kind in [\"csv\", \"tsv\", \"txt\", \"json\", \"npz\"] {
             t.save(`t.${kind}`);
             let back = load(`t.${kind}`);
             assert(back.x == t.x && back.z == t.z, kind);
         }
         let m = pauli().y;
         for kind in [\"csv\", \"json\", \"npz\", \"npy\"] {
             m.save(`m.${kind}`);
             assert(load(`m.${kind}`) == m, kind);
         }",
    )
    .unwrap();
    if let Err(report) = engine.run_file(&script) {
        panic!("{}", report.render(false));
    }
    let text = std::fs::read_to_string(folder.join("t.txt")).unwrap();
    for line in ["# program: umklapp", "# seed: 5", "# backend: cpu", "# script_hash: fnv1a-"] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let beside = std::fs::read_to_string(folder.join("t.csv-metadata.json")).unwrap();
    for word in [r#""program":"umklapp""#, r#""seed":5"#, r#""backend":"cpu""#, r#""script_hash":"fnv1a-"#] {
        assert!(beside.contains(word), "{word} in\n{beside}");
    }
    assert!(fails("series([1]).save(\"a.xyz\")").message.contains(".xyz"));
    assert!(fails("series([1]).save(\"/nowhere/at/all/a.csv\")").message.contains("/nowhere/at/all"));
    assert!(fails("load(\"missing.csv\")").message.contains("missing.csv"));
}

#[test]
fn pictures_are_drawn_and_bad_options_refused() {
    let folder = Folder::new("pictures");
    // A folder that is not there yet is made.
    let out = folder.join("new/out");
    let mut engine = engine(Some(out.clone()));
    let script = "let x = linspace(0.1, 6, 50);
         let t = table([[\"x\", x], [\"sine\", sin(x)], [\"cosine\", cos(x)]]);
         plot(t, #{ title: \"Waves\", xlabel: \"x / a\", file: \"waves.svg\" });
         plot(t, #{ log: \"x\", style: \"points\", xrange: [0.1, 10], size: [400, 300], file: \"waves.png\" });
         plot(x, sin(x), #{ file: \"one.svg\" });
         plot(series([1, 2]), #{ file: \"series.svg\" });
         plot(pauli().y, #{ file: \"matrix.png\" });
         let g = table([[\"k\", [0, 0, 1, 1]], [\"energy\", [0, 1, 0, 1]], [\"weight\", [1, 2, 3, 4]]]);
         plot(g.grid(2, 2), #{ file: \"map.png\" });";
    if let Err(report) = engine.eval(script) {
        panic!("{}", report.render(false));
    }
    let svg = std::fs::read_to_string(out.join("waves.svg")).unwrap();
    assert!(svg.contains("Waves") && svg.contains("x / a") && svg.contains("cosine"));
    for picture in ["waves.png", "matrix.png", "map.png"] {
        assert!(std::fs::read(out.join(picture)).unwrap().starts_with(b"\x89PNG"), "{picture}");
    }
    let typo = fails("plot(series([1]), #{ titel: \"x\" })");
    assert_eq!(typo.hint.as_deref(), Some("did you mean `title`?"));
    assert!(fails("plot(series([1]), #{ file: \"a.eps\" })").message.contains(".svg"));
    assert!(fails("plot(series([1]), #{ log: \"z\" })").hint.is_some());
    assert!(fails("plot(7)").message.contains("not a number"));
    let small = fails("plot(series([1]), #{ size: [1, 1] })");
    assert!(small.message.contains("1 x 1 pixels") && small.hint.is_some_and(|hint| hint.contains("`size`")));
}

/// Different elements by weights come in the order in which they are drawn, each by the weights of those that are left.
#[test]
fn weighted_choices_come_one_after_the_other() {
    runs(
        "let counts = #{};
         for seed in 0..6000 {
             let pair = random_choice(3, #{ weights: [1, 2, 3], count: 2, replace: false, seed: seed });
             let name = `${pair[0]}${pair[1]}`;
             counts[name] = if name in counts { counts[name] + 1 } else { 1 };
         }
         let expected = #{ \"01\": 400, \"02\": 600, \"10\": 500, \"12\": 1500, \"20\": 1000, \"21\": 2000 };
         for name in expected.keys() {
             let n = expected[name].to_float();
             assert(abs(counts[name] - n) < 4.0 * sqrt(n), `${name}: ${counts[name]} of ${n}`);
         }
         let all = random_choice([\"a\", \"b\", \"c\"], #{ weights: [1e-200, 1.0, 1e200], count: 3, replace: false, \
         seed: 1 });
         assert(all == [\"c\", \"b\", \"a\"], `${all}`);",
    );
}
