//! The project's own format for register facts: one definition per line, nesting by indentation.
//!
//! ```text
//! import adreno_common
//! enum a3xx_tile_mode
//!   LINEAR = 0
//! domain A3XX width=32
//!   array 0x20c4 RB_MRT stride=4 length=4
//!     reg32 0x0 CONTROL usage=rp_blit
//!       3 READ_DEST_ENABLE boolean
//!       11:8 ROP_CODE a3xx_rop_code
//! ```
//!
//! A definition opens with a word (`enum`, `bitset`, `domain`, `group`, `type`, `reg32`, `array`, `stripe`, `use`), a
//! field with its bits, an enum value with `NAME = NUMBER` (`-` where it has only a name). A word after the name is the
//! type; everything else is `key=value`. `"…"` encloses what has spaces; `#` starts a comment.
//!
//! Never: I/O, resolving names. Reading what `text_writer` wrote gives back the same facts.

use crate::model::*;
use crate::outline::{OutlineLine, OutlineReader, OutlineWords, Result};

/// Reads one file of definitions; `file` names it in errors and in imports.
///
/// # Errors
///
/// [`FactsTextError`](crate::FactsTextError) with line and column of the first word that the grammar of
/// definitions does not allow.
pub fn read_file(file: &str, text: &str) -> Result<FactsFile> {
    let reader = OutlineReader { file };
    let lines = reader.outline(text)?;
    let mut items = Vec::new();
    for line in &lines {
        items.push(reader.item(line)?);
    }
    Ok(FactsFile { name: file.to_string(), items })
}

/// Reads a device table.
///
/// # Errors
///
/// The first line that is not a `device` with known attributes, as line, column and what was expected.
pub fn read_devices(file: &str, text: &str) -> Result<Vec<DeviceRow>> {
    let reader = OutlineReader { file };
    let mut rows = Vec::new();
    for line in &reader.outline(text)? {
        let mut words = reader.words(line)?;
        words.keyword("device")?;
        let name = words.name()?;
        let mut row = DeviceRow { name, ..DeviceRow::default() };
        while let Some((key, value, token)) = words.attribute()? {
            match key {
                "gpu" => row.gpu_id = reader.small(line, token, value)?,
                "chip" => row.chip_id = reader.number(line, token, value)?,
                "gen" => row.generation = reader.small(line, token, value)?,
                _ => row.properties.push((key.to_string(), value.to_string())),
            }
        }
        reader.leaf(line)?;
        rows.push(row);
    }
    Ok(rows)
}

impl<'a> OutlineReader<'a> {
    fn item(&self, line: &OutlineLine) -> Result<FactsItem> {
        let mut words = self.words(line)?;
        let (kind, column) = words.word("a definition")?;
        match kind {
            "import" => {
                let name = words.name()?;
                words.end()?;
                self.leaf(line)?;
                Ok(FactsItem::Import(name))
            }
            "enum" => {
                let mut en = EnumItem { name: words.name()?, ..EnumItem::default() };
                while let Some((key, value, at)) = words.attribute()? {
                    match key {
                        "inline" => en.inline = self.flag(line, at, value)?,
                        "bare" => en.bare = self.flag(line, at, value)?,
                        _ if select(&mut en.select, key, value) => {}
                        _ => return self.unknown(line, at, "inline, bare, varset, variants, prefix"),
                    }
                }
                for inner in &line.inner {
                    en.values.push(self.value(inner)?);
                }
                Ok(FactsItem::Enum(en))
            }
            "bitset" => {
                let mut set = BitsetItem { name: words.name()?, ..BitsetItem::default() };
                while let Some((key, value, at)) = words.attribute()? {
                    match key {
                        "inline" => set.inline = self.flag(line, at, value)?,
                        "bare" => set.bare = self.flag(line, at, value)?,
                        _ if select(&mut set.select, key, value) => {}
                        _ => return self.unknown(line, at, "inline, bare, varset, variants, prefix"),
                    }
                }
                for inner in &line.inner {
                    set.fields.push(self.field(inner)?);
                }
                Ok(FactsItem::Bitset(set))
            }
            "group" => {
                let name = words.name()?;
                words.end()?;
                Ok(FactsItem::Group(GroupItem { name, elems: self.elems(line)? }))
            }
            "type" => {
                let name = words.name()?;
                let mut ty = TypeSpec { name: words.bare_word(), ..TypeSpec::default() };
                while let Some((key, value, at)) = words.attribute()? {
                    if !self.type_attribute(line, &mut ty, key, value, at)? {
                        return self.unknown(line, at, TYPE_KEYS);
                    }
                }
                self.type_inner(line, &mut ty)?;
                Ok(FactsItem::Spectype(Spectype { name, ty }))
            }
            "domain" => {
                let mut domain = DomainItem { name: words.name()?, width: 8, ..DomainItem::default() };
                while let Some((key, value, at)) = words.attribute()? {
                    match key {
                        "bare" => domain.bare = self.flag(line, at, value)?,
                        "width" => domain.width = self.small(line, at, value)?,
                        "size" => domain.size = Some(self.number(line, at, value)?),
                        _ if select(&mut domain.select, key, value) => {}
                        _ => return self.unknown(line, at, "width, size, bare, varset, variants, prefix"),
                    }
                }
                domain.elems = self.elems(line)?;
                Ok(FactsItem::Domain(domain))
            }
            _ => self.unknown(line, column, "import, enum, bitset, group, type, domain"),
        }
    }

    fn elems(&self, line: &OutlineLine) -> Result<Vec<DomainElem>> {
        line.inner.iter().map(|inner| self.elem(inner)).collect()
    }

    fn elem(&self, line: &OutlineLine) -> Result<DomainElem> {
        let mut words = self.words(line)?;
        let (kind, column) = words.word("a register, array, stripe or group")?;
        match kind {
            "reg8" => self.reg(line, words, 8),
            "reg16" => self.reg(line, words, 16),
            "reg32" => self.reg(line, words, 32),
            "reg64" => self.reg(line, words, 64),
            "array" => self.block(line, words, RegBlockKind::Array),
            "stripe" => self.block(line, words, RegBlockKind::Stripe),
            "use" => {
                let name = words.name()?;
                words.end()?;
                self.leaf(line)?;
                Ok(DomainElem::Use(name))
            }
            _ => self.unknown(line, column, "reg8, reg16, reg32, reg64, array, stripe, use"),
        }
    }

    fn reg(&self, line: &OutlineLine, mut words: OutlineWords<'_>, width: u32) -> Result<DomainElem> {
        let (offset, column) = words.word("an offset")?;
        let offset = self.number(line, column, offset)?;
        let name = words.name()?;
        let ty = TypeSpec { name: words.bare_word(), high: width - 1, ..TypeSpec::default() };
        let mut reg = RegSpec { name, offset, width, length: 1, ty, ..RegSpec::default() };
        while let Some((key, value, at)) = words.attribute()? {
            match key {
                "length" => reg.length = self.number(line, at, value)?,
                "stride" => reg.stride = self.number(line, at, value)?,
                "access" => reg.access = Some(value.to_string()),
                "usage" => reg.usage = Some(value.to_string()),
                _ if self.type_attribute(line, &mut reg.ty, key, value, at)? => {}
                _ if key != "prefix" && select(&mut reg.select, key, value) => {}
                _ => {
                    let known = format!("length, stride, access, usage, varset, variants, {TYPE_KEYS}");
                    return self.unknown(line, at, &known);
                }
            }
        }
        self.type_inner(line, &mut reg.ty)?;
        Ok(DomainElem::Reg(reg))
    }

    fn block(
        &self,
        line: &OutlineLine,
        mut words: OutlineWords<'_>,
        kind: RegBlockKind,
    ) -> Result<DomainElem> {
        let (offset, column) = words.word("an offset")?;
        let mut block = RegBlock { kind, length: 1, ..RegBlock::default() };
        if offset.contains(',') {
            for part in offset.split(',') {
                block.offsets.push(self.number(line, column, part)?);
            }
        } else {
            block.offset = self.number(line, column, offset)?;
        }
        block.name = words.bare_word();
        while let Some((key, value, at)) = words.attribute()? {
            match key {
                "length" => block.length = self.number(line, at, value)?,
                "stride" => block.stride = self.number(line, at, value)?,
                "index" => block.index = Some(value.to_string()),
                "usage" => block.usage = Some(value.to_string()),
                "doffset" => block.doffset = Some(value.to_string()),
                "doffsets" => block.doffsets = value.split(',').map(str::to_string).collect(),
                "offsets" => {
                    block.offsets.clear();
                    for part in value.split(',') {
                        block.offsets.push(self.number(line, at, part)?);
                    }
                }
                _ if select(&mut block.select, key, value) => {}
                _ => {
                    let known =
                        "length, stride, index, usage, offsets, doffset, doffsets, varset, variants, prefix";
                    return self.unknown(line, at, known);
                }
            }
        }
        block.elems = self.elems(line)?;
        Ok(DomainElem::Block(block))
    }

    fn field(&self, line: &OutlineLine) -> Result<BitField> {
        let mut words = self.words(line)?;
        let (bits, column) = words.word("bits")?;
        let Some((low, high)) = bit_range(bits) else {
            return self.error(line.number, column, "bits, as 3 or 7:4");
        };
        let name = words.name()?;
        let ty = TypeSpec { name: words.bare_word(), low, high, ..TypeSpec::default() };
        let mut field = BitField { name, ty, ..BitField::default() };
        while let Some((key, value, at)) = words.attribute()? {
            if key != "bits" && self.type_attribute(line, &mut field.ty, key, value, at)? {
                continue;
            }
            if key == "prefix" || !select(&mut field.select, key, value) {
                return self.unknown(line, at, "shr, radix, align, min, max, addvariant, varset, variants");
            }
        }
        self.type_inner(line, &mut field.ty)?;
        Ok(field)
    }

    fn value(&self, line: &OutlineLine) -> Result<EnumValue> {
        let mut words = self.words(line)?;
        let mut value = EnumValue { name: words.name()?, ..EnumValue::default() };
        words.equals()?;
        let (text, column) = words.word("a number")?;
        if text != "-" {
            value.value = Some(self.number(line, column, text)?);
        }
        while let Some((key, text, at)) = words.attribute()? {
            if key == "prefix" || !select(&mut value.select, key, text) {
                return self.unknown(line, at, "varset, variants");
            }
        }
        self.leaf(line)?;
        Ok(value)
    }

    fn type_inner(&self, line: &OutlineLine, ty: &mut TypeSpec) -> Result<()> {
        for inner in &line.inner {
            if inner.tokens.get(1).is_some_and(|t| t.text == "=" && t.key.is_some()) {
                ty.values.push(self.value(inner)?);
            } else {
                ty.fields.push(self.field(inner)?);
            }
        }
        Ok(())
    }

    fn type_attribute(
        &self,
        line: &OutlineLine,
        ty: &mut TypeSpec,
        key: &str,
        value: &str,
        at: usize,
    ) -> Result<bool> {
        match key {
            "bits" => match bit_range(value) {
                Some((low, high)) => (ty.low, ty.high) = (low, high),
                None => return self.error(line.number, at, "bits, as 3 or 7:4"),
            },
            "shr" => ty.shr = self.small(line, at, value)?,
            "radix" => ty.radix = Some(self.number(line, at, value)?),
            "align" => ty.align = Some(self.number(line, at, value)?),
            "min" => ty.min = Some(self.number(line, at, value)?),
            "max" => ty.max = Some(self.number(line, at, value)?),
            "addvariant" => ty.addvariant = self.flag(line, at, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

const TYPE_KEYS: &str = "bits, shr, radix, align, min, max, addvariant";

fn bit_range(text: &str) -> Option<(u32, u32)> {
    let (high, low) = text.split_once(':').unwrap_or((text, text));
    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
    (low <= high && high < 64).then_some((low, high))
}

fn select(select: &mut Select, key: &str, value: &str) -> bool {
    let slot = match key {
        "varset" => &mut select.varset,
        "variants" => &mut select.variants,
        "prefix" => &mut select.prefix,
        _ => return false,
    };
    *slot = Some(value.to_string());
    true
}
