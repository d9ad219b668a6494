//! The metadata of a kernel, as YAML between directives: the layout of its arguments, and the resources that it needs.
//!
//! Facts: LLVM's `AMDGPUUsage`, "Code Object V5 Metadata".

use crate::abi::{KERNARG_ALIGN, KernelArg, KernelArgKind, KernelArgs};
use crate::compile::Compiled;
use std::fmt::{self, Write};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::ir::{Access, ResourceClass};

/// Fields of an argument besides its name, offset and size.
fn fields(kind: KernelArgKind) -> (&'static str, Option<&'static str>, Option<&'static str>) {
    match kind {
        KernelArgKind::Buffer { access, .. } => {
            let access = match access {
                access if access.has(Access::READONLY) => "read_only",
                access if access.has(Access::WRITEONLY) => "write_only",
                _ => "read_write",
            };
            ("global_buffer", Some("global"), Some(access))
        }
        KernelArgKind::BufferSize { .. } | KernelArgKind::PushConstants => ("by_value", None, None),
        KernelArgKind::Descriptors { class: ResourceClass::Sampler, count: 1, .. } => ("sampler", None, None),
        KernelArgKind::Descriptors {
            class:
                ResourceClass::SampledImage
                | ResourceClass::StorageImage
                | ResourceClass::UniformTexelBuffer
                | ResourceClass::StorageTexelBuffer,
            count: 1,
            ..
        } => ("image", None, None),
        KernelArgKind::Descriptors { .. } => ("global_buffer", Some("constant"), Some("read_only")),
        KernelArgKind::BlockCount(0) => ("hidden_block_count_x", None, None),
        KernelArgKind::BlockCount(1) => ("hidden_block_count_y", None, None),
        KernelArgKind::BlockCount(_) => ("hidden_block_count_z", None, None),
    }
}

/// A quoted YAML string. Names may contain any characters.
fn quoted(name: &str) -> String {
    // Nor may they begin a comment of the assembler.
    let shown: String = name.chars().map(|c| if c.is_control() || c == ';' { '?' } else { c }).collect();
    let shown = shown.replace("//", "??").replace("/*", "??");
    format!("'{}'", shown.replace('\'', "''"))
}

fn argument(arg: &KernelArg, out: &mut String) -> fmt::Result {
    let (kind, space, access) = fields(arg.kind);
    let named = [("actual_access", access), ("address_space", space)];
    let mut lead = "      - ";
    for (key, value) in named.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        writeln!(out, "{lead}.{key}: {value}")?;
        lead = "        ";
    }
    // Hidden arguments have no name: runtimes find them by their kind.
    if !matches!(arg.kind, KernelArgKind::BlockCount(_)) {
        writeln!(out, "{lead}.name: {}", quoted(&arg.name))?;
        lead = "        ";
    }
    writeln!(out, "{lead}.offset: {}", arg.offset)?;
    writeln!(out, "        .size: {}\n        .value_kind: {kind}", arg.size)
}

pub(super) fn write(
    compiled: &Compiled,
    gpu: &Gpu,
    name: &str,
    workgroup_size: [u32; 3],
    out: &mut String,
) -> fmt::Result {
    let code = &compiled.code;
    let [x, y, z] = workgroup_size;
    let wave = gpu.lanes();
    let kernel = compiled.args.kernel.as_ref();
    write!(out, "\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .args:")?;
    let mut args = kernel.into_iter().flat_map(KernelArgs::iter).peekable();
    writeln!(out, "{}", if args.peek().is_some() { "" } else { " []" })?;
    args.try_for_each(|arg| argument(arg, out))?;
    for (key, value) in [
        ("group_segment_fixed_size", code.lds_bytes),
        ("kernarg_segment_align", KERNARG_ALIGN),
        ("kernarg_segment_size", kernel.map_or(0, KernelArgs::size)),
        ("max_flat_workgroup_size", x.saturating_mul(y).saturating_mul(z)),
    ] {
        writeln!(out, "    .{key}: {value}")?;
    }
    writeln!(out, "    .name: {name}")?;
    writeln!(out, "    .private_segment_fixed_size: {}", code.scratch_bytes)?;
    writeln!(out, "    .reqd_workgroup_size:\n      - {x}\n      - {y}\n      - {z}")?;
    for (key, value) in
        [("sgpr_count", u32::from(code.registers.sgprs)), ("sgpr_spill_count", code.spills.sgprs)]
    {
        writeln!(out, "    .{key}: {value}")?;
    }
    writeln!(out, "    .symbol: {name}.kd\n    .uniform_work_group_size: 1")?;
    for (key, value) in [
        ("vgpr_count", u32::from(code.registers.vgprs)),
        ("vgpr_spill_count", code.spills.vgprs),
        ("wavefront_size", wave),
    ] {
        writeln!(out, "    .{key}: {value}")?;
    }
    writeln!(out, "amdhsa.target: amdgcn-amd-amdhsa--{}", gpu.name())?;
    writeln!(out, "amdhsa.version:\n  - 1\n  - 2\n...\n\t.end_amdgpu_metadata")
}
