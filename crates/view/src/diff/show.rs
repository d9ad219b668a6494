//! Differences as text and as JSON lines. Never: what differs.

use super::DiffLevel;
use crate::Style;
use crate::json::Hex;
use crate::plural::counted;
use crate::streams::RegisterSet;
use serde::Serialize;
use std::io::Write;
use unwedge_hw::{Palette, ValueType, Variants};
use unwedge_stream::adreno::StateType;
use unwedge_stream::compare::{
    Comparison, Difference, Mark, Pairing, Record, Slot, Stretch, Subject, SubjectValue,
};
use unwedge_stream::query::Pass;

/// Names listed in a row; the rest is counted.
const NAMES_SHOWN: usize = 6;
/// Draws that only one side has, listed one by one.
const DRAWS_SHOWN: usize = 12;

/// Shows differences on a generation.
#[derive(Clone, Copy)]
pub struct Show<'d> {
    /// Names registers.
    pub registers: RegisterSet<'d>,
    /// How text may style.
    pub style: Style,
}

const STAGE_NAMES: [&str; 6] = ["VS", "HS", "DS", "GS", "FS", "CS"];

const STATE_NAMES: [(StateType, &str); 10] = [
    (StateType::Sampler, "samplers"),
    (StateType::TexConst, "textures"),
    (StateType::Shader, "shader"),
    (StateType::Constants, "constants"),
    (StateType::Ssbo0, "SSBOs"),
    (StateType::Ssbo1, "SSBO sizes"),
    (StateType::Ssbo2, "SSBO addresses"),
    (StateType::Ubo, "UBOs"),
    (StateType::Unknown2, "state of an unknown kind"),
    (StateType::Unknown, "state of an unknown kind"),
];

/// What a difference is about, in words.
fn name(registers: RegisterSet<'_>, subject: Subject) -> String {
    let stage = |i: u8| STAGE_NAMES.get(usize::from(i)).copied().unwrap_or("?");
    match subject {
        Subject::Count => "draw.count".to_owned(),
        Subject::Instances => "draw.instances".to_owned(),
        Subject::Pass => "pass".to_owned(),
        Subject::Shader(i) => format!("{} code", stage(i)),
        Subject::Load(Slot { stage: of, ty, dst }) => {
            let what = STATE_NAMES.iter().find(|(t, _)| *t as u8 == ty).map_or("state", |(_, name)| *name);
            format!("{} {what} from {dst}", of.map_or("shared", stage))
        }
        Subject::Register(reg) => registers.name(reg),
    }
}

/// A part of a register that differs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RegisterPart {
    /// The field; `None` for what is in no field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Its value in the first.
    pub a: Option<String>,
    /// In the second.
    pub b: Option<String>,
}

/// What of two values of a register differs: the fields, or the whole of one without fields.
pub(super) fn value_parts(ty: Option<ValueType<'_>>, a: u64, b: u64, palette: &Palette) -> Vec<RegisterPart> {
    let Some(ty) = ty.filter(|ty| ty.is_bitset()) else {
        let (a, b) = (Some(written(ty, a, palette)), Some(written(ty, b, palette)));
        return vec![RegisterPart { field: None, a, b }];
    };
    let changed = a ^ b;
    let mut parts = Vec::new();
    let mut rest = changed;
    for (name, field) in ty.fields().filter(|(_, field)| changed & field.mask() != 0) {
        rest &= !field.mask();
        let text = |bits: u64| written(Some(field), bits & field.mask(), palette);
        parts.push(RegisterPart { field: Some(name.to_owned()), a: Some(text(a)), b: Some(text(b)) });
    }
    if rest != 0 {
        let text = |bits: u64| format!("{:#x}", bits & rest);
        parts.push(RegisterPart { field: None, a: Some(text(a)), b: Some(text(b)) });
    }
    parts
}

/// What of two values differs: of a register with fields these, else the whole.
fn parts(
    registers: RegisterSet<'_>,
    subject: Subject,
    stretch: &Stretch,
    palette: &Palette,
) -> Vec<RegisterPart> {
    let ty = match subject {
        Subject::Register(reg) => registers.ty(reg),
        _ => None,
    };
    let (a, b) = stretch.values;
    if let (Some(ty), Some(a), Some(b)) = (ty.filter(|ty| ty.is_bitset()), a, b) {
        return value_parts(Some(ty), a.bits, b.bits, palette);
    }
    let text = |value: SubjectValue| match subject {
        Subject::Shader(_) | Subject::Load(_) => {
            // The low half tells contents apart well enough for people.
            format!("{} #{:08x}", counted(value.dwords.into(), "dword", "dwords"), value.bits as u32)
        }
        Subject::Count | Subject::Instances => value.bits.to_string(),
        Subject::Pass => {
            let pass = usize::try_from(value.bits).ok().and_then(|i| Pass::ALL.get(i));
            pass.map_or("unknown", |pass| pass.name()).to_owned()
        }
        Subject::Register(_) if value.whole => written(ty, value.bits, palette),
        Subject::Register(_) => format!("{} (one half unknown)", written(ty, value.bits, palette)),
    };
    vec![RegisterPart { field: None, a: a.map(text), b: b.map(text) }]
}

fn written(ty: Option<ValueType<'_>>, bits: u64, palette: &Palette) -> String {
    match ty {
        Some(ty) => {
            let mut out = Vec::new();
            ty.write(bits, &mut Variants::default(), palette, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
        None => format!("{bits:#010x}"),
    }
}

/// `3..17`, `3`
fn range(first: u32, last: u32) -> String {
    if first == last { first.to_string() } else { format!("{first}..{last}") }
}

fn numbers(draws: &[Mark], indices: impl Iterator<Item = usize>) -> Vec<u32> {
    indices.filter_map(|i| draws.get(i)).map(|mark| mark.number).collect()
}

/// Numbers of the draws that only one of them has.
fn lonely(a: &Record, b: &Record, comparison: &Comparison) -> (Vec<u32>, Vec<u32>) {
    let only_a =
        comparison.pairs.iter().filter_map(|p| if let Pairing::OnlyA(i) = p { Some(*i) } else { None });
    let only_b =
        comparison.pairs.iter().filter_map(|p| if let Pairing::OnlyB(j) = p { Some(*j) } else { None });
    (numbers(&a.draws, only_a), numbers(&b.draws, only_b))
}

/// Sizes of buffers that one has more often than the other.
fn sizes(a: &Record, b: &Record) -> (Vec<u64>, Vec<u64>) {
    let sorted = |record: &Record| {
        let mut sizes: Vec<u64> = record.buffers.iter().map(|&(_, size)| size).collect();
        sizes.sort_unstable();
        sizes
    };
    let (mut of_a, mut of_b) = (sorted(a).into_iter().peekable(), sorted(b).into_iter().peekable());
    let (mut only_a, mut only_b) = (Vec::new(), Vec::new());
    loop {
        match (of_a.peek(), of_b.peek()) {
            (Some(x), Some(y)) if x == y => {
                of_a.next();
                of_b.next();
            }
            (Some(x), Some(y)) if x < y => only_a.extend(of_a.next()),
            (_, Some(_)) => only_b.extend(of_b.next()),
            (Some(_), None) => only_a.extend(of_a.next()),
            (None, None) => return (only_a, only_b),
        }
    }
}

/// Something differs, beyond where buffers lie.
pub fn differs(a: &Record, b: &Record, comparison: &Comparison, level: DiffLevel) -> bool {
    let (only_a, only_b) = lonely(a, b, comparison);
    let buffers = level != DiffLevel::Draw && sizes(a, b) != (Vec::new(), Vec::new());
    !only_a.is_empty()
        || !only_b.is_empty()
        || buffers
        || comparison.differences.values().any(|d| !d.same_place)
}

impl Show<'_> {
    /// Two submits or draws in full.
    pub fn text(
        &self,
        a: &Record,
        b: &Record,
        comparison: &Comparison,
        level: DiffLevel,
        out: &mut dyn Write,
    ) {
        let palette = self.style.palette();
        if level != DiffLevel::Draw {
            self.counts(a, b, comparison, out);
        }
        let mut moved = Vec::new();
        for (&subject, difference) in &comparison.differences {
            if difference.same_place {
                moved.push(name(self.registers, subject));
                continue;
            }
            let title = self.style.bold(&name(self.registers, subject));
            let _ = writeln!(out, "{title}");
            for stretch in &difference.stretches {
                let place = if level == DiffLevel::Draw { String::new() } else { draws(stretch) };
                for part in parts(self.registers, subject, stretch, &palette) {
                    let field = part.field.map(|field| format!("{field}: ")).unwrap_or_default();
                    let value = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
                    let _ = writeln!(out, "    {place}{field}{} -> {}", value(part.a), value(part.b));
                }
            }
            let more = difference.stretches_in_all.saturating_sub(difference.stretches.len() as u64);
            if more > 0 {
                let _ = writeln!(
                    out,
                    "    and {} more, {} in all",
                    counted(more, "time", "times"),
                    counted(difference.draws, "draw", "draws")
                );
            }
        }
        if !moved.is_empty() {
            let _ = writeln!(out, "the same place in buffers that lie elsewhere: {}", some(&moved));
        }
        if !differs(a, b, comparison, level) {
            let _ = writeln!(out, "no difference");
        }
    }

    fn counts(&self, a: &Record, b: &Record, comparison: &Comparison, out: &mut dyn Write) {
        let (only_a, only_b) = lonely(a, b, comparison);
        let both = comparison.pairs.len() - only_a.len() - only_b.len();
        let _ = writeln!(out, "draws: {} | {}, {both} of both", a.draws.len(), b.draws.len());
        for (side, only) in [("A", only_a), ("B", only_b)] {
            if !only.is_empty() {
                let shown: Vec<String> = only.iter().take(DRAWS_SHOWN).map(u32::to_string).collect();
                let more = only.len() - shown.len();
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let _ = writeln!(out, "    only {side}: {}{more}", shown.join(", "));
            }
        }
        let bytes =
            |record: &Record| record.buffers.iter().fold(0_u64, |sum, &(_, size)| sum.saturating_add(size));
        let _ = writeln!(
            out,
            "buffers: {} of {} | {} of {}",
            a.buffers.len(),
            counted(bytes(a), "byte", "bytes"),
            b.buffers.len(),
            counted(bytes(b), "byte", "bytes")
        );
        let (more_a, more_b) = sizes(a, b);
        for (side, more) in [("A", more_a), ("B", more_b)] {
            if !more.is_empty() {
                let list: Vec<String> = more.iter().map(u64::to_string).collect();
                let _ = writeln!(out, "    only {side}: {} bytes", some(&list));
            }
        }
    }

    /// Two submits in a line. Returns whether they differ.
    pub fn line(&self, a: &Record, b: &Record, comparison: &Comparison, out: &mut dyn Write) {
        let names: Vec<String> = comparison
            .differences
            .iter()
            .filter(|(_, difference)| !difference.same_place)
            .map(|(&subject, _)| name(self.registers, subject))
            .collect();
        let (only_a, only_b) = lonely(a, b, comparison);
        let mut what = Vec::new();
        if !only_a.is_empty() || !only_b.is_empty() {
            what.push(format!(
                "{} only in A, {} only in B",
                counted(only_a.len() as u64, "draw", "draws"),
                only_b.len()
            ));
        }
        let (more_a, more_b) = sizes(a, b);
        if !more_a.is_empty() || !more_b.is_empty() {
            what.push(format!(
                "buffers: {} only in A, {} only in B",
                counted(more_a.len() as u64, "size", "sizes"),
                more_b.len()
            ));
        }
        if !names.is_empty() {
            what.push(some(&names));
        }
        let which =
            if a.submit == b.submit { a.submit.to_string() } else { format!("{} | {}", a.submit, b.submit) };
        let which = match (&*a.name, &*b.name) {
            ("", "") => format!("submit {which}"),
            (of_a, of_b) if of_a == of_b => format!("ring {which}, {of_a}"),
            (of_a, of_b) => format!("ring {which}, {of_a} | {of_b}"),
        };
        let draws = format!("{} | {}", a.draws.len(), counted(b.draws.len() as u64, "draw", "draws"));
        let _ = writeln!(out, "{which}, {draws}: {}", what.join("; "));
    }

    /// Two submits or draws as a line of JSON.
    pub fn json(&self, a: &Record, b: &Record, comparison: &Comparison, level: DiffLevel) -> impl Serialize {
        let (only_a, only_b) = lonely(a, b, comparison);
        let both = comparison.pairs.len() - only_a.len() - only_b.len();
        let (sizes_a, sizes_b) = sizes(a, b);
        let difference = |(&subject, d): (&Subject, &Difference)| DifferenceLine {
            name: name(self.registers, subject),
            offset: match subject {
                Subject::Register(reg) => self.registers.offset(reg).map(Hex::offset),
                _ => None,
            },
            draws: d.draws,
            same_place: d.same_place,
            stretches_in_all: d.stretches_in_all,
            stretches: d.stretches.iter().map(|s| self.stretch(subject, s)).collect(),
        };
        SubmitLine {
            ty: if level == DiffLevel::Draw { "draw" } else { "submit" },
            a: a.submit,
            b: b.submit,
            stream_a: Some(a.name.clone()).filter(|name| !name.is_empty()),
            stream_b: Some(b.name.clone()).filter(|name| !name.is_empty()),
            differs: differs(a, b, comparison, level),
            draws_in_both: both,
            draws_only_in_a: only_a,
            draws_only_in_b: only_b,
            buffer_sizes_only_in_a: sizes_a,
            buffer_sizes_only_in_b: sizes_b,
            differences: comparison.differences.iter().map(difference).collect(),
        }
    }

    fn stretch(&self, subject: Subject, stretch: &Stretch) -> StretchLine {
        let raw = |value: Option<SubjectValue>| {
            value.map(|v| match subject {
                Subject::Register(reg) if !self.registers.is_wide(reg) => Hex::dword(v.bits as u32),
                _ => Hex::wide(v.bits),
            })
        };
        StretchLine {
            draws_a: [stretch.first.0, stretch.last.0],
            draws_b: [stretch.first.1, stretch.last.1],
            a: raw(stretch.values.0),
            b: raw(stretch.values.1),
            parts: parts(self.registers, subject, stretch, &Palette::default()),
        }
    }
}

/// `draws 3..17: `, `draws 3..17 | 4..18: `
fn draws(stretch: &Stretch) -> String {
    let a = range(stretch.first.0, stretch.last.0);
    let b = range(stretch.first.1, stretch.last.1);
    if a == b { format!("draws {a}: ") } else { format!("draws {a} | {b}: ") }
}

/// The first names, and how many more there are.
fn some(names: &[String]) -> String {
    let shown = names.get(..names.len().min(NAMES_SHOWN)).unwrap_or_default().join(", ");
    let more = names.len().saturating_sub(NAMES_SHOWN);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SubmitLine {
    #[serde(rename = "type")]
    ty: &'static str,
    a: u32,
    b: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_a: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_b: Option<String>,
    differs: bool,
    draws_in_both: usize,
    draws_only_in_a: Vec<u32>,
    draws_only_in_b: Vec<u32>,
    buffer_sizes_only_in_a: Vec<u64>,
    buffer_sizes_only_in_b: Vec<u64>,
    differences: Vec<DifferenceLine>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DifferenceLine {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Hex>,
    draws: u64,
    same_place: bool,
    stretches_in_all: u64,
    stretches: Vec<StretchLine>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StretchLine {
    draws_a: [u32; 2],
    draws_b: [u32; 2],
    a: Option<Hex>,
    b: Option<Hex>,
    parts: Vec<RegisterPart>,
}

crate::schema::shapes!(lines: SubmitLine);
