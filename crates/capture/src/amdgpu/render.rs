//! Writes a dump, or one section of it, as Linux 6.12 does (with what later kernels added).

use super::layout::{AmdgpuLayout, AmdgpuSection, AmdgpuSectionInfo, LayoutRun, LayoutText};
use super::model::*;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use unwedge_base::Span;

/// See [`Devcoredump::write`].
pub(super) fn write(dump: &Devcoredump<'_>, out: &mut Vec<u8>) {
    let plan = plan(dump);
    let mut last = [None; AmdgpuSection::ALL.len()];
    for (at, piece) in plan.iter().enumerate() {
        if let Some(section) = piece.info.section {
            last[section as usize] = Some(at);
        }
    }
    let mut written = [0usize; AmdgpuSection::ALL.len()];
    let mut usual = Vec::new();
    for (at, piece) in plan.iter().enumerate() {
        if out.last().is_some_and(|&c| c != b'\n') {
            out.push(b'\n');
        }
        let Some(section) = piece.info.section else {
            if let LayoutText::Own { raw, .. } = piece.text {
                out.extend_from_slice(raw);
            }
            continue;
        };
        let index = written[section as usize];
        written[section as usize] += 1;
        usual.clear();
        entry(dump, section, index, &mut usual);
        match piece.text {
            LayoutText::Own { raw, usual: hash } if hash == hash_of(&usual) => out.extend_from_slice(raw),
            _ => out.extend_from_slice(&usual),
        }
        if last[section as usize] == Some(at) && section.repeats() {
            for index in written[section as usize]..entries(dump, section) {
                entry(dump, section, index, out);
            }
        }
    }
}

/// How many pieces a section has.
fn entries(dump: &Devcoredump<'_>, section: AmdgpuSection) -> usize {
    match section {
        AmdgpuSection::Ip => dump.ips.len(),
        AmdgpuSection::Ring => dump.rings.len(),
        AmdgpuSection::Ib => dump.ibs.len(),
        _ => usize::from(dump.has(section)),
    }
}

/// The pieces of the dump: those of its layout, and where a kernel would have them, those that it lacks.
fn plan<'a>(dump: &Devcoredump<'a>) -> Vec<LayoutRun<'a>> {
    let mut plan = dump.layout.pieces.clone();
    let mut there = [false; AmdgpuSection::ALL.len()];
    for section in plan.iter().filter_map(|piece| piece.info.section) {
        there[section as usize] = true;
    }
    if plan.is_empty() {
        there[AmdgpuSection::Marker as usize] = true;
        plan.push(missing(AmdgpuSection::Marker));
    }
    // A text that has blocks or rings without their heading does not get it.
    there[AmdgpuSection::IpDump as usize] |= there[AmdgpuSection::Ip as usize];
    there[AmdgpuSection::RingInformation as usize] |= there[AmdgpuSection::Ring as usize];
    for section in AmdgpuSection::ALL {
        if !there[section as usize] && section != AmdgpuSection::Marker && dump.has(section) {
            let behind = |piece: &LayoutRun<'_>| piece.info.section.is_some_and(|s| s > section);
            let at = plan.iter().position(behind).unwrap_or(plan.len());
            plan.insert(at, missing(section));
        }
    }
    plan
}

fn missing(section: AmdgpuSection) -> LayoutRun<'static> {
    LayoutRun {
        info: AmdgpuSectionInfo { section: Some(section), span: Span::default() },
        text: LayoutText::Usual,
    }
}

/// Whether two texts are the same is told by this where one of them is not kept.
pub(super) fn hash_of(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text);
    hasher.finish()
}

/// Writes one piece. Nothing for an entry that the dump does not have.
pub(super) fn entry(dump: &Devcoredump<'_>, section: AmdgpuSection, index: usize, out: &mut Vec<u8>) {
    let mut out = AmdgpuWriter { out, newline: if dump.layout.crlf { b"\r\n" } else { b"\n" } };
    if section.after_blank() && (section == AmdgpuSection::Ib || dump.has(section)) {
        out.line(format_args!(""));
    }
    match section {
        AmdgpuSection::Marker => out.line(format_args!("**** AMDGPU Device Coredump ****")),
        AmdgpuSection::Version => out.text("version: ", dump.version.as_deref()),
        AmdgpuSection::Kernel => out.text("kernel: ", dump.kernel.as_deref()),
        AmdgpuSection::Module => out.text("module: ", dump.module.as_deref()),
        AmdgpuSection::Time => out.text("time: ", dump.time.as_deref()),
        AmdgpuSection::Process => {
            if let Some(process) = &dump.process {
                match process.pid {
                    Some(pid) => {
                        out.line(format_args!("process_name: {} PID: {pid}", CleanText(&process.name)))
                    }
                    None => out.line(format_args!("process_name: {}", CleanText(&process.name))),
                }
            }
        }
        AmdgpuSection::Soc => soc(dump.soc, &mut out),
        AmdgpuSection::Memory => memory(dump.memory, &mut out),
        AmdgpuSection::Gds => gds(dump.gds, &mut out),
        AmdgpuSection::HwIps => hwips(dump, &mut out),
        AmdgpuSection::Discovery => {
            if let Some(discovery) = &dump.discovery {
                out.line(format_args!("HW IP Discovery"));
                for line in discovery.lines() {
                    out.line(format_args!("{line}"));
                }
            }
        }
        AmdgpuSection::Firmware => firmware(dump, &mut out),
        AmdgpuSection::Vbios => vbios(dump.vbios.as_ref(), &mut out),
        AmdgpuSection::Timeout => {
            if let Some(timeout) = &dump.timeout {
                out.line(format_args!("Ring timed out details"));
                match timeout.ip_type {
                    Some(ty) => {
                        out.line(format_args!("IP Type: {ty} Ring Name: {}", CleanText(&timeout.ring)))
                    }
                    None => out.line(format_args!("Ring Name: {}", CleanText(&timeout.ring))),
                }
            }
        }
        AmdgpuSection::Fault => {
            if let Some(fault) = &dump.fault {
                out.line(format_args!("[{}] Page fault observed", CleanText(&fault.hub)));
                if let Some(address) = fault.address {
                    out.line(format_args!("Faulty page starting at address: 0x{address:016x}"));
                }
                if let Some(status) = fault.status {
                    out.line(format_args!("Protection fault status register: 0x{status:x}"));
                }
                out.line(format_args!(""));
            }
        }
        AmdgpuSection::IpDump => out.line(format_args!("IP Dump")),
        AmdgpuSection::Ip => {
            if let Some(block) = dump.ips.get(index) {
                ip(block, &mut out);
            }
        }
        AmdgpuSection::RingInformation => out.line(format_args!("Ring buffer information")),
        AmdgpuSection::Ring => {
            if let Some(entry) = dump.rings.get(index) {
                ring(entry, &mut out);
            }
        }
        AmdgpuSection::Vram => match dump.vram {
            Some(VramState::Lost) => out.line(format_args!("VRAM is lost due to GPU reset!")),
            Some(VramState::NotChecked) => out.line(format_args!("VRAM lost check is skipped!")),
            None => {}
        },
        AmdgpuSection::ResetRegisters => {
            out.line(format_args!("AMDGPU register dumps:"));
            out.line(format_args!("Offset:     Value:"));
            for register in &dump.reset_registers {
                out.line(format_args!("0x{:08x}: 0x{:08x}", register.offset, register.value));
            }
        }
        AmdgpuSection::Ib => {
            if let Some(ib) = dump.ibs.get(index) {
                match ib.size {
                    Some(size) => out.line(format_args!("IB #{} 0x{:x} {size} dw", ib.number, ib.iova)),
                    None => out.line(format_args!("IB #{} 0x{:x}", ib.number, ib.iova)),
                }
                for dword in ib.contents.runs().flat_map(|(_, dwords)| dwords) {
                    out.line(format_args!("0x{dword:08x}"));
                }
            }
        }
    }
}

fn soc(soc: Option<Soc>, out: &mut AmdgpuWriter<'_>) {
    let Some(soc) = soc else { return };
    out.line(format_args!("SOC Information"));
    out.number("SOC Device id: ", soc.device_id);
    out.number("SOC PCI Revision id: ", soc.pci_revision);
    out.number("SOC Family: ", soc.family);
    out.number("SOC Revision id: ", soc.revision);
    out.number("SOC External Revision id: ", soc.external_revision);
}

fn memory(memory: Option<MemorySizes>, out: &mut AmdgpuWriter<'_>) {
    let Some(memory) = memory else { return };
    out.line(format_args!("SOC Memory Information"));
    out.number("real vram size: ", memory.vram);
    out.number("visible vram size: ", memory.visible_vram);
    out.number("gtt size: ", memory.gtt);
}

fn gds(gds: Option<Gds>, out: &mut AmdgpuWriter<'_>) {
    let Some(gds) = gds else { return };
    out.line(format_args!("GDS Config"));
    out.number("gds: total size: ", gds.total_size);
    out.number("gds: compute partition size: ", gds.compute_partition_size);
    out.number("gds: gws per compute partition: ", gds.gws);
    out.number("gds: os per compute partition: ", gds.oa);
}

fn hwips(dump: &Devcoredump<'_>, out: &mut AmdgpuWriter<'_>) {
    if dump.hwips.is_empty() {
        return;
    }
    out.line(format_args!("HW IP Version Information"));
    for ip in &dump.hwips {
        let version: Vec<String> = ip.version.iter().map(u32::to_string).collect();
        let (name, version) = (CleanText(&ip.name), version.join("."));
        out.line(format_args!("HWIP: {name}[{}][{}]: v{version}", ip.kind, ip.instance));
    }
}

fn firmware(dump: &Devcoredump<'_>, out: &mut AmdgpuWriter<'_>) {
    if dump.firmware.is_empty() {
        return;
    }
    out.line(format_args!("IP Firmwares"));
    for firmware in &dump.firmware {
        let (name, feature, version) = (CleanText(&firmware.name), firmware.feature, firmware.version);
        if let Some(program) = firmware.program {
            let [_, major, minor, debug] = version.to_be_bytes();
            out.line(format_args!(
                "{name} feature version: {feature}, program: {program}, fw version: 0x{version:08x} \
                 ({major}.{minor}.{debug})"
            ));
        } else if firmware.name.starts_with("TA ") {
            out.line(format_args!("{name} feature version: 0x{feature:08x}, fw version: 0x{version:08x}"));
        } else if firmware.name.starts_with("SDMA") {
            out.line(format_args!("{name} feature version: {feature}, firmware version: 0x{version:08x}"));
        } else {
            out.line(format_args!("{name} feature version: {feature}, fw version: 0x{version:08x}"));
        }
    }
}

fn vbios(vbios: Option<&Vbios<'_>>, out: &mut AmdgpuWriter<'_>) {
    let Some(vbios) = vbios else { return };
    if *vbios == Vbios::default() {
        return out.line(format_args!("VBIOS Information: NA"));
    }
    out.line(format_args!("VBIOS Information"));
    out.text("vbios name       : ", vbios.name.as_deref());
    out.text("vbios pn         : ", vbios.part_number.as_deref());
    out.text("vbios version    : ", vbios.version.as_deref());
    out.text("vbios ver_str    : ", vbios.version_string.as_deref());
    out.text("vbios date       : ", vbios.date.as_deref());
}

/// Where kernels write how many of something there are: in front of all, of the compute queues, of the graphics queues.
fn counted_with(count: &IpCount<'_>) -> Option<fn(&BankOwner<'_>) -> bool> {
    match &*count.name {
        "num_xcc" | "num_mec" => Some(|place| matches!(place, BankOwner::Compute { .. })),
        "num_me" => Some(|place| matches!(place, BankOwner::Gfx { .. })),
        _ => None,
    }
}

fn ip(ip: &IpBlock<'_>, out: &mut AmdgpuWriter<'_>) {
    out.line(format_args!("IP: {}", CleanText(&ip.name)));
    let mut left = ip.counts.as_slice();
    let unplaced = left.iter().take_while(|count| counted_with(count).is_none()).count();
    for count in left.split_off(..unplaced).unwrap_or_default() {
        out.line(format_args!("{}:{}", CleanText(&count.name), count.number));
    }
    for bank in &ip.banks {
        while left.first().and_then(counted_with).is_some_and(|of| of(&bank.place)) {
            counts(&mut left, out);
        }
        place(&ip.name, &bank.place, out);
        for register in &bank.registers {
            out.line(format_args!("{:<50} \t 0x{:08x}", CleanText(&register.name), register.value));
        }
    }
    while !left.is_empty() {
        counts(&mut left, out);
    }
    out.line(format_args!(""));
}

/// `num_mec: 2 num_pipe: 4 num_queue: 8`: up to the next number that begins a line.
fn counts(left: &mut &[IpCount<'_>], out: &mut AmdgpuWriter<'_>) {
    let first_is_xcc = left.first().is_some_and(|count| count.name == "num_xcc");
    let more = left
        .iter()
        .skip(1)
        .take_while(|count| counted_with(count).is_none() || (first_is_xcc && count.name == "num_mec"));
    let len = left.len().min(1 + more.count());
    let line: Vec<String> = left
        .split_off(..len)
        .unwrap_or_default()
        .iter()
        .map(|count| format!("{}: {}", CleanText(&count.name), count.number))
        .collect();
    out.line(format_args!(""));
    out.line(format_args!("{}", line.join(" ")));
}

fn place(block: &str, place: &BankOwner<'_>, out: &mut AmdgpuWriter<'_>) {
    if *place != BankOwner::Block {
        out.line(format_args!(""));
    }
    match place {
        BankOwner::Block => {}
        BankOwner::Instance(id) if block.starts_with("gfx") => out.line(format_args!("Instance id:{id}")),
        BankOwner::Instance(number) => out.line(format_args!("Instance:{number}")),
        BankOwner::Compute { xcc: Some(xcc), mec, pipe, queue } => {
            out.line(format_args!("xcc:{xcc} mec:{mec}, pipe:{pipe}, queue:{queue}"));
        }
        BankOwner::Compute { xcc: None, mec, pipe, queue } => {
            out.line(format_args!("mec {mec}, pipe {pipe}, queue {queue}"));
        }
        BankOwner::Gfx { me, pipe, queue } => out.line(format_args!("me {me}, pipe {pipe}, queue {queue}")),
        BankOwner::Video { unit, instance, power } => {
            let unit = CleanText(unit);
            match power {
                PowerState::Active => out.line(format_args!("Active Instance:{unit}{instance}")),
                PowerState::Inactive => out.line(format_args!("Inactive Instance:{unit}{instance}")),
                PowerState::Harvested => {
                    out.line(format_args!("Harvested Instance:{unit}{instance} Skipping dump"));
                }
            }
        }
    }
}

fn ring(ring: &AmdgpuRing<'_>, out: &mut AmdgpuWriter<'_>) {
    out.line(format_args!("ring name: {}", CleanText(&ring.name)));
    let mut pointers = String::new();
    let mut pointer = |text: String| {
        pointers.push_str(if pointers.is_empty() { "" } else { " " });
        pointers.push_str(&text);
    };
    ring.rptr.iter().for_each(|rptr| pointer(format!("Rptr: 0x{rptr:x}")));
    ring.wptr.iter().for_each(|wptr| pointer(format!("Wptr: 0x{wptr:x}")));
    ring.mask.iter().for_each(|mask| pointer(format!("RB mask: {mask:x}")));
    if !pointers.is_empty() {
        out.line(format_args!("{pointers}"));
    }
    out.number("Ring size in dwords: ", ring.size);
    out.line(format_args!("Ring contents"));
    out.line(format_args!("Offset \t Value"));
    for (start, dwords) in ring.contents.runs() {
        for (offset, dword) in (start..).zip(dwords) {
            out.line(format_args!("0x{:x} \t 0x{dword:x}", u128::from(offset) * 4));
        }
    }
}

struct AmdgpuWriter<'o> {
    out: &'o mut Vec<u8>,
    newline: &'static [u8],
}

impl AmdgpuWriter<'_> {
    /// Writing to memory does not fail.
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(text);
        self.out.extend_from_slice(self.newline);
    }

    fn text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.line(format_args!("{key}{}", CleanText(value)));
        }
    }

    fn number<T: std::fmt::Display>(&mut self, key: &str, value: Option<T>) {
        if let Some(value) = value {
            self.line(format_args!("{key}{value}"));
        }
    }
}

/// A string cannot end its line.
struct CleanText<'t>(&'t str);

impl std::fmt::Display for CleanText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.contains(['\n', '\r']) {
            return f.pad(&self.0.replace(['\n', '\r'], " "));
        }
        f.pad(self.0)
    }
}

impl<'a> AmdgpuLayout<'a> {
    /// The stretches of the text.
    pub(super) fn sections(&self) -> impl Iterator<Item = AmdgpuSectionInfo> + use<'a, '_> {
        self.pieces.iter().map(|piece| piece.info)
    }
}
