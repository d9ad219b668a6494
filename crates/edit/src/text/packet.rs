//! Packets as text.
//!
//! `pkt4 { REGISTER = value }` and `pkt7 NAME { OPERAND = value }`, an operand or register a line, in the order of the payload.
//! Operands that the database gives no name but their position are a value alone. Never: operands left out.

use super::cursor::is_plain;
use super::value::{self, Symbol};
use super::write::TextWriter;
use crate::rewrite;
use std::collections::BTreeMap;
use std::fmt::Write;
use unwedge_base::Dwords;
use unwedge_hw::{Domain, Gpu, Reg, ValueType, Variants};
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::payload::LoadStateHeader;
use unwedge_stream::adreno::{AdrenoOp, StateSource, StateType, operations};

/// What a name of an operand or register has that holds the lower dword of an address.
const LOW_NAMES: [&str; 4] = ["LO", "ADDR", "BASE", "START"];

/// How packets of a generation are called.
pub(super) struct PacketWords {
    /// Of registers.
    pub(super) registers: &'static str,
    /// Operations.
    pub(super) operation: &'static str,
}

impl PacketWords {
    /// Of a generation: with addresses of 64 bits come types 4 and 7.
    pub(super) fn of(gpu: Gpu<'_>) -> PacketWords {
        if gpu.generation().is_64bit() {
            PacketWords { registers: "pkt4", operation: "pkt7" }
        } else {
            PacketWords { registers: "pkt0", operation: "pkt3" }
        }
    }
}

/// Padding of generations before a5xx.
pub(super) const PADDING: &str = "pkt2";

/// Dwords before the pairs of registers and values of an operation.
pub(super) fn pairs_from(op: AdrenoOp) -> Option<usize> {
    match op {
        AdrenoOp::ContextRegBunch => Some(0),
        AdrenoOp::ContextRegBunch2 | AdrenoOp::NonContextRegBunch => Some(2),
        _ => None,
    }
}

/// The name of a packet, if no other one has it.
pub(super) fn packet_named<'d>(gpu: Gpu<'d>, opcode: u8) -> Option<&'d str> {
    let name = gpu.packet_name(opcode).filter(|name| is_plain(name))?;
    (gpu.packet_opcode(name) == Some(opcode)).then_some(name)
}

/// The operands of a packet. The three packets of a6xx that load state have the same ones.
pub(super) fn layout<'d>(gpu: Gpu<'d>, packet: &str) -> Option<Domain<'d>> {
    gpu.domain(match packet {
        "CP_LOAD_STATE6_GEOM" | "CP_LOAD_STATE6_FRAG" => "CP_LOAD_STATE6",
        _ => packet,
    })
}

/// A register that can be written by its name.
pub(super) fn register_named<'d>(gpu: Gpu<'d>, offset: u32) -> Option<Reg<'d>> {
    let reg = gpu.reg(offset).filter(|reg| is_plain(reg.name()))?;
    (gpu.reg_offset(reg.name()) == Some(offset)).then_some(reg)
}

/// The operands at a position of a payload: the one of 64 bits first, if there is one.
pub(super) fn operands<'d>(
    domain: Domain<'d>,
    index: usize,
    selected: &Variants,
) -> impl Iterator<Item = Reg<'d>> + use<'d> {
    let offset = u32::try_from(index).unwrap_or(u32::MAX);
    let low = move |reg: &Reg<'d>| reg.offset() == offset && reg.width() == 64 && reg.dword() == 0;
    let whole = domain.iter().find(low);
    let at = domain.at(offset, selected).filter(|reg| reg.dword() == 0);
    whole.into_iter().chain(at).filter(|reg| is_plain(reg.name()) && reg.ty().is_some())
}

/// The name says no more than the position.
pub(super) fn is_position(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()))
}

/// A stream's packets.
pub(super) fn write_stream(writer: &mut TextWriter<'_>, start: u64, words: &[u32]) {
    let Some(gpu) = writer.parts.gpu.map(|gpu| gpu.db) else { return };
    let mut stream = StreamWriter { ops: operations(gpu), shaders: shaders(gpu, words), gpu, start, words };
    let (mut index, mut junk) = (0, 0..0);
    while let Some(&raw) = words.get(index) {
        let header = AdrenoPacketHeader::decode(raw, gpu.generation())
            .filter(|header| header.encode(gpu.generation()) == Some(raw))
            .filter(|header| (header.count() as usize) < words.len() - index);
        let labels: Vec<String> = writer.plan.labels(stream.iova(index), index == 0, false).collect();
        if header.is_some() || !labels.is_empty() {
            writer.words(words.get(junk.clone()).unwrap_or_default(), "    ", false);
            junk = index..index;
        }
        for label in labels {
            let _ = writeln!(writer.out, "  {label}:");
        }
        match header {
            Some(header) => {
                stream.packet(writer, index, header);
                index += 1 + header.count() as usize;
                junk = index..index;
            }
            None => {
                index += 1;
                junk.end = index;
            }
        }
    }
    writer.words(words.get(junk).unwrap_or_default(), "    ", false);
    for label in writer.plan.labels(stream.iova(words.len()), words.is_empty(), true) {
        let _ = writeln!(writer.out, "  {label}:");
    }
}

/// Where the shaders begin that a stream sets, by stage: `SP_VS`.
fn shaders<'d>(gpu: Gpu<'d>, words: &[u32]) -> BTreeMap<&'d str, u64> {
    let (mut found, mut index) = (BTreeMap::new(), 0);
    while let Some(header) =
        words.get(index).and_then(|&raw| AdrenoPacketHeader::decode(raw, gpu.generation()))
    {
        if let AdrenoPacketHeader::Registers { reg, count } = header {
            for at in 0..count.min(0x80) {
                let name =
                    gpu.reg(reg.saturating_add(at)).filter(|reg| reg.dword() == 0).map(|reg| reg.name());
                let payload = Dwords::new(words, words.len()).skip(index + 1 + at as usize);
                if let Some((stage, rest)) = name.and_then(|name| name.split_once("_OBJ_START"))
                    && rest != "_HI"
                    && let Some(iova) = payload.get64(0)
                {
                    found.insert(stage, iova);
                }
            }
        }
        index += 1 + header.count() as usize;
    }
    found
}

struct StreamWriter<'s, 'd> {
    ops: [AdrenoOp; 256],
    /// See [`shaders`].
    shaders: BTreeMap<&'d str, u64>,
    gpu: Gpu<'d>,
    start: u64,
    words: &'s [u32],
}

impl StreamWriter<'_, '_> {
    fn iova(&self, index: usize) -> u64 {
        self.start.saturating_add(index as u64 * 4)
    }

    fn packet(&mut self, writer: &mut TextWriter<'_>, index: usize, header: AdrenoPacketHeader) {
        let count = header.count() as usize;
        let payload = self.words.get(index + 1..index + 1 + count).unwrap_or_default();
        match header {
            AdrenoPacketHeader::Padding => {
                let _ = writeln!(writer.out, "    {PADDING}");
            }
            AdrenoPacketHeader::Registers { reg, .. } => self.registers(writer, reg, payload),
            AdrenoPacketHeader::Operation { opcode, .. } => self.operation(writer, index, opcode, payload),
        }
    }

    fn registers(&self, writer: &mut TextWriter<'_>, first: u32, payload: &[u32]) {
        let word = PacketWords::of(self.gpu).registers;
        if payload.is_empty() {
            let _ = writeln!(writer.out, "    {word} {first:#x} {{}}");
            return;
        }
        let alone = writer.options.no_reg_bunch;
        if !alone {
            let _ = writeln!(writer.out, "    {word} {{");
        }
        let mut index = 0;
        while let Some(&low) = payload.get(index) {
            let (text, taken) =
                self.register(writer, first + index as u32, low, payload.get(index + 1).copied());
            let _ = match alone {
                true => writeln!(writer.out, "    {word} {{ {text} }}"),
                false => writeln!(writer.out, "        {text}"),
            };
            index += taken;
        }
        if !alone {
            writer.out.push_str("    }\n");
        }
    }

    /// `NAME = value`, and how many dwords that is.
    fn register(&self, writer: &TextWriter<'_>, reg: u32, low: u32, next: Option<u32>) -> (String, usize) {
        let Some(found) = register_named(self.gpu, reg) else {
            return (format!("{reg:#x} = {low:#x}"), 1);
        };
        let mut text = format!("{} = ", found.name());
        let mut selected = Variants::new();
        match (found.width(), found.dword(), next) {
            (64, 0, Some(high)) => {
                let raw = u64::from(low) | u64::from(high) << 32;
                let symbol = address(writer, found.ty(), raw);
                value::format(found.ty(), raw, &mut selected, symbol.as_ref(), &mut text);
                (text, 2)
            }
            (64, ..) => (format!("{reg:#x} = {low:#x}"), 1),
            (_, _, next) => {
                let symbol = self.register_symbol(writer, reg, found, low, next);
                value::format(found.ty(), low.into(), &mut selected, symbol.as_ref(), &mut text);
                (text, 1)
            }
        }
    }

    fn register_symbol(
        &self,
        writer: &TextWriter<'_>,
        offset: u32,
        reg: Reg<'_>,
        value: u32,
        next: Option<u32>,
    ) -> Option<Symbol> {
        let name = reg.name();
        if let Some((stage, "")) = name.split_once("_INSTRLEN") {
            let text = writer.plan.shader_units(*self.shaders.get(stage)?, value.into())?;
            return Some(Symbol { bit: 0, text });
        }
        let stem = name.strip_suffix("_LO")?;
        let high = self.gpu.reg(offset + 1)?.name();
        let reference =
            (high.strip_suffix("_HI") == Some(stem)).then(|| writer.plan.reference(pair(value, next?)))??;
        Some(Symbol { bit: 31, text: format!("lo({reference})") })
    }

    fn operation(&mut self, writer: &mut TextWriter<'_>, index: usize, opcode: u8, payload: &[u32]) {
        let op = self.ops.get(usize::from(opcode)).copied().unwrap_or_default();
        let word = PacketWords::of(self.gpu);
        if writer.options.no_reg_bunch && op == AdrenoOp::ContextRegBunch && payload.len().is_multiple_of(2) {
            let pairs = payload.as_chunks::<2>().0;
            for index in 0..pairs.len() {
                let text = self.pair(writer, pairs, index);
                let _ = writeln!(writer.out, "    {} {{ {text} }}", word.registers);
            }
            return;
        }
        let name = packet_named(self.gpu, opcode);
        let domain = name.and_then(|name| layout(self.gpu, name));
        let _ = write!(writer.out, "    {} ", word.operation);
        let _ = match name {
            Some(name) => write!(writer.out, "{name} {{"),
            None => write!(writer.out, "{opcode:#x} {{"),
        };
        if payload.is_empty() {
            writer.out.push_str("}\n");
            return;
        }
        writer.out.push('\n');
        let from = pairs_from(op).unwrap_or(payload.len()).min(payload.len());
        let (operands, pairs) = payload.split_at(from);
        self.operands(writer, index, op, domain, operands);
        let (whole, rest) = pairs.as_chunks::<2>();
        for index in 0..whole.len() {
            let text = self.pair(writer, whole, index);
            let _ = writeln!(writer.out, "        {text}");
        }
        writer.words(rest, "        ", false);
        writer.out.push_str("    }\n");
    }

    /// A register and its value; of an address another pair may have the other half.
    fn pair(&self, writer: &TextWriter<'_>, pairs: &[[u32; 2]], index: usize) -> String {
        let at = |index: Option<usize>| index.and_then(|index| pairs.get(index)).copied();
        let [reg, value] = at(Some(index)).unwrap_or_default();
        let Some(found) = register_named(self.gpu, reg) else { return format!("{reg:#x} = {value:#x}") };
        let mut text = format!("{} = ", found.name());
        if found.width() != 64 {
            let symbol = self.register_symbol(writer, reg, found, value, None);
            value::format(found.ty(), value.into(), &mut Variants::new(), symbol.as_ref(), &mut text);
            return text;
        }
        let (half, address) = if found.dword() == 0 {
            let upper = at(index.checked_add(1)).filter(|&[upper, _]| upper == reg.wrapping_add(1));
            ("lo", upper.map(|[_, high]| pair(value, high)))
        } else {
            let lower = at(index.checked_sub(1)).filter(|&[lower, _]| lower.wrapping_add(1) == reg);
            ("hi", lower.map(|[_, low]| pair(low, value)))
        };
        let _ = match address.and_then(|address| writer.plan.reference(address)) {
            Some(reference) => write!(text, "{half}({reference})"),
            None => write!(text, "{value:#x}"),
        };
        text
    }

    fn operands(
        &self,
        writer: &mut TextWriter<'_>,
        packet: usize,
        op: AdrenoOp,
        domain: Option<Domain<'_>>,
        payload: &[u32],
    ) {
        let symbols = self.symbols(writer, packet, op, payload);
        let mut selected = Variants::new();
        let (mut index, mut raw) = (0, 0..0);
        while let Some(&low) = payload.get(index) {
            let next = payload.get(index + 1).copied();
            let operand = domain.and_then(|domain| {
                operands(domain, index, &selected).find(|reg| reg.width() == 32 || next.is_some())
            });
            let Some(operand) = operand else {
                index += 1;
                raw.end = index;
                continue;
            };
            writer.words(payload.get(raw.clone()).unwrap_or_default(), "        ", true);
            let mut text = String::from("        ");
            let is_whole = operand.width() == 64;
            let value = if is_whole { pair(low, next.unwrap_or(0)) } else { low.into() };
            let symbol = match is_whole {
                true => address(writer, operand.ty(), value),
                false => symbols.get(&index).cloned().or_else(|| {
                    let before = index.checked_sub(1).and_then(|at| payload.get(at)).copied();
                    address_half(writer, operand, before, low, next)
                }),
            };
            if !is_position(operand.name()) {
                let _ = write!(text, "{} = ", operand.name());
            }
            value::format(operand.ty(), value, &mut selected, symbol.as_ref(), &mut text);
            let _ = writeln!(writer.out, "{text}");
            index += if is_whole { 2 } else { 1 };
            raw = index..index;
        }
        writer.words(payload.get(raw).unwrap_or_default(), "        ", true);
    }

    /// What the operands of an operation depend on.
    fn symbols(
        &self,
        writer: &TextWriter<'_>,
        packet: usize,
        op: AdrenoOp,
        payload: &[u32],
    ) -> BTreeMap<usize, Symbol> {
        let (plan, generation) = (writer.plan, self.gpu.generation());
        let wide = generation.is_64bit();
        let mut symbols = BTreeMap::new();
        let mut set = |index: usize, bit: u32, text: Option<String>| {
            if let Some(text) = text {
                symbols.insert(index, Symbol { bit, text });
            }
        };
        for stream in rewrite::streams(op, payload, generation) {
            set(stream.size_at, 0, plan.stream_size(stream.iova, stream.dwords));
            if !wide {
                set(stream.address_at, 31, plan.reference(stream.iova));
            }
        }
        if let Some((at, dwords)) = rewrite::condition(op, payload, generation) {
            let end = (packet + 1 + payload.len()).saturating_add(dwords as usize);
            if end <= self.words.len() {
                set(at, 0, plan.until(self.iova(end)));
            }
        }
        let loads_state = matches!(
            op,
            AdrenoOp::LoadState4 | AdrenoOp::LoadState6 | AdrenoOp::LoadState6Geom | AdrenoOp::LoadState6Frag
        );
        if loads_state && wide {
            let load = LoadStateHeader::parse(Dwords::from(payload), generation);
            if load.ty == StateType::Shader && load.source == StateSource::Indirect {
                set(0, 22, plan.shader_units(load.place & !3, load.units.into()));
            }
        }
        symbols
    }
}

/// The address in a value of 64 bits: all of it, or the field that has most of it.
fn address(writer: &TextWriter<'_>, ty: Option<ValueType<'_>>, value: u64) -> Option<Symbol> {
    const UPPER: u32 = 32;
    let covers = |ty: &ValueType<'_>| (ty.low()..=ty.high()).contains(&UPPER);
    match ty.filter(|ty| ty.is_bitset()) {
        Some(ty) => {
            let field = ty.fields().map(|(_, field)| field).find(covers)?;
            let text = writer.plan.reference(field.extract(value))?;
            Some(Symbol { bit: UPPER, text })
        }
        None => {
            let text = writer.pointer(value as u32, (value >> 32) as u32)?;
            Some(Symbol { bit: ty.map_or(0, ValueType::low), text })
        }
    }
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Half of an address that two operands hold.
fn address_half(
    writer: &TextWriter<'_>,
    operand: Reg<'_>,
    before: Option<u32>,
    value: u32,
    next: Option<u32>,
) -> Option<Symbol> {
    let ty = operand.ty()?;
    let named = |bit: u32| {
        let covers = |ty: ValueType<'_>| (ty.low()..=ty.high()).contains(&bit);
        let field = ty.fields().find(|(_, ty)| covers(*ty)).map(|(name, _)| name.to_owned());
        format!("{} {}", operand.name(), field.unwrap_or_default())
    };
    let high_name = named(0);
    if high_name.contains("HI")
        && let Some(before) = before
        && let Some(reference) = writer.plan.reference(pair(before, value))
    {
        return Some(Symbol { bit: 0, text: format!("hi({reference})") });
    }
    let low_name = named(31);
    if LOW_NAMES.iter().any(|name| low_name.contains(name)) && !low_name.contains("HI") {
        let reference = writer.plan.reference(pair(value, next?))?;
        return Some(Symbol { bit: 31, text: format!("lo({reference})") });
    }
    None
}
