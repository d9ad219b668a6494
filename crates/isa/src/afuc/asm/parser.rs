//! Reads lines of assembly into statements.
//!
//! A line that cannot be read becomes an error and is left out. Never looks a name up: that needs the firmware, which
//! the source itself names.

use super::super::insn::{Alu, Field, Insn, Op, Syntax};
use super::error::{Error, Problem};
use super::lexer::{Kind, Token, tokens};

/// What a line (or a part of one) says.
#[derive(Debug)]
pub struct Statement<'s> {
    pub line: usize,
    pub column: usize,
    pub what: What<'s>,
}

#[derive(Debug)]
pub enum What<'s> {
    /// `name:`.
    Label(&'s str),
    /// `.align 32`, in bytes.
    Align(u32),
    /// `.jumptbl`.
    JumpTable,
    /// `.section BV`.
    Section,
    /// `[01234567]`.
    Literal(u32),
    /// `[#label]`, and the label's column.
    Offset(&'s str, usize),
    /// `.stripped 0x1`: the dword the kernel strips.
    Stripped(u32),
    /// `.firmware 0x6ee`: the firmware where its version says otherwise.
    Firmware(u32),
    /// `.empty`: not even the stripped dword is there.
    Empty,
    /// `.byte 0x12`: after the last whole dword.
    Byte(u8),
    /// An instruction.
    Insn(Source<'s>),
}

/// An instruction whose names are not looked up yet.
#[derive(Debug)]
pub struct Source<'s> {
    pub insn: Insn,
    /// Fields that need a look-up, with the column of each.
    pub values: Vec<(Field, Value<'s>, usize)>,
    /// Where it branches, and the label's column.
    pub label: Option<(&'s str, usize)>,
}

/// A number, or something that stands for one.
#[derive(Clone, Copy, Debug)]
pub enum Value<'s> {
    Number(u32),
    /// A control register, and what is added.
    Control(&'s str, u32),
    /// An SQE register, and what is added.
    Sqe(&'s str, u32),
    /// Offset of a label.
    Label(&'s str),
}

/// The statements of a source, and what could not be read.
pub fn parse(source: &str) -> (Vec<Statement<'_>>, Vec<Error>) {
    let (mut statements, mut errors) = (Vec::new(), Vec::new());
    for (line, number) in source.lines().zip(1..) {
        match tokens(line, number) {
            Err(error) => errors.push(error),
            Ok(tokens) => {
                let mut cursor = Cursor { tokens: &tokens, at: 0, line: number, end: line.len() + 1 };
                while !cursor.is_done() {
                    match cursor.statement() {
                        Ok(statement) => statements.push(statement),
                        Err(error) => {
                            errors.push(error);
                            break;
                        }
                    }
                }
            }
        }
    }
    (statements, errors)
}

struct Cursor<'t, 's> {
    tokens: &'t [Token<'s>],
    at: usize,
    line: usize,
    end: usize,
}

type Parsed<T> = Result<T, Error>;

impl<'s> Cursor<'_, 's> {
    fn is_done(&self) -> bool {
        self.at >= self.tokens.len()
    }

    fn peek(&self) -> Option<&Kind<'s>> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn column(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |token| token.column)
    }

    fn error(&self, problem: Problem) -> Error {
        Error::at(self.line, self.column(), problem)
    }

    fn expected<T>(&self, expected: &'static str) -> Parsed<T> {
        let found = match self.tokens.get(self.at) {
            Some(token) => format!("`{}`", token.text),
            None => "the end of the line".to_string(),
        };
        Err(self.error(Problem::Expected { expected, found }))
    }

    fn take_mark(&mut self, mark: &str) -> bool {
        let found = matches!(self.peek(), Some(Kind::Mark(m)) if *m == mark);
        self.at += usize::from(found);
        found
    }

    fn mark(&mut self, mark: &str, expected: &'static str) -> Parsed<()> {
        if self.take_mark(mark) { Ok(()) } else { self.expected(expected) }
    }

    fn comma(&mut self) -> Parsed<()> {
        self.mark(",", "`,`")
    }

    fn number(&mut self, expected: &'static str) -> Parsed<u32> {
        match self.peek() {
            Some(&Kind::Number(number)) => {
                self.at += 1;
                Ok(number)
            }
            _ => self.expected(expected),
        }
    }

    fn register(&mut self) -> Parsed<u32> {
        match self.peek() {
            Some(&Kind::Register(register)) => {
                self.at += 1;
                Ok(register)
            }
            _ => self.expected("a register"),
        }
    }

    fn bit(&mut self) -> Parsed<u32> {
        match self.peek() {
            Some(&Kind::Bit(bit)) => {
                self.at += 1;
                Ok(bit)
            }
            _ => self.expected("a bit such as b3"),
        }
    }

    fn label(&mut self) -> Parsed<(&'s str, usize)> {
        match self.peek() {
            Some(&Kind::Label(label)) => {
                let column = self.column();
                self.at += 1;
                Ok((label, column))
            }
            _ => self.expected("a label such as #loop"),
        }
    }

    fn statement(&mut self) -> Parsed<Statement<'s>> {
        let column = self.column();
        let what = match self.peek() {
            Some(&Kind::Literal(word)) => {
                self.at += 1;
                What::Literal(word)
            }
            Some(Kind::Mark("[")) => {
                self.at += 1;
                let (label, column) = self.label()?;
                self.mark("]", "`]`")?;
                What::Offset(label, column)
            }
            Some(&Kind::Directive(name)) => self.directive(name)?,
            Some(&Kind::Word(name)) => {
                let colon = self.tokens.get(self.at + 1).map(|token| &token.kind);
                if colon == Some(&Kind::Mark(":")) {
                    self.at += 2;
                    What::Label(name)
                } else {
                    What::Insn(self.insn()?)
                }
            }
            Some(Kind::Bit(_)) if self.tokens.get(self.at + 1).is_some_and(|t| t.kind == Kind::Mark(":")) => {
                let name = self.tokens.get(self.at).map_or("", |token| token.text);
                self.at += 2;
                What::Label(name)
            }
            Some(Kind::Modifier(_)) => What::Insn(self.insn()?),
            _ => return self.expected("an instruction, a label, a literal or a directive"),
        };
        Ok(Statement { line: self.line, column, what })
    }

    fn directive(&mut self, name: &'s str) -> Parsed<What<'s>> {
        let here = self.error(Problem::NoDirective(name.to_string()));
        self.at += 1;
        match name {
            "jumptbl" => Ok(What::JumpTable),
            "align" => {
                let column = self.column();
                let bytes = self.number("a number of bytes")?;
                if bytes == 0 || !bytes.is_multiple_of(4) || bytes > 4096 {
                    return Err(Error::at(self.line, column, Problem::BadAlignment(bytes)));
                }
                Ok(What::Align(bytes))
            }
            "section" => match self.peek() {
                Some(Kind::Word(_)) => {
                    self.at += 1;
                    Ok(What::Section)
                }
                _ => self.expected("the name of a section, BV or LPAC"),
            },
            "stripped" => Ok(What::Stripped(self.number("a number")?)),
            "firmware" => Ok(What::Firmware(self.number("a firmware id such as 0x6ee")?)),
            "empty" => Ok(What::Empty),
            "byte" => {
                let column = self.column();
                let value = self.number("a byte")?;
                let too_large = |_| Error::at(self.line, column, Problem::TooLarge(format!("{value:#x}")));
                Ok(What::Byte(u8::try_from(value).map_err(too_large)?))
            }
            _ => Err(here),
        }
    }

    fn insn(&mut self) -> Parsed<Source<'s>> {
        let mut modifiers = Vec::new();
        while let Some(&Kind::Modifier(name)) = self.peek() {
            let (word, count) = match name.strip_suffix(['1', '2', '3']) {
                Some(word) => (word, name.bytes().last().map_or(0, |digit| u32::from(digit - b'0'))),
                None => (name, 1),
            };
            let field = match (word, word == name) {
                ("rep", true) => Field::Rep,
                ("peek", true) => Field::Peek,
                ("xmov", false) => Field::Xmov,
                ("sds", false) => Field::Sds,
                _ => return Err(self.error(Problem::NoModifier(name.to_string()))),
            };
            modifiers.push((field, count));
            self.at += 1;
        }
        let Some(&Kind::Word(mnemonic)) = self.peek() else { return self.expected("an instruction") };
        let unknown = self.error(Problem::NoMnemonic(mnemonic.to_string()));
        self.at += 1;
        let mut source = match mnemonic {
            "mov" => self.mov()?,
            "jump" => self.jump()?,
            _ => {
                let choices: Vec<Op> = Op::with_mnemonic(mnemonic).collect();
                if choices.is_empty() {
                    return Err(unknown);
                }
                self.operands(&choices)?
            }
        };
        for (field, count) in modifiers {
            source.insn.set(field, count);
        }
        Ok(source)
    }

    /// `mov` stands for a shifted immediate, and for an `or` with `$00`.
    fn mov(&mut self) -> Parsed<Source<'s>> {
        let dst = self.register()?;
        self.comma()?;
        if let Some(&Kind::Register(register)) = self.peek() {
            self.at += 1;
            let insn = Insn::new(Op::Alu(Alu::Or)).with(Field::Dst, dst).with(Field::Src2, register);
            return Ok(Source { insn, values: Vec::new(), label: None });
        }
        let column = self.column();
        let value = self.value("a register, an immediate or a label")?;
        let mut insn = Insn::new(Op::MovImm).with(Field::Dst, dst);
        let mut values = vec![(Field::RegImm, value, column)];
        if self.take_mark("<<") {
            let column = self.column();
            values.push((Field::Shift, self.value("a shift")?, column));
        }
        insn.set(Field::Shift, 0);
        Ok(Source { insn, values, label: None })
    }

    /// `jump` stands for a branch on a clear bit of `$00`, and for the jump through a register.
    fn jump(&mut self) -> Parsed<Source<'s>> {
        if let Some(&Kind::Register(register)) = self.peek() {
            self.at += 1;
            let insn = Insn::new(Op::JumpReg).with(Field::Src1, register);
            return Ok(Source { insn, values: Vec::new(), label: None });
        }
        let label = Some(self.label()?);
        Ok(Source { insn: Insn::new(Op::BrneBit), values: Vec::new(), label })
    }

    /// The operands of an instruction that has one or several operand lists; those of one mnemonic differ only in
    /// whether a source is a register, an immediate or a bit.
    fn operands(&mut self, choices: &[Op]) -> Parsed<Source<'s>> {
        let find = |wanted: Syntax| choices.iter().copied().find(|op| op.syntax() == wanted);
        let first = choices.first().map_or(Syntax::Nothing, |op| op.syntax());
        let mut source = Source { insn: Insn::new(Op::Nop), values: Vec::new(), label: None };
        let op = match first {
            Syntax::Nothing => find(first),
            Syntax::DstSrcSrc | Syntax::DstSrcImm | Syntax::DstSrcBit | Syntax::DstSrcBitBit => {
                source.insn.set(Field::Dst, self.register()?);
                self.comma()?;
                source.insn.set(Field::Src1, self.register()?);
                self.comma()?;
                self.last_source(&mut source, &find)?
            }
            Syntax::DstSrc | Syntax::DstImm => {
                source.insn.set(Field::Dst, self.register()?);
                self.comma()?;
                let immediate = find(Syntax::DstImm);
                if let (Some(op), false) = (immediate, matches!(self.peek(), Some(Kind::Register(_)))) {
                    self.immediate(&mut source, Field::Imm)?;
                    Some(op)
                } else {
                    source.insn.set(Field::Src1, self.register()?);
                    find(Syntax::DstSrc)
                }
            }
            Syntax::SrcMem | Syntax::DstMem => {
                let field = if first == Syntax::SrcMem { Field::Src1 } else { Field::Dst };
                source.insn.set(field, self.register()?);
                self.comma()?;
                let op = find(first);
                self.address(&mut source, op)?;
                op
            }
            Syntax::SrcImmBranch | Syntax::SrcBitBranch => {
                source.insn.set(Field::Src1, self.register()?);
                self.comma()?;
                let op = if let Some(&Kind::Bit(bit)) = self.peek() {
                    self.at += 1;
                    source.insn.set(Field::Bit, bit);
                    find(Syntax::SrcBitBranch)
                } else {
                    self.immediate(&mut source, Field::Imm)?;
                    find(Syntax::SrcImmBranch)
                };
                self.comma()?;
                source.label = Some(self.label()?);
                op
            }
            Syntax::Call | Syntax::Absolute => {
                source.label = Some(self.label()?);
                find(first)
            }
            Syntax::Secure => {
                let here = self.error(Problem::SecureRegister);
                if self.register()? != 2 {
                    return Err(here);
                }
                self.comma()?;
                source.label = Some(self.label()?);
                find(first)
            }
            // Only `mov` and `jump` have these, and they are read above.
            Syntax::DstImmShift | Syntax::Src => None,
        };
        let Some(op) = op else { return self.expected("other operands") };
        source.insn = moved(&source.insn, op);
        Ok(source)
    }

    /// The last operand of a two-source operation.
    fn last_source(
        &mut self,
        source: &mut Source<'s>,
        find: &impl Fn(Syntax) -> Option<Op>,
    ) -> Parsed<Option<Op>> {
        let (register, immediate) = (find(Syntax::DstSrcSrc), find(Syntax::DstSrcImm));
        let (bit, bits) = (find(Syntax::DstSrcBit), find(Syntax::DstSrcBitBit));
        if let (Some(op), Some(&Kind::Register(number))) = (register, self.peek()) {
            self.at += 1;
            source.insn.set(Field::Src2, number);
            return Ok(Some(op));
        }
        if bit.is_some() || bits.is_some() {
            source.insn.set(Field::Bit, self.bit()?);
            if bits.is_some() {
                self.comma()?;
                source.insn.set(Field::High, self.bit()?);
            }
            return Ok(bit.or(bits));
        }
        if immediate.is_some() {
            self.immediate(source, Field::RegImm)?;
        }
        Ok(immediate)
    }

    fn immediate(&mut self, source: &mut Source<'s>, field: Field) -> Parsed<()> {
        let column = self.column();
        source.values.push((field, self.value("a register or an immediate")?, column));
        Ok(())
    }

    fn address(&mut self, source: &mut Source<'s>, op: Option<Op>) -> Parsed<()> {
        self.mark("[", "`[`")?;
        source.insn.set(Field::Base, self.register()?);
        self.mark("+", "`+`")?;
        let field = match op {
            Some(Op::Cwrite | Op::Cread) => Field::ControlOffset,
            Some(Op::Swrite | Op::Sread) => Field::SqeOffset,
            _ => Field::MemOffset,
        };
        let column = self.column();
        source.values.push((field, self.value("an offset")?, column));
        self.mark("]", "`]`")?;
        if self.take_mark("!") {
            source.insn.set(Field::PreIncrement, 1);
        }
        Ok(())
    }

    fn value(&mut self, expected: &'static str) -> Parsed<Value<'s>> {
        let value = match self.peek() {
            Some(&Kind::Number(number)) => Value::Number(number),
            Some(&Kind::Label(label)) => Value::Label(label),
            Some(&Kind::Control(name)) => Value::Control(name, 0),
            Some(&Kind::Sqe(name)) => Value::Sqe(name, 0),
            _ => return self.expected(expected),
        };
        self.at += 1;
        Ok(match value {
            Value::Control(name, _) => Value::Control(name, self.more()?),
            Value::Sqe(name, _) => Value::Sqe(name, self.more()?),
            other => other,
        })
    }

    /// `+0x1` behind a register's name, or nothing.
    fn more(&mut self) -> Parsed<u32> {
        if self.take_mark("+") { self.number("a number") } else { Ok(0) }
    }
}

/// The fields of an instruction under another operation.
fn moved(insn: &Insn, op: Op) -> Insn {
    let mut moved = *insn;
    moved.op = op;
    moved
}
