//! `decode --json` of what AMD GPUs leave: one object per entry.

use super::code::WaveDisassembly;
use super::lines::{
    AmdLine, BadAddress, PacketBuffer, RegisterField, RegisterLine, Run, ShaderWave, WaveField, WaveLine,
    WaveLocation, WaveRegister, WaveShader, WaveVgpr, WaveWord,
};
use super::packets::{self, PacketReader};
use super::registers::RegisterReader;
use super::text::stream_engine;
use super::{AmdDump, AmdGpuFields};
use crate::info::FileInfo;
use crate::json::{self, Hex};
use crate::lines::{Lines, Start, end};
use crate::words;
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;
use unwedge_base::Diagnostic;
use unwedge_capture::amd::{DwordContents, VmHub};
use unwedge_capture::amdgpu::{BankOwner, Devcoredump, PowerState, RegisterBank, VramState};
use unwedge_capture::radv::{
    AnnotatedWave, BoAction, KernelEvent, PipelineState, RadvReport, RadvShader, TraceLog, TraceProgress,
};
use unwedge_capture::umr::{CodeWord, PrintedRegister, UmrText, UmrWave, UmrWaveLocation};
use unwedge_hw::Db;
use unwedge_postmortem::amd::{
    fault_status_register, gfx_of_dump, listed_engine_of, umr_listed_engine, umr_stream_contents,
};
use unwedge_stream::amd::Engine;

/// The first line.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct AmdHeaderLine<'a> {
    #[serde(flatten)]
    start: Start<'a>,
    gpu: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_identity: Option<AmdGpuFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
}

/// Everything. Returns what was lost.
pub(super) fn decode(
    file: &FileInfo<'_>,
    content: AmdDump<'_, '_>,
    mut diagnostics: Vec<Diagnostic>,
    db: &Db,
    out: &mut dyn Write,
) -> Vec<Diagnostic> {
    let mut lines = Lines::new(file.bytes, out);
    let dump = match content {
        AmdDump::Dump(dump) => Some(dump),
        _ => None,
    };
    let process = dump.and_then(|dump| dump.process.as_ref());
    let identity = content.identity(db);
    lines.push(&AmdHeaderLine {
        start: Start::of(file.kind, db),
        gpu: words::amd_gpu(&identity),
        gpu_identity: AmdGpuFields::of(&identity),
        version: dump.and_then(|dump| dump.version.as_deref()),
        kernel: dump.and_then(|dump| dump.kernel.as_deref()),
        module: dump.and_then(|dump| dump.module.as_deref()),
        time: dump.and_then(|dump| dump.time.as_deref()),
        process: process.map(|process| &*process.name),
        pid: process.and_then(|process| process.pid),
    });
    match content {
        AmdDump::Dump(dump) => devcoredump(dump, db, &mut lines),
        AmdDump::Report(report) => {
            radv(report, WaveDisassembly::of_radv(report, db), &mut lines);
        }
        AmdDump::Umr(umr) => {
            umr_text(umr, WaveDisassembly::of_umr(umr, db), &mut lines);
        }
    }
    if lines.too_long() {
        diagnostics.push(Diagnostic::loss(None, "the output is too long: the rest is not shown"));
    }
    end(&diagnostics, &mut lines);
    lines.hand_on();
    diagnostics
}

/// Stretches of dwords without a gap.
fn data(contents: &DwordContents) -> Vec<Run<'_>> {
    contents.runs().map(|(offset, dwords)| Run { offset, data: json::HexWords(dwords) }).collect()
}

fn devcoredump(dump: &Devcoredump<'_>, facts: &Db, lines: &mut Lines<'_>) {
    chip(dump, lines);
    if let Some(timeout) = &dump.timeout {
        lines.push(&AmdLine::Timeout { ring: &timeout.ring, ip_type: timeout.ip_type });
    }
    if let Some(fault) = &dump.fault {
        let gfx = gfx_of_dump(dump, facts);
        let name = gfx.map(|gfx| fault_status_register(gfx, VmHub::from_name(&fault.hub)));
        let reader = RegisterReader::new(gfx, facts);
        lines.push(&AmdLine::PageFault {
            hub: Some(&fault.hub),
            iova: fault.address.map(Hex::wide),
            status_name: name,
            status: fault.status.map(Hex::dword),
            status_fields: name.zip(fault.status).and_then(|(name, status)| reader.fields(name, status)),
            recorded: fault.is_recorded(),
            use_after_free: None,
            not_found: None,
        });
    }
    if let Some(state) = dump.vram {
        let state = match state {
            VramState::Lost => "lost",
            VramState::NotChecked => "not-checked",
        };
        lines.push(&AmdLine::Vram { state });
    }
    let gfx = gfx_of_dump(dump, facts);
    let reader = RegisterReader::new(gfx, facts);
    for ip in &dump.ips {
        for count in &ip.counts {
            lines.push(&AmdLine::Count { ip: &ip.name, name: &count.name, number: count.number });
        }
        ip.banks.iter().for_each(|found| bank(&ip.name, found, reader, lines));
    }
    for ring in &dump.rings {
        lines.push(&AmdLine::Ring {
            name: Some(&ring.name),
            rptr: ring.rptr.map(Hex::wide),
            wptr: ring.wptr.map(Hex::wide),
            driver_wptr: None,
            mask: ring.mask.map(Hex::dword),
            dwords: ring.size,
            contents: data(&ring.contents),
        });
        let reader = PacketReader::new(gfx, listed_engine_of(&ring.name), facts);
        let of = PacketBuffer { ring: Some(&ring.name), ..PacketBuffer::default() };
        packets::json(&ring.contents, reader, of, lines);
    }
    let engine = dump.timeout.as_ref().map_or(Some(Engine::Gfx), |timeout| listed_engine_of(&timeout.ring));
    for ib in &dump.ibs {
        lines.push(&AmdLine::Ib {
            number: Some(ib.number),
            vmid: None,
            iova: Hex::wide(ib.iova),
            dwords: ib.size,
            contents: data(&ib.contents),
        });
        let reader = PacketReader::new(gfx, engine, facts);
        let of = PacketBuffer { buffer: Some(Hex::wide(ib.iova)), ..PacketBuffer::default() };
        packets::json(&ib.contents, reader, of, lines);
    }
    for register in &dump.reset_registers {
        lines.push(&AmdLine::Register(Box::new(RegisterLine {
            section: "reset-registers",
            offset: Some(Hex::dword(register.offset)),
            name: reader.name_at(register.offset),
            value: Some(Hex::dword(register.value)),
            fields: reader.name_at(register.offset).and_then(|name| reader.fields(name, register.value)),
            ..RegisterLine::default()
        })));
    }
}

/// What the dump says of the chip and its firmware.
fn chip(dump: &Devcoredump<'_>, lines: &mut Lines<'_>) {
    if let Some(soc) = dump.soc {
        lines.push(&AmdLine::Soc {
            device_id: soc.device_id,
            pci_revision: soc.pci_revision,
            family: soc.family,
            revision: soc.revision,
            external_revision: soc.external_revision,
        });
    }
    if let Some(memory) = dump.memory {
        let (vram, visible_vram, gtt) = (memory.vram, memory.visible_vram, memory.gtt);
        lines.push(&AmdLine::Memory { vram, visible_vram, gtt });
    }
    if let Some(gds) = dump.gds {
        lines.push(&AmdLine::Gds {
            total_size: gds.total_size,
            compute_partition_size: gds.compute_partition_size,
            gws: gds.gws,
            oa: gds.oa,
        });
    }
    for ip in &dump.hwips {
        let (kind, instance) = (ip.kind, ip.instance);
        lines.push(&AmdLine::Hwip { name: &ip.name, kind, instance, version: &ip.version });
    }
    if let Some(discovery) = &dump.discovery {
        lines.push(&AmdLine::Discovery { text: discovery });
    }
    for firmware in &dump.firmware {
        lines.push(&AmdLine::Firmware {
            name: &firmware.name,
            feature: firmware.feature,
            version: Hex::dword(firmware.version),
            program: firmware.program,
        });
    }
    if let Some(vbios) = &dump.vbios {
        lines.push(&AmdLine::Vbios {
            name: vbios.name.as_deref(),
            part_number: vbios.part_number.as_deref(),
            version: vbios.version.as_deref(),
            version_string: vbios.version_string.as_deref(),
            date: vbios.date.as_deref(),
        });
    }
}

fn bank(ip: &str, bank: &RegisterBank<'_>, reader: RegisterReader<'_>, lines: &mut Lines<'_>) {
    if let BankOwner::Video { unit, instance, power } = &bank.place {
        let power = match power {
            PowerState::Active => "active",
            PowerState::Inactive => "inactive",
            PowerState::Harvested => "harvested",
        };
        lines.push(&AmdLine::VideoInstance { ip, unit, instance: *instance, power });
    }
    for register in &bank.registers {
        if lines.too_long() {
            return;
        }
        let mut line = RegisterLine {
            section: "ip",
            ip: Some(ip),
            name: Some(&register.name),
            value: Some(Hex::dword(register.value)),
            fields: reader.fields(&register.name, register.value),
            packet: reader.packet(&register.name, register.value),
            ..RegisterLine::default()
        };
        match &bank.place {
            BankOwner::Block => {}
            BankOwner::Instance(instance) => line.instance = Some(*instance),
            BankOwner::Video { unit, instance, .. } => {
                (line.unit, line.instance) = (Some(&**unit), Some(*instance))
            }
            BankOwner::Compute { xcc, mec, pipe, queue } => {
                (line.xcc, line.mec, line.pipe, line.queue) = (*xcc, Some(*mec), Some(*pipe), Some(*queue));
            }
            BankOwner::Gfx { me, pipe, queue } => {
                (line.me, line.pipe, line.queue) = (Some(*me), Some(*pipe), Some(*queue));
            }
        }
        lines.push(&AmdLine::Register(Box::new(line)));
    }
}

fn radv(report: &RadvReport<'_>, code: WaveDisassembly<'_>, lines: &mut Lines<'_>) {
    for member in &report.members {
        lines.push(&AmdLine::File { name: &member.name, size: member.size, known: member.kind.is_some() });
    }
    for (section, entries) in [("app_info", &report.app), ("gpu_info", &report.gpu)] {
        for entry in entries {
            lines.push(&AmdLine::Entry { section, name: &entry.name, value: &entry.value });
        }
    }
    if let Some(fault) = &report.vm_fault {
        lines.push(&AmdLine::PageFault {
            hub: None,
            iova: fault.address.map(Hex::wide),
            status_name: fault.status_name.as_deref(),
            status: fault.status.map(Hex::dword),
            status_fields: None,
            recorded: None,
            use_after_free: Some(fault.use_after_free),
            not_found: Some(fault.not_found),
        });
    }
    report.kernel.iter().for_each(|event| lines.push(&kernel_event(event)));
    if let Some(found) = &report.trace {
        trace(found, code, lines);
    }
    report.registers.iter().for_each(|shown| shown_register("registers", shown, code.registers(), lines));
    if let Some(state) = &report.pipeline {
        pipeline(state, code.registers(), lines);
    }
    for umr in [&report.umr_waves, &report.umr_ring].into_iter().flatten() {
        umr_text(umr, code, lines);
    }
    if let Some(trap) = &report.trap {
        lines.push(&AmdLine::Trap {
            pc: trap.pc.map(Hex::wide),
            trap: trap.trap_id,
            exec: trap.exec.map(Hex::wide),
            m0: trap.m0.map(Hex::dword),
            sgprs: data(&trap.sgprs),
            lds: data(&trap.lds),
        });
        trap.registers
            .iter()
            .for_each(|shown| shown_register("trap_handler", shown, code.registers(), lines));
        trap.shader.iter().for_each(|found| shader(found, lines));
    }
    buffers(report, lines);
}

fn trace(trace: &TraceLog<'_>, code: WaveDisassembly<'_>, lines: &mut Lines<'_>) {
    lines.push(&AmdLine::Trace { last_trace_point: trace.id });
    for (number, stream) in (0u64..).zip(&trace.streams) {
        lines.push(&AmdLine::Stream {
            number,
            name: &stream.name,
            ip: stream.ip.as_deref(),
            depth: stream.depth,
            cut: stream.cut,
            contents: data(&stream.contents),
        });
        let reader = PacketReader::new(code.gfx, stream_engine(stream), code.facts);
        let of = PacketBuffer { stream: Some(number), ..PacketBuffer::default() };
        packets::json(&stream.contents, reader, of, lines);
        for packet in &stream.packets {
            let bad = packet.bad_addresses.iter().map(|bad| BadAddress {
                name: &bad.name,
                iova: Hex::wide(bad.address),
                problem: &bad.problem,
            });
            lines.push(&AmdLine::StreamPacket {
                stream: number,
                index: packet.dword,
                name: &packet.name,
                trace_point: packet.trace_point.map(|point| point.id),
                reached: packet.trace_point.map(|point| match point.reached {
                    TraceProgress::Yes => "yes",
                    TraceProgress::Last => "last",
                    TraceProgress::No => "no",
                    TraceProgress::Unknown => "unknown",
                }),
                bad_addresses: bad.collect(),
            });
        }
    }
}

fn buffers(report: &RadvReport<'_>, lines: &mut Lines<'_>) {
    for bo in &report.bo_ranges {
        lines.push(&AmdLine::Bo { iova: Hex::wide(bo.iova), end: Hex::wide(bo.end), handle: bo.handle });
    }
    for event in &report.bo_history {
        let (action, to) = match event.action {
            BoAction::Created => ("created", None),
            BoAction::Destroyed => ("destroyed", None),
            BoAction::Mapped(to) => ("mapped", Some(Hex::wide(to))),
        };
        lines.push(&AmdLine::BoEvent {
            timestamp: event.timestamp,
            iova: Hex::wide(event.iova),
            end: Hex::wide(event.end),
            action,
            to,
            is_virtual: event.is_virtual,
        });
    }
    for binding in &report.bindings {
        lines.push(&AmdLine::Binding {
            timestamp: binding.timestamp,
            iova: Hex::wide(binding.iova),
            end: Hex::wide(binding.end),
            bound: binding.bound,
            object_type: &binding.object_type,
            object: Hex::wide(binding.object),
        });
    }
}

fn kernel_event<'a>(event: &'a KernelEvent<'_>) -> AmdLine<'a> {
    match event {
        KernelEvent::Timeout { ring, signaled, emitted } => {
            AmdLine::KernelTimeout { ring, signaled: *signaled, emitted: *emitted }
        }
        KernelEvent::Fault { hub, vmid, address, status, process } => AmdLine::KernelFault {
            hub,
            vmid: *vmid,
            iova: address.map(Hex::wide),
            status: status.map(Hex::dword),
            process: process.as_deref(),
        },
    }
}

fn shown_register(
    section: &'static str,
    shown: &PrintedRegister<'_>,
    reader: RegisterReader<'_>,
    lines: &mut Lines<'_>,
) {
    let printed = shown.fields.iter().map(|field| RegisterField {
        name: &field.name,
        text: Cow::Borrowed(&*field.text),
        raw: field.value.map(|value| Hex::short(value.into())),
    });
    let by_tables = || reader.fields(&shown.name, shown.value?);
    let fields = match shown.fields.as_slice() {
        [] => by_tables().unwrap_or_default(),
        _ => printed.collect(),
    };
    lines.push(&AmdLine::Register(Box::new(RegisterLine {
        section,
        path: shown.path.as_deref(),
        name: Some(&shown.name),
        value: shown.value.map(Hex::dword),
        fields: Some(fields),
        packet: shown.value.and_then(|value| reader.packet(&shown.name, value)),
        ..RegisterLine::default()
    })));
}

fn pipeline(state: &PipelineState<'_>, reader: RegisterReader<'_>, lines: &mut Lines<'_>) {
    lines.push(&AmdLine::Pipeline {
        ip: state.ip.as_deref(),
        hash: state.hash.as_deref(),
        active_waves: state.active_waves,
        indirect_dispatch: state.indirect_dispatch,
    });
    state.shaders.iter().for_each(|found| shader(found, lines));
    state.strangers.iter().for_each(|wave| lines.push(&annotated_wave(wave)));
    for buffer in &state.vertex_buffers {
        lines.push(&AmdLine::VertexBuffer {
            number: buffer.number,
            iova: buffer.iova.map(Hex::wide),
            stride: buffer.stride,
            records: buffer.records,
        });
    }
    for descriptor in &state.descriptors {
        lines.push(&AmdLine::Descriptor {
            set: descriptor.set,
            binding: descriptor.binding,
            offset: descriptor.offset,
            kind: descriptor.kind.as_deref(),
        });
        descriptor.words.iter().for_each(|word| shown_register("descriptor", word, reader, lines));
    }
}

fn shader(shader: &RadvShader<'_>, lines: &mut Lines<'_>) {
    lines.push(&AmdLine::Shader {
        name: &shader.name,
        iova: shader.address().map(Hex::wide),
        bytes: shader.size(),
        spirv: shader.spirv.as_deref(),
    });
    for instruction in &shader.code {
        lines.push(&AmdLine::Instruction {
            offset: instruction.offset,
            pc: instruction.pc.map(Hex::wide),
            words: json::HexWords(&instruction.words),
            text: &instruction.text,
        });
    }
    shader.waves.iter().for_each(|wave| lines.push(&annotated_wave(wave)));
}

fn annotated_wave(wave: &AnnotatedWave) -> AmdLine<'static> {
    let [first, second] = wave.inst;
    AmdLine::ShaderWave(ShaderWave {
        place: wave_location(&wave.place),
        pc: wave.pc.map(Hex::wide),
        exec: wave.exec.map(Hex::wide),
        inst_dw0: first.map(Hex::dword),
        inst_dw1: second.map(Hex::dword),
    })
}

fn wave_location(place: &UmrWaveLocation) -> WaveLocation {
    WaveLocation {
        se: place.se,
        sa: place.sa,
        wgp: place.cu.filter(|_| place.wgp),
        cu: place.cu.filter(|_| !place.wgp),
        simd: place.simd,
        wave: place.wave,
    }
}

fn umr_text(umr: &UmrText<'_>, code: WaveDisassembly<'_>, lines: &mut Lines<'_>) {
    for complaint in &umr.complaints {
        lines.push(&AmdLine::UmrComplaint { message: complaint });
    }
    if umr.no_waves {
        lines.push(&AmdLine::NoWaves);
    }
    for found in &umr.waves {
        lines.push(&wave(found, code));
        let registers = found.shader_registers.iter();
        registers.for_each(|shown| shown_register("umr-shader", shown, code.registers(), lines));
    }
    for block in &umr.blocks {
        lines.push(&AmdLine::UmrBlock { chip: &block.chip, name: &block.name });
    }
    for memory in &umr.memory {
        let (vmid, iova) = (memory.vmid, Hex::wide(memory.address));
        lines.push(&AmdLine::UmrMemory { vmid, iova, contents: data(&memory.contents) });
    }
    for ring in &umr.rings {
        lines.push(&AmdLine::Ring {
            name: ring.name.as_deref(),
            rptr: ring.rptr.map(Hex::wide),
            wptr: ring.wptr.map(Hex::wide),
            driver_wptr: ring.driver_wptr.map(Hex::wide),
            mask: None,
            dwords: None,
            contents: data(&ring.contents),
        });
        let reader = |kind| PacketReader::new(code.gfx, umr_listed_engine(ring, kind), code.facts);
        let of = PacketBuffer { ring: ring.name.as_deref(), ..PacketBuffer::default() };
        packets::json(&ring.contents, reader(ring.kind()), of, lines);
        for ib in &ring.ibs {
            let contents = umr_stream_contents(ib, code.amd());
            lines.push(&AmdLine::Ib {
                number: None,
                vmid: Some(ib.vmid),
                iova: Hex::wide(ib.iova),
                dwords: ib.size,
                contents: data(&contents),
            });
            let of = PacketBuffer { buffer: Some(Hex::wide(ib.iova)), ..PacketBuffer::default() };
            packets::umr_json(ib, &contents, reader(ib.kind.or(ring.kind())), of, lines);
        }
    }
    for shader in &umr.shaders {
        lines.push(&AmdLine::UmrShader {
            vmid: shader.vmid,
            iova: Hex::wide(shader.address),
            bytes: shader.size,
            stage: shader.stage.as_deref(),
            code: shader.code.iter().map(|word| wave_word(word, Cow::Borrowed(&*word.text))).collect(),
        });
        let registers = shader.registers.iter();
        registers.for_each(|shown| shown_register("umr-shader", shown, code.registers(), lines));
    }
    umr.registers.iter().for_each(|shown| shown_register("umr", shown, code.registers(), lines));
}

fn wave<'a>(wave: &'a UmrWave<'_>, code: WaveDisassembly<'a>) -> AmdLine<'a> {
    let registers = wave.registers.iter();
    let fields = wave.fields.iter();
    let vgprs = wave.vgprs.iter();
    // Where umr printed fields, they are in `fields`.
    let reader = Some(code.registers()).filter(|_| wave.fields.is_empty());
    let code = wave.code.iter().zip(code.texts(wave));
    AmdLine::Wave(Box::new(WaveLine {
        place: wave_location(&wave.place),
        pc: wave.pc().map(Hex::wide),
        exec: wave.exec().map(Hex::wide),
        tainted: wave.tainted,
        registers: registers
            .map(|r| WaveRegister {
                name: &r.name,
                value: Hex::dword(r.value),
                fields: reader.and_then(|reader| reader.wave_fields(&r.name, r.value)),
            })
            .collect(),
        fields: fields
            .map(|field| WaveField { register: &field.register, name: &field.name, value: field.value })
            .collect(),
        sgprs: data(&wave.sgprs),
        ttmps: data(&wave.ttmps),
        vgprs: vgprs.map(|v| WaveVgpr { number: v.number, lanes: json::HexWords(&v.lanes) }).collect(),
        shader: wave.shader.map(|shader| WaveShader {
            vmid: shader.vmid,
            iova: Hex::wide(shader.address),
            bytes: shader.size,
        }),
        code: code.map(|(word, text)| wave_word(word, text)).collect(),
    }))
}

fn wave_word<'a>(word: &CodeWord<'_>, text: Cow<'a, str>) -> WaveWord<'a> {
    let (iova, dword) = (Hex::wide(word.address()), Hex::dword(word.word));
    WaveWord { iova, word: dword, text, at_pc: word.at_pc }
}

crate::schema::shapes!(lines: AmdHeaderLine<'_>);
