//! The smallest set of vertices that touches every edge of a bipartite graph (König's theorem): it says which left and
//! which right parts of the terms across a bond have to be carried as operators
//! (Ren, Li, Jiang, Shuai, J. Chem. Phys. 153, 084118 (2020)).

/// In place of the partner of a vertex that has none.
const FREE: usize = usize::MAX;

/// Which rows and which columns are in the smallest cover of the edges `neighbours[row]`.
pub(super) fn smallest(neighbours: &[Vec<usize>], columns: usize) -> (Vec<bool>, Vec<bool>) {
    let rows = neighbours.len();
    let (mut of_row, mut of_column) = (vec![FREE; rows], vec![FREE; columns]);
    let mut reached_from = vec![FREE; columns];
    for start in 0..rows {
        // An augmenting path, found breadth first: its free and its matched edges alternate, and are exchanged.
        reached_from.fill(FREE);
        let mut queue = std::collections::VecDeque::from([start]);
        let mut end = None;
        'search: while let Some(row) = queue.pop_front() {
            for &column in &neighbours[row] {
                if reached_from[column] != FREE {
                    continue;
                }
                reached_from[column] = row;
                if of_column[column] == FREE {
                    end = Some(column);
                    break 'search;
                }
                queue.push_back(of_column[column]);
            }
        }
        while let Some(column) = end {
            let row = reached_from[column];
            let before = of_row[row];
            (of_row[row], of_column[column]) = (column, row);
            end = (before != FREE).then_some(before);
        }
    }
    let (mut open_rows, mut cover_columns) = (vec![false; rows], vec![false; columns]);
    let mut stack: Vec<usize> = (0..rows).filter(|&row| of_row[row] == FREE).collect();
    stack.iter().for_each(|&row| open_rows[row] = true);
    while let Some(row) = stack.pop() {
        for &column in &neighbours[row] {
            if !cover_columns[column] {
                cover_columns[column] = true;
                let next = of_column[column];
                if next != FREE && !open_rows[next] {
                    open_rows[next] = true;
                    stack.push(next);
                }
            }
        }
    }
    (open_rows.iter().map(|open| !open).collect(), cover_columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_are_whole_and_small() {
        let size = |graph: &[Vec<usize>], columns| {
            let (rows, cols) = smallest(graph, columns);
            for (row, neighbours) in graph.iter().enumerate() {
                assert!(neighbours.iter().all(|&c| rows[row] || cols[c]));
            }
            rows.iter().chain(&cols).filter(|chosen| **chosen).count()
        };
        let star: Vec<Vec<usize>> = (0..7).map(|_| vec![0]).collect();
        assert_eq!(size(&star, 1), 1);
        let ladder: Vec<Vec<usize>> = (0..5).map(|i| vec![i, (i + 1) % 5]).collect();
        assert_eq!(size(&ladder, 5), 5);
        assert_eq!(size(&[vec![0, 1, 2, 3], vec![0], vec![0]], 4), 2);
        assert_eq!(size(&[], 0), 0);
    }
}
