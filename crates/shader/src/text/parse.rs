//! Parses shaders.

use super::lexer::{Lexer, Token};
use crate::ir::{
    Access, AmdBuffer, AmdExport, AmdInput, AmdNumber, AmdRegisters, AmdTyped, AtomicOp, BarrierInfo,
    Builtin, Dim, FloatMode, Func, Function, ImageAccess, ImageFlags, Inst, InterpAt, Loc, MAX_DEPTH,
    MemAccess, MemoryKinds, Modes, Op, Order, Payload, PayloadForm, Primitive, QuadDir, Region, Resource,
    ResourceClass, ResourceData, Round, Scope, Shader, SlotAccess, SlotDir, SourceLoc, Space, Spacing, Stage,
    Storage, SystemValue, Type, TypeId, TypeNode, Value, Var, VarData, VarFlags,
};
use std::collections::HashMap;
use unwedge_base::entity::Entity;

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: u32,
    /// The reason.
    pub reason: String,
}

impl ParseError {
    pub(super) fn new(line: u32, reason: impl Into<String>) -> Self {
        ParseError { line, reason: reason.into() }
    }
}

type Result<T> = std::result::Result<T, ParseError>;

/// Parses a shader into an empty one. What is parsed is well-formed; whether it is valid, [`crate::valid::validate`] says.
///
/// # Errors
/// When the text is not of this form: the line and the reason.
pub fn parse(text: &str, shader: &mut Shader) -> Result<()> {
    shader.clear();
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut parser = Parser { lexer, token, values: HashMap::new(), labels: HashMap::new(), depth: 0 };
    parser.shader(shader)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    values: HashMap<u32, Value>,
    labels: HashMap<u32, Inst>,
    depth: usize,
}

/// Tokens.
impl Parser<'_> {
    fn error<T>(&self, reason: impl Into<String>) -> Result<T> {
        Err(ParseError::new(self.lexer.line, reason))
    }

    fn bump(&mut self) -> Result<Token> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn is(&self, c: char) -> bool {
        self.token == Token::Punct(c)
    }

    fn eat(&mut self, c: char) -> Result<bool> {
        let found = self.is(c);
        if found {
            self.bump()?;
        }
        Ok(found)
    }

    fn expect(&mut self, c: char) -> Result<()> {
        if self.eat(c)? { Ok(()) } else { self.error(format!("'{c}' is expected")) }
    }

    fn eat_word(&mut self, word: &str) -> Result<bool> {
        let found = matches!(&self.token, Token::Word(w) if w == word);
        if found {
            self.bump()?;
        }
        Ok(found)
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word)? { Ok(()) } else { self.error(format!("\"{word}\" is expected")) }
    }

    fn word(&mut self) -> Result<String> {
        match self.bump()? {
            Token::Word(word) => Ok(word),
            _ => self.error("a name is expected"),
        }
    }

    fn text(&mut self) -> Result<String> {
        match self.bump()? {
            Token::Text(text) => Ok(text),
            _ => self.error("text in quotes is expected"),
        }
    }

    fn number(&mut self) -> Result<u64> {
        let word = self.word()?;
        let number = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        number.or_else(|_| self.error(format!("\"{word}\" is not a number")))
    }

    fn int<T: TryFrom<u64>>(&mut self) -> Result<T> {
        let number = self.number()?;
        T::try_from(number).or_else(|_| self.error(format!("{number} is too large")))
    }

    fn named<T>(&mut self, what: &str, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        let word = self.word()?;
        match find(&word) {
            Some(found) => Ok(found),
            None => self.error(format!("\"{word}\" is not {what}")),
        }
    }

    /// Names of flags with `|` between them.
    fn set<T: Copy>(
        &mut self,
        what: &str,
        none: T,
        or: fn(T, T) -> T,
        find: fn(&str) -> Option<T>,
    ) -> Result<T> {
        let word = self.word()?;
        let mut set = none;
        for name in word.split('|') {
            match find(name) {
                Some(flag) => set = or(set, flag),
                None => return self.error(format!("\"{name}\" is not {what}")),
            }
        }
        Ok(set)
    }

    fn access(&mut self) -> Result<Access> {
        if !self.eat_word("access")? {
            return Ok(Access::NONE);
        }
        self.set("an access flag", Access::NONE, Access::or, Access::from_name)
    }

    /// An entity that the text has already defined: its prefix, and how many there are.
    fn entity<E: Entity>(&mut self, prefix: &str, count: usize) -> Result<E> {
        let word = self.word()?;
        let index = word.strip_prefix(prefix).and_then(|digits| digits.parse::<usize>().ok());
        match index {
            Some(index) if index < count => Ok(E::new(index)),
            _ => self.error(format!("\"{word}\" is not defined")),
        }
    }

    /// The next entity of a kind, which must have the next number.
    fn defined(&mut self, prefix: &str, count: usize) -> Result<()> {
        let word = self.word()?;
        if word == format!("{prefix}{count}") {
            Ok(())
        } else {
            self.error(format!("{prefix}{count} is expected, not \"{word}\""))
        }
    }
}

/// The shader around its functions.
impl Parser<'_> {
    fn shader(&mut self, shader: &mut Shader) -> Result<()> {
        self.expect_word("shader")?;
        shader.info.stage = self.named("a stage", Stage::from_name)?;
        shader.info.name = self.text()?;
        while self.token != Token::End {
            let item = self.word()?;
            match item.as_str() {
                "file" => {
                    self.defined("", shader.files.len())?;
                    let name = self.text()?;
                    shader.files.push(name);
                }
                "type" => self.type_node(shader)?,
                "var" => self.var(shader)?,
                "resource" => self.resource(shader)?,
                "loc" => {
                    self.defined("", shader.locs.len())?;
                    self.expect('=')?;
                    let loc = SourceLoc { file: self.int()?, line: self.int()?, column: self.int()? };
                    shader.locs.push(loc);
                }
                "fn" => self.function(shader)?,
                other => self.info(shader, other)?,
            }
        }
        Ok(())
    }

    fn info(&mut self, shader: &mut Shader, item: &str) -> Result<()> {
        let info = &mut shader.info;
        match item {
            "workgroup_size" => info.workgroup_size = [self.int()?, self.int()?, self.int()?],
            "sizes" => {
                self.expect_word("shared")?;
                info.shared_size = self.int()?;
                self.expect_word("scratch")?;
                info.scratch_size = self.int()?;
                self.expect_word("push")?;
                info.push_size = self.int()?;
            }
            "constants" => info.constant_size = self.int()?,
            "floats" => {
                let at = match self.number()? {
                    16 => 0,
                    32 => 1,
                    64 => 2,
                    _ => return self.error("floats have 16, 32 or 64 bits"),
                };
                info.float_modes[at] = self.float_mode()?;
            }
            "modes" => info.modes = self.set("a mode", Modes::NONE, Modes::or, Modes::from_name)?,
            "input_primitive" => {
                info.input_primitive = Some(self.named("a primitive", Primitive::from_name)?)
            }
            "output_primitive" => {
                info.output_primitive = Some(self.named("a primitive", Primitive::from_name)?)
            }
            "spacing" => info.spacing = Some(self.named("a spacing", Spacing::from_name)?),
            "output_vertices" => info.output_vertices = self.int()?,
            "invocations" => info.invocations = self.int()?,
            other => return self.error(format!("\"{other}\" is not known here")),
        }
        Ok(())
    }

    fn float_mode(&mut self) -> Result<FloatMode> {
        let rounds = [Round::NearestEven, Round::Up, Round::Down, Round::Zero];
        let find = |name: &str| rounds.into_iter().find(|&round| super::print::round_name(round) == name);
        let round = self.named("a rounding", find)?;
        let flush = self.named("a treatment of denormals", |name| {
            Some(match name {
                "any" => None,
                "flush" => Some(true),
                "keep" => Some(false),
                _ => return None,
            })
        })?;
        Ok(FloatMode { round, flush, preserve: self.eat_word("preserve")? })
    }

    fn type_node(&mut self, shader: &mut Shader) -> Result<()> {
        let count = shader.types.len();
        self.defined("t", count)?;
        self.expect('=')?;
        let node = if self.eat('[')? {
            let len = self.int()?;
            let element = self.entity::<TypeId>("t", count)?;
            self.expect(']')?;
            TypeNode::Array { element, len }
        } else if self.eat('(')? {
            let mut members = Vec::new();
            while !self.eat(')')? {
                members.push(self.entity::<TypeId>("t", count)?);
                if !self.is(')') {
                    self.expect(',')?;
                }
            }
            TypeNode::Struct(members)
        } else {
            TypeNode::Leaf(self.ty()?)
        };
        shader.types.push(node);
        Ok(())
    }

    fn ty(&mut self) -> Result<Type> {
        self.named("a type", Type::parse)
    }

    fn var(&mut self, shader: &mut Shader) -> Result<()> {
        self.defined("v", shader.vars.len())?;
        let mut data = VarData::new(
            self.text()?,
            self.named("a storage", Storage::from_name)?,
            self.entity::<TypeId>("t", shader.types.len())?,
        );
        loop {
            if self.eat_word("location")? {
                data.location = Some(self.int()?);
            } else if self.eat_word("component")? {
                data.component = self.int()?;
            } else if self.eat_word("index")? {
                data.index = self.int()?;
            } else if self.eat_word("builtin")? {
                data.builtin = Some(self.named("a built-in", Builtin::from_name)?);
            } else if self.eat_word("flags")? {
                data.flags = self.set("a flag", VarFlags::NONE, VarFlags::or, VarFlags::from_name)?;
            } else if self.eat_word("capture")? {
                data.capture = Some((self.int()?, self.int()?, self.int()?));
            } else {
                break;
            }
        }
        shader.vars.push(data);
        Ok(())
    }

    fn resource(&mut self, shader: &mut Shader) -> Result<()> {
        self.defined("r", shader.resources.len())?;
        let name = self.text()?;
        let class = self.named("a class of resources", ResourceClass::from_name)?;
        let mut data = ResourceData {
            name,
            class,
            set: 0,
            binding: 0,
            count: 1,
            access: Access::NONE,
            dim: Dim::Buffer,
            size: 0,
            attachment: None,
        };
        loop {
            if self.eat_word("set")? {
                data.set = self.int()?;
            } else if self.eat_word("binding")? {
                data.binding = self.int()?;
            } else if self.eat_word("count")? {
                data.count = self.int()?;
            } else if self.eat_word("size")? {
                data.size = self.int()?;
            } else if self.eat_word("dim")? {
                data.dim = self.named("a shape", Dim::from_name)?;
            } else if self.eat_word("attachment")? {
                data.attachment = Some(self.int()?);
            } else if matches!(&self.token, Token::Word(word) if word == "access") {
                data.access = self.access()?;
            } else {
                break;
            }
        }
        shader.resources.push(data);
        Ok(())
    }
}

/// Numbers that the entities of a shader have.
struct Counts {
    vars: usize,
    resources: usize,
    locs: usize,
}

/// Functions.
impl Parser<'_> {
    fn function(&mut self, shader: &mut Shader) -> Result<()> {
        self.defined("f", shader.functions().len())?;
        let counts =
            Counts { vars: shader.vars.len(), resources: shader.resources.len(), locs: shader.locs.len() };
        let id = shader.add_function();
        let func = shader.function_mut(id);
        func.name = self.text()?;
        self.values.clear();
        self.labels.clear();
        for (number, ty) in self.parameters()? {
            let value = func.add_param(func.body(), ty);
            self.define(number, value)?;
        }
        self.expect('>')?;
        self.expect('(')?;
        while !self.eat(')')? {
            let ty = self.ty()?;
            func.results.push(ty);
            if !self.is(')') {
                self.expect(',')?;
            }
        }
        let body = func.body();
        self.region(func, body, &counts)
    }

    fn define(&mut self, number: u32, value: Value) -> Result<()> {
        match self.values.insert(number, value) {
            None => Ok(()),
            Some(_) => self.error(format!("%{number} is defined twice")),
        }
    }

    fn typed_value(&mut self) -> Result<(u32, Type)> {
        let Token::Value(number) = self.bump()? else { return self.error("a value is expected") };
        self.expect(':')?;
        Ok((number, self.ty()?))
    }

    fn parameters(&mut self) -> Result<Vec<(u32, Type)>> {
        let mut parameters = Vec::new();
        self.expect('(')?;
        while !self.eat(')')? {
            parameters.push(self.typed_value()?);
            if !self.is(')') {
                self.expect(',')?;
            }
        }
        Ok(parameters)
    }

    fn region(&mut self, func: &mut Function, region: Region, counts: &Counts) -> Result<()> {
        self.expect('{')?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.error(format!("more than {MAX_DEPTH} regions are within each other"));
        }
        while !self.eat('}')? {
            self.inst(func, region, counts)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn inst(&mut self, func: &mut Function, region: Region, counts: &Counts) -> Result<()> {
        let mut numbers = Vec::new();
        let mut types = Vec::new();
        if matches!(self.token, Token::Value(_)) {
            loop {
                let (number, ty) = self.typed_value()?;
                numbers.push(number);
                types.push(ty);
                if !self.eat(',')? {
                    break;
                }
            }
            self.expect('=')?;
        }
        let op = self.named("an operation", Op::from_name)?;
        let exact = self.eat('!')?;
        let taken = self.eat('+')?;
        let mut label = None;
        let payload = self.payload(func, op, counts, &mut label)?;
        let mut args = Vec::new();
        // Results of the next instruction are on the next line.
        while let Token::Value(number) = self.token
            && (!self.lexer.starts_line || !args.is_empty())
        {
            self.bump()?;
            match self.values.get(&number) {
                Some(&value) => args.push(value),
                None => return self.error(format!("%{number} is not defined")),
            }
            if !self.eat(',')? {
                break;
            }
        }
        let inst = func.make_inst(op, payload, &args, &types);
        func.set_exact(inst, exact);
        func.set_taken(inst, taken);
        if let Token::Loc(number) = self.token {
            self.bump()?;
            if number as usize >= counts.locs {
                return self.error(format!("position {number} is not defined"));
            }
            func.set_loc(inst, Some(Loc::new(number as usize)));
        }
        func.append(region, inst);
        for (number, value) in numbers.into_iter().zip(func.results(inst).to_vec()) {
            self.define(number, value)?;
        }
        if let Some(label) = label
            && self.labels.insert(label, inst).is_some()
        {
            return self.error(format!("label L{label} is defined twice"));
        }
        match payload {
            Payload::Body(body) => {
                if op == Op::Loop {
                    for (number, ty) in self.parameters()? {
                        let value = func.add_param(body, ty);
                        self.define(number, value)?;
                    }
                }
                self.region(func, body, counts)
            }
            Payload::Arms(then, other) => {
                self.region(func, then, counts)?;
                self.expect_word("else")?;
                self.region(func, other, counts)
            }
            _ => Ok(()),
        }
    }

    fn label(&mut self) -> Result<u32> {
        let word = self.word()?;
        match word.strip_prefix('L').and_then(|digits| digits.parse().ok()) {
            Some(label) => Ok(label),
            None => self.error(format!("\"{word}\" is not a label")),
        }
    }

    fn payload(
        &mut self,
        func: &mut Function,
        op: Op,
        counts: &Counts,
        label: &mut Option<u32>,
    ) -> Result<Payload> {
        let form = PayloadForm::of_op(op);
        if form == PayloadForm::None {
            return Ok(Payload::None);
        }
        self.expect('<')?;
        let payload = match form {
            PayloadForm::None => Payload::None,
            PayloadForm::Const => Payload::Const(self.number()?),
            PayloadForm::Lane => Payload::Lane(self.int()?),
            PayloadForm::SysVal => Payload::SysVal(self.named("a system value", SystemValue::from_name)?),
            PayloadForm::Resource => {
                Payload::Resource(self.entity::<Resource>("r", counts.resources)?, self.access()?)
            }
            PayloadForm::Var => {
                let var = self.entity::<Var>("v", counts.vars)?;
                self.expect_word("mask")?;
                Payload::Var(var, self.int()?)
            }
            PayloadForm::Interp => {
                let var = self.entity::<Var>("v", counts.vars)?;
                Payload::Interp(var, self.named("an interpolation", InterpAt::from_name)?)
            }
            PayloadForm::Mem => Payload::Mem(self.memory()?),
            PayloadForm::Atomic => {
                let op = self.named("an atomic operation", AtomicOp::from_name)?;
                Payload::Atomic(op, self.memory()?)
            }
            PayloadForm::Slot => Payload::Slot(self.slot()?),
            PayloadForm::Bary => {
                let at = self.named("an interpolation", InterpAt::from_name)?;
                Payload::Bary(at, self.eat_word("linear")?)
            }
            PayloadForm::Image => Payload::Image(self.image()?),
            PayloadForm::ImageAtomic => {
                let op = self.named("an atomic operation", AtomicOp::from_name)?;
                Payload::ImageAtomic(op, self.image()?)
            }
            PayloadForm::Barrier => Payload::Barrier(self.barrier()?),
            PayloadForm::Quad => Payload::Quad(self.named("a neighbour", QuadDir::from_name)?),
            PayloadForm::Reduce => {
                let op = self.named("an operation", Op::from_name)?;
                Payload::Reduce(op, self.int()?)
            }
            PayloadForm::Scope => Payload::Scope(self.named("a scope", Scope::from_name)?),
            PayloadForm::Stream => Payload::Stream(self.int()?),
            PayloadForm::Register => {
                let vector = self.eat_word("vector")?;
                if !vector {
                    self.expect_word("scalar")?;
                }
                let registers = AmdRegisters { vector, first: self.int()? };
                let most = if self.eat_word("most")? { self.int()? } else { u32::MAX };
                Payload::Register(AmdInput { registers, most })
            }
            PayloadForm::Export => Payload::Export(self.export()?),
            PayloadForm::Buffer => {
                self.expect_word("offset")?;
                Payload::Buffer(AmdBuffer { offset: self.int()?, access: self.access()? })
            }
            PayloadForm::Typed => {
                let (lanes, bits) = (self.int()?, self.int()?);
                let number = self.named("a number format", AmdNumber::from_name)?;
                self.expect_word("align")?;
                let align = self.int()?;
                self.expect_word("offset")?;
                let buffer = AmdBuffer { offset: self.int()?, access: self.access()? };
                Payload::Typed(AmdTyped { buffer, lanes, bits, number, align })
            }
            PayloadForm::Number => Payload::Number(self.int()?),
            PayloadForm::Body => {
                *label = Some(self.label()?);
                Payload::Body(func.add_region())
            }
            PayloadForm::Arms => {
                *label = Some(self.label()?);
                let then = func.add_region();
                Payload::Arms(then, func.add_region())
            }
            PayloadForm::Target => {
                let label = self.label()?;
                match self.labels.get(&label) {
                    Some(&target) => Payload::Target(target),
                    None => return self.error(format!("label L{label} is not defined")),
                }
            }
            // The validator knows how many functions there are in the end.
            PayloadForm::Callee => Payload::Callee(self.entity::<Func>("f", u32::MAX as usize)?),
        };
        self.expect('>')?;
        Ok(payload)
    }

    fn memory(&mut self) -> Result<MemAccess> {
        let space = self.named("a space", Space::from_name)?;
        self.expect_word("align")?;
        let align = self.number()?;
        if !align.is_power_of_two() {
            return self.error("an alignment is a power of two");
        }
        Ok(MemAccess { space, align: align.trailing_zeros() as u8, access: self.access()? })
    }

    fn slot(&mut self) -> Result<SlotAccess> {
        let dir = self.named("a direction", SlotDir::from_name)?;
        self.expect_word("slot")?;
        let slot = self.int()?;
        let count = if self.eat_word("count")? { self.int()? } else { 1 };
        self.expect_word("component")?;
        let component = self.int()?;
        self.expect_word("index")?;
        let index = self.int()?;
        let vertex = self.eat_word("vertex")?;
        Ok(SlotAccess { dir, vertex, patch: self.eat_word("patch")?, component, slot, count, index })
    }

    fn image(&mut self) -> Result<ImageAccess> {
        let dim = self.named("a shape", Dim::from_name)?;
        let mut image =
            ImageAccess { dim, flags: ImageFlags::NONE, access: Access::NONE, component: 0, format: 0 };
        if self.eat_word("flags")? {
            image.flags = self.set("a flag", ImageFlags::NONE, ImageFlags::or, ImageFlags::from_name)?;
        }
        image.access = self.access()?;
        if self.eat_word("component")? {
            image.component = self.int()?;
        }
        if self.eat_word("format")? {
            image.format = self.int()?;
        }
        Ok(image)
    }

    fn export(&mut self) -> Result<AmdExport> {
        self.expect_word("target")?;
        let target = self.int()?;
        self.expect_word("enabled")?;
        let enabled = self.int()?;
        let compressed = self.eat_word("compressed")?;
        let done = self.eat_word("done")?;
        Ok(AmdExport { target, enabled, compressed, done, valid: self.eat_word("valid")? })
    }

    fn barrier(&mut self) -> Result<BarrierInfo> {
        self.expect_word("execution")?;
        let execution = self.named("a scope", Scope::from_name)?;
        self.expect_word("memory")?;
        let memory = self.named("a scope", Scope::from_name)?;
        let mut info = BarrierInfo { execution, memory, order: Order::NONE, kinds: MemoryKinds::NONE };
        if self.eat_word("order")? {
            info.order = self.set("an order", Order::NONE, Order::or, Order::from_name)?;
        }
        if self.eat_word("kinds")? {
            info.kinds = self.set("a memory", MemoryKinds::NONE, MemoryKinds::or, MemoryKinds::from_name)?;
        }
        Ok(info)
    }
}
