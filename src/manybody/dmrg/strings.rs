//! An operator sum as strings of local operators that change the conserved numbers by definite amounts. Signs of
//! fermions are included, equal strings are added up, and terms that break a conservation law are refused.

use std::collections::{BTreeMap, HashMap};

use super::space::{ChargeLabel, ConservedNumbers};
use crate::error::{Error, Result};
use crate::manybody::opsum::{ROUNDING, changes};
use crate::manybody::{OpSum, SiteProduct, Sites};
use crate::number::C64;

/// The most strings, or components, that one term may split into.
pub(super) const MAX_PARTS: usize = 1 << 16;

/// A non-zero element of a local operator: row, column, value.
pub type OperatorElement = (usize, usize, C64);

/// Local operators by number, each scaled so that its first large element is one. Number 0 is the identity.
#[derive(Debug, Clone, Default)]
pub struct Alphabet {
    operators: Vec<(usize, Vec<OperatorElement>)>,
    known: HashMap<(usize, Vec<(usize, usize, i64, i64)>), usize>,
    /// Irreducible tensors have no scale, and numbers of their own; see `coupled.rs`.
    tensors: HashMap<Coupled, usize>,
    coupled: HashMap<usize, Coupled>,
}

/// A local tensor in a string of tensors that are coupled one after the other. Ranks are twice their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Coupled {
    /// The number of the kind of site.
    pub kind: usize,
    /// The multiplets between which it acts; none for the sign of fermions.
    pub between: Option<(usize, usize)>,
    pub rank: i32,
    /// The rank of the string without it and with it.
    pub before: i32,
    pub after: i32,
}

impl Alphabet {
    /// The number of a local operator on a site of `dim` states and the factor in front; none for zero.
    pub fn number(&mut self, dim: usize, elements: &[OperatorElement]) -> Option<(usize, C64)> {
        let largest = elements.iter().map(|e| e.2.norm()).fold(0.0, f64::max);
        let scale = elements.iter().find(|e| largest > 0.0 && e.2.norm() > 0.999 * largest)?.2;
        let scaled: Vec<OperatorElement> = elements
            .iter()
            .filter(|e| e.2.norm() > ROUNDING * largest)
            .map(|&(i, j, z)| (i, j, z / scale))
            .collect();
        if scaled.len() == dim && scaled.iter().all(|e| e.0 == e.1 && (e.2 - 1.0).norm() < ROUNDING) {
            return Some((0, scale));
        }
        let round = |x: f64| (x * 1e12).round() as i64;
        let key = scaled.iter().map(|e| (e.0, e.1, round(e.2.re), round(e.2.im))).collect();
        let next = self.operators.len() + 1;
        let number = *self.known.entry((dim, key)).or_insert(next);
        if number == next {
            self.operators.push((dim, scaled));
        }
        Some((number, scale))
    }

    /// The number of a tensor on a site of `dim` states with these elements.
    pub fn tensor(
        &mut self,
        tensor: Coupled,
        dim: usize,
        elements: impl FnOnce() -> Vec<OperatorElement>,
    ) -> usize {
        *self.tensors.entry(tensor).or_insert_with(|| {
            self.operators.push((dim, elements()));
            self.coupled.insert(self.operators.len(), tensor);
            self.operators.len()
        })
    }

    /// The rank of an operator, 0 without a total spin.
    pub fn rank(&self, number: usize) -> i32 {
        self.coupled.get(&number).map_or(0, |t| t.rank)
    }

    /// By how much the sites up to one change the numbers where those before change them by `before` and an operator
    /// acts on its states; of a total spin it is the rank.
    pub fn change(
        &self,
        symmetry: &ConservedNumbers,
        before: &ChargeLabel,
        number: usize,
        states: &[ChargeLabel],
    ) -> ChargeLabel {
        let elements = self.elements(number, states.len());
        let own = elements.first().map(|e| symmetry.subtract(&states[e.0], &states[e.1]));
        let mut change = symmetry.add(before, &own.unwrap_or_else(|| symmetry.zero()));
        if let Some(c) = symmetry.spin() {
            change[c] = self.coupled.get(&number).map_or(before[c], |t| t.after);
        }
        change
    }

    /// The elements of an operator on a site of `dim` states.
    pub fn elements(&self, number: usize, dim: usize) -> Vec<OperatorElement> {
        match number {
            0 => (0..dim).map(|s| (s, s, C64::ONE)).collect(),
            n => self.operators[n - 1].1.clone(),
        }
    }

    /// The largest element of an operator.
    pub fn size(&self, number: usize) -> f64 {
        match number {
            0 => 1.0,
            n => self.operators[n - 1].1.iter().map(|e| e.2.norm()).fold(0.0, f64::max),
        }
    }

    /// Whether an operator changes no state of its site; tensors change those within a multiplet.
    pub fn is_diagonal(&self, number: usize) -> bool {
        number == 0 || self.rank(number) == 0 && self.operators[number - 1].1.iter().all(|e| e.0 == e.1)
    }

    fn adjoint(&mut self, number: usize) -> (usize, C64) {
        if number == 0 {
            return (0, C64::ONE);
        }
        let (dim, elements) = self.operators[number - 1].clone();
        let mut turned: Vec<OperatorElement> = elements.iter().map(|&(i, j, z)| (j, i, z.conj())).collect();
        turned.sort_by_key(|e| (e.0, e.1));
        self.number(dim, &turned).unwrap_or((0, C64::ZERO))
    }
}

/// Site and number of each operator, by ascending sites; sites that are not listed have the identity.
pub type OperatorWord = Vec<(usize, usize)>;

/// A sum of strings.
#[derive(Debug, Clone)]
pub struct Strings {
    pub alphabet: Alphabet,
    pub words: BTreeMap<OperatorWord, C64>,
}

impl Alphabet {
    /// The strings of a sum that conserves the numbers, their operators numbered on from these.
    fn strings(self, sum: &OpSum, sites: &Sites, symmetry: &ConservedNumbers) -> Result<Strings> {
        let found = Strings::with_changes(sum, sites, symmetry, self)?;
        for (charge, at) in &found.1 {
            if let Some(k) = charge.iter().position(|q| *q != 0) {
                let name = &symmetry.names()[k];
                return Err(changes(&[&sum.terms_on(sites.count())[*at]], name, charge[k]));
            }
        }
        Ok(found.0)
    }
}

/// The part of a local operator that changes the numbers by one amount.
type ChargeShift = (ChargeLabel, Vec<OperatorElement>);

fn pieces(symmetry: &ConservedNumbers, states: &[ChargeLabel], matrix: &[C64]) -> Vec<ChargeShift> {
    let dim = states.len();
    let mut parts: BTreeMap<ChargeLabel, Vec<OperatorElement>> = BTreeMap::new();
    for (k, &z) in matrix.iter().enumerate().filter(|(_, z)| **z != C64::ZERO) {
        let (i, j) = (k / dim, k % dim);
        parts.entry(symmetry.subtract(&states[i], &states[j])).or_default().push((i, j, z));
    }
    parts.into_iter().collect()
}

impl Strings {
    /// The strings of a sum.
    ///
    /// # Errors
    /// For operators and sites that do not exist, and terms that change a conserved number.
    pub fn new(sum: &OpSum, sites: &Sites, symmetry: &ConservedNumbers) -> Result<Strings> {
        Alphabet::default().strings(sum, sites, symmetry)
    }

    /// The strings of another sum, with the same numbers for the same operators.
    ///
    /// # Errors
    /// As [`Strings::new`].
    pub fn more(&self, sum: &OpSum, sites: &Sites, symmetry: &ConservedNumbers) -> Result<Strings> {
        self.alphabet.clone().strings(sum, sites, symmetry)
    }

    /// The strings of a sum that may change the conserved numbers, every term by the same amounts; and these amounts.
    ///
    /// # Errors
    /// As [`Strings::new`], and for terms that change the numbers by different amounts.
    pub fn changing(
        sum: &OpSum,
        sites: &Sites,
        symmetry: &ConservedNumbers,
    ) -> Result<(Strings, ChargeLabel)> {
        let (strings, found) = Strings::with_changes(sum, sites, symmetry, Alphabet::default())?;
        let mut all = found.into_iter();
        let Some((first, at)) = all.next() else { return Ok((strings, symmetry.zero())) };
        for (charge, other) in all {
            if let Some(k) = (0..charge.len()).find(|&k| charge[k] != first[k]) {
                let half = |q: i32| f64::from(q) / 2.0;
                let terms = sum.terms_on(sites.count());
                return Err(Error::input(format!(
                    "the term `{}` changes {} by {}, and the term `{}` by {}",
                    terms[at],
                    symmetry.names()[k],
                    half(first[k]),
                    terms[other],
                    half(charge[k])
                ))
                .hint("a state has one sector: apply the parts one by one, or leave the number out of the state's \
                     sector"));
            }
        }
        Ok((strings, first))
    }

    /// The charges of the sites that a sum conserves.
    ///
    /// # Errors
    /// As [`Strings::new`], but for terms that change numbers.
    pub fn conserved(sum: &OpSum, sites: &Sites) -> Result<Vec<String>> {
        let symmetry = ConservedNumbers::new(sites, sites.charges().iter().cloned());
        let (_, changes) = Strings::with_changes(sum, sites, &symmetry, Alphabet::default())?;
        let kept = |k: &usize| changes.iter().all(|(label, _)| label[*k] == 0);
        Ok((0..symmetry.names().len()).filter(kept).map(|k| symmetry.names()[k].clone()).collect())
    }

    /// The strings, and by how much they change the conserved numbers, each change with a term that makes it.
    fn with_changes(
        sum: &OpSum,
        sites: &Sites,
        symmetry: &ConservedNumbers,
        mut alphabet: Alphabet,
    ) -> Result<(Strings, Vec<(ChargeLabel, usize)>)> {
        let states: Vec<Vec<ChargeLabel>> = (0..sites.count()).map(|i| symmetry.states(sites, i)).collect();
        // With the sizes of what was added, to tell rounding from a remainder, and a term to name.
        let mut words: BTreeMap<OperatorWord, (C64, f64, usize)> = BTreeMap::new();
        let mut charges: BTreeMap<OperatorWord, ChargeLabel> = BTreeMap::new();
        for (at, term) in sum.terms_on(sites.count()).iter().enumerate() {
            let product = SiteProduct::new(term, sites)?;
            let mut local: Vec<(usize, Vec<ChargeShift>)> = Vec::new();
            for (site, matrix) in &product.factors {
                local.push((*site, pieces(symmetry, &states[*site], matrix)));
            }
            for &site in &product.string {
                let sign = &sites.site(site)?.operator("F")?.matrix;
                local.push((site, pieces(symmetry, &states[site], sign)));
            }
            local.sort_by_key(|l| l.0);
            let mut partial = vec![(OperatorWord::new(), product.coefficient, symmetry.zero())];
            for (site, pieces) in &local {
                let mut next = Vec::new();
                for (label, elements) in pieces {
                    let Some((number, scale)) = alphabet.number(states[*site].len(), elements) else {
                        continue;
                    };
                    for (word, z, total) in &partial {
                        let mut word = word.clone();
                        if number > 0 {
                            word.push((*site, number));
                        }
                        next.push((word, z * scale, symmetry.add(total, label)));
                    }
                }
                if next.len() > MAX_PARTS {
                    return Err(Error::input(format!("the term `{term}` falls into too many parts"))
                        .hint("write it with operators that raise and lower, like \"S+\" and \"S-\""));
                }
                partial = next;
            }
            for (word, z, charge) in partial {
                if charge.iter().any(|q| *q != 0) {
                    charges.insert(word.clone(), charge);
                }
                let entry = words.entry(word).or_insert((C64::ZERO, 0.0, at));
                entry.0 += z;
                entry.1 += z.norm();
            }
        }
        words.retain(|_, (z, size, _)| z.norm() > ROUNDING * *size);
        let mut changes: Vec<(ChargeLabel, usize)> = Vec::new();
        for (word, (_, _, at)) in &words {
            let charge = charges.get(word).cloned().unwrap_or_else(|| symmetry.zero());
            if !changes.iter().any(|c| c.0 == charge) {
                changes.push((charge, *at));
            }
        }
        let words = words.into_iter().map(|(word, (z, ..))| (word, z)).collect();
        Ok((Strings { alphabet, words }, changes))
    }

    /// The sum of the sizes of all strings, a bound on the norm of the sum.
    pub fn size(&self) -> f64 {
        let of = |word: &OperatorWord| word.iter().map(|w| self.alphabet.size(w.1)).product::<f64>();
        self.words.iter().map(|(word, z)| z.norm() * of(word)).sum()
    }

    /// Refuses a sum that is not its own adjoint.
    ///
    /// # Errors
    /// When a term has no conjugate.
    pub fn need_hermitian(&mut self, sites: &Sites) -> Result<()> {
        let mut rest: BTreeMap<OperatorWord, C64> = BTreeMap::new();
        let largest = self.words.values().map(|z| z.norm()).fold(0.0, f64::max);
        for (word, &z) in &self.words {
            let mut turned = OperatorWord::new();
            let mut conjugate = z.conj();
            for &(site, number) in word {
                let (number, scale) = self.alphabet.adjoint(number);
                conjugate *= scale;
                turned.push((site, number));
            }
            *rest.entry(word.clone()).or_default() += z;
            *rest.entry(turned).or_default() -= conjugate;
        }
        rest.retain(|_, z| z.norm() > 1e-12 * largest);
        // Strings of different operators may still cancel: what is left is compared element by element.
        let mut elements: HashMap<Vec<(usize, usize, usize)>, C64> = HashMap::new();
        for (word, &z) in &rest {
            let mut partial = vec![(Vec::new(), z)];
            for &(site, number) in word {
                let local = self.alphabet.elements(number, sites.site(site)?.dim());
                partial = partial
                    .iter()
                    .flat_map(|(path, z): &(Vec<(usize, usize, usize)>, C64)| {
                        local.iter().map(move |&(i, j, value)| {
                            let mut path = path.clone();
                            path.push((site, i, j));
                            (path, z * value)
                        })
                    })
                    .collect();
                if partial.len() > MAX_PARTS {
                    break;
                }
            }
            for (path, z) in partial {
                *elements.entry(path).or_default() += z;
            }
        }
        match elements.values().all(|z| z.norm() <= 1e-11 * largest) {
            true => Ok(()),
            false => Err(Error::input("the operator sum is not Hermitian")
                .hint("add the conjugate of every term that is not its own conjugate")),
        }
    }
}
