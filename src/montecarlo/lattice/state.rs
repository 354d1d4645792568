//! Wave functions of electrons on lattice sites: a determinant times a Gutzwiller factor and Jastrow factors of
//! densities and spins; and the electrons of one walker.

use crate::error::{Error, Result};
use crate::montecarlo::amplitude::Amplitude;
use crate::montecarlo::determinant::Determinant;

/// The antisymmetric part of a wave function.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference<S> {
    /// Orbitals filled by each spin: `sites x up` and `sites x down`, row-major.
    Sea {
        /// Orbitals of spin up.
        up: Vec<S>,
        /// Orbitals of spin down.
        down: Vec<S>,
    },
    /// Singlet pairs `sum_ij f(i, j) c^+_i,up c^+_j,down` (BCS, at a fixed number): `sites x sites`, row-major.
    Pairs {
        /// f(i, j).
        f: Vec<S>,
    },
}

/// A wave function on a lattice.
#[derive(Debug, Clone, PartialEq)]
pub struct LatticeState<S> {
    pub(super) sites: usize,
    pub(super) up: usize,
    pub(super) down: usize,
    pub(super) reference: Reference<S>,
    /// Factor for every doubly occupied site.
    pub(super) gutzwiller: f64,
    /// Whether that factor may be optimised.
    free: bool,
    /// `exp(sum_(i<j) v_ij n_i n_j)`, row-major; empty for none.
    pub(super) density: Vec<f64>,
    /// `exp(sum_(i<j) w_ij Sz_i Sz_j)`.
    pub(super) spin: Vec<f64>,
    /// Whether some pair amplitudes vanish: walkers then need moves of several electrons.
    pub(super) sparse: bool,
}

/// In place of the number of an electron, on a site that has none.
pub(super) const EMPTY: u32 = u32::MAX;

/// The electrons of one walker.
#[derive(Debug, Clone)]
pub struct OccupiedSites<S> {
    /// Site of every electron, by spin.
    pub places: [Vec<u32>; 2],
    /// Electron on every site, by spin.
    pub(super) holder: [Vec<u32>; 2],
    pub(super) determinants: Vec<Determinant<S>>,
}

/// A hop: spin (0 up, 1 down), the electron's number within the spin, the site it goes to.
pub type ElectronHop = (usize, usize, usize);

impl<S> OccupiedSites<S> {
    /// The electron of a spin on a site.
    pub fn at(&self, spin: usize, site: usize) -> Option<usize> {
        let holder = self.holder[spin][site];
        (holder != EMPTY).then_some(holder as usize)
    }

    fn density(&self, site: usize) -> f64 {
        f64::from(u8::from(self.holder[0][site] != EMPTY) + u8::from(self.holder[1][site] != EMPTY))
    }

    fn sz(&self, site: usize) -> f64 {
        0.5 * (f64::from(u8::from(self.holder[0][site] != EMPTY))
            - f64::from(u8::from(self.holder[1][site] != EMPTY)))
    }

    pub(super) fn relocate(&mut self, hops: &[ElectronHop]) {
        for &(spin, electron, _) in hops {
            let from = self.places[spin][electron] as usize;
            self.holder[spin][from] = EMPTY;
        }
        for &(spin, electron, to) in hops {
            self.holder[spin][to] = electron as u32;
            self.places[spin][electron] = to as u32;
        }
    }

    /// Number of doubly occupied sites.
    fn doubly_occupied(&self) -> usize {
        self.places[0].iter().filter(|&&site| self.holder[1][site as usize] != EMPTY).count()
    }
}

impl<S: Amplitude> LatticeState<S> {
    /// A state of `up` and `down` electrons on `sites` sites.
    ///
    /// # Errors
    /// When the electrons do not fit, numbers are not finite, or sizes do not agree.
    pub fn new(sites: usize, up: usize, down: usize, reference: Reference<S>) -> Result<LatticeState<S>> {
        if up + down == 0 {
            return Err(Error::input("a wave function without electrons").hint("give `up`, `down` or both"));
        }
        for (n, spin) in [(up, "up"), (down, "down")] {
            if n > sites {
                return Err(Error::input(format!("{n} electrons of spin {spin} on {sites} sites"))
                    .hint("a site holds one electron of each spin"));
            }
        }
        let data: Vec<&Vec<S>> = match &reference {
            Reference::Sea { up, down } => vec![up, down],
            Reference::Pairs { f } => vec![f],
        };
        let sizes = match &reference {
            Reference::Sea { .. } => vec![sites * up, sites * down],
            Reference::Pairs { .. } => vec![sites * sites],
        };
        if data.iter().zip(&sizes).any(|(x, n)| x.len() != *n) {
            return Err(Error::input("the orbitals of a lattice wave function do not fit its electrons")
                .hint("there is a column for each electron, with a row for each site"));
        }
        if matches!(reference, Reference::Pairs { .. }) && up != down {
            return Err(Error::input(format!("pairs of {up} electrons of spin up and {down} of spin down"))
                .hint("a pairing function takes as many of one as of the other"));
        }
        if data.iter().any(|x| x.iter().any(|z| !z.finite())) {
            return Err(Error::input("an orbital is not a finite number").hint("look for NaN in the vectors"));
        }
        let sparse = match &reference {
            Reference::Sea { .. } => false,
            Reference::Pairs { f } => {
                let largest = f.iter().map(|x| x.modulus()).fold(0.0, f64::max);
                f.iter().any(|x| x.modulus() <= 1e-12 * largest)
            }
        };
        Ok(LatticeState {
            sites,
            up,
            down,
            reference,
            sparse,
            gutzwiller: 1.0,
            free: false,
            density: Vec::new(),
            spin: Vec::new(),
        })
    }

    /// With a factor g for every doubly occupied site, which may be optimised; 0 forbids them.
    ///
    /// # Errors
    /// When g is negative or not finite, or the electrons do not fit without double occupation.
    pub fn with_gutzwiller(mut self, g: f64) -> Result<LatticeState<S>> {
        if !(g >= 0.0 && g.is_finite()) {
            return Err(Error::input(format!("a Gutzwiller factor of {g}"))
                .hint("it is 0 (no double occupation) or positive; 1 leaves the electrons as they are"));
        }
        if g == 0.0 && self.up + self.down > self.sites {
            return Err(Error::input(format!(
                "{} electrons on {} sites without double occupation",
                self.up + self.down,
                self.sites
            ))
            .hint("take fewer electrons, or a Gutzwiller factor above 0"));
        }
        (self.gutzwiller, self.free) = (g, g > 0.0);
        Ok(self)
    }

    /// With `exp(sum_(i<j) v_ij n_i n_j)` and `exp(sum_(i<j) w_ij Sz_i Sz_j)`; empty lists stand for none.
    ///
    /// # Errors
    /// When a matrix is not `sites x sites`, symmetric and finite.
    pub fn with_jastrow(mut self, density: Vec<f64>, spin: Vec<f64>) -> Result<LatticeState<S>> {
        let n = self.sites;
        for (matrix, name) in [(&density, "density"), (&spin, "spin")] {
            let fits = matrix.is_empty() || matrix.len() == n * n;
            if !fits || matrix.iter().any(|x| !x.is_finite()) {
                return Err(Error::input(format!("the {name} Jastrow factor is no finite {n} x {n} matrix"))
                    .hint("it has a row and a column for every site"));
            }
            let symmetric = matrix.is_empty()
                || (0..n * n).all(|k| (matrix[k] - matrix[k % n * n + k / n]).abs() <= 1e-12);
            if !symmetric {
                return Err(Error::input(format!("the {name} Jastrow factor is not symmetric"))
                    .hint("its numbers for sites (i, j) and (j, i) are the same"));
            }
        }
        (self.density, self.spin) = (density, spin);
        Ok(self)
    }

    /// The parameters that may be optimised, by name: a Gutzwiller factor that was given, unless it is 0.
    pub fn parameters(&self) -> Vec<(String, f64)> {
        if self.free { vec![("gutzwiller".into(), self.gutzwiller)] } else { Vec::new() }
    }

    /// With other parameters, in the order of [`LatticeState::parameters`].
    ///
    /// # Errors
    /// When there are not as many, or one is out of range.
    pub fn with_parameters(&self, values: &[f64]) -> Result<LatticeState<S>> {
        match (values, self.parameters().len()) {
            (&[g], 1) => self.clone().with_gutzwiller(g),
            ([], 0) => Ok(self.clone()),
            (_, n) => Err(Error::input(format!("{} parameters for a wave function of {n}", values.len()))
                .hint("give one value for each")),
        }
    }

    pub fn sites(&self) -> usize {
        self.sites
    }

    /// Electrons of spin up and of spin down.
    pub fn electrons(&self) -> (usize, usize) {
        (self.up, self.down)
    }

    pub fn gutzwiller(&self) -> f64 {
        self.gutzwiller
    }

    /// Whether the electrons fill the lattice, so that there is one configuration only.
    pub fn full(&self) -> bool {
        let alone = |n: usize, room: usize| n == 0 || n == room;
        let room = if self.gutzwiller == 0.0 { self.sites - self.up } else { self.sites };
        alone(self.up, self.sites) && alone(self.down, room)
    }

    /// A label for results and files.
    pub fn describe(&self) -> String {
        let what = match self.reference {
            Reference::Sea { .. } => "Fermi sea",
            Reference::Pairs { .. } => "pairs",
        };
        let gutzwiller =
            if self.gutzwiller == 1.0 { String::new() } else { format!(", Gutzwiller {}", self.gutzwiller) };
        let jastrow = match (self.density.is_empty(), self.spin.is_empty()) {
            (true, true) => "",
            (false, true) => ", density Jastrow",
            (true, false) => ", spin Jastrow",
            (false, false) => ", density and spin Jastrow",
        };
        format!(
            "{what} of {} + {} electrons on {} sites{gutzwiller}{jastrow}",
            self.up, self.down, self.sites
        )
    }

    pub(super) fn row(&self, spin: usize, site: usize, occupied: &OccupiedSites<S>) -> Vec<S> {
        match &self.reference {
            Reference::Sea { up, down } => {
                let (data, n) = if spin == 0 { (up, self.up) } else { (down, self.down) };
                data[site * n..(site + 1) * n].to_vec()
            }
            // A row belongs to an electron of spin up, a column to one of spin down.
            Reference::Pairs { f } => {
                let pair = |other: &u32| match spin {
                    0 => f[site * self.sites + *other as usize],
                    _ => f[*other as usize * self.sites + site],
                };
                occupied.places[1 - spin].iter().map(pair).collect()
            }
        }
    }

    /// A walker with its electrons on these sites.
    ///
    /// # Errors
    /// When the wave function vanishes there, to working precision.
    pub fn occupied(&self, up: &[usize], down: &[usize]) -> Result<OccupiedSites<S>> {
        let list = |sites: &[usize]| sites.iter().map(|s| *s as u32).collect::<Vec<u32>>();
        let mut occupied = OccupiedSites {
            places: [list(up), list(down)],
            holder: [vec![EMPTY; self.sites], vec![EMPTY; self.sites]],
            determinants: Vec::new(),
        };
        for (spin, sites) in [up, down].into_iter().enumerate() {
            for (electron, &site) in sites.iter().enumerate() {
                let holder = occupied.holder[spin].get_mut(site).ok_or_else(|| {
                    Error::input(format!("an electron on site {site} of {}", self.sites))
                        .hint("sites are numbered from 0")
                })?;
                if *holder != EMPTY {
                    return Err(Error::input(format!("two electrons of one spin on site {site}"))
                        .hint("electrons of one spin stand on different sites"));
                }
                *holder = electron as u32;
            }
        }
        if up.len() != self.up || down.len() != self.down {
            return Err(Error::input(format!(
                "{} + {} places for {} + {} electrons",
                up.len(),
                down.len(),
                self.up,
                self.down
            ))
            .hint("give a site for each electron, those of spin up first"));
        }
        if self.gutzwiller == 0.0 && occupied.doubly_occupied() > 0 {
            return Err(Error::numeric("the Gutzwiller projector vanishes on a doubly occupied site")
                .hint("choose sites with one electron at most"));
        }
        let spins: &[usize] = if matches!(self.reference, Reference::Sea { .. }) { &[0, 1] } else { &[0] };
        for &spin in spins {
            let n = occupied.places[spin].len();
            let rows: Vec<S> =
                (0..n).flat_map(|e| self.row(spin, occupied.places[spin][e] as usize, &occupied)).collect();
            let determinant = Determinant::new(rows, n, 1)?;
            determinant.regular()?;
            occupied.determinants.push(determinant);
        }
        Ok(occupied)
    }

    /// `ln |Psi|` and the phase of Psi.
    pub fn log(&self, occupied: &OccupiedSites<S>) -> (f64, S) {
        let mut log = 0.0;
        let doubly = occupied.doubly_occupied();
        if doubly > 0 {
            log += doubly as f64 * self.gutzwiller.ln();
        }
        for i in 0..self.sites {
            for j in 0..i {
                if !self.density.is_empty() {
                    log += self.density[i * self.sites + j] * occupied.density(i) * occupied.density(j);
                }
                if !self.spin.is_empty() {
                    log += self.spin[i * self.sites + j] * occupied.sz(i) * occupied.sz(j);
                }
            }
        }
        let phase = occupied.determinants.iter().fold(S::real(1.0), |z, d| z * d.phase);
        (log + occupied.determinants.iter().map(|d| d.log).sum::<f64>(), phase)
    }

    /// Computes determinants and inverses anew.
    ///
    /// # Errors
    /// When the walker sits where the wave function vanishes.
    pub fn refresh(&self, occupied: &mut OccupiedSites<S>) -> Result<f64> {
        let mut off = 0.0;
        for determinant in &mut occupied.determinants {
            off = f64::max(off, determinant.refresh()?);
        }
        Ok(off)
    }
}
