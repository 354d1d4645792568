//! `merge`: results of several runs as one.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine};

use super::chebyshev::SharedMoments;
use super::values::type_of;
use crate::error::{Error, Result};
use crate::method::DoubleMoments;
use crate::number::{Table, merge};
use crate::script::{Fallible, Options};

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(merge_functions).into());
}

/// All runs as values of one type; nothing if they are of another.
fn all<T: Clone + 'static>(runs: &[Dynamic]) -> Option<Vec<T>> {
    runs.iter().map(|run| run.read_lock::<T>().map(|run| run.clone())).collect()
}

/// Refuses vectors that two runs share: their average would count them twice.
fn need_own_vectors<'a>(runs: impl Iterator<Item = Vec<&'a [f64]>>, names: &[String]) -> Result<()> {
    let mut known: Vec<(usize, &[f64])> = Vec::new();
    for (i, vectors) in runs.enumerate() {
        for vector in &vectors {
            if let Some((j, _)) = known.iter().find(|(_, other)| other == vector) {
                return Err(Error::input(format!("{} and {} have a vector in common", names[*j], names[i]))
                    .hint("give each run a `seed` of its own"));
            }
        }
        known.extend(vectors.into_iter().map(|vector| (i, vector)));
    }
    Ok(())
}

fn merged(runs: &[Dynamic], names: &[String], follow: bool) -> Result<Dynamic> {
    if runs.is_empty() {
        return Err(Error::input("nothing to merge").hint("`merge` takes an array of Tables, or of Moments"));
    }
    if let Some(tables) = all::<Table>(runs) {
        return merge::merge(&tables, names, follow).map(Dynamic::from);
    }
    let with_run = |i: usize| {
        move |e: Error| {
            e.context(format!("{} and {}", names[0], names[i]))
                .hint("give all runs the same operator, `moments` and `window`")
        }
    };
    if let Some(moments) = all::<SharedMoments>(runs) {
        need_own_vectors(
            moments.iter().map(|mu| (0..mu.vectors()).filter_map(|k| mu.of_vector(k)).collect()),
            names,
        )?;
        let (first, rest) = (moments[0].clone(), moments.iter().enumerate().skip(1));
        let whole =
            rest.into_iter().try_fold((*first).clone(), |sum, (i, mu)| sum.merge(mu).map_err(with_run(i)));
        return whole.map(|mu| Dynamic::from(Rc::new(mu)));
    }
    if let Some(moments) = all::<Rc<DoubleMoments>>(runs) {
        let plain = |mu: &Rc<DoubleMoments>| -> Vec<Vec<f64>> {
            mu.of_each().map(|column| column.iter().flat_map(|z| [z.re, z.im]).collect()).collect()
        };
        let flat: Vec<Vec<Vec<f64>>> = moments.iter().map(plain).collect();
        need_own_vectors(flat.iter().map(|run| run.iter().map(Vec::as_slice).collect()), names)?;
        let (first, rest) = (moments[0].clone(), moments.iter().enumerate().skip(1));
        let whole =
            rest.into_iter().try_fold((*first).clone(), |sum, (i, mu)| sum.merge(mu).map_err(with_run(i)));
        return whole.map(|mu| Dynamic::from(Rc::new(mu)));
    }
    let kind = |run: &Dynamic| type_of(run);
    let odd = runs.iter().position(|run| run.type_id() != runs[0].type_id());
    Err(match odd {
        Some(i) => Error::input(format!(
            "{} holds {}, and {} holds {}",
            names[0],
            kind(&runs[0]),
            names[i],
            kind(&runs[i])
        )),
        None => Error::input(format!("{} holds {}, which `merge` does not take", names[0], kind(&runs[0]))),
    }
    .hint("it takes Tables of one kind, or Moments of one operator; walkers and states go on from their checkpoints instead"))
}

#[export_module(root = "crate::script::native")]
mod merge_functions {
    /// The results of several runs as one, as those of an array of jobs: Tables, Moments or DoubleMoments, in an array.
    /// `umklapp merge OUT FILES` does it with files.
    ///
    /// Moments are averaged over all vectors, as `a + b` does. Tables whose rows stand at the same places (the first column,
    /// of maps the first two) are averaged, each run counting the same: every column gets its standard error from run to run
    /// (Student's for few runs), in place of those of the runs. Tables of other places, as those of other parameters, follow one another.
    /// Energies of `vmc::run(..).series` are averaged sample by sample; `blocked` of that column is the pooled energy.
    ///
    /// # Options
    /// - `append` (false): put tables one after another, whatever they hold.
    /// - `names` (array, "run 1", "run 2", ..): what messages call them.
    ///
    /// # Example
    /// ```rhai
    /// let runs = [1.0, 3.0].map(|y| table([["x", [0, 1]], ["y", [y, 2.0]]]));
    /// let mean = merge(runs);
    /// assert(mean.y[0] == 2.0 && mean.error[0] > 1.0, "1.84 standard errors for two runs");
    /// let h = tight_binding(lattice::chain(32));
    /// let parts = [1, 2].map(|seed| kpm::moments(h, #{ moments: 8, vectors: 2, seed: seed, window: window(-2.1, 2.1) }));
    /// assert(merge(parts).values == (parts[0] + parts[1]).values, "moments add");
    /// ```
    #[rhai_fn(name = "merge", return_raw)]
    pub fn merge_with(runs: Array, o: Options) -> Fallible<Dynamic> {
        let given = o.maybe::<Array>("names").unwrap_or_default();
        let name = |i: usize| given.get(i).map_or(format!("run {}", i + 1), ToString::to_string);
        let names: Vec<String> = (0..runs.len()).map(name).collect();
        Ok(merged(&runs, &names, o.flag("append")?)?)
    }
}
