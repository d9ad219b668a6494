//! The shaders of a dump of an AMD GPU: a line each, and what to say where there are none.
//!
//! Never: reads a file, decides which shaders a dump has.

use crate::words;
use std::io::{self, Write};
use unwedge_capture::Dump;
use unwedge_capture::dump::DumpDriver;
use unwedge_isa::amdgcn::Gpu;
use unwedge_postmortem::amd::AmdShader;

/// A line for each shader, numbered from 0.
///
/// # Errors
/// When `out` does not take it.
pub fn text(shaders: &[AmdShader], out: &mut dyn Write) -> io::Result<()> {
    let columns = shaders.iter().map(|shader| name(shader).chars().count()).max().unwrap_or(0).max(6);
    writeln!(
        out,
        "{:>6}  {:18}  {:columns$}  {:>15}  {:>5}  from",
        "number", "address", "shader", "bytes", "waves"
    )?;
    for (number, shader) in shaders.iter().enumerate() {
        let address = shader.address.map_or("unknown".to_owned(), |address| format!("{address:#018x}"));
        let bytes = match shader.words.len() {
            0 => "not in the dump".to_owned(),
            n if shader.whole => (4 * n).to_string(),
            n => format!("{} (a part)", 4 * n),
        };
        let waves = if shader.waves == 0 { String::new() } else { shader.waves.to_string() };
        let line = format!(
            "{number:>6}  {address:18}  {:columns$}  {bytes:>15}  {waves:>5}  {}",
            name(shader),
            shader.section
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// What a shader is called: its name in a report, or its stage.
pub fn name(shader: &AmdShader) -> String {
    let place = &shader.place;
    match (place.text("shader"), place.text("stage")) {
        (Some(name), _) if !name.is_empty() => {
            name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
        }
        (_, Some(stage)) => stage.to_owned(),
        _ if place.flag("part") => "around a wave".to_owned(),
        _ => "shader".to_owned(),
    }
}

/// Where a shader is: `Pixel Shader`, `the CS at 0x800120000000`.
pub fn place(shader: &AmdShader) -> String {
    words::code_place(&shader.place)
}

/// The GPU, with waves of as many lanes as those of a shader have.
pub fn gpu_of(shader: &AmdShader, gpu: Gpu) -> Gpu {
    shader.wave64.map_or(gpu, |wave64| gpu.with_wave64(wave64))
}

/// Why a dump has no code, and where code would come from.
pub fn missing(dump: &Dump<'_>) -> &'static str {
    match dump.driver() {
        DumpDriver::Amdgpu => {
            "it holds no shader code: amdgpu dumps registers, rings and the IBs of the job. RADV_DEBUG=hang leaves a report with \
             the bound shaders, `umr -O halt_waves,bits -wa` prints the code around waves"
        }
        DumpDriver::Radv => {
            "it lists no shader: pipeline.log has those that were bound, and umr_waves.log the code around waves"
        }
        DumpDriver::Umr => "it has no code: `umr -O halt_waves,bits -wa` prints the code around waves",
        DumpDriver::Msm | DumpDriver::I915 | DumpDriver::Xe => "it is not of an AMD GPU",
    }
}
