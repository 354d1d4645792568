//! The states of a sector that symmetries divide: one for each orbit of product states whose projection does not
//! vanish.
//!
//! With the projector P = 1/|G| sum_g chi(g)* g, the state of the orbit of r, its least product state, is
//! P |r> / sqrt(n_r), n_r = <r|P|r> = |stabiliser| / |G|, or there is none. (Sandvik, AIP Conf. Proc. 1297 (2010) 135.)

use rayon::prelude::*;

use super::super::basis::{BasisPath, SectorBasis};
use super::codes::Actions;
use super::group::SymmetryGroup;
use crate::error::Result;
use crate::number::{C64, memory};
use crate::task::Task;

/// States that one thread looks at in one go, and goes between two checks of progress and interruption.
const CHUNK: usize = 1 << 13;
const TOGETHER: usize = 64;

/// Most images of states in one go, which many symmetries reach: the checks must not wait for them.
const IMAGES: usize = 1 << 20;

/// The states of a sector that symmetries divide.
#[derive(Debug)]
pub(super) struct Orbits {
    pub actions: Actions,
    pub group: SymmetryGroup,
    /// The least word of each orbit, ascending.
    pub least: Vec<u64>,
    /// How many elements leave it alone.
    pub stabilisers: Vec<u32>,
    /// Where the words with the same highest bits begin.
    starts: Vec<usize>,
    shift: u32,
}

impl Orbits {
    /// # Errors
    /// For words too short, memory, interruption.
    pub fn new(basis: &SectorBasis, group: SymmetryGroup, task: &Task) -> Result<Orbits> {
        let actions = Actions::new(basis.sites(), &group)?;
        let dim = basis.dim();
        memory::ensure(
            12 * (dim / actions.count() + 1) as u128,
            &format!("the orbits of {dim} states under {} symmetries", actions.count()),
        )?;
        let steps = task.start("orbits", dim);
        let (mut least, mut stabilisers) = (Vec::new(), Vec::new());
        let chunk = (IMAGES / actions.count()).clamp(1 << 6, CHUNK);
        for slab in (0..dim).step_by(chunk * TOGETHER) {
            let end = (slab + chunk * TOGETHER).min(dim);
            let chunks: Vec<usize> = (slab..end).step_by(chunk).collect();
            let found: Vec<Vec<(u64, u32)>> = chunks
                .into_par_iter()
                .map(|first| {
                    representatives(basis, &actions, &group.characters, first, chunk.min(end - first))
                })
                .collect();
            let more: usize = found.iter().map(Vec::len).sum();
            memory::ensure(24 * more as u128, "the orbits under these symmetries")?;
            for (code, stabiliser) in found.into_iter().flatten() {
                least.push(code);
                stabilisers.push(stabiliser);
            }
            steps.advance(end)?;
        }
        let places = (usize::BITS - least.len().leading_zeros()).min(actions.layout.bits).min(24);
        let shift = actions.layout.bits - places;
        let mut starts = vec![0usize; (1 << places) + 1];
        for &code in &least {
            starts[high(code, shift) + 1] += 1;
        }
        for k in 1..starts.len() {
            starts[k] += starts[k - 1];
        }
        Ok(Orbits { actions, group, least, stabilisers, starts, shift })
    }

    /// <r|P|r> of an orbit.
    #[inline]
    pub fn norm(&self, orbit: usize) -> f64 {
        f64::from(self.stabilisers[orbit]) / self.actions.count() as f64
    }

    /// The orbit of a word, by its number, and the factor f in <s|P|r> = f n_r; none where the projection vanishes or
    /// the word is of another sector.
    #[inline]
    pub fn of(&self, code: u64) -> Option<(usize, C64)> {
        let (least, element) = self.actions.least(code);
        let at = high(least, self.shift);
        let (from, to) = (self.starts[at], *self.starts.get(at + 1)?);
        let place = from + self.least[from..to].binary_search(&least).ok()?;
        let factor = self.actions.phase(element, code).conj() * self.group.characters[element];
        Some((place, factor))
    }

    /// Whether matrix elements have phases that are not real.
    pub fn complex(&self) -> bool {
        self.actions.complex() || self.group.characters.iter().any(|z| z.im != 0.0)
    }
}

/// The highest bits of a word.
#[inline]
fn high(code: u64, shift: u32) -> usize {
    code.checked_shr(shift).unwrap_or(0) as usize
}

/// The least words of orbits among some states, and how many elements leave each alone.
fn representatives(
    basis: &SectorBasis,
    actions: &Actions,
    characters: &[C64],
    first: usize,
    count: usize,
) -> Vec<(u64, u32)> {
    let mut found = Vec::new();
    let mut walk = BasisPath::at(basis, first);
    let mut code = actions.layout.code(&walk.states);
    for k in 0..count {
        if let Some(stabiliser) = stabiliser(actions, characters, code) {
            found.push((code, stabiliser));
        }
        if k + 1 == count {
            break;
        }
        let Some(from) = walk.step() else { break };
        code = actions.layout.code_from(code, &walk.states, from);
    }
    found
}

/// How many elements leave a word alone, if it is the least of its orbit and its projection does not vanish.
#[inline]
fn stabiliser(actions: &Actions, characters: &[C64], code: u64) -> Option<u32> {
    let mut sum = C64::ZERO;
    for (element, character) in characters.iter().enumerate() {
        let image = actions.image(element, code);
        if image < code {
            return None;
        }
        if image == code {
            sum += character.conj() * actions.phase(element, code);
        }
    }
    (sum.re > 0.5).then_some(sum.re.round() as u32)
}
