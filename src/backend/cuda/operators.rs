//! The operators of a superblock's records, where the kernels find them: on the GPU all at once, or in windows that
//! travel there from main memory one after the other.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::card::{Card, CardBuffer};
use super::places::{on_card, on_other_card};
use super::travel::TravellingWindows;
use crate::backend::BlockVector;
use crate::backend::matrix::held::HeldMatrix;
use crate::backend::matrix::records::{OperatorPiece, RecordList};
use crate::error::Result;

/// Where the operators are.
pub(super) enum OperatorMemory {
    /// On the GPU.
    Resident(#[expect(dead_code, reason = "kept alive for the kernels, which have its address")] CardBuffer),
    /// In main memory.
    Travelling(Mutex<TravellingWindows>),
}

impl OperatorMemory {
    pub fn place(&self) -> &'static str {
        match self {
            OperatorMemory::Resident(_) => "",
            OperatorMemory::Travelling(_) => ", operators in main memory",
        }
    }
}

/// Operators of a list where the kernels find them, in windows of those that are on the GPU together.
pub(super) struct PlacedOperators {
    /// Of each operator its window, its address and its rows.
    at: HashMap<*const HeldMatrix<f64>, (usize, u64, u32)>,
    /// Blocks of operators that the card has made itself, and how many numbers of these are used.
    pub made_here: Vec<BlockVector>,
    pub here: usize,
    pub operators: OperatorMemory,
    pub windows: Vec<Range<usize>>,
}

impl PlacedOperators {
    /// Places them in so much room, or in all that the card has but for `left` bytes.
    pub fn new(
        card: &Arc<Card>,
        list: &RecordList<f64>,
        wanted: Option<usize>,
        left: usize,
    ) -> Result<PlacedOperators> {
        let mut at: HashMap<*const HeldMatrix<f64>, (usize, u64, u32)> = HashMap::new();
        let (mut matrices, mut made_here, mut here) = (Vec::new(), Vec::new(), 0);
        let size = |m: &HeldMatrix<f64>| m.nrows() * m.ncols();
        for m in list.matrices() {
            // Where somebody says how much room there is, all that is beyond stays in main memory.
            let known = on_card(card, m).filter(|(_, place)| !place.by_rows && wanted.is_none());
            match known {
                Some((block, place)) => {
                    at.insert(Arc::as_ptr(m), (0, place.address, m.nrows() as u32));
                    made_here.push(block);
                    here += size(m);
                }
                None => matrices.push(m),
            }
        }
        let numbers: usize = matrices.iter().map(|m| size(m)).sum();
        let free = || card.memory().0.saturating_sub(left);
        let mut room = wanted.unwrap_or_else(free) / 8;
        while numbers > room && wanted.is_none() && card.send_home()? {
            room = free() / 8;
        }
        let most = if numbers <= room { numbers } else { room / 2 };
        let mut windows: Vec<Range<usize>> = Vec::new();
        for m in &matrices {
            let end = windows.last().map_or(0, |last| last.end);
            if windows.last().is_none_or(|last| last.len() + size(m) > most) {
                windows.push(end..end);
            }
            let window = windows.len() - 1;
            at.insert(Arc::as_ptr(m), (window, 8 * (end - windows[window].start) as u64, m.nrows() as u32));
            windows[window].end = end + size(m);
        }
        if windows.is_empty() {
            windows.push(0..0);
        }
        let (operators, bases) = bring(card, &matrices, numbers, &windows)?;
        for m in &matrices {
            if let Some((window, first, _)) = at.get_mut(&Arc::as_ptr(m)) {
                *first += bases[*window % 2];
            }
        }
        Ok(PlacedOperators { at, made_here, here, operators, windows })
    }

    /// Window, address and rows of a factor's operator.
    pub fn place(&self, f: &OperatorPiece<f64>) -> (usize, u64, u32) {
        f.matrix.as_ref().and_then(|m| self.at.get(&Arc::as_ptr(m))).copied().unwrap_or_default()
    }

    /// Numbers that are kept on the GPU beside those made there.
    pub fn held(&self) -> usize {
        let longest = self.windows.iter().map(Range::len).max().unwrap_or(0);
        if self.windows.len() == 1 { longest } else { 2 * longest }
    }
}

/// Brings the operators to the GPU, or to where they begin to travel;
/// returns where those of even and of odd windows begin.
fn bring(
    card: &Arc<Card>,
    matrices: &[&Arc<HeldMatrix<f64>>],
    numbers: usize,
    windows: &[Range<usize>],
) -> Result<(OperatorMemory, [u64; 2])> {
    if windows.len() == 1 {
        let buffer = card.allocate(8 * numbers)?;
        let (base, mut packed, mut at) = (buffer.address, Vec::new(), 0);
        // Those of another card come from there, which keeps them until they have.
        let mut coming = Vec::new();
        for m in matrices {
            if let Some((there, from)) = on_other_card(card, m)? {
                let bytes = 8 * m.nrows() * m.ncols();
                card.copy_there(from, base + at as u64, bytes)?;
                at += bytes;
                coming.push(there);
                continue;
            }
            packed.clear();
            for column in m.here_alone()?.col_iter() {
                match column.try_as_col_major() {
                    Some(column) => packed.extend_from_slice(column.as_slice()),
                    None => packed.extend(column.iter()),
                }
            }
            card.overwrite_at::<f64>(&buffer, at, &packed)?;
            at += 8 * packed.len();
        }
        if !coming.is_empty() {
            card.synchronize("matrices of another GPU")?;
        }
        return Ok((OperatorMemory::Resident(buffer), [base; 2]));
    }
    let longest = windows.iter().map(Range::len).max().unwrap_or(0);
    let here = matrices.iter().map(|m| m.here_alone()).collect::<Result<Vec<_>>>()?;
    let columns = here.iter().flat_map(|m| (0..m.ncols()).map(|j| m.col(j)));
    let travelling = TravellingWindows::new(card, columns.flat_map(|c| c.iter().copied()), numbers, longest)?;
    let bases = travelling.places();
    Ok((OperatorMemory::Travelling(Mutex::new(travelling)), bases))
}
