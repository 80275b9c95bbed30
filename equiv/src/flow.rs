//! Where control goes: blocks, and where paths that parted meet again.
//!
//! # Idea
//! A branch that not all threads take alike is walked both ways, up to the block that every way
//! leads through: its immediate postdominator.
//! # Source
//! Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", on the reversed graph.

use bitstable_ptx::ir::{Body, Op, Operand};

/// A run of instructions that control enters at its start and leaves at its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    pub start: usize,
    /// One past the last instruction.
    pub end: usize,
    /// Blocks that may be next; [`Flow::exit`] where the kernel ends.
    pub next: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct Flow {
    pub blocks: Vec<Block>,
    /// Of each block, the first block that every way to the end leads through.
    pub joins: Vec<usize>,
}

/// Control that is not followed: a jump through a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unfollowed(pub usize);

impl Flow {
    pub fn of(body: &Body) -> Result<Self, Unfollowed> {
        let count = body.instructions.len();
        let mut starts = vec![false; count + 1];
        starts[0] = true;
        for label in &body.labels {
            starts[(label.at as usize).min(count)] = true;
        }
        for (at, instruction) in body.instructions.iter().enumerate() {
            if ends_block(&instruction.op) {
                starts[at + 1] = true;
            }
        }
        let firsts: Vec<usize> = (0..count).filter(|at| starts[*at]).collect();
        let exit = firsts.len();
        let block_at = |at: usize| firsts.partition_point(|first| *first < at).min(exit);
        let mut blocks = Vec::with_capacity(exit);
        for (number, start) in firsts.iter().enumerate() {
            let end = firsts.get(number + 1).copied().unwrap_or(count);
            let last = &body.instructions[end - 1];
            let mut next = Vec::new();
            if let Op::Bra { .. } = last.op {
                let Some(Operand::Label(label)) = last.operands.first() else {
                    return Err(Unfollowed(end - 1));
                };
                next.push(block_at(body.labels[label.index()].at as usize));
            } else if matches!(last.op, Op::BrxIdx { .. }) {
                return Err(Unfollowed(end - 1));
            } else {
                next.push(if ends_block(&last.op) { exit } else { number + 1 });
            }
            if last.guard.is_some() && ends_block(&last.op) && !next.contains(&(number + 1)) {
                next.push(number + 1);
            }
            blocks.push(Block { start: *start, end, next });
        }
        let joins = postdominators(&blocks);
        Ok(Self { blocks, joins })
    }

    /// The block after the last: the kernel's end.
    pub fn exit(&self) -> usize {
        self.blocks.len()
    }
}

fn ends_block(op: &Op) -> bool {
    matches!(op, Op::Bra { .. } | Op::BrxIdx { .. } | Op::Ret { .. } | Op::Exit | Op::Trap)
}

fn postdominators(blocks: &[Block]) -> Vec<usize> {
    let exit = blocks.len();
    let order = reverse_postorder(blocks);
    let mut rank = vec![usize::MAX; exit + 1];
    for (at, block) in order.iter().enumerate() {
        rank[*block] = at;
    }
    let mut joins = vec![usize::MAX; exit + 1];
    joins[exit] = exit;
    let mut changed = true;
    while changed {
        changed = false;
        for &block in order.iter().skip(1) {
            let mut found = usize::MAX;
            for &next in &blocks[block].next {
                if joins[next] == usize::MAX {
                    continue;
                }
                found = if found == usize::MAX { next } else { meet(found, next, &joins, &rank) };
            }
            if found != usize::MAX && joins[block] != found {
                joins[block] = found;
                changed = true;
            }
        }
    }
    // A block that never reaches the end meets nothing before it.
    joins.truncate(exit);
    joins.iter().map(|join| if *join == usize::MAX { exit } else { *join }).collect()
}

fn meet(mut a: usize, mut b: usize, joins: &[usize], rank: &[usize]) -> usize {
    while a != b {
        while rank[a] > rank[b] {
            a = joins[a];
        }
        while rank[b] > rank[a] {
            b = joins[b];
        }
    }
    a
}

/// Of the reversed graph, from the end.
fn reverse_postorder(blocks: &[Block]) -> Vec<usize> {
    let exit = blocks.len();
    let mut before = vec![Vec::new(); exit + 1];
    for (at, block) in blocks.iter().enumerate() {
        for &next in &block.next {
            before[next].push(at);
        }
    }
    let mut seen = vec![false; exit + 1];
    seen[exit] = true;
    let (mut order, mut stack) = (Vec::new(), vec![(exit, 0)]);
    while let Some((block, at)) = stack.pop() {
        if let Some(&previous) = before[block].get(at) {
            stack.push((block, at + 1));
            if !seen[previous] {
                seen[previous] = true;
                stack.push((previous, 0));
            }
        } else {
            order.push(block);
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(next: &[usize]) -> Block {
        Block { start: 0, end: 1, next: next.into() }
    }

    #[test]
    fn arms_of_a_branch_meet_behind_it() {
        let blocks = [block(&[1, 2]), block(&[3]), block(&[3]), block(&[4])];
        assert_eq!(postdominators(&blocks), [3, 3, 3, 4]);
    }

    #[test]
    fn a_loop_is_left_through_its_latch() {
        let blocks = [block(&[1]), block(&[2]), block(&[1, 3]), block(&[4])];
        assert_eq!(postdominators(&blocks), [1, 2, 3, 4]);
    }

    #[test]
    fn a_block_without_an_end_meets_at_the_end() {
        let blocks = [block(&[0, 1]), block(&[1])];
        assert_eq!(postdominators(&blocks), [2, 2]);
    }
}
