//! The finite lattice: cells of a Bravais lattice, the sites in a cell, boundaries, and nearest-neighbour bonds.

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;
use smallvec::SmallVec;

use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::number::{C64, memory};
use crate::task;

/// The most directions a lattice can have.
pub const MAX_DIMENSION: usize = 8;

/// Sites that a thread takes at a time.
pub(super) const CHUNK: usize = 65536;

/// A site of the unit cell.
#[derive(Debug, Clone, PartialEq)]
pub struct LatticeSite {
    /// Name of its sublattice: "A", "B", ...
    pub name: String,
    /// Position in the cell, Cartesian, in lattice constants.
    pub position: Vec<f64>,
}

/// A displacement in cells. There may be millions of them, and most are short.
pub type CellShift = SmallVec<[i64; 3]>;

/// A bond from site `from` of a cell to site `to` of the cell displaced by `shift`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bond {
    /// Displacement in cells, one entry a direction.
    pub shift: CellShift,
    /// Site of the cell that the bond leaves.
    pub from: usize,
    /// Site of the displaced cell that the bond reaches.
    pub to: usize,
}

/// A finite lattice. Sites are numbered `cell * basis + s` with the first direction fastest, and consecutively after a
/// removal. Lengths are in lattice constants. Copies are cheap.
#[derive(Debug, Clone)]
pub struct Lattice {
    pub(super) name: String,
    pub(super) vectors: Arc<Vec<Vec<f64>>>,
    /// Rows that turn a Cartesian vector into cell coordinates (the pseudo-inverse of the vectors).
    pub(super) inverse: Arc<Vec<Vec<f64>>>,
    pub(super) basis: Arc<Vec<LatticeSite>>,
    pub(super) cells: Vec<usize>,
    pub(super) wrap: Vec<Wrap>,
    pub(super) bonds: Arc<Vec<Bond>>,
    pub(super) kept: Option<Arc<Renumbering>>,
}

/// The numbering after a removal.
#[derive(Debug)]
pub(super) struct Renumbering {
    /// Number before removal of each site.
    pub full: Vec<usize>,
    /// Number after removal of each former site, `usize::MAX` where it is gone.
    pub number: Vec<usize>,
    /// How many times sites were removed at random: each time has random numbers of its own.
    pub draws: u32,
    /// Whether sites came that the cells did not have, so that what is missing was not all removed.
    pub grown: bool,
}

/// Where a displacement from a cell arrives.
pub(super) struct Arrival {
    /// Number of the cell, within the lattice.
    pub cell: usize,
    /// How often each boundary was crossed, upwards positive.
    pub crossings: [i64; MAX_DIMENSION],
    /// Whether any was crossed.
    pub wrapped: bool,
}

/// The error for an axis that a space of so many dimensions does not have.
pub fn no_axis(axis: impl std::fmt::Display, space: usize) -> Error {
    Error::input(format!("axis {axis} in a space of {space} dimensions")).hint("axes are numbered from 0")
}

impl Lattice {
    /// A lattice from its Bravais vectors, the sites of a cell, nearest-neighbour bonds and the number of cells in each
    /// direction; periodic in all of them.
    ///
    /// # Errors
    /// When dimensions do not fit, vectors are linearly dependent, a bond names a site outside the cell, or there are
    /// more sites than a 63-bit number counts.
    pub fn custom(
        name: impl Into<String>,
        vectors: Vec<Vec<f64>>,
        basis: Vec<LatticeSite>,
        bonds: Vec<Bond>,
        cells: Vec<usize>,
    ) -> Result<Self> {
        let d = vectors.len();
        if d == 0 || d > MAX_DIMENSION {
            return Err(Error::input(format!("a lattice has 1 to {MAX_DIMENSION} directions, not {d}"))
                .hint("each direction has a vector"));
        }
        if cells.len() != d {
            return Err(Error::input(format!("{} sizes given for a lattice of {d} directions", cells.len()))
                .hint("give one number of cells for each direction"));
        }
        if let Some(n) = cells.iter().find(|&&n| n == 0 || n > i64::MAX as usize) {
            return Err(Error::input(format!(
                "a lattice needs at least one cell in each direction, not {n}"
            ))
            .hint("one cell is the least; of a lattice with fewer directions take another kind"));
        }
        if basis.is_empty() {
            return Err(
                Error::input("a unit cell needs at least one site").hint("give it the position of a site")
            );
        }
        let space = vectors[0].len();
        let lengths_fit = vectors.iter().chain(basis.iter().map(|s| &s.position)).all(|v| v.len() == space);
        if !lengths_fit || space < d {
            return Err(Error::input(format!(
                "Bravais vectors and positions of sites need one common length of at least {d}"
            ))
            .hint("all have as many coordinates as the space has dimensions"));
        }
        if vectors.iter().chain(basis.iter().map(|s| &s.position)).flatten().any(|x| !x.is_finite()) {
            return Err(Error::input("a Bravais vector or a position is not a finite number")
                .hint("look for a division by zero"));
        }
        for bond in &bonds {
            check_bond(bond, d, basis.len())?;
        }
        let sites = cells.iter().try_fold(basis.len(), |n, &c| n.checked_mul(c));
        if sites.is_none_or(|n| n > i64::MAX as usize) {
            let shown: Vec<String> = cells.iter().map(usize::to_string).collect();
            return Err(Error::input(format!(
                "a lattice of {} cells has too many sites to number",
                shown.join(" x ")
            ))
            .hint("take fewer cells"));
        }
        let inverse = pseudo_inverse(&vectors)?;
        Ok(Lattice {
            name: name.into(),
            vectors: Arc::new(vectors),
            inverse: Arc::new(inverse),
            basis: Arc::new(basis),
            wrap: vec![Wrap::Phase(C64::ONE); d],
            cells,
            bonds: Arc::new(bonds),
            kept: None,
        })
    }

    /// The same lattice with the given boundaries, one per direction (or one for all).
    ///
    /// # Errors
    /// When their number does not fit, or a phase has not modulus 1.
    pub fn boundary(&self, wrap: &[Wrap]) -> Result<Self> {
        let d = self.dimension();
        let wrap = match wrap {
            [one] => vec![*one; d],
            all if all.len() == d => all.to_vec(),
            other => {
                return Err(Error::input(format!(
                    "{} boundaries given for a lattice of {d} directions",
                    other.len()
                ))
                .hint("give one for all, or one per direction"));
            }
        };
        for w in &wrap {
            if let Wrap::Phase(p) = w
                && ((p.norm() - 1.0).abs() > 1e-12 || !p.norm().is_finite())
            {
                return Err(Error::input(format!("the boundary phase {p} has not modulus 1"))
                    .hint("1 is periodic, -1 antiperiodic, exp(i theta) twisted by the angle theta"));
            }
        }
        Ok(Lattice { wrap, ..self.clone() })
    }

    /// What kind of lattice it is: "cubic", "honeycomb", ...
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of directions in which cells repeat.
    #[inline]
    pub fn dimension(&self) -> usize {
        self.cells.len()
    }

    /// Number of Cartesian coordinates of a position.
    #[inline]
    pub fn space(&self) -> usize {
        self.vectors[0].len()
    }

    /// Bravais vectors, Cartesian.
    #[inline]
    pub fn vectors(&self) -> &[Vec<f64>] {
        &self.vectors
    }

    /// The sites of a unit cell.
    #[inline]
    pub fn basis(&self) -> &[LatticeSite] {
        &self.basis
    }

    /// Cells in each direction.
    #[inline]
    pub fn cells(&self) -> &[usize] {
        &self.cells
    }

    /// Number of cells, those without sites too.
    #[inline]
    pub fn cell_count(&self) -> usize {
        self.cells.iter().product()
    }

    /// The boundary of each direction.
    pub fn wrap(&self) -> &[Wrap] {
        &self.wrap
    }

    /// Nearest-neighbour bonds, each named once.
    pub fn bonds(&self) -> &[Bond] {
        &self.bonds
    }

    /// Number of sites, after removals.
    pub fn sites(&self) -> usize {
        self.kept.as_ref().map_or_else(|| self.all_sites(), |k| k.full.len())
    }

    /// Number of sites before removals.
    pub(super) fn all_sites(&self) -> usize {
        self.cell_count() * self.basis.len()
    }

    /// Whether sites are numbered anew, because some were removed or added.
    #[inline]
    pub fn has_removed(&self) -> bool {
        self.kept.is_some()
    }

    /// The site number of site `s` of the cell at the given coordinates.
    ///
    /// # Errors
    /// When the coordinates do not fit or lie outside, or the site was removed.
    pub fn site(&self, at: &[i64], s: usize) -> Result<usize> {
        let cell = self.cell_at(at)?;
        self.need_sublattice(s)?;
        self.number(cell * self.basis.len() + s).ok_or_else(|| {
            Error::input(format!("site {s} of cell {at:?} was removed from the lattice"))
                .hint("choose one that is left")
        })
    }

    /// The number of the cell at the given coordinates; the first direction's count fastest.
    ///
    /// # Errors
    /// When the coordinates do not fit or lie outside.
    pub(super) fn cell_at(&self, at: &[i64]) -> Result<usize> {
        let d = self.dimension();
        if at.len() != d {
            return Err(Error::input(format!("{} cell coordinates given for {d} directions", at.len()))
                .hint("give whole numbers, one per direction"));
        }
        let (mut cell, mut stride) = (0, 1);
        for (direction, (&x, &n)) in at.iter().zip(&self.cells).enumerate() {
            if x < 0 || x as usize >= n {
                let last = n - 1;
                return Err(Error::input(format!(
                    "cell {x} lies outside the lattice: direction {direction} has cells 0 to {last}"
                ))
                .hint("cells are numbered from 0 in each direction"));
            }
            cell += x as usize * stride;
            stride *= n;
        }
        Ok(cell)
    }

    /// Refuses a sublattice that there is not.
    ///
    /// # Errors
    /// For such a one.
    pub fn need_sublattice(&self, s: usize) -> Result<()> {
        let n = self.basis.len();
        if s < n {
            return Ok(());
        }
        Err(Error::input(format!("sublattice {s} outside a unit cell of {n} sites"))
            .hint("sublattices are numbered from 0"))
    }

    /// The number of the sublattice with this name.
    ///
    /// # Errors
    /// When none has it.
    pub fn sublattice(&self, name: &str) -> Result<usize> {
        self.basis.iter().position(|site| site.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.basis.iter().map(|s| s.name.as_str()).collect();
            Error::input(format!("no sublattice `{name}`"))
                .hint(format!("the sublattices are {}", names.join(", ")))
        })
    }

    /// Cell coordinates and sublattice of a site.
    ///
    /// # Errors
    /// When there is no such site.
    pub fn locate(&self, site: usize) -> Result<(Vec<i64>, usize)> {
        if site >= self.sites() {
            return Err(Error::input(format!("site {site} outside a lattice of {} sites", self.sites()))
                .hint(format!("sites are numbered from 0 to {}", self.sites().saturating_sub(1))));
        }
        let full = self.full(site);
        let at = self.coordinates(full / self.basis.len());
        Ok((at[..self.dimension()].to_vec(), full % self.basis.len()))
    }

    /// Cartesian position of a site, in lattice constants.
    ///
    /// # Errors
    /// When there is no such site.
    pub fn position(&self, site: usize) -> Result<Vec<f64>> {
        let (at, s) = self.locate(site)?;
        let mut position = vec![0.0; self.space()];
        self.position_into(&at, s, &mut position);
        Ok(position)
    }

    /// The Cartesian coordinates of all sites along an axis, in lattice constants.
    ///
    /// # Errors
    /// When there is no such axis, or no memory for them.
    pub fn along(&self, axis: usize) -> Result<Vec<f64>> {
        if axis >= self.space() {
            return Err(no_axis(axis, self.space()));
        }
        let sites = self.sites();
        memory::ensure(8 * sites as u128, &format!("a coordinate of {sites} sites"))?;
        let stop = task::current();
        let mut all = vec![0.0; sites];
        all.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, all)| {
            stop.heed();
            self.along_from(axis, chunk * CHUNK, all);
        });
        Ok(all)
    }

    /// The coordinates along an axis of the sites from `first` on.
    pub(super) fn along_from(&self, axis: usize, first: usize, all: &mut [f64]) {
        let basis = self.basis.len();
        let starts: Vec<f64> = self.basis.iter().map(|site| site.position[axis]).collect();
        let mut last = (usize::MAX, [0; MAX_DIMENSION]);
        for (k, to) in all.iter_mut().enumerate() {
            let full = self.full(first + k);
            last = self.cell_after(last, full / basis);
            let mut x = starts[full % basis];
            for d in 0..self.cells.len() {
                x += last.1[d] as f64 * self.vectors[d][axis];
            }
            *to = x;
        }
    }

    /// Sites joined to a site by nearest-neighbour bonds, ascending, each once.
    ///
    /// # Errors
    /// When there is no such site.
    pub fn neighbors(&self, site: usize) -> Result<Vec<usize>> {
        let (at, s) = self.locate(site)?;
        let mut found = Vec::new();
        for bond in self.bonds.iter() {
            if bond.from == s
                && let Some(landing) = self.land(&at, &bond.shift, 1)
            {
                found.extend(self.number(landing.cell * self.basis.len() + bond.to));
            }
            if bond.to == s
                && let Some(landing) = self.land(&at, &bond.shift, -1)
            {
                found.extend(self.number(landing.cell * self.basis.len() + bond.from));
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Whether both have the same sites at the same places; bonds and boundaries may differ.
    pub(super) fn same_sites(&self, other: &Lattice) -> bool {
        let places =
            |basis: &[LatticeSite]| basis.iter().map(|site| site.position.clone()).collect::<Vec<_>>();
        let kept = match (&self.kept, &other.kept) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a.full == b.full,
            _ => false,
        };
        self.cells == other.cells
            && self.vectors == other.vectors
            && places(&self.basis) == places(&other.basis)
            && kept
    }

    /// A Cartesian vector in units of the Bravais vectors.
    pub fn cell_coordinates(&self, position: &[f64]) -> Vec<f64> {
        self.inverse.iter().map(|row| row.iter().zip(position).map(|(a, x)| a * x).sum()).collect()
    }

    /// Number of a site before removals.
    #[inline]
    pub(super) fn full(&self, site: usize) -> usize {
        self.kept.as_ref().map_or(site, |k| k.full[site])
    }

    /// Number of a site after removals, if it was kept.
    #[inline]
    pub(super) fn number(&self, full: usize) -> Option<usize> {
        match &self.kept {
            None => Some(full),
            Some(kept) => Some(kept.number[full]).filter(|&n| n != usize::MAX),
        }
    }

    #[inline]
    pub(super) fn coordinates(&self, mut cell: usize) -> [i64; MAX_DIMENSION] {
        let mut at = [0; MAX_DIMENSION];
        for (x, &n) in at.iter_mut().zip(&self.cells) {
            *x = (cell % n) as i64;
            cell /= n;
        }
        at
    }

    /// A cell and its coordinates, from those of the cell looked at last, which is mostly the one before.
    #[inline]
    pub(super) fn cell_after(
        &self,
        (last, mut at): (usize, [i64; MAX_DIMENSION]),
        cell: usize,
    ) -> (usize, [i64; MAX_DIMENSION]) {
        if cell == last {
            return (cell, at);
        }
        if cell == last.wrapping_add(1) && last != usize::MAX {
            for d in 0..self.cells.len() {
                at[d] += 1;
                if at[d] < self.cells[d] as i64 {
                    return (cell, at);
                }
                at[d] = 0;
            }
        }
        (cell, self.coordinates(cell))
    }

    /// Position of site `s` of a cell, which may lie outside the lattice.
    #[inline]
    pub(super) fn position_into(&self, at: &[i64], s: usize, position: &mut [f64]) {
        position.copy_from_slice(&self.basis[s].position);
        for (vector, &x) in self.vectors.iter().zip(at) {
            for (p, v) in position.iter_mut().zip(vector) {
                *p += x as f64 * v;
            }
        }
    }

    /// The displacement from a site of sublattice `between.0` to one of `between.1` in the cell displaced by `shift`,
    /// along each of `axes`.
    pub(super) fn reach(
        &self,
        shift: &[i64],
        between: (usize, usize),
        axes: &[usize],
    ) -> impl Iterator<Item = f64> {
        let place = |s: usize, axis: usize| self.basis[s].position[axis];
        axes.iter().map(move |&axis| {
            let cells: f64 = self.vectors.iter().zip(shift).map(|(v, &x)| x as f64 * v[axis]).sum();
            cells + (place(between.1, axis) - place(between.0, axis))
        })
    }

    /// Where `sign * shift` leads from a cell; none beyond an open boundary.
    #[inline]
    pub(super) fn land(&self, at: &[i64], shift: &[i64], sign: i64) -> Option<Arrival> {
        let mut landing = Arrival { cell: 0, crossings: [0; MAX_DIMENSION], wrapped: false };
        let mut stride = 1;
        for (d, &n) in self.cells.iter().enumerate() {
            let n = n as i64;
            let mut x = at[d] + sign * shift[d];
            if x < 0 || x >= n {
                if self.wrap[d] == Wrap::Open {
                    return None;
                }
                landing.wrapped = true;
                landing.crossings[d] = x.div_euclid(n);
                x = x.rem_euclid(n);
            }
            landing.cell += x as usize * stride;
            stride *= n as usize;
        }
        Some(landing)
    }

    /// The boundary phase of a matrix element whose column was displaced as `landing` says.
    #[inline]
    pub(super) fn phase(&self, landing: &Arrival) -> C64 {
        let mut phase = C64::ONE;
        for (wrap, &n) in self.wrap.iter().zip(&landing.crossings) {
            if let Wrap::Phase(p) = wrap
                && n != 0
            {
                let p = if n > 0 { *p } else { p.conj() };
                phase *= p.powu(n.unsigned_abs() as u32);
            }
        }
        phase
    }
}

impl fmt::Display for Lattice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<String> = self.cells.iter().map(usize::to_string).collect();
        write!(f, "Lattice {} of {} cells, {} sites", self.name, cells.join(" x "), self.sites())?;
        if self.kept.as_ref().is_some_and(|kept| !kept.grown) {
            write!(f, " ({} removed)", self.all_sites() - self.sites())?;
        }
        let names: Vec<String> = self.wrap.iter().map(|w| boundary_name(*w)).collect();
        if names.windows(2).all(|w| w[0] == w[1]) {
            write!(f, ", {}", names[0])
        } else {
            write!(f, ", {}", names.join(" x "))
        }
    }
}

fn boundary_name(wrap: Wrap) -> String {
    match wrap {
        Wrap::Open => "open".into(),
        Wrap::Phase(p) if p == C64::ONE => "periodic".into(),
        Wrap::Phase(p) if p == -C64::ONE => "antiperiodic".into(),
        Wrap::Phase(p) => format!("twisted({})", p.arg()),
    }
}

/// An error unless a bond fits the lattice.
pub(super) fn check_bond(bond: &Bond, d: usize, basis: usize) -> Result<()> {
    if bond.shift.len() != d {
        return Err(Error::input(format!(
            "a displacement of {} entries does not fit a lattice of {d} directions",
            bond.shift.len()
        ))
        .hint("give one number of cells for each direction"));
    }
    if bond.from >= basis || bond.to >= basis {
        return Err(Error::input(format!(
            "site {} outside a unit cell of {basis} sites",
            bond.from.max(bond.to)
        ))
        .hint(format!("its sites are numbered from 0 to {}", basis.saturating_sub(1))));
    }
    // beyond this, products of displacements and sizes could overflow
    if let Some(x) = bond.shift.iter().find(|x| x.unsigned_abs() > 1 << 31) {
        return Err(Error::input(format!("a displacement of {x} cells is too far"))
            .hint("it is counted in cells of the lattice"));
    }
    Ok(())
}

/// (A A^T)^-1 A for the matrix A of the vectors as rows, by Gauss and Jordan with pivots.
pub(super) fn pseudo_inverse(vectors: &[Vec<f64>]) -> Result<Vec<Vec<f64>>> {
    let d = vectors.len();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let mut left: Vec<Vec<f64>> =
        vectors.iter().map(|a| vectors.iter().map(|b| dot(a, b)).collect()).collect();
    let mut right = vectors.to_vec();
    let scale = (0..d).map(|i| left[i][i]).fold(0.0, f64::max);
    for i in 0..d {
        let pivot = (i..d).max_by(|&a, &b| left[a][i].abs().total_cmp(&left[b][i].abs())).unwrap_or(i);
        if left[pivot][i].abs() <= 1e-12 * scale {
            return Err(Error::input("the Bravais vectors are linearly dependent")
                .hint("they span a volume, in the plane an area"));
        }
        left.swap(i, pivot);
        right.swap(i, pivot);
        let p = left[i][i];
        left[i].iter_mut().chain(right[i].iter_mut()).for_each(|x| *x /= p);
        let (row, other) = (left[i].clone(), right[i].clone());
        for j in (0..d).filter(|&j| j != i) {
            let f = left[j][i];
            left[j].iter_mut().zip(&row).for_each(|(x, y)| *x -= f * y);
            right[j].iter_mut().zip(&other).for_each(|(x, y)| *x -= f * y);
        }
    }
    Ok(right)
}
