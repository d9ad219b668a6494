//! What the register page of an engine looks like, and whether one does.
//!
//! The page is what the drivers write before the hardware first loads it: MI_LOAD_REGISTER_IMM commands with the registers
//! of a table, MI_NOOP where the table skips, a batch end behind it. The checks are those of i915's self-test of layouts,
//! but all differences are told.

use super::PAGE;
use super::commands::{BATCH_END, LOAD, LOAD_FORCE_POSTED, LOAD_RELATIVE, extra_command, load};
use super::encoding::{self, TableDecodeError, TableStep};
use super::tables::{self, Builtin};
use std::ops::Range;
use thiserror::Error;
use unwedge_hw::intel::platform::{Engine, IntelDriver, Version};

/// From this version on, the batch end of a context has bit 0 set.
const END_MARKED: Version = Version::new(10, 0);
/// From this version on, the hardware adds the engine's base to the registers of a context.
const RELATIVE: Version = Version::new(11, 0);

/// Whose context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LrcOwner {
    /// The driver that made it.
    pub driver: IntelDriver,
    /// The version of the graphics.
    pub version: Version,
    /// The engine.
    pub engine: Engine,
}

/// Why there is no layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LrcLayoutError {
    /// The version has no such engine.
    #[error("graphics {version} have no engine {engine}")]
    NoEngine {
        /// The version asked for.
        version: Version,
        /// The engine asked for.
        engine: Engine,
    },
    /// The driver does not know the version.
    #[error("{driver} does not drive graphics {version}")]
    NotDriven {
        /// The driver asked for.
        driver: IntelDriver,
        /// The version asked for.
        version: Version,
    },
    /// The engine has its ring state in the register page.
    #[error("graphics {0} have no indirect ring state")]
    NotIndirect(Version),
    /// A table of more than a page.
    #[error("the table is for {0} dwords and a batch end, but a page has {PAGE}")]
    TooLong(usize),
    /// Bytes that are no table.
    #[error(transparent)]
    Decode(#[from] TableDecodeError),
}

/// How registers are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addressing {
    /// Where the engine's registers begin.
    pub base: u32,
    /// The bits of offsets that count, where the hardware adds the base itself: from gen11 on.
    pub relative: Option<u32>,
    /// The batch end has bit 0 set.
    pub end_marked: bool,
}

impl Addressing {
    /// That of an engine.
    ///
    /// # Errors
    ///
    /// [`LrcLayoutError::NoEngine`] if the version does not have the engine.
    pub fn of(target: &LrcOwner) -> Result<Addressing, LrcLayoutError> {
        let LrcOwner { version, engine, .. } = *target;
        let base = engine.base(version).ok_or(LrcLayoutError::NoEngine { version, engine })?;
        let relative = (version >= RELATIVE).then(|| tables::relative_mask(version, engine.class));
        Ok(Addressing { base, relative, end_marked: version >= END_MARKED })
    }
}

/// What a dword of the page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageDword {
    /// MI_NOOP: the table skips it.
    Skipped,
    /// The MI_LOAD_REGISTER_IMM.
    Command,
    /// The offset of a register.
    Register,
    /// The value of a register.
    Value,
}

/// What the register page of an engine looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LrcLayout {
    words: Vec<u32>,
    /// The bits of each word that are compared.
    masks: Vec<u32>,
    roles: Vec<PageDword>,
    end: u32,
    addressing: Addressing,
    target: Option<LrcOwner>,
    table: &'static str,
}

impl LrcLayout {
    /// The register page of an engine.
    ///
    /// # Errors
    ///
    /// [`LrcLayoutError::NoEngine`] if the version does not have the engine, [`LrcLayoutError::NotDriven`] if
    /// the driver has no table for it.
    pub fn of(target: LrcOwner) -> Result<LrcLayout, LrcLayoutError> {
        let addressing = Addressing::of(&target)?;
        let LrcOwner { driver, version, engine } = target;
        let table = Builtin::of(driver, version, engine.class)
            .ok_or(LrcLayoutError::NotDriven { driver, version })?;
        Ok(LrcLayout {
            target: Some(target),
            table: table.name(),
            ..LrcLayout::of_bytes(table.bytes(), addressing)?
        })
    }

    /// The page of an engine's ring state, where that is not in the register page.
    ///
    /// # Errors
    ///
    /// [`LrcLayoutError::NoEngine`] if the version does not have the engine, [`LrcLayoutError::NotIndirect`]
    /// if it has its ring state in the register page.
    pub fn of_indirect_ring_state(target: LrcOwner) -> Result<LrcLayout, LrcLayoutError> {
        let LrcOwner { driver, version, .. } = target;
        let addressing = Addressing::of(&target)?;
        let none = LrcLayoutError::NotIndirect(version);
        let table = Builtin::indirect_ring_state().ok_or_else(|| none.clone())?;
        if version < Version::new(20, 0) || !table.drivers().contains(&driver) {
            return Err(none);
        }
        Ok(LrcLayout {
            target: Some(target),
            table: table.name(),
            ..LrcLayout::of_bytes(table.bytes(), addressing)?
        })
    }

    /// The page a table in its compact encoding stands for.
    ///
    /// # Errors
    ///
    /// [`LrcLayoutError::Decode`] for bytes that are not a table, [`LrcLayoutError::TooLong`] for a table of
    /// more than a page.
    pub fn of_bytes(table: &[u8], addressing: Addressing) -> Result<LrcLayout, LrcLayoutError> {
        LrcLayout::of_steps(&encoding::decode(table)?.0, addressing)
    }

    /// The page a table stands for.
    ///
    /// # Errors
    ///
    /// [`LrcLayoutError::TooLong`] for a table of more than a page.
    pub fn of_steps(steps: &[TableStep], addressing: Addressing) -> Result<LrcLayout, LrcLayoutError> {
        let dwords = steps.iter().map(|step| match step {
            TableStep::Skip(dwords) => usize::from(*dwords),
            TableStep::Load { registers, .. } => 1 + 2 * registers.len(),
        });
        let length: usize = dwords.sum();
        if length >= PAGE {
            return Err(LrcLayoutError::TooLong(length));
        }
        let mut layout = LrcLayout {
            words: Vec::with_capacity(length),
            masks: Vec::with_capacity(length),
            roles: Vec::with_capacity(length),
            end: BATCH_END | u32::from(addressing.end_marked),
            addressing,
            target: None,
            table: "",
        };
        for step in steps {
            match step {
                TableStep::Skip(dwords) => {
                    (0..*dwords).for_each(|_| layout.push(0, u32::MAX, PageDword::Skipped))
                }
                TableStep::Load { posted, registers } => {
                    let command = load(registers.len())
                        | if *posted { LOAD_FORCE_POSTED } else { 0 }
                        | if addressing.relative.is_some() { LOAD_RELATIVE } else { 0 };
                    layout.push(command, u32::MAX, PageDword::Command);
                    for register in registers {
                        let offset = addressing.base.wrapping_add(register.offset());
                        layout.push(offset, addressing.relative.unwrap_or(u32::MAX), PageDword::Register);
                        layout.push(0, 0, PageDword::Value);
                    }
                }
            }
        }
        Ok(layout)
    }

    fn push(&mut self, word: u32, mask: u32, role: PageDword) {
        self.words.push(word);
        self.masks.push(mask);
        self.roles.push(role);
    }

    /// Dwords the table stands for: the batch end is behind them.
    pub fn dwords(&self) -> usize {
        self.words.len()
    }

    /// Whose it is; none of a table of one's own.
    pub fn target(&self) -> Option<LrcOwner> {
        self.target
    }

    /// The name of its table; empty for one of one's own.
    pub fn table(&self) -> &'static str {
        self.table
    }

    /// It is the page of an indirect ring state.
    pub(crate) fn is_ring_state(&self) -> bool {
        Builtin::indirect_ring_state().is_some_and(|t| t.name() == self.table)
    }

    /// How registers are written down.
    pub fn addressing(&self) -> Addressing {
        self.addressing
    }

    /// What a dword has to be, with values as 0; none behind the table.
    pub fn word(&self, dword: usize) -> Option<(u32, PageDword)> {
        Some((*self.words.get(dword)?, *self.roles.get(dword)?))
    }

    /// The dwords that say what the image is: commands and registers, with the bits that count.
    pub(crate) fn significant(&self) -> impl Iterator<Item = (usize, u32, u32)> {
        let words = self.words.iter().zip(&self.masks).zip(&self.roles).enumerate();
        words
            .filter(|(_, (_, role))| matches!(role, PageDword::Command | PageDword::Register))
            .map(|(i, ((&word, &mask), _))| (i, word, mask))
    }

    /// The page: commands and register offsets, the batch end behind them, and zeros.
    pub fn expand(&self) -> Vec<u32> {
        let mut page = self.words.clone();
        page.push(self.end);
        page.resize(PAGE, 0);
        page
    }

    /// Compares a register page. What is there of a cut one is compared; values are not, and nothing is behind the table.
    ///
    /// Where nothing differs, nothing is allocated.
    pub fn verify(&self, page: &[u32]) -> LayoutCheck {
        let compared = self.words.len().min(page.len());
        let mut verified = LayoutCheck {
            differences: Vec::new(),
            extra: Vec::new(),
            compared,
            missing: self.words.len() - compared,
        };
        let differs = |((&word, &mask), &found): ((&u32, &u32), &u32)| (word ^ found) & mask;
        let pairs = || self.words.iter().zip(&self.masks).zip(page);
        if pairs().fold(0, |all, pair| all | differs(pair)) == 0 {
            return verified;
        }
        let mut accounted = 0;
        for (dword, pair) in pairs().enumerate() {
            if dword < accounted || differs(pair) == 0 {
                continue;
            }
            let ((&expected, _), &found) = pair;
            let mismatch = match self.roles.get(dword) {
                Some(PageDword::Command) if found & LOAD_MASK == LOAD => LayoutMismatch::OtherLoad,
                Some(PageDword::Command) => LayoutMismatch::NoLoad,
                Some(PageDword::Register) => LayoutMismatch::OtherRegister,
                _ => {
                    let gap = self.gap(dword);
                    if let Some(length) = page.get(gap.clone()).and_then(extra_command) {
                        verified.extra.push(dword..dword + length);
                        accounted = dword + length;
                        continue;
                    }
                    LayoutMismatch::NotSkipped
                }
            };
            verified.differences.push(LayoutDifference { dword, expected, found, mismatch });
        }
        verified
    }

    /// The dwords from this one on that the table skips.
    fn gap(&self, dword: usize) -> Range<usize> {
        let rest = self.roles.get(dword..).unwrap_or_default();
        dword..dword + rest.iter().take_while(|role| **role == PageDword::Skipped).count()
    }
}

/// What tells an MI_LOAD_REGISTER_IMM.
const LOAD_MASK: u32 = 0xff80_0000;

/// What [`LrcLayout::verify`] finds.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LayoutCheck {
    /// Every dword that is not what it has to be.
    pub differences: Vec<LayoutDifference>,
    /// Whole commands where the table skips: the kernel's check passes over them, too.
    pub extra: Vec<Range<usize>>,
    /// Dwords that were looked at.
    pub compared: usize,
    /// Dwords that the page does not have.
    pub missing: usize,
}

/// A dword that is not what it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutDifference {
    /// Which one of the page.
    pub dword: usize,
    /// What it has to be.
    pub expected: u32,
    /// What it is.
    pub found: u32,
    /// What is wrong with it.
    pub mismatch: LayoutMismatch,
}

/// What is wrong with a dword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayoutMismatch {
    /// No MI_LOAD_REGISTER_IMM where one has to be.
    NoLoad,
    /// An MI_LOAD_REGISTER_IMM with another number of registers or other flags.
    OtherLoad,
    /// The offset of another register, in the bits that count.
    OtherRegister,
    /// Neither zero nor a whole command where the table skips.
    NotSkipped,
}

impl LayoutMismatch {
    /// For JSON: stable, lower case.
    pub fn id(self) -> &'static str {
        match self {
            LayoutMismatch::NoLoad => "no-load",
            LayoutMismatch::OtherLoad => "other-load",
            LayoutMismatch::OtherRegister => "other-register",
            LayoutMismatch::NotSkipped => "not-skipped",
        }
    }
}
