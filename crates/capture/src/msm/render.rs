//! Writes a dump, entry by entry, as kernels do; and by the same code tells whether a text already is what would be
//! written.

use super::layout::{TextRun, TextStyle, Verbatim, rank, rank_of_key, rank_of_section};
use super::lines::{MsmSection, TopKey};
use super::model::*;
use unwedge_base::hash::Fnv1a;

/// Takes the bytes of an entry: to keep, to compare or to hash them.
pub(super) trait EntrySink {
    fn put(&mut self, bytes: &[u8]);
}

impl EntrySink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Compares with a text.
pub(super) struct TextMatcher<'a> {
    expected: Option<&'a [u8]>,
}

impl<'a> TextMatcher<'a> {
    pub(super) fn new(expected: &'a [u8]) -> TextMatcher<'a> {
        TextMatcher { expected: Some(expected) }
    }

    pub(super) fn matched(self) -> bool {
        self.expected.is_some_and(<[u8]>::is_empty)
    }
}

impl EntrySink for TextMatcher<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.expected = self.expected.and_then(|rest| rest.strip_prefix(bytes));
    }
}

impl EntrySink for Fnv1a {
    fn put(&mut self, bytes: &[u8]) {
        self.add(bytes);
    }
}

/// Renders the lines of one dump into a sink.
pub(super) struct Renderer<'s, S> {
    sink: &'s mut S,
    newline: &'static [u8],
    short_offsets: bool,
}

impl<'s, S: EntrySink> Renderer<'s, S> {
    pub(super) fn new(sink: &'s mut S, style: TextStyle, dump: &Devcore<'_>) -> Renderer<'s, S> {
        let before_a6xx = || dump.revision.is_some_and(|r| r.chip_id.parts()[0] < 6);
        Renderer {
            sink,
            newline: if style.crlf { b"\r\n" } else { b"\n" },
            short_offsets: style.short_offsets.unwrap_or_else(before_a6xx),
        }
    }

    pub(super) fn marker(&mut self) {
        self.line(b"---", b"");
    }

    pub(super) fn heading(&mut self, section: MsmSection) {
        self.line(section.name().as_bytes(), b":");
    }

    /// The line of a key; nothing when the dump does not have it.
    pub(super) fn top(&mut self, dump: &Devcore<'_>, key: TopKey) {
        let text = match key {
            TopKey::Kernel => &dump.kernel,
            TopKey::Module => &dump.module,
            TopKey::Time => &dump.time,
            TopKey::Comm => &dump.comm,
            TopKey::Cmdline => &dump.cmdline,
            TopKey::GpuInitialized => {
                if let Some(value) = dump.gpu_initialized {
                    self.decimal(b"gpu-initialized: ", value.into());
                }
                return;
            }
            TopKey::Revision => {
                if let Some(revision) = dump.revision {
                    let [core, major, minor, patch] = revision.chip_id.parts();
                    self.sink.put(b"revision: ");
                    put_decimal(self.sink, revision.gpu_id.into());
                    for (mark, part) in [(" (", core), (".", major), (".", minor), (".", patch)] {
                        self.sink.put(mark.as_bytes());
                        put_decimal(self.sink, part.into());
                    }
                    self.line(b")", b"");
                }
                return;
            }
            TopKey::RbbmStatus => {
                if let Some(value) = dump.rbbm_status {
                    self.hex(b"rbbm-status: ", value.into(), 8);
                }
                return;
            }
        };
        if let Some(text) = text {
            self.sink.put(key.name().as_bytes());
            self.text(b": ", text);
        }
    }

    /// One entry of a section; nothing when there is none of this index.
    pub(super) fn entry(&mut self, dump: &Devcore<'_>, section: MsmSection, index: usize) {
        match section {
            MsmSection::FaultInfo => self.all(&dump.fault, index, Self::fault),
            MsmSection::PageTables => self.all(&dump.page_tables, index, Self::page_tables),
            MsmSection::VmLog => self.one(dump.vm_log.get(index), |r, op| r.text(b"  - ", op)),
            MsmSection::Ringbuffer => self.one(dump.rings.get(index), Self::ring),
            MsmSection::Bos => self.one(dump.bos.get(index), Self::bo),
            MsmSection::GmuLog => self.all(&dump.gmu_log, index, Self::gmu),
            MsmSection::GmuHfi => self.all(&dump.gmu_hfi, index, Self::gmu),
            MsmSection::GmuDebug => self.all(&dump.gmu_debug, index, Self::gmu),
            MsmSection::Registers | MsmSection::RegistersHlsq => {
                let registers =
                    if section == MsmSection::Registers { &dump.registers } else { &dump.registers_hlsq };
                let digits = if self.short_offsets { 4 } else { 6 };
                self.one(registers.get(index), |r, reg| r.register(b"  ", reg, digits));
            }
            MsmSection::RegistersGmu => {
                self.one(dump.registers_gmu.get(index), |r, reg| r.register(b"  ", reg, 6));
            }
            MsmSection::IndexedRegisters => self.one(dump.indexed.get(index), Self::indexed),
            MsmSection::ShaderBlocks => self.one(dump.shader_blocks.get(index), Self::shader_block),
            MsmSection::Clusters => {
                let previous = index.checked_sub(1).and_then(|i| dump.clusters.get(i));
                self.one(dump.clusters.get(index), |r, cluster| r.cluster(cluster, previous));
            }
            MsmSection::Debugbus => self.one(dump.debugbus.get(index), Self::debugbus),
        }
    }

    fn one<T>(&mut self, entry: Option<&T>, render: impl FnOnce(&mut Self, &T)) {
        if let Some(entry) = entry {
            render(self, entry);
        }
    }

    fn all<T>(&mut self, entry: &Option<T>, index: usize, render: impl FnOnce(&mut Self, &T)) {
        self.one(entry.as_ref().filter(|_| index == 0), render);
    }

    fn fault(&mut self, fault: &Fault<'_>) {
        self.opt(fault.ttbr0, |r, v| r.bare_hex(b"  - ttbr0=", v));
        self.opt(fault.iova, |r, v| r.bare_hex(b"  - iova=", v));
        self.opt(fault.dir.as_deref(), |r, v| r.text(b"  - dir=", v));
        self.opt(fault.kind.as_deref(), |r, v| r.text(b"  - type=", v));
        self.opt(fault.source.as_deref(), |r, v| r.text(b"  - source=", v));
        self.extra(&fault.extra);
    }

    fn page_tables(&mut self, tables: &PageTables<'_>) {
        self.opt(tables.ttbr0, |r, v| r.bare_hex(b"  - ttbr0: ", v));
        self.opt(tables.asid, |r, v| r.decimal(b"  - asid: ", v.into()));
        self.opt(tables.ptes, |r, ptes| {
            r.sink.put(b"  - ptes:");
            for pte in ptes {
                r.sink.put(b" ");
                put_hex(r.sink, pte, 16);
            }
            r.line(b"", b"");
        });
        self.extra(&tables.extra);
    }

    fn ring(&mut self, ring: &Ring<'_>) {
        self.decimal(b"  - id: ", ring.id.into());
        self.hex(b"    iova: ", ring.iova, 16);
        self.opt(ring.last_fence, |r, v| r.decimal(b"    last-fence: ", v.into()));
        self.opt(ring.retired_fence, |r, v| r.decimal(b"    retired-fence: ", v.into()));
        self.opt(ring.rptr, |r, v| r.decimal(b"    rptr: ", v.into()));
        self.opt(ring.wptr, |r, v| r.decimal(b"    wptr: ", v.into()));
        self.opt(ring.size, |r, v| r.decimal(b"    size: ", v.into()));
        self.extra(&ring.extra);
        self.data(b"     ", &ring.data);
    }

    fn bo(&mut self, bo: &Bo<'_>) {
        self.hex(b"  - iova: ", bo.iova, 16);
        self.decimal(b"    size: ", bo.size);
        self.opt(bo.flags, |r, v| r.hex(b"    flags: ", v.into(), 1));
        self.opt(bo.name.as_deref(), |r, name| {
            r.sink.put(b"    name: ");
            r.clean(name);
            let blanks = 32usize.saturating_sub(name.len());
            r.line(&b"                                "[..blanks], b"");
        });
        self.extra(&bo.extra);
        self.data(b"     ", &bo.data);
    }

    fn gmu(&mut self, buffer: &GmuBuffer<'_>) {
        self.hex(b"    iova: ", buffer.iova, 16);
        self.decimal(b"    size: ", buffer.size);
        for (queue, history) in buffer.history.iter().enumerate() {
            self.sink.put(b"    queue-history[");
            put_decimal(self.sink, queue as u64);
            self.sink.put(b"]:");
            for &start in history {
                self.sink.put(if start < 0 { b" -" } else { b" " });
                put_decimal(self.sink, start.unsigned_abs().into());
            }
            self.line(b"", b"");
        }
        self.extra(&buffer.extra);
        self.data(b"     ", &buffer.data);
    }

    fn indexed(&mut self, indexed: &Indexed<'_>) {
        self.text(b"  - regs-name: ", &indexed.name);
        self.decimal(b"    dwords: ", indexed.dwords.into());
        self.extra(&indexed.extra);
        self.data(b"      ", &indexed.data);
    }

    fn shader_block(&mut self, block: &ShaderBlock<'_>) {
        self.text(b"  - type: ", &block.ty);
        self.opt(block.pipe.as_deref(), |r, v| r.text(b"    - pipe: ", v));
        self.opt(block.location, |r, v| r.decimal(b"    - location: ", v.into()));
        self.extra(&block.extra);
        let mut sp = None;
        for bank in &block.banks {
            let nested = match (bank.usptp, bank.context) {
                (Some(usptp), _) => Some((b"        - usptp: ".as_slice(), usptp)),
                (None, Some(context)) => Some((b"        - ctx: ".as_slice(), context)),
                (None, None) => None,
            };
            if let Some((key, number)) = nested {
                if sp != Some(bank.index) {
                    self.decimal(b"      - sp: ", bank.index.into());
                    sp = Some(bank.index);
                }
                self.decimal(key, number.into());
                self.decimal(b"          size: ", bank.size.into());
            } else {
                self.decimal(b"    - bank: ", bank.index.into());
                self.decimal(b"      size: ", bank.size.into());
            }
            self.data(b"      ", &bank.data);
        }
    }

    /// a6xx names a cluster once for all its contexts; several clusters in a row may share their name.
    fn cluster(&mut self, cluster: &Cluster<'_>, previous: Option<&Cluster<'_>>) {
        let indent: &[u8] = if let Some(pipe) = &cluster.pipe {
            self.text(b"  - pipe: ", pipe);
            self.text(b"    - cluster-name: ", &cluster.name);
            self.opt(cluster.context, |r, v| r.decimal(b"      - context: ", v.into()));
            self.opt(cluster.location, |r, v| r.decimal(b"      - location: ", v.into()));
            b"        "
        } else {
            let named = cluster.context.is_some()
                && previous.is_some_and(|p| {
                    p.pipe.is_none()
                        && p.name == cluster.name
                        && p.context.is_some()
                        && p.context < cluster.context
                });
            if !named {
                self.text(b"  - cluster-name: ", &cluster.name);
            }
            self.opt(cluster.context, |r, v| r.decimal(b"    - context: ", v.into()));
            self.opt(cluster.location, |r, v| r.decimal(b"    - location: ", v.into()));
            b"      "
        };
        for register in &cluster.registers {
            self.register(indent, register, 6);
        }
    }

    fn debugbus(&mut self, block: &DebugBus<'_>) {
        self.text(b"  - debugbus-block: ", &block.name);
        self.decimal(b"    count: ", block.count.into());
        self.extra(&block.extra);
        self.data(b"      ", &block.data);
    }

    fn register(&mut self, indent: &[u8], register: &RegisterValue, digits: usize) {
        self.sink.put(indent);
        self.sink.put(b"- { offset: 0x");
        put_hex(self.sink, u64::from(register.reg) * 4, digits);
        self.sink.put(b", value: 0x");
        put_hex(self.sink, register.value.into(), 8);
        self.line(b" }", b"");
    }

    fn data(&mut self, indent: &[u8], data: &Option<Blob<'_>>) {
        if let Some(blob) = data {
            self.line(b"    data: !!ascii85 |", b"");
            self.sink.put(indent);
            self.line(&blob.encoded, b"");
        }
    }

    fn extra(&mut self, extra: &Extra<'_>) {
        for text in extra {
            self.line(text, b"");
        }
    }

    fn opt<T>(&mut self, value: Option<T>, render: impl FnOnce(&mut Self, T)) {
        if let Some(value) = value {
            render(self, value);
        }
    }

    fn text(&mut self, key: &[u8], value: &str) {
        self.sink.put(key);
        self.clean(value);
        self.line(b"", b"");
    }

    /// A string cannot end its line.
    fn clean(&mut self, value: &str) {
        for (i, part) in value.split(['\n', '\r']).enumerate() {
            if i > 0 {
                self.sink.put(b" ");
            }
            self.sink.put(part.as_bytes());
        }
    }

    fn decimal(&mut self, key: &[u8], value: u64) {
        self.sink.put(key);
        put_decimal(self.sink, value);
        self.line(b"", b"");
    }

    fn hex(&mut self, key: &[u8], value: u64, digits: usize) {
        self.sink.put(key);
        self.sink.put(b"0x");
        put_hex(self.sink, value, digits);
        self.line(b"", b"");
    }

    fn bare_hex(&mut self, key: &[u8], value: u64) {
        self.sink.put(key);
        put_hex(self.sink, value, 16);
        self.line(b"", b"");
    }

    fn line(&mut self, a: &[u8], b: &[u8]) {
        self.sink.put(a);
        self.sink.put(b);
        self.sink.put(self.newline);
    }
}

fn put_hex(sink: &mut impl EntrySink, value: u64, digits: usize) {
    let mut text = [b'0'; 16];
    let mut rest = value;
    for c in text.iter_mut().rev() {
        *c = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
    }
    let used = (67 - value.leading_zeros() as usize) / 4;
    sink.put(&text[16 - used.max(digits).min(16)..]);
}

fn put_decimal(sink: &mut impl EntrySink, value: u64) {
    let mut text = [0; 20];
    let mut at = text.len();
    let mut rest = value;
    loop {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    sink.put(&text[at..]);
}

/// See [`Devcore::write`].
pub(super) fn write(dump: &Devcore<'_>, out: &mut Vec<u8>) {
    MsmWriter { dump, out, written: [0; MsmSection::ALL.len()] }.write();
}

struct MsmWriter<'d, 'o> {
    dump: &'d Devcore<'d>,
    out: &'o mut Vec<u8>,
    /// Entries of each section that have been written.
    written: [usize; MsmSection::ALL.len()],
}

impl MsmWriter<'_, '_> {
    fn write(&mut self) {
        let from = self.out.len();
        let plan = plan(self.dump);
        let mut last = [None; MsmSection::ALL.len()];
        for (at, piece) in plan.iter().enumerate() {
            if let Some(section) = section_of(piece) {
                last[section as usize] = Some(at);
            }
        }
        for (at, piece) in plan.iter().enumerate() {
            if self.out.len() > from && self.out.last() != Some(&b'\n') {
                self.out.push(b'\n');
            }
            self.piece(piece);
            if let Some(section) = section_of(piece)
                && last[section as usize] == Some(at)
            {
                self.entries(section, usize::MAX);
            }
        }
    }

    fn piece(&mut self, piece: &TextRun<'_>) {
        let dump = self.dump;
        match *piece {
            TextRun::Marker => self.renderer().marker(),
            TextRun::Top(key) => self.renderer().top(dump, key),
            TextRun::TopAs(key, verbatim) => {
                let mut usual = Fnv1a::default();
                Renderer::new(&mut usual, dump.layout.style, dump).top(dump, key);
                if !self.verbatim(verbatim, usual) {
                    self.renderer().top(dump, key);
                }
            }
            TextRun::Heading(section) => self.renderer().heading(section),
            TextRun::HeadingAs(_, raw) | TextRun::Other(raw) => self.out.extend_from_slice(raw),
            TextRun::Entries(section, count) => self.entries(section, count as usize),
            TextRun::EntryAs(section, verbatim) => {
                let index = self.written[section as usize];
                let mut usual = Fnv1a::default();
                Renderer::new(&mut usual, dump.layout.style, dump).entry(dump, section, index);
                if self.verbatim(verbatim, usual) {
                    self.written[section as usize] += 1;
                } else {
                    self.entries(section, 1);
                }
            }
        }
    }

    fn verbatim(&mut self, verbatim: Verbatim<'_>, usual: Fnv1a) -> bool {
        let same = usual.value() == verbatim.usual;
        if same {
            self.out.extend_from_slice(verbatim.raw);
        }
        same
    }

    fn entries(&mut self, section: MsmSection, count: usize) {
        let dump = self.dump;
        let from = self.written[section as usize];
        let to = from.saturating_add(count).min(dump.entries(section));
        let mut renderer = self.renderer();
        for index in from..to {
            renderer.entry(dump, section, index);
        }
        self.written[section as usize] = to.max(from);
    }

    fn renderer(&mut self) -> Renderer<'_, Vec<u8>> {
        Renderer::new(self.out, self.dump.layout.style, self.dump)
    }
}

fn section_of(piece: &TextRun<'_>) -> Option<MsmSection> {
    match *piece {
        TextRun::Heading(s) | TextRun::HeadingAs(s, _) | TextRun::Entries(s, _) | TextRun::EntryAs(s, _) => {
            Some(s)
        }
        _ => None,
    }
}

/// The pieces of the dump: those of its layout, and where a kernel would have them, those that it lacks.
fn plan<'d>(dump: &'d Devcore<'_>) -> Vec<TextRun<'d>> {
    let mut plan: Vec<TextRun<'d>> = dump.layout.pieces.clone();
    let mut keys = [false; TopKey::ALL.len()];
    let mut sections = [false; MsmSection::ALL.len()];
    for piece in &plan {
        match piece {
            TextRun::Top(key) | TextRun::TopAs(key, _) => keys[*key as usize] = true,
            piece => {
                if let Some(section) = section_of(piece) {
                    sections[section as usize] = true;
                }
            }
        }
    }
    if plan.is_empty() {
        plan.push(TextRun::Marker);
    }
    let missing_keys = TopKey::ALL.into_iter().filter(|&key| !keys[key as usize] && dump.has(key));
    let missing_sections =
        MsmSection::ALL.into_iter().filter(|&s| !sections[s as usize] && dump.entries(s) > 0);
    let missing = missing_keys
        .map(|key| (rank_of_key(key), TextRun::Top(key)))
        .chain(missing_sections.map(|s| (rank_of_section(s), TextRun::Heading(s))));
    for (own, piece) in missing {
        let at = plan.iter().position(|p| rank(p).is_some_and(|r| r > own)).unwrap_or(plan.len());
        plan.insert(at, piece);
    }
    plan
}
