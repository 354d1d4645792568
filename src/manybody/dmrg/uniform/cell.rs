//! The cell that an infinite chain repeats: its sites, and the conserved numbers that each copy of it holds.

use std::sync::Arc;

use super::super::conserved::conserved;
use super::super::space::{ChargeLabel, ConservedNumbers};
use crate::error::{Error, Result};
use crate::manybody::{Sector, Sites};

/// The most sites of a cell, and of a chain that copies of it are laid out to.
const LONGEST: usize = 4096;
/// Conserved numbers of which it is tried which ones together tell the parity of fermions.
const MOST_NUMBERS: usize = 12;

/// A cell of an infinite chain.
#[derive(Debug, Clone)]
pub struct UnitCell {
    pub sites: Sites,
    pub symmetry: ConservedNumbers,
    /// Twice the numbers of one cell.
    pub target: ChargeLabel,
    /// The labels of each site's states. Those of the last site are less the cell's numbers, so that a cell adds
    /// nothing to the labels and every bond has the same ones in all cells.
    pub states: Vec<Vec<ChargeLabel>>,
}

impl UnitCell {
    /// From sites and the conserved numbers of one cell.
    ///
    /// # Errors
    /// For numbers that the sites do not have, or that one cell cannot hold; for more than 4096 sites.
    pub fn new(sites: &Sites, sector: &Sector) -> Result<Arc<UnitCell>> {
        if sites.count() > LONGEST {
            return Err(Error::input(format!("a cell of {} sites", sites.count()))
                .hint(format!("a cell that an infinite chain repeats has {LONGEST} sites at most")));
        }
        let (symmetry, target) = match conserved(sites, sector) {
            Ok(found) => found,
            Err(e) => return Err(too_short(sites, sector).unwrap_or(e)),
        };
        if symmetry.spin().is_some() {
            return Err(Error::input("a cell of an infinite chain with a total spin")
                .hint("S is for finite chains; name Sz here"));
        }
        Ok(UnitCell::of(sites, symmetry, target))
    }

    /// From numbers that the cell is known to hold.
    pub(super) fn of(sites: &Sites, symmetry: ConservedNumbers, target: ChargeLabel) -> Arc<UnitCell> {
        let mut states: Vec<Vec<ChargeLabel>> =
            (0..sites.count()).map(|i| symmetry.states(sites, i)).collect();
        if let Some(last) = states.last_mut() {
            last.iter_mut().for_each(|q| *q = symmetry.subtract(q, &target));
        }
        Arc::new(UnitCell { sites: sites.clone(), symmetry, target, states })
    }

    pub fn count(&self) -> usize {
        self.states.len()
    }

    /// The conserved numbers of a cell, by name.
    pub fn sector(&self) -> Sector {
        let half = |(name, q): (&String, &i32)| (name.clone(), f64::from(*q) / 2.0);
        self.symmetry.names().iter().zip(&self.target).map(half).collect()
    }

    /// Whether operators that change the numbers by `charge` change the parity of fermions. It is false where no
    /// conserved number tells the parity.
    pub fn is_odd(&self, charge: &ChargeLabel) -> bool {
        self.parity_of().is_some_and(|named| is_odd_in(&named, charge))
    }

    /// The conserved numbers whose quanta together are even or odd as the number of fermions is, each with its quantum.
    fn parity_of(&self) -> Option<Vec<(usize, i32)>> {
        // What each state of a site has more than the site's first one.
        let mut steps: Vec<(ChargeLabel, bool)> = Vec::new();
        for (site, labels) in self.sites.iter().zip(&self.states) {
            let step = |(s, label): (usize, &ChargeLabel)| {
                (self.symmetry.subtract(label, &labels[0]), site.is_odd(s) != site.is_odd(0))
            };
            steps.extend(labels.iter().enumerate().map(step));
        }
        let of_name = |name: usize| {
            let all = self.symmetry.moduli()[name];
            let quantum = steps.iter().fold(all, |g, (q, _)| gcd(g, q[name]));
            // Quanta that are counted modulo an odd number are neither even nor odd.
            (quantum > 0 && all / quantum % 2 == 0).then_some((name, quantum))
        };
        let names: Vec<(usize, i32)> = (0..self.symmetry.names().len()).filter_map(of_name).collect();
        let chosen = |set: usize| -> Vec<(usize, i32)> {
            names.iter().enumerate().filter(|(k, _)| set >> k & 1 == 1).map(|(_, own)| *own).collect()
        };
        let tells = |of: &Vec<(usize, i32)>| steps.iter().all(|(q, odd)| is_odd_in(of, q) == *odd);
        (0..1usize << names.len().min(MOST_NUMBERS)).map(chosen).find(tells)
    }

    /// Several cells as a finite chain.
    ///
    /// # Errors
    /// When they are too many.
    pub fn chain(&self, cells: usize) -> Result<Sites> {
        copies(&self.sites, cells)
    }

    /// Refuses a state's cell that is not the one of the Hamiltonian.
    ///
    /// # Errors
    /// Other sites or numbers.
    pub fn check(&self, state: &UnitCell) -> Result<()> {
        if self.same(state) {
            return Ok(());
        }
        Err(Error::input("the state belongs to other sites or numbers than the Hamiltonian's cell")
            .hint("both need the same cell, with the same conserved numbers"))
    }

    /// Whether another cell has the same sites and numbers.
    pub fn same(&self, other: &UnitCell) -> bool {
        self.count() == other.count()
            && self.sites.iter().zip(other.sites.iter()).all(|(a, b)| a == b)
            && self.symmetry == other.symmetry
            && self.target == other.target
    }
}

/// The error for a state of which no numbers go across a bond.
pub fn nothing_left() -> Error {
    Error::numeric("nothing of the state is left on a bond")
        .hint("the ground state may not fit the cell: try twice as many sites")
}

/// Copies of some sites in a row.
fn copies(sites: &Sites, times: usize) -> Result<Sites> {
    if times.saturating_mul(sites.count()) > LONGEST {
        return Err(Error::input(format!("terms that reach over more than {LONGEST} sites")).hint(
            "terms of an infinite chain reach over a few cells; couplings that decay have their own form",
        ));
    }
    sites.repeated(times)
}

/// The error for numbers that fit some longer cell.
fn too_short(sites: &Sites, sector: &Sector) -> Option<Error> {
    sites.target(sector).ok()?;
    let times = (2..=8).find(|&k| {
        let more: Sector = sector.iter().map(|(name, q)| (name.clone(), q * k as f64)).collect();
        copies(sites, k).is_ok_and(|chain| conserved(&chain, &more).is_ok())
    })?;
    let text: Vec<String> = sector.iter().map(|(name, q)| format!("{name} = {q}")).collect();
    let more: Vec<String> = sector.iter().map(|(name, q)| format!("{name} = {}", q * times as f64)).collect();
    Some(Error::input(format!("a cell of {sites} cannot hold {}", text.join(", "))).hint(format!(
        "a cell of {} sites can hold {}: the numbers are those of a whole cell",
        times * sites.count(),
        more.join(", ")
    )))
}

/// Whether some numbers of a label hold an odd number of quanta together.
fn is_odd_in(named: &[(usize, i32)], label: &ChargeLabel) -> bool {
    named.iter().filter(|(name, quantum)| label[*name] / quantum % 2 != 0).count() % 2 == 1
}

fn gcd(a: i32, b: i32) -> i32 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}
