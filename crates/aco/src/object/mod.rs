//! A kernel as source of the assembler: code, descriptor and metadata of an HSA code object.
//!
//! The assembler makes an object of it. With [`CallingConvention::Driver`](crate::abi::CallingConvention::Driver), arguments are in the user registers that
//! [`Args`](crate::abi::Args) defines, which an HSA runtime does not set. Never: ELF.

mod lines;
mod metadata;
mod program;

use crate::abi::Argument;
use crate::compile::Compiled;
use lines::LineWriter;
pub use program::program;
use std::fmt::Write;
use unwedge_isa::amdgcn::listing::{self, AmdListingOptions};
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::front::SourceText;

/// The assembly of a kernel with a name, for workgroups of this size. Source lines are shown with their text if `texts` has it.
pub fn source(
    compiled: &Compiled,
    gpu: &Gpu,
    name: &str,
    workgroup_size: [u32; 3],
    texts: &[SourceText],
) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_source(compiled, gpu, name, workgroup_size, texts, &mut out);
    out
}

fn write_source(
    compiled: &Compiled,
    gpu: &Gpu,
    name: &str,
    workgroup_size: [u32; 3],
    texts: &[SourceText],
    out: &mut String,
) -> std::fmt::Result {
    let mut lines = LineWriter::new(&compiled.code.lines, texts, true);
    writeln!(
        out,
        "\t.text\n{}\t.globl\t{name}\n\t.p2align\t8\n\t.type\t{name},@function\n{name}:",
        lines.files()
    )?;
    let code: Vec<u8> = compiled.code.words.iter().flat_map(|word| word.to_le_bytes()).collect();
    listing::write(&code, gpu, &AmdListingOptions::default(), out, &mut |at, out| lines.mark(at, out));
    writeln!(out, "\t.section\t.rodata,\"a\",@progbits\n\t.p2align\t6\n\t.amdhsa_kernel {name}")?;
    for (directive, value) in directives(compiled, gpu) {
        writeln!(out, "\t\t.amdhsa_{directive} {value}")?;
    }
    writeln!(out, "\t.end_amdhsa_kernel\n\t.text")?;
    metadata::write(compiled, gpu, name, workgroup_size, out)
}

/// The directives of the kernel descriptor.
fn directives(compiled: &Compiled, gpu: &Gpu) -> Vec<(&'static str, u32)> {
    let code = &compiled.code;
    let (mut user, mut local) = (0, 0);
    for location in compiled.args.iter() {
        match location.argument {
            Argument::WorkgroupId(_) => {}
            Argument::LocalId(axis) => local = local.max(u32::from(axis)),
            Argument::LocalIdsPacked => local = 2,
            Argument::ScratchOffset => {}
            _ => user += u32::from(location.dwords),
        }
    }
    let scratch = u32::from(code.scratch_bytes != 0);
    let group = |axis: u32| u32::from(compiled.args.workgroup_axes >> axis & 1);
    let generation = gpu.generation();
    let has = |argument: Argument| u32::from(compiled.args.find(argument).is_some());
    let mut all = vec![
        ("group_segment_fixed_size", code.lds_bytes),
        ("private_segment_fixed_size", code.scratch_bytes),
    ];
    if let Some(kernel) = &compiled.args.kernel {
        all.extend([
            ("kernarg_size", kernel.size()),
            ("user_sgpr_kernarg_segment_ptr", has(Argument::KernargSegment)),
        ]);
        if generation < Gfx::Gfx11 {
            all.push(("user_sgpr_private_segment_buffer", has(Argument::ScratchDescriptor)));
        }
    }
    all.extend([
        ("user_sgpr_count", user),
        ("system_sgpr_workgroup_id_x", if generation >= Gfx::Gfx12 { 1 } else { group(0) }),
        ("system_sgpr_workgroup_id_y", group(1)),
        ("system_sgpr_workgroup_id_z", group(2)),
        ("system_vgpr_workitem_id", local),
        ("next_free_vgpr", u32::from(code.registers.vgprs.max(1))),
        ("next_free_sgpr", u32::from(code.registers.sgprs.max(1))),
    ]);
    if generation >= Gfx::Gfx11 {
        all.push(("enable_private_segment", scratch));
    } else {
        all.push(("system_sgpr_private_segment_wavefront_offset", has(Argument::ScratchOffset)));
    }
    if generation >= Gfx::Gfx10 {
        all.push(("wavefront_size32", u32::from(!gpu.wave64())));
    }
    if generation < Gfx::Gfx12 {
        all.push(("ieee_mode", 0));
    }
    let modes =
        ["float_round_mode_32", "float_round_mode_16_64", "float_denorm_mode_32", "float_denorm_mode_16_64"];
    let field = |shift: u8| u32::from(compiled.float_mode >> shift & 3);
    all.extend(modes.into_iter().zip([0, 2, 4, 6].map(field)));
    all
}
