//! What the descriptors of messages say, as Mesa prints it.

use super::inst::{GEN8, GEN9, GEN125, Instruction, XE2};
use super::tables as names;
use super::text::{self, Text};

/// Bits of a descriptor.
const fn bits(descriptor: u32, high: u32, low: u32) -> u32 {
    descriptor >> low & (u32::MAX >> (31 - (high - low)))
}

/// A name from a table, `unknown_N` where the table has none.
pub(super) fn push_name(out: &mut Text, table: &[&str], code: u32) {
    match table.get(code as usize) {
        Some(name) if !name.is_empty() => out.name(name),
        _ => {
            out.with("unknown_", code);
        }
    }
}

/// What a send's descriptors are: immediate, or in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// The shared function.
    pub function: u32,
    /// The descriptor, `None` when a register holds it.
    pub descriptor: Option<u32>,
    /// The extended descriptor, `None` when a register holds it or the format has none.
    pub extended: Option<u32>,
    /// Whether a register holds the extended descriptor.
    pub extended_in_register: bool,
    /// Length of the second payload in the instruction, with a bindless surface offset.
    pub bindless_length: Option<u32>,
}

/// Whether a function takes the descriptors of the load/store cache.
pub fn is_lsc(inst: &Instruction, function: u32) -> bool {
    let generation = inst.platform.generation;
    (generation >= GEN125 && (13..=15).contains(&function)) || (generation >= XE2 && function == 6)
}

/// Appends what follows `MsgDesc:`.
pub fn push(out: &mut String, inst: &Instruction, of: &Descriptors) {
    let mut bytes = Vec::new();
    write(&mut Text::new(&mut bytes), inst, of);
    out.push_str(&text::string(bytes));
}

/// The same, for the disassembler.
pub(super) fn write(out: &mut Text, inst: &Instruction, of: &Descriptors) {
    let lsc = is_lsc(inst, of.function);
    match of.descriptor {
        None => out.push(" indirect"),
        Some(descriptor) => {
            push_function(out, inst, of, descriptor, lsc);
            out.push(" ");
        }
    }
    if let Some(length) = of.bindless_length {
        out.with(" src1_len = ", length);
        out.push(" ex_bso");
    }
    if lsc {
        push_lsc_surface(out, of);
        return;
    }
    if let Some(descriptor) = of.descriptor {
        out.with(" mlen ", bits(descriptor, 28, 25));
    }
    if let Some(extended) = of.extended {
        out.with(" ex_mlen ", second_length(inst, extended));
    }
    if let Some(descriptor) = of.descriptor {
        out.with(" rlen ", bits(descriptor, 24, 20));
    }
}

/// Length of the second payload, as the extended descriptor has it.
#[must_use]
pub fn second_length(inst: &Instruction, extended: u32) -> u32 {
    if inst.platform.generation >= XE2 { bits(extended, 10, 6) } else { bits(extended, 9, 6) }
}

fn push_function(out: &mut Text, inst: &Instruction, of: &Descriptors, descriptor: u32, lsc: bool) {
    if lsc {
        push_lsc(out, inst, of, descriptor);
        return;
    }
    match of.function {
        2 => push_sampler(out, inst, descriptor),
        3 => {
            out.push(" (");
            push_name(out, &names::GATEWAY[inst.platform.g()], bits(descriptor, 2, 0));
            out.push(")");
        }
        4 | 9 => {
            let (bti, control, of) =
                (bits(descriptor, 7, 0), bits(descriptor, 13, 8), bits(descriptor, 18, 14));
            out.with(" (bti ", bti);
            out.with(", msg_ctrl ", control);
            out.with(", msg_type ", of);
            out.push(if inst.platform.generation == GEN8 { ", write_commit 0)" } else { ")" });
        }
        5 => push_render(out, inst, descriptor),
        6 => push_urb(out, inst, descriptor),
        8 if inst.platform.generation >= GEN125 => {
            out.push(if bits(descriptor, 8, 8) == 1 { " SIMD16," } else { " SIMD8," });
        }
        10 => push_data(out, inst, descriptor),
        11 => {
            out.push(if bits(descriptor, 14, 14) == 1 { " (linear, " } else { " (persp, " });
            push_name(out, &names::PI_TYPE[inst.platform.g()], bits(descriptor, 13, 12));
            out.push(", ");
            out.hex(u64::from(bits(descriptor, 7, 0)), 2);
            out.push(")");
        }
        12 => push_data1(out, inst, descriptor),
        // Its messages have no fields of their own.
        7 => {}
        function => {
            out.with("unsupported shared function ID ", function);
        }
    }
}

fn push_sampler(out: &mut Text, inst: &Instruction, descriptor: u32) {
    let (generation, g) = (inst.platform.generation, inst.platform.g());
    let high = if generation >= XE2 { bits(descriptor, 31, 31) << 5 } else { 0 };
    out.push(" ");
    push_name(out, &names::SAMPLER[g], high | bits(descriptor, 16, 12));
    out.push(" ");
    let high = if generation >= GEN9 { bits(descriptor, 29, 29) << 2 } else { 0 };
    push_name(out, &names::SAMPLER_SIMD[g], high | bits(descriptor, 18, 17));
    if generation >= GEN9 && bits(descriptor, 30, 30) == 1 {
        out.push(" HP");
    }
    out.with(" Surface = ", bits(descriptor, 7, 0));
    out.with(" Sampler = ", bits(descriptor, 11, 8));
}

fn push_render(out: &mut Text, inst: &Instruction, descriptor: u32) {
    let g = inst.platform.g();
    let message = bits(descriptor, 17, 14);
    out.push(" ");
    push_name(out, &names::RENDER[g], message);
    if message == 12 {
        out.push(" ");
        push_name(out, &names::RT_WRITE[g], bits(descriptor, 10, 8));
        for (bit, text) in [(11, " Hi"), (12, " LastRT"), (18, " CoarseWrite")] {
            if bits(descriptor, bit, bit) == 1 && (bit != 18 || inst.platform.generation > GEN9) {
                out.push(text);
            }
        }
    } else {
        // Decimal digits after "0x" are Mesa's.
        out.with(" MsgCtrl = 0x", bits(descriptor, 13, 8));
    }
    out.with(" Surface = ", bits(descriptor, 7, 0));
}

fn push_urb(out: &mut Text, inst: &Instruction, descriptor: u32) {
    let operation = bits(descriptor, 3, 0);
    out.with(" offset ", bits(descriptor, 14, 4));
    out.push(" ");
    push_name(out, &names::URB[inst.platform.g()], operation);
    if bits(descriptor, 17, 17) == 1 {
        out.push(" per-slot");
    }
    if bits(descriptor, 15, 15) == 1 {
        out.push(if matches!(operation, 7 | 8) { " masked" } else { " interleave" });
    }
}

fn push_owords(out: &mut Text, inst: &Instruction, control: u32) {
    out.push("owords = ");
    push_name(out, &names::OWORDS[inst.platform.g()], control & 7);
    out.with(", aligned = ", control >> 3 & 3);
}

fn push_data(out: &mut Text, inst: &Instruction, descriptor: u32) {
    let g = inst.platform.g();
    let (message, control) = (bits(descriptor, 18, 14), bits(descriptor, 13, 8));
    out.push(" (");
    push_name(out, &names::DATA[g], message);
    out.with(", bti ", bits(descriptor, 7, 0));
    out.push(", ");
    match message {
        6 => {
            out.push(" ");
            push_name(out, &names::ATOMIC[g], control & 15);
        }
        0 | 8 => push_owords(out, inst, control),
        _ => out.number(u64::from(control)),
    }
    out.push(")");
}

fn push_data1(out: &mut Text, inst: &Instruction, descriptor: u32) {
    let g = inst.platform.g();
    let (message, control) = (bits(descriptor, 18, 14), bits(descriptor, 13, 8));
    let simd = |out: &mut Text| out.push(if control & 16 != 0 { "SIMD8," } else { "SIMD16," });
    out.push(" (");
    push_name(out, &names::DATA1[g], message);
    out.with(", Surface = ", bits(descriptor, 7, 0));
    out.push(", ");
    match message {
        2 | 6 | 11 => {
            simd(out);
            out.push(" ");
            push_name(out, &names::ATOMIC[g], control & 15);
        }
        3 | 7 | 12 | 18 | 19 => {
            out.push(" ");
            push_name(out, &names::ATOMIC[g], control & 15);
        }
        1 | 5 | 9 | 13 | 17 | 25 => {
            push_name(out, &names::SURFACE_SIMD[g], control >> 4);
            out.push(", Mask = ");
            out.hex(u64::from(control & 15), 1);
        }
        27 | 29 | 30 => {
            simd(out);
            out.push(" ");
            push_name(out, &names::FLOAT_ATOMIC[g], control & 15);
        }
        20 | 21 => push_owords(out, inst, control),
        _ => out.hex(u64::from(control), 1),
    }
    out.push(")");
}

fn push_lsc(out: &mut Text, inst: &Instruction, of: &Descriptors, descriptor: u32) {
    const FENCE: u32 = 31;
    const URB: u32 = 6;
    let g = inst.platform.g();
    let operation = bits(descriptor, 5, 0);
    out.push(" ( ");
    push_name(out, &names::LSC[g], operation);
    out.push(", ");
    push_name(out, &names::LSC_ADDRESS[g], bits(descriptor, 8, 7));
    out.push(", ");
    if operation == FENCE {
        push_name(out, &names::LSC_SCOPE[g], bits(descriptor, 11, 9));
        out.push(", ");
        push_name(out, &names::LSC_FLUSH[g], bits(descriptor, 14, 12));
        out.push(if bits(descriptor, 18, 18) == 1 { ", route_to_lsc" } else { ", normal_routing" });
    } else {
        push_name(out, &names::LSC_DATA[g], bits(descriptor, 11, 9));
        out.push(", ");
        if matches!(operation, 2 | 6) {
            for (bit, component) in ["x", "y", "z", "w"].into_iter().enumerate() {
                if descriptor >> (12 + bit) & 1 == 1 {
                    out.push(component);
                }
            }
        } else {
            push_name(out, &names::LSC_VECTOR[g], bits(descriptor, 14, 12));
            if bits(descriptor, 15, 15) == 1 {
                out.push(", transpose");
            }
        }
        out.push(", ");
        let cache =
            if inst.platform.generation >= XE2 { bits(descriptor, 19, 16) } else { bits(descriptor, 19, 17) };
        if matches!(operation, 0 | 2) {
            push_name(out, &names::LSC_LOAD_CACHE[g], cache);
        } else {
            push_name(out, &names::LSC_STORE_CACHE[g], cache);
        }
    }
    out.with(" dst_len = ", bits(descriptor, 24, 20));
    out.with(", src0_len = ", bits(descriptor, 28, 25));
    out.push(",");
    if of.function == URB || !of.extended_in_register {
        out.with(" src1_len = ", second_length(inst, of.extended.unwrap_or(0)));
    }
    out.push(" ");
    push_name(out, &names::LSC_SURFACE[g], bits(descriptor, 30, 29));
    out.push(" )");
}

/// What the extended descriptor of the load/store cache says; 0 where a register holds it, as Mesa prints it.
fn push_lsc_surface(out: &mut Text, of: &Descriptors) {
    let extended = of.extended.unwrap_or(0);
    match bits(of.descriptor.unwrap_or(0), 30, 29) {
        3 => {
            out.with(" BTI ", bits(extended, 31, 24));
            out.with("  base_offset ", bits(extended, 23, 12));
        }
        0 => out.with(" base_offset ", bits(extended, 31, 12)),
        _ => out.with(" surface_state_index ", bits(extended, 31, 6)),
    }
    out.push(" ");
}
