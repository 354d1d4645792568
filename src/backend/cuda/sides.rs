//! The side of the chip of each multiprocessor. If the second cache has two halves, data read by both sides cross the
//! link between them. The side is not documented, so it is found from the time of atomic additions.

use std::sync::Arc;

use super::arguments;
use super::card::{Card, ChipSides};
use crate::error::Result;

/// Multiprocessors that are told apart.
const MOST: usize = 256;

/// Addresses that are tried, and numbers between two of them: they spread over both halves of the cache.
const ADDRESSES: usize = 48;
const STRIDE: u32 = 1056;

/// Likeness of patterns of latencies above which two multiprocessors are on one side; below its negative, on two.
const ALIKE: f64 = 0.5;

/// The side of the chip that each multiprocessor is on, found once for each GPU.
pub(super) fn of(card: &Arc<Card>) -> Result<ChipSides> {
    if let Some(known) = card.sides.get() {
        return Ok(*known);
    }
    let found = find(card)?;
    Ok(*card.sides.get_or_init(|| found))
}

/// Finds the sides by some thousand additions.
fn find(card: &Arc<Card>) -> Result<ChipSides> {
    let at = card.upload(&vec![0u32; ADDRESSES * STRIDE as usize])?;
    let out = card.upload(&vec![u32::MAX; MOST * ADDRESSES])?;
    let (from, stride, count, to) = (at.address, STRIDE, ADDRESSES as u32, out.address);
    // SAFETY: the kernel's arguments; it touches a number every `STRIDE` and writes a row for each multiprocessor below
    // `MOST`.
    unsafe { card.launch("latencies", (card.processors, 1), 32, &arguments![from, stride, count, to])? };
    Ok(sides(&card.download(&out, MOST * ADDRESSES)?))
}

/// The sides by latencies, a row of addresses for each multiprocessor; rows of the largest number were not measured.
fn sides(latencies: &[u32]) -> ChipSides {
    let rows: Vec<Option<Vec<f64>>> = latencies
        .chunks(ADDRESSES)
        .map(|row| (!row.contains(&u32::MAX)).then(|| row.iter().map(|&x| f64::from(x)).collect()))
        .collect();
    let measured = rows.iter().flatten().count();
    // What an address has in common with all multiprocessors says nothing, nor how far off one of these lies.
    let mean = |at: usize| rows.iter().flatten().map(|row| row[at]).sum::<f64>() / measured as f64;
    let means: Vec<f64> = (0..ADDRESSES).map(mean).collect();
    let pattern = |row: &Vec<f64>| -> Vec<f64> {
        let off: Vec<f64> = row.iter().zip(&means).map(|(x, mean)| x - mean).collect();
        let average = off.iter().sum::<f64>() / ADDRESSES as f64;
        off.iter().map(|x| x - average).collect()
    };
    let patterns: Vec<Option<Vec<f64>>> = rows.iter().map(|row| row.as_ref().map(pattern)).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let first = patterns.iter().flatten().next()?;
    let (mut bits, mut others) = ([0; MOST / 32], 0);
    for (n, row) in patterns.iter().enumerate() {
        let Some(row) = row else { continue };
        let likeness = dot(first, row) / (dot(first, first) * dot(row, row)).sqrt();
        if likeness < -ALIKE {
            bits[n / 32] |= 1 << (n % 32);
            others += 1;
        } else if !(likeness > ALIKE) {
            return None;
        }
    }
    // Nearly all on one side is none.
    (4 * others >= measured && 4 * others <= 3 * measured).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Latencies of `count` multiprocessors, those of odd number on the far side of every third address and near the
    /// others.
    fn measured(count: usize, far: u32) -> Vec<u32> {
        let mut all = vec![u32::MAX; MOST * ADDRESSES];
        for n in 0..count {
            for at in 0..ADDRESSES {
                let other = (n % 2 == 1) == (at % 3 == 0);
                let noise = (n * 31 + at * 17) % 13;
                all[n * ADDRESSES + at] = 300 + 2 * n as u32 + noise as u32 + if other { far } else { 0 };
            }
        }
        all
    }

    #[test]
    fn multiprocessors_are_told_apart_by_what_is_far_from_them() {
        let bits = sides(&measured(132, 200)).unwrap();
        for n in 0..132 {
            assert_eq!(bits[n / 32] >> (n % 32) & 1, n as u32 % 2, "{n}");
        }
    }

    #[test]
    fn a_chip_without_sides_has_none() {
        assert_eq!(sides(&measured(132, 0)), None);
        assert_eq!(sides(&measured(1, 200)), None);
        assert_eq!(sides(&measured(0, 200)), None);
    }
}
