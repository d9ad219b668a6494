//! Writes register facts in the format of [`crate::text`].
//!
//! Never: I/O. Attributes that say what is assumed anyway are left out.

use crate::model::*;
use crate::outline::STEP;
use std::fmt::Write as _;

/// Writes one file of definitions.
pub fn write_file(file: &FactsFile) -> String {
    let mut w = FactsWriter { out: String::new() };
    for item in &file.items {
        w.item(item);
    }
    w.out
}

/// Writes a device table.
pub fn write_devices(rows: &[DeviceRow]) -> String {
    let mut w = FactsWriter { out: String::new() };
    for row in rows {
        let _ = write!(
            w.out,
            "device {} gpu={} chip={:#x} gen={}",
            quoted(&row.name),
            row.gpu_id,
            row.chip_id,
            row.generation
        );
        for (key, value) in &row.properties {
            w.pair(key, value);
        }
        w.out.push('\n');
    }
    w.out
}

struct FactsWriter {
    out: String,
}

impl FactsWriter {
    fn indent(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n(' ', depth * STEP));
    }

    fn pair(&mut self, key: &str, value: &str) {
        let _ = write!(self.out, " {key}={}", quoted(value));
    }

    fn hex(&mut self, key: &str, value: Option<u64>) {
        if let Some(value) = value {
            let _ = write!(self.out, " {key}={value:#x}");
        }
    }

    fn number(&mut self, key: &str, value: Option<u64>) {
        if let Some(value) = value {
            let _ = write!(self.out, " {key}={value}");
        }
    }

    fn text(&mut self, key: &str, value: &Option<String>) {
        if let Some(value) = value {
            self.pair(key, value);
        }
    }

    fn flag(&mut self, key: &str, value: bool) {
        if value {
            self.pair(key, "yes");
        }
    }

    fn select(&mut self, select: &Select) {
        self.text("varset", &select.varset);
        self.text("variants", &select.variants);
        self.text("prefix", &select.prefix);
    }

    fn item(&mut self, item: &FactsItem) {
        match item {
            FactsItem::Import(name) => {
                let _ = writeln!(self.out, "import {}", quoted(name));
            }
            FactsItem::Enum(en) => {
                let _ = write!(self.out, "enum {}", quoted(&en.name));
                self.flag("inline", en.inline);
                self.flag("bare", en.bare);
                self.select(&en.select);
                self.out.push('\n');
                self.values(1, &en.values);
            }
            FactsItem::Bitset(set) => {
                let _ = write!(self.out, "bitset {}", quoted(&set.name));
                self.flag("inline", set.inline);
                self.flag("bare", set.bare);
                self.select(&set.select);
                self.out.push('\n');
                self.fields(1, &set.fields);
            }
            FactsItem::Group(group) => {
                let _ = writeln!(self.out, "group {}", quoted(&group.name));
                self.elems(1, &group.elems);
            }
            FactsItem::Spectype(spec) => {
                let _ = write!(self.out, "type {}", quoted(&spec.name));
                self.ty(&spec.ty, Some((0, 0)));
                self.type_inner(1, &spec.ty);
            }
            FactsItem::Domain(domain) => {
                let _ = write!(self.out, "domain {} width={}", quoted(&domain.name), domain.width);
                self.hex("size", domain.size);
                self.flag("bare", domain.bare);
                self.select(&domain.select);
                self.out.push('\n');
                self.elems(1, &domain.elems);
            }
        }
    }

    fn elems(&mut self, depth: usize, elems: &[DomainElem]) {
        for elem in elems {
            self.indent(depth);
            match elem {
                DomainElem::Use(name) => {
                    let _ = writeln!(self.out, "use {}", quoted(name));
                }
                DomainElem::Reg(reg) => {
                    let _ = write!(self.out, "reg{} {:#x} {}", reg.width, reg.offset, quoted(&reg.name));
                    if let Some(name) = &reg.ty.name {
                        let _ = write!(self.out, " {}", quoted(name));
                    }
                    self.number("length", (reg.length != 1).then_some(reg.length));
                    self.hex("stride", (reg.stride != 0).then_some(reg.stride));
                    self.type_rest(&reg.ty, Some((0, reg.width.saturating_sub(1))));
                    self.text("access", &reg.access);
                    self.select(&reg.select);
                    self.text("usage", &reg.usage);
                    self.out.push('\n');
                    self.type_inner(depth + 1, &reg.ty);
                }
                DomainElem::Block(block) => self.block(depth, block),
            }
        }
    }

    fn block(&mut self, depth: usize, block: &RegBlock) {
        let kind = match block.kind {
            RegBlockKind::Array => "array",
            RegBlockKind::Stripe => "stripe",
        };
        let _ = write!(self.out, "{kind} {:#x}", block.offset);
        if let Some(name) = &block.name {
            let _ = write!(self.out, " {}", quoted(name));
        }
        if !block.offsets.is_empty() {
            let list: Vec<String> = block.offsets.iter().map(|o| format!("{o:#x}")).collect();
            self.pair("offsets", &list.join(","));
        }
        self.text("doffset", &block.doffset);
        if !block.doffsets.is_empty() {
            self.pair("doffsets", &block.doffsets.join(","));
        }
        self.hex("stride", (block.stride != 0).then_some(block.stride));
        self.number("length", (block.length != 1).then_some(block.length));
        self.text("index", &block.index);
        self.select(&block.select);
        self.text("usage", &block.usage);
        self.out.push('\n');
        self.elems(depth + 1, &block.elems);
    }

    fn fields(&mut self, depth: usize, fields: &[BitField]) {
        for field in fields {
            self.indent(depth);
            self.bits(field.ty.low, field.ty.high);
            let _ = write!(self.out, " {}", quoted(&field.name));
            self.ty(&field.ty, None);
            // `ty` ends the line; the variants belong before that.
            self.out.pop();
            self.select(&field.select);
            self.out.push('\n');
            self.type_inner(depth + 1, &field.ty);
        }
    }

    fn values(&mut self, depth: usize, values: &[EnumValue]) {
        for value in values {
            self.indent(depth);
            let _ = write!(self.out, "{} = ", quoted(&value.name));
            let _ = match value.value {
                Some(n) if n < 10 => write!(self.out, "{n}"),
                Some(n) => write!(self.out, "{n:#x}"),
                None => write!(self.out, "-"),
            };
            self.select(&value.select);
            self.out.push('\n');
        }
    }

    fn bits(&mut self, low: u32, high: u32) {
        let _ = if low == high { write!(self.out, "{low}") } else { write!(self.out, "{high}:{low}") };
    }

    fn ty(&mut self, ty: &TypeSpec, usual: Option<(u32, u32)>) {
        if let Some(name) = &ty.name {
            let _ = write!(self.out, " {}", quoted(name));
        }
        self.type_rest(ty, usual);
        self.out.push('\n');
    }

    /// `usual` are the bits that need no saying; `None` where the line opens with them.
    fn type_rest(&mut self, ty: &TypeSpec, usual: Option<(u32, u32)>) {
        if usual.is_some_and(|usual| usual != (ty.low, ty.high)) {
            self.out.push_str(" bits=");
            self.bits(ty.low, ty.high);
        }
        self.number("shr", (ty.shr != 0).then_some(ty.shr.into()));
        self.number("radix", ty.radix);
        self.number("align", ty.align);
        self.number("min", ty.min);
        self.number("max", ty.max);
        self.flag("addvariant", ty.addvariant);
    }

    fn type_inner(&mut self, depth: usize, ty: &TypeSpec) {
        self.fields(depth, &ty.fields);
        self.values(depth, &ty.values);
    }
}

fn quoted(text: &str) -> std::borrow::Cow<'_, str> {
    let plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '#' | '=' | '\\');
    if !text.is_empty() && text.chars().all(plain) {
        return text.into();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out.into()
}
