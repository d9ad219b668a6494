//! What the descriptors of messages say, as Mesa prints it.

use super::inst::{GEN8, GEN9, GEN125, Instruction, XE2};
use super::tables as names;
use std::fmt::Write as _;

/// Bits of a descriptor.
const fn bits(descriptor: u32, high: u32, low: u32) -> u32 {
    descriptor >> low & (u32::MAX >> (31 - (high - low)))
}

/// A name from a table, `unknown_N` where the table has none.
pub(super) fn push_name(out: &mut String, table: &[&str], code: u32) {
    match table.get(code as usize) {
        Some(name) if !name.is_empty() => out.push_str(name),
        _ => {
            let _ = write!(out, "unknown_{code}");
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
    let lsc = is_lsc(inst, of.function);
    match of.descriptor {
        None => out.push_str(" indirect"),
        Some(descriptor) => {
            push_function(out, inst, of, descriptor, lsc);
            out.push(' ');
        }
    }
    if let Some(length) = of.bindless_length {
        let _ = write!(out, " src1_len = {length} ex_bso");
    }
    if lsc {
        push_lsc_surface(out, of);
        return;
    }
    if let Some(descriptor) = of.descriptor {
        let _ = write!(out, " mlen {}", bits(descriptor, 28, 25));
    }
    if let Some(extended) = of.extended {
        let _ = write!(out, " ex_mlen {}", second_length(inst, extended));
    }
    if let Some(descriptor) = of.descriptor {
        let _ = write!(out, " rlen {}", bits(descriptor, 24, 20));
    }
}

/// Length of the second payload, as the extended descriptor has it.
#[must_use]
pub fn second_length(inst: &Instruction, extended: u32) -> u32 {
    if inst.platform.generation >= XE2 { bits(extended, 10, 6) } else { bits(extended, 9, 6) }
}

fn push_function(out: &mut String, inst: &Instruction, of: &Descriptors, descriptor: u32, lsc: bool) {
    if lsc {
        push_lsc(out, inst, of, descriptor);
        return;
    }
    match of.function {
        2 => push_sampler(out, inst, descriptor),
        3 => {
            out.push_str(" (");
            push_name(out, &names::GATEWAY[inst.platform.g()], bits(descriptor, 2, 0));
            out.push(')');
        }
        4 | 9 => {
            let (bti, control, of) =
                (bits(descriptor, 7, 0), bits(descriptor, 13, 8), bits(descriptor, 18, 14));
            let _ = write!(out, " (bti {bti}, msg_ctrl {control}, msg_type {of}");
            out.push_str(if inst.platform.generation == GEN8 { ", write_commit 0)" } else { ")" });
        }
        5 => push_render(out, inst, descriptor),
        6 => push_urb(out, inst, descriptor),
        8 if inst.platform.generation >= GEN125 => {
            out.push_str(if bits(descriptor, 8, 8) == 1 { " SIMD16," } else { " SIMD8," });
        }
        10 => push_data(out, inst, descriptor),
        11 => {
            out.push_str(if bits(descriptor, 14, 14) == 1 { " (linear, " } else { " (persp, " });
            push_name(out, &names::PI_TYPE[inst.platform.g()], bits(descriptor, 13, 12));
            let _ = write!(out, ", 0x{:02x})", bits(descriptor, 7, 0));
        }
        12 => push_data1(out, inst, descriptor),
        _ => {}
    }
}

fn push_sampler(out: &mut String, inst: &Instruction, descriptor: u32) {
    let (generation, g) = (inst.platform.generation, inst.platform.g());
    let high = if generation >= XE2 { bits(descriptor, 31, 31) << 5 } else { 0 };
    out.push(' ');
    push_name(out, &names::SAMPLER[g], high | bits(descriptor, 16, 12));
    out.push(' ');
    let high = if generation >= GEN9 { bits(descriptor, 29, 29) << 2 } else { 0 };
    push_name(out, &names::SAMPLER_SIMD[g], high | bits(descriptor, 18, 17));
    if generation >= GEN9 && bits(descriptor, 30, 30) == 1 {
        out.push_str(" HP");
    }
    let _ = write!(out, " Surface = {} Sampler = {}", bits(descriptor, 7, 0), bits(descriptor, 11, 8));
}

fn push_render(out: &mut String, inst: &Instruction, descriptor: u32) {
    let g = inst.platform.g();
    let message = bits(descriptor, 17, 14);
    out.push(' ');
    push_name(out, &names::RENDER[g], message);
    if message == 12 {
        out.push(' ');
        push_name(out, &names::RT_WRITE[g], bits(descriptor, 10, 8));
        for (bit, text) in [(11, " Hi"), (12, " LastRT"), (18, " CoarseWrite")] {
            if bits(descriptor, bit, bit) == 1 && (bit != 18 || inst.platform.generation > GEN9) {
                out.push_str(text);
            }
        }
    } else {
        // Decimal digits after "0x" are Mesa's.
        let _ = write!(out, " MsgCtrl = 0x{}", bits(descriptor, 13, 8));
    }
    let _ = write!(out, " Surface = {}", bits(descriptor, 7, 0));
}

fn push_urb(out: &mut String, inst: &Instruction, descriptor: u32) {
    let operation = bits(descriptor, 3, 0);
    let _ = write!(out, " offset {} ", bits(descriptor, 14, 4));
    push_name(out, &names::URB[inst.platform.g()], operation);
    if bits(descriptor, 17, 17) == 1 {
        out.push_str(" per-slot");
    }
    if bits(descriptor, 15, 15) == 1 {
        out.push_str(if matches!(operation, 7 | 8) { " masked" } else { " interleave" });
    }
}

fn push_owords(out: &mut String, inst: &Instruction, control: u32) {
    out.push_str("owords = ");
    push_name(out, &names::OWORDS[inst.platform.g()], control & 7);
    let _ = write!(out, ", aligned = {}", control >> 3 & 3);
}

fn push_data(out: &mut String, inst: &Instruction, descriptor: u32) {
    let g = inst.platform.g();
    let (message, control) = (bits(descriptor, 18, 14), bits(descriptor, 13, 8));
    out.push_str(" (");
    push_name(out, &names::DATA[g], message);
    let _ = write!(out, ", bti {}, ", bits(descriptor, 7, 0));
    match message {
        6 => {
            out.push(' ');
            push_name(out, &names::ATOMIC[g], control & 15);
        }
        0 | 8 => push_owords(out, inst, control),
        _ => {
            let _ = write!(out, "{control}");
        }
    }
    out.push(')');
}

fn push_data1(out: &mut String, inst: &Instruction, descriptor: u32) {
    let g = inst.platform.g();
    let (message, control) = (bits(descriptor, 18, 14), bits(descriptor, 13, 8));
    let simd = |out: &mut String| out.push_str(if control & 16 != 0 { "SIMD8," } else { "SIMD16," });
    out.push_str(" (");
    push_name(out, &names::DATA1[g], message);
    let _ = write!(out, ", Surface = {}, ", bits(descriptor, 7, 0));
    match message {
        2 | 6 | 11 => {
            simd(out);
            out.push(' ');
            push_name(out, &names::ATOMIC[g], control & 15);
        }
        3 | 7 | 12 | 18 | 19 => {
            out.push(' ');
            push_name(out, &names::ATOMIC[g], control & 15);
        }
        1 | 5 | 9 | 13 | 17 | 25 => {
            push_name(out, &names::SURFACE_SIMD[g], control >> 4);
            let _ = write!(out, ", Mask = 0x{:x}", control & 15);
        }
        27 | 29 | 30 => {
            simd(out);
            out.push(' ');
            push_name(out, &names::FLOAT_ATOMIC[g], control & 15);
        }
        20 | 21 => push_owords(out, inst, control),
        _ => {
            let _ = write!(out, "0x{control:x}");
        }
    }
    out.push(')');
}

fn push_lsc(out: &mut String, inst: &Instruction, of: &Descriptors, descriptor: u32) {
    const FENCE: u32 = 31;
    const URB: u32 = 6;
    let g = inst.platform.g();
    let operation = bits(descriptor, 5, 0);
    out.push_str(" ( ");
    push_name(out, &names::LSC[g], operation);
    out.push_str(", ");
    push_name(out, &names::LSC_ADDRESS[g], bits(descriptor, 8, 7));
    out.push_str(", ");
    if operation == FENCE {
        push_name(out, &names::LSC_SCOPE[g], bits(descriptor, 11, 9));
        out.push_str(", ");
        push_name(out, &names::LSC_FLUSH[g], bits(descriptor, 14, 12));
        out.push_str(if bits(descriptor, 18, 18) == 1 { ", route_to_lsc" } else { ", normal_routing" });
    } else {
        push_name(out, &names::LSC_DATA[g], bits(descriptor, 11, 9));
        out.push_str(", ");
        if matches!(operation, 2 | 6) {
            for (bit, component) in "xyzw".chars().enumerate() {
                if descriptor >> (12 + bit) & 1 == 1 {
                    out.push(component);
                }
            }
        } else {
            push_name(out, &names::LSC_VECTOR[g], bits(descriptor, 14, 12));
            if bits(descriptor, 15, 15) == 1 {
                out.push_str(", transpose");
            }
        }
        out.push_str(", ");
        let cache =
            if inst.platform.generation >= XE2 { bits(descriptor, 19, 16) } else { bits(descriptor, 19, 17) };
        if matches!(operation, 0 | 2) {
            push_name(out, &names::LSC_LOAD_CACHE[g], cache);
        } else {
            push_name(out, &names::LSC_STORE_CACHE[g], cache);
        }
    }
    let _ = write!(out, " dst_len = {}, src0_len = {},", bits(descriptor, 24, 20), bits(descriptor, 28, 25));
    if of.function == URB || !of.extended_in_register {
        let _ = write!(out, " src1_len = {}", second_length(inst, of.extended.unwrap_or(0)));
    }
    out.push(' ');
    push_name(out, &names::LSC_SURFACE[g], bits(descriptor, 30, 29));
    out.push_str(" )");
}

/// What the extended descriptor of the load/store cache says; 0 where a register holds it, as Mesa prints it.
fn push_lsc_surface(out: &mut String, of: &Descriptors) {
    let extended = of.extended.unwrap_or(0);
    let _ = match bits(of.descriptor.unwrap_or(0), 30, 29) {
        3 => write!(out, " BTI {}  base_offset {} ", bits(extended, 31, 24), bits(extended, 23, 12)),
        0 => write!(out, " base_offset {} ", bits(extended, 31, 12)),
        _ => write!(out, " surface_state_index {} ", bits(extended, 31, 6)),
    };
}
