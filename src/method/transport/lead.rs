//! Semi-infinite leads: a cell that repeats without end, and where a sample has a place for it.

use std::collections::HashMap;

use faer::Mat;

use super::reflection::SlabWaves;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::lattice::{Bloch, Model};
use crate::number::{C64, memory};

/// Which channels of a lead are told from its others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChannelKind {
    /// None: they are all of one kind.
    Any,
    Electrons,
    Holes,
    /// Those of this value of the quantity that the lead conserves.
    Carrying(f64),
}

/// A semi-infinite lead.
#[derive(Debug, Clone)]
pub struct Lead {
    /// The matrix of one cell, and what joins it to the next one outward.
    h: Mat<C64>,
    v: Mat<C64>,
    /// The same cells as they carry waves: those of electrons and those of holes where no pairing joins them, those of
    /// each value of what is conserved, or all.
    pub(super) waves: Vec<SlabWaves>,
    pub(super) kinds: Vec<ChannelKind>,
    /// From the rows of the waves to those of a cell, where they are not the same.
    pub(super) turn: Option<Mat<C64>>,
    /// The size of what joins its cells. Levels of a cell far away from all others do not enter.
    scale: f64,
    /// Rows of a site.
    orbitals: usize,
    /// Those of its electrons; all but where there are holes.
    electrons: usize,
    /// Cartesian positions of the sites of the cell.
    places: Vec<Vec<f64>>,
    /// The vector from a cell of the model to the next one outward. A cell of the lead may hold several of them.
    step: Vec<f64>,
    /// Whether that is along the model's periodic direction, or against it.
    outward: bool,
    /// Sites of a cell of the model.
    sites: usize,
    /// Pairs of sites that are joined, the second one in the next cell outward where `true`.
    bonds: Vec<(usize, usize, bool)>,
    /// The model of what repeats, and its periodic direction along the lead.
    model: Model,
    along: usize,
}

impl Lead {
    /// A lead whose cells are those of a model with one periodic direction, or with several of which one is given. It
    /// extends in that direction (`outward` true) or against it, and is closed around the others: with the phases of
    /// their boundaries, or of a momentum `across`. `origin` moves it by cells of the model's lattice.
    ///
    /// # Errors
    /// A model that is open in the direction, or does not tell it, or with cells that are not joined.
    pub fn new(
        model: &Model,
        along: Option<usize>,
        across: Option<&[f64]>,
        outward: bool,
        origin: &[i64],
    ) -> Result<Lead> {
        let along = direction(model.lattice().wrap(), along)?;
        let at_momentum = across.map(|k| model.at_momentum_beside(Some(along), k)).transpose()?;
        let model = at_momentum.as_ref().unwrap_or(model);
        let lattice = model.lattice();
        let bloch = Bloch::along(model, along)?;
        if !origin.is_empty() && origin.len() != lattice.dimension() {
            return Err(Error::input(format!(
                "an origin of {} cells on a lattice of {} directions",
                origin.len(),
                lattice.dimension()
            ))
            .hint("an origin has a whole number for each direction"));
        }
        if !model.field_repeats(along) {
            let order = format!(
                "through directions a and {along}, in this order (that of the other order with the other sign)"
            );
            return Err(Error::input(
                "a lead whose vector potential grows along it: no cell is like the next",
            )
            .hint(format!("let it point along the lead: a flux {order}, with a across")));
        }
        let sign = if outward { 1 } else { -1 };
        // Blocks of the matrix by how many cells farther out the row lies than the column.
        let mut blocks: HashMap<i64, &[(usize, usize, C64)]> = HashMap::new();
        for (copy, entries) in bloch.parts().filter(|(_, entries)| !entries.is_empty()) {
            blocks.insert(-sign * copy[0], entries);
        }
        let reach = blocks.keys().map(|o| o.abs()).max().unwrap_or(0);
        if reach == 0 {
            return Err(Error::input("the cells of a lead are not joined: nothing flows through it")
                .hint("give it hoppings along its periodic direction"));
        }
        let (rows, reach) = (bloch.rows(), reach as usize);
        let n = rows * reach;
        memory::ensure(16 * 24 * (n * n) as u128, &format!("a lead of {n} rows"))?;
        let (mut h, mut v) = (Mat::zeros(n, n), Mat::zeros(n, n));
        for a in 0..reach {
            for b in 0..reach {
                let fill = |out: &mut Mat<C64>, apart: i64| {
                    for &(i, j, value) in blocks.get(&apart).copied().unwrap_or_default() {
                        out[(a * rows + i, b * rows + j)] += value;
                    }
                };
                fill(&mut h, a as i64 - b as i64);
                fill(&mut v, (reach + a) as i64 - b as i64);
            }
        }
        let repeat: Vec<f64> = bloch.vectors()[0].iter().map(|x| sign as f64 * x).collect();
        let mut moved = vec![0.0; lattice.space()];
        for (vector, cells) in lattice.vectors().iter().zip(origin) {
            moved.iter_mut().zip(vector).for_each(|(m, x)| *m += *cells as f64 * x);
        }
        let cell = bloch.cell().lattice();
        let mut places = Vec::with_capacity(cell.sites() * reach);
        for a in 0..reach {
            for site in 0..cell.sites() {
                let at = cell.position(site)?.into_iter().zip(&repeat).zip(&moved);
                places.push(at.map(|((x, r), m)| x + a as f64 * r + m).collect());
            }
        }
        let sum = |m: &Mat<C64>, i: usize| (0..n).map(|j| m[(i, j)].norm()).sum::<f64>();
        let across = |i: usize| sum(&v, i) + (0..n).map(|j| v[(j, i)].norm()).sum::<f64>();
        let width = (0..n).map(|i| sum(&h, i)).fold(0.0, f64::max);
        // Joints below the rounding of a cell's own levels are none.
        let scale = (0..n).map(across).fold(0.0, f64::max).max(1e-12 * width);
        let sites = cell.sites();
        let (orbitals, electrons) = (model.orbitals(), model.particles());
        let joined = |m: &Mat<C64>, i: usize, j: usize| {
            (0..orbitals * orbitals)
                .any(|k| m[(i * orbitals + k / orbitals, j * orbitals + k % orbitals)] != C64::ZERO)
        };
        let pairs = (0..n / orbitals).flat_map(|i| (0..n / orbitals).map(move |j| (i, j)));
        let bonds = pairs
            .flat_map(|(i, j)| [(i, j, false), (i, j, true)])
            .filter(|&(i, j, next)| if next { joined(&v, j, i) } else { i < j && joined(&h, i, j) })
            .collect();
        let sectors = sectors(&h, &v, |row| row % orbitals >= electrons);
        let kinds = if sectors.len() == 2 {
            vec![ChannelKind::Electrons, ChannelKind::Holes]
        } else {
            vec![ChannelKind::Any]
        };
        let waves = sectors
            .into_iter()
            .map(|rows| SlabWaves::new(&h, &v, rows, scale))
            .collect::<Option<_>>()
            .ok_or_else(|| Error::numeric("the joints of a lead's cells were not decomposed"))?;
        let model = bloch.cell().clone();
        let step = repeat;
        let turn = None;
        Ok(Lead {
            h,
            v,
            waves,
            kinds,
            turn,
            scale,
            orbitals,
            electrons,
            places,
            step,
            outward,
            sites,
            bonds,
            model,
            along,
        })
    }

    /// Rows of a cell.
    pub fn rows(&self) -> usize {
        self.h.nrows()
    }

    /// The matrix of a cell.
    pub fn cell(&self) -> &Mat<C64> {
        &self.h
    }

    /// What joins a cell to the next one outward: rows of that.
    pub fn joint(&self) -> &Mat<C64> {
        &self.v
    }

    /// The waves of each kind.
    pub fn waves(&self) -> &[SlabWaves] {
        &self.waves
    }

    /// Seeks no waves that the other lead knows, where their cells are the same.
    pub fn share(&mut self, other: &Lead) {
        for waves in &mut self.waves {
            other.waves.iter().for_each(|others| waves.share(others));
        }
    }

    /// The kinds of its waves: electrons and holes, where no pairing joins them, values of what is conserved, or one.
    pub fn kinds(&self) -> &[ChannelKind] {
        &self.kinds
    }

    /// Amplitudes on the rows of a cell from those on the rows of the waves.
    pub fn turned(&self, waves: &Mat<C64>) -> Mat<C64> {
        match &self.turn {
            None => waves.clone(),
            Some(turn) => turn * waves,
        }
    }

    /// The size of what joins its cells.
    pub fn unit(&self) -> f64 {
        self.scale
    }

    /// The vector from a cell of its model to the next one outward, Cartesian.
    pub fn step(&self) -> &[f64] {
        &self.step
    }

    /// Whether that is along the model's periodic direction, or against it.
    pub fn goes_along(&self) -> bool {
        self.outward
    }

    /// Pairs of sites that are joined, the second one in the next cell outward where `true`.
    pub fn bonds(&self) -> &[(usize, usize, bool)] {
        &self.bonds
    }

    /// The model of what repeats, and its periodic direction along the lead.
    pub fn model(&self) -> (&Model, usize) {
        (&self.model, self.along)
    }

    /// Cells of the model in one of the lead.
    pub fn reach(&self) -> usize {
        self.places.len() / self.sites
    }

    /// Rows of a site.
    pub fn orbitals(&self) -> usize {
        self.orbitals
    }

    /// Rows of a site that are for electrons.
    pub fn electrons(&self) -> usize {
        self.electrons
    }

    /// Whether a row of the lead, or of a sample with its orbitals, is for a hole.
    pub fn is_hole(&self, row: usize) -> bool {
        row % self.orbitals >= self.electrons
    }

    /// The sites of a sample where the lead's next cell inward would be, in the order of the lead's sites.
    ///
    /// # Errors
    /// A lead whose cell fits nowhere, or that the sample reaches into.
    pub fn attach(&self, sites: &[Vec<f64>]) -> Result<Vec<usize>> {
        let length2: f64 = self.step.iter().map(|x| x * x).sum();
        let scale = length2.sqrt();
        let found = SitesByCube::new(sites, 1e-6 * scale.min(1.0));
        let first = &self.places[0];
        // How many cells outward from the lead's own place each site of the sample would be its first one.
        let mut shifts: Vec<i64> = sites
            .iter()
            .filter(|x| x.len() == first.len())
            .filter_map(|x| {
                let along: f64 = x.iter().zip(first).zip(&self.step).map(|((x, p), s)| (x - p) * s).sum();
                let cells = (along / length2).round();
                let mut off =
                    x.iter().zip(first).zip(&self.step).map(|((x, p), s)| (x - p - cells * s).abs());
                off.all(|off| off < 1e-6 * scale).then_some(cells as i64)
            })
            .collect();
        shifts.sort_unstable();
        let at = |places: &[Vec<f64>], shift: i64| -> Vec<Option<usize>> {
            let moved = |p: &Vec<f64>| -> Vec<f64> {
                p.iter().zip(&self.step).map(|(p, s)| p + shift as f64 * s).collect()
            };
            places.iter().map(|p| found.at(&moved(p))).collect()
        };
        let last = &self.places[self.places.len() - self.sites..];
        for &shift in shifts.iter().rev() {
            let Some(all) = at(&self.places, shift).into_iter().collect::<Option<Vec<usize>>>() else {
                continue;
            };
            let farthest = shifts[shifts.len() - 1].max(shift) + 2;
            if (shift + 1..=farthest).any(|beyond| at(last, beyond).iter().any(Option::is_some)) {
                return Err(Error::input("sites of the sample stand where a lead begins")
                    .hint(
                        "the sample must end with a whole cell of each lead; if the lead's cell is longer than the \
                         sample's, an origin moves it along as well",
                    ));
            }
            return Ok(all);
        }
        Err(Error::input("a lead fits the sample nowhere: no sites of the sample make up a cell of it").hint(
            "moved along its direction, its cell must meet sites of the sample; an origin moves it across",
        ))
    }
}

/// The direction of a lead: the one that is given, or the only periodic one.
fn direction(wrap: &[Wrap], given: Option<usize>) -> Result<usize> {
    let periodic: Vec<usize> = (0..wrap.len()).filter(|&d| wrap[d] != Wrap::Open).collect();
    match (given, &periodic[..]) {
        (_, []) => Err(Error::input("a lead that is open in every direction")
            .hint("a lead goes on in a direction in which its model is periodic")),
        (Some(d), _) if periodic.contains(&d) => Ok(d),
        (Some(d), _) if d < wrap.len() => {
            Err(Error::input(format!("a lead along direction {d}, which is open"))
                .hint("a lead goes on in a direction in which its model is periodic"))
        }
        (Some(d), _) => Err(Error::input(format!("a lead along direction {d} of {}", wrap.len()))
            .hint("directions are counted from 0")),
        (None, [one]) => Ok(*one),
        (None, several) => Err(Error::input(format!("a lead with {} periodic directions", several.len()))
            .hint("tell along which it goes; it is closed around the others")),
    }
}

/// Rows of electrons and rows of holes, where no pairing joins them; all rows otherwise.
fn sectors(h: &Mat<C64>, v: &Mat<C64>, is_hole: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
    let n = h.nrows();
    let (electrons, holes): (Vec<usize>, Vec<usize>) = (0..n).partition(|&row| !is_hole(row));
    let apart =
        |m: &Mat<C64>| (0..n).all(|i| (0..n).all(|j| is_hole(i) == is_hole(j) || m[(i, j)] == C64::ZERO));
    if holes.is_empty() || !apart(h) || !apart(v) {
        return vec![(0..n).collect()];
    }
    vec![electrons, holes]
}

struct SitesByCube {
    cubes: HashMap<Vec<i64>, Vec<usize>>,
    sites: Vec<Vec<f64>>,
    tolerance: f64,
}

impl SitesByCube {
    fn new(sites: &[Vec<f64>], tolerance: f64) -> SitesByCube {
        let mut cubes: HashMap<Vec<i64>, Vec<usize>> = HashMap::new();
        for (i, place) in sites.iter().enumerate() {
            cubes.entry(place.iter().map(|x| x.round() as i64).collect()).or_default().push(i);
        }
        SitesByCube { cubes, sites: sites.to_vec(), tolerance }
    }

    fn at(&self, place: &[f64]) -> Option<usize> {
        // A place near the wall of a cube may have been put into the next one.
        let sides: Vec<[i64; 2]> = place
            .iter()
            .map(|x| [(x - self.tolerance).round() as i64, (x + self.tolerance).round() as i64])
            .collect();
        (0..1usize << place.len()).find_map(|code| {
            let cube: Vec<i64> = sides.iter().enumerate().map(|(d, side)| side[code >> d & 1]).collect();
            let near = |i: &&usize| {
                let there = &self.sites[**i];
                there.iter().zip(place).all(|(a, b)| (a - b).abs() <= self.tolerance)
            };
            self.cubes.get(&cube)?.iter().find(near).copied()
        })
    }
}
