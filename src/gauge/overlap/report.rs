//! How well a sign function is known: residuals and distances of its low modes, and the bounds that follow from them.

use super::modes::Low;

/// How well a sign function is known.
#[derive(Debug, Clone)]
pub struct SignReport {
    /// Low modes treated exactly.
    pub modes: usize,
    /// Degree of the polynomial in Q^2, or number of poles.
    pub degree: usize,
    /// Deviation of the fit on the rest of the spectrum.
    pub delta: f64,
    /// rho_k = |(Q - nu_k) u_k| of the modes u_k, eigenvectors of P Q P with eigenvalues nu_k, ascending in these.
    pub residuals: Vec<f64>,
    /// d_k: a lower bound on the distance of nu_k from the spectrum without the low modes of its own sign. Modes that
    /// no known gap separates from the rest are compared with the other sign only: modes beyond them would do as
    /// well.
    pub distances: Vec<f64>,
    /// Root of the sum of rho_k^2/d_k^2 over positive modes.
    pub kappa_plus: f64,
    /// The same over negative modes.
    pub kappa_minus: f64,
    /// Smallest |nu_k|, or the lower end of the spectrum where there are no modes.
    pub gap: f64,
    /// Where the rest of the spectrum of |Q| begins.
    pub rest: f64,
    /// A bound on |X - sign(Q)|: the fit's deviation, the modes' residuals and rounding; 2 at least where there are
    /// doubtful modes.
    pub bound: f64,
    /// Modes nearer to zero than their error: their sign is not known.
    pub doubtful: usize,
}

impl SignReport {
    /// The bound on the distance of the projectors P+ and P- from the exact ones: kappa (1 + 2 kappa) over 1 - 2
    /// kappa (1 + 2 kappa), eq. (2.10) of Walk et al. It is 1, the largest distance of two projectors, where that
    /// formula gives no better bound.
    pub fn projectors(&self) -> [f64; 2] {
        [self.kappa_plus, self.kappa_minus].map(|kappa| {
            let x = kappa * (1.0 + 2.0 * kappa);
            if x < 1.0 / 3.0 { x / (1.0 - 2.0 * x) } else { 1.0 }
        })
    }

    /// The bound on what errors of the modes add to the sign function, besides the fit's deviation: 2 (kappa_+ +
    /// kappa_-). Times 1 + s - m/2 it is eq. (2.12), for the overlap operator.
    pub fn modes_bound(&self) -> f64 {
        2.0 * (self.kappa_plus + self.kappa_minus)
    }
}

/// How a fit acts on the spectrum, by values of |Q|.
pub(super) struct FitQuality<'a> {
    /// Degree or number of poles.
    pub degree: usize,
    /// The difference between X and the sign at a value of |Q|.
    pub off: &'a dyn Fn(f64) -> f64,
    /// The fit's deviation on the rest of the spectrum.
    pub delta: f64,
    /// What rounding in Q^2 adds to the deviation.
    pub rounding: f64,
    /// Where the rest of the spectrum begins, as found.
    pub rest: f64,
    /// A lower bound on that.
    pub least: f64,
    /// Whether no gap is known between the modes and the rest.
    pub touching: bool,
    /// Error of the eigenvalues of Q from rounding.
    pub kernel: f64,
}

pub(super) fn report(low: Option<&Low>, ends: &FitQuality) -> SignReport {
    let (degree, delta, rest) = (ends.degree, ends.delta, ends.rest);
    let Some(low) = low else {
        return SignReport {
            modes: 0,
            degree,
            delta,
            residuals: Vec::new(),
            distances: Vec::new(),
            kappa_plus: 0.0,
            kappa_minus: 0.0,
            gap: rest,
            rest,
            bound: delta + ends.rounding,
            doubtful: 0,
        };
    };
    let modes = || low.values.iter().copied().zip(low.residuals.iter().copied());
    let edge = if ends.touching { low.edge() } else { f64::INFINITY };
    // For modes of either sign, a lower bound on the |eigenvalues| of the other sign; then, in `beyond`, one on those
    // of modes that touch the rest.
    let other = |sign: f64| {
        let of_modes = modes().filter(|(v, _)| v * sign < 0.0).map(|(v, rho)| (v.abs() - rho).max(0.0));
        of_modes.fold(ends.least, f64::min)
    };
    let others = [other(1.0), other(-1.0)];
    let other = |v: f64| others[usize::from(v < 0.0)];
    let touching = modes().filter(|(v, _)| v.abs() >= edge).map(|(v, rho)| (v.abs() - rho).max(0.0));
    let beyond = touching.fold(ends.least, f64::min);
    let distance = |v: f64| {
        let across = v.abs() + other(v);
        if v.abs() < edge { across.min((beyond - v.abs()).max(0.0)) } else { across }
    };
    let kappa = |sign: f64| {
        let own = modes().filter(|(v, _)| v * sign > 0.0);
        own.map(|(v, rho)| (rho / distance(v)).powi(2)).sum::<f64>().sqrt()
    };
    // (sign(Q) - sign(nu_k)) u_k is -+2 times the part of u_k that has the other sign, on which Q - nu_k has the
    // modulus |nu_k| + |lambda|. So the sign function misses kappa from one sign to the other, both ways, and kappa^2
    // within the modes. On the rest it misses the remaining part of the exact low modes, for which the fit was not
    // made.
    let across = modes().map(|(v, rho)| (rho / (v.abs() + other(v))).powi(2)).sum::<f64>();
    let left = |(v, rho): (f64, f64)| (rho / (ends.least - v.abs()).max(0.0)).powi(2).min(1.0);
    let leaked = modes().map(|(v, rho)| (ends.off)(v.abs()) * left((v, rho))).sum::<f64>();
    // An eigenvalue lies within rho of nu, and within rho^2/d (Temple).
    let known = |v: f64, rho: f64| rho.min(rho * rho / distance(v)) + ends.kernel;
    let doubtful = modes().filter(|(v, rho)| !(v.abs() > known(*v, *rho))).count();
    SignReport {
        doubtful,
        modes: low.values.len(),
        degree,
        delta,
        residuals: low.residuals.clone(),
        distances: modes().map(|(v, _)| distance(v)).collect(),
        kappa_plus: kappa(1.0),
        kappa_minus: kappa(-1.0),
        gap: modes().map(|(v, _)| v.abs()).fold(f64::INFINITY, f64::min),
        rest,
        bound: delta + ends.rounding + 2.0 * (across.sqrt() + across) + leaked,
    }
}
