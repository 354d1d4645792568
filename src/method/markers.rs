//! Properties of systems without momenta: topology in real space, entanglement, level statistics.

use std::f64::consts::{PI, TAU};

use super::majorana::zero_fermion;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::lattice::{Geometry, Holes};
use crate::number::{C64, Matrix, Series, memory};
use crate::operator::Operator;

/// Eigenvalues of turned states nearer to -1 than this angle have no sign.
const HALF_TURN: f64 = 1e-6;
/// Entropies that differ by less are one.
const SAME_ENTROPY: f64 = 1e-9;

/// All levels of an operator, ascending, with the eigenvectors as columns. `filled` of them can be filled.
fn all_levels(h: &Operator, filled: usize) -> Result<(Vec<f64>, Matrix)> {
    let n = h.dim();
    if !h.is_hermitian()? {
        return Err(Error::input("states are filled from below in a Hermitian operator; this is none")
            .hint("the sum of an operator and its adjoint is Hermitian"));
    }
    if filled == 0 || filled > n {
        return Err(Error::input(format!("{filled} filled states of {n}")).hint("`filled` counts states"));
    }
    memory::ensure(64 * (n * n) as u128, &format!("the states of {n} rows"))?;
    let (levels, vectors) = Matrix::new(n, n, Series::Complex(h.to_dense()?))?.eigh()?;
    Ok((levels.as_real("levels")?.to_vec(), vectors))
}

/// Levels nearer than this are one.
fn one_level(levels: &[f64]) -> f64 {
    let n = levels.len();
    16.0 * n as f64 * f64::EPSILON * levels[n - 1].abs().max(levels[0].abs())
}

/// The first `filled` of some eigenvectors, which must not end inside a multiplet.
fn lowest((levels, vectors): &(Vec<f64>, Matrix), filled: usize) -> Result<Matrix> {
    let n = levels.len();
    if filled < n && levels[filled] - levels[filled - 1] <= one_level(levels) {
        return Err(Error::input(format!("the {filled} lowest states end inside a multiplet"))
            .hint("fill all of its states or none"));
    }
    let all = vectors.data().to_complex();
    Ok(Matrix::from_fn(n, filled, |i, j| all[i * n + j]))
}

/// The `filled` lowest eigenvectors of an operator, as columns of a dense matrix.
fn occupied(h: &Operator, filled: usize) -> Result<Matrix> {
    lowest(&all_levels(h, filled)?, filled)
}

/// The geometry of an operator in two dimensions.
fn planar(h: &Operator) -> Result<&Geometry> {
    let none = || {
        Error::input("an operator without a lattice in two dimensions has no Chern number")
            .hint("build it from a model on a lattice with two directions")
    };
    let geometry: &Geometry = h.geometry().ok_or_else(none)?;
    if geometry.lattice.dimension() != 2 || geometry.lattice.space() != 2 {
        return Err(none());
    }
    Ok(geometry)
}

/// `V^dagger diag(f) V`.
fn projected(v: &Matrix, f: &[C64]) -> Result<Matrix> {
    let (n, m) = (v.rows(), v.cols());
    let data = v.data().to_complex();
    v.dagger().matmul(&Matrix::from_fn(n, m, |i, j| f[i] * data[i * m + j]))
}

/// The local Chern marker of each site, `-(4 pi / A) Im <r| P x Q y P |r>` with P the projector on the filled states,
/// Q = 1 - P and A the area of a cell (Bianco, Resta, PRB 84 (2011) 241106, equation 8). The sign is that of
/// `chern_number`. Inside a large sample the markers of the sites of a cell add up to the Chern number; over all of
/// an open sample they add up to zero.
///
/// # Errors
/// No lattice in two directions, one that is not open, fillings that do not fit or end inside a multiplet.
pub fn chern_marker(h: &Operator, filled: usize) -> Result<Vec<f64>> {
    let geometry = planar(h)?;
    let lattice = &geometry.lattice;
    if lattice.wrap().iter().any(|wrap| *wrap != Wrap::Open) {
        return Err(Error::input("positions on a sample that is not open in both directions")
            .hint("take open boundaries; the Bott index is for periodic samples"));
    }
    let v = occupied(h, filled)?;
    let n = h.dim();
    let places: Vec<Vec<f64>> = (0..n).map(|row| geometry.position(row)).collect::<Result<_>>()?;
    let along = |axis: usize| -> Vec<C64> { places.iter().map(|p| C64::new(p[axis], 0.0)).collect() };
    let product = projected(&v, &along(0))?.matmul(&projected(&v, &along(1))?)?;
    let (left, states) = (v.matmul(&product)?.data().to_complex(), v.data().to_complex());
    let vectors = lattice.vectors();
    let area = (vectors[0][0] * vectors[1][1] - vectors[0][1] * vectors[1][0]).abs();
    let mut marker = vec![0.0; n / geometry.orbitals];
    for row in 0..n {
        let here: C64 = (0..filled).map(|a| left[row * filled + a] * states[row * filled + a].conj()).sum();
        // P x Q y P = P x y P - P x P y P, and the first has a real diagonal.
        marker[row / geometry.orbitals] += 4.0 * PI / area * here.im;
    }
    Ok(marker)
}

/// The Bott index of a sample that is periodic in both directions: the Chern number of its filled states (Loring,
/// Hastings, EPL 92 (2010) 67004).
///
/// # Errors
/// No lattice in two directions, one that is not periodic, fillings that do not fit or end inside a
/// multiplet, states that reach through the whole sample.
pub fn bott_index(h: &Operator, filled: usize) -> Result<i64> {
    let geometry = planar(h)?;
    let lattice = &geometry.lattice;
    if lattice.wrap().contains(&Wrap::Open) {
        return Err(Error::input("the Bott index of a sample that is open")
            .hint("take periodic boundaries; the local marker is for open samples"));
    }
    let v = occupied(h, filled)?;
    let places: Vec<Vec<f64>> = (0..h.dim())
        .map(|row| Ok(lattice.cell_coordinates(&geometry.position(row)?)))
        .collect::<Result<_>>()?;
    for d in 0..2 {
        // Parts of the way around the sample, in thousandths; two opposite ones turn no phase.
        let cells = lattice.cells()[d] as f64;
        let mut parts: Vec<i64> =
            places.iter().map(|p| (1e3 * p[d] / cells).round() as i64).map(|x| x.rem_euclid(1000)).collect();
        parts.sort_unstable();
        parts.dedup();
        if parts.len() < 3 {
            return Err(Error::input(format!(
                "the Bott index of a sample with {} places along direction {d}",
                parts.len()
            ))
            .hint("phases around the sample need three at least: take more cells"));
        }
    }
    let turned = |d: usize| {
        let cells = lattice.cells()[d] as f64;
        let phases: Vec<C64> = places.iter().map(|p| C64::cis(TAU * p[d] / cells)).collect();
        projected(&v, &phases)
    };
    let (u, w) = (turned(0)?, turned(1)?);
    let loop_ = w.matmul(&u)?.matmul(&w.dagger())?.matmul(&u.dagger())?;
    let values = loop_.eigvals()?.to_complex();
    let least = values.iter().map(|z| z.norm()).fold(f64::INFINITY, f64::min);
    if !(least > 1e-3) {
        return Err(Error::numeric(format!(
            "projected phases of modulus {least:.1e} are too small for a Bott index"
        ))
        .hint("the sample is too small for its gap"));
    }
    // Each eigenvalue turns by less than half a circle. One that is next to half a circle may turn either way.
    if values.iter().any(|z| PI - z.arg().abs() < HALF_TURN) {
        return Err(Error::numeric(
            "the filled states turn by half a circle around the sample: their Bott index is not defined",
        )
        .hint("a gap closes nearby, or the sample is too small for its gap"));
    }
    let hand = {
        let v = lattice.vectors();
        (v[0][0] * v[1][1] - v[0][1] * v[1][0]).signum()
    };
    Ok((hand * values.iter().map(|z| z.arg()).sum::<f64>() / TAU).round() as i64)
}

/// The row of the hole of an electron, or of the electron of a hole, in sites of so many orbitals.
fn hole_of(row: usize, orbitals: usize) -> usize {
    row / orbitals * orbitals + (row % orbitals + orbitals / 2) % orbitals
}

/// The eigenvalues of the correlation matrix of the filled states on some rows, ascending, each between 0 and 1, and
/// the entanglement entropy of those rows, with the natural logarithm (Peschel, J. Phys. A 36 (2003) L205).
///
/// Where holes are those of the electrons beside them, both rows of such a pair are one fermion, and count half each.
/// Two levels at zero are one fermion that a ground state holds or not.
///
/// # Errors
/// Rows that are not there or named twice, or without those of the same fermions as electrons or holes; fillings that
/// do not fit, end inside a multiplet or, with such holes, are not half of all states or have ground states of
/// different entropies.
pub fn entanglement(h: &Operator, filled: usize, rows: &[usize]) -> Result<(Vec<f64>, f64)> {
    let n = h.dim();
    let mut seen = vec![false; n];
    for &row in rows {
        if row >= n || std::mem::replace(&mut seen[row], true) {
            return Err(Error::input(format!("row {row} of a part of {n} rows"))
                .hint("rows are counted from 0, each once"));
        }
    }
    let doubled = h.geometry().filter(|g| g.holes == Some(Holes::Own)).map(|g| g.orbitals);
    if let Some(orbitals) = doubled {
        if 2 * filled != n {
            return Err(Error::input(format!(
                "{filled} filled states of {n}, of electrons and their own holes"
            ))
            .hint("half of them are filled: each level has an opposite one, which is the same fermion"));
        }
        if let Some(&row) = rows.iter().find(|&&row| !seen[hole_of(row, orbitals)]) {
            return Err(Error::input(format!("row {row} of a part without row {}", hole_of(row, orbitals)))
                .hint("the rows of an electron and of its own hole are one fermion: take both"));
        }
    }
    if rows.is_empty() {
        return Ok((Vec::new(), 0.0));
    }
    let all = all_levels(h, filled)?;
    let Some(orbitals) = doubled else { return entangled(&lowest(&all, filled)?, rows) };
    let zero = one_level(&all.0);
    let halves = |(values, entropy)| (values, 0.5 * entropy);
    match all.0.iter().filter(|e| e.abs() <= zero).count() {
        0 => Ok(halves(entangled(&lowest(&all, filled)?, rows)?)),
        2 => {
            let numbers = all.1.data().to_complex();
            let column = |j: usize| (0..n).map(|i| numbers[i * n + j]).collect::<Vec<_>>();
            let (one, two) = (column(filled - 1), column(filled));
            let filled_with = |own: &[C64]| {
                let of = |i: usize, j: usize| if j + 1 < filled { numbers[i * n + j] } else { own[i] };
                entangled(&Matrix::from_fn(n, filled, of), rows)
            };
            let [even, odd] = zero_fermion([&one, &two], |row| hole_of(row, orbitals));
            let (found, other) = (filled_with(&even)?, filled_with(&odd)?);
            if (found.1 - other.1).abs() > SAME_ENTROPY {
                let [a, b] = [found.1, other.1].map(|s| 0.5 * s);
                return Err(Error::input(format!(
                    "a level at zero makes two ground states, with entropies {a} and {b}"
                ))
                .hint("a small term that moves the level away from zero chooses one of them"));
            }
            Ok(halves(found))
        }
        count => Err(Error::input(format!(
            "{count} levels at zero make {} ground states, whose entropies differ",
            2u64.saturating_pow(count as u32 / 2)
        ))
        .hint("small terms that move levels away from zero choose one of them")),
    }
}

/// The eigenvalues of the correlation matrix of filled states on some rows, and the entropy of all of them.
fn entangled(states: &Matrix, rows: &[usize]) -> Result<(Vec<f64>, f64)> {
    let (filled, numbers) = (states.cols(), states.data().to_complex());
    let part = Matrix::from_fn(rows.len(), filled, |i, j| numbers[rows[i] * filled + j]);
    let values = part.matmul(&part.dagger())?.eigvals()?;
    let values: Vec<f64> = values.as_real("occupations")?.iter().map(|x| x.clamp(0.0, 1.0)).collect();
    let term = |x: f64| if x > 0.0 { -x * x.ln() } else { 0.0 };
    let entropy: f64 = values.iter().map(|&x| term(x) + term(1.0 - x)).sum();
    Ok((values, entropy))
}

/// Levels that are nearer, in units of the largest, are one multiplet.
const MULTIPLET: f64 = 1e-12;

/// The mean ratio of neighbouring spacings, the smaller to the larger, and its standard error (Oganesyan, Huse, PRB
/// 75 (2007) 155111): 0.386 for independent levels, 0.531 for real and 0.600 for complex random matrices. Degenerate
/// levels have a spacing of zero; two such spacings in a row have no ratio.
///
/// # Errors
/// Fewer than three levels, or none with a ratio.
pub fn level_ratio(levels: &[f64]) -> Result<(f64, f64)> {
    if levels.len() < 3 {
        return Err(Error::input(format!("the spacings of {} levels", levels.len()))
            .hint("a ratio takes three levels at least"));
    }
    if let Some((i, x)) = levels.iter().enumerate().find(|(_, x)| !x.is_finite()) {
        return Err(Error::input(format!("level {i} of {} is {x}", levels.len()))
            .hint("the spacings are those of finite levels: leave the others out"));
    }
    let mut sorted = levels.to_vec();
    sorted.sort_by(f64::total_cmp);
    // What is left between the levels of a multiplet is rounding, and its ratios mean nothing.
    let largest = sorted[0].abs().max(sorted[sorted.len() - 1].abs());
    let spacing = |w: &[f64]| Some(w[1] - w[0]).filter(|s| *s > MULTIPLET * largest).unwrap_or(0.0);
    let spacings: Vec<f64> = sorted.windows(2).map(spacing).collect();
    let ratio = |w: &[f64]| Some(w[0].min(w[1]) / w[0].max(w[1])).filter(|r| r.is_finite());
    let ratios: Vec<f64> = spacings.windows(2).filter_map(ratio).collect();
    if ratios.is_empty() {
        return Err(Error::input("levels that are all one have no ratio of spacings")
            .hint("take levels of one block, without multiplets"));
    }
    let n = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / n;
    let square = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>();
    Ok((mean, if n > 1.0 { (square / (n - 1.0) / n).sqrt() } else { f64::NAN }))
}
