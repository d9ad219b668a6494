//! Whole sources: lines, labels, directives, and every error of a file.

use super::directive::{self, Directive, Line};
use super::error::{AsmError, Problem};
use super::grammar::{Grammar, Window, sign_extend};
use super::matcher::{LabelUse, Matcher, Trace, is_word};
use super::recent::{Key, Recent};
use super::solve::{Memory, solve};
use super::{invert, number};
use crate::tables::IR3;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Errors of one file, after which the rest is not read.
const MOST_ERRORS: usize = 1000;
/// Bytes of an unknown name that errors tell.
const LONGEST_NAME: usize = 64;
/// What listings put before a word that is no instruction.
const NO_MATCH: &str = "no match: ";
/// Ways of reading a text by one rule that are tried.
const MOST_WAYS: usize = 64;

/// What a source text assembles to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The instructions.
    pub words: Vec<u64>,
    /// Line of the source, from 1, of each instruction.
    pub lines: Vec<u32>,
    /// The `@` lines, in order.
    pub directives: Vec<Directive>,
}

/// An assembler for one GPU. Making one takes some milliseconds; use it for many lines.
pub struct Assembler {
    grammar: Grammar,
    index: Index,
    memory: Memory,
    recent: Recent,
    generation: u32,
}

/// Rules by name, and for the first part of each name (up to a dot) how many parts names have that start so.
#[derive(Default)]
struct Index {
    rules: HashMap<Box<[u8]>, Vec<u32>, BuildHasherDefault<Fnv>>,
    parts: HashMap<Box<[u8]>, usize, BuildHasherDefault<Fnv>>,
}

/// FNV-1a: the keys are the table's own short names.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

/// An instruction, and the label it goes to, if any.
struct Encoded {
    word: u64,
    label: Option<LabelUse>,
}

/// A branch whose label is looked up at the end.
struct Fixup<'t> {
    index: usize,
    window: Window,
    label: &'t str,
    line: usize,
    byte: usize,
    source: &'t str,
}

impl Assembler {
    /// An assembler for a GPU: 630, 730.
    pub fn new(gpu_id: u32) -> Assembler {
        let grammar = invert::grammar(IR3, gpu_id);
        let index = Index::new(&grammar);
        Assembler { grammar, index, memory: Memory::new(), recent: Recent::new(), generation: gpu_id / 100 }
    }

    /// The word of one instruction or `raw` line. Labels and directives are not part of it.
    ///
    /// # Errors
    /// What was expected and in which column; the file is empty and the line 1.
    pub fn instruction(&mut self, line: &str) -> Result<u64, AsmError> {
        let code = without_comment(line);
        let fail = |byte, problem| AsmError::new("", 1, byte, line, problem);
        let start = listing_prefix(code);
        match self.encode(&code[start..]) {
            Ok(Encoded { word, label: None }) => Ok(word),
            Ok(Encoded { label: Some(label), .. }) => {
                let name = code[start + label.start..start + label.end].to_string();
                Err(fail(start + label.start, Problem::UnknownLabel(name)))
            }
            Err((byte, problem)) => Err(fail(start + byte, problem)),
        }
    }

    /// Assembles a file. Lines that cannot be assembled are left out of the program and told of, all of them.
    pub fn assemble(&mut self, file: &str, text: &str) -> (Program, Vec<AsmError>) {
        let mut program = Program::default();
        let mut errors = Vec::new();
        let mut labels: HashMap<&str, (usize, usize)> = HashMap::new();
        let mut fixups: Vec<Fixup<'_>> = Vec::new();
        let (mut nops, mut syncs) = (false, false);
        for (i, source) in text.lines().enumerate() {
            let line = i + 1;
            let mut fail = |byte, problem| errors.push(AsmError::new(file, line, byte, source, problem));
            let code = without_comment(source);
            let mut start = listing_prefix(code);
            if let Some(name) = label_definition(&code[start..]) {
                let at = start + offset_in(&code[start..], name);
                if let Some(&(_, first)) = labels.get(name) {
                    fail(at, Problem::DuplicateLabel { name: name.to_string(), line: first });
                } else {
                    labels.insert(name, (program.words.len(), line));
                }
                start = at + name.len();
                start += code[start..].find(':').map_or(0, |colon| colon + 1);
            }
            start += blanks(&code[start..]);
            let statement = &code[start..];
            if statement.starts_with('@') {
                match directive::read(statement.trim_end()) {
                    Ok(Line::Header(directive)) => program.directives.push(directive),
                    Ok(Line::PadWithNops(on)) => nops = on,
                    Ok(Line::PadWithSyncs(on)) => syncs = on,
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
                match self.encode(statement) {
                    Ok(Encoded { word, label }) => {
                        if let Some(LabelUse { window, start: from, end }) = label {
                            let (label, byte) = (&statement[from..end], start + from);
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
                errors.push(AsmError::new(file, line, 0, source, Problem::TooMany));
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
                    Problem::FarLabel(label.to_string())
                }
                None => Problem::UnknownLabel(label.to_string()),
            };
            errors.push(AsmError::new(file, line, byte, source, problem));
        }
        errors.sort_by_key(|error| (error.line, error.column));
        (program, errors)
    }

    /// Encodes a statement without label and comment; errors come with the byte they are at.
    fn encode(&mut self, statement: &str) -> Result<Encoded, (usize, Problem)> {
        let statement = statement.trim_end();
        let text = statement.as_bytes();
        let key = Key::of(text);
        if let Some(word) = key.and_then(|key| self.recent.find(&key)) {
            return Ok(Encoded { word, label: None });
        }
        let at = name_start(text);
        let name = name_at(text, at);
        if name == b"raw" {
            return raw(text, at + name.len());
        }
        if let Some(digits) = statement.strip_prefix(NO_MATCH) {
            let word = number::hexadecimal(digits.as_bytes()).filter(|&(_, used)| used == digits.len());
            let problem = || Problem::Expected(vec!["a word in hexadecimal".to_string()]);
            return word
                .map(|(word, _)| Encoded { word, label: None })
                .ok_or_else(|| (NO_MATCH.len(), problem()));
        }
        for group in self.index.groups(name) {
            if let Some(encoded) = try_rules(&self.grammar, &mut self.memory, text, group, None) {
                if let (Some(key), None) = (&key, encoded.label) {
                    self.recent.keep(key, encoded.word);
                }
                return Ok(encoded);
            }
        }
        Err(self.diagnose(statement, at, name))
    }

    /// Reads again, taking note of what was expected.
    fn diagnose(&mut self, statement: &str, at: usize, name: &[u8]) -> (usize, Problem) {
        let mut trace = Trace::default();
        let mut found = false;
        for group in self.index.groups(name) {
            found = true;
            try_rules(&self.grammar, &mut self.memory, statement.as_bytes(), group, Some(&mut trace));
        }
        if !found && name.is_empty() {
            return (at, Problem::Expected(vec!["an instruction".to_string()]));
        }
        if !found {
            let name = String::from_utf8_lossy(&name[..name.len().min(LONGEST_NAME)]).into_owned();
            return (at, Problem::UnknownInstruction { name, generation: self.generation });
        }
        (trace.at, Problem::Expected(trace.expected))
    }
}

impl Program {
    fn push(&mut self, word: u64, line: usize) {
        self.words.push(word);
        self.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
    }
}

impl Index {
    fn new(grammar: &Grammar) -> Index {
        let mut index = Index::default();
        for (i, rule) in grammar.rules.iter().enumerate() {
            let name = rule.name();
            let parts = name.split(|&b| b == b'.').count();
            let first = name.split(|&b| b == b'.').next().unwrap_or(name);
            let most = index.parts.entry(first.into()).or_default();
            *most = parts.max(*most);
            index.rules.entry(name.into()).or_default().push(i as u32);
        }
        index
    }

    /// The rules for a word of the text, those of the longest name it starts with first.
    fn groups<'i>(&'i self, word: &'i [u8]) -> impl Iterator<Item = &'i [u32]> {
        let dot = |from: usize| word[from..].iter().position(|&b| b == b'.').map(|at| from + at);
        let first = dot(0).unwrap_or(word.len());
        let most = self.parts.get(&word[..first]).copied().unwrap_or(0);
        (1..=most).rev().filter_map(move |parts| {
            let mut end = first;
            for _ in 1..parts {
                end = if end < word.len() { dot(end + 1).unwrap_or(word.len()) } else { return None };
            }
            self.rules.get(&word[..end]).map(Vec::as_slice)
        })
    }
}

fn try_rules(
    grammar: &Grammar,
    memory: &mut Memory,
    text: &[u8],
    rules: &[u32],
    trace: Option<&mut Trace>,
) -> Option<Encoded> {
    let traced = trace.is_some();
    let mut matcher = Matcher::new(grammar, text, trace);
    let last = text.iter().rposition(|&b| b == b',').map_or(0, |comma| {
        text[comma + 1..].iter().copied().find(|b| !matches!(b, b' ' | b'\t')).unwrap_or(0)
    });
    for &rule in rules {
        if !traced && !grammar.rules[rule as usize].may_start_last(last) {
            continue;
        }
        matcher.start_over();
        for way in 0..MOST_WAYS {
            let read = matcher.read(&grammar.rules[rule as usize]);
            if read.is_err() && way == 0 && !matcher.conflict {
                break;
            }
            if let Ok(true) = read {
                let (word, known) = (matcher.word, matcher.known);
                let unshown = grammar.rules[rule as usize].unshown & !known;
                let mut solved = |bits| solve(grammar, memory, word | bits, known | bits, matcher.claims());
                let found = match solved(unshown) {
                    None if unshown != 0 => solved(0),
                    found => found,
                };
                if let Some(word) = found {
                    return Some(Encoded { word, label: matcher.label });
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

/// `raw 0x…`: any word.
fn raw(text: &[u8], mut at: usize) -> Result<Encoded, (usize, Problem)> {
    at += text[at..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let expected = |at, what: &str| Err((at, Problem::Expected(vec![what.to_string()])));
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

fn without_comment(line: &str) -> &str {
    line.split(';').next().unwrap_or(line)
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
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

/// The label that the text defines at its start.
fn label_definition(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', '\t']);
    let end = text.bytes().take_while(|&b| is_word(b)).count();
    let name = &text[..end];
    let starts_as_name = name.starts_with(|c: char| !c.is_ascii_digit());
    (starts_as_name && text[end..].trim_start_matches([' ', '\t']).starts_with(':')).then_some(name)
}

/// Where a part of a text lies in it.
fn offset_in(text: &str, part: &str) -> usize {
    text.find(part).unwrap_or(0)
}
