//! Gauge fields from matrices that a user gives: links one by one, gauge transformations site by site.

use super::links::Links;
use super::su3::{self, Su3};
use crate::backend::matrix::su3::off_su3;
use crate::error::{Error, Result};
use crate::task::Task;

/// Largest deviation from SU(3) of a matrix that is given. Rounding in the formulas of users stays far below it.
const GIVEN: f64 = 1e-10;

/// The matrix itself, if it is in SU(3).
fn checked(m: Su3) -> Result<Su3> {
    let off = off_su3(&m);
    if off <= GIVEN {
        return Ok(m);
    }
    finite(&m)?;
    Err(Error::input(format!("the matrix is not in SU(3): it is off by {off:.1e}"))
        .hint("any 3 x 3 matrix that has an inverse can be projected onto SU(3)"))
}

fn finite(m: &Su3) -> Result<()> {
    if m.iter().all(|z| z.is_finite()) {
        return Ok(());
    }
    Err(Error::input("the matrix is not in SU(3): an element is not finite")
        .hint("look for what divides by 0 or is NaN"))
}

/// A matrix projected onto SU(3) by Gram and Schmidt.
///
/// # Errors
/// A matrix whose first two rows are nearly parallel, or too large or too small to be normalised.
pub fn onto_su3(m: &Su3) -> Result<Su3> {
    finite(m)?;
    let near = su3::reunitarised(m);
    // The comparison is written so that NaN fails it too.
    if !(off_su3(&near) <= GIVEN) {
        return Err(Error::input("the matrix cannot be projected onto SU(3)")
            .hint("its first two rows must be neither zero nor parallel"));
    }
    Ok(near)
}

impl Links {
    /// The same lattice with the links that a function of coordinates and direction gives. Every rank calls it for all
    /// links, in the order of sites, since what it does besides must be the same on all of them; each keeps its own.
    ///
    /// # Errors
    /// Those of the function; a link that is not in SU(3).
    pub fn given(
        mut self,
        link: &mut dyn FnMut([usize; 4], usize) -> Result<Su3>,
        task: &Task,
    ) -> Result<Links> {
        let (grid, region) = (self.grid(), self.region().clone());
        let steps = task.start("links", grid.sites());
        let links = self.links_mut();
        for at in 0..4 * grid.sites() {
            let (x, mu) = (grid.coordinates(at / 4), at % 4);
            if at.is_multiple_of(1024) {
                steps.advance(at / 4)?;
            }
            let u = link(x, mu)
                .and_then(checked)
                .map_err(|e| e.context(format!("the link of site {x:?} in direction {mu}")))?;
            if let Some(place) = region.place(at / 4) {
                links[4 * place + mu] = u;
            }
        }
        self.renew(0..4)?;
        Ok(self)
    }

    /// The field with one link replaced.
    ///
    /// # Errors
    /// A link that is not in SU(3).
    pub fn with_link(&self, site: usize, mu: usize, link: Su3) -> Result<Links> {
        let link = checked(link)?;
        let mut u = self.clone();
        let links = u.links_mut();
        // All ranks know the link: copies in halos need no exchange.
        for place in self.region().places_of(site) {
            links[4 * place + mu] = link;
        }
        Ok(u)
    }

    /// The field after the gauge transformation that a function g of coordinates gives: g(x) U_mu(x) g(x+mu)^+. Every
    /// rank calls it for all sites, and keeps the matrices of its own.
    ///
    /// # Errors
    /// Those of the function; a matrix that is not in SU(3).
    pub fn transformed_by(&self, g: &mut dyn FnMut([usize; 4]) -> Result<Su3>, task: &Task) -> Result<Links> {
        let (grid, region) = (self.grid(), self.region());
        let steps = task.start("gauge transformation", grid.sites());
        let mut all = vec![su3::UNIT; region.places()];
        for site in 0..grid.sites() {
            let x = grid.coordinates(site);
            if site.is_multiple_of(256) {
                steps.advance(site)?;
            }
            let matrix = g(x)
                .and_then(checked)
                .map_err(|e| e.context(format!("the gauge transformation at site {x:?}")))?;
            if let Some(place) = region.place(site) {
                all[place] = matrix;
            }
        }
        region.exchange(&mut all, 1, 0..1)?;
        self.transformed(|x| all[x])
    }
}
