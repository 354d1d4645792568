//! The origin of moments: the action of their operators on a fixed vector, and the random or unit vectors that were
//! used. So only moments of one calculation are added, and those of a vector only once.

use std::ops::{Add, Mul, Range};

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::operator::{Fingerprint, Operator};

/// Random vectors of one seed, or unit vectors: number `first`, `first + step`, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorDraw {
    /// None for unit vectors, whose number is that of the row.
    seed: Option<u64>,
    first: u64,
    step: u64,
    count: u64,
}

impl VectorDraw {
    /// Random vector number `number` of a seed.
    pub fn random(seed: u64, number: u64) -> Self {
        VectorDraw { seed: Some(seed), first: number, step: 1, count: 1 }
    }

    /// The unit vector of a row.
    pub fn unit(row: usize) -> Self {
        VectorDraw { seed: None, first: row as u64, step: 1, count: 1 }
    }

    fn has(&self, number: u64) -> bool {
        let past = number.wrapping_sub(self.first);
        number >= self.first && past.is_multiple_of(self.step) && past / self.step < self.count
    }

    fn shares(&self, other: &VectorDraw) -> bool {
        let (few, many) = if self.count <= other.count { (self, other) } else { (other, self) };
        few.seed == many.seed && (0..few.count).any(|k| many.has(few.first + k * few.step))
    }

    /// With one more vector, where it is the next one.
    fn followed_by(&self, next: &VectorDraw) -> Option<VectorDraw> {
        let past = next.first.checked_sub(self.first).filter(|past| *past > 0)?;
        let step = if self.count == 1 { past } else { self.step };
        (self.seed == next.seed && next.count == 1 && past == step * self.count).then_some(VectorDraw {
            step,
            count: self.count + 1,
            ..*self
        })
    }
}

/// What moments know of where they come from: nothing, if they were read from a file that does not tell.
#[derive(Debug, Clone, Default)]
pub struct Provenance {
    /// Fingerprints of the Hamiltonian and of the operators between the polynomials.
    operators: Vec<Fingerprint>,
    /// For each vector of the moments those that it is an average over; none where they are not known.
    vectors: Vec<Vec<VectorDraw>>,
}

impl Provenance {
    /// Of moments of these operators and vectors. Vectors may be fewer than those of the moments:
    /// of the rest nothing is known.
    ///
    /// # Errors
    /// Those of a product.
    pub fn of(operators: &[&Operator], vectors: &[VectorDraw]) -> Result<Self> {
        let prints: Option<Vec<Fingerprint>> =
            operators.iter().map(|a| a.fingerprint()).collect::<Result<_>>()?;
        let vectors = vectors.iter().map(|draw| vec![*draw]).collect();
        Ok(Provenance { operators: prints.unwrap_or_default(), vectors })
    }

    fn draws(&self, vector: usize) -> &[VectorDraw] {
        self.vectors.get(vector).map_or(&[], Vec::as_slice)
    }

    /// Refuses moments of other operators.
    ///
    /// # Errors
    /// Operators that are known to differ.
    fn must_be_of(&self, other: &Provenance) -> Result<()> {
        let differ = self.operators.iter().zip(&other.operators).position(|(a, b)| !a.fits(b));
        let Some(at) = differ else { return Ok(()) };
        let what = if at == 0 { "operators" } else { "currents or directions" };
        Err(Error::input(format!("moments of different {what} cannot be averaged")).hint(
            "`merge` averages realisations of one disorder with the option `realisations`, and tables in any \
                 case",
        ))
    }

    /// Whether both may be of the same operators, and begin with the same vector.
    pub fn fits(&self, other: &Provenance) -> bool {
        let first = match (self.draws(0), other.draws(0)) {
            ([], _) | (_, []) => true,
            (a, b) => a == b,
        };
        first && self.must_be_of(other).is_ok()
    }

    /// Refuses moments of a vector that these have too. Where one of both is not known, `same` tells by the moments.
    ///
    /// # Errors
    /// A vector in common.
    pub fn must_be_apart(
        &self,
        other: &Provenance,
        (here, there): (usize, usize),
        same: impl Fn(usize, usize) -> bool,
    ) -> Result<()> {
        let shared = |i: usize, j: usize| match (self.draws(i), other.draws(j)) {
            ([], _) | (_, []) => same(i, j),
            (a, b) => a.iter().any(|a| b.iter().any(|b| a.shares(b))),
        };
        if (0..here).any(|i| (0..there).any(|j| shared(i, j))) {
            return Err(Error::input("both have a vector in common, which would be counted twice")
                .hint("give each run a `seed` of its own, or other vectors of one seed by `first`"));
        }
        Ok(())
    }

    /// The record of these moments of `here` vectors and of others behind them.
    pub fn joined(&self, other: &Provenance, here: usize) -> Provenance {
        let own = (0..here).map(|i| self.draws(i).to_vec());
        let operators = if self.operators.is_empty() { &other.operators } else { &self.operators };
        Provenance {
            operators: operators.clone(),
            vectors: own.chain(other.vectors.iter().cloned()).collect(),
        }
    }

    /// The record of averages of these moments and others, vector by vector.
    pub fn mixed(&self, other: &Provenance, weight: f64) -> Provenance {
        let known = self.operators.len() == other.operators.len();
        let operators = self.operators.iter().zip(&other.operators).filter(|_| known);
        let together = |(a, b): (&Vec<VectorDraw>, &Vec<VectorDraw>)| {
            let mut all = a.clone();
            for draw in b {
                match all.pop() {
                    Some(last) => {
                        all.extend(last.followed_by(draw).map_or(vec![last, *draw], |one| vec![one]))
                    }
                    // What one of both does not know the average does not.
                    None => return Vec::new(),
                }
            }
            if b.is_empty() { Vec::new() } else { all }
        };
        Provenance {
            operators: operators.map(|(a, b)| a.mixed(b, weight)).collect(),
            vectors: self.vectors.iter().zip(&other.vectors).map(together).collect(),
        }
    }

    /// The record of some of the vectors.
    pub fn select(&self, vectors: std::ops::Range<usize>) -> Provenance {
        let vectors = vectors.map(|i| self.draws(i).to_vec()).collect();
        Provenance { operators: self.operators.clone(), vectors }
    }

    /// What the report of a table tells of it.
    pub fn to_json(&self) -> Value {
        let operators: Vec<[f64; 4]> = self.operators.iter().map(Fingerprint::numbers).collect();
        // Seeds have 64 bits, more than a number has in many readers of JSON.
        let draw = |d: &VectorDraw| json!([d.seed.map(|seed| seed.to_string()), d.first, d.step, d.count]);
        let vectors: Vec<Vec<Value>> =
            self.vectors.iter().map(|all| all.iter().map(draw).collect()).collect();
        json!({ "operators": operators, "vectors": vectors })
    }

    /// From what [`Provenance::to_json`] made; of a report without it a record that knows nothing.
    ///
    /// # Errors
    /// Something else.
    pub fn from_json(value: Option<&Value>) -> Result<Provenance> {
        let Some(value) = value else { return Ok(Provenance::default()) };
        Self::read(value).ok_or_else(|| {
            Error::input("the record of what these moments are of is damaged")
                .hint("make them anew, or take `record` out of the file's report")
        })
    }

    fn read(value: &Value) -> Option<Provenance> {
        let operator = |of: &Value| {
            let numbers: Vec<f64> = of.as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?;
            Some(Fingerprint::of_numbers(numbers.try_into().ok()?))
        };
        let draw = |of: &Value| {
            let at = |i: usize| of.get(i)?.as_u64();
            let seed = match of.get(0)? {
                Value::Null => None,
                seed => Some(seed.as_str()?.parse().ok()?),
            };
            let draw = VectorDraw { seed, first: at(1)?, step: at(2)?, count: at(3)? };
            // Numbers of vectors have 32 bits.
            let small = [draw.first, draw.step, draw.count].iter().all(|n| *n <= 1 << 32);
            (small && draw.step > 0).then_some(draw)
        };
        let vector = |of: &Value| of.as_array()?.iter().map(draw).collect();
        Some(Provenance {
            operators: value.get("operators")?.as_array()?.iter().map(operator).collect::<Option<_>>()?,
            vectors: value.get("vectors")?.as_array()?.iter().map(vector).collect::<Option<_>>()?,
        })
    }
}

/// Moments that remember what they are of: those of each vector, of which they are the mean.
pub trait Averaged: Clone {
    /// One moment.
    type Moment: Copy + PartialEq + Add<Output = Self::Moment> + Mul<f64, Output = Self::Moment>;

    /// What they are of.
    fn record(&self) -> &Provenance;

    fn record_mut(&mut self) -> &mut Provenance;

    /// The moments of each vector.
    fn columns(&self) -> &[Vec<Self::Moment>];

    /// Moments with everything else like these, of other vectors, that come from these and perhaps from others.
    ///
    /// # Errors
    /// Columns that are no moments.
    fn with_columns(&self, others: Option<&Self>, columns: Vec<Vec<Self::Moment>>) -> Result<Self>;

    /// Refuses moments that cannot be averaged with these.
    ///
    /// # Errors
    /// Another window, dimension or number of orders.
    fn must_fit(&self, other: &Self) -> Result<()>;

    /// The same moments, with another record.
    fn with_record(mut self, record: Provenance) -> Self {
        *self.record_mut() = record;
        self
    }

    /// The moments of some of the vectors.
    ///
    /// # Errors
    /// An empty range, or one beyond the last vector.
    fn select(&self, vectors: Range<usize>) -> Result<Self> {
        let columns = self.columns();
        let chosen = columns.get(vectors.clone()).filter(|chosen| !chosen.is_empty()).ok_or_else(|| {
            Error::input(format!(
                "{} vectors from number {} on, of {}",
                vectors.len(),
                vectors.start,
                columns.len()
            ))
        })?;
        Ok(self.with_columns(None, chosen.to_vec())?.with_record(self.record().select(vectors)))
    }

    /// Vector by vector, the average of these moments with others: (1 - weight) of these, weight of the others.
    ///
    /// # Errors
    /// Moments that do not fit, or of another number of vectors.
    fn mixed(&self, other: &Self, weight: f64) -> Result<Self> {
        if self.columns().len() != other.columns().len() {
            return Err(Error::input("moments of different numbers of vectors have no average for each"));
        }
        self.must_fit(other)?;
        let mix = |(a, b): (&Vec<Self::Moment>, &Vec<Self::Moment>)| {
            a.iter().zip(b).map(|(a, b)| *a * (1.0 - weight) + *b * weight).collect()
        };
        let columns = self.columns().iter().zip(other.columns()).map(mix).collect();
        let record = self.record().mixed(other.record(), weight);
        Ok(self.with_columns(Some(other), columns)?.with_record(record))
    }

    /// Moments of more vectors of the same operators and window, averaged with these.
    ///
    /// # Errors
    /// Moments that differ in window, dimension, orders or operators; vectors that both have.
    fn merge(&self, other: &Self) -> Result<Self> {
        self.must_fit(other)?;
        self.record().must_be_of(other.record())?;
        self.must_be_apart(other)?;
        let columns = self.columns().iter().chain(other.columns()).cloned().collect();
        let record = self.record().joined(other.record(), self.columns().len());
        Ok(self.with_columns(Some(other), columns)?.with_record(record))
    }

    /// Refuses moments that have a vector in common with these.
    ///
    /// # Errors
    /// Such a vector.
    fn must_be_apart(&self, other: &Self) -> Result<()> {
        let (own, others) = (self.columns(), other.columns());
        self.record().must_be_apart(other.record(), (own.len(), others.len()), |i, j| own[i] == others[j])
    }

    /// As [`Averaged::must_be_apart`], where others may be of another realisation of a disorder,
    /// whose vectors are its own.
    ///
    /// # Errors
    /// A vector in common, of one realisation.
    fn must_be_apart_or_another(&self, other: &Self) -> Result<()> {
        match self.record().must_be_of(other.record()) {
            Ok(()) => self.must_be_apart(other),
            Err(_) => Ok(()),
        }
    }

    /// As [`Averaged::merge`], of realisations of a disorder.
    ///
    /// # Errors
    /// As there, but for operators.
    fn merge_realisations(&self, other: &Self) -> Result<Self> {
        let one = |of: &Self| of.clone().with_record(Provenance::default());
        one(self).merge(&one(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progressions_share_what_sets_of_numbers_do() {
        for code in 0..4000_u64 {
            let digit = |k: u32, n: u64| code / 6_u64.pow(k) % n;
            let a = VectorDraw {
                seed: Some(1),
                first: digit(0, 6),
                step: 1 + digit(1, 3),
                count: 1 + digit(2, 4),
            };
            let b = VectorDraw {
                seed: Some(1),
                first: digit(3, 5),
                step: 1 + digit(4, 4),
                count: 1 + digit(1, 5),
            };
            let set = |d: &VectorDraw| (0..d.count).map(|k| d.first + k * d.step).collect::<Vec<_>>();
            let both = set(&a).iter().any(|n| set(&b).contains(n));
            assert_eq!(a.shares(&b), both, "{a:?} {b:?}");
            assert!(
                !a.shares(&VectorDraw { seed: Some(2), ..b }) && !a.shares(&VectorDraw { seed: None, ..b })
            );
        }
    }

    #[test]
    fn numbers_in_steps_are_one_progression() {
        let of = |number| Provenance {
            vectors: vec![vec![VectorDraw::random(7, number)]],
            ..Provenance::default()
        };
        let record = [9, 13, 17].into_iter().fold(of(5), |all, n| all.mixed(&of(n), 0.5));
        assert_eq!(record.vectors, [[VectorDraw { seed: Some(7), first: 5, step: 4, count: 4 }]]);
        let odd = record.mixed(&of(20), 0.5);
        assert_eq!(odd.vectors[0].len(), 2, "20 is not the next one");
        assert!(
            record.mixed(&Provenance { vectors: vec![vec![]], ..Provenance::default() }, 0.5).vectors[0]
                .is_empty()
        );
        let back = Provenance::from_json(Some(&odd.to_json())).unwrap();
        assert_eq!(back.vectors, odd.vectors);
        assert!(
            Provenance::from_json(Some(&json!({ "operators": [], "vectors": [[[7, 0, 1, 1]]] }))).is_err()
        );
        assert!(Provenance::from_json(None).unwrap().vectors.is_empty(), "files of older versions");
    }
}
