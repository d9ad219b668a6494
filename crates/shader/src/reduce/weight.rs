//! The weight of a shader, which every accepted edit makes less. Lines of the text count most.

use super::edit::{is_constant, is_constant_value};
use crate::ir::{Access, Function, Inst, Op, Payload, Shader, ShaderInfo, Traits};

/// An instruction that computes something.
const INST: u64 = 100;
/// A constant, or a vector of them.
const CONSTANT: u64 = 20;

/// The weight of a shader.
pub(super) fn of(shader: &Shader) -> u64 {
    let functions: u64 = shader.functions().iter().map(|func| INST * 2 + function(func)).sum();
    let vars: u64 = shader.vars.values().map(|var| INST / 2 + name(&var.name)).sum();
    let resources: u64 = shader.resources.values().map(|of| INST / 2 + name(&of.name)).sum();
    let types = 5 * shader.types.len() as u64;
    let positions = (shader.locs.len() + shader.files.len()) as u64;
    functions + vars + resources + types + positions + info(&shader.info)
}

fn name(name: &str) -> u64 {
    u64::from(!name.is_empty())
}

fn info(info: &ShaderInfo) -> u64 {
    let default = ShaderInfo::default();
    let differs = [
        info.workgroup_size != default.workgroup_size,
        info.shared_size != 0,
        info.scratch_size != 0,
        info.push_size != 0,
        info.float_modes != default.float_modes,
        info.modes != default.modes,
    ];
    differs.into_iter().map(u64::from).sum()
}

fn function(func: &Function) -> u64 {
    name(&func.name) + func.walk().map(|inst| instruction(func, inst)).sum::<u64>()
}

fn instruction(func: &Function, inst: Inst) -> u64 {
    let results =
        func.results(inst).iter().map(|&value| 2 + 2 * u64::from(func.ty(value).lanes)).sum::<u64>();
    let position = u64::from(func.loc(inst).is_some());
    if is_constant(func, inst) {
        let bits = match func.payload(inst) {
            Payload::Const(bits) => 64 - u64::from(bits.leading_zeros()),
            _ => 0,
        };
        return CONSTANT + results + bits + position;
    }
    let operands =
        func.args(inst).iter().map(|&arg| if is_constant_value(func, arg) { 1 } else { 3 }).sum::<u64>();
    let structured = if func.op(inst).has(Traits::STRUCTURED) { INST } else { 0 };
    let exact = u64::from(func.exact(inst));
    let binding = if func.op(inst) == Op::Descriptor { 1 } else { 0 };
    INST + structured + results + operands + exact + binding + access(func.payload(inst)) + position
}

fn access(payload: Payload) -> u64 {
    let access = match payload {
        Payload::Mem(mem) | Payload::Atomic(_, mem) => mem.access,
        Payload::Image(image) | Payload::ImageAtomic(_, image) => image.access,
        Payload::Resource(_, access) => access,
        _ => Access::NONE,
    };
    Access::ALL.iter().filter(|(flag, _)| access.has(*flag)).count() as u64
}
