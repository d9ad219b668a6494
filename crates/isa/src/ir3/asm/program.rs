//! Whole sources: lines, labels, directives, and every error of a file.

use super::book::{Book, Forms};
use super::directive::{self, Directive, DirectiveLine};
use super::error::{AsmError, AsmProblem};
use super::facts::{LabelUse, WordFacts};
use super::fast::{self, PaddedLine as Padded};
use super::grammar::{BitWindow, Grammar, sign_extend};
use super::matcher::{Matcher, Trace, is_word};
use super::number;
use super::recent::{RecentTexts, TextKey};
use super::solve::{self, SolveCache};
use std::collections::HashMap;
use std::ops::Range;

/// Errors of one file, after which the rest is not read.
const MOST_ERRORS: usize = 1000;
/// Bytes of an unknown name that errors tell.
const LONGEST_NAME: usize = 64;
/// What listings put before a word, or a field, that is nothing known.
const NO_MATCH: &str = "no match: ";
/// Ways of reading a text by one rule that are tried.
const MOST_WAYS: usize = 64;

/// What a source text assembles to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ir3Program {
    /// The instructions.
    pub words: Vec<u64>,
    /// Line of the source, from 1, of each instruction.
    pub lines: Vec<u32>,
    /// The `@` lines, in order.
    pub directives: Vec<Directive>,
}

/// An assembler for one GPU. It learns instructions as they come: use one for many lines.
pub struct Assembler {
    book: Book,
    recent: RecentTexts,
    reading: AsmScratch,
    generation: u32,
}

/// What is used again for every instruction.
struct AsmScratch {
    line: Padded,
    facts: WordFacts,
    memory: SolveCache,
}

/// An instruction, and the label it goes to, if any.
struct Encoded {
    word: u64,
    label: Option<LabelUse>,
}

/// A branch whose label is looked up at the end.
struct Fixup<'t> {
    index: usize,
    window: BitWindow,
    label: &'t str,
    line: usize,
    byte: usize,
    source: &'t str,
}

impl Assembler {
    /// An assembler for a GPU: 630, 730.
    pub fn new(gpu_id: u32) -> Assembler {
        let reading = AsmScratch { line: Padded::new(), facts: WordFacts::new(), memory: SolveCache::new() };
        Assembler { book: Book::new(gpu_id), recent: RecentTexts::new(), reading, generation: gpu_id / 100 }
    }

    /// The word of one instruction or `raw` line. Labels and directives are not part of it.
    ///
    /// # Errors
    /// What was expected and in which column; the file is empty and the line 1.
    pub fn instruction(&mut self, line: &str) -> Result<u64, AsmError> {
        let code = line.split(';').next().unwrap_or(line);
        let fail = |byte, problem| AsmError::new("", 1, byte, line, problem);
        let start = listing_prefix(code);
        match self.encode(&code[start..]).or_else(|error| unread(&code[..start], line).ok_or(error)) {
            Ok(Encoded { word, label: None }) => Ok(word),
            Ok(Encoded { label: Some(label), .. }) => {
                let bytes = label.bytes();
                let name = code[start..][bytes.clone()].to_string();
                Err(fail(start + bytes.start, AsmProblem::UnknownLabel(name)))
            }
            Err((byte, problem)) => Err(fail(start + byte, problem)),
        }
    }

    /// Assembles a file. Lines that cannot be assembled are left out of the program and told of, all of them.
    pub fn assemble(&mut self, file: &str, text: &str) -> (Ir3Program, Vec<AsmError>) {
        let mut program = Ir3Program::default();
        let mut errors = Vec::new();
        let mut labels: HashMap<&str, (usize, usize)> = HashMap::new();
        let mut fixups: Vec<Fixup<'_>> = Vec::new();
        let (mut nops, mut syncs) = (false, false);
        for (i, (source, code)) in (SourceLines { rest: text }).enumerate() {
            let line = i + 1;
            let mut fail = |byte, problem| errors.push(AsmError::new(file, line, byte, source, problem));
            let mut start = blanks(code);
            let mut prefix = "";
            if code.as_bytes().get(start) == Some(&b':') {
                start = listing_prefix(code);
                prefix = &code[..start];
                start += blanks(&code[start..]);
            }
            if let Some((name, length)) = label_definition(&code[start..]) {
                if let Some(&(_, first)) = labels.get(name) {
                    fail(start, AsmProblem::DuplicateLabel { name: name.to_string(), line: first });
                } else {
                    labels.insert(name, (program.words.len(), line));
                }
                start += length;
                start += blanks(&code[start..]);
            }
            let statement = &code[start..];
            if statement.starts_with('@') {
                match directive::read(statement.trim_end()) {
                    Ok(DirectiveLine::Header(directive)) => program.directives.push(directive),
                    Ok(DirectiveLine::PadWithNops(on)) => nops = on,
                    Ok(DirectiveLine::PadWithSyncs(on)) => syncs = on,
                    Err((byte, problem)) => fail(start + byte, problem),
                }
            } else if !statement.is_empty() {
                for padding in [("(rpt5)nop", nops), ("(sy)(ss)nop", syncs)] {
                    if let (text, true) = padding
                        && let Ok(nop) = self.encode(text)
                    {
                        program.push(nop.word, line);
                    }
                }
                match self.encode(statement).or_else(|error| unread(prefix, source).ok_or(error)) {
                    Ok(Encoded { word, label }) => {
                        if let Some(of) = label {
                            let (label, byte) = (&statement[of.bytes()], start + of.bytes().start);
                            let window = of.window;
                            fixups.push(Fixup {
                                index: program.words.len(),
                                window,
                                label,
                                line,
                                byte,
                                source,
                            });
                        }
                        program.push(word, line);
                    }
                    Err((byte, problem)) => fail(start + byte, problem),
                }
            }
            if errors.len() >= MOST_ERRORS {
                errors.push(AsmError::new(file, line, 0, source, AsmProblem::TooMany));
                return (program, errors);
            }
        }
        for fixup in fixups {
            let Fixup { index, window, label, line, byte, source } = fixup;
            let problem = match labels.get(label) {
                Some(&(target, _)) => {
                    let distance = target as i64 - index as i64;
                    if sign_extend(distance as u64 & window.ones(), window.width) == distance {
                        program.words[index] |= window.place(distance as u64);
                        continue;
                    }
                    AsmProblem::FarLabel(label.to_string())
                }
                None => AsmProblem::UnknownLabel(label.to_string()),
            };
            errors.push(AsmError::new(file, line, byte, source, problem));
        }
        errors.sort_by_key(|error| (error.at.line, error.at.column));
        (program, errors)
    }

    /// Encodes a statement without label and comment; errors come with the byte they are at.
    fn encode(&mut self, statement: &str) -> Result<Encoded, (usize, AsmProblem)> {
        let statement = statement.trim_end();
        let text = statement.as_bytes();
        let key = TextKey::of(text);
        if let Some(word) = key.as_ref().and_then(|key| self.recent.find(key)) {
            return Ok(Encoded { word, label: None });
        }
        let at = name_start(text);
        let name = name_at(text, at);
        if name == b"raw" {
            return raw(text, at + name.len());
        }
        if let Some(digits) = statement.strip_prefix(NO_MATCH) {
            let word = number::hexadecimal(digits.as_bytes()).filter(|&(_, used)| used == digits.len());
            let problem = || AsmProblem::Expected(vec!["a word in hexadecimal".to_string()]);
            return word
                .map(|(word, _)| Encoded { word, label: None })
                .ok_or_else(|| (NO_MATCH.len(), problem()));
        }
        let fits = self.reading.line.take(text);
        let mut nth = 0;
        while let Some((grammar, forms, length)) = self.book.nth(name, nth) {
            let quick = if fits { self.reading.quick(grammar, forms, at..at + length) } else { None };
            if let Some(encoded) = quick.or_else(|| self.reading.thorough(grammar, forms, text, None)) {
                if let (Some(key), None) = (&key, encoded.label) {
                    self.recent.keep(key, encoded.word);
                }
                return Ok(encoded);
            }
            nth += 1;
        }
        Err(self.diagnose(statement, at, name))
    }

    /// Reads again, taking note of what was expected.
    fn diagnose(&mut self, statement: &str, at: usize, name: &[u8]) -> (usize, AsmProblem) {
        let mut trace = Trace::default();
        let mut found = false;
        let mut nth = 0;
        while let Some((grammar, forms, _)) = self.book.nth(name, nth) {
            found |= !forms.rules.is_empty();
            self.reading.thorough(grammar, forms, statement.as_bytes(), Some(&mut trace));
            nth += 1;
        }
        if !found && name.is_empty() {
            return (at, AsmProblem::Expected(vec!["an instruction".to_string()]));
        }
        if !found {
            let name = String::from_utf8_lossy(&name[..name.len().min(LONGEST_NAME)]).into_owned();
            return (at, AsmProblem::UnknownInstruction { name, generation: self.generation });
        }
        (trace.at, AsmProblem::Expected(trace.expected))
    }
}

impl Ir3Program {
    fn push(&mut self, word: u64, line: usize) {
        self.words.push(word);
        self.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
    }
}

impl AsmScratch {
    /// Reads the line as it is printed; `name` is where its name stands.
    fn quick(&mut self, grammar: &Grammar, forms: &Forms, name: Range<usize>) -> Option<Encoded> {
        let unshown = fast::read(&forms.plan, grammar, &self.line, name, &mut self.facts)?;
        let word = solve::word(grammar, &mut self.memory, &self.facts, unshown)?;
        Some(Encoded { word, label: self.facts.label })
    }

    /// Reads a text in any spelling, trying choices.
    fn thorough(
        &mut self,
        grammar: &Grammar,
        forms: &Forms,
        text: &[u8],
        trace: Option<&mut Trace>,
    ) -> Option<Encoded> {
        let mut matcher = Matcher::new(grammar, text, &mut self.facts, trace);
        for rule in &forms.rules {
            matcher.start_over();
            for way in 0..MOST_WAYS {
                let read = matcher.read(rule);
                if read.is_err() && way == 0 && !matcher.facts().conflict {
                    break;
                }
                if let Ok(true) = read {
                    let facts = matcher.facts();
                    if let Some(word) = solve::word(grammar, &mut self.memory, facts, rule.unshown) {
                        return Some(Encoded { word, label: facts.label });
                    }
                    matcher.contradiction();
                }
                if !matcher.other_choice() {
                    break;
                }
            }
        }
        None
    }
}

/// `raw 0x…`: any word.
fn raw(text: &[u8], mut at: usize) -> Result<Encoded, (usize, AsmProblem)> {
    at += text[at..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let expected = |at, what: &str| Err((at, AsmProblem::Expected(vec![what.to_string()])));
    match number::integer(&text[at..]) {
        Some((word, used)) if at + used == text.len() => Ok(Encoded { word, label: None }),
        Some((_, used)) => expected(at + used, "the end of the line"),
        None => expected(at, "a number of 64 bits, such as 0x0"),
    }
}

/// Where the name starts: after blanks and bracketed flags.
fn name_start(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match text.get(at) {
            Some(b' ' | b'\t') => at += 1,
            Some(b'(') => match text[at..].iter().position(|&b| b == b')') {
                Some(close) => at += close + 1,
                None => return at,
            },
            _ => return at,
        }
    }
}

/// The name with its modifiers.
fn name_at(text: &[u8], at: usize) -> &[u8] {
    let length = text[at..].iter().take_while(|&&b| is_word(b) || b == b'.').count();
    &text[at..at + length]
}

/// Lines without their ends, each with what stands before its comment.
struct SourceLines<'t> {
    rest: &'t str,
}

impl<'t> Iterator for SourceLines<'t> {
    type Item = (&'t str, &'t str);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let mut comment = None;
        let mut end = 0;
        // Eight bytes at a time, as long as none of them is one that is looked for.
        let bytes = self.rest.as_bytes();
        let end = loop {
            if let Some(eight) = bytes.get(end..).and_then(<[u8]>::first_chunk::<8>) {
                let eight = u64::from_le_bytes(*eight);
                if !has_byte(eight, b'\n') && (comment.is_some() || !has_byte(eight, b';')) {
                    end += 8;
                    continue;
                }
            }
            match bytes.get(end) {
                None | Some(b'\n') => break end,
                Some(b';') if comment.is_none() => comment = Some(end),
                Some(_) => {}
            }
            end += 1;
        };
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.strip_prefix('\n').unwrap_or(rest);
        let line = if rest.is_empty() { line } else { line.strip_suffix('\r').unwrap_or(line) };
        Some((line, comment.map_or(line, |at| &line[..at])))
    }
}

/// Whether one of eight bytes is this one.
#[inline]
fn has_byte(eight: u64, byte: u8) -> bool {
    const ONES: u64 = u64::MAX / 255;
    let zeros = eight ^ (ONES * u64::from(byte));
    zeros.wrapping_sub(ONES) & !zeros & ONES << 7 != 0
}

fn blanks(text: &str) -> usize {
    text.bytes().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// Length of the `:2:0004:0005[42380c01x_00040001x] ` that listings put before an instruction.
fn listing_prefix(line: &str) -> usize {
    let lead = blanks(line);
    let rest = &line[lead..];
    let mut bytes = rest.bytes();
    if bytes.next() != Some(b':') || !bytes.next().is_some_and(|b| b.is_ascii_digit()) {
        return 0;
    }
    rest.find("] ").map_or(0, |end| lead + end + 2)
}

/// The word that a listing has before a text, if the line says itself that the text does not tell all of it.
fn unread(prefix: &str, line: &str) -> Option<Encoded> {
    let (high, low) = prefix.split_once('[')?.1.split_once("x_")?;
    let part = |digits: &str| (digits.len() == 8).then(|| u32::from_str_radix(digits, 16).ok()).flatten();
    let word = u64::from(part(high)?) << 32 | u64::from(part(low.strip_suffix("x] ")?)?);
    line.contains(NO_MATCH.trim_end()).then_some(Encoded { word, label: None })
}

/// The label that the text defines at its start, and the length of the definition.
fn label_definition(text: &str) -> Option<(&str, usize)> {
    let end = text.bytes().take_while(|&b| is_word(b)).count();
    let colon = end + blanks(&text[end..]);
    let is_name = end > 0 && !text.as_bytes()[0].is_ascii_digit();
    (is_name && text.as_bytes().get(colon) == Some(&b':')).then(|| (&text[..end], colon + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3;
    use crate::table::generate;
    use crate::tables::{IR3, IR3_INSTRUCTION};

    /// GPUs of the generations that the table tells apart.
    const GPUS: [u32; 5] = [330, 420, 530, 630, 730];

    type Reading = Option<(u64, Option<LabelUse>)>;

    /// What quick and thorough reading find in a text, for each name that it may start with.
    fn both(assembler: &mut Assembler, text: &str) -> Vec<(Reading, Reading)> {
        let text = text.trim_end().as_bytes();
        let at = name_start(text);
        let Assembler { book, reading, .. } = assembler;
        let outcome = |found: Encoded| (found.word, found.label);
        let mut found = Vec::new();
        let fits = reading.line.take(text);
        while let Some((grammar, forms, length)) = book.nth(name_at(text, at), found.len()) {
            let quick = if fits { reading.quick(grammar, forms, at..at + length) } else { None };
            found.push((quick.map(outcome), reading.thorough(grammar, forms, text, None).map(outcome)));
        }
        found
    }

    /// Every instruction as it is printed, with random fields: of `count` words each.
    fn printed(gpu_id: u32, count: usize) -> impl Iterator<Item = String> {
        let words = IR3.leaves(IR3_INSTRUCTION).flat_map(move |leaf| generate::words(IR3, leaf, 3, count));
        words.map(move |word| {
            let mut text = Vec::new();
            ir3::write(word as u64, gpu_id, &mut text);
            let text = String::from_utf8(text).unwrap();
            text.split('\t').next().unwrap_or_default().to_string()
        })
    }

    #[test]
    fn quick_reading_finds_what_thorough_reading_finds() {
        for gpu_id in GPUS {
            let mut assembler = Assembler::new(gpu_id);
            let (mut thoroughly, mut quickly) = (0, 0);
            for text in printed(gpu_id, 40) {
                for (quick, thorough) in both(&mut assembler, &text) {
                    assert!(
                        quick.is_none() || quick == thorough,
                        "{gpu_id} {text}: {quick:x?} {thorough:x?}"
                    );
                    thoroughly += u32::from(thorough.is_some());
                    quickly += u32::from(quick.is_some());
                }
            }
            println!("{gpu_id}: {quickly} of {thoroughly} texts are read quickly");
            assert!(
                thoroughly > 5000 && quickly * 20 > thoroughly * 19,
                "{gpu_id}: {quickly} of {thoroughly}"
            );
        }
    }

    /// The same of texts that are spelled otherwise, or are wrong.
    #[test]
    fn quick_reading_does_not_read_more() {
        const PIECES: [&str; 24] = [
            " ", "  ", "\t", ",", ", ", "(neg)", "(abs)", "(r)", "(last)", "(sy)", "(rpt2)", "(nop1) ", "h",
            "r", "c", "0", "0x1", "9", "-", ".", ".s", "x", "<a0.x", "(1.0)",
        ];
        let mut seed = 7u64;
        let mut random = move |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for gpu_id in [330, 630, 730] {
            let mut assembler = Assembler::new(gpu_id);
            let mut quickly = 0;
            for mut text in printed(gpu_id, 10) {
                let at = random(text.len() + 1);
                let end = if random(2) == 0 { at } else { (at + 1 + random(4)).min(text.len()) };
                let piece = if random(4) == 0 { "" } else { PIECES[random(PIECES.len())] };
                text.replace_range(at..end, piece);
                for (quick, thorough) in both(&mut assembler, &text) {
                    assert!(
                        quick.is_none() || quick == thorough,
                        "{gpu_id} {text}: {quick:x?} {thorough:x?}"
                    );
                    quickly += u32::from(quick.is_some());
                }
            }
            assert!(quickly > 100, "{gpu_id}: {quickly}");
        }
    }
}
