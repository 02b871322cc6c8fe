//! What lies between two runs beyond doubt, read in several ways.

use std::ops::Range;

use imara_diff::{Algorithm, Diff};

use super::Number;
use super::runs::Block;

/// One reading of a diff: its runs of equal lines, 0-based, in order, none empty
/// and no two of them touching on both sides.
pub(super) type Reading = Vec<Block>;

/// How many ways there are: two algorithms, loose blocks up or down.
pub(super) const READINGS: usize = 4;

/// Those with loose blocks as far down as they go, as git reads.
pub(super) const DOWN: [usize; 2] = [1, 3];

/// All readings of one part of two texts.
pub(super) type Readings = [Reading; READINGS];

/// Reads the part `olds` of an old text against the part `news` of a new one.
pub(super) fn readings(
    old: &[Number],
    olds: Range<usize>,
    new: &[Number],
    news: Range<usize>,
) -> Readings {
    let mut readings = Readings::default();
    if olds.is_empty() || news.is_empty() {
        return readings;
    }
    for (i, blocks) in diffs(&old[olds.clone()], &new[news.clone()]).into_iter().enumerate() {
        for (j, slide) in [slide_up, slide_down].into_iter().enumerate() {
            let mut blocks = blocks.clone();
            for block in &mut blocks {
                block.old += olds.start;
                block.new += news.start;
            }
            slide(&mut blocks, old, new);
            readings[2 * i + j] = joined(blocks);
        }
    }
    readings
}

/// The equal lines as two algorithms find them.
fn diffs(old: &[Number], new: &[Number]) -> Vec<Vec<Block>> {
    // Numbers of their own: the algorithms keep a table of them all.
    let mut known: Vec<Number> = old.iter().chain(new).copied().collect();
    known.sort_unstable_by_key(|n| n.0);
    known.dedup();
    let own = |text: &[Number]| -> Vec<Number> {
        let place = |n: &Number| known.partition_point(|k| k.0 < n.0);
        let number = |at| Number(u32::try_from(at).expect("no more than there were"));
        text.iter().map(|n| number(place(n))).collect()
    };
    let most = u32::try_from(known.len()).expect("no more than there were");
    let (old, new) = (&own(old)[..], &own(new)[..]);
    let mut diff = Diff::default();
    [Algorithm::Myers, Algorithm::Histogram]
        .into_iter()
        .map(|algorithm| {
            diff.compute_with(algorithm, old, new, most);
            let mut blocks = Vec::new();
            let (mut old_at, mut new_at) = (0, 0);
            let ends = diff.hunks().map(|hunk| {
                let at = |line: u32| line as usize;
                let (was, is) = (hunk.before, hunk.after);
                [at(was.start), at(is.start), at(was.end), at(is.end)]
            });
            for [old_end, new_end, old_next, new_next] in
                ends.chain([[old.len(), new.len(), old.len(), new.len()]])
            {
                debug_assert_eq!(old_end - old_at, new_end - new_at, "a run of equal lines");
                blocks.push(Block { old: old_at, new: new_at, len: old_end - old_at });
                (old_at, new_at) = (old_next, new_next);
            }
            blocks
        })
        .collect()
}

/// Blocks that touch put together, empty ones left out.
fn joined(blocks: Vec<Block>) -> Reading {
    let mut reading: Reading = Vec::with_capacity(blocks.len());
    for block in blocks.into_iter().filter(|b| b.len > 0) {
        match reading.last_mut() {
            Some(last) if last.old + last.len == block.old && last.new + last.len == block.new => {
                last.len += block.len;
            }
            _ => reading.push(block),
        }
    }
    reading
}

/// The inserted or deleted lines between two blocks, where only one side has
/// any: these can slide.
fn loose(a: Block, b: Block) -> Option<Loose> {
    let old = a.old + a.len..b.old;
    let new = a.new + a.len..b.new;
    match (old.is_empty(), new.is_empty()) {
        (true, false) => Some(Loose::Inserted(new)),
        (false, true) => Some(Loose::Deleted(old)),
        _ => None,
    }
}

enum Loose {
    Inserted(Range<usize>),
    Deleted(Range<usize>),
}

impl Loose {
    fn same(
        &self,
        old: &[Number],
        new: &[Number],
        pick: impl Fn(&Range<usize>) -> (usize, usize),
    ) -> bool {
        let (text, range) = match self {
            Loose::Inserted(range) => (new, range),
            Loose::Deleted(range) => (old, range),
        };
        let (i, j) = pick(range);
        text[i] == text[j]
    }
}

fn slide_up(blocks: &mut [Block], old: &[Number], new: &[Number]) {
    for i in 1..blocks.len() {
        while blocks[i - 1].len > 0
            && let Some(loose) = loose(blocks[i - 1], blocks[i])
            && loose.same(old, new, |r| (r.start - 1, r.end - 1))
        {
            blocks[i - 1].len -= 1;
            blocks[i].old -= 1;
            blocks[i].new -= 1;
            blocks[i].len += 1;
        }
    }
}

fn slide_down(blocks: &mut [Block], old: &[Number], new: &[Number]) {
    for i in (1..blocks.len()).rev() {
        while blocks[i].len > 0
            && let Some(loose) = loose(blocks[i - 1], blocks[i])
            && loose.same(old, new, |r| (r.start, r.end))
        {
            blocks[i - 1].len += 1;
            blocks[i].old += 1;
            blocks[i].new += 1;
            blocks[i].len -= 1;
        }
    }
}
