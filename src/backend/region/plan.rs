//! Who sends which sites to whom, for planes of sites that boxes take from each other along one direction.

use super::Region;
use crate::backend::boxes::part_of;

/// Sites that travel between this rank and another one, in an order that both know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExchangedSites {
    pub rank: usize,
    /// Their places here.
    pub places: Vec<usize>,
}

/// What this rank sends and receives, a message for each other rank, and one for itself where its box meets itself.
#[derive(Debug, Default)]
pub(super) struct HaloPlan {
    pub sends: Vec<ExchangedSites>,
    pub receives: Vec<ExchangedSites>,
}

fn add(list: &mut Vec<ExchangedSites>, rank: usize, places: Vec<usize>) {
    match list.iter_mut().find(|message| message.rank == rank) {
        Some(message) => message.places.extend(places),
        None => list.push(ExchangedSites { rank, places }),
    }
}

impl Region {
    /// Where this box stands in a direction, where the boxes begin, and how far the next one's rank is.
    pub(super) fn line(&self, d: usize) -> Option<(usize, &[usize], usize)> {
        let (boxes, rank) = self.cut.as_ref()?;
        let stride: usize = (0..d).map(|e| boxes.starts(e).len() - 1).product();
        let starts = boxes.starts(d);
        Some((rank / stride % (starts.len() - 1), starts, stride))
    }

    /// Places of the largest plane that any rank has across a direction: all ranks know the same.
    pub(super) fn widest(&self, d: usize) -> usize {
        let Some((boxes, _)) = &self.cut else { return 0 };
        let side = |e: usize| boxes.starts(e).windows(2).map(|ends| ends[1] - ends[0] + 2).max().unwrap_or(0);
        (0..4).filter(|e| *e != d).map(side).product()
    }

    /// The places of a plane: those whose place in direction d is `at`. Of other directions they have the box's own
    /// places, and for `wide` those of the halo, too, where the direction comes before d.
    fn plane(&self, d: usize, at: usize, wide: bool) -> Vec<usize> {
        let range = |e: usize| match e {
            _ if e == d => at..at + 1,
            _ if wide && e < d => 0..self.extent[e],
            _ => self.halo[e]..self.halo[e] + self.own[e],
        };
        let ranges: [_; 4] = std::array::from_fn(range);
        let mut places = Vec::with_capacity(ranges.iter().map(|r| r.len()).product());
        for (t, z) in ranges[3].clone().flat_map(|t| ranges[2].clone().map(move |z| (t, z))) {
            for y in ranges[1].clone() {
                let row = y * self.strides[1] + z * self.strides[2] + t * self.strides[3];
                places.extend(ranges[0].clone().map(|x| row + x));
            }
        }
        places
    }

    /// What travels where boxes of direction d want planes: `wanted` tells, of the box from one coordinate to another,
    /// which planes, by their coordinates in the lattice and the places they go to.
    fn plan(&self, d: usize, wide: bool, wanted: impl Fn(usize, usize) -> Vec<(usize, usize)>) -> HaloPlan {
        let mut plan = HaloPlan::default();
        let (Some((here, starts, stride)), Some((_, rank))) = (self.line(d), &self.cut) else { return plan };
        if self.own.contains(&0) {
            return plan;
        }
        let rank_of = |part: usize| rank + part * stride - here * stride;
        let parts = starts.windows(2).enumerate().filter(|(_, ends)| ends[0] < ends[1]);
        for (part, ends) in parts {
            for (plane, to) in wanted(ends[0], ends[1]) {
                let home = part_of(starts, plane);
                if home == here {
                    let at = plane - starts[here] + self.halo[d];
                    add(&mut plan.sends, rank_of(part), self.plane(d, at, wide));
                }
                if part == here {
                    add(&mut plan.receives, rank_of(home), self.plane(d, to, wide));
                }
            }
        }
        plan
    }

    /// The halo across direction d, with what it has in the halos of the directions before: done for one direction
    /// after the other, corners arrive, too.
    pub(super) fn halo_plan(&self, d: usize) -> HaloPlan {
        let n = self.dims[d];
        self.plan(d, true, |start, end| vec![((start + n - 1) % n, 0), (end % n, end - start + 1)])
    }

    /// The sites so many steps on in direction d, each to the place from which the steps are counted.
    pub(super) fn shift_plan(&self, d: usize, steps: usize) -> HaloPlan {
        let n = self.dims[d];
        self.plan(d, false, |start, end| (start..end).map(|x| ((x + steps) % n, x - start + 1)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CUTS, ranks};
    use super::*;

    /// Carries out the plans of all ranks, in one memory.
    fn travel(regions: &[Region], plans: &[HaloPlan], from: &[Vec<usize>], to: &mut [Vec<usize>]) {
        for (rank, plan) in plans.iter().enumerate() {
            for message in &plan.receives {
                let sent = plans[message.rank].sends.iter().find(|m| m.rank == rank).expect("a sender");
                assert_eq!(sent.places.len(), message.places.len());
                for (&there, &here) in sent.places.iter().zip(&message.places) {
                    to[rank][here] = from[message.rank][there];
                }
            }
            for message in &plan.sends {
                assert!(plans[message.rank].receives.iter().any(|m| m.rank == rank), "a receiver");
            }
            assert!(regions[rank].places() > 0 || plan.sends.is_empty() && plan.receives.is_empty());
        }
    }

    fn numbers(region: &Region) -> Vec<usize> {
        let number = |place| if region.is_own(place) { region.number(place) } else { usize::MAX };
        (0..region.places()).map(number).collect()
    }

    #[test]
    fn halos_are_filled_with_the_sites_that_belong_there() {
        for (dims, grid) in CUTS {
            let regions = ranks(dims, grid);
            let mut fields: Vec<Vec<usize>> = regions.iter().map(numbers).collect();
            for d in (0..4).filter(|&d| grid[d] > 1) {
                let plans: Vec<HaloPlan> = regions.iter().map(|r| r.halo_plan(d)).collect();
                let before = fields.clone();
                travel(&regions, &plans, &before, &mut fields);
            }
            for (region, field) in regions.iter().zip(&fields) {
                let all: Vec<usize> = (0..region.places()).map(|place| region.number(place)).collect();
                assert_eq!(field, &all, "{dims:?} {grid:?}");
            }
        }
    }

    #[test]
    fn shifts_bring_the_sites_that_lie_so_many_steps_on() {
        for (dims, grid) in CUTS {
            let regions = ranks(dims, grid);
            let whole = Region::whole(dims);
            let fields: Vec<Vec<usize>> = regions.iter().map(numbers).collect();
            for d in (0..4).filter(|&d| grid[d] > 1) {
                for steps in [0, 1, 2, dims[d], dims[d] + 3] {
                    let mut shifted = fields.clone();
                    let plans: Vec<HaloPlan> = regions.iter().map(|r| r.shift_plan(d, steps)).collect();
                    travel(&regions, &plans, &fields, &mut shifted);
                    for (region, field) in regions.iter().zip(&shifted) {
                        for place in (0..region.own_sites()).map(|k| region.own_place(k)) {
                            let there = whole.neighbour(region.number(place), d, steps as isize);
                            assert_eq!(field[place], there, "{dims:?} {grid:?}");
                        }
                    }
                }
            }
        }
    }
}
