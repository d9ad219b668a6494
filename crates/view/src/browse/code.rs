//! Code of any instruction set as lines, from any place of a buffer. Bounded. Never: where code ends; that is for whoever reads it.

use super::{Row, RowLook};
use crate::asm::eu;
use thiserror::Error;
use unwedge_base::Generation;
use unwedge_hw::Db;
use unwedge_isa::afuc::disasm::{self, AfucDisasmOptions};
use unwedge_isa::afuc::{DbNames, Firmware};
use unwedge_isa::amdgcn::listing::{self, AmdListingOptions};
use unwedge_isa::ir3::{Ir3Listing, Ir3ListingOptions};
use unwedge_isa::{amdgcn, eu as intel};

/// Bytes of code that are made text at a time.
pub(super) const CODE_BYTES: usize = 64 << 10;

/// An instruction set, as code needs it named.
#[derive(Clone, Copy, Debug)]
pub enum CodeSet {
    /// Adreno's shaders, by the generation.
    Ir3(Generation),
    /// AMD's shaders.
    Amd(amdgcn::Gpu),
    /// Intel's shaders.
    Eu(intel::Platform),
    /// The firmware of Adreno's command processor.
    Afuc(Firmware),
}

/// A name that no instruction set has.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0} is not an instruction set: ir3 a6xx, afuc a6xx, gfx1030, tgl")]
pub struct UnknownCodeSet(pub String);

impl CodeSet {
    /// By its name: `ir3 a6xx`, `afuc a7xx`, `gfx1030`, `tgl`.
    ///
    /// # Errors
    /// When no instruction set is called so.
    pub fn by_name(name: &str) -> Result<CodeSet, UnknownCodeSet> {
        let unknown = || UnknownCodeSet(name.to_owned());
        let generation = |name: &str| Generation::ALL.into_iter().find(|of| of.name() == name);
        let set = match name.split_once(' ') {
            Some(("ir3", of)) => generation(of.trim()).filter(|of| of.number() >= 3).map(CodeSet::Ir3),
            Some(("afuc", of)) => generation(of.trim()).and_then(firmware).map(CodeSet::Afuc),
            _ => None,
        };
        let set = set.or_else(|| amdgcn::Gpu::new(name).ok().map(CodeSet::Amd));
        set.or_else(|| eu::platform(name).ok().map(CodeSet::Eu)).ok_or_else(unknown)
    }

    /// What it is called.
    pub fn name(&self) -> String {
        match self {
            CodeSet::Ir3(generation) => format!("ir3 {}", generation.name()),
            CodeSet::Amd(gpu) => gpu.name().to_owned(),
            CodeSet::Eu(platform) => platform.name().to_owned(),
            CodeSet::Afuc(firmware) => format!("afuc a{}xx", firmware.generation()),
        }
    }

    /// The instructions of code that starts at an address.
    pub fn rows(&self, words: &[u32], address: u64) -> Vec<Row> {
        let words = words.get(..words.len().min(CODE_BYTES / 4)).unwrap_or(words);
        let bytes = || words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        match self {
            CodeSet::Ir3(generation) => ir3(words, *generation, address),
            CodeSet::Amd(gpu) => {
                let options = AmdListingOptions { words: true, address, labels: "" };
                let mut text = String::new();
                listing::write(&bytes(), gpu, &options, &mut text, &mut |_, _| {});
                text.lines().map(|line| Row::plain(line.replace('\t', "    "))).collect()
            }
            CodeSet::Eu(platform) => eu::disassembled(*platform, &bytes(), eu::EuText::Reading)
                .0
                .lines()
                .map(|line| Row::plain(line.replace('\t', "    ")))
                .collect(),
            CodeSet::Afuc(firmware) => afuc(&bytes(), Some(*firmware)),
        }
    }
}

/// The firmware of a generation's first processor.
fn firmware(generation: Generation) -> Option<Firmware> {
    Firmware::ALL.into_iter().find(|firmware| firmware.generation() == generation.number())
}

/// A line an instruction, with its address and words.
fn ir3(words: &[u32], generation: Generation, address: u64) -> Vec<Row> {
    let gpu_id = 100 * generation.number();
    let mut listing = Ir3Listing::new(words.into(), Ir3ListingOptions { gpu_id, raw: false, level: 0 });
    let (mut rows, mut line, mut listed) = (Vec::new(), Vec::new(), 0);
    while listing.instruction(&mut line) {
        let now = listing.listed();
        // One instruction may be several lines, and a line may be none.
        let text = String::from_utf8_lossy(&line).into_owned();
        for (i, part) in text.lines().enumerate() {
            let at = match i {
                0 if now > listed => format!("{:#012x}  ", address.saturating_add(8 * listed as u64)),
                _ => " ".repeat(14),
            };
            rows.push(Row::plain(format!("{at}{}", part.trim().replace('\t', " "))));
        }
        listed = now;
        line.clear();
    }
    rows
}

/// Firmware, or words of it.
pub(super) fn afuc(bytes: &[u8], firmware: Option<Firmware>) -> Vec<Row> {
    let db = Db::builtin();
    let options =
        AfucDisasmOptions { firmware, raw: firmware.is_some(), verbose: true, ..Default::default() };
    match disasm::disassemble(bytes, &[], &options, &DbNames::new(&db)) {
        Ok(text) => text.lines().map(|line| Row::plain(line.replace('\t', "    "))).collect(),
        Err(error) => vec![Row::of(error.to_string(), RowLook::Loss)],
    }
}
