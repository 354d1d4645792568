//! The sites of this process on a lattice of four directions: all sites, or one box for each rank. At cuts of the
//! lattice a box has a halo: copies of its neighbours' sites, one site deep, with corners, which an exchange renews
//! (`travel.rs`). A field on a region has a place for every site of the box and of its halo, the first direction
//! fastest. Sites keep their numbers in the whole lattice, so results do not depend on the division.

mod plan;
mod travel;

use std::sync::Arc;

use super::Device;
use super::boxes::Boxes;
use crate::error::Result;

/// The places of a field that lives on the sites of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Sites of the whole lattice.
    dims: [usize; 4],
    /// Coordinates of the first site of the box, and its sites.
    first: [usize; 4],
    own: [usize; 4],
    /// Sites of the halo on each side.
    halo: [usize; 4],
    /// Places in each direction, and from one to the next.
    extent: [usize; 4],
    strides: [usize; 4],
    /// The boxes of all ranks, and which one this is.
    cut: Option<(Arc<Boxes>, usize)>,
}

impl Region {
    pub fn whole(dims: [usize; 4]) -> Region {
        Region::new(dims, [0; 4], dims, [0; 4], None)
    }

    /// The sites that this process has: those whose rows its vectors of spinors have.
    ///
    /// # Errors
    /// Those of the device.
    pub fn on(device: &Device, dims: [usize; 4]) -> Result<Region> {
        device.distributed().map_or_else(|| Ok(Region::whole(dims)), |ranks| ranks.region(dims))
    }

    pub(super) fn of_box(dims: [usize; 4], boxes: Arc<Boxes>, rank: usize) -> Region {
        let ranges = boxes.of(rank);
        let (first, own): ([usize; 4], [usize; 4]) =
            (std::array::from_fn(|d| ranges[d].start), std::array::from_fn(|d| ranges[d].len()));
        let halo = std::array::from_fn(|d| usize::from(boxes.is_cut(d) && !own.contains(&0)));
        Region::new(dims, first, own, halo, Some((boxes, rank)))
    }

    fn new(
        dims: [usize; 4],
        first: [usize; 4],
        own: [usize; 4],
        halo: [usize; 4],
        cut: Option<(Arc<Boxes>, usize)>,
    ) -> Region {
        let extent: [usize; 4] = std::array::from_fn(|d| own[d] + 2 * halo[d]);
        let strides = std::array::from_fn(|d| extent[..d].iter().product());
        Region { dims, first, own, halo, extent, strides, cut }
    }

    /// The region of another rank.
    fn of_rank(&self, rank: usize) -> Region {
        match &self.cut {
            Some((boxes, _)) => Region::of_box(self.dims, boxes.clone(), rank),
            None => self.clone(),
        }
    }

    /// Sites of the whole lattice in each direction.
    pub fn dims(&self) -> [usize; 4] {
        self.dims
    }

    /// Sites of the whole lattice.
    pub fn sites(&self) -> usize {
        self.dims.iter().product()
    }

    /// Places: sites of the box and of its halo.
    pub fn places(&self) -> usize {
        self.extent.iter().product()
    }

    /// Sites of the box.
    pub fn own_sites(&self) -> usize {
        self.own.iter().product()
    }

    /// Whether other ranks have other sites.
    pub fn is_shared(&self) -> bool {
        self.cut.is_some()
    }

    /// Whether the lattice was cut across a direction.
    pub fn is_cut(&self, d: usize) -> bool {
        self.halo[d] > 0
    }

    /// Coordinates of a place among the places.
    #[inline]
    fn inner(&self, place: usize) -> [usize; 4] {
        let [a, b, c, _] = self.extent;
        [place % a, place / a % b, place / (a * b) % c, place / (a * b * c)]
    }

    /// Coordinates of the site at a place.
    #[inline]
    pub fn coordinates(&self, place: usize) -> [usize; 4] {
        let x = self.inner(place);
        if self.cut.is_none() {
            return x;
        }
        std::array::from_fn(|d| (self.first[d] + x[d] + self.dims[d] - self.halo[d]) % self.dims[d])
    }

    /// Number of the site at a place: x0 + L0 (x1 + L1 (x2 + L2 x3)).
    #[inline]
    pub fn number(&self, place: usize) -> usize {
        if self.cut.is_none() {
            return place;
        }
        self.coordinates(place).iter().zip(&self.dims).rev().fold(0, |site, (x, n)| site * n + x)
    }

    /// Whether the site at a place is of the box itself.
    #[inline]
    pub fn is_own(&self, place: usize) -> bool {
        if self.cut.is_none() {
            return true;
        }
        let x = self.inner(place);
        (0..4).all(|d| (self.halo[d]..self.halo[d] + self.own[d]).contains(&x[d]))
    }

    /// The place of a site, by its number, if it is of the box itself.
    pub fn place(&self, number: usize) -> Option<usize> {
        let (mut rest, mut place) = (number, 0);
        for d in 0..4 {
            let x = rest % self.dims[d];
            rest /= self.dims[d];
            let inside = x.checked_sub(self.first[d]).filter(|x| *x < self.own[d])?;
            place += (inside + self.halo[d]) * self.strides[d];
        }
        Some(place)
    }

    /// All places of a site, by its number: that of the box itself, if it has the site,
    /// and those of its copies in the halo.
    pub fn places_of(&self, number: usize) -> Vec<usize> {
        let (mut rest, mut places) = (number, vec![0]);
        for d in 0..4 {
            let x = rest % self.dims[d];
            rest /= self.dims[d];
            let of = |at: &usize| (self.first[d] + at + self.dims[d] - self.halo[d]) % self.dims[d] == x;
            let here: Vec<usize> = (0..self.extent[d]).filter(of).collect();
            let all = here.iter().flat_map(|at| places.iter().map(move |p| p + at * self.strides[d]));
            places = all.collect();
        }
        places
    }

    /// The place of the k-th site of the box. They ascend, and so do their numbers.
    #[inline]
    pub fn own_place(&self, k: usize) -> usize {
        if self.cut.is_none() {
            return k;
        }
        let (mut rest, mut place) = (k, 0);
        for d in 0..4 {
            place += (rest % self.own[d] + self.halo[d]) * self.strides[d];
            rest /= self.own[d];
        }
        place
    }

    /// The place so many steps away in a direction. From a site of the box they stay in the halo where the lattice was
    /// cut, and go around it elsewhere.
    #[inline]
    pub fn neighbour(&self, place: usize, d: usize, steps: isize) -> usize {
        let (stride, n) = (self.strides[d], self.extent[d]);
        if self.halo[d] > 0 {
            return place.wrapping_add_signed(steps * stride as isize);
        }
        let x = place / stride % n;
        let moved = (x as isize + steps).rem_euclid(n as isize) as usize;
        place + moved * stride - x * stride
    }

    /// The ranges of the box, in the coordinates of the lattice.
    pub fn ranges(&self) -> [std::ops::Range<usize>; 4] {
        std::array::from_fn(|d| self.first[d]..self.first[d] + self.own[d])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The regions of all ranks of a grid.
    pub(super) fn ranks(dims: [usize; 4], grid: [usize; 4]) -> Vec<Region> {
        let boxes = Arc::new(Boxes::new(&dims, 12, &grid));
        (0..boxes.count()).map(|rank| Region::of_box(dims, boxes.clone(), rank)).collect()
    }

    /// Sizes and grids: odd sizes, directions of one site and of two, more ranks than planes, a box that meets itself.
    pub(super) const CUTS: [([usize; 4], [usize; 4]); 7] = [
        ([4, 3, 2, 5], [1, 1, 1, 2]),
        ([4, 3, 2, 5], [2, 3, 1, 2]),
        ([2, 2, 2, 2], [2, 2, 2, 2]),
        ([3, 2, 1, 4], [1, 2, 3, 2]),
        ([1, 1, 1, 3], [1, 1, 1, 7]),
        ([7, 2, 2, 2], [7, 1, 1, 1]),
        ([2, 2, 3, 2], [1, 1, 1, 1]),
    ];

    #[test]
    fn every_site_has_one_home_and_its_neighbours_beside_it() {
        for (dims, grid) in CUTS {
            let whole = Region::whole(dims);
            let mut seen = vec![0; whole.sites()];
            for region in ranks(dims, grid) {
                let own: Vec<usize> = (0..region.places()).filter(|&p| region.is_own(p)).collect();
                assert_eq!(own, (0..region.own_sites()).map(|k| region.own_place(k)).collect::<Vec<_>>());
                for place in own {
                    let number = region.number(place);
                    seen[number] += 1;
                    assert_eq!(region.place(number), Some(place));
                    assert!(region.places_of(number).contains(&place));
                    assert_eq!(region.coordinates(place), whole.coordinates(number));
                    for (d, e) in (0..4).flat_map(|d| (0..4).map(move |e| (d, e))) {
                        for (a, b) in [(1, 1), (1, -1), (-1, 1), (-1, -1)] {
                            let there = |r: &Region, p| r.neighbour(r.neighbour(p, d, a), e, b);
                            if d != e {
                                assert_eq!(region.number(there(&region, place)), there(&whole, number));
                            }
                        }
                    }
                }
            }
            assert!(seen.iter().all(|n| *n == 1), "{dims:?} {grid:?}");
        }
    }

    #[test]
    fn copies_of_a_site_are_found() {
        for (dims, grid) in CUTS {
            for region in ranks(dims, grid) {
                for number in 0..region.sites() {
                    let mut places = region.places_of(number);
                    places.sort_unstable();
                    let all = (0..region.places()).filter(|&place| region.number(place) == number);
                    assert_eq!(places, all.collect::<Vec<_>>(), "{dims:?} {grid:?}");
                }
            }
        }
    }
}
