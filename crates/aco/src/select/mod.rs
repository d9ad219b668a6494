//! Instruction selection: takes a lowered shader; leaves a program in SSA, [`Progress::Selected`](crate::ir::Progress::Selected).
//!
//! Every lane of a value of the shader is a value of its own here: a temporary, a constant, or undefined. [`shape`] says in which constructs lanes
//! diverge, [`banks`] which values are in scalar registers; `flow` makes blocks of regions, `emit` enforces the rules of operands, the other
//! files select operations. Lanes of 8 and 16 bits are in a register each, whose upper bits are undefined.
//!
//! A uniform value is read wherever the shader reads it, although the wave may come there without passing its definition: [`crate::mask_phis`] makes it
//! SSA along the linear flow.

mod alu;
mod amd;
pub(crate) mod atomics;
mod banks;
mod cube;
mod double;
mod emit;
mod float;
mod flow;
mod global;
mod graphics;
mod image;
mod kernel;
mod memory;
mod narrow;
mod packed;
mod scratch;
mod shape;
mod subgroup;
mod system;

pub(crate) use packed::packed_opcode;

use crate::abi::{ArgLocation, Args, Argument, Interface, KernelArgs, is_image, lanes_read};
use crate::compile::{CompileError, Options};
use crate::ir::shape::Variants;
use crate::ir::{
    Block, Definition, FloatFreedom, Neighbours, NewInst, Operand, PhysReg, Program, Pseudo, RegClass,
    ScratchArgs, Temp,
};
use crate::lower::pairs::PAIR;
use crate::stages::{HardwareStage, shifts_local_vectors};
use banks::Banks;
use flow::Frame;
use shape::Shape;
use std::collections::HashMap;
use unwedge_base::entity::{Entity, SecondaryMap};
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::analysis::divergence::Divergence;
use unwedge_shader::ir::{
    Base, Function, Inst, Loc, MemoryKinds, Op, Payload, Scope, Shader, Stage, Traits, Value,
};

/// Selects instructions for a shader. `program` is empty.
///
/// # Errors
///
/// What is not compiled.
pub(crate) fn select(
    mut program: Program,
    parts: &[&Shader],
    args: &Args,
    float_mode: u8,
    options: &Options,
) -> Result<Program, CompileError> {
    for shader in parts {
        if shader.functions().len() != 1 {
            return Err(CompileError::Functions(shader.functions().len()));
        }
    }
    let shader = parts[0];
    let func = shader.entry();
    let divergence = Divergence::of(func, Scope::Subgroup);
    let shape = Shape::of(func, &divergence);
    let gfx = options.gpu.generation();
    let banks = Banks::of(func, &divergence, &shape, gfx);
    program.contract = options.contract;
    program.lds_bytes = shader.info.shared_size;
    program.scratch_bytes = shader.info.scratch_size;
    let mut selector = Selector {
        shader,
        func,
        options,
        gfx,
        variants: Variants::of(&options.gpu),
        program,
        args: HashMap::new(),
        interface: args.interface.clone(),
        kernel: args.kernel.clone(),
        outputs: graphics::OutputValues::new(),
        left: None,
        part: 0,
        part_count: parts.len(),
        outer: 0,
        divergence,
        shape,
        banks,
        values: SecondaryMap::default(),
        lanes: Vec::new(),
        pairs: SecondaryMap::default(),
        split_pairs: packed::split_pairs(func),
        keeps_halves: float_mode >> 6 == 3,
        read: lanes_read(func),
        block: None,
        logical: true,
        frames: Vec::new(),
        latches: Vec::new(),
        loc: None,
        first_loc: 0,
        exact: false,
        freedom: FloatFreedom::default(),
        linear: Vec::new(),
    };
    selector.plain_handles()?;
    selector.program.whole_waves = selector.whole_waves();
    selector.program.neighbours = selector.neighbours();
    selector.start(args);
    selector.parts(parts)?;
    Ok(selector.program)
}

/// A range of [`Selector::lanes`].
#[derive(Debug, Clone, Copy, Default)]
struct LaneList {
    start: u32,
    len: u8,
}

struct Selector<'a> {
    shader: &'a Shader,
    func: &'a Function,
    options: &'a Options,
    gfx: Gfx,
    variants: Variants,
    program: Program,
    args: HashMap<Argument, Temp>,
    /// How inputs and outputs of a graphics stage are numbered.
    interface: Interface,
    /// The arguments in memory of an HSA kernel.
    kernel: Option<KernelArgs>,
    /// What a graphics stage exports at its end.
    outputs: graphics::OutputValues,
    /// What the program leaves in registers for the code of another one, which follows.
    left: Option<Vec<Operand>>,
    /// Which of two merged shaders is being selected.
    part: usize,
    part_count: usize,
    /// Constructs around those of the shader.
    outer: usize,
    divergence: Divergence,
    shape: Shape,
    banks: Banks,
    values: SecondaryMap<Value, LaneList>,
    lanes: Vec<Operand>,
    /// Words that hold both lanes of pairs of 16 bits.
    pairs: SecondaryMap<Value, Option<Operand>>,
    /// Pairs whose upper lane is read alone.
    split_pairs: SecondaryMap<Value, bool>,
    /// Denormals of 16 bits are kept.
    keeps_halves: bool,
    /// Which lanes of values are read.
    read: SecondaryMap<Value, u16>,
    /// The block that instructions are added to; `None` where neither the wave nor a lane comes.
    block: Option<Block>,
    /// Lanes come to the block, not only the wave.
    logical: bool,
    frames: Vec<Frame>,
    /// Latches that are not connected with their headers yet, their headers, and whether lanes come to them.
    latches: Vec<(Block, Block, bool)>,
    loc: Option<Loc>,
    /// The number of positions of the shaders before this one.
    first_loc: usize,
    exact: bool,
    freedom: FloatFreedom,
    /// Linear vector registers that operations over lanes share, once one needs them.
    linear: Vec<Temp>,
}

type Selected<T> = Result<T, CompileError>;

impl<'a> Selector<'a> {
    /// Goes on with the second of two merged shaders.
    fn next_part(&mut self, shader: &'a Shader) -> Selected<()> {
        let func = shader.entry();
        self.part += 1;
        self.first_loc += self.shader.locs.len();
        self.loc = None;
        (self.shader, self.func) = (shader, func);
        self.divergence = Divergence::of(func, Scope::Subgroup);
        self.shape = Shape::of(func, &self.divergence);
        self.banks = Banks::of(func, &self.divergence, &self.shape, self.gfx);
        self.values = SecondaryMap::default();
        self.pairs = SecondaryMap::default();
        self.split_pairs = packed::split_pairs(func);
        self.lanes.clear();
        self.read = lanes_read(func);
        self.outputs.clear();
        self.program.lds_bytes = self.program.lds_bytes.max(shader.info.shared_size);
        self.program.scratch_bytes = self.program.scratch_bytes.max(shader.info.scratch_size);
        self.plain_handles()
    }
}

impl Selector<'_> {
    /// The first block and the arguments.
    fn start(&mut self, args: &Args) {
        let block = self.program.add_block();
        self.program.blocks[block].top_level = true;
        self.block = Some(block);
        let mut definitions = Vec::new();
        for location in args.iter() {
            let class = match location.reg.reg().is_vgpr() {
                true => RegClass::vgpr(location.dwords),
                false => RegClass::sgpr(location.dwords),
            };
            let temp = self.program.make_temp(class);
            self.args.insert(location.argument, temp);
            if let Argument::LocalId(axis) = location.argument {
                let size =
                    self.shader.info.workgroup_size.get(usize::from(axis)).copied().unwrap_or(u32::MAX);
                self.program.argument_bounds.push((temp, size.saturating_sub(1)));
            }
            definitions.push(Definition::fixed(temp, class, location.reg));
        }
        self.program.scratch = ScratchArgs {
            descriptor: self
                .args
                .get(&Argument::RingOffsets)
                .or(self.args.get(&Argument::ScratchDescriptor))
                .copied(),
            offset: self.args.get(&Argument::ScratchOffset).copied(),
        };
        if self.interface.prolog {
            let fixed = |location: &ArgLocation| {
                let temp = *self.args.get(&location.argument)?;
                Some(Operand::fixed(temp, self.program.class(temp), location.reg))
            };
            let stays = |location: &&ArgLocation| !matches!(location.argument, Argument::Pixel(_));
            self.left = Some(args.iter().filter(stays).filter_map(fixed).collect());
        }
        self.add(&NewInst::pseudo(Pseudo::StartProgram, &definitions, &[]));
        self.pseudo(Pseudo::LogicalStart, &[], &[]);
        let hardware = self.interface.hardware;
        if hardware.is_some_and(HardwareStage::is_merged) {
            // The hardware starts waves of merged stages with the lanes of one of them only.
            let exec = Definition::reg(PhysReg::EXEC, self.program.lane_mask());
            let all = self.full_mask(true);
            self.pseudo(Pseudo::ParallelCopy, &[exec], &[all]);
        }
        if self.interface.prolog {
            self.start_prolog();
        }
        if hardware == Some(HardwareStage::LsHs) && shifts_local_vectors(&self.options.gpu) {
            self.shift_local_vectors();
        }
        let passes = matches!(hardware, Some(HardwareStage::Ls | HardwareStage::Hs));
        if self.gfx <= Gfx::Gfx8 && (self.program.lds_bytes > 0 || passes) {
            let m0 = Definition::reg(PhysReg::M0, RegClass::S1);
            self.pseudo(Pseudo::ParallelCopy, &[m0], &[Operand::c32(u32::MAX)]);
        }
    }

    fn neighbours(&self) -> Neighbours {
        let Interface { hardware, explicit, prolog, .. } = self.interface;
        let graphics = &self.options.graphics;
        let exports = matches!(hardware, Some(HardwareStage::Ps | HardwareStage::Vs | HardwareStage::Ngg));
        let pixels = hardware == Some(HardwareStage::Ps);
        Neighbours {
            before: graphics.prolog && !explicit && !prolog,
            exports_after: prolog && exports || pixels && graphics.epilog && !explicit,
        }
    }

    /// Handles that are chosen or passed on are those of buffers, because other handles have other sizes.
    fn plain_handles(&self) -> Selected<()> {
        let resources = self.shader.resources.values();
        if resources.into_iter().all(|data| !is_image(data.class)) {
            return Ok(());
        }
        let func = self.func;
        let is_handle = |value: &Value| func.ty(*value).base == Base::Handle;
        for inst in func.walk() {
            let params = match func.payload(inst) {
                Payload::Body(body) => func.params(body),
                _ => &[],
            };
            let made = matches!(func.op(inst), Op::Descriptor | Op::AmdDescriptor);
            if !made && func.results(inst).iter().chain(params).any(is_handle) {
                return Err(self.unsupported(inst, Some("of descriptors of images")));
            }
        }
        Ok(())
    }

    /// Gives the instructions that are added from here on the position of a shader instruction.
    fn set_loc(&mut self, inst: Inst) {
        self.loc = self.func.loc(inst).map(|loc| Loc::new(self.first_loc + loc.index()));
    }

    /// The class of a lane of a value.
    fn class(&self, value: Value) -> RegClass {
        let vector = self.banks.is_vector(value);
        let dwords = match self.func.ty(value).base {
            Base::B1 if vector => return self.program.lane_mask(),
            Base::B1 => return RegClass::S1,
            Base::Handle => return RegClass::sgpr(4),
            Base::B64 => 2,
            _ => 1,
        };
        if vector { RegClass::vgpr(dwords) } else { RegClass::sgpr(dwords) }
    }

    /// The lanes of a value.
    fn value(&self, value: Value) -> &[Operand] {
        let LaneList { start, len } = self.values[value];
        &self.lanes[start as usize..][..len.into()]
    }

    /// The only lane of a scalar.
    fn scalar(&self, value: Value) -> Operand {
        self.value(value).first().copied().unwrap_or(Operand::undef(self.class(value)))
    }

    fn define(&mut self, value: Value, lanes: &[Operand]) {
        self.values[value] = LaneList { start: self.lanes.len() as u32, len: lanes.len() as u8 };
        self.lanes.extend_from_slice(lanes);
    }

    /// The operands of an instruction of scalars.
    fn scalars<const N: usize>(&self, inst: Inst) -> [Operand; N] {
        let args = self.func.args(inst);
        std::array::from_fn(|number| self.scalar(args[number]))
    }

    fn unsupported(&self, inst: Inst, detail: Option<&'static str>) -> CompileError {
        let func = self.func;
        let value = func.results(inst).first().or(func.args(inst).first());
        let ty = value.map_or(unwedge_shader::ir::Type::BOOL, |value| func.ty(*value));
        CompileError::Operation { op: func.op(inst), ty, detail }
    }

    /// What may change of the results of an operation: nothing where it is exact, or the float mode of its width keeps signs and NaNs.
    fn float_freedom(&self, inst: Inst) -> FloatFreedom {
        let func = self.func;
        let [result] = *func.results(inst) else { return FloatFreedom::default() };
        let mode = self.shader.info.float_mode(func.ty(result).base.bits());
        let free = func.op(inst).has(Traits::FLOAT) && !func.exact(inst) && !mode.preserve;
        if free { FloatFreedom::ALL } else { FloatFreedom::default() }
    }

    /// Selects an instruction that is not flow.
    fn inst(&mut self, inst: Inst) -> Selected<()> {
        let func = self.func;
        let op = func.op(inst);
        self.exact = func.exact(inst);
        self.freedom = self.float_freedom(inst);
        let results = func.results(inst);
        if let Some(selected) = self.amd(inst) {
            return selected;
        }
        if let Some(selected) = self.graphics(inst) {
            return selected;
        }
        match (op, func.payload(inst)) {
            (Op::Const, Payload::Const(bits)) => {
                let operand = match func.ty(results[0]).base {
                    Base::B64 => Operand::c64(bits),
                    _ => Operand::c32(bits as u32),
                };
                self.define(results[0], &[operand]);
                Ok(())
            }
            (Op::Undef, _) => {
                let class = self.class(results[0]);
                let lanes = vec![Operand::undef(class); func.ty(results[0]).lanes.into()];
                self.define(results[0], &lanes);
                Ok(())
            }
            (Op::Vec, _) => {
                let masks = func.ty(results[0]).base == Base::B1 && self.banks.is_vector(results[0]);
                let lane = |arg: &Value| if masks { self.mask_of(*arg) } else { self.scalar(*arg) };
                let lanes: Vec<Operand> = func.args(inst).iter().map(lane).collect();
                self.define(results[0], &lanes);
                Ok(())
            }
            (Op::Extract, Payload::Lane(lane)) => {
                let lane = self.value(func.args(inst)[0]).get(usize::from(lane)).copied();
                let lane = lane.unwrap_or(Operand::undef(self.class(results[0])));
                self.define(results[0], &[lane]);
                Ok(())
            }
            (Op::ExtractDyn, _) => self.extract_dyn(inst),
            (Op::Bitcast, _) => self.bitcast(inst),
            (Op::SysVal, Payload::SysVal(value)) => self.system_value(inst, value),
            (Op::Descriptor, Payload::Resource(resource, _)) => self.descriptor(inst, resource),
            (Op::BufferSize, _) => self.buffer_size(inst),
            (Op::Load, Payload::Mem(mem)) => self.load(inst, &mem),
            (Op::Store, Payload::Mem(mem)) => self.store(inst, &mem),
            (Op::Atomic | Op::AtomicCompare, Payload::Atomic(atomic, mem)) => self.atomic(inst, atomic, &mem),
            (Op::Barrier, Payload::Barrier(mut info)) => {
                if self.shader.info.stage == Stage::TessControl {
                    self.patch_barrier(info);
                    return Ok(());
                }
                // A wave does not wait for itself, and executes its accesses of LDS in order.
                let wave = self.program.gpu.lanes();
                let compute = self.shader.info.stage == Stage::Compute;
                if compute && info.execution == Scope::Workgroup && self.shader.info.invocations() <= wave {
                    info.execution = Scope::Subgroup;
                    let local = matches!(info.memory, Scope::Invocation | Scope::Subgroup | Scope::Workgroup);
                    if local && MemoryKinds::SHARED.has(info.kinds) {
                        return Ok(());
                    }
                }
                let mut new = NewInst::pseudo(Pseudo::Barrier, &[], &[]);
                new.payload = crate::ir::Payload::Barrier(info);
                self.add(&new);
                Ok(())
            }
            (Op::Clock, Payload::Scope(scope)) => self.clock(inst, scope),
            (_, Payload::Image(_) | Payload::ImageAtomic(..)) => self.image(inst),
            _ if op.has(Traits::CONVERGENT) => self.subgroup(inst),
            _ if op.has(Traits::ELEMENTWISE) => self.alu(inst),
            _ => Err(self.unsupported(inst, None)),
        }
    }

    /// A bit cast: words of wide lanes, or wide lanes of words.
    fn bitcast(&mut self, inst: Inst) -> Selected<()> {
        let func = self.func;
        let (from, to) = (func.args(inst)[0], func.result(inst));
        let (from_bits, to_bits) = (func.ty(from).base.bits(), func.ty(to).base.bits());
        let lanes = self.value(from).to_vec();
        let class = self.class(to);
        if func.ty(to) == PAIR && from_bits == 32 {
            self.pairs[to] = lanes.first().copied();
        }
        let new = match (from_bits, to_bits) {
            (a, b) if a == b => lanes,
            (64, 32) => lanes.into_iter().flat_map(|lane| self.words(lane)).collect(),
            (32, 64) => lanes.chunks(2).map(|pair| self.create(class, pair)).collect(),
            (16, 32) if func.ty(from) == PAIR && self.banks.is_vector(to) && self.since(Gfx::Gfx9) => {
                vec![self.pair_word(from)]
            }
            (8 | 16 | 32 | 64, 8 | 16 | 32 | 64) => self.cast_narrow(to, &lanes, from_bits, to_bits),
            _ => return Err(self.unsupported(inst, None)),
        };
        self.define(to, &new);
        Ok(())
    }
}
