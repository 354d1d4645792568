//! Sums over the sites of a field that are the same to the last bit for any division of the sites between threads,
//! ranks or boxes. Numbers are added as whole multiples of 2^-72, so their order does not matter. Smaller parts of a
//! number are below the rounding of any sum over a field.

use rayon::prelude::*;

use super::links::Links;
use crate::backend::Region;
use crate::error::Result;
use crate::task;

/// Sites that are summed between two checks for interruption.
const CHUNK: usize = 256;

/// Numbers are counted in units of 2^-72.
const UNIT: f64 = 1.0 / (1u128 << 72) as f64;

/// Larger numbers are none of a field; a sum of 2^13 of them has room.
const LARGEST: f64 = (1u64 << 42) as f64;

/// A sum of numbers in any order.
#[derive(Debug, Clone, Copy, Default)]
struct Exact {
    units: i128,
    /// Whether a number was not finite, or too large.
    lost: bool,
}

impl Exact {
    fn add(&mut self, x: f64) {
        // The comparison is written so that NaN is lost, too.
        if x.abs() <= LARGEST {
            self.units += (x / UNIT) as i128;
        } else {
            self.lost = true;
        }
    }

    fn join(self, other: Exact) -> Exact {
        Exact { units: self.units.wrapping_add(other.units), lost: self.lost || other.lost }
    }

    fn value(self) -> f64 {
        if self.lost { f64::NAN } else { self.units as f64 * UNIT }
    }
}

/// The sums over ranks.
fn over_ranks<const N: usize>(region: &Region, own: [Exact; N]) -> Result<[f64; N]> {
    let words = own.iter().flat_map(|sum| [sum.units as u64, (sum.units >> 64) as u64, sum.lost.into()]);
    let mut sums = [Exact::default(); N];
    for of_rank in region.gathered(words.collect())? {
        for (sum, words) in sums.iter_mut().zip(of_rank.chunks_exact(3)) {
            let units = (u128::from(words[1]) << 64 | u128::from(words[0])) as i128;
            *sum = sum.join(Exact { units, lost: words[2] > 0 });
        }
    }
    Ok(sums.map(Exact::value))
}

/// The sums over all sites of numbers that a function gives for the place of each.
///
/// # Errors
/// Those of MPI.
pub(super) fn sums<const N: usize>(u: &Links, f: impl Fn(usize) -> [f64; N] + Sync) -> Result<[f64; N]> {
    let (region, stop) = (u.region(), task::current());
    let chunk = |i: usize| {
        stop.heed();
        let mut sums = [Exact::default(); N];
        let places = i * CHUNK..((i + 1) * CHUNK).min(region.places());
        for place in places.filter(|&place| region.is_own(place)) {
            sums.iter_mut().zip(f(place)).for_each(|(sum, x)| sum.add(x));
        }
        sums
    };
    let join = |a: [Exact; N], b: [Exact; N]| std::array::from_fn(|k| a[k].join(b[k]));
    let own = (0..region.places().div_ceil(CHUNK))
        .into_par_iter()
        .map(chunk)
        .reduce(|| [Exact::default(); N], join);
    over_ranks(region, own)
}

/// The sum of numbers of which each rank has some.
///
/// # Errors
/// Those of MPI.
pub(super) fn sum_of<const N: usize>(region: &Region, own: &[[f64; N]]) -> Result<[f64; N]> {
    let mut sums = [Exact::default(); N];
    own.iter().for_each(|numbers| sums.iter_mut().zip(numbers).for_each(|(sum, x)| sum.add(*x)));
    over_ranks(region, sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_their_order_and_lose_nothing() {
        let numbers: Vec<f64> = (0..1000).map(|k| (f64::from(k) * 0.7).sin() * 18.0).collect();
        let of = |list: &mut dyn Iterator<Item = &f64>| {
            let mut sum = Exact::default();
            list.for_each(|x| sum.add(*x));
            sum.value()
        };
        let (there, back) = (of(&mut numbers.iter()), of(&mut numbers.iter().rev()));
        assert_eq!(there.to_bits(), back.to_bits());
        assert!((there - numbers.iter().sum::<f64>()).abs() < 1e-11);
        assert_eq!(of(&mut [1e9, 1e-9, -1e9].iter()), 1e-9f64.mul_add(1.0 / UNIT, 0.0).trunc() * UNIT);
        assert_eq!(of(&mut [0.1; 10].iter()), 1.0);
        assert!(of(&mut [1.0, f64::NAN].iter()).is_nan() && of(&mut [f64::INFINITY].iter()).is_nan());
    }
}
