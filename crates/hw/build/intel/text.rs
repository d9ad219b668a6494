//! Reads `data/intel/*.cmds`; `docs/intel-tables.md` describes the format.

use super::engine_class::EngineClass;
use super::model::{InstructionItem, IntelFile, IntelItem, ItemBody, LayoutElem, TypedField};
use crate::outline::{OutlineLine, OutlineReader, OutlineWords, Result};

/// Reads one file.
pub fn read_file(name: &str, text: &str) -> Result<IntelFile> {
    let reader = OutlineReader { file: name };
    let mut file = IntelFile { name: name.to_string(), ..IntelFile::default() };
    for line in &reader.outline(text)? {
        let mut words = reader.words(line)?;
        let (kind, column) = words.word("a definition")?;
        match kind {
            "generation" => {
                let (text, at) = words.word("a generation")?;
                file.generation = Some(generation(&reader, line, at, text)?);
            }
            "import" => file.import = Some(words.name()?),
            "drop" => file.drops.push(words.name()?),
            "typed" => file.typed.push(TypedField {
                owner: words.name()?,
                field: words.name()?,
                ty: words.name()?,
                line: line.number,
            }),
            _ => {
                file.items.push(item(&reader, line, words, kind, column)?);
                continue;
            }
        }
        words.end()?;
        reader.leaf(line)?;
    }
    Ok(file)
}

fn item(
    reader: &OutlineReader<'_>,
    line: &OutlineLine,
    mut words: OutlineWords<'_>,
    kind: &str,
    column: usize,
) -> Result<IntelItem> {
    let name = words.name()?;
    let mut generations = None;
    let known = |at, keys: &str| reader.error(line.number, at, format!("one of {keys}"));
    let body = match kind {
        "enum" => {
            while let Some((key, value, at)) = words.attribute()? {
                match key {
                    "gens" => generations = Some(range(reader, line, at, value)?),
                    _ => return known(at, "gens"),
                }
            }
            ItemBody::Enum(values(reader, line)?)
        }
        "struct" => {
            let mut dwords = 0;
            while let Some((key, value, at)) = words.attribute()? {
                match key {
                    "gens" => generations = Some(range(reader, line, at, value)?),
                    "dwords" => dwords = reader.small(line, at, value)?,
                    _ => return known(at, "gens, dwords"),
                }
            }
            ItemBody::Struct { dwords, elems: elems(reader, line)? }
        }
        "register" => {
            let (text, at) = words.word("an offset")?;
            let (relative, text) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
            let offset = reader.small(line, at, text)?;
            let mut dwords = 1;
            while let Some((key, value, at)) = words.attribute()? {
                match key {
                    "gens" => generations = Some(range(reader, line, at, value)?),
                    "dwords" => dwords = reader.small(line, at, value)?,
                    _ => return known(at, "gens, dwords"),
                }
            }
            ItemBody::Register { offset, relative, dwords, elems: elems(reader, line)? }
        }
        "instruction" => {
            let (text, at) = words.word("MATCH/MASK")?;
            let Some((matches, mask)) = text.split_once('/') else {
                return reader.error(line.number, at, "MATCH/MASK");
            };
            let mut it = InstructionItem {
                matches: reader.small(line, at, matches)?,
                mask: reader.small(line, at, mask)?,
                dwords: None,
                length: None,
                engines: EngineClass::ALL.iter().fold(0, |bits, class| bits | class.bit()),
                elems: elems(reader, line)?,
            };
            while let Some((key, value, at)) = words.attribute()? {
                match key {
                    "gens" => generations = Some(range(reader, line, at, value)?),
                    "dwords" => it.dwords = Some(reader.small(line, at, value)?),
                    "length" => {
                        let parts = value.split_once('+').and_then(|(bits, bias)| {
                            let high = bits.strip_suffix(":0")?.parse().ok().filter(|&high| high < 16)?;
                            Some((high, bias.parse().ok().filter(|&bias: &u32| bias < 256)?))
                        });
                        match parts {
                            Some(parts) => it.length = Some(parts),
                            None => return reader.error(line.number, at, "a length as 7:0+2"),
                        }
                    }
                    "engines" => {
                        it.engines = 0;
                        for engine in value.split(',') {
                            match EngineClass::ALL.iter().find(|class| class.name() == engine) {
                                Some(class) => it.engines |= class.bit(),
                                None => {
                                    return known(at, &EngineClass::ALL.map(EngineClass::name).join(", "));
                                }
                            }
                        }
                    }
                    _ => return known(at, "gens, dwords, length, engines"),
                }
            }
            ItemBody::Instruction(it)
        }
        _ => return known(column, "generation, import, drop, typed, enum, struct, instruction, register"),
    };
    Ok(IntelItem { name, line: line.number, generations, body })
}

fn elems(reader: &OutlineReader<'_>, line: &OutlineLine) -> Result<Vec<LayoutElem>> {
    line.inner.iter().map(|inner| elem(reader, inner)).collect()
}

fn elem(reader: &OutlineReader<'_>, line: &OutlineLine) -> Result<LayoutElem> {
    let mut words = reader.words(line)?;
    let (first, column) = words.word("bits or a group")?;
    if first == "group" {
        let (text, at) = words.word("a position as 2.0")?;
        let place = text.split_once('.').and_then(|(dword, bit)| position(dword, bit));
        let Some(start) = place else {
            return reader.error(line.number, at, "a position as 2.0");
        };
        let (mut count, mut bits) = (None, 0);
        while let Some((key, value, at)) = words.attribute()? {
            match key {
                "count" => count = Some(reader.small(line, at, value)?),
                "bits" => bits = reader.small(line, at, value)?,
                _ => return reader.error(line.number, at, "one of count, bits"),
            }
        }
        if bits == 0 || count == Some(0) {
            return reader.error(
                line.number,
                column,
                "a group of one element or more, each of one bit or more",
            );
        }
        return Ok(LayoutElem::Group { start, count, bits, elems: elems(reader, line)? });
    }
    let (dword, bits) = first.split_once('.').unwrap_or(("0", first));
    let (high, low) = bits.split_once(':').unwrap_or((bits, bits));
    let (Some(start), Some(end)) = (position(dword, low), position(dword, high)) else {
        return reader.error(line.number, column, "bits, as 3 or 7:4 or, in dword 2, 2.7:4");
    };
    let Some(width) = (end + 1).checked_sub(start).filter(|&width| width != 0) else {
        return reader.error(line.number, column, "the higher bit first");
    };
    let name = words.name()?;
    let ty = words.name()?;
    words.end()?;
    Ok(LayoutElem::Field { name, start, width, ty, values: values(reader, line)? })
}

fn position(dword: &str, bit: &str) -> Option<u32> {
    let (dword, bit): (u32, u32) = (dword.parse().ok()?, bit.parse().ok()?);
    (dword < 0x1_0000 && bit < 0x10_0000).then_some(dword * 32 + bit)
}

fn values(reader: &OutlineReader<'_>, line: &OutlineLine) -> Result<Vec<(String, u64)>> {
    let mut list = Vec::new();
    for inner in &line.inner {
        let mut words = reader.words(inner)?;
        let name = words.name()?;
        words.equals()?;
        let (text, column) = words.word("a number")?;
        list.push((name, reader.number(inner, column, text)?));
        words.end()?;
        reader.leaf(inner)?;
    }
    Ok(list)
}

fn generation(reader: &OutlineReader<'_>, line: &OutlineLine, at: usize, text: &str) -> Result<u32> {
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    match (major.parse::<u32>(), minor.parse::<u32>()) {
        (Ok(major @ 0..1000), Ok(minor @ 0..10)) => Ok(major * 10 + minor),
        _ => reader.error(line.number, at, "a generation, as 9 or 12.5"),
    }
}

/// `8..12.5`, `8..`, `9`.
fn range(reader: &OutlineReader<'_>, line: &OutlineLine, at: usize, text: &str) -> Result<(u32, u32)> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let first = generation(reader, line, at, first)?;
    let last = if last.is_empty() { u32::MAX } else { generation(reader, line, at, last)? };
    Ok((first, last))
}
