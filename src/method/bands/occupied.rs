//! Electrons in the levels of models at a grid of momenta: how full levels are, and the density matrix that they make.

use rayon::prelude::*;

use super::grid::MomentumGrid;
use super::size::one_level;
use super::{CHUNK, keep, levels_of, two_rows};
use crate::error::{Error, Result};
use crate::lattice::{Bloch, CellBond, OrbitalBlock};
use crate::method::fermi::fermi;
use crate::number::{C64, Matrix, Series};
use crate::task::Task;

/// Eigenvectors of all momenta are kept up to this many numbers; beyond, they are found twice.
const KEPT: usize = 1 << 25;

/// How many electrons there are.
#[derive(Debug, Clone, Copy)]
pub enum Filling {
    /// As many as are below the chemical potential.
    Potential(f64),
    /// So many in a cell, those of all models together.
    Count(f64),
}

/// Which density matrix is asked for.
#[derive(Debug, Clone)]
pub struct OccupiedOptions {
    /// Momenta in each periodic direction; none for the sample with the boundaries that it has.
    pub grid: Vec<usize>,
    pub filling: Filling,
    pub temperature: f64,
    /// Whether elements between neighbours are asked for.
    pub bonds: bool,
}

/// The electrons of some models that share a potential.
#[derive(Debug)]
pub struct Occupied {
    pub potential: f64,
    /// The sum of the levels' energies times how full they are, of a cell.
    pub energy: f64,
    /// The sum of -f ln f - (1 - f) ln(1 - f) over the levels, of a cell; f is how full one is.
    pub entropy: f64,
    /// The lowest and the highest level.
    pub range: [f64; 2],
    pub models: Vec<Electrons>,
}

/// The electrons of one model: `<a| f(H) |b>` as blocks of the orbitals.
#[derive(Debug)]
pub struct Electrons {
    /// Of each site.
    pub sites: Vec<OrbitalBlock>,
    /// Of each nearest-neighbour bond: rows of the site that it reaches, columns of that it leaves.
    pub bonds: Vec<OrbitalBlock>,
    /// The diagonal of the Hamiltonian, averaged over the momenta.
    pub diagonal: Vec<f64>,
}

/// How full each of many levels is.
struct Full {
    potential: f64,
    temperature: f64,
    /// A level this near to the potential is full to the part `part` at zero temperature.
    near: f64,
    part: f64,
}

impl Full {
    /// What a level adds to the entropy. Far from the potential the difference of logarithms would be rounding.
    fn entropy(&self, energy: f64) -> f64 {
        let log = |x: f64| if x > 0.0 { x * x.ln() } else { 0.0 };
        if self.temperature > 0.0 {
            let x = ((energy - self.potential) / self.temperature).abs();
            (-x).exp().ln_1p() + if x < 800.0 { x / (1.0 + x.exp()) } else { 0.0 }
        } else {
            let f = self.of(energy);
            -log(f) - log(1.0 - f)
        }
    }

    fn of(&self, energy: f64) -> f64 {
        if self.temperature > 0.0 {
            fermi(energy, self.potential, self.temperature)
        } else if (energy - self.potential).abs() <= self.near {
            self.part
        } else {
            fermi(energy, self.potential, 0.0)
        }
    }
}

/// Beyond this many temperatures from the potential a level is full or empty to the last digit.
const FAR: f64 = 40.0;

/// `ln sum 1/(1 + exp y)`, of numbers far above zero too, where each term is below rounding.
fn log_full(y: impl Iterator<Item = f64> + Clone) -> f64 {
    let log = |y: f64| match y.abs() > FAR {
        true => -y.max(0.0),
        false => -y.max(0.0) - (-y.abs()).exp().ln_1p(),
    };
    let most = y.clone().map(log).fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    let terms = y.map(|y| log(y) - most).filter(|x| *x > -FAR);
    most + terms.map(f64::exp).sum::<f64>().ln()
}

/// How many fermions are in these levels.
fn fermions(levels: &[f64], potential: f64, temperature: f64) -> f64 {
    let below = levels.partition_point(|e| *e < potential - FAR * temperature);
    let near = levels[below..].iter().take_while(|e| **e <= potential + FAR * temperature);
    below as f64 + near.map(|e| fermi(*e, potential, temperature)).sum::<f64>()
}

/// Whether fewer than `count` fermions are in these levels, which ascend. A whole number fills the lowest levels but
/// for as many holes as there are fermions in the others: in a gap both are below the rounding of the sum.
fn holds_fewer(levels: &[f64], count: f64, potential: f64, temperature: f64) -> bool {
    let n = count as usize;
    if n < 1 || n >= levels.len() || n as f64 != count {
        return fermions(levels, potential, temperature) < count;
    }
    let above = levels[n..].iter().map(|e| (e - potential) / temperature);
    let below = levels[..n].iter().map(|e| (potential - e) / temperature);
    log_full(above) < log_full(below)
}

/// The potential at which so many fermions are in levels that ascend; at zero temperature, which any below the
/// `rounding` of the levels is, those of a multiplet are equally full: levels that rounding alone leaves apart.
fn fill(levels: &[f64], count: f64, temperature: f64, rounding: f64) -> Full {
    let n = levels.len();
    let (lowest, highest) = (levels[0], levels[n - 1]);
    let width = (highest - lowest).max(1e-300);
    if temperature <= rounding {
        let at = (count as usize).min(n - 1);
        let near = 2.0 * rounding;
        if count.fract() == 0.0 && at > 0 && count < n as f64 && levels[at] - levels[at - 1] > near {
            let potential = 0.5 * (levels[at] + levels[at - 1]);
            return Full { potential, temperature: 0.0, near: 0.0, part: 0.5 };
        }
        let edge = levels[at];
        let below = levels.partition_point(|e| *e < edge - near);
        let here = levels.partition_point(|e| *e <= edge + near) - below;
        let part = ((count - below as f64) / here as f64).clamp(0.0, 1.0);
        return Full { potential: edge, temperature: 0.0, near, part };
    }
    // Far outside the levels none or all are full; between, halves of the interval.
    let mut low = lowest - 40.0 * temperature - width;
    let mut high = highest + 40.0 * temperature + width;
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if holds_fewer(levels, count, middle, temperature) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Full { potential: 0.5 * (low + high), temperature, near: 0.0, part: 0.5 }
}

impl OccupiedOptions {
    fn check(&self, cells: &[Bloch]) -> Result<MomentumGrid> {
        let Some(first) = cells.first() else {
            return Err(Error::input("electrons of no model").hint("give a Model, or an array of them"));
        };
        let d = first.dimension();
        if let Some(other) = cells.iter().find(|cell| cell.dimension() != d) {
            return Err(Error::input(format!(
                "models with {d} and {} periodic directions share no momenta",
                other.dimension()
            ))
            .hint("give models on one lattice"));
        }
        let grid = MomentumGrid::new(&self.grid, d)?;
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return Err(Error::input(format!("a temperature of {}", self.temperature))
                .hint("it is an energy, zero or above (k_B = 1)"));
        }
        let rows: usize = cells.iter().map(Bloch::rows).sum();
        match self.filling {
            Filling::Potential(x) if !x.is_finite() => {
                Err(Error::input(format!("a chemical potential of {x}")).hint("look for a division by zero"))
            }
            Filling::Count(count) if !(count >= 0.0 && count <= rows as f64) => {
                Err(Error::input(format!("{count} fermions in {rows} levels"))
                    .hint("a filling of one orbital lies between 0 and 2, spins counted"))
            }
            _ => Ok(grid),
        }
    }
}

/// The Bloch Hamiltonian, real where it is.
fn hamiltonian(cell: &Bloch, k: &[f64]) -> Result<Matrix> {
    let h = cell.hamiltonian(k)?;
    match h.data() {
        Series::Complex(z) if z.iter().all(|z| z.im == 0.0) => {
            Matrix::new(h.rows(), h.cols(), Series::Real(z.iter().map(|z| z.re).collect()))
        }
        _ => Ok(h),
    }
}

/// The levels of a Hermitian matrix, ascending, and its eigenvectors as columns.
fn eigen(h: &Matrix) -> Result<(Vec<f64>, Matrix)> {
    if let Some(two) = two_rows::of(h)
        && let Some(vectors) = two.vectors()
    {
        return Ok((two.levels().to_vec(), vectors));
    }
    let (values, vectors) = h.eigh()?;
    Ok((values.as_real("energies")?.to_vec(), vectors))
}

/// Levels of a model at a momentum, and what makes its part of the density matrix.
struct Place {
    levels: Vec<f64>,
    vectors: Option<Matrix>,
    diagonal: Vec<f64>,
}

/// What of a model's density matrix is asked for: sites, and bonds with their phases.
struct DensityRequest<'a> {
    cell: &'a Bloch,
    sites: usize,
    orbitals: usize,
    bonds: Vec<CellBond>,
}

impl DensityRequest<'_> {
    fn place(&self, k: &[f64], with_vectors: bool) -> Result<Place> {
        let h = hamiltonian(self.cell, k)?;
        let n = h.rows();
        let at = |row: usize| match h.data() {
            Series::Real(x) => x[row * n + row],
            Series::Complex(z) => z[row * n + row].re,
        };
        let diagonal = (0..n).map(at).collect();
        let (levels, vectors) = if with_vectors {
            let (levels, vectors) = eigen(&h)?;
            (levels, Some(vectors))
        } else {
            (levels_of(&h)?, None)
        };
        Ok(Place { levels, vectors, diagonal })
    }

    /// The elements asked for, of sites and then of bonds, at a momentum.
    fn elements(&self, k: &[f64], place: &Place, full: &Full) -> Result<Vec<C64>> {
        let again;
        let vectors = match &place.vectors {
            Some(vectors) => vectors,
            None => {
                again = eigen(&hamiltonian(self.cell, k)?)?.1;
                &again
            }
        };
        let weights: Vec<(usize, f64)> =
            place.levels.iter().map(|e| full.of(*e)).enumerate().filter(|(_, f)| *f != 0.0).collect();
        let (n, m) = (place.levels.len(), self.orbitals);
        let mut all = Vec::with_capacity((self.sites + self.bonds.len()) * m * m);
        let electrons = self.cell.cell().particles();
        let hole = |row: usize| row % m >= electrons;
        let mut block = |to: usize, from: usize, turn: C64, field: C64, boundary: C64| {
            for a in to * m..(to + 1) * m {
                for b in from * m..(from + 1) * m {
                    let sum = match vectors.data() {
                        Series::Real(v) => {
                            let terms = weights.iter().map(|(l, f)| f * v[a * n + l] * v[b * n + l]);
                            C64::from(terms.sum::<f64>())
                        }
                        Series::Complex(v) => {
                            weights.iter().map(|(l, f)| f * v[a * n + l] * v[b * n + l].conj()).sum()
                        }
                    };
                    // Holes have the opposite phase; a field puts none on pairs.
                    let factor = match (hole(a), hole(b)) {
                        (false, false) => field * boundary,
                        (true, true) => (field * boundary).conj(),
                        _ => boundary,
                    };
                    all.push(sum * turn * factor);
                }
            }
        };
        for site in 0..self.sites {
            block(site, site, C64::ONE, C64::ONE, C64::ONE);
        }
        for bond in &self.bonds {
            let turns: f64 = bond.cells.iter().zip(k).map(|(c, k)| *c as f64 * k).sum();
            let turn = C64::cis(std::f64::consts::TAU * (turns - turns.round()));
            block(bond.to, bond.from, turn, bond.field, bond.boundary);
        }
        Ok(all)
    }
}

/// The electrons of models that share a chemical potential, two spins for one, over a grid of momenta.
///
/// # Errors
/// Options that cannot be, models of different directions, bonds that [`Bloch::bonds`] refuses; no memory;
/// interruption.
pub fn occupied(cells: &[Bloch], o: &OccupiedOptions, task: &Task) -> Result<Occupied> {
    let grid = o.check(cells)?;
    let total = grid.total();
    let wanted: Vec<DensityRequest<'_>> = cells
        .iter()
        .map(|cell| {
            let orbitals = cell.cell().orbitals();
            let bonds = if o.bonds { cell.bonds()? } else { Vec::new() };
            Ok(DensityRequest { cell, sites: cell.rows() / orbitals, orbitals, bonds })
        })
        .collect::<Result<_>>()?;
    let places = total * cells.len();
    let rows: usize = cells.iter().map(Bloch::rows).sum();
    let squares: usize = cells.iter().map(|cell| cell.rows() * cell.rows()).sum();
    let with_vectors = total.saturating_mul(squares) <= KEPT || total == 1;
    // Levels twice, sorted and not, and diagonals beside the vectors; then the elements of a few momenta.
    keep(total, if with_vectors { squares } else { 0 } + 2 * rows)?;
    let elements = |w: &DensityRequest<'_>| (w.sites + w.bonds.len()) * w.orbitals * w.orbitals;
    keep(CHUNK.min(places), wanted.iter().map(elements).max().unwrap_or(0))?;
    let steps = task.start("electrons", 2 * places);
    let mut found = Vec::with_capacity(places);
    for first in (0..places).step_by(CHUNK) {
        let last = places.min(first + CHUNK);
        let one = |i: usize| wanted[i / total].place(&grid.momentum(i % total), with_vectors);
        let part: Result<Vec<Place>> = (first..last).into_par_iter().map(one).collect();
        found.extend(part?);
        steps.advance(last)?;
    }
    let mut levels: Vec<f64> = found.iter().flat_map(|place| &place.levels).copied().collect();
    levels.sort_unstable_by(f64::total_cmp);
    let rounding = cells.iter().map(one_level).fold(0.0, f64::max);
    let full = match o.filling {
        Filling::Potential(potential) => {
            let temperature = if o.temperature > rounding { o.temperature } else { 0.0 };
            Full { potential, temperature, near: rounding, part: 0.5 }
        }
        Filling::Count(count) => {
            let all = count * total as f64;
            // What is a whole number but for rounding is one.
            let whole = (all - all.round()).abs() <= 1e-12 * all;
            fill(&levels, if whole { all.round() } else { all }, o.temperature, rounding)
        }
    };
    let energy = levels.iter().map(|e| e * full.of(*e)).sum::<f64>() / total as f64;
    let entropy = levels.iter().map(|e| full.entropy(*e)).sum::<f64>() / total as f64;
    let mut sums: Vec<Vec<C64>> = wanted.iter().map(|w| vec![C64::ZERO; elements(w)]).collect();
    let mut diagonals: Vec<Vec<f64>> = wanted.iter().map(|w| vec![0.0; w.sites * w.orbitals]).collect();
    for first in (0..places).step_by(CHUNK) {
        let last = places.min(first + CHUNK);
        let one = |i: usize| wanted[i / total].elements(&grid.momentum(i % total), &found[i], &full);
        let parts: Result<Vec<_>> = (first..last).into_par_iter().map(one).collect();
        for (i, part) in (first..last).zip(parts?) {
            sums[i / total].iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
            diagonals[i / total].iter_mut().zip(&found[i].diagonal).for_each(|(sum, x)| *sum += x);
        }
        steps.advance(places + last)?;
    }
    let share = 1.0 / total as f64;
    let models = wanted
        .iter()
        .zip(sums)
        .zip(diagonals)
        .map(|((w, sums), diagonal)| {
            let size = w.orbitals * w.orbitals;
            let block =
                |part: &[C64]| OrbitalBlock::new(w.orbitals, part.iter().map(|z| z * share).collect());
            let mut blocks = sums.chunks(size).map(block).collect::<Result<Vec<OrbitalBlock>>>()?;
            let bonds = blocks.split_off(w.sites);
            Ok(Electrons { sites: blocks, bonds, diagonal: diagonal.iter().map(|x| x * share).collect() })
        })
        .collect::<Result<_>>()?;
    let range = [levels[0], levels[levels.len() - 1]];
    Ok(Occupied { potential: full.potential, energy, entropy, range, models })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropies_are_those_of_their_logarithms() {
        let full = |temperature, part| Full { potential: 0.3, temperature, near: 1e-9, part };
        for x in [-3.0, -0.2, 0.0, 0.7, 20.0] {
            let f = 1.0 / (1.0 + f64::exp(x));
            let own = -f * f.ln() - (1.0 - f) * f64::ln_1p(-f);
            assert!((full(0.25, 0.5).entropy(0.3 + 0.25 * x) - own).abs() < 1e-15, "{x}");
        }
        assert_eq!(full(0.25, 0.5).entropy(1e9), 0.0);
        assert_eq!(full(0.25, 0.5).entropy(-1e9), 0.0);
        assert_eq!(full(0.0, 1.0).entropy(0.3), 0.0);
        assert_eq!(full(0.0, 0.5).entropy(1.0), 0.0);
        assert!((full(0.0, 0.5).entropy(0.3) - f64::ln(2.0)).abs() < 1e-15);
    }

    #[test]
    fn levels_are_filled_from_below() {
        let levels = [-2.0, -1.0, -1.0, 0.5, 3.0];
        let of = |count, temperature| {
            let full = fill(&levels, count, temperature, 1e-14);
            levels.iter().map(|e| full.of(*e)).collect::<Vec<f64>>()
        };
        assert_eq!(of(0.0, 0.0), [0.0; 5]);
        assert_eq!(of(5.0, 0.0), [1.0; 5]);
        assert_eq!(of(2.0, 0.0), [1.0, 0.5, 0.5, 0.0, 0.0]);
        assert_eq!(of(3.0, 0.0), [1.0, 1.0, 1.0, 0.0, 0.0]);
        assert_eq!(of(3.25, 0.0), [1.0, 1.0, 1.0, 0.25, 0.0]);
        for (count, temperature) in [(0.3, 0.2), (2.0, 1e-3), (3.0, 0.05), (4.9, 2.0)] {
            assert!(
                (of(count, temperature).iter().sum::<f64>() - count).abs() < 1e-9,
                "{count} {temperature}"
            );
        }
        assert!((fill(&levels, 3.0, 1e-3, 1e-14).potential + 0.25).abs() < 1e-3, "the middle of the gap");
    }
}
