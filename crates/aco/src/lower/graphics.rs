//! Lowering of graphics stages: takes a valid shader of a stage other than compute; leaves it with one end, before which all its outputs are
//! stored in interface slots, and with inputs in interface slots.
//!
//! A fragment that is terminated becomes a helper that goes to the end. Where parameters are loaded into the lanes of a quad (gfx11 on), inputs of fragments are loaded
//! first, while all lanes of a quad are active.

use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::ir::{Builder, Function, Inst, Op, Payload, Shader, SlotDir, Stage, Value};
use unwedge_shader::passes::{collect_outputs, lower_derivatives, lower_io, standard};

/// Lowers inputs and outputs.
pub(super) fn lower_interface(shader: &mut Shader, generation: Gfx) {
    let fragment = shader.info.stage == Stage::Fragment;
    for func in shader.functions_mut() {
        single_end(func, fragment);
    }
    collect_outputs(shader);
    standard(shader);
    lower_io(shader);
    lower_derivatives(shader);
    standard(shader);
    if fragment && generation >= Gfx::Gfx11 {
        load_first(shader.entry_mut());
    }
}

/// Makes the last instruction the only one that ends an invocation.
fn single_end(func: &mut Function, fragment: bool) {
    let body = func.body();
    let ends = |func: &Function, inst: Inst| match func.op(inst) {
        Op::Return => true,
        Op::Terminate => fragment,
        _ => false,
    };
    let all: Vec<Inst> = func.walk().filter(|inst| ends(func, *inst)).collect();
    let last = func.last(body);
    if all.iter().all(|inst| Some(*inst) == last && func.op(*inst) == Op::Return) {
        return;
    }
    let insts: Vec<Inst> = func.insts(body).collect();
    let (block, region) = Builder::at_end(func, body).block(&[]);
    for inst in insts {
        func.unlink(inst);
        func.append(region, inst);
    }
    for inst in all {
        if func.op(inst) == Op::Terminate {
            Builder::before(func, inst).inst(Op::Demote, Payload::None, &[], &[]);
        }
        func.replace_inst(inst, Op::Break, Payload::Target(block), &[]);
    }
    Builder::at_end(func, body).return_(&[]);
}

/// Whether an instruction loads an input of a fragment, or its coordinates.
fn loads_input(func: &Function, inst: Inst) -> bool {
    match (func.op(inst), func.payload(inst)) {
        (Op::LoadInterpolated | Op::LoadSlot, Payload::Slot(access)) => access.dir == SlotDir::Input,
        (Op::Barycentric, Payload::Bary(at, _)) => !at.has_operand(),
        _ => false,
    }
}

/// Moves loads of inputs whose operands are constants or coordinates to the start.
fn load_first(func: &mut Function) {
    let loads: Vec<Inst> = func.walk().filter(|inst| loads_input(func, *inst)).collect();
    let is_const = |func: &Function, value: Value| func.const_bits(value);
    let mut at = func.first(func.body());
    let mut moved: Vec<Inst> = Vec::new();
    for inst in loads {
        let args = func.args(inst).to_vec();
        let early = args.iter().all(|arg| {
            is_const(func, *arg).is_some()
                || func.def_inst(*arg).is_some_and(|source| moved.contains(&source))
        });
        let Some(first) = at.filter(|_| early) else { continue };
        let new: Vec<Value> = args
            .iter()
            .map(|arg| match is_const(func, *arg) {
                Some(bits) => {
                    let base = func.ty(*arg).base;
                    Builder::before(func, first).constant(base, bits)
                }
                None => *arg,
            })
            .collect();
        func.set_args(inst, &new);
        if first == inst {
            at = func.next(inst);
        } else {
            func.unlink(inst);
            func.insert_before(first, inst);
        }
        moved.push(inst);
    }
}
