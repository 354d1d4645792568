//! How fast the parts are.

use crate::backend::Device;

/// Sizes of dense products that are alike in speed: a step function
/// (Nemes, Barcza, Nagy, Legeza, Szolgay, CPC 185 (2014) 1570).
pub(super) mod class {
    /// How many classes there are.
    pub const COUNT: usize = 3;

    /// Side of a square matrix in the middle of each.
    pub const SIDES: [usize; COUNT] = [32, 128, 512];

    /// The class of a product of `rows x depth` and `depth x columns`.
    pub fn of(size: [usize; 3]) -> usize {
        let side = size.iter().map(|&n| n as f64).product::<f64>().cbrt();
        SIDES[1..].iter().filter(|&&next| side > 0.5 * next as f64).count()
    }
}

/// Operations a second of every part for each class of products; what rows take on the way to it and back, in seconds a
/// byte and at least.
#[derive(Debug)]
pub(super) struct Speeds {
    pub rates: Vec<[f64; class::COUNT]>,
    pub copies: Vec<f64>,
    pub least: Vec<f64>,
}

impl Speeds {
    pub fn parts(&self) -> usize {
        self.rates.len()
    }

    /// What a part takes for so many operations of each class.
    pub fn seconds(&self, part: usize, work: &[f64; class::COUNT]) -> f64 {
        work.iter().zip(&self.rates[part]).map(|(work, rate)| work / rate).sum()
    }

    /// What rows take on their way to a part and back.
    pub fn copy(&self, part: usize, bytes: f64) -> f64 {
        bytes * self.copies[part]
    }

    /// The rates of each part for people, in Tflop/s.
    pub fn text(&self, parts: &[Device]) -> String {
        let one = |(device, rates): (&Device, &[f64; class::COUNT])| {
            let rates: Vec<String> = rates.iter().map(|r| format!("{:.3}", 1e-12 * r)).collect();
            format!("{} {}", device.name(), rates.join(", "))
        };
        let all: Vec<String> = parts.iter().zip(&self.rates).map(one).collect();
        let sides = class::SIDES.map(|n| n.to_string()).join(", ");
        format!("superblocks, Tflop/s with blocks of {sides} states: {}", all.join("; "))
    }
}
