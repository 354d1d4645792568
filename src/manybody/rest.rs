//! Paths through a basis whose states leave most sites at rest: a step costs what the other sites cost, however many
//! sites there are.
//!
//! Each site has a state of rest, the one that most states of the sector have there. In the diagram of a basis, sites
//! at rest lead from node to node, and as charges add up, no two nodes to the same one. So all nodes lie on runs, and a
//! stretch of sites at rest is a piece of one run: what is summed along it is a difference of two entries.

use super::basis::{BasisPath, DiagramLevel, SectorBasis};

/// States that are looked at to learn which state a site rests in.
const SAMPLES: usize = 17;
/// Sites for each one that is not at rest, on average, above which runs are the quicker way.
const SITES_PER_EXCITED: usize = 8;

/// A node of the diagram as a place of its run.
#[derive(Debug, Clone, Copy)]
struct RunPlace {
    node: u32,
    /// The last level of the run.
    last: u32,
    /// One more than the last level of the run so far where a state above that of rest is open; 0 if there is none.
    up: u32,
    /// The first level from here on where the least open state is not that of rest, or the number of sites.
    off: u32,
    /// States that branch off before the run so far.
    before: u64,
    /// States of the sector from here on.
    ways: u64,
}

/// The runs of a basis.
#[derive(Debug)]
pub(super) struct RestRuns {
    /// The state of rest of each site.
    pub states: Vec<u8>,
    /// Where the nodes of each level start in `at`.
    firsts: Vec<usize>,
    /// The place of each node.
    at: Vec<u32>,
    /// The places of one run lie together.
    places: Vec<RunPlace>,
}

/// The least open state of a node from `from` on.
fn open(level: &DiagramLevel, node: u32, from: usize) -> Option<u8> {
    (from..level.dim).map(|s| s as u8).find(|&s| level.leads(node, s).is_some())
}

impl RestRuns {
    /// The runs of a basis, if its states leave enough sites at rest.
    pub fn new(basis: &SectorBasis) -> Option<RestRuns> {
        let (states, excited) = rest(basis);
        if excited * SITES_PER_EXCITED > basis.levels().len() {
            return None;
        }
        RestRuns::around(basis, states)
    }

    /// The runs around given states of rest; none where nodes are too many to number.
    pub fn around(basis: &SectorBasis, states: Vec<u8>) -> Option<RestRuns> {
        let levels = basis.levels();
        let n = levels.len();
        let ends = levels[n - 1].targets().map(|node| node as usize + 1).max().unwrap_or(1);
        let counts = levels.iter().map(DiagramLevel::nodes).chain([ends]);
        let mut firsts = vec![0];
        counts.for_each(|count| firsts.push(firsts[firsts.len() - 1] + count));
        let total = firsts[n + 1];
        u32::try_from(total).ok()?;
        // From the last level back: how many ways lead on.
        let mut ways = vec![0u64; total];
        ways[firsts[n]..].fill(1);
        for (i, level) in levels.iter().enumerate().rev() {
            for node in 0..level.nodes() as u32 {
                let to = (0..level.dim).filter_map(|s| level.leads(node, s as u8));
                ways[firsts[i] + node as usize] = to.map(|to| ways[firsts[i + 1] + to as usize]).sum();
            }
        }
        let mut runs = RestRuns { states, firsts, at: vec![u32::MAX; total], places: Vec::new() };
        runs.places.reserve_exact(total);
        for first in 0..=n {
            for node in 0..(runs.firsts[first + 1] - runs.firsts[first]) as u32 {
                if runs.at[runs.firsts[first] + node as usize] == u32::MAX {
                    runs.follow(levels, first, node, &ways);
                }
            }
        }
        Some(runs)
    }

    /// Adds the run that starts at a node.
    fn follow(&mut self, levels: &[DiagramLevel], first: usize, mut node: u32, ways: &[u64]) {
        let (n, start) = (levels.len(), self.places.len());
        let (mut i, mut up, mut before) = (first, 0, 0u64);
        loop {
            let level = levels.get(i);
            let rest = self.states.get(i).copied().unwrap_or(0);
            if level.is_some_and(|level| open(level, node, rest as usize + 1).is_some()) {
                up = i as u32 + 1;
            }
            let number = self.firsts[i] + node as usize;
            self.at[number] = self.places.len() as u32;
            self.places.push(RunPlace { node, last: 0, up, off: 0, before, ways: ways[number] });
            let Some(level) = level else { break };
            let Some(next) = level.leads(node, rest) else { break };
            before = before.wrapping_add(level.before(node, rest));
            node = next;
            i += 1;
        }
        let last = i;
        let mut off = n as u32;
        for (place, i) in self.places[start..].iter_mut().zip(first..last + 1).rev() {
            if levels.get(i).is_some_and(|level| open(level, place.node, 0) != Some(self.states[i])) {
                off = i as u32;
            }
            (place.off, place.last) = (off, last as u32);
        }
    }

    fn place(&self, level: usize, node: u32) -> usize {
        self.at[self.firsts[level] + node as usize] as usize
    }

    pub fn bytes(&self) -> usize {
        self.states.len()
            + 8 * self.firsts.len()
            + 4 * self.at.len()
            + size_of::<RunPlace>() * self.places.len()
    }
}

/// The state that most of some states of the sector have on each site, and on how many sites they have another one.
fn rest(basis: &SectorBasis) -> (Vec<u8>, usize) {
    let numbers = (0..SAMPLES).map(|k| (basis.dim() - 1) / (SAMPLES - 1) * k);
    let samples: Vec<Vec<u8>> = numbers.map(|number| BasisPath::at(basis, number).states).collect();
    let most = |i: usize| {
        let count = |s: &u8| samples.iter().filter(|sample| sample[i] == *s).count();
        samples.iter().map(|sample| sample[i]).max_by_key(count).unwrap_or(0)
    };
    let states: Vec<u8> = (0..basis.levels().len()).map(most).collect();
    let others = |sample: &Vec<u8>| sample.iter().zip(&states).filter(|(a, b)| a != b).count();
    let excited = samples.iter().map(others).sum::<usize>().div_ceil(SAMPLES);
    (states, excited)
}

/// Sites at rest from a level on.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: usize,
    place: usize,
    /// States that branch off before it.
    passed: u64,
}

/// A state of a basis by its sites that are not at rest; steps to the next one.
pub(super) struct RestPath<'a> {
    levels: &'a [DiagramLevel],
    runs: &'a RestRuns,
    /// Local states.
    pub states: Vec<u8>,
    /// Sites that are not at rest, ascending.
    pub excited: Vec<usize>,
    /// Before the first of them, and behind each.
    stretches: Vec<Stretch>,
}

impl<'a> RestPath<'a> {
    /// At state `number`, which exists.
    pub fn at(basis: &'a SectorBasis, runs: &'a RestRuns, number: usize) -> RestPath<'a> {
        let first = Stretch { from: 0, place: runs.place(0, 0), passed: 0 };
        let (levels, states) = (basis.levels(), runs.states.clone());
        let mut path = RestPath { levels, runs, states, excited: Vec::new(), stretches: vec![first] };
        let number = number as u64;
        loop {
            let stretch = path.stretches[path.excited.len()];
            let start = runs.places[stretch.place];
            let run = &runs.places[stretch.place..=stretch.place + (start.last as usize - stretch.from)];
            let passed = |place: &RunPlace| stretch.passed + (place.before - start.before);
            let holds = |p: &RunPlace| passed(p) <= number && number - passed(p) < p.ways;
            let on = run.partition_point(holds).max(1) - 1;
            let site = stretch.from + on;
            let Some(level) = levels.get(site) else { return path };
            let left = number - passed(&run[on]);
            let fits =
                |s: &u8| level.leads(run[on].node, *s).is_some() && level.before(run[on].node, *s) <= left;
            let state = (0..level.dim).rev().map(|s| s as u8).find(fits).unwrap_or(0);
            path.excite(site, state);
        }
    }

    /// The number of the state.
    pub fn number(&self) -> u64 {
        self.before(self.levels.len())
    }

    /// How many states branch off before a level.
    fn before(&self, level: usize) -> u64 {
        let stretch = self.stretches[self.excited.partition_point(|&site| site < level)];
        self.along(stretch, level).1
    }

    /// The node at a level that a stretch reaches, and the states that branch off before it.
    fn along(&self, stretch: Stretch, level: usize) -> (u32, u64) {
        let (start, end) =
            (&self.runs.places[stretch.place], &self.runs.places[stretch.place + level - stretch.from]);
        (end.node, stretch.passed.wrapping_add(end.before.wrapping_sub(start.before)))
    }

    /// What follows a state of a site.
    fn behind(&self, stretch: Stretch, site: usize, state: u8) -> Stretch {
        let (node, passed) = self.along(stretch, site);
        let level = &self.levels[site];
        let place = self.runs.place(site + 1, level.next(node, state));
        Stretch { from: site + 1, place, passed: passed.wrapping_add(level.before(node, state)) }
    }

    /// Sets a site behind the last stretch's start to a state that is not that of rest.
    fn excite(&mut self, site: usize, state: u8) {
        let behind = self.behind(self.stretches[self.excited.len()], site, state);
        self.states[site] = state;
        self.excited.push(site);
        self.stretches.push(behind);
    }

    /// Goes to the next state, if there is one.
    pub fn step(&mut self) {
        let mut end = self.levels.len();
        loop {
            let stretch = self.stretches[self.excited.len()];
            if end > stretch.from {
                let up = self.runs.places[stretch.place + end - 1 - stretch.from].up as usize;
                if up > stretch.from {
                    return self.rise(stretch, up - 1, self.runs.states[up - 1]);
                }
            }
            let Some(site) = self.excited.pop() else { return };
            self.stretches.pop();
            let state = std::mem::replace(&mut self.states[site], self.runs.states[site]);
            let stretch = self.stretches[self.excited.len()];
            if open(&self.levels[site], self.along(stretch, site).0, state as usize + 1).is_some() {
                return self.rise(stretch, site, state);
            }
            end = site;
        }
    }

    /// Takes the next state of a site of the last stretch above a given one, and the first ones of all sites behind it.
    fn rise(&mut self, stretch: Stretch, site: usize, above: u8) {
        let node = self.along(stretch, site).0;
        let Some(state) = open(&self.levels[site], node, above as usize + 1) else { return };
        if state != self.runs.states[site] {
            self.excite(site, state);
        }
        let mut from = site + 1;
        loop {
            let stretch = self.stretches[self.excited.len()];
            let off = self.runs.places[stretch.place + from - stretch.from].off as usize;
            let Some(level) = self.levels.get(off) else { return };
            let Some(first) = open(level, self.along(stretch, off).0, 0) else { return };
            self.excite(off, first);
            from = off + 1;
        }
    }

    /// How far the state with other local states on some sites lies from this one, modulo 2^64.
    pub fn shift(&self, sites: &[usize], states: &[u8]) -> u64 {
        let (Some(&first), Some(&last)) = (sites.first(), sites.last()) else { return 0 };
        let mut next = self.excited.partition_point(|&site| site < first);
        let mut stretch = self.stretches[next];
        for (&site, &state) in sites.iter().zip(states) {
            while let Some(&between) = self.excited.get(next).filter(|&&excited| excited < site) {
                stretch = self.behind(stretch, between, self.states[between]);
                next += 1;
            }
            if self.excited.get(next) == Some(&site) {
                next += 1;
            }
            stretch = self.behind(stretch, site, state);
        }
        stretch.passed.wrapping_sub(self.before(last + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::site::Site;
    use super::super::sites::Sites;
    use super::*;

    /// All states one after the other, as the path over all sites has them, around any states of rest.
    #[test]
    fn paths_visit_what_those_over_all_sites_do() {
        let cases = [
            ("Fermion", 7, vec![("N".to_string(), 0.0)]),
            ("Fermion", 7, vec![("N".to_string(), 1.0)]),
            ("Fermion", 7, vec![("N".to_string(), 3.0)]),
            ("Fermion", 7, vec![("N".to_string(), 7.0)]),
            ("Fermion", 1, vec![("N".to_string(), 1.0)]),
            ("S=1", 5, vec![("Sz".to_string(), 1.0)]),
            ("S=1/2", 6, vec![]),
            ("Electron", 4, vec![("Nup".to_string(), 2.0), ("Ndn".to_string(), 1.0)]),
        ];
        for (name, n, sector) in cases {
            let basis =
                SectorBasis::new(&Sites::uniform(Site::named(name, None).unwrap(), n).unwrap(), &sector)
                    .unwrap();
            let dim = basis.levels()[0].dim;
            for rest in [vec![0; n], vec![dim as u8 - 1; n], (0..n).map(|i| (i % dim) as u8).collect()] {
                let runs = RestRuns::around(&basis, rest).unwrap();
                let mut plain = BasisPath::at(&basis, 0);
                let mut path = RestPath::at(&basis, &runs, 0);
                for number in 0..basis.dim() {
                    let sites: Vec<usize> = (0..n).filter(|&i| plain.states[i] != runs.states[i]).collect();
                    let there = RestPath::at(&basis, &runs, number);
                    for path in [&path, &there] {
                        assert_eq!(
                            (&path.states, &path.excited),
                            (&plain.states, &sites),
                            "{name} {sector:?}"
                        );
                        assert_eq!(path.number(), number as u64);
                    }
                    // To every other state, by all sites that differ, and by all sites.
                    for to in 0..basis.dim() {
                        let states = basis.state(to).unwrap();
                        let other = |i: &usize| states[*i] != path.states[*i];
                        let differ: Vec<usize> = (0..n).filter(other).collect();
                        let on: Vec<u8> = differ.iter().map(|&i| states[i]).collect();
                        let all: Vec<usize> = (0..n).collect();
                        for shift in [path.shift(&differ, &on), path.shift(&all, &states)] {
                            assert_eq!((number as u64).wrapping_add(shift), to as u64);
                        }
                    }
                    plain.step();
                    path.step();
                }
            }
        }
    }
}
