//! Random numbers, choices and orders of scripts: each call's are fixed by a seed and its place in the seed's sequence.

use rand::distr::weighted::WeightedIndex;
use rand::distr::{Distribution, Open01};
use rand::seq::{SliceRandom, index};
use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, INT};

use super::values::{count, to_dynamic, to_series, type_of};
use crate::error::{Error, Result};
use crate::number::philox::{self, PhiloxRng, Stream};
use crate::number::{Series, memory};
use crate::script::{Fallible, Options, session};
use crate::task;

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(random_functions).into());
}

/// The generator of one call: with a seed of its own always the same, else the next of the session's sequence.
fn generator(o: &Options) -> Result<PhiloxRng> {
    let own = o.given("seed").is_some();
    let call = if own { 0 } else { session()?.draw(1) };
    // Column 0 holds the numbers of `random_numbers`.
    Ok(PhiloxRng::new(o.seed()?, Stream::Script, 1 + (call % u64::from(u32::MAX)) as u32))
}

/// The items that choices are made from.
enum Items {
    Numbers(usize),
    Array(Array),
    Series(Series),
}

impl Items {
    fn of(value: Dynamic) -> Result<Items> {
        if let Ok(n) = value.as_int() {
            return Ok(Items::Numbers(count(n, "numbers to choose from")?));
        }
        if let Some(series) = value.read_lock::<Series>() {
            return Ok(Items::Series(series.clone()));
        }
        let kind = type_of(&value).to_string();
        value.into_array().map(Items::Array).map_err(|_| {
            Error::input(format!("a choice from {kind}"))
                .hint("choose from an array, a Series, or the numbers below an integer")
        })
    }

    fn len(&self) -> usize {
        match self {
            Items::Numbers(n) => *n,
            Items::Array(array) => array.len(),
            Items::Series(series) => series.len(),
        }
    }

    fn at(&self, k: usize) -> Dynamic {
        match self {
            Items::Numbers(_) => Dynamic::from_int(k as INT),
            Items::Array(array) => array[k].clone(),
            Items::Series(series) => series.get(k).map_or(Dynamic::UNIT, to_dynamic),
        }
    }

    /// The elements of these numbers: a Series of a Series, else an array.
    fn taken(&self, numbers: impl Iterator<Item = usize>) -> Result<Dynamic> {
        if let Items::Series(series) = self {
            let taken = match series {
                Series::Real(x) => Series::Real(numbers.map(|k| x[k]).collect()),
                Series::Complex(x) => Series::Complex(numbers.map(|k| x[k]).collect()),
            };
            return Ok(Dynamic::from(taken));
        }
        let one = |k: usize| task::poll().map(|()| self.at(k));
        Ok(Dynamic::from_array(numbers.map(one).collect::<Result<_>>()?))
    }
}

/// The weights, one for each item.
fn weights(o: &Options, items: usize) -> Result<Option<Vec<f64>>> {
    let Some(given) = o.given("weights") else { return Ok(None) };
    let Series::Real(weights) = to_series(&given)? else {
        return Err(Error::input("complex weights").hint("weights are real numbers, 0 or larger"));
    };
    if weights.len() != items {
        return Err(
            Error::input(format!("{} weights for {items} elements", weights.len())).hint("give one for each")
        );
    }
    if let Some(wrong) = weights.iter().find(|w| !(**w >= 0.0 && w.is_finite())) {
        return Err(Error::input(format!("a weight of {wrong}")).hint("weights are 0 or larger, and finite"));
    }
    let sum: f64 = weights.iter().sum();
    if !(sum > 0.0 && sum.is_finite()) {
        return Err(Error::input(format!("weights that add up to {sum}")).hint("one at least is above 0"));
    }
    Ok(Some(weights))
}

/// The numbers of the items that are chosen.
fn chosen(items: usize, wanted: usize, o: &Options) -> Result<Vec<usize>> {
    memory::ensure(16 * (wanted as u128 + items as u128), "a random choice")?;
    let weights = weights(o, items)?;
    let mut random = generator(o)?;
    if wanted == 0 {
        return Ok(Vec::new());
    }
    if items == 0 {
        return Err(Error::input("a choice from nothing").hint("give one element at least"));
    }
    // The weights were checked before. Only those that differ too much for the library's sums can fail here.
    let refused =
        |_| Error::input("weights that differ too much to choose by").hint("leave out what is never chosen");
    if o.flag("replace")? {
        let mut draws = |distribution: &dyn Fn(&mut PhiloxRng) -> usize| -> Result<Vec<usize>> {
            (0..wanted).map(|_| task::poll().map(|()| distribution(&mut random))).collect()
        };
        return match weights {
            Some(weights) => {
                let weighted = WeightedIndex::new(weights).map_err(refused)?;
                draws(&|random| weighted.sample(random))
            }
            None => {
                let uniform = rand::distr::Uniform::new(0, items).map_err(|_| Error::internal("no items"))?;
                draws(&|random| uniform.sample(random))
            }
        };
    }
    let most = weights.as_ref().map_or(items, |w| w.iter().filter(|w| **w > 0.0).count());
    if wanted > most {
        let what = if weights.is_some() { "elements of a weight above 0" } else { "elements" };
        return Err(Error::input(format!("{wanted} different choices from {most} {what}"))
            .hint("with `replace: true` an element can be chosen again"));
    }
    Ok(match weights {
        // One after the other, each by the weights of those that are left: they come as clocks ring that run at the
        // rates of their weights (Efraimidis and Spirakis, Inf. Proc. Lett. 97 (2006) 181).
        Some(weights) => {
            let largest = weights.iter().copied().fold(0.0, f64::max);
            let rates = weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
            let mut rings: Vec<(f64, usize)> = rates
                .map(|(k, weight)| {
                    let u: f64 = Open01.sample(&mut random);
                    (-u.ln() / (weight / largest), k)
                })
                .collect();
            rings.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            rings.into_iter().take(wanted).map(|(_, k)| k).collect()
        }
        None => index::sample(&mut random, items, wanted).into_vec(),
    })
}

#[export_module(root = "crate::script::native")]
mod random_functions {
    /// `n` random numbers. Without `seed` and `first` every call continues the sequence of the session where the last
    /// call ended. The seed of the session fixes this sequence, so every run gets the same numbers (`set_seed(n)`
    /// begins another sequence). A call with a `seed` gives the same numbers every time.
    ///
    /// # Options
    /// - `distribution` ("uniform" or "gaussian" or "exponential" or "lorentzian"): uniform between 0 and 1;
    ///   "gaussian", of mean 0 and variance 1; "exponential", of mean 1; "lorentzian", of density 1/(pi (1 + x^2)).
    /// - `seed` (int or string): the seed of the random numbers (default: the session's).
    /// - `first` (int >= 0): the number of the first one in the sequence of the seed: `first: 10` skips ten (default: 0
    ///   with a `seed`, else where the last call ended).
    ///
    /// # Example
    /// ```rhai
    /// let x = random_numbers(10000, #{ seed: 1 });
    /// assert_close(x.mean(), 0.5, 0.02);
    /// assert(x.min() > 0.0 && x.max() < 1.0, "between 0 and 1");
    /// assert(random_numbers(3, #{ seed: 1, first: 2 })[0] == x[2], "the third");
    /// assert(random_numbers(2) != random_numbers(2), "the sequence goes on");
    /// // Lorentzian levels around 0: the mean of 1/(E - x) is 1/(E + i) for E above the real axis (Lloyd 1969).
    /// let x = random_numbers(100000, #{ distribution: "lorentzian", seed: 1 });
    /// assert_close((1.0 / (I - x)).mean(), 1.0 / (2.0 * I), 0.01);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn random_numbers(n: INT, o: Options) -> Fallible<Series> {
        let n = count(n, "random numbers")?;
        let own = o.given("seed").is_some();
        let seed = o.seed()?;
        let first = match o.maybe_count("first")? {
            Some(first) => first as u64,
            None if own => 0,
            None => session()?.draw(n as u64),
        };
        let words = |i: u64| philox::words(seed, Stream::Script as u32, i, 0);
        type Draw = fn([u32; 4]) -> f64;
        let distributions: [(&str, Draw); 4] = [
            ("uniform", |w| philox::unit(w[0], w[1])),
            ("gaussian", |w| philox::normals(w).0),
            ("exponential", |w| -philox::log(philox::unit(w[0], w[1]))),
            ("lorentzian", |w| {
                let (sin, cos) = philox::turn(0.5 * philox::unit(w[0], w[1]));
                -cos / sin
            }),
        ];
        let draw = o.one_of("distribution", &distributions)?;
        Ok(Series::generate(n, |i| draw(words(first.wrapping_add(i as u64))))?)
    }

    /// An element chosen at random from an array or a Series, or a number from 0 to n - 1 for an integer n. With
    /// `count` it is that many elements: a Series from a Series, otherwise an array. Calls without a `seed` continue
    /// the session's sequence, as for `random_numbers`.
    ///
    /// # Options
    /// - `count` (int >= 0): number of elements.
    /// - `weights` (array or Series): relative probability of each element (default: all equal).
    /// - `replace` (true): an element can be chosen again. With `false`, later choices are made among the remaining
    ///   elements with their weights.
    /// - `seed` (int or string): the seed of the random numbers (default: the session's).
    ///
    /// # Example
    /// ```rhai
    /// assert(["up", "down"].contains(random_choice(["up", "down"])), "one of them");
    /// let x = random_choice(3, #{ weights: [1, 0, 3], count: 10000, seed: 1 });
    /// assert(!x.contains(1), "its weight is 0");
    /// assert_close(x.filter(|k| k == 2).len / 10000.0, 0.75, 0.02);
    /// // the error of a median, by choosing anew from the data (bootstrap)
    /// let data = random_numbers(1001, #{ distribution: "gaussian", seed: 1 });
    /// let median = |s| { let a = s.to_array(); a.sort(); a[a.len / 2] };
    /// let anew = [];
    /// for k in 0..200 { anew.push(median.call(random_choice(data, #{ count: data.len, seed: k }))); }
    /// anew = series(anew);
    /// let error = sqrt((anew * anew).mean() - anew.mean() ** 2.0);
    /// assert_close(error, sqrt(PI / 2.0 / 1001.0), 0.012);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn random_choice(items: Dynamic, o: Options) -> Fallible<Dynamic> {
        let items = Items::of(items)?;
        let Some(wanted) = o.maybe_count("count")? else {
            let one = chosen(items.len(), 1, &o)?;
            return Ok(items.at(one[0]));
        };
        let numbers = chosen(items.len(), wanted, &o)?;
        Ok(items.taken(numbers.into_iter())?)
    }

    /// The elements of an array or a Series in random order, all orders equally likely; for an integer n the numbers
    /// from 0 to n - 1.
    ///
    /// # Options
    /// - `seed` (int or string): the seed of the random numbers (default: the session's).
    ///
    /// # Example
    /// ```rhai
    /// let order = random_order(5, #{ seed: 1 });
    /// order.sort();
    /// assert(order == [0, 1, 2, 3, 4], "each once");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn random_order(items: Dynamic, o: Options) -> Fallible<Dynamic> {
        let items = Items::of(items)?;
        memory::ensure(16 * items.len() as u128, "a random order")?;
        let mut random = generator(&o)?;
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.shuffle(&mut random);
        Ok(items.taken(order.into_iter())?)
    }
}
