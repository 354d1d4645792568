//! The polarisability of the electrons in bands, for non-interacting electrons, as in the random phase approximation:
//! Lindhard's sum over pairs of states (Lindhard, Mat. Fys. Medd. Dan. Vid. Selsk. 28, 8 (1954)).

use std::f64::consts::TAU;

use rayon::prelude::*;

use super::grid::MomentumGrid;
use super::size::{finite_at, power_of_two_near};
use super::{CHUNK, levels};
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::method::fermi::fermi;
use crate::number::{C64, memory};
use crate::task::Task;

/// Which polarisability is asked for.
#[derive(Debug, Clone)]
pub struct PolarizationOptions {
    /// Momenta in each direction.
    pub grid: Vec<usize>,
    pub frequencies: Vec<f64>,
    pub potential: f64,
    pub temperature: f64,
    /// The imaginary part of the frequencies.
    pub eta: f64,
}

/// `1/V sum_k sum_nm (f_nk - f_mk+q)/(w + i eta + E_nk - E_mk+q) |<m k+q| exp(i q r) |n k>|^2` for each frequency `w`,
/// with the orbitals at their places; `q` in units of the reciprocal vectors. States are counted once:
/// two spins give twice as much.
///
/// # Errors
/// A momentum or a grid of another dimension; a width or a temperature that is none; a model with holes; no memory;
/// interruption.
pub fn polarizability(bloch: &Bloch, q: &[f64], o: &PolarizationOptions, task: &Task) -> Result<Vec<C64>> {
    let d = bloch.dimension();
    if q.len() != d || q.iter().any(|x| !x.is_finite()) {
        return Err(Error::input(format!("a momentum {q:?} for {d} periodic directions")).hint(
            "momenta are in units of the reciprocal vectors, one finite number per periodic direction",
        ));
    }
    if bloch.cell().holes().is_some() {
        return Err(Error::input("the polarisability of a superconductor")
            .hint("its pairs screen too: this sum is for electrons alone"));
    }
    for (value, what, zero) in [(o.eta, "eta", false), (o.temperature, "the temperature", true)] {
        let fits = value.is_finite() && (value > 0.0 || (zero && value == 0.0));
        if !fits {
            return Err(Error::input(format!("{what} is {value}")).hint(if zero {
                "it is an energy, zero or above"
            } else {
                "it is an energy above zero"
            }));
        }
    }
    if !o.potential.is_finite() || o.frequencies.iter().any(|w| !w.is_finite()) {
        return Err(Error::input("a frequency or a chemical potential that is not finite")
            .hint("look for a division by zero"));
    }
    let grid = MomentumGrid::new(&o.grid, d)?;
    let total = grid.total();
    let rows = bloch.rows();
    memory::ensure(16 * (CHUNK * o.frequencies.len()) as u128, "polarisabilities of some momenta")?;
    let waves: Vec<C64> = (0..rows)
        .map(|row| C64::cis(TAU * bloch.place(row).iter().zip(q).map(|(x, q)| x * q).sum::<f64>()))
        .collect();
    let one = |p: usize| -> Result<Vec<C64>> {
        let k = grid.momentum(p);
        let beyond: Vec<f64> = k.iter().zip(q).map(|(k, q)| k + q).collect();
        let (from, to) = (levels(bloch, &k)?, levels(bloch, &beyond)?);
        let full = |energy: &f64| fermi(*energy, o.potential, o.temperature);
        let (u, v) = (from.vectors.data().to_complex(), to.vectors.data().to_complex());
        let mut sum = vec![C64::ZERO; o.frequencies.len()];
        let all = from.energies.iter().chain(&to.energies).chain(&o.frequencies);
        let unit = power_of_two_near(all.copied().chain([o.eta]));
        for (n, e) in from.energies.iter().enumerate() {
            for (m, after) in to.energies.iter().enumerate() {
                let filled = full(e) - full(after);
                if filled == 0.0 {
                    continue;
                }
                let overlap: C64 =
                    (0..rows).map(|i| v[i * rows + m].conj() * waves[i] * u[i * rows + n]).sum();
                let weight = filled * overlap.norm_sqr();
                for (sum, w) in sum.iter_mut().zip(&o.frequencies) {
                    *sum += weight / C64::new((w + e - after) / unit, o.eta / unit) / unit;
                }
            }
        }
        Ok(sum)
    };
    let steps = task.start("polarisability", total);
    let mut sum = vec![C64::ZERO; o.frequencies.len()];
    for first in (0..total).step_by(CHUNK) {
        let part: Result<Vec<_>> = (first..total.min(first + CHUNK)).into_par_iter().map(one).collect();
        for part in part? {
            sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        }
        steps.advance(total.min(first + CHUNK))?;
    }
    let volume = bloch.cell().geometry().volume()?;
    sum.iter_mut().for_each(|x| *x /= volume * total as f64);
    finite_at("polarisability", &o.frequencies, sum)
}

/// A place is far from a piece if this times its distance exceeds half the piece.
const FAR: f64 = 0.3;
/// Terms of a series in the square of that, to rounding.
const FAR_TERMS: u32 = 15;

/// Hilbert's transform `1/pi P Int y(x)/(x - at) dx` of values at ascending places,
/// linear between them and zero outside.
///
/// # Errors
/// Not as many values as places, fewer than two, places that do not ascend, numbers that are not finite; an end of the
/// places where the values jump to zero.
pub fn hilbert(x: &[f64], y: &[f64], at: &[f64]) -> Result<Vec<f64>> {
    if x.len() != y.len() || x.len() < 2 {
        return Err(Error::input(format!("{} values at {} places", y.len(), x.len()))
            .hint("give as many of both, two or more"));
    }
    if x.windows(2).any(|pair| !(pair[0] < pair[1])) {
        return Err(Error::input("places that do not ascend").hint("sort the table by its first column"));
    }
    if [x, y, at].iter().any(|all| all.iter().any(|x| !x.is_finite())) {
        return Err(Error::input("a value or a place that is not finite").hint("look for a division by zero"));
    }
    let least = 1e-12 * (x[x.len() - 1] - x[0]);
    let largest = y.iter().fold(0.0, |largest: f64, y| largest.max(y.abs()));
    // The transform of a jump h is h ln|x - at|: what is left of it beside the end must be small.
    let jumps = |end: usize| y[end].abs() > 1e-7 * largest && at.iter().any(|w| (w - x[end]).abs() <= least);
    if let Some(end) = [0, x.len() - 1].into_iter().find(|&end| jumps(end)) {
        return Err(Error::input(format!(
            "the Hilbert transform at {}, where the values begin or end at {}, is infinite",
            x[end], y[end]
        ))
        .hint("it takes values that fall to zero at both ends, or a place beside the end"));
    }
    let one = |w: &f64| {
        let pieces = x.windows(2).zip(y.windows(2));
        pieces.map(|(x, y)| of_piece([x[0] - w, x[1] - w], [y[0], y[1]], least)).sum::<f64>()
            / std::f64::consts::PI
    };
    Ok(at.par_iter().map(one).collect())
}

/// `P Int y(x)/x dx` from one place to the next of values that are linear between them.
fn of_piece(x: [f64; 2], y: [f64; 2], least: f64) -> f64 {
    let (half, middle) = ((x[1] - x[0]) / 2.0, x[0] + (x[1] - x[0]) / 2.0);
    let (mean, rise) = (y[0] / 2.0 + y[1] / 2.0, y[1] - y[0]);
    let t = half / middle;
    if t.abs() < FAR {
        // Far from the piece, 2 half - middle ln(x1/x0) cancels to this series.
        let left: f64 = (1..=FAR_TERMS).rev().fold(0.0, |sum, k| (sum + 1.0 / f64::from(2 * k + 1)) * t * t);
        return mean * 2.0 * t.atanh() - rise * left;
    }
    // At a place itself the logarithms of its two sides cancel: a little beside it they do as well.
    let log = (x[1].abs().max(least) / x[0].abs().max(least)).ln();
    rise + (mean - rise / (2.0 * half) * middle) * log
}
