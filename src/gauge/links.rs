//! A gauge field: one SU(3) matrix for every site and direction of a periodic hypercubic lattice. If a lattice is
//! divided between ranks, each has the links of its box and of the halo around it. Functions here take sites by their
//! places in the region (see [`Region`]); in a single process these are the numbers of the sites.

use std::sync::Arc;

use super::field::LinkField;
use super::su3::{self, Su3};
use crate::backend::matrix::Wrap;
use crate::backend::matrix::su3::check_links;
use crate::backend::matrix::wilson::{COMPONENTS, Compression, SiteParity, WilsonSpec};
use crate::backend::{Grid, Region};
use crate::error::{Error, Result};
use crate::lattice::Lattice;
use crate::number::C64;
use crate::task::{self, parallel};

/// Links written between two checks for interruption.
const FILL: usize = 1 << 18;

/// The links U_mu(x), at 4 place + mu, where the region has the place of site x; and the sign that fermions take when
/// they cross a boundary. Copies share the links.
#[derive(Debug, Clone, PartialEq)]
pub struct Links {
    region: Arc<Region>,
    links: LinkField,
    sign: [f64; 4],
    /// Heatbath sweeps that the field has had. The number of a sweep is part of the key of its random numbers.
    sweeps: usize,
}

impl Links {
    /// From the links at all places of a region; those of the halo may be any.
    ///
    /// # Errors
    /// A number of links that does not fit, a link that is not in SU(3).
    pub(super) fn new(region: Arc<Region>, mut links: Vec<Su3>) -> Result<Links> {
        if links.len() != 4 * region.places() {
            return Err(Error::internal(format!("{} links of {} sites", links.len(), region.places())));
        }
        region.exchange(&mut links, 4, 0..4)?;
        check_links(&region, &links)?;
        Ok(Links { region, links: LinkField::new(links), sign: [1.0; 4], sweeps: 0 })
    }

    /// The links that a function of place and direction gives.
    pub(super) fn from_fn(like: &Links, f: impl Fn(usize, usize) -> Su3 + Sync) -> Result<Links> {
        let (count, region) = (like.links.len(), &like.region);
        let stop = task::current();
        let link = |at: usize| {
            stop.heed();
            if region.is_own(at / 4) { f(at / 4, at % 4) } else { su3::UNIT }
        };
        let mut links: Vec<Su3> = parallel::map(count, link);
        region.exchange(&mut links, 4, 0..4)?;
        Ok(Links { links: LinkField::new(links), ..like.clone() })
    }

    /// The unit field on a lattice of four directions, all of it in this process.
    ///
    /// # Errors
    /// As for [`Links::unit_on`].
    pub fn unit(lattice: &Lattice) -> Result<Links> {
        Links::unit_on(lattice, &|dims| Ok(Region::whole(dims)))
    }

    /// The unit field on a lattice of four directions, with the sites that `region` tells of its sizes.
    ///
    /// # Errors
    /// A lattice of another kind, with an open or twisted boundary, or whose links would not fit into memory.
    pub fn unit_on(lattice: &Lattice, region: &dyn Fn([usize; 4]) -> Result<Region>) -> Result<Links> {
        let region = Arc::new(region(grid_of(lattice)?.dims)?);
        let links = region.agreed(unit_links(&region))?;
        let sign = std::array::from_fn(|d| match lattice.wrap()[d] {
            Wrap::Phase(p) => p.re,
            Wrap::Open => 1.0,
        });
        Ok(Links { region, links: LinkField::new(links), sign, sweeps: 0 })
    }

    /// The sites whose links this process has.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Sites of the whole lattice in each direction.
    pub fn dims(&self) -> [usize; 4] {
        self.region.dims()
    }

    /// Sites of the whole lattice.
    pub fn sites(&self) -> usize {
        self.region.sites()
    }

    /// The lattice of spinor fields on it.
    pub fn grid(&self) -> Grid {
        Grid { dims: self.dims(), per_site: COMPONENTS }
    }

    /// The links at all places of the region.
    pub fn links(&self) -> &[Su3] {
        &self.links
    }

    /// The links at all places, to change them; see [`Links::renew`].
    pub(super) fn links_mut(&mut self) -> &mut Vec<Su3> {
        self.links.links_mut()
    }

    /// Renews the halo after links in some directions have changed.
    ///
    /// # Errors
    /// Those of MPI.
    pub(super) fn renew(&mut self, directions: std::ops::Range<usize>) -> Result<()> {
        if !self.region.is_shared() {
            return Ok(());
        }
        let region = self.region.clone();
        region.exchange(self.links_mut(), 4, directions)
    }

    /// The link at a place in a direction.
    #[inline]
    pub fn at(&self, place: usize, mu: usize) -> &Su3 {
        &self.links[4 * place + mu]
    }

    /// The link of a site, by its number in the whole lattice, in a direction.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn link(&self, site: usize, mu: usize) -> Result<Su3> {
        self.links.link(&self.region, site, mu)
    }

    /// The place so many steps away in a direction, across the boundary if need be.
    #[inline]
    pub fn neighbour(&self, place: usize, mu: usize, steps: isize) -> usize {
        self.region.neighbour(place, mu, steps)
    }

    /// The sign, 1 or -1, that fermions take when they cross the boundary of each direction.
    pub fn sign(&self) -> [f64; 4] {
        self.sign
    }

    /// The same links with other boundary conditions for fermions: 1 or -1 a direction.
    pub fn with_sign(&self, sign: [f64; 4]) -> Links {
        Links { sign, ..self.clone() }
    }

    /// Number of heatbath sweeps that the field has had.
    pub fn sweeps(&self) -> usize {
        self.sweeps
    }

    /// The same field, having had so many heatbath sweeps.
    pub fn with_sweeps(&self, sweeps: usize) -> Links {
        Links { sweeps, ..self.clone() }
    }

    /// The product link by link.
    ///
    /// # Errors
    /// Fields on different lattices, or with different boundaries for fermions.
    pub fn times(&self, other: &Links) -> Result<Links> {
        if self.dims() != other.dims() {
            return Err(Error::input(format!(
                "product of gauge fields on lattices of {:?} and {:?} sites",
                self.dims(),
                other.dims()
            ))
            .hint("both must have the same sizes, like [4, 4, 4, 4]"));
        }
        let other = other.on(&self.region)?;
        if self.sign != other.sign {
            return Err(Error::input("product of gauge fields with different boundaries for fermions")
                .hint("set the boundary of the product"));
        }
        Links::from_fn(self, |x, mu| su3::mul(self.at(x, mu), other.at(x, mu)))
    }

    /// The same field on other places of the same lattice.
    fn on(&self, region: &Arc<Region>) -> Result<Links> {
        if self.region == *region {
            return Ok(self.clone());
        }
        let all = self.region.all(4, &self.links)?;
        let links = (0..4 * region.places()).map(|at| all[4 * region.number(at / 4) + at % 4]).collect();
        Ok(Links { region: region.clone(), links: LinkField::new(links), ..self.clone() })
    }

    /// Every link projected onto SU(3) by Gram and Schmidt.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn reunitarised(&self) -> Result<Links> {
        Links::from_fn(self, |x, mu| su3::reunitarised(self.at(x, mu)))
    }

    /// The field after a gauge transformation: g(x) U_mu(x) g(x+mu)^+.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn transformed(&self, g: impl Fn(usize) -> Su3 + Sync) -> Result<Links> {
        Links::from_fn(self, |x, mu| {
            su3::mul_adj(&su3::mul(&g(x), self.at(x, mu)), &g(self.neighbour(x, mu, 1)))
        })
    }

    /// The Wilson-Dirac operator 4 + mass - hopping on these links.
    ///
    /// # Errors
    /// A mass that is not finite.
    pub fn wilson(
        &self,
        mass: f64,
        gamma5: bool,
        compression: Compression,
        single: bool,
    ) -> Result<WilsonSpec> {
        if !mass.is_finite() {
            return Err(Error::input(format!("a mass of {mass}")).hint("it is a finite number"));
        }
        Ok(WilsonSpec {
            region: self.region.clone(),
            links: self.links.shared(),
            sign: self.sign,
            diagonal: 4.0 + mass,
            gamma5,
            adjoint: false,
            sites: SiteParity::All,
            compression,
            single,
        })
    }

    /// Bytes of all links, on all ranks together.
    pub fn bytes(&self) -> usize {
        4 * self.sites() * size_of::<Su3>()
    }
}

/// Unit matrices at all places.
pub(super) fn unit_links(region: &Region) -> Result<Vec<Su3>> {
    let count = 4 * region.places();
    let mut links: Vec<Su3> = Vec::new();
    links.try_reserve_exact(count).map_err(|_| {
        let bytes = (count * size_of::<Su3>()) as f64;
        Error::memory(format!("the links of this lattice need {:.1} GB", bytes / 1e9))
            .hint("use a smaller lattice")
    })?;
    while links.len() < count {
        task::poll()?;
        links.resize((links.len() + FILL).min(count), su3::UNIT);
    }
    Ok(links)
}

/// The lattice of spinors for the sites of a [`Lattice`].
///
/// # Errors
/// A lattice that is not hypercubic in four directions, has open or twisted boundaries, or lacks sites.
pub fn grid_of(lattice: &Lattice) -> Result<Grid> {
    let hint = "take a hypercubic one of four directions, like 8 x 8 x 8 x 16";
    if lattice.dimension() != 4 || lattice.basis().len() != 1 {
        return Err(Error::input(format!(
            "gauge fields live on hypercubic lattices of four directions, not on one of {} with {} sites per cell",
            lattice.dimension(),
            lattice.basis().len()
        ))
        .hint(hint));
    }
    if lattice.sites() != lattice.cell_count() {
        let missing = lattice.cell_count() - lattice.sites();
        return Err(Error::input(format!(
            "gauge fields live on whole lattices, and this one lacks {missing} sites"
        ))
        .hint(hint));
    }
    let closed = |wrap: &Wrap| matches!(wrap, Wrap::Phase(p) if p.im.abs() < 1e-14 && (p.re.abs() - 1.0).abs() < 1e-14);
    if !lattice.wrap().iter().all(closed) {
        return Err(Error::input(
            "gauge fields have periodic boundaries, and fermions periodic or antiperiodic ones",
        )
        .hint(hint));
    }
    let dims: [usize; 4] = std::array::from_fn(|d| lattice.cells()[d]);
    if dims.iter().try_fold(COMPONENTS * 32, |n, &d| n.checked_mul(d)).is_none_or(|n| n > isize::MAX as usize)
    {
        return Err(
            Error::memory(format!("a lattice of {dims:?} sites is too large")).hint("use a smaller one")
        );
    }
    Ok(Grid { dims, per_site: COMPONENTS })
}

/// exp(i phi) on the diagonal: for abelian fields.
pub(super) fn diagonal(phases: [f64; 3]) -> Su3 {
    let mut u = [C64::default(); 9];
    for (k, phi) in phases.into_iter().enumerate() {
        u[4 * k] = C64::from_polar(1.0, phi);
    }
    u
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::task::{Interrupt, Stopped};

    #[test]
    fn links_are_left_when_the_user_stops() {
        let u = Links::unit(&Lattice::hypercubic(&[4, 4, 4, 4]).unwrap()).unwrap();
        let interrupt = Interrupt::default();
        let link = |x: usize, _: usize| {
            if x == 3 {
                interrupt.raise();
            }
            su3::UNIT
        };
        let work = || interrupt.during(|| Links::from_fn(&u, link));
        assert!(catch_unwind(AssertUnwindSafe(work)).unwrap_err().is::<Stopped>());
    }
}
