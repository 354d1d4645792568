//! The matrix elements in `_hr.dat` and `_tb.dat` files of Wannier90, and the supercell vectors in `_wsvec.dat` files
//! (Wannier90 user guide, "seedname_hr.dat", "seedname_tb.dat" and "seedname_wsvec.dat").

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::error::{Error, Result};
use crate::lattice::lines::FileLines;
use crate::number::{C64, memory};

/// `<0 m| O |R n>` by R, at `m * orbitals + n`.
pub(super) type CellBlocks = BTreeMap<[i64; 3], Vec<C64>>;

/// What such a file holds, degeneracies divided out.
pub(super) struct WannierElements {
    pub orbitals: usize,
    /// Bravais vectors in angstrom; a `_tb.dat` file has them.
    pub vectors: Option<Vec<Vec<f64>>>,
    /// Electron volts.
    pub hamiltonian: CellBlocks,
    /// Of the Cartesian coordinates, angstrom; a `_tb.dat` file has them.
    pub positions: Option<[CellBlocks; 3]>,
}

/// Largest numbers of Wannier functions and of cells R.
const MOST: (usize, usize) = (4096, 100_000_000);

fn one(lines: &mut FileLines, what: &str, most: usize) -> Result<usize> {
    let words = lines.words(what)?;
    match &words[..] {
        [word] => {
            let n: usize = lines.number(word, what)?;
            if n == 0 || n > most {
                return Err(lines.wrong(format!("gives {n} as {what}, outside 1 to {most}")));
            }
            Ok(n)
        }
        _ => Err(lines
            .wrong(format!("should hold one number, {what}"))
            .hint("is it a Wannier90 `_hr.dat` or `_tb.dat` file? Its first line is a comment")),
    }
}

/// Words of the next line that has any.
fn filled(lines: &mut FileLines, what: &str) -> Result<Vec<String>> {
    loop {
        let words = lines.words(what)?;
        if !words.is_empty() {
            return Ok(words);
        }
    }
}

fn integers<const N: usize>(lines: &FileLines, words: &[String], what: &str) -> Result<[i64; N]> {
    let mut found = [0; N];
    for (to, word) in found.iter_mut().zip(words) {
        *to = lines.number(word, what)?;
    }
    Ok(found)
}

/// The place of the element of two Wannier functions, counted from 1, in a block.
fn place(lines: &FileLines, orbitals: usize, m: &str, n: &str) -> Result<usize> {
    let index = |word: &str| -> Result<usize> {
        let i: usize = lines.number(word, "the number of a Wannier function")?;
        if i == 0 || i > orbitals {
            return Err(lines.wrong(format!("has Wannier function {i}, outside 1 to {orbitals}")));
        }
        Ok(i - 1)
    };
    Ok(index(m)? * orbitals + index(n)?)
}

fn complex(lines: &FileLines, re: &str, im: &str) -> Result<C64> {
    Ok(C64::new(lines.real(re, "a real part")?, lines.real(im, "an imaginary part")?))
}

/// The elements of `N` operators between the Wannier functions of one cell and of another.
struct WannierBlock<const N: usize> {
    entries: [Vec<C64>; N],
    seen: Vec<bool>,
}

impl<const N: usize> WannierBlock<N> {
    fn new(orbitals: usize) -> Self {
        let size = orbitals * orbitals;
        WannierBlock { entries: std::array::from_fn(|_| vec![C64::ZERO; size]), seen: vec![false; size] }
    }

    /// Sets the elements of the line read last; each stands there once.
    fn set(
        &mut self,
        lines: &FileLines,
        at: usize,
        r: [i64; 3],
        m: &str,
        n: &str,
        values: [C64; N],
    ) -> Result<()> {
        if std::mem::replace(&mut self.seen[at], true) {
            return Err(lines.wrong(format!("has element {m} {n} at R = {r:?} a second time")));
        }
        for (entries, value) in self.entries.iter_mut().zip(values) {
            entries[at] = value;
        }
        Ok(())
    }
}

/// Reads a file of either kind; one whose name ends in `_tb.dat` also holds vectors and positions.
pub(super) fn read(path: &Path) -> Result<WannierElements> {
    let mut lines = FileLines::open(path)?;
    lines.words("a comment")?;
    let whole = path.to_string_lossy().ends_with("_tb.dat");
    let vectors = if whole { Some(vectors(&mut lines)?) } else { None };
    let orbitals = one(&mut lines, "the number of Wannier functions", MOST.0)?;
    let points = one(&mut lines, "the number of cells R", MOST.1)?;
    let bytes = 16 * (orbitals * orbitals) as u128 * points as u128 * if whole { 4 } else { 1 };
    memory::ensure(bytes, &format!("{points} matrices of {orbitals} Wannier functions"))?;
    let weights = weights(&mut lines, points)?;
    let mut hamiltonian = CellBlocks::new();
    for (k, weight) in weights.iter().enumerate() {
        let (r, block) =
            if whole { tb_block(&mut lines, orbitals, k)? } else { hr_block(&mut lines, orbitals, k)? };
        let [entries] = block.entries;
        add(&lines, &mut hamiltonian, r, entries, *weight)?;
    }
    let mut positions = None;
    if whole {
        let mut of: [CellBlocks; 3] = Default::default();
        for (k, weight) in weights.iter().enumerate() {
            let (r, block) = tb_block::<3>(&mut lines, orbitals, k)?;
            for (blocks, entries) in of.iter_mut().zip(block.entries) {
                add(&lines, blocks, r, entries, *weight)?;
            }
        }
        positions = Some(of);
    }
    ends(&mut lines, points, orbitals)?;
    Ok(WannierElements { orbitals, vectors, hamiltonian, positions })
}

/// Checks that nothing follows: a header that announces fewer cells than there are would cut the model off.
fn ends(lines: &mut FileLines, points: usize, orbitals: usize) -> Result<()> {
    while let Some(line) = lines.next()? {
        if !line.trim().is_empty() {
            let hint = format!("its header announces {points} cells R and {orbitals} Wannier functions");
            return Err(lines.wrong("continues after the last matrix element").hint(hint));
        }
    }
    Ok(())
}

fn add(
    lines: &FileLines,
    blocks: &mut CellBlocks,
    r: [i64; 3],
    mut entries: Vec<C64>,
    weight: f64,
) -> Result<()> {
    entries.iter_mut().for_each(|z| *z /= weight);
    match blocks.insert(r, entries) {
        None => Ok(()),
        Some(_) => Err(lines.wrong(format!("ends a second block for R = {r:?}"))),
    }
}

fn vectors(lines: &mut FileLines) -> Result<Vec<Vec<f64>>> {
    (0..3)
        .map(|_| {
            let words = lines.words("a Bravais vector")?;
            if words.len() != 3 {
                return Err(lines.wrong("should hold the three coordinates of a Bravais vector"));
            }
            words.iter().map(|word| lines.real(word, "a coordinate")).collect()
        })
        .collect()
}

fn weights(lines: &mut FileLines, points: usize) -> Result<Vec<f64>> {
    let mut weights = Vec::with_capacity(points);
    while weights.len() < points {
        for word in lines.words("the degeneracies of the cells R")? {
            let weight: u32 = lines.number(&word, "a degeneracy")?;
            if weight == 0 {
                let (found, hint) =
                    (weights.len(), "each cell R has one, a whole number from 1, before the elements");
                let text =
                    format!("has a degeneracy of 0, where {found} of {points} degeneracies came before");
                return Err(lines.wrong(text).hint(hint));
            }
            weights.push(f64::from(weight));
        }
    }
    if weights.len() > points {
        return Err(lines.wrong(format!("has more degeneracies than the {points} cells R")));
    }
    Ok(weights)
}

/// The lines `R1 R2 R3 m n re im` of the `k`-th cell.
fn hr_block(lines: &mut FileLines, orbitals: usize, k: usize) -> Result<([i64; 3], WannierBlock<1>)> {
    let (mut at, mut block) = (None, WannierBlock::new(orbitals));
    for element in 0..orbitals * orbitals {
        let words = lines.words(&format!("matrix element {} of cell {}", element + 1, k + 1))?;
        let [x, y, z, m, n, re, im] = &words[..] else {
            return Err(lines.wrong(format!(
                "has {} numbers, and a matrix element has 7: R, two indices, real and imaginary part",
                words.len()
            )));
        };
        let r = integers(lines, &[x.clone(), y.clone(), z.clone()], "a component of R")?;
        if *at.get_or_insert(r) != r {
            return Err(lines.wrong("begins another R before all elements of the last are there"));
        }
        let value = complex(lines, re, im)?;
        let place = place(lines, orbitals, m, n)?;
        block.set(lines, place, r, m, n, [value])?;
    }
    Ok((at.unwrap_or_default(), block))
}

/// The line `R1 R2 R3` of the `k`-th cell, and its lines `m n re im re im ..`, two numbers an operator.
fn tb_block<const N: usize>(
    lines: &mut FileLines,
    orbitals: usize,
    k: usize,
) -> Result<([i64; 3], WannierBlock<N>)> {
    let words = filled(lines, &format!("cell {}", k + 1))?;
    if words.len() != 3 {
        return Err(lines.wrong("should hold three whole numbers, those of a cell R"));
    }
    let r = integers(lines, &words, "a component of R")?;
    let mut block = WannierBlock::new(orbitals);
    for element in 0..orbitals * orbitals {
        let words = filled(lines, &format!("matrix element {} of cell {}", element + 1, k + 1))?;
        if words.len() != 2 + 2 * N {
            let all = 2 + 2 * N;
            return Err(lines.wrong(format!("has {} numbers, and there should be {all}", words.len())));
        }
        let mut values = [C64::ZERO; N];
        for (value, pair) in values.iter_mut().zip(words[2..].chunks(2)) {
            *value = complex(lines, &pair[0], &pair[1])?;
        }
        let place = place(lines, orbitals, &words[0], &words[1])?;
        block.set(lines, place, r, &words[0], &words[1], values)?;
    }
    Ok((r, block))
}

/// For `(R, m * orbitals + n)` the supercell vectors that bring Wannier function n of cell R nearest to m of cell 0.
pub(super) type Nearest = HashMap<([i64; 3], usize), Vec<[i64; 3]>>;

/// Reads a `_wsvec.dat` file.
pub(super) fn read_nearest(path: &Path, orbitals: usize) -> Result<Nearest> {
    let mut lines = FileLines::open(path)?;
    lines.words("a comment")?;
    let mut found = Nearest::new();
    while let Some(line) = lines.next()? {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        if words.is_empty() {
            continue;
        }
        let [_, _, _, m, n] = &words[..] else {
            return Err(lines.wrong("should hold R and the numbers of two Wannier functions"));
        };
        let r = integers(&lines, &words, "a component of R")?;
        let at = place(&lines, orbitals, m, n)?;
        let count = one(&mut lines, "the number of supercell vectors", 1000)?;
        let mut vectors = Vec::with_capacity(count);
        for _ in 0..count {
            let words = lines.words("a supercell vector")?;
            if words.len() != 3 {
                return Err(lines.wrong("should hold three whole numbers, a supercell vector"));
            }
            vectors.push(integers(&lines, &words, "a component of a supercell vector")?);
        }
        if found.insert((r, at), vectors).is_some() {
            return Err(lines.wrong(format!("ends a second list for elements at R = {r:?}")));
        }
    }
    Ok(found)
}

/// Each element shared out among the cells R + T that are equally near.
///
/// # Errors
/// An element that the list lacks: the files are of different runs.
pub(super) fn bring_near(
    blocks: &CellBlocks,
    orbitals: usize,
    nearest: &Nearest,
    file: &Path,
) -> Result<CellBlocks> {
    let mut near = CellBlocks::new();
    for (r, block) in blocks {
        for (at, &value) in block.iter().enumerate() {
            let Some(vectors) = nearest.get(&(*r, at)) else {
                return Err(Error::file(format!(
                    "`{}` says nothing of Wannier functions {} and {} at R = {r:?}",
                    file.display(),
                    at / orbitals + 1,
                    at % orbitals + 1
                ))
                .hint("it belongs to another Hamiltonian"));
            };
            let part = value / vectors.len() as f64;
            for t in vectors {
                let mut to = *r;
                for (a, b) in to.iter_mut().zip(t) {
                    *a = a.checked_add(*b).ok_or_else(|| {
                        Error::file(format!("`{}` has a supercell vector {t:?}", file.display()))
                    })?;
                }
                near.entry(to).or_insert_with(|| vec![C64::ZERO; orbitals * orbitals])[at] += part;
            }
        }
    }
    Ok(near)
}
