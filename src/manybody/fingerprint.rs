//! A number of what was put in, in its order, that tells one thing from another. It is no seal: whoever wants two to be
//! alike can make them so.

use crate::number::C64;

pub(in crate::manybody) struct ModelHash(u64);

impl ModelHash {
    pub fn new() -> ModelHash {
        ModelHash(0xcbf2_9ce4_8422_2325)
    }

    pub fn add(&mut self, x: u64) {
        self.0 = (self.0 ^ x).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }

    pub fn add_text(&mut self, text: &str) {
        text.bytes().chain([0]).for_each(|byte| self.add(byte.into()));
    }

    pub fn add_complex(&mut self, z: C64) {
        self.add(z.re.to_bits());
        self.add(z.im.to_bits());
    }

    /// The number; as a signed one it is positive, too.
    pub fn finish(self) -> u64 {
        self.0 >> 1
    }
}
