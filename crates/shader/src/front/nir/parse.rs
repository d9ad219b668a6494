//! From text to a list of items in the order of the text: blocks, instructions, and where ifs and loops start and end.

use super::error::{NirCause, NirError, Result, invalid, unsupported};
use super::head::{self, TextureShape};
use super::lexer::Cursor;
use super::texture::is_texture;
use crate::ir::{Base, FloatMode, MAX_DEPTH, Stage, Type};
use std::collections::HashMap;
use std::ops::Range;

/// An operand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operand<'a> {
    /// The number of the value.
    pub id: u32,
    /// The components that are used, if not all.
    pub swizzle: Option<&'a str>,
}

/// An instruction; ranges are those of the pools of [`Program`].
#[derive(Debug, Clone)]
pub(super) struct InstText<'a> {
    /// Number and type of the result.
    pub def: Option<(u32, Type)>,
    pub name: &'a str,
    pub intrinsic: bool,
    pub exact: bool,
    pub operands: Range<usize>,
    pub indices: Range<usize>,
    pub constants: Range<usize>,
}

/// A piece of the text.
#[derive(Debug, Clone)]
pub(super) enum Item<'a> {
    /// A block with the number of phis that follow.
    Block {
        name: u32,
        phis: usize,
    },
    /// A phi; its sources are in [`Program::sources`].
    Phi {
        id: u32,
        ty: Type,
        sources: Range<usize>,
    },
    /// Any other instruction.
    Inst(InstText<'a>),
    /// An `if` with its condition, and the item that ends it.
    If {
        condition: u32,
        end: usize,
        /// The driver knows that a wave nearly always takes the first arm.
        taken: bool,
    },
    Else,
    EndIf,
    /// A loop and the item that ends it.
    Loop {
        end: usize,
    },
    EndLoop,
    Break,
    Continue,
    Return,
    Halt,
}

/// A buffer variable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decl<'a> {
    pub uniform: bool,
    pub words: &'a str,
    pub binding: u32,
}

/// The contents of a text.
#[derive(Debug, Default)]
pub(super) struct Program<'a> {
    /// The stage, once it is read.
    pub stage: Option<Stage>,
    pub workgroup_size: [u32; 3],
    pub shared_size: u32,
    pub scratch_size: u32,
    pub push_size: u32,
    /// Bytes of constants that the driver places after the code.
    pub constant_size: u32,
    pub decls: Vec<Decl<'a>>,
    /// Shapes of the textures that are declared, each once.
    pub textures: Vec<TextureShape>,
    /// It is a program of ray generation.
    pub traces_rays: bool,
    /// How floats of 16, 32 and 64 bits behave.
    pub float_modes: [FloatMode; 3],
    pub name: &'a str,
    pub items: Vec<Item<'a>>,
    /// The line of each item.
    pub lines: Vec<u32>,
    pub operands: Vec<Operand<'a>>,
    pub indices: Vec<(&'a str, &'a str)>,
    pub constants: Vec<u64>,
    /// Sources of phis: block and value.
    pub sources: Vec<(u32, u32)>,
    /// The items that define values, by number.
    pub values: HashMap<u32, usize>,
}

/// Where the parser is in the tree of flow.
enum Open {
    If(usize),
    Else(usize),
    Loop(usize),
}

struct Parser<'a> {
    program: Program<'a>,
    open: Vec<Open>,
    blocks: HashMap<u32, ()>,
    state: State,
    /// Whether the next item must be a block.
    needs_block: bool,
    /// Whether the last item was a jump.
    jumped: bool,
    /// The block that phis may follow.
    phis: Option<usize>,
    /// Whether the line says that a wave nearly always takes the first arm.
    taken: bool,
}

#[derive(PartialEq, Eq)]
enum State {
    /// Before `shader:`.
    Start,
    Head,
    Body,
    End,
}

/// The comment of an `if` whose first arm a wave nearly always takes.
const ALWAYS_TAKEN: &str = "always taken";

/// The most shaders of a text: those of two stages that run merged.
const MAX_PROGRAMS: usize = 2;

/// Reads a text: one shader, or several that run merged, in their order.
pub(super) fn parse(text: &str) -> std::result::Result<Vec<Program<'_>>, NirError> {
    let mut programs = Vec::new();
    let mut parser = Parser::new();
    let mut number = 0u32;
    for line in text.lines() {
        number = number.saturating_add(1);
        let (line, comment) = line.split_once("//").unwrap_or((line, ""));
        let line = line.trim();
        parser.taken = comment.contains(ALWAYS_TAKEN);
        if line.is_empty() {
            continue;
        }
        if parser.state == State::End && line.starts_with("shader:") {
            programs.push(std::mem::replace(&mut parser, Parser::new()).program);
            if programs.len() >= MAX_PROGRAMS {
                return Err(NirCause::Unsupported("a third shader".to_owned()).at(number));
            }
        }
        parser.line(line, number).map_err(|cause| cause.at(number))?;
    }
    if parser.state != State::End {
        return Err(NirCause::Expected("the end of a function").at(number));
    }
    programs.push(parser.program);
    Ok(programs)
}

impl<'a> Parser<'a> {
    fn new() -> Parser<'a> {
        Parser {
            program: Program { workgroup_size: [1; 3], ..Program::default() },
            open: Vec::new(),
            blocks: HashMap::new(),
            state: State::Start,
            needs_block: true,
            jumped: false,
            phis: None,
            taken: false,
        }
    }

    fn line(&mut self, line: &'a str, number: u32) -> Result<()> {
        match self.state {
            State::Start => {
                head::stage(&mut self.program, line)?;
                self.state = State::Head;
                Ok(())
            }
            State::Head => self.head(line),
            State::Body => self.body(line, number),
            State::End if line.starts_with("impl ") => unsupported("a second function"),
            State::End => Err(NirCause::Expected("the end of the text")),
        }
    }

    fn head(&mut self, line: &'a str) -> Result<()> {
        let mut cursor = Cursor::new(line);
        if cursor.eat_word("impl") {
            self.program.name = cursor.word();
            cursor.expect("{")?;
            self.state = State::Body;
            return cursor.end();
        }
        head::line(&mut self.program, line)
    }

    fn push(&mut self, item: Item<'a>, line: u32) -> Result<()> {
        let block = matches!(item, Item::Block { .. });
        let phi = matches!(item, Item::Phi { .. });
        if self.needs_block && !block {
            return Err(NirCause::Expected("a block"));
        }
        // The function's last block, which is empty, follows a return.
        let is_last = block && self.open.is_empty();
        if self.jumped && !is_last {
            return invalid("something follows a jump");
        }
        match (phi, self.phis) {
            (true, None) => return invalid("a phi is not at the start of its block"),
            (true, Some(at)) => {
                if let Item::Block { phis, .. } = &mut self.program.items[at] {
                    *phis += 1;
                }
            }
            (false, _) => self.phis = block.then_some(self.program.items.len()),
        }
        self.needs_block = matches!(item, Item::If { .. } | Item::Loop { .. });
        self.jumped |= matches!(item, Item::Break | Item::Continue | Item::Return | Item::Halt);
        self.program.items.push(item);
        self.program.lines.push(line);
        Ok(())
    }

    /// The start or the end of a region, to which no rule of [`Parser::push`] applies.
    fn border(&mut self, item: Item<'a>, line: u32) -> Result<()> {
        if self.needs_block {
            return Err(NirCause::Expected("a block"));
        }
        self.needs_block = true;
        self.jumped = false;
        self.phis = None;
        self.program.items.push(item);
        self.program.lines.push(line);
        Ok(())
    }

    fn body(&mut self, line: &'a str, number: u32) -> Result<()> {
        let mut cursor = Cursor::new(line);
        if cursor.eat("}") {
            return self.close(cursor, number);
        }
        if cursor.eat_word("decl_var") {
            return Ok(());
        }
        if !cursor.eat_word("con") {
            cursor.eat_word("div");
        }
        if cursor.eat_word("block") {
            let name = cursor.block()?;
            cursor.expect(":")?;
            cursor.end()?;
            if self.blocks.insert(name, ()).is_some() {
                return Err(NirCause::Twice(format!("b{name}")));
            }
            return self.push(Item::Block { name, phis: 0 }, number);
        }
        let start = self.program.items.len();
        let jump = |cursor: &mut Cursor<'_>, word: &str| cursor.eat_word(word);
        let item = if jump(&mut cursor, "loop") {
            // A comment may hide the brace.
            cursor.eat("{");
            self.open(Open::Loop(start))?;
            Item::Loop { end: 0 }
        } else if jump(&mut cursor, "if") {
            let condition = self.operand(&mut cursor)?;
            if condition.swizzle.is_some() {
                return unsupported("a component as a condition");
            }
            cursor.eat("{");
            self.open(Open::If(start))?;
            Item::If { condition: condition.id, end: 0, taken: self.taken }
        } else if jump(&mut cursor, "break") {
            Item::Break
        } else if jump(&mut cursor, "continue") {
            Item::Continue
        } else if jump(&mut cursor, "return") {
            Item::Return
        } else if jump(&mut cursor, "halt") {
            Item::Halt
        } else {
            return self.instruction(cursor, number);
        };
        cursor.end()?;
        self.push(item, number)
    }

    fn open(&mut self, open: Open) -> Result<()> {
        if self.open.len() + 1 >= MAX_DEPTH {
            return Err(NirCause::Limit("ifs and loops within each other"));
        }
        self.open.push(open);
        Ok(())
    }

    fn close(&mut self, mut cursor: Cursor<'a>, number: u32) -> Result<()> {
        if cursor.eat_word("continue") {
            return unsupported("a continue construct");
        }
        let is_else = cursor.eat_word("else");
        if is_else {
            cursor.expect("{")?;
        }
        cursor.end()?;
        let end = self.program.items.len();
        match (self.open.pop(), is_else) {
            (Some(Open::If(start)), true) => {
                self.open.push(Open::Else(start));
                self.border(Item::Else, number)
            }
            (Some(Open::Else(start)), false) => {
                if let Item::If { end: at, .. } = &mut self.program.items[start] {
                    *at = end;
                }
                self.border(Item::EndIf, number)
            }
            (Some(Open::Loop(start)), false) => {
                if let Item::Loop { end: at } = &mut self.program.items[start] {
                    *at = end;
                }
                self.border(Item::EndLoop, number)
            }
            (None, false) if !self.needs_block => {
                self.state = State::End;
                Ok(())
            }
            (None, false) => Err(NirCause::Expected("a block")),
            (_, true) => invalid("an else belongs to no if"),
            (Some(Open::If(_)), false) => Err(NirCause::Expected("} else {")),
        }
    }

    fn operand(&mut self, cursor: &mut Cursor<'a>) -> Result<Operand<'a>> {
        let id = cursor.value()?;
        // The value of a constant comes before the components.
        cursor.group()?;
        let swizzle = cursor.eat(".").then(|| cursor.word());
        Ok(Operand { id, swizzle })
    }

    fn instruction(&mut self, mut cursor: Cursor<'a>, line: u32) -> Result<()> {
        let def = if cursor.rest().starts_with('@') { None } else { Some(def(&mut cursor)?) };
        if let Some((id, _)) = def
            && self.program.values.insert(id, self.program.items.len()).is_some()
        {
            return Err(NirCause::Twice(format!("%{id}")));
        }
        let is_intrinsic = cursor.eat("@");
        // The type of what a texture has.
        cursor.group()?;
        let name = cursor.word();
        if name.is_empty() {
            return Err(NirCause::Expected("an instruction"));
        }
        let mut exact = cursor.eat("!");
        // That no wrap-around happens is a hint for optimizations.
        while cursor.eat(".nsw") || cursor.eat(".nuw") {}
        exact |= cursor.eat("!");
        let program = &self.program;
        let (operands, indices, constants) =
            (program.operands.len(), program.indices.len(), program.constants.len());
        match (name, def) {
            ("phi", Some((id, ty))) if !is_intrinsic => {
                let start = self.program.sources.len();
                while !cursor.is_end() {
                    let block = cursor.block()?;
                    cursor.expect(":")?;
                    let operand = self.operand(&mut cursor)?;
                    self.program.sources.push((block, operand.id));
                    if !cursor.eat(",") {
                        break;
                    }
                }
                cursor.end()?;
                let sources = start..self.program.sources.len();
                return self.push(Item::Phi { id, ty, sources }, line);
            }
            ("load_const", Some((_, ty))) if !is_intrinsic => self.constants(&mut cursor, ty)?,
            _ if is_intrinsic => self.intrinsic(&mut cursor)?,
            _ if is_texture(name) => self.texture(&mut cursor)?,
            _ => {
                while !cursor.is_end() {
                    let operand = self.operand(&mut cursor)?;
                    self.program.operands.push(operand);
                    if !cursor.eat(",") {
                        break;
                    }
                }
            }
        }
        cursor.end()?;
        let program = &self.program;
        let inst = InstText {
            def,
            name,
            intrinsic: is_intrinsic,
            exact,
            operands: operands..program.operands.len(),
            indices: indices..program.indices.len(),
            constants: constants..program.constants.len(),
        };
        self.push(Item::Inst(inst), line)
    }

    /// `(0x00000001 = 0.000000)`, `(true)`, `(0x1, 0x2) = (1, 2)`: what follows the first `=` repeats it in other forms.
    fn constants(&mut self, cursor: &mut Cursor<'a>, ty: Type) -> Result<()> {
        let Some(group) = cursor.group()? else { return Err(NirCause::Expected("(")) };
        let bits = group.split_once('=').map_or(group, |(bits, _)| bits);
        let start = self.program.constants.len();
        for lane in bits.split(',') {
            let bits = match lane.trim() {
                "true" => Some(1),
                "false" => Some(0),
                lane => lane.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()),
            };
            let bits = bits.filter(|bits| bits & !ty.base.mask() == 0);
            self.program.constants.push(bits.ok_or(NirCause::Expected("a constant of the width"))?);
        }
        if self.program.constants.len() - start != usize::from(ty.lanes) {
            return Err(NirCause::Expected("as many constants as components"));
        }
        while cursor.eat("=") {
            cursor.group()?;
        }
        Ok(())
    }

    /// `%1 (texture_handle), %2 (0.5) (bias), 2 (gather_component), 0 (texture)`: labels are the names of indices. Operands come first; what
    /// follows them has its number as the value of the index. The numbers of textures and samplers say nothing.
    fn texture(&mut self, cursor: &mut Cursor<'a>) -> Result<()> {
        loop {
            if cursor.rest().starts_with('%') {
                let id = cursor.value()?;
                let swizzle = cursor.eat(".").then(|| cursor.word());
                let mut label = cursor.group()?.ok_or(NirCause::Expected("what an operand is"))?;
                let mut swizzle = swizzle;
                if swizzle.is_none() && cursor.eat(".") {
                    swizzle = Some(cursor.word());
                }
                if let Some(last) = cursor.group()? {
                    label = last;
                }
                self.program.operands.push(Operand { id, swizzle });
                self.program.indices.push((label, ""));
            } else {
                let rest = cursor.rest();
                let number = cursor.word();
                match cursor.group()? {
                    Some("texture" | "sampler") if number.parse::<u32>().is_ok() => {}
                    Some(label) if number.parse::<u32>().is_ok() => {
                        self.program.indices.push((label, number));
                    }
                    None if !number.is_empty() => {
                        return unsupported(format!("a texture access with {rest}"));
                    }
                    _ => return Err(NirCause::Expected("an operand")),
                }
            }
            if !cursor.eat(",") {
                return Ok(());
            }
        }
    }

    /// `(%1, %2 (0x4)) (base=0, access=coherent|volatile)`, both optional.
    fn intrinsic(&mut self, cursor: &mut Cursor<'a>) -> Result<()> {
        while let Some(group) = cursor.group()? {
            let mut inner = Cursor::new(group);
            if inner.rest().starts_with('%') {
                loop {
                    let operand = self.operand(&mut inner)?;
                    self.program.operands.push(operand);
                    if !inner.eat(",") {
                        break;
                    }
                }
                inner.end()?;
                continue;
            }
            for index in split_indices(group) {
                let index = index.trim();
                // What transform feedback captures says nothing here: the driver has written it out.
                if index.is_empty() || index.starts_with("xfb(") || index.starts_with("xfb2(") {
                    continue;
                }
                let Some((key, value)) = index.split_once('=') else {
                    return unsupported(format!("the index {index:?}"));
                };
                self.program.indices.push((key.trim(), value.trim()));
            }
        }
        Ok(())
    }
}

/// `32x4 %5 =`.
fn def(cursor: &mut Cursor<'_>) -> Result<(u32, Type)> {
    let word = cursor.word();
    let (bits, lanes) = word.split_once('x').unwrap_or((word, "1"));
    let (Ok(bits), Ok(lanes)) = (bits.parse(), lanes.parse()) else {
        return Err(NirCause::Expected("a type, an intrinsic, or flow"));
    };
    let Some(ty) = Base::from_bits(bits).and_then(|base| Type::new(base, lanes)) else {
        return unsupported(format!("values of the type {word}"));
    };
    let id = cursor.value()?;
    cursor.expect("=")?;
    Ok((id, ty))
}

/// Indices are separated by commas that are in no parentheses.
fn split_indices(group: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0u32;
    group.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}
