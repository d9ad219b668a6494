//! Messages: descriptors, payloads, and the text that says what they are.

use super::super::disasm::GATHER_SUBREGISTER;
use super::super::inst::{File, GEN12, GEN125, XE3};
use super::super::tables::{Field as F, OpcodeRow, SFID};
use super::{AsmError, Parser};

impl Parser<'_> {
    /// The descriptor of a send with one payload, and the function.
    pub(super) fn message(&mut self, row: &OpcodeRow) -> Result<(), AsmError> {
        self.space();
        if !self.rest.starts_with("0x") {
            self.source(row, 1)?;
            self.space();
            let value = self.hex()?;
            // The bits of the source are in the lower half of the second quadword, and some in the upper half.
            self.put(F::DwordImmediate, value)?;
        } else {
            self.file(F::Src1RegisterFile, File::Immediate)?;
            let value = self.hex()?;
            self.put(F::DwordImmediate, value)?;
        }
        self.function()
    }

    /// The function's name, and the text that says what the message is.
    fn function(&mut self) -> Result<(), AsmError> {
        self.space();
        const AFTER: &[u8] = b" MsgDesc:";
        let Some(end) = self.rest.as_bytes().windows(AFTER.len()).position(|text| text == AFTER) else {
            return self.error("MsgDesc:");
        };
        let (name, rest) = self.rest.split_at(end);
        self.rest = &rest[AFTER.len()..];
        let code = Self::code(&SFID[self.g()], "the shared function", name)?;
        self.inst.set(F::SendSharedFunction, code);
        let Some(options) = self.rest.find('{') else { return self.error("{") };
        let (message, rest) = self.rest.split_at(options);
        self.rest = rest;
        // Bindless offsets are in the register that holds the extended descriptor.
        if self.generation() < GEN125 || !self.inst.flag(F::SendsExtendedDescriptorInA0) {
            return Ok(());
        }
        if let Some((before, _)) = message.split_once(" ex_bso") {
            let length = before.rsplit(' ').next().and_then(|n| n.parse().ok());
            let Some(length) = length else { return self.error("a length") };
            self.inst.set(F::SendsExtendedBindlessSurfaceOffset, 1);
            self.put(F::SendsSrc1Length, length)?;
        }
        Ok(())
    }

    pub(super) fn split_send(&mut self) -> Result<(), AsmError> {
        let new = self.generation() >= GEN12;
        self.space();
        if !new && self.rest.starts_with("g[") {
            self.file(F::SendsDstRegisterFile, File::Grf)?;
            self.inst.set(F::DstAddressMode, 1);
            self.sends_address(F::DstAddressSubregister, 4, F::SendsDstAddressImmediate)?;
            self.expect("<")?;
        } else {
            let register = self.register()?;
            self.file(F::SendsDstRegisterFile, register.file)?;
            self.put(F::DstRegisterNumber, register.number)?;
            if !new && self.eat(".1") {
                self.inst.set(F::A16DstSubregister, 1);
            }
        }
        self.expect("UD")?;
        self.space();
        let gather = if self.generation() >= XE3 && self.eat("r[") { Some(self.gather()?) } else { None };
        if gather.is_none() {
            self.split_send_source()?;
        }
        self.space();
        let register = self.register()?;
        self.file(F::SendsSrc1RegisterFile, register.file)?;
        self.put(F::SendsSrc1RegisterNumber, register.number)?;
        self.expect("UD")?;
        self.space();
        if self.eat("a0<0>UD") {
            self.inst.set(F::SendsDescriptorInA00, 1);
        } else {
            let value = self.hex()?;
            self.put(F::SendDescriptor, value & if new { u64::MAX } else { 0x7fff_ffff })?;
        }
        self.space();
        if self.eat("a0") {
            let subregister = self.subregister()?;
            self.expect("<0>UD")?;
            self.inst.set(F::SendsExtendedDescriptorInA0, 1);
            self.put(F::SendsExtendedDescriptorSubregister, subregister)?;
        } else {
            let value = self.hex()?;
            if new {
                if gather.is_some() && value & u64::from(GATHER_SUBREGISTER) != 0 {
                    return Err(AsmError::Unsupported("the descriptor", format!("{value:#x}")));
                }
                self.put(F::SendExtendedDescriptor, value >> 6)?;
            } else {
                self.put(F::SendsExtendedDescriptor, value >> 16 << 4 | (value >> 6 & 15))?;
            }
        }
        if let Some(subregister) = gather {
            self.put(F::SendsSrc0Subregister, subregister)?;
        }
        self.function()
    }

    /// The first payload of a split send.
    fn split_send_source(&mut self) -> Result<(), AsmError> {
        let new = self.generation() >= GEN12;
        if !new && self.rest.starts_with("g[") {
            self.inst.set(F::SendsSrc0AddressMode, 1);
            self.sends_address(F::Src0AddressSubregister, 1, F::SendsSrc0AddressImmediate)?;
            return self.expect("UD");
        }
        let register = self.register()?;
        if new {
            self.file(F::SendsSrc0RegisterFile, register.file)?;
        }
        self.put(F::Src0RegisterNumber, register.number)?;
        if !new && self.eat(".1") {
            self.inst.set(F::A16Src0Subregister, 1);
        }
        self.expect("UD")
    }

    /// `g[a0.2 -16]` of a split send: a subregister in units of `unit`, and bytes of which the field counts 16.
    fn sends_address(&mut self, subregister: F, unit: u64, immediate: F) -> Result<(), AsmError> {
        self.expect("g[a0")?;
        let sub = self.subregister()?;
        self.put(subregister, sub.saturating_mul(unit))?;
        if self.eat(" ") {
            // Mesa prints the signed field unsigned.
            let negative = self.eat("-");
            let bytes = self.number()?;
            let most = if negative { 8u64 } else { 16 } << self.inst.width(immediate);
            if !bytes.is_multiple_of(16) || bytes > most - 16 * u64::from(!negative) {
                return Err(AsmError::Unsupported("the address", bytes.to_string()));
            }
            let value = if negative { (bytes / 16).wrapping_neg() } else { bytes / 16 };
            self.inst.set(immediate, value);
        }
        self.expect("]")
    }

    /// `s0.4]`: the scalar register that lists the first payload. Its subregister is in units of words.
    fn gather(&mut self) -> Result<u64, AsmError> {
        let register = self.register()?;
        self.file(F::SendsSrc0RegisterFile, register.file)?;
        self.put(F::Src0RegisterNumber, register.number)?;
        let bytes = self.subregister()?;
        self.expect("]")?;
        if register.file != File::Arf || !bytes.is_multiple_of(2) {
            return self.error("a scalar register");
        }
        Ok(bytes / 2)
    }
}
