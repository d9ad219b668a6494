//! A dump of i915 or xe as JSON lines.

use super::streams::Unpacked;
use super::values::{GucRegister, Meaning, MeaningLine};
use super::{IntelDump, Origin, Unpacking, commands, engine_name, kind_name, memory_limit, space_name};
use crate::json::{Hex, HexWords};
use crate::lines::{Lines, Start, end};
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;
use unwedge_base::Diagnostic;
use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::{DumpEngine, IntelRegister, KeyValue, RegisterIndex};
use unwedge_hw::Db;
use unwedge_hw::intel::platform::EngineClass;
use unwedge_intel::fence::IntelFence;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct IntelHeader<'a> {
    #[serde(flatten)]
    start: Start<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<JsonDevice>,
    #[serde(flatten)]
    origin: Origin<'a>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonDevice {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pci_id: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pci_revision: Option<Hex>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FieldLine<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    section: &'a str,
    name: &'a str,
    value: &'a str,
    #[serde(rename = "bytes")]
    span: [u64; 2],
}

#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct IntelEntry<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    section: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<Vec<u16>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<String>,
    #[serde(flatten)]
    meaning: Option<MeaningLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(flatten)]
    fence: Option<FenceRange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<Vec<[u32; 3]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_us: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hung: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guilty: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<[Hex; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seqno: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signaled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Contents>,
    #[serde(rename = "bytes", skip_serializing_if = "Option::is_none")]
    span: Option<[u64; 2]>,
}

/// What a fence register says.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FenceRange {
    valid: bool,
    start: Hex,
    end: Hex,
    pitch: u64,
    tiling: &'static str,
}

/// Contents of a block; zeros at the end are left out.
struct Contents(Vec<u32>);

impl Serialize for Contents {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let used = self.0.iter().rposition(|&d| d != 0).map_or(0, |last| last + 1);
        HexWords(self.0.get(..used).unwrap_or_default()).serialize(s)
    }
}

/// A dump as JSON lines. `bytes` is the size of its file, `unpacking` what was lost before it was read. Returns what was
/// lost.
pub fn decode(
    dump: IntelDump<'_, '_>,
    bytes: u64,
    unpacking: &[Diagnostic],
    max_size: u64,
    db: &Db,
    out: &mut dyn Write,
) -> Vec<Diagnostic> {
    let mut diagnostics = [unpacking, dump.diagnostics()].concat();
    let mut lines = Lines::new(bytes, out);
    diagnostics.extend(write(dump, max_size, db, &mut lines));
    if lines.too_long() {
        diagnostics.push(Diagnostic::loss(None, "the output is too long: the rest is not shown"));
    }
    end(&diagnostics, &mut lines);
    lines.hand_on();
    diagnostics
}

/// Everything but the diagnostics and the end. Returns what was lost.
fn write(dump: IntelDump<'_, '_>, max_size: u64, db: &Db, lines: &mut Lines<'_>) -> Vec<Diagnostic> {
    header(dump, db, lines);
    fields("device", dump.fields(), lines);
    match dump {
        IntelDump::I915(state) => {
            registers(dump, None, &state.registers, lines);
            fences(dump, state, lines);
            guc_registers(dump, state, lines);
            attentions(state, lines);
        }
        IntelDump::Xe(xe) => {
            for gt in &xe.gts {
                fields(&format!("gt {}", gt.id), &gt.fields, lines);
            }
            fields("guc", &xe.guc, lines);
            for queue in &xe.queues {
                let number = queue.guc_id.map(u64::from);
                let name = queue.field("Name").map(Cow::Borrowed);
                let span = Some([queue.span.start, queue.span.end]);
                lines.push(&IntelEntry { ty: "queue", number, name, span, ..IntelEntry::default() });
                fields("queue", &queue.fields, lines);
                fields("queue", &queue.jobs, lines);
                for context in &queue.contexts {
                    let context_at = context.descriptor.map(|d| Hex::dword(d as u32));
                    lines.push(&IntelEntry { ty: "context", context: context_at, ..IntelEntry::default() });
                    fields("context", &context.fields, lines);
                }
            }
            for &at in &xe.batches {
                lines.push(&IntelEntry { ty: "batch", iova: Some(Hex::wide(at)), ..IntelEntry::default() });
            }
            fields("vm", &xe.vm, lines);
        }
    }
    let mut unpacked = Unpacked::of(dump, memory_limit(dump.bytes(), max_size));
    for (i, engine) in dump.engines().iter().enumerate() {
        self::engine(dump, engine, lines);
        if let Some(unpacked) = unpacked.as_mut().filter(|_| !lines.ended()) {
            // It fails where the output ends, and says so itself.
            let _ = unpacked.each(i, &mut |stream| commands::json(stream, lines));
        }
    }
    drop(unpacked);
    buffers(dump, lines);
    requests(dump, lines);
    blocks(dump, max_size, lines)
}

fn header(dump: IntelDump<'_, '_>, db: &Db, lines: &mut Lines<'_>) {
    let (id, revision) = dump.pci();
    lines.push(&IntelHeader {
        start: Start::of(dump.kind_id(), db),
        device: dump.device().map(|name| JsonDevice {
            name,
            pci_id: id.map(|id| Hex::short(id.into())),
            pci_revision: revision.map(|r| Hex::short(r.into())),
        }),
        origin: Origin::of(dump),
    });
}

fn fields(section: &str, fields: &[KeyValue<'_>], lines: &mut Lines<'_>) {
    for f in fields {
        let span = [f.span.start, f.span.end];
        lines.push(&FieldLine { ty: "field", section, name: &f.key, value: &f.value, span });
    }
}

fn registers(
    dump: IntelDump<'_, '_>,
    engine: Option<&DumpEngine<'_>>,
    registers: &[IntelRegister<'_>],
    lines: &mut Lines<'_>,
) {
    let version = dump.graphics().version;
    let class = engine.and_then(DumpEngine::id).map_or(EngineClass::Render, |id| id.class);
    for r in registers {
        let more = String::from_utf8_lossy(r.more).into_owned();
        lines.push(&IntelEntry {
            ty: "register",
            section: Some(if engine.is_some() { "engine" } else { "device" }),
            engine: engine.map(|e| engine_name(&e.name)),
            name: Some(Cow::Borrowed(r.name)),
            index: match r.index {
                RegisterIndex::None => None,
                RegisterIndex::One(i) => Some(vec![i]),
                RegisterIndex::Two(i, j) => Some(vec![i, j]),
            },
            value: Some(u32::try_from(r.value).map_or_else(|_| Hex::wide(r.value), Hex::dword)),
            more: (!more.is_empty()).then_some(more),
            meaning: version.and_then(|version| Meaning::of(version, class, r, registers)).map(Meaning::json),
            span: Some([r.span.start, r.span.end]),
            ..IntelEntry::default()
        });
    }
}

fn engine(dump: IntelDump<'_, '_>, engine: &DumpEngine<'_>, lines: &mut Lines<'_>) {
    let (mut context, mut batch) = (None, None);
    if let IntelDump::I915(state) = dump {
        context = state.context(engine);
        batch = state.batch(engine).map(|b| [Hex::wide(b.start), Hex::wide(b.end)]);
    }
    lines.push(&IntelEntry {
        ty: "engine",
        name: Some(Cow::Owned(engine_name(&engine.name))),
        hung: dump.hung(engine),
        process: context.map(|c| c.name),
        pid: context.map(|c| c.pid),
        guilty: context.and_then(|c| c.guilty),
        batch,
        span: Some([engine.span.start, engine.span.end]),
        ..IntelEntry::default()
    });
    fields("engine", &engine.fields, lines);
    registers(dump, Some(engine), &engine.registers, lines);
}

fn fences(dump: IntelDump<'_, '_>, state: &ErrorState<'_>, lines: &mut Lines<'_>) {
    let version = dump.graphics().version;
    for &(number, value) in &state.fences {
        let fence = version.and_then(|version| IntelFence::of(version, value));
        lines.push(&IntelEntry {
            ty: "fence",
            number: Some(number.into()),
            value: Some(Hex::wide(value)),
            fence: fence.map(|fence| FenceRange {
                valid: fence.valid,
                start: Hex::wide(fence.range.start),
                end: Hex::wide(fence.range.end),
                pitch: fence.pitch,
                tiling: fence.tiling,
            }),
            ..IntelEntry::default()
        });
    }
}

fn guc_registers(dump: IntelDump<'_, '_>, state: &ErrorState<'_>, lines: &mut Lines<'_>) {
    let version = dump.graphics().version;
    for &(offset, value) in &state.guc_registers {
        let known = version.and_then(|version| GucRegister::of(version, offset, value));
        lines.push(&IntelEntry {
            ty: "register",
            section: Some("guc"),
            name: known.as_ref().map(|known| Cow::Borrowed(known.name)),
            offset: Some(Hex::short(offset.into())),
            value: Some(Hex::dword(value)),
            meaning: known.and_then(|known| known.meaning).map(Meaning::json),
            ..IntelEntry::default()
        });
    }
}

fn attentions(state: &ErrorState<'_>, lines: &mut Lines<'_>) {
    for attention in state.attentions() {
        let threads = attention.threads().map(|t| [t.subslice, t.eu, t.thread]).collect();
        lines.push(&IntelEntry {
            ty: "attention",
            number: Some(attention.count),
            threads: Some(threads),
            after_us: attention.after_us,
            name: Some(Cow::Owned(attention.when)),
            ..IntelEntry::default()
        });
    }
}

fn buffers(dump: IntelDump<'_, '_>, lines: &mut Lines<'_>) {
    let IntelDump::I915(state) = dump else { return };
    for b in &state.buffers {
        lines.push(&IntelEntry {
            ty: "buffer",
            name: Some(Cow::Borrowed(&*b.list)),
            iova: Some(Hex::wide(b.address)),
            size: Some(b.size),
            more: Some(b.more.to_string()),
            span: Some([b.span.start, b.span.end]),
            ..IntelEntry::default()
        });
    }
}

fn requests(dump: IntelDump<'_, '_>, lines: &mut Lines<'_>) {
    let IntelDump::I915(state) = dump else { return };
    for (engine, r) in &state.requests {
        lines.push(&IntelEntry {
            ty: "request",
            engine: Some(engine_name(engine)),
            pid: r.pid,
            context: r.context.map(Hex::short),
            seqno: Some(r.seqno),
            signaled: Some(r.signaled),
            head: r.head.map(Hex::dword),
            tail: r.tail.map(Hex::dword),
            ..IntelEntry::default()
        });
    }
}

fn blocks(dump: IntelDump<'_, '_>, max_size: u64, lines: &mut Lines<'_>) -> Vec<Diagnostic> {
    let mut lost = Vec::new();
    let mut unpacking = Unpacking::of(dump, max_size);
    for block in dump.blocks() {
        if lines.ended() {
            break;
        }
        let decoded = unpacking.contents(block);
        lost.extend(decoded.as_ref().and_then(|d| d.diagnostic(&block.name, block.span)));
        let held = decoded.as_ref().map(|d| d.dwords.len() as u64 * 4);
        lines.push(&IntelEntry {
            ty: "memory",
            engine: (!block.owner.is_empty()).then(|| engine_name(&block.owner)),
            name: Some(Cow::Borrowed(&*block.name)),
            kind: Some(kind_name(block.kind)),
            iova: block.address.map(Hex::wide),
            space: space_name(block.space),
            size: held.or(block.length),
            error: block.error,
            data: decoded.map(|d| Contents(d.dwords)),
            span: Some([block.span.start, block.span.end]),
            ..IntelEntry::default()
        });
    }
    lost
}

crate::schema::shapes!(lines: FieldLine<'_>, IntelEntry<'_>, IntelHeader<'_>);

crate::schema::shape!(Contents, {"type": "string"});
