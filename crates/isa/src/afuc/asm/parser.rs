//! Reads lines of assembly into statements.
//!
//! A line that cannot be read becomes an error and is left out. Never looks a name up: that needs the firmware, which
//! the source itself names.

use super::super::insn::{AfucOp, AluOp, Insn, InsnField, Syntax};
use super::error::{AfucError, AfucProblem};
use super::lexer::{Token, TokenKind, tokens};

/// What a line (or a part of one) says.
#[derive(Debug)]
pub struct Statement<'s> {
    pub line: usize,
    pub column: usize,
    pub what: StatementKind<'s>,
}

#[derive(Debug)]
pub enum StatementKind<'s> {
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
    Insn(InsnSource<'s>),
}

/// An instruction whose names are not looked up yet.
#[derive(Debug)]
pub struct InsnSource<'s> {
    pub insn: Insn,
    /// Fields that need a look-up, with the column of each.
    pub values: Vec<(InsnField, ValueExpr<'s>, usize)>,
    /// Where it branches, and the label's column.
    pub label: Option<(&'s str, usize)>,
}

/// A number, or something that stands for one.
#[derive(Clone, Copy, Debug)]
pub enum ValueExpr<'s> {
    Number(u32),
    /// A control register, and what is added.
    Control(&'s str, u32),
    /// An SQE register, and what is added.
    Sqe(&'s str, u32),
    /// Offset of a label.
    Label(&'s str),
}

/// The statements of a source, and what could not be read.
pub fn parse(source: &str) -> (Vec<Statement<'_>>, Vec<AfucError>) {
    let (mut statements, mut errors) = (Vec::new(), Vec::new());
    for (line, number) in source.lines().zip(1..) {
        match tokens(line, number) {
            Err(error) => errors.push(error),
            Ok(tokens) => {
                let mut cursor = TokenCursor { tokens: &tokens, at: 0, line: number, end: line.len() + 1 };
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

struct TokenCursor<'t, 's> {
    tokens: &'t [Token<'s>],
    at: usize,
    line: usize,
    end: usize,
}

type Parsed<T> = Result<T, AfucError>;

impl<'s> TokenCursor<'_, 's> {
    fn is_done(&self) -> bool {
        self.at >= self.tokens.len()
    }

    fn peek(&self) -> Option<&TokenKind<'s>> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn column(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |token| token.column)
    }

    fn error(&self, problem: AfucProblem) -> AfucError {
        AfucError::at(self.line, self.column(), problem)
    }

    fn expected<T>(&self, expected: &'static str) -> Parsed<T> {
        let found = match self.tokens.get(self.at) {
            Some(token) => format!("`{}`", token.text),
            None => "the end of the line".to_string(),
        };
        Err(self.error(AfucProblem::Expected { expected, found }))
    }

    fn take_mark(&mut self, mark: &str) -> bool {
        let found = matches!(self.peek(), Some(TokenKind::Mark(m)) if *m == mark);
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
            Some(&TokenKind::Number(number)) => {
                self.at += 1;
                Ok(number)
            }
            _ => self.expected(expected),
        }
    }

    fn register(&mut self) -> Parsed<u32> {
        match self.peek() {
            Some(&TokenKind::Register(register)) => {
                self.at += 1;
                Ok(register)
            }
            _ => self.expected("a register"),
        }
    }

    fn bit(&mut self) -> Parsed<u32> {
        match self.peek() {
            Some(&TokenKind::Bit(bit)) => {
                self.at += 1;
                Ok(bit)
            }
            _ => self.expected("a bit such as b3"),
        }
    }

    fn label(&mut self) -> Parsed<(&'s str, usize)> {
        match self.peek() {
            Some(&TokenKind::Label(label)) => {
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
            Some(&TokenKind::Literal(word)) => {
                self.at += 1;
                StatementKind::Literal(word)
            }
            Some(TokenKind::Mark("[")) => {
                self.at += 1;
                let (label, column) = self.label()?;
                self.mark("]", "`]`")?;
                StatementKind::Offset(label, column)
            }
            Some(&TokenKind::Directive(name)) => self.directive(name)?,
            Some(&TokenKind::Word(name)) => {
                let colon = self.tokens.get(self.at + 1).map(|token| &token.kind);
                if colon == Some(&TokenKind::Mark(":")) {
                    self.at += 2;
                    StatementKind::Label(name)
                } else {
                    StatementKind::Insn(self.insn()?)
                }
            }
            Some(TokenKind::Bit(_))
                if self.tokens.get(self.at + 1).is_some_and(|t| t.kind == TokenKind::Mark(":")) =>
            {
                let name = self.tokens.get(self.at).map_or("", |token| token.text);
                self.at += 2;
                StatementKind::Label(name)
            }
            Some(TokenKind::Modifier(_)) => StatementKind::Insn(self.insn()?),
            _ => return self.expected("an instruction, a label, a literal or a directive"),
        };
        Ok(Statement { line: self.line, column, what })
    }

    fn directive(&mut self, name: &'s str) -> Parsed<StatementKind<'s>> {
        let here = self.error(AfucProblem::NoDirective(name.to_string()));
        self.at += 1;
        match name {
            "jumptbl" => Ok(StatementKind::JumpTable),
            "align" => {
                let column = self.column();
                let bytes = self.number("a number of bytes")?;
                if bytes == 0 || !bytes.is_multiple_of(4) || bytes > 4096 {
                    return Err(AfucError::at(self.line, column, AfucProblem::BadAlignment(bytes)));
                }
                Ok(StatementKind::Align(bytes))
            }
            "section" => match self.peek() {
                Some(TokenKind::Word(_)) => {
                    self.at += 1;
                    Ok(StatementKind::Section)
                }
                _ => self.expected("the name of a section, BV or LPAC"),
            },
            "stripped" => Ok(StatementKind::Stripped(self.number("a number")?)),
            "firmware" => Ok(StatementKind::Firmware(self.number("a firmware id such as 0x6ee")?)),
            "empty" => Ok(StatementKind::Empty),
            "byte" => {
                let column = self.column();
                let value = self.number("a byte")?;
                let too_large =
                    |_| AfucError::at(self.line, column, AfucProblem::TooLarge(format!("{value:#x}")));
                Ok(StatementKind::Byte(u8::try_from(value).map_err(too_large)?))
            }
            _ => Err(here),
        }
    }

    fn insn(&mut self) -> Parsed<InsnSource<'s>> {
        let mut modifiers = Vec::new();
        while let Some(&TokenKind::Modifier(name)) = self.peek() {
            let (word, count) = match name.strip_suffix(['1', '2', '3']) {
                Some(word) => (word, name.bytes().last().map_or(0, |digit| u32::from(digit - b'0'))),
                None => (name, 1),
            };
            let field = match (word, word == name) {
                ("rep", true) => InsnField::Rep,
                ("peek", true) => InsnField::Peek,
                ("xmov", false) => InsnField::Xmov,
                ("sds", false) => InsnField::Sds,
                _ => return Err(self.error(AfucProblem::NoModifier(name.to_string()))),
            };
            modifiers.push((field, count));
            self.at += 1;
        }
        let Some(&TokenKind::Word(mnemonic)) = self.peek() else { return self.expected("an instruction") };
        let unknown = self.error(AfucProblem::NoMnemonic(mnemonic.to_string()));
        self.at += 1;
        let mut source = match mnemonic {
            "mov" => self.mov()?,
            "jump" => self.jump()?,
            _ => {
                let choices: Vec<AfucOp> = AfucOp::with_mnemonic(mnemonic).collect();
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
    fn mov(&mut self) -> Parsed<InsnSource<'s>> {
        let dst = self.register()?;
        self.comma()?;
        if let Some(&TokenKind::Register(register)) = self.peek() {
            self.at += 1;
            let insn =
                Insn::new(AfucOp::Alu(AluOp::Or)).with(InsnField::Dst, dst).with(InsnField::Src2, register);
            return Ok(InsnSource { insn, values: Vec::new(), label: None });
        }
        let column = self.column();
        let value = self.value("a register, an immediate or a label")?;
        let mut insn = Insn::new(AfucOp::MovImm).with(InsnField::Dst, dst);
        let mut values = vec![(InsnField::RegImm, value, column)];
        if self.take_mark("<<") {
            let column = self.column();
            values.push((InsnField::Shift, self.value("a shift")?, column));
        }
        insn.set(InsnField::Shift, 0);
        Ok(InsnSource { insn, values, label: None })
    }

    /// `jump` stands for a branch on a clear bit of `$00`, and for the jump through a register.
    fn jump(&mut self) -> Parsed<InsnSource<'s>> {
        if let Some(&TokenKind::Register(register)) = self.peek() {
            self.at += 1;
            let insn = Insn::new(AfucOp::JumpReg).with(InsnField::Src1, register);
            return Ok(InsnSource { insn, values: Vec::new(), label: None });
        }
        let label = Some(self.label()?);
        Ok(InsnSource { insn: Insn::new(AfucOp::BrneBit), values: Vec::new(), label })
    }

    /// The operands of an instruction that has one or several operand lists; those of one mnemonic differ only in
    /// whether a source is a register, an immediate or a bit.
    fn operands(&mut self, choices: &[AfucOp]) -> Parsed<InsnSource<'s>> {
        let find = |wanted: Syntax| choices.iter().copied().find(|op| op.syntax() == wanted);
        let first = choices.first().map_or(Syntax::Nothing, |op| op.syntax());
        let mut source = InsnSource { insn: Insn::new(AfucOp::Nop), values: Vec::new(), label: None };
        let op = match first {
            Syntax::Nothing => find(first),
            Syntax::DstSrcSrc | Syntax::DstSrcImm | Syntax::DstSrcBit | Syntax::DstSrcBitBit => {
                source.insn.set(InsnField::Dst, self.register()?);
                self.comma()?;
                source.insn.set(InsnField::Src1, self.register()?);
                self.comma()?;
                self.last_source(&mut source, &find)?
            }
            Syntax::DstSrc | Syntax::DstImm => {
                source.insn.set(InsnField::Dst, self.register()?);
                self.comma()?;
                let immediate = find(Syntax::DstImm);
                if let (Some(op), false) = (immediate, matches!(self.peek(), Some(TokenKind::Register(_)))) {
                    self.immediate(&mut source, InsnField::Imm)?;
                    Some(op)
                } else {
                    source.insn.set(InsnField::Src1, self.register()?);
                    find(Syntax::DstSrc)
                }
            }
            Syntax::SrcMem | Syntax::DstMem => {
                let field = if first == Syntax::SrcMem { InsnField::Src1 } else { InsnField::Dst };
                source.insn.set(field, self.register()?);
                self.comma()?;
                let op = find(first);
                self.address(&mut source, op)?;
                op
            }
            Syntax::SrcImmBranch | Syntax::SrcBitBranch => {
                source.insn.set(InsnField::Src1, self.register()?);
                self.comma()?;
                let op = if let Some(&TokenKind::Bit(bit)) = self.peek() {
                    self.at += 1;
                    source.insn.set(InsnField::Bit, bit);
                    find(Syntax::SrcBitBranch)
                } else {
                    self.immediate(&mut source, InsnField::Imm)?;
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
                let here = self.error(AfucProblem::SecureRegister);
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
        source: &mut InsnSource<'s>,
        find: &impl Fn(Syntax) -> Option<AfucOp>,
    ) -> Parsed<Option<AfucOp>> {
        let (register, immediate) = (find(Syntax::DstSrcSrc), find(Syntax::DstSrcImm));
        let (bit, bits) = (find(Syntax::DstSrcBit), find(Syntax::DstSrcBitBit));
        if let (Some(op), Some(&TokenKind::Register(number))) = (register, self.peek()) {
            self.at += 1;
            source.insn.set(InsnField::Src2, number);
            return Ok(Some(op));
        }
        if bit.is_some() || bits.is_some() {
            source.insn.set(InsnField::Bit, self.bit()?);
            if bits.is_some() {
                self.comma()?;
                source.insn.set(InsnField::High, self.bit()?);
            }
            return Ok(bit.or(bits));
        }
        if immediate.is_some() {
            self.immediate(source, InsnField::RegImm)?;
        }
        Ok(immediate)
    }

    fn immediate(&mut self, source: &mut InsnSource<'s>, field: InsnField) -> Parsed<()> {
        let column = self.column();
        source.values.push((field, self.value("a register or an immediate")?, column));
        Ok(())
    }

    fn address(&mut self, source: &mut InsnSource<'s>, op: Option<AfucOp>) -> Parsed<()> {
        self.mark("[", "`[`")?;
        source.insn.set(InsnField::Base, self.register()?);
        self.mark("+", "`+`")?;
        let field = match op {
            Some(AfucOp::Cwrite | AfucOp::Cread) => InsnField::ControlOffset,
            Some(AfucOp::Swrite | AfucOp::Sread) => InsnField::SqeOffset,
            _ => InsnField::MemOffset,
        };
        let column = self.column();
        source.values.push((field, self.value("an offset")?, column));
        self.mark("]", "`]`")?;
        if self.take_mark("!") {
            source.insn.set(InsnField::PreIncrement, 1);
        }
        Ok(())
    }

    fn value(&mut self, expected: &'static str) -> Parsed<ValueExpr<'s>> {
        let value = match self.peek() {
            Some(&TokenKind::Number(number)) => ValueExpr::Number(number),
            Some(&TokenKind::Label(label)) => ValueExpr::Label(label),
            Some(&TokenKind::Control(name)) => ValueExpr::Control(name, 0),
            Some(&TokenKind::Sqe(name)) => ValueExpr::Sqe(name, 0),
            _ => return self.expected(expected),
        };
        self.at += 1;
        Ok(match value {
            ValueExpr::Control(name, _) => ValueExpr::Control(name, self.more()?),
            ValueExpr::Sqe(name, _) => ValueExpr::Sqe(name, self.more()?),
            other => other,
        })
    }

    /// `+0x1` behind a register's name, or nothing.
    fn more(&mut self) -> Parsed<u32> {
        if self.take_mark("+") { self.number("a number") } else { Ok(0) }
    }
}

/// The fields of an instruction under another operation.
fn moved(insn: &Insn, op: AfucOp) -> Insn {
    let mut moved = *insn;
    moved.op = op;
    moved
}
