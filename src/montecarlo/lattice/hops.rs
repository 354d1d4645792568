//! The effect of hops of any number of electrons on a wave function: determinants of the size of the number of hops. So
//! zeros of the wave function between two configurations do not matter.

use super::state::{EMPTY, ElectronHop, LatticeState, OccupiedSites, Reference};
use crate::montecarlo::amplitude::Amplitude;
use crate::montecarlo::determinant::RowColumnChange;

impl<S: Amplitude> LatticeState<S> {
    /// `Psi(after the hops) / Psi`. An electron hops at most once.
    pub fn ratio(&self, occupied: &OccupiedSites<S>, hops: &[ElectronHop]) -> S {
        let factor = self.factor(occupied, hops);
        if factor == 0.0 {
            return S::default();
        }
        let determinants = match &self.reference {
            Reference::Sea { up, down } => {
                [up, down].into_iter().enumerate().fold(S::real(1.0), |z, (spin, data)| {
                    let mut own = hops.iter().filter(|h| h.0 == spin);
                    match (own.next(), own.next()) {
                        (None, _) => z,
                        (Some(&(_, electron, to)), None) => {
                            let n = if spin == 0 { self.up } else { self.down };
                            z * occupied.determinants[spin].ratio(electron, &data[to * n..(to + 1) * n])
                        }
                        _ => z * occupied.determinants[spin].change_ratio(&self.rows(spin, data, hops)),
                    }
                })
            }
            Reference::Pairs { f } => match hops {
                &[(0, electron, to)] => occupied.determinants[0].ratio(electron, &self.row(0, to, occupied)),
                _ => occupied.determinants[0].change_ratio(&self.rows_and_columns(f, occupied, hops)),
            },
        };
        determinants * S::real(factor)
    }

    /// The rows of a spin's determinant after its hops.
    fn rows(&self, spin: usize, data: &[S], hops: &[ElectronHop]) -> RowColumnChange<S> {
        let n = if spin == 0 { self.up } else { self.down };
        let mut change = RowColumnChange::default();
        for &(_, electron, to) in hops.iter().filter(|h| h.0 == spin) {
            change.rows.push(electron);
            change.in_rows.extend_from_slice(&data[to * n..(to + 1) * n]);
        }
        change
    }

    /// The rows and columns of the pairs' determinant after the hops.
    fn rows_and_columns(
        &self,
        f: &[S],
        occupied: &OccupiedSites<S>,
        hops: &[ElectronHop],
    ) -> RowColumnChange<S> {
        let mut change = RowColumnChange::default();
        for &(spin, electron, to) in hops {
            let (which, values) = match spin {
                0 => (&mut change.rows, &mut change.in_rows),
                _ => (&mut change.columns, &mut change.in_columns),
            };
            which.push(electron);
            values.extend(self.row(spin, to, occupied));
        }
        let of = |spin: usize| hops.iter().filter(move |h| h.0 == spin).map(|h| h.2);
        change.corner = of(0).flat_map(|i| of(1).map(move |j| f[i * self.sites + j])).collect();
        change
    }

    /// Makes the hops; false, with nothing changed, where the wave function vanishes after them.
    pub fn accept(&self, occupied: &mut OccupiedSites<S>, hops: &[ElectronHop]) -> bool {
        let taken = match &self.reference {
            Reference::Pairs { f } => {
                let change = self.rows_and_columns(f, occupied, hops);
                occupied.determinants[0].apply(&change).is_ok()
            }
            Reference::Sea { up, down } => {
                let data = [up, down];
                let take = |occupied: &mut OccupiedSites<S>, spin: usize, hops: &[ElectronHop]| {
                    let mut own = hops.iter().filter(|h| h.0 == spin);
                    match (own.next(), own.next()) {
                        (None, _) => true,
                        (Some(&(_, electron, to)), None) => {
                            let n = if spin == 0 { self.up } else { self.down };
                            let row = &data[spin][to * n..(to + 1) * n];
                            occupied.determinants[spin].take(electron, row).is_ok()
                        }
                        _ => occupied.determinants[spin].apply(&self.rows(spin, data[spin], hops)).is_ok(),
                    }
                };
                let first = take(occupied, 0, hops);
                let both = first && take(occupied, 1, hops);
                if first && !both {
                    // The wave function does not vanish at the way back: the walker was there.
                    let back = |&(spin, electron, _): &ElectronHop| {
                        (spin, electron, occupied.places[spin][electron] as usize)
                    };
                    let back: Vec<ElectronHop> = hops.iter().map(back).collect();
                    take(occupied, 0, &back);
                }
                both
            }
        };
        if taken {
            occupied.relocate(hops);
        }
        taken
    }

    /// The factor by which projector and Jastrow factors change.
    fn factor(&self, occupied: &OccupiedSites<S>, hops: &[ElectronHop]) -> f64 {
        // The occupation of each touched site after the hops, by spin.
        let mut touched: Vec<(usize, [bool; 2])> = Vec::with_capacity(2 * hops.len());
        let hold = |site: usize| [0, 1].map(|spin| occupied.holder[spin][site] != EMPTY);
        let set = |touched: &mut Vec<(usize, [bool; 2])>, site: usize, spin: usize, value: bool| {
            let at = touched.iter().position(|t| t.0 == site).unwrap_or_else(|| {
                touched.push((site, hold(site)));
                touched.len() - 1
            });
            touched[at].1[spin] = value;
        };
        for &(spin, electron, _) in hops {
            set(&mut touched, occupied.places[spin][electron] as usize, spin, false);
        }
        for &(spin, _, to) in hops {
            set(&mut touched, to, spin, true);
        }
        let doubly = |x: [bool; 2]| i32::from(x[0] && x[1]);
        let change: i32 = touched.iter().map(|(site, after)| doubly(*after) - doubly(hold(*site))).sum();
        let mut factor = if change == 0 { 1.0 } else { self.gutzwiller.powi(change) };
        let count = |x: [bool; 2]| f64::from(u8::from(x[0]) + u8::from(x[1]));
        let sz = |x: [bool; 2]| 0.5 * (f64::from(u8::from(x[0])) - f64::from(u8::from(x[1])));
        for (matrix, value) in [(&self.density, &count as &dyn Fn([bool; 2]) -> f64), (&self.spin, &sz)] {
            if matrix.is_empty() {
                continue;
            }
            // sum_(i<j) v_ij (q'_i q'_j - q_i q_j): sites change one after the other, each in the field of the others
            // as they then are.
            let (mut log, mut done): (f64, Vec<(usize, f64)>) = (0.0, Vec::new());
            for (site, after) in &touched {
                let delta = value(*after) - value(hold(*site));
                let now = |j: usize| done.iter().find(|d| d.0 == j).map_or_else(|| value(hold(j)), |d| d.1);
                let field: f64 = (0..self.sites)
                    .filter(|j| j != site)
                    .map(|j| matrix[site * self.sites + j] * now(j))
                    .sum();
                log += delta * field;
                done.push((*site, value(*after)));
            }
            factor *= log.exp();
        }
        factor
    }

    /// Places at which the reference probably does not vanish. Electrons are placed one after the other by the
    /// weights of the orbitals, or of the pairs, that they fill. None where no allowed site is left.
    pub(super) fn likely(&self, number: &mut dyn FnMut(usize) -> f64) -> Option<[Vec<u32>; 2]> {
        let mut places = [Vec::new(), Vec::new()];
        let open = |places: &[Vec<u32>; 2], spin: usize, site: usize| {
            let has = |spin: usize| places[spin].contains(&(site as u32));
            !(has(spin) || self.gutzwiller == 0.0 && has(1 - spin))
        };
        match &self.reference {
            Reference::Sea { up, down } => {
                for (spin, (data, n)) in [(up, self.up), (down, self.down)].into_iter().enumerate() {
                    for l in 0..n {
                        let weight = |site: usize| {
                            if open(&places, spin, site) { data[site * n + l].square() } else { 0.0 }
                        };
                        let weights: Vec<f64> = (0..self.sites).map(weight).collect();
                        let site = drawn(&weights, number(spin * self.up + l))?;
                        places[spin].push(site as u32);
                    }
                }
            }
            Reference::Pairs { f } => {
                for pair in 0..self.up {
                    let weight = |k: usize| {
                        let (i, j) = (k / self.sites, k % self.sites);
                        let both = i != j || self.gutzwiller > 0.0;
                        if both && open(&places, 0, i) && open(&places, 1, j) { f[k].square() } else { 0.0 }
                    };
                    let weights: Vec<f64> = (0..f.len()).map(weight).collect();
                    let k = drawn(&weights, number(pair))?;
                    places[0].push((k / self.sites) as u32);
                    places[1].push((k % self.sites) as u32);
                }
            }
        }
        Some(places)
    }
}

/// An index drawn with the probability of its weight, by a number in (0, 1); none if all weights are zero.
fn drawn(weights: &[f64], number: f64) -> Option<usize> {
    let mut left = number * weights.iter().sum::<f64>();
    let mut last = None;
    for (k, weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        last = Some(k);
        left -= weight;
        if left < 0.0 {
            break;
        }
    }
    last
}
