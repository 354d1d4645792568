use super::super::Engine;

fn said(script: &str) -> String {
    let found = Engine::new().unwrap().check(script, None);
    found
        .into_iter()
        .map(|r| format!("{:?} {}", r.position.unwrap_or_default(), r.message))
        .collect::<Vec<_>>()
        .join("; ")
}

#[test]
fn types_that_a_function_cannot_take_are_mistakes_of_its_call() {
    for (script, message) in [
        (
            "fn f(x) { x.sites }\nf(1.5);",
            "(2, 1) `f` cannot take (float): float has no property `sites` (line 1)",
        ),
        ("1.5.sites;", "(1, 5) float has no property `sites`"),
        ("let a = 2 * 1.5;\nprint(a.sites);", "(2, 9) float has no property `sites`"),
        ("let l = lattice::chain(4);\nl.sitez;", "(2, 3) Lattice has no property `sitez`"),
        (
            "fn make(n) { let m = n + 1; lattice::chain(m) }\nmake(3).orbitalz;",
            "(2, 9) Lattice has no property `orbitalz`",
        ),
        (
            "fn f(x) { g(x) }\nfn g(y) { y.sites }\nf(\"a\");",
            "`f` cannot take (string): `g` cannot take (string): string has",
        ),
        (
            "fn f(x) { linspace(0, 1, x) }\nf(\"a\");",
            "`f` cannot take (string): no function `linspace(int, int, string)`",
        ),
        ("lattice::chain(\"a\");", "(1, 10) no function `lattice::chain(string)`"),
        ("let h = tight_binding(lattice::chain(4));\nh.sites_of_it();", "no function `sites_of_it`"),
        ("fn f(n) { if n > 0 { return 1; } 2 }\nf(1).sites;", "int has no property `sites`"),
        ("fn f() { 1.sites }", "(1, 12) int has no property"),
        // Columns and keys that a function of the stdlib tells.
        (
            "let h = tight_binding(lattice::chain(8));\nlet t = kpm::ldos(h, 0, #{ moments: 16 });\nt.densty;",
            "(3, 3) the Table of `kpm::ldos` has no `densty`",
        ),
        ("models::exponentials(|r| 1.0 / r).ratio;", "the map of `models::exponentials` has no `ratio`"),
        ("kpm::dos(1.5);", "no function `kpm::dos(float)`"),
        ("models::hubbard_on(lattice::chain(4));", "no function `models::hubbard_on(Lattice)`"),
        ("for i in 0..3 { 1.5.sites; }", "float has no property"),
    ] {
        assert!(said(script).contains(message), "{script}: {}", said(script));
        if !script.starts_with("kpm") {
            let run = Engine::new().unwrap().eval(script);
            assert!(run.is_err() || script.starts_with("fn f() "), "{script}");
        }
    }
}

#[test]
fn nothing_is_said_of_what_may_go_well() {
    for script in [
        "fn f(x) { x.sites }\nf(lattice::chain(4));",
        "fn f(x) { x.sites }\nf(#{ sites: 3 });",
        // Values that change, shadows, branches.
        "let a = 1;\na = lattice::chain(4);\na.sites;",
        "let a = 1;\nlet a = lattice::chain(4);\na.sites;",
        "let a = lattice::chain(4);\nif true { let a = 1; a }\na.sites;",
        "let a = 1;\nlet g = || { a = lattice::chain(4); };\ng.call();\na.sites;",
        "fn f(x) { if type_of(x) == \"float\" { return x; } x.sites }\nf(1.5);",
        "fn f(x, n) { if n == 1 { x.sites } else { x } }\nf(1.5, 2);",
        "fn f(x) { x = lattice::chain(4); x.sites }\nf(1.5);",
        "fn f(x) { let x = lattice::chain(4); x.sites }\nf(1.5);",
        "fn f(x, n) { n > 1 && x.sites > 1 }\nf(1.5, 1);",
        "fn f(x) { throw \"no\"; x.sites }\ntry { f(1.5); } catch { }",
        "fn f(x) { x.sites }\ntry { f(1.5); } catch (e) { print(e); }",
        "fn f(x) { let g = || x.sites; 1 }\nf(1.5);",
        "fn f(n) { if n == 0 { 1 } else { f(n - 1) } }\nf(3);",
        "fn f(n) { g(n) }\nfn g(n) { f(n) }\nif false { f(3); }",
        "fn f(n) { if n > 0 { return lattice::chain(4); } 2 }\nf(1).sites;",
        "fn f(n) { switch n { 1 => { return lattice::chain(4); } } 2 }\nf(1).sites;",
        "let t = table(#{ x: [1] });\nt.x; t.x.sum();",
        "let e = models::exponentials(|r| 1.0 / r);\ne.mine = 3;\ne.mine; e.ratios.len; e.keys();",
        "let e = models::exponentials(|r| 1.0 / r);\ne.set(\"mine\", 3);\ne.mine;",
        "let h = tight_binding(lattice::chain(8));\nlet t = kpm::ldos(h, 0, #{ moments: 16 });\nt.rows; t.energy.len; \
         t.report;",
        "let g = kpm::green(kpm::moments(tight_binding(lattice::chain(8)), #{ moments: 16 }), #{ energies: [0.0] \
         });\ng.error_re;",
        "let x = 1; if type_of(x) == \"map\" { x.foo; }",
        "let m = #{ sites: |x| x };\nm.sites(3);",
        // The index is no value of the chain that goes on behind it.
        "let a = [lattice::chain(4)];\na[0].sites; a[-1].sites; a[0][1..2]; let m = #{ a: a }; m.a[0].sites;",
        "let a = [1, 2]; a.len(); a.len; \"abc\".len; 2.0.sqrt(); 2.abs();",
        "let s = linspace(0, 1, 3); sqrt(s).sum() + sin(1) + exp(I).re;",
        "eval(\"let q = 1\"); let a = 1; a.sites;",
        "fn f(x) { return x; }\nf(lattice::chain(4)).sites;",
        "fn f(o) { o?.sites }\nf(());",
        "fn f() { this = lattice::chain(4); }\nlet a = 1;\na.f();\na.sites;",
        "fn f() { this = lattice::chain(4); this }\nlet a = 1;\na.f().sites;\na.sites;",
        "let began = timestamp();\nbegan.elapsed; 'a'.to_upper(); blob(4).len;",
        "let f = || this = lattice::chain(4);\nlet a = 1;\na.call(f);\na.sites;",
    ] {
        assert_eq!(said(script), "", "{script}");
    }
}
