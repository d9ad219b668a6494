//! Blocks of regions: the logical and the linear flow.
//!
//! Lanes follow jumps to the merge of the construct that they leave, or to the latch of the loop that they continue. The wave follows if no lane is
//! missing for the target (see [`super::shape`]). Otherwise it goes to the next place where lanes of the innermost construct with missing lanes wait: from the first arm of a
//! divergent `if` to the block between the arms, from elsewhere to the merge, in a loop whose lanes wait to start it again to the latch.

use super::{Selected, Selector};
use crate::compile::CompileError;
use crate::ir::{
    Block, Construct, ConstructData, ConstructKind, Definition, Inst as ProgramInst, Jump, NewInst, Operand,
    Pseudo, RegClass, Role,
};
use crate::stages::HardwareStage;
use unwedge_isa::amdgcn::Opcode;
use unwedge_shader::ir::{Base, Inst, Op, Payload, Region, Shader, Value};

/// A construct that is being selected.
pub(super) struct Frame {
    inst: Option<Inst>,
    construct: Construct,
    divergent: bool,
    /// Lanes in the first arm of a divergent `if`: others wait between the arms.
    inverts: bool,
    /// Lanes may wait at the latch.
    waits: bool,
    /// What arrives at the merge: lanes, with the values that they bring, and the wave.
    merge: Arrivals,
    latch: Arrivals,
    /// Blocks from which the wave reaches the block between the arms.
    invert: Vec<Block>,
}

/// What arrives at a block that is not made yet.
#[derive(Default)]
struct Arrivals {
    logical: Vec<(Block, Vec<Operand>)>,
    linear: Vec<Block>,
}

/// A phi of a loop's header, to be completed by the latch.
struct HeaderPhi {
    inst: ProgramInst,
    init: Operand,
}

impl<'a> Selector<'a> {
    /// All shaders of the program.
    pub(super) fn parts(&mut self, parts: &[&'a Shader]) -> Selected<()> {
        let root_divergent = self.shape.root_divergent;
        self.open(None, ConstructKind::Block, root_divergent, false);
        match self.interface.hardware {
            Some(hardware) if hardware.is_merged() && self.interface.has_parts() => {
                let culls = self.interface.culls;
                if hardware == HardwareStage::Ngg {
                    self.start_group(parts.len() > 1)?;
                }
                for (number, part) in parts.iter().enumerate() {
                    let (lanes, given) = match number {
                        0 => (self.part_lanes(), Vec::new()),
                        _ if culls => {
                            let culled = self.cull(part)?;
                            self.next_part(part)?;
                            culled
                        }
                        _ => {
                            self.local_barrier();
                            self.next_part(part)?;
                            (self.part_lanes(), Vec::new())
                        }
                    };
                    self.outer = 1;
                    self.only_lanes(lanes, |selector| {
                        if culls && number > 0 {
                            selector.take_vertex(&given);
                        }
                        selector.take_primitive_number();
                        selector.region(selector.func.body())
                    })?;
                    self.outer = 0;
                }
                match hardware {
                    HardwareStage::Ngg if parts.len() > 1 && !culls => self.export_emitted()?,
                    HardwareStage::Ngg if !culls => self.capture_group()?,
                    _ => {}
                }
                self.fall_out(0);
            }
            Some(HardwareStage::Ps) => {
                self.start_pixels();
                self.region(self.func.body())?;
            }
            _ if self.interface.other_streams => {
                let streams = (1..).zip(&self.interface.streams);
                let captured = streams.filter(|(_, slots)| !slots.vertex.is_empty());
                let captured: Vec<u8> = captured.map(|(stream, _)| stream).collect();
                captured.into_iter().try_for_each(|stream| self.capture_stream(stream))?;
                let lanes = self.first_stream();
                self.outer = 1;
                self.only_lanes(lanes, |selector| selector.region(selector.func.body()))?;
                self.outer = 0;
                self.fall_out(0);
            }
            _ => self.region(self.func.body())?,
        }
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        if frame.merge.linear.is_empty() {
            return Ok(());
        }
        let block = self.arrive(&frame.merge, Role::Plain, None);
        self.program.constructs[frame.construct].merge = Some(block);
        self.program.blocks[block].top_level = !frame.divergent;
        self.enter(block, !frame.merge.logical.is_empty());
        let geometry = matches!(self.interface.hardware, Some(HardwareStage::Gs | HardwareStage::EsGs));
        if geometry && !self.interface.prolog && !self.interface.explicit {
            self.end_geometry_wave();
        }
        self.logical_end();
        match self.left.take() {
            Some(left) => self.pseudo(Pseudo::EndWithRegs, &[], &left),
            None => self.add(&NewInst::hw(Opcode::s_endpgm, &[], &[])),
        }
        self.block = None;
        Ok(())
    }
}

impl Selector<'_> {
    fn open(&mut self, inst: Option<Inst>, kind: ConstructKind, divergent: bool, waits: bool) -> Construct {
        let parent = self.frames.last().map(|frame| frame.construct);
        let construct =
            self.program.constructs.push(ConstructData { kind, parent, divergent, merge: None, head: None });
        self.frames.push(Frame {
            inst,
            construct,
            divergent,
            inverts: false,
            waits,
            merge: Arrivals::default(),
            latch: Arrivals::default(),
            invert: Vec::new(),
        });
        construct
    }

    /// Regions nest at most [`unwedge_shader::ir::MAX_LOWERED_DEPTH`] deep, and so does this.
    fn region(&mut self, region: Region) -> Selected<()> {
        let func = self.func;
        for inst in func.insts(region) {
            if self.block.is_none() {
                return Ok(());
            }
            self.set_loc(inst);
            match (func.op(inst), func.payload(inst)) {
                (Op::If, Payload::Arms(then, other)) => self.select_if(inst, then, other)?,
                (Op::Loop, Payload::Body(body)) if self.shape.construct(inst).continues => {
                    self.select_loop(inst, body)?;
                }
                (Op::Loop | Op::Block, Payload::Body(body)) => self.select_block(inst, body)?,
                (Op::Break | Op::Continue, Payload::Target(target)) => self.jump(inst, Some(target))?,
                (Op::Return | Op::Terminate, _) => {
                    self.export_outputs()?;
                    self.jump(inst, None)?;
                }
                (Op::Unreachable, _) => self.unreachable(),
                (Op::Call, _) => return Err(CompileError::Functions(self.shader.functions().len())),
                _ => self.inst(inst)?,
            }
        }
        Ok(())
    }

    /// The program is undefined if a lane comes here.
    fn unreachable(&mut self) {
        self.logical_end();
        self.add(&NewInst::hw(Opcode::s_endpgm, &[], &[]));
        self.block = None;
    }

    /// No lane comes here; the wave goes on where lanes wait.
    fn pass_on(&mut self, depth: usize) {
        if let Some(block) = self.block {
            self.end(Pseudo::Branch, &[]);
            self.wait_at(depth, block);
        }
    }

    /// Ends a block with a branch; nothing is added to it any more.
    fn end(&mut self, branch: Pseudo, operands: &[Operand]) {
        self.logical_end();
        self.pseudo(branch, &[], operands);
        self.block = None;
    }

    fn logical_end(&mut self) {
        if self.logical {
            self.pseudo(Pseudo::LogicalEnd, &[], &[]);
        }
    }

    /// Sets the block that instructions are added to from here on.
    fn enter(&mut self, block: Block, logical: bool) {
        self.block = Some(block);
        self.logical = logical;
        if logical {
            self.pseudo(Pseudo::LogicalStart, &[], &[]);
        }
    }

    fn new_block(&mut self, role: Role, construct: Option<Construct>) -> Block {
        let block = self.program.add_block();
        let mut loops = 0;
        let (mut divergent, mut uniform) = (0u16, 0u16);
        for frame in &self.frames {
            match self.program.constructs[frame.construct].kind {
                ConstructKind::Loop => loops += 1,
                ConstructKind::If if frame.divergent => divergent += 1,
                ConstructKind::If => uniform += 1,
                ConstructKind::Block => {}
            }
        }
        // The wave is between the arms.
        divergent = u16::saturating_sub(divergent, u16::from(role == Role::Invert));
        let top_level = self.frames.iter().all(|frame| !frame.divergent);
        let data = &mut self.program.blocks[block];
        (data.role, data.construct, data.top_level) = (role, construct, top_level);
        (data.loop_depth, data.divergent_depth, data.uniform_depth) = (loops, divergent, uniform);
        block
    }

    /// The wave goes from a block to the place in a construct where lanes wait.
    fn wait_at(&mut self, depth: usize, block: Block) {
        let Some(frame) = self.frames.get_mut(depth) else { return };
        if frame.inverts {
            frame.invert.push(block);
        } else if frame.waits {
            frame.latch.linear.push(block);
        } else {
            frame.merge.linear.push(block);
        }
    }

    fn jump(&mut self, inst: Inst, target: Option<Inst>) -> Selected<()> {
        let func = self.func;
        let Some(depth) = self.frames.iter().rposition(|frame| frame.inst == target) else {
            return Err(self.unsupported(inst, Some("to an instruction that is not around it")));
        };
        let continues = func.op(inst) == Op::Continue;
        let receivers: Vec<Value> = match target.map(|target| (target, func.payload(target))) {
            Some((_, Payload::Body(body))) if continues => func.params(body).to_vec(),
            Some((target, _)) => func.results(target).to_vec(),
            None => Vec::new(),
        };
        let args = func.args(inst).to_vec();
        let mut values = Vec::new();
        for (receiver, arg) in receivers.into_iter().zip(args) {
            if func.ty(receiver).base == Base::B1 && self.banks.is_vector(receiver) {
                let mask = self.mask_of(arg);
                values.push(mask);
            } else {
                values.extend_from_slice(self.value(arg));
            }
        }
        let stop = self.shape.stop(inst).map(|depth| depth as usize + self.outer);
        // Lanes without a vertex wait for those that have one.
        let stop = stop.or_else(|| self.frames[depth].inverts.then_some(depth));
        let Some(mut block) = self.block else { return Ok(()) };
        if stop.is_some() && self.program.blocks[block].role != Role::Plain {
            let own = self.new_block(Role::Plain, None);
            self.program.link(block, own);
            self.end(Pseudo::Branch, &[]);
            self.enter(own, true);
            block = own;
        }
        self.end(Pseudo::Branch, &[]);
        let construct = self.frames[depth].construct;
        let innermost = self.frames.last().map(|frame| frame.construct);
        match stop {
            Some(stop) => {
                let data = &mut self.program.blocks[block];
                data.jump = if continues { Jump::Continue(construct) } else { Jump::Break(construct) };
                data.construct = innermost;
                self.wait_at(stop, block);
            }
            None if continues => self.frames[depth].latch.linear.push(block),
            None => self.frames[depth].merge.linear.push(block),
        }
        let frame = &mut self.frames[depth];
        let arrivals = if continues { &mut frame.latch } else { &mut frame.merge };
        arrivals.logical.push((block, values));
        Ok(())
    }

    /// Makes the block where lanes and the wave arrive.
    fn arrive(&mut self, arrivals: &Arrivals, role: Role, construct: Option<Construct>) -> Block {
        // Instructions that merge paths have no source position.
        self.loc = None;
        let block = self.new_block(role, construct);
        for &from in &arrivals.linear {
            self.program.link_linear(from, block);
        }
        for (from, _) in &arrivals.logical {
            self.program.link_logical(*from, block);
        }
        block
    }

    fn select_block(&mut self, inst: Inst, body: Region) -> Selected<()> {
        let func = self.func;
        let divergent = self.shape.construct(inst).divergent;
        for (&param, &arg) in func.params(body).iter().zip(func.args(inst)) {
            let lanes = self.value(arg).to_vec();
            let lanes = self.moved(param, arg, lanes);
            self.define(param, &lanes);
        }
        let construct = self.open(Some(inst), ConstructKind::Block, divergent, false);
        if divergent && let Some(before) = self.block {
            let head = self.new_block(Role::Plain, None);
            self.program.link(before, head);
            self.end(Pseudo::Branch, &[]);
            self.program.constructs[construct].head = Some(head);
            self.enter(head, true);
        }
        self.region(body)?;
        self.merge(inst)
    }

    /// Lanes of a value for a receiver that may be a lane mask.
    fn moved(&mut self, receiver: Value, arg: Value, lanes: Vec<Operand>) -> Vec<Operand> {
        if self.func.ty(receiver).base == Base::B1 && self.banks.is_vector(receiver) {
            vec![self.mask_of(arg)]
        } else {
            lanes
        }
    }

    /// How many constructs of the shader are around what is selected.
    pub(super) fn frames_around(&self) -> usize {
        self.frames.len().saturating_sub(1 + self.outer)
    }

    /// All lanes of a block go on after a construct.
    fn fall_out(&mut self, depth: usize) {
        let Some(block) = self.block else { return };
        self.end(Pseudo::Branch, &[]);
        let frame = &mut self.frames[depth];
        frame.merge.logical.push((block, Vec::new()));
        let (parts, construct) = (frame.divergent && frame.inst.is_none() && depth > 0, frame.construct);
        if parts {
            let data = &mut self.program.blocks[block];
            (data.jump, data.construct) = (Jump::Break(construct), Some(construct));
        }
        self.wait_at(depth, block);
    }

    /// Code that the wave executes only if a bit is set.
    pub(super) fn only_if(&mut self, bit: Operand, then: impl FnOnce(&mut Self)) {
        let Some(before) = self.block else { return };
        self.end(Pseudo::BranchZ, &[bit]);
        let first = self.new_block(Role::Plain, None);
        self.program.link(before, first);
        self.enter(first, true);
        then(self);
        let Some(last) = self.block else { return };
        self.end(Pseudo::Branch, &[]);
        let after = self.new_block(Role::Plain, None);
        self.program.link(last, after);
        self.program.link(before, after);
        self.enter(after, true);
    }

    /// A loop of the whole wave: repeats `body` until the bit that it returns is set. `again` runs between two iterations.
    pub(super) fn repeat_until(
        &mut self,
        body: impl FnOnce(&mut Self) -> Operand,
        again: impl FnOnce(&mut Self),
    ) {
        let Some(before) = self.block else { return };
        let preheader = self.new_block(Role::Preheader, None);
        self.program.link(before, preheader);
        self.end(Pseudo::Branch, &[]);
        self.enter(preheader, true);
        self.end(Pseudo::Branch, &[]);
        let construct = self.open(None, ConstructKind::Loop, false, false);
        self.program.blocks[preheader].construct = Some(construct);
        let header = self.new_block(Role::LoopHeader, Some(construct));
        self.program.link(preheader, header);
        self.program.constructs[construct].head = Some(header);
        self.enter(header, true);
        let done = body(self);
        let Some(last) = self.block else { return };
        self.end(Pseudo::BranchZ, &[done]);
        let leaves = self.new_block(Role::Plain, None);
        self.program.link(last, leaves);
        self.enter(leaves, true);
        self.end(Pseudo::Branch, &[]);
        let repeats = self.new_block(Role::Plain, None);
        self.program.link(last, repeats);
        self.enter(repeats, true);
        again(self);
        let Some(repeats) = self.block else { return };
        self.end(Pseudo::Branch, &[]);
        let latch = self.new_block(Role::Plain, Some(construct));
        self.program.link(repeats, latch);
        self.enter(latch, true);
        self.end(Pseudo::Branch, &[]);
        self.latches.push((latch, header, true));
        self.frames.pop();
        let merge = self.new_block(Role::Plain, None);
        self.program.link(leaves, merge);
        self.program.constructs[construct].merge = Some(merge);
        self.enter(merge, true);
        self.close_loop(header);
    }

    /// Code that only some lanes execute. They meet the others after it.
    pub(super) fn only_lanes(
        &mut self,
        lanes: Operand,
        then: impl FnOnce(&mut Self) -> Selected<()>,
    ) -> Selected<()> {
        self.parted(lanes, None, |selector| then(selector).map(|()| None)).map(|_| ())
    }

    /// Marks the arm that begins here as nearly always taken by a wave.
    pub(super) fn nearly_always(&mut self) {
        let Some(block) = self.block else { return };
        for before in self.program.blocks[block].linear_preds.clone() {
            self.program.blocks[before].taken = true;
        }
    }

    /// A value in a vector register that some lanes compute, and that is a constant in the others.
    pub(super) fn lanes_value(
        &mut self,
        lanes: Operand,
        other: Operand,
        then: impl FnOnce(&mut Self) -> Selected<Operand>,
    ) -> Selected<Operand> {
        let value = self.parted(lanes, Some(other), |selector| then(selector).map(Some))?;
        Ok(value.unwrap_or(Operand::undef(RegClass::V1)))
    }

    fn parted(
        &mut self,
        lanes: Operand,
        other: Option<Operand>,
        then: impl FnOnce(&mut Self) -> Selected<Option<Operand>>,
    ) -> Selected<Option<Operand>> {
        let Some(mut before) = self.block else { return Ok(None) };
        let loc = self.loc;
        if self.program.blocks[before].role != Role::Plain {
            let own = self.new_block(Role::Plain, None);
            self.program.link(before, own);
            self.end(Pseudo::Branch, &[]);
            self.enter(own, true);
            before = own;
        }
        let construct = self.open(None, ConstructKind::If, true, false);
        self.end(Pseudo::BranchZ, &[lanes]);
        let first = self.new_block(Role::Plain, None);
        self.program.link(before, first);
        self.program.constructs[construct].head = Some(first);
        let depth = self.frames.len() - 1;
        let data = &mut self.program.blocks[before];
        (data.role, data.construct) = (Role::Branch, Some(construct));
        self.frames[depth].inverts = true;
        self.frames[depth].invert.push(before);
        self.enter(first, true);
        let value = then(self)?;
        self.fall_out(depth);
        let second = self.invert(depth, construct, before);
        self.enter(second, true);
        self.fall_out(depth);
        let Some(frame) = self.frames.pop() else { return Ok(None) };
        let block = self.arrive(&frame.merge, Role::Merge, Some(construct));
        self.program.constructs[construct].merge = Some(block);
        self.block = Some(block);
        let value =
            value.zip(other).map(|(value, other)| self.phi(RegClass::V1, false, &[value, other], true));
        self.enter(block, true);
        self.loc = loc;
        Ok(value)
    }

    /// The block between the arms of a divergent `if`, and the first one of the second arm.
    fn invert(&mut self, depth: usize, construct: Construct, before: Block) -> Block {
        self.loc = None;
        let waiting = std::mem::take(&mut self.frames[depth].invert);
        self.frames[depth].inverts = false;
        let invert = self.new_block(Role::Invert, Some(construct));
        for from in waiting {
            self.program.link_linear(from, invert);
        }
        self.enter(invert, false);
        let exec = self.exec();
        self.end(Pseudo::BranchZ, &[exec]);
        let second = self.new_block(Role::Plain, None);
        self.program.link_linear(invert, second);
        self.program.link_logical(before, second);
        self.frames[depth].merge.linear.push(invert);
        second
    }

    fn select_if(&mut self, inst: Inst, then: Region, other: Region) -> Selected<()> {
        let condition = self.func.args(inst)[0];
        let divergent = self.shape.construct(inst).divergent;
        let parts = self.divergence.is_divergent(condition);
        let operand = if parts { self.mask_of(condition) } else { self.bit_of(condition) };
        let Some(mut before) = self.block else { return Ok(()) };
        if parts && self.program.blocks[before].role != Role::Plain {
            let own = self.new_block(Role::Plain, None);
            self.program.link(before, own);
            self.end(Pseudo::Branch, &[]);
            self.enter(own, true);
            before = own;
        }
        let construct = self.open(Some(inst), ConstructKind::If, divergent, false);
        self.end(Pseudo::BranchZ, &[operand]);
        let first = self.new_block(Role::Plain, None);
        self.program.link(before, first);
        self.program.constructs[construct].head = Some(first);
        let depth = self.frames.len() - 1;
        if parts {
            let data = &mut self.program.blocks[before];
            (data.role, data.construct) = (Role::Branch, Some(construct));
            data.taken = self.func.taken(inst);
            self.frames[depth].inverts = true;
            self.frames[depth].invert.push(before);
        }
        self.enter(first, true);
        self.region(then)?;
        let second = if parts {
            self.invert(depth, construct, before)
        } else {
            let second = self.new_block(Role::Plain, None);
            self.program.link(before, second);
            second
        };
        self.enter(second, true);
        self.region(other)?;
        self.merge(inst)
    }

    fn select_loop(&mut self, inst: Inst, body: Region) -> Selected<()> {
        let func = self.func;
        let shape = self.shape.construct(inst);
        let mut inits = Vec::new();
        for (&param, &arg) in func.params(body).iter().zip(func.args(inst)) {
            let lanes = self.value(arg).to_vec();
            inits.push(self.moved(param, arg, lanes));
        }
        let Some(before) = self.block else { return Ok(()) };
        let preheader = self.new_block(Role::Preheader, None);
        self.program.link(before, preheader);
        self.end(Pseudo::Branch, &[]);
        self.enter(preheader, true);
        self.end(Pseudo::Branch, &[]);
        let construct = self.open(Some(inst), ConstructKind::Loop, shape.divergent, shape.waits);
        self.program.blocks[preheader].construct = Some(construct);
        let header = self.new_block(Role::LoopHeader, Some(construct));
        self.program.link(preheader, header);
        self.program.constructs[construct].head = Some(header);
        self.block = Some(header);
        let mut phis = Vec::new();
        for (&param, inits) in func.params(body).iter().zip(inits) {
            let class = self.class(param);
            let mut lanes = Vec::new();
            for init in inits {
                let temp = self.program.make_temp(class);
                let pseudo = if class.is_sgpr() { Pseudo::LinearPhi } else { Pseudo::Phi };
                let (definitions, operands) = ([Definition::temp(temp, class)], [init]);
                let phi = self.program.append(header, &NewInst::pseudo(pseudo, &definitions, &operands));
                phis.push(HeaderPhi { inst: phi, init });
                lanes.push(Operand::temp(temp, class));
            }
            self.define(param, &lanes);
        }
        self.enter(header, true);
        self.region(body)?;
        self.latch(body, header, construct, &phis);
        self.merge(inst)?;
        self.close_loop(header);
        Ok(())
    }

    /// The block from which a loop starts again.
    fn latch(&mut self, body: Region, header: Block, construct: Construct, phis: &[HeaderPhi]) {
        let depth = self.frames.len() - 1;
        // Where no lane waits, the wave comes with all lanes that start the loop again.
        let divergent = self.frames[depth].waits;
        let arrivals = std::mem::take(&mut self.frames[depth].latch);
        if arrivals.linear.is_empty() {
            return;
        }
        let role = if divergent { Role::Latch } else { Role::Plain };
        let latch = self.arrive(&arrivals, role, Some(construct));
        let logical = !arrivals.logical.is_empty();
        self.block = Some(latch);
        let params = self.func.params(body).to_vec();
        let lanes = self.arrived(&params, &arrivals, divergent);
        self.enter(latch, logical);
        if divergent {
            let exec = self.exec();
            self.end(Pseudo::BranchNz, &[exec]);
            self.frames[depth].merge.linear.insert(0, latch);
        } else {
            self.end(Pseudo::Branch, &[]);
        }
        for (phi, lane) in phis.iter().zip(lanes) {
            let linear = self.program.op(phi.inst).is(Pseudo::LinearPhi);
            let class = self.program.definitions(phi.inst)[0].class;
            if linear || logical {
                let lane = if logical { lane } else { Operand::undef(class) };
                self.program.set_operands(phi.inst, &[phi.init, lane]);
            }
        }
        self.latches.push((latch, header, logical));
    }

    /// Connects the latch with the header, after it was connected with the merge.
    fn close_loop(&mut self, header: Block) {
        while let Some(&(latch, of, logical)) = self.latches.last() {
            if of != header {
                break;
            }
            self.latches.pop();
            self.program.link_linear(latch, header);
            if logical {
                self.program.link_logical(latch, header);
            }
        }
    }

    /// Leaves a construct: its merge, and the results.
    fn merge(&mut self, inst: Inst) -> Selected<()> {
        let func = self.func;
        let shape = self.shape.construct(inst);
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        let depth = self.frames.len() - 1;
        if frame.merge.linear.is_empty() {
            self.block = None;
            return Ok(());
        }
        let role = if frame.divergent { Role::Merge } else { Role::Plain };
        let block = self.arrive(&frame.merge, role, frame.divergent.then_some(frame.construct));
        self.program.constructs[frame.construct].merge = Some(block);
        self.block = Some(block);
        if frame.merge.logical.is_empty() {
            self.enter(block, false);
            self.pass_on(depth);
            return Ok(());
        }
        let results = func.results(inst).to_vec();
        let lanes = self.arrived(&results, &frame.merge, frame.divergent);
        let mut lanes = lanes.into_iter();
        for result in results {
            let own: Vec<Operand> = lanes.by_ref().take(func.ty(result).lanes.into()).collect();
            self.define(result, &own);
        }
        self.enter(block, true);
        if shape.lost {
            // All lanes may have left.
            let exec = self.exec();
            let rest = self.new_block(Role::Plain, None);
            self.program.link(block, rest);
            self.end(Pseudo::BranchZ, &[exec]);
            self.wait_at(depth, block);
            self.enter(rest, true);
        }
        Ok(())
    }

    /// The values of receivers where they arrive: phis at the start of the block, or the value that comes from every predecessor.
    fn arrived(&mut self, receivers: &[Value], arrivals: &Arrivals, divergent: bool) -> Vec<Operand> {
        let mut lanes = Vec::new();
        for &receiver in receivers {
            let class = self.class(receiver);
            let mask = self.func.ty(receiver).base == Base::B1 && self.banks.is_vector(receiver);
            for _ in 0..self.func.ty(receiver).lanes {
                let at = lanes.len();
                let incoming: Vec<Operand> = arrivals
                    .logical
                    .iter()
                    .map(|(_, values)| values.get(at).copied().unwrap_or(Operand::undef(class)))
                    .collect();
                lanes.push(self.phi(class, mask, &incoming, divergent));
            }
        }
        lanes
    }

    fn phi(&mut self, class: RegClass, mask: bool, incoming: &[Operand], divergent: bool) -> Operand {
        let Some(&first) = incoming.first() else { return Operand::undef(class) };
        let same = incoming.iter().all(|operand| *operand == first);
        // A scalar register may have held another value in the iteration in which a lane left.
        let kept = first.as_const().is_some() || first.is_undef() || first.class == class && !mask;
        if same && kept {
            return first;
        }
        let pseudo = match (mask, class.is_sgpr()) {
            (true, _) if divergent => Pseudo::MaskPhi,
            (_, true) => Pseudo::LinearPhi,
            _ => Pseudo::Phi,
        };
        self.make(pseudo, class, incoming)
    }
}
