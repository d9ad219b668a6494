//! Where the listings show shaders.

use super::Text;
use unwedge_base::{Dwords, Generation};
use unwedge_isa::{ir2, ir3};

/// What kind of code to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shader {
    /// ir3 (a3xx on).
    Ir3,
    /// a2xx vertex code.
    Ir2Vertex,
    /// a2xx fragment code.
    Ir2Fragment,
}

/// Dwords of shaders that one listing shows: streams can point at the same code again and again.
pub const CODE_BUDGET: usize = 1 << 24;

/// Shows a shader, with its words.
pub fn disassemble(
    text: &mut Text<'_>,
    code: Dwords<'_>,
    shader: Shader,
    generation: Generation,
    level: usize,
) {
    let Some(budget) = text.code_budget.checked_sub(code.len()) else {
        text.level(level).str("; not shown: too much code in all").end();
        return;
    };
    text.code_budget = budget;
    let stage = match shader {
        Shader::Ir3 => {
            let words: Vec<u64> = (0..code.len() / 2).filter_map(|i| code.get64(2 * i)).collect();
            let listing = ir3::Listing { gpu_id: 100 * generation.number(), raw: true, level };
            ir3::disassemble(&words, &listing, text.buffer());
            text.bytes(b"");
            return;
        }
        Shader::Ir2Vertex => ir2::Stage::Vertex,
        Shader::Ir2Fragment => ir2::Stage::Fragment,
    };
    let how = ir2::Listing { stage, tabs: level + 1, words: true, complete: false };
    text.bytes(ir2::listing(code, &how).as_bytes());
}
