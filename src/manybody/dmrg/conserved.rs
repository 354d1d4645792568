//! The conserved numbers that a sector names, and whether any state has them.

use std::collections::BTreeSet;

use super::space::{ChargeLabel, ConservedNumbers, TOTAL_SPIN};
use crate::error::{Error, Result};
use crate::manybody::site::twice;
use crate::manybody::{Sector, SectorBasis, Sites};

/// Twice the total spin that a sector names, and the other numbers. Where sites have a charge of that name of their
/// own, it is one of the other numbers.
///
/// # Errors
/// When the sites have no spin, or the sector names numbers that differ between the states of a multiplet.
pub fn total_spin(sites: &Sites, sector: &Sector) -> Result<(Option<i32>, Sector)> {
    let named = |s: &(String, f64)| s.0 == TOTAL_SPIN;
    let spinning = sites.iter().any(|site| site.operator("S+").is_ok());
    let Some(spin) = sector.iter().find(|s| named(s)).filter(|_| spinning) else {
        return Ok((None, sector.clone()));
    };
    if sites.charges().iter().any(|name| name == TOTAL_SPIN) {
        return Ok((None, sector.clone()));
    }
    let rest: Sector = sector.iter().filter(|s| !named(s)).cloned().collect();
    for (i, site) in sites.iter().enumerate() {
        let own = site.multiplets()?;
        for (name, _) in &rest {
            let values = sites.twice(i, name);
            let differs = |s: usize| (0..s).any(|t| own.of[s] == own.of[t] && values[s] != values[t]);
            if (0..site.dim()).any(differs) {
                return Err(Error::input(format!("a sector of S and of {name}, which differs within a multiplet"))
                    .hint("a multiplet of S has one state for each Sz: leave one of the two out; for electrons name N \
                         and S"));
            }
        }
    }
    let twice = twice(TOTAL_SPIN, spin.1)?;
    if twice < 0 {
        return Err(Error::input(format!("a total spin of {}", spin.1)).hint("S is 0, 1/2, 1, ..."));
    }
    Ok((Some(twice), rest))
}

/// Whether sites whose states have these labels reach `target`, one after the other.
///
/// # Errors
/// An interruption.
fn reaches(symmetry: &ConservedNumbers, all: &[Vec<ChargeLabel>], target: &ChargeLabel) -> Result<bool> {
    let n = symmetry.names().len();
    let ends = || vec![target.clone(); all.len() + 1];
    let (mut low, mut high) = (ends(), ends());
    for (i, states) in all.iter().enumerate().rev() {
        for c in 0..n {
            low[i][c] = low[i + 1][c] - states.iter().map(|s| s[c]).max().unwrap_or(0);
            high[i][c] = high[i + 1][c] - states.iter().map(|s| s[c]).min().unwrap_or(0);
        }
    }
    let mut here = BTreeSet::from([symmetry.zero()]);
    for (i, states) in all.iter().enumerate() {
        crate::task::poll()?;
        let inside = |q: &ChargeLabel| {
            let fits = |c: usize| (low[i + 1][c]..=high[i + 1][c]).contains(&q[c]);
            (0..n).all(|c| symmetry.moduli()[c] > 0 || fits(c))
        };
        let next = here.iter().flat_map(|q| states.iter().filter_map(|s| symmetry.coupled(q, s)));
        here = next.filter(inside).collect();
    }
    Ok(here.contains(target))
}

/// The symmetry and the label of a sector that has states.
///
/// # Errors
/// For numbers that the sites do not have, and sectors without states.
pub fn conserved(sites: &Sites, sector: &Sector) -> Result<(ConservedNumbers, ChargeLabel)> {
    let (spin, rest) = total_spin(sites, sector)?;
    let wanted = sites.target(&rest)?;
    let plain = ConservedNumbers::new(sites, wanted.iter().map(|w| w.0.clone()));
    let mut target: ChargeLabel =
        plain.add(&wanted.iter().map(|w| w.1).collect::<ChargeLabel>(), &plain.zero());
    target.extend(spin);
    let symmetry = if spin.is_some() { plain.with_spin() } else { plain };
    // Which sectors have states is found without numbering them.
    let all = (0..sites.count()).map(|i| symmetry.states(sites, i)).collect::<Vec<_>>();
    if reaches(&symmetry, &all, &target)? {
        return Ok((symmetry, target));
    }
    // The exact basis knows the message of all others.
    SectorBasis::new(sites, &rest)?;
    let Some(spin) = spin else { return Err(Error::internal("a sector both with and without states")) };
    let most: i32 = all.iter().map(|states| states.iter().map(|q| q[q.len() - 2]).max().unwrap_or(0)).sum();
    let half = |twice: i32| if twice % 2 == 0 { format!("{}", twice / 2) } else { format!("{twice}/2") };
    let others: String = rest.iter().map(|(name, q)| format!(" with {name} = {q}")).collect();
    Err(Error::input(format!("no state of {sites} has S = {}{others}", half(spin))).hint(format!(
        "S is half-integer for an odd number of half-integer spins and whole otherwise; it is {} at most",
        half(most)
    )))
}
