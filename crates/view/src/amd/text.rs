//! `decode` of what AMD GPUs leave, as text.

use super::AmdDump;
use super::code::WaveDisassembly;
use super::dwords::Out;
use super::info::fault_line;
use super::packets::{self, PacketReader};
use super::registers::{RegisterReader, runs};
use crate::plural::counted;
use crate::{Style, words};
use std::fmt::Display;
use std::io;
use unwedge_capture::amd::{AmdRegister, DwordContents, VmHub};
use unwedge_capture::amdgpu::{BankOwner, Devcoredump, PageFault, PowerState, VramState};
use unwedge_capture::radv::{
    AnnotatedWave, BoAction, KernelEvent, PipelineState, RadvReport, RadvShader, TraceLog, TraceProgress,
    TraceStream, TrapReport,
};
use unwedge_capture::umr::{PrintedRegister, UmrText, UmrVgpr, UmrWave, UmrWaveLocation};
use unwedge_hw::Db;
use unwedge_hw::amd::Gfx;
use unwedge_postmortem::amd::{
    engine_of, fault_status_register, gfx_of_dump, listed_engine_of, umr_listed_engine, umr_stream_contents,
};
use unwedge_stream::amd::Engine;

/// Everything of a content.
pub(super) fn decode(content: AmdDump<'_, '_>, facts: &Db, style: Style, out: Out<'_>) -> io::Result<()> {
    writeln!(out, "gpu {}", words::amd_gpu(&content.identity(facts)))?;
    match content {
        AmdDump::Dump(dump) => devcoredump(dump, facts, style, out),
        AmdDump::Report(report) => radv(report, WaveDisassembly::of_radv(report, facts), style, out),
        AmdDump::Umr(umr) => umr_text(umr, WaveDisassembly::of_umr(umr, facts), style, out),
    }
}

fn heading(style: Style, title: impl Display, out: Out<'_>) -> io::Result<()> {
    writeln!(out, "\n{}", style.bold(&title.to_string()))
}

fn row(name: &str, value: Option<impl Display>, out: Out<'_>) -> io::Result<()> {
    match value {
        Some(value) => writeln!(out, "  {name:24} {value}"),
        None => Ok(()),
    }
}

/// Registers with their fields; those that are read several times in a row once, with their number.
fn registers(
    indent: &str,
    registers: &[AmdRegister<'_>],
    reader: RegisterReader<'_>,
    out: Out<'_>,
) -> io::Result<()> {
    for (register, times) in runs(registers) {
        let AmdRegister { name, value } = register;
        let times = if times > 1 { format!(" ×{times}") } else { String::new() };
        let text = reader.text(name, *value);
        let line = format!("{indent}{name:40} 0x{value:08x}{times}  {text}");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn devcoredump(dump: &Devcoredump<'_>, facts: &Db, style: Style, out: Out<'_>) -> io::Result<()> {
    row("kernel", dump.kernel.as_ref(), out)?;
    row("module", dump.module.as_ref(), out)?;
    row("time", dump.time.as_ref(), out)?;
    if let Some(process) = &dump.process {
        row("process", Some(&process.name), out)?;
        row("pid", process.pid, out)?;
    }
    if let Some(timeout) = &dump.timeout {
        row("ring that timed out", Some(&timeout.ring), out)?;
    }
    row("page fault", dump.fault.as_ref().map(fault_line), out)?;
    if let Some((name, status)) = dump.fault.as_ref().and_then(|fault| fault_status(fault, dump, facts)) {
        row(name, Some(RegisterReader::new(gfx_of_dump(dump, facts), facts).text(name, status)), out)?;
    }
    row(
        "vram",
        dump.vram.map(|state| match state {
            VramState::Lost => "lost",
            VramState::NotChecked => "not checked",
        }),
        out,
    )?;
    chip(dump, style, out)?;
    let gfx = gfx_of_dump(dump, facts);
    let reader = RegisterReader::new(gfx, facts);
    for ip in &dump.ips {
        heading(style, format_args!("IP {}", ip.name), out)?;
        for count in &ip.counts {
            row(&count.name, Some(count.number), out)?;
        }
        for bank in &ip.banks {
            if let Some(place) = place(&bank.place) {
                writeln!(out, "  {place}")?;
            }
            registers("    ", &bank.registers, reader, out)?;
        }
    }
    for ring in &dump.rings {
        heading(style, format_args!("ring {}", ring.name), out)?;
        row("rptr", ring.rptr.map(|v| format!("{v:#x}")), out)?;
        row("wptr", ring.wptr.map(|v| format!("{v:#x}")), out)?;
        row("mask", ring.mask.map(|v| format!("{v:#x}")), out)?;
        row("dwords", ring.size, out)?;
        let place = |pointer: Option<u64>| Some(pointer? & u64::from(ring.mask?));
        let marks = [(place(ring.rptr), "rptr"), (place(ring.wptr), "wptr")];
        let marks: Vec<(u64, &str)> = marks.into_iter().filter_map(|(at, what)| Some((at?, what))).collect();
        packets::text(
            &ring.contents,
            PacketReader::new(gfx, listed_engine_of(&ring.name), facts),
            &marks,
            out,
        )?;
    }
    let engine = dump.timeout.as_ref().map_or(Some(Engine::Gfx), |timeout| listed_engine_of(&timeout.ring));
    for ib in &dump.ibs {
        heading(style, format_args!("IB {} at {:#x}", ib.number, ib.iova), out)?;
        row("dwords", ib.size, out)?;
        packets::text(&ib.contents, PacketReader::new(gfx, engine, facts), &[], out)?;
    }
    if !dump.reset_registers.is_empty() {
        heading(style, "registers by offset", out)?;
    }
    for register in &dump.reset_registers {
        let name = reader.name_at(register.offset).unwrap_or_default();
        let text = reader.text(name, register.value);
        let line = format!("  0x{:08x} 0x{:08x}  {name:24}  {text}", register.offset, register.value);
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// The register that a fault's status was read from, and its value, if a fault was recorded.
fn fault_status(fault: &PageFault<'_>, dump: &Devcoredump<'_>, facts: &Db) -> Option<(&'static str, u32)> {
    let status = fault.status.filter(|&status| status != 0)?;
    Some((fault_status_register(gfx_of_dump(dump, facts)?, VmHub::from_name(&fault.hub)), status))
}

fn chip(dump: &Devcoredump<'_>, style: Style, out: Out<'_>) -> io::Result<()> {
    if let Some(soc) = dump.soc {
        heading(style, "SoC", out)?;
        row("device", soc.device_id.map(|id| format!("{id:#06x}")), out)?;
        row("pci revision", soc.pci_revision.map(|id| format!("{id:#04x}")), out)?;
        row("family", soc.family, out)?;
        row("revision", soc.revision, out)?;
        row("external revision", soc.external_revision, out)?;
    }
    if let Some(memory) = dump.memory {
        row("vram", memory.vram.map(|v| format!("{v} bytes")), out)?;
        row("visible vram", memory.visible_vram.map(|v| format!("{v} bytes")), out)?;
        row("gtt", memory.gtt.map(|v| format!("{v} bytes")), out)?;
    }
    if let Some(gds) = dump.gds {
        row("gds", gds.total_size, out)?;
        row("gds compute partition", gds.compute_partition_size, out)?;
        row("gws", gds.gws, out)?;
        row("oa", gds.oa, out)?;
    }
    if !dump.hwips.is_empty() {
        heading(style, "versions", out)?;
    }
    for ip in &dump.hwips {
        let version: Vec<String> = ip.version.iter().map(u32::to_string).collect();
        writeln!(out, "  {:24} {}", format!("{}[{}]", ip.name, ip.instance), version.join("."))?;
    }
    if let Some(discovery) = &dump.discovery {
        heading(style, "discovery", out)?;
        for line in discovery.lines() {
            writeln!(out, "  {line}")?;
        }
    }
    if !dump.firmware.is_empty() {
        heading(style, "firmware", out)?;
    }
    for firmware in &dump.firmware {
        writeln!(out, "  {:24} 0x{:08x}, feature {}", firmware.name, firmware.version, firmware.feature)?;
    }
    if let Some(vbios) = &dump.vbios {
        heading(style, "vbios", out)?;
        row("name", vbios.name.as_ref(), out)?;
        row("part number", vbios.part_number.as_ref(), out)?;
        row("version", vbios.version_string.as_ref(), out)?;
        row("date", vbios.date.as_ref(), out)?;
    }
    Ok(())
}

/// Whose registers a bank has; nothing for the block as a whole.
fn place(place: &BankOwner<'_>) -> Option<String> {
    Some(match place {
        BankOwner::Block => return None,
        BankOwner::Instance(number) => format!("instance {number}"),
        BankOwner::Compute { xcc: Some(xcc), mec, pipe, queue } => {
            format!("xcc {xcc}, mec {mec}, pipe {pipe}, queue {queue}")
        }
        BankOwner::Compute { xcc: None, mec, pipe, queue } => {
            format!("mec {mec}, pipe {pipe}, queue {queue}")
        }
        BankOwner::Gfx { me, pipe, queue } => format!("me {me}, pipe {pipe}, queue {queue}"),
        BankOwner::Video { unit, instance, power } => {
            let power = match power {
                PowerState::Active => "active",
                PowerState::Inactive => "powered down, not read",
                PowerState::Harvested => "harvested",
            };
            format!("{unit}{instance}, {power}")
        }
    })
}

fn radv(report: &RadvReport<'_>, code: WaveDisassembly<'_>, style: Style, out: Out<'_>) -> io::Result<()> {
    for (title, entries) in [("application", &report.app), ("device", &report.gpu)] {
        if !entries.is_empty() {
            heading(style, title, out)?;
        }
        for entry in entries {
            row(&entry.name, Some(&entry.value), out)?;
        }
    }
    if let Some(fault) = &report.vm_fault {
        heading(style, "page fault", out)?;
        row("address", fault.address.map(|a| format!("{a:#x}")), out)?;
        let name = fault.status_name.as_deref().unwrap_or("status");
        row(name, fault.status.map(|status| format!("{status:#x}")), out)?;
        for field in &fault.fields {
            row(&field.name, Some(&field.value), out)?;
        }
        if fault.use_after_free {
            writeln!(out, "  RADV: the address was of memory that had been freed")?;
        }
        if fault.not_found {
            writeln!(out, "  RADV: nothing was ever bound there")?;
        }
    }
    if !report.kernel.is_empty() {
        heading(style, "kernel", out)?;
    }
    for event in &report.kernel {
        kernel_event(event, out)?;
    }
    if let Some(trace) = &report.trace {
        streams(trace, code.gfx, code.facts, style, out)?;
    }
    shown_registers("registers", &report.registers, code.registers(), style, out)?;
    if let Some(state) = &report.pipeline {
        pipeline(state, code.registers(), style, out)?;
    }
    for umr in [&report.umr_waves, &report.umr_ring].into_iter().flatten() {
        umr_text(umr, code, style, out)?;
    }
    if let Some(trap) = &report.trap {
        trap_handler(trap, code.registers(), style, out)?;
    }
    buffers(report, style, out)
}

fn kernel_event(event: &KernelEvent<'_>, out: Out<'_>) -> io::Result<()> {
    let or_unknown = |value: Option<String>| value.unwrap_or_else(|| "?".to_owned());
    match event {
        KernelEvent::Timeout { ring, signaled, emitted } => {
            let (signaled, emitted) = (signaled.map(|v| v.to_string()), emitted.map(|v| v.to_string()));
            let (signaled, emitted) = (or_unknown(signaled), or_unknown(emitted));
            writeln!(out, "  ring {ring} timed out: fence {signaled} of {emitted} is signaled")
        }
        KernelEvent::Fault { hub, vmid, address, status, process } => {
            let hex = |value: Option<u64>| or_unknown(value.map(|v| format!("{v:#x}")));
            let vmid = or_unknown(vmid.map(|v| v.to_string()));
            write!(out, "  {hub} page fault at {}, ", hex(*address))?;
            write!(out, "status {}, vmid {vmid}", hex(status.map(u64::from)))?;
            match process {
                Some(process) => writeln!(out, ", process {process}"),
                None => writeln!(out),
            }
        }
    }
}

fn streams(trace: &TraceLog<'_>, gfx: Option<Gfx>, facts: &Db, style: Style, out: Out<'_>) -> io::Result<()> {
    heading(style, "command streams", out)?;
    row("last trace point", trace.id, out)?;
    for stream in &trace.streams {
        let ip = stream.ip.as_deref().unwrap_or_default();
        let cut = if stream.cut { ", cut" } else { "" };
        writeln!(
            out,
            "  {} {ip} (depth {}, {}{cut})",
            stream.name,
            stream.depth,
            counted(stream.packets.len() as u64, "packet", "packets")
        )?;
        for packet in &stream.packets {
            match packet.dword {
                Some(at) => write!(out, "    {:08x} {}", u128::from(at) * 4, packet.name)?,
                None => write!(out, "    {}", packet.name)?,
            }
            if let Some(point) = packet.trace_point {
                let reached = match point.reached {
                    TraceProgress::Yes => "reached",
                    TraceProgress::Last => "the last one reached",
                    TraceProgress::No => "not reached",
                    TraceProgress::Unknown => "not known whether reached",
                };
                write!(out, ": trace point {}, {reached}", point.id)?;
            }
            for bad in &packet.bad_addresses {
                write!(out, "; {} {:#x} {}", bad.name, bad.address, bad.problem)?;
            }
            writeln!(out)?;
        }
        packets::text(&stream.contents, PacketReader::new(gfx, stream_engine(stream), facts), &[], out)?;
    }
    Ok(())
}

/// Registers as a tool printed them: with its fields, or where it has none with those of the tables.
fn shown_registers(
    title: &str,
    shown: &[PrintedRegister<'_>],
    reader: RegisterReader<'_>,
    style: Style,
    out: Out<'_>,
) -> io::Result<()> {
    if !shown.is_empty() {
        heading(style, title, out)?;
    }
    for register in shown {
        match register.value {
            Some(value) => {
                let text = if register.fields.is_empty() {
                    reader.text(&register.name, value)
                } else {
                    String::new()
                };
                let line = format!("  {:40} 0x{value:08x}  {text}", register.name);
                writeln!(out, "{}", line.trim_end())?;
            }
            None => writeln!(out, "  {}", register.name)?,
        }
        for field in &register.fields {
            writeln!(out, "    {:38} {}", field.name, field.text)?;
        }
    }
    Ok(())
}

fn pipeline(
    state: &PipelineState<'_>,
    reader: RegisterReader<'_>,
    style: Style,
    out: Out<'_>,
) -> io::Result<()> {
    heading(style, "pipeline", out)?;
    row("queue", state.ip.as_ref(), out)?;
    row("hash", state.hash.as_ref(), out)?;
    row("active waves", state.active_waves, out)?;
    row("indirect dispatch", state.indirect_dispatch.map(|[x, y, z]| format!("{x}, {y}, {z}")), out)?;
    for shader in &state.shaders {
        shader_listing(shader, style, out)?;
    }
    if !state.strangers.is_empty() {
        heading(style, "waves in no shader above", out)?;
    }
    for wave in &state.strangers {
        annotated_wave(wave, out)?;
    }
    if !state.vertex_buffers.is_empty() {
        heading(style, "vertex buffers", out)?;
    }
    for buffer in &state.vertex_buffers {
        let iova = buffer.iova.map_or_else(|| "?".to_owned(), |iova| format!("{iova:#x}"));
        write!(out, "  {}: {iova}", buffer.number)?;
        buffer.stride.map_or(Ok(()), |stride| write!(out, ", stride {stride}"))?;
        buffer.records.map_or(Ok(()), |records| write!(out, ", {records} records"))?;
        writeln!(out)?;
    }
    for descriptor in &state.descriptors {
        let kind = descriptor.kind.as_deref().unwrap_or("not shown");
        let title = format!("descriptor set {} binding {}: {kind}", descriptor.set, descriptor.binding);
        heading(style, title, out)?;
        shown_registers("", &descriptor.words, reader, Style { colour: false }, out)?;
    }
    Ok(())
}

fn shader_listing(shader: &RadvShader<'_>, style: Style, out: Out<'_>) -> io::Result<()> {
    let address = shader.address().map(|a| format!(" at {a:#x}")).unwrap_or_default();
    heading(style, format!("{}{address}", shader.name), out)?;
    row("spirv", shader.spirv.as_ref(), out)?;
    for instruction in &shader.code {
        let words: Vec<String> = instruction.words.iter().map(|word| format!("{word:08x}")).collect();
        writeln!(out, "  {:06x}: {:<27} {}", instruction.offset, words.join(" "), instruction.text)?;
        let here = |wave: &&AnnotatedWave| wave.pc.is_some() && wave.pc == instruction.pc;
        // Waves follow their instruction in the text they come from: no more of them than instructions are looked at.
        if instruction.pc.is_some() && !shader.waves.is_empty() && shader.waves.len() <= MAX_MATCHED {
            for wave in shader.waves.iter().filter(here) {
                annotated_wave(wave, out)?;
            }
        }
    }
    if shader.waves.len() > MAX_MATCHED {
        shader.waves.iter().try_for_each(|wave| annotated_wave(wave, out))?;
    }
    Ok(())
}

/// Waves of a shader that are shown at their instruction: a chip has not many more.
const MAX_MATCHED: usize = 256;

fn wave_place(place: &UmrWaveLocation) -> String {
    let number = |value: Option<u32>| value.map_or_else(|| "?".to_owned(), |v| v.to_string());
    let unit = if place.wgp { "wgp" } else { "cu" };
    let [se, sa, cu, simd, wave] = [place.se, place.sa, place.cu, place.simd, place.wave].map(number);
    format!("se {se} sa {sa} {unit} {cu} simd {simd} wave {wave}")
}

fn annotated_wave(wave: &AnnotatedWave, out: Out<'_>) -> io::Result<()> {
    write!(out, "          ^ {}", wave_place(&wave.place))?;
    wave.exec.map_or(Ok(()), |exec| write!(out, "  exec {exec:016x}"))?;
    for (name, value) in [("inst", wave.inst[0]), ("", wave.inst[1])] {
        value.map_or(Ok(()), |value| write!(out, "  {name} {value:08x}"))?;
    }
    wave.pc.map_or(Ok(()), |pc| write!(out, "  pc {pc:#x}"))?;
    writeln!(out)
}

/// What reads a stream of RADV's; those it says nothing about are of the graphics queue.
pub(super) fn stream_engine(stream: &TraceStream<'_>) -> Option<Engine> {
    stream.ip.as_deref().map_or(Some(Engine::Gfx), |ip| engine_of(&ip.to_ascii_lowercase()))
}

fn umr_text(umr: &UmrText<'_>, code: WaveDisassembly<'_>, style: Style, out: Out<'_>) -> io::Result<()> {
    for complaint in &umr.complaints {
        writeln!(out, "umr: {complaint}")?;
    }
    if umr.no_waves {
        writeln!(out, "umr found no waves")?;
    }
    if !umr.blocks.is_empty() {
        heading(style, "blocks", out)?;
    }
    for block in &umr.blocks {
        writeln!(out, "  {}.{}", block.chip, block.name)?;
    }
    for wave in &umr.waves {
        wave_block(wave, code, style, out)?;
    }
    for ring in &umr.rings {
        heading(style, format!("ring {}", ring.name.as_deref().unwrap_or("without a name")), out)?;
        row("rptr", ring.rptr, out)?;
        row("wptr", ring.wptr, out)?;
        row("driver's wptr", ring.driver_wptr, out)?;
        let marks = [(ring.rptr, "rptr"), (ring.wptr, "wptr")];
        let marks: Vec<(u64, &str)> = marks.into_iter().filter_map(|(at, what)| Some((at?, what))).collect();
        let reader = |kind| PacketReader::new(code.gfx, umr_listed_engine(ring, kind), code.facts);
        packets::text(&ring.contents, reader(ring.kind()), &marks, out)?;
        for ib in &ring.ibs {
            writeln!(out, "  packets at {}@{:#x}", ib.vmid, ib.iova)?;
            let contents = umr_stream_contents(ib, code.amd());
            packets::umr_text(ib, &contents, reader(ib.kind.or(ring.kind())), out)?;
        }
    }
    for memory in &umr.memory {
        heading(style, format!("memory at {}@{:#x}", memory.vmid, memory.address), out)?;
        super::dwords::buffer(&memory.contents, &[], out)?;
    }
    for shader in &umr.shaders {
        let stage = shader.stage.as_deref().map_or_else(String::new, |stage| format!("{stage} "));
        heading(style, format!("{stage}shader at {}@{:#x}", shader.vmid, shader.address), out)?;
        for word in &shader.code {
            writeln!(out, "  {:#06x}  {:08x}  {}", word.offset, word.word, word.text)?;
        }
        shown_registers("registers when it was started", &shader.registers, code.registers(), style, out)?;
    }
    shown_registers("registers", &umr.registers, code.registers(), style, out)
}

fn wave_block(wave: &UmrWave<'_>, code: WaveDisassembly<'_>, style: Style, out: Out<'_>) -> io::Result<()> {
    heading(style, wave_place(&wave.place), out)?;
    if wave.tainted {
        writeln!(out, "  umr: the values may be of several moments")?;
    }
    for register in &wave.registers {
        // Where umr printed fields, they follow.
        let reader = Some(code.registers()).filter(|_| wave.fields.is_empty());
        let text = reader.map(|reader| reader.wave_text(&register.name, register.value)).unwrap_or_default();
        let line = format!("  {:40} 0x{:08x}  {text}", register.name, register.value);
        writeln!(out, "{}", line.trim_end())?;
    }
    for field in &wave.fields {
        writeln!(out, "    {:38} {:#x}", field.name, field.value)?;
    }
    numbered("s", &wave.sgprs, out)?;
    numbered("ttmp", &wave.ttmps, out)?;
    vgprs(&wave.vgprs, out)?;
    if !wave.shader_registers.is_empty() {
        shown_registers(
            "registers when it was started",
            &wave.shader_registers,
            code.registers(),
            style,
            out,
        )?;
    }
    if let Some(shader) = wave.shader {
        writeln!(out, "  shader at {}@{:#x}, {} bytes", shader.vmid, shader.address, shader.size)?;
    }
    for (word, text) in wave.code.iter().zip(code.texts(wave)) {
        let marker = if word.at_pc { '>' } else { ' ' };
        let line = format!("  {marker} {:#x}: {:08x}  {text}", word.address(), word.word);
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn numbered(prefix: &str, contents: &DwordContents, out: Out<'_>) -> io::Result<()> {
    for (start, values) in contents.runs() {
        for (first, values) in (start..).step_by(4).zip(values.chunks(4)) {
            write!(out, "  {:8}", format!("{prefix}{first}"))?;
            for value in values {
                write!(out, " {value:08x}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn vgprs(vgprs: &[UmrVgpr], out: Out<'_>) -> io::Result<()> {
    for vgpr in vgprs {
        write!(out, "  {:8}", format!("v{}", vgpr.number))?;
        for lane in &vgpr.lanes {
            write!(out, " {lane:08x}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn trap_handler(
    trap: &TrapReport<'_>,
    reader: RegisterReader<'_>,
    style: Style,
    out: Out<'_>,
) -> io::Result<()> {
    heading(style, "shader exception", out)?;
    row("pc", trap.pc.map(|pc| format!("{pc:#x}")), out)?;
    row("trap", trap.trap_id, out)?;
    row("exec", trap.exec.map(|exec| format!("{exec:016x}")), out)?;
    row("m0", trap.m0.map(|m0| format!("{m0:#x}")), out)?;
    shown_registers("", &trap.registers, reader, Style { colour: false }, out)?;
    numbered("s", &trap.sgprs, out)?;
    vgprs(&trap.vgprs, out)?;
    numbered("lds", &trap.lds, out)?;
    trap.shader.as_ref().map_or(Ok(()), |shader| shader_listing(shader, style, out))
}

fn buffers(report: &RadvReport<'_>, style: Style, out: Out<'_>) -> io::Result<()> {
    if !report.bo_ranges.is_empty() {
        heading(style, "buffers", out)?;
    }
    for bo in &report.bo_ranges {
        write!(out, "  {:#x}-{:#x}", bo.iova, bo.end)?;
        bo.handle.map_or(Ok(()), |handle| write!(out, " handle {handle}"))?;
        writeln!(out)?;
    }
    if !report.bo_history.is_empty() {
        heading(style, "history of buffers", out)?;
    }
    for event in &report.bo_history {
        write!(out, "  {} {:#x}-{:#x} ", event.timestamp, event.iova, event.end)?;
        match event.action {
            BoAction::Created => write!(out, "created")?,
            BoAction::Destroyed => write!(out, "destroyed")?,
            BoAction::Mapped(to) => write!(out, "mapped to {to:#x}")?,
        }
        writeln!(out, "{}", if event.is_virtual { ", virtual" } else { "" })?;
    }
    if !report.bindings.is_empty() {
        heading(style, "bindings of addresses", out)?;
    }
    for binding in &report.bindings {
        let action = if binding.bound { "bound" } else { "unbound" };
        writeln!(
            out,
            "  {} {:#x}-{:#x} {action} {} {:#x}",
            binding.timestamp, binding.iova, binding.end, binding.object_type, binding.object
        )?;
    }
    Ok(())
}
