//! Product states as words of bits, and the action of group elements on them. A word is cut into pieces of some bits;
//! each element has a table for every piece, which gives the image of the piece.

use super::super::sites::Sites;
use super::group::SymmetryGroup;
use crate::error::{Error, Result};
use crate::number::{C64, memory};

/// Bits of a word.
const WORD: u32 = 64;
/// Bytes of tables that stay near the processor.
const NEAR: usize = 1 << 20;
/// The most bits of a piece of a word.
const WIDEST: u32 = 11;

/// Where the states of the sites stand in a word: site 0 in the highest bits, so that words are in the order of states.
#[derive(Debug, Clone)]
pub(super) struct WordLayout {
    /// Lowest bit of each site.
    pub shifts: Vec<u32>,
    /// Bits of each site, at the lowest place.
    pub masks: Vec<u64>,
    pub bits: u32,
    pieces: Vec<Digit>,
    /// For each piece and its values, the sites with an odd number of fermions, as bits; none without fermions.
    odd: Option<Vec<u64>>,
}

/// Some sites in a row.
#[derive(Debug, Clone)]
struct Digit {
    sites: std::ops::Range<usize>,
    shift: u32,
    mask: u64,
    /// Where its entries begin in a table.
    start: usize,
}

impl WordLayout {
    /// Words for these sites, in pieces of at most `widest` bits, or of one site.
    ///
    /// # Errors
    /// When a word is too short.
    pub fn new(sites: &Sites, widest: u32) -> Result<WordLayout> {
        let bits_of = |dim: usize| usize::BITS - (dim.max(2) - 1).leading_zeros();
        let bits: Vec<u32> = sites.iter().map(|site| bits_of(site.dim())).collect();
        let all: u32 = bits.iter().sum();
        if all > WORD {
            return Err(Error::input(format!("{sites} take {all} bits per state, and the limit is {WORD}"))
                .hint("symmetries, entanglement and operators between sectors need fewer sites"));
        }
        let mut shifts = vec![0; bits.len()];
        for i in (1..bits.len()).rev() {
            shifts[i - 1] = shifts[i] + bits[i];
        }
        let masks: Vec<u64> = bits.iter().map(|&b| u64::MAX >> (WORD - b)).collect();
        let (mut pieces, mut start, mut first) = (Vec::new(), 0, 0);
        while first < bits.len() {
            let mut wide = bits[first];
            let mut end = first + 1;
            while end < bits.len() && wide + bits[end] <= widest {
                wide += bits[end];
                end += 1;
            }
            pieces.push(Digit {
                sites: first..end,
                shift: shifts[end - 1],
                mask: u64::MAX >> (WORD - wide),
                start,
            });
            start += 1 << wide;
            first = end;
        }
        let mut layout = WordLayout { shifts, masks, bits: all, pieces, odd: None };
        if sites.iter().any(|site| (0..site.dim()).any(|s| site.is_odd(s))) {
            let is_odd =
                |i: usize, s: usize| sites.site(i).is_ok_and(|site| s < site.dim() && site.is_odd(s));
            let one = |i: usize, s: usize| if is_odd(i, s) { 1 << i } else { 0 };
            layout.odd = Some(layout.table(0u64, |all, i, s| all | one(i, s)));
        }
        Ok(layout)
    }

    /// A table over the values of all pieces: `add` puts in the states of the sites of a piece one by one.
    fn table<T: Copy>(&self, none: T, add: impl Fn(T, usize, usize) -> T) -> Vec<T> {
        let mut all = Vec::new();
        for piece in &self.pieces {
            all.extend((0..=piece.mask).map(|value| {
                let state = |i: usize| ((value >> (self.shifts[i] - piece.shift)) & self.masks[i]) as usize;
                piece.sites.clone().fold(none, |sum, i| add(sum, i, state(i)))
            }));
        }
        all
    }

    /// Entries of a table.
    fn entries(&self) -> usize {
        self.pieces.iter().map(|p| p.mask as usize + 1).sum()
    }

    /// Calls `each` with the place of each piece in a table.
    #[inline(always)]
    fn each(&self, code: u64, mut each: impl FnMut(usize)) {
        for piece in &self.pieces {
            each(piece.start + ((code >> piece.shift) & piece.mask) as usize);
        }
    }

    /// The word of local states.
    pub fn code(&self, states: &[u8]) -> u64 {
        states.iter().zip(&self.shifts).fold(0, |code, (&s, shift)| code | (u64::from(s) << shift))
    }

    /// The word of local states, of which those before site `from` are the ones that made `code`.
    #[inline]
    pub fn code_from(&self, code: u64, states: &[u8], from: usize) -> u64 {
        let shift = self.shifts[from] + self.masks[from].count_ones();
        let kept = code.checked_shr(shift).unwrap_or(0).checked_shl(shift).unwrap_or(0);
        states[from..]
            .iter()
            .zip(&self.shifts[from..])
            .fold(kept, |code, (&s, at)| code | (u64::from(s) << at))
    }

    /// The local states of a word.
    pub fn states(&self, code: u64) -> Vec<u8> {
        self.shifts.iter().zip(&self.masks).map(|(shift, mask)| ((code >> shift) & mask) as u8).collect()
    }

    /// The sites with an odd number of fermions, as bits.
    #[inline]
    pub fn odd(&self, code: u64) -> u64 {
        let mut sites = 0;
        if let Some(odd) = &self.odd {
            self.each(code, |at| sites |= odd[at]);
        }
        sites
    }
}

/// What the elements of a group do to words.
#[derive(Debug)]
pub(super) struct Actions {
    pub layout: WordLayout,
    /// What becomes of each value of each piece, element after element.
    images: Vec<u64>,
    /// Of each element and value, the sites whose fermions pass those of the piece, odd times, as bits; none where no
    /// sign changes.
    passed: Option<Vec<u64>>,
    /// The product of phases of each value, element after element; none where all are one.
    phases: Option<Vec<C64>>,
    /// Entries that an element has in these lists.
    stride: usize,
    count: usize,
}

impl Actions {
    /// # Errors
    /// When a word is too short for the sites, or the tables do not fit into memory.
    pub fn new(sites: &Sites, group: &SymmetryGroup) -> Result<Actions> {
        let count = group.elements.len();
        let small = |layout: &WordLayout| 8 * layout.entries() * count <= NEAR;
        let mut layout = WordLayout::new(sites, WIDEST)?;
        for widest in (8..WIDEST).rev() {
            if small(&layout) {
                break;
            }
            layout = WordLayout::new(sites, widest)?;
        }
        let stride = layout.entries();
        let fermions = layout.odd.is_some();
        let turns = |element: &super::moves::Move| -> bool {
            element.local.iter().flatten().any(|l| l.phases.iter().any(|z| *z != C64::ONE))
        };
        let phased = group.elements.iter().any(turns);
        let each = 8 * (1 + usize::from(fermions) + 2 * usize::from(phased));
        memory::ensure((stride * count * each) as u128, &format!("what {count} symmetries do to states"))?;
        let mut images = Vec::with_capacity(stride * count);
        let mut passed = fermions.then(|| Vec::with_capacity(stride * count));
        let mut phases = phased.then(|| Vec::with_capacity(stride * count));
        let dims: Vec<usize> = sites.iter().map(|site| site.dim()).collect();
        for element in &group.elements {
            crate::task::poll()?;
            let locals: Vec<_> = (0..dims.len()).map(|i| element.at(i, dims[i])).collect();
            // Words that stand for no state stay within their bits.
            let state = |i: usize, s: usize| locals[i].states.get(s).map_or(0, |&s| u64::from(s));
            let there = |i: usize| layout.shifts[element.to[i] as usize];
            images.extend(layout.table(0u64, |code, i, s| code | (state(i, s) << there(i))));
            if let Some(passed) = &mut passed {
                // Site i passes the later sites that land before it.
                let passed_by = |i: usize| {
                    let later = (i + 1..dims.len()).filter(|&j| element.to[j] < element.to[i]);
                    later.fold(0u64, |sites, j| sites | (1 << j))
                };
                let passes: Vec<u64> = (0..dims.len()).map(passed_by).collect();
                let odd = |i: usize, s: usize| sites.site(i).is_ok_and(|site| s < dims[i] && site.is_odd(s));
                passed.extend(layout.table(0u64, |all, i, s| if odd(i, s) { all ^ passes[i] } else { all }));
            }
            if let Some(phases) = &mut phases {
                let phase = |i: usize, s: usize| locals[i].phases.get(s).copied().unwrap_or(C64::ONE);
                phases.extend(layout.table(C64::ONE, |all, i, s| super::moves::unit(all * phase(i, s))));
            }
        }
        // Sites that keep their order change no sign.
        let passed = passed.filter(|all| all.iter().any(|&sites| sites != 0));
        Ok(Actions { layout, images, passed, phases, stride, count })
    }

    /// Bytes of the tables.
    pub fn bytes(&self) -> usize {
        8 * self.images.len()
            + 8 * self.passed.as_ref().map_or(0, Vec::len)
            + 16 * self.phases.as_ref().map_or(0, Vec::len)
    }

    /// Elements of the group.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether some phase is complex.
    pub fn complex(&self) -> bool {
        self.phases.iter().flatten().any(|z| z.im != 0.0)
    }

    /// The word that an element makes of one.
    #[inline(always)]
    pub fn image(&self, element: usize, code: u64) -> u64 {
        let (start, mut image) = (element * self.stride, 0);
        self.layout.each(code, |at| image |= self.images[start + at]);
        image
    }

    /// The phase that an element takes a word to its image with.
    #[inline]
    pub fn phase(&self, element: usize, code: u64) -> C64 {
        let start = element * self.stride;
        let mut phase = C64::ONE;
        if let Some(phases) = &self.phases {
            self.layout.each(code, |at| phase *= phases[start + at]);
        }
        if let Some(passed) = &self.passed {
            let mut sites = 0;
            self.layout.each(code, |at| sites ^= passed[start + at]);
            if (self.layout.odd(code) & sites).count_ones() % 2 == 1 {
                phase = -phase;
            }
        }
        phase
    }

    /// The least image of a word, and an element that makes it.
    #[inline]
    pub fn least(&self, code: u64) -> (u64, usize) {
        let mut best = (code, 0);
        for element in 1..self.count {
            let image = self.image(element, code);
            if image < best.0 {
                best = (image, element);
            }
        }
        best
    }
}
