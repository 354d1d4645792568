//! The order of a lattice's sites along the chain: the number of states that must be kept grows with the number of
//! bonds that a cut of the chain crosses.

/// An order of `n` sites whose cuts cross few bonds. It is the given numbering unless another order has fewer bonds
/// in its largest cut, or as many there and fewer in all. Sites are added one by one, those first that leave the
/// fewest bonds open.
pub fn smallest_cuts(n: usize, bonds: &[(usize, usize)]) -> Vec<usize> {
    let mut near = vec![Vec::new(); n];
    for &(a, b) in bonds.iter().filter(|(a, b)| a != b) {
        near[a].push(b);
        near[b].push(a);
    }
    let mut best: Vec<usize> = (0..n).collect();
    let mut least = cuts(&near, &best);
    // All first sites of small lattices, some of large ones.
    for first in (0..n).step_by(n.div_ceil(256).max(1)) {
        let order = grown(&near, first);
        let size = cuts(&near, &order);
        if size < least {
            (best, least) = (order, size);
        }
    }
    best
}

/// The most bonds that a cut of the chain crosses, and the sum over all cuts.
pub fn cuts(near: &[Vec<usize>], order: &[usize]) -> (usize, usize) {
    let mut inside = vec![false; near.len()];
    let (mut open, mut most, mut sum) = (0, 0, 0);
    for &site in order {
        let closed = near[site].iter().filter(|&&other| inside[other]).count();
        inside[site] = true;
        open = open + near[site].len() - 2 * closed;
        most = most.max(open);
        sum += open;
    }
    (most, sum)
}

/// An order that begins with one site. The next one is always a site that leaves the fewest bonds open, and among
/// those the one with the oldest neighbour.
fn grown(near: &[Vec<usize>], first: usize) -> Vec<usize> {
    let n = near.len();
    let mut place = vec![usize::MAX; n];
    let mut order = Vec::with_capacity(n);
    let mut next = Some(first);
    while let Some(site) = next {
        place[site] = order.len();
        order.push(site);
        let inside = |other: &&usize| place[**other] != usize::MAX;
        next = (0..n).filter(|&s| place[s] == usize::MAX).min_by_key(|&s| {
            let closed = near[s].iter().filter(inside).count();
            let oldest = near[s].iter().map(|&o| place[o]).min().unwrap_or(usize::MAX);
            // Sites that are not joined to those inside begin a component of their own, after all others.
            (closed == 0 && !near[s].is_empty(), near[s].len() as isize - 2 * closed as isize, oldest, s)
        });
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cylinders_are_wound_around() {
        // A cylinder of 8 rings of 4, numbered along.
        let bonds: Vec<(usize, usize)> = (0..8)
            .flat_map(|x| (0..4).map(move |y| (x, y)))
            .flat_map(|(x, y)| {
                let at = |x: usize, y: usize| x + 8 * (y % 4);
                let along = (x < 7).then(|| (at(x, y), at(x + 1, y)));
                [Some((at(x, y), at(x, y + 1))), along].into_iter().flatten()
            })
            .collect();
        let order = smallest_cuts(32, &bonds);
        let mut near = vec![Vec::new(); 32];
        for (a, b) in bonds {
            near[a].push(b);
            near[b].push(a);
        }
        let natural: Vec<usize> = (0..32).collect();
        assert_eq!(cuts(&near, &natural).0, 17);
        assert_eq!(cuts(&near, &order).0, 6);
        let chain: Vec<(usize, usize)> = (1..9).map(|i| (i - 1, i)).collect();
        assert_eq!(smallest_cuts(9, &chain), (0..9).collect::<Vec<_>>());
    }
}
