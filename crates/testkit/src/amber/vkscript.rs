//! VkScript: the older form, one shader and buffers without names.

use super::values::Tolerance;
use super::{
    AmberError, AmberReason, Buffer, Command, Compare, DataType, Descriptor, DescriptorKind, ElementType,
    Expect, MAX_BYTES, Pipeline, Result, Script,
};

/// The name of the only pipeline, and of the buffer of its push constants.
const PIPELINE: &str = "compute";
const PUSH: &str = "push";

/// The most bytes of push constants.
const MAX_PUSH: usize = 4096;

struct Line<'a> {
    number: usize,
    words: Vec<&'a str>,
}

impl Line<'_> {
    fn fail<T>(&self, reason: fn(String) -> AmberReason) -> Result<T> {
        Err(AmberError { line: self.number, reason: reason(self.words.join(" ")) })
    }

    fn number<T: std::str::FromStr>(&self, text: &str) -> Result<T> {
        text.parse().or_else(|_| self.fail(AmberReason::Syntax))
    }

    fn ty(&self, text: &str) -> Result<DataType> {
        DataType::parse(text).map_or_else(|| self.fail(AmberReason::Unsupported), Ok)
    }

    /// `SET:BINDING`, or a binding of set 0.
    fn point(&self, text: &str) -> Result<(u32, u32)> {
        match text.split_once(':') {
            Some((set, binding)) => Ok((self.number(set)?, self.number(binding)?)),
            None => Ok((0, self.number(text)?)),
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Script> {
    let mut script = Script::default();
    script.pipelines.insert(PIPELINE.to_owned(), Pipeline { shader: "s0".into(), ..Pipeline::default() });
    let mut section = "";
    let mut tolerances = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
            let known = matches!(section, "require" | "test") || section.starts_with("compute shader");
            if !known {
                let reason = AmberReason::Unsupported(line.to_owned());
                return Err(AmberError { line: number + 1, reason });
            }
            continue;
        }
        if section != "test" {
            continue;
        }
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        if !words.is_empty() {
            command(&mut script, &Line { number: number + 1, words }, &mut tolerances)?;
        }
    }
    Ok(script)
}

/// The buffer of a binding, which is at least so large.
fn buffer(script: &mut Script, line: &Line<'_>, point: &str, size: usize, ty: DataType) -> Result<String> {
    if size > MAX_BYTES {
        return line.fail(AmberReason::Unsupported);
    }
    let (set, binding) = line.point(point)?;
    let name = format!("{set}:{binding}");
    if let Some(pipeline) = script.pipelines.get_mut(PIPELINE) {
        let descriptor = Descriptor {
            kind: DescriptorKind::Buffer,
            resource: name.clone(),
            sampler: None,
            offset: 0,
            range: None,
        };
        pipeline.bindings.insert((set, binding), vec![descriptor]);
    }
    let buffer =
        script.buffers.entry(name.clone()).or_insert_with(|| Buffer { ty: ty.into(), bytes: Vec::new() });
    if buffer.bytes.len() < size {
        buffer.bytes.resize(size, 0);
    }
    Ok(name)
}

/// The bytes of values.
fn encoded(line: &Line<'_>, ty: DataType, values: &[&str]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (value, (at, component)) in values.iter().zip(ElementType::from(ty).positions(0)) {
        let encoded = component.encode(value).map_err(|reason| AmberError { line: line.number, reason })?;
        bytes.resize(at, 0);
        bytes.extend(encoded);
    }
    Ok(bytes)
}

fn command(script: &mut Script, line: &Line<'_>, tolerances: &mut Vec<Tolerance>) -> Result<()> {
    let int = DataType::parse("int").map_or_else(|| line.fail(AmberReason::Syntax), Ok)?;
    let command = match line.words.as_slice() {
        ["compute", "entrypoint", entry] => {
            Command::Entry { pipeline: PIPELINE.into(), entry: (*entry).to_owned() }
        }
        ["compute", x, y, z] => {
            let workgroups = [line.number(x)?, line.number(y)?, line.number(z)?];
            Command::Run { pipeline: PIPELINE.into(), workgroups }
        }
        ["ssbo" | "ubo", point, size] => {
            buffer(script, line, point, line.number(size)?, int)?;
            return Ok(());
        }
        ["ssbo" | "ubo", point, "subdata", ty, offset, values @ ..]
        | ["uniform", "ubo", point, ty, offset, values @ ..] => {
            let (ty, offset): (DataType, usize) = (line.ty(ty)?, line.number(offset)?);
            let bytes = encoded(line, ty, values)?;
            let name = buffer(script, line, point, offset.saturating_add(bytes.len()), ty)?;
            Command::Write { buffer: name, offset, bytes }
        }
        // Push constants.
        ["uniform" | "push", ty, offset, values @ ..] => {
            let (ty, offset): (DataType, usize) = (line.ty(ty)?, line.number(offset)?);
            let bytes = encoded(line, ty, values)?;
            let end = offset.saturating_add(bytes.len());
            if end > MAX_PUSH {
                return line.fail(AmberReason::Unsupported);
            }
            let name = PUSH.to_owned();
            let constants = script
                .buffers
                .entry(name.clone())
                .or_insert_with(|| Buffer { ty: ty.into(), bytes: Vec::new() });
            constants.bytes.resize(constants.bytes.len().max(end), 0);
            if let Some(pipeline) = script.pipelines.get_mut(PIPELINE) {
                pipeline.push = Some(name.clone());
            }
            Command::Write { buffer: name, offset, bytes }
        }
        ["tolerance", values @ ..] if !values.is_empty() => {
            *tolerances = values
                .iter()
                .map(|text| {
                    let percent = text.strip_suffix('%');
                    let value = line.number(percent.unwrap_or(text))?;
                    Ok(Tolerance { value, percent: percent.is_some() })
                })
                .collect::<Result<_>>()?;
            return Ok(());
        }
        ["probe", "ssbo", ty, point, offset, compare, values @ ..] => {
            let ty = line.ty(ty)?;
            let Some(compare) = Compare::parse(compare) else { return line.fail(AmberReason::Syntax) };
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            let (offset, buffer) = (line.number(offset)?, buffer(script, line, point, 0, ty)?);
            let (ty, tolerances) = (Some(ElementType::from(ty)), tolerances.clone());
            Command::Expect(Expect { buffer, ty, offset, compare, tolerances, values })
        }
        _ => return line.fail(AmberReason::Unsupported),
    };
    script.commands.push((line.number, command));
    Ok(())
}
