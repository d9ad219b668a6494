//! The structurizer: which blocks of a function are nested in which regions.
//!
//! Any reducible flow graph becomes structured flow by its dominator tree (N. Ramsey, "Beyond Relooper", 2022): a block that several
//! edges lead to is placed after the code of its immediate dominator, in a `block` that the edges leave; all others are nested where
//! the one edge to them is; the target of a back edge becomes a `loop`. Two rules are added so that invocations meet where SPIR-V says:
//! the declared merge block of a header is placed after the header's code even if one edge leads to it, and what is not part of a loop
//! is placed after the loop, not in it.
//!
//! A value that is used where it is not visible, after a loop that it was defined in, goes through a variable.

mod cases;

use super::error::{Result, SpirvCause, invalid, unsupported};
use super::module::{
    BlockDef, FunctionDef, IdDef, Instr, Module, NONE, has_result, instruction, is_terminator,
};
use crate::ir::{MAX_DEPTH, Type};
use spirv::Op;
use std::collections::HashMap;
use std::ops::Range;

/// The most steps up trees of blocks. Only graphs that are made to be slow reach it.
const MAX_STEPS: u64 = 1 << 26;

/// The header of the outermost loop found so far that a block is in, or the block itself. Compresses paths.
fn find(outermost: &mut [usize], block: usize) -> usize {
    let mut last = block;
    while outermost[last] != last {
        last = outermost[last];
    }
    let mut at = block;
    while at != last {
        at = std::mem::replace(&mut outermost[at], last);
    }
    last
}

/// A block of the flow graph. Blocks are numbered in reverse postorder; the entry has 0.
#[derive(Debug, Clone, Default)]
pub(super) struct FlowBlock {
    /// Number in [`Module::blocks`].
    pub(super) block: usize,
    /// Offset of the terminator.
    pub(super) terminator: u32,
    /// Where control goes, in the order of the terminator.
    pub(super) successors: Vec<usize>,
    /// Blocks that are placed after this one's code, in order; for a loop's header, those in the loop.
    pub(super) placed: Vec<usize>,
    /// Of a loop's header: blocks that are placed after the loop, in order.
    pub(super) after_loop: Vec<usize>,
    /// Whether it is the target of a back edge.
    pub(super) is_loop: bool,
    /// Whether it is in a list of placed blocks.
    pub(super) is_placed: bool,
    /// The region that its code is in.
    pub(super) region: usize,
    /// Of a switch with many cases: targets that are nested where it jumps to them. Those of a chain fall through to each other.
    pub(super) chains: Vec<Vec<usize>>,
    switches: bool,
    immediate: usize,
    /// Depth-first numbers of the blocks that it dominates; its own is the first.
    dominated: Range<usize>,
    /// Header of the innermost loop around it; for the header of a loop, of the next loop around that one.
    in_loop: Option<usize>,
    /// The block after which it is placed, or the one at whose edge it is nested.
    parent: usize,
    edges: usize,
}

/// The plan of a function.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    pub(super) blocks: Vec<FlowBlock>,
    /// Label → block.
    pub(super) labels: HashMap<u32, usize>,
    /// Parents of regions; the first one has none.
    parents: Vec<usize>,
    /// Results that are used where they are not visible → the block that defines them.
    pub(super) escaping: HashMap<u32, usize>,
    steps: u64,
}

impl Plan {
    /// Makes the plan of a function. If an instruction is not valid, `at` becomes its offset.
    pub(super) fn new(module: &Module, words: &[u32], function: &FunctionDef, at: &mut u32) -> Result<Plan> {
        let mut plan = Plan::default();
        let start = *at;
        let merges = plan.graph(module, words, function, at)?;
        *at = start;
        let predecessors = plan.predecessors();
        plan.dominators(&predecessors)?;
        plan.loops(&predecessors)?;
        plan.place(&merges, &predecessors)?;
        plan.cases(&merges, &predecessors);
        plan.regions()?;
        plan.escapes(module, words)?;
        Ok(plan)
    }

    /// Whether code of a block is in the region of another one, or within it.
    pub(super) fn is_within(&self, block: usize, of: usize) -> bool {
        let outer = self.blocks[of].region;
        let mut region = self.blocks[block].region;
        // Regions are numbered from the outside in.
        while region > outer {
            region = self.parents[region];
        }
        region == outer
    }

    /// The sources of the edges to each block, in order.
    fn predecessors(&self) -> Vec<Vec<usize>> {
        let mut predecessors = vec![Vec::new(); self.blocks.len()];
        for (at, block) in self.blocks.iter().enumerate() {
            for &to in &block.successors {
                predecessors[to].push(at);
            }
        }
        predecessors
    }

    /// Blocks in reverse postorder, and the declared merge block of each.
    fn graph(
        &mut self,
        module: &Module,
        words: &[u32],
        function: &FunctionDef,
        at: &mut u32,
    ) -> Result<Vec<Option<usize>>> {
        let defs = &module.blocks[function.blocks.clone()];
        if defs.is_empty() {
            return unsupported("functions without a body");
        }
        let by_label: HashMap<u32, usize> =
            defs.iter().enumerate().map(|(at, def)| (def.label, at)).collect();
        let find = |label: u32| match (by_label.get(&label), module.id(label)?) {
            (Some(&block), _) => Ok(block),
            (None, IdDef::None) => Err(SpirvCause::Undefined(label)),
            _ => Err(SpirvCause::Wrong { id: label, wanted: "a block of this function" }),
        };
        let mut ends = Vec::with_capacity(defs.len());
        for def in defs {
            ends.push(end_of(module, words, def, &find, at)?);
        }
        // Depth first, without recursion.
        let mut order = Vec::with_capacity(defs.len());
        let mut state = vec![0usize; defs.len()];
        let mut stack = vec![0usize];
        state[0] = 1;
        while let Some(&at) = stack.last() {
            // Successors are visited last one first, so that the first one comes first in the order.
            let next = ends[at].successors.iter().rev().nth(state[at] - 1).copied();
            match next {
                Some(next) => {
                    state[at] += 1;
                    if state[next] == 0 {
                        state[next] = 1;
                        stack.push(next);
                    }
                }
                None => {
                    order.push(at);
                    stack.pop();
                }
            }
        }
        order.reverse();
        let mut number = vec![usize::MAX; defs.len()];
        for (new, &old) in order.iter().enumerate() {
            number[old] = new;
        }
        let mut merges = Vec::with_capacity(order.len());
        for &old in &order {
            let end = &ends[old];
            self.labels.insert(defs[old].label, self.blocks.len());
            merges.push(end.merge.map(|merge| number[merge]).filter(|&merge| merge != usize::MAX));
            self.blocks.push(FlowBlock {
                block: function.blocks.start + old,
                terminator: end.at,
                successors: end.successors.iter().map(|&to| number[to]).collect(),
                switches: end.switches,
                ..FlowBlock::default()
            });
        }
        Ok(merges)
    }

    /// Immediate dominators (Cooper, Harvey, Kennedy), forward edges, and loops.
    fn dominators(&mut self, predecessors: &[Vec<usize>]) -> Result<()> {
        for block in self.blocks.iter_mut().skip(1) {
            block.immediate = usize::MAX;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (at, predecessors) in predecessors.iter().enumerate().skip(1) {
                let mut dominator = usize::MAX;
                // Late ones first: the sources of a ladder of exits are one step above each other.
                for &from in predecessors.iter().rev() {
                    if from != 0 && self.blocks[from].immediate == usize::MAX {
                        continue;
                    }
                    dominator = if dominator == usize::MAX { from } else { self.common(dominator, from)? };
                }
                if self.blocks[at].immediate != dominator {
                    self.blocks[at].immediate = dominator;
                    changed = true;
                }
            }
        }
        for (at, from) in predecessors.iter().enumerate() {
            self.blocks[at].edges = from.iter().filter(|&&from| from < at).count();
            self.blocks[at].is_loop = from.iter().any(|&from| from >= at);
        }
        self.number_dominators();
        Ok(())
    }

    /// Numbers the tree of dominators depth first, so that the blocks that a block dominates are a range.
    fn number_dominators(&mut self) {
        let count = self.blocks.len();
        let mut sizes = vec![1usize; count];
        for at in (1..count).rev() {
            sizes[self.blocks[at].immediate] += sizes[at];
        }
        let mut next = vec![1usize; count];
        self.blocks[0].dominated = 0..count;
        for at in 1..count {
            let parent = self.blocks[at].immediate;
            let start = next[parent];
            next[parent] += sizes[at];
            next[at] = start + 1;
            self.blocks[at].dominated = start..start + sizes[at];
        }
    }

    /// Counts a step of a walk whose length the size of the module does not bound.
    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps > MAX_STEPS { Err(SpirvCause::Limit("flow")) } else { Ok(()) }
    }

    fn common(&mut self, mut a: usize, mut b: usize) -> Result<usize> {
        while a != b {
            self.step()?;
            if a > b {
                a = self.blocks[a].immediate;
            } else {
                b = self.blocks[b].immediate;
            }
        }
        Ok(a)
    }

    fn dominates(&self, a: usize, b: usize) -> bool {
        self.blocks[a].dominated.contains(&self.blocks[b].dominated.start)
    }

    /// Finds where blocks are placed.
    fn place(&mut self, merges: &[Option<usize>], predecessors: &[Vec<usize>]) -> Result<()> {
        let count = self.blocks.len();
        // Of several headers the outermost one counts: it is the first.
        let mut headers = vec![None; count];
        for (header, merge) in merges.iter().enumerate() {
            if let Some(merge) = *merge
                && merge > header
                && self.dominates(header, merge)
            {
                headers[merge].get_or_insert(header);
            }
        }
        for (at, predecessors) in predecessors.iter().enumerate().skip(1) {
            let before = || predecessors.iter().filter(move |&&from| from < at);
            let switched = before().any(|&from| self.blocks[from].switches);
            // A declared merge block may lead out of what its dominators are in. Then what it leads to is placed farther out, too.
            let mut parent = None;
            for &from in before().rev().chain(&headers[at]) {
                parent = Some(match parent {
                    None => from,
                    Some(other) => self.common_parent(other, from)?,
                });
            }
            let parent = parent.unwrap_or(0);
            let after_loop = self.blocks[parent].is_loop && !self.is_in_loop(at, parent);
            let leaves_loop = after_loop && self.blocks[parent].successors.len() > 1;
            self.blocks[at].parent = parent;
            if self.blocks[at].edges <= 1 && !switched && headers[at].is_none() && !leaves_loop {
                continue;
            }
            self.blocks[at].is_placed = true;
            if after_loop {
                self.blocks[parent].after_loop.push(at);
            } else {
                self.blocks[parent].placed.push(at);
            }
        }
        Ok(())
    }

    /// The innermost block whose code both blocks are in or after, as they are placed.
    fn common_parent(&mut self, mut a: usize, mut b: usize) -> Result<usize> {
        while a != b {
            self.step()?;
            if a > b {
                a = self.blocks[a].parent;
            } else {
                b = self.blocks[b].parent;
            }
        }
        Ok(a)
    }

    /// Finds the innermost loop around each block and loop. Inner loops come first, so each block is visited once.
    fn loops(&mut self, predecessors: &[Vec<usize>]) -> Result<()> {
        let count = self.blocks.len();
        // The blocks of a loop that was found count as its header.
        let mut outermost: Vec<usize> = (0..count).collect();
        let mut depths = vec![0usize; count];
        for header in (0..count).rev() {
            if !self.blocks[header].is_loop {
                continue;
            }
            let mut stack: Vec<usize> =
                predecessors[header].iter().copied().filter(|&from| from >= header).collect();
            while let Some(at) = stack.pop() {
                let at = find(&mut outermost, at);
                if at == header {
                    continue;
                }
                if !self.dominates(header, at) {
                    return unsupported("flow that is not reducible");
                }
                self.blocks[at].in_loop = Some(header);
                outermost[at] = header;
                depths[header] = depths[header].max(depths[at] + 1);
                stack.extend(&predecessors[at]);
            }
            if depths[header] > MAX_DEPTH {
                return Err(SpirvCause::Limit("flow within flow"));
            }
        }
        Ok(())
    }

    /// Whether a block is part of a loop.
    fn is_in_loop(&self, block: usize, header: usize) -> bool {
        let own = self.blocks[block].is_loop.then_some(block);
        let mut around = own.or(self.blocks[block].in_loop);
        while let Some(other) = around {
            if other == header {
                return true;
            }
            around = self.blocks[other].in_loop;
        }
        false
    }

    /// Gives every block its region, in the way in which code is written.
    fn regions(&mut self) -> Result<()> {
        self.parents.push(0);
        let mut depths = vec![0usize];
        let mut stack = vec![(0usize, 0usize)];
        while let Some((at, outer)) = stack.pop() {
            let mut region = outer;
            // What is placed last is outermost: everything before it is in the `block` that is left to get there.
            for to in self.blocks[at].after_loop.clone().into_iter().rev() {
                stack.push((to, region));
                region = self.region_within(region, &mut depths)?;
            }
            if self.blocks[at].is_loop {
                region = self.region_within(region, &mut depths)?;
            }
            self.blocks[at].region = region;
            for to in self.blocks[at].placed.clone().into_iter().rev() {
                stack.push((to, region));
                region = self.region_within(region, &mut depths)?;
            }
            for to in self.blocks[at].chains.concat() {
                let inner = self.region_within(region, &mut depths)?;
                stack.push((to, inner));
            }
            if !self.blocks[at].chains.is_empty() {
                continue;
            }
            let successors = self.blocks[at].successors.clone();
            for &to in &successors {
                if to > at && !self.blocks[to].is_placed {
                    let inner = match successors.len() {
                        1 => region,
                        _ => self.region_within(region, &mut depths)?,
                    };
                    stack.push((to, inner));
                }
            }
        }
        Ok(())
    }

    fn region_within(&mut self, parent: usize, depths: &mut Vec<usize>) -> Result<usize> {
        let depth = depths[parent] + 1;
        if depth > MAX_DEPTH {
            return Err(SpirvCause::Limit("flow within flow"));
        }
        self.parents.push(parent);
        depths.push(depth);
        Ok(self.parents.len() - 1)
    }

    /// Finds results that are used where they are not visible. A literal that has the number of a result counts as a use of it, which
    /// costs a variable and nothing else.
    fn escapes(&mut self, module: &Module, words: &[u32]) -> Result<()> {
        if self.parents.len() == 1 {
            return Ok(());
        }
        let mut defs: HashMap<u32, usize> = HashMap::new();
        for at in 0..self.blocks.len() {
            for inst in instructions(words, &module.blocks[self.blocks[at].block]) {
                let inst = inst?;
                if has_result(inst.op) {
                    defs.insert(inst.word(2)?, at);
                }
            }
        }
        for at in 0..self.blocks.len() {
            for inst in instructions(words, &module.blocks[self.blocks[at].block]) {
                let inst = inst?;
                let first = if has_result(inst.op) { 3 } else { 1 };
                for (position, operand) in inst.words.iter().enumerate().skip(first) {
                    let Some(&def) = defs.get(operand) else { continue };
                    // The operand of a phi is used at the end of the block that it comes from.
                    let user = if inst.op == Op::Phi {
                        let from = inst.words.get(position + 1).and_then(|label| self.labels.get(label));
                        from.copied().unwrap_or(at)
                    } else {
                        at
                    };
                    if !self.is_within(user, def) {
                        self.escaping.insert(*operand, def);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The instructions of a block.
pub(super) fn instructions<'w>(
    words: &'w [u32],
    def: &BlockDef,
) -> impl Iterator<Item = Result<Instr<'w>>> + use<'w> {
    let (mut at, end) = (def.body.start, def.body.end);
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let inst = instruction(words, at);
        at += inst.as_ref().map_or(u32::MAX - at, |inst| inst.words.len() as u32);
        Some(inst)
    })
}

/// Literals and labels of a switch.
pub(super) fn switch_cases(module: &Module, inst: Instr<'_>) -> Result<Vec<(u64, u32)>> {
    let selector = module.value_type(inst.word(1)?)?;
    let words = if module.types.leaf(selector) == Some(Type::B64) { 2 } else { 1 };
    let cases = inst.rest(3)?.chunks_exact(words + 1);
    Ok(cases
        .map(|case| match *case {
            [low, high, label] => (u64::from(low) | u64::from(high) << 32, label),
            _ => (u64::from(case[0]), case[words]),
        })
        .collect())
}

struct End {
    at: u32,
    successors: Vec<usize>,
    merge: Option<usize>,
    switches: bool,
}

/// The terminator of a block, and the merge instruction before it.
fn end_of(
    module: &Module,
    words: &[u32],
    def: &BlockDef,
    find: &impl Fn(u32) -> Result<usize>,
    at: &mut u32,
) -> Result<End> {
    let mut end = End { at: NONE, successors: Vec::new(), merge: None, switches: false };
    for inst in instructions(words, def) {
        let inst = inst?;
        *at = inst.at;
        match inst.op {
            Op::LoopMerge | Op::SelectionMerge => end.merge = Some(find(inst.word(1)?)?),
            Op::Branch => end.successors.push(find(inst.word(1)?)?),
            Op::BranchConditional => end.successors.extend([find(inst.word(2)?)?, find(inst.word(3)?)?]),
            Op::Switch => {
                end.switches = true;
                end.successors.push(find(inst.word(2)?)?);
                for (_, label) in switch_cases(module, inst)? {
                    end.successors.push(find(label)?);
                }
            }
            _ => {}
        }
        if is_terminator(inst.op) {
            end.at = inst.at;
        }
    }
    if end.at == NONE { invalid("a block has no terminator") } else { Ok(end) }
}
