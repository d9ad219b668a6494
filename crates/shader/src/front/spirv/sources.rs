//! Source texts in a module: `OpSource`, and `DebugSource` of `NonSemantic.Shader.DebugInfo`.
//!
//! Never: an error. A malformed instruction ends the search.

use super::glsl::{DEBUG_SOURCE, DEBUG_SOURCE_CONTINUED};
use super::module::{Instr, instruction, string};
use crate::front::SourceText;
use spirv::Op;
use std::collections::{HashMap, HashSet};

/// How many times the size of a module may be read as strings, because a module may name a long one often.
const MOST_READ: usize = 8;

/// Strings of a module, and its texts.
struct Texts<'w> {
    strings: HashMap<u32, &'w [u32]>,
    /// The instruction set of debug information.
    debug: Option<u32>,
    found: Vec<SourceText>,
    /// Names of their files.
    files: HashSet<String>,
    /// The last one may be continued.
    open: bool,
    /// How many words of strings may still be read.
    left: usize,
}

impl<'w> Texts<'w> {
    fn string(&mut self, id: u32) -> Option<String> {
        let words = *self.strings.get(&id)?;
        self.left = self.left.checked_sub(words.len())?;
        Some(string(words).ok()?.0)
    }

    fn add(&mut self, file: Option<String>, text: Option<String>) {
        self.open = false;
        if let (Some(file), Some(text)) = (file, text)
            && self.files.insert(file.clone())
        {
            self.found.push(SourceText { file, text });
            self.open = true;
        }
    }

    fn extend(&mut self, more: Option<String>) {
        if let (Some(last), Some(more)) = (self.found.last_mut().filter(|_| self.open), more) {
            last.text.push_str(&more);
        }
    }

    /// Processes an instruction outside of functions.
    fn take(&mut self, inst: Instr<'w>) {
        let words = inst.words;
        match inst.op {
            Op::String if words.len() > 2 => {
                self.strings.insert(words[1], &words[2..]);
            }
            Op::ExtInstImport => {
                let name = words.get(2..).and_then(|name| Some(string(name).ok()?.0));
                if name.is_some_and(|name| name.starts_with("NonSemantic.Shader.DebugInfo.")) {
                    self.debug = words.get(1).copied();
                }
            }
            Op::Source => {
                let file = words.get(3).and_then(|file| self.string(*file));
                let text = words.get(4..).and_then(|text| Some(string(text).ok()?.0));
                self.add(file, text);
            }
            Op::SourceContinued => {
                self.extend(words.get(1..).and_then(|text| Some(string(text).ok()?.0)));
            }
            Op::ExtInst if self.debug.is_none() || self.debug.as_ref() != words.get(3) => {}
            Op::ExtInst if words.get(4) == Some(&DEBUG_SOURCE) => {
                let mut operand = |at: usize| words.get(at).and_then(|id| self.string(*id));
                let (file, text) = (operand(5), operand(6));
                self.add(file, text);
            }
            Op::ExtInst if words.get(4) == Some(&DEBUG_SOURCE_CONTINUED) => {
                let more = words.get(5).and_then(|id| self.string(*id));
                self.extend(more);
            }
            _ => {}
        }
    }
}

/// The texts of a module by the names of their files.
pub fn source_texts(words: &[u32]) -> Vec<SourceText> {
    let mut texts = Texts {
        strings: HashMap::new(),
        debug: None,
        found: Vec::new(),
        files: HashSet::new(),
        open: false,
        left: words.len().saturating_mul(MOST_READ),
    };
    let mut at = 5;
    while let Ok(inst) = instruction(words, at) {
        if inst.op == Op::Function {
            break;
        }
        texts.take(inst);
        at += inst.words.len() as u32;
    }
    texts.found
}
