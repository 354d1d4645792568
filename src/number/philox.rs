//! Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011): a random number is a function of a key and a counter, so that
//! element `i` of a random vector is the same on any backend, thread count or partition.
//!
//! The recipe, which every backend follows bit for bit: key = (low, high 32 bits of the seed); counter = (low, high 32
//! bits of the element's global index, column, stream). The four output words are used from the first on.

/// What a stream of random numbers is for. Streams of one seed never overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Stream {
    /// Entries of random block vectors.
    Vectors = 0,
    /// Anderson disorder.
    Disorder = 1,
    /// Removal of sites.
    Vacancies = 2,
    /// Starting vectors of eigensolvers.
    Start = 3,
    /// Gauge links.
    Gauge = 4,
    /// Monte Carlo proposals and decisions.
    Walkers = 5,
    /// Numbers drawn by the script itself.
    Script = 6,
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

/// Two independent standard normal deviates from four words (Box and Muller).
#[inline(always)]
pub fn normals(w: [u32; 4]) -> (f64, f64) {
    let radius = (-2.0 * unit(w[0], w[1]).ln()).sqrt();
    let (sin, cos) = (2.0 * std::f64::consts::PI * unit(w[2], w[3])).sin_cos();
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
    fn units_stay_inside() {
        assert!(unit(0, 0) > 0.0 && unit(u32::MAX, u32::MAX) < 1.0);
    }
}
