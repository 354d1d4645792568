//! The Wilson-Dirac operator in the form for a backend: links on the host, and their storage.
//!
//! D psi(x) = c psi(x) - 1/2 sum_mu [(1 - g_mu) U_mu(x) psi(x+mu) + (1 + g_mu) U_mu(x-mu)^+ psi(x-mu)] with the gamma
//! matrices of DeGrand and Rossi (those of Grid, QUDA and Chroma), in which gamma5 = diag(1, 1, -1, -1).

use std::ops::Range;
use std::sync::Arc;

use super::merge;
use crate::backend::{Grid, KernelInfo, KernelShape, Region, Rows};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// A 3 x 3 matrix, row after row.
pub type Su3 = [C64; 9];

/// The matrix with these two orthonormal rows: the third is the conjugate of their cross product.
#[inline]
pub fn with_rows(a: [C64; 3], b: [C64; 3]) -> Su3 {
    let cross = |i: usize, j: usize| (a[i] * b[j] - a[j] * b[i]).conj();
    [a[0], a[1], a[2], b[0], b[1], b[2], cross(1, 2), cross(2, 0), cross(0, 1)]
}

/// Rows of a spinor field at a site: row = 3 spin + colour.
pub const COMPONENTS: usize = 12;

/// How many reals of a link are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// All 18.
    Full,
    /// The first two rows; the third is the conjugate of their cross product.
    Twelve,
    /// As many as SU(3) has parameters; see `encode8`.
    Eight,
}

impl Compression {
    pub fn name(self) -> &'static str {
        match self {
            Compression::Full => "full",
            Compression::Twelve => "reconstruct-12",
            Compression::Eight => "reconstruct-8",
        }
    }

    /// Reals a link.
    pub fn reals(self) -> usize {
        match self {
            Compression::Full => 18,
            Compression::Twelve => 12,
            Compression::Eight => 8,
        }
    }

    /// The reals that are kept of a link.
    pub fn encode(self, u: &Su3) -> Vec<f64> {
        match self {
            Compression::Full | Compression::Twelve => {
                u.iter().take(self.reals() / 2).flat_map(|z| [z.re, z.im]).collect()
            }
            Compression::Eight => encode8(u).to_vec(),
        }
    }
}

/// Which sites a product is computed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteParity {
    All,
    /// Those whose coordinates sum to an even number; the rows of others are left as they are.
    Even,
    Odd,
}

impl SiteParity {
    /// Whether the site at these coordinates is one of them.
    fn have(self, x: [usize; 4]) -> bool {
        let odd = x.iter().sum::<usize>() % 2 == 1;
        match self {
            SiteParity::All => true,
            SiteParity::Even => !odd,
            SiteParity::Odd => odd,
        }
    }

    /// Those of a lattice whose first site is odd.
    fn others(self) -> SiteParity {
        match self {
            SiteParity::All => SiteParity::All,
            SiteParity::Even => SiteParity::Odd,
            SiteParity::Odd => SiteParity::Even,
        }
    }
}

/// The gamma matrices: for each direction and row, the column and the value of the one entry.
const GAMMA: [[(usize, C64); 4]; 4] = {
    const I: C64 = C64::new(0.0, 1.0);
    const J: C64 = C64::new(0.0, -1.0);
    const P: C64 = C64::new(1.0, 0.0);
    const M: C64 = C64::new(-1.0, 0.0);
    [
        [(3, I), (2, I), (1, J), (0, J)],
        [(3, M), (2, P), (1, P), (0, M)],
        [(2, I), (3, J), (0, J), (1, I)],
        [(2, P), (3, P), (0, P), (1, P)],
    ]
};

/// The operator, complete on the host.
#[derive(Debug, Clone)]
pub struct WilsonSpec {
    /// The sites whose links are here.
    pub region: Arc<Region>,
    /// U_mu(x) at 4 place + mu, where the region has the place of x.
    pub links: Arc<Vec<Su3>>,
    /// What a fermion gets for crossing the boundary of each direction: 1 or -1; 0 where it cannot.
    pub sign: [f64; 4],
    /// c: 4 + mass, or 0 for the hopping alone.
    pub diagonal: f64,
    /// Whether gamma5 multiplies from the left.
    pub gamma5: bool,
    /// Whether the adjoint of D is meant.
    pub adjoint: bool,
    /// Where the product is computed.
    pub sites: SiteParity,
    /// How links are kept.
    pub compression: Compression,
    /// Whether numbers have 32 bits.
    pub single: bool,
}

/// The sites of a diagonal that is the same on each of them, and its factors on one.
///
/// # Errors
/// When these are not rows of spinors, or another count of factors.
pub fn site_factors(rows: &Rows, factors: &[f64]) -> Result<(usize, [f64; COMPONENTS])> {
    let grid = rows.grid.filter(|g| g.per_site == COMPONENTS);
    grid.map(|g| g.sites())
        .zip(factors.try_into().ok())
        .ok_or_else(|| Error::internal("a diagonal that does not fit its lattice"))
}

impl WilsonSpec {
    /// Sites of the lattice in each direction.
    pub fn dims(&self) -> [usize; 4] {
        self.region.dims()
    }

    /// The lattice of the vectors.
    pub fn rows(&self) -> Rows {
        Rows::on(Grid { dims: self.dims(), per_site: COMPONENTS })
    }

    pub fn shape(&self) -> KernelShape {
        KernelShape::square(self.rows(), DType::of(self.single, true))
    }

    /// What is told of the operator on so many rows, whose links take `bytes`.
    pub fn info(&self, rows: usize, bytes: usize) -> KernelInfo {
        // A row of D: the diagonal, and in every direction and sense two spins of three colours.
        let entries = rows * (1 + 8 * 6);
        KernelInfo { format: format!("Wilson, {} links", self.compression.name()), bytes, entries }
    }

    /// The links of a site, by its number in the lattice; none if they are not here.
    fn links_of(&self, site: usize) -> Option<&[Su3]> {
        let here = self.region.place(site)?;
        Some(&self.links[4 * here..4 * here + 4])
    }

    /// The operator on a box of the lattice, which fermions do not leave where it ends within the lattice. What they
    /// would bring from beyond comes as entries: row in the box, what `place` makes of the row of the whole lattice,
    /// value; rows and places ascend, none twice. None where the links of the box are not here.
    pub fn on_box<P: Ord + Copy>(
        &self,
        own: &[Range<usize>; 4],
        place: impl Fn(usize) -> P,
    ) -> Option<(WilsonSpec, Vec<(usize, P, C64)>)> {
        let mut beyond: Vec<((usize, P), C64)> = Vec::new();
        let of_box = WilsonBox { spec: self, own: own.clone() };
        let (inner, all) = (of_box.alone()?, self.dims());
        let whole = Grid { dims: all, per_site: COMPONENTS };
        for site in 0..inner.region.sites() {
            let x = of_box.coordinates(site);
            let here = self.region.place(whole.site(x))?;
            if !self.sites.have(x) {
                continue;
            }
            for (mu, forward) in (0..4).flat_map(|mu| [(mu, true), (mu, false)]) {
                let last = if forward { own[mu].end - 1 } else { own[mu].start };
                if !of_box.is_cut(mu) || x[mu] != last {
                    continue;
                }
                let sign = of_box.sign(mu, forward);
                let mut y = x;
                y[mu] = (x[mu] + if forward { 1 } else { all[mu] - 1 }) % all[mu];
                let there = whole.site(y);
                let from = if forward { here } else { self.region.neighbour(here, mu, -1) };
                let u = &self.links[4 * from + mu];
                let projected = if forward == self.adjoint { 1.0 } else { -1.0 };
                for (a, (other, g)) in GAMMA[mu].into_iter().enumerate() {
                    let factor = if self.gamma5 && a >= 2 { 0.5 } else { -0.5 } * sign;
                    for (b, g) in [(a, C64::ONE), (other, g * projected)] {
                        for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
                            let link = if forward { u[3 * i + j] } else { u[3 * j + i].conj() };
                            let (row, column) =
                                (COMPONENTS * site + 3 * a + i, COMPONENTS * there + 3 * b + j);
                            beyond.push(((row, place(column)), g * link * factor));
                        }
                    }
                }
            }
        }
        merge(&mut beyond);
        let beyond = beyond.into_iter().map(|((row, place), value)| (row, place, value)).collect();
        Some((inner, beyond))
    }

    /// The same with the links of the sites that a device has; of a region that is cut otherwise,
    /// all links are brought together.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn on(self, region: Region) -> Result<WilsonSpec> {
        if !self.region.is_shared() || *self.region == region {
            return Ok(self);
        }
        let links = Arc::new(self.region.all(4, &self.links)?);
        Ok(WilsonSpec { region: Arc::new(Region::whole(self.dims())), links, ..self })
    }

    /// The same without a halo, for a device that has all sites.
    ///
    /// # Errors
    /// Sites whose links are not here.
    pub fn undivided(&self) -> Result<WilsonSpec> {
        let all = WilsonBox { spec: self, own: self.dims().map(|sites| 0..sites) };
        all.alone().ok_or_else(|| Error::internal("links of other sites than those of the vectors"))
    }

    /// Checks what a device that has all sites gets: links in the order of the sites.
    ///
    /// # Errors
    /// Those of [`WilsonSpec::validate`], and links on a part of the lattice.
    pub fn validate_undivided(&self) -> Result<()> {
        self.validate()?;
        if self.region.is_shared() {
            return Err(Error::internal("links with a halo where all sites are in one place"));
        }
        Ok(())
    }

    /// Checks that the parts fit together.
    ///
    /// # Errors
    /// A number of links that does not fit, a diagonal that is not finite, signs that are none.
    pub fn validate(&self) -> Result<()> {
        let sites: Option<usize> = self.dims().iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let fits = sites.is_some_and(|n| n > 0 && n < usize::MAX / 64)
            && self.links.len() == 4 * self.region.places();
        if !fits || !self.diagonal.is_finite() || self.sign.iter().any(|s| s.abs() != 1.0 && *s != 0.0) {
            return Err(Error::internal("a Wilson operator whose parts do not fit together"));
        }
        Ok(())
    }
}

/// A face of a box whose lattice goes on behind it.
#[derive(Debug, Clone, Copy)]
pub struct Face {
    pub direction: usize,
    pub upper: bool,
    pub sites: usize,
    /// What a fermion gets that passes it, whichever way it goes.
    pub sign: f64,
    /// Whether sites on both sides of it are of different parity: not where a lattice of odd length closes.
    pub alternates: bool,
}

/// A box of the lattice of an operator, of which this process has the links.
pub struct WilsonBox<'a> {
    pub spec: &'a WilsonSpec,
    /// The coordinates of the box.
    pub own: [Range<usize>; 4],
}

impl WilsonBox<'_> {
    fn dims(&self) -> [usize; 4] {
        std::array::from_fn(|d| self.own[d].len())
    }

    /// Whether the box ends within the lattice in a direction.
    pub fn is_cut(&self, d: usize) -> bool {
        self.own[d].len() < self.spec.dims()[d]
    }

    /// Coordinates of the k-th site of the box in the lattice.
    fn coordinates(&self, k: usize) -> [usize; 4] {
        let mut x = Grid { dims: self.dims(), per_site: COMPONENTS }.coordinates(k);
        x.iter_mut().zip(&self.own).for_each(|(x, range)| *x += range.start);
        x
    }

    /// The links of the k-th site of the box; none if they are not here.
    pub fn links(&self, k: usize) -> Option<&[Su3]> {
        let whole = Grid { dims: self.spec.dims(), per_site: COMPONENTS };
        self.spec.links_of(whole.site(self.coordinates(k)))
    }

    /// Whether the lattice ends at the upper or lower face of the box in a direction.
    fn is_end(&self, d: usize, upper: bool) -> bool {
        if upper { self.own[d].end == self.spec.dims()[d] } else { self.own[d].start == 0 }
    }

    /// What a fermion gets that passes the upper or lower face of the box in a direction, whichever way it goes.
    pub fn sign(&self, d: usize, upper: bool) -> f64 {
        if self.is_end(d, upper) { self.spec.sign[d] } else { 1.0 }
    }

    /// The faces at which the box ends within the lattice, the lower one of each direction before the upper one.
    pub fn faces(&self) -> Vec<Face> {
        let of = |direction: usize, upper: bool| {
            let sites = (0..4).filter(|e| *e != direction).map(|e| self.own[e].len()).product();
            let alternates = self.spec.dims()[direction].is_multiple_of(2) || !self.is_end(direction, upper);
            Face { direction, upper, sites, sign: self.sign(direction, upper), alternates }
        };
        let any = self.own.iter().all(|range| !range.is_empty());
        (0..4).filter(|&d| any && self.is_cut(d)).flat_map(|d| [of(d, false), of(d, true)]).collect()
    }

    /// The same as [`WilsonBox::inner`] with the links; none if they are not here.
    pub fn alone(&self) -> Option<WilsonSpec> {
        let inner = self.inner();
        let links: Option<Vec<&[Su3]>> = (0..inner.region.sites()).map(|k| self.links(k)).collect();
        Some(WilsonSpec { links: Arc::new(links?.concat()), ..inner })
    }

    /// The operator on the box alone, which fermions do not leave where it ends within the lattice;
    /// the links are not in it.
    pub fn inner(&self) -> WilsonSpec {
        let odd = self.own.iter().map(|range| range.start).sum::<usize>() % 2 == 1;
        let sites = if odd { self.spec.sites.others() } else { self.spec.sites };
        let sign = std::array::from_fn(|d| if self.is_cut(d) { 0.0 } else { self.spec.sign[d] });
        let region = Arc::new(Region::whole(self.dims()));
        WilsonSpec { region, links: Arc::default(), sign, sites, ..*self.spec }
    }
}

/// The 8 reals of a link: (a2, a3) of its first row, the phase phi of a1 as tan(phi/4), and the SU(2) rotation S of the
/// plane orthogonal to that row as stereographic coordinates. With the Householder reflection H that maps the first row
/// to -e^(i phi) (1, 0, 0), U = diag(-e^(i phi), e^(-i phi/2) S) H. Unlike the parametrisation of Bunk and Sommer this
/// one is well conditioned at the unit matrix: it loses digits only where |a1| is small.
fn encode8(u: &Su3) -> [f64; 8] {
    let phi = u[0].arg();
    let (half, modulus) = (C64::from_polar(1.0, phi / 2.0), u[0].norm());
    // Rows 2 and 3 of U H: those of U minus their overlap with v, the axis of the reflection.
    let v = [u[0].conj() + (half * half).conj(), u[1].conj(), u[2].conj()];
    let row = |r: usize, c: usize| {
        let along: C64 = (0..3).map(|k| u[3 * r + k] * v[k]).sum();
        u[3 * r + c] - along * v[c].conj() / (1.0 + modulus)
    };
    // S = ((alpha, beta), (-beta*, alpha*)), as a unit quaternion (q0, q) with alpha = q0 + i q3, beta = q2 + i q1.
    let (alpha, beta) = (row(1, 1) * half, row(1, 2) * half);
    let scale = 1.0 / (alpha.norm_sqr() + beta.norm_sqr()).sqrt();
    let (q0, q) = (alpha.re * scale, [beta.im * scale, beta.re * scale, alpha.im * scale]);
    // 1 + q0 without cancellation where q0 is near -1.
    let tiny = 1e-18;
    let rest: f64 = q.iter().map(|x| x * x).sum();
    let above = if q0 > 0.0 { 1.0 + q0 } else { (rest / (1.0 - q0)).max(tiny * tiny) };
    let y = q.map(|x| x / above);
    let pole = rest < tiny * tiny && q0 < 0.0;
    let y = if pole { [0.0, 0.0, 1.0 / tiny] } else { y };
    [u[1].re, u[1].im, u[2].re, u[2].im, (phi / 4.0).tan(), y[0], y[1], y[2]]
}

/// The link of 8 reals.
fn decode8(p: &[f64; 8]) -> Su3 {
    let (a2, a3) = (C64::new(p[0], p[1]), C64::new(p[2], p[3]));
    let modulus = (1.0 - a2.norm_sqr() - a3.norm_sqr()).max(0.0).sqrt();
    let t = p[4];
    // (1 + i t)^2 / (1 + t^2) = e^(i phi/2).
    let half = C64::new(1.0 - t * t, 2.0 * t) / (1.0 + t * t);
    let phase = half * half;
    let y2 = p[5] * p[5] + p[6] * p[6] + p[7] * p[7];
    let scale = 1.0 / (1.0 + y2);
    let (q0, q) = ((1.0 - y2) * scale, [2.0 * p[5] * scale, 2.0 * p[6] * scale, 2.0 * p[7] * scale]);
    let (alpha, beta) = (C64::new(q0, q[2]) * half.conj(), C64::new(q[1], q[0]) * half.conj());
    let along = alpha * a2.conj() + beta * a3.conj();
    let kappa = along / (1.0 + modulus);
    let a = [phase * modulus, a2, a3];
    let b = [-along * phase, alpha - kappa * a2, beta - kappa * a3];
    with_rows(a, b)
}

/// The largest error of an entry of these links after they were kept as 8 reals of the precision.
pub fn error8(links: &[Su3], single: bool) -> f64 {
    let round = |x: f64| if single { f64::from(x as f32) } else { x };
    let error = |u: &Su3| {
        let back = decode8(&encode8(u).map(round));
        // Written so that NaN counts as infinite.
        u.iter().zip(&back).map(|(a, b)| (a - b).norm()).fold(0.0, |m, e| if e <= m { m } else { e })
    };
    links.iter().map(error).fold(0.0, |m: f64, e| if e.is_nan() { f64::INFINITY } else { m.max(e) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::philox;

    fn random(seed: u64) -> Su3 {
        let mut rows = [[C64::default(); 3]; 2];
        for (r, row) in rows.iter_mut().enumerate() {
            for (c, z) in row.iter_mut().enumerate() {
                let (x, y) = philox::normals(philox::words(seed, 97, r as u64, c as u32));
                *z = C64::new(x, y);
            }
        }
        complete(rows)
    }

    fn complete([mut a, mut b]: [[C64; 3]; 2]) -> Su3 {
        let normalise = |v: &mut [C64; 3]| {
            let n = v.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
            v.iter_mut().for_each(|z| *z /= n);
        };
        normalise(&mut a);
        let along: C64 = (0..3).map(|k| a[k].conj() * b[k]).sum();
        (0..3).for_each(|k| b[k] -= along * a[k]);
        normalise(&mut b);
        with_rows(a, b)
    }

    #[test]
    fn eight_reals_make_the_link_again() {
        let rough: Vec<Su3> = (0..4096).map(random).collect();
        assert!(error8(&rough, false) < 1e-12, "{:e}", error8(&rough, false));
        assert!(error8(&rough, true) < 2e-4, "{:e}", error8(&rough, true));
        // Smooth and diagonal fields, on which other parametrisations fail.
        for angle in [0.0, 1e-9, 1e-3, 0.4, 3.1, std::f64::consts::PI] {
            let phase = C64::from_polar(1.0, angle);
            let (zero, one) = (C64::default(), C64::ONE);
            for [x, y, z] in
                [[phase, phase.conj(), one], [one, phase, phase.conj()], [phase, one, phase.conj()]]
            {
                let u = [x, zero, zero, zero, y, zero, zero, zero, z];
                assert!(error8(&[u], false) < 1e-14, "{angle}: {:e}", error8(&[u], false));
                assert!(error8(&[u], true) < 1e-6, "{angle}: {:e}", error8(&[u], true));
            }
        }
    }

    #[test]
    fn a_link_without_its_first_entry_is_found_out() {
        let (zero, one) = (C64::default(), C64::ONE);
        let u = complete([[zero, one * 0.6, one * 0.8], [one, zero, zero]]);
        // The modulus of a1 is what is left of rounding.
        assert!(error8(&[u], false) < 1e-7 && error8(&[u], true) > 1e-6 || error8(&[u], false) == 0.0);
    }
}
