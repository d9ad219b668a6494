//! Macros, repetitions and conditions: lines that are read more than once, or not at all.
//!
//! All of it happens while a file is read: a condition asks what is known at its place. Expansion is bounded, in depth and
//! in all that it makes of a file.

use super::statement::{LineRest, quoted};
use super::{SourcePass, SourceProblem, SymbolDef};
use crate::amdgcn::text;
use crate::amdgcn::text::{SymbolValue, Symbols};
use std::borrow::Cow;
use std::rc::Rc;

/// Macros and repetitions in each other, as LLVM has it.
const MAX_DEPTH: usize = 20;
/// What expansion may cost: bytes of lines, and [`LINE`] for each line and each time a body is begun.
const MAX_COST: u64 = 8 << 20;
/// The same for each byte of the source.
const COST_PER_BYTE: u64 = 32;
/// See [`MAX_COST`].
const LINE: u64 = 16;

/// A line of a body, and where it stands in the file.
struct BodyLine {
    line: usize,
    text: String,
}

type MacroBody = Rc<[BodyLine]>;

/// `.macro NAME PARAMETERS` to `.endm`.
pub(super) struct Macro {
    parameters: Vec<Parameter>,
    body: MacroBody,
}

struct Parameter {
    name: String,
    default: Option<String>,
    /// `:req`
    required: bool,
    /// `:vararg`
    rest: bool,
}

/// What stands for names in a body.
#[derive(Default)]
struct ParamValues {
    named: Vec<(String, String)>,
    /// What `\@` stands for, in macros.
    count: Option<usize>,
    /// Whether there is nothing to put in: the body of `.rept`.
    none: bool,
}

/// Where a piece of a line came from: column of its first character, the column in the file, and whether the piece was put
/// in there, so that all of it stands at that column.
pub(super) type TextOrigin = (usize, usize, bool);

/// Lines that are read one after the other.
enum LineSource<'s> {
    File(std::iter::Enumerate<std::str::Lines<'s>>),
    Body { body: MacroBody, at: usize, values: Rc<ParamValues> },
}

/// An `.if` that is open.
struct OpenIf {
    /// Lines are read.
    live: bool,
    /// A branch was read, or none may be.
    taken: bool,
    /// `.else` was there.
    last: bool,
    line: usize,
}

/// What expansion needs of a reading.
#[derive(Default)]
pub(super) struct ExpandState {
    macros: std::collections::HashMap<String, Rc<Macro>>,
    /// Macros used so far.
    used: usize,
    /// What may still be made.
    left: u64,
    /// Nothing is read any more.
    stopped: bool,
    pub(super) depth: usize,
    /// The line of the outermost use, where lines are of a body.
    pub(super) use_line: Option<usize>,
    /// Of the line that is read.
    pub(super) pieces: Vec<TextOrigin>,
}

/// Symbols as far as they are known at this place, in every reading the same.
struct PassSymbols<'p, 'q>(&'p SourcePass<'q>);

impl Symbols for PassSymbols<'_, '_> {
    fn symbol(&self, name: &str) -> Option<SymbolValue> {
        match self.0.defined.get(name) {
            Some(SymbolDef { value, address: true, .. }) => Some(SymbolValue::Address(*value)),
            Some(SymbolDef { value, .. }) => Some(SymbolValue::Absolute(*value)),
            None => self.0.builtin(name).map(SymbolValue::Absolute),
        }
    }

    fn here(&self) -> i64 {
        self.0.here()
    }
}

impl SourcePass<'_> {
    /// Reads a whole file.
    pub(super) fn file(&mut self, source: &str) {
        self.expansion.left = MAX_COST + COST_PER_BYTE * source.len() as u64;
        self.block(&mut LineSource::File(source.lines().enumerate()));
    }

    /// Reads lines to their end, or to `.exitm`.
    fn block(&mut self, lines: &mut LineSource<'_>) {
        let mut conditions: Vec<OpenIf> = Vec::new();
        while let Some(text) = self.next(lines) {
            if self.metadata.is_some() {
                self.metadata_line(&text);
                continue;
            }
            if self.text_metadata.is_some() {
                self.text_metadata_line(&text);
                continue;
            }
            // What the first reading settled is not looked at again.
            let plain =
                conditions.is_empty() && self.expansion.macros.is_empty() && self.expansion.depth == 0;
            if self.last && plain && self.header.is_none() && self.settled.is_bare(self.line) {
                self.instruction(LineRest::new(""));
                continue;
            }
            let plain = plain && !self.last && self.header.is_none();
            if plain && self.known_line(&text) {
                continue;
            }
            let mut line = LineRest::new(&text);
            let live = conditions.last().is_none_or(|condition| condition.live);
            self.bare = plain;
            while let Some((label, rest)) = line.label() {
                if live {
                    self.label(label, line.column);
                }
                self.bare = false;
                line = rest;
            }
            let (word, rest) = match line.text.starts_with('.') || !self.expansion.macros.is_empty() {
                true => line.word(),
                false => ("", line),
            };
            if word.starts_with(".if") || matches!(word, ".else" | ".elseif" | ".endif") {
                if let Err((column, wrong)) = self.condition(word, rest, live, &mut conditions) {
                    self.error(column, wrong);
                }
                continue;
            }
            if !live || line.text.is_empty() {
                continue;
            }
            let result = match word {
                ".macro" => self.define_macro(rest, lines),
                ".purgem" => {
                    self.expansion.macros.remove(rest.text);
                    Ok(())
                }
                ".rept" | ".rep" | ".irp" | ".irpc" => self.repeated(word, rest, lines),
                ".exitm" => return,
                ".endm" | ".endmacro" | ".endr" => {
                    Err((line.column, SourceProblem::NotOpen(word.to_owned())))
                }
                ".error" => Err((line.column, SourceProblem::Said(rest.text.trim_matches('"').to_owned()))),
                _ => match self.expansion.macros.get(word).map(Rc::clone) {
                    Some(found) => self.use_macro(word, &found, rest),
                    None => {
                        self.statement(line);
                        if plain && self.settled.is_bare(self.line) {
                            self.recent.keep(&text, self.line);
                        }
                        Ok(())
                    }
                },
            };
            if let Err((column, wrong)) = result {
                self.error(column, wrong);
            }
        }
        if let Some(open) = conditions.first() {
            (self.line, self.expansion.pieces) = (open.line, Vec::new());
            self.error(1, SourceProblem::NotEnded(".if", ".endif"));
        }
    }

    /// The next line, with what it stands for put in.
    fn next<'s>(&mut self, lines: &mut LineSource<'s>) -> Option<Cow<'s, str>> {
        if self.expansion.stopped || self.is_too_large() {
            return None;
        }
        match lines {
            LineSource::File(lines) => {
                let (number, text) = lines.next()?;
                self.line = number + 1;
                self.expansion.pieces.clear();
                Some(Cow::Borrowed(text))
            }
            LineSource::Body { body, at, values } => {
                let BodyLine { line, text } = body.get(*at)?;
                *at += 1;
                self.line = *line;
                self.expansion.pieces.clear();
                let most = usize::try_from(self.expansion.left).unwrap_or(usize::MAX);
                let made = match values.none {
                    true => text.clone(),
                    false => put_in(text, values, most, &mut self.expansion.pieces),
                };
                self.spend(LINE + made.len() as u64).then_some(Cow::Owned(made))
            }
        }
    }

    /// Takes something from what expansion may cost; `false` when nothing is left.
    fn spend(&mut self, cost: u64) -> bool {
        match self.expansion.left.checked_sub(cost) {
            Some(left) => self.expansion.left = left,
            None if !self.expansion.stopped => {
                self.expansion.stopped = true;
                self.error(1, SourceProblem::Expansion);
            }
            None => {}
        }
        !self.expansion.stopped
    }

    /// Lines up to the word that ends them; those of the same kind within them have their own.
    fn body(&mut self, lines: &mut LineSource<'_>, begin: &[&str], end: &[&str]) -> Option<MacroBody> {
        let mut body = Vec::new();
        let mut open = 0;
        while let Some(text) = self.next(lines) {
            let mut line = LineRest::new(&text);
            while let Some((_, rest)) = line.label() {
                line = rest;
            }
            let (word, _) = line.word();
            if begin.contains(&word) {
                open += 1;
            } else if end.contains(&word) {
                if open == 0 {
                    return Some(body.into());
                }
                open -= 1;
            }
            body.push(BodyLine { line: self.line, text: text.into_owned() });
        }
        None
    }

    fn define_macro(
        &mut self,
        rest: LineRest<'_>,
        lines: &mut LineSource<'_>,
    ) -> Result<(), (usize, SourceProblem)> {
        let (line, column) = (self.line, rest.column);
        let (name, parameters) = rest.word();
        let name = name.to_owned();
        let parameters = parameters_of(parameters.text);
        let Some(body) = self.body(lines, &[".macro"], &[".endm", ".endmacro"]) else {
            (self.line, self.expansion.pieces) = (line, Vec::new());
            return Err((1, SourceProblem::NotEnded(".macro", ".endm")));
        };
        (self.line, self.expansion.pieces) = (line, Vec::new());
        if name.is_empty() {
            return Err((column, SourceProblem::Expected("the name of a macro")));
        }
        let parameters = parameters.map_err(|wrong| (column, wrong))?;
        let before = self.expansion.macros.insert(name.clone(), Rc::new(Macro { parameters, body }));
        if before.is_some() {
            return Err((column, SourceProblem::AgainMacro(name)));
        }
        Ok(())
    }

    /// `.rept COUNT`, `.irp NAME, VALUES`, `.irpc NAME, CHARACTERS`.
    fn repeated(
        &mut self,
        word: &str,
        rest: LineRest<'_>,
        lines: &mut LineSource<'_>,
    ) -> Result<(), (usize, SourceProblem)> {
        let line = self.line;
        let one = |name: &str, value: String| ParamValues {
            named: vec![(name.to_owned(), value)],
            ..ParamValues::default()
        };
        let parts = rest.parts();
        let head = match (word, &parts[..]) {
            (".rept" | ".rep", _) => self.number(rest).and_then(|count| {
                u64::try_from(count).map(|count| (count, Vec::new())).map_err(|_| {
                    (rest.column, SourceProblem::Expected("how often: a number that is not negative"))
                })
            }),
            (".irp", [name, values @ ..]) => {
                let values = values.iter().map(|value| one(name.text, unquoted(value.text))).collect();
                Ok((0, values))
            }
            (_, [name, values @ ..]) => {
                let text = values.first().map_or("", |value| value.text).trim_matches('"');
                Ok((0, text.chars().map(|c| one(name.text, c.to_string())).collect()))
            }
            _ => Err((rest.column, SourceProblem::Expected("a name and its value"))),
        };
        let Some(body) = self.body(lines, &[".rept", ".rep", ".irp", ".irpc"], &[".endr"]) else {
            (self.line, self.expansion.pieces) = (line, Vec::new());
            return Err((1, SourceProblem::NotEnded(".rept", ".endr")));
        };
        (self.line, self.expansion.pieces) = (line, Vec::new());
        let (count, each): (u64, Vec<ParamValues>) = head?;
        let plain = Rc::new(ParamValues { none: true, ..ParamValues::default() });
        for _ in 0..count {
            if !self.inside(&body, &plain, line)? {
                break;
            }
        }
        for values in each {
            if !self.inside(&body, &Rc::new(values), line)? {
                break;
            }
        }
        Ok(())
    }

    fn use_macro(
        &mut self,
        name: &str,
        found: &Macro,
        rest: LineRest<'_>,
    ) -> Result<(), (usize, SourceProblem)> {
        let line = self.line;
        let named = arguments(name, found, rest)?;
        let values = ParamValues { named, count: Some(self.expansion.used), none: false };
        self.expansion.used += 1;
        self.inside(&found.body, &Rc::new(values), line).map(drop)
    }

    /// Reads a body once. `false` when nothing more is to be read.
    fn inside(
        &mut self,
        body: &MacroBody,
        values: &Rc<ParamValues>,
        line: usize,
    ) -> Result<bool, (usize, SourceProblem)> {
        if self.expansion.depth >= MAX_DEPTH {
            return Err((1, SourceProblem::Depth));
        }
        if !self.spend(LINE) {
            return Ok(false);
        }
        let outermost = self.expansion.use_line.is_none();
        self.expansion.use_line.get_or_insert(line);
        self.expansion.depth += 1;
        self.block(&mut LineSource::Body { body: Rc::clone(body), at: 0, values: Rc::clone(values) });
        self.expansion.depth -= 1;
        if outermost {
            self.expansion.use_line = None;
        }
        (self.line, self.expansion.pieces) = (line, Vec::new());
        Ok(!self.expansion.stopped && !self.is_too_large())
    }

    /// A line about conditions. `live`: it stands among lines that are read.
    fn condition(
        &mut self,
        word: &str,
        rest: LineRest<'_>,
        live: bool,
        open: &mut Vec<OpenIf>,
    ) -> Result<(), (usize, SourceProblem)> {
        let not_open = || (1, SourceProblem::NotOpen(word.to_owned()));
        match word {
            ".endif" => open.pop().map(drop).ok_or_else(not_open),
            ".else" | ".elseif" => {
                let outer = open.len().checked_sub(2).and_then(|at| open.get(at)).is_none_or(|o| o.live);
                let Some(condition) = open.last_mut().filter(|condition| !condition.last) else {
                    return Err(not_open());
                };
                condition.last = word == ".else";
                let wanted = outer && !condition.taken;
                condition.live = wanted && condition.last;
                if wanted && !condition.last {
                    let holds = self.number(rest)? != 0;
                    if let Some(condition) = open.last_mut() {
                        (condition.live, condition.taken) = (holds, holds);
                    }
                }
                Ok(())
            }
            _ => {
                let line = self.line;
                let holds = if live { self.holds(word, rest) } else { Ok(false) };
                let condition = holds.as_ref().is_ok_and(|holds| *holds);
                // Of one that cannot be answered, nothing is read.
                open.push(OpenIf {
                    live: condition,
                    taken: condition || !live || holds.is_err(),
                    last: false,
                    line,
                });
                holds.map(drop)
            }
        }
    }

    /// Whether a condition holds.
    fn holds(&self, word: &str, rest: LineRest<'_>) -> Result<bool, (usize, SourceProblem)> {
        let parts = rest.parts();
        let two = || match parts[..] {
            [a, b] => Ok((a.text, b.text)),
            _ => Err((rest.column, SourceProblem::Expected("two texts with a comma between them"))),
        };
        let known = |name: &str| self.defined.contains_key(name) || self.builtin(name).is_some();
        Ok(match word {
            ".if" | ".ifne" => self.number(rest)? != 0,
            ".ifeq" => self.number(rest)? == 0,
            ".ifgt" => self.number(rest)? > 0,
            ".ifge" => self.number(rest)? >= 0,
            ".iflt" => self.number(rest)? < 0,
            ".ifle" => self.number(rest)? <= 0,
            ".ifdef" => known(rest.text),
            ".ifndef" | ".ifnotdef" => !known(rest.text),
            ".ifb" => rest.text.is_empty(),
            ".ifnb" => !rest.text.is_empty(),
            ".ifc" => two().map(|(a, b)| a == b)?,
            ".ifnc" => two().map(|(a, b)| a != b)?,
            ".ifeqs" => two().map(|(a, b)| quoted(a).is_some() && quoted(a) == quoted(b))?,
            ".ifnes" => two().map(|(a, b)| quoted(a) != quoted(b))?,
            _ => return Err((1, SourceProblem::Directive(word.to_owned()))),
        })
    }

    /// A number that is known here: what comes later may depend on it.
    fn number(&self, line: LineRest<'_>) -> Result<i64, (usize, SourceProblem)> {
        match text::expression(line.text, &PassSymbols(self)) {
            Ok((value, false, end)) if line.text[end..].trim().is_empty() => Ok(value),
            Ok((_, true, _)) => Err((line.column, SourceProblem::Expected("a number that is known here"))),
            Ok((_, _, end)) => Err((line.column_of(end), SourceProblem::Rest)),
            Err(mut wrong) => {
                wrong.column += line.column - 1;
                Err((wrong.column, SourceProblem::Instruction(wrong)))
            }
        }
    }
}

/// `a, b=5, c:req, d:vararg`; blanks may stand for commas.
fn parameters_of(text: &str) -> Result<Vec<Parameter>, SourceProblem> {
    let mut parameters: Vec<Parameter> = Vec::new();
    for (_, word) in arguments_of(text) {
        let (head, default) = match word.split_once('=') {
            Some((head, default)) => (head.trim(), Some(unquoted(default.trim()))),
            None => (word, None),
        };
        let (name, how) = head.split_once(':').unwrap_or((head, ""));
        if name.is_empty() || !matches!(how, "" | "req" | "vararg") {
            return Err(SourceProblem::Expected("parameters: NAME, NAME=VALUE, NAME:req or NAME:vararg"));
        }
        if parameters.iter().any(|known| known.name == name) || parameters.last().is_some_and(|p| p.rest) {
            return Err(SourceProblem::Expected("parameters of different names, the one with :vararg last"));
        }
        let (required, rest) = (how == "req", how == "vararg");
        parameters.push(Parameter { name: name.to_owned(), default, required, rest });
    }
    Ok(parameters)
}

/// What the parameters of a macro stand for where it is used.
fn arguments(
    name: &str,
    found: &Macro,
    rest: LineRest<'_>,
) -> Result<Vec<(String, String)>, (usize, SourceProblem)> {
    let given = arguments_of(rest.text);
    let mut values: Vec<Option<String>> = found.parameters.iter().map(|_| None).collect();
    let mut next = 0;
    for &(start, word) in &given {
        let named = word.split_once('=').and_then(|(key, value)| {
            let at = found.parameters.iter().position(|p| p.name == key.trim_end())?;
            (!value.starts_with('=')).then(|| (at, value.trim_start()))
        });
        let (at, value) = named.unwrap_or((next, word));
        let (Some(parameter), Some(slot)) = (found.parameters.get(at), values.get_mut(at)) else {
            return Err((rest.column, SourceProblem::Arguments(name.to_owned(), found.parameters.len())));
        };
        next = at + 1;
        if parameter.rest {
            let start = start + word.len().saturating_sub(value.len());
            *slot = Some(rest.text.get(start..).unwrap_or(value).to_owned());
            break;
        }
        if !value.is_empty() {
            *slot = Some(unquoted(value));
        }
    }
    let named = found.parameters.iter().zip(values).map(|(parameter, value)| {
        match value.or_else(|| parameter.default.clone()) {
            None if parameter.required => {
                Err((rest.column, SourceProblem::Lacks(name.to_owned(), parameter.name.clone())))
            }
            value => Ok((parameter.name.clone(), value.unwrap_or_default())),
        }
    });
    named.collect()
}

fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text).to_owned()
}

/// Arguments with the byte they start at: between commas, or between blanks where neither side is an operator.
fn arguments_of(text: &str) -> Vec<(usize, &str)> {
    let bytes = text.as_bytes();
    let operator = |c: u8| b"+-*/%&|^~<>=!(,".contains(&c);
    let (mut out, mut start, mut depth, mut is_quoted) = (Vec::new(), 0, 0u32, false);
    let mut push = |from: usize, to: usize| {
        let part = text.get(from..to).unwrap_or_default();
        out.push((from + part.len() - part.trim_start().len(), part.trim()));
    };
    let mut at = 0;
    while let Some(&c) = bytes.get(at) {
        match c {
            b'\\' if is_quoted => at += 1,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'(' | b'[' => depth = depth.saturating_add(1),
            b')' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                push(start, at);
                start = at + 1;
            }
            b' ' | b'\t' if depth == 0 => {
                let before = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b',');
                let blanks = bytes.iter().skip(at).take_while(|c| matches!(c, b' ' | b'\t')).count();
                let after = bytes.get(at + blanks).copied().unwrap_or(b',');
                if start < at && !operator(before) && (!operator(after) || after == b'(') {
                    push(start, at);
                    start = at + blanks;
                }
                at += blanks - 1;
            }
            _ => {}
        }
        at += 1;
    }
    if !text.trim().is_empty() {
        push(start, text.len());
    }
    out
}

/// A line of a body with values for `\name`, `\@` and `\()`; of at most about so many bytes.
fn put_in(text: &str, values: &ParamValues, most: usize, pieces: &mut Vec<TextOrigin>) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut column, mut made) = (text, 1, 1);
    while let Some(at) = rest.find('\\') {
        let (before, behind) = rest.split_at(at);
        let behind = behind.strip_prefix('\\').unwrap_or_default();
        out.push_str(before);
        let plain = before.chars().count();
        (column, made) = (column + plain, made + plain);
        let name = behind.find(|c: char| !(c.is_ascii_alphanumeric() || "_$.".contains(c)));
        let name = behind.get(..name.unwrap_or(behind.len())).unwrap_or_default();
        let of = |name: &str| {
            values.named.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        // The longest name counts; what follows it is text.
        let known = (1..=name.len()).rev().find_map(|end| Some((end, of(name.get(..end)?)?)));
        let counted = values.count.map(|count| count.to_string()).unwrap_or_default();
        let (taken, value) = match known {
            Some((end, value)) => (end, Some(value)),
            None if behind.starts_with("()") => (2, Some("")),
            None if behind.starts_with('@') && values.count.is_some() => (1, Some(counted.as_str())),
            None => (0, None),
        };
        if let Some(value) = value {
            pieces.push((made, column, true));
            out.push_str(value);
            made += value.chars().count();
            column += 1 + taken;
            pieces.push((made, column, false));
        } else {
            out.push('\\');
            (column, made) = (column + 1, made + 1);
        }
        rest = behind.get(taken..).unwrap_or_default();
        if out.len() > most {
            return out;
        }
    }
    out.push_str(rest);
    out
}
