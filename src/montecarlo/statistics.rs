//! Errors of correlated averages: blocking with an automatic plateau, and autocorrelation times.

use crate::error::{Error, Result};
use crate::method::unit_of;
use crate::number::{Series, Table, student};

/// A mean, its error, and how they were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocked {
    pub mean: f64,
    /// Its standard error, correlations included; from few blocks with its own uncertainty, or by Student's
    /// distribution.
    pub error: f64,
    /// Variance of single elements.
    pub variance: f64,
    /// Integrated autocorrelation time, in elements: 1 for independent ones. From many blocks the error is
    /// `sqrt(variance tau / n)`.
    pub autocorrelation: f64,
    /// Elements in each block at the plateau.
    pub block: usize,
    /// Whether the plateau was reached, by a series long enough to tell; the error is a lower limit otherwise.
    pub plateau: bool,
    pub count: usize,
    /// `block`, `error` and `uncertainty` of every level of blocking.
    pub levels: Table,
}

/// Fewest blocks of a plateau.
const PLATEAU: usize = 8;

/// A plateau takes a series of so many autocorrelation times. A shorter series seems to have one where its time came
/// out too short: of series of 256 elements with a time of 19, one in six,
/// and half of these are off by more than their error.
const LONG: f64 = 35.0;

/// Up to so many blocks the error follows Student's distribution.
const FEW: usize = 10;

/// From so many blocks the uncertainty of the error, below a tenth of it, is left out.
const ROUGH: usize = 64;

fn finite(data: &[f64]) -> Result<()> {
    match data.iter().position(|x| !x.is_finite()) {
        Some(at) => Err(Error::input(format!("element {at} of the series is not a finite number"))
            .hint("leave such samples out")),
        None => Ok(()),
    }
}

/// Blocks a series (Flyvbjerg, Petersen, J. Chem. Phys. 91 (1989) 461): neighbours are averaged in pairs, again and
/// again, and the error is read off where it stays constant, as the larger of two neighbouring levels. The plateau
/// begins at the smallest block b with `b^3 > 2 n (error_b / error_1)^4` (Wolff, CPC 156 (2004) 143; Lee and others,
/// PRE 83 (2011) 066706), if there are at least eight such blocks: fewer cannot tell whether the error still grows. Nor
/// can a series shorter than 35 autocorrelation times. The time is taken from the growth of the error and from the
/// correlation r of neighbours, by which it is at least (1 + r)/(1 - r) if correlations decay evenly. The second has
/// less noise, so the error of a plateau is not allowed below the one that follows from it.
/// Without a plateau the error is a lower limit: the largest one found, plus its own uncertainty. A plateau of fewer
/// than 64 blocks adds that uncertainty too: it is often found where an error came out too small. Errors of ten blocks
/// or fewer are Student's.
///
/// # Errors
/// For fewer than two elements, or one that is not finite.
pub fn blocked(data: &[f64]) -> Result<Blocked> {
    let n = data.len();
    if n < 2 {
        return Err(Error::input(format!("blocking needs two elements, this series has {n}"))
            .hint("give the samples themselves, in the order in which they were taken"));
    }
    finite(data)?;
    // Squares of small or large elements are no numbers, and an error of zero would be a claim.
    let unit = unit_of(largest(data));
    let scaled = in_units(data, unit);
    let mean = mean_of(&scaled);
    let r = correlation(&scaled, mean, 1) / correlation(&scaled, mean, 0);
    // NaN of a constant series, whose error is zero in any case.
    let neighbours = if r < 1.0 { (1.0 + r) / (1.0 - r) } else { 1.0 };
    let (mut blocks, mut size) = (scaled, 1);
    let (mut sizes, mut errors, mut uncertainties) = (Vec::new(), Vec::new(), Vec::new());
    let mut first = 0.0;
    let mut variance = 0.0;
    while blocks.len() >= 2 {
        let m = blocks.len() as f64;
        let centre = mean_of(&blocks);
        let spread = blocks.iter().map(|x| (x - centre) * (x - centre)).sum::<f64>() / (m - 1.0);
        if size == 1 {
            (variance, first) = (spread, spread / m);
        }
        let error = (spread / m).sqrt();
        sizes.push(size as f64);
        errors.push(error);
        uncertainties.push(error / (2.0 * (m - 1.0)).sqrt());
        blocks = blocks.chunks_exact(2).map(|pair| 0.5 * (pair[0] + pair[1])).collect();
        size *= 2;
    }
    let growth = |k: usize| if first > 0.0 { errors[k] * errors[k] / first } else { 1.0 };
    let long = |k: usize| sizes[k].powi(3) > 2.0 * n as f64 * growth(k).powi(2);
    // The mean of a few blocks is further off than their spread says.
    let few = |k: usize| if n >> k <= FEW { student::factor(n >> k) } else { 1.0 };
    let guess = |k: usize| (errors[k] + uncertainties[k]).max(few(k) * errors[k]);
    let told = (0..sizes.len()).filter(|&k| k == 0 || n >> k >= PLATEAU / 2);
    let highest = told.max_by(|a, b| guess(*a).total_cmp(&guess(*b))).unwrap_or(0);
    // One level on, if it has enough blocks: remaining correlations show there.
    let on = |k: usize| if n >> (k + 1) >= 16 && errors[k + 1] > errors[k] { k + 1 } else { k };
    let reached = (0..sizes.len()).find(|&k| long(k)).filter(|&k| n >> k >= PLATEAU).map(on);
    let plateau = reached.filter(|&k| n as f64 >= LONG * neighbours.max(growth(k)));
    let at = plateau.unwrap_or(highest);
    let least = if plateau.is_some() { (first * neighbours).sqrt() } else { guess(at) };
    let plain = errors[at].max(least);
    let error = if plateau.is_none() || n >> at < ROUGH { guess(at).max(least) } else { plain };
    let levels = Table::from_columns([
        ("block", Series::Real(sizes.clone())),
        ("error", Series::Real(errors.iter().map(|x| x * unit).collect())),
        ("uncertainty", Series::Real(uncertainties.iter().map(|x| x * unit).collect())),
    ])?;
    Ok(Blocked {
        mean: mean * unit,
        error: error * unit,
        variance: variance * unit * unit,
        autocorrelation: if first > 0.0 { plain * plain / first } else { 1.0 },
        block: sizes[at] as usize,
        plateau: plateau.is_some(),
        count: n,
        levels,
    })
}

/// The autocorrelation function up to `lags`, normalised to 1 at lag 0; 0 beyond it for a constant series.
///
/// # Errors
/// When there are more lags than elements, or an element is not finite.
pub fn autocorrelation(data: &[f64], lags: usize) -> Result<Vec<f64>> {
    let n = data.len();
    if lags >= n {
        return Err(Error::input(format!("an autocorrelation over {lags} of {n} elements"))
            .hint("the lags are fewer than the elements"));
    }
    finite(data)?;
    let scaled = in_units(data, unit_of(largest(data)));
    let mean = mean_of(&scaled);
    // Once more for what varies: data may be far from zero, and vary little.
    let apart: Vec<f64> = scaled.iter().map(|x| x - mean).collect();
    let apart = in_units(&apart, unit_of(largest(&apart)));
    let zero = correlation(&apart, 0.0, 0);
    Ok((0..=lags)
        .map(|lag| {
            if lag == 0 {
                1.0
            } else if zero > 0.0 {
                correlation(&apart, 0.0, lag) / zero
            } else {
                0.0
            }
        })
        .collect())
}

/// The mean, exact for numbers that are all alike.
fn mean_of(data: &[f64]) -> f64 {
    let first = data.first().copied().unwrap_or(0.0);
    first + data.iter().map(|x| x - first).sum::<f64>() / data.len() as f64
}

fn largest(data: &[f64]) -> f64 {
    data.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()))
}

/// The data in a unit in which their squares are numbers.
fn in_units(data: &[f64], unit: f64) -> Vec<f64> {
    data.iter().map(|x| x / unit).collect()
}

/// The mean product of what elements and those `lag` behind them differ from the mean by.
fn correlation(data: &[f64], mean: f64, lag: usize) -> f64 {
    let pairs = data[..data.len() - lag].iter().zip(&data[lag..]);
    pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / (data.len() - lag) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::philox::{normals, words};

    /// `x_t = a x_{t-1} + noise`, whose integrated autocorrelation time is `(1 + a)/(1 - a)`.
    fn correlated(n: usize, a: f64) -> Vec<f64> {
        let mut x = 0.0;
        (0..n)
            .map(|t| {
                x = a * x + (1.0 - a * a).sqrt() * normals(words(3, 6, t as u64, 0)).0;
                x
            })
            .collect()
    }

    #[test]
    fn the_error_of_a_correlated_series() {
        for a in [0.0, 0.5, 0.9] {
            let found = blocked(&correlated(1 << 16, a)).unwrap();
            let tau = (1.0 + a) / (1.0 - a);
            assert!(found.plateau && (found.autocorrelation / tau - 1.0).abs() < 0.15, "{found:?}");
            assert!(found.mean.abs() < 5.0 * found.error && (found.variance - 1.0).abs() < 0.1);
        }
    }

    /// Noise with times from 1 to 199, in series much shorter and much longer than that: where more than 15 runs in a
    /// hundred claim a plateau, the mean is within its error as often as it should be.
    #[test]
    fn plateaus_tell_the_truth() {
        for a in [0.0, 0.5, 0.9, 0.99] {
            for n in [64, 128, 256, 512, 1024, 4096, 16384] {
                let runs = 600.min((1 << 21) / n);
                let long = correlated(n * runs, a);
                let found: Vec<_> = long.chunks_exact(n).map(|part| blocked(part).unwrap()).collect();
                let flat: Vec<_> = found.iter().filter(|b| b.plateau).collect();
                let claimed = flat.len() as f64 / runs as f64;
                let within = flat.iter().filter(|b| b.mean.abs() <= b.error).count() as f64;
                let share = within / flat.len().max(1) as f64;
                assert!(claimed < 0.15 || (share > 0.6 && share < 0.82), "{n} {a}: {share} of {claimed}");
                // Long enough for one, or far too short.
                let times = n as f64 * (1.0 - a) / (1.0 + a);
                assert!(claimed > 0.9 || times < 60.0, "{n} {a}: {claimed}");
                assert!(claimed < 0.01 || times > 15.0, "{n} {a}: {claimed}");
            }
        }
    }

    #[test]
    fn few_blocks_make_no_plateau() {
        // Forty elements whose autocorrelation time is 39: an error from five blocks would be far too small.
        let (mut plateaus, mut covered) = (0, 0);
        let long = correlated(40 * 200, 0.95);
        for part in long.chunks_exact(40) {
            let found = blocked(part).unwrap();
            plateaus += usize::from(found.plateau);
            covered += usize::from(found.mean.abs() < 4.0 * found.error);
        }
        assert!(plateaus == 0 && covered > 150, "{plateaus} {covered}");
    }

    /// Runs whose autocorrelation times are long for their length: two errors cover most of them, and the plateaus
    /// among them too.
    #[test]
    fn short_correlated_runs() {
        for (n, a) in [(200, 0.5), (1000, 0.78), (1000, 0.9)] {
            let runs = 400;
            let long = correlated(n * runs, a);
            let found: Vec<_> = long.chunks_exact(n).map(|part| blocked(part).unwrap()).collect();
            let within = |b: &&Blocked| b.mean.abs() <= 2.0 * b.error;
            let share = found.iter().filter(within).count() as f64 / runs as f64;
            assert!(share > 0.94 && share < 0.99, "{n} {a}: {share}");
            let flat: Vec<_> = found.iter().filter(|b| b.plateau).collect();
            let share = flat.iter().copied().filter(within).count() as f64 / flat.len() as f64;
            assert!(flat.len() < 100 || share > 0.92, "{n} {a}: {share} of {} plateaus", flat.len());
        }
    }

    #[test]
    fn elements_of_all_sizes() {
        let data = correlated(4096, 0.5);
        let plain = blocked(&data).unwrap();
        for unit in [1e-300, 1e-200, 1e-20, 1e20, 1e200, 1e300] {
            let scaled = blocked(&data.iter().map(|x| x * unit).collect::<Vec<_>>()).unwrap();
            assert!((scaled.error / unit / plain.error - 1.0).abs() < 1e-12, "{unit}: {scaled:?}");
            assert!((scaled.autocorrelation / plain.autocorrelation - 1.0).abs() < 1e-12, "{unit}");
            let of =
                |unit: f64| autocorrelation(&data.iter().map(|x| x * unit).collect::<Vec<_>>(), 3).unwrap();
            assert!(of(unit).iter().zip(of(1.0)).all(|(a, b)| (a - b).abs() < 1e-12), "{unit}");
        }
    }

    /// Of independent elements, however few, the mean is within the error as often as it should be, or more often.
    #[test]
    fn few_independent_elements() {
        for n in [2, 3, 4, 6, 9, 10, 12, 30] {
            let runs = 3000;
            let value = |k: usize| normals(words(8, 6, k as u64, n as u32)).0;
            let run = |k: usize| blocked(&(0..n).map(|i| value(k * n + i)).collect::<Vec<_>>()).unwrap();
            let within = (0..runs).map(run).filter(|b| b.mean.abs() <= b.error).count() as f64 / runs as f64;
            assert!(within > 0.66 && within < 0.85, "{n}: {within}");
        }
    }

    #[test]
    fn few_elements_and_constants() {
        assert!(blocked(&[1.0]).is_err() && blocked(&[1.0, f64::NAN]).is_err());
        let constant = blocked(&[2.0; 64]).unwrap();
        assert_eq!((constant.mean, constant.error, constant.autocorrelation), (2.0, 0.0, 1.0));
        let uneven = blocked(&[3.7; 1000]).unwrap();
        assert_eq!((uneven.mean, uneven.error), (3.7, 0.0));
        assert!((autocorrelation(&correlated(1 << 14, 0.5), 3).unwrap()[1] - 0.5).abs() < 0.05);
        assert!(autocorrelation(&[1.0], 1).is_err());
        assert!(autocorrelation(&[1.0, f64::NAN, 2.0], 1).unwrap_err().message().contains("element 1"));
    }
}
