//! Local energies of walkers on the GPU.

use super::derived::Derived;
use super::expanded::Expanded;
use super::layout::WaveMatrixArgument;
use super::{CudaWalkers, THREADS, WARPS, arguments};
use crate::backend::cuda::card::CardBuffer;
use crate::backend::walkers::{EnergySpec, PairEnergy, WalkerEnergies};
use crate::error::Result;

/// Threads that take a wave each.
const WAVES: u32 = 128;

/// Sums a walker: kinetic, external, pairs, waves.
const PARTS: usize = 4;

/// Numbers of waves, coefficients of each, and a matrix of the cell.
struct WaveSums {
    numbers: CardBuffer,
    weights: CardBuffer,
    count: u32,
    reach: u32,
    inverse: WaveMatrixArgument,
}

/// What energies of one kind need on the GPU.
pub(super) struct EnergyRoom {
    spec: EnergySpec,
    external: Option<WaveSums>,
    images: Option<CardBuffer>,
    waves: Option<WaveSums>,
    /// Inverse matrices of both spins in a pass of walkers and the sum of determinants,
    /// where energies have a table of their own.
    exact: Option<(Expanded, [CardBuffer; 2])>,
    terms: CardBuffer,
    partial: CardBuffer,
    out: CardBuffer,
}

impl CudaWalkers {
    fn sums(&self, numbers: &[[i32; 3]], weights: &[f64], inverse: WaveMatrixArgument) -> Result<WaveSums> {
        let reach = numbers.iter().flatten().map(|n| n.unsigned_abs()).max().unwrap_or(0);
        let count = numbers.len() as u32;
        let (numbers, weights) = (self.card.upload(numbers)?, self.card.upload(weights)?);
        Ok(WaveSums { numbers, weights, count, reach, inverse })
    }

    fn prepare(&self, spec: &EnergySpec) -> Result<EnergyRoom> {
        let (walkers, electrons) = (self.walk.walkers as usize, self.walk.electrons as usize);
        let external = match &spec.external {
            None => None,
            Some(v) => {
                let numbers: Vec<[i32; 3]> = v.terms.iter().map(|t| t.0).collect();
                let terms: Vec<f64> = v.terms.iter().flat_map(|t| t.1).collect();
                Some(self.sums(&numbers, &terms, WaveMatrixArgument(v.inverse))?)
            }
        };
        let (images, waves) = match &spec.pairs {
            Some(PairEnergy::Ewald(sums)) => {
                let numbers: Vec<[i32; 3]> = sums.waves.iter().map(|w| w.0).collect();
                let weights: Vec<f64> = sums.waves.iter().map(|w| w.1).collect();
                (Some(self.card.upload(&sums.images)?), Some(self.sums(&numbers, &weights, self.cell)?))
            }
            _ => (None, None),
        };
        let pass = self.derived.as_ref().map_or(0, |derived| derived.pass as usize);
        let exact = |s: usize| self.card.allocate(self.spins[s].inverse.bytes / walkers * pass);
        let exact = match self.shared {
            true => None,
            false => Some((self.sum.another(&self.card, pass)?, [exact(0)?, exact(1)?])),
        };
        let blocks = waves.as_ref().map_or(0, |w| w.count.div_ceil(WAVES)) as usize;
        Ok(EnergyRoom {
            spec: spec.clone(),
            external,
            images,
            waves,
            exact,
            terms: self.card.allocate(walkers * electrons * 8)?,
            partial: self.card.allocate(walkers * blocks * 8)?,
            out: self.card.allocate(PARTS * walkers * 8)?,
        })
    }

    /// Adds up the numbers of every walker, `length` of them.
    fn add_up(&self, rows: &CardBuffer, length: u32, prepared: &EnergyRoom, part: usize) -> Result<()> {
        let (rows, walkers) = (rows.address, self.walk.walkers);
        let out = prepared.out.address + (part * walkers as usize * 8) as u64;
        // SAFETY: the kernel's arguments; there is a sum for every walker and part.
        unsafe { self.card.launch("energy_sum", (walkers, 1), THREADS, &arguments![rows, length, out]) }
    }

    fn kinetic(&self, p: &EnergyRoom, derived: &Derived) -> Result<()> {
        let planes = &*derived.planes;
        let name = format!("energy_kinetic_{}", planes.name());
        self.weigh(&self.sum, self.walk.walkers)?;
        for (from, walk) in self.passes(derived) {
            self.places(walk, false)?;
            planes.derivatives()?;
            if let Some((sum, inverse)) = &p.exact {
                for (s, spin) in self.filled() {
                    let s = s as usize;
                    let to = (&inverse[s], sum.own.logs[s], sum.own.phases[s]);
                    self.invert(planes, walk, spin, to, &self.control)?;
                }
                if sum.own.products > 1 {
                    self.shares(sum, walk.walkers, &self.control)?;
                    self.weigh(sum, walk.walkers)?;
                }
            }
            for (s, spin) in self.filled() {
                let (lanes, first, n) = (planes.lanes(), spin.first, spin.n);
                // Matrices and weights of this pass, and how many walkers there are of either.
                let (inverse, weights, stride) = match &p.exact {
                    Some((sum, inverse)) => {
                        (inverse[s as usize].address, sum.own.weights[s as usize], walk.walkers)
                    }
                    None => {
                        let square = u64::from(n) * u64::from(n) * self.number() as u64;
                        let skipped = u64::from(from);
                        let weights = self.sum.own.weights[s as usize] + 16 * skipped;
                        (spin.inverse.address + skipped * square, weights, self.walk.walkers)
                    }
                };
                let (out, filling, fillings) = (planes.out(), spin.filling.address, spin.fillings);
                let k = self.k;
                let terms = p.terms.address + u64::from(from) * u64::from(walk.electrons) * 8;
                let grid = (n.div_ceil(WARPS), walk.walkers);
                let arguments = arguments![
                    out, lanes, walk, inverse, weights, stride, first, n, filling, fillings, k, terms
                ];
                // SAFETY: the kernel's arguments; five planes of the pass's electrons, a number for each of them.
                unsafe { self.launch(&name, grid, THREADS, &arguments)? };
            }
        }
        self.add_up(&p.terms, self.walk.electrons, p, 0)
    }

    fn potentials(&self, p: &EnergyRoom) -> Result<()> {
        let (walk, terms) = (self.walk, p.terms.address);
        let grid = ((walk.walkers * walk.electrons).div_ceil(WARPS), 1);
        if let Some(v) = &p.external {
            let (inverse, numbers, weights, count) =
                (v.inverse, v.numbers.address, v.weights.address, v.count);
            let arguments = arguments![walk, inverse, numbers, weights, count, terms];
            // SAFETY: the kernel's arguments; a number for every electron.
            unsafe { self.card.launch("energy_external", grid, THREADS, &arguments)? };
            self.add_up(&p.terms, walk.electrons, p, 1)?;
        }
        if let Some(pairs) = &p.spec.pairs {
            let (count, alpha, cut) = match pairs {
                PairEnergy::Ewald(sums) => (sums.images.len() as u32, sums.alpha, sums.cut),
                PairEnergy::Truncated => (0, 1.0, 0.0),
            };
            let images = p.images.as_ref().map_or(0, |b| b.address);
            let arguments = arguments![walk, images, count, alpha, cut, terms];
            // SAFETY: as above; images are read if there are any.
            unsafe { self.card.launch("energy_pairs", grid, THREADS, &arguments)? };
            self.add_up(&p.terms, walk.electrons, p, 2)?;
        }
        if let Some(w) = &p.waves {
            let (inverse, numbers, weights, count) =
                (w.inverse, w.numbers.address, w.weights.address, w.count);
            let (reach, partial) = (w.reach, p.partial.address);
            let blocks = count.div_ceil(WAVES);
            let arguments = arguments![walk, inverse, numbers, weights, count, reach, partial];
            // SAFETY: as above; a number for every walker and block.
            unsafe { self.card.launch("energy_waves", (blocks, walk.walkers), WAVES, &arguments)? };
            self.add_up(&p.partial, blocks, p, 3)?;
        }
        Ok(())
    }

    pub(super) fn local_energies(&mut self, spec: &EnergySpec) -> Result<Vec<WalkerEnergies>> {
        self.derive()?;
        let prepared = match self.energy_room.take().filter(|p| p.spec == *spec) {
            Some(prepared) => prepared,
            None => self.prepare(spec)?,
        };
        self.set(Default::default())?;
        self.card.clear(&prepared.out)?;
        if let Some(derived) = &self.derived {
            self.kinetic(&prepared, derived)?;
        }
        self.potentials(&prepared)?;
        let walkers = self.walk.walkers as usize;
        let sums: Vec<f64> = self.card.download(&prepared.out, PARTS * walkers)?;
        self.told("the last moves")?;
        let n = f64::from(self.walk.electrons);
        let constant = match &spec.pairs {
            Some(PairEnergy::Ewald(sums)) => n * sums.own + n * n * sums.background,
            _ => 0.0,
        };
        let one = |w: usize| WalkerEnergies {
            kinetic: sums[w],
            external: sums[walkers + w],
            interaction: sums[2 * walkers + w] + sums[3 * walkers + w] + constant,
        };
        let energies = (0..walkers).map(one).collect();
        self.energy_room = Some(prepared);
        Ok(energies)
    }
}
