//! The matrix of an operator sum in a sector, in compressed rows: terms on the same sites are merged into one local
//! matrix, rows are generated twice in parallel (to count, then to fill), columns are numbered by the basis.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::basis::{Basis, Walk};
use super::opsum::{OpSum, Term, changes};
use super::product::Product;
use crate::backend::Device;
use crate::backend::matrix::{Csr, Indices, Values, merge};
use crate::error::{Error, Result};
use crate::number::{C64, DType, Scalar, memory};
use crate::operator::{Format, Operator, Stored};
use crate::task::{Steps, Task};

/// Rows that one thread generates at a time, if they are of few terms.
const CHUNK: usize = 4096;
/// Rows, times groups of terms and sites, that it generates at a time.
const WORK: usize = 1 << 22;
/// The most joint states of the sites of one term.
const MAX_JOINT: usize = 1 << 20;
/// Sums below this, relative to the moduli of what was added, count as zero.
const ROUNDING: f64 = 1e-13;

/// The operator of a sum in a basis, on a device.
///
/// # Errors
/// Those of [`matrix`].
pub fn operator(
    device: &Device,
    sum: &OpSum,
    basis: &Basis,
    format: Format,
    single: bool,
    task: &Task,
) -> Result<Operator> {
    let csr = matrix(sum, basis, single, task)?;
    Ok(Stored::from_csr(device, csr, format)?.labelled(basis.label()))
}

/// The matrix of a sum in a basis; real where all elements are.
///
/// # Errors
/// For names and sites that do not exist, terms that change a number that the basis conserves, memory, interruption.
pub fn matrix(sum: &OpSum, basis: &Basis, single: bool, task: &Task) -> Result<Csr> {
    let groups = groups(sum, basis)?;
    let complex = groups.iter().any(|g| g.elements.iter().any(|e| e.value.im != 0.0));
    match DType::of(single, complex) {
        DType::F32 => assemble::<f32>(&groups, basis, Values::F32, task),
        DType::F64 => assemble::<f64>(&groups, basis, Values::F64, task),
        DType::C32 => assemble::<num_complex::Complex<f32>>(&groups, basis, Values::C32, task),
        DType::C64 => assemble::<C64>(&groups, basis, Values::C64, task),
    }
}

/// All terms on one set of sites with one string of signs, as one sparse matrix of their joint states.
struct Group {
    sites: Vec<usize>,
    /// Weight of each site's state in the number of the joint state.
    strides: Vec<usize>,
    string: Vec<usize>,
    /// Where each row of the matrix starts in `elements`.
    starts: Vec<u32>,
    elements: Vec<Element>,
}

/// An element of a local matrix.
struct Element {
    value: C64,
    /// Local states of the column on the group's sites; empty on the diagonal.
    states: Vec<u8>,
}

/// The elements of terms by row and column, and the moduli that went into each.
type Elements = BTreeMap<(usize, usize), (C64, f64)>;

/// The terms on one set of sites and their elements.
#[derive(Default)]
struct Collected<'a> {
    elements: Elements,
    terms: Vec<&'a Term>,
}

fn groups(sum: &OpSum, basis: &Basis) -> Result<Vec<Group>> {
    let sites = basis.sites();
    sum.fits("a system of", sites.count())?;
    let mut collected: BTreeMap<(Vec<usize>, Vec<usize>), Collected<'_>> = BTreeMap::new();
    let terms = sum.terms_on(sites.count());
    for term in terms.iter() {
        let product = Product::new(term, sites)?.without_identities();
        let support: Vec<usize> = product.factors.iter().map(|f| f.0).collect();
        let joint = joint_dim(basis, &support).filter(|&n| n <= MAX_JOINT).ok_or_else(|| {
            Error::input(format!(
                "the term `{}...` couples {} sites, too many for an exact matrix",
                term.to_string().chars().take(40).collect::<String>(),
                support.len()
            ))
        })?;
        let entry = collected.entry((support, product.string.clone())).or_default();
        entry.terms.push(term);
        expand(&product, basis, joint, &mut entry.elements);
    }
    collected.into_iter().map(|((support, string), c)| group(support, string, c, basis)).collect()
}

fn local_dim(basis: &Basis, site: usize) -> usize {
    basis.levels()[site].dim
}

fn joint_dim(basis: &Basis, support: &[usize]) -> Option<usize> {
    support.iter().try_fold(1usize, |n, &site| n.checked_mul(local_dim(basis, site)))
}

/// Adds the elements of a product to the joint matrix of its sites, the last site the fastest.
fn expand(product: &Product, basis: &Basis, joint: usize, into: &mut Elements) {
    let mut elements = vec![(0usize, 0usize, product.coefficient)];
    for (site, matrix) in &product.factors {
        let dim = local_dim(basis, *site);
        let nonzero: Vec<(usize, usize, C64)> = matrix
            .iter()
            .enumerate()
            .filter(|(_, z)| **z != C64::ZERO)
            .map(|(k, z)| (k / dim, k % dim, *z))
            .collect();
        let extend = |&(row, column, value): &(usize, usize, C64)| {
            nonzero
                .iter()
                .map(move |&(i, j, z)| (row * dim + i, column * dim + j, value * z))
                .collect::<Vec<_>>()
        };
        elements = elements.iter().flat_map(extend).collect();
    }
    for (row, column, value) in elements {
        debug_assert!(row < joint && column < joint);
        let (sum, size) = into.entry((row, column)).or_default();
        *sum += value;
        *size += value.norm();
    }
}

/// The terms among these, all on the same sites, that have an element at this row and column.
fn guilty<'a>(terms: &[&'a Term], place: (usize, usize), basis: &Basis) -> Result<Vec<&'a Term>> {
    let mut guilty = Vec::new();
    for term in terms {
        let mut elements = Elements::new();
        expand(&Product::new(term, basis.sites())?.without_identities(), basis, usize::MAX, &mut elements);
        if elements.get(&place).is_some_and(|(z, _)| *z != C64::ZERO) {
            guilty.push(*term);
        }
    }
    Ok(guilty)
}

fn group(support: Vec<usize>, string: Vec<usize>, collected: Collected<'_>, basis: &Basis) -> Result<Group> {
    let dims: Vec<usize> = support.iter().map(|&site| local_dim(basis, site)).collect();
    let mut strides = vec![1; dims.len()];
    for k in (1..dims.len()).rev() {
        strides[k - 1] = strides[k] * dims[k];
    }
    let joint: usize = dims.iter().product();
    let digits = |n: usize| -> Vec<u8> {
        strides.iter().zip(&dims).map(|(&stride, &dim)| (n / stride % dim) as u8).collect()
    };
    let charges: Vec<Vec<Vec<i32>>> = basis
        .sector()
        .iter()
        .map(|(name, _)| support.iter().map(|&site| basis.sites().twice(site, name)).collect())
        .collect();
    let charge =
        |c: usize, states: &[u8]| -> i32 { charges[c].iter().zip(states).map(|(q, &s)| q[s as usize]).sum() };
    let mut starts = vec![0u32; joint + 1];
    let mut elements = Vec::new();
    for (&(row, column), &(value, size)) in &collected.elements {
        if value.norm() <= ROUNDING * size {
            continue;
        }
        let (to, from) = (digits(row), digits(column));
        for (c, (name, _)) in basis.sector().iter().enumerate() {
            let modulus = basis.sites().modulus(name);
            let change = charge(c, &to) - charge(c, &from);
            if change != 0 && (modulus == 0 || change % modulus != 0) {
                let guilty = guilty(&collected.terms, (row, column), basis)?;
                return Err(changes(&guilty, name, change));
            }
        }
        elements.push(Element { value, states: if row == column { Vec::new() } else { from } });
        starts[row + 1] += 1;
    }
    for row in 0..joint {
        starts[row + 1] += starts[row];
    }
    Ok(Group { sites: support, strides, string, starts, elements })
}

/// Generates rows.
struct Rows<'a> {
    groups: &'a [Group],
    basis: &'a Basis,
    /// Whether each state of each site is odd.
    odd: Vec<Vec<bool>>,
}

impl Rows<'_> {
    /// The entries of the row that the walk stands at, sorted, merged and without zeros.
    fn row(&self, walk: &Walk<'_>, out: &mut Vec<(u64, C64)>) {
        out.clear();
        let levels = self.basis.levels();
        let number = walk.passed[levels.len()];
        let mut diagonal = C64::ZERO;
        for group in self.groups {
            let joint: usize =
                group.sites.iter().zip(&group.strides).map(|(&i, s)| walk.states[i] as usize * s).sum();
            let elements = &group.elements[group.starts[joint] as usize..group.starts[joint + 1] as usize];
            if elements.is_empty() {
                continue;
            }
            let odd = group.string.iter().filter(|&&k| self.odd[k][walk.states[k] as usize]).count() % 2 == 1;
            for element in elements {
                let value = if odd { -element.value } else { element.value };
                if element.states.is_empty() {
                    diagonal += value;
                } else {
                    out.push((number + self.shift(group, element, walk), value));
                }
            }
        }
        if diagonal != C64::ZERO {
            out.push((number, diagonal));
        }
        merge(out);
        out.retain(|e| e.1 != C64::ZERO);
    }

    /// How far the column lies from the row, modulo 2^64: only the sites from the first to the last of the group
    /// matter.
    #[inline]
    fn shift(&self, group: &Group, element: &Element, walk: &Walk<'_>) -> u64 {
        let levels = self.basis.levels();
        let (mut i, mut passed) = (group.sites[0], 0u64);
        let mut node = walk.nodes[i];
        for (&site, &state) in group.sites.iter().zip(&element.states) {
            while i < site {
                passed += levels[i].before(node, walk.states[i]);
                node = levels[i].next(node, walk.states[i]);
                i += 1;
            }
            passed += levels[i].before(node, state);
            node = levels[i].next(node, state);
            i += 1;
        }
        passed.wrapping_sub(walk.passed[i] - walk.passed[group.sites[0]])
    }

    /// Calls `each` for `count` rows from `first` on.
    fn visit(&self, first: usize, count: usize, mut each: impl FnMut(usize, &[(u64, C64)])) {
        let mut walk = Walk::at(self.basis, first);
        let mut row = Vec::new();
        for k in 0..count {
            self.row(&walk, &mut row);
            each(k, &row);
            walk.step();
        }
    }
}

fn assemble<T: Scalar>(
    groups: &[Group],
    basis: &Basis,
    wrap: fn(Vec<T>) -> Values,
    task: &Task,
) -> Result<Csr> {
    let rows = basis.dim();
    memory::ensure(16 * rows as u128, &format!("a sparse matrix of {rows} rows"))?;
    let odd = basis.sites().iter().map(|site| (0..site.dim()).map(|s| site.is_odd(s)).collect()).collect();
    let source = Rows { groups, basis, odd };
    let steps = task.start("matrix elements", 2 * rows);
    let mut row_start = vec![0usize; rows + 1];
    let (length, slabs) = source.pieces();
    for (slab, counts) in row_start[1..].chunks_mut(slabs).enumerate() {
        counts.par_chunks_mut(length).enumerate().for_each(|(chunk, counts)| {
            let first = slab * slabs + chunk * length;
            source.visit(first, counts.len(), |k, row| counts[k] = row.len());
        });
        steps.advance((slab * slabs + counts.len()).min(rows))?;
    }
    for row in 0..rows {
        row_start[row + 1] += row_start[row];
    }
    let entries = row_start[rows];
    let narrow = rows <= u32::MAX as usize;
    memory::ensure(
        entries as u128 * (T::DTYPE.bytes() + if narrow { 4 } else { 8 }) as u128,
        &format!("a sparse matrix of {rows} rows and {entries} entries"),
    )?;
    let mut values = vec![T::default(); entries];
    let columns = if narrow {
        let mut columns = vec![0u32; entries];
        source.fill(&row_start, &mut columns, &mut values, |c| c as u32, &steps)?;
        Indices::U32(columns)
    } else {
        let mut columns = vec![0u64; entries];
        source.fill(&row_start, &mut columns, &mut values, |c| c, &steps)?;
        Indices::U64(columns)
    };
    Ok(Csr { rows, cols: rows, row_start, columns, values: wrap(values) })
}

impl Rows<'_> {
    /// Rows for one thread at a time, and rows between two checks of progress and interruption.
    fn pieces(&self) -> (usize, usize) {
        let each = self.groups.len() + self.basis.sites().count();
        let length = (WORK / each.max(1)).clamp(16, CHUNK);
        (length, 16 * length)
    }

    /// Generates all rows into the arrays.
    fn fill<T: Scalar, I: Copy + Send + Sync>(
        &self,
        row_start: &[usize],
        columns: &mut [I],
        values: &mut [T],
        index: impl Fn(u64) -> I + Sync,
        steps: &Steps<'_>,
    ) -> Result<()> {
        let rows = row_start.len() - 1;
        let (mut columns, mut values) = (columns, values);
        let (length, slabs) = self.pieces();
        for slab in (0..rows).step_by(slabs) {
            let mut parts = Vec::new();
            let end = (slab + slabs).min(rows);
            for first in (slab..end).step_by(length) {
                let last = (first + length).min(end);
                let size = row_start[last] - row_start[first];
                let (c, rest_c) = columns.split_at_mut(size);
                let (v, rest_v) = values.split_at_mut(size);
                (columns, values) = (rest_c, rest_v);
                parts.push((first, last - first, c, v));
            }
            parts.into_par_iter().for_each(|(first, count, columns, values)| {
                let mut at = 0;
                self.visit(first, count, |_, row| {
                    for &(column, value) in row {
                        columns[at] = index(column);
                        values[at] = T::from_c64(value);
                        at += 1;
                    }
                });
            });
            steps.advance(rows + end)?;
        }
        Ok(())
    }
}
