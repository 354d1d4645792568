//! The kinds of Jastrow factors, as users ask for them.

use std::f64::consts::PI;
use std::fmt;

use super::{Radial, Setting};
use crate::error::{Error, Result};
use crate::number::format::real;

/// A Jastrow factor. Parameters that are `None` are found from the electrons' density and the cell.
#[derive(Debug, Clone, PartialEq)]
pub enum JastrowFactor {
    /// `u(r) = -A/r (1 - exp(-r/F))`, cut off smoothly, F from the cusp condition.
    Rpa {
        /// A; by default the inverse plasma frequency.
        strength: Option<f64>,
        /// Where it ends, in bohr; by default the radius of the largest sphere in the Wigner-Seitz cell.
        cutoff: Option<f64>,
    },
    /// `u(r) = s r/(1 + b r)`.
    Pade {
        /// Slope s of electrons with opposite spins; by default the cusp condition.
        slope: Option<f64>,
        /// It levels off at distances of about 1/b.
        b: f64,
    },
    /// `u(r) = (1 - r/L)^3 (a_0 + (s + 3 a_0/L) r + a_2 r^2 + ...)` (Drummond, Towler, Needs, PRB 70 (2004) 235119).
    Polynomial {
        /// L; by default as for `Rpa`.
        cutoff: Option<f64>,
        /// Slope s of electrons with opposite spins; by default the cusp condition.
        slope: Option<f64>,
        /// `a_0, a_2, ...` of electrons with opposite spins.
        opposite: Vec<f64>,
        /// Coefficients between electrons with the same spin.
        same: Vec<f64>,
    },
    /// `u(r) = ln(1 + a r)`.
    Log {
        /// a; by default the cusp condition.
        slope: Option<f64>,
    },
    /// `u(r) = p ln r`: electrons, or bosons, that avoid one another with power p.
    Power {
        /// The power p.
        power: f64,
    },
    /// `chi(r) = -Z r/(1 + b r)`, for orbitals without cusps at the nuclei; with a cutoff it ends there smoothly.
    Nuclear {
        /// Where the nuclei are.
        centres: Vec<[f64; 3]>,
        /// The charges Z of the nuclei.
        charges: Vec<f64>,
        /// It levels off at distances of about 1/b.
        b: f64,
        /// Radius at which it ends; a polynomial with slope -Z then takes the place of the fraction.
        cutoff: Option<f64>,
    },
}

/// Slopes at contact by the cusp conditions of the Coulomb repulsion: same spin, opposite spins (Kato).
fn cusp(dimension: usize) -> [f64; 2] {
    match dimension {
        2 => [1.0 / 3.0, 1.0],
        3 => [1.0 / 4.0, 1.0 / 2.0],
        // On a line, electrons of opposite spin have no cusp: 1/r does not let them meet at all, and a softened
        // repulsion is smooth.
        _ => [1.0 / 2.0, 0.0],
    }
}

/// Refuses factors of which several have the slope of the cusp condition: their product misses it.
///
/// # Errors
/// As said.
pub fn must_meet_cusp_once(factors: &[JastrowFactor]) -> Result<()> {
    let steep: Vec<&str> = factors.iter().filter(|f| f.takes_cusp()).map(JastrowFactor::kind).collect();
    let [first, second, ..] = steep[..] else { return Ok(()) };
    Err(Error::input(format!(
        "the factors `{first}` and `{second}` both have the slope of the cusp condition, which is met once"
    ))
    .hint("give all but one a `slope` of their own, zero for one that does not touch the cusp"))
}

impl JastrowFactor {
    /// The factor with all parameters known.
    pub(super) fn settled(&self, setting: &Setting) -> Result<JastrowFactor> {
        let mut factor = self.clone();
        let largest = setting.cell.as_ref().map(|cell| cell.wigner_seitz_radius());
        let settle = |cutoff: &mut Option<f64>, needed: bool| -> Result<()> {
            match (*cutoff, largest) {
                (Some(l), _) if !(l > 0.0 && l.is_finite()) => {
                    Err(Error::input(format!("a Jastrow cutoff of {l}")).hint("it is a positive length"))
                }
                (Some(l), Some(most)) if l > most * (1.0 + 1e-9) => {
                    Err(Error::input(format!("a Jastrow cutoff of {l} does not fit into the cell"))
                        .hint(format!("it can be {most:.6} at most, half the shortest lattice vector")))
                }
                (None, None) if needed => {
                    Err(Error::input("this Jastrow factor needs a cutoff in an open system")
                        .hint("give it, like `cutoff: 6.0`"))
                }
                (None, Some(most)) => {
                    *cutoff = Some(most);
                    Ok(())
                }
                _ => Ok(()),
            }
        };
        match &mut factor {
            JastrowFactor::Rpa { strength, cutoff } => {
                settle(cutoff, true)?;
                if setting.dimension != 3 {
                    return Err(Error::input("the RPA factor is for three dimensions")
                        .hint("use a factor `pade` or `polynomial`"));
                }
                if strength.is_none() {
                    let volume = setting.cell.as_ref().map_or(f64::NAN, super::SimulationCell::volume);
                    let density = (setting.up + setting.down) as f64 / volume;
                    if density.is_nan() {
                        return Err(Error::input(
                            "the strength of an RPA factor follows from a density, and an open \
                             system has none",
                        )
                        .hint("give it, like `strength: 1.0`"));
                    }
                    *strength = Some(1.0 / (4.0 * PI * density).sqrt());
                }
            }
            JastrowFactor::Polynomial { cutoff, .. } => settle(cutoff, true)?,
            JastrowFactor::Nuclear { cutoff, .. } if cutoff.is_some() || largest.is_some() => {
                settle(cutoff, false)?
            }
            JastrowFactor::Pade { slope: None, .. } | JastrowFactor::Log { slope: None }
                if setting.dimension == 1 && setting.up < 2 && setting.down < 2 =>
            {
                return Err(Error::input(format!(
                    "the factor `{self}` does nothing here: on a line electrons of opposite spin have no cusp to take \
                     its slope from"
                ))
                .hint("a factor `polynomial` with `opposite: [-0.5]` has no kink; or give `slope`"));
            }
            _ => {}
        }
        if let JastrowFactor::Pade { slope: Some(s), .. }
        | JastrowFactor::Polynomial { slope: Some(s), .. }
        | JastrowFactor::Log { slope: Some(s) } = &factor
            && !s.is_finite()
        {
            return Err(Error::input(format!("a Jastrow factor of slope {s}")).hint("it is a finite number"));
        }
        for (name, value) in factor.parameters() {
            let must_be_positive = matches!(name.as_str(), "strength" | "b");
            let wrong = !value.is_finite()
                || (must_be_positive && value < 0.0)
                || (name == "strength" && value == 0.0);
            if wrong {
                return Err(Error::input(format!("the Jastrow parameter `{name}` is {value}")).hint(
                    if must_be_positive { "it is a positive number" } else { "it is a finite number" },
                ));
            }
        }
        Ok(factor)
    }

    /// The functions of pairs with the same and with opposite spins; None for a factor of nuclei.
    pub(super) fn pair(&self, setting: &Setting) -> Option<[Radial; 2]> {
        let [same, opposite] = cusp(setting.dimension);
        let slopes = |slope: &Option<f64>| match slope {
            Some(s) => [if opposite > 0.0 { s * same / opposite } else { *s }, *s],
            None => [same, opposite],
        };
        Some(match self {
            JastrowFactor::Rpa { strength, cutoff } => {
                let (a, l) = (strength.unwrap_or(1.0), cutoff.unwrap_or(f64::INFINITY));
                // A / (2 F^2) is the slope.
                let of = |slope: f64| Radial::rpa(a, (a / (2.0 * slope)).sqrt(), l);
                [of(same), of(opposite)]
            }
            JastrowFactor::Pade { slope, b } => slopes(slope).map(|a| Radial::Pade { a, b: *b }),
            JastrowFactor::Polynomial { cutoff, slope, opposite: unlike, same: like } => {
                let cutoff = cutoff.unwrap_or(f64::INFINITY);
                let of = |slope, a: &[f64]| Radial::Polynomial { cutoff, slope, coefficients: a.to_vec() };
                let [same, opposite] = slopes(slope);
                [of(same, like), of(opposite, unlike)]
            }
            JastrowFactor::Log { slope } => slopes(slope).map(|a| Radial::Log { a }),
            JastrowFactor::Power { power } => [Radial::Power { p: *power }, Radial::Power { p: *power }],
            JastrowFactor::Nuclear { .. } => return None,
        })
    }

    /// Whether its slope at contact is that of the cusp condition, which can be met once only.
    fn takes_cusp(&self) -> bool {
        match self {
            JastrowFactor::Rpa { .. } => true,
            JastrowFactor::Pade { slope, .. }
            | JastrowFactor::Polynomial { slope, .. }
            | JastrowFactor::Log { slope } => slope.is_none(),
            JastrowFactor::Power { .. } | JastrowFactor::Nuclear { .. } => false,
        }
    }

    /// Centres and the functions of the distances to them.
    pub(super) fn bodies(&self) -> (Vec<[f64; 3]>, Vec<Radial>) {
        let JastrowFactor::Nuclear { centres, charges, b, cutoff } = self else {
            return (Vec::new(), Vec::new());
        };
        let of = |z: &f64| match cutoff {
            None => Radial::Pade { a: -z, b: *b },
            // Levelled off by the cutoff; b is the curvature that the fraction would have.
            Some(l) => Radial::Polynomial { cutoff: *l, slope: -z, coefficients: vec![z / (b + 3.0 / l)] },
        };
        (centres.clone(), charges.iter().map(of).collect())
    }

    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            JastrowFactor::Rpa { .. } => "RPA",
            JastrowFactor::Pade { .. } => "Pade",
            JastrowFactor::Polynomial { .. } => "polynomial",
            JastrowFactor::Log { .. } => "logarithm",
            JastrowFactor::Power { .. } => "power",
            JastrowFactor::Nuclear { .. } => "nuclear",
        }
    }

    /// Names and values of the parameters that may be optimised.
    pub fn parameters(&self) -> Vec<(String, f64)> {
        let numbered = |name: &str, a: &[f64]| -> Vec<(String, f64)> {
            a.iter().enumerate().map(|(k, a)| (format!("{name}[{k}]"), *a)).collect()
        };
        match self {
            JastrowFactor::Rpa { strength, .. } => {
                strength.map(|a| ("strength".to_string(), a)).into_iter().collect()
            }
            JastrowFactor::Pade { b, .. } | JastrowFactor::Nuclear { b, .. } => vec![("b".into(), *b)],
            JastrowFactor::Polynomial { opposite, same, .. } => {
                let mut all = numbered("opposite", opposite);
                all.extend(numbered("same", same));
                all
            }
            JastrowFactor::Log { .. } => Vec::new(),
            JastrowFactor::Power { power } => vec![("power".into(), *power)],
        }
    }

    /// Sets the parameters, in the order of [`JastrowFactor::parameters`].
    pub(super) fn set_parameters(&mut self, values: &[f64]) {
        match self {
            JastrowFactor::Rpa { strength, .. } => *strength = values.first().copied(),
            JastrowFactor::Pade { b, .. } | JastrowFactor::Nuclear { b, .. } => *b = values[0],
            JastrowFactor::Polynomial { opposite, same, .. } => {
                let n = opposite.len();
                opposite.copy_from_slice(&values[..n]);
                same.copy_from_slice(&values[n..]);
            }
            JastrowFactor::Log { .. } => {}
            JastrowFactor::Power { power } => *power = values[0],
        }
    }
}

impl fmt::Display for JastrowFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kind();
        let cutoff = match self {
            JastrowFactor::Rpa { cutoff, .. }
            | JastrowFactor::Polynomial { cutoff, .. }
            | JastrowFactor::Nuclear { cutoff, .. } => *cutoff,
            JastrowFactor::Pade { .. } | JastrowFactor::Log { .. } | JastrowFactor::Power { .. } => None,
        };
        let mut about: Vec<String> =
            self.parameters().iter().map(|(name, value)| format!("{name} {}", real(*value, 6))).collect();
        about.extend(cutoff.map(|l| format!("cutoff {}", real(l, 6))));
        if about.is_empty() { f.write_str(name) } else { write!(f, "{name} ({})", about.join(", ")) }
    }
}
