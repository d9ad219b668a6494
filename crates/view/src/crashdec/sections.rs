//! The walk over a dump's lines, section by section.

use super::walk::{Chip, CrashdecRing, OpenSection, SectionsWalk};
use super::{DumpNotes, hfi, indexed, ring};
use crate::listing::{RegisterPrinter, Shader, TextEnd, disassemble, hex_ascii};
use unwedge_base::{Buffer, ChipId, Dwords, Generation, Span};
use unwedge_capture::msm::lines::{DevcoreLine, DevcoreLines, DevcoreNumber, LineKind, MsmSection, TopKey};
use unwedge_hw::adreno::hfi::{HISTORY, QUEUES};
use unwedge_hw::{Adreno, AdrenoDevice, RegSpace};
use unwedge_stream::adreno::Registers;

impl<'d> SectionsWalk<'_, '_, 'd> {
    /// Lists the whole dump; returns what was wrong with it.
    pub fn run(mut self, dump: &[u8]) -> DumpNotes {
        for line in DevcoreLines::new(dump) {
            if self.text.ended().is_some() {
                break;
            }
            if line.section != self.entry.section || matches!(line.kind, LineKind::Section(_)) {
                self.leave_section();
                self.entry = OpenSection { section: line.section, ..OpenSection::default() };
            }
            self.line(&line);
        }
        self.leave_section();
        if self.text.ended() == Some(TextEnd::TooLong) {
            self.loss(None, "the listing is too long: the rest is not shown");
        }
        if self.chip.is_none() {
            self.loss(None, "no revision: registers, packets and queues are not decoded");
        }
        self.said
    }

    /// The command stream follows the registers that say where the hardware was in it.
    fn leave_section(&mut self) {
        if !self.buffers.is_empty() {
            let buffers = std::mem::take(&mut self.buffers);
            // Each time costs a look at all of them.
            match self.buffer_runs_left.checked_sub(1) {
                Some(left) => {
                    self.buffer_runs_left = left;
                    self.memory.extend(buffers);
                }
                None => {
                    self.loss(None, "buffers are scattered over too many sections: not all are looked up")
                }
            }
        }
        if self.entry.section == Some(MsmSection::Registers) && std::mem::take(&mut self.stream_due) {
            self.streams_left = self.streams_left.saturating_sub(1);
            ring::show(self);
        }
    }

    fn line(&mut self, line: &DevcoreLine<'_>) {
        if self.chip.is_none() && line.section.is_some() {
            self.decode_as_taken();
        }
        match &line.kind {
            LineKind::Section(_) => self.echo(line),
            LineKind::Top { key: TopKey::Revision, value } => {
                self.echo(line);
                self.revision(line.span, value);
            }
            _ if self.chip.is_none() => self.echo(line),
            _ => match line.section {
                Some(MsmSection::FaultInfo) => self.fault_info(line),
                Some(MsmSection::Ringbuffer) => self.ringbuffer(line),
                Some(MsmSection::Bos) => self.bo(line),
                Some(MsmSection::GmuLog) => self.gmu_log(line),
                Some(MsmSection::GmuHfi) => self.gmu_hfi(line),
                Some(MsmSection::Registers) => self.register(line, RegSpace::Gpu),
                Some(MsmSection::RegistersGmu) => self.register(line, RegSpace::Gmu),
                Some(MsmSection::RegistersHlsq) if self.options.more => self.register(line, RegSpace::Gpu),
                Some(MsmSection::IndexedRegisters) => self.indexed(line),
                Some(MsmSection::ShaderBlocks) => self.shader_block(line),
                Some(MsmSection::Clusters) => self.cluster(line),
                Some(MsmSection::Debugbus) => self.debugbus(line),
                _ => self.echo(line),
            },
        }
    }

    /// The line as it is.
    fn echo(&mut self, line: &DevcoreLine<'_>) {
        self.text.bytes(line.raw);
    }

    /// `630 (6.3.0.2)`
    fn revision(&mut self, span: Span, value: &[u8]) {
        let mut numbers = value.split(|c| !c.is_ascii_digit()).filter(|n| !n.is_empty());
        let mut number = || numbers.next().and_then(DevcoreNumber::decimal).map(|n| n.to_u32().0);
        let [gpu_id, core, major, minor, patch] = [(); 5].map(|()| number());
        let (Some(gpu_id), Some(core)) = (gpu_id, core) else {
            return;
        };
        let [major, minor, patch] = [major, minor, patch].map(|n| n.unwrap_or(0));
        let chip_id = ChipId(u64::from(core << 24 | major << 16 | minor << 8 | patch));
        let (taken_id, taken_chip) = self.taken_as.unwrap_or((gpu_id, chip_id));
        let gpu = self.db.identify(taken_id, taken_chip);
        let device = gpu.and_then(|gpu| gpu.device);
        match device {
            Some(_) => self.text.str("Got chip_id=0x").hex(chip_id.0, 1).end(),
            None if self.taken_as.is_some() => self.text.str("Taken as another device").end(),
            None => self.text.str("Unsupported device").end(),
        };
        let Some(Adreno { generation, .. }) = gpu else {
            return self
                .loss(Some(span), format!("no device and no generation known for {gpu_id} ({chip_id})"));
        };
        if device.is_none() && self.taken_as.is_none() {
            self.note(format!("device {gpu_id} ({chip_id}) is not known; decoded as {generation}"));
        }
        self.decode_as(generation, device, gpu_id);
    }

    /// Decodes what follows for a GPU.
    fn decode_as(&mut self, generation: Generation, device: Option<AdrenoDevice<'d>>, gpu_id: u32) {
        self.chip = Some(Chip { gpu: self.db.gpu(generation), device, gpu_id });
        self.stream_due = self.streams_left > 0;
        self.registers = Registers::new(if generation.is_64bit() { 0x4_0000 } else { 0x8000 });
    }

    /// Of a dump that does not say its GPU before its first section, the GPU that it is taken to be of.
    fn decode_as_taken(&mut self) {
        let Some((gpu_id, chip_id)) = self.taken_as else { return };
        if let Some(Adreno { generation, device }) = self.db.identify(gpu_id, chip_id) {
            self.decode_as(generation, device, gpu_id);
        }
    }

    fn fault_info(&mut self, line: &DevcoreLine<'_>) {
        if let LineKind::ListItem { key: "far" | "iova", value, .. } = line.kind {
            self.fault = DevcoreNumber::hex(value).map(|n| n.to_u64().0).or(self.fault);
        }
        self.echo(line);
    }

    fn ringbuffer(&mut self, line: &DevcoreLine<'_>) {
        if let LineKind::ListItem { key: "id", value, .. } = line.kind {
            let id = decimal(value);
            self.rings.push(CrashdecRing { id, ..CrashdecRing::default() });
            return self.echo(line);
        }
        let Some(ring) = self.rings.last_mut() else { return self.echo(line) };
        match &line.kind {
            LineKind::Field { key: "iova", value, .. } => ring.iova = hex(value),
            LineKind::Field { key: "rptr", value, .. } => ring.rptr = decimal(value),
            LineKind::Field { key: "wptr", value, .. } => ring.wptr = decimal(value),
            LineKind::Field { key: "size", value, .. } => ring.size = decimal(value),
            LineKind::Field { .. } => {}
            LineKind::DataHeader => return,
            LineKind::Data(blob) => {
                let contents = blob.decode();
                let buffer = Buffer {
                    iova: ring.iova,
                    size: u64::from(ring.size).max(4 * contents.len() as u64),
                    contents: Some(contents),
                    name: String::new(),
                };
                self.buffers.push(buffer);
                return;
            }
            _ => return self.echo(line),
        }
        self.echo(line);
    }

    fn bo(&mut self, line: &DevcoreLine<'_>) {
        match &line.kind {
            LineKind::ListItem { key: "iova", value, .. } => {
                self.entry.iova = hex(value);
            }
            LineKind::Field { key: "size", value, .. } => {
                let size = u64::from(decimal(value));
                self.entry.size = size;
                let iova = self.entry.iova;
                let end = iova.wrapping_add(size);
                self.text.str("  - iova: 0x").hex(iova, 16).str("-0x").hex(end, 16);
                if let Some(fault) = self.fault {
                    let near = end.wrapping_add(size);
                    if (iova..end).contains(&fault) {
                        self.text.str("\t==");
                    } else if (iova..near).contains(&fault) {
                        self.text.str("\t>=");
                    }
                }
                self.text.end();
                self.text.str("    size: ").dec(size).str(" (0x").hex(size, 1).str(")").end();
            }
            LineKind::Field { .. } => self.echo(line),
            LineKind::DataHeader => {}
            LineKind::Data(blob) => {
                let contents = blob.decode();
                let OpenSection { iova, size, .. } = self.entry;
                if self.options.verbose {
                    self.dump(&contents, size, 1);
                }
                let stored = 4 * contents.len() as u64;
                let size = size.max(stored);
                self.buffers.push(Buffer { iova, size, contents: Some(contents), name: String::new() });
            }
            _ => self.echo(line),
        }
    }

    /// Contents as hex, up to the size that the dump claims.
    fn dump(&mut self, contents: &[u32], bytes: u64, level: usize) {
        let implied = bytes.div_ceil(4).saturating_sub(contents.len() as u64);
        let shown = implied.min(self.zeros_left);
        self.zeros_left -= shown;
        if shown < implied {
            self.loss(
                None,
                format!("{} zero bytes at the end of a buffer are not shown", 4 * (implied - shown)),
            );
        }
        let bytes = bytes.saturating_sub(4 * (implied - shown));
        let len = usize::try_from(bytes.div_ceil(4)).unwrap_or(usize::MAX);
        hex_ascii(self.text, Dwords::new(contents, len), bytes, level);
    }

    fn gmu_buffer(&mut self, line: &DevcoreLine<'_>) -> Option<Vec<u32>> {
        match &line.kind {
            LineKind::Field { key: "iova", value, .. } => {
                self.entry.iova = hex(value);
                self.echo(line);
            }
            LineKind::Field { key: "size", value, .. } => {
                self.entry.size = u64::from(decimal(value));
                self.echo(line);
            }
            LineKind::Field { key, value, .. } => {
                if let Some(queue) = key.strip_prefix("queue-history") {
                    self.history(queue, value);
                }
                self.echo(line);
            }
            LineKind::DataHeader => {}
            LineKind::Data(blob) => return Some(blob.decode()),
            _ => self.echo(line),
        }
        None
    }

    fn gmu_log(&mut self, line: &DevcoreLine<'_>) {
        if let Some(contents) = self.gmu_buffer(line) {
            self.dump(&contents, self.entry.size, 1);
        }
    }

    fn gmu_hfi(&mut self, line: &DevcoreLine<'_>) {
        let Some(contents) = self.gmu_buffer(line) else { return };
        if self.options.verbose {
            self.dump(&contents, self.entry.size, 1);
        }
        let Some(chip) = self.chip else { return };
        let queues = hfi::Queues {
            memory: &contents,
            iova: self.entry.iova,
            history: &self.entry.history,
            gpu_id: chip.gpu_id,
        };
        queues.show(self.text);
    }

    /// `queue-history[0]: -1 -1 3 …`: where the latest messages of a queue start.
    fn history(&mut self, queue: &str, value: &[u8]) {
        let index = queue.trim_matches(['[', ']']).parse().unwrap_or(usize::MAX);
        if index >= QUEUES {
            return;
        }
        let mut starts = [-1; HISTORY];
        let numbers = value.split(u8::is_ascii_whitespace).filter(|n| !n.is_empty());
        for (start, text) in starts.iter_mut().zip(numbers) {
            *start = DevcoreNumber::decimal(text).map_or(-1, |n| n.to_u32().0 as i32);
        }
        if self.entry.history.len() <= index {
            self.entry.history.resize(index + 1, [-1; HISTORY]);
        }
        self.entry.history[index] = starts;
    }

    /// A line of `registers:`, `registers-gmu:` or a cluster.
    fn register(&mut self, line: &DevcoreLine<'_>, space: RegSpace) {
        let LineKind::Register { offset, value, .. } = line.kind else { return self.echo(line) };
        let reg = offset / 4;
        if line.section == Some(MsmSection::Registers) {
            self.registers.set(reg, value);
        }
        let Some(chip) = self.chip else { return };
        let registers = chip.gpu.space(space);
        if !self.entry.pair.push(registers, reg, value, self.text) {
            return;
        }
        let pair = self.entry.pair;
        let printer = RegisterPrinter { gpu: chip.gpu, memory: &self.memory, palette: &self.palette };
        self.text.byte(b'\t').hex(pair.value, 8);
        if space == RegSpace::Gpu {
            printer.line(pair, 0, |reg| self.registers.raw(reg), &mut self.carry.variants, self.text);
        } else {
            self.text.byte(b'\t');
            printer.plain(registers, pair, &mut self.carry.variants, self.text);
            self.text.end();
        }
    }

    fn cluster(&mut self, line: &DevcoreLine<'_>) {
        match line.kind {
            LineKind::Register { .. } => self.register(line, RegSpace::Gpu),
            LineKind::ListItem { .. } | LineKind::Field { .. } => self.echo(line),
            _ => self.echo(line),
        }
    }

    fn indexed(&mut self, line: &DevcoreLine<'_>) {
        match &line.kind {
            LineKind::ListItem { key: "regs-name", value, .. } => {
                let written = String::from_utf8_lossy(value);
                let listed = indexed::listed_name(written.trim_end());
                if listed == written.trim_end() {
                    self.echo(line);
                } else {
                    self.text.str("  - regs-name: ").str(listed).end();
                }
                self.entry.name = listed.to_owned();
            }
            LineKind::Field { key, value, .. } => {
                if *key == "dwords" {
                    self.entry.size = u64::from(decimal(value));
                }
                self.echo(line);
            }
            LineKind::DataHeader => {}
            LineKind::Data(blob) => {
                let contents = blob.decode();
                let name = std::mem::take(&mut self.entry.name);
                if indexed::show(self, &name, &contents) || self.options.verbose {
                    self.dump(&contents, 4 * self.entry.size, 1);
                }
                self.entry.name = name;
            }
            LineKind::ListItem { .. } => self.echo(line),
            _ => self.echo(line),
        }
    }

    fn shader_block(&mut self, line: &DevcoreLine<'_>) {
        match &line.kind {
            LineKind::ListItem { key, value, .. } => {
                if *key == "type" {
                    self.entry.name = String::from_utf8_lossy(value).into_owned();
                }
                self.echo(line);
            }
            LineKind::Field { key, value, .. } => {
                if *key == "size" {
                    self.entry.size = u64::from(decimal(value));
                }
                self.echo(line);
            }
            LineKind::DataHeader => {}
            LineKind::Data(blob) => {
                let code =
                    ["A6XX_SP_INST_DATA", "A6XX_HLSQ_INST_RAM", "A7XX_SP_INST_DATA", "A7XX_HLSQ_INST_RAM"]
                        .contains(&self.entry.name.trim_end());
                if !code && !self.options.verbose {
                    return;
                }
                let contents = blob.decode();
                if let Some(chip) = self.chip.filter(|_| code) {
                    disassemble(
                        self.text,
                        Dwords::from(&contents[..]),
                        Shader::Ir3 { stats: false },
                        chip.generation(),
                        1,
                    );
                }
                self.dump(&contents, 4 * self.entry.size, 1);
            }
            _ => self.echo(line),
        }
    }

    fn debugbus(&mut self, line: &DevcoreLine<'_>) {
        match &line.kind {
            LineKind::Field { key, value, .. } => {
                if *key == "count" {
                    self.entry.size = u64::from(decimal(value));
                }
                self.echo(line);
            }
            LineKind::ListItem { .. } => self.echo(line),
            LineKind::DataHeader => {}
            LineKind::Data(blob) => {
                if self.options.verbose {
                    let contents = blob.decode();
                    self.dump(&contents, 4 * self.entry.size, 1);
                }
            }
            _ => self.echo(line),
        }
    }
}

/// A number; what is none counts as 0, as the dump's reader reports it.
fn decimal(text: &[u8]) -> u32 {
    DevcoreNumber::decimal(text).map_or(0, |n| n.to_u32().0)
}

/// An address.
fn hex(text: &[u8]) -> u64 {
    DevcoreNumber::hex(text).map_or(0, |n| n.to_u64().0)
}
