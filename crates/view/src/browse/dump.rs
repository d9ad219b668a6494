//! A dump of any driver, browsed. The report is made when the verdict is first asked for; memory of msm is unpacked with it, once.
//! Never: a stream is walked before it is opened.

use super::page::PageTables;
use super::registers::before;
use super::shaders::{self, ListedShader};
use super::{
    BufferContents, BufferEntry, CodeSet, Document, PageNode, RegisterGroup, RegisterRow, Row, RowLook,
    ShaderEntry, StreamEntry, StreamPage, verdict,
};
use crate::around::{self, PacketPlace};
use crate::asm::shaders::ShaderSink;
use crate::html::facts::DumpFacts;
use crate::intel::IntelDump;
use crate::lrc;
use crate::lrc::contexts::Contexts;
use crate::streams::{PacketDecoder, Streams, Walkable};
use crate::words;
use std::collections::BTreeMap;
use unwedge_base::{Generation, Memory};
use unwedge_capture::Dump;
use unwedge_hw::Db;
use unwedge_postmortem::adreno::hang::CpStop;
use unwedge_postmortem::adreno::{AdrenoCase, ExplainedCase, explain_case};
use unwedge_postmortem::{ExcerptPacket, Report, amd};

/// Registers of all groups.
const REGISTERS: usize = 1 << 18;
/// Bytes of a buffer of Intel that are unpacked.
const UNPACKED: usize = 256 << 20;

/// A dump.
pub struct DumpDocument<'d> {
    name: String,
    dump: &'d Dump<'d>,
    tables: PageTables<'d>,
    max_size: u64,
    summary: String,
    explained: Option<Explained<'d>>,
    streams: Option<Vec<StreamEntry>>,
    shaders: Option<Vec<ListedShader>>,
    /// Registers of the contexts of Intel.
    contexts: Option<Vec<RegisterGroup>>,
    set: Option<CodeSet>,
}

/// What the post-mortem found.
struct Explained<'d> {
    report: Report,
    /// Of msm: the dump laid out, and where the CP stopped.
    case: Option<(AdrenoCase<'d>, Option<CpStop>)>,
    facts: DumpFacts,
    stop: Option<PacketPlace>,
}

impl<'d> DumpDocument<'d> {
    /// A dump that was read, with what `info` says of it. `db` is the database of Adreno; memory is unpacked in proportion to
    /// `max_size`.
    pub fn new(
        name: &str,
        dump: &'d Dump<'d>,
        db: &'d Db,
        max_size: u64,
        summary: String,
    ) -> DumpDocument<'d> {
        let tables = PageTables::new(db);
        DumpDocument {
            name: name.to_owned(),
            dump,
            tables,
            max_size,
            summary,
            explained: None,
            streams: None,
            shaders: None,
            contexts: None,
            set: None,
        }
    }

    fn explained(&mut self) -> &Explained<'d> {
        if self.explained.is_none() {
            let explained = self.explain();
            self.explained = Some(explained);
            self.set = self.shader_set();
        }
        self.explained.get_or_insert_with(|| Explained {
            report: Report::default(),
            case: None,
            facts: DumpFacts::default(),
            stop: None,
        })
    }

    /// The instruction set of its shaders.
    fn shader_set(&self) -> Option<CodeSet> {
        match self.dump {
            Dump::Msm(msm) => crate::device::generation(msm).filter(|of| of.number() >= 3).map(CodeSet::Ir3),
            Dump::I915(_) | Dump::Xe(_) => {
                IntelDump::of(self.dump).and_then(|dump| dump.graphics().eu_platform()).map(CodeSet::Eu)
            }
            Dump::Amdgpu(_) | Dump::Radv(_) | Dump::Umr(_) => {
                let found = amd::shaders(self.dump, &self.tables.amd);
                found.and_then(|found| found.gpu).map(CodeSet::Amd)
            }
        }
    }

    fn explain(&self) -> Explained<'d> {
        let db: &'d Db = self.tables.db;
        let (report, case) = match self.dump {
            Dump::Msm(msm) => {
                let ExplainedCase { report, case } = explain_case(msm, db);
                (report, case)
            }
            dump => (unwedge_postmortem::explain(dump, db), None),
        };
        let facts = DumpFacts::within(REGISTERS, self.dump, db, &report);
        let mut explained = Explained { report, case, facts, stop: None };
        let stop = with_streams(self.dump, &explained, &self.tables.amd, self.max_size, |streams| {
            around::stop_in(streams, &explained.report)
        });
        explained.stop = stop.flatten();
        explained
    }

    /// Has the report ready, and hands the streams on.
    fn streams_with<R>(&mut self, then: impl FnOnce(&mut Streams<'_, '_>, &Report) -> R) -> Option<R> {
        self.explained();
        let explained = self.explained.as_ref()?;
        with_streams(self.dump, explained, &self.tables.amd, self.max_size, |streams| {
            then(streams, &explained.report)
        })
    }

    /// One stream by its number.
    fn stream_with<R>(&mut self, number: u32, then: impl FnOnce(&Walkable<'_>) -> R) -> Option<R> {
        let mut then = Some(then);
        self.streams_with(|streams, _| {
            let mut result = None;
            streams.each(&mut |stream| {
                if stream.number == number {
                    result = then.take().map(|then| then(stream));
                }
                stream.number != number
            });
            result
        })?
    }

    /// The buffers whose contents are in memory.
    fn memory_with<R>(&mut self, then: impl FnOnce(&Memory) -> R) -> Option<R> {
        self.explained();
        match self.dump {
            Dump::Msm(msm) => match &self.explained.as_ref()?.case {
                Some((case, _)) => Some(then(&case.memory)),
                None => Some(then(&msm.memory())),
            },
            Dump::Amdgpu(_) | Dump::Radv(_) | Dump::Umr(_) => {
                let streams = match self.dump {
                    Dump::Amdgpu(dump) => amd::Streams::of_amdgpu(dump, &self.tables.amd),
                    Dump::Radv(report) => amd::Streams::of_radv(report, &self.tables.amd),
                    Dump::Umr(text) => amd::Streams::of_umr(text, &self.tables.amd),
                    Dump::Msm(_) | Dump::I915(_) | Dump::Xe(_) => None,
                };
                streams.map(|streams| then(streams.memory()))
            }
            Dump::I915(_) | Dump::Xe(_) => None,
        }
    }
}

/// Opens the streams of a dump; `None` where the GPU is not known.
fn with_streams<R>(
    dump: &Dump<'_>,
    explained: &Explained<'_>,
    amd: &Db,
    max_size: u64,
    then: impl FnOnce(&mut Streams<'_, '_>) -> R,
) -> Option<R> {
    match (dump, &explained.case) {
        (Dump::Msm(_), Some((case, stop))) => Some(then(&mut Streams::of_adreno(case, stop.as_ref()))),
        (Dump::Msm(_), None) => None,
        _ => Streams::of(dump, amd, max_size).map(|mut streams| then(&mut streams)),
    }
}

impl Document for DumpDocument<'_> {
    fn title(&self) -> String {
        let gpu = self.explained.as_ref().map(|explained| words::gpu(&explained.report));
        let gpu = gpu.map(|gpu| format!(" — {gpu}")).unwrap_or_default();
        format!("{} — {}{gpu}", self.name, self.dump.kind().describe())
    }

    fn has_verdict(&self) -> bool {
        true
    }

    fn verdict(&mut self) -> Vec<Row> {
        let explained = self.explained();
        let mut rows = verdict::rows(&explained.report);
        let facts = &explained.facts;
        if !facts.queues.is_empty() {
            rows.push(Row::plain(String::new()));
            rows.push(Row::of(
                "rings and queues: read, written and size in dwords; fences",
                RowLook::Heading,
            ));
        }
        for queue in &facts.queues {
            let hex = |number: Option<u64>| number.map_or("?".to_owned(), |number| format!("{number:#x}"));
            let number = |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
            let text = format!(
                "  {:16} {} / {} of {}, fences retired {} of {}",
                queue.name,
                hex(queue.read),
                hex(queue.written),
                hex(queue.size),
                number(queue.retired),
                number(queue.submitted)
            );
            rows.push(Row::of(text, if queue.hung { RowLook::Stop } else { RowLook::Plain }));
        }
        rows
    }

    fn summary(&mut self) -> Vec<Row> {
        let mut rows = Row::lines(&self.summary);
        let missing = verdict::missing(&self.explained().report);
        if !missing.is_empty() {
            rows.push(Row::plain(String::new()));
            rows.push(Row::of("missing for the verdict", RowLook::Heading));
            rows.extend(missing);
        }
        rows
    }

    fn streams(&mut self) -> Vec<StreamEntry> {
        if let Some(known) = &self.streams {
            return known.clone();
        }
        let stop = self.stop().map(|(stream, _)| stream);
        let mut entries = Vec::new();
        self.streams_with(|streams, _| {
            streams.each(&mut |stream| {
                let stopped = stop == Some(stream.number);
                let note = if stopped { ", where the engine stopped" } else { "" };
                let title = format!("{}{note}", stream.name);
                entries.push(StreamEntry { number: stream.number, title, stopped });
                true
            });
        });
        self.streams = Some(entries.clone());
        entries
    }

    fn page(&mut self, stream: u32, first: usize) -> Option<StreamPage> {
        let page = self.stream_with(stream, |stream| StreamPage::of(stream, first, 0))?;
        self.tables.prepare(page.decoder());
        Some(page)
    }

    fn packet(&self, page: &StreamPage, node: &PageNode) -> ExcerptPacket {
        page.packet(node, &self.tables)
    }

    fn stop(&mut self) -> Option<PacketPlace> {
        self.explained().stop
    }

    fn find(&mut self, iova: u64, _: Option<u32>) -> Option<(u32, usize)> {
        let found = self.streams_with(|streams, report| around::address_in(streams, iova, report))?;
        found.map(|(stream, (first, _))| (stream, first))
    }

    fn find_work(&mut self, number: u32) -> Option<(u32, usize)> {
        let found = self.streams_with(|streams, report| around::work_in(streams, number, report))?;
        found.map(|(stream, (first, _))| (stream, first))
    }

    fn registers(&mut self, at: Option<(u32, usize)>) -> Vec<RegisterGroup> {
        let mut groups = Vec::new();
        if let Some((stream, packet)) = at {
            // The tables are not in the streams that are handed on.
            let mut tables = PageTables::new(self.tables.db);
            groups.extend(self.stream_with(stream, |stream| before(stream, packet, &mut tables)));
        }
        let facts = &self.explained().facts;
        groups.extend(facts.registers.iter().map(|table| {
            let row = |register: &crate::html::facts::RegisterFacts| RegisterRow {
                name: register.name.clone(),
                value: register.value.clone(),
                meaning: register.meaning.clone(),
            };
            RegisterGroup { name: table.name.clone(), rows: table.rows.iter().map(row).collect() }
        }));
        if self.contexts.is_none() {
            let dump = IntelDump::of(self.dump);
            self.contexts = dump.map(|dump| contexts(&Contexts::of_dump(dump, self.max_size)));
        }
        groups.extend(self.contexts.iter().flatten().cloned());
        groups
    }

    fn buffers(&mut self, _: Option<u32>) -> Vec<BufferEntry> {
        let facts = &self.explained().facts;
        let entry = |buffer: &crate::html::facts::BufferFacts| BufferEntry {
            iova: buffer.iova,
            size: buffer.size,
            name: buffer.name.clone(),
            held: buffer.held,
            source: 0,
        };
        facts.buffers.iter().map(entry).collect()
    }

    fn contents(&mut self, buffer: &BufferEntry, _: Option<u32>) -> Option<BufferContents> {
        if let Some(dump) = IntelDump::of(self.dump) {
            let block = dump.blocks().iter().find(|block| {
                block.address == Some(buffer.iova)
                    && block.data.is_some()
                    && block.length.unwrap_or(0) == buffer.size
            });
            let limit = UNPACKED.min(usize::try_from(self.max_size).unwrap_or(UNPACKED));
            let words = block?.data.as_ref()?.decode(limit).dwords;
            return Some(BufferContents { iova: buffer.iova, size: 4 * words.len() as u64, words });
        }
        self.memory_with(|memory| {
            let known = memory.find(buffer.iova)?;
            let dwords = known.dwords_at(buffer.iova)?;
            let size = 4 * dwords.len() as u64;
            Some(BufferContents { iova: buffer.iova, size, words: dwords.stored().to_vec() })
        })?
    }

    fn shaders(&mut self, _: Option<u32>) -> Vec<ShaderEntry> {
        if let Some(listed) = &self.shaders {
            return listed.iter().map(|shader| shader.entry.clone()).collect();
        }
        let mut listed = shaders::of_report(&self.explained().report);
        listed.extend(shaders::of_amd(self.dump, &self.tables.amd));
        let mut sink = ShaderSink { generation: Generation::A6xx, shaders: BTreeMap::new() };
        self.streams_with(|streams, _| {
            streams.each(&mut |stream| {
                if let PacketDecoder::Adreno(gpu) = stream.decoder {
                    shaders::of_adreno(stream, gpu.generation(), &mut sink);
                }
                true
            });
        });
        if let Some((case, _)) = self.explained.as_ref().and_then(|explained| explained.case.as_ref()) {
            listed.extend(shaders::loaded(sink, &|iova, most| words_at(&case.memory, iova, most)));
        }
        if let Some(dump) = IntelDump::of(self.dump) {
            let limit = crate::intel::memory_limit(dump.bytes(), self.max_size);
            listed.extend(shaders::of_intel(dump, limit));
        }
        if let Some(explained) = &self.explained {
            shaders::mark(&mut listed, &explained.report);
        }
        let entries = listed.iter().map(|shader| shader.entry.clone()).collect();
        self.shaders = Some(listed);
        entries
    }

    fn code(&mut self, shader: usize) -> Vec<Row> {
        let listed = self.shaders.as_ref().and_then(|listed| listed.get(shader));
        listed.map(ListedShader::rows).unwrap_or_default()
    }

    fn code_set(&self) -> Option<CodeSet> {
        self.set
    }
}

/// The dwords at an address.
pub(super) fn words_at(memory: &Memory, iova: u64, most: usize) -> Option<Vec<u32>> {
    let dwords = memory.dwords(iova)?.take(most);
    Some(dwords.iter().collect())
}

/// The registers of context images.
pub(super) fn contexts(contexts: &Contexts) -> Vec<RegisterGroup> {
    let mut groups = Vec::new();
    for context in &contexts.contexts {
        let Ok(image) = context.image(None) else { continue };
        let target = context.target.and_then(|owner| unwedge_intel::lrc::LrcLayout::of(owner).ok());
        let layout = target.or_else(|| lrc::likely(&image));
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = lrc::show::text(&image, layout.as_ref(), false, &mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let row = |line: &str| RegisterRow { name: line.replace('\t', "    "), ..RegisterRow::default() };
        let name = if context.title.is_empty() { "context image".to_owned() } else { context.place() };
        groups.push(RegisterGroup { name, rows: text.lines().map(row).collect() });
    }
    groups
}
