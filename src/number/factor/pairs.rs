//! Pairs of rows of a sparse matrix that are coupled: a matching by Karp and Sipser's rule,
//! which leaves few rows alone.

/// Neighbours of each row of a matrix, of which the lower triangle is given by columns.
struct RowNeighbours {
    start: Vec<usize>,
    row: Vec<usize>,
}

impl RowNeighbours {
    fn new(start: &[usize], row: &[usize]) -> RowNeighbours {
        let n = start.len() - 1;
        let mut count = vec![0; n + 1];
        let each = || (0..n).flat_map(|j| row[start[j]..start[j + 1]].iter().map(move |&i| (i, j)));
        for (i, j) in each().filter(|(i, j)| i != j) {
            count[i + 1] += 1;
            count[j + 1] += 1;
        }
        (0..n).for_each(|k| count[k + 1] += count[k]);
        let (first, mut next) = (count.clone(), count);
        let mut of = vec![0; first[n]];
        for (i, j) in each().filter(|(i, j)| i != j) {
            for (here, there) in [(i, j), (j, i)] {
                of[next[here]] = there;
                next[here] += 1;
            }
        }
        RowNeighbours { start: first, row: of }
    }

    fn of(&self, row: usize) -> &[usize] {
        &self.row[self.start[row]..self.start[row + 1]]
    }
}

/// The rows in groups: pairs, behind some of them rows that have no partner; rows without neighbours are alone.
pub(super) fn groups(start: &[usize], row: &[usize]) -> Vec<Vec<usize>> {
    let near = RowNeighbours::new(start, row);
    let n = start.len() - 1;
    let mut free: Vec<usize> = (0..n).map(|k| near.of(k).len()).collect();
    let mut group = vec![usize::MAX; n];
    let mut groups: Vec<Vec<usize>> = Vec::new();
    // Whoever has one neighbour left takes it, before others do.
    let mut pressing: Vec<usize> = (0..n).rev().filter(|&k| free[k] == 1).collect();
    let mut others = 0..n;
    while let Some(first) = pressing.pop().or_else(|| others.next()) {
        let partner = near.of(first).iter().copied().find(|&k| group[k] == usize::MAX);
        let (usize::MAX, Some(partner)) = (group[first], partner) else { continue };
        for row in [first, partner] {
            group[row] = groups.len();
            for &other in near.of(row) {
                free[other] = free[other].saturating_sub(1);
                if free[other] == 1 && group[other] == usize::MAX {
                    pressing.push(other);
                }
            }
        }
        groups.push(vec![first, partner]);
    }
    for alone in 0..n {
        if group[alone] != usize::MAX {
            continue;
        }
        match near.of(alone).iter().map(|&k| group[k]).min_by_key(|&k| groups[k].len()) {
            Some(k) => groups[k].push(alone),
            None => groups.push(vec![alone]),
        }
    }
    groups
}

/// The lower triangle of the matrix whose rows are groups, by columns, where `of` tells the group of a row.
pub(super) fn joined(
    start: &[usize],
    row: &[usize],
    of: &[usize],
    groups: usize,
) -> (Vec<usize>, Vec<usize>) {
    let mut columns = vec![Vec::new(); groups];
    for j in 0..start.len() - 1 {
        for &i in &row[start[j]..start[j + 1]] {
            columns[of[i].min(of[j])].push(of[i].max(of[j]));
        }
    }
    let (mut first, mut rows) = (vec![0], Vec::new());
    for column in &mut columns {
        column.sort_unstable();
        column.dedup();
        rows.append(column);
        first.push(rows.len());
    }
    (first, rows)
}
