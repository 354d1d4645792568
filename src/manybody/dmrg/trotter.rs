//! Time evolution by products of two-site exponentials (Vidal, Phys. Rev. Lett. 93, 040502 (2004); Suzuki, Phys.
//! Lett. A 146, 319 (1990)), for sums whose terms reach no further than the next site. A pass from one end of the
//! chain to the other applies the gates of the even or of the odd bonds.

use faer::{Mat, Par};

use super::dense::{eigh, product, square};
use super::density::Truncation;
use super::mpo::Mpo;
use super::space::{ChargeLabel, Fusion, Space};
use super::state::MatrixProductState;
use super::tensor::{
    LabelledMatrices, MpsTensor, adjoint, lower, push_left, push_right, scaled_columns, scaled_rows, times,
    to_tensor,
};
use super::train::split;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::{OpSum, SiteProduct, Sites};
use crate::number::C64;
use crate::task::Task;

/// Elements of gates below this are rounding.
const ROUNDING: f64 = 1e-16;
/// The most states of two sites.
const MOST: usize = 1024;

/// The part of a sum on each bond as a matrix on its two sites, the second the faster;
/// and its multiple of the identity.
struct BondTerms {
    matrices: Vec<Vec<C64>>,
    constant: f64,
}

/// The result of an evolution by gates.
pub struct Trotter<T> {
    pub state: MatrixProductState<T>,
    /// The sum of the discarded weights, each relative to the sum of all.
    pub discarded: f64,
    /// The logarithm of the factor by which the gates changed the norm, without truncation.
    pub log_norm: f64,
}

fn too_far(term: &dyn std::fmt::Display) -> Error {
    Error::input(format!("the term `{term}` reaches beyond the next site of the chain"))
        .hint("gates need neighbours: `method: \"tdvp\"` takes terms of any range")
}

fn bonds(sum: &OpSum, sites: &Sites) -> Result<BondTerms> {
    let n = sites.count();
    let dim = |i: usize| -> Result<usize> { Ok(sites.site(i)?.dim()) };
    let mut matrices = Vec::new();
    for i in 0..n - 1 {
        let d = dim(i)? * dim(i + 1)?;
        if d > MOST {
            return Err(Error::input(format!("two neighbouring sites of {d} states together"))
                .hint("`method: \"tdvp\"` takes sites of many states"));
        }
        matrices.push(vec![C64::ZERO; d * d]);
    }
    let mut constant = 0.0;
    for term in sum.terms_on(sites.count()).iter() {
        let product = SiteProduct::new(term, sites)?.without_identities();
        let z = product.coefficient;
        if !product.string.is_empty() {
            return Err(too_far(term));
        }
        // Adds `z a x b` to the matrix of a bond; no matrix is the identity.
        let mut add = |bond: usize, z: C64, a: Option<&[C64]>, b: Option<&[C64]>| -> Result<()> {
            let (m, n) = (dim(bond)?, dim(bond + 1)?);
            let one = |of: Option<&[C64]>, d: usize, i: usize, j: usize| match of {
                Some(matrix) => matrix[i * d + j],
                None => C64::from(if i == j { 1.0 } else { 0.0 }),
            };
            for (i, k) in (0..m).flat_map(|i| (0..m).map(move |k| (i, k))) {
                for (j, l) in (0..n).flat_map(|j| (0..n).map(move |l| (j, l))) {
                    matrices[bond][(i * n + j) * m * n + k * n + l] += z * one(a, m, i, k) * one(b, n, j, l);
                }
            }
            Ok(())
        };
        match &product.factors[..] {
            [] => constant += z.re,
            [(i, a)] => {
                let (left, right) = (*i > 0, i + 1 < n);
                let z = if left && right { z * 0.5 } else { z };
                if left {
                    add(i - 1, z, None, Some(a))?;
                }
                if right {
                    add(*i, z, Some(a), None)?;
                }
            }
            [(i, a), (j, b)] if *j == i + 1 => add(*i, z, Some(a), Some(b))?,
            _ => return Err(too_far(term)),
        }
    }
    Ok(BondTerms { matrices, constant })
}

/// A gate: local states after and before on both sites, and the element.
type Gate = Vec<(usize, usize, usize, usize, C64)>;

/// The fractions of the whole of second-order steps whose product is a step of the order asked for (Suzuki).
fn parts(order: usize) -> Result<Vec<f64>> {
    match order {
        2 => Ok(vec![1.0]),
        4 => {
            let s = 1.0 / (4.0 - 4.0f64.cbrt());
            Ok(vec![s, s, 1.0 - 4.0 * s, s, s])
        }
        _ => Err(Error::input(format!("gates of order {order}")).hint("there are 2 and 4")),
    }
}

impl<T: Element> MatrixProductState<T> {
    /// `exp(z H)` of the state, in equal steps, by gates. An imaginary z keeps the norm; otherwise the result has
    /// norm one.
    ///
    /// # Errors
    /// When a term reaches beyond the next site or the sum is not Hermitian; on interruption.
    pub fn trotter(
        &self,
        sum: &OpSum,
        z: C64,
        steps: usize,
        order: usize,
        cut: &Truncation,
        task: &Task,
    ) -> Result<Trotter<T>> {
        let n = self.sites.count();
        self.need_component()?;
        sum.fits("a state of", n)?;
        Mpo::need_hermitian(sum, &self.sites, &self.symmetry)?;
        if n < 2 {
            return Err(Error::input("gates on a chain of one site").hint("`method: \"tdvp\"` takes it"));
        }
        if self.norm == 0.0 {
            return Err(Error::input("the zero state has no evolution")
                .hint("its norm is 0: what was applied to it has left nothing"));
        }
        let bonds = bonds(sum, &self.sites)?;
        // The layers of one step: whether they are of the odd bonds, and their fraction of the step.
        let mut one: Vec<(bool, f64)> = Vec::new();
        for part in parts(order)? {
            one.extend([(false, part / 2.0), (true, part), (false, part / 2.0)]);
        }
        let mut layers: Vec<(bool, f64)> = Vec::new();
        for _ in 0..steps {
            for &(odd, part) in &one {
                match layers.last_mut() {
                    Some(last) if last.0 == odd => last.1 += part,
                    _ => layers.push((odd, part)),
                }
            }
        }
        let dt = z / steps as f64;
        let mut known: Vec<(bool, f64, Vec<Option<Gate>>)> = Vec::new();
        let mut run = Evolving::new(self, z.re == 0.0);
        let bar = task.start("gates", layers.len());
        for (k, &(odd, part)) in layers.iter().enumerate() {
            let at = match known.iter().position(|g| g.0 == odd && g.1 == part) {
                Some(at) => at,
                None => {
                    known.push((odd, part, self.gates(&bonds, odd, dt * part)?));
                    known.len() - 1
                }
            };
            run.layer(&known[at].2, cut)?;
            let widest = run.spaces.iter().map(Space::total).max().unwrap_or(1);
            bar.advance_with(k + 1, &format!("{widest} states"))?;
        }
        if !run.at_end {
            run.layer(&vec![None; n - 1], cut)?;
        }
        let phase = (z * bonds.constant).im;
        if phase != 0.0 {
            run.tensors[n - 1] = times(&run.tensors[n - 1], C64::cis(phase));
        }
        let norm = if z.re == 0.0 { self.norm } else { 1.0 };
        let state = MatrixProductState::made(
            &self.sites,
            &self.symmetry,
            &self.target,
            run.spaces,
            run.tensors,
            norm,
        );
        Ok(Trotter { state, discarded: run.discarded, log_norm: run.log_norm + (z * bonds.constant).re })
    }

    /// The exponentials of one layer; none where a bond has no term or belongs to the other layer.
    fn gates(&self, bonds: &BondTerms, odd: bool, z: C64) -> Result<Vec<Option<Gate>>> {
        let labels: Vec<Vec<ChargeLabel>> =
            (0..self.sites.count()).map(|i| self.symmetry.states(&self.sites, i)).collect();
        let one = |(i, h): (usize, &Vec<C64>)| -> Result<Option<Gate>> {
            if (i % 2 == 1) != odd || h.iter().all(|x| *x == C64::ZERO) {
                return Ok(None);
            }
            let d = labels[i + 1].len();
            let size = labels[i].len() * d;
            let m = Mat::from_fn(size, size, |a, b| 0.5 * (h[a * size + b] + h[b * size + a].conj()));
            let (values, u) = eigh(m.as_ref(), Par::Seq)?;
            let grown = Mat::from_fn(size, size, |a, k| u[(a, k)] * (z * values[k]).exp());
            let whole = product(grown.as_ref(), adjoint(u.as_ref()).as_ref());
            let label = |a: usize| self.symmetry.add(&labels[i][a / d], &labels[i + 1][a % d]);
            let mut gate = Gate::new();
            for a in 0..size {
                for b in 0..size {
                    if whole[(a, b)].norm() > ROUNDING && label(a) == label(b) {
                        gate.push((a / d, a % d, b / d, b % d, whole[(a, b)]));
                    }
                }
            }
            Ok(Some(gate))
        };
        bonds.matrices.iter().enumerate().map(one).collect()
    }
}

/// A state during the evolution. Its centre is the site at one end; all other matrices are isometries away from that
/// end.
struct Evolving<'a, T: Element> {
    state: &'a MatrixProductState<T>,
    states: Vec<Vec<ChargeLabel>>,
    spaces: Vec<Space>,
    tensors: Vec<MpsTensor<T>>,
    /// Whether the centre is the last site.
    at_end: bool,
    /// Whether the gates are unitary.
    unitary: bool,
    discarded: f64,
    log_norm: f64,
}

impl<'a, T: Element> Evolving<'a, T> {
    fn new(state: &'a MatrixProductState<T>, unitary: bool) -> Evolving<'a, T> {
        let states = (0..state.sites.count()).map(|i| state.symmetry.states(&state.sites, i)).collect();
        let (spaces, tensors) = (state.spaces.clone(), state.tensors.clone());
        Evolving { state, states, spaces, tensors, at_end: true, unitary, discarded: 0.0, log_norm: 0.0 }
    }

    /// Passes from one end to the other with a gate on some bonds.
    fn layer(&mut self, gates: &[Option<Gate>], cut: &Truncation) -> Result<()> {
        let leftwards = self.at_end;
        let n = gates.len();
        for k in 0..n {
            crate::task::poll()?;
            let bond = if leftwards { n - 1 - k } else { k };
            match &gates[bond] {
                Some(gate) => self.gate(bond, gate, leftwards, cut)?,
                None => self.pass(bond, leftwards)?,
            }
        }
        self.at_end = !leftwards;
        Ok(())
    }

    /// Moves the centre over a bond without a gate.
    fn pass(&mut self, bond: usize, leftwards: bool) -> Result<()> {
        let symmetry = &self.state.symmetry;
        let (i, j) = (bond, bond + 1);
        if leftwards {
            let (fusion, blocks) =
                push_left(symmetry, &self.states[j], &self.tensors[j], &self.spaces[j + 1], None);
            let (middle, rows, carry) = lower(&blocks);
            let right = to_tensor(symmetry, &self.states[j], &middle, &self.spaces[j + 1], &fusion, &rows)?;
            let left = &self.tensors[i];
            let blocks = carry.iter().filter_map(|(label, own)| {
                let old = left.behind.find(label)?;
                Some((label.clone(), product(left.matrices[old].as_ref(), own.as_ref())))
            });
            let left = self.tensor_of(i, &self.spaces[i], &middle, blocks.collect())?;
            (self.tensors[i], self.tensors[j], self.spaces[j]) = (left, right, middle);
        } else {
            let left = &self.tensors[i];
            let mut sectors = std::collections::BTreeMap::new();
            let (mut isometries, mut carry) = (Vec::new(), Vec::new());
            for (s, m) in left.matrices.iter().enumerate() {
                let qr = m.as_ref().qr();
                let r = qr.thin_R().to_owned();
                if square(r.as_ref()) > 0.0 {
                    let q = qr.compute_thin_Q();
                    sectors.insert(left.behind.label(s).clone(), q.ncols());
                    isometries.push(q);
                    carry.push(r);
                }
            }
            let middle = Space::new(sectors);
            let fill = |s: usize| std::mem::replace(&mut isometries[s], Mat::zeros(0, 0));
            let left = MpsTensor::new(symmetry, &self.spaces[i], &self.states[i], &middle, fill)?;
            let blocks = push_right(symmetry, &self.states[j], &self.tensors[j], &middle, &carry);
            let right = self.tensor_of(j, &middle, &self.spaces[j + 1], blocks)?;
            (self.tensors[i], self.tensors[j], self.spaces[j]) = (left, right, middle);
        }
        Ok(())
    }

    /// The tensor of a site between two bonds from blocks as [`push_right`] makes them;
    /// those that are not there are zero.
    fn tensor_of(
        &self,
        site: usize,
        before: &Space,
        behind: &Space,
        mut blocks: LabelledMatrices<T>,
    ) -> Result<MpsTensor<T>> {
        let symmetry = &self.state.symmetry;
        let fusion = Fusion::new(symmetry, before, &self.states[site]);
        let fill = |s: usize| {
            let label = behind.label(s);
            match blocks.iter_mut().find(|b| b.0 == *label) {
                Some((_, m)) => std::mem::replace(m, Mat::zeros(0, 0)),
                None => {
                    let rows = fusion.space().find(label).map_or(0, |r| fusion.space().dim(r));
                    Mat::zeros(rows, behind.dim(s))
                }
            }
        };
        MpsTensor::new(symmetry, before, &self.states[site], behind, fill)
    }

    /// Applies a gate to a bond whose sites hold the centre, and moves the centre in the direction of the pass.
    fn gate(&mut self, bond: usize, gate: &Gate, leftwards: bool, cut: &Truncation) -> Result<()> {
        let symmetry = &self.state.symmetry;
        let (i, j) = (bond, bond + 1);
        let rows = Fusion::new(symmetry, &self.spaces[i], &self.states[i]);
        let (columns, right) =
            push_left(symmetry, &self.states[j], &self.tensors[j], &self.spaces[j + 1], None);
        // Both sites together, by the label of the bond between them.
        let left = &self.tensors[i];
        let mut middle: Vec<(ChargeLabel, usize, usize)> = Vec::new();
        let (mut before, mut after): (Vec<Option<Mat<T>>>, Vec<Mat<T>>) = (Vec::new(), Vec::new());
        let mut at = vec![None; rows.space().sectors()];
        for (row, (label, dim)) in rows.space().iter().enumerate() {
            let Some(column) = columns.space().find(label) else { continue };
            let a = left.behind.find(label).map(|s| left.matrices[s].as_ref());
            let b = right.iter().find(|b| b.0 == *label).map(|b| b.1.as_ref());
            before.push(a.zip(b).map(|(a, b)| product(a, b)));
            after.push(Mat::zeros(dim, columns.space().dim(column)));
            at[row] = Some(middle.len());
            middle.push((label.clone(), row, column));
        }
        for ((_, row, column), theta) in middle.iter().zip(&before) {
            let Some(theta) = theta else { continue };
            for from in rows.parts(*row) {
                for part in columns.parts(*column) {
                    let own = theta.as_ref().submatrix(from.offset, part.offset, from.dim, part.dim);
                    for &(up, down, _, _, z) in gate.iter().filter(|g| g.2 == from.state && g.3 == part.state)
                    {
                        let (Some((row, above)), Some((_, beside))) =
                            (rows.place(from.inner, up), columns.place(part.inner, down))
                        else {
                            continue;
                        };
                        let Some(k) = at[row] else { continue };
                        let mut out = after[k].as_mut().submatrix_mut(
                            above.offset,
                            beside.offset,
                            above.dim,
                            beside.dim,
                        );
                        let z = T::from_c64(z);
                        for c in 0..own.ncols() {
                            for r in 0..own.nrows() {
                                out[(r, c)] += z * own[(r, c)];
                            }
                        }
                    }
                }
            }
        }
        let blocks: LabelledMatrices<T> = middle.into_iter().map(|m| m.0).zip(after).collect();
        let mut parts = split(&blocks, cut)?;
        if parts.kept.is_empty() {
            return Err(Error::numeric("the state has norm zero"));
        }
        self.discarded += parts.discarded;
        if !self.unitary {
            self.log_norm += 0.5 * parts.weight.ln();
        }
        let kept = parts.weight * (1.0 - parts.discarded);
        parts.kept.iter_mut().flat_map(|k| &mut k.2).for_each(|s| *s /= kept.sqrt());
        let space = parts.space();
        let fill = |s: usize| {
            let (_, u, weights, _) = &parts.kept[s];
            if leftwards { scaled_columns(u, weights) } else { u.clone() }
        };
        let left = MpsTensor::new(symmetry, &self.spaces[i], &self.states[i], &space, fill)?;
        let rest: LabelledMatrices<T> = parts
            .kept
            .iter()
            .map(|(q, _, s, v)| (q.clone(), if leftwards { v.clone() } else { scaled_rows(v, s) }))
            .collect();
        let right = to_tensor(symmetry, &self.states[j], &space, &self.spaces[j + 1], &columns, &rest)?;
        (self.tensors[i], self.tensors[j], self.spaces[j]) = (left, right, space);
        Ok(())
    }
}
