//! The effect of a lead on a sample at one energy. At an end state of a lead the self-energy has a pole. The few waves
//! of this pole remain as separate unknowns (bordered rows), so no number diverges.

use faer::Mat;

use super::dense::{inverse, largest};
use super::lead::{ChannelKind, Lead};
use super::reflection::{NOISE, Reflection, SlabWaves};
use crate::error::{Error, Result};
use crate::number::{C64, Matrix};

/// A lead at one energy, on the rows that it is attached to and `extra` ones behind them. For incoming amplitudes c,
/// `(E - H - matrix) x = source c` has the solution x, and `out x + back c` goes out.
#[derive(Debug)]
pub struct Opening {
    pub extra: usize,
    pub matrix: Mat<C64>,
    /// A column for each open channel.
    pub source: Mat<C64>,
    /// A row for each open channel.
    pub out: Mat<C64>,
    pub back: Mat<C64>,
    /// The kinds of its channels, in order, and how many of each there are.
    pub kinds: Vec<(ChannelKind, usize)>,
    /// What the lead's channels are made of, part by part.
    pub parts: Vec<Channels>,
}

/// The channels of a lead, or of its electrons or its holes, as combinations of waves between two cells.
#[derive(Debug)]
pub struct Channels {
    pub u: Mat<C64>,
    /// Inward waves, outward ones, and how much of each passes.
    pub inward: Mat<C64>,
    pub outward: Mat<C64>,
    pub passing: Vec<f64>,
    /// Those that are open.
    pub open: Vec<usize>,
    /// How far off the reflection may be.
    pub off: f64,
}

/// A reflection that is off by more than this is refused.
const BAD: f64 = 1e-6;
/// Waves for which the ratio of amplitude to force is below this stay unknowns.
const HARD: f64 = 1e-3;
/// The largest Green's function at a lead's end that is told, in units of what joins its cells.
const MOST_SURFACE: f64 = 1e10;

/// The waves of a lead that a sample feels: those of one kind of particles.
struct LeadWaves {
    rows: Vec<usize>,
    /// On the rows, and `hard` ones behind them.
    matrix: Mat<C64>,
    source: Mat<C64>,
    out: Mat<C64>,
    back: Mat<C64>,
    channels: Channels,
}

/// The inverse of a matrix but for what is `HARD`: least singular values, rows `to` and columns `from` of these.
struct Softened {
    solved: Mat<C64>,
    least: Vec<f64>,
    to: Mat<C64>,
    from: Mat<C64>,
}

impl Softened {
    fn new(a: &Mat<C64>) -> Option<Softened> {
        let r = a.nrows();
        // The least singular value is the inverse of the norm of the inverse, which is no larger than this one.
        if let Some(solved) = inverse(a.as_ref()).filter(|x| x.norm_l2() * HARD < 1.0) {
            return Some(Softened {
                solved,
                least: Vec::new(),
                to: Mat::zeros(0, r),
                from: Mat::zeros(r, 0),
            });
        }
        let d = a.svd().ok()?;
        let all: Vec<f64> = d.S().column_vector().iter().map(|s| s.re).collect();
        let (soft, hard): (Vec<usize>, Vec<usize>) = (0..r).partition(|&k| all[k] >= HARD);
        let to = Mat::from_fn(hard.len(), r, |j, i| d.U()[(i, hard[j])].conj());
        let from = Mat::from_fn(r, hard.len(), |i, j| d.V()[(i, hard[j])]);
        let weighted = Mat::from_fn(r, soft.len(), |i, j| d.V()[(i, soft[j])] / all[soft[j]]);
        let solved = weighted * Mat::from_fn(soft.len(), r, |j, i| d.U()[(i, soft[j])].conj());
        Some(Softened { solved, least: hard.iter().map(|&k| all[k]).collect(), to, from })
    }
}

impl LeadWaves {
    /// None where it is not known which channels are open.
    fn new(waves: &SlabWaves, found: &Reflection, unit: f64) -> Option<LeadWaves> {
        let (u, r, n, i) = (&found.u, found.u.nrows(), waves.rows.len(), C64::I);
        // The basis of incoming waves is x, that of outgoing ones y: what does not come back passes.
        let d = u.svd().ok()?;
        let (x, y) = (d.U(), d.V());
        let returned: Vec<f64> = d.S().column_vector().iter().map(|s| s.re).collect();
        let noise = found.off.max(NOISE);
        let passing: Vec<f64> = returned.iter().map(|c| (1.0 - c) * (1.0 + c)).collect();
        let open: Vec<usize> = (0..r).filter(|&k| passing[k] > found.least_passing()).collect();
        let c = open.len();
        // At the edge of a band a wave neither decays nor carries a current.
        if found.lasting != Some(c) {
            return None;
        }
        let t = Mat::from_fn(r, c, |j, k| x[(j, open[k])] * passing[open[k]].sqrt());
        let tau = Mat::from_fn(c, r, |k, j| y[(j, open[k])].conj() * passing[open[k]].sqrt());
        let rho =
            Mat::from_fn(c, c, |j, k| if j == k { C64::new(-returned[open[k]], 0.0) } else { C64::ZERO });

        // (1 + u) p = sqrt(2) b^dagger psi - t c: solved for the waves p, but where 1 + u is next to zero.
        let whole = |sign: f64| Mat::from_fn(r, r, |j, k| sign * u[(j, k)] + if j == k { 1.0 } else { 0.0 });
        let Softened { solved, least, to, from } = Softened::new(&whole(1.0))?;
        let k = least.len();
        let (force, root) = (&waves.b * whole(-1.0), 2.0f64.sqrt());
        let (b, unit_root) = (&waves.b, unit.sqrt());

        let own = &force * (&solved * b.adjoint());
        let down = &to * b.adjoint();
        let up = &force * &from;
        let matrix = Mat::from_fn(n + k, n + k, |j, l| match (j < n, l < n) {
            (true, true) => -i * unit * own[(j, l)],
            (true, false) => -i * (unit / root) * up[(j, l - n)],
            (false, true) => C64::new(-unit * root, 0.0) * down[(j - n, l)],
            (false, false) if j == l => C64::new(unit * least[j - n], 0.0),
            (false, false) => C64::ZERO,
        });
        let driven = b * &t + &force * (&solved * &t);
        let driven_hard = &to * &t;
        let source = Mat::from_fn(n + k, c, |j, l| {
            unit_root * if j < n { i * driven[(j, l)] / root } else { driven_hard[(j - n, l)] }
        });
        let leaving = &tau * &solved;
        let (seen, seen_hard) = (&leaving * b.adjoint(), &tau * &from);
        let out = Mat::from_fn(c, n + k, |j, l| {
            unit_root * if l < n { root * seen[(j, l)] } else { seen_hard[(j, l - n)] }
        });
        let back = rho - leaving * t;
        let (inward, outward) = (x.to_owned(), y.to_owned());
        let channels = Channels { u: u.clone(), inward, outward, passing, open, off: noise };
        Some(LeadWaves { rows: waves.rows.clone(), matrix, source, out, back, channels })
    }

    fn extra(&self) -> usize {
        self.matrix.nrows() - self.rows.len()
    }
}

impl Lead {
    /// The lead at an energy. None where it is not resolved.
    ///
    /// # Errors
    /// An energy that is not finite; interruption.
    pub fn opening(&self, energy: f64) -> Result<Option<Opening>> {
        if !energy.is_finite() {
            return Err(Error::input(format!("a lead at an energy of {energy}")).hint("give a finite energy"));
        }
        let unit = self.unit();
        let mut parts = Vec::new();
        for waves in self.waves() {
            let Some(found) = waves.reflection(energy / unit)?.filter(|found| found.off < BAD) else {
                return Ok(None);
            };
            let Some(part) = LeadWaves::new(waves, &found, unit) else { return Ok(None) };
            parts.push(part);
        }
        let rows = self.rows();
        let extra = parts.iter().map(LeadWaves::extra).sum();
        let channels = parts.iter().map(|part| part.back.nrows()).sum();
        let mut opening = Opening {
            extra,
            matrix: Mat::zeros(rows + extra, rows + extra),
            source: Mat::zeros(rows + extra, channels),
            out: Mat::zeros(channels, rows + extra),
            back: Mat::zeros(channels, channels),
            kinds: self.kinds().iter().copied().zip(parts.iter().map(|part| part.back.nrows())).collect(),
            parts: Vec::new(),
        };
        let (mut first, mut channel) = (rows, 0);
        for part in &parts {
            let place: Vec<usize> = part.rows.iter().copied().chain(first..first + part.extra()).collect();
            let open = part.back.nrows();
            for (i, &row) in place.iter().enumerate() {
                place
                    .iter()
                    .enumerate()
                    .for_each(|(j, &col)| opening.matrix[(row, col)] = part.matrix[(i, j)]);
                for c in 0..open {
                    opening.source[(row, channel + c)] = part.source[(i, c)];
                    opening.out[(channel + c, row)] = part.out[(c, i)];
                }
            }
            for c in 0..open {
                (0..open).for_each(|d| opening.back[(channel + c, channel + d)] = part.back[(c, d)]);
            }
            (first, channel) = (first + part.extra(), channel + open);
        }
        opening.parts = parts.into_iter().map(|part| part.channels).collect();
        if self.turn.is_some() {
            // From the rows of the waves to those of the cell: U matrix U^dagger, U source, out U^dagger.
            let whole = |m: Mat<C64>| {
                let rest = m.subrows(rows, extra).to_owned();
                let turned = self.turned(&m.subrows(0, rows).to_owned());
                Mat::from_fn(m.nrows(), m.ncols(), |i, j| {
                    if i < rows { turned[(i, j)] } else { rest[(i - rows, j)] }
                })
            };
            let half = whole(opening.matrix);
            opening.matrix = whole(half.adjoint().to_owned()).adjoint().to_owned();
            opening.source = whole(opening.source);
            opening.out = whole(opening.out.adjoint().to_owned()).adjoint().to_owned();
        }
        Ok(Some(opening))
    }

    /// The Green's function of the lead's first cell, seen from inside, at the retarded limit.
    ///
    /// # Errors
    /// As [`Lead::opening`], and where the lead is not resolved or its end has a level.
    pub fn surface(&self, energy: f64) -> Result<Matrix> {
        let opening = self.opening(energy)?.ok_or_else(|| unresolved(energy))?;
        let (n, unit) = (self.rows(), self.unit());
        let inner = Mat::from_fn(n + opening.extra, n + opening.extra, |i, j| {
            let own = if i == j && i < n { C64::new(energy, 0.0) } else { C64::ZERO };
            let h = if i < n && j < n { self.cell()[(i, j)] } else { C64::ZERO };
            (own - h - opening.matrix[(i, j)]) / unit
        });
        let g = inverse(inner.as_ref())
            .filter(|g| largest(g.as_ref().submatrix(0, 0, n, n)) < MOST_SURFACE)
            .ok_or_else(|| {
                Error::numeric(format!("the end of a lead has a level at energy {energy}"))
                    .hint("its Green's function is infinite there: move the energy by a little")
            })?;
        // What comes in through the lead makes its spectral function, i (g - g^dagger): so it is never negative, and
        // exactly zero in a gap, also beside a level, where rounding is larger.
        let x = &g * &opening.source;
        let spectral = |i: usize, j: usize| -> C64 {
            (0..x.ncols()).map(|c| x[(i, c)] * x[(j, c)].conj()).sum::<C64>() / (unit * unit)
        };
        let even = |i: usize, j: usize| 0.5 * (g[(i, j)] + g[(j, i)].conj()) / unit;
        Ok(Matrix::from_fn(n, n, |i, j| even(i, j) - 0.5 * C64::I * spectral(i, j)))
    }
}

/// That a lead is not resolved at an energy.
pub fn unresolved(energy: f64) -> Error {
    Error::numeric(format!(
        "at energy {energy} a lead has the edge of a band, or a gap or band too narrow to be resolved: its channels \
         are not defined"
    ))
        .hint("move the energy by a little, such as 1e-6 of a hopping, to one side of it")
}
