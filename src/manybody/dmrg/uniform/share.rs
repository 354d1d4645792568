//! Which sectors of a bond get its states: bonds that grow by what the Hamiltonian adds to two neighbouring sites,
//! bonds cut to the largest weights, and states moved to the sectors where the ground state of two sites has more
//! weight.

use std::collections::BTreeMap;
use std::sync::Arc;

use faer::{Mat, MatRef};

use super::super::basis::TruncatedBasis;
use super::super::block::ChainBlock;
use super::super::dense::{adjoint_product, product, square, thin_svd};
use super::super::space::{ChargeLabel, Fusion, Space};
use super::super::spread::WholeMatrices;
use super::super::superblock::SectorPair;
use super::super::tensor::{MpsTensor, adjoint};
use super::cell::nothing_left;
use super::environment::{Environments, left_basis, right_basis};
use super::gauge::turned;
use super::state::Uniform;
use super::step::JoinedBlocks;
use crate::backend::Device;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::number::C64;
use crate::task::Task;

/// How exactly the ground state of two sites is found, in parts of what the Hamiltonian adds to them.
const EXACT: f64 = 1e-2;
/// Most products of its search.
const PRODUCTS: usize = 40;

/// Numbers of states by sector.
type Dims = BTreeMap<ChargeLabel, usize>;

/// A direction that a bond may grow by.
struct Direction<T> {
    weight: f64,
    label: ChargeLabel,
    /// A column for the site before, rows as in the product of its bond and states.
    left: Mat<T>,
    /// A column for the site behind, rows as in the product of its right block and states.
    right: Mat<T>,
}

/// Two sites beside a bond, between the surroundings of both.
struct BondProblem<T> {
    joined: JoinedBlocks,
    left: Arc<ChainBlock<T>>,
    l: TruncatedBasis<T>,
    r: TruncatedBasis<T>,
    /// The vectors of both bases.
    vectors: [Arc<WholeMatrices<T>>; 2],
}

/// A block at the other end of the cell, which is the same bond.
pub(super) fn moved<T: Element>(block: &Arc<ChainBlock<T>>, bond: usize) -> Arc<ChainBlock<T>> {
    ChainBlock::made(block.mpo(), block.side, 0, bond, false, block.shape.elsewhere())
}

fn conjugate<T: Element>(m: MatRef<'_, T>) -> Mat<T> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| crate::number::Scalar::conj(m[(i, j)]))
}

impl<T: Element> BondProblem<T> {
    fn new(
        psi: &Uniform<T>,
        environments: &Environments<T>,
        device: &Device,
        bond: usize,
    ) -> Result<BondProblem<T>> {
        let n = psi.count();
        let before = (bond + n - 1) % n;
        let left = moved(&environments.lefts[before].grow()?, bond);
        let right = environments.rights[bond + 1].grow()?;
        let joined = JoinedBlocks::new(device, &left, &right)?;
        let l = left_basis(&psi.left[before]);
        let (_, fusion, _) = right.fusion().ok_or_else(|| Error::internal("a block that did not grow"))?;
        let r = right_basis(&psi.cell.symmetry, &psi.right[bond], fusion);
        let vectors = [l.vectors.all()?, r.vectors.all()?];
        Ok(BondProblem { joined, left, l, r, vectors })
    }

    /// The state on both sites.
    fn state(&self, psi: &Uniform<T>, bond: usize) -> Result<Vec<C64>> {
        let mut x = BTreeMap::new();
        for pair in self.joined.both::<T>()?.pairs() {
            let (Some(a), Some(b)) = (self.l.kept(pair.left), self.r.kept(pair.right)) else { continue };
            // The bond's sector between the isometries of the pair.
            let Some(sector) = psi.spaces[bond].find(self.left.label(pair.left)) else { continue };
            let half = product(self.vectors[0][a].here()?, psi.centre[bond][sector].as_ref());
            x.insert(pair.left, product(half.as_ref(), self.vectors[1][b].here()?.transpose()));
        }
        self.joined.pack(&x)
    }

    /// The ground state of both sites, near the state.
    fn ground(&self, psi: &Uniform<T>, bond: usize, task: &Task) -> Result<Vec<C64>> {
        let x = self.state(psi, bond)?;
        let mut image = self.joined.times(&x)?;
        let energy: C64 = x.iter().zip(&image).map(|(a, b)| a.conj() * b).sum();
        image.iter_mut().zip(&x).for_each(|(y, x)| *y -= energy * x);
        let rest = image.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
        self.joined.lowest(&x, (EXACT * rest).max(1e-13), PRODUCTS, task)
    }

    /// What of some amplitudes lies beyond the state's bases on both sides, by weight, and the sum of all its squares.
    fn directions(&self, of: &[C64]) -> Result<(Vec<Direction<T>>, f64)> {
        let image = self.joined.unpack::<T>(of)?;
        let mut found = Vec::new();
        let mut size = 0.0;
        for pair in self.joined.both::<T>()?.pairs() {
            let Some(mut y) = image.get(&pair.left).cloned() else { continue };
            self.beyond(pair, &mut y)?;
            size += square(y.as_ref());
            let (u, s, v) = thin_svd(y.as_ref())?;
            for (k, &weight) in s.iter().enumerate() {
                found.push(Direction {
                    weight,
                    label: self.left.label(pair.left).clone(),
                    left: u.as_ref().subcols(k, 1).to_owned(),
                    right: conjugate(v.as_ref().subcols(k, 1)),
                });
            }
        }
        found.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.label.cmp(&b.label)));
        let least = 1e-14 * found.first().map_or(0.0, |d| d.weight);
        found.retain(|d| d.weight > least.max(1e-14));
        Ok((found, size))
    }

    /// What of the matrix of a pair of sectors the isometries on both sides leave out.
    fn beyond(&self, pair: &SectorPair, y: &mut Mat<T>) -> Result<()> {
        for _ in 0..2 {
            if let Some(k) = self.l.kept(pair.left) {
                let a = self.vectors[0][k].here()?;
                let part = adjoint_product(a, y.as_ref());
                *y -= product(a, part.as_ref());
            }
            if let Some(k) = self.r.kept(pair.right) {
                let b = self.vectors[1][k].here()?;
                let part = product(y.as_ref(), conjugate(b).as_ref());
                *y -= product(part.as_ref(), b.transpose());
            }
        }
        Ok(())
    }
}

impl<T: Element> Uniform<T> {
    /// The state with up to `more` states added at each bond: those that the Hamiltonian adds most to two neighbouring
    /// sites. The state itself stays what it is. Also the sum of the squares of all that it adds to two sites.
    ///
    /// # Errors
    /// When a decomposition fails; interruption.
    pub fn widened(
        &self,
        environments: &Environments<T>,
        device: &Device,
        more: &[usize],
    ) -> Result<(Uniform<T>, f64)> {
        let mut all = Vec::with_capacity(self.count());
        let mut squares = 0.0;
        for (bond, &more) in more.iter().enumerate() {
            crate::task::poll()?;
            let (mut found, size) = self.directions(environments, device, bond)?;
            squares += size;
            found.truncate(more);
            all.push(found);
        }
        Ok((self.with_directions(&all)?, squares))
    }

    /// What the Hamiltonian adds at a bond to the two sites beside it, by weight, and the sum of all its squares.
    fn directions(
        &self,
        environments: &Environments<T>,
        device: &Device,
        bond: usize,
    ) -> Result<(Vec<Direction<T>>, f64)> {
        let sites = BondProblem::new(self, environments, device, bond)?;
        let image = sites.joined.times(&sites.state(self, bond)?)?;
        sites.directions(&image)
    }

    /// What a bond would gain and lose by other states than its own.
    fn exchange(&self, sites: &BondProblem<T>, bond: usize, task: &Task) -> Result<Exchange<T>> {
        let ground = sites.ground(self, bond, task)?;
        let (found, _) = sites.directions(&ground)?;
        let mut own = BTreeMap::new();
        for (sector, m) in sites.joined.unpack::<T>(&ground)? {
            let Some(k) = sites.l.kept(sector) else { continue };
            let (_, s, _) = thin_svd(adjoint_product(sites.vectors[0][k].here()?, m.as_ref()).as_ref())?;
            own.insert(sites.left.label(sector).clone(), s.iter().map(|s| s * s).collect());
        }
        Ok(Exchange { own, found })
    }

    /// The state with its states moved to the sectors where the ground state of two sites has more weight, and how many
    /// have moved.
    ///
    /// # Errors
    /// When a search, linear system or decomposition fails; interruption.
    pub(super) fn reshared(
        &self,
        environments: &Environments<T>,
        again: impl Fn(&Uniform<T>) -> Result<Arc<Environments<T>>>,
        device: &Device,
        most: (usize, f64, f64),
        task: &Task,
    ) -> Result<(Uniform<T>, usize)> {
        let n = self.count();
        let mut moved = 0;
        let (mut kept, mut free) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for bond in 0..n {
            crate::task::poll()?;
            let exchange = self.exchange(&BondProblem::new(self, environments, device, bond)?, bond, task)?;
            let old: Dims = self.spaces[bond].iter().map(|(q, d)| (q.clone(), d)).collect();
            let (stay, come) = exchange.moves(old, most);
            moved += self.spaces[bond].total() - stay.values().sum::<usize>();
            moved += come.values().sum::<usize>();
            kept.push(self.spaces[bond].iter().map(|(q, _)| stay.get(q).copied().unwrap_or(0)).collect());
            free.push(come);
        }
        if moved == 0 {
            return Ok((self.clone(), 0));
        }
        let less = self.regauged()?.cut_to(kept)?;
        let known = again(&less)?;
        let mut all = Vec::with_capacity(n);
        for (bond, free) in free.iter_mut().enumerate() {
            let sites = BondProblem::new(&less, &known, device, bond)?;
            let mut found = sites.directions(&sites.ground(&less, bond, task)?)?.0;
            found.retain(|direction| match free.get_mut(&direction.label) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    true
                }
                _ => false,
            });
            all.push(found);
        }
        Ok((less.with_directions(&all)?, moved))
    }

    /// The same state with more states at each bond.
    fn with_directions(&self, all: &[Vec<Direction<T>>]) -> Result<Uniform<T>> {
        let n = self.count();
        let symmetry = &self.cell.symmetry;
        let mut spaces = Vec::with_capacity(n);
        for (old, found) in self.spaces.iter().zip(all) {
            let mut dims: BTreeMap<ChargeLabel, usize> = old.iter().map(|(q, d)| (q.clone(), d)).collect();
            found.iter().for_each(|d| *dims.entry(d.label.clone()).or_default() += 1);
            spaces.push(Space::new(dims));
        }
        let (mut left, mut right) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for site in 0..n {
            let behind = self.behind(site);
            let states = &self.cell.states[site];
            let (before, after) = (&spaces[site], &spaces[behind]);
            left.push(self.left[site].padded(symmetry, before, states, after, |row, fusion, out| {
                // Columns of the directions behind the site.
                let label = fusion.space().label(row);
                let old = &self.left[site].fusion;
                let Some(from) = old.space().find(label) else { return };
                let first = self.spaces[behind].find(label).map_or(0, |s| self.spaces[behind].dim(s));
                let own = all[behind].iter().filter(|d| d.label == *label);
                for (column, d) in (first..).zip(own) {
                    for part in old.parts(from) {
                        let inner = before.find(self.spaces[site].label(part.inner)).unwrap_or(0);
                        let Some((_, to)) = fusion.place(inner, part.state) else { continue };
                        for i in 0..part.dim {
                            out[(to.offset + i, column)] = d.left[(part.offset + i, 0)];
                        }
                    }
                }
            })?);
            let (space, place) = super::environment::seen_from_right(symmetry, &self.spaces[behind]);
            let product = Fusion::new(symmetry, &space, states);
            right.push(self.right[site].padded(symmetry, before, states, after, |row, fusion, out| {
                // Rows of the directions before the site.
                let label = fusion.space().label(row);
                let Some(own) = self.spaces[behind].find(label) else { return };
                for to in fusion.parts(row) {
                    let q = before.label(to.inner);
                    let first = self.spaces[site].find(q).map_or(0, |s| self.spaces[site].dim(s));
                    let turned = symmetry.subtract(&symmetry.zero(), q);
                    let Some(sector) = product.space().find(&turned) else { continue };
                    let known = all[site].iter().filter(|d| d.label == *q);
                    for (at, d) in (first..).zip(known) {
                        let here = product.parts(sector).iter();
                        for part in here.filter(|p| p.state == to.state && place[p.inner] == own) {
                            for j in 0..part.dim {
                                out[(to.offset + at, j)] = d.right[(part.offset + j, 0)];
                            }
                        }
                    }
                }
            })?);
        }
        let centre = (0..n)
            .map(|bond| {
                let old = &self.spaces[bond];
                let one = |(q, d): (&ChargeLabel, usize)| {
                    let known = old.find(q).map(|s| &self.centre[bond][s]);
                    Mat::from_fn(d, d, |i, j| match known {
                        Some(c) if i < c.nrows() && j < c.ncols() => c[(i, j)],
                        _ => T::default(),
                    })
                };
                spaces[bond].iter().map(one).collect()
            })
            .collect();
        Ok(Uniform { cell: self.cell.clone(), spaces, left, right, centre })
    }

    /// The state with at most `states` states at each bond, those of the largest weights, and of no less than `least`
    /// of all; and the largest weight that a bond has lost.
    ///
    /// # Errors
    /// When a decomposition does not converge.
    pub fn cut(&self, states: usize, least: f64) -> Result<(Uniform<T>, f64)> {
        let mut lost = 0.0f64;
        let mut dims: Vec<Vec<usize>> = Vec::with_capacity(self.count());
        for c in &self.centre {
            let parts = c.iter().map(|c| thin_svd(c.as_ref())).collect::<Result<Vec<_>>>()?;
            let mut all: Vec<(f64, usize)> =
                parts.iter().enumerate().flat_map(|(s, p)| p.1.iter().map(move |w| (w * w, s))).collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let sum: f64 = all.iter().map(|a| a.0).sum();
            let some = all.iter().filter(|a| a.0 >= least * sum).count().clamp(1, states.max(1));
            lost = lost.max(all[some.min(all.len())..].iter().map(|a| a.0).sum::<f64>() / sum);
            let mut kept = vec![0; parts.len()];
            all.iter().take(some).for_each(|a| kept[a.1] += 1);
            dims.push(kept);
        }
        Ok((self.cut_to(dims)?, lost))
    }

    /// The state with so many states in each sector of each bond, or fewer where no more can be reached.
    pub(super) fn cut_to(&self, mut dims: Vec<Vec<usize>>) -> Result<Uniform<T>> {
        let n = self.count();
        let mut bases = Vec::with_capacity(n);
        for c in &self.centre {
            bases.push(c.iter().map(|c| thin_svd(c.as_ref())).collect::<Result<Vec<_>>>()?);
        }
        self.fitting(&mut dims);
        if dims.iter().any(|of_bond| of_bond.iter().all(|d| *d == 0)) {
            // The largest weights of the bonds belong to several states, as those of classical chains may:
            // one of them stays.
            let largest = |p: &(Mat<T>, Vec<f64>, Mat<T>)| p.1.first().copied().unwrap_or(0.0);
            let weights: Vec<Vec<f64>> = bases.iter().map(|b| b.iter().map(largest).collect()).collect();
            dims = self.heaviest(&weights);
        }
        let space = |bond: usize| {
            Space::of(self.spaces[bond].iter().zip(&dims[bond]).map(|((q, _), &d)| (q.clone(), d)).collect())
        };
        let spaces: Vec<Space> = (0..n).map(space).collect();
        if spaces.iter().any(|s| s.sectors() == 0) {
            return Err(nothing_left());
        }
        let columns = |bond: usize| -> Vec<Mat<T>> {
            let all = bases[bond].iter().zip(&dims[bond]).filter(|p| *p.1 > 0);
            all.map(|(p, &d)| p.0.as_ref().subcols(0, d).to_owned()).collect()
        };
        let mut tensors = Vec::with_capacity(n);
        for site in 0..n {
            let behind = self.behind(site);
            let rows: Vec<Mat<T>> = columns(site).iter().map(|m| adjoint(m.as_ref())).collect();
            let to = columns(behind);
            let from = &self.left[site];
            tensors.push(turned(&self.cell, site, from, (&spaces[site], &rows), (&spaces[behind], &to))?);
        }
        Uniform::canonical(&self.cell, &spaces, &tensors)
    }

    /// One state at each bond, in the sectors that the cell leads through and back to the first: of all such ways the
    /// one whose weights have the largest product. No state where there is no way.
    fn heaviest(&self, weights: &[Vec<f64>]) -> Vec<Vec<usize>> {
        let n = self.count();
        let mut best = (0.0, Vec::new());
        for first in 0..weights[0].len() {
            // For each sector of the bond, the largest product on a way to it, and the sector before.
            let mut reached = vec![0.0; weights[0].len()];
            reached[first] = 1.0;
            let mut steps: Vec<Vec<usize>> = Vec::with_capacity(n);
            for site in 0..n {
                let behind = self.behind(site);
                let tensor = &self.left[site];
                let (mut next, mut from) = (vec![0.0; weights[behind].len()], vec![0; weights[behind].len()]);
                for (to, row) in tensor.rows.iter().enumerate() {
                    for part in tensor.fusion.parts(*row) {
                        let matrix = &tensor.matrices[to];
                        let rows = part.offset..part.offset + part.dim;
                        let of_row = |i| {
                            (0..matrix.ncols()).map(move |j| matrix[(i, j)].to_c64().norm_sqr()).sum::<f64>()
                        };
                        let size = rows.map(of_row).sum::<f64>().sqrt();
                        let value = reached[part.inner] * weights[behind][to] * size;
                        if value > next[to] {
                            (next[to], from[to]) = (value, part.inner);
                        }
                    }
                }
                steps.push(from);
                reached = next;
            }
            if reached[first] > best.0 {
                let mut way = vec![first; n];
                for site in (1..n).rev() {
                    way[site] = steps[site][way[self.behind(site)]];
                }
                best = (reached[first], way);
            }
        }
        let mut dims: Vec<Vec<usize>> = weights.iter().map(|w| vec![0; w.len()]).collect();
        best.1.into_iter().enumerate().for_each(|(bond, sector)| dims[bond][sector] = 1);
        dims
    }

    /// Lowers numbers of states until those of every sector can be reached from both sides.
    fn fitting(&self, dims: &mut [Vec<usize>]) {
        let n = self.count();
        loop {
            let mut changed = false;
            for site in 0..n {
                let behind = self.behind(site);
                let tensor = &self.left[site];
                let mut out = vec![0; dims[site].len()];
                for (to, row) in tensor.rows.iter().enumerate() {
                    let reach: usize = tensor.fusion.parts(*row).iter().map(|p| dims[site][p.inner]).sum();
                    changed |= reach < dims[behind][to];
                    dims[behind][to] = dims[behind][to].min(reach);
                    tensor.fusion.parts(*row).iter().for_each(|p| out[p.inner] += dims[behind][to]);
                }
                for (own, reach) in dims[site].iter_mut().zip(out) {
                    changed |= reach < *own;
                    *own = (*own).min(reach);
                }
            }
            if !changed {
                return;
            }
        }
    }
}

/// The ground state of two sites at the bond between them.
struct Exchange<T> {
    /// The weights in the states that the bond has, by sector, descending.
    own: BTreeMap<ChargeLabel, Vec<f64>>,
    /// The states that it does not have, by weight.
    found: Vec<Direction<T>>,
}

impl<T> Exchange<T> {
    /// How many states of each sector stay, and how many come: the largest weights of both, `states` in all and none
    /// below `least`. A state gives way to one of `gain` times its weight.
    fn moves(&self, old: Dims, (states, least, gain): (usize, f64, f64)) -> (Dims, Dims) {
        let mut stay = old;
        let mut come = Dims::new();
        let mut next = self.found.iter().filter(|d| d.weight * d.weight >= least).peekable();
        loop {
            let total = stay.values().chain(come.values()).sum::<usize>();
            let weight = |(q, &d): (&ChargeLabel, &usize)| {
                let of = self.own.get(q).and_then(|w| w.get(d.wrapping_sub(1)));
                (of.copied().unwrap_or(0.0), q.clone())
            };
            let last = stay.iter().filter(|e| *e.1 > 0).map(weight).min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((less, from)) = last else { break };
            let more = next.peek().map_or(0.0, |d| d.weight * d.weight);
            let leaves =
                total > states || (less < least && total > 1) || (total == states && more > gain * less);
            if leaves {
                *stay.entry(from).or_default() -= 1;
            } else if total < states && more > 0.0 {
                let Some(d) = next.next() else { break };
                *come.entry(d.label.clone()).or_default() += 1;
            } else {
                break;
            }
        }
        (stay, come)
    }
}

impl<T: Element> MpsTensor<T> {
    /// The tensor between larger bases, in whose sectors the old states come first, and what `extra` adds to the matrix
    /// of a row of the new product.
    fn padded(
        &self,
        symmetry: &super::super::space::ConservedNumbers,
        before: &Space,
        states: &[ChargeLabel],
        behind: &Space,
        extra: impl Fn(usize, &Fusion, &mut Mat<T>),
    ) -> Result<MpsTensor<T>> {
        let fusion = Fusion::new(symmetry, before, states);
        let fill = |sector: usize| {
            let (label, columns) = (behind.label(sector), behind.dim(sector));
            let Some(row) = fusion.space().find(label) else { return Mat::zeros(0, columns) };
            let mut out = Mat::zeros(fusion.space().dim(row), columns);
            if let Some(at) = self.behind.find(label) {
                let old = &self.matrices[at];
                for part in self.fusion.parts(self.rows[at]) {
                    let inner = before.find(self.before.label(part.inner)).unwrap_or(0);
                    let Some((_, to)) = fusion.place(inner, part.state) else { continue };
                    out.as_mut()
                        .submatrix_mut(to.offset, 0, part.dim, old.ncols())
                        .copy_from(old.as_ref().subrows(part.offset, part.dim));
                }
            }
            extra(row, &fusion, &mut out);
            out
        };
        MpsTensor::new(symmetry, before, states, behind, fill)
    }
}
