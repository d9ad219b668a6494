//! Checks AMD machine code, GCN and RDNA, whoever compiled it.
//!
//! [`check`] reads what is reached of some code as a graph, follows what is pending (waits, hazards, what has been written) over it until
//! nothing changes, and tells each rule of [`facts`] that is broken on some path. Paths are not pruned by conditions: both
//! ways of a branch are taken. Never: runs code, rewrites it, guesses what registers hold.

mod exec;
pub mod facts;
mod finding;
mod flow;
mod hazards;
mod op;
mod partial;
mod program;
mod shape;
mod state;
mod waits;

pub use facts::{Certainty, Rule};
pub use finding::{CheckFinding, CheckReport, WaitNeed};

use unwedge_isa::amdgcn::Gpu;

/// A place where a program starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramEntry {
    /// In bytes from the start of the code.
    pub at: u32,
    /// Registers that are set; not known: all may be.
    pub preset: Option<EntryPreset>,
    /// Code that is not seen may call it: it may not be known what is pending.
    pub called: bool,
}

/// Registers that are set when a program starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPreset {
    /// Scalar registers from `s0` on.
    pub sgprs: u16,
    /// Vector registers from `v0` on.
    pub vgprs: u16,
}

/// What is known of code beyond its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// Where it starts; none: at 0.
    pub entries: Vec<ProgramEntry>,
    /// Code that is another part of the program follows: its end need not be `s_endpgm`, and nothing may be left open.
    pub continues: bool,
    /// It is a pixel shader, or exports geometry.
    pub exports: bool,
    /// Dwords, in bytes from the start of the code, that a linker fills in: what they will hold is not known.
    pub relocated: Vec<u32>,
}

/// Checks code. Words that are not whole at its end are not looked at.
pub fn check(code: &[u8], gpu: &Gpu, options: &CheckOptions) -> CheckReport {
    let (chunks, _) = code.as_chunks::<4>();
    let words: Vec<u32> = chunks.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    check_words(&words, gpu, options)
}

/// Checks code that is there as dwords.
pub fn check_words(words: &[u32], gpu: &Gpu, options: &CheckOptions) -> CheckReport {
    let start = [ProgramEntry { at: 0, preset: None, called: false }];
    let entries = if options.entries.is_empty() { &start[..] } else { &options.entries };
    let dwords: Vec<u32> = entries.iter().map(|entry| entry.at / 4).collect();
    let program = program::CheckedProgram::read(words, &dwords, &options.relocated, gpu);
    let mut findings = Vec::new();
    let mut complete = flow::follow(&program, gpu, entries, options, &mut findings);
    complete &= shape::check(&program, words, gpu, options, &mut findings);
    findings.sort_by_key(|f| (f.at, f.rule, f.first));
    findings.dedup_by(|a, b| (a.at, a.rule, a.open, a.need) == (b.at, b.rule, b.open, b.need));
    CheckReport { findings, instructions: program.ops.len(), complete }
}
