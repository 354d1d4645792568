//! What people write who come from Python, Julia or MATLAB, and what it is called here.

/// Names that are not there, with what serves instead.
const NAMES: [(&[&str], &str); 13] = [
    (
        &["np", "numpy", "scipy", "math", "jnp"],
        "numbers in a row are a Series, like `linspace(0.0, 1.0, 5)` or `series([1, 2])`; `exp`, `sin`, .. take all of it",
    ),
    (
        &["plt", "pyplot", "matplotlib", "pylab"],
        "`plot(table, #{ file: \"a.svg\" })` draws a Table or a Series",
    ),
    (
        &["kwant", "pb", "pybinding", "pythtb", "tbplas"],
        "`let m = model(lattice::honeycomb(8, 8)); m.nearest(-2.7); m.build()` makes a Hamiltonian; `lookfor hopping` tells more",
    ),
    (
        &["tenpy", "itensor", "pyblock2", "quspin"],
        "`sites(\"S=1/2\", 10)` is a chain, `opsum()` and `models::` are Hamiltonians, `dmrg::finite` and `exact::operator` take both",
    ),
    (&["True", "False"], "they are written `true` and `false`"),
    (&["None", "null", "nil", "nothing", "undefined"], "nothing is `()`"),
    (&["pi", "Pi", "π"], "it is written `PI`"),
    (&["im", "1j", "1i"], "the imaginary unit is `I`, as in `2.0 + 3.0 * I`"),
    (&["println", "printf", "echo", "disp", "puts", "display"], "`print(x)` shows a value"),
    (&["arange"], "`linspace(a, b, n)` has n numbers from a to b; `0..5` counts in a loop"),
    (&["ones", "fill"], "`linspace(1.0, 1.0, n)` has n numbers alike"),
    (
        &["ndarray", "asarray"],
        "`series([1, 2])` has numbers in a row, `matrix([[1, 2], [3, 4]])` rows and columns",
    ),
    (&["size", "length", "shape"], "`x.len` is a length; a Matrix has `m.rows` and `m.cols`"),
];

/// Words that other languages have where this one's parser stumbles.
const WORDS: [(&[&str], &str); 6] = [
    (
        &["def", "function", "func", "lambda", "fun"],
        "`fn name(x) { 2 * x }` defines a function; `|x| 2 * x` is one without a name",
    ),
    (&["elif", "elseif", "elsif"], "`if a { .. } else if b { .. } else { .. }`"),
    (&["and", "or", "not"], "`a && b`, `a || b`, `!a`"),
    (&["var", "val", "local", "auto", "double", "int", "float"], "`let x = 1;` makes a variable"),
    (&["begin", "end", "then", "endif", "endfor"], "blocks stand in braces: `for i in 0..3 { .. }`"),
    (
        &["from", "using", "include"],
        "modules are there without an import: `kpm::dos(..)`; own files by `import \"name\" as name;`",
    ),
];

fn found(table: &[(&[&str], &'static str)], word: &str) -> Option<&'static str> {
    table.iter().find(|(words, _)| words.contains(&word)).map(|(_, hint)| *hint)
}

/// What serves instead of a variable, function or module of another tool.
pub(super) fn name(word: &str) -> Option<&'static str> {
    found(&NAMES, word)
}

/// What a line that cannot be parsed may have meant: by the word where it failed, or the one that it begins with.
pub(super) fn line(line: &str, word: &str) -> Option<&'static str> {
    let text = line.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let block = || line.trim_end().ends_with(':').then_some("blocks stand in braces: `for i in 0..3 { .. }`");
    let first = &text[..end];
    let bare = || {
        (matches!(first, "print" | "echo") && !text[end..].starts_with('('))
            .then_some("`print(x);` has brackets")
    };
    found(&WORDS, word).or_else(|| found(&WORDS, first)).or_else(bare).or_else(block)
}

#[cfg(test)]
mod tests {

    #[test]
    fn hints_speak_of_what_is_there() {
        let mut engine = crate::Engine::new().unwrap();
        let mut hint = |script: &str| engine.eval(script).unwrap_err().hint.unwrap_or_default();
        assert!(hint("np.linspace(0, 1, 3)").contains("linspace"));
        assert!(hint("plt.plot([1])").contains("plot(table"));
        assert!(hint("let x = None").contains("`()`"));
        assert!(hint("println(3)").contains("print(x)"));
        assert!(hint("def f(x):\n    x").contains("fn name(x)"));
        assert!(hint("let a = 1;\nif a == 1 and true { 2 }").contains("&&"));
        assert!(hint("for i in 0..3:\n    print(i)").contains("braces"));
        assert!(hint("from numpy import *").contains("without an import"));
        assert!(hint("var x = 3;").contains("let x = 1"));
        assert!(hint("print 3").contains("has brackets") && !hint("print(3 4)").contains("has brackets"));
        // A mistake of one's own keeps its own hint.
        assert!(!hint("linspce(0, 1, 3)").contains("Series, like") && hint("np = 3").contains("let np"));
    }

    #[test]
    fn what_hints_name_exists() {
        let mut engine = crate::Engine::new().unwrap();
        for script in [
            "linspace(0.0, 1.0, 5); series([1, 2]); matrix([[1, 2], [3, 4]]).rows",
            "let m = model(lattice::honeycomb(8, 8)); m.nearest(-2.7); m.build()",
            "let c = sites(\"S=1/2\", 10); opsum(); exact::operator(models::heisenberg(c), c, #{ Sz: 0 })",
            "linspace(1.0, 1.0, 3).len + PI + (2.0 + 3.0 * I).re",
        ] {
            assert!(engine.eval(script).is_ok(), "{script}");
        }
    }
}
