//! Source lines of code: the position in the source that each instruction comes from.
//!
//! An instruction has the position of the operation that it was selected from, and keeps it when it is moved, combined or replaced. An instruction that stands for two operations with different
//! positions has none. Instructions that phases add (copies, lane masks, waits) have none either. Never: a guess from neighbouring instructions.

use crate::assemble::Assembly;
use crate::ir::{Inst, Program};
use crate::machine::{MachineInst, MachineProgram};
use std::collections::HashMap;
use unwedge_base::entity::Entity;
use unwedge_shader::ir::{Loc, Shader, SourceLoc};

/// Positions that the instructions of a program refer to: those of all its shaders, concatenated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourcePositions {
    files: Vec<String>,
    locs: Vec<SourceLoc>,
}

impl SourcePositions {
    /// The positions of the shaders of a program.
    pub(crate) fn of(parts: &[&Shader]) -> SourcePositions {
        let mut all = SourcePositions::default();
        for shader in parts {
            let first = all.files.len() as u32;
            all.files.extend_from_slice(&shader.files);
            let own = shader.locs.values().copied();
            all.locs.extend(own.map(|loc| SourceLoc { file: loc.file.saturating_add(first), ..loc }));
        }
        all
    }

    /// A position; `None` if its line is 0.
    fn get(&self, loc: Loc) -> Option<SourceLoc> {
        self.locs
            .get(loc.index())
            .copied()
            .filter(|loc| loc.line > 0 && (loc.file as usize) < self.files.len())
    }
}

/// The start of code that comes from a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLine {
    /// Its first word.
    pub word: usize,
    /// The position, if there is one.
    pub position: Option<SourceLoc>,
}

/// The source lines of code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeLines {
    /// Files that positions name.
    pub files: Vec<String>,
    /// In the order of the code; each applies up to the next one.
    pub rows: Vec<CodeLine>,
}

impl CodeLines {
    /// The source lines of assembled code.
    pub(crate) fn of(
        positions: &SourcePositions,
        program: &Program,
        machine: &MachineProgram,
        assembly: &Assembly,
    ) -> CodeLines {
        let mut lines = CodeLines::default();
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let of_inst = |inst: Option<Inst>| positions.get(program[inst?].loc?);
        let mut last = None;
        for ((block, lengths), start) in machine.blocks.iter().zip(&assembly.lengths).zip(&assembly.starts) {
            let mut word = *start;
            for (MachineInst { from, paired, .. }, length) in block.insts.iter().zip(lengths) {
                let position =
                    of_inst(*from).filter(|own| paired.is_none() || of_inst(*paired) == Some(*own));
                if position != last {
                    last = position;
                    let position = position.map(|position| {
                        let name = positions.files[position.file as usize].as_str();
                        let file = *numbers.entry(name).or_insert_with(|| {
                            lines.files.push(name.to_owned());
                            lines.files.len() as u32 - 1
                        });
                        SourceLoc { file, ..position }
                    });
                    lines.rows.push(CodeLine { word, position });
                }
                word += length;
            }
        }
        lines
    }

    /// The position of the code at an offset in words.
    pub fn at(&self, word: usize) -> Option<SourceLoc> {
        let after = self.rows.partition_point(|row| row.word <= word);
        self.rows.get(after.checked_sub(1)?)?.position
    }
}
