//! Small dynamically indexed arrays: takes any shader; leaves fewer of them. A load becomes loads of all elements of which the index chooses one, a store
//! stores to all elements what they have, or the value. Vectors of which a dynamically indexed lane is written are treated in the same way, and so are lanes
//! of booleans and 64 bits that are read by a dynamic index. Instruction selection handles the others.

use unwedge_shader::ir::{Base, Builder, Function, Inst, Op, Payload, Shader, Storage, TypeNode, Value};

/// The most elements of an array.
const MAX_ELEMENTS: u32 = 32;
/// The most instructions that are written.
const MAX_WRITTEN: usize = 1 << 15;

/// An access, which of its operands is the index, and the length of the array.
struct IndexedAccess {
    inst: Inst,
    operand: usize,
    len: u32,
}

/// Replaces indices with selects. Returns whether there was one.
pub(super) fn expand(shader: &mut Shader) -> bool {
    let mut written = 0;
    let mut changed = false;
    'written: loop {
        let found = accesses(shader);
        let func = shader.entry_mut();
        let mut any = false;
        for access in found {
            written += access.len as usize * 5;
            if written > MAX_WRITTEN {
                break 'written;
            }
            any = true;
            match func.op(access.inst) {
                Op::LoadVar => load(func, &access),
                _ => store(func, &access),
            }
            changed = true;
        }
        if !any {
            break;
        }
    }
    choose_lanes(shader) | changed
}

/// Replaces dynamically indexed lanes. Returns whether there was one.
pub(super) fn choose_lanes(shader: &mut Shader) -> bool {
    let func = shader.entry_mut();
    insert_lanes(func) | extract_lanes(func)
}

/// Accesses to arrays of the invocation through an index that is not a constant: the outermost of each.
fn accesses(shader: &Shader) -> Vec<IndexedAccess> {
    let func = shader.entry();
    let mut found = Vec::new();
    for inst in func.walk() {
        let Payload::Var(var, _) = func.payload(inst) else { continue };
        let data = &shader.vars[var];
        if !matches!(data.storage, Storage::Function | Storage::Private) {
            continue;
        }
        let first = usize::from(func.op(inst) == Op::StoreVar);
        let mut ty = data.ty;
        for (operand, index) in func.args(inst).iter().enumerate().skip(first) {
            match &shader.types[ty] {
                TypeNode::Array { element, len } => {
                    if func.const_bits(*index).is_none() {
                        if (1..=MAX_ELEMENTS).contains(len) {
                            found.push(IndexedAccess { inst, operand, len: *len });
                        }
                        break;
                    }
                    ty = *element;
                }
                TypeNode::Struct(members) => {
                    let member = func.const_bits(*index).and_then(|bits| members.get(bits as usize));
                    let Some(member) = member else { break };
                    ty = *member;
                }
                TypeNode::Leaf(_) => break,
            }
        }
    }
    found
}

/// Whether the index is a given number, for all lanes of a value.
fn is_element(b: &mut Builder, index: Value, number: Value, lanes: u8) -> Value {
    let same = b.alu(Op::IEq, &[index, number]);
    b.splat(same, lanes)
}

fn load(func: &mut Function, access: &IndexedAccess) {
    let inst = access.inst;
    let (payload, mut args) = (func.payload(inst), func.args(inst).to_vec());
    let result = func.result(inst);
    let ty = func.ty(result);
    let index = args[access.operand];
    let mut b = Builder::before(func, inst);
    let mut chosen = None;
    for element in 0..access.len {
        let number = b.u32(element);
        args[access.operand] = number;
        let loaded = b.value(Op::LoadVar, payload, &args, ty);
        chosen = Some(match chosen {
            None => loaded,
            Some(others) => {
                let is_it = is_element(&mut b, index, number, ty.lanes);
                b.alu(Op::Select, &[is_it, loaded, others])
            }
        });
    }
    let Some(chosen) = chosen else { return };
    func.replace_values(|value| if value == result { chosen } else { value });
    func.unlink(inst);
}

fn store(func: &mut Function, access: &IndexedAccess) {
    let inst = access.inst;
    let Payload::Var(var, _) = func.payload(inst) else { return };
    let (payload, mut args) = (func.payload(inst), func.args(inst).to_vec());
    let (value, index) = (args[0], args[access.operand]);
    let ty = func.ty(value);
    let mut b = Builder::before(func, inst);
    for element in 0..access.len {
        let number = b.u32(element);
        args[access.operand] = number;
        let old = b.value(Op::LoadVar, Payload::Var(var, 0), &args[1..], ty);
        let is_it = is_element(&mut b, index, number, ty.lanes);
        args[0] = b.alu(Op::Select, &[is_it, value, old]);
        b.inst(Op::StoreVar, payload, &args, &[]);
    }
    func.unlink(inst);
}

/// Vectors of which a dynamically indexed lane is replaced.
fn insert_lanes(func: &mut Function) -> bool {
    let insts: Vec<Inst> = func.walk().filter(|inst| func.op(*inst) == Op::InsertDyn).collect();
    for &inst in &insts {
        let (args, result) = (func.args(inst).to_vec(), func.result(inst));
        let lanes = func.ty(result).lanes;
        let mut b = Builder::before(func, inst);
        let parts: Vec<Value> = (0..lanes)
            .map(|lane| {
                let number = b.u32(lane.into());
                let old = b.extract(args[0], lane);
                let is_it = b.alu(Op::IEq, &[args[2], number]);
                b.alu(Op::Select, &[is_it, args[1], old])
            })
            .collect();
        let new = b.vec(&parts);
        func.replace_values(|value| if value == result { new } else { value });
        func.unlink(inst);
    }
    !insts.is_empty()
}

/// Dynamically indexed lanes of booleans and of 64 bits.
fn extract_lanes(func: &mut Function) -> bool {
    let is_chosen = |func: &Function, inst: Inst| {
        let base = || func.ty(func.result(inst)).base;
        func.op(inst) == Op::ExtractDyn && (base() == Base::B1 || base().bits() == 64)
    };
    let insts: Vec<Inst> = func.walk().filter(|inst| is_chosen(func, *inst)).collect();
    for &inst in &insts {
        let (args, result) = (func.args(inst).to_vec(), func.result(inst));
        let lanes = func.ty(args[0]).lanes;
        let mut b = Builder::before(func, inst);
        let mut chosen = b.extract(args[0], 0);
        for lane in 1..lanes {
            let (number, other) = (b.u32(lane.into()), b.extract(args[0], lane));
            let is_it = b.alu(Op::IEq, &[args[1], number]);
            chosen = b.alu(Op::Select, &[is_it, other, chosen]);
        }
        func.replace_values(|value| if value == result { chosen } else { value });
        func.unlink(inst);
    }
    !insts.is_empty()
}
