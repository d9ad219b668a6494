//! Amber scripts.

use super::bindings;
use super::elements::{Member, MemberType, Structure};
use super::graphics::{self, Draw, GraphicsState};
use super::image::{ExpectColour, Image};
use super::values::Tolerance;
use super::{
    AmberError, AmberReason, Buffer, Command, Compare, DataType, ElementType, Expect, Files, Layout,
    MAX_BYTES, Measure, Pipeline, Result, Script, ScriptShaders,
};
use std::collections::BTreeMap;

pub(super) struct Lines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    number: usize,
}

impl<'a> Lines<'a> {
    /// Words of the next line that has any, and of those that continue it. Comments are cut.
    pub(super) fn next(&mut self) -> Option<Vec<&'a str>> {
        loop {
            let (number, line) = self.lines.next()?;
            self.number = number + 1;
            let mut words: Vec<&str> = line.split('#').next()?.split_whitespace().collect();
            while words.last() == Some(&"\\") {
                words.pop();
                let (number, line) = self.lines.next()?;
                self.number = number + 1;
                words.extend(line.split('#').next()?.split_whitespace());
            }
            if !words.is_empty() {
                return Some(words);
            }
        }
    }

    /// The lines up to one that ends a text.
    fn text_to_end(&mut self) -> String {
        let mut text = String::new();
        for (number, line) in self.lines.by_ref() {
            self.number = number + 1;
            if line.trim() == "END" {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    pub(super) fn fail<T>(&self, reason: AmberReason) -> Result<T> {
        Err(AmberError { line: self.number, reason })
    }

    pub(super) fn unsupported<T>(&self, words: &[&str]) -> Result<T> {
        self.fail(AmberReason::Unsupported(words.join(" ")))
    }

    pub(super) fn syntax<T>(&self, words: &[&str]) -> Result<T> {
        self.fail(AmberReason::Syntax(words.join(" ")))
    }

    pub(super) fn number<T: std::str::FromStr>(&self, text: &str) -> Result<T> {
        text.parse().or_else(|_| self.fail(AmberReason::Syntax(format!("{text} is not a number"))))
    }

    /// A descriptor set and a binding.
    pub(super) fn binding(&self, set: &str, binding: &str) -> Result<(u32, u32)> {
        Ok((self.number(set)?, self.number(binding)?))
    }

    /// The options of a line `ATTACH shader …`.
    pub(super) fn attach(
        &self,
        mut options: &[&str],
        entry: &mut Option<String>,
        specialization: &mut Vec<(u32, u64)>,
    ) -> Result<()> {
        loop {
            options = match options {
                [] => return Ok(()),
                ["TYPE", stage, rest @ ..] if graphics::stage(stage).is_some() => rest,
                ["ENTRY_POINT", name, rest @ ..] => {
                    *entry = Some((*name).to_owned());
                    rest
                }
                ["SPECIALIZE", number, "AS", ty, value, rest @ ..] => {
                    let Some(ty) = DataType::parse(ty) else { return self.unsupported(options) };
                    let bytes = self.located(ty.component.encode(value))?;
                    let bits = bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                    specialization.push((self.number(number)?, bits));
                    rest
                }
                _ => return self.unsupported(options),
            };
        }
    }

    fn located<T>(&self, result: std::result::Result<T, AmberReason>) -> Result<T> {
        result.map_err(|reason| AmberError { line: self.number, reason })
    }
}

pub(super) fn parse(text: &str, files: Files<'_>) -> Result<Script> {
    let mut lines = Lines { lines: text.lines().enumerate(), number: 0 };
    let mut script = Script::default();
    let mut shaders = ScriptShaders::new();
    let mut clears: BTreeMap<String, ([f64; 4], f64)> = BTreeMap::new();
    let mut structures: BTreeMap<String, Structure> = BTreeMap::new();
    // Where repeated commands start, and how often they are run.
    let mut repeats: Vec<(usize, usize)> = Vec::new();
    while let Some(words) = lines.next() {
        match words.as_slice() {
            [
                "DEVICE_FEATURE" | "DEVICE_EXTENSION" | "DEVICE_PROPERTY" | "INSTANCE_EXTENSION" | "SET",
                ..,
            ] => {}
            ["SHADER", stage, name, language, ..] => {
                let Some(stage) = graphics::stage(stage) else { return lines.unsupported(&words) };
                shaders.insert((*name).to_owned(), stage);
                if *language != "PASSTHROUGH" && words.get(4) != Some(&"VIRTUAL_FILE") {
                    let text = lines.text_to_end();
                    script.sources.insert((*name).to_owned(), text);
                }
            }
            ["VIRTUAL_FILE", _] => {
                lines.text_to_end();
            }
            ["STRUCT", name, rest @ ..] => {
                let structure = structure(&mut lines, rest, &structures)?;
                structures.insert((*name).to_owned(), structure);
            }
            ["REPEAT", count] => repeats.push((script.commands.len(), lines.number(count)?)),
            ["END"] => {
                let Some((start, count)) = repeats.pop() else { return lines.syntax(&words) };
                let repeated = script.commands.split_off(start);
                if repeated.len().saturating_mul(count) > MAX_COMMANDS {
                    return lines.unsupported(&["REPEAT"]);
                }
                for _ in 0..count {
                    script.commands.extend_from_slice(&repeated);
                }
            }
            ["BUFFER", name, "FORMAT", format] => {
                // A pipeline gives it its size.
                let image = Image {
                    format: (*format).to_owned(),
                    dimensions: 2,
                    size: [0; 3],
                    samples: 1,
                    ..Image::default()
                };
                script.images.insert((*name).to_owned(), image);
            }
            ["SAMPLER", name, options @ ..] => {
                let options = options.iter().map(|option| (*option).to_owned()).collect();
                script.samplers.insert((*name).to_owned(), options);
            }
            ["BUFFER", name, rest @ ..] => {
                if rest.contains(&"WIDTH") {
                    let image = image(&mut lines, &[&["DIM_2D"], rest].concat(), files)?;
                    script.images.insert((*name).to_owned(), image);
                } else {
                    let buffer = buffer(&mut lines, rest, files, &structures)?;
                    script.buffers.insert((*name).to_owned(), buffer);
                }
            }
            ["IMAGE", name, rest @ ..] => {
                let image = image(&mut lines, rest, files)?;
                script.images.insert((*name).to_owned(), image);
            }
            ["PIPELINE", kind @ ("compute" | "graphics"), name] => {
                let graphics = (*kind == "graphics").then(GraphicsState::default);
                let start = Pipeline { graphics, ..Pipeline::default() };
                let pipeline = lines.pipeline(start, &shaders, &mut script)?;
                script.pipelines.insert((*name).to_owned(), pipeline);
            }
            ["DERIVE_PIPELINE", name, "FROM", from] => {
                let Some(from) = script.pipelines.get(*from).cloned() else { return lines.syntax(&words) };
                let pipeline = lines.pipeline(from, &shaders, &mut script)?;
                script.pipelines.insert((*name).to_owned(), pipeline);
            }
            ["CLEAR_COLOR", pipeline, r, g, b, a] => {
                let colour = [lines.number(r)?, lines.number(g)?, lines.number(b)?, lines.number(a)?];
                clears.entry((*pipeline).to_owned()).or_insert(CLEAR).0 = colour;
            }
            ["CLEAR_DEPTH", pipeline, depth] => {
                clears.entry((*pipeline).to_owned()).or_insert(CLEAR).1 = lines.number(depth)?;
            }
            ["CLEAR", pipeline] => {
                let (colour, depth) = clears.get(*pipeline).copied().unwrap_or(CLEAR);
                let draw =
                    Command::Draw { pipeline: (*pipeline).to_owned(), draw: Draw::Clear { colour, depth } };
                script.commands.push((lines.number, draw));
            }
            ["RUN", pipeline, kind, ..] if kind.starts_with("DRAW_") => {
                let Some(draw) = Draw::parse(&lines, &words[2..])? else { return lines.unsupported(&words) };
                script
                    .commands
                    .push((lines.number, Command::Draw { pipeline: (*pipeline).to_owned(), draw }));
            }
            ["RUN", pipeline, x, y, z] | ["RUN", "TIMED_EXECUTION", pipeline, x, y, z] => {
                let workgroups = [lines.number(x)?, lines.number(y)?, lines.number(z)?];
                let run = Command::Run { pipeline: (*pipeline).to_owned(), workgroups };
                script.commands.push((lines.number, run));
            }
            ["COPY", from, "TO", to] => {
                let copy = Command::Copy { from: (*from).to_owned(), to: (*to).to_owned() };
                script.commands.push((lines.number, copy));
            }
            ["EXPECT", left, "EQ_BUFFER", right] => {
                let (left, right) = ((*left).to_owned(), (*right).to_owned());
                script.commands.push((lines.number, Command::ExpectEqual { left, right }));
            }
            ["EXPECT", left, how @ ("RMSE_BUFFER" | "EQ_HISTOGRAM_EMD_BUFFER"), right, "TOLERANCE", most] => {
                let expect = Command::ExpectClose {
                    measure: if *how == "RMSE_BUFFER" { Measure::Rmse } else { Measure::Histogram },
                    left: (*left).to_owned(),
                    right: (*right).to_owned(),
                    most: lines.number(most)?,
                };
                script.commands.push((lines.number, expect));
            }
            ["EXPECT", image, "IDX", x, y, "SIZE", width, height, rest @ ..] => {
                let expect = ExpectColour {
                    image: (*image).to_owned(),
                    at: [lines.number(x)?, lines.number(y)?],
                    size: [lines.number(width)?, lines.number(height)?],
                    ..expect_colour(&lines, rest)?
                };
                script.commands.push((lines.number, Command::ExpectColour(expect)));
            }
            ["EXPECT", buffer, "IDX", offset, rest @ ..] => {
                let expect = expect(&lines, buffer, offset, rest)?;
                script.commands.push((lines.number, Command::Expect(expect)));
            }
            _ => return lines.unsupported(&words),
        }
    }
    if repeats.is_empty() { Ok(script) } else { lines.syntax(&["END is missing"]) }
}

/// The most commands of a script.
const MAX_COMMANDS: usize = 1 << 16;

/// The colour and depth that attachments are cleared to by default.
const CLEAR: ([f64; 4], f64) = ([0.0; 4], 1.0);

impl Lines<'_> {
    /// The lines of a pipeline, whose attachments get their size.
    fn pipeline(
        &mut self,
        start: Pipeline,
        shaders: &ScriptShaders,
        script: &mut Script,
    ) -> Result<Pipeline> {
        let pipeline = pipeline(self, start, shaders)?;
        if let Some(graphics) = &pipeline.graphics {
            self.located(graphics.size_attachments(&mut script.images))?;
        }
        Ok(pipeline)
    }
}

fn tolerances(lines: &Lines<'_>, words: &[&str]) -> Result<Vec<Tolerance>> {
    let values = match words {
        [] => return Ok(Vec::new()),
        ["TOLERANCE", values @ ..] => values,
        _ => return lines.unsupported(words),
    };
    let tolerance = |text: &&str| {
        let number = text.strip_suffix('%');
        let value = lines.number(number.unwrap_or(text))?;
        Ok(Tolerance { value, percent: number.is_some() })
    };
    values.iter().map(tolerance).collect()
}

/// The colour of an expectation: its words from the comparison on.
fn expect_colour(lines: &Lines<'_>, words: &[&str]) -> Result<ExpectColour> {
    let count = match words.first() {
        Some(&"EQ_RGB") => 3,
        Some(&"EQ_RGBA") => 4,
        _ => return lines.unsupported(words),
    };
    let Some((colour, rest)) = words[1..].split_at_checked(count) else { return lines.syntax(words) };
    let colour = colour.iter().map(|component| lines.number(component)).collect::<Result<_>>()?;
    let tolerances = tolerances(lines, rest)?;
    Ok(ExpectColour { image: String::new(), at: [0; 2], size: [0; 2], colour, tolerances })
}

fn expect(lines: &Lines<'_>, buffer: &str, offset: &str, rest: &[&str]) -> Result<Expect> {
    let (tolerances, rest) = match rest.iter().position(|word| Compare::parse(word).is_some()) {
        Some(at) => rest.split_at(at),
        None => return lines.unsupported(rest),
    };
    let tolerances = self::tolerances(lines, tolerances)?;
    let Some((compare, values)) = rest.split_first() else { return lines.syntax(rest) };
    let Some(compare) = Compare::parse(compare) else { return lines.syntax(rest) };
    Ok(Expect {
        buffer: buffer.to_owned(),
        ty: None,
        offset: lines.number(offset)?,
        compare,
        tolerances,
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    })
}

fn buffer(
    lines: &mut Lines<'_>,
    words: &[&str],
    files: Files<'_>,
    structures: &BTreeMap<String, Structure>,
) -> Result<Buffer> {
    let ["DATA_TYPE", name, rest @ ..] = words else { return lines.unsupported(words) };
    let (layout, rest) = match rest {
        ["STD140", rest @ ..] => (Layout::Std140, rest),
        ["STD430", rest @ ..] => (Layout::Std430, rest),
        _ => (Layout::Std430, rest),
    };
    let ty = match structures.get(*name) {
        Some(structure) => lines.located(structure.elements(layout))?,
        None => {
            let Some(mut ty) = DataType::parse(name) else { return lines.unsupported(words) };
            if layout == Layout::Std140 {
                ty.layout = layout;
            }
            let elements = ElementType::from(ty);
            // Texels have the format that the script says.
            if ty.layout == Layout::Packed { elements.with_format(name) } else { elements }
        }
    };
    let (count, rest) = match rest {
        ["SIZE", size, rest @ ..] => (Some(lines.number(size)?), rest),
        _ => (None, rest),
    };
    let bytes = values(lines, words, rest, &ty, count, files)?;
    Ok(Buffer { ty, bytes })
}

/// An image with its texels, if the script gives them.
fn image(lines: &mut Lines<'_>, words: &[&str], files: Files<'_>) -> Result<Image> {
    let of_values = |word: &&str| matches!(*word, "DATA" | "FILL" | "SERIES_FROM" | "FILE");
    let at = words.iter().position(of_values).unwrap_or(words.len());
    let (shape, rest) = words.split_at(at);
    let Some((mut image, ty)) = Image::parse(shape) else { return lines.unsupported(words) };
    match (rest, ty) {
        ([], _) => {}
        // Zero is zero in every format.
        (["FILL", value], _) if value.parse::<f64>() == Ok(0.0) => {
            image.fill(vec![0; image.bytes.len()]);
        }
        (_, Some(ty)) => {
            let bytes = values(lines, words, rest, &ty, Some(image.count()), files)?;
            if !image.fill(bytes) {
                return lines.syntax(&["the image has another number of texels"]);
            }
        }
        (_, None) => return lines.unsupported(words),
    }
    Ok(image)
}

/// The bytes of so many elements, from the words that say their values; of `DATA`, as many as there are.
fn values(
    lines: &mut Lines<'_>,
    words: &[&str],
    rest: &[&str],
    ty: &ElementType,
    count: Option<usize>,
    files: Files<'_>,
) -> Result<Vec<u8>> {
    let mut values: Vec<Vec<u8>> = Vec::new();
    if let ["DATA", first @ ..] = rest {
        let mut line: Vec<&str> = first.to_vec();
        loop {
            for word in line.iter().filter(|word| **word != "END") {
                values.push(lines.located(ty.component(values.len()).encode(word))?);
            }
            if line.last() == Some(&"END") {
                return Ok(ty.bytes_of(&values));
            }
            let Some(next) = lines.next() else { return lines.syntax(words) };
            line = next;
        }
    }
    let Some(count) = count.filter(|count| count.saturating_mul(ty.stride()) <= MAX_BYTES) else {
        return lines.unsupported(words);
    };
    let scalars = count * ty.components();
    match rest {
        ["FILE", "TEXT", file] => {
            let Some(text) = files(file) else { return lines.unsupported(words) };
            for word in text.split_whitespace().take(scalars) {
                values.push(lines.located(ty.component(values.len()).encode(word))?);
            }
            if values.len() != scalars {
                return lines.syntax(&["the file has too few values"]);
            }
        }
        ["FILL", value] => {
            for number in 0..scalars {
                values.push(lines.located(ty.component(number).encode(value))?);
            }
        }
        ["SERIES_FROM", start, "INC_BY", step] => {
            for number in 0..scalars {
                values.push(lines.located(ty.component(number).series(start, step, number))?);
            }
        }
        _ => return lines.unsupported(words),
    }
    Ok(ty.bytes_of(&values))
}

/// The lines of a structure up to its end.
fn structure(
    lines: &mut Lines<'_>,
    options: &[&str],
    structures: &BTreeMap<String, Structure>,
) -> Result<Structure> {
    let mut structure = Structure::default();
    match options {
        [] => {}
        ["STRIDE", stride] => structure.stride = Some(lines.number(stride)?),
        _ => return lines.unsupported(options),
    }
    while let Some(words) = lines.next() {
        let (ty, name, mut options) = match words.as_slice() {
            ["END"] => return Ok(structure),
            [ty, name, options @ ..] => (ty, name, options),
            _ => return lines.syntax(&words),
        };
        let Some(ty) = MemberType::parse(ty, structures) else { return lines.unsupported(&words) };
        let count = match name.split_once('[') {
            Some((_, count)) => Some(lines.number(count.trim_end_matches(']'))?),
            None => None,
        };
        let mut member = Member { ty, count, offset: None, array_stride: None, matrix_stride: None };
        while let [option, value, rest @ ..] = options {
            let place = match *option {
                "OFFSET" => &mut member.offset,
                "ARRAY_STRIDE" => &mut member.array_stride,
                "MATRIX_STRIDE" => &mut member.matrix_stride,
                _ => return lines.unsupported(&words),
            };
            let value: usize = lines.number(value)?;
            if value > MAX_BYTES {
                return lines.unsupported(&words);
            }
            *place = Some(value);
            options = rest;
        }
        if !options.is_empty() {
            return lines.syntax(&words);
        }
        structure.members.push(member);
    }
    lines.syntax(&["END is missing"])
}

/// The lines of a pipeline up to its end.
fn pipeline(lines: &mut Lines<'_>, mut pipeline: Pipeline, shaders: &ScriptShaders) -> Result<Pipeline> {
    while let Some(words) = lines.next() {
        if let Some(graphics) = &mut pipeline.graphics
            && graphics.line(lines, &words, shaders)?
        {
            continue;
        }
        match words.as_slice() {
            ["END"] => return Ok(pipeline),
            ["ATTACH", shader, options @ ..] => {
                pipeline.shader = (*shader).to_owned();
                lines.attach(options, &mut pipeline.entry, &mut pipeline.specialization)?;
            }
            // Compute pipelines have no attachments.
            ["FRAMEBUFFER_SIZE", _, _] => {}
            ["BIND", "BUFFER", name, "AS", "push_constant"] => pipeline.push = Some((*name).to_owned()),
            // How shaders are compiled is the executor's choice.
            ["SHADER_OPTIMIZATION" | "COMPILE_OPTIONS", _] => {
                lines.text_to_end();
            }
            ["BIND", ..] => match bindings::bind(lines, &words)? {
                Some((point, descriptors)) => {
                    pipeline.bindings.insert(point, descriptors);
                }
                None => return lines.unsupported(&words),
            },
            ["SUBGROUP", _] => {
                while let Some(words) = lines.next() {
                    match words.as_slice() {
                        ["END"] => break,
                        ["FULLY_POPULATED" | "VARYING_SIZE", _] => {}
                        ["REQUIRED_SIZE", size] => pipeline.subgroup_size = Some(lines.number(size)?),
                        _ => return lines.unsupported(&words),
                    }
                }
            }
            _ => return lines.unsupported(&words),
        }
    }
    lines.syntax(&["END is missing"])
}
