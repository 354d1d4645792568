//! The second-order conductivity of electrons in bands, a sum over momenta and triples of states (Parker, Morimoto,
//! Orenstein, Moore, PRB 99 (2019) 045121; Passos, Ventura, Viana Parente Lopes, Lopes dos Santos, Peres, PRB 97 (2018)
//! 235446). A uniform field moves momenta; the density matrix and the current follow to second order.

use std::f64::consts::TAU;

use super::conductivity::{BandElectrons, check_finite};
use super::grid::MomentumGrid;
use super::positions::Covariant;
use super::size::{finite_at, one_level, power_of_two_near};
use super::{levels, zone_sum};
use crate::error::{Error, Result};
use crate::lattice::{Bloch, BlochDerivative};
use crate::number::{C64, Matrix, memory};
use crate::task::Task;

/// Which response is asked for.
#[derive(Debug, Clone)]
pub struct SecondOrderOptions {
    pub electrons: BandElectrons,
    /// Cartesian axes of the current and of both fields.
    pub axes: [usize; 3],
    pub potential: f64,
    /// Whether the second field has minus the frequency of the first, so that the current is a direct one.
    pub rectified: bool,
}

/// Derivatives of the Hamiltonian for any momentum.
enum Derivatives {
    /// Along the current and both fields; along the current and each field, and both fields; along all three.
    Points([BlochDerivative; 7]),
    /// The same where orbitals are no points.
    Covariant(Covariant),
}

/// What all frequencies need at a momentum, between eigenstates, row-major.
struct Elements {
    n: usize,
    energies: Vec<f64>,
    filled: Vec<f64>,
    first: [Vec<C64>; 3],
    second: [Vec<C64>; 3],
    /// The current of the unchanged density matrix.
    at_rest: C64,
}

impl SecondOrderOptions {
    fn check(&self, bloch: &Bloch, frequencies: &[f64]) -> Result<MomentumGrid> {
        let grid = self.electrons.check(bloch)?;
        check_finite(frequencies, "frequency")?;
        check_finite(&[self.potential], "chemical potential")?;
        if self.electrons.eta == 0.0 {
            return Err(Error::input("a second-order conductivity with `eta` of 0")
                .hint("give an energy above the distance of levels on the grid"));
        }
        Ok(grid)
    }

    /// The axes along which there are derivatives.
    fn several(&self) -> [Vec<usize>; 7] {
        let [a, b, c] = self.axes;
        [vec![a], vec![b], vec![c], vec![a, b], vec![a, c], vec![b, c], vec![a, b, c]]
    }

    fn derivatives(&self, bloch: &Bloch) -> Result<Derivatives> {
        if let Some(positions) = &self.electrons.positions {
            return positions.derivatives(bloch, self.axes).map(Derivatives::Covariant);
        }
        let [a, b, c, ab, ac, bc, abc] = self.several().map(|axes| bloch.higher_derivative(&axes));
        Ok(Derivatives::Points([a?, b?, c?, ab?, ac?, bc?, abc?]))
    }

    /// Whether both fields are one.
    fn same(&self) -> bool {
        !self.rectified && self.axes[1] == self.axes[2]
    }

    fn elements(&self, bloch: &Bloch, of: &Derivatives, k: &[f64], close: f64) -> Result<Elements> {
        let l = levels(bloch, k)?;
        let between = |operator: Result<Matrix>| -> Result<Vec<C64>> {
            Ok(l.vectors.dagger().matmul(&operator?.matmul(&l.vectors)?)?.data().to_complex())
        };
        let [a, b, c, ab, ac, bc, abc] = match (of, &self.electrons.positions) {
            (Derivatives::Covariant(of), Some(positions)) => {
                self.several().map(|axes| between(of.at(positions, bloch, k, &axes)))
            }
            (Derivatives::Points(of), _) => of.each_ref().map(|of| between(bloch.at_momentum(k, of))),
            _ => return Err(Error::internal("derivatives without the positions that they are of")),
        };
        let n = bloch.rows();
        let filled: Vec<f64> =
            l.energies.iter().map(|e| self.electrons.filled(*e, self.potential, close)).collect();
        let third = abc?;
        Ok(Elements {
            n,
            first: [a?, b?, c?],
            second: [ab?, ac?, bc?],
            at_rest: (0..n).map(|i| third[i * n + i] * filled[i]).sum(),
            energies: l.energies,
            filled,
        })
    }

    /// Frequencies of both fields.
    fn fields(&self, frequency: f64) -> [C64; 2] {
        [
            C64::new(frequency, self.electrons.eta),
            C64::new(if self.rectified { -frequency } else { frequency }, self.electrons.eta),
        ]
    }
}

impl Elements {
    /// The power of two near the largest energy, that of the fields included, and everything in units of it.
    fn in_units(mut self, largest_field: f64) -> (f64, Elements) {
        let all = self.first.iter().chain(&self.second).flatten().map(|z| z.re.abs().max(z.im.abs()));
        let levels = self.energies.iter().copied();
        let unit = power_of_two_near(all.chain(levels).chain([largest_field, self.at_rest.norm()]));
        self.first.iter_mut().chain(&mut self.second).flatten().for_each(|z| *z /= unit);
        self.energies.iter_mut().for_each(|e| *e /= unit);
        self.at_rest /= unit;
        (unit, self)
    }

    /// `(f_j - f_i)/(z - E_i + E_j)` times each element (i, j): what a field of this frequency makes of the density
    /// matrix.
    fn response(&self, z: C64, field: &[C64], to: &mut [C64]) {
        let (n, e, f) = (self.n, &self.energies, &self.filled);
        for i in 0..n {
            for j in 0..n {
                let change = f[j] - f[i];
                to[i * n + j] = match change == 0.0 {
                    true => C64::ZERO,
                    false => field[i * n + j] * change / (z - e[i] + e[j]),
                };
            }
        }
    }

    /// The current in second order of two fields that move the momenta; `room` is overwritten.
    fn current(&self, [z1, z2]: [C64; 2], same: bool, room: &mut [Vec<C64>; 2]) -> C64 {
        let (n, e, f) = (self.n, &self.energies, &self.filled);
        let [current, one, two] = &self.first;
        let [with_one, with_two, of_both] = &self.second;
        let [after_one, after_two] = room;
        self.response(z1, one, after_one);
        if same {
            after_two.copy_from_slice(after_one);
        } else {
            self.response(z2, two, after_two);
        }
        let mut sum = self.at_rest;
        for i in 0..n {
            for j in 0..n {
                let (here, back) = (i * n + j, j * n + i);
                sum += with_one[back] * after_two[here] + with_two[back] * after_one[here];
                if current[back] == C64::ZERO {
                    continue;
                }
                // The commutators of each field with what the other has made.
                let mut made = C64::ZERO;
                for l in 0..n {
                    made += one[i * n + l] * after_two[l * n + j] - after_two[i * n + l] * one[l * n + j];
                }
                if same {
                    made *= 2.0;
                } else {
                    for l in 0..n {
                        made += two[i * n + l] * after_one[l * n + j] - after_one[i * n + l] * two[l * n + j];
                    }
                }
                made += of_both[here] * (f[j] - f[i]);
                sum += current[back] * made / (z1 + z2 - e[i] + e[j]);
            }
        }
        sum
    }
}

/// `sigma_abc(w1 + w2; w1, w2)` for each frequency, the mean over both orders of the fields, in e^3/h per unit of
/// energy times lattice constant^(3 - d), for electrons of charge -e: the current `j_a = sigma_abc E_b E_c` at twice
/// the frequency, or half of the direct one, `j_a = 2 sigma_abc E_b E_c*`. States are counted once.
///
/// # Errors
/// Options that cannot be, a model with holes; no memory; interruption.
pub fn band_second_order(
    bloch: &Bloch,
    frequencies: &[f64],
    o: &SecondOrderOptions,
    task: &Task,
) -> Result<Vec<C64>> {
    let grid = o.check(bloch, frequencies)?;
    let (of, close) = (o.derivatives(bloch)?, one_level(bloch));
    // Nine matrices of elements and responses, and as many while they are made.
    let each = 16 * (frequencies.len() as u128 + 18 * (bloch.rows() as u128).pow(2));
    memory::ensure(super::CHUNK.min(grid.total()) as u128 * each, "second-order responses of some momenta")?;
    let field = frequencies.iter().fold(o.electrons.eta, |most, w| most.max(w.abs()));
    let one = |k: &[f64]| -> Result<Vec<C64>> {
        let (unit, elements) = o.elements(bloch, &of, k, close)?.in_units(field);
        let mut room = [(); 2].map(|_| vec![C64::ZERO; elements.n * elements.n]);
        let at = |w: &f64| {
            let [z1, z2] = o.fields(*w).map(|z| z / unit);
            // Momenta move by a field over its frequency.
            0.5 * elements.current([z1, z2], o.same(), &mut room) / z1 / z2 / unit
        };
        Ok(frequencies.iter().map(at).collect())
    };
    let sum = zone_sum(&grid, frequencies.len(), "second-order conductivity", task, one)?;
    let unit = TAU / (bloch.cell().geometry().volume()? * grid.total() as f64);
    let found = sum.into_iter().map(|x: C64| x * unit).collect();
    finite_at("second-order conductivity", frequencies, found)
}
