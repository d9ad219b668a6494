//! Builds a dump from its lines.
//!
//! What a line is follows from itself wherever it can, so that a missing heading or another order loses nothing. A piece
//! of the text is open until the next one begins; then it is compared with what would be written for it. Linear in the
//! input, whatever the input. Never: a guess at a value that the text does not have.

mod blocks;

use super::layout::{AmdgpuLayout, AmdgpuSection, AmdgpuSectionInfo, LayoutRun, LayoutText};
use super::model::*;
use super::render;
use crate::absence::kernel_version;
use crate::amd::text::{ItemBudget, TextLine, TextLines, TextNotes, TextScan};
use std::borrow::Cow;
use unwedge_base::Span;
use unwedge_base::plural::counted;

/// Bytes of text that an item (block, bank, ring, IB, version …) takes at least, over the whole dump: kernels write
/// more. Below that the items would take many times the memory of their text.
const BYTES_PER_ITEM: usize = 24;

/// See [`Devcoredump::read`].
pub(super) fn read(text: &[u8]) -> Result<Devcoredump<'_>, NotDevcoredump> {
    let mut reader = AmdgpuReader::new(text);
    for line in TextLines::new(text) {
        if reader.ended {
            break;
        }
        reader.line(&line);
    }
    reader.finish()
}

/// The piece that lines are being added to.
struct OpenRun {
    section: Option<AmdgpuSection>,
    start: usize,
    /// End of its first line.
    body: usize,
    /// The next offset of an IB, in dwords.
    offset: u64,
}

struct AmdgpuReader<'a> {
    text: &'a [u8],
    dump: Devcoredump<'a>,
    open: Option<OpenRun>,
    /// End of the line before.
    at: usize,
    /// Start of the line before, if it is empty.
    blank: Option<usize>,
    /// Sections that were met, as bits.
    seen: u32,
    items: ItemBudget,
    recognized: bool,
    /// What follows is not read.
    ended: bool,
    notes: TextNotes,
    /// For what pieces would look like.
    scratch: Vec<u8>,
}

impl<'a> AmdgpuReader<'a> {
    fn new(text: &'a [u8]) -> AmdgpuReader<'a> {
        let first_newline = text.iter().position(|&c| c == b'\n');
        let before = first_newline.and_then(|at| at.checked_sub(1)).and_then(|at| text.get(at));
        let layout = AmdgpuLayout { crlf: before == Some(&b'\r'), ..AmdgpuLayout::default() };
        AmdgpuReader {
            text,
            dump: Devcoredump { layout, ..Devcoredump::default() },
            open: None,
            at: 0,
            blank: None,
            seen: 0,
            items: ItemBudget::new(text.len(), BYTES_PER_ITEM),
            recognized: false,
            ended: false,
            notes: TextNotes::default(),
            scratch: Vec::new(),
        }
    }

    fn line(&mut self, line: &TextLine<'a>) {
        let end = line.span.end as usize;
        if line.garbled {
            self.notes.loss(line.span, || "text that is not UTF-8".into());
        }
        if line.text.trim().is_empty() {
            if self.open.is_none() {
                self.begin(None, line);
            }
            self.at = end;
            self.blank = Some(line.span.start as usize);
            return;
        }
        if end == self.text.len() && !self.text.ends_with(b"\n") && !is_complete(&line.text) {
            self.notes.loss(line.span, || "the last line is cut".into());
            self.dump.layout.cut = true;
            if self.open.is_none() {
                self.begin(None, line);
            }
        } else if self.heading(line).or_else(|| self.field(line)).is_none() {
            self.stray(line);
        }
        if !self.ended {
            self.at = end;
        }
        self.blank = None;
    }

    /// A line that opens a piece.
    fn heading(&mut self, line: &TextLine<'a>) -> Option<()> {
        let text = line.text.trim_end();
        let section = match text {
            "SOC Information" => AmdgpuSection::Soc,
            "SOC Memory Information" => AmdgpuSection::Memory,
            "GDS Config" => AmdgpuSection::Gds,
            "HW IP Version Information" => AmdgpuSection::HwIps,
            "HW IP Discovery" => AmdgpuSection::Discovery,
            "IP Firmwares" => AmdgpuSection::Firmware,
            "VBIOS Information" | "VBIOS Information: NA" => AmdgpuSection::Vbios,
            "Ring timed out details" => AmdgpuSection::Timeout,
            "IP Dump" => AmdgpuSection::IpDump,
            "Ring buffer information" => AmdgpuSection::RingInformation,
            "VRAM is lost due to GPU reset!" | "VRAM lost check is skipped!" => AmdgpuSection::Vram,
            "AMDGPU register dumps:" => AmdgpuSection::ResetRegisters,
            _ => return self.opening(line),
        };
        if !self.begin_once(section, line) {
            return Some(());
        }
        match section {
            AmdgpuSection::Soc => self.dump.soc = Some(Soc::default()),
            AmdgpuSection::Memory => self.dump.memory = Some(MemorySizes::default()),
            AmdgpuSection::Gds => self.dump.gds = Some(Gds::default()),
            AmdgpuSection::Vbios => self.dump.vbios = Some(Vbios::default()),
            AmdgpuSection::Vram if text.contains("skipped") => self.dump.vram = Some(VramState::NotChecked),
            AmdgpuSection::Vram => self.dump.vram = Some(VramState::Lost),
            _ => {}
        }
        self.recognized |= section != AmdgpuSection::IpDump;
        Some(())
    }

    /// A line that opens a piece and says something itself.
    fn opening(&mut self, line: &TextLine<'a>) -> Option<()> {
        let text = line.text.trim_end();
        let value = |key: &str| text.strip_prefix(key);
        if text.starts_with("****") && text.contains("AMDGPU Device Coredump") {
            self.marker(line);
        } else if let Some(version) = value("version: ") {
            self.top(AmdgpuSection::Version, line, |dump| dump.version = Some(line.keep(version)));
        } else if let Some(kernel) = value("kernel: ") {
            self.top(AmdgpuSection::Kernel, line, |dump| dump.kernel = Some(line.keep(kernel)));
        } else if let Some(module) = value("module: ") {
            self.top(AmdgpuSection::Module, line, |dump| dump.module = Some(line.keep(module)));
        } else if let Some(time) = value("time: ") {
            self.top(AmdgpuSection::Time, line, |dump| dump.time = Some(line.keep(time)));
        } else if let Some(process) = value("process_name: ") {
            let (name, pid) = process.rsplit_once(" PID: ").unwrap_or((process, ""));
            let pid = TextScan::new(pid).dec32();
            let process = TimedOutProcess { name: line.keep(name), pid };
            self.top(AmdgpuSection::Process, line, |dump| dump.process = Some(process));
        } else if let Some((hub, rest)) = value("[").and_then(|rest| rest.split_once(']'))
            && rest.trim_start().to_ascii_lowercase().starts_with("page fault observed")
        {
            self.recognized = true;
            if self.begin_once(AmdgpuSection::Fault, line) {
                self.dump.fault = Some(PageFault { hub: line.keep(hub), ..PageFault::default() });
            }
        } else if let Some(name) = value("IP: ") {
            self.item(line, AmdgpuSection::Ip).then(|| {
                self.dump.ips.push(IpBlock { name: line.keep(name), ..IpBlock::default() });
            });
        } else if let Some(name) = value("ring name: ") {
            self.item(line, AmdgpuSection::Ring).then(|| {
                self.dump.rings.push(AmdgpuRing { name: line.keep(name), ..AmdgpuRing::default() });
            });
        } else {
            let mut scan = TextScan::new(text);
            let number = scan.lit("IB #")?.dec32()?;
            let iova = scan.blanks().hex()?;
            let size = scan.blanks().dec32();
            self.item(line, AmdgpuSection::Ib).then(|| {
                self.dump.ibs.push(AmdgpuIb { number, iova, size, ..AmdgpuIb::default() });
            });
        }
        Some(())
    }

    fn marker(&mut self, line: &TextLine<'a>) {
        self.recognized = true;
        if !self.saw(AmdgpuSection::Marker) {
            self.begin_once(AmdgpuSection::Marker, line);
            return;
        }
        self.begin(None, line);
        self.at = self.text.len();
        self.ended = true;
        let span = Span::new(line.span.start as usize, self.text.len());
        self.notes.loss(span, || "a second dump follows the first; it was not read".into());
    }

    fn top(&mut self, section: AmdgpuSection, line: &TextLine<'a>, set: impl FnOnce(&mut Devcoredump<'a>)) {
        if self.begin_once(section, line) {
            set(&mut self.dump);
        }
    }

    /// Opens an entry of a section that may have several; `false` when there are too many.
    fn item(&mut self, line: &TextLine<'a>, section: AmdgpuSection) -> bool {
        if self.items.take().is_none() {
            self.notes.loss(line.span, || "too many entries for a dump of this size".into());
            self.begin(None, line);
            return false;
        }
        self.begin(Some(section), line);
        true
    }

    /// Opens a section that a dump has once; `false` when it was there before.
    fn begin_once(&mut self, section: AmdgpuSection, line: &TextLine<'a>) -> bool {
        let bit = 1 << section as u32;
        let new = self.seen & bit == 0;
        self.seen |= bit;
        if !new {
            self.notes.loss(line.span, || format!("section `{}` for the second time", section.name()));
        }
        self.begin(new.then_some(section), line);
        new
    }

    fn begin(&mut self, section: Option<AmdgpuSection>, line: &TextLine<'a>) {
        let own_blank = section.is_some_and(AmdgpuSection::after_blank).then_some(self.blank).flatten();
        let mut start = line.span.start as usize;
        if let Some(blank) = own_blank
            && self.open.as_ref().is_none_or(|open| open.body <= blank)
        {
            start = blank;
        }
        self.at = start;
        self.close();
        self.open = Some(OpenRun { section, start, body: line.span.end as usize, offset: 0 });
    }

    /// Ends the open piece where the line before ended.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let span = Span::new(open.start, self.at);
        let raw = self.text.get(open.start..self.at).unwrap_or_default();
        if raw.is_empty() {
            return;
        }
        let Some(section) = open.section else {
            if let Some(LayoutRun { info, text: LayoutText::Own { raw: last, .. } }) =
                self.dump.layout.pieces.last_mut()
                && info.section.is_none()
                && info.span.end == span.start
            {
                info.span.end = span.end;
                *last = self.text.get(info.span.start as usize..self.at).unwrap_or_default();
                return;
            }
            let info = AmdgpuSectionInfo { section: None, span };
            self.dump.layout.pieces.push(LayoutRun { info, text: LayoutText::Own { raw, usual: 0 } });
            return;
        };
        if section == AmdgpuSection::Discovery {
            let body = self.text.get(open.body..self.at).unwrap_or_default();
            self.dump.discovery = Some(trimmed(body));
        }
        self.check(section, span);
        let index = match section {
            AmdgpuSection::Ip => self.dump.ips.len(),
            AmdgpuSection::Ring => self.dump.rings.len(),
            AmdgpuSection::Ib => self.dump.ibs.len(),
            _ => 1,
        };
        let mut usual = std::mem::take(&mut self.scratch);
        usual.clear();
        render::entry(&self.dump, section, index.saturating_sub(1), &mut usual);
        let text = if usual == raw {
            LayoutText::Usual
        } else {
            LayoutText::Own { raw, usual: render::hash_of(&usual) }
        };
        self.scratch = usual;
        let info = AmdgpuSectionInfo { section: Some(section), span };
        self.dump.layout.pieces.push(LayoutRun { info, text });
    }

    /// Says what an entry lacks, once it is complete.
    fn check(&mut self, section: AmdgpuSection, span: Span) {
        let lacks = |what: &str, have: usize, size: Option<u32>| match size {
            Some(size) if have < size as usize => {
                let size = counted(size.into(), "dword", "dwords");
                Some(format!("{what} has {have} of {size}"))
            }
            _ => None,
        };
        let complaint = match section {
            AmdgpuSection::Timeout => {
                match &mut self.dump.timeout {
                    Some(timeout) => timeout.span = span,
                    None => self.notes.loss(span, || "the ring that timed out is not named".into()),
                }
                None
            }
            AmdgpuSection::Fault => self.dump.fault.as_mut().and_then(|fault| {
                fault.span = span;
                fault.status.is_none().then(|| "the page fault lacks its status".to_owned())
            }),
            AmdgpuSection::Ip => self.dump.ips.last_mut().and_then(|ip| {
                ip.span = span;
                None
            }),
            AmdgpuSection::Ring => self.dump.rings.last_mut().and_then(|ring| {
                ring.span = span;
                if ring.size.is_none() {
                    return Some(format!("ring {}: its size and contents are missing", ring.name));
                }
                lacks(&format!("ring {}", ring.name), ring.contents.len(), ring.size)
            }),
            AmdgpuSection::Ib => self.dump.ibs.last_mut().and_then(|ib| {
                ib.span = span;
                lacks(&format!("IB #{}", ib.number), ib.contents.len(), ib.size)
            }),
            AmdgpuSection::ResetRegisters => {
                self.dump.reset_registers.is_empty().then(|| "the registers by offset are missing".to_owned())
            }
            _ => None,
        };
        if let Some(complaint) = complaint {
            self.notes.loss(span, || complaint);
        }
    }

    /// Whether lines of this section are read here. Without its heading it begins with the first of its lines.
    fn within(&mut self, section: AmdgpuSection, line: &TextLine<'a>) -> bool {
        if self.open.as_ref().is_some_and(|open| open.section == Some(section)) {
            return true;
        }
        if self.saw(section) || section.repeats() {
            return false;
        }
        self.notes.loss(line.span, || format!("the heading of section `{}` is missing", section.name()));
        self.recognized = true;
        self.begin_once(section, line)
    }

    /// A line that nothing is known of. It stays where it is.
    fn stray(&mut self, line: &TextLine<'a>) {
        let section = self.open.as_ref().and_then(|open| open.section);
        match section {
            Some(section) => {
                self.notes
                    .loss(line.span, || format!("line of section `{}` was not understood", section.name()));
            }
            None => {
                self.notes.loss(line.span, || "line outside of any section".into());
                if self.open.is_none() {
                    self.begin(None, line);
                }
            }
        }
    }

    fn saw(&self, section: AmdgpuSection) -> bool {
        self.seen & 1 << section as u32 != 0
    }

    /// What a kernel would have written behind the end. Of those that dump no rings nothing tells that, once the
    /// time is there.
    fn lost_end(&self) -> Option<String> {
        let head =
            [AmdgpuSection::Marker, AmdgpuSection::Version, AmdgpuSection::Kernel, AmdgpuSection::Module];
        if AmdgpuSection::ALL.into_iter().all(|section| !self.saw(section) || head.contains(&section))
            && self.dump.ips.is_empty()
            && self.dump.rings.is_empty()
            && self.dump.ibs.is_empty()
        {
            return Some("the dump ends within its head".to_owned());
        }
        // Kernels that write one of these write the rings behind it.
        let before_rings = [
            AmdgpuSection::Soc,
            AmdgpuSection::Memory,
            AmdgpuSection::Gds,
            AmdgpuSection::HwIps,
            AmdgpuSection::Discovery,
            AmdgpuSection::Firmware,
            AmdgpuSection::Vbios,
            AmdgpuSection::IpDump,
        ];
        let rings_due = before_rings.into_iter().any(|section| self.saw(section))
            || !self.dump.ips.is_empty()
            || self
                .dump
                .kernel
                .as_deref()
                .and_then(kernel_version)
                .is_some_and(|release| Some(release) >= AmdgpuSection::Ring.since());
        let rings_begun = self.saw(AmdgpuSection::RingInformation) || !self.dump.rings.is_empty();
        if rings_due && !rings_begun {
            return Some("the dump ends before its rings".to_owned());
        }
        let timeout = self.dump.timeout.as_ref().filter(|_| rings_begun)?;
        let there = self.dump.rings.iter().any(|ring| ring.name == timeout.ring);
        (!there).then(|| format!("the ring that timed out, {}, is not among the rings", timeout.ring))
    }

    /// The text ends in a ring or an IB of which dwords are missing.
    fn ends_in_contents(&self) -> bool {
        let lacks = |have: usize, size: Option<u32>| size.is_none_or(|size| have < size as usize);
        match self.dump.layout.pieces.last().and_then(|piece| piece.info.section) {
            Some(AmdgpuSection::Ring) => {
                self.dump.rings.last().is_some_and(|ring| lacks(ring.contents.len(), ring.size))
            }
            Some(AmdgpuSection::Ib) => {
                self.dump.ibs.last().is_some_and(|ib| lacks(ib.contents.len(), ib.size))
            }
            _ => false,
        }
    }

    fn finish(mut self) -> Result<Devcoredump<'a>, NotDevcoredump> {
        self.close();
        if !self.recognized {
            return Err(NotDevcoredump);
        }
        if !self.saw(AmdgpuSection::Marker) {
            self.notes.note(Span::default(), || "the dump does not begin with its marker".into());
        }
        self.dump.layout.cut |= self.ends_in_contents();
        if let Some(lost) = self.lost_end() {
            self.dump.layout.cut = true;
            self.notes.loss(Span::new(self.text.len(), self.text.len()), || lost);
        }
        self.dump.diagnostics = self.notes.finish();
        Ok(self.dump)
    }
}

/// Whether a line without an end can be the whole line: kernels pad values of registers and dwords to eight digits.
fn is_complete(text: &str) -> bool {
    let text = text.trim_end();
    match text.rsplit_once("0x") {
        Some((before, digits)) if digits.bytes().all(|c| c.is_ascii_hexdigit()) => {
            // Addresses have more digits.
            let wide = ["IB #", "Faulty page"].iter().any(|line| before.starts_with(line));
            !wide && digits.len() == 8
        }
        _ => ["****", "!", ")", "Skipping dump"].iter().any(|end| text.ends_with(end)),
    }
}

/// The lines of a section as one text, without the end of the last.
fn trimmed(body: &[u8]) -> Cow<'_, str> {
    match String::from_utf8_lossy(body) {
        Cow::Borrowed(text) if !text.contains('\r') => Cow::Borrowed(text.trim_end()),
        text => Cow::Owned(text.trim_end().replace("\r\n", "\n")),
    }
}
