//! Words to text.

use super::table::{AttrArg, AttrCondition, InstrAttr, WordField, WordForm, alu, cf, fetch};
use std::fmt::Write;
use unwedge_base::Dwords;

/// Kinds of shader: they name their exports differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShaderStage {
    /// Vertex shader.
    Vertex,
    /// Fragment shader.
    Fragment,
}

/// How to list a shader.
#[derive(Clone, Copy, Debug)]
pub struct Ir2ListingOptions {
    /// Whose exports to name.
    pub stage: ShaderStage,
    /// Tabs in front of each line.
    pub tabs: usize,
    /// Show the words beside the text.
    pub words: bool,
    /// Show in braces what Mesa's text leaves out, and list words that nothing runs: then the text assembles to the
    /// same words.
    pub complete: bool,
}

/// Lists a shader. Any words give a text; what an EXEC runs beyond the end is listed as `absent`.
pub fn listing(code: Dwords<'_>, how: &Ir2ListingOptions) -> String {
    let mut lister =
        Ir2Lister { code, how, out: String::new(), used: vec![false; super::REACH.min(code.len())] };
    let slots = lister.flow_slots();
    for index in 0..2 * slots {
        lister.flow(index);
    }
    if how.complete {
        lister.rest();
    }
    lister.out
}

struct Ir2Lister<'a> {
    code: Dwords<'a>,
    how: &'a Ir2ListingOptions,
    out: String,
    used: Vec<bool>,
}

/// Writing to a string does not fail.
macro_rules! put {
    ($out:expr, $($what:tt)*) => {{
        let _ = write!($out, $($what)*);
    }};
}

impl Ir2Lister<'_> {
    /// The 96 bits at an instruction address.
    fn triple(&self, slot: usize) -> Option<[u32; 3]> {
        let at = slot.checked_mul(3)?;
        Some([self.code.get(at)?, self.code.get(at + 1)?, self.code.get(at + 2)?])
    }

    fn flow_word(&self, index: usize) -> Option<u128> {
        let both = wide(self.triple(index / 2)?);
        Some(both >> (48 * (index % 2)) & 0xffff_ffff_ffff)
    }

    /// How many instruction addresses control flow takes: up to the first instruction that it runs.
    fn flow_slots(&self) -> usize {
        let present = self.code.len().min(super::REACH) / 3;
        (0..2 * present)
            .filter_map(|index| self.flow_word(index))
            .find(|word| opcode(*word).2)
            .map_or(present, |word| small(cf::ADDRESS.get(word)).min(present))
    }

    fn flow(&mut self, index: usize) {
        let Some(word) = self.flow_word(index) else { return };
        self.mark(index / 2);
        let (name, form, runs) = opcode(word);
        self.tabs();
        if self.how.words {
            let part = |n: u32| (word >> (16 * n)) & 0xffff;
            put!(self.out, "    {:04x} {:04x} {:04x}            \t", part(0), part(1), part(2));
        }
        self.out.push_str(name);
        let mut shown = cf::OPCODE.mask() | attrs(&mut self.out, form, word);
        let count = if runs { small(cf::COUNT.get(word)) } else { 0 };
        let sequence = if runs { cf::SERIALIZE.get(word) } else { 0 };
        if runs && sequence >> (2 * count.min(6)) == 0 {
            shown |= cf::SERIALIZE.mask();
        }
        self.braces(form, word, shown);
        self.out.push('\n');
        for i in 0..count {
            let kind = sequence >> (2 * i);
            self.instruction(small(cf::ADDRESS.get(word)) + i, kind & 1 != 0, kind & 2 != 0);
        }
    }

    fn instruction(&mut self, slot: usize, is_fetch: bool, wait: bool) {
        let words = self.triple(slot);
        self.tabs();
        if self.how.words {
            match words {
                Some([a, b, c]) => put!(self.out, "{slot:02x}: {a:08x} {b:08x} {c:08x}\t"),
                None => put!(self.out, "{slot:02x}: -------- -------- --------\t"),
            }
        }
        self.out.push_str(if wait { "   (S)" } else { "      " });
        self.out.push_str(if is_fetch { "FETCH:\t" } else { "ALU:\t" });
        match words {
            None => self.out.push_str("absent"),
            Some(words) => {
                self.mark(slot);
                let word = wide(words);
                if is_fetch { self.fetch(word) } else { self.alu(word) }
            }
        }
        self.out.push('\n');
    }

    fn fetch(&mut self, word: u128) {
        let opcode = fetch::OPCODE.get(word);
        let form = fetch::form(opcode);
        let mut shown = fetch::PREDICATED.mask() | fetch::SRC.mask() | fetch::DST.mask();
        match fetch::OPCODES.iter().find(|(code, _)| u128::from(*code) == opcode) {
            Some((_, name)) => {
                shown |= fetch::OPCODE.mask();
                self.out.push_str(name);
            }
            None => self.out.push_str(fetch::OTHER),
        }
        if fetch::PREDICATED.get(word) != 0 {
            shown |= fetch::CONDITION.mask();
            self.out.push_str(if fetch::CONDITION.get(word) != 0 { "EQ" } else { "NE" });
        }
        put!(self.out, "\tR{}.", fetch::DST.get(word));
        shown |= fetch::DST_SWIZZLE.mask();
        channels(&mut self.out, fetch::DST_SWIZZLE.get(word), 4, 3);
        put!(self.out, " = R{}.", fetch::SRC.get(word));
        let (swizzle, count) =
            if opcode == 0 { (&fetch::VERTEX_SWIZZLE, 1) } else { (&fetch::TEXTURE_SWIZZLE, 3) };
        shown |= swizzle.mask();
        channels(&mut self.out, swizzle.get(word), count, 2);
        shown |= attrs(&mut self.out, form, word);
        self.braces(form, word, shown);
    }

    fn alu(&mut self, word: u128) {
        let (vector, scalar) = (&alu::VECTOR, &alu::SCALAR);
        let mut shown = half(vector) & !vector.opcode.mask() | alu::EXPORT.mask();
        let known = alu::VECTOR_OPCODES.get(small(vector.opcode.get(word)));
        let (name, operands) = known.copied().unwrap_or(("(null)", 0));
        if known.is_some() {
            shown |= vector.opcode.mask();
        }
        self.out.push_str(name);
        match alu::PREDICATE.get(word) {
            0 | 1 => {}
            condition => {
                shown |= alu::PREDICATE.mask();
                self.out.push_str(if condition == 3 { "EQ" } else { "NE" });
            }
        }
        self.out.push('\t');
        let sources: &[&alu::AluSource] = match operands {
            3 => &[&alu::SRC3, &alu::SRC1, &alu::SRC2],
            2 => &[&alu::SRC1, &alu::SRC2],
            _ => &[&alu::SRC1],
        };
        shown |= self.operation(vector, sources, word);
        let both = scalar.mask.get(word) != 0 || vector.mask.get(word) == 0;
        if !both {
            self.braces(&alu::ALU, word, shown);
        }
        self.export_comment(vector, word);
        if !both {
            return;
        }
        self.out.push('\n');
        self.tabs();
        if self.how.words {
            self.out.push_str("                          \t");
        }
        self.out.push_str("\t    \t");
        let opcode = scalar.opcode.get(word);
        match alu::SCALAR_OPCODES.get(small(opcode)).copied().flatten() {
            Some(name) => self.out.push_str(name),
            None => put!(self.out, "OP({opcode})"),
        }
        self.out.push('\t');
        shown |= half(scalar) | self.operation(scalar, &[&alu::SRC3], word);
        self.braces(&alu::ALU, word, shown);
        self.export_comment(scalar, word);
    }

    /// `R1.xy__ = R2, C3 CLAMP`: gives the bits of the operands.
    fn operation(&mut self, half: &alu::AluResult, sources: &[&alu::AluSource], word: u128) -> u128 {
        let export = alu::EXPORT.get(word) != 0;
        put!(self.out, "{}{}", if export { "export" } else { "R" }, half.dst.get(word));
        let mask = half.mask.get(word);
        if mask != 0xf {
            self.out.push('.');
            for (i, channel) in "xyzw".chars().enumerate() {
                self.out.push(if mask >> i & 1 != 0 { channel } else { '_' });
            }
        }
        let mut shown = 0;
        for (i, source) in sources.iter().enumerate() {
            self.out.push_str(if i == 0 { " = " } else { ", " });
            let abs = if source.abs.get(word) != 0 { "|" } else { "" };
            let bank = if source.register.get(word) != 0 { 'R' } else { 'C' };
            let sign = if source.negate.get(word) != 0 { "-" } else { "" };
            put!(self.out, "{sign}{abs}{bank}{}", source.number.get(word));
            let swizzle = source.swizzle.get(word);
            if swizzle != 0 {
                self.out.push('.');
                for i in 0..4 {
                    self.out.push(char::from(b"xyzw"[small((swizzle >> (2 * i)) + i) & 3]));
                }
            }
            self.out.push_str(abs);
            shown |= source.number.mask() | source.register.mask() | source.swizzle.mask();
            shown |= source.negate.mask() | source.abs.mask();
        }
        if half.clamp.get(word) != 0 {
            self.out.push_str(" CLAMP");
        }
        shown
    }

    fn export_comment(&mut self, half: &alu::AluResult, word: u128) {
        if alu::EXPORT.get(word) == 0 {
            return;
        }
        let name = match (self.how.stage, half.dst.get(word)) {
            (ShaderStage::Vertex, 62) => "gl_Position",
            (ShaderStage::Vertex, 63) => "gl_PointSize",
            (ShaderStage::Fragment, 0) => "gl_FragColor",
            _ => return,
        };
        put!(self.out, "\t; {name}");
    }

    /// The fields that the text so far does not tell.
    fn braces(&mut self, form: &WordForm, word: u128, shown: u128) {
        if !self.how.complete {
            return;
        }
        let mut open = " {";
        for field in form.fields {
            let value = field.get(word);
            if shown & field.mask() == 0 && value != u128::from(field.rest) {
                put!(self.out, "{open}{}=0x{value:x}", field.name);
                open = ", ";
            }
        }
        if open == ", " {
            self.out.push('}');
        }
    }

    /// Words that are neither control flow nor run by it.
    fn rest(&mut self) {
        let mut previous = None;
        for at in (0..self.code.stored().len()).filter(|at| !self.used.get(*at).is_some_and(|used| *used)) {
            let Some(word) = self.code.get(at) else { continue };
            if previous != at.checked_sub(1) || previous.is_none() {
                put!(self.out, "{}.at 0x{at:x}\n", "\t".repeat(self.how.tabs));
            }
            put!(self.out, "{}.word 0x{word:08x}\n", "\t".repeat(self.how.tabs));
            previous = Some(at);
        }
    }

    fn mark(&mut self, slot: usize) {
        if let Some(used) = self.used.get_mut(3 * slot..3 * slot + 3) {
            used.fill(true);
        }
    }

    fn tabs(&mut self) {
        self.out.extend(std::iter::repeat_n('\t', self.how.tabs));
    }
}

fn wide([a, b, c]: [u32; 3]) -> u128 {
    u128::from(a) | u128::from(b) << 32 | u128::from(c) << 64
}

/// The value of a field of at most 16 bits.
fn small(value: u128) -> usize {
    (value & 0xffff) as usize
}

fn opcode(word: u128) -> (&'static str, &'static WordForm, bool) {
    cf::OPCODES[small(cf::OPCODE.get(word)) & 15]
}

fn half(half: &alu::AluResult) -> u128 {
    half.opcode.mask() | half.dst.mask() | half.mask.mask() | half.clamp.mask()
}

fn channels(out: &mut String, swizzle: u128, count: u32, width: u32) {
    for i in 0..count {
        out.push(char::from(super::CHANNELS[small(swizzle >> (width * i)) & ((1 << width) - 1)]));
    }
}

/// Prints the attributes that are there, and gives the bits they tell.
fn attrs(out: &mut String, form: &WordForm, word: u128) -> u128 {
    let is = |field: &WordField, value: u8| field.get(word) == u128::from(value);
    let mut shown = 0;
    for InstrAttr { word: keyword, when, args } in form.attrs {
        let there = match when {
            AttrCondition::Always => true,
            AttrCondition::Not(field, value) => !is(field, *value),
            AttrCondition::Is(field, value) => {
                shown |= field.mask();
                is(field, *value)
            }
            AttrCondition::Any => args.iter().any(|arg| !is(arg.field(), 0)),
        };
        if !there {
            continue;
        }
        out.push(' ');
        out.push_str(keyword);
        let name_of = |names: &'static [(u8, &'static str)], value: u128| {
            names.iter().find(|(v, _)| u128::from(*v) == value).map(|(_, name)| *name)
        };
        for (i, arg) in args.iter().enumerate() {
            let value = arg.field().get(word);
            shown |= arg.field().mask();
            if let AttrArg::Choice(_, names, other) = arg {
                match name_of(names, value) {
                    Some(name) => out.push_str(name),
                    None => put!(out, "{other}(0x{value:x})"),
                }
                continue;
            }
            out.push_str(match (i, args.len()) {
                (0, _) => "(",
                (_, 2) => ", ",
                _ => ",",
            });
            match arg {
                AttrArg::Hex(_) => put!(out, "0x{value:x}"),
                AttrArg::Name(_, names) if name_of(names, value).is_some() => {
                    out.push_str(name_of(names, value).unwrap_or_default());
                }
                _ => put!(out, "{value}"),
            }
            if i + 1 == args.len() {
                out.push(')');
            }
        }
    }
    shown
}
