//! The lines inside of sections.

use super::AmdgpuReader;
use crate::amd::register::AmdRegister;
use crate::amd::text::{TextLine, TextScan};
use crate::amdgpu::layout::AmdgpuSection;
use crate::amdgpu::model::*;

/// Numbers of a version: the kernel writes five.
const MAX_VERSION: usize = 5;

impl<'a> AmdgpuReader<'a> {
    /// A line inside of a section. `None`: it was not understood.
    pub(super) fn field(&mut self, line: &TextLine<'a>) -> Option<()> {
        let text = line.text.trim_end();
        if let Some(rest) = text.strip_prefix("SOC ") {
            return self.soc(line, rest);
        }
        if let Some(rest) = text.strip_prefix("gds: ") {
            return self.gds(line, rest);
        }
        if let Some(rest) = text.strip_prefix("HWIP: ") {
            return self.hwip(line, rest);
        }
        if let Some((name, rest)) = text.split_once(" feature version: ") {
            return self.firmware(line, name, rest);
        }
        if let Some(rest) = text.strip_prefix("vbios ") {
            return self.vbios(line, rest);
        }
        if let Some(rest) = text.strip_prefix("IP Type: ") {
            return self.timeout(line, rest);
        }
        if let Some(rest) = text.strip_prefix("Faulty page starting at address") {
            let address = TextScan::new(rest.trim_start_matches([':', ' '])).hex();
            return self.fault(line, |fault| fill(&mut fault.address, address?));
        }
        if let Some(rest) = text.strip_prefix("Protection fault status register:") {
            let status = TextScan::new(rest.trim_start()).hex32();
            return self.fault(line, |fault| fill(&mut fault.status, status?));
        }
        for (key, place) in [("real vram size: ", 0), ("visible vram size: ", 1), ("gtt size: ", 2)] {
            if let Some(rest) = text.strip_prefix(key) {
                return self.memory(line, place, rest);
            }
        }
        match self.open.as_ref()?.section? {
            AmdgpuSection::Ip => self.ip(line, text),
            AmdgpuSection::Ring => self.ring(line, text),
            AmdgpuSection::Ib => self.ib(text),
            AmdgpuSection::ResetRegisters => self.reset_register(text),
            AmdgpuSection::Discovery => Some(()),
            _ => None,
        }
    }

    fn soc(&mut self, line: &TextLine<'a>, rest: &str) -> Option<()> {
        if !self.within(AmdgpuSection::Soc, line) {
            return None;
        }
        let soc = self.dump.soc.get_or_insert_default();
        let (key, value) = rest.split_once(": ")?;
        let slot = match key {
            "Device id" => &mut soc.device_id,
            "PCI Revision id" => &mut soc.pci_revision,
            "Family" => &mut soc.family,
            "Revision id" => &mut soc.revision,
            "External Revision id" => &mut soc.external_revision,
            _ => return None,
        };
        fill(slot, TextScan::new(value).number()?.try_into().ok()?)
    }

    fn memory(&mut self, line: &TextLine<'a>, place: usize, value: &str) -> Option<()> {
        if !self.within(AmdgpuSection::Memory, line) {
            return None;
        }
        let memory = self.dump.memory.get_or_insert_default();
        let slot = match place {
            0 => &mut memory.vram,
            1 => &mut memory.visible_vram,
            _ => &mut memory.gtt,
        };
        fill(slot, TextScan::new(value).dec()?)
    }

    fn gds(&mut self, line: &TextLine<'a>, rest: &str) -> Option<()> {
        if !self.within(AmdgpuSection::Gds, line) {
            return None;
        }
        let gds = self.dump.gds.get_or_insert_default();
        let (key, value) = rest.split_once(": ")?;
        let slot = match key {
            "total size" => &mut gds.total_size,
            "compute partition size" => &mut gds.compute_partition_size,
            "gws per compute partition" => &mut gds.gws,
            "os per compute partition" => &mut gds.oa,
            _ => return None,
        };
        fill(slot, TextScan::new(value).dec32()?)
    }

    /// `GC[1][0]: v10.3.0.0.0`
    fn hwip(&mut self, line: &TextLine<'a>, rest: &str) -> Option<()> {
        if !self.within(AmdgpuSection::HwIps, line) {
            return None;
        }
        let mut scan = TextScan::new(rest);
        let name = scan.until("[")?;
        let kind = scan.dec32()?;
        let instance = scan.lit("][")?.dec32()?;
        scan.lit("]: v")?;
        let mut version = vec![scan.dec32()?];
        while !scan.rest().is_empty() && version.len() < MAX_VERSION {
            version.push(scan.lit(".")?.dec32()?);
        }
        scan.end()?;
        self.items.take()?;
        self.dump.hwips.push(HwIp { name: line.keep(name), kind, instance, version });
        Some(())
    }

    /// `44, fw version: 0x00000040`, and with `program: …` in between.
    fn firmware(&mut self, line: &TextLine<'a>, name: &str, rest: &str) -> Option<()> {
        if !self.within(AmdgpuSection::Firmware, line) {
            return None;
        }
        let mut scan = TextScan::new(rest);
        let feature = u32::try_from(scan.number()?).ok()?;
        scan.lit(", ")?;
        let program = match scan.rest().strip_prefix("program: ") {
            Some(rest) => {
                scan = TextScan::new(rest);
                let program = scan.dec32()?;
                scan.lit(", ")?;
                Some(program)
            }
            None => None,
        };
        let key = scan.until(" version: ")?;
        if key != "fw" && key != "firmware" {
            return None;
        }
        let version = scan.hex32()?;
        self.items.take()?;
        self.dump.firmware.push(FirmwareVersion { name: line.keep(name), feature, version, program });
        Some(())
    }

    fn vbios(&mut self, line: &TextLine<'a>, rest: &str) -> Option<()> {
        if !self.within(AmdgpuSection::Vbios, line) {
            return None;
        }
        let (key, value) = rest.split_once(':')?;
        let vbios = self.dump.vbios.get_or_insert_default();
        let slot = match key.trim_end() {
            "name" => &mut vbios.name,
            "pn" => &mut vbios.part_number,
            "version" => &mut vbios.version,
            "ver_str" => &mut vbios.version_string,
            "date" => &mut vbios.date,
            _ => return None,
        };
        fill(slot, line.keep(value.strip_prefix(' ').unwrap_or(value)))
    }

    fn timeout(&mut self, line: &TextLine<'a>, rest: &str) -> Option<()> {
        if !self.within(AmdgpuSection::Timeout, line) {
            return None;
        }
        let mut scan = TextScan::new(rest);
        let ip_type = Some(scan.dec32()?);
        let ring = line.keep(scan.blanks().lit("Ring Name: ")?.rest());
        fill(&mut self.dump.timeout, RingTimeout { ip_type, ring, ..RingTimeout::default() })
    }

    fn fault(
        &mut self,
        line: &TextLine<'a>,
        set: impl FnOnce(&mut PageFault<'a>) -> Option<()>,
    ) -> Option<()> {
        if !self.within(AmdgpuSection::Fault, line) {
            return None;
        }
        set(self.dump.fault.get_or_insert_default())
    }

    fn ip(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        if let Some(register) = register(line, text) {
            let ip = self.dump.ips.last_mut()?;
            if ip.banks.is_empty() {
                ip.banks.push(RegisterBank::default());
            }
            ip.banks.last_mut()?.registers.push(register);
            return Some(());
        }
        if let Some(place) = place(line, text) {
            self.items.take()?;
            self.dump.ips.last_mut()?.banks.push(RegisterBank { place, registers: Vec::new() });
            return Some(());
        }
        if text.starts_with("Instance no:") {
            return Some(());
        }
        // All or none of a line's numbers.
        let mut counts = Vec::new();
        let mut scan = TextScan::new(text);
        while scan.end().is_none() {
            self.items.take()?;
            let name = scan.until(":")?;
            counts.push(IpCount { name: line.keep(name), number: scan.blanks().dec32()? });
        }
        self.dump.ips.last_mut()?.counts.append(&mut counts);
        Some(())
    }

    fn ring(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        let ring = self.dump.rings.last_mut()?;
        let mut scan = TextScan::new(text);
        if text.starts_with("0x") {
            let offset = scan.hex()?;
            let value = scan.blanks().hex32()?;
            scan.end()?;
            if offset % 4 != 0 || !ring.contents.push(offset / 4, value) {
                self.notes.loss(line.span, || "a dword of a ring that does not follow the one before".into());
            }
            return Some(());
        }
        if text == "Ring contents" || text.starts_with("Offset ") {
            return Some(());
        }
        if let Some(size) = text.strip_prefix("Ring size in dwords: ") {
            return fill(&mut ring.size, TextScan::new(size).dec32()?);
        }
        let rptr = scan.lit("Rptr: ")?.hex()?;
        let wptr = scan.blanks().lit("Wptr: ")?.hex()?;
        fill(&mut ring.rptr, rptr)?;
        fill(&mut ring.wptr, wptr)?;
        fill(&mut ring.mask, scan.blanks().lit("RB mask: ")?.bare_hex32()?)
    }

    fn ib(&mut self, text: &str) -> Option<()> {
        let open = self.open.as_mut()?;
        let offset = open.offset;
        // A line that cannot be read is a dword that is not known.
        open.offset += 1;
        let mut scan = TextScan::new(text);
        let value = scan.hex32()?;
        scan.end()?;
        self.dump.ibs.last_mut()?.contents.push(offset, value);
        Some(())
    }

    fn reset_register(&mut self, text: &str) -> Option<()> {
        if text.starts_with("Offset:") {
            return Some(());
        }
        let mut scan = TextScan::new(text);
        let offset = scan.hex32()?;
        let value = scan.lit(":")?.blanks().hex32()?;
        scan.end()?;
        self.dump.reset_registers.push(ResetRegister { offset, value });
        Some(())
    }
}

/// A value is said once.
fn fill<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    if slot.is_some() {
        return None;
    }
    *slot = Some(value);
    Some(())
}

/// `mmGRBM_STATUS    \t 0x00003028`
fn register<'a>(line: &TextLine<'a>, text: &str) -> Option<AmdRegister<'a>> {
    let mut scan = TextScan::new(text);
    let name = scan.word()?;
    if scan.rest().is_empty() {
        return None;
    }
    let value = scan.blanks().hex32()?;
    scan.end()?;
    Some(AmdRegister { name: line.keep(name), value })
}

/// The line in front of the registers of a queue or an instance.
fn place<'a>(line: &TextLine<'a>, text: &str) -> Option<BankOwner<'a>> {
    let mut scan = TextScan::new(text);
    let place = if let Some(rest) = text.strip_prefix("xcc:") {
        scan = TextScan::new(rest);
        let xcc = Some(scan.dec32()?);
        let mec = scan.lit(" mec:")?.dec32()?;
        let pipe = scan.lit(", pipe:")?.dec32()?;
        BankOwner::Compute { xcc, mec, pipe, queue: scan.lit(", queue:")?.dec32()? }
    } else if text.starts_with("mec ") {
        let mec = scan.lit("mec ")?.dec32()?;
        let pipe = scan.lit(", pipe ")?.dec32()?;
        BankOwner::Compute { xcc: None, mec, pipe, queue: scan.lit(", queue ")?.dec32()? }
    } else if text.starts_with("me ") {
        let me = scan.lit("me ")?.dec32()?;
        let pipe = scan.lit(", pipe ")?.dec32()?;
        BankOwner::Gfx { me, pipe, queue: scan.lit(", queue ")?.dec32()? }
    } else if let Some(rest) = text.strip_prefix("Instance:").or_else(|| text.strip_prefix("Instance id:")) {
        scan = TextScan::new(rest);
        BankOwner::Instance(scan.dec32()?)
    } else {
        let (state, rest) = text.split_once(" Instance:")?;
        let power = match state {
            "Active" => PowerState::Active,
            "Inactive" => PowerState::Inactive,
            "Harvested" => PowerState::Harvested,
            _ => return None,
        };
        let unit = rest.trim_end_matches(" Skipping dump");
        let digits = unit.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (unit, instance) = (unit.get(..digits)?, unit.get(digits..)?);
        scan = TextScan::new(instance);
        BankOwner::Video { unit: line.keep(unit), instance: scan.dec32()?, power }
    };
    scan.end()?;
    Some(place)
}
