//! Register values: joining the halves of 64-bit registers, their text, and what some registers point at.

use super::{CffText, OpenStream, Shader, TextOut, disassemble, names};
use unwedge_base::{Generation, Memory};
use unwedge_hw::{Gpu, Palette, Reg, RegSpace, Registers, Variants};
use unwedge_stream::adreno::{AdrenoOp, AdrenoState, Stage};

/// Dwords shown of memory that a register points at.
const POINTED_AT: usize = 64;

/// Joins the dwords of 64-bit registers as they come, the way the tools do: a low dword whose high one does not follow
/// is given out alone, and the dword that came instead is lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pair {
    /// Offset of the register, of its low dword if it has two.
    pub reg: u32,
    /// The value so far.
    pub value: u64,
    waiting: bool,
}

impl Pair {
    /// A register with its whole value.
    pub fn whole(reg: u32, value: u64) -> Pair {
        Pair { reg, value, waiting: false }
    }

    /// Takes a dword. Returns whether `reg` and `value` are complete. Says when a half is missing.
    pub fn push(&mut self, space: Registers<'_>, reg: u32, dword: u32, text: &mut TextOut<'_>) -> bool {
        self.push_half(|| Half::of(space.at(reg)), reg, dword, text)
    }

    /// The same; `half` says which dword of a register this is if it comes first.
    pub(super) fn push_half(
        &mut self,
        half: impl FnOnce() -> Half,
        reg: u32,
        dword: u32,
        text: &mut TextOut<'_>,
    ) -> bool {
        if std::mem::take(&mut self.waiting) {
            if reg == self.reg.wrapping_add(1) {
                self.value |= u64::from(dword) << 32;
            } else {
                text.str("WARNING: 64b discontinuity (").hex(u64::from(reg), 1).str(", expected ");
                text.hex(u64::from(self.reg.wrapping_add(1)), 1).str(")").end();
            }
            return true;
        }
        (self.reg, self.value) = (reg, u64::from(dword));
        match half() {
            Half::Whole => {}
            Half::Low => self.waiting = true,
            Half::LoneHigh => {
                text.str("WARNING: 64b discontinuity (no _LO dword for ")
                    .hex(u64::from(reg), 1)
                    .str(")")
                    .end();
            }
        }
        !self.waiting
    }
}

/// Which dword of a register one is that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The only one.
    Whole,
    /// The low one of two.
    Low,
    /// The high one of two, by its name.
    LoneHigh,
}

impl Half {
    pub(super) fn of(entry: Option<Reg<'_>>) -> Half {
        let Some(name) = entry.filter(|entry| entry.width() == 64).map(Reg::name) else { return Half::Whole };
        match is_half(name, "_HI") {
            true => Half::LoneHigh,
            false => Half::Low,
        }
    }
}

/// How a register's value is an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// It is none.
    No,
    /// As it is.
    Whole,
    /// Its low half; the next register is the high one.
    Low,
    /// Its high half; the register before is the low one.
    High,
}

impl Address {
    pub(super) fn of(gpu: Gpu<'_>, reg: u32) -> Address {
        let Some(entry) = gpu.reg(reg) else { return Address::No };
        let Some(ty) = entry.ty() else { return Address::No };
        let ends = |reg: Option<u32>, suffix: &str| {
            reg.and_then(|r| gpu.reg(r)).is_some_and(|r| is_half(r.name(), suffix))
        };
        match gpu.generation() {
            Generation::A6xx | Generation::A7xx if ty.is_address() => Address::Whole,
            Generation::A5xx if is_half(entry.name(), "_HI") && ends(reg.checked_sub(1), "_LO") => {
                Address::High
            }
            Generation::A5xx if is_half(entry.name(), "_LO") && ends(reg.checked_add(1), "_HI") => {
                Address::Low
            }
            _ => Address::No,
        }
    }

    /// The address; `other` gives the value of the other half. 0 when it is none.
    fn join(self, pair: Pair, other: impl Fn(u32) -> u32) -> u64 {
        match self {
            Address::No => 0,
            Address::Whole => pair.value,
            Address::Low => u64::from(other(pair.reg.wrapping_add(1))) << 32 | pair.value,
            Address::High => pair.value << 32 | u64::from(other(pair.reg.wrapping_sub(1))),
        }
    }
}

/// A name ends in `suffix`; one that has it inside too does not count.
fn is_half(name: &str, suffix: &str) -> bool {
    name.find(suffix).is_some_and(|at| at + suffix.len() == name.len())
}

/// Prints register values.
pub struct RegisterPrinter<'p, 'd> {
    /// The view of the GPU's generation.
    pub gpu: Gpu<'d>,
    /// Where addresses are looked up.
    pub memory: &'p Memory,
    /// Colours.
    pub palette: &'p Palette,
}

impl RegisterPrinter<'_, '_> {
    /// The name of a register of any space.
    pub fn name(&self, space: Registers<'_>, reg: u32, text: &mut TextOut<'_>) {
        names::write_at(space, reg, self.palette, text);
    }

    /// `NAME: value` of a register of any space.
    pub fn plain(&self, space: Registers<'_>, pair: Pair, variants: &mut Variants, text: &mut TextOut<'_>) {
        self.name(space, pair.reg, text);
        text.str(": ");
        match space.at(pair.reg).and_then(|e| e.ty()) {
            Some(ty) => ty.write(pair.value, variants, self.palette, text.buffer()),
            None => {
                text.hex(pair.value, 8);
            }
        }
    }

    /// A line with a register of the GPU space; addresses say in which buffer they lie. `other` gives the value of
    /// other registers: on a5xx the halves of an address are two of them.
    pub fn line(
        &self,
        pair: Pair,
        level: usize,
        other: impl Fn(u32) -> u32,
        variants: &mut Variants,
        text: &mut TextOut<'_>,
    ) {
        text.level(level);
        self.plain(self.gpu.space(RegSpace::Gpu), pair, variants, text);
        base(self.memory, Address::of(self.gpu, pair.reg).join(pair, other), text);
        text.end();
    }
}

/// In which buffer an address lies.
fn base(memory: &Memory, iova: u64, text: &mut TextOut<'_>) {
    if iova != 0
        && let Some(buffer) = memory.find(iova)
    {
        text.str("\t\tbase=").hex(buffer.iova, 1).str(", offset=").dec(iova.wrapping_sub(buffer.iova));
        text.str(", size=").dec(buffer.size);
    }
}

/// What is shown beside a register's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// The four scratch registers that drivers keep their markers in.
    Scratch,
    /// Memory at the 32-bit address.
    Memory,
    /// Memory at the 64-bit address.
    Memory64,
    /// The low half of an address that a register of its own completes.
    Low,
    /// Memory at the address whose high half this is.
    MemoryHigh,
    /// The stage's shader at the 32-bit address.
    Code(Stage),
    /// The stage's shader at the 64-bit address.
    Code64(Stage),
    /// The stage's shader at the address whose high half this is.
    CodeHigh(Stage),
    /// Samplers at the address whose high half this is; how many, another register says.
    Samplers { count: u32 },
    /// Texture descriptors at the address whose high half this is.
    Textures { count: u32 },
}

/// Registers with something beside their value, by offset.
pub struct Special {
    registers: Vec<(u32, Beside)>,
    /// The first of eight scratch registers.
    pub(super) scratch: Option<u32>,
}

impl Special {
    pub fn new(gpu: Gpu<'_>) -> Special {
        let mut registers: Vec<(u32, Beside)> = Vec::new();
        let mut add = |name: String, beside: Beside| {
            if let Some(offset) = gpu.reg_offset(&name).filter(|&o| o != 0) {
                registers.push((offset, beside));
            }
        };
        let generation = gpu.generation();
        match generation {
            Generation::A2xx | Generation::A3xx => {
                (0..8).for_each(|i| add(format!("CP_SCRATCH_REG{i}"), Beside::Scratch));
            }
            Generation::A4xx => (0..8).for_each(|i| add(format!("CP_SCRATCH[{i}].REG"), Beside::Scratch)),
            Generation::A5xx | Generation::A6xx => {
                (4..8).for_each(|i| add(format!("CP_SCRATCH[{i}].REG"), Beside::Scratch));
            }
            Generation::A7xx => {}
        }
        match generation {
            Generation::A2xx => {}
            Generation::A3xx => {
                for name in ["VSC_SIZE_ADDRESS", "TPL1_TP_FS_BORDER_COLOR_BASE_ADDR"] {
                    add(name.to_owned(), Beside::Memory);
                }
                for (name, stage) in STAGES.into_iter().filter(|(name, _)| ["VS", "FS"].contains(name)) {
                    add(format!("SP_{name}_PVT_MEM_ADDR_REG"), Beside::Memory);
                    add(format!("SP_{name}_OBJ_START_REG"), Beside::Code(stage));
                }
            }
            Generation::A4xx => {
                for (name, stage) in STAGES {
                    add(format!("SP_{name}_PVT_MEM_ADDR"), Beside::Memory);
                    add(format!("SP_{name}_OBJ_START"), Beside::Code(stage));
                    if stage != Stage::Compute {
                        add(format!("TPL1_TP_{name}_BORDER_COLOR_BASE_ADDR"), Beside::Memory);
                    }
                }
            }
            Generation::A5xx => {
                for (name, stage) in STAGES {
                    add(format!("SP_{name}_OBJ_START_LO"), Beside::Low);
                    add(format!("SP_{name}_OBJ_START_HI"), Beside::CodeHigh(stage));
                    let count = gpu.reg_offset(&format!("TPL1_{name}_TEX_COUNT")).unwrap_or(0);
                    add(format!("TPL1_{name}_TEX_CONST_LO"), Beside::Low);
                    add(format!("TPL1_{name}_TEX_CONST_HI"), Beside::Textures { count });
                    add(format!("TPL1_{name}_TEX_SAMP_LO"), Beside::Low);
                    add(format!("TPL1_{name}_TEX_SAMP_HI"), Beside::Samplers { count });
                }
                add("TPL1_TP_BORDER_COLOR_BASE_ADDR_LO".to_owned(), Beside::Low);
                add("TPL1_TP_BORDER_COLOR_BASE_ADDR_HI".to_owned(), Beside::MemoryHigh);
            }
            Generation::A6xx | Generation::A7xx => {
                for (name, stage) in STAGES {
                    add(format!("SP_{name}_OBJ_START"), Beside::Code64(stage));
                    if generation == Generation::A6xx {
                        add(format!("SP_{name}_TEX_CONST"), Beside::Memory64);
                        add(format!("SP_{name}_TEX_SAMP"), Beside::Memory64);
                    }
                }
            }
        }
        registers.sort_by_key(|&(offset, _)| offset);
        let scratch =
            ["CP_SCRATCH[0].REG", "CP_SCRATCH_REG0"].into_iter().find_map(|name| gpu.reg_offset(name));
        Special { registers, scratch }
    }

    pub(super) fn beside(&self, reg: u32) -> Option<Beside> {
        let at = self.registers.binary_search_by_key(&reg, |&(offset, _)| offset).ok()?;
        self.registers.get(at).map(|&(_, beside)| beside)
    }
}

/// Shader stages as register names have them.
const STAGES: [(&str, Stage); 6] = [
    ("VS", Stage::Vertex),
    ("HS", Stage::TessControl),
    ("DS", Stage::TessEval),
    ("GS", Stage::Geometry),
    ("FS", Stage::Fragment),
    ("CS", Stage::Compute),
];

/// The scratch registers that drivers keep their markers in; `first` of all eight.
fn scratch(state: &AdrenoState, first: u32) -> [u32; 4] {
    [4, 5, 6, 7].map(|i| state.regs.raw(first.wrapping_add(i)))
}

impl CffText<'_, '_, '_> {
    /// A register write of the current packet.
    pub(super) fn write(&mut self, state: &AdrenoState, reg: u32, value: u32) {
        let Some(open) = self.streams.last_mut() else { return };
        let (op, plain, level) = (open.op, open.plain, open.level + 2);
        let banked = (0x2000..0x2400).contains(&reg);
        if self.carry.needs_wfi && !banked && (plain || op == AdrenoOp::SetConstant) {
            self.text.str("NEEDS WFI: ");
            self.known.write_name(reg, self.text);
            self.text.str(" (").hex(u64::from(reg), 1).str(")").end();
        }
        if op == AdrenoOp::RegRmw {
            return;
        }
        let Some(open) = self.streams.last_mut() else { return };
        self.text.mute(false);
        let complete = open.pair.push_half(|| self.known.facts(reg).half, reg, value, self.text);
        self.text.mute(self.quiet);
        if !complete {
            return;
        }
        let pair = open.pair;
        let whole = matches!(
            op,
            AdrenoOp::ContextRegBunch | AdrenoOp::ContextRegBunch2 | AdrenoOp::NonContextRegBunch
        );
        self.register(state, pair, level, (!self.options.summary || whole) && !self.quiet, false);
        if let Some(first) = self.known.special.scratch
            && let Some(OpenStream { scratch: Some(before), .. }) = self.streams.last_mut()
            && let Some(kept) = before.get_mut(reg.wrapping_sub(first).wrapping_sub(4) as usize)
        {
            *kept = value;
        }
    }

    /// The line of a complete register value.
    pub(super) fn value(&mut self, state: &AdrenoState, pair: Pair, level: usize) {
        self.text.level(level);
        self.known.write_value(pair.reg, pair.value, &mut self.carry.variants, self.text);
        let address = self.known.facts(pair.reg).address;
        base(self.memory, address.join(pair, |reg| state.regs.raw(reg)), self.text);
        self.text.end();
    }

    /// A complete register value, and what belongs beside it. Registers that are not `shown` still set the low half of
    /// addresses.
    pub(super) fn register(
        &mut self,
        state: &AdrenoState,
        pair: Pair,
        level: usize,
        shown: bool,
        in_summary: bool,
    ) {
        let facts = self.known.facts(pair.reg);
        if shown {
            self.value(state, pair, level);
        }
        let Some(beside) = facts.beside else { return };
        let dword = pair.value & 0xffff_ffff;
        let joined = u64::from(self.carry.address_low) | dword << 32;
        match beside {
            Beside::Low => self.carry.address_low = pair.value as u32,
            Beside::Samplers { count } if in_summary => {
                self.samplers_at(joined, state.regs.raw(count), level + 1);
            }
            Beside::Textures { count } if in_summary => {
                self.textures_at(joined, state.regs.raw(count), level + 1);
            }
            _ if !shown => {}
            Beside::Samplers { .. } | Beside::Textures { .. } => {}
            Beside::Scratch => self.scratch(state, level),
            Beside::Memory => self.hex_at(dword, POINTED_AT, level + 1),
            Beside::Memory64 => self.hex_at(pair.value, POINTED_AT, level + 1),
            Beside::MemoryHigh => self.hex_at(joined, POINTED_AT, level + 1),
            Beside::Code(stage) => self.code_at(dword, stage, level),
            Beside::Code64(stage) => self.code_at(pair.value, stage, level),
            Beside::CodeHigh(stage) => self.code_at(joined, stage, level),
        }
    }

    /// The scratch registers before a packet whose writes the tools show before they take them in.
    pub(super) fn scratch_before(&self, state: &AdrenoState, op: AdrenoOp) -> Option<[u32; 4]> {
        let late = matches!(
            op,
            AdrenoOp::RegWrite
                | AdrenoOp::WideRegWrite
                | AdrenoOp::ContextRegBunch
                | AdrenoOp::ContextRegBunch2
                | AdrenoOp::NonContextRegBunch
        );
        self.known.special.scratch.filter(|_| late).map(|first| scratch(state, first))
    }

    fn scratch(&mut self, state: &AdrenoState, level: usize) {
        let Some(first) = self.known.special.scratch else { return };
        let before = self.streams.last().and_then(|open| open.scratch);
        self.text.level(level).byte(b':');
        for (i, value) in before.unwrap_or_else(|| scratch(state, first)).into_iter().enumerate() {
            if i > 0 {
                self.text.byte(b',');
            }
            self.text.dec(u64::from(value));
        }
        self.text.end();
    }

    fn code_at(&mut self, iova: u64, stage: Stage, level: usize) {
        let iova = iova & !0xf;
        if let Some(code) = self.memory_at(iova) {
            self.hand_on_ir3(Some(stage), code);
            self.hex(code.take(POINTED_AT), Some(iova), level + 1);
            disassemble(
                self.text,
                code,
                Shader::Ir3 { stats: self.options.stats },
                self.gpu.generation(),
                level + 2,
            );
        }
    }
}
