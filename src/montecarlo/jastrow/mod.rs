//! Jastrow factors `exp(J)`: J is a sum of functions u(r) of the distances between electrons, by their spins, and of
//! chi(r) to nuclei.

mod factor;
mod radial;

pub use factor::{JastrowFactor, must_meet_cusp_once};
pub use radial::Radial;

use super::SimulationCell;
use super::vectors::length;
use crate::error::{Error, Result};

/// What a Jastrow factor acts on.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// One to three dimensions.
    pub dimension: usize,
    /// The periodic cell, if there is one.
    pub cell: Option<SimulationCell>,
    /// Electrons of spin up.
    pub up: usize,
    /// Electrons of spin down.
    pub down: usize,
}

impl Setting {
    fn difference(&self, a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
        let d = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
        match &self.cell {
            Some(cell) => cell.minimum_image(d),
            None => d,
        }
    }
}

/// The factors of a wave function, ready for use.
#[derive(Debug, Clone)]
pub struct Jastrow {
    setting: Setting,
    factors: Vec<JastrowFactor>,
    /// Functions between electrons with the same spin, and with opposite spins.
    pairs: Vec<[Radial; 2]>,
    bodies: Vec<(Vec<[f64; 3]>, Vec<Radial>)>,
}

/// Gradient and Laplacian of J with respect to one electron.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slope {
    /// `grad_i J`.
    pub gradient: [f64; 3],
    /// `lap_i J`.
    pub laplacian: f64,
}

impl Jastrow {
    /// Factors for these electrons. Parameters that they leave open are found from the density and the cell.
    ///
    /// # Errors
    /// When a cutoff does not fit into the cell, or a parameter is out of range.
    pub fn new(factors: &[JastrowFactor], setting: Setting) -> Result<Jastrow> {
        let factors: Vec<JastrowFactor> =
            factors.iter().map(|f| f.settled(&setting)).collect::<Result<_>>()?;
        let (mut pairs, mut bodies) = (Vec::new(), Vec::new());
        for factor in &factors {
            match factor.pair(&setting) {
                Some(pair) => pairs.push(pair),
                None => bodies.push(factor.bodies()),
            }
        }
        Ok(Jastrow { setting, factors, pairs, bodies })
    }

    /// The factors, with all that was left open filled in.
    pub fn factors(&self) -> &[JastrowFactor] {
        &self.factors
    }

    /// Functions of pairs with the same and with opposite spins.
    pub fn pairs(&self) -> &[[Radial; 2]] {
        &self.pairs
    }

    /// Fixed places, with the function of the distance to each.
    pub fn bodies(&self) -> impl Iterator<Item = ([f64; 3], &Radial)> {
        self.bodies.iter().flat_map(|(centres, radials)| centres.iter().copied().zip(radials))
    }

    /// How J behaves where two electrons of opposite spin meet: `power ln r + slope r`.
    pub fn contact(&self) -> (f64, f64) {
        self.pairs.iter().fold((0.0, 0.0), |(power, slope), [_, unlike]| match unlike {
            Radial::Power { p } => (power + p, slope),
            radial => (power, slope + radial.slope()),
        })
    }

    /// Whether J has no factor.
    pub fn is_empty(&self) -> bool {
        self.factors.is_empty()
    }

    /// The parameters that may be optimised, by name. A name that several factors have gets that of the factor in
    /// front, as in `pade_b` and `nuclear_b`; factors of one kind are numbered, as in `nuclear_1_b`.
    pub fn parameters(&self) -> Vec<(String, f64)> {
        let own: Vec<Vec<(String, f64)>> = self.factors.iter().map(JastrowFactor::parameters).collect();
        let shared = |k: usize, name: &str| {
            own.iter().enumerate().any(|(l, other)| l != k && other.iter().any(|(n, _)| n == name))
        };
        let kind = |k: usize| self.factors[k].kind().to_lowercase();
        let named = |k: usize, name: &str| {
            if !shared(k, name) {
                return name.to_string();
            }
            let same: Vec<usize> = (0..own.len()).filter(|&l| kind(l) == kind(k)).collect();
            match same.iter().position(|&l| l == k) {
                Some(at) if same.len() > 1 => format!("{}_{}_{name}", kind(k), at + 1),
                _ => format!("{}_{name}", kind(k)),
            }
        };
        let all = own.iter().enumerate();
        all.flat_map(|(k, list)| list.iter().map(move |(name, value)| (k, name, *value)))
            .map(|(k, name, value)| (named(k, name), value))
            .collect()
    }

    /// The same factors with other parameters, in the order of [`Jastrow::parameters`].
    ///
    /// # Errors
    /// When there are not as many, or one is out of range.
    pub fn with_parameters(&self, values: &[f64]) -> Result<Jastrow> {
        let count = self.parameters().len();
        if values.len() != count {
            return Err(Error::input(format!("{} parameters for a Jastrow factor of {count}", values.len()))
                .hint("one number each, in the order of `parameter_values`"));
        }
        let mut rest = values;
        let mut factors = self.factors.clone();
        for factor in &mut factors {
            let (mine, others) = rest.split_at(factor.parameters().len());
            factor.set_parameters(mine);
            rest = others;
        }
        Jastrow::new(&factors, self.setting.clone())
    }

    /// Which of a pair's two functions applies: 0 for the same spin, 1 for opposite spins.
    fn kind(&self, i: usize, j: usize) -> usize {
        usize::from((i < self.setting.up) != (j < self.setting.up))
    }

    /// J of a configuration.
    pub fn value(&self, positions: &[[f64; 3]]) -> f64 {
        let mut sum = 0.0;
        for i in 0..positions.len() {
            sum += self.of_electron(positions, i, positions[i], i);
        }
        sum
    }

    /// The part of J between electron i, put at `at`, and the electrons before `until` (itself excepted) and the
    /// nuclei.
    fn of_electron(&self, positions: &[[f64; 3]], i: usize, at: [f64; 3], until: usize) -> f64 {
        let mut sum = 0.0;
        if !self.pairs.is_empty() {
            for (j, &other) in positions[..until].iter().enumerate() {
                if j == i {
                    continue;
                }
                let (r, kind) = (length(self.setting.difference(at, other)), self.kind(i, j));
                for pair in &self.pairs {
                    sum += pair[kind].value(r);
                }
            }
        }
        for (centres, radials) in &self.bodies {
            for (centre, radial) in centres.iter().zip(radials) {
                sum += radial.value(length(self.setting.difference(at, *centre)));
            }
        }
        sum
    }

    /// How J changes when electron i goes to `to`.
    pub fn change(&self, positions: &[[f64; 3]], i: usize, to: [f64; 3]) -> f64 {
        if self.factors.is_empty() {
            return 0.0;
        }
        let n = positions.len();
        self.of_electron(positions, i, to, n) - self.of_electron(positions, i, positions[i], n)
    }

    /// Gradient and Laplacian of J with respect to every electron.
    pub fn slopes(&self, positions: &[[f64; 3]]) -> Vec<Slope> {
        let mut slopes = vec![Slope::default(); positions.len()];
        let d = self.setting.dimension as f64;
        let term = |radials: &mut dyn Iterator<Item = &Radial>, v: [f64; 3]| {
            let r = length(v).max(1e-300);
            let (u1, u2) = radials.fold((0.0, 0.0), |(a, b), radial| {
                let [_, u1, u2] = radial.derivatives(r);
                (a + u1, b + u2)
            });
            (v.map(|x| u1 * x / r), u2 + (d - 1.0) * u1 / r)
        };
        if !self.pairs.is_empty() {
            for i in 0..positions.len() {
                for j in 0..i {
                    let kind = self.kind(i, j);
                    let v = self.setting.difference(positions[i], positions[j]);
                    let (gradient, laplacian) = term(&mut self.pairs.iter().map(|p| &p[kind]), v);
                    for k in 0..3 {
                        slopes[i].gradient[k] += gradient[k];
                        slopes[j].gradient[k] -= gradient[k];
                    }
                    slopes[i].laplacian += laplacian;
                    slopes[j].laplacian += laplacian;
                }
            }
        }
        for (centres, radials) in &self.bodies {
            for (position, slope) in positions.iter().zip(&mut slopes) {
                for (centre, radial) in centres.iter().zip(radials) {
                    let v = self.setting.difference(*position, *centre);
                    let (gradient, laplacian) = term(&mut std::iter::once(radial), v);
                    (0..3).for_each(|k| slope.gradient[k] += gradient[k]);
                    slope.laplacian += laplacian;
                }
            }
        }
        slopes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(cell: Option<SimulationCell>) -> Setting {
        Setting { dimension: 3, cell, up: 2, down: 2 }
    }

    #[test]
    fn slopes_and_changes_are_those_of_the_value() {
        let cell = SimulationCell::new([[0.0, 3.0, 3.0], [3.0, 0.0, 3.0], [3.0, 3.0, 0.0]]).unwrap();
        let at = [[0.1, 0.2, 0.3], [2.0, 1.0, 0.5], [0.4, 2.5, 1.1], [1.0, 1.2, 2.2]];
        let factors = [
            JastrowFactor::Rpa { strength: None, cutoff: None },
            JastrowFactor::Polynomial {
                cutoff: None,
                slope: Some(0.2),
                opposite: vec![0.1, 0.2],
                same: vec![0.05, -0.1],
            },
            JastrowFactor::Nuclear {
                centres: vec![[0.0; 3], [1.0, 1.0, 1.0]],
                charges: vec![2.0, 1.0],
                b: 0.7,
                cutoff: None,
            },
        ];
        let periodic = Jastrow::new(&factors, setting(Some(cell))).unwrap();
        let open = Jastrow::new(&[JastrowFactor::Pade { slope: None, b: 0.4 }], setting(None)).unwrap();
        for jastrow in [periodic, open] {
            let slopes = jastrow.slopes(&at);
            for i in 0..4 {
                let mut laplacian = 0.0;
                for k in 0..3 {
                    let h = 1e-4;
                    let shifted = |s: f64| {
                        let mut moved = at;
                        moved[i][k] += s * h;
                        (jastrow.value(&moved), jastrow.change(&at, i, moved[i]))
                    };
                    let ((high, up), (low, _)) = (shifted(1.0), shifted(-1.0));
                    let middle = jastrow.value(&at);
                    assert!((slopes[i].gradient[k] - (high - low) / (2.0 * h)).abs() < 1e-6);
                    assert!((high - middle - up).abs() < 1e-12);
                    laplacian += (high + low - 2.0 * middle) / (h * h);
                }
                assert!((slopes[i].laplacian - laplacian).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn cutoffs_must_fit() {
        let cell = SimulationCell::cubic(4.0).unwrap();
        assert!(
            Jastrow::new(&[JastrowFactor::Rpa { strength: None, cutoff: Some(3.0) }], setting(Some(cell)))
                .is_err()
        );
        assert!(Jastrow::new(&[JastrowFactor::Rpa { strength: None, cutoff: None }], setting(None)).is_err());
    }

    #[test]
    fn the_cusp_is_met_once() {
        let pade = JastrowFactor::Pade { slope: None, b: 0.4 };
        let smooth = |slope| JastrowFactor::Polynomial {
            cutoff: Some(4.0),
            slope,
            opposite: vec![0.3],
            same: vec![0.1],
        };
        let both = Jastrow::new(&[pade.clone(), smooth(Some(0.0))], setting(None)).unwrap();
        assert!((both.contact().1 - 0.5).abs() < 1e-14, "{:?}", both.contact());
        // As a difference of values: 1/2 for opposite spins, 1/4 for equal ones (electrons 0 and 1).
        for (other, cusp) in [(1, 0.25), (2, 0.5)] {
            let near = |r: f64| {
                let mut at = [[0.0; 3], [0.0, 9.0, 0.0], [0.0, 0.0, 9.0], [0.0, -9.0, 9.0]];
                at[other] = [r, 0.0, 0.0];
                both.value(&at)
            };
            let slope = (near(2e-6) - near(1e-6)) / 1e-6;
            assert!((slope - cusp).abs() < 1e-4, "{slope} for {cusp}");
        }
        assert!(must_meet_cusp_once(&[pade.clone(), smooth(Some(0.0))]).is_ok());
        assert!(must_meet_cusp_once(&[pade.clone(), smooth(None)]).is_err());
        assert!(must_meet_cusp_once(&[pade.clone(), pade]).is_err());
    }

    #[test]
    fn parameters_return() {
        let jastrow = Jastrow::new(&[JastrowFactor::Pade { slope: None, b: 0.4 }], setting(None)).unwrap();
        assert_eq!(jastrow.parameters(), [("b".to_string(), 0.4)]);
        assert_eq!(jastrow.with_parameters(&[0.5]).unwrap().parameters()[0].1, 0.5);
        assert!(jastrow.with_parameters(&[]).is_err() && jastrow.with_parameters(&[-1.0]).is_err());
    }

    #[test]
    fn parameters_of_one_name_are_told_apart() {
        let pade = |b| JastrowFactor::Pade { slope: None, b };
        let nuclear =
            |b| JastrowFactor::Nuclear { centres: vec![[0.0; 3]], charges: vec![1.0], b, cutoff: None };
        let names = |factors: &[JastrowFactor]| -> Vec<String> {
            let jastrow = Jastrow::new(factors, setting(None)).unwrap();
            jastrow.parameters().into_iter().map(|p| p.0).collect()
        };
        assert_eq!(names(&[pade(0.3), JastrowFactor::Power { power: 1.0 }]), ["b", "power"]);
        assert_eq!(names(&[pade(0.3), nuclear(3.0)]), ["pade_b", "nuclear_b"]);
        assert_eq!(names(&[nuclear(1.0), pade(0.3), nuclear(3.0)]), ["nuclear_1_b", "pade_b", "nuclear_2_b"]);
        let jastrow = Jastrow::new(&[pade(0.3), nuclear(3.0)], setting(None)).unwrap();
        let changed = jastrow.with_parameters(&[0.4, 2.0]).unwrap().parameters();
        assert_eq!(changed, [("pade_b".to_string(), 0.4), ("nuclear_b".to_string(), 2.0)]);
    }
}
