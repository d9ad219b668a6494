//! Reads the text of a submit, line by line.
//!
//! Every error is reported; a line that cannot be read is left out. Never: more memory than the text says and the caller allows.

use super::MAGIC;
use super::cursor::{Cursor, Failure, expected};
use super::error::{TextError, TextProblem};
use super::expr::Value;
use super::module::{
    Block, Contents, Fixup, Label, LabelTarget, Module, ModuleBuffer, ModuleSection, OpenValue, Row, RowRole,
    SourceLine,
};
use super::parts::TextGpu;
use super::read_packet::{OpenPacket, PacketStart};
use super::value;
use unwedge_base::Span;
use unwedge_capture::rd::{RdSection, RdSectionKind};
use unwedge_hw::{Db, Variants};
use unwedge_isa::SourcePosition;
use unwedge_isa::ir3::asm::Assembler;
use unwedge_stream::adreno::{AdrenoOp, operations};

/// Errors of a text, after which the rest is not read.
const MOST_ERRORS: usize = 100;
/// Bytes of a line that are kept for what can fail later.
const KEPT: usize = 240;

/// Where the text is.
#[derive(Debug, Default)]
enum Scope {
    /// Between sections.
    #[default]
    Top,
    /// In a section that is not a buffer.
    Section(RdSectionKind, Vec<u8>),
    /// In a block, which may be in a buffer.
    Block(BlockKind),
    /// In a shader.
    Shader {
        /// Its lines, up to here.
        text: String,
        /// The first one's number.
        first: usize,
    },
    /// In a packet of a stream.
    Packet(OpenPacket),
}

/// What is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Stream,
    Shader,
    Data,
}

/// Reads a text.
pub(super) struct TextReader<'d> {
    db: &'d Db,
    gpu: Option<TextGpu<'d>>,
    ops: [AdrenoOp; 256],
    assembler: Option<Assembler>,
    module: Module,
    errors: Vec<TextError>,
    scope: Scope,
    /// The buffer that is open.
    buffer: Option<ModuleBuffer>,
    /// Bytes that may still be made.
    left: u64,
    limit: u64,
    line: usize,
    source: &'d str,
}

impl<'d> TextReader<'d> {
    /// Reads `text`, which may make no more than `limit` bytes.
    pub(super) fn read(text: &'d str, db: &'d Db, limit: u64) -> (Module, Vec<TextError>) {
        let mut reader = TextReader {
            db,
            gpu: None,
            ops: [AdrenoOp::Other; 256],
            assembler: None,
            module: Module { wide: true, ..Module::default() },
            errors: Vec::new(),
            scope: Scope::Top,
            buffer: None,
            left: limit,
            limit,
            line: 0,
            source: "",
        };
        let mut begun = false;
        for (index, line) in text.lines().enumerate() {
            (reader.line, reader.source) = (index + 1, line);
            if let Scope::Shader { text, .. } = &mut reader.scope
                && !is_end(line)
            {
                text.push_str(line);
                text.push('\n');
                continue;
            }
            let cursor = Cursor::new(line);
            if cursor.is_end() {
                continue;
            }
            if !std::mem::replace(&mut begun, true) {
                if line.trim() != MAGIC {
                    reader.fail((0, TextProblem::NotThatText(MAGIC)));
                    break;
                }
                continue;
            }
            if let Err(failure) = reader.statement(cursor) {
                reader.fail(failure);
            }
            if reader.errors.len() >= MOST_ERRORS {
                reader.fail((0, TextProblem::TooMany));
                break;
            }
        }
        reader.finish(begun)
    }

    fn finish(mut self, begun: bool) -> (Module, Vec<TextError>) {
        if self.errors.is_empty() {
            if !begun {
                self.fail((0, TextProblem::NotThatText(MAGIC)));
            } else if !matches!(self.scope, Scope::Top) || self.buffer.is_some() {
                self.fail((self.source.len(), expected("`}`")));
            } else if !self.module.sections.iter().any(ModuleSection::is_submit) {
                self.fail((self.source.len(), expected("a line `submit &label size(label)`")));
            }
        }
        (self.module, self.errors)
    }

    fn fail(&mut self, (byte, problem): Failure) {
        self.errors.push(TextError::new(self.line, byte, self.source, problem));
    }

    /// The line, where it can still fail when addresses are known.
    fn source_line(&self) -> SourceLine {
        SourceLine { number: self.line, text: self.source.chars().take(KEPT).collect() }
    }

    /// Room for so many bytes more.
    fn spend(&mut self, bytes: u64, byte: usize) -> Result<(), Failure> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err((byte, TextProblem::TooLarge(self.limit))),
        }
    }

    fn statement(&mut self, mut cursor: Cursor<'d>) -> Result<(), Failure> {
        match std::mem::take(&mut self.scope) {
            Scope::Top => self.top(cursor),
            Scope::Section(kind, mut bytes) => {
                if cursor.take("}") {
                    self.close_section(kind, bytes);
                    return cursor.end();
                }
                let row = self.data_row(&mut cursor, None);
                let (data, fixups) = match row {
                    Ok(row) => row,
                    Err(failure) => {
                        self.scope = Scope::Section(kind, bytes);
                        return Err(failure);
                    }
                };
                bytes.extend(data);
                self.scope = Scope::Section(kind, bytes);
                match fixups.first() {
                    Some(fixup) => Err((fixup.bits.byte, expected("numbers: labels are for buffers"))),
                    None => cursor.end(),
                }
            }
            Scope::Shader { text, first } => self.close_shader(&text, first),
            Scope::Block(kind) => {
                if cursor.take("}") {
                    return cursor.end();
                }
                self.scope = Scope::Block(kind);
                self.block_line(kind, cursor)
            }
            Scope::Packet(packet) => self.packet_line(packet, cursor),
        }
    }

    fn top(&mut self, mut cursor: Cursor<'d>) -> Result<(), Failure> {
        if self.buffer.is_some() && cursor.take("}") {
            self.close_buffer();
            return cursor.end();
        }
        let start = cursor;
        let inside = self.buffer.is_some();
        match cursor.take_name() {
            Some("stream") => self.open_block(BlockKind::Stream, cursor),
            Some("shader") => self.open_block(BlockKind::Shader, cursor),
            Some("data") => self.open_block(BlockKind::Data, cursor),
            Some("buffer") if !inside => self.open_buffer(cursor),
            Some("section") if !inside => self.open_section(cursor),
            Some("submit") if !inside => self.submit(cursor),
            Some("room") if !inside => {
                let from = cursor.number()?;
                self.word(&mut cursor, "size")?;
                let size = cursor.number()?;
                self.module.room = Some(from..from.saturating_add(size));
                cursor.end()
            }
            _ if inside => {
                start.fail(expected("`stream`, `shader`, `data`, or `}` for the end of the buffer"))
            }
            _ => start.fail(expected("`section`, `buffer`, `submit`, `stream`, `shader`, `data` or `room`")),
        }
    }

    fn word(&self, cursor: &mut Cursor<'_>, word: &str) -> Result<(), Failure> {
        if cursor.take_word(word) { Ok(()) } else { cursor.fail(expected(format!("`{word}`"))) }
    }

    fn open_section(&mut self, mut cursor: Cursor<'d>) -> Result<(), Failure> {
        let start = cursor;
        let kind = match cursor.take_number() {
            Some(number) => {
                let number =
                    u32::try_from(number).or_else(|_| start.fail(expected("a number of 32 bits")))?;
                RdSectionKind::from_number(number)
            }
            None => {
                let name = cursor.take_name().unwrap_or_default();
                let named = RdSectionKind::NAMED.into_iter().find(|kind| kind.name() == name);
                match named {
                    Some(kind) => kind,
                    None => {
                        let names = RdSectionKind::NAMED.iter().map(|kind| kind.name());
                        return start.fail(TextProblem::unknown("a kind of section", name, names));
                    }
                }
            }
        };
        cursor.expect("{")?;
        self.scope = Scope::Section(kind, Vec::new());
        cursor.end()
    }

    fn close_section(&mut self, kind: RdSectionKind, bytes: Vec<u8>) {
        let claimed = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let section = RdSection { kind, span: Span::new(0, 0), claimed, payload: &bytes, zeros: 0 };
        let before = self.gpu.map(|gpu| gpu.db.generation());
        TextGpu::update(&mut self.gpu, self.db, &section);
        if let Some(gpu) = self.gpu.filter(|gpu| before != Some(gpu.db.generation())) {
            self.ops = operations(gpu.db);
            self.module.wide = gpu.db.generation().is_64bit();
            self.assembler = None;
        }
        self.module.sections.push(ModuleSection::Other(kind, bytes));
    }

    fn open_buffer(&mut self, mut cursor: Cursor<'d>) -> Result<(), Failure> {
        let start = cursor;
        let name = cursor.label()?;
        self.word(&mut cursor, "at")?;
        let iova = cursor.number()?;
        self.word(&mut cursor, "size")?;
        let size = cursor.number32()?;
        let wide = !cursor.take_word("narrow");
        let mut contents = Contents::Bytes(size.into());
        if cursor.take_word("absent") {
            contents = Contents::Absent;
        } else if cursor.take_word("copy") {
            contents = Contents::Copy(cursor.number()?);
        } else if cursor.take_word("contents") {
            contents = Contents::Bytes(cursor.number()?);
        }
        let length = match contents {
            Contents::Absent => u64::from(size),
            Contents::Bytes(bytes) | Contents::Copy(bytes) => {
                self.spend(bytes, cursor.at())?;
                bytes
            }
        };
        self.define(name, LabelTarget::Buffer(iova, length), &start)?;
        let first = self.module.blocks.len();
        let buffer = ModuleBuffer { iova, size, wide, contents, blocks: first..first };
        if let Contents::Bytes(_) = contents {
            cursor.expect("{")?;
            self.buffer = Some(buffer);
        } else {
            self.module.sections.push(ModuleSection::Buffer(buffer));
        }
        cursor.end()
    }

    fn close_buffer(&mut self) {
        if let Some(mut buffer) = self.buffer.take() {
            buffer.blocks.end = self.module.blocks.len();
            self.module.sections.push(ModuleSection::Buffer(buffer));
        }
    }

    fn submit(&mut self, mut cursor: Cursor<'d>) -> Result<(), Failure> {
        let line = self.source_line();
        let value = |cursor: &mut Cursor<'d>| -> Result<OpenValue, Failure> {
            let Value { bits, terms } = value::parse(None, cursor, &mut Variants::new())?;
            Ok(OpenValue { bits, terms, line: line.clone() })
        };
        let address = value(&mut cursor)?;
        let size = value(&mut cursor)?;
        let wide = !cursor.take_word("narrow");
        self.module.sections.push(ModuleSection::Submit { address, size, wide });
        cursor.end()
    }

    fn define(&mut self, name: &str, target: LabelTarget, at: &Cursor<'_>) -> Result<(), Failure> {
        if let Some(label) = self.module.labels.get(name) {
            return at.fail(TextProblem::DuplicateLabel { name: name.to_owned(), line: label.line });
        }
        self.module.labels.insert(name.to_owned(), Label { target, line: self.line });
        Ok(())
    }

    fn open_block(&mut self, kind: BlockKind, mut cursor: Cursor<'d>) -> Result<(), Failure> {
        let start = cursor;
        let mut name = "";
        if !matches!(cursor.peek(), Some('{')) && !matches!({ cursor }.take_name(), Some("at")) {
            name = cursor.label()?;
        }
        let at = if cursor.take_word("at") { Some((cursor, cursor.number()?)) } else { None };
        cursor.expect("{")?;
        cursor.end()?;
        if let (Some((at, iova)), Some(buffer)) = (at, &self.buffer) {
            let Contents::Bytes(length) = buffer.contents else { return Ok(()) };
            let (start, end) = (buffer.iova, buffer.iova.saturating_add(length));
            if !(start..end).contains(&iova) {
                return at.fail(TextProblem::OutsideOfBuffer { iova, start, end });
            }
        } else if let Some((at, _)) = at {
            return at.fail(expected("`{`: a block outside of buffers has no address of its own"));
        }
        if kind != BlockKind::Data && self.gpu.is_none() {
            return start.fail(TextProblem::UnknownGpu);
        }
        let block = Block {
            name: name.to_owned(),
            at: at.map(|(_, iova)| iova),
            line: self.source_line(),
            ..Block::default()
        };
        let index = self.module.blocks.len();
        self.module.blocks.push(block);
        if !name.is_empty() {
            self.define(name, LabelTarget::Block(index, 0), &start)?;
        }
        self.scope = match kind {
            BlockKind::Shader => Scope::Shader { text: String::new(), first: self.line + 1 },
            kind => Scope::Block(kind),
        };
        Ok(())
    }

    fn close_shader(&mut self, text: &str, first: usize) -> Result<(), Failure> {
        let Some(gpu) = self.gpu else { return Ok(()) };
        let assembler = self.assembler.get_or_insert_with(|| Assembler::new(gpu.shader));
        let (program, errors) = assembler.assemble("", text);
        let errors = errors.into_iter().map(|error| TextError {
            at: SourcePosition { line: first + error.at.line - 1, ..error.at },
            problem: TextProblem::Assembly(error.problem.to_string()),
        });
        self.errors.extend(errors.take(MOST_ERRORS));
        let lines: Vec<&str> = text.lines().collect();
        if let Some(at) = lines.iter().position(|line| line.trim_start().starts_with('@')) {
            let problem = TextProblem::Assembly("a shader of a submit has no directives".to_owned());
            self.errors.push(TextError::new(first + at, 0, lines.get(at).unwrap_or(&""), problem));
        }
        self.spend(program.words.len() as u64 * 8, 0)?;
        let Some(block) = self.module.blocks.last_mut() else { return Ok(()) };
        for (word, line) in program.words.iter().zip(&program.lines) {
            block.bytes.extend(word.to_le_bytes());
            let text = lines.get((*line as usize).saturating_sub(1)).unwrap_or(&"").trim().to_owned();
            block.rows.push(Row { end: block.bytes.len(), role: RowRole::Words, text });
        }
        Ok(())
    }

    /// A line of a stream or of data.
    fn block_line(&mut self, kind: BlockKind, mut cursor: Cursor<'d>) -> Result<(), Failure> {
        let mut after = cursor;
        if let Some(label) = after.take_name().filter(|_| after.take(":")) {
            let mut at = cursor;
            at.label()?;
            let index = self.module.blocks.len().saturating_sub(1);
            let offset = self.module.blocks.last().map_or(0, |block| block.bytes.len());
            self.define(label, LabelTarget::Block(index, offset), &cursor)?;
            return after.end();
        }
        if kind == BlockKind::Stream
            && let Some(gpu) = self.gpu
            && let Some(start) = PacketStart::read(gpu.db, &self.ops, &mut cursor)?
        {
            return self.open_packet(start, cursor);
        }
        let (data, fixups) = self.data_row(&mut cursor, Some(kind))?;
        cursor.end()?;
        self.push(&data, fixups, RowRole::Words);
        Ok(())
    }

    /// `dword`, `quad`, `zeros`, `fill`, `bytes`, `string`.
    fn data_row(
        &mut self,
        cursor: &mut Cursor<'d>,
        kind: Option<BlockKind>,
    ) -> Result<(Vec<u8>, Vec<Fixup>), Failure> {
        let start = *cursor;
        let (mut bytes, mut fixups) = (Vec::new(), Vec::new());
        match cursor.take_name() {
            Some("dword") => {
                while !cursor.is_end() {
                    self.number(cursor, 4, &mut bytes, &mut fixups)?;
                }
            }
            Some("quad") => {
                while !cursor.is_end() {
                    self.number(cursor, 8, &mut bytes, &mut fixups)?;
                }
            }
            Some("zeros") => self.repeat(cursor, false, &mut bytes)?,
            Some("fill") => self.repeat(cursor, true, &mut bytes)?,
            Some("bytes") if kind != Some(BlockKind::Stream) => {
                let digits = cursor.take_name().unwrap_or_default().as_bytes();
                let (pairs, rest) = digits.as_chunks::<2>();
                let digit = |digit: u8| char::from(digit).to_digit(16);
                for [high, low] in pairs {
                    let Some((high, low)) = digit(*high).zip(digit(*low)) else {
                        return cursor.fail(expected("hexadecimal digits, two for each byte"));
                    };
                    bytes.push((high << 4 | low) as u8);
                }
                if digits.is_empty() || !rest.is_empty() {
                    return cursor.fail(expected("hexadecimal digits, two for each byte"));
                }
            }
            Some("string") if kind != Some(BlockKind::Stream) => bytes = cursor.string()?,
            name if kind == Some(BlockKind::Stream) => {
                return start.fail(self.no_packet(name.unwrap_or_default()));
            }
            _ => return start.fail(expected("`dword`, `quad`, `zeros`, `fill`, `bytes`, `string`, or `}`")),
        }
        // What `zeros` and `fill` make is counted where they are read.
        self.spend(bytes.len() as u64, start.at())?;
        Ok((bytes, fixups))
    }

    fn no_packet(&self, name: &str) -> TextProblem {
        match self.gpu.and_then(|gpu| gpu.db.reg_offset(name)) {
            Some(_) => expected(format!("a packet around it: `pkt4 {{ {name} = … }}`")),
            None => expected("a packet, `dword`, `quad`, `zeros`, `fill`, a label, or `}`"),
        }
    }

    fn number(
        &self,
        cursor: &mut Cursor<'d>,
        width: usize,
        bytes: &mut Vec<u8>,
        fixups: &mut Vec<Fixup>,
    ) -> Result<(), Failure> {
        let start = *cursor;
        let value = value::parse(None, cursor, &mut Variants::new())?;
        let (bits, open) = self.open(value, width, bytes.len(), &start)?;
        bytes.extend(bits.to_le_bytes().into_iter().take(width));
        fixups.extend(open);
        Ok(())
    }

    /// The bits of a value, and what is open of it.
    fn open(
        &self,
        value: Value,
        width: usize,
        offset: usize,
        at: &Cursor<'_>,
    ) -> Result<(u64, Vec<Fixup>), Failure> {
        if width == 4 && value.bits > u32::MAX.into() {
            return at.fail(TextProblem::DoesNotFit(value.bits, "a dword".to_owned()));
        }
        let open = value.terms.into_iter().map(|mut bits| {
            bits.width = bits.width.min(width as u32 * 8);
            Fixup { offset, width, bits, packet_end: 0, line: self.source_line() }
        });
        Ok((value.bits, open.collect()))
    }

    fn repeat(&mut self, cursor: &mut Cursor<'d>, valued: bool, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        let start = *cursor;
        let count = cursor.number()?;
        let word = if valued { cursor.number32()? } else { 0 };
        // Checked before anything is made.
        if count.saturating_mul(4) > self.left {
            return start.fail(TextProblem::TooLarge(self.limit));
        }
        bytes.resize(count as usize * 4, 0);
        if word != 0 {
            bytes.as_chunks_mut().0.iter_mut().for_each(|bytes| *bytes = word.to_le_bytes());
        }
        Ok(())
    }

    fn push(&mut self, bytes: &[u8], fixups: Vec<Fixup>, role: RowRole) {
        let text = self.source.trim().chars().take(KEPT).collect();
        let Some(block) = self.module.blocks.last_mut() else { return };
        let base = block.bytes.len();
        block.bytes.extend_from_slice(bytes);
        block.fixups.extend(fixups.into_iter().map(|fixup| Fixup { offset: base + fixup.offset, ..fixup }));
        block.rows.push(Row { end: block.bytes.len(), role, text });
    }

    fn open_packet(&mut self, start: PacketStart, mut cursor: Cursor<'d>) -> Result<(), Failure> {
        self.spend(4, 0)?;
        let line = self.source_line();
        let block = self.module.blocks.last().map_or(0, |block| block.bytes.len());
        // The header is known at the end.
        self.push(&[0; 4], Vec::new(), RowRole::Header);
        let mut packet = OpenPacket::new(start, block, line);
        if packet.is_padding() {
            cursor.end()?;
            return self.close_packet(packet);
        }
        cursor.expect("{")?;
        let mut closed = cursor.take("}");
        if !closed && !cursor.is_end() {
            let result = self.operand(&mut packet, &mut cursor);
            if result.is_err() {
                // Its other lines are read, too, unless it has none.
                self.scope = if self.source.contains('}') {
                    Scope::Block(BlockKind::Stream)
                } else {
                    Scope::Packet(packet)
                };
                return result;
            }
            cursor.expect("}")?;
            closed = true;
        }
        cursor.end()?;
        if closed {
            return self.close_packet(packet);
        }
        self.scope = Scope::Packet(packet);
        Ok(())
    }

    fn packet_line(&mut self, mut packet: OpenPacket, mut cursor: Cursor<'d>) -> Result<(), Failure> {
        if cursor.take("}") {
            self.scope = Scope::Block(BlockKind::Stream);
            self.close_packet(packet)?;
            return cursor.end();
        }
        let result = self.operand(&mut packet, &mut cursor).and_then(|()| cursor.end());
        self.scope = Scope::Packet(packet);
        result
    }

    /// A line of a packet.
    fn operand(&mut self, packet: &mut OpenPacket, cursor: &mut Cursor<'d>) -> Result<(), Failure> {
        let Some(gpu) = self.gpu else { return Ok(()) };
        let start = *cursor;
        let mut word = *cursor;
        let data =
            matches!(word.take_name(), Some("dword" | "quad" | "zeros" | "fill")) && word.peek() != Some('=');
        let (bytes, fixups) = if data {
            let (bytes, fixups) = self.data_row(cursor, Some(BlockKind::Stream))?;
            packet.skip(bytes.len() / 4);
            (bytes, fixups)
        } else {
            let operand = packet.operand(gpu.db, cursor)?;
            let (mut bytes, mut fixups) = (Vec::new(), Vec::new());
            bytes.extend(operand.before.into_iter().flat_map(u32::to_le_bytes));
            let width = operand.dwords * 4;
            let (bits, open) = self.open(operand.value, width, bytes.len(), &start)?;
            bytes.extend(bits.to_le_bytes().into_iter().take(width));
            fixups.extend(open);
            self.spend(bytes.len() as u64, 0)?;
            (bytes, fixups)
        };
        self.push(&bytes, fixups, RowRole::Words);
        Ok(())
    }

    fn close_packet(&mut self, packet: OpenPacket) -> Result<(), Failure> {
        self.scope = Scope::Block(BlockKind::Stream);
        let Some(gpu) = self.gpu else { return Ok(()) };
        let Some(block) = self.module.blocks.last_mut() else { return Ok(()) };
        let end = block.bytes.len();
        let count = (end - packet.header_at()) / 4 - 1;
        for fixup in block.fixups.iter_mut().rev().take_while(|fixup| fixup.offset > packet.header_at()) {
            fixup.packet_end = end;
        }
        let header = packet.header(count).and_then(|header| header.encode(gpu.db.generation()));
        let Some(header) = header else {
            self.errors.push(packet.line().error(0, TextProblem::NoSuchPacket(count)));
            return Ok(());
        };
        if let Some(bytes) = block.bytes.get_mut(packet.header_at()..packet.header_at() + 4) {
            bytes.copy_from_slice(&header.to_le_bytes());
        }
        Ok(())
    }
}

/// The line is `}`.
fn is_end(line: &str) -> bool {
    let mut cursor = Cursor::new(line);
    cursor.take("}") && cursor.is_end()
}
