//! Text to words.
//!
//! Lines are those of a listing; the address and the words in front of the text are optional and count for nothing.
//! An EXEC without ADDR or CNT takes its instructions from the lines after it and puts them behind those before.

use super::table::{AttrArg, AttrCondition, InstrAttr, WordField, WordForm, alu, cf, fetch};
use std::collections::HashMap;
use thiserror::Error;
use unwedge_base::plural::counted;

/// Complaints about one file, after which the rest is not read.
const MOST_COMPLAINTS: usize = 1000;

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Complaint {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What was expected.
    pub message: String,
}

/// Assembles a shader.
///
/// # Errors
/// Everything that is wrong with the text, in the order of its lines; of very many mistakes the first thousand.
pub fn assemble(text: &str) -> Result<Vec<u32>, Vec<Complaint>> {
    let mut program = Ir2Program::default();
    for (index, line) in text.lines().enumerate() {
        let mut cursor = LineCursor { line, at: 0, number: index + 1 };
        if let Err(complaint) = program.line(&mut cursor) {
            program.complaints.push(complaint);
        }
        if program.complaints.len() >= MOST_COMPLAINTS {
            let message = "too many errors, the rest of the file was not read".to_owned();
            program.complaints.push(Complaint { line: index + 1, column: 1, message });
            return Err(program.complaints);
        }
    }
    program.finish()
}

#[derive(Default)]
struct Ir2Program {
    flow: Vec<ControlFlowWord>,
    data: Vec<(usize, u32, usize)>,
    data_at: usize,
    /// The last instruction is arithmetic whose scalar half may follow.
    scalar_may_follow: bool,
    complaints: Vec<Complaint>,
}

/// A control-flow word and what follows it.
struct ControlFlowWord {
    line: usize,
    word: u128,
    /// The bits that the text gave.
    given: u128,
    runs: bool,
    instructions: Vec<Ir2Instr>,
}

struct Ir2Instr {
    line: usize,
    fetch: bool,
    wait: bool,
    /// `None`: absent.
    word: Option<u128>,
    /// Bits that the scalar half must agree with.
    given: u128,
}

impl Ir2Program {
    fn line(&mut self, c: &mut LineCursor<'_>) -> Result<(), Complaint> {
        c.skip_words();
        if c.end() {
            return Ok(());
        }
        let scalar_may_follow = std::mem::take(&mut self.scalar_may_follow);
        if c.eat(".at") {
            let at = c.number(super::REACH as u128)?;
            self.data_at = at as usize;
            return c.finish();
        }
        if c.eat(".word") {
            while !c.end() {
                let word = c.number(u128::from(u32::MAX))?;
                self.data.push((self.data_at, word as u32, c.number));
                self.data_at += 1;
                c.eat(",");
            }
            return Ok(());
        }
        let wait = c.eat("(S)");
        for (word, is_fetch) in [("FETCH:", true), ("ALU:", false)] {
            if c.eat(word) {
                let flow = match self.flow.last_mut() {
                    Some(flow) if flow.runs => flow,
                    _ => return Err(c.expected("an EXEC in front of the first instruction")),
                };
                let (word, given) = if c.eat("absent") {
                    (None, 0)
                } else if is_fetch {
                    (Some(fetch_word(c)?), 0)
                } else {
                    self.scalar_may_follow = true;
                    let (word, given) = vector_word(c)?;
                    (Some(word), given)
                };
                flow.instructions.push(Ir2Instr { line: c.number, fetch: is_fetch, wait, word, given });
                return c.finish();
            }
        }
        if wait {
            return Err(c.expected("FETCH: or ALU:"));
        }
        let start = c.at;
        let name = c.word();
        if let Some(opcode) = cf::OPCODES.iter().position(|(n, ..)| *n == name) {
            let (_, form, runs) = cf::OPCODES[opcode];
            let mut word = cf::OPCODE.set(form.rest(), opcode as u128);
            let given = attrs(c, form, &mut word)?;
            self.flow.push(ControlFlowWord { line: c.number, word, given, runs, instructions: Vec::new() });
            return c.finish();
        }
        if scalar_may_follow
            && let Some(Ir2Instr { word: Some(word), given, .. }) =
                self.flow.last_mut().and_then(|flow| flow.instructions.last_mut())
        {
            c.at = start;
            scalar_word(c, word, *given)?;
            return c.finish();
        }
        c.at = start;
        Err(c.expected("a control-flow instruction, FETCH:, ALU: or a directive"))
    }

    fn finish(mut self) -> Result<Vec<u32>, Vec<Complaint>> {
        let mut halves = ShaderHalves::default();
        let mut next = self.flow.len().div_ceil(2);
        let mut flow = std::mem::take(&mut self.flow);
        for (index, item) in flow.iter_mut().enumerate() {
            if item.runs {
                self.place(item, &mut next, &mut halves);
            }
            for part in 0..3 {
                let half = (item.word >> (16 * part)) as u16;
                self.put(&mut halves, 3 * index + part, half, item.line);
            }
        }
        if flow.len() % 2 == 1 {
            for part in 0..3 {
                halves.fill(3 * flow.len() + part);
            }
        }
        for (at, word, line) in std::mem::take(&mut self.data) {
            self.put(&mut halves, 2 * at, word as u16, line);
            self.put(&mut halves, 2 * at + 1, (word >> 16) as u16, line);
        }
        if self.complaints.is_empty() {
            return Ok(halves.words());
        }
        self.complaints.sort_by_key(|c| (c.line, c.column));
        Err(self.complaints)
    }

    /// Completes an EXEC by the instructions after it, and puts them where it says.
    fn place(&mut self, flow: &mut ControlFlowWord, next: &mut usize, halves: &mut ShaderHalves) {
        let count = flow.instructions.len();
        let mut complain = |message: String| {
            self.complaints.push(Complaint { line: flow.line, column: 1, message });
        };
        if flow.given & cf::COUNT.mask() == 0 {
            if count > cf::COUNT.max() as usize {
                complain(format!("{count} instructions follow; an EXEC runs at most {}", cf::COUNT.max()));
            }
            flow.word = cf::COUNT.set(flow.word, count as u128);
        } else if cf::COUNT.get(flow.word) != count as u128 {
            complain(format!(
                "CNT is {}, but it is followed by {}",
                cf::COUNT.get(flow.word),
                counted(count as u64, "instruction", "instructions")
            ));
        }
        if flow.given & cf::ADDRESS.mask() == 0 {
            if *next > cf::ADDRESS.max() as usize {
                complain(format!("the address 0x{next:x} does not fit ADDR"));
            }
            flow.word = cf::ADDRESS.set(flow.word, *next as u128);
        }
        let address = cf::ADDRESS.get(flow.word) as usize;
        let mut sequence = cf::SERIALIZE.get(flow.word);
        for (i, instruction) in flow.instructions.iter().enumerate() {
            let kind = u128::from(instruction.fetch) | u128::from(instruction.wait) << 1;
            if i < 6 {
                sequence = sequence & !(3 << (2 * i)) | kind << (2 * i);
            } else if kind != 0 {
                let message = "only the first six instructions of an EXEC can fetch or wait".to_owned();
                self.complaints.push(Complaint { line: instruction.line, column: 1, message });
            }
            for part in (0..6).filter(|_| address + i < super::REACH / 3) {
                if let Some(word) = instruction.word {
                    let half = (word >> (16 * part)) as u16;
                    self.put(halves, 6 * (address + i) + part, half, instruction.line);
                }
            }
        }
        flow.word = cf::SERIALIZE.set(flow.word, sequence);
        *next = (*next).max(address + count);
    }

    fn put(&mut self, halves: &mut ShaderHalves, at: usize, half: u16, line: usize) {
        if let Some(other) = halves.put(at, half, line)
            && self.complaints.last().is_none_or(|c| c.line != line)
        {
            let message = format!("line {other} put other bits at dword 0x{:x}", at / 2);
            self.complaints.push(Complaint { line, column: 1, message });
        }
    }
}

/// The shader, as pieces of 16 bits: control-flow words begin at each third.
#[derive(Default)]
struct ShaderHalves {
    stored: Vec<Option<u16>>,
    lines: HashMap<usize, usize>,
}

impl ShaderHalves {
    /// Gives the line that put something else there.
    fn put(&mut self, at: usize, half: u16, line: usize) -> Option<usize> {
        self.fill(at);
        let place = self.stored.get_mut(at)?;
        match place {
            Some(there) if *there != half => self.lines.get(&at).copied(),
            _ => {
                *place = Some(half);
                self.lines.insert(at, line);
                None
            }
        }
    }

    /// Makes the shader reach `at`, which is at most a little more than there is text or [`super::REACH`].
    fn fill(&mut self, at: usize) {
        if self.stored.len() <= at {
            self.stored.resize(at + 1, None);
        }
    }

    fn words(&self) -> Vec<u32> {
        let half = |h: Option<&Option<u16>>| u32::from(h.copied().flatten().unwrap_or(0));
        self.stored.chunks(2).map(|pair| half(pair.first()) | half(pair.get(1)) << 16).collect()
    }
}

/// `VERTEX R1.xyzw = R0.x …`
fn fetch_word(c: &mut LineCursor<'_>) -> Result<u128, Complaint> {
    let (name, condition) =
        c.conditional(|name| name == fetch::OTHER || fetch::OPCODES.iter().any(|(_, known)| *known == name))?;
    let named = fetch::OPCODES.iter().find(|(_, known)| *known == name);
    // Any opcode without a name has this form; braces say which it is.
    let opcode = named.map_or(u128::from(u8::MAX), |(opcode, _)| u128::from(*opcode));
    let form = fetch::form(opcode);
    let mut word = fetch::OPCODE.set(form.rest(), opcode);
    if let Some(condition) = condition {
        word = fetch::PREDICATED.set(fetch::CONDITION.set(word, u128::from(condition)), 1);
    }
    c.expect("R")?;
    word = fetch::DST.set(word, c.number(fetch::DST.max())?);
    c.expect(".")?;
    word = fetch::DST_SWIZZLE.set(word, c.channels(4, 3)?);
    c.expect("=")?;
    c.expect("R")?;
    word = fetch::SRC.set(word, c.number(fetch::SRC.max())?);
    c.expect(".")?;
    word = if opcode == 0 {
        fetch::VERTEX_SWIZZLE.set(word, c.channels(1, 2)?)
    } else {
        fetch::TEXTURE_SWIZZLE.set(word, c.channels(3, 2)?)
    };
    let given = attrs(c, form, &mut word)?;
    if named.is_none() && given & fetch::OPCODE.mask() == 0 {
        return Err(c.expected("{opcode=…}: `?` means several opcodes"));
    }
    Ok(word)
}

/// `MAXv R1 = R2, C3`: the word and the bits that were given.
fn vector_word(c: &mut LineCursor<'_>) -> Result<(u128, u128), Complaint> {
    let known = |name: &str| alu::VECTOR_OPCODES.iter().position(|(known, _)| *known == name);
    let (name, condition) = c.conditional(|name| name == "(null)" || known(name).is_some())?;
    let mut word = alu::ALU.rest();
    let mut given = 0;
    let operands = match known(name) {
        Some(opcode) => {
            word = alu::VECTOR.opcode.set(word, opcode as u128);
            alu::VECTOR_OPCODES.get(opcode).map_or(0, |(_, operands)| *operands)
        }
        None => 0,
    };
    if let Some(condition) = condition {
        word = alu::PREDICATE.set(word, 2 | u128::from(condition));
    }
    let sources: &[&alu::AluSource] = match operands {
        3 => &[&alu::SRC3, &alu::SRC1, &alu::SRC2],
        2 => &[&alu::SRC1, &alu::SRC2],
        _ => &[&alu::SRC1],
    };
    given |= operation(c, &alu::VECTOR, sources, &mut word)?;
    given |= attrs(c, &alu::ALU, &mut word)?;
    Ok((word, given))
}

/// `ADDs R1 = R2`: the second half of an instruction.
fn scalar_word(c: &mut LineCursor<'_>, word: &mut u128, given: u128) -> Result<(), Complaint> {
    let start = c.at;
    let mut half = 0;
    if c.eat("OP(") {
        half = alu::SCALAR.opcode.set(half, c.number(alu::SCALAR.opcode.max())?);
        c.expect(")")?;
    } else {
        let name = c.word();
        match alu::SCALAR_OPCODES.iter().position(|known| *known == Some(name)) {
            Some(opcode) => half = alu::SCALAR.opcode.set(half, opcode as u128),
            None => {
                c.at = start;
                return Err(c.expected("a control-flow instruction, FETCH:, ALU: or a scalar operation"));
            }
        }
    }
    let mut scalar_bits = operation(c, &alu::SCALAR, &[&alu::SRC3], &mut half)?;
    scalar_bits |= alu::SCALAR.opcode.mask() | alu::SCALAR.dst.mask() | alu::SCALAR.mask.mask();
    scalar_bits |= alu::SCALAR.clamp.mask();
    let both = scalar_bits & given;
    if (*word ^ half) & both != 0 {
        c.at = start;
        return Err(c.expected("the export and the third operand that the vector operation has"));
    }
    *word = *word & !scalar_bits | half & scalar_bits;
    attrs(c, &alu::ALU, word)?;
    Ok(())
}

/// `R1.xy__ = R2, C3 CLAMP`: gives the bits that both halves of an instruction may tell.
fn operation(
    c: &mut LineCursor<'_>,
    half: &alu::AluResult,
    sources: &[&alu::AluSource],
    word: &mut u128,
) -> Result<u128, Complaint> {
    let export = c.eat("export");
    if !export {
        c.expect("R")?;
    }
    *word = alu::EXPORT.set(*word, u128::from(export));
    *word = half.dst.set(*word, c.number(half.dst.max())?);
    let mut mask = 0xf;
    if c.eat(".") {
        mask = 0;
        for (i, channel) in "xyzw".chars().enumerate() {
            match c.next() {
                Some(found) if found == channel => mask |= 1 << i,
                Some('_') => {}
                _ => return Err(c.expected(&format!("{channel} or _"))),
            }
        }
    }
    *word = half.mask.set(*word, mask);
    c.expect("=")?;
    let mut given = alu::EXPORT.mask();
    for (i, source) in sources.iter().enumerate() {
        if i > 0 {
            c.expect(",")?;
        }
        *word = source.negate.set(*word, u128::from(c.eat("-")));
        let abs = c.eat("|");
        *word = source.abs.set(*word, u128::from(abs));
        let register = c.eat("R");
        if !register && !c.eat("C") {
            return Err(c.expected("a register R… or a constant C…"));
        }
        *word = source.register.set(*word, u128::from(register));
        *word = source.number.set(*word, c.number(source.number.max())?);
        if c.eat(".") {
            let mut swizzle = 0;
            for i in 0..4u32 {
                let channel = c.next().and_then(|found| "xyzw".find(found));
                let channel = channel.ok_or_else(|| c.expected("four of x, y, z, w"))?;
                swizzle |= ((channel as u128).wrapping_sub(u128::from(i)) % 4) << (2 * i);
            }
            *word = source.swizzle.set(*word, swizzle);
        }
        if abs {
            c.expect("|")?;
        }
        given |= source.number.mask() | source.register.mask() | source.swizzle.mask();
        given |= source.negate.mask() | source.abs.mask();
    }
    *word = half.clamp.set(*word, u128::from(c.eat("CLAMP")));
    Ok(given)
}

/// Attributes in any order, then braces: gives the bits they set.
fn attrs(c: &mut LineCursor<'_>, form: &WordForm, word: &mut u128) -> Result<u128, Complaint> {
    let mut given = 0;
    while !c.end() {
        if c.eat("{") {
            given |= braces(c, form, word)?;
            break;
        }
        let start = c.at;
        let mut found = None;
        for attr in form.attrs {
            c.at = start;
            if let Some(bits) = attr_bits(c, attr, word)? {
                found = Some(bits);
                break;
            }
        }
        match found {
            Some(bits) => given |= bits,
            None => {
                c.at = start;
                let words: Vec<_> = form.attrs.iter().flat_map(words_of).collect();
                return Err(c.expected(&match words.as_slice() {
                    [] => "the end of the line".to_owned(),
                    words => format!("one of {}, or the end of the line", words.join(", ")),
                }));
            }
        }
    }
    Ok(given)
}

fn words_of(attr: &'static InstrAttr) -> Vec<&'static str> {
    match attr.args {
        [AttrArg::Choice(_, names, _)] => names.iter().map(|(_, name)| *name).collect(),
        _ => vec![attr.word],
    }
}

/// Reads an attribute if it is this one: the bits it sets.
fn attr_bits(
    c: &mut LineCursor<'_>,
    attr: &'static InstrAttr,
    word: &mut u128,
) -> Result<Option<u128>, Complaint> {
    if let [AttrArg::Choice(field, names, other)] = attr.args {
        for (value, name) in *names {
            if c.eat_word(name) {
                *word = field.set(*word, u128::from(*value));
                return Ok(Some(field.mask()));
            }
        }
        if !c.eat_word(other) {
            return Ok(None);
        }
        c.expect("(")?;
        *word = field.set(*word, c.number(field.max())?);
        c.expect(")")?;
        return Ok(Some(field.mask()));
    }
    if !c.eat_word(attr.word) {
        return Ok(None);
    }
    let mut given = 0;
    if let AttrCondition::Is(field, value) = attr.when {
        *word = field.set(*word, u128::from(value));
        given |= field.mask();
    }
    for (i, arg) in attr.args.iter().enumerate() {
        c.expect(if i == 0 { "(" } else { "," })?;
        let field: &WordField = arg.field();
        let names: &[(u8, &str)] = match arg {
            AttrArg::Name(_, names) => names,
            _ => &[],
        };
        let value = match names.iter().find(|(_, name)| c.eat_word(name)) {
            Some((value, _)) => u128::from(*value),
            None => c.number(field.max())?,
        };
        *word = field.set(*word, value);
        given |= field.mask();
    }
    if !attr.args.is_empty() {
        c.expect(")")?;
    }
    Ok(Some(given))
}

/// `name=value, …}`
fn braces(c: &mut LineCursor<'_>, form: &WordForm, word: &mut u128) -> Result<u128, Complaint> {
    let mut given = 0;
    loop {
        let start = c.at;
        let name = c.word();
        let Some(field) = form.fields.iter().find(|field| field.name == name) else {
            c.at = start;
            let names: Vec<_> = form.fields.iter().map(|field| field.name).collect();
            return Err(c.expected(&format!("a field: {}", names.join(", "))));
        };
        c.expect("=")?;
        *word = field.set(*word, c.number(field.max())?);
        given |= field.mask();
        if c.eat("}") {
            return Ok(given);
        }
        c.expect(",")?;
    }
}

/// A place in a line.
struct LineCursor<'a> {
    line: &'a str,
    at: usize,
    number: usize,
}

impl<'a> LineCursor<'a> {
    fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or_default()
    }

    fn blank(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Nothing is left but a comment.
    fn end(&mut self) -> bool {
        self.blank();
        self.rest().is_empty() || self.rest().starts_with(';')
    }

    fn finish(&mut self) -> Result<(), Complaint> {
        if self.end() { Ok(()) } else { Err(self.expected("the end of the line")) }
    }

    /// Skips `03: 19481000 00262688 00000020` or `2003 0007 1000`.
    fn skip_words(&mut self) {
        self.blank();
        let rest = self.rest();
        let (skip, width) = match rest.split_once(':') {
            Some((address, _)) if is_hex(address) => (address.len() + 1, 8),
            _ => (0, 4),
        };
        let tail = rest.get(skip..).unwrap_or_default();
        let mut at = 0;
        for _ in 0..3 {
            let word = tail.get(at..).unwrap_or_default().trim_start();
            at = tail.len() - word.len();
            match word.get(..width) {
                Some(w) if is_hex(w) || w.bytes().all(|b| b == b'-') => at += width,
                _ => return,
            }
            if !tail.get(at..).is_none_or(|t| t.is_empty() || t.starts_with(char::is_whitespace)) {
                return;
            }
        }
        self.at += skip + at;
    }

    fn eat(&mut self, what: &str) -> bool {
        self.blank();
        let found = self.rest().starts_with(what);
        if found {
            self.at += what.len();
        }
        found
    }

    /// Like `eat`, but not the beginning of a longer word.
    fn eat_word(&mut self, what: &str) -> bool {
        let start = self.at;
        let found = self.eat(what) && !self.rest().starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if !found {
            self.at = start;
        }
        found
    }

    fn expect(&mut self, what: &str) -> Result<(), Complaint> {
        if self.eat(what) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn next(&mut self) -> Option<char> {
        let found = self.rest().chars().next()?;
        self.at += found.len_utf8();
        Some(found)
    }

    /// Letters, digits and underscores.
    fn word(&mut self) -> &'a str {
        self.blank();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// An opcode that may end in EQ or NE; `true` is EQ.
    fn conditional(&mut self, known: impl Fn(&str) -> bool) -> Result<(&'a str, Option<bool>), Complaint> {
        self.blank();
        let rest = self.rest();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default();
        let found = [(name, None)]
            .into_iter()
            .chain(name.strip_suffix("EQ").map(|name| (name, Some(true))))
            .chain(name.strip_suffix("NE").map(|name| (name, Some(false))))
            .find(|(name, _)| known(name));
        let found = found.ok_or_else(|| self.expected("an opcode"))?;
        self.at += end;
        Ok(found)
    }

    /// A number of C's spelling.
    fn number(&mut self, max: u128) -> Result<u128, Complaint> {
        let start = self.at;
        let word = self.word();
        let value = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(digits) => u128::from_str_radix(digits, 16),
            None => word.parse(),
        };
        match value {
            Ok(value) if value <= max => Ok(value),
            _ => {
                self.at = start;
                Err(self.expected(&format!("a number up to {max}")))
            }
        }
    }

    /// `count` channels of `width` bits each.
    fn channels(&mut self, count: u32, width: u32) -> Result<u128, Complaint> {
        let known = super::CHANNELS.get(..1 << width).unwrap_or_default();
        let mut swizzle = 0;
        for i in 0..count {
            let start = self.at;
            let found = self.next().and_then(|c| known.iter().position(|k| char::from(*k) == c));
            let Some(channel) = found else {
                self.at = start;
                let known: String = known.iter().map(|k| char::from(*k)).collect();
                return Err(self.expected(&format!("{count} channels of {known}")));
            };
            swizzle |= (channel as u128) << (width * i);
        }
        Ok(swizzle)
    }

    /// A complaint about this place.
    fn expected(&mut self, what: &str) -> Complaint {
        self.blank();
        let column = self.line.get(..self.at).map_or(1, |before| before.chars().count() + 1);
        Complaint { line: self.number, column, message: format!("expected {what}") }
    }
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}
