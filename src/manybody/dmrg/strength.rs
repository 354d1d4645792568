//! The strength of the terms of a Hamiltonian: the energy scale of a change of the state.

use super::strings::Strings;

/// What terms that change states count for at least, in units of all terms: rounding is of the order of these.
const LEAST: f64 = 1e-4;

/// Sizes of the terms of a Hamiltonian, as energies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Strength {
    /// The largest sum, over the sites, of the sizes of the terms that act there:
    /// a bound on the energy of a change at one site.
    pub all: f64,
    /// The same of terms that change products of the sites' states, but 1e-4 of `all` at least; `all` where there are
    /// none. The energies of low states are of this size where a repulsion, however large, only forbids states.
    pub off_diagonal: f64,
}

impl Strength {
    pub(super) fn of(strings: &Strings, sites: usize) -> Strength {
        Sizes::of(strings, sites).strength()
    }
}

/// The sums at each site.
pub(super) struct Sizes(Vec<Strength>);

impl Sizes {
    /// Strings act at their sites modulo `sites`.
    pub(super) fn of(strings: &Strings, sites: usize) -> Sizes {
        let mut sizes = Sizes(vec![Strength::default(); sites]);
        for (word, z) in &strings.words {
            let size: f64 = word.iter().map(|w| strings.alphabet.size(w.1)).product::<f64>() * z.norm();
            let diagonal = word.iter().all(|w| strings.alphabet.is_diagonal(w.1));
            word.iter().for_each(|w| sizes.add(w.0 % sites, size, diagonal));
        }
        sizes
    }

    pub(super) fn add(&mut self, site: usize, size: f64, diagonal: bool) {
        self.0[site].all += size;
        self.0[site].off_diagonal += if diagonal { 0.0 } else { size };
    }

    pub(super) fn strength(self) -> Strength {
        let largest = |of: fn(&Strength) -> f64| self.0.iter().map(of).fold(0.0, f64::max);
        let (all, moves) = (largest(|s| s.all), largest(|s| s.off_diagonal));
        Strength { all, off_diagonal: if moves > 0.0 { moves.max(LEAST * all) } else { all } }
    }
}
