//! Layout of a dependency graph of steps, drawn downwards with lines: one lane for each dependency, parallel branches
//! side by side. Returns rows of line characters; the caller draws what is next to them.

/// A row of the drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DagRow {
    /// The lines, two cells for each lane; as wide as the widest row.
    pub lines: String,
    /// The node that begins in this row, with the column of its glyph in `lines`.
    pub node: Option<(usize, usize)>,
    /// The node that this row belongs to, and the row's index in it; `None` for rows that only join and split lanes.
    pub of: Option<(usize, usize)>,
}

/// The line characters.
struct Signs {
    down: char,
    across: char,
    cross: char,
    right: char,
    join: char,
    part: char,
    end_join: char,
    end_part: char,
}

const UNICODE: Signs = Signs {
    down: '│',
    across: '─',
    cross: '┼',
    right: '├',
    join: '┴',
    part: '┬',
    end_join: '┘',
    end_part: '┐',
};
const ASCII: Signs = Signs {
    down: '|',
    across: '-',
    cross: '+',
    right: '+',
    join: '+',
    part: '+',
    end_join: '+',
    end_part: '+',
};

/// Returns the rows of a graph. `before[n]` are the nodes that node `n` depends on; `heights[n]` is the number of its
/// rows, at least one. Nodes are in topological order, otherwise in the given one. Returns `None` if the graph has a
/// cycle, or needs more than `most` parallel lanes.
pub fn rows(before: &[Vec<usize>], heights: &[usize], most: usize, ascii: bool) -> Option<Vec<DagRow>> {
    let order = in_order(before)?;
    let after = children(before, &order);
    let signs = if ascii { &ASCII } else { &UNICODE };
    let mut lanes: Vec<Option<usize>> = Vec::new();
    let mut out = Vec::new();
    for node in order {
        let mine: Vec<usize> = (0..lanes.len()).filter(|at| lanes[*at] == Some(node)).collect();
        let lane = match mine.first() {
            Some(first) => *first,
            None => free(&mut lanes, 0),
        };
        if let Some(last) = mine.last().filter(|last| **last > lane) {
            let ends = |at: usize| mine.contains(&at);
            out.push(DagRow {
                lines: across(&lanes, lane, *last, ends, (signs.join, signs.end_join), signs),
                node: None,
                of: None,
            });
            for at in mine.iter().skip(1) {
                lanes[*at] = None;
            }
        }
        let next = &after[node];
        lanes[lane] = Some(node);
        out.push(DagRow {
            lines: downwards(&lanes, Some(lane), signs),
            node: Some((node, lane * 2)),
            of: Some((node, 0)),
        });
        lanes[lane] = next.first().copied();
        for row in 1..heights.get(node).copied().unwrap_or(1) {
            out.push(DagRow { lines: downwards(&lanes, None, signs), node: None, of: Some((node, row)) });
        }
        let mut opened = Vec::new();
        for child in next.iter().skip(1) {
            let at = free(&mut lanes, lane + 1);
            lanes[at] = Some(*child);
            opened.push(at);
        }
        if lanes.len() > most {
            return None;
        }
        if let Some(last) = opened.iter().max() {
            let begins = |at: usize| opened.contains(&at);
            out.push(DagRow {
                lines: across(&lanes, lane, *last, begins, (signs.part, signs.end_part), signs),
                node: None,
                of: None,
            });
        }
        while lanes.last() == Some(&None) {
            lanes.pop();
        }
    }
    let widest = out.iter().map(|row| row.lines.chars().count()).max().unwrap_or(0);
    for row in &mut out {
        let missing = widest - row.lines.chars().count();
        row.lines.extend(std::iter::repeat_n(' ', missing));
    }
    Some(out)
}

/// Sorts the nodes topologically, preserving the given order where possible; `None` for a cycle.
fn in_order(before: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = Vec::with_capacity(before.len());
    let mut placed = vec![false; before.len()];
    while order.len() < before.len() {
        let ready =
            |node: &usize| !placed[*node] && before[*node].iter().all(|one| placed.get(*one) == Some(&true));
        let next = (0..before.len()).find(ready)?;
        placed[next] = true;
        order.push(next);
    }
    Some(order)
}

/// Returns the direct successors of each node, without redundant edges (transitive reduction).
fn children(before: &[Vec<usize>], order: &[usize]) -> Vec<Vec<usize>> {
    // above[n] contains every node that is before n in any number of steps.
    let mut above: Vec<Vec<bool>> = vec![vec![false; before.len()]; before.len()];
    for node in order {
        for one in &before[*node] {
            let mut all = above[*one].clone();
            all[*one] = true;
            above[*node].iter_mut().zip(all).for_each(|(known, more)| *known |= more);
        }
    }
    let mut out = vec![Vec::new(); before.len()];
    for node in order {
        let mut direct = before[*node].clone();
        direct.sort_unstable();
        direct.dedup();
        for one in &direct {
            let longer = direct.iter().any(|other| other != one && above[*other][*one]);
            if !longer {
                out[*one].push(*node);
            }
        }
    }
    out
}

fn free(lanes: &mut Vec<Option<usize>>, from: usize) -> usize {
    while lanes.len() < from {
        lanes.push(None);
    }
    if let Some(at) = (from..lanes.len()).find(|at| lanes[*at].is_none()) {
        at
    } else {
        lanes.push(None);
        lanes.len() - 1
    }
}

/// Draws a line downwards in every used lane; the lane of the node leaves its cell free for the node's glyph.
fn downwards(lanes: &[Option<usize>], node: Option<usize>, signs: &Signs) -> String {
    let mut line = String::new();
    for (at, lane) in lanes.iter().enumerate() {
        line.push(if lane.is_some() && node != Some(at) { signs.down } else { ' ' });
        line.push(' ');
    }
    line
}

/// Draws a line from one lane to another, with the lanes that join or split there and those that it crosses.
fn across(
    lanes: &[Option<usize>],
    from: usize,
    to: usize,
    turns: impl Fn(usize) -> bool,
    (middle, last): (char, char),
    signs: &Signs,
) -> String {
    let mut line = String::new();
    for (at, lane) in lanes.iter().enumerate() {
        let inside = (from..=to).contains(&at);
        line.push(match (inside, lane.is_some()) {
            (true, _) if at == from => signs.right,
            (true, _) if at == to => last,
            (true, _) if turns(at) => middle,
            (true, true) => signs.cross,
            (true, false) => signs.across,
            (false, true) => signs.down,
            (false, false) => ' ',
        });
        line.push(if inside && at != to { signs.across } else { ' ' });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dag_rows(before: &[Vec<usize>]) -> Vec<String> {
        let heights = vec![1; before.len()];
        let rows = rows(before, &heights, 8, false).unwrap();
        let sign = |row: &DagRow| {
            let mut line: Vec<char> = row.lines.chars().collect();
            if let Some((node, column)) = row.node {
                line[column] = char::from(b'a' + node as u8);
            }
            line.iter().collect::<String>().trim_end().to_owned()
        };
        rows.iter().map(sign).collect()
    }

    #[test]
    fn a_chain_is_one_lane() {
        assert_eq!(dag_rows(&[vec![], vec![0], vec![1]]), ["a", "b", "c"]);
    }

    #[test]
    fn parallel_branches_are_side_by_side_and_join() {
        let message = dag_rows(&[vec![], vec![0], vec![0], vec![0], vec![3], vec![1, 2, 4]]);
        assert_eq!(message, ["a", "├─┬─┐", "b │ │", "│ c │", "│ │ d", "│ │ e", "├─┴─┘", "f"]);
    }

    #[test]
    fn redundant_edge_is_not_drawn() {
        assert_eq!(dag_rows(&[vec![], vec![0], vec![0, 1]]), ["a", "b", "c"]);
    }

    #[test]
    fn a_lane_that_only_passes_is_crossed() {
        // a feeds b, c, d; e needs b and d, f needs c and e.
        let message = dag_rows(&[vec![], vec![0], vec![0], vec![0], vec![1, 3], vec![2, 4]]);
        assert_eq!(message, ["a", "├─┬─┐", "b │ │", "│ c │", "│ │ d", "├─┼─┘", "e │", "├─┘", "f"]);
    }

    #[test]
    fn step_is_drawn_after_its_dependencies_and_cycles_are_not() {
        assert_eq!(dag_rows(&[vec![1], vec![]]), ["b", "a"]);
        assert_eq!(rows(&[vec![1], vec![0]], &[1, 1], 8, false), None);
        assert_eq!(rows(&[vec![], vec![0], vec![0], vec![0]], &[1; 4], 2, false), None);
    }

    #[test]
    fn rows_of_a_tall_node_keep_every_lane_going() {
        let rows = rows(&[vec![], vec![0], vec![0]], &[1, 3, 1], 8, true).unwrap();
        let texts: Vec<&str> = rows.iter().map(|row| row.lines.trim_end()).collect();
        assert_eq!(texts, ["", "+-+", "  |", "  |", "  |", ""]);
        assert_eq!(rows[3].of, Some((1, 1)));
    }
}
