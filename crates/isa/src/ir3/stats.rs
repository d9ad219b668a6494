//! What a shader costs, read off its instructions: how many, which registers, what it waits for.
//!
//! Never: control flow; every instruction counts once. What is counted, and the text of [`Stats::write`], is as Mesa's
//! disassembler has it.

use super::decode;
use crate::table::DisplayPart;
use std::io::Write;

/// Cycles a result of the special function unit (category 4) takes; one `(ss)` waits for the rest of them.
const SFU_CYCLES: u32 = 10;
/// Registers from r48 on are shared between the fibers of a wave and do not count to its footprint.
const FIRST_SHARED: u64 = 48;
/// The first GPU whose half registers lie in the full ones.
const MERGED_FROM: u32 = 600;

/// Counts over a shader. Registers and constants are told as the highest component: `r1.y` is 5.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Words, each of them one instruction.
    pub words: u32,
    /// Issue cycles that repeats and nop counts add to the words.
    pub extra_cycles: u32,
    /// Cycles that are nops: instructions with their repeats, and nop counts of others.
    pub nops: u32,
    /// Moves that do not convert.
    pub movs: u32,
    /// Moves that convert.
    pub covs: u32,
    /// Index of the last instruction that fetches a varying (`bary.f`); 0 without one.
    pub last_varying_fetch: u32,
    /// Highest component of a half register.
    pub highest_half: Option<u32>,
    /// Highest component of a full register.
    pub highest_full: Option<u32>,
    /// Highest component of a constant.
    pub highest_const: Option<u32>,
    /// Cycles of each category 0 to 7, repeats and nop counts (category 0) with them.
    pub categories: [u32; 8],
    /// Cycles an `(ss)` waits for special functions, if nothing else delays.
    pub ss_stall: u32,
    /// Instructions with `(ss)`.
    pub ss: u32,
    /// Instructions with `(sy)`.
    pub sy: u32,
}

/// What limits the waves that run at once, of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveLimits {
    /// Four-component registers for a fiber of a wave that runs alone (`reg_size_vec4`).
    pub registers: u32,
    /// Waves come in groups of so many (`wave_granularity`).
    pub granularity: u32,
    /// Most waves at all (`max_waves`).
    pub most: u32,
}

impl Stats {
    /// Counts over `words`, all of them; branch targets and the end of the shader do not matter.
    pub fn of(words: impl IntoIterator<Item = u64>, gpu_id: u32) -> Stats {
        let mut counter = StatsCounter { stats: Stats::default(), ..StatsCounter::default() };
        for word in words {
            counter.instruction(word, gpu_id);
        }
        counter.stats
    }

    /// Instructions and the cycles that they repeat or wait.
    pub fn cycles(&self) -> u32 {
        self.words.saturating_add(self.extra_cycles)
    }

    /// Full registers of four components. On a GPU whose half registers lie in full ones (from a6xx on), with them.
    pub fn full_registers(&self, gpu_id: u32) -> u32 {
        let full = registers(self.highest_full);
        if gpu_id < MERGED_FROM {
            return full;
        }
        full.max(self.highest_half.map_or(0, |half| registers(Some(half / 2))))
    }

    /// Half registers of four components.
    pub fn half_registers(&self) -> u32 {
        registers(self.highest_half)
    }

    /// Four-component constants.
    pub fn constants(&self) -> u32 {
        registers(self.highest_const)
    }

    /// Waves that the registers let run at once; `double` is the larger of the wave sizes.
    pub fn max_waves(&self, gpu_id: u32, limits: WaveLimits, double: bool) -> u32 {
        let registers = self.full_registers(gpu_id).saturating_mul(if double { 2 } else { 1 });
        match limits.registers.checked_div(registers) {
            Some(groups) => groups.saturating_mul(limits.granularity).min(limits.most),
            None => limits.most,
        }
    }

    /// Appends the five lines that listings end with, `level` tabs before each. Their register counts come from the
    /// highest component and not from one past it: a shader that uses r1.x and nothing above has `1 full`.
    pub fn write(&self, gpu_id: u32, level: usize, out: &mut Vec<u8>) {
        let tabs = "\t".repeat(level);
        let (mut half, mut full) = (self.highest_half.unwrap_or(0), self.highest_full.unwrap_or(0));
        if gpu_id >= MERGED_FROM {
            full = full.max(half.saturating_add(1) / 2);
            half = 0;
        }
        let constants = self.highest_const.unwrap_or(0).div_ceil(4);
        let cycles = self.cycles();
        let [c0, c1, c2, c3, c4, c5, c6, c7] = self.categories;
        // Writing to a Vec cannot fail.
        let _ = write!(
            out,
            "{tabs}Stats:\n\
             {tabs}- shaderdb: {cycles} instr, {} nops, {} non-nops, {} mov, {} cov\n\
             {tabs}- shaderdb: {} last-baryf, {} half, {} full, {constants} constlen\n\
             {tabs}- shaderdb: {c0} cat0, {c1} cat1, {c2} cat2, {c3} cat3, {c4} cat4, {c5} cat5, {c6} cat6, {c7} cat7\n\
             {tabs}- shaderdb: {} sstall, {} (ss), {} (sy)\n",
            self.nops,
            cycles.wrapping_sub(self.nops),
            self.movs,
            self.covs,
            self.last_varying_fetch,
            half.div_ceil(4),
            full.div_ceil(4),
            self.ss_stall,
            self.ss,
            self.sy,
        );
    }
}

/// Registers that hold the components up to this one.
fn registers(highest: Option<u32>) -> u32 {
    highest.map_or(0, |component| component / 4 + 1)
}

#[derive(Clone, Copy, Default, PartialEq)]
enum RegFile {
    #[default]
    None,
    Gpr,
    Const,
}

/// The operand whose parts come by.
#[derive(Clone, Copy, Default)]
struct StatsOperand {
    file: RegFile,
    number: u32,
    half: bool,
    repeated: bool,
}

/// The instruction whose parts come by.
#[derive(Clone, Copy, Default)]
struct CurrentInstr {
    ss: bool,
    nop: u32,
    repeat: u32,
    alias: bool,
    alias_scope: u64,
    alias_full: bool,
}

/// Registers that stand for others until the next texture instruction.
type Aliases = [u64; 4];

#[derive(Default)]
struct StatsCounter {
    stats: Stats,
    current: CurrentInstr,
    operand: StatsOperand,
    sfu_delay: u32,
    full_aliases: Aliases,
    half_aliases: Aliases,
}

impl StatsCounter {
    fn instruction(&mut self, word: u64, gpu_id: u32) {
        let category = (word >> 61) as usize;
        self.stats.words = self.stats.words.saturating_add(1);
        self.add(category, 1);
        self.current = CurrentInstr::default();
        if let Some(decoded) = decode(word, gpu_id) {
            if decoded.name().starts_with("mov-")
                && let (Some(from), Some(to)) = (decoded.field("SRC_TYPE"), decoded.field("DST_TYPE"))
            {
                let count = if from == to { &mut self.stats.movs } else { &mut self.stats.covs };
                *count = count.saturating_add(1);
            }
            decoded.walk(&mut |part| self.part(part, category));
        }
        self.settle(category);
    }

    fn add(&mut self, category: usize, cycles: u32) {
        if let Some(count) = self.stats.categories.get_mut(category) {
            *count = count.saturating_add(cycles);
        }
    }

    fn part(&mut self, part: DisplayPart<'_>, category: usize) {
        let (name, value) = match part {
            DisplayPart::Name(name) => return self.name(name),
            DisplayPart::Field { name, value, .. } | DisplayPart::Enter { name, value, .. } => (name, value),
            _ => return,
        };
        let small = u32::try_from(value).unwrap_or(u32::MAX);
        match name {
            "REPEAT" => {
                self.stats.extra_cycles = self.stats.extra_cycles.saturating_add(small);
                self.add(category, small);
                self.current.repeat = small;
            }
            "NOP" => {
                self.stats.extra_cycles = self.stats.extra_cycles.saturating_add(small);
                self.add(0, small);
                self.stats.nops = self.stats.nops.saturating_add(small);
                self.current.nop = small;
            }
            "SY" => self.stats.sy = self.stats.sy.saturating_add(small),
            "SS" => {
                self.stats.ss = self.stats.ss.saturating_add(small);
                self.current.ss = value != 0;
            }
            "CONST" => (self.operand.file, self.operand.number) = (RegFile::Const, small),
            "GPR" if value < FIRST_SHARED => (self.operand.file, self.operand.number) = (RegFile::Gpr, small),
            "SRC_R" | "SRC1_R" | "SRC2_R" | "SRC3_R" => self.operand.repeated = value != 0,
            "DST" => {
                // Destinations repeat always.
                self.operand.repeated = true;
                if self.current.alias && self.current.alias_scope == ALIAS_TEX {
                    let aliases =
                        if self.current.alias_full { &mut self.full_aliases } else { &mut self.half_aliases };
                    if let Some(bits) = aliases.get_mut(small as usize / 64) {
                        *bits |= 1 << (small % 64);
                    }
                }
            }
            "SCOPE" => self.current.alias_scope = value,
            "SWIZ" => self.component(small),
            name if name.contains("HALF") => self.operand.half = value != 0,
            name if name.contains("TYPE_SIZE") => self.current.alias_full = value == 1,
            _ => {}
        }
    }

    fn name(&mut self, name: &str) {
        match name {
            "nop" => self.stats.nops = self.stats.nops.saturating_add(1 + self.current.repeat),
            "bary.f" => self.stats.last_varying_fetch = self.stats.words - 1,
            "alias" => self.current.alias = true,
            _ => {}
        }
    }

    /// An operand is complete with its component.
    fn component(&mut self, component: u32) {
        let StatsOperand { file, number, half, repeated } = std::mem::take(&mut self.operand);
        let repeat = if repeated { self.current.repeat } else { 0 };
        let at = number.saturating_mul(4).saturating_add(component).saturating_add(repeat);
        let aliased =
            |aliases: &Aliases| aliases.get(at as usize / 64).is_some_and(|bits| bits >> (at % 64) & 1 == 1);
        let highest = match file {
            RegFile::None => return,
            RegFile::Const => &mut self.stats.highest_const,
            RegFile::Gpr if half && !aliased(&self.half_aliases) => &mut self.stats.highest_half,
            RegFile::Gpr if !aliased(&self.full_aliases) => &mut self.stats.highest_full,
            RegFile::Gpr => return,
        };
        *highest = (*highest).max(Some(at));
    }

    /// What an instruction leaves behind for those after it.
    fn settle(&mut self, category: usize) {
        if self.current.ss {
            self.stats.ss_stall = self.stats.ss_stall.saturating_add(self.sfu_delay);
            self.sfu_delay = 0;
        }
        if category == 4 {
            self.sfu_delay = SFU_CYCLES;
        } else {
            let cycles = 1u32.saturating_add(self.current.repeat).saturating_add(self.current.nop);
            self.sfu_delay = self.sfu_delay.saturating_sub(cycles);
        }
        if category == 5 {
            self.full_aliases = Aliases::default();
            self.half_aliases = Aliases::default();
        }
    }
}

/// The scope of aliases for texture instructions.
const ALIAS_TEX: u64 = 0;
