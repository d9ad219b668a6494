//! A program of a graphics stage as text: what registers hold when it starts, how inputs and outputs are numbered, and the code.
//!
//! Drivers load such programs by registers, not as objects, so there is no descriptor. The assembler reads the text.

use super::lines::LineWriter;
use crate::abi::Argument;
use crate::compile::Compiled;
use crate::ir::PhysReg;
use std::fmt::Write;
use unwedge_isa::amdgcn::Gpu;
use unwedge_isa::amdgcn::listing::{self, AmdListingOptions};
use unwedge_shader::front::SourceText;

/// The text of a compiled shader. Source lines are shown with their text if `texts` has it.
pub fn program(compiled: &Compiled, gpu: &Gpu, texts: &[SourceText]) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_program(compiled, gpu, texts, &mut out);
    out
}

fn write_program(compiled: &Compiled, gpu: &Gpu, texts: &[SourceText], out: &mut String) -> std::fmt::Result {
    let interface = &compiled.args.interface;
    if let Some(hardware) = interface.hardware {
        writeln!(out, "; stage {hardware}")?;
    }
    for location in compiled.args.iter() {
        writeln!(out, "; {} {}", registers(location.reg, location.dwords), name(location.argument))?;
    }
    if interface.pixel_inputs != 0 {
        writeln!(out, "; SPI_PS_INPUT_ENA {:#x}", interface.pixel_inputs)?;
    }
    for (number, slot) in interface.attributes.iter().enumerate() {
        let half = if interface.half_attributes.contains(slot) { " floats of 16 bits" } else { "" };
        let by_vertex = if interface.vertex_attributes.contains(slot) { " by vertex" } else { "" };
        writeln!(out, "; attr{number} slot {slot}{half}{by_vertex}")?;
    }
    for (number, slot) in interface.parameters.iter().enumerate() {
        writeln!(out, "; param{number} slot {slot}")?;
    }
    let code: Vec<u8> = compiled.code.words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut lines = LineWriter::new(&compiled.code.lines, texts, false);
    listing::write(&code, gpu, &AmdListingOptions::default(), out, &mut |at, out| lines.mark(at, out));
    Ok(())
}

fn registers(reg: PhysReg, dwords: u8) -> String {
    let (bank, first) = if reg.reg().is_vgpr() { ('v', reg.reg().index()) } else { ('s', reg.reg().0) };
    match dwords {
        1 => format!("{bank}{first}"),
        _ => format!("{bank}[{first}:{}]", first + u16::from(dwords) - 1),
    }
}

/// Words of the viewport that a primitive shader is given for culling.
const CULL_VIEWPORT: [&str; 4] = ["scale x", "scale y", "translation x", "translation y"];

/// What an argument is called.
fn name(argument: Argument) -> String {
    match argument {
        Argument::RingOffsets => "rings".to_owned(),
        Argument::DescriptorSet(set) => format!("descriptor set {set}"),
        Argument::PushConstant(word) => format!("push constant {word}"),
        Argument::PushConstants => "push constants".to_owned(),
        Argument::ScratchOffset => "scratch offset".to_owned(),
        Argument::VertexBuffers => "vertex buffers".to_owned(),
        Argument::BaseVertex => "base vertex".to_owned(),
        Argument::FirstInstance => "first instance".to_owned(),
        Argument::DrawIndex => "draw index".to_owned(),
        Argument::ViewIndex => "view index".to_owned(),
        Argument::GroupInfo => "vertices and primitives of the workgroup".to_owned(),
        Argument::MergedWaveInfo => "merged wave info".to_owned(),
        Argument::AttributeRing => "place in the attribute ring".to_owned(),
        Argument::Connectivity => "vertices of the primitive".to_owned(),
        Argument::CullState => "cull state".to_owned(),
        Argument::ViewportTransform(number) => format!("viewport {}", CULL_VIEWPORT[usize::from(number & 3)]),
        Argument::VertexId => "vertex".to_owned(),
        Argument::InstanceId => "instance".to_owned(),
        Argument::VertexPrimitive | Argument::GeometryPrimitive => "primitive".to_owned(),
        Argument::SamplePositions => "sample positions".to_owned(),
        Argument::PrimitiveMask => "primitive mask".to_owned(),
        Argument::Pixel(input) => input.name().to_owned(),
        other => format!("{other:?}"),
    }
}
