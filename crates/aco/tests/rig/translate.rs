//! Programs of recorded cases in the IR of this compiler.

use super::cases::{Case, CaseBlock, CaseLine, PseudoLine, PseudoOperand};
use std::collections::HashMap;
use unwedge_aco::ir::shape::{self, Variants};
use unwedge_aco::ir::{
    Block, Definition, NewInst, Op, Operand, Payload, PhysReg, Program, Pseudo, RegClass, Temp,
};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::model::{Class, Form, Mod, Role};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// The registers of a text as `s[0:1]`, `v0.b2-3`, `m0`: the first byte.
pub fn register(text: &str) -> Result<PhysReg, String> {
    let (reg, byte) = match text.split_once(".b") {
        Some((reg, bytes)) => (reg, bytes.split('-').next().and_then(|first| first.parse().ok())),
        None => (text, Some(0)),
    };
    let (kind, rest) = reg.split_at(1);
    let first = rest.trim_start_matches('[').split([':', ']', '-']).next().unwrap_or_default();
    let number = first.parse::<u8>().ok();
    let first = match (kind, number) {
        ("v", Some(number)) => Some(PhysReg::vgpr(number)),
        ("s", Some(number)) => Some(PhysReg::sgpr(number)),
        _ => match reg {
            "vcc" => Some(PhysReg::VCC),
            "exec" => Some(PhysReg::EXEC),
            "scc" => Some(PhysReg::SCC),
            "m0" => Some(PhysReg::M0),
            _ => None,
        },
    };
    let first = first.ok_or_else(|| format!("register {text}"))?;
    Ok(first.advance(byte.ok_or_else(|| format!("register {text}"))?))
}

/// A class as ACO names it.
pub fn class(name: &str) -> Result<RegClass, String> {
    let own = name.strip_prefix("vl").map_or_else(|| name.to_owned(), |size| format!("lv{size}"));
    RegClass::parse(&own).ok_or_else(|| format!("class {name}"))
}

/// Temporaries of a case by number.
#[derive(Default)]
pub struct Temps(pub HashMap<u32, Temp>);

impl Temps {
    pub fn definition(&mut self, program: &mut Program, from: &PseudoOperand) -> Result<Definition, String> {
        let class = class(from.class.as_deref().ok_or("a definition without class")?)?;
        let reg = from.reg.as_deref().map(register).transpose()?;
        let temp = from.temp.map(|number| {
            let temp = program.make_temp(class);
            self.0.insert(number, temp);
            temp
        });
        Ok(Definition { reg, temp, ..Definition::reg(PhysReg::sgpr(0), class) })
    }

    pub fn operand(&self, program: &Program, from: &PseudoOperand) -> Result<Operand, String> {
        if let Some((bits, bytes)) = from.constant {
            return Ok(match bytes {
                4 => Operand::c32(bits as u32),
                8 => Operand::c64(bits),
                _ => Operand::constant(bits, RegClass::vgpr_bytes(bytes)),
            });
        }
        let reg = from.reg.as_deref().map(register).transpose()?;
        if let Some(number) = from.temp {
            let temp = *self.0.get(&number).ok_or_else(|| format!("%{number} is not defined"))?;
            return Ok(Operand { reg, ..Operand::temp(temp, program.class(temp)) });
        }
        match (reg, from.class.as_deref()) {
            (Some(reg), Some(name)) => Ok(Operand::reg(reg, class(name)?)),
            (None, Some(name)) => Ok(Operand::undef(class(name)?)),
            _ => Err("an operand without class".to_owned()),
        }
    }
}

/// What a case says of a pseudo instruction beside its operands: of a copy which scalar register is free. Where that is one, `scc` holds something.
pub fn payload(line: &PseudoLine) -> Result<Payload, String> {
    match line.scratch.as_deref() {
        _ if line.op != "p_parallelcopy" => Ok(Payload::None),
        None | Some("scc") => Ok(Payload::Copy(None, false)),
        Some(reg) => Ok(Payload::Copy(Some(register(reg)?), true)),
    }
}

/// Appends a pseudo instruction to the first block.
pub fn append(program: &mut Program, temps: &mut Temps, line: &PseudoLine) -> Result<(), String> {
    let op = Pseudo::from_name(&line.op).ok_or_else(|| line.op.clone())?;
    let operands: Vec<Operand> =
        line.operands.iter().map(|from| temps.operand(program, from)).collect::<Result<_, _>>()?;
    let definitions: Vec<Definition> =
        line.definitions.iter().map(|from| temps.definition(program, from)).collect::<Result<_, _>>()?;
    let new = NewInst { payload: payload(line)?, ..NewInst::pseudo(op, &definitions, &operands) };
    let block = program.blocks.keys().last().ok_or("no block")?;
    program.append(block, &new);
    Ok(())
}

/// The parts of a block's code between separators.
pub fn sections(code: &[CaseLine]) -> Vec<&[CaseLine]> {
    code.split(|line| matches!(line, CaseLine::Mark(_))).collect()
}

/// Where programs in SSA form store what a case makes: the descriptor, and the address of the lane.
const DESCRIPTOR: u8 = 0;
/// Bytes of results of a lane.
pub const LANE_BYTES: u32 = 1024;

/// A program in SSA form that stores the result of each part of a case.
pub struct Ssa {
    pub program: Program,
    /// Registers of arguments beside the descriptor and the address in `v0`: first register and how many.
    pub arguments: Vec<(PhysReg, u8)>,
    /// Instructions that store results, and what they need.
    pub stores: usize,
}

/// What ACO prints of an instruction beside its operands.
#[derive(Default)]
struct Printed {
    mods: Mods,
    /// Bits that an operand has at most, by number of the operand.
    bounds: Vec<(usize, u32)>,
    /// Operands that are the upper half of their register.
    high: u8,
    form: Option<Form>,
}

/// Reads modifiers of the line as ACO prints it.
fn printed(line: &str, slots: &[u8]) -> Result<Printed, String> {
    let mut found = Printed::default();
    let Some((_, right)) = line.split_once(" = ") else { return Ok(found) };
    let Some((_, mut rest)) = right.split_once(' ') else { return Ok(found) };
    // Operands end where no comma follows.
    let mut operands = Vec::new();
    loop {
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        operands.push(&rest[..end]);
        match rest[end..].strip_prefix(", ") {
            Some(next) => rest = next,
            None => {
                rest = rest[end..].trim();
                break;
            }
        }
    }
    for (at, operand) in operands.iter().enumerate() {
        let bit = 1 << slots.get(at).copied().unwrap_or(at as u8);
        let mut set = |id: Mod| found.mods.set(id, found.mods.get(id) | bit);
        if operand.contains('%') && operand.contains('-') {
            set(Mod::Neg);
        }
        if operand.contains('|') {
            set(Mod::Abs);
        }
        if operand.contains("hi(") {
            found.high |= bit as u8;
        }
        for (name, bits) in [("(is16bit)", 16), ("(is24bit)", 24)] {
            if operand.contains(name) {
                found.bounds.push((at, bits));
            }
        }
    }
    for word in rest.split_whitespace() {
        match word {
            "clamp" => found.mods.set(Mod::Clamp, 1),
            "*2" => found.mods.set(Mod::Omod, 1),
            "*4" => found.mods.set(Mod::Omod, 2),
            "*0.5" => found.mods.set(Mod::Omod, 3),
            other => return Err(format!("modifier {other}")),
        }
    }
    if found.mods != Mods::default() {
        found.form = Some(Form::E64);
    }
    Ok(found)
}

impl Temps {
    /// Appends an instruction of a case to a block.
    fn ssa(
        &mut self,
        program: &mut Program,
        variants: &Variants,
        block: Block,
        line: &PseudoLine,
    ) -> Result<(), String> {
        let operands: Vec<Operand> =
            line.operands.iter().map(|from| self.operand(program, from)).collect::<Result<_, _>>()?;
        let print = line.print.as_deref().unwrap_or_default();
        if let Some(pseudo) = Pseudo::from_name(&line.op) {
            let definitions: Vec<Definition> = line
                .definitions
                .iter()
                .map(|from| self.definition(program, from))
                .collect::<Result<_, _>>()?;
            program.append(block, &NewInst::pseudo(pseudo, &definitions, &operands));
            return Ok(());
        }
        let name = line.op.trim_end_matches("_e64");
        // Up to gfx8 the name is that of the sum with a carry.
        let opcode = match name {
            "v_add_u32" => Opcode::v_add_u32,
            "v_sub_u32" => Opcode::v_sub_u32,
            name => Opcode::named(name).ok_or_else(|| line.op.clone())?,
        };
        let variant = variants.widest(opcode).ok_or_else(|| format!("{name} on this GPU"))?;
        let slots: Vec<u8> = shape::operands(variant).map(|slot| slot.source).collect();
        let Printed { mods, bounds, high, form } = printed(print, &slots)?;
        for (at, bits) in bounds {
            if let Some(temp) = operands.get(at).and_then(Operand::as_temp) {
                program.argument_bounds.push((temp, u32::MAX >> (32 - bits)));
            }
        }
        if high != 0 {
            return Err("halves".to_owned());
        }
        // Scalar values of vector instructions are where these read them, or are copied.
        let vector_only = |class: Class| matches!(class, Class::Vgpr | Class::VgprLow);
        if shape::operands(variant)
            .zip(&operands)
            .any(|(slot, of)| vector_only(slot.class) && of.class.is_sgpr())
        {
            return Err("a scalar operand where only vectors are read".to_owned());
        }
        let definitions: Vec<Definition> =
            line.definitions.iter().map(|from| self.definition(program, from)).collect::<Result<_, _>>()?;
        let form = form.filter(|form| variants.number(opcode, *form).is_some()).unwrap_or(Form::Native);
        let new = NewInst { mods, form, ..NewInst::hw(opcode, &definitions, &operands) };
        let inst = program.append(block, &new);
        program[inst].exact = print.contains("(precise)");
        Ok(())
    }
}

/// The last value that a part of a case makes, and whether only its lower half counts.
fn result(program: &Program, block: Block) -> Option<(Operand, bool)> {
    let &inst = program.blocks[block].insts.last()?;
    let definition = program.definitions(inst).first()?;
    (!program.op(inst).is(Pseudo::StartProgram)).then_some(())?;
    // Instructions of 16 bits leave anything in the upper half.
    let narrow = match program.op(inst) {
        Op::Hw(opcode) => Variants::of(&program.gpu)
            .widest(opcode)
            .and_then(|variant| shape::definitions(variant).next())
            .is_some_and(|slot| slot.ty.bits() == 16),
        Op::Pseudo(_) => false,
    };
    Some((Operand::temp(definition.temp?, definition.class), narrow))
}

/// The program of a case in SSA form.
pub fn ssa(case: &Case) -> Result<Ssa, String> {
    let variants = Variants::of(&case.gpu);
    let mut program = Program::new(case.gpu);
    let mut temps = Temps::default();
    let class = RegClass::sgpr(4);
    let descriptor = program.make_temp(class);
    let address = program.make_temp(RegClass::V1);
    let mut arguments = Vec::new();
    let (mut stores, mut offset) = (0, 0);
    for (number, own) in case.input.iter().enumerate() {
        let block = program.add_block();
        program.blocks[block].top_level = true;
        if number > 0 {
            let before = Block::new(number - 1);
            program.append(before, &NewInst::pseudo(Pseudo::LogicalEnd, &[], &[]));
            program.append(before, &NewInst::pseudo(Pseudo::Branch, &[], &[]));
            program.link(before, block);
            program.append(block, &NewInst::pseudo(Pseudo::LogicalStart, &[], &[]));
        }
        let mut fresh = false;
        for line in &own.code {
            match line {
                CaseLine::Pseudo(pseudo) if pseudo.op == "p_startpgm" => {
                    let mut definitions = vec![
                        Definition::fixed(descriptor, class, PhysReg::sgpr(DESCRIPTOR)),
                        Definition::fixed(address, RegClass::V1, PhysReg::vgpr(0)),
                    ];
                    let (mut scalar, mut vector) = (4u8, 1u8);
                    for from in &pseudo.definitions {
                        let mut definition = temps.definition(&mut program, from)?;
                        let dwords = definition.class.dwords();
                        let reg = if definition.class.is_sgpr() {
                            scalar = scalar.next_multiple_of(dwords.min(4));
                            scalar += dwords;
                            PhysReg::sgpr(scalar - dwords)
                        } else {
                            vector += dwords;
                            PhysReg::vgpr(vector - dwords)
                        };
                        definition.reg = Some(reg);
                        arguments.push((reg, dwords));
                        definitions.push(definition);
                    }
                    program.append(block, &NewInst::pseudo(Pseudo::StartProgram, &definitions, &[]));
                    program.append(block, &NewInst::pseudo(Pseudo::LogicalStart, &[], &[]));
                }
                CaseLine::Pseudo(pseudo) => {
                    temps.ssa(&mut program, &variants, block, pseudo)?;
                    fresh = true;
                }
                CaseLine::Mark(_) if fresh => {
                    fresh = false;
                    let (value, narrow) = result(&program, block).ok_or("a part without result")?;
                    stores += store(&mut program, block, (value, narrow), [descriptor, address], offset)?;
                    offset += 16;
                }
                CaseLine::Mark(_) => {}
                CaseLine::Inst(inst) if inst.row().role == Role::End => {}
                other => return Err(format!("{other:?}")),
            }
        }
    }
    let last = program.blocks.keys().last().ok_or("no block")?;
    program.append(last, &NewInst::pseudo(Pseudo::LogicalEnd, &[], &[]));
    program.append(last, &NewInst::hw(Opcode::s_endpgm, &[], &[]));
    Ok(Ssa { program, arguments, stores })
}

/// Stores a value; how many instructions that takes.
fn store(
    program: &mut Program,
    block: Block,
    (value, narrow): (Operand, bool),
    [descriptor, address]: [Temp; 2],
    offset: u32,
) -> Result<usize, String> {
    if offset + 16 > LANE_BYTES || value.class.bytes() > 4 {
        return Err("a result that is too large".to_owned());
    }
    let mut count = 1;
    let mut value = value;
    if value.class.is_sgpr() {
        let temp = program.make_temp(RegClass::V1);
        let to = [Definition::temp(temp, RegClass::V1)];
        program.append(block, &NewInst::pseudo(Pseudo::ParallelCopy, &to, &[value]));
        value = Operand::temp(temp, RegClass::V1);
        count += 1;
    }
    let opcode = match value.class.bytes() {
        1 => Opcode::buffer_store_byte,
        2 => Opcode::buffer_store_short,
        4 if narrow => Opcode::buffer_store_short,
        _ => Opcode::buffer_store_dword,
    };
    let mut mods = Mods::default();
    mods.set(Mod::Offen, 1);
    mods.set(Mod::Offset, offset as i32);
    let operands = [
        value,
        Operand::temp(address, RegClass::V1),
        Operand::temp(descriptor, RegClass::sgpr(4)),
        Operand::c32(0),
    ];
    program.append(block, &NewInst { mods, ..NewInst::hw(opcode, &[], &operands) });
    Ok(count)
}

/// Instructions of the program of a case that compute something: all but those that start and end it.
pub fn instructions(blocks: &[CaseBlock]) -> usize {
    let computes = |line: &&CaseLine| match line {
        CaseLine::Pseudo(line) => line.op != "p_startpgm",
        CaseLine::Inst(inst) => !matches!(inst.row().role, Role::End | Role::Message),
        CaseLine::Mark(_) | CaseLine::Unread(_) => false,
    };
    blocks.iter().flat_map(|block| &block.code).filter(computes).count()
}

/// Instructions of a program that compute something.
pub fn computing(program: &Program) -> usize {
    let computes = |inst| match program.op(inst) {
        Op::Hw(opcode) => opcode.row().role != Role::End,
        Op::Pseudo(pseudo) => !matches!(
            pseudo,
            Pseudo::StartProgram | Pseudo::LogicalStart | Pseudo::LogicalEnd | Pseudo::Branch
        ),
    };
    let insts = program.blocks.values().flat_map(|block| &block.insts);
    insts.filter(|inst| computes(**inst)).count()
}
