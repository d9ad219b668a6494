//! Makes the function: blocks, ifs, loops and phis; what an instruction means is in the other modules.

use super::Options;
use super::abi::{Argument, Arguments};
use super::error::{NirCause, NirError, Result, invalid, unsupported};
use super::parse::{InstText, Item, Operand, Program};
use super::scope::{Scopes, Symbol};
use crate::ir::{
    Access, AmdInput, BarrierInfo, Builder, Dim, Function, Inst, Loc, MemoryKinds, Op, Order, Payload,
    Region, Resource, ResourceClass, ResourceData, Scope, Shader, SourceLoc, Stage, Storage, Type, TypeNode,
    Value, Var, VarData,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The largest total number of values that are examined to pass them out of ifs and loops.
const MAX_PASSED: usize = 1 << 22;

/// An `if` or a loop that is being made.
struct Frame {
    /// Its item.
    item: usize,
    inst: Inst,
    is_loop: bool,
    /// The second arm.
    other: Region,
    /// Where it is.
    outer: Region,
    /// Where its end is: an item.
    end: usize,
    /// How many values were defined before its region.
    defined: usize,
    /// Whether it is reachable, and whether the code after it is.
    entered: bool,
    reached: bool,
}

/// The state of the translation.
pub(super) struct Translator<'p, 't> {
    pub program: &'p Program<'t>,
    scopes: &'p Scopes,
    pub arguments: &'p Arguments,
    /// The text has operations for the hardware: arguments in registers, exports.
    pub hardware: bool,
    pub func: &'p mut Function,
    /// The region that is being made.
    pub region: Region,
    pub loc: Option<Loc>,
    frames: Vec<Frame>,
    values: HashMap<u32, Value>,
    /// What was defined, in order.
    defined: Vec<u32>,
    /// The handle of each buffer.
    handles: BTreeMap<(u32, u32), Value>,
    /// The derivatives of whole-quad-mode coordinates, which all lanes of a quad have.
    pub quad_coordinates: HashMap<Value, [Value; 2]>,
    /// The block.
    block: u32,
    /// What the phis of the next block are.
    pending: Vec<Value>,
    /// Whether the current position is reachable.
    reachable: bool,
    /// Whether the region has its terminator.
    terminated: bool,
    passed: usize,
    /// Another shader follows in the same waves.
    pub followed: bool,
    /// What the first of two merged shaders leaves for the same invocation of the second.
    pub passed_on: &'p PassedOn,
}

/// Components that the second of two merged shaders reads in the registers of the first: a variable each, by the name of the location.
#[derive(Debug, Default)]
pub(super) struct PassedOn(BTreeMap<(String, u8), Var>);

impl PassedOn {
    /// The variable of a component.
    pub fn component(&self, location: &str, component: u8) -> Option<Var> {
        self.0.get(&(location.to_owned(), component)).copied()
    }

    /// The components that a program loads.
    fn of(program: &Program<'_>, shader: &mut Shader) -> PassedOn {
        let mut all = PassedOn::default();
        for item in &program.items {
            let Item::Inst(inst) = item else { continue };
            let location = program.text(inst, LOCATION).filter(|_| inst.name == LOAD_PASSED);
            // The number of locations follows the name.
            let Some(name) = location.and_then(|text| text.split(' ').next()) else { continue };
            for component in 0..MAX_COMPONENTS {
                all.0.entry((name.to_owned(), component)).or_insert_with(|| {
                    let ty = shader.types.push(TypeNode::Leaf(Type::B32));
                    shader.vars.push(VarData::new(String::new(), Storage::Function, ty))
                });
            }
        }
        all
    }
}

/// The intrinsic by which a merged shader reads what the one before it left in registers.
pub(super) const LOAD_PASSED: &str = "load_per_vertex_input";
/// The index that names the location of an input or output.
pub(super) const LOCATION: &str = "io location";
/// Components of a location.
const MAX_COMPONENTS: u8 = 4;
/// The argument that says how many lanes of the wave have a vertex, and how many an invocation of the second shader.
pub(super) const MERGED_WAVE: u64 = 2;
/// The bit of that argument from which on the lanes of the second shader are counted.
const SECOND_COUNT: u8 = 8;

/// Makes the shader, of one text or of two that run merged.
pub(super) fn translate(
    programs: &[(Program<'_>, Scopes)],
    options: &Options,
    shader: &mut Shader,
) -> std::result::Result<(), NirError> {
    let Some((last, _)) = programs.last() else { return Err(NirCause::Expected("shader:").at(0)) };
    let size =
        |of: fn(&Program<'_>) -> u32| programs.iter().map(|(program, _)| of(program)).max().unwrap_or(0);
    shader.info.name = last.name.to_owned();
    shader.info.stage = last.stage.unwrap_or(Stage::Compute);
    shader.info.workgroup_size = last.workgroup_size;
    shader.info.shared_size = size(|program| program.shared_size);
    shader.info.scratch_size = size(|program| program.scratch_size);
    shader.info.push_size = size(|program| program.push_size);
    shader.info.constant_size = size(|program| program.constant_size);
    shader.info.float_modes = last.float_modes;
    shader.files.push(options.file.clone());
    shader.add_function();
    last.name.clone_into(&mut shader.entry_mut().name);
    let merged = programs.len() > 1;
    let passed_on = if merged { PassedOn::of(last, shader) } else { PassedOn::default() };
    // Where nothing is in memory, one branch is around both.
    let joined = !passed_on.0.is_empty();
    let mut region = shader.entry().body();
    let mut branches = Vec::new();
    let (mut terminated, mut reachable) = (false, true);
    for (part, (program, scopes)) in programs.iter().enumerate() {
        let resources = resources(program, scopes, shader);
        let line_loc = |&line: &u32| shader.locs.push(SourceLoc { file: 0, line, column: 0 });
        let locs: Vec<Loc> = program.lines.iter().map(line_loc).collect();
        let branch = merged && (part == 0 || !joined && !chooses_lanes(program));
        if branch {
            let bit = if part == 0 { 0 } else { SECOND_COUNT };
            // The driver adds a barrier that the text does not have: the vertices of other waves must be in LDS.
            if part > 0 && program.stage == Some(Stage::Geometry) {
                let barrier = Payload::Barrier(BarrierInfo {
                    execution: Scope::Workgroup,
                    memory: Scope::Workgroup,
                    order: Order::ACQUIRE.or(Order::RELEASE),
                    kinds: MemoryKinds::SHARED,
                });
                Builder::at_end(shader.entry_mut(), region).inst(Op::Barrier, barrier, &[], &[]);
            }
            let lanes = merged_lanes(shader, region, options, bit).map_err(|cause| cause.at(0))?;
            let (inst, then, other) = Builder::at_end(shader.entry_mut(), region).if_(lanes, &[]);
            Builder::at_end(shader.entry_mut(), other).break_(inst, &[]);
            branches.push((inst, region));
            region = then;
        }
        let mut translator = Translator {
            program,
            scopes,
            arguments: &options.arguments,
            hardware: options.arguments.are_registers() || program.stage != Some(Stage::Compute),
            func: shader.entry_mut(),
            region,
            loc: None,
            frames: Vec::new(),
            values: HashMap::new(),
            defined: Vec::new(),
            handles: BTreeMap::new(),
            quad_coordinates: HashMap::new(),
            block: 0,
            pending: Vec::new(),
            reachable: true,
            terminated: false,
            passed: 0,
            followed: part + 1 < programs.len(),
            passed_on: &passed_on,
        };
        translator.descriptors(&resources);
        for (at, item) in program.items.iter().enumerate() {
            translator.loc = Some(locs[at]);
            translator.item(at, item).map_err(|cause| cause.at(program.lines[at]))?;
        }
        (terminated, reachable) = (translator.terminated, translator.reachable);
        if joined && part == 0 {
            continue;
        }
        while let Some((inst, outer)) = branches.pop() {
            if !terminated {
                Builder::at_end(shader.entry_mut(), region).break_(inst, &[]);
            }
            (region, terminated, reachable) = (outer, false, true);
        }
    }
    if !terminated {
        let op = if reachable { Op::Return } else { Op::Unreachable };
        Builder::at_end(shader.entry_mut(), region).inst(op, Payload::None, &[], &[]);
    }
    Ok(())
}

/// Whether a shader that runs merged selects its lanes itself.
fn chooses_lanes(program: &Program<'_>) -> bool {
    program.items.iter().any(|item| match item {
        Item::Inst(inst) => {
            inst.name == "is_subgroup_invocation_lt_amd"
                && program.text(inst, "base") == Some(&SECOND_COUNT.to_string())
        }
        _ => false,
    })
}

/// Whether the invocation is one of those of a merged shader, whose number is in the wave's argument from a bit on.
fn merged_lanes(shader: &mut Shader, region: Region, options: &Options, bit: u8) -> Result<Value> {
    let Argument::Register(registers) = options.arguments.get(MERGED_WAVE) else {
        return unsupported("merged shaders whose arguments are not in registers");
    };
    let mut builder = Builder::at_end(shader.entry_mut(), region);
    let counts = builder.value(Op::AmdRegister, Payload::Register(AmdInput::of(registers)), &[], Type::B32);
    Ok(builder.value(Op::AmdLaneBelow, Payload::Number(bit), &[counts], Type::BOOL))
}

/// The bindings that the shader uses.
fn resources(program: &Program<'_>, scopes: &Scopes, shader: &mut Shader) -> BTreeMap<(u32, u32), Resource> {
    let buffer = |symbol: &Symbol| match *symbol {
        Symbol::Buffer(set, binding) => Some((set, binding)),
        _ => None,
    };
    let points: BTreeSet<(u32, u32)> = scopes.symbols.values().filter_map(buffer).collect();
    let mut resources = BTreeMap::new();
    for (set, binding) in points {
        // The text does not say the sets of variables.
        let mut decls = program.decls.iter().filter(|decl| decl.binding == binding);
        let decl = decls.next().filter(|_| decls.next().is_none());
        let mut data = ResourceData {
            name: String::new(),
            class: ResourceClass::StorageBuffer,
            set,
            binding,
            count: 1,
            access: Access::NONE,
            dim: Dim::Buffer,
            size: 0,
            attachment: None,
        };
        if let Some(decl) = decl {
            if decl.uniform {
                data.class = ResourceClass::UniformBuffer;
            }
            for word in decl.words.split_whitespace() {
                match word {
                    "restrict" | "readonly" | "writeonly" | "coherent" | "volatile" => {
                        data.access = data.access.or(Access::from_name(word).unwrap_or(Access::NONE));
                    }
                    word if word.starts_with('#') => {}
                    word => word.clone_into(&mut data.name),
                }
            }
        }
        resources.insert((set, binding), shader.resources.push(data));
    }
    resources
}

impl<'t> Translator<'_, 't> {
    /// A builder at the end of the region.
    pub fn build(&mut self) -> Builder<'_> {
        let mut builder = Builder::at_end(self.func, self.region);
        builder.loc = self.loc;
        builder
    }

    /// All descriptors come first, so that they are visible everywhere.
    fn descriptors(&mut self, resources: &BTreeMap<(u32, u32), Resource>) {
        if resources.is_empty() {
            return;
        }
        let zero = self.build().u32(0);
        for (&point, &resource) in resources {
            let payload = Payload::Resource(resource, Access::NONE);
            let handle = self.build().value(Op::Descriptor, payload, &[zero], Type::HANDLE);
            self.handles.insert(point, handle);
        }
    }

    /// The value with a number.
    pub fn value(&self, id: u32) -> Result<Value> {
        match self.scopes.symbols.get(&id) {
            Some(Symbol::SetLow(_) | Symbol::Set(_)) => {
                unsupported("the address of a descriptor set as a number")
            }
            Some(Symbol::Buffer(..)) => unsupported("a descriptor as a number"),
            None => self.values.get(&id).copied().ok_or(NirCause::Undefined(id)),
        }
    }

    /// The descriptor that an operand is.
    pub fn descriptor(&mut self, operand: &Operand<'t>) -> Result<Value> {
        match self.scopes.symbols.get(&operand.id) {
            Some(&Symbol::Buffer(set, binding)) if operand.swizzle.is_none() => {
                self.handles.get(&(set, binding)).copied().ok_or(NirCause::Undefined(operand.id))
            }
            None if self.hardware => {
                let words = self.operand(operand)?;
                self.descriptor_of(words)
            }
            _ => unsupported("a descriptor that is not loaded from a descriptor set"),
        }
    }

    /// Whether a value is an address or a descriptor that is not in a register of the IR.
    pub fn is_symbol(&self, id: u32) -> bool {
        self.scopes.symbols.contains_key(&id)
    }

    fn define(&mut self, id: u32, ty: Type, value: Value) -> Result<()> {
        let actual = self.func.ty(value);
        if actual != ty {
            return invalid(format!("the result has the type {actual}, not {ty}"));
        }
        self.values.insert(id, value);
        self.defined.push(id);
        Ok(())
    }

    /// Ends the visibility of values that were defined since then.
    fn forget(&mut self, since: usize) {
        for id in self.defined.drain(since..) {
            self.values.remove(&id);
        }
    }

    fn item(&mut self, at: usize, item: &Item<'t>) -> Result<()> {
        match item {
            Item::Block { name, phis } => {
                self.block = *name;
                if self.pending.len() < *phis {
                    return invalid("a phi is where no paths meet");
                }
                Ok(())
            }
            Item::Phi { id, ty, .. } => {
                let value = self.pending.pop().ok_or(NirCause::Undefined(*id))?;
                self.define(*id, *ty, value)
            }
            Item::Inst(inst) => self.instruction(inst),
            Item::If { condition, end, taken } => {
                self.start_if(at, *condition, *end)?;
                if let Some(frame) = self.frames.last() {
                    self.func.set_taken(frame.inst, *taken);
                }
                Ok(())
            }
            Item::Else => self.start_else(),
            Item::EndIf => self.end_if(),
            Item::Loop { end } => self.start_loop(at, *end),
            Item::EndLoop => self.end_loop(),
            Item::Break | Item::Continue => self.jump(matches!(item, Item::Break)),
            Item::Return | Item::Halt if self.followed => {
                unsupported("the end of an invocation before the shader that follows in its wave")
            }
            Item::Return | Item::Halt => {
                let op = if matches!(item, Item::Return) { Op::Return } else { Op::Terminate };
                self.build().inst(op, Payload::None, &[], &[]);
                self.reachable = false;
                self.terminated = true;
                Ok(())
            }
        }
    }

    fn instruction(&mut self, inst: &InstText<'t>) -> Result<()> {
        if inst.def.is_some_and(|(id, _)| self.is_symbol(id)) {
            return Ok(());
        }
        let value = if inst.intrinsic { self.intrinsic(inst)? } else { Some(self.alu(inst)?) };
        match (inst.def, value) {
            (Some((id, ty)), Some(value)) => self.define(id, ty, value),
            (None, None) => Ok(()),
            (None, Some(_)) => invalid(format!("{} has a result", inst.name)),
            (Some(_), None) => invalid(format!("{} has no result", inst.name)),
        }
    }

    /// The phis at the start of the block at an item: type and sources.
    fn phis(&self, block: usize) -> impl Iterator<Item = (Type, &[(u32, u32)])> {
        let items = self.program.items.get(block + 1..).unwrap_or_default();
        items.iter().map_while(|item| match item {
            Item::Phi { ty, sources, .. } => Some((*ty, &self.program.sources[sources.clone()])),
            _ => None,
        })
    }

    /// The values that the edge from this block passes to the phis of the block at an item.
    fn sources(&mut self, block: usize) -> Result<Vec<Value>> {
        let mut found = Vec::new();
        let mut compared = 0;
        for (ty, sources) in self.phis(block) {
            compared += sources.len();
            let source = sources.iter().find(|(from, _)| *from == self.block);
            found.push((ty, source.map(|(_, id)| *id)));
        }
        self.pass(compared)?;
        let mut values = Vec::with_capacity(found.len());
        for (ty, source) in found {
            values.push(match source {
                Some(id) => {
                    let value = self.value(id)?;
                    if self.func.ty(value) != ty {
                        return invalid(format!("%{id} and its phi have different types"));
                    }
                    value
                }
                None if self.reachable => return Err(NirCause::PhiSource(self.block)),
                None => self.build().undef(ty),
            });
        }
        Ok(values)
    }

    fn pass(&mut self, count: usize) -> Result<()> {
        self.passed += count;
        if self.passed > MAX_PASSED {
            Err(NirCause::Limit("values that leave ifs and loops"))
        } else {
            Ok(())
        }
    }

    /// The values that leave an `if` or a loop besides its phis.
    fn escapes(&self, item: usize) -> impl Iterator<Item = u32> {
        let escapes = self.scopes.escapes.get(&item).map(Vec::as_slice).unwrap_or_default();
        escapes.iter().copied().filter(|id| !self.is_symbol(*id))
    }

    /// The types of the results of an `if` or loop.
    fn results(&self, item: usize, end: usize) -> Result<Vec<Type>> {
        let mut types: Vec<Type> = self.phis(end + 1).map(|(ty, _)| ty).collect();
        for id in self.escapes(item) {
            let ty = match self.program.values.get(&id).map(|at| &self.program.items[*at]) {
                Some(Item::Phi { ty, .. }) => *ty,
                Some(Item::Inst(InstText { def: Some((_, ty)), .. })) => *ty,
                _ => return Err(NirCause::Undefined(id)),
            };
            types.push(ty);
        }
        Ok(types)
    }

    /// Leaves a frame for the code after it.
    fn leave(&mut self, frame: usize) -> Result<()> {
        let Frame { item, inst, end, .. } = self.frames[frame];
        if !self.reachable {
            self.build().inst(Op::Unreachable, Payload::None, &[], &[]);
            return Ok(());
        }
        let mut values = self.sources(end + 1)?;
        self.pass(self.scopes.escapes.get(&item).map_or(0, Vec::len))?;
        for id in self.escapes(item) {
            values.push(self.value(id)?);
        }
        self.build().break_(inst, &values);
        self.frames[frame].reached = true;
        Ok(())
    }

    fn start_if(&mut self, at: usize, condition: u32, end: usize) -> Result<()> {
        let condition = self.value(condition)?;
        let results = self.results(at, end)?;
        self.pass(results.len())?;
        let outer = self.region;
        let (inst, then, other) = self.build().if_(condition, &results);
        let defined = self.defined.len();
        let (entered, reached) = (self.reachable, false);
        self.frames.push(Frame {
            item: at,
            inst,
            is_loop: false,
            other,
            outer,
            end,
            defined,
            entered,
            reached,
        });
        self.region = then;
        Ok(())
    }

    /// The innermost `if` or loop.
    fn innermost(&self) -> Result<usize> {
        self.frames.len().checked_sub(1).ok_or(NirCause::Expected("an open if or loop"))
    }

    fn end_arm(&mut self) -> Result<usize> {
        let frame = self.innermost()?;
        if !self.terminated {
            self.leave(frame)?;
        }
        self.terminated = false;
        self.forget(self.frames[frame].defined);
        Ok(frame)
    }

    fn start_else(&mut self) -> Result<()> {
        let frame = self.end_arm()?;
        self.region = self.frames[frame].other;
        self.reachable = self.frames[frame].entered;
        Ok(())
    }

    fn end_if(&mut self) -> Result<()> {
        self.end_arm()?;
        self.end_frame()
    }

    /// After an `if` or loop: results are the phis of the next block, then what leaves.
    fn end_frame(&mut self) -> Result<()> {
        let Some(frame) = self.frames.pop() else { return Err(NirCause::Expected("an open if or loop")) };
        self.forget(frame.defined);
        self.region = frame.outer;
        self.reachable = frame.reached;
        let phis = self.phis(frame.end + 1).count();
        let results = self.func.results(frame.inst).to_vec();
        self.pending = results[..phis].iter().rev().copied().collect();
        let escapes: Vec<u32> = self.escapes(frame.item).collect();
        for (id, value) in escapes.into_iter().zip(&results[phis..]) {
            self.define(id, self.func.ty(*value), *value)?;
        }
        Ok(())
    }

    fn start_loop(&mut self, at: usize, end: usize) -> Result<()> {
        let args = self.sources(at + 1)?;
        let results = self.results(at, end)?;
        self.pass(results.len())?;
        let outer = self.region;
        let (inst, body) = self.build().loop_(&args, &results);
        let (defined, other) = (self.defined.len(), body);
        let (entered, reached) = (self.reachable, false);
        self.frames.push(Frame {
            item: at,
            inst,
            is_loop: true,
            other,
            outer,
            end,
            defined,
            entered,
            reached,
        });
        self.region = body;
        self.pending = self.func.params(body).iter().rev().copied().collect();
        Ok(())
    }

    fn repeat(&mut self, frame: usize) -> Result<()> {
        let Frame { item, inst, .. } = self.frames[frame];
        if !self.reachable {
            self.build().inst(Op::Unreachable, Payload::None, &[], &[]);
            return Ok(());
        }
        let args = self.sources(item + 1)?;
        self.build().continue_(inst, &args);
        Ok(())
    }

    fn end_loop(&mut self) -> Result<()> {
        if !self.terminated {
            self.repeat(self.innermost()?)?;
        }
        self.terminated = false;
        self.end_frame()
    }

    fn jump(&mut self, is_break: bool) -> Result<()> {
        let Some(frame) = self.frames.iter().rposition(|frame| frame.is_loop) else {
            return invalid("a break or continue is in no loop");
        };
        if is_break {
            self.leave(frame)?;
        } else {
            self.repeat(frame)?;
        }
        self.reachable = false;
        self.terminated = true;
        Ok(())
    }
}
