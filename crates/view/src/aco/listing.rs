//! Compiled code as a list of instructions with their source lines, for JSON.

use super::CompileView;
use crate::asm::check::JsonSource;
use serde::Serialize;
use unwedge_isa::amdgcn::{codec, text};

/// An instruction.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ListedInst<'a> {
    /// Bytes from the start of the code.
    offset: usize,
    text: String,
    /// The source line that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<JsonSource<'a>>,
}

impl CompileView {
    /// The instructions of all parts.
    pub(super) fn listing(&self) -> Vec<ListedInst<'_>> {
        let mut listed = Vec::new();
        let mut before = 0;
        for part in self.parts().into_iter().flatten() {
            let (words, lines) = (&part.code.words, &part.code.lines);
            let mut at = 0;
            while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
                let mut shown = String::new();
                let dwords = match codec::decode_executed(rest, &self.gpu) {
                    Some(decoded) => {
                        text::write(&decoded.inst, &self.gpu, &mut shown);
                        usize::from(decoded.dwords)
                    }
                    None => {
                        shown = format!(".long 0x{:08x}", rest[0]);
                        1
                    }
                };
                let position = lines.at(at);
                let source = position.and_then(|position| {
                    let file = lines.files.get(position.file as usize)?;
                    let column = Some(position.column.into()).filter(|column| *column > 0);
                    Some(JsonSource { file, line: position.line.into(), column })
                });
                listed.push(ListedInst { offset: (before + at) * 4, text: shown, source });
                at += dwords;
            }
            before += words.len();
        }
        listed
    }
}
