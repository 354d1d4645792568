//! The pages of what no registry lists: the language's own words and functions, how it counts, what functions see.

/// How the language counts and compares, for which there is no function to ask.
pub(super) const NUMBERS: &str = "\
Numbers are int (64 bits), float (double precision) and Complex. An operation with two kinds gives
the wider kind. The result of two ints is an int: `1/2` is 0. An int that exceeds 64 bits is an
error. Series, Matrices and Tables hold floats, and refuse whole numbers that would be rounded
(some of those beyond 2^53).

Comparisons are exact: `==`, `!=`, `<`, `<=`, `>`, `>=` compare the values of floats without a
tolerance. So `0.1 + 0.2 == 0.3` is false and `1e-300 > 0` is true. An int and a float are
compared with all their digits. The elements of arrays and maps, `in`, `contains`, `index_of` and
the cases of a `switch` follow the same rule. For equality up to rounding write
`abs(x - y) < 1e-12` or `assert_close`.

NaN is not equal to anything, not even to itself; `x.is_nan()` tests for it. `max`, `min` and the
extremes of a Series are NaN if one of their numbers is NaN; `sort` and `sorted` put NaN last.

A Series, a Matrix and all other types of this program can be compared only with the same type:
`series > 0` and `matrix == 1` are errors. The test `x == ()` works for any value. Complex numbers
can be equal, but they have no order.

Functions of Complex follow the branch cuts of the C standard. There the sign of a zero part
decides on which side of a cut a number lies.";

/// What a function sees. This surprises users of other languages.
pub(super) const FUNCTIONS: &str = "\
A function defined with `fn` sees only its parameters and its own variables. It sees no variable
of the script around it, not even one defined before it. `I` and `PI` are visible everywhere.
There are three ways to use other values:

- pass the value as a parameter: `fn energy(h, psi) { .. }`;
- write a closure, `let energy = |psi| dot(psi, h * psi);`, which captures the variables that it
  names. Call it as `energy.call(psi)`, or pass it to other functions;
- define a constant, `const N = 64;`, which functions read as `global::N`.

```rhai
const N = 4;
let step = 0.5;
fn grid(step) { linspace(0.0, step * global::N, global::N + 1) }
let scaled = |x| step * x;
assert(grid(step)[4] == scaled.call(4.0), \"a parameter, a constant and a closure\");
```";

/// Words of the language and functions that it brings, with what they do and how they are written.
const WORDS: [(&[&str], &str); 16] = [
    (&["numbers"], NUMBERS),
    (&["functions"], FUNCTIONS),
    (
        &["let", "const", "global"],
        "`let x = 3;` makes a variable; a second `let` of the same name hides the first. `const N = 64;` makes a value
that does not change, which functions read as `global::N`.",
    ),
    (
        &["fn", "return", "private"],
        "`fn f(x, y) { x + y }` defines a function. Its last expression is its value; `return x;` leaves it before.
`|x| 2 * x` is a function without a name. `help(functions)` tells what functions see. In a file that
others import, `private fn` is for that file alone.",
    ),
    (
        &["this"],
        "In a function that is called as a method, `this` is the value before the point.

```rhai
fn half() { this / 2 }
assert(6.half() == 3, \"a method\");
```",
    ),
    (
        &["if", "else"],
        "`if a > 0 { .. } else if a < 0 { .. } else { .. }`. The condition is true or false, without parentheses; the
braces are needed. The whole has a value: `let s = if a > 0 { 1 } else { 0 };`.",
    ),
    (
        &["switch"],
        "One of several values. The kinds have to agree: the value 1.0 does not match the case 1.

```rhai
let name = switch 3 { 1 => \"one\", 2 | 3 => \"few\", 4..10 => \"some\", _ => \"many\" };
assert(name == \"few\", \"two cases\");
```",
    ),
    (
        &["for", "in"],
        "`for i in 0..3 { .. }` counts 0, 1, 2; `0..=3` has 3 too, and `range(0, 10, 2)` goes in steps. `for x in a`
goes through an array, a Series or the letters of a text, `for (x, i) in a` numbers them. `x in a` by itself
asks whether an array has the value, or a map the key.",
    ),
    (
        &["while", "until", "do", "loop", "break", "continue"],
        "`break` leaves a loop, `continue` begins its next round.

```rhai
let n = 0;
while n < 3 { n += 1; }
do { n -= 1; } until n == 0;
let found = loop { n += 1; if n * n > 20 { break n; } };
assert(found == 5, \"the value of `break`\");
```",
    ),
    (
        &["try", "catch", "throw"],
        "An error ends the script, unless it is caught. `throw` makes one: of a text, or of a map with a hint.

```rhai
try { throw #{ message: \"no gap\", hint: \"take a larger lattice\" }; } catch (e) {
    assert(e.message == \"no gap\" && e.hint != \"\", \"as it was thrown\");
}
```",
    ),
    (
        &["import", "export", "as"],
        "`import \"tools\" as t;` reads `tools.rhai` beside the script; `t::f(x)` calls a function of it, `t::N` is a
constant that it exports: `export const N = 64;`.",
    ),
    (&["true", "false"], "The two values of a condition: `!a` is the other one, `a && b` both, `a || b` one at least."),
    (
        &["print", "debug"],
        "`print(x)` writes a value on standard output. Texts in back-ticks take values: print(`n = ${n}`). `debug(x)`
writes on standard error, with the line of the script.",
    ),
    (
        &["type_of"],
        "The name of a value's type, as help writes it.

```rhai
assert(type_of(1) == \"int\" && type_of(series([1, 2])) == \"Series\" && type_of(|x| x) == \"function\", \"names\");
```",
    ),
    (
        &["Fn", "call", "curry"],
        "Functions are values. `f.call(x)` calls one, `f.curry(a)` gives it its first value, `Fn(\"name\")` is the
function of that name.

```rhai
fn plus(x, y) { x + y }
let next = Fn(\"plus\").curry(1);
assert(next.call(2) == 3, \"1 + 2\");
```",
    ),
    (
        &["eval", "is_def_var", "is_def_fn", "is_shared"],
        "`eval(\"1 + 2\")` runs a text as a piece of script, which `check` cannot look into. `is_def_var(\"x\")` asks
whether there is a variable of this name, `is_def_fn(\"f\", 2)` whether there is a function of two values,
`is_shared(x)` whether a closure holds a variable too.",
    ),
];

/// The page of a word.
pub(super) fn about(name: &str) -> Option<&'static str> {
    WORDS.iter().find(|(names, _)| names.contains(&name)).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::script::lex::KEYWORDS;
    use crate::script::lint::BUILT_IN;

    #[test]
    fn every_word_of_the_language_has_a_page() {
        let without: Vec<&&str> =
            KEYWORDS.iter().chain(&BUILT_IN).filter(|word| about(word).is_none()).collect();
        assert!(without.is_empty(), "{without:?}");
    }

    #[test]
    fn examples_run() {
        let mut engine = Engine::new().unwrap();
        let mut run = 0;
        for (_, text) in WORDS {
            for example in text.split("```rhai\n").skip(1) {
                let script = example.split("```").next().unwrap_or_default();
                let ran = engine.eval(script);
                assert!(ran.is_ok(), "{script}\n{}", ran.unwrap_err().message);
                run += 1;
            }
        }
        assert!(run > 6, "{run}");
    }
}
