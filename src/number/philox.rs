//! Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011): a random number is a function of a key and a counter. So
//! element `i` of a random vector is the same for any backend, number of threads or partition.
//!
//! The recipe, which every backend follows bit for bit: key = (low, high 32 bits of the seed); counter = (low, high 32
//! bits of the element's global index, column, stream). The four output words are used from the first on.

/// What a stream of random numbers is for. Streams of one seed never overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Stream {
    /// Entries of random block vectors.
    Vectors = 0,
    Disorder = 1,
    Vacancies = 2,
    /// Starting vectors of eigensolvers.
    Start = 3,
    Gauge = 4,
    /// Monte Carlo proposals and decisions.
    Walkers = 5,
    /// Numbers drawn by the script itself.
    Script = 6,
    Bonds = 7,
    Impurities = 8,
    Defects = 9,
    /// Vectors that operators are told apart by.
    Probes = 10,
    /// Vectors that those of a degenerate level are chosen by.
    Levels = 11,
}

/// Ten rounds on one counter.
#[inline(always)]
pub fn philox4x32(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            key[0] = key[0].wrapping_add(0x9E37_79B9);
            key[1] = key[1].wrapping_add(0xBB67_AE85);
        }
        let p0 = u64::from(counter[0]) * 0xD251_1F53;
        let p1 = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [
            (p1 >> 32) as u32 ^ counter[1] ^ key[0],
            p1 as u32,
            (p0 >> 32) as u32 ^ counter[3] ^ key[1],
            p0 as u32,
        ];
    }
    counter
}

/// The four words of element `index` in `column` of a stream.
#[inline(always)]
pub fn words(seed: u64, stream: u32, index: u64, column: u32) -> [u32; 4] {
    philox4x32([index as u32, (index >> 32) as u32, column, stream], [seed as u32, (seed >> 32) as u32])
}

/// A double in (0, 1) from two words: 52 random bits, centred in their cell, so that neither end is hit.
#[inline(always)]
pub fn unit(low: u32, high: u32) -> f64 {
    let bits = (u64::from(high) << 32 | u64::from(low)) >> 12;
    (bits as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

/// 1/n! of the powers that follow the first one, of the sine and of the cosine, the highest first.
const SINE: [f64; 8] = [
    1.0 / 355_687_428_096_000.0,
    -1.0 / 1_307_674_368_000.0,
    1.0 / 6_227_020_800.0,
    -1.0 / 39_916_800.0,
    1.0 / 362_880.0,
    -1.0 / 5040.0,
    1.0 / 120.0,
    -1.0 / 6.0,
];
const COSINE: [f64; 8] = [
    1.0 / 20_922_789_888_000.0,
    -1.0 / 87_178_291_200.0,
    1.0 / 479_001_600.0,
    -1.0 / 3_628_800.0,
    1.0 / 40320.0,
    -1.0 / 720.0,
    1.0 / 24.0,
    -0.5,
];

/// Sine and cosine of 2 pi `u`, `u` in (0, 1), by additions and multiplications in an order that every backend keeps,
/// so that the last bit is the same everywhere; the functions of mathematical libraries differ there.
#[inline(always)]
pub fn turn(u: f64) -> (f64, f64) {
    // Quarter turns are taken off exactly; at most an eighth of a turn is left.
    let quarter = (4.0 * u + 0.5).floor();
    let x = 2.0 * std::f64::consts::PI * (u - 0.25 * quarter);
    let z = x * x;
    let sum = |of: [f64; 8]| of[1..].iter().fold(of[0], |sum, c| sum * z + c);
    let (sin, cos) = (x + x * (z * sum(SINE)), 1.0 + z * sum(COSINE));
    match quarter as u32 % 4 {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

/// The natural logarithm of `u` in (0, 1), in the same way: ln m = 2 artanh((m - 1) / (m + 1)) of the mantissa m.
#[inline(always)]
pub fn log(u: f64) -> f64 {
    let bits = u.to_bits();
    let mantissa = f64::from_bits(bits & 0x000F_FFFF_FFFF_FFFF | 0x3FF0_0000_0000_0000);
    let exponent = (bits >> 52) as i32 - 1023;
    // Next to 1, where the logarithm is small.
    let high = mantissa > std::f64::consts::SQRT_2;
    let (m, e) = if high { (0.5 * mantissa, exponent + 1) } else { (mantissa, exponent) };
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let sum = (0..11).rev().fold(1.0 / 25.0, |sum, k| sum * z + 1.0 / f64::from(2 * k + 3));
    // ln 2 in two parts, the first of which has so few bits that its multiples are exact.
    let (upper, lower) = (f64::from_bits(0x3FE6_2E42_FEE0_0000), f64::from_bits(0x3DEA_39EF_3579_3C76));
    let e = f64::from(e);
    e * upper + (2.0 * s + (2.0 * s * (z * sum) + e * lower))
}

/// Two independent standard normal deviates from four words (Box and Muller).
#[inline(always)]
pub fn normals(w: [u32; 4]) -> (f64, f64) {
    let radius = (-2.0 * log(unit(w[0], w[1]))).sqrt();
    let (sin, cos) = turn(unit(w[2], w[3]));
    (radius * cos, radius * sin)
}

/// A sequential generator over one stream, for `rand`'s distributions.
#[derive(Debug, Clone)]
pub struct PhiloxRng {
    seed: u64,
    stream: u32,
    column: u32,
    index: u64,
    buffer: [u32; 4],
    used: usize,
}

impl PhiloxRng {
    /// Starts at element 0 of a column of a stream.
    pub fn new(seed: u64, stream: Stream, column: u32) -> Self {
        PhiloxRng { seed, stream: stream as u32, column, index: 0, buffer: [0; 4], used: 4 }
    }

    fn next_word(&mut self) -> u32 {
        if self.used == 4 {
            self.buffer = words(self.seed, self.stream, self.index, self.column);
            self.index += 1;
            self.used = 0;
        }
        self.used += 1;
        self.buffer[self.used - 1]
    }
}

impl rand::rand_core::TryRng for PhiloxRng {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.next_word())
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let low = u64::from(self.next_word());
        Ok(low | u64::from(self.next_word()) << 32)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        for chunk in bytes.chunks_mut(4) {
            let word = self.next_word().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known-answer vectors of Random123 (kat_vectors, philox4x32 10).
    #[test]
    fn known_answers() {
        assert_eq!(philox4x32([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(
            philox4x32([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]
        );
        assert_eq!(
            philox4x32([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]
        );
    }

    #[test]
    fn turns_and_logarithms_are_those_of_libraries() {
        let close = |a: f64, b: f64| (a - b).abs() <= 4.0 * f64::EPSILON * b.abs().max(1e-8);
        let check = |u: f64| {
            let (sin, cos) = turn(u);
            let (s, c) = (2.0 * std::f64::consts::PI * u).sin_cos();
            // The library's argument is rounded, ours is reduced before.
            assert!((sin - s).abs() < 2e-15 && (cos - c).abs() < 2e-15, "{u}: {sin} {cos}, {s} {c}");
            assert!(close(log(u), u.ln()), "{u}: {} {}", log(u), u.ln());
        };
        (0..100_000).for_each(|i| {
            let w = words(1, 2, i, 3);
            check(unit(w[0], w[1]));
        });
        [unit(0, 0), unit(u32::MAX, u32::MAX), 0.125, 0.25, 0.5, 0.75, 0.875, 1e-9]
            .into_iter()
            .for_each(check);
    }

    #[test]
    fn units_stay_inside() {
        assert!(unit(0, 0) > 0.0 && unit(u32::MAX, u32::MAX) < 1.0);
    }
}
