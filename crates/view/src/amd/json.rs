//! `decode --json` of what AMD GPUs leave: one object per entry.

use super::Content;
use super::code::{Code, Words};
use super::packets::{self, Reader};
use super::record::{Record, Value};
use super::text::{stream_engine, umr_engine};
use crate::info::FileInfo;
use crate::json::Hex;
use crate::lines::{Lines, Start, end};
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;
use unwedge_base::Diagnostic;
use unwedge_capture::amdgpu::Contents;
use unwedge_capture::amdgpu::devcore::{Bank, Devcoredump, Place, Power, VramState};
use unwedge_capture::amdgpu::radv::{
    AnnotatedWave, BoAction, KernelEvent, PipelineState, RadvReport, Reached, Shader,
};
use unwedge_capture::amdgpu::umr::{ShownRegister, UmrText, Wave, WavePlace};
use unwedge_hw::Db;
use unwedge_postmortem::amd::{engine_of, gfx_of_dump, gfx_of_radv, gfx_of_umr};
use unwedge_stream::amd::Engine;

/// The first line.
#[derive(Serialize)]
struct Header<'a> {
    #[serde(flatten)]
    start: Start<'a>,
    #[serde(flatten)]
    rest: Record<'a>,
}

/// Everything. Returns what was lost.
pub(super) fn decode(
    file: &FileInfo<'_>,
    content: &Content<'_>,
    mut diagnostics: Vec<Diagnostic>,
    db: &Db,
    out: &mut dyn Write,
) -> Vec<Diagnostic> {
    let mut lines = Lines::new(file.bytes, out);
    let mut rest = Record::default().maybe("gpu", content.gpu().map(Value::Owned));
    if let Content::Dump(dump) = content {
        rest = rest
            .text("version", dump.version.as_deref())
            .text("kernel", dump.kernel.as_deref())
            .text("module", dump.module.as_deref())
            .text("time", dump.time.as_deref());
        if let Some(process) = &dump.process {
            rest = rest.text("process", &*process.name).number("pid", process.pid);
        }
    }
    lines.push(&Header { start: Start::of(file.kind, db), rest });
    let code = Code::of(content);
    match content {
        Content::Dump(dump) => devcoredump(dump, db, &mut lines),
        Content::Report(report) => {
            radv(report, Words { gfx: gfx_of_radv(report, db), facts: db, code: &code }, &mut lines);
        }
        Content::Umr(umr) => {
            umr_text(umr, Words { gfx: gfx_of_umr(umr), facts: db, code: &code }, &mut lines);
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
fn data(contents: &Contents) -> Value<'_> {
    let run =
        |(offset, dwords)| Record::default().number("offset", offset).with("data", Value::Words(dwords));
    Value::Records(contents.runs().map(run).collect())
}

fn devcoredump(dump: &Devcoredump<'_>, facts: &Db, lines: &mut Lines<'_>) {
    if let Some(soc) = dump.soc {
        lines.push(
            &Record::line("soc")
                .number("device_id", soc.device_id)
                .number("pci_revision", soc.pci_revision)
                .number("family", soc.family)
                .number("revision", soc.revision)
                .number("external_revision", soc.external_revision),
        );
    }
    if let Some(memory) = dump.memory {
        let line = Record::line("memory").number("vram", memory.vram);
        lines.push(&line.number("visible_vram", memory.visible_vram).number("gtt", memory.gtt));
    }
    if let Some(gds) = dump.gds {
        let line = Record::line("gds").number("total_size", gds.total_size);
        let line = line.number("compute_partition_size", gds.compute_partition_size);
        lines.push(&line.number("gws", gds.gws).number("oa", gds.oa));
    }
    for ip in &dump.hwips {
        let version = ip.version.iter().map(|&part| part.into()).collect();
        let line = Record::line("hwip").text("name", &*ip.name).number("kind", ip.kind);
        lines.push(&line.number("instance", ip.instance).with("version", Value::Numbers(version)));
    }
    if let Some(discovery) = &dump.discovery {
        lines.push(&Record::line("discovery").text("text", &**discovery));
    }
    for firmware in &dump.firmware {
        let line = Record::line("firmware").text("name", &*firmware.name).number("feature", firmware.feature);
        lines.push(&line.dword("version", firmware.version).number("program", firmware.program));
    }
    if let Some(vbios) = &dump.vbios {
        lines.push(
            &Record::line("vbios")
                .text("name", vbios.name.as_deref())
                .text("part_number", vbios.part_number.as_deref())
                .text("version", vbios.version.as_deref())
                .text("version_string", vbios.version_string.as_deref())
                .text("date", vbios.date.as_deref()),
        );
    }
    if let Some(timeout) = &dump.timeout {
        lines.push(&Record::line("timeout").text("ring", &*timeout.ring).number("ip_type", timeout.ip_type));
    }
    if let Some(fault) = &dump.fault {
        let line = Record::line("page-fault").text("hub", &*fault.hub).wide("iova", fault.address);
        lines.push(&line.dword("status", fault.status).flag("recorded", fault.is_recorded()));
    }
    if let Some(state) = dump.vram {
        let state = match state {
            VramState::Lost => "lost",
            VramState::NotChecked => "not-checked",
        };
        lines.push(&Record::line("vram").text("state", state));
    }
    for ip in &dump.ips {
        for count in &ip.counts {
            let line = Record::line("count").text("ip", &*ip.name).text("name", &*count.name);
            lines.push(&line.number("number", count.number));
        }
        ip.banks.iter().for_each(|found| bank(&ip.name, found, lines));
    }
    let gfx = gfx_of_dump(dump);
    for ring in &dump.rings {
        let line = Record::line("ring").text("name", &*ring.name).wide("rptr", ring.rptr);
        let line = line.wide("wptr", ring.wptr).dword("mask", ring.mask).number("dwords", ring.size);
        lines.push(&line.with("contents", data(&ring.contents)));
        let reader = Reader::new(gfx, engine_of(&ring.name), facts);
        packets::json(&ring.contents, reader, &|line| line.text("ring", &*ring.name), lines);
    }
    let engine = dump.timeout.as_ref().map_or(Some(Engine::Gfx), |timeout| engine_of(&timeout.ring));
    for ib in &dump.ibs {
        let line = Record::line("ib").number("number", ib.number).wide("iova", ib.iova);
        lines.push(&line.number("dwords", ib.size).with("contents", data(&ib.contents)));
        let reader = Reader::new(gfx, engine, facts);
        packets::json(&ib.contents, reader, &|line| line.wide("buffer", ib.iova), lines);
    }
    for register in &dump.reset_registers {
        let line = Record::line("register").text("section", "reset-registers");
        let offset = Value::Hex(Hex::dword(register.offset));
        lines.push(&line.with("offset", offset).dword("value", register.value));
    }
}

fn bank(ip: &str, bank: &Bank<'_>, lines: &mut Lines<'_>) {
    if let Place::Video { unit, instance, power } = &bank.place {
        let power = match power {
            Power::Active => "active",
            Power::Inactive => "inactive",
            Power::Harvested => "harvested",
        };
        let line = Record::line("video-instance").text("ip", ip).text("unit", &**unit);
        lines.push(&line.number("instance", *instance).text("power", power));
    }
    for register in &bank.registers {
        if lines.too_long() {
            return;
        }
        let line = Record::line("register").text("section", "ip").text("ip", ip);
        let line = match &bank.place {
            Place::Block => line,
            Place::Instance(instance) => line.number("instance", *instance),
            Place::Video { unit, instance, .. } => line.text("unit", &**unit).number("instance", *instance),
            Place::Compute { xcc, mec, pipe, queue } => {
                line.number("xcc", *xcc).number("mec", *mec).number("pipe", *pipe).number("queue", *queue)
            }
            Place::Gfx { me, pipe, queue } => {
                line.number("me", *me).number("pipe", *pipe).number("queue", *queue)
            }
        };
        lines.push(&line.text("name", &*register.name).dword("value", register.value));
    }
}

fn radv(report: &RadvReport<'_>, words: Words<'_>, lines: &mut Lines<'_>) {
    for member in &report.members {
        let line = Record::line("file").text("name", &*member.name).number("size", member.size);
        lines.push(&line.flag("known", member.kind.is_some()));
    }
    for (section, entries) in [("app_info", &report.app), ("gpu_info", &report.gpu)] {
        for entry in entries {
            let line = Record::line("entry").text("section", section).text("name", &*entry.name);
            lines.push(&line.text("value", &*entry.value));
        }
    }
    if let Some(fault) = &report.vm_fault {
        let line = Record::line("page-fault").wide("iova", fault.address);
        let line = line.text("status_name", fault.status_name.as_deref()).dword("status", fault.status);
        lines.push(&line.flag("use_after_free", fault.use_after_free).flag("not_found", fault.not_found));
    }
    report.kernel.iter().for_each(|event| lines.push(&kernel_event(event)));
    if let Some(trace) = &report.trace {
        lines.push(&Record::line("trace").number("last_trace_point", trace.id));
        for (number, stream) in (0u64..).zip(&trace.streams) {
            let line = Record::line("stream").number("number", number).text("name", &*stream.name);
            let line = line.text("ip", stream.ip.as_deref()).number("depth", stream.depth);
            lines.push(&line.flag("cut", stream.cut).with("contents", data(&stream.contents)));
            let reader = Reader::new(words.gfx, stream_engine(stream), words.facts);
            packets::json(&stream.contents, reader, &|line| line.number("stream", number), lines);
            for packet in &stream.packets {
                let bad = packet.bad_addresses.iter().map(|bad| {
                    let line = Record::default().text("name", &*bad.name).wide("iova", bad.address);
                    line.text("problem", &*bad.problem)
                });
                let bad: Vec<Record<'_>> = bad.collect();
                let reached = packet.trace_point.map(|point| match point.reached {
                    Reached::Yes => "yes",
                    Reached::Last => "last",
                    Reached::No => "no",
                    Reached::Unknown => "unknown",
                });
                lines.push(
                    &Record::line("stream-packet")
                        .number("stream", number)
                        .number("index", packet.dword)
                        .text("name", &*packet.name)
                        .number("trace_point", packet.trace_point.map(|point| point.id))
                        .text("reached", reached)
                        .maybe("bad_addresses", (!bad.is_empty()).then_some(Value::Records(bad))),
                );
            }
        }
    }
    report.registers.iter().for_each(|shown| shown_register("registers", shown, lines));
    if let Some(state) = &report.pipeline {
        pipeline(state, lines);
    }
    for umr in [&report.umr_waves, &report.umr_ring].into_iter().flatten() {
        umr_text(umr, words, lines);
    }
    if let Some(trap) = &report.trap {
        let line = Record::line("trap").wide("pc", trap.pc).number("trap", trap.trap_id);
        let line = line.wide("exec", trap.exec).dword("m0", trap.m0).with("sgprs", data(&trap.sgprs));
        lines.push(&line.with("lds", data(&trap.lds)));
        trap.registers.iter().for_each(|shown| shown_register("trap_handler", shown, lines));
        trap.shader.iter().for_each(|found| shader(found, lines));
    }
    for bo in &report.bo_ranges {
        let line = Record::line("bo").wide("iova", bo.iova).wide("end", bo.end);
        lines.push(&line.number("handle", bo.handle));
    }
    for event in &report.bo_history {
        let (action, to) = match event.action {
            BoAction::Created => ("created", None),
            BoAction::Destroyed => ("destroyed", None),
            BoAction::Mapped(to) => ("mapped", Some(to)),
        };
        let line = Record::line("bo-event").number("timestamp", event.timestamp).wide("iova", event.iova);
        let line = line.wide("end", event.end).text("action", action).wide("to", to);
        lines.push(&line.flag("virtual", event.is_virtual));
    }
    for binding in &report.bindings {
        let line = Record::line("binding").number("timestamp", binding.timestamp).wide("iova", binding.iova);
        let line = line.wide("end", binding.end).flag("bound", binding.bound);
        lines.push(&line.text("object_type", &*binding.object_type).wide("object", binding.object));
    }
}

fn kernel_event<'a>(event: &'a KernelEvent<'_>) -> Record<'a> {
    match event {
        KernelEvent::Timeout { ring, signaled, emitted } => {
            let line = Record::line("kernel-timeout").text("ring", &**ring);
            line.number("signaled", *signaled).number("emitted", *emitted)
        }
        KernelEvent::Fault { hub, vmid, address, status, process } => {
            let line = Record::line("kernel-fault").text("hub", &**hub).number("vmid", *vmid);
            line.wide("iova", *address).dword("status", *status).text("process", process.as_deref())
        }
    }
}

fn shown_register(section: &'static str, shown: &ShownRegister<'_>, lines: &mut Lines<'_>) {
    let fields = shown.fields.iter().map(|field| {
        let record = Record::default().text("name", &*field.name).text("text", &*field.text);
        record.maybe("raw", field.value.map(|value| Value::Hex(Hex::short(value.into()))))
    });
    let line = Record::line("register").text("section", section).text("path", shown.path.as_deref());
    let line = line.text("name", &*shown.name).dword("value", shown.value);
    lines.push(&line.with("fields", Value::Records(fields.collect())));
}

fn pipeline(state: &PipelineState<'_>, lines: &mut Lines<'_>) {
    let line = Record::line("pipeline").text("ip", state.ip.as_deref()).text("hash", state.hash.as_deref());
    let dispatch = state.indirect_dispatch.map(|dims| Value::Numbers(dims.map(u64::from).to_vec()));
    lines.push(&line.number("active_waves", state.active_waves).maybe("indirect_dispatch", dispatch));
    state.shaders.iter().for_each(|found| shader(found, lines));
    state.strangers.iter().for_each(|wave| lines.push(&annotated_wave(wave)));
    for buffer in &state.vertex_buffers {
        let line = Record::line("vertex-buffer").number("number", buffer.number).wide("iova", buffer.iova);
        lines.push(&line.number("stride", buffer.stride).number("records", buffer.records));
    }
    for descriptor in &state.descriptors {
        let line = Record::line("descriptor").number("set", descriptor.set);
        let line = line.number("binding", descriptor.binding).number("offset", descriptor.offset);
        lines.push(&line.text("kind", descriptor.kind.as_deref()));
        descriptor.words.iter().for_each(|word| shown_register("descriptor", word, lines));
    }
}

fn shader(shader: &Shader<'_>, lines: &mut Lines<'_>) {
    let line = Record::line("shader").text("name", &*shader.name).wide("iova", shader.address());
    lines.push(&line.number("bytes", shader.size()).text("spirv", shader.spirv.as_deref()));
    for instruction in &shader.code {
        let line =
            Record::line("instruction").number("offset", instruction.offset).wide("pc", instruction.pc);
        lines.push(&line.with("words", Value::Words(&instruction.words)).text("text", &*instruction.text));
    }
    shader.waves.iter().for_each(|wave| lines.push(&annotated_wave(wave)));
}

fn annotated_wave(wave: &AnnotatedWave) -> Record<'static> {
    let [first, second] = wave.inst;
    let line = wave_place("shader-wave", &wave.place).wide("pc", wave.pc).wide("exec", wave.exec);
    line.dword("inst_dw0", first).dword("inst_dw1", second)
}

fn wave_place(ty: &'static str, place: &WavePlace) -> Record<'static> {
    let line = Record::line(ty).number("se", place.se).number("sa", place.sa);
    let line = line.number(if place.wgp { "wgp" } else { "cu" }, place.cu);
    line.number("simd", place.simd).number("wave", place.wave)
}

fn umr_text(umr: &UmrText<'_>, words: Words<'_>, lines: &mut Lines<'_>) {
    for complaint in &umr.complaints {
        lines.push(&Record::line("umr-complaint").text("message", &**complaint));
    }
    if umr.no_waves {
        lines.push(&Record::line("no-waves"));
    }
    umr.waves.iter().for_each(|found| lines.push(&wave(found, words)));
    for ring in &umr.rings {
        let line = Record::line("ring").text("name", ring.name.as_deref()).wide("rptr", ring.rptr);
        let line = line.wide("wptr", ring.wptr).wide("driver_wptr", ring.driver_wptr);
        lines.push(&line.with("contents", data(&ring.contents)));
        let reader = Reader::new(words.gfx, umr_engine(ring), words.facts);
        packets::json(&ring.contents, reader, &|line| line.text("ring", ring.name.as_deref()), lines);
        for ib in &ring.ibs {
            let line = Record::line("ib").number("vmid", ib.vmid).wide("iova", ib.iova);
            lines.push(&line.number("dwords", ib.size).with("contents", data(&ib.contents)));
            packets::json(&ib.contents, reader, &|line| line.wide("buffer", ib.iova), lines);
        }
    }
    umr.registers.iter().for_each(|shown| shown_register("umr", shown, lines));
}

fn wave<'a>(wave: &'a Wave<'_>, words: Words<'_>) -> Record<'a> {
    let registers = wave
        .registers
        .iter()
        .map(|register| Record::default().text("name", &*register.name).dword("value", register.value));
    let fields = wave.fields.iter().map(|field| {
        let record = Record::default().text("register", &*field.register).text("name", &*field.name);
        record.number("value", field.value)
    });
    let vgprs = wave
        .vgprs
        .iter()
        .map(|vgpr| Record::default().number("number", vgpr.number).with("lanes", Value::Words(&vgpr.lanes)));
    let code = wave.code.iter().zip(words.texts(wave)).map(|(word, text)| {
        let record = Record::default().wide("iova", word.address()).dword("word", word.word);
        let text = match text {
            Cow::Borrowed(text) => Value::Text(text),
            Cow::Owned(text) => Value::Owned(text),
        };
        record.with("text", text).flag("at_pc", word.at_pc)
    });
    let shader = wave.shader.map(|shader| {
        let record = Record::default().number("vmid", shader.vmid).wide("iova", shader.address);
        Value::Record(record.number("bytes", shader.size))
    });
    wave_place("wave", &wave.place)
        .wide("pc", wave.pc())
        .wide("exec", wave.exec())
        .flag("tainted", wave.tainted)
        .with("registers", Value::Records(registers.collect()))
        .with("fields", Value::Records(fields.collect()))
        .with("sgprs", data(&wave.sgprs))
        .with("ttmps", data(&wave.ttmps))
        .with("vgprs", Value::Records(vgprs.collect()))
        .maybe("shader", shader)
        .with("code", Value::Records(code.collect()))
}
