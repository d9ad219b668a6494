//! Prints shaders.

use crate::ir::{
    Access, AmdInput, Func, Function, ImageAccess, Inst, MemAccess, Op, Payload, Region, Round, Shader,
    ShaderInfo, SourceLoc, Type, TypeNode, Value, VarData,
};
use std::fmt::{self, Write};
use unwedge_base::entity::{Entity, SecondaryMap};

/// A shader as text.
pub fn print(shader: &Shader) -> String {
    Listing::new(shader).text
}

/// A shader as text, and where its instructions are in it.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The text.
    pub text: String,
    /// Offsets of instructions in the text.
    starts: Vec<SecondaryMap<Inst, Option<usize>>>,
}

impl Listing {
    /// Prints a shader.
    pub fn new(shader: &Shader) -> Listing {
        let (mut text, mut starts) = (String::new(), Vec::new());
        // Writing to a string does not fail.
        let _ = Printer { shader, out: &mut text, starts: &mut starts }.shader();
        Listing { text, starts }
    }

    /// The number of an instruction's line, from 1, and the line without its indentation.
    pub fn line(&self, func: Func, inst: Inst) -> Option<(usize, &str)> {
        let start = self.starts.get(func.index())?[inst]?;
        let number = 1 + self.text[..start].matches('\n').count();
        Some((number, self.text[start..].lines().next()?))
    }
}

struct Printer<'a> {
    shader: &'a Shader,
    out: &'a mut String,
    starts: &'a mut Vec<SecondaryMap<Inst, Option<usize>>>,
}

impl Printer<'_> {
    fn shader(&mut self) -> fmt::Result {
        let shader = self.shader;
        info(self.out, &shader.info)?;
        for (index, file) in shader.files.iter().enumerate() {
            writeln!(self.out, "file {index} {}", quoted(file))?;
        }
        for (id, node) in shader.types.iter() {
            write!(self.out, "type {id} = ")?;
            match node {
                TypeNode::Leaf(ty) => writeln!(self.out, "{ty}")?,
                TypeNode::Array { element, len } => writeln!(self.out, "[{len} {element}]")?,
                TypeNode::Struct(members) => {
                    let members: Vec<String> = members.iter().map(ToString::to_string).collect();
                    writeln!(self.out, "({})", members.join(", "))?;
                }
            }
        }
        for (var, data) in shader.vars.iter() {
            write!(self.out, "var {var} {}", quoted(&data.name))?;
            self.var(data)?;
        }
        for (resource, data) in shader.resources.iter() {
            write!(self.out, "resource {resource} {} {}", quoted(&data.name), data.class.name())?;
            write!(self.out, " set {} binding {} count {}", data.set, data.binding, data.count)?;
            write!(self.out, " size {} dim {}", data.size, data.dim.name())?;
            access(self.out, data.access)?;
            if let Some(attachment) = data.attachment {
                write!(self.out, " attachment {attachment}")?;
            }
            writeln!(self.out)?;
        }
        for (loc, SourceLoc { file, line, column }) in shader.locs.iter() {
            writeln!(self.out, "loc {} = {file} {line} {column}", loc.index())?;
        }
        for (index, function) in shader.functions().iter().enumerate() {
            let mut printer = FunctionPrinter::new(function, self.out);
            printer.function(Func::new(index))?;
            self.starts.push(printer.starts);
        }
        Ok(())
    }

    fn var(&mut self, data: &VarData) -> fmt::Result {
        write!(self.out, " {} {}", data.storage.name(), data.ty)?;
        if let Some(location) = data.location {
            write!(self.out, " location {location}")?;
        }
        if data.component != 0 {
            write!(self.out, " component {}", data.component)?;
        }
        if data.index != 0 {
            write!(self.out, " index {}", data.index)?;
        }
        if let Some(builtin) = data.builtin {
            write!(self.out, " builtin {}", builtin.name())?;
        }
        if !data.flags.is_empty() {
            write!(self.out, " flags {}", data.flags)?;
        }
        if let Some((buffer, stride, offset)) = data.capture {
            write!(self.out, " capture {buffer} {stride} {offset}")?;
        }
        writeln!(self.out)
    }
}

fn info(out: &mut String, info: &ShaderInfo) -> fmt::Result {
    writeln!(out, "shader {} {}", info.stage.name(), quoted(&info.name))?;
    let [x, y, z] = info.workgroup_size;
    writeln!(out, "workgroup_size {x} {y} {z}")?;
    writeln!(out, "sizes shared {} scratch {} push {}", info.shared_size, info.scratch_size, info.push_size)?;
    if info.constant_size != 0 {
        writeln!(out, "constants {}", info.constant_size)?;
    }
    for (mode, bits) in info.float_modes.iter().zip([16, 32, 64]) {
        let round = round_name(mode.round);
        let flush = match mode.flush {
            None => "any",
            Some(true) => "flush",
            Some(false) => "keep",
        };
        let preserve = if mode.preserve { " preserve" } else { "" };
        writeln!(out, "floats {bits} {round} {flush}{preserve}")?;
    }
    if !info.modes.is_empty() {
        writeln!(out, "modes {}", info.modes)?;
    }
    if let Some(primitive) = info.input_primitive {
        writeln!(out, "input_primitive {}", primitive.name())?;
    }
    if let Some(primitive) = info.output_primitive {
        writeln!(out, "output_primitive {}", primitive.name())?;
    }
    if let Some(spacing) = info.spacing {
        writeln!(out, "spacing {}", spacing.name())?;
    }
    if info.output_vertices != 0 {
        writeln!(out, "output_vertices {}", info.output_vertices)?;
    }
    if info.invocations != 1 {
        writeln!(out, "invocations {}", info.invocations)?;
    }
    Ok(())
}

/// Name of a rounding mode.
pub(super) fn round_name(round: Round) -> &'static str {
    match round {
        Round::NearestEven => "nearest",
        Round::Up => "up",
        Round::Down => "down",
        Round::Zero => "zero",
    }
}

/// A string in quotes: quotes, backslashes and control characters as `\XX`.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if c == '"' || c == '\\' || c.is_control() {
            for byte in c.to_string().bytes() {
                let _ = write!(out, "\\{byte:02x}");
            }
        } else {
            out.push(c);
        }
    }
    out.push('"');
    out
}

fn access(out: &mut String, access: Access) -> fmt::Result {
    if access.is_empty() { Ok(()) } else { write!(out, " access {access}") }
}

struct FunctionPrinter<'a> {
    func: &'a Function,
    out: &'a mut String,
    /// Numbers in the text, from 1; 0 for values that are not defined yet.
    numbers: SecondaryMap<Value, u32>,
    labels: SecondaryMap<Inst, u32>,
    starts: SecondaryMap<Inst, Option<usize>>,
    next_number: u32,
    next_label: u32,
    depth: usize,
}

impl<'a> FunctionPrinter<'a> {
    fn new(func: &'a Function, out: &'a mut String) -> Self {
        let (numbers, labels) = (SecondaryMap::default(), SecondaryMap::default());
        let starts = SecondaryMap::default();
        FunctionPrinter { func, out, numbers, labels, starts, next_number: 0, next_label: 0, depth: 0 }
    }

    fn function(&mut self, func: Func) -> fmt::Result {
        write!(self.out, "fn {func} {} ", quoted(&self.func.name))?;
        self.definitions(self.func.params(self.func.body()), true)?;
        let results: Vec<String> = self.func.results.iter().map(Type::to_string).collect();
        write!(self.out, " -> ({}) ", results.join(", "))?;
        self.region(self.func.body())?;
        writeln!(self.out)
    }

    fn definitions(&mut self, values: &[Value], parentheses: bool) -> fmt::Result {
        if parentheses {
            self.out.push('(');
        }
        for (at, &value) in values.iter().enumerate() {
            self.next_number += 1;
            self.numbers[value] = self.next_number;
            let separator = if at == 0 { "" } else { ", " };
            write!(self.out, "{separator}%{}: {}", self.next_number - 1, self.func.ty(value))?;
        }
        if parentheses {
            self.out.push(')');
        }
        Ok(())
    }

    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
    }

    fn region(&mut self, region: Region) -> fmt::Result {
        self.out.push_str("{\n");
        self.depth += 1;
        for inst in self.func.insts(region) {
            self.indent();
            self.inst(inst)?;
            self.out.push('\n');
        }
        self.depth -= 1;
        self.indent();
        self.out.push('}');
        Ok(())
    }

    fn uses(&mut self, values: &[Value]) -> fmt::Result {
        for (at, &value) in values.iter().enumerate() {
            self.out.push_str(if at == 0 { " " } else { ", " });
            match self.numbers[value] {
                // Not valid, but it has to be shown all the same.
                0 => write!(self.out, "%undefined_{}", value.index())?,
                number => write!(self.out, "%{}", number - 1)?,
            }
        }
        Ok(())
    }

    fn inst(&mut self, inst: Inst) -> fmt::Result {
        let (func, op) = (self.func, self.func.op(inst));
        self.starts[inst] = Some(self.out.len());
        // Results of structured instructions are numbered before what is within.
        if !func.results(inst).is_empty() {
            self.definitions(func.results(inst), false)?;
            self.out.push_str(" = ");
        }
        self.out.push_str(op.name());
        if func.exact(inst) {
            self.out.push('!');
        }
        if func.taken(inst) {
            self.out.push('+');
        }
        if matches!(func.payload(inst), Payload::Body(_) | Payload::Arms(..)) {
            self.labels[inst] = self.next_label;
            self.next_label += 1;
        }
        self.payload(inst, func.payload(inst))?;
        self.uses(func.args(inst))?;
        if let Some(loc) = func.loc(inst) {
            write!(self.out, " @{}", loc.index())?;
        }
        match func.payload(inst) {
            Payload::Body(body) => {
                if op == Op::Loop {
                    self.out.push(' ');
                    self.definitions(func.params(body), true)?;
                }
                self.out.push(' ');
                self.region(body)?;
            }
            Payload::Arms(then, other) => {
                self.out.push(' ');
                self.region(then)?;
                self.out.push_str(" else ");
                self.region(other)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn payload(&mut self, inst: Inst, payload: Payload) -> fmt::Result {
        if payload == Payload::None {
            return Ok(());
        }
        let label = self.labels[inst];
        let out = &mut *self.out;
        out.push('<');
        match payload {
            Payload::None => {}
            Payload::Const(bits) => write!(out, "{bits:#x}")?,
            Payload::Lane(lane) => write!(out, "{lane}")?,
            Payload::SysVal(value) => out.push_str(value.name()),
            Payload::Resource(resource, how) => {
                write!(out, "{resource}")?;
                access(out, how)?;
            }
            Payload::Var(var, mask) => write!(out, "{var} mask {mask:#x}")?,
            Payload::Interp(var, at) => write!(out, "{var} {}", at.name())?,
            Payload::Mem(mem) => memory(out, mem)?,
            Payload::Atomic(op, mem) => {
                write!(out, "{} ", op.name())?;
                memory(out, mem)?;
            }
            Payload::Slot(slot) => {
                write!(out, "{} slot {}", slot.dir.name(), slot.slot)?;
                if slot.count != 1 {
                    write!(out, " count {}", slot.count)?;
                }
                write!(out, " component {} index {}", slot.component, slot.index)?;
                for (flag, name) in [(slot.vertex, " vertex"), (slot.patch, " patch")] {
                    if flag {
                        out.push_str(name);
                    }
                }
            }
            Payload::Bary(at, linear) => {
                write!(out, "{}{}", at.name(), if linear { " linear" } else { "" })?;
            }
            Payload::Image(image) => self::image(out, image)?,
            Payload::ImageAtomic(op, image) => {
                write!(out, "{} ", op.name())?;
                self::image(out, image)?;
            }
            Payload::Barrier(info) => {
                write!(out, "execution {} memory {}", info.execution.name(), info.memory.name())?;
                if !info.order.is_empty() {
                    write!(out, " order {}", info.order)?;
                }
                if !info.kinds.is_empty() {
                    write!(out, " kinds {}", info.kinds)?;
                }
            }
            Payload::Quad(dir) => out.push_str(dir.name()),
            Payload::Reduce(op, cluster) => write!(out, "{} {cluster}", op.name())?,
            Payload::Scope(scope) => out.push_str(scope.name()),
            Payload::Stream(stream) => write!(out, "{stream}")?,
            Payload::Register(AmdInput { registers, most }) => {
                write!(out, "{} {}", if registers.vector { "vector" } else { "scalar" }, registers.first)?;
                if most != u32::MAX {
                    write!(out, " most {most}")?;
                }
            }
            Payload::Export(export) => {
                write!(out, "target {} enabled {}", export.target, export.enabled)?;
                let flags =
                    [(export.compressed, " compressed"), (export.done, " done"), (export.valid, " valid")];
                for (_, name) in flags.into_iter().filter(|(flag, _)| *flag) {
                    out.push_str(name);
                }
            }
            Payload::Buffer(buffer) => {
                write!(out, "offset {}", buffer.offset)?;
                access(out, buffer.access)?;
            }
            Payload::Typed(typed) => {
                write!(out, "{} {} {} ", typed.lanes, typed.bits, typed.number.name())?;
                write!(out, "align {} offset {}", typed.align, typed.buffer.offset)?;
                access(out, typed.buffer.access)?;
            }
            Payload::Number(number) => write!(out, "{number}")?,
            Payload::Body(_) | Payload::Arms(..) => write!(out, "L{label}")?,
            Payload::Target(target) => write!(out, "L{}", self.labels[target])?,
            Payload::Callee(func) => write!(out, "{func}")?,
        }
        self.out.push('>');
        Ok(())
    }
}

fn memory(out: &mut String, mem: MemAccess) -> fmt::Result {
    write!(out, "{} align {}", mem.space.name(), 1u64 << mem.align.min(63))?;
    access(out, mem.access)
}

fn image(out: &mut String, image: ImageAccess) -> fmt::Result {
    out.push_str(image.dim.name());
    if !image.flags.is_empty() {
        write!(out, " flags {}", image.flags)?;
    }
    access(out, image.access)?;
    if image.component != 0 {
        write!(out, " component {}", image.component)?;
    }
    if image.format != 0 {
        write!(out, " format {}", image.format)?;
    }
    Ok(())
}
