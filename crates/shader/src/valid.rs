//! The validator: what every shader must be between passes.
//!
//! It checks the tree of regions, where values are visible, terminators and their targets, payloads, and types by the table of
//! operations. It shares no code with the passes. A shader that is valid can be printed, run and rewritten without a panic.

use crate::ir::{
    Base, BaseSet, Dim, Func, Function, ImageAccess, ImageFlags, Inst, MAX_ACCESS_SLOTS, MAX_LOWERED_DEPTH,
    MAX_SLOT_INDEX, Op, Payload, PayloadForm, Region, RegionOwner, Rule, SLOT_COMPONENTS, Shader, SlotAccess,
    SlotDir, Space, Storage, Traits, Type, TypeId, TypeNode, Value, Var,
};
use unwedge_base::entity::{Entity, SecondaryMap};

/// Why a shader is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{func}{}: {reason}", inst.map(|inst| format!(" {inst}")).unwrap_or_default())]
pub struct InvalidShader {
    /// The function.
    pub func: Func,
    /// The instruction.
    pub inst: Option<Inst>,
    /// The reason.
    pub reason: String,
}

/// Checks a shader.
///
/// # Errors
/// The first thing that is not valid.
pub fn validate(shader: &Shader) -> Result<(), InvalidShader> {
    let bad = |func: usize, inst, reason| Err(InvalidShader { func: Func::new(func), inst, reason });
    if let Err(reason) = interface(shader) {
        return bad(0, None, reason);
    }
    let mut scratch = Scratch::default();
    for (index, func) in shader.functions().iter().enumerate() {
        scratch.visible.reset(func.value_count());
        scratch.seen.reset(func.region_count());
        let mut checker =
            Checker { shader, func, inst: None, scratch: &mut scratch, targets: Vec::new(), depth: 0 };
        if let Err(reason) = checker.function() {
            let inst = checker.inst;
            return bad(index, inst, reason);
        }
    }
    if let Err(reason) = calls(shader) {
        return bad(0, None, reason);
    }
    Ok(())
}

type Check = Result<(), String>;

fn interface(shader: &Shader) -> Check {
    let Some(entry) = shader.functions().first() else { return Err("there is no entry point".into()) };
    if !entry.results.is_empty() || !entry.params(entry.body()).is_empty() {
        return Err("the entry point has parameters or results".into());
    }
    for (id, node) in shader.types.iter() {
        let children = match node {
            TypeNode::Leaf(_) => &[][..],
            TypeNode::Array { element, .. } => std::slice::from_ref(element),
            TypeNode::Struct(members) => members,
        };
        if children.iter().any(|child| *child >= id) {
            return Err(format!("a child of {id} comes after it"));
        }
    }
    for (var, data) in shader.vars.iter() {
        if data.ty.index() >= shader.types.len() {
            return Err(format!("{var} has no type"));
        }
        if u32::from(data.component) >= SLOT_COMPONENTS {
            return Err(format!("the component of {var} is not 0 to 3"));
        }
        if data.index > MAX_SLOT_INDEX {
            return Err(format!("the index of {var} is more than {MAX_SLOT_INDEX}"));
        }
    }
    Ok(())
}

/// No function calls itself, not even through others.
fn calls(shader: &Shader) -> Check {
    let functions = shader.functions();
    // 0 not visited, 1 being visited, 2 done.
    let mut state = vec![0u8; functions.len()];
    for start in 0..functions.len() {
        let mut stack = vec![(start, false)];
        while let Some((at, done)) = stack.pop() {
            if done {
                state[at] = 2;
                continue;
            }
            match state[at] {
                1 => return Err(format!("f{at} is recursive")),
                2 => continue,
                _ => {}
            }
            state[at] = 1;
            stack.push((at, true));
            let func = &functions[at];
            for inst in func.walk() {
                if let Payload::Callee(callee) = func.payload(inst) {
                    match state[callee.index()] {
                        1 => return Err(format!("f{at} calls {callee}, which is recursive")),
                        0 => stack.push((callee.index(), false)),
                        _ => {}
                    }
                }
            }
        }
    }
    Ok(())
}

#[derive(Default)]
struct Scratch {
    visible: SecondaryMap<Value, bool>,
    seen: SecondaryMap<Region, bool>,
    /// Types of operands and results of the instruction at hand.
    args: Vec<Type>,
    results: Vec<Type>,
}

struct Checker<'a> {
    shader: &'a Shader,
    func: &'a Function,
    inst: Option<Inst>,
    scratch: &'a mut Scratch,
    targets: Vec<Inst>,
    depth: usize,
}

/// The tree of regions.
impl Checker<'_> {
    fn function(&mut self) -> Check {
        self.region(self.func.body(), RegionOwner::Function)
    }

    fn region(&mut self, region: Region, owner: RegionOwner) -> Check {
        if region.index() >= self.func.region_count() || self.scratch.seen[region] {
            return Err(format!("{region} does not exist, or is used twice"));
        }
        self.scratch.seen[region] = true;
        if self.func.owner(region) != owner {
            return Err(format!("{region} does not know its owner"));
        }
        self.depth += 1;
        if self.depth > MAX_LOWERED_DEPTH {
            return Err(format!("more than {MAX_LOWERED_DEPTH} regions are within each other"));
        }
        for &param in self.func.params(region) {
            self.scratch.visible[param] = true;
        }
        let mut ended = false;
        for inst in self.func.insts(region) {
            self.inst = Some(inst);
            if ended {
                return Err("an instruction follows a terminator".into());
            }
            if self.func.region(inst) != region || !self.func.is_linked(inst) {
                return Err("the instruction does not know its region".into());
            }
            self.check(inst)?;
            ended = self.func.op(inst).has(Traits::TERMINATOR);
        }
        if !ended {
            return Err(format!("{region} has no terminator"));
        }
        for &param in self.func.params(region) {
            self.scratch.visible[param] = false;
        }
        for inst in self.func.insts(region) {
            for &value in self.func.results(inst) {
                self.scratch.visible[value] = false;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn check(&mut self, inst: Inst) -> Check {
        let func = self.func;
        let mut types = |values: &[Value], memory: fn(&mut Scratch) -> &mut Vec<Type>| {
            let mut list = std::mem::take(memory(self.scratch));
            list.clear();
            list.extend(values.iter().map(|&value| func.ty(value)));
            list
        };
        let args = types(func.args(inst), |scratch| &mut scratch.args);
        let results = types(func.results(inst), |scratch| &mut scratch.results);
        let checked = self.check_types(inst, &args, &results);
        (self.scratch.args, self.scratch.results) = (args, results);
        checked
    }

    fn check_types(&mut self, inst: Inst, args: &[Type], results: &[Type]) -> Check {
        let (func, op, payload) = (self.func, self.func.op(inst), self.func.payload(inst));
        for &arg in func.args(inst) {
            if !self.scratch.visible[arg] {
                return Err(format!("{}: the operand {arg} is not visible here", op.name()));
            }
        }
        if PayloadForm::of(&payload) != PayloadForm::of_op(op) {
            return Err(format!("{} has the payload of another operation", op.name()));
        }
        if func.exact(inst) && !op.has(Traits::FLOAT) {
            return Err(format!("{} cannot be exact", op.name()));
        }
        if func.taken(inst) && op != Op::If {
            return Err(format!("{} cannot have the hint `+`, which is for `if`", op.name()));
        }
        let described = |reason: String| format!("{}: {reason}", op.name());
        match op {
            Op::Block | Op::If | Op::Loop => return self.structured(inst, args),
            Op::Break | Op::Continue => self.jump(inst, args).map_err(described)?,
            Op::Return if args == func.results => {}
            Op::Return => return Err("what is returned are not the function's results".into()),
            Op::Call => self.call(inst, args, results).map_err(described)?,
            _ => {
                fits(op, args, results).map_err(described)?;
                self.details(inst, args, results.first().copied()).map_err(described)?;
            }
        }
        for &value in func.results(inst) {
            self.scratch.visible[value] = true;
        }
        Ok(())
    }

    fn structured(&mut self, inst: Inst, args: &[Type]) -> Check {
        let func = self.func;
        let owner = RegionOwner::Inst(inst);
        self.targets.push(inst);
        match func.payload(inst) {
            Payload::Arms(then, other) => {
                if args != [Type::BOOL] {
                    return Err("if: the condition is not a boolean".into());
                }
                self.region(then, owner)?;
                self.region(other, owner)?;
            }
            Payload::Body(body) => {
                let params: Vec<Type> = func.params(body).iter().map(|&value| func.ty(value)).collect();
                if params != args {
                    return Err(format!("{}: operands and parameters differ", func.op(inst).name()));
                }
                self.region(body, owner)?;
            }
            _ => {}
        }
        self.targets.pop();
        for &value in func.results(inst) {
            self.scratch.visible[value] = true;
        }
        Ok(())
    }

    fn jump(&self, inst: Inst, args: &[Type]) -> Check {
        let func = self.func;
        let Payload::Target(target) = func.payload(inst) else { return Ok(()) };
        if !self.targets.contains(&target) {
            return Err("the target does not enclose it".into());
        }
        let wanted = if func.op(inst) == Op::Break {
            func.results(target)
        } else {
            match func.payload(target) {
                Payload::Body(body) if func.op(target) == Op::Loop => func.params(body),
                _ => return Err("the target is not a loop".into()),
            }
        };
        if wanted.iter().map(|&value| func.ty(value)).eq(args.iter().copied()) {
            Ok(())
        } else {
            Err("the operands do not fit the target".into())
        }
    }

    fn call(&self, inst: Inst, args: &[Type], results: &[Type]) -> Check {
        let Payload::Callee(callee) = self.func.payload(inst) else { return Ok(()) };
        let Some(callee) = self.shader.functions().get(callee.index()) else {
            return Err("there is no such function".into());
        };
        let params = callee.params(callee.body()).iter().map(|&value| callee.ty(value));
        if params.eq(args.iter().copied()) && callee.results == results {
            Ok(())
        } else {
            Err("operands or results do not fit the function".into())
        }
    }
}

/// Types by the table.
pub(crate) fn fits(op: Op, args: &[Type], results: &[Type]) -> Check {
    let row = op.row();
    if args.len() < row.operands.len() {
        return Err(format!("{} operands are missing", row.operands.len() - args.len()));
    }
    if results.len() != usize::from(row.result.is_some()) {
        return Err("the number of results is wrong".into());
    }
    let typed = row.operands.iter().copied().zip(args.iter().copied());
    let typed = typed.chain(row.result.into_iter().zip(results.iter().copied()));
    let t = typed.clone().find(|(rule, _)| matches!(rule, Rule::T(_))).map(|(_, ty)| ty);
    // Operations whose operands are all converted have the lanes of their result.
    let t = t.or(results.first().copied()).unwrap_or(Type::B32);
    for (rule, ty) in typed {
        let fits = match rule {
            Rule::T(set) => ty == t && set.has(ty.base),
            Rule::Lanes(base) => ty == t.with_base(base),
            Rule::LanesOf(set) => ty.lanes == t.lanes && set.has(ty.base),
            Rule::Scalar(base) => ty == Type::scalar(base),
            Rule::Quad => ty == Type { base: Base::B32, lanes: 4 },
            Rule::Pair => ty == Type { base: Base::B32, lanes: 2 },
            Rule::LaneOfT => ty == t.lane(),
            Rule::Any => true,
        };
        if !fits {
            return Err(format!("the type {ty} is wrong"));
        }
    }
    Ok(())
}

fn expect(holds: bool, reason: &str) -> Check {
    if holds { Ok(()) } else { Err(reason.to_owned()) }
}

/// A descriptor: a handle, or the words that lowering makes of it.
fn is_descriptor(ty: Type) -> bool {
    matches!(ty.base, Base::Handle | Base::B32 | Base::B64)
}

/// What the table does not say.
impl Checker<'_> {
    fn details(&self, inst: Inst, args: &[Type], result: Option<Type>) -> Check {
        let (func, op) = (self.func, self.func.op(inst));
        let fixed = op.row().operands.len();
        match (func.payload(inst), result) {
            (Payload::Const(bits), Some(ty)) => {
                expect(ty.lanes == 1 && BaseSet::BITS.has(ty.base), "a constant is a scalar")?;
                expect(bits & !ty.base.mask() == 0, "bits above the width are set")?;
            }
            (Payload::Lane(lane), Some(ty)) => {
                expect(lane < args[0].lanes && ty == args[0].lane(), "the lane does not fit the vector")?;
            }
            (Payload::SysVal(value), Some(ty)) => {
                expect(ty == value.ty(), "the type is not that of the value")?
            }
            (Payload::Resource(resource, _), Some(ty)) => {
                expect(resource.index() < self.shader.resources.len(), "there is no such binding")?;
                expect(ty == Type::HANDLE, "a descriptor is a handle")?;
            }
            (Payload::Var(var, mask), _) => {
                let moved = result.unwrap_or_else(|| args[0]);
                self.path(var, &func.args(inst)[fixed..], moved)?;
                let lanes = if op == Op::StoreVar { (1u32 << moved.lanes) - 1 } else { 0 };
                expect(u32::from(mask) & !lanes == 0, "the mask has lanes that the value does not have")?;
                let input = self.shader.vars[var].storage == Storage::Input;
                expect(op != Op::StoreVar || !input, "inputs are only read")?;
                return Ok(());
            }
            (Payload::Interp(var, at), Some(ty)) => {
                let extra = usize::from(at.has_operand());
                expect(args.len() >= extra, "the sample or offset is missing")?;
                self.path(var, &func.args(inst)[extra..], ty)?;
                let input = self.shader.vars[var].storage == Storage::Input;
                return expect(input, "only inputs are interpolated");
            }
            (Payload::Mem(mem) | Payload::Atomic(_, mem), _) => {
                let moved = if op == Op::Store { args[0] } else { result.unwrap_or(Type::B32) };
                expect(BaseSet::INT.has(moved.base), "only integers and floats are in memory")?;
                let natural = moved.base.bytes().trailing_zeros();
                expect(mem.align < 32 && u32::from(mem.align) >= natural, "the alignment is too small")?;
                return address(mem.space, &args[fixed..]);
            }
            (Payload::Slot(slot), _) => {
                if op != Op::LoadInterpolated {
                    let wanted = 1 + usize::from(slot.vertex);
                    expect(args[fixed..] == [Type::B32, Type::B32][..wanted], "vertex or offset is wrong")?;
                } else {
                    expect(args.len() == fixed, "there are too many operands")?;
                }
                let moved = if op == Op::StoreSlot { args[0] } else { result.unwrap_or(Type::B32) };
                return slot_lanes(op, slot, moved);
            }
            (Payload::Typed(typed), Some(ty)) => {
                let format = matches!(typed.bits, 8 | 16 | 32) && ty.lanes <= typed.lanes && typed.lanes <= 4;
                expect(ty.base == Base::B32 && format, "a format that is not one of vertices")?;
                expect(typed.align < 32, "the alignment is too large")?;
                expect(is_descriptor(args[0]), "the operand is not a descriptor")?;
            }
            (Payload::Bary(at, _), _) => {
                let wanted: &[Type] = match at.name() {
                    "at_sample" => &[Type::B32],
                    "at_offset" => &[Type { base: Base::B32, lanes: 2 }],
                    _ => &[],
                };
                return expect(args == wanted, "the sample or offset is wrong");
            }
            (Payload::Image(image) | Payload::ImageAtomic(_, image), _) => {
                level_flags(op, image.flags, self.shader.info.has_derivatives())?;
                return image_operands(op, image, args, result);
            }
            (Payload::Reduce(op, cluster), Some(ty)) => {
                let known = crate::semantics::identity(op, ty.base).is_some();
                expect(known, "the operation has no identity for this type")?;
                let computes = fits(op, &[ty, ty], &[ty]).is_ok();
                expect(computes, "the operation does not compute this type")?;
                expect(cluster == 0 || cluster.is_power_of_two(), "a cluster is a power of two")?;
            }
            _ => {}
        }
        match op {
            Op::Vec => {
                let ty = result.unwrap_or(Type::B32);
                expect(ty.lanes > 1 && args.len() == usize::from(ty.lanes), "the number of lanes is wrong")?;
                return expect(args.iter().all(|arg| *arg == ty.lane()), "a lane has another type");
            }
            Op::Bitcast => {
                let ty = result.unwrap_or(Type::B32);
                let bits = |ty: Type| if BaseSet::INT.has(ty.base) { ty.bits() } else { 0 };
                expect(bits(ty) != 0 && bits(ty) == bits(args[0]), "the sizes differ")?;
            }
            Op::BufferSize => expect(is_descriptor(args[0]), "the operand is not a descriptor")?,
            Op::AmdDescriptor => {
                let words = args[0].base == Base::B32 && matches!(args[0].lanes, 4 | 8);
                expect(words && result == Some(Type::HANDLE), "four or eight words are a descriptor")?;
            }
            Op::AmdIntersectRay => {
                let vectors = args[3..].iter().all(|ty| *ty == Type { base: Base::B32, lanes: 3 });
                expect(vectors && is_descriptor(args[0]), "the parts of the ray are wrong")?;
            }
            Op::AmdRegister | Op::AmdLoadScalar => {
                let ty = result.unwrap_or(Type::BOOL);
                expect(ty.base == Base::B32, "the result does not have words")?;
            }
            Op::AmdLoadBuffer | Op::AmdStoreBuffer => {
                let moved = result.unwrap_or_else(|| args[0]);
                let descriptor = args[fixed - 4];
                expect(moved.base == Base::B32 && moved.lanes <= 4, "more than four words, or no words")?;
                expect(is_descriptor(descriptor), "the operand is not a descriptor")?;
            }
            _ => {}
        }
        expect(args.len() == fixed, "there are too many operands")
    }

    /// A path from a variable leads to a leaf of a type.
    fn path(&self, var: Var, path: &[Value], leaf: Type) -> Check {
        let Some(data) = self.shader.vars.get(var) else { return Err("there is no such variable".into()) };
        let mut ty: TypeId = data.ty;
        for &index in path {
            expect(self.func.ty(index) == Type::B32, "an index does not have 32 bits")?;
            ty = match &self.shader.types[ty] {
                TypeNode::Leaf(_) => return Err("the path is too long".into()),
                TypeNode::Array { element, .. } => *element,
                TypeNode::Struct(members) => {
                    let member = self.func.const_bits(index).and_then(|bits| members.get(bits as usize));
                    *member.ok_or("a member is not a constant, or does not exist")?
                }
            };
        }
        match self.shader.types[ty] {
            TypeNode::Leaf(ty) if ty == leaf => Ok(()),
            TypeNode::Leaf(ty) => Err(format!("the leaf has the type {ty}")),
            _ => Err("the path does not lead to a leaf".into()),
        }
    }
}

fn address(space: Space, args: &[Type]) -> Check {
    let fits = match (space, args) {
        (Space::Uniform | Space::Storage, [descriptor, offset]) => {
            is_descriptor(*descriptor) && *offset == Type::B32
        }
        (Space::Global, [address]) => *address == Type::B64,
        (Space::Push | Space::Shared | Space::Scratch, [offset]) => *offset == Type::B32,
        _ => false,
    };
    expect(fits, "the address is wrong")
}

fn slot_lanes(op: Op, slot: SlotAccess, moved: Type) -> Check {
    expect(
        op == Op::LoadSlot || slot.dir == if op == Op::StoreSlot { SlotDir::Output } else { SlotDir::Input },
        "the direction is wrong",
    )?;
    let fits = BaseSet::BITS.has(moved.base) && moved.base != Base::B1;
    expect(fits, "a slot cannot hold a descriptor or a boolean")?;
    let counts = (1..=MAX_ACCESS_SLOTS).contains(&slot.count);
    expect(counts && slot.slot.checked_add(slot.count).is_some(), "the number of slots is wrong")?;
    expect(slot.index <= MAX_SLOT_INDEX, "the index is too large")?;
    expect(op != Op::LoadInterpolated || !slot.vertex, "an interpolated load has no vertex")?;
    let floats = matches!(moved.base, Base::B16 | Base::B32);
    expect(op != Op::LoadInterpolated || floats, "only floats of 16 and 32 bits are interpolated")?;
    let end = u32::from(slot.component) + u32::from(moved.lanes) * moved.lane_components();
    expect(end <= SLOT_COMPONENTS, "the lanes do not fit the slot")
}

/// A level is given in at most one way. A least level bounds the level that derivatives give.
fn level_flags(op: Op, flags: ImageFlags, has_derivatives: bool) -> Check {
    let given = [ImageFlags::BIAS, ImageFlags::LOD, ImageFlags::GRAD];
    let given = given.into_iter().filter(|flag| flags.has(*flag)).count();
    expect(given <= 1, "bias, level and derivatives exclude each other")?;
    let least = flags.has(ImageFlags::MIN_LOD);
    expect(!least || !flags.has(ImageFlags::LOD), "an explicit level has no least level")?;
    let derivatives = has_derivatives || flags.has(ImageFlags::GRAD);
    expect(!least || op != Op::ImageSample || derivatives, "a least level needs derivatives")
}

fn image_operands(op: Op, image: ImageAccess, args: &[Type], result: Option<Type>) -> Check {
    let fixed = op.row().operands.len();
    let sampled = matches!(op, Op::ImageSample | Op::ImageGather | Op::ImageQueryLod);
    let queries = matches!(op, Op::ImageSize | Op::ImageLevels | Op::ImageSamples | Op::ImageQueryLod);
    let first = match op {
        Op::ImageStore | Op::ImageAtomic => 1,
        Op::ImageAtomicCompare => 2,
        _ => 0,
    };
    let descriptors = if sampled { 2 } else { 1 };
    let fits = args[first..first + descriptors].iter().all(|ty| is_descriptor(*ty));
    expect(fits, "the image or sampler is not a descriptor")?;
    let moves = image.flags.has(ImageFlags::OFFSET);
    expect(!moves || !matches!(image.dim, Dim::Cube | Dim::Buffer), "the image has no texel offsets")?;
    let layers = u8::from(image.flags.has(ImageFlags::ARRAY));
    let faces = image.flags.has(ImageFlags::FACES);
    expect(!faces || image.dim == Dim::Cube && layers == 0, "only cubes have faces")?;
    if !matches!(op, Op::ImageSize | Op::ImageLevels | Op::ImageSamples) {
        // The layer of a query does not matter.
        let lanes = image.dim.coordinates() + if op == Op::ImageQueryLod { 0 } else { layers };
        expect(args[fixed - 1].lanes == lanes, "the number of coordinates is wrong")?;
        let words = args[fixed - 1..].iter().all(|ty| ty.base == Base::B32);
        expect(words, "coordinates and what follows them have 32 bits")?;
    }
    if op == Op::ImageSize {
        let lanes = if image.dim == Dim::Cube { 2 } else { image.dim.coordinates() } + layers;
        expect(result == Type::new(Base::B32, lanes.into()), "the number of sizes is wrong")?;
    }
    let extra = if queries { 0 } else { image.flags.operands() };
    expect(args.len() == fixed + extra, "operands do not fit the flags")
}
