//! Shaders as text, for tests that run them.

use unwedge_isa::ir3::asm::Assembler;
use unwedge_sim::adreno::ir3::ShaderProgram;

/// A program of one instruction a line; branches are distances.
pub fn assemble(source: &str, gpu_id: u32) -> ShaderProgram {
    let mut assembler = Assembler::new(gpu_id);
    let lines = source.lines().map(str::trim).filter(|line| !line.is_empty());
    let words = lines.map(|line| assembler.instruction(line).unwrap_or_else(|why| panic!("{line}: {why}")));
    ShaderProgram::new(words.collect::<Vec<u64>>(), gpu_id)
}
