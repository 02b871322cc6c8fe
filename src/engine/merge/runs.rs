//! The runs of lines that two texts share beyond doubt.

use super::Number;

/// A run of equal lines: old start, new start, length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub old: usize,
    pub new: usize,
    pub len: usize,
}

impl Block {
    /// The lines after it, in the old text and the new.
    pub fn end(&self) -> (usize, usize) {
        (self.old + self.len, self.new + self.len)
    }
}

/// The new line of an old one, where a block holds it.
pub(super) fn place_in(blocks: &[Block], old: usize) -> Option<usize> {
    let last = blocks[..blocks.partition_point(|b| b.old <= old)].last()?;
    (old - last.old < last.len).then(|| last.new + (old - last.old))
}

/// The old line of a new one, where a block holds it.
pub(super) fn place_in_back(blocks: &[Block], new: usize) -> Option<usize> {
    let last = blocks[..blocks.partition_point(|b| b.new <= new)].last()?;
    (new - last.new < last.len).then(|| last.old + (new - last.new))
}

/// The least number of lines of a run that stand once in either text. One such
/// line may be there by chance; so many, with nothing changed between them, are
/// not.
const LEAST: usize = 4;

/// A run, and how many of its lines stand once in either text: it begins and
/// ends with such a line, so that nothing slides into it.
struct Run {
    block: Block,
    singles: usize,
}

/// The runs beyond doubt, and how often each number stands in the new text.
/// Where runs cross, because upstream moved one of them, those stay that hold
/// most together.
pub(super) fn sure(old: &[Number], new: &[Number]) -> (Vec<Block>, Vec<u32>) {
    let most = old.iter().chain(new).map(|n| n.0 as usize + 1).max().unwrap_or_default();
    // How often each number stands in the old text and in the new, and where last.
    let mut seen = vec![(0_u32, 0_u32, 0_u32); most];
    old.iter().for_each(|n| seen[n.0 as usize].0 += 1);
    for (at, n) in (0_u32..).zip(new) {
        let (_, count, place) = &mut seen[n.0 as usize];
        (*count, *place) = (*count + 1, at);
    }
    let mut runs: Vec<Run> = Vec::new();
    for (at, n) in old.iter().enumerate() {
        let (1, 1, place) = seen[n.0 as usize] else { continue };
        let place = place as usize;
        if let Some(Run { block, singles }) = runs.last_mut()
            && let (old_end, new_end) = block.end()
            && place >= new_end
            && place - new_end == at - old_end
            && old[old_end..at] == new[new_end..place]
        {
            block.len = at + 1 - block.old;
            *singles += 1;
            continue;
        }
        runs.push(Run { block: Block { old: at, new: place, len: 1 }, singles: 1 });
    }
    runs.retain(|run| run.singles >= LEAST);
    (in_order(&runs), seen.into_iter().map(|(_, news, _)| news).collect())
}

/// The runs that follow one another in both texts and weigh most.
fn in_order(runs: &[Run]) -> Vec<Block> {
    if runs.is_sorted_by_key(|run| run.block.new) {
        return runs.iter().map(|run| run.block).collect();
    }
    // The weight of the heaviest chain that ends with each run, and the run
    // before it in that chain.
    let mut chains: Vec<(usize, Option<usize>)> = Vec::with_capacity(runs.len());
    for (at, run) in runs.iter().enumerate() {
        let before = (0..at).filter(|&i| runs[i].block.new < run.block.new);
        let best = before.max_by_key(|&i| chains[i].0);
        chains.push((run.singles + best.map_or(0, |i| chains[i].0), best));
    }
    let mut next = (0..runs.len()).max_by_key(|&i| chains[i].0);
    let mut chain = Vec::new();
    while let Some(at) = next {
        chain.push(runs[at].block);
        next = chains[at].1;
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(old: &[u32], new: &[u32]) -> Vec<(usize, usize, usize)> {
        let numbers = |text: &[u32]| text.iter().map(|n| Number(*n)).collect::<Vec<_>>();
        sure(&numbers(old), &numbers(new)).0.iter().map(|b| (b.old, b.new, b.len)).collect()
    }

    #[test]
    fn a_run_holds_lines_that_stand_once_and_ends_with_them() {
        // The 0 is a common line: it may stand within a run, not at its ends.
        assert_eq!(runs(&[0, 1, 2, 0, 3, 4, 0], &[9, 0, 1, 2, 0, 3, 4, 0]), [(1, 2, 5)]);
        assert_eq!(runs(&[1, 2, 3], &[1, 2, 3]), [], "too few to be beyond doubt");
        assert_eq!(runs(&[1, 2, 0, 3, 4], &[1, 2, 9, 3, 4]), [], "a line between them changed");
    }

    #[test]
    fn of_runs_that_cross_the_heavier_stay() {
        let (a, b, c) = ([1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13]);
        let old = [&a[..], &b, &c].concat();
        let new = [&b[..], &a, &c].concat();
        assert_eq!(runs(&old, &new), [(4, 0, 5), (9, 9, 4)]);
    }
}
