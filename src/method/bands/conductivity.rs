//! The conductivity of electrons in bands by Kubo's formula, a sum over momenta and pairs of states (Kubo, J. Phys.
//! Soc. Jpn. 12 (1957) 570; Greenwood, Proc. Phys. Soc. 71 (1958) 585). Off the diagonal and without scattering it is
//! the sum of the Berry curvatures of the filled states (Thouless, Kohmoto, Nightingale, den Nijs, PRL 49 (1982)
//! 405).

use std::f64::consts::TAU;

use super::grid::MomentumGrid;
use super::positions::{PositionElements, expectations};
use super::size::{must_have_squares, one_level};
use super::{CHUNK, levels, zone_sum};
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::method::fermi::fermi;
use crate::number::{C64, Matrix, memory};
use crate::task::Task;

/// What responses of the electrons in bands are summed over.
#[derive(Debug, Clone)]
pub struct BandElectrons {
    /// Momenta in each direction.
    pub grid: Vec<usize>,
    pub temperature: f64,
    /// The imaginary part of the frequencies: what scattering broadens transitions by.
    pub eta: f64,
    /// Matrix elements of the position, where orbitals are no points.
    pub positions: Option<PositionElements>,
}

/// Which conductivity is asked for.
#[derive(Debug, Clone)]
pub struct ConductivityOptions {
    pub electrons: BandElectrons,
    /// Cartesian axes of the current and of the field.
    pub axes: [usize; 2],
    /// Whether transitions within a level count, which make the current of a metal (Drude's part).
    pub within: bool,
    /// What the current carries, a Hermitian matrix of the cell in place of one.
    pub carries: Option<Matrix>,
}

/// States at a momentum, ascending, and what belongs to each pair of them, `from` not above `to`.
struct Pairs {
    energies: Vec<f64>,
    /// Levels as near to one another as that are one.
    close: f64,
    list: Vec<Pair>,
    /// What states outside the model add to the Berry curvature of each; empty where there are none.
    outside: Vec<f64>,
}

/// A pair of states: the products of the elements of current and field between them, in both directions.
struct Pair {
    from: usize,
    to: usize,
    products: [C64; 2],
    one_level: bool,
}

/// How full and how empty levels are, for each chemical potential.
struct Occupation {
    temperature: f64,
    potentials: usize,
    filled: Vec<f64>,
    empty: Vec<f64>,
}

impl Occupation {
    /// At zero temperature levels as `close` to a potential as that are half full.
    fn new(energies: &[f64], close: f64, potentials: &[f64], temperature: f64) -> Occupation {
        let at = |e: f64, x: f64| one_with(e, x, close, temperature);
        let all = || energies.iter().flat_map(|e| potentials.iter().map(move |x| (at(*e, *x), *x)));
        Occupation {
            temperature,
            potentials: potentials.len(),
            filled: all().map(|(e, x)| fermi(e, x, temperature)).collect(),
            // Not one less what is filled, which has lost its digits where the level is nearly full.
            empty: all().map(|(e, x)| fermi(-e, -x, temperature)).collect(),
        }
    }

    /// `(f_from - f_to)/(E_to - E_from)` for each potential, which is `-f'` for one level.
    fn moved(&self, energies: &[f64], pair: &Pair) -> impl Iterator<Item = f64> {
        let of = |level: usize| level * self.potentials..(level + 1) * self.potentials;
        let (filled, emptied) = (&self.filled[of(pair.from)], &self.empty[of(pair.to)]);
        let (apart, t) = (energies[pair.to] - energies[pair.from], self.temperature);
        let factor = match (t == 0.0, pair.one_level) {
            (true, true) => 0.0,
            (true, false) => 1.0 / apart,
            // f_from (1 - f_to) (1 - exp(-x)) keeps its digits where both levels are nearly one.
            (false, _) if apart / t < 1e-8 => 1.0 / t,
            (false, _) => -(-apart / t).exp_m1() / apart,
        };
        filled.iter().zip(emptied).map(move |(f, e)| f * e * factor)
    }
}

impl BandElectrons {
    /// The momenta, if all of it can be.
    ///
    /// # Errors
    /// A model with holes, energies below zero, a grid of other directions.
    pub fn check(&self, bloch: &Bloch) -> Result<MomentumGrid> {
        if bloch.cell().holes().is_some() {
            return Err(Error::input("the conductivity of a superconductor's bands")
                .hint("its pairs carry current too: this sum is for electrons alone"));
        }
        for (value, what) in [(self.eta, "eta"), (self.temperature, "the temperature")] {
            if !(value >= 0.0 && value.is_finite()) {
                let text = format!("{what} is {value}");
                return Err(Error::input(text).hint("it is an energy, zero or above"));
            }
        }
        MomentumGrid::new(&self.grid, bloch.dimension())
    }

    /// How full a level is. At zero temperature one as `close` to the potential as that is half full, whatever rounding
    /// makes of it.
    pub fn filled(&self, energy: f64, potential: f64, close: f64) -> f64 {
        fermi(one_with(energy, potential, close, self.temperature), potential, self.temperature)
    }
}

/// A level at zero temperature, at the potential where it is as close as that.
fn one_with(energy: f64, potential: f64, close: f64, temperature: f64) -> f64 {
    match temperature == 0.0 && (energy - potential).abs() <= close {
        true => potential,
        false => energy,
    }
}

impl ConductivityOptions {
    fn check(&self, bloch: &Bloch) -> Result<MomentumGrid> {
        let grid = self.electrons.check(bloch)?;
        if self.within && self.electrons.temperature == 0.0 {
            return Err(Error::input("the current within bands at zero temperature")
                .hint("a sum over momenta needs a temperature above the distance of its levels"));
        }
        if self.carries.is_some() && self.electrons.positions.is_some() {
            return Err(Error::input("what the current carries, with matrix elements of the position")
                .hint("what states outside the model carry is not known: leave out one of the two"));
        }
        if let Some(carried) = &self.carries {
            let n = bloch.rows();
            let rows =
                "it acts on the rows of the cell: the site in the cell times the orbitals, and the orbital";
            if carried.rows() != n || carried.cols() != n {
                let shape = carried.shape();
                let text =
                    format!("what the current carries is a matrix of {shape}, where {n} x {n} are needed");
                return Err(Error::input(text).hint(rows));
            }
            if !carried.is_hermitian(1e-12) {
                return Err(
                    Error::input("what the current carries is a matrix that is not Hermitian").hint(rows)
                );
            }
        }
        Ok(grid)
    }

    /// All pairs of states at a momentum, with the current's element first. Levels as `close` as that are one.
    fn pairs(&self, bloch: &Bloch, k: &[f64], close: f64) -> Result<Pairs> {
        let l = levels(bloch, k)?;
        let between = |operator: Matrix| -> Result<Vec<C64>> {
            Ok(l.vectors.dagger().matmul(&operator.matmul(&l.vectors)?)?.data().to_complex())
        };
        let velocity = |axis: usize| match &self.electrons.positions {
            None => bloch.velocity(k, axis),
            Some(positions) => positions.velocity(bloch, k, axis),
        };
        let outside = match &self.electrons.positions {
            Some(positions) if self.electrons.eta == 0.0 => {
                expectations(&positions.curvature(k, self.axes)?, &l.vectors)?
            }
            _ => Vec::new(),
        };
        let mut current = velocity(self.axes[0])?;
        if let Some(carried) = &self.carries {
            current = carried.matmul(&current)?.add(&current.matmul(carried)?)?.scale(0.5.into());
        }
        let (current, field) = (between(current)?, between(velocity(self.axes[1])?)?);
        let n = bloch.rows();
        let mut list = Vec::with_capacity(n * (n + 1) / 2);
        for (from, low) in l.energies.iter().enumerate() {
            for (to, high) in l.energies.iter().enumerate().skip(from) {
                let one_level = high - low <= close;
                if self.within || !one_level {
                    let product = |i: usize, j: usize| current[j * n + i] * field[i * n + j];
                    let back = if from == to { C64::ZERO } else { product(to, from) };
                    list.push(Pair { from, to, products: [product(from, to), back], one_level });
                }
            }
        }
        Ok(Pairs { energies: l.energies, close, list, outside })
    }

    /// The sum over momenta of what `add` adds for the pairs of each, over their number and the volume, in e^2/h.
    fn sum<T: Send + Copy + Default + std::ops::AddAssign + std::ops::Mul<f64, Output = T>>(
        &self,
        bloch: &Bloch,
        count: usize,
        task: &Task,
        add: impl Fn(&Pairs, &mut [T]) + Sync,
    ) -> Result<Vec<T>> {
        let grid = self.check(bloch)?;
        must_have_squares(bloch)?;
        let total = grid.total();
        // Of some momenta at once: what they add, how full and empty each level is, pairs of states.
        let rows = bloch.rows();
        let each = 16 * count as u128 * (1 + rows as u128) + 64 * (rows as u128).pow(2);
        memory::ensure(CHUNK.min(total) as u128 * each, "conductivities of some momenta")?;
        let close = one_level(bloch);
        let sum = zone_sum(&grid, count, "conductivity", task, |k| {
            let mut part = vec![T::default(); count];
            add(&self.pairs(bloch, k, close)?, &mut part);
            Ok(part)
        })?;
        let unit = TAU / (bloch.cell().geometry().volume()? * total as f64);
        Ok(sum.into_iter().map(|x| x * unit).collect())
    }
}

/// An error unless all of these numbers are finite.
pub(super) fn check_finite(all: &[f64], what: &str) -> Result<()> {
    match all.iter().find(|x| !x.is_finite()) {
        Some(x) => Err(Error::input(format!("a {what} of {x}")).hint("look for a division by zero")),
        None => Ok(()),
    }
}

/// The conductivity at rest for each chemical potential, in e^2/h times lattice constant^(2 - d): the real part of
/// [`band_optical`] at the frequency zero. Without `eta` it is the part of it that turns round with the axes: the sum
/// of the Berry curvatures of the filled states, for a conductivity along the field nothing.
///
/// # Errors
/// Options that cannot be, a conductivity along the field without `eta`, a model with holes; no memory; interruption.
pub fn band_conductivity(
    bloch: &Bloch,
    potentials: &[f64],
    o: &ConductivityOptions,
    task: &Task,
) -> Result<Vec<f64>> {
    check_finite(potentials, "chemical potential")?;
    if o.electrons.eta == 0.0 && o.axes[0] == o.axes[1] {
        return Err(Error::input("a conductivity along the field without scattering is zero or infinite")
            .hint("give `eta`, the broadening by scattering, an energy above zero"));
    }
    if o.electrons.eta == 0.0 && o.within {
        return Err(Error::input("the current within bands without scattering is infinite")
            .hint("give `eta`, an energy above zero, or leave the bands' own current out"));
    }
    o.sum(bloch, potentials.len(), task, |pairs, sum| {
        let full = Occupation::new(&pairs.energies, pairs.close, potentials, o.electrons.temperature);
        for (added, filled) in pairs.outside.iter().zip(full.filled.chunks(potentials.len().max(1))) {
            sum.iter_mut().zip(filled).for_each(|(sum, filled)| *sum += added * filled);
        }
        for pair in &pairs.list {
            let apart = pairs.energies[pair.from] - pairs.energies[pair.to];
            let [there, back] = pair.products;
            let weight = match o.electrons.eta {
                0.0 => (back.im - there.im) / apart,
                eta => (C64::I * (there / C64::new(apart, eta) + back / C64::new(-apart, eta))).re,
            };
            if weight != 0.0 {
                let moved = full.moved(&pairs.energies, pair);
                sum.iter_mut().zip(moved).for_each(|(sum, moved)| *sum += weight * moved);
            }
        }
    })
}

/// The conductivity `i/V sum_k sum_nm (f_n - f_m)/(E_m - E_n) <m|j_a|n><n|v_b|m>/(w + E_n - E_m + i eta)` for each
/// frequency `w`, with `-f'` for pairs of one level, in e^2/h times lattice constant^(2 - d). States are counted
/// once. The sign off the diagonal is that of [`crate::method::DoubleMoments::conductivity`].
///
/// # Errors
/// Options that cannot be, a model with holes; no memory; interruption.
pub fn band_optical(
    bloch: &Bloch,
    frequencies: &[f64],
    potential: f64,
    o: &ConductivityOptions,
    task: &Task,
) -> Result<Vec<C64>> {
    check_finite(frequencies, "frequency")?;
    check_finite(&[potential], "chemical potential")?;
    if o.electrons.eta == 0.0 {
        return Err(Error::input("an optical conductivity without `eta` is a sum of delta functions")
            .hint("give an energy above the distance of levels on the grid"));
    }
    o.sum(bloch, frequencies.len(), task, |pairs, sum| {
        let full = Occupation::new(&pairs.energies, pairs.close, &[potential], o.electrons.temperature);
        for pair in &pairs.list {
            let apart = pairs.energies[pair.from] - pairs.energies[pair.to];
            let moved = C64::I * full.moved(&pairs.energies, pair).sum::<f64>();
            for (product, apart) in pair.products.iter().zip([apart, -apart]) {
                let weight = product * moved;
                if weight != C64::ZERO {
                    let add =
                        |(sum, w): (&mut C64, &f64)| *sum += weight / C64::new(w + apart, o.electrons.eta);
                    sum.iter_mut().zip(frequencies).for_each(add);
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_between_two_levels() {
        let moved = |from: f64, to: f64, one_level, temperature| {
            let (energies, pair) = ([from, to], Pair { from: 0, to: 1, products: [C64::ONE; 2], one_level });
            Occupation::new(&energies, 1e-12, &[0.2], temperature).moved(&energies, &pair).sum::<f64>()
        };
        let full = |e| fermi(e, 0.2, 0.3);
        for (from, to) in [(-0.4, 0.9), (0.1, 0.100001)] {
            let direct = (full(from) - full(to)) / (to - from);
            assert!((moved(from, to, false, 0.3) - direct).abs() < 1e-9, "{from} {to}");
        }
        let slope = (full(0.1 - 1e-6) - full(0.1 + 1e-6)) / 2e-6;
        assert!((moved(0.1, 0.1, true, 0.3) - slope).abs() < 1e-8);
        assert_eq!(moved(0.0, 0.5, false, 0.0), 2.0);
        assert_eq!(moved(0.3, 0.5, false, 0.0), 0.0);
        // The chemical potential lies in a level, which is half full.
        assert_eq!(moved(0.0, 0.2, false, 0.0), 2.5);
        assert_eq!(moved(0.0, 0.2 - 1e-15, false, 0.0), 2.5 / (1.0 - 5e-15));
        assert_eq!(moved(0.2, 0.2, true, 0.0), 0.0);
        assert!(moved(-500.0, 900.0, false, 1e-3) > 0.0, "no number overflows");
    }
}
