//! The sections of a dump as JSON lines: one object per entry.

use crate::device;
use crate::json::{Decoded, Hex, HexWords, JsonGpu, Origin};
use crate::lines::{Lines, Start};
use serde::Serialize;
use std::borrow::Cow;
use unwedge_base::Span;
use unwedge_capture::msm::lines::MsmSection;
use unwedge_capture::msm::{Blob, Devcore, GmuBuffer, RegisterValue};
use unwedge_hw::{Db, RegSpace, Registers};

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SectionsHeader<'a> {
    #[serde(flatten)]
    start: Start<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<JsonGpu>,
    #[serde(flatten)]
    origin: Origin<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_initialized: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rbbm_status: Option<Hex>,
}

/// The first line of every stream.
pub fn header(dump: &Devcore<'_>, db: &Db, lines: &mut Lines<'_>) {
    lines.push(&SectionsHeader {
        start: Start::of("msm-devcoredump", db),
        gpu: JsonGpu::of_dump(dump),
        origin: Origin::of(dump),
        gpu_initialized: dump.gpu_initialized.map(|v| v != 0),
        rbbm_status: dump.rbbm_status.map(Hex::dword),
    });
}

/// One entry of a section. Which fields are there depends on the type.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SectionEntry<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    written_as: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pipe: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bank: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usptp: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_fence: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retired_fence: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rptr: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wptr: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttbr0: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ptes: Option<[Hex; 4]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dir: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    history: &'a [[i32; 8]],
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data>,
    #[serde(rename = "bytes", skip_serializing_if = "Option::is_none")]
    span: Option<[u64; 2]>,
}

/// Contents of an entry; zeros at the end are left out.
struct Data(Vec<u32>);

impl Serialize for Data {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        HexWords(&self.0).serialize(s)
    }
}

fn data(blob: Option<&Blob<'_>>) -> Option<Data> {
    blob.map(|b| Data(b.decode()))
}

fn span(span: Span) -> Option<[u64; 2]> {
    (span != Span::default()).then_some([span.start, span.end])
}

/// A register of a section.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SectionRegister<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    section: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pipe: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<u32>,
    offset: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    value: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    value64: Option<Hex>,
    #[serde(flatten)]
    decoded: Option<Decoded<'a>>,
}

/// Where a run of registers stands.
#[derive(Clone, Copy, Default)]
struct At<'a> {
    section: &'a str,
    cluster: Option<&'a str>,
    context: Option<u32>,
    pipe: Option<&'a str>,
    location: Option<u32>,
}

fn registers(values: &[RegisterValue], space: Option<Registers<'_>>, at: At<'_>, lines: &mut Lines<'_>) {
    for (i, &RegisterValue { reg: offset, value }) in values.iter().enumerate() {
        let reg = space.and_then(|s| s.at(offset));
        let high =
            values.get(i + 1).filter(|next| offset.checked_add(1) == Some(next.reg)).map(|next| next.value);
        let pair = reg.filter(|r| r.width() == 64 && r.dword() == 0).and(high);
        let whole = pair.map(|high| u64::from(high) << 32 | u64::from(value));
        // The high half alone means nothing; a low half without it is read as it stands.
        let decoded =
            reg.filter(|r| r.dword() == 0).and_then(|r| Decoded::register(r, whole.unwrap_or(value.into())));
        lines.push(&SectionRegister {
            ty: "register",
            section: at.section,
            cluster: at.cluster,
            context: at.context,
            pipe: at.pipe,
            location: at.location,
            offset: Hex::offset(offset),
            name: reg.map(|r| r.name()),
            value: Hex::dword(value),
            value64: whole.map(Hex::wide),
            decoded,
        });
    }
}

fn gmu(ty: &'static str, buffer: Option<&GmuBuffer<'_>>, lines: &mut Lines<'_>) {
    if let Some(b) = buffer {
        lines.push(&SectionEntry {
            ty,
            iova: Some(Hex::wide(b.iova)),
            size: Some(b.size),
            history: &b.history,
            data: data(b.data.as_ref()),
            span: span(b.span),
            ..SectionEntry::default()
        });
    }
}

/// Header and every section.
pub fn write(dump: &Devcore<'_>, db: &Db, lines: &mut Lines<'_>) {
    header(dump, db, lines);
    faults(dump, lines);
    memory(dump, lines);
    for (section, content) in [
        (MsmSection::GmuLog, &dump.gmu_log),
        (MsmSection::GmuHfi, &dump.gmu_hfi),
        (MsmSection::GmuDebug, &dump.gmu_debug),
    ] {
        gmu(section.name(), content.as_ref(), lines);
    }
    let gpu = device::gpu(dump, db);
    let space = |s| gpu.map(|g| g.space(s));
    for (section, values, of) in [
        (MsmSection::Registers, &dump.registers, RegSpace::Gpu),
        (MsmSection::RegistersGmu, &dump.registers_gmu, RegSpace::Gmu),
        (MsmSection::RegistersHlsq, &dump.registers_hlsq, RegSpace::Gpu),
    ] {
        registers(values, space(of), At { section: section.name(), ..At::default() }, lines);
    }
    blocks(dump, lines);
    for c in &dump.clusters {
        let at = At {
            section: MsmSection::Clusters.name(),
            cluster: Some(&c.name),
            context: c.context,
            pipe: c.pipe.as_deref(),
            location: c.location,
        };
        registers(&c.registers, space(RegSpace::Gpu), at, lines);
    }
    for d in &dump.debugbus {
        lines.push(&SectionEntry {
            ty: "debugbus",
            name: Some(Cow::Borrowed(&d.name)),
            size: Some(u64::from(d.count)),
            data: data(d.data.as_ref()),
            span: span(d.span),
            ..SectionEntry::default()
        });
    }
}

/// What the kernel says of an IOMMU fault.
fn faults(dump: &Devcore<'_>, lines: &mut Lines<'_>) {
    if let Some(f) = &dump.fault {
        lines.push(&SectionEntry {
            ty: "fault",
            iova: f.iova.map(Hex::wide),
            ttbr0: f.ttbr0.map(Hex::wide),
            dir: f.dir.as_deref(),
            kind: f.kind.as_deref(),
            source: f.source.as_deref(),
            span: span(f.span),
            ..SectionEntry::default()
        });
    }
    if let Some(p) = &dump.page_tables {
        lines.push(&SectionEntry {
            ty: "page-tables",
            ttbr0: p.ttbr0.map(Hex::wide),
            asid: p.asid,
            ptes: p.ptes.map(|ptes| ptes.map(Hex::wide)),
            span: span(p.span),
            ..SectionEntry::default()
        });
    }
}

/// Rings, buffers, and the log of what was mapped.
fn memory(dump: &Devcore<'_>, lines: &mut Lines<'_>) {
    for r in &dump.rings {
        lines.push(&SectionEntry {
            ty: "ring",
            id: Some(r.id),
            iova: Some(Hex::wide(r.iova)),
            size: r.size.map(u64::from),
            last_fence: r.last_fence,
            retired_fence: r.retired_fence,
            rptr: r.rptr,
            wptr: r.wptr,
            data: data(r.data.as_ref()),
            span: span(r.span),
            ..SectionEntry::default()
        });
    }
    for b in &dump.bos {
        lines.push(&SectionEntry {
            ty: "bo",
            name: b.name.as_deref().map(Cow::Borrowed),
            iova: Some(Hex::wide(b.iova)),
            size: Some(b.size),
            flags: b.flags.map(Hex::dword),
            data: data(b.data.as_ref()),
            span: span(b.span),
            ..SectionEntry::default()
        });
    }
    for entry in &dump.vm_log {
        lines.push(&SectionEntry {
            ty: "vm-log",
            name: Some(Cow::Borrowed(entry)),
            ..SectionEntry::default()
        });
    }
}

/// Indexed registers and shader blocks.
fn blocks(dump: &Devcore<'_>, lines: &mut Lines<'_>) {
    for x in &dump.indexed {
        let name = x.canonical_name();
        lines.push(&SectionEntry {
            ty: "indexed",
            written_as: (name != x.name).then_some(&*x.name),
            name: Some(name),
            size: Some(u64::from(x.dwords)),
            data: data(x.data.as_ref()),
            span: span(x.span),
            ..SectionEntry::default()
        });
    }
    for block in &dump.shader_blocks {
        for bank in &block.banks {
            lines.push(&SectionEntry {
                ty: "shader-block",
                name: Some(Cow::Borrowed(&block.ty)),
                pipe: block.pipe.as_deref(),
                location: block.location,
                bank: Some(bank.index),
                usptp: bank.usptp,
                context: bank.context,
                size: Some(u64::from(bank.size)),
                data: data(bank.data.as_ref()),
                span: span(block.span),
                ..SectionEntry::default()
            });
        }
    }
}

crate::schema::shapes!(lines: SectionEntry<'_>, SectionRegister<'_>, SectionsHeader<'_>);

crate::schema::shape!(Data, {"type": "string"});
