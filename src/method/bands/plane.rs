//! Planes of the Brillouin zone.

use crate::error::{Error, Result};
use crate::lattice::Bloch;

/// Two directions of the Brillouin zone, and the momenta along the others, in units of the reciprocal vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Plane {
    /// The two directions, in the order that fixes the sign of a Chern number.
    pub directions: [usize; 2],
    /// Momenta along the other directions, in their order.
    pub at: Vec<f64>,
}

impl Plane {
    pub(super) fn check(&self, bloch: &Bloch) -> Result<()> {
        let d = bloch.dimension();
        let [a, b] = self.directions;
        if d < 2 {
            return Err(Error::input("a plane of momenta takes two directions in which a model repeats")
                .hint("in one direction bands have a Berry phase instead"));
        }
        if a == b || a >= d || b >= d {
            return Err(Error::input(format!("directions {a} and {b} of {d} span no plane"))
                .hint("a plane takes two different directions with momenta, counted from 0"));
        }
        if self.at.len() + 2 != d || self.at.iter().any(|x| !x.is_finite()) {
            return Err(Error::input(format!("{} momenta beside a plane in {d} directions", self.at.len()))
                .hint(format!(
                    "`at` takes {}, one for each direction that is not in the plane",
                    d.saturating_sub(2)
                )));
        }
        Ok(())
    }

    pub(super) fn momentum(&self, first: f64, second: f64) -> Vec<f64> {
        let mut k = vec![0.0; self.at.len() + 2];
        let mut at = self.at.iter();
        for (d, k) in k.iter_mut().enumerate() {
            *k = match d {
                d if d == self.directions[0] => first,
                d if d == self.directions[1] => second,
                _ => at.next().copied().unwrap_or(0.0),
            };
        }
        k
    }

    /// -1 where the two lattice vectors of a plane are left-handed, so that signs are those of x and y.
    pub(super) fn hand(&self, bloch: &Bloch) -> f64 {
        let v = bloch.vectors();
        match (&v[self.directions[0]][..], &v[self.directions[1]][..]) {
            ([a, b], [c, d]) if a * d - b * c < 0.0 => -1.0,
            _ => 1.0,
        }
    }

    /// The area that the two reciprocal vectors span.
    pub(super) fn area(&self, bloch: &Bloch) -> f64 {
        let [a, b] = self.directions.map(|d| &bloch.reciprocal()[d]);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        (dot(a, a) * dot(b, b) - dot(a, b).powi(2)).max(0.0).sqrt()
    }
}
