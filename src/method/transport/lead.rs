//! Semi-infinite leads: a cell that repeats without end, and the self-energy that it adds to the sample.

use std::collections::HashMap;

use faer::prelude::Solve;
use faer::{Mat, MatRef};

use crate::backend::matrix::{Csr, Wrap};
use crate::error::{Error, Result};
use crate::lattice::{Bloch, Model};
use crate::number::{C64, Matrix, hermitian, memory};
use crate::task;

/// Trials for a self-energy: the imaginary part of the energy, in units of what joins the cells, and how many cells are
/// taken together. Extrapolation removes the effect of the imaginary part; rounding errors grow with its inverse.
/// Where a finite piece of the lead has a level at this very energy, pieces of another length have none.
const TRIALS: [(f64, usize); 5] = [(1e-8, 1), (1e-6, 1), (1e-6, 2), (1e-6, 3), (1e-5, 2)];
/// A self-energy that is off by more than this, in the same units, is computed again by the next trial.
const GOOD: f64 = 1e-11;
/// One that is off by more than this is refused.
const BAD: f64 = 1e-6;
/// Most of Newton's steps, and how far they may lead: a solution farther away is another one.
const STEPS: usize = 40;
const NEAR: f64 = 0.05;
/// Channels whose rate is below this do not conduct.
const CLOSED: f64 = 1e-7;
/// Most doublings of the length in the decimation.
const MOST_DOUBLINGS: usize = 100;

/// A semi-infinite lead.
#[derive(Debug, Clone)]
pub struct Lead {
    /// The matrix of one cell.
    h: Mat<C64>,
    /// `<j+1| H |j>`, outward.
    v: Mat<C64>,
    /// The size of what joins its cells. Levels of a cell far away from all others do not enter.
    scale: f64,
    /// Rows of a site.
    orbitals: usize,
    /// Those of its electrons; all but where there are holes.
    electrons: usize,
    /// Cartesian positions of the sites of the cell.
    places: Vec<Vec<f64>>,
    /// The vector from a cell of the model to the next one outward. A cell of the lead may hold several of them.
    step: Vec<f64>,
    /// Sites of a cell of the model.
    sites: usize,
}

/// The self-energy and the open channels of a lead at one energy.
pub struct Opening {
    /// The self-energy, on the rows that the lead is attached to.
    pub sigma: Mat<C64>,
    /// Columns w with `sum w w^dagger = i (sigma - sigma^dagger)`, one for each open channel.
    pub channels: Mat<C64>,
    /// How many of the channels, the first ones, are those of electrons; the others are those of holes. None where
    /// channels are of both.
    pub electrons: Option<usize>,
}

impl Lead {
    /// A lead whose cells are those of a model with one periodic direction. It extends in that direction (`outward`
    /// true) or against it. `origin` moves it by cells of the model's lattice.
    ///
    /// # Errors
    /// A model with no or with several periodic directions, or with cells that are not joined.
    pub fn new(model: &Model, outward: bool, origin: &[i64]) -> Result<Lead> {
        let lattice = model.lattice();
        let bloch = Bloch::new(model)?;
        if bloch.dimension() != 1 {
            return Err(Error::input(format!("a lead with {} periodic directions", bloch.dimension()))
                .hint("a lead is periodic in one direction and open in the others"));
        }
        if !origin.is_empty() && origin.len() != lattice.dimension() {
            return Err(Error::input(format!(
                "an origin of {} cells on a lattice of {} directions",
                origin.len(),
                lattice.dimension()
            ))
            .hint("an origin has a whole number for each direction"));
        }
        let along = lattice.wrap().iter().position(|wrap| *wrap != Wrap::Open).unwrap_or(0);
        if !model.field_repeats(along) {
            let order = format!(
                "through directions a and {along}, in this order (that of the other order with the other sign)"
            );
            return Err(Error::input(
                "a lead whose vector potential grows along it: no cell is like the next",
            )
            .hint(format!("let it point along the lead: a flux {order}, with a across")));
        }
        let sign = if outward { 1 } else { -1 };
        // Blocks of the matrix by how many cells farther out the row lies than the column.
        let mut blocks: HashMap<i64, &[(usize, usize, C64)]> = HashMap::new();
        for (copy, entries) in bloch.parts().filter(|(_, entries)| !entries.is_empty()) {
            blocks.insert(-sign * copy[0], entries);
        }
        let reach = blocks.keys().map(|o| o.abs()).max().unwrap_or(0);
        if reach == 0 {
            return Err(Error::input("the cells of a lead are not joined: nothing flows through it")
                .hint("give it hoppings along its periodic direction"));
        }
        let (rows, reach) = (bloch.rows(), reach as usize);
        let n = rows * reach;
        memory::ensure(16 * 12 * (n * n) as u128, &format!("a lead of {n} rows"))?;
        let (mut h, mut v) = (Mat::zeros(n, n), Mat::zeros(n, n));
        for a in 0..reach {
            for b in 0..reach {
                let fill = |out: &mut Mat<C64>, apart: i64| {
                    for &(i, j, value) in blocks.get(&apart).copied().unwrap_or_default() {
                        out[(a * rows + i, b * rows + j)] = value;
                    }
                };
                fill(&mut h, a as i64 - b as i64);
                fill(&mut v, (reach + a) as i64 - b as i64);
            }
        }
        let repeat: Vec<f64> = bloch.vectors()[0].iter().map(|x| sign as f64 * x).collect();
        let mut moved = vec![0.0; lattice.space()];
        for (vector, cells) in lattice.vectors().iter().zip(origin) {
            moved.iter_mut().zip(vector).for_each(|(m, x)| *m += *cells as f64 * x);
        }
        let cell = bloch.cell().lattice();
        let mut places = Vec::with_capacity(cell.sites() * reach);
        for a in 0..reach {
            for site in 0..cell.sites() {
                let at = cell.position(site)?.into_iter().zip(&repeat).zip(&moved);
                places.push(at.map(|((x, r), m)| x + a as f64 * r + m).collect());
            }
        }
        let sum = |m: &Mat<C64>, i: usize| (0..n).map(|j| m[(i, j)].norm()).sum::<f64>();
        let across = |i: usize| sum(&v, i) + (0..n).map(|j| v[(j, i)].norm()).sum::<f64>();
        let width = (0..n).map(|i| sum(&h, i)).fold(0.0, f64::max);
        // Joints below the rounding of a cell's own levels are none.
        let scale = (0..n).map(across).fold(0.0, f64::max).max(1e-12 * width);
        let sites = cell.sites();
        let (orbitals, electrons) = (model.orbitals(), model.particles());
        Ok(Lead { h, v, scale, orbitals, electrons, places, step: repeat, sites })
    }

    /// Rows of a cell.
    pub fn rows(&self) -> usize {
        self.h.nrows()
    }

    /// The vector from a cell of its model to the next one outward, Cartesian.
    pub fn step(&self) -> &[f64] {
        &self.step
    }

    pub fn orbitals(&self) -> usize {
        self.orbitals
    }

    /// Rows of a site that are for electrons.
    pub fn electrons(&self) -> usize {
        self.electrons
    }

    /// Whether a row of the lead, or of a sample with its orbitals, is for a hole.
    pub fn is_hole(&self, row: usize) -> bool {
        row % self.orbitals >= self.electrons
    }

    /// Rows of electrons and rows of holes, where no pairing joins them; all rows otherwise.
    fn sectors(&self) -> Vec<Vec<usize>> {
        let n = self.rows();
        let (electrons, holes): (Vec<usize>, Vec<usize>) = (0..n).partition(|&row| !self.is_hole(row));
        let apart = |m: &Mat<C64>| {
            (0..n).all(|i| (0..n).all(|j| self.is_hole(i) == self.is_hole(j) || m[(i, j)] == C64::ZERO))
        };
        if holes.is_empty() || !apart(&self.h) || !apart(&self.v) {
            return vec![(0..n).collect()];
        }
        vec![electrons, holes]
    }

    /// The Green's function of the lead's first cell, seen from inside, at the retarded limit.
    ///
    /// # Errors
    /// As [`Lead::opening`].
    pub fn surface(&self, energy: f64) -> Result<Matrix> {
        let sigma = self.self_energy(energy)?;
        let g = self.beyond(energy, &sigma)?;
        Ok(Matrix::from_fn(g.nrows(), g.ncols(), |i, j| g[(i, j)]))
    }

    /// The self-energy and the open channels at an energy.
    ///
    /// # Errors
    /// An energy that is not finite, or at which the lead has a resonance that the arithmetic does not
    /// resolve.
    pub fn opening(&self, energy: f64) -> Result<Opening> {
        let sigma = self.self_energy(energy)?;
        let n = self.rows();
        let i = C64::new(0.0, 1.0);
        let mut columns: Vec<Vec<C64>> = Vec::new();
        let mut electrons = None;
        let sectors = self.sectors();
        for rows in &sectors {
            let m = rows.len();
            let gamma =
                Mat::from_fn(m, m, |a, b| i * (sigma[(rows[a], rows[b])] - sigma[(rows[b], rows[a])].conj()));
            let (rates, vectors) = hermitian::eigh(gamma.as_ref(), faer::get_global_parallelism())
                .ok_or_else(|| Error::numeric("the channels of a lead were not found"))?;
            for k in (0..m).filter(|&k| rates[k] > CLOSED * self.scale) {
                let mut column = vec![C64::ZERO; n];
                (0..m).for_each(|a| column[rows[a]] = vectors[(a, k)] * rates[k].sqrt());
                columns.push(column);
            }
            if sectors.len() == 2 && electrons.is_none() {
                electrons = Some(columns.len());
            }
        }
        let channels = Mat::from_fn(n, columns.len(), |a, c| columns[c][a]);
        Ok(Opening { sigma, channels, electrons })
    }

    /// `(E - h - sigma)^-1`, the Green's function of a cell with the lead behind it.
    fn beyond(&self, energy: f64, sigma: &Mat<C64>) -> Result<Mat<C64>> {
        let n = self.rows();
        let inner = Mat::from_fn(n, n, |a, b| {
            let own = if a == b { C64::new(energy, 0.0) } else { C64::ZERO };
            own - self.h[(a, b)] - sigma[(a, b)]
        });
        inverse(inner.as_ref()).ok_or_else(|| unresolved(energy))
    }

    /// By how much a self-energy violates its equation `sigma = v^dagger (E - h - sigma)^-1 v`, as a matrix.
    fn violation(&self, energy: f64, sigma: &Mat<C64>) -> Option<Mat<C64>> {
        let g = self.beyond(energy, sigma).ok()?;
        Some(self.v.adjoint() * g * &self.v - sigma)
    }

    /// One of Newton's steps for that equation: `d - A d B` is what is missing, with A = v^dagger g and B = g v, which is solved
    /// in the bases of their eigenvectors. None where these are no bases.
    fn newton(&self, energy: f64, sigma: &Mat<C64>) -> Option<Mat<C64>> {
        let g = self.beyond(energy, sigma).ok()?;
        let (a, b) = (self.v.adjoint() * &g, &g * &self.v);
        let missing = &a * &self.v - sigma;
        let (left, right) = (a.eigen().ok()?, b.eigen().ok()?);
        let (x, y) = (left.U(), right.U());
        let (l, m) = (left.S().column_vector(), right.S().column_vector());
        let mut d = inverse(x)? * missing * y;
        for i in 0..d.nrows() {
            for j in 0..d.ncols() {
                d[(i, j)] /= C64::ONE - l[i] * m[j];
            }
        }
        let d = x * d * inverse(y)?;
        largest(d.as_ref()).is_finite().then_some(d)
    }

    /// A self-energy after Newton's steps, and how far it may be off. Near the edge of a band that is much more than what
    /// violates the equation: its square root. The size of the last step tells.
    fn refined(&self, energy: f64, start: Mat<C64>) -> Option<(f64, Mat<C64>)> {
        let size = |m: &Mat<C64>| largest(m.as_ref()) / self.scale;
        let mut off = size(&self.violation(energy, &start)?);
        let mut sigma = start.clone();
        let mut last = f64::INFINITY;
        for _ in 0..STEPS {
            let Some(d) = self.newton(energy, &sigma) else { break };
            let next = &sigma + &d;
            let Some(left) = self.violation(energy, &next).map(|m| size(&m)) else { break };
            if !(size(&d) < last && left <= off.max(1e-14) && size(&(&next - &start)) < NEAR) {
                break;
            }
            (sigma, off, last) = (next, left, size(&d));
            if last < 1e-14 {
                break;
            }
        }
        let off = if last.is_finite() { off.max(last) } else { off };
        off.is_finite().then_some((off, sigma))
    }

    /// `v^dagger g v` with the lead's surface Green's function g, extrapolated to a real energy and refined there.
    fn self_energy(&self, energy: f64) -> Result<Mat<C64>> {
        if !energy.is_finite() {
            return Err(Error::input(format!("a lead at an energy of {energy}")).hint("give a finite energy"));
        }
        let n = self.rows();
        let mut best: Option<(f64, Mat<C64>)> = None;
        for (eta, cells) in TRIALS.map(|(eta, cells)| (eta * self.scale, cells)) {
            let part = |eta: f64| -> Option<Mat<C64>> {
                let g = self.decimated(C64::new(energy, eta), cells)?;
                Some(self.v.adjoint() * g * &self.v)
            };
            let (Some(near), Some(nearer)) = (part(eta), part(0.5 * eta)) else { continue };
            let sigma = Mat::from_fn(n, n, |a, b| nearer[(a, b)] * 2.0 - near[(a, b)]);
            let Some((off, sigma)) = self.refined(energy, sigma) else { continue };
            if best.as_ref().is_none_or(|(least, _)| off < *least) {
                best = Some((off, sigma));
            }
            if best.as_ref().is_some_and(|(off, _)| *off < GOOD) {
                break;
            }
            task::poll()?;
        }
        match best {
            Some((off, sigma)) if off < BAD => Ok(sigma),
            _ => Err(unresolved(energy)),
        }
    }

    /// The surface Green's function by decimation: each step removes every other cell and doubles the length over
    /// which the remaining coupling decays (Lopez Sancho, Lopez Sancho, Rubio, J. Phys. F 15 (1985) 851, equations 10
    /// to 15). `cells` cells are taken together as one.
    fn decimated(&self, z: C64, cells: usize) -> Option<Mat<C64>> {
        let (own, n) = (self.rows(), self.rows() * cells);
        let mut whole = Mat::<C64>::zeros(n, n);
        let (mut inward, mut outward) = (Mat::<C64>::zeros(n, n), Mat::<C64>::zeros(n, n));
        let last = (cells - 1) * own;
        for i in 0..own {
            for j in 0..own {
                for c in 0..cells {
                    whole[(c * own + i, c * own + j)] = self.h[(i, j)];
                }
                for c in 1..cells {
                    whole[(c * own + i, (c - 1) * own + j)] = self.v[(i, j)];
                    whole[((c - 1) * own + i, c * own + j)] = self.v[(j, i)].conj();
                }
                outward[(i, last + j)] = self.v[(i, j)];
                inward[(last + i, j)] = self.v[(j, i)].conj();
            }
        }
        let mut surface = whole.clone();
        let less = |m: &Mat<C64>| Mat::from_fn(n, n, |i, j| if i == j { z - m[(i, j)] } else { -m[(i, j)] });
        for _ in 0..MOST_DOUBLINGS {
            if largest(inward.as_ref()).max(largest(outward.as_ref())) <= 1e-18 * self.scale {
                break;
            }
            let lu = less(&whole).partial_piv_lu();
            let (g_in, g_out) = (lu.solve(&inward), lu.solve(&outward));
            // Towards the lead's inside, and back.
            let ahead = &inward * &g_out;
            surface += &ahead;
            whole += &ahead;
            whole += &outward * &g_in;
            inward = &inward * &g_in;
            outward = &outward * &g_out;
        }
        let all = inverse(less(&surface).as_ref())?;
        Some(all.submatrix(0, 0, own, own).to_owned())
    }

    /// The phase of each site that transforms the lead to the gauge of the sample at these sites: with it the lead's
    /// bonds have the phases of the sample's bonds.
    pub fn gauge(&self, h: &Csr, sites: &[usize]) -> Vec<C64> {
        let (n, m) = (sites.len(), self.orbitals);
        let mut phases: Vec<Option<C64>> = vec![None; n];
        for root in 0..n {
            if phases[root].is_some() {
                continue;
            }
            phases[root] = Some(C64::ONE);
            let mut open = vec![root];
            while let Some(j) = open.pop() {
                let here = phases[j].unwrap_or(C64::ONE);
                for i in 0..n {
                    if phases[i].is_some() {
                        continue;
                    }
                    let both: C64 = (0..m * m)
                        .map(|k| {
                            let (a, b) = (k / m, k % m);
                            let own = self.h[(i * m + a, j * m + b)];
                            if own == C64::ZERO {
                                return C64::ZERO;
                            }
                            let both = element(h, sites[i] * m + a, sites[j] * m + b) * own.conj();
                            // Holes have the opposite phase, and pairs none that tells.
                            match (self.is_hole(a), self.is_hole(b)) {
                                (false, false) => both,
                                (true, true) => both.conj(),
                                _ => C64::ZERO,
                            }
                        })
                        .sum();
                    if both.norm() > 1e-12 * self.scale * self.scale {
                        phases[i] = Some(here * both / both.norm());
                        open.push(i);
                    }
                }
            }
        }
        phases.into_iter().map(|phase| phase.unwrap_or(C64::ONE)).collect()
    }

    /// The sites of a sample where the lead's next cell inward would be, in the order of the lead's sites.
    ///
    /// # Errors
    /// A lead whose cell fits nowhere, or that the sample reaches into.
    pub fn attach(&self, sites: &[Vec<f64>]) -> Result<Vec<usize>> {
        let length2: f64 = self.step.iter().map(|x| x * x).sum();
        let scale = length2.sqrt();
        let found = Places::new(sites, 1e-6 * scale.min(1.0));
        let first = &self.places[0];
        // How many cells outward from the lead's own place each site of the sample would be its first one.
        let mut shifts: Vec<i64> = sites
            .iter()
            .filter(|x| x.len() == first.len())
            .filter_map(|x| {
                let along: f64 = x.iter().zip(first).zip(&self.step).map(|((x, p), s)| (x - p) * s).sum();
                let cells = (along / length2).round();
                let mut off =
                    x.iter().zip(first).zip(&self.step).map(|((x, p), s)| (x - p - cells * s).abs());
                off.all(|off| off < 1e-6 * scale).then_some(cells as i64)
            })
            .collect();
        shifts.sort_unstable();
        let at = |places: &[Vec<f64>], shift: i64| -> Vec<Option<usize>> {
            let moved = |p: &Vec<f64>| -> Vec<f64> {
                p.iter().zip(&self.step).map(|(p, s)| p + shift as f64 * s).collect()
            };
            places.iter().map(|p| found.at(&moved(p))).collect()
        };
        let last = &self.places[self.places.len() - self.sites..];
        for &shift in shifts.iter().rev() {
            let Some(all) = at(&self.places, shift).into_iter().collect::<Option<Vec<usize>>>() else {
                continue;
            };
            let farthest = shifts[shifts.len() - 1].max(shift) + 2;
            if (shift + 1..=farthest).any(|beyond| at(last, beyond).iter().any(Option::is_some)) {
                return Err(Error::input("sites of the sample stand where a lead begins")
                    .hint("the sample must end with a whole cell of each lead"));
            }
            return Ok(all);
        }
        Err(Error::input("a lead fits the sample nowhere: no sites of the sample make up a cell of it").hint(
            "moved along its direction, its cell must meet sites of the sample; an origin moves it across",
        ))
    }
}

/// Sites by place.
struct Places {
    cubes: HashMap<Vec<i64>, Vec<usize>>,
    sites: Vec<Vec<f64>>,
    tolerance: f64,
}

impl Places {
    fn new(sites: &[Vec<f64>], tolerance: f64) -> Places {
        let mut cubes: HashMap<Vec<i64>, Vec<usize>> = HashMap::new();
        for (i, place) in sites.iter().enumerate() {
            cubes.entry(place.iter().map(|x| x.round() as i64).collect()).or_default().push(i);
        }
        Places { cubes, sites: sites.to_vec(), tolerance }
    }

    fn at(&self, place: &[f64]) -> Option<usize> {
        // A place near the wall of a cube may have been put into the next one.
        let sides: Vec<[i64; 2]> = place
            .iter()
            .map(|x| [(x - self.tolerance).round() as i64, (x + self.tolerance).round() as i64])
            .collect();
        (0..1usize << place.len()).find_map(|code| {
            let cube: Vec<i64> = sides.iter().enumerate().map(|(d, side)| side[code >> d & 1]).collect();
            let near = |i: &&usize| {
                let there = &self.sites[**i];
                there.iter().zip(place).all(|(a, b)| (a - b).abs() <= self.tolerance)
            };
            self.cubes.get(&cube)?.iter().find(near).copied()
        })
    }
}

fn element(h: &Csr, row: usize, column: usize) -> C64 {
    let entries = h.row_start[row]..h.row_start[row + 1];
    entries.filter(|&entry| h.columns.get(entry) == column).map(|entry| h.values.get(entry)).sum()
}

/// The inverse, if it is finite.
pub fn inverse(a: MatRef<'_, C64>) -> Option<Mat<C64>> {
    let x = a.partial_piv_lu().solve(&Mat::<C64>::identity(a.nrows(), a.nrows()));
    largest(x.as_ref()).is_finite().then_some(x)
}

/// The largest modulus; NaN if there is one.
pub fn largest(a: MatRef<'_, C64>) -> f64 {
    let mut most = 0.0f64;
    for j in 0..a.ncols() {
        for i in 0..a.nrows() {
            let x = a[(i, j)].norm();
            if !(x <= most) {
                most = x;
            }
            if x.is_nan() {
                return x;
            }
        }
    }
    most
}

fn unresolved(energy: f64) -> Error {
    Error::numeric(format!("a lead is not resolved at energy {energy}, where it has a level of its own"))
        .hint("this happens at flat bands and at the very edge of a band: move the energy by a little, such as 1e-4 of a hopping")
}
