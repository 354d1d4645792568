//! Pieces of a lead: reflection at their ends, transmission, and infinite chains of pieces.

use faer::Mat;

use super::dense::{inverse, largest, one_less};
use crate::number::C64;

/// A piece of a lead: what comes back from its inner end (`left`) and its outer end (`right`), and what passes.
pub struct LeadSlab {
    pub left: Mat<C64>,
    pub inward: Mat<C64>,
    pub outward: Mat<C64>,
    pub right: Mat<C64>,
}

/// What passes a piece of a lead, `to from`, by as few waves as there are.
pub struct TransmissionFactors {
    pub to: Mat<C64>,
    pub from: Mat<C64>,
}

/// Most doublings of a piece.
const MOST_DOUBLINGS: usize = 100;
/// Doublings after which it is looked at how many waves still pass, of so many at least.
const LOOKED: std::ops::Range<usize> = 3..12;
const MANY_WAVES: usize = 12;
/// The part of the waves that go on alone: with more of them, what they save is less than what it takes.
const FEW: f64 = 0.9;

impl LeadSlab {
    pub fn is_finite(&self) -> bool {
        [&self.left, &self.inward, &self.outward, &self.right].iter().all(|m| largest(m.as_ref()).is_finite())
    }

    /// What comes back from a chain of them without end. Waves that decay are soon gone, those of which less than
    /// `passed` is left: the others go on alone.
    pub fn end(mut self, passed: f64) -> Option<Mat<C64>> {
        for doublings in 0..MOST_DOUBLINGS {
            if largest(self.inward.as_ref()) * largest(self.outward.as_ref()) <= 0.1 * passed {
                break;
            }
            let waves = self.left.nrows();
            if LOOKED.contains(&doublings) && waves >= MANY_WAVES {
                let few = |lasting: &TransmissionFactors| lasting.to.ncols() as f64 <= FEW * waves as f64;
                let outward = Some(TransmissionFactors::new(&self.outward, passed)).filter(few);
                let both = outward.map(|outward| (outward, TransmissionFactors::new(&self.inward, passed)));
                if let Some((outward, inward)) = both.filter(|(_, inward)| few(inward)) {
                    let behind = self.between_lasting(&outward, &inward)?.end(passed)?;
                    return Some(self.left + inward.to * behind * outward.from);
                }
            }
            self = self.twice()?;
        }
        Some(self.left)
    }

    /// What stands between two of them in a chain, as a piece of a lead whose waves are those that pass them: x
    /// outward, behind the piece before, and y inward, behind the piece after. With p and q between both,
    /// `p = to_out x + right q` and `q = left p + to_in y`, and of these `from_out p` and `from_in q` go on.
    fn between_lasting(
        &self,
        outward: &TransmissionFactors,
        inward: &TransmissionFactors,
    ) -> Option<LeadSlab> {
        let between = inverse(one_less(&(&self.right * &self.left)).as_ref())?;
        let (of_x, of_y) = (&between * &outward.to, &between * (&self.right * &inward.to));
        Some(LeadSlab {
            left: &inward.from * (&self.left * &of_x),
            inward: &inward.from * (&inward.to + &self.left * &of_y),
            outward: &outward.from * of_x,
            right: &outward.from * of_y,
        })
    }

    /// Two of them, one behind the other.
    pub fn twice(&self) -> Option<LeadSlab> {
        let between = inverse(one_less(&(&self.right * &self.left)).as_ref())?;
        let ahead = &between * &self.outward;
        let back = &between * (&self.right * &self.inward);
        Some(LeadSlab {
            left: &self.left + &self.inward * (&self.left * &ahead),
            outward: &self.outward * &ahead,
            inward: &self.inward * (&self.inward + &self.left * &back),
            right: &self.right + &self.outward * &back,
        })
    }

    /// Whether waves do the same backward in time: all matrices are their own transposes, or each other's.
    pub fn is_reversible(&self) -> bool {
        let same = |a: &Mat<C64>, b: &Mat<C64>| largest((a - b.transpose()).as_ref()) <= SAME;
        same(&self.left, &self.left) && same(&self.right, &self.right) && same(&self.inward, &self.outward)
    }
}

/// Matrices that differ by less are the same: some roundings of what is of unit size.
const SAME: f64 = 3e-14;

impl TransmissionFactors {
    /// By rotations with pivots: waves of unit size, and what becomes of those that come.
    pub fn new(passes: &Mat<C64>, passed: f64) -> TransmissionFactors {
        let n = passes.nrows();
        let d = passes.col_piv_qr();
        let (r, places) = (d.thin_R(), d.P());
        let rank = (0..n).take_while(|&k| r[(k, k)].norm() > passed).count();
        let to = d.compute_thin_Q().subcols(0, rank).to_owned();
        TransmissionFactors { to, from: r.subrows(0, rank) * places }
    }
}
