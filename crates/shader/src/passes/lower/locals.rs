//! Lowers local variables to scratch memory: takes any shader; afterwards accesses to function and private variables are loads and stores of
//! scratch memory. Accesses to descriptors, and to variables that do not fit, stay.
//!
//! It belongs after the pass `variables`, which makes values of all variables with constant paths. Every variable that is accessed gets bytes
//! of its own after the scratch memory that the shader has; the calls of a function share those of its variables. The elements of a
//! type follow each other. A leaf is aligned to the largest power of two that divides its size, but to no more than 16 bytes, and a
//! boolean has 32 bits.
//!
//! Indices of loads that are not constant are limited to the last element, and those of stores are compared with the length of the array,
//! because a load past the end is undefined and a store there does nothing. `ranges` removes what known bounds decide.

use crate::ir::{
    Access, Base, Builder, Function, Inst, MemAccess, Op, Payload, Shader, Space, Storage, Type, TypeId,
    TypeNode, Value, Var,
};
use crate::substitution::Substitution;
use unwedge_base::entity::{PrimaryMap, SecondaryMap};

/// The most bytes of all variables together.
const MAX_BYTES: u64 = 1 << 16;

/// The largest alignment.
const MAX_ALIGN: u64 = 16;

/// The most lanes of a store that does not store all lanes of a leaf.
const MAX_RUN: u8 = 4;

/// Lowers local variables.
pub fn lower_locals(shader: &mut Shader) -> bool {
    let sizes = sizes(&shader.types);
    let mut layout =
        Layout { starts: SecondaryMap::default(), size: shader.info.scratch_size.into(), used: 0 };
    let mut planned = Vec::new();
    for func in shader.functions() {
        let accesses = func.walk().filter_map(|inst| Some((inst, layout.leaf(shader, &sizes, func, inst)?)));
        planned.push(accesses.collect::<Vec<_>>());
    }
    let mut changed = false;
    for (func, leaves) in shader.functions_mut().iter_mut().zip(&planned) {
        let mut substitution = Substitution::default();
        for (inst, leaf) in leaves {
            lower(func, *inst, leaf, &mut substitution);
        }
        substitution.apply(func);
        changed |= !leaves.is_empty();
    }
    shader.info.scratch_size = layout.size as u32;
    changed
}

/// The size of a type in memory, and its alignment.
#[derive(Debug, Clone, Copy, Default)]
struct TypeSize {
    size: u64,
    align: u64,
}

impl TypeSize {
    fn padded(self, offset: u64) -> u64 {
        offset.checked_next_multiple_of(self.align.max(1)).unwrap_or(u64::MAX)
    }
}

/// The type that a value has in memory.
fn memory_type(ty: Type) -> Type {
    if ty.base == Base::B1 { ty.with_base(Base::B32) } else { ty }
}

/// The size of each type. Children come before parents.
fn sizes(types: &PrimaryMap<TypeId, TypeNode>) -> SecondaryMap<TypeId, TypeSize> {
    let mut sizes = SecondaryMap::<TypeId, TypeSize>::default();
    for (id, node) in types.iter() {
        sizes[id] = match node {
            TypeNode::Leaf(ty) => {
                let size = u64::from(memory_type(*ty).bits() / 8);
                TypeSize { size, align: (size & size.wrapping_neg()).clamp(1, MAX_ALIGN) }
            }
            TypeNode::Array { element, len } => {
                let TypeSize { size, align } = sizes[*element];
                TypeSize { size: size.saturating_mul((*len).into()), align }
            }
            TypeNode::Struct(members) => {
                let align = members.iter().map(|member| sizes[*member].align).max().unwrap_or(1);
                let size = members.iter().fold(0, |at, member| after_member(&sizes, at, *member));
                TypeSize { size: TypeSize { size, align }.padded(size), align }
            }
        };
    }
    sizes
}

/// The first byte after a member of a struct that follows some bytes.
fn after_member(sizes: &SecondaryMap<TypeId, TypeSize>, at: u64, member: TypeId) -> u64 {
    sizes[member].padded(at).saturating_add(sizes[member].size)
}

/// A dynamic index.
#[derive(Debug, Clone, Copy)]
struct Index {
    value: Value,
    len: u32,
    stride: u32,
}

/// Where a leaf is.
#[derive(Debug)]
struct Leaf {
    ty: Type,
    /// Its first byte if all dynamic indices are 0.
    start: u32,
    indices: Vec<Index>,
    /// Whether a constant index is past the end of its array.
    outside: bool,
    align: u8,
}

struct Layout {
    /// The start of each variable that was accessed; the inner `None` if it does not fit.
    starts: SecondaryMap<Var, Option<Option<u64>>>,
    /// Bytes of scratch memory.
    size: u64,
    /// Bytes of variables.
    used: u64,
}

impl Layout {
    /// Where a variable starts; `None` if it does not fit.
    fn start(&mut self, var: Var, size: u64) -> Option<u64> {
        if let Some(start) = self.starts[var] {
            return start;
        }
        let start = self.size.next_multiple_of(MAX_ALIGN);
        let end = start.saturating_add(size);
        let fits = self.used.saturating_add(size) <= MAX_BYTES && end <= u32::MAX.into();
        self.starts[var] = Some(fits.then_some(start));
        if !fits {
            return None;
        }
        self.used += size;
        self.size = end;
        Some(start)
    }

    /// Where the leaf that an instruction accesses is; `None` if the instruction stays.
    fn leaf(
        &mut self,
        shader: &Shader,
        sizes: &SecondaryMap<TypeId, TypeSize>,
        func: &Function,
        inst: Inst,
    ) -> Option<Leaf> {
        let Payload::Var(var, _) = func.payload(inst) else { return None };
        let stores = func.op(inst) == Op::StoreVar;
        let ty = func.ty(if stores { func.args(inst)[0] } else { func.result(inst) });
        let data = &shader.vars[var];
        if !matches!(data.storage, Storage::Function | Storage::Private) || ty.base == Base::Handle {
            return None;
        }
        let mut at = self.start(var, sizes[data.ty].size)?;
        let mut leaf = Leaf { ty, start: 0, indices: Vec::new(), outside: false, align: 0 };
        let mut node = data.ty;
        for &index in &func.args(inst)[usize::from(stores)..] {
            let constant = func.const_bits(index);
            match &shader.types[node] {
                TypeNode::Leaf(_) => return None,
                TypeNode::Struct(members) => {
                    let member = constant? as usize;
                    let before = members.get(..member)?.iter();
                    let offset = before.fold(0, |at, before| after_member(sizes, at, *before));
                    node = *members.get(member)?;
                    at = at.saturating_add(sizes[node].padded(offset));
                }
                TypeNode::Array { element, len } => {
                    node = *element;
                    let stride = sizes[node].size;
                    match constant {
                        Some(bits) if bits < u64::from(*len) => at = at.saturating_add(bits * stride),
                        None if *len > 0 => {
                            leaf.indices.push(Index { value: index, len: *len, stride: stride as u32 });
                        }
                        _ => leaf.outside = true,
                    }
                }
            }
        }
        leaf.align = sizes[node].align.trailing_zeros() as u8;
        // It is past the end of the variable only if an index is past the end of its array.
        leaf.start = u32::try_from(at).unwrap_or(u32::MAX);
        Some(leaf)
    }
}

fn lower(func: &mut Function, inst: Inst, leaf: &Leaf, substitution: &mut Substitution) {
    if let (Op::StoreVar, Payload::Var(_, mask)) = (func.op(inst), func.payload(inst)) {
        if !leaf.outside {
            store(func, inst, leaf, mask);
        }
        return func.unlink(inst);
    }
    let mut b = Builder::before(func, inst);
    let value = if leaf.outside { b.undef(leaf.ty) } else { load(&mut b, leaf) };
    super::replace(func, inst, value, substitution);
}

fn scratch(align: u8) -> Payload {
    Payload::Mem(MemAccess { space: Space::Scratch, access: Access::NONE, align })
}

impl Leaf {
    /// The offset of the leaf's first byte.
    fn offset(&self, b: &mut Builder, limited: bool) -> Value {
        let mut offset = b.u32(self.start);
        for index in &self.indices {
            let mut number = index.value;
            if limited {
                let last = b.u32(index.len - 1);
                number = b.alu(Op::UMin, &[number, last]);
            }
            let stride = b.u32(index.stride);
            let bytes = b.alu(Op::IMul, &[number, stride]);
            offset = b.alu(Op::IAdd, &[bytes, offset]);
        }
        offset
    }
}

fn load(b: &mut Builder, leaf: &Leaf) -> Value {
    let offset = leaf.offset(b, true);
    let ty = memory_type(leaf.ty);
    let loaded = b.value(Op::Load, scratch(leaf.align), &[offset], ty);
    if ty == leaf.ty {
        return loaded;
    }
    let zero = b.splat_constant(ty, 0);
    b.alu(Op::INe, &[loaded, zero])
}

fn store(func: &mut Function, inst: Inst, leaf: &Leaf, mask: u16) {
    let value = func.args(inst)[0];
    let loc = func.loc(inst);
    let mut b = Builder::before(func, inst);
    let mut inside = None;
    for index in &leaf.indices {
        let len = b.u32(index.len);
        let fits = b.alu(Op::ULt, &[index.value, len]);
        inside = Some(match inside {
            Some(others) => b.alu(Op::IAnd, &[others, fits]),
            None => fits,
        });
    }
    let Some(inside) = inside else { return store_lanes(&mut b, leaf, value, mask) };
    let (check, then, other) = b.if_(inside, &[]);
    let mut b = Builder::at_end(func, then);
    b.loc = loc;
    store_lanes(&mut b, leaf, value, mask);
    b.break_(check, &[]);
    Builder::at_end(func, other).break_(check, &[]);
}

/// Stores the lanes of a mask: all at once, or runs of adjacent ones.
fn store_lanes(b: &mut Builder, leaf: &Leaf, value: Value, mask: u16) {
    let ty = memory_type(leaf.ty);
    let value = if ty == leaf.ty {
        value
    } else {
        let (zero, one) = (b.splat_constant(ty, 0), b.splat_constant(ty, 1));
        b.alu(Op::Select, &[value, one, zero])
    };
    let offset = leaf.offset(b, false);
    let lanes = ty.lanes;
    if u32::from(mask) == (1 << lanes) - 1 {
        b.inst(Op::Store, scratch(leaf.align), &[value, offset], &[]);
        return;
    }
    let has = |lane: u8| mask >> lane & 1 != 0;
    let mut first = 0;
    while first < lanes {
        let len = (first..lanes.min(first + MAX_RUN)).take_while(|&lane| has(lane)).count() as u8;
        if len > 0 {
            let run: Vec<Value> = (first..first + len).map(|lane| b.extract(value, lane)).collect();
            let run = b.vec(&run);
            let bytes = u32::from(first) * ty.base.bytes();
            let step = b.u32(bytes);
            let at = if bytes == 0 { offset } else { b.alu(Op::IAdd, &[offset, step]) };
            let align = leaf.align.min(bytes.trailing_zeros() as u8);
            b.inst(Op::Store, scratch(align), &[run, at], &[]);
        }
        first += len.max(1);
    }
}
