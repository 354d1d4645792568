//! The group that symmetries generate, and the number that each element multiplies the states of a sector with.

use std::collections::HashMap;

use super::moves::{Move, unit};
use crate::error::{Error, Result};
use crate::number::C64;
use crate::task;

/// The most elements of a group.
const MOST: usize = 1 << 16;
/// Characters closer than this are the same.
const SAME: f64 = 1e-7;

/// A generator: what it does, what it is called with its quantum number, and the number that it multiplies states with.
#[derive(Debug, Clone)]
pub(super) struct Generator {
    pub does: Move,
    pub name: String,
    pub character: C64,
}

/// All products of the generators, the identity first, with their characters: a representation of one dimension.
#[derive(Debug)]
pub(super) struct SymmetryGroup {
    pub elements: Vec<Move>,
    pub characters: Vec<C64>,
}

/// After how many times a move is back at the start.
///
/// # Errors
/// When that takes too many.
pub(super) fn order(of: &Move, name: &str, dims: &[usize]) -> Result<usize> {
    let (mut power, mut n) = (of.clone(), 1);
    while !power.stays() {
        if n == MOST {
            return Err(Error::input(format!(
                "{name} returns to the identity only after more than {MOST} applications"
            ))
            .hint("a group of symmetries has at most that many elements"));
        }
        power = power.then(of, dims);
        n += 1;
    }
    Ok(n)
}

impl SymmetryGroup {
    /// All products of the generators.
    ///
    /// # Errors
    /// When there are too many, or the quantum numbers of the generators do not go together.
    pub fn new(generators: &[Generator], dims: &[usize]) -> Result<SymmetryGroup> {
        Self::closed(generators, dims)?.ok_or_else(|| clash(generators, dims))
    }

    /// The group; none where one element would have two characters.
    fn closed(generators: &[Generator], dims: &[usize]) -> Result<Option<SymmetryGroup>> {
        let start = Move::stay(dims.len());
        let mut known = HashMap::from([(start.key(), 0usize)]);
        let mut group = SymmetryGroup { elements: vec![start], characters: vec![C64::ONE] };
        let mut at = 0;
        while at < group.elements.len() {
            task::poll()?;
            for generator in generators {
                let next = group.elements[at].then(&generator.does, dims);
                let character = unit(group.characters[at] * generator.character);
                match known.get(&next.key()) {
                    Some(&k) if (group.characters[k] - character).norm() > SAME => return Ok(None),
                    Some(_) => {}
                    None if group.elements.len() == MOST => {
                        return Err(Error::input(format!(
                            "these symmetries generate a group of more than {MOST} elements"
                        ))
                        .hint("name fewer of them"));
                    }
                    None => {
                        known.insert(next.key(), group.elements.len());
                        group.elements.push(next);
                        group.characters.push(character);
                    }
                }
            }
            at += 1;
        }
        Ok(Some(group))
    }
}

/// The error for quantum numbers that do not go together, naming as few as it can.
fn clash(generators: &[Generator], dims: &[usize]) -> Error {
    let fails = |some: &[Generator]| matches!(SymmetryGroup::closed(some, dims), Ok(None));
    if let Some(one) = generators.iter().find(|g| fails(std::slice::from_ref(*g))) {
        let order = order(&one.does, &one.name, dims).unwrap_or(0);
        let (back, hint) = match order {
            1 => ("it is the identity".to_string(), "the identity multiplies states with 1"),
            n => (
                format!("{n} times in a row it is the identity"),
                "the number that it multiplies states with, to that power, is 1",
            ),
        };
        return Error::input(format!("no state has {}: {back}", one.name)).hint(hint);
    }
    for (k, a) in generators.iter().enumerate() {
        for b in &generators[..k] {
            if fails(&[b.clone(), a.clone()]) {
                let hint = if a.does.key() == b.does.key() {
                    "the two are the same permutation here, and ask it for different numbers"
                } else {
                    "symmetries that do not commute go together only where they do on the sector: a reflection \
                     turns momentum k into -k, so that k is 0 or half the number of cells"
                };
                return Error::input(format!("no state has both {} and {}", b.name, a.name)).hint(hint);
            }
        }
    }
    let all: Vec<&str> = generators.iter().map(|g| g.name.as_str()).collect();
    Error::input(format!("no state has all of {}", all.join(", ")))
        .hint("these quantum numbers contradict each other; leave one out")
}
