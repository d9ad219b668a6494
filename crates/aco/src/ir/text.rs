//! The text of a program, for people and tests: printed by [`print()`], read by [`parse`].
//!
//! ```text
//! program gfx1030 wave64 selected lds 0 scratch 0
//! c0 if divergent parent - head - merge B3
//! B0 plain depth 0 0 0 top preds - - succs B1,B2 B1,B2
//!   %0:s2@s[0:1], %1:v1@v0 = p_startpgm
//!   %2:v1 = v_add_f32 %1, 0x3f800000:s1 neg=1
//!   p_cbranch_z %3
//! ```
//!
//! A definition is `%temporary:class@register`, an operand `%temporary@register`, a constant `bits:class`, or a register `@exec:s2`. `'` marks the
//! operand where a temporary dies, `^` one that is still read when definitions are written. Logical neighbours of a block come before linear ones.
//! After the name, `!` marks exact arithmetic, and `~n` and `~z` results in which bits of NaNs and signs of zeros may change.

use super::class::RegClass;
use super::entities::{Block, Construct, Inst, Temp};
use super::inst::{FloatFreedom, Memory, NewInst, Op, Payload, Pseudo};
use super::operand::{Definition, Operand, Source};
use super::program::{ConstructData, ConstructKind, Jump, Program, Progress, Role};
use super::reg::PhysReg;
use super::shape::Variants;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::LazyLock;
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::model::{Form, Mod};
use unwedge_isa::amdgcn::{Gpu, Mods, Opcode, Reg, regs, tables};
use unwedge_shader::ir::{Access, BarrierInfo, MemoryKinds, Op as ShaderOp, Order, Scope};

const PROGRESS: [(Progress, &str); 5] = [
    (Progress::Selected, "selected"),
    (Progress::Masked, "masked"),
    (Progress::Allocated, "allocated"),
    (Progress::Eliminated, "eliminated"),
    (Progress::Lowered, "lowered"),
];
const KINDS: [(ConstructKind, &str); 3] =
    [(ConstructKind::Block, "block"), (ConstructKind::If, "if"), (ConstructKind::Loop, "loop")];
const ROLES: [(Role, &str); 7] = [
    (Role::Plain, "plain"),
    (Role::Branch, "branch"),
    (Role::Invert, "invert"),
    (Role::Merge, "merge"),
    (Role::Preheader, "preheader"),
    (Role::LoopHeader, "header"),
    (Role::Latch, "latch"),
];

fn name_of<T: PartialEq>(table: &[(T, &'static str)], value: T) -> &'static str {
    table.iter().find(|(known, _)| *known == value).map_or("?", |(_, name)| name)
}

fn named<T: Copy>(table: &[(T, &'static str)], name: &str) -> Option<T> {
    table.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
}

/// Writes a program.
pub fn print(program: &Program, out: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(out, "{}", Text(program));
}

struct Text<'a>(&'a Program);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.0;
        let wave = program.gpu.lanes();
        let progress = name_of(&PROGRESS, program.progress);
        let (lds, scratch) = (program.lds_bytes, program.scratch_bytes);
        writeln!(f, "program {} wave{wave} {progress} lds {lds} scratch {scratch}", program.gpu.name())?;
        for (construct, data) in program.constructs.iter() {
            let divergent = if data.divergent { " divergent" } else { "" };
            write!(f, "{construct} {}{divergent}", name_of(&KINDS, data.kind))?;
            write!(f, " parent {} head {}", OrDash(data.parent), OrDash(data.head))?;
            writeln!(f, " merge {}", OrDash(data.merge))?;
        }
        for (block, data) in program.blocks.iter() {
            write!(f, "{block} {}", name_of(&ROLES, data.role))?;
            if let Some(construct) = data.construct {
                write!(f, " {construct}")?;
            }
            let (loops, divergent, uniform) = (data.loop_depth, data.divergent_depth, data.uniform_depth);
            write!(f, " depth {loops} {divergent} {uniform}")?;
            if data.top_level {
                f.write_str(" top")?;
            }
            if data.taken {
                f.write_str(" taken")?;
            }
            match data.jump {
                Jump::None => {}
                Jump::Break(construct) => write!(f, " break {construct}")?,
                Jump::Continue(construct) => write!(f, " continue {construct}")?,
            }
            write!(f, " preds {} {}", Blocks(&data.logical_preds), Blocks(&data.linear_preds))?;
            writeln!(f, " succs {} {}", Blocks(&data.logical_succs), Blocks(&data.linear_succs))?;
            for &inst in &data.insts {
                writeln!(f, "  {}", InstText(program, inst))?;
            }
        }
        Ok(())
    }
}

struct OrDash<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for OrDash<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(item) => item.fmt(f),
            None => f.write_str("-"),
        }
    }
}

struct Blocks<'a>(&'a [Block]);

impl fmt::Display for Blocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for block in self.0 {
            write!(f, "{separator}{block}")?;
            separator = ",";
        }
        if self.0.is_empty() { f.write_str("-") } else { Ok(()) }
    }
}

/// One instruction of a program, as it is printed.
#[derive(Debug)]
pub struct InstText<'a>(pub &'a Program, pub Inst);

impl fmt::Display for InstText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InstText(program, inst) = *self;
        let data = &program[inst];
        let mut separator = "";
        for definition in program.definitions(inst) {
            f.write_str(separator)?;
            definition.fmt(f)?;
            separator = ", ";
        }
        if !program.definitions(inst).is_empty() {
            f.write_str(" = ")?;
        }
        f.write_str(data.op.name())?;
        if data.form != Form::Native {
            write!(f, "/{}", data.form.name())?;
        }
        if data.exact {
            f.write_str("!")?;
        }
        f.write_str(match data.freedom {
            FloatFreedom { nans: false, zeros: false } => "",
            FloatFreedom { nans: true, zeros: false } => "~n",
            FloatFreedom { nans: false, zeros: true } => "~z",
            FloatFreedom { nans: true, zeros: true } => "~nz",
        })?;
        separator = " ";
        for operand in program.operands(inst) {
            f.write_str(separator)?;
            operand.fmt(f)?;
            separator = ", ";
        }
        for id in Mod::ALL.iter().filter(|id| data.mods.has(**id)) {
            write!(f, " {}={}", id.name(), data.mods.get(*id))?;
        }
        match data.payload {
            Payload::None => Ok(()),
            Payload::Copy(free, scc) => {
                f.write_str(" <copy ")?;
                match free {
                    Some(reg) => write!(f, "{}", reg.run(4))?,
                    None => f.write_str("-")?,
                }
                f.write_str(if scc { " scc>" } else { ">" })
            }
            Payload::Reduce(op, bits, lanes) => write!(f, " <reduce {} {bits} {lanes}>", op.name()),
            Payload::Barrier(info) => {
                write!(f, " <barrier {} {}", info.execution.name(), info.memory.name())?;
                write!(
                    f,
                    " {} {}>",
                    Set(&info.order, info.order.is_empty()),
                    Set(&info.kinds, info.kinds.is_empty())
                )
            }
            Payload::Memory(Memory { kinds, access, private }) => {
                write!(f, " <memory {}", Set(&kinds, kinds.is_empty()))?;
                write!(f, " {}{}>", Set(&access, access.is_empty()), if private { " private" } else { "" })
            }
        }
    }
}

/// A set of flags; the empty set is `-`.
struct Set<'a, T>(&'a T, bool);

impl<T: fmt::Display> fmt::Display for Set<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1 { f.write_str("-") } else { self.0.fmt(f) }
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.temp, self.reg) {
            (Some(temp), Some(reg)) => {
                write!(f, "{temp}:{}@{}", self.class, reg.run(self.class.bytes()))?;
            }
            (Some(temp), None) => write!(f, "{temp}:{}", self.class)?,
            (None, Some(reg)) => write!(f, "@{}:{}", reg.run(self.class.bytes()), self.class)?,
            (None, None) => write!(f, "_:{}", self.class)?,
        }
        f.write_str(if self.kill { "'" } else { "" })
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.source, self.reg) {
            (Source::Temp(temp), None) => write!(f, "{temp}")?,
            (Source::Temp(temp), Some(reg)) => write!(f, "{temp}@{}", reg.run(self.class.bytes()))?,
            (Source::Const(bits), _) => write!(f, "{bits:#x}:{}", self.class)?,
            (Source::Undef, _) => write!(f, "undef:{}", self.class)?,
            (Source::Fixed, Some(reg)) => write!(f, "@{}:{}", reg.run(self.class.bytes()), self.class)?,
            (Source::Fixed, None) => f.write_str("?")?,
        }
        f.write_str(if self.late_kill { "^" } else { "" })?;
        f.write_str(if self.first_kill { "'" } else { "" })
    }
}

/// A text that is not a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}: `{text}`")]
pub struct ParseError {
    /// The line, from 1 on.
    pub line: usize,
    /// What is wrong.
    pub reason: &'static str,
    /// What was read.
    pub text: String,
}

/// What is wrong with a part of a line.
type LineError<'a> = (&'static str, &'a str);

/// Reads a program.
///
/// # Errors
///
/// The first line that is not understood.
pub fn parse(text: &str) -> Result<Program, ParseError> {
    let mut program = None;
    for (line, content) in (1..).zip(text.lines()) {
        let trimmed = content.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let done = match &mut program {
            None => parse_head(trimmed).map(|head| program = Some(head)),
            Some(program) => parse_line(program, trimmed),
        };
        done.map_err(|(reason, text)| ParseError { line, reason, text: text.to_owned() })?;
    }
    let none = ParseError { line: 1, reason: "the text does not have a program", text: String::new() };
    let mut program = program.ok_or(none)?;
    program.name_classes();
    let blocks = program.blocks.len();
    let known = |block: &Block| block.index() < blocks;
    let neighbours = program.blocks.values().all(|data| {
        [&data.logical_preds, &data.logical_succs, &data.linear_preds, &data.linear_succs]
            .iter()
            .all(|list| list.iter().all(known))
    });
    let of_constructs =
        program.constructs.values().all(|data| data.merge.iter().chain(&data.head).all(known));
    if neighbours && of_constructs {
        Ok(program)
    } else {
        Err(ParseError {
            line: text.lines().count(),
            reason: "a block that does not exist is named",
            text: String::new(),
        })
    }
}

fn parse_head(line: &str) -> Result<Program, LineError<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["program", gpu, wave, progress, "lds", lds, "scratch", scratch] = words[..] else {
        return Err(("expected `program GPU WAVE PROGRESS lds N scratch N`", line));
    };
    let wave64 = match wave {
        "wave32" => false,
        "wave64" => true,
        _ => return Err(("expected wave32 or wave64", wave)),
    };
    let gpu = Gpu::new(gpu).map_err(|_| ("no such GPU", gpu))?.with_wave64(wave64);
    let mut program = Program::new(gpu);
    program.progress = named(&PROGRESS, progress).ok_or(("no such progress", progress))?;
    program.lds_bytes = lds.parse().map_err(|_| ("not a number", lds))?;
    program.scratch_bytes = scratch.parse().map_err(|_| ("not a number", scratch))?;
    Ok(program)
}

fn parse_line<'a>(program: &mut Program, line: &'a str) -> Result<(), LineError<'a>> {
    let first = line.split_whitespace().next().unwrap_or_default();
    let numbered = |prefix| first.strip_prefix(prefix).is_some_and(|rest: &str| is_number(rest));
    if numbered('c') {
        parse_construct(program, line)
    } else if numbered('B') {
        parse_block(program, line)
    } else {
        parse_inst(program, line)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The largest number of an entity: the printer never writes larger ones.
const MAX_ENTITIES: usize = 1 << 20;

fn entity<T: Entity>(text: &str, prefix: char) -> Option<T> {
    let number = text.strip_prefix(prefix).filter(|rest| is_number(rest))?.parse().ok()?;
    (number < MAX_ENTITIES).then(|| T::new(number))
}

fn maybe<T: Entity>(text: &str, prefix: char) -> Result<Option<T>, LineError<'_>> {
    match text {
        "-" => Ok(None),
        _ => entity(text, prefix).map(Some).ok_or(("not understood", text)),
    }
}

fn parse_construct<'a>(program: &mut Program, line: &'a str) -> Result<(), LineError<'a>> {
    let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "divergent").collect();
    let [number, kind, "parent", parent, "head", head, "merge", merge] = words[..] else {
        return Err(("expected `cN KIND [divergent] parent c head B merge B`", line));
    };
    if entity(number, 'c') != Some(program.constructs.next_key()) {
        return Err(("constructs are numbered in their order", number));
    }
    let parent: Option<Construct> = maybe(parent, 'c')?;
    if parent.is_some_and(|parent| program.constructs.get(parent).is_none()) {
        return Err(("no such construct yet", line));
    }
    program.constructs.push(ConstructData {
        kind: named(&KINDS, kind).ok_or(("no such construct", kind))?,
        parent,
        divergent: line.contains(" divergent "),
        head: maybe(head, 'B')?,
        merge: maybe(merge, 'B')?,
    });
    Ok(())
}

fn parse_block<'a>(program: &mut Program, line: &'a str) -> Result<(), LineError<'a>> {
    let mut words = line.split_whitespace();
    let mut next = || words.next().ok_or(("the line ends too early", line));
    let number = next()?;
    if entity(number, 'B') != Some(program.blocks.next_key()) {
        return Err(("blocks are numbered in their order", number));
    }
    let role = next()?;
    let role = named(&ROLES, role).ok_or(("no such role", role))?;
    let construct = |word| {
        entity::<Construct>(word, 'c')
            .filter(|construct| program.constructs.get(*construct).is_some())
            .ok_or(("no such construct", word))
    };
    let block = {
        let mut data = (None, [0u16; 3], [false; 2], Jump::None, [const { Vec::new() }; 4]);
        loop {
            match next()? {
                "depth" => {
                    for depth in &mut data.1 {
                        let word = next()?;
                        *depth = word.parse().map_err(|_| ("not a number", word))?;
                    }
                }
                "top" => data.2[0] = true,
                "taken" => data.2[1] = true,
                "break" => data.3 = Jump::Break(construct(next()?)?),
                "continue" => data.3 = Jump::Continue(construct(next()?)?),
                "preds" => {
                    data.4[0] = blocks(next()?)?;
                    data.4[1] = blocks(next()?)?;
                }
                "succs" => {
                    data.4[2] = blocks(next()?)?;
                    data.4[3] = blocks(next()?)?;
                    break;
                }
                word => data.0 = Some(construct(word)?),
            }
        }
        data
    };
    let new = program.add_block();
    let data = &mut program.blocks[new];
    data.role = role;
    (data.construct, data.jump) = (block.0, block.3);
    [data.top_level, data.taken] = block.2;
    [data.loop_depth, data.divergent_depth, data.uniform_depth] = block.1;
    [data.logical_preds, data.linear_preds, data.logical_succs, data.linear_succs] = block.4;
    Ok(())
}

fn blocks(text: &str) -> Result<Vec<Block>, LineError<'_>> {
    if text == "-" {
        return Ok(Vec::new());
    }
    text.split(',').map(|block| entity(block, 'B').ok_or(("not a block", block))).collect()
}

/// The opcode of a name, as programs are printed: that of its row. Of several, the one that the GPU has. Other names are mnemonics.
pub fn opcode(gpu: &Gpu, name: &str) -> Option<Opcode> {
    static ROWS: LazyLock<HashMap<&str, Vec<&tables::InstRow>>> = LazyLock::new(|| {
        let mut rows: HashMap<&str, Vec<&tables::InstRow>> = HashMap::new();
        tables::rows().iter().for_each(|row| rows.entry(row.name).or_default().push(row));
        rows
    });
    match ROWS.get(name).map(Vec::as_slice) {
        None => Opcode::named(name),
        Some([row]) => Some(row.opcode),
        Some(rows) => {
            let variants = Variants::of(gpu);
            let own = rows.iter().find(|row| variants.has(row.opcode)).or_else(|| rows.first());
            own.map(|row| row.opcode)
        }
    }
}

fn parse_inst<'a>(program: &mut Program, line: &'a str) -> Result<(), LineError<'a>> {
    let Some(block) = program.blocks.keys().next_back() else {
        return Err(("an instruction before the first block", line));
    };
    let (definitions, rest) = match line.split_once(" = ") {
        Some((definitions, rest)) => {
            let list: Result<Vec<_>, _> =
                definitions.split(", ").map(|text| parse_definition(program, text)).collect();
            (list?, rest)
        }
        None => (Vec::new(), line),
    };
    let (rest, payload) = match rest.split_once(" <") {
        Some((rest, payload)) => (rest, parse_payload(payload)?),
        None => (rest, Payload::None),
    };
    let (head, mut rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let (head, free) = head.split_once('~').unwrap_or((head, ""));
    let freedom = match free {
        "" => FloatFreedom::default(),
        "n" => FloatFreedom { nans: true, zeros: false },
        "z" => FloatFreedom { nans: false, zeros: true },
        "nz" => FloatFreedom::ALL,
        _ => return Err(("no such freedom", free)),
    };
    let (head, exact) = head.strip_suffix('!').map_or((head, false), |head| (head, true));
    let (name, form) = head.split_once('/').unwrap_or((head, Form::Native.name()));
    let form = Form::from_name(form).ok_or(("no such form", form))?;
    let op = match Pseudo::from_name(name) {
        Some(pseudo) => Op::Pseudo(pseudo),
        None => Op::Hw(opcode(&program.gpu, name).ok_or(("no such instruction", name))?),
    };
    let mut operands = Vec::new();
    let mut mods = Mods::default();
    while !rest.is_empty() {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        match word.split_once('=') {
            Some((id, value)) => {
                let id = Mod::from_name(id).ok_or(("no such modifier", id))?;
                let value: i32 = value.parse().map_err(|_| ("not a number", value))?;
                mods.set(id, value);
                if mods.get(id) != value {
                    return Err(("the modifier has no such value", word));
                }
            }
            None => operands.push(parse_operand(program, word.trim_end_matches(','))?),
        }
        rest = after;
    }
    let new = NewInst { op, form, mods, payload, definitions: &definitions, operands: &operands };
    let inst = program.append(block, &new);
    (program[inst].exact, program[inst].freedom) = (exact, freedom);
    Ok(())
}

/// The temporary with a number, which has a class once it is defined. Operands of phis name later ones.
fn temp<'a>(program: &mut Program, text: &'a str) -> Result<Temp, LineError<'a>> {
    let temp: Temp = entity(text, '%').ok_or(("not a temporary", text))?;
    while program.temp_count() <= temp.index() {
        program.make_temp(RegClass::S1);
    }
    Ok(temp)
}

fn parse_definition<'a>(program: &mut Program, text: &'a str) -> Result<Definition, LineError<'a>> {
    let (text, kill) = text.strip_suffix('\'').map_or((text, false), |text| (text, true));
    let class_of = |text: &'a str| RegClass::parse(text).ok_or(("no such class", text));
    if let Some(text) = text.strip_prefix('@') {
        let (reg, class) = text.rsplit_once(':').ok_or(("expected a class", text))?;
        return Ok(Definition { kill, ..Definition::reg(register(reg)?, class_of(class)?) });
    }
    let (name, rest) = text.split_once(':').ok_or(("expected a class", text))?;
    let (class, reg) = match rest.split_once('@') {
        Some((class, reg)) => (class_of(class)?, Some(register(reg)?)),
        None => (class_of(rest)?, None),
    };
    if name == "_" {
        return Ok(Definition { temp: None, class, reg, kill });
    }
    let temp = temp(program, name)?;
    program.set_class(temp, class);
    Ok(Definition { temp: Some(temp), class, reg, kill })
}

fn parse_operand<'a>(program: &mut Program, text: &'a str) -> Result<Operand, LineError<'a>> {
    let (text, first_kill) = text.strip_suffix('\'').map_or((text, false), |text| (text, true));
    let (text, late_kill) = text.strip_suffix('^').map_or((text, false), |text| (text, true));
    let class_of = |text: &'a str| RegClass::parse(text).ok_or(("no such class", text));
    let operand = if let Some(text) = text.strip_prefix('@') {
        let (reg, class) = text.rsplit_once(':').ok_or(("expected a class", text))?;
        Operand::reg(register(reg)?, class_of(class)?)
    } else if text.starts_with('%') {
        let (name, reg) = match text.split_once('@') {
            Some((name, reg)) => (name, Some(register(reg)?)),
            None => (text, None),
        };
        let temp = temp(program, name)?;
        Operand { reg, ..Operand::temp(temp, program.class(temp)) }
    } else {
        let (bits, class) = text.split_once(':').ok_or(("expected a class", text))?;
        let class = class_of(class)?;
        match bits.strip_prefix("0x") {
            Some(hex) => {
                let bits = u64::from_str_radix(hex, 16).map_err(|_| ("not a number", bits))?;
                Operand::constant(bits, class)
            }
            None if bits == "undef" => Operand::undef(class),
            None => return Err(("not an operand", text)),
        }
    };
    Ok(Operand { kill: first_kill, first_kill, late_kill, ..operand })
}

fn register(text: &str) -> Result<PhysReg, LineError<'_>> {
    let wrong = ("not a register", text);
    let (name, byte) = match text.split_once(".b") {
        Some((name, bytes)) => {
            let first = bytes.split('-').next().and_then(|first| first.parse::<u16>().ok());
            (name, first.filter(|first| *first < 4).ok_or(wrong)?)
        }
        None => (text, 0),
    };
    let numbered = |prefix: char, count: u16| {
        let rest = name.strip_prefix(prefix)?;
        let number = match rest.strip_prefix('[') {
            Some(run) => run.split(':').next()?,
            None => rest,
        };
        number.parse::<u16>().ok().filter(|number| *number < count)
    };
    let reg = if let Some(number) = numbered('v', 256) {
        Reg(Reg::VGPR0.0 + number)
    } else if let Some(number) = numbered('s', 106) {
        Reg(number)
    } else {
        regs::special(name).ok_or(wrong)?
    };
    Ok(PhysReg::of(reg).advance(byte))
}

fn parse_payload(text: &str) -> Result<Payload, LineError<'_>> {
    let wrong = ("not understood", text);
    let words: Vec<&str> = text.trim_end_matches('>').split_whitespace().collect();
    match words[..] {
        ["reduce", op, bits, lanes] => {
            let op = ShaderOp::from_name(op).ok_or(wrong)?;
            Ok(Payload::Reduce(op, bits.parse().map_err(|_| wrong)?, lanes.parse().map_err(|_| wrong)?))
        }
        ["barrier", execution, memory, order, kinds] => Ok(Payload::Barrier(BarrierInfo {
            execution: Scope::from_name(execution).ok_or(wrong)?,
            memory: Scope::from_name(memory).ok_or(wrong)?,
            order: flags(order, Order::ALL, Order::NONE, Order::or).ok_or(wrong)?,
            kinds: flags(kinds, MemoryKinds::ALL, MemoryKinds::NONE, MemoryKinds::or).ok_or(wrong)?,
        })),
        ["copy", free, ref scc @ ..] => {
            let free = if free == "-" { None } else { Some(register(free)?) };
            match *scc {
                [] => Ok(Payload::Copy(free, false)),
                ["scc"] => Ok(Payload::Copy(free, true)),
                _ => Err(wrong),
            }
        }
        ["memory", kinds, access, ref private @ ..] => Ok(Payload::Memory(Memory {
            kinds: flags(kinds, MemoryKinds::ALL, MemoryKinds::NONE, MemoryKinds::or).ok_or(wrong)?,
            access: flags(access, Access::ALL, Access::NONE, Access::or).ok_or(wrong)?,
            private: match *private {
                [] => false,
                ["private"] => true,
                _ => return Err(wrong),
            },
        })),
        _ => Err(wrong),
    }
}

fn flags<T: Copy>(text: &str, all: &[(T, &str)], none: T, or: impl Fn(T, T) -> T) -> Option<T> {
    if text == "-" {
        return Some(none);
    }
    text.split('|').try_fold(none, |set, name| {
        all.iter().find(|(_, known)| *known == name).map(|(flag, _)| or(set, *flag))
    })
}
