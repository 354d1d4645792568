//! Whether a sum is invariant under symmetries, and the part of a sum that takes one sector to another.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::super::local::{Collected, collect, groups};
use super::super::opsum::OpSum;
use super::coded::CodedRows;
use super::group::Generator;
use super::moves::TermMatrices;
use super::orbits::Orbits;
use super::subspace::Subspace;
use crate::backend::matrix::merge;
use crate::error::{Error, Result};
use crate::number::C64;
use crate::task::{self, Task};

/// Differences below this, relative to what they are of, count as rounding.
const ROUNDING: f64 = 1e-12;

/// The terms of a sum with their operators as matrices.
pub(super) fn factors(sum: &OpSum, space: &Subspace) -> Result<Vec<TermMatrices>> {
    let sites = space.sites();
    sum.fits("a system of", sites.count())?;
    let one = |(name, i): &(String, usize)| Ok((sites.site(*i)?.operator(name)?.clone(), *i));
    sum.terms_on(sites.count())
        .iter()
        .map(|term| {
            let operators = term.factors.iter().map(one).collect::<Result<_>>();
            let context = |e: Error| e.context(format!("the term `{term}`"));
            Ok(TermMatrices { coefficient: term.coefficient, operators: operators.map_err(context)? })
        })
        .collect()
}

/// Refuses a sum that a symmetry of the sector changes.
///
/// # Errors
/// When there is one, and those of the sum.
pub(super) fn refuse_others(sum: &OpSum, space: &Subspace, task: &Task) -> Result<()> {
    let all = factors(sum, space)?;
    let sites = space.sites();
    let here = collect(all.iter().map(|f| f.product(sites)), &space.plain)?;
    for generator in space.generators.iter() {
        task::poll()?;
        let moved = all.iter().map(|f| generator.does.moved(f, sites).product(sites));
        // Terms may differ where their sum does not: then all matrix elements are compared.
        if !alike(&here, &collect(moved, &space.plain)?) && !unchanged(sum, space, generator, task)? {
            return Err(Error::input(format!(
                "the sum of operators is not invariant under {}",
                generator.name
            ))
            .hint(
                "leave this symmetry out, or take the part that is invariant, as for an expectation value: \
                     `project: true`",
            ));
        }
    }
    Ok(())
}

/// Whether a sum is Hermitian, as its local matrices tell.
///
/// # Errors
/// Those of the sum.
pub(super) fn is_hermitian(sum: &OpSum, space: &Subspace) -> Result<bool> {
    let of = |sum: &OpSum| {
        let all = factors(sum, space)?;
        collect(all.iter().map(|f| f.product(space.sites())), &space.plain)
    };
    Ok(alike(&of(sum)?, &of(&sum.dagger())?))
}

/// Whether two sets of local matrices are the same, to rounding.
fn alike(a: &Collected, b: &Collected) -> bool {
    let places: BTreeSet<_> = a.keys().chain(b.keys()).collect();
    places.into_iter().all(|on| {
        let (a, b) = (a.get(on), b.get(on));
        let all: BTreeSet<_> = a.into_iter().chain(b).flat_map(|e| e.keys()).collect();
        all.into_iter().all(|place| {
            let of = |e: Option<&super::super::local::TermElements>| {
                e.and_then(|e| e.get(place)).copied().unwrap_or_default()
            };
            let ((x, size), (y, other)) = (of(a), of(b));
            (x - y).norm() <= ROUNDING * (size + other)
        })
    })
}

/// Whether all matrix elements of the sector stay as they are under a symmetry.
fn unchanged(sum: &OpSum, space: &Subspace, generator: &Generator, task: &Task) -> Result<bool> {
    const CHUNK: usize = 1 << 10;
    const TOGETHER: usize = 64;
    let plain = Subspace { plain: space.plain.clone(), orbits: None, generators: Default::default() };
    let Some(orbits) = &space.orbits else { return Ok(true) };
    let own = generator.does.key();
    let Some(element) = orbits.group.elements.iter().position(|e| e.key() == own) else {
        return Err(Error::internal("a generator that is not in its group"));
    };
    let local = groups(sum, &plain.plain)?;
    let largest = local.iter().flat_map(|g| &g.elements).map(|e| e.value.norm()).fold(0.0, f64::max);
    let rows = CodedRows::new(&local, &plain, &plain, orbits.actions.layout.clone(), true);
    let dim = plain.dim();
    let steps = task.start("matrix elements compared", dim);
    let same = |first: usize, count: usize| {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        let mut same = true;
        rows.codes(first, count, |_, code, _| {
            here.clear();
            there.clear();
            let actions = &orbits.actions;
            let own = actions.phase(element, code);
            rows.raw(code, |word, value| {
                here.push((actions.image(element, word), own * value * actions.phase(element, word).conj()));
            });
            rows.raw(actions.image(element, code), |word, value| there.push((word, -value)));
            here.append(&mut there);
            merge(&mut here);
            same &= here.iter().all(|e| e.1.norm() <= ROUNDING * largest);
        });
        same
    };
    for slab in (0..dim).step_by(CHUNK * TOGETHER) {
        let end = (slab + CHUNK * TOGETHER).min(dim);
        let chunks: Vec<usize> = (slab..end).step_by(CHUNK).collect();
        if !chunks.into_par_iter().all(|first| same(first, CHUNK.min(end - first))) {
            return Ok(false);
        }
        steps.advance(end)?;
    }
    Ok(true)
}

/// The part of a sum that takes states of one sector to another with the same symmetries and other quantum numbers:
/// 1/|G| sum_g chi_to(g)* g A g^-1 chi_from(g).
pub(super) fn part(
    sum: &OpSum,
    from: &Orbits,
    to: &Orbits,
    space: &Subspace,
    task: &Task,
) -> Result<Collected> {
    let all = factors(sum, space)?;
    let count = from.group.elements.len();
    let steps = task.start("terms moved", count);
    let weight = 1.0 / count as f64;
    let mut moved = Collected::new();
    for (g, element) in from.group.elements.iter().enumerate() {
        let factor = to.group.characters[g].conj() * from.group.characters[g] * weight;
        let one = |f: &TermMatrices| {
            let mut moved = element.moved(f, space.sites());
            moved.coefficient *= factor;
            moved.product(space.sites())
        };
        for (on, elements) in collect(all.iter().map(one), &space.plain)? {
            let into = moved.entry(on).or_default();
            for (place, (value, size)) in elements {
                let (sum, sizes) = into.entry(place).or_insert((C64::ZERO, 0.0));
                *sum += value;
                *sizes += size;
            }
        }
        steps.advance(g + 1)?;
    }
    Ok(moved)
}
