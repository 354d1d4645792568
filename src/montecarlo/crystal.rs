//! Crystals: a cell with ions, the number of electrons for a neutral cell, and the potential of a local, empirical
//! pseudopotential. Lengths in bohr, energies in hartree.

use std::sync::Arc;

use super::SimulationCell;
use super::vectors::square;
use super::waves::{Phases, upper, wave_vector, within};
use crate::error::{Error, Result, nearest};
use crate::number::{BOHR, C64};

/// An angstrom in bohr.
const ANGSTROM: f64 = 1.0 / BOHR;

/// Hartree in a rydberg.
const RYDBERG: f64 = 0.5;

/// Most primitive cells of a crystal.
const MOST_CELLS: usize = 1 << 20;

/// Ions nearer than this, in bohr, are at one point.
const ONE_POINT: f64 = 1e-6;

/// An ion and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Ion {
    pub species: String,
    /// Its charge without its valence electrons, in e.
    pub charge: f64,
    /// Its position, in bohr.
    pub position: [f64; 3],
}

/// A periodic potential as a Fourier sum `V(r) = sum_G V_G exp(i G . r)`.
#[derive(Debug, Clone)]
pub struct CrystalPotential {
    cell: SimulationCell,
    /// One of each pair G, -G; the other has the complex conjugate.
    terms: Vec<([i32; 3], C64)>,
}

impl CrystalPotential {
    pub fn zero(cell: &SimulationCell) -> CrystalPotential {
        CrystalPotential { cell: cell.clone(), terms: Vec::new() }
    }

    /// From `V_G` at the reciprocal vectors with `|G|^2 <= most`.
    pub fn from_fourier(
        cell: &SimulationCell,
        most: f64,
        mut v: impl FnMut([f64; 3]) -> Result<C64>,
    ) -> Result<CrystalPotential> {
        let mut terms = Vec::new();
        for n in within(cell, [0.0; 3], most).into_iter().filter(upper) {
            let z = v(wave_vector(cell, n.map(f64::from)))?;
            if !z.re.is_finite() || !z.im.is_finite() {
                return Err(Error::input(format!("the potential is {z} at a reciprocal vector"))
                    .hint("form factors are finite, at |G| = 0 as well"));
            }
            if z != C64::default() {
                terms.push((n, z));
            }
        }
        Ok(CrystalPotential { cell: cell.clone(), terms })
    }

    /// `V_G` at G = sum n_a b_a.
    pub fn at(&self, n: [i32; 3]) -> C64 {
        let (key, turned) = if upper(&n) { (n, false) } else { (n.map(|x| -x), true) };
        let found = self.terms.iter().find(|(m, _)| *m == key).map_or(C64::default(), |(_, v)| *v);
        if turned { found.conj() } else { found }
    }

    /// One of each pair G, -G, by the numbers of G, with `V_G`.
    pub fn terms(&self) -> &[([i32; 3], C64)] {
        &self.terms
    }

    /// The cell it repeats with.
    pub fn cell(&self) -> &SimulationCell {
        &self.cell
    }

    /// Whether the potential is zero everywhere.
    pub fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }

    /// V at every point, in hartree.
    pub fn values(&self, points: &[[f64; 3]]) -> Vec<f64> {
        let mut phases = Phases::reaching(self.terms.iter().map(|(n, _)| n));
        let one = |point: &[f64; 3]| {
            phases.set(self.cell.fractional(*point));
            let term = |(n, v): &([i32; 3], C64)| {
                let twice = if n == &[0; 3] { 1.0 } else { 2.0 };
                let z = phases.at(n);
                twice * (v.re * z.re - v.im * z.im)
            };
            self.terms.iter().map(term).sum()
        };
        points.iter().map(one).collect()
    }
}

/// A crystal, several of its primitive cells wide.
#[derive(Debug, Clone)]
pub struct Crystal {
    name: String,
    primitive: SimulationCell,
    repeat: [usize; 3],
    cell: SimulationCell,
    ions: Arc<Vec<Ion>>,
    electrons: usize,
    potential: Arc<CrystalPotential>,
}

impl Crystal {
    /// From the primitive cell and what is in it; `electrons` per primitive cell.
    ///
    /// # Errors
    /// A crystal of no cells, or of too many; ions at one point, whose repulsion has no end.
    pub fn new(
        name: impl Into<String>,
        primitive: SimulationCell,
        repeat: [usize; 3],
        basis: &[Ion],
        electrons: usize,
        potential: CrystalPotential,
    ) -> Result<Crystal> {
        let cells = repeat.iter().try_fold(1usize, |n, &r| n.checked_mul(r)).unwrap_or(usize::MAX);
        if cells == 0 || cells > MOST_CELLS {
            return Err(Error::input(format!("a crystal of {repeat:?} primitive cells"))
                .hint(format!("between 1 and {MOST_CELLS} in all")));
        }
        for (k, ion) in basis.iter().enumerate() {
            let apart = |other: &Ion| std::array::from_fn(|d| ion.position[d] - other.position[d]);
            let near = |other: &&Ion| square(primitive.minimum_image(apart(other))).sqrt() < ONE_POINT;
            if let Some(other) = basis[..k].iter().position(|other| near(&other)) {
                return Err(Error::input(format!("ions {other} and {k} of a cell are at one point"))
                    .hint("positions are in bohr; two that differ by a vector of the cell are the same"));
            }
        }
        let a = *primitive.vectors();
        let cell = SimulationCell::new(std::array::from_fn(|i| a[i].map(|x| x * repeat[i] as f64)))?;
        let mut ions = Vec::with_capacity(cells * basis.len());
        for k in 0..cells {
            let at = [k / (repeat[1] * repeat[2]), k / repeat[2] % repeat[1], k % repeat[2]];
            let shift = primitive.cartesian(at.map(|x| x as f64));
            for ion in basis {
                let position = std::array::from_fn(|d| ion.position[d] + shift[d]);
                ions.push(Ion { position, ..ion.clone() });
            }
        }
        Ok(Crystal {
            name: name.into(),
            primitive,
            repeat,
            cell,
            ions: Arc::new(ions),
            electrons: electrons * cells,
            potential: Arc::new(potential),
        })
    }

    /// One of the fourteen semiconductors of diamond and zinc-blende structure whose form factors Cohen and
    /// Bergstresser fitted to optical spectra (Phys. Rev. 141, 789, 1966), with their lattice constants. The origin
    /// lies halfway between the two ions.
    ///
    /// # Errors
    /// A name that is not in their table.
    pub fn semiconductor(name: &str, repeat: [usize; 3]) -> Result<Crystal> {
        let Some(row) = FITTED.iter().find(|row| row.name == name) else {
            let names = || FITTED.iter().map(|row| row.name);
            let error = Error::input(format!("no form factors for `{name}`"));
            return Err(match nearest(name, names()) {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => error.hint(format!("there are {}", names().collect::<Vec<_>>().join(", "))),
            });
        };
        let a = row.constant * ANGSTROM;
        let half = a / 2.0;
        let primitive = SimulationCell::new([[0.0, half, half], [half, 0.0, half], [half, half, 0.0]])?;
        let tau = [a / 8.0; 3];
        let unit = 2.0 * std::f64::consts::PI / a;
        let [s3, s8, s11] = row.symmetric;
        let [a3, a4, a11] = row.antisymmetric;
        let potential = CrystalPotential::from_fourier(&primitive, 11.5 * unit * unit, |g| {
            let (s, t) = match (square(g) / (unit * unit)).round() as i64 {
                3 => (s3, a3),
                4 => (0.0, a4),
                8 => (s8, 0.0),
                11 => (s11, a11),
                _ => (0.0, 0.0),
            };
            let phase: f64 = (0..3).map(|d| g[d] * tau[d]).sum();
            Ok(C64::new(s * phase.cos(), -t * phase.sin()) * RYDBERG)
        })?;
        let ion = |k: usize| Ion {
            species: row.species[k].into(),
            charge: row.charges[k],
            position: tau.map(|x| if k == 0 { x } else { -x }),
        };
        Crystal::new(row.title, primitive, repeat, &[ion(0), ion(1)], 8, potential)
    }

    /// A cube of homogeneous electron gas: `electrons` of them at density parameter `rs`.
    ///
    /// # Errors
    /// No electrons, or a density parameter that is not positive.
    pub fn electron_gas(electrons: usize, rs: f64) -> Result<Crystal> {
        if electrons == 0 || !(rs > 0.0) || !rs.is_finite() {
            return Err(Error::input(format!("an electron gas of {electrons} electrons at r_s = {rs}"))
                .hint("both are positive"));
        }
        let edge = rs * (4.0 * std::f64::consts::PI * electrons as f64 / 3.0).cbrt();
        let cell = SimulationCell::cubic(edge)?;
        let none = CrystalPotential::zero(&cell);
        Crystal::new("electron gas", cell, [1; 3], &[], electrons, none)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The periodic cell of the crystal, with all ions.
    pub fn cell(&self) -> &SimulationCell {
        &self.cell
    }

    pub fn primitive(&self) -> &SimulationCell {
        &self.primitive
    }

    /// How many primitive cells it has along each vector.
    pub fn repeat(&self) -> [usize; 3] {
        self.repeat
    }

    pub fn ions(&self) -> &[Ion] {
        &self.ions
    }

    /// Valence electrons in the whole crystal.
    pub fn electrons(&self) -> usize {
        self.electrons
    }

    /// The potential on an electron, a Fourier sum over the primitive cell's reciprocal lattice.
    pub fn potential(&self) -> &CrystalPotential {
        &self.potential
    }

    /// The density parameter: the radius of the sphere that holds one electron, in bohr.
    pub fn rs(&self) -> f64 {
        (3.0 * self.cell.volume() / (4.0 * std::f64::consts::PI * self.electrons as f64)).cbrt()
    }
}

/// A row of Cohen's and Bergstresser's table: the lattice constant in angstrom, form factors in rydberg at |G|^2 = 3,
/// 8, 11 (symmetric) and 3, 4, 11 (antisymmetric) in units of (2 pi/a)^2.
struct Fitted {
    name: &'static str,
    title: &'static str,
    species: [&'static str; 2],
    charges: [f64; 2],
    constant: f64,
    symmetric: [f64; 3],
    antisymmetric: [f64; 3],
}

const fn fitted(
    name: &'static str,
    title: &'static str,
    species: [&'static str; 2],
    charges: [f64; 2],
    constant: f64,
    symmetric: [f64; 3],
    antisymmetric: [f64; 3],
) -> Fitted {
    Fitted { name, title, species, charges, constant, symmetric, antisymmetric }
}

#[rustfmt::skip]
const FITTED: [Fitted; 14] = [
    fitted("Si", "silicon", ["Si"; 2], [4.0; 2], 5.43, [-0.21, 0.04, 0.08], [0.0; 3]),
    fitted("Ge", "germanium", ["Ge"; 2], [4.0; 2], 5.66, [-0.23, 0.01, 0.06], [0.0; 3]),
    fitted("Sn", "tin", ["Sn"; 2], [4.0; 2], 6.49, [-0.20, 0.00, 0.04], [0.0; 3]),
    fitted("GaP", "gallium phosphide", ["Ga", "P"], [3.0, 5.0], 5.44, [-0.22, 0.03, 0.07], [0.12, 0.07, 0.02]),
    fitted("GaAs", "gallium arsenide", ["Ga", "As"], [3.0, 5.0], 5.64, [-0.23, 0.01, 0.06], [0.07, 0.05, 0.01]),
    fitted("AlSb", "aluminium antimonide", ["Al", "Sb"], [3.0, 5.0], 6.13, [-0.21, 0.02, 0.06], [0.06, 0.04, 0.02]),
    fitted("InP", "indium phosphide", ["In", "P"], [3.0, 5.0], 5.86, [-0.23, 0.01, 0.06], [0.07, 0.05, 0.01]),
    fitted("GaSb", "gallium antimonide", ["Ga", "Sb"], [3.0, 5.0], 6.12, [-0.22, 0.00, 0.05], [0.06, 0.05, 0.01]),
    fitted("InAs", "indium arsenide", ["In", "As"], [3.0, 5.0], 6.04, [-0.22, 0.00, 0.05], [0.08, 0.05, 0.03]),
    fitted("InSb", "indium antimonide", ["In", "Sb"], [3.0, 5.0], 6.48, [-0.20, 0.00, 0.04], [0.06, 0.05, 0.01]),
    fitted("ZnS", "zinc sulphide", ["Zn", "S"], [2.0, 6.0], 5.41, [-0.22, 0.03, 0.07], [0.24, 0.14, 0.04]),
    fitted("ZnSe", "zinc selenide", ["Zn", "Se"], [2.0, 6.0], 5.65, [-0.23, 0.01, 0.06], [0.18, 0.12, 0.03]),
    fitted("ZnTe", "zinc telluride", ["Zn", "Te"], [2.0, 6.0], 6.07, [-0.22, 0.00, 0.05], [0.13, 0.10, 0.01]),
    fitted("CdTe", "cadmium telluride", ["Cd", "Te"], [2.0, 6.0], 6.41, [-0.20, 0.00, 0.04], [0.15, 0.09, 0.04]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silicon_is_silicon() {
        let si = Crystal::semiconductor("Si", [2; 3]).unwrap();
        assert_eq!((si.ions().len(), si.electrons()), (16, 64));
        // Two ions in a quarter of a^3; bonds of a sqrt(3)/4.
        let a = 5.43 / BOHR;
        assert!((si.primitive().volume() - a * a * a / 4.0).abs() < 1e-9);
        let bond = si
            .cell()
            .minimum_image(std::array::from_fn(|d| si.ions()[0].position[d] - si.ions()[1].position[d]));
        assert!((square(bond).sqrt() - a * 3f64.sqrt() / 4.0).abs() < 1e-9);
        // The same at all ions, and by the sum over G at one point.
        let at: Vec<[f64; 3]> = si.ions().iter().map(|ion| ion.position).collect();
        let v = si.potential().values(&at);
        assert!(v.iter().all(|x| (x - v[0]).abs() < 1e-12));
        let unit = 2.0 * std::f64::consts::PI / a;
        let mut sum = 0.0;
        for n in within(si.primitive(), [0.0; 3], 11.5 * unit * unit) {
            let g = wave_vector(si.primitive(), n.map(f64::from));
            let phase: f64 = (0..3).map(|d| g[d] * at[0][d]).sum();
            sum += (si.potential().at(n) * C64::cis(phase)).re;
        }
        assert!((sum - v[0]).abs() < 1e-12);
    }

    #[test]
    fn names_are_looked_up() {
        let e = Crystal::semiconductor("GaAz", [1; 3]).unwrap_err();
        assert_eq!(e.hint_text(), Some("did you mean \"GaAs\"?"));
        assert!(Crystal::semiconductor("Si", [0, 1, 1]).is_err());
        assert!(Crystal::electron_gas(0, 1.0).is_err() && Crystal::electron_gas(2, f64::NAN).is_err());
        let gas = Crystal::electron_gas(54, 1.0).unwrap();
        assert!((gas.cell().vectors()[0][0] - 6.0929477854).abs() < 1e-9 && (gas.rs() - 1.0).abs() < 1e-12);
    }
}
