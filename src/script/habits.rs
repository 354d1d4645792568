//! Names that users of Python, Julia or MATLAB expect, and their names here.

/// Names that are not there, with what serves instead.
const NAMES: [(&[&str], &str); 39] = [
    (
        &["np", "numpy", "scipy", "math", "jnp"],
        "numbers in a row are a Series, like `linspace(0.0, 1.0, 5)` or `series([1, 2])`; `exp`, `sin`, .. take all \
         of it",
    ),
    (
        &[
            "plt",
            "pyplot",
            "matplotlib",
            "pylab",
            "figure",
            "subplot",
            "subplots",
            "savefig",
            "imshow",
            "scatter",
            "semilogy",
            "loglog",
        ],
        "`plot(table, #{ file: \"a.svg\" })` draws a Table or a Series",
    ),
    (
        &["kwant", "pb", "pybinding", "pythtb", "tbplas"],
        "`let m = model(lattice::honeycomb(8, 8)); m.nearest(-2.7); m.build()` makes a Hamiltonian; `lookfor hopping` \
         tells more",
    ),
    (
        &["tenpy", "itensor", "pyblock2", "quspin"],
        "`sites(\"S=1/2\", 10)` is a chain, `opsum()` and `models::` are Hamiltonians, `dmrg::finite` and \
         `exact::operator` take both",
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
    (&["size", "length", "shape", "ndim"], "`x.len` is a length; a Matrix has `m.rows` and `m.columns`"),
    (&["range"], "`for i in 0..3` counts 0, 1, 2; `linspace(a, b, n)` has n numbers from a to b"),
    (&["eye"], "`identity(3)` is a unit matrix"),
    (
        &["rand", "randn", "random", "randint"],
        "`random_numbers(n)` are n random numbers, `random_choice([1, 2])` is one of an array",
    ),
    (
        &["T", "H", "mT", "adjoint", "hermitian", "ctranspose"],
        "`m.transpose()` exchanges rows and columns, `m.dagger()` is the conjugate transpose",
    ),
    (&["type", "typeof", "isinstance"], "`type_of(x)` is the type of a value; `whos` lists the variables"),
    (
        &["dir", "methods", "vars"],
        "`help(\"Series\")` lists what a type has, `lookfor word` searches all texts",
    ),
    (
        &["savetxt", "to_csv", "loadtxt", "genfromtxt", "read_csv", "writedlm"],
        "`table.save(\"a.csv\")` and `load(\"a.csv\")`",
    ),
    (
        &["open", "fopen", "read_file", "readlines", "readline"],
        "`read_text(\"a.txt\")` is the text in a file, `load(\"a.csv\")` its numbers",
    ),
    (
        &["clock", "perf_counter", "now", "tic", "toc"],
        "`let t = timestamp();` begins, `t.elapsed` are the seconds since",
    ),
    (&["enumerate"], "`for (x, i) in a { .. }` has elements and their numbers"),
    (&["inv"], "`m.inverse()` is the inverse matrix; `m.solve(b)` solves m x = b"),
    (&["col"], "`m.column(0)` is a column of a Matrix"),
    (&["items"], "`m.keys()` are the names in a map, `m.values()` what they hold"),
    (&["str", "repr"], "`x.to_string()` is a value as text, as is `${x}` in back-ticks"),
    (
        &["float", "double"],
        "`x.to_float()` is a whole number as float, `parse_float(text)` the number of a text",
    ),
    (&["round"], "`round(x)` is the nearest whole number; `format(x, 3)` shows three digits"),
    (
        &["fft", "ifft", "rfft", "fftfreq"],
        "Fourier sums are written out: `(exp(-I * k * x) * s).sum()` for Series x and s",
    ),
    (&["input", "argv", "sys"], "values come from the command line: `--set n=8` is `args.n` in the script"),
    (
        &["open", "fopen", "os", "cd", "ls", "pwd"],
        "`load(\"a.csv\")` reads a file, `x.save(\"a.csv\")` writes one",
    ),
    (&["history", "reset", "clear", "undo"], "commands of the session begin with `%`; `%help` lists them"),
    (
        &["help", "lookfor", "whos"],
        "the session has it; outside of it `umklapp doc NAME` explains a function",
    ),
    (
        &["eigenvalues", "eigenvectors", "eigenstates", "diagonalize", "diagonalise"],
        "`h.to_matrix().eigh()` has all levels of an Operator, `davidson(h)` the lowest, `eigs(h)` some inside",
    ),
    (
        &["ground_state", "groundstate"],
        "`davidson(h)` finds that of an Operator, `dmrg::finite(h, chain)` that of an OpSum on its sites",
    ),
    (
        &["to_dense", "todense", "toarray", "to_array", "tolist"],
        "`h.to_matrix()` is an Operator as a Matrix, `m.to_array()` the rows of a Matrix",
    ),
    (
        &["measure", "expectation", "expectation_value"],
        "`state.expect(\"Sz\")` is an expectation value on every site",
    ),
    (&["quit", "bye", "abort"], "`exit()` ends a script, Ctrl-D the session"),
];

/// Words that other languages have where this one's parser stumbles.
const WORDS: [(&[&str], &str); 10] = [
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
    (
        &["class", "struct", "type", "enum", "object"],
        "a map holds values by name: `let p = #{ x: 1.0, y: 2.0 };`",
    ),
    (&["raise", "except", "finally"], "`try { .. } catch (e) { print(e.message); }`, and `throw \"text\"`"),
    (&["match", "case"], "`switch x { 1 => a, _ => b }` chooses by value"),
    (&["null", "nil"], "nothing is `()`"),
];

fn found(table: &[(&[&str], &'static str)], word: &str) -> Option<&'static str> {
    table.iter().find(|(words, _)| words.contains(&word)).map(|(_, hint)| *hint)
}

/// What serves instead of a variable, function or module of another tool.
pub(super) fn name(word: &str) -> Option<&'static str> {
    found(&NAMES, word)
}

/// Marks of other languages: whether a line has them where it failed, which is between the two texts.
fn marks(before: &str, after: &str) -> Option<&'static str> {
    let number = before.ends_with(|c: char| c.is_ascii_digit() || c == '.');
    let letter = before.chars().next_back();
    let quoted = after.starts_with('\'') || before.ends_with('\'');
    let open = before.rfind(['[', ']']).filter(|at| before[*at..].starts_with('['));
    let line = format!("{before}{after}");
    if after.starts_with('#') && !after.starts_with("#{") {
        return Some("comments begin with `//`");
    }
    if after.starts_with("++") || after.starts_with("--") {
        return Some("`i += 1` counts on");
    }
    if after.starts_with('@') {
        return Some("`a * b` is the product of matrices");
    }
    if after.starts_with("<-") {
        return Some("`let x = 1;` makes a variable, `x = 2;` changes it");
    }
    if after.starts_with("=>") || after.starts_with("->") {
        return Some("`|x| 2 * x` is a function without a name");
    }
    if matches!(letter, Some('f' | 'r')) && after.starts_with(['"', '\'']) {
        return Some("a text with values stands in back-ticks: `x = ${x}`");
    }
    if number && after.starts_with(['j', 'i']) {
        return Some("the imaginary unit is `I`, as in `2.0 + 3.0 * I`");
    }
    if open.is_some() && after.starts_with(':') {
        return Some(
            "a part of a Series is `s[1..3]`, its end left out; `t.slice(1, 3)` are rows of a Table",
        );
    }
    let brace = before.rfind(['{', '}']).filter(|at| before[*at..].starts_with('{'));
    let begins_value = |at: usize| before[..at].trim_end().ends_with(['=', '(', ',', '[']);
    if brace.is_some_and(begins_value) && after.starts_with(':') {
        return Some("a map is `#{ a: 1, b: 2 }`");
    }
    if open.is_some() && after.starts_with("for ") {
        return Some("`[0, 1, 2].map(|i| 2 * i)` makes an array of another");
    }
    if open.is_some()
        && line.contains(';')
        && line.contains(']')
        && after.starts_with(|c: char| c.is_ascii_digit())
    {
        return Some("`matrix([[1, 2], [3, 4]])` has rows in brackets and commas between numbers");
    }
    if after.starts_with(|c: char| "²³¹⁰⁴⁵⁶⁷⁸⁹⁺⁻₀₁₂₃₄₅₆₇₈₉₊₋".contains(c))
    {
        return Some("a power is `x ** 2`; names are made of letters, digits and `_`, like `x_1`");
    }
    if after.starts_with(['·', '×', '−', '÷']) {
        return Some("`a * b` is a product, `a - b` a difference, `a / b` a quotient");
    }
    if after.starts_with(['≤', '≥', '≠']) {
        return Some("it is written `<=`, `>=` or `!=`");
    }
    if quoted {
        return Some("texts stand in double quotes; `m.dagger()` is the conjugate transpose");
    }
    None
}

/// What a line that cannot be parsed may have meant: by what stands where it failed, from that byte on, by the word
/// there, or the one that it begins with.
pub(super) fn line(line: &str, at: usize, word: &str) -> Option<&'static str> {
    let here = line.get(at..).and_then(|after| marks(&line[..at], after));
    let text = line.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let first = &text[..end];
    let block = || {
        if first == "for" && line.get(at..).is_some_and(|after| after.starts_with('=')) {
            return Some("`for i in 0..3 { .. }` counts 0, 1, 2");
        }
        let opens = matches!(first, "for" | "while" | "if" | "else" | "loop" | "try");
        let colon = opens && line.get(at..).is_some_and(|after| after.starts_with(':'));
        let opened = line.trim_end().strip_suffix(':').is_some_and(|before| !before.ends_with(':'));
        (colon || opened).then_some("blocks stand in braces: `for i in 0..3 { .. }`")
    };
    let bare = || {
        (matches!(first, "print" | "echo") && !text[end..].starts_with('('))
            .then_some("`print(x);` has brackets")
    };
    here.or_else(|| found(&WORDS, word)).or_else(|| found(&WORDS, first)).or_else(bare).or_else(block)
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
        assert!(hint("for i = 0; i < 3; i += 1 { }").contains("0..3"));
        assert!(hint("let a = 1;\nif a == 1 and true { 2 }").contains("&&"));
        assert!(hint("for i in 0..3:\n    print(i)").contains("braces"));
        assert!(hint("from numpy import *").contains("without an import"));
        assert!(hint("var x = 3;").contains("let x = 1"));
        assert!(hint("print 3").contains("has brackets") && !hint("print(3 4)").contains("has brackets"));
        for (script, words) in [
            ("for i in range(3) { }", "0..3"),
            ("let a = identity(2); a.T", "transpose"),
            ("let a = identity(2); a.shape", "m.rows"),
            ("let a = identity(2); a @ a", "a * b"),
            ("let a = identity(2); let b = a';", "dagger"),
            ("print('text')", "double quotes"),
            ("let x = 2.0; let y = x²;", "x ** 2"),
            ("let x₁ = 2.0;", "x_1"),
            ("let x = 2·3;", "a * b"),
            ("let a = 1; if a ≤ 2 { }", "<="),
            ("print(f\"x {3}\")", "back-ticks"),
            ("let i = 1; i++", "i += 1"),
            ("# a comment", "//"),
            ("let s = linspace(0, 1, 5); s[1:3]", "s[1..3]"),
            ("[i for i in 0..3]", ".map("),
            ("let z = 2j;", "`I`"),
            ("let a = [1 2; 3 4];", "matrix("),
            ("x <- 3", "let x = 1"),
            ("let f = x => x;", "|x| 2 * x"),
            ("for i in 0..3: print(i)", "braces"),
            ("let d = {\"a\": 1};", "#{ a: 1"),
            ("figure()", "plot(table"),
            ("rand(3)", "random_numbers"),
            ("eye(3)", "identity(3)"),
            ("type(3)", "type_of"),
            ("tic()", "timestamp"),
            ("readlines(\"a.txt\")", "read_text"),
        ] {
            assert!(hint(script).contains(words), "{script}: {}", hint(script));
        }
        assert!(hint("matrix([[1]])[0, 0]").contains("m[[i, j]]"));
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
            "let m = identity(3); m.transpose(); m.dagger(); m.rows + m.columns; type_of(m); m * m; [0, 1].map(|i| 2 \
             * i)",
            "linspace(0.0, 1.0, 5)[1..3]; table([[\"x\", [1, 2, 3, 4]]]).slice(1, 3)",
            "linspace(1.0, 1.0, 3).len + PI + (2.0 + 3.0 * I).re",
            "random_numbers(3).len + random_choice([1, 2]); let map = #{ a: 1, b: 2 }; map.a; map.keys(); map.values()",
            "let m = identity(2); m.inverse(); m.solve(series([1, 2])); m.column(0); m.to_string(); 3.to_float()",
            "parse_float(\"3\"); round(3.2); format(3.14159, 3); for (x, i) in [1, 2] { x + i; }",
            "let x = series(0..4); let s = x * x; let k = PI / 2.0; (exp(-I * k * x) * s).sum()",
            "parse_int(\"3\"); let t = timestamp(); t.elapsed;",
            "try { read_text(\"none.txt\"); } catch (e) { if \"no function\" in e.message { throw e; } }",
            "switch 1 { 1 => 2, _ => 3 }; try { throw \"text\"; } catch (e) { e; }",
        ] {
            assert!(engine.eval(script).is_ok(), "{script}");
        }
    }
}
