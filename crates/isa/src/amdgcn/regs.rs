//! Registers: one numbering for all generations, their names, and the codes that encode them.
//!
//! A code means different registers in different generations (124 is `m0`, and from gfx11 `null`); a [`Reg`] does not.
//! Facts: the operand encodings of AMD's ISA manuals, cross-checked with LLVM 19.

use super::model::Gfx;

/// A register. Of several in a row it is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(
    /// Scalar registers are 0 to 105, vector registers begin at [`Reg::VGPR0`], accumulation registers at [`Reg::AGPR0`]; the
    /// others are constants of this type.
    pub u16,
);

/// Declares the registers that have a name of their own, and where their names are known.
macro_rules! special {
    ($($constant:ident = $number:literal $name:literal,)*) => {
        impl Reg {
            $(#[doc = concat!("`", $name, "`.")] pub const $constant: Reg = Reg($number);)*
        }
        /// Names, by number.
        const SPECIAL: &[(u16, &str)] = &[$(($number, $name),)*];
    };
}

special! {
    VCC = 106 "vcc_lo",
    VCC_HI = 107 "vcc_hi",
    M0 = 124 "m0",
    NULL = 125 "null",
    EXEC = 126 "exec_lo",
    EXEC_HI = 127 "exec_hi",
    TBA = 128 "tba_lo",
    TBA_HI = 129 "tba_hi",
    TMA = 130 "tma_lo",
    TMA_HI = 131 "tma_hi",
    FLAT_SCRATCH = 132 "flat_scratch_lo",
    FLAT_SCRATCH_HI = 133 "flat_scratch_hi",
    XNACK_MASK = 134 "xnack_mask_lo",
    XNACK_MASK_HI = 135 "xnack_mask_hi",
    SHARED_BASE = 235 "src_shared_base",
    SHARED_LIMIT = 236 "src_shared_limit",
    PRIVATE_BASE = 237 "src_private_base",
    PRIVATE_LIMIT = 238 "src_private_limit",
    POPS_EXITING_WAVE_ID = 239 "src_pops_exiting_wave_id",
    VCCZ = 251 "src_vccz",
    EXECZ = 252 "src_execz",
    SCC = 253 "src_scc",
    LDS_DIRECT = 254 "src_lds_direct",
}

impl Reg {
    /// `v0`.
    pub const VGPR0: Reg = Reg(256);
    /// `a0`.
    pub const AGPR0: Reg = Reg(512);
    /// Numbers of registers are below this.
    pub const COUNT: u16 = 768;
    /// `ttmp0`.
    pub const TTMP0: Reg = Reg(108);

    /// Vector register `n`.
    pub const fn vgpr(n: u8) -> Reg {
        Reg(256 + n as u16)
    }

    /// Accumulation register `n`.
    pub const fn agpr(n: u8) -> Reg {
        Reg(Reg::AGPR0.0 + n as u16)
    }

    /// Scalar register `n`, below 106.
    pub const fn sgpr(n: u8) -> Reg {
        Reg(n as u16)
    }

    /// Whether it is a vector register.
    pub const fn is_vgpr(self) -> bool {
        self.0 >= Reg::VGPR0.0 && self.0 < Reg::AGPR0.0
    }

    /// Whether it is an accumulation register.
    pub const fn is_agpr(self) -> bool {
        self.0 >= Reg::AGPR0.0
    }

    /// Its number among the registers of lanes, accumulation registers after the others; `None`: it has one value for all lanes.
    pub const fn lane_number(self) -> Option<u16> {
        self.0.checked_sub(Reg::VGPR0.0)
    }

    /// Whether it is a numbered scalar register.
    pub const fn is_sgpr(self) -> bool {
        self.0 < 106
    }

    /// Whether it is a trap handler's temporary.
    pub const fn is_ttmp(self) -> bool {
        self.0 >= 108 && self.0 < 124
    }

    /// Its number in its file: that of `v5`, `s5` and `ttmp5` is 5.
    pub const fn index(self) -> u16 {
        if self.is_vgpr() {
            self.0 - Reg::VGPR0.0
        } else if self.is_agpr() {
            self.0 - Reg::AGPR0.0
        } else if self.is_ttmp() {
            self.0 - 108
        } else {
            self.0
        }
    }

    /// A run of registers from this one on, as it is written: `v1`, `s[4:7]`, `vcc`.
    pub fn run_name(self, count: u16) -> String {
        let file = match self {
            _ if self.is_vgpr() => "v",
            _ if self.is_agpr() => "a",
            _ => "s",
        };
        match (self.special_name(), self.index(), count) {
            (Some(name), ..) if self.0 < Reg::VGPR0.0 => name.to_owned(),
            (_, first, 1) => format!("{file}{first}"),
            (_, first, count) => format!("{file}[{first}:{}]", first + count - 1),
        }
    }

    /// The name, if it is not a numbered register.
    pub fn special_name(self) -> Option<&'static str> {
        SPECIAL.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }
}

/// The register of a name, with or without `src_`: the low half of a pair by the pair's name. `None` of numbered ones.
pub fn special(name: &str) -> Option<Reg> {
    let pair = match name {
        "vcc" => Reg::VCC,
        "exec" => Reg::EXEC,
        "tba" => Reg::TBA,
        "tma" => Reg::TMA,
        "flat_scratch" => Reg::FLAT_SCRATCH,
        "xnack_mask" => Reg::XNACK_MASK,
        "scc" => Reg::SCC,
        _ => {
            let is = |n: &str| n == name || n.strip_prefix("src_") == Some(name);
            return SPECIAL.iter().find(|(_, n)| is(n)).map(|(number, _)| Reg(*number));
        }
    };
    Some(pair)
}

/// The scalar register a code below 256 stands for; `None`: a constant, or nothing.
pub const fn scalar(code: u8, generation: Gfx) -> Option<Reg> {
    let g = generation as u8;
    let sgprs = match generation {
        Gfx::Gfx6 | Gfx::Gfx7 => 104,
        Gfx::Gfx8 => 102,
        _ if generation.is_gfx9() => 102,
        _ => 106,
    };
    if code < sgprs {
        return Some(Reg(code as u16));
    }
    let until_8 = g <= Gfx::Gfx8 as u8;
    let reg = match code {
        102 | 103 => Reg(Reg::FLAT_SCRATCH.0 + code as u16 - 102),
        104 | 105 if g == Gfx::Gfx7 as u8 => Reg(Reg::FLAT_SCRATCH.0 + code as u16 - 104),
        104 | 105 if g >= Gfx::Gfx8 as u8 => Reg(Reg::XNACK_MASK.0 + code as u16 - 104),
        106 | 107 => Reg(code as u16),
        108..=111 if until_8 => Reg(Reg::TBA.0 + code as u16 - 108),
        112..=123 if until_8 => Reg(Reg::TTMP0.0 + code as u16 - 112),
        108..=123 => Reg(code as u16),
        124 if g >= Gfx::Gfx11 as u8 => Reg::NULL,
        124 => Reg::M0,
        125 if g >= Gfx::Gfx11 as u8 => Reg::M0,
        125 if g >= Gfx::Gfx10 as u8 => Reg::NULL,
        126 | 127 => Reg(code as u16),
        235..=238 if g >= Gfx::Gfx9 as u8 => Reg(code as u16),
        239 if g >= Gfx::Gfx9 as u8 && g < Gfx::Gfx11 as u8 => Reg(code as u16),
        254 if generation.has_unified_vgprs() => return None,
        251..=254 => Reg(code as u16),
        _ => return None,
    };
    Some(reg)
}

/// No code: the register is not there.
const NO_CODE: u16 = u16::MAX;

/// For each generation: the register of each code, and the code of each register below 256.
struct RegCodes {
    regs: [[u16; 256]; Gfx::ALL.len()],
    codes: [[u16; 256]; Gfx::ALL.len()],
}

static CODES: RegCodes = {
    let mut all =
        RegCodes { regs: [[NO_CODE; 256]; Gfx::ALL.len()], codes: [[NO_CODE; 256]; Gfx::ALL.len()] };
    let mut g = 0;
    while g < Gfx::ALL.len() {
        let mut code = 0;
        while code < 256 {
            if let Some(reg) = scalar(code as u8, Gfx::ALL[g]) {
                all.regs[g][code] = reg.0;
                all.codes[g][reg.0 as usize] = code as u16;
            }
            code += 1;
        }
        g += 1;
    }
    all
};

/// What [`scalar`] says, from a table.
pub fn scalar_of_code(code: u8, generation: Gfx) -> Option<Reg> {
    match CODES.regs[generation as usize][usize::from(code)] {
        NO_CODE => None,
        reg => Some(Reg(reg)),
    }
}

/// The 9-bit code of a register in a generation; `None` if it has none there. An accumulation register has that of the vector
/// register of its number, where a flag distinguishes the two: see [`in_file`].
pub fn code_of(reg: Reg, generation: Gfx) -> Option<u16> {
    if reg.is_vgpr() {
        return Some(reg.0);
    }
    match CODES.codes[generation as usize].get(usize::from(reg.0)) {
        None | Some(&NO_CODE) => None,
        Some(&code) => Some(code),
    }
}

/// The vector register that has the code of a register of either vector file, and whether the register is an accumulation
/// register. `None`: it is a scalar register.
pub const fn in_file(reg: Reg) -> Option<(u8, bool)> {
    match reg.0 {
        ..256 => None,
        256..512 => Some(((reg.0 - 256) as u8, false)),
        _ => Some(((reg.0 - 512) as u8, true)),
    }
}
