//! Reads packets: their headers and operands.

use super::cursor::{Cursor, Failure, expected};
use super::error::TextProblem;
use super::expr::Value;
use super::module::SourceLine;
use super::packet::{PADDING, PacketWords, is_position, layout, operands, pairs_from};
use super::value;
use unwedge_hw::{Gpu, Reg, RegSpace, Variants};
use unwedge_stream::adreno::AdrenoOp;
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// How a packet begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum PacketStart {
    /// Padding.
    Padding,
    /// Registers, from this one on if there are none.
    Registers(Option<u32>),
    /// An operation.
    Operation(u8, AdrenoOp),
}

impl PacketStart {
    /// Reads the beginning of a packet, if there is one.
    pub(super) fn read(
        gpu: Gpu<'_>,
        ops: &[AdrenoOp; 256],
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<PacketStart>, Failure> {
        let start = *cursor;
        let words = PacketWords::of(gpu);
        let mut after = *cursor;
        let word = after.take_name().unwrap_or_default();
        if word == words.registers {
            *cursor = after;
            let first = if cursor.peek() == Some('{') { None } else { Some(register(gpu, cursor)?.0) };
            return Ok(Some(PacketStart::Registers(first)));
        }
        if word == words.operation {
            let opcode = opcode(gpu, &mut after)?;
            *cursor = after;
            let op = ops.get(usize::from(opcode)).copied().unwrap_or_default();
            return Ok(Some(PacketStart::Operation(opcode, op)));
        }
        if word == PADDING && words.registers == "pkt0" {
            *cursor = after;
            return Ok(Some(PacketStart::Padding));
        }
        if ["pkt0", "pkt2", "pkt3", "pkt4", "pkt7"].contains(&word) {
            let of = format!("`{}` or `{}`, which this GPU has", words.registers, words.operation);
            return start.fail(expected(of));
        }
        Ok(None)
    }
}

fn opcode(gpu: Gpu<'_>, cursor: &mut Cursor<'_>) -> Result<u8, Failure> {
    let start = *cursor;
    if let Some(number) = cursor.take_number() {
        return match u8::try_from(number) {
            Ok(opcode) => Ok(opcode),
            Err(_) => start.fail(TextProblem::DoesNotFit(number, "an opcode".to_owned())),
        };
    }
    let name = cursor.take_name().unwrap_or_default();
    gpu.packet_opcode(name).map_or_else(
        || {
            let names = (0..=u8::MAX).filter_map(|opcode| gpu.packet_name(opcode));
            let of = format!("a packet of {}", gpu.generation());
            start.fail(TextProblem::unknown(of, name, names))
        },
        Ok,
    )
}

/// A register: offset, and what it is if it was named.
fn register<'d>(gpu: Gpu<'d>, cursor: &mut Cursor<'_>) -> Result<(u32, Option<Reg<'d>>), Failure> {
    let start = *cursor;
    if cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
        return Ok((cursor.number32()?, None));
    }
    let Some(name) = cursor.take_register() else { return start.fail(expected("a register, or `}`")) };
    match gpu.reg_offset(name) {
        Some(offset) => Ok((offset, gpu.reg(offset))),
        None => {
            let names = gpu.space(RegSpace::Gpu).iter().map(Reg::name);
            let of = format!("a register of {}", gpu.generation());
            start.fail(TextProblem::unknown(of, name, names))
        }
    }
}

/// A packet that is being read.
#[derive(Debug)]
pub(super) struct OpenPacket {
    start: PacketStart,
    header_at: usize,
    line: SourceLine,
    /// Payload dwords so far.
    next: usize,
    selected: Variants,
    /// The first register.
    first: Option<u32>,
}

/// What a line of a packet is.
pub(super) struct Operand {
    /// A dword before it.
    pub(super) before: Option<u32>,
    /// The value.
    pub(super) value: Value,
    /// Its dwords.
    pub(super) dwords: usize,
}

impl OpenPacket {
    /// A packet without operands yet, whose header is at this byte of its block.
    pub(super) fn new(start: PacketStart, header_at: usize, line: SourceLine) -> OpenPacket {
        let first = match start {
            PacketStart::Registers(first) => first,
            _ => None,
        };
        OpenPacket { start, header_at, line, next: 0, selected: Variants::new(), first }
    }

    /// It is only a header.
    pub(super) fn is_padding(&self) -> bool {
        matches!(self.start, PacketStart::Padding)
    }

    /// Byte of the header in its block.
    pub(super) fn header_at(&self) -> usize {
        self.header_at
    }

    /// Where it begins.
    pub(super) fn line(&self) -> &SourceLine {
        &self.line
    }

    /// Dwords without names.
    pub(super) fn skip(&mut self, dwords: usize) {
        self.next = self.next.saturating_add(dwords);
    }

    /// The header, for a payload of so many dwords.
    pub(super) fn header(&self, count: usize) -> Option<AdrenoPacketHeader> {
        let count = u32::try_from(count).ok()?;
        Some(match self.start {
            PacketStart::Padding => AdrenoPacketHeader::Padding,
            PacketStart::Registers(_) => {
                AdrenoPacketHeader::Registers { reg: self.first.unwrap_or(0), count }
            }
            PacketStart::Operation(opcode, _) => AdrenoPacketHeader::Operation { opcode, count },
        })
    }

    /// Reads a line.
    pub(super) fn operand(&mut self, gpu: Gpu<'_>, cursor: &mut Cursor<'_>) -> Result<Operand, Failure> {
        let operand = match self.start {
            PacketStart::Padding => return cursor.fail(expected("the end of the line")),
            PacketStart::Registers(_) => self.register(gpu, cursor)?,
            PacketStart::Operation(opcode, op) => match pairs_from(op) {
                Some(from) if self.next >= from => pair(gpu, cursor)?,
                _ => self.named(gpu, opcode, cursor)?,
            },
        };
        self.next = self.next.saturating_add(operand.dwords + usize::from(operand.before.is_some()));
        Ok(operand)
    }

    fn register(&mut self, gpu: Gpu<'_>, cursor: &mut Cursor<'_>) -> Result<Operand, Failure> {
        let start = *cursor;
        let (offset, reg) = register(gpu, cursor)?;
        let first = *self.first.get_or_insert(offset);
        let following = first.saturating_add(u32::try_from(self.next).unwrap_or(u32::MAX));
        if following != offset {
            let name = |offset: u32| {
                gpu.reg(offset).map_or_else(|| format!("{offset:#x}"), |reg| reg.name().to_owned())
            };
            return start
                .fail(TextProblem::NotConsecutive { expected: name(following), found: name(offset) });
        }
        cursor.expect("=")?;
        let dwords = if reg.is_some_and(|reg| reg.width() == 64 && reg.dword() == 0) { 2 } else { 1 };
        let ty = reg.filter(|reg| reg.width() == 32 || dwords == 2).and_then(Reg::ty);
        Ok(Operand { before: None, value: value::parse(ty, cursor, &mut Variants::new())?, dwords })
    }

    fn named(&mut self, gpu: Gpu<'_>, opcode: u8, cursor: &mut Cursor<'_>) -> Result<Operand, Failure> {
        let packet = gpu.packet_name(opcode);
        let domain = packet.and_then(|name| layout(gpu, name));
        let candidates = || domain.into_iter().flat_map(|domain| operands(domain, self.next, &self.selected));
        let start = *cursor;
        let mut after = *cursor;
        let name = after.take_register().filter(|_| after.take("="));
        let operand = match name {
            None => candidates().find(|operand| is_position(operand.name())),
            Some(name) => {
                let found = candidates().find(|operand| operand.name() == name);
                if found.is_none() {
                    return start.fail(self.other_operand(packet, name, candidates().next().map(Reg::name)));
                }
                *cursor = after;
                found
            }
        };
        let dwords = if operand.is_some_and(|operand| operand.width() == 64) { 2 } else { 1 };
        let value = value::parse(operand.and_then(Reg::ty), cursor, &mut self.selected)?;
        Ok(Operand { before: None, value, dwords })
    }

    fn other_operand(&self, packet: Option<&str>, name: &str, expected: Option<&str>) -> TextProblem {
        match (packet, expected) {
            (Some(packet), Some(expected)) => TextProblem::OtherOperand {
                index: self.next,
                packet: packet.to_owned(),
                expected: if is_position(expected) {
                    "a value without a name".to_owned()
                } else {
                    expected.to_owned()
                },
                found: name.to_owned(),
            },
            _ => TextProblem::Expected("`dword`: the database has no operand at this position".to_owned()),
        }
    }
}

/// A register and its value.
fn pair(gpu: Gpu<'_>, cursor: &mut Cursor<'_>) -> Result<Operand, Failure> {
    let (offset, reg) = register(gpu, cursor)?;
    cursor.expect("=")?;
    let ty = reg.filter(|reg| reg.width() == 32).and_then(Reg::ty);
    let value = value::parse(ty, cursor, &mut Variants::new())?;
    Ok(Operand { before: Some(offset), value, dwords: 1 })
}
