//! What the packets of a walk have done.

use crate::Registers;
use unwedge_hw::amd::{Amd, RegBank};

/// One past the last register that packets reach, in dwords.
pub const REGISTERS: usize = 0x1_0000;

/// Registers as last set, and counts of what was started.
#[derive(Clone)]
pub struct AmdState {
    /// Registers, by their offset in dwords.
    pub regs: Registers,
    /// Draws and dispatches so far.
    pub draws: u32,
    /// The last trace point.
    pub trace_point: Option<u16>,
    /// IB level of the current packet.
    pub level: u8,
}

impl std::fmt::Debug for AmdState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let set = self.regs.iter_written().count();
        f.debug_struct("State").field("registers", &set).field("draws", &self.draws).finish_non_exhaustive()
    }
}

impl Default for AmdState {
    fn default() -> AmdState {
        AmdState { regs: Registers::new(REGISTERS), draws: 0, trace_point: None, level: 0 }
    }
}

impl AmdState {
    /// What a register was last set to; `None` when nothing in the walk did.
    pub fn get(&self, reg: u32) -> Option<u32> {
        self.regs.get(reg)
    }

    /// Sets a register.
    pub(super) fn set(&mut self, reg: u32, value: u32) {
        self.regs.set(reg, value);
    }

    /// A register has a value that is not known.
    pub(super) fn forget(&mut self, reg: u32) {
        self.regs.forget(reg);
    }

    /// All registers of a bank have values that are not known.
    pub(super) fn forget_bank(&mut self, bank: RegBank) {
        for reg in bank.base()..bank.base().saturating_add(0x400) {
            self.forget(reg);
        }
    }

    /// A register by name.
    pub fn named(&self, amd: Amd<'_>, name: &str) -> Option<u32> {
        self.get(amd.reg_offset(name)?)
    }

    /// The shaders that are set, as far as registers tell.
    pub fn programs(&self, amd: Amd<'_>) -> impl Iterator<Item = Program> {
        ShaderStage::ALL.into_iter().filter_map(move |stage| {
            let (low, high) = stage.registers();
            Some(Program { stage, low: self.named(amd, low)?, high: self.named(amd, high) })
        })
    }
}

/// A hardware stage that has a shader of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the hardware's own names")]
pub enum ShaderStage {
    Ls,
    Hs,
    Es,
    Gs,
    Vs,
    Ps,
    Compute,
}

impl ShaderStage {
    /// Every stage, in the order of the pipeline.
    pub const ALL: [ShaderStage; 7] = [
        ShaderStage::Ls,
        ShaderStage::Hs,
        ShaderStage::Es,
        ShaderStage::Gs,
        ShaderStage::Vs,
        ShaderStage::Ps,
        ShaderStage::Compute,
    ];

    /// `PS`
    pub fn name(self) -> &'static str {
        match self {
            ShaderStage::Ls => "LS",
            ShaderStage::Hs => "HS",
            ShaderStage::Es => "ES",
            ShaderStage::Gs => "GS",
            ShaderStage::Vs => "VS",
            ShaderStage::Ps => "PS",
            ShaderStage::Compute => "CS",
        }
    }

    /// The registers with the address of its program.
    fn registers(self) -> (&'static str, &'static str) {
        match self {
            ShaderStage::Ls => ("SPI_SHADER_PGM_LO_LS", "SPI_SHADER_PGM_HI_LS"),
            ShaderStage::Hs => ("SPI_SHADER_PGM_LO_HS", "SPI_SHADER_PGM_HI_HS"),
            ShaderStage::Es => ("SPI_SHADER_PGM_LO_ES", "SPI_SHADER_PGM_HI_ES"),
            ShaderStage::Gs => ("SPI_SHADER_PGM_LO_GS", "SPI_SHADER_PGM_HI_GS"),
            ShaderStage::Vs => ("SPI_SHADER_PGM_LO_VS", "SPI_SHADER_PGM_HI_VS"),
            ShaderStage::Ps => ("SPI_SHADER_PGM_LO_PS", "SPI_SHADER_PGM_HI_PS"),
            ShaderStage::Compute => ("COMPUTE_PGM_LO", "COMPUTE_PGM_HI"),
        }
    }
}

/// A shader that registers point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// For which stage.
    pub stage: ShaderStage,
    /// Bits 8 to 39 of its address.
    pub low: u32,
    /// Bits 40 and up. Drivers may set them once, long before.
    pub high: Option<u32>,
}

impl Program {
    /// The address; `None` while its upper part is not known.
    pub fn address(self) -> Option<u64> {
        Some(u64::from(self.low) << 8 | u64::from(self.high? & 0xff) << 40)
    }

    /// It may start at this address, for what is known of it.
    pub fn starts_at(self, address: u64) -> bool {
        match self.address() {
            Some(known) => known == address & 0xffff_ffff_ffff,
            None => address & 0xff_ffff_ff00 == u64::from(self.low) << 8,
        }
    }
}
