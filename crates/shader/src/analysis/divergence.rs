//! Divergence analysis: which values may differ between the invocations of a subgroup, or of a workgroup, that execute an instruction
//! together.
//!
//! Takes any shader. A value that is not divergent has the same bits, where they are defined, in all invocations of the scope that are
//! active at its definition and at its uses. Three things make a value divergent: divergent operands, divergent control flow before a
//! merge of values, and loops that invocations leave in different iterations (temporal divergence): a value of the loop's body that is
//! uniform in each iteration is divergent after the loop.
//!
//! Invocations that were separated meet again after the structured instruction that they leave, or at the start of the loop that they
//! continue. The walk tracks the depths at which some invocations are missing; the innermost one decides about a jump. Those that have left a loop do
//! not meet the others at its start.

use crate::ir::{
    Access, Function, Inst, Op, Payload, Region, RegionOwner, Scope, Space, SystemValue, Traits, Value,
    ValueDef,
};
use unwedge_base::entity::SecondaryMap;

/// The most walks. If the last one still changes something, every value is divergent.
const MAX_ROUNDS: usize = 16;

/// Which values differ between invocations.
#[derive(Debug, Default)]
pub struct Divergence {
    values: SecondaryMap<Value, bool>,
    exits: SecondaryMap<Inst, bool>,
    all: bool,
}

impl Divergence {
    /// Whether a value may differ between active invocations.
    pub fn is_divergent(&self, value: Value) -> bool {
        self.all || self.values[value]
    }

    /// Whether invocations may leave a loop in different iterations.
    pub fn has_divergent_exits(&self, inst: Inst) -> bool {
        self.all || self.exits[inst]
    }

    /// Analyses a function within subgroups ([`Scope::Subgroup`]) or within larger scopes.
    pub fn of(func: &Function, scope: Scope) -> Divergence {
        let mut walk = Walk {
            func,
            subgroup: scope <= Scope::Subgroup,
            divergence: Divergence::default(),
            depths: func.region_depths(),
            levels: vec![Level::default()],
            merges: SecondaryMap::default(),
            changed: false,
        };
        for &param in func.params(func.body()) {
            walk.divergence.values[param] = true;
        }
        for _ in 0..MAX_ROUNDS {
            walk.changed = false;
            walk.merges = SecondaryMap::default();
            walk.region(func.body());
            if !walk.changed {
                return walk.divergence;
            }
        }
        Divergence { all: true, ..Divergence::default() }
    }
}

/// What merges into a result or parameter.
#[derive(Debug, Clone, Copy, Default)]
struct Merge {
    first: Option<Value>,
    differs: bool,
    /// Some of the invocations arrive without the others.
    divided: bool,
}

/// A structured instruction around the place of the walk.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Some of the invocations that entered it may be missing here.
    open: bool,
    /// Some of them are at the start of the loop already.
    continued: bool,
}

struct Walk<'a> {
    func: &'a Function,
    subgroup: bool,
    divergence: Divergence,
    depths: SecondaryMap<Region, u32>,
    /// By depth.
    levels: Vec<Level>,
    merges: SecondaryMap<Value, Merge>,
    changed: bool,
}

impl Walk<'_> {
    fn mark(&mut self, value: Value) {
        if !self.divergence.values[value] {
            self.divergence.values[value] = true;
            self.changed = true;
        }
    }

    /// The depth of regions is limited, and so is the recursion.
    fn region(&mut self, region: Region) {
        let func = self.func;
        for inst in func.insts(region) {
            match (func.op(inst), func.payload(inst)) {
                (Op::Block | Op::If | Op::Loop, _) => self.structured(inst),
                (Op::Break | Op::Continue, Payload::Target(target)) => self.jump(inst, target),
                _ => {
                    let differs = func.results(inst).iter().any(|value| !self.divergence.values[*value])
                        && self.differs(inst);
                    if differs {
                        func.results(inst).iter().for_each(|&value| self.mark(value));
                    }
                }
            }
        }
    }

    fn structured(&mut self, inst: Inst) {
        let func = self.func;
        let condition = func.op(inst) == Op::If && self.divergence.values[func.args(inst)[0]];
        self.levels.push(Level { open: condition, continued: false });
        if let (Op::Loop, Payload::Body(body)) = (func.op(inst), func.payload(inst)) {
            // All invocations of the first iteration have these, and none of a later one.
            for (&param, &arg) in func.params(body).iter().zip(func.args(inst)) {
                if self.divergence.values[arg] {
                    self.mark(param);
                }
            }
        }
        for region in func.regions_of(inst).into_iter().flatten() {
            self.region(region);
        }
        self.levels.pop();
    }

    /// The depth of a structured instruction: that of the regions in it.
    fn depth(&self, inst: Inst) -> usize {
        self.depths[self.func.region(inst)] as usize + 1
    }

    fn jump(&mut self, inst: Inst, target: Inst) {
        let func = self.func;
        let to = self.depth(target);
        let innermost = self.levels.iter().rposition(|level| level.open).unwrap_or(0);
        let continues = func.op(inst) == Op::Continue;
        let continued = self.levels.get(to).is_some_and(|level| level.continued);
        let divided = if continues { innermost > to || continued } else { innermost >= to };
        // The loops that the jump leaves, from the inside out.
        let mut region = func.region(inst);
        let mut left = Vec::new();
        while let RegionOwner::Inst(owner) = func.owner(region) {
            let stays = owner == target && continues;
            if func.op(owner) == Op::Loop && !stays {
                if innermost >= self.depth(owner) && !self.divergence.exits[owner] {
                    self.divergence.exits[owner] = true;
                    self.changed = true;
                }
                if self.divergence.exits[owner] {
                    left.push(self.depth(owner));
                }
            }
            if owner == target {
                break;
            }
            region = func.region(owner);
        }
        let outermost = left.last().copied().unwrap_or(usize::MAX);
        let receivers = match (func.op(inst), func.payload(target)) {
            (Op::Continue, Payload::Body(body)) => func.params(body),
            _ => func.results(target),
        };
        for (&receiver, &arg) in receivers.iter().zip(func.args(inst)) {
            self.merge(receiver, arg, divided);
            // Other invocations may have computed it in another iteration.
            if self.definition_depth(arg) >= outermost {
                self.mark(receiver);
            }
        }
        if divided && let Some(level) = self.levels.get_mut(to) {
            level.open = true;
            level.continued |= continues;
        }
    }

    fn definition_depth(&self, value: Value) -> usize {
        match self.func.def(value) {
            ValueDef::Result(inst, _) => self.depths[self.func.region(inst)] as usize,
            ValueDef::Param(region, _) => self.depths[region] as usize,
            ValueDef::Removed => 0,
        }
    }

    fn merge(&mut self, receiver: Value, arg: Value, divided: bool) {
        let merge = &mut self.merges[receiver];
        let first = *merge.first.get_or_insert(arg);
        merge.differs |= first != arg;
        merge.divided |= divided;
        if merge.differs && merge.divided || self.divergence.values[arg] {
            self.mark(receiver);
        }
    }

    /// Whether the result of an instruction without regions may differ.
    fn differs(&self, inst: Inst) -> bool {
        let func = self.func;
        let operands = || func.args(inst).iter().any(|&arg| self.divergence.values[arg]);
        match (func.op(inst), func.payload(inst)) {
            (Op::SysVal, Payload::SysVal(value)) => !self.is_uniform(value),
            (Op::AmdRegister, Payload::Register(input)) => input.registers.vector,
            (Op::AmdLaneBelow | Op::AmdMaskedCount | Op::AmdAtomicAddGds, _) => true,
            // All lanes that take part get the same number, but others do not.
            (Op::AmdAppendShared | Op::AmdConsumeShared, _) => true,
            (Op::Load, Payload::Mem(mem)) => {
                let changes = mem.access.has(Access::VOLATILE)
                    || mem.space == Space::Scratch
                    || !self.subgroup && !mem.access.has(Access::READONLY) && mem.space != Space::Push;
                changes || operands()
            }
            (Op::VoteAny | Op::VoteAll | Op::VoteIEq | Op::VoteFEq | Op::Ballot | Op::ReadFirst, _) => {
                !self.subgroup
            }
            (Op::Broadcast, _) => !self.subgroup || self.divergence.values[func.args(inst)[1]],
            (Op::Reduce, Payload::Reduce(_, 0)) => !self.subgroup,
            (op, _) if op.is_subgroup_move() || op.is_derivative() => {
                func.args(inst).first().is_none_or(|&arg| self.divergence.values[arg])
            }
            (Op::ImageSample | Op::ImageGather | Op::ImageFetch | Op::ImageQueryLod, _) => {
                let traits = func.traits(inst);
                traits.has(Traits::READS) || operands()
            }
            (Op::ImageSize | Op::ImageLevels | Op::ImageSamples | Op::BufferSize | Op::Descriptor, _) => {
                operands()
            }
            (op, _) if op.has(Traits::PURE) => operands(),
            // Atomics, variables, slots, other reads, calls, scans, elections.
            _ => true,
        }
    }

    fn is_uniform(&self, value: SystemValue) -> bool {
        use SystemValue::*;
        match value {
            NumWorkgroups | WorkgroupId | WorkgroupSize | NumSubgroups | SubgroupSize | BaseVertex
            | BaseInstance | DrawIndex | DeviceIndex | PatchVertices | SamplePositions => true,
            SubgroupId => self.subgroup,
            _ => false,
        }
    }
}
