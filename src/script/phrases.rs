//! Translates hints of the numeric layers, which use terms of physics, into terms of the language.

use crate::error::Error;

/// What such a hint says, and what to write in a script.
const PHRASES: &[(&str, &str)] = &[
    (
        "make vectors of the operator's size",
        "make vectors with `random_block(h, ..)` or `unit_block(h, ..)`, which take the size from the operator",
    ),
    ("make operators from a model", "make operators with `model(..).build()` or `tight_binding(..)`"),
    ("make it from a model", "make it with `model(..).build()` or `tight_binding(..)`"),
    ("or one that Lanczos' method finds", "or `spectral_window(h)` to find one"),
    ("look at the bands on a path", "check `bands(..)`"),
    ("a model made with n orbitals has n per site", "`model(lattice, n)` has n orbitals per site"),
    ("an on-site matrix equals its own adjoint", "an on-site matrix equals its own `dagger()`"),
    ("pairs on each site are given without a displacement", "`pairing(D)` pairs on each site"),
    ("an edge is made of a site and a bond", "`edge_block(site, bond)` makes one"),
    (
        "take the basis of the block's own half",
        "of `density_matrix(both, v, \"left\")` for the left block, of \"right\" for the right one",
    ),
    (
        "of a chain that is its own mirror image, a left block and its mirror image",
        "`superblock(block, block.mirror(), sector)` for a chain that is its own mirror image",
    ),
    (
        "take a multiple c of the identity off first, which divides the exponential by that of c",
        "take a multiple of the identity off first: `(m - c).expm()` is `exp(-c)` times it",
    ),
    ("a sum takes pairs of a number and a state", "like `dmrg::combine([[1.0, a], [-0.5, b]])`"),
    (
        "take a hypercubic one of four directions, like 8 x 8 x 8 x 16",
        "make one with `lattice::hypercubic(8, 8, 8, 16)`",
    ),
    (
        "the Ritz functional of Q^2, of the same Q, finds some",
        "`ritz(q * q, #{ count: 8 })` of the same `q` finds some",
    ),
    ("take the sign function of the kernel gamma5 (D_W - 1 - s)", "make one with `overlap::sign(q, #{})`"),
    (
        "take the kernel gamma5 (D_W - 1 - s) of a gauge field",
        "make the kernel with `wilson::kernel(u, #{ s: 0.4 })`",
    ),
    (
        "links that are a little off can be projected onto SU(3)",
        "`load(file, #{ reunitarise: true })` projects links onto SU(3)",
    ),
    ("Lanczos' method needs no entries", "use `spectral_window(h, #{ method: \"lanczos\" })`"),
    (
        "solve A^+ A x = A^+ b, or use BiCGStab; of a Wilson operator the even sites can be solved for",
        "solve `d.dagger() * d` for `d.dagger() * b`, or use `solve::bicgstab`; `solve::conjugate_gradient` of a \
         Wilson operator takes `even_odd: true`",
    ),
    ("solve with A^+ A, or by BiCGStab", "solve with `d.dagger() * d`, or by `solve::bicgstab`"),
    ("say how many, 3 for one", "add `#{ nmax: 3 }`, say"),
    (
        "grow a right block of its own, from an edge of that side",
        "grow a right block of its own: `edge_block(site, bond, #{ side: \"right\" })`",
    ),
    (
        "use blocks grown from the two ends of the chain",
        "use blocks grown from `dmrg::left_edge(mpo)` and `dmrg::right_edge(mpo)`",
    ),
    (
        "name all conserved numbers for the superblock",
        "name all conserved numbers: `superblock(left, right, #{ Sz: 0 })`",
    ),
    (
        "an edge is of a chain of neighbours; finite chains take any range",
        "`edge_block` takes the coupling of two neighbours; `dmrg::finite` takes any range",
    ),
    (
        "give the lattice bonds, or add hoppings by displacement or by distance",
        "give bonds to `lattice::custom`, or use `hop` or `hop_within`",
    ),
    (
        "make a lattice of the strained vectors and sites, and give the hoppings their new values",
        "give the strained vectors and sites to `lattice::custom`, and the hoppings their new values",
    ),
    (
        "make every orbital a site of the cell",
        "make every orbital a site of the cell, with `lattice::custom`",
    ),
    ("soften it by `softening`, 1.0 say", "soften it, like `electrons(system, #{ softening: 1.0 })`"),
    ("a factor `power` keeps them apart", "`jastrow::power(1.0)` keeps them apart"),
    ("a factor `polynomial` has no slope there", "`jastrow::polynomial` has no slope there"),
    (
        "a factor `polynomial` with `opposite: [-0.5]` has no kink",
        "`jastrow::polynomial(#{ cutoff: 6.0, opposite: [-0.5] })` has no kink",
    ),
    ("take that of A + A^+", "take that of `h + h.dagger()`"),
    (
        "set the boundary of the product",
        "set that of the product, as in `(u * v).boundary(\"antiperiodic\")`",
    ),
    (
        "any 3 x 3 matrix that has an inverse can be projected onto SU(3)",
        "`m.reunitarised()` projects a 3 x 3 matrix m onto SU(3)",
    ),
    ("saved with their report", "saved with `mu.save(\"moments.npz\")`"),
    ("it takes one vector, a column of the block", "it takes one vector: `v.column(0)`"),
    ("A + A^+ is Hermitian", "`h + h.dagger()` is Hermitian"),
    ("the nearest links in SU(3) can take their place", "`u.reunitarised()` projects links onto SU(3)"),
    ("take its real part, its imaginary part or its modulus", "take `.re`, `.im` or `.abs()` of it"),
    (
        "a hopping is given by cells, not by places",
        "a hopping is given by cells, `m.hop([1, 0], t)`, not by places",
    ),
    (
        "bring it into a truncated basis first",
        "rotate it into a truncated basis first: `block.grow().rotate(basis)`",
    ),
    (
        "every state of the sector vanishes with these quantum numbers; try others",
        "every state of the sector vanishes with these quantum numbers; `exact::dimension(sites, sector)` is 0 for \
         such a sector",
    ),
    ("grow it by a site, then rotate it", "`block.grow().rotate(basis)`"),
    ("such files are written by saving a state", "such files are written by `gs.save(\"name.dmrg\")`"),
    (
        "add the conjugate of every term that is not its own conjugate",
        "give every term that is not its own conjugate one: `h.add(t, \"Cdag\", i, \"C\", j)` needs `h.add(t, \
         \"Cdag\", j, \"C\", i)`",
    ),
    (
        "all functions take its component with Sz = m",
        "`state.component(m)` is the one with Sz = m, which all functions take",
    ),
    (
        "take two cells as one, so that they have two sites",
        "two sites are needed: take two cells as one, `h.repeated(1, 2)` and `cell.repeated(2)`",
    ),
    (
        "make it for a longer chain and take the terms that begin in its first cell",
        "make it for a longer chain and take the terms of a cell from it: `h.cell(n)` has those that begin on its \
         first n sites",
    ),
    ("solve on all sites", "use `even_odd: false`"),
    (
        "it works on a Wilson operator itself, without gamma5",
        "it works on `wilson::operator(u, #{ mass: .. })` itself",
    ),
    ("solve with A^+ A", "solve with `d.dagger() * d`"),
    (
        "give both the same momentum across",
        "give the same momentum across, `k`, to `transport::lead` and `transport::system`",
    ),
    ("an origin moves it along as well", "`origin` of `transport::lead` moves it along as well"),
    (
        "give it when the matrix is made",
        "give it as the option `k` of `build`, of `transport::lead` and of `transport::system`",
    ),
    (
        "such a lead is made with the local matrix that it conserves",
        "give the local matrix to the option `conserves` of `transport::lead`",
    ),
    ("in the order of the lattice's bonds", "in the order of `bonds()` of the lattice"),
];

/// The error with its hint in the words of the language, where there are such for it.
pub(super) fn for_scripts(error: Error) -> Error {
    let Some(hint) = error.hint_text() else { return error };
    let mut words = hint.to_string();
    for (physics, script) in PHRASES {
        words = words.replace(physics, script);
    }
    if words == hint { error } else { error.hint(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phrase_stands_in_a_numeric_layer() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let (mut open, mut text) = (vec![root.clone()], String::new());
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && path != root.join("script") {
                    open.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    text.push_str(&std::fs::read_to_string(&path).unwrap());
                }
            }
        }
        let lost: Vec<&str> = PHRASES.iter().map(|p| p.0).filter(|p| !text.contains(p)).collect();
        assert!(lost.is_empty(), "no hint says any more: {}", lost.join("; "));
    }

    #[test]
    fn a_hint_names_the_function() {
        let error = Error::input("x")
            .hint("the file is damaged; links that are a little off can be projected onto SU(3)");
        let hint = for_scripts(error).hint_text().map(str::to_string);
        assert!(hint.is_some_and(|hint| hint.contains("damaged; `load(file, #{ reunitarise: true })`")));
        assert_eq!(for_scripts(Error::input("x").hint("y")).hint_text(), Some("y"));
    }
}
