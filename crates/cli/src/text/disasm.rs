//! Where the listings show shaders.

use super::{CffText, Text};
use unwedge_base::{Dwords, Generation};
use unwedge_isa::{ir2, ir3};
use unwedge_pm4::Stage;

/// What kind of code to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shader {
    /// ir3 (a3xx on); with counts of its instructions and registers behind it.
    Ir3 { stats: bool },
    /// a2xx vertex code.
    Ir2Vertex,
    /// a2xx fragment code.
    Ir2Fragment,
}

/// How cffdump's files of a stage's ir3 code end. It makes none of the stages of tessellation.
fn extension(stage: Stage) -> Option<&'static str> {
    match stage {
        Stage::Vertex => Some("vo3"),
        Stage::Geometry => Some("go3"),
        Stage::Fragment => Some("fo3"),
        Stage::Compute => Some("co3"),
        Stage::TessControl | Stage::TessEval => None,
    }
}

impl CffText<'_, '_, '_> {
    /// Hands a shader of a3xx on to whoever takes them.
    pub(super) fn hand_on_ir3(&mut self, stage: Option<Stage>, code: Dwords<'_>) {
        if let Some(extension) = stage.and_then(extension) {
            self.hand_on(extension, code);
        }
    }

    /// Hands a shader to whoever takes them.
    pub(super) fn hand_on(&mut self, extension: &'static str, code: Dwords<'_>) {
        if let Some(take) = &mut self.shaders {
            take(extension, code);
        }
    }
}

/// Bytes of text that are allowed for each dword of shaders in all: streams can point at the same code again and again,
/// and disassembling is the dearest thing a listing does.
pub const TEXT_PER_DWORD: u64 = 64;
/// Dwords shown of one shader. Shaders of real programs are far shorter; what lies behind them may be a whole buffer of
/// zeros.
const LONGEST: usize = 1 << 20;
/// Dwords looked at cost as much as one that is shown.
const LOOKED_AT: u64 = 16;

/// Shows a shader, with its words. `code` may go on behind it.
pub fn disassemble(
    text: &mut Text<'_>,
    code: Dwords<'_>,
    shader: Shader,
    generation: Generation,
    level: usize,
) {
    let cut = code.len() > LONGEST;
    let code = code.take(LONGEST);
    let Some(budget) = text.code_budget.checked_sub(1 + code.len() as u64 / LOOKED_AT) else {
        text.level(level).str("; not shown: too much code in all").end();
        return;
    };
    let shown = listing(text, code, shader, generation, level);
    text.code_budget = budget.saturating_sub(shown as u64);
    if cut && shown == code.len() {
        text.level(level).str("; the rest is not shown: too long for a shader").end();
    }
}

/// Returns how many dwords were shown.
fn listing(
    text: &mut Text<'_>,
    code: Dwords<'_>,
    shader: Shader,
    generation: Generation,
    level: usize,
) -> usize {
    let stage = match shader {
        Shader::Ir3 { stats } => {
            let words: Vec<u64> = (0..code.len() / 2).filter_map(|i| code.get64(2 * i)).collect();
            let listing = ir3::Listing { gpu_id: 100 * generation.number(), raw: true, level };
            let listed = ir3::disassemble(&words, &listing, text.buffer());
            if stats {
                let words = words.get(..listed).unwrap_or(&words);
                ir3::Stats::of(words, listing.gpu_id).write(listing.gpu_id, level, text.buffer());
            }
            text.bytes(b"");
            return 2 * listed;
        }
        Shader::Ir2Vertex => ir2::Stage::Vertex,
        Shader::Ir2Fragment => ir2::Stage::Fragment,
    };
    let how = ir2::Listing { stage, tabs: level + 1, words: true, complete: false };
    text.bytes(ir2::listing(code, &how).as_bytes());
    code.len()
}
