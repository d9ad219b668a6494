//! Flow of functions: blocks, edges and phis become regions, their parameters and results; calls are inlined.

use super::super::error::{Result, SpirvCause, invalid, unsupported};
use super::super::flow::{self, Plan};
use super::super::module::{IdDef, Instr, instruction};
use super::{Frame, Translator, ValKind};
use crate::ir::{Inst, MAX_DEPTH, Op as IrOp, Payload, Region, RegionOwner, Type, Value};
use spirv::Op;
use std::collections::HashMap;
use std::rc::Rc;
use unwedge_base::entity::Entity;

/// A block that is written after those before it.
pub(super) struct Later {
    block: usize,
    incoming: Incoming,
    region: Region,
}

/// The values of the phis of a block.
enum Incoming {
    Values(Vec<Value>),
    /// Results of the instruction that a `break` leaves to get to the block.
    Results(Inst),
}

impl<'a> Translator<'a> {
    /// The phis of a block.
    fn phis(&self, plan: &Plan, block: usize) -> Result<Vec<Instr<'a>>> {
        let all = flow::instructions(self.words, &self.module.blocks[plan.blocks[block].block]);
        let lines = all.skip_while(|inst| matches!(inst, Ok(i) if matches!(i.op, Op::Line | Op::NoLine)));
        lines.take_while(|inst| !matches!(inst, Ok(i) if i.op != Op::Phi)).collect()
    }
}

impl Translator<'_> {
    pub(super) fn plan(&mut self, function: usize) -> Result<Rc<Plan>> {
        if let Some(plan) = self.plans.get(&function) {
            return Ok(plan.clone());
        }
        let def =
            self.module.functions.get(function).ok_or(SpirvCause::Invalid("a function does not exist"))?;
        self.at = def.at;
        let plan = Rc::new(Plan::new(self.module, self.words, def, &mut self.at)?);
        self.plans.insert(function, plan.clone());
        Ok(plan)
    }

    pub(super) fn push_frame(&mut self, function: usize, plan: Rc<Plan>, returns: Option<Inst>) {
        let count = plan.blocks.len();
        self.frames.push(Frame {
            function,
            plan,
            block: 0,
            breaks: vec![None; count],
            loops: vec![None; count],
            returns,
            stamp: self.stamps,
            escaped: HashMap::new(),
        });
        self.stamps += 1;
    }

    pub(super) fn set_block(&mut self, block: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.block = block;
        }
    }

    pub(super) fn set_break(&mut self, block: usize, inst: Inst) {
        if let Some(frame) = self.frames.last_mut() {
            frame.breaks[block] = Some(inst);
        }
    }

    pub(super) fn phi_types(&self, plan: &Plan, block: usize) -> Result<Vec<Type>> {
        let mut types = Vec::new();
        for phi in self.phis(plan, block)? {
            let ty = self.result_type(phi)?;
            self.module.types.leaf_types(ty, &mut types)?;
        }
        Ok(types)
    }

    /// Leaves of the values that the phis of a block have for the edge from another one.
    fn phi_args(&mut self, plan: &Plan, block: usize, from: usize) -> Result<Vec<Value>> {
        let label = self.module.blocks[plan.blocks[from].block].label;
        let mut args = Vec::new();
        for phi in self.phis(plan, block)? {
            let (words, ty) = (phi.rest(3)?, self.result_type(phi)?);
            let id = words.chunks_exact(2).find(|pair| pair[1] == label).map(|pair| pair[0]);
            let leaves = self.leaves(id.ok_or(SpirvCause::Invalid("a phi has no value for an edge"))?)?;
            self.check_leaves(ty, &leaves, Op::Phi)?;
            args.extend(leaves);
        }
        Ok(args)
    }

    fn bind_phis(&mut self, plan: &Plan, block: usize, values: &[Value]) -> Result<()> {
        let mut start = 0;
        for phi in self.phis(plan, block)? {
            self.at = phi.at;
            let (id, ty) = (phi.word(2)?, self.result_type(phi)?);
            let end = start + self.module.types.leaves(ty) as usize;
            // The first block of a function has no predecessors, so nothing gives its phis values.
            let values = values.get(start..end);
            let values = values.ok_or(SpirvCause::Invalid("a phi is in the first block of a function"))?;
            let val = self.make(ValKind::Leaves, values);
            self.set(id, val)?;
            start = end;
        }
        Ok(())
    }

    /// A region within the one that is written.
    pub(super) fn add_region(&mut self) -> Result<Region> {
        let depth = self.region_depths.get(self.region.index()).copied().unwrap_or(0) + 1;
        if depth as usize >= MAX_DEPTH {
            return Err(SpirvCause::Limit("flow within flow"));
        }
        let region = self.func.add_region();
        self.region_depths.resize(region.index() + 1, 0);
        self.region_depths[region.index()] = depth;
        Ok(region)
    }

    fn open_block(&mut self, results: &[Type]) -> Result<(Inst, Region)> {
        let body = self.add_region()?;
        Ok((self.append(IrOp::Block, Payload::Body(body), &[], results), body))
    }

    /// Writes a block and everything that it dominates, up to a terminator of the region.
    pub(super) fn tree(&mut self, at: usize, incoming: Vec<Value>) -> Result<()> {
        self.depth += 1;
        // A block may open two regions, and calls nest as well.
        if self.depth > MAX_DEPTH / 2 {
            return Err(SpirvCause::Limit("flow within flow"));
        }
        let plan = self.frame()?.plan.clone();
        let mut later = vec![Later { block: at, incoming: Incoming::Values(incoming), region: self.region }];
        while let Some(Later { block, incoming, region }) = later.pop() {
            self.region = region;
            let incoming = match incoming {
                Incoming::Values(values) => values,
                Incoming::Results(inst) => self.func.results(inst).to_vec(),
            };
            self.write_block(&plan, block, incoming, &mut later)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Writes a block.
    fn write_block(
        &mut self,
        plan: &Plan,
        at: usize,
        mut incoming: Vec<Value>,
        later: &mut Vec<Later>,
    ) -> Result<()> {
        let block = &plan.blocks[at];
        if block.is_loop {
            // Leaving the loop itself leads to the first of the blocks after it.
            for &to in block.after_loop.iter().skip(1).rev() {
                self.open(plan, to, later)?;
            }
            let first = block.after_loop.first();
            let results = first.map_or(Ok(Vec::new()), |&to| self.phi_types(plan, to))?;
            let body = self.add_region()?;
            for &value in &incoming {
                let ty = self.ty(value);
                self.func.add_param(body, ty);
            }
            let inst = self.append(IrOp::Loop, Payload::Body(body), &incoming, &results);
            if let Some(frame) = self.frames.last_mut() {
                frame.loops[at] = Some(inst);
            }
            match first {
                Some(&to) => {
                    self.set_break(to, inst);
                    later.push(Later { block: to, incoming: Incoming::Results(inst), region: self.region });
                }
                None => {
                    self.append(IrOp::Unreachable, Payload::None, &[], &[]);
                }
            }
            incoming = self.func.params(body).to_vec();
            self.region = body;
        }
        self.set_block(at);
        self.bind_phis(plan, at, &incoming)?;
        self.code(plan, at)?;
        self.end(plan, at, later)
    }

    /// Opens the `block` that a `break` leaves to get to a block.
    fn open(&mut self, plan: &Plan, to: usize, later: &mut Vec<Later>) -> Result<()> {
        let results = self.phi_types(plan, to)?;
        let outer = self.region;
        let (inst, body) = self.open_block(&results)?;
        self.set_break(to, inst);
        later.push(Later { block: to, incoming: Incoming::Results(inst), region: outer });
        self.region = body;
        Ok(())
    }

    /// Instructions up to the terminator.
    fn code(&mut self, plan: &Plan, at: usize) -> Result<()> {
        // `OpLine` applies up to the end of its block.
        self.no_line();
        for inst in flow::instructions(self.words, &self.module.blocks[plan.blocks[at].block]) {
            let inst = inst?;
            self.at = inst.at;
            if inst.at < plan.blocks[at].terminator && inst.op != Op::Phi {
                self.instruction(inst)?;
            }
        }
        Ok(())
    }

    /// The terminator, within the blocks that are left to get to the placed ones.
    fn end(&mut self, plan: &Plan, at: usize, later: &mut Vec<Later>) -> Result<()> {
        let block = &plan.blocks[at];
        let inst = instruction(self.words, block.terminator)?;
        let branches = inst.op == Op::BranchConditional;
        // Leaving an `if` leads to the first of them.
        for &to in block.placed.iter().skip(usize::from(branches)).rev() {
            self.open(plan, to, later)?;
        }
        self.at = inst.at;
        match inst.op {
            Op::Branch => {
                let to = block.successors[0];
                if to > at && !plan.blocks[to].is_placed {
                    // It goes on in the same region.
                    let incoming = Incoming::Values(self.incoming(plan, at, to)?);
                    later.push(Later { block: to, incoming, region: self.region });
                } else {
                    self.edge(plan, at, to)?;
                }
            }
            Op::BranchConditional => {
                let condition = self.operand(inst, 1)?;
                let merge = block.placed.first().copied();
                let results = merge.map_or(Ok(Vec::new()), |to| self.phi_types(plan, to))?;
                let (then, other) = (self.add_region()?, self.add_region()?);
                if self.ty(condition) != Type::BOOL {
                    return Err(SpirvCause::Types(inst.op));
                }
                let branch = self.append(IrOp::If, Payload::Arms(then, other), &[condition], &results);
                let outer = self.region;
                match merge {
                    Some(to) => {
                        self.set_break(to, branch);
                        later.push(Later { block: to, incoming: Incoming::Results(branch), region: outer });
                    }
                    None => {
                        self.append(IrOp::Unreachable, Payload::None, &[], &[]);
                    }
                }
                self.region = then;
                self.edge(plan, at, block.successors[0])?;
                self.region = other;
                self.at = inst.at;
                self.edge(plan, at, block.successors[1])?;
                self.region = outer;
            }
            Op::Switch => self.switch(plan, at, inst)?,
            Op::Return | Op::ReturnValue => self.return_(inst)?,
            Op::Kill | Op::TerminateInvocation => {
                self.append(IrOp::Terminate, Payload::None, &[], &[]);
            }
            Op::Unreachable => {
                self.append(IrOp::Unreachable, Payload::None, &[], &[]);
            }
            op => return unsupported(format!("Op{op:?}")),
        }
        Ok(())
    }

    fn return_(&mut self, inst: Instr<'_>) -> Result<()> {
        let values = if inst.op == Op::ReturnValue { self.leaves(inst.word(1)?)? } else { Vec::new() };
        let frame = self.frame()?;
        let (returns, result) = (frame.returns, self.module.functions[frame.function].result);
        self.check_leaves(result, &values, inst.op)?;
        match returns {
            Some(target) => self.append(IrOp::Break, Payload::Target(target), &values, &[]),
            None if values.is_empty() => self.append(IrOp::Return, Payload::None, &[], &[]),
            None => return invalid("the entry point returns a value"),
        };
        Ok(())
    }

    fn switch(&mut self, plan: &Plan, at: usize, inst: Instr<'_>) -> Result<()> {
        let selector = self.operand(inst, 1)?;
        if self.ty(selector).lanes != 1 {
            return Err(SpirvCause::Types(inst.op));
        }
        let block = &plan.blocks[at];
        if !block.chains.is_empty() {
            return self.many_cases(plan, at, inst, selector);
        }
        let cases = flow::switch_cases(self.module, inst)?;
        let default = block.successors[0];
        // One test for each target, in the order of their first literal.
        let mut targets: Vec<(usize, Vec<u64>)> = Vec::new();
        let mut position: HashMap<usize, usize> = HashMap::new();
        for ((literal, _), &to) in cases.iter().zip(&block.successors[1..]) {
            if to == default {
                continue;
            }
            let slot = *position.entry(to).or_insert(targets.len());
            if slot == targets.len() {
                targets.push((to, Vec::new()));
            }
            targets[slot].1.push(*literal);
        }
        let base = self.ty(selector).base;
        for (to, literals) in targets {
            let mut condition = None;
            for literal in literals {
                let literal = self.constant(base, literal);
                let equal = self.alu(IrOp::IEq, &[selector, literal])?;
                condition = Some(match condition {
                    None => equal,
                    Some(other) => self.alu(IrOp::IOr, &[other, equal])?,
                });
            }
            let Some(condition) = condition else { continue };
            let (then, other) = (self.add_region()?, self.add_region()?);
            let test = self.append(IrOp::If, Payload::Arms(then, other), &[condition], &[]);
            let outer = self.region;
            self.region = other;
            self.append(IrOp::Break, Payload::Target(test), &[], &[]);
            self.region = then;
            self.edge(plan, at, to)?;
            self.region = outer;
            self.set_block(at);
        }
        self.edge(plan, at, default)
    }

    /// Composites are copied leaf by leaf, and a module may copy large ones often.
    pub(super) fn check_moved(&self) -> Result<()> {
        let moved = self.moved + self.scratch.pool.len();
        if moved > self.options.max_insts.saturating_mul(8) {
            return Err(SpirvCause::Limit("copies of composites"));
        }
        Ok(())
    }

    /// Whether the region that is written is within a structured instruction. It may not be if declared merge blocks contradict the flow.
    fn encloses(&self, target: Inst) -> bool {
        let mut region = self.region;
        while let RegionOwner::Inst(owner) = self.func.owner(region) {
            if owner == target {
                return true;
            }
            region = self.func.region(owner);
        }
        false
    }

    /// The values that a block passes to the phis of another one.
    pub(super) fn incoming(&mut self, plan: &Plan, from: usize, to: usize) -> Result<Vec<Value>> {
        self.set_block(from);
        let args = self.phi_args(plan, to, from)?;
        self.moved += args.len();
        self.check_moved()?;
        Ok(args)
    }

    /// Writes the edge from a block to another one.
    pub(super) fn edge(&mut self, plan: &Plan, from: usize, to: usize) -> Result<()> {
        let args = self.incoming(plan, from, to)?;
        let not_structured = "flow that no regions express";
        if to <= from {
            let Some(target) = self.frame()?.loops[to].filter(|&target| self.encloses(target)) else {
                return unsupported(not_structured);
            };
            self.append(IrOp::Continue, Payload::Target(target), &args, &[]);
            return Ok(());
        }
        if !plan.blocks[to].is_placed {
            return self.tree(to, args);
        }
        let Some(target) = self.frame()?.breaks[to].filter(|&target| self.encloses(target)) else {
            return unsupported(not_structured);
        };
        self.append(IrOp::Break, Payload::Target(target), &args, &[]);
        Ok(())
    }

    pub(super) fn call(&mut self, inst: Instr<'_>) -> Result<()> {
        let callee = inst.word(3)?;
        let IdDef::Function(function) = self.module.id(callee)? else {
            return Err(SpirvCause::Wrong { id: callee, wanted: "a function" });
        };
        let function = function as usize;
        if self.frames.iter().any(|frame| frame.function == function) {
            return invalid("a function calls itself");
        }
        let module = self.module;
        let Some(def) = module.functions.get(function) else { return invalid("a function does not exist") };
        if def.params.len() != inst.rest(4)?.len() {
            return invalid("a call has the wrong number of operands");
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH / 2 {
            return Err(SpirvCause::Limit("calls within calls"));
        }
        let mut args = Vec::new();
        for (&id, &(_, ty)) in inst.rest(4)?.iter().zip(&def.params) {
            let val = self.val(id)?;
            if let ValKind::Leaves = val.kind {
                let leaves = self.values(&val).to_vec();
                self.check_leaves(ty, &leaves, inst.op)?;
            }
            args.push(val);
        }
        let mut results = Vec::new();
        module.types.leaf_types(def.result, &mut results)?;
        let plan = self.plan(function)?;
        let outer = self.region;
        let (target, body) = self.open_block(&results)?;
        let (loc, at) = (self.loc, self.at);
        self.push_frame(function, plan, Some(target));
        self.region = body;
        for (val, &(id, _)) in args.into_iter().zip(&def.params) {
            self.set(id, val)?;
        }
        self.tree(0, Vec::new())?;
        self.frames.pop();
        self.region = outer;
        (self.loc, self.at) = (loc, at);
        self.depth -= 1;
        let leaves = self.func.results(target).to_vec();
        if leaves.is_empty() { Ok(()) } else { self.set_leaves(inst, &leaves) }
    }
}
