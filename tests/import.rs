//! Files of other programs: what they mean, and what is said of those that are cut off or wrong.

use umklapp::Engine;
use umklapp::script::Settings;
use umklapp::script::diagnostics::Report;
use umklapp::task::Interrupt;

use crate::common::Folder;

/// Runs a script in a folder of its own that holds one file.
fn with_file(name: &str, content: &str, script: &str) -> Result<(), Box<Report>> {
    let folder = Folder::new("import");
    folder.file(name, content);
    let settings = Settings { out: Some(folder.to_path_buf()), quiet: true, ..Settings::default() };
    Engine::with(settings, Interrupt::default()).unwrap().eval(script).map(|_| ())
}

fn runs(name: &str, content: &str, script: &str) {
    if let Err(report) = with_file(name, content, script) {
        panic!("{}", report.render(false));
    }
}

/// The message of the failure, with the folder taken out of it.
fn fails(name: &str, content: &str, script: &str) -> String {
    let report = with_file(name, content, script).unwrap_err();
    assert_eq!(report.position.map(|p| p.0), Some(1), "the call is marked");
    let message = report.message;
    match (message.find('`'), message.find(name)) {
        (Some(start), Some(end)) if start < end => format!("{}{}", &message[..=start], &message[end..]),
        _ => message,
    }
}

/// A two-band chain: E(k)^2 = 1 + 0.25 + cos k (dimers 1 and 0.5), with degeneracies 2 at the ends.
const DIMERS: &str = "written by hand\n 2\n 3\n 2 1 2\n\
    -1 0 0 1 1 0.0 0.0\n-1 0 0 2 1 0.0 0.0\n-1 0 0 1 2 1.0 0.0\n-1 0 0 2 2 0.0 0.0\n\
    0 0 0 1 1 0.0 0.0\n0 0 0 2 1 1.0 0.0\n0 0 0 1 2 1.0 0.0\n0 0 0 2 2 0.0 0.0\n\
    1 0 0 1 1 0.0 0.0\n1 0 0 2 1 1.0D0 0.0\n1 0 0 1 2 0.0 0.0\n1 0 0 2 2 0.0 0.0\n";

#[test]
fn wannier_models_have_their_bands() {
    let script = "
        let n = 6;
        let levels = lattice::wannier90(\"d_hr.dat\", #{ cells: [n, 1, 1] }).build().to_matrix().eigh().values;
        let exact = [];
        for j in 0..n {
            let e = sqrt(1.25 + cos(2.0 * PI * j / n));
            exact.push(e);
            exact.push(-e);
        }
        exact.sort();
        for j in 0..2 * n { assert_close(levels[j], exact[j], 1e-13); }
        let shifted = lattice::wannier90(\"d_hr.dat\", #{ fermi: 0.25, boundary: [\"open\", \"periodic\", \
        \"periodic\"], cells: [2, 1, 1] });
        let h = shifted.build().to_matrix();
        assert_close(h.at(0, 0), -0.25, 0.0);
        assert_close(h.at(1, 2), 0.5, 0.0);
        assert_close(h.at(0, 3), 0.0, 0.0);";
    runs("d_hr.dat", DIMERS, script);
}

#[test]
fn complex_hoppings_of_wannier_files_go_the_right_way() {
    // <0| H |1> = i/2 is the matrix element from the next cell to this one: E(k) = Re(i exp(i k)) = -sin k.
    let chain = "c\n1\n3\n1 1 1\n-1 0 0 1 1 0.0 -0.5\n0 0 0 1 1 0.0 0.0\n1 0 0 1 1 0.0 0.5\n";
    let script = "
        let h = lattice::wannier90(\"c_hr.dat\", #{ cells: [8, 1, 1], boundary: [\"open\", \"periodic\", \"periodic\"] \
        }).build();
        let m = h.to_matrix();
        assert_close(m.at(0, 1), 0.5 * I, 0.0);
        assert_close(m.at(1, 0), -0.5 * I, 0.0);";
    runs("c_hr.dat", chain, script);
}

#[test]
fn broken_wannier_files_are_named_by_line() {
    let read = "lattice::wannier90(\"x_hr.dat\")";
    let of = |content: &str| fails("x_hr.dat", content, read);
    assert_eq!(
        of(&DIMERS.lines().take(9).collect::<Vec<_>>().join("\n")),
        "`x_hr.dat` ends after line 9, where matrix element 2 of cell 2 should follow"
    );
    assert_eq!(of(""), "`x_hr.dat` ends after line 0, where a comment should follow");
    assert_eq!(
        of(&DIMERS.replace(" 3\n", " 4\n")),
        "line 5 of `x_hr.dat` has `-1` where a degeneracy should stand"
    );
    assert_eq!(
        of(&DIMERS.replace("1.0D0", "abc")),
        "line 14 of `x_hr.dat` has `abc` where a real part should stand"
    );
    assert_eq!(of(&DIMERS.replace("1.0D0", "nan")), "line 14 of `x_hr.dat` has `nan`, which is not finite");
    assert_eq!(
        of(&DIMERS.replace("1 0 0 2 1 1.0D0", "1 0 0 3 1 1.0")),
        "line 14 of `x_hr.dat` has Wannier function 3, outside 1 to 2"
    );
    assert!(of(&DIMERS.replace("1.0D0", "0.9")).starts_with("`x_hr.dat` is not Hermitian"));
    assert_eq!(
        of(&DIMERS.replace(" 2 1 2", " 2 0 2")),
        "line 4 of `x_hr.dat` has a degeneracy of 0, where 1 of 3 degeneracies came before"
    );
    let missing = fails("other", "", "lattice::wannier90(\"nowhere_hr.dat\")");
    assert_eq!(missing, "cannot read `nowhere_hr.dat`: there is no such file");
    let typo =
        with_file("x_hr.dat", DIMERS, "lattice::wannier90(\"x_hr.dat\", #{ cell: [2, 1, 1] })").unwrap_err();
    assert_eq!(typo.hint.as_deref(), Some("did you mean `cells`?"));
}

#[test]
fn matrix_market_layouts_and_symmetries() {
    let same = "let m = load(\"m.mtx\").to_matrix(); assert_close((m - expected).norm(), 0.0, 1e-15);";
    let cases = [
        (
            "coordinate real general\n% a comment\n2 3 3\n1 1 1.5\n2 3 -2e-1\n1 1 0.5\n",
            "[[2, 0, 0], [0, 0, -0.2]]",
        ),
        ("coordinate integer symmetric\n2 2 2\n1 1 3\n2 1 4\n", "[[3, 4], [4, 0]]"),
        ("coordinate real skew-symmetric\n2 2 1\n2 1 4\n", "[[0, -4], [4, 0]]"),
        ("coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 0 2\n", "[[1, -2 * I], [2 * I, 0]]"),
        ("coordinate pattern general\n2 2 2\n1 2\n2 1\n", "[[0, 1], [1, 0]]"),
        ("array real general\n2 2\n1\n2\n3\n4\n", "[[1, 3], [2, 4]]"),
        ("array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", "[[1, 2, 3], [2, 4, 5], [3, 5, 6]]"),
        ("array real skew-symmetric\n3 3\n1\n2\n3\n", "[[0, -1, -2], [1, 0, -3], [2, 3, 0]]"),
    ];
    for (content, expected) in cases {
        let content = format!("%%MatrixMarket matrix {content}");
        runs("m.mtx", &content, &format!("let expected = matrix({expected}); {same}"));
    }
}

#[test]
fn operators_come_back_as_they_were() {
    let there_and_back = |make: &str| {
        let script = format!(
            "let h = {make}; h.save(\"h.mtx\"); let again = load(\"h.mtx\");
             assert_close((again.to_matrix() - h.to_matrix()).norm(), 0.0, 0.0);"
        );
        runs("other", "", &script);
    };
    there_and_back(
        "tight_binding(lattice::square(5, 4), #{ flux: 0.25, boundary: \"open\", disorder: 1.0 })",
    );
    there_and_back("tight_binding(lattice::chain(2))");
    there_and_back("2.0 * tight_binding(lattice::chain(7)) + 1.0");
    there_and_back("sparse([0, 2], [1, 0], [1, 1.0 / 3.0], #{ shape: [4, 3] })");
    assert_eq!(
        fails("h.csv", "", "tight_binding(lattice::chain(4)).save(\"h.csv\")"),
        "`h.csv` does not end in `.mtx`"
    );
}

#[test]
fn broken_matrix_market_files_are_named_by_line() {
    let of = |content: &str| fails("m.mtx", content, "load(\"m.mtx\")");
    let head = "%%MatrixMarket matrix coordinate real general\n";
    assert_eq!(of("2 2 1\n"), "line 1 of `m.mtx` is no header of a Matrix Market file");
    assert_eq!(
        of(&format!("{head}2 2 2\n1 1 1.0\n")),
        "`m.mtx` ends after line 3, where entry 2 of 2 should follow"
    );
    assert_eq!(of(&format!("{head}2 2 1\n1 3 1.0\n")), "line 3 of `m.mtx` has column 3, outside 1 to 2");
    assert_eq!(of(&format!("{head}2 2 1\n0 1 1.0\n")), "line 3 of `m.mtx` has row 0, outside 1 to 2");
    assert_eq!(
        of(&format!("{head}2 2 1\n1 1\n")),
        "line 3 of `m.mtx` has 2 numbers, and an entry here has 3"
    );
    assert_eq!(
        of(&format!("{head}2 2 1\n1 1 x\n")),
        "line 3 of `m.mtx` has `x` where the value of an entry should stand"
    );
    assert_eq!(
        of(&format!("{head}2 2 1\n1 1 1\n2 2 1\n")),
        "line 4 of `m.mtx` follows the last of 1 entries"
    );
    assert_eq!(of(&format!("{head}2 2\n")), "line 2 of `m.mtx` has 2 numbers, and the line of sizes has 3");
    let huge = of(&format!("{head}2 2 1000000000000000\n"));
    assert!(huge.starts_with("a matrix of 1000000000000000 entries takes"), "{huge}");
}
