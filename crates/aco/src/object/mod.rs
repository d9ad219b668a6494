//! A kernel as source of the assembler: code, descriptor and metadata of an HSA code object.
//!
//! The assembler makes an object of it. Arguments are those of [`Args`](crate::abi::Args): user registers as the compiler counts them, which is not the
//! convention of HSA, so a loader needs to know them. Never: ELF.

mod program;

use crate::abi::Argument;
use crate::compile::Compiled;
pub use program::program;
use std::fmt::Write;
use unwedge_isa::amdgcn::listing::{self, AmdListingOptions};
use unwedge_isa::amdgcn::{Gfx, Gpu};

/// The source of a kernel with a name, for workgroups of so many invocations.
pub fn source(compiled: &Compiled, gpu: &Gpu, name: &str, invocations: u32) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_source(compiled, gpu, name, invocations, &mut out);
    out
}

fn write_source(
    compiled: &Compiled,
    gpu: &Gpu,
    name: &str,
    invocations: u32,
    out: &mut String,
) -> std::fmt::Result {
    writeln!(out, "\t.text\n\t.globl\t{name}\n\t.p2align\t8\n\t.type\t{name},@function\n{name}:")?;
    let code: Vec<u8> = compiled.code.words.iter().flat_map(|word| word.to_le_bytes()).collect();
    listing::write(&code, gpu, &AmdListingOptions::default(), out, &mut |_, _| {});
    writeln!(out, "\t.section\t.rodata,\"a\",@progbits\n\t.p2align\t6\n\t.amdhsa_kernel {name}")?;
    for (directive, value) in directives(compiled, gpu) {
        writeln!(out, "\t\t.amdhsa_{directive} {value}")?;
    }
    writeln!(out, "\t.end_amdhsa_kernel\n\t.text")?;
    metadata(compiled, gpu, name, invocations, out)
}

/// Directives of the descriptor that are not at their default.
fn directives(compiled: &Compiled, gpu: &Gpu) -> Vec<(&'static str, u32)> {
    let code = &compiled.code;
    let (mut user, mut groups, mut local) = (0, [0; 3], 0);
    for location in compiled.args.iter() {
        match location.argument {
            Argument::WorkgroupId(axis) => groups[usize::from(axis) % 3] = 1,
            Argument::LocalId(axis) => local = local.max(u32::from(axis)),
            Argument::LocalIdsPacked => local = 2,
            Argument::ScratchOffset => {}
            _ => user += u32::from(location.dwords),
        }
    }
    let scratch = u32::from(code.scratch_bytes != 0);
    let generation = gpu.generation();
    let mut all = vec![
        ("group_segment_fixed_size", code.lds_bytes),
        ("private_segment_fixed_size", code.scratch_bytes),
        ("user_sgpr_count", user),
        ("system_sgpr_workgroup_id_x", if generation >= Gfx::Gfx12 { 1 } else { groups[0] }),
        ("system_sgpr_workgroup_id_y", groups[1]),
        ("system_sgpr_workgroup_id_z", groups[2]),
        ("system_vgpr_workitem_id", local),
        ("next_free_vgpr", u32::from(code.registers.vgprs.max(1))),
        ("next_free_sgpr", u32::from(code.registers.sgprs.max(1))),
    ];
    if generation >= Gfx::Gfx11 {
        all.push(("enable_private_segment", scratch));
    } else {
        let offset = compiled.args.find(Argument::ScratchOffset).is_some();
        all.push(("system_sgpr_private_segment_wavefront_offset", u32::from(offset)));
    }
    if generation >= Gfx::Gfx10 {
        all.push(("wavefront_size32", u32::from(!gpu.wave64())));
    }
    if generation < Gfx::Gfx12 {
        all.push(("ieee_mode", 0));
    }
    all
}

fn metadata(
    compiled: &Compiled,
    gpu: &Gpu,
    name: &str,
    invocations: u32,
    out: &mut String,
) -> std::fmt::Result {
    let code = &compiled.code;
    let wave = if gpu.wave64() { 64 } else { 32 };
    writeln!(out, "\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .args: []")?;
    for (key, value) in [
        ("group_segment_fixed_size", code.lds_bytes),
        ("kernarg_segment_align", 4),
        ("kernarg_segment_size", 0),
        ("max_flat_workgroup_size", invocations),
    ] {
        writeln!(out, "    .{key}: {value}")?;
    }
    writeln!(out, "    .name: {name}")?;
    for (key, value) in [
        ("private_segment_fixed_size", code.scratch_bytes),
        ("sgpr_count", code.registers.sgprs.into()),
        ("sgpr_spill_count", 0),
    ] {
        writeln!(out, "    .{key}: {value}")?;
    }
    writeln!(out, "    .symbol: {name}.kd")?;
    for (key, value) in
        [("vgpr_count", u32::from(code.registers.vgprs)), ("vgpr_spill_count", 0), ("wavefront_size", wave)]
    {
        writeln!(out, "    .{key}: {value}")?;
    }
    writeln!(out, "amdhsa.target: amdgcn-amd-amdhsa--{}", gpu.name())?;
    writeln!(out, "amdhsa.version:\n  - 1\n  - 2\n...\n\t.end_amdgpu_metadata")
}
