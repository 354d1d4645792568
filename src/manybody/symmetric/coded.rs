//! The rows of an operator from states of one sector to those of another, where symmetries divide one or both.

use super::super::basis::{BasisPath, SectorBasis};
use super::super::local::{Collected, LocalEntry, LocalTerms, group};
use super::super::rows::{RowSource, tidy};
use super::codes::WordLayout;
use super::numbers::StateNumbers;
use super::subspace::Subspace;
use crate::error::Result;
use crate::number::C64;

/// A local matrix on words.
struct Words {
    /// Lowest bit, mask and weight in the joint state, of each site.
    places: Vec<(u32, u64, usize)>,
    /// The bits of these sites.
    bits: u64,
    /// Sites of the string of signs.
    string: u64,
    starts: Vec<u32>,
    elements: Vec<CodedElement>,
}

/// An element of a local matrix.
struct CodedElement {
    value: C64,
    /// The states of the column in their place.
    bits: u64,
    /// Whether it is on the diagonal.
    stays: bool,
}

pub(super) struct CodedRows {
    to: Subspace,
    from: Subspace,
    layout: WordLayout,
    groups: Vec<Words>,
    /// Whether both sectors are the same.
    square: bool,
    /// The numbers of the columns, where no symmetries divide them and the tables are small.
    numbers: Option<StateNumbers>,
}

/// Local matrices of collected elements, those that change the fixed charges as `change` says.
pub(super) fn groups_between(
    collected: &Collected,
    from: &SectorBasis,
    to: &SectorBasis,
) -> Result<Vec<LocalTerms>> {
    // What both fix must change by the difference; what one fixes alone is seen at the column.
    let fixed = |name: &str| -> Option<(i32, i32)> {
        let a = from.sector().iter().find(|q| q.0 == name)?.1;
        to.sector().iter().find(|q| q.0 == name).map(|b| (b.1 - a, to.sites().modulus(name)))
    };
    let keep = |_: &_, _: (usize, usize), changed: &[(&str, i32)]| -> Result<bool> {
        Ok(to.sector().iter().all(|(name, _)| {
            let change = changed.iter().find(|c| c.0 == name).map_or(0, |c| c.1);
            fixed(name)
                .is_none_or(|(wanted, m)| if m > 0 { (change - wanted) % m == 0 } else { change == wanted })
        }))
    };
    collected.iter().map(|(on, elements)| group(on.clone(), elements, to, &keep)).collect()
}

impl CodedRows {
    /// Words for both sectors.
    ///
    /// # Errors
    /// For words too short.
    pub fn layout(from: &Subspace, to: &Subspace) -> Result<WordLayout> {
        match from.orbits.as_ref().or(to.orbits.as_ref()) {
            Some(orbits) => Ok(orbits.actions.layout.clone()),
            None => WordLayout::new(to.sites(), 8),
        }
    }

    pub fn new(
        groups: &[LocalTerms],
        from: &Subspace,
        to: &Subspace,
        layout: WordLayout,
        square: bool,
    ) -> CodedRows {
        let groups = groups.iter().filter(|g| !g.elements.is_empty()).map(|g| words(g, &layout)).collect();
        let numbers = from.orbits.is_none().then(|| StateNumbers::new(&from.plain, &layout)).flatten();
        CodedRows { to: to.clone(), from: from.clone(), layout, groups, square, numbers }
    }

    /// Calls `each` with the words and values of a row of product states, unsorted; the diagonal is among them.
    #[inline]
    pub fn raw(&self, code: u64, mut each: impl FnMut(u64, C64)) {
        let mut odd = None;
        for group in &self.groups {
            let of = |&(shift, mask, stride): &(u32, u64, usize)| ((code >> shift) & mask) as usize * stride;
            // Most terms are of one site or two.
            let joint = match &group.places[..] {
                [a] => of(a),
                [a, b] => of(a) + of(b),
                all => all.iter().map(of).sum(),
            };
            let elements = &group.elements[group.starts[joint] as usize..group.starts[joint + 1] as usize];
            if elements.is_empty() {
                continue;
            }
            let negative = group.string != 0
                && (*odd.get_or_insert_with(|| self.layout.odd(code)) & group.string).count_ones() % 2 == 1;
            for CodedElement { value, bits, stays } in elements {
                let column = if *stays { code } else { (code & !group.bits) | bits };
                each(column, if negative { -value } else { *value });
            }
        }
    }

    /// Calls `each` with the words of some rows and their norms.
    pub fn codes(&self, first: usize, count: usize, mut each: impl FnMut(usize, u64, f64)) {
        match &self.to.orbits {
            Some(orbits) => (0..count).for_each(|k| each(k, orbits.least[first + k], orbits.norm(first + k))),
            None => {
                let mut walk = BasisPath::at(&self.to.plain, first);
                let mut code = self.layout.code(&walk.states);
                for k in 0..count {
                    each(k, code, 1.0);
                    if let Some(from) = walk.step() {
                        code = self.layout.code_from(code, &walk.states, from);
                    }
                }
            }
        }
    }

    /// Calls `each` with the entries of rows.
    fn walked(&self, first: usize, count: usize, mut each: impl FnMut(usize, &mut Vec<(u64, C64)>)) {
        let mut row = Vec::new();
        self.codes(first, count, |k, code, norm| {
            row.clear();
            let mut diagonal = C64::ZERO;
            self.raw(code, |word, value| {
                if self.square && word == code {
                    diagonal += value;
                } else if let Some((column, factor)) = self.column(word, norm) {
                    row.push((column, value * factor));
                }
            });
            if diagonal != C64::ZERO {
                row.push(((first + k) as u64, diagonal));
            }
            each(k, &mut row);
        });
    }

    /// The column of a word and its factor, for a row of this norm.
    #[inline]
    fn column(&self, code: u64, norm: f64) -> Option<(u64, C64)> {
        match &self.from.orbits {
            Some(orbits) => {
                let (orbit, factor) = orbits.of(code)?;
                let own = orbits.norm(orbit);
                let factor = if own == norm { factor } else { factor * (own / norm).sqrt() };
                Some((orbit as u64, factor))
            }
            None => {
                let number = match &self.numbers {
                    Some(numbers) => numbers.of(code)?,
                    None => self.from.plain.number(&self.layout.states(code)).ok().flatten()? as u64,
                };
                Some((number, C64::ONE))
            }
        }
    }
}

fn words(group: &LocalTerms, layout: &WordLayout) -> Words {
    let places: Vec<_> = group
        .sites
        .iter()
        .zip(&group.strides)
        .map(|(&i, &stride)| (layout.shifts[i], layout.masks[i], stride))
        .collect();
    let bits = places.iter().fold(0, |bits, &(shift, mask, _)| bits | (mask << shift));
    let string = group.string.iter().fold(0, |sites, &i| sites | (1 << i));
    let word = |element: &LocalEntry| {
        let put = |bits: u64, (s, &(shift, ..)): (&u8, &(u32, u64, usize))| bits | (u64::from(*s) << shift);
        let bits = element.states.iter().zip(&places).fold(0, put);
        CodedElement { value: element.value, bits, stays: element.states.is_empty() }
    };
    let elements = group.elements.iter().map(word).collect();
    Words { places, bits, string, starts: group.starts.clone(), elements }
}

impl RowSource for CodedRows {
    fn shape(&self) -> (usize, usize) {
        (self.to.dim(), self.from.dim())
    }

    fn work(&self) -> usize {
        self.groups.len() * (4 + self.from.symmetries()) + self.to.sites().count()
    }

    fn complex(&self) -> bool {
        let orbits = |space: &Subspace| space.orbits.as_ref().is_some_and(|o| o.complex());
        let element = |g: &Words| g.elements.iter().any(|e| e.value.im != 0.0);
        orbits(&self.to) || orbits(&self.from) || self.groups.iter().any(element)
    }

    fn bytes(&self) -> usize {
        let groups: usize = self.groups.iter().map(|g| 4 * g.starts.len() + 32 * g.elements.len()).sum();
        groups
            + self.numbers.as_ref().map_or(0, StateNumbers::bytes)
            + self.to.orbits.as_ref().map_or(0, |o| 12 * o.least.len() + o.actions.bytes())
    }

    fn visit(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, &[(u64, C64)])) {
        self.walked(first, count, |k, row| {
            tidy(row);
            each(k, row);
        });
    }

    fn scatter(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, &[(u64, C64)])) {
        self.walked(first, count, |k, row| each(k, row));
    }

    fn lengths(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, usize)) {
        if self.from.orbits.is_none() {
            return self.visit(first, count, &mut |k, row| each(k, row.len()));
        }
        self.codes(first, count, |k, code, _| {
            let (mut length, mut diagonal) = (0, false);
            self.raw(code, |word, _| {
                let here = self.square && word == code;
                length += usize::from(!here || !diagonal);
                diagonal |= here;
            });
            each(k, length);
        });
    }
}
