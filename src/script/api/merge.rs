//! `merge`: results of several runs as one.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine};

use super::chebyshev::SharedMoments;
use super::values::type_of;
use crate::error::{Error, Result};
use crate::method::{Averaged, DoubleMoments};
use crate::number::{Table, merge};
use crate::script::{Fallible, Options};

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(merge_functions).into());
}

/// All runs as values of one type; nothing if they are of another.
fn all<T: Clone + 'static>(runs: &[Dynamic]) -> Option<Vec<T>> {
    runs.iter().map(|run| run.read_lock::<T>().map(|run| run.clone())).collect()
}

/// The sum of all runs, of which no two may share a vector: their average would count it twice.
fn added<T: Averaged>(runs: &[Rc<T>], names: &[String], realisations: bool) -> Result<Option<T>> {
    let of = |i: usize, j: usize| move |e: Error| e.context(format!("{} and {}", names[i], names[j]));
    let Some((first, rest)) = runs.split_first() else { return Ok(None) };
    let apart = if realisations { T::must_be_apart_or_another } else { T::must_be_apart };
    let add = if realisations { T::merge_realisations } else { T::merge };
    let mut sum = T::clone(first);
    for (j, run) in rest.iter().enumerate().map(|(k, run)| (k + 1, run)) {
        runs[..j].iter().enumerate().try_for_each(|(i, other)| apart(other, run).map_err(of(i, j)))?;
        sum = add(&sum, run).map_err(of(0, j))?;
    }
    Ok(Some(sum))
}

/// What is asked for.
struct MergeOptions {
    /// Tables follow one another.
    follow: bool,
    /// Moments are of one Hamiltonian after another.
    realisations: bool,
}

fn merged(runs: &[Dynamic], names: &[String], how: &MergeOptions) -> Result<Dynamic> {
    let MergeOptions { follow, realisations } = *how;
    if runs.is_empty() {
        return Err(Error::input("nothing to merge").hint("`merge` takes an array of Tables, or of Moments"));
    }
    if let Some(tables) = all::<Table>(runs) {
        return merge::merge(&tables, names, follow).map(Dynamic::from);
    }
    if let Some(moments) = all::<SharedMoments>(runs) {
        let sum = added(&moments, names, realisations)?;
        return Ok(sum.map_or(Dynamic::UNIT, |mu| Dynamic::from(Rc::new(mu))));
    }
    if let Some(moments) = all::<Rc<DoubleMoments>>(runs) {
        let sum = added(&moments, names, realisations)?;
        return Ok(sum.map_or(Dynamic::UNIT, |mu| Dynamic::from(Rc::new(mu))));
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
    .hint("it takes Tables of one kind, or Moments of one operator; walkers and states go on from their checkpoints \
         instead"))
}

#[export_module(root = "crate::script::native")]
mod merge_functions {
    /// The results of several runs, for example of an array of jobs, as one result: Tables, Moments or DoubleMoments,
    /// in an array. `umklapp merge OUT FILES` merges files.
    ///
    /// Moments of one operator are averaged over all vectors, as `a + b` does. Tables with the same first column (for
    /// maps the first two) are averaged with equal weights. Each column then gets its standard error from the
    /// differences between runs (Student's for few runs); it replaces the errors of the single runs. Other Tables, for
    /// example for other parameters, are appended. Energies of `vmc::run(..).series` are averaged sample by sample;
    /// `blocked` of that column is the pooled energy.
    ///
    /// # Options
    /// - `append` (false): append tables in any case.
    /// - `realisations` (false): average moments of different Hamiltonians, the realisations of one disorder; without
    ///   this they are refused. Errors are those over all vectors. They include the differences between realisations if
    ///   each realisation has one vector.
    /// - `names` (array, "run 1", "run 2", ..): names of the runs in messages.
    ///
    /// # Example
    /// ```rhai
    /// let runs = [1.0, 3.0].map(|y| table([["x", [0, 1]], ["y", [y, 2.0]]]));
    /// let mean = merge(runs);
    /// assert(mean.y[0] == 2.0 && mean.error[0] > 1.0, "1.84 standard errors for two runs");
    /// let h = tight_binding(lattice::chain(32));
    /// let few = #{ moments: 8, vectors: 2, window: window(-2.1, 2.1) };
    /// let parts = [1, 2].map(|seed| kpm::moments(h, few + #{ seed: seed }));
    /// assert(merge(parts).values == (parts[0] + parts[1]).values, "moments add");
    /// ```
    #[rhai_fn(name = "merge", return_raw)]
    pub fn merge_with(runs: Array, o: Options) -> Fallible<Dynamic> {
        let given = o.maybe::<Array>("names").unwrap_or_default();
        let name = |i: usize| given.get(i).map_or(format!("run {}", i + 1), ToString::to_string);
        let names: Vec<String> = (0..runs.len()).map(name).collect();
        let how = MergeOptions { follow: o.flag("append")?, realisations: o.flag("realisations")? };
        Ok(merged(&runs, &names, &how)?)
    }
}
